/* Segments folded, for one type. Integers wrap. */

/* Elements, by ids of either width. Where neighbours are often of one segment, as the first ones
 * tell, they are folded in a register: through memory each would wait for the one before. */
VECTOR_INLINE void TYPED(segment_fold_elements)(const NUMBER *x, NUMBER *y, const void *ids,
                                                const bool wide, int64_t n,
                                                NUMBER (*f)(NUMBER y, NUMBER x))
{
    const int64_t *wides = ids;
    const int32_t *narrow = ids;
#define ID(i) (wide ? wides[i] : narrow[i])
    const int64_t some = n < SEGMENT_SAMPLE ? n : SEGMENT_SAMPLE;
    int64_t same = 0;
    for (int64_t i = 1; i < some; i++) same += ID(i) == ID(i - 1);
    if (same < some / 8) {
        for (int64_t i = 0; i < n; i++)
            if (ID(i) >= 0) y[ID(i)] = f(y[ID(i)], x[i]);
        return;
    }
    for (int64_t i = 0; i < n;) {
        const int64_t id = ID(i);
        if (id < 0) {
            i++;
            continue;
        }
        NUMBER folded = y[id];
        do folded = f(folded, x[i]);
        while (++i < n && ID(i) == id);
        y[id] = folded;
    }
#undef ID
}

/* y[ids[i]] = f(y[ids[i]], x[i]) for n rows in their order, in columns first..last-1. */
VECTOR_INLINE void TYPED(segment_fold)(const void *x, void *y, const void *all, bool narrow,
                                       int64_t n, int64_t width, int64_t first, int64_t last,
                                       NUMBER (*f)(NUMBER y, NUMBER x))
{
    const NUMBER *from = x;
    NUMBER *to = y;
    if (width == 1) {
        if (narrow)
            TYPED(segment_fold_elements)(from, to, all, false, n, f);
        else
            TYPED(segment_fold_elements)(from, to, all, true, n, f);
        return;
    }
    const int64_t *ids = all;
    const int64_t line = 64 / (int64_t)sizeof(NUMBER);
    for (int64_t i = 0; i < n; i++) {
        /* Rows that come soon, where no pattern tells the processor which. */
        if (i + SEGMENT_AHEAD < n && ids[i + SEGMENT_AHEAD] >= 0)
            for (int64_t j = first; j < last && j < first + 8 * line; j += line)
                __builtin_prefetch(to + ids[i + SEGMENT_AHEAD] * width + j, 1);
        if (ids[i] < 0) continue;
        const NUMBER *restrict row = from + i * width;
        NUMBER *restrict folded = to + ids[i] * width;
        for (int64_t j = first; j < last; j++) folded[j] = f(folded[j], row[j]);
    }
}

#if FLOATING
#define SEGMENT_NUMBER(v) (v)
#define SEGMENT_NAN(v)    ((v) != (v))
#else
#define SEGMENT_NUMBER(v) (UNSIGNED)(v)
#define SEGMENT_NAN(v)    0
#endif

VECTOR_INLINE NUMBER TYPED(segment_add)(NUMBER y, NUMBER x)
{
    return (NUMBER)(SEGMENT_NUMBER(y) + SEGMENT_NUMBER(x));
}
VECTOR_INLINE NUMBER TYPED(segment_mul)(NUMBER y, NUMBER x)
{
    return (NUMBER)(SEGMENT_NUMBER(y) * SEGMENT_NUMBER(x));
}
/* NaN stays: no comparison with it holds. */
VECTOR_INLINE NUMBER TYPED(segment_larger)(NUMBER y, NUMBER x)
{
    return x > y || SEGMENT_NAN(x) ? x : y;
}
VECTOR_INLINE NUMBER TYPED(segment_smaller)(NUMBER y, NUMBER x)
{
    return x < y || SEGMENT_NAN(x) ? x : y;
}

static void TYPED(segment_sum)(SEGMENT_ARGUMENTS)
{
    TYPED(segment_fold)(x, y, ids, narrow, n, width, first, last, TYPED(segment_add));
}
static void TYPED(segment_prod)(SEGMENT_ARGUMENTS)
{
    TYPED(segment_fold)(x, y, ids, narrow, n, width, first, last, TYPED(segment_mul));
}
static void TYPED(segment_max)(SEGMENT_ARGUMENTS)
{
    TYPED(segment_fold)(x, y, ids, narrow, n, width, first, last, TYPED(segment_larger));
}
static void TYPED(segment_min)(SEGMENT_ARGUMENTS)
{
    TYPED(segment_fold)(x, y, ids, narrow, n, width, first, last, TYPED(segment_smaller));
}

#undef SEGMENT_NUMBER
#undef SEGMENT_NAN
#undef TYPE
