/* The loops of pooling, for one float type. */

/* A NaN is larger than any number; of equals the first stays. */
static void TYPED(pool_max)(const cells *c, const void *image, void *pooled)
{
    NUMBER *best = pooled;
    if (c->rows[0] >= c->rows[1] || c->columns[0] >= c->columns[1]) {
        for (int64_t i = 0; i < c->n; i++) best[i] = (NUMBER)-INFINITY;
        return;
    }
    const NUMBER *restrict first = (const NUMBER *)image + cell_at(c, c->rows[0], c->columns[0]);
    for (int64_t i = 0; i < c->n; i++) best[i] = first[i];
    for (int64_t h = c->rows[0]; h < c->rows[1]; h += c->steps[0])
        for (int64_t w = c->columns[0]; w < c->columns[1]; w += c->steps[1]) {
            const NUMBER *cell = (const NUMBER *)image + cell_at(c, h, w);
            for (int64_t i = 0; i < c->n; i++) {
                NUMBER x = cell[i], m = best[i];
                best[i] = ((x > m) | (x != x)) ? x : m;
            }
        }
}

static void TYPED(pool_argmax)(const cells *c, const void *image, void *pooled, int32_t *index)
{
    NUMBER *best = pooled;
    if (c->rows[0] >= c->rows[1] || c->columns[0] >= c->columns[1]) return;
    const NUMBER *restrict first = (const NUMBER *)image + cell_at(c, c->rows[0], c->columns[0]);
    int32_t number = 0;
    for (int64_t i = 0; i < c->n; i++) best[i] = first[i];
    for (int64_t i = 0; i < c->n; i++) index[i] = 0;
    for (int64_t h = c->rows[0]; h < c->rows[1]; h += c->steps[0])
        for (int64_t w = c->columns[0]; w < c->columns[1]; w += c->steps[1], number++) {
            const NUMBER *cell = (const NUMBER *)image + cell_at(c, h, w);
            for (int64_t i = 0; i < c->n; i++) {
                NUMBER x = cell[i], m = best[i];
                bool larger = (x > m) | ((x != x) & (m == m));
                best[i] = larger ? x : m;
                index[i] = larger ? number : index[i];
            }
        }
}

static void TYPED(pool_scatter)(const cells *c, void *image, const void *pooled,
                                const int32_t *index)
{
    const NUMBER *value = pooled;
    int32_t number = 0;
    for (int64_t h = c->rows[0]; h < c->rows[1]; h += c->steps[0])
        for (int64_t w = c->columns[0]; w < c->columns[1]; w += c->steps[1], number++) {
            NUMBER *cell = (NUMBER *)image + cell_at(c, h, w);
            for (int64_t i = 0; i < c->n; i++) cell[i] += index[i] == number ? value[i] : 0;
        }
}

static void TYPED(pool_gather)(const cells *c, const void *image, void *pooled,
                               const int32_t *index)
{
    NUMBER *value = pooled;
    int32_t number = 0;
    for (int64_t h = c->rows[0]; h < c->rows[1]; h += c->steps[0])
        for (int64_t w = c->columns[0]; w < c->columns[1]; w += c->steps[1], number++) {
            const NUMBER *cell = (const NUMBER *)image + cell_at(c, h, w);
            for (int64_t i = 0; i < c->n; i++) value[i] = index[i] == number ? cell[i] : value[i];
        }
}

static void TYPED(pool_sum)(const cells *c, const void *image, void *pooled)
{
    NUMBER *sum = pooled;
    for (int64_t i = 0; i < c->n; i++) sum[i] = 0;
    for (int64_t h = c->rows[0]; h < c->rows[1]; h += c->steps[0])
        for (int64_t w = c->columns[0]; w < c->columns[1]; w += c->steps[1]) {
            const NUMBER *cell = (const NUMBER *)image + cell_at(c, h, w);
            for (int64_t i = 0; i < c->n; i++) sum[i] += cell[i];
        }
}

static void TYPED(pool_add)(const cells *c, void *image, const void *pooled)
{
    const NUMBER *value = pooled;
    for (int64_t h = c->rows[0]; h < c->rows[1]; h += c->steps[0])
        for (int64_t w = c->columns[0]; w < c->columns[1]; w += c->steps[1]) {
            NUMBER *cell = (NUMBER *)image + cell_at(c, h, w);
            for (int64_t i = 0; i < c->n; i++) cell[i] += value[i];
        }
}

static void TYPED(pool_divide)(int64_t n, const void *from, int64_t count, void *to)
{
    const NUMBER *x = from, by = (NUMBER)count;
    NUMBER *y = to;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] / by;
}

#undef TYPE
