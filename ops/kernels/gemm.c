/*
 * Cuts matrix products into pieces for threads. A piece is a rectangle of C with all of k; pieces
 * know nothing of each other, each packs what it needs into scratch of its own:
 *
 *            +-----------+-----------+
 *            | piece 0   | piece 1   |
 *     C      +-----------+-----------+
 *            | piece 2   | piece 3   |
 *            +-----------+-----------+
 *
 * A cut between columns makes both sides pack A, one between rows makes both pack B: the grid is
 * the cheapest of those with the number of pieces that is wanted.
 *
 * Large pieces have loops of their own (gemm_large.c). A small C under a large k gives too few
 * pieces: there the blocks of k are computed side by side into scratch and then added in their
 * order. By the definition in gemm.h no cut changes a bit, so the grid may follow the number of
 * threads.
 *
 * Pieces of products that OpenBLAS takes (blas.h) are cut by the product's shape alone, since each
 * cut may change their bits.
 */
#include "ops/kernels/blas.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_piece.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    THREAD_WORK = HARD(1, 65536), /* multiply-adds that pay for waking one more thread */
    SMALL_SCRATCH = 4096,         /* bytes of scratch taken from the stack, which costs nothing */
    BLAS_EDGE = 128,              /* of the square pieces that OpenBLAS computes */
    BLAS_LARGE = 1 << 20,         /* elements of C from which on they are of twice that edge */
};

/* How a run is cut: each of the batch's products into rows x columns pieces. */
typedef struct grid {
    int64_t rows, columns;
} grid;

static int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

/* Threads worth using for the whole run. */
static int64_t thread_count(const gemm_job *job, int64_t count)
{
    double columns = (double)ceil_div(job->n, 16) * 16;
    double work = (double)job->m * columns * (double)job->k * (double)count;
    if (work < 2 * THREAD_WORK) return 1;
    double most = work / THREAD_WORK;
    int threads = threads_count();
    return most < threads ? (int64_t)most : threads;
}

/* The time of the grid's largest piece, in steps of the micro-kernel: its tiles, padded as they
 * are, and its packing, which of a large one's B leaves the second-level cache. */
static double piece_cost(const gemm_job *job, grid g, int64_t tile_rows, int64_t tile_columns)
{
    double rows = (double)ceil_div(job->m, g.rows);
    double columns = (double)(ceil_div(ceil_div(job->n, g.columns), tile_columns) * tile_columns);
    double stripes = (double)ceil_div(ceil_div(job->m, g.rows), tile_rows);
    return rows * columns + (job->large ? 12 : 4) * columns + 6 * rows + stripes * columns;
}

static grid choose_grid(const gemm_job *job, int64_t pieces)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    grid best = {1, 1};
    double best_cost = piece_cost(job, best, tile_rows, tile_columns);
    for (int64_t rows = 1; rows <= min64(pieces, job->m); rows++) {
        grid g = {rows, min64(pieces / rows, ceil_div(job->n, tile_columns))};
        double cost = piece_cost(job, g, tile_rows, tile_columns);
        if (cost < best_cost) best = g, best_cost = cost;
    }
    return best;
}

/* Where part `i` of `parts` begins in a length cut evenly at multiples of `unit`. */
static int64_t cut(int64_t length, int64_t parts, int64_t i, int64_t unit)
{
    int64_t units = ceil_div(length, unit);
    return min64(length, (units * i / parts) * unit);
}

/* Piece `i` of the grid. */
static gemm_job take_piece(const gemm_job *job, grid g, int64_t i)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    int64_t row = cut(job->m, g.rows, i / g.columns, 1);
    int64_t column = cut(job->n, g.columns, i % g.columns, tile_columns);
    return gemm_part(job, row, cut(job->m, g.rows, i / g.columns + 1, 1) - row, column,
                     cut(job->n, g.columns, i % g.columns + 1, tile_columns) - column);
}

/* One as large as any piece of the job cut by g. */
static gemm_job largest_piece(const gemm_job *job, grid g)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    gemm_job largest = *job;
    largest.m = ceil_div(job->m, g.rows);
    largest.n = min64(job->n, ceil_div(ceil_div(job->n, tile_columns), g.columns) * tile_columns);
    return largest;
}

/* Scratch that any piece of the job cut by g needs. */
static size_t piece_scratch(const gemm_job *job, grid g)
{
    const gemm_job largest = largest_piece(job, g);
    return job->large ? gemm_large_scratch(&largest, 1) : ISA_CALL(gemm_scratch)(&largest);
}

/* What the threads share: pieces of one cut, `each` bytes of scratch for a worker. */
typedef struct shared {
    const gemm_job *job;
    const gemm_batch *batch;
    grid g;
    char *sums, *scratch;
    size_t each;
} shared;

static void compute(const gemm_job *piece, char *scratch)
{
    if (piece->blas)
        blas_gemm(piece);
    else if (piece->large)
        gemm_large(piece, 1, scratch);
    else
        ISA_CALL(gemm_piece)(piece, scratch);
}

/* Blocks of k side by side, each into its own slice of `sums`. */
static void run_blocks(int64_t first, int64_t last, int worker, void *user)
{
    const shared *s = user;
    const gemm_job *job = s->job;
    char *sums = s->sums;
    int64_t block = gemm_block(job->wide, job->k);
    int64_t row = job->n * (job->wide ? 8 : 4);
    for (int64_t i = first; i < last; i++) {
        gemm_job piece = *job;
        piece.k = min64(block, job->k - i * block);
        piece.a += i * block * job->a_col;
        piece.b += i * block * job->b_row;
        piece.c = sums + i * job->m * row;
        piece.c_row = row;
        piece.bias = NULL;
        piece.relu = false;
        compute(&piece, s->scratch + s->each * (size_t)worker);
    }
}

/* The blocks' sums added in their order, and the epilogue. C is small here. */
static void add_blocks(const gemm_job *job, const char *sums)
{
    int64_t size = job->wide ? 8 : 4, blocks = ceil_div(job->k, gemm_block(job->wide, job->k));
    for (int64_t i = 0; i < job->m; i++) {
        char *c = job->c + i * job->c_row;
        for (int64_t j = 0; j < job->n; j++) {
            const char *from = sums + (i * job->n + j) * size;
            if (job->wide) {
                double sum = *(const double *)from;
                for (int64_t q = 1; q < blocks; q++)
                    sum += *(const double *)(from + q * job->m * job->n * size);
                if (job->bias)
                    sum += *(const double *)(job->bias + i * job->bias_row + j * job->bias_col);
                ((double *)c)[j] = job->relu && sum < 0 ? 0 : sum;
            } else {
                float sum = *(const float *)from;
                for (int64_t q = 1; q < blocks; q++)
                    sum += *(const float *)(from + q * job->m * job->n * size);
                if (job->bias)
                    sum += *(const float *)(job->bias + i * job->bias_row + j * job->bias_col);
                ((float *)c)[j] = job->relu && sum < 0 ? 0 : sum;
            }
        }
    }
}

static bool run_deep(const gemm_job *job)
{
    int64_t blocks = ceil_div(job->k, gemm_block(job->wide, job->k));
    size_t each = piece_scratch(job, (grid){1, 1});
    int count = threads_count();
    char *scratch = memory_alloc(each * (size_t)count);
    char *sums = memory_alloc((size_t)(blocks * job->m * job->n) * (job->wide ? 8 : 4));
    bool ok = scratch && sums;
    if (ok) {
        threads_run_among(count, blocks, thread_count(job, 1) == 1 ? blocks : 1, run_blocks,
                          &(shared){.job = job, .sums = sums, .scratch = scratch, .each = each});
        add_blocks(job, sums);
    }
    memory_free(sums);
    memory_free(scratch);
    return ok;
}

/* A C of one or few tiles with many blocks of k; its scratch is no larger than the operands. */
static bool is_deep(const gemm_job *job, int64_t threads)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    int64_t tiles = ceil_div(job->m, tile_rows) * ceil_div(job->n, tile_columns);
    return tiles < threads && job->k >= 4 * gemm_block(job->wide, job->k);
}

/* The same for OpenBLAS, whose pieces must not depend on the number of threads. */
static bool is_deep_blas(const gemm_job *job)
{
    return job->m * job->n <= BLAS_EDGE * BLAS_EDGE && job->k >= 4 * gemm_block(job->wide, job->k);
}

static gemm_job take_product(const gemm_job *job, const gemm_batch *batch, int64_t i)
{
    int64_t size = job->wide ? 8 : 4;
    gemm_job product = *job;
    if (!batch) return product;
    product.a += batch->a[i] * size;
    product.b += batch->b[i] * size;
    product.c += batch->c[i] * size;
    return product;
}

static bool run_deep_batch(const gemm_job *job, const gemm_batch *batch, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        gemm_job product = take_product(job, batch, i);
        if (!run_deep(&product)) return false;
    }
    return true;
}

static bool run_alone(const gemm_job *job, const gemm_batch *batch, int64_t count)
{
    char small[SMALL_SCRATCH] __attribute__((aligned(64)));
    size_t bytes = piece_scratch(job, (grid){1, 1});
    char *scratch = bytes <= sizeof small ? small : memory_alloc(bytes);
    if (!scratch) return false;
    for (int64_t i = 0; i < count; i++) {
        gemm_job product = take_product(job, batch, i);
        ISA_CALL(gemm_piece)(&product, scratch);
    }
    if (scratch != small) memory_free(scratch);
    return true;
}

static void run_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const shared *s = user;
    int64_t per_product = s->g.rows * s->g.columns;
    for (int64_t i = first; i < last; i++) {
        gemm_job product = take_product(s->job, s->batch, i / per_product);
        gemm_job piece = take_piece(&product, s->g, i % per_product);
        compute(&piece, s->scratch + s->each * (size_t)worker);
    }
}

/* A large lower product, whose rows differ in work: cut by gemm_large itself. */
static bool run_lower(const gemm_job *job)
{
    const int workers = threads_count();
    char *scratch = memory_alloc(gemm_large_scratch(job, workers));
    if (!scratch) return false;
    gemm_large(job, workers, scratch);
    memory_free(scratch);
    return true;
}

/* Pieces of each of `count` products: the fewest with which the threads end at about the same time.
 * More of them would pack more. */
static int64_t pieces_each(int64_t count, int64_t threads)
{
    const int64_t least = ceil_div(threads, count);
    for (int64_t each = least; each < 2 * least + 2; each++)
        if (8 * threads * ceil_div(count * each, threads) <= 9 * count * each) return each;
    return least;
}

static bool run_grid(const gemm_job *job, const gemm_batch *batch, int64_t count, int64_t threads)
{
    const grid g = choose_grid(job, pieces_each(count, threads));
    int64_t pieces = g.rows * g.columns * count;
    size_t each = piece_scratch(job, g);
    int workers = threads_count();
    char *scratch = memory_alloc(each * (size_t)workers);
    if (!scratch) return false;
    threads_run_among(
        workers, pieces, 1 + (pieces - 1) / (4 * threads), run_pieces,
        &(shared){.job = job, .batch = batch, .g = g, .scratch = scratch, .each = each});
    memory_free(scratch);
    return true;
}

/* Whether a product's pieces for so many threads are large ones. */
static bool is_large(const gemm_job *job, int64_t threads)
{
    const gemm_job piece = largest_piece(job, choose_grid(job, threads));
    return gemm_is_large(&piece);
}

/* Whether the products of a batch, none of which is cut for so many threads, pack the same A. */
static bool packs_alike(const gemm_job *job, const gemm_batch *batch, int64_t count,
                        int64_t threads)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    if (pieces_each(count, threads) > 1) return false;
    if (job->m < 2 || job->k <= 0 || job->n <= 4 * tile_columns) return false;
    for (int64_t i = 1; i < count; i++)
        if (batch->a[i] != batch->a[0]) return false;
    return true;
}

static void pack_stripes(int64_t first, int64_t last, int worker, void *user)
{
    const shared *s = user;
    (void)worker;
    ISA_CALL(gemm_pack_stripes)(s->job, first, last, s->scratch);
}

/* A batch whose A is packed once for all. */
static bool run_alike(const gemm_job *job, const gemm_batch *batch, int64_t count, int64_t threads)
{
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(job->wide, &tile_rows, &tile_columns);
    const int64_t blocks = ceil_div(job->k, gemm_block(job->wide, job->k));
    const int64_t stripes = ceil_div(job->m, tile_rows);
    gemm_job packed = take_product(job, batch, 0);
    char *a = memory_alloc((size_t)blocks * ISA_CALL(gemm_rows_scratch)(job->wide, job->k, job->m));
    if (!a) return false;
    threads_run(stripes, threads > 1 ? 1 + stripes / (4 * threads) : stripes, pack_stripes,
                &(shared){.job = &packed, .scratch = a});
    packed = *job;
    packed.stripes = a;
    const bool ok =
        threads > 1 ? run_grid(&packed, batch, count, threads) : run_alone(&packed, batch, count);
    memory_free(a);
    return ok;
}

static bool run_blas(const gemm_job *job, const gemm_batch *batch, int64_t count)
{
    if (!job->subtract && is_deep_blas(job)) return run_deep_batch(job, batch, count);
    int64_t edge = job->m * job->n >= BLAS_LARGE ? 2 * BLAS_EDGE : BLAS_EDGE;
    grid g = {ceil_div(job->m, edge), ceil_div(job->n, edge)};
    int64_t pieces = g.rows * g.columns * count, threads = thread_count(job, count);
    threads_run(pieces, threads == 1 ? pieces : 1 + (pieces - 1) / (4 * threads), run_pieces,
                &(shared){.job = job, .batch = batch, .g = g});
    return true;
}

/* An operand [rows, columns], strides in bytes, row by row into `to`. */
static void pack(bool wide, int64_t rows, int64_t columns, const char *from, int64_t row,
                 int64_t column, void *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const char *element = from + i * row + j * column;
            if (wide)
                ((double *)to)[i * columns + j] = *(const double *)element;
            else
                ((float *)to)[i * columns + j] = *(const float *)element;
        }
}

/* Products of operands of which OpenBLAS cannot read one or both: with copies of these. */
static bool run_blas_packed(const gemm_job *job, const gemm_batch *batch, int64_t count)
{
    const int64_t size = job->wide ? 8 : 4, m = job->m, n = job->n, k = job->k;
    const bool pack_a = !blas_reads(job->wide, m, k, job->a_row, job->a_col);
    const bool pack_b = !blas_reads(job->wide, k, n, job->b_row, job->b_col);
    char *a = pack_a ? memory_alloc((size_t)(m * k * size)) : NULL;
    char *b = pack_b ? memory_alloc((size_t)(k * n * size)) : NULL;
    bool ok = (a || !pack_a) && (b || !pack_b);
    for (int64_t i = 0; ok && i < count; i++) {
        gemm_job product = take_product(job, batch, i);
        if (pack_a) {
            pack(job->wide, m, k, product.a, job->a_row, job->a_col, a);
            product.a = a, product.a_row = k * size, product.a_col = size;
        }
        if (pack_b) {
            pack(job->wide, k, n, product.b, job->b_row, job->b_col, b);
            product.b = b, product.b_row = n * size, product.b_col = size;
        }
        ok = run_blas(&product, NULL, 1);
    }
    memory_free(a);
    memory_free(b);
    return ok;
}

static bool run(const gemm_job *job, const gemm_batch *batch)
{
    int64_t count = batch ? batch->count : 1;
    if (job->m <= 0 || job->n <= 0 || count <= 0) return true;
    if (blas_takes(job)) {
        gemm_job theirs = *job;
        theirs.blas = true;
        return blas_reads(job->wide, job->m, job->k, job->a_row, job->a_col) &&
                       blas_reads(job->wide, job->k, job->n, job->b_row, job->b_col)
                   ? run_blas(&theirs, batch, count)
                   : run_blas_packed(&theirs, batch, count);
    }
    int64_t threads = thread_count(job, count);
    if (count == 1 && gemm_is_large(job)) {
        if (job->lower && !batch) return run_lower(job);
        gemm_job large = *job;
        large.large = true;
        large.at_once = (int)threads;
        if (is_large(&large, threads)) return run_grid(&large, batch, 1, threads);
    }
    if (count > 1 && packs_alike(job, batch, count, threads))
        return run_alike(job, batch, count, threads);
    if (threads == 1) return run_alone(job, batch, count);
    if (count >= threads || job->subtract || !is_deep(job, threads))
        return run_grid(job, batch, count, threads);
    return run_deep_batch(job, batch, count);
}

/* A job from a caller's arguments, whose strides are in elements. */
static gemm_job make_job(bool wide, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row,
                         int64_t a_col, const void *b, int64_t b_row, int64_t b_col, void *c,
                         int64_t c_row, const gemm_epilogue *epilogue)
{
    int64_t size = wide ? 8 : 4;
    return (gemm_job){
        .wide = wide,
        .relu = epilogue && epilogue->activation == GEMM_RELU,
        .subtract = epilogue && epilogue->subtract,
        .lower = epilogue && epilogue->lower,
        .m = m,
        .n = n,
        .k = k,
        .a = a,
        .b = b,
        .c = c,
        .a_row = a_row * size,
        .a_col = a_col * size,
        .b_row = b_row * size,
        .b_col = b_col * size,
        .c_row = c_row * size,
        .bias = epilogue ? epilogue->bias : NULL,
        .bias_row = epilogue && epilogue->by_row ? size : 0,
        .bias_col = epilogue && epilogue->by_row ? 0 : size,
    };
}

bool gemm_f32(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col,
              const float *b, int64_t b_row, int64_t b_col, float *c, int64_t c_row,
              const gemm_epilogue *epilogue)
{
    gemm_job job = make_job(false, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, epilogue);
    return run(&job, NULL);
}

bool gemm_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, int64_t a_col,
              const double *b, int64_t b_row, int64_t b_col, double *c, int64_t c_row,
              const gemm_epilogue *epilogue)
{
    gemm_job job = make_job(true, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, epilogue);
    return run(&job, NULL);
}

bool gemm_batch_f32(const gemm_batch *batch, int64_t m, int64_t n, int64_t k, const float *a,
                    int64_t a_row, int64_t a_col, const float *b, int64_t b_row, int64_t b_col,
                    float *c, int64_t c_row, const gemm_epilogue *epilogue)
{
    gemm_job job = make_job(false, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, epilogue);
    return run(&job, batch);
}

bool gemm_batch_f64(const gemm_batch *batch, int64_t m, int64_t n, int64_t k, const double *a,
                    int64_t a_row, int64_t a_col, const double *b, int64_t b_row, int64_t b_col,
                    double *c, int64_t c_row, const gemm_epilogue *epilogue)
{
    gemm_job job = make_job(true, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, epilogue);
    return run(&job, batch);
}
