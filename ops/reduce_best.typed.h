/* What finding the best has in common for floats and integers, for one type. */

static int64_t TYPED(best_find)(const void *x, int64_t n, const void *value)
{
    const NUMBER *from = x, wanted = *(const NUMBER *)value;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) { /* sixteen at a time until one of them is it */
        int found = 0;
        for (int k = 0; k < 16; k++) found |= from[i + k] == wanted;
        if (found) break;
    }
    for (; i < n; i++)
        if (from[i] == wanted) return i;
    return -1;
}

static bool TYPED(best_beats)(const void *a, const void *b, bool smallest)
{
    const NUMBER x = *(const NUMBER *)a, y = *(const NUMBER *)b;
#if FLOATING
    if (y != y) return x == x;
#endif
    return BETTER(x, y);
}

/* Index 0 where the best is NaN. */
static void TYPED(best_finish)(const void *values, int64_t width, int64_t *indices)
{
#if FLOATING
    const NUMBER *v = values;
    for (int64_t c = 0; c < width; c++) indices[c] = v[c] == v[c] ? indices[c] : 0;
#else
    (void)values, (void)width, (void)indices;
#endif
}
