/*
 * What a checkpoint saves of a metric: its variables, under the names that Keras has. Scalars and
 * vectors are cells, since other programs' files have them in other dtypes; matrices are variables.
 * A metric whose variables are made by its first update waits for their values.
 */
#include "nn/metrics/metric.h"
#include <string.h>

static size_t bytes_of(const ed_tensor *v)
{
    return (size_t)v->size * sizeof(double);
}

static void get_numbers(const void *v, void *elements)
{
    memcpy(elements, tensor_read(v)->data, bytes_of(v));
}

/* A restore can't fail here. It allocates memory only if another object holds the value of a
 * metric's variable. */
static void set_numbers(void *v, const void *elements)
{
    ed_tensor *value = variable_write(v);
    if (value) memcpy(value->data, elements, bytes_of(v));
}

static const char *refuses_count(const void *v, const void *elements)
{
    double count;
    (void)v;
    memcpy(&count, elements, sizeof count);
    return count >= 0 ? NULL : "must be >= 0";
}

void metric_track(void *object, ed_tracker *t)
{
    const ed_metric *metric = object;
    t->graph->nodes[t->self].open = !metric->variables[0];
    for (int i = 0; i < metric->n && metric->variables[0]; i++) {
        ed_tensor *v = metric->variables[i];
        const char *name = metric->class->variables[i];
        ed_state state = {ED_FLOAT64, v->rank ? v->size : -1, get_numbers, NULL, set_numbers, 0};
        if (!v->rank && !strcmp(name, "count")) state.refuses = refuses_count;
        graph_name(t, t->self, GRAPH_NAME, name,
                   v->rank > 1 ? graph_object(t, v) : graph_cell(t, v, &state));
    }
}

graph_wait *metric_wait(void *object)
{
    return &((ed_metric *)object)->wait;
}

bool metric_waiting(const ed_metric *metric, int i, ed_ints shape, ed_tensor **value, int *node)
{
    graph_source *source = metric->wait.source;
    const char *name = metric->class->variables[i];
    *value = NULL;
    *node = -1;
    if (!source) return true;
    *node = source->find(source, metric->wait.node, name);
    if (*node < 0)
        return !source->whole(source, metric->wait.node) ||
               ed_fail(ED_NOT_FOUND,
                       "%s: the checkpoint %s has no value for %s (set .partial = true to restore "
                       "the rest)",
                       metric->name, source->path, name);
    *value = source->value(source, *node, name, ED_FLOAT64, shape);
    return *value;
}
