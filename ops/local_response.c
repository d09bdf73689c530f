/*
 * local_response_normalization: y = x / (bias + alpha s)^beta, a composition, where s is the sum of
 * x^2 over neighbours along the last axis: neighbour_sum, an op that is its own gradient.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

#define NEIGHBOUR_SUM_ATTRS(FIELD, T)                                                              \
    FIELD(T, INT, radius, 1, ED_AT_LEAST(0), "elements to each side")
ED_OPTIONS(neighbour_sum_attrs, NEIGHBOUR_SUM_ATTRS);

static bool neighbour_sum_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank >= 1) return ops_infer_like(call);
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                        text_of_tensor(x).s);
}

/* y[i] += x[i + d], for all i for which both are there, d from -radius up. */
#define NEIGHBOURS(name, type)                                                                     \
    static void name(const type *restrict x, type *restrict y, int64_t n, int64_t radius)          \
    {                                                                                              \
        for (int64_t d = -radius; d <= radius; d++)                                                \
            for (int64_t i = d < 0 ? -d : 0; i < (d < 0 ? n : n - d); i++) y[i] += x[i + d];       \
    }
NEIGHBOURS(neighbours_f32, float)
NEIGHBOURS(neighbours_f64, double)

typedef struct neighbours {
    const ed_tensor *x, *y;
    int64_t n, radius;
} neighbours;

static void neighbour_rows(int64_t first, int64_t last, int worker, void *user)
{
    const neighbours *p = user;
    const int64_t begin = first * p->n;
    (void)worker;
    memset(p->y->data + begin * (int64_t)dtype_size(p->y->dtype), 0,
           (size_t)((last - first) * p->n) * dtype_size(p->y->dtype));
    for (int64_t at = begin; at < last * p->n; at += p->n)
        if (p->x->dtype == ED_FLOAT32)
            neighbours_f32((const float *)p->x->data + at, (float *)p->y->data + at, p->n,
                           p->radius);
        else
            neighbours_f64((const double *)p->x->data + at, (double *)p->y->data + at, p->n,
                           p->radius);
}

static bool neighbour_sum_kernel(ed_call *call)
{
    const neighbour_sum_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (!x->size) return true;
    neighbours p = {x, call->outputs[0], x->shape[x->rank - 1], o->radius};
    if (p.radius > p.n) p.radius = p.n;
    const int64_t rows = x->size / p.n, grain = 1 + 8192 / p.n;
    threads_run(rows, x->size > OPS_PARALLEL_WORK ? grain : rows, neighbour_rows, &p);
    return true;
}

static bool neighbour_sum_reference(const ed_call *call)
{
    const int64_t radius = ((const neighbour_sum_attrs *)call->attrs)->radius;
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    double *to = (double *)call->outputs[0]->data;
    const int64_t n = x->shape[x->rank - 1];
    for (int64_t i = 0; i < x->size; i++) {
        to[i] = 0;
        for (int64_t j = i - i % n; j < i - i % n + n; j++)
            if (j - i <= radius && i - j <= radius) to[i] += from[j];
    }
    return true;
}

extern const ed_op ed_op_neighbour_sum;

static bool neighbour_sum_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = CALL_OP(neighbour_sum, g->attrs, g->dy[0]);
    return true;
}

ED_OP(neighbour_sum) = {
    .name = "neighbour_sum",
    .doc = "y[..., i] = the sum of x[..., j], |i - j| <= radius",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(NEIGHBOUR_SUM_ATTRS, neighbour_sum_attrs),
    .infer = neighbour_sum_infer,
    .batch = ed_batch_first,
    .kernel = neighbour_sum_kernel,
    .gradient = neighbour_sum_gradient,
    .reference = neighbour_sum_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = ED_ATTRS(NEIGHBOUR_SUM_ATTRS, neighbour_sum_attrs,
                                             .radius = 7)}),
};

static bool lrn_compose(ed_call *call)
{
    const ed_lrn_options *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    ed_tensor *sum =
        CALL_OP(neighbour_sum,
                ED_ATTRS(NEIGHBOUR_SUM_ATTRS, neighbour_sum_attrs, .radius = o->depth_radius),
                ed_square(x));
    ed_tensor *base = ed_add(ed_mul(sum, o->alpha), o->bias);
    return ed_call_result(call, 0, ed_mul(x, ed_pow(base, -o->beta)));
}

static bool lrn_reference(const ed_call *call)
{
    const ed_lrn_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    double *to = (double *)call->outputs[0]->data;
    const int64_t n = x->shape[x->rank - 1];
    for (int64_t i = 0; i < x->size; i++) {
        double sum = 0;
        for (int64_t j = i - i % n; j < i - i % n + n; j++)
            if (j - i <= o->depth_radius && i - j <= o->depth_radius) sum += from[j] * from[j];
        to[i] = from[i] * pow(o->bias + o->alpha * sum, -o->beta);
    }
    return true;
}

ED_OP(local_response_normalization) = {
    .name = "local_response_normalization",
    .doc = "y = x / (bias + alpha sum of x^2 over neighbours along the last axis)^beta",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_LRN_OPTIONS, ed_lrn_options),
    .compose = lrn_compose,
    .reference = lrn_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 7)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_LRN_OPTIONS, ed_lrn_options, .depth_radius = 1,
                                             .bias = 2, .alpha = 0.5, .beta = 0.75)}),
};

ed_tensor *ed_local_response_normalization_with(ed_tensor *x, const ed_lrn_options *options)
{
    return CALL_OP(local_response_normalization, options, x);
}
