#include "optim/constraint.h"
#include "ops/ops.h"

#define EPSILON 1e-7 /* keras.config.epsilon() */

CONSTRAINT(non_neg, NON_NEG, 0, "max(w, 0)")
{
    (void)options;
    return ed_maximum(w, 0.0);
}

/* The 2-norms of the vectors along the axes, which stay with size 1. */
static ed_tensor *norms_of(const char *who, ed_tensor *w, ed_ints axis)
{
    static const int64_t first[] = {0};
    if (!axis.values) axis = (ed_ints){first, 1};
    if (!w->rank)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: w has rank 0, there is no axis of a vector", who);
    return ed_sqrt(ed_reduce_sum_square(w, .axis = axis, .keepdims = true));
}

static ed_tensor *with_norms(ed_tensor *w, ed_tensor *norms, ed_tensor *wanted)
{
    return ed_mul(w, ed_div(wanted, ed_add(norms, EPSILON)));
}

CONSTRAINT(max_norm, MAX_NORM, 0, "norms of at most max_value")
{
    const max_norm_options *o = options;
    ed_tensor *norms = norms_of("max_norm", w, o->axis);
    return with_norms(w, norms, ed_minimum(norms, o->max_value));
}

CONSTRAINT(unit_norm, UNIT_NORM, 0, "norms of 1")
{
    const unit_norm_options *o = options;
    return ed_div(w, ed_add(norms_of("unit_norm", w, o->axis), EPSILON));
}

CONSTRAINT(min_max_norm, MIN_MAX_NORM, 0, "norms from min_value to max_value")
{
    const min_max_norm_options *o = options;
    ed_tensor *norms = norms_of("min_max_norm", w, o->axis);
    ed_tensor *clipped = ed_maximum(ed_minimum(norms, o->max_value), o->min_value);
    return with_norms(w, norms, ed_add(ed_mul(clipped, o->rate), ed_mul(norms, 1 - o->rate)));
}
