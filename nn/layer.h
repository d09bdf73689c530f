/*
 * Layers: calling them, their weights and children, layers of one's own.
 *
 * A layer creates its weights at its first call, from the shape and dtype of its input (float32 or
 * float64). A weight's name is the path of its layer and its own name: "mlp/dense_1/kernel".
 */
#ifndef EDDY_NN_LAYER_H
#define EDDY_NN_LAYER_H

#include "nn/initializers.h"
#include "nn/regularizers.h"
#include "optim/constraints.h"
#include "track/track.h"
#include "autodiff/autodiff.h"

#pragma GCC visibility push(default)

/* ---- Calling layers -------------------------------------------------------------------------- */

/* A layer: weights, children, and a function of tensors. */
typedef struct ed_layer ed_layer;

/* Options of a call of a layer; zero: not given. */
typedef struct ed_forward_options {
    bool training;   /* default false: inference. Matters to dropout and batch normalization */
    ed_tensor *mask; /* of the first input: bool, false for steps to skip */
    ed_list *masks;  /* one for each input, NULL entries allowed; used instead of mask */
    ed_list **output_masks; /* if not NULL, is set to a list of the outputs' masks, NULL for none */
    ed_list **losses; /* if not NULL, is set to a list of what layers add to a loss in this call,
                       * with or without training; the layers keep none of it */
} ed_forward_options;

/*
 * Calls the layer: its output for x. The first call builds the layer: it creates the weights.
 *
 * ed_forward of a list of inputs returns a list of outputs: ed_forward(attention,
 * ed_list_of(query, value)). ed_forward_one takes a list and returns the only output. Fails if the
 * layer does not take that number of inputs, or that shape or dtype, and, where one tensor is
 * returned, if the layer has more than one output. A failed first call leaves the layer unbuilt.
 * The message ends with the path of the layer that failed.
 */
ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options);
ed_tensor *ed_forward_one_with(ed_layer *layer, ed_list *inputs, const ed_forward_options *options);
ed_list *ed_forward_list(ed_layer *layer, ed_list *inputs, const ed_forward_options *options);
#define ed_forward(layer, x, ...)                                                                  \
    ED_AT(_Generic((x), ed_list *                                                                  \
                   : ed_forward_list, default                                                      \
                   : ed_forward_with)(                                                             \
        layer, x, ED_GIVEN_(ed_forward_options, __VA_ARGS__) ED_OPTIONAL_(0, ##__VA_ARGS__)))
#define ed_forward_one(layer, list, ...)                                                           \
    ed_forward_one_with(layer, list,                                                               \
                        ED_GIVEN_(ed_forward_options, __VA_ARGS__) ED_OPTIONAL_(0, ##__VA_ARGS__))

/*
 * All variables of the layer and then of its children, in the order in which they were added. The
 * list is cached, so a call is cheap. Fails for a layer that was never called and so has no
 * variables yet.
 *
 * Several threads may use one model after its first ed_forward: call it without .training, and ask
 * for its variables, weights, children and names. Everything that changes the model needs all of it
 * alone: the first call, training, adding layers and weights, restoring.
 */
ed_list *ed_layer_variables(ed_layer *layer);

/* Those of them that are trainable. */
ed_list *ed_layer_trainable_variables(ed_layer *layer);

/* Those of them that are not: moving averages, for example. */
ed_list *ed_layer_non_trainable_variables(ed_layer *layer);

/* The values of ed_layer_variables, in that order: a new list. */
ed_list *ed_layer_get_weights(ed_layer *layer);

/* Assigns such values. Fails, and changes nothing, if their number, shapes or dtypes differ. */
bool ed_layer_set_weights(ed_layer *layer, ed_list *weights);

/* The number of elements of all variables. */
int64_t ed_layer_count_params(ed_layer *layer);

/*
 * Whether the layer and all below it are trained: their weights, also those that come later, are
 * frozen or thawed. Weights that were made as not trainable, as moving averages, stay so. A frozen
 * batch normalization uses its moving statistics in training too, as in Keras.
 */
bool ed_layer_set_trainable(ed_layer *layer, bool trainable);

/* The same for the layers and weights whose path matches a pattern of the shell:
 * ed_layer_set_trainable_matching(model, "*encoder*", false). ED_NOT_FOUND if none does. */
bool ed_layer_set_trainable_matching(ed_layer *layer, const char *pattern, bool trainable);

/* Whether it is; false for NULL. */
bool ed_layer_is_trainable(const ed_layer *layer);

/*
 * What is to be added to a loss, a new list of scalars: the penalties of trainable weights that
 * have a regularizer, and what the layers added in the last call with .training (ed_layer_add_loss,
 * activity_regularizer). Empty if there is nothing.
 */
ed_list *ed_layer_losses(ed_layer *layer);

/* Options of ed_layer_build. */
#define ED_BUILD_OPTIONS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the input")
ED_OPTIONS(ed_build_options, ED_BUILD_OPTIONS);

/*
 * Builds the layer without data: as the first ed_forward of an input of this shape does, but
 * nothing is computed. A size -1 is any, that of the batch for instance: ed_layer_build(model,
 * ED_SHAPE(-1, 28, 28)).
 */
bool ed_layer_build_with(ed_layer *layer, ed_ints shape, const ed_build_options *options);
#define ed_layer_build(layer, shape, ...)                                                          \
    ED_WITH_OPTIONS(ed_layer_build_with(layer, shape, &ed_options_), ED_BUILD_OPTIONS,             \
                    ed_build_options, __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))

/* The layer's own name, "dense_1"; valid as long as the layer. It is final once the layer has a
 * parent. */
const char *ed_layer_name(const ed_layer *layer);

/* The names from the root layer to this one, "mlp/dense_1": a string that belongs to the scope. */
const char *ed_layer_path(const ed_layer *layer);

/* Whether the program named the layer; false for a name made from its kind, and for NULL. */
bool ed_layer_is_named(const ed_layer *layer);

/* Whether the layer was built by a call; false for NULL. */
bool ed_layer_is_built(const ed_layer *layer);

/* A kind of layer, see "Custom layers" below. */
typedef struct ed_layer_class ed_layer_class;

/* The layer's class, whose kind.name is "dense", for example. */
const ed_layer_class *ed_layer_kind(const ed_layer *layer);

/* The layer that this one is a child of; NULL, without an error, if there is none. */
ed_layer *ed_layer_parent(const ed_layer *layer);

/* The number of children. */
int64_t ed_layer_child_count(const ed_layer *layer);

/* Child i, -1 being the last; ED_OUT_OF_RANGE if i is out of bounds. */
ed_layer *ed_layer_child(const ed_layer *layer, int64_t i);

/* The child of that name; ED_NOT_FOUND if there is none. */
ed_layer *ed_layer_find_child(const ed_layer *layer, const char *name);

/* The number of the layer's own weights, without its children's. */
int64_t ed_layer_weight_count(const ed_layer *layer);

/* The layer's own weight i, a variable, -1 being the last; ED_OUT_OF_RANGE if i is out of
 * bounds. */
ed_tensor *ed_layer_weight(const ed_layer *layer, int64_t i);

/*
 * The activation of that name, applied to x, with its default options: linear, relu, relu6,
 * leaky_relu (slope 0.2), elu, celu, selu, sigmoid, hard_sigmoid, log_sigmoid, sparse_sigmoid,
 * tanh, hard_tanh, tanh_shrink, hard_shrink, soft_shrink, softplus, sparse_plus, squareplus,
 * softsign, silu (swish), hard_silu (hard_swish), gelu, mish, exponential, threshold (0 below 0),
 * and over the last axis softmax, log_softmax, sparsemax, glu, which halves it. NULL or "" is
 * linear, which returns x itself. Fails with ED_NOT_FOUND for another name.
 */
ed_tensor *ed_activate(ed_tensor *x, const char *activation);

/* Options of all layers. */
#define ED_LAYER_COMMON(FIELD, T)                                                                  \
    FIELD(T, STRING, name, NULL, ED_ANY, "default: the kind's name, made unique in its parent")    \
    FIELD(T, BOOL, trainable, true, ED_ANY, "whether its weights are trained")                     \
    FIELD(T, DTYPE, dtype, ED_DTYPE_NONE, ED_ANY,                                                  \
          "of the weights; float inputs are converted; default: that of the input")

/* Options of layers that have a kernel, and of those that have a bias. */
#define ED_LAYER_KERNEL(FIELD, T)                                                                  \
    FIELD(T, INITIALIZER, kernel_initializer, NULL, ED_OTHERWISE("glorot_uniform"), "of kernel")   \
    FIELD(T, REGULARIZER, kernel_regularizer, NULL, ED_ANY, "of kernel")                           \
    FIELD(T, CONSTRAINT, kernel_constraint, NULL, ED_ANY, "of kernel")
#define ED_LAYER_BIAS(FIELD, T)                                                                    \
    FIELD(T, BOOL, use_bias, true, ED_ANY, "whether there is a bias")                              \
    FIELD(T, INITIALIZER, bias_initializer, NULL, ED_OTHERWISE("zeros"), "of bias")                \
    FIELD(T, REGULARIZER, bias_regularizer, NULL, ED_ANY, "of bias")                               \
    FIELD(T, CONSTRAINT, bias_constraint, NULL, ED_ANY, "of bias")
#define ED_LAYER_ACTIVITY(FIELD, T)                                                                \
    FIELD(T, REGULARIZER, activity_regularizer, NULL, ED_ANY, "of the output, by sample")

/* ---- Custom layers --------------------------------------------------------------------------- */

/* One call of a layer: what `build` and `forward` get. */
typedef struct ed_layer_call {
    int n_inputs, n_outputs;             /* the number of inputs, and of outputs so far */
    ed_tensor *const *inputs;            /* at least one; none is NULL */
    ed_tensor *const *masks;             /* one for each input; NULL: no mask */
    bool training;                       /* as ed_forward was given it */
    ed_tensor **outputs, **output_masks; /* filled by ed_layer_return */
    int capacity_;                       /* of ed_layer_return */
    ed_tensor *some_[2];
} ed_layer_call;

/* Appends an output; `forward` ends with return ed_layer_return(call, y). false if y is NULL; the
 * call that made y has then set the error. */
bool ed_layer_return(ed_layer_call *call, ed_tensor *y);

/* Sets the mask of an output that was appended, 0 being the first. */
bool ed_layer_return_mask(ed_layer_call *call, int output, ed_tensor *mask);

/* A random input for the tests of a layer: floats uniform in -1..1, or, if below is not 0, integers
 * in 0..below - 1. */
typedef struct ed_layer_input {
    int rank;                   /* of the input */
    int64_t shape[ED_MAX_RANK]; /* its sizes */
    int64_t below;              /* 0: floats */
} ed_layer_input;

/* Options and inputs with which the tests call a layer. */
typedef struct ed_layer_sample {
    const void *options;      /* NULL: the defaults */
    ed_layer_input inputs[4]; /* as many as n_inputs says */
    int n_inputs;             /* 0 ends the array of samples */
} ed_layer_sample;

/*
 * A kind of layer. The functions but `forward` may be NULL; those that return bool return false,
 * with an error set, on failure. A class must outlive its layers.
 *
 * A kind without options needs kind.name and `forward`; ed_layer_new creates a layer of it. A kind
 * with options also has kind.family = "layer", the schema (ED_SCHEMA in tensor/schema.h) and
 * kind.make = ed_layer_make; ed_make creates a layer of it.
 */
struct ed_layer_class {
    ed_kind kind;               /* its name, and for a kind with options their schema */
    size_t state_size;          /* bytes of each layer's state, all zero at first */
    int min_inputs, max_inputs; /* of a call; 0: 1; max_inputs -1: any number */

    /* Once, when the layer is created: sets the state, adds children. ed_options_of(layer) has the
     * options, if the kind has any. */
    bool (*init)(ed_layer *layer);
    /* Once, at the first call: adds weights. Children are built by their own first call. */
    bool (*build)(ed_layer *layer, const ed_layer_call *call);
    /* At each call: computes the outputs. */
    bool (*forward)(ed_layer *layer, ed_layer_call *call);
    /* Releases what the state holds. */
    void (*destroy)(ed_layer *layer);
    /* Names those parts of the state that a checkpoint saves (track/track.h); weights and children
     * are saved without it. */
    void (*track)(ed_layer *layer, ed_tracker *tracker);
    /* Takes what the layer needs to know from data: ed_layer_adapt. */
    bool (*adapt)(ed_layer *layer, ed_tensor *data);

    bool in_order;     /* children are called in order, as in Sequential: Keras numbers them */
    bool passes_masks; /* the first output gets the first input's mask if forward sets none */
    const ed_layer_sample *samples; /* for the library's tests */
};

/* A layer of a kind without options. name NULL: the kind's name, made unique when the layer gets a
 * parent: dense, dense_1. */
ed_layer *ed_layer_new(const ed_layer_class *class_, const char *name);

/* For kind.make; the kind must be the first member of an ed_layer_class. */
void *ed_layer_make(const ed_kind *kind, const void *options);

/* The layer's state, state_size bytes; valid as long as the layer. */
void *ed_layer_state(ed_layer *layer);

/* Appends a child, of which the layer holds a reference; returns it. Fails if the child has a
 * parent, its given name is taken, or it contains the layer. */
ed_layer *ed_layer_add_child(ed_layer *layer, ed_layer *child);

/*
 * Adds a part of the layer that is a field of it, as self.first of a layer of one's own in Keras: a
 * layer as a child, which gets the field's name unless it was named, or a variable as a weight of
 * that name. Element 0 of a list is the field "blocks/0", named blocks_0. Checkpoints have the part
 * under its field, as those of Keras 2 and tf.Module have: "model/first/kernel",
 * "model/blocks/0/kernel". Returns the part. A child of ed_layer_add_child is saved under its name,
 * so one that was given the name "first" is found there too. Fails if a field is not a name, or
 * names with '/' between them, if it or the name is taken, and as ed_layer_add_child and
 * ed_layer_adopt_weight do.
 */
void *ed_layer_add_field(ed_layer *layer, const char *field, void *part);

/* Options of ed_layer_add_weight. */
#define ED_WEIGHT_OPTIONS(FIELD, T)                                                                \
    FIELD(T, INITIALIZER, initializer, NULL, ED_ANY,                                               \
          "of the first value; default: glorot_uniform")                                           \
    FIELD(T, REGULARIZER, regularizer, NULL, ED_ANY, "penalty in ed_layer_losses")                 \
    FIELD(T, CONSTRAINT, constraint, NULL, ED_ANY, "applied after each step of an optimizer")      \
    FIELD(T, BOOL, trainable, true, ED_ANY, "whether tapes watch it automatically")                \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "float32 or float64")
ED_OPTIONS(ed_weight_options, ED_WEIGHT_OPTIONS);

/*
 * Creates a weight, a variable named "<path of the layer>/<name>", and returns it; `build` calls
 * it: ed_layer_add_weight(layer, "kernel", ED_SHAPE(in, out), .dtype = x->dtype). If a restored
 * checkpoint has a value for it, it starts with that value. Fails if the layer has a weight of that
 * name.
 */
ed_tensor *ed_layer_add_weight_with(ed_layer *layer, const char *name, ed_ints shape,
                                    const ed_weight_options *options);
#define ed_layer_add_weight(layer, name, shape, ...)                                               \
    ED_WITH_OPTIONS(ed_layer_add_weight_with(layer, name, shape, &ed_options_), ED_WEIGHT_OPTIONS, \
                    ed_weight_options, __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))

/*
 * Adds a scalar to what ed_layer_losses returns until the next call of the root layer; `forward`
 * calls it. In a call without training it is passed over, unless the caller of ed_forward asks for
 * .losses: several threads may run such calls, so the layer can keep nothing of them.
 */
bool ed_layer_add_loss(ed_layer *layer, ed_tensor *loss);

/*
 * Makes an existing variable the layer's weight of that name, renames it accordingly, and returns
 * it. If a restored checkpoint has a value for it, that is assigned. Fails for a variable that is
 * another layer's weight.
 */
ed_tensor *ed_layer_adopt_weight(ed_layer *layer, const char *name, ed_tensor *variable);

#pragma GCC visibility pop
#endif
