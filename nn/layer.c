#include "nn/layer_core.h"
#include <stdarg.h>
#include <string.h>

/*
 * Layers are a tree: a layer holds references to its children and variables; a child has a pointer
 * to its parent without a reference, NULL again when the parent is destroyed. Only models made of
 * the same symbols share layers: the first is the parent, the others hold them too. A layer's name
 * is final once it has a parent. A variable's name is the path from the root when it is created, at
 * the first forward.
 *
 * Lists of variables are cached in the layer that was asked for them. Adding a weight or a child
 * drops the caches of the layer and of all layers above it.
 */

/* ---- Creating -------------------------------------------------------------------------------- */

void layer_drop_lists(ed_layer *layer)
{
    for (int i = 0; i < LAYER_LISTS; i++) {
        ed_release(layer->lists[i]);
        layer->lists[i] = NULL;
    }
    if (layer->parent) layer_drop_lists(layer->parent);
    for (int i = 0; i < layer->n_also; i++) layer_drop_lists(layer->also[i]);
}

/* The child has one holder less; the next one becomes its parent. */
static void leave_holder(ed_layer *child, const ed_layer *holder)
{
    int i = 0;
    if (child->parent == holder) {
        memory_free(child->field);
        child->field = NULL;
        child->parent = child->n_also ? child->also[0] : NULL;
    } else {
        while (i < child->n_also && child->also[i] != holder) i++;
    }
    if (i >= child->n_also) return;
    memmove(child->also + i, child->also + i + 1,
            (size_t)(--child->n_also - i) * sizeof *child->also);
}

void layer_truncate(ed_layer *layer, int64_t n_children, int64_t n_weights)
{
    layer_drop_lists(layer);
    if (!n_children) layer_clear_index(layer);
    while (layer->n_children > n_children) {
        ed_layer *child = layer->children[--layer->n_children];
        if (n_children) layer_unindex_child(layer, child);
        leave_holder(child, layer);
        ed_release(child);
    }
    while (layer->n_weights > n_weights) ed_release(layer->weights[--layer->n_weights]);
}

static void layer_destroy(void *object)
{
    ed_layer *layer = object;
    const ed_field *fields = layer->class->kind.fields;
    if (layer->class->destroy) layer->class->destroy(layer);
    schema_free(fields, layer->made.options); /* a class without options may be gone by now */
    layer->parent = NULL;
    layer_clear_losses(layer);
    layer_truncate(layer, 0, 0);
    graph_wait_end(&layer->wait);
    ed_release(layer->compiled);
    ed_release(layer->optimizer);
    memory_free(layer->losses);
    memory_free(layer->also);
    memory_free(layer->children);
    memory_free(layer->slots);
    memory_free(layer->weights);
    memory_free(layer->name);
    memory_free(layer->field);
    memory_free(layer);
}

static ed_list *layer_trainable(void *layer)
{
    return ed_layer_trainable_variables(layer);
}

static const object_class layer_class = {.name = "layer",
                                         .destroy = layer_destroy,
                                         .track = layer_track,
                                         .wait = layer_wait,
                                         .trainable = layer_trainable,
                                         .is_made = true};

static bool good_name(const char *who, const char *name)
{
    if (*name && !strchr(name, '/')) return true;
    ed_fail(ED_INVALID_ARGUMENT, "%s: invalid name '%s': it must not be empty or contain '/'", who,
            name);
    return false;
}

/* The value of an option that not every kind has; NULL if this one lacks it. */
static const void *option(const ed_layer *layer, const char *name, ed_field_type type)
{
    const ed_field *field = schema_find(layer->class->kind.fields, name);
    return field && field->type == type ? ED_FIELD_AT(field, layer->made.options) : NULL;
}

static void take_common_options(ed_layer *layer)
{
    const ed_dtype *dtype = option(layer, "dtype", ED_FIELD_DTYPE);
    const bool *trainable = option(layer, "trainable", ED_FIELD_BOOL);
    void *const *regularizer = option(layer, "activity_regularizer", ED_FIELD_REGULARIZER);
    if (dtype) layer->dtype = *dtype;
    if (trainable) layer->frozen = !*trainable;
    if (regularizer) layer->activity_regularizer = *regularizer;
}

void layer_present(const void *object, void *options)
{
    const ed_layer *layer = object;
    const ed_field *field = schema_find(layer->class->kind.fields, "trainable");
    if (field) *(bool *)ED_FIELD_AT(field, options) = !layer->frozen;
}

/* A layer of the class with the options; the caller owns the reference. */
static ed_layer *new_layer(const ed_layer_class *class, const char *name, const void *options)
{
    if (!good_name(class->kind.name, name ? name : class->kind.name)) return NULL;
    size_t bytes;
    if (__builtin_add_overflow(sizeof(ed_layer), class->state_size, &bytes))
        return ed_fail(ED_OUT_OF_MEMORY, "%s: state_size is %zu bytes; that is too large",
                       class->kind.name, class->state_size);
    char *copy = text_copy(name ? name : class->kind.name);
    ed_layer *layer = copy ? made_new(&layer_class, bytes, &class->kind, options) : NULL;
    if (!layer) {
        memory_free(copy);
        return NULL;
    }
    layer->class = class;
    layer->name = copy;
    layer->named = name != NULL;
    take_common_options(layer);
    return layer;
}

/* The same after the class's init, which has also failed if it continues after an error and returns
 * true; the layer belongs to the scope. */
static ed_layer *create(const ed_layer_class *class, const char *name, const void *options)
{
    ED_SCOPE;
    ed_layer *layer = scope_give(new_layer(class, name, options));
    if (!layer) return NULL;
    const error_before before = error_begin();
    const bool ok = !class->init || SCOPE_GUARDED(class->init(layer));
    if (ok && !error_since(before)) return ed_keep(layer);
    if (error_is_missing(before))
        layer_fail(layer, ED_FAILED_PRECONDITION, "init failed without an error");
    return NULL;
}

ed_layer *ed_layer_new(const ed_layer_class *class, const char *name)
{
    if (!class) return ed_fail(ED_INVALID_ARGUMENT, "layer_new: class is NULL");
    if (!class->kind.name || !class->forward)
        return ed_fail(ED_INVALID_ARGUMENT, "layer_new: class.%s is NULL; it is required",
                       class->kind.name ? "forward" : "kind.name");
    if (class->kind.fields)
        return ed_fail(ED_INVALID_ARGUMENT, "layer_new: the kind %s has options; use ed_make",
                       class->kind.name);
    return create(class, name, NULL);
}

void *ed_layer_make(const ed_kind *kind, const void *options)
{
    if (!kind || !options)
        return ed_fail(ED_INVALID_ARGUMENT, "layer_make: %s is NULL", kind ? "options" : "kind");
    const ed_field *named = schema_find(kind->fields, "name");
    const char *name = named ? *(const char *const *)ED_FIELD_AT(named, options) : NULL;
    return create((const ed_layer_class *)kind, name, options);
}

void *ed_layer_state(ed_layer *layer)
{
    return layer ? layer->state : ed_fail(ED_INVALID_ARGUMENT, "layer_state: layer is NULL");
}

/* ---- Names ----------------------------------------------------------------------------------- */

char *layer_path(const ed_layer *layer, const char *leaf)
{
    size_t length = leaf ? strlen(leaf) + 1 : 0;
    for (const ed_layer *l = layer; l; l = l->parent) length += strlen(l->name) + 1;
    char *path = memory_alloc(length);
    if (!path) return NULL;
    char *at = path + length;
    if (leaf) at = memcpy(at - strlen(leaf) - 1, leaf, strlen(leaf) + 1);
    for (const ed_layer *l = layer; l; l = l->parent) {
        at[-1] = at == path + length ? 0 : '/';
        at = memcpy(at - strlen(l->name) - 1, l->name, strlen(l->name));
    }
    return path;
}

void *layer_fail(const ed_layer *layer, ed_error_code code, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    error_format(message, sizeof message, format, arguments);
    va_end(arguments);
    char *path = layer_path(layer, NULL);
    ed_fail(code, "%s: %s", path ? path : layer->name, message);
    memory_free(path);
    return NULL;
}

const char *ed_layer_name(const ed_layer *layer)
{
    return layer ? layer->name : ed_fail(ED_INVALID_ARGUMENT, "layer_name: layer is NULL");
}

/* ---- Properties ------------------------------------------------------------------------------ */

const ed_layer_class *ed_layer_kind(const ed_layer *layer)
{
    return layer ? layer->class : ed_fail(ED_INVALID_ARGUMENT, "layer_kind: layer is NULL");
}

ed_layer *ed_layer_parent(const ed_layer *layer)
{
    return layer ? layer->parent : ed_fail(ED_INVALID_ARGUMENT, "layer_parent: layer is NULL");
}

const char *ed_layer_path(const ed_layer *layer)
{
    return layer ? text_give(layer_path(layer, NULL))
                 : ed_fail(ED_INVALID_ARGUMENT, "layer_path: layer is NULL");
}

bool ed_layer_is_named(const ed_layer *layer)
{
    return layer && layer->named;
}

bool ed_layer_is_built(const ed_layer *layer)
{
    return layer && layer->built;
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

/* ---- Children and weights -------------------------------------------------------------------- */

/* The tree is walked by recursion, so its depth is limited. */
enum { MOST_LEVELS = 1000 };

/* Whether `child` is the layer or above it; *levels is set to the layers above, itself included, at
 * most. */
static bool is_above(const ed_layer *layer, const ed_layer *child, int *levels)
{
    int most = 0, above = 0;
    bool is = layer == child || (layer->parent && is_above(layer->parent, child, &most));
    for (int i = 0; !is && i < layer->n_also; i++) {
        is = is_above(layer->also[i], child, &above);
        if (above > most) most = above;
    }
    *levels = most + 1;
    return is;
}

static bool check_child(const ed_layer *layer, const ed_layer *child)
{
    int levels;
    if (is_above(layer, child, &levels))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the layer %s can't be its own child",
                          child->name);
    if (levels + child->height + 1 > MOST_LEVELS)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "layers are nested more than %d deep",
                          MOST_LEVELS);
    if ((child->named || child->parent) && layer_child_named(layer, child->name))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "two layers are named %s", child->name);
    return true;
}

static void raise_height(ed_layer *layer, int height)
{
    if (layer->height >= height) return;
    layer->height = height;
    if (layer->parent) raise_height(layer->parent, height + 1);
    for (int i = 0; i < layer->n_also; i++) raise_height(layer->also[i], height + 1);
}

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

static bool room_for_child(ed_layer *layer)
{
    if (layer->n_children < layer->child_capacity) return true;
    const size_t n = (size_t)layer->child_capacity, more = n ? 2 * n : HARD(1, 4);
    void *grown = memory_grow(layer->children, n * sizeof(void *), more * sizeof(void *));
    if (!grown) return false;
    layer->children = grown;
    return layer_grow_index(layer, (int64_t)more);
}

/* A child without a name of its own gets one. false without memory. */
static bool name_child(ed_layer *layer, ed_layer *child)
{
    if (child->named || child->parent) return true;
    char *name = layer_free_name(layer, child->class->kind.name);
    if (!name) return false;
    memory_free(child->name);
    child->name = name;
    return true;
}

/* The child, which is named, becomes the layer's last; there is room. */
static void append_child(ed_layer *layer, ed_layer *child)
{
    layer_drop_lists(layer);
    layer->children[layer->n_children++] = ed_retain(child);
    if (!child->parent) child->parent = layer;
    if (layer->frozen) ed_layer_set_trainable(child, false);
    raise_height(layer, child->height + 1);
}

static bool check_orphan(const ed_layer *layer, const ed_layer *child)
{
    return !child->parent ||
           layer_fail(layer, ED_INVALID_ARGUMENT, "the layer %s already belongs to %s", child->name,
                      child->parent->name);
}

ed_layer *ed_layer_add_child(ed_layer *layer, ed_layer *child)
{
    if (NULL_GIVEN("layer_add_child", layer, child)) return NULL;
    if (!check_orphan(layer, child) || !check_child(layer, child) || !room_for_child(layer) ||
        !name_child(layer, child))
        return NULL;
    append_child(layer, child);
    layer_index_child(layer, child);
    layer_made_child(layer, child);
    return child;
}

/* One more model that shares the child; false without memory. */
static bool add_holder(ed_layer *child, ed_layer *holder)
{
    const size_t n = (size_t)child->n_also;
    void *grown = memory_grow(child->also, n * sizeof(void *), (n + 1) * sizeof(void *));
    if (!grown) return false;
    child->also = grown;
    child->also[child->n_also++] = holder;
    return true;
}

static bool add_shared(ed_layer *layer, ed_layer *child)
{
    const bool shared = child->parent != NULL;
    if (!shared && (!check_child(layer, child) || !name_child(layer, child))) return false;
    if (shared && !add_holder(child, layer)) return false;
    append_child(layer, child);
    if (!shared) layer_index_child(layer, child);
    layer_made_child(layer, child);
    return true;
}

/* Names that are final are taken first, so that the others are given names that are free. */
bool layer_add_shared(ed_layer *layer, ed_layer *const *children, int n)
{
    int64_t capacity = 4;
    while (capacity < n) capacity *= 2;
    layer->children = memory_alloc((size_t)capacity * sizeof *layer->children);
    if (!layer->children || !layer_grow_index(layer, capacity)) return false;
    for (int i = 0; i < n; i++) {
        if (!children[i]->parent) continue;
        if (!check_child(layer, children[i])) return false;
        layer_index_child(layer, children[i]);
    }
    for (int i = 0; i < n; i++)
        if (!add_shared(layer, children[i])) return false;
    return true;
}

const char *layer_leaf(const ed_tensor *weight)
{
    return strrchr(ed_variable_name(weight), '/') + 1;
}

static bool check_weight(const ed_layer *layer, const char *name)
{
    char *path = layer_path(layer, name);
    bool ok = path && good_name(path, name);
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
    ed_initializer *initializer = options->initializer;
    if (!initializer) {
        const ed_kind *kind = ed_kind_find("initializer", options->otherwise);
        initializer = kind ? ed_make(kind, NULL) : NULL;
    }
    return initializer ? ed_initialize(initializer, shape, options->dtype) : NULL;
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

ed_tensor *ed_layer_add_weight_with(ed_layer *layer, const char *name, ed_ints shape,
                                    const ed_weight_options *options)
{
    if (NULL_GIVEN("layer_add_weight", layer, name)) return NULL;
    if (!(options = CHECKED_OPTIONS("layer_add_weight", ED_WEIGHT_OPTIONS, options))) return NULL;
    if (!check_weight(layer, name)) return NULL;
    if (!room_for_weight(layer)) return NULL;
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

int64_t ed_layer_child_count(const ed_layer *layer)
{
    return layer ? layer->n_children
                 : (ed_fail(ED_INVALID_ARGUMENT, "layer_child_count: layer is NULL"), 0);
}

ed_layer *ed_layer_child(const ed_layer *layer, int64_t i)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "layer_child: layer is NULL");
    int64_t at = i < 0 ? i + layer->n_children : i;
    if (at < 0 || at >= layer->n_children)
        return layer_fail(layer, ED_OUT_OF_RANGE, "child %lld is out of bounds: there are %lld",
                          text_nth(i), (long long)layer->n_children);
    return layer->children[at];
}

ed_layer *ed_layer_find_child(const ed_layer *layer, const char *name)
{
    if (NULL_GIVEN("layer_find_child", layer, name)) return NULL;
    ed_layer *child = layer_child_named(layer, name);
    return child ? child : layer_fail(layer, ED_NOT_FOUND, "there is no child named %s", name);
}

/* ---- For the library's own layers ------------------------------------------------------------ */

bool layer_accepts(const ed_layer *layer, const ed_tensor *x, int rank, bool more)
{
    if (x->dtype != ED_FLOAT32 && x->dtype != ED_FLOAT64)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the input must be float32 or float64, got %s (ed_cast converts)",
                          text_of_tensor(x).s);
    if (x->rank == rank || (more && x->rank > rank)) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must have rank %s%d, got %s",
                      more ? ">= " : "", rank, text_of_tensor(x).s);
}

bool layer_same_last(const ed_layer *layer, const ed_tensor *x, int64_t size)
{
    if (x->shape[x->rank - 1] == size) return true;
    return layer_fail(
        layer, ED_INVALID_ARGUMENT,
        "the size of the input's last axis must be %lld, as when the layer was built; got %s",
        (long long)size, text_of_tensor(x).s);
}
