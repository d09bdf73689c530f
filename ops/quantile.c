/*
 * quantile, percentile, median: compositions of gather, which has the gradient, and of an op that
 * finds where the wanted elements are.
 */
#include "ops/reductions.h"
#include "ops/select.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Where the k-th smallest element is ------------------------------------------------------ */

/* quantile_indices: of each row of x [rows, n] the flat indices of its low-th and high-th smallest
 * element, [2, rows]; of a row with a NaN twice that. */
#define QUANTILE_ATTRS(FIELD, T)                                                                   \
    FIELD(T, INT, low, 0, ED_AT_LEAST(0), "rank of the first")                                     \
    FIELD(T, INT, high, 0, ED_AT_LEAST(0), "rank of the second: low or low + 1")
ED_OPTIONS(quantile_attrs, QUANTILE_ATTRS);

static bool quantile_infer(ed_call *call)
{
    const quantile_attrs *attrs = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (x->rank != 2 || attrs->high >= x->shape[1] || attrs->low > attrs->high ||
        attrs->high - attrs->low > 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x %s has no elements of ranks %lld, %lld",
                            text_of_tensor(x).s, (long long)attrs->low, (long long)attrs->high);
    return ed_call_output(call, 0, ED_INT64, 2, (const int64_t[]){2, x->shape[0]});
}

enum { QUANTILE_SOME = 256 }; /* elements that are compared at a time */

#define TYPE f32
#include "ops/quantile.typed.h"
#define TYPE f64
#include "ops/quantile.typed.h"
#define TYPE i32
#include "ops/quantile.typed.h"
#define TYPE i64
#include "ops/quantile.typed.h"
#define TYPE u8
#include "ops/quantile.typed.h"

typedef struct quantile_job {
    ed_call *call;
    uint64_t *room; /* n keys for each worker */
} quantile_job;

static void quantile_rows(int64_t first, int64_t last, int worker, void *user)
{
    const quantile_job *job = user;
    const quantile_attrs *attrs = job->call->attrs;
    const ed_tensor *x = job->call->inputs[0];
    const int64_t rows = x->shape[0], n = x->shape[1];
    int64_t *y = (int64_t *)job->call->outputs[0]->data;
    uint64_t *room = job->room + worker * n;
    for (int64_t i = first; i < last; i++) {
        int64_t *const to[] = {y + i, y + rows + i};
        switch (x->dtype) {
        case ED_FLOAT32: quantile_row_f32(x->data, i * n, n, attrs, room, to); break;
        case ED_FLOAT64: quantile_row_f64(x->data, i * n, n, attrs, room, to); break;
        case ED_INT32: quantile_row_i32(x->data, i * n, n, attrs, room, to); break;
        case ED_INT64: quantile_row_i64(x->data, i * n, n, attrs, room, to); break;
        default: quantile_row_u8(x->data, i * n, n, attrs, room, to);
        }
    }
}

static bool quantile_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (!x->size) return true;
    quantile_job job = {call,
                        memory_alloc((size_t)(ed_num_threads() * x->shape[1]) * sizeof *job.room)};
    if (!job.room) return false;
    threads_run(x->shape[0], 1 + OPS_PARALLEL_WORK / 8 / x->shape[1], quantile_rows, &job);
    memory_free(job.room);
    return true;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The index of the first element of the row at x that has as many before it. */
static int64_t plain_index(const double *x, int64_t n, int64_t rank)
{
    double *sorted = memory_alloc((size_t)n * sizeof *sorted);
    if (!sorted) return -1;
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *x, ascending);
    int64_t i = 0, before = rank;
    while (before > 0 && sorted[before - 1] == sorted[rank]) before--;
    for (before = rank - before; x[i] != sorted[rank] || before-- > 0;) i++;
    memory_free(sorted);
    return i;
}

static bool quantile_indices_reference(const ed_call *call)
{
    const quantile_attrs *attrs = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int64_t rows = x->shape[0], n = x->shape[1];
    for (int64_t r = 0; r < 2 * rows; r++) {
        const double *row = (const double *)x->data + r % rows * n;
        int64_t i = 0;
        while (i < n && !isnan(row[i])) i++;
        if (i == n) i = plain_index(row, n, r < rows ? attrs->low : attrs->high);
        ((double *)call->outputs[0]->data)[r] = (double)(r % rows * n + i);
    }
    return true;
}

ED_OP(quantile_indices) = {
    .name = "quantile_indices",
    .doc = "where the low-th and high-th smallest elements of each row of x are",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(QUANTILE_ATTRS, quantile_attrs),
    .infer = quantile_infer,
    .kernel = quantile_kernel,
    .no_gradient = "an index does not change gradually",
    .reference = quantile_indices_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 7)},
                           .attrs = ED_ATTRS(QUANTILE_ATTRS, quantile_attrs, .low = 2, .high = 3)}),
};

/* ---- Quantiles ------------------------------------------------------------------------------- */

/* The position q of 0..1 among n elements: between which two, and how far from the first. */
typedef struct position {
    int64_t low, high;
    double part;
} position;

static position position_of(double q, int64_t n, const char *method)
{
    const double at = q * (double)(n - 1), low = floor(at);
    position p = {(int64_t)low, (int64_t)ceil(at), at - low};
    if (!strcmp(method, "lower") || (!strcmp(method, "nearest") && rint(at) == low))
        p.high = p.low;
    else if (!strcmp(method, "higher") || !strcmp(method, "nearest"))
        p.low = p.high;
    else if (!strcmp(method, "midpoint"))
        p.part = 0.5;
    return p;
}

/* x with the axes to reduce last, [outputs, elements of each]; *y_shape: of the result. */
static ed_tensor *quantile_groups(ed_call *call, ed_ints axis, bool keepdims, int64_t *y_shape,
                                  int *y_rank)
{
    ed_tensor *x = call->inputs[0];
    const ed_ints shape = ed_shape(x);
    int64_t order[ED_MAX_RANK], outputs = 1, n = 1;
    unsigned mask;
    int rank = 0;
    if (!ops_axes(call, axis, (int)shape.count, &mask)) return NULL;
    for (unsigned gone = 0; gone < 2; gone++)
        for (int d = 0; d < shape.count; d++)
            if ((mask >> d & 1) == gone) {
                order[rank++] = d;
                *(gone ? &n : &outputs) *= shape.values[d];
            }
    *y_rank = reduce_shape(shape, mask, keepdims, y_shape);
    if (n > 0) return ed_reshape(ed_transpose(x, .perm = {order, rank}), ED_SHAPE(outputs, n));
    ed_call_fail(call, ED_INVALID_ARGUMENT, "the reduced axes of %s are empty",
                 text_of_tensor(tensor_read(x)).s);
    return NULL;
}

/* Integers have their quantiles in float64. */
static bool give_quantile(ed_call *call, double q, ed_ints axis, bool keepdims, const char *method)
{
    int64_t shape[ED_MAX_RANK];
    int rank;
    ed_tensor *x = quantile_groups(call, axis, keepdims, shape, &rank);
    if (!x) return false;
    const position p = position_of(q, ed_dim(x, 1), method);
    ed_tensor *at =
        CALL_OP(quantile_indices,
                ED_ATTRS(QUANTILE_ATTRS, quantile_attrs, .low = p.low, .high = p.high), x);
    ed_tensor *flat = ed_flatten(x), *y = ed_gather(flat, ed_index(at, 0));
    if (y && !ed_dtype_is_float(y->dtype)) y = ed_cast(y, ED_FLOAT64);
    if (y && p.high != p.low) {
        ed_tensor *high = ed_cast(ed_gather(flat, ed_index(at, 1)), y->dtype);
        y = ed_add(ed_mul(y, 1 - p.part), ed_mul(high, p.part));
    }
    return ed_call_result(call, 0, ed_reshape(y, (ed_ints){shape, rank}));
}

/* By sorting. */
static double quantile_of(const double *x, int64_t n, double q, const char *method)
{
    double y = NAN, *sorted = memory_alloc((size_t)(n + 1) * sizeof *sorted);
    bool nan = !sorted;
    for (int64_t i = 0; i < n; i++) nan |= isnan(x[i]);
    if (!nan) {
        memcpy(sorted, x, (size_t)n * sizeof *x);
        qsort(sorted, (size_t)n, sizeof *x, ascending);
        const double at = q * (double)(n - 1), part = at - floor(at);
        const double low = sorted[(int64_t)at], high = sorted[(int64_t)ceil(at)];
        if (part == 0 || !strcmp(method, "lower"))
            y = low;
        else if (!strcmp(method, "higher"))
            y = high;
        else if (!strcmp(method, "nearest"))
            y = part < 0.5 || (part == 0.5 && (int64_t)at % 2 == 0) ? low : high;
        else
            y = !strcmp(method, "midpoint") ? low / 2 + high / 2 : low * (1 - part) + high * part;
    }
    memory_free(sorted);
    return y;
}

#define QUANTILE_CALL_ATTRS(FIELD, T)                                                              \
    FIELD(T, FLOAT, q, 0, ED_ANY, "which: of quantile 0 to 1, of percentile 0 to 100")             \
    ED_QUANTILE_OPTIONS(FIELD, T)
ED_OPTIONS(quantile_call_attrs, QUANTILE_CALL_ATTRS);

/* quantile, percentile: extra is what q is at most. */
static bool quantile_compose(ed_call *call)
{
    const quantile_call_attrs *o = call->attrs;
    const double most = *(const double *)call->op->extra;
    if (!(o->q >= 0 && o->q <= most))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "q must be in 0..%g, got %g", most, o->q);
    return give_quantile(call, o->q / most, o->axis, o->keepdims, o->method);
}

/* The options of a reduction, and what a group's reference needs. */
typedef struct quantile_plain {
    ed_reduce_options options;
    double q;
    const char *method;
} quantile_plain;

static double quantile_of_group(const double *x, int64_t n, const void *attrs)
{
    const quantile_plain *p = attrs;
    return quantile_of(x, n, p->q, p->method);
}

static bool quantile_reference(const ed_call *call)
{
    const quantile_call_attrs *o = call->attrs;
    quantile_plain p = {.q = o->q / *(const double *)call->op->extra, .method = o->method};
    p.options.axis = o->axis;
    ed_call plain = *call;
    plain.attrs = &p;
    return reduce_reference(&plain, quantile_of_group);
}

#define QUANTILE(...) ED_ATTRS(QUANTILE_CALL_ATTRS, quantile_call_attrs, __VA_ARGS__)

ED_OP(quantile) = {
    .name = "quantile",
    .doc = "the element of x over the axes below which the part q lies",
    .operands = X(ED_SET_NUMBER),
    ED_OP_ATTRS(QUANTILE_CALL_ATTRS, quantile_call_attrs),
    .extra = &(const double){1},
    .compose = quantile_compose,
    .reference = quantile_reference,
    .samples = ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)}, .attrs = QUANTILE(.q = 0.3)},
                          {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 3, 4)},
                           .attrs = QUANTILE(.q = 0.7, .axis = ED_SAMPLE_INTS(0, -1),
                                             .method = "nearest")},
                          {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)},
                           .attrs = QUANTILE(.q = 0.4, .axis = ED_SAMPLE_INTS(0), .keepdims = true,
                                             .method = "midpoint")}),
};

ED_OP(percentile) = {
    .name = "percentile",
    .doc = "the element of x over the axes below which q percent lie",
    .operands = X(ED_SET_NUMBER),
    ED_OP_ATTRS(QUANTILE_CALL_ATTRS, quantile_call_attrs),
    .extra = &(const double){100},
    .compose = quantile_compose,
    .reference = quantile_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)},
         .attrs = QUANTILE(.q = 30, .axis = ED_SAMPLE_INTS(-1), .method = "lower")},
        {.inputs = {ED_DISTINCT_IN(-2, 2, 5)}, .attrs = QUANTILE(.q = 55, .method = "higher")}),
};

ed_tensor *ed_quantile_with(ed_tensor *x, double q, const ed_quantile_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_QUANTILE_OPTIONS, options);
    return CALL_OP(quantile,
                   ED_OPTIONS_FROM(ED_QUANTILE_OPTIONS, options, quantile_call_attrs, .q = q), x);
}

ed_tensor *ed_percentile_with(ed_tensor *x, double q, const ed_quantile_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_QUANTILE_OPTIONS, options);
    return CALL_OP(percentile,
                   ED_OPTIONS_FROM(ED_QUANTILE_OPTIONS, options, quantile_call_attrs, .q = q), x);
}

/* ---- median ---------------------------------------------------------------------------------- */

static bool median_compose(ed_call *call)
{
    const ed_reduce_options *o = call->attrs;
    return give_quantile(call, 0.5, o->axis, o->keepdims, "midpoint");
}

PLAIN(median, quantile_of(x, n, 0.5, "midpoint"))

ED_OP(median) = {
    .name = "median",
    .doc = "the middle of the sorted elements of x over the axes, or the mean of both",
    .operands = X(ED_SET_NUMBER),
    ED_OP_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options),
    .compose = median_compose,
    .reference = plain_median,
    .samples = ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 3, 4)}, .attrs = KEEPING(1)}),
};

ed_tensor *ed_median_with(ed_tensor *x, const ed_reduce_options *options)
{
    return CALL_OP(median, options, x);
}
