/*
 * What is measured of images, and how alike two are: compositions.
 */
#include "ops/images.h"
#include <math.h>
#include <string.h>

#define MEASURE_SAMPLES                                                                            \
    ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4, 2)}},                                       \
               {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 5, 3, 1)}})

/* The sizes of an image's axes, and the number of images. */
static const int64_t *extents_of(const ed_tensor *x)
{
    return ed_shape(x).values + ed_rank(x) - 3;
}

static int64_t count_of(const ed_tensor *x)
{
    return ed_rank(x) == 4 ? ed_dim(x, 0) : 1;
}

/* ---- per_image_standardization --------------------------------------------------------------- */

static bool per_image_standardization_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    if (!images_check(call, x)) return false;
    const int64_t *image = extents_of(x);
    const double n = (double)image[0] * (double)image[1] * (double)image[2];
    if (ed_dtype_of(x) != ED_FLOAT64) x = ed_cast(x, ED_FLOAT32);
    if (n == 0) return ed_call_result(call, 0, ed_identity(x));
    ed_tensor *mean = ed_reduce_mean(x, .axis = ED_AXES(-3, -2, -1), .keepdims = true);
    ed_tensor *std = ed_reduce_std(x, .axis = ED_AXES(-3, -2, -1), .keepdims = true);
    return ed_call_result(call, 0, ed_div(ed_sub(x, mean), ed_maximum(std, 1 / sqrt(n))));
}

static bool per_image_standardization_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t *image = extents_of(x), n = image[0] * image[1] * image[2];
    const double *from = (const double *)x->data;
    double *to = (double *)call->outputs[0]->data;
    for (int64_t begin = 0; begin < x->size; begin += n) {
        double mean = 0, squares = 0;
        for (int64_t i = begin; i < begin + n; i++) mean += from[i] / (double)n;
        for (int64_t i = begin; i < begin + n; i++) squares += pow(from[i] - mean, 2) / (double)n;
        const double std = sqrt(squares), least = 1 / sqrt((double)n);
        for (int64_t i = begin; i < begin + n; i++)
            to[i] = (from[i] - mean) / (std < least ? least : std);
    }
    return true;
}

ED_OP(per_image_standardization) = {
    .name = "per_image_standardization",
    .doc = "(x - mean) / max(standard deviation, 1 / sqrt(n)), n numbers an image",
    .operands = {{"x", ED_SET_NUMBER | ED_SET_STORAGE, 'T'}},
    .compose = per_image_standardization_compose,
    .reference = per_image_standardization_reference,
    .samples = MEASURE_SAMPLES,
};

ed_tensor *ed_per_image_standardization(ed_tensor *x)
{
    return CALL_OP(per_image_standardization, NULL, x);
}

/* ---- Differences of neighbours --------------------------------------------------------------- */

/* What each pixel but the last along an axis (-3 or -2) lacks to the next one. */
static ed_tensor *steps_along(ed_tensor *x, int axis)
{
    const int at = ed_rank(x) + axis;
    int64_t begin[4] = {0}, end[] = {ED_END, ED_END, ED_END, ED_END};
    begin[at] = 1;
    ed_tensor *next = ed_slice(x, .begin = {begin, at + 1});
    begin[at] = 0;
    end[at] = -1;
    return ed_sub(next, ed_slice(x, .begin = {begin, at + 1}, .end = {end, at + 1}));
}

static bool total_variation_compose(ed_call *call)
{
    static const int64_t all[] = {-3, -2, -1};
    ed_tensor *x = call->inputs[0];
    if (!images_check(call, x)) return false;
    ed_tensor *down = ed_reduce_sum(ed_abs(steps_along(x, -3)), .axis = {all, 3});
    ed_tensor *across = ed_reduce_sum(ed_abs(steps_along(x, -2)), .axis = {all, 3});
    return ed_call_result(call, 0, ed_add(down, across));
}

/* The element of image n at (i, j), channel k. */
static double plain_at(const ed_tensor *x, int64_t n, int64_t i, int64_t j, int64_t k)
{
    const int64_t *image = extents_of(x);
    return ((const double *)x->data)[((n * image[0] + i) * image[1] + j) * image[2] + k];
}

static bool total_variation_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t *image = extents_of(x);
    for (int64_t n = 0; n < count_of(x); n++) {
        double sum = 0;
        for (int64_t i = 0; i < image[0]; i++)
            for (int64_t j = 0; j < image[1]; j++)
                for (int64_t k = 0; k < image[2]; k++) {
                    const double here = plain_at(x, n, i, j, k);
                    if (i + 1 < image[0]) sum += fabs(plain_at(x, n, i + 1, j, k) - here);
                    if (j + 1 < image[1]) sum += fabs(plain_at(x, n, i, j + 1, k) - here);
                }
        ((double *)call->outputs[0]->data)[n] = sum;
    }
    return true;
}

ED_OP(total_variation) = {
    .name = "total_variation",
    .doc = "the sum of the absolute differences of neighbouring pixels",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .compose = total_variation_compose,
    .reference = total_variation_reference,
    .samples = MEASURE_SAMPLES,
};

ed_tensor *ed_total_variation(ed_tensor *x)
{
    return CALL_OP(total_variation, NULL, x);
}

static bool image_gradients_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    if (!images_check(call, x)) return false;
    for (int a = 0; a < 2; a++) {
        int64_t after[4] = {0};
        const int axis = ed_rank(x) - 3 + a;
        after[axis] = 1;
        ed_tensor *steps = ed_dim(x, axis) ? steps_along(x, a - 3) : NULL;
        ed_tensor *y =
            ed_dim(x, axis) ? ed_pad(steps, .after = {after, ed_rank(x)}) : ed_identity(x);
        if (!ed_call_result(call, a, y)) return false;
    }
    return true;
}

static bool image_gradients_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t *image = extents_of(x);
    for (int64_t at = 0; at < x->size; at++) {
        const int64_t k = at % image[2], j = at / image[2] % image[1],
                      i = at / image[2] / image[1] % image[0],
                      n = at / image[2] / image[1] / image[0];
        const double here = ((const double *)x->data)[at];
        ((double *)call->outputs[0]->data)[at] =
            i + 1 < image[0] ? plain_at(x, n, i + 1, j, k) - here : 0;
        ((double *)call->outputs[1]->data)[at] =
            j + 1 < image[1] ? plain_at(x, n, i, j + 1, k) - here : 0;
    }
    return true;
}

ED_OP(image_gradients) = {
    .name = "image_gradients",
    .doc = "differences to the pixel below and to the right",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .results = ED_RESULTS({.name = "dy"}, {.name = "dx"}),
    .compose = image_gradients_compose,
    .reference = image_gradients_reference,
    .samples = MEASURE_SAMPLES,
};

ed_tensor *ed_image_gradients(ed_tensor *x, ed_tensor **dx)
{
    return ops_call_into(&ed_op_image_gradients, &x, 1, NULL, (ed_tensor * *const[]){dx});
}
