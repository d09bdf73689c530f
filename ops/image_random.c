/*
 * Random changes of images from a seed: compositions of what stateless_uniform draws and of the
 * changes. References ask for the same numbers.
 */
#include "ops/images.h"
#include "ops/stateless.h"
#include <string.h>

#define SEED                                                                                       \
    {                                                                                              \
        "seed", ED_SET_INDEX, 'S', .early = true                                                   \
    }

/* A number drawn from low up to high. false without memory. */
static bool draw_number(ed_tensor *seed, double low, double high, double *number)
{
    ED_SCOPE;
    ed_tensor *drawn = ed_stateless_uniform(seed, ED_SHAPE(), .low = low, .high = high);
    if (drawn) *number = dtype_load(ED_FLOAT32, tensor_read(drawn)->data, 0);
    return drawn;
}

/* ---- Flips ----------------------------------------------------------------------------------- */

/* An image is turned over for a number below 0.5, one of a batch for one above: TensorFlow's. The
 * axis is that of a batch. */
static bool flip_compose(ed_call *call, int64_t axis, ed_tensor *(*flip)(ed_tensor *x))
{
    ed_tensor *x = call->inputs[0], *seed = call->inputs[1];
    if (!images_check(call, x) || !stateless_check(call, 1)) return false;
    if (ed_rank(x) == 3) {
        double number;
        return draw_number(seed, 0, 1, &number) &&
               ed_call_result(call, 0, number < 0.5 ? flip(x) : ed_identity(x));
    }
    const double last = (double)ed_dim(x, axis) - 1;
    ed_tensor *turned = ed_greater(ed_stateless_uniform(seed, ED_SHAPE(ed_dim(x, 0), 1)), 0.5);
    ed_tensor *order = ed_where(turned, ed_range(last, -1, .delta = -1, .dtype = ED_INT64),
                                ed_range(0, last + 1, .dtype = ED_INT64));
    return ed_call_result(call, 0, ed_gather(x, order, .axis = axis, .batch_dims = 1));
}

/* Row or column number i of `extent` as the last but i. */
static bool plain_flip(const ed_call *call, int axis)
{
    ED_SCOPE;
    const ed_tensor *x = call->inputs[0];
    const int64_t *image = x->shape + x->rank - 3, batch = x->rank == 4 ? x->shape[0] : 1;
    ed_tensor *drawn = ed_stateless_uniform(call->operands[1], ED_SHAPE(batch));
    if (x->rank == 3) drawn = ed_stateless_uniform(call->operands[1], ED_SHAPE());
    const double *numbers = drawn ? ed_as_doubles(drawn) : NULL;
    if (!numbers) return false;
    for (int64_t at = 0; at < x->size; at++) {
        int64_t place[] = {at / image[2] / image[1] % image[0], at / image[2] % image[1]};
        const int64_t n = at / image[2] / image[1] / image[0];
        const bool turned = x->rank == 3 ? numbers[0] < 0.5 : numbers[n] > 0.5;
        if (turned) place[axis] = image[axis] - 1 - place[axis];
        ((double *)call->outputs[0]->data)[at] =
            ((const double *)x->data)[((n * image[0] + place[0]) * image[1] + place[1]) * image[2] +
                                      at % image[2]];
    }
    return true;
}

#define FLIP(symbol, text, flip, axis)                                                             \
    static bool symbol##_compose(ed_call *call)                                                    \
    {                                                                                              \
        return flip_compose(call, 1 + axis, flip);                                                 \
    }                                                                                              \
    static bool symbol##_reference(const ed_call *call)                                            \
    {                                                                                              \
        return plain_flip(call, axis);                                                             \
    }                                                                                              \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {{"x", ED_SET_ALL, 'T'}, SEED},                                                \
        .compose = symbol##_compose,                                                               \
        .reference = symbol##_reference,                                                           \
        .samples =                                                                                 \
            ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4, 2), ED_SAMPLE_IN(-9, 9, 2)}},         \
                       {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 2, 3, 1), ED_SAMPLE_IN(-9, 9, 2)}}),     \
    };                                                                                             \
    ed_tensor *ed_##symbol(ed_tensor *x, ed_tensor *seed)                                          \
    {                                                                                              \
        return CALL_OP(symbol, NULL, x, seed);                                                     \
    }

FLIP(stateless_random_flip_left_right, "images, some with their columns in reverse order",
     ed_flip_left_right, 1)
FLIP(stateless_random_flip_up_down, "images, some with their rows in reverse order",
     ed_flip_up_down, 0)

/* ---- stateless_random_crop ------------------------------------------------------------------- */

#define SIZE_ATTRS(FIELD, T)                                                                       \
    FIELD(T, INTS, size, ED_NO_LIST, ED_REQUIRED, "of the part, for each axis")
ED_OPTIONS(size_attrs, SIZE_ATTRS);
#define PART(...) ED_ATTRS(SIZE_ATTRS, size_attrs, .size = ED_SAMPLE_INTS(__VA_ARGS__))

/* Where the part begins, for each axis; false without memory. */
static bool draw_offsets(ed_tensor *seed, ed_ints shape, ed_ints size, int64_t *offset)
{
    ED_SCOPE;
    ed_tensor *drawn = ed_stateless_uniform(seed, ED_SHAPE(shape.count), .dtype = ED_INT32,
                                            .low = 0, .high = INT32_MAX);
    for (int64_t i = 0; drawn && i < shape.count; i++)
        offset[i] = (int64_t)dtype_load(ED_INT32, tensor_read(drawn)->data, i) %
                    (shape.values[i] - size.values[i] + 1);
    return drawn;
}

static bool stateless_random_crop_compose(ed_call *call)
{
    const ed_ints size = ((const size_attrs *)call->attrs)->size;
    ed_tensor *x = call->inputs[0];
    const ed_ints shape = ed_shape(x);
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK];
    bool fits = size.values && size.count == shape.count;
    for (int64_t i = 0; fits && i < size.count; i++)
        fits = size.values[i] >= 0 && size.values[i] <= shape.values[i];
    if (!fits)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "size must have a number from 0 to x's for each axis of x, %s, got %s",
                            text_of_tensor(x).s,
                            text_of_ints(size.values, size.values ? size.count : 0).s);
    if (!stateless_check(call, 1) || !draw_offsets(call->inputs[1], shape, size, begin))
        return false;
    for (int64_t i = 0; i < size.count; i++) end[i] = begin[i] + size.values[i];
    return ed_call_result(call, 0,
                          ed_slice(x, .begin = {begin, size.count}, .end = {end, size.count}));
}

static bool stateless_random_crop_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    int64_t offset[ED_MAX_RANK];
    if (!draw_offsets(call->operands[1], ed_shape(x), ed_shape(y), offset)) return false;
    for (int64_t i = 0; i < y->size; i++) {
        int64_t at = 0, left = i, step = 1;
        for (int a = y->rank - 1; a >= 0; a--) {
            at += (left % y->shape[a] + offset[a]) * step;
            left /= y->shape[a];
            step *= x->shape[a];
        }
        ((double *)y->data)[i] = ((const double *)x->data)[at];
    }
    return true;
}

ED_OP(stateless_random_crop) = {
    .name = "stateless_random_crop",
    .doc = "a part of x somewhere in it",
    .operands = {{"x", ED_SET_ALL, 'T'}, SEED},
    ED_OP_ATTRS(SIZE_ATTRS, size_attrs),
    .compose = stateless_random_crop_compose,
    .reference = stateless_random_crop_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5, 2), ED_SAMPLE_IN(-9, 9, 2)}, .attrs = PART(2, 3, 2)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 7), ED_SAMPLE_IN(-9, 9, 2)}, .attrs = PART(3)}),
};

ed_tensor *ed_stateless_random_crop(ed_tensor *x, ed_tensor *seed, ed_ints size)
{
    return CALL_OP(stateless_random_crop, ED_ATTRS(SIZE_ATTRS, size_attrs, .size = size), x, seed);
}

/* ---- Random adjustments ---------------------------------------------------------------------- */

#define MOST_ATTRS(FIELD, T)                                                                       \
    FIELD(T, FLOAT, max_delta, -1, ED_AT_LEAST(0), "the number is from -max_delta to max_delta")
#define TURN_ATTRS(FIELD, T)                                                                       \
    FIELD(T, FLOAT, max_delta, -1, ED_BETWEEN(0, 0.5), "the number is from -max_delta to max_delta")
#define RANGE_ATTRS(FIELD, T)                                                                      \
    FIELD(T, FLOAT, lower, 0, ED_AT_LEAST(0), "the smallest factor")                               \
    FIELD(T, FLOAT, upper, 1, ED_AT_LEAST(0), "above the largest factor")
ED_OPTIONS(most_attrs, MOST_ATTRS);
ED_OPTIONS(range_attrs, RANGE_ATTRS);

static bool draw_delta(const ed_call *call, double *delta)
{
    const double most = ((const most_attrs *)call->attrs)->max_delta;
    *delta = 0;
    if (!stateless_check(call, 1)) return false;
    return most == 0 || draw_number(call->operands[1], -most, most, delta);
}

static bool draw_factor(const ed_call *call, double *factor)
{
    const range_attrs *o = call->attrs;
    if (!(o->lower < o->upper))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "upper must be above lower, got %g and %g",
                            o->upper, o->lower);
    return stateless_check(call, 1) && draw_number(call->operands[1], o->lower, o->upper, factor);
}

extern const ed_op ed_op_adjust_brightness, ed_op_adjust_contrast, ed_op_adjust_hue,
    ed_op_adjust_saturation;

/* The reference of an adjustment, of images alone. */
static bool reference_of(const ed_call *call, const ed_op *op, const void *attrs)
{
    ed_call with = *call;
    with.attrs = attrs;
    return op->reference(&with);
}

/* which: of the adjustment, which takes a number that `draw` draws. */
#define RANDOM(which, text, LIST, T, draw, ATTRS_OF, ...)                                          \
    static bool stateless_random_##which##_compose(ed_call *call)                                  \
    {                                                                                              \
        double number;                                                                             \
        return draw(call, &number) &&                                                              \
               ed_call_result(call, 0, ed_adjust_##which(call->inputs[0], number));                \
    }                                                                                              \
    static bool stateless_random_##which##_reference(const ed_call *call)                          \
    {                                                                                              \
        double number;                                                                             \
        return draw(call, &number) && reference_of(call, &ed_op_adjust_##which, ATTRS_OF(number)); \
    }                                                                                              \
    ED_OP(stateless_random_##which) = {                                                            \
        .name = "stateless_random_" #which,                                                        \
        .doc = text,                                                                               \
        .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}, SEED},                                         \
        .flags = ED_OP_KEEPS_INTEGERS,                                                             \
        ED_OP_ATTRS(LIST, T),                                                                      \
        .compose = stateless_random_##which##_compose,                                             \
        .reference = stateless_random_##which##_reference,                                         \
        .samples =                                                                                 \
            ED_SAMPLES({.inputs = {ED_DISTINCT_IN(0.05, 0.95, 2, 2, 3), ED_SAMPLE_IN(-9, 9, 2)},   \
                        .attrs = ED_ATTRS(LIST, T, __VA_ARGS__)}),                                 \
    }

RANDOM(brightness, "x + delta, delta random", MOST_ATTRS, most_attrs, draw_delta, DELTA,
       .max_delta = 0.4);
RANDOM(contrast, "(x - mean) factor + mean, the factor random", RANGE_ATTRS, range_attrs,
       draw_factor, FACTOR, .lower = 0.3, .upper = 1.5);
RANDOM(hue, "colors with a random number added to their hue", TURN_ATTRS, most_attrs, draw_delta,
       DELTA, .max_delta = 0.4);
RANDOM(saturation, "colors with their saturation times a random factor", RANGE_ATTRS, range_attrs,
       draw_factor, FACTOR, .lower = 0.3, .upper = 1.5);

ed_tensor *ed_stateless_random_brightness(ed_tensor *x, ed_tensor *seed, double max_delta)
{
    return CALL_OP(stateless_random_brightness,
                   ED_ATTRS(MOST_ATTRS, most_attrs, .max_delta = max_delta), x, seed);
}

ed_tensor *ed_stateless_random_hue(ed_tensor *x, ed_tensor *seed, double max_delta)
{
    return CALL_OP(stateless_random_hue, ED_ATTRS(TURN_ATTRS, most_attrs, .max_delta = max_delta),
                   x, seed);
}

ed_tensor *ed_stateless_random_contrast(ed_tensor *x, ed_tensor *seed, double lower, double upper)
{
    return CALL_OP(stateless_random_contrast,
                   ED_ATTRS(RANGE_ATTRS, range_attrs, .lower = lower, .upper = upper), x, seed);
}

ed_tensor *ed_stateless_random_saturation(ed_tensor *x, ed_tensor *seed, double lower, double upper)
{
    return CALL_OP(stateless_random_saturation,
                   ED_ATTRS(RANGE_ATTRS, range_attrs, .lower = lower, .upper = upper), x, seed);
}
