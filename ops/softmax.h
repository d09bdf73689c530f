/*
 * What softmax and the cross-entropies share: the exponentials of a row, and how rows are dealt out
 * to threads. Loops are written for both float types at once, like those of ops/kernels/lanes.h.
 */
#ifndef EDDY_OPS_SOFTMAX_H
#define EDDY_OPS_SOFTMAX_H

#ifdef ISA

#include "ops/kernels/lanes.h"

/* Vectors of a row of n elements: i is the first one's place, left how many there are from there
 * on. */
#define EACH_VECTOR(n, vectors)                                                                    \
    for (int64_t i = 0, left = n; left > 0; i += vectors, left -= vectors)

/* softmax_exp(x, y, n, m): y = e^(x - m); returns their sum, a block at a time. */
#define SOFTMAX_EXP(bits, number, vector, vectors)                                                 \
    VECTOR_INLINE number softmax_exp_##bits(const number *x, number *y, int64_t n, number m)       \
    {                                                                                              \
        enum { N = LANES_ALL / vectors, BLOCK = 1024 };                                            \
        number total = 0;                                                                          \
        for (int64_t block = 0; block < n; block += BLOCK) {                                       \
            const int64_t end = n - block < BLOCK ? n : block + BLOCK;                             \
            vector acc[N];                                                                         \
            for (int v = 0; v < N; v++) acc[v] = (vector){0};                                      \
            for (int64_t i = block; i < end; i += LANES_ALL)                                       \
                for (int v = 0; v < N; v++) {                                                      \
                    const int64_t at = i + v * vectors, left = end - at;                           \
                    if (left <= 0) break;                                                          \
                    const vector e =                                                               \
                        lanes_load_##bits(LANES_SUM, LANES_EXP, x + at, left, vset_##bits(m));     \
                    lanes_put_##bits(y + at, e, left);                                             \
                    acc[v] += e;                                                                   \
                }                                                                                  \
            total += lanes_across_##bits(LANES_SUM, acc);                                          \
        }                                                                                          \
        return total;                                                                              \
    }
SOFTMAX_EXP(f32, float, vf32, VECTOR_F32)
SOFTMAX_EXP(f64, double, vf64, VECTOR_F64)

#else

#include "ops/execute.h"
#include "ops/ops.h"

/* Rows of n elements that a thread takes at a time: all of them if more threads don't pay. */
static inline int64_t softmax_turn(int64_t rows, int64_t n)
{
    enum { PIECE = 16384 }; /* elements */
    return rows * n <= OPS_PARALLEL_WORK ? rows : n < PIECE ? PIECE / n : 1;
}

static inline ed_tensor *softmax_sum_along(ed_tensor *x, int64_t axis)
{
    return ed_reduce_sum(x, .axis = ED_AXES(axis), .keepdims = true);
}

/* For references: softmax or its logarithm of n numbers, `apart` from each other. */
void softmax_plain(const double *x, double *y, int64_t n, int64_t apart, bool logarithm);

#endif
#endif
