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

#ifdef __cplusplus
}
#endif

/* Both are made from the headers above (Makefile). In C each call notes its place in the program, by
 * a macro for each function; C++ has the plain functions alone, ed_add(a, b), ed_zeros_with(shape,
 * nullptr): its header undefines the macros. */
#ifdef __cplusplus
#include "plain.h"
#elif !defined(EDDY_NO_PLACES)
#include "places.h"
#endif

#endif
