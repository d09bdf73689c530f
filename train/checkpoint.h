/*
 * What saving, restoring and the manager share. The files of train/, in reading order:
 *
 *     train.h             the public header
 *     checkpoint.h, .c    the checkpoint of objects; snapshots of their values, saving
 *     save_waiting.c      saving what a restore left waiting
 *     keras_slots.c       names of slots that files of some of Keras' optimizers lack
 *     object_graph.h, .c  the object graph in a checkpoint's file: reading, lookup, writing
 *     restore.h, .c       the steps of a restore
 *     restore_match.c     which nodes of the file and of the program match
 *     restore_result.c    the result of a restore: the restoration object
 *     restore_waiting.c   values that wait for objects that are created later
 *     restore_report.c    reports and assertions
 *     state_file.h, .c    the `checkpoint` file of a folder: reading, writing
 *     state_folder.c      the checkpoints that a folder holds: scanning, the latest one
 *     manager.h, .c       the manager: its folder, creation, restoring
 *     manager_save.c      the manager's saves: also in the background; removing old checkpoints
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
    ed_restoration *restorations; /* those that exist, newest first; without references */
};

/* The graph of the objects, with or without the save counter. */
bool checkpoint_graph(const ed_checkpoint *c, bool counted, graph *g);

/* The checkpoint is destroyed: removes the pointers of its restorations to it. */
void restore_forget(ed_checkpoint *c);

/* The present values of a checkpoint's objects, without copies of variables: the next change of
 * a variable makes the copy. `counted`: with the save counter; `weights_only`: without the
 * optimizers of compiled models. Any thread can write it, once. */
typedef struct snapshot snapshot;
snapshot *snapshot_take(const ed_checkpoint *checkpoint, bool counted, bool weights_only);
void snapshot_free(snapshot *s);

/* Writes it as a bundle, complete and on disk, or nothing. */
bool snapshot_write(const snapshot *s, const char *who, const char *path);

/* The restore behind the public functions; `reading`: no save_counter is expected. */
ed_restoration *checkpoint_restore(ed_checkpoint *checkpoint, const char *who, const char *path,
                                   const ed_restore_options *options, bool reading);

/* Removes all checkpoints of the manager's name, and the folder's `checkpoint` file. What can't be
 * removed stays. false, with its error, if a save in the background failed. */
bool manager_clear(ed_checkpoint_manager *manager);

/* A copy of s as a string that belongs to the scope. */
const char *train_text(const char *s);

#endif
