/*
 * The inside of models made of symbols (nn/graph.h): what has to be called in which order.
 */
#ifndef EDDY_NN_FUNCTIONAL_H
#define EDDY_NN_FUNCTIONAL_H

#include "nn/graph.h"
#include "nn/layer_core.h"
#include "ops/symbol.h"

/* Where a call finds a value: a slot; its mask; or the node has it (a constant, NULL too). */
typedef struct functional_place {
    int slot; /* -1: the node has it */
    bool mask;
} functional_place;

typedef struct functional_step {
    const symbol_node *node;
    functional_place *inputs; /* of the node's inputs, and of a layer's masks */
    int slot;                 /* of output 0 */
    int *last;                /* slots that nobody needs after this step */
    int n_last;
} functional_step;

/* An operation as Keras counts them: an input, a layer, which may be called several times, or a
 * call of an op; by depth, the inputs first. */
typedef struct functional_operation {
    const symbol_node *node; /* its first */
    ed_layer *layer;         /* NULL: an input or an op */
} functional_operation;

typedef struct functional {
    ed_list *inputs, *outputs; /* symbols */
    symbol_node **nodes;       /* retained; each behind those whose values it needs */
    functional_step *steps;    /* of those nodes that are no inputs */
    int n_nodes, n_steps;
    int n_slots;                      /* the first are those of the model's inputs */
    int *last;                        /* of all steps */
    functional_place *output_places;  /* where the model's outputs are */
    functional_operation *operations; /* in Keras' order */
    int n_operations;
} functional;

/* The layer's, if it is a model of symbols; NULL, without an error, if not. */
const functional *layer_functional(const ed_layer *layer);

/* Fills it in from its inputs and outputs; false, with an error, on failure. */
bool functional_plan(functional *f);
void functional_end(functional *f);

/* The name of an input, of the layer or of the op of a node. */
const char *functional_name(const symbol_node *node);

/* An input of that whole shape, a size -1 being open; name NULL: none. */
ed_tensor *symbol_input(ed_ints shape, ed_dtype dtype, const char *name);

/* A call of a layer with symbols (nn/symbolic.c). */
bool layer_call_symbols(ed_layer *layer, ed_layer_call *call);

#endif
