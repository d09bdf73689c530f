/* The loops of reductions for one type of integers (and bool), which wrap around. */

VECTOR_INLINE NUMBER TYPED(fold_identity)(lanes_fold fold)
{
    switch (fold) {
    case LANES_SUM: return 0;
    case LANES_PROD: return 1;
    case LANES_MAX: return NUMBER_MIN;
    default: return NUMBER_MAX;
    }
}

VECTOR_INLINE NUMBER TYPED(fold_two)(lanes_fold fold, NUMBER a, NUMBER b)
{
    switch (fold) {
    case LANES_SUM: return (NUMBER)((UNSIGNED)a + (UNSIGNED)b);
    case LANES_PROD: return (NUMBER)((UNSIGNED)a * (UNSIGNED)b);
    case LANES_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

VECTOR_INLINE void TYPED(fold_groups)(lanes_fold fold, lanes_map map, const NUMBER *x,
                                      int64_t apart, int64_t groups, int64_t n, int64_t ahead,
                                      NUMBER *state)
{
    (void)map; /* integers are folded as they are */
    for (int64_t i = 0; i < groups; i++) {
        const NUMBER *from = x + i * apart;
        prefetch_ahead(from, ahead, n * (int64_t)sizeof *from);
        NUMBER y = TYPED(fold_identity)(fold);
        for (int64_t k = 0; k < n; k++) y = TYPED(fold_two)(fold, y, from[k]);
        state[i] = y;
    }
}

VECTOR_INLINE void TYPED(fold_rows)(lanes_fold fold, const void *const *rows, int64_t n,
                                    int64_t width, void *state, void *scratch)
{
    (void)scratch;
    NUMBER *restrict to = state;
    for (int64_t c = 0; c < width; c++) to[c] = TYPED(fold_identity)(fold);
    for (int64_t r = 0; r < n; r++) {
        const NUMBER *restrict row = rows[r];
        for (int64_t c = 0; c < width; c++) to[c] = TYPED(fold_two)(fold, to[c], row[c]);
    }
}

VECTOR_INLINE void TYPED(fold_merge)(lanes_fold fold, NUMBER *restrict to,
                                     const NUMBER *restrict from, int64_t width)
{
    for (int64_t c = 0; c < width; c++) to[c] = TYPED(fold_two)(fold, to[c], from[c]);
}

#define FOLD sum
#include "ops/reduce_fold.typed.h"
#define FOLD prod
#include "ops/reduce_fold.typed.h"
#define FOLD max
#include "ops/reduce_fold.typed.h"
#define FOLD min
#include "ops/reduce_fold.typed.h"

static void TYPED(reduce_sum_finish)(const void *state, int64_t width, int64_t count, void *y,
                                     void *mean, int64_t apart)
{
    const NUMBER *first = state;
    (void)count, (void)mean;
    for (int64_t c = 0; c < width; c++) ((NUMBER *)y)[c * apart] = first[c];
}

#include "ops/reduce_best.typed.h"

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

VECTOR_INLINE NUMBER TYPED(best_of)(const NUMBER *x, int64_t n, const bool smallest)
{
    NUMBER y = x[0];
    for (int64_t i = 1; i < n; i++) y = BETTER(x[i], y) ? x[i] : y;
    return y;
}

static void TYPED(best_value)(const void *x, int64_t n, bool smallest, void *value)
{
    *(NUMBER *)value = smallest ? TYPED(best_of)(x, n, true) : TYPED(best_of)(x, n, false);
}

VECTOR_INLINE void TYPED(best_row)(const NUMBER *x, int64_t n, const bool smallest, NUMBER *value,
                                   int64_t *index)
{
    *value = TYPED(best_of)(x, n, smallest);
    *index = TYPED(best_find)(x, n, value);
}

static void TYPED(best_groups)(const void *x, int64_t apart, int64_t groups, int64_t n,
                               bool smallest, void *values, int64_t *indices)
{
    TYPED(best_each)(x, apart, groups, n, smallest, values, indices, TYPED(best_row));
}

static void TYPED(best_rows)(const void *const *rows, int64_t n, int64_t width, int64_t first,
                             bool smallest, void *values, int64_t *indices)
{
    NUMBER *restrict best = values;
    if (first == 0) {
        memcpy(best, rows[0], (size_t)width * sizeof *best);
        memset(indices, 0, (size_t)width * sizeof *indices);
    }
    for (int64_t r = 0; r < n; r++) {
        const NUMBER *restrict row = rows[r];
        for (int64_t c = 0; c < width; c++) {
            const bool better = BETTER(row[c], best[c]);
            best[c] = better ? row[c] : best[c];
            indices[c] = better ? first + r : indices[c];
        }
    }
}

#undef TYPE
