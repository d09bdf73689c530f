/*
 * Layers, initializers, losses and metrics, as in Keras.
 *
 *     ed_layer *model = ed_layer_sequential("mlp", ed_layer_flatten(),
 *                                           ed_layer_dense(128, .activation = "relu"),
 *                                           ed_layer_dense(10));
 *     ed_tensor *logits = ed_forward(model, images); // [batch, 28, 28] -> [batch, 10]
 *
 * Each of them has named options, listed in its ..._OPTIONS macro: type, name, default, limits,
 * meaning. ED_KIND below the list declares the functions: ed_layer_dense(10, .use_bias = false)
 * sets one option; ed_layer_dense_with takes a complete structure (ED_NEW_OPTIONS in
 * tensor/schema.h), NULL for the defaults. An option outside its limits is an error. The objects
 * belong to the scope, as all do (tensor/tensor.h).
 */
#ifndef EDDY_NN_H
#define EDDY_NN_H

#include "nn/initializers.h"
#include "nn/layer.h"
#include "nn/graph.h"
#include "nn/layers/core.h"
#include "nn/layers/convolution.h"
#include "nn/layers/pooling.h"
#include "nn/layers/normalization.h"
#include "nn/layers/regularization.h"
#include "nn/layers/reshaping.h"
#include "nn/losses.h"
#include "nn/layers/merging.h"
#include "nn/layers/activations.h"
#include "nn/layers/recurrent.h"
#include "nn/layers/attention.h"
#include "nn/layers/preprocessing.h"
#include "nn/layers/augmentation.h"
#include "nn/metrics.h"
#include "nn/regularizers.h"

/* The macros, made from the lines ED_KIND by tools/kinds.sh. */
#include "nn/kinds.h"

#endif
