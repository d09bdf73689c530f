/*
 * OpenBLAS for the products that it computes faster than our own kernels, called so that it neither
 * starts threads nor changes a setting that the program's own calls to it depend on.
 */
#ifndef EDDY_OPS_KERNELS_BLAS_H
#define EDDY_OPS_KERNELS_BLAS_H

#include "ops/kernels/gemm_piece.h"

/* Which products OpenBLAS takes: those it is ahead at, none, or every one whose layout it knows. A
 * build of it for one thread takes none. */
enum { BLAS_AHEAD, BLAS_NEVER, BLAS_ALWAYS };

/* The rule in use: BLAS_AHEAD; others are for tests and benches. It must not change while ops
 * run. */
extern int blas_rule;

/* Whether OpenBLAS takes a product: shape, layout, dtype and the machine decide, nothing else. */
bool blas_takes(const gemm_job *job);

/* Computes a job that lies as OpenBLAS wants it, on the calling thread alone. Its calls' borders
 * depend on the job's shape and on how the installed OpenBLAS was built, so its bits do too. */
void blas_gemm(const gemm_job *job);

#endif
