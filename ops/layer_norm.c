/*
 * layer_norm, rms_norm, group_norm and instance_norm: see layer_norm.h. They differ in how x is
 * seen, and share kernel, gradient and reference. The gradient, an op of its own, computes the
 * statistics again: they cost less than it takes to keep them.
 */
#include "ops/layer_norm.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* ---- How x is seen --------------------------------------------------------------------------- */

static int64_t product_of(const int64_t *shape, int begin, int end)
{
    int64_t n = 1;
    for (int i = begin; i < end; i++) n *= shape[i];
    return n;
}

/* The first of the axes that a list names, which must be the last ones; not given: the last. */
static bool last_axes(const ed_call *call, ed_ints axes, int *first)
{
    const ed_tensor *x = call->inputs[0];
    unsigned mask;
    if (x->rank < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                            text_of_tensor(x).s);
    *first = x->rank - 1;
    if (!axes.values) return true;
    if (!ops_axes(call, axes, x->rank, &mask)) return false;
    *first = mask ? __builtin_ctz(mask) : x->rank;
    if (mask && mask >> *first == (1u << (x->rank - *first)) - 1) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "axis must name the last axes of x, got %s, x is %s; transpose x",
                        text_of_ints(axes.values, axes.count).s, text_of_tensor(x).s);
}

/* Slices of x along the axes from `first` on. */
static norm_groups slices(const ed_ints shape, int first, double epsilon, bool centred)
{
    const int rank = (int)shape.count;
    return (norm_groups){.batch = product_of(shape.values, 0, first),
                         .before = 1,
                         .groups = 1,
                         .channels = product_of(shape.values, first, rank),
                         .after = 1,
                         .epsilon = epsilon,
                         .centred = centred};
}

static norm_groups channel_groups(const ed_ints shape, int axis, int64_t groups, double epsilon)
{
    const int rank = (int)shape.count;
    return (norm_groups){.batch = shape.values[0],
                         .before = product_of(shape.values, 1, axis),
                         .groups = groups,
                         .channels = groups ? shape.values[axis] / groups : 0,
                         .after = product_of(shape.values, axis + 1, rank),
                         .epsilon = epsilon,
                         .centred = true};
}

/* Operands from 1 on have the sizes of x's axes [first, end); the plan and the output. */
static bool plan_norm(ed_call *call, const norm_groups *p, int first, int end)
{
    const ed_tensor *x = call->inputs[0];
    for (int i = 1; i < call->n_inputs; i++) {
        const ed_tensor *t = call->inputs[i];
        if (t->rank != end - first ||
            memcmp(t->shape, x->shape + first, (size_t)(end - first) * sizeof *t->shape) != 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s, x is %s; expected shape %s",
                                call->op->operands[i].name, text_of_tensor(t).s,
                                text_of_tensor(x).s, text_of_ints(x->shape + first, end - first).s);
    }
    norm_groups *plan = ed_call_plan(call, sizeof *plan);
    if (!plan) return false;
    *plan = *p;
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape);
}

static ed_ints shape_of(const ed_tensor *x)
{
    return (ed_ints){x->shape, x->rank};
}

static bool layer_norm_infer(ed_call *call)
{
    const ed_layer_norm_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int first;
    if (!last_axes(call, o->axis, &first)) return false;
    const norm_groups p = slices(shape_of(x), first, o->epsilon, true);
    return plan_norm(call, &p, first, x->rank);
}

static bool rms_norm_infer(ed_call *call)
{
    const ed_rms_norm_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int first;
    if (!last_axes(call, o->axis, &first)) return false;
    const norm_groups p = slices(shape_of(x), first, o->epsilon, false);
    return plan_norm(call, &p, first, x->rank);
}

/* groups 0: as many as there are channels. */
static bool infer_groups(ed_call *call, int64_t groups, int64_t axis, double epsilon)
{
    const ed_tensor *x = call->inputs[0];
    int at;
    if (x->rank < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must be [batch, ..., channels], got %s",
                            text_of_tensor(x).s);
    if (!ops_axis(call, axis, x->rank, &at)) return false;
    if (at == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "axis must be one of the channels, 0 is the batch's");
    const int64_t channels = x->shape[at];
    if (!groups) groups = channels;
    if (groups && channels % groups)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "groups must divide the number of channels; got %lld groups, x is %s",
                            (long long)groups, text_of_tensor(x).s);
    const norm_groups p = channel_groups(shape_of(x), at, groups, epsilon);
    return plan_norm(call, &p, at, at + 1);
}

static bool group_norm_infer(ed_call *call)
{
    const ed_group_norm_options *o = call->attrs;
    return infer_groups(call, o->groups, o->axis, o->epsilon);
}

static bool instance_norm_infer(ed_call *call)
{
    const ed_instance_norm_options *o = call->attrs;
    return infer_groups(call, 0, o->axis, o->epsilon);
}

/* ---- Forward --------------------------------------------------------------------------------- */

static const ed_tensor *input_of(const ed_call *call, int i)
{
    return i < call->n_inputs ? call->inputs[i] : NULL;
}

static bool group_norm_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    return !x->size ||
           norm_forward(call->plan, x, input_of(call, 1), input_of(call, 2), call->outputs[0]);
}

/* Of a group: the index of element i, and its channel's. */
static int64_t group_at(const norm_groups *p, int64_t sample, int64_t group, int64_t i, int64_t *c)
{
    const int64_t b = i % p->after, channel = i / p->after % p->channels,
                  a = i / p->after / p->channels;
    *c = group * p->channels + channel;
    return ((sample * p->before + a) * norm_channels(p) + *c) * p->after + b;
}

/* The mean and 1 / sqrt(variance + epsilon) of a group. */
static double plain_statistics(const norm_groups *p, const double *x, int64_t sample, int64_t group,
                               double *mean)
{
    const int64_t n = norm_count(p);
    double sum = 0, squares = 0;
    int64_t c;
    for (int64_t i = 0; i < n; i++) sum += x[group_at(p, sample, group, i, &c)];
    *mean = p->centred ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = x[group_at(p, sample, group, i, &c)] - *mean;
        squares += d * d;
    }
    return 1 / sqrt(squares / (double)n + p->epsilon);
}

static bool group_norm_reference(const ed_call *call)
{
    const norm_groups *p = call->plan;
    const double *x = (const double *)call->inputs[0]->data;
    const ed_tensor *gamma = input_of(call, 1), *beta = input_of(call, 2);
    double *y = (double *)call->outputs[0]->data;
    if (!call->inputs[0]->size) return true;
    for (int64_t g = 0; g < p->batch * p->groups; g++) {
        double mean;
        const double r = plain_statistics(p, x, g / p->groups, g % p->groups, &mean);
        for (int64_t i = 0; i < norm_count(p); i++) {
            int64_t c, at = group_at(p, g / p->groups, g % p->groups, i, &c);
            const double scale = gamma ? ((const double *)gamma->data)[c] * r : r;
            y[at] = (x[at] - mean) * scale + (beta ? ((const double *)beta->data)[c] : 0);
        }
    }
    return true;
}

/* ---- The gradient ---------------------------------------------------------------------------- */

#define NORM_GRADIENT_ATTRS(FIELD, T)                                                              \
    FIELD(T, INTS, dims, ED_NO_LIST, ED_ANY, "batch, before, groups, channels of each, after")     \
    FIELD(T, FLOAT, epsilon, 1e-3, ED_FROM(0, 1e30), "added to the variance")                      \
    FIELD(T, BOOL, centred, true, ED_ANY, "whether the mean is subtracted")
ED_OPTIONS(norm_gradient_attrs, NORM_GRADIENT_ATTRS);

/* What the attributes say; false if they don't fit x. */
static bool groups_of(const norm_gradient_attrs *o, int64_t size, norm_groups *p)
{
    int64_t product = 1;
    if (!o->dims.values || o->dims.count != 5) return false;
    for (int i = 0; i < 5; i++)
        if (o->dims.values[i] < 0 ||
            (o->dims.values[i] && __builtin_mul_overflow(product, o->dims.values[i], &product)))
            return false;
    const int64_t *d = o->dims.values;
    *p = (norm_groups){d[0], d[1], d[2], d[3], d[4], o->epsilon, o->centred};
    return product_of(d, 0, 5) == size;
}

static bool norm_gradient_infer(ed_call *call)
{
    const norm_gradient_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[1], *gamma = input_of(call, 2);
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
        return norm_backward(call->plan, x, call->inputs[1], input_of(call, 2), y[0], y[1], y[2]);
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
    const double r = plain_statistics(p, x, sample, group, &mean), n = (double)norm_count(p);
    int64_t c = 0;
    for (int64_t channel = 0; channel < p->channels; channel++) {
        double of_dy = 0, of_products = 0;
        for (int64_t j = 0; j < p->before * p->after; j++) {
            const int64_t i = (j / p->after * p->channels + channel) * p->after + j % p->after;
            const int64_t at = group_at(p, sample, group, i, &c);
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
        const int64_t at = group_at(p, sample, group, i, &c);
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

#define NORM_FLOAT(name, ...)                                                                      \
    {                                                                                              \
        name, ED_SET_FLOAT, 'T', __VA_ARGS__                                                       \
    }
#define WITH(...) .attrs = ED_ATTRS(NORM_GRADIENT_ATTRS, norm_gradient_attrs, __VA_ARGS__)

ED_OP(norm_gradient) = {
    .name = "norm_gradient",
    .doc = "dx, dgamma, dbeta of normalization by groups from x, dy, gamma",
    .operands = {NORM_FLOAT("x", .saved = true), NORM_FLOAT("dy", .saved = true),
                 NORM_FLOAT("gamma", .saved = true, .optional = true)},
    .results = ED_RESULTS({.name = "dx"}, {.name = "dgamma"}, {.name = "dbeta"}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(NORM_GRADIENT_ATTRS, norm_gradient_attrs),
    .infer = norm_gradient_infer,
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

/* The gradient of the four, x being seen as *p says. */
static bool norm_gradient_from(const ed_gradient_call *g, const norm_groups *p)
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

static int first_of(const ed_gradient_call *g, ed_ints axes)
{
    return (int)(g->shapes[0].count - (axes.values ? axes.count : 1));
}

static bool layer_norm_gradient(const ed_gradient_call *g)
{
    const ed_layer_norm_options *o = g->attrs;
    const norm_groups p = slices(g->shapes[0], first_of(g, o->axis), o->epsilon, true);
    return norm_gradient_from(g, &p);
}

static bool rms_norm_gradient(const ed_gradient_call *g)
{
    const ed_rms_norm_options *o = g->attrs;
    const norm_groups p = slices(g->shapes[0], first_of(g, o->axis), o->epsilon, false);
    return norm_gradient_from(g, &p);
}

static int normalized_axis(const ed_gradient_call *g, int64_t axis)
{
    return (int)(axis < 0 ? axis + g->shapes[0].count : axis);
}

static bool group_norm_gradient(const ed_gradient_call *g)
{
    const ed_group_norm_options *o = g->attrs;
    const norm_groups p =
        channel_groups(g->shapes[0], normalized_axis(g, o->axis), o->groups, o->epsilon);
    return norm_gradient_from(g, &p);
}

static bool instance_norm_gradient(const ed_gradient_call *g)
{
    const ed_instance_norm_options *o = g->attrs;
    const int axis = normalized_axis(g, o->axis);
    const norm_groups p = channel_groups(g->shapes[0], axis, g->shapes[0].values[axis], o->epsilon);
    return norm_gradient_from(g, &p);
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define NORM_OP(symbol, text, LIST)                                                                \
    .name = #symbol, .doc = text, .flags = ED_OP_CONTIGUOUS,                                       \
    ED_OP_ATTRS(LIST, ed_##symbol##_options), .infer = symbol##_infer,                             \
    .kernel = group_norm_kernel, .gradient = symbol##_gradient, .reference = group_norm_reference
#define X_GAMMA         NORM_FLOAT("x", .saved = true), NORM_FLOAT("gamma", .saved = true, .optional = true)
#define X_GAMMA_BETA    X_GAMMA, NORM_FLOAT("beta", .optional = true)
#define LAYER_NORM(...) .attrs = ED_ATTRS(ED_LAYER_NORM_OPTIONS, ed_layer_norm_options, __VA_ARGS__)
#define GROUP_NORM(...) .attrs = ED_ATTRS(ED_GROUP_NORM_OPTIONS, ed_group_norm_options, __VA_ARGS__)

ED_OP(layer_norm) = {
    NORM_OP(layer_norm, "y = (x - mean) / sqrt(variance + epsilon) gamma + beta of the last axes",
            ED_LAYER_NORM_OPTIONS),
    .operands = {X_GAMMA_BETA},
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(-2, 2, 5)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4),
                    ED_SAMPLE_IN(-2, 2, 3, 4)},
         LAYER_NORM(.axis = ED_SAMPLE_INTS(-1, 1), .epsilon = 0.1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, LAYER_NORM(.axis = ED_SAMPLE_INTS(0, 1))})};

ED_OP(rms_norm) = {
    NORM_OP(rms_norm, "y = x / sqrt(mean of x^2 + epsilon) gamma of the last axes",
            ED_RMS_NORM_OPTIONS),
    .operands = {X_GAMMA},
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 5)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_RMS_NORM_OPTIONS, ed_rms_norm_options,
                                             .axis = ED_SAMPLE_INTS(1, 2), .epsilon = 0.1)})};

ED_OP(group_norm) = {
    NORM_OP(group_norm,
            "y = (x - mean) / sqrt(variance + epsilon) gamma + beta of groups of "
            "channels",
            ED_GROUP_NORM_OPTIONS),
    .operands = {X_GAMMA_BETA},
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4),
                                      ED_SAMPLE_IN(-2, 2, 4)},
                           GROUP_NORM(.groups = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 2), ED_SAMPLE_IN(-2, 2, 4)},
                           GROUP_NORM(.groups = 2, .axis = 1, .epsilon = 0.1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3, 3)}, GROUP_NORM(.groups = 1)})};

ED_OP(instance_norm) = {
    NORM_OP(instance_norm, "y = (x - mean) / sqrt(variance + epsilon) gamma + beta of each channel",
            ED_INSTANCE_NORM_OPTIONS),
    .operands = {X_GAMMA_BETA},
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 3),
                                      ED_SAMPLE_IN(-2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5)},
                           .attrs = ED_ATTRS(ED_INSTANCE_NORM_OPTIONS, ed_instance_norm_options,
                                             .axis = 1, .epsilon = 0.1)})};

ed_tensor *ed_layer_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta,
                              const ed_layer_norm_options *options)
{
    return CALL_OP_GIVEN(layer_norm, options, x, gamma, beta);
}

ed_tensor *ed_rms_norm_with(ed_tensor *x, ed_tensor *gamma, const ed_rms_norm_options *options)
{
    return CALL_OP_GIVEN(rms_norm, options, x, gamma);
}

ed_tensor *ed_group_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta,
                              const ed_group_norm_options *options)
{
    return CALL_OP_GIVEN(group_norm, options, x, gamma, beta);
}

ed_tensor *ed_instance_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta,
                                 const ed_instance_norm_options *options)
{
    return CALL_OP_GIVEN(instance_norm, options, x, gamma, beta);
}
