/* The loops of pooling, for one float type. */

/* The largest of the cells, NaN if one is; -inf without any. */
VECTOR_INLINE VECTOR TYPED(pool_largest)(const pool_cells *c, const NUMBER *x, int64_t left,
                                         const int64_t step)
{
    VECTOR m = TYPED(vset)(-INFINITY);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++)
            m = vmax(strided_read(x + i * c->row_step + j * c->column_step, left, step), m);
    return m;
}

/* Where a cell is the largest, m, or NaN, and none before it was. */
VECTOR_INLINE MASK TYPED(pool_here)(VECTOR cell, VECTOR m, MASK *found)
{
    const MASK here = ((cell == m) | (cell != cell)) & ~*found;
    *found |= here;
    return here;
}

/* Whether a cell and the next of its row are added to at once: they are neighbours, and so are
 * those of the next window. */
VECTOR_INLINE bool TYPED(pool_pair)(const pool_cells *c, int64_t column, const int64_t step)
{
    return step == 2 && c->column_step == 1 && column + 1 < c->columns;
}

/* Writes a vector of cells that have no other window. */
VECTOR_INLINE void TYPED(pool_write)(const pool_cells *c, NUMBER *to, VECTOR x, int64_t left)
{
    if (c->stream)
        vstream(to, x);
    else
        lanes_put(to, x, left);
}

/* image += pooled at the first of the cells that is the largest; 0 at the others, if tiled. */
VECTOR_INLINE void TYPED(pool_scatter)(const pool_cells *c, const NUMBER *x, NUMBER *image,
                                       const NUMBER *pooled, int64_t left, const int64_t step)
{
    const VECTOR m = TYPED(pool_largest)(c, x, left, step), zero = {0};
    const VECTOR v = lanes_some(pooled, left, 0);
    MASK found = {0};
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const int64_t at = i * c->row_step + j * c->column_step;
            const VECTOR cell = strided_read(x + at, left, step);
            const VECTOR here = vselect(TYPED(pool_here)(cell, m, &found), v, zero);
            if (c->tiled)
                TYPED(pool_write)(c, image + at, here, left);
            else if (TYPED(pool_pair)(c, j, step)) {
                const VECTOR other = strided_read(x + at + 1, left, step);
                const VECTOR there = vselect(TYPED(pool_here)(other, m, &found), v, zero);
                strided_add_pairs(image + at, here, there, left);
                j++;
            } else
                strided_add(image + at, here, left, step);
        }
}

/* pooled = image at the first of the cells that is the largest. */
VECTOR_INLINE void TYPED(pool_gather)(const pool_cells *c, const NUMBER *x, const NUMBER *image,
                                      NUMBER *pooled, int64_t left, const int64_t step)
{
    const VECTOR m = TYPED(pool_largest)(c, x, left, step);
    VECTOR v = {0};
    MASK found = {0};
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const int64_t at = i * c->row_step + j * c->column_step;
            const VECTOR cell = strided_read(x + at, left, step);
            v = vselect(TYPED(pool_here)(cell, m, &found), strided_read(image + at, left, step), v);
        }
    lanes_put(pooled, v, left);
}

/* x / count; by a power of two multiplication is as exact, and faster. */
VECTOR_INLINE VECTOR TYPED(pool_over)(VECTOR x, int64_t count)
{
    const NUMBER n = count ? (NUMBER)count : 1;
    return count & (count - 1) ? x / n : x * (1 / n);
}

VECTOR_INLINE void TYPED(pool_mean)(const pool_cells *c, const NUMBER *x, NUMBER *pooled,
                                    int64_t left, const int64_t step)
{
    VECTOR sum = {0};
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++)
            sum += strided_read(x + i * c->row_step + j * c->column_step, left, step);
    lanes_put(pooled, TYPED(pool_over)(sum, c->rows * c->columns), left);
}

VECTOR_INLINE void TYPED(pool_mean_scatter)(const pool_cells *c, NUMBER *image,
                                            const NUMBER *pooled, int64_t left, const int64_t step)
{
    const VECTOR share = TYPED(pool_over)(lanes_some(pooled, left, 0), c->rows * c->columns);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            NUMBER *to = image + i * c->row_step + j * c->column_step;
            if (c->tiled)
                TYPED(pool_write)(c, to, share, left);
            else if (TYPED(pool_pair)(c, j, step)) {
                strided_add_pairs(to, share, share, left);
                j++;
            } else
                strided_add(to, share, left, step);
        }
}

/* A vector of lanes, or the first `left` of it. */
VECTOR_INLINE void TYPED(pool_vector)(const pool_kind kind, const pool_cells *c, const NUMBER *x,
                                      NUMBER *image, NUMBER *pooled, int64_t left,
                                      const int64_t step)
{
    if (kind == POOL_MAX)
        lanes_put(pooled, TYPED(pool_largest)(c, x, left, step), left);
    else if (kind == POOL_MEAN)
        TYPED(pool_mean)(c, x, pooled, left, step);
    else if (kind == POOL_MEAN_SCATTER)
        TYPED(pool_mean_scatter)(c, image, pooled, left, step);
    else if (kind == POOL_MAX_SCATTER)
        TYPED(pool_scatter)(c, x, image, pooled, left, step);
    else
        TYPED(pool_gather)(c, x, image, pooled, left, step);
}

/* n lanes of cells whose number is a constant, if it is to be fast. */
VECTOR_INLINE void TYPED(pool_some)(const pool_kind kind, const pool_cells c, const NUMBER *x,
                                    NUMBER *image, NUMBER *pooled, int64_t n, const int64_t step)
{
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) TYPED(pool_vector)
    (kind, &c, x + i * step, image + i * step, pooled + i, VECTOR_LANES, step);
    if (i < n)
        TYPED(pool_vector)(kind, &c, x + i * step, image + i * step, pooled + i, n - i, step);
}

/* n lanes. Windows of 2 x 2, which most are, have code of their own. */
VECTOR_INLINE void TYPED(pool_lanes)(const pool_kind kind, const pool_cells *c, const NUMBER *x,
                                     NUMBER *image, NUMBER *pooled, int64_t n, const int64_t step)
{
    pool_cells two = *c;
    two.rows = two.columns = 2;
    if (c->rows == 2 && c->columns == 2)
        TYPED(pool_some)(kind, two, x, image, pooled, n, step);
    else
        TYPED(pool_some)(kind, *c, x, image, pooled, n, step);
}

/* The cells of a row some windows further on: the machine itself stops at the end of a page. */
VECTOR_INLINE void TYPED(pool_prefetch)(const pool_cells *c, const NUMBER *x)
{
    const int64_t bytes = c->columns * c->column_step * (int64_t)sizeof(NUMBER);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)(x + i * c->row_step) + POOL_AHEAD + at);
}

/* All channels of the row's window `ow`. */
VECTOR_INLINE void TYPED(pool_window)(const pool_kind kind, const pool_row *r, pool_cells *c,
                                      int64_t ow)
{
    const window *w = r->w;
    int64_t begin, end;
    window_clip(w, 1, ow, &begin, &end);
    c->columns = pool_steps(begin, end, w->dilation[1]);
    const int64_t at = r->first + (c->columns ? begin * w->channels : 0);
    if (r->ahead) TYPED(pool_prefetch)(c, (const NUMBER *)r->x + at);
    TYPED(pool_lanes)
    (kind, c, (const NUMBER *)r->x + at, (NUMBER *)r->image + at,
     (NUMBER *)r->pooled + ow * w->channels, r->channels, 1);
}

/* Windows [from, to) of the row, all within the image's width, of one channel. */
VECTOR_INLINE void TYPED(pool_inner)(const pool_kind kind, const pool_row *r, pool_cells *c,
                                     int64_t from, int64_t to)
{
    const window *w = r->w;
    const int64_t stride = w->stride[1], at = r->first + from * stride - w->before[1];
    const NUMBER *x = (const NUMBER *)r->x + at;
    NUMBER *image = (NUMBER *)r->image + at, *pooled = (NUMBER *)r->pooled + from;
    c->columns = w->extent[1];
    if (stride == 1)
        TYPED(pool_lanes)(kind, c, x, image, pooled, to - from, 1);
    else if (stride == 2)
        TYPED(pool_lanes)(kind, c, x, image, pooled, to - from, 2);
    else
        TYPED(pool_lanes)(kind, c, x, image, pooled, to - from, stride);
}

VECTOR_INLINE void TYPED(pool_rows)(const pool_kind kind, const pool_row *r)
{
    const window *w = r->w;
    pool_cells c = {.rows = r->rows,
                    .row_step = w->dilation[0] * w->image[1] * w->channels,
                    .column_step = w->dilation[1] * w->channels,
                    .tiled = r->tiled,
                    .stream = r->stream};
    int64_t ow = 0, inner = 0;
    if (w->channels == 1) {
        for (; ow < r->inner[0]; ow++) TYPED(pool_window)(kind, r, &c, ow);
        inner = r->inner[1] - ow;
        if (inner > 0) TYPED(pool_inner)(kind, r, &c, ow, r->inner[1]);
    }
    for (ow += inner; ow < w->out[1]; ow++) TYPED(pool_window)(kind, r, &c, ow);
    if (r->stream) vstream_end();
}

static void TYPED(pool_max)(const pool_row *r)
{
    TYPED(pool_rows)(POOL_MAX, r);
}

static void TYPED(pool_max_scatter)(const pool_row *r)
{
    TYPED(pool_rows)(POOL_MAX_SCATTER, r);
}

static void TYPED(pool_max_gather)(const pool_row *r)
{
    TYPED(pool_rows)(POOL_MAX_GATHER, r);
}

static void TYPED(pool_means)(const pool_row *r)
{
    TYPED(pool_rows)(POOL_MEAN, r);
}

static void TYPED(pool_means_scatter)(const pool_row *r)
{
    TYPED(pool_rows)(POOL_MEAN_SCATTER, r);
}

#undef TYPE
