/* What ops/sort.c and its loops for each instruction set, ops/sort.simd.c, share. */
#ifndef EDDY_OPS_SORT_H
#define EDDY_OPS_SORT_H

#include "ops/kernels/isa.h"
#include "tensor/core.h"
#include "tensor/typed.h"
#include <stdbool.h>

/* A key that does not fit into one number with its index. */
typedef struct sort_item_pair {
    uint64_t key;
    int64_t index;
} sort_item_pair;

/* Lines of n elements, each `stride` behind the one before, are sorted. */
typedef struct sort_work {
    int64_t n, stride, k, room;
    bool descending;
} sort_work;

/* A line whose elements become items, or whose results are read from these. `place`: the number of
 * the element or result whose item is the first there. */
typedef struct sort_line {
    const sort_work *work;
    const void *from;
    void *to;
    int64_t place;
} sort_line;

/* Of one dtype: a line's elements first..last-1 become keys, or keys with indices, and back: their
 * values, or the indices alone; `user` is a sort_line. */
typedef struct sort_converter {
    void (*make_keys)(int64_t first, int64_t last, int worker, void *user);
    void (*read_keys)(int64_t first, int64_t last, int worker, void *user);
    void (*make_pairs)(int64_t first, int64_t last, int worker, void *user);
    void (*read_pairs)(int64_t first, int64_t last, int worker, void *user);
} sort_converter;
ISA_DECLARE_TABLE(sort_converter, sort_converters, [ED_DTYPE_COUNT]);

/* What one thread sorts of a long line: n items, those with keys first..last, which come behind
 * `begin` others. */
typedef struct sort_share {
    uint64_t first, last;
    int64_t begin, n;
} sort_share;

/*
 * Items parted in four. `last` are the largest keys of the first three. The first and the third
 * grow upwards, `at` being where their next item goes; the second and the fourth grow downwards,
 * `at` being their lowest item:
 *
 *     | first ->   SORT_GAP or more   <- second |    | third ->   SORT_GAP or more   <- fourth |
 *
 * The first and the third are stored by whole vectors, which end in the gap, the others by parts of
 * vectors, since what lies above is taken.
 */
typedef struct sort_quarters {
    uint64_t last[3];
    void *at[4];
} sort_quarters;

enum {
    SORT_GAP = 16, /* items of a vector, at most, see sort_quarters */
    SORT_NETWORK_BYTES = 4096,
    SORT_WIDE_BITS = 11, /* of a digit, where there are many items */
    SORT_WIDE_DIGITS = 3
};

/* For items of 4 and of 8 bytes, by vectors; NULL where the set's are no help. */
typedef struct sort_vectors {
    /* Sorts n items of at most SORT_NETWORK_BYTES, in place or to another place. */
    void (*network)(const void *from, void *to, int64_t n);
    /* About their median. */
    uint64_t (*pivot)(const void *items, int64_t n);
    /* Those up to `most` go to the front of `low`, the others to that of `high`, of which one may
     * be where they come from; how many are low. */
    int64_t (*part)(const void *from, void *low, void *high, int64_t n, uint64_t most);
    /* How many of n items are up to `most`. */
    int64_t (*count)(const void *items, int64_t n, uint64_t most);
    /* Appends to *to those of n items that are a share's, until too little room is left before
     * `end`; how many were looked at. */
    int64_t (*take)(const void *from, int64_t n, const sort_share *share, void **to,
                    const void *end);
    /* Sets the quarters' largest keys, so that each has about as many of n items, of which there
     * is at least a vector; and appends items to them. Both NULL where two parts are as fast. */
    void (*quartiles)(const void *items, int64_t n, sort_quarters *q);
    void (*quarter)(const void *items, int64_t n, sort_quarters *q);
    /* More items are sorted sooner digit by digit, if they have SORT_WIDE_DIGITS or fewer. */
    int64_t most;
} sort_vectors;
ISA_DECLARE_TABLE(sort_vectors, sort_vectors_table, [2]);

/* Items that top_k gathers: keys with indices. Elements are tested TOP_BLOCK at a time, and a block
 * needs room for all of them. */
enum { TOP_BLOCK = 64 };
typedef struct top_items {
    void *items;
    int64_t count, room;
} top_items;

/* Of one dtype. maxima: the largest of each group, of which element i belongs to group i % groups;
 * rows * groups elements are looked at. gather: appends the elements from `first` on that are at
 * least *least, until the items' room is full or all n are seen; how many have been. */
typedef struct top_loops {
    void (*maxima)(const void *x, int64_t rows, int64_t groups, void *maxima);
    int64_t (*gather)(const void *x, int64_t first, int64_t n, const void *least, top_items *to);
} top_loops;
ISA_DECLARE_TABLE(top_loops, top_loops_table, [ED_DTYPE_COUNT]);

#endif
