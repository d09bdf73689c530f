/* Searching in ascending lines, and ranks of targets, for one type. */

/* The order of sorts: NaN behind all numbers. */
static inline bool TYPED(search_less)(NUMBER a, NUMBER b)
{
#if FLOATING
    return a < b || (b != b && a == a);
#else
    return a < b;
#endif
}

/* How many of n ascending elements are less than x or, from the right, not greater. */
static int64_t TYPED(search_line)(const void *line, int64_t n, NUMBER x, bool right)
{
    const NUMBER *begin = line, *at = begin;
    while (n > 0) {
        const int64_t half = n / 2;
        const bool before =
            right ? !TYPED(search_less)(x, at[half]) : TYPED(search_less)(at[half], x);
        at += before ? half + 1 : 0;
        n = before ? n - half - 1 : half;
    }
    return at - begin;
}

static void TYPED(search_values)(const searching *s, int64_t first, int64_t last)
{
    const NUMBER *lines = (const NUMBER *)s->lines, *values = (const NUMBER *)s->values;
    for (int64_t i = first; i < last; i++)
        s->y[i] = TYPED(search_line)(lines + i / s->each * s->n, s->n, values[i], s->right);
}

#if FLOATING
/* Whether fewer than k elements of a line are greater than that of the target. */
static bool TYPED(in_top)(const void *line, int64_t n, int64_t target, int64_t k)
{
    const NUMBER *x = line;
    int64_t greater = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
        greater += x[i] > x[target];
    }
    return finite && greater < k;
}
#endif

#undef TYPE
