#include "nn/metrics/metric.h"
#include "track/graph.h"
#include <math.h>
#include <string.h>

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

void *metric_make(const ed_kind *kind, const void *options)
{
    ED_SCOPE;
    ed_metric *metric = made_new(&metric_object, sizeof *metric, kind, options);
    if (!scope_give(metric)) return NULL;
    metric->total = new_number("total", ED_FLOAT64);
    metric->count = new_number("count", ED_INT64);
    if (!metric->total || !metric->count) return NULL;
    const ed_field *named = schema_find(kind->fields, "name");
    const char *name =
        named ? *(const char *const *)ED_FIELD_AT(named, metric->made.options) : NULL;
    metric->class = (const metric_class *)kind;
    metric->name = name ? name : kind->name;
    return ed_keep(metric);
}

/* ---- For ops --------------------------------------------------------------------------------- */

bool metric_add(const ed_call *call, double sum, int64_t n)
{
    int64_t *count = (int64_t *)call->inputs[1]->data, more;
    if (__builtin_add_overflow(*count, n, &more))
        return ed_call_fail(call, ED_OUT_OF_RANGE, "the count %lld can't grow by %lld",
                            (long long)*count, (long long)n);
    *(double *)call->inputs[0]->data += sum;
    *count = more;
    return true;
}

bool metric_add_reference(const ed_call *call, double sum, int64_t n)
{
    *(double *)call->inputs[0]->data += sum;
    *(double *)call->inputs[1]->data += (double)n;
    return true;
}

bool metric_infer(ed_call *call)
{
    if (call->inputs[0]->rank == 0 && call->inputs[1]->rank == 0) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "total and count must be scalars, got %s and %s",
                        text_of_tensor(call->inputs[0]).s, text_of_tensor(call->inputs[1]).s);
}

/* [...], and the same or [..., 1]. */
static bool is_squeezed(const ed_tensor *x, const ed_tensor *y)
{
    return (y->rank == x->rank || (y->rank == x->rank + 1 && y->shape[x->rank] == 1)) &&
           !memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape);
}

bool metric_infer_same_shape(ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    if (!metric_infer(call)) return false;
    if (is_squeezed(labels, predictions) || is_squeezed(predictions, labels)) return true;
    return ed_call_fail(
        call, ED_INVALID_ARGUMENT,
        "labels are %s, predictions are %s; they must have the same shape, but for a "
        "last dimension of 1",
        text_of_tensor(labels).s, text_of_tensor(predictions).s);
}

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
METRIC_OP(reset, "total = count = 0", .operands = {METRIC_OPERANDS}, .infer = metric_infer,
          .kernel = reset_kernel, .reference = reset_reference,
          .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9)}}));

/* ---- Updates --------------------------------------------------------------------------------- */

/* Whether it takes labels and predictions; else values. */
static bool compares(const ed_metric *metric)
{
    return metric->class->op->operands[3].name;
}

/* A plain number keeps its dtype: an op would convert it to float32. */
static ed_tensor *exactly(ed_tensor *x)
{
    return x->flags & TENSOR_WEAK ? scope_give(number_as(x, x->dtype)) : x;
}

bool ed_metric_update(ed_metric *metric, ed_tensor *values)
{
    if (NULL_GIVEN("metric_update", metric, values)) return false;
    if (compares(metric))
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
    if (!compares(metric))
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

const char *ed_metric_name(const ed_metric *metric)
{
    return metric ? metric->name : ed_fail(ED_INVALID_ARGUMENT, "metric_name: metric is NULL");
}
