/*
 * partition, argpartition. The key of element number kth of the sorted line is selected; then one
 * pass puts each element on its side.
 */
#include "ops/index.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARTITION_ATTRS(FIELD, T)                                                                  \
    FIELD(T, INT, kth, 0, ED_ANY,                                                                  \
          "number of the element that gets its place; negative: from the end")                     \
    ED_ALONG_OPTIONS(FIELD, T)
ED_OPTIONS(partition_attrs, PARTITION_ATTRS);

/* The axis and kth, from 0. */
static bool partition_place(const ed_call *call, int *axis, int64_t *kth)
{
    const partition_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (!ops_axis(call, o->axis, x->rank, axis)) return false;
    const int64_t n = x->shape[*axis];
    *kth = o->kth < 0 ? o->kth + n : o->kth;
    if (*kth >= 0 && *kth < n) return true;
    return ed_call_fail(call, ED_OUT_OF_RANGE, "kth %lld is out of bounds for axis %lld of x, %s",
                        (long long)o->kth, text_nth(*axis), text_of_tensor(x).s);
}

static bool partition_infer(ed_call *call)
{
    int axis;
    int64_t kth;
    return partition_place(call, &axis, &kth) && ops_infer_like(call);
}

static bool argpartition_infer(ed_call *call)
{
    int axis;
    int64_t kth;
    const ed_tensor *x = call->inputs[0];
    return partition_place(call, &axis, &kth) &&
           ed_call_output(call, 0, ED_INT64, x->rank, x->shape);
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* Lines of n elements, `stride` apart, and room for each thread: keys and candidates. */
typedef struct partition_work {
    const ed_tensor *x;
    char *y;
    bool indices; /* are the result */
    int64_t n, stride, kth;
    uint64_t *room;
} partition_work;

#define TYPE f32
#include "ops/partition.typed.h"
#define TYPE f64
#include "ops/partition.typed.h"
#define TYPE i32
#include "ops/partition.typed.h"
#define TYPE i64
#include "ops/partition.typed.h"
#define TYPE u8
#include "ops/partition.typed.h"

static void partition_line(const partition_work *w, int64_t begin, uint64_t *room)
{
    switch (w->x->dtype) {
    case ED_FLOAT32: partition_line_f32(w, begin, room); break;
    case ED_FLOAT64: partition_line_f64(w, begin, room); break;
    case ED_INT32: partition_line_i32(w, begin, room); break;
    case ED_INT64: partition_line_i64(w, begin, room); break;
    default: partition_line_u8(w, begin, room);
    }
}

static void partition_lines(int64_t first, int64_t last, int worker, void *user)
{
    const partition_work *w = user;
    for (int64_t line = first; line < last; line++)
        partition_line(w, line / w->stride * w->stride * w->n + line % w->stride,
                       w->room + 2 * w->n * worker);
}

static bool partition_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int axis;
    partition_work w = {.x = x, .y = call->outputs[0]->data, .indices = call->op->extra};
    if (!x->size) return true;
    if (!partition_place(call, &axis, &w.kth)) return false;
    w.n = x->shape[axis];
    w.stride = index_product(x->shape, axis + 1, x->rank);
    const int64_t lines = x->size / w.n;
    const int workers = lines < threads_count() ? (int)lines : threads_count();
    w.room = memory_alloc((size_t)workers * 2 * (size_t)w.n * sizeof *w.room);
    const bool outer = threads_may_stop(false); /* what is left out would be no index */
    if (w.room)
        threads_run_among(workers, lines, 1 + OPS_PARALLEL_WORK / 8 / w.n, partition_lines, &w);
    threads_may_stop(outer);
    memory_free(w.room);
    return w.room;
}

/* ---- The ops --------------------------------------------------------------------------------- */

typedef struct ranked {
    double value;
    int64_t index;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (isnan(x->value) != isnan(y->value)) return isnan(x->value) ? 1 : -1;
    if (x->value != y->value && !isnan(x->value)) return x->value < y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int compare_indices(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->index < y->index ? -1 : 1;
}

/* Sorts the line, then each side of the place by index. */
static bool partition_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const bool indices = call->op->extra;
    int axis;
    int64_t kth;
    if (!x->size) return true;
    if (!partition_place(call, &axis, &kth)) return false;
    const int64_t n = x->shape[axis], step = index_product(x->shape, axis + 1, x->rank);
    ranked *all = memory_alloc((size_t)n * sizeof *all);
    for (int64_t line = 0; all && line < x->size / n; line++) {
        const int64_t begin = line / step * step * n + line % step;
        for (int64_t i = 0; i < n; i++)
            all[i] = (ranked){((const double *)x->data)[begin + i * step], i};
        qsort(all, (size_t)n, sizeof *all, compare_ranked);
        qsort(all, (size_t)kth, sizeof *all, compare_indices);
        qsort(all + kth + 1, (size_t)(n - kth - 1), sizeof *all, compare_indices);
        for (int64_t i = 0; i < n; i++)
            ((double *)call->outputs[0]->data)[begin + i * step] =
                indices ? (double)all[i].index : all[i].value;
    }
    memory_free(all);
    return all;
}

/* dx = dy put back by the order */
static bool partition_gradient(const ed_gradient_call *g)
{
    const partition_attrs *o = g->attrs;
    ed_tensor *order = ed_argpartition(g->inputs[0], o->kth, .axis = o->axis);
    g->dx[0] = order ? index_along_sum(g->dy[0], order, g->shapes[0], o->axis) : NULL;
    return true;
}

#define PARTITION(...) ED_ATTRS(PARTITION_ATTRS, partition_attrs, __VA_ARGS__)
#define PARTITION_SAMPLES                                                                          \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 7)}, .attrs = PARTITION(.kth = 2)},                   \
        {.inputs = {ED_DISTINCT_IN(-2, 2, 5, 2)}, .attrs = PARTITION(.kth = -1, .axis = 0)},       \
        {.inputs = {ED_DISTINCT_IN(-2, 2, 1)}})

ED_OP(partition) = {
    .name = "partition",
    .doc =
        "element kth of the sorted ones at its place, smaller ones before it, larger ones behind",
    .operands = {{"x", ED_SET_NUMBER, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(PARTITION_ATTRS, partition_attrs),
    .infer = partition_infer,
    .batch = ed_batch_axes,
    .kernel = partition_kernel,
    .gradient = partition_gradient,
    .reference = partition_plain,
    .samples = PARTITION_SAMPLES,
};

ED_OP(argpartition) = {
    .name = "argpartition",
    .doc = "the indices that partition x along an axis",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(PARTITION_ATTRS, partition_attrs),
    .infer = argpartition_infer,
    .batch = ed_batch_axes,
    .kernel = partition_kernel,
    .no_gradient = "its result is an integer",
    .reference = partition_plain,
    .extra = "indices",
    .samples = PARTITION_SAMPLES,
};

ed_tensor *ed_partition_with(ed_tensor *x, int64_t kth, const ed_along_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_ALONG_OPTIONS, options);
    return CALL_OP(partition,
                   ED_OPTIONS_FROM(ED_ALONG_OPTIONS, options, partition_attrs, .kth = kth), x);
}

ed_tensor *ed_argpartition_with(ed_tensor *x, int64_t kth, const ed_along_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_ALONG_OPTIONS, options);
    return CALL_OP(argpartition,
                   ED_OPTIONS_FROM(ED_ALONG_OPTIONS, options, partition_attrs, .kth = kth), x);
}
