/* The loops of batch normalization, for one float type. Each element has one expression, so the
 * vectors may be the compiler's. */

static void TYPED(norm_rows)(const void *from, const void *means, const void *scales,
                             const void *shifts, void *to, int64_t rows, int64_t n)
{
    const NUMBER *restrict mean = means, *restrict scale = scales, *restrict shift = shifts;
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *restrict x = (const NUMBER *)from + r * n;
        NUMBER *restrict y = (NUMBER *)to + r * n;
        for (int64_t c = 0; c < n; c++) y[c] = (x[c] - mean[c]) * scale[c] + shift[c];
    }
}

static void TYPED(norm_sums)(const void *xs, const void *dys, const void *means, int64_t rows,
                             int64_t n, int64_t width, void *to_sums, void *to_products)
{
    NUMBER a[NORM_COLUMNS / sizeof(NUMBER)], b[NORM_COLUMNS / sizeof(NUMBER)];
    const NUMBER *restrict mean = means;
    NUMBER *restrict sums = to_sums, *restrict products = to_products;
    memset(sums, 0, (size_t)width * sizeof *sums);
    memset(products, 0, (size_t)width * sizeof *products);
    for (int64_t first = 0; first < rows; first += NORM_GRAIN) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        for (int64_t r = first; r < rows && r < first + NORM_GRAIN; r++) {
            const NUMBER *restrict x = (const NUMBER *)xs + r * n;
            const NUMBER *restrict dy = (const NUMBER *)dys + r * n;
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

static void TYPED(norm_gradient_rows)(const void *xs, const void *dys, const void *means,
                                      const void *scales, const void *as, const void *bs, void *dxs,
                                      int64_t rows, int64_t n)
{
    const NUMBER *restrict mean = means, *restrict scale = scales;
    const NUMBER *restrict a = as, *restrict b = bs;
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *restrict x = (const NUMBER *)xs + r * n;
        const NUMBER *restrict dy = (const NUMBER *)dys + r * n;
        NUMBER *restrict dx = (NUMBER *)dxs + r * n;
        for (int64_t c = 0; c < n; c++) dx[c] = scale[c] * (dy[c] - a[c] - (x[c] - mean[c]) * b[c]);
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

static void TYPED(norm_add)(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((NUMBER *)to)[i] += ((const NUMBER *)from)[i];
}

static void TYPED(norm_shares)(void *sums, void *scales, const void *gammas, int64_t rows,
                               int64_t n, void *dgammas, void *dbetas)
{
    const NUMBER *gamma = gammas, count = (NUMBER)rows;
    NUMBER *scale = scales, *dgamma = dgammas, *dbeta = dbetas;
    for (int64_t c = 0; c < n; c++) {
        NUMBER *sum = (NUMBER *)sums + c, *product = sum + n, r = scale[c];
        dgamma[c] = *product * r;
        dbeta[c] = *sum;
        *sum /= count;
        *product = *product / count * r * r;
        scale[c] = r * gamma[c];
    }
}

#undef TYPE
