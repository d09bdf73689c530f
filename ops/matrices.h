/*
 * What the ops of linear algebra share: matrices are the last two dimensions, batches the leading
 * ones. A kernel is a function of one matrix, which runs on threads over the batch.
 */
#ifndef EDDY_OPS_MATRICES_H
#define EDDY_OPS_MATRICES_H

#include "ops/execute.h"
#include "ops/kernels/factor.h"
#include "ops/kernels/small.h"

/* What a task says of its matrix: it is done, there is no memory, its numbers or those of the
 * result are not finite, the iteration did not converge, the norm may overflow, the result does;
 * or, 0 and above, the pivot at which it failed. */
enum {
    MATRIX_DONE = FACTOR_DONE,
    MATRIX_NO_MEMORY = FACTOR_NO_MEMORY,
    MATRIX_NOT_FINITE = -3,
    MATRIX_OVERFLOWS = -4,
    MATRIX_DIVERGES = -5,
    MATRIX_TOO_LARGE = -6,
    MATRIX_INFINITE = -7
};

typedef struct matrix_task {
    int64_t (*one)(const ed_call *call, int64_t i); /* matrix i of output 0's batch */
    const char *trouble; /* what the matrix is if a pivot fails: "is singular" */
    int64_t work;        /* some measure of the operations for one matrix */
    bool alone;          /* one matrix after the other */
    /* Where it is not NULL: does up to SMALL_MANY matrices from number i on, but for those with
     * left[0 ...], which `one` does then; in `room` bytes, which are nobody else's meanwhile. */
    void (*many)(const ed_call *call, int64_t i, int64_t count, bool *left, void *room);
    size_t room;
} matrix_task;

/* Runs the task on all matrices of output `output`, whose last `inner` dimensions are one result.
 * If some fail, the error names the first of them. */
bool matrices_run(ed_call *call, int output, int inner, matrix_task task);

/* Matrix i of a contiguous tensor; of an operand that broadcasts to the leading dimensions of y. */
void *matrix_at(const ed_tensor *x, int64_t i);
void *matrix_of(const ed_tensor *x, const ed_tensor *y, int64_t i);

/* Rows and columns of a tensor's matrices; the number of matrices. */
static inline int64_t matrix_rows(const ed_tensor *x)
{
    return x->shape[x->rank - 2];
}
static inline int64_t matrix_columns(const ed_tensor *x)
{
    return x->shape[x->rank - 1];
}
int64_t matrix_count(const ed_tensor *x);

/* Whether all of n numbers from `data` on are finite. */
bool matrix_is_finite(ed_dtype dtype, const void *data, int64_t n);

/* The same, and copies them, finite or not. */
bool matrix_copy_finite(ed_dtype dtype, const void *data, int64_t n, void *copy);

/* The same where a norm of the matrix is needed, which may come to `terms` times its largest
 * element: MATRIX_DONE, or what is wrong. */
int64_t matrix_check_norm(ed_dtype dtype, const void *data, int64_t n, int64_t terms);

/* Fails unless operand i has rank >= 2, or is a batch of square matrices. */
bool matrix_check(const ed_call *call, int i);
bool matrix_check_square(const ed_call *call, int i);

/* The leading dimensions of inputs 0 and 1, which have rank >= 2, broadcast; fails if they
 * don't. */
bool matrix_broadcast(const ed_call *call, int *rank, int64_t *shape);

/* n bytes at x and at y change places. */
void matrix_exchange(char *x, char *y, size_t n);

/* LU of a copy of A [n, n], with the exchanges of rows: memory that the caller frees, and the code;
 * NULL if that says why there is none. */
void *matrix_lu(ed_dtype dtype, int64_t n, const void *a, int64_t **swaps, int64_t *code);

/* X = A^-1 B, or A^-T B, in place of B [n, columns], by these factors; false without memory. */
bool matrix_solve_factored(ed_dtype dtype, bool adjoint, int64_t n, const void *lu,
                           const int64_t *swaps, int64_t columns, char *b);

/* Fails unless LAPACK can take the matrices of operand 0; a task's code from what LAPACK says. */
bool matrix_check_lapack(const ed_call *call);
int64_t matrix_lapack_code(int info);

/* ---- For references -------------------------------------------------------------------------- */

/* The matrix of x that belongs to matrix i of y, as a copy in the scope, float64. */
double *matrix_copied(const ed_tensor *x, const ed_tensor *y, int64_t i);

/* b [n, columns] becomes a^-1 b by Gauss' elimination; a is lost. Returns the determinant, and
 * stores the logarithm of its absolute value where that is wanted; 0 for a singular matrix. */
double matrix_eliminate(int64_t n, double *a, int64_t columns, double *b, double *log_abs);

/* The eigenvalues of symmetric a [n, n] by Jacobi's method, the smallest first; a is lost. */
void matrix_eigenvalues(int64_t n, double *a, double *w);

/*
 * The singular values of A [m, n], n <= m, from the largest on, by Jacobi's rotations of its
 * columns. These become A V / largest, the largest of A's absolute values, which is returned; V [n,
 * n] is stored where it is wanted.
 */
double matrix_singular(int64_t m, int64_t n, double *a, double *v, double *s);

/* ---- Made of public ops, for gradients and compositions -------------------------------------- */

/* The last two axes in the other order. */
ed_tensor *matrix_transpose(ed_tensor *x);

/* x where column - row <= most (and >= least), else 0. */
ed_tensor *matrix_band(ed_tensor *x, int64_t least, int64_t most);

/* The diagonal of x [..., m, n], as [..., min(m, n)]; the square matrices of a diagonal [...,
 * n]. */
ed_tensor *matrix_diagonal(ed_tensor *x);
ed_tensor *matrix_of_diagonal(ed_tensor *diagonal);

/* The identity of n rows, of x's dtype. */
ed_tensor *matrix_eye(int64_t n, const ed_tensor *x);

/* x[..., :rows, :columns]. */
ed_tensor *matrix_corner(ed_tensor *x, int64_t rows, int64_t columns);

/*
 * The gradient of f, a function of matrices that is a power series of a or the limit of some, by
 * its first operand, which is saved: the upper right block of f([a^T dy; 0 a^T]) (Higham, Functions
 * of Matrices, 2008, (3.16)).
 */
bool matrix_function_gradient(const ed_gradient_call *g, ed_tensor *(*f)(ed_tensor *a));

#endif
