#include "train/objects.h"
#include <string.h>

/*
 * Names stay where they are in the message. A name is preceded by its length there, so moving it
 * one byte to the front, over a length that was read already, makes room for the 0 behind it.
 */

/* ---- Reading --------------------------------------------------------------------------------- */

static bool room(void **array, size_t size, int count, int *capacity)
{
    if (count < *capacity) return true;
    int more = *capacity ? 2 * *capacity : 16;
    void *grown = memory_grow(*array, (size_t)*capacity * size, (size_t)more * size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

#define APPEND(f, what, count, capacity)                                                           \
    (room((void **)&(f)->what, sizeof *(f)->what, (f)->count, &(f)->capacity)                      \
         ? &(f)->what[(f)->count++]                                                                \
         : NULL)

static const char *text_in(io_span name)
{
    char *to = (char *)name.data - 1;
    memmove(to, name.data, name.size);
    to[name.size] = 0;
    return to;
}

/* A name with a 0 inside would be taken for a shorter one. */
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

/* ---- Children by name ------------------------------------------------------------------------ */

static unsigned hash(int parent, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)parent * 0x9e3779b97f4a7c15u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return (unsigned)(h ^ h >> 32);
}

static int *place(const file_graph *f, int parent, const char *name)
{
    unsigned i = hash(parent, name) & f->mask;
    while (f->table[i] >= 0 && (f->children[f->table[i]].parent != parent ||
                                strcmp(f->children[f->table[i]].name, name) != 0))
        i = (i + 1) & f->mask;
    return &f->table[i];
}

static bool index_children(file_graph *f)
{
    unsigned size = 16;
    while (size < 2u * (unsigned)f->n_children) size *= 2;
    if (!(f->table = memory_alloc(size * sizeof *f->table))) return false;
    f->mask = size - 1;
    memset(f->table, 0xff, size * sizeof *f->table);
    for (int i = 0; i < f->n_children; i++) {
        int *at = place(f, f->children[i].parent, f->children[i].name);
        if (*at < 0) *at = i;
    }
    return true;
}

int objects_child(const file_graph *f, int node, const char *name)
{
    if (node < 0) return -1;
    int at = *place(f, node, name);
    return at < 0 ? -1 : f->children[at].node;
}

bool objects_read(file_graph *f, io_buffer *message, const char *path)
{
    *f = (file_graph){.bytes = message->data};
    io_cursor c = io_cursor_on(message->data, message->size);
    *message = (io_buffer){0};
    io_field field;
    bool ok = true, had_failed = ed_failed();
    while (ok && io_next_field(&c, &field))
        if (field.number == 1 && field.type == IO_BYTES) ok = read_node(f, field.bytes);
    if (ok && io_ok(&c) && numbers_exist(f) && index_children(f)) return true;
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
    memory_free(f->table);
    *f = (file_graph){0};
}

/* The next name of a path into `name`, unescaped; what follows it, NULL at the end. */
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

int objects_at(const file_graph *f, const char *path)
{
    char *name = memory_alloc(strlen(path) + 1);
    if (!name) return -1;
    int node = 0;
    for (const char *rest = *path ? path : NULL; rest && node >= 0;) {
        rest = next_name(rest, name);
        node = objects_child(f, node, name);
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

/* Whether values lie at or below each node. Names may lead in circles, so what is found is passed
 * on to parents until nothing is new; ids grow away from the root, so going backward that is soon.
 */
static bool *find_values(const graph *g)
{
    bool *has = memory_zalloc((size_t)g->n_nodes);
    if (!has) return NULL;
    for (int i = 0; i < g->n_nodes; i++) has[i] = graph_is_value(&g->nodes[i]);
    for (bool more = true; more;) {
        more = false;
        for (int e = g->n_edges - 1; e >= 0; e--) {
            const graph_edge *edge = &g->edges[e];
            if (!(edge->use & GRAPH_WRITE) || !has[edge->to] || has[edge->from]) continue;
            has[edge->from] = more = true;
        }
    }
    return has;
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
    const char *name = node->kind == GRAPH_VARIABLE ? ed_name(node->object) : path;
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

/* A child number 0 is written although it is the default: the root is nobody's child but its own.
 */
bool objects_write(const graph *g, char *const *paths, io_buffer *message)
{
    int count = 0, *numbers = memory_alloc((size_t)g->n_nodes * sizeof *numbers);
    int *order = numbers ? written_order(g, numbers, &count) : NULL;
    bool *has = order ? find_values(g) : NULL;
    for (int i = 0; has && i < count; i++) {
        io_buffer node = {0};
        write_children(g, order[i], numbers, &node);
        if (graph_is_value(&g->nodes[order[i]]))
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
