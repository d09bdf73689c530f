/*
 * log cosh x, element by element: a kernel, since no public ops say it with its slope at 0 and
 * without overflow.
 */
#include "ops/elementwise.h"
#include "ops/keras_losses.h"
#include "ops/ops.h"
#include <math.h>

/* log_cosh_each: y = |x| + log(1 + e^-2|x|) - log 2, dx = dy tanh x */
VECTOR_LOOPS1(log_cosh_each, vabs(x) + (vsoftplus(vabs(x) * -2) - vset(x, M_LN2)));
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
