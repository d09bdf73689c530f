/*
 * What the families of shape, joining and indexing ops share.
 */
#ifndef EDDY_OPS_SHAPE_H
#define EDDY_OPS_SHAPE_H

#include "ops/execute.h"
#include "ops/ops.h"

/* The operand of an op that moves elements: x of any dtype, which the result has too. */
#define SHAPE_OPERAND                                                                              \
    {                                                                                              \
        {                                                                                          \
            "x", ED_SET_ALL, 'T'                                                                   \
        }                                                                                          \
    }

/* Copies a list of an attribute, which must be given and have no more entries than a tensor has
 * dimensions. */
bool shape_of_attr(const ed_call *call, const char *name, ed_ints list, int *rank, int64_t *shape);

/* Fails: the result has more elements than memory can hold. */
bool shape_too_large(const ed_call *call);

/* The view x[begin : end : step]: its shape and strides, and the offset of its first element, in
 * elements. */
bool shape_slice(const ed_call *call, int rank, const int64_t *shape, const int64_t *strides,
                 const ed_slice_options *slice, int64_t *out_shape, int64_t *out_strides,
                 int64_t *offset);

/* Input i's elements, to the box of the output that begins at `offset` and has these strides (in
 * elements). */
void shape_place(const ed_call *call, int i, int64_t offset, const int64_t *strides);

/*
 * For references of ops that move elements: fills output 0 from input 0, element by element. source
 * gives the number of the element that belongs at an index, -1 for none, which gives `otherwise`.
 */
bool shape_plain(const ed_call *call,
                 int64_t (*source)(const ed_call *call, const ed_tensor *x, const int64_t *at),
                 double otherwise);

/* The number of the element at an index of a contiguous tensor. */
int64_t shape_number(const ed_tensor *x, const int64_t *at);

/*
 * The gradients that add: of 16-bit floats, which are for storage only, by way of float32. Both
 * take dy in the dtype of the operand.
 */
ed_tensor *shape_sum_to(ed_tensor *dy, ed_ints shape);
ed_tensor *shape_sum_axis(ed_tensor *dy, int64_t axis);

/* The gradient of pad by x of that shape, in a mode that continues x: dy [...] is that of the
 * result, a float but no 16-bit one. */
ed_tensor *shape_folded(ed_tensor *dy, const ed_pad_options *options, ed_ints shape);

/* The shape [n, ...] of n tensors of t's shape; room: for one size more than t has. */
static inline ed_ints shape_of_batch(int64_t n, const ed_tensor *t, int64_t *room)
{
    room[0] = n;
    for (int i = 0; i < t->rank; i++) room[i + 1] = t->shape[i];
    return (ed_ints){room, t->rank + 1};
}

#endif
