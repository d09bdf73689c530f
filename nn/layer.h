/*
 * A layer's inside, and what the library's own layers have beyond the public header, which is
 * little: they are written as a user's are.
 */
#ifndef EDDY_NN_LAYER_H
#define EDDY_NN_LAYER_H

#include "nn/nn.h"
#include "track/graph.h"

enum { LAYER_ALL, LAYER_TRAINABLE, LAYER_NOT_TRAINABLE, LAYER_LISTS };

struct ed_layer {
    ed_object object;
    const ed_layer_class *class;
    ed_layer *parent; /* who holds this layer; not held in turn */
    char *name;
    bool named; /* by the user: no number is put behind it */
    bool built;

    ed_layer **children;
    ed_tensor **weights;
    int64_t n_children, n_weights, child_capacity, weight_capacity;
    int height; /* of the tree below, at most */

    graph_wait wait; /* values of a checkpoint for weights and children that are not there yet */

    /* What ed_layer_variables and its kin gave last, until a weight or child is added here or
     * below. */
    ed_list *lists[LAYER_LISTS];

    ed_dtype output_dtype; /* of the first output, for the summary; none before */
    int output_rank;
    int64_t output_shape[ED_MAX_RANK];

    max_align_t state[];
};

/* "mlp/dense" of the layer and those above it, with "/kernel" behind it if a leaf is given.
 * memory_free gives it back; NULL without memory. */
char *layer_path(const ed_layer *layer, const char *leaf);

/* Keeps an error that begins with the layer's path; always NULL. */
void *layer_fail(const ed_layer *layer, ed_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether x can be this layer's input: float32 or float64, of `rank` dimensions (or more, if
 * `more`). Else false with an error. */
bool layer_accepts(const ed_layer *layer, const ed_tensor *x, int rank, bool more);

/* Whether x has the extent along its last axis that the layer was built for. Else false with an
 * error. */
bool layer_same_last(const ed_layer *layer, const ed_tensor *x, int64_t extent);

/* What the layer keeps, for checkpoints; where it waits for a checkpoint's values (nn/track.c). */
void layer_track(void *layer, ed_tracker *t);
struct graph_wait *layer_wait(void *layer);

/*
 * What a checkpoint has for a weight that is about to be made: *initial, with a reference for the
 * caller, and its place for layer_made; *initial is NULL if nothing waits. false, with an error, if
 * what waits does not fit or a strict restore has nothing.
 */
bool layer_waiting(const ed_layer *layer, const char *name, ed_dtype dtype, ed_ints shape,
                   ed_tensor **initial, int *place);
void layer_made(const ed_layer *layer, int place, void *object);

/* A child was added: it may wait too. */
void layer_made_child(const ed_layer *layer, ed_layer *child);

/* A build failed: the values of what it made, from those numbers on, wait as before. */
void layer_unmade(const ed_layer *layer, int64_t first_child, int64_t first_weight);

/* A copy of the initializer that holds its generator / gives that up. */
ed_initializer layer_hold_initializer(ed_initializer initializer);
void layer_release_initializer(ed_initializer *initializer);

/* A kind of activation; NULL, with an error that begins with `who`, for an unknown name. */
typedef ed_tensor *(*activation)(ed_tensor *x);
activation nn_activation(const char *who, const char *name);

/* What stands for "linear". */
ed_tensor *nn_linear(ed_tensor *x);

/* The padding "SAME" or "VALID" (the default, NULL) as a text that stays; NULL, with an error, for
 * anything else. */
const char *nn_padding(const char *who, const char *padding);

#endif
