/*
 * What changes an image's brightness, contrast and colors: compositions. Integers go through
 * floats from 0 to 1, as in convert_image_dtype.
 */
#include "ops/elementwise.h"
#include "ops/images.h"
#include <math.h>

#define FACTOR_OF(attrs) ((const factor_attrs *)(attrs))->factor

/* stretch: y = (a - b) factor + b, da = dy factor, db = dy (1 - factor). lerp gives other results
 * for infinities. */
VECTOR_LOOPS2_WITH(stretch, FACTOR_OF(attrs), (a - b) * c + b);

#ifndef ISA
PLAIN(stretch, (x[0] - x[1]) * FACTOR_OF(attrs) + x[1]);

static bool stretch_gradient(const ed_gradient_call *g)
{
    const double factor = FACTOR_OF(g->attrs);
    GIVE(g, 0, ed_mul(g->dy[0], factor));
    GIVE(g, 1, ed_mul(g->dy[0], 1 - factor));
    return true;
}

ELEMENTWISE(stretch, "y = (a - b) factor + b", TWO(ED_SET_FLOAT), .flags = ED_OP_INTERNAL,
            ED_OP_ATTRS(FACTOR_ATTRS, factor_attrs), .gradient = stretch_gradient,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)},
                                   .attrs = FACTOR(0.3)},
                                  {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 3),
                                              ED_SAMPLE_IN(-2, 2, 2, 1, 3)},
                                   .attrs = FACTOR(1.75)}));

/* Gives the result in the dtype of the operand. */
static bool give_adjusted(ed_call *call, ed_tensor *y)
{
    return ed_call_result(call, 0, images_as(y, ed_dtype_of(call->inputs[0])));
}

/* Element i of x as a float, and setting element i of y to a float. */
static double plain_get(const ed_call *call, int64_t i)
{
    return images_plain_as(((const double *)call->inputs[0]->data)[i],
                           ed_dtype_of(call->operands[0]), ED_FLOAT64);
}

static void plain_set(const ed_call *call, int64_t i, double y)
{
    ((double *)call->outputs[0]->data)[i] =
        images_plain_as(y, ED_FLOAT64, ed_dtype_of(call->operands[0]));
}

/* ---- Brightness, gamma ----------------------------------------------------------------------- */

static bool adjust_brightness_compose(ed_call *call)
{
    const double delta = ((const adjust_attrs *)call->attrs)->delta;
    return give_adjusted(call, ed_add(images_to_adjust(call->inputs[0]), delta));
}

static bool adjust_brightness_reference(const ed_call *call)
{
    for (int64_t i = 0; i < call->inputs[0]->size; i++)
        plain_set(call, i, plain_get(call, i) + ((const adjust_attrs *)call->attrs)->delta);
    return true;
}

ED_OP(adjust_brightness) = {
    .name = "adjust_brightness",
    .doc = "x + delta",
    .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(ADJUST_ATTRS, adjust_attrs),
    .compose = adjust_brightness_compose,
    .reference = adjust_brightness_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 3, 4, 3)}, .attrs = DELTA(0.3)},
                          {.inputs = {ED_SAMPLE_IN(0, 99, 2, 2, 4, 1)}, .attrs = DELTA(-0.25)}),
};

ed_tensor *ed_adjust_brightness(ed_tensor *x, double delta)
{
    return CALL_OP(adjust_brightness, DELTA(delta), x);
}

#define GAMMA(...) ED_ATTRS(ED_ADJUST_GAMMA_OPTIONS, ed_adjust_gamma_options, __VA_ARGS__)

static bool adjust_gamma_compose(ed_call *call)
{
    const ed_adjust_gamma_options *o = call->attrs;
    return give_adjusted(call,
                         ed_mul(ed_pow(images_to_adjust(call->inputs[0]), o->gamma), o->gain));
}

static bool adjust_gamma_reference(const ed_call *call)
{
    const ed_adjust_gamma_options *o = call->attrs;
    for (int64_t i = 0; i < call->inputs[0]->size; i++)
        plain_set(call, i, pow(plain_get(call, i), o->gamma) * o->gain);
    return true;
}

ED_OP(adjust_gamma) = {
    .name = "adjust_gamma",
    .doc = "gain x^gamma",
    .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(ED_ADJUST_GAMMA_OPTIONS, ed_adjust_gamma_options),
    .compose = adjust_gamma_compose,
    .reference = adjust_gamma_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.1, 2, 3, 4, 3)}, .attrs = GAMMA(.gamma = 2.2)},
                          {.inputs = {ED_SAMPLE_IN(0.5, 99, 3, 4, 1)},
                           .attrs = GAMMA(.gamma = 0.5, .gain = 0.75)}),
};

ed_tensor *ed_adjust_gamma_with(ed_tensor *x, const ed_adjust_gamma_options *options)
{
    return CALL_OP(adjust_gamma, options, x);
}

/* ---- Contrast -------------------------------------------------------------------------------- */

/* Whole rows are added up first: that goes by vectors, whatever the number of channels. */
static bool adjust_contrast_compose(ed_call *call)
{
    if (!images_check(call, call->inputs[0])) return false;
    ed_tensor *x = images_to_adjust(call->inputs[0]);
    const double height = (double)ed_dim(x, -3), width = (double)ed_dim(x, -2);
    ed_tensor *row = ed_reduce_sum(x, .axis = ED_AXES(-3), .keepdims = true);
    ed_tensor *sum = ed_reduce_sum(row, .axis = ED_AXES(-2), .keepdims = true);
    ed_tensor *mean = ed_div(sum, height * width);
    return give_adjusted(call, CALL_OP(stretch, call->attrs, x, mean));
}

static bool adjust_contrast_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t c = x->shape[x->rank - 1], pixels = x->shape[x->rank - 3] * x->shape[x->rank - 2];
    for (int64_t at = 0; at < x->size; at += at % c == c - 1 ? (pixels - 1) * c + 1 : 1) {
        double mean = 0;
        for (int64_t p = 0; p < pixels; p++) mean += plain_get(call, at + p * c) / (double)pixels;
        for (int64_t p = 0; p < pixels; p++)
            plain_set(call, at + p * c,
                      (plain_get(call, at + p * c) - mean) * FACTOR_OF(call->attrs) + mean);
    }
    return true;
}

ED_OP(adjust_contrast) = {
    .name = "adjust_contrast",
    .doc = "(x - mean) factor + mean, the means being those of the channels",
    .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(FACTOR_ATTRS, factor_attrs),
    .compose = adjust_contrast_compose,
    .reference = adjust_contrast_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 3, 4, 3)}, .attrs = FACTOR(0.3)},
                          {.inputs = {ED_SAMPLE_IN(0, 99, 2, 2, 4, 1)}, .attrs = FACTOR(1.75)}),
};

ed_tensor *ed_adjust_contrast(ed_tensor *x, double contrast_factor)
{
    return CALL_OP(adjust_contrast, FACTOR(contrast_factor), x);
}

/* ---- Hue and saturation ---------------------------------------------------------------------- */

/* Hue, saturation and value with one channel replaced. */
static ed_tensor *with_channel(ed_list *hsv, int i, ed_tensor *channel)
{
    ed_tensor *all[3];
    for (int k = 0; k < 3; k++) all[k] = k == i ? channel : ed_list_get(hsv, k);
    return ed_hsv_to_rgb(ed_concat(ed_list_make(all, 3), .axis = -1));
}

extern const ed_op ed_op_shift_hue, ed_op_scale_saturation;

/* What is not differentiated takes one pass. */
static bool adjust_hue_compose(ed_call *call)
{
    if (!images_check_channels(call, 3)) return false;
    if (!ops_differentiated())
        return give_adjusted(call,
                             CALL_OP(shift_hue, call->attrs, images_to_adjust(call->inputs[0])));
    ed_list *hsv = ed_split(ed_rgb_to_hsv(images_to_adjust(call->inputs[0])), 3, .axis = -1);
    if (!hsv) return false;
    ed_tensor *hue = ed_add(ed_list_get(hsv, 0), ((const adjust_attrs *)call->attrs)->delta);
    return give_adjusted(call, with_channel(hsv, 0, ed_floor_mod(hue, 1)));
}

static bool adjust_saturation_compose(ed_call *call)
{
    if (!images_check_channels(call, 3)) return false;
    if (!ops_differentiated())
        return give_adjusted(
            call, CALL_OP(scale_saturation, call->attrs, images_to_adjust(call->inputs[0])));
    ed_list *hsv = ed_split(ed_rgb_to_hsv(images_to_adjust(call->inputs[0])), 3, .axis = -1);
    if (!hsv) return false;
    ed_tensor *s = ed_mul(ed_list_get(hsv, 1), FACTOR_OF(call->attrs));
    return give_adjusted(call, with_channel(hsv, 1, ed_clip(s, 0, 1)));
}

static bool shift_hue_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_HUE, &((const adjust_attrs *)call->attrs)->delta, 1);
    return true;
}

static bool scale_saturation_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_SATURATION, &FACTOR_OF(call->attrs), 1);
    return true;
}

/* Pixel by pixel: the hue moved, or the saturation times a factor. */
static bool plain_shifted(const ed_call *call, const double *delta, const double *factor)
{
    for (int64_t i = 0; i < call->inputs[0]->size; i += 3) {
        double rgb[3], hsv[3];
        for (int k = 0; k < 3; k++) rgb[k] = plain_get(call, i + k);
        images_plain_hsv(rgb, hsv);
        if (delta) hsv[0] = hsv[0] + *delta - floor(hsv[0] + *delta);
        if (factor) hsv[1] *= *factor;
        if (factor && hsv[1] > 1) hsv[1] = 1;
        if (factor && hsv[1] < 0) hsv[1] = 0;
        images_plain_rgb(hsv, rgb);
        for (int k = 0; k < 3; k++) plain_set(call, i + k, rgb[k]);
    }
    return true;
}

static bool adjust_hue_reference(const ed_call *call)
{
    return plain_shifted(call, &((const adjust_attrs *)call->attrs)->delta, NULL);
}

static bool adjust_saturation_reference(const ed_call *call)
{
    return plain_shifted(call, NULL, &FACTOR_OF(call->attrs));
}

#define SHIFTED                                                                                    \
    ED_OP_ATTRS(ADJUST_ATTRS, adjust_attrs),                                                       \
        .reference = adjust_hue_reference,                                                         \
        .samples =                                                                                 \
            ED_SAMPLES({.inputs = {ED_DISTINCT_IN(0.05, 0.95, 4, 3)}, .attrs = DELTA(0.3)},        \
                       {.inputs = {ED_DISTINCT_IN(0.05, 0.95, 2, 2, 3)}, .attrs = DELTA(-0.45)})
#define SCALED                                                                                     \
    ED_OP_ATTRS(FACTOR_ATTRS, factor_attrs),                                                       \
        .reference = adjust_saturation_reference,                                                  \
        .samples =                                                                                 \
            ED_SAMPLES({.inputs = {ED_DISTINCT_IN(0.05, 0.95, 4, 3)}, .attrs = FACTOR(0.4)},       \
                       {.inputs = {ED_DISTINCT_IN(0.05, 0.95, 2, 2, 3)}, .attrs = FACTOR(1.5)})
#define ONE_PASS                                                                                   \
    .operands = {{"x", ED_SET_FLOAT, 'T'}}, .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,            \
    .infer = images_colors_infer, .batch = ed_batch_axes,                                          \
    .no_gradient = "what is differentiated is made of rgb_to_hsv and hsv_to_rgb"

ED_OP(adjust_hue) = {
    .name = "adjust_hue",
    .doc = "colors with delta added to their hue",
    .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    .compose = adjust_hue_compose,
    SHIFTED,
};

ED_OP(adjust_saturation) = {
    .name = "adjust_saturation",
    .doc = "colors with their saturation times a factor",
    .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    .compose = adjust_saturation_compose,
    SCALED,
};

ED_OP(shift_hue) = {
    .name = "shift_hue",
    .doc = "adjust_hue of floats",
    .kernel = shift_hue_kernel,
    ONE_PASS,
    SHIFTED,
};

ED_OP(scale_saturation) = {
    .name = "scale_saturation",
    .doc = "adjust_saturation of floats",
    .kernel = scale_saturation_kernel,
    ONE_PASS,
    SCALED,
};

ed_tensor *ed_adjust_hue(ed_tensor *x, double delta)
{
    return CALL_OP(adjust_hue, DELTA(delta), x);
}

ed_tensor *ed_adjust_saturation(ed_tensor *x, double saturation_factor)
{
    return CALL_OP(adjust_saturation, FACTOR(saturation_factor), x);
}

#endif
