/* linear_relu_gradient's loops, for one float type. */

/* g = dy where y > 0, else 0, and the sums of g's rows. */
static void TYPED(mask_rows)(int64_t rows, int64_t n, const void *dys, const void *ys, void *gs,
                             void *row_sums)
{
    const NUMBER *dy = dys, *y = ys;
    NUMBER *g = gs, *sums = row_sums;
    for (int64_t j = 0; j < n; j++) sums[j] = 0;
    for (int64_t i = 0; i < rows; i++, dy += n, y += n, g += n)
        for (int64_t j = 0; j < n; j++) {
            NUMBER value = y[j] > 0 ? dy[j] : 0;
            g[j] = value;
            sums[j] += value;
        }
}

/* The groups' sums, in their order. */
static void TYPED(mask_join)(int64_t groups, int64_t n, const void *group_sums, void *to)
{
    const NUMBER *sums = group_sums;
    NUMBER *total = to;
    for (int64_t j = 0; j < n; j++) total[j] = 0;
    for (int64_t i = 0; i < groups; i++)
        for (int64_t j = 0; j < n; j++) total[j] += sums[i * n + j];
}

#undef TYPE
