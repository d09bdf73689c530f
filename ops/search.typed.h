/* Searching in ascending lines, and ranks of targets, for one type. */

/*
 * How many of n ascending elements are less than each x or, from the right, not greater. What is
 * left to search is halved the same way for all, without branches. x is no NaN; those of a line
 * come last, and are neither.
 */
static inline __attribute__((always_inline)) void TYPED(search_lanes)(const NUMBER *line, int64_t n,
                                                                      const NUMBER *x, bool right,
                                                                      int64_t *at)
{
    for (int j = 0; j < SEARCH_LANES; j++) at[j] = 0;
    if (!n) return;
    while (n > 1) {
        const int64_t half = n / 2;
        for (int j = 0; j < SEARCH_LANES; j++) {
            const NUMBER middle = line[at[j] + half - 1];
            at[j] += (right ? middle <= x[j] : middle < x[j]) ? half : 0;
        }
        n -= half;
    }
    for (int j = 0; j < SEARCH_LANES; j++)
        at[j] += right ? line[at[j]] <= x[j] : line[at[j]] < x[j];
}

#if FLOATING
/* The numbers of a line, which are before its NaN. */
static int64_t TYPED(search_nan)(const NUMBER *line, int64_t n)
{
    int64_t first = 0;
    while (first < n) {
        const int64_t middle = first + (n - first) / 2;
        if (line[middle] == line[middle])
            first = middle + 1;
        else
            n = middle;
    }
    return first;
}
#endif

/* Up to SEARCH_LANES values of one line. */
static void TYPED(search_few)(const searching *s, const NUMBER *line, const NUMBER *values,
                              int64_t count, int64_t *y)
{
    NUMBER x[SEARCH_LANES];
    int64_t at[SEARCH_LANES];
    for (int j = 0; j < SEARCH_LANES; j++) x[j] = values[j < count ? j : 0];
    if (s->right)
        TYPED(search_lanes)(line, s->n, x, true, at);
    else
        TYPED(search_lanes)(line, s->n, x, false, at);
    for (int64_t j = 0; j < count; j++) {
        y[j] = at[j];
#if FLOATING
        if (x[j] != x[j]) y[j] = s->right ? s->n : TYPED(search_nan)(line, s->n);
#endif
    }
}

static void TYPED(search_values)(const searching *s, int64_t first, int64_t last)
{
    const NUMBER *lines = (const NUMBER *)s->lines, *values = (const NUMBER *)s->values;
    while (first < last) {
        const int64_t line = first / s->each, end = (line + 1) * s->each,
                      left = (end < last ? end : last) - first,
                      count = left < SEARCH_LANES ? left : SEARCH_LANES;
        TYPED(search_few)(s, lines + line * s->n, values + first, count, s->y + first);
        first += count;
    }
}

#if FLOATING
/* Whether fewer than k elements of a line are greater than that of the target, and all finite. */
static bool TYPED(in_top)(const void *line, int64_t n, int64_t target, int64_t k)
{
    enum { AT_A_TIME = 64 };
    const NUMBER *x = line, limit = x[target];
    int64_t greater = 0;
    bool finite = true;
    for (int64_t i = 0; i < n && greater < k && finite;) {
        int some = 0, odd = 0;
        const int64_t end = n - i < AT_A_TIME ? n : i + AT_A_TIME;
        for (; i < end; i++) {
            some += x[i] > limit;
            odd |= x[i] - x[i] != 0; /* infinities and NaN */
        }
        greater += some;
        finite = !odd;
    }
    return finite && greater < k;
}
#endif

#undef TYPE
