/*
 * partition, argpartition. The key of element number kth of the sorted line is found byte by byte,
 * most significant first, among the elements that agree so far (radix select), whatever their
 * order; of many, a sample leaves few to look at. Then one pass puts each element on its side.
 */
#include "ops/index.h"
#include "ops/ops.h"
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

/* Keys in a sample, how far from the place to expect the one may be, and from how many keys on. */
enum { SAMPLE = 256, SAMPLE_WIDTH = 24, SAMPLE_FROM = HARD(SAMPLE, 1 << 13) };

/* How many keys have each byte. */
static void partition_count(const uint64_t *keys, int64_t n, int shift, int64_t *counts)
{
    int64_t odd[256] = {0}; /* apart, so that equal neighbours do not wait for each other */
    memset(counts, 0, sizeof odd);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        counts[keys[i] >> shift & 255]++;
        odd[keys[i + 1] >> shift & 255]++;
    }
    if (n % 2) counts[keys[n - 1] >> shift & 255]++;
    for (int byte = 0; byte < 256; byte++) counts[byte] += odd[byte];
}

/* The key number *kth of the n sorted ones; *kth is then its number among those that are equal. */
static uint64_t select_by_bytes(const uint64_t *keys, int64_t n, int64_t *kth, uint64_t *candidates)
{
    for (int shift = 56; shift >= 0; shift -= 8) {
        int64_t counts[256], left = 0;
        uint64_t byte = 0;
        partition_count(keys, n, shift, counts);
        for (; *kth >= counts[byte]; byte++) *kth -= counts[byte];
        if (counts[byte] == n) continue;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t key = keys[i];
            candidates[left] = key;
            left += (key >> shift & 255) == byte;
        }
        keys = candidates;
        n = left;
    }
    return keys[0];
}

/* Some keys, evenly taken, in order. */
static void take_sample(const uint64_t *keys, int64_t n, uint64_t *sample)
{
    for (int i = 0; i < SAMPLE; i++) {
        const uint64_t key = keys[n / SAMPLE * i];
        int j = i;
        for (; j > 0 && sample[j - 1] > key; j--) sample[j] = sample[j - 1];
        sample[j] = key;
    }
}

/* The same. Of many keys a sample tells between which two the one lies, mostly, and how many others
 * are left between these after one pass. */
static uint64_t partition_select(const uint64_t *keys, int64_t n, int64_t *kth,
                                 uint64_t *candidates)
{
    uint64_t sample[SAMPLE];
    if (n < SAMPLE_FROM) return select_by_bytes(keys, n, kth, candidates);
    take_sample(keys, n, sample);
    const int near = (int)((double)*kth / (double)n * SAMPLE);
    const uint64_t low = near < SAMPLE_WIDTH ? 0 : sample[near - SAMPLE_WIDTH];
    const uint64_t high = near + SAMPLE_WIDTH < SAMPLE ? sample[near + SAMPLE_WIDTH] : UINT64_MAX;
    int64_t left = 0, less = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        candidates[left] = key;
        left += (key >= low) & (key <= high);
        less += key < low;
    }
    if (*kth < less || *kth >= less + left) return select_by_bytes(keys, n, kth, candidates);
    *kth -= less;
    return select_by_bytes(candidates, left, kth, candidates);
}

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
