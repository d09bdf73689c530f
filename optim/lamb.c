/* LAMB and LARS, whose steps are as long as their variables. */
#include "ops/ops.h"
#include "optim/optimizer.h"

static ed_tensor *norm_of(ed_tensor *x)
{
    return ed_sqrt(ed_reduce_sum_square(x));
}

/* |w| / |step|, 1 if one of them is 0. */
static ed_tensor *trust(ed_tensor *w, ed_tensor *step)
{
    ed_tensor *a = norm_of(w), *b = norm_of(step);
    if (!a || !b) return NULL;
    ed_tensor *both = ed_logical_and(ed_greater(a, 0.0), ed_greater(b, 0.0));
    return ed_where(both, ed_div_no_nan(a, b), ed_ones_like(a));
}

/* a += (b - a) share */
static ed_tensor *towards(ed_tensor *a, ed_tensor *b, double share)
{
    return ed_add(a, ed_mul(ed_sub(b, a), share));
}

static bool lamb_whole(const ed_optimizer *optimizer, optim_whole *x)
{
    const ed_optimizer_lamb_options *o = optim_options(optimizer);
    const ed_dtype dtype = x->variable->dtype;
    ed_tensor *m = towards(x->slots[0], x->g, 1 - o->beta_1);
    ed_tensor *v = towards(x->slots[1], ed_square(x->g), 1 - o->beta_2);
    ed_tensor *mean = ed_div(m, optim_complement(dtype, o->beta_1, x->step));
    ed_tensor *root = ed_sqrt(ed_div(v, optim_complement(dtype, o->beta_2, x->step)));
    ed_tensor *step = ed_div(mean, ed_add(root, o->epsilon));
    x->w = ed_sub(x->w, ed_mul(ed_mul(trust(x->w, step), x->rate), step));
    x->slots[0] = m;
    x->slots[1] = v;
    return x->w;
}

OPTIMIZER(lamb, LAMB, "Adam with steps as long as the variable, for large batches",
          .slots = {"momentum", "velocity"}, .together = 2, .lists = {"_momentums", "_velocities"},
          .whole = lamb_whole)

static bool lars_whole(const ed_optimizer *optimizer, optim_whole *x)
{
    const ed_optimizer_lars_options *o = optim_options(optimizer);
    ed_tensor *g = x->decay > 0 ? ed_add(x->g, ed_mul(x->w, x->decay)) : x->g;
    ed_tensor *step = ed_mul(g, x->rate);
    if (x->variable->rank > 1) {
        ed_tensor *a = norm_of(x->w), *b = norm_of(g);
        ed_tensor *both = ed_logical_and(ed_greater(a, 0.0), ed_greater(b, 0.0));
        step = ed_mul(step, ed_where(both, ed_mul(ed_div_no_nan(a, b), o->eeta), ed_ones_like(a)));
    }
    ed_tensor *v = ed_add(ed_mul(x->slots[0], o->momentum), step);
    x->w = ed_sub(x->w, o->nesterov ? ed_add(ed_mul(v, o->momentum), step) : v);
    x->slots[0] = v;
    return x->w;
}

OPTIMIZER(lars, LARS, "momentum with steps as long as the variable, for large batches",
          .slots = {"momentum"}, .together = 1, .lists = {"_momentums"}, .own_decay = true,
          .whole = lars_whole)
