/* True values and bounds of special functions, by series and continued fractions in long double. */
#include "tests/accuracy.h"
#include <float.h>
#include <math.h>

#define PI          3.14159265358979323846264L
#define ROOT_PI     1.77245385090551602729817L
#define ROOT_2      1.41421356237309504880169L
#define MOST_ROUNDS 20000

/* ---- Sines of pi ----------------------------------------------------------------------------- */

/* sin(pi x) / (pi x): pi times the distance to the nearest integer is all that is rounded. */
static long double sinc_of(long double x)
{
    if (x == 0 || x != x) return x == 0 ? 1 : x;
    if (isinf(x)) return 0;
    const long double whole = nearbyintl(x), sine = sinl(PI * (x - whole)) / (PI * x);
    return fmodl(whole, 2) == 0 ? sine : -sine;
}

/* ---- Inverses of erf ------------------------------------------------------------------------- */

/* Winitzki's approximation of the inverse of erf, from ln(1 - x^2). */
static long double inverse_start(long double ln)
{
    const long double a = 0.147L, half = 2 / (PI * a) + ln / 2;
    return sqrtl(sqrtl(half * half - ln / a) - half);
}

static long double slope_of_erf(long double y)
{
    return 2 / ROOT_PI * expl(-y * y);
}

/* The y with erf y = x for |x| <= 0.5, by Newton's rule. */
static long double inverse_near_0(long double x)
{
    long double y = copysignl(inverse_start(log1pl(-x * x)), x);
    for (int i = 0; i < 8; i++) y -= (erfl(y) - x) / slope_of_erf(y);
    return x == 0 ? x : y;
}

/* The y with erfc y = x for 0 < x < 1, by Newton's rule on the logarithm. */
static long double inverse_of_rest(long double x)
{
    const long double ln = logl(x);
    long double y = inverse_start(ln + logl(2 - x));
    for (int i = 0; i < 10; i++) {
        const long double rest = erfcl(y);
        y += (logl(rest) - ln) * rest / slope_of_erf(y);
    }
    return y;
}

static long double erfinv_of(long double x)
{
    if (fabsl(x) > 1 || x != x) return NAN;
    if (fabsl(x) == 1) return copysignl(INFINITY, x);
    return fabsl(x) <= 0.5L ? inverse_near_0(x) : copysignl(inverse_of_rest(1 - fabsl(x)), x);
}

static long double erfcinv_of(long double x)
{
    if (!(x >= 0 && x <= 2)) return NAN;
    if (x == 0 || x == 2) return x == 0 ? INFINITY : -INFINITY;
    if (x >= 0.5L && x <= 1.5L) return inverse_near_0(1 - x);
    return x < 1 ? inverse_of_rest(x) : -inverse_of_rest(2 - x);
}

/* ---- The gamma function and its derivatives -------------------------------------------------- */

/* B(2k) / (2k)! */
static const long double bernoulli[] = {
    8.33333333333333333333333e-2L,  -1.38888888888888888888889e-3L, 3.30687830687830687830688e-5L,
    -8.26719576719576719576720e-7L, 2.08767569878680989792101e-8L,  -5.28419013868749318484768e-10L,
    1.33825365306846788328270e-11L, -3.38968029632258286683020e-13L};
enum { BERNOULLIS = sizeof bernoulli / sizeof *bernoulli };

/* The sum of (q + k)^-s for q > 0 and s > 1, by Euler and Maclaurin's formula from 40 on. */
static long double zeta_of(long double s, long double q)
{
    long double y = 0;
    for (; q < 40; q++) y += powl(q, -s);
    const long double power = powl(q, -s);
    y += power * q / (s - 1) + power / 2;
    long double factor = s * power / q; /* s (s + 1) ... q^(-s - 2k + 1) */
    for (int k = 0; k < BERNOULLIS; k++) {
        y += bernoulli[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
    }
    return y;
}

/* ln q - 1 / (2 q) - the sum of B(2k) / (2k q^2k), from 40 on; 1 / q below. */
static long double digamma_of(long double x)
{
    if (x < 0.5L) {
        const long double rest = x - nearbyintl(x);
        return digamma_of(1 - x) - PI / tanl(PI * rest);
    }
    long double below = 0;
    for (; x < 40; x++) below += 1 / x;
    long double y = logl(x) - 1 / (2 * x), factor = 1 / (x * x); /* (2k - 1)! / x^2k */
    for (int k = 0; k < BERNOULLIS; k++) {
        y -= bernoulli[k] * factor;
        factor *= (2 * k + 2) * (2 * k + 3) / (x * x);
    }
    return y - below;
}

static long double polygamma_of(long double n, long double x)
{
    const long double size = tgammal(n + 1) * zeta_of(n + 1, x);
    return fmodl(n, 2) == 0 ? -size : size;
}

/* ---- Incomplete functions -------------------------------------------------------------------- */

/* The share of the gamma integral below x: a series whose terms have one sign. */
static long double gamma_below(long double a, long double x)
{
    long double term = expl(a * logl(x) - x - lgammal(a + 1)), sum = 0;
    for (int n = 1; n < MOST_ROUNDS && term > sum * LDBL_EPSILON / 4; n++) {
        sum += term;
        term *= x / (a + n);
    }
    return sum;
}

/* The share above x > a: Legendre's continued fraction from its 500th part back. */
static long double gamma_above(long double a, long double x)
{
    long double f = 0;
    for (int n = 500; n > 0; n--) f = n * (n - a) / (x + 2 * n + 1 - a - f);
    return expl(a * logl(x) - x - lgammal(a)) / (x + 1 - a - f);
}

static long double igamma_of(long double a, long double x)
{
    if (x == 0) return 0;
    return x < a + 1 ? gamma_below(a, x) : 1 - gamma_above(a, x);
}

static long double igammac_of(long double a, long double x)
{
    if (x == 0) return 1;
    return x < a + 1 ? 1 - gamma_below(a, x) : gamma_above(a, x);
}

/* The derivative of igamma_of by a: of each term of the series, of each part of the fraction. */
static long double igamma_derivative_of(long double a, long double x)
{
    const long double power = expl(a * logl(x) - x - lgammal(a + 1));
    const long double slope = logl(x) - digamma_of(a + 1);
    if (x == 0) return 0;
    if (x < a + 1) {
        long double term = 1, of_term = 0, sum = 1, of_sum = 0;
        for (int n = 1; n < MOST_ROUNDS && fabsl(of_term) >= fabsl(of_sum) * LDBL_EPSILON / 4;
             n++) {
            of_term = (x * of_term - term * x / (a + n)) / (a + n);
            term *= x / (a + n);
            sum += term;
            of_sum += of_term;
        }
        return power * (slope * sum + of_sum);
    }
    long double f = 0, of_f = 0;
    for (int n = 500; n >= 0; n--) {
        const long double below = x + 2 * n + 1 - a - f, of_below = -1 - of_f;
        const long double above = n ? n * (n - a) : a, of_above = n ? -n : 1;
        of_f = (of_above * below - above * of_below) / (below * below);
        f = above / below;
    }
    return -power * (slope * f + of_f);
}

/* The share of the beta integral below x: a series whose terms have one sign. */
static long double beta_below(long double a, long double b, long double x)
{
    const long double ln = lgammal(a + b) - lgammal(a + 1) - lgammal(b);
    long double term = expl(a * logl(x) + b * log1pl(-x) + ln), sum = 0;
    for (int n = 1; n < MOST_ROUNDS && term > sum * LDBL_EPSILON / 4; n++) {
        sum += term;
        term *= x * (a + b + n - 1) / (a + n);
    }
    return sum;
}

static long double betainc_of(long double a, long double b, long double x)
{
    if (x == 0 || x == 1) return x;
    return x < (a + 1) / (a + b + 2) ? beta_below(a, b, x) : 1 - beta_below(b, a, 1 - x);
}

/* ---- Bessel functions ------------------------------------------------------------------------ */

/* (x / 2)^n times the sum of (x^2 / 4)^k / (k! (k + n)!), for n = 0 and 1. */
static long double bessel_of(int n, long double x)
{
    long double term = n ? x / 2 : 1, sum = 0;
    for (int k = 0; k < MOST_ROUNDS && fabsl(term) > fabsl(sum) * LDBL_EPSILON / 4; k++) {
        sum += term;
        term *= x * x / 4 / ((k + 1) * (k + 1 + n));
    }
    return n && x == 0 ? x : sum;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static long double one(const long double *x)
{
    (void)x;
    return 1;
}

static long double random_gamma_slope_of(long double a, long double x)
{
    if (x == 0) return 0;
    return -igamma_derivative_of(a, x) / expl((a - 1) * logl(x) - x - lgammal(a));
}

ACCURACY_TRUE(sinc, sinc_of(x));
ACCURACY_TRUE(sinc_slope, sinc_of(x));
ACCURACY_TRUE(erfinv, erfinv_of(x));
ACCURACY_TRUE(erfcinv, erfcinv_of(x));
ACCURACY_TRUE(ndtri, -ROOT_2 *erfcinv_of(2 * x));
ACCURACY_TRUE(digamma, digamma_of(x));
ACCURACY_TRUE(polygamma, polygamma_of(x, y));
ACCURACY_TRUE(zeta, zeta_of(x, y));
ACCURACY_TRUE(igamma, igamma_of(x, y));
ACCURACY_TRUE(igammac, igammac_of(x, y));
ACCURACY_TRUE(igamma_derivative, igamma_derivative_of(x, y));
ACCURACY_TRUE(random_gamma_slope, random_gamma_slope_of(x, y));
ACCURACY_TRUE(betainc, betainc_of(x, y, z));
ACCURACY_TRUE(bessel_i0, bessel_of(0, x));
ACCURACY_TRUE(bessel_i1, bessel_of(1, x));
ACCURACY_TRUE(bessel_i0e, bessel_of(0, x) * expl(-fabsl(x)));
ACCURACY_TRUE(bessel_i1e, bessel_of(1, x) * expl(-fabsl(x)));

#define RULE   ACCURACY_RULE
#define WITHIN .within = true, .remark = "in the range"

/* Two operands of different ranges. */
#define RULE2(op, low, high, low2, high2, most32, most64, ...)                                     \
    {                                                                                              \
        .name = #op, .range = {{low, high}, {low2, high2}}, .bound32 = most32, .bound64 = most64,  \
        .truth64 = op##_true64, .within = true, __VA_ARGS__                                        \
    }

const accuracy_rule accuracy_special_rules[] = {
    RULE(sinc, -8, 8, 1, 4),
    RULE(sinc_slope, -8, 8, 1, 4, .remark = "the derivative of order 0"),
    RULE(erfinv, -1, 1, 1, 6),
    RULE(erfcinv, 0, 2, 1, 6),
    RULE(ndtri, 0, 1, 1, 6, WITHIN),
    RULE(digamma, 0.01, 60, 1, 8, .within = true, .magnitude = one,
         .remark = "in the range, in ULP of 1 at least"),
    RULE(digamma, -8, 0, 1, 10, .within = true, .magnitude = one,
         .remark = "in the range, in ULP of 1 at least"),
    RULE2(polygamma, 1, 6, 0.1, 40, 1, 8, .whole = true, .remark = "of orders 1 to 6"),
    RULE2(zeta, 1.1, 20, 0.1, 40, 1, 16, .remark = "in the range"),
    RULE2(igamma, 0.05, 60, 0, 80, 1, 128, .remark = "in the range"),
    RULE2(igammac, 0.05, 60, 0, 80, 1, 128, .remark = "in the range"),
    RULE2(igamma_derivative, 0.05, 60, 0, 80, 1, 512, .remark = "in the range, of order 1"),
    RULE2(random_gamma_slope, 0.05, 60, 0, 80, 1, 512, .remark = "in the range"),
    {.name = "betainc",
     .range = {{0.1, 30}, {0.1, 30}, {0, 1}},
     .bound32 = 1,
     .bound64 = 512,
     .truth64 = betainc_true64,
     .within = true,
     .remark = "in the range"},
    RULE(bessel_i0, -88, 88, 1, 20, WITHIN),
    RULE(bessel_i1, -88, 88, 1, 20, WITHIN),
    RULE(bessel_i0e, -600, 600, 1, 20, WITHIN),
    RULE(bessel_i1e, -600, 600, 1, 20, WITHIN),
    {.name = NULL},
};
