/*
 * What can be done with values. What computes is an op (ops/op.h) or made of ops, and takes tensors
 * and variables. The headers below have one family each.
 *
 * Where nothing else is said: operands of one call agree in dtype; the result has that dtype;
 * shapes broadcast as NumPy's do; the result is a new tensor; arithmetic takes float32, float64,
 * int32, int64 and uint8 (integers wrap around), mathematical functions float32 and float64; NaN
 * goes in and comes out; gradients of both orders exist.
 *
 * How a call is written follows from the prototype (calls.h, made by tools/calls.sh):
 *
 *     ed_tensor *ed_mul(ed_tensor_like *a, ed_tensor_like *b);
 *         ed_mul(x, 2.0): a tensor_like may be a number. (ed_mul)(x, y) is the function itself.
 *
 *     ed_tensor *ed_reduce_sum_with(ed_tensor *x, const ed_reduce_options *options);
 *         ed_reduce_sum(x, .axis = ED_AXES(-1), .keepdims = true): options by name, from the list
 *         ED_REDUCE_OPTIONS. The plain function takes a pointer to them, NULL for the defaults.
 *
 *     ed_tensor *ed_svd_with(..., ed_tensor **u, ed_tensor **v, ...);
 *         the first result is returned, others are stored where the pointers say, as NULL on
 *         failure; NULL: not wanted.
 */
#ifndef EDDY_OPS_H
#define EDDY_OPS_H

#include "ops/create.h"
#include "ops/math.h"
#include "ops/activation.h"
#include "ops/linalg.h"
#include "ops/reduction.h"
#include "ops/array.h"
#include "ops/indexing.h"
#include "ops/sparse.h"
#include "ops/convolution.h"
#include "ops/normalization.h"
#include "ops/image.h"
#include "ops/losses.h"
#include "ops/sequence.h"
#include "ops/random.h"
#include "ops/variables.h"

#include "ops/calls.h"

#endif
