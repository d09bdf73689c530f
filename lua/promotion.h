/* Integer tensors become floats where they are combined with floats, as in Lua. Which operands
 * may be cast, and to which dtype, follows from the dtype sets and type letters in the op table. */
#ifndef EDDY_LUA_PROMOTION_H
#define EDDY_LUA_PROMOTION_H

#include "eddy.h"

/* The number of an op's operands; the operand of input i (all inputs of a list belong to the
 * last); whether inputs i and k must have the same dtype. */
int promotion_operands(const ed_op *op);
const ed_operand *promotion_operand(const ed_op *op, int i);
bool promotion_agree(const ed_op *op, int i, int k);

/* Whether it is an integer tensor that may become a float. */
static inline bool promotion_is_integer(const ed_tensor *t)
{
    return (ED_SET_INDEX | 1 << ED_UINT8) & 1u << ed_dtype_of(t) && !ed_is_weak(t);
}

/* The dtype that integers become as operand i of the n inputs: that of a float tensor with which
 * it must agree; float32 beside a plain number that is a float, or where the op does not take
 * integers. NONE: no cast. */
ed_dtype promotion_dtype(const ed_op *op, ed_tensor *const *inputs, int n, int i);

/* Casts those of the n inputs that are integers and must be floats, for the given attributes
 * (NULL: none). Inside a scope; false with an error. */
bool promotion_cast(const ed_op *op, ed_tensor **inputs, int n, const void *attrs);

/* The same for calls, fast in the usual case that there are no integers. */
static inline bool promotion(const ed_op *op, ed_tensor **inputs, int n, const void *attrs)
{
    bool any = false;
    for (int i = 0; i < n; i++) any |= promotion_is_integer(inputs[i]);
    return __builtin_expect(!any, 1) || promotion_cast(op, inputs, n, attrs);
}

/* The tensor, integers cast to float32: for functions of floats. */
ed_tensor *promotion_floats(ed_tensor *t);

#endif
