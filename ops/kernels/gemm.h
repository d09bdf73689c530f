/*
 * Matrix products on raw memory: C[m,n] = act(A[m,k] B[k,n] + bias), on one or many matrices.
 * Nothing here knows tensors.
 *
 * What a value is. Element c(i,j) is defined by row i of A, column j of B and k alone: k is cut
 * into blocks of equal length (gemm_block), each block is summed in the order of p by fused
 * multiply-adds, and the blocks' sums are added in their order. So the same bits come out for any
 * number of threads, any tiling, any strides, for a row of a batch or the row alone; AVX2, AVX-512
 * and NEON agree too (x86-64's baseline set has no fused multiply-add and rounds more often). Zeros
 * are never skipped: 0 * NaN is NaN.
 *
 * With x86-64's baseline set larger products are OpenBLAS's (blas.h). Theirs are the same bits for
 * any number of threads and for a product alone or in a batch; layouts and single rows may differ
 * in the last bits.
 */
#ifndef EDDY_OPS_KERNELS_GEMM_H
#define EDDY_OPS_KERNELS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { GEMM_NONE, GEMM_RELU } gemm_activation;

/* What is done to an element when its sum is complete. relu(x) = x < 0 ? 0 : x, so that NaN stays
 * NaN. */
typedef struct gemm_epilogue {
    const void *bias; /* [n] contiguous, of the product's dtype, or NULL */
    gemm_activation activation;
    bool by_row; /* the bias is [m], a number for each row */
    /* C - A B instead, from what C holds: each block's sum is subtracted in turn, and k = 0 leaves
     * C as it is. lower: of C only the diagonal and what is left of it is wanted; the rest is
     * undefined. These two go with neither a bias nor an activation nor a batch. */
    bool subtract, lower;
} gemm_epilogue;

/*
 * C = act(A B + bias). a(i,p) = a[i*a_row + p*a_col], b(p,j) = b[p*b_row + j*b_col], strides in
 * elements, of any sign or 0; c(i,j) = c[i*c_row + j], and C overlaps neither A nor B. k = 0 gives
 * act(bias). `epilogue` may be NULL. False (C is then undefined) only when there is no memory for
 * scratch.
 */
bool gemm_f32(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col,
              const float *b, int64_t b_row, int64_t b_col, float *c, int64_t c_row,
              const gemm_epilogue *epilogue);
bool gemm_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, int64_t a_col,
              const double *b, int64_t b_row, int64_t b_col, double *c, int64_t c_row,
              const gemm_epilogue *epilogue);

/* Where the operands of `count` products of one shape begin: product i's A at a + a[i] elements and
 * so on. */
typedef struct gemm_batch {
    int64_t count;
    const int64_t *a, *b, *c;
} gemm_batch;

/* `batch->count` products, each as gemm_f32 and gemm_f64 would make it, threads over the whole
 * batch. */
bool gemm_batch_f32(const gemm_batch *batch, int64_t m, int64_t n, int64_t k, const float *a,
                    int64_t a_row, int64_t a_col, const float *b, int64_t b_row, int64_t b_col,
                    float *c, int64_t c_row, const gemm_epilogue *epilogue);
bool gemm_batch_f64(const gemm_batch *batch, int64_t m, int64_t n, int64_t k, const double *a,
                    int64_t a_row, int64_t a_col, const double *b, int64_t b_row, int64_t b_col,
                    double *c, int64_t c_row, const gemm_epilogue *epilogue);

#endif
