/* A restore: which nodes of the file and of the program match, and the result for each value. */
#ifndef EDDY_TRAIN_RESTORE_H
#define EDDY_TRAIN_RESTORE_H

#include "train/checkpoint.h"
#include "train/object_graph.h"

/* The result for the value of each node of the file. */
typedef enum file_state {
    FILE_NOTHING,
    FILE_RESTORED,
    FILE_WAITING,
    FILE_UNEXPECTED,
    FILE_SKIPPED
} file_state;

/* A value of the program that has a node in the file: a variable by its id, a cell by its
 * address. */
typedef struct bound {
    uint64_t id;
    const void *cell;
    void (*get)(const void *self, void *elements);
    int at; /* the node; -1: no longer */
} bound;

struct ed_restoration {
    graph_source source;
    file_graph file;
    file_state *states; /* for each node of the file, like the next two */
    char **names;       /* of values, for reports: their paths in the program, if known */
    ed_tensor **waiting;

    bound *bound;
    int n_bound, bound_capacity;
    int *bound_table; /* twice the capacity, open addressing */
    char **missing;   /* values of the program that the file does not have */
    int n_missing;
    bool strict;  /* all of the program's values are to be restored */
    bool matched; /* an object besides the root was matched */
    bool counted; /* save_counter is one of the values */

    ed_checkpoint *checkpoint; /* without a reference; NULL once it is destroyed */
    ed_restoration *next;      /* an older one of the same checkpoint */
};

/* A new one, owned by the caller / makes it known to its checkpoint (restore_result.c). */
ed_restoration *restoration_new(const char *path, bool strict);
void restoration_join(ed_restoration *r, ed_checkpoint *c, bool reading);

/* Matches both graphs. file_of[node of the program] and live_of[node of the file] are -1 without
 * a match. */
typedef struct match {
    ed_restoration *r;
    const graph *g;
    char **paths; /* of the program's nodes */
    int *file_of, *live_of;
    int *queue, queued;
} match;

bool match_begin(match *m, ed_restoration *r, const graph *g);
void match_end(match *m);

/* Matches a node of the program and one of the file. */
void match_bind(match *m, int live, int file);

/* Matches all that names, and then slots, lead to from matched nodes. */
void match_all(match *m);

/* Gives optimizers of Keras that have no lists of their slots such lists; before that, the nodes
 * and bytes of names that it takes are added to those that objects_room is asked for. */
void keras_slots_room(const file_graph *f, size_t *nodes, size_t *bytes);
bool keras_slots_link(file_graph *f, const bundle *file);

/* The file's node for a slot of the optimizer at `node`; -1: none. `owner`, the slot's variable,
 * is a node of the file too (-1: unknown). */
int match_slot(const file_graph *f, int node, const graph_slot *slot, int owner);

/* Makes an object of the program that may get more children wait for the values of its node's
 * children, and for nothing else from now on (restore_waiting.c). / Leaves it waiting for values
 * of an older restore. */
void waiting_begin(const match *m, int live);
void waiting_leave(const match *m, int live);
extern const graph_source waiting_source; /* the functions of waiting objects */

/* Adds the values that wait for the graph's objects to the graph, so that they are saved too
 * (save_waiting.c). false, with an error. */
bool graft_waiting(graph *g);

/* The value's name in reports: its path if it has one, else its key. */
const char *restore_name(const ed_restoration *r, int at);

/* The file's node of a value, -1 if it has none. */
int restore_place(const ed_restoration *r, const graph_node *node);
bool restore_note(ed_restoration *r, const graph_node *node, int at);
void restore_forget_place(ed_restoration *r, const graph_node *node);

/* Whether elements of that dtype and shape can be converted to the cell's. / The converted
 * elements, in place of `read`, whose reference it takes; NULL, with an error, if the cell
 * refuses them. */
bool restore_cell_fits(const graph_node *node, ed_dtype dtype, int rank, const int64_t *shape);
ed_tensor *restore_cell_value(const ed_restoration *r, const graph_node *node, int at,
                              ed_tensor *read);

/* Appends "a, b, c and 5 more": the strings that get(i) returns for i < count, without NULL. */
void restore_list(io_buffer *b, const char *what, int count, const char *(*get)(const void *, int),
                  const void *user);

#endif
