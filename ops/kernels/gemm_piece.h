/* Between gemm.c and gemm_large.c, which cut products into pieces for threads, and gemm.simd.c,
 * which computes a piece on one thread. */
#ifndef EDDY_OPS_KERNELS_GEMM_PIECE_H
#define EDDY_OPS_KERNELS_GEMM_PIECE_H

#include "ops/kernels/isa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One product; all strides in bytes. */
typedef struct gemm_job {
    bool wide; /* float64, else float32 */
    bool relu;
    bool blas;            /* OpenBLAS computes it, see blas.h */
    bool large;           /* gemm_large computes it, ... */
    int at_once;          /* ... one of so many at a time */
    bool subtract, lower; /* see gemm_epilogue */
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t a_row, a_col, b_row, b_col, c_row;
    const char *bias; /* bias(i,j) = bias[i bias_row + j bias_col], one of them 0; or NULL */
    int64_t bias_row, bias_col;
    const char *stripes; /* what gemm_pack_stripes made of A, of which then all rows are used */
} gemm_job;

/* Rows [row, row + m) and columns [column, column + n) of a product. */
static inline gemm_job gemm_part(const gemm_job *job, int64_t row, int64_t m, int64_t column,
                                 int64_t n)
{
    gemm_job part = *job;
    part.m = m, part.n = n;
    part.a += row * job->a_row;
    part.b += column * job->b_col;
    part.c += row * job->c_row + column * (job->wide ? 8 : 4);
    if (part.bias) part.bias += row * job->bias_row + column * job->bias_col;
    return part;
}

/* The length of k's blocks, the last one's being what is left: part of what a result's bits are
 * (see gemm.h). */
enum { GEMM_BLOCK_32 = 320, GEMM_BLOCK_64 = 192, GEMM_BLOCK_BYTES = GEMM_BLOCK_64 * 8 };
static inline int64_t gemm_block(bool wide, int64_t k)
{
    int64_t longest = wide ? GEMM_BLOCK_64 : GEMM_BLOCK_32;
    int64_t blocks = (k + longest - 1) / longest;
    return blocks <= 1 ? k : (k + blocks - 1) / blocks;
}

/* Bytes of scratch that gemm_piece needs: a multiple of 64, less than a MiB. */
ISA_DECLARE(size_t, gemm_scratch, const gemm_job *job);

/* Computes a job on the calling thread. */
ISA_DECLARE(void, gemm_piece, const gemm_job *job, char *scratch);

/* Packs stripes [first, last) of A, ROWS rows each at most, for products that have it in common.
 * The bytes that all of them take are those of gemm_rows_scratch for each block of k. */
ISA_DECLARE(void, gemm_pack_stripes, const gemm_job *job, int64_t first, int64_t last, char *to);

/*
 * C = (add: C +) the sum over runs r and steps p < k of A_r B_r, for operands whose steps lie in
 * several places, as windows over images do: a_r(i,p) = a[a_runs[r] + i a_row + p a_col], b_r(p,j)
 * = b[b_runs[r] + panel(j) b_panel + p b_row + j in panel], c(i,j) = c[i c_row + j c_col]. All in
 * bytes. B is packed by gemm_pack, or lies as if it were: rows of whole vectors, b_panel = the
 * tile's columns. One sum over all runs and steps in their order; then bias(j), if there is one, is
 * added, and relu applied. A C whose rows are not contiguous (c_col is not an element's size)
 * cannot be added to.
 *
 * cells: 0, or of how many cells of k / cells steps, a_row apart, each run consists; cell q + 1 of
 * a row is then cell q of the next. The sum may be over each run's steps of all its cells in turn.
 */
typedef struct gemm_runs_job {
    bool wide, add, relu;
    int64_t m, n, k, runs, cells;
    const int64_t *a_runs, *b_runs;
    const char *a, *b;
    char *c;
    int64_t a_row, a_col, b_row, b_panel, c_row, c_col;
    const char *bias; /* contiguous, and readable up to the end of the last panel */
} gemm_runs_job;
ISA_DECLARE(void, gemm_runs, const gemm_runs_job *job);

/* Packs B[k,n] into panels of the tile's columns: a step of a panel is as long as a panel's
 * columns. */
ISA_DECLARE(void, gemm_pack, bool wide, int64_t k, int64_t n, const char *b, int64_t b_row,
            int64_t b_col, char *panels, int64_t panel_step);

/*
 * Packs k steps of up to stride/size lines (rows of A, columns of B) so that a step's elements lie
 * side by side: to[p * stride + line * size] = from[line * line_step + p * step]. What is behind
 * the last line, up to the end of its vector, becomes something that can be read, for lanes that
 * nobody keeps; steps are written in their order.
 */
ISA_DECLARE(void, gemm_pack_lines, bool wide, int64_t lines, int64_t k, const char *from,
            int64_t line_step, int64_t step, char *to, int64_t stride);

/* Turns rows of `columns` elements, readable up to the end of a vector, into columns: to[i * size +
 * j * column_step] = from[i * row_step + j * size]. Nothing else is written. */
ISA_DECLARE(void, gemm_turn, bool wide, int64_t rows, int64_t columns, const char *from,
            int64_t row_step, char *to, int64_t column_step);

/*
 * Adds the steps [p, p + gemm_block) of k to C, or begins or ends the sums where these are the
 * first or the last. `panels` has the steps' rows of B, packed as gemm_pack does one panel behind
 * the other; or they are packed there, and then used.
 */
ISA_DECLARE(void, gemm_rows, const gemm_job *job, int64_t p, bool packs, char *panels,
            char *scratch);

/* Bytes of scratch that gemm_rows needs for `rows` rows of a product of k steps. */
ISA_DECLARE(size_t, gemm_rows_scratch, bool wide, int64_t k, int64_t rows);

/* Rows and columns of the register tile, for cutting a job well. */
ISA_DECLARE(void, gemm_tile, bool wide, int64_t *rows, int64_t *columns);

/* Whether a job is large enough for gemm_large, which computes it on `workers` threads with scratch
 * of gemm_large_scratch bytes: those suffice for every smaller job of the same k too. */
bool gemm_is_large(const gemm_job *job);
size_t gemm_large_scratch(const gemm_job *job, int workers);
void gemm_large(const gemm_job *job, int workers, char *scratch);

#endif
