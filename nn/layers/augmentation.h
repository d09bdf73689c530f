/*
 * Layers that change images at random, in training only: each image of a batch gets a number of its
 * own. `factor` is [lower, upper], between which it is drawn; what one number f stands for is said
 * at the option. Images are floats [batch, height, width, channels], or one [height, width,
 * channels]; `value_range` is [low, high] of their pixels. A checkpoint saves a generator that was
 * given.
 */
#ifndef EDDY_NN_LAYERS_AUGMENTATION_H
#define EDDY_NN_LAYERS_AUGMENTATION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* Options of layers that draw. */
#define ED_LAYER_DRAWS(FIELD, T)                                                                   \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")           \
    ED_LAYER_COMMON(FIELD, T)

/* ---- Other places ---------------------------------------------------------------------------- */

/* What stands where the image has no pixels: "reflect" dcba|abcd|dcba, "wrap" abcd|abcd|abcd,
 * "nearest" aaaa|abcd|dddd, "constant" fill_value; and how pixels are made from those around. */
#define ED_LAYER_PLACES(FIELD, T)                                                                  \
    FIELD(T, CHOICE, fill_mode, "reflect", ED_ONE_OF("reflect", "wrap", "constant", "nearest"),    \
          "what is outside")                                                                       \
    FIELD(T, CHOICE, interpolation, "bilinear", ED_ONE_OF("bilinear", "nearest"),                  \
          "how pixels are made")                                                                   \
    FIELD(T, FLOAT, fill_value, 0, ED_FINITE, "outside, with fill_mode \"constant\"")              \
    ED_LAYER_DRAWS(FIELD, T)

/* Turned around the middle by factor times a full turn, counter-clockwise. */
#define ED_LAYER_RANDOM_ROTATION_OPTIONS(FIELD, T)                                                 \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "[lower, upper]; f: [-f, f]")          \
    ED_LAYER_PLACES(FIELD, T)
ED_KIND(layer, random_rotation, ED_LAYER_RANDOM_ROTATION_OPTIONS, factor);

/* Smaller by 1 + factor in both directions, larger where it is negative; without width_factor the
 * same number for both. */
#define ED_LAYER_RANDOM_ZOOM_OPTIONS(FIELD, T)                                                     \
    FIELD(T, FLOATS, height_factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "[lower, upper]; f: [-f, f]")   \
    FIELD(T, FLOATS, width_factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "default: height_factor's")      \
    ED_LAYER_PLACES(FIELD, T)
ED_KIND(layer, random_zoom, ED_LAYER_RANDOM_ZOOM_OPTIONS, height_factor);

/* Shifted down by height_factor of the height, to the right by width_factor of the width. */
#define ED_LAYER_RANDOM_TRANSLATION_OPTIONS(FIELD, T)                                              \
    FIELD(T, FLOATS, height_factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "[lower, upper]; f: [-f, f]")   \
    FIELD(T, FLOATS, width_factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "[lower, upper]; f: [-f, f]")    \
    ED_LAYER_PLACES(FIELD, T)
ED_KIND(layer, random_translation, ED_LAYER_RANDOM_TRANSLATION_OPTIONS, height_factor,
        width_factor);

/* Rows shifted by x_factor times their number, columns by y_factor; both to one side or both to the
 * other, with probability 1/2. */
#define ED_LAYER_RANDOM_SHEAR_OPTIONS(FIELD, T)                                                    \
    FIELD(T, FLOATS, x_factor, ED_NO_LIST, ED_BETWEEN(0, 1), "[lower, upper]; f: [-f, f]")         \
    FIELD(T, FLOATS, y_factor, ED_NO_LIST, ED_BETWEEN(0, 1), "[lower, upper]; f: [-f, f]")         \
    ED_LAYER_PLACES(FIELD, T)
ED_KIND(layer, random_shear, ED_LAYER_RANDOM_SHEAR_OPTIONS);

/* ---- Other colors ---------------------------------------------------------------------------- */

/* Options of layers that change colors by a factor. */
#define ED_LAYER_COLORS(FIELD, T)                                                                  \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1), "[lower, upper]; f: [0, f]")            \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)

/* The saturation of RGB images times factor / (1 - factor): 0 gray, 0.5 as it is. */
#define ED_LAYER_RANDOM_SATURATION_OPTIONS(FIELD, T) ED_LAYER_COLORS(FIELD, T)
ED_KIND(layer, random_saturation, ED_LAYER_RANDOM_SATURATION_OPTIONS, factor);

/* The hue of RGB images turned by factor times half a turn, to either side. */
#define ED_LAYER_RANDOM_HUE_OPTIONS(FIELD, T) ED_LAYER_COLORS(FIELD, T)
ED_KIND(layer, random_hue, ED_LAYER_RANDOM_HUE_OPTIONS, factor);

/* RGB images mixed with their gray ones: x + factor (gray - x), clipped to value_range. */
#define ED_LAYER_RANDOM_COLOR_DEGENERATION_OPTIONS(FIELD, T) ED_LAYER_COLORS(FIELD, T)
ED_KIND(layer, random_color_degeneration, ED_LAYER_RANDOM_COLOR_DEGENERATION_OPTIONS, factor);

/* x + (1 - 2 factor) (smooth x - x), clipped to value_range: 0 blurred, 0.5 as it is, 1 sharp. */
#define ED_LAYER_RANDOM_SHARPNESS_OPTIONS(FIELD, T) ED_LAYER_COLORS(FIELD, T)
ED_KIND(layer, random_sharpness, ED_LAYER_RANDOM_SHARPNESS_OPTIONS, factor);

/* high - x, of value_range, with a probability that is drawn from `factor`. */
#define ED_LAYER_RANDOM_INVERT_OPTIONS(FIELD, T)                                                   \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1),                                         \
          "[lower, upper]; f: [0, f]; default [0, 1]")                                             \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_invert, ED_LAYER_RANDOM_INVERT_OPTIONS);

/* RGB images become gray with this probability. */
#define ED_LAYER_RANDOM_GRAYSCALE_OPTIONS(FIELD, T)                                                \
    FIELD(T, FLOAT, factor, 0.5, ED_BETWEEN(0, 1), "the probability")                              \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_grayscale, ED_LAYER_RANDOM_GRAYSCALE_OPTIONS);

/* x + addition, clipped, and of what is not below a threshold the opposite, high + low - x; both
 * are drawn as shares of value_range. */
#define ED_LAYER_SOLARIZATION_OPTIONS(FIELD, T)                                                    \
    FIELD(T, FLOATS, addition_factor, ED_NO_LIST, ED_BETWEEN(0, 1),                                \
          "[lower, upper]; f: [0, f]; default 0")                                                  \
    FIELD(T, FLOATS, threshold_factor, ED_NO_LIST, ED_BETWEEN(0, 1),                               \
          "[lower, upper]; f: [0, f]; default 0")                                                  \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, solarization, ED_LAYER_SOLARIZATION_OPTIONS);

/* Each channel of each image stretched to all of value_range, in training or not. */
#define ED_LAYER_AUTO_CONTRAST_OPTIONS(FIELD, T)                                                   \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, auto_contrast, ED_LAYER_AUTO_CONTRAST_OPTIONS);

#pragma GCC visibility pop
#endif
