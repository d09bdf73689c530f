/* The loops of reductions for one float type. A state's halves are called first and second. */

/* ---- Folds of one number: sum, product, maximum, minimum ------------------------------------- */

/* States of `rows` groups, `half` groups from each other: the first's at `state`. */
VECTOR_INLINE void TYPED(fold_some)(lanes_fold fold, lanes_map map, const int rows, const NUMBER *x,
                                    int64_t apart, int64_t half, int64_t n, NUMBER *state)
{
    const NUMBER *const from[LANES_ABREAST] = {x, x + half * apart}, zero[LANES_ABREAST] = {0};
    NUMBER to[LANES_ABREAST];
    lanes_abreast(fold, map, rows, from, n, zero, NULL, to);
    for (int r = 0; r < rows; r++) state[r * half] = to[r];
}

VECTOR_INLINE void TYPED(fold_groups)(lanes_fold fold, lanes_map map, const NUMBER *x,
                                      int64_t apart, int64_t groups, int64_t n, int64_t ahead,
                                      NUMBER *state)
{
    const int64_t half = ABREAST == 2 ? groups / 2 : 0;
    for (int64_t i = 0; i < half; i++)
        TYPED(fold_some)(fold, map, 2, x + i * apart, apart, half, n, state + i);
    for (int64_t i = 2 * half; i < groups; i++) {
        if (ABREAST == 1) prefetch_ahead(x + i * apart, ahead, n * (int64_t)sizeof *x);
        TYPED(fold_some)(fold, map, 1, x + i * apart, apart, 0, n, state + i);
    }
}

VECTOR_INLINE void TYPED(fold_rows)(lanes_fold fold, const void *const *rows, int64_t n,
                                    int64_t width, NUMBER *state, NUMBER *scratch)
{
    lanes_rows(fold, LANES_ITSELF, (const NUMBER *const *)rows, n, width, NULL, scratch, state);
}

VECTOR_INLINE void TYPED(fold_merge)(lanes_fold fold, NUMBER *to, const NUMBER *from, int64_t width)
{
    for (int64_t c = 0; c < reduce_step(width); c += VECTOR_LANES)
        vstore(to + c, lanes_two(fold, vload(to + c), vload(from + c)));
}

#define FOLD sum
#include "ops/reduce_fold.typed.h"
#define FOLD prod
#include "ops/reduce_fold.typed.h"
#define FOLD max
#include "ops/reduce_fold.typed.h"
#define FOLD min
#include "ops/reduce_fold.typed.h"

/* ---- Sum of squares -------------------------------------------------------------------------- */

static void TYPED(reduce_squares_groups)(const void *x, int64_t apart, int64_t groups, int64_t n,
                                         int64_t ahead, void *state)
{
    TYPED(fold_groups)(LANES_SUM, LANES_SQUARED, x, apart, groups, n, ahead, state);
}

static void TYPED(reduce_squares_rows)(const void *const *rows, int64_t n, int64_t width,
                                       void *state, void *scratch)
{
    NUMBER *acc = scratch, *zero = acc + LANES_ALL * reduce_step(width);
    memset(zero, 0, (size_t)reduce_step(width) * sizeof *zero);
    lanes_rows(LANES_SUM, LANES_SQUARED, (const NUMBER *const *)rows, n, width, zero, acc, state);
}

static void TYPED(reduce_squares_merge)(void *a, const void *b, int64_t width, int64_t n_a,
                                        int64_t n_b)
{
    (void)n_a, (void)n_b;
    TYPED(fold_merge)(LANES_SUM, a, b, width);
}

/* ---- Variance -------------------------------------------------------------------------------- */

/*
 * In one pass over memory: a block, which the cache holds, gives its mean and the sum of its
 * squared deviations. Two of n_a and n_b elements, whose means are d apart:
 * deviations a + b + d^2 n_a n_b / (n_a + n_b).
 */
static void TYPED(reduce_variance_groups)(const void *x, int64_t apart, int64_t width, int64_t n,
                                          int64_t ahead, void *state)
{
    NUMBER *first = state, *second = first + reduce_step(width);
    for (int64_t i = 0; i < width; i++) {
        const NUMBER *from = (const NUMBER *)x + i * apart;
        prefetch_ahead(from, ahead, n * (int64_t)sizeof *from);
        first[i] = lanes_row(LANES_SUM, LANES_ITSELF, from, n, 0) / (NUMBER)n;
        second[i] = lanes_row(LANES_SUM, LANES_SQUARED, from, n, first[i]);
    }
}

static void TYPED(reduce_variance_rows)(const void *const *rows, int64_t n, int64_t width,
                                        void *state, void *scratch)
{
    NUMBER *first = state, *second = first + reduce_step(width), *acc = scratch;
    const NUMBER *const *at = (const NUMBER *const *)rows;
    lanes_rows(LANES_SUM, LANES_ITSELF, at, n, width, NULL, acc, first);
    for (int64_t c = 0; c < reduce_step(width); c++) first[c] /= (NUMBER)n;
    lanes_rows(LANES_SUM, LANES_SQUARED, at, n, width, first, acc, second);
}

static void TYPED(reduce_variance_merge)(void *a, const void *b, int64_t width, int64_t n_a,
                                         int64_t n_b)
{
    NUMBER *first = a, *second = first + reduce_step(width);
    const NUMBER *first_b = b, *second_b = first_b + reduce_step(width);
    const NUMBER n = (NUMBER)n_a + (NUMBER)n_b, part = (NUMBER)n_b / n;
    for (int64_t c = 0; c < width; c++) {
        const NUMBER d = first_b[c] - first[c];
        first[c] += d * part;
        second[c] = (second[c] + second_b[c]) + d * d * part * (NUMBER)n_a;
    }
}

/* ---- Log of the sum of exponentials ---------------------------------------------------------- */

/* A block's maximum m and sum of e^(x - m); for m that is no number the exponents are taken as they
 * are. */
static NUMBER TYPED(reduce_finite)(NUMBER x)
{
    return isfinite(x) ? x : 0;
}

static void TYPED(reduce_logsumexp_groups)(const void *x, int64_t apart, int64_t width, int64_t n,
                                           int64_t ahead, void *state)
{
    NUMBER *first = state, *second = first + reduce_step(width);
    for (int64_t i = 0; i < width; i++) {
        const NUMBER *from = (const NUMBER *)x + i * apart;
        const NUMBER *next = ahead ? from + ahead / (int64_t)sizeof *from : NULL;
        first[i] = lanes_row(LANES_MAX, LANES_ITSELF, from, n, 0);
        second[i] =
            lanes_row_and(LANES_SUM, LANES_EXP, from, n, TYPED(reduce_finite)(first[i]), next);
    }
}

static void TYPED(reduce_logsumexp_rows)(const void *const *rows, int64_t n, int64_t width,
                                         void *state, void *scratch)
{
    NUMBER *first = state, *second = first + reduce_step(width);
    NUMBER *acc = scratch, *m = acc + LANES_ALL * reduce_step(width);
    const NUMBER *const *at = (const NUMBER *const *)rows;
    lanes_rows(LANES_MAX, LANES_ITSELF, at, n, width, NULL, acc, first);
    for (int64_t c = 0; c < reduce_step(width); c++) m[c] = TYPED(reduce_finite)(first[c]);
    lanes_rows(LANES_SUM, LANES_EXP, at, n, width, m, acc, second);
}

static void TYPED(reduce_logsumexp_merge)(void *a, const void *b, int64_t width, int64_t n_a,
                                          int64_t n_b)
{
    (void)n_a, (void)n_b;
    NUMBER *first = a, *second = first + reduce_step(width);
    const NUMBER *first_b = b, *second_b = first_b + reduce_step(width);
    for (int64_t c = 0; c < width; c++) {
        const NUMBER x = first[c], y = first_b[c];
        const NUMBER m = x > y || x != x ? x : y;
        second[c] = (x == m ? second[c] : second[c] * TYPED(number_exp)(x - m)) +
                    (y == m ? second_b[c] : second_b[c] * TYPED(number_exp)(y - m));
        first[c] = m;
    }
}

/* ---- What a state comes to ------------------------------------------------------------------- */

/* Of output c, for which n elements were folded; `kind` is a constant. */
VECTOR_INLINE NUMBER TYPED(reduce_result)(reduce_kind kind, const NUMBER *first,
                                          const NUMBER *second, int64_t c, NUMBER n)
{
    switch (kind) {
    case REDUCE_MEAN: return first[c] / n;
    case REDUCE_VARIANCE: return second[c] / n;
    case REDUCE_STD: return TYPED(number_sqrt)(second[c] / n);
    case REDUCE_EUCLIDEAN: return TYPED(number_sqrt)(first[c]);
    case REDUCE_LOGSUMEXP: return TYPED(number_log)(second[c]) + TYPED(reduce_finite)(first[c]);
    default: return first[c];
    }
}

VECTOR_INLINE void TYPED(reduce_results)(reduce_kind kind, const NUMBER *first, int64_t width,
                                         int64_t count, NUMBER *y, NUMBER *mean, int64_t apart)
{
    const NUMBER *second = first + reduce_step(width), n = (NUMBER)count;
    for (int64_t c = 0; c < width; c++) {
        y[c * apart] = TYPED(reduce_result)(kind, first, second, c, n);
        if (mean) mean[c * apart] = first[c];
    }
}

REDUCE_FINISH(sum, REDUCE_SUM)
REDUCE_FINISH(mean, REDUCE_MEAN)
REDUCE_FINISH(variance, REDUCE_VARIANCE)
REDUCE_FINISH(std, REDUCE_STD)
REDUCE_FINISH(euclidean, REDUCE_EUCLIDEAN)
REDUCE_FINISH(logsumexp, REDUCE_LOGSUMEXP)

/* ---- The best of all ------------------------------------------------------------------------- */

#include "ops/reduce_best.typed.h"

static int64_t TYPED(best_find)(const void *x, int64_t n, const void *value)
{
    const NUMBER *from = x;
    const VECTOR wanted = TYPED(vset)(*(const NUMBER *)value);
    for (int64_t i = 0; i < n; i += VECTOR_LANES) {
        const int first = vfirst_equal(lanes_some(from + i, n - i, (NUMBER)NAN), wanted);
        if (first < VECTOR_LANES) return i + first;
    }
    return -1;
}

VECTOR_INLINE VECTOR TYPED(best_two)(VECTOR a, VECTOR b, const bool smallest)
{
    return smallest ? vlesser(a, b) : vgreater(a, b);
}

/* The best lane, in every lane. */
VECTOR_INLINE VECTOR TYPED(best_across)(VECTOR v, const bool smallest)
{
    if (VECTOR_LANES > 8) v = TYPED(best_two)(v, TYPED(LANES_ROTATE_8)(v), smallest);
    if (VECTOR_LANES > 4) v = TYPED(best_two)(v, TYPED(LANES_ROTATE_4)(v), smallest);
    if (VECTOR_LANES > 2) v = TYPED(best_two)(v, TYPED(LANES_ROTATE_2)(v), smallest);
    return TYPED(best_two)(v, TYPED(LANES_ROTATE_1)(v), smallest);
}

/* A NaN beats nothing and is beaten by all else. What doesn't fit a vector is in four chains, two
 * of them from the middle on where reading abreast helps. */
VECTOR_INLINE NUMBER TYPED(best_of)(const NUMBER *x, int64_t n, const bool smallest)
{
    const NUMBER worst = smallest ? (NUMBER)INFINITY : (NUMBER)-INFINITY;
    VECTOR best[4];
    for (int k = 0; k < 4; k++) best[k] = TYPED(vset)(worst);
    if (n <= VECTOR_LANES)
        return TYPED(best_across)(TYPED(best_two)(lanes_some(x, n, worst), best[0], smallest),
                                  smallest)[0];
    const int64_t whole = n / (4 * VECTOR_LANES) * (4 * VECTOR_LANES), some = whole / ABREAST;
    const int64_t apart = ABREAST == 2 ? some : 2 * VECTOR_LANES;
    for (int64_t i = 0; i < some; i += 4 / ABREAST * VECTOR_LANES)
        for (int k = 0; k < 4; k++) {
            const NUMBER *from = x + i + k / 2 * apart + k % 2 * VECTOR_LANES;
            best[k] = TYPED(best_two)(vload(from), best[k], smallest);
        }
    for (int64_t i = whole, k = 0; i < n; i += VECTOR_LANES, k++)
        best[k] = TYPED(best_two)(lanes_some(x + i, n - i, worst), best[k], smallest);
    for (int k = 1; k < 4; k++) best[0] = TYPED(best_two)(best[k], best[0], smallest);
    return TYPED(best_across)(best[0], smallest)[0];
}

/* Of a vector and more, up to BEST_SHORT elements; the last vector overlaps the one before. That
 * no branch depends on the elements is what makes it fast. */
VECTOR_INLINE int64_t TYPED(best_short)(const NUMBER *x, int64_t n, const bool smallest,
                                        NUMBER *value)
{
    const int64_t last = n - VECTOR_LANES;
    VECTOR best = TYPED(vset)(smallest ? (NUMBER)INFINITY : (NUMBER)-INFINITY);
    for (int64_t i = 0; i < last; i += VECTOR_LANES)
        best = TYPED(best_two)(vload(x + i), best, smallest);
    best = TYPED(best_across)(TYPED(best_two)(vload(x + last), best, smallest), smallest);
    uint64_t bits = (uint64_t)vequal_bits(vload(x + last), best) << last;
    for (int64_t i = 0; i < last; i += VECTOR_LANES)
        bits |= (uint64_t)vequal_bits(vload(x + i), best) << i;
    *value = best[0];
    return bits ? __builtin_ctzll(bits) : -1;
}

/* The worst there is may stand for "all NaN"; behind the elements of a short row it does. */
VECTOR_INLINE void TYPED(best_row)(const NUMBER *x, int64_t n, const bool smallest, NUMBER *value,
                                   int64_t *index)
{
    int64_t at;
    if (n < VECTOR_LANES) {
        const NUMBER worst = smallest ? (NUMBER)INFINITY : (NUMBER)-INFINITY;
        const VECTOR all = lanes_some(x, n, worst), least = TYPED(vset)(worst);
        const VECTOR y = TYPED(best_across)(TYPED(best_two)(all, least, smallest), smallest);
        *value = y[0];
        at = vfirst_equal(all, y);
        if (at >= n) at = -1;
    } else if (n <= BEST_SHORT) {
        at = TYPED(best_short)(x, n, smallest, value);
    } else {
        *value = TYPED(best_of)(x, n, smallest);
        at = TYPED(best_find)(x, n, value);
    }
    if (at < 0) *value = NAN;
    *index = at < 0 ? 0 : at;
}

static void TYPED(best_groups)(const void *x, int64_t apart, int64_t groups, int64_t n,
                               bool smallest, void *values, int64_t *indices)
{
    TYPED(best_each)(x, apart, groups, n, smallest, values, indices, TYPED(best_row));
}

static void TYPED(best_value)(const void *x, int64_t n, bool smallest, void *value)
{
    NUMBER *y = value;
    *y = smallest ? TYPED(best_of)(x, n, true) : TYPED(best_of)(x, n, false);
    if (isinf(*y) && TYPED(best_find)(x, n, y) < 0) *y = NAN;
}

/*
 * Side by side: eight rows at a time against the best so far, which starts as NaN. Indices are the
 * numbers' width and count from the block's first row; -1 where nothing in it is better.
 */
VECTOR_INLINE void TYPED(best_block)(const NUMBER *const *rows, int64_t n, int64_t width,
                                     const bool smallest, NUMBER *values, INTEGER *at)
{
    for (int64_t first = 0; first < n; first += 8)
        for (int64_t c = 0; c < width; c += VECTOR_LANES) {
            const int64_t left = width - c;
            VECTOR best = lanes_some(values + c, left, 0);
            MASK where;
            memcpy(&where, at + c, sizeof where);
            for (int64_t r = first; r < n && r < first + 8; r++) {
                const VECTOR x = lanes_some(rows[r] + c, left, 0);
                const MASK better = BETTER(x, best) | (best != best);
                best = vselect(better, x, best);
                where = (better & (INTEGER)r) | (~better & where);
            }
            lanes_put(values + c, best, left);
            memcpy(at + c, &where, sizeof where);
        }
}

static void TYPED(best_rows)(const void *const *rows, int64_t n, int64_t width, int64_t first,
                             bool smallest, void *values, int64_t *indices)
{
    INTEGER at[REDUCE_WIDTH_BYTES / sizeof(NUMBER)] __attribute__((aligned(64)));
    const NUMBER *const *from = (const NUMBER *const *)rows;
    NUMBER *best = values;
    memset(at, -1, sizeof at);
    for (int64_t c = 0; first == 0 && c < width; c++) best[c] = NAN, indices[c] = 0;
    if (smallest)
        TYPED(best_block)(from, n, width, true, best, at);
    else
        TYPED(best_block)(from, n, width, false, best, at);
    for (int64_t c = 0; c < width; c++) indices[c] = at[c] < 0 ? indices[c] : first + at[c];
}

#undef TYPE
