/*
 * The graph of connected objects: the objects, the values they hold, and the names that lead from
 * one to the other. It is built from the objects' own track functions whenever it is needed, as by
 * checkpoints.
 *
 *     root --model--> layer --dense--> layer --kernel--> variable
 *       \--optimizer--> optimizer --_iterations--> cell
 *
 * A name has three uses, which an edge may combine. TensorFlow's files have other names than ours,
 * and several names for one object; so an object can offer names that are only matched, or only
 * written.
 */
#ifndef EDDY_TRACK_GRAPH_H
#define EDDY_TRACK_GRAPH_H

#include "tensor/core.h"
#include "track/track.h"

enum {
    GRAPH_KEY = 1,   /* part of the path that is a value's key in a file */
    GRAPH_WRITE = 2, /* written into a file's object graph */
    GRAPH_MATCH = 4, /* looked up in a file's object graph */
    GRAPH_NAME = GRAPH_KEY | GRAPH_WRITE | GRAPH_MATCH,
    GRAPH_ALIAS = GRAPH_WRITE | GRAPH_MATCH,
};

typedef enum graph_kind {
    GRAPH_OBJECT,
    GRAPH_CONTAINER, /* has names, but no object */
    GRAPH_VARIABLE,  /* or a tensor that will be the value of one */
    GRAPH_CELL,      /* an ed_state of an object */
} graph_kind;

typedef struct graph_edge {
    int from, to, next; /* next: of the same node, -1 at the end */
    unsigned use;
    char *name;
} graph_edge;

typedef struct graph_node {
    graph_kind kind;
    void *object; /* of a cell: the `self` of its functions */
    void *held;   /* the object, retained; NULL: none */
    ed_state state;
    bool open;       /* may get more children */
    bool has_slots;  /* an optimizer that keeps values for variables */
    int first, last; /* edges, -1: none */
    int path_edge;   /* the last edge of its path along GRAPH_KEY, -1: root, or none */
    size_t length;   /* of the path as a string */
} graph_node;

/* A value that an optimizer keeps for a variable; or, with variable and value -1, that it keeps
 * such values. */
typedef struct graph_slot {
    int optimizer, variable, value; /* nodes */
    int64_t index;                  /* of the variable among those the optimizer knows */
    const char *keras3_list;        /* the name of the list of such values in files of Keras 3 */
    const char *keras2_slot;        /* the name of the slot in files of Keras 2 */
} graph_slot;

typedef struct graph {
    graph_node *nodes;
    graph_edge *edges;
    graph_slot *slots;
    int n_nodes, n_edges, n_slots;
    int node_capacity, edge_capacity, slot_capacity;
    int *table, table_size;           /* nodes by object, open addressing */
    int *edge_table, edge_table_size; /* edges with GRAPH_WRITE by node and name */
    bool weights_only;
} graph;

/* What a track function is given; `self` is the object's node. */
struct ed_tracker {
    graph *graph;
    int self;
    bool failed;
};

/*
 * The graph from a root, node 0, with the children `names[i]` -> `objects[i]`; nodes are numbered
 * in breadth-first order. weights_only: layers leave out the optimizer that compile gave them.
 * false on failure, with the error kept and the graph empty.
 */
bool graph_make(graph *g, const char *const *names, void *const *objects, int count,
                bool weights_only);
void graph_free(graph *g);

/* Finds paths again after names were added; false without memory. */
bool graph_find_paths(graph *g);

/* The node an object has, -1 if it is not in the graph. */
int graph_find(const graph *g, const void *object);

/* The child of that name along GRAPH_WRITE, -1 if there is none. */
int graph_child(const graph *g, int node, const char *name);

/*
 * The paths of values, and of nodes that are open or have slots, along GRAPH_KEY edges as strings:
 * "model/dense/kernel", names escaped as TensorFlow does ("." -> "..", "/" -> ".S"). NULL for other
 * nodes and unreachable ones. graph_free_paths frees the array and its strings. NULL, with an
 * error, without memory or if the paths, which grow with the depth, are absurdly long.
 */
char **graph_paths(const graph *g);
void graph_free_paths(const graph *g, char **paths);

/* The length of an escaped name. */
size_t graph_escaped_length(const char *name);

/* Writes an escaped name so that it ends at `end`; returns its beginning. */
char *graph_put_escaped(char *end, const char *name);

/* Makes room for one more element of `size` bytes in an array that grows; false with an error. */
bool graph_reserve(void **array, size_t size, int count, int *capacity);

/* For the library's own track functions: nodes are numbers, -1 after a failure, which is passed
 * on. */
int graph_object(ed_tracker *t, void *object);
int graph_container(ed_tracker *t);
int graph_tensor(ed_tracker *t, ed_tensor *value);
int graph_cell(ed_tracker *t, void *self, const ed_state *state);
extern const ed_state graph_count_state; /* of an int64_t that is never negative */
void graph_name(ed_tracker *t, int from, unsigned use, const char *name, int to);
void graph_number(ed_tracker *t, int from, unsigned use, int64_t name, int to);
void graph_slot_of(ed_tracker *t, graph_slot slot);

/* An ed_counter with its own functions. */
ed_trackable *graph_counter(int64_t *value, const ed_state *state);

/* ---- Values that wait ------------------------------------------------------------------------ */

/*
 * A restored checkpoint may have values for variables that an object has not created yet: the
 * weights of a layer that was never called, the slots of an optimizer before its first step. The
 * object then holds a graph_wait and asks it when it creates them. Nodes are those of the file's
 * graph.
 */
typedef struct graph_source graph_source;
struct graph_source {
    ed_object object;
    char *path; /* of the checkpoint, for messages */

    /* The node of child `name` of `node`; -1: none. */
    int (*find)(const graph_source *s, int node, const char *name);

    /* The node of a slot of the variable; -1: none. */
    int (*find_slot)(const graph_source *s, int node, const graph_slot *slot,
                     const ed_tensor *variable);

    /* Whether all of the node must be restored: a child without a value is an error. */
    bool (*whole)(const graph_source *s, int node);

    /* The node's value, with a reference for the caller; NULL, with an error, if its dtype is
     * different or its shape, in which -1 is any size. */
    ed_tensor *(*value)(graph_source *s, int at, const char *who, ed_dtype dtype, ed_ints shape);

    /* The node's object was created: a variable with its value, or an object whose own children may
     * wait in turn. On failure false: the value still waits, and the object must be released. */
    bool (*made)(graph_source *s, int at, void *object);

    /* The variable was discarded again: its value waits as before. */
    void (*unmade)(graph_source *s, const ed_tensor *variable);
};

typedef struct graph_wait {
    graph_source *source; /* retained; NULL: nothing waits */
    int node;
} graph_wait;

/* The object waits for the values of the node, and no longer for others. */
void graph_wait_for(graph_wait *wait, graph_source *source, int node);
void graph_wait_end(graph_wait *wait);

#endif
