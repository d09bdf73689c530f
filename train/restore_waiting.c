#include "train/restore.h"
#include <string.h>

/*
 * Values that wait after a restore, and the functions that waiting objects call: a layer when it
 * creates its weights, an optimizer when it creates the slots of a variable. A value is restored
 * once its object reports that the variable was created; if that is discarded, the value waits
 * again.
 */

static graph_wait *wait_of(const match *m, int live)
{
    void *object = m->g->nodes[live].object;
    const object_class *class = ((const ed_object *)object)->class;
    return class->wait ? class->wait(object) : NULL;
}

/* An object that may get more children waits for their values; it no longer waits for others. */
void waiting_begin(const match *m, int live)
{
    graph_wait *wait = wait_of(m, live);
    const graph_node *node = &m->g->nodes[live];
    if (!wait) return;
    if (node->open || (node->has_slots && m->file_of[live] >= 0))
        graph_wait_for(wait, &m->r->source, m->file_of[live]);
    else
        graph_wait_end(wait);
}

/* The object keeps waiting for values of an older restore, if that has some for it. */
void waiting_leave(const match *m, int live)
{
    graph_wait *wait = wait_of(m, live);
    if (wait && wait->node < 0) graph_wait_end(wait);
}

static ed_restoration *of(const graph_source *s)
{
    return (ed_restoration *)s;
}

static int find_child(const graph_source *s, int node, const char *name)
{
    int at = objects_child(&of(s)->file, node, name);
    return at >= 0 && of(s)->states[at] != FILE_SKIPPED ? at : -1;
}

static int find_slot(const graph_source *s, int node, const graph_slot *slot, const ed_tensor *v)
{
    const graph_node as_node = {.kind = GRAPH_VARIABLE, .object = (void *)v};
    int at = match_slot(&of(s)->file, node, slot, restore_place(of(s), &as_node));
    return at >= 0 && of(s)->waiting[at] ? at : -1;
}

/* A layer without children in the file had not been called when it was saved: it starts as a new
 * one. */
static bool must_have_all(const graph_source *s, int node)
{
    return of(s)->strict && (node < 0 || of(s)->file.nodes[node].children > 0);
}

/* Whether the tensor has the shape, in which -1 is any size. */
static bool has_shape(const ed_tensor *t, ed_ints shape)
{
    bool same = t->rank == shape.count;
    for (int i = 0; same && i < t->rank; i++)
        same = shape.values[i] == -1 || shape.values[i] == t->shape[i];
    return same;
}

static ed_tensor *value(graph_source *s, int at, const char *who, ed_dtype dtype, ed_ints shape)
{
    ed_tensor *t = of(s)->waiting[at];
    if (!t)
        return ed_fail(ED_FAILED_PRECONDITION,
                       "%s: its value in the checkpoint %s was already restored", who, s->path);
    if (t->dtype == dtype && has_shape(t, shape)) return ed_retain(t);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s is %s%s in the program, but in the checkpoint %s it is %s", who,
                   ed_dtype_name(dtype), text_of_ints(shape.values, shape.count).s, s->path,
                   text_of_tensor(t).s);
}

static void take_waiting(ed_restoration *r, int at)
{
    ed_release(r->waiting[at]);
    r->waiting[at] = NULL;
    r->states[at] = FILE_RESTORED;
}

static void give_variable(ed_restoration *r, const graph_node *node, int at)
{
    const ed_tensor *v = node->object;
    ed_tensor *t = value(&r->source, at, ed_variable_name(v), v->dtype, ed_shape(v));
    if (!t) return;
    if (!restore_note(r, node, at)) {
        ed_release(t);
        return;
    }
    variable_replace(node->object, t);
    take_waiting(r, at);
}

/* The value is kept, in case the object of the cell is destroyed and created again. */
static void give_cell(ed_restoration *r, const graph_node *node, int at)
{
    const ed_tensor *t = r->waiting[at];
    if (!restore_cell_fits(node, t->dtype, t->rank, t->shape)) {
        ed_fail(ED_INVALID_ARGUMENT,
                "restore: %s: %s is %s, which does not match the object that was created",
                r->source.path, restore_name(r, at), text_of_tensor(t).s);
        return;
    }
    ed_tensor *taken = restore_cell_value(r, node, at, ed_retain(r->waiting[at]));
    if (taken && restore_note(r, node, at)) {
        node->state.set(node->object, taken->data);
        r->states[at] = FILE_RESTORED;
    }
    ed_release(taken);
}

/* A value of a new object. */
static void give_value(ed_restoration *r, const graph_node *node, int at)
{
    if (at >= 0 && r->waiting[at])
        node->kind == GRAPH_CELL ? give_cell(r, node, at) : give_variable(r, node, at);
    else if (at < 0 && r->strict && node->kind == GRAPH_VARIABLE)
        ed_fail(
            ED_NOT_FOUND,
            "%s: the checkpoint %s has no value for it (set .partial = true to restore the rest)",
            ed_variable_name(node->object), r->source.path);
}

/* An object that was created with children: those with values in the file get them, others wait
 * in turn. */
static void made_with_children(ed_restoration *r, int at, void *object)
{
    graph g;
    match m;
    if (!graph_make(&g, (const char *const[]){"made"}, &object, 1, false)) return;
    if (match_begin(&m, r, &g)) {
        match_bind(&m, graph_find(&g, object), at);
        match_all(&m);
        for (int i = 0; i < g.n_nodes; i++) {
            if (g.nodes[i].kind == GRAPH_OBJECT) waiting_begin(&m, i);
            if (graph_is_value(&g.nodes[i])) give_value(r, &g.nodes[i], m.file_of[i]);
        }
        match_end(&m);
    }
    graph_free(&g);
}

static bool made(graph_source *s, int at, void *object)
{
    const graph_node as_node = {.kind = GRAPH_VARIABLE, .object = object};
    if (((const ed_object *)object)->class->wait) {
        made_with_children(of(s), at, object);
        return true;
    }
    if (!restore_note(of(s), &as_node, at)) return false;
    take_waiting(of(s), at);
    return true;
}

static void unmade(graph_source *s, const ed_tensor *v)
{
    ed_restoration *r = of(s);
    const graph_node as_node = {.kind = GRAPH_VARIABLE, .object = (void *)v};
    int at = restore_place(r, &as_node);
    if (at < 0) return;
    restore_forget_place(r, &as_node);
    r->waiting[at] = ed_retain(tensor_read(v));
    r->states[at] = FILE_WAITING;
}

const graph_source waiting_source = {.find = find_child,
                                     .find_slot = find_slot,
                                     .whole = must_have_all,
                                     .value = value,
                                     .made = made,
                                     .unmade = unmade};
