#include "nn/nn.h"
#include "ops/execute.h"
#include "tensor/schema_core.h"
#include "track/graph.h"
#include <math.h>
#include <string.h>

/*
 * A metric is a total, float64, and a count, int64: variables, which an op of its kind updates from
 * values or from labels and predictions. An update that fails changes neither.
 */

typedef struct metric_class {
    ed_kind kind;
    const ed_op *op; /* of total, count and what is given */
    bool compares;   /* labels and predictions; else values */
} metric_class;

struct ed_metric {
    made_object made;
    const metric_class *class;
    const char *name;
    ed_tensor *total, *count;
};

static void metric_destroy(void *object)
{
    ed_metric *metric = object;
    ed_release(metric->total);
    ed_release(metric->count);
    made_end(metric);
    memory_free(metric);
}

/* A checkpoint saves them as cells, not as variables: files have other dtypes, which are converted.
 * Both are 8 bytes. */
static void get_number(const void *v, void *elements)
{
    memcpy(elements, tensor_read(v)->data, 8);
}

/* A restore can't fail here. It allocates memory only if another object holds the value of a
 * metric's variable. */
static void set_number(void *v, const void *elements)
{
    ed_tensor *value = variable_write(v);
    if (value) memcpy(value->data, elements, 8);
}

static const char *refuses_count(const void *v, const void *elements)
{
    int64_t count;
    (void)v;
    memcpy(&count, elements, sizeof count);
    return count < 0 ? "must be >= 0" : NULL;
}

static void metric_track(void *object, ed_tracker *t)
{
    static const ed_state total = {ED_FLOAT64, -1, get_number, NULL, set_number},
                          count = {ED_INT64, -1, get_number, refuses_count, set_number};
    ed_metric *metric = object;
    graph_name(t, t->self, GRAPH_NAME, "total", graph_cell(t, metric->total, &total));
    graph_name(t, t->self, GRAPH_NAME, "count", graph_cell(t, metric->count, &count));
}

static const object_class metric_object = {
    .name = "metric", .destroy = metric_destroy, .track = metric_track, .is_made = true};

static ed_tensor *new_number(const char *name, ed_dtype dtype)
{
    ed_tensor *zero = ed_zeros(ED_SHAPE(), .dtype = dtype);
    return ed_retain(ed_variable(zero, .name = name, .trainable = false));
}

static void *metric_make(const ed_kind *kind, const void *options)
{
    ED_SCOPE;
    ed_metric *metric = made_new(&metric_object, sizeof *metric, kind, options);
    if (!scope_give(metric)) return NULL;
    metric->total = new_number("total", ED_FLOAT64);
    metric->count = new_number("count", ED_INT64);
    if (!metric->total || !metric->count) return NULL;
    const char *name = ((const ed_metric_mean_options *)metric->made.options)->name;
    metric->class = (const metric_class *)kind;
    metric->name = name ? name : kind->name;
    return ed_keep(metric);
}

/* The definition of a metric from its list of options in nn.h, whose first is the name. */
#define METRIC(symbol, SYMBOL, text, ...)                                                          \
    ED_SCHEMA(symbol, ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options);                 \
    static const metric_class symbol##_class = {.kind = {.family = "metric",                       \
                                                         .name = #symbol,                          \
                                                         .doc = text,                              \
                                                         .fields = symbol##_fields,                \
                                                         .options_size = sizeof symbol##_defaults, \
                                                         .defaults = &symbol##_defaults,           \
                                                         .make = metric_make},                     \
                                                __VA_ARGS__};                                      \
    SCHEMA_KIND(symbol, &symbol##_class.kind);                                                     \
    ed_metric *ed_metric_##symbol##_with(const ed_metric_##symbol##_options *options)              \
    {                                                                                              \
        return ed_make(&symbol##_class.kind, options);                                             \
    }

/* ---- Ops ------------------------------------------------------------------------------------- */

/* total += sum, count += n. */
static bool add_up(const ed_call *call, double sum, int64_t n)
{
    int64_t *count = (int64_t *)call->inputs[1]->data, more;
    if (__builtin_add_overflow(*count, n, &more))
        return ed_call_fail(call, ED_OUT_OF_RANGE, "the count %lld can't grow by %lld",
                            (long long)*count, (long long)n);
    *(double *)call->inputs[0]->data += sum;
    *count = more;
    return true;
}

static bool add_up_reference(const ed_call *call, double sum, int64_t n)
{
    *(double *)call->inputs[0]->data += sum;
    *(double *)call->inputs[1]->data += (double)n;
    return true;
}

static bool check_scalars(ed_call *call)
{
    if (call->inputs[0]->rank == 0 && call->inputs[1]->rank == 0) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "total and count must be scalars, got %s and %s",
                        text_of_tensor(call->inputs[0]).s, text_of_tensor(call->inputs[1]).s);
}

#define TOTAL_AND_COUNT                                                                            \
    {"total", 1 << ED_FLOAT64, 'D', .writes = true},                                               \
    {                                                                                              \
        "count", 1 << ED_INT64, 'N', .writes = true                                                \
    }
#define A_METRIC "it updates a metric"

static bool mean_kernel(ed_call *call)
{
    const ed_tensor *values = call->inputs[2];
    double sum = 0;
    for (int64_t i = 0; i < values->size; i++) sum += dtype_load(values->dtype, values->data, i);
    return add_up(call, sum, values->size);
}

static bool mean_reference(const ed_call *call)
{
    const ed_tensor *values = call->inputs[2];
    double sum = 0;
    for (int64_t i = 0; i < values->size; i++) sum += ((const double *)values->data)[i];
    return add_up_reference(call, sum, values->size);
}

/* total += sum of the values, count += their number */
ED_OP(metric_mean) = {
    .name = "metric_mean",
    .doc = "total += sum of the values, count += their number",
    .operands = {TOTAL_AND_COUNT, {"values", ED_SET_ALL, 'T'}},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = check_scalars,
    .kernel = mean_kernel,
    .no_gradient = A_METRIC,
    .reference = mean_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                   {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(-2, 2)}}),
};

METRIC(mean, MEAN, "the mean of all values given", .op = &ed_op_metric_mean)

static bool reset_kernel(ed_call *call)
{
    *(double *)call->inputs[0]->data = 0;
    *(int64_t *)call->inputs[1]->data = 0;
    return true;
}

static bool reset_reference(const ed_call *call)
{
    *(double *)call->inputs[0]->data = 0;
    *(double *)call->inputs[1]->data = 0;
    return true;
}

/* total = count = 0 */
ED_OP(metric_reset) = {
    .name = "metric_reset",
    .doc = "total = count = 0",
    .operands = {TOTAL_AND_COUNT},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_INTERNAL,
    .infer = check_scalars,
    .kernel = reset_kernel,
    .no_gradient = A_METRIC,
    .reference = reset_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9)}}),
};

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool is_integer(ed_dtype dtype)
{
    return !ed_dtype_is_float(dtype) && dtype != ED_UINT64;
}

/* Element i as an integer; int64 is not converted to double. */
static int64_t integer_at(ed_dtype dtype, const void *data, int64_t i)
{
    return dtype == ED_INT64 ? ((const int64_t *)data)[i] : (int64_t)dtype_load(dtype, data, i);
}

static bool accuracy_infer(ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    if (!check_scalars(call)) return false;
    if (tensor_same_shape(labels, predictions)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "labels are %s, predictions are %s; they must have the same shape",
                        text_of_tensor(labels).s, text_of_tensor(predictions).s);
}

static bool accuracy_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[2], *y = call->inputs[3];
    int64_t n = 0;
    if (is_integer(x->dtype) && is_integer(y->dtype))
        for (int64_t i = 0; i < x->size; i++)
            n += integer_at(x->dtype, x->data, i) == integer_at(y->dtype, y->data, i);
    else
        for (int64_t i = 0; i < x->size; i++)
            n += dtype_load(x->dtype, x->data, i) == dtype_load(y->dtype, y->data, i);
    return add_up(call, (double)n, x->size);
}

static bool accuracy_reference(const ed_call *call)
{
    const double *x = (const double *)call->inputs[2]->data;
    const double *y = (const double *)call->inputs[3]->data;
    int64_t n = 0, size = call->inputs[2]->size;
    for (int64_t i = 0; i < size; i++) n += x[i] == y[i];
    return add_up_reference(call, (double)n, size);
}

/* total += number of equal elements, count += number of elements */
ED_OP(metric_accuracy) = {
    .name = "metric_accuracy",
    .doc = "total += number of elements where label == prediction, count += number of all",
    .operands = {TOTAL_AND_COUNT, {"labels", ED_SET_ALL, 'L'}, {"predictions", ED_SET_ALL, 'P'}},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = accuracy_infer,
    .kernel = accuracy_kernel,
    .no_gradient = A_METRIC,
    .reference = accuracy_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(0, 9),
                                      ED_SAMPLE_IN(1, 1, 4, 2), ED_SAMPLE_IN(1, 1, 4, 2)}},
                          {.inputs = {ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(0, 9),
                                      ED_SAMPLE_IN(0, 3, 25), ED_SAMPLE_IN(0, 3, 25)}}),
};

METRIC(accuracy, ACCURACY, "the share of elements where label == prediction",
       .op = &ed_op_metric_accuracy, .compares = true)

/* The first of the largest; of a NaN only if all are NaN. */
#define ARGMAX(type)                                                                               \
    static int64_t argmax_##type(const type *x, int64_t n)                                         \
    {                                                                                              \
        int64_t best = 0;                                                                          \
        for (int64_t i = 1; i < n; i++)                                                            \
            if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;                  \
        return best;                                                                               \
    }
ARGMAX(float)
ARGMAX(double)

#define ARE_LABELS                                                                                 \
    (ED_SET_INDEX | 1 << ED_UINT8 | ED_SET_BOOL | 1 << ED_INT8 | 1 << ED_INT16 | 1 << ED_UINT16 |  \
     1 << ED_UINT32)

static bool classes_infer(ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    const int rank = predictions->rank;
    if (!check_scalars(call)) return false;
    if (rank > 0 && labels->rank == rank - 1 && predictions->shape[rank - 1] > 0 &&
        memcmp(labels->shape, predictions->shape, (size_t)labels->rank * sizeof *labels->shape) ==
            0)
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "labels are %s, predictions are %s; expected [...] and [..., classes]",
                        text_of_tensor(labels).s, text_of_tensor(predictions).s);
}

static bool is_class(const ed_call *call, int64_t label, int64_t classes)
{
    if (label >= 0 && label < classes) return true;
    return ed_call_fail(call, ED_OUT_OF_RANGE,
                        "the label %lld is out of bounds: it must be in 0..%lld", (long long)label,
                        (long long)classes - 1);
}

static bool classes_kernel(ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    const int64_t classes = predictions->shape[predictions->rank - 1];
    int64_t right = 0;
    for (int64_t i = 0; i < labels->size; i++) {
        const int64_t label = integer_at(labels->dtype, labels->data, i);
        if (!is_class(call, label, classes)) return false;
        right += label ==
                 (predictions->dtype == ED_FLOAT32
                      ? argmax_float((const float *)predictions->data + i * classes, classes)
                      : argmax_double((const double *)predictions->data + i * classes, classes));
    }
    return add_up(call, (double)right, labels->size);
}

static bool classes_reference(const ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    const int64_t classes = predictions->shape[predictions->rank - 1];
    int64_t right = 0;
    for (int64_t i = 0; i < labels->size; i++) {
        const double *row = (const double *)predictions->data + i * classes;
        const int64_t label = (int64_t)((const double *)labels->data)[i];
        int64_t best = -1;
        if (!is_class(call, label, classes)) return false;
        for (int64_t k = 0; k < classes; k++)
            if (row[k] == row[k] && (best < 0 || row[k] > row[best])) best = k;
        right += label == (best < 0 ? 0 : best);
    }
    return add_up_reference(call, (double)right, labels->size);
}

/* total += number of labels that are the argmax of their predictions, count += number of labels */
ED_OP(metric_sparse_categorical_accuracy) = {
    .name = "metric_sparse_categorical_accuracy",
    .doc = "total += number of labels that are the argmax of predictions, count += number of all",
    .operands = {TOTAL_AND_COUNT, {"labels", ARE_LABELS, 'L'}, {"predictions", ED_SET_FLOAT, 'P'}},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = classes_infer,
    .kernel = classes_kernel,
    .no_gradient = A_METRIC,
    .reference = classes_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(0, 9),
                                      ED_SAMPLE_IN(0, 1, 21), ED_SAMPLE_IN(-2, 2, 21, 2)}},
                          {.inputs = {ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(0, 9),
                                      ED_SAMPLE_IN(0, 0, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 1)}},
                          {.inputs = {ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(0, 9), ED_SAMPLE_IN(1, 1),
                                      ED_SAMPLE_IN(-2, 2, 3)}}),
};

METRIC(sparse_categorical_accuracy, SPARSE_CATEGORICAL_ACCURACY,
       "the share of labels that are the argmax of predictions",
       .op = &ed_op_metric_sparse_categorical_accuracy, .compares = true)

/* ---- Updates --------------------------------------------------------------------------------- */

/* A plain number keeps its dtype: an op would convert it to float32. */
static ed_tensor *exactly(ed_tensor *x)
{
    return x->flags & TENSOR_WEAK ? scope_give(number_as(x, x->dtype)) : x;
}

bool ed_metric_update(ed_metric *metric, ed_tensor *values)
{
    if (NULL_GIVEN("metric_update", metric, values)) return false;
    if (metric->class->compares)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "metric_update: %s takes labels and predictions; use ed_metric_compare",
                       metric->name);
    ED_SCOPE;
    ed_tensor *const operands[] = {metric->total, metric->count, exactly(values)};
    return ed_execute(metric->class->op, operands, 3, NULL, NULL);
}

bool ed_metric_compare(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions)
{
    if (NULL_GIVEN("metric_compare", metric, labels, predictions)) return false;
    if (!metric->class->compares)
        return ed_fail(ED_INVALID_ARGUMENT, "metric_compare: %s takes values; use ed_metric_update",
                       metric->name);
    ED_SCOPE;
    ed_tensor *const operands[] = {metric->total, metric->count, exactly(labels),
                                   exactly(predictions)};
    const bool failed_before = ed_failed();
    if (ed_execute(metric->class->op, operands, 4, NULL, NULL)) return true;
    if (!failed_before && ed_failed()) error_append(" (in the metric %s)", metric->name);
    return false;
}

double ed_metric_result(const ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_result: metric is NULL"), NAN;
    const double total = *(const double *)tensor_read(metric->total)->data;
    const int64_t count = *(const int64_t *)tensor_read(metric->count)->data;
    return count ? total / (double)count : 0;
}

bool ed_metric_reset(ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_reset: metric is NULL");
    ed_tensor *const operands[] = {metric->total, metric->count};
    return ed_execute(&ed_op_metric_reset, operands, 2, NULL, NULL);
}
