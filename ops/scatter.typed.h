/* Rows changed at indices, for one type. Integers wrap. */

/* Single elements need no loop of their own. */
#define AT_EACH(changed)                                                                           \
    if (s->width == 1)                                                                             \
        for (int64_t i = 0; i < s->count; i++) {                                                   \
            enum { j = 0 };                                                                        \
            const NUMBER *x = (const NUMBER *)s->from + i * s->step;                               \
            NUMBER *v = (NUMBER *)s->to + s->rows[i];                                              \
            v[j] = (NUMBER)(changed);                                                              \
        }                                                                                          \
    else                                                                                           \
        for (int64_t i = 0; i < s->count; i++) {                                                   \
            const NUMBER *restrict x = (const NUMBER *)s->from + i * s->step;                      \
            NUMBER *restrict v = (NUMBER *)s->to + s->rows[i] * s->width;                          \
            for (int64_t j = first; j < last; j++) v[j] = (NUMBER)(changed);                       \
        }                                                                                          \
    break

/* Columns first..last-1 of all rows. */
static void TYPED(scatter_columns)(const scattering *s, int64_t first, int64_t last)
{
    switch (s->mode) {
    case SCATTER_ADD: AT_EACH(v[j] + x[j]);
    case SCATTER_SUB: AT_EACH(v[j] - x[j]);
    case SCATTER_MUL: AT_EACH(v[j] * x[j]);
    case SCATTER_DIV: AT_EACH(v[j] / x[j]);
    case SCATTER_MAX: AT_EACH(x[j] > v[j] || x[j] != x[j] ? x[j] : v[j]);
    case SCATTER_MIN: AT_EACH(x[j] < v[j] || x[j] != x[j] ? x[j] : v[j]);
    default: AT_EACH(x[j]);
    }
}

#undef AT_EACH

/* Takes the single elements whose rows are in first..last-1, and these rows; returns how many. */
static inline int64_t TYPED(scatter_take)(const scattering *s, int64_t first, int64_t last,
                                          int64_t *rows, void *taken)
{
    const NUMBER *x = (const NUMBER *)s->from;
    NUMBER *to = taken;
    int64_t n = 0;
    for (int64_t i = 0; i < s->count; i++) {
        rows[n] = s->rows[i];
        to[n] = x[i * s->step];
        n += s->rows[i] >= first && s->rows[i] < last;
    }
    return n;
}

#undef TYPE
