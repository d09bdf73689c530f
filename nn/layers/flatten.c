#include "nn/layer_core.h"
#include "ops/ops.h"

static bool flatten_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *x = call->inputs[0];
    if (x->rank == 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must have rank >= 1, got %s",
                          text_of_tensor(x).s);
    int64_t rest = 1;
    for (int i = 1; i < x->rank; i++) rest *= x->shape[i];
    return ed_layer_return(call, ed_reshape(x, ED_SHAPE(x->shape[0], rest)));
}

LAYER(flatten, FLATTEN, 0, "[batch, ...] to [batch, product of the other sizes]",
      .forward = flatten_forward,
      .samples = LAYER_SAMPLES({.inputs = {{3, {2, 3, 4}}}, .n_inputs = 1}))
