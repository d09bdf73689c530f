/*
 * Reductions: how the ops (reductions.c), the driver (reduce.c, reduce_best.c; their way through
 * memory is reduce_plan.h) and the loops (reduce.simd.c) share the work.
 *
 * A reduction folds, for each output, `count` elements in their logical order. They are cut in
 * blocks of 512, whatever the memory looks like; a loop turns a block into a state, one or two
 * numbers (a sum; mean and sum of squares; largest and sum of exponentials); states of neighbouring
 * blocks merge pairwise, 0 with 1, 2 with 3, then those. So the error of a sum grows with the
 * logarithm of the count, and the bits depend on the elements and their order alone: not on
 * strides, threads or instruction set.
 *
 *     state of `width` outputs:   first[0] first[1] ... | second[0] second[1] ...
 *                                 <--- reduce_step ---->
 */
#ifndef EDDY_OPS_REDUCE_H
#define EDDY_OPS_REDUCE_H

#include "ops/execute.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"

enum {
    REDUCE_BLOCK = 512,        /* elements of one output that a loop folds at once */
    REDUCE_WIDTH_BYTES = 4096, /* at most, of a row that outputs lie in side by side */
    REDUCE_SCRATCH = 17,       /* halves of a state that `rows` has room for meanwhile */
};

/* Room for one of a state's halves: whole vectors of every instruction set, for any dtype. */
static inline int64_t reduce_step(int64_t width)
{
    return (width + 15) / 16 * 16;
}

typedef struct reduce_loops {
    /* Groups of n adjoining elements, one at x, the next `apart` elements on, ...: the states of
     * all into `state`. What lies so many bytes ahead of each is prefetched, unless that is 0. */
    void (*groups)(const void *x, int64_t apart, int64_t groups, int64_t n, int64_t ahead,
                   void *state);
    /* Side by side: output c's elements are rows[0][c], rows[1][c], ... */
    void (*rows)(const void *const *rows, int64_t n, int64_t width, void *state, void *scratch);
    /* a takes in its right neighbour b; they stand for n_a and n_b elements. */
    void (*merge)(void *a, const void *b, int64_t width, int64_t n_a, int64_t n_b);
    /* What `count` elements folded to the state come to, into y[0], y[apart], ...; of a variance
     * the mean too, unless NULL. */
    void (*finish)(const void *state, int64_t width, int64_t count, void *y, void *mean,
                   int64_t apart);
} reduce_loops;

/* Kinds of reduction; rows of the table of loops. */
typedef enum reduce_kind {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_PROD,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_VARIANCE,
    REDUCE_STD,
    REDUCE_SQUARES,   /* the sum of squares */
    REDUCE_EUCLIDEAN, /* the root of the sum of squares */
    REDUCE_LOGSUMEXP,
    REDUCE_KINDS
} reduce_kind;

/* The loops of a kind for a dtype, for the machine at hand; any and all are max and min of bool. */
const reduce_loops *reduce_loops_for(reduce_kind kind, ed_dtype dtype);

/*
 * Folds the dimensions in `mask` of x into y, contiguous and of x's dtype; of a variance the mean
 * into `mean`, unless NULL. False without memory.
 */
bool reduce_run(reduce_kind kind, const ed_tensor *x, unsigned mask, void *y, void *mean);

/*
 * For references: the sum or product of x in the order of ops/kernels/lanes.h (for up to 32
 * numbers), which decides whether huge numbers overflow before they meet their opposites.
 */
double reduce_plain(bool product, const double *x, int64_t n);

/* For argmax and argmin: index of the best of each output's elements, first of equals. */
typedef struct reduce_best_loops {
    /* The best of n adjoining numbers into *value, leaving out NaN; NaN if
     * there is nothing else. */
    void (*value)(const void *x, int64_t n, bool smallest, void *value);
    /* Whether a beats b: b is NaN and a is not, or a is better. */
    bool (*beats)(const void *a, const void *b, bool smallest);
    /* The first index whose element equals *value; -1 if there is none. */
    int64_t (*find)(const void *x, int64_t n, const void *value);
    /* Groups of n adjoining numbers, one at x, the next `apart` on, ...: the best of each, and
     * where it is; NaN and 0 of nothing else. */
    void (*groups)(const void *x, int64_t apart, int64_t groups, int64_t n, bool smallest,
                   void *values, int64_t *indices);
    /* Rows `first` and the next n - 1 against the best so far, side by side; row 0 comes first. */
    void (*rows)(const void *const *rows, int64_t n, int64_t width, int64_t first, bool smallest,
                 void *values, int64_t *indices);
    /* Index 0 where the best is NaN. */
    void (*finish)(const void *values, int64_t width, int64_t *indices);
} reduce_best_loops;

/* Those loops for a dtype, for the machine at hand. */
const reduce_best_loops *reduce_best_for(ed_dtype dtype);

/* Index of the best along the dimensions in `mask` (one), into y. */
bool reduce_best(const ed_tensor *x, unsigned mask, bool smallest, int64_t *y);

#endif
