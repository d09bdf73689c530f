#include "train/checkpoint.h"
#include "io/file.h"
#include "io/json.h"
#include "train/object_graph.h"
#include "train/restore.h"
#include "train/state_file.h"
#include <stdlib.h>
#include <string.h>

/*
 * Saving. A snapshot is a list of keys and tensors: for a variable a view of its present value, so
 * that the next change writes to a new buffer; for a cell a new small tensor. So a snapshot copies
 * no variable, and can be written while training continues. It includes the values that wait after
 * a restore.
 */

/* ---- Checkpoints ----------------------------------------------------------------------------- */

#define SAVE_COUNTER "save_counter"
#define ROOT         "root"
#define ATTRIBUTES   ".ATTRIBUTES"

static void checkpoint_destroy(void *object)
{
    ed_checkpoint *c = object;
    restore_forget(c);
    for (int i = 0; i < c->count; i++) {
        memory_free(c->names[i]);
        ed_release(c->objects[i]);
    }
    memory_free(c->names);
    memory_free(c->objects);
    memory_free(c);
}

static const object_class checkpoint_class = {.name = "checkpoint", .destroy = checkpoint_destroy};

static bool check_pairs(const void *const *pairs, int64_t count)
{
    if (count > 1 << 28) return ed_fail(ED_OUT_OF_RANGE, "checkpoint: more than 2^27 objects");
    if (count && !pairs)
        return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: names_and_objects is NULL");
    if (count < 0 || count % 2)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "checkpoint: arguments must be pairs of name and object, got %lld values",
                       (long long)count);
    for (int64_t i = 0; i < count; i += 2) {
        const char *name = pairs[i];
        if (!name || !*name)
            return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: the name of object %lld is %s",
                           (long long)i / 2, name ? "empty" : "NULL");
        if (!pairs[i + 1])
            return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: the object '%s' is NULL", name);
        if (!strcmp(name, SAVE_COUNTER))
            return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: the name '%s' is reserved", name);
    }
    return true;
}

/* What is written must be readable by TensorFlow, which these names are not: its own files that
 * have them can be restored all the same. */
static bool check_names(const graph *g)
{
    for (int i = 0; i < g->n_edges; i++) {
        const char *name = g->edges[i].name;
        if (!(g->edges[i].use & GRAPH_WRITE)) continue;
        if (!strcmp(name, ROOT) && !g->edges[i].from)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "checkpoint: an object named 'root' can be restored, but not saved: in "
                           "TensorFlow the name stands for the checkpoint itself");
        if (!strcmp(name, ATTRIBUTES))
            return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: the name '%s' is reserved", name);
        if (!io_is_utf8(name, strlen(name)))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "checkpoint: the name '%s' of an object is not valid UTF-8", name);
    }
    return true;
}

/* The child of the root that a node was first reached from; nodes are in breadth-first order. */
static int *find_tops(const graph *g)
{
    int *tops = memory_alloc((size_t)g->n_nodes * sizeof *tops);
    for (int i = 0; tops && i < g->n_nodes; i++) tops[i] = -1;
    for (int i = 0; tops && i < g->n_nodes; i++)
        for (int e = g->nodes[i].first; e >= 0; e = g->edges[e].next) {
            const int to = g->edges[e].to;
            if (to && tops[to] < 0) tops[to] = i ? tops[i] : to;
        }
    return tops;
}

/* A model that was never called, and has nothing that waits for it, would be saved without weights,
 * which is seldom what is meant. */
static bool check_built(const graph *g)
{
    int *tops = find_tops(g);
    bool *is_empty = tops ? memory_zalloc((size_t)g->n_nodes) : NULL;
    for (int i = 1; is_empty && i < g->n_nodes; i++)
        if (tops[i] > 0 && g->nodes[i].open && g->nodes[i].first < 0) is_empty[tops[i]] = true;
    for (int i = 1; is_empty && i < g->n_nodes; i++)
        if (tops[i] > 0 && graph_is_value(&g->nodes[i])) is_empty[tops[i]] = false;
    bool ok = is_empty;
    for (int e = g->nodes[0].first; ok && e >= 0; e = g->edges[e].next) {
        ok = !is_empty[g->edges[e].to];
        if (!ok)
            ed_fail(ED_FAILED_PRECONDITION,
                    "checkpoint: %s has no variables to save before its first call, which makes "
                    "them",
                    g->edges[e].name);
    }
    memory_free(is_empty);
    memory_free(tops);
    return ok;
}

typedef const void *pair[2]; /* name and object */

static int by_object_name(const void *a, const void *b)
{
    return strcmp((*(const pair *)a)[0], (*(const pair *)b)[0]);
}

/* In the order of names, as in TensorFlow. */
static bool fill_objects(ed_checkpoint *c, pair *pairs, size_t n)
{
    qsort(pairs, n, sizeof *pairs, by_object_name);
    for (size_t i = 0; i < n; i++) {
        if (!(c->names[i] = text_copy(pairs[i][0]))) return false;
        c->objects[i] = ed_retain((void *)pairs[i][1]);
        c->count++;
    }
    ED_SCOPE;
    char *name = text_copy(SAVE_COUNTER);
    ed_trackable *counter = name ? graph_counter(&c->save_counter, &graph_count_state) : NULL;
    if (!counter) {
        memory_free(name);
        return false;
    }
    c->names[c->count] = name;
    c->objects[c->count++] = ed_retain(counter);
    return true;
}

static bool fill_sorted(ed_checkpoint *c, const void *const *pairs, size_t n)
{
    c->names = memory_alloc((n + 1) * sizeof *c->names);
    c->objects = memory_alloc((n + 1) * sizeof *c->objects);
    pair *sorted = c->names && c->objects ? memory_alloc((n + 1) * sizeof *sorted) : NULL;
    if (!sorted) return false;
    if (n) memcpy(sorted, pairs, n * sizeof *sorted);
    bool ok = fill_objects(c, sorted, n);
    memory_free(sorted);
    return ok;
}

/* Creates the graph once, to report objects that can't be saved. */
ed_checkpoint *ed_checkpoint_of(const void *const *pairs, int64_t count)
{
    if (!check_pairs(pairs, count)) return NULL;
    ed_checkpoint *c = object_new(&checkpoint_class, sizeof *c);
    if (!c) return NULL;
    graph g;
    if (!fill_sorted(c, pairs, (size_t)count / 2) || !checkpoint_graph(c, true, &g)) {
        ed_release(c);
        return NULL;
    }
    graph_free(&g);
    return scope_give(c);
}

static bool make_graph(const ed_checkpoint *c, bool counted, bool weights_only, graph *g)
{
    return graph_make(g, (const char *const *)c->names, c->objects, c->count - !counted,
                      weights_only);
}

bool checkpoint_graph(const ed_checkpoint *c, bool counted, graph *g)
{
    return make_graph(c, counted, false, g);
}

int64_t ed_checkpoint_save_counter(const ed_checkpoint *checkpoint)
{
    if (NULL_GIVEN("checkpoint_save_counter", checkpoint)) return 0;
    return checkpoint->save_counter;
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

struct snapshot {
    io_buffer graph;
    int count;
    struct {
        char *key;
        ed_tensor *value;
    } items[];
};

void snapshot_free(snapshot *s)
{
    if (!s) return;
    for (int i = 0; i < s->count; i++) {
        memory_free(s->items[i].key);
        ed_release(s->items[i].value);
    }
    io_buffer_free(&s->graph);
    memory_free(s);
}

static ed_tensor *value_of(const graph_node *node)
{
    if (node->kind == GRAPH_VARIABLE) {
        const ed_tensor *v = tensor_read(node->object);
        return tensor_view(v, v->rank, v->shape, v->strides, 0);
    }
    const ed_state *cell = &node->state;
    ed_tensor *value = tensor_new(cell->dtype, cell->count >= 0, &cell->count);
    if (value) cell->get(node->object, value->data);
    return value;
}

static bool take_values(snapshot *s, const graph *g, char *const *paths, const int *numbers)
{
    for (int i = 0; i < g->n_nodes; i++) {
        if (numbers[i] < 0 || !paths[i] || !graph_is_value(&g->nodes[i])) continue;
        s->items[s->count].key = io_text("%s" VALUE_SUFFIX, paths[i]);
        s->items[s->count].value = value_of(&g->nodes[i]);
        s->count++;
        if (!s->items[s->count - 1].key || !s->items[s->count - 1].value) return false;
    }
    return objects_write(g, paths, &s->graph);
}

snapshot *snapshot_take(const ed_checkpoint *checkpoint, bool counted, bool weights_only)
{
    graph g;
    if (!make_graph(checkpoint, counted, weights_only, &g)) return NULL;
    int count;
    char **paths = check_names(&g) && graft_waiting(&g) ? graph_paths(&g) : NULL;
    int *numbers = paths && check_built(&g) ? objects_numbers(&g, &count) : NULL;
    snapshot *s = numbers ? memory_zalloc(sizeof *s + (size_t)g.n_nodes * sizeof *s->items) : NULL;
    if (s && !take_values(s, &g, paths, numbers)) {
        snapshot_free(s);
        s = NULL;
    }
    memory_free(numbers);
    graph_free_paths(&g, paths);
    graph_free(&g);
    return s;
}

bool snapshot_write(const snapshot *s, const char *who, const char *path)
{
    bundle_writer *w = bundle_create(who, path);
    bool ok = w;
    for (int i = 0; ok && i < s->count; i++) ok = bundle_add(w, s->items[i].key, s->items[i].value);
    const io_span message = {s->graph.data, s->graph.size};
    ok = ok && bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &message, 1);
    if (ok) return bundle_finish(w);
    bundle_discard(w);
    return false;
}

/* ---- Saving ---------------------------------------------------------------------------------- */

const char *train_text(const char *s)
{
    return text_give(text_copy(s));
}

static bool write_now(ed_checkpoint *c, const char *who, const char *path, bool counted)
{
    snapshot *s = snapshot_take(c, counted, false);
    bool ok = s && snapshot_write(s, who, path);
    snapshot_free(s);
    return ok;
}

const char *ed_checkpoint_write(ed_checkpoint *checkpoint, const char *path)
{
    if (NULL_GIVEN("checkpoint_write", checkpoint, path)) return NULL;
    const char *kept = train_text(path);
    return kept && write_now(checkpoint, "checkpoint_write", path, false) ? kept : NULL;
}

/* The folder's `checkpoint` file names the path as the only one. */
static bool name_as_newest(const char *path)
{
    state s = {0};
    char *folder = io_folder_of(path), *relative = folder ? state_relative(folder, path) : NULL;
    bool ok = relative && (s.latest = text_copy(relative)) && state_add(&s, relative, 0) &&
              state_write("checkpoint_save", folder, &s);
    state_free(&s);
    memory_free(relative);
    memory_free(folder);
    return ok;
}

const char *ed_checkpoint_save(ed_checkpoint *checkpoint, const char *prefix)
{
    if (NULL_GIVEN("checkpoint_save", checkpoint, prefix)) return NULL;
    if (!*io_name_of(prefix))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "checkpoint_save: prefix must end in a file name, got '%s'", prefix);
    if (checkpoint->save_counter == INT64_MAX)
        return ed_fail(ED_OUT_OF_RANGE, "checkpoint_save: the save counter would overflow");
    checkpoint->save_counter++;
    char *path = io_text("%s-%lld", prefix, (long long)checkpoint->save_counter);
    const char *kept = path ? train_text(path) : NULL;
    if (!kept || !write_now(checkpoint, "checkpoint_save", path, true) || !name_as_newest(path)) {
        checkpoint->save_counter--;
        kept = NULL;
    }
    memory_free(path);
    return kept;
}
