/*
 * How models are built: layers, initializers, metrics. A layer makes its variables at its first
 * call, when it sees its input's shape; they are named by the path of layers above:
 * mlp/dense_1/kernel.
 */
#ifndef EDDY_NN_H
#define EDDY_NN_H

#include "autodiff/autodiff.h"
#include "track/track.h"

#pragma GCC visibility push(default)

/* ---- Initializers ---------------------------------------------------------------------------- */

typedef enum ed_initializer_kind {
    ED_INIT_DEFAULT, /* what the layer's documentation says */
    ED_INIT_ZEROS,
    ED_INIT_ONES,
    ED_INIT_CONSTANT,         /* value */
    ED_INIT_GLOROT_UNIFORM,   /* +-sqrt(6 / (in + out)) */
    ED_INIT_GLOROT_NORMAL,    /* truncated, variance 2 / (in + out) */
    ED_INIT_HE_UNIFORM,       /* +-sqrt(6 / in) */
    ED_INIT_HE_NORMAL,        /* truncated, variance 2 / in */
    ED_INIT_LECUN_UNIFORM,    /* +-sqrt(3 / in) */
    ED_INIT_LECUN_NORMAL,     /* truncated, variance 1 / in */
    ED_INIT_RANDOM_UNIFORM,   /* -0.05..0.05 */
    ED_INIT_RANDOM_NORMAL,    /* stddev 0.05 */
    ED_INIT_TRUNCATED_NORMAL, /* stddev 0.05, cut at 2 stddev */
} ed_initializer_kind;

typedef struct ed_initializer {
    ed_initializer_kind kind;
    double value; /* of ED_INIT_CONSTANT; of the last three the limit or stddev, 0 meaning 0.05 */
    ed_generator *generator; /* default: the process's source */
} ed_initializer;

/* A tensor of the shape (float32 or float64) as the initializer draws it, ED_INIT_DEFAULT as glorot
 * uniform. Fans as Keras counts them: [in, out]; convolutions [..., in, out]. */
ed_tensor *ed_initialize(ed_initializer initializer, ed_ints shape, ed_dtype dtype);

/* ---- Layers ---------------------------------------------------------------------------------- */

typedef struct ed_layer ed_layer;

typedef struct ed_forward_options {
    bool training; /* dropout drops, batch normalization uses and moves its statistics */
} ed_forward_options;

/* The layer's output for x. The first call makes its variables. */
#define ed_forward(layer, x, ...) ed_forward_with(layer, x, &(ed_forward_options){__VA_ARGS__})
ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options);

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
 * A table of the layers that compute something: path, shape of the output, number of own
 * parameters; the text belongs to the scope.
 */
const char *ed_layer_summary(ed_layer *layer);

/*
 * x w + b along the last axis: [..., in] -> [..., units], of ranks from 2. kernel [in, units],
 * default glorot uniform; bias [units], default zeros. activation by name: see ed_activate.
 */
typedef struct ed_layer_dense_options {
    const char *activation;
    bool no_bias;
    ed_initializer kernel_initializer, bias_initializer;
    const char *name;
} ed_layer_dense_options;
#define ed_layer_dense(units, ...)                                                                 \
    ed_layer_dense_with(units, &(ed_layer_dense_options){__VA_ARGS__})
ed_layer *ed_layer_dense_with(int64_t units, const ed_layer_dense_options *options);

/* Convolution of [batch, height, width, in] with kernel [kh, kw, in, filters], as ed_conv2d; bias
 * [filters]. One number as size, stride or dilation stands for both. */
typedef struct ed_layer_conv2d_options {
    ed_ints strides, dilations;
    const char *padding, *activation;
    bool no_bias;
    ed_initializer kernel_initializer, bias_initializer;
    const char *name;
} ed_layer_conv2d_options;
#define ed_layer_conv2d(filters, kernel_size, ...)                                                 \
    ed_layer_conv2d_with(filters, kernel_size, &(ed_layer_conv2d_options){__VA_ARGS__})
ed_layer *ed_layer_conv2d_with(int64_t filters, ed_ints kernel_size,
                               const ed_layer_conv2d_options *options);

/* Options of layers that have nothing else to say. */
typedef struct ed_layer_options {
    const char *name;
} ed_layer_options;

/* ed_max_pool2d as a layer. */
typedef struct ed_layer_max_pooling2d_options {
    ed_ints window, strides;
    const char *padding, *name;
} ed_layer_max_pooling2d_options;
#define ed_layer_max_pooling2d(...)                                                                \
    ed_layer_max_pooling2d_with(&(ed_layer_max_pooling2d_options){__VA_ARGS__})
ed_layer *ed_layer_max_pooling2d_with(const ed_layer_max_pooling2d_options *options);

/* The mean over height and width: [batch, h, w, channels] -> [batch, channels]. */
#define ed_layer_global_average_pooling2d(...)                                                     \
    ed_layer_global_average_pooling2d_with(&(ed_layer_options){__VA_ARGS__})
ed_layer *ed_layer_global_average_pooling2d_with(const ed_layer_options *options);

/*
 * Batch normalization over all axes but the last, of ranks from 2. Training: by the batch's mean
 * and variance, which move the variables moving_mean and moving_variance (not trainable):
 * moving = momentum moving + (1 - momentum) batch's. Otherwise by those.
 */
typedef struct ed_layer_batch_normalization_options {
    double momentum, epsilon; /* default 0.99, 0.001 */
    bool no_center, no_scale;
    const char *name;
} ed_layer_batch_normalization_options;
#define ed_layer_batch_normalization(...)                                                          \
    ED_WITH(ed_layer_batch_normalization_with(&ed_options_), ed_layer_batch_normalization_options, \
            .momentum = 0.99, .epsilon = 0.001, ##__VA_ARGS__)
ed_layer *ed_layer_batch_normalization_with(const ed_layer_batch_normalization_options *options);

/* [batch, ...] -> [batch, product of the rest]. */
#define ed_layer_flatten(...) ed_layer_flatten_with(&(ed_layer_options){__VA_ARGS__})
ed_layer *ed_layer_flatten_with(const ed_layer_options *options);

/* In training: ed_dropout. Otherwise x. Checkpoints of the layer hold a generator that is given. */
typedef struct ed_layer_dropout_options {
    ed_generator *generator;
    const char *name;
} ed_layer_dropout_options;
#define ed_layer_dropout(rate, ...)                                                                \
    ed_layer_dropout_with(rate, &(ed_layer_dropout_options){__VA_ARGS__})
ed_layer *ed_layer_dropout_with(double rate, const ed_layer_dropout_options *options);

/*
 * An activation by name, as a layer / as a function: linear, relu, relu6, leaky_relu, elu, selu,
 * sigmoid, hard_sigmoid, tanh, softplus, softsign, silu (swish), gelu, exponential, softmax,
 * log_softmax. NULL or "" is linear.
 */
#define ed_layer_activation(activation, ...)                                                       \
    ed_layer_activation_with(activation, &(ed_layer_options){__VA_ARGS__})
ed_layer *ed_layer_activation_with(const char *activation, const ed_layer_options *options);
ed_tensor *ed_activate(ed_tensor *x, const char *activation);

/* Layers one after the other: ed_layer_sequential("mlp", ed_layer_flatten(),
 * ed_layer_dense(10)). A layer belongs to one parent. */
#define ed_layer_sequential(name, ...)                                                             \
    ed_layer_sequential_of(name, (ed_layer *const[]){__VA_ARGS__},                                 \
                           sizeof((ed_layer *const[]){__VA_ARGS__}) / sizeof(ed_layer *))
ed_layer *ed_layer_sequential_of(const char *name, ed_layer *const *layers, int64_t count);

/* ---- One's own layers ------------------------------------------------------------------------ */

/*
 * A kind of layer. state_size bytes of state, zero at first, belong to each. build is called once,
 * with the first input, to add variables (children build themselves when they are called); forward
 * computes; destroy, if given, gives up what the state holds; track, if given, names what of the
 * state a checkpoint keeps (track.h), beside weights and children, which the layer names itself.
 */
typedef struct ed_layer_class {
    const char *name;
    size_t state_size;
    bool (*build)(ed_layer *layer, ed_tensor *x);
    ed_tensor *(*forward)(ed_layer *layer, ed_tensor *x, const ed_forward_options *options);
    void (*destroy)(ed_layer *layer);
    void (*track)(ed_layer *layer, ed_tracker *tracker);
    bool in_order; /* children are called one after the other: Keras' checkpoints number them */
} ed_layer_class;

/* A layer of that kind; name NULL: the kind's, numbered within its parent: dense, dense_1. */
ed_layer *ed_layer_new(const ed_layer_class *kind, const char *name);

/* Its state. */
void *ed_layer_state(ed_layer *layer);

/* Adds a child, which the layer holds from now on; returns it. Fails if it has a parent. NULL
 * child: NULL. */
ed_layer *ed_layer_add_child(ed_layer *layer, ed_layer *child);

typedef struct ed_weight_options {
    ed_initializer initializer; /* default glorot uniform */
    bool not_trainable;
    ed_dtype dtype; /* default float32 */
} ed_weight_options;

/* Adds a variable under the layer's path, "mlp/dense/" + name; returns it. */
#define ed_layer_add_weight(layer, name, shape, ...)                                               \
    ed_layer_add_weight_with(layer, name, shape, &(ed_weight_options){__VA_ARGS__})
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

/*
 * A running figure. mean: of all values given. accuracy: the share of elements where label ==
 * prediction. sparse_categorical_accuracy: the share of labels (whole numbers [...]) that are the
 * argmax of predictions [..., classes]. Errors call it by its name (NULL: the kind's).
 */
ed_metric *ed_metric_mean(const char *name);
ed_metric *ed_metric_accuracy(const char *name);
ed_metric *ed_metric_sparse_categorical_accuracy(const char *name);

/* Takes in values (of mean) / labels and predictions (of the others). Not recorded by tapes. */
bool ed_metric_update(ed_metric *metric, ed_tensor *values);
bool ed_metric_compare(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions);

/* The figure so far, 0 of nothing; starting anew. */
double ed_metric_result(const ed_metric *metric);
bool ed_metric_reset(ed_metric *metric);

#pragma GCC visibility pop
#endif
