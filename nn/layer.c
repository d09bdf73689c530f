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

static void layer_destroy(void *object)
{
    ed_layer *layer = object;
    const ed_field *fields = layer->class->kind.fields;
    if (layer->class->destroy) SCOPE_GUARDED((layer->class->destroy(layer), true));
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

bool layer_good_name(const char *who, const char *name)
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
    if (!layer_good_name(class->kind.name, name ? name : class->kind.name)) return NULL;
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
