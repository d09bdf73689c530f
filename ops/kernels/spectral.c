/*
 * Reflections are kept as lines: line i of a matrix is the vector v of reflection i,
 * H = I - tau v v^T, zeros before its 1. A panel's reflections reach the rest of the matrix late,
 * as one product: until then a line or a product by a vector is corrected by what is due.
 *
 *     symmetric   A + V^T W + W^T V   w_i = -(what A has to be given with v_i), lines of V and W
 *     bidiagonal  M + V^T Y + X^T U   v_i reflects column i, u_i row i
 *
 * Lines begin and end at multiples of LINES_UNIT, and what is before a line's first element or
 * behind its last is finite and meets zeros.
 */
#include "ops/kernels/spectral.h"
#include "ops/kernels/factor.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_piece.h"
#include "ops/kernels/lapack.h"
#include "ops/kernels/lines.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    PANEL = HARD(3, 32),            /* reflections that reach the rest of the matrix together */
    BLOCK = HARD(5, 32),            /* those that are applied to vectors together */
    STRIP = 64,                     /* vectors to which they are applied at a time */
    PIECES = 16,                    /* the most pieces of a matrix times a vector, and ... */
    PIECE_WORK = HARD(1, 32768),    /* ... the multiply-adds that one is worth */
    ROWS = HARD(5, 48),             /* rows of the rest that a thread takes at a time */
    UPDATE_WORK = HARD(1, 1 << 18), /* multiply-adds of the rest that threads share */
    MANY_ROWS = 2                   /* from so many times the columns on, QR comes first */
};

static int64_t spectral_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The multiples of LINES_UNIT next to i. */
static int64_t unit_below(int64_t i)
{
    return i / LINES_UNIT * LINES_UNIT;
}

static int64_t unit_above(int64_t i)
{
    return unit_below(i + LINES_UNIT - 1);
}

static int64_t pieces_of(int64_t work)
{
    const int64_t pieces = spectral_least(PIECES, work / PIECE_WORK);
    return pieces > 1 ? pieces : 1;
}

/* Where band i of `bands` begins in [first, last), which are multiples of LINES_UNIT. */
static int64_t band_at(int64_t first, int64_t last, int64_t bands, int64_t i)
{
    return first + (last - first) / LINES_UNIT * i / bands * LINES_UNIT;
}

#define TYPE f32
#include "ops/kernels/spectral.typed.h"
#define TYPE f64
#include "ops/kernels/spectral.typed.h"
