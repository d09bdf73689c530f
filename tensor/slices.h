/*
 * Indexed slices: a tensor whose elements are 0 but for some slices along the first axis, such as
 * the gradient of a table of which a batch gathered some rows. It is a tensor like any other for
 * who reads it: the elements are made then. Who knows of it (sums of gradients, clipping,
 * optimizers) uses the slices alone.
 */
#ifndef EDDY_TENSOR_SLICES_H
#define EDDY_TENSOR_SLICES_H

#include "tensor/core.h"

typedef struct slices {
    ed_tensor base;     /* dtype, shape, size; no data */
    ed_tensor *values;  /* [n, ...], contiguous */
    ed_tensor *indices; /* int64 [n], contiguous, each within the first axis */
    bool unique;        /* the indices ascend, and none comes twice; else values of one are added */
    ed_tensor *dense;   /* once it was read */
    ed_tensor *(*to_dense)(
        const struct slices *); /* a new tensor with a reference for the caller */
} slices;

/* The slices of a tensor; NULL if it has none. */
static inline slices *slices_of(const ed_tensor *t)
{
    return t->flags & TENSOR_SLICES ? (slices *)t : NULL;
}

/* New slices without values and indices, with one reference that belongs to nobody yet. NULL on
 * failure. */
slices *slices_new(ed_dtype dtype, int rank, const int64_t *shape,
                   ed_tensor *(*to_dense)(const slices *));

#endif
