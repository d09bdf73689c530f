#include "nn/layer_core.h"
#include "ops/ops.h"

static bool dropout_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_dropout_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 0, true)) return false;
    if (!call->training || o->rate == 0) return ed_layer_return(call, x);
    return ed_layer_return(call, ed_dropout(x, o->rate, .generator = o->generator));
}

/* A generator that was given continues in a restored model where it was. */
static void dropout_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_dropout_options *o = layer_options(layer);
    if (o->generator) ed_track(tracker, "generator", o->generator);
}

LAYER(dropout, DROPOUT, 1,
      "in training, elements become 0 with probability rate, the others are divided by 1 - rate",
      .forward = dropout_forward, .track = dropout_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(dropout, DROPOUT, .rate = 0.5),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))
