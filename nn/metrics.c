#include "nn/nn.h"
#include "tensor/schema_core.h"
#include "track/graph.h"
#include <math.h>
#include <string.h>

/*
 * A metric is a sum and a count, both in float64. Values are read directly, not by ops, so no tape
 * sees it; a call counts whole or, if anything is wrong, not at all.
 */

/* A kind of metric takes values, or labels and predictions. */
typedef struct metric_class {
    ed_kind kind;
    bool (*compare)(ed_metric *metric, ed_tensor *labels,
                    ed_tensor *predictions); /* NULL: values */
} metric_class;

struct ed_metric {
    made_object made;
    const metric_class *class;
    const char *name;
    double total;
    int64_t count;
};

static void metric_destroy(void *object)
{
    made_end(object);
    memory_free(object);
}

static void metric_track(void *object, ed_tracker *t)
{
    ed_metric *metric = object;
    graph_name(t, t->self, GRAPH_NAME, "total", graph_float64(t, &metric->total));
    graph_name(t, t->self, GRAPH_NAME, "count", graph_cell(t, &metric->count, &graph_count_state));
}

static const object_class metric_object = {
    .name = "metric", .destroy = metric_destroy, .track = metric_track, .is_made = true};

static void *metric_make(const ed_kind *kind, const void *options)
{
    ed_metric *metric = made_new(&metric_object, sizeof *metric, kind, options);
    if (!metric) return NULL;
    const char *name = ((const ed_metric_mean_options *)metric->made.options)->name;
    metric->class = (const metric_class *)kind;
    metric->name = name ? name : kind->name;
    return scope_give(metric);
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

METRIC(mean, MEAN, "the mean of all values given", .compare = NULL)

static bool take_in(ed_metric *metric, double total, int64_t count)
{
    metric->total += total;
    metric->count += count;
    return true;
}

bool ed_metric_update(ed_metric *metric, ed_tensor *values)
{
    if (!metric || !values)
        return ed_fail(ED_INVALID_ARGUMENT, "metric_update: %s is NULL",
                       metric ? "values" : "metric");
    if (metric->class->compare)
        return ed_fail(ED_INVALID_ARGUMENT, "metric_update: %s compares: ed_metric_compare",
                       metric->name),
               false;
    ED_SCOPE;
    const void *data = ed_data(values);
    if (!data) return false;
    double sum = 0;
    for (int64_t i = 0; i < values->size; i++) sum += dtype_load(values->dtype, data, i);
    return take_in(metric, sum, values->size);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool is_whole(ed_dtype dtype)
{
    return !ed_dtype_is_float(dtype) && dtype != ED_UINT64;
}

/* Element i as a whole number; int64 goes through no double. */
static int64_t whole(ed_dtype dtype, const void *data, int64_t i)
{
    return dtype == ED_INT64 ? ((const int64_t *)data)[i] : (int64_t)dtype_load(dtype, data, i);
}

static int64_t count_equal(const ed_tensor *a, const void *x, const ed_tensor *b, const void *y)
{
    int64_t n = 0;
    if (is_whole(a->dtype) && is_whole(b->dtype))
        for (int64_t i = 0; i < a->size; i++) n += whole(a->dtype, x, i) == whole(b->dtype, y, i);
    else
        for (int64_t i = 0; i < a->size; i++)
            n += dtype_load(a->dtype, x, i) == dtype_load(b->dtype, y, i);
    return n;
}

static bool compare_elements(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions)
{
    if (labels->rank != predictions->rank ||
        memcmp(labels->shape, predictions->shape, (size_t)labels->rank * sizeof *labels->shape) !=
            0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: labels are %s, predictions %s; the same shape is expected",
                       metric->name, text_of_tensor(labels).s, text_of_tensor(predictions).s),
               false;
    const void *x = ed_data(labels), *y = ed_data(predictions);
    if (!x || !y) return false;
    return take_in(metric, (double)count_equal(labels, x, predictions, y), labels->size);
}

/* The first of the largest; a NaN only if there is nothing else. */
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

static bool check_classes(const ed_metric *metric, const ed_tensor *labels,
                          const ed_tensor *predictions)
{
    if (!is_whole(labels->dtype) ||
        (predictions->dtype != ED_FLOAT32 && predictions->dtype != ED_FLOAT64))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: labels are %s, predictions %s; whole numbers and float32 or float64 "
                       "are expected",
                       metric->name, text_of_tensor(labels).s, text_of_tensor(predictions).s),
               false;
    int rank = predictions->rank;
    if (rank < 1 || labels->rank != rank - 1 || predictions->shape[rank - 1] == 0 ||
        memcmp(labels->shape, predictions->shape, (size_t)(rank - 1) * sizeof *labels->shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: labels are %s, predictions %s; [...] and [..., classes] are expected",
                       metric->name, text_of_tensor(labels).s, text_of_tensor(predictions).s),
               false;
    return true;
}

static bool compare_classes(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions)
{
    if (!check_classes(metric, labels, predictions)) return false;
    const void *x = ed_data(labels), *y = ed_data(predictions);
    if (!x || !y) return false;
    int64_t classes = predictions->shape[predictions->rank - 1], right = 0;
    for (int64_t i = 0; i < labels->size; i++) {
        int64_t label = whole(labels->dtype, x, i);
        if (label < 0 || label >= classes)
            return ed_fail(ED_OUT_OF_RANGE, "%s: the label %lld is outside 0..%lld", metric->name,
                           (long long)label, (long long)classes - 1),
                   false;
        right += label == (predictions->dtype == ED_FLOAT32
                               ? argmax_float((const float *)y + i * classes, classes)
                               : argmax_double((const double *)y + i * classes, classes));
    }
    return take_in(metric, (double)right, labels->size);
}

METRIC(accuracy, ACCURACY, "the share of elements where label == prediction",
       .compare = compare_elements)
METRIC(sparse_categorical_accuracy, SPARSE_CATEGORICAL_ACCURACY,
       "the share of labels that are the argmax of predictions", .compare = compare_classes)

bool ed_metric_compare(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions)
{
    if (!metric || !labels || !predictions)
        return ed_fail(ED_INVALID_ARGUMENT, "metric_compare: %s is NULL",
                       !metric   ? "metric"
                       : !labels ? "labels"
                                 : "predictions");
    ED_SCOPE;
    if (metric->class->compare) return metric->class->compare(metric, labels, predictions);
    return ed_fail(ED_INVALID_ARGUMENT, "metric_compare: %s takes values: ed_metric_update",
                   metric->name);
}

double ed_metric_result(const ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_result: NULL given"), NAN;
    return metric->count ? metric->total / (double)metric->count : 0;
}

bool ed_metric_reset(ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_reset: NULL given"), false;
    metric->total = 0;
    metric->count = 0;
    return true;
}
