#include "nn/layer_core.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Layers are a tree: a layer holds references to its children and variables; a child has a pointer
 * to its parent without a reference, NULL again when the parent is destroyed. A layer's name is
 * final once it has a parent. A variable's name is the path from the root when it is created, at
 * the first forward.
 *
 * Lists of variables are cached in the layer that was asked for them. Adding a weight or a child
 * drops the caches of the layer and of all layers above it.
 */

/* ---- Creating -------------------------------------------------------------------------------- */

static void drop_lists(ed_layer *layer)
{
    for (; layer; layer = layer->parent)
        for (int i = 0; i < LAYER_LISTS; i++) {
            ed_release(layer->lists[i]);
            layer->lists[i] = NULL;
        }
}

/* Removes the children from index n_children on and the weights from index n_weights on. */
static void truncate_to(ed_layer *layer, int64_t n_children, int64_t n_weights)
{
    drop_lists(layer);
    while (layer->n_children > n_children) {
        ed_layer *child = layer->children[--layer->n_children];
        layer_unindex_child(layer, child);
        child->parent = NULL;
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
    truncate_to(layer, 0, 0);
    graph_wait_end(&layer->wait);
    memory_free(layer->children);
    memory_free(layer->slots);
    memory_free(layer->weights);
    memory_free(layer->name);
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

static bool check_child(const ed_layer *layer, const ed_layer *child)
{
    if (child->parent)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the layer %s already belongs to %s",
                          child->name, child->parent->name);
    int levels = child->height + 1;
    for (const ed_layer *above = layer; above; above = above->parent, levels++)
        if (above == child)
            return layer_fail(layer, ED_INVALID_ARGUMENT, "the layer %s can't be its own child",
                              child->name);
    if (levels > MOST_LEVELS)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "layers are nested more than %d deep",
                          MOST_LEVELS);
    if (child->named && layer_child_named(layer, child->name))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "two layers are named %s", child->name);
    return true;
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

ed_layer *ed_layer_add_child(ed_layer *layer, ed_layer *child)
{
    if (NULL_GIVEN("layer_add_child", layer, child)) return NULL;
    if (!check_child(layer, child)) return NULL;
    if (!room_for_child(layer)) return NULL;
    if (!child->named) {
        char *name = layer_free_name(layer, child->class->kind.name);
        if (!name) return NULL;
        memory_free(child->name);
        child->name = name;
    }
    drop_lists(layer);
    layer->children[layer->n_children++] = ed_retain(child);
    layer_index_child(layer, child);
    child->parent = layer;
    int height = child->height + 1;
    for (ed_layer *above = layer; above && above->height < height; above = above->parent)
        above->height = height++;
    layer_made_child(layer, child);
    return child;
}

/* The weight's own name, after the path. */
static const char *leaf_of(const ed_tensor *weight)
{
    return strrchr(ed_variable_name(weight), '/') + 1;
}

static bool check_weight(const ed_layer *layer, const char *name)
{
    char *path = layer_path(layer, name);
    bool ok = path && good_name(path, name);
    for (int64_t i = 0; ok && i < layer->n_weights; i++)
        if (!strcmp(leaf_of(layer->weights[i]), name))
            ok = ed_fail(ED_INVALID_ARGUMENT, "%s: the layer already has a weight of this name",
                         path);
    memory_free(path);
    return ok;
}

static ed_tensor *initial_value(const ed_layer *layer, const char *name, ed_ints shape,
                                const ed_weight_options *options, int *node)
{
    ed_tensor *initial;
    if (!layer_waiting(layer, name, options->dtype, shape, &initial, node)) return NULL;
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
    return v && layer_made(layer, node, v) ? ed_retain(v) : NULL;
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
    drop_lists(layer);
    return layer->weights[layer->n_weights++] = v;
}

/* Takes ownership of the path. */
static void rename_variable(ed_tensor *v, char *path)
{
    memory_free(((variable *)v)->name);
    ((variable *)v)->name = path;
}

/* Assigns the checkpoint's value that waits for the variable, if there is one. */
static bool take_waiting(ed_layer *layer, const char *name, ed_tensor *v)
{
    ED_SCOPE;
    ed_tensor *initial;
    int node;
    if (!layer_waiting(layer, name, v->dtype, ed_shape(v), &initial, &node)) return false;
    if (initial && !ed_assign(v, scope_give(initial))) return false;
    return layer_made(layer, node, v);
}

ed_tensor *ed_layer_adopt_weight(ed_layer *layer, const char *name, ed_tensor *v)
{
    if (NULL_GIVEN("layer_adopt_weight", layer, name)) return NULL;
    if (!v) return ed_fail(ED_INVALID_ARGUMENT, "layer_adopt_weight: variable is NULL");
    if (!ed_is_variable(v))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the weight %s must be a variable, got a tensor", name);
    if (!check_weight(layer, name)) return NULL;
    if (!room_for_weight(layer)) return NULL;
    char *path = layer_path(layer, name);
    if (!path) return NULL;
    const bool is_of_another =
        strchr(ed_variable_name(v), '/') && strcmp(ed_variable_name(v), path) != 0;
    if (is_of_another)
        layer_fail(layer, ED_INVALID_ARGUMENT, "the variable %s is another layer's weight",
                   ed_variable_name(v));
    if (is_of_another || !take_waiting(layer, name, v)) return memory_free(path), NULL;
    rename_variable(v, path);
    drop_lists(layer);
    return layer->weights[layer->n_weights++] = ed_retain(v);
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

/* ---- Variables ------------------------------------------------------------------------------- */

static int64_t count_weights(const ed_layer *layer)
{
    int64_t n = layer->n_weights;
    for (int64_t i = 0; i < layer->n_children; i++) n += count_weights(layer->children[i]);
    return n;
}

static void gather(const ed_layer *layer, ed_tensor **items, int64_t *n)
{
    for (int64_t i = 0; i < layer->n_weights; i++) items[(*n)++] = ed_retain(layer->weights[i]);
    for (int64_t i = 0; i < layer->n_children; i++) gather(layer->children[i], items, n);
}

/*
 * Several threads may ask one model. The lock is held for a pointer alone, not while an error can
 * be kept: its handler may leave.
 */
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_lists(void)
{
    pthread_mutex_lock(&lists_lock);
}

static void unlock_lists(void)
{
    pthread_mutex_unlock(&lists_lock);
}

__attribute__((constructor(103))) static void layer_watch_forks(void)
{
    pthread_atfork(lock_lists, unlock_lists, unlock_lists);
}

/* The list that is cached, with a reference for the caller; NULL if there is none. */
static ed_list *cached_list(ed_layer *layer, int kind)
{
    lock_lists();
    ed_list *list = ed_retain(layer->lists[kind]);
    unlock_lists();
    return list;
}

/* Puts the list into the cache, unless it is NULL; the caller keeps its reference. */
static ed_list *cache_list(ed_layer *layer, int kind, ed_list *list)
{
    if (!list) return NULL;
    lock_lists();
    ed_list *before = layer->lists[kind];
    layer->lists[kind] = ed_retain(list);
    unlock_lists();
    ed_release(before);
    return list;
}

/* With a reference for the caller. */
static ed_list *all_variables(ed_layer *layer)
{
    ed_list *list = cached_list(layer, LAYER_ALL);
    if (list || !(list = list_new(count_weights(layer)))) return list;
    int64_t n = 0;
    gather(layer, list->items, &n);
    return cache_list(layer, LAYER_ALL, list);
}

/* Whether `list` still has those of `all` whose flag is `trainable`: a flag may have changed. */
static bool is_current(const ed_list *list, const ed_list *all, bool trainable)
{
    int64_t n = 0;
    for (int64_t i = 0; i < all->size; i++) {
        if (ed_variable_is_trainable(all->items[i]) != trainable) continue;
        if (n >= list->size || list->items[n] != all->items[i]) return false;
        n++;
    }
    return n == list->size;
}

static ed_list *select_variables(const ed_list *all, bool trainable)
{
    int64_t n = 0;
    for (int64_t i = 0; i < all->size; i++)
        n += ed_variable_is_trainable(all->items[i]) == trainable;
    ed_list *list = list_new(n);
    if (!list) return NULL;
    n = 0;
    for (int64_t i = 0; i < all->size; i++)
        if (ed_variable_is_trainable(all->items[i]) == trainable)
            list->items[n++] = ed_retain(all->items[i]);
    return list;
}

static ed_list *variables_of(ed_layer *layer, int kind, const char *who)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "%s: layer is NULL", who);
    ed_list *all = scope_give(all_variables(layer));
    if (!all) return NULL;
    if (!all->size && !layer->built)
        return layer_fail(
            layer, ED_FAILED_PRECONDITION,
            "the layer has no variables before its first ed_forward, which makes them");
    if (kind == LAYER_ALL) return all;
    ed_list *list = scope_give(cached_list(layer, kind));
    if (list && is_current(list, all, kind == LAYER_TRAINABLE)) return list;
    return scope_give(cache_list(layer, kind, select_variables(all, kind == LAYER_TRAINABLE)));
}

ed_list *ed_layer_variables(ed_layer *layer)
{
    return variables_of(layer, LAYER_ALL, "layer_variables");
}

ed_list *ed_layer_trainable_variables(ed_layer *layer)
{
    return variables_of(layer, LAYER_TRAINABLE, "layer_trainable_variables");
}

ed_list *ed_layer_non_trainable_variables(ed_layer *layer)
{
    return variables_of(layer, LAYER_NOT_TRAINABLE, "layer_non_trainable_variables");
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Weights that were added before the layer had its parent get their full path. */
static bool rename_weights(ed_layer *layer)
{
    for (int64_t i = 0; i < layer->n_weights; i++) {
        char *path = layer_path(layer, leaf_of(layer->weights[i]));
        if (!path) return false;
        rename_variable(layer->weights[i], path);
    }
    return true;
}

/*
 * All that a failed build added is removed, so the next forward builds from the start. A build that
 * continues after an error and returns true has failed too.
 */
static bool build(ed_layer *layer, const ed_layer_call *call)
{
    int64_t n_children = layer->n_children, n_weights = layer->n_weights;
    const error_before before = error_begin();
    bool ok = rename_weights(layer) &&
              (!layer->class->build || SCOPE_GUARDED(layer->class->build(layer, call)));
    if (ok && !error_since(before)) return layer->built = true;
    layer_unmade(layer, n_children, n_weights);
    truncate_to(layer, n_children, n_weights);
    if (error_is_missing(before))
        layer_fail(layer, ED_FAILED_PRECONDITION, "build failed without an error");
    return false;
}

static void note_output(ed_layer *layer, const ed_tensor *y)
{
    layer->output_dtype = y->dtype;
    layer->output_rank = y->rank;
    memcpy(layer->output_shape, y->shape, sizeof y->shape);
}

/*
 * Appends the layer's path to an error of an op inside. Only the innermost layer does: messages
 * that already have a path stay unchanged.
 */
static void blame(const ed_layer *layer, error_before before)
{
    if (error_is_missing(before))
        layer_fail(layer, ED_FAILED_PRECONDITION, "forward failed without an error");
    if (!error_since(before)) return;
    const char *message = error_sentence();
    char *path = layer_path(layer, NULL);
    if (path && strncmp(message, path, strlen(path)) != 0 && !strstr(message, " (in the layer "))
        error_append(" (in the layer %s)", path);
    memory_free(path);
}

static bool check_inputs(const ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_class *class = layer->class;
    const int least = class->min_inputs ? class->min_inputs : 1;
    const int most = class->max_inputs ? class->max_inputs : least;
    if (call->n_inputs < least || (most > 0 && call->n_inputs > most))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "got %d inputs, expected %s%d",
                          call->n_inputs, most < 0 ? "at least " : "",
                          call->n_inputs < least ? least : most);
    for (int i = 0; i < call->n_inputs; i++)
        if (!call->inputs[i])
            return layer_fail(layer, ED_INVALID_ARGUMENT, "input %lld is NULL", text_nth(i));
    return true;
}

static bool make_room(ed_layer_call *call)
{
    if (!call->outputs) {
        call->outputs = call->some_;
        call->output_masks = call->some_ + 1;
        call->capacity_ = 1;
    }
    if (call->n_outputs < call->capacity_) return true;
    const size_t n = (size_t)call->n_outputs, capacity = 4 * n;
    ed_tensor **grown = memory_alloc(2 * capacity * sizeof *grown);
    if (!grown) return false;
    memcpy(grown, call->outputs, n * sizeof *grown);
    memcpy(grown + capacity, call->output_masks, n * sizeof *grown);
    layer_call_end(call);
    call->outputs = grown;
    call->output_masks = grown + capacity;
    call->capacity_ = (int)capacity;
    return true;
}

bool ed_layer_return(ed_layer_call *call, ed_tensor *y)
{
    if (!call) return ed_fail(ED_INVALID_ARGUMENT, "layer_return: call is NULL");
    if (!y || !make_room(call)) return false;
    call->outputs[call->n_outputs] = y;
    call->output_masks[call->n_outputs++] = NULL;
    return true;
}

bool ed_layer_return_mask(ed_layer_call *call, int output, ed_tensor *mask)
{
    if (!call || !mask)
        return ed_fail(ED_INVALID_ARGUMENT, "layer_return_mask: %s is NULL",
                       call ? "mask" : "call");
    if (output < 0 || output >= call->n_outputs)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "layer_return_mask: output %d is out of bounds: there are %d", output,
                       call->n_outputs);
    call->output_masks[output] = mask;
    return true;
}

void layer_call_end(ed_layer_call *call)
{
    if (call->outputs && call->outputs != call->some_) memory_free(call->outputs);
    call->outputs = NULL;
}

static bool build_and_forward(ed_layer *layer, ed_layer_call *call)
{
    if (!check_inputs(layer, call)) return false;
    if (!layer->built && !build(layer, call)) return false;
    if (!SCOPE_GUARDED(layer->class->forward(layer, call))) return false;
    if (!call->n_outputs)
        return layer_fail(layer, ED_FAILED_PRECONDITION, "forward returned no output");
    if (layer->class->passes_masks && !call->output_masks[0])
        call->output_masks[0] = call->masks[0];
    return true;
}

bool layer_call(ed_layer *layer, ed_layer_call *call)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "forward: layer is NULL");
    ED_SCOPE;
    const error_before before = error_begin();
    if (!build_and_forward(layer, call) || error_since(before)) {
        blame(layer, before);
        return false;
    }
    if (!layer->output_dtype) note_output(layer, call->outputs[0]);
    for (int i = 0; i < call->n_outputs; i++) {
        ed_keep(call->outputs[i]);
        if (call->output_masks[i]) ed_keep(call->output_masks[i]);
    }
    return true;
}

/* ---- Forward, as users call it --------------------------------------------------------------- */

static bool give_masks(const ed_layer_call *call, const ed_forward_options *options)
{
    if (!options->output_masks) return true;
    ed_list *masks = list_new(call->n_outputs);
    for (int i = 0; masks && i < call->n_outputs; i++)
        masks->items[i] = ed_retain(call->output_masks[i]);
    return (*options->output_masks = scope_give(masks)) != NULL;
}

static bool one_output(const ed_layer *layer, const ed_layer_call *call)
{
    if (call->n_outputs == 1) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the layer has %d outputs, expected 1; ed_forward of a list returns all",
                      call->n_outputs);
}

static bool check_masks(const ed_layer *layer, const ed_list *masks, int64_t n_inputs)
{
    if (!layer || !masks || masks->size == n_inputs) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "got %lld masks for %lld inputs; one for each is expected",
                      (long long)masks->size, (long long)n_inputs);
}

ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    const ed_forward_options none = {0};
    if (!options) options = &none;
    if (!check_masks(layer, options->masks, 1)) return NULL;
    ed_tensor *mask = options->masks ? options->masks->items[0] : options->mask;
    ed_layer_call call = {
        .n_inputs = 1, .inputs = &x, .masks = &mask, .training = options->training};
    ed_tensor *y = NULL;
    if (layer_call(layer, &call) && one_output(layer, &call) && give_masks(&call, options))
        y = call.outputs[0];
    layer_call_end(&call);
    return y;
}

/* The masks of n inputs: the list's, or the one mask for the first; in `some` or allocated. */
static ed_tensor **gather_masks(const ed_forward_options *options, int n, ed_tensor **some, int few)
{
    ed_tensor **masks = n <= few ? some : memory_alloc((size_t)n * sizeof *masks);
    for (int i = 0; masks && i < n; i++)
        masks[i] = options->masks ? options->masks->items[i] : i ? NULL : options->mask;
    return masks;
}

static bool check_forward(const ed_layer *layer, const ed_list *inputs,
                          const ed_forward_options *options)
{
    if (!layer || !inputs)
        return ed_fail(ED_INVALID_ARGUMENT, "forward: %s is NULL", layer ? "inputs" : "layer");
    if (inputs->size > INT32_MAX)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "%lld inputs are too many",
                          (long long)inputs->size);
    return check_masks(layer, options->masks, inputs->size);
}

/* Calls the layer with the inputs of a list; the caller then calls layer_call_end. */
static bool call_with_list(ed_layer *layer, const ed_list *inputs,
                           const ed_forward_options *options, ed_layer_call *call)
{
    if (!check_forward(layer, inputs, options)) return false;
    enum { FEW = 8 };
    const int n = (int)inputs->size;
    ed_tensor *some[FEW], **masks = gather_masks(options, n, some, FEW);
    if (!masks) return false;
    *call = (ed_layer_call){
        .n_inputs = n, .inputs = inputs->items, .masks = masks, .training = options->training};
    const bool ok = layer_call(layer, call) && give_masks(call, options);
    if (masks != some) memory_free(masks);
    return ok;
}

ed_list *ed_forward_list(ed_layer *layer, ed_list *inputs, const ed_forward_options *options)
{
    const ed_forward_options none = {0};
    ed_layer_call call = {0};
    ed_list *outputs = NULL;
    if (call_with_list(layer, inputs, options ? options : &none, &call))
        outputs = ed_list_make(call.outputs, call.n_outputs);
    layer_call_end(&call);
    return outputs;
}

ed_tensor *ed_forward_one_with(ed_layer *layer, ed_list *inputs, const ed_forward_options *options)
{
    const ed_forward_options none = {0};
    ed_layer_call call = {0};
    ed_tensor *y = NULL;
    if (call_with_list(layer, inputs, options ? options : &none, &call) && one_output(layer, &call))
        y = call.outputs[0];
    layer_call_end(&call);
    return y;
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
