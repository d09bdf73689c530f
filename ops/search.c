/*
 * Places among other numbers: in_top_k, searchsorted, bucketize.
 */
#include "ops/batch.h"
#include "ops/index.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

/* Values that are searched in lines of n elements, `each` of them in one line. */
typedef struct searching {
    ed_dtype dtype;
    const char *lines, *values;
    int64_t *y;
    int64_t n, each;
    bool right;
} searching;

enum { SEARCH_LANES = 8 }; /* values that are searched at a time: they wait for memory together */

#define TYPE f32
#include "ops/search.typed.h"
#define TYPE f64
#include "ops/search.typed.h"
#define TYPE i32
#include "ops/search.typed.h"
#define TYPE i64
#include "ops/search.typed.h"
#define TYPE u8
#include "ops/search.typed.h"

/* ---- in_top_k -------------------------------------------------------------------------------- */

#define IN_TOP_K_ATTRS(FIELD, T) FIELD(T, INT, k, 1, ED_AT_LEAST(0), "how many are the top")
ED_OPTIONS(in_top_k_attrs, IN_TOP_K_ATTRS);

static bool in_top_k_infer(ed_call *call)
{
    const ed_tensor *targets = call->inputs[0], *predictions = call->inputs[1];
    if (predictions->rank == 2 && targets->rank == 1 && targets->size == predictions->shape[0])
        return ed_call_output(call, 0, ED_BOOL, 1, targets->shape);
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "targets are %s, predictions %s; they must have shapes [batch] and [batch, "
                        "classes]",
                        text_of_tensor(targets).s, text_of_tensor(predictions).s);
}

typedef struct ranking {
    const ed_tensor *predictions;
    const int64_t *targets;
    int64_t k;
    bool *y;
} ranking;

static void in_top_k_rows(int64_t first, int64_t last, int worker, void *user)
{
    const ranking *r = user;
    const ed_tensor *x = r->predictions;
    const int64_t n = x->shape[1], bytes = n * (int64_t)dtype_size(x->dtype);
    (void)worker;
    for (int64_t i = first; i < last; i++)
        r->y[i] = x->dtype == ED_FLOAT32 ? in_top_f32(x->data + i * bytes, n, r->targets[i], r->k)
                                         : in_top_f64(x->data + i * bytes, n, r->targets[i], r->k);
}

static bool in_top_k_kernel(ed_call *call)
{
    const ed_tensor *predictions = call->inputs[1];
    const int64_t classes = predictions->shape[1];
    ranking r = {.predictions = predictions,
                 .targets = index_read(call, call->inputs[0], classes),
                 .k = ((const in_top_k_attrs *)call->attrs)->k,
                 .y = (bool *)call->outputs[0]->data};
    if (!r.targets) return false;
    threads_run(predictions->shape[0], 1 + OPS_PARALLEL_WORK / (classes + 1), in_top_k_rows, &r);
    index_drop(call->inputs[0], r.targets);
    return true;
}

static bool in_top_k_plain(const ed_call *call)
{
    const ed_tensor *targets = call->inputs[0], *x = call->inputs[1];
    for (int64_t i = 0; i < targets->size; i++) {
        const double *row = (const double *)x->data + i * x->shape[1];
        const double target = row[(int64_t)((const double *)targets->data)[i]];
        int64_t left = ((const in_top_k_attrs *)call->attrs)->k;
        for (int64_t j = 0; j < x->shape[1]; j++) {
            if (row[j] > target) left--;
            if (!isfinite(row[j])) left = INT64_MIN / 2;
        }
        ((double *)call->outputs[0]->data)[i] = left > 0;
    }
    return true;
}

#define IN_TOP_K(n) ED_ATTRS(IN_TOP_K_ATTRS, in_top_k_attrs, .k = n)

ED_OP(in_top_k) = {
    .name = "in_top_k",
    .doc = "whether fewer than k predictions are greater than the target's",
    .operands = {{"targets", ED_SET_INDEX, 'I'}, {"predictions", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(IN_TOP_K_ATTRS, in_top_k_attrs),
    .infer = in_top_k_infer,
    .batch = batch_examples,
    .kernel = in_top_k_kernel,
    .no_gradient = "its result is a truth",
    .reference = in_top_k_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(0, 4, 6), ED_SAMPLE_IN(-2, 2, 6, 5)}, .attrs = IN_TOP_K(2)},
        {.inputs = {ED_SAMPLE_IN(0, 2, 4), ED_SAMPLE_IN(1, 1, 4, 3)}, .attrs = IN_TOP_K(1)}),
};

ed_tensor *ed_in_top_k(ed_tensor *targets, ed_tensor *predictions, int64_t k)
{
    return CALL_OP(in_top_k, IN_TOP_K(k), targets, predictions);
}

/* ---- searchsorted ---------------------------------------------------------------------------- */

static bool searchsorted_infer(ed_call *call)
{
    const ed_tensor *lines = call->inputs[0], *values = call->inputs[1];
    const int leading = lines->rank - 1;
    const bool shared = leading == 0;
    if (leading < 0 || (!shared && (values->rank != lines->rank ||
                                    memcmp(lines->shape, values->shape,
                                           (size_t)leading * sizeof *lines->shape) != 0)))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "sorted_sequence is %s, values are %s; sorted_sequence must have rank "
                            "1, or both the same axes before the last",
                            text_of_tensor(lines).s, text_of_tensor(values).s);
    return ed_call_output(call, 0, ED_INT64, values->rank, values->shape);
}

static void search_range(int64_t first, int64_t last, int worker, void *user)
{
    const searching *s = user;
    (void)worker;
    switch (s->dtype) {
    case ED_FLOAT32: search_values_f32(s, first, last); break;
    case ED_FLOAT64: search_values_f64(s, first, last); break;
    case ED_INT32: search_values_i32(s, first, last); break;
    case ED_INT64: search_values_i64(s, first, last); break;
    default: search_values_u8(s, first, last);
    }
}

static bool searchsorted_kernel(ed_call *call)
{
    const ed_searchsorted_options *o = call->attrs;
    const ed_tensor *lines = call->inputs[0], *values = call->inputs[1];
    searching s = {.dtype = lines->dtype,
                   .lines = lines->data,
                   .values = values->data,
                   .y = (int64_t *)call->outputs[0]->data,
                   .n = lines->shape[lines->rank - 1],
                   .each = lines->rank == 1 ? values->size : values->shape[values->rank - 1],
                   .right = !strcmp(o->side, "right")};
    threads_run(values->size, 1 + OPS_PARALLEL_WORK / 16, search_range, &s);
    return true;
}

/* Counts the elements before each value, NaN being larger than all numbers. */
static bool searchsorted_plain(const ed_call *call)
{
    const ed_searchsorted_options *o = call->attrs;
    const ed_tensor *lines = call->inputs[0], *values = call->inputs[1];
    const int64_t n = lines->shape[lines->rank - 1];
    const int64_t each = lines->rank == 1 ? values->size : values->shape[values->rank - 1];
    for (int64_t i = 0; i < values->size; i++) {
        const double *line = (const double *)lines->data + i / each * n;
        const double x = ((const double *)values->data)[i];
        int64_t less = 0, equal = 0;
        for (int64_t j = 0; j < n; j++) {
            less += isnan(x) ? !isnan(line[j]) : line[j] < x;
            equal += isnan(x) ? isnan(line[j]) : line[j] == x;
        }
        ((double *)call->outputs[0]->data)[i] = (double)(less + (*o->side == 'r' ? equal : 0));
    }
    return true;
}

#define FROM_RIGHT ED_ATTRS(ED_SEARCHSORTED_OPTIONS, ed_searchsorted_options, .side = "right")

/* One sequence takes any values. */
static ed_list *searchsorted_batch(const ed_batch_call *call)
{
    const ed_tensor *sequence = call->inputs[0], *values = call->inputs[1];
    if (!call->batches[0] && sequence->rank == 1)
        return ed_batch_result(
            ed_searchsorted_with(call->inputs[0], call->batches[1], call->attrs));
    return sequence->rank == values->rank ? ed_batch_axes(call) : ed_batch_each(call);
}

ED_OP(searchsorted) = {
    .name = "searchsorted",
    .doc = "where values would go into lines that ascend",
    .operands = {{"sorted_sequence", ED_SET_NUMBER, 'T'}, {"values", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SEARCHSORTED_OPTIONS, ed_searchsorted_options),
    .infer = searchsorted_infer,
    .batch = searchsorted_batch,
    .kernel = searchsorted_kernel,
    .no_gradient = "its result is an integer",
    .reference = searchsorted_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SORTED_IN(-3, 3, 7), ED_SAMPLE_IN(-4, 4, 2, 5)}},
                          {.inputs = {ED_SORTED_IN(-3, 3, 3, 6), ED_SAMPLE_IN(-4, 4, 3, 5)},
                           .attrs = FROM_RIGHT},
                          {.inputs = {ED_SORTED_IN(0, 2, 9), ED_SAMPLE_IN(1, 1)}}),
};

ed_tensor *(ed_searchsorted_with)(ed_tensor *sorted_sequence, ed_tensor *values,
                                  const ed_searchsorted_options *options)
{
    return CALL_OP(searchsorted, options, sorted_sequence, values);
}

/* ---- bucketize ------------------------------------------------------------------------------- */

static bool check_boundaries(const ed_call *call, const ed_tensor *boundaries)
{
    const double *all = boundaries ? ed_as_doubles(boundaries) : NULL;
    if (!all) return false;
    if (ed_rank(boundaries) != 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "boundaries must have rank 1, got %s",
                            text_of_tensor(tensor_read(boundaries)).s);
    for (int64_t i = 0; i < ed_size(boundaries); i++)
        if (isnan(all[i]) || (i && all[i - 1] > all[i]))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "boundaries must ascend, which %.17g at position %lld does not",
                                all[i], text_nth(i));
    return true;
}

static bool bucketize_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0], *boundaries = call->inputs[1];
    const ed_dtype a = ed_dtype_of(x), b = ed_dtype_of(boundaries);
    const bool floats = ed_dtype_is_float(a) || ed_dtype_is_float(b);
    const ed_dtype common = a == b ? a : floats ? ED_FLOAT64 : ED_INT64;
    if (!check_boundaries(call, boundaries)) return false;
    if (a != common) x = ed_cast(x, common);
    if (b != common) boundaries = ed_cast(boundaries, common);
    return ed_call_result(call, 0, ed_searchsorted(boundaries, x, .side = "right"));
}

static bool bucketize_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *boundaries = call->inputs[1];
    for (int64_t i = 0; i < x->size; i++) {
        int64_t bucket = 0;
        for (int64_t j = 0; j < boundaries->size; j++)
            bucket += !(((const double *)boundaries->data)[j] > ((const double *)x->data)[i]);
        ((double *)call->outputs[0]->data)[i] = (double)bucket;
    }
    return true;
}

ED_OP(bucketize) = {
    .name = "bucketize",
    .doc = "how many ascending boundaries are not greater than x",
    .operands = {{"x", ED_SET_NUMBER}, {"boundaries", ED_SET_NUMBER, .early = true}},
    .compose = bucketize_compose,
    .no_gradient = "its result is an integer",
    .reference = bucketize_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-3, 3, 3, 5), ED_SORTED_IN(-2, 2, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 3), ED_SORTED_IN(0, 3, 1)}}),
};

ed_tensor *(ed_bucketize)(ed_tensor *x, ed_tensor *boundaries)
{
    return CALL_OP(bucketize, NULL, x, boundaries);
}
