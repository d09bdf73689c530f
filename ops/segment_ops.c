/*
 * Compositions on segments: means, and what takes sorted ids, whose last one says how many segments
 * there are.
 */
#include "ops/bins.h"
#include "ops/index.h"
#include "ops/ops.h"
#include "ops/segments.h"
#include <math.h>
#include <string.h>

/* ---- Means ----------------------------------------------------------------------------------- */

#define SEGMENT_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, num_segments, -1, ED_AT_LEAST(0), "number of segments")
ED_OPTIONS(segment_attrs, SEGMENT_ATTRS);

/* How many slices each segment has, at least 1, to broadcast against the sums. */
static ed_tensor *counted(ed_tensor *ids, int64_t segments, const ed_tensor *x)
{
    int64_t shape[ED_MAX_RANK] = {segments};
    for (int d = 1; d < ED_MAX_RANK; d++) shape[d] = 1;
    ed_tensor *count = ed_cast(bins_count(ids, segments), x->dtype);
    return ed_reshape(ed_maximum(count, 1), ((ed_ints){shape, x->rank - ed_rank(ids) + 1}));
}

static bool mean_compose(ed_call *call)
{
    const int64_t segments = ((const segment_attrs *)call->attrs)->num_segments;
    const segment_kind kind = *(const segment_kind *)call->op->extra;
    ed_tensor *x = call->inputs[0], *ids = call->inputs[1];
    if (!segment_check_shapes(call, tensor_read(x), tensor_read(ids))) return false;
    ed_tensor *sum = ed_unsorted_segment_sum(x, ids, segments);
    if (!sum) return false;
    ed_tensor *count = counted(ids, segments, tensor_read(x));
    return ed_call_result(call, 0, ed_div(sum, kind == SEGMENT_MEAN ? count : ed_sqrt(count)));
}

static bool mean_reference(const ed_call *call)
{
    return segment_plain(call, *(const segment_kind *)call->op->extra, 0);
}

#define MEAN_SAMPLE(...)                                                                           \
    {                                                                                              \
        .inputs = {__VA_ARGS__},                                                                   \
        .attrs = ED_ATTRS(SEGMENT_ATTRS, segment_attrs, .num_segments = 4)                         \
    }
#define MEAN(symbol, what, text)                                                                   \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {{"x", ED_SET_FLOAT, 'T'}, {"ids", ED_SET_INDEX, 'I'}},                        \
        ED_OP_ATTRS(SEGMENT_ATTRS, segment_attrs),                                                 \
        .compose = mean_compose,                                                                   \
        .reference = mean_reference,                                                               \
        .extra = &(const segment_kind){what},                                                      \
        .samples = ED_SAMPLES(MEAN_SAMPLE(ED_SAMPLE_IN(-2, 2, 5, 2), ED_SAMPLE_IN(-1, 2, 5)),      \
                              MEAN_SAMPLE(ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-1, 3, 2, 3)))}; \
    ed_tensor *ed_##symbol(ed_tensor *x, ed_tensor *ids, int64_t num_segments)                     \
    {                                                                                              \
        return CALL_OP(                                                                            \
            symbol, ED_ATTRS(SEGMENT_ATTRS, segment_attrs, .num_segments = num_segments), x, ids); \
    }

MEAN(unsorted_segment_mean, SEGMENT_MEAN, "means of slices of x with the same id")
MEAN(unsorted_segment_sqrt_n, SEGMENT_SQRT_N,
     "sums of slices of x with the same id, over the root of their number")

/* ---- Sorted ids ------------------------------------------------------------------------------ */

/* The number of segments of sorted ids; -1, with an error, if they are not. */
static int64_t count_segments(const ed_call *call, const ed_tensor *ids)
{
    const index_order order = index_order_of(ids);
    if (order.sorted && order.least >= 0 && order.largest < INT64_MAX) return order.largest + 1;
    int64_t i = 0, before = 0;
    for (; i < ids->size - 1 && index_at(ids, i) >= before; i++) before = index_at(ids, i);
    ed_call_fail(call, ED_INVALID_ARGUMENT,
                 "id %lld at position %lld: ids must be >= 0, and none less than the one before",
                 (long long)index_at(ids, i), text_nth(i));
    return -1;
}

/* y with 0 in segments without slices, of maxima and minima. */
static ed_tensor *zeroed(ed_tensor *y, const ed_tensor *ids, int64_t segments)
{
    bool gaps = false;
    int64_t shape[ED_MAX_RANK] = {segments};
    for (int64_t i = 0; i < ids->size; i++)
        gaps |= index_at(ids, i) > (i ? index_at(ids, i - 1) + 1 : 0);
    if (!gaps) return y;
    ed_tensor *present = scope_give(tensor_new(ED_BOOL, 1, shape));
    if (!present) return NULL;
    memset(present->data, 0, (size_t)segments);
    for (int64_t i = 0; i < ids->size; i++) ((bool *)present->data)[index_at(ids, i)] = true;
    for (int d = 1; d < ED_MAX_RANK; d++) shape[d] = 1;
    return ed_where(ed_reshape(present, ((ed_ints){shape, ed_rank(y)})), y, 0);
}

static bool sorted_compose(ed_call *call)
{
    static ed_tensor *(*const functions[])(ed_tensor *, ed_tensor *, int64_t) = {
        ed_unsorted_segment_sum, ed_unsorted_segment_prod, ed_unsorted_segment_max,
        ed_unsorted_segment_min, ed_unsorted_segment_mean, ed_unsorted_segment_sqrt_n};
    const segment_kind kind = *(const segment_kind *)call->op->extra;
    ed_tensor *x = call->inputs[0];
    ed_tensor *ids = scope_give(tensor_contiguous(tensor_read(call->inputs[1])));
    if (!ids || !segment_check_shapes(call, tensor_read(x), ids)) return false;
    if (ids->rank != 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "ids must have rank 1, got %s",
                            text_of_tensor(ids).s);
    const int64_t segments = count_segments(call, ids);
    if (segments < 0) return false;
    ed_tensor *y = functions[kind](x, ids, segments);
    if (y && (kind == SEGMENT_MAX || kind == SEGMENT_MIN)) y = zeroed(y, ids, segments);
    return ed_call_result(call, 0, y);
}

#define SORTED(symbol, what, text, set, in)                                                        \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"x", set, 'T'}, {"ids", ED_SET_INDEX, 'I', .early = true}},     \
                     .compose = sorted_compose,                                                    \
                     .reference = mean_reference,                                                  \
                     .extra = &(const segment_kind){what},                                         \
                     .samples =                                                                    \
                         ED_SAMPLES({.inputs = {in(-2, 2, 5, 2), ED_SORTED_IN(0, 2, 5)}},          \
                                    {.inputs = {in(-2, 2, 4, 1, 3), ED_SORTED_IN(1, 6, 4)}},       \
                                    {.inputs = {in(-2, 2, 7), ED_SORTED_IN(0, 1, 7)}})};           \
    ed_tensor *ed_##symbol(ed_tensor *x, ed_tensor *ids)                                           \
    {                                                                                              \
        return CALL_OP(symbol, NULL, x, ids);                                                      \
    }

SORTED(segment_sum, SEGMENT_SUM, "sums of slices of x with the same id, of sorted ids",
       ED_SET_NUMBER, ED_SAMPLE_IN)
SORTED(segment_prod, SEGMENT_PROD, "products of slices of x with the same id, of sorted ids",
       ED_SET_NUMBER, ED_SAMPLE_IN)
SORTED(segment_max, SEGMENT_MAX, "maxima of slices of x with the same id, of sorted ids",
       ED_SET_NUMBER, ED_DISTINCT_IN)
SORTED(segment_min, SEGMENT_MIN, "minima of slices of x with the same id, of sorted ids",
       ED_SET_NUMBER, ED_DISTINCT_IN)
SORTED(segment_mean, SEGMENT_MEAN, "means of slices of x with the same id, of sorted ids",
       ED_SET_FLOAT, ED_SAMPLE_IN)
SORTED(segment_sqrt_n, SEGMENT_SQRT_N,
       "sums of slices of x with the same id, over the root of their number, of sorted ids",
       ED_SET_FLOAT, ED_SAMPLE_IN)
