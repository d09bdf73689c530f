/*
 * log cosh x, element by element: a kernel, since no public ops say it with its slope at 0 and
 * without overflow.
 */
#include "ops/elementwise.h"
#include "ops/keras_losses.h"
#include "ops/ops.h"
#include <math.h>

/* log_cosh_each: y = |x| + log(1 + e^-2|x|) - log 2, and log(1 + 2 sinh^2(x / 2)) up to 2, which
 * does not cancel at 0; dx = dy tanh x */
#ifdef ISA
VECTOR_INLINE vf32 vlog_cosh_f32(vf32 x)
{
    const vf32 size = vabs_f32(x), near = vmin_f32(size, vset(x, 2)), s = vsinh_f32(0.5f * near);
    const vf32 far = size + (vsoftplus_f32(-2 * size) - (float)M_LN2);
    return vselect_f32(size <= 2, vlog1p_f32(2 * s * s), far);
}
VECTOR_INLINE vf64 vlog_cosh_f64(vf64 x)
{
    const vf64 size = vabs_f64(x), near = vmin_f64(size, vset(x, 2)), s = vsinh_f64(0.5 * near);
    const vf64 far = size + (vsoftplus_f64(-2 * size) - M_LN2);
    return vselect_f64(size <= 2, vlog1p_f64(2 * s * s), far);
}
#define vlog_cosh(x) VECTOR_CHOOSE(vlog_cosh, x)(x)
#endif
VECTOR_LOOPS1(log_cosh_each, vlog_cosh(x));
PLAIN(log_cosh_each, fabs(x[0]) + log1p(exp(-2 * fabs(x[0]))) - M_LN2);

#ifndef ISA
GRADIENT1(log_cosh_each, ed_mul(dy, ed_tanh(x)));

ELEMENTWISE(log_cosh_each, "y = log cosh x", ONE(ED_SET_FLOAT), .flags = ED_OP_INTERNAL,
            .gradient = log_cosh_each_gradient, SAVES_X, .samples = SAMPLES1(-4, 4));

ed_tensor *losses_log_cosh(ed_tensor *x)
{
    return CALL_OP(log_cosh_each, NULL, x);
}
#endif
