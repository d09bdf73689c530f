/*
 * Templates. What is wanted once for each dtype stands in a file named *.typed.h, which is included
 * once for each of them with TYPE set to its short name (f32, f64, i8 ... i64, u8 ... u64):
 *
 *     #define TYPE f32
 *     #include "ops/softmax.typed.h"
 *     #define TYPE f64
 *     #include "ops/softmax.typed.h"
 *
 * In the template TYPED(softmax_rows) is softmax_rows_f32, NUMBER is float. It undefines TYPE, and
 * whatever else it was given, in its last lines. So loops have lines of their own in debuggers,
 * profiles, coverage and messages of the compiler, and a search finds where a name is defined.
 */
#ifndef EDDY_TENSOR_TYPED_H
#define EDDY_TENSOR_TYPED_H

#include <math.h>
#include <stdint.h>

#define TYPED_PASTE2(name, type) name##_##type
#define TYPED_PASTE(name, type)  TYPED_PASTE2(name, type)
#define TYPED(name)              TYPED_PASTE(name, TYPE)

/* The type in C. */
#define NUMBER     TYPED(number)
#define number_f32 float
#define number_f64 double
#define number_i8  int8_t
#define number_i16 int16_t
#define number_i32 int32_t
#define number_i64 int64_t
#define number_u8  uint8_t
#define number_u16 uint16_t
#define number_u32 uint32_t
#define number_u64 uint64_t

/* Whether it is a float, for #if. */
#define FLOATING     TYPED(floating)
#define floating_f32 1
#define floating_f64 1

/* Of an integer: whether it is signed, for #if; the unsigned type of its size, in which arithmetic
 * wraps; the limits. */
#define SIGNED         TYPED(signed)
#define signed_i32     1
#define signed_i64     1
#define UNSIGNED       TYPED(unsigned)
#define unsigned_i32   uint32_t
#define unsigned_i64   uint64_t
#define unsigned_u8    uint8_t
#define NUMBER_MIN     TYPED(number_min)
#define number_min_i32 INT32_MIN
#define number_min_i64 INT64_MIN
#define number_min_u8  0
#define NUMBER_MAX     TYPED(number_max)
#define number_max_i32 INT32_MAX
#define number_max_i64 INT64_MAX
#define number_max_u8  UINT8_MAX
#define number_max_f32 __FLT_MAX__
#define number_max_f64 __DBL_MAX__

/* The C library's functions for it: TYPED(number_sqrt)(x). */
#define number_sqrt_f32 sqrtf
#define number_sqrt_f64 sqrt
#define number_pow_f32  powf
#define number_pow_f64  pow
#define number_exp_f32  expf
#define number_exp_f64  exp
#define number_log_f32  logf
#define number_log_f64  log
#define number_fma_f32  fmaf
#define number_fma_f64  fma
#define number_fmod_f32 fmodf
#define number_fmod_f64 fmod

#endif
