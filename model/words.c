#include "model/keras_names.h"
#include "model/model_core.h"
#include <stdio.h>
#include <string.h>

/* Metrics by the words of Keras' compile. */

/*
 * What "accuracy" and "crossentropy" begin with. Keras takes it by the shapes of the first batch;
 * here the loss and the output's size say the same. NULL: they say nothing.
 */
static const char *form_of(const ed_loss *loss, const ed_layer *model)
{
    const ed_kind *kind = loss ? ed_kind_of(loss) : NULL;
    const char *name = kind ? kind->name : "";
    const int64_t size =
        model && model->output_rank ? model->output_shape[model->output_rank - 1] : 0;
    if (size == 1 || strstr(name, "binary")) return "binary_";
    if (strstr(name, "sparse")) return "sparse_categorical_";
    return size || strstr(name, "categorical") ? "categorical_" : NULL;
}

const ed_kind *keras_metric_by_word(const char *word, const ed_loss *loss, const ed_layer *model)
{
    const bool accuracy = !strcmp(word, "accuracy") || !strcmp(word, "acc");
    if (!accuracy && strcmp(word, "crossentropy") != 0 && strcmp(word, "ce") != 0)
        return keras_kind_by_word("metric", word);
    const char *form = form_of(loss, model);
    if (!form) form = accuracy ? "" : "categorical_";
    char name[64];
    snprintf(name, sizeof name, "%s%s", form, accuracy ? "accuracy" : "crossentropy");
    return ed_kind_find("metric", name);
}

ed_metric *ed_metric_by_name(const char *name, const ed_loss *loss, const ed_layer *model)
{
    if (!name) return ed_fail(ED_INVALID_ARGUMENT, "metric_by_name: name is NULL");
    ED_SCOPE;
    const ed_kind *kind = keras_metric_by_word(name, loss, model);
    if (!kind) kind = ed_kind_find("metric", name);
    if (!kind || kind->required) return kind ? ed_make(kind, NULL) : NULL;
    void *options = ed_scope_alloc(kind->options_size);
    const ed_field *field = schema_find(kind->fields, "name");
    if (!options) return NULL;
    memcpy(options, kind->defaults, kind->options_size);
    if (field) *(const char **)ED_FIELD_AT(field, options) = name;
    ed_metric *metric = ed_make(kind, options);
    return metric ? ed_keep(metric) : NULL;
}
