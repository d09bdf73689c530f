#include "train/restore.h"
#include <stdio.h>
#include <string.h>

/*
 * A checkpoint that is saved while values of an older one still wait saves these too: nothing is
 * lost by saving before a layer's first call or an optimizer's first step. They are added to the
 * program's graph at their future places, under their names in the file: below a layer as in the
 * file, an optimizer's slots after those that it has.
 */
typedef struct graft {
    ed_tracker tracker;
    const ed_restoration *r;
    int *node_of; /* for each node of the file: its node in the graph, -1: none */
    int *stack;
} graft;

static void graft_end(graft *g)
{
    memory_free(g->node_of);
    memory_free(g->stack);
    g->node_of = g->stack = NULL;
}

/* Objects usually wait for one checkpoint: the table of its nodes is computed once. */
static bool graft_from(graft *g, const ed_restoration *r)
{
    if (g->r == r) return true;
    graft_end(g);
    size_t bytes = (size_t)r->file.n_nodes * sizeof(int);
    g->r = r;
    g->node_of = memory_alloc(bytes);
    g->stack = memory_alloc(bytes);
    if (!g->node_of || !g->stack) return false;
    memset(g->node_of, 0xff, bytes);
    for (int i = 0; i < g->tracker.graph->n_nodes; i++) {
        const graph_node *node = &g->tracker.graph->nodes[i];
        bool here = node->kind == GRAPH_VARIABLE && ed_is_variable(node->object);
        int at = here ? restore_place(r, node) : -1;
        if (at >= 0) g->node_of[at] = i;
    }
    return true;
}

/* The graph's node for one of the file; creates it if there is none. */
static int node_for(graft *g, int at)
{
    if (g->node_of[at] < 0)
        g->node_of[at] = g->r->waiting[at] ? graph_tensor(&g->tracker, g->r->waiting[at])
                                           : graph_container(&g->tracker);
    return g->node_of[at];
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* Adds all below `top` except names that exist. A node without children or a value belongs to
 * something else. */
static void graft_below(graft *g, int live, int top)
{
    const file_graph *f = &g->r->file;
    int depth = 0;
    g->node_of[top] = live;
    g->stack[depth++] = top;
    while (depth && !g->tracker.failed) {
        int from = g->stack[--depth];
        for (int i = 0; i < f->nodes[from].children; i++) {
            const file_child *child = &f->children[f->nodes[from].child + i];
            bool seen = g->node_of[child->node] >= 0;
            if (graph_child(g->tracker.graph, g->node_of[from], child->name) >= 0) continue;
            if (!seen && !f->nodes[child->node].children && !g->r->waiting[child->node]) continue;
            int to = node_for(g, child->node);
            graph_name(&g->tracker, g->node_of[from], GRAPH_NAME, child->name, to);
            if (!seen && to >= 0) g->stack[depth++] = child->node;
        }
    }
}

/* ---- Optimizers ------------------------------------------------------------------------------ */

enum { MOST_KINDS = 8 };

/* An optimizer that gets more variables: `live` in the graph, `node` in the file. */
typedef struct more_slots {
    int live, node;
    int64_t count;                /* of variables, in the graph */
    graph_slot kinds[MOST_KINDS]; /* of slots */
    int n_kinds;
} more_slots;

static void find_kinds(const graph *g, more_slots *m)
{
    for (int i = 0; i < g->n_slots && m->n_kinds < MOST_KINDS; i++)
        if (g->slots[i].optimizer == m->live && g->slots[i].variable < 0)
            m->kinds[m->n_kinds++] = g->slots[i];
}

/* Adds the slots of a variable (-1: unknown) with index `index` in the file: each has the same
 * index in its list as the variable in its own. Returns whether there were any. */
static bool graft_slots(graft *g, more_slots *m, int owner, int64_t index)
{
    const file_graph *f = &g->r->file;
    graph *to = g->tracker.graph;
    bool any = false, known = false;
    for (int i = 0; i < m->n_kinds; i++) {
        graph_slot slot = m->kinds[i];
        slot.index = index;
        int at = match_slot(f, m->node, &slot, owner);
        known |= at >= 0;
        if (at < 0 || !g->r->waiting[at] || g->node_of[at] >= 0) continue;
        graph_number(&g->tracker, graph_child(to, m->live, slot.keras3_list), GRAPH_NAME, m->count,
                     node_for(g, at));
        any = true;
    }
    if (!any) return known;
    int list = graph_child(to, m->live, "_trainable_variables");
    int beside = owner < 0 ? graph_container(&g->tracker) : node_for(g, owner);
    graph_number(&g->tracker, list, GRAPH_WRITE, m->count++, beside);
    return true;
}

static int64_t count_children(const graph *g, int node)
{
    int64_t n = 0;
    for (int e = g->nodes[node].first; e >= 0; e = g->edges[e].next) n++;
    return n;
}

/* Files identify the variables in one of the ways that match_slot knows: by a list, by slots
 * that name them, or by their order. */
static void graft_optimizer(graft *g, int live, int node)
{
    const file_graph *f = &g->r->file;
    const file_node *n = &f->nodes[node];
    graph *to = g->tracker.graph;
    more_slots m = {.live = live, .node = node};
    m.count = count_children(to, graph_child(to, live, "_trainable_variables"));
    find_kinds(to, &m);
    int trained = objects_child(f, node, "_trainable_variables");
    for (int i = 0; trained >= 0 && i < f->nodes[trained].children; i++)
        graft_slots(g, &m, f->children[f->nodes[trained].child + i].node, i);
    for (int i = 0; i < n->slots; i++) graft_slots(g, &m, f->slots[n->slot + i].variable, -1);
    if (trained < 0 && !n->slots)
        for (int64_t i = 0; graft_slots(g, &m, -1, i); i++) {}
}

/* ---- The whole graph ------------------------------------------------------------------------- */

static graph_wait *wait_of(const graph_node *node)
{
    if (node->kind != GRAPH_OBJECT) return NULL;
    const object_class *class = ((const ed_object *)node->object)->class;
    graph_wait *wait = class->wait ? class->wait(node->object) : NULL;
    return wait && wait->source && wait->node >= 0 ? wait : NULL;
}

/* Layers before optimizers: an optimizer's variables may be among the layers' waiting values. */
static void graft_all(graft *g, bool optimizers)
{
    const graph *to = g->tracker.graph;
    for (int i = 0, n = to->n_nodes; i < n && !g->tracker.failed; i++) {
        const graph_node *node = &to->nodes[i];
        const graph_wait *wait = wait_of(node);
        if (!wait || !(optimizers ? node->has_slots : node->open)) continue;
        if (!graft_from(g, (const ed_restoration *)wait->source))
            g->tracker.failed = true;
        else if (optimizers)
            graft_optimizer(g, i, wait->node);
        else
            graft_below(g, i, wait->node);
    }
}

bool graft_waiting(graph *g)
{
    graft all = {.tracker.graph = g};
    int before = g->n_edges;
    graft_all(&all, false);
    graft_all(&all, true);
    graft_end(&all);
    return !all.tracker.failed && (g->n_edges == before || graph_find_paths(g));
}
