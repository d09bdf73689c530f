/*
 * What ops on images share.
 */
#ifndef EDDY_OPS_IMAGES_H
#define EDDY_OPS_IMAGES_H

#include "ops/execute.h"
#include "ops/ops.h"

/* Whether x is [height, width, channels] or [batch, height, width, channels]; an error if not. */
bool images_check(const ed_call *call, const ed_tensor *x);

/* What images may have as elements: floats, and integers but uint64. */
#define ED_SET_IMAGE (ED_SET_NUMBER | (ED_SET_STORAGE & ~(1u << ED_UINT64)))

/* What goes through floats and back. */
#define ED_SET_ADJUSTABLE (ED_SET_IMAGE & ~(1u << ED_INT64))

/* The largest number of an integer dtype; 1 for floats. */
double images_largest(ed_dtype dtype);

/* convert_image_dtype: x in another dtype; in float32, float64 if it has that. NULL for NULL. */
ed_tensor *images_as(ed_tensor *x, ed_dtype dtype);
ed_tensor *images_as_floats(ed_tensor *x);

/* The same as floats that hold what is computed with them: wide integers in float64. */
ed_tensor *images_to_adjust(ed_tensor *x);

/* Checks that x, operand 0, is [..., channels]; infers a result like x [..., 3]. */
bool images_check_channels(const ed_call *call, int64_t channels);
bool images_colors_infer(ed_call *call);

/* What is made of colors, and by which numbers. */
typedef enum color_map {
    COLOR_HSV,        /* hue, saturation and value */
    COLOR_RGB,        /* colors of those */
    COLOR_TIMES,      /* products with a matrix [3, 3] */
    COLOR_HUE,        /* colors with a number added to their hue */
    COLOR_SATURATION, /* with their saturation times a number, from 0 to 1 */
    COLOR_GREY,       /* their sum, by 3 weights; y has one channel */
    COLOR_SPREAD,     /* three channels that are the one of x */
    COLOR_MAPS
} color_map;

/* A kernel's output 0 from input 0, floats, by `count` numbers. */
void images_map_colors(const ed_call *call, color_map map, const double *numbers, int count);

/* A pixel's colors as hue, saturation and value, and back, for references. */
void images_plain_hsv(const double *rgb, double *hsv);
void images_plain_rgb(const double *hsv, double *rgb);

/* images_as of a number, for references. */
double images_plain_as(double x, ed_dtype from, ed_dtype to);

/* The attributes of those that adjust images by one number. */
#define ADJUST_ATTRS(FIELD, T) FIELD(T, FLOAT, delta, 0, ED_FINITE, "what is added")
#define FACTOR_ATTRS(FIELD, T) FIELD(T, FLOAT, factor, 1, ED_FINITE, "by which to multiply")
ED_OPTIONS(adjust_attrs, ADJUST_ATTRS);
ED_OPTIONS(factor_attrs, FACTOR_ATTRS);
#define DELTA(...)  ED_ATTRS(ADJUST_ATTRS, adjust_attrs, .delta = __VA_ARGS__)
#define FACTOR(...) ED_ATTRS(FACTOR_ATTRS, factor_attrs, .factor = __VA_ARGS__)

/* The attributes of resize, for those that call its reference. */
#define RESIZE_ATTRS(FIELD, T)                                                                     \
    FIELD(T, INTS, size, ED_NO_LIST, ED_REQUIRED, "height and width of the result")                \
    ED_RESIZE_OPTIONS(FIELD, T)
ED_OPTIONS(resize_attrs, RESIZE_ATTRS);
#define RESIZED(...) ED_ATTRS(RESIZE_ATTRS, resize_attrs, __VA_ARGS__)

#endif
