/*
 * The manager's parts: its life, what it finds in its folder, restoring (manager.c); a save
 * (manager_save.c).
 */
#ifndef EDDY_TRAIN_MANAGER_H
#define EDDY_TRAIN_MANAGER_H

#include "io/bytes.h"
#include "train/checkpoint.h"
#include "train/state_file.h"
#include <sys/types.h>

/* The time in seconds; tests set their own. */
extern double (*manager_clock)(void);

/* What a sweep goes by. */
typedef struct keep_rules {
    int64_t newest;     /* so many are kept; 0: all */
    double every_hours; /* 0: none is kept for ever */
} keep_rules;

/* One save, under way or done: all it needs is its own, so that any thread can do it. */
typedef struct save save;

struct ed_checkpoint_manager {
    ed_object object;
    ed_checkpoint *checkpoint;
    char *folder, *name;
    keep_rules rules;
    ed_best best;
    void *step_counter;
    int64_t interval, last_step;
    bool stepped; /* last_step is known */
    bool (*initialize)(void *user);
    void *user;

    state state;     /* of the folder, but for what a save in the background does to it */
    int lock;        /* -1: none */
    pid_t owner;     /* a child of fork is another process, which has no threads of ours */
    save *in_flight; /* a thread writes it; NULL: none */
    ed_restoration *restoration;
    io_buffer skipped;                      /* lines: what the last restore passed over */
    ed_checkpoint_manager *previous, *next; /* of all */
};

/* The manager's own process? Otherwise false with an error. */
bool manager_is_ours(const ed_checkpoint_manager *m, const char *who);

/* The value of the step counter; false with an error. */
bool manager_step(const ed_checkpoint_manager *m, int64_t *step);

/* Begins a save. Unless it goes to the background, it is done on return. The path is a text of the
 * scope; NULL on failure. */
const char *manager_save(ed_checkpoint_manager *m, const ed_manager_save_options *options,
                         int64_t step);

/* The step of the save in flight and whether that is done. */
int64_t manager_flying_step(const save *s);
bool manager_has_landed(const save *s);

/* Waits for the save in flight and takes over what came of it; false, with its error, if it
 * failed. */
bool manager_finish(ed_checkpoint_manager *m);

#endif
