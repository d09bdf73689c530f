/*
 * How models are built: layers, initializers, metrics. A layer makes its variables at its first
 * call, when it sees its input's shape; they are named by the path of layers above:
 * mlp/dense_1/kernel.
 */
#ifndef EDDY_NN_H
#define EDDY_NN_H

#include "autodiff/autodiff.h"
#include "tensor/schema.h"
#include "track/track.h"

#pragma GCC visibility push(default)

/* ---- Initializers (nn/initializers.c) -------------------------------------------------------- */

/*
 * How a weight's first value is drawn. Fans are counted as Keras does: [in, out]; of convolutions
 * [..., in, out]. A truncated normal distribution draws again what is more than 2 stddev off; where
 * a variance is given, that of the truncated distribution.
 */
typedef struct ed_initializer ed_initializer;

/* A tensor of the shape (float32 or float64) as the initializer draws it. */
ed_tensor *ed_initialize(ed_initializer *initializer, ed_ints shape, ed_dtype dtype);

/* All 0, all 1. */
#define ED_INITIALIZER_ZEROS_OPTIONS(FIELD, T)
ED_OPTIONS(ed_initializer_zeros_options, ED_INITIALIZER_ZEROS_OPTIONS);
#define ed_initializer_zeros()                                                                     \
    ED_WITH_OPTIONS(ed_initializer_zeros_with(&ed_options_), ED_INITIALIZER_ZEROS_OPTIONS,         \
                    ed_initializer_zeros_options)
ed_initializer *ed_initializer_zeros_with(const ed_initializer_zeros_options *options);

#define ED_INITIALIZER_ONES_OPTIONS(FIELD, T)
ED_OPTIONS(ed_initializer_ones_options, ED_INITIALIZER_ONES_OPTIONS);
#define ed_initializer_ones()                                                                      \
    ED_WITH_OPTIONS(ed_initializer_ones_with(&ed_options_), ED_INITIALIZER_ONES_OPTIONS,           \
                    ed_initializer_ones_options)
ed_initializer *ed_initializer_ones_with(const ed_initializer_ones_options *options);

/* All `value`. */
#define ED_INITIALIZER_CONSTANT_OPTIONS(FIELD, T)                                                  \
    FIELD(T, FLOAT, value, 0, ED_FINITE, "of every element")
ED_OPTIONS(ed_initializer_constant_options, ED_INITIALIZER_CONSTANT_OPTIONS);
#define ed_initializer_constant(value_)                                                            \
    ED_WITH_OPTIONS(ed_initializer_constant_with(&ed_options_), ED_INITIALIZER_CONSTANT_OPTIONS,   \
                    ed_initializer_constant_options, .value = value_)
ed_initializer *ed_initializer_constant_with(const ed_initializer_constant_options *options);

/* Evenly between two numbers. */
#define ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS(FIELD, T)                                            \
    FIELD(T, FLOAT, minval, -0.05, ED_FINITE, "lower limit, included")                             \
    FIELD(T, FLOAT, maxval, 0.05, ED_FINITE, "upper limit, excluded")                              \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")
ED_OPTIONS(ed_initializer_random_uniform_options, ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS);
#define ed_initializer_random_uniform(...)                                                         \
    ED_WITH_OPTIONS(ed_initializer_random_uniform_with(&ed_options_),                              \
                    ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS, ed_initializer_random_uniform_options,  \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_random_uniform_with(const ed_initializer_random_uniform_options *options);

/* Normal; normal and truncated. */
#define ED_INITIALIZER_RANDOM_NORMAL_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, mean, 0, ED_FINITE, "of the distribution")                                     \
    FIELD(T, FLOAT, stddev, 0.05, ED_AT_LEAST(0), "standard deviation")                            \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")
ED_OPTIONS(ed_initializer_random_normal_options, ED_INITIALIZER_RANDOM_NORMAL_OPTIONS);
#define ed_initializer_random_normal(...)                                                          \
    ED_WITH_OPTIONS(ed_initializer_random_normal_with(&ed_options_),                               \
                    ED_INITIALIZER_RANDOM_NORMAL_OPTIONS, ed_initializer_random_normal_options,    \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_random_normal_with(const ed_initializer_random_normal_options *options);

#define ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS ED_INITIALIZER_RANDOM_NORMAL_OPTIONS
ED_OPTIONS(ed_initializer_truncated_normal_options, ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS);
#define ed_initializer_truncated_normal(...)                                                       \
    ED_WITH_OPTIONS(ed_initializer_truncated_normal_with(&ed_options_),                            \
                    ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS,                                       \
                    ed_initializer_truncated_normal_options, __VA_ARGS__)
ed_initializer *
ed_initializer_truncated_normal_with(const ed_initializer_truncated_normal_options *options);

/* Of variance scale / fan: limits +-sqrt(3 scale / fan) if uniform. */
#define ED_INITIALIZER_VARIANCE_SCALING_OPTIONS(FIELD, T)                                          \
    FIELD(T, FLOAT, scale, 1, ED_ABOVE(0), "variance times fan")                                   \
    FIELD(T, CHOICE, mode, "fan_in", ED_ONE_OF("fan_in", "fan_out", "fan_avg"), "which fan")       \
    FIELD(T, CHOICE, distribution, "truncated_normal",                                             \
          ED_ONE_OF("truncated_normal", "untruncated_normal", "uniform"), "which distribution")    \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")
ED_OPTIONS(ed_initializer_variance_scaling_options, ED_INITIALIZER_VARIANCE_SCALING_OPTIONS);
#define ed_initializer_variance_scaling(...)                                                       \
    ED_WITH_OPTIONS(ed_initializer_variance_scaling_with(&ed_options_),                            \
                    ED_INITIALIZER_VARIANCE_SCALING_OPTIONS,                                       \
                    ed_initializer_variance_scaling_options, __VA_ARGS__)
ed_initializer *
ed_initializer_variance_scaling_with(const ed_initializer_variance_scaling_options *options);

/* +-sqrt(6 / (in + out)). */
#define ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS(FIELD, T)                                            \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")
ED_OPTIONS(ed_initializer_glorot_uniform_options, ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS);
#define ed_initializer_glorot_uniform(...)                                                         \
    ED_WITH_OPTIONS(ed_initializer_glorot_uniform_with(&ed_options_),                              \
                    ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS, ed_initializer_glorot_uniform_options,  \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_glorot_uniform_with(const ed_initializer_glorot_uniform_options *options);

/* truncated, variance 2 / (in + out). */
#define ED_INITIALIZER_GLOROT_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_glorot_normal_options, ED_INITIALIZER_GLOROT_NORMAL_OPTIONS);
#define ed_initializer_glorot_normal(...)                                                          \
    ED_WITH_OPTIONS(ed_initializer_glorot_normal_with(&ed_options_),                               \
                    ED_INITIALIZER_GLOROT_NORMAL_OPTIONS, ed_initializer_glorot_normal_options,    \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_glorot_normal_with(const ed_initializer_glorot_normal_options *options);

/* +-sqrt(6 / in). */
#define ED_INITIALIZER_HE_UNIFORM_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_he_uniform_options, ED_INITIALIZER_HE_UNIFORM_OPTIONS);
#define ed_initializer_he_uniform(...)                                                             \
    ED_WITH_OPTIONS(ed_initializer_he_uniform_with(&ed_options_),                                  \
                    ED_INITIALIZER_HE_UNIFORM_OPTIONS, ed_initializer_he_uniform_options,          \
                    __VA_ARGS__)
ed_initializer *ed_initializer_he_uniform_with(const ed_initializer_he_uniform_options *options);

/* truncated, variance 2 / in. */
#define ED_INITIALIZER_HE_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_he_normal_options, ED_INITIALIZER_HE_NORMAL_OPTIONS);
#define ed_initializer_he_normal(...)                                                              \
    ED_WITH_OPTIONS(ed_initializer_he_normal_with(&ed_options_), ED_INITIALIZER_HE_NORMAL_OPTIONS, \
                    ed_initializer_he_normal_options, __VA_ARGS__)
ed_initializer *ed_initializer_he_normal_with(const ed_initializer_he_normal_options *options);

/* +-sqrt(3 / in). */
#define ED_INITIALIZER_LECUN_UNIFORM_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_lecun_uniform_options, ED_INITIALIZER_LECUN_UNIFORM_OPTIONS);
#define ed_initializer_lecun_uniform(...)                                                          \
    ED_WITH_OPTIONS(ed_initializer_lecun_uniform_with(&ed_options_),                               \
                    ED_INITIALIZER_LECUN_UNIFORM_OPTIONS, ed_initializer_lecun_uniform_options,    \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_lecun_uniform_with(const ed_initializer_lecun_uniform_options *options);

/* truncated, variance 1 / in. */
#define ED_INITIALIZER_LECUN_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_lecun_normal_options, ED_INITIALIZER_LECUN_NORMAL_OPTIONS);
#define ed_initializer_lecun_normal(...)                                                           \
    ED_WITH_OPTIONS(ed_initializer_lecun_normal_with(&ed_options_),                                \
                    ED_INITIALIZER_LECUN_NORMAL_OPTIONS, ed_initializer_lecun_normal_options,      \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_lecun_normal_with(const ed_initializer_lecun_normal_options *options);

/* ---- Calling layers -------------------------------------------------------------------------- */

typedef struct ed_layer ed_layer;

typedef struct ed_forward_options {
    bool training;   /* dropout drops, batch normalization uses and moves its statistics */
    ed_tensor *mask; /* of the first input: bool, false where steps are to be skipped */
    ed_list *masks;  /* one an input, NULL entries allowed; instead of mask */
    ed_list *
        *output_masks; /* is given the masks of the outputs, NULL entries where there is none */
} ed_forward_options;

/*
 * The layer's output for x. The first call makes its variables. For a list of inputs a list of
 * outputs: ed_forward(attention, ed_list_of(query, value)); ed_forward_one is for layers of several
 * inputs and one output. Fails for a number of inputs that the layer does not take, and for a tensor
 * where there is not exactly one output.
 */
#define ed_forward(layer, x, ...)                                                                  \
    _Generic((x), ed_list *                                                                        \
             : ed_forward_list, default                                                            \
             : ed_forward_with)(layer, x, &(ed_forward_options){__VA_ARGS__})
#define ed_forward_one(layer, list, ...)                                                           \
    ed_forward_one_with(layer, list, &(ed_forward_options){__VA_ARGS__})
ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options);
ed_tensor *ed_forward_one_with(ed_layer *layer, ed_list *inputs, const ed_forward_options *options);
ed_list *ed_forward_list(ed_layer *layer, ed_list *inputs, const ed_forward_options *options);

/*
 * All variables of the layer, then of its children in the order in which they were added; those
 * that are trainable; those that are not. Cheap: the list is kept until something changes. Fails
 * for a layer that has none yet because it was never called.
 */
ed_list *ed_layer_variables(ed_layer *layer);
ed_list *ed_layer_trainable_variables(ed_layer *layer);
ed_list *ed_layer_non_trainable_variables(ed_layer *layer);

/*
 * The layer's own name, which is final once it has a parent. Number of children, child i (-1: the
 * last), child of that name: NULL, with an error, if there is none.
 */
const char *ed_layer_name(const ed_layer *layer);
int64_t ed_layer_child_count(const ed_layer *layer);
ed_layer *ed_layer_child(const ed_layer *layer, int64_t i);
ed_layer *ed_layer_find_child(const ed_layer *layer, const char *name);

/*
 * What the layer is: its class, whose name is that of its kind ("dense"); the layer that it belongs
 * to, NULL if none; its names from the root on, "mlp/dense_1", as a string of the scope's; whether
 * its own name was given by the program; whether its variables are made.
 */
typedef struct ed_layer_class ed_layer_class;
const ed_layer_class *ed_layer_kind(const ed_layer *layer);
ed_layer *ed_layer_parent(const ed_layer *layer);
const char *ed_layer_path(const ed_layer *layer);
bool ed_layer_is_named(const ed_layer *layer);
bool ed_layer_is_built(const ed_layer *layer);

/* The layer's own variables, without its children's: how many; number i (-1: the last), NULL with
 * an error if there is none. */
int64_t ed_layer_weight_count(const ed_layer *layer);
ed_tensor *ed_layer_weight(const ed_layer *layer, int64_t i);

/*
 * A table of the layers that compute something: path, shape of the output, number of own
 * parameters; the text belongs to the scope.
 */
const char *ed_layer_summary(ed_layer *layer);

/*
 * An activation by name: linear, relu, relu6, leaky_relu, elu, selu, sigmoid, hard_sigmoid, tanh,
 * softplus, softsign, silu (swish), gelu, exponential, softmax, log_softmax. NULL or "" is linear.
 */
ed_tensor *ed_activate(ed_tensor *x, const char *activation);

/* ---- Layers (one file each in nn/) ----------------------------------------------------------- */

/* What all layers have. */
#define ED_LAYER_COMMON(FIELD, T)                                                                  \
    FIELD(T, STRING, name, NULL, ED_ANY, "default: the kind's, numbered within its parent")

/* activation(x kernel + bias) along the last axis: [..., in] -> [..., units], of ranks from 2.
 * Weights: kernel [in, units], bias [units]. */
#define ED_LAYER_DENSE_OPTIONS(FIELD, T)                                                           \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of the output's last axis")                      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "of the result, by name; default: linear")      \
    FIELD(T, BOOL, use_bias, true, ED_ANY, "whether there is a bias")                              \
    FIELD(T, INITIALIZER, kernel_initializer, NULL, ED_OTHERWISE("glorot_uniform"), "of kernel")   \
    FIELD(T, INITIALIZER, bias_initializer, NULL, ED_OTHERWISE("zeros"), "of bias")                \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_dense_options, ED_LAYER_DENSE_OPTIONS);
#define ed_layer_dense(units_, ...)                                                                \
    ED_WITH_OPTIONS(ed_layer_dense_with(&ed_options_), ED_LAYER_DENSE_OPTIONS,                     \
                    ed_layer_dense_options, .units = units_, ##__VA_ARGS__)
ed_layer *ed_layer_dense_with(const ed_layer_dense_options *options);

/*
 * activation(ed_conv2d(x, kernel) + bias): [batch, height, width, in] -> [batch, h', w', filters].
 * Weights: kernel [kh, kw, in, filters], bias [filters]. One number as size, stride or dilation
 * stands for both.
 */
#define ED_LAYER_CONV2D_OPTIONS(FIELD, T)                                                          \
    FIELD(T, INT, filters, 0, ED_AT_LEAST(1), "number of output channels")                         \
    FIELD(T, INTS, kernel_size, ED_NO_LIST, ED_AT_LEAST(1), "height and width of the kernel")      \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: 1")            \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "as of ed_conv2d")              \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: 1")          \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "of the result, by name; default: linear")      \
    FIELD(T, BOOL, use_bias, true, ED_ANY, "whether there is a bias")                              \
    FIELD(T, INITIALIZER, kernel_initializer, NULL, ED_OTHERWISE("glorot_uniform"), "of kernel")   \
    FIELD(T, INITIALIZER, bias_initializer, NULL, ED_OTHERWISE("zeros"), "of bias")                \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_conv2d_options, ED_LAYER_CONV2D_OPTIONS);
#define ed_layer_conv2d(filters_, kernel_size_, ...)                                               \
    ED_WITH_OPTIONS(ed_layer_conv2d_with(&ed_options_), ED_LAYER_CONV2D_OPTIONS,                   \
                    ed_layer_conv2d_options, .filters = filters_, .kernel_size = kernel_size_,     \
                    ##__VA_ARGS__)
ed_layer *ed_layer_conv2d_with(const ed_layer_conv2d_options *options);

/* ed_max_pool2d as a layer. */
#define ED_LAYER_MAX_POOLING2D_OPTIONS(FIELD, T)                                                   \
    FIELD(T, INTS, pool_size, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: 2")          \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: pool_size")    \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "as of ed_max_pool2d")          \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_max_pooling2d_options, ED_LAYER_MAX_POOLING2D_OPTIONS);
#define ed_layer_max_pooling2d(...)                                                                \
    ED_WITH_OPTIONS(ed_layer_max_pooling2d_with(&ed_options_), ED_LAYER_MAX_POOLING2D_OPTIONS,     \
                    ed_layer_max_pooling2d_options, __VA_ARGS__)
ed_layer *ed_layer_max_pooling2d_with(const ed_layer_max_pooling2d_options *options);

/* The mean over height and width: [batch, h, w, channels] -> [batch, channels]. */
#define ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_global_average_pooling2d_options, ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS);
#define ed_layer_global_average_pooling2d(...)                                                     \
    ED_WITH_OPTIONS(ed_layer_global_average_pooling2d_with(&ed_options_),                          \
                    ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS,                                     \
                    ed_layer_global_average_pooling2d_options, __VA_ARGS__)
ed_layer *
ed_layer_global_average_pooling2d_with(const ed_layer_global_average_pooling2d_options *options);

/*
 * Batch normalization over all axes but the last, of ranks from 2. Training: by the batch's mean
 * and variance, which move the variables moving_mean and moving_variance (not trainable):
 * moving = momentum moving + (1 - momentum) batch's. Otherwise by those. Weights: gamma (the scale)
 * and beta (the shift) too.
 */
#define ED_LAYER_BATCH_NORMALIZATION_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, momentum, 0.99, ED_BETWEEN(0, 1), "share of the moving statistics that stays") \
    FIELD(T, FLOAT, epsilon, 0.001, ED_FROM(0, 1e30), "added to the variance")                     \
    FIELD(T, BOOL, center, true, ED_ANY, "whether there is beta")                                  \
    FIELD(T, BOOL, scale, true, ED_ANY, "whether there is gamma")                                  \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_batch_normalization_options, ED_LAYER_BATCH_NORMALIZATION_OPTIONS);
#define ed_layer_batch_normalization(...)                                                          \
    ED_WITH_OPTIONS(ed_layer_batch_normalization_with(&ed_options_),                               \
                    ED_LAYER_BATCH_NORMALIZATION_OPTIONS, ed_layer_batch_normalization_options,    \
                    __VA_ARGS__)
ed_layer *ed_layer_batch_normalization_with(const ed_layer_batch_normalization_options *options);

/* [batch, ...] -> [batch, product of the rest]. */
#define ED_LAYER_FLATTEN_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_flatten_options, ED_LAYER_FLATTEN_OPTIONS);
#define ed_layer_flatten(...)                                                                      \
    ED_WITH_OPTIONS(ed_layer_flatten_with(&ed_options_), ED_LAYER_FLATTEN_OPTIONS,                 \
                    ed_layer_flatten_options, __VA_ARGS__)
ed_layer *ed_layer_flatten_with(const ed_layer_flatten_options *options);

/* In training: ed_dropout. Otherwise x. Checkpoints of the layer hold a generator that is given. */
#define ED_LAYER_DROPOUT_OPTIONS(FIELD, T)                                                         \
    FIELD(T, FLOAT, rate, 0, ED_FROM(0, 1), "share of the elements that become 0")                 \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")           \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_dropout_options, ED_LAYER_DROPOUT_OPTIONS);
#define ed_layer_dropout(rate_, ...)                                                               \
    ED_WITH_OPTIONS(ed_layer_dropout_with(&ed_options_), ED_LAYER_DROPOUT_OPTIONS,                 \
                    ed_layer_dropout_options, .rate = rate_, ##__VA_ARGS__)
ed_layer *ed_layer_dropout_with(const ed_layer_dropout_options *options);

/* ed_activate as a layer. */
#define ED_LAYER_ACTIVATION_OPTIONS(FIELD, T)                                                      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "by name; default: linear")                     \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_activation_options, ED_LAYER_ACTIVATION_OPTIONS);
#define ed_layer_activation(activation_, ...)                                                      \
    ED_WITH_OPTIONS(ed_layer_activation_with(&ed_options_), ED_LAYER_ACTIVATION_OPTIONS,           \
                    ed_layer_activation_options, .activation = activation_, ##__VA_ARGS__)
ed_layer *ed_layer_activation_with(const ed_layer_activation_options *options);

/*
 * Layers one after the other: ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(10)). A
 * name (NULL: "sequential") and then the layers, each of which belongs to one parent. The outputs of
 * one are the inputs of the next; masks go along.
 */
#define ED_LAYER_SEQUENTIAL_OPTIONS(FIELD, T)                                                      \
    FIELD(T, LAYERS, layers, ED_NO_LIST, ED_ANY, "in the order in which they are called")          \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_sequential_options, ED_LAYER_SEQUENTIAL_OPTIONS);
#define ed_layer_sequential(name_, ...)                                                            \
    ED_WITH_OPTIONS(                                                                               \
        ed_layer_sequential_with(&ed_options_), ED_LAYER_SEQUENTIAL_OPTIONS,                       \
        ed_layer_sequential_options,                                                               \
        .name = _Generic((name_), char * : (name_), const char * : (name_), void * : (name_)),     \
        .layers = {(void *const *)(ed_layer *const[]){__VA_ARGS__},                                \
                   sizeof((ed_layer *const[]){__VA_ARGS__}) / sizeof(ed_layer *)})
ed_layer *ed_layer_sequential_with(const ed_layer_sequential_options *options);
ed_layer *ed_layer_sequential_of(const char *name, ed_layer *const *layers, int64_t count);

/* ---- One's own layers ------------------------------------------------------------------------ */

/* A call on its way through a layer. */
typedef struct ed_layer_call {
    int n_inputs, n_outputs;
    ed_tensor *const *inputs; /* at least one; none is NULL */
    ed_tensor *const *masks;  /* one an input, NULL where it has none */
    bool training;
    ed_tensor **outputs, **output_masks; /* made by ed_layer_return */
    int capacity_;                       /* for ed_layer_return */
    ed_tensor *some_[2];
} ed_layer_call;

/*
 * Adds an output: in forward, return ed_layer_return(call, y). false, with the error kept, for NULL.
 * The mask of the output, if it has one, is set by ed_layer_return_mask.
 */
bool ed_layer_return(ed_layer_call *call, ed_tensor *y);
bool ed_layer_return_mask(ed_layer_call *call, int output, ed_tensor *mask);

/* A shape and how values are drawn in it, for the checks of layers: floats evenly in -1..1, or
 * integers from 0 below `below`. */
typedef struct ed_layer_input {
    int rank;
    int64_t shape[ED_MAX_RANK];
    int64_t below;
} ed_layer_input;

/* Options and inputs with which the checks call a layer. */
typedef struct ed_layer_sample {
    const void *options; /* NULL: the defaults */
    ed_layer_input inputs[4];
    int n_inputs; /* 0 ends the array of samples */
} ed_layer_sample;

/*
 * A kind of layer. state_size bytes of state, zero at first, belong to each. `init`, if given, is
 * called when one was made, with its options (ed_options_of(layer)) in place; `build` once, with the
 * first inputs, to add variables (children build themselves when they are called); `forward`
 * computes; `destroy` gives up what the state holds; `track` names what of the state a checkpoint
 * keeps (track.h), beside weights and children, which the layer names itself.
 *
 * A kind with options is defined as the library's are: `kind` has family "layer", the schema
 * (ED_SCHEMA) and make = ed_layer_make; ed_make makes one. A kind without needs a name alone;
 * ed_layer_new makes one.
 */
struct ed_layer_class {
    ed_kind kind;
    size_t state_size;
    int min_inputs, max_inputs; /* 0: 1; max_inputs -1: any number */
    bool (*init)(ed_layer *layer);
    bool (*build)(ed_layer *layer, const ed_layer_call *call);
    bool (*forward)(ed_layer *layer, ed_layer_call *call);
    void (*destroy)(ed_layer *layer);
    void (*track)(ed_layer *layer, ed_tracker *tracker);
    bool in_order;     /* children are called one after the other: Keras' checkpoints number them */
    bool passes_masks; /* the first output has the first input's mask, unless forward says other */
    const ed_layer_sample *samples; /* for the checks of the library's own */
};

/* A layer of a kind without options; name NULL: the kind's, numbered within its parent: dense,
 * dense_1. */
ed_layer *ed_layer_new(const ed_layer_class *class_, const char *name);

/* The `make` of kinds of layers; the kind is the first member of an ed_layer_class. */
void *ed_layer_make(const ed_kind *kind, const void *options);

/* Its state. */
void *ed_layer_state(ed_layer *layer);

/* Adds a child, which the layer holds from now on; returns it. Fails if it has a parent. NULL
 * child: NULL. */
ed_layer *ed_layer_add_child(ed_layer *layer, ed_layer *child);

#define ED_WEIGHT_OPTIONS(FIELD, T)                                                                \
    FIELD(T, INITIALIZER, initializer, NULL, ED_ANY, "of its first value")                         \
    FIELD(T, STRING, otherwise, "glorot_uniform", ED_ANY, "the initializer if none is given")      \
    FIELD(T, BOOL, trainable, true, ED_ANY, "whether tapes watch it by themselves")                \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "float32 or float64")
ED_OPTIONS(ed_weight_options, ED_WEIGHT_OPTIONS);

/* Adds a variable under the layer's path, "mlp/dense/" + name; returns it. */
#define ed_layer_add_weight(layer, name, shape, ...)                                               \
    ED_WITH_OPTIONS(ed_layer_add_weight_with(layer, name, shape, &ed_options_), ED_WEIGHT_OPTIONS, \
                    ed_weight_options, __VA_ARGS__)
ed_tensor *ed_layer_add_weight_with(ed_layer *layer, const char *name, ed_ints shape,
                                    const ed_weight_options *options);

/*
 * Makes a variable that is there already the layer's weight of that name; returns it. Its name
 * becomes the weight's. Takes the value that a checkpoint has for it, if one waits. Fails for a
 * variable that is another layer's weight.
 */
ed_tensor *ed_layer_adopt_weight(ed_layer *layer, const char *name, ed_tensor *variable);

/* ---- Metrics --------------------------------------------------------------------------------- */

typedef struct ed_metric ed_metric;

/* What all metrics have. */
#define ED_METRIC_COMMON(FIELD, T)                                                                 \
    FIELD(T, STRING, name, NULL, ED_ANY, "in messages; default: the kind's")

/* The mean of all values given. */
#define ED_METRIC_MEAN_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_OPTIONS(ed_metric_mean_options, ED_METRIC_MEAN_OPTIONS);
#define ed_metric_mean(...)                                                                        \
    ED_WITH_OPTIONS(ed_metric_mean_with(&ed_options_), ED_METRIC_MEAN_OPTIONS,                     \
                    ed_metric_mean_options, __VA_ARGS__)
ed_metric *ed_metric_mean_with(const ed_metric_mean_options *options);

/* The share of elements where label == prediction. */
#define ED_METRIC_ACCURACY_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_OPTIONS(ed_metric_accuracy_options, ED_METRIC_ACCURACY_OPTIONS);
#define ed_metric_accuracy(...)                                                                    \
    ED_WITH_OPTIONS(ed_metric_accuracy_with(&ed_options_), ED_METRIC_ACCURACY_OPTIONS,             \
                    ed_metric_accuracy_options, __VA_ARGS__)
ed_metric *ed_metric_accuracy_with(const ed_metric_accuracy_options *options);

/* The share of labels (integers [...]) that are the argmax of predictions [..., classes]. */
#define ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_OPTIONS(ed_metric_sparse_categorical_accuracy_options,
           ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS);
#define ed_metric_sparse_categorical_accuracy(...)                                                 \
    ED_WITH_OPTIONS(ed_metric_sparse_categorical_accuracy_with(&ed_options_),                      \
                    ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS,                                 \
                    ed_metric_sparse_categorical_accuracy_options, __VA_ARGS__)
ed_metric *ed_metric_sparse_categorical_accuracy_with(
    const ed_metric_sparse_categorical_accuracy_options *options);

/* Takes in values (of mean) / labels and predictions (of the others). Not recorded by tapes. */
bool ed_metric_update(ed_metric *metric, ed_tensor *values);
bool ed_metric_compare(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions);

/* The figure so far, 0 of nothing; starting anew. */
double ed_metric_result(const ed_metric *metric);
bool ed_metric_reset(ed_metric *metric);

#pragma GCC visibility pop
#endif
