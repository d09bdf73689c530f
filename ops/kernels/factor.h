/*
 * Factorizations of dense matrices on raw memory: Cholesky, LU and QR, and solving with triangular
 * factors. Matrices lie row by row, `lda` elements from one row to the next.
 *
 * All of them cut a matrix until few columns are left, so that nearly all work is done by the
 * products of gemm.h: these have the threads, and the same bits for any number of them. Few columns
 * are factored, and few rows substituted, by vectors (lines.h), in copies in which they lie
 * together; strips of right sides go to threads, too.
 */
#ifndef EDDY_OPS_KERNELS_FACTOR_H
#define EDDY_OPS_KERNELS_FACTOR_H

#include <stdbool.h>
#include <stdint.h>

/* What a factorization says: it is done, there was no memory, or (0 and above) the number of the
 * first pivot that cannot be used. */
enum { FACTOR_DONE = -1, FACTOR_NO_MEMORY = -2 };

/*
 * X = T^-1 B in place of B, for triangular T [n, n] and B [n, columns], either of any strides, one
 * of B's being 1. With the strides of T swapped and `lower` turned over it is T^-T. `unit`: the
 * diagonal counts as 1 and is not read. A 0 on the diagonal gives what division gives. false
 * without memory.
 */
typedef struct factor_triangle {
    bool lower, unit;
    int64_t n, row, column;
} factor_triangle;
bool factor_solve_f32(factor_triangle t, const float *a, int64_t columns, float *b, int64_t b_row,
                      int64_t b_column);
bool factor_solve_f64(factor_triangle t, const double *a, int64_t columns, double *b, int64_t b_row,
                      int64_t b_column);

/* The lower triangle of A [n, n] becomes L with A = L L^T; what lies above is not read and ends
 * undefined. Fails at the first pivot that is not above 0. */
int64_t factor_cholesky_f32(int64_t n, float *a, int64_t lda);
int64_t factor_cholesky_f64(int64_t n, double *a, int64_t lda);

/*
 * A [m, n] with its rows exchanged becomes L U, L without its diagonal of ones. Step i exchanged
 * rows i and swaps[i] >= i, for i below min(m, n). Pivots that are 0 are told, the first of them,
 * and passed over: the factors are right all the same.
 */
int64_t factor_lu_f32(int64_t m, int64_t n, float *a, int64_t lda, int64_t *swaps);
int64_t factor_lu_f64(int64_t m, int64_t n, double *a, int64_t lda, int64_t *swaps);

/* X [n, n] = A^-1, or A^-T, by these factors of A [n, n], without pivots that are 0. false without
 * memory. */
bool factor_lu_inverse_f32(bool adjoint, int64_t n, const float *lu, const int64_t *swaps,
                           float *x);
bool factor_lu_inverse_f64(bool adjoint, int64_t n, const double *lu, const int64_t *swaps,
                           double *x);

/* A [m, n] = Q R by Householder's reflections, their signs as LAPACK's: R comes above the diagonal
 * of A, zeros below it, Q [m, q_columns] of as many columns as wanted, up to m. false without
 * memory. */
bool factor_qr_f32(int64_t m, int64_t n, float *a, int64_t lda, int64_t q_columns, float *q);
bool factor_qr_f64(int64_t m, int64_t n, double *a, int64_t lda, int64_t q_columns, double *q);

/* H x = (beta, 0 ...) for x [n] of any size, which becomes the vector of the reflection
 * H = I - tau x x^T, x[0] = 1. Returns tau. */
float factor_reflection_f32(int64_t n, float *x, float *beta);
double factor_reflection_f64(int64_t n, double *x, double *beta);

/* T [n, n], upper triangular, with which the product of n reflections H_i = I - tau_i v_i v_i^T is
 * H_0 H_1 ... = I - V T V^T (Schreiber and Van Loan, 1989), from vv = V^T V [n, n]. */
void factor_join_f32(int64_t n, const float *tau, const float *vv, float *t);
void factor_join_f64(int64_t n, const double *tau, const double *vv, double *t);

#endif
