/*
 * Whole numbers meet floats as floats, as Lua's do. Which operands may be cast, and to what,
 * follows from the sets of dtypes and the type letters in the op table.
 */
#ifndef EDDY_LUA_PROMOTION_H
#define EDDY_LUA_PROMOTION_H

#include "eddy.h"

/* The number of an op's operands; the one that input i is (of a list all are the last one); whether
 * inputs i and k must agree in dtype. */
int promotion_operands(const ed_op *op);
const ed_operand *promotion_operand(const ed_op *op, int i);
bool promotion_agree(const ed_op *op, int i, int k);

/* Whether it is a tensor of whole numbers, which become floats where they meet some. */
static inline bool promotion_is_integer(const ed_tensor *t)
{
    return (ED_SET_INDEX | 1 << ED_UINT8) & 1u << ed_dtype_of(t) && !ed_is_weak(t);
}

/*
 * The dtype that whole numbers become as operand i of the n inputs: that of a float tensor with
 * which it has to agree; float32 beside a plain number that is a float, or where the op takes no
 * whole numbers. NONE: they stay.
 */
ed_dtype promotion_dtype(const ed_op *op, ed_tensor *const *inputs, int n, int i);

/* Casts those of the n inputs that are whole numbers and have to be floats, given the attributes
 * (NULL: none). Inside a scope; false with an error. */
bool promotion_cast(const ed_op *op, ed_tensor **inputs, int n, const void *attrs);

/* For calls: the same, and mostly there are no whole numbers at all. */
static inline bool promotion(const ed_op *op, ed_tensor **inputs, int n, const void *attrs)
{
    bool any = false;
    for (int i = 0; i < n; i++) any |= promotion_is_integer(inputs[i]);
    return __builtin_expect(!any, 1) || promotion_cast(op, inputs, n, attrs);
}

/* The tensor, whole numbers as float32: for functions that are for floats. */
ed_tensor *promotion_floats(ed_tensor *t);

#endif
