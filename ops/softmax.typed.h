/* Softmax and log_softmax of rows and of columns, and their gradients, for one float type. */

/* Elements of a row before its first aligned vector. */
VECTOR_INLINE int64_t TYPED(softmax_head)(const NUMBER *row, int64_t n)
{
    const int64_t head = (int64_t)(-(uintptr_t)row % VECTOR_BYTES / sizeof *row);
    return head < n ? head : n;
}

static void TYPED(softmax_rows)(const void *x, void *y, int64_t rows, int64_t n, bool logarithm)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *from = (const NUMBER *)x + r * n;
        NUMBER *to = (NUMBER *)y + r * n;
        const NUMBER m = lanes_row(LANES_MAX, LANES_ITSELF, from, n, 0);
        if (logarithm) {
            const NUMBER l = TYPED(number_log)(
                lanes_row_and(LANES_SUM, LANES_EXP_DOWN, from, n, m, softmax_next(from, n)));
            for (int64_t i = 0, left = n; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
                lanes_put(to + i, lanes_some(from + i, left, 0) - m - l, left);
        } else {
            const NUMBER k = 1 / lanes_exp(from, to, n, 1, m, softmax_next(from, n));
            for (int64_t i = 0, left = n; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
                lanes_put(to + i, lanes_some(to + i, left, 0) * k, left);
        }
    }
}

/* A number for each of the columns that are worked on side by side. */
typedef NUMBER TYPED(softmax_strip)[COLUMNS / sizeof(NUMBER)] __attribute__((aligned(64)));

/* The maximum of each column. */
VECTOR_INLINE void TYPED(softmax_maxima)(const NUMBER *x, int64_t n, int64_t apart, int64_t width,
                                         NUMBER *m)
{
    for (int64_t i = 0, left = width; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
        vstore(m + i, TYPED(vset)(-INFINITY));
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0, left = width; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
            vstore(m + i, vmax(vload(m + i), lanes_some(x + r * apart + i, left, 0)));
}

/* Sums of columns: by 64 rows, then those. */
static void TYPED(softmax_columns)(const void *x, void *y, int64_t n, int64_t apart, int64_t width,
                                   bool logarithm)
{
    TYPED(softmax_strip) m, sum, part;
    const NUMBER *from = x;
    NUMBER *to = y;
    TYPED(softmax_maxima)(from, n, apart, width, m);
    memset(sum, 0, sizeof sum);
    for (int64_t first = 0; first < n; first += 64) {
        memset(part, 0, sizeof part);
        for (int64_t r = first; r < n && r < first + 64; r++)
            for (int64_t i = 0, left = width; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES) {
                const VECTOR d = lanes_some(from + r * apart + i, left, 0) - vload(m + i);
                const VECTOR e = vexp_down(d);
                lanes_put(to + r * apart + i, logarithm ? d : e, left);
                vstore(part + i, vload(part + i) + e);
            }
        for (int64_t i = 0, left = width; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
            vstore(sum + i, vload(sum + i) + vload(part + i));
    }
    for (int64_t c = 0; c < width; c++) sum[c] = logarithm ? TYPED(number_log)(sum[c]) : 1 / sum[c];
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0, left = width; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES) {
            const VECTOR v = lanes_some(to + r * apart + i, left, 0), s = vload(sum + i);
            lanes_put(to + r * apart + i, logarithm ? v - s : v * s, left);
        }
}

/* The sum of x y; partial vectors are filled up with zeros. */
VECTOR_INLINE NUMBER TYPED(softmax_dot)(const NUMBER *x, const NUMBER *y, int64_t n)
{
    enum { ALL = LANES_ALL / VECTOR_LANES, N = ALL > 4 ? ALL : 4 };
    VECTOR acc[N];
    for (int v = 0; v < N; v++) acc[v] = (VECTOR){0};
    for (int64_t i = 0; i < n; i += N * VECTOR_LANES)
        for (int v = 0; v < N; v++) {
            const int64_t at = i + v * VECTOR_LANES, left = n - at;
            if (left <= 0) break;
            acc[v] += lanes_some(x + at, left, 0) * lanes_some(y + at, left, 0);
        }
    for (int v = ALL; v < N; v++) acc[v % ALL] += acc[v];
    return lanes_across(LANES_SUM, acc);
}

VECTOR_INLINE void TYPED(softmax_back)(const NUMBER *y, const NUMBER *dy, NUMBER *dx, int64_t left,
                                       NUMBER sum, bool logarithm, bool stream)
{
    const VECTOR v = lanes_some(y, left, 0), dv = lanes_some(dy, left, 0);
    const VECTOR d = logarithm ? dv - vexp_down(v) * sum : v * (dv - sum);
    if (stream)
        vstream(dx, d);
    else
        lanes_put(dx, d, left);
}

static void TYPED(softmax_gradient_rows)(const void *y, const void *dy, void *dx, int64_t rows,
                                         int64_t n, bool logarithm, bool stream)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *a = (const NUMBER *)y + r * n, *b = (const NUMBER *)dy + r * n;
        const NUMBER *next = softmax_next(a, n), *next_dy = softmax_next(b, n);
        NUMBER *to = (NUMBER *)dx + r * n;
        const NUMBER sum =
            logarithm ? lanes_row(LANES_SUM, LANES_ITSELF, b, n, 0) : TYPED(softmax_dot)(a, b, n);
        int64_t i = stream ? TYPED(softmax_head)(to, n) : 0;
        if (i) TYPED(softmax_back)(a, b, to, i, sum, logarithm, false);
        for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
            if (next) __builtin_prefetch(next + i), __builtin_prefetch(next_dy + i);
            TYPED(softmax_back)(a + i, b + i, to + i, VECTOR_LANES, sum, logarithm, stream);
        }
        if (i < n) TYPED(softmax_back)(a + i, b + i, to + i, n - i, sum, logarithm, false);
    }
    if (stream) vstream_end();
}

#undef TYPE
