/* Quotients and remainders of other kinds than ed_div's and ed_floor_div's, and products and
 * quotients that are 0 where a factor is, whatever the other one; see ops/elementwise.h for how a
 * family file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/quotients.h"
#include <math.h>

#ifdef ISA
/* y, 0 where a is. */
VECTOR_INLINE vf32 vunless_zero_f32(vf32 a, vf32 y)
{
    return (vf32)((vi32)(a != 0) & (vi32)y);
}
VECTOR_INLINE vf64 vunless_zero_f64(vf64 a, vf64 y)
{
    return (vf64)((vi64)(a != 0) & (vi64)y);
}
#define vunless_zero(a, y) VECTOR_CHOOSE(vunless_zero, a)(a, y)
#endif

/* ---- Rounded towards 0 ----------------------------------------------------------------------- */

#define STEPS "it is constant between its steps"

/* trunc: y = x without its fraction */
VECTOR_LOOPS1(trunc, vtrunc(x));
PLAIN(trunc, trunc(x[0]));
ELEMENTWISE(trunc, "y = the integer part of x", ONE(ED_SET_FLOAT), .no_gradient = STEPS,
            .samples = SAMPLES1(-3, 3));
FUNCTION1(trunc);

/* rint: y = the nearest integer, of two the even one */
VECTOR_LOOPS1(rint, vrint(x));
PLAIN(rint, nearbyint(x[0]));
ELEMENTWISE(rint, "y = the nearest integer, the even one of two", ONE(ED_SET_FLOAT),
            .no_gradient = STEPS, .samples = SAMPLES1(-3, 3));
FUNCTION1(rint);

/* truncatediv: y = trunc(a / b) */
VECTOR_LOOP2(truncatediv, f32, vtrunc(a / b))
VECTOR_LOOP2(truncatediv, f64, vtrunc(a / b))
LOOPS2_WHOLE(truncatediv)
LOOPS(truncatediv, LOOPS_NUMBER(truncatediv));
PLAIN(truncatediv, trunc(x[0] / x[1]));
ELEMENTWISE_AS(truncatediv, elementwise_infer, elementwise_whole_division,
               "y = a / b rounded towards 0", TWO(ED_SET_NUMBER), .no_gradient = STEPS,
               .samples = SAMPLES2_IN(-9, 9, 1.1, 3));
FUNCTION2(truncatediv);

/* truncatemod: y = a - trunc(a / b) b, exact however large the quotient, da = dy,
 * db = -dy trunc(a / b) */
VECTOR_LOOP2(truncatemod, f32, vfmod(a, b))
VECTOR_LOOP2(truncatemod, f64, vfmod(a, b))
LOOPS2_WHOLE(truncatemod)
LOOPS(truncatemod, LOOPS_NUMBER(truncatemod));
PLAIN(truncatemod, fmod(x[0], x[1]));

static bool truncatemod_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, g->dy[0]);
    ed_tensor *quotient = g->needs[1] ? ed_truncatediv(g->inputs[0], g->inputs[1]) : NULL;
    GIVE(g, 1, ed_neg(ed_mul(g->dy[0], ed_stop_gradient(quotient))));
    return true;
}

/* In the samples no quotient comes near an integer, where y jumps. */
ELEMENTWISE_AS(truncatemod, elementwise_infer, elementwise_whole_division,
               "y = a - trunc(a / b) b, with the sign of a", TWO(ED_SET_NUMBER),
               .gradient = truncatemod_gradient, SAVES_AB,
               .samples = ED_SAMPLES(
                   {.inputs = {ED_SAMPLE_IN(2.2, 2.8, 3, 4), ED_SAMPLE_IN(0.95, 1.05, 3, 4)}},
                   {.inputs = {ED_SAMPLE_IN(-2.8, -2.2, 3, 1), ED_SAMPLE_IN(0.95, 1.05, 4)}},
                   {.inputs = {ED_SAMPLE_IN(2.2, 2.8), ED_SAMPLE_IN(-1.05, -0.95, 5)}}));
FUNCTION2(truncatemod);

/* ---- 0 where a factor is --------------------------------------------------------------------- */

#define SAVING(name, text, ...)                                                                    \
    ELEMENTWISE(name, text, TWO(ED_SET_FLOAT), .gradient = name##_gradient, SAVES_AB, __VA_ARGS__)

/* div_no_nan: y = b == 0 ? 0 : a / b, da = dy / b, db = -dy a / b^2, 0 where b is */
VECTOR_LOOPS2(div_no_nan, vunless_zero(b, a / b));
PLAIN(div_no_nan, x[1] == 0 ? 0 : x[0] / x[1]);

static bool div_no_nan_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ed_div_no_nan(g->dy[0], b));
    GIVE(g, 1, ed_mul(g->dy[0], ed_div_no_nan(ed_div_no_nan(ed_neg(a), b), b)));
    return true;
}

SAVING(div_no_nan, "y = a / b, 0 where b is", .samples = SAMPLES2);
FUNCTION2(div_no_nan);

/* mul_no_nan: y = b == 0 ? 0 : a b, da = dy b, db = a dy in the same way */
VECTOR_LOOPS2(mul_no_nan, vunless_zero(b, a *b));
PLAIN(mul_no_nan, x[1] == 0 ? 0 : x[0] * x[1]);

static bool mul_no_nan_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ed_mul_no_nan(g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_mul_no_nan(g->inputs[0], g->dy[0]));
    return true;
}

SAVING(mul_no_nan, "y = a b, 0 where b is, even if a is infinite or NaN", .samples = SAMPLES2);
FUNCTION2(mul_no_nan);

/* 1 where x is not 0, which changes nowhere. */
LOOP_HELPER ed_tensor *is_not_zero(ed_tensor *x)
{
    return x ? ed_cast(ed_not_equal(x, 0), ed_dtype_of(x)) : NULL;
}

/* xdivy: y = a == 0 ? 0 : a / b, da = dy / b, db = -dy a / b^2, 0 where a is */
VECTOR_LOOPS2(xdivy, vunless_zero(a, a / b));
PLAIN(xdivy, x[0] == 0 ? 0 : x[0] / x[1]);

static bool xdivy_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ed_mul(g->dy[0], ed_xdivy(is_not_zero(a), b)));
    GIVE(g, 1, ed_mul(g->dy[0], ed_xdivy(ed_neg(a), ed_square(b))));
    return true;
}

SAVING(xdivy, "y = a / b, 0 where a is", .samples = SAMPLES2);
FUNCTION2(xdivy);

/* xlogy: y = a == 0 ? 0 : a ln b, da = dy ln b, db = dy a / b, 0 where a is */
VECTOR_LOOPS2(xlogy, vunless_zero(a, a *vlog(b)));
PLAIN(xlogy, x[0] == 0 ? 0 : x[0] * log(x[1]));

static bool xlogy_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ed_mul(g->dy[0], ed_xlogy(is_not_zero(a), b)));
    GIVE(g, 1, ed_mul(g->dy[0], ed_xdivy(a, b)));
    return true;
}

SAVING(xlogy, "y = a ln b, 0 where a is", .samples = SAMPLES2);
FUNCTION2(xlogy);

/* xlog1py: y = a == 0 ? 0 : a ln(1 + b), da = dy ln(1 + b), db = dy a / (1 + b), 0 where a is */
VECTOR_LOOPS2(xlog1py, vunless_zero(a, a *vlog1p(b)));
PLAIN(xlog1py, x[0] == 0 ? 0 : x[0] * log1p(x[1]));

static bool xlog1py_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ed_mul(g->dy[0], ed_xlog1py(is_not_zero(a), b)));
    GIVE(g, 1, ed_mul(g->dy[0], ed_xdivy(a, ed_add(b, 1))));
    return true;
}

SAVING(xlog1py, "y = a ln(1 + b), 0 where a is", .samples = SAMPLES2);
FUNCTION2(xlog1py);

/* ---- Floats of integers ---------------------------------------------------------------------- */

#ifndef ISA
/* truediv: y = a / b; integers of up to 16 bits as float32, others as float64 */
static bool truediv_compose(ed_call *call)
{
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    const ed_dtype dtype = ed_dtype_of(a);
    if (!ed_dtype_is_float(dtype)) {
        const ed_dtype quotient = dtype_size(dtype) <= 2 ? ED_FLOAT32 : ED_FLOAT64;
        a = ed_cast(a, quotient);
        b = ed_cast(b, quotient);
    }
    return ed_call_result(call, 0, ed_div(a, b));
}

static double truediv_of(const double *x, const void *attrs)
{
    (void)attrs;
    return x[0] / x[1];
}

static bool truediv_reference(const ed_call *call)
{
    return elementwise_plain(call, truediv_of);
}

ED_OP(truediv) = {
    .name = "truediv",
    .doc = "y = a / b, of integers too: those of up to 16 bits give float32, others float64",
    TWO(ED_SET_ALL & ~(ED_SET_HALF | ED_SET_BOOL)),
    .compose = truediv_compose,
    .reference = truediv_reference,
    .samples = SAMPLES2_IN(-5, 5, 0.5, 3),
};
FUNCTION2(truediv);
#endif
