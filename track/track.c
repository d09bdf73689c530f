#include "track/graph.h"
#include <stdio.h>
#include <string.h>

/* Nodes are visited breadth first. The graph owns all its memory except the objects, of which it
 * holds references while it exists. */

/* ---- Custom objects -------------------------------------------------------------------------- */

struct ed_trackable {
    ed_object object;
    const ed_trackable_class *kind;
    const ed_state *state; /* of a counter */
    void *self;
};

static void trackable_track(void *object, ed_tracker *t)
{
    ed_trackable *trackable = object;
    trackable->kind->track(trackable->self, t);
}

static void trackable_destroy(void *object)
{
    ed_trackable *trackable = object;
    if (trackable->self && trackable->kind->destroy) trackable->kind->destroy(trackable->self);
    memory_free(trackable);
}

static const object_class trackable_class = {
    .name = "trackable", .destroy = trackable_destroy, .track = trackable_track};

ed_trackable *ed_trackable_new(const ed_trackable_class *kind, void *self)
{
    if (!kind || !kind->name || !kind->track)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "trackable_new: kind must have a name and a track function");
    ed_trackable *trackable = object_new(&trackable_class, sizeof *trackable);
    if (!trackable) return NULL;
    trackable->kind = kind;
    if (!scope_give(trackable)) return NULL;
    trackable->self = self;
    return trackable;
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

static const char *refuses_negative(const void *self, const void *elements)
{
    int64_t value;
    (void)self;
    memcpy(&value, elements, sizeof value);
    return value < 0 ? "must be >= 0" : NULL;
}

static const ed_state int64_state = {ED_INT64, -1, get_number, NULL, set_number};
static const ed_state float64_state = {ED_FLOAT64, -1, get_number, NULL, set_number};
const ed_state graph_count_state = {ED_INT64, -1, get_number, refuses_negative, set_number};

/* A counter is itself a cell, not an object with one: its value is saved under its own name. */
static void counter_track(void *object, ed_tracker *t)
{
    graph_node *node = &t->graph->nodes[t->self];
    node->kind = GRAPH_CELL;
    node->object = ((ed_trackable *)object)->self;
    node->state = *((ed_trackable *)object)->state;
}

static const object_class counter_class = {
    .name = "counter", .destroy = memory_free, .track = counter_track};

ed_trackable *graph_counter(int64_t *value, const ed_state *state)
{
    ed_trackable *trackable = object_new(&counter_class, sizeof *trackable);
    if (!trackable) return NULL;
    trackable->state = state;
    trackable->self = value;
    return scope_give(trackable);
}

ed_trackable *ed_counter(int64_t *value)
{
    if (NULL_GIVEN("counter", value)) return NULL;
    return graph_counter(value, &int64_state);
}

/* ---- Growing --------------------------------------------------------------------------------- */

bool graph_reserve(void **array, size_t size, int count, int *capacity)
{
    if (count < *capacity) return true;
    if (count >= 1 << 28)
        return ed_fail(ED_OUT_OF_RANGE, "checkpoint: the object graph has more than 2^28 parts");
    int more = *capacity ? 2 * *capacity : HARD(1, 16);
    void *grown = memory_grow(*array, (size_t)*capacity * size, (size_t)more * size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

static int tracker_fail(ed_tracker *t)
{
    t->failed = true;
    return -1;
}

static int new_node(ed_tracker *t, graph_kind kind)
{
    graph *g = t->graph;
    if (t->failed ||
        !graph_reserve((void **)&g->nodes, sizeof *g->nodes, g->n_nodes, &g->node_capacity))
        return tracker_fail(t);
    g->nodes[g->n_nodes] = (graph_node){.kind = kind, .first = -1, .last = -1, .path_edge = -1};
    return g->n_nodes++;
}

/* ---- Nodes by object ------------------------------------------------------------------------- */

static unsigned hash(const void *object)
{
    return (unsigned)(((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

/* The slot of the hash table where the object is, or an empty one. */
static int *node_place(const graph *g, const void *object)
{
    unsigned mask = (unsigned)g->table_size - 1, i = hash(object) & mask;
    while (g->table[i] >= 0 && g->nodes[g->table[i]].held != object) i = (i + 1) & mask;
    return &g->table[i];
}

static int *empty_table(int size)
{
    int *table = memory_alloc((size_t)size * sizeof *table);
    return table ? memset(table, 0xff, (size_t)size * sizeof *table) : NULL;
}

static bool enlarge(graph *g)
{
    int size = g->table_size ? 2 * g->table_size : 64, *table = empty_table(size);
    if (!table) return false;
    memory_free(g->table);
    g->table = table;
    g->table_size = size;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].held) *node_place(g, g->nodes[i].held) = i;
    return true;
}

/* ---- Edges by node and name ------------------------------------------------------------------ */

static unsigned edge_hash(int from, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)from * 0x9e3779b97f4a7c15u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return (unsigned)(h ^ h >> 32);
}

static int *edge_place(const graph *g, int from, const char *name)
{
    unsigned mask = (unsigned)g->edge_table_size - 1, i = edge_hash(from, name) & mask;
    for (; g->edge_table[i] >= 0; i = (i + 1) & mask) {
        const graph_edge *edge = &g->edges[g->edge_table[i]];
        if (edge->from == from && !strcmp(edge->name, name)) break;
    }
    return &g->edge_table[i];
}

static bool enlarge_edges(graph *g)
{
    int size = g->edge_table_size ? 2 * g->edge_table_size : 64, *table = empty_table(size);
    if (!table) return false;
    memory_free(g->edge_table);
    g->edge_table = table;
    g->edge_table_size = size;
    for (int i = 0; i < g->n_edges; i++)
        if (g->edges[i].use & GRAPH_WRITE) *edge_place(g, g->edges[i].from, g->edges[i].name) = i;
    return true;
}

int graph_child(const graph *g, int node, const char *name)
{
    int edge = g->edge_table_size ? *edge_place(g, node, name) : -1;
    return edge < 0 ? -1 : g->edges[edge].to;
}

/* ---- Creation -------------------------------------------------------------------------------- */

int graph_find(const graph *g, const void *object)
{
    return g->table_size ? *node_place(g, object) : -1;
}

static const object_class *class_of(const void *object)
{
    return ((const ed_object *)object)->class;
}

static void track_variable(void *object, ed_tracker *t)
{
    (void)object;
    t->graph->nodes[t->self].kind = GRAPH_VARIABLE;
}

/* Its variables, numbered; a list with other tensors is not a list of variables. */
static void track_list(void *object, ed_tracker *t)
{
    const ed_list *list = object;
    for (int64_t i = 0; i < list->size; i++)
        graph_number(t, t->self, GRAPH_NAME, i, graph_object(t, list->items[i]));
}

/* The track function of the object's class; NULL for classes that a checkpoint can't save. */
static void (*track_function(const object_class *class))(void *object, ed_tracker *t)
{
    return class == &tensor_variable_class ? track_variable
           : class == &tensor_list_class   ? track_list
                                           : class->track;
}

int graph_object(ed_tracker *t, void *object)
{
    graph *g = t->graph;
    if (t->failed) return -1;
    if (!object)
        return ed_fail(ED_INVALID_ARGUMENT, "checkpoint: a tracked object is NULL"),
               tracker_fail(t);
    if (!track_function(class_of(object))) {
        ed_fail(ED_INVALID_ARGUMENT,
                "checkpoint: a %s can't be saved; must be a variable, list of variables, layer, "
                "optimizer, metric, generator, dataset or trackable",
                class_of(object)->name);
        return tracker_fail(t);
    }
    if (2 * g->n_nodes >= g->table_size && !enlarge(g)) return tracker_fail(t);
    int *at = node_place(g, object);
    if (*at >= 0) return *at;
    int node = new_node(t, GRAPH_OBJECT);
    if (node < 0) return -1;
    g->nodes[node].object = g->nodes[node].held = ed_retain(object);
    return *at = node;
}

int graph_container(ed_tracker *t)
{
    return new_node(t, GRAPH_CONTAINER);
}

int graph_tensor(ed_tracker *t, ed_tensor *value)
{
    int node = new_node(t, GRAPH_VARIABLE);
    if (node >= 0) t->graph->nodes[node].object = t->graph->nodes[node].held = ed_retain(value);
    return node;
}

int graph_cell(ed_tracker *t, void *self, const ed_state *state)
{
    int node = new_node(t, GRAPH_CELL);
    if (node < 0) return -1;
    t->graph->nodes[node].object = self;
    t->graph->nodes[node].state = *state;
    return node;
}

static bool is_new_name(ed_tracker *t, int from, const char *name)
{
    graph *g = t->graph;
    if (2 * g->n_edges >= g->edge_table_size && !enlarge_edges(g)) return false;
    if (*edge_place(g, from, name) < 0) return true;
    ed_fail(ED_INVALID_ARGUMENT, "checkpoint: duplicate name '%s'", name);
    return false;
}

static void add_edge(graph *g, graph_edge edge)
{
    graph_node *node = &g->nodes[edge.from];
    g->edges[g->n_edges] = edge;
    *(node->first < 0 ? &node->first : &g->edges[node->last].next) = g->n_edges;
    node->last = g->n_edges;
    if (edge.use & GRAPH_WRITE) *edge_place(g, edge.from, edge.name) = g->n_edges;
    g->n_edges++;
}

void graph_name(ed_tracker *t, int from, unsigned use, const char *name, int to)
{
    graph *g = t->graph;
    if (t->failed || from < 0 || to < 0) return;
    bool fine = !(use & GRAPH_WRITE) || is_new_name(t, from, name);
    fine =
        fine && graph_reserve((void **)&g->edges, sizeof *g->edges, g->n_edges, &g->edge_capacity);
    char *copy = fine ? text_copy(name) : NULL;
    if (copy)
        add_edge(g, (graph_edge){.from = from, .to = to, .next = -1, .use = use, .name = copy});
    else
        tracker_fail(t);
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
    if (!graph_reserve((void **)&g->slots, sizeof *g->slots, g->n_slots, &g->slot_capacity)) {
        tracker_fail(t);
        return;
    }
    g->slots[g->n_slots++] = slot;
    g->nodes[slot.optimizer].has_slots = true;
}

/* ---- Functions for track functions ----------------------------------------------------------- */

/* A name from the program has all three uses. */
static bool named(ed_tracker *t, const char *name)
{
    if (t && name) return true;
    ed_fail(ED_INVALID_ARGUMENT, "track: %s is NULL", t ? "name" : "tracker");
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
        ed_fail(ED_INVALID_ARGUMENT,
                "track_state: state must have dtype, count >= -1, get and set");
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
    for (int i = 0; i < g->n_nodes; i++) ed_release(g->nodes[i].held);
    for (int i = 0; i < g->n_edges; i++) memory_free(g->edges[i].name);
    memory_free(g->nodes);
    memory_free(g->edges);
    memory_free(g->slots);
    memory_free(g->table);
    memory_free(g->edge_table);
    *g = (graph){0};
}

/* Calls the object's track function. The graph alone holds what that creates; an error is a
 * failure. */
static void ask(ed_tracker *t, void *object)
{
    ED_SCOPE;
    bool failed_before = ed_failed();
    SCOPE_GUARDED((track_function(class_of(object))(object, t), true));
    if (!failed_before && ed_failed()) t->failed = true;
}

size_t graph_escaped_length(const char *name)
{
    size_t n = strlen(name);
    for (; *name; name++) n += *name == '.' || *name == '/';
    return n;
}

/* Breadth first, so that the shortest of several paths counts, and of equally long ones the
 * first. */
bool graph_find_paths(graph *g)
{
    int end = 0, *queue = memory_alloc((size_t)g->n_nodes * sizeof *queue);
    if (!queue) return false;
    for (int i = 0; i < g->n_nodes; i++) g->nodes[i].path_edge = -1;
    queue[end++] = 0;
    for (int i = 0; i < end; i++)
        for (int e = g->nodes[queue[i]].first; e >= 0; e = g->edges[e].next) {
            const graph_edge *edge = &g->edges[e];
            graph_node *to = &g->nodes[edge->to];
            if (!(edge->use & GRAPH_KEY) || !edge->to || to->path_edge >= 0) continue;
            to->path_edge = e;
            to->length =
                g->nodes[edge->from].length + (edge->from != 0) + graph_escaped_length(edge->name);
            queue[end++] = edge->to;
        }
    memory_free(queue);
    return true;
}

bool graph_make(graph *g, const char *const *names, void *const *objects, int count,
                bool weights_only)
{
    *g = (graph){.weights_only = weights_only};
    ed_tracker t = {.graph = g};
    graph_container(&t);
    for (int i = 0; i < count; i++) ed_track(&t, names[i], objects[i]);
    for (t.self = 1; !t.failed && t.self < g->n_nodes; t.self++) {
        const graph_node *node = &g->nodes[t.self];
        if (node->kind == GRAPH_OBJECT) ask(&t, node->object);
    }
    if (!t.failed && graph_find_paths(g)) return true;
    graph_free(g);
    return false;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

enum { LONGEST_PATHS = 1 << 28 }; /* of all paths together, in bytes */

char *graph_put_escaped(char *end, const char *name)
{
    for (size_t i = strlen(name); i-- > 0;) {
        *--end = name[i] == '/' ? 'S' : name[i];
        if (name[i] == '.' || name[i] == '/') *--end = '.';
    }
    return end;
}

/* From the end to the beginning, along path_edge. */
static char *path_text(const graph *g, const graph_node *node)
{
    char *path = memory_alloc(node->length + 1), *at = path ? path + node->length : NULL;
    if (!path) return NULL;
    *at = 0;
    while (node->path_edge >= 0) {
        const graph_edge *edge = &g->edges[node->path_edge];
        at = graph_put_escaped(at, edge->name);
        if (edge->from) *--at = '/';
        node = &g->nodes[edge->from];
    }
    return path;
}

static bool has_text(const graph_node *node)
{
    bool value = node->kind == GRAPH_VARIABLE || node->kind == GRAPH_CELL;
    return node->path_edge >= 0 && (value || node->open || node->has_slots);
}

static bool lengths_are_sane(const graph *g)
{
    size_t left = LONGEST_PATHS;
    for (int i = 0; i < g->n_nodes; i++) {
        if (!has_text(&g->nodes[i])) continue;
        if (g->nodes[i].length > left)
            return ed_fail(ED_OUT_OF_RANGE,
                           "checkpoint: the paths of all values take more than %d MiB: objects "
                           "are nested too deeply",
                           LONGEST_PATHS >> 20);
        left -= g->nodes[i].length;
    }
    return true;
}

void graph_free_paths(const graph *g, char **paths)
{
    for (int i = 0; paths && i < g->n_nodes; i++) memory_free(paths[i]);
    memory_free(paths);
}

char **graph_paths(const graph *g)
{
    char **paths = lengths_are_sane(g) ? memory_zalloc((size_t)g->n_nodes * sizeof *paths) : NULL;
    for (int i = 0; paths && i < g->n_nodes; i++)
        if (has_text(&g->nodes[i]) && !(paths[i] = path_text(g, &g->nodes[i]))) {
            graph_free_paths(g, paths);
            return NULL;
        }
    return paths;
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
