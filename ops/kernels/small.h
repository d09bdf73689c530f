/*
 * Batches of small matrices, a vector of them at a time: lane l of every vector belongs to matrix
 * l. Nothing looks at a lane's neighbours, so a matrix' result does not depend on the others. What
 * the loops cannot do well (numbers that are not finite or of an extreme size, pivots that are 0,
 * singular values near 0) they say, and leave it to the routines for one matrix.
 */
#ifndef EDDY_OPS_KERNELS_SMALL_H
#define EDDY_OPS_KERNELS_SMALL_H

#include "ops/kernels/isa.h"
#include <stdbool.h>
#include <stdint.h>

/* The most rows and columns; the most matrices of a call. */
enum { SMALL_SIDE = 16, SMALL_MANY = 16 };

/*
 * Eigenvalues w [count, n], the smallest first, and eigenvectors v [count, n, n], where v is not
 * NULL, of symmetric matrices a [count, n, n], of which the lower triangle is read, by Jacobi's
 * rotations. left[i]: matrix i was not done.
 */
ISA_DECLARE(void, small_eigh, bool wide, int64_t n, int64_t count, const void *a, void *w, void *v,
            bool *left);

/*
 * a [count, m, n] = u diag(s) v^T: s [count, k], the largest first, k = min(m, n), and, where u is
 * not NULL, u [count, m, k] and v [count, n, k], by Jacobi's rotations of columns.
 */
ISA_DECLARE(void, small_svd, bool wide, int64_t m, int64_t n, int64_t count, const void *a, void *s,
            void *u, void *v, bool *left);

#endif
