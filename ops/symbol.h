/*
 * Symbols: the values of a model that is being described, before there are any.
 *
 * An input of such a model is a tensor of the program like others, but has no elements. What an op
 * or a layer makes of one is a symbol again, with a node that says how. From the nodes behind its
 * outputs the model is made (nn/functional.c), which calls the same ops and layers with real
 * tensors.
 *
 * A symbol stands for two hollow tensors, whose shapes are two examples of what the model may get.
 * Each op and layer is called with both, and no kernel runs. A size that is the same in both
 * results is known, one that differs is open. What works for the one and not for the other, because
 * a size was taken for granted, is refused where it stands.
 */
#ifndef EDDY_OPS_SYMBOL_H
#define EDDY_OPS_SYMBOL_H

#include "ops/execute.h"

/* The sizes that stand for an open size in the two examples: of the first axis, the batch, and of
 * other axes. The latter are large, so that convolutions and pools leave something of them. */
enum { SYMBOL_BATCH = 13, SYMBOL_OTHER_BATCH = 19, SYMBOL_SIZE = 96, SYMBOL_OTHER_SIZE = 128 };

/* Dtype and shapes of a value in the two examples; dtype ED_DTYPE_NONE: there is no such value. */
typedef struct symbol_form {
    ed_dtype dtype;
    int rank;
    int64_t shapes[2][ED_MAX_RANK];
} symbol_form;

/* How values come about: by an op, by a layer, or as inputs. */
typedef struct symbol_node {
    ed_object object;
    const ed_op *op;  /* NULL: a layer, or an input */
    void *attrs;      /* of the op: a copy */
    ed_object *layer; /* retained; NULL: an op, or an input */
    char *name;       /* of an input or an op, from the first model on */
    bool training;    /* the layer is always called with .training */
    int n_inputs, n_outputs;
    ed_tensor **inputs; /* symbols and other tensors; then of a layer as many masks, NULL: those
                            * that come with the inputs; retained */
    symbol_form *forms; /* of the outputs, then of as many masks */
    struct symbol_node *next; /* that waits to be freed */
} symbol_node;

/* A node without op and layer; the caller owns the reference. Inputs and masks are retained; masks
 * NULL: none. NULL without memory. */
symbol_node *symbol_node_new(int n_inputs, ed_tensor *const *inputs, ed_tensor *const *masks,
                             int n_outputs);

/* Notes the form of value i from the two tensors that it is in the two examples. Fails if dtype or
 * rank differ. */
bool symbol_note(symbol_node *node, int i, const ed_tensor *first, const ed_tensor *second);

/* Value i of the node, masks included: a new symbol, the caller owns the reference; NULL without
 * memory. */
ed_tensor *symbol_new(symbol_node *node, int i);

/* The tensor of example 0 or 1 for a symbol, borrowed; for other tensors themselves. */
static inline ed_tensor *symbol_example(ed_tensor *t, int example)
{
    return t && tensor_is_symbol(t) ? ((symbol *)t)->examples[example] : t;
}

/* Whether one of the tensors is a symbol; NULL entries are none. */
static inline bool symbol_among(ed_tensor *const *tensors, int n)
{
    for (int i = 0; i < n; i++)
        if (tensors[i] && tensor_is_symbol(tensors[i])) return true;
    return false;
}

/* Between these two the thread's listeners hear nothing, and ops on hollow tensors make no
 * symbols: for calls with the examples. Begin returns what end is to be given. */
typedef struct symbol_trace {
    ed_listener *listeners;
    int tracing;
} symbol_trace;
symbol_trace symbol_trace_begin(void);
void symbol_trace_end(symbol_trace outer);

/*
 * Calls f with 0 and with 1, as a trace: it does with that example what is done with the symbols.
 * Whether both went well. If not, the error is told only now, in the words of both: where they have
 * different numbers, made of sizes that are open, it has "?".
 */
bool symbol_try(bool (*f)(void *user, int example), void *user);

/* A call of an op that has symbols among its operands: the outputs become symbols. false, with an
 * error, for an op that writes, or whose outputs' number, dtype or rank depends on an open size. */
bool symbol_execute(ed_call *call);

#endif
