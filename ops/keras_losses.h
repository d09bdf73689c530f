/*
 * Loops behind the losses of keras_losses.c.
 */
#ifndef EDDY_OPS_KERAS_LOSSES_H
#define EDDY_OPS_KERAS_LOSSES_H

#include "tensor/tensor.h"

/* log cosh x, element by element. */
ed_tensor *losses_log_cosh(ed_tensor *x);

#endif
