/*
 * Eigenvalues and singular values of one dense matrix, row by row, on all threads. Householder's
 * reflections make it tridiagonal or bidiagonal, LAPACK takes that apart, and the reflections are
 * applied to the vectors that it gives:
 *
 *     A = Q T Q^T,  T = Z diag(w) Z^T         A = Q B P^T,  B = X diag(s) Y^T
 *     v = Q Z                                 u = Q X,  v = P Y
 *
 * The first step is half products of a matrix and a vector, which memory limits, and half products
 * of matrices; the last is all products of matrices. Both are cut by shapes alone, so the bits are
 * the same for any number of threads.
 *
 * The numbers are finite, and such that a norm is. What comes back is what lapack.h says of a call.
 */
#ifndef EDDY_OPS_KERNELS_SPECTRAL_H
#define EDDY_OPS_KERNELS_SPECTRAL_H

#include <stdbool.h>
#include <stdint.h>

/* Symmetric A [n, n], of which the lower triangle is read: eigenvalues w [n] from the smallest on,
 * and the eigenvectors as the columns of v [n, n], if that is not NULL. */
int spectral_eigh_f32(int64_t n, const float *a, float *w, float *v);
int spectral_eigh_f64(int64_t n, const double *a, double *w, double *v);

/* A [m, n] = u diag(s) v^T: s [k] from the largest on, k = min(m, n), and u [m, k] and v [n, k], if
 * they are not NULL; full: u [m, m] and v [n, n]. */
int spectral_svd_f32(bool full, int64_t m, int64_t n, const float *a, float *s, float *u, float *v);
int spectral_svd_f64(bool full, int64_t m, int64_t n, const double *a, double *s, double *u,
                     double *v);

#endif
