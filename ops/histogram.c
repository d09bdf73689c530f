/*
 * Histograms: a kernel finds each element's bin, the rest are compositions.
 */
#include "ops/bins.h"
#include "ops/execute.h"
#include "ops/shape.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

/* ---- Bins of one width ----------------------------------------------------------------------- */

/* by_step: by the width of a bin, as TensorFlow counts; else by the part of the range, as it
 * numbers. The two round differently at edges. */
#define WIDTH_ATTRS(FIELD, T)                                                                      \
    FIELD(T, FLOAT, low, 0, ED_FINITE, "where the first bin begins")                               \
    FIELD(T, FLOAT, high, 1, ED_FINITE, "where the last bin ends")                                 \
    ED_HISTOGRAM_FIXED_WIDTH_OPTIONS(FIELD, T)
#define WIDTH_BIN_ATTRS(FIELD, T)                                                                  \
    WIDTH_ATTRS(FIELD, T)                                                                          \
    FIELD(T, BOOL, by_step, false, ED_ANY, "divide by the width of a bin")
ED_OPTIONS(width_attrs, WIDTH_ATTRS);
ED_OPTIONS(width_bin_attrs, WIDTH_BIN_ATTRS);

static double rounded(ed_dtype dtype, double x)
{
    return dtype == ED_FLOAT32 ? (double)(float)x : x;
}

/* By the part of the range each operation is rounded to float32 if x is, by the width none. */
static double fixed_bin(double x, ed_dtype dtype, const width_bin_attrs *a)
{
    const double low = rounded(dtype, a->low), high = rounded(dtype, a->high);
    const double range = rounded(dtype, high - low), above = rounded(dtype, x - low);
    const double bin = a->by_step
                           ? (x - low) / ((high - low) / (double)a->nbins)
                           : rounded(dtype, (double)a->nbins * rounded(dtype, above / range));
    return fmin(fmax(floor(bin), 0), (double)(a->nbins - 1));
}

static bool fixed_infer(ed_call *call)
{
    const width_bin_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (!(a->low < a->high) || !isfinite(a->high - a->low))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "low must be less than high, and their difference finite: low is %g, "
                            "high is %g",
                            a->low, a->high);
    if (a->dtype != ED_INT32 && a->dtype != ED_INT64)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "dtype must be int32 or int64, got %s",
                            ed_dtype_name(a->dtype));
    if (a->dtype == ED_INT32 && a->nbins > INT32_MAX)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "int32 can't number %lld bins",
                            (long long)a->nbins);
    return ed_call_output(call, 0, a->dtype, x->rank, x->shape);
}

/* The bins of elements first..last-1; of NaN -1. */
static void fixed_range(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const width_bin_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const double v = dtype_load(x->dtype, x->data, i);
        const double bin = isnan(v) ? -1 : fixed_bin(v, x->dtype, a);
        if (y->dtype == ED_INT64)
            ((int64_t *)y->data)[i] = (int64_t)bin;
        else
            ((int32_t *)y->data)[i] = (int32_t)bin;
    }
}

/* The same of float32 by the width, into int64: what histogram_fixed_width mostly asks for. */
static void fixed_range_by_step(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const width_bin_attrs *a = call->attrs;
    const float *x = (const float *)call->inputs[0]->data;
    int64_t *y = (int64_t *)call->outputs[0]->data;
    const double low = (double)(float)a->low, most = (double)(a->nbins - 1);
    const double width = ((double)(float)a->high - low) / (double)a->nbins;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const double bin = ((double)x[i] - low) / width;
        y[i] = (int64_t)(bin > 0 ? bin < most ? bin : most : 0);
    }
}

/* The number of the first NaN; -1: there is none. */
static int64_t first_nan(const ed_tensor *x)
{
    if (!ed_dtype_is_float(x->dtype)) return -1;
    if (x->dtype == ED_FLOAT32) {
        const float *v = (const float *)x->data;
        for (int64_t i = 0; i < x->size; i++)
            if (v[i] != v[i]) return i;
        return -1;
    }
    for (int64_t i = 0; i < x->size; i++)
        if (isnan(dtype_load(x->dtype, x->data, i))) return i;
    return -1;
}

static bool fixed_kernel(ed_call *call)
{
    const width_bin_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int64_t nan = first_nan(x);
    const bool plain = x->dtype == ED_FLOAT32 && a->by_step && a->dtype == ED_INT64;
    if (nan >= 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x[%lld], counted flat, is NaN, which is in no bin", (long long)nan);
    threads_run(x->size, OPS_PARALLEL_WORK / 4 + 1, plain ? fixed_range_by_step : fixed_range,
                call);
    return true;
}

/* Each bin is asked whether it is the one: where edges are not rounded, by them. */
static bool fixed_reference(const ed_call *call)
{
    const width_bin_attrs *a = call->attrs;
    const ed_dtype dtype = tensor_read(call->operands[0])->dtype; /* inputs are float64 here */
    for (int64_t i = 0; i < call->outputs[0]->size; i++) {
        const double x = ((const double *)call->inputs[0]->data)[i];
        int64_t bin = 0;
        if (dtype == ED_FLOAT32)
            bin = (int64_t)fixed_bin(x, dtype, a);
        else
            while (bin + 1 < a->nbins &&
                   x >= a->low + (double)(bin + 1) * ((a->high - a->low) / (double)a->nbins))
                bin++;
        ((double *)call->outputs[0]->data)[i] = (double)bin;
    }
    return true;
}

#define BINNED(...) .attrs = ED_ATTRS(WIDTH_BIN_ATTRS, width_bin_attrs, __VA_ARGS__)

ED_OP(fixed_bins) = {
    .name = "fixed_bins",
    .doc = "the bin of equal width in which each element is",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(WIDTH_BIN_ATTRS, width_bin_attrs),
    .infer = fixed_infer,
    .kernel = fixed_kernel,
    .no_gradient = "an index does not change gradually",
    .reference = fixed_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)},
                           BINNED(.low = -1.03, .high = 1.11, .nbins = 5)},
                          {.inputs = {ED_SAMPLE_IN(-20, 20, 9)},
                           BINNED(.low = -9.7, .high = 9.5, .dtype = ED_INT64, .by_step = true)}),
};

static ed_tensor *fixed_bins(ed_tensor *x, const width_attrs *a, ed_dtype dtype, bool by_step)
{
    return CALL_OP(fixed_bins,
                   ED_ATTRS(WIDTH_BIN_ATTRS, width_bin_attrs, .low = a->low, .high = a->high,
                            .nbins = a->nbins, .dtype = dtype, .by_step = by_step),
                   x);
}

/* The checks of the kernel's op, in the name of the op that was called. */
static bool check_fixed(ed_call *call)
{
    const width_attrs *a = call->attrs;
    if (!(a->low < a->high) || !isfinite(a->high - a->low))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "low must be less than high: low is %g, high is %g", a->low, a->high);
    return a->dtype == ED_INT32 || a->dtype == ED_INT64 ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "dtype must be int32 or int64, got %s",
                        ed_dtype_name(a->dtype));
}

static bool fixed_width_bins_compose(ed_call *call)
{
    const width_attrs *a = call->attrs;
    return check_fixed(call) &&
           ed_call_result(call, 0, fixed_bins(call->inputs[0], a, a->dtype, false));
}

static bool fixed_width_compose(ed_call *call)
{
    const width_attrs *a = call->attrs;
    if (!check_fixed(call)) return false;
    ed_tensor *bins = fixed_bins(call->inputs[0], a, ED_INT64, true);
    return ed_call_result(call, 0, ed_cast(bins_count(bins, a->nbins), a->dtype));
}

static width_bin_attrs with_step(const ed_call *call, bool by_step)
{
    const width_attrs *a = call->attrs;
    return (width_bin_attrs)ED_COMPLETE(WIDTH_BIN_ATTRS, width_bin_attrs, .low = a->low,
                                        .high = a->high, .nbins = a->nbins, .by_step = by_step);
}

static bool fixed_width_bins_reference(const ed_call *call)
{
    const width_bin_attrs a = with_step(call, false);
    ed_call with = *call;
    with.attrs = &a;
    return fixed_reference(&with);
}

static bool fixed_width_reference(const ed_call *call)
{
    const width_bin_attrs a = with_step(call, true);
    double *y = (double *)call->outputs[0]->data;
    const ed_dtype dtype = tensor_read(call->operands[0])->dtype;
    memset(y, 0, (size_t)call->outputs[0]->size * sizeof *y);
    for (int64_t i = 0; i < call->inputs[0]->size; i++)
        y[(int64_t)fixed_bin(((const double *)call->inputs[0]->data)[i], dtype, &a)]++;
    return true;
}

#define FIXED(...) .attrs = ED_ATTRS(WIDTH_ATTRS, width_attrs, __VA_ARGS__)
#define FIXED_WIDTH(symbol, short_name, text)                                                      \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {{"x", ED_SET_NUMBER, 'T'}},                                                   \
        ED_OP_ATTRS(WIDTH_ATTRS, width_attrs),                                                     \
        .compose = short_name##_compose,                                                           \
        .no_gradient = "a count does not change gradually",                                        \
        .reference = short_name##_reference,                                                       \
        .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)},                              \
                               FIXED(.low = -1.03, .high = 1.11, .nbins = 5)},                     \
                              {.inputs = {ED_SAMPLE_IN(-20, 20, 9)},                               \
                               FIXED(.low = -9.5, .high = 9.5, .nbins = 7, .dtype = ED_INT64)})};  \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, double low, double high,                           \
                                  const ed_histogram_fixed_width_options *options)                 \
    {                                                                                              \
        options = OPTIONS_OR_DEFAULTS(ED_HISTOGRAM_FIXED_WIDTH_OPTIONS, options);                  \
        return CALL_OP(symbol,                                                                     \
                       ED_OPTIONS_FROM(ED_HISTOGRAM_FIXED_WIDTH_OPTIONS, options, width_attrs,     \
                                       .low = low, .high = high),                                  \
                       x);                                                                         \
    }

FIXED_WIDTH(histogram_fixed_width, fixed_width, "how many elements are in bins of equal width")
FIXED_WIDTH(histogram_fixed_width_bins, fixed_width_bins,
            "the bin of equal width in which each element is")

/* ---- Bins between edges ---------------------------------------------------------------------- */

static bool edge_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *edges = call->inputs[1];
    if (edges->rank != 1 || edges->shape[0] < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "edges must have shape [n + 1] with n >= 1, got %s",
                            text_of_tensor(edges).s);
    return ed_call_output(call, 0, ED_INT64, x->rank, x->shape);
}

/* The bin of x among n; -1 outside. */
static int64_t edge_bin(const ed_tensor *edges, int64_t n, double x)
{
    int64_t low = 0, high = n; /* edge low is <= x, edge high is > x or the last one */
    if (!(x >= dtype_load(edges->dtype, edges->data, 0)) ||
        x > dtype_load(edges->dtype, edges->data, n))
        return -1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (dtype_load(edges->dtype, edges->data, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void edge_range(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const ed_tensor *x = call->inputs[0], *edges = call->inputs[1];
    (void)worker;
    for (int64_t i = first; i < last; i++)
        ((int64_t *)call->outputs[0]->data)[i] =
            edge_bin(edges, edges->shape[0] - 1, dtype_load(x->dtype, x->data, i));
}

#define TYPE f32
#include "ops/histogram.typed.h"
#define TYPE f64
#include "ops/histogram.typed.h"

static bool edge_kernel(ed_call *call)
{
    const ed_tensor *edges = call->inputs[1];
    const threads_range range = edges->dtype == ED_FLOAT32   ? edge_range_f32
                                : edges->dtype == ED_FLOAT64 ? edge_range_f64
                                                             : edge_range;
    for (int64_t i = 1; i < edges->size; i++) {
        const double before = dtype_load(edges->dtype, edges->data, i - 1),
                     here = dtype_load(edges->dtype, edges->data, i);
        if (!(here >= before))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "edges[%lld] is %g, less than %g before it; edges must ascend",
                                (long long)i, here, before);
    }
    threads_run(call->inputs[0]->size, OPS_PARALLEL_WORK / 8 + 1, range, call);
    return true;
}

/* The last bin that holds x. */
static double plain_edge_bin(const double *edges, int64_t n, double x)
{
    double bin = -1;
    for (int64_t k = 0; k < n; k++)
        if (x >= edges[k] && (x < edges[k + 1] || (k == n - 1 && x == edges[n]))) bin = (double)k;
    return bin;
}

static bool edge_reference(const ed_call *call)
{
    const ed_tensor *edges = call->inputs[1];
    for (int64_t i = 0; i < call->outputs[0]->size; i++)
        ((double *)call->outputs[0]->data)[i] =
            plain_edge_bin((const double *)edges->data, edges->size - 1,
                           ((const double *)call->inputs[0]->data)[i]);
    return true;
}

#define EDGES_IN ED_SORTED_IN(-1, 1, 4)

ED_OP(edge_bins) = {
    .name = "edge_bins",
    .doc = "the bin between edges in which each element is, -1 outside",
    .operands = {{"x", ED_SET_NUMBER, 'T'}, {"edges", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = edge_infer,
    .kernel = edge_kernel,
    .no_gradient = "an index does not change gradually",
    .reference = edge_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 9), EDGES_IN}},
                          {.inputs = {ED_SAMPLE_IN(-9, 9, 3, 5), ED_SORTED_IN(-8, 8, 7)}}),
};

/* Counts as numbers of a float, over their sum and the widths of the bins. */
static ed_tensor *to_density(ed_tensor *counts, ed_tensor *edges, ed_dtype dtype)
{
    if (!counts) return NULL;
    const int64_t n = ed_dim(counts, 0);
    counts = ed_cast(counts, dtype);
    ed_tensor *widths = ed_cast(ed_sub(ed_slice(edges, .begin = ED_INTS(1), .end = ED_INTS(n + 1)),
                                       ed_slice(edges, .begin = ED_INTS(0), .end = ED_INTS(n))),
                                dtype);
    return ed_div(ed_div(counts, widths), ed_reduce_sum(counts));
}

static bool histogram_compose(ed_call *call)
{
    const ed_histogram_options *o = call->attrs;
    ed_tensor *x = call->inputs[0], *edges = call->inputs[1];
    ed_tensor *weights = call->n_inputs > 2 ? call->inputs[2] : NULL;
    const ed_tensor *value = tensor_read(x), *w = weights ? tensor_read(weights) : NULL;
    if (w && (w->rank != value->rank ||
              memcmp(w->shape, value->shape, (size_t)w->rank * sizeof *w->shape)))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "weights are %s; expected the shape of x, %s", text_of_tensor(w).s,
                            text_of_tensor(value).s);
    ed_tensor *bins = CALL_OP(edge_bins, NULL, ed_flatten(x), edges);
    if (!bins) return false;
    const int64_t n = ed_dim(edges, 0) - 1;
    ed_tensor *y = w ? ed_unsorted_segment_sum(ed_flatten(weights), bins, n) : bins_count(bins, n);
    const ed_dtype dtype = w && ed_dtype_is_float(w->dtype)  ? w->dtype
                           : ed_dtype_is_float(value->dtype) ? value->dtype
                                                             : ED_FLOAT64;
    return ed_call_result(call, 0, o->density ? to_density(y, edges, dtype) : y);
}

static bool histogram_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *edges = call->inputs[1], *y = call->outputs[0];
    const double *at = (const double *)edges->data;
    double sum = 0, *counts = (double *)y->data;
    memset(counts, 0, (size_t)y->size * sizeof *counts);
    for (int64_t i = 0; i < x->size; i++) {
        const double bin = plain_edge_bin(at, y->size, ((const double *)x->data)[i]);
        const double w = call->n_inputs > 2 ? ((const double *)call->inputs[2]->data)[i] : 1;
        if (bin < 0) continue;
        counts[(int64_t)bin] += w;
        sum += w;
    }
    for (int64_t k = 0; ((const ed_histogram_options *)call->attrs)->density && k < y->size; k++)
        counts[k] = counts[k] / (at[k + 1] - at[k]) / sum;
    return true;
}

#define HISTOGRAM(...) .attrs = ED_ATTRS(ED_HISTOGRAM_OPTIONS, ed_histogram_options, __VA_ARGS__)

/* y[k] = number of elements in bin k */
ED_OP(histogram) = {
    .name = "histogram",
    .doc = "how many elements are in each bin between edges, or the sum of their weights",
    .operands = {{"x", ED_SET_NUMBER, 'T'},
                 {"edges", ED_SET_NUMBER, 'T'},
                 {"weights", ED_SET_NUMBER, 'W', .optional = true}},
    ED_OP_ATTRS(ED_HISTOGRAM_OPTIONS, ed_histogram_options),
    .compose = histogram_compose,
    .reference = histogram_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5), EDGES_IN, ED_SAMPLE_IN(1, 2, 3, 5)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 9), EDGES_IN}},
        {.inputs = {ED_SAMPLE_IN(-9, 9, 3, 5), ED_SORTED_IN(-8, 8, 7)}, HISTOGRAM(.density = true)},
        {.inputs = {ED_SAMPLE_IN(-1, 1, 3, 5), EDGES_IN, ED_SAMPLE_IN(1, 2, 3, 5)},
         HISTOGRAM(.density = true)}),
};

ed_tensor *ed_histogram_with(ed_tensor *x, ed_tensor *edges, ed_tensor *weights,
                             const ed_histogram_options *options)
{
    return CALL_OP_GIVEN(histogram, options, x, edges, weights);
}
