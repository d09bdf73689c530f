/* The object graph of a bundle as a tree: depth first; the children of a node are printed at its
 * first occurrence. Nodes have their numbers in the file; values have their dtype and shape. */
#include "programs/ckpt.h"
#include "train/object_graph.h"
#include <string.h>

/* Deeper lines are not indented further. */
enum { DEEPEST_INDENT = 30 };

/* A node whose children are being printed. */
struct level {
    int node, next;
};

struct walk {
    const ckpt_file *file;
    file_graph graph;
    bool *seen;
    struct level *levels; /* at most one for each node: each is entered once */
    int depth;
};

static void indent(const struct walk *w)
{
    int depth = w->depth < DEEPEST_INDENT ? w->depth : DEEPEST_INDENT;
    printf("%*s", 2 * depth, "");
}

/* ": float32 [3, 4]" of the node's value, if it has one. */
static bool print_value(const struct walk *w, int node)
{
    const char *key = objects_key(&w->graph, node);
    int64_t i = key ? ed_archive_find(w->file->archive, key) : -1;
    if (key && i < 0) fputs(": not in the file", stdout);
    if (i < 0) return true;
    archive_item item = archive_item_of(w->file->archive, i);
    char *shape = ckpt_shape_text(&item);
    if (shape) printf(": %s %s", ed_archive_dtype(w->file->archive, i), shape);
    memory_free(shape);
    return shape;
}

static bool print_slots(const struct walk *w, const file_node *node)
{
    for (int i = 0; i < node->slots; i++) {
        const file_slot *slot = &w->graph.slots[node->slot + i];
        indent(w);
        fputs("slot ", stdout);
        ckpt_print_word(stdout, slot->name);
        printf(" of #%d, #%d", slot->variable, slot->value);
        if (!print_value(w, slot->value)) return false;
        putchar('\n');
    }
    return true;
}

/* Prints a line for the node; its children follow if it is new. */
static bool enter(struct walk *w, const char *name, int node)
{
    bool again = w->seen[node];
    indent(w);
    ckpt_print_word(stdout, name);
    printf(again ? " (as #%d above)" : " #%d", node);
    if (!again && !print_value(w, node)) return false;
    putchar('\n');
    if (again) return true;
    w->seen[node] = true;
    w->levels[w->depth++] = (struct level){node, 0};
    return print_slots(w, &w->graph.nodes[node]);
}

static bool print_tree(struct walk *w)
{
    bool right = enter(w, "root", 0);
    while (right && w->depth) {
        struct level *top = &w->levels[w->depth - 1];
        const file_node *node = &w->graph.nodes[top->node];
        if (top->next == node->children) {
            w->depth--;
            continue;
        }
        const file_child *child = &w->graph.children[node->child + top->next++];
        right = enter(w, child->name, child->node);
    }
    return right;
}

bool ckpt_print_graph(ckpt_file *file)
{
    int64_t i = ed_archive_find(file->archive, BUNDLE_GRAPH);
    if (i < 0 || !ckpt_bundle(file))
        return ed_fail(ED_NOT_FOUND, "show: %s: the file has no object graph", file->given);
    struct walk w = {.file = file};
    io_buffer message = {NULL, 0, 0, false};
    const bundle *b = ckpt_bundle(file);
    bool right = bundle_string(b, bundle_at(b, i), 0, &message) && !message.failed;
    if (!right) io_buffer_free(&message);
    if (!right || !objects_read(&w.graph, &message, file->given)) return false;
    size_t nodes = (size_t)w.graph.n_nodes;
    w.seen = memory_zalloc(nodes + 1);
    w.levels = memory_alloc((nodes + 1) * sizeof *w.levels);
    right = w.seen && w.levels && (!nodes || print_tree(&w));
    memory_free(w.levels);
    memory_free(w.seen);
    objects_free(&w.graph);
    return right;
}
