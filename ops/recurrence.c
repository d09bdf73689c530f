/*
 * recurrence: y[i] = a[i] y[i-1] + b[i], y[-1] = 0; db[i] = dy[i] + a[i+1] db[i+1], which is the
 * same from the other end, da[i] = db[i] y[i-1]. Gradients of cumulative ops are made of it.
 */
#include "ops/recurrence.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <string.h>

static int recurrence_axis(const ed_call *call)
{
    return *(const int *)call->plan;
}

static bool infer_along(ed_call *call)
{
    int *axis = ed_call_plan(call, sizeof *axis);
    const int64_t given = ((const ed_cumulative_options *)call->attrs)->axis;
    return ops_axis(call, given, call->inputs[0]->rank, axis) && ops_infer_like(call);
}

static bool recurrence_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    if (a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape))
        return infer_along(call);
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "shapes differ: a is %s, b is %s",
                        text_of_tensor(a).s, text_of_tensor(b).s);
}

/* In float64 or the dtype's own numbers; `columns` beside each other. */
static void recurrence_row(const ed_call *call, int64_t at, int64_t step, int64_t n)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    ed_tensor *y = call->outputs[0];
    double last = 0;
    for (int64_t i = 0; i < n; i++, at += step) {
        last = dtype_load(a->dtype, a->data, at) * last + dtype_load(b->dtype, b->data, at);
        dtype_store(y->dtype, y->data, at, last);
    }
}

static bool recurrence_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int axis = recurrence_axis(call);
    const bool reverse = ((const ed_cumulative_options *)call->attrs)->reverse;
    int64_t inner = 1;
    for (int d = axis + 1; d < y->rank; d++) inner *= y->shape[d];
    for (int64_t i = 0; y->size && i < y->size / y->shape[axis]; i++) {
        const int64_t n = y->shape[axis], first = i / inner * n * inner + i % inner;
        recurrence_row(call, first + (reverse ? (n - 1) * inner : 0), reverse ? -inner : inner, n);
    }
    return true;
}

/* Each element by itself: the sum of b[k] a[k+1] ... a[i]. */
static bool recurrence_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const double *a = (const double *)call->inputs[0]->data,
                 *b = (const double *)call->inputs[1]->data;
    const int64_t n = y->rank ? y->shape[recurrence_axis(call)] : 0;
    int64_t inner = 1, step;
    for (int d = recurrence_axis(call) + 1; d < y->rank; d++) inner *= y->shape[d];
    step = ((const ed_cumulative_options *)call->attrs)->reverse ? inner : -inner;
    for (int64_t i = 0; i < y->size; i++) {
        double sum = 0;
        int64_t count = i / inner % n + 1;
        if (step > 0) count = n + 1 - count;
        for (int64_t k = i + (count - 1) * step;; k -= step) {
            sum = k == i + (count - 1) * step ? b[k] + a[k] * 0 : sum * a[k] + b[k];
            if (k == i) break;
        }
        ((double *)y->data)[i] = sum;
    }
    return true;
}

extern const ed_op ed_op_recurrence;

ed_tensor *recurrence(ed_tensor *a, ed_tensor *b, int64_t axis, bool reverse)
{
    return CALL_OP(
        recurrence,
        ED_ATTRS(ED_CUMULATIVE_OPTIONS, ed_cumulative_options, .axis = axis, .reverse = reverse), a,
        b);
}

ed_tensor *recurrence_neighbour(ed_tensor *x, int64_t axis, bool back, double other)
{
    int64_t begin[ED_MAX_RANK] = {0}, end[ED_MAX_RANK], pads[ED_MAX_RANK] = {0};
    int64_t none[ED_MAX_RANK] = {0};
    if (!x) return NULL;
    const int rank = ed_rank(x), at = tensor_axis(axis, rank);
    for (int d = 0; d < rank; d++) end[d] = ed_dim(x, d);
    if (end[at] == 0) return x;
    pads[at] = 1;
    *(back ? &end[at] : &begin[at]) = back ? end[at] - 1 : 1;
    ed_tensor *part = ed_slice(x, .begin = {begin, rank}, .end = {end, rank});
    return back ? ed_pad(part, .before = {pads, rank}, .after = {none, rank}, .value = other)
                : ed_pad(part, .before = {none, rank}, .after = {pads, rank}, .value = other);
}

static bool recurrence_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const ed_cumulative_options *o = g->attrs;
    ed_tensor *next = recurrence_neighbour(g->inputs[0], o->axis, o->reverse, 0);
    ed_tensor *db = recurrence(next, g->dy[0], o->axis, !o->reverse);
    if (g->needs[1]) g->dx[1] = ed_keep(db);
    if (g->needs[0])
        g->dx[0] =
            ed_keep(ed_mul(db, recurrence_neighbour(g->outputs[0], o->axis, !o->reverse, 0)));
    return true;
}

ED_OP(recurrence) = {
    .name = "recurrence",
    .doc = "y[i] = a[i] y[i - 1] + b[i] along the axis",
    TWO(ED_SET_FLOAT),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(ED_CUMULATIVE_OPTIONS, ed_cumulative_options),
    .infer = recurrence_infer,
    .batch = ed_batch_axes,
    .kernel = recurrence_kernel,
    .gradient = recurrence_gradient,
    SAVES_Y,
    .operands[0].saved = true,
    .reference = recurrence_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-1, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_CUMULATIVE_OPTIONS, ed_cumulative_options,
                                             .axis = 1, .reverse = true)}),
};
