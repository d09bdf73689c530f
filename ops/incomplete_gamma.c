/*
 * The regularized incomplete gamma functions P(a, x) and Q = 1 - P, the derivatives of P by a and
 * what follows from the first one for samples of gamma distributions. Derivatives come from the
 * same series and the same continued fraction, computed with Taylor polynomials of a + e in place
 * of a: the coefficient of e^n is the n-th derivative over n!.
 */
#include "ops/special_functions.h"
#include <math.h>
#include <stdbool.h>

enum { MOST_STEPS = 100000 };

/* ln(1 + u) - u for |u| <= 1/2, by the series of artanh, without cancellation. */
static double log1p_less(double u)
{
    const double r = u / (2 + u), square = r * r;
    double sum = 0;
    for (int k = 18; k >= 0; k--) sum = sum * square + 1.0 / (2 * k + 3);
    return r * (2 * square * sum - u);
}

/* ln gamma(a + 1) less its Stirling formula ln(sqrt(2 pi a) (a / e)^a), for a >= 10. */
static double stirling_rest(double a)
{
    static const double terms[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                   1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
    double y = terms[7];
    for (int i = 6; i >= 0; i--) y = y / (a * a) + terms[i];
    return y / a;
}

/* x^a e^-x / gamma(a + 1), for large a by Stirling's formula: powers of the size of a cancel. */
static double gamma_density(double a, double x)
{
    if (a < 10 && x < 700) return pow(x, a) * exp(-x) / tgamma(a + 1);
    if (a < 10) return exp(a * log(x) - x - special_lgamma(a + 1));
    const double u = (x - a) / a, scale = exp(-stirling_rest(a)) / sqrt(2 * M_PI * a);
    if (fabs(u) <= 0.5) return scale * exp(a * log1p_less(u));
    const double power = a * log(x / a);
    return scale * (fabs(power) < 700 ? pow(x / a, a) * exp(a - x) : exp(power - (x - a)));
}

/* The lower one, by its power series: for x up to a or 1. */
static double igamma_series(double a, double x)
{
    double term = 1, sum = 1;
    for (int n = 1; n < MOST_STEPS && term > 1e-17 * sum; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum * gamma_density(a, x);
}

/* The upper one, by its continued fraction (Lentz). */
static double igammac_fraction(double a, double x)
{
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int i = 1; i < MOST_STEPS; i++) {
        const double an = -i * (i - a);
        b += 2;
        d = an * d + b;
        c = b + an / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-16) break;
    }
    return h * a * gamma_density(a, x);
}

/* What both are at the borders, the lower one; false where there is nothing special. */
static bool igamma_border(double a, double x, double *y)
{
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x)))
        *y = NAN;
    else if (a == 0 || isinf(x))
        *y = 1;
    else if (x == 0 || isinf(a))
        *y = 0;
    else
        return false;
    return true;
}

double special_igamma(double a, double x)
{
    double y;
    if (igamma_border(a, x, &y)) return y;
    return x <= 1 || x <= a ? igamma_series(a, x) : 1 - igammac_fraction(a, x);
}

double special_igammac(double a, double x)
{
    double y;
    if (igamma_border(a, x, &y)) return 1 - y;
    return x < 1 || x < a ? 1 - igamma_series(a, x) : igammac_fraction(a, x);
}

/* ---- Derivatives by a ------------------------------------------------------------------------ */

/* c[0] + c[1] e + ... + c[n] e^n; what follows leaves out higher powers of e. */
typedef struct polynomial {
    double c[SPECIAL_MOST_ORDER + 1];
} polynomial;

static polynomial times(int n, const polynomial *a, const polynomial *b)
{
    polynomial y = {{0}};
    for (int i = 0; i <= n; i++)
        for (int k = 0; k <= i; k++) y.c[i] += a->c[k] * b->c[i - k];
    return y;
}

static polynomial over(int n, const polynomial *a, const polynomial *b)
{
    polynomial y = *a;
    for (int i = 0; i <= n; i++) {
        for (int k = 0; k < i; k++) y.c[i] -= y.c[k] * b->c[i - k];
        y.c[i] /= b->c[0];
    }
    return y;
}

/* b + slope e, times or plus a polynomial. */
static polynomial times_linear(int n, const polynomial *a, double b, double slope)
{
    polynomial y = *a;
    for (int i = n; i >= 0; i--) y.c[i] = b * a->c[i] + (i ? slope * a->c[i - 1] : 0);
    return y;
}

static polynomial plus_linear(const polynomial *a, double b, double slope)
{
    polynomial y = *a;
    y.c[0] += b;
    y.c[1] += slope;
    return y;
}

/* x^a e^-x / gamma(a + 1): e^f for f = a ln x - x - ln gamma(a + 1), whose e^k has f[k]. */
static polynomial density_polynomial(int n, double a, double x)
{
    polynomial y = {{gamma_density(a, x)}};
    double f[SPECIAL_MOST_ORDER + 1] = {0, log(x) - special_digamma(a + 1)}, factorial = 1;
    for (int k = 2; k <= n; k++) f[k] = -special_polygamma(k - 1, a + 1) / (factorial *= k);
    for (int i = 1; i <= n; i++) {
        for (int k = 1; k <= i; k++) y.c[i] += k * f[k] * y.c[i - k];
        y.c[i] /= i;
    }
    return y;
}

/* The sum of x^n / ((a + 1) ... (a + n)), until every coefficient has settled. */
static polynomial series_polynomial(int n, double a, double x)
{
    polynomial term = {{1}}, sum = {{1}};
    bool settled = false;
    for (int i = 1; i < MOST_STEPS && !settled; i++) {
        settled = i > n;
        for (int k = 0; k <= n; k++) {
            term.c[k] = (x * term.c[k] - (k ? term.c[k - 1] : 0)) / (a + i);
            sum.c[k] += term.c[k];
            settled = settled && fabs(term.c[k]) <= 1e-17 * fabs(sum.c[k]);
        }
    }
    return sum;
}

/* The continued fraction, until every coefficient has settled. */
static polynomial fraction_polynomial(int n, double a, double x)
{
    const polynomial one = {{1}};
    polynomial b = {{x + 1 - a, -1}}, c = {{1e300}}, d = over(n, &one, &b), h = d;
    bool settled = false;
    for (int i = 1; i < MOST_STEPS && !settled; i++) {
        b.c[0] += 2;
        d = times_linear(n, &d, -i * (i - a), i);
        d = plus_linear(&d, b.c[0], -1);
        d = over(n, &one, &d);
        c = over(n, &one, &c);
        c = times_linear(n, &c, -i * (i - a), i);
        c = plus_linear(&c, b.c[0], -1);
        const polynomial step = times(n, &c, &d), before = h;
        h = times(n, &h, &step);
        settled = i > n;
        for (int k = 0; k <= n; k++)
            settled = settled && fabs(h.c[k] - before.c[k]) <= 1e-15 * fabs(h.c[k]);
    }
    return h;
}

double special_igamma_derivative(int n, double a, double x)
{
    double y;
    if (igamma_border(a, x, &y)) return a == 0 ? NAN : 0 * y;
    const bool below = x <= 1 || x <= a;
    const polynomial density = density_polynomial(n, a, x);
    if (density.c[0] == 0) return 0;
    polynomial share = below ? series_polynomial(n, a, x) : fraction_polynomial(n, a, x);
    if (!below) share = times_linear(n, &share, -a, -1);
    y = times(n, &share, &density).c[n];
    for (int k = 2; k <= n; k++) y *= k;
    return y;
}

/*
 * How a sample x of the gamma distribution changes with a where its probability P(a, x) stays:
 * minus the derivative of P by a over that by x, the density. With P = share * density * x / a the
 * densities cancel, so that x may be as small as one likes.
 */
double special_random_gamma_slope(double a, double x)
{
    if (!(a > 0) || !(x >= 0) || isinf(a) || isinf(x)) return NAN;
    if (x == 0) return 0;
    const double root = sqrt(a), first = (x - a) / root;
    if (a > 1e8 && fabs(first) < 20) /* x = a + z sqrt(a) + (z^2 - 1) / 3 + ... for normal z */
        return 1 + (first - (first * first - 1) / (3 * root)) / (2 * root);
    const bool below = x <= 1 || x <= a;
    const double slope = log(x) - special_digamma(a + 1);
    polynomial share = below ? series_polynomial(1, a, x) : fraction_polynomial(1, a, x);
    share = below ? times_linear(1, &share, -1, 0) : times_linear(1, &share, a, 1);
    return (share.c[1] + share.c[0] * slope) * (x / a);
}
