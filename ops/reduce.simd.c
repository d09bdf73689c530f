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

_Static_assert(REDUCE_SCRATCH == LANES_ALL + 1, "rows need a half for each lane and one more");

/* What lies `ahead` bytes behind a group, if any: over the ends of pages, where the machine's own
 * prefetching stops. */
VECTOR_INLINE void prefetch_ahead(const void *group, int64_t ahead, int64_t bytes)
{
    for (int64_t at = 0; ahead && at < bytes; at += 64)
        __builtin_prefetch((const char *)group + ahead + at);
}

/*
 * A fold of one number waits for memory alone. With AVX-512 prefetches keep that busy; the other
 * sets' machines do better without, if two groups far from each other are read at a time: Zen 3
 * reads 64 MB in 5.8 ms with prefetches, in 4.7 without, in 3.9 by two groups.
 */
enum { ABREAST = VECTOR_BYTES < 64 ? LANES_ABREAST : 1 };

/* The folds that ops/reduce_fold.typed.h is given by name. */
#define fold_sum  LANES_SUM
#define fold_prod LANES_PROD
#define fold_max  LANES_MAX
#define fold_min  LANES_MIN

/* In ops/reduce.typed.h: what states of a kind come to. */
#define REDUCE_FINISH(name, kind)                                                                  \
    static void TYPED(reduce_##name##_finish)(const void *state, int64_t width, int64_t count,     \
                                              void *y, void *mean, int64_t apart)                  \
    {                                                                                              \
        TYPED(reduce_results)(kind, state, width, count, y, mean, apart);                          \
    }

/* Of argmax and argmin; a row up to BEST_SHORT has a bit for each element. */
#define BETTER(a, b) (smallest ? (a) < (b) : (a) > (b))
enum { BEST_SHORT = 64 };

#define TYPE f32
#include "ops/reduce.typed.h"
#define TYPE f64
#include "ops/reduce.typed.h"
#define TYPE i32
#include "ops/reduce_integer.typed.h"
#define TYPE i64
#include "ops/reduce_integer.typed.h"
#define TYPE u8
#include "ops/reduce_integer.typed.h"

/* ---- Tables ---------------------------------------------------------------------------------- */

#define ROW(loops, type, finish)                                                                   \
    {                                                                                              \
        reduce_##loops##_groups_##type, reduce_##loops##_rows_##type,                              \
            reduce_##loops##_merge_##type, reduce_##finish##_finish_##type                         \
    }
#define FLOATS(loops, finish)                                                                      \
    [ED_FLOAT32] = ROW(loops, f32, finish), [ED_FLOAT64] = ROW(loops, f64, finish)
#define INTEGERS(loops)                                                                            \
    [ED_INT32] = ROW(loops, i32, sum), [ED_INT64] = ROW(loops, i64, sum),                          \
    [ED_UINT8] = ROW(loops, u8, sum)

const reduce_loops ISA_NAME(reduce_table)[REDUCE_KINDS][ED_DTYPE_COUNT] = {
    [REDUCE_SUM] = {FLOATS(sum, sum), INTEGERS(sum)},
    [REDUCE_MEAN] = {FLOATS(sum, mean)},
    [REDUCE_PROD] = {FLOATS(prod, sum), INTEGERS(prod)},
    [REDUCE_MAX] = {FLOATS(max, sum), INTEGERS(max), [ED_BOOL] = ROW(max, u8, sum)},
    [REDUCE_MIN] = {FLOATS(min, sum), INTEGERS(min), [ED_BOOL] = ROW(min, u8, sum)},
    [REDUCE_VARIANCE] = {FLOATS(variance, variance)},
    [REDUCE_STD] = {FLOATS(variance, std)},
    [REDUCE_SQUARES] = {FLOATS(squares, sum)},
    [REDUCE_EUCLIDEAN] = {FLOATS(squares, euclidean)},
    [REDUCE_LOGSUMEXP] = {FLOATS(logsumexp, logsumexp)},
};

#define BEST_ROW(type)                                                                             \
    {                                                                                              \
        best_value_##type, best_beats_##type, best_find_##type, best_groups_##type,                \
            best_rows_##type, best_finish_##type                                                   \
    }
const reduce_best_loops ISA_NAME(reduce_best_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = BEST_ROW(f32), [ED_FLOAT64] = BEST_ROW(f64), [ED_INT32] = BEST_ROW(i32),
    [ED_INT64] = BEST_ROW(i64),   [ED_UINT8] = BEST_ROW(u8),
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
