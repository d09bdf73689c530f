/* Functions of several steps in one pass: hypot, logaddexp, lerp, fma, nextafter, sinc, nan_to_num;
 * see ops/elementwise.h for how a family file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <float.h>
#include <math.h>

/*
 * sinc: y = s(pi x), s(t) = sin(t) / t, 1 at 0. Its slopes of all orders are one op: t s^(n) + n
 * s^(n-1) = sin(t + n pi/2) gives one from the other for large t; for small ones the series of s is
 * differentiated, whose terms are t^(2k - n) (-1)^k / ((2k + 1) (2k - n)!) for 2k >= n.
 */
#define SINC_ATTRS(FIELD, T) FIELD(T, INT, order, 0, ED_BETWEEN(0, 64), "of the derivative")
ED_OPTIONS(sinc_attrs, SINC_ATTRS);
#define SINC_ORDER ((int)((const sinc_attrs *)attrs)->order)

/* sin(pi x) and cos(pi x) by quarters, without rounding pi x for large x. */
LOOP_HELPER double sine_of_pi(double x, int quarters)
{
    const double half = fabs(x) < 0x1p53 ? nearbyint(2 * x) : 0;
    const double rest = fabs(x) < 0x1p53 ? x - half / 2 : 0; /* of larger ones all are even */
    const int quarter = ((int)fmod(half, 4) + quarters) & 3;
    const double y = quarter & 1 ? cos(rest * M_PI) : sin(rest * M_PI);
    return quarter & 2 ? -y : y;
}

LOOP_HELPER double sinc_series(double t, int order)
{
    const int first = (order + 1) / 2;
    double term = first & 1 ? -1 : 1, sum = 0; /* (-1)^k t^(2k - n) / (2k - n)! */
    if (order & 1) term *= t;
    for (int k = first; k < first + 40; k++) {
        const int power = 2 * k - order;
        sum += term / (2 * k + 1);
        term *= -t * t / ((power + 1) * (power + 2));
    }
    return sum;
}

LOOP_HELPER double sinc_slope_of(double x, int order)
{
    const double t = M_PI * x;
    double y = 0;
    if (isinf(x)) return 0;
    if (x != x) return x;
    if (fabs(t) < (order ? 4 + 0.5 * order : 0.5)) {
        y = sinc_series(t, order);
    } else {
        for (int n = 0; n <= order; n++) y = (sine_of_pi(x, n) - n * y) / t;
    }
    return y * pow(M_PI, order);
}

#ifdef ISA
/*
 * sinc on vectors. With n the whole number next to x and f = x - n, which is exact, it is f / x
 * times sin(pi f) / (pi f) = 1 + t, negative for an odd n. Of f / x the rest is kept; for n = 0 it
 * is 1. At whole numbers f is 0, and so is y, with its sign. float32 is computed in float64.
 */
VECTOR_INLINE vf64 vsinc_f64(vf64 x)
{
    const vf64 n = vrint_f64(x), f = x - n, z = f * f, by = 1 / x, quotient = f * by;
    const vf64 t =
        z * POLYNOMIAL_F64(z, -0x1.a51a6625307d3p+0, 0x1.9f9cb402bc46cp-1, -0x1.86a8e4720db5ap-3,
                           0x1.ac6805cf34091p-6, -0x1.33816aa3bc1aep-9, 0x1.3747198494615p-13,
                           -0x1.d42434f7fa233p-18, 0x1.0fb0f0a8cccb5p-22, -0x1.e8d4ca2ea8d2dp-28);
    const vi64 near = (vi64)(n == 0), odd = (vi64)(vrint_f64(0.5 * n) != 0.5 * n);
    const vf64 k = vselect_f64(near, vset_f64(1), quotient);
    const vf64 rest = (vf64)(~near & (vi64)(vrest_f64(quotient, x, f) * -by));
    const vf64 y = vcopysign_f64(k + vfma_f64(k, t, vfma_f64(rest, t, rest)), k);
    return (vf64)(~(vi64)(vabs_f64(x) == INFINITY) & ((vi64)y ^ (odd & INT64_MIN)));
}
VECTOR_INLINE vf32 vsinc_f32(vf32 x)
{
    return halves_f32(vsinc_f64(half_f64(x, 0)), vsinc_f64(half_f64(x, 1)));
}
#define vsinc(x) VECTOR_CHOOSE(vsinc, x)(x)

#define TYPE f32
#include "ops/compound.typed.h"
#define TYPE f64
#include "ops/compound.typed.h"
#endif

/* ---- Two operands ---------------------------------------------------------------------------- */

/* hypot: y = sqrt(a^2 + b^2) without overflow, da = dy a / y, db = dy b / y, 0 at the origin */
VECTOR_LOOPS2(hypot, vhypot(a, b));
PLAIN(hypot, hypot(x[0], x[1]));

static bool hypot_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ed_mul(g->dy[0], ed_div_no_nan(g->inputs[0], g->outputs[0])));
    GIVE(g, 1, ed_mul(g->dy[0], ed_div_no_nan(g->inputs[1], g->outputs[0])));
    return true;
}

ELEMENTWISE(hypot, "y = sqrt(a^2 + b^2)", TWO(ED_SET_FLOAT), .gradient = hypot_gradient, SAVES_AB,
            SAVES_Y, .samples = SAMPLES2);
FUNCTION2(hypot);

/* logaddexp: y = ln(e^a + e^b) = max(a, b) + softplus(-|a - b|), da = dy sigmoid(a - b),
 * db = dy sigmoid(b - a); equal infinities share */
VECTOR_LOOPS2(logaddexp, vmax(a, b) + vsoftplus(-vabs(vselect(a == b, vset(a, 0), a - b))));
PLAIN(logaddexp, x[0] == x[1] ? x[0] + log(2)
                 : x[0] > x[1] ? x[0] + log1p(exp(x[1] - x[0]))
                               : x[1] + log1p(exp(x[0] - x[1])));

static bool logaddexp_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    ed_tensor *alike = ed_logical_and(ed_equal(a, b), ed_is_inf(a));
    ed_tensor *difference = ed_where(alike, 0, ed_sub(a, b));
    GIVE(g, 0, ed_mul(g->dy[0], ed_sigmoid(difference)));
    GIVE(g, 1, ed_mul(g->dy[0], ed_sigmoid(ed_neg(difference))));
    return true;
}

ELEMENTWISE(logaddexp, "y = ln(e^a + e^b)", TWO(ED_SET_FLOAT), .gradient = logaddexp_gradient,
            SAVES_AB, .samples = SAMPLES2);
FUNCTION2(logaddexp);

/* nextafter: y = the neighbour of a on the way to b, da = dy, db = 0 */
VECTOR_LOOP2(nextafter, f32, nextafter_of_f32(a, b))
VECTOR_LOOP2(nextafter, f64, nextafter_of_f64(a, b))
LOOPS(nextafter, LOOPS_FLOAT(nextafter));
PLAIN(nextafter, nextafter(x[0], x[1]));

static bool nextafter_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, g->dy[0]);
    GIVE(g, 1, ed_zeros_like(g->dy[0]));
    return true;
}

ELEMENTWISE(nextafter, "y = the next number after a towards b", TWO(ED_SET_FLOAT),
            .gradient = nextafter_gradient, .samples = SAMPLES2);
FUNCTION2(nextafter);

/* ---- Three operands -------------------------------------------------------------------------- */

#define THREE(x, y, z)                                                                             \
    .operands = {{x, ED_SET_FLOAT, 'T', .saved = true},                                            \
                 {y, ED_SET_FLOAT, 'T', .saved = true},                                            \
                 {z, ED_SET_FLOAT, 'T', .saved = true}}
#define SAMPLES3                                                                                   \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4),                          \
                    ED_SAMPLE_IN(0, 1, 3, 4)}},                                                    \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 1, 3), ED_SAMPLE_IN(-2, 2, 4, 1), ED_SAMPLE_IN(0, 1)}}, \
        {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(0, 1, 5)}})

/* fma: y = a b + c, rounded once, da = dy b, db = dy a, dc = dy */
LOOPS(fma, LOOPS_FLOAT(fma));
PLAIN(fma, fma(x[0], x[1], x[2]));

static bool fma_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ed_mul(g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_mul(g->dy[0], g->inputs[0]));
    GIVE(g, 2, g->dy[0]);
    return true;
}

ELEMENTWISE(fma, "y = a b + c, rounded once", THREE("a", "b", "c"), .gradient = fma_gradient,
            .samples = SAMPLES3);

/* lerp: y = a + weight (b - a), da = dy (1 - weight), db = dy weight, dweight = dy (b - a) */
LOOPS(lerp, LOOPS_FLOAT(lerp));
PLAIN(lerp, x[2] < 0.5 ? x[0] + x[2] * (x[1] - x[0]) : x[1] - (x[1] - x[0]) * (1 - x[2]));

static bool lerp_gradient(const ed_gradient_call *g)
{
    ed_tensor *weight = g->inputs[2];
    GIVE(g, 0, ed_mul(g->dy[0], ed_sub(1, weight)));
    GIVE(g, 1, ed_mul(g->dy[0], weight));
    GIVE(g, 2, ed_mul(g->dy[0], ed_sub(g->inputs[1], g->inputs[0])));
    return true;
}

ELEMENTWISE(lerp, "y = a + weight (b - a), a for weight 0 and b for weight 1",
            THREE("a", "b", "weight"), .gradient = lerp_gradient, .samples = SAMPLES3);

#ifndef ISA
ed_tensor *(ed_fma)(ed_tensor *a, ed_tensor *b, ed_tensor *c)
{
    return CALL_OP(fma, NULL, a, b, c);
}

ed_tensor *(ed_lerp)(ed_tensor *a, ed_tensor *b, ed_tensor *weight)
{
    return CALL_OP(lerp, NULL, a, b, weight);
}
#endif

/* ---- One operand ----------------------------------------------------------------------------- */

/* sinc: y = sin(pi x) / (pi x) */
VECTOR_LOOPS1(sinc, vsinc(x));
PLAIN(sinc, x[0] == 0 ? 1 : isinf(x[0]) ? 0 : sin(M_PI * fmod(x[0], 2)) / (M_PI * x[0]));

LOOPS(sinc_slope, LOOPS_FLOAT(sinc_slope));
PLAIN(sinc_slope, sinc_slope_of(x[0], SINC_ORDER));

#ifndef ISA
extern const ed_op ed_op_sinc_slope;

static ed_tensor *sinc_slope(ed_tensor *x, int64_t order)
{
    return CALL_OP(sinc_slope, ED_ATTRS(SINC_ATTRS, sinc_attrs, .order = order), x);
}

static bool sinc_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_mul(g->dy[0], sinc_slope(g->inputs[0], 1));
    return true;
}

static bool sinc_slope_gradient(const ed_gradient_call *g)
{
    const int64_t order = ((const sinc_attrs *)g->attrs)->order;
    g->dx[0] = ed_mul(g->dy[0], sinc_slope(g->inputs[0], order + 1));
    return true;
}

ELEMENTWISE(sinc, "y = sin(pi x) / (pi x), 1 for 0", ONE(ED_SET_FLOAT), .gradient = sinc_gradient,
            SAVES_X, .samples = SAMPLES1(-3, 3));
ELEMENTWISE(sinc_slope, "a derivative of sinc", ONE(ED_SET_FLOAT), .flags = ED_OP_INTERNAL,
            ED_OP_ATTRS(SINC_ATTRS, sinc_attrs), .gradient = sinc_slope_gradient, SAVES_X,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-3, 3, 3, 5)},
                                   .attrs = ED_ATTRS(SINC_ATTRS, sinc_attrs, .order = 1)},
                                  {.inputs = {ED_SAMPLE_IN(-3, 3, 5)}}));
#endif
FUNCTION1(sinc);

/* nan_to_num: y = x where it is finite, else the number for NaN, inf, -inf; dx = dy where x is
 * finite, else 0 */
LOOPS(nan_to_num, LOOPS_FLOAT(nan_to_num));

LOOP_HELPER double nan_to_num_of(double x, const ed_nan_to_num_options *o)
{
    if (isfinite(x)) return x;
    if (x != x) return o->nan;
    const double other = x > 0 ? o->posinf : o->neginf;
    return other == other ? other : x > 0 ? DBL_MAX : -DBL_MAX;
}
PLAIN(nan_to_num, nan_to_num_of(x[0], attrs));

GRADIENT1(nan_to_num, ed_where(ed_is_finite(x), dy, 0));
ELEMENTWISE(nan_to_num, "y = x, with other numbers for NaN, inf and -inf", ONE(ED_SET_FLOAT),
            ED_OP_ATTRS(ED_NAN_TO_NUM_OPTIONS, ed_nan_to_num_options),
            .gradient = nan_to_num_gradient, SAVES_X,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}},
                                  {.inputs = {ED_SAMPLE_IN(-2, 2, 4)},
                                   .attrs = ED_ATTRS(ED_NAN_TO_NUM_OPTIONS, ed_nan_to_num_options,
                                                     .nan = 3, .posinf = 4, .neginf = -5)}));
#ifndef ISA
ed_tensor *ed_nan_to_num_with(ed_tensor *x, const ed_nan_to_num_options *options)
{
    return CALL_OP(nan_to_num, options, x);
}
#endif
