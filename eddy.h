/*
 * Eddy: eager tensors with tape autodiff, in C. This is the one header that a program includes; the
 * comment at the top of each part explains the part.
 *
 * Options have names: ed_conv2d(x, kernel, .padding = "SAME"). ed_conv2d is then a macro around
 * ed_conv2d_with, which takes the address of a structure of options; NULL stands for the defaults.
 * Most structures follow from a list that states the defaults, and ED_NEW_OPTIONS makes a complete
 * one (tensor/schema.h). The options of tapes, gradients, calls of layers, archives, restores and
 * checkpoint managers are plain structures in which zero means: not given.
 */
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
#include "autodiff/control.h"
#include "optim/optim.h"
#include "optim/lbfgs.h"
#include "nn/nn.h"
#include "data/data.h"
#include "train/train.h"
#include "model/model.h"

#ifdef __cplusplus
}
#endif

/*
 * Both are made from the headers above (Makefile). In C each call notes its place in the program,
 * by a macro for each function; C++ has the plain functions alone, ed_add(a, b),
 * ed_zeros_with(shape, nullptr): its header undefines the macros.
 */
#ifdef __cplusplus
#include "plain.h"
#elif !defined(EDDY_NO_PLACES)
#include "places.h"
#endif

#endif
