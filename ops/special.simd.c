/*
 * Special functions, computed in float64 (ops/special_functions.h) for both dtypes; see
 * ops/elementwise.h for how a family file is read.
 */
#include "ops/special_functions.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <math.h>
#ifdef ISA
#include "ops/special_vectors.h"
#endif

#define LOOPS2_SPECIAL(name, expression)                                                           \
    LOOP2(name, f32, f32, (float)(expression))                                                     \
    LOOP2(name, f64, f64, expression)                                                              \
    LOOPS(name, LOOPS_FLOAT(name))

#define HALF_ROOT_PI 0x1.c5bf891b4ef6bp-1 /* sqrt(pi) / 2 */
#define ROOT_2_PI    0x1.40d931ff62706p+1 /* sqrt(2 pi) */

/* ---- Inverses of erf, erfc and the normal distribution --------------------------------------- */

#ifndef ISA
/* The x in low..high with f(x) = y for an increasing f, by bisection. */
static double bisected(double (*f)(double), double y, double low, double high)
{
    for (int i = 0; i < 64; i++) {
        const double middle = low + (high - low) / 2;
        *(f(middle) < y ? &low : &high) = middle;
    }
    return low + (high - low) / 2;
}

static double minus_erfc(double x)
{
    return -erfc(x);
}

/* erf near its ends is told by erfc. */
static double plain_erfinv_of(double x)
{
    if (x != x || fabs(x) > 1) return NAN;
    if (fabs(x) == 1) return x * INFINITY;
    if (fabs(x) < 0.5) return bisected(erf, x, -1, 1);
    return copysign(bisected(minus_erfc, fabs(x) - 1, 0, 10), x);
}

/* ln of 1 / erfc(x) for large x, where erfc itself has few digits. */
static double minus_ln_erfc(double x)
{
    const double r = 1 / (2 * x * x);
    return x * x + log(x * sqrt(M_PI)) - log1p(r * (-1 + r * (3 - 15 * r)));
}

static double plain_erfcinv_of(double x)
{
    if (!(x >= 0 && x <= 2)) return NAN;
    if (x == 0 || x == 2) return x == 0 ? INFINITY : -INFINITY;
    if (x < 1e-290) return bisected(minus_ln_erfc, -log(x), 20, 30);
    return x > 0.5 && x < 1.5 ? bisected(erf, 1 - x, -1, 1) : bisected(minus_erfc, -x, -10, 30);
}

static double plain_ndtri_of(double p)
{
    return -plain_erfcinv_of(2 * p) * sqrt(2);
}
#endif

/* erfinv: dx = dy sqrt(pi) / 2 e^(y^2) */
VECTOR_LOOPS1(erfinv, verfinv(x));
PLAIN(erfinv, plain_erfinv_of(x[0]));
GRADIENT1(erfinv, ed_mul(dy, ed_mul(ed_exp(ed_square(y)), HALF_ROOT_PI)));
ELEMENTWISE(erfinv, "y with erf y = x", ONE(ED_SET_FLOAT), .gradient = erfinv_gradient, SAVES_Y,
            .samples = SAMPLES1(-0.9, 0.9));
FUNCTION1(erfinv);

/* erfcinv: dx = -dy sqrt(pi) / 2 e^(y^2) */
VECTOR_LOOPS1(erfcinv, verfcinv(x));
PLAIN(erfcinv, plain_erfcinv_of(x[0]));
GRADIENT1(erfcinv, ed_mul(dy, ed_mul(ed_exp(ed_square(y)), -HALF_ROOT_PI)));
ELEMENTWISE(erfcinv, "y with 1 - erf y = x", ONE(ED_SET_FLOAT), .gradient = erfcinv_gradient,
            SAVES_Y, .samples = SAMPLES1(0.1, 1.9));
FUNCTION1(erfcinv);

/* ndtri: dx = dy sqrt(2 pi) e^(y^2 / 2) */
VECTOR_LOOPS1(ndtri, vndtri(x));
PLAIN(ndtri, plain_ndtri_of(x[0]));
GRADIENT1(ndtri, ed_mul(dy, ed_mul(ed_exp(ed_mul(ed_square(y), 0.5)), ROOT_2_PI)));
ELEMENTWISE(ndtri, "the quantile of the normal distribution", ONE(ED_SET_FLOAT),
            .gradient = ndtri_gradient, SAVES_Y, .samples = SAMPLES1(0.1, 0.9));
FUNCTION1(ndtri);

/* ---- The gamma function ---------------------------------------------------------------------- */

#ifndef ISA
/* The sum of (x + k)^-s for x > 0 or not: 200 terms, and an integral for the others. */
static double plain_zeta_of(double s, double x)
{
    double y = 0;
    if (s != s || x != x || s < 1) return NAN;
    if (s == 1) return INFINITY;
    if (isinf(s)) return x > 1 ? 0 : x == 1 ? 1 : x > 0 ? INFINITY : NAN;
    if (x == INFINITY) return 0;
    if (x <= 0 && x == floor(x)) return x == 0 || fmod(s, 2) == 0 ? INFINITY : NAN;
    if (x < 0 && s != floor(s)) return NAN;
    if (x < -1e6) return NAN;
    for (; x < 0; x++) y += pow(x, -s);
    for (int k = 0; k < 200; k++, x++) y += pow(x, -s);
    return y + pow(x, 1 - s) / (s - 1) + 0.5 * pow(x, -s) + s / 12 * pow(x, -s - 1) -
           pow(x, -s - 3) * s * (s + 1) * (s + 2) / 720;
}

/* ln |gamma|, by Stirling's formula where that is too large, by reflection below -100. */
static double plain_lgamma_of(double x)
{
    if (x != x) return x;
    if (isinf(x) || (x <= 0 && x == floor(x))) return INFINITY;
    if (fabs(x) < 1e-300) return -log(fabs(x));
    if (fabs(x) < 100) return log(fabs(tgamma(x)));
    if (x < 0) return log(M_PI / fabs(sin(M_PI * fmod(x, 2)))) - plain_lgamma_of(1 - x);
    return (x - 0.5) * log(x) - x + 0.5 * log(2 * M_PI) + 1 / (12 * x);
}

/* By the recurrence up to 200, ln there. */
static double plain_digamma_of(double x)
{
    double y = 0;
    if (x == INFINITY) return x;
    if (x != x || (x <= 0 && x == floor(x)) || x < -1e6) return NAN;
    for (; x < 200; x++) y -= 1 / x;
    return y + log(x) - 1 / (2 * x) - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
}

static double plain_polygamma_of(double n, double x)
{
    if (!(n >= 0) || n != floor(n)) return NAN;
    if (n == 0) return plain_digamma_of(x);
    return (fmod(n, 2) == 0 ? -1 : 1) * tgamma(n + 1) * plain_zeta_of(n + 1, x);
}
#endif

/* lgamma: dx = dy digamma(x) */
VECTOR_LOOPS1(lgamma, vlgamma(x));
PLAIN(lgamma, plain_lgamma_of(x[0]));
GRADIENT1(lgamma, ed_mul(dy, ed_digamma(x)));
ELEMENTWISE(lgamma, "y = ln of the absolute value of the gamma function", ONE(ED_SET_FLOAT),
            .gradient = lgamma_gradient, SAVES_X,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.3, 4, 3, 5)}},
                                  {.inputs = {ED_SAMPLE_IN(-2.8, -2.2, 4)}}));
FUNCTION1(lgamma);

/* digamma: the derivative of lgamma, dx = dy polygamma(1, x) */
VECTOR_LOOPS1(digamma, vdigamma(x));
PLAIN(digamma, plain_digamma_of(x[0]));
GRADIENT1(digamma, ed_mul(dy, ed_polygamma(ed_ones_like(x), x)));
ELEMENTWISE(digamma, "the derivative of lgamma", ONE(ED_SET_FLOAT), .gradient = digamma_gradient,
            SAVES_X,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.3, 4, 3, 5)}},
                                  {.inputs = {ED_SAMPLE_IN(-2.8, -2.2, 4)}}));
FUNCTION1(digamma);

#define ORDER "it counts derivatives"

/* polygamma: the n-th derivative of digamma, dx = dy polygamma(n + 1, x) */
VECTOR_LOOPS2(polygamma, vpolygamma(a, b));
PLAIN(polygamma, plain_polygamma_of(x[0], x[1]));

static bool polygamma_gradient(const ed_gradient_call *g)
{
    ed_tensor *n = g->inputs[0], *x = g->inputs[1];
    GIVE(g, 1, ed_mul(g->dy[0], ed_polygamma(ed_add(n, 1), x)));
    return true;
}

ELEMENTWISE(polygamma, "the n-th derivative of digamma at x; NaN unless n is 0, 1, 2, ...",
            .operands = {{"n", ED_SET_FLOAT, 'T', .saved = true, .no_gradient = ORDER},
                         {"x", ED_SET_FLOAT, 'T', .saved = true}},
            .gradient = polygamma_gradient,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(1, 1, 3, 4),
                                              ED_SAMPLE_IN(0.5, 3, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(2, 2), ED_SAMPLE_IN(0.5, 3, 5)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 0), ED_SAMPLE_IN(0.5, 3, 5)}}));

/* zeta: y = the sum of (q + k)^-x for k = 0, 1, 2, ..., dq = -dy x zeta(x + 1, q) */
VECTOR_LOOPS2(zeta, vzeta(a, b));
PLAIN(zeta, plain_zeta_of(x[0], x[1]));

static bool zeta_gradient(const ed_gradient_call *g)
{
    ed_tensor *x = g->inputs[0], *q = g->inputs[1];
    GIVE(g, 1, ed_neg(ed_mul(g->dy[0], ed_mul(x, ed_zeta(ed_add(x, 1), q)))));
    return true;
}

#define NOT_KNOWN "it has no closed form"
ELEMENTWISE(zeta, "y = the sum of (q + k)^-x for k = 0, 1, 2, ...",
            .operands = {{"x", ED_SET_FLOAT, 'T', .saved = true, .no_gradient = NOT_KNOWN},
                         {"q", ED_SET_FLOAT, 'T', .saved = true}},
            .gradient = zeta_gradient, .samples = SAMPLES2_IN(2.2, 4, 0.5, 3));

/* ---- Incomplete functions -------------------------------------------------------------------- */

#ifndef ISA
/* x^a e^-x times the sum of x^n / gamma(a + n + 1). */
static double plain_igamma_of(double a, double x)
{
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x))) return NAN;
    if (a == 0 || x > 1e6) return a > 1e6 && !isinf(x) ? NAN : 1;
    if (x == 0 || a > 1e6) return 0;
    double term = exp(a * log(x) - x - lgamma(a + 1)), sum = 0;
    for (int n = 1; n < 5000 && (n < x || term > 1e-20 * sum || n < 3); n++) {
        sum += term;
        term *= x / (a + n);
    }
    return sum;
}

/* The same sum, each of whose terms e^f has the derivatives f' e^f, (f'^2 + f'') e^f, ... */
static double plain_igamma_derivative_of(int order, double a, double x)
{
    if (!(a > 0) || !(x >= 0) || (isinf(a) && isinf(x))) return NAN;
    if (x == 0 || x > 1e6 || a > 1e6) return a > 1e6 && x > 1e6 && !isinf(a + x) ? NAN : 0;
    double sum = 0;
    for (int n = 0; n < 3 * x + 60; n++) {
        double of[SPECIAL_MOST_ORDER + 1] = {exp((a + n) * log(x) - x - lgamma(a + n + 1))};
        for (int m = 1; m <= order; m++) {
            double over = 1;
            for (int k = 0; k < m; over = over * (m - 1 - k) / (k + 1), k++) {
                const double f = plain_polygamma_of(k, a + n + 1);
                of[m] += over * (k ? -f : log(x) - f) * of[m - 1 - k];
            }
        }
        sum += of[order];
    }
    return sum;
}

/* The derivative of P by a over the density, negated: the same sum, whose factor is x^(n + 1) / (a
 * ... (a + n)); for large x Simpson's rule for the integral from x on of (t / x)^(a - 1) e^(x - t)
 * (ln t - digamma(a)). */
static double plain_gamma_slope_of(double a, double x)
{
    if (!(a > 0) || !(x >= 0) || isinf(a) || isinf(x)) return NAN;
    if (x == 0) return 0;
    if (isinf(x / a)) return INFINITY;
    if (a > 1e6 && x > a / 2) return 1;
    double sum = 0, term = x / a;
    const int steps = 100000;
    for (int i = 0; x > a + 30 && i <= steps; i++) {
        const double s = 100.0 * i / steps, weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
        sum += weight * exp((a - 1) * log1p(s / x) - s) * (log(x + s) - plain_polygamma_of(0, a));
    }
    if (x > a + 30) return sum * 100 / steps / 3;
    for (int n = 0; n < 3 * x + 60; n++) {
        sum -= term * (log(x) - plain_polygamma_of(0, a + n + 1));
        term *= x / (a + n + 1);
    }
    return sum;
}

/* x^a (1 - x)^b / (a B(a, b)) times the sum of x^n (a + b) ... / ((a + 1) ...). */
static double plain_betainc_of(double a, double b, double x)
{
    if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1) || isinf(a) || isinf(b)) return NAN;
    if (x == 0 || x == 1) return x;
    if (x > 0.6) return 1 - plain_betainc_of(b, a, 1 - x);
    const double part = lgamma(a + 1) + lgamma(b) - lgamma(a + b); /* ln of a B(a, b) */
    double term = exp(a * log(x) + b * log1p(-x) - part), sum = 0;
    for (int n = 1; n < 5000 && (n < 3 || n < b || term > 1e-20 * sum); n++) {
        sum += term;
        term *= x * (a + b + n - 1) / (a + n);
    }
    return sum;
}
#endif

#define IGAMMA_ATTRS(FIELD, T)                                                                     \
    FIELD(T, INT, order, 1, ED_BETWEEN(1, SPECIAL_MOST_ORDER), "of the derivative")
ED_OPTIONS(igamma_attrs, IGAMMA_ATTRS);
#define IGAMMA_ORDER ((int)((const igamma_attrs *)attrs)->order)

#ifdef ISA
#define TYPE f32
#include "ops/special.typed.h"
#define TYPE f64
#include "ops/special.typed.h"
#endif

/* igamma, igammac: the regularized incomplete gamma functions P and Q = 1 - P,
 * dx = dy x^(a - 1) e^-x / gamma(a), da = dy igamma_derivative(a, x), of Q their negatives */
VECTOR_LOOPS2(igamma, vigamma(a, b));
VECTOR_LOOPS2(igammac, vigammac(a, b));
PLAIN(igamma, plain_igamma_of(x[0], x[1]));
PLAIN(igammac, 1 - plain_igamma_of(x[0], x[1]));

/* igamma_derivative: of P by a, of some order; its own are one order higher by a, and by x those of
 * the density of the gamma distribution */
LOOPS(igamma_derivative, LOOPS_FLOAT(igamma_derivative));
PLAIN(igamma_derivative, plain_igamma_derivative_of(IGAMMA_ORDER, x[0], x[1]));

#ifndef ISA
extern const ed_op ed_op_igamma_derivative;

/* The n-th derivative by a of e^f = x^(a - 1) e^-x / gamma(a): by the recurrence of the derivatives
 * of an exponential, whose m-th is the sum of (m - 1 over k) f^(k + 1) times the (m - 1 - k)-th. */
static ed_tensor *density_derivative(ed_tensor *a, ed_tensor *x, int64_t n)
{
    ed_tensor *f[SPECIAL_MOST_ORDER + 1], *of[SPECIAL_MOST_ORDER + 1];
    of[0] = ed_exp(ed_sub(ed_sub(ed_xlogy(ed_sub(a, 1), x), x), ed_lgamma(a)));
    for (int64_t m = 1; m <= n; m++) {
        const int64_t i = m - 1;
        double over = 1; /* i over k */
        f[m] = i ? ed_neg(ed_polygamma((double)i, a)) : ed_sub(ed_log(x), ed_digamma(a));
        of[m] = ed_mul(f[1], of[i]);
        for (int64_t k = 1; k <= i; k++) {
            over = over * (double)(i - k + 1) / (double)k;
            of[m] = ed_add(of[m], ed_mul(ed_mul(f[k + 1], over), of[i - k]));
        }
    }
    return of[n];
}

/* Of the derivative of some order, times sign. */
static bool incomplete_gradient(const ed_gradient_call *g, int64_t order, double sign)
{
    ed_tensor *a = g->inputs[0], *x = g->inputs[1], *dy = ed_mul(g->dy[0], sign);
    GIVE(g, 0,
         ed_mul(dy, CALL_OP(igamma_derivative,
                            ED_ATTRS(IGAMMA_ATTRS, igamma_attrs, .order = order + 1), a, x)));
    GIVE(g, 1, ed_mul(dy, density_derivative(a, x, order)));
    return true;
}

static bool igamma_gradient(const ed_gradient_call *g)
{
    return incomplete_gradient(g, 0, 1);
}

static bool igammac_gradient(const ed_gradient_call *g)
{
    return incomplete_gradient(g, 0, -1);
}

static bool igamma_derivative_gradient(const ed_gradient_call *g)
{
    return incomplete_gradient(g, ((const igamma_attrs *)g->attrs)->order, 1);
}
#endif

#define A_AND_X                                                                                    \
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}, {"x", ED_SET_FLOAT, 'T', .saved = true}}
ELEMENTWISE(igamma, "the regularized lower incomplete gamma function", A_AND_X,
            .gradient = igamma_gradient, .samples = SAMPLES2_IN(0.5, 4, 0.5, 6));
ELEMENTWISE(igammac, "the regularized upper incomplete gamma function", A_AND_X,
            .gradient = igammac_gradient, .samples = SAMPLES2_IN(0.5, 4, 0.5, 6));
ELEMENTWISE(
    igamma_derivative, "a derivative of igamma by a", A_AND_X, .flags = ED_OP_INTERNAL,
    ED_OP_ATTRS(IGAMMA_ATTRS, igamma_attrs), .gradient = igamma_derivative_gradient,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 4, 3, 4), ED_SAMPLE_IN(0.5, 6, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 4), ED_SAMPLE_IN(0.5, 6, 5)},
                           .attrs = ED_ATTRS(IGAMMA_ATTRS, igamma_attrs, .order = 2)},
                          {.inputs = {ED_SAMPLE_IN(0.5, 4, 2, 1), ED_SAMPLE_IN(0.5, 6, 3)}}));

/* random_gamma_slope: f = -p_a / p_x for p = igamma(a, x), by which a sample x of the gamma
 * distribution changes with a; with l = ln x - digamma(a),
 * da = -dy (p_aa / p_x + f l), dx = -dy (l + f ((a - 1) / x - 1)) */
LOOPS2_SPECIAL(random_gamma_slope, special_random_gamma_slope(a, b));
PLAIN(random_gamma_slope, plain_gamma_slope_of(x[0], x[1]));

#ifndef ISA
static bool random_gamma_slope_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *x = g->inputs[1], *f = g->outputs[0], *dy = ed_neg(g->dy[0]);
    ed_tensor *l = ed_sub(ed_log(x), ed_digamma(a));
    ed_tensor *second =
        CALL_OP(igamma_derivative, ED_ATTRS(IGAMMA_ATTRS, igamma_attrs, .order = 2), a, x);
    GIVE(g, 0, ed_mul(dy, ed_add(ed_div(second, density_derivative(a, x, 0)), ed_mul(f, l))));
    GIVE(g, 1, ed_mul(dy, ed_add(l, ed_mul(f, ed_sub(ed_div(ed_sub(a, 1), x), 1)))));
    return true;
}
#endif

ELEMENTWISE(random_gamma_slope, "the gradient of random_gamma's sample x by its concentration",
            A_AND_X, .flags = ED_OP_INTERNAL, .results = ED_RESULTS({"y", .saved = true}),
            .gradient = random_gamma_slope_gradient, .samples = SAMPLES2_IN(0.5, 4, 0.5, 6));

/* betainc: the regularized incomplete beta function,
 * dx = dy x^(a - 1) (1 - x)^(b - 1) / B(a, b) */
LOOPS(betainc, LOOPS_FLOAT(betainc));
PLAIN(betainc, plain_betainc_of(x[0], x[1], x[2]));

static bool betainc_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1], *x = g->inputs[2];
    ed_tensor *beta = ed_sub(ed_add(ed_lgamma(a), ed_lgamma(b)), ed_lgamma(ed_add(a, b)));
    ed_tensor *power = ed_add(ed_xlogy(ed_sub(a, 1), x), ed_xlog1py(ed_sub(b, 1), ed_neg(x)));
    GIVE(g, 2, ed_mul(g->dy[0], ed_exp(ed_sub(power, beta))));
    return true;
}

ELEMENTWISE(betainc, "the regularized incomplete beta function",
            .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true, .no_gradient = NOT_KNOWN},
                         {"b", ED_SET_FLOAT, 'T', .saved = true, .no_gradient = NOT_KNOWN},
                         {"x", ED_SET_FLOAT, 'T', .saved = true}},
            .gradient = betainc_gradient,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 4, 3, 4),
                                              ED_SAMPLE_IN(0.5, 4, 3, 4),
                                              ED_SAMPLE_IN(0.1, 0.9, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(0.5, 4), ED_SAMPLE_IN(0.5, 4, 3, 1),
                                              ED_SAMPLE_IN(0.1, 0.9, 5)}}));

#ifndef ISA
ed_tensor *(ed_polygamma)(ed_tensor *n, ed_tensor *x)
{
    return CALL_OP(polygamma, NULL, n, x);
}

ed_tensor *(ed_zeta)(ed_tensor *x, ed_tensor *q)
{
    return CALL_OP(zeta, NULL, x, q);
}

ed_tensor *(ed_igamma)(ed_tensor *a, ed_tensor *x)
{
    return CALL_OP(igamma, NULL, a, x);
}

ed_tensor *(ed_igammac)(ed_tensor *a, ed_tensor *x)
{
    return CALL_OP(igammac, NULL, a, x);
}

ed_tensor *(ed_betainc)(ed_tensor *a, ed_tensor *b, ed_tensor *x)
{
    return CALL_OP(betainc, NULL, a, b, x);
}

/* ---- Bessel functions ------------------------------------------------------------------------ */

/* By the integral of e^(x cos t - m) cos(n t) over 0..pi, whose trapezoids converge as fast as
 * powers; m: |x| or 0. */
static double plain_bessel_of(int order, double x, bool scaled)
{
    enum { STEPS = 200 };
    double sum = 0;
    if (x != x) return x;
    if (isinf(x) || fabs(x) > 1000)
        return scaled ? (order && x < 0 ? -1 : 1) / sqrt(2 * M_PI * fabs(x))
                      : (order ? x : fabs(x)) * INFINITY;
    for (int i = 0; i < STEPS; i++) {
        const double t = M_PI * (i + 0.5) / STEPS;
        sum += exp(x * cos(t) - (scaled ? fabs(x) : 0)) * cos(order * t);
    }
    return sum / STEPS;
}
#endif

/* i0: dx = dy i1(x); i1: dx = dy (i0(x) - y / x), dy / 2 at 0 */
VECTOR_LOOPS1(bessel_i0, vbessel_i0(x));
PLAIN(bessel_i0, plain_bessel_of(0, x[0], false));
GRADIENT1(bessel_i0, ed_mul(dy, ed_bessel_i1(x)));
ELEMENTWISE(bessel_i0, "the modified Bessel function of order 0", ONE(ED_SET_FLOAT),
            .gradient = bessel_i0_gradient, SAVES_X, .samples = SAMPLES1(-4, 4));
FUNCTION1(bessel_i0);

VECTOR_LOOPS1(bessel_i1, vbessel_i1(x));
PLAIN(bessel_i1, plain_bessel_of(1, x[0], false));
GRADIENT1(bessel_i1, ed_mul(dy, ed_sub(ed_bessel_i0(x),
                                       ed_where(ed_equal(x, 0), 0.5, ed_div_no_nan(y, x)))));
ELEMENTWISE(bessel_i1, "the modified Bessel function of order 1", ONE(ED_SET_FLOAT),
            .gradient = bessel_i1_gradient, SAVES_X, SAVES_Y, .samples = SAMPLES1(-4, 4));
FUNCTION1(bessel_i1);

/* i0e, i1e: those times e^-|x|; dx = dy (i1e - sign(x) y), dy (i0e - (sign(x) + 1 / x) y) */
VECTOR_LOOPS1(bessel_i0e, vbessel_i0e(x));
PLAIN(bessel_i0e, plain_bessel_of(0, x[0], true));
GRADIENT1(bessel_i0e, ed_mul(dy, ed_sub(ed_bessel_i1e(x), ed_mul(ed_sign(x), y))));
ELEMENTWISE(bessel_i0e, "bessel_i0 times e^-|x|", ONE(ED_SET_FLOAT),
            .gradient = bessel_i0e_gradient, SAVES_X, SAVES_Y, .kinks = (const double[]){0, NAN},
            .samples = SAMPLES1(-4, 4));
FUNCTION1(bessel_i0e);

VECTOR_LOOPS1(bessel_i1e, vbessel_i1e(x));
PLAIN(bessel_i1e, plain_bessel_of(1, x[0], true));

static bool bessel_i1e_gradient(const ed_gradient_call *g)
{
    ed_tensor *x = g->inputs[0], *y = g->outputs[0];
    ed_tensor *by_x = ed_where(ed_equal(x, 0), 0.5, ed_div_no_nan(y, x));
    ed_tensor *slope = ed_sub(ed_bessel_i0e(x), ed_add(ed_mul(ed_sign(x), y), by_x));
    g->dx[0] = ed_mul(g->dy[0], slope);
    return true;
}

ELEMENTWISE(bessel_i1e, "bessel_i1 times e^-|x|", ONE(ED_SET_FLOAT),
            .gradient = bessel_i1e_gradient, SAVES_X, SAVES_Y, .kinks = (const double[]){0, NAN},
            .samples = SAMPLES1(-4, 4));
FUNCTION1(bessel_i1e);
