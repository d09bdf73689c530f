/* Elementwise arithmetic; see ops/elementwise.h for how a family file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/quotients.h"
#include <math.h>

#define CLIP_ATTRS(FIELD, T)                                                                       \
    FIELD(T, FLOAT, low, -INFINITY, ED_ANY, "smallest value of the result")                        \
    FIELD(T, FLOAT, high, INFINITY, ED_ANY, "largest value of the result")
ED_OPTIONS(clip_attrs, CLIP_ATTRS);

#ifdef ISA

static inline int64_t clip_integer(double bound, int64_t least, int64_t most)
{
    return bound <= (double)least ? least : bound >= (double)most ? most : (int64_t)bound;
}

#define TYPE f32
#include "ops/arithmetic.typed.h"
#define TYPE f64
#include "ops/arithmetic.typed.h"
#define TYPE i32
#include "ops/arithmetic.typed.h"
#define TYPE i64
#include "ops/arithmetic.typed.h"
#define TYPE u8
#include "ops/arithmetic.typed.h"

#endif

/* ---- Two operands ---------------------------------------------------------------------------- */

/* add: y = a + b, da = dy, db = dy */
LOOPS2_WRAPPING(add, a + b);
PLAIN(add, x[0] + x[1]);

static bool add_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, g->dy[0]);
    GIVE(g, 1, g->dy[0]);
    return true;
}

ELEMENTWISE(add, "y = a + b", TWO(ED_SET_NUMBER), .gradient = add_gradient, .samples = SAMPLES2);
FUNCTION2(add);

/* sub: y = a - b, da = dy, db = -dy */
LOOPS2_WRAPPING(sub, a - b);
PLAIN(sub, x[0] - x[1]);

static bool sub_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, g->dy[0]);
    GIVE(g, 1, ed_neg(g->dy[0]));
    return true;
}

ELEMENTWISE(sub, "y = a - b", TWO(ED_SET_NUMBER), .gradient = sub_gradient, .samples = SAMPLES2);
FUNCTION2(sub);

/* mul: y = a b, da = dy b, db = dy a */
LOOPS2_WRAPPING(mul, a * b);
PLAIN(mul, x[0] * x[1]);

static bool mul_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ed_mul(g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_mul(g->dy[0], g->inputs[0]));
    return true;
}

ELEMENTWISE(mul, "y = a b", TWO(ED_SET_NUMBER), .gradient = mul_gradient, SAVES_AB,
            .samples = SAMPLES2);
FUNCTION2(mul);

/* div: y = a / b, da = dy / b, db = -dy y / b */
VECTOR_LOOP2(div, f32, a / b)
VECTOR_LOOP2(div, f64, a / b)
LOOPS(div, LOOPS_FLOAT(div));
PLAIN(div, x[0] / x[1]);

static bool div_gradient(const ed_gradient_call *g)
{
    ed_tensor *b = g->inputs[1];
    GIVE(g, 0, ed_div(g->dy[0], b));
    GIVE(g, 1, ed_mul(g->dy[0], ed_div(ed_div(ed_neg(g->inputs[0]), b), b)));
    return true;
}

ELEMENTWISE(div, "y = a / b", TWO(ED_SET_FLOAT), .gradient = div_gradient, SAVES_AB,
            .samples = SAMPLES2);
FUNCTION2(div);

/*
 * Whole division. A divisor of 0 is refused before the loops run; they give any value for it. The
 * smallest integer by -1, which has no quotient, is taken as a negation, which wraps.
 */
#ifndef ISA
/* Whether any of n integers is 0. */
#define ANY_ZERO(type)                                                                             \
    static bool any_zero_##type(const void *x, int64_t n)                                          \
    {                                                                                              \
        const number_##type *from = x;                                                             \
        int any = 0;                                                                               \
        _Pragma("omp simd reduction(| : any)") for (int64_t i = 0; i < n; i++) any |=              \
            from[i] == 0;                                                                          \
        return any;                                                                                \
    }
ANY_ZERO(i32)
ANY_ZERO(i64)
ANY_ZERO(u8)

/* Where the first zero is among packed integers, the size if there is none: a block at a time. */
static int64_t first_zero(const ed_tensor *x)
{
    enum { BLOCK = 1024 };
    const int64_t element = (int64_t)dtype_size(x->dtype);
    bool (*const any)(const void *, int64_t) = x->dtype == ED_INT32   ? any_zero_i32
                                               : x->dtype == ED_INT64 ? any_zero_i64
                                                                      : any_zero_u8;
    int64_t at = 0;
    for (; at < x->size; at += BLOCK)
        if (any(x->data + at * element, x->size - at < BLOCK ? x->size - at : BLOCK)) break;
    while (at < x->size && dtype_load(x->dtype, x->data, at) != 0) at++;
    return at < x->size ? at : x->size;
}

static bool no_zero_divisor(ed_call *call)
{
    const ed_tensor *b = call->inputs[1];
    if (ed_dtype_is_float(b->dtype) || call->outputs[0]->size == 0) return true;
    ed_tensor *packed = tensor_contiguous(b);
    if (!packed) return false;
    const int64_t at = first_zero(packed);
    bool ok = at == packed->size;
    ed_release(packed);
    return ok ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "division by 0: element %lld of b, %s, is 0",
                        text_nth(at), text_of_tensor(b).s);
}

bool elementwise_whole_division(ed_call *call)
{
    return no_zero_divisor(call) && elementwise_kernel(call);
}
#endif

/* floor_div: y = floor(a / b) */
VECTOR_LOOP2(floor_div, f32, vfloor(a / b))
VECTOR_LOOP2(floor_div, f64, vfloor(a / b))
LOOPS2_WHOLE(floor_div)
LOOPS(floor_div, LOOPS_NUMBER(floor_div));
PLAIN(floor_div, floor(x[0] / x[1]));

ELEMENTWISE_AS(floor_div, elementwise_infer, elementwise_whole_division, "y = floor(a / b)",
               TWO(ED_SET_NUMBER), .no_gradient = "it is constant between its steps",
               .samples = SAMPLES2);
FUNCTION2(floor_div);

#ifndef ISA
static double plain_floor_mod_of(double a, double b)
{
    const double rest = fmod(a, b);
    return rest == 0 ? copysign(0, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}
#endif

/* floor_mod: y = a - floor(a / b) b, da = dy, db = -dy floor(a / b) */
VECTOR_LOOP2(floor_mod, f32, floor_mod_of_f32(a, b))
VECTOR_LOOP2(floor_mod, f64, floor_mod_of_f64(a, b))
LOOPS2_WHOLE(floor_mod)
LOOPS(floor_mod, LOOPS_NUMBER(floor_mod));
PLAIN(floor_mod, plain_floor_mod_of(x[0], x[1]));

static bool floor_mod_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, g->dy[0]);
    ed_tensor *quotient = g->needs[1] ? ed_floor_div(g->inputs[0], g->inputs[1]) : NULL;
    GIVE(g, 1, ed_neg(ed_mul(g->dy[0], ed_stop_gradient(quotient))));
    return true;
}

/* In the samples no quotient comes near an integer, where y jumps. */
ELEMENTWISE_AS(floor_mod, elementwise_infer, elementwise_whole_division, "y = a - floor(a / b) b",
               TWO(ED_SET_NUMBER), .gradient = floor_mod_gradient, SAVES_AB,
               .samples = ED_SAMPLES(
                   {.inputs = {ED_SAMPLE_IN(2.2, 2.8, 3, 4), ED_SAMPLE_IN(0.95, 1.05, 3, 4)}},
                   {.inputs = {ED_SAMPLE_IN(-2.8, -2.2, 3, 1), ED_SAMPLE_IN(0.95, 1.05, 4)}},
                   {.inputs = {ED_SAMPLE_IN(2.2, 2.8), ED_SAMPLE_IN(-1.05, -0.95, 5)}}));
FUNCTION2(floor_mod);

/* pow: y = a^b, da = dy b a^(b - 1), db = dy y log a where a > 0, else 0; of integers the product,
 * which wraps, and b must not be negative */
VECTOR_LOOP2(pow, f32, vpow(a, b))
VECTOR_LOOP2(pow, f64, vpow(a, b))
LOOP2(pow, i32, i32, pow_of_i32(a, b))
LOOP2(pow, i64, i64, pow_of_i64(a, b))
LOOP2(pow, u8, u8, pow_of_u8(a, b))
LOOPS(pow, LOOPS_NUMBER(pow));
PLAIN(pow, pow(x[0], x[1]));

#ifndef ISA
static bool pow_kernel(ed_call *call)
{
    const ed_tensor *b = call->inputs[1];
    if (ed_dtype_is_float(b->dtype) || call->outputs[0]->size == 0) return elementwise_kernel(call);
    ed_tensor *packed = tensor_contiguous(b);
    if (!packed) return false;
    int64_t at = 0;
    while (at < packed->size && dtype_load(packed->dtype, packed->data, at) >= 0) at++;
    bool ok = at == packed->size;
    ed_release(packed);
    return ok ? elementwise_kernel(call)
              : ed_call_fail(call, ED_INVALID_ARGUMENT,
                             "exponents of integers must be >= 0: element %lld of b, %s, is "
                             "negative",
                             text_nth(at), text_of_tensor(b).s);
}
#endif

static bool pow_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ed_mul(g->dy[0], ed_mul(b, ed_pow(a, ed_sub(b, 1)))));
    if (!g->needs[1]) return true;
    ed_tensor *log_a = ed_log(ed_where(ed_greater(a, 0), a, 1));
    GIVE(g, 1, ed_mul(g->dy[0], ed_mul(g->outputs[0], log_a)));
    return true;
}

ELEMENTWISE_AS(
    pow, elementwise_infer, pow_kernel, "y = a^b", TWO(ED_SET_NUMBER),
    .flags = ED_OP_PREFERS_FLOATS, .gradient = pow_gradient, SAVES_AB, SAVES_Y,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 2, 2, 1, 3), ED_SAMPLE_IN(-2, 2, 4, 1)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 3.5), ED_SAMPLE_IN(0, 3, 5)}}));
FUNCTION2(pow);

/* maximum: y = a >= b ? a : b, and NaN where either is; dy goes to a where a >= b, else to b */
VECTOR_LOOP2(maximum, f32, vmax(a, b))
VECTOR_LOOP2(maximum, f64, vmax(a, b))
LOOP2(maximum, i32, i32, a > b ? a : b)
LOOP2(maximum, i64, i64, a > b ? a : b)
LOOP2(maximum, u8, u8, a > b ? a : b)
LOOPS(maximum, LOOPS_NUMBER(maximum));
PLAIN(maximum, x[0] > x[1] || x[0] != x[0] ? x[0] : x[1]);

static bool choice_gradient(const ed_gradient_call *g, ed_tensor *to_a)
{
    GIVE(g, 0, ed_where(to_a, g->dy[0], 0));
    GIVE(g, 1, ed_where(to_a, 0, g->dy[0]));
    return true;
}

static bool maximum_gradient(const ed_gradient_call *g)
{
    return choice_gradient(g, ed_greater_equal(g->inputs[0], g->inputs[1]));
}

#define SAMPLES2_DISTINCT                                                                          \
    ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4), ED_DISTINCT_IN(-1.9, 2.1, 3, 4)}},         \
               {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 1, 3), ED_DISTINCT_IN(-1.9, 2.1, 4, 1)}})

ELEMENTWISE(maximum, "y = max(a, b), NaN if either is", TWO(ED_SET_NUMBER),
            .gradient = maximum_gradient, SAVES_AB, .samples = SAMPLES2_DISTINCT);
FUNCTION2(maximum);

/* minimum: y = a <= b ? a : b, and NaN where either is; dy goes to a where a <= b, else to b */
VECTOR_LOOP2(minimum, f32, vmin(a, b))
VECTOR_LOOP2(minimum, f64, vmin(a, b))
LOOP2(minimum, i32, i32, a < b ? a : b)
LOOP2(minimum, i64, i64, a < b ? a : b)
LOOP2(minimum, u8, u8, a < b ? a : b)
LOOPS(minimum, LOOPS_NUMBER(minimum));
PLAIN(minimum, x[0] < x[1] || x[0] != x[0] ? x[0] : x[1]);

static bool minimum_gradient(const ed_gradient_call *g)
{
    return choice_gradient(g, ed_less_equal(g->inputs[0], g->inputs[1]));
}

ELEMENTWISE(minimum, "y = min(a, b), NaN if either is", TWO(ED_SET_NUMBER),
            .gradient = minimum_gradient, SAVES_AB, .samples = SAMPLES2_DISTINCT);
FUNCTION2(minimum);

/* squared_difference: y = (a - b)^2, da = 2 dy (a - b), db = -da */
LOOPS2_WRAPPING(squared_difference, (a - b) * (a - b));
PLAIN(squared_difference, (x[0] - x[1]) * (x[0] - x[1]));

static bool squared_difference_gradient(const ed_gradient_call *g)
{
    ed_tensor *da = ed_mul(g->dy[0], ed_mul(ed_sub(g->inputs[0], g->inputs[1]), 2));
    GIVE(g, 0, da);
    GIVE(g, 1, ed_neg(da));
    return true;
}

ELEMENTWISE(squared_difference, "y = (a - b)^2", TWO(ED_SET_NUMBER),
            .gradient = squared_difference_gradient, SAVES_AB, .samples = SAMPLES2);
FUNCTION2(squared_difference);

/* atan2: the angle of (b, a), da = dy b / (a^2 + b^2), db = -dy a / (a^2 + b^2) */
VECTOR_LOOPS2(atan2, vatan2(a, b));
PLAIN(atan2, atan2(x[0], x[1]));

static bool atan2_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    ed_tensor *part = ed_div(g->dy[0], ed_add(ed_square(a), ed_square(b)));
    GIVE(g, 0, ed_mul(part, b));
    GIVE(g, 1, ed_neg(ed_mul(part, a)));
    return true;
}

ELEMENTWISE(atan2, "y = the angle of the point (b, a), in -pi..pi", TWO(ED_SET_FLOAT),
            .gradient = atan2_gradient, SAVES_AB, .samples = SAMPLES2);
FUNCTION2(atan2);

/* ---- One operand ----------------------------------------------------------------------------- */

/* neg: y = -x, dx = -dy */
LOOPS1_WRAPPING(neg, -x);
PLAIN(neg, -x[0]);

static bool neg_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_neg(g->dy[0]);
    return true;
}

ELEMENTWISE(neg, "y = -x", ONE(ED_SET_FLOAT | ED_SET_INDEX), .gradient = neg_gradient,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(neg);

/* abs: y = |x|, dx = dy sign(x) */
VECTOR_LOOP1(abs, f32, vabs(x))
VECTOR_LOOP1(abs, f64, vabs(x))
LOOP1(abs, i32, i32, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)
LOOP1(abs, i64, i64, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
LOOP1(abs, u8, u8, x)
LOOPS(abs, LOOPS_NUMBER(abs));
PLAIN(abs, fabs(x[0]));

static bool abs_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_mul(g->dy[0], ed_sign(g->inputs[0]));
    return true;
}

ELEMENTWISE(abs, "y = |x|", ONE(ED_SET_NUMBER), .gradient = abs_gradient, SAVES_X,
            .samples = SAMPLES1(-2, 2), .kinks = (const double[]){0, NAN});
FUNCTION1(abs);

/* sign: y = -1, 0, 1, or NaN for NaN; dx = 0 */
LOOPS1_SIGNED(sign, x > 0 ? 1 : x == 0 ? 0 : x != x ? x : -1);
PLAIN(sign, x[0] != x[0] ? x[0] : (x[0] > 0) - (x[0] < 0));

static bool sign_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_zeros_like(g->dy[0]);
    return true;
}

ELEMENTWISE(sign, "y = -1 for x < 0, 0 for 0, 1 for x > 0", ONE(ED_SET_NUMBER),
            .gradient = sign_gradient, .samples = SAMPLES1(-2, 2),
            .kinks = (const double[]){0, NAN});
FUNCTION1(sign);

/* square: y = x^2, dx = 2 dy x */
LOOPS1_WRAPPING(square, x * x);
PLAIN(square, x[0] * x[0]);

static bool square_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_mul(g->dy[0], ed_mul(g->inputs[0], 2));
    return true;
}

ELEMENTWISE(square, "y = x^2", ONE(ED_SET_NUMBER), .gradient = square_gradient, SAVES_X,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(square);

/* reciprocal: y = 1 / x, dx = -dy y^2, and 0 where dy is */
LOOP1(reciprocal, f32, f32, 1 / x)
LOOP1(reciprocal, f64, f64, 1 / x)
LOOPS(reciprocal, LOOPS_FLOAT(reciprocal));
PLAIN(reciprocal, 1 / x[0]);

VECTOR_LOOPS2(reciprocal_gradient, vselect(a == 0, a, -a * b * b));
PLAIN(reciprocal_gradient, x[0] == 0 ? 0 : -x[0] * x[1] * x[1]);
INTERNAL2(reciprocal_gradient);

static bool reciprocal_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ops_reciprocal_gradient(g->dy[0], g->outputs[0]);
    return true;
}

static bool reciprocal_gradient_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ops_reciprocal_gradient(g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_mul(ed_mul(g->dy[0], g->inputs[0]), ed_mul(g->inputs[1], -2)));
    return true;
}

ELEMENTWISE(reciprocal, "y = 1 / x", ONE(ED_SET_FLOAT), .gradient = reciprocal_gradient, SAVES_Y,
            .samples = SAMPLES1(0.5, 2));
FUNCTION1(reciprocal);
ELEMENTWISE(reciprocal_gradient, "dx = -a b^2 for dy = a and y = b of reciprocal, 0 where dy is",
            TWO(ED_SET_FLOAT), .flags = ED_OP_INTERNAL, .gradient = reciprocal_gradient_gradient,
            SAVES_AB, .samples = SAMPLES2);

/* ---- Rounding -------------------------------------------------------------------------------- */

#define STEPS "it is constant between its steps"

/* floor: y = the largest integer <= x */
VECTOR_LOOPS1(floor, vfloor(x));
PLAIN(floor, floor(x[0]));
ELEMENTWISE(floor, "y = the largest integer that is not above x", ONE(ED_SET_FLOAT),
            .no_gradient = STEPS, .samples = SAMPLES1(-3, 3));
FUNCTION1(floor);

/* ceil: y = the smallest integer >= x */
VECTOR_LOOPS1(ceil, vceil(x));
PLAIN(ceil, ceil(x[0]));
ELEMENTWISE(ceil, "y = the smallest integer that is not below x", ONE(ED_SET_FLOAT),
            .no_gradient = STEPS, .samples = SAMPLES1(-3, 3));
FUNCTION1(ceil);

/* round: y = the nearest integer, of two the even one */
VECTOR_LOOPS1(round, vrint(x));
PLAIN(round, nearbyint(x[0]));
ELEMENTWISE(round, "y = the nearest integer, the even one of two", ONE(ED_SET_FLOAT),
            .no_gradient = STEPS, .samples = SAMPLES1(-3, 3));
FUNCTION1(round);

/* ---- Clipping -------------------------------------------------------------------------------- */

/* clip: y = max(min(x, high), low); dx = dy where low <= x <= high, else 0 */
LOOPS(clip, LOOPS_NUMBER(clip));

LOOP_HELPER double clip_plain(double x, const clip_attrs *attrs)
{
    return x > attrs->high ? attrs->high : x < attrs->low ? attrs->low : x;
}
PLAIN(clip, clip_plain(x[0], attrs));

LOOPS(clip_gradient, LOOPS_FLOAT(clip_gradient));
PLAIN(clip_gradient,
      x[1] >= ((const clip_attrs *)attrs)->low && x[1] <= ((const clip_attrs *)attrs)->high ? x[0]
                                                                                            : 0);

#ifndef ISA
extern const ed_op ed_op_clip_gradient;

static bool clip_infer(ed_call *call)
{
    const clip_attrs *attrs = call->attrs;
    if (attrs->low <= attrs->high) return elementwise_infer(call);
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "low must not be above high, nor NaN: low is %g, high is %g", attrs->low,
                        attrs->high);
}

static bool clip_gradient(const ed_gradient_call *g)
{
    g->dx[0] = CALL_OP(clip_gradient, g->attrs, g->dy[0], g->inputs[0]);
    return true;
}

static bool clip_gradient_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, CALL_OP(clip_gradient, g->attrs, g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_zeros_like(g->dy[0]));
    return true;
}

#define CLIP_DEFINITION                                                                            \
    ED_OP_ATTRS(CLIP_ATTRS, clip_attrs), .kinks = (const double[])                                 \
    {                                                                                              \
        -1, 1, NAN                                                                                 \
    }

ELEMENTWISE_AS(clip, clip_infer, elementwise_kernel, "y = max(min(x, high), low)",
               ONE(ED_SET_NUMBER), SAVES_X, .gradient = clip_gradient, CLIP_DEFINITION,
               .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)},
                                      .attrs = ED_ATTRS(CLIP_ATTRS, clip_attrs, .low = -1,
                                                        .high = 1)},
                                     {.inputs = {ED_SAMPLE_IN(-2, 2)}}));
ELEMENTWISE_AS(
    clip_gradient, clip_infer, elementwise_kernel,
    "dx = a where low <= b <= high, else 0, for dy = a and x = b of clip", TWO(ED_SET_FLOAT),
    .operands[1].saved = true, .flags = ED_OP_INTERNAL, .gradient = clip_gradient_gradient,
    CLIP_DEFINITION,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5), ED_SAMPLE_IN(-2, 2, 3, 5)},
                           .attrs = ED_ATTRS(CLIP_ATTRS, clip_attrs, .low = -1, .high = 1)}));

ed_tensor *ed_clip(ed_tensor *x, double low, double high)
{
    return CALL_OP(clip, ED_ATTRS(CLIP_ATTRS, clip_attrs, .low = low, .high = high), x);
}
#endif
