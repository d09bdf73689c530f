/*
 * Reductions: the loops, compiled once for each instruction set, and the ops. How they work
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
/* ======== Ops ================================================================================= */

#if defined(__x86_64__)
extern const reduce_loops reduce_table_avx2[][ED_DTYPE_COUNT],
    reduce_table_avx512[][ED_DTYPE_COUNT];
extern const reduce_best_loops reduce_best_table_avx2[], reduce_best_table_avx512[];
#endif
extern const reduce_loops reduce_table_baseline[][ED_DTYPE_COUNT];
extern const reduce_best_loops reduce_best_table_baseline[];

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

/* ---- Shapes, kernel, reference --------------------------------------------------------------- */

static const ed_attr attributes[] = {
    ATTR(ed_reduce_options, axis, ED_ATTR_INTS, "which to reduce; default all"),
    ATTR(ed_reduce_options, keepdims, ED_ATTR_BOOL, "reduced axes stay as extent 1"),
    {0}};

/* x's shape without the axes in mask, or with extent 1 for them. */
static int reduced_shape(ed_ints shape, unsigned mask, bool keepdims, int64_t *out)
{
    int rank = 0;
    for (int d = 0; d < shape.count; d++) {
        if (!(mask & 1u << d))
            out[rank++] = shape.values[d];
        else if (keepdims)
            out[rank++] = 1;
    }
    return rank;
}

/* scratch[0]: the axes, as a mask. */
static bool reduce_infer(ed_call *call)
{
    const ed_reduce_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0];
    unsigned mask;
    int64_t shape[ED_MAX_RANK];
    if (!ops_axes(call, options->axis, x->rank, &mask)) return false;
    call->scratch[0] = mask;
    int rank = reduced_shape((ed_ints){x->shape, x->rank}, mask, options->keepdims, shape);
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

/* The same for ops that have no value for nothing. */
static bool extreme_infer(ed_call *call)
{
    if (!reduce_infer(call)) return false;
    const ed_tensor *x = call->inputs[0];
    if (x->size > 0 || call->outputs[0]->size == 0) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "there is none in nothing: the reduced axes of %s are empty",
                        text_of_tensor(x).s);
}

#define KERNEL(name, kind)                                                                         \
    static bool name##_kernel(ed_call *call)                                                       \
    {                                                                                              \
        return reduce_run(kind, call->inputs[0], (unsigned)call->scratch[0],                       \
                          call->outputs[0]->data, NULL);                                           \
    }

/* Runs f over the elements of each output, in order, in float64. */
static bool plain(const ed_call *call, double (*f)(const double *x, int64_t n))
{
    const ed_reduce_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    unsigned mask;
    if (!ops_axes(call, options->axis, x->rank, &mask)) return false;
    int64_t n = y->size ? x->size / y->size : 0; /* elements of each group */
    double *groups = memory_alloc((size_t)(x->size + 1) * sizeof *groups);
    int64_t *filled = memory_zalloc((size_t)(y->size + 1) * sizeof *filled);
    for (int64_t i = 0; groups && filled && i < x->size; i++) {
        int64_t rest = i, output = 0, apart = 1;
        for (int d = x->rank - 1; d >= 0; d--) {
            if (!(mask & 1u << d)) {
                output += rest % x->shape[d] * apart;
                apart *= x->shape[d];
            }
            rest /= x->shape[d];
        }
        groups[output * n + filled[output]++] = ((const double *)x->data)[i];
    }
    for (int64_t o = 0; groups && filled && o < y->size; o++)
        ((double *)y->data)[o] = f(groups + o * n, n);
    bool ok = groups && filled;
    memory_free(groups);
    memory_free(filled);
    return ok;
}

/* References: an expression of a group's n numbers x; a loop that starts with a number. */
#define PLAIN(name, expression)                                                                    \
    static double plain_of_##name(const double *x, int64_t n)                                      \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    static bool plain_##name(const ed_call *call)                                                  \
    {                                                                                              \
        return plain(call, plain_of_##name);                                                       \
    }
#define PLAIN_LOOP(name, start, expression)                                                        \
    static double loop_of_##name(const double *x, int64_t n)                                       \
    {                                                                                              \
        double y = start;                                                                          \
        for (int64_t i = 0; i < n; i++) y = expression;                                            \
        return y;                                                                                  \
    }                                                                                              \
    PLAIN(name, loop_of_##name(x, n))

/* ---- What gradients share -------------------------------------------------------------------- */

/* The mask of a call whose axes have been checked. */
static unsigned mask_of(const ed_gradient_call *g)
{
    const ed_reduce_options *options = g->attrs;
    int rank = (int)g->shapes[0].count;
    if (!options->axis.values) return (1u << rank) - 1;
    unsigned mask = 0;
    for (int64_t i = 0; i < options->axis.count; i++)
        mask |= 1u << tensor_axis(options->axis.values[i], rank);
    return mask;
}

/* How many elements an output stands for. */
static double count_of(const ed_gradient_call *g)
{
    unsigned mask = mask_of(g);
    double n = 1;
    for (int d = 0; d < g->shapes[0].count; d++)
        if (mask & 1u << d) n *= (double)g->shapes[0].values[d];
    return n;
}

/* A tensor of the output's shape, with the reduced axes as extent 1: what broadcasts against x. */
static ed_tensor *kept(const ed_gradient_call *g, ed_tensor *t)
{
    int64_t shape[ED_MAX_RANK];
    if (((const ed_reduce_options *)g->attrs)->keepdims) return t;
    return ed_reshape(t, (ed_ints){shape, reduced_shape(g->shapes[0], mask_of(g), true, shape)});
}

static const ed_reduce_options *keeping(const ed_gradient_call *g, ed_reduce_options *options)
{
    *options = *(const ed_reduce_options *)g->attrs;
    options->keepdims = true;
    return options;
}

#define X(set)                                                                                     \
    {                                                                                              \
        {                                                                                          \
            "x", set, 'T'                                                                          \
        }                                                                                          \
    }
#define AXES(...)                                                                                  \
    &(const ed_reduce_options)                                                                     \
    {                                                                                              \
        .axis = {(const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8 }            \
    }
#define KEEPING(...)                                                                               \
    &(const ed_reduce_options)                                                                     \
    {                                                                                              \
        .axis = {(const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8},            \
        .keepdims = true                                                                           \
    }
#define NO_AXES                                                                                    \
    &(const ed_reduce_options)                                                                     \
    {                                                                                              \
        .axis = {(const int64_t[]){0}, 0 }                                                         \
    }
#define SAMPLES(in, low, high)                                                                     \
    ED_SAMPLES({.inputs = {in(low, high, 3, 4)}},                                                  \
               {.inputs = {in(low, high, 3, 4)}, .attrs = AXES(0)},                                \
               {.inputs = {in(low, high, 3, 4)}, .attrs = AXES(-1)},                               \
               {.inputs = {in(low, high, 2, 3, 4)}, .attrs = KEEPING(1)},                          \
               {.inputs = {in(low, high, 2, 3, 2, 2)}, .attrs = AXES(0, -2)},                      \
               {.inputs = {in(low, high, 3, 1)}, .attrs = NO_AXES}, {.inputs = {in(low, high)}})

/* A definition; the rest is further fields of ed_op. And the public function. */
#define REDUCTION(symbol, text, set, infer_function, ...)                                          \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = X(set),                                                           \
                     .attrs = attributes,                                                          \
                     .attrs_size = sizeof(ed_reduce_options),                                      \
                     .infer = infer_function,                                                      \
                     .kernel = symbol##_kernel,                                                    \
                     .reference = plain_##symbol,                                                  \
                     __VA_ARGS__};                                                                 \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_reduce_options *options)                  \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

/* ---- Sums ------------------------------------------------------------------------------------ */

/* reduce_sum: y = sum of x, dx = dy for each element */
KERNEL(reduce_sum, REDUCE_SUM)
PLAIN(reduce_sum, reduce_plain(false, x, n))

static bool reduce_sum_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_broadcast_to(kept(g, g->dy[0]), g->shapes[0]);
    return true;
}

REDUCTION(reduce_sum, "y = sum of x over the axes", ED_SET_NUMBER, reduce_infer,
          .gradient = reduce_sum_gradient, .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* reduce_mean: y = sum of x / n, dx = dy / n */
KERNEL(reduce_mean, REDUCE_MEAN)
PLAIN(reduce_mean, reduce_plain(false, x, n) / (double)n)

static bool reduce_mean_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_broadcast_to(kept(g, ed_div(g->dy[0], count_of(g))), g->shapes[0]);
    return true;
}

REDUCTION(reduce_mean, "y = mean of x over the axes; NaN of nothing", ED_SET_FLOAT, reduce_infer,
          .gradient = reduce_mean_gradient, .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

ed_tensor *ops_sum_to(ed_tensor *dy, ed_ints shape)
{
    if (!dy) return NULL;
    const ed_tensor *value = tensor_read(dy);
    int leading = value->rank - (int)shape.count, n = 0;
    int64_t axes[ED_MAX_RANK];
    bool inner = false;
    for (int d = 0; d < value->rank; d++) {
        if (d >= leading && (shape.values[d - leading] != 1 || value->shape[d] == 1)) continue;
        inner |= d >= leading;
        axes[n++] = d;
    }
    if (!n) return dy;
    ed_reduce_options options = {.axis = {axes, n}, .keepdims = inner};
    ed_tensor *sum = ed_reduce_sum_with(dy, &options);
    return inner && leading ? ed_reshape(sum, shape) : sum;
}

/* ---- Product --------------------------------------------------------------------------------- */

/* x [outer, n] moved on by `by` along the last axis; ones come in. */
static ed_tensor *moved_on(ed_tensor *x, int64_t by)
{
    ed_tensor *head = ed_slice(x, .end = ED_INTS(ed_dim(x, 0), ed_dim(x, 1) - by));
    return ed_pad(head, .before = ED_INTS(0, by), .after = ED_INTS(0, 0), .value = 1);
}

/*
 * The product of all before each element along the last axis: of the one before, then of 2, 4, 8,
 * ... Nothing is divided, so zeros do no harm, in gradients of any order either.
 */
static ed_tensor *products_before(ed_tensor *x)
{
    if (!x) return NULL;
    int64_t n = ed_dim(x, 1);
    x = moved_on(x, 1);
    for (int64_t have = 1; x && have < n - 1; have *= 2) x = ed_mul(x, moved_on(x, have));
    return x;
}

/* reduce_prod: y = product of x, dx = dy times the product of the others */
KERNEL(reduce_prod, REDUCE_PROD)
PLAIN(reduce_prod, reduce_plain(true, x, n))

static bool reduce_prod_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_ints shape = g->shapes[0];
    unsigned mask = mask_of(g);
    int64_t order[ED_MAX_RANK], back[ED_MAX_RANK], count = 1, outer = 1;
    int rank = 0;
    for (int gone = 0; gone < 2; gone++)
        for (int d = 0; d < shape.count; d++)
            if (!(mask & 1u << d) == !gone) {
                back[d] = rank;
                order[rank++] = d;
                *(gone ? &count : &outer) *= shape.values[d];
            }
    if (!count || !outer) {
        g->dx[0] = ed_keep(ed_zeros_with(shape, &(ed_create_options){g->dtypes[0]}));
        return true;
    }
    ed_tensor *x = ed_transpose(g->inputs[0], .perm = {order, rank});
    if (!x) return false;
    int64_t moved[ED_MAX_RANK];
    for (int d = 0; d < rank; d++) moved[d] = x->shape[d];
    x = ed_reshape(x, ED_SHAPE(outer, count));
    ed_tensor *after = ed_reverse(products_before(ed_reverse(x, ED_AXES(1))), ED_AXES(1));
    ed_tensor *others = ed_mul(products_before(x), after);
    others = ed_transpose(ed_reshape(others, (ed_ints){moved, rank}), .perm = {back, rank});
    g->dx[0] = ed_keep(ed_mul(others, kept(g, g->dy[0])));
    return true;
}

REDUCTION(reduce_prod, "y = product of x over the axes", ED_SET_NUMBER, reduce_infer,
          .gradient = reduce_prod_gradient, .saves = ED_SAVES_ALL_INPUTS,
          .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* ---- Largest and smallest -------------------------------------------------------------------- */

/* reduce_max: y = largest of x, dx = dy / k for the k elements that equal it; 0 / 0 where y is NaN
 */
KERNEL(reduce_max, REDUCE_MAX)
PLAIN_LOOP(reduce_max, -INFINITY, x[i] > y || x[i] != x[i] ? x[i] : y)

static bool extreme_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_reduce_options options;
    ed_tensor *ties = ed_cast(ed_equal(g->inputs[0], kept(g, g->outputs[0])), g->dtypes[0]);
    ed_tensor *share = ed_div(kept(g, g->dy[0]), ed_reduce_sum_with(ties, keeping(g, &options)));
    g->dx[0] = ed_keep(ed_mul(ties, share));
    return true;
}

REDUCTION(reduce_max, "y = largest of x over the axes; ties share the gradient", ED_SET_NUMBER,
          extreme_infer, .gradient = extreme_gradient,
          .saves = ED_SAVES_ALL_INPUTS | ED_SAVES_OUTPUT(0),
          .samples = SAMPLES(ED_DISTINCT_IN, -2, 2))

/* reduce_min: y = smallest of x, its gradient like the largest's */
KERNEL(reduce_min, REDUCE_MIN)
PLAIN_LOOP(reduce_min, INFINITY, x[i] < y || x[i] != x[i] ? x[i] : y)
REDUCTION(reduce_min, "y = smallest of x over the axes; ties share the gradient", ED_SET_NUMBER,
          extreme_infer, .gradient = extreme_gradient,
          .saves = ED_SAVES_ALL_INPUTS | ED_SAVES_OUTPUT(0),
          .samples = SAMPLES(ED_DISTINCT_IN, -2, 2))

/* reduce_any, reduce_all: whether any, all are true */
KERNEL(reduce_any, REDUCE_MAX)
KERNEL(reduce_all, REDUCE_MIN)
PLAIN_LOOP(reduce_any, 0, y != 0 || x[i] != 0)
PLAIN_LOOP(reduce_all, 1, y != 0 && x[i] != 0)
REDUCTION(reduce_any, "whether any of x over the axes is true", ED_SET_BOOL, reduce_infer,
          .no_gradient = "truth does not change gradually", .samples = SAMPLES(ED_SAMPLE_IN, 0, 1))
REDUCTION(reduce_all, "whether all of x over the axes are true", ED_SET_BOOL, reduce_infer,
          .no_gradient = "truth does not change gradually", .samples = SAMPLES(ED_SAMPLE_IN, 0, 1))

/* ---- Sum of exponentials --------------------------------------------------------------------- */

/* reduce_logsumexp: y = ln sum e^x, dx = dy e^(x - y) */
KERNEL(reduce_logsumexp, REDUCE_LOGSUMEXP)

static double logsumexp_of(const double *x, int64_t n)
{
    double m = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    if (!isfinite(m)) m = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - m);
    return m + log(sum);
}

PLAIN(reduce_logsumexp, logsumexp_of(x, n))

static bool reduce_logsumexp_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *part = ed_exp(ed_sub(g->inputs[0], kept(g, g->outputs[0])));
    g->dx[0] = ed_keep(ed_mul(part, kept(g, g->dy[0])));
    return true;
}

REDUCTION(reduce_logsumexp, "y = ln of the sum of e^x over the axes", ED_SET_FLOAT, reduce_infer,
          .gradient = reduce_logsumexp_gradient, .saves = ED_SAVES_ALL_INPUTS | ED_SAVES_OUTPUT(0),
          .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* ---- Variance -------------------------------------------------------------------------------- */

/* reduce_variance: y = mean of (x - mean)^2, dx = dy 2 (x - mean) / n */
KERNEL(reduce_variance, REDUCE_VARIANCE)

static double variance_of(const double *x, int64_t n)
{
    double mean = 0, y = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) y += (x[i] - mean) * (x[i] - mean);
    return y / (double)n;
}

PLAIN(reduce_variance, variance_of(x, n))

/* (x - mean) share / n, share being of the output's shape. */
static ed_tensor *deviations_times(const ed_gradient_call *g, ed_tensor *share)
{
    ed_reduce_options options;
    ed_tensor *mean = ed_reduce_mean_with(g->inputs[0], keeping(g, &options));
    return ed_mul(ed_sub(g->inputs[0], mean), kept(g, ed_div(share, count_of(g))));
}

static bool reduce_variance_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    g->dx[0] = ed_keep(deviations_times(g, ed_mul(g->dy[0], 2)));
    return true;
}

REDUCTION(reduce_variance, "y = mean of (x - mean of x)^2 over the axes; NaN of nothing",
          ED_SET_FLOAT, reduce_infer, .gradient = reduce_variance_gradient,
          .saves = ED_SAVES_ALL_INPUTS, .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* reduce_std: y = sqrt variance, dx = dy (x - mean) / (n y), 0 where dy is, even if y is 0 */
KERNEL(reduce_std, REDUCE_STD)

static double std_of(const double *x, int64_t n)
{
    return sqrt(variance_of(x, n));
}

PLAIN(reduce_std, std_of(x, n))

static bool reduce_std_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *nothing = ed_equal(g->dy[0], 0.0);
    ed_tensor *y = ed_where(nothing, 1.0, g->outputs[0]);
    g->dx[0] = ed_keep(deviations_times(g, ed_div(g->dy[0], y)));
    return true;
}

REDUCTION(reduce_std, "y = root of the variance of x over the axes", ED_SET_FLOAT, reduce_infer,
          .gradient = reduce_std_gradient, .saves = ED_SAVES_ALL_INPUTS | ED_SAVES_OUTPUT(0),
          .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                                {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, .attrs = AXES(0)},
                                {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)}, .attrs = KEEPING(0, 2)}))

/* ---- Index of the best ----------------------------------------------------------------------- */

static const ed_attr best_attributes[] = {
    ATTR(ed_argmax_options, axis, ED_ATTR_INT, "along which; default 0"), {0}};

static bool best_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int axis;
    int64_t shape[ED_MAX_RANK];
    if (!ops_axis(call, ((const ed_argmax_options *)call->attrs)->axis, x->rank, &axis))
        return false;
    call->scratch[0] = axis;
    int rank = reduced_shape((ed_ints){x->shape, x->rank}, 1u << axis, false, shape);
    if (!ed_call_output(call, 0, ED_INT64, rank, shape)) return false;
    if (x->shape[axis] || !call->outputs[0]->size) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "there is none in nothing: axis %d of %s is empty", axis,
                        text_of_tensor(x).s);
}

static bool plain_best(const ed_call *call, bool smallest)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    int axis;
    if (!ops_axis(call, ((const ed_argmax_options *)call->attrs)->axis, x->rank, &axis))
        return false;
    int64_t n = x->shape[axis], inner = 1;
    for (int d = axis + 1; d < x->rank; d++) inner *= x->shape[d];
    for (int64_t o = 0; o < y->size; o++) {
        const double *from = (const double *)x->data + o / inner * inner * n + o % inner;
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++) {
            double v = from[i * inner], b = best < 0 ? 0 : from[best * inner];
            if (v == v && (best < 0 || (smallest ? v < b : v > b))) best = i;
        }
        ((double *)y->data)[o] = best < 0 ? 0 : (double)best;
    }
    return true;
}

#define BEST(symbol, text, smallest)                                                               \
    static bool symbol##_kernel(ed_call *call)                                                     \
    {                                                                                              \
        return reduce_best(call->inputs[0], 1u << call->scratch[0], smallest,                      \
                           (int64_t *)call->outputs[0]->data);                                     \
    }                                                                                              \
    static bool plain_##symbol(const ed_call *call)                                                \
    {                                                                                              \
        return plain_best(call, smallest);                                                         \
    }                                                                                              \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = X(ED_SET_NUMBER),                                                              \
        .attrs = best_attributes,                                                                  \
        .attrs_size = sizeof(ed_argmax_options),                                                   \
        .infer = best_infer,                                                                       \
        .kernel = symbol##_kernel,                                                                 \
        .reference = plain_##symbol,                                                               \
        .no_gradient = "an index does not change gradually",                                       \
        .samples = ED_SAMPLES(                                                                     \
            {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)}},                                             \
            {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4, 2)}, .attrs = &(const ed_argmax_options){1}},  \
            {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 70)}, .attrs = &(const ed_argmax_options){-1}})}; \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_argmax_options *options)                  \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

/* argmax, argmin: the first index of the largest, the smallest */
BEST(argmax, "index of the largest of x along the axis, the first of equals", false)
BEST(argmin, "index of the smallest of x along the axis, the first of equals", true)

#endif
