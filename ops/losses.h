/* Cross-entropies. ops.h says what holds for all. */
#ifndef EDDY_OPS_LOSSES_H
#define EDDY_OPS_LOSSES_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* -sum labels log_softmax(logits) along the last axis: labels and logits [..., classes], result
 * [...]. Gradients for both. */
ed_tensor *ed_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* The same for labels (int32 or int64 [...]) that name the class; a label outside 0..classes-1 is
 * an error that names it. */
ed_tensor *ed_sparse_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* max(x, 0) - x z + log(1 + e^-|x|) for logits x and labels z, element by element. Gradients for
 * both. */
ed_tensor *ed_sigmoid_cross_entropy(ed_tensor *labels, ed_tensor *logits);

#pragma GCC visibility pop
#endif
