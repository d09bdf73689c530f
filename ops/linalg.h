/* Linear algebra. ops.h says what holds for all. */
#ifndef EDDY_OPS_LINALG_H
#define EDDY_OPS_LINALG_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * y[..., i, j] = sum over k of a[..., i, k] b[..., k, j]; float32, float64. Ranks of at least 2;
 * leading dimensions broadcast. With transpose_a or transpose_b the last two dimensions of that
 * operand change places first. Views of any strides go without a copy where the product can read
 * them. k = 0 gives zeros.
 */
#define ED_MATMUL_OPTIONS(FIELD, T)                                                                \
    FIELD(T, BOOL, transpose_a, false, ED_ANY, "swap the last two axes of a")                      \
    FIELD(T, BOOL, transpose_b, false, ED_ANY, "swap the last two axes of b")
ED_OPTIONS(ed_matmul_options, ED_MATMUL_OPTIONS);
ed_tensor *ed_matmul_with(ed_tensor *a, ed_tensor *b, const ed_matmul_options *options);

/*
 * activation(x w + bias): x [..., in], w [in, out], bias [out] or NULL, activation "" or "relu"
 * (NULL: none). One pass; what a dense layer computes.
 */
ed_tensor *ed_linear(ed_tensor *x, ed_tensor *w, ed_tensor *bias, const char *activation);

/* x + bias along the last axis: x [..., n], bias [n]. */
ed_tensor *ed_bias_add(ed_tensor *x, ed_tensor *bias);

/* x / max(its Euclidean norm along the axes, sqrt(epsilon)). A slice of zeros stays zeros, with the
 * gradient dy / sqrt(epsilon). */
#define ED_L2_NORMALIZE_OPTIONS(FIELD, T)                                                          \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "along which; default: all")                          \
    FIELD(T, FLOAT, epsilon, 1e-12, ED_AT_LEAST(0), "of the squared norm at least")
ED_OPTIONS(ed_l2_normalize_options, ED_L2_NORMALIZE_OPTIONS);
ed_tensor *ed_l2_normalize_with(ed_tensor *x, const ed_l2_normalize_options *options);

/* The last two axes of x change places; a view. */
ed_tensor *ed_matrix_transpose(ed_tensor *x);

/* x over its norm (ed_norm) of that order along the axes; NaN where that is 0. The norm, with those
 * axes of size 1, goes to *norm; NULL: not wanted. */
#define ED_NORMALIZE_OPTIONS(FIELD, T)                                                             \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "along which; default: all")                          \
    FIELD(T, FLOAT, ord, __builtin_nan(""), ED_ANY, "order; NaN, the default: Euclidean, Frobenius")
ED_OPTIONS(ed_normalize_options, ED_NORMALIZE_OPTIONS);
ed_tensor *ed_normalize_with(ed_tensor *x, ed_tensor **norm, const ed_normalize_options *options);

/* y[..., i] = sum over k of a[..., i, k] b[..., k]; leading dimensions broadcast. */
#define ED_MATVEC_OPTIONS(FIELD, T)                                                                \
    FIELD(T, BOOL, transpose_a, false, ED_ANY, "swap the last two axes of a")
ED_OPTIONS(ed_matvec_options, ED_MATVEC_OPTIONS);
ed_tensor *ed_matvec_with(ed_tensor *a, ed_tensor *b, const ed_matvec_options *options);

/*
 * Sums of products over pairs of axes: a_axes[i] with b_axes[i], or the last `axes` of a with the
 * first of b. The result has the other axes of a, then those of b. inner: the last axis of both; of
 * a number and a tensor their product.
 */
#define ED_TENSORDOT_OPTIONS(FIELD, T)                                                             \
    FIELD(T, INT, axes, 2, ED_BETWEEN(0, 8), "how many, where they are not named")                 \
    FIELD(T, AXES, a_axes, ED_NO_LIST, ED_ANY, "of a")                                             \
    FIELD(T, AXES, b_axes, ED_NO_LIST, ED_ANY, "of b, in the same order")
ED_OPTIONS(ed_tensordot_options, ED_TENSORDOT_OPTIONS);
ed_tensor *ed_tensordot_with(ed_tensor *a, ed_tensor *b, const ed_tensordot_options *options);
ed_tensor *ed_inner(ed_tensor *a, ed_tensor *b);

/* Numbers: a[i] b[j] of all elements, [a.size, b.size]; cross products along last axes of size 3,
 * other axes broadcast; the Kronecker product, blocks a[i, j] b, of ranks up to 4. */
ed_tensor *ed_outer(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_cross(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_kron(ed_tensor *a, ed_tensor *b);

/*
 * Sums of products, by labels of axes, as NumPy and TensorFlow have it: "ij,jk->ik" is matmul,
 * "bii->bi" diagonals, "...ij->...ji" transposes. What is left of "->" are the operands, separated
 * by commas; labels that the right side lacks are summed. Without "->" it is those that are there
 * once, in alphabetical order. The axes of "..." broadcast. Of several operands the pair that costs
 * least is contracted first.
 */
ed_tensor *ed_einsum(const char *equation, ed_list *operands);

/*
 * ---- Equations and factors ------------------------------------------------------------------
 *
 * Matrices are the last two dimensions; leading dimensions are batches, those of two operands
 * broadcast. A matrix with a NaN or an infinity is an error, and so is a singular one where its
 * inverse is needed; the message names the matrix of the batch.
 */

/* x with a x = b, a [..., n, n], b [..., n, k]; with adjoint a^T x = b. inv: the inverse of a, or
 * its transpose. */
#define ED_SOLVE_OPTIONS(FIELD, T) FIELD(T, BOOL, adjoint, false, ED_ANY, "with a transposed")
ED_OPTIONS(ed_solve_options, ED_SOLVE_OPTIONS);
ed_tensor *ed_solve_with(ed_tensor *a, ed_tensor *b, const ed_solve_options *options);
ed_tensor *ed_inv_with(ed_tensor *a, const ed_solve_options *options);

/* The same for triangular a: the other triangle is not read. */
#define ED_TRIANGULAR_SOLVE_OPTIONS(FIELD, T)                                                      \
    FIELD(T, BOOL, lower, true, ED_ANY, "a is lower triangular, not upper")                        \
    FIELD(T, BOOL, adjoint, false, ED_ANY, "with a transposed")
ED_OPTIONS(ed_triangular_solve_options, ED_TRIANGULAR_SOLVE_OPTIONS);
ed_tensor *ed_triangular_solve_with(ed_tensor *a, ed_tensor *b,
                                    const ed_triangular_solve_options *options);

/*
 * L with a = L L^T, lower triangular, for symmetric positive definite a, of which the lower
 * triangle is read; anything else is an error. The gradient is symmetric. cholesky_solve: x with
 * L L^T x = b.
 */
ed_tensor *ed_cholesky(ed_tensor *a);
ed_tensor *ed_cholesky_solve(ed_tensor *l, ed_tensor *b);

/*
 * Determinants [...] of a [..., n, n]: det; slogdet gives the sign, -1, 0 or 1, and the logarithm
 * of the absolute value, -inf of a singular matrix; logdet is that of a symmetric positive definite
 * matrix, by its Cholesky factor. Of [0, 0] the determinant is 1.
 */
ed_tensor *ed_det(ed_tensor *a);
ed_tensor *ed_slogdet(ed_tensor *a, ed_tensor **log_abs_det);
ed_tensor *ed_logdet(ed_tensor *a);

/* a with its rows permuted = L U: both in one matrix, L without its diagonal of ones; and p [...,
 * n] int32: row i of L U is row p[i] of a. */
ed_tensor *ed_lu(ed_tensor *a, ed_tensor **p);

/*
 * What the factors and p of ed_lu are for, [..., n, n] and [..., n]: x with a x = b, b [..., n, k],
 * whose leading dimensions broadcast; the inverse of a; a itself.
 */
ed_tensor *ed_lu_solve(ed_tensor *lu, ed_tensor *p, ed_tensor *b);
ed_tensor *ed_lu_matrix_inverse(ed_tensor *lu, ed_tensor *p);
ed_tensor *ed_lu_reconstruct(ed_tensor *lu, ed_tensor *p);

/*
 * a = q r, q's columns orthogonal and of length 1, r upper triangular: of a [..., m, n] q has
 * min(m, n) columns, and r as many rows; with full_matrices m. Signs as LAPACK gives them: the
 * diagonal of r may be negative.
 */
#define ED_QR_OPTIONS(FIELD, T) FIELD(T, BOOL, full_matrices, false, ED_ANY, "q is [..., m, m]")
ED_OPTIONS(ed_qr_options, ED_QR_OPTIONS);
ed_tensor *ed_qr_with(ed_tensor *a, ed_tensor **r, const ed_qr_options *options);

/*
 * Of symmetric a [..., n, n], of which the lower triangle is read: the eigenvalues [..., n], the
 * smallest first, and as columns of `vectors` [..., n, n] the eigenvectors, of length 1, up to
 * their signs. Gradients of eigenvectors are infinite where eigenvalues are equal, and count as 0.
 */
ed_tensor *ed_eigh(ed_tensor *a, ed_tensor **vectors);
ed_tensor *ed_eigvalsh(ed_tensor *a);

/*
 * The same for tridiagonal matrices with the diagonal alpha [..., n] and beta [..., n - 1] beside
 * it on both sides. select "i": those eigenvalues, counted from the smallest, whose index is in
 * select_range, the first and the last.
 */
#define ED_EIGH_TRIDIAGONAL_OPTIONS(FIELD, T)                                                      \
    FIELD(T, CHOICE, select, "a", ED_ONE_OF("a", "i"), "a: all eigenvalues, i: select_range")      \
    FIELD(T, INTS, select_range, ED_NO_LIST, ED_ANY, "indices of the first and the last, from 0")
ED_OPTIONS(ed_eigh_tridiagonal_options, ED_EIGH_TRIDIAGONAL_OPTIONS);
ed_tensor *ed_eigh_tridiagonal_with(ed_tensor *alpha, ed_tensor *beta, ed_tensor **vectors,
                                    const ed_eigh_tridiagonal_options *options);

/*
 * a = u diag(s) v^T: the singular values s [..., k], the largest first, k = min(m, n); u [..., m,
 * k] and v [..., n, k] up to their columns' signs, with full_matrices square. With u and v NULL
 * only s is computed, which costs less.
 */
#define ED_SVD_OPTIONS(FIELD, T) FIELD(T, BOOL, full_matrices, false, ED_ANY, "u and v are square")
ED_OPTIONS(ed_svd_options, ED_SVD_OPTIONS);
ed_tensor *ed_svd_with(ed_tensor *a, ed_tensor **u, ed_tensor **v, const ed_svd_options *options);
ed_tensor *ed_svdvals(ed_tensor *a);

/*
 * pinv: the pseudo-inverse [..., n, m] of a [..., m, n]; singular values of at most rcond times the
 * largest count as 0. Its gradient is that of matrices whose rank does not change.
 */
#define ED_PINV_OPTIONS(FIELD, T)                                                                  \
    FIELD(T, FLOAT, rcond, -1, ED_AT_LEAST(-1),                                                    \
          "share of the largest singular value; negative: 10 max(m, n) epsilon of the dtype")
ED_OPTIONS(ed_pinv_options, ED_PINV_OPTIONS);
ed_tensor *ed_pinv_with(ed_tensor *a, const ed_pinv_options *options);

/*
 * x [..., n, k] with the least |a x - b|^2 + l2_regularizer |x|^2, a [..., m, n], b [..., m, k]; of
 * wide a without regularizer the shortest x with a x = b. fast: by a Cholesky factor of a^T a or
 * a a^T, which is an error where that is singular, and loses digits where it nearly is. Otherwise
 * by singular values, where a may have any rank.
 */
#define ED_LSTSQ_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, FLOAT, l2_regularizer, 0, ED_AT_LEAST(0), "factor of |x|^2")                          \
    FIELD(T, BOOL, fast, true, ED_ANY, "by the normal equations, not by singular values")
ED_OPTIONS(ed_lstsq_options, ED_LSTSQ_OPTIONS);
ed_tensor *ed_lstsq_with(ed_tensor *a, ed_tensor *b, const ed_lstsq_options *options);

/* How many singular values are above tol: int32 [...]. No gradient. */
#define ED_MATRIX_RANK_OPTIONS(FIELD, T)                                                           \
    FIELD(T, FLOAT, tol, -1, ED_AT_LEAST(-1),                                                      \
          "negative: max(m, n) epsilon of the dtype times the largest singular value")
ED_OPTIONS(ed_matrix_rank_options, ED_MATRIX_RANK_OPTIONS);
ed_tensor *ed_matrix_rank_with(ed_tensor *a, const ed_matrix_rank_options *options);

/*
 * Condition numbers [...]: of p = 2 the largest singular value over the smallest, of -2 the
 * inverse; of 1, -1, inf, -inf or NaN (Frobenius) the norm of a (ed_norm) times that of its
 * inverse. inf of a singular matrix.
 */
#define ED_COND_OPTIONS(FIELD, T) FIELD(T, FLOAT, p, 2, ED_ANY, "order of the norm")
ED_OPTIONS(ed_cond_options, ED_COND_OPTIONS);
ed_tensor *ed_cond_with(ed_tensor *a, const ed_cond_options *options);

/* Of square matrices: a to the power of n, any integer; expm: e^a, the sum of a^k / k!. */
ed_tensor *ed_matrix_power(ed_tensor *a, int64_t n);
ed_tensor *ed_expm(ed_tensor *a);

/*
 * The principal root and logarithm of square matrices: y with y y = a, and with e^y = a. An error
 * where a has a real negative eigenvalue, for which there may be no real y, or the eigenvalue 0, of
 * which logm has no result and sqrtm not always one. logm takes roots until they come near the
 * identity, which those of matrices like [[1, 1e14], [0, 1]] do not: an error, too.
 */
ed_tensor *ed_sqrtm(ed_tensor *a);
ed_tensor *ed_logm(ed_tensor *a);

/*
 * Tridiagonal matrices T are given by their diagonals [..., 3, m]: the one above the main diagonal,
 * whose last element is not used, the main one, and the one below it, whose first element is not
 * used. tridiagonal_solve: x with T x = b, b [..., m, k], or [..., m] where b has one dimension
 * less than the diagonals; rows are exchanged where that is needed. tridiagonal_matmul: T b, b
 * [..., m, k].
 */
ed_tensor *ed_tridiagonal_solve(ed_tensor *diagonals, ed_tensor *b);
ed_tensor *ed_tridiagonal_matmul(ed_tensor *diagonals, ed_tensor *b);

/*
 * x with A x = b, b [..., m, n], for triangular A with few diagonals, which are the bands [..., k,
 * m]: of a lower triangular A the main one first, then those below it, whose first elements are not
 * used; of an upper one those above it, whose last elements are not used, the main one last.
 */
ed_tensor *ed_banded_triangular_solve_with(ed_tensor *bands, ed_tensor *b,
                                           const ed_triangular_solve_options *options);

#pragma GCC visibility pop
#endif
