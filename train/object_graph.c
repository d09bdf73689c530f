#include "train/object_graph.h"
#include <stdlib.h>
#include <string.h>

/*
 * Names stay in the message's bytes. A name's length precedes it there, so moving the name one byte
 * to the front, over a length that was read already, makes room for the 0 after it.
 *
 * Lookups use sorted arrays, not hash tables: no choice of names makes them slow.
 */

/* ---- Reading --------------------------------------------------------------------------------- */

#define APPEND(f, what, count, capacity)                                                           \
    (graph_reserve((void **)&(f)->what, sizeof *(f)->what, (f)->count, &(f)->capacity)             \
         ? &(f)->what[(f)->count++]                                                                \
         : NULL)

static const char *text_in(io_span name)
{
    char *to = (char *)name.data - 1;
    memmove(to, name.data, name.size);
    to[name.size] = 0;
    return to;
}

/* A name with a 0 inside would be read as a shorter one. */
static bool is_name(io_span name)
{
    return !memchr(name.data, 0, name.size);
}

static bool read_child(file_graph *f, io_span message)
{
    io_cursor c = io_cursor_on(message.data, message.size);
    io_field field;
    uint64_t node = 0;
    const char *name = "";
    while (io_next_field(&c, &field)) {
        if (field.number == 1 && field.type == IO_VARINT) node = field.value;
        if (field.number == 2 && field.type == IO_BYTES) {
            if (!is_name(field.bytes)) return false;
            name = text_in(field.bytes);
        }
    }
    if (!io_ok(&c) || node > INT32_MAX) return false;
    file_child *child = APPEND(f, children, n_children, child_capacity);
    if (child) *child = (file_child){.name = name, .parent = f->n_nodes - 1, .node = (int)node};
    return child;
}

static bool read_attribute(file_graph *f, io_span message)
{
    io_cursor c = io_cursor_on(message.data, message.size);
    io_field field;
    const char *texts[3] = {"", "", ""};
    while (io_next_field(&c, &field))
        if (field.number >= 1 && field.number <= 3 && field.type == IO_BYTES) {
            if (!is_name(field.bytes)) return false;
            texts[field.number - 1] = text_in(field.bytes);
        }
    if (!io_ok(&c)) return false;
    file_attribute *a = APPEND(f, attributes, n_attributes, attribute_capacity);
    if (a) *a = (file_attribute){texts[0], texts[1], texts[2]};
    return a;
}

static bool read_slot(file_graph *f, io_span message)
{
    io_cursor c = io_cursor_on(message.data, message.size);
    io_field field;
    uint64_t nodes[2] = {0, 0};
    const char *name = "";
    while (io_next_field(&c, &field)) {
        if (field.number == 1 && field.type == IO_VARINT) nodes[0] = field.value;
        if (field.number == 3 && field.type == IO_VARINT) nodes[1] = field.value;
        if (field.number == 2 && field.type == IO_BYTES) {
            if (!is_name(field.bytes)) return false;
            name = text_in(field.bytes);
        }
    }
    if (!io_ok(&c) || nodes[0] > INT32_MAX || nodes[1] > INT32_MAX) return false;
    file_slot *slot = APPEND(f, slots, n_slots, slot_capacity);
    if (slot) *slot = (file_slot){name, (int)nodes[0], (int)nodes[1]};
    return slot;
}

static bool read_node(file_graph *f, io_span message)
{
    file_node *node = APPEND(f, nodes, n_nodes, node_capacity);
    if (!node) return false;
    *node = (file_node){.child = f->n_children, .attribute = f->n_attributes, .slot = f->n_slots};
    io_cursor c = io_cursor_on(message.data, message.size);
    io_field field;
    bool ok = true;
    while (ok && io_next_field(&c, &field)) {
        if (field.type != IO_BYTES) continue;
        if (field.number == 1) ok = read_child(f, field.bytes);
        if (field.number == 2) ok = read_attribute(f, field.bytes);
        if (field.number == 3) ok = read_slot(f, field.bytes);
    }
    node->children = f->n_children - node->child;
    node->attributes = f->n_attributes - node->attribute;
    node->slots = f->n_slots - node->slot;
    return ok && io_ok(&c);
}

static bool numbers_exist(const file_graph *f)
{
    for (int i = 0; i < f->n_children; i++)
        if (f->children[i].node >= f->n_nodes) return false;
    for (int i = 0; i < f->n_slots; i++)
        if (f->slots[i].variable >= f->n_nodes || f->slots[i].value >= f->n_nodes) return false;
    return f->n_nodes > 0;
}

/* ---- Looking up ------------------------------------------------------------------------------ */

static int either(int a, int b)
{
    return (a > b) - (a < b);
}

/* Of two children with one name, the first in the file comes first. */
static int compare_names(const void *a, const void *b, void *of)
{
    const file_child *children = ((const file_graph *)of)->children;
    int x = *(const int *)a, y = *(const int *)b;
    int order = strcmp(children[x].name, children[y].name);
    return order ? order : either(x, y);
}

static int compare_nodes(const void *a, const void *b, void *of)
{
    const file_child *children = ((const file_graph *)of)->children;
    int x = *(const int *)a, y = *(const int *)b;
    int order = either(children[x].node, children[y].node);
    return order ? order : either(x, y);
}

static int compare_slots(const void *a, const void *b)
{
    const file_slot *x = a, *y = b;
    int order = either(x->variable, y->variable);
    if (!order) order = strcmp(x->name, y->name);
    return order ? order : either(x->value, y->value);
}

static int *sorted_children(const file_graph *f, int (*compare)(const void *, const void *, void *))
{
    int *order = memory_alloc(((size_t)f->n_children + 1) * sizeof *order);
    for (int i = 0; order && i < f->n_children; i++) order[i] = i;
    for (int i = 0; order && i < f->n_nodes; i++)
        if (f->nodes[i].children > 1)
            qsort_r(order + f->nodes[i].child, (size_t)f->nodes[i].children, sizeof *order, compare,
                    (void *)f);
    return order;
}

static bool sort_all(file_graph *f)
{
    for (int i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].slots > 1)
            qsort(f->slots + f->nodes[i].slot, (size_t)f->nodes[i].slots, sizeof *f->slots,
                  compare_slots);
    f->by_name = sorted_children(f, compare_names);
    f->by_node = f->by_name ? sorted_children(f, compare_nodes) : NULL;
    return f->by_node;
}

/* The index of the child of that name, -1 if there is none. */
static int find_child(const file_graph *f, int node, const char *name)
{
    if (node < 0) return -1;
    int low = f->nodes[node].child, end = low + f->nodes[node].children, high = end;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(f->children[f->by_name[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    int found = low < end ? f->by_name[low] : -1;
    return found >= 0 && !strcmp(f->children[found].name, name) ? found : -1;
}

int objects_child(const file_graph *f, int node, const char *name)
{
    int child = find_child(f, node, name);
    return child < 0 ? -1 : f->children[child].node;
}

const char *objects_child_name(const file_graph *f, int node, int child)
{
    if (node < 0 || child < 0) return NULL;
    int low = f->nodes[node].child, end = low + f->nodes[node].children, high = end;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (f->children[f->by_node[middle]].node < child)
            low = middle + 1;
        else
            high = middle;
    }
    const file_child *found = low < end ? &f->children[f->by_node[low]] : NULL;
    return found && found->node == child ? found->name : NULL;
}

int objects_slot(const file_graph *f, int node, int of, const char *name)
{
    const file_slot wanted = {name, of, -1}; /* before all others of that name */
    int low = f->nodes[node].slot, end = low + f->nodes[node].slots, high = end;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare_slots(&f->slots[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const file_slot *found = low < end ? &f->slots[low] : NULL;
    return found && found->variable == of && !strcmp(found->name, name) ? found->value : -1;
}

bool objects_read(file_graph *f, io_buffer *message, const char *path)
{
    *f = (file_graph){.bytes = message->data, .size = message->size};
    io_cursor c = io_cursor_on(message->data, message->size);
    *message = (io_buffer){0};
    io_field field;
    bool ok = true, had_failed = ed_failed();
    while (ok && io_next_field(&c, &field))
        if (field.number == 1 && field.type == IO_BYTES) ok = read_node(f, field.bytes);
    if (ok && io_ok(&c) && numbers_exist(f) && sort_all(f)) return true;
    objects_free(f);
    if (had_failed || !ed_failed())
        ed_fail(ED_DATA_LOSS, "restore: %s: its object graph is damaged", path);
    return false;
}

void objects_free(file_graph *f)
{
    memory_free(f->nodes);
    memory_free(f->children);
    memory_free(f->attributes);
    memory_free(f->slots);
    memory_free(f->bytes);
    memory_free(f->by_name);
    memory_free(f->by_node);
    memory_free(f->added);
    *f = (file_graph){0};
}

/* Copies the next name of a path, unescaped, to `name`; returns what follows it, NULL at the
 * end. */
static const char *next_name(const char *path, char *name)
{
    while (*path && *path != '/') {
        bool escape = path[0] == '.' && (path[1] == '.' || path[1] == 'S');
        *name++ = !escape ? *path : path[1] == 'S' ? '/' : '.';
        path += escape ? 2 : 1;
    }
    *name = 0;
    return *path ? path + 1 : NULL;
}

/* Finds a node by a path; for both graphs. */
static int walk(const void *in, int (*child)(const void *, int, const char *), const char *path)
{
    char *name = memory_alloc(strlen(path) + 1);
    if (!name) return -1;
    int node = 0;
    for (const char *rest = *path ? path : NULL; rest && node >= 0;) {
        rest = next_name(rest, name);
        node = child(in, node, name);
    }
    memory_free(name);
    return node;
}

static int file_child_of(const void *f, int node, const char *name)
{
    return objects_child(f, node, name);
}

static int live_child_of(const void *g, int node, const char *name)
{
    return graph_child(g, node, name);
}

int objects_at(const file_graph *f, const char *path)
{
    return walk(f, file_child_of, path);
}

int objects_live_at(const graph *g, const char *path)
{
    return walk(g, live_child_of, path);
}

int objects_live_before(const graph *g, const char *path, const char **rest)
{
    char *name = memory_alloc(strlen(path) + 1);
    int node = name ? 0 : -1;
    for (*rest = *path ? path : NULL; name && *rest;) {
        const char *behind = next_name(*rest, name);
        int child = graph_child(g, node, name);
        if (child < 0) break;
        node = child;
        *rest = behind;
    }
    memory_free(name);
    return node;
}

const char *objects_key(const file_graph *f, int node)
{
    const file_node *n = &f->nodes[node];
    for (int i = 0; i < n->attributes; i++)
        if (!strcmp(f->attributes[n->attribute + i].name, VALUE_ATTRIBUTE))
            return f->attributes[n->attribute + i].key;
    return NULL;
}

/* ---- Adding names ---------------------------------------------------------------------------- */

bool objects_room(file_graph *f, int nodes, size_t bytes)
{
    f->spare = f->n_nodes;
    for (int i = 0; i < nodes; i++) {
        file_node *node = APPEND(f, nodes, n_nodes, node_capacity);
        if (!node) return false;
        *node = (file_node){0};
    }
    return (f->added = memory_alloc(bytes));
}

int objects_spare(file_graph *f)
{
    return f->spare++;
}

static bool grow_order(int **array, int old, int more)
{
    int *grown = memory_grow(*array, (size_t)old * sizeof *grown, (size_t)more * sizeof *grown);
    if (grown) *array = grown;
    return grown;
}

/* Moves a node's children to the end, where there is room for one more. */
static bool move_to_end(file_graph *f, int node)
{
    file_node *n = &f->nodes[node];
    const int old = f->n_children, first = n->child, count = n->children;
    const bool there = first + count == old;
    if (!grow_order(&f->by_name, old + 1, old + count + 2) ||
        !grow_order(&f->by_node, old + 1, old + count + 2))
        return false;
    for (int i = 0; !there && i < count; i++) {
        file_child *child = APPEND(f, children, n_children, child_capacity);
        if (!child) return false;
        *child = f->children[first + i];
    }
    if (!there) n->child = old;
    return true;
}

/* The order of a node's children after a change. */
static void sort_children(file_graph *f, int node)
{
    const file_node *n = &f->nodes[node];
    for (int i = n->child; i < n->child + n->children; i++) f->by_name[i] = f->by_node[i] = i;
    qsort_r(f->by_name + n->child, (size_t)n->children, sizeof(int), compare_names, f);
    qsort_r(f->by_node + n->child, (size_t)n->children, sizeof(int), compare_nodes, f);
}

/* `name` leads from a node to another one, and no longer elsewhere. */
static bool set_child(file_graph *f, int node, const char *name, int to)
{
    int at = find_child(f, node, name);
    if (at < 0) {
        if (!move_to_end(f, node)) return false;
        file_child *child = APPEND(f, children, n_children, child_capacity);
        if (!child) return false;
        *child = (file_child){.name = name, .parent = node};
        f->nodes[node].children++;
        at = f->n_children - 1;
    }
    f->children[at].node = to;
    sort_children(f, node);
    return true;
}

bool objects_link(file_graph *f, int from, const char *path, int to)
{
    for (const char *rest = path; rest;) {
        char *name = f->added + f->added_size;
        rest = next_name(rest, name);
        f->added_size += strlen(name) + 1;
        int child = rest ? objects_child(f, from, name) : to;
        if (child < 0) child = objects_spare(f);
        if (!set_child(f, from, name, child)) return false;
        from = child;
    }
    return true;
}

bool objects_link_list(file_graph *f, int from, const char *name, const int *to, int n)
{
    const int list = objects_spare(f), first = f->n_children;
    for (int i = 0; i < n; i++) {
        if (to[i] < 0) continue;
        file_child *child = APPEND(f, children, n_children, child_capacity);
        if (!child) return false;
        char *number = f->added + f->added_size;
        f->added_size += (size_t)sprintf(number, "%d", i) + 1;
        *child = (file_child){.name = number, .parent = list, .node = to[i]};
    }
    if (!grow_order(&f->by_name, first + 1, f->n_children + 1) ||
        !grow_order(&f->by_node, first + 1, f->n_children + 1))
        return false;
    f->nodes[list].child = first;
    f->nodes[list].children = f->n_children - first;
    sort_children(f, list);
    char *copy = strcpy(f->added + f->added_size, name);
    f->added_size += strlen(name) + 1;
    return set_child(f, from, copy, list);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* order[i] is the node that has number i. */
static int *written_order(const graph *g, int *numbers, int *count)
{
    int *order = memory_alloc((size_t)g->n_nodes * sizeof *order);
    if (!order) return NULL;
    for (int i = 0; i < g->n_nodes; i++) numbers[i] = -1;
    order[0] = numbers[0] = 0;
    *count = 1;
    for (int i = 0; i < *count; i++)
        for (int e = g->nodes[order[i]].first; e >= 0; e = g->edges[e].next) {
            const graph_edge *edge = &g->edges[e];
            if (!(edge->use & GRAPH_WRITE) || numbers[edge->to] >= 0) continue;
            order[numbers[edge->to] = (*count)++] = edge->to;
        }
    return order;
}

int *objects_numbers(const graph *g, int *count)
{
    int *numbers = memory_alloc((size_t)g->n_nodes * sizeof *numbers);
    int *order = numbers ? written_order(g, numbers, count) : NULL;
    memory_free(order);
    if (order) return numbers;
    memory_free(numbers);
    return NULL;
}

/* The nodes from which GRAPH_WRITE names lead to node i: from[first[i]] ... from[first[i + 1] -
 * 1]. */
typedef struct backward {
    int *first, *from;
} backward;

static bool turn_around(const graph *g, backward *b)
{
    b->first = memory_zalloc(((size_t)g->n_nodes + 2) * sizeof *b->first);
    b->from = memory_alloc(((size_t)g->n_edges + 1) * sizeof *b->from);
    if (!b->first || !b->from) return false;
    int *end = b->first + 1; /* end[i] grows to the end of node i's range */
    for (int e = 0; e < g->n_edges; e++)
        if (g->edges[e].use & GRAPH_WRITE) end[g->edges[e].to + 1]++;
    for (int i = 0; i < g->n_nodes; i++) end[i + 1] += end[i];
    for (int e = 0; e < g->n_edges; e++)
        if (g->edges[e].use & GRAPH_WRITE) b->from[end[g->edges[e].to]++] = g->edges[e].from;
    return true;
}

/* Whether there are values at or below each node. */
static bool *find_values(const graph *g, char *const *paths)
{
    backward b = {0};
    bool *has = memory_zalloc((size_t)g->n_nodes);
    int *queue = memory_alloc((size_t)g->n_nodes * sizeof *queue), end = 0;
    bool ok = has && queue && turn_around(g, &b);
    for (int i = 0; ok && i < g->n_nodes; i++)
        if (graph_is_value(&g->nodes[i]) && paths[i]) has[queue[end++] = i] = true;
    for (int i = 0; ok && i < end; i++)
        for (int k = b.first[queue[i]]; k < b.first[queue[i] + 1]; k++)
            if (!has[b.from[k]]) has[queue[end++] = b.from[k]] = true;
    memory_free(b.first);
    memory_free(b.from);
    memory_free(queue);
    if (ok) return has;
    memory_free(has);
    return NULL;
}

static void write_children(const graph *g, int node, const int *numbers, io_buffer *to)
{
    for (int e = g->nodes[node].first; e >= 0; e = g->edges[e].next) {
        const graph_edge *edge = &g->edges[e];
        if (!(edge->use & GRAPH_WRITE)) continue;
        io_buffer child = {0};
        io_put_field_varint(&child, 1, (uint64_t)numbers[edge->to]);
        io_put_field_bytes(&child, 2, edge->name, strlen(edge->name));
        io_put_field_bytes(to, 1, child.data, child.size);
        to->failed |= child.failed;
        io_buffer_free(&child);
    }
}

static void write_value(const graph_node *node, const char *path, io_buffer *to)
{
    io_buffer attribute = {0}, key = {0};
    bool named = node->kind == GRAPH_VARIABLE && ed_is_variable(node->object);
    const char *name = named ? ed_variable_name(node->object) : path;
    io_put(&key, path, strlen(path));
    io_put(&key, VALUE_SUFFIX, sizeof VALUE_SUFFIX - 1);
    io_put_field_bytes(&attribute, 1, VALUE_ATTRIBUTE, sizeof VALUE_ATTRIBUTE - 1);
    io_put_field_bytes(&attribute, 2, name, strlen(name));
    io_put_field_bytes(&attribute, 3, key.data, key.size);
    io_put_field_bytes(to, 2, attribute.data, attribute.size);
    to->failed |= attribute.failed || key.failed;
    io_buffer_free(&attribute);
    io_buffer_free(&key);
}

/* Child number 0 is written although it is the default: only the root can be its own child. */
bool objects_write(const graph *g, char *const *paths, io_buffer *message)
{
    int count = 0, *numbers = memory_alloc((size_t)g->n_nodes * sizeof *numbers);
    int *order = numbers ? written_order(g, numbers, &count) : NULL;
    bool *has = order ? find_values(g, paths) : NULL;
    for (int i = 0; has && i < count; i++) {
        io_buffer node = {0};
        write_children(g, order[i], numbers, &node);
        if (graph_is_value(&g->nodes[order[i]]) && paths[order[i]])
            write_value(&g->nodes[order[i]], paths[order[i]], &node);
        io_put_field_bytes(&node, 5, has[order[i]] ? "\x08\x01" : "", has[order[i]] ? 2 : 0);
        io_put_field_bytes(message, 1, node.data, node.size);
        message->failed |= node.failed;
        io_buffer_free(&node);
    }
    bool ok = has && !message->failed;
    memory_free(numbers);
    memory_free(order);
    memory_free(has);
    return ok;
}
