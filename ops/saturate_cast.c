/* saturate_cast: x in another dtype, what is out of its range the nearest number there is: a
 * composition of clip and cast. */
#include "ops/execute.h"
#include "ops/ops.h"
#include <float.h>
#include <math.h>

#define SATURATE_ATTRS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(saturate_attrs, SATURATE_ATTRS);

/* The least and the largest number of each dtype; of 64 bits and bool as if there were none. */
static const struct {
    double least, most;
} ranges[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {-FLT_MAX, FLT_MAX},
    [ED_FLOAT16] = {-65504, 65504},
    [ED_BFLOAT16] = {-0x1.fep127, 0x1.fep127},
    [ED_INT8] = {INT8_MIN, INT8_MAX},
    [ED_INT16] = {INT16_MIN, INT16_MAX},
    [ED_INT32] = {INT32_MIN, INT32_MAX},
    [ED_UINT8] = {0, UINT8_MAX},
    [ED_UINT16] = {0, UINT16_MAX},
    [ED_UINT32] = {0, UINT32_MAX},
    [ED_UINT64] = {0, INFINITY},
};

static bool has_range(ed_dtype dtype)
{
    return ranges[dtype].most > 0;
}

/* Integers, as int64. */
static ed_tensor *clip_integers(ed_tensor *x, ed_dtype dtype)
{
    ed_tensor *y = ed_cast(x, ED_INT64);
    if (dtype == ED_UINT64) return ed_maximum(y, 0);
    return has_range(dtype) ? ed_clip(y, ranges[dtype].least, ranges[dtype].most) : y;
}

/* Casts of floats to integers stay within their range by themselves. */
static bool saturate_cast_compose(ed_call *call)
{
    const ed_dtype dtype = ((const saturate_attrs *)call->attrs)->dtype;
    ed_tensor *x = call->inputs[0];
    if (!ed_dtype_size(dtype))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "invalid dtype %d; x is %s", (int)dtype,
                            text_of_tensor(tensor_read(x)).s);
    const bool float_out = ed_dtype_is_float(dtype);
    if (ed_dtype_of(x) == dtype || dtype == ED_BOOL || dtype == ED_FLOAT64)
        return ed_call_result(call, 0, ed_cast(x, dtype));
    if (!ed_dtype_is_float(ed_dtype_of(x))) {
        if (!float_out || dtype == ED_FLOAT16) x = clip_integers(x, dtype);
    } else if (float_out && (dtype != ED_FLOAT32 || ed_dtype_of(x) == ED_FLOAT64))
        x = ed_clip(x, ranges[dtype].least, ranges[dtype].most);
    return ed_call_result(call, 0, ed_cast(x, dtype));
}

/* Samples of floats and small integers. */
static bool saturate_cast_reference(const ed_call *call)
{
    const ed_dtype dtype = ((const saturate_attrs *)call->attrs)->dtype;
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        double x = ((const double *)call->inputs[0]->data)[i];
        if (!ed_dtype_is_float(dtype)) x = isnan(x) ? 0 : trunc(x);
        if (has_range(dtype) && x < ranges[dtype].least) x = ranges[dtype].least;
        if (has_range(dtype) && x > ranges[dtype].most) x = ranges[dtype].most;
        ((double *)call->outputs[0]->data)[i] = dtype == ED_FLOAT32 ? (float)x : x;
    }
    return true;
}

#define SATURATED(dtype_) ED_ATTRS(SATURATE_ATTRS, saturate_attrs, .dtype = dtype_)

ED_OP(saturate_cast) = {
    .name = "saturate_cast",
    .doc = "y = x in another dtype, within its range",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    ED_OP_ATTRS(SATURATE_ATTRS, saturate_attrs),
    .compose = saturate_cast_compose,
    .reference = saturate_cast_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-3, 3, 3, 5)}, .attrs = SATURATED(ED_FLOAT64)},
                          {.inputs = {ED_SAMPLE_IN(-300, 300, 9)}, .attrs = SATURATED(ED_UINT8)},
                          {.inputs = {ED_SAMPLE_IN(-300, 300, 9)}, .attrs = SATURATED(ED_INT8)}),
};

ed_tensor *ed_saturate_cast(ed_tensor *x, ed_dtype dtype)
{
    return CALL_OP(saturate_cast, SATURATED(dtype), x);
}
