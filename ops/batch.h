/*
 * Many calls as one along an axis that the op has already: what batch functions (ops/op.h) of ops
 * are made of that take no leading axes, such as convolutions.
 */
#ifndef EDDY_OPS_BATCH_H
#define EDDY_OPS_BATCH_H

#include "ops/op.h"

/*
 * Where the calls of a tensor go: into an axis of one call's tensor, whose size becomes so many
 * times as large. The axis consists of `groups` equal parts; the calls stand within each, one after
 * the other. {0, 1}: the examples of the first call, those of the second, ...
 */
typedef struct batch_place {
    int axis; /* -1: nowhere, the tensor is the same for all calls */
    int64_t groups;
} batch_place;

/*
 * One call of the op with the calls of operand i at operands[i] and those of output i at
 * outputs[i]. Of an operand that has a place and does not differ, each call has the same. attrs: of
 * that call. One call after the other if an operand differs that has no place.
 */
ed_list *batch_along(const ed_batch_call *call, const batch_place *operands,
                     const batch_place *outputs, const void *attrs);

/* A copy of the attributes for n calls: the INTS `shape`, if there are such, with the size of that
 * axis n times as large. NULL on failure. */
void *batch_attrs(const ed_batch_call *call, int axis);

/* The field of that name of a copy of the attributes; NULL: there is none. */
void *batch_field(const ed_op *op, void *attrs, const char *name);

/* The field of that name of each call's own attributes; NULL: there is none. */
const void *batch_option(const ed_batch_call *call, const char *name);

/* Batch functions of ops whose first axis is that of examples, which have nothing to do with one
 * another: of all operands and outputs / of the first operand and the outputs. */
ed_list *batch_examples(const ed_batch_call *call);
ed_list *batch_first_examples(const ed_batch_call *call);

/* The calls are a new last axis of the outputs and of those operands i that have the bit 1 << i in
 * operand_bits: for ops whose slices may have any axes. An attribute `shape` has it, too. One call
 * after the other if another operand differs. */
ed_list *batch_last(const ed_batch_call *call, unsigned operand_bits);

#endif
