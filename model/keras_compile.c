#include "model/keras_file.h"
#include "nn/functional.h"
#include "tensor/core.h"
#include <stdio.h>
#include <string.h>

/* What Keras' compile_config says, to ed_model_compile. */

typedef struct lists {
    ed_objects losses, metrics; /* of output k the metrics of output[i] == k */
    ed_floats weights;
    int64_t *output;
} lists;

static bool is_given(const json_node *node)
{
    return node && node->type != JSON_NULL && !(node->type == JSON_ARRAY && !node->count);
}

static bool no_such(const char *who, const char *key)
{
    return ed_fail(ED_UNIMPLEMENTED,
                   "%s: compile_config: cannot use %s as it is (.compile = false loads the model "
                   "alone)",
                   who, key);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

/* Whether the node has values by the names of outputs. */
static bool is_named(const json_node *node)
{
    return node->type == JSON_OBJECT && !json_member(node, "class_name");
}

/* The output of a value that has number `at` in the node; -1 with an error. */
static int64_t output_of(const char *who, const ed_layer *model, const json_node *e, bool named,
                         int64_t at)
{
    const functional *f = layer_functional(model);
    const int64_t output = named && f ? ed_model_output_index(model, e->key) : at;
    if (output >= 0 && f && output >= f->outputs->size) return no_such(who, "compile_config"), -1;
    return output;
}

/* Of several outputs an array, an object by their names, or one loss for all. */
static bool read_losses(const char *who, const json_node *node, lists *l, const ed_layer *model)
{
    const bool named = is_named(node), list = named || node->type == JSON_ARRAY;
    const functional *f = layer_functional(model);
    const int64_t n = f ? f->outputs->size : list ? node->count : 1;
    void **values = ed_scope_alloc((size_t)(n + 1) * sizeof *values);
    int64_t at = 0;
    if (!values) return false;
    for (int64_t i = 0; i < n; i++) values[i] = NULL;
    for (const json_node *e = list ? node->first : node; e; e = list ? e->next : NULL, at++) {
        const int64_t output = output_of(who, model, e, named, at);
        if (output < 0) return false;
        if (e->type != JSON_NULL && !(values[output] = keras_make(who, "loss", e))) return false;
    }
    for (int64_t i = 1; i < n && !list; i++) values[i] = values[0];
    l->losses = (ed_objects){values, n};
    return true;
}

static bool read_weights(const char *who, const json_node *node, lists *l, const ed_layer *model)
{
    if (!is_given(node)) return true;
    const bool named = is_named(node), list = named || node->type == JSON_ARRAY;
    double *values = ed_scope_alloc((size_t)(l->losses.count + 1) * sizeof *values);
    int64_t at = 0;
    if (!values) return false;
    for (int64_t i = 0; i < l->losses.count; i++) values[i] = 1;
    for (const json_node *e = list ? node->first : node; e; e = list ? e->next : NULL, at++) {
        const int64_t output = output_of(who, model, e, named, at);
        if (output < 0) return false;
        if (e->type == JSON_NULL) continue;
        if (e->type != JSON_NUMBER || output >= l->losses.count)
            return no_such(who, "loss_weights");
        values[output] = e->number;
    }
    l->weights = (ed_floats){values, l->losses.count};
    return true;
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static void *read_metric(const char *who, const json_node *node, const ed_loss *loss,
                         const ed_layer *model)
{
    const char *class_name = json_text_of(node, "class_name");
    const bool function = class_name && !strcmp(class_name, "function");
    const char *word = node->type == JSON_TEXT ? node->text
                       : function              ? json_text_of(node, "config")
                                               : NULL;
    return word && keras_metric_by_word(word, loss, model) ? ed_metric_by_name(word, loss, model)
                                                           : keras_make(who, "metric", node);
}

static int64_t count_inside(const json_node *node)
{
    if (node->type != JSON_ARRAY && !is_named(node)) return node->type != JSON_NULL;
    int64_t n = 0;
    for (const json_node *e = node->first; e; e = e->next) n += count_inside(e);
    return n;
}

static bool take_metric(const char *who, const json_node *node, int64_t output, lists *l,
                        const ed_layer *model)
{
    if (node->type == JSON_NULL) return true;
    void **to = (void **)&l->metrics.values[l->metrics.count];
    l->output[l->metrics.count++] = output;
    return (*to = read_metric(who, node, l->losses.values[output], model));
}

/* A list of metrics; of several outputs a list of lists, or of either by the outputs' names. */
static bool read_metrics(const char *who, const json_node *node, lists *l, const ed_layer *model)
{
    if (!is_given(node)) return true;
    const bool named = is_named(node);
    if (node->type != JSON_ARRAY && !named) return no_such(who, "metrics");
    const size_t n = (size_t)count_inside(node) + 1;
    void **values = ed_scope_alloc(n * sizeof *values);
    l->output = ed_scope_alloc(n * sizeof *l->output);
    l->metrics = (ed_objects){values, 0};
    if (!values || !l->output) return false;
    int64_t at = 0;
    for (const json_node *e = node->first; e; e = e->next, at++) {
        const bool list = e->type == JSON_ARRAY;
        const int64_t output = list || named ? output_of(who, model, e, named, at) : 0;
        if (output < 0) return false;
        if (output >= l->losses.count) return no_such(who, "metrics");
        for (const json_node *m = list ? e->first : e; m; m = list ? m->next : NULL)
            if (m->type == JSON_ARRAY ? no_such(who, "metrics") || true
                                      : !take_metric(who, m, output, l, output ? NULL : model))
                return false;
    }
    return true;
}

static bool add_metrics(const char *who, const json_node *node, bool weighted, lists *l,
                        ed_layer *model)
{
    l->metrics = (ed_objects){NULL, 0};
    if (!read_metrics(who, node, l, model)) return false;
    for (int64_t i = 0; i < l->metrics.count; i++)
        if (!(weighted ? ed_model_add_weighted_metric : ed_model_add_metric)(model, l->output[i],
                                                                             l->metrics.values[i]))
            return false;
    return true;
}

/* ---- All ------------------------------------------------------------------------------------- */

bool keras_compile(const char *who, const json_node *config, ed_layer *model)
{
    ED_SCOPE;
    lists l = {0};
    const json_node *loss = json_member(config, "loss"), *o = json_member(config, "optimizer");
    if (!is_given(loss)) return true;
    ed_optimizer *optimizer = is_given(o) ? keras_make(who, "optimizer", o) : NULL;
    if (is_given(o) && !optimizer) return false;
    if (!read_losses(who, loss, &l, model) ||
        !read_weights(who, json_member(config, "loss_weights"), &l, model))
        return false;
    if (!ed_model_compile(model, .optimizer = optimizer, .losses = l.losses,
                          .loss_weights = l.weights))
        return false;
    return add_metrics(who, json_member(config, "metrics"), false, &l, model) &&
           add_metrics(who, json_member(config, "weighted_metrics"), true, &l, model);
}
