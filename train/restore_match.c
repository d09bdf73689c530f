#include "train/restore.h"
#include <stdio.h>
#include <string.h>

/* Nodes are matched by names: the roots match, and the nodes to which the same name leads from
 * two matched nodes match, breadth first; a node is matched once. Slots of optimizers have
 * different names in different versions of Keras, so they are matched by their variable. */

bool match_begin(match *m, ed_restoration *r, const graph *g)
{
    size_t live = (size_t)g->n_nodes * sizeof(int), file = (size_t)r->file.n_nodes * sizeof(int);
    *m = (match){.r = r, .g = g};
    m->paths = graph_paths(g);
    m->file_of = memory_alloc(live);
    m->live_of = memory_alloc(file);
    m->queue = memory_alloc(live);
    if (!m->paths || !m->file_of || !m->live_of || !m->queue) {
        match_end(m);
        return false;
    }
    memset(m->file_of, 0xff, live);
    memset(m->live_of, 0xff, file);
    return true;
}

void match_end(match *m)
{
    graph_free_paths(m->g, m->paths);
    memory_free(m->file_of);
    memory_free(m->live_of);
    memory_free(m->queue);
    *m = (match){0};
}

/* A node of the program that is reached again by another node of the file keeps its match, and
 * both nodes of the file count as taken. A node of the file keeps its first match; except the
 * root, which in TensorFlow may itself be an object, and is then its own child "root". */
void match_bind(match *m, int live, int file)
{
    if (live < 0 || file < 0) return;
    if (m->file_of[live] < 0) {
        if (m->live_of[file] >= 0 && (file || m->live_of[file])) return;
        m->file_of[live] = file;
        m->queue[m->queued++] = live;
        if (live > 0) m->r->matched = true;
    }
    if (m->live_of[file] <= 0) m->live_of[file] = live;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/*
 * Lists of slots have the order of the list of trained variables; where the file has no such list
 * (Keras 2.11 to 2.15), the order in which the optimizer saw the variables. The same holds for
 * variables that are in neither checkpoint: not in this one, and without a value in the file.
 */
int match_slot(const file_graph *f, int node, const graph_slot *slot, int owner)
{
    if (node < 0) return -1;
    int legacy = owner >= 0 ? objects_slot(f, node, owner, slot->keras2_slot) : -1;
    if (legacy >= 0) return legacy;
    char index[24];
    snprintf(index, sizeof index, "%lld", (long long)slot->index);
    int list = objects_child(f, node, slot->keras3_list);
    int trained = objects_child(f, node, "_trainable_variables");
    int unknown = owner < 0 ? objects_child(f, trained, index) : -1;
    bool by_order = trained < 0 || (unknown >= 0 && !objects_key(f, unknown));
    const char *number = by_order ? index : objects_child_name(f, trained, owner);
    return number ? objects_child(f, list, number) : -1;
}

static void match_slots(match *m)
{
    for (int i = 0; i < m->g->n_slots; i++) {
        const graph_slot *slot = &m->g->slots[i];
        if (slot->variable < 0) continue;
        match_bind(
            m, slot->value,
            match_slot(&m->r->file, m->file_of[slot->optimizer], slot, m->file_of[slot->variable]));
    }
}

void match_all(match *m)
{
    for (int i = 0; i < m->queued; i++) {
        int live = m->queue[i], file = m->file_of[live];
        for (int e = m->g->nodes[live].first; e >= 0; e = m->g->edges[e].next) {
            const graph_edge *edge = &m->g->edges[e];
            if (edge->use & GRAPH_MATCH)
                match_bind(m, edge->to, objects_child(&m->r->file, file, edge->name));
        }
    }
    match_slots(m);
}
