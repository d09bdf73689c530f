/*
 * Layers: dropout.
 */
#ifndef EDDY_NN_LAYERS_REGULARIZATION_H
#define EDDY_NN_LAYERS_REGULARIZATION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* With .training = true: each element becomes 0 with probability rate, the others are divided by
 * 1 - rate (ed_dropout). Otherwise returns x. A checkpoint saves a generator that was given. */
#define ED_LAYER_DROPOUT_OPTIONS(FIELD, T)                                                         \
    FIELD(T, FLOAT, rate, 0, ED_FROM(0, 1), "probability that an element becomes 0")               \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY,                                                   \
          "draws the random numbers; default: the process's")                                      \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, dropout, ED_LAYER_DROPOUT_OPTIONS, rate);

#pragma GCC visibility pop
#endif
