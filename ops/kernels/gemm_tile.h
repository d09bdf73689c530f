/*
 * A tile of C: the micro-kernels that sum it, and what is done to sums when they are complete. For
 * the *.simd.c files of products, within ISA.
 */
#ifndef EDDY_OPS_KERNELS_GEMM_TILE_H
#define EDDY_OPS_KERNELS_GEMM_TILE_H

#include "ops/kernels/gemm_piece.h"
#include "ops/kernels/gemm_vector.h"

/* What tiles of one block of k share, and the place of the next. */
typedef struct tile {
    int64_t k; /* steps of a run */
    const char *a, *b;
    int64_t a_row, a_col, b_row;
    char *packed; /* where the packing tiles put B */
    int64_t runs; /* the sum is over so many runs, which begin at these offsets (NULL: one at 0) */
    const int64_t *a_runs, *b_runs;
    char *c;
    int64_t c_row;
    int lanes;     /* valid ones in the tile's last vector */
    bool first;    /* the block begins the sum, else C holds what came before */
    bool subtract; /* the sum is subtracted, from what C holds */
    bool relu;     /* these two only in the last block */
    const char *bias;
    int64_t bias_row, bias_col;
} tile;

/* Begins a block's tiles: what they share, with the last block ending the sums. */
static inline tile tile_begin(const gemm_job *job, int64_t p, int64_t k)
{
    bool last = p + k >= job->k;
    tile t = {.k = k,
              .runs = 1,
              .a_row = job->a_row,
              .a_col = job->a_col,
              .b_row = job->b_row,
              .c_row = job->c_row,
              .first = p == 0 && !job->subtract,
              .subtract = job->subtract,
              .relu = last && job->relu,
              .bias = last ? job->bias : NULL,
              .bias_row = job->bias_row,
              .bias_col = job->bias_col};
    return t;
}

/* Puts the tile's first element at c(i,j), with its bias, if the block ends the sums. */
static inline void tile_at(tile *t, const gemm_job *job, int64_t i, int64_t j)
{
    t->c = job->c + i * job->c_row + j * (job->wide ? 8 : 4);
    if (t->bias) t->bias = job->bias + i * job->bias_row + j * job->bias_col;
}

/* Joins a sum with what C holds, ends it where the block is the last, and puts it into C. */
INLINE void write_back(const tile *t, const bool wide, vec sum, int64_t row, int64_t column,
                       int lanes)
{
    const bool part = lanes < lanes_of(wide);
    char *c = t->c + row * t->c_row + column;
    if (t->subtract) sum = negative(wide, sum);
    if (!t->first) sum = add(wide, part ? load_part(wide, c, lanes) : load(c), sum);
    if (t->bias) {
        const char *bias = t->bias + row * t->bias_row;
        vec shift = !t->bias_col ? spread(wide, bias)
                    : part       ? load_part(wide, bias + column, lanes)
                                 : load(bias + column);
        sum = add(wide, sum, shift);
    }
    if (t->relu) sum = relu(wide, sum);
    if (part)
        store_part(wide, c, sum, lanes);
    else
        store(c, sum);
}

/* Sums a tile: [wide][two vectors a row, else one][A's column is contiguous][rows - 1]. */
typedef void (*tile_function)(const tile *);
extern const tile_function ISA_NAME(gemm_tiles)[2][2][2][ROWS];

/* Those of two vectors and a contiguous A that also pack B while they read it: [wide][rows - 1]. */
extern const tile_function ISA_NAME(gemm_packing_tiles)[2][ROWS];

/* The same of one vector a row, where runs are 3 or 5 cells that rows share: [wide][cells / 4]
 * [rows - 1]. */
extern const tile_function ISA_NAME(gemm_cells)[2][2][ROWS];

/* Does a product of one row, if B's layout allows to go without packing. */
bool ISA_NAME(gemm_row)(const gemm_job *job, char *scratch);

/* Bytes of scratch that gemm_row needs for `columns` columns. */
size_t ISA_NAME(gemm_row_scratch)(bool wide, int64_t columns);

#endif
