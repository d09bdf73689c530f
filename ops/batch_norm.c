/*
 * batch_norm, and its gradient as an op of its own: see batch_norm.h.
 */
#include "ops/batch_norm.h"
#include "ops/batch.h"
#include <math.h>
#include <string.h>

#define NORM_CHANNELS(name, ...)                                                                   \
    {                                                                                              \
        name, ED_SET_FLOAT, 'T', __VA_ARGS__                                                       \
    }
#define NORM_SAVED(name) NORM_CHANNELS(name, .saved = true)
#define NORM_ATTRS       ED_OP_ATTRS(ED_BATCH_NORM_OPTIONS, ed_batch_norm_options)
#define NORM_WITH(...)   .attrs = ED_ATTRS(ED_BATCH_NORM_OPTIONS, ed_batch_norm_options, __VA_ARGS__)

/* Of x's channels: the axis, then whether operands [first, last] have their shape. */
static bool norm_axis(const ed_call *call, int first, int last, int *axis)
{
    const ed_tensor *x = call->inputs[0];
    const ed_batch_norm_options *o = call->attrs;
    if (x->rank < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have an axis of channels, got %s",
                            text_of_tensor(x).s);
    if (!ops_axis(call, o->axis, x->rank, axis)) return false;
    for (int i = first; i <= last; i++) {
        const ed_tensor *t = call->inputs[i];
        if (t->rank != 1 || t->shape[0] != x->shape[*axis])
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "%s is %s, x is %s; expected shape [%lld]",
                                call->op->operands[i].name, text_of_tensor(t).s,
                                text_of_tensor(x).s, (long long)x->shape[*axis]);
    }
    return true;
}

/* The call's plan: how x is seen. */
static bool plan_view(ed_call *call, int axis)
{
    batch_norm_view *v = ed_call_plan(call, sizeof *v);
    if (v) *v = batch_norm_view_of(call->inputs[0], axis);
    return v;
}

static double norm_epsilon(const ed_call *call)
{
    return ((const ed_batch_norm_options *)call->attrs)->epsilon;
}

/* For references: the index of element i of channel c. */
static int64_t element_of(const batch_norm_view *v, int64_t c, int64_t i)
{
    return (i / v->after * v->channels + c) * v->after + i % v->after;
}

static int64_t norm_count_of(const batch_norm_view *v)
{
    return v->before * v->after;
}

/* ---- Forward --------------------------------------------------------------------------------- */

static bool batch_norm_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int axis;
    return norm_axis(call, 1, 2, &axis) && plan_view(call, axis) &&
           ed_call_output(call, 0, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 1, x->dtype, 1, x->shape + axis) &&
           ed_call_output(call, 2, x->dtype, 1, x->shape + axis);
}

/* Nothing has neither mean nor variance. */
static void fill_nan(const ed_tensor *t)
{
    for (int64_t i = 0; i < t->size; i++) dtype_store(t->dtype, t->data, i, NAN);
}

static bool batch_norm_kernel(ed_call *call)
{
    ed_tensor *const *in = call->inputs, *const *out = call->outputs;
    if (in[0]->size)
        return batch_norm_forward(call->plan, in[0], in[1], in[2], norm_epsilon(call), out[0],
                                  out[1], out[2]);
    fill_nan(out[1]);
    fill_nan(out[2]);
    return true;
}

static bool batch_norm_reference(const ed_call *call)
{
    const batch_norm_view *v = call->plan;
    const int64_t n = norm_count_of(v);
    const double *gamma = (const double *)call->inputs[1]->data,
                 *beta = (const double *)call->inputs[2]->data,
                 *x = (const double *)call->inputs[0]->data;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t c = 0; c < v->channels; c++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += x[element_of(v, c, i)];
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++) variance += pow(x[element_of(v, c, i)] - mean, 2);
        variance /= (double)n;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = element_of(v, c, i);
            y[at] = (x[at] - mean) * (gamma[c] / sqrt(variance + norm_epsilon(call))) + beta[c];
        }
        ((double *)call->outputs[1]->data)[c] = mean;
        ((double *)call->outputs[2]->data)[c] = variance;
    }
    return true;
}

/* ---- The gradient ---------------------------------------------------------------------------- */

static bool batch_norm_gradient_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[4];
    int axis;
    if (!norm_axis(call, 1, 3, &axis) || !plan_view(call, axis)) return false;
    if (dy->rank != x->rank || memcmp(dy->shape, x->shape, (size_t)x->rank * sizeof *x->shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dy is %s, x is %s; they must have the same shape",
                            text_of_tensor(dy).s, text_of_tensor(x).s);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 1, x->dtype, 1, x->shape + axis) &&
           ed_call_output(call, 2, x->dtype, 1, x->shape + axis);
}

static bool batch_norm_gradient_kernel(ed_call *call)
{
    ed_tensor *const *in = call->inputs, *const *out = call->outputs;
    if (!in[0]->size) {
        for (int i = 1; i < 3; i++)
            memset(out[i]->data, 0, (size_t)out[i]->size * dtype_size(out[i]->dtype));
        return true;
    }
    const batch_norm_back back = {.x = in[0],
                                  .gamma = in[1],
                                  .mean = in[2],
                                  .variance = in[3],
                                  .dy = in[4],
                                  .dx = out[0],
                                  .dgamma = out[1],
                                  .dbeta = out[2],
                                  .epsilon = norm_epsilon(call)};
    return batch_norm_backward(call->plan, &back);
}

static bool batch_norm_gradient_reference(const ed_call *call)
{
    const batch_norm_view *v = call->plan;
    const int64_t n = norm_count_of(v);
    const double *in[5];
    for (int i = 0; i < 5; i++) in[i] = (const double *)call->inputs[i]->data;
    double *dx = (double *)call->outputs[0]->data;
    for (int64_t c = 0; c < v->channels; c++) {
        const double mean = in[2][c], r = 1 / sqrt(in[3][c] + norm_epsilon(call));
        double sum = 0, product = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = element_of(v, c, i);
            sum += in[4][at];
            product += in[4][at] * (in[0][at] - mean);
        }
        const double a = sum / (double)n, b = product / (double)n * r * r;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = element_of(v, c, i);
            dx[at] = r * in[1][c] * (in[4][at] - a - (in[0][at] - mean) * b);
        }
        ((double *)call->outputs[1]->data)[c] = product * r;
        ((double *)call->outputs[2]->data)[c] = sum;
    }
    return true;
}

/* How tensors [channels] lie in x, and what is taken over all other axes. */
typedef struct channel_axes {
    int axis, others;
    int64_t other[ED_MAX_RANK], shape[ED_MAX_RANK], rank;
    double count;
} channel_axes;

static channel_axes channel_axes_of(const ed_gradient_call *g)
{
    const ed_ints x = g->shapes[0];
    channel_axes a = {.rank = x.count, .count = 1};
    const int64_t axis = ((const ed_batch_norm_options *)g->attrs)->axis;
    a.axis = tensor_axis(axis, (int)x.count);
    for (int i = 0; i < x.count; i++) {
        a.shape[i] = i == a.axis ? x.values[i] : 1;
        if (i == a.axis) continue;
        a.other[a.others++] = i;
        a.count *= (double)x.values[i];
    }
    return a;
}

static ed_tensor *channel_sum(const channel_axes *a, ed_tensor *x)
{
    return ed_reduce_sum(x, .axis = {a->other, a->others});
}

/* t [channels] as x has it. */
static ed_tensor *along(const channel_axes *a, ed_tensor *t)
{
    return a->axis == a->rank - 1 ? t : ed_reshape(t, ((ed_ints){a->shape, a->rank}));
}

/* The mean, as x has it. */
static ed_tensor *mean_along(const channel_axes *a, ed_tensor *x)
{
    return ed_reduce_mean(x, .axis = {a->other, a->others}, .keepdims = true);
}

static ed_tensor *flat_view(const channel_axes *a, ed_tensor *t)
{
    return ed_reshape(t, ED_SHAPE(a->shape[a->axis]));
}

/*
 * batch_norm_gradient: with r = 1 / sqrt(variance + epsilon), x' = (x - mean) r and means over all
 * axes but the channels', dx = gamma r (dy - mean dy - x' mean(dy x')), dgamma = sum dy x', dbeta =
 * sum dy. What flows back for u, v, w flowing into the three: they come together as L = n gamma r s
 * + n v d + w sum dy,   s = cov - a d, cov = mean(u dy) - mean u mean dy, a = mean(u x'), d =
 * mean(dy x'), whose derivative to x' is h = v dy - gamma r (u d + dy a).
 */
static bool batch_norm_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const channel_axes of = channel_axes_of(g), *c = &of;
    ed_tensor *x = g->inputs[0], *gamma = along(c, g->inputs[1]),
              *variance = along(c, g->inputs[3]), *dy = g->inputs[4];
    ed_tensor *u = g->dy[0] ? g->dy[0] : ed_zeros_like(x),
              *v = g->dy[1] ? along(c, g->dy[1]) : ed_zeros_like(gamma);
    const double epsilon = ((const ed_batch_norm_options *)g->attrs)->epsilon;
    ed_tensor *r = ed_rsqrt(ed_add(variance, epsilon));
    ed_tensor *centred = ed_sub(x, along(c, g->inputs[2])), *normal = ed_mul(centred, r),
              *scale = ed_mul(gamma, r);
    ed_tensor *a = mean_along(c, ed_mul(u, normal)), *d = mean_along(c, ed_mul(dy, normal));
    if (g->needs[4]) {
        ed_tensor *through = ed_mul(scale, ed_sub(ed_sub(u, mean_along(c, u)), ed_mul(normal, a)));
        through = ed_add(through, ed_mul(normal, v));
        g->dx[4] = ed_keep(g->dy[2] ? ed_add(through, along(c, g->dy[2])) : through);
    }
    ed_tensor *cov =
        ed_sub(mean_along(c, ed_mul(u, dy)), ed_mul(mean_along(c, u), mean_along(c, dy)));
    ed_tensor *s = ed_mul(ed_sub(cov, ed_mul(a, d)), c->count);
    ed_tensor *h = ed_sub(ed_mul(v, dy), ed_mul(scale, ed_add(ed_mul(u, d), ed_mul(dy, a))));
    if (g->needs[0]) g->dx[0] = ed_keep(ed_mul(h, r));
    if (g->needs[1]) g->dx[1] = ed_keep(flat_view(c, ed_mul(r, s)));
    if (g->needs[2]) g->dx[2] = ed_keep(ed_neg(channel_sum(c, ed_mul(h, r))));
    if (g->needs[3]) {
        ed_tensor *to_r =
            ed_add(flat_view(c, ed_mul(gamma, s)), channel_sum(c, ed_mul(h, centred)));
        g->dx[3] = ed_keep(ed_mul(ed_mul(to_r, -0.5), flat_view(c, ed_mul(r, ed_square(r)))));
    }
    return true;
}

/* The calls are channels: of x and, in its gradient, dy along the axis, of the rest along the only
 * one. */
static ed_list *batch_norm_calls(const ed_batch_call *call)
{
    const ed_batch_norm_options *o = call->attrs;
    const int axis = tensor_axis(o->axis, call->inputs[0]->rank);
    const batch_place wide = {axis, 1}, only = {0, 1};
    const batch_place operands[] = {wide, only, only, only, wide}, outputs[] = {wide, only, only};
    ed_batch_norm_options of_all = *o;
    of_all.axis = axis;
    return batch_along(call, operands, outputs, &of_all);
}

ED_OP(batch_norm_gradient) = {
    .name = "batch_norm_gradient",
    .doc = "dx, dgamma, dbeta of batch_norm from x, gamma, mean, variance, dy",
    .operands = {NORM_SAVED("x"), NORM_SAVED("gamma"), NORM_SAVED("mean"), NORM_SAVED("variance"),
                 NORM_SAVED("dy")},
    .results = ED_RESULTS({.name = "dx"}, {.name = "dgamma"}, {.name = "dbeta"}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    NORM_ATTRS,
    .infer = batch_norm_gradient_infer,
    .batch = batch_norm_calls,
    .kernel = batch_norm_gradient_kernel,
    .gradient = batch_norm_gradient_gradient,
    .reference = batch_norm_gradient_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-1, 1, 3),
                    ED_SAMPLE_IN(0.5, 2, 3), ED_SAMPLE_IN(-2, 2, 5, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-1, 1, 3),
                    ED_SAMPLE_IN(0.5, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 2, 3)},
         NORM_WITH(.epsilon = 0.1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2), ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-1, 1, 3),
                    ED_SAMPLE_IN(0.5, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2)},
         NORM_WITH(.axis = 1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 9, 2, 21), ED_SAMPLE_IN(-2, 2, 9), ED_SAMPLE_IN(-1, 1, 9),
                    ED_SAMPLE_IN(0.5, 2, 9), ED_SAMPLE_IN(-2, 2, 9, 2, 21)},
         NORM_WITH(.axis = 0)})};

/* What flows into the statistics: dx = dmean / n, and dvariance 2 (x - mean) / n. */
static ed_tensor *through_statistics(const ed_gradient_call *g, ed_tensor *dx)
{
    const channel_axes c = channel_axes_of(g);
    if (g->dy[1]) {
        ed_tensor *more = ed_broadcast_to(along(&c, ed_div(g->dy[1], c.count)), g->shapes[0]);
        dx = dx ? ed_add(dx, more) : more;
    }
    if (g->dy[2]) {
        ed_tensor *more = ed_mul(ed_sub(g->inputs[0], along(&c, g->outputs[1])),
                                 along(&c, ed_mul(g->dy[2], 2 / c.count)));
        dx = dx ? ed_add(dx, more) : more;
    }
    return dx;
}

static bool batch_norm_back_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *d[3] = {NULL, NULL, NULL};
    if (g->dy[0]) {
        ed_tensor *const inputs[] = {g->inputs[0], g->inputs[1], g->outputs[1], g->outputs[2],
                                     g->dy[0]};
        if (!ed_execute(&ed_op_batch_norm_gradient, inputs, 5, g->attrs, d)) return false;
    }
    if (g->needs[0]) d[0] = through_statistics(g, d[0]);
    for (int i = 0; i < 3; i++)
        if (g->needs[i]) g->dx[i] = ed_keep(d[i]);
    return true;
}

ED_OP(batch_norm) = {
    .name = "batch_norm",
    .doc = "y = (x - mean) / sqrt(variance + epsilon) gamma + beta; and the mean and variance of "
           "all axes but the channels'",
    .operands = {NORM_SAVED("x"), NORM_SAVED("gamma"), NORM_CHANNELS("beta")},
    .results = ED_RESULTS({.name = "y"}, {.name = "mean", .saved = true},
                          {.name = "variance", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    NORM_ATTRS,
    .infer = batch_norm_infer,
    .batch = batch_norm_calls,
    .kernel = batch_norm_kernel,
    .gradient = batch_norm_back_gradient,
    .reference = batch_norm_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3),
                    ED_SAMPLE_IN(-2, 2, 3)},
         NORM_WITH(.epsilon = 0.1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2), ED_SAMPLE_IN(-2, 2, 3),
                    ED_SAMPLE_IN(-2, 2, 3)},
         NORM_WITH(.axis = 1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 9, 2, 21), ED_SAMPLE_IN(-2, 2, 9), ED_SAMPLE_IN(-2, 2, 9)},
         NORM_WITH(.axis = -3)})};

ed_tensor *ed_batch_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta, ed_tensor **mean,
                              ed_tensor **variance, const ed_batch_norm_options *options)
{
    return ops_call_into(&ed_op_batch_norm, (ed_tensor *const[]){x, gamma, beta}, 3, options,
                         (ed_tensor * *const[]){mean, variance});
}
