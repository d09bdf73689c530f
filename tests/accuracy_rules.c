/* True values and bounds of arithmetic, of functions that the C library has, of activations and of
 * slopes. Where the value depends on the type, as the neighbour of a number does, both are told. */
#include "tests/accuracy.h"
#include <float.h>
#include <math.h>

const accuracy_rule *accuracy_rule_at(int n)
{
    static const accuracy_rule *const lists[] = {accuracy_rules, accuracy_special_rules};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const accuracy_rule *r = lists[i]; r->name; r++)
            if (n-- == 0) return r;
    return NULL;
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* A sum that cancels has the error of its operands' rounding. */
static long double larger(const long double *x)
{
    return fmaxl(fabsl(x[0]), fabsl(x[1]));
}

static long double floor_mod(long double a, long double b)
{
    const long double rest = fmodl(a, b);
    return rest == 0 ? copysignl(0, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}

ACCURACY_TRUE(add, x + y);
ACCURACY_TRUE(sub, x - y);
ACCURACY_TRUE(mul, x *y);
ACCURACY_TRUE(div, x / y);
ACCURACY_TRUE(neg, -x);
ACCURACY_TRUE(square, x *x);
ACCURACY_TRUE(squared_difference, (x - y) * (x - y));
ACCURACY_TRUE(reciprocal, 1 / x);
ACCURACY_TRUE(fma, fmal(x, y, z));
ACCURACY_TRUE(lerp, fmal(z, y - x, x));
ACCURACY_TRUE(stretch, (x - y) + y); /* its factor is 1 by default */
ACCURACY_TRUE(sign, x > 0 ? 1 : x == 0 ? 0 : x != x ? x : -1);
ACCURACY_TRUE_TWICE(abs, fabs(x), fabsl(x));
ACCURACY_TRUE_TWICE(maximum, x > y || x != x ? x : y, x > y || x != x ? x : y);
ACCURACY_TRUE_TWICE(minimum, x < y || x != x ? x : y, x < y || x != x ? x : y);
ACCURACY_TRUE(clip, x);
ACCURACY_TRUE(clip_gradient, y == y ? x : 0);
ACCURACY_TRUE(floor_mod, floor_mod(x, y));
ACCURACY_TRUE(truncatemod, fmodl(x, y));
ACCURACY_TRUE(div_no_nan, y == 0 ? 0 : x / y);
ACCURACY_TRUE(mul_no_nan, y == 0 ? 0 : x * y);
ACCURACY_TRUE(xdivy, x == 0 ? 0 : x / y);
ACCURACY_TRUE(xlogy, x == 0 ? 0 : x * logl(y));
ACCURACY_TRUE(xlog1py, x == 0 ? 0 : x * log1pl(y));
ACCURACY_TRUE(sqrt_gradient, x == 0 ? x : x / (2 * y));
ACCURACY_TRUE(rsqrt_gradient, x == 0 ? x : x * y * y * y / -2);
ACCURACY_TRUE(reciprocal_gradient, x == 0 ? x : -x * y * y);
ACCURACY_TRUE_TWICE(floor, floor(x), floorl(x));
ACCURACY_TRUE_TWICE(ceil, ceil(x), ceill(x));
ACCURACY_TRUE_TWICE(round, nearbyint(x), nearbyintl(x));
ACCURACY_TRUE_TWICE(trunc, trunc(x), truncl(x));
ACCURACY_TRUE_TWICE(rint, nearbyint(x), nearbyintl(x));
/* Of the quotient as the type has it. */
ACCURACY_TRUE_TWICE(floor_div, floorf((float)x / (float)y), floor((double)x / (double)y));
ACCURACY_TRUE_TWICE(truncatediv, truncf((float)x / (float)y), trunc((double)x / (double)y));
ACCURACY_TRUE_TWICE(nextafter, nextafterf((float)x, (float)y), nextafter((double)x, (double)y));
ACCURACY_TRUE_TWICE(nan_to_num, x != x ? 0 : fmax(fmin(x, (double)FLT_MAX), (double)-FLT_MAX),
                    x != x ? 0 : fmaxl(fminl(x, (long double)DBL_MAX), (long double)-DBL_MAX));

/* ---- Functions of the C library -------------------------------------------------------------- */

#define TRUE_LIBM(name) ACCURACY_TRUE_TWICE(name, name(x), name##l(x))

TRUE_LIBM(exp);
TRUE_LIBM(expm1);
TRUE_LIBM(log);
TRUE_LIBM(log1p);
TRUE_LIBM(log2);
TRUE_LIBM(log10);
TRUE_LIBM(exp2);
TRUE_LIBM(cbrt);
TRUE_LIBM(sin);
TRUE_LIBM(cos);
TRUE_LIBM(tan);
TRUE_LIBM(asin);
TRUE_LIBM(acos);
TRUE_LIBM(atan);
TRUE_LIBM(sinh);
TRUE_LIBM(cosh);
TRUE_LIBM(tanh);
TRUE_LIBM(asinh);
TRUE_LIBM(acosh);
TRUE_LIBM(atanh);
TRUE_LIBM(erf);
TRUE_LIBM(erfc);
TRUE_LIBM(sqrt);
TRUE_LIBM(lgamma);
ACCURACY_TRUE_TWICE(rsqrt, 1 / sqrt(x), 1 / sqrtl(x));
ACCURACY_TRUE_TWICE(pow, pow(x, y), powl(x, y));
ACCURACY_TRUE_TWICE(hypot, hypot(x, y), hypotl(x, y));
ACCURACY_TRUE_TWICE(atan2, atan2(x, y), atan2l(x, y));
ACCURACY_TRUE(tanh_gradient, x *((1 - y) * (1 + y)));

/* ---- Activations ----------------------------------------------------------------------------- */

static long double softplus_of(long double x)
{
    return (x > 0 ? x : x == x ? 0 : x) + log1pl(expl(-fabsl(x)));
}

static long double sigmoid_of(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

/* x - tanh x = (x cosh x - sinh x) / cosh x; of the numerator the series, whose terms have one
 * sign. */
static long double tanh_shrink_of(long double x)
{
    if (fabsl(x) > 4) return x - tanhl(x);
    long double term = x * x * x / 6, sum = 0; /* x^(2k + 1) / (2k + 1)! */
    for (int k = 1; k < 30; k++) {
        sum += 2 * k * term;
        term *= x * x / ((2 * k + 2) * (2 * k + 3));
    }
    return x == 0 ? x : sum / coshl(x);
}

/* cosh x - 1 = 2 sinh^2(x / 2) does not cancel. */
static long double log_cosh_of(long double x)
{
    const long double s = sinhl(x / 2);
    return fabsl(x) < 20 ? log1pl(2 * s * s)
                         : fabsl(x) + log1pl(expl(-2 * fabsl(x))) - 0.693147180559945309417232L;
}

/* (x + sqrt(x^2 + 4)) / 2 */
static long double squareplus_of(long double x)
{
    const long double root = hypotl(x, 2);
    return x < 0 ? 2 / (root - x) : (x + root) / 2;
}

static long double second(const long double *x)
{
    return fabsl(x[1]);
}

static long double third(const long double *x)
{
    return fabsl(x[2]);
}

#define SELU_SCALE 1.05070098735548049341933498L
#define SELU_BELOW 1.75809934084737685994021752L

ACCURACY_TRUE(relu, x > 0 || x != x ? x : 0);
ACCURACY_TRUE(relu6, x > 6 ? 6 : x > 0 || x != x ? x : 0);
ACCURACY_TRUE(bounded_relu, x > 0 || x != x ? x : 0);
ACCURACY_TRUE(threshold, x <= 0 ? 0 : x);
ACCURACY_TRUE(leaky_relu, x > 0 ? x : 0.2L * x);
ACCURACY_TRUE(prelu, x > 0 ? x : x * y);
ACCURACY_TRUE(hard_tanh, x<-1 ? -1 : x> 1 ? 1 : x);
ACCURACY_TRUE(hard_shrink, fabsl(x) <= 0.5L ? 0 : x);
ACCURACY_TRUE(soft_shrink, fabsl(x) <= 0.5L ? 0 : x - copysignl(0.5L, x));
ACCURACY_TRUE(hard_silu, x<-3 ? 0 : x> 3 ? x : x *((x + 3) / 6));
ACCURACY_TRUE_TWICE(hard_sigmoid, x<-3 ? 0 : x> 3 ? 1 : (x + 3) / 6,
                    x<-3 ? 0 : x> 3 ? 1 : (x + 3) / 6);
ACCURACY_TRUE(sparse_plus, x >= 1 || x != x ? x : x <= -1 ? 0 : (x + 1) * (x + 1) / 4);
ACCURACY_TRUE(sparse_sigmoid, x >= 1 ? 1 : x <= -1 ? 0 : (x + 1) / 2);
ACCURACY_TRUE(softsign, isinf(x) ? NAN : x / (1 + fabsl(x)));
ACCURACY_TRUE(elu, x > 0 ? x : expm1l(x));
ACCURACY_TRUE(celu, x > 0 ? x : expm1l(x));
ACCURACY_TRUE(selu, x > 0 ? SELU_SCALE * x : SELU_BELOW * expm1l(x));
ACCURACY_TRUE_TWICE(sigmoid, x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)), sigmoid_of(x));
ACCURACY_TRUE(softplus, softplus_of(x));
ACCURACY_TRUE(log_sigmoid, -softplus_of(-x));
ACCURACY_TRUE_TWICE(silu, x < 0 ? x * exp(x) / (1 + exp(x)) : x / (1 + exp(-x)),
                    x < 0 ? x * expl(x) / (1 + expl(x)) : x / (1 + expl(-x)));
ACCURACY_TRUE(mish, x *tanhl(softplus_of(x)));
ACCURACY_TRUE(tanh_shrink, tanh_shrink_of(x));
ACCURACY_TRUE(squareplus, squareplus_of(x));
ACCURACY_TRUE(log_cosh_each, log_cosh_of(x));
ACCURACY_TRUE(logaddexp,
              x == y ? x + 0.693147180559945309417232L : fmaxl(x, y) + log1pl(expl(-fabsl(x - y))));
ACCURACY_TRUE(sigmoid_cross_entropy, fmaxl(y, 0) - x * y + log1pl(expl(-fabsl(y))));
ACCURACY_TRUE(sigmoid_cross_entropy_gradient, (sigmoid_of(y) - x) * z);
ACCURACY_TRUE(relu_gradient, y > 0 ? x : 0);
ACCURACY_TRUE(relu6_gradient, y > 0 && y < 6 ? x : 0);
ACCURACY_TRUE(leaky_relu_gradient, y > 0 ? x : 0.2L * x);
ACCURACY_TRUE(elu_gradient, y < 0 ? x * (y + 1) : x);
ACCURACY_TRUE(sigmoid_gradient, x *y *(1 - y));
ACCURACY_TRUE(softplus_gradient, x *sigmoid_of(y));
ACCURACY_TRUE(silu_gradient, x *(sigmoid_of(y) * (1 + y * sigmoid_of(-y))));

/*
 * gelu, gelu_tanh and their slopes. Rounding an exponent of 745 costs digits in long double too: it
 * is taken in two parts, and so are the constants in it. Below -50 the functions are 0.
 */
#define ROOT_HALF       0.707106781186547524381894L
#define ROOT_HALF_LOW   1.895032558893257079655062e-20L
#define ROOT_8_BY_PI    1.595769121605730711706272L
#define ROOT_8_LOW      5.351177755720478292013163e-20L
#define CUBIC           0.07135481627260024877721376L /* 0.044715 sqrt(8 / pi) */
#define CUBIC_LOW       -8.750062144008984958247768e-22L
#define TWO_BY_ROOT_PI  1.128379167095512573896159L
#define ONE_BY_ROOT_2PI 0.3989422804014326779399461L

/* erfc(-x / sqrt 2) / 2: the rest of the argument times erfc' is added. */
static long double normal_below(long double x)
{
    const long double t = -ROOT_HALF * x, rest = fmal(-ROOT_HALF, x, -t) - ROOT_HALF_LOW * x;
    return 0.5L * (erfcl(t) - rest * TWO_BY_ROOT_PI * expl(-t * t));
}

/* e^(-x^2/2) / sqrt(2 pi) */
static long double normal_density(long double x)
{
    const long double square = x * x, rest = fmal(x, x, -square);
    return ONE_BY_ROOT_2PI * expl(-0.5L * square) * (1 - 0.5L * rest);
}

/* e^-(c x + c d x^3) */
static long double gelu_tanh_power(long double x)
{
    const long double square = x * x, rest = fmal(x, x, -square), cube = CUBIC * square;
    const long double factor = ROOT_8_BY_PI + cube, u = x * factor;
    long double low = fmal(CUBIC, square, -cube) + CUBIC * rest + CUBIC_LOW * square + ROOT_8_LOW;
    low += cube > ROOT_8_BY_PI ? ROOT_8_BY_PI - (factor - cube) : cube - (factor - ROOT_8_BY_PI);
    return expl(-u) * (1 - (fmal(x, factor, -u) + x * low));
}

static long double gelu_tanh_slope(long double x)
{
    const long double e = gelu_tanh_power(x), s = 1 / (1 + e), rest = e / (1 + e);
    return s * (1 + x * rest * (ROOT_8_BY_PI + 3 * CUBIC * x * x));
}

ACCURACY_TRUE_TWICE(gelu, x < -50 ? -0.0 : 0.5 * x * erfc((double)-ROOT_HALF * x),
                    x<-50 ? -0.0L : x> 50 ? x : x *normal_below(x));
ACCURACY_TRUE_TWICE(gelu_tanh,
                    x < -50 ? -0.0
                            : x / (1 + exp(-x * ((double)ROOT_8_BY_PI + (double)CUBIC * x * x))),
                    x<-50 ? -0.0L : x> 50 ? x : x / (1 + gelu_tanh_power(x)));
ACCURACY_TRUE(gelu_gradient, x *(normal_below(y) + y * normal_density(y)));
ACCURACY_TRUE(gelu_tanh_gradient, x *gelu_tanh_slope(y));

/* ---- Rules ----------------------------------------------------------------------------------- */

#define RULE  ACCURACY_RULE
#define TWICE ACCURACY_RULE_TWICE

/* What is rounded once: in float64 the true value is rounded to long double too. */
#define ONCE(op, ...) ACCURACY_RULE(op, -4, 4, 0.5, 0.501, __VA_ARGS__)

/* What is not rounded at all. */
#define EXACT(op, ...) ACCURACY_RULE(op, -8, 8, 0, 0, __VA_ARGS__)

/* A product whose first factors may over- or underflow is measured where they don't. */
#define FACTORS .within = true, .remark = "in the range, where no factor over- or underflows"

/* Measured: putting back what roundings lose, or rounding less often. */
#define TAKES_TIME "; 2 would take 30 % more time"

/* Operands dy = 1 and x. */
#define SLOPE(op, low, high, bound, why, ...)                                                      \
    {                                                                                              \
        .name = #op, .range = {{1, 1}, {low, high}}, .bound32 = bound, .bound64 = bound,           \
        .truth64 = op##_true64, .within = true,                                                    \
        .remark = "for dy = 1, below the zero of the slope" why, ##__VA_ARGS__                     \
    }

const accuracy_rule accuracy_rules[] = {
    ONCE(add),
    ONCE(sub),
    ONCE(mul),
    ONCE(div),
    EXACT(neg),
    ONCE(square),
    RULE(squared_difference, -4, 4, 2, 2),
    ONCE(reciprocal),
    ONCE(fma),
    {.name = "lerp",
     .range = {{-4, 4}, {-4, 4}, {0, 1}},
     .bound32 = 2,
     .bound64 = 2,
     .truth64 = lerp_true64,
     .magnitude = larger,
     .within = true,
     .remark = "in ULP of the larger operand"},
    {.name = "stretch",
     .range = {{-4, 4}, {-4, 4}},
     .bound32 = 2,
     .bound64 = 2,
     .truth64 = stretch_true64,
     .magnitude = larger,
     .within = true,
     .remark = "by a factor of 1; in ULP of the larger operand"},
    EXACT(sign),
    EXACT(abs, .truth32 = abs_true32),
    EXACT(maximum, .truth32 = maximum_true32),
    EXACT(minimum, .truth32 = minimum_true32),
    EXACT(clip),
    EXACT(clip_gradient),
    ONCE(floor_mod),
    EXACT(truncatemod),
    ONCE(div_no_nan),
    ONCE(mul_no_nan),
    ONCE(xdivy),
    RULE(xlogy, 0, 8, 2, 2),
    RULE(xlog1py, -1, 8, 2, 2),
    RULE(sqrt_gradient, 0.01, 4, 1, 1, FACTORS),
    RULE(rsqrt_gradient, 0.01, 4, 2, 2, FACTORS, .unfused = 2.5),
    RULE(reciprocal_gradient, -4, 4, 1.5, 1.5, FACTORS),
    EXACT(floor, .truth32 = floor_true32),
    EXACT(ceil, .truth32 = ceil_true32),
    EXACT(round, .truth32 = round_true32),
    EXACT(trunc, .truth32 = trunc_true32),
    EXACT(rint, .truth32 = rint_true32),
    EXACT(floor_div, .truth32 = floor_div_true32, .remark = "of the quotient that the dtype has"),
    EXACT(truncatediv, .truth32 = truncatediv_true32,
          .remark = "of the quotient that the dtype has"),
    EXACT(nextafter, .truth32 = nextafter_true32),
    EXACT(nan_to_num, .truth32 = nan_to_num_true32),

    TWICE(exp, -104, 89, 1.0, 1.0),
    TWICE(expm1, -20, 89, 1.0, 1.0),
    TWICE(log, 0, 3, 1.0, 1.0),
    TWICE(log1p, -1, 3, 1.0, 1.1),
    TWICE(log2, 0, 3, 1.0, 1.0),
    TWICE(log10, 0, 3, 1.0, 1.0),
    TWICE(exp2, -150, 128, 1.0, 1.0),
    TWICE(cbrt, -8, 8, 1.0, 1.0),
    TWICE(sin, -100, 100, 1.0, 1.0),
    TWICE(cos, -100, 100, 1.0, 1.0),
    TWICE(tan, -100, 100, 1.0, 1.0),
    TWICE(asin, -1, 1, 1.0, 1.0),
    TWICE(acos, -1, 1, 1.0, 1.0),
    TWICE(atan, -4, 4, 1.0, 1.0),
    TWICE(sinh, -90, 90, 1.0, 1.0),
    TWICE(cosh, -90, 90, 1.0, 1.0),
    TWICE(tanh, -10, 10, 1, 1.0, .unfused = 1.1),
    TWICE(asinh, -100, 100, 1.1, 1.1),
    TWICE(acosh, 1, 100, 1.0, 1.1),
    TWICE(atanh, -1, 1, 1.1, 1.1),
    TWICE(erf, -4, 4, 1.0, 1.0, .unfused = 1.1),
    TWICE(erfc, -4, 10, 2.1, 1.5),
    TWICE(sqrt, 0, 100, 0.5, 0.5),
    TWICE(rsqrt, 0, 100, 1.5, 1.5),
    TWICE(pow, 0, 20, 0.51, 2.0),
    TWICE(hypot, -4, 4, 1.3, 1.0),
    TWICE(atan2, -4, 4, 1.7, 1.5),
    TWICE(lgamma, 0.1, 30, 1.0, 3.0),
    RULE(tanh_gradient, -1, 1, 2, 2, FACTORS),

    EXACT(relu),
    EXACT(relu6),
    EXACT(bounded_relu),
    EXACT(threshold),
    RULE(leaky_relu, -4, 4, 1, 1),
    ONCE(prelu),
    EXACT(hard_tanh),
    EXACT(hard_shrink),
    ONCE(soft_shrink),
    RULE(hard_silu, -4, 4, 2, 2),
    TWICE(hard_sigmoid, -4, 4, 2, 2),
    RULE(sparse_plus, -2, 2, 2, 2),
    RULE(sparse_sigmoid, -2, 2, 1, 1),
    RULE(softsign, -4, 4, 2, 2),
    RULE(elu, -20, 1, 1.1, 1.0),
    RULE(celu, -20, 1, 1.1, 1.0),
    RULE(selu, -20, 1, 2, 2),
    TWICE(sigmoid, -104, 20, 1.0, 1.0),
    RULE(softplus, -104, 20, 1.7, 1.5),
    RULE(log_sigmoid, -20, 104, 1.7, 1.5),
    TWICE(silu, -120, 20, 2, 2, .unfused = 2.3),
    RULE(mish, -104, 20, 2, 2, .unfused = 2.2),
    RULE(tanh_shrink, -5, 5, 2, 2, .unfused = 2.4),
    RULE(squareplus, -20, 20, 1.6, 1.6),
    RULE(log_cosh_each, -20, 20, 2, 2),
    {.name = "logaddexp",
     .range = {{-20, 20}},
     .bound32 = 2,
     .bound64 = 2,
     .truth64 = logaddexp_true64,
     .magnitude = larger,
     .within = true,
     .remark = "in ULP of the larger operand"},
    {.name = "sigmoid_cross_entropy",
     .range = {{0, 1}, {-20, 20}},
     .bound32 = 2,
     .bound64 = 2,
     .truth64 = sigmoid_cross_entropy_true64,
     .magnitude = second,
     .within = true,
     .remark = "in ULP of the logit"},
    {.name = "sigmoid_cross_entropy_gradient",
     .range = {{0, 1}, {-20, 20}, {-4, 4}},
     .bound32 = 2,
     .bound64 = 2,
     .truth64 = sigmoid_cross_entropy_gradient_true64,
     .magnitude = third,
     .within = true,
     .remark = "in ULP of dy"},
    EXACT(relu_gradient),
    EXACT(relu6_gradient),
    RULE(leaky_relu_gradient, -4, 4, 1, 1),
    RULE(elu_gradient, -1, 1, 2, 2),
    RULE(sigmoid_gradient, 0, 1, 2, 2, FACTORS),
    RULE(softplus_gradient, -4, 4, 2, 2, FACTORS),
    SLOPE(silu_gradient, -80, -2, 2, "", .unfused = 2.3),

    /* The second range is where only float64 is not 0. */
    TWICE(gelu, -15, 8, 2, 2, .unfused = 2.3),
    TWICE(gelu, -39, -13, 2, 2, .unfused = 2.3),
    TWICE(gelu_tanh, -11, 8, 2, 2, .unfused = 2.4),
    TWICE(gelu_tanh, -22, -9, 2, 2, .unfused = 2.4),
    SLOPE(gelu_gradient, -14, -2, 4.5, ""),
    SLOPE(gelu_gradient, -39, -13, 4.5, ""),
    SLOPE(gelu_tanh_gradient, -10, -2, 3.2, TAKES_TIME, .unfused = 3.7),
    SLOPE(gelu_tanh_gradient, -22, -9, 3.2, TAKES_TIME, .unfused = 3.7),
    {.name = NULL},
};
