/* Inputs for layers, what they give, and a step of training with them. */
#ifndef EDDY_TESTS_RAMPS_H
#define EDDY_TESTS_RAMPS_H

#include "eddy.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>

/* 0, 1/8, 2/8, ... around 0, in a shape. */
static ed_tensor *ramp(ed_ints shape)
{
    ed_tensor *t = scope_give(tensor_new(ED_FLOAT32, (int)shape.count, shape.values));
    for (int64_t i = 0; t && i < t->size; i++) ((float *)t->data)[i] = (float)(i * 7 % 23 - 11) / 8;
    return t;
}

static float element(const ed_tensor *t, int64_t i)
{
    return ((const float *)ed_data(t))[i];
}

/* A step towards y by the squared error, which is returned. */
static double step(ed_layer *model, ed_optimizer *o, ed_tensor *x, ed_tensor *y)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(ed_square(ed_sub(ed_forward(model, x, .training = true), y)));
    ed_minimize(o, tape, loss, model);
    return loss ? ed_item(loss) : NAN;
}

#endif
