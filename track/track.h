/*
 * What an object keeps: children and values under names, which is what a checkpoint saves and
 * restores. Variables, lists of variables, layers, optimizers, metrics, generators and datasets say
 * it of themselves. A program's own structure says it by a function:
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
 * over time. One function serves both directions: nothing can be saved under one name and looked
 * for under another.
 */
#ifndef EDDY_TRACK_H
#define EDDY_TRACK_H

#include "tensor/tensor.h"

#pragma GCC visibility push(default)

typedef struct ed_tracker ed_tracker;
typedef struct ed_trackable ed_trackable;

typedef struct ed_trackable_class {
    const char *name; /* of the kind, for messages */
    void (*track)(void *self, ed_tracker *tracker);
    void (*destroy)(void *self); /* called when the object goes; may be NULL */
} ed_trackable_class;

/* An object that stands for the caller's own structure, which must live as long as the object. On
 * failure `destroy` is not called. */
ed_trackable *ed_trackable_new(const ed_trackable_class *kind, void *self);

/* A plain counter, *value, as an object of its own: ed_checkpoint("step", ed_counter(&step)). The
 * number must live as long as the object. */
ed_trackable *ed_counter(int64_t *value);

/*
 * To be called from a track function only. A child: any object that says what it keeps (variable,
 * list of variables, layer, optimizer, metric, generator, dataset, trackable); shared ones are
 * saved once. NULL is an error, and so is a name that the object has used. Names may hold any
 * characters.
 */
void ed_track(ed_tracker *tracker, const char *name, void *object);

/* A number of the caller's, saved as a scalar int64 / float64. */
void ed_track_int64(ed_tracker *tracker, const char *name, int64_t *value);
void ed_track_float64(ed_tracker *tracker, const char *name, double *value);

/*
 * A value that takes a function to read or set. `get` writes `count` elements of `dtype` (count -1:
 * a scalar); `refuses`, if given, tells in a few words why elements from a checkpoint can't be
 * taken ("1..9 is expected"), NULL if they can; `set` then takes them and can't fail. Nothing is
 * set before everything of a checkpoint was found to be acceptable.
 */
typedef struct ed_state {
    ed_dtype dtype;
    int64_t count;
    void (*get)(const void *self, void *elements);
    const char *(*refuses)(const void *self, const void *elements);
    void (*set)(void *self, const void *elements);
} ed_state;
void ed_track_state(ed_tracker *tracker, const char *name, void *self, const ed_state *state);

#pragma GCC visibility pop
#endif
