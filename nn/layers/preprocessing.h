/*
 * Layers: numbers and images made ready for a model. They have no trained weights. Those that draw
 * random numbers do so with .training = true and return x otherwise, where nothing else is said; a
 * checkpoint saves a generator that was given. Images are floats [batch, height, width, channels],
 * or one [height, width, channels]; each image of a batch has numbers of its own.
 */
#ifndef EDDY_NN_LAYERS_PREPROCESSING_H
#define EDDY_NN_LAYERS_PREPROCESSING_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* ---- Numbers --------------------------------------------------------------------------------- */

/* x scale + offset; integers become float32, or of dtype. */
#define ED_LAYER_RESCALING_OPTIONS(FIELD, T)                                                       \
    FIELD(T, FLOAT, scale, 1, ED_FINITE, "by which to multiply")                                   \
    FIELD(T, FLOAT, offset, 0, ED_FINITE, "to add")                                                \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, rescaling, ED_LAYER_RESCALING_OPTIONS, scale);

/*
 * (x - mean) / sqrt(variance), with a mean and variance for each element along `axis`, one for all
 * if the list is empty; with invert x sqrt(variance) + mean. They are given, one number for all or
 * as many as there are elements, or ed_layer_adapt takes them from data. Weights, not trained,
 * unless they are given: mean, variance, count (int64).
 */
#define ED_LAYER_NORMALIZATION_OPTIONS(FIELD, T)                                                   \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "that have their own statistics; default: the last")  \
    FIELD(T, FLOATS, mean, ED_NO_LIST, ED_FINITE, "default: of the data")                          \
    FIELD(T, FLOATS, variance, ED_NO_LIST, ED_AT_LEAST(0), "default: of the data")                 \
    FIELD(T, BOOL, invert, false, ED_ANY, "x sqrt(variance) + mean")                               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, normalization, ED_LAYER_NORMALIZATION_OPTIONS);

/* How numbers of categories become tensors: "int" as they are, "one_hot" a further axis (in place
 * of a last one of size 1), "multi_hot" and "count" the last axis summed up: 1 where a category is
 * there, or how often. Results but "int" are float32, or of dtype. */
#define ED_LAYER_OUTPUT_MODES ED_ONE_OF("int", "one_hot", "multi_hot", "count")

/* The number of the bin that x lies in, int32: 0 below the first of the ascending bin_boundaries,
 * which belong to the bin above. Without them, ed_layer_adapt takes num_bins - 1 from data, so that
 * bins have as many elements as each other. */
#define ED_LAYER_DISCRETIZATION_OPTIONS(FIELD, T)                                                  \
    FIELD(T, FLOATS, bin_boundaries, ED_NO_LIST, ED_FINITE, "between bins; default: of the data")  \
    FIELD(T, INT, num_bins, 0, ED_AT_LEAST(0), "for ed_layer_adapt; 0: boundaries are given")      \
    FIELD(T, CHOICE, output_mode, "int", ED_LAYER_OUTPUT_MODES, "see above")                       \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, discretization, ED_LAYER_DISCRETIZATION_OPTIONS);

/* Integers 0 to num_tokens - 1 as numbers of categories; others are an error. A second input of
 * their shape has weights for "count". */
#define ED_LAYER_CATEGORY_ENCODING_OPTIONS(FIELD, T)                                               \
    FIELD(T, INT, num_tokens, 0, ED_AT_LEAST(1), "number of categories")                           \
    FIELD(T, CHOICE, output_mode, "multi_hot", ED_ONE_OF("one_hot", "multi_hot", "count"),         \
          "above")                                                                                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, category_encoding, ED_LAYER_CATEGORY_ENCODING_OPTIONS, num_tokens);

/*
 * The number of the bin, of num_bins, that the decimal text of an integer is hashed to, int64, as
 * in TensorFlow: by FarmHash64, or SipHash64 with a salt. Floats are rounded towards 0 first. The
 * integer mask_value gets bin 0, which is then no other's.
 */
#define ED_LAYER_HASHING_OPTIONS(FIELD, T)                                                         \
    FIELD(T, INT, num_bins, 0, ED_AT_LEAST(1), "number of bins")                                   \
    FIELD(T, INTS, mask_value, ED_NO_LIST, ED_ANY, "one integer; default: none")                   \
    FIELD(T, INTS, salt, ED_NO_LIST, ED_ANY, "one integer, or two; default: FarmHash64")           \
    FIELD(T, CHOICE, output_mode, "int", ED_LAYER_OUTPUT_MODES, "see above")                       \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, hashing, ED_LAYER_HASHING_OPTIONS, num_bins);

/* The number of the bin that the integers of two or more inputs, [batch], [batch, 1] or scalars,
 * are hashed to together, int64, as by tf.sparse.cross_hashed. */
#define ED_LAYER_HASHED_CROSSING_OPTIONS(FIELD, T)                                                 \
    FIELD(T, INT, num_bins, 0, ED_AT_LEAST(1), "number of bins")                                   \
    FIELD(T, CHOICE, output_mode, "int", ED_ONE_OF("int", "one_hot"), "see above")                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, hashed_crossing, ED_LAYER_HASHED_CROSSING_OPTIONS, num_bins);

/*
 * Integers as numbers of a vocabulary, int64: first the mask_token's, 0, if there is one and
 * output_mode is "int"; then num_oov_indices numbers for integers that are not in the vocabulary,
 * then the vocabulary's. With invert from numbers to integers. The vocabulary is given, or
 * ed_layer_adapt takes it from data: the most frequent integers first, of equal frequency the
 * greater ones, without mask_token and oov_token. The other output modes drop mask tokens; "tf_idf"
 * is "count" times idf_weights, ln(1 + documents / (1 + documents with the token)) if the data's
 * rows are documents. Weights, not trained, unless they are given: keys and values of the table
 * that is looked up, idf_weights.
 */
#define ED_LAYER_INTEGER_LOOKUP_OPTIONS(FIELD, T)                                                  \
    FIELD(T, INT, max_tokens, 0, ED_AT_LEAST(0), "most numbers that there may be; 0: any")         \
    FIELD(T, INT, num_oov_indices, 1, ED_BETWEEN(0, 1e9), "of others; 0: they are an error")       \
    FIELD(T, INTS, mask_token, ED_NO_LIST, ED_ANY, "one integer; default: none")                   \
    FIELD(T, INT, oov_token, -1, ED_ANY, "what invert makes of numbers that are no token's")       \
    FIELD(T, INTS, vocabulary, ED_NO_LIST, ED_ANY, "integers; default: of the data")               \
    FIELD(T, FLOATS, idf_weights, ED_NO_LIST, ED_FINITE, "of the vocabulary, for \"tf_idf\"")      \
    FIELD(T, BOOL, invert, false, ED_ANY, "from numbers to integers")                              \
    FIELD(T, CHOICE, output_mode, "int",                                                           \
          ED_ONE_OF("int", "one_hot", "multi_hot", "count", "tf_idf"), "see above")                \
    FIELD(T, BOOL, pad_to_max_tokens, false, ED_ANY, "results are max_tokens wide")                \
    FIELD(T, CHOICE, oov_method, "floormod", ED_ONE_OF("floormod", "farmhash"),                    \
          "which of num_oov_indices an integer gets")                                              \
    FIELD(T, INTS, salt, ED_NO_LIST, ED_ANY, "as of hashing, for \"farmhash\"")                    \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, integer_lookup, ED_LAYER_INTEGER_LOOKUP_OPTIONS);

/* The integers of an integer_lookup by their numbers, int64: mask_token and oov_tokens, then the
 * vocabulary. Fails for other layers and before there is a vocabulary. */
ed_tensor *ed_layer_get_vocabulary(ed_layer *layer);

/* Takes what the layer needs to know from data, all of it at once: mean and variance of a
 * normalization, boundaries of a discretization with num_bins, the vocabulary of an integer_lookup.
 * Fails for other layers. */
bool ed_layer_adapt(ed_layer *layer, ed_tensor *data);

/* ---- Images ---------------------------------------------------------------------------------- */

/* Of this size; crop_to_aspect_ratio cuts the middle of that shape out first, pad_to_aspect_ratio
 * puts pixels of fill_value around the image so that it has that shape. */
#define ED_LAYER_RESIZING_OPTIONS(FIELD, T)                                                        \
    FIELD(T, INT, height, 0, ED_AT_LEAST(1), "of the result")                                      \
    FIELD(T, INT, width, 0, ED_AT_LEAST(1), "of the result")                                       \
    FIELD(T, CHOICE, interpolation, "bilinear",                                                    \
          ED_ONE_OF("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "area"),             \
          "how pixels are made")                                                                   \
    FIELD(T, BOOL, antialias, false, ED_ANY, "larger filters where the image shrinks")             \
    FIELD(T, BOOL, crop_to_aspect_ratio, false, ED_ANY, "cut the middle out first")                \
    FIELD(T, BOOL, pad_to_aspect_ratio, false, ED_ANY, "fill up to the shape first")               \
    FIELD(T, FLOAT, fill_value, 0, ED_FINITE, "of pixels that fill up")                            \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, resizing, ED_LAYER_RESIZING_OPTIONS, height, width);

/* The middle of this size; images that are smaller are resized, their middle cut out first. */
#define ED_LAYER_CENTER_CROP_OPTIONS(FIELD, T)                                                     \
    FIELD(T, INT, height, 0, ED_AT_LEAST(1), "of the result")                                      \
    FIELD(T, INT, width, 0, ED_AT_LEAST(1), "of the result")                                       \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, center_crop, ED_LAYER_CENTER_CROP_OPTIONS, height, width);

/* In training a part of this size at a random place, the same for all images of a batch; else
 * center_crop. */
#define ED_LAYER_RANDOM_CROP_OPTIONS(FIELD, T)                                                     \
    FIELD(T, INT, height, 0, ED_AT_LEAST(1), "of the result")                                      \
    FIELD(T, INT, width, 0, ED_AT_LEAST(1), "of the result")                                       \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the place; default: the process's")           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, random_crop, ED_LAYER_RANDOM_CROP_OPTIONS, height, width);

/* Each image turned over or not, with probability 1/2 for each direction. */
#define ED_LAYER_RANDOM_FLIP_OPTIONS(FIELD, T)                                                     \
    FIELD(T, CHOICE, mode, "horizontal_and_vertical",                                              \
          ED_ONE_OF("horizontal", "vertical", "horizontal_and_vertical"), "directions")            \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, random_flip, ED_LAYER_RANDOM_FLIP_OPTIONS);

/* x + d (high - low) with d from lower to upper, then clipped to value_range, [low, high]. */
#define ED_LAYER_RANDOM_BRIGHTNESS_OPTIONS(FIELD, T)                                               \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(-1, 1), "[lower, upper]; f: [-f, f]")          \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, random_brightness, ED_LAYER_RANDOM_BRIGHTNESS_OPTIONS, factor);

/* (x - mean) c + mean, mean of each channel of an image, c from 1 - lower to 1 + upper; then
 * clipped to value_range. */
#define ED_LAYER_RANDOM_CONTRAST_OPTIONS(FIELD, T)                                                 \
    FIELD(T, FLOATS, factor, ED_NO_LIST, ED_BETWEEN(0, 1), "[lower, upper]; one number for both")  \
    FIELD(T, FLOATS, value_range, ED_NO_LIST, ED_FINITE, "of pixels; default: 0 and 255")          \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the draws; default: the process's")           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, random_contrast, ED_LAYER_RANDOM_CONTRAST_OPTIONS, factor);

#pragma GCC visibility pop
#endif
