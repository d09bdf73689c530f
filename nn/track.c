#include "nn/layer_core.h"
#include <stdio.h>
#include <string.h>

/*
 * What a checkpoint saves of a layer, under Eddy's names and under those of Keras' checkpoints:
 * there weights "kernel" and "embeddings" are "_kernel" and "_embeddings" in some layers, the mean
 * of a normalization "adapt_mean"; the layers of a Sequential are numbered, in Keras 3 below
 * _functional/_operations (of a Functional model below _operations), the input being 0, in Keras 2
 * as layer_with_weights-0, layer_with_weights-1, ...
 *
 * A layer that was never called waits for the values of weights that it does not have yet.
 */
static const struct {
    const char *name, *alias; /* Eddy's, Keras' */
} aliases[] = {{"kernel", "_kernel"},
               {"embeddings", "_embeddings"},
               {"mean", "adapt_mean"},
               {"variance", "adapt_variance"}};

/* Keras' other name of a weight; NULL if there is none. */
static const char *alias_of(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcmp(name, aliases[i].name)) return aliases[i].alias;
    return NULL;
}

static void track_weights(const ed_layer *layer, ed_tracker *t)
{
    for (int64_t i = 0; i < layer->n_weights; i++) {
        const char *leaf = layer_leaf(layer->weights[i]);
        int weight = graph_object(t, layer->weights[i]);
        const char *field = ((const variable *)layer->weights[i])->field;
        if (field) layer_track_field(t, field, weight);
        graph_name(t, t->self, field ? GRAPH_MATCH : GRAPH_NAME, leaf, weight);
        if (alias_of(leaf)) graph_name(t, t->self, GRAPH_ALIAS, alias_of(leaf), weight);
    }
}

static bool has_weights(const ed_layer *layer)
{
    if (layer->n_weights || layer->class->build) return true;
    for (int64_t i = 0; i < layer->n_children; i++)
        if (has_weights(layer->children[i])) return true;
    return false;
}

/* Keras' names of the layers of a Sequential. */
static void track_sequence(const ed_layer *layer, ed_tracker *t)
{
    int functional = graph_container(t), operations = graph_container(t), n = 0;
    graph_name(t, t->self, GRAPH_ALIAS, "_functional", functional);
    graph_name(t, functional, GRAPH_ALIAS, "_operations", operations);
    graph_name(t, t->self, GRAPH_ALIAS, "_operations", operations);
    for (int64_t i = 0; i < layer->n_children; i++) {
        int child = graph_object(t, layer->children[i]);
        graph_number(t, operations, GRAPH_ALIAS, i + 1, child);
        if (!has_weights(layer->children[i])) continue;
        char name[32];
        snprintf(name, sizeof name, "layer_with_weights-%d", n++);
        graph_name(t, t->self, GRAPH_ALIAS, name, child);
    }
}

/* Of a child that models share, the field is one of its parent. */
static void track_children(const ed_layer *layer, ed_tracker *t)
{
    for (int64_t i = 0; i < layer->n_children; i++) {
        const ed_layer *child = layer->children[i];
        if (child->field && child->parent == layer)
            layer_track_field(t, child->field, graph_object(t, layer->children[i]));
        else
            graph_name(t, t->self, GRAPH_NAME, child->name, graph_object(t, layer->children[i]));
    }
    for (int64_t i = 0; i < layer->n_children; i++) {
        const ed_layer *child = layer->children[i];
        char room[128];
        const char *older = child->field && child->parent == layer
                                ? layer_older_name(layer, child, room, sizeof room)
                                : NULL;
        if (older && strcmp(older, child->field) != 0)
            graph_name(t, t->self, GRAPH_MATCH, older, graph_object(t, layer->children[i]));
    }
}

void layer_track(void *object, ed_tracker *t)
{
    ed_layer *layer = object;
    t->graph->nodes[t->self].open = layer->class->build && !layer->built;
    track_weights(layer, t);
    track_children(layer, t);
    if (layer->optimizer && !t->graph->weights_only)
        graph_name(t, t->self, GRAPH_NAME, "optimizer", graph_object(t, layer->optimizer));
    if (layer->class->track) layer->class->track(layer, t);
    if (layer->class->in_order) track_sequence(layer, t);
}

void layer_track_inner(ed_layer *layer, ed_tracker *t)
{
    if (layer->n_children && strcmp(layer->children[0]->name, "layer") != 0)
        graph_name(t, t->self, GRAPH_ALIAS, "layer", graph_object(t, layer->children[0]));
}

graph_wait *layer_wait(void *object)
{
    return &((ed_layer *)object)->wait;
}

/* ---- Values that wait ------------------------------------------------------------------------ */

bool layer_waiting(const ed_layer *layer, const char *name, const char *field, ed_dtype dtype,
                   ed_ints shape, ed_tensor **initial, int *node)
{
    graph_source *source = layer->wait.source;
    *initial = NULL;
    *node = -1;
    if (!source) return true;
    if (field) *node = layer_find_field(source, layer->wait.node, field);
    if (*node < 0) *node = source->find(source, layer->wait.node, name);
    if (*node < 0 && alias_of(name)) *node = source->find(source, layer->wait.node, alias_of(name));
    if (*node < 0)
        return !source->whole(source, layer->wait.node) ||
               layer_fail(layer, ED_NOT_FOUND,
                          "the checkpoint %s has no value for %s (set .partial = true to restore "
                          "the rest)",
                          source->path, name);
    char *path = layer_path(layer, name);
    if (path) *initial = source->value(source, *node, path, dtype, shape);
    memory_free(path);
    return *initial;
}

bool layer_made(const ed_layer *layer, int node, void *object)
{
    graph_source *source = layer->wait.source;
    return !source || node < 0 || source->made(source, node, object);
}

void layer_made_child(const ed_layer *layer, ed_layer *child)
{
    graph_source *source = layer->wait.source;
    if (!source) return;
    char room[128];
    const char *name =
        child->field ? layer_older_name(layer, child, room, sizeof room) : child->name;
    int node = child->field ? layer_find_field(source, layer->wait.node, child->field) : -1;
    if (node < 0 && name) node = source->find(source, layer->wait.node, name);
    if (node >= 0 || source->whole(source, layer->wait.node)) source->made(source, node, child);
}

void layer_unmade(const ed_layer *layer, int64_t first_child, int64_t first_weight)
{
    graph_source *source = layer->wait.source;
    for (int64_t i = first_child; i < layer->n_children; i++)
        layer_unmade(layer->children[i], 0, 0);
    for (int64_t i = first_weight; source && i < layer->n_weights; i++)
        source->unmade(source, layer->weights[i]);
}
