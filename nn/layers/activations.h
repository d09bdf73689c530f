/*
 * Layers: activations with options, functions. activation (nn/layers/core.h) takes one by name.
 */
#ifndef EDDY_NN_LAYERS_ACTIVATIONS_H
#define EDDY_NN_LAYERS_ACTIVATIONS_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* min(x, max_value) where x > threshold, else negative_slope (x - threshold). */
#define ED_LAYER_RELU_OPTIONS(FIELD, T)                                                            \
    FIELD(T, FLOAT, max_value, __builtin_inf(), ED_BETWEEN(0, __builtin_inf()), "of the result")   \
    FIELD(T, FLOAT, negative_slope, 0, ED_AT_LEAST(0), "for x <= threshold")                       \
    FIELD(T, FLOAT, threshold, 0, ED_AT_LEAST(0), "above which x stays")                           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, relu, ED_LAYER_RELU_OPTIONS);

/* x > 0 ? x : negative_slope x. */
#define ED_LAYER_LEAKY_RELU_OPTIONS(FIELD, T)                                                      \
    FIELD(T, FLOAT, negative_slope, 0.3, ED_AT_LEAST(0), "for x <= 0")                             \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, leaky_relu, ED_LAYER_LEAKY_RELU_OPTIONS);

/* x > 0 ? x : alpha x with a weight alpha [...], one for each element of a sample; axes that are
 * shared, as ED_AXES(1, 2) of images [batch, height, width, channels], have size 1 in it. */
#define ED_LAYER_PRELU_OPTIONS(FIELD, T)                                                           \
    FIELD(T, INITIALIZER, alpha_initializer, NULL, ED_OTHERWISE("zeros"), "of alpha")              \
    FIELD(T, REGULARIZER, alpha_regularizer, NULL, ED_ANY, "of alpha")                             \
    FIELD(T, CONSTRAINT, alpha_constraint, NULL, ED_ANY, "of alpha")                               \
    FIELD(T, AXES, shared_axes, ED_NO_LIST, ED_ANY,                                                \
          "along which alpha is the same; default: none")                                          \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, prelu, ED_LAYER_PRELU_OPTIONS);

/* x > 0 ? x : alpha (e^x - 1). */
#define ED_LAYER_ELU_OPTIONS(FIELD, T)                                                             \
    FIELD(T, FLOAT, alpha, 1, ED_FINITE, "-alpha is what small x go to")                           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, elu, ED_LAYER_ELU_OPTIONS);

/* ed_softmax along the axes together. Elements that the mask, which broadcasts with x, has as false
 * do not count and become 0. */
#define ED_LAYER_SOFTMAX_OPTIONS(FIELD, T)                                                         \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "along which; default: the last one")                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, softmax, ED_LAYER_SOFTMAX_OPTIONS);

/*
 * A layer without weights that returns function(x, user); the function makes its result of ops, so
 * that gradients flow, and returns NULL with an error set on failure. user must outlive the layer.
 * name NULL: "lambda". Such a layer has no JSON.
 */
ed_layer *ed_layer_lambda(const char *name, ed_tensor *(*function)(ed_tensor *x, void *user),
                          void *user);

#pragma GCC visibility pop
#endif
