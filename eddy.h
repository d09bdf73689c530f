/* Eddy: eager tensors with tape autodiff, in C. The one header a program includes; each part tells
 * its own story. */
#ifndef EDDY_H
#define EDDY_H

#if __SIZEOF_POINTER__ < 8
#error "Eddy needs a 64-bit machine"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* C++ calls the plain functions, past the macros of their names: (ed_add)(a, b). */
#ifdef __cplusplus
extern "C" {
#endif

#include "tensor/version.h"
#include "tensor/tensor.h"
#include "track/track.h"
#include "io/io.h"
#include "ops/op.h"
#include "ops/ops.h"
#include "autodiff/autodiff.h"
#include "optim/optim.h"
#include "nn/nn.h"
#include "data/data.h"
#include "train/train.h"

/* Made from these by tools/places.sh. */
#if !defined(EDDY_NO_PLACES) && !defined(__cplusplus)
#include "places.h"
#endif

#ifdef __cplusplus
}
#endif

#endif
