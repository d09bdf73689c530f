#include "nn/layer_core.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Fields of layers of one's own, as those of Keras' subclasses: a checkpoint has a part under its
 * field, "blocks/0". Checkpoints of older versions of Eddy have a layer under the name of its kind
 * with a number, "dense_1", and a variable of a list under its name, "blocks_1": both are still
 * found.
 */

/* "blocks/0" is named blocks_0, or blocks_1 where the thread's indices begin at 1. NULL without
 * memory. */
static char *name_of_field(const char *field)
{
    char *name = memory_alloc(2 * strlen(field) + 2), *to = name;
    while (name && *field) {
        const size_t size = strcspn(field, "/");
        const bool number = strspn(field, "0123456789") == size && size < 18;
        if (number)
            to += sprintf(to, "%lld", text_nth(strtoll(field, NULL, 10)));
        else
            to = (char *)memcpy(to, field, size) + size;
        field += size;
        if (*field) *to++ = '_', field++;
    }
    if (name) *to = 0;
    return name;
}

/* A field is either a part itself or has parts: "blocks" and "blocks/0" don't go together. */
static bool check_apart(const ed_layer *layer, const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b), least = m < n ? m : n;
    if (m == n || (m < n ? b : a)[least] != '/' || strncmp(a, b, least) != 0) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the fields %s and %s: %.*s can't be a part of its own and have parts", a, b,
                      (int)least, a);
}

static bool check_field(const ed_layer *layer, const char *field)
{
    const size_t size = strlen(field);
    if (!size || *field == '/' || field[size - 1] == '/' || strstr(field, "//"))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "invalid field '%s': it is a name, or names with '/' between them",
                          field);
    for (int64_t i = 0; i < layer->n_children; i++) {
        const ed_layer *child = layer->children[i];
        const char *other = child->field ? child->field : child->name;
        if (!strcmp(other, field))
            return layer_fail(layer, ED_INVALID_ARGUMENT, "two layers are named %s", field);
        if (!check_apart(layer, field, other)) return false;
    }
    for (int64_t i = 0; i < layer->n_weights; i++) {
        const char *other = ((const variable *)layer->weights[i])->field;
        if (!check_apart(layer, field, other ? other : layer_leaf(layer->weights[i]))) return false;
    }
    return true;
}

/* While it is added, the child counts as named, so that the field's name becomes its name, or is
 * refused if another child has it. */
static ed_layer *add_child(ed_layer *layer, const char *field, ed_layer *child)
{
    if (child->parent) return ed_layer_add_child(layer, child);
    char *copy = text_copy(field), *name = name_of_field(field), *before = child->name;
    if (!copy || !name) return memory_free(copy), memory_free(name), NULL;
    const bool named = child->named;
    if (!named) child->name = name;
    child->named = true;
    child->field = copy;
    const bool added = ed_layer_add_child(layer, child);
    child->named = named;
    memory_free(added && !named ? before : name);
    if (added) return child;
    child->name = before;
    child->field = NULL;
    memory_free(copy);
    return NULL;
}

static ed_tensor *add_weight(ed_layer *layer, const char *field, ed_tensor *v)
{
    char *name = name_of_field(field);
    ed_tensor *added =
        name ? layer_adopt(layer, name, strcmp(name, field) ? field : NULL, v) : NULL;
    memory_free(name);
    return added;
}

void *ed_layer_add_field(ed_layer *layer, const char *field, void *part)
{
    if (NULL_GIVEN("layer_add_field", layer, field)) return NULL;
    if (!part) return ed_fail(ED_INVALID_ARGUMENT, "layer_add_field: part is NULL");
    if (!check_field(layer, field)) return NULL;
    const object_class *class = ((const ed_object *)part)->class;
    if (class == ((const ed_object *)layer)->class) return add_child(layer, field, part);
    if (class == &tensor_variable_class) return add_weight(layer, field, part);
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the field %s must be a layer or a variable, got %s", field, class->name);
}

/* ---- In checkpoints -------------------------------------------------------------------------- */

const char *layer_older_name(const ed_layer *layer, const ed_layer *child, char *room, size_t size)
{
    const char *kind = child->class->kind.name;
    int64_t before = 0;
    if (child->named) return child->name;
    for (int64_t i = 0; layer->children[i] != child; i++)
        before += layer->children[i]->class == child->class && !layer->children[i]->named;
    snprintf(room, size, before ? "%s_%lld" : "%s", kind, (long long)before);
    return layer_child_named(layer, room) ? NULL : room;
}

void layer_track_field(ed_tracker *t, const char *field, int node)
{
    char *names = text_copy(field), *next = names;
    int at = t->self;
    if (!names) t->failed = true;
    for (char *name = names; name; name = next) {
        if ((next = strchr(name, '/'))) *next++ = 0;
        int to = next ? graph_child(t->graph, at, name) : node;
        if (to < 0) to = graph_container(t);
        if (!next || graph_child(t->graph, at, name) < 0) graph_name(t, at, GRAPH_NAME, name, to);
        at = to;
    }
    memory_free(names);
}

int layer_find_field(const graph_source *source, int node, const char *field)
{
    char *names = text_copy(field), *next = names;
    for (char *name = names; name && node >= 0; name = next) {
        if ((next = strchr(name, '/'))) *next++ = 0;
        node = source->find(source, node, name);
    }
    if (!names) return -1;
    memory_free(names);
    return node;
}
