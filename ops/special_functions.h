/*
 * Special functions of float64, for the loops of ops/special.simd.c. None sets errno or any state.
 * The comment at each definition says how it is computed.
 */
#ifndef EDDY_OPS_SPECIAL_FUNCTIONS_H
#define EDDY_OPS_SPECIAL_FUNCTIONS_H

double special_lgamma(double x);
double special_digamma(double x);
double special_zeta(double s, double q);
double special_polygamma(double n, double x);
double special_igamma(double a, double x);
double special_igammac(double a, double x);

/* The n-th derivative of igamma by a, for n from 1 to SPECIAL_MOST_ORDER. */
enum { SPECIAL_MOST_ORDER = 4 };
double special_igamma_derivative(int n, double a, double x);

/* How a sample x of the gamma distribution of concentration a changes with a. */
double special_random_gamma_slope(double a, double x);

double special_betainc(double a, double b, double x);

#endif
