/*
 * What surrounds a training loop: checkpoints in TensorFlow's file format, and a manager that keeps
 * the newest few of them.
 *
 *     ed_checkpoint *ckpt = ed_checkpoint("model", model, "optimizer", adam, "data", train,
 *                                         "random", ed_default_generator());
 *     ed_checkpoint_manager *manager = ed_checkpoint_manager(ckpt, "save", .max_to_keep = 3);
 *     ed_manager_restore_or_initialize(manager);
 *     ... train ... ed_manager_save(manager);
 *
 * Saving. A file gets its name when it is complete and on disk: data before the index that refers
 * to it, the index before the `checkpoint` state file. A save that fails or is killed leaves the
 * older checkpoints unchanged. Values that a restore left waiting are saved with the rest.
 *
 * Restoring is strict: it is an error, which lists them, if values exist in the file or in the
 * program only, or differ in dtype or shape. Everything is read and verified before the first value
 * changes, so a restore that fails changes nothing. Values of variables that an object creates
 * later (weights at a layer's first call, slots at an optimizer's first step) wait for them.
 *
 * Objects are matched by the names along the path from the root ("model", "dense", "kernel"), not
 * by the keys in the file. Checkpoints that TensorFlow 2 writes of Keras and tf.Module objects are
 * restored that way, and TensorFlow restores Eddy's.
 */
#ifndef EDDY_TRAIN_H
#define EDDY_TRAIN_H

#include "data/data.h"
#include "io/io.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "track/track.h"

#pragma GCC visibility push(default)

/* Objects under names, which are saved and restored together. */
typedef struct ed_checkpoint ed_checkpoint;

/* The report of a restore. */
typedef struct ed_restoration ed_restoration;

/* ---- Checkpoints ----------------------------------------------------------------------------- */

/*
 * A checkpoint of objects under names, given as pairs: variables, lists of variables, layers,
 * optimizers, metrics, generators, datasets, ed_counter(&number), ed_trackable_new(...). It retains
 * the objects. Names must differ, not be empty, and not be "save_counter". The plain function's
 * `count` counts names and objects together.
 */
#define ed_checkpoint(...)                                                                         \
    ed_checkpoint_of((const void *const[]){__VA_ARGS__},                                           \
                     sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
ed_checkpoint *ed_checkpoint_of(const void *const *names_and_objects, int64_t count);

/*
 * Saves as prefix-1, prefix-2, ... (numbered by save_counter, which is saved and restored with the
 * rest) and makes it the latest in the folder's `checkpoint` file. Missing folders are created.
 * Returns the path, a string that belongs to the scope; NULL on failure, with save_counter
 * unchanged.
 */
const char *ed_checkpoint_save(ed_checkpoint *checkpoint, const char *prefix);

/* Saves under exactly this path, without counting and without the `checkpoint` file. */
const char *ed_checkpoint_write(ed_checkpoint *checkpoint, const char *path);

/* The number of saves, including those before a restore. */
int64_t ed_checkpoint_save_counter(const ed_checkpoint *checkpoint);

/*
 * The path of the latest checkpoint in a folder: the one that its `checkpoint` file names; if that
 * does not exist, the newest it lists that does; if there is none, or the file is missing or
 * damaged, the complete one with the highest number. A string that belongs to the scope; NULL,
 * without an error, if there is none.
 */
const char *ed_latest_checkpoint(const char *folder);

/* ---- Restoring ------------------------------------------------------------------------------- */

/* Options of a restore; zero: not given. */
typedef struct ed_restore_options {
    bool partial;    /* values that only the file or only the program has are ignored; different
                           dtypes and shapes still fail. Values that an older restore left waiting,
                           and that this file does not have, keep waiting */
    ed_strings only; /* patterns of paths to restore, "model/conv*" (* matches slashes too); the
                           rest is left unchanged. Not given: all */
    ed_strings skip; /* patterns of paths to leave unchanged. One of `skip`, or of `only` unless
                           .partial is given, that no path in the program or the file matches is
                           an error */
    ed_strings
        renames; /* pairs, path in the program and in the file: "model/encoder", "net/base". The one
                    in the program may lead to what a layer will create at its first call */
} ed_restore_options;

/*
 * Restores from a path that a save returned (the prefix of the files, or the folder of a
 * SavedModel). Returns a report that belongs to the scope; NULL on failure, with nothing changed:
 * ED_NOT_FOUND if the file does not exist, ED_DATA_LOSS if it is damaged, ED_INVALID_ARGUMENT if it
 * does not match the objects. Paths in options and reports look like "model/dense/kernel".
 *
 * A checkpoint without an object graph (TensorFlow 1's Saver) is restored by the variables' names,
 * or by `renames`: path in the program, key in the file.
 */
ed_restoration *ed_checkpoint_restore_with(ed_checkpoint *checkpoint, const char *path,
                                           const ed_restore_options *options);
#define ed_checkpoint_restore(checkpoint, path, ...)                                               \
    ed_checkpoint_restore_with(checkpoint, path,                                                   \
                               ED_GIVEN_(ed_restore_options, __VA_ARGS__)                          \
                                   ED_OPTIONAL_(0, ##__VA_ARGS__))

/* The same for files of ed_checkpoint_write, which have no save_counter. */
ed_restoration *ed_checkpoint_read_with(ed_checkpoint *checkpoint, const char *path,
                                        const ed_restore_options *options);
#define ed_checkpoint_read(checkpoint, path, ...)                                                  \
    ed_checkpoint_read_with(checkpoint, path,                                                      \
                            ED_GIVEN_(ed_restore_options, __VA_ARGS__)                             \
                                ED_OPTIONAL_(0, ##__VA_ARGS__))

/*
 * The result of a restore for each path: restored; missing (in the program, but not in the file);
 * unexpected (in the file, but not in the program); waiting (in the file, for an object that will
 * be created). Waiting paths become restored when their objects are created.
 */
typedef enum ed_restored { ED_RESTORED, ED_MISSING, ED_UNEXPECTED, ED_WAITING } ed_restored;

/* The present number of paths of the kind. */
int64_t ed_restoration_count(const ed_restoration *restoration, ed_restored kind);

/* Path i of the kind, a string that belongs to the scope. */
const char *ed_restoration_path(const ed_restoration *restoration, ed_restored kind, int64_t i);

/* All of that in lines, as a string that belongs to the scope. */
const char *ed_restoration_report(const ed_restoration *restoration);

/*
 * TensorFlow's assertions about the present state; false with an error that lists the paths that
 * violate them. This one: every value of the file and of the program was restored.
 */
bool ed_restoration_assert_consumed(ed_restoration *restoration);

/* Every value of the program was restored. */
bool ed_restoration_assert_existing_objects_matched(ed_restoration *restoration);

/* At least one object besides the root was matched. */
bool ed_restoration_assert_nontrivial_match(ed_restoration *restoration);

/* Drops the values that still wait: objects created from now on start as without a checkpoint. */
bool ed_restoration_expect_partial(ed_restoration *restoration);

/* ---- The manager ----------------------------------------------------------------------------- */

/* Keeps the newest checkpoints in a folder. */
typedef struct ed_checkpoint_manager ed_checkpoint_manager;

/* Whether metrics are compared, and which is better. */
typedef enum ed_best { ED_BEST_NONE, ED_BEST_HIGHEST, ED_BEST_LOWEST } ed_best;

/* Options of a manager; zero: not given. */
typedef struct ed_checkpoint_manager_options {
    int64_t max_to_keep; /* how many of the newest to keep; default 0: all */
    double
        keep_checkpoint_every_n_hours; /* one for every n hours is kept for ever; default 0: none */
    const char *checkpoint_name;    /* default "ckpt"; "part/ckpt": in a folder inside the folder */
    void *step_counter;             /* an int64 variable or an ed_counter */
    int64_t checkpoint_interval;    /* steps between saves; requires step_counter */
    ed_best best;                   /* the one with the best metric is kept too */
    bool (*initialize)(void *user); /* called if there is nothing to restore; false: it failed */
    void *user;                     /* given to `initialize` */
} ed_checkpoint_manager_options;

/*
 * Keeps the newest checkpoints in a folder, which is created, and which belongs to one manager of
 * one process at a time: ED_FAILED_PRECONDITION if another one holds it. Where nothing can be
 * written in the folder, the manager can restore, but not save. The list of checkpoints comes from
 * the folder's `checkpoint` file, or, if that is missing or damaged, from the folder. Files that a
 * killed process left behind are taken over or removed. When the manager is released with its
 * scope, it waits for a save in the background and unlocks the folder. A child of fork can't save
 * with it.
 *
 * Checkpoints kept for ever are no longer listed. Those that the `checkpoint` file lists outside
 * the folder are never removed, only dropped from the list.
 */
ed_checkpoint_manager *ed_checkpoint_manager_with(ed_checkpoint *checkpoint, const char *folder,
                                                  const ed_checkpoint_manager_options *options);
#define ed_checkpoint_manager(checkpoint, folder, ...)                                             \
    ed_checkpoint_manager_with(checkpoint, folder,                                                 \
                               ED_GIVEN_(ed_checkpoint_manager_options, __VA_ARGS__)               \
                                   ED_OPTIONAL_(0, ##__VA_ARGS__))

/* Options of ed_manager_save. */
#define ED_MANAGER_SAVE_OPTIONS(FIELD, T)                                                          \
    FIELD(T, INT, number, -1, ED_AT_LEAST(-1), "of the checkpoint; default, -1: the save counter") \
    FIELD(T, BOOL, any_step, false, ED_ANY, "save even if checkpoint_interval has not passed")     \
    FIELD(T, BOOL, weights_only, false, ED_ANY, "without the optimizers of compiled models")       \
    FIELD(T, BOOL, in_background, false, ED_ANY, "return at once; see ed_manager_save")            \
    FIELD(T, FLOAT, metric, __builtin_nan(""), ED_ANY, "required by `best`; default, NaN: none")
ED_OPTIONS(ed_manager_save_options, ED_MANAGER_SAVE_OPTIONS);

/*
 * Saves the checkpoint as folder/name-number and removes those that are not to be kept:
 * ed_manager_save(manager, .metric = accuracy). Returns the path, a string that belongs to the
 * scope; NULL on failure; "" if checkpoint_interval has not passed, or, even with any_step, the
 * step is that of the last save. A failure leaves the older checkpoints unchanged. If it comes
 * late, the new one may exist all the same, and is then kept (ed_manager_latest).
 *
 * In the background: the present values are taken without a copy and written while the caller
 * continues; the first change of a variable after that copies it. The next save, ed_manager_wait,
 * the manager's release and the end of the process wait for it. If it failed, the next call of
 * ed_manager_save or ed_manager_wait only fails with its error.
 */
const char *ed_manager_save_with(ed_checkpoint_manager *manager,
                                 const ed_manager_save_options *options);
#define ed_manager_save(manager, ...)                                                              \
    ED_WITH_OPTIONS(ed_manager_save_with(manager, &ed_options_), ED_MANAGER_SAVE_OPTIONS,          \
                    ed_manager_save_options, ##__VA_ARGS__)

/* Waits for a save in the background; false, with its error, if that failed. */
bool ed_manager_wait(ed_checkpoint_manager *manager);

/*
 * Restores the newest checkpoint that is intact: damaged and missing ones are skipped
 * (ed_manager_skipped). Returns its path, a string that belongs to the scope; "" if there is none,
 * after `initialize`; NULL on failure: ED_DATA_LOSS if there are some, and all are damaged.
 */
const char *ed_manager_restore_or_initialize(ed_checkpoint_manager *manager);

/* The report of the last such restore; NULL, without an error, if nothing was restored. */
ed_restoration *ed_manager_restoration(const ed_checkpoint_manager *manager);

/* The checkpoints that it skipped and why, one per line; "" if none. A string that belongs to the
 * scope. */
const char *ed_manager_skipped(const ed_checkpoint_manager *manager);

/*
 * The number of checkpoints that are kept. A save in the background counts when ed_manager_save or
 * ed_manager_wait has waited for it.
 */
int64_t ed_manager_count(const ed_checkpoint_manager *manager);

/* Path i of them, oldest first, -1 being the last: a string that belongs to the scope. */
const char *ed_manager_checkpoint(const ed_checkpoint_manager *manager, int64_t i);

/* The path of the newest, a string that belongs to the scope; NULL, without an error, if there is
 * none. */
const char *ed_manager_latest(const ed_checkpoint_manager *manager);

/* The same of the one with the best metric, which the folder remembers. */
const char *ed_manager_best(const ed_checkpoint_manager *manager);

#pragma GCC visibility pop
#endif
