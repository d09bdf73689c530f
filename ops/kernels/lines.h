/*
 * Lines of a matrix (its rows, or its columns where these lie together) times vectors: what the
 * reductions of spectral.h do between their matrix products. Lines are `stride` elements apart, and
 * their length is a multiple of LINES_UNIT elements, of which those that do not count are finite
 * under zeros of the vector. On the calling thread.
 */
#ifndef EDDY_OPS_KERNELS_LINES_H
#define EDDY_OPS_KERNELS_LINES_H

#include "ops/kernels/isa.h"
#include <stdbool.h>
#include <stdint.h>

/* The elements that all lengths and places are multiples of: whole vectors of every set. */
enum { LINES_UNIT = 16 };

/* y [length] += the sum of z[r step] line(r). */
ISA_DECLARE(void, lines_add, bool wide, int64_t lines, int64_t length, const void *a,
            int64_t stride, const void *z, int64_t step, void *y);

/* sums[r] = line(r) x. */
ISA_DECLARE(void, lines_dot, bool wide, int64_t lines, int64_t length, const void *a,
            int64_t stride, const void *x, void *sums);

/*
 * y += what the rows [first, last) of symmetric A [n, n] give of A x, as rows and as columns. Only
 * what is on the diagonal and right of it is read, and all of the squares of LINES_UNIT rows on the
 * diagonal. first, last and n are multiples of LINES_UNIT.
 */
ISA_DECLARE(void, lines_symmetric, bool wide, int64_t first, int64_t last, int64_t n, const void *a,
            int64_t stride, const void *x, void *y);

/*
 * X = T^-1 B in place of the lines of B [n, length], for triangular T [n, n] with those strides,
 * n <= LINES_FEW. `unit`: the diagonal counts as 1 and is not read.
 */
enum { LINES_FEW = 32 };
ISA_DECLARE(void, lines_substitute, bool wide, bool lower, bool unit, int64_t n, const void *t,
            int64_t row, int64_t column, int64_t length, void *b, int64_t stride);

/* The first index below n of the largest absolute value, NaN not counting; 0 if there is none. */
ISA_DECLARE(int64_t, lines_largest, bool wide, int64_t n, const void *x);

/* The sum of n squares, in float64. */
ISA_DECLARE(double, lines_squares, bool wide, int64_t n, const void *x);

#endif
