/* Activations that look at more than one element: glu, crelu, sparsemax. */
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <math.h>
#include <stdlib.h>

static int64_t axis_of(const void *attrs)
{
    return ((const ed_softmax_options *)attrs)->axis;
}

/* The sizes behind an axis. */
static int64_t inner_of(const ed_tensor *x, int axis)
{
    int64_t inner = 1;
    for (int d = axis + 1; d < x->rank; d++) inner *= x->shape[d];
    return inner;
}

#define ALONG(a) .attrs = ED_ATTRS(ED_SOFTMAX_OPTIONS, ed_softmax_options, .axis = a)
#define X        .operands = {{"x", ED_SET_FLOAT, 'T'}}
#define AXIS     ED_OP_ATTRS(ED_SOFTMAX_OPTIONS, ed_softmax_options)

/* ---- glu ------------------------------------------------------------------------------------- */

static bool glu_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    int axis;
    if (!ops_axis(call, axis_of(call->attrs), ed_rank(x), &axis)) return false;
    if (ed_dim(x, axis) % 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x is %s; axis %lld must have an even size",
                            text_of_tensor(x).s, text_nth(axis));
    ed_list *halves = ed_split(x, 2, .axis = axis);
    return ed_call_result(call, 0,
                          ed_mul(ed_list_get(halves, 0), ed_sigmoid(ed_list_get(halves, 1))));
}

static bool glu_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int axis = tensor_axis(axis_of(call->attrs), x->rank);
    const int64_t half = x->shape[axis] / 2 * inner_of(x, axis);
    for (int64_t i = 0; i < y->size; i++) {
        const double *from = (const double *)x->data + i / half * half * 2 + i % half;
        ((double *)y->data)[i] = from[0] * (from[half] < 0 ? exp(from[half]) / (1 + exp(from[half]))
                                                           : 1 / (1 + exp(-from[half])));
    }
    return true;
}

ED_OP(glu) = {.name = "glu",
              .doc = "y = a sigmoid(b) for the halves a and b of x along the axis",
              X,
              AXIS,
              .compose = glu_compose,
              .reference = glu_reference,
              .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                                    {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3)}, ALONG(1)})};

ed_tensor *ed_glu_with(ed_tensor *x, const ed_softmax_options *options)
{
    return CALL_OP(glu, options, x);
}

/* ---- crelu ----------------------------------------------------------------------------------- */

static bool crelu_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    int axis;
    if (!ops_axis(call, axis_of(call->attrs), ed_rank(x), &axis)) return false;
    ed_list *both = ed_list_make((ed_tensor *const[]){ed_relu(x), ed_relu(ed_neg(x))}, 2);
    return ed_call_result(call, 0, ed_concat(both, .axis = axis));
}

static bool crelu_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int axis = tensor_axis(axis_of(call->attrs), x->rank);
    const int64_t part = x->shape[axis] * inner_of(x, axis);
    for (int64_t i = 0; i < y->size; i++) {
        const double v = ((const double *)x->data)[i / part / 2 * part + i % part];
        const double turned = i / part % 2 ? -v : v;
        ((double *)y->data)[i] = turned < 0 ? 0 : turned;
    }
    return true;
}

ED_OP(crelu) = {.name = "crelu",
                .doc = "y = relu(x) and relu(-x), joined along the axis",
                X,
                AXIS,
                .compose = crelu_compose,
                .reference = crelu_reference,
                .kinks = (const double[]){0, NAN},
                .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                                      {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3)}, ALONG(1)})};

ed_tensor *ed_crelu_with(ed_tensor *x, const ed_softmax_options *options)
{
    return CALL_OP(crelu, options, x);
}

/* ---- sparsemax ------------------------------------------------------------------------------- */

/*
 * y = max(x - t, 0) with the t for which the row's sum is 1 (Martins, Astudillo 2016): t is
 * (sum - 1) / count of those above it, which are found by leaving out, again and again, what is
 * not above the t of those that are left. dx = dy - mean of dy, both over where y > 0; else 0.
 */
static bool sparsemax_infer(ed_call *call)
{
    int *axis = ed_call_plan(call, sizeof *axis);
    return ops_axis(call, axis_of(call->attrs), call->inputs[0]->rank, axis) &&
           ops_infer_like(call);
}

typedef struct sparsemax_job {
    const ed_tensor *x;
    ed_tensor *y;
    int64_t n, inner;
} sparsemax_job;

static void sparsemax_row(const sparsemax_job *j, int64_t at)
{
    const ed_dtype dtype = j->x->dtype;
    double most = -INFINITY, t = -1, before;
    for (int64_t i = 0; i < j->n; i++) {
        const double v = dtype_load(dtype, j->x->data, at + i * j->inner);
        most = v > most || v != v ? v : most;
    }
    do {
        double sum = 0, count = 0;
        before = t;
        for (int64_t i = 0; i < j->n; i++) {
            const double v = dtype_load(dtype, j->x->data, at + i * j->inner) - most;
            if (v > before) sum += v, count++;
        }
        t = (sum - 1) / count;
    } while (t > before);
    if (!isfinite(most)) t = NAN;
    for (int64_t i = 0; i < j->n; i++) {
        const double v = dtype_load(dtype, j->x->data, at + i * j->inner) - most;
        dtype_store(dtype, j->y->data, at + i * j->inner, v - t > 0 || t != t ? v - t : 0);
    }
}

static void sparsemax_range(int64_t first, int64_t last, int worker, void *user)
{
    const sparsemax_job *j = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        sparsemax_row(j, i / j->inner * j->n * j->inner + i % j->inner);
}

static bool sparsemax_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->size == 0) return true;
    const int axis = *(const int *)call->plan;
    sparsemax_job j = {x, call->outputs[0], x->shape[axis], inner_of(x, axis)};
    const int64_t rows = x->size / j.n;
    threads_run(rows, x->size < OPS_PARALLEL_WORK ? rows : OPS_PARALLEL_WORK / 4 / j.n + 1,
                sparsemax_range, &j);
    return true;
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* By sorting: t is that of the longest beginning z[0..k] with 1 + (k + 1) z[k] > its sum. */
static void sparsemax_sorted(double *z, int64_t n, const double *x, double *y, int64_t apart)
{
    double most = -INFINITY, sum = 0, t = 0;
    for (int64_t i = 0; i < n; i++)
        most = x[i * apart] > most || x[i * apart] != x[i * apart] ? x[i * apart] : most;
    for (int64_t i = 0; i < n; i++) z[i] = x[i * apart] - most;
    if (isfinite(most)) qsort(z, (size_t)n, sizeof *z, descending);
    for (int64_t k = 0; k < n; k++) {
        sum += z[k];
        if (1 + (double)(k + 1) * z[k] > sum) t = (sum - 1) / (double)(k + 1);
    }
    for (int64_t i = 0; i < n; i++)
        y[i * apart] = isfinite(most) ? fmax(x[i * apart] - most - t, 0) : NAN;
}

static bool sparsemax_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->size == 0) return true;
    const int axis = *(const int *)call->plan;
    const int64_t n = x->shape[axis], inner = inner_of(x, axis);
    double *z = ed_scope_alloc((size_t)n * sizeof *z);
    for (int64_t i = 0; z && i < x->size / n; i++) {
        const int64_t at = i / inner * n * inner + i % inner;
        sparsemax_sorted(z, n, (const double *)x->data + at, (double *)call->outputs[0]->data + at,
                         inner);
    }
    return z;
}

static bool sparsemax_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = g->outputs[0], *dy = g->dy[0];
    const ed_ints axis = {(const int64_t[]){axis_of(g->attrs)}, 1};
    ed_tensor *support = y ? ed_cast(ed_greater(y, 0), ed_dtype_of(y)) : NULL;
    ed_tensor *sum = ed_reduce_sum(ed_mul(dy, support), .axis = axis, .keepdims = true);
    ed_tensor *mean = ed_div(sum, ed_reduce_sum(support, .axis = axis, .keepdims = true));
    g->dx[0] = ed_keep(ed_mul(support, ed_sub(dy, mean)));
    return true;
}

ED_OP(sparsemax) = {.name = "sparsemax",
                    .doc = "the nearest point whose elements are not negative and sum to 1",
                    X,
                    AXIS,
                    .flags = ED_OP_CONTIGUOUS,
                    .infer = sparsemax_infer,
                    .batch = ed_batch_axes,
                    .kernel = sparsemax_kernel,
                    .gradient = sparsemax_gradient,
                    SAVES_Y,
                    .reference = sparsemax_reference,
                    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 3, 4)}},
                                          {.inputs = {ED_SAMPLE_IN(-1, 1, 2, 4, 3)}, ALONG(1)},
                                          {.inputs = {ED_SAMPLE_IN(-1, 1, 5)}, ALONG(0)})};

ed_tensor *ed_sparsemax_with(ed_tensor *x, const ed_softmax_options *options)
{
    return CALL_OP(sparsemax, options, x);
}
