/*
 * Counts of integers: bincount and confusion_matrix, of which the first is what the others count
 * with.
 */
#include "ops/bins.h"
#include "ops/execute.h"
#include "ops/index.h"
#include "ops/segments.h"
#include "tensor/threads.h"
#include <string.h>

/* ---- Counts ---------------------------------------------------------------------------------- */

#define COUNT_ATTRS(FIELD, T) FIELD(T, INT, size, 0, ED_AT_LEAST(0), "how many numbers are counted")
ED_OPTIONS(bin_attrs, COUNT_ATTRS);

static bool bin_infer(ed_call *call)
{
    return ed_call_output(call, 0, ED_INT64, 1, &((const bin_attrs *)call->attrs)->size);
}

enum {
    BIN_PIECE = HARD(64, 1 << 16), /* ids that are counted by themselves, at least */
    BIN_PIECES = 16,               /* at most */
    BIN_FEW = 2048, /* bins that are counted in several tables, so that no count waits for the one
                     * before */
    BIN_WAYS = 4,
};

/* Pieces of the ids, each with tables of its own. */
typedef struct counting {
    const ed_tensor *ids;
    uint64_t size;
    int64_t piece; /* ids of each */
    int ways;
    uint32_t *tables;
} counting;

#define COUNT_IDS(type)                                                                            \
    {                                                                                              \
        const type *ids = (const type *)c->ids->data;                                              \
        int64_t i = begin;                                                                         \
        for (; i + BIN_WAYS <= end; i += BIN_WAYS)                                                 \
            for (int k = 0; k < BIN_WAYS; k++) {                                                   \
                const uint64_t id = (uint64_t)ids[i + k];                                          \
                if (id < c->size) table[id + (uint64_t)k * apart]++;                               \
            }                                                                                      \
        for (; i < end; i++)                                                                       \
            if ((uint64_t)ids[i] < c->size) table[ids[i]]++;                                       \
    }

static void count_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const counting *c = user;
    const uint64_t apart = c->ways > 1 ? c->size : 0;
    (void)worker;
    for (int64_t p = first; p < last; p++) {
        uint32_t *table = c->tables + (uint64_t)p * c->size * (uint64_t)c->ways;
        const int64_t begin = p * c->piece,
                      end = begin + c->piece < c->ids->size ? begin + c->piece : c->ids->size;
        if (c->ids->dtype == ED_INT64)
            COUNT_IDS(int64_t)
        else
            COUNT_IDS(int32_t)
    }
}

static void count_one_by_one(const counting *c, int64_t *y)
{
    for (int64_t i = 0; i < c->ids->size; i++) {
        const uint64_t id = (uint64_t)index_at(c->ids, i);
        if (id < c->size) y[id]++;
    }
}

static bool bin_kernel(ed_call *call)
{
    ed_tensor *y = call->outputs[0];
    const int64_t size = y->size, n = call->inputs[0]->size;
    counting c = {
        .ids = call->inputs[0], .size = (uint64_t)size, .ways = size < BIN_FEW ? BIN_WAYS : 1};
    int64_t *counts = memset(y->data, 0, (size_t)size * sizeof *counts);
    const bool many = n / 4 < size || n / UINT32_MAX >= BIN_PIECES; /* tables would not pay */
    if (many) return count_one_by_one(&c, counts), true;
    int64_t pieces = n / BIN_PIECE + 1;
    if (pieces > BIN_PIECES) pieces = BIN_PIECES;
    if (size > n / 64) pieces = 1;
    c.piece = (n + pieces - 1) / pieces;
    const int64_t tables = pieces * c.ways;
    c.tables = memory_zalloc((size_t)(tables * size) * sizeof *c.tables);
    if (!c.tables) return false;
    threads_run(pieces, 1, count_pieces, &c);
    for (int64_t t = 0; t < tables; t++)
        for (int64_t k = 0; k < size; k++) counts[k] += c.tables[t * size + k];
    memory_free(c.tables);
    return true;
}

static bool bin_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    for (int64_t k = 0; k < y->size; k++) {
        double count = 0;
        for (int64_t i = 0; i < x->size; i++) count += ((const double *)x->data)[i] == (double)k;
        ((double *)y->data)[k] = count;
    }
    return true;
}

ED_OP(bin_counts) = {
    .name = "bin_counts",
    .doc = "how often each of 0..size-1 is in x",
    .operands = {{"x", ED_SET_INDEX, 'I'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(COUNT_ATTRS, bin_attrs),
    .infer = bin_infer,
    .kernel = bin_kernel,
    .no_gradient = "its operand is an integer",
    .reference = bin_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 4, 30)},
                           .attrs = ED_ATTRS(COUNT_ATTRS, bin_attrs, .size = 4)},
                          {.inputs = {ED_SAMPLE_IN(0, 40, 2, 3)},
                           .attrs = ED_ATTRS(COUNT_ATTRS, bin_attrs, .size = 40)}),
};

ed_tensor *bins_count(ed_tensor *ids, int64_t n)
{
    return CALL_OP(bin_counts, ED_ATTRS(COUNT_ATTRS, bin_attrs, .size = n), ids);
}

/* ---- What the compositions share ------------------------------------------------------------- */

static ed_tensor *packed_ids(ed_tensor *x)
{
    return x ? scope_give(tensor_contiguous(tensor_read(x))) : NULL;
}

/* Fails if there is a negative number. */
static bool check_numbers(const ed_call *call, const ed_tensor *x, const char *name,
                          index_order *order)
{
    *order = index_order_of(x);
    if (order->least >= 0) return true;
    int64_t i = 0;
    while (index_at(x, i) >= 0) i++;
    return ed_call_fail(call, ED_OUT_OF_RANGE, "%s[%lld], counted flat, is %lld; it must be >= 0",
                        name, (long long)i, (long long)index_at(x, i));
}

/* Whether weights, if given, have the shape of x. */
static bool check_weights(const ed_call *call, const ed_tensor *x, const ed_tensor *weights)
{
    return !weights ||
           (x->rank == weights->rank &&
            !memcmp(x->shape, weights->shape, (size_t)x->rank * sizeof *x->shape)) ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "weights are %s; expected the shape of %s, %s",
                        text_of_tensor(weights).s, call->op->operands[0].name, text_of_tensor(x).s);
}

static bool check_dtype(const ed_call *call, ed_dtype dtype)
{
    return (ED_SET_NUMBER & 1u << dtype) != 0 ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "dtype must be a number's, got %s",
                        ed_dtype_name(dtype));
}

/* ---- bincount -------------------------------------------------------------------------------- */

/* The axes before `axis` are rows; how many numbers there are in each. */
typedef struct bin_rows {
    int axis;
    int64_t rows, bins;
} bin_rows;

/* The shape of the result: the rows', and the bins. */
static ed_ints bins_shape(const ed_tensor *x, const bin_rows *r, int64_t *shape)
{
    memcpy(shape, x->shape, (size_t)r->axis * sizeof *shape);
    shape[r->axis] = r->bins;
    return (ed_ints){shape, r->axis + 1};
}

/* The ids of x's elements among the bins of all rows; -1 for those beyond the bins. */
static ed_tensor *bin_ids(ed_tensor *x, const bin_rows *r)
{
    int64_t total;
    if (r->rows == 1 && !r->axis) return x;
    if (__builtin_mul_overflow(r->rows, r->bins, &total))
        return ed_fail(ED_OUT_OF_MEMORY, "bincount: %lld rows of %lld bins are too many",
                       (long long)r->rows, (long long)r->bins);
    ed_tensor *ids = scope_give(tensor_new(ED_INT64, x->rank, x->shape));
    const int64_t each = r->rows ? x->size / r->rows : 0;
    for (int64_t i = 0; ids && i < x->size; i++) {
        const int64_t number = index_at(x, i);
        ((int64_t *)ids->data)[i] = number < r->bins ? i / each * r->bins + number : -1;
    }
    return ids;
}

/* The weights of numbers beyond the bins count nowhere. */
static ed_tensor *within(ed_tensor *x, int64_t bins, int64_t largest)
{
    return largest < bins ? x : ed_where(ed_less(x, bins), x, -1);
}

static bool bincount_compose(ed_call *call)
{
    const ed_bincount_options *o = call->attrs;
    ed_tensor *x = packed_ids(call->inputs[0]);
    ed_tensor *weights = call->n_inputs > 1 ? call->inputs[1] : NULL;
    bin_rows r = {.rows = 1};
    index_order order;
    int64_t shape[ED_MAX_RANK + 1];
    if (!x || !check_weights(call, x, weights ? tensor_read(weights) : NULL) ||
        !check_dtype(call, o->dtype) || !check_numbers(call, x, "x", &order))
        return false;
    if (weights && o->binary_output)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "binary_output can't have weights");
    if (o->axis && !ops_axis(call, o->axis, x->rank, &r.axis)) return false;
    for (int d = 0; d < r.axis; d++) r.rows *= x->shape[d];
    if (order.largest == INT64_MAX)
        return ed_call_fail(call, ED_OUT_OF_MEMORY, "there are too many bins");
    r.bins = order.largest + 1 > o->minlength ? order.largest + 1 : o->minlength;
    if (o->maxlength >= 0 && r.bins > o->maxlength) r.bins = o->maxlength;
    const ed_ints wanted = bins_shape(x, &r, shape);
    ed_tensor *ids = bin_ids(x, &r), *y;
    if (!ids) return false;
    if (weights) {
        if (ids == x) ids = within(ids, r.bins, order.largest);
        y = x->rank ? ed_unsorted_segment_sum(weights, ids, r.rows * r.bins)
                    : ed_unsorted_segment_sum(ed_flatten(weights), ed_flatten(ids), r.bins);
        return ed_call_result(call, 0, ed_reshape(y, wanted));
    }
    y = bins_count(ids, r.rows * r.bins);
    if (o->binary_output) y = ed_cast(y, ED_BOOL);
    return ed_call_result(call, 0, ed_reshape(ed_cast(y, o->dtype), wanted));
}

static bool bincount_reference(const ed_call *call)
{
    const ed_bincount_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t bins = y->shape[y->rank - 1], rows = bins ? y->size / bins : 0;
    memset(y->data, 0, (size_t)y->size * sizeof(double));
    for (int64_t i = 0; bins && i < x->size; i++) {
        const int64_t number = (int64_t)((const double *)x->data)[i];
        double *to = (double *)y->data + i / (x->size / rows) * bins + number;
        if (number >= bins) continue;
        *to += call->n_inputs > 1 ? ((const double *)call->inputs[1]->data)[i] : 1;
        if (o->binary_output) *to = 1;
    }
    return true;
}

#define BINCOUNT(...) .attrs = ED_ATTRS(ED_BINCOUNT_OPTIONS, ed_bincount_options, __VA_ARGS__)

/* y[k] = number of elements of x that are k; dw = dy there */
ED_OP(bincount) = {
    .name = "bincount",
    .doc = "how often each integer from 0 on is in x, or the sum of its weights",
    .operands = {{"x", ED_SET_INDEX, 'I', .early = true},
                 {"weights", ED_SET_NUMBER, 'W', .optional = true}},
    ED_OP_ATTRS(ED_BINCOUNT_OPTIONS, ed_bincount_options),
    .compose = bincount_compose,
    .reference = bincount_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(0, 5, 9), ED_SAMPLE_IN(-2, 2, 9)}},
        {.inputs = {ED_SAMPLE_IN(0, 5, 9)}},
        {.inputs = {ED_SAMPLE_IN(0, 5, 2, 7)},
         BINCOUNT(.axis = -1, .minlength = 8, .dtype = ED_FLOAT32)},
        {.inputs = {ED_SAMPLE_IN(0, 5, 2, 7)}, BINCOUNT(.binary_output = true, .maxlength = 4)},
        {.inputs = {ED_SAMPLE_IN(0, 5, 2, 7), ED_SAMPLE_IN(-2, 2, 2, 7)}, BINCOUNT(.maxlength = 4)},
        {.inputs = {ED_SAMPLE_IN(0, 3, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}, BINCOUNT(.axis = -1)}),
};

ed_tensor *ed_bincount_with(ed_tensor *x, ed_tensor *weights, const ed_bincount_options *options)
{
    return CALL_OP_GIVEN(bincount, options, x, weights);
}

/* ---- confusion_matrix ------------------------------------------------------------------------ */

static bool check_classes(const ed_call *call, const ed_tensor *x, const char *name,
                          int64_t classes)
{
    for (int64_t i = 0; i < x->size; i++)
        if (index_at(x, i) >= classes)
            return ed_call_fail(call, ED_OUT_OF_RANGE,
                                "%s[%lld], counted flat, is %lld; it must be below %lld, the "
                                "number of classes",
                                name, (long long)i, (long long)index_at(x, i), (long long)classes);
    return true;
}

static bool confusion_compose(ed_call *call)
{
    const ed_confusion_matrix_options *o = call->attrs;
    ed_tensor *labels = packed_ids(call->inputs[0]), *predictions = packed_ids(call->inputs[1]);
    ed_tensor *weights = call->n_inputs > 2 ? call->inputs[2] : NULL;
    index_order a, b;
    int64_t total;
    if (!labels || !predictions || !check_dtype(call, o->dtype)) return false;
    if (labels->rank != predictions->rank ||
        memcmp(labels->shape, predictions->shape, (size_t)labels->rank * sizeof(int64_t)))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "labels are %s, predictions are %s",
                            text_of_tensor(labels).s, text_of_tensor(predictions).s);
    if (!check_weights(call, labels, weights ? tensor_read(weights) : NULL) ||
        !check_numbers(call, labels, "labels", &a) ||
        !check_numbers(call, predictions, "predictions", &b))
        return false;
    const int64_t largest = a.largest > b.largest ? a.largest : b.largest;
    const int64_t n = o->num_classes ? o->num_classes : largest < INT64_MAX ? largest + 1 : largest;
    if (!check_classes(call, labels, "labels", n) ||
        !check_classes(call, predictions, "predictions", n))
        return false;
    if (__builtin_mul_overflow(n, n, &total))
        return ed_call_fail(call, ED_OUT_OF_MEMORY, "%lld classes are too many", (long long)n);
    ed_tensor *ids = scope_give(tensor_new(ED_INT64, 1, &labels->size));
    for (int64_t i = 0; ids && i < labels->size; i++)
        ((int64_t *)ids->data)[i] = index_at(labels, i) * n + index_at(predictions, i);
    ed_tensor *y = weights
                       ? ed_unsorted_segment_sum(ed_cast(ed_flatten(weights), o->dtype), ids, total)
                       : ed_cast(bins_count(ids, total), o->dtype);
    return ed_call_result(call, 0, ed_reshape(y, ED_INTS(n, n)));
}

static bool confusion_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const double *labels = (const double *)call->inputs[0]->data,
                 *predictions = (const double *)call->inputs[1]->data;
    const ed_dtype dtype = ((const ed_confusion_matrix_options *)call->attrs)->dtype;
    for (int64_t k = 0; k < y->size; k++) {
        double sum = 0;
        for (int64_t i = 0; i < call->inputs[0]->size; i++) {
            const bool here = labels[i] == (double)(k / y->shape[1]) &&
                              predictions[i] == (double)(k % y->shape[1]);
            const double w = call->n_inputs > 2 ? ((const double *)call->inputs[2]->data)[i] : 1;
            sum += here ? ed_dtype_is_float(dtype) ? w : (double)(int64_t)w : 0;
        }
        ((double *)y->data)[k] = sum;
    }
    return true;
}

#define CONFUSION(...)                                                                             \
    .attrs = ED_ATTRS(ED_CONFUSION_MATRIX_OPTIONS, ed_confusion_matrix_options, __VA_ARGS__)

/* y[i, j] = number of labels i that were predicted as j */
ED_OP(confusion_matrix) = {
    .name = "confusion_matrix",
    .doc = "how often label i was predicted as j, or the sum of the weights",
    .operands = {{"labels", ED_SET_INDEX, 'I', .early = true},
                 {"predictions", ED_SET_INDEX, 'I', .early = true},
                 {"weights", ED_SET_NUMBER, 'W', .optional = true}},
    ED_OP_ATTRS(ED_CONFUSION_MATRIX_OPTIONS, ed_confusion_matrix_options),
    .compose = confusion_compose,
    .reference = confusion_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 3, 7), ED_SAMPLE_IN(0, 2, 7),
                                      ED_SAMPLE_IN(-2, 2, 7)},
                           CONFUSION(.num_classes = 5, .dtype = ED_FLOAT64)},
                          {.inputs = {ED_SAMPLE_IN(0, 3, 20), ED_SAMPLE_IN(0, 3, 20)}}),
};

ed_tensor *ed_confusion_matrix_with(ed_tensor *labels, ed_tensor *predictions, ed_tensor *weights,
                                    const ed_confusion_matrix_options *options)
{
    return CALL_OP_GIVEN(confusion_matrix, options, labels, predictions, weights);
}
