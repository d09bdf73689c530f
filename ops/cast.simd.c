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
#include <math.h>
#include <string.h>

typedef struct cast_attrs {
    ed_dtype dtype;
} cast_attrs;

/* ---- One element ----------------------------------------------------------------------------- */

/* Towards 0; the nearest integer for what is out of range, 0 for NaN. The bounds are exact in both
 * float types. */
#define FLOAT_TO_WHOLE(type, least, beyond, most)                                                  \
    LOOP_HELPER type type##_from_double(double x)                                                  \
    {                                                                                              \
        return x >= beyond ? most : x <= least ? (type)(least) : x == x ? (type)x : 0;             \
    }                                                                                              \
    LOOP_HELPER type type##_from_float(float x)                                                    \
    {                                                                                              \
        return x >= beyond##f ? most : x <= least##f ? (type)(least) : x == x ? (type)x : 0;       \
    }
FLOAT_TO_WHOLE(int8_t, -0x1p7, 0x1p7, INT8_MAX)
FLOAT_TO_WHOLE(int16_t, -0x1p15, 0x1p15, INT16_MAX)
FLOAT_TO_WHOLE(int32_t, -0x1p31, 0x1p31, INT32_MAX)
FLOAT_TO_WHOLE(int64_t, -0x1p63, 0x1p63, INT64_MAX)
FLOAT_TO_WHOLE(uint8_t, 0.0, 0x1p8, UINT8_MAX)
FLOAT_TO_WHOLE(uint16_t, 0.0, 0x1p16, UINT16_MAX)
FLOAT_TO_WHOLE(uint32_t, 0.0, 0x1p32, UINT32_MAX)
FLOAT_TO_WHOLE(uint64_t, 0.0, 0x1p64, UINT64_MAX)

LOOP_HELPER float odd_from_double(double x)
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
LOOP_HELPER float odd_from_int64(int64_t x)
{
    const int64_t upper = x >> 16 | ((x & 0xffff) != 0);
    return odd_from_double(
        x >= -(INT64_C(1) << 52) && x <= INT64_C(1) << 52 ? (double)x : (double)upper * 0x1p16);
}

LOOP_HELPER float odd_from_uint64(uint64_t x)
{
    const uint64_t upper = x >> 16 | ((x & 0xffff) != 0);
    return odd_from_double(x <= UINT64_C(1) << 52 ? (double)x : (double)upper * 0x1p16);
}

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
#endif
    for (; i < n; i++) to[i] = half_from_float(from[i]);
}

static void floats_from_halves(int64_t n, const uint16_t *from, float *to)
{
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
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

static void floats_from_bfloats(int64_t n, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

#define CAST_ROW(type, expression)                                                                 \
    {                                                                                              \
        type *restrict to = out;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const __typeof__(*from) x = from[i];                                                   \
            to[i] = (type)(expression);                                                            \
        }                                                                                          \
        return;                                                                                    \
    }
/* Through a strip of float32 to a 16-bit float. */
#define CAST_STRIPS(convert, expression)                                                           \
    for (int64_t begin = 0; begin < n; begin += STRIP) {                                           \
        float strip[STRIP];                                                                        \
        const int64_t count = n - begin < STRIP ? n - begin : STRIP;                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const __typeof__(*from) x = from[begin + i];                                           \
            strip[i] = expression;                                                                 \
        }                                                                                          \
        convert(count, strip, (uint16_t *)out + begin);                                            \
    }                                                                                              \
    return

/* To whole numbers: of a float the nearest there is; of a whole number its low bits, for which
 * signs make no difference. */
#define TO_NEAREST(type)                                                                           \
    switch (dtype) {                                                                               \
    case ED_INT8: CAST_ROW(int8_t, int8_t_from_##type(x))                                          \
    case ED_INT16: CAST_ROW(int16_t, int16_t_from_##type(x))                                       \
    case ED_INT32: CAST_ROW(int32_t, int32_t_from_##type(x))                                       \
    case ED_INT64: CAST_ROW(int64_t, int64_t_from_##type(x))                                       \
    case ED_UINT8: CAST_ROW(uint8_t, uint8_t_from_##type(x))                                       \
    case ED_UINT16: CAST_ROW(uint16_t, uint16_t_from_##type(x))                                    \
    case ED_UINT32: CAST_ROW(uint32_t, uint32_t_from_##type(x))                                    \
    case ED_UINT64: CAST_ROW(uint64_t, uint64_t_from_##type(x))                                    \
    default: break;                                                                                \
    }
#define TO_LOW_BITS                                                                                \
    switch (dtype) {                                                                               \
    case ED_INT8:                                                                                  \
    case ED_UINT8: CAST_ROW(uint8_t, x)                                                            \
    case ED_INT16:                                                                                 \
    case ED_UINT16: CAST_ROW(uint16_t, x)                                                          \
    case ED_INT32:                                                                                 \
    case ED_UINT32: CAST_ROW(uint32_t, x)                                                          \
    case ED_INT64:                                                                                 \
    case ED_UINT64: CAST_ROW(uint64_t, x)                                                          \
    default: break;                                                                                \
    }

/* The loops from one type: how x becomes a whole number, and a float32 that rounds as x would. */
#define CAST_LOOP(name, type, to_whole, to_odd)                                                    \
    static void cast_##name(LOOP_ARGUMENTS)                                                        \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        const type *restrict from = in[0];                                                         \
        const ed_dtype dtype = ((const cast_attrs *)attrs)->dtype;                                 \
        to_whole;                                                                                  \
        switch (dtype) {                                                                           \
        case ED_FLOAT32: CAST_ROW(float, x)                                                        \
        case ED_FLOAT64: CAST_ROW(double, x)                                                       \
        case ED_BOOL: CAST_ROW(uint8_t, x != 0)                                                    \
        case ED_FLOAT16: CAST_STRIPS(halves_from_floats, to_odd);                                  \
        case ED_BFLOAT16: CAST_STRIPS(bfloats_from_floats, to_odd);                                \
        default: return;                                                                           \
        }                                                                                          \
    }
CAST_LOOP(float, float, TO_NEAREST(float), x)
CAST_LOOP(double, double, TO_NEAREST(double), odd_from_double(x))
CAST_LOOP(int32, int32_t, TO_LOW_BITS, odd_from_double(x))
CAST_LOOP(int64, int64_t, TO_LOW_BITS, odd_from_int64(x))
CAST_LOOP(uint8, uint8_t, TO_LOW_BITS, x)
CAST_LOOP(uint32, uint32_t, TO_LOW_BITS, odd_from_double(x))
CAST_LOOP(uint64, uint64_t, TO_LOW_BITS, odd_from_uint64(x))

/* From a narrow type: widened, a strip at a time, and on from there. */
#define CAST_WIDENED(type, wide, widen, cast_wide)                                                 \
    for (int64_t begin = 0; begin < n; begin += STRIP) {                                           \
        wide strip[STRIP];                                                                         \
        const void *from = strip;                                                                  \
        const int64_t count = n - begin < STRIP ? n - begin : STRIP;                               \
        widen(count, (const type *)in[0] + begin, strip);                                          \
        cast_wide(count, &from, steps, (char *)out + begin * (int64_t)size, attrs);                \
    }
#define CAST_LOOP_HALF(name, widen)                                                                \
    static void cast_##name(LOOP_ARGUMENTS)                                                        \
    {                                                                                              \
        const size_t size = dtype_size(((const cast_attrs *)attrs)->dtype);                        \
        CAST_WIDENED(uint16_t, float, widen, cast_float)                                           \
    }
CAST_LOOP_HALF(float16, floats_from_halves)
CAST_LOOP_HALF(bfloat16, floats_from_bfloats)

/* Whole numbers keep their low bits, which floats would not. */
#define WIDEN(name, type, wide)                                                                    \
    LOOP_HELPER void wide##_from_##name(int64_t n, const type *restrict from, wide *restrict to)   \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) to[i] = from[i];                                           \
    }
#define CAST_LOOP_WHOLE(name, type)                                                                \
    WIDEN(name, type, float)                                                                       \
    WIDEN(name, type, int32_t)                                                                     \
    static void cast_##name(LOOP_ARGUMENTS)                                                        \
    {                                                                                              \
        const ed_dtype dtype = ((const cast_attrs *)attrs)->dtype;                                 \
        const size_t size = dtype_size(dtype);                                                     \
        if (ed_dtype_is_float(dtype))                                                              \
            CAST_WIDENED(type, float, float_from_##name, cast_float)                               \
        else                                                                                       \
            CAST_WIDENED(type, int32_t, int32_t_from_##name, cast_int32)                           \
    }
CAST_LOOP_WHOLE(int8, int8_t)
CAST_LOOP_WHOLE(int16, int16_t)
CAST_LOOP_WHOLE(uint16, uint16_t)
#endif

LOOPS(cast, [ED_FLOAT32] = cast_float, [ED_FLOAT64] = cast_double, [ED_INT32] = cast_int32,
      [ED_INT64] = cast_int64, [ED_UINT8] = cast_uint8, [ED_BOOL] = cast_uint8,
      [ED_FLOAT16] = cast_float16, [ED_BFLOAT16] = cast_bfloat16, [ED_INT8] = cast_int8,
      [ED_INT16] = cast_int16, [ED_UINT16] = cast_uint16, [ED_UINT32] = cast_uint32,
      [ED_UINT64] = cast_uint64);

/* ---- The op ---------------------------------------------------------------------------------- */

#ifndef ISA

static double cast_plain(double x, ed_dtype dtype)
{
    switch (dtype) {
    case ED_FLOAT32: return (float)x;
    case ED_INT32: return int32_t_from_double(x);
    case ED_INT64: return (double)int64_t_from_double(x);
    case ED_UINT8: return uint8_t_from_double(x);
    case ED_BOOL: return x != 0;
    case ED_FLOAT16: return half_to_float(half_from_float(odd_from_double(x)));
    case ED_BFLOAT16: return bfloat16_to_float(bfloat16_from_float(odd_from_double(x)));
    case ED_INT8: return int8_t_from_double(x);
    case ED_INT16: return int16_t_from_double(x);
    case ED_UINT16: return uint16_t_from_double(x);
    case ED_UINT32: return uint32_t_from_double(x);
    case ED_UINT64: return (double)uint64_t_from_double(x);
    default: return x;
    }
}
PLAIN(cast, cast_plain(x[0], ((const cast_attrs *)attrs)->dtype));

static bool cast_infer(ed_call *call)
{
    ed_dtype dtype = ((const cast_attrs *)call->attrs)->dtype;
    ed_tensor *x = call->inputs[0];
    if (!ed_dtype_size(dtype))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%d is no dtype to convert %s to",
                            (int)dtype, text_of_tensor(x).s);
    if (dtype == x->dtype) return ed_call_view(call, 0, 0, x->rank, x->shape, x->strides, 0);
    return elementwise_infer_as(call, dtype);
}

/* The tape asks for it between floats only. */
static bool cast_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_cast(g->dy[0], g->dtypes[0]);
    return true;
}

static const ed_attr cast_schema[] = {
    ATTR(cast_attrs, dtype, ED_ATTR_DTYPE, "the dtype of the result"), {0}};

ELEMENTWISE_AS(cast, cast_infer, elementwise_kernel, "y = x in another dtype", ONE(ED_SET_ALL),
               .attrs = cast_schema, .attrs_size = sizeof(cast_attrs),
               .defaults = &(const cast_attrs){ED_FLOAT32}, .gradient = cast_gradient,
               .samples = ED_SAMPLES(
                   {.inputs = {ED_SAMPLE_IN(-3, 3, 3, 5)},
                    .attrs = &(const cast_attrs){ED_FLOAT64}},
                   {.inputs = {ED_SAMPLE_IN(-3, 3, 7)}, .attrs = &(const cast_attrs){ED_INT32}},
                   {.inputs = {ED_SAMPLE_IN(-3, 3)}, .attrs = &(const cast_attrs){ED_BFLOAT16}},
                   {.inputs = {ED_SAMPLE_IN(-3, 3, 4)}, .attrs = &(const cast_attrs){ED_INT16}},
                   {.inputs = {ED_SAMPLE_IN(0, 9, 5)}, .attrs = &(const cast_attrs){ED_UINT64}}));

ed_tensor *ed_cast(ed_tensor *x, ed_dtype dtype)
{
    return CALL_OP(cast, &(cast_attrs){dtype}, x);
}
#endif
