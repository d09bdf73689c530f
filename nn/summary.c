#include "nn/layer_core.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * A table of the layers without children and of those with weights of their own. It is written
 * twice, the first time to measure.
 */

typedef struct page {
    ed_object object;
    char s[];
} page;

static const object_class page_class = {.name = "text", .destroy = memory_free};

typedef struct table {
    char *at; /* NULL while measuring */
    size_t length;
    int widths[2]; /* of the columns name and output */
    bool ok;
} table;

static void put(table *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n =
        vsnprintf(t->at ? t->at + t->length : NULL, t->at ? SIZE_MAX / 4 : 0, format, arguments);
    va_end(arguments);
    if (n > 0) t->length += (size_t)n;
}

/* "[batch, 28, 28, 1]": the size of the first axis changes from batch to batch. */
static text output_text(const ed_layer *layer)
{
    text t = {"not called yet"};
    if (!layer->output_dtype) return t;
    size_t used = (size_t)snprintf(t.s, sizeof t.s, layer->output_rank ? "[batch" : "[");
    for (int i = 1; i < layer->output_rank; i++)
        used +=
            (size_t)snprintf(t.s + used, sizeof t.s - used, ", %" PRId64, layer->output_shape[i]);
    snprintf(t.s + used, sizeof t.s - used, "]");
    return t;
}

static int64_t own_parameters(const ed_layer *layer)
{
    int64_t n = 0;
    for (int64_t i = 0; i < layer->n_weights; i++) n += layer->weights[i]->size;
    return n;
}

static int at_least(int width, size_t length)
{
    return length > (size_t)width ? (int)length : width;
}

static void add_row(table *t, const ed_layer *layer)
{
    char *path = layer_path(layer, NULL);
    text output = output_text(layer);
    t->ok &= path != NULL;
    if (path) {
        t->widths[0] = at_least(t->widths[0], strlen(path));
        t->widths[1] = at_least(t->widths[1], strlen(output.s));
        put(t, "%-*s  %-*s  %12" PRId64 "\n", t->widths[0], path, t->widths[1], output.s,
            own_parameters(layer));
    }
    memory_free(path);
}

static void add_rows(table *t, const ed_layer *layer)
{
    if (!layer->n_children || layer->n_weights) add_row(t, layer);
    for (int64_t i = 0; i < layer->n_children; i++) add_rows(t, layer->children[i]);
}

static void add_parameters(const ed_layer *layer, int64_t counts[2])
{
    for (int64_t i = 0; i < layer->n_weights; i++)
        counts[ed_variable_is_trainable(layer->weights[i])] += layer->weights[i]->size;
    for (int64_t i = 0; i < layer->n_children; i++) add_parameters(layer->children[i], counts);
}

static void write_table(table *t, const ed_layer *layer)
{
    int64_t counts[2] = {0};
    add_parameters(layer, counts);
    put(t, "%-*s  %-*s  %12s\n", t->widths[0], "layer", t->widths[1], "output", "parameters");
    add_rows(t, layer);
    put(t, "%" PRId64 " parameters, %" PRId64 " trainable, %" PRId64 " not\n",
        counts[0] + counts[1], counts[1], counts[0]);
}

const char *ed_layer_summary(ed_layer *layer)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "layer_summary: layer is NULL");
    table measured = {.widths = {5, 6}, .ok = true};
    add_rows(&measured, layer); /* for the columns' widths */
    measured.length = 0;
    write_table(&measured, layer);
    if (!measured.ok) return NULL;
    page *text_page = object_new(&page_class, sizeof *text_page + measured.length + 1);
    if (!text_page) return NULL;
    table written = {
        .at = text_page->s, .widths = {measured.widths[0], measured.widths[1]}, .ok = true};
    write_table(&written, layer);
    if (!written.ok) return ed_release(text_page), NULL;
    return scope_give(text_page) ? text_page->s : NULL;
}
