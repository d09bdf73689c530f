#include "nn/layers/augment.h"
#include "ops/ops.h"
#include <string.h>

/* random_saturation, random_hue, random_color_degeneration, random_sharpness, random_invert,
 * random_grayscale, solarization, auto_contrast. */

typedef struct coloring {
    augment_range factor, values; /* the options */
} coloring;

static bool take_coloring(ed_layer *layer, ed_floats factor, ed_floats values)
{
    coloring *c = ed_layer_state(layer);
    return augment_factor(layer, "factor", factor, false, &c->factor) &&
           augment_values(layer, values, &c->values);
}

/* In training `change` of the image, which gets a number for each image. */
static bool recolored(ed_layer *layer, ed_layer_call *call, ed_generator *generator,
                      ed_tensor *(*change)(const coloring *c, ed_tensor *x, ed_tensor *factor))
{
    const coloring *c = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *factor = augment_of_each(x, c->factor, generator);
    return factor && ed_layer_return(call, change(c, x, factor));
}

ed_tensor *augment_in_range(ed_tensor *x, augment_range from, augment_range to)
{
    const double scale = (to.high - to.low) / (from.high - from.low);
    if (from.low == to.low && from.high == to.high) return x;
    return ed_add(ed_mul(ed_sub(x, from.low), scale), to.low);
}

static ed_tensor *clipped(const coloring *c, ed_tensor *x)
{
    return x ? ed_clip(x, c->values.low, c->values.high) : NULL;
}

/* Hue, saturation and value, of which one is replaced, as RGB. */
static ed_tensor *with_part(ed_tensor *const parts[3], int i, ed_tensor *other)
{
    ed_tensor *all[3] = {parts[0], parts[1], parts[2]};
    all[i] = other;
    ed_list *list = other ? ed_list_make(all, 3) : NULL;
    return list ? ed_hsv_to_rgb(ed_concat(list, .axis = -1)) : NULL;
}

/* The hue, saturation and value of RGB, each [..., 1]; false on failure. */
static bool split_hsv(ed_tensor *x, ed_tensor *parts[3])
{
    ed_list *list = ed_split(ed_rgb_to_hsv(x), 3, .axis = -1);
    for (int i = 0; list && i < 3; i++) parts[i] = ed_list_get(list, i);
    return list;
}

static const double sample_factor[] = {0.3, 0.3}, sample_values[] = {-2, 2};

/* Options and inputs of samples. */
#define SAMPLE_COLORS .factor = {sample_factor, 2}, .value_range = {sample_values, 2}
#define RGB           .inputs = {{4, {2, 2, 2, 3}}}, .n_inputs = 1

/* ---- random_saturation ----------------------------------------------------------------------- */

static bool random_saturation_init(ed_layer *layer)
{
    const ed_layer_random_saturation_options *o = layer_options(layer);
    return take_coloring(layer, o->factor, o->value_range);
}

static ed_tensor *saturated(const coloring *c, ed_tensor *x, ed_tensor *factor)
{
    ed_tensor *parts[3], *times = ed_div(factor, ed_sub(1 + 1e-7, factor));
    return split_hsv(x, parts) ? with_part(parts, 1, clipped(c, ed_mul(parts[1], times))) : NULL;
}

static bool random_saturation_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_saturation_options *o = layer_options(layer);
    return recolored(layer, call, o->generator, saturated);
}

LAYER(random_saturation, RANDOM_SATURATION, 1, "in training images get another saturation",
      .state_size = sizeof(coloring), .init = random_saturation_init,
      .forward = random_saturation_forward, .track = augment_track,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(random_saturation, RANDOM_SATURATION, SAMPLE_COLORS), RGB}))

/* ---- random_hue ------------------------------------------------------------------------------ */

static bool random_hue_init(ed_layer *layer)
{
    const ed_layer_random_hue_options *o = layer_options(layer);
    return take_coloring(layer, o->factor, o->value_range);
}

static ed_tensor *turned(const coloring *c, ed_tensor *x, ed_tensor *factor)
{
    const augment_range unit = {0, 1};
    ed_tensor *parts[3];
    if (!split_hsv(augment_in_range(x, c->values, unit), parts)) return NULL;
    ed_tensor *hue = ed_add(parts[0], factor);
    hue = ed_where(ed_greater(hue, 1.0), ed_sub(hue, 1.0), hue);
    hue = ed_where(ed_less(hue, 0.0), ed_add(hue, 1.0), hue);
    ed_tensor *y = with_part(parts, 0, hue);
    return y ? augment_in_range(ed_clip(y, 0, 1), unit, c->values) : NULL;
}

/* The sign is drawn first, then half a factor. */
static bool random_hue_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_hue_options *o = layer_options(layer);
    const coloring *c = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *side = augment_of_each(x, (augment_range){-1, 1}, o->generator);
    ed_tensor *factor = side ? augment_of_each(x, c->factor, o->generator) : NULL;
    if (!factor || !(factor = ed_mul(factor, 0.5))) return false;
    factor = ed_where(ed_less(side, 0.0), ed_neg(factor), factor);
    return factor && ed_layer_return(call, turned(c, x, factor));
}

LAYER(random_hue, RANDOM_HUE, 1, "in training images get another hue",
      .state_size = sizeof(coloring), .init = random_hue_init, .forward = random_hue_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_hue, RANDOM_HUE, SAMPLE_COLORS), RGB}))

/* ---- random_color_degeneration --------------------------------------------------------------- */

static bool random_color_degeneration_init(ed_layer *layer)
{
    const ed_layer_random_color_degeneration_options *o = layer_options(layer);
    return take_coloring(layer, o->factor, o->value_range);
}

static ed_tensor *degenerated(const coloring *c, ed_tensor *x, ed_tensor *factor)
{
    return clipped(c, ed_add(x, ed_mul(factor, ed_sub(ed_rgb_to_grayscale(x), x))));
}

static bool random_color_degeneration_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_color_degeneration_options *o = layer_options(layer);
    return recolored(layer, call, o->generator, degenerated);
}

LAYER(random_color_degeneration, RANDOM_COLOR_DEGENERATION, 1,
      "in training images are mixed with gray ones", .state_size = sizeof(coloring),
      .init = random_color_degeneration_init, .forward = random_color_degeneration_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_color_degeneration,
                                                   RANDOM_COLOR_DEGENERATION, SAMPLE_COLORS),
                                RGB}))

/* ---- random_sharpness ------------------------------------------------------------------------ */

static bool random_sharpness_init(ed_layer *layer)
{
    const ed_layer_random_sharpness_options *o = layer_options(layer);
    return take_coloring(layer, o->factor, o->value_range);
}

static ed_tensor *smooth(ed_tensor *x)
{
    const double a = 1.0 / 13, b = 5.0 / 13, all[9] = {a, a, a, a, b, a, a, a, a};
    const int64_t channels = x->shape[x->rank - 1];
    ed_tensor *kernel = ed_cast(ed_constant_of(ED_FLOAT64, all, ED_SHAPE(3, 3, 1, 1)), x->dtype);
    kernel = ed_tile(kernel, ED_INTS(1, 1, channels, 1));
    return augment_like(ed_depthwise_conv2d(augment_batch(x), kernel, .padding = "SAME"), x);
}

static ed_tensor *sharpened(const coloring *c, ed_tensor *x, ed_tensor *factor)
{
    ed_tensor *share = ed_sub(1.0, ed_mul(factor, 2.0));
    return clipped(c, ed_add(x, ed_mul(share, ed_sub(smooth(x), x))));
}

static bool random_sharpness_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_sharpness_options *o = layer_options(layer);
    return recolored(layer, call, o->generator, sharpened);
}

LAYER(random_sharpness, RANDOM_SHARPNESS, 1, "in training images are blurred or sharpened",
      .state_size = sizeof(coloring), .init = random_sharpness_init,
      .forward = random_sharpness_forward, .track = augment_track,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(random_sharpness, RANDOM_SHARPNESS, SAMPLE_COLORS), RGB},
          {.options = OPTIONS(random_sharpness, RANDOM_SHARPNESS, SAMPLE_COLORS),
           .inputs = {{3, {3, 2, 1}}},
           .n_inputs = 1}))

/* ---- random_invert --------------------------------------------------------------------------- */

static bool random_invert_init(ed_layer *layer)
{
    const ed_layer_random_invert_options *o = layer_options(layer);
    const double any[] = {0, 1};
    return take_coloring(layer, o->factor.values ? o->factor : (ed_floats){any, 2}, o->value_range);
}

static bool random_invert_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_invert_options *o = layer_options(layer);
    const coloring *c = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *chosen = augment_chosen(x, c->factor, o->generator);
    return chosen && ed_layer_return(call, ed_where(chosen, ed_sub(c->values.high, x), x));
}

LAYER(random_invert, RANDOM_INVERT, 0, "in training images are inverted or not",
      .state_size = sizeof(coloring), .init = random_invert_init, .forward = random_invert_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_invert, RANDOM_INVERT, SAMPLE_COLORS),
                                RGB}))

/* ---- random_grayscale ------------------------------------------------------------------------ */

static bool random_grayscale_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_grayscale_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *draws = augment_of_each(x, (augment_range){0, 1}, o->generator);
    if (!draws) return false;
    return ed_layer_return(call, ed_where(ed_less(draws, o->factor), ed_rgb_to_grayscale(x), x));
}

LAYER(random_grayscale, RANDOM_GRAYSCALE, 0, "in training images become gray or not",
      .forward = random_grayscale_forward, .track = augment_track, .samples = LAYER_SAMPLES({RGB}))

/* ---- solarization ---------------------------------------------------------------------------- */

typedef struct solar {
    augment_range addition, threshold, values; /* the options */
} solar;

static bool solarization_init(ed_layer *layer)
{
    const ed_layer_solarization_options *o = layer_options(layer);
    solar *s = ed_layer_state(layer);
    return augment_factor(layer, "addition_factor", o->addition_factor, false, &s->addition) &&
           augment_factor(layer, "threshold_factor", o->threshold_factor, false, &s->threshold) &&
           augment_values(layer, o->value_range, &s->values);
}

/* Like Keras in pixels of 0 to 255, of which a lower bound is a number, an upper one a share. */
static bool solarization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_solarization_options *o = layer_options(layer);
    const solar *s = ed_layer_state(layer);
    const augment_range bytes = {0, 255};
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    const augment_range added = {s->addition.low, s->addition.high * 255},
                        threshold = {s->threshold.low, s->threshold.high * 255};
    ed_tensor *additions = augment_of_each(x, added, o->generator);
    ed_tensor *thresholds = additions ? augment_of_each(x, threshold, o->generator) : NULL;
    if (!thresholds || !(x = augment_in_range(x, s->values, bytes))) return false;
    if (!(x = ed_clip(ed_add(x, additions), 0, 255))) return false;
    x = ed_where(ed_less(x, thresholds), x, ed_sub(255.0, x));
    return x && ed_layer_return(call, augment_in_range(x, bytes, s->values));
}

LAYER(solarization, SOLARIZATION, 0, "in training bright pixels become dark",
      .state_size = sizeof(solar), .init = solarization_init, .forward = solarization_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(solarization, SOLARIZATION,
                                                   .addition_factor = {sample_factor, 2},
                                                   .threshold_factor = {sample_factor, 2},
                                                   .value_range = {sample_values, 2}),
                                RGB}))

/* ---- random_posterization -------------------------------------------------------------------- */

static bool random_posterization_init(ed_layer *layer)
{
    const ed_layer_random_posterization_options *o = layer_options(layer);
    coloring *c = ed_layer_state(layer);
    const ed_ints f = o->factor;
    if (!augment_one_or_two(layer, "factor", f.count)) return false;
    c->factor =
        (augment_range){f.count == 2 ? (double)f.values[0] : 1, (double)f.values[f.count - 1]};
    return augment_in_order(layer, "factor", c->factor) &&
           augment_values(layer, o->value_range, &c->values);
}

/* The lower bits, of which a number is drawn, become 0: a step function: its gradient is 0. */
static ed_tensor *posterized(const coloring *c, ed_tensor *x, ed_tensor *bits)
{
    const augment_range bytes = {0, 255};
    ed_tensor *step = ed_pow(2.0, ed_sub(8.0, ed_floor(bits)));
    ed_tensor *y = augment_in_range(ed_stop_gradient(x), c->values, bytes);
    y = y && step ? ed_mul(ed_floor(ed_div(ed_floor(ed_clip(y, 0, 255)), step)), step) : NULL;
    return y ? augment_in_range(y, bytes, c->values) : NULL;
}

static bool random_posterization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_posterization_options *o = layer_options(layer);
    return recolored(layer, call, o->generator, posterized);
}

LAYER(random_posterization, RANDOM_POSTERIZATION, 1, "in training pixels keep fewer bits",
      .state_size = sizeof(coloring), .init = random_posterization_init,
      .forward = random_posterization_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_posterization, RANDOM_POSTERIZATION,
                                                   .factor = ED_SAMPLE_INTS(3, 3),
                                                   .value_range = {sample_values, 2}),
                                RGB},
                               {.options = OPTIONS(random_posterization, RANDOM_POSTERIZATION,
                                                   .factor = ED_SAMPLE_INTS(4)),
                                .inputs = {{3, {3, 2, 1}}},
                                .n_inputs = 1}))

/* ---- auto_contrast --------------------------------------------------------------------------- */

static bool auto_contrast_init(ed_layer *layer)
{
    const ed_layer_auto_contrast_options *o = layer_options(layer);
    return augment_values(layer, o->value_range, ed_layer_state(layer));
}

/* Channels of one value stay as they are. */
static bool auto_contrast_forward(ed_layer *layer, ed_layer_call *call)
{
    const augment_range *values = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    ed_tensor *low = ed_reduce_min(x, .axis = ED_AXES(-3, -2), .keepdims = true),
              *high = ed_reduce_max(x, .axis = ED_AXES(-3, -2), .keepdims = true);
    ed_tensor *width = ed_sub(high, low);
    if (!width) return false;
    ed_tensor *flat = ed_equal(width, 0.0);
    ed_tensor *share = ed_div(ed_sub(x, low), ed_where(flat, 1.0, width));
    ed_tensor *y = share ? augment_in_range(share, (augment_range){0, 1}, *values) : NULL;
    return y && ed_layer_return(call, ed_where(flat, x, y));
}

LAYER(auto_contrast, AUTO_CONTRAST, 0, "each channel stretched to all values of pixels",
      .state_size = sizeof(augment_range), .init = auto_contrast_init,
      .forward = auto_contrast_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(auto_contrast, AUTO_CONTRAST,
                                                   .value_range = {sample_values, 2}),
                                RGB},
                               {.inputs = {{3, {3, 2, 1}}}, .n_inputs = 1}))
