/*
 * Layers: dense, activation, and the chain of layers.
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

/* ed_activate as a layer; any shape. */
#define ED_LAYER_ACTIVATION_OPTIONS(FIELD, T)                                                      \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "by name; default: linear")                     \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, activation, ED_LAYER_ACTIVATION_OPTIONS, activation);

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

#pragma GCC visibility pop
#endif
