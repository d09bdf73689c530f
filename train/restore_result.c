#include "train/restore.h"
#include <string.h>

/* The result of a restore: the report, the waiting values, and the file's node of each value of
 * the program. A checkpoint and its restorations have pointers to each other without references. */

static void unlink_from_checkpoint(ed_restoration *r)
{
    if (!r->checkpoint) return;
    ed_restoration **at = &r->checkpoint->restorations;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
    r->checkpoint = NULL;
}

void restore_forget(ed_checkpoint *c)
{
    for (ed_restoration *r = c->restorations; r; r = r->next) r->checkpoint = NULL;
    c->restorations = NULL;
}

static void restoration_destroy(void *object)
{
    ed_restoration *r = object;
    unlink_from_checkpoint(r);
    for (int i = 0; i < r->file.n_nodes; i++) {
        if (r->names) memory_free(r->names[i]);
        if (r->waiting) ed_release(r->waiting[i]);
    }
    for (int i = 0; i < r->n_missing; i++) memory_free(r->missing[i]);
    memory_free(r->missing);
    memory_free(r->names);
    memory_free(r->waiting);
    memory_free(r->states);
    memory_free(r->bound);
    memory_free(r->bound_table);
    memory_free(r->source.path);
    objects_free(&r->file);
    memory_free(r);
}

static const object_class restoration_class = {.name = "restoration",
                                               .destroy = restoration_destroy};

const char *restore_name(const ed_restoration *r, int at)
{
    if (r->names[at]) return r->names[at];
    const file_node *n = &r->file.nodes[at];
    return n->attributes ? r->file.attributes[n->attribute].key : "";
}

ed_restoration *restoration_new(const char *path, bool strict)
{
    ed_restoration *r = object_new(&restoration_class, sizeof *r);
    if (!r) return NULL;
    r->source = waiting_source;
    r->source.object = (ed_object){.refs = 1, .class = &restoration_class};
    r->strict = strict;
    if ((r->source.path = text_copy(path))) return r;
    ed_release(r);
    return NULL;
}

void restoration_join(ed_restoration *r, ed_checkpoint *c, bool reading)
{
    r->counted = !reading;
    r->checkpoint = c;
    r->next = c->restorations;
    c->restorations = r;
}

/* ---- Where values lie ------------------------------------------------------------------------ */

static bound key_of(const graph_node *node, int at)
{
    if (node->kind == GRAPH_VARIABLE)
        return (bound){.id = ((const ed_tensor *)node->object)->id, .at = at};
    return (bound){.cell = node->object, .get = node->state.get, .at = at};
}

/* The slot of the hash table where the value is, or an empty one. */
static int *place_of(const ed_restoration *r, const bound *key)
{
    unsigned mask = 2 * (unsigned)r->bound_capacity - 1;
    uint64_t h = (key->id ^ (uintptr_t)key->cell ^ (uintptr_t)key->get << 1) * 0x9e3779b97f4a7c15u;
    for (unsigned i = (unsigned)(h >> 32) & mask;; i = (i + 1) & mask) {
        const bound *b = r->bound_table[i] < 0 ? NULL : &r->bound[r->bound_table[i]];
        if (!b || (b->id == key->id && b->cell == key->cell && b->get == key->get))
            return &r->bound_table[i];
    }
}

static bound *find_bound(const ed_restoration *r, const graph_node *node)
{
    const bound key = key_of(node, -1);
    int i = r->bound_capacity ? *place_of(r, &key) : -1;
    return i < 0 ? NULL : &r->bound[i];
}

int restore_place(const ed_restoration *r, const graph_node *node)
{
    const bound *b = find_bound(r, node);
    return b ? b->at : -1;
}

void restore_forget_place(ed_restoration *r, const graph_node *node)
{
    bound *b = find_bound(r, node);
    if (b) b->at = -1;
}

static bool enlarge_bound(ed_restoration *r)
{
    size_t old = (size_t)r->bound_capacity, more = old ? 2 * old : HARD(1, 32);
    int *table = memory_alloc(2 * more * sizeof *table);
    bound *grown = table ? memory_grow(r->bound, old * sizeof *grown, more * sizeof *grown) : NULL;
    if (!grown) {
        memory_free(table);
        return false;
    }
    memory_free(r->bound_table);
    r->bound = grown;
    r->bound_table = memset(table, 0xff, 2 * more * sizeof *table);
    r->bound_capacity = (int)more;
    for (int i = 0; i < r->n_bound; i++) *place_of(r, &r->bound[i]) = i;
    return true;
}

bool restore_note(ed_restoration *r, const graph_node *node, int at)
{
    if (r->n_bound == r->bound_capacity && !enlarge_bound(r)) return false;
    const bound key = key_of(node, at);
    int *place = place_of(r, &key);
    if (*place < 0) *place = r->n_bound++;
    r->bound[*place] = key;
    return true;
}
