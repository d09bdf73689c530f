#include "nn/layers/windows.h"
#include "ops/ops.h"
#include <math.h>

/* Noise in training. Draws may have a shape that broadcasts with x. */

typedef struct noise_shape {
    int64_t sizes[ED_MAX_RANK];
    int rank;
} noise_shape;
#define INTS_OF(shape) ((ed_ints){(shape).sizes, (shape).rank})

/* What noise_shape says for x; false, with an error, if it does not broadcast with x. */
static bool read_noise_shape(const ed_layer *layer, const ed_tensor *x, ed_ints given,
                             noise_shape *shape)
{
    bool fits = given.count == x->rank;
    shape->rank = x->rank;
    for (int i = 0; fits && i < x->rank; i++) {
        shape->sizes[i] = given.values[i] < 0 ? x->shape[i] : given.values[i];
        fits = shape->sizes[i] == x->shape[i] || shape->sizes[i] == 1;
    }
    return fits || layer_fail(layer, ED_INVALID_ARGUMENT,
                              "noise_shape %s does not fit the input %s: each size must be 1, -1 "
                              "or that of the input",
                              text_of_ints(given.values, given.count).s, text_of_tensor(x).s);
}

/* x times draws of that shape: 0, or 1 / (1 - rate). */
static ed_tensor *drop(ed_tensor *x, double rate, ed_ints shape, ed_generator *generator)
{
    ed_tensor *ones = ed_ones(shape, .dtype = x->dtype);
    return ed_mul(x, ed_dropout(ones, rate, .generator = generator));
}

/* A generator that was given continues in a restored model where it was. */
static void track_generator(ed_tracker *tracker, ed_generator *generator)
{
    if (generator) ed_track(tracker, "generator", generator);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static bool dropout_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_dropout_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    noise_shape shape;
    if (!layer_accepts(layer, x, 0, true)) return false;
    if (!call->training || o->rate == 0) return ed_layer_return(call, x);
    if (!o->noise_shape.values)
        return ed_layer_return(call, ed_dropout(x, o->rate, .generator = o->generator));
    return read_noise_shape(layer, x, o->noise_shape, &shape) &&
           ed_layer_return(call, drop(x, o->rate, INTS_OF(shape), o->generator));
}

static void dropout_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_dropout_options *o = layer_options(layer);
    track_generator(tracker, o->generator);
}

LAYER(dropout, DROPOUT, 1,
      "in training, elements become 0 with probability rate, the others are divided by 1 - rate",
      .forward = dropout_forward, .track = dropout_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(dropout, DROPOUT, .rate = 0.5),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(dropout, DROPOUT, .rate = 0.5,
                                                   .noise_shape = ED_SAMPLE_INTS(-1, 1)),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

/* ---- spatial_dropout ------------------------------------------------------------------------- */

static bool drop_channels(ed_layer *layer, ed_layer_call *call, double rate, bool channels_first,
                          ed_generator *generator)
{
    ed_tensor *x = call->inputs[0];
    const int rank = layer_spatial_rank(layer);
    if (!layer_accepts(layer, x, rank + 2, false)) return false;
    if (!call->training || rate == 0) return ed_layer_return(call, x);
    noise_shape shape = {.sizes = {x->shape[0], 1, 1, 1, 1}, .rank = x->rank};
    const int channels = layer_channel_axis(channels_first, rank);
    shape.sizes[channels] = x->shape[channels];
    return ed_layer_return(call, drop(x, rate, INTS_OF(shape), generator));
}

static bool spatial_dropout1d_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_spatial_dropout1d_options *o = layer_options(layer);
    return drop_channels(layer, call, o->rate, false, o->generator);
}

static void spatial_dropout1d_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_spatial_dropout1d_options *o = layer_options(layer);
    track_generator(tracker, o->generator);
}

/* spatial_dropout2d and 3d have one list of options. */
static bool spatial_dropout_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_spatial_dropout2d_options *o = layer_options(layer);
    return drop_channels(layer, call, o->rate, layer_channels_first(o->data_format), o->generator);
}

static void spatial_dropout_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_spatial_dropout2d_options *o = layer_options(layer);
    track_generator(tracker, o->generator);
}

LAYER(spatial_dropout1d, SPATIAL_DROPOUT1D, 1, "dropout of whole channels [batch, steps, channels]",
      .forward = spatial_dropout1d_forward, .track = spatial_dropout1d_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(spatial_dropout1d, SPATIAL_DROPOUT1D,
                                                   .rate = 0.5),
                                .inputs = {{3, {2, 3, 4}}},
                                .n_inputs = 1}))
LAYER(spatial_dropout2d, SPATIAL_DROPOUT2D, 1,
      "dropout of whole channels [batch, height, width, channels]",
      .forward = spatial_dropout_forward, .track = spatial_dropout_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(spatial_dropout2d, SPATIAL_DROPOUT2D,
                                                   .rate = 0.5, .data_format = "channels_first"),
                                .inputs = {{4, {2, 3, 2, 2}}},
                                .n_inputs = 1}))
LAYER(spatial_dropout3d, SPATIAL_DROPOUT3D, 1,
      "dropout of whole channels [batch, depth, height, width, channels]",
      .forward = spatial_dropout_forward, .track = spatial_dropout_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(spatial_dropout3d, SPATIAL_DROPOUT3D,
                                                   .rate = 0.5),
                                .inputs = {{5, {2, 1, 2, 2, 3}}},
                                .n_inputs = 1}))

/* ---- Normal numbers -------------------------------------------------------------------------- */

static ed_tensor *draw_normal(ed_tensor *x, double mean, double stddev, ed_generator *generator)
{
    return ed_random_normal(ed_shape(x), .dtype = x->dtype, .mean = mean, .stddev = stddev,
                            .generator = generator);
}

static bool gaussian_dropout_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_gaussian_dropout_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 0, true)) return false;
    if (!call->training || o->rate == 0) return ed_layer_return(call, x);
    const double stddev = sqrt(o->rate / (1 - o->rate));
    return ed_layer_return(call, ed_mul(x, draw_normal(x, 1, stddev, o->generator)));
}

static void gaussian_dropout_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_gaussian_dropout_options *o = layer_options(layer);
    track_generator(tracker, o->generator);
}

static bool gaussian_noise_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_gaussian_noise_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 0, true)) return false;
    if (!call->training || o->stddev == 0) return ed_layer_return(call, x);
    return ed_layer_return(call, ed_add(x, draw_normal(x, 0, o->stddev, o->generator)));
}

static void gaussian_noise_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_gaussian_noise_options *o = layer_options(layer);
    track_generator(tracker, o->generator);
}

LAYER(gaussian_dropout, GAUSSIAN_DROPOUT, 1, "in training, x times normal numbers of mean 1",
      .forward = gaussian_dropout_forward, .track = gaussian_dropout_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(gaussian_dropout, GAUSSIAN_DROPOUT, .rate = 0.5),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))
LAYER(gaussian_noise, GAUSSIAN_NOISE, 1, "in training, x plus normal numbers of mean 0",
      .forward = gaussian_noise_forward, .track = gaussian_noise_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(gaussian_noise, GAUSSIAN_NOISE, .stddev = 0.5),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

/* ---- alpha_dropout --------------------------------------------------------------------------- */

/* y = a (x or `least`) + b: with a = ((1 - rate) (1 + rate least^2))^(-1/2) and b = -a least rate
 * mean 0 and variance 1 stay. */
static ed_tensor *drop_to_least(ed_tensor *x, double rate, ed_ints shape, ed_generator *generator)
{
    const double least = -1.6732632423543772848 * 1.0507009873554804934; /* selu(-infinity) */
    const double a = 1 / sqrt((1 - rate) * (1 + rate * least * least)), b = -a * least * rate;
    ed_tensor *draws = ed_random_uniform(shape, .dtype = x->dtype, .generator = generator);
    ed_tensor *y = ed_where(ed_greater_equal(draws, rate), x, least);
    return ed_add(ed_mul(y, a), b);
}

static bool alpha_dropout_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_alpha_dropout_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    noise_shape shape;
    if (!layer_accepts(layer, x, 0, true)) return false;
    if (!call->training || o->rate == 0) return ed_layer_return(call, x);
    if (!o->noise_shape.values)
        return ed_layer_return(call, drop_to_least(x, o->rate, ed_shape(x), o->generator));
    return read_noise_shape(layer, x, o->noise_shape, &shape) &&
           ed_layer_return(call, drop_to_least(x, o->rate, INTS_OF(shape), o->generator));
}

static void alpha_dropout_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_layer_alpha_dropout_options *o = layer_options(layer);
    track_generator(tracker, o->generator);
}

LAYER(alpha_dropout, ALPHA_DROPOUT, 1,
      "in training, dropout to selu's least value that keeps mean 0 and variance 1",
      .forward = alpha_dropout_forward, .track = alpha_dropout_track, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(alpha_dropout, ALPHA_DROPOUT, .rate = 0.5,
                                                   .noise_shape = ED_SAMPLE_INTS(1, -1)),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(alpha_dropout, ALPHA_DROPOUT, .rate = 0.3),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

/* ---- activity_regularization ----------------------------------------------------------------- */

static bool activity_regularization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_activity_regularization_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0], *penalty = NULL;
    if (!layer_accepts(layer, x, 0, true)) return false;
    if (layer_losses_wanted(call) && (o->l1 > 0 || o->l2 > 0) && x->size) {
        const double samples = x->rank ? (double)x->shape[0] : 1;
        if (o->l1 > 0) penalty = ed_mul(ed_reduce_sum(ed_abs(x)), o->l1 / samples);
        if (o->l2 > 0) {
            ed_tensor *squares = ed_mul(ed_reduce_sum_square(x), o->l2 / samples);
            penalty = penalty ? ed_add(penalty, squares) : squares;
        }
        if (!ed_layer_add_loss(layer, penalty)) return false;
    }
    return ed_layer_return(call, x);
}

LAYER(activity_regularization, ACTIVITY_REGULARIZATION, 0, "x itself, and a penalty on it",
      .forward = activity_regularization_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(activity_regularization, ACTIVITY_REGULARIZATION,
                                                   .l1 = 0.1, .l2 = 0.2),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))
