/*
 * What resize.c and resize.simd.c have to say to each other.
 */
#ifndef EDDY_OPS_RESIZE_CALL_H
#define EDDY_OPS_RESIZE_CALL_H

#include "ops/execute.h"
#include "ops/resize.h"

/* Images [batch, y->in, x->in, channels] to [batch, y->out, x->out, channels], neither empty; the
 * weights are of the result's dtype. false without memory. */
bool resize_run(const ed_tensor *from, const ed_tensor *to, const resize_axis *y,
                const resize_axis *x);

#endif
