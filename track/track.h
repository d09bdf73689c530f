/*
 * What a checkpoint saves and restores of an object: children and values under names. Variables,
 * lists of variables, layers, optimizers, metrics, generators and datasets have it built in. A
 * program's own structure has a function that names them:
 *
 *     static void track(void *self, ed_tracker *t)
 *     {
 *         struct agent *a = self;
 *         ed_track(t, "policy", a->policy);         // a layer
 *         ed_track(t, "optimizer", a->adam);
 *         ed_track_int64(t, "episodes", &a->episodes);
 *     }
 *     static const ed_trackable_class agent_class = {.name = "agent", .track = track};
 *     ... ed_checkpoint("agent", ed_trackable_new(&agent_class, &agent)) ...
 *
 * The function is called whenever a checkpoint is saved or restored, so what it names may change
 * over time. One function serves both directions, so nothing can be saved under one name and
 * restored under another.
 */
#ifndef EDDY_TRACK_H
#define EDDY_TRACK_H

#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* What a track function is given to name children and values to. */
typedef struct ed_tracker ed_tracker;

/* An object that stands for a structure of the program. */
typedef struct ed_trackable ed_trackable;

/* A kind of trackable. */
typedef struct ed_trackable_class {
    const char *name;                               /* of the kind, for error messages */
    void (*track)(void *self, ed_tracker *tracker); /* names the children and values */
    void (*destroy)(void *self);                    /* called when the object goes; may be NULL */
} ed_trackable_class;

/* An object that stands for the caller's own structure, which must live as long as the object. On
 * failure `destroy` is not called. */
ed_trackable *ed_trackable_new(const ed_trackable_class *kind, void *self);

/* The counter *value as an object: ed_checkpoint("step", ed_counter(&step)). The integer must live
 * as long as the object. */
ed_trackable *ed_counter(int64_t *value);

/*
 * Names a child; for track functions only, like those below. A child is a variable, list of
 * variables, layer, optimizer, metric, generator, dataset or trackable; one that several objects
 * share is saved once. NULL and duplicate names are errors. Names may contain any characters.
 */
void ed_track(ed_tracker *tracker, const char *name, void *object);

/* Names an integer of the caller, saved as an int64 scalar. */
void ed_track_int64(ed_tracker *tracker, const char *name, int64_t *value);

/* Names a number of the caller, saved as a float64 scalar. */
void ed_track_float64(ed_tracker *tracker, const char *name, double *value);

/*
 * A value that is read and set by functions. `get` writes `count` elements of `dtype` (count -1: a
 * scalar); `refuses`, if given, returns why elements of a checkpoint are invalid ("must be 1 to
 * 9"), NULL if they are valid; `set` then takes them and can't fail. Nothing is set before
 * everything in a checkpoint was found valid. Files may have the value in another numeric dtype.
 */
typedef struct ed_state {
    ed_dtype dtype;                                /* of the elements */
    int64_t count;                                 /* of elements; -1: a scalar */
    void (*get)(const void *self, void *elements); /* writes the elements */
    const char *(*refuses)(const void *self,
                           const void *elements);  /* why not; NULL: they are valid */
    void (*set)(void *self, const void *elements); /* takes the elements */
    ed_dtype restored;                             /* of what `refuses` and `set` get; 0: dtype */
} ed_state;

/* Names a value of `self` that the functions of `state` read and set. */
void ed_track_state(ed_tracker *tracker, const char *name, void *self, const ed_state *state);

#pragma GCC visibility pop
#endif
