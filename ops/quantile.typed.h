/* The k-th smallest element, for one type. */

#define BEFORE(i, j) (x[i] < x[j] || (x[i] == x[j] && (i) < (j)))

/* Arranges the indices so that number k is where it were if they were sorted, smaller ones before
 * it: quickselect with the median of three. */
static void TYPED(quantile_select)(const NUMBER *x, int64_t *at, int64_t n, int64_t k)
{
    for (int64_t low = 0, high = n - 1; low < high;) {
        const int64_t a = at[low], b = at[low + (high - low) / 2], c = at[high];
        const int64_t pivot = BEFORE(a, b) ? (BEFORE(b, c)   ? b
                                              : BEFORE(a, c) ? c
                                                             : a)
                                           : (BEFORE(a, c)   ? a
                                              : BEFORE(b, c) ? c
                                                             : b);
        int64_t i = low, j = high;
        while (i <= j) {
            while (BEFORE(at[i], pivot)) i++;
            while (BEFORE(pivot, at[j])) j--;
            if (i > j) break;
            const int64_t other = at[i];
            at[i++] = at[j];
            at[j--] = other;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

/* Flat indices of the elements of both ranks in the row of n that begins at `first`. */
static void TYPED(quantile_row)(const void *all, int64_t first, int64_t n,
                                const quantile_attrs *attrs, int64_t *at, int64_t *const *to)
{
    const NUMBER *x = (const NUMBER *)all + first;
    for (int64_t i = 0; i < n; i++) {
        at[i] = i;
#if FLOATING
        if (!isnan(x[i])) continue;
        *to[0] = *to[1] = first + i;
        return;
#endif
    }
    TYPED(quantile_select)(x, at, n, attrs->low);
    int64_t next = attrs->low;
    if (attrs->high > next) { /* the smallest behind it */
        next++;
        for (int64_t i = next + 1; i < n; i++)
            if (BEFORE(at[i], at[next])) next = i;
    }
    *to[0] = first + at[attrs->low];
    *to[1] = first + at[next];
}

#undef BEFORE
#undef TYPE
