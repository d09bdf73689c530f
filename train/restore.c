#include "train/restore.h"
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * A restore goes in steps, and only the last one changes anything:
 *
 *     read the file's graph, make the program's, match the two
 *     look at every value: is it here, is it there, is it of one dtype and shape?   -> error
 *     read every value that is wanted or waited for, checksums verified             -> error
 *     ask cells whether they can take what was read                                 -> error
 *     put the values in their places
 *
 * What waits is read too, and kept by the restoration, which waiting objects hold: the file may be
 * gone by the time a layer is called first.
 */

/* ---- The object ------------------------------------------------------------------------------ */

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

static void destroy(void *object)
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
    memory_free(r->source.path);
    objects_free(&r->file);
    memory_free(r);
}

static const object_class restoration_class = {.name = "restoration", .destroy = destroy};

const char *restore_name(const ed_restoration *r, int at)
{
    if (r->names[at]) return r->names[at];
    const file_node *n = &r->file.nodes[at];
    return n->attributes ? r->file.attributes[n->attribute].key : "";
}

static bool same_value(const bound *b, const graph_node *node)
{
    if (node->kind == GRAPH_VARIABLE) return b->id == ((const ed_tensor *)node->object)->id;
    return !b->id && b->cell == node->object && b->get == node->state.get;
}

int restore_index(const ed_restoration *r, const graph_node *node)
{
    for (int i = 0; i < r->n_bound; i++)
        if (same_value(&r->bound[i], node)) return i;
    return -1;
}

int restore_place(const ed_restoration *r, const graph_node *node)
{
    int i = restore_index(r, node);
    return i < 0 ? -1 : r->bound[i].at;
}

bool restore_note(ed_restoration *r, const graph_node *node, int at)
{
    if (r->n_bound == r->bound_capacity) {
        int more = r->bound_capacity ? 2 * r->bound_capacity : 32;
        bound *grown = memory_grow(r->bound, (size_t)r->bound_capacity * sizeof *grown,
                                   (size_t)more * sizeof *grown);
        if (!grown) return false;
        r->bound = grown;
        r->bound_capacity = more;
    }
    bool is_variable = node->kind == GRAPH_VARIABLE;
    r->bound[r->n_bound++] = (bound){.id = is_variable ? ((const ed_tensor *)node->object)->id : 0,
                                     .cell = is_variable ? NULL : node->object,
                                     .get = is_variable ? NULL : node->state.get,
                                     .at = at};
    return true;
}

/* ---- A restore in the making ----------------------------------------------------------------- */

typedef struct restore {
    ed_restoration *r;
    match m;
    graph g;
    const bundle *file;
    const ed_restore_options *options;
    ed_tensor **values; /* for nodes of the program: what they are given */
    io_buffer unfit;    /* lines of what has another dtype or shape */
    bool strict, named; /* named: by names of variables, the file has no graph */
} restore;

static bool is_filtered(const restore *s)
{
    return s->options->only.values || s->options->skip.values;
}

static bool matches(ed_texts patterns, const char *path)
{
    for (int64_t i = 0; i < patterns.count; i++)
        if (patterns.values[i] && fnmatch(patterns.values[i], path, 0) == 0) return true;
    return false;
}

static bool is_wanted(const restore *s, const char *path)
{
    const ed_restore_options *o = s->options;
    return (!o->only.values || matches(o->only, path)) && !matches(o->skip, path);
}

/* ---- Looking at values ----------------------------------------------------------------------- */

static bool is_number(ed_dtype dtype)
{
    return dtype == ED_FLOAT32 || dtype == ED_FLOAT64 || dtype == ED_INT32 || dtype == ED_INT64;
}

/* A variable takes its own dtype; a number of ours, which is no variable, any number. */
static bool fits(const graph_node *node, const bundle_entry *entry)
{
    ed_dtype dtype = io_dtype_to(entry->dtype);
    if (node->kind == GRAPH_CELL) {
        const ed_state *cell = &node->state;
        return (dtype == cell->dtype || (is_number(dtype) && is_number(cell->dtype))) &&
               entry->rank == (cell->count >= 0) &&
               (cell->count < 0 || entry->shape[0] == cell->count);
    }
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

/* What a bound value of the program gets: notes where it lies, or that it does not fit. */
static bool look_at_value(restore *s, int live, int at)
{
    const graph_node *node = &s->g.nodes[live];
    const char *key = objects_key(&s->r->file, at), *path = s->m.paths[live];
    if (!key) return restore_note(s->r, node, at) && (!path || note_missing(s, path));
    const bundle_entry *entry = bundle_find(s->file, key);
    if (!entry)
        return ed_fail(ED_NOT_FOUND, "restore: %s: the file has no entry %s", s->r->source.path,
                       key),
               false;
    if (!name_value(s, at, path ? path : key)) return false;
    if (!fits(node, entry)) {
        io_put_format(&s->unfit, "%s%s is %s here and %s in the file", s->unfit.size ? ", " : "",
                      restore_name(s->r, at), text_of_node(node).s, text_of_entry(entry).s);
        return true;
    }
    s->r->states[at] = FILE_RESTORED;
    return restore_note(s->r, node, at);
}

static bool look_at_program(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        if (!graph_is_value(&s->g.nodes[i])) continue;
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

/* ---- What waits ------------------------------------------------------------------------------ */

static void wait_for(restore *s, int at, const char *path)
{
    ed_restoration *r = s->r;
    if (r->states[at] != FILE_NOTHING || s->m.live_of[at] >= 0 || !objects_key(&r->file, at))
        return;
    r->states[at] = is_wanted(s, path) ? FILE_WAITING : FILE_SKIPPED;
}

/* All below a node of the file, for an object whose children may come. Names of what was found on
 * the way are kept: they are the paths that the values will have. */
static bool wait_below(restore *s, int top, const char *path)
{
    ed_restoration *r = s->r;
    int *stack = memory_alloc((size_t)r->file.n_nodes * sizeof *stack), depth = 0;
    bool ok = stack && name_value(s, top, path);
    if (ok) stack[depth++] = top;
    while (ok && depth) {
        int from = stack[--depth];
        const file_node *n = &r->file.nodes[from];
        for (int i = 0; ok && i < n->children; i++) {
            const file_child *child = &r->file.children[n->child + i];
            int to = child->node;
            if (r->names[to] || s->m.live_of[to] >= 0) continue;
            ok = (r->names[to] = io_text("%s/%s", r->names[from], child->name));
            if (!ok) break;
            wait_for(s, to, r->names[to]);
            stack[depth++] = to;
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
    bool ok = path && (s->r->names[list] || wait_below(s, list, path));
    memory_free(path);
    return ok;
}

static bool wait_for_slots(restore *s, const graph_slot *slot)
{
    int at = s->m.file_of[slot->optimizer];
    if (at < 0) return true;
    const file_node *n = &s->r->file.nodes[at];
    for (int i = 0; i < n->slots; i++) {
        const file_slot *old = &s->r->file.slots[n->slot + i];
        if (!strcmp(old->name, slot->legacy))
            wait_for(s, old->value, restore_name(s->r, old->value));
    }
    return wait_for_list(s, slot->optimizer, slot->list);
}

static bool look_at_waiting(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++)
        if (s->g.nodes[i].open && s->m.file_of[i] >= 0 && s->m.paths[i] &&
            !wait_below(s, s->m.file_of[i], s->m.paths[i]))
            return false;
    for (int i = 0; i < s->g.n_slots; i++)
        if (s->g.slots[i].variable < 0 && !wait_for_slots(s, &s->g.slots[i])) return false;
    return true;
}

/* What nobody took and nobody waits for. Values are judged by their names in the file. */
static void look_at_rest(restore *s)
{
    ed_restoration *r = s->r;
    for (int i = 0; i < r->file.n_nodes; i++) {
        if (r->states[i] != FILE_NOTHING || !r->file.nodes[i].attributes) continue;
        bool taken = s->m.live_of[i] >= 0 && graph_is_value(&s->g.nodes[s->m.live_of[i]]);
        if (taken && s->m.file_of[s->m.live_of[i]] != i)
            r->states[i] = FILE_RESTORED;
        else if (!s->named && is_wanted(s, restore_name(r, i)))
            r->states[i] = FILE_UNEXPECTED;
        else
            r->states[i] = FILE_SKIPPED;
    }
}

/* ---- What is wrong --------------------------------------------------------------------------- */

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

/* The counter that TensorFlow expects or not, according to which of two functions is called, is no
 * reason to refuse a file. */
static bool is_counter(const char *name)
{
    return !strcmp(name, "save_counter") || !strcmp(name, "save_counter" VALUE_SUFFIX);
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

static bool complain(restore *s, const char *who)
{
    io_buffer b = {0};
    if (s->unfit.size) {
        io_put_format(&b, "; other dtype or shape: ");
        io_put(&b, s->unfit.data, s->unfit.size);
    }
    if (s->strict) {
        restore_list(&b, "; missing in the file: ", s->r->n_missing, missing_name, s->r);
        restore_list(&b, "; unexpected in the file: ", s->r->file.n_nodes, unexpected_name, s->r);
    }
    if (!b.size && !b.failed && !s->unfit.failed) return true;
    io_put_u8(&b, 0);
    if (!b.failed && !s->unfit.failed)
        ed_fail(ED_INVALID_ARGUMENT, "%s: %s does not fit what is to be restored%s%s", who,
                s->r->source.path, (const char *)b.data,
                s->unfit.size ? "" : " (.partial = true takes what there is)");
    io_buffer_free(&b);
    return false;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A number of the file as the cell's dtype, exactly; NULL, with an error, if it can't be one. */
static ed_tensor *converted(const restore *s, int at, ed_tensor *read, ed_dtype dtype)
{
    if (read->dtype == dtype) return read;
    ed_tensor *number = tensor_new(dtype, read->rank, read->shape);
    for (int64_t i = 0; number && i < read->size; i++) {
        double x = dtype_load(read->dtype, read->data, i);
        bool whole = dtype == ED_INT64 || dtype == ED_INT32;
        if (whole && (x != floor(x) || fabs(x) > (dtype == ED_INT64 ? 0x1p53 : 0x1p31 - 1))) {
            ed_fail(ED_INVALID_ARGUMENT, "restore: %s: %s holds %g, where a whole number is kept",
                    s->r->source.path, restore_name(s->r, at), x);
            ed_release(number);
            number = NULL;
            break;
        }
        dtype_store(dtype, number->data, i, x);
    }
    ed_release(read);
    return number;
}

static ed_tensor *read_cell(const restore *s, int live, int at)
{
    const graph_node *node = &s->g.nodes[live];
    ed_tensor *value = bundle_tensor(s->file, bundle_find(s->file, objects_key(&s->r->file, at)));
    if (value) value = converted(s, at, value, node->state.dtype);
    const char *why =
        value && node->state.refuses ? node->state.refuses(node->object, value->data) : NULL;
    if (!why) return value;
    ed_fail(ED_INVALID_ARGUMENT, "restore: %s: %s can't be taken: %s", s->r->source.path,
            restore_name(s->r, at), why);
    ed_release(value);
    return NULL;
}

static bool read_values(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        const graph_node *node = &s->g.nodes[i];
        int at = s->m.file_of[i];
        if (!graph_is_value(node) || at < 0 || s->r->states[at] != FILE_RESTORED) continue;
        s->values[i] =
            node->kind == GRAPH_CELL
                ? read_cell(s, i, at)
                : bundle_tensor(s->file, bundle_find(s->file, objects_key(&s->r->file, at)));
        if (!s->values[i]) return false;
    }
    for (int i = 0; i < s->r->file.n_nodes; i++) {
        if (s->r->states[i] != FILE_WAITING) continue;
        const bundle_entry *entry = bundle_find(s->file, objects_key(&s->r->file, i));
        if (!entry)
            return ed_fail(ED_NOT_FOUND, "restore: %s: the file has no entry %s", s->r->source.path,
                           objects_key(&s->r->file, i)),
                   false;
        if (!(s->r->waiting[i] = bundle_tensor(s->file, entry))) return false;
    }
    return true;
}

/* ---- The change, which can't fail ------------------------------------------------------------ */

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
        if (s->g.nodes[i].kind == GRAPH_OBJECT && (!s->named || s->strict)) waiting_begin(&s->m, i);
    }
}

/* ---- Files without a graph ------------------------------------------------------------------- */

/* A graph is made up for them: every key is a child of the root, and a value. */
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

static void match_names(restore *s)
{
    for (int i = 0; i < s->g.n_nodes; i++) {
        const graph_node *node = &s->g.nodes[i];
        if (!graph_is_value(node) || !s->m.paths[i] || s->m.file_of[i] >= 0) continue;
        const char *name = node->kind == GRAPH_VARIABLE ? ed_name(node->object) : s->m.paths[i];
        int at = objects_child(&s->r->file, 0, name);
        if (at < 0) continue;
        s->m.file_of[i] = at; /* two variables of one name both get the value */
        s->m.live_of[at] = i;
        s->r->matched = true;
    }
}

/* ---- All together ---------------------------------------------------------------------------- */

static bool rename_one(restore *s, const char *here, const char *there)
{
    int live = -1,
        at = s->named ? objects_child(&s->r->file, 0, there) : objects_at(&s->r->file, there);
    for (int i = 0; i < s->g.n_nodes && live < 0; i++)
        if (s->m.paths[i] && !strcmp(s->m.paths[i], here)) live = i;
    if (live >= 0 && at >= 0) {
        match_bind(&s->m, live, at);
        return true;
    }
    if (!ed_failed())
        ed_fail(ED_NOT_FOUND, "restore: %s: renames: there is no %s %s", s->r->source.path,
                live < 0 ? here : there, live < 0 ? "here" : "in the file");
    return false;
}

static bool rename_all(restore *s)
{
    const ed_texts renames = s->options->renames;
    for (int64_t i = 0; i + 1 < renames.count; i += 2) {
        if (!renames.values[i] || !renames.values[i + 1])
            return ed_fail(ED_INVALID_ARGUMENT, "restore: renames: a text is NULL"), false;
        if (!rename_one(s, renames.values[i], renames.values[i + 1])) return false;
    }
    if (renames.count % 2)
        return ed_fail(ED_INVALID_ARGUMENT, "restore: renames: pairs of paths are expected"), false;
    return true;
}

static ed_restoration *new_restoration(const char *path, bool strict)
{
    ed_restoration *r = object_new(&restoration_class, sizeof *r);
    if (!r) return NULL;
    r->source = waiting_source;
    r->source.object = (ed_object){1, &restoration_class};
    r->strict = strict;
    if ((r->source.path = text_copy(path))) return r;
    ed_release(r);
    return NULL;
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
    if (!objects_read(&r->file, &message, r->source.path)) return false;
    size_t n = (size_t)r->file.n_nodes;
    r->states = memory_zalloc(n * sizeof *r->states);
    r->names = memory_zalloc(n * sizeof *r->names);
    r->waiting = memory_zalloc(n * sizeof *r->waiting);
    return r->states && r->names && r->waiting;
}

static bool find_all(restore *s)
{
    if (!rename_all(s)) return false;
    match_bind(&s->m, 0, 0);
    if (s->named)
        match_names(s);
    else
        match_all(&s->m);
    if (!look_at_program(s) || (!s->named && !look_at_waiting(s))) return false;
    look_at_rest(s);
    return true;
}

static bool run(restore *s, const ed_checkpoint *checkpoint, const char *who)
{
    size_t n = (size_t)s->g.n_nodes;
    (void)checkpoint;
    s->r->missing = memory_alloc(n * sizeof *s->r->missing);
    s->values = memory_zalloc(n * sizeof *s->values);
    bool ok = s->r->missing && s->values && match_begin(&s->m, s->r, &s->g);
    if (ok) {
        ok = find_all(s) && complain(s, who) && read_values(s);
        if (ok) put_values(s);
        match_end(&s->m);
    }
    for (size_t i = 0; s->values && i < n; i++) ed_release(s->values[i]);
    memory_free(s->values);
    io_buffer_free(&s->unfit);
    return ok;
}

static void join_checkpoint(ed_restoration *r, ed_checkpoint *c, bool reading)
{
    r->counted = !reading;
    r->checkpoint = c;
    r->next = c->restorations;
    c->restorations = r;
}

/* A SavedModel keeps its variables in a folder of that name. */
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
    if (!checkpoint || !path) return ed_fail(ED_INVALID_ARGUMENT, "%s: NULL given", who);
    ED_SCOPE;
    restore s = {.options = options ? options : &defaults};
    s.strict = !s.options->partial && !is_filtered(&s);
    char *prefix = prefix_of(path, reading);
    bundle *file = prefix ? bundle_open(who, prefix) : NULL;
    s.file = file;
    s.r = file ? new_restoration(path, s.strict) : NULL;
    memory_free(prefix);
    bool ok = s.r && read_graph(&s) && checkpoint_graph(checkpoint, !reading, &s.g);
    if (ok) {
        ok = run(&s, checkpoint, who);
        graph_free(&s.g);
    }
    ed_release(file);
    if (ok) {
        join_checkpoint(s.r, checkpoint, reading);
        return ed_keep(scope_give(s.r));
    }
    ed_release(s.r);
    return NULL;
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
