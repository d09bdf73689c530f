/*
 * Eigenvalues of tridiagonal, singular values of bidiagonal matrices and Schur forms, by the LAPACK
 * within OpenBLAS. All matrices lie column by column, as Fortran's do. Many threads may call at a
 * time.
 */
#ifndef EDDY_OPS_KERNELS_LAPACK_H
#define EDDY_OPS_KERNELS_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

/* What a call gives: 0, or it did not converge, or there was no memory. */
enum { LAPACK_DIVERGES = 1, LAPACK_NO_MEMORY = -1000 };

/* The largest rows or columns that are taken; those up to which a call uses one thread. */
enum { LAPACK_LARGEST = 16384, LAPACK_SMALL = 64 };

/* The symmetric matrix of the diagonal d [n] and e [n - 1] beside it: eigenvalues, from the
 * smallest on, in the place of d, e being lost, and the eigenvectors as columns of z [n, n], if
 * that is not NULL. With these the matrix is to be of a size near 1: joints of parts that are less
 * than a rounding of 1 count as nothing. */
int lapack_tridiagonal_f32(int64_t n, float *d, float *e, float *z);
int lapack_tridiagonal_f64(int64_t n, double *d, double *e, double *z);

/* The matrix of the diagonal d [n] and e [n - 1] above it, U diag(s) Vt: s, from the largest on, in
 * the place of d, e being lost; U and Vt [n, n], or both NULL. */
int lapack_bidiagonal_f32(int64_t n, float *d, float *e, float *u, float *vt);
int lapack_bidiagonal_f64(int64_t n, double *d, double *e, double *u, double *vt);

/* A [n, n] = V T V^T, V orthogonal, T upper triangular but for blocks of two rows on its diagonal
 * (the real Schur form). T comes in the place of A. */
int lapack_schur_f64(int64_t n, double *a, double *v);

#endif
