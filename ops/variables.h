/* Values of variables, and writing them. ops.h says what holds for all. */
#ifndef EDDY_OPS_VARIABLES_H
#define EDDY_OPS_VARIABLES_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* x; gradients flow through. */
ed_tensor *ed_identity(ed_tensor_like *x);

/* A variable's present value as a tensor, which later assignments leave alone and through which
 * gradients flow to the variable; a tensor is returned as it is. */
ed_tensor *ed_value(ed_tensor *variable);

/* x, of which no gradient flows back. */
ed_tensor *ed_stop_gradient(ed_tensor *x);

/*
 * Writing a variable is not differentiable: tapes see later reads only. All these return the
 * variable. A variable that nobody else holds (a tape that saved its value, a view of it) is
 * changed in place, another gets a buffer of its own.
 */

/* variable = value, of the same shape. Nothing is copied if the value is contiguous. */
ed_tensor *ed_assign(ed_tensor *variable, ed_tensor_like *value);

/* variable += value; value broadcasts to the variable's shape. */
ed_tensor *ed_assign_add(ed_tensor *variable, ed_tensor_like *value);

/* variable -= value; value broadcasts to the variable's shape. */
ed_tensor *ed_assign_sub(ed_tensor *variable, ed_tensor_like *value);

/* variable[begin : end : step] = value, the slice as in ed_slice; value broadcasts to its shape:
 * ed_assign_slice(v, 0, .begin = ED_INTS(2)). */
ed_tensor *ed_assign_slice_with(ed_tensor *variable, ed_tensor_like *value,
                                const ed_slice_options *options);

/* variable[subscripts] = value, the subscripts as in ed_strided_slice; value broadcasts to the
 * shape of that slice: ed_assign_strided_slice(v, 0, ED_ELLIPSIS, ED_INDEX(-1)). */
ed_tensor *ed_assign_strided_slice_of(ed_tensor *variable, ed_tensor_like *value,
                                      const ed_subscript *subscripts, int64_t count);
/* The same, as it is called. */
#define ed_assign_strided_slice(variable, value, ...)                                              \
    ED_AT((ed_assign_strided_slice_of)(variable, ED_TENSOR(value), ED_SUBSCRIPTS_(__VA_ARGS__)))

/* variable[mask] = value: the mask, bool, has the variable's leading axes; value broadcasts to
 * [n, ...], n being the number of its true elements and ... the axes after it. */
ed_tensor *ed_assign_masked(ed_tensor *variable, ed_tensor *mask, ed_tensor_like *value);

/* variable = variable momentum + value (1 - momentum), of the same shape; 0 <= momentum <= 1. */
ed_tensor *ed_assign_moving_average(ed_tensor *variable, ed_tensor_like *value, double momentum);

/* The same for many variables of one dtype: all of them or, failing, none. */
bool ed_assign_moving_averages(ed_list *variables, ed_list *values, double momentum);

#pragma GCC visibility pop
#endif
