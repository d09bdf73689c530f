/*
 * Layers: dense, einsum_dense, embedding, masking, activation, and the chain of layers.
 */
#ifndef EDDY_NN_LAYERS_CORE_H
#define EDDY_NN_LAYERS_CORE_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* y = activation(x kernel + bias): [..., in] -> [..., units], rank at least 2. Weights: kernel [in,
 * units], bias [units]. */
#define ED_LAYER_DENSE_OPTIONS(FIELD, T)                                                           \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of the output's last axis")                      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "of the result, by name; default: linear")      \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, dense, ED_LAYER_DENSE_OPTIONS, units);

/*
 * y = activation(ed_einsum(equation, x, kernel) + bias). The equation has two operands, x and the
 * kernel: "ab,bc->ac", with an ellipsis "...x,xy->...y" or "ab...,bc->ac...". output_shape are the
 * sizes of the output without the batch and what an ellipsis stands for, -1 where it is x's.
 * bias_axes are the letters of the output along which there is a bias ("" or NULL: no bias).
 * Weights: kernel, sizes as in the equation; bias. Where kernel_initializer is not given, the fans
 * are the products of the kernel's sizes summed over, and of the others.
 */
#define ED_LAYER_EINSUM_DENSE_OPTIONS(FIELD, T)                                                    \
    FIELD(T, STRING, equation, NULL, ED_ANY, "as of ed_einsum: \"abc,cd->abd\"")                   \
    FIELD(T, INTS, output_shape, ED_NO_LIST, ED_AT_LEAST(-1), "sizes of the output; -1: x's")      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "of the result, by name; default: linear")      \
    FIELD(T, STRING, bias_axes, NULL, ED_ANY, "letters of the output; default: no bias")           \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    FIELD(T, INITIALIZER, bias_initializer, NULL, ED_OTHERWISE("zeros"), "of bias")                \
    FIELD(T, REGULARIZER, bias_regularizer, NULL, ED_ANY, "of bias")                               \
    FIELD(T, CONSTRAINT, bias_constraint, NULL, ED_ANY, "of bias")                                 \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, einsum_dense, ED_LAYER_EINSUM_DENSE_OPTIONS, equation, output_shape);

/*
 * Rows of a table by their number: integers [...] to [..., output_dim]. A number outside 0 to
 * input_dim - 1 is an error. Weights: embeddings [input_dim, output_dim], float32 if dtype is not
 * given; its gradient is that of the rows that were read (ed_is_indexed_slices). With mask_zero, 0
 * is padding, and the output's mask is false where x is 0.
 */
#define ED_LAYER_EMBEDDING_OPTIONS(FIELD, T)                                                       \
    FIELD(T, INT, input_dim, 0, ED_AT_LEAST(1), "number of rows")                                  \
    FIELD(T, INT, output_dim, 0, ED_AT_LEAST(1), "size of a row")                                  \
    FIELD(T, INITIALIZER, embeddings_initializer, NULL, ED_OTHERWISE("random_uniform"),            \
          "of embeddings")                                                                         \
    FIELD(T, REGULARIZER, embeddings_regularizer, NULL, ED_ANY, "of embeddings")                   \
    FIELD(T, CONSTRAINT, embeddings_constraint, NULL, ED_ANY, "of embeddings")                     \
    FIELD(T, BOOL, mask_zero, false, ED_ANY, "0 is padding: the output has a mask")                \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, embedding, ED_LAYER_EMBEDDING_OPTIONS, input_dim, output_dim);

/* Marks the steps of x [batch, time, ..., features] to skip, those whose features are all
 * mask_value: they become 0, and the output's mask is false there. */
#define ED_LAYER_MASKING_OPTIONS(FIELD, T)                                                         \
    FIELD(T, FLOAT, mask_value, 0, ED_ANY, "of the features of steps to skip")                     \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, masking, ED_LAYER_MASKING_OPTIONS);

/* ed_activate as a layer; any shape. */
#define ED_LAYER_ACTIVATION_OPTIONS(FIELD, T)                                                      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "by name; default: linear")                     \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, activation, ED_LAYER_ACTIVATION_OPTIONS, activation);

/* x itself, of any dtype and shape: for a place where a layer has to be. */
#define ED_LAYER_IDENTITY_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, identity, ED_LAYER_IDENTITY_OPTIONS);

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

/* The same from complete options, and from an array of `count` layers. */
ed_layer *ed_layer_sequential_with(const ed_layer_sequential_options *options);
ed_layer *ed_layer_sequential_of(const char *name, ed_layer *const *layers, int64_t count);
#define ed_layer_sequential(name_, ...)                                                            \
    ED_WITH_OPTIONS(                                                                               \
        ed_layer_sequential_with(&ed_options_), ED_LAYER_SEQUENTIAL_OPTIONS,                       \
        ed_layer_sequential_options,                                                               \
        .name = _Generic((name_), char * : (name_), const char * : (name_), void * : (name_)),     \
        .layers = {(void *const *)(ed_layer *const[]){__VA_ARGS__},                                \
                   sizeof((ed_layer *const[]){__VA_ARGS__}) / sizeof(ed_layer *)})

#pragma GCC visibility pop
#endif
