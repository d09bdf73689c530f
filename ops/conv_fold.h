/* Between conv_fold.c, the gradient of conv2d by an input of few channels, and its loops,
 * conv_fold.simd.c. */
#ifndef EDDY_OPS_CONV_FOLD_H
#define EDDY_OPS_CONV_FOLD_H

#include "ops/conv_gemm.h"

/* Products of rows of dy with the kernel, and the image of dx they are added to; steps in
 * elements. */
typedef struct fold_plan {
    const conv *c;
    bool by_taps;     /* rows of products are taps, their columns positions; else vice versa */
    int64_t in, taps; /* channels; products of a position: taps times channels */
    int64_t row;      /* from one row of products to the next */
    int64_t cell, line, plane; /* from one cell, row or channel of dx to the next */
    int64_t inner[2];          /* positions that have all columns of the kernel */
} fold_plan;

typedef struct fold_loops {
    /* Adds the products of dy's row oh that are of rows [begin, end) of the image. */
    void (*add)(const fold_plan *f, const void *products, void *image, int64_t oh, int64_t begin,
                int64_t end);
} fold_loops;

ISA_DECLARE_TABLE(fold_loops, fold_table, []);

#endif
