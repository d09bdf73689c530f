/* The loops of batch normalization, for one float type. Each element has one expression, the same
 * in vectors and behind them. */

/* A constant of the channel: of the one that a line has, or of element i's. */
#define OF_CHANNEL(constant) (line ? TYPED(vset)(*(constant)) : vload((constant) + i))
#define PART_OF_CHANNEL(constant)                                                                  \
    (line ? TYPED(vset)(*(constant)) : vload_part((constant) + i, n - i))

/* y = (x - mean) scale + shift, n adjoining numbers. */
VECTOR_INLINE void TYPED(norm_forward)(const bool line, const bool stream, const NUMBER *restrict x,
                                       const NUMBER *restrict mean, const NUMBER *restrict scale,
                                       const NUMBER *restrict shift, NUMBER *restrict y, int64_t n)
{
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        const VECTOR v = (vload(x + i) - OF_CHANNEL(mean)) * OF_CHANNEL(scale) + OF_CHANNEL(shift);
        if (stream)
            vstream(y + i, v);
        else
            vstore(y + i, v);
    }
    if (i < n)
        vstore_part(y + i,
                    (vload_part(x + i, n - i) - PART_OF_CHANNEL(mean)) * PART_OF_CHANNEL(scale) +
                        PART_OF_CHANNEL(shift),
                    n - i);
}

/* dx = scale (dy - a - (x - mean) b). */
VECTOR_INLINE void TYPED(norm_backward)(const bool line, const bool stream,
                                        const NUMBER *restrict x, const NUMBER *restrict dy,
                                        const NUMBER *restrict mean, const NUMBER *restrict scale,
                                        const NUMBER *restrict a, const NUMBER *restrict b,
                                        NUMBER *restrict dx, int64_t n)
{
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        const VECTOR d = vload(x + i) - OF_CHANNEL(mean);
        const VECTOR v = OF_CHANNEL(scale) * (vload(dy + i) - OF_CHANNEL(a) - d * OF_CHANNEL(b));
        if (stream)
            vstream(dx + i, v);
        else
            vstore(dx + i, v);
    }
    if (i < n) {
        const VECTOR d = vload_part(x + i, n - i) - PART_OF_CHANNEL(mean);
        const VECTOR v = PART_OF_CHANNEL(scale) *
                         (vload_part(dy + i, n - i) - PART_OF_CHANNEL(a) - d * PART_OF_CHANNEL(b));
        vstore_part(dx + i, v, n - i);
    }
}

#undef OF_CHANNEL
#undef PART_OF_CHANNEL

/* ---- Rows ------------------------------------------------------------------------------------ */

static void TYPED(norm_rows)(const norm_work *w, int64_t first, int64_t last)
{
    const int64_t n = w->period;
    const NUMBER *x = (const NUMBER *)w->x, *mean = (const NUMBER *)w->mean,
                 *scale = (const NUMBER *)w->scale, *shift = (const NUMBER *)w->a;
    for (int64_t r = first; r < last; r++)
        if (w->stream) TYPED(norm_forward)
    (false, true, x + r * n, mean, scale, shift, (NUMBER *)w->to + r * n, n);
    else TYPED(norm_forward)(false, false, x + r * n, mean, scale, shift, (NUMBER *)w->to + r * n,
                             n);
}

static void TYPED(norm_gradient_rows)(const norm_work *w, int64_t first, int64_t last)
{
    const int64_t n = w->period;
    const NUMBER *x = (const NUMBER *)w->x, *dy = (const NUMBER *)w->dy,
                 *mean = (const NUMBER *)w->mean, *scale = (const NUMBER *)w->scale,
                 *a = (const NUMBER *)w->a, *b = (const NUMBER *)w->b;
    for (int64_t r = first; r < last; r++)
        if (w->stream) TYPED(norm_backward)
    (false, true, x + r * n, dy + r * n, mean, scale, a, b, (NUMBER *)w->to + r * n, n);
    else TYPED(norm_backward)(false, false, x + r * n, dy + r * n, mean, scale, a, b,
                              (NUMBER *)w->to + r * n, n);
}

/* Of rows [first, last), the numbers [column, column + width): the sums of dy into a row of `sums`,
 * those of dy (x - mean) into the next one. */
static void TYPED(norm_row_sums)(const norm_work *w, int64_t first, int64_t last, int64_t column,
                                 int64_t width, void *to)
{
    NUMBER a[NORM_COLUMNS / sizeof(NUMBER)], b[NORM_COLUMNS / sizeof(NUMBER)];
    const int64_t n = w->period;
    const NUMBER *restrict mean = (const NUMBER *)w->mean + column;
    NUMBER *restrict sums = (NUMBER *)to + column, *restrict products = sums + n;
    memset(sums, 0, (size_t)width * sizeof *sums);
    memset(products, 0, (size_t)width * sizeof *products);
    for (int64_t some = first; some < last; some += NORM_ROWS) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        for (int64_t r = some; r < last && r < some + NORM_ROWS; r++) {
            const NUMBER *restrict x = (const NUMBER *)w->x + r * n + column;
            const NUMBER *restrict dy = (const NUMBER *)w->dy + r * n + column;
            for (int64_t c = 0; c < width; c++) {
                a[c] += dy[c];
                b[c] += dy[c] * (x[c] - mean[c]);
            }
        }
        for (int64_t c = 0; c < width; c++) {
            sums[c] += a[c];
            products[c] += b[c];
        }
    }
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void TYPED(norm_line)(const norm_work *w, int64_t c, int64_t at, int64_t n)
{
    const NUMBER *x = (const NUMBER *)w->x + at, *mean = (const NUMBER *)w->mean + c,
                 *scale = (const NUMBER *)w->scale + c, *shift = (const NUMBER *)w->a + c;
    NUMBER *y = (NUMBER *)w->to + at;
    if (w->stream)
        TYPED(norm_forward)(true, true, x, mean, scale, shift, y, n);
    else
        TYPED(norm_forward)(true, false, x, mean, scale, shift, y, n);
}

static void TYPED(norm_gradient_line)(const norm_work *w, int64_t c, int64_t at, int64_t n)
{
    const NUMBER *x = (const NUMBER *)w->x + at, *dy = (const NUMBER *)w->dy + at,
                 *mean = (const NUMBER *)w->mean + c, *scale = (const NUMBER *)w->scale + c,
                 *a = (const NUMBER *)w->a + c, *b = (const NUMBER *)w->b + c;
    NUMBER *dx = (NUMBER *)w->to + at;
    if (w->stream)
        TYPED(norm_backward)(true, true, x, dy, mean, scale, a, b, dx, n);
    else
        TYPED(norm_backward)(true, false, x, dy, mean, scale, a, b, dx, n);
}

/* sums[0] += of dy, sums[1] += of dy (x - mean). */
static void TYPED(norm_line_sums)(const norm_work *w, int64_t c, int64_t at, int64_t n,
                                  double sums[2])
{
    enum { N = LANES_ALL / VECTOR_LANES, BLOCK = 1024 };
    const NUMBER *x = (const NUMBER *)w->x + at, *dy = (const NUMBER *)w->dy + at,
                 m = ((const NUMBER *)w->mean)[c];
    const VECTOR mean = TYPED(vset)(m);
    for (int64_t block = 0; block < n; block += BLOCK) {
        const int64_t end = n - block < BLOCK ? n : block + BLOCK;
        VECTOR a[N], b[N];
        for (int v = 0; v < N; v++) a[v] = b[v] = (VECTOR){0};
        int64_t i = block;
        for (; i + LANES_ALL <= end; i += LANES_ALL)
            for (int v = 0; v < N; v++) {
                const VECTOR d = vload(dy + i + v * VECTOR_LANES);
                a[v] += d;
                b[v] += d * (vload(x + i + v * VECTOR_LANES) - mean);
            }
        for (int v = 0; v < N && i < end; v++, i += VECTOR_LANES) {
            const VECTOR d = lanes_some(dy + i, end - i, 0);
            a[v] += d;
            b[v] += d * (lanes_some(x + i, end - i, m) - mean);
        }
        sums[0] += lanes_across(LANES_SUM, a);
        sums[1] += lanes_across(LANES_SUM, b);
    }
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void TYPED(norm_scale)(const void *variances, const void *gammas, double epsilon,
                              void *scales, int64_t n)
{
    const NUMBER *variance = variances, *gamma = gammas;
    NUMBER *scale = scales;
    for (int64_t c = 0; c < n; c++)
        scale[c] = (gamma ? gamma[c] : 1) / TYPED(number_sqrt)(variance[c] + (NUMBER)epsilon);
}

static void TYPED(norm_put)(const double sums[2], void *a, void *b)
{
    *(NUMBER *)a = (NUMBER)sums[0];
    *(NUMBER *)b = (NUMBER)sums[1];
}

static void TYPED(norm_add)(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((NUMBER *)to)[i] += ((const NUMBER *)from)[i];
}

static void TYPED(norm_shares)(void *as, void *bs, void *scales, const void *gammas, int64_t count,
                               int64_t n, void *dgammas, void *dbetas)
{
    const NUMBER *gamma = gammas;
    NUMBER *a = as, *b = bs, *scale = scales, *dgamma = dgammas, *dbeta = dbetas;
    for (int64_t c = 0; c < n; c++) {
        const NUMBER r = scale[c];
        dgamma[c] = b[c] * r;
        dbeta[c] = a[c];
        a[c] /= (NUMBER)count;
        b[c] = b[c] / (NUMBER)count * r * r;
        scale[c] = r * gamma[c];
    }
}

#undef TYPE
