/*
 * How reductions go through memory: what reduce.c, which folds, shares with reduce_best.c, which
 * compares.
 *
 * Outputs are cut in items that lie along one kept dimension, the line; an item's elements are
 * walked in one of two ways:
 *
 *     by groups   each output's elements adjoin in memory (or are gathered block by block):
 *                 the sums of a matrix' rows
 *     by rows     neighbouring outputs' elements adjoin, so whole rows are folded at a time:
 *                 the sums of its columns
 *
 * and in pieces of fixed size, so that few outputs of many elements keep all threads busy too.
 */
#ifndef EDDY_OPS_REDUCE_PLAN_H
#define EDDY_OPS_REDUCE_PLAN_H

#include "ops/reduce.h"

enum { REDUCE_MANY = 64 }; /* blocks of a piece, by groups */

/*
 * A tensor as a reduction sees it: the dimensions that stay and those that go, each list in logical
 * order, neighbours that memory joins merged, sizes of 1 dropped.
 */
typedef struct reduce_layout {
    int n_kept, n_gone;
    int64_t kept[ED_MAX_RANK], kept_strides[ED_MAX_RANK];
    int64_t gone[ED_MAX_RANK], gone_strides[ED_MAX_RANK];
    int64_t outputs, count;
} reduce_layout;

typedef struct reduce_plan {
    reduce_layout layout;
    const char *x;
    size_t element;
    int64_t ahead;        /* bytes by which adjoining elements are prefetched; 0: x is near */
    bool by_rows, adjoin; /* adjoin: by groups, and no gathering */
    int line; /* the kept dimension along which an item's outputs lie; -1: there is one output */
    int64_t line_extent, line_stride, line_apart; /* apart: of its outputs */
    int64_t width, chunks, items;
    int64_t piece, pieces; /* elements of one output that are folded by one thread, and how many
                              times that is */
} reduce_plan;

/* An item's first element and first output, and how many outputs it has. */
typedef struct reduce_item {
    const char *x;
    int64_t output, width;
} reduce_item;

/* The layout of x for the dimensions in `mask`; the way through memory, whose blocks are read
 * `twice` or once. */
void reduce_make_layout(reduce_layout *l, const ed_tensor *x, unsigned mask);
void reduce_make_plan(reduce_plan *p, const ed_tensor *x, unsigned mask, bool twice);

/* The item of that number. */
reduce_item reduce_find_item(const reduce_plan *p, int64_t number);

/* n elements, `stride` apart, side by side. */
void reduce_copy_run(char *to, const char *from, int64_t n, int64_t stride, size_t element);

/* n elements of the output at x from number `first` on: where they lie if they adjoin, else
 * gathered in `to`. */
const void *reduce_fetch(const reduce_plan *p, const char *x, int64_t first, int64_t n, char *to);

/* The addresses of rows first..first+n-1 at x. */
void reduce_find_rows(const reduce_plan *p, const char *x, int64_t first, int64_t n,
                      const void **rows);

/* Pieces that a thread takes at a time: the whole if more threads don't pay. */
int64_t reduce_grain(const ed_tensor *x, int64_t total);

#endif
