/*
 * What the ops on segments share.
 */
#ifndef EDDY_OPS_SEGMENTS_H
#define EDDY_OPS_SEGMENTS_H

#include "ops/execute.h"

/* How the slices of a segment are folded; the means for references only. */
typedef enum segment_kind {
    SEGMENT_SUM,
    SEGMENT_PROD,
    SEGMENT_MAX,
    SEGMENT_MIN,
    SEGMENT_KINDS,
    SEGMENT_MEAN = SEGMENT_KINDS,
    SEGMENT_SQRT_N
} segment_kind;

/* Fails unless the ids' shape (input 1) is the beginning of x's (input 0). */
bool segment_check_shapes(const ed_call *call, const ed_tensor *x, const ed_tensor *ids);

/* The reference of a kind; `absent`: what the maximum or minimum of no slice is. */
bool segment_plain(const ed_call *call, segment_kind kind, double absent);

/* y[i] = x[ids[i]], 0 for a negative id: what flows back to the slices. */
ed_tensor *segment_slices(ed_tensor *x, ed_tensor *ids);

/* The gradient of the products. */
bool segment_products_gradient(const ed_gradient_call *g);

#endif
