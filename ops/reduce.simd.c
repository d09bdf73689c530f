/*
 * The loops of reductions, compiled once for each instruction set. How they and the driver work
 * together is told in ops/reduce.h; the order in which floats are folded in ops/kernels/lanes.h.
 * Integers wrap around, so that their order is of no account and the compiler's.
 */
#include "ops/reduce.h"
#include <math.h>
#include <string.h>

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/lanes.h"

/* What both halves of a state are called below: `first` and `second` of the state at hand, as the
 * type's numbers. */
#define STATE(number, state) number *first = (state), *second = first + reduce_step(width)
#define UNUSED_STATE         (void)first, (void)second

/* ---- Floats ---------------------------------------------------------------------------------- */

/* Folds of one number: sum, product, largest, smallest. */
#define FOLD_LOOPS(name, fold, bits, number)                                                       \
    static void name##_groups_##bits(const void *x, int64_t apart, int64_t groups, int64_t n,      \
                                     void *state)                                                  \
    {                                                                                              \
        for (int64_t i = 0; i < groups; i++)                                                       \
            ((number *)state)[i] =                                                                 \
                lanes_row_##bits(fold, LANES_ITSELF, (const number *)x + i * apart, n, 0);         \
    }                                                                                              \
    static void name##_rows_##bits(const void *const *rows, int64_t n, int64_t width, void *state) \
    {                                                                                              \
        number acc[LANES_ALL * REDUCE_WIDTH_BYTES / sizeof(number)] __attribute__((aligned(64)));  \
        lanes_rows_##bits(fold, LANES_ITSELF, (const number *const *)rows, n, width, NULL, acc,    \
                          state);                                                                  \
    }                                                                                              \
    static void name##_merge_##bits(void *a, const void *b, int64_t width, int64_t n_a,            \
                                    int64_t n_b)                                                   \
    {                                                                                              \
        (void)n_a, (void)n_b;                                                                      \
        number *to = a;                                                                            \
        const number *from = b;                                                                    \
        for (int64_t c = 0; c < reduce_step(width); c += VECTOR_BYTES / (int)sizeof(number))       \
            vstore(to + c, lanes_two_##bits(fold, vload(to + c), vload(from + c)));                \
    }
FOLD_LOOPS(sum, LANES_SUM, f32, float)
FOLD_LOOPS(sum, LANES_SUM, f64, double)
FOLD_LOOPS(prod, LANES_PROD, f32, float)
FOLD_LOOPS(prod, LANES_PROD, f64, double)
FOLD_LOOPS(max, LANES_MAX, f32, float)
FOLD_LOOPS(max, LANES_MAX, f64, double)
FOLD_LOOPS(min, LANES_MIN, f32, float)
FOLD_LOOPS(min, LANES_MIN, f64, double)

/*
 * Variance in one pass over memory: a block, which the cache holds, gives its mean and the sum of
 * its squared deviations. Two of n_a and n_b elements, whose means are d apart: deviations a + b +
 * d^2 n_a n_b / (n_a + n_b).
 */
#define VARIANCE_LOOPS(bits, number)                                                               \
    static void variance_groups_##bits(const void *x, int64_t apart, int64_t width, int64_t n,     \
                                       void *state)                                                \
    {                                                                                              \
        STATE(number, state);                                                                      \
        for (int64_t i = 0; i < width; i++) {                                                      \
            const number *from = (const number *)x + i * apart;                                    \
            first[i] = lanes_row_##bits(LANES_SUM, LANES_ITSELF, from, n, 0) / (number)n;          \
            second[i] = lanes_row_##bits(LANES_SUM, LANES_SQUARED, from, n, first[i]);             \
        }                                                                                          \
    }                                                                                              \
    static void variance_rows_##bits(const void *const *rows, int64_t n, int64_t width,            \
                                     void *state)                                                  \
    {                                                                                              \
        STATE(number, state);                                                                      \
        number acc[LANES_ALL * REDUCE_WIDTH_BYTES / sizeof(number)] __attribute__((aligned(64)));  \
        const number *const *at = (const number *const *)rows;                                     \
        lanes_rows_##bits(LANES_SUM, LANES_ITSELF, at, n, width, NULL, acc, first);                \
        for (int64_t c = 0; c < reduce_step(width); c++) first[c] /= (number)n;                    \
        lanes_rows_##bits(LANES_SUM, LANES_SQUARED, at, n, width, first, acc, second);             \
    }                                                                                              \
    static void variance_merge_##bits(void *a, const void *b, int64_t width, int64_t n_a,          \
                                      int64_t n_b)                                                 \
    {                                                                                              \
        STATE(number, a);                                                                          \
        const number *first_b = b, *second_b = first_b + reduce_step(width);                       \
        const number n = (number)n_a + (number)n_b, part = (number)n_b / n;                        \
        for (int64_t c = 0; c < width; c++) {                                                      \
            const number d = first_b[c] - first[c];                                                \
            first[c] += d * part;                                                                  \
            second[c] = (second[c] + second_b[c]) + d * d * part * (number)n_a;                    \
        }                                                                                          \
    }
VARIANCE_LOOPS(f32, float)
VARIANCE_LOOPS(f64, double)

/* A block's largest element m and sum of e^(x - m); for m that is no number the exponents are taken
 * as they are. */
#define LOGSUMEXP_LOOPS(bits, number, exp_of)                                                      \
    static number finite_##bits(number x)                                                          \
    {                                                                                              \
        return isfinite(x) ? x : 0;                                                                \
    }                                                                                              \
    static void logsumexp_groups_##bits(const void *x, int64_t apart, int64_t width, int64_t n,    \
                                        void *state)                                               \
    {                                                                                              \
        STATE(number, state);                                                                      \
        for (int64_t i = 0; i < width; i++) {                                                      \
            const number *from = (const number *)x + i * apart;                                    \
            first[i] = lanes_row_##bits(LANES_MAX, LANES_ITSELF, from, n, 0);                      \
            second[i] = lanes_row_##bits(LANES_SUM, LANES_EXP, from, n, finite_##bits(first[i]));  \
        }                                                                                          \
    }                                                                                              \
    static void logsumexp_rows_##bits(const void *const *rows, int64_t n, int64_t width,           \
                                      void *state)                                                 \
    {                                                                                              \
        STATE(number, state);                                                                      \
        number acc[LANES_ALL * REDUCE_WIDTH_BYTES / sizeof(number)] __attribute__((aligned(64)));  \
        number largest[REDUCE_WIDTH_BYTES / sizeof(number)] __attribute__((aligned(64)));          \
        const number *const *at = (const number *const *)rows;                                     \
        lanes_rows_##bits(LANES_MAX, LANES_ITSELF, at, n, width, NULL, acc, first);                \
        for (int64_t c = 0; c < reduce_step(width); c++) largest[c] = finite_##bits(first[c]);     \
        lanes_rows_##bits(LANES_SUM, LANES_EXP, at, n, width, largest, acc, second);               \
    }                                                                                              \
    static void logsumexp_merge_##bits(void *a, const void *b, int64_t width, int64_t n_a,         \
                                       int64_t n_b)                                                \
    {                                                                                              \
        (void)n_a, (void)n_b;                                                                      \
        STATE(number, a);                                                                          \
        const number *first_b = b, *second_b = first_b + reduce_step(width);                       \
        for (int64_t c = 0; c < width; c++) {                                                      \
            const number x = first[c], y = first_b[c];                                             \
            const number m = x > y || x != x ? x : y;                                              \
            second[c] = (x == m ? second[c] : second[c] * exp_of(x - m)) +                         \
                        (y == m ? second_b[c] : second_b[c] * exp_of(y - m));                      \
            first[c] = m;                                                                          \
        }                                                                                          \
    }
LOGSUMEXP_LOOPS(f32, float, expf)
LOGSUMEXP_LOOPS(f64, double, exp)

/* What a state comes to. */
#define FINISH(name, number, expression)                                                           \
    static void finish_##name##_##number(const void *state, int64_t width, int64_t count, void *y, \
                                         void *mean, int64_t apart)                                \
    {                                                                                              \
        STATE(const number, state);                                                                \
        UNUSED_STATE;                                                                              \
        const number n = (number)count;                                                            \
        (void)n;                                                                                   \
        for (int64_t c = 0; c < width; c++) {                                                      \
            ((number *)y)[c * apart] = expression;                                                 \
            if (mean) ((number *)mean)[c * apart] = first[c];                                      \
        }                                                                                          \
    }
FINISH(itself, float, first[c])
FINISH(itself, double, first[c])
FINISH(mean, float, first[c] / n)
FINISH(mean, double, first[c] / n)
FINISH(variance, float, second[c] / n)
FINISH(variance, double, second[c] / n)
FINISH(std, float, sqrtf(second[c] / n))
FINISH(std, double, sqrt(second[c] / n))
FINISH(logsumexp, float, logf(second[c]) + finite_f32(first[c]))
FINISH(logsumexp, double, log(second[c]) + finite_f64(first[c]))

/* ---- Integers -------------------------------------------------------------------------------- */

#define INTEGER_LOOPS(name, number, identity, expression)                                          \
    static number name##_two_##number(number a, number b)                                          \
    {                                                                                              \
        return (number)(expression);                                                               \
    }                                                                                              \
    static void name##_groups_##number(const void *x, int64_t apart, int64_t groups, int64_t n,    \
                                       void *state)                                                \
    {                                                                                              \
        for (int64_t i = 0; i < groups; i++) {                                                     \
            const number *from = (const number *)x + i * apart;                                    \
            number y = identity;                                                                   \
            for (int64_t k = 0; k < n; k++) y = name##_two_##number(y, from[k]);                   \
            ((number *)state)[i] = y;                                                              \
        }                                                                                          \
    }                                                                                              \
    static void name##_rows_##number(const void *const *rows, int64_t n, int64_t width,            \
                                     void *state)                                                  \
    {                                                                                              \
        number *restrict to = state;                                                               \
        for (int64_t c = 0; c < width; c++) to[c] = identity;                                      \
        for (int64_t r = 0; r < n; r++) {                                                          \
            const number *restrict row = rows[r];                                                  \
            for (int64_t c = 0; c < width; c++) to[c] = name##_two_##number(to[c], row[c]);        \
        }                                                                                          \
    }                                                                                              \
    static void name##_merge_##number(void *a, const void *b, int64_t width, int64_t n_a,          \
                                      int64_t n_b)                                                 \
    {                                                                                              \
        (void)n_a, (void)n_b;                                                                      \
        number *restrict to = a;                                                                   \
        const number *restrict from = b;                                                           \
        for (int64_t c = 0; c < width; c++) to[c] = name##_two_##number(to[c], from[c]);           \
    }
INTEGER_LOOPS(sum, uint32_t, 0, a + b)
INTEGER_LOOPS(sum, uint64_t, 0, a + b)
INTEGER_LOOPS(sum, uint8_t, 0, a + b)
INTEGER_LOOPS(prod, uint32_t, 1, a *b)
INTEGER_LOOPS(prod, uint64_t, 1, a *b)
INTEGER_LOOPS(prod, uint8_t, 1, a *b)
INTEGER_LOOPS(max, int32_t, INT32_MIN, a > b ? a : b)
INTEGER_LOOPS(max, int64_t, INT64_MIN, a > b ? a : b)
INTEGER_LOOPS(max, uint8_t, 0, a > b ? a : b)
INTEGER_LOOPS(min, int32_t, INT32_MAX, a < b ? a : b)
INTEGER_LOOPS(min, int64_t, INT64_MAX, a < b ? a : b)
INTEGER_LOOPS(min, uint8_t, UINT8_MAX, a < b ? a : b)

FINISH(itself, uint8_t, first[c])
FINISH(itself, uint32_t, first[c])
FINISH(itself, uint64_t, first[c])

/* ---- The table ------------------------------------------------------------------------------- */

#define ROW(loops, suffix, finish_name)                                                            \
    {                                                                                              \
        loops##_groups_##suffix, loops##_rows_##suffix, loops##_merge_##suffix,                    \
            finish_##finish_name                                                                   \
    }
#define FLOATS(loops, finish)                                                                      \
    [ED_FLOAT32] = ROW(loops, f32, finish##_float), [ED_FLOAT64] = ROW(loops, f64, finish##_double)

const reduce_loops ISA_NAME(reduce_table)[REDUCE_KINDS][ED_DTYPE_COUNT] = {
    [REDUCE_SUM] = {FLOATS(sum, itself), [ED_INT32] = ROW(sum, uint32_t, itself_uint32_t),
                    [ED_INT64] = ROW(sum, uint64_t, itself_uint64_t),
                    [ED_UINT8] = ROW(sum, uint8_t, itself_uint8_t)},
    [REDUCE_MEAN] = {FLOATS(sum, mean)},
    [REDUCE_PROD] = {FLOATS(prod, itself), [ED_INT32] = ROW(prod, uint32_t, itself_uint32_t),
                     [ED_INT64] = ROW(prod, uint64_t, itself_uint64_t),
                     [ED_UINT8] = ROW(prod, uint8_t, itself_uint8_t)},
    [REDUCE_MAX] = {FLOATS(max, itself), [ED_INT32] = ROW(max, int32_t, itself_uint32_t),
                    [ED_INT64] = ROW(max, int64_t, itself_uint64_t),
                    [ED_UINT8] = ROW(max, uint8_t, itself_uint8_t),
                    [ED_BOOL] = ROW(max, uint8_t, itself_uint8_t)},
    [REDUCE_MIN] = {FLOATS(min, itself), [ED_INT32] = ROW(min, int32_t, itself_uint32_t),
                    [ED_INT64] = ROW(min, int64_t, itself_uint64_t),
                    [ED_UINT8] = ROW(min, uint8_t, itself_uint8_t),
                    [ED_BOOL] = ROW(min, uint8_t, itself_uint8_t)},
    [REDUCE_VARIANCE] = {FLOATS(variance, variance)},
    [REDUCE_STD] = {FLOATS(variance, std)},
    [REDUCE_LOGSUMEXP] = {FLOATS(logsumexp, logsumexp)},
};

/* ---- The best of all ------------------------------------------------------------------------- */

#define BETTER(a, b) (smallest ? (a) < (b) : (a) > (b))

/* Of floats: a NaN beats nothing and is beaten by all else. In four chains, each of which the
 * compiler keeps in vectors. */
#define BEST_FLOAT_VALUE(bits, number, vector, vectors)                                            \
    VECTOR_INLINE number best_of_##bits(const number *x, int64_t n, const bool smallest)           \
    {                                                                                              \
        const number worst = smallest ? (number)INFINITY : (number)-INFINITY;                      \
        vector best[4];                                                                            \
        for (int k = 0; k < 4; k++) best[k] = vset_##bits(worst);                                  \
        for (int64_t i = 0; i < n; i += 4 * vectors)                                               \
            for (int k = 0; k < 4; k++) {                                                          \
                const vector v =                                                                   \
                    lanes_some_##bits(x + i + k * vectors, n - i - k * vectors, worst);            \
                best[k] = vselect_##bits(BETTER(v, best[k]), v, best[k]);                          \
            }                                                                                      \
        for (int k = 1; k < 4; k++)                                                                \
            best[0] = vselect_##bits(BETTER(best[k], best[0]), best[k], best[0]);                  \
        number y = best[0][0];                                                                     \
        for (int k = 1; k < vectors; k++) y = BETTER(best[0][k], y) ? best[0][k] : y;              \
        return y;                                                                                  \
    }
BEST_FLOAT_VALUE(f32, float, vf32, VECTOR_F32)
BEST_FLOAT_VALUE(f64, double, vf64, VECTOR_F64)

#define BEST_INTEGER_VALUE(number)                                                                 \
    VECTOR_INLINE number best_of_##number(const number *x, int64_t n, const bool smallest)         \
    {                                                                                              \
        number y = x[0];                                                                           \
        for (int64_t i = 1; i < n; i++) y = BETTER(x[i], y) ? x[i] : y;                            \
        return y;                                                                                  \
    }
BEST_INTEGER_VALUE(int32_t)
BEST_INTEGER_VALUE(int64_t)
BEST_INTEGER_VALUE(uint8_t)

#define BEST_LOOPS(suffix, number, none)                                                           \
    static int64_t best_find_##suffix(const void *x, int64_t n, const void *value)                 \
    {                                                                                              \
        const number *from = x, wanted = *(const number *)value;                                   \
        int64_t i = 0;                                                                             \
        for (; i + 16 <= n; i += 16) { /* sixteen at a time until one of them is it */             \
            int found = 0;                                                                         \
            for (int k = 0; k < 16; k++) found |= from[i + k] == wanted;                           \
            if (found) break;                                                                      \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            if (from[i] == wanted) return i;                                                       \
        return -1;                                                                                 \
    }                                                                                              \
    static void best_value_##suffix(const void *x, int64_t n, bool smallest, void *value)          \
    {                                                                                              \
        number *y = value;                                                                         \
        *y = smallest ? best_of_##suffix(x, n, true) : best_of_##suffix(x, n, false);              \
        none;                                                                                      \
    }                                                                                              \
    static bool best_beats_##suffix(const void *a, const void *b, bool smallest)                   \
    {                                                                                              \
        const number x = *(const number *)a, y = *(const number *)b;                               \
        return BETTER(x, y) || (y != y && x == x);                                                 \
    }                                                                                              \
    static void best_finish_##suffix(const void *values, int64_t width, int64_t *indices)          \
    {                                                                                              \
        const number *v = values;                                                                  \
        for (int64_t c = 0; c < width; c++) indices[c] = v[c] == v[c] ? indices[c] : 0;            \
    }
/*
 * Side by side, floats: eight rows at a time against the best so far, which starts as NaN. Indices
 * are the numbers' width and count from the block's first row; -1 where nothing in it is better.
 */
#define BEST_ROWS_FLOAT(bits, number, vector, integer, integers, vectors)                          \
    VECTOR_INLINE void best_block_##bits(const number *const *rows, int64_t n, int64_t width,      \
                                         const bool smallest, number *values, integer *at)         \
    {                                                                                              \
        for (int64_t first = 0; first < n; first += 8)                                             \
            for (int64_t c = 0; c < width; c += vectors) {                                         \
                const int64_t left = width - c;                                                    \
                vector best = lanes_some_##bits(values + c, left, 0);                              \
                integers where;                                                                    \
                memcpy(&where, at + c, sizeof where);                                              \
                for (int64_t r = first; r < n && r < first + 8; r++) {                             \
                    const vector x = lanes_some_##bits(rows[r] + c, left, 0);                      \
                    const integers better = BETTER(x, best) | (best != best);                      \
                    best = vselect_##bits(better, x, best);                                        \
                    where = (better & (integer)r) | (~better & where);                             \
                }                                                                                  \
                lanes_put_##bits(values + c, best, left);                                          \
                memcpy(at + c, &where, sizeof where);                                              \
            }                                                                                      \
    }                                                                                              \
    static void best_rows_##bits(const void *const *rows, int64_t n, int64_t width, int64_t first, \
                                 bool smallest, void *values, int64_t *indices)                    \
    {                                                                                              \
        integer at[REDUCE_WIDTH_BYTES / sizeof(number)] __attribute__((aligned(64)));              \
        number *best = values;                                                                     \
        memset(at, -1, sizeof at);                                                                 \
        for (int64_t c = 0; first == 0 && c < width; c++) best[c] = NAN, indices[c] = 0;           \
        if (smallest)                                                                              \
            best_block_##bits((const number *const *)rows, n, width, true, best, at);              \
        else                                                                                       \
            best_block_##bits((const number *const *)rows, n, width, false, best, at);             \
        for (int64_t c = 0; c < width; c++) indices[c] = at[c] < 0 ? indices[c] : first + at[c];   \
    }
BEST_ROWS_FLOAT(f32, float, vf32, int32_t, vi32, VECTOR_F32)
BEST_ROWS_FLOAT(f64, double, vf64, int64_t, vi64, VECTOR_F64)

#define BEST_ROWS_INTEGER(number)                                                                  \
    static void best_rows_##number(const void *const *rows, int64_t n, int64_t width,              \
                                   int64_t first, bool smallest, void *values, int64_t *indices)   \
    {                                                                                              \
        number *restrict best = values;                                                            \
        if (first == 0) {                                                                          \
            memcpy(best, rows[0], (size_t)width * sizeof *best);                                   \
            memset(indices, 0, (size_t)width * sizeof *indices);                                   \
        }                                                                                          \
        for (int64_t r = 0; r < n; r++) {                                                          \
            const number *restrict row = rows[r];                                                  \
            for (int64_t c = 0; c < width; c++) {                                                  \
                const bool better = BETTER(row[c], best[c]);                                       \
                best[c] = better ? row[c] : best[c];                                               \
                indices[c] = better ? first + r : indices[c];                                      \
            }                                                                                      \
        }                                                                                          \
    }
BEST_ROWS_INTEGER(int32_t)
BEST_ROWS_INTEGER(int64_t)
BEST_ROWS_INTEGER(uint8_t)

/* The worst there is may stand for "all NaN". */
#define NONE_FLOAT(suffix)                                                                         \
    if (isinf(*y) && best_find_##suffix(x, n, y) < 0) *y = NAN
BEST_LOOPS(f32, float, NONE_FLOAT(f32))
BEST_LOOPS(f64, double, NONE_FLOAT(f64))
BEST_LOOPS(int32_t, int32_t, (void)0)
BEST_LOOPS(int64_t, int64_t, (void)0)
BEST_LOOPS(uint8_t, uint8_t, (void)0)

#define BEST_ROW(suffix)                                                                           \
    {                                                                                              \
        best_value_##suffix, best_beats_##suffix, best_find_##suffix, best_rows_##suffix,          \
            best_finish_##suffix                                                                   \
    }
const reduce_best_loops ISA_NAME(reduce_best_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = BEST_ROW(f32),   [ED_FLOAT64] = BEST_ROW(f64),   [ED_INT32] = BEST_ROW(int32_t),
    [ED_INT64] = BEST_ROW(int64_t), [ED_UINT8] = BEST_ROW(uint8_t),
};

#else
/* ======== For the machine at hand ============================================================= */

ISA_DECLARE_TABLE(reduce_loops, reduce_table, [][ED_DTYPE_COUNT]);
ISA_DECLARE_TABLE(reduce_best_loops, reduce_best_table, []);

const reduce_loops *reduce_loops_for(reduce_kind kind, ed_dtype dtype)
{
    static const reduce_loops(*const tables[ISA_COUNT])[ED_DTYPE_COUNT] = ISA_TABLE(reduce_table);
    return &tables[isa_level][kind][dtype];
}

const reduce_best_loops *reduce_best_for(ed_dtype dtype)
{
    static const reduce_best_loops *const tables[ISA_COUNT] = ISA_TABLE(reduce_best_table);
    return &tables[isa_level][dtype];
}

#endif
