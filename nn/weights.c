#include "nn/layer_core.h"
#include <string.h>

/* The weights of one layer: creating, adopting, naming and finding them. */

static bool room_for_weight(ed_layer *layer)
{
    if (layer->n_weights < layer->weight_capacity) return true;
    const size_t n = (size_t)layer->weight_capacity, more = n ? 2 * n : HARD(1, 4);
    void *grown = memory_grow(layer->weights, n * sizeof(void *), more * sizeof(void *));
    if (!grown) return false;
    layer->weights = grown;
    layer->weight_capacity = (int64_t)more;
    return true;
}

const char *layer_leaf(const ed_tensor *weight)
{
    return strrchr(ed_variable_name(weight), '/') + 1;
}

static bool check_weight(const ed_layer *layer, const char *name)
{
    char *path = layer_path(layer, name);
    bool ok = path && layer_good_name(path, name);
    for (int64_t i = 0; ok && i < layer->n_weights; i++)
        if (!strcmp(layer_leaf(layer->weights[i]), name))
            ok = ed_fail(ED_INVALID_ARGUMENT, "%s: the layer already has a weight of this name",
                         path);
    memory_free(path);
    return ok;
}

static ed_tensor *initial_value(const ed_layer *layer, const char *name, ed_ints shape,
                                const ed_weight_options *options, int *node)
{
    ed_tensor *initial;
    if (!layer_waiting(layer, name, NULL, options->dtype, shape, &initial, node)) return NULL;
    if (initial) return scope_give(initial);
    return ed_initialize(options->initializer ?: ed_initializer_glorot_uniform(), shape,
                         options->dtype);
}

/* The scope releases the initial value; only the variable is kept. A checkpoint's value that waits
 * for the weight is used as it is: no random numbers are drawn. */
static ed_tensor *make_weight(ed_layer *layer, const char *name, ed_ints shape,
                              const ed_weight_options *options)
{
    ED_SCOPE;
    int node = -1;
    ed_tensor *initial = initial_value(layer, name, shape, options, &node);
    char *path = layer_path(layer, name);
    ed_tensor *v = initial && path
                       ? ed_variable(initial, .name = path, .trainable = options->trainable)
                       : NULL;
    memory_free(path);
    if (!v || !layer_made(layer, node, v)) return NULL;
    variable *made = (variable *)v;
    made->regularizer = ed_retain(options->regularizer);
    made->constraint = ed_retain(options->constraint);
    layer_freeze_weight(v, layer->frozen);
    return ed_retain(v);
}

/* While a file's model is made: whether the file can have the values of one more weight. */
static bool take_room(const ed_layer *layer, const char *name, ed_ints shape, ed_dtype dtype)
{
    int64_t *room = &thread_self()->weight_room, bytes = (int64_t)dtype_size(dtype);
    if (!*room) return true;
    bool fits = true;
    for (int64_t i = 0; fits && i < shape.count; i++)
        fits = shape.values[i] >= 0 && !__builtin_mul_overflow(bytes, shape.values[i], &bytes);
    if (fits && bytes < *room) return *room -= bytes, true;
    return layer_fail(layer, ED_DATA_LOSS,
                      "the weight %s would be %s, more than there can be in the file", name,
                      text_of_ints(shape.values, shape.count).s);
}

ed_tensor *ed_layer_add_weight_with(ed_layer *layer, const char *name, ed_ints shape,
                                    const ed_weight_options *options)
{
    if (NULL_GIVEN("layer_add_weight", layer, name)) return NULL;
    if (!(options = CHECKED_OPTIONS("layer_add_weight", ED_WEIGHT_OPTIONS, options))) return NULL;
    if (!check_weight(layer, name)) return NULL;
    if (!room_for_weight(layer) || !take_room(layer, name, shape, options->dtype)) return NULL;
    ed_tensor *v = make_weight(layer, name, shape, options);
    if (!v) return NULL;
    layer_drop_lists(layer);
    return layer->weights[layer->n_weights++] = v;
}

/* Takes ownership of the path. */
static void rename_variable(ed_tensor *v, char *path)
{
    memory_free(((variable *)v)->name);
    ((variable *)v)->name = path;
}

/* Assigns the checkpoint's value that waits for the variable, if there is one. */
static bool take_waiting(ed_layer *layer, const char *name, const char *field, ed_tensor *v)
{
    ED_SCOPE;
    ed_tensor *initial;
    int node;
    if (!layer_waiting(layer, name, field, v->dtype, ed_shape(v), &initial, &node)) return false;
    if (initial && !ed_assign(v, scope_give(initial))) return false;
    return layer_made(layer, node, v);
}

ed_tensor *layer_adopt(ed_layer *layer, const char *name, const char *field, ed_tensor *v)
{
    if (!ed_is_variable(v))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the weight %s must be a variable, got a tensor", name);
    if (!check_weight(layer, name)) return NULL;
    if (!room_for_weight(layer)) return NULL;
    char *path = layer_path(layer, name), *copy = field ? text_copy(field) : NULL;
    if (!path || (field && !copy)) return memory_free(path), memory_free(copy), NULL;
    const bool is_of_another =
        strchr(ed_variable_name(v), '/') && strcmp(ed_variable_name(v), path) != 0;
    if (is_of_another)
        layer_fail(layer, ED_INVALID_ARGUMENT, "the variable %s is another layer's weight",
                   ed_variable_name(v));
    if (is_of_another || !take_waiting(layer, name, field, v))
        return memory_free(path), memory_free(copy), NULL;
    rename_variable(v, path);
    memory_free(((variable *)v)->field);
    ((variable *)v)->field = copy;
    layer_drop_lists(layer);
    return layer->weights[layer->n_weights++] = ed_retain(v);
}

ed_tensor *ed_layer_adopt_weight(ed_layer *layer, const char *name, ed_tensor *v)
{
    if (NULL_GIVEN("layer_adopt_weight", layer, name)) return NULL;
    if (!v) return ed_fail(ED_INVALID_ARGUMENT, "layer_adopt_weight: variable is NULL");
    return layer_adopt(layer, name, NULL, v);
}

bool layer_rename_weights(ed_layer *layer)
{
    for (int64_t i = 0; i < layer->n_weights; i++) {
        char *path = layer_path(layer, layer_leaf(layer->weights[i]));
        if (!path) return false;
        rename_variable(layer->weights[i], path);
    }
    return true;
}

bool layer_rename_all(ed_layer *layer)
{
    for (int64_t i = 0; i < layer->n_children; i++)
        if (layer->children[i]->parent == layer && !layer_rename_all(layer->children[i]))
            return false;
    return layer_rename_weights(layer);
}

int64_t ed_layer_weight_count(const ed_layer *layer)
{
    return layer ? layer->n_weights
                 : (ed_fail(ED_INVALID_ARGUMENT, "layer_weight_count: layer is NULL"), 0);
}

ed_tensor *ed_layer_weight(const ed_layer *layer, int64_t i)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "layer_weight: layer is NULL");
    const int64_t at = i < 0 ? i + layer->n_weights : i;
    if (at < 0 || at >= layer->n_weights)
        return layer_fail(layer, ED_OUT_OF_RANGE, "weight %lld is out of bounds: there are %lld",
                          text_nth(i), (long long)layer->n_weights);
    return layer->weights[at];
}
