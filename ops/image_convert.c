/*
 * convert_image_dtype: images of integers have values from 0 to the dtype's largest number, those
 * of floats from 0 to 1.
 */
#include "ops/images.h"
#include <math.h>

#define CONVERT_ATTRS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(convert_attrs, CONVERT_ATTRS);
#define CONVERT(...) ED_ATTRS(CONVERT_ATTRS, convert_attrs, __VA_ARGS__)

/* An integer dtype's largest number plus 1; 0 for others. */
static double dtype_range(ed_dtype dtype)
{
    static const int bits[ED_DTYPE_COUNT] = {
        [ED_UINT8] = 8,   [ED_INT8] = 7,   [ED_UINT16] = 16, [ED_INT16] = 15,
        [ED_UINT32] = 32, [ED_INT32] = 31, [ED_INT64] = 63};
    return bits[dtype] ? ldexp(1, bits[dtype]) : 0;
}

double images_largest(ed_dtype dtype)
{
    return dtype_range(dtype) ? dtype_range(dtype) - 1 : 1;
}

static bool is_unsigned(ed_dtype dtype)
{
    return dtype == ED_UINT8 || dtype == ED_UINT16 || dtype == ED_UINT32;
}

/* Integers as others, by the ratio of the ranges, a power of 2; negative ones as 0 where there are
 * none. */
static ed_tensor *integers_as(ed_tensor *x, ed_dtype dtype)
{
    const double in = dtype_range(ed_dtype_of(x)), out = dtype_range(dtype);
    ed_tensor *wide = ed_cast(x, ED_INT64);
    if (is_unsigned(dtype)) wide = ed_maximum(wide, 0);
    wide = in > out ? ed_floor_div(wide, in / out) : ed_mul(wide, out / in);
    return ed_cast(wide, dtype);
}

ed_tensor *images_as(ed_tensor *x, ed_dtype dtype)
{
    const ed_dtype from = ed_dtype_of(x);
    const bool is_float = ed_dtype_is_float(from), to_float = ed_dtype_is_float(dtype);
    if (!x || from == dtype) return x;
    if (is_float && to_float) return ed_cast(x, dtype);
    if (!is_float && !to_float) return integers_as(x, dtype);
    const bool wide = from == ED_FLOAT64 || dtype == ED_FLOAT64;
    ed_tensor *y = ed_cast(x, wide ? ED_FLOAT64 : ED_FLOAT32);
    y = is_float ? ed_mul(y, images_largest(dtype) + 0.5) : ed_mul(y, 1 / images_largest(from));
    return ed_cast(y, dtype);
}

ed_tensor *images_as_floats(ed_tensor *x)
{
    return images_as(x, ed_dtype_of(x) == ED_FLOAT64 ? ED_FLOAT64 : ED_FLOAT32);
}

ed_tensor *images_to_adjust(ed_tensor *x)
{
    const bool wide = ed_dtype_of(x) == ED_FLOAT64 || images_largest(ed_dtype_of(x)) > 255;
    return images_as(x, wide ? ED_FLOAT64 : ED_FLOAT32);
}

static bool convert_image_dtype_compose(ed_call *call)
{
    const ed_dtype dtype = ((const convert_attrs *)call->attrs)->dtype;
    if (!ed_dtype_is_float(dtype) && !(dtype >= 0 && dtype < ED_DTYPE_COUNT && dtype_range(dtype)))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dtype must be a float or an integer other than uint64, got %s",
                            ed_dtype_name(dtype));
    ed_tensor *x = call->inputs[0];
    return ed_call_result(call, 0, ed_dtype_of(x) == dtype ? ed_identity(x) : images_as(x, dtype));
}

/* The dtypes are those of the operand as it was given and of the result. */
double images_plain_as(double x, ed_dtype from, ed_dtype to)
{
    const bool is_float = ed_dtype_is_float(from), to_float = ed_dtype_is_float(to);
    if (from == to || (is_float && to_float)) return x;
    if (to_float) return x * (1 / images_largest(from));
    if (!is_float) {
        x = is_unsigned(to) && x < 0 ? 0 : x;
        return floor(x * dtype_range(to) / dtype_range(from));
    }
    const double scaled = trunc(x * (images_largest(to) + 0.5)),
                 least = is_unsigned(to) ? 0 : -dtype_range(to);
    return isnan(scaled) ? 0 : fmin(fmax(scaled, least), images_largest(to));
}

static bool convert_image_dtype_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const ed_dtype dtype = ((const convert_attrs *)call->attrs)->dtype;
    for (int64_t i = 0; i < x->size; i++)
        ((double *)call->outputs[0]->data)[i] =
            images_plain_as(((const double *)x->data)[i], ed_dtype_of(call->operands[0]), dtype);
    return true;
}

ED_OP(convert_image_dtype) = {
    .name = "convert_image_dtype",
    .doc = "images in another dtype, integers as shares of the largest one",
    .operands = {{"x", ED_SET_IMAGE, 'T'}},
    ED_OP_ATTRS(CONVERT_ATTRS, convert_attrs),
    .compose = convert_image_dtype_compose,
    .reference = convert_image_dtype_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 100, 3, 4)}, .attrs = CONVERT(.dtype = ED_FLOAT64)},
                   {.inputs = {ED_SAMPLE_IN(0, 1, 3, 4)}, .attrs = CONVERT(.dtype = ED_UINT8)},
                   {.inputs = {ED_SAMPLE_IN(-9, 9, 3, 4)}, .attrs = CONVERT(.dtype = ED_INT16)}),
};

ed_tensor *ed_convert_image_dtype(ed_tensor *x, ed_dtype dtype)
{
    return CALL_OP(convert_image_dtype, CONVERT(.dtype = dtype), x);
}
