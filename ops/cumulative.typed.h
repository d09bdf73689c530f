/* Loops of cumulative ops for one type; SUM is the type of sums and products. */

#define TOTAL TYPED_PASTE(number, SUM)

/* f(total, x) column by column: of a row one total, of many a strip of them. */
VECTOR_INLINE void TYPED(cumulate)(const void *x, void *y, int64_t n, int64_t apart, int64_t width,
                                   TOTAL initial, TOTAL (*f)(TOTAL total, NUMBER v))
{
    const NUMBER *from = x;
    NUMBER *to = y;
    TOTAL totals[STRIP], total = initial;
    if (width == 1) {
        for (int64_t i = 0; i < n; i++, from += apart, to += apart)
            *to = (NUMBER)(total = f(total, *from));
        return;
    }
    for (int64_t c = 0; c < width; c++) totals[c] = initial;
    for (int64_t i = 0; i < n; i++, from += apart, to += apart)
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

static void TYPED(cumulate_sum)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
    TYPED(cumulate)(x, y, n, apart, width, 0, TYPED(cum_add));
}

#if FLOATING
/* Lane i takes what lane i - by has, 0 where there is none. */
VECTOR_INLINE vf64 TYPED(cumsum_moved)(vf64 v, int by)
{
    const vf64 zero = {0};
#if VECTOR_BYTES == 64
    if (by == 1) return __builtin_shufflevector(zero, v, 0, 8, 9, 10, 11, 12, 13, 14);
    if (by == 2) return __builtin_shufflevector(zero, v, 0, 0, 8, 9, 10, 11, 12, 13);
    return __builtin_shufflevector(zero, v, 0, 0, 0, 0, 8, 9, 10, 11);
#elif VECTOR_BYTES == 32
    if (by == 1) return __builtin_shufflevector(zero, v, 0, 4, 5, 6);
    return __builtin_shufflevector(zero, v, 0, 0, 4, 5);
#else
    (void)by;
    return __builtin_shufflevector(zero, v, 0, 2);
#endif
}

VECTOR_INLINE vf64 TYPED(cumsum_reversed)(vf64 v)
{
#if VECTOR_BYTES == 64
    return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
#elif VECTOR_BYTES == 32
    return __builtin_shufflevector(v, v, 3, 2, 1, 0);
#else
    return __builtin_shufflevector(v, v, 1, 0);
#endif
}

/* The last lane in every lane. */
VECTOR_INLINE vf64 TYPED(cumsum_last)(vf64 v)
{
#if VECTOR_BYTES == 64
    return __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
#elif VECTOR_BYTES == 32
    return __builtin_shufflevector(v, v, 3, 3, 3, 3);
#else
    return __builtin_shufflevector(v, v, 1, 1);
#endif
}

/* A vector of doubles from and to adjoining numbers. */
VECTOR_INLINE vf64 TYPED(cumsum_load)(const NUMBER *from)
{
    typedef NUMBER some __attribute__((vector_size(VECTOR_F64 * sizeof(NUMBER))));
    some v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, vf64);
}
VECTOR_INLINE void TYPED(cumsum_store)(NUMBER *to, vf64 v)
{
    typedef NUMBER some __attribute__((vector_size(VECTOR_F64 * sizeof(NUMBER))));
    const some y = __builtin_convertvector(v, some);
    memcpy(to, &y, sizeof y);
}

/*
 * A row, backwards with back: sums within a vector of float64, then what was before. A vector with
 * anything infinite goes element by element, so that sums which overflow and come back are those of
 * a plain loop.
 */
VECTOR_INLINE void TYPED(cumsum_row)(const NUMBER *from, NUMBER *to, int64_t n, bool back)
{
    vf64 before = {0}; /* in every lane; one addition a vector waits for the one before */
    int64_t i = 0;
    for (; i + VECTOR_F64 <= n; i += VECTOR_F64) {
        const int64_t at = back ? -i - VECTOR_F64 + 1 : i;
        vf64 v = TYPED(cumsum_load)(from + at);
        if (back) v = TYPED(cumsum_reversed)(v);
        for (int by = 1; by < VECTOR_F64; by *= 2) v += TYPED(cumsum_moved)(v, by);
        const vf64 y = v + before;
        if (__builtin_expect(!vall_i64(vabs_f64(y) < INFINITY), 0)) break;
        before += TYPED(cumsum_last)(v);
        TYPED(cumsum_store)(to + at, back ? TYPED(cumsum_reversed)(y) : y);
    }
    double total = before[0];
    for (; i < n; i++) {
        const int64_t at = back ? -i : i;
        total += (double)from[at];
        to[at] = (NUMBER)total;
    }
}

static void TYPED(cumsum)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
    if (width == 1 && apart == 1)
        TYPED(cumsum_row)(x, y, n, false);
    else if (width == 1 && apart == -1)
        TYPED(cumsum_row)(x, y, n, true);
    else
        TYPED(cumulate_sum)(x, y, n, apart, width);
}

/* ln of the sum of e^x: the maximum so far, and the sum of what is e^(x - maximum). */
static void TYPED(cumlogsumexp)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
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
static void TYPED(cumsum)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
    TYPED(cumulate_sum)(x, y, n, apart, width);
}
#endif

static void TYPED(cumprod)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
    TYPED(cumulate)(x, y, n, apart, width, 1, TYPED(cum_mul));
}

static void TYPED(cummax)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
    TYPED(cumulate)(x, y, n, apart, width, CUM_LOW, TYPED(cum_larger));
}

static void TYPED(cummin)(const void *x, void *y, int64_t n, int64_t apart, int64_t width)
{
    TYPED(cumulate)(x, y, n, apart, width, CUM_HIGH, TYPED(cum_smaller));
}

#undef CUM_UNSIGNED
#undef CUM_LOW
#undef CUM_HIGH
#undef CUM_IS_NAN
#undef TOTAL
#undef SUM
#undef TYPE
