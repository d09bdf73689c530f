#include "ops/kernels/factor.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_piece.h"
#include "ops/kernels/lines.h"
#include "tensor/hard.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <stddef.h>
#include <string.h>

enum {
    FEW = HARD(3, LINES_FEW),   /* rows that are substituted one after the other, */
    STRIP = 64,                 /* in so many columns of B at a time, of which */
    STRIPS = HARD(1, 4),        /* a thread takes so many */
    PLAIN = HARD(3, 16),        /* rows and columns that plain loops factor, */
    COLUMNS = HARD(2, 16),      /* columns of an LU factor that are made one after the other, */
    NARROW = HARD(5, 64),       /* and how many of them are copied, to lie one after the other */
    THIN = 16,                  /* columns of which products have room of their own */
    EXCHANGED = HARD(1, 16384), /* elements that a thread exchanges at a time, */
    EXCHANGED_COLUMNS = HARD(1, 128), /* of so many columns */
    PANEL = HARD(2, 32),              /* reflections that are applied together */
    SMALL = HARD(64, 4096)            /* multiply-adds of a product that plain loops compute */
};

/* Sums of squares between these have lost nothing that matters. */
#define LEAST_SQUARES 1e-280
#define MOST_SQUARES  1e280

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t units_of(int64_t n)
{
    return (n + LINES_UNIT - 1) / LINES_UNIT * LINES_UNIT;
}

#define TYPE f32
#include "ops/kernels/factor.typed.h"
#define TYPE f64
#include "ops/kernels/factor.typed.h"
