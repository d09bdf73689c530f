/*
 * The `checkpoint` file of a folder: which checkpoints there are, in protocol buffers' text form,
 * as TensorFlow writes and reads it (CheckpointState).
 */
#ifndef EDDY_TRAIN_STATE_H
#define EDDY_TRAIN_STATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct state_entry {
    char *path;       /* relative to the folder where it can be */
    double timestamp; /* seconds; 0: the file says none */
} state_entry;

typedef struct state {
    char *latest; /* NULL: none */
    state_entry *entries;
    int64_t count, capacity;
    double last_preserved; /* 0: none */
} state;

void state_free(state *s);

typedef enum state_found { STATE_READ, STATE_NONE, STATE_DAMAGED, STATE_FAILED } state_found;

/* Reads folder/checkpoint. STATE_NONE: no such file; STATE_DAMAGED: it can't be understood (no
 * error is kept); STATE_FAILED: with an error kept (memory, the operating system). */
state_found state_read(const char *folder, state *s);

/* Writes it: temporary file, fsync, rename, fsync of the folder. */
bool state_write(const char *who, const char *folder, const state *s);

/* Appends a path; false without memory. */
bool state_add(state *s, const char *path, double timestamp);

/*
 * What the folder itself holds: prefixes NAME-NUMBER (any name if name is NULL) with an index and
 * as many shards as that says, sorted by number, time stamps from the files. false with an error.
 */
bool state_scan(const char *folder, const char *name, state *s);

/* path as it lies in folder / relative to it; new texts, memory_free gives them back. */
char *state_join(const char *folder, const char *path);
char *state_relative(const char *folder, const char *path);

#endif
