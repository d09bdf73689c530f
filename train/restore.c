#include "train/restore.h"
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * A restore has these steps; only the last one changes anything:
 *
 *     read the file's graph, create the program's, match the two
 *     compare all values: which are missing or unexpected, or differ in dtype or shape?  -> error
 *     read each value that is restored or waits, checksums verified                      -> error
 *     ask cells whether they accept what was read                                        -> error
 *     assign the values
 *
 * Values that wait are read too; the restoration holds them, and waiting objects hold it: the file
 * may be gone when a layer is called first.
 */

/* ---- The state of a restore ------------------------------------------------------------------ */

/* How a waiting node of the file was reached: as which child (-1: not yet), and the length of
 * its path. */
typedef struct trail {
    int child;
    size_t length;
} trail;

typedef struct restore {
    ed_restoration *r;
    match m;
    graph g;
    const bundle *file;
    const ed_restore_options *options;
    ed_tensor **values; /* for each node of the program: its new value */
    io_buffer unfit;    /* lines: values of another dtype or shape */
    bool strict, named; /* named: matched by the variables' names, as the file has no graph */
    bool linked;        /* names were added to the file's graph */
    bool *only_used, *skip_used; /* for each pattern: a path matches it */

    bool *waits; /* for each node of the program: the file has values that wait for the object */
    trail *trails;
    size_t
        names_left; /* bytes that names of waiting values may still take: files are not trusted */
} restore;

static bool is_filtered(const restore *s)
{
    return s->options->only.values || s->options->skip.values;
}

/* Notes all patterns that match. */
static bool matches(ed_strings patterns, const char *path, bool *used)
{
    bool any = false;
    for (int64_t i = 0; patterns.values && i < patterns.count; i++)
        if (fnmatch(patterns.values[i], path, 0) == 0) any = used[i] = true;
    return any;
}

static bool is_wanted(const restore *s, const char *path)
{
    const ed_restore_options *o = s->options;
    const bool only = matches(o->only, path, s->only_used) || !o->only.values,
               skip = matches(o->skip, path, s->skip_used);
    return only && !skip;
}

static bool check_used(const char *who, const char *name, ed_strings patterns, const bool *used)
{
    for (int64_t i = 0; patterns.values && i < patterns.count; i++)
        if (!used[i])
            return ed_fail(ED_INVALID_ARGUMENT, "%s: %s: no path matches \"%s\"", who, name,
                           patterns.values[i]);
    return true;
}

/* ---- Comparing values ------------------------------------------------------------------------ */

static bool is_number(ed_dtype dtype)
{
    return dtype == ED_FLOAT32 || dtype == ED_FLOAT64 || dtype == ED_INT32 || dtype == ED_INT64;
}

/* A cell, which is not a variable, accepts any numeric dtype. */
bool restore_cell_fits(const graph_node *node, ed_dtype dtype, int rank, const int64_t *shape)
{
    const ed_state *cell = &node->state;
    return (dtype == cell->dtype || (is_number(dtype) && is_number(cell->dtype))) &&
           rank == (cell->count >= 0) && (cell->count < 0 || shape[0] == cell->count);
}

static bool fits(const graph_node *node, const bundle_entry *entry)
{
    ed_dtype dtype = io_dtype_to(entry->dtype);
    if (node->kind == GRAPH_CELL) return restore_cell_fits(node, dtype, entry->rank, entry->shape);
    const ed_tensor *v = node->object;
    return dtype == v->dtype && entry->rank == v->rank &&
           memcmp(entry->shape, v->shape, (size_t)v->rank * sizeof *v->shape) == 0;
}

static text text_of_node(const graph_node *node)
{
    if (node->kind == GRAPH_VARIABLE) return text_of_tensor(node->object);
    ed_tensor like = {.dtype = (uint8_t)node->state.dtype, .rank = node->state.count >= 0};
    like.shape[0] = node->state.count;
    return text_of_tensor(&like);
}

static text text_of_entry(const bundle_entry *entry)
{
    text shape = text_of_ints(entry->shape, entry->rank), t;
    snprintf(t.s, sizeof t.s, "%s%.160s", io_dtype_name(entry->dtype), shape.s);
    return t;
}

static bool name_value(restore *s, int at, const char *path)
{
    if (s->r->names[at]) return true;
    return (s->r->names[at] = text_copy(path));
}

static bool note_missing(restore *s, const char *path)
{
    ed_restoration *r = s->r;
    char *copy = text_copy(path);
    if (copy) r->missing[r->n_missing++] = copy;
    return copy;
}

/* For a matched value of the program: notes its node in the file, or that dtype or shape differ. */
static bool look_at_value(restore *s, int live, int at)
{
    const graph_node *node = &s->g.nodes[live];
    const char *key = objects_key(&s->r->file, at), *path = s->m.paths[live];
    if (!key) return restore_note(s->r, node, at) && (!path || note_missing(s, path));
    const bundle_entry *entry = bundle_find(s->file, key);
    if (!entry)
        return ed_fail(ED_NOT_FOUND, "restore: %s: key '%s' not found", s->r->source.path, key);
    if (entry->damage) return bundle_verify(s->file, entry); /* which reports the damage */
    if (!name_value(s, at, path ? path : key)) return false;
    if (!fits(node, entry)) {
        s->r->states[at] = FILE_SKIPPED;
        io_put_format(&s->unfit, "%s%s is %s in the program and %s in the file",
                      s->unfit.size ? ", " : "", restore_name(s->r, at), text_of_node(node).s,
                      text_of_entry(entry).s);
        return true;
    }
    s->r->states[at] = FILE_RESTORED;
    return restore_note(s->r, node, at);
}

static bool look_at_program(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        if (!graph_is_restored(&s->g.nodes[i])) continue;
        const char *path = s->m.paths[i];
        int at = s->m.file_of[i];
        if (path && !is_wanted(s, path)) {
            if (at >= 0) s->r->states[at] = FILE_SKIPPED;
            continue;
        }
        if (at >= 0 ? !look_at_value(s, i, at) : path && !note_missing(s, path)) return false;
    }
    return true;
}

/* Notes lists of slots that an optimizer has and the file lacks: the file's optimizer is of
 * another kind. */
static bool look_at_kinds(restore *s)
{
    const file_graph *f = &s->r->file;
    for (int i = 0; i < s->g.n_slots; i++) {
        const graph_slot *slot = &s->g.slots[i];
        const char *path = s->m.paths[slot->optimizer];
        if (slot->variable >= 0 || !path) continue;
        int at = s->m.file_of[slot->optimizer];
        int trained = objects_child(f, at, "_trainable_variables");
        if (trained < 0 || !f->nodes[trained].children) continue;
        if (objects_child(f, at, slot->keras3_list) >= 0 || !is_wanted(s, path)) continue;
        char *list = io_text("%s/%s", path, slot->keras3_list);
        bool ok = list && note_missing(s, list);
        memory_free(list);
        if (!ok) return false;
    }
    return true;
}

/* ---- Values that wait ------------------------------------------------------------------------ */

/* The path of a node below `top`, which is at `path`. */
static char *name_below(const restore *s, int top, const char *path, int at)
{
    char *name = memory_alloc(s->trails[at].length + 1);
    if (!name) return NULL;
    char *to = name + s->trails[at].length;
    *to = 0;
    while (at != top) {
        const file_child *child = &s->r->file.children[s->trails[at].child];
        to = graph_put_escaped(to, child->name);
        *--to = '/';
        at = child->parent;
    }
    memcpy(name, path, (size_t)(to - name));
    return name;
}

/* The path at the beginning of a key. */
static bool name_by_key(ed_restoration *r, int at)
{
    const char *key = objects_key(&r->file, at), *end = key ? strstr(key, VALUE_SUFFIX) : NULL;
    if (r->names[at] || !end || end[sizeof VALUE_SUFFIX - 1]) return true;
    return (r->names[at] = io_text("%.*s", (int)(end - key), key));
}

/* A value without an object yet. Its name is the path that it will have; its key, where the
 * file's names exceed the limit. */
static bool wait_for(restore *s, int top, const char *path, int at, bool *waits)
{
    ed_restoration *r = s->r;
    if (r->states[at] != FILE_NOTHING || s->m.live_of[at] >= 0 || !objects_key(&r->file, at))
        return true;
    if (path && !r->names[at] && s->trails[at].length < s->names_left) {
        if (!(r->names[at] = name_below(s, top, path, at))) return false;
        s->names_left -= s->trails[at].length;
    }
    if (!path && !name_by_key(r, at)) return false;
    bool wanted = is_wanted(s, restore_name(r, at));
    r->states[at] = wanted ? FILE_WAITING : FILE_SKIPPED;
    *waits |= wanted;
    return true;
}

/* All values below a node of the file, for an object whose children may be created. */
static bool wait_below(restore *s, int top, const char *path, bool *waits)
{
    const file_graph *f = &s->r->file;
    int depth = 0, *stack = memory_alloc((size_t)f->n_nodes * sizeof *stack);
    bool ok = stack;
    if (ok) stack[depth++] = top;
    s->trails[top].length = strlen(path);
    while (ok && depth) {
        int from = stack[--depth];
        for (int i = 0; ok && i < f->nodes[from].children; i++) {
            int child = f->nodes[from].child + i, to = f->children[child].node;
            if (to == top || s->trails[to].child >= 0 || s->m.live_of[to] >= 0) continue;
            s->trails[to] = (trail){child, s->trails[from].length + 1 +
                                               graph_escaped_length(f->children[child].name)};
            stack[depth++] = to;
            ok = wait_for(s, top, path, to, waits);
        }
    }
    memory_free(stack);
    return ok;
}

static bool wait_for_list(restore *s, int optimizer, const char *name)
{
    int list = objects_child(&s->r->file, s->m.file_of[optimizer], name);
    if (list < 0) return true;
    char *path = io_text("%s/%s", s->m.paths[optimizer], name);
    bool ok = path && wait_below(s, list, path, &s->waits[optimizer]);
    memory_free(path);
    return ok;
}

static bool wait_for_slots(restore *s, const graph_slot *slot)
{
    int at = s->m.file_of[slot->optimizer];
    if (at < 0 || !s->m.paths[slot->optimizer]) return true;
    const file_node *n = &s->r->file.nodes[at];
    for (int i = 0; i < n->slots; i++) {
        const file_slot *old = &s->r->file.slots[n->slot + i];
        if (!strcmp(old->name, slot->keras2_slot) &&
            !wait_for(s, -1, NULL, old->value, &s->waits[slot->optimizer]))
            return false;
    }
    return wait_for_list(s, slot->optimizer, slot->keras3_list);
}

static bool look_at_waiting(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++)
        if (s->g.nodes[i].open && s->m.file_of[i] >= 0 && s->m.paths[i] &&
            !wait_below(s, s->m.file_of[i], s->m.paths[i], &s->waits[i]))
            return false;
    for (int i = 0; i < s->g.n_slots; i++)
        if (s->g.slots[i].variable < 0 && !wait_for_slots(s, &s->g.slots[i])) return false;
    return true;
}

/* Values that are neither restored nor waiting: unexpected. `only` and `skip` compare their
 * names in the file. */
static bool look_at_rest(restore *s)
{
    ed_restoration *r = s->r;
    for (int i = 0; i < r->file.n_nodes; i++) {
        if (r->states[i] != FILE_NOTHING || !r->file.nodes[i].attributes) continue;
        bool taken = s->m.live_of[i] >= 0 && graph_is_value(&s->g.nodes[s->m.live_of[i]]);
        if (taken && s->m.file_of[s->m.live_of[i]] != i) {
            r->states[i] = FILE_RESTORED;
            continue;
        }
        if (!name_by_key(r, i)) return false;
        bool unexpected = !s->named && is_wanted(s, restore_name(r, i));
        r->states[i] = unexpected ? FILE_UNEXPECTED : FILE_SKIPPED;
    }
    return true;
}

/* ---- Error messages -------------------------------------------------------------------------- */

void restore_list(io_buffer *b, const char *what, int count, const char *(*get)(const void *, int),
                  const void *user)
{
    enum { SHOWN = 8 };
    int n = 0;
    for (int i = 0; i < count; i++) {
        const char *name = get(user, i);
        if (!name) continue;
        if (n < SHOWN) io_put_format(b, "%s%s", n ? ", " : what, name);
        n++;
    }
    if (n > SHOWN) io_put_format(b, " and %d more", n - SHOWN);
}

/* save_counter may be missing or unexpected: whether a file has it depends on the function of
 * TensorFlow that wrote it. */
static bool is_counter(const char *name)
{
    return !strcmp(name, "save_counter");
}

static const char *missing_name(const void *r, int i)
{
    const char *name = ((const ed_restoration *)r)->missing[i];
    return is_counter(name) ? NULL : name;
}

static const char *unexpected_name(const void *restoration, int i)
{
    const ed_restoration *r = restoration;
    if (r->states[i] != FILE_UNEXPECTED || is_counter(restore_name(r, i))) return NULL;
    return restore_name(r, i);
}

static bool lacks_slots(const restore *s)
{
    for (int i = 0; i < s->g.n_slots; i++)
        if (s->g.slots[i].value >= 0 && s->m.file_of[s->g.slots[i].value] < 0) return true;
    return false;
}

static const char *advice(const restore *s)
{
    if (s->unfit.size) return "";
    if (lacks_slots(s))
        return " (the optimizer has slots that the file does not have: "
               "restore into a new one, or set .partial = true to restore the rest)";
    return " (set .partial = true to restore the rest)";
}

static bool complain(restore *s, const char *who)
{
    io_buffer b = {0};
    if (s->unfit.size) {
        io_put_format(&b, "; different dtype or shape: ");
        io_put(&b, s->unfit.data, s->unfit.size);
    }
    if (s->strict) {
        restore_list(&b, "; missing from the file: ", s->r->n_missing, missing_name, s->r);
        restore_list(&b, "; unexpected in the file: ", s->r->file.n_nodes, unexpected_name, s->r);
    }
    if (!b.size && !b.failed && !s->unfit.failed) return true;
    io_put_u8(&b, 0);
    if (!b.failed && !s->unfit.failed)
        ed_fail(ED_INVALID_ARGUMENT, "%s: %s does not match the objects to restore%s%s", who,
                s->r->source.path, (const char *)b.data, advice(s));
    io_buffer_free(&b);
    return false;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A number of the file in the cell's dtype; NULL, with an error, if an integer is required and
 * it is not one. */
static ed_tensor *converted(const ed_restoration *r, int at, ed_tensor *read, ed_dtype dtype)
{
    if (read->dtype == dtype) return read;
    ed_tensor *number = tensor_new(dtype, read->rank, read->shape);
    for (int64_t i = 0; number && i < read->size; i++) {
        double x = dtype_load(read->dtype, read->data, i);
        bool whole = dtype == ED_INT64 || dtype == ED_INT32;
        if (whole && (x != floor(x) || fabs(x) > (dtype == ED_INT64 ? 0x1p53 : 0x1p31 - 1))) {
            ed_fail(ED_INVALID_ARGUMENT, "restore: %s: %s holds %g; an integer is required",
                    r->source.path, restore_name(r, at), x);
            ed_release(number);
            number = NULL;
            break;
        }
        dtype_store(dtype, number->data, i, x);
    }
    ed_release(read);
    return number;
}

ed_tensor *restore_cell_value(const ed_restoration *r, const graph_node *node, int at,
                              ed_tensor *read)
{
    const ed_state *cell = &node->state;
    ed_tensor *value = converted(r, at, read, cell->restored ? cell->restored : cell->dtype);
    const char *why = value && cell->refuses ? cell->refuses(node->object, value->data) : NULL;
    if (!why) return value;
    ed_fail(ED_INVALID_ARGUMENT, "restore: %s: the value of %s is invalid: %s", r->source.path,
            restore_name(r, at), why);
    ed_release(value);
    return NULL;
}

static ed_tensor *read_value(const restore *s, int live, int at)
{
    const graph_node *node = &s->g.nodes[live];
    const char *key = objects_key(&s->r->file, at);
    ed_tensor *value = bundle_tensor(s->file, bundle_find(s->file, key));
    if (!value || node->kind == GRAPH_VARIABLE) return value;
    return restore_cell_value(s->r, node, at, value);
}

/* A file may use a key several times: limits the sum of all values to the size of the file. */
static bool read_waiting(const restore *s)
{
    ed_restoration *r = s->r;
    int64_t left = 0;
    for (int64_t i = 0; i < bundle_count(s->file); i++) left += bundle_at(s->file, i)->bytes;
    for (int i = 0; i < r->file.n_nodes; i++) {
        if (r->states[i] != FILE_WAITING) continue;
        const char *key = objects_key(&r->file, i);
        const bundle_entry *entry = bundle_find(s->file, key);
        if (!entry)
            return ed_fail(ED_NOT_FOUND, "restore: %s: the file has no entry %s", r->source.path,
                           key),
                   false;
        if ((left -= entry->bytes) < 0)
            return ed_fail(ED_DATA_LOSS,
                           "restore: %s: its object graph is damaged: duplicate values",
                           r->source.path),
                   false;
        if (!(r->waiting[i] = bundle_tensor(s->file, entry))) return false;
    }
    return true;
}

static bool read_values(const restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        int at = s->m.file_of[i];
        if (!graph_is_value(&s->g.nodes[i]) || at < 0 || s->r->states[at] != FILE_RESTORED)
            continue;
        if (!(s->values[i] = read_value(s, i, at))) return false;
    }
    return read_waiting(s);
}

/* ---- Assigning, which can't fail ------------------------------------------------------------- */

static void put_value(const graph_node *node, ed_tensor *value)
{
    if (node->kind == GRAPH_VARIABLE) {
        variable_replace(node->object, value);
        return;
    }
    node->state.set(node->object, value->data);
    ed_release(value);
}

static void put_values(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        if (s->values[i]) put_value(&s->g.nodes[i], s->values[i]);
        s->values[i] = NULL;
        if (s->g.nodes[i].kind != GRAPH_OBJECT) continue;
        if (s->strict || s->waits[i])
            waiting_begin(&s->m, i);
        else
            waiting_leave(&s->m, i);
    }
}

/* ---- Files without a graph ------------------------------------------------------------------- */

/* Creates a graph for such a file: each key is a child of the root, and a value. */
static bool graph_of_names(const bundle *b, io_buffer *message)
{
    io_buffer root = {0};
    for (int64_t i = 0; i < bundle_count(b); i++) {
        io_buffer child = {0};
        io_put_field_varint(&child, 1, (uint64_t)i + 1);
        io_put_field_bytes(&child, 2, bundle_at(b, i)->name, bundle_at(b, i)->name_size);
        io_put_field_bytes(&root, 1, child.data, child.size);
        root.failed |= child.failed;
        io_buffer_free(&child);
    }
    io_put_field_bytes(message, 1, root.data, root.size);
    message->failed |= root.failed;
    io_buffer_free(&root);
    for (int64_t i = 0; i < bundle_count(b); i++) {
        io_buffer node = {0}, attribute = {0};
        io_put_field_bytes(&attribute, 1, VALUE_ATTRIBUTE, sizeof VALUE_ATTRIBUTE - 1);
        io_put_field_bytes(&attribute, 3, bundle_at(b, i)->name, bundle_at(b, i)->name_size);
        io_put_field_bytes(&node, 2, attribute.data, attribute.size);
        io_put_field_bytes(message, 1, node.data, node.size);
        message->failed |= node.failed || attribute.failed;
        io_buffer_free(&attribute);
        io_buffer_free(&node);
    }
    return !message->failed;
}

/* Two variables of one name both get the value. */
static void bind_name(restore *s, int live, int at)
{
    if (s->m.file_of[live] >= 0) return;
    s->m.file_of[live] = at;
    s->m.live_of[at] = live;
    s->r->matched = true;
}

static void match_names(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        const graph_node *node = &s->g.nodes[i];
        if (!graph_is_restored(node) || !s->m.paths[i] || s->m.file_of[i] >= 0) continue;
        const char *name =
            node->kind == GRAPH_VARIABLE ? ed_variable_name(node->object) : s->m.paths[i];
        int at = objects_child(&s->r->file, 0, name);
        if (at >= 0) bind_name(s, i, at);
    }
}

/* ---- The whole restore ----------------------------------------------------------------------- */

/* Before all else, `renames` matches what the program has already. What it does not have yet, of
 * layers that were never called, gets its name in the file's graph once all else is matched, and
 * then waits there as if the file had it. */
static bool check_renames(const restore *s)
{
    const ed_strings renames = s->options->renames;
    for (int64_t i = 0; i < renames.count; i++)
        if (!renames.values || !renames.values[i])
            return ed_fail(ED_INVALID_ARGUMENT, "restore: renames: a string is NULL");
    if (renames.count % 2)
        return ed_fail(ED_INVALID_ARGUMENT, "restore: renames must be pairs of paths");
    return true;
}

static bool room_for_names(restore *s)
{
    const ed_strings renames = s->options->renames;
    size_t nodes = 0, bytes = 0;
    for (int64_t i = 0; i + 1 < renames.count; i += 2) {
        const char *path = renames.values[i];
        bytes += strlen(path) + 1;
        nodes += 2;
        for (; *path; path++) nodes += *path == '/';
    }
    if (nodes > 1 << 28)
        return ed_fail(ED_OUT_OF_RANGE, "restore: renames have more than 2^28 parts");
    keras_slots_room(&s->r->file, &nodes, &bytes);
    return !nodes || objects_room(&s->r->file, (int)nodes, bytes);
}

static bool not_found(const restore *s, const char *name, const char *where)
{
    if (!ed_failed())
        ed_fail(ED_NOT_FOUND, "restore: %s: renames: %s not found in the %s", s->r->source.path,
                name, where);
    return false;
}

static bool duplicate(const restore *s, const char *here, const char *there)
{
    return ed_fail(ED_INVALID_ARGUMENT, "restore: %s: renames: duplicate %s or %s",
                   s->r->source.path, here, there);
}

static bool is_repeated(ed_strings renames, int64_t i)
{
    for (int64_t j = 0; j < i; j += 2)
        if (!strcmp(renames.values[j], renames.values[i]) ||
            !strcmp(renames.values[j + 1], renames.values[i + 1]))
            return true;
    return false;
}

/* The value, or all values of the object, will be created below a layer that was never called. */
static bool rename_later(restore *s, const char *here, const char *there, int at)
{
    const char *rest;
    int live = objects_live_before(&s->g, here, &rest);
    if (live < 0 || !rest || !s->g.nodes[live].open) return not_found(s, here, "program");
    if (s->m.live_of[at] >= 0) return duplicate(s, here, there);
    if (s->m.file_of[live] < 0) match_bind(&s->m, live, objects_spare(&s->r->file));
    s->linked = true;
    return objects_link(&s->r->file, s->m.file_of[live], rest, at);
}

static bool rename_one(restore *s, int64_t i, bool later)
{
    const char *here = s->options->renames.values[i], *there = s->options->renames.values[i + 1];
    int live = objects_live_at(&s->g, here);
    if ((live < 0) != later) return !ed_failed();
    int at = s->named ? objects_child(&s->r->file, 0, there) : objects_at(&s->r->file, there);
    if (at < 0) return not_found(s, there, "file");
    if (later && is_repeated(s->options->renames, i)) return duplicate(s, here, there);
    if (later) return rename_later(s, here, there, at);
    if (s->named)
        bind_name(s, live, at);
    else
        match_bind(&s->m, live, at);
    return s->m.file_of[live] == at || duplicate(s, here, there);
}

static bool rename_all(restore *s, bool later)
{
    for (int64_t i = 0; i + 1 < s->options->renames.count; i += 2)
        if (!rename_one(s, i, later)) return false;
    return true;
}

static bool read_graph(restore *s)
{
    ed_restoration *r = s->r;
    const bundle_entry *entry = bundle_find(s->file, BUNDLE_GRAPH);
    io_buffer message = {0};
    s->named = !entry;
    bool ok = entry ? bundle_string(s->file, entry, 0, &message) && !message.failed
                    : graph_of_names(s->file, &message);
    if (!ok) {
        io_buffer_free(&message);
        return false;
    }
    if (!objects_read(&r->file, &message, r->source.path) || !room_for_names(s)) return false;
    if (!keras_slots_link(&r->file, s->file)) return false;
    size_t n = (size_t)r->file.n_nodes;
    r->states = memory_zalloc(n * sizeof *r->states);
    r->names = memory_zalloc(n * sizeof *r->names);
    r->waiting = memory_zalloc(n * sizeof *r->waiting);
    return r->states && r->names && r->waiting;
}

static bool find_all(restore *s)
{
    if (!rename_all(s, false)) return false;
    match_bind(&s->m, 0, 0);
    if (s->named)
        match_names(s);
    else
        match_all(&s->m);
    if (!rename_all(s, true) || !look_at_program(s) || !look_at_kinds(s)) return false;
    if ((!s->named || s->linked) && !look_at_waiting(s)) return false;
    return look_at_rest(s);
}

static bool *used_flags(ed_strings patterns)
{
    return memory_zalloc(patterns.values ? (size_t)patterns.count + 1 : 1);
}

static bool allocate(restore *s)
{
    size_t n = (size_t)s->g.n_nodes, in_file = (size_t)s->r->file.n_nodes;
    s->only_used = used_flags(s->options->only);
    s->skip_used = used_flags(s->options->skip);
    s->names_left = s->r->file.size + (64 << 10);
    s->r->missing = memory_alloc(n * sizeof *s->r->missing);
    s->values = memory_zalloc(n * sizeof *s->values);
    s->waits = memory_zalloc(n * sizeof *s->waits);
    s->trails = memory_alloc(in_file * sizeof *s->trails);
    for (size_t i = 0; s->trails && i < in_file; i++) s->trails[i] = (trail){.child = -1};
    return s->r->missing && s->values && s->waits && s->trails && s->only_used && s->skip_used;
}

static void give_back(restore *s)
{
    for (int i = 0; s->values && i < s->g.n_nodes; i++) ed_release(s->values[i]);
    memory_free(s->values);
    memory_free(s->waits);
    memory_free(s->trails);
    memory_free(s->only_used);
    memory_free(s->skip_used);
    io_buffer_free(&s->unfit);
}

static bool restore_run(restore *s, const char *who)
{
    bool ok = allocate(s) && match_begin(&s->m, s->r, &s->g);
    if (ok) {
        ok = find_all(s) &&
             (s->options->partial || check_used(who, "only", s->options->only, s->only_used)) &&
             check_used(who, "skip", s->options->skip, s->skip_used) && complain(s, who) &&
             read_values(s);
        if (ok) put_values(s);
        match_end(&s->m);
    }
    give_back(s);
    return ok;
}

/* A NULL among the patterns would match nothing, and nothing would be restored. */
static bool check_strings(const char *who, const char *name, ed_strings list)
{
    bool ok = !list.values || list.count >= 0; /* values NULL: not given */
    for (int64_t i = 0; ok && list.values && i < list.count; i++) ok = list.values[i] != NULL;
    if (ok) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be strings, and their number >= 0, got %s%lld",
                   who, name, list.count < 0 ? "" : "a NULL among ", (long long)list.count);
}

static bool check_options(const char *who, const ed_restore_options *o)
{
    return check_strings(who, "only", o->only) && check_strings(who, "skip", o->skip) &&
           check_strings(who, "renames", o->renames);
}

/* A SavedModel has its variables in a folder of that name. */
static char *prefix_of(const char *path, bool reading)
{
    char *index = io_text("%s/variables/variables.index", path);
    char *prefix = index && !reading && io_exists(index) ? io_text("%s/variables/variables", path)
                   : index                               ? text_copy(path)
                                                         : NULL;
    memory_free(index);
    return prefix;
}

ed_restoration *checkpoint_restore(ed_checkpoint *checkpoint, const char *who, const char *path,
                                   const ed_restore_options *options, bool reading)
{
    static const ed_restore_options defaults;
    if (NULL_GIVEN(who, checkpoint, path)) return NULL;
    ED_SCOPE;
    restore s = {.options = options ? options : &defaults};
    if (!check_options(who, s.options)) return NULL;
    s.strict = !s.options->partial && !is_filtered(&s);
    char *prefix = prefix_of(path, reading);
    bundle *file = prefix ? bundle_open(who, prefix) : NULL;
    s.file = file;
    s.r = file ? scope_give(restoration_new(path, s.strict)) : NULL;
    memory_free(prefix);
    bool ok =
        s.r && check_renames(&s) && read_graph(&s) && checkpoint_graph(checkpoint, !reading, &s.g);
    if (ok) {
        ok = restore_run(&s, who);
        graph_free(&s.g);
    }
    ed_release(file);
    if (!ok) return NULL;
    restoration_join(s.r, checkpoint, reading);
    return ed_keep(s.r);
}

ed_restoration *ed_checkpoint_restore_with(ed_checkpoint *checkpoint, const char *path,
                                           const ed_restore_options *options)
{
    return checkpoint_restore(checkpoint, "checkpoint_restore", path, options, false);
}

ed_restoration *ed_checkpoint_read_with(ed_checkpoint *checkpoint, const char *path,
                                        const ed_restore_options *options)
{
    return checkpoint_restore(checkpoint, "checkpoint_read", path, options, true);
}
