/*
 * batch_norm_inference: y = (x - mean) / sqrt(variance + epsilon) gamma + beta, a composition:
 * whatever belongs to a channel is computed first; then one pass over x, an op of its own, whose
 * gradient is made of public ops.
 */
#include "ops/batch_norm.h"
#include <math.h>

/* ---- y = (x - mean) scale + shift ------------------------------------------------------------ */

#define CHANNEL_AXIS(FIELD, T) FIELD(T, AXIS, axis, -1, ED_ANY, "of the channels")
ED_OPTIONS(channel_scale_attrs, CHANNEL_AXIS);

static bool is_channel(const ed_call *call, int axis, int i)
{
    const ed_tensor *x = tensor_read(call->inputs[0]), *t = tensor_read(call->inputs[i]);
    if (t->rank == 1 && t->shape[0] == x->shape[axis]) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s, x is %s; expected shape [%lld]",
                        call->op->operands[i].name, text_of_tensor(t).s, text_of_tensor(x).s,
                        (long long)x->shape[axis]);
}

static bool are_channels(const ed_call *call, int64_t given, int *axis)
{
    const ed_tensor *x = tensor_read(call->inputs[0]);
    if (x->rank < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have an axis of channels, got %s",
                            text_of_tensor(x).s);
    if (!ops_axis(call, given, x->rank, axis)) return false;
    for (int i = 1; i < call->n_inputs; i++)
        if (!is_channel(call, *axis, i)) return false;
    return true;
}

static bool channel_scale_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    batch_norm_view *v = ed_call_plan(call, sizeof *v);
    int axis;
    if (!v || !are_channels(call, ((const channel_scale_attrs *)call->attrs)->axis, &axis))
        return false;
    *v = batch_norm_view_of(x, axis);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape);
}

static bool channel_scale_kernel(ed_call *call)
{
    ed_tensor *const *in = call->inputs;
    return !in[0]->size || batch_norm_apply(call->plan, in[0], in[1], in[2],
                                            call->n_inputs > 3 ? in[3] : NULL, call->outputs[0]);
}

static bool channel_scale_reference(const ed_call *call)
{
    const batch_norm_view *v = call->plan;
    const double *x = (const double *)call->inputs[0]->data;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        double of[4] = {0, 0, 0, 0};
        for (int k = 1; k < call->n_inputs; k++)
            of[k] = ((const double *)call->inputs[k]->data)[i / v->after % v->channels];
        y[i] = (x[i] - of[1]) * of[2] + of[3];
    }
    return true;
}

/* dx = dy scale, dmean = -scale sum dy, dscale = sum dy (x - mean), dshift = sum dy */
static bool channel_scale_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const ed_ints shape = g->shapes[0];
    const int axis = tensor_axis(((const channel_scale_attrs *)g->attrs)->axis, (int)shape.count);
    int64_t others[ED_MAX_RANK], ones[ED_MAX_RANK];
    int n = 0;
    for (int i = 0; i < shape.count; i++) {
        ones[i] = i == axis ? shape.values[i] : 1;
        if (i != axis) others[n++] = i;
    }
    const ed_ints along = {ones, shape.count}, over = {others, n};
    ed_tensor *dy = g->dy[0], *scale = g->inputs[2];
    if (g->needs[0]) g->dx[0] = ed_keep(ed_mul(dy, ed_reshape(scale, along)));
    if (g->needs[2]) {
        ed_tensor *off = ed_sub(g->inputs[0], ed_reshape(g->inputs[1], along));
        g->dx[2] = ed_keep(ed_reduce_sum(ed_mul(dy, off), .axis = over));
    }
    const bool shift = g->n_inputs > 3 && g->needs[3];
    if (!g->needs[1] && !shift) return true;
    ed_tensor *sum = ed_reduce_sum(dy, .axis = over);
    if (g->needs[1]) g->dx[1] = ed_keep(ed_neg(ed_mul(sum, scale)));
    if (shift) g->dx[3] = ed_keep(sum);
    return true;
}

#define FLOATS(name, ...)                                                                          \
    {                                                                                              \
        name, ED_SET_FLOAT, 'T', __VA_ARGS__                                                       \
    }
#define AXIS(at) .attrs = ED_ATTRS(CHANNEL_AXIS, channel_scale_attrs, .axis = at)

ED_OP(channel_scale) = {
    .name = "channel_scale",
    .doc = "y = (x - mean) scale + shift, three numbers for each channel",
    .operands = {FLOATS("x", .saved = true), FLOATS("mean", .saved = true),
                 FLOATS("scale", .saved = true), FLOATS("shift", .optional = true)},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(CHANNEL_AXIS, channel_scale_attrs),
    .infer = channel_scale_infer,
    .batch = ed_batch_first,
    .kernel = channel_scale_kernel,
    .gradient = channel_scale_gradient,
    .reference = channel_scale_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(-1, 1, 3),
                                      ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3, 2), ED_SAMPLE_IN(-1, 1, 3),
                                      ED_SAMPLE_IN(-2, 2, 3)},
                           AXIS(1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 37), ED_SAMPLE_IN(-1, 1, 3),
                                      ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)},
                           AXIS(0)}),
};

/* ---- With given statistics ------------------------------------------------------------------- */

static bool batch_norm_inference_compose(ed_call *call)
{
    const ed_batch_norm_options *o = call->attrs;
    ed_tensor *const *in = call->inputs;
    int axis;
    if (!are_channels(call, o->axis, &axis)) return false;
    ed_tensor *scale = ed_rsqrt(ed_add(in[2], o->epsilon));
    if (call->n_inputs > 3) scale = ed_mul(scale, in[3]);
    return ed_call_result(call, 0,
                          CALL_OP_GIVEN(channel_scale,
                                        ED_ATTRS(CHANNEL_AXIS, channel_scale_attrs, .axis = axis),
                                        in[0], in[1], scale, call->n_inputs > 4 ? in[4] : NULL));
}

static bool batch_norm_inference_reference(const ed_call *call)
{
    const ed_batch_norm_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const batch_norm_view view = batch_norm_view_of(x, tensor_axis(o->axis, x->rank));
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < x->size; i++) {
        const int64_t c = i / view.after % view.channels;
        double v[5] = {0, 0, 0, 1, 0};
        for (int k = 1; k < call->n_inputs; k++) v[k] = ((double *)call->inputs[k]->data)[c];
        y[i] = (((const double *)x->data)[i] - v[1]) * (1 / sqrt(v[2] + o->epsilon) * v[3]) + v[4];
    }
    return true;
}

#define INFERENCE(...) .attrs = ED_ATTRS(ED_BATCH_NORM_OPTIONS, ed_batch_norm_options, __VA_ARGS__)

ED_OP(batch_norm_inference) = {
    .name = "batch_norm_inference",
    .doc = "y = (x - mean) / sqrt(variance + epsilon) gamma + beta",
    .operands = {FLOATS("x"), FLOATS("mean"), FLOATS("variance"), FLOATS("gamma", .optional = true),
                 FLOATS("beta", .optional = true)},
    ED_OP_ATTRS(ED_BATCH_NORM_OPTIONS, ed_batch_norm_options),
    .compose = batch_norm_inference_compose,
    .reference = batch_norm_inference_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(-1, 1, 3), ED_SAMPLE_IN(0.5, 2, 3),
                    ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(-1, 1, 3), ED_SAMPLE_IN(0.5, 2, 3)},
         INFERENCE(.epsilon = 0.1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-1, 1, 3), ED_SAMPLE_IN(0.5, 2, 3),
                    ED_SAMPLE_IN(-2, 2, 3)},
         INFERENCE(.axis = 1)}),
};

ed_tensor *ed_batch_norm_inference_with(ed_tensor *x, ed_tensor *mean, ed_tensor *variance,
                                        ed_tensor *gamma, ed_tensor *beta,
                                        const ed_batch_norm_options *options)
{
    return CALL_OP_GIVEN(batch_norm_inference, options, x, mean, variance, gamma, beta);
}
