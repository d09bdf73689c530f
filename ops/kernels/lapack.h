/*
 * Eigenvalues, singular values and Schur forms, by the LAPACK within OpenBLAS, of one matrix. All
 * matrices lie column by column, as Fortran's do. Many threads may call at a time.
 */
#ifndef EDDY_OPS_KERNELS_LAPACK_H
#define EDDY_OPS_KERNELS_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

/* What a call gives: 0, or it did not converge, or there was no memory. */
enum { LAPACK_DIVERGES = 1, LAPACK_NO_MEMORY = -1000 };

/* The largest rows or columns that are taken; those up to which a call uses one thread. */
enum { LAPACK_LARGEST = 16384, LAPACK_SMALL = 64 };

/* Symmetric A [n, n], of which the upper triangle is read: eigenvalues w [n] from the smallest on,
 * and, if vectors are wanted, the eigenvectors as columns in the place of A, which is lost. */
int lapack_eigh_f32(bool vectors, int64_t n, float *a, float *w);
int lapack_eigh_f64(bool vectors, int64_t n, double *a, double *w);

/*
 * A [m, n] = U diag(s) Vt, s [k] from the largest on, k = min(m, n). A is lost. vectors 'N': none,
 * 'S': U [m, k] and Vt [k, n], 'A': U [m, m] and Vt [n, n].
 */
int lapack_svd_f32(char vectors, int64_t m, int64_t n, float *a, float *s, float *u, float *vt);
int lapack_svd_f64(char vectors, int64_t m, int64_t n, double *a, double *s, double *u, double *vt);

/* A [n, n] = V T V^T, V orthogonal, T upper triangular but for blocks of two rows on its diagonal
 * (the real Schur form). T comes in the place of A. */
int lapack_schur_f64(int64_t n, double *a, double *v);

#endif
