#include "nn/layer.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Layers are a tree: a layer holds its children and its variables; a child knows its parent without
 * holding it, and forgets it when the parent goes. Names are final once a layer has its place in
 * the tree, and a variable's name is the path from the root at the moment it is made, which is the
 * first forward.
 *
 * Lists of variables are cached where they were asked for; whoever adds a weight or a child drops
 * the caches on the way to the root.
 */

/* ---- Making ---------------------------------------------------------------------------------- */

static void drop_lists(ed_layer *layer)
{
    for (; layer; layer = layer->parent)
        for (int i = 0; i < LAYER_LISTS; i++) {
            ed_release(layer->lists[i]);
            layer->lists[i] = NULL;
        }
}

/* Takes back the children and weights from number n_children, n_weights on. */
static void truncate_to(ed_layer *layer, int64_t n_children, int64_t n_weights)
{
    drop_lists(layer);
    while (layer->n_children > n_children) {
        ed_layer *child = layer->children[--layer->n_children];
        child->parent = NULL;
        ed_release(child);
    }
    while (layer->n_weights > n_weights) ed_release(layer->weights[--layer->n_weights]);
}

static void destroy(void *object)
{
    ed_layer *layer = object;
    if (layer->class->destroy) layer->class->destroy(layer);
    layer->parent = NULL;
    truncate_to(layer, 0, 0);
    graph_wait_end(&layer->wait);
    memory_free(layer->children);
    memory_free(layer->weights);
    memory_free(layer->name);
    memory_free(layer);
}

static const object_class layer_class = {
    .name = "layer", .destroy = destroy, .track = layer_track, .wait = layer_wait};

static bool good_name(const char *who, const char *name)
{
    if (*name && !strchr(name, '/')) return true;
    ed_fail(ED_INVALID_ARGUMENT, "%s: '%s' is no name: empty, or with a slash in it", who, name);
    return false;
}

ed_layer *ed_layer_new(const ed_layer_class *class, const char *name)
{
    if (!class || !class->name || !class->forward)
        return ed_fail(ED_INVALID_ARGUMENT, "layer_new: a class with name and forward is needed");
    if (!good_name("layer_new", name ? name : class->name)) return NULL;
    size_t bytes;
    if (__builtin_add_overflow(sizeof(ed_layer), class->state_size, &bytes))
        return ed_fail(ED_OUT_OF_MEMORY, "layer_new: a state of %zu bytes", class->state_size);
    char *copy = text_copy(name ? name : class->name);
    ed_layer *layer = copy ? object_new(&layer_class, bytes) : NULL;
    if (!layer) {
        memory_free(copy);
        return NULL;
    }
    layer->class = class;
    layer->name = copy;
    layer->named = name != NULL;
    return scope_give(layer);
}

void *ed_layer_state(ed_layer *layer)
{
    return layer ? layer->state : ed_fail(ED_INVALID_ARGUMENT, "layer_state: NULL given");
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
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    char *path = layer_path(layer, NULL);
    ed_fail(code, "%s: %s", path ? path : layer->name, message);
    memory_free(path);
    return NULL;
}

const char *ed_layer_name(const ed_layer *layer)
{
    return layer ? layer->name : ed_fail(ED_INVALID_ARGUMENT, "layer_name: NULL given");
}

static ed_layer *child_named(const ed_layer *layer, const char *name)
{
    for (int64_t i = 0; i < layer->n_children; i++)
        if (!strcmp(layer->children[i]->name, name)) return layer->children[i];
    return NULL;
}

/* 0 for "dense", 12 for "dense_12"; -1 for what free_name does not make. */
static int64_t number_of(const char *name, const char *kind, size_t size)
{
    if (strncmp(name, kind, size) != 0) return -1;
    if (!name[size]) return 0;
    if (name[size] != '_' || name[size + 1] < '1' || name[size + 1] > '9') return -1;
    char *end;
    const long long number = strtoll(name + size + 1, &end, 10);
    return *end ? -1 : number;
}

/* The kind's name, or with the first number behind it that is free: dense, dense_1, dense_2. NULL
 * without memory. */
static char *free_name(const ed_layer *parent, const char *kind)
{
    const size_t size = strlen(kind), room = size + 24;
    const int64_t n = parent->n_children;
    char *name = memory_alloc(room);
    bool *taken = memory_zalloc((size_t)n + 1);
    int64_t number = 0;
    for (int64_t i = 0; name && taken && i < n; i++) {
        const int64_t its = number_of(parent->children[i]->name, kind, size);
        if (its >= 0 && its <= n) taken[its] = true;
    }
    while (taken && number < n && taken[number]) number++;
    if (name) snprintf(name, room, number ? "%s_%lld" : "%s", kind, (long long)number);
    if (!taken) memory_free(name);
    memory_free(taken);
    return taken ? name : NULL;
}

/* ---- Children and weights -------------------------------------------------------------------- */

/* Trees are walked by recursion: the stack holds so many levels, and no network has them. */
enum { MOST_LEVELS = 1000 };

static bool check_child(const ed_layer *layer, const ed_layer *child)
{
    if (child->parent)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the layer %s belongs to %s already",
                          child->name, child->parent->name);
    int levels = child->height + 1;
    for (const ed_layer *above = layer; above; above = above->parent, levels++)
        if (above == child)
            return layer_fail(layer, ED_INVALID_ARGUMENT, "the layer %s can't be its own child",
                              child->name);
    if (levels > MOST_LEVELS)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "layers within layers, more than %d deep",
                          MOST_LEVELS);
    if (child->named && child_named(layer, child->name))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "there are two layers of the name %s",
                          child->name);
    return true;
}

static bool room(void **array, int64_t count, int64_t *capacity)
{
    if (count < *capacity) return true;
    int64_t more = *capacity ? 2 * *capacity : 4;
    void *grown =
        memory_grow(*array, (size_t)*capacity * sizeof(void *), (size_t)more * sizeof(void *));
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

ed_layer *ed_layer_add_child(ed_layer *layer, ed_layer *child)
{
    if (!layer || !child) return ed_fail(ED_INVALID_ARGUMENT, "layer_add: NULL given");
    if (!check_child(layer, child)) return NULL;
    if (!room((void **)&layer->children, layer->n_children, &layer->child_capacity)) return NULL;
    if (!child->named) {
        char *name = free_name(layer, child->class->name);
        if (!name) return NULL;
        memory_free(child->name);
        child->name = name;
    }
    drop_lists(layer);
    layer->children[layer->n_children++] = ed_retain(child);
    child->parent = layer;
    int height = child->height + 1;
    for (ed_layer *above = layer; above && above->height < height; above = above->parent)
        above->height = height++;
    layer_made_child(layer, child);
    return child;
}

/* What stands behind the path. */
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
            ok = ed_fail(ED_INVALID_ARGUMENT, "%s: there is a weight of that name", path);
    memory_free(path);
    return ok;
}

static ed_tensor *initial_value(const ed_layer *layer, const char *name, ed_ints shape,
                                const ed_weight_options *options, int *place)
{
    ed_dtype dtype = options->dtype ? options->dtype : ED_FLOAT32;
    ed_tensor *initial;
    if (!layer_waiting(layer, name, dtype, shape, &initial, place)) return NULL;
    return initial ? scope_give(initial) : ed_initialize(options->initializer, shape, dtype);
}

/* Initial values and the variable on them belong to a scope of their own; only the variable leaves
 * it. A value that waits for the weight is taken as it is: nothing is drawn. */
static ed_tensor *make_weight(ed_layer *layer, const char *name, ed_ints shape,
                              const ed_weight_options *options)
{
    ED_SCOPE;
    int place = -1;
    ed_tensor *initial = initial_value(layer, name, shape, options, &place);
    char *path = layer_path(layer, name);
    ed_tensor *v =
        initial && path
            ? ed_variable_with(
                  initial,
                  &(ed_variable_options){.name = path, .not_trainable = options->not_trainable})
            : NULL;
    memory_free(path);
    if (v) layer_made(layer, place, v);
    return ed_retain(v);
}

ed_tensor *ed_layer_add_weight_with(ed_layer *layer, const char *name, ed_ints shape,
                                    const ed_weight_options *options)
{
    if (!layer || !name) return ed_fail(ED_INVALID_ARGUMENT, "layer_weight: NULL given");
    if (!check_weight(layer, name)) return NULL;
    if (!room((void **)&layer->weights, layer->n_weights, &layer->weight_capacity)) return NULL;
    ed_tensor *v = make_weight(layer, name, shape, options ? options : &(ed_weight_options){0});
    if (!v) return NULL;
    drop_lists(layer);
    return layer->weights[layer->n_weights++] = v;
}

/* Takes over the path. */
static void rename_variable(ed_tensor *v, char *path)
{
    memory_free(((variable *)v)->name);
    ((variable *)v)->name = path;
}

/* The value that waits for the variable, which is about to be a weight, if there is one. */
static bool take_waiting(ed_layer *layer, const char *name, ed_tensor *v)
{
    ED_SCOPE;
    ed_tensor *initial;
    int place;
    if (!layer_waiting(layer, name, v->dtype, ed_shape(v), &initial, &place)) return false;
    if (initial && !ed_assign(v, scope_give(initial))) return false;
    layer_made(layer, place, v);
    return true;
}

ed_tensor *ed_layer_adopt_weight(ed_layer *layer, const char *name, ed_tensor *v)
{
    if (!layer || !name || !v) return ed_fail(ED_INVALID_ARGUMENT, "layer_adopt: NULL given");
    if (!ed_is_variable(v))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "what is to be %s is no variable", name);
    if (!check_weight(layer, name)) return NULL;
    if (!room((void **)&layer->weights, layer->n_weights, &layer->weight_capacity)) return NULL;
    char *path = layer_path(layer, name);
    if (!path) return NULL;
    const bool placed = strchr(ed_variable_name(v), '/') && strcmp(ed_variable_name(v), path) != 0;
    if (placed)
        layer_fail(layer, ED_INVALID_ARGUMENT, "the variable %s is another layer's weight",
                   ed_variable_name(v));
    if (placed || !take_waiting(layer, name, v)) return memory_free(path), NULL;
    rename_variable(v, path);
    drop_lists(layer);
    return layer->weights[layer->n_weights++] = ed_retain(v);
}

int64_t ed_layer_child_count(const ed_layer *layer)
{
    return layer ? layer->n_children : (ed_fail(ED_INVALID_ARGUMENT, "layer_count: NULL given"), 0);
}

ed_layer *ed_layer_child(const ed_layer *layer, int64_t i)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "layer_at: NULL given");
    int64_t at = i < 0 ? i + layer->n_children : i;
    if (at < 0 || at >= layer->n_children)
        return layer_fail(layer, ED_OUT_OF_RANGE, "child %lld of %lld is asked for", text_nth(i),
                          (long long)layer->n_children);
    return layer->children[at];
}

ed_layer *ed_layer_find_child(const ed_layer *layer, const char *name)
{
    if (!layer || !name) return ed_fail(ED_INVALID_ARGUMENT, "layer_find: NULL given");
    ed_layer *child = child_named(layer, name);
    return child ? child
                 : layer_fail(layer, ED_NOT_FOUND, "there is no child of the name %s", name);
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

static const ed_list *all_variables(ed_layer *layer)
{
    if (layer->lists[LAYER_ALL]) return layer->lists[LAYER_ALL];
    ed_list *list = list_new(count_weights(layer));
    if (!list) return NULL;
    int64_t n = 0;
    gather(layer, list->items, &n);
    return layer->lists[LAYER_ALL] = list;
}

/* Whether `list` still is those of `all` whose flag is `trainable`: flags may change behind our
 * back. */
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
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "%s: NULL given", who);
    const ed_list *all = all_variables(layer);
    if (!all) return NULL;
    if (!all->size && !layer->built)
        return layer_fail(
            layer, ED_FAILED_PRECONDITION,
            "the layer has no variables before its first ed_forward, which makes them");
    ed_list **cached = &layer->lists[kind];
    if (kind != LAYER_ALL && !(*cached && is_current(*cached, all, kind == LAYER_TRAINABLE))) {
        ed_list *list = select_variables(all, kind == LAYER_TRAINABLE);
        if (!list) return NULL;
        ed_release(*cached);
        *cached = list;
    }
    return scope_give(ed_retain(*cached));
}

ed_list *ed_layer_variables(ed_layer *layer)
{
    return variables_of(layer, LAYER_ALL, "variables");
}

ed_list *ed_layer_trainable_variables(ed_layer *layer)
{
    return variables_of(layer, LAYER_TRAINABLE, "trainable");
}

ed_list *ed_layer_non_trainable_variables(ed_layer *layer)
{
    return variables_of(layer, LAYER_NOT_TRAINABLE, "not_trainable");
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Weights that were there before the layer had its place learn their path. */
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
 * All that a failed build added is taken back, so that the next forward builds from the start. A
 * build that goes on after an error and returns true has failed all the same.
 */
static bool build(ed_layer *layer, ed_tensor *x)
{
    int64_t n_children = layer->n_children, n_weights = layer->n_weights;
    bool failed_before = ed_failed();
    bool ok = rename_weights(layer) && (!layer->class->build || layer->class->build(layer, x));
    if (ok && (failed_before || !ed_failed())) return layer->built = true;
    layer_unmade(layer, n_children, n_weights);
    truncate_to(layer, n_children, n_weights);
    if (!ed_failed()) layer_fail(layer, ED_FAILED_PRECONDITION, "building it failed");
    return false;
}

static void note_output(ed_layer *layer, const ed_tensor *y)
{
    layer->output_dtype = y->dtype;
    layer->output_rank = y->rank;
    memcpy(layer->output_shape, y->shape, sizeof y->shape);
}

/*
 * An error from inside, which knows ops and shapes, learns here where it happened. The innermost
 * layer says so; messages that begin with the path or say it already stay as they are.
 */
static ed_tensor *blame(const ed_layer *layer)
{
    if (!ed_failed()) return layer_fail(layer, ED_FAILED_PRECONDITION, "its forward returned NULL");
    char *message = thread_self()->message, *path = layer_path(layer, NULL);
    size_t used = strlen(message);
    if (path && strncmp(message, path, strlen(path)) != 0 && !strstr(message, " (in the layer "))
        snprintf(message + used, sizeof thread_self()->message - used, " (in the layer %s)", path);
    memory_free(path);
    return NULL;
}

ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "forward: the layer is NULL");
    if (!x) return layer_fail(layer, ED_INVALID_ARGUMENT, "the input is NULL");
    ED_SCOPE;
    bool failed_before = ed_failed();
    ed_tensor *y = NULL;
    if (layer->built || build(layer, x))
        y = layer->class->forward(layer, x, options ? options : &(ed_forward_options){0});
    if (!y) return failed_before ? NULL : blame(layer);
    if (!layer->output_dtype) note_output(layer, y);
    return ed_keep(y);
}

/* ---- For the library's own layers ------------------------------------------------------------ */

bool layer_accepts(const ed_layer *layer, const ed_tensor *x, int rank, bool more)
{
    if (x->dtype != ED_FLOAT32 && x->dtype != ED_FLOAT64)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the input is %s; it takes float32 and float64 (ed_cast converts)",
                          text_of_tensor(x).s);
    if (x->rank == rank || (more && x->rank > rank)) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT, "the input is %s; it takes %s%d dimensions",
                      text_of_tensor(x).s, more ? "at least " : "", rank);
}

bool layer_same_last(const ed_layer *layer, const ed_tensor *x, int64_t extent)
{
    if (x->shape[x->rank - 1] == extent) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the input is %s; the layer was built for a last extent of %lld",
                      text_of_tensor(x).s, (long long)extent);
}

const char *nn_padding(const char *who, const char *padding)
{
    if (!padding || !strcmp(padding, "VALID")) return "VALID";
    if (!strcmp(padding, "SAME")) return "SAME";
    return ed_fail(ED_INVALID_ARGUMENT, "%s: padding is '%s'; it is \"VALID\" or \"SAME\"", who,
                   padding);
}
