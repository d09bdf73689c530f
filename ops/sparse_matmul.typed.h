/* Products of sparse matrices, for one float type. */

/* Columns j.. of a row, as many as so many vectors have: rows of b times the values of the entries,
 * added in their order. */
VECTOR_INLINE void TYPED(product_chunk)(const sparse_product *s, int vectors, int64_t row,
                                        int64_t j)
{
    const NUMBER *values = s->values, *b = (const NUMBER *)s->b + j;
    NUMBER *to = (NUMBER *)s->y + row * s->width + j;
    VECTOR sum[SPARSE_VECTORS] = {0};
    for (int64_t e = s->begins[row]; e < s->begins[row + 1]; e++) {
        const NUMBER *from = b + s->sources[e * s->step] * s->width;
        const VECTOR value = TYPED(vset)(values[e]);
        if (!j && e + SPARSE_AHEAD < s->n) {
            const NUMBER *soon = b + s->sources[(e + SPARSE_AHEAD) * s->step] * s->width;
            for (int k = 0; k < vectors * VECTOR_BYTES; k += 64)
                __builtin_prefetch((const char *)soon + k);
        }
        for (int k = 0; k < vectors; k++)
            sum[k] = vfma(value, vload(from + k * VECTOR_LANES), sum[k]);
    }
    for (int k = 0; k < vectors; k++) vstore(to + k * VECTOR_LANES, sum[k]);
}

/* The last columns, fewer than in a vector. */
VECTOR_INLINE void TYPED(product_rest)(const sparse_product *s, int64_t row, int64_t j)
{
    const NUMBER *values = s->values, *b = (const NUMBER *)s->b + j;
    const int64_t left = s->width - j;
    VECTOR sum = {0};
    for (int64_t e = s->begins[row]; e < s->begins[row + 1]; e++)
        sum = vfma(TYPED(vset)(values[e]), vload_part(b + s->sources[e * s->step] * s->width, left),
                   sum);
    vstore_part((NUMBER *)s->y + row * s->width + j, sum, left);
}

/* Rows first..last-1 of a product with one column. */
static void TYPED(product_column)(const sparse_product *s, int64_t first, int64_t last)
{
    const NUMBER *values = s->values, *b = s->b;
    for (int64_t row = first; row < last; row++) {
        NUMBER sum = 0;
        for (int64_t e = s->begins[row]; e < s->begins[row + 1]; e++)
            sum += values[e] * b[s->sources[e * s->step]];
        ((NUMBER *)s->y)[row] = sum;
    }
}

static void TYPED(product_rows)(const sparse_product *s, int64_t first, int64_t last)
{
    enum { LANES = VECTOR_LANES };
    if (s->width == 1) {
        TYPED(product_column)(s, first, last);
        return;
    }
    for (int64_t row = first; row < last; row++) {
        int64_t j = 0;
        for (; s->width - j >= 8 * LANES; j += 8 * LANES) TYPED(product_chunk)(s, 8, row, j);
        if (s->width - j >= 4 * LANES) TYPED(product_chunk)(s, 4, row, j), j += 4 * LANES;
        if (s->width - j >= 2 * LANES) TYPED(product_chunk)(s, 2, row, j), j += 2 * LANES;
        if (s->width - j >= LANES) TYPED(product_chunk)(s, 1, row, j), j += LANES;
        if (s->width > j) TYPED(product_rest)(s, row, j);
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
