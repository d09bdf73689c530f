/* Operations on the bits of integers; see ops/elementwise.h for how a family file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"

#define INTEGERS (ED_SET_INDEX | 1 << ED_UINT8 | (ED_SET_STORAGE & ~ED_SET_HALF))
#define NO_SLOPE .no_gradient = "bits don't change gradually"

#ifdef ISA
#define TYPE   u16
#define RESULT u16
#include "ops/loops.typed.h"
#define TYPE   i8
#define RESULT i8
#include "ops/loops.typed.h"
#define TYPE   i16
#define RESULT i16
#include "ops/loops.typed.h"
#define TYPE   u32
#define RESULT u8
#include "ops/loops.typed.h"
#define TYPE   u64
#define RESULT u8
#include "ops/loops.typed.h"
#endif

/* One loop for each size, where the sign is a bit like others. */
#define LOOPS_SIZES(name)                                                                          \
    LOOPS(name, [ED_INT8] = name##_u8, [ED_UINT8] = name##_u8, [ED_INT16] = name##_u16,            \
          [ED_UINT16] = name##_u16, [ED_INT32] = name##_u32, [ED_UINT32] = name##_u32,             \
          [ED_INT64] = name##_u64, [ED_UINT64] = name##_u64)
#define LOOPS2_BITS(name, expression)                                                              \
    LOOP2(name, u8, u8, expression)                                                                \
    LOOP2(name, u16, u16, expression)                                                              \
    LOOP2(name, u32, u32, expression)                                                              \
    LOOP2(name, u64, u64, expression)                                                              \
    LOOPS_SIZES(name)
#define LOOPS2_SHIFT(name, expression)                                                             \
    LOOP2(name, i8, i8, expression)                                                                \
    LOOP2(name, i16, i16, expression)                                                              \
    LOOP2(name, i32, i32, expression)                                                              \
    LOOP2(name, i64, i64, expression)                                                              \
    LOOP2(name, u8, u8, expression)                                                                \
    LOOP2(name, u16, u16, expression)                                                              \
    LOOP2(name, u32, u32, expression)                                                              \
    LOOP2(name, u64, u64, expression)                                                              \
    LOOPS(name, [ED_INT8] = name##_i8, [ED_INT16] = name##_i16, [ED_INT32] = name##_i32,           \
          [ED_INT64] = name##_i64, [ED_UINT8] = name##_u8, [ED_UINT16] = name##_u16,               \
          [ED_UINT32] = name##_u32, [ED_UINT64] = name##_u64)

#define SAMPLES2_BITS SAMPLES2_IN(-9, 100, -9, 100)

/* ---- Logic ----------------------------------------------------------------------------------- */

LOOPS2_BITS(bitwise_and, a &b);
PLAIN(bitwise_and, (double)((int64_t)x[0] & (int64_t)x[1]));
ELEMENTWISE(bitwise_and, "y = the bits that a and b have", TWO(INTEGERS), NO_SLOPE,
            .samples = SAMPLES2_BITS);
FUNCTION2(bitwise_and);

LOOPS2_BITS(bitwise_or, a | b);
PLAIN(bitwise_or, (double)((int64_t)x[0] | (int64_t)x[1]));
ELEMENTWISE(bitwise_or, "y = the bits that a or b has", TWO(INTEGERS), NO_SLOPE,
            .samples = SAMPLES2_BITS);
FUNCTION2(bitwise_or);

LOOPS2_BITS(bitwise_xor, a ^ b);
PLAIN(bitwise_xor, (double)((int64_t)x[0] ^ (int64_t)x[1]));
ELEMENTWISE(bitwise_xor, "y = the bits that either a or b has", TWO(INTEGERS), NO_SLOPE,
            .samples = SAMPLES2_BITS);
FUNCTION2(bitwise_xor);

LOOP1(invert, u8, u8, ~x)
LOOP1(invert, u16, u16, ~x)
LOOP1(invert, u32, u32, ~x)
LOOP1(invert, u64, u64, ~x)
LOOPS_SIZES(invert);
PLAIN(invert, -x[0] - 1);
ELEMENTWISE(invert, "y = the bits that x has not", ONE(INTEGERS), NO_SLOPE,
            .samples = SAMPLES1(-9, 100));
FUNCTION1(invert);

/* ---- Shifts ---------------------------------------------------------------------------------- */

/* How far, held within 0 and the last bit. */
#define DISTANCE(b)                                                                                \
    ((b) > 0 ? (uint64_t)(b) < 8 * sizeof(b) ? (int)(b) : (int)(8 * sizeof(b)) - 1 : 0)

LOOPS2_SHIFT(left_shift, (uint64_t)a << DISTANCE(b));
PLAIN(left_shift, x[0] * (double)((int64_t)1 << (int)x[1]));
ELEMENTWISE(left_shift, "y = a 2^b, without the bits that leave", TWO(INTEGERS), NO_SLOPE,
            .samples = SAMPLES2_IN(-9, 100, 0, 7));
FUNCTION2(left_shift);

LOOPS2_SHIFT(right_shift, a >> DISTANCE(b));
PLAIN(right_shift, (double)((int64_t)x[0] >> (int)x[1]));
ELEMENTWISE(right_shift, "y = floor(a / 2^b)", TWO(INTEGERS), NO_SLOPE,
            .samples = SAMPLES2_IN(-9, 100, 0, 7));
FUNCTION2(right_shift);

/* ---- Counting -------------------------------------------------------------------------------- */

#ifndef ISA
static bool population_count_infer(ed_call *call)
{
    return elementwise_infer_as(call, ED_UINT8);
}
#endif

LOOP1(population_count, u8, u8, __builtin_popcount(x))
LOOP1(population_count, u16, u8, __builtin_popcount(x))
LOOP1(population_count, u32, u8, __builtin_popcount(x))
LOOP1(population_count, u64, u8, __builtin_popcountll(x))
LOOPS_SIZES(population_count);
PLAIN(population_count, (double)__builtin_popcountll((unsigned long long)x[0]));
ELEMENTWISE_AS(population_count, population_count_infer, elementwise_kernel,
               "y = how many bits of x are set, uint8", ONE(INTEGERS), NO_SLOPE,
               .samples = SAMPLES1(0, 100));
FUNCTION1(population_count);
