#include "ops/kernels/factor.h"
#include "ops/kernels/gemm.h"
#include "tensor/hard.h"
#include "tensor/memory.h"
#include "tensor/typed.h"
#include <stddef.h>
#include <string.h>

enum {
    FEW = 16,                  /* columns that are factored one after the other */
    NARROW = HARD(16, 64),     /* columns that are copied where they are part of a matrix ... */
    WIDE = HARD(16, 128),      /* ... of more than so many */
    STRIP = HARD(3, 64),       /* columns of B in which rows are substituted */
    PANEL = HARD(2, 32),       /* reflections that are applied together */
    SMALL = HARD(64, 4 * 4096) /* multiply-adds of a product that plain loops compute */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define TYPE f32
#include "ops/kernels/factor.typed.h"
#define TYPE f64
#include "ops/kernels/factor.typed.h"
