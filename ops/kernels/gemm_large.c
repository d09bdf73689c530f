/*
 * Large products: their pieces, each a large one itself on one thread, or a whole one whose threads
 * share what is packed. Block by block of k, B's panels are packed, and then rows of A, which stay
 * in the second-level cache while all panels pass by them. A panel passes all these rows before the
 * next one does, in the first-level cache:
 *
 *                         panels of B, one copy for all
 *                         +----+----+----+----+
 *        rows of A        |    |    |    |    |
 *        +----------+     +----+----+----+----+
 *        | thread 0 |     |                   |
 *        +----------+     |         C         |
 *        | thread 1 |     |                   |
 *        +----------+     +-------------------+
 *
 * Where one thread takes all rows, the first of them pack the panels on their way.
 *
 * Threads that share panels read from each other's caches and wait for each other: pieces that
 * know nothing of each other (gemm.c) are up to a tenth faster, although they pack some elements
 * several times. A lower product, whose rows differ in work, is shared.
 */
#include "ops/kernels/gemm_piece.h"
#include "tensor/hard.h"
#include "tensor/memory.h"
#include "tensor/threads.h"

enum {
    LARGE_WORK = HARD(1, 1 << 22), /* multiply-adds that pay for packing all of it */
    LARGE_STRIPES = HARD(1, 4),    /* tiles below each other, at least */
    LOWER = 4,                     /* times as many pieces of a lower product, whose work differs */
    PANELS_BYTES = 8 << 20,        /* of B that are packed at a time, */
    LEAST_PANELS = 1 << 20,        /* or fewer where more than two pieces are computed at a time */
    ROWS_BYTES = 320 << 10,        /* of A that a thread packs at a time */
};

/* What the threads share: the product, or columns of it, and the block of k that begins at p. */
typedef struct large {
    gemm_job job;
    int64_t p, block, tile_rows, tile_columns;
    int64_t column, columns; /* of the product's, the first one and how many at a time */
    int64_t pieces;          /* that C's rows are cut into */
    int workers;
    char *panels, *scratch;
    size_t each; /* bytes of scratch for a worker */
} large;

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t quotient_up(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

bool gemm_is_large(const gemm_job *job)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    return job->m >= LARGE_STRIPES * tile_rows && job->n >= 2 * tile_columns && job->k > 0 &&
           (double)job->m * (double)job->n * (double)job->k >= LARGE_WORK;
}

/* Packs the panels [first, last) of a block. */
static void pack_panels(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const large *l = user;
    const gemm_job *job = &l->job;
    const int64_t column = first * l->tile_columns;
    const int64_t columns = smaller(last * l->tile_columns, job->n) - column;
    const int64_t k = smaller(l->block, job->k - l->p);
    const int64_t panel = l->tile_columns * k * (job->wide ? 8 : 4);
    ISA_CALL(gemm_pack)
    (job->wide, k, columns, job->b + l->p * job->b_row + column * job->b_col, job->b_row,
     job->b_col, l->panels + first * panel, panel);
}

/* Where piece i of the rows begins: all but the last are whole tiles. */
static int64_t first_row(const large *l, int64_t i)
{
    const int64_t stripes = quotient_up(l->job.m, l->tile_rows);
    return smaller(l->job.m, stripes * i / l->pieces * l->tile_rows);
}

/* Whether the first rows pack the panels on their way: one thread computes all of it, in order. */
static bool packs_on_the_way(const large *l)
{
    return l->workers == 1 && !l->job.lower;
}

/* Adds the block's steps to the pieces [first, last); of a lower product up to where the piece's
 * last row has its diagonal. */
static void run_rows(int64_t first, int64_t last, int worker, void *user)
{
    const large *l = user;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = first_row(l, i), end = first_row(l, i + 1);
        const int64_t columns = l->job.lower ? smaller(end - l->column, l->job.n) : l->job.n;
        if (columns <= 0) continue;
        const gemm_job piece = gemm_part(&l->job, row, end - row, 0, columns);
        char *scratch = l->scratch + l->each * (size_t)worker;
        ISA_CALL(gemm_rows)(&piece, l->p, i == 0 && packs_on_the_way(l), l->panels, scratch);
    }
}

/* Cuts the rows into as many pieces for each worker, none larger than ROWS_BYTES if packed. */
static void cut_rows(large *l)
{
    const bool wide = l->job.wide;
    const int64_t k = l->job.k, stripes = quotient_up(l->job.m, l->tile_rows);
    const int64_t bytes = stripes * (int64_t)ISA_CALL(gemm_rows_scratch)(wide, k, l->tile_rows);
    const int64_t rounds = quotient_up(bytes, ROWS_BYTES * l->workers);
    l->pieces = smaller(rounds * l->workers * (l->job.lower ? LOWER : 1), stripes);
    l->each = ISA_CALL(gemm_rows_scratch)(wide, k, quotient_up(stripes, l->pieces) * l->tile_rows);
}

/* Bytes of B that are packed at a time. */
static int64_t panels_bytes(const large *l)
{
    const int64_t many = l->job.at_once > 2 ? 2 * PANELS_BYTES / l->job.at_once : PANELS_BYTES;
    return many < LEAST_PANELS ? LEAST_PANELS : many;
}

/* The columns of a group, which are packed together: as even as whole panels allow. */
static int64_t group_columns(const large *l)
{
    const int64_t panel = l->tile_columns * l->block * (l->job.wide ? 8 : 4);
    const int64_t panels = quotient_up(l->job.n, l->tile_columns);
    const int64_t groups = quotient_up(panels * panel, panels_bytes(l));
    return quotient_up(panels, smaller(groups, panels)) * l->tile_columns;
}

static large large_of(const gemm_job *job, int workers)
{
    large l = {.job = *job, .workers = workers, .block = gemm_block(job->wide, job->k)};
    ISA_CALL(gemm_tile)(job->wide, &l.tile_rows, &l.tile_columns);
    return l;
}

/* Groups and pieces are as even as their parts allow: by one part above what they should take. */
size_t gemm_large_scratch(const gemm_job *job, int workers)
{
    const large l = large_of(job, workers);
    const int64_t panel = l.tile_columns * l.block * (job->wide ? 8 : 4);
    const int64_t stripe = (int64_t)ISA_CALL(gemm_rows_scratch)(job->wide, job->k, l.tile_rows);
    const int64_t panels = quotient_up(job->n, l.tile_columns) * panel;
    const int64_t rows = quotient_up(job->m, l.tile_rows) * stripe;
    return (size_t)(smaller(panels, panels_bytes(&l) + panel) +
                    smaller(rows, ROWS_BYTES + stripe) * workers);
}

void gemm_large(const gemm_job *job, int workers, char *scratch)
{
    large l = large_of(job, workers);
    cut_rows(&l);
    l.columns = group_columns(&l);
    l.panels = scratch;
    l.scratch = scratch + l.columns * l.block * (job->wide ? 8 : 4);
    for (int64_t j = 0; j < job->n; j += l.columns) {
        l.job = gemm_part(job, 0, job->m, j, smaller(l.columns, job->n - j));
        l.column = j;
        for (l.p = 0; l.p < job->k; l.p += l.block) {
            if (!packs_on_the_way(&l))
                threads_run_among(workers, quotient_up(l.job.n, l.tile_columns), 4, pack_panels,
                                  &l);
            threads_run_among(workers, l.pieces, 1, run_rows, &l);
        }
    }
}
