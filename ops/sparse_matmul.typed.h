/* Products of sparse matrices, for one float type. */

/* Columns j.. of a row, as many as so many vectors have: rows of b times the values of the entries
 * first..last-1, added in their order. */
VECTOR_INLINE void TYPED(product_chunk)(const sparse_product *s, int vectors, int64_t first,
                                        int64_t last, NUMBER *to, int64_t j)
{
    const NUMBER *values = s->values, *b = (const NUMBER *)s->b + j;
    VECTOR sum[SPARSE_VECTORS] = {0};
    for (int64_t e = first; e < last; e++) {
        const NUMBER *from = b + s->sources[2 * e] * s->width;
        const VECTOR value = TYPED(vset)(values[e]);
        if (!j && e + SPARSE_AHEAD < s->n) {
            const NUMBER *soon = b + s->sources[2 * (e + SPARSE_AHEAD)] * s->width;
            for (int k = 0; k < vectors * VECTOR_BYTES; k += 64)
                __builtin_prefetch((const char *)soon + k);
        }
        for (int k = 0; k < vectors; k++)
            sum[k] = vfma(value, vload(from + k * VECTOR_LANES), sum[k]);
    }
    for (int k = 0; k < vectors; k++) vstore(to + j + k * VECTOR_LANES, sum[k]);
}

/* The last columns, fewer than in a vector. */
VECTOR_INLINE void TYPED(product_rest)(const sparse_product *s, int64_t first, int64_t last,
                                       NUMBER *to, int64_t j)
{
    const NUMBER *values = s->values, *b = (const NUMBER *)s->b + j;
    const int64_t left = s->width - j;
    VECTOR sum = {0};
    for (int64_t e = first; e < last; e++)
        sum = vfma(TYPED(vset)(values[e]), vload_part(b + s->sources[2 * e] * s->width, left), sum);
    vstore_part(to + j, sum, left);
}

VECTOR_INLINE void TYPED(product_row)(const sparse_product *s, int64_t first, int64_t last,
                                      NUMBER *to)
{
    enum { LANES = VECTOR_LANES };
    const int64_t width = s->width;
    int64_t j = 0;
    for (; width - j >= 8 * LANES; j += 8 * LANES) TYPED(product_chunk)(s, 8, first, last, to, j);
    if (width - j >= 4 * LANES) TYPED(product_chunk)(s, 4, first, last, to, j), j += 4 * LANES;
    if (width - j >= 2 * LANES) TYPED(product_chunk)(s, 2, first, last, to, j), j += 2 * LANES;
    if (width - j >= LANES) TYPED(product_chunk)(s, 1, first, last, to, j), j += LANES;
    if (width > j) TYPED(product_rest)(s, first, last, to, j);
}

/* Entries first..last-1, the whole of some rows, which ascend; rows without entries between the row
 * `next` and them are 0. */
static void TYPED(product_rows)(const sparse_product *s, int64_t first, int64_t last, int64_t next)
{
    const NUMBER *values = s->values, *b = s->b;
    NUMBER *y = s->y;
    for (int64_t e = first; e < last;) {
        const int64_t row = s->targets[2 * e], begin = e;
        NUMBER sum = 0;
        for (; next < row; next++)
            for (int64_t j = 0; j < s->width; j++) y[next * s->width + j] = 0;
        if (s->width == 1) {
            do sum += values[e] * b[s->sources[2 * e]];
            while (++e < last && s->targets[2 * e] == row);
            y[row] = sum;
        } else {
            while (++e < last && s->targets[2 * e] == row)
                ;
            TYPED(product_row)(s, begin, e, y + row * s->width);
        }
        next = row + 1;
    }
}

/* Columns first..last-1 of all entries, whose rows are in any order, added to y. */
static void TYPED(product_columns)(const sparse_product *s, int64_t first, int64_t last)
{
    enum { LANES = VECTOR_LANES };
    const NUMBER *values = s->values, *b = s->b;
    for (int64_t e = 0; e < s->n; e++) {
        NUMBER *to = (NUMBER *)s->y + s->targets[2 * e] * s->width;
        const NUMBER *from = b + s->sources[2 * e] * s->width;
        if (s->width == 1) {
            *to += values[e] * *from;
            continue;
        }
        if (e + SPARSE_AHEAD < s->n) {
            const int64_t soon = 2 * (e + SPARSE_AHEAD);
            __builtin_prefetch((NUMBER *)s->y + s->targets[soon] * s->width + first, 1);
            __builtin_prefetch(b + s->sources[soon] * s->width + first);
        }
        const VECTOR value = TYPED(vset)(values[e]);
        int64_t j = first;
        for (; j + LANES <= last; j += LANES)
            vstore(to + j, vfma(value, vload(from + j), vload(to + j)));
        if (j < last)
            vstore_part(to + j,
                        vfma(value, vload_part(from + j, last - j), vload_part(to + j, last - j)),
                        last - j);
    }
}

/* Values first..last-1: products of rows of a and b at the indices, [n, 2]. */
static void TYPED(sampled_entries)(const sparse_sampled *s, int64_t first, int64_t last)
{
    const int64_t width = s->width;
    for (int64_t e = first; e < last; e++) {
        const NUMBER *a = (const NUMBER *)s->a + s->indices[2 * e] * width;
        const NUMBER *b = (const NUMBER *)s->b + s->indices[2 * e + 1] * width;
        VECTOR sums = {0};
        int64_t j = 0;
        for (; j + VECTOR_LANES <= width; j += VECTOR_LANES)
            sums = vfma(vload(a + j), vload(b + j), sums);
        if (j < width)
            sums = vfma(vload_part(a + j, width - j), vload_part(b + j, width - j), sums);
        NUMBER sum = 0;
        for (int k = 0; k < VECTOR_LANES; k++) sum += sums[k];
        ((NUMBER *)s->y)[e] = sum;
    }
}

#undef TYPE
