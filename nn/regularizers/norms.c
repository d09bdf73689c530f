#include "nn/regularizers/regularizer.h"
#include "ops/ops.h"

REGULARIZER(l2, L2, 0, "l2 sum(x^2)")
{
    const l2_options *o = options;
    return ed_mul(ed_reduce_sum(ed_square(x)), o->l2);
}
