/* Sums at indices, for one type. Integers wrap. */

/* Columns first..last-1 of plane k. */
static void TYPED(index_add)(const adding *a, int64_t k, int64_t first, int64_t last)
{
    const NUMBER *from = (const NUMBER *)a->x + k * a->count * a->width;
    NUMBER *to = (NUMBER *)a->y + k * a->extent * a->width;
    const int64_t *indices = a->indices + k / a->shared * a->count;
    for (int64_t i = 0; i < a->count; i++) {
        const NUMBER *restrict row = from + i * a->width;
        NUMBER *restrict sum = to + indices[i] * a->width;
        for (int64_t j = first; j < last; j++) sum[j] = (NUMBER)(sum[j] + row[j]);
    }
}

#undef TYPE
