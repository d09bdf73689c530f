/*
 * Seeds of stateless ops: operands of two integers.
 */
#ifndef EDDY_OPS_STATELESS_H
#define EDDY_OPS_STATELESS_H

#include "ops/execute.h"
#include "ops/kernels/philox.h"

/* Fails, in the name of the call, unless input i is a seed: int32 or int64 [2], as its operand's
 * set of dtypes says. */
bool stateless_check(const ed_call *call, int i);

/* The Philox state of the seed that is input i; for references, whose inputs are float64, too.
 * false without memory. */
bool stateless_seed(const ed_call *call, int i, philox *p);

#endif
