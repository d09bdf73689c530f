#include "model/model_core.h"
#include <stdio.h>
#include <string.h>

static void compiled_destroy(void *object)
{
    compiled *c = object;
    ed_release(c->optimizer);
    for (int64_t i = 0; i < c->n_losses; i++) ed_release(c->losses[i]);
    for (int64_t i = 0; i < c->n_metrics; i++) {
        ed_release(c->metrics[i].metric);
        memory_free(c->metrics[i].name);
    }
    memory_free(c->losses);
    memory_free(c->loss_weights);
    memory_free(c->metrics);
    memory_free(c);
}

static const object_class compiled_class = {.name = "compiled", .destroy = compiled_destroy};

compiled *model_compiled(const char *who, const ed_layer *model)
{
    if (!model) return ed_fail(ED_INVALID_ARGUMENT, "%s: model is NULL", who);
    if (model->compiled) return model->compiled;
    return ed_fail(ED_FAILED_PRECONDITION, "%s: the model %s is not compiled: ed_model_compile",
                   who, model->name);
}

static bool is_a(const void *object, const char *family)
{
    return !strcmp(((const ed_object *)object)->class->name, family);
}

static bool check_family(const char *what, ed_objects list, const char *family)
{
    for (int64_t i = 0; i < list.count; i++)
        if (!is_a(list.values[i], family))
            return ed_fail(ED_INVALID_ARGUMENT, "model_compile: %s %lld must be a %s, got a %s",
                           what, text_nth(i), family,
                           ((const ed_object *)list.values[i])->class->name);
    return true;
}

static bool check_compile(const ed_layer *model, const ed_compile_options *o)
{
    const int64_t n = o->loss ? 1 : o->losses.count;
    if (!model) return ed_fail(ED_INVALID_ARGUMENT, "model_compile: model is NULL");
    if (o->optimizer && !is_a(o->optimizer, "optimizer"))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_compile: optimizer must be an optimizer, got a %s",
                       ((const ed_object *)o->optimizer)->class->name);
    if (!n) return ed_fail(ED_INVALID_ARGUMENT, "model_compile: a loss is required");
    if (o->loss && o->losses.count)
        return ed_fail(ED_INVALID_ARGUMENT, "model_compile: give either loss or losses");
    if (o->loss_weights.values && o->loss_weights.count != n)
        return ed_fail(ED_INVALID_ARGUMENT, "model_compile: got %lld loss_weights for %lld losses",
                       (long long)o->loss_weights.count, (long long)n);
    return check_family("loss", o->losses, "loss") && check_family("metric", o->metrics, "metric");
}

static bool take_losses(compiled *c, const ed_compile_options *o)
{
    void *const *given = o->loss ? (void *const *)&o->loss : o->losses.values;
    const int64_t n = o->loss ? 1 : o->losses.count;
    c->losses = memory_alloc((size_t)n * sizeof *c->losses);
    c->loss_weights = memory_alloc((size_t)n * sizeof *c->loss_weights);
    if (!c->losses || !c->loss_weights) return false;
    for (int64_t i = 0; i < n; i++) {
        c->losses[i] = ed_retain(given[i]);
        c->loss_weights[i] = o->loss_weights.values ? o->loss_weights.values[i] : 1;
    }
    c->n_losses = n;
    return true;
}

/* The metric's name, with its output's before it where there are several, and a number behind it
 * where the name is taken. memory_free frees it; NULL without memory. */
static char *name_for(const compiled *c, const ed_metric *metric, int64_t output)
{
    char head[40] = "", tail[24] = "";
    if (c->n_losses > 1) snprintf(head, sizeof head, "output_%lld_", (long long)output + 1);
    for (int n = 1;; n++) {
        char name[256];
        snprintf(name, sizeof name, "%s%s%s", head, ed_metric_name(metric), tail);
        bool taken = !strcmp(name, "loss");
        for (int64_t i = 0; i < c->n_metrics; i++) taken |= !strcmp(name, c->metrics[i].name);
        if (!taken) return text_copy(name);
        snprintf(tail, sizeof tail, "_%d", n);
    }
}

static bool add_metric(compiled *c, int64_t output, ed_metric *metric)
{
    if (c->n_metrics == c->capacity) {
        const size_t n = (size_t)c->capacity, more = n ? 2 * n : HARD(1, 4);
        void *grown = memory_grow(c->metrics, n * sizeof *c->metrics, more * sizeof *c->metrics);
        if (!grown) return false;
        c->metrics = grown;
        c->capacity = (int64_t)more;
    }
    char *name = name_for(c, metric, output);
    if (!name) return false;
    c->metrics[c->n_metrics++] = (measured){ed_retain(metric), output, name};
    return true;
}

bool ed_model_compile_with(ed_layer *model, const ed_compile_options *options)
{
    if (!(options = CHECKED_OPTIONS("model_compile", ED_COMPILE_OPTIONS, options))) return false;
    if (!check_compile(model, options)) return false;
    ED_SCOPE;
    compiled *c = scope_give(object_new(&compiled_class, sizeof *c));
    if (!c || !take_losses(c, options)) return false;
    c->optimizer = ed_retain(options->optimizer ? options->optimizer : ed_optimizer_rmsprop());
    if (!c->optimizer) return false;
    for (int64_t i = 0; i < options->metrics.count; i++)
        if (!add_metric(c, 0, options->metrics.values[i])) return false;
    void *before[] = {model->compiled, model->optimizer};
    model->compiled = ed_retain(c);
    model->optimizer = ed_retain(c->optimizer);
    ed_release(before[0]);
    ed_release(before[1]);
    return true;
}

bool ed_model_add_metric(ed_layer *model, int64_t output, ed_metric *metric)
{
    compiled *c = model_compiled("model_add_metric", model);
    if (!c) return false;
    if (!metric) return ed_fail(ED_INVALID_ARGUMENT, "model_add_metric: metric is NULL");
    if (output < 0 || output >= c->n_losses)
        return ed_fail(ED_OUT_OF_RANGE,
                       "model_add_metric: output %lld is out of bounds: there are %lld losses",
                       text_nth(output), (long long)c->n_losses);
    return add_metric(c, output, metric);
}

ed_optimizer *ed_model_optimizer(const ed_layer *model)
{
    return model ? model->optimizer
                 : ed_fail(ED_INVALID_ARGUMENT, "model_optimizer: model is NULL");
}

bool model_reset(compiled *c)
{
    c->loss = c->rows = 0;
    for (int64_t i = 0; i < c->n_metrics; i++)
        if (!ed_metric_reset(c->metrics[i].metric)) return false;
    return true;
}
