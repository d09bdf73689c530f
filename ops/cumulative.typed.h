/* Loops of cumulative ops for one type; SUM is the type of sums and products. */

#define TOTAL TYPED_PASTE(number, SUM)

/* f(total, x) of a row. */
VECTOR_INLINE void TYPED(cumulate_row)(const NUMBER *from, NUMBER *to, int64_t n, int64_t apart,
                                       TOTAL total, TOTAL (*f)(TOTAL total, NUMBER v))
{
    for (int64_t i = 0; i < n; i++, from += apart, to += apart)
        *to = (NUMBER)(total = f(total, *from));
}

/* f(total, x) of four elements of each of `width` columns. */
VECTOR_INLINE void TYPED(cumulate_four)(const NUMBER *restrict from, int64_t from_apart,
                                        NUMBER *restrict to, int64_t to_apart,
                                        TOTAL *restrict totals, int64_t width,
                                        TOTAL (*f)(TOTAL total, NUMBER v))
{
#pragma omp simd
    for (int64_t c = 0; c < width; c++) {
        TOTAL total = totals[c];
        to[c] = (NUMBER)(total = f(total, from[c]));
        to[c + to_apart] = (NUMBER)(total = f(total, from[c + from_apart]));
        to[c + 2 * to_apart] = (NUMBER)(total = f(total, from[c + 2 * from_apart]));
        to[c + 3 * to_apart] = (NUMBER)(total = f(total, from[c + 3 * from_apart]));
        totals[c] = total;
    }
}

/* The same past the caches, of whole lines. */
VECTOR_INLINE void TYPED(cumulate_four_lines)(const NUMBER *from, NUMBER *to, int64_t apart,
                                              TOTAL *totals, int64_t width,
                                              TOTAL (*f)(TOTAL total, NUMBER v))
{
    enum { LINE = COPY_LINE / sizeof(NUMBER) };
    for (int64_t c = 0; c < width; c += LINE) {
        NUMBER lines[4 * LINE] __attribute__((aligned(COPY_LINE)));
        TYPED(cumulate_four)(from + c, apart, lines, LINE, totals + c, LINE, f);
        for (int r = 0; r < 4; r++) cumulative_stream(to + c + r * apart, lines + r * LINE);
    }
}

/* f(total, x) column by column, a strip of them side by side: four elements each while the totals
 * are at hand, then one. */
VECTOR_INLINE void TYPED(cumulate)(const void *x, void *y, int64_t n, int64_t apart, int64_t width,
                                   void *room, bool stream, TOTAL initial,
                                   TOTAL (*f)(TOTAL total, NUMBER v))
{
    const NUMBER *restrict from = x;
    NUMBER *restrict to = y;
    TOTAL *restrict totals = room;
    if (width == 1) {
        TYPED(cumulate_row)(from, to, n, apart, initial, f);
        return;
    }
    for (int64_t c = 0; c < width; c++) totals[c] = initial;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, from += 4 * apart, to += 4 * apart)
        if (stream)
            TYPED(cumulate_four_lines)(from, to, apart, totals, width, f);
        else
            TYPED(cumulate_four)(from, apart, to, apart, totals, width, f);
    for (; i < n; i++, from += apart, to += apart)
        for (int64_t c = 0; c < width; c++) to[c] = (NUMBER)(totals[c] = f(totals[c], from[c]));
}

#if FLOATING
#define CUM_UNSIGNED(v) (TOTAL)(v)
#define CUM_LOW         -INFINITY
#define CUM_HIGH        INFINITY
#define CUM_IS_NAN(v)   ((v) != (v))
#else
#define CUM_UNSIGNED(v) (UNSIGNED)(v)
#define CUM_LOW         NUMBER_MIN
#define CUM_HIGH        NUMBER_MAX
#define CUM_IS_NAN(v)   0
#endif

VECTOR_INLINE TOTAL TYPED(cum_add)(TOTAL total, NUMBER v)
{
    return (TOTAL)(CUM_UNSIGNED(total) + CUM_UNSIGNED(v));
}
VECTOR_INLINE TOTAL TYPED(cum_mul)(TOTAL total, NUMBER v)
{
    return (TOTAL)(CUM_UNSIGNED(total) * CUM_UNSIGNED(v));
}
/* NaN stays: no comparison with it holds. */
VECTOR_INLINE TOTAL TYPED(cum_larger)(TOTAL total, NUMBER v)
{
    return v > total || CUM_IS_NAN(v) ? (TOTAL)v : total;
}
VECTOR_INLINE TOTAL TYPED(cum_smaller)(TOTAL total, NUMBER v)
{
    return v < total || CUM_IS_NAN(v) ? (TOTAL)v : total;
}

static void TYPED(cumulate_sum)(CUMULATIVE_ARGUMENTS)
{
    TYPED(cumulate)(x, y, n, apart, width, room, stream, 0, TYPED(cum_add));
}

#if FLOATING
#define CUM_ZERO ((const vf64){0})

/* The last lane, back: the first, in every lane. */
VECTOR_INLINE vf64 TYPED(cumsum_last)(vf64 v, bool back)
{
    const double last = v[back ? 0 : VECTOR_F64 - 1];
    return last - CUM_ZERO;
}

/* A vector of doubles from and to adjoining numbers. The compiler makes two halves of a
 * conversion. */
VECTOR_INLINE vf64 TYPED(cumsum_load)(const NUMBER *from)
{
    typedef NUMBER some __attribute__((vector_size(VECTOR_F64 * sizeof(NUMBER))));
    some v;
    memcpy(&v, from, sizeof v);
#if VECTOR_BYTES == 32 && defined(__AVX__)
    if (sizeof(NUMBER) == sizeof(float))
        return (vf64)_mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)from));
#endif
    return __builtin_convertvector(v, vf64);
}
VECTOR_INLINE void TYPED(cumsum_store)(NUMBER *to, vf64 v)
{
    typedef NUMBER some __attribute__((vector_size(VECTOR_F64 * sizeof(NUMBER))));
    const some y = __builtin_convertvector(v, some);
    memcpy(to, &y, sizeof y);
}

/* Four vectors of doubles past the caches, the first at `to`; back: the last before the others.
 * What is read next is fetched. */
VECTOR_INLINE void TYPED(cumsum_stream)(const NUMBER *from, NUMBER *to, const vf64 v[4], bool back)
{
    const int64_t ahead = (back ? -1 : 1) * VECTOR_AHEAD;
    const int64_t first = back ? -3 * VECTOR_F64 : 0;
    for (int i = 0; i < 4 * VECTOR_F64; i += COPY_LINE / (int)sizeof(NUMBER))
        __builtin_prefetch((const char *)(from + first + i) + ahead);
    for (int k = 0; k < 4; k++) {
        const vf64 low = v[back ? 3 - k : k];
        if (sizeof(NUMBER) == sizeof(double))
            vstream_f64((double *)(void *)(to + first + k * VECTOR_F64), low);
        else if (k % 2 == 0)
            vstream_f32((float *)(void *)(to + first + k * VECTOR_F64),
                        halves_f32(low, v[back ? 2 - k : k + 1]));
    }
}

VECTOR_INLINE bool TYPED(cumsum_finite)(const vf64 *v, int n)
{
    vi64 finite = vabs_f64(v[0]) < INFINITY;
    for (int k = 1; k < n; k++) finite &= vabs_f64(v[k]) < INFINITY;
    return vall_i64(finite);
}

/*
 * A row, backwards with back: sums within vectors of float64, then what was before. Sums of float32
 * cannot overflow there. Of float64, four vectors with anything infinite, and all that comes after
 * them, go element by element, so that sums which overflow and come back are those of a plain loop.
 */
VECTOR_INLINE void TYPED(cumsum_row)(const NUMBER *from, NUMBER *to, int64_t n, bool back,
                                     bool stream)
{
    enum { TOGETHER = 4, STEP = TOGETHER * VECTOR_F64 };
    vf64 before = CUM_ZERO; /* in every lane; one addition a vector waits for the one before */
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        vf64 v[TOGETHER], sums = before;
        NUMBER *const at = to + (back ? -i - VECTOR_F64 + 1 : i);
        for (int k = 0; k < TOGETHER; k++)
            v[k] = vsums_f64(TYPED(cumsum_load)(from + (at - to) + (back ? -k : k) * VECTOR_F64),
                             back);
        for (int k = 0; k < TOGETHER; k++) {
            const vf64 last = TYPED(cumsum_last)(v[k], back);
            v[k] += sums;
            sums += last;
        }
        if (sizeof(NUMBER) == sizeof(double) &&
            __builtin_expect(!TYPED(cumsum_finite)(v, TOGETHER), 0))
            break;
        before = sums;
        if (stream)
            TYPED(cumsum_stream)(from + (at - to), at, v, back);
        else
            for (int k = 0; k < TOGETHER; k++)
                TYPED(cumsum_store)(at + (back ? -k : k) * VECTOR_F64, v[k]);
    }
    double total = before[0];
    for (; i < n; i++) {
        const int64_t at = back ? -i : i;
        total += (double)from[at];
        to[at] = (NUMBER)total;
    }
}
#undef CUM_ZERO

static void TYPED(cumsum)(CUMULATIVE_ARGUMENTS)
{
    if (width == 1 && apart == 1)
        TYPED(cumsum_row)(x, y, n, false, stream);
    else if (width == 1 && apart == -1)
        TYPED(cumsum_row)(x, y, n, true, stream);
    else
        TYPED(cumulate_sum)(x, y, n, apart, width, room, stream);
}

/* ln of the sum of e^x: the maximum so far, and the sum of what is e^(x - maximum). */
static void TYPED(cumlogsumexp)(CUMULATIVE_ARGUMENTS)
{
    (void)room, (void)stream;
    for (int64_t c = 0; c < width; c++) {
        const NUMBER *from = (const NUMBER *)x + c;
        NUMBER *to = (NUMBER *)y + c;
        double m = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++, from += apart, to += apart) {
            const double v = (double)*from;
            if (v > m) {
                sum = sum * exp(m - v) + 1;
                m = v;
            } else if (v != v || m != m) {
                m = NAN;
            } else if (v > -INFINITY && m < INFINITY) {
                sum += exp(v - m);
            }
            *to = (NUMBER)(fabs(m) < INFINITY ? m + log(sum) : m);
        }
    }
}
#else
static void TYPED(cumsum)(CUMULATIVE_ARGUMENTS)
{
    TYPED(cumulate_sum)(x, y, n, apart, width, room, stream);
}
#endif

static void TYPED(cumprod)(CUMULATIVE_ARGUMENTS)
{
    TYPED(cumulate)(x, y, n, apart, width, room, stream, 1, TYPED(cum_mul));
}

static void TYPED(cummax)(CUMULATIVE_ARGUMENTS)
{
    TYPED(cumulate)(x, y, n, apart, width, room, stream, CUM_LOW, TYPED(cum_larger));
}

static void TYPED(cummin)(CUMULATIVE_ARGUMENTS)
{
    TYPED(cumulate)(x, y, n, apart, width, room, stream, CUM_HIGH, TYPED(cum_smaller));
}

#undef CUM_UNSIGNED
#undef CUM_LOW
#undef CUM_HIGH
#undef CUM_IS_NAN
#undef TOTAL
#undef SUM
#undef TYPE
