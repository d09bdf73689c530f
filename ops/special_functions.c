#include "ops/special_functions.h"
#include <math.h>
#include <stdbool.h>

/* c[0] + c[1] x + ... + c[n-1] x^(n-1) */
static double series(const double *c, int n, double x)
{
    double y = c[n - 1];
    for (int i = n - 2; i >= 0; i--) y = y * x + c[i];
    return y;
}

/* ---- The gamma function and its derivatives -------------------------------------------------- */

double special_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* By reflection for x < 0, the recurrence up to 10 and the asymptotic series from there. */
double special_digamma(double x)
{
    static const double c[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
    double y = 0;
    if (x == INFINITY) return x;
    if (!(x > 0) && (x == floor(x) || x != x)) return NAN;
    if (x < 0) {
        y = -M_PI / tan(M_PI * (x - nearbyint(x)));
        x = 1 - x;
    }
    for (; x < 10; x++) y -= 1 / x;
    const double square = 1 / (x * x);
    return y + log(x) - 0.5 / x - square * series(c, 8, square);
}

/* The sum of (q + k)^-s for q > 0: twelve terms and the Euler-Maclaurin formula for the rest. */
static double zeta_above(double s, double q)
{
    /* (2j)! / B(2j) */
    static const double parts[] = {12.0,
                                   -720.0,
                                   30240.0,
                                   -1209600.0,
                                   47900160.0,
                                   -1307674368000.0 / 691,
                                   74724249600.0,
                                   -10670622842880000.0 / 3617,
                                   5109094217170944000.0 / 43867,
                                   -802857662698291200000.0 / 174611,
                                   14101100039391805440000.0 / 77683,
                                   -1693824136731743669452800000.0 / 236364091};
    double y = 0;
    for (int k = 0; k < 12; k++, q++) y += pow(q, -s);
    const double last = pow(q, -s);
    double term = s * last / q;
    y += pow(q, 1 - s) / (s - 1) + 0.5 * last;
    for (int j = 0; j < 12 && fabs(term) > 1e-18 * fabs(y); j++) {
        y += term / parts[j];
        term *= (s + 2 * j + 1) / q * ((s + 2 * j + 2) / q);
    }
    return y;
}

/* Of q < 0 the terms before and behind 0 are two sums of their own. */
double special_zeta(double s, double q)
{
    if (s != s || q != q || s < 1) return NAN;
    if (s == 1) return INFINITY;
    if (isinf(s)) return q > 1 ? 0 : q == 1 ? 1 : q > 0 ? INFINITY : NAN;
    if (q > 0) return isinf(q) ? 0 : zeta_above(s, q);
    const bool whole = s == floor(s), even = fmod(s, 2) == 0;
    if (q == floor(q)) return q == 0 || (whole && even) ? INFINITY : NAN;
    if (!whole) return NAN;
    const double before = ceil(-q), nearest = -q - (before - 1);
    const double sum = zeta_above(s, nearest) - zeta_above(s, nearest + before);
    return (even ? sum : -sum) + zeta_above(s, 1 - nearest);
}

double special_polygamma(double n, double x)
{
    if (!(n >= 0) || n != floor(n)) return NAN;
    if (n == 0) return special_digamma(x);
    const double y = tgamma(n + 1) * special_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -y : y;
}

/* ---- The incomplete beta function ---------------------------------------------------------- */

enum { MOST_STEPS = 100000 };

/* The continued fraction (Lentz) of the incomplete beta function, for x < (a + 1) / (a + b + 2). */
static double betainc_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (int m = 1; m < MOST_STEPS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step = 1;
        for (int k = 0; k < 2; k++) {
            const double part = k ? odd : even;
            d = 1 + part * d;
            c = 1 + part / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            h *= step = d * c;
        }
        if (fabs(step - 1) < 1e-16) break;
    }
    return h;
}

/* x^a (1 - x)^b / (a B(a, b)) */
static double beta_density(double a, double b, double x)
{
    const double rest = b * log1p(-x);
    if (a + b < 170 && b > 1e-6) /* where gamma is finite */
        return pow(x, a) * (x < 0.5 ? exp(rest) : pow(1 - x, b)) *
               (tgamma(a + b) / tgamma(a + 1) / tgamma(b));
    return exp(special_lgamma(a + b) - special_lgamma(a + 1) - special_lgamma(b) + a * log(x) +
               rest);
}

double special_betainc(double a, double b, double x)
{
    if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1) || isinf(a) || isinf(b)) return NAN;
    if (x == 0 || x == 1) return x;
    const bool turned = x >= (a + 1) / (a + b + 2);
    const double rest = 1 - x; /* of b and a */
    return turned ? 1 - beta_density(b, a, rest) * betainc_fraction(b, a, rest)
                  : beta_density(a, b, x) * betainc_fraction(a, b, x);
}
