#include "nn/metrics/metric.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

static void metric_destroy(void *object)
{
    ed_metric *metric = object;
    for (int i = 0; i < metric->n; i++) ed_release(metric->variables[i]);
    graph_wait_end(&metric->wait);
    memory_free(metric->name);
    made_end(metric);
    memory_free(metric);
}

static const object_class metric_object = {.name = "metric",
                                           .destroy = metric_destroy,
                                           .track = metric_track,
                                           .wait = metric_wait,
                                           .is_made = true};

/* ---- Silence --------------------------------------------------------------------------------- */

/* While it listens tapes hear nothing. It belongs to the scope, as the calls meanwhile, of a loss
 * of the user's or of an error handler, may be left by longjmp. */
typedef struct silence {
    ed_object object;
    ed_listener listener;
} silence;

static void silence_destroy(void *object)
{
    ed_unlisten(&((silence *)object)->listener);
    memory_free(object);
}

static silence *silence_begin(void)
{
    static const object_class class = {.name = "silence", .destroy = silence_destroy};
    silence *s = scope_give(object_new(&class, sizeof *s));
    if (!s) return NULL;
    s->listener.hides = true;
    return ed_listen(&s->listener) ? s : NULL;
}

static void silence_end(silence *s)
{
    ed_unlisten(&s->listener);
}

/* ---- Variables ------------------------------------------------------------------------------- */

ed_tensor *metric_new_variable(const ed_metric *metric, int i, ed_ints shape)
{
    graph_source *source = metric->wait.source;
    ed_tensor *initial;
    int node;
    if (!metric_waiting(metric, i, shape, &initial, &node)) return NULL;
    if (!initial)
        return ed_variable(ed_zeros(shape, .dtype = ED_FLOAT64),
                           .name = metric->class->variables[i], .trainable = false);
    ed_tensor *v = ed_variable(initial, .name = metric->class->variables[i], .trainable = false);
    ed_release(initial);
    return v && source->made(source, node, v) ? v : NULL;
}

/* Values of variables that are dropped again wait as before. */
static void unmake(const ed_metric *metric, ed_tensor *const *variables)
{
    graph_source *source = metric->wait.source;
    for (int i = 0; source && i < metric->n; i++)
        if (variables[i]) source->unmade(source, variables[i]);
}

static bool make_early(ed_metric *metric)
{
    int64_t shape[ED_MAX_RANK];
    if (metric->class->late) return true;
    const int rank = metric->class->shape ? metric->class->shape(metric->made.options, shape) : 0;
    for (int i = 0; i < metric->n; i++) {
        ed_tensor *v = metric_new_variable(metric, i, (ed_ints){shape, rank});
        if (!v) return false;
        metric->variables[i] = ed_retain(v);
    }
    return true;
}

void *metric_make(const ed_kind *kind, const void *options)
{
    ED_SCOPE;
    const metric_class *class = (const metric_class *)kind;
    ed_metric *metric = scope_give(made_new(&metric_object, sizeof *metric, kind, options));
    if (!metric) return NULL;
    const ed_field *named = schema_find(kind->fields, "name");
    const char *name =
        named ? *(const char *const *)ED_FIELD_AT(named, metric->made.options) : NULL;
    metric->class = class;
    while (metric->n < METRIC_VARIABLES && class->variables[metric->n]) metric->n++;
    if (!(metric->name = text_copy(name ? name : kind->name))) return NULL;
    if (class->check && !class->check(metric->name, metric->made.options)) return NULL;
    return make_early(metric) ? ed_keep(metric) : NULL;
}

const char *ed_metric_name(const ed_metric *metric)
{
    return metric ? metric->name : ed_fail(ED_INVALID_ARGUMENT, "metric_name: metric is NULL");
}

ed_list *ed_metric_variables(const ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_variables: metric is NULL");
    return ed_list_make(metric->variables, metric->variables[0] ? metric->n : 0);
}

/* ---- Updates --------------------------------------------------------------------------------- */

/* Adds the increments to new variables, which the metric then has. */
static bool add_first(ed_metric *metric, ed_tensor *const *increments)
{
    ed_tensor *operands[2 * METRIC_VARIABLES] = {NULL};
    for (int i = 0; i < metric->n; i++) {
        operands[i] = metric_new_variable(metric, i, ed_shape(increments[i]));
        if (!operands[i]) return unmake(metric, operands), false;
        operands[metric->n + i] = increments[i];
    }
    if (!ed_execute(&ed_op_metric_add, operands, 2 * metric->n, NULL, NULL)) {
        for (int i = metric->n; i < METRIC_VARIABLES; i++) operands[i] = NULL;
        return unmake(metric, operands), false;
    }
    for (int i = 0; i < metric->n; i++) metric->variables[i] = ed_retain(operands[i]);
    graph_wait_end(&metric->wait);
    return true;
}

static bool add_increments(ed_metric *metric, ed_tensor *const *increments)
{
    if (!metric->variables[0]) return add_first(metric, increments);
    ed_tensor *operands[2 * METRIC_VARIABLES];
    for (int i = 0; i < metric->n; i++) {
        const ed_tensor *v = metric->variables[i];
        if (!tensor_same_shape(v, increments[i]))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: %s is %s since earlier updates, this one adds %s; reset does not "
                           "change the shape, make another metric",
                           metric->name, metric->class->variables[i], text_of_tensor(v).s,
                           text_of_tensor(increments[i]).s);
        operands[i] = metric->variables[i];
        operands[metric->n + i] = increments[i];
    }
    return ed_execute(&ed_op_metric_add, operands, 2 * metric->n, NULL, NULL);
}

static bool compute_increments(const metric_class *class, metric_call *call)
{
    const bool integers = class->compares && call->y_pred->dtype != ED_BOOL &&
                          !ed_dtype_is_float(call->y_pred->dtype);
    if (class->operands == LOSS_CLASSES && integers &&
        !(call->y_pred = ed_cast(call->y_pred, ED_FLOAT64)))
        return false;
    if (class->compares && class->operands != LOSS_ANY &&
        !loss_prepare(call->who, class->operands, &call->y_true, &call->y_pred))
        return false;
    if (class->increments) return class->increments(call);
    ed_tensor *values = class->values(call->options, call->y_true, call->y_pred);
    if (!values) return false;
    ed_tensor *counts = NULL;
    if (class->counts && call->weight &&
        !class->counts(call->options, call->y_true, values, &counts))
        return false;
    return (!counts || metric_leave_out(call, counts)) && metric_add_mean(call, values);
}

/* The weights and the mask as one; false with an error. */
static bool take_weights(metric_call *call, const ed_metric_update_options *o)
{
    ed_tensor *mask = o ? o->mask : NULL;
    if (o && o->sample_weight && !(call->weight = metric_float64(o->sample_weight))) return false;
    if (mask && mask->dtype != ED_BOOL && !(mask = ed_cast(mask, ED_BOOL))) return false;
    return !mask || metric_leave_out(call, mask);
}

/* A plain number keeps its dtype: an op would convert it to float32. */
static ed_tensor *exactly(ed_tensor *x)
{
    return x && x->flags & TENSOR_WEAK ? scope_give(number_as(x, x->dtype)) : x;
}

static bool update_slowly(ed_metric *metric, ed_tensor *y_true, ed_tensor *y_pred,
                          const ed_metric_update_options *o)
{
    metric_call call = {
        .who = metric->name, .options = metric->made.options, .y_true = y_true, .y_pred = y_pred};
    silence *s = silence_begin();
    if (!s) return false;
    bool fine = take_weights(&call, o) && compute_increments(metric->class, &call);
    silence_end(s);
    for (int i = 0; i < metric->n; i++) fine = fine && call.increments[i];
    return fine && add_increments(metric, call.increments);
}

static bool update(ed_metric *metric, ed_tensor *x, ed_tensor *y, const ed_metric_update_options *o)
{
    ED_SCOPE;
    const error_before before = error_begin();
    x = exactly(x);
    y = exactly(y);
    const bool weighted = o && (o->sample_weight || o->mask);
    ed_tensor *const operands[] = {metric->variables[0], metric->variables[1], x, y};
    if (metric->class->fast && !weighted
            ? ed_execute(metric->class->fast, operands, y ? 4 : 3, NULL, NULL)
            : update_slowly(metric, x, y, o))
        return true;
    if (error_since(before)) error_append(" (in the metric %s)", metric->name);
    return false;
}

bool ed_metric_update_with(ed_metric *metric, ed_tensor *values,
                           const ed_metric_update_options *options)
{
    if (NULL_GIVEN("metric_update", metric, values)) return false;
    if (metric->class->compares)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "metric_update: %s takes labels and predictions; use ed_metric_compare",
                       metric->name);
    return update(metric, values, NULL, options);
}

bool ed_metric_compare_with(ed_metric *metric, ed_tensor *y_true, ed_tensor *y_pred,
                            const ed_metric_update_options *options)
{
    if (NULL_GIVEN("metric_compare", metric, y_true, y_pred)) return false;
    if (!metric->class->compares)
        return ed_fail(ED_INVALID_ARGUMENT, "metric_compare: %s takes values; use ed_metric_update",
                       metric->name);
    return update(metric, y_true, y_pred, options);
}

bool ed_metric_reset(ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_reset: metric is NULL");
    if (!metric->variables[0]) return graph_wait_end(&metric->wait), true;
    return ed_execute(&ed_op_metric_reset, metric->variables, metric->n, NULL, NULL);
}

bool ed_metric_merge(ed_metric *metric, const ed_metric *other)
{
    if (NULL_GIVEN("metric_merge", metric, other)) return false;
    if (metric->class != other->class)
        return ed_fail(ED_INVALID_ARGUMENT, "metric_merge: the metrics are a %s and a %s",
                       metric->class->kind.name, other->class->kind.name);
    if (!other->variables[0]) return true;
    ED_SCOPE;
    ed_tensor *values[METRIC_VARIABLES];
    for (int i = 0; i < metric->n; i++)
        if (!(values[i] = scope_give(ed_retain(tensor_read(other->variables[i]))))) return false;
    return add_increments(metric, values);
}

/* ---- Results --------------------------------------------------------------------------------- */

static double ratio(const ed_metric *metric)
{
    const double total = *(const double *)tensor_read(metric->variables[0])->data,
                 count = *(const double *)tensor_read(metric->variables[1])->data;
    return count != 0 ? total / count : 0;
}

ed_tensor *ed_metric_result_tensor(const ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_result_tensor: metric is NULL");
    if (!metric->variables[0])
        return ed_fail(ED_FAILED_PRECONDITION, "%s: there is no result before the first update",
                       metric->name);
    ED_SCOPE;
    if (!metric->class->result) return ed_keep(ed_scalar(ratio(metric), .dtype = ED_FLOAT64));
    ed_tensor *values[METRIC_VARIABLES];
    for (int i = 0; i < metric->n; i++)
        if (!(values[i] = ed_value(metric->variables[i]))) return NULL;
    silence *s = silence_begin();
    if (!s) return NULL;
    ed_tensor *result = metric->class->result(metric->made.options, values);
    silence_end(s);
    return ed_keep(result);
}

double ed_metric_result(const ed_metric *metric)
{
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "metric_result: metric is NULL"), NAN;
    if (!metric->class->result && metric->variables[0]) return ratio(metric);
    ED_SCOPE;
    const ed_tensor *result = ed_metric_result_tensor(metric);
    if (!result) return NAN;
    if (result->rank == 0) return ed_item(result);
    ed_fail(ED_INVALID_ARGUMENT, "metric_result: that of %s is %s; use ed_metric_result_tensor",
            metric->name, text_of_tensor(result).s);
    return NAN;
}
