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

/* Pixels with so many of their 8 bits, after value_range became 0 to 255; the others are 0. The
 * gradient is 0. */
#define ED_LAYER_RANDOM_POSTERIZATION_OPTIONS(FIELD, T)                                            \
    FIELD(T, INTS, factor, ED_NO_LIST, ED_BETWEEN(1, 8), "[lower, upper), or n: [1, n)")           \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_posterization, ED_LAYER_RANDOM_POSTERIZATION_OPTIONS, factor);

/* random_brightness, random_contrast, random_saturation and random_hue, one after the other: those
 * whose factor is given. */
#define ED_LAYER_RANDOM_COLOR_JITTER_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, FLOATS, brightness_factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "of random_brightness")     \
    FIELD(T, FLOATS, contrast_factor, ED_NO_LIST, ED_BETWEEN(0, 1), "of random_contrast")          \
    FIELD(T, FLOATS, saturation_factor, ED_NO_LIST, ED_BETWEEN(0, 1), "of random_saturation")      \
    FIELD(T, FLOATS, hue_factor, ED_NO_LIST, ED_BETWEEN(0, 1), "of random_hue")                    \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_color_jitter, ED_LAYER_RANDOM_COLOR_JITTER_OPTIONS);

/* In training each channel's values, over all images, become equally frequent. */
#define ED_LAYER_EQUALIZATION_OPTIONS(FIELD, T)                                                    \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, INT, bins, 256, ED_AT_LEAST(1), "number of values that are told apart")               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, equalization, ED_LAYER_EQUALIZATION_OPTIONS);

/* The same in each tile of each image, in training or not: values that are more frequent than
 * clip_limit times their even share count as that, and pixels lie between the four tiles around
 * them. Also found by the name "clahe". */
#define ED_LAYER_CONTRAST_LIMITED_ADAPTIVE_HISTOGRAM_EQUALIZATION_OPTIONS(FIELD, T)                \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, FLOAT, clip_limit, 4, ED_FINITE, "of a value's frequency; 0 or less: none")           \
    FIELD(T, INTS, tile_grid_size, ED_NO_LIST, ED_AT_LEAST(1),                                     \
          "numbers of tiles, [height, width]; default: 8 and 8")                                   \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, contrast_limited_adaptive_histogram_equalization,
        ED_LAYER_CONTRAST_LIMITED_ADAPTIVE_HISTOGRAM_EQUALIZATION_OPTIONS);

/* Each channel of each image stretched to all of value_range, in training or not. */
#define ED_LAYER_AUTO_CONTRAST_OPTIONS(FIELD, T)                                                   \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, auto_contrast, ED_LAYER_AUTO_CONTRAST_OPTIONS);

/* ---- With a probability ---------------------------------------------------------------------- */

/* The probability with which an image is changed, drawn for each image. */
#define ED_LAYER_PROBABILITY(FIELD, T)                                                             \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1),                                         \
          "[lower, upper] of the probability; f: [0, f]; default [0, 1]")

/* Blurred by a Gaussian kernel; sigma is drawn once for each direction, then pixels are clipped. */
#define ED_LAYER_RANDOM_GAUSSIAN_BLUR_OPTIONS(FIELD, T)                                            \
    ED_LAYER_PROBABILITY(FIELD, T)                                                                 \
    FIELD(T, INTS, kernel_size, ED_NO_LIST, ED_AT_LEAST(1), "1 or 2 odd numbers; default: 3")      \
    FIELD(T, FLOATS, sigma, ED_NO_LIST, ED_BETWEEN(0, 1),                                          \
          "standard deviation: [lower, upper]; f: [0, f]; default [0, 1]")                         \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_gaussian_blur, ED_LAYER_RANDOM_GAUSSIAN_BLUR_OPTIONS);

/* A rectangle of each image gets fill_value, or normal numbers times the upper bound of pixels;
 * both are clipped. Its sides are shares of the image's: roots of two numbers drawn from scale. */
#define ED_LAYER_RANDOM_ERASING_OPTIONS(FIELD, T)                                                  \
    ED_LAYER_PROBABILITY(FIELD, T)                                                                 \
    FIELD(T, FLOATS, scale, ED_NO_LIST, ED_BETWEEN(0, 1),                                          \
          "[lower, upper]; f: [0, f]; default [0.02, 0.33]")                                       \
    FIELD(T, FLOATS, fill_value, ED_NO_LIST, ED_FINITE,                                            \
          "1 number, or 1 for each channel; default: drawn")                                       \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_erasing, ED_LAYER_RANDOM_ERASING_OPTIONS);

/* Seen from another side: each corner's coordinates times 1 + u, u drawn between -scale / 2 and
 * scale / 2. What is outside is fill_value. */
#define ED_LAYER_RANDOM_PERSPECTIVE_OPTIONS(FIELD, T)                                              \
    ED_LAYER_PROBABILITY(FIELD, T)                                                                 \
    FIELD(T, FLOAT, scale, 1, ED_BETWEEN(0, 1), "how far corners move")                            \
    FIELD(T, CHOICE, interpolation, "bilinear", ED_ONE_OF("bilinear", "nearest"),                  \
          "how pixels are made")                                                                   \
    FIELD(T, FLOAT, fill_value, 0, ED_FINITE, "outside")                                           \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_perspective, ED_LAYER_RANDOM_PERSPECTIVE_OPTIONS);

/* Each pixel moves by a smooth random vector: normal numbers times sigma, blurred by sigma, times
 * alpha; sigma = 0.05 scale of the smaller side, alpha = 0.1 scale of the larger one. */
#define ED_LAYER_RANDOM_ELASTIC_TRANSFORM_OPTIONS(FIELD, T)                                        \
    ED_LAYER_PROBABILITY(FIELD, T)                                                                 \
    FIELD(T, FLOATS, scale, ED_NO_LIST, ED_BETWEEN(0, 1),                                          \
          "[lower, upper]; f: [0, f]; default [0, 1]")                                             \
    FIELD(T, CHOICE, interpolation, "bilinear", ED_ONE_OF("bilinear", "nearest"),                  \
          "how pixels are made")                                                                   \
    FIELD(T, CHOICE, fill_mode, "reflect", ED_ONE_OF("reflect", "wrap", "constant", "nearest"),    \
          "what is outside")                                                                       \
    FIELD(T, FLOAT, fill_value, 0, ED_FINITE, "outside, with fill_mode \"constant\"")              \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, random_elastic_transform, ED_LAYER_RANDOM_ELASTIC_TRANSFORM_OPTIONS);

/* ---- Two images in one ----------------------------------------------------------------------- */

/*
 * Each image with another one of its batch; one image alone stays as it is. A second input are the
 * labels, floats [batch, ...] (one-hot for classes), which are mixed in the same shares and become
 * a second output: ed_forward(mix_up, ed_list_of(x, y)).
 *
 * mix_up: w x + (1 - w) x[order], w from Beta(alpha, alpha).
 */
#define ED_LAYER_MIX_UP_OPTIONS(FIELD, T)                                                          \
    FIELD(T, FLOAT, alpha, 0.2, ED_ABOVE(0), "of the distribution of the share")                   \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, mix_up, ED_LAYER_MIX_UP_OPTIONS);

/* A rectangle of each image is that of the other one: a share 1 - w of it, w from Beta(a, a), a
 * drawn from factor. */
#define ED_LAYER_CUT_MIX_OPTIONS(FIELD, T)                                                         \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1),                                         \
          "[lower, upper]; f: [0, f]; default [0, 1]")                                             \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, cut_mix, ED_LAYER_CUT_MIX_OPTIONS);

/* ---- Several changes ------------------------------------------------------------------------- */

/* So many changes in a row, each drawn from: random_shear, random_translation, random_rotation,
 * random_brightness, random_color_degeneration, random_contrast, random_sharpness,
 * random_posterization, solarization, auto_contrast, equalization. Images are RGB. */
#define ED_LAYER_RAND_AUGMENT_OPTIONS(FIELD, T)                                                    \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, INT, num_ops, 2, ED_AT_LEAST(0), "number of changes")                                 \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1),                                         \
          "of each change: [lower, upper]; f: [0, f]; default [0, 0.5]")                           \
    FIELD(T, CHOICE, interpolation, "bilinear", ED_ONE_OF("bilinear", "nearest"),                  \
          "how pixels are made")                                                                   \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, rand_augment, ED_LAYER_RAND_AUGMENT_OPTIONS);

/* The sum of several chains of such changes, weighted by Dirichlet's distribution, and that mixed
 * with the image, by Beta(alpha, alpha). Without all_ops: no random_brightness,
 * random_color_degeneration, random_contrast, random_sharpness. */
#define ED_LAYER_AUG_MIX_OPTIONS(FIELD, T)                                                         \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, INT, num_chains, 3, ED_AT_LEAST(1), "number of chains")                               \
    FIELD(T, INT, chain_depth, 3, ED_AT_LEAST(0), "most changes in a chain")                       \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1),                                         \
          "of each change: [lower, upper]; f: [0, f]; default [0, 0.3]")                           \
    FIELD(T, FLOAT, alpha, 1, ED_ABOVE(0), "of both distributions")                                \
    FIELD(T, BOOL, all_ops, true, ED_ANY, "all changes")                                           \
    FIELD(T, CHOICE, interpolation, "bilinear", ED_ONE_OF("bilinear", "nearest"),                  \
          "how pixels are made")                                                                   \
    ED_LAYER_DRAWS(FIELD, T)
ED_KIND(layer, aug_mix, ED_LAYER_AUG_MIX_OPTIONS);

#pragma GCC visibility pop
#endif
