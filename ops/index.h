/*
 * What ops that take indices share: reading and checking them, and sums at indices.
 */
#ifndef EDDY_OPS_INDEX_H
#define EDDY_OPS_INDEX_H

#include "ops/execute.h"

/* The largest of all indices of a contiguous tensor, at least -1, the least, at most 0, and whether
 * each is at least the one before. */
typedef struct index_order {
    int64_t largest, least;
    bool sorted;
} index_order;
index_order index_order_of(const ed_tensor *indices);

/* The largest of the indices begin..begin+n-1 of a contiguous tensor. */
int64_t index_largest(const ed_tensor *indices, int64_t begin, int64_t n);

/* Index i of a contiguous tensor. */
int64_t index_at(const ed_tensor *indices, int64_t i);

/* Indices begin..begin+n-1 of a contiguous tensor as int64: its own elements, or in the room. */
const int64_t *index_some(const ed_tensor *indices, int64_t begin, int64_t n, int64_t *room);

/* Whether each of n indices is in 0..bound-1. */
bool index_inside(const int64_t *some, int64_t n, int64_t bound);

/* All indices of a contiguous tensor as int64: its own elements, or an array of their values. NULL
 * without memory; index_drop gives them back. */
const int64_t *index_wide(const ed_tensor *indices);
void index_drop(const ed_tensor *indices, const int64_t *all);

/* Whether all indices are in 0..bound-1; else an error names the first one that is not and its
 * position. */
bool index_check(const ed_call *call, const ed_tensor *indices, int64_t bound);

/* All indices, checked so, as int64. NULL on failure. */
const int64_t *index_read(const ed_call *call, const ed_tensor *indices, int64_t bound);

/* Keeps that error; always false. */
bool index_refuse(const ed_call *call, int64_t index, int64_t at, int64_t bound);

/*
 * Indices [..., k] of elements or slices of a tensor, as numbers of its rows: dims are the sizes of
 * the first batch + k axes, of which the first `batch` are the indices', too. Writes one number for
 * each index; false, with an error, if an index is out of bounds.
 */
bool index_rows(const ed_call *call, const ed_tensor *indices, const int64_t *dims, int batch,
                int64_t *rows);

/* y[i] = x[rows[i]], rows having `width` elements. */
void index_gather(ed_dtype dtype, const char *x, int64_t width, const int64_t *rows, int64_t count,
                  char *y);

/* A hash of a number's bits, of which the upper ones are best. One multiplication would put numbers
 * at some regular distances, Fibonacci's, side by side. */
static inline uint64_t index_hash(uint64_t bits)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    bits *= odd;
    return (bits ^ bits >> 32) * odd;
}

/* shape[from] * ... * shape[to - 1]. */
int64_t index_product(const int64_t *shape, int from, int to);

/*
 * Zeros with `size` along the axis, to which the slices of dy are added at the indices, the first
 * batch_dims axes being shared: gather's gradient, whose own is gather. 16-bit floats are added in
 * float32.
 */
ed_tensor *index_sum(ed_tensor *dy, ed_tensor *indices, int64_t axis, int64_t batch_dims,
                     int64_t size);

/* What index_rows computes, as a tensor int64: for gradients. */
ed_tensor *index_row_numbers(ed_tensor *indices, ed_ints dims, int64_t batch_dims);

/* Zeros of a shape, to which the elements of dy are added where take_along_axis takes them: its
 * gradient. */
ed_tensor *index_along_sum(ed_tensor *dy, ed_tensor *indices, ed_ints shape, int64_t axis);

#endif
