/* The parts of the manager: creation, its folder, restoring (manager.c); saving
 * (manager_save.c). */
#ifndef EDDY_TRAIN_MANAGER_H
#define EDDY_TRAIN_MANAGER_H

#include "io/bytes.h"
#include "train/checkpoint.h"
#include "train/state_file.h"
#include <sys/types.h>

/* The time in seconds; tests replace it. */
extern double (*manager_clock)(void);

/* Which checkpoints are kept. */
typedef struct keep_rules {
    int64_t newest;     /* the number of newest ones that are kept; 0: all */
    double every_hours; /* one for each so many hours is kept for ever; 0: none */
} keep_rules;

/* One save, in progress or done: it shares nothing, so that any thread can do it. */
typedef struct save save;

struct ed_checkpoint_manager {
    ed_object object;
    ed_checkpoint *checkpoint;
    char *folder, *name;
    char *place;      /* the folder of the files: name may begin with folders */
    const char *stem; /* the rest of the name */
    keep_rules rules;
    ed_best best;
    void *step_counter;
    int64_t interval, last_step;
    bool stepped; /* last_step is known */
    bool (*initialize)(void *user);
    void *user;

    state state;     /* of the folder, without the changes of a save in the background */
    int lock;        /* -1: none; IO_READ_ONLY: none, and nothing can be saved */
    pid_t owner;     /* a child of fork does not have the threads of this process */
    save *in_flight; /* a thread is writing it; NULL: none */
    ed_restoration *restoration;
    io_buffer skipped;                      /* lines: checkpoints that the last restore skipped */
    ed_checkpoint_manager *previous, *next; /* of the list of all managers */
};

/* Starts a save. Unless it is in the background, it is done on return. The path is a string that
 * belongs to the scope; NULL on failure. */
const char *manager_save(ed_checkpoint_manager *m, const ed_manager_save_options *options,
                         int64_t step);

/* The step of the save in progress and whether it is done. */
int64_t manager_flying_step(const save *s);
bool manager_has_landed(const save *s);

/* Waits for the save in progress and takes over its result; false, with its error, if it failed. */
bool manager_finish(ed_checkpoint_manager *m);

#endif
