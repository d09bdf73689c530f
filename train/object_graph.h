/* The object graph in a checkpoint's file (TensorFlow's TrackableObjectGraph): nodes, the names
 * of their children, and the keys of their values in the bundle. */
#ifndef EDDY_TRAIN_OBJECT_GRAPH_H
#define EDDY_TRAIN_OBJECT_GRAPH_H

#include "io/bytes.h"
#include "track/graph.h"

#define VALUE_ATTRIBUTE "VARIABLE_VALUE"
#define VALUE_SUFFIX    "/.ATTRIBUTES/VARIABLE_VALUE"

typedef struct file_child {
    const char *name;
    int parent, node;
} file_child;

typedef struct file_attribute {
    const char *name, *full_name, *key;
} file_attribute;

typedef struct file_slot {
    const char *name;
    int variable, value;
} file_slot;

/* Each node's children, attributes and slots are contiguous: the index of the first and their
 * number. */
typedef struct file_node {
    int child, children, attribute, attributes, slot, slots;
} file_node;

typedef struct file_graph {
    file_node *nodes;
    file_child *children;
    file_attribute *attributes;
    file_slot *slots;
    int n_nodes, n_children, n_attributes, n_slots;
    int node_capacity, child_capacity, attribute_capacity, slot_capacity;
    uint8_t *bytes; /* holds the names */
    size_t size;    /* of bytes */
    int *by_name;   /* children: each node's range of them, sorted by name */
    int *by_node;   /* the same, sorted by the nodes they lead to */
    int spare;      /* the first of the nodes, behind the file's own, that nothing leads to yet */
    char *added;    /* names that the file does not have */
    size_t added_size;
} file_graph;

/* Parses the message, whose bytes it takes; `path` is for messages. false, with ED_DATA_LOSS and
 * everything freed, if it is damaged. */
bool objects_read(file_graph *f, io_buffer *message, const char *path);
void objects_free(file_graph *f);

/* The child of that name, -1 if there is none. / The name of that child, NULL if it is not one.
 * / The value of that slot of a variable (another node), -1 if there is none. */
int objects_child(const file_graph *f, int node, const char *name);
const char *objects_child_name(const file_graph *f, int node, int child);
int objects_slot(const file_graph *f, int node, int of, const char *name);

/* The node at a path of escaped names, "model/dense", in the file / in the program; -1 if there
 * is none, or if memory is short (an error is kept). */
int objects_at(const file_graph *f, const char *path);
int objects_live_at(const graph *g, const char *path);

/* The last node of the program that the names of a path lead to; -1 if memory is short. *rest is
 * the path from there on, NULL if nothing is left. */
int objects_live_before(const graph *g, const char *path, const char **rest);

/*
 * Names that a file does not have, for values that have other names in the program. objects_room
 * makes room for so many nodes and bytes of paths, once and before n_nodes is used; objects_spare
 * takes a new node; objects_link lets a path lead from a node to another one, by new nodes where
 * it leads nowhere; objects_link_list gives a node a list of nodes, those of -1 being left out.
 * false if memory is short.
 */
bool objects_room(file_graph *f, int nodes, size_t bytes);
int objects_spare(file_graph *f);
bool objects_link(file_graph *f, int from, const char *path, int to);
bool objects_link_list(file_graph *f, int from, const char *name, const int *to, int n);

/* The key of the node's value, NULL if it has none. */
const char *objects_key(const file_graph *f, int node);

/*
 * Writes the graph of the program's objects as such a message: the nodes that GRAPH_WRITE names
 * lead to, with values under `paths`. A node without a path is written without its value: an
 * optimizer names the variables that it trains, but does not save them. false if memory is short.
 */
bool objects_write(const graph *g, char *const *paths, io_buffer *message);

/* Whether the node is a value: a variable or a cell. */
static inline bool graph_is_value(const graph_node *node)
{
    return node->kind == GRAPH_VARIABLE || node->kind == GRAPH_CELL;
}

/* Whether it is one that a restore sets; a cell without `set` is only written. */
static inline bool graph_is_restored(const graph_node *node)
{
    return node->kind == GRAPH_VARIABLE || (node->kind == GRAPH_CELL && node->state.set);
}

/* For each node its number in the message, in the order of GRAPH_WRITE names from the root; -1
 * if none leads to it. memory_free frees it. */
int *objects_numbers(const graph *g, int *count);

#endif
