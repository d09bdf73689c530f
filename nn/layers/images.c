#include "nn/layers/augment.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* Images [batch, height, width, channels] or [height, width, channels]. */

bool augment_accepts(const ed_layer *layer, const ed_tensor *x)
{
    if (x->rank == 3) return layer_accepts(layer, x, 3, false);
    return layer_accepts(layer, x, 4, false);
}

static int64_t height_of(const ed_tensor *x)
{
    return x->shape[x->rank - 3];
}

static int64_t width_of(const ed_tensor *x)
{
    return x->shape[x->rank - 2];
}

static ed_tensor *cut(ed_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width)
{
    return ed_crop_to_bounding_box(x, top, left, height, width);
}

/* ---- resizing -------------------------------------------------------------------------------- */

/* The middle of the largest part that has that shape, as Keras rounds it. */
static ed_tensor *middle_of_shape(ed_tensor *x, int64_t height, int64_t width)
{
    const int64_t h = height_of(x), w = width_of(x);
    int64_t crop_h = (int64_t)((double)w * (double)height / (double)width);
    int64_t crop_w = (int64_t)((double)h * (double)width / (double)height);
    if (crop_h > h || crop_h < 1) crop_h = h;
    if (crop_w > w || crop_w < 1) crop_w = w;
    return cut(x, (h - crop_h) / 2, (w - crop_w) / 2, crop_h, crop_w);
}

/* With as many pixels of a value on both sides as make that shape, as Keras rounds them. */
static ed_tensor *padded_to_shape(ed_tensor *x, int64_t height, int64_t width, double value)
{
    const int64_t h = height_of(x), w = width_of(x);
    const int64_t pad_h = ((int64_t)((double)w * (double)height / (double)width) - h) / 2,
                  pad_w = ((int64_t)((double)h * (double)width / (double)height) - w) / 2;
    const int64_t rows = pad_h > 0 ? pad_h : 0, columns = pad_w > 0 ? pad_w : 0;
    const int64_t sides[] = {0, rows, columns, 0}, *first = sides + (x->rank == 3);
    const ed_ints around = {first, x->rank};
    return ed_pad(x, .before = around, .after = around, .value = value);
}

static bool resizing_init(ed_layer *layer)
{
    const ed_layer_resizing_options *o = layer_options(layer);
    return !(o->crop_to_aspect_ratio && o->pad_to_aspect_ratio) ||
           layer_fail(layer, ED_INVALID_ARGUMENT,
                      "either crop_to_aspect_ratio or pad_to_aspect_ratio can be set");
}

static bool resizing_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_resizing_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (o->crop_to_aspect_ratio) x = middle_of_shape(x, o->height, o->width);
    if (o->pad_to_aspect_ratio) x = padded_to_shape(x, o->height, o->width, o->fill_value);
    if (!x) return false;
    return ed_layer_return(call, ed_resize(x, ED_INTS(o->height, o->width),
                                           .method = o->interpolation, .antialias = o->antialias));
}

LAYER(resizing, RESIZING, 2, "images of another size", .init = resizing_init,
      .forward = resizing_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(resizing, RESIZING, .height = 3, .width = 2),
                                .inputs = {{4, {2, 4, 5, 1}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(resizing, RESIZING, .height = 4, .width = 3,
                                                   .crop_to_aspect_ratio = true),
                                .inputs = {{3, {3, 5, 2}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(resizing, RESIZING, .height = 4, .width = 3,
                                                   .pad_to_aspect_ratio = true, .fill_value = 1),
                                .inputs = {{3, {3, 5, 2}}},
                                .n_inputs = 1}))

/* ---- center_crop, random_crop ---------------------------------------------------------------- */

static ed_tensor *center(ed_tensor *x, int64_t height, int64_t width)
{
    const int64_t h = height_of(x), w = width_of(x);
    if (h >= height && w >= width) return cut(x, (h - height) / 2, (w - width) / 2, height, width);
    if (!(x = middle_of_shape(x, height, width))) return NULL;
    return ed_resize(x, ED_INTS(height, width));
}

static bool center_crop_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_center_crop_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    return augment_accepts(layer, x) && ed_layer_return(call, center(x, o->height, o->width));
}

LAYER(
    center_crop, CENTER_CROP, 2, "the middle of images", .forward = center_crop_forward,
    .samples = LAYER_SAMPLES({.options = OPTIONS(center_crop, CENTER_CROP, .height = 2, .width = 3),
                              .inputs = {{4, {2, 5, 4, 1}}},
                              .n_inputs = 1},
                             {.options = OPTIONS(center_crop, CENTER_CROP, .height = 3, .width = 3),
                              .inputs = {{3, {2, 4, 2}}},
                              .n_inputs = 1}))

/* A random integer from 0 to n - 1; negative, with an error, on failure. */
static int64_t below(int64_t n, ed_generator *generator)
{
    ed_tensor *u = ed_random_uniform(ED_SHAPE(1), .dtype = ED_INT64, .low = 0, .high = (double)n,
                                     .generator = generator);
    return u ? (int64_t)ed_item(u) : -1;
}

static bool random_crop_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_crop_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    const int64_t h = height_of(x) - o->height, w = width_of(x) - o->width;
    if (!call->training || h < 0 || w < 0)
        return ed_layer_return(call, center(x, o->height, o->width));
    const int64_t top = below(h + 1, o->generator),
                  left = top < 0 ? -1 : below(w + 1, o->generator);
    return left >= 0 && ed_layer_return(call, cut(x, top, left, o->height, o->width));
}

LAYER(random_crop, RANDOM_CROP, 2, "in training a part of images at a random place",
      .forward = random_crop_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_crop, RANDOM_CROP, .height = 2,
                                                   .width = 3),
                                .inputs = {{4, {2, 4, 4, 1}}},
                                .n_inputs = 1}))

/* ---- random_flip ----------------------------------------------------------------------------- */

ed_tensor *augment_between(ed_ints shape, ed_dtype dtype, augment_range bounds,
                           ed_generator *generator)
{
    if (bounds.low == bounds.high) return ed_full(shape, bounds.low, .dtype = dtype);
    return ed_random_uniform(shape, .dtype = dtype, .low = bounds.low, .high = bounds.high,
                             .generator = generator);
}

ed_tensor *augment_of_each(const ed_tensor *x, augment_range bounds, ed_generator *generator)
{
    const int64_t shape[] = {x->rank == 4 ? x->shape[0] : 1, 1, 1, 1};
    return augment_between((ed_ints){shape, x->rank}, x->dtype, bounds, generator);
}

bool augment_one_or_two(const ed_layer *layer, const char *name, int64_t count)
{
    return count == 1 || count == 2 ||
           layer_fail(layer, ED_INVALID_ARGUMENT, "%s must be 1 or 2 numbers, got %lld", name,
                      (long long)count);
}

bool augment_in_order(const ed_layer *layer, const char *name, augment_range bounds)
{
    return bounds.low <= bounds.high ||
           layer_fail(layer, ED_INVALID_ARGUMENT, "%s must be [lower, upper], got [%g, %g]", name,
                      bounds.low, bounds.high);
}

bool augment_factor(const ed_layer *layer, const char *name, ed_floats given, bool both,
                    augment_range *bounds)
{
    *bounds = (augment_range){0, 0};
    if (!given.values) return true;
    if (!augment_one_or_two(layer, name, given.count)) return false;
    const double first = given.values[0];
    *bounds = given.count == 2 ? (augment_range){first, given.values[1]}
              : both           ? (augment_range){-fabs(first), fabs(first)}
                               : (augment_range){0, first};
    return augment_in_order(layer, name, *bounds);
}

bool augment_values(const ed_layer *layer, ed_floats given, augment_range *bounds)
{
    *bounds = (augment_range){0, 255};
    if (!given.values) return true;
    if (given.count != 2 || !(given.values[0] < given.values[1]))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "value_range must be 2 numbers, the lower one first");
    *bounds = (augment_range){given.values[0], given.values[1]};
    return true;
}

void augment_track(ed_layer *layer, ed_tracker *tracker)
{
    const ed_field *field = schema_find(layer->class->kind.fields, "generator");
    void *generator = *(void **)ED_FIELD_AT(field, layer_options(layer));
    if (generator) ed_track(tracker, "generator", generator);
}

static ed_tensor *flipped(ed_tensor *x, int64_t axis, ed_generator *generator)
{
    ed_tensor *draws = augment_of_each(x, (augment_range){0, 1}, generator);
    return draws ? ed_where(ed_less(draws, 0.5), ed_reverse(x, ED_INTS(axis)), x) : NULL;
}

static bool random_flip_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_flip_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (call->training && strcmp(o->mode, "vertical") != 0) x = flipped(x, -2, o->generator);
    if (x && call->training && strcmp(o->mode, "horizontal") != 0) x = flipped(x, -3, o->generator);
    return ed_layer_return(call, x);
}

LAYER(random_flip, RANDOM_FLIP, 0, "in training images are turned over or not",
      .forward = random_flip_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.inputs = {{4, {3, 2, 3, 1}}}, .n_inputs = 1},
                               {.options = OPTIONS(random_flip, RANDOM_FLIP, .mode = "vertical"),
                                .inputs = {{3, {3, 2, 2}}},
                                .n_inputs = 1}))

/* ---- random_brightness, random_contrast ------------------------------------------------------ */

typedef struct adjustment {
    augment_range factor, values; /* the options */
} adjustment;

static bool random_brightness_init(ed_layer *layer)
{
    const ed_layer_random_brightness_options *o = layer_options(layer);
    adjustment *a = ed_layer_state(layer);
    return augment_factor(layer, "factor", o->factor, true, &a->factor) &&
           augment_values(layer, o->value_range, &a->values);
}

static bool random_brightness_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_brightness_options *o = layer_options(layer);
    const adjustment *a = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *delta = augment_of_each(x, a->factor, o->generator);
    ed_tensor *y = delta ? ed_add(x, ed_mul(delta, a->values.high - a->values.low)) : NULL;
    return ed_layer_return(call, y ? ed_clip(y, a->values.low, a->values.high) : NULL);
}

static const double sample_factor[] = {0.1, 0.2}, sample_range[] = {-9, 9};

LAYER(random_brightness, RANDOM_BRIGHTNESS, 1, "in training a random number is added to images",
      .state_size = sizeof(adjustment), .init = random_brightness_init,
      .forward = random_brightness_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_brightness, RANDOM_BRIGHTNESS,
                                                   .factor = {sample_factor, 2},
                                                   .value_range = {sample_range, 2}),
                                .inputs = {{4, {2, 2, 3, 2}}},
                                .n_inputs = 1}))

static bool random_contrast_init(ed_layer *layer)
{
    const ed_layer_random_contrast_options *o = layer_options(layer);
    adjustment *a = ed_layer_state(layer);
    const ed_floats f = o->factor;
    if (!augment_one_or_two(layer, "factor", f.count)) return false;
    a->factor = (augment_range){1 - f.values[0], 1 + f.values[f.count - 1]};
    return augment_values(layer, o->value_range, &a->values);
}

static bool random_contrast_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_contrast_options *o = layer_options(layer);
    const adjustment *a = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *factor = augment_of_each(x, a->factor, o->generator);
    ed_tensor *mean = ed_reduce_mean(x, .axis = ED_AXES(-3, -2), .keepdims = true);
    if (!factor || !mean) return false;
    ed_tensor *y = ed_add(ed_mul(ed_sub(x, mean), factor), mean);
    return ed_layer_return(call, y ? ed_clip(y, a->values.low, a->values.high) : NULL);
}

LAYER(random_contrast, RANDOM_CONTRAST, 1, "in training images get a random contrast",
      .state_size = sizeof(adjustment), .init = random_contrast_init,
      .forward = random_contrast_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_contrast, RANDOM_CONTRAST,
                                                   .factor = {sample_factor, 2},
                                                   .value_range = {sample_range, 2}),
                                .inputs = {{4, {2, 2, 3, 2}}},
                                .n_inputs = 1}))
