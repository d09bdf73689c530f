/* Elements at indices along an axis, for one size of element. */

/* n elements of a line at `from`, those at `some` indices, the line's from number j on, to number
 * `at` of the result. What is taken lies anywhere, and is fetched before it is needed where that
 * gains: where most of the next line's lines of the cache will be, all of them in their order, as
 * memory likes to be read; else element by element. */
static void TYPED(along_take)(const along *a, int64_t line, const int64_t *restrict some, int64_t j,
                              int64_t n, int64_t at)
{
    const NUMBER *restrict from = (const NUMBER *)a->from + line;
    NUMBER *restrict to = (NUMBER *)a->to + at;
    int64_t i = 0;
    if (a->dense) {
        const char *next_line = (const char *)(from + a->extent) + j * a->dense * ALONG_LINE;
        for (; i < n; i++) {
            for (int64_t k = 0; k < a->dense; k++)
                __builtin_prefetch(next_line + (i * a->dense + k) * ALONG_LINE);
            to[i] = from[some[i]];
        }
    } else if (a->ahead) {
        for (; i < n - a->ahead; i++) {
            __builtin_prefetch(from + some[i + a->ahead]);
            to[i] = from[some[i]];
        }
    }
    for (; i < n; i++) to[i] = from[some[i]];
}

/* Line `line` of the result: to[j] = from[... index ...]. */
static void TYPED(along_take_line)(const along *a, int64_t line)
{
    int64_t at[3];
    along_line(a, line, at);
    if (take_is_plain(a)) {
        TYPED(along_take)(a, at[0], a->indices + at[1], 0, a->n, line * a->n);
        return;
    }
    const NUMBER *from = (const NUMBER *)a->from + at[0];
    const int64_t *indices = a->indices + at[1];
    NUMBER *to = (NUMBER *)a->to + line * a->n;
    for (int64_t j = 0; j < a->n; j++)
        to[j] = from[j * a->move[0] + indices[j * a->move[1]] * a->step];
}

/* Line `line` of the indices: to[... index ...] = from[j]. */
static void TYPED(along_put)(const along *a, int64_t line)
{
    int64_t at[3];
    along_line(a, line, at);
    NUMBER *to = (NUMBER *)a->to + at[0];
    const int64_t *indices = a->indices + at[1];
    const NUMBER *from = (const NUMBER *)a->from + at[2];
    for (int64_t j = 0; j < a->n; j++)
        to[j * a->move[0] + indices[j * a->move[1]] * a->step] = from[j * a->move[2]];
}

#undef TYPE
