#include "tensor/graph.h"
#include <stdio.h>
#include <string.h>

/*
 * Nodes are visited in the order in which they were met, which is breadth first. All memory of the
 * graph is its own but for the objects, which it retains: they stay while somebody walks it.
 */

/* ---- Objects of a program's own -------------------------------------------------------------- */

struct ed_trackable {
    ed_object object;
    const ed_trackable_class *kind;
    void *self;
};

static void trackable_track(void *object, ed_tracker *t)
{
    ed_trackable *trackable = object;
    trackable->kind->track(trackable->self, t);
}

static const object_class trackable_class = {
    .name = "trackable", .destroy = memory_free, .track = trackable_track};

ed_trackable *ed_trackable_new(const ed_trackable_class *kind, void *self)
{
    if (!kind || !kind->name || !kind->track)
        return ed_fail(ED_INVALID_ARGUMENT, "trackable_new: a class with name and track is needed");
    ed_trackable *trackable = object_new(&trackable_class, sizeof *trackable);
    if (!trackable) return NULL;
    trackable->kind = kind;
    trackable->self = self;
    return scope_give(trackable);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void get_number(const void *self, void *elements)
{
    memcpy(elements, self, 8);
}

static void set_number(void *self, const void *elements)
{
    memcpy(self, elements, 8);
}

static const ed_state int64_state = {ED_INT64, -1, get_number, NULL, set_number};
static const ed_state float64_state = {ED_FLOAT64, -1, get_number, NULL, set_number};

/* A counter is a cell itself, not an object that has one: its value lies under its own name. */
static void counter_track(void *object, ed_tracker *t)
{
    graph_node *node = &t->graph->nodes[t->self];
    node->kind = GRAPH_CELL;
    node->object = ((ed_trackable *)object)->self;
    node->state = int64_state;
    ed_release(object);
}

static const object_class counter_class = {
    .name = "counter", .destroy = memory_free, .track = counter_track};

ed_trackable *ed_counter(int64_t *value)
{
    if (!value) return ed_fail(ED_INVALID_ARGUMENT, "counter: NULL given");
    ed_trackable *trackable = object_new(&counter_class, sizeof *trackable);
    if (!trackable) return NULL;
    trackable->self = value;
    return scope_give(trackable);
}

/* ---- Growing --------------------------------------------------------------------------------- */

static bool room(void **array, size_t size, int count, int *capacity)
{
    if (count < *capacity) return true;
    if (count >= 1 << 28)
        return ed_fail(ED_OUT_OF_RANGE, "checkpoint: more than 2^28 names"), false;
    int more = *capacity ? 2 * *capacity : 16;
    void *grown = memory_grow(*array, (size_t)*capacity * size, (size_t)more * size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

static int fail(ed_tracker *t)
{
    t->failed = true;
    return -1;
}

static int new_node(ed_tracker *t, graph_kind kind)
{
    graph *g = t->graph;
    if (t->failed || !room((void **)&g->nodes, sizeof *g->nodes, g->n_nodes, &g->node_capacity))
        return fail(t);
    g->nodes[g->n_nodes] = (graph_node){.kind = kind, .first = -1, .last = -1};
    return g->n_nodes++;
}

/* ---- Nodes by object ------------------------------------------------------------------------- */

static unsigned hash(const void *object)
{
    return (unsigned)(((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

/* The place in the table where the object is or belongs. The object of a counter is gone from its
 * node, so places hold the address that was looked up. */
static int *place(const graph *g, const void *object, const void **keys)
{
    unsigned mask = (unsigned)g->table_size - 1, i = hash(object) & mask;
    while (g->table[i] >= 0 && keys[i] != object) i = (i + 1) & mask;
    return &g->table[i];
}

/* Keys stand behind the numbers in one block. */
static const void **keys_of(const graph *g)
{
    return (const void **)(g->table + g->table_size);
}

static bool enlarge(graph *g)
{
    graph old = *g;
    int size = old.table_size ? 2 * old.table_size : 64;
    int *table = memory_alloc((size_t)size * (sizeof *table + sizeof(void *)));
    if (!table) return false;
    for (int i = 0; i < size; i++) table[i] = -1;
    g->table = table;
    g->table_size = size;
    const void **keys = keys_of(g);
    for (int i = 0; i < old.table_size; i++)
        if (old.table[i] >= 0) {
            int *to = place(g, keys_of(&old)[i], keys);
            *to = old.table[i];
            keys[to - g->table] = keys_of(&old)[i];
        }
    memory_free(old.table);
    return true;
}

int graph_find(const graph *g, const void *object)
{
    return g->table_size ? *place(g, object, keys_of(g)) : -1;
}

static const object_class *class_of(const void *object)
{
    return ((const ed_object *)object)->class;
}

int graph_object(ed_tracker *t, void *object)
{
    graph *g = t->graph;
    if (t->failed) return -1;
    if (!object) return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: a child is NULL"), fail(t);
    if (!class_of(object)->track) {
        ed_fail(ED_INVALID_ARGUMENT,
                "checkpoint: a %s has nothing that could be restored; variables, layers, "
                "optimizers, metrics, generators, datasets and trackables have",
                class_of(object)->name);
        return fail(t);
    }
    if (2 * g->n_nodes >= g->table_size && !enlarge(g)) return fail(t);
    int *at = place(g, object, keys_of(g));
    if (*at >= 0) return *at;
    int node = new_node(t, GRAPH_OBJECT);
    if (node < 0) return -1;
    g->nodes[node].object = ed_retain(object);
    keys_of(g)[at - g->table] = object;
    return *at = node;
}

int graph_container(ed_tracker *t)
{
    return new_node(t, GRAPH_CONTAINER);
}

int graph_cell(ed_tracker *t, void *self, const ed_state *state)
{
    int node = new_node(t, GRAPH_CELL);
    if (node < 0) return -1;
    t->graph->nodes[node].object = self;
    t->graph->nodes[node].state = *state;
    return node;
}

int graph_int64(ed_tracker *t, int64_t *value)
{
    return graph_cell(t, value, &int64_state);
}

int graph_float64(ed_tracker *t, double *value)
{
    return graph_cell(t, value, &float64_state);
}

void graph_name(ed_tracker *t, int from, unsigned use, const char *name, int to)
{
    graph *g = t->graph;
    if (t->failed || from < 0 || to < 0) return;
    for (int e = g->nodes[from].first; e >= 0; e = g->edges[e].next)
        if (g->edges[e].use & use & GRAPH_WRITE && !strcmp(g->edges[e].name, name)) {
            ed_fail(ED_INVALID_ARGUMENT, "checkpoint: the name '%s' is given twice", name);
            fail(t);
            return;
        }
    char *copy = room((void **)&g->edges, sizeof *g->edges, g->n_edges, &g->edge_capacity)
                     ? text_copy(name)
                     : NULL;
    if (!copy) {
        fail(t);
        return;
    }
    graph_node *node = &g->nodes[from];
    g->edges[g->n_edges] =
        (graph_edge){.from = from, .to = to, .next = -1, .use = use, .name = copy};
    *(node->first < 0 ? &node->first : &g->edges[node->last].next) = g->n_edges;
    node->last = g->n_edges++;
}

void graph_number(ed_tracker *t, int from, unsigned use, int64_t name, int to)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)name);
    graph_name(t, from, use, digits, to);
}

void graph_slot_of(ed_tracker *t, graph_slot slot)
{
    graph *g = t->graph;
    if (t->failed) return;
    if (room((void **)&g->slots, sizeof *g->slots, g->n_slots, &g->slot_capacity))
        g->slots[g->n_slots++] = slot;
    else
        fail(t);
}

/* ---- What track functions call --------------------------------------------------------------- */

/* A name given from outside is one word to all uses. */
static bool named(ed_tracker *t, const char *name)
{
    if (t && name) return true;
    ed_fail(ED_INVALID_ARGUMENT, "track: NULL given");
    if (t) t->failed = true;
    return false;
}

void ed_track(ed_tracker *t, const char *name, void *object)
{
    if (!named(t, name)) return;
    if (!object && !t->failed) {
        ed_fail(ED_INVALID_ARGUMENT, "checkpoint: the object '%s' is NULL", name);
        t->failed = true;
    }
    graph_name(t, t->self, GRAPH_NAME, name, graph_object(t, object));
}

void ed_track_state(ed_tracker *t, const char *name, void *self, const ed_state *state)
{
    if (!named(t, name)) return;
    if (!state || !state->get || !state->set || !ed_dtype_size(state->dtype) || state->count < -1) {
        ed_fail(ED_INVALID_ARGUMENT, "track_state: dtype, count, get and set are needed");
        t->failed = true;
        return;
    }
    graph_name(t, t->self, GRAPH_NAME, name, graph_cell(t, self, state));
}

void ed_track_int64(ed_tracker *t, const char *name, int64_t *value)
{
    if (!value)
        ed_track_state(t, name, value, NULL);
    else
        ed_track_state(t, name, value, &int64_state);
}

void ed_track_float64(ed_tracker *t, const char *name, double *value)
{
    if (!value)
        ed_track_state(t, name, value, NULL);
    else
        ed_track_state(t, name, value, &float64_state);
}

/* ---- The graph ------------------------------------------------------------------------------- */

void graph_free(graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].kind == GRAPH_OBJECT || g->nodes[i].kind == GRAPH_VARIABLE)
            ed_release(g->nodes[i].object);
    for (int i = 0; i < g->n_edges; i++) memory_free(g->edges[i].name);
    memory_free(g->nodes);
    memory_free(g->edges);
    memory_free(g->slots);
    memory_free(g->table);
    *g = (graph){0};
}

bool graph_make(graph *g, const char *const *names, void *const *objects, int count)
{
    *g = (graph){0};
    ed_tracker t = {.graph = g};
    graph_container(&t);
    for (int i = 0; i < count; i++) ed_track(&t, names[i], objects[i]);
    for (t.self = 1; !t.failed && t.self < g->n_nodes; t.self++) {
        const graph_node *node = &g->nodes[t.self];
        if (node->kind == GRAPH_OBJECT) class_of(node->object)->track(node->object, &t);
    }
    if (t.failed) graph_free(g);
    return !t.failed;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

/* before + "/" + the name, escaped. */
static char *join(const char *before, const char *name)
{
    size_t length = strlen(before);
    char *path = memory_alloc(length + 2 * strlen(name) + 2), *to = path;
    if (!path) return NULL;
    memcpy(to, before, length);
    to += length;
    if (length) *to++ = '/';
    for (; *name; name++) {
        if (*name == '.') *to++ = '.';
        if (*name == '/') *to++ = '.';
        *to++ = *name == '/' ? 'S' : *name;
    }
    *to = 0;
    return path;
}

void graph_free_paths(const graph *g, char **paths)
{
    for (int i = 0; paths && i < g->n_nodes; i++) memory_free(paths[i]);
    memory_free(paths);
}

/* Breadth first, so that the shortest of several names counts, and of equally long ones the first.
 */
char **graph_paths(const graph *g)
{
    char **paths = memory_zalloc((size_t)g->n_nodes * sizeof *paths);
    int *queue = memory_alloc((size_t)g->n_nodes * sizeof *queue);
    bool ok = paths && queue && (paths[0] = text_copy(""));
    int end = 0;
    if (ok) queue[end++] = 0;
    for (int i = 0; ok && i < end; i++)
        for (int e = g->nodes[queue[i]].first; ok && e >= 0; e = g->edges[e].next) {
            const graph_edge *edge = &g->edges[e];
            if (!(edge->use & GRAPH_KEY) || paths[edge->to]) continue;
            ok = (paths[edge->to] = join(paths[queue[i]], edge->name));
            queue[end++] = edge->to;
        }
    memory_free(queue);
    if (ok) return paths;
    graph_free_paths(g, paths);
    return NULL;
}

/* ---- Values that wait ------------------------------------------------------------------------ */

void graph_wait_for(graph_wait *wait, graph_source *source, int node)
{
    ed_retain(source);
    ed_release(wait->source);
    *wait = (graph_wait){source, node};
}

void graph_wait_end(graph_wait *wait)
{
    ed_release(wait->source);
    *wait = (graph_wait){0};
}
