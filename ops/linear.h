/* Between linear_relu_gradient (ops/matmul.c) and its loops (ops/linear.simd.c). */
#ifndef EDDY_OPS_LINEAR_H
#define EDDY_OPS_LINEAR_H

#include "ops/kernels/isa.h"
#include "tensor/types.h"
#include <stdint.h>

/* Loops over rows of n numbers, for one float type. */
typedef struct linear_loops {
    /* g = dy where y > 0, else 0, and the sums of g's columns, row after row. */
    void (*mask)(int64_t rows, int64_t n, const void *dy, const void *y, void *g, void *sums);
    /* total = the sums of groups of rows, one after the other. */
    void (*join)(int64_t groups, int64_t n, const void *sums, void *total);
} linear_loops;

ISA_DECLARE_TABLE(linear_loops, linear_table, []);

#endif
