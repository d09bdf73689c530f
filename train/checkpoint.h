/*
 * What saving, restoring and the manager know of each other. The files of train/, in reading order:
 *
 *     train.h             the public header
 *     checkpoint.h, .c    the checkpoint of objects; snapshots of their values, saving
 *     save_waiting.c      saving what a restore left waiting
 *     object_graph.h, .c  the object graph in a checkpoint's file: reading, lookup, writing
 *     restore.h, .c       a restore from beginning to end
 *     restore_match.c     which nodes of the file and of the program belong together
 *     restore_result.c    what a restore leaves behind: the restoration object
 *     restore_waiting.c   values that wait for objects that are created later
 *     restore_report.c    reports and assertions
 *     state_file.h, .c    the `checkpoint` file of a folder: reading, writing
 *     state_folder.c      what the folder itself shows: scanning, the latest checkpoint
 *     manager.h, .c       the manager: its folder, its life, restoring
 *     manager_save.c      the manager's saves: in the background too, and what is kept
 */
#ifndef EDDY_TRAIN_CHECKPOINT_H
#define EDDY_TRAIN_CHECKPOINT_H

#include "io/bundle.h"
#include "track/graph.h"
#include "train/train.h"

struct ed_checkpoint {
    ed_object object;
    int count; /* the objects and, last, save_counter */
    char **names;
    void **objects;
    int64_t save_counter;
    ed_restoration *restorations; /* that still live, newest first; not held */
};

/* The graph of the objects, with or without the save counter. */
bool checkpoint_graph(const ed_checkpoint *c, bool counted, graph *g);

/* The checkpoint goes: its restorations know it no longer. */
void restore_forget(ed_checkpoint *c);

/*
 * All values of a checkpoint's objects as they are at this moment, without copies of variables:
 * whoever changes one afterwards makes the copy. `counted`: with the save counter. It can be
 * written by any thread, once.
 */
typedef struct snapshot snapshot;
snapshot *snapshot_take(const ed_checkpoint *checkpoint, bool counted);
void snapshot_free(snapshot *s);

/* Writes it as a bundle, complete and on disk or not at all. */
bool snapshot_write(const snapshot *s, const char *who, const char *path);

/* The restore behind the public ones; `reading`: no save_counter is expected. */
ed_restoration *checkpoint_restore(ed_checkpoint *checkpoint, const char *who, const char *path,
                                   const ed_restore_options *options, bool reading);

/* A text that belongs to the scope, a copy of s. */
const char *train_text(const char *s);

#endif
