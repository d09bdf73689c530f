#include "nn/metrics/metric.h"
#include <string.h>

/*
 * Accuracies: the share of predictions that are right. total is the number of right ones, count
 * that of all.
 */

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
    return metric_add(call, (double)n, x->size);
}

static bool accuracy_reference(const ed_call *call)
{
    const double *x = (const double *)call->inputs[2]->data;
    const double *y = (const double *)call->inputs[3]->data;
    int64_t n = 0, size = call->inputs[2]->size;
    for (int64_t i = 0; i < size; i++) n += x[i] == y[i];
    return metric_add_reference(call, (double)n, size);
}

METRIC_OP(
    accuracy, "total += number of elements where label == prediction, count += number of all",
    .operands = {METRIC_OPERANDS, {"labels", ED_SET_ALL, 'L'}, {"predictions", ED_SET_ALL, 'P'}},
    .infer = metric_infer_same_shape, .kernel = accuracy_kernel, .reference = accuracy_reference,
    .samples = ED_SAMPLES(METRIC_SAMPLE(ED_SAMPLE_IN(1, 1, 4, 2), ED_SAMPLE_IN(1, 1, 4, 2)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(0, 3, 25), ED_SAMPLE_IN(0, 3, 25)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(0, 2, 7, 1), ED_SAMPLE_IN(0, 2, 7))));

METRIC(accuracy, ACCURACY, 0, "the share of elements where label == prediction")

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
    return metric_add(call, (double)right, labels->size);
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
    return metric_add_reference(call, (double)right, labels->size);
}

METRIC_OP(
    sparse_categorical_accuracy,
    "total += number of labels that are the argmax of predictions, count += number of all",
    .operands = {METRIC_OPERANDS, {"labels", ARE_LABELS, 'L'}, {"predictions", ED_SET_FLOAT, 'P'}},
    .infer = classes_infer, .kernel = classes_kernel, .reference = classes_reference,
    .samples = ED_SAMPLES(METRIC_SAMPLE(ED_SAMPLE_IN(0, 1, 21), ED_SAMPLE_IN(-2, 2, 21, 2)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(0, 0, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 1)),
                          METRIC_SAMPLE(ED_SAMPLE_IN(1, 1), ED_SAMPLE_IN(-2, 2, 3))));

METRIC(sparse_categorical_accuracy, SPARSE_CATEGORICAL_ACCURACY, 0,
       "the share of labels that are the argmax of predictions")
