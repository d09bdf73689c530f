/*
 * norm_gradient: the gradient of layer_norm, rms_norm, group_norm and instance_norm, an op of its
 * own. It computes the statistics again: they cost less than it takes to keep them.
 */
#include "ops/batch.h"
#include "ops/layer_norm.h"
#include "ops/ops.h"
#include "ops/shape.h"
#include <string.h>

#define NORM_GRADIENT_ATTRS(FIELD, T)                                                              \
    FIELD(T, INTS, dims, ED_NO_LIST, ED_ANY, "batch, before, groups, channels of each, after")     \
    FIELD(T, FLOAT, epsilon, 1e-3, ED_FROM(0, 1e30), "added to the variance")                      \
    FIELD(T, BOOL, centred, true, ED_ANY, "whether the mean is subtracted")
ED_OPTIONS(norm_gradient_attrs, NORM_GRADIENT_ATTRS);

/* What the attributes say; false if they don't fit x. */
static bool groups_of(const norm_gradient_attrs *o, int64_t size, norm_groups *p)
{
    const int64_t *d = o->dims.values;
    int64_t product = 1;
    bool empty = false;
    if (!d || o->dims.count != 5) return false;
    for (int i = 0; i < 5; i++) {
        if (d[i] < 0 || (d[i] && __builtin_mul_overflow(product, d[i], &product))) return false;
        empty = empty || d[i] == 0;
    }
    *p = (norm_groups){d[0], d[1], d[2], d[3], d[4], o->epsilon, o->centred};
    return size == (empty ? 0 : product);
}

static bool norm_gradient_infer(ed_call *call)
{
    const norm_gradient_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[1], *gamma = norm_input(call, 2);
    norm_groups *p = ed_call_plan(call, sizeof *p);
    if (!p) return false;
    if (!groups_of(o, x->size, p))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dims must be 5 sizes with as many elements as x, got %s, x is %s",
                            text_of_ints(o->dims.values, o->dims.values ? o->dims.count : 0).s,
                            text_of_tensor(x).s);
    const int64_t channels = norm_channels(p);
    if (dy->size != x->size || (gamma && gamma->size != channels))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x is %s, dy %s; they must have the same shape, gamma %lld elements",
                            text_of_tensor(x).s, text_of_tensor(dy).s, (long long)channels);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 1, x->dtype, 1, &channels) &&
           ed_call_output(call, 2, x->dtype, 1, &channels);
}

static bool norm_gradient_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    ed_tensor *const *y = call->outputs;
    if (x->size)
        return norm_backward(call->plan, x, call->inputs[1], norm_input(call, 2), y[0], y[1], y[2]);
    for (int i = 1; i < 3; i++) memset(y[i]->data, 0, (size_t)y[i]->size * dtype_size(x->dtype));
    return true;
}

/* One group's dx, and what it adds to dgamma and dbeta. */
static void plain_group_gradient(const ed_call *call, int64_t sample, int64_t group)
{
    const norm_groups *p = call->plan;
    const double *x = (const double *)call->inputs[0]->data,
                 *dy = (const double *)call->inputs[1]->data,
                 *gamma = call->n_inputs > 2 ? (const double *)call->inputs[2]->data : NULL;
    double *dx = (double *)call->outputs[0]->data, *dgamma = (double *)call->outputs[1]->data,
           *dbeta = (double *)call->outputs[2]->data, mean, a = 0, b = 0;
    const double r = norm_plain_statistics(p, x, sample, group, &mean), n = (double)norm_count(p);
    int64_t c = 0;
    for (int64_t channel = 0; channel < p->channels; channel++) {
        double of_dy = 0, of_products = 0;
        for (int64_t j = 0; j < p->before * p->after; j++) {
            const int64_t i = (j / p->after * p->channels + channel) * p->after + j % p->after;
            const int64_t at = norm_plain_at(p, sample, group, i, &c);
            of_dy += dy[at];
            of_products += dy[at] * (x[at] - mean);
        }
        a += (gamma ? gamma[c] : 1) * of_dy;
        b += (gamma ? gamma[c] : 1) * of_products;
        dgamma[c] += of_products * r;
        dbeta[c] += of_dy;
    }
    a = p->centred ? a / n : 0;
    b = b / n * r * r;
    for (int64_t i = 0; i < norm_count(p); i++) {
        const int64_t at = norm_plain_at(p, sample, group, i, &c);
        dx[at] = r * ((gamma ? gamma[c] : 1) * dy[at] - a - (x[at] - mean) * b);
    }
}

static bool norm_gradient_reference(const ed_call *call)
{
    const norm_groups *p = call->plan;
    for (int k = 1; k < 3; k++)
        memset(call->outputs[k]->data, 0, (size_t)call->outputs[k]->size * sizeof(double));
    if (!call->inputs[0]->size) return true;
    for (int64_t g = 0; g < p->batch * p->groups; g++)
        plain_group_gradient(call, g / p->groups, g % p->groups);
    return true;
}

/* Means over a group; sums over what shares a gamma. */
static ed_tensor *group_mean(ed_tensor *x)
{
    return ed_reduce_mean(x, .axis = ED_AXES(1, 3, 4), .keepdims = true);
}

static ed_tensor *channel_sum(ed_tensor *x)
{
    return ed_reduce_sum(x, .axis = ED_AXES(0, 1, 4));
}

/* r (t - mean t - x' mean(x' t)): how changes t of x change x', and back. */
static ed_tensor *project(ed_tensor *t, ed_tensor *normal, ed_tensor *r, bool centred)
{
    ed_tensor *along = ed_mul(normal, group_mean(ed_mul(normal, t)));
    if (centred) t = ed_sub(t, group_mean(t));
    return ed_mul(r, ed_sub(t, along));
}

/*
 * norm_gradient: with x' = (x - mean) r and P(t) = r (t - mean t - x' mean(x' t)),  dx = P(gamma
 * dy), dgamma = sum dy x', dbeta = sum dy. What flows back for u, v, w flowing into the three: to
 * dy gamma P(u) + v x' + w, to gamma sum P(u) dy, and to x P(h) - s r^2 x' where
 *     h = v dy - r (u d + gamma dy a),   a = mean(u x'), d = mean(gamma dy x'),
 *     s = mean(u gamma dy) - mean u mean(gamma dy) - a d.
 */
static bool norm_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const norm_gradient_attrs *o = g->attrs;
    const bool centred = o->centred;
    const ed_ints dims = o->dims, channel = ED_SHAPE(1, 1, dims.values[2], dims.values[3], 1);
    ed_tensor *x = ed_reshape(g->inputs[0], dims), *dy = ed_reshape(g->inputs[1], dims);
    ed_tensor *gamma = g->n_inputs > 2 ? ed_reshape(g->inputs[2], channel) : NULL;
    ed_tensor *u = g->dy[0] ? ed_reshape(g->dy[0], dims) : ed_zeros_like(x);
    ed_tensor *v = g->dy[1] ? ed_reshape(g->dy[1], channel) : NULL;
    ed_tensor *w = g->dy[2] ? ed_reshape(g->dy[2], channel) : NULL;
    ed_tensor *off = centred ? ed_sub(x, group_mean(x)) : x;
    ed_tensor *r = ed_rsqrt(ed_add(group_mean(ed_square(off)), o->epsilon));
    ed_tensor *normal = ed_mul(off, r), *k = gamma ? ed_mul(gamma, dy) : dy;
    if (g->needs[0]) {
        ed_tensor *a = group_mean(ed_mul(u, normal)), *d = group_mean(ed_mul(k, normal));
        ed_tensor *s = ed_sub(group_mean(ed_mul(u, k)), ed_mul(a, d));
        if (centred) s = ed_sub(s, ed_mul(group_mean(u), group_mean(k)));
        ed_tensor *h = ed_neg(ed_mul(r, ed_add(ed_mul(u, d), ed_mul(k, a))));
        if (v) h = ed_add(h, ed_mul(v, dy));
        ed_tensor *to_x =
            ed_sub(project(h, normal, r, centred), ed_mul(ed_mul(s, ed_square(r)), normal));
        g->dx[0] = ed_keep(ed_reshape(to_x, g->shapes[0]));
    }
    ed_tensor *through = project(u, normal, r, centred);
    if (g->needs[1]) {
        ed_tensor *to_dy = gamma ? ed_mul(gamma, through) : through;
        if (v) to_dy = ed_add(to_dy, ed_mul(v, normal));
        if (w) to_dy = ed_add(to_dy, w);
        g->dx[1] = ed_keep(ed_reshape(to_dy, g->shapes[1]));
    }
    if (gamma && g->needs[2])
        g->dx[2] = ed_keep(ed_reshape(channel_sum(ed_mul(through, dy)), g->shapes[2]));
    return true;
}

#define WITH(...) .attrs = ED_ATTRS(NORM_GRADIENT_ATTRS, norm_gradient_attrs, __VA_ARGS__)

static ed_tensor *as_dims(ed_tensor *x, const int64_t *dims, int count)
{
    return x ? ed_reshape(x, (ed_ints){dims, count}) : NULL;
}

/* The calls are groups: those of x and dy [batch, before, groups, channels, after], and of gamma
 * along its only axis. */
static ed_list *norm_gradient_batch(const ed_batch_call *call)
{
    static const batch_place groups = {2, 1}, only = {0, 1};
    const batch_place operands[] = {groups, groups, only}, outputs[] = {groups, only, only};
    norm_gradient_attrs of_all = *(const norm_gradient_attrs *)call->attrs;
    int64_t dims[6] = {call->n}, all[5], shape[ED_MAX_RANK + 1];
    memcpy(dims + 1, of_all.dims.values, sizeof all);
    memcpy(all, of_all.dims.values, sizeof all);
    if (__builtin_mul_overflow(all[2], call->n, &all[2])) return ed_batch_each(call);
    of_all.dims.values = all;
    ed_tensor *inputs[3] = {NULL}, *batches[3] = {NULL};
    memcpy(inputs, call->inputs, (size_t)call->n_inputs * sizeof *inputs);
    memcpy(batches, call->batches, (size_t)call->n_inputs * sizeof *batches);
    for (int i = 0; i < 2; i++) {
        batches[i] = as_dims(batches[i], dims, 6);
        inputs[i] = as_dims(inputs[i], dims + 1, 5);
        if (!inputs[i] || (call->batches[i] && !batches[i])) return NULL;
    }
    ed_batch_call flat = *call;
    flat.inputs = inputs;
    flat.batches = batches;
    ed_list *d = batch_along(&flat, operands, outputs, &of_all);
    if (!d) return NULL;
    ed_tensor *dx = ed_reshape(d->items[0], shape_of_batch(call->n, call->inputs[0], shape));
    return ed_list_of(dx, d->items[1], d->items[2]);
}

ED_OP(norm_gradient) = {
    .name = "norm_gradient",
    .doc = "dx, dgamma, dbeta of normalization by groups from x, dy, gamma",
    .operands = {NORM_FLOAT("x", .saved = true), NORM_FLOAT("dy", .saved = true),
                 NORM_FLOAT("gamma", .saved = true, .optional = true)},
    .results = ED_RESULTS({.name = "dx"}, {.name = "dgamma"}, {.name = "dbeta"}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(NORM_GRADIENT_ATTRS, norm_gradient_attrs),
    .infer = norm_gradient_infer,
    .batch = norm_gradient_batch,
    .kernel = norm_gradient_kernel,
    .gradient = norm_gradient_gradient,
    .reference = norm_gradient_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 4, 5),
                                      ED_SAMPLE_IN(-2, 2, 5)},
                           WITH(.dims = ED_SAMPLE_INTS(4, 1, 1, 5, 1), .epsilon = 0.1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
                           WITH(.dims = ED_SAMPLE_INTS(6, 1, 1, 4, 1), .centred = false)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3, 4),
                                      ED_SAMPLE_IN(-2, 2, 4)},
                           WITH(.dims = ED_SAMPLE_INTS(2, 3, 2, 2, 1), .epsilon = 0.1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(-2, 2, 2, 4, 3),
                                      ED_SAMPLE_IN(-2, 2, 4)},
                           WITH(.dims = ED_SAMPLE_INTS(2, 1, 2, 2, 3), .epsilon = 0.1)})};

bool norm_gradient_from(const ed_gradient_call *g, const norm_groups *p)
{
    ED_SCOPE;
    const int64_t dims[] = {p->batch, p->before, p->groups, p->channels, p->after};
    ed_tensor *const inputs[] = {g->inputs[0], g->dy[0], g->n_inputs > 1 ? g->inputs[1] : NULL};
    ed_tensor *d[3];
    if (!ed_execute(&ed_op_norm_gradient, inputs, g->n_inputs > 1 ? 3 : 2,
                    ED_ATTRS(NORM_GRADIENT_ATTRS, norm_gradient_attrs, .dims = {dims, 5},
                             .epsilon = p->epsilon, .centred = p->centred),
                    d))
        return false;
    for (int i = 0; i < g->n_inputs; i++)
        if (g->needs[i]) g->dx[i] = ed_keep(i ? ed_reshape(d[i], g->shapes[i]) : d[0]);
    return true;
}
