/*
 * Conversion of dtypes; see ops/elementwise.h for how a family file is read.
 *
 * 32 and 64 bits, and bytes, have a loop to every dtype; the others become float32 or int32 first,
 * a strip at a time. On the way to a 16-bit float, what is wider is rounded to float32 "to odd"
 * (truncated, the last bit set if anything was lost), after which rounding to 8 or 11 bits gives
 * what rounding once gives.
 */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "tensor/copy.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

#define CAST_ATTRS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(cast_attrs, CAST_ATTRS);

/* ---- One element ----------------------------------------------------------------------------- */

/* Towards 0; the nearest integer for what is out of range, 0 for NaN. The bounds are exact in both
 * float types. */
#define SATURATED(name, type, least, beyond, most)                                                 \
    LOOP_HELPER type name##_from_f64(double x)                                                     \
    {                                                                                              \
        return x >= beyond ? most : x <= least ? (type)(least) : x == x ? (type)x : 0;             \
    }                                                                                              \
    LOOP_HELPER type name##_from_f32(float x)                                                      \
    {                                                                                              \
        return x >= beyond##f ? most : x <= least##f ? (type)(least) : x == x ? (type)x : 0;       \
    }
SATURATED(i8, int8_t, -0x1p7, 0x1p7, INT8_MAX)
SATURATED(i16, int16_t, -0x1p15, 0x1p15, INT16_MAX)
SATURATED(i32, int32_t, -0x1p31, 0x1p31, INT32_MAX)
SATURATED(i64, int64_t, -0x1p63, 0x1p63, INT64_MAX)
SATURATED(u8, uint8_t, 0.0, 0x1p8, UINT8_MAX)
SATURATED(u16, uint16_t, 0.0, 0x1p16, UINT16_MAX)
SATURATED(u32, uint32_t, 0.0, 0x1p32, UINT32_MAX)
SATURATED(u64, uint64_t, 0.0, 0x1p64, UINT64_MAX)

LOOP_HELPER float odd_from_f64(double x)
{
    float y = (float)x;
    uint32_t bits;
    if ((double)y == x || x != x) return y;
    memcpy(&bits, &y, sizeof bits);
    if (fabs((double)y) > fabs(x)) bits--;
    bits |= 1;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* 64 bits keep their upper 48, the last of which says whether there was more. */
LOOP_HELPER float odd_from_i64(int64_t x)
{
    const int64_t upper = x >> 16 | ((x & 0xffff) != 0);
    return odd_from_f64(x >= -(INT64_C(1) << 52) && x <= INT64_C(1) << 52 ? (double)x
                                                                          : (double)upper * 0x1p16);
}

LOOP_HELPER float odd_from_u64(uint64_t x)
{
    const uint64_t upper = x >> 16 | ((x & 0xffff) != 0);
    return odd_from_f64(x <= UINT64_C(1) << 52 ? (double)x : (double)upper * 0x1p16);
}

/* What fits into a float32 or a double. */
#define odd_from_f32(x) (x)
#define odd_from_u8(x)  (x)
#define odd_from_i32(x) odd_from_f64(x)
#define odd_from_u32(x) odd_from_f64(x)

/* ---- Loops ----------------------------------------------------------------------------------- */

#ifdef ISA

enum { STRIP = 256 };

static void halves_from_floats(int64_t n, const float *from, uint16_t *to)
{
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
    for (; i + 4 <= n; i += 4)
        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
#endif
    for (; i < n; i++) to[i] = half_from_float(from[i]);
}

static void floats_from_halves(int64_t n, const void *narrow, void *wide)
{
    const uint16_t *from = narrow;
    float *to = wide;
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#elif defined(__aarch64__)
    for (; i + 4 <= n; i += 4)
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
#endif
    for (; i < n; i++) to[i] = half_to_float(from[i]);
}

/* The compiler vectorizes these: they are written out here, where it sees them. */
static void bfloats_from_floats(int64_t n, const float *from, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
                       quiet = bits >> 16 | 0x40;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
    }
}

static void floats_from_bfloats(int64_t n, const void *narrow, void *wide)
{
    const uint16_t *from = narrow;
    float *to = wide;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

#define TYPE f32
#include "ops/cast.typed.h"
#define TYPE f64
#include "ops/cast.typed.h"
#define TYPE i32
#include "ops/cast.typed.h"
#define TYPE i64
#include "ops/cast.typed.h"
#define TYPE u8
#include "ops/cast.typed.h"
#define TYPE u32
#include "ops/cast.typed.h"
#define TYPE u64
#include "ops/cast.typed.h"

/* From a narrow type: widened to float32 or int32, a strip at a time, and on from there. */
VECTOR_INLINE void cast_widened(LOOP_ARGUMENTS, size_t narrow,
                                void (*widen)(int64_t n, const void *narrow, void *wide),
                                elementwise_loop cast_wide)
{
    union {
        float floats[STRIP];
        int32_t integers[STRIP];
    } strip;
    const void *from = &strip;
    const size_t size = dtype_size(((const cast_attrs *)attrs)->dtype);
    for (int64_t first = 0; first < n; first += STRIP) {
        const int64_t count = n - first < STRIP ? n - first : STRIP;
        widen(count, (const char *)in[0] + (size_t)first * narrow, &strip);
        cast_wide(count, &from, steps, (char *)out + (size_t)first * size, attrs, stream);
    }
}

static void cast_float16(LOOP_ARGUMENTS)
{
    cast_widened(n, in, steps, out, attrs, stream, sizeof(uint16_t), floats_from_halves, cast_f32);
}

static void cast_bfloat16(LOOP_ARGUMENTS)
{
    cast_widened(n, in, steps, out, attrs, stream, sizeof(uint16_t), floats_from_bfloats, cast_f32);
}

#define TYPE i8
#include "ops/cast_narrow.typed.h"
#define TYPE i16
#include "ops/cast_narrow.typed.h"
#define TYPE u16
#include "ops/cast_narrow.typed.h"
#endif

LOOPS(cast, [ED_FLOAT32] = cast_f32, [ED_FLOAT64] = cast_f64, [ED_INT32] = cast_i32,
      [ED_INT64] = cast_i64, [ED_UINT8] = cast_u8, [ED_BOOL] = cast_u8, [ED_FLOAT16] = cast_float16,
      [ED_BFLOAT16] = cast_bfloat16, [ED_INT8] = cast_i8, [ED_INT16] = cast_i16,
      [ED_UINT16] = cast_u16, [ED_UINT32] = cast_u32, [ED_UINT64] = cast_u64);

/* ---- The op ---------------------------------------------------------------------------------- */

#ifndef ISA

static double cast_plain(double x, ed_dtype dtype)
{
    switch (dtype) {
    case ED_FLOAT32: return (float)x;
    case ED_INT32: return i32_from_f64(x);
    case ED_INT64: return (double)i64_from_f64(x);
    case ED_UINT8: return u8_from_f64(x);
    case ED_BOOL: return x != 0;
    case ED_FLOAT16: return half_to_float(half_from_float(odd_from_f64(x)));
    case ED_BFLOAT16: return bfloat16_to_float(bfloat16_from_float(odd_from_f64(x)));
    case ED_INT8: return i8_from_f64(x);
    case ED_INT16: return i16_from_f64(x);
    case ED_UINT16: return u16_from_f64(x);
    case ED_UINT32: return u32_from_f64(x);
    case ED_UINT64: return (double)u64_from_f64(x);
    default: return x;
    }
}
PLAIN(cast, cast_plain(x[0], ((const cast_attrs *)attrs)->dtype));

static bool cast_infer(ed_call *call)
{
    ed_dtype dtype = ((const cast_attrs *)call->attrs)->dtype;
    ed_tensor *x = call->inputs[0];
    if (!ed_dtype_size(dtype))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "invalid dtype %d; x is %s", (int)dtype,
                            text_of_tensor(x).s);
    if (dtype == x->dtype) return ed_call_view(call, 0, 0, x->rank, x->shape, x->strides, 0);
    return elementwise_infer_as(call, dtype);
}

/* The tape asks for it between floats only. */
static bool cast_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_cast(g->dy[0], g->dtypes[0]);
    return true;
}

#define TO(dtype_) ED_ATTRS(CAST_ATTRS, cast_attrs, .dtype = dtype_)

ELEMENTWISE_AS(cast, cast_infer, elementwise_kernel, "y = x in another dtype", ONE(ED_SET_ALL),
               ED_OP_ATTRS(CAST_ATTRS, cast_attrs), .gradient = cast_gradient,
               .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-3, 3, 3, 5)},
                                      .attrs = TO(ED_FLOAT64)},
                                     {.inputs = {ED_SAMPLE_IN(-3, 3, 7)}, .attrs = TO(ED_INT32)},
                                     {.inputs = {ED_SAMPLE_IN(-3, 3)}, .attrs = TO(ED_BFLOAT16)},
                                     {.inputs = {ED_SAMPLE_IN(-3, 3, 4)}, .attrs = TO(ED_INT16)},
                                     {.inputs = {ED_SAMPLE_IN(0, 9, 5)}, .attrs = TO(ED_UINT64)}));

ed_tensor *ed_cast(ed_tensor *x, ed_dtype dtype)
{
    return CALL_OP(cast, TO(dtype), x);
}
#endif
