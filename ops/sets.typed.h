/* Sets as ascending lines, NaN last, for one type. */

static inline bool TYPED(set_less)(NUMBER a, NUMBER b)
{
#if FLOATING
    return a < b || (b != b && a == a);
#else
    return a < b;
#endif
}

/* How many elements the result has; writes them to `to` unless that is NULL. */
static int64_t TYPED(set_merge)(set_kind kind, const void *x, int64_t m, const void *y, int64_t n,
                                void *to)
{
    const NUMBER *a = x, *b = y;
    int64_t i = 0, j = 0, count = 0;
    while (i < m || j < n) {
        const bool in_a = i < m && (j == n || !TYPED(set_less)(b[j], a[i]));
        const bool in_b = j < n && (i == m || !TYPED(set_less)(a[i], b[j]));
        const NUMBER value = in_a ? a[i] : b[j];
        while (i < m && !TYPED(set_less)(value, a[i])) i++;
        while (j < n && !TYPED(set_less)(value, b[j])) j++;
        const bool taken = kind == SET_UNION || (in_a && in_b == (kind == SET_INTERSECTION));
        if (taken && to) ((NUMBER *)to)[count] = value;
        count += taken;
    }
    return count;
}

#undef TYPE
