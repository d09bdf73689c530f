/*
 * Functions of mathematics, float32 and float64; see ops/elementwise.h for how a family file is
 * read. Their accuracy is measured, function by function and instruction set by instruction set, in
 * tests/test_accuracy.c.
 */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <math.h>

/* ---- Exponentials and logarithms ------------------------------------------------------------- */

/* exp: y = e^x, dx = dy y */
VECTOR_LOOPS1(exp, vexp(x));
PLAIN(exp, exp(x[0]));
GRADIENT1(exp, ed_mul(dy, y));
ELEMENTWISE(exp, "y = e^x", ONE(ED_SET_FLOAT), .gradient = exp_gradient, SAVES_Y,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(exp);

/* expm1: y = e^x - 1, dx = dy (y + 1) */
VECTOR_LOOPS1(expm1, vexpm1(x));
PLAIN(expm1, expm1(x[0]));
GRADIENT1(expm1, ed_mul(dy, ed_add(y, 1)));
ELEMENTWISE(expm1, "y = e^x - 1", ONE(ED_SET_FLOAT), .gradient = expm1_gradient, SAVES_Y,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(expm1);

/* log: y = ln x, dx = dy / x */
VECTOR_LOOPS1(log, vlog(x));
PLAIN(log, log(x[0]));
GRADIENT1(log, ed_div(dy, x));
ELEMENTWISE(log, "y = ln x", ONE(ED_SET_FLOAT), .gradient = log_gradient, SAVES_X,
            .samples = SAMPLES1(0.3, 3));
FUNCTION1(log);

/* log1p: y = ln(1 + x), dx = dy / (1 + x) */
VECTOR_LOOPS1(log1p, vlog1p(x));
PLAIN(log1p, log1p(x[0]));
GRADIENT1(log1p, ed_div(dy, ed_add(x, 1)));
ELEMENTWISE(log1p, "y = ln(1 + x)", ONE(ED_SET_FLOAT), .gradient = log1p_gradient, SAVES_X,
            .samples = SAMPLES1(-0.6, 3));
FUNCTION1(log1p);

/* log2: y = log2 x, dx = dy / (x ln 2) */
VECTOR_LOOPS1(log2, vlog2(x));
PLAIN(log2, log2(x[0]));
GRADIENT1(log2, ed_div(dy, ed_mul(x, 0x1.62e42fefa39efp-1)));
ELEMENTWISE(log2, "y = log2 x", ONE(ED_SET_FLOAT), .gradient = log2_gradient, SAVES_X,
            .samples = SAMPLES1(0.3, 3));
FUNCTION1(log2);

/* log10: y = log10 x, dx = dy / (x ln 10) */
VECTOR_LOOPS1(log10, vlog10(x));
PLAIN(log10, log10(x[0]));
GRADIENT1(log10, ed_div(dy, ed_mul(x, 0x1.26bb1bbb55516p+1)));
ELEMENTWISE(log10, "y = log10 x", ONE(ED_SET_FLOAT), .gradient = log10_gradient, SAVES_X,
            .samples = SAMPLES1(0.3, 3));
FUNCTION1(log10);

/* exp2: y = 2^x, dx = dy y ln 2 */
VECTOR_LOOPS1(exp2, vexp2(x));
PLAIN(exp2, exp2(x[0]));
GRADIENT1(exp2, ed_mul(dy, ed_mul(y, 0x1.62e42fefa39efp-1)));
ELEMENTWISE(exp2, "y = 2^x", ONE(ED_SET_FLOAT), .gradient = exp2_gradient, SAVES_Y,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(exp2);

/* ---- Roots ----------------------------------------------------------------------------------- */

/*
 * sqrt: y = sqrt x, dx = dy / (2 y), and 0 where dy is, even at x = 0. With half(a, b) = a / (2 b),
 * 0 where a is: d half / da = half(1, b), d half / db = -half(a, b) / b.
 */
VECTOR_LOOPS1(sqrt, vsqrt(x));
PLAIN(sqrt, sqrt(x[0]));
VECTOR_LOOPS2(sqrt_gradient, vselect(a == 0, a, vset(a, 0.5) * a / b));
PLAIN(sqrt_gradient, x[0] == 0 ? x[0] : 0.5 * x[0] / x[1]);
INTERNAL2(sqrt_gradient);
GRADIENT1(sqrt, ops_sqrt_gradient(dy, y));

static bool sqrt_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_sqrt_gradient(g->dy[0], b));
    GIVE(g, 1, ed_neg(ed_div(ed_mul(g->dy[0], ops_sqrt_gradient(a, b)), b)));
    return true;
}

ELEMENTWISE(sqrt, "y = sqrt x", ONE(ED_SET_FLOAT), .gradient = sqrt_gradient, SAVES_Y,
            .samples = SAMPLES1(0.3, 3));
FUNCTION1(sqrt);
ELEMENTWISE(sqrt_gradient, "dx = a / (2 b) for dy = a and y = b of sqrt, 0 where dy is",
            TWO(ED_SET_FLOAT), .flags = ED_OP_INTERNAL, .gradient = sqrt_gradient_gradient,
            SAVES_AB, .samples = SAMPLES2);

/* rsqrt: y = 1 / sqrt x, dx = -dy y^3 / 2, and 0 where dy is */
VECTOR_LOOPS1(rsqrt, vrsqrt(x));
PLAIN(rsqrt, 1 / sqrt(x[0]));
#ifdef ISA
/* With what rounding the square lost, but where that is infinite, if that costs little. */
VECTOR_INLINE vf32 vrsqrt_slope(vf32 a, vf32 b)
{
#if defined(VECTOR_FMA)
    const vf32 square = b * b, ab = -0.5f * a * b, rest = vrest_f32(b, b, square);
    return vfma_f32(ab, square, ab * (vf32)((vi32)rest & (square < INFINITY)));
#else
    return -0.5f * a * b * b * b;
#endif
}
#endif
VECTOR_LOOP2(rsqrt_gradient, f32, vselect(a == 0, a, vrsqrt_slope(a, b)))
VECTOR_LOOP2(rsqrt_gradient, f64, vselect(a == 0, a, vset(a, -0.5) * a * b * b * b))
LOOPS(rsqrt_gradient, LOOPS_FLOAT(rsqrt_gradient));
PLAIN(rsqrt_gradient, x[0] == 0 ? x[0] : -0.5 * x[0] * x[1] * x[1] * x[1]);
INTERNAL2(rsqrt_gradient);
GRADIENT1(rsqrt, ops_rsqrt_gradient(dy, y));

static bool rsqrt_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_rsqrt_gradient(g->dy[0], b));
    GIVE(g, 1, ed_mul(ed_mul(g->dy[0], a), ed_mul(ed_square(b), -1.5)));
    return true;
}

ELEMENTWISE(rsqrt, "y = 1 / sqrt x", ONE(ED_SET_FLOAT), .gradient = rsqrt_gradient, SAVES_Y,
            .samples = SAMPLES1(0.3, 3));
FUNCTION1(rsqrt);
ELEMENTWISE(rsqrt_gradient, "dx = -a b^3 / 2 for dy = a and y = b of rsqrt, 0 where dy is",
            TWO(ED_SET_FLOAT), .flags = ED_OP_INTERNAL, .gradient = rsqrt_gradient_gradient,
            SAVES_AB, .samples = SAMPLES2);

/* cbrt: y = cube root of x, dx = dy / (3 y^2) */
VECTOR_LOOPS1(cbrt, vcbrt(x));
PLAIN(cbrt, cbrt(x[0]));
GRADIENT1(cbrt, ed_div(dy, ed_mul(ed_square(y), 3)));
ELEMENTWISE(cbrt, "y = the cube root of x", ONE(ED_SET_FLOAT), .gradient = cbrt_gradient, SAVES_Y,
            .samples = SAMPLES1(0.3, 3));
FUNCTION1(cbrt);

/* ---- Circular functions ---------------------------------------------------------------------- */

/* sin: dx = dy cos x */
VECTOR_LOOPS1(sin, vsin(x));
PLAIN(sin, sin(x[0]));
GRADIENT1(sin, ed_mul(dy, ed_cos(x)));
ELEMENTWISE(sin, "y = sin x", ONE(ED_SET_FLOAT), .gradient = sin_gradient, SAVES_X,
            .samples = SAMPLES1(-4, 4));
FUNCTION1(sin);

/* cos: dx = -dy sin x */
VECTOR_LOOPS1(cos, vcos(x));
PLAIN(cos, cos(x[0]));
GRADIENT1(cos, ed_neg(ed_mul(dy, ed_sin(x))));
ELEMENTWISE(cos, "y = cos x", ONE(ED_SET_FLOAT), .gradient = cos_gradient, SAVES_X,
            .samples = SAMPLES1(-4, 4));
FUNCTION1(cos);

/* tan: dx = dy (1 + y^2) */
VECTOR_LOOPS1(tan, vtan(x));
PLAIN(tan, tan(x[0]));
GRADIENT1(tan, ed_mul(dy, ed_add(ed_square(y), 1)));
ELEMENTWISE(tan, "y = tan x", ONE(ED_SET_FLOAT), .gradient = tan_gradient, SAVES_Y,
            .samples = SAMPLES1(-1.2, 1.2));
FUNCTION1(tan);

/* asin: dx = dy / sqrt(1 - x^2) */
VECTOR_LOOPS1(asin, vasin(x));
PLAIN(asin, asin(x[0]));
GRADIENT1(asin, ed_mul(dy, ed_rsqrt(ed_sub(1, ed_square(x)))));
ELEMENTWISE(asin, "y = arcsin x", ONE(ED_SET_FLOAT), .gradient = asin_gradient, SAVES_X,
            .samples = SAMPLES1(-0.8, 0.8));
FUNCTION1(asin);

/* acos: dx = -dy / sqrt(1 - x^2) */
VECTOR_LOOPS1(acos, vacos(x));
PLAIN(acos, acos(x[0]));
GRADIENT1(acos, ed_neg(ed_mul(dy, ed_rsqrt(ed_sub(1, ed_square(x))))));
ELEMENTWISE(acos, "y = arccos x", ONE(ED_SET_FLOAT), .gradient = acos_gradient, SAVES_X,
            .samples = SAMPLES1(-0.8, 0.8));
FUNCTION1(acos);

/* atan: dx = dy / (1 + x^2) */
VECTOR_LOOPS1(atan, vatan(x));
PLAIN(atan, atan(x[0]));
GRADIENT1(atan, ed_div(dy, ed_add(ed_square(x), 1)));
ELEMENTWISE(atan, "y = arctan x", ONE(ED_SET_FLOAT), .gradient = atan_gradient, SAVES_X,
            .samples = SAMPLES1(-3, 3));
FUNCTION1(atan);

/* ---- Hyperbolic functions -------------------------------------------------------------------- */

/* sinh: dx = dy cosh x */
VECTOR_LOOPS1(sinh, vsinh(x));
PLAIN(sinh, sinh(x[0]));
GRADIENT1(sinh, ed_mul(dy, ed_cosh(x)));
ELEMENTWISE(sinh, "y = sinh x", ONE(ED_SET_FLOAT), .gradient = sinh_gradient, SAVES_X,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(sinh);

/* cosh: dx = dy sinh x */
VECTOR_LOOPS1(cosh, vcosh(x));
PLAIN(cosh, cosh(x[0]));
GRADIENT1(cosh, ed_mul(dy, ed_sinh(x)));
ELEMENTWISE(cosh, "y = cosh x", ONE(ED_SET_FLOAT), .gradient = cosh_gradient, SAVES_X,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(cosh);

/* tanh: dx = dy (1 - y^2) in one pass, as (1 - y)(1 + y), which does not cancel; of that,
 * d/da = 1 - b^2, d/db = -2 a b */
VECTOR_LOOPS1(tanh, vtanh(x));
PLAIN(tanh, tanh(x[0]));
VECTOR_LOOPS2(tanh_gradient, a * ((1 - b) * (1 + b)));
PLAIN(tanh_gradient, x[0] * (1 - x[1] * x[1]));
INTERNAL2(tanh_gradient);
GRADIENT1(tanh, ops_tanh_gradient(dy, y));

static bool tanh_gradient_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ops_tanh_gradient(g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_mul(ed_mul(g->dy[0], g->inputs[0]), ed_mul(g->inputs[1], -2)));
    return true;
}

ELEMENTWISE(tanh, "y = tanh x", ONE(ED_SET_FLOAT), .gradient = tanh_gradient, SAVES_Y,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(tanh);
ELEMENTWISE(tanh_gradient, "dx = a (1 - b^2) for dy = a and y = b of tanh", TWO(ED_SET_FLOAT),
            .flags = ED_OP_INTERNAL, .gradient = tanh_gradient_gradient, SAVES_AB,
            .samples = SAMPLES2);

/* asinh: dx = dy / cosh y */
VECTOR_LOOPS1(asinh, vasinh(x));
PLAIN(asinh, asinh(x[0]));
GRADIENT1(asinh, ed_div(dy, ed_cosh(y)));
ELEMENTWISE(asinh, "y = arsinh x", ONE(ED_SET_FLOAT), .gradient = asinh_gradient, SAVES_Y,
            .samples = SAMPLES1(-3, 3));
FUNCTION1(asinh);

/* acosh: dx = dy / sinh y */
VECTOR_LOOPS1(acosh, vacosh(x));
PLAIN(acosh, acosh(x[0]));
GRADIENT1(acosh, ed_div(dy, ed_sinh(y)));
ELEMENTWISE(acosh, "y = arcosh x", ONE(ED_SET_FLOAT), .gradient = acosh_gradient, SAVES_Y,
            .samples = SAMPLES1(1.3, 4));
FUNCTION1(acosh);

/* atanh: dx = dy / (1 - x^2) */
VECTOR_LOOPS1(atanh, vatanh(x));
PLAIN(atanh, atanh(x[0]));
GRADIENT1(atanh, ed_div(dy, ed_sub(1, ed_square(x))));
ELEMENTWISE(atanh, "y = artanh x", ONE(ED_SET_FLOAT), .gradient = atanh_gradient, SAVES_X,
            .samples = SAMPLES1(-0.8, 0.8));
FUNCTION1(atanh);

/* ---- The error function ---------------------------------------------------------------------- */

#define TWO_BY_ROOT_PI 0x1.20dd750429b6dp+0 /* 2 / sqrt pi */

/* erf: dx = dy (2 / sqrt pi) e^(-x^2) */
VECTOR_LOOPS1(erf, verf(x));
PLAIN(erf, erf(x[0]));
GRADIENT1(erf, ed_mul(ed_mul(dy, TWO_BY_ROOT_PI), ed_exp(ed_neg(ed_square(x)))));
ELEMENTWISE(erf, "y = erf x", ONE(ED_SET_FLOAT), .gradient = erf_gradient, SAVES_X,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(erf);

/* erfc: y = 1 - erf x without cancellation, dx as erf's, negative */
VECTOR_LOOPS1(erfc, verfc(x));
PLAIN(erfc, erfc(x[0]));
GRADIENT1(erfc, ed_mul(ed_mul(dy, -TWO_BY_ROOT_PI), ed_exp(ed_neg(ed_square(x)))));
ELEMENTWISE(erfc, "y = 1 - erf x", ONE(ED_SET_FLOAT), .gradient = erfc_gradient, SAVES_X,
            .samples = SAMPLES1(-2, 2));
FUNCTION1(erfc);
