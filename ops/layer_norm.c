/*
 * layer_norm, rms_norm, group_norm and instance_norm: see layer_norm.h. They differ in how x is
 * seen, and share kernel, gradient (norm_gradient.c) and reference.
 */
#include "ops/layer_norm.h"
#include "ops/batch.h"
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

static bool group_norm_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    return !x->size ||
           norm_forward(call->plan, x, norm_input(call, 1), norm_input(call, 2), call->outputs[0]);
}

int64_t norm_plain_at(const norm_groups *p, int64_t sample, int64_t group, int64_t i, int64_t *c)
{
    const int64_t b = i % p->after, channel = i / p->after % p->channels,
                  a = i / p->after / p->channels;
    *c = group * p->channels + channel;
    return ((sample * p->before + a) * norm_channels(p) + *c) * p->after + b;
}

double norm_plain_statistics(const norm_groups *p, const double *x, int64_t sample, int64_t group,
                             double *mean)
{
    const int64_t n = norm_count(p);
    double sum = 0, squares = 0;
    int64_t c;
    for (int64_t i = 0; i < n; i++) sum += x[norm_plain_at(p, sample, group, i, &c)];
    *mean = p->centred ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = x[norm_plain_at(p, sample, group, i, &c)] - *mean;
        squares += d * d;
    }
    return 1 / sqrt(squares / (double)n + p->epsilon);
}

static bool group_norm_reference(const ed_call *call)
{
    const norm_groups *p = call->plan;
    const double *x = (const double *)call->inputs[0]->data;
    const ed_tensor *gamma = norm_input(call, 1), *beta = norm_input(call, 2);
    double *y = (double *)call->outputs[0]->data;
    if (!call->inputs[0]->size) return true;
    for (int64_t g = 0; g < p->batch * p->groups; g++) {
        double mean;
        const double r = norm_plain_statistics(p, x, g / p->groups, g % p->groups, &mean);
        for (int64_t i = 0; i < norm_count(p); i++) {
            int64_t c, at = norm_plain_at(p, g / p->groups, g % p->groups, i, &c);
            const double scale = gamma ? ((const double *)gamma->data)[c] * r : r;
            y[at] = (x[at] - mean) * scale + (beta ? ((const double *)beta->data)[c] : 0);
        }
    }
    return true;
}

/* ---- Gradients ----------------------------------------------------------------------------- */

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

#define NORM_OP(symbol, text, LIST, how)                                                           \
    .name = #symbol, .doc = text, .flags = ED_OP_CONTIGUOUS,                                       \
    ED_OP_ATTRS(LIST, ed_##symbol##_options), .infer = symbol##_infer, .batch = how,               \
    .kernel = group_norm_kernel, .gradient = symbol##_gradient, .reference = group_norm_reference
#define X_GAMMA         NORM_FLOAT("x", .saved = true), NORM_FLOAT("gamma", .saved = true, .optional = true)
#define X_GAMMA_BETA    X_GAMMA, NORM_FLOAT("beta", .optional = true)
#define LAYER_NORM(...) .attrs = ED_ATTRS(ED_LAYER_NORM_OPTIONS, ed_layer_norm_options, __VA_ARGS__)
#define GROUP_NORM(...) .attrs = ED_ATTRS(ED_GROUP_NORM_OPTIONS, ed_group_norm_options, __VA_ARGS__)

ED_OP(layer_norm) = {
    NORM_OP(layer_norm, "y = (x - mean) / sqrt(variance + epsilon) gamma + beta of the last axes",
            ED_LAYER_NORM_OPTIONS, ed_batch_first),
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
            ED_RMS_NORM_OPTIONS, ed_batch_first),
    .operands = {X_GAMMA},
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 5)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_RMS_NORM_OPTIONS, ed_rms_norm_options,
                                             .axis = ED_SAMPLE_INTS(1, 2), .epsilon = 0.1)})};

ED_OP(group_norm) = {
    NORM_OP(group_norm,
            "y = (x - mean) / sqrt(variance + epsilon) gamma + beta of groups of "
            "channels",
            ED_GROUP_NORM_OPTIONS, batch_first_examples),
    .operands = {X_GAMMA_BETA},
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4),
                                      ED_SAMPLE_IN(-2, 2, 4)},
                           GROUP_NORM(.groups = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 2), ED_SAMPLE_IN(-2, 2, 4)},
                           GROUP_NORM(.groups = 2, .axis = 1, .epsilon = 0.1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3, 3)}, GROUP_NORM(.groups = 1)})};

ED_OP(instance_norm) = {
    NORM_OP(instance_norm, "y = (x - mean) / sqrt(variance + epsilon) gamma + beta of each channel",
            ED_INSTANCE_NORM_OPTIONS, batch_first_examples),
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
