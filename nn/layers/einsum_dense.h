/* What layers with an einsum_dense as a child set beyond its options. */
#ifndef EDDY_NN_LAYERS_EINSUM_DENSE_H
#define EDDY_NN_LAYERS_EINSUM_DENSE_H

#include "nn/layer_core.h"

/* The size of an axis that only kernel and output have and whose size in output_shape is -1. */
void einsum_dense_set_size(ed_layer *layer, int64_t size);

#endif
