/*
 * What softmax and the cross-entropies share: which row is asked for ahead, and how rows are dealt
 * out to threads.
 */
#ifndef EDDY_OPS_SOFTMAX_H
#define EDDY_OPS_SOFTMAX_H

#include "ops/execute.h"
#include "ops/ops.h"

/* Rows of n elements that a thread takes at a time: all of them if more threads don't pay. */
static inline int64_t softmax_turn(int64_t rows, int64_t n)
{
    enum { PIECE = HARD(1, 16384) }; /* elements */
    return rows * n <= OPS_PARALLEL_WORK ? rows : n < PIECE ? PIECE / n : 1;
}

/* The row behind one of n elements, which is asked for while this one is computed; NULL if it is so
 * long that it would not stay in the cache. */
enum { SOFTMAX_NEAR = HARD(64, 32 << 10) };
#define softmax_next(row, n) ((n) * (int64_t)sizeof *(row) <= SOFTMAX_NEAR ? (row) + (n) : NULL)

static inline ed_tensor *softmax_sum_along(ed_tensor *x, int64_t axis)
{
    return ed_reduce_sum(x, .axis = ED_AXES(axis), .keepdims = true);
}

/* For references: softmax or its logarithm of n numbers, `apart` from each other. */
void softmax_plain(const double *x, double *y, int64_t n, int64_t apart, bool logarithm);

#endif
