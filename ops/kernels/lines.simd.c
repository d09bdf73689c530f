/* The loops of lines.h, for each instruction set. */
#include "ops/kernels/lines.h"

#ifdef ISA

#include "ops/kernels/vector.h"

enum { TOGETHER = 8 }; /* lines that share the loads of a vector */

#define TYPE f32
#include "ops/kernels/lines.typed.h"
#define TYPE f64
#include "ops/kernels/lines.typed.h"

void ISA_NAME(lines_add)(bool wide, int64_t lines, int64_t length, const void *a, int64_t stride,
                         const void *z, int64_t step, void *y)
{
    if (wide)
        lines_add_f64(lines, length, a, stride, z, step, y);
    else
        lines_add_f32(lines, length, a, stride, z, step, y);
}

void ISA_NAME(lines_dot)(bool wide, int64_t lines, int64_t length, const void *a, int64_t stride,
                         const void *x, void *sums)
{
    if (wide)
        lines_dot_f64(lines, length, a, stride, x, sums);
    else
        lines_dot_f32(lines, length, a, stride, x, sums);
}

void ISA_NAME(lines_symmetric)(bool wide, int64_t first, int64_t last, int64_t n, const void *a,
                               int64_t stride, const void *x, void *y)
{
    if (wide)
        lines_symmetric_f64(first, last, n, a, stride, x, y);
    else
        lines_symmetric_f32(first, last, n, a, stride, x, y);
}

void ISA_NAME(lines_substitute)(bool wide, bool lower, bool unit, int64_t n, const void *t,
                                int64_t row, int64_t column, int64_t length, void *b,
                                int64_t stride)
{
    if (wide)
        lines_substitute_f64(lower, unit, n, t, row, column, length, b, stride);
    else
        lines_substitute_f32(lower, unit, n, t, row, column, length, b, stride);
}

int64_t ISA_NAME(lines_largest)(bool wide, int64_t n, const void *x)
{
    return wide ? lines_largest_f64(n, x) : lines_largest_f32(n, x);
}

double ISA_NAME(lines_squares)(bool wide, int64_t n, const void *x)
{
    return wide ? lines_squares_f64(n, x) : lines_squares_f32(n, x);
}

#endif
