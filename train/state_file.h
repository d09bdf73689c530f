/*
 * The `checkpoint` file of a folder: the list of checkpoints, in protocol buffers' text format, as
 * TensorFlow writes and reads it (CheckpointState). And the checkpoints that the folder itself
 * shows, where that file is missing.
 *
 *     model_checkpoint_path: "ckpt-3"                    the newest
 *     all_model_checkpoint_paths: "ckpt-2"               the oldest first
 *     all_model_checkpoint_paths: "ckpt-3"
 *     all_model_checkpoint_timestamps: 1784015299.2607172
 *     all_model_checkpoint_timestamps: 1784015299.510666
 *     last_preserved_timestamp: 1784015297.175224        of the last one that is kept for ever
 *     # best "ckpt-2" highest 0.97                       ours: a comment to TensorFlow
 *
 * Paths in a `state` are as a program uses them, "save/ckpt-3"; in the file those inside the folder
 * are relative to it.
 */
#ifndef EDDY_TRAIN_STATE_FILE_H
#define EDDY_TRAIN_STATE_FILE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct state_entry {
    char *path;
    double timestamp; /* seconds; 0: not in the file */
} state_entry;

typedef struct state {
    char *latest; /* NULL: none */
    state_entry *entries;
    int64_t count, capacity;
    double last_preserved; /* 0: none */

    char *best; /* the path with the best metric, NULL: none */
    double metric;
    bool highest; /* whether the best is the highest or the lowest */
} state;

void state_free(state *s);

/* false if memory is short; `to` is then empty. */
bool state_copy(const state *from, state *to);

/* Appends a path; false if memory is short. */
bool state_add(state *s, const char *path, double timestamp);

/* The index of a path, -1: it is not listed. */
int64_t state_find(const state *s, const char *path);

/* ---- The file -------------------------------------------------------------------------------- */

typedef enum state_found { STATE_READ, STATE_NONE, STATE_DAMAGED, STATE_FAILED } state_found;

/* Reads folder/checkpoint; unless it returns STATE_READ, *s is empty. STATE_NONE: no such file;
 * STATE_DAMAGED: invalid, or without a newest one (no error is kept); STATE_FAILED: with an
 * error (memory, the operating system). */
state_found state_read(const char *folder, state *s);

/* Writes it: temporary file, fsync, rename, fsync of the folder. */
bool state_write(const char *who, const char *folder, const state *s);

/* ---- The folder ------------------------------------------------------------------------------ */

/* The path inside folder / relative to folder, if it is inside; new strings that memory_free
 * frees. */
char *state_join(const char *folder, const char *path);
char *state_relative(const char *folder, const char *path);

/* The number of a path NAME-NUMBER (any name if name is NULL), -1 if it has another form. */
int64_t state_number(const char *path, const char *name);

/* The checkpoints in the folder: those NAME-NUMBER (NUMBER > beyond) with an index and as many
 * shards as it requires, sorted by number, the last one as latest, time stamps from the files.
 * false, with an error and *s empty. */
bool state_scan(const char *folder, const char *name, int64_t beyond, state *s);

/* Removes shards of NAME-NUMBER that have no index and are not listed in `s`: they can't be
 * read. Skips those that can't be removed. */
void state_remove_strays(const char *folder, const char *name, const state *s);

/* The time of the file's last change in seconds; 0 if it does not exist. */
double state_time_of(const char *path);

#endif
