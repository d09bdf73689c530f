/*
 * What surrounds a training loop: checkpoints, in TensorFlow's own files, and the manager that
 * keeps the newest few of them.
 *
 *     ed_checkpoint *ckpt = ed_checkpoint("model", model, "optimizer", adam, "data", train,
 *                                         "random", ed_default_generator());
 *     ed_checkpoint_manager *manager = ed_checkpoint_manager(ckpt, "save", .max_to_keep = 3);
 *     ed_manager_restore_or_initialize(manager);
 *     ... train ... ed_manager_save(manager);
 *
 * Saving. A checkpoint's files are complete and on disk before their names are; data comes before
 * the index that names it, the index before the `checkpoint` state file. A save that fails or is
 * killed leaves the older checkpoints as they were. What a restore left waiting is saved with the
 * rest.
 *
 * Restoring is strict: whatever the file and the program don't both have, in the same dtype and
 * shape, is an error that lists it. Everything is read and verified before the first value changes,
 * so a restore that fails leaves every object as it was. Values for what an object will make later
 * (weights at a layer's first call, slots at an optimizer's first step) wait for it.
 *
 * What is matched with what goes by the names along the way from the root ("model", "dense",
 * "kernel"), not by the names of keys in the file. TensorFlow 2's checkpoints of Keras and
 * tf.Module objects are restored that way, and TensorFlow restores ours.
 */
#ifndef EDDY_TRAIN_H
#define EDDY_TRAIN_H

#include "data/data.h"
#include "io/io.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "track/track.h"

#pragma GCC visibility push(default)

typedef struct ed_checkpoint ed_checkpoint;
typedef struct ed_restoration ed_restoration;

/* ---- Checkpoints ----------------------------------------------------------------------------- */

/*
 * A checkpoint of objects under names, name and object in turn: variables, lists of variables,
 * layers, optimizers, metrics, generators, datasets, ed_counter(&number), ed_trackable_new(...).
 * Holds the objects. Names are unique, not empty, not "save_counter". The plain function's `count`
 * counts names and objects.
 */
#define ed_checkpoint(...)                                                                         \
    ed_checkpoint_of((const void *const[]){__VA_ARGS__},                                           \
                     sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
ed_checkpoint *ed_checkpoint_of(const void *const *names_and_objects, int64_t count);

/*
 * Saves as prefix-1, prefix-2, ... (counted by save_counter, which is saved and restored with the
 * rest) and lets the folder's `checkpoint` file name it as the newest. Returns the path it was
 * saved under, a text that belongs to the scope; NULL on failure, save_counter then being as
 * before. Folders that are missing are made.
 */
const char *ed_checkpoint_save(ed_checkpoint *checkpoint, const char *prefix);

/* The same under exactly this name, without counting, naming no newest. */
const char *ed_checkpoint_write(ed_checkpoint *checkpoint, const char *path);

/* The number of saves, restored ones included. */
int64_t ed_checkpoint_save_counter(const ed_checkpoint *checkpoint);

/*
 * The newest checkpoint in a folder: what its `checkpoint` file names; if that is not there, the
 * newest it lists that is; if there is none, or no such file, or a damaged one, the one of the
 * highest number whose files are there. A text that belongs to the scope; NULL, without an error,
 * if there is none.
 */
const char *ed_latest_checkpoint(const char *folder);

/* ---- Restoring ------------------------------------------------------------------------------- */

typedef struct ed_texts {
    const char *const *values;
    int64_t count;
} ed_texts;

/* A counted list of texts: ED_TEXTS("model*", "step"). */
#define ED_TEXTS(...)                                                                              \
    ((ed_texts){(const char *const[]){NULL, __VA_ARGS__} + 1,                                      \
                sizeof((const char *const[]){NULL, __VA_ARGS__}) / sizeof(char *) - 1})

typedef struct ed_restore_options {
    bool partial;     /* what only one side has is left alone; other dtypes and shapes still fail.
                         What an older restore left waiting, and this one has nothing for, waits on */
    ed_texts only;    /* patterns of paths to restore, "model/conv*" (* goes over slashes too); the
                         rest is left alone. Not given: all */
    ed_texts skip;    /* patterns of paths to leave alone */
    ed_texts renames; /* path here and path in the file in turn: "model/encoder", "net/base" */
} ed_restore_options;

/*
 * Restores from a path that a save returned (the prefix of the files; a SavedModel's folder means
 * its variables). Returns the report, which belongs to the scope; NULL, with nothing changed, on
 * failure: ED_NOT_FOUND if there is no such file, ED_DATA_LOSS if it is damaged,
 * ED_INVALID_ARGUMENT if what is there is not what is wanted. Paths in options and reports are
 * those of keys: "model/dense/kernel".
 *
 * A checkpoint without an object graph (TensorFlow 1's Saver) is restored by the variables' own
 * names, or by `renames`: path here, key in the file.
 */
#define ed_checkpoint_restore(checkpoint, path, ...)                                               \
    ed_checkpoint_restore_with(checkpoint, path, &(ed_restore_options){__VA_ARGS__})
ed_restoration *ed_checkpoint_restore_with(ed_checkpoint *checkpoint, const char *path,
                                           const ed_restore_options *options);

/* The same for what ed_checkpoint_write wrote: no save_counter is expected. */
#define ed_checkpoint_read(checkpoint, path, ...)                                                  \
    ed_checkpoint_read_with(checkpoint, path, &(ed_restore_options){__VA_ARGS__})
ed_restoration *ed_checkpoint_read_with(ed_checkpoint *checkpoint, const char *path,
                                        const ed_restore_options *options);

/*
 * What became of a restore, path by path: restored; missing (here, but not in the file); unexpected
 * (in the file, but not here); waiting (in the file, for what will be made here). Waiting ones turn
 * into restored ones as they are taken.
 */
typedef enum ed_restored { ED_RESTORED, ED_MISSING, ED_UNEXPECTED, ED_WAITING } ed_restored;

/* How many paths are of the kind now; path i of them, a text that belongs to the scope. */
int64_t ed_restoration_count(const ed_restoration *restoration, ed_restored kind);
const char *ed_restoration_path(const ed_restoration *restoration, ed_restored kind, int64_t i);

/* All of that as a text of lines, which belongs to the scope. */
const char *ed_restoration_report(const ed_restoration *restoration);

/*
 * TensorFlow's assertions, of the present state: every value of the file is taken and every value
 * here was restored / every value here was restored / at least one thing beside the root was
 * matched. false with an error that lists what is not so.
 */
bool ed_restoration_assert_consumed(ed_restoration *restoration);
bool ed_restoration_assert_existing_objects_matched(ed_restoration *restoration);
bool ed_restoration_assert_nontrivial_match(ed_restoration *restoration);

/* Gives up what still waits: what is made from now on begins as if there had been no checkpoint. */
bool ed_restoration_expect_partial(ed_restoration *restoration);

/* ---- The manager ----------------------------------------------------------------------------- */

typedef struct ed_checkpoint_manager ed_checkpoint_manager;

typedef enum ed_best { ED_BEST_NONE, ED_BEST_HIGHEST, ED_BEST_LOWEST } ed_best;

typedef struct ed_checkpoint_manager_options {
    int64_t max_to_keep; /* the newest so many are kept; default 0: all */
    double
        keep_checkpoint_every_n_hours; /* one of so many hours is kept for ever; default 0: none */
    const char *checkpoint_name;       /* default "ckpt" */
    void *step_counter;                /* int64 variable or ed_counter */
    int64_t checkpoint_interval;       /* steps between saves; needs step_counter */
    ed_best best;                      /* the one with the best metric is kept too */
    bool (*initialize)(void *user);    /* called where there is nothing to restore */
    void *user;
} ed_checkpoint_manager_options;

/*
 * Keeps the newest checkpoints in a folder, which is made, and which belongs to one manager of one
 * process at a time: ED_FAILED_PRECONDITION if another has it. Which checkpoints there are comes
 * from the folder's `checkpoint` file, or, if that is missing or damaged, from the folder. What a
 * killed process left there is taken up or removed. Released with its scope, it waits for a save in
 * the background and gives the folder free. A child of fork can't save by it.
 *
 * Checkpoints kept for ever are no longer listed. Those that the `checkpoint` file lists outside
 * the folder are never removed, only forgotten.
 */
#define ed_checkpoint_manager(checkpoint, folder, ...)                                             \
    ed_checkpoint_manager_with(checkpoint, folder, &(ed_checkpoint_manager_options){__VA_ARGS__})
ed_checkpoint_manager *ed_checkpoint_manager_with(ed_checkpoint *checkpoint, const char *folder,
                                                  const ed_checkpoint_manager_options *options);

typedef struct ed_manager_save_options {
    int64_t number;     /* of the checkpoint; default -1: the save counter */
    bool any_step;      /* do not ask whether checkpoint_interval has passed */
    bool in_background; /* return at once; see ed_manager_save */
    double metric;      /* of `best`, where that is asked for; default: none (NaN) */
} ed_manager_save_options;

/*
 * Saves the checkpoint as folder/name-number and removes what is not to be kept:
 * ed_manager_save(manager, .metric = accuracy). Returns the path, a text that belongs to the scope;
 * NULL on failure; "" where checkpoint_interval says that it is too early, or, whatever any_step
 * says, the step is that of the last save. A failure leaves the older checkpoints as they were. If
 * it comes late, the new one may be there all the same, and is then kept (ed_manager_latest).
 *
 * In the background: values are taken as they are now, without a copy, and written while the caller
 * goes on; the first change of a variable after that copies it. The next save, ed_manager_wait, the
 * manager's release and the process' end wait for it. If it failed, the next call of
 * ed_manager_save or ed_manager_wait does nothing but fail with its error.
 */
#define ed_manager_save(manager, ...)                                                              \
    ED_WITH(ed_manager_save_with(manager, &ed_options_), ed_manager_save_options, .number = -1,    \
            .metric = __builtin_nan(""), ##__VA_ARGS__)
const char *ed_manager_save_with(ed_checkpoint_manager *manager,
                                 const ed_manager_save_options *options);

/* Waits for a save in the background; false, with its error, if it failed. */
bool ed_manager_wait(ed_checkpoint_manager *manager);

/*
 * Restores the newest checkpoint that is whole: one that is damaged or gone is passed over
 * (ed_manager_skipped). Returns its path, a text that belongs to the scope; "" if there is none,
 * after `initialize`; NULL on failure: ED_DATA_LOSS if there are some, and none is whole.
 */
const char *ed_manager_restore_or_initialize(ed_checkpoint_manager *manager);

/* The report of that restore; NULL, without an error, if nothing was restored. */
ed_restoration *ed_manager_restoration(const ed_checkpoint_manager *manager);

/* What that restore passed over and why, a line for each; "" if nothing. A text that belongs to the
 * scope. */
const char *ed_manager_skipped(const ed_checkpoint_manager *manager);

/*
 * The number of checkpoints kept, oldest first; path i (-1: the last), a text that belongs to the
 * scope; the newest and the best, NULL (no error) if there is none. The best is remembered in the
 * folder. A save in the background counts when ed_manager_save or ed_manager_wait has waited for
 * it.
 */
int64_t ed_manager_count(const ed_checkpoint_manager *manager);
const char *ed_manager_checkpoint(const ed_checkpoint_manager *manager, int64_t i);
const char *ed_manager_latest(const ed_checkpoint_manager *manager);
const char *ed_manager_best(const ed_checkpoint_manager *manager);

#pragma GCC visibility pop
#endif
