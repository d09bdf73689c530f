/*
 * Layers: shapes.
 */
#ifndef EDDY_NN_LAYERS_RESHAPING_H
#define EDDY_NN_LAYERS_RESHAPING_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* [batch, ...] -> [batch, product of the other sizes]; a view where strides allow it. Any dtype. */
#define ED_LAYER_FLATTEN_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, flatten, ED_LAYER_FLATTEN_OPTIONS);

#pragma GCC visibility pop
#endif
