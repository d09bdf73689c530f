/*
 * A restore: what of a file's graph belongs to what of the program's, and what became of each
 * value.
 */
#ifndef EDDY_TRAIN_RESTORE_H
#define EDDY_TRAIN_RESTORE_H

#include "train/checkpoint.h"
#include "train/object_graph.h"

/* Of each node of the file: what became of its value. */
typedef enum file_state {
    FILE_NOTHING,
    FILE_RESTORED,
    FILE_WAITING,
    FILE_UNEXPECTED,
    FILE_SKIPPED
} file_state;

/* A value of the program that has a place in the file: a variable by its id, a cell by its
 * address. */
typedef struct bound {
    uint64_t id;
    const void *cell;
    void (*get)(const void *self, void *elements);
    int at; /* -1: no longer */
} bound;

struct ed_restoration {
    graph_source source;
    file_graph file;
    file_state *states; /* by node of the file, like the next two */
    char **names;       /* of values, for reports: as the program calls them if it knows them */
    ed_tensor **waiting;

    bound *bound;
    int n_bound, bound_capacity;
    int *bound_table; /* twice the capacity, open addressing */
    char **missing;   /* values of the program that the file does not have */
    int n_missing;
    bool strict;  /* all of the program's values are to be restored */
    bool matched; /* something beside the root */
    bool counted; /* save_counter is one of the values */

    ed_checkpoint *checkpoint; /* not held; NULL once it is gone */
    ed_restoration *next;      /* an older one of the same checkpoint */
};

/* One that nobody owns yet / that a checkpoint knows from here on (restore_result.c). */
ed_restoration *restoration_new(const char *path, bool strict);
void restoration_join(ed_restoration *r, ed_checkpoint *c, bool reading);

/* One walk over both graphs. Nodes of the program that have no place are -1, and the other way
 * round. */
typedef struct match {
    ed_restoration *r;
    const graph *g;
    char **paths; /* of the program's nodes */
    int *file_of, *live_of;
    int *queue, queued;
} match;

bool match_begin(match *m, ed_restoration *r, const graph *g);
void match_end(match *m);

/* Lets a node of the program and one of the file belong together. */
void match_bind(match *m, int live, int file);

/* Follows names from what is bound, then slots. */
void match_all(match *m);

/* The file's node for a slot of the optimizer at `node`; `owner`, its variable, is a node of the
 * file too (-1: unknown). -1: none. */
int match_slot(const file_graph *f, int node, const graph_slot *slot, int owner);

/* Lets an object of the program wait for what lies at its place, if it may get more children; it
 * waits for nothing else from here on (restore_waiting.c). / Leaves it waiting for what an older
 * restore has for it. */
void waiting_begin(const match *m, int live);
void waiting_leave(const match *m, int live);
extern const graph_source waiting_source; /* the functions of those who wait */

/* Adds what waits for the graph's objects to the graph, so that it is saved with the rest
 * (save_waiting.c). false, with an error. */
bool graft_waiting(graph *g);

/* The value's name in reports: the path if there is one, else the key. */
const char *restore_name(const ed_restoration *r, int at);

/* The place of a value in the file, -1 if it has none. */
int restore_place(const ed_restoration *r, const graph_node *node);
bool restore_note(ed_restoration *r, const graph_node *node, int at);
void restore_forget_place(ed_restoration *r, const graph_node *node);

/* Whether elements of that dtype and shape can become the cell's. / They as the cell takes them, in
 * the place of `read`, whose reference it takes over; NULL, with an error, if it refuses them. */
bool restore_cell_fits(const graph_node *node, ed_dtype dtype, int rank, const int64_t *shape);
ed_tensor *restore_cell_value(const ed_restoration *r, const graph_node *node, int at,
                              ed_tensor *read);

/* "a, b, c and 5 more" appended, of those i < count for which get gives a text. */
void restore_list(io_buffer *b, const char *what, int count, const char *(*get)(const void *, int),
                  const void *user);

#endif
