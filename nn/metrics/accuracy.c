#include "nn/metrics/metric.h"
#include "ops/ops.h"
#include <string.h>

/* Accuracies: the share of predictions that are right. */

static bool is_integer(ed_dtype dtype)
{
    return !ed_dtype_is_float(dtype) && dtype != ED_UINT64;
}

/* Element i as an integer; int64 is not converted to double. */
static int64_t integer_at(ed_dtype dtype, const void *data, int64_t i)
{
    return dtype == ED_INT64 ? ((const int64_t *)data)[i] : (int64_t)dtype_load(dtype, data, i);
}

/* ---- Elements that are equal ----------------------------------------------------------------- */

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
    return metric_add(call, (double)n, x);
}

static bool accuracy_reference(const ed_call *call)
{
    const double *x = (const double *)call->inputs[2]->data;
    const double *y = (const double *)call->inputs[3]->data;
    int64_t n = 0, size = call->inputs[2]->size;
    for (int64_t i = 0; i < size; i++) n += x[i] == y[i];
    return metric_add(call, (double)n, call->inputs[2]);
}

METRIC_OP(
    accuracy,
    "total += share of the elements of each sample where label == prediction, count += number of "
    "samples",
    .operands = {METRIC_OPERANDS, {"labels", ED_SET_ALL, 'L'}, {"predictions", ED_SET_ALL, 'P'}},
    .infer = metric_infer_same_shape, .kernel = accuracy_kernel, .reference = accuracy_reference,
    .samples = ED_SAMPLES(METRIC_SAMPLE(ED_SAMPLE_IN(1, 1, 4, 2), ED_SAMPLE_IN(1, 1, 4, 2)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(0, 3, 25), ED_SAMPLE_IN(0, 3, 25)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(0, 2, 7, 1), ED_SAMPLE_IN(0, 2, 7))));

/* Whether elements are equal, as float64. */
static ed_tensor *matches(ed_tensor *x, ed_tensor *y)
{
    if (x && y && x->dtype != y->dtype) x = metric_float64(x), y = metric_float64(y);
    return ed_cast(ed_equal(x, y), ED_FLOAT64);
}

MEAN_METRIC(accuracy, ACCURACY, "the share of elements where label == prediction",
            .operands = LOSS_ANY, .fast = &ed_op_metric_accuracy,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(1, 2, 4, 2), ED_SAMPLE_IN(1, 2, 4, 2)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 3, 25, 1), ED_SAMPLE_IN(0, 3, 25)}}))
{
    (void)options;
    if (!loss_same_rank(&y_true, &y_pred)) return NULL;
    if (tensor_same_shape(y_true, y_pred)) return matches(y_true, y_pred);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "accuracy: y_true is %s, y_pred is %s; their shapes must "
                   "agree",
                   text_of_tensor(y_true).s, text_of_tensor(y_pred).s);
}

/* ---- Classes --------------------------------------------------------------------------------- */

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

/* One label for each row of predictions, as [...] or [..., 1]. */
static bool is_label_each(const ed_tensor *labels, const ed_tensor *predictions)
{
    const int rows = predictions->rank - 1;
    if (rows < 0 || predictions->shape[rows] <= 0) return false;
    if (labels->rank != rows && !(labels->rank == rows + 1 && labels->shape[rows] == 1))
        return false;
    return !memcmp(labels->shape, predictions->shape, (size_t)rows * sizeof *labels->shape);
}

static bool classes_infer(ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    if (!metric_infer(call)) return false;
    if (is_label_each(labels, predictions)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "labels are %s, predictions are %s; expected [...] or [..., 1], and "
                        "[..., classes]",
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
    return metric_add(call, (double)right, labels);
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
    return metric_add(call, (double)right, labels);
}

METRIC_OP(
    sparse_categorical_accuracy,
    "total += share of the labels of each sample that are the argmax, count += number of samples",
    .operands = {METRIC_OPERANDS, {"labels", ARE_LABELS, 'L'}, {"predictions", ED_SET_FLOAT, 'P'}},
    .infer = classes_infer, .kernel = classes_kernel, .reference = classes_reference,
    .samples = ED_SAMPLES(METRIC_SAMPLE(ED_SAMPLE_IN(0, 1, 21), ED_SAMPLE_IN(-2, 2, 21, 2)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(0, 0, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 1)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(1, 1), ED_SAMPLE_IN(-2, 2, 3))));

#define LABELS(classes, ...)                                                                       \
    {                                                                                              \
        .inputs = {                                                                                \
            ED_SAMPLE_IN(0, classes - 1, __VA_ARGS__),                                             \
            ED_DISTINCT_IN(-2, 2, __VA_ARGS__, classes)                                            \
        }                                                                                          \
    }

static ed_tensor *best(ed_tensor *x)
{
    return ed_argmax(x, .axis = -1);
}

MEAN_METRIC(sparse_categorical_accuracy, SPARSE_CATEGORICAL_ACCURACY,
            "the share of labels that are the argmax of predictions", .operands = LOSS_CLASSES,
            .fast = &ed_op_metric_sparse_categorical_accuracy,
            .samples = ED_SAMPLES(LABELS(3, 21), LABELS(2, 5, 2)))
{
    (void)options;
    return matches(ed_cast(y_true, ED_INT64), ed_cast(best(y_pred), ED_INT64));
}

MEAN_METRIC(categorical_accuracy, CATEGORICAL_ACCURACY,
            "the share of samples whose largest element is in the same place",
            .samples = ED_SAMPLES(
                {.inputs = {ED_DISTINCT_IN(0, 1, 9, 2), ED_DISTINCT_IN(0, 1, 9, 2)}},
                {.inputs = {ED_DISTINCT_IN(0, 1, 5, 3, 2), ED_DISTINCT_IN(0, 1, 5, 3, 2)}}))
{
    (void)options;
    return matches(best(y_true), best(y_pred));
}

MEAN_METRIC(binary_accuracy, BINARY_ACCURACY,
            "the share of elements where y_pred > threshold is y_true",
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 9), ED_SAMPLE_IN(0, 1, 9)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1, 5, 4), ED_SAMPLE_IN(0, 1, 5, 4)},
                                   .attrs = ED_ATTRS(ED_METRIC_BINARY_ACCURACY_OPTIONS,
                                                     ed_metric_binary_accuracy_options,
                                                     .threshold = 0.2)}))
{
    const double threshold = ((const binary_accuracy_options *)options)->threshold;
    return matches(y_true, ed_cast(ed_greater(y_pred, threshold), y_true->dtype));
}

/* ---- The k best ------------------------------------------------------------------------------ */

/* Whether the labels [...] are among the k largest predictions [..., classes]. */
static ed_tensor *in_top(ed_tensor *labels, ed_tensor *predictions, int64_t k)
{
    if (!labels || !predictions) return NULL;
    const int64_t classes = predictions->shape[predictions->rank - 1];
    ed_tensor *rows = ed_reshape(predictions, ED_SHAPE(-1, classes));
    ed_tensor *found = ed_in_top_k(ed_reshape(labels, ED_SHAPE(-1)), rows, k);
    return ed_cast(ed_reshape(found, ed_shape(labels)), ED_FLOAT64);
}

MEAN_METRIC(top_k_categorical_accuracy, TOP_K_CATEGORICAL_ACCURACY,
            "the share of samples whose class is among the k largest predictions",
            .samples = ED_SAMPLES({.inputs = {ED_DISTINCT_IN(0, 1, 5, 9),
                                              ED_DISTINCT_IN(0, 1, 5, 9)}}))
{
    return in_top(best(y_true), y_pred, ((const top_k_categorical_accuracy_options *)options)->k);
}

/* Whether the labels [...] are among the first k of the classes [..., n]. */
static ed_tensor *among(ed_tensor *labels, ed_tensor *classes, int64_t k)
{
    if (!labels || !classes) return NULL;
    const int64_t n = classes->shape[classes->rank - 1];
    ed_tensor *first = ed_strided_slice(classes, ED_ELLIPSIS, ED_RANGE(0, k < n ? k : n));
    ed_tensor *same = ed_equal(ed_expand_dims(ed_cast(labels, classes->dtype), -1), first);
    return ed_cast(ed_reduce_any(same, .axis = ED_AXES(-1)), ED_FLOAT64);
}

MEAN_METRIC(sparse_top_k_categorical_accuracy, SPARSE_TOP_K_CATEGORICAL_ACCURACY,
            "the share of labels that are among the k largest predictions",
            .operands = LOSS_CLASSES, .samples = ED_SAMPLES(LABELS(9, 5), LABELS(9, 3, 2)))
{
    const sparse_top_k_categorical_accuracy_options *o = options;
    return o->from_sorted_ids ? among(y_true, y_pred, o->k) : in_top(y_true, y_pred, o->k);
}
