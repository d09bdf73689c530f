/* Eddy: eager tensors with tape autodiff, in C. The one header a program includes; each part tells
 * its own story. */
#ifndef EDDY_H
#define EDDY_H

#include "tensor/tensor.h"
#include "ops/op.h"
#include "ops/ops.h"
#include "autodiff/autodiff.h"
#include "optim/optim.h"
#include "nn/nn.h"
#include "data/data.h"

#endif
