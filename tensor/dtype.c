#include "tensor/core.h"
#include <math.h>
#include <string.h>

static const char *const names[ED_DTYPE_COUNT] = {
    "none",    "float32",  "float64", "int32", "int64",  "uint8",  "bool",
    "float16", "bfloat16", "int8",    "int16", "uint16", "uint32", "uint64"};

static bool is_dtype(ed_dtype dtype)
{
    return dtype > ED_DTYPE_NONE && dtype < ED_DTYPE_COUNT;
}

const char *ed_dtype_name(ed_dtype dtype)
{
    return is_dtype(dtype) ? names[dtype] : names[0];
}

size_t ed_dtype_size(ed_dtype dtype)
{
    return is_dtype(dtype) ? dtype_size(dtype) : 0;
}

bool ed_dtype_is_float(ed_dtype dtype)
{
    return dtype == ED_FLOAT32 || dtype == ED_FLOAT64 || dtype == ED_FLOAT16 ||
           dtype == ED_BFLOAT16;
}

/* ---- 16-bit floats --------------------------------------------------------------------------- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float bfloat16_to_float(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

/* Round to nearest, ties to even; a NaN stays a NaN (the carry of its rounding must not reach the
 * exponent). */
uint16_t bfloat16_from_float(float value)
{
    uint32_t bits = bits_of(value);
    if (value != value) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    /* The exponent's bias differs by 112; multiplying moves it, and makes denormals normal on the
     * way. */
    return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
}

uint16_t half_from_float(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more round to inf */
    if (magnitude <
        0x38800000) /* below 2^-14: adding 0.5 puts a multiple of 2^-24 into the last bits */
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

/* ---- One element ----------------------------------------------------------------------------- */

double dtype_load(ed_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case ED_FLOAT32: return ((const float *)data)[i];
    case ED_FLOAT64: return ((const double *)data)[i];
    case ED_INT32: return ((const int32_t *)data)[i];
    case ED_INT64: return (double)((const int64_t *)data)[i];
    case ED_UINT8: return ((const uint8_t *)data)[i];
    case ED_BOOL: return ((const uint8_t *)data)[i] != 0;
    case ED_FLOAT16: return half_to_float(((const uint16_t *)data)[i]);
    case ED_BFLOAT16: return bfloat16_to_float(((const uint16_t *)data)[i]);
    case ED_INT8: return ((const int8_t *)data)[i];
    case ED_INT16: return ((const int16_t *)data)[i];
    case ED_UINT16: return ((const uint16_t *)data)[i];
    case ED_UINT32: return ((const uint32_t *)data)[i];
    case ED_UINT64: return (double)((const uint64_t *)data)[i];
    default: return NAN;
    }
}

void dtype_store(ed_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case ED_FLOAT32: ((float *)data)[i] = (float)value; break;
    case ED_FLOAT64: ((double *)data)[i] = value; break;
    case ED_INT32: ((int32_t *)data)[i] = (int32_t)value; break;
    case ED_INT64: ((int64_t *)data)[i] = (int64_t)value; break;
    case ED_UINT8: ((uint8_t *)data)[i] = (uint8_t)value; break;
    case ED_BOOL: ((uint8_t *)data)[i] = value != 0; break;
    case ED_FLOAT16: ((uint16_t *)data)[i] = half_from_float((float)value); break;
    case ED_BFLOAT16: ((uint16_t *)data)[i] = bfloat16_from_float((float)value); break;
    case ED_INT8: ((int8_t *)data)[i] = (int8_t)value; break;
    case ED_INT16: ((int16_t *)data)[i] = (int16_t)value; break;
    case ED_UINT16: ((uint16_t *)data)[i] = (uint16_t)value; break;
    case ED_UINT32: ((uint32_t *)data)[i] = (uint32_t)value; break;
    case ED_UINT64: ((uint64_t *)data)[i] = (uint64_t)value; break;
    default: break;
    }
}

double ed_dtype_load(ed_dtype dtype, const void *array, int64_t i)
{
    if (!array || !ed_dtype_size(dtype))
        return ed_fail(ED_INVALID_ARGUMENT, "dtype_load: %s",
                       array ? "dtype is none" : "array is NULL"),
               NAN;
    return dtype_load(dtype, array, i);
}

bool ed_dtype_store(ed_dtype dtype, void *array, int64_t i, double number)
{
    if (!array) return ed_fail(ED_INVALID_ARGUMENT, "dtype_store: array is NULL"), false;
    if (!ed_dtype_holds(dtype, number))
        return ed_fail(ED_INVALID_ARGUMENT, "dtype_store: %g cannot be represented as %s", number,
                       ed_dtype_name(dtype)),
               false;
    dtype_store(dtype, array, i, number);
    return true;
}

bool ed_dtype_holds(ed_dtype dtype, double number)
{
    return ed_dtype_size(dtype) && dtype_holds(dtype, number);
}

/* The bounds are exact; a NaN lies within none. */
bool dtype_holds(ed_dtype dtype, double value)
{
    static const struct {
        double least, beyond;
    } ranges[ED_DTYPE_COUNT] = {
        [ED_INT8] = {-0x1p7, 0x1p7},
        [ED_INT16] = {-0x1p15, 0x1p15},
        [ED_INT32] = {-0x1p31, 0x1p31},
        [ED_INT64] = {-0x1p63, 0x1p63},
        [ED_UINT8] = {0, 0x1p8},
        [ED_UINT16] = {0, 0x1p16},
        [ED_UINT32] = {0, 0x1p32},
        [ED_UINT64] = {0, 0x1p64},
        [ED_BOOL] = {0, 2},
    };
    if (ed_dtype_is_float(dtype)) return true;
    return value >= ranges[dtype].least && value < ranges[dtype].beyond && value == floor(value);
}
