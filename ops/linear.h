/* linear_relu_gradient (ops/linear.c), which other gradients begin with, and its loops. */
#ifndef EDDY_OPS_LINEAR_H
#define EDDY_OPS_LINEAR_H

#include "ops/kernels/isa.h"
#include "ops/op.h"
#include "tensor/types.h"
#include <stdint.h>

/* Loops over rows of n numbers, for one float type. */
typedef struct linear_loops {
    /* g = dy where y > 0, else 0, and the sums of g's columns, row after row. */
    void (*mask)(int64_t rows, int64_t n, const void *dy, const void *y, void *g, void *sums);
    /* total = the sums of groups of rows, one after the other. */
    void (*join)(int64_t groups, int64_t n, const void *sums, void *total);
} linear_loops;

/* Of a gradient function whose y = relu(z), z = ... + bias: returns dz, which is dy where y > 0,
 * else 0, and puts the sum of its rows to *dbias. NULL with an error kept. */
ed_tensor *ops_relu_backward(const ed_gradient_call *g, ed_tensor **dbias);

ISA_DECLARE_TABLE(linear_loops, linear_table, []);

#endif
