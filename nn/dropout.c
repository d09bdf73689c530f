#include "nn/layer.h"
#include "ops/ops.h"

typedef struct dropout {
    double rate;
    ed_generator *generator;
} dropout;

static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    const dropout *d = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 0, true)) return NULL;
    return options->training && d->rate > 0 ? ed_dropout(x, d->rate, .generator = d->generator) : x;
}

static void destroy(ed_layer *layer)
{
    ed_release(((dropout *)ed_layer_state(layer))->generator);
}

/* A generator of its own goes on in a restored model where it stopped. */
static void track(ed_layer *layer, ed_tracker *tracker)
{
    const dropout *d = ed_layer_state(layer);
    if (d->generator) ed_track(tracker, "generator", d->generator);
}

ed_layer *ed_layer_dropout_with(double rate, const ed_layer_dropout_options *options)
{
    static const ed_layer_class class = {.name = "dropout",
                                         .state_size = sizeof(dropout),
                                         .forward = forward,
                                         .destroy = destroy,
                                         .track = track};
    ed_layer_dropout_options o = options ? *options : (ed_layer_dropout_options){0};
    if (!(rate >= 0 && rate < 1))
        return ed_fail(ED_INVALID_ARGUMENT, "dropout: rate is %g; it lies in [0, 1)", rate);
    ed_layer *layer = ed_layer_new(&class, o.name);
    if (layer) *(dropout *)ed_layer_state(layer) = (dropout){rate, ed_retain(o.generator)};
    return layer;
}
