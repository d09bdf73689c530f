/* Comparisons, logic on bool, and the choice by a condition; see ops/elementwise.h for how a family
 * file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/shape.h"
#include <math.h>
#include <string.h>

#define NO_SLOPE "its result is bool"

#define COMPARE_LOOPS(name, expression)                                                            \
    LOOP2(name, f32, u8, expression)                                                               \
    LOOP2(name, f64, u8, expression)                                                               \
    LOOP2(name, i32, u8, expression)                                                               \
    LOOP2(name, i64, u8, expression)                                                               \
    LOOP2(name, u8, u8, expression)
#define COMPARED(name) LOOPS_NUMBER(name), [ED_BOOL] = name##_u8
#define LOOPS2_COMPARE(name, expression)                                                           \
    COMPARE_LOOPS(name, expression)                                                                \
    LOOPS(name, COMPARED(name))
/* What another comparison says of b and a. */
#define LOOPS2_TURNED(name, other)                                                                 \
    LOOP2_TURNED(name, f32, other)                                                                 \
    LOOP2_TURNED(name, f64, other)                                                                 \
    LOOP2_TURNED(name, i32, other)                                                                 \
    LOOP2_TURNED(name, i64, other)                                                                 \
    LOOP2_TURNED(name, u8, other)                                                                  \
    LOOPS(name, COMPARED(name))
/* Whether two integers are equal does not depend on their sign: one loop for each size. */
#define LOOPS2_EQUALITY(name, expression)                                                          \
    COMPARE_LOOPS(name, expression)                                                                \
    LOOP2(name, u16, u8, expression)                                                               \
    LOOPS(name, COMPARED(name), [ED_INT8] = name##_u8, [ED_INT16] = name##_u16,                    \
          [ED_UINT16] = name##_u16, [ED_UINT32] = name##_i32, [ED_UINT64] = name##_i64)
#define COMPARISON(name, text, ...)                                                                \
    ELEMENTWISE_AS(name, elementwise_infer_bool, elementwise_kernel, text, __VA_ARGS__,            \
                   .no_gradient = NO_SLOPE)
/* Of the second sample all elements are equal. */
#define SAMPLES2_SOME_EQUAL                                                                        \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},                 \
               {.inputs = {ED_SAMPLE_IN(0, 0, 2, 1, 3), ED_SAMPLE_IN(0, 0, 4, 1)}},                \
               {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2, 5)}})

/* ---- Comparisons ----------------------------------------------------------------------------- */

LOOPS2_EQUALITY(equal, a == b);
PLAIN(equal, x[0] == x[1]);
COMPARISON(equal, "y = a equals b", TWO(ED_SET_ALL & ~ED_SET_HALF), .samples = SAMPLES2_SOME_EQUAL);
FUNCTION2(equal);

LOOPS2_EQUALITY(not_equal, a != b);
PLAIN(not_equal, x[0] != x[1]);
COMPARISON(not_equal, "y = a differs from b", TWO(ED_SET_ALL & ~ED_SET_HALF),
           .samples = SAMPLES2_SOME_EQUAL);
FUNCTION2(not_equal);

LOOPS2_COMPARE(less, a < b);
PLAIN(less, x[0] < x[1]);
COMPARISON(less, "y = a < b", TWO(ED_SET_NUMBER), .samples = SAMPLES2_SOME_EQUAL);
FUNCTION2(less);

LOOPS2_COMPARE(less_equal, a <= b);
PLAIN(less_equal, x[0] <= x[1]);
COMPARISON(less_equal, "y = a <= b", TWO(ED_SET_NUMBER), .samples = SAMPLES2_SOME_EQUAL);
FUNCTION2(less_equal);

LOOPS2_TURNED(greater, less);
PLAIN(greater, x[0] > x[1]);
COMPARISON(greater, "y = a > b", TWO(ED_SET_NUMBER), .samples = SAMPLES2_SOME_EQUAL);
FUNCTION2(greater);

LOOPS2_TURNED(greater_equal, less_equal);
PLAIN(greater_equal, x[0] >= x[1]);
COMPARISON(greater_equal, "y = a >= b", TWO(ED_SET_NUMBER), .samples = SAMPLES2_SOME_EQUAL);
FUNCTION2(greater_equal);

/* ---- Logic ----------------------------------------------------------------------------------- */

#define LOOPS2_LOGIC(name, expression)                                                             \
    LOOP2(name, u8, u8, expression) LOOPS(name, [ED_BOOL] = name##_u8)
#define SAMPLES2_BOOL                                                                              \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(0, 1, 3, 4)}},                   \
               {.inputs = {ED_SAMPLE_IN(0, 1, 2, 1, 3), ED_SAMPLE_IN(0, 1, 4, 1)}})

LOOPS2_LOGIC(logical_and, a &b);
PLAIN(logical_and, x[0] && x[1]);
COMPARISON(logical_and, "y = a and b", TWO(ED_SET_BOOL), .samples = SAMPLES2_BOOL);
FUNCTION2(logical_and);

LOOPS2_LOGIC(logical_or, a | b);
PLAIN(logical_or, x[0] || x[1]);
COMPARISON(logical_or, "y = a or b", TWO(ED_SET_BOOL), .samples = SAMPLES2_BOOL);
FUNCTION2(logical_or);

LOOPS2_LOGIC(logical_xor, a ^ b);
PLAIN(logical_xor, !x[0] != !x[1]);
COMPARISON(logical_xor, "y = either a or b", TWO(ED_SET_BOOL), .samples = SAMPLES2_BOOL);
FUNCTION2(logical_xor);

LOOP1(logical_not, u8, u8, x ^ 1)
LOOPS(logical_not, [ED_BOOL] = logical_not_u8);
PLAIN(logical_not, !x[0]);
COMPARISON(logical_not, "y = not x", ONE(ED_SET_BOOL), .samples = SAMPLES1(0, 1));
FUNCTION1(logical_not);

/* ---- Kinds of floats ------------------------------------------------------------------------- */

#define LOOPS1_KIND(name, expression)                                                              \
    LOOP1(name, f32, u8, expression)                                                               \
    LOOP1(name, f64, u8, expression)                                                               \
    LOOPS(name, LOOPS_FLOAT(name))

LOOPS1_KIND(is_nan, x != x);
PLAIN(is_nan, x[0] != x[0]);
COMPARISON(is_nan, "y = x is NaN", ONE(ED_SET_FLOAT), .samples = SAMPLES1(-2, 2));
FUNCTION1(is_nan);

LOOPS1_KIND(is_inf, (x == (__typeof__(x))INFINITY) | (x == (__typeof__(x))-INFINITY));
PLAIN(is_inf, isinf(x[0]) != 0);
COMPARISON(is_inf, "y = x is inf or -inf", ONE(ED_SET_FLOAT), .samples = SAMPLES1(-2, 2));
FUNCTION1(is_inf);

LOOPS1_KIND(is_finite, x - x == 0);
PLAIN(is_finite, isfinite(x[0]) != 0);
COMPARISON(is_finite, "y = x is neither inf, -inf nor NaN", ONE(ED_SET_FLOAT),
           .samples = SAMPLES1(-2, 2));
FUNCTION1(is_finite);

/* ---- Choice ---------------------------------------------------------------------------------- */

/* where: y = condition ? a : b, da = condition ? dy : 0, db = condition ? 0 : dy; elements move as
 * they are, whatever they mean */
#ifdef ISA
#define TYPE u8
#include "ops/compare.typed.h"
#define TYPE u16
#include "ops/compare.typed.h"
#define TYPE u32
#include "ops/compare.typed.h"
#define TYPE u64
#include "ops/compare.typed.h"
#endif
LOOPS(where, [ED_FLOAT32] = where_u32, [ED_FLOAT64] = where_u64, [ED_INT32] = where_u32,
      [ED_INT64] = where_u64, [ED_UINT8] = where_u8, [ED_BOOL] = where_u8, [ED_FLOAT16] = where_u16,
      [ED_BFLOAT16] = where_u16, [ED_INT8] = where_u8, [ED_INT16] = where_u16,
      [ED_UINT16] = where_u16, [ED_UINT32] = where_u32, [ED_UINT64] = where_u64);
PLAIN(where, x[0] ? x[1] : x[2]);

static bool where_gradient(const ed_gradient_call *g)
{
    ed_tensor *condition = g->inputs[0];
    if (g->needs[1]) g->dx[1] = shape_sum_to(ed_where(condition, g->dy[0], 0), g->shapes[1]);
    if (g->needs[2]) g->dx[2] = shape_sum_to(ed_where(condition, 0, g->dy[0]), g->shapes[2]);
    return true;
}

ELEMENTWISE(where, "y = a where the condition is true, b elsewhere",
            .operands = {{"condition", ED_SET_BOOL, 'C', .saved = true},
                         {"a", ED_SET_ALL, 'T'},
                         {"b", ED_SET_ALL, 'T'}},
            .gradient = where_gradient,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4),
                                              ED_SAMPLE_IN(-2, 2, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1, 2, 1, 3),
                                              ED_SAMPLE_IN(-2, 2, 4, 1), ED_SAMPLE_IN(-2, 2)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1), ED_SAMPLE_IN(-2, 2, 5),
                                              ED_SAMPLE_IN(-2, 2, 2, 1)}}));

#ifndef ISA
ed_tensor *(ed_where)(ed_tensor *condition, ed_tensor *a, ed_tensor *b)
{
    return CALL_OP(where, NULL, condition, a, b);
}
#endif
