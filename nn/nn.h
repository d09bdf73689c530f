/*
 * Layers, initializers and metrics, as in Keras.
 *
 *     ed_layer *model = ed_layer_sequential("mlp", ed_layer_flatten(),
 *                                           ed_layer_dense(128, .activation = "relu"),
 *                                           ed_layer_dense(10));
 *     ed_tensor *logits = ed_forward(model, images); // [batch, 28, 28] -> [batch, 10]
 *
 * A layer creates its weights at its first call, from the shape and dtype of its input (float32 or
 * float64). A weight's name is the path of its layer and its own name: "mlp/dense_1/kernel".
 *
 * Each layer, initializer and metric has named options, listed in its ..._OPTIONS macro: type,
 * name, default, limits, meaning. ed_layer_dense(10, .use_bias = false) sets one; ..._with takes a
 * complete structure (ED_NEW_OPTIONS in tensor/schema.h), NULL for the defaults. An option outside
 * its limits is an error. The objects belong to the scope, as all do (tensor/tensor.h).
 */
#ifndef EDDY_NN_H
#define EDDY_NN_H

#include "autodiff/autodiff.h"
#include "tensor/schema.h"
#include "track/track.h"

#pragma GCC visibility push(default)

/* ---- Initializers (nn/initializer*.c) -------------------------------------------------------- */

/*
 * An initializer creates a weight's initial value. fan_in and fan_out are counted as in Keras: of
 * the shape [..., in, out], fan_in = product(...) in, fan_out = product(...) out; of the shape [n]
 * both are n. A truncated normal distribution draws values again that are more than 2 standard
 * deviations from the mean; stddev is that before truncation, a variance that after it.
 */
typedef struct ed_initializer ed_initializer;

/* A new tensor of the shape and dtype (float32 or float64) with values of the initializer. A second
 * call draws other random values. */
ed_tensor *ed_initialize(ed_initializer *initializer, ed_ints shape, ed_dtype dtype);

/* All elements 0. */
#define ED_INITIALIZER_ZEROS_OPTIONS(FIELD, T)
ED_OPTIONS(ed_initializer_zeros_options, ED_INITIALIZER_ZEROS_OPTIONS);
#define ed_initializer_zeros()                                                                     \
    ED_WITH_OPTIONS(ed_initializer_zeros_with(&ed_options_), ED_INITIALIZER_ZEROS_OPTIONS,         \
                    ed_initializer_zeros_options)
ed_initializer *ed_initializer_zeros_with(const ed_initializer_zeros_options *options);

/* All elements 1. */
#define ED_INITIALIZER_ONES_OPTIONS(FIELD, T)
ED_OPTIONS(ed_initializer_ones_options, ED_INITIALIZER_ONES_OPTIONS);
#define ed_initializer_ones()                                                                      \
    ED_WITH_OPTIONS(ed_initializer_ones_with(&ed_options_), ED_INITIALIZER_ONES_OPTIONS,           \
                    ed_initializer_ones_options)
ed_initializer *ed_initializer_ones_with(const ed_initializer_ones_options *options);

/* All elements `value`: ed_initializer_constant(0.1). */
#define ED_INITIALIZER_CONSTANT_OPTIONS(FIELD, T)                                                  \
    FIELD(T, FLOAT, value, 0, ED_FINITE, "value of each element")
ED_OPTIONS(ed_initializer_constant_options, ED_INITIALIZER_CONSTANT_OPTIONS);
#define ed_initializer_constant(value_)                                                            \
    ED_WITH_OPTIONS(ed_initializer_constant_with(&ed_options_), ED_INITIALIZER_CONSTANT_OPTIONS,   \
                    ed_initializer_constant_options, .value = value_)
ed_initializer *ed_initializer_constant_with(const ed_initializer_constant_options *options);

/* Uniform in [minval, maxval). */
#define ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS(FIELD, T)                                            \
    FIELD(T, FLOAT, minval, -0.05, ED_FINITE, "lower limit, included")                             \
    FIELD(T, FLOAT, maxval, 0.05, ED_FINITE, "upper limit, excluded")                              \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "draws the random numbers; default: the process's")
ED_OPTIONS(ed_initializer_random_uniform_options, ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS);
#define ed_initializer_random_uniform(...)                                                         \
    ED_WITH_OPTIONS(ed_initializer_random_uniform_with(&ed_options_),                              \
                    ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS, ed_initializer_random_uniform_options,  \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_random_uniform_with(const ed_initializer_random_uniform_options *options);

/* Normal. */
#define ED_INITIALIZER_RANDOM_NORMAL_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, mean, 0, ED_FINITE, "mean of the distribution")                                \
    FIELD(T, FLOAT, stddev, 0.05, ED_AT_LEAST(0), "standard deviation")                            \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "draws the random numbers; default: the process's")
ED_OPTIONS(ed_initializer_random_normal_options, ED_INITIALIZER_RANDOM_NORMAL_OPTIONS);
#define ed_initializer_random_normal(...)                                                          \
    ED_WITH_OPTIONS(ed_initializer_random_normal_with(&ed_options_),                               \
                    ED_INITIALIZER_RANDOM_NORMAL_OPTIONS, ed_initializer_random_normal_options,    \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_random_normal_with(const ed_initializer_random_normal_options *options);

/* Normal, truncated at 2 standard deviations from the mean. */
#define ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS ED_INITIALIZER_RANDOM_NORMAL_OPTIONS
ED_OPTIONS(ed_initializer_truncated_normal_options, ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS);
#define ed_initializer_truncated_normal(...)                                                       \
    ED_WITH_OPTIONS(ed_initializer_truncated_normal_with(&ed_options_),                            \
                    ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS,                                       \
                    ed_initializer_truncated_normal_options, __VA_ARGS__)
ed_initializer *
ed_initializer_truncated_normal_with(const ed_initializer_truncated_normal_options *options);

/* Mean 0, variance scale / fan; "uniform" is uniform in +-sqrt(3 scale / fan). */
#define ED_INITIALIZER_VARIANCE_SCALING_OPTIONS(FIELD, T)                                          \
    FIELD(T, FLOAT, scale, 1, ED_ABOVE(0), "variance = scale / fan")                               \
    FIELD(T, CHOICE, mode, "fan_in", ED_ONE_OF("fan_in", "fan_out", "fan_avg"),                    \
          "fan that is used; avg: the mean of both")                                               \
    FIELD(T, CHOICE, distribution, "truncated_normal",                                             \
          ED_ONE_OF("truncated_normal", "untruncated_normal", "uniform"),                          \
          "distribution of the values")                                                            \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "draws the random numbers; default: the process's")
ED_OPTIONS(ed_initializer_variance_scaling_options, ED_INITIALIZER_VARIANCE_SCALING_OPTIONS);
#define ed_initializer_variance_scaling(...)                                                       \
    ED_WITH_OPTIONS(ed_initializer_variance_scaling_with(&ed_options_),                            \
                    ED_INITIALIZER_VARIANCE_SCALING_OPTIONS,                                       \
                    ed_initializer_variance_scaling_options, __VA_ARGS__)
ed_initializer *
ed_initializer_variance_scaling_with(const ed_initializer_variance_scaling_options *options);

/* Uniform in +-sqrt(6 / (fan_in + fan_out)). */
#define ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS(FIELD, T)                                            \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "draws the random numbers; default: the process's")
ED_OPTIONS(ed_initializer_glorot_uniform_options, ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS);
#define ed_initializer_glorot_uniform(...)                                                         \
    ED_WITH_OPTIONS(ed_initializer_glorot_uniform_with(&ed_options_),                              \
                    ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS, ed_initializer_glorot_uniform_options,  \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_glorot_uniform_with(const ed_initializer_glorot_uniform_options *options);

/* Truncated normal, variance 2 / (fan_in + fan_out). */
#define ED_INITIALIZER_GLOROT_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_glorot_normal_options, ED_INITIALIZER_GLOROT_NORMAL_OPTIONS);
#define ed_initializer_glorot_normal(...)                                                          \
    ED_WITH_OPTIONS(ed_initializer_glorot_normal_with(&ed_options_),                               \
                    ED_INITIALIZER_GLOROT_NORMAL_OPTIONS, ed_initializer_glorot_normal_options,    \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_glorot_normal_with(const ed_initializer_glorot_normal_options *options);

/* Uniform in +-sqrt(6 / fan_in). */
#define ED_INITIALIZER_HE_UNIFORM_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_he_uniform_options, ED_INITIALIZER_HE_UNIFORM_OPTIONS);
#define ed_initializer_he_uniform(...)                                                             \
    ED_WITH_OPTIONS(ed_initializer_he_uniform_with(&ed_options_),                                  \
                    ED_INITIALIZER_HE_UNIFORM_OPTIONS, ed_initializer_he_uniform_options,          \
                    __VA_ARGS__)
ed_initializer *ed_initializer_he_uniform_with(const ed_initializer_he_uniform_options *options);

/* Truncated normal, variance 2 / fan_in. */
#define ED_INITIALIZER_HE_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_he_normal_options, ED_INITIALIZER_HE_NORMAL_OPTIONS);
#define ed_initializer_he_normal(...)                                                              \
    ED_WITH_OPTIONS(ed_initializer_he_normal_with(&ed_options_), ED_INITIALIZER_HE_NORMAL_OPTIONS, \
                    ed_initializer_he_normal_options, __VA_ARGS__)
ed_initializer *ed_initializer_he_normal_with(const ed_initializer_he_normal_options *options);

/* Uniform in +-sqrt(3 / fan_in). */
#define ED_INITIALIZER_LECUN_UNIFORM_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_lecun_uniform_options, ED_INITIALIZER_LECUN_UNIFORM_OPTIONS);
#define ed_initializer_lecun_uniform(...)                                                          \
    ED_WITH_OPTIONS(ed_initializer_lecun_uniform_with(&ed_options_),                               \
                    ED_INITIALIZER_LECUN_UNIFORM_OPTIONS, ed_initializer_lecun_uniform_options,    \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_lecun_uniform_with(const ed_initializer_lecun_uniform_options *options);

/* Truncated normal, variance 1 / fan_in. */
#define ED_INITIALIZER_LECUN_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_OPTIONS(ed_initializer_lecun_normal_options, ED_INITIALIZER_LECUN_NORMAL_OPTIONS);
#define ed_initializer_lecun_normal(...)                                                           \
    ED_WITH_OPTIONS(ed_initializer_lecun_normal_with(&ed_options_),                                \
                    ED_INITIALIZER_LECUN_NORMAL_OPTIONS, ed_initializer_lecun_normal_options,      \
                    __VA_ARGS__)
ed_initializer *
ed_initializer_lecun_normal_with(const ed_initializer_lecun_normal_options *options);

/* ---- Calling layers -------------------------------------------------------------------------- */

/* A layer: weights, children, and a function of tensors. */
typedef struct ed_layer ed_layer;

/* Options of a call of a layer; zero: not given. */
typedef struct ed_forward_options {
    bool training;   /* default false: inference. Matters to dropout and batch normalization */
    ed_tensor *mask; /* of the first input: bool, false for steps to skip */
    ed_list *masks;  /* one for each input, NULL entries allowed; used instead of mask */
    ed_list **output_masks; /* if not NULL, is set to a list of the outputs' masks, NULL for none */
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
#define ed_forward(layer, x, ...)                                                                  \
    ED_AT(_Generic((x), ed_list *                                                                  \
                   : ed_forward_list, default                                                      \
                   : ed_forward_with)(                                                             \
        layer, x, ED_GIVEN_(ed_forward_options, __VA_ARGS__) ED_OPTIONAL_(0, ##__VA_ARGS__)))
#define ed_forward_one(layer, list, ...)                                                           \
    ed_forward_one_with(layer, list,                                                               \
                        ED_GIVEN_(ed_forward_options, __VA_ARGS__) ED_OPTIONAL_(0, ##__VA_ARGS__))
ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options);
ed_tensor *ed_forward_one_with(ed_layer *layer, ed_list *inputs, const ed_forward_options *options);
ed_list *ed_forward_list(ed_layer *layer, ed_list *inputs, const ed_forward_options *options);

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
 * A table with a line for each layer without children or with weights of its own: path, shape of
 * the output at its first call, number of its own parameters. A string that belongs to the scope.
 */
const char *ed_layer_summary(ed_layer *layer);

/*
 * The activation of that name, applied to x: linear, relu, relu6, leaky_relu (slope 0.2), elu,
 * selu, sigmoid, hard_sigmoid, tanh, softplus, softsign, silu (swish), gelu, exponential, softmax,
 * log_softmax (both over the last axis). NULL or "" is linear, which returns x itself. Fails with
 * ED_NOT_FOUND for another name.
 */
ed_tensor *ed_activate(ed_tensor *x, const char *activation);

/* ---- Layers (one file each in nn/) ----------------------------------------------------------- */

/* Options of all layers. */
#define ED_LAYER_COMMON(FIELD, T)                                                                  \
    FIELD(T, STRING, name, NULL, ED_ANY, "default: the kind's name, made unique in its parent")

/* y = activation(x kernel + bias): [..., in] -> [..., units], rank at least 2. Weights: kernel [in,
 * units], bias [units]. */
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
 * y = activation(ed_conv2d(x, kernel) + bias): [batch, height, width, in] -> [batch, height',
 * width', filters]; ops/ops.h has the sizes. Weights: kernel [kernel height, kernel width, in,
 * filters], bias [filters]. kernel_size, strides and dilations are one number for both axes, or
 * two: ed_layer_conv2d(32, ED_INTS(3), .strides = ED_INTS(2, 1)).
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

/* ed_max_pool2d as a layer: the maximum of each window, [batch, height, width, channels] -> [batch,
 * height', width', channels]. One number for both axes, or two. */
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

/* The mean over height and width: [batch, height, width, channels] -> [batch, channels]. */
#define ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_global_average_pooling2d_options, ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS);
#define ed_layer_global_average_pooling2d(...)                                                     \
    ED_WITH_OPTIONS(ed_layer_global_average_pooling2d_with(&ed_options_),                          \
                    ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS,                                     \
                    ed_layer_global_average_pooling2d_options, __VA_ARGS__)
ed_layer *
ed_layer_global_average_pooling2d_with(const ed_layer_global_average_pooling2d_options *options);

/*
 * Batch normalization: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with statistics over
 * all axes but the last; [..., channels] -> the same shape, rank at least 2. With .training = true
 * they are those of the batch, and moving = momentum moving + (1 - momentum) batch; otherwise
 * moving_mean and moving_variance are used. Weights, each [channels]: gamma, beta, moving_mean and
 * moving_variance (not trainable).
 */
#define ED_LAYER_BATCH_NORMALIZATION_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, momentum, 0.99, ED_BETWEEN(0, 1), "decay of the moving statistics")            \
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

/* [batch, ...] -> [batch, product of the other sizes]; a view where strides allow it. Any dtype. */
#define ED_LAYER_FLATTEN_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_flatten_options, ED_LAYER_FLATTEN_OPTIONS);
#define ed_layer_flatten(...)                                                                      \
    ED_WITH_OPTIONS(ed_layer_flatten_with(&ed_options_), ED_LAYER_FLATTEN_OPTIONS,                 \
                    ed_layer_flatten_options, __VA_ARGS__)
ed_layer *ed_layer_flatten_with(const ed_layer_flatten_options *options);

/* With .training = true: each element becomes 0 with probability rate, the others are divided by
 * 1 - rate (ed_dropout). Otherwise returns x. A checkpoint saves a generator that was given. */
#define ED_LAYER_DROPOUT_OPTIONS(FIELD, T)                                                         \
    FIELD(T, FLOAT, rate, 0, ED_FROM(0, 1), "probability that an element becomes 0")               \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY,                                                   \
          "draws the random numbers; default: the process's")                                      \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_dropout_options, ED_LAYER_DROPOUT_OPTIONS);
#define ed_layer_dropout(rate_, ...)                                                               \
    ED_WITH_OPTIONS(ed_layer_dropout_with(&ed_options_), ED_LAYER_DROPOUT_OPTIONS,                 \
                    ed_layer_dropout_options, .rate = rate_, ##__VA_ARGS__)
ed_layer *ed_layer_dropout_with(const ed_layer_dropout_options *options);

/* ed_activate as a layer; any shape. */
#define ED_LAYER_ACTIVATION_OPTIONS(FIELD, T)                                                      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "by name; default: linear")                     \
    ED_LAYER_COMMON(FIELD, T)
ED_OPTIONS(ed_layer_activation_options, ED_LAYER_ACTIVATION_OPTIONS);
#define ed_layer_activation(activation_, ...)                                                      \
    ED_WITH_OPTIONS(ed_layer_activation_with(&ed_options_), ED_LAYER_ACTIVATION_OPTIONS,           \
                    ed_layer_activation_options, .activation = activation_, ##__VA_ARGS__)
ed_layer *ed_layer_activation_with(const ed_layer_activation_options *options);

/*
 * A chain of layers: the outputs and masks of one are the inputs and masks of the next. A name
 * (NULL: "sequential") and then the layers: ed_layer_sequential("mlp", ed_layer_flatten(),
 * ed_layer_dense(10)). ed_layer_sequential_of takes them as an array. Fails if a layer is NULL, has
 * a parent already, or has the name of another one. ed_layer_add_child appends one later.
 */
#define ED_LAYER_SEQUENTIAL_OPTIONS(FIELD, T)                                                      \
    FIELD(T, LAYERS, layers, ED_NO_LIST, ED_ANY, "in the order of the calls")                      \
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

/* Options of ed_layer_add_weight. */
#define ED_WEIGHT_OPTIONS(FIELD, T)                                                                \
    FIELD(T, INITIALIZER, initializer, NULL, ED_ANY, "creates the initial value")                  \
    FIELD(T, STRING, otherwise, "glorot_uniform", ED_ANY, "kind of initializer if that is NULL")   \
    FIELD(T, BOOL, trainable, true, ED_ANY, "whether tapes watch it automatically")                \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "float32 or float64")
ED_OPTIONS(ed_weight_options, ED_WEIGHT_OPTIONS);

/*
 * Creates a weight, a variable named "<path of the layer>/<name>", and returns it; `build` calls
 * it: ed_layer_add_weight(layer, "kernel", ED_SHAPE(in, out), .dtype = x->dtype). If a restored
 * checkpoint has a value for it, it starts with that value. Fails if the layer has a weight of that
 * name.
 */
#define ed_layer_add_weight(layer, name, shape, ...)                                               \
    ED_WITH_OPTIONS(ed_layer_add_weight_with(layer, name, shape, &ed_options_), ED_WEIGHT_OPTIONS, \
                    ed_weight_options, __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))
ed_tensor *ed_layer_add_weight_with(ed_layer *layer, const char *name, ed_ints shape,
                                    const ed_weight_options *options);

/*
 * Makes an existing variable the layer's weight of that name, renames it accordingly, and returns
 * it. If a restored checkpoint has a value for it, that is assigned. Fails for a variable that is
 * another layer's weight.
 */
ed_tensor *ed_layer_adopt_weight(ed_layer *layer, const char *name, ed_tensor *variable);

/* ---- Metrics (nn/metric*.c) ------------------------------------------------------------------ */

/* A metric adds up values over many batches: total (float64) and count (int64). */
typedef struct ed_metric ed_metric;

/* The options of all metrics. */
#define ED_METRIC_COMMON(FIELD, T)                                                                 \
    FIELD(T, STRING, name, NULL, ED_ANY, "used in messages; default: the kind's")

/* The mean of all elements of all updates. */
#define ED_METRIC_MEAN_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_OPTIONS(ed_metric_mean_options, ED_METRIC_MEAN_OPTIONS);
#define ed_metric_mean(...)                                                                        \
    ED_WITH_OPTIONS(ed_metric_mean_with(&ed_options_), ED_METRIC_MEAN_OPTIONS,                     \
                    ed_metric_mean_options, __VA_ARGS__)
ed_metric *ed_metric_mean_with(const ed_metric_mean_options *options);

/* The share of elements with label == prediction; both have the same shape, but one may be
 * [..., 1] where the other one is [...]. Any dtypes. */
#define ED_METRIC_ACCURACY_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_OPTIONS(ed_metric_accuracy_options, ED_METRIC_ACCURACY_OPTIONS);
#define ed_metric_accuracy(...)                                                                    \
    ED_WITH_OPTIONS(ed_metric_accuracy_with(&ed_options_), ED_METRIC_ACCURACY_OPTIONS,             \
                    ed_metric_accuracy_options, __VA_ARGS__)
ed_metric *ed_metric_accuracy_with(const ed_metric_accuracy_options *options);

/* The share of labels (integers, [...] or [..., 1]) that equal the argmax of predictions (floats,
 * [..., classes]). */
#define ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_OPTIONS(ed_metric_sparse_categorical_accuracy_options,
           ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS);
#define ed_metric_sparse_categorical_accuracy(...)                                                 \
    ED_WITH_OPTIONS(ed_metric_sparse_categorical_accuracy_with(&ed_options_),                      \
                    ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS,                                 \
                    ed_metric_sparse_categorical_accuracy_options, __VA_ARGS__)
ed_metric *ed_metric_sparse_categorical_accuracy_with(
    const ed_metric_sparse_categorical_accuracy_options *options);

/* Adds all elements of a tensor, of any dtype and shape, to a metric of values (mean). Tapes do not
 * record it. false on failure; the metric is then unchanged. */
bool ed_metric_update(ed_metric *metric, ed_tensor *values);

/* Adds a batch to a metric that compares (the accuracies). ED_OUT_OF_RANGE for a label that is not
 * in 0..classes - 1. Otherwise as ed_metric_update. */
bool ed_metric_compare(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions);

/* total / count, 0 before the first update; NaN, with an error, for NULL. */
double ed_metric_result(const ed_metric *metric);

/* Sets total and count to 0. */
bool ed_metric_reset(ed_metric *metric);

#pragma GCC visibility pop
#endif
