/*
 * Resampling of images along two axes: what resize.c says of each output along an axis, and the
 * loops of resize.simd.c that use it.
 */
#ifndef EDDY_OPS_RESIZE_H
#define EDDY_OPS_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Along one axis: output i is the sum of count[i] inputs from first[i] on, times the weights from
 * number i * most on, which are of the result's dtype. */
typedef struct resize_axis {
    int64_t in, out;       /* sizes */
    int64_t most, largest; /* no count is larger than most; the largest count, at least 1 */
    int64_t inner;         /* the first so many outputs use no last input, and are not the last */
    int64_t *first, *count;
    void *weights;
} resize_axis;

/* Loops for elements of one dtype; for those of uint8 there is `down` alone. */
typedef struct resize_loops {
    /* A row of axis->in cells with so many channels to one of axis->out cells. */
    void (*across)(const resize_axis *axis, int64_t channels, const void *from, void *to);
    /* n elements of the result's dtype: the sum of `count` rows times their weights. */
    void (*down)(const void *const *rows, const void *weights, int64_t count, int64_t n, void *to);
    /* The same past the caches, for n of whole vectors and an aligned `to`; copy_stream_end must
     * follow the last row. */
    void (*past)(const void *const *rows, const void *weights, int64_t count, int64_t n, void *to);
    /* across and past in one, where neither axis has sums of more than two. */
    void (*both)(const resize_axis *axis, int64_t channels, const void *const *rows,
                 const void *weights, int64_t count, void *to);
} resize_loops;

#endif
