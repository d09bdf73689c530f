#include "io/bundle.h"
#include "train/restore.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * Checkpoints of Keras 3 have the slots of most optimizers twice: in _variables, and in a list for
 * each kind of slot (_momentums), by which they are found. Of Adafactor and Muon the lists are
 * empty. Here the file's graph gets them. _variables has the number of steps, the learning rate
 * unless a schedule gives it, the slots of common options, and then, variable by variable,
 *
 *     Adafactor   rows, columns, velocity; a vector has scalars in place of rows and columns
 *     Muon        momentum; and velocity, if Adam trains the variable
 */

typedef struct optimizer_node {
    int node, variables, trained; /* of the file */
    int n;                        /* trained variables */
    int first, own;               /* the first slot in _variables; their number */
    bool has_rows, lists_filled;  /* it is Adafactor; Eddy wrote it */
} optimizer_node;

/* Whether the node is an Adafactor or a Muon. */
static bool is_optimizer(const file_graph *f, int node, optimizer_node *o)
{
    const int rows = objects_child(f, node, "_r");
    const int list = rows >= 0 && objects_child(f, node, "_c") >= 0
                         ? rows
                         : objects_child(f, node, "adam_velocities");
    *o = (optimizer_node){.node = node, .has_rows = list >= 0 && list == rows};
    o->variables = objects_child(f, node, "_variables");
    o->trained = objects_child(f, node, "_trainable_variables");
    if (list < 0 || o->variables < 0 || o->trained < 0) return false;
    o->lists_filled = f->nodes[list].children > 0;
    o->n = f->nodes[o->trained].children;
    const int sets = (objects_child(f, node, "_model_variables_moving_average") >= 0) +
                     (objects_child(f, node, "_accumulated_gradients") >= 0);
    const int64_t first =
        1 + (objects_child(f, node, "_learning_rate") >= 0) + (int64_t)o->n * sets;
    const int64_t own = f->nodes[o->variables].children - first;
    if (o->n == 0 || own < o->n || own > 3 * (int64_t)o->n) return false;
    o->first = (int)first;
    o->own = (int)own;
    return true;
}

static int numbered(const file_graph *f, int list, int number)
{
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    return objects_child(f, list, name);
}

/* The value of a node; NULL if it has none, or a damaged one. */
static const bundle_entry *entry_of(const file_graph *f, const bundle *file, int node)
{
    const char *key = node < 0 ? NULL : objects_key(f, node);
    const bundle_entry *entry = key ? bundle_find(file, key) : NULL;
    return entry && !entry->damage ? entry : NULL;
}

static bool have_same_shape(const bundle_entry *a, const bundle_entry *b)
{
    return a && b && a->rank == b->rank &&
           !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
}

/* ---- Adafactor ------------------------------------------------------------------------------- */

static bool is_placeholder(const bundle_entry *entry)
{
    return entry && entry->dtype == IO_INT32 && entry->rank == 0;
}

/* slots[k * n + i]: slot k of variable i, -1 if it has none. */
static bool find_rows(const file_graph *f, const bundle *file, const optimizer_node *o, int *slots)
{
    if (o->own != 3 * o->n) return false;
    for (int i = 0; i < o->n; i++) {
        const bundle_entry *v = entry_of(f, file, numbered(f, o->trained, i));
        for (int k = 0; k < 3; k++) {
            const int at = numbered(f, o->variables, o->first + 3 * i + k);
            const bundle_entry *slot = entry_of(f, file, at);
            if (!v || !slot) return false;
            const bool has = k == 2 || v->rank >= 2;
            if (has ? slot->rank != v->rank - (k < 2) : !is_placeholder(slot)) return false;
            slots[k * o->n + i] = has ? at : -1;
        }
    }
    return true;
}

/* The scalars in place of rows and columns are no values. */
static void drop_placeholders(file_graph *f, const bundle *file, const optimizer_node *o)
{
    for (int i = o->first; i < o->first + o->own; i++) {
        const int at = numbered(f, o->variables, i);
        if (is_placeholder(entry_of(f, file, at))) f->nodes[at].attributes = 0;
    }
}

/* ---- Muon ------------------------------------------------------------------------------------ */

static bool is_embedding(const char *key)
{
    static const char word[] = "embedding";
    for (; key && *key; key++)
        if (!strncasecmp(key, word, sizeof word - 1)) return true;
    return false;
}

/* Adam trains what is no matrix, and embeddings unless the optimizer was told otherwise. */
static bool find_momentums(const file_graph *f, const bundle *file, const optimizer_node *o,
                           bool excludes_embeddings, int *slots)
{
    int at = o->first;
    for (int i = 0; i < o->n; i++) {
        const int node = numbered(f, o->trained, i);
        const bundle_entry *v = entry_of(f, file, node);
        if (!v) return false;
        const bool adam =
            v->rank != 2 || (excludes_embeddings && is_embedding(objects_key(f, node)));
        for (int k = 0; k < 2; k++) {
            int *slot = &slots[k * o->n + i];
            *slot = -1;
            if (k == 1 && !adam) continue;
            *slot = numbered(f, o->variables, at++);
            if (!have_same_shape(v, entry_of(f, file, *slot))) return false;
        }
    }
    return at == o->first + o->own;
}

/* ---- Both ------------------------------------------------------------------------------------ */

static bool add_lists(file_graph *f, const bundle *file, const optimizer_node *o, int *slots)
{
    static const char *const names[2][3] = {{"momentums", "adam_velocities"}, {"_r", "_c", "_v"}};
    const bool found = o->has_rows ? find_rows(f, file, o, slots)
                                   : find_momentums(f, file, o, true, slots) ||
                                         find_momentums(f, file, o, false, slots);
    if (o->has_rows) drop_placeholders(f, file, o);
    if (!found || o->lists_filled) return true;
    for (int k = 0; k < (o->has_rows ? 3 : 2); k++)
        if (!objects_link_list(f, o->node, names[o->has_rows][k], slots + k * o->n, o->n))
            return false;
    return true;
}

void keras_slots_room(const file_graph *f, size_t *nodes, size_t *bytes)
{
    enum { NUMBER = 12 }; /* bytes of a name */
    int64_t all = 0;
    optimizer_node o;
    for (int i = 0; i < f->n_nodes; i++)
        if (is_optimizer(f, i, &o) && (all += o.n) <= f->n_children) {
            *nodes += 3;
            *bytes += 3 * NUMBER * ((size_t)o.n + 2);
        }
}

bool keras_slots_link(file_graph *f, const bundle *file)
{
    const int nodes = f->spare;
    int64_t all = 0;
    bool ok = true;
    optimizer_node o;
    for (int i = 0; ok && i < nodes; i++) {
        if (!is_optimizer(f, i, &o)) continue;
        if ((all += o.n) > f->n_children) break; /* more than a file has: lists that many share */
        int *slots = memory_alloc(3 * (size_t)o.n * sizeof *slots);
        ok = slots && add_lists(f, file, &o, slots);
        memory_free(slots);
    }
    return ok;
}
