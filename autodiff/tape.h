/*
 * The structure of tapes.
 *
 * A tape is a listener of the dispatcher. It identifies tensors by their ids: a hash table maps
 * each tracked id to a slot, a small number. Each recorded call is a node: the op, its attributes,
 * the slots of its operands and outputs, and those tensors that the op's gradient needs saved.
 * Nodes are in the order of execution, so a backward pass is the list read backwards, with one
 * gradient for each slot.
 *
 *     ids     17 -> slot 0 (watched)   18 -> slot 1   19 -> slot 2
 *     nodes   [mul: slots 0, - -> 1]  [add: slots 1, 0 -> 2]
 *
 * A variable has one slot. Each value that was read from it is a tensor with its own id, which maps
 * to the same slot. So the gradients of all reads are added, and second-order gradients, which read
 * the saved values, find the variable too.
 */
#ifndef EDDY_AUTODIFF_TAPE_H
#define EDDY_AUTODIFF_TAPE_H

#include "autodiff/autodiff.h"
#include "ops/execute.h"

typedef struct tape_node {
    struct tape_node *previous, *next;
    const ed_op *op;
    const void *attrs;
    int32_t n_inputs, n_outputs;
    int32_t *slots;    /* of inputs, then of outputs; -1: not tracked */
    ed_tensor **saved; /* likewise; NULL: not saved */
    ed_ints *shapes;   /* of inputs; of a forward tape, then of outputs */
    ed_dtype *dtypes;
} tape_node;

typedef struct tape_entry {
    uint64_t id; /* 0: free */
    int32_t slot;
} tape_entry;

struct ed_tape {
    ed_object object;
    ed_listener listener;
    uint64_t owner; /* the serial number of the thread whose ops it records */
    bool recording, persistent, watches_accessed;
    bool forward;   /* an accumulator's: nodes know the shapes of their outputs too */
    bool paused;    /* hears nothing, in its place among the listeners */
    bool consumed;  /* its one gradient was computed */
    bool broken;    /* out of memory while recording */
    bool abandoned; /* released by another thread: the owner frees it; atomic */
    int walks;      /* backward passes in progress: nodes must not be freed */

    tape_entry *entries; /* open addressing */
    size_t n_entries, capacity;
    int32_t n_slots;

    struct tape_chunk *chunks;
    tape_node *first, *last;

    ed_tensor **variables; /* watched ones, in the order of watching; retained */
    int64_t n_variables, variable_capacity;
};

/* The slot of a tensor or variable; -1 if it is not tracked. */
int32_t tape_slot_of(ed_tape *tape, const ed_tensor *x);

/* The same for one that an op reads: a trainable variable is watched from then on. */
int32_t tape_slot_read(ed_tape *tape, ed_tensor *x);

/* Calls the op's gradient function: dx[i], of an operand that needs one, is its gradient or, if
 * that is zero, NULL. false with an error that names the op. */
bool tape_call_gradient(const tape_node *node, const ed_gradient_call *call);

/* Whether the op's gradient function may look at the elements of dy (ED_OP_READS_DY). */
bool tape_looks_at_dy(const ed_op *op);

/* Keeps the error that the op has no gradient at all; returns false. `who` begins the message. */
bool tape_fail_no_gradient(const char *who, const tape_node *node);

/* Whether the tensor of that number in a list of them can be differentiated, or can be the seed of
 * x: a number, or a tensor of its dtype that broadcasts to its shape. seed, of: what both are
 * called. */
bool tape_check_target(const char *who, const ed_tensor *target, int64_t i);
bool tape_check_seed(const char *who, const char *seed, const char *of, const ed_tensor *dy,
                     const ed_tensor *x, int64_t i);

/* Such a seed in the shape of x; NULL without memory. */
ed_tensor *tape_seed(ed_tensor *dy, const ed_tensor *x);

/* Releases what a node saved. */
void tape_release_node(tape_node *node);

/* Frees all nodes and ids. */
void tape_clear(ed_tape *tape);

/* Whether this thread may use it; false, with an error, if it records in another thread. */
bool tape_is_ours(const ed_tape *tape, const char *what);

/* Stops recording, if it records. */
void tape_stop(ed_tape *tape);

/* The tape of this listener; NULL if the listener is not a tape. */
ed_tape *tape_of(ed_listener *listener);

#endif
