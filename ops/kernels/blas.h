/*
 * OpenBLAS for the products that it computes faster than our own kernels, called so that it neither
 * starts threads nor changes a setting that the program's own calls to it depend on.
 */
#ifndef EDDY_OPS_KERNELS_BLAS_H
#define EDDY_OPS_KERNELS_BLAS_H

#include "ops/kernels/gemm_piece.h"

/* Which products OpenBLAS takes: those it is ahead at, none, or every one. A build of it for one
 * thread takes none. */
enum { BLAS_AHEAD, BLAS_NEVER, BLAS_ALWAYS };

/* The rule in use: BLAS_AHEAD; others are for tests and benches. It must not change while ops
 * run. */
extern int blas_rule;

/* Whether OpenBLAS takes a product: shape, dtype and the machine decide, but not how the operands
 * lie, so that views have the bits of their copies. */
bool blas_takes(const gemm_job *job);

/* Whether it can read an operand of such strides, in bytes; if not, it must be given a copy. */
bool blas_reads(bool wide, int64_t rows, int64_t columns, int64_t row, int64_t column);

/* Computes a job whose operands OpenBLAS can read, on the calling thread alone. Its calls' borders
 * depend on the job's shape and on how the installed OpenBLAS was built, so its bits do too. */
void blas_gemm(const gemm_job *job);

#endif
