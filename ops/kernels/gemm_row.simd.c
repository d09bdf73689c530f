/*
 * Products of one row: two loops that read the matrix once, in its own direction. By rows, some of
 * B's rows at a time are streamed past a strip of sums; by columns, squares of B are turned over in
 * registers.
 */
#include "ops/kernels/isa.h"

#ifdef ISA
#include "ops/kernels/gemm_tile.h"

enum {
    LINE = 64,                  /* bytes of a line of the cache */
    APART = 4096,               /* bytes within which a strip begins, see gemm_row */
    STRIP = 16 * 1024,          /* bytes of sums that are kept at hand */
    STREAMED = 2 * 1024 * 1024, /* bytes of B that a product of one row reads along few lines */
    ASKED = BYTES == 64,        /* whether lines of such a B are asked for, see row_by_columns */
};

/* A row of sums into C at byte `at` of its only row. */
INLINE void write_row(const gemm_job *job, const tile *begun, const bool wide, const char *sums,
                      int64_t at, int64_t bytes)
{
    tile t = *begun;
    tile_at(&t, job, 0, at / size_of(wide));
    for (int64_t j = 0; j < bytes; j += BYTES)
        write_back(&t, wide, load(sums + j), 0, j, (int)(min(BYTES, bytes - j) / size_of(wide)));
}

/* sums += the sum over `steps` steps of a(p) b(p, strip). */
INLINE void add_steps(const bool wide, const int steps, const tile *t, const char *a, const char *b,
                      char *restrict sums, int64_t bytes)
{
    vec x[8];
    UNROLL for (int q = 0; q < steps; q++) x[q] = spread(wide, a + q * t->a_col);
    int64_t j = 0;
    for (; j + BYTES <= bytes; j += BYTES) {
        vec sum = load(sums + j);
        UNROLL for (int q = 0; q < steps; q++) sum =
            multiply_add(wide, x[q], load(b + q * t->b_row + j), sum);
        store(sums + j, sum);
    }
    if (j < bytes) {
        int lanes = (int)(bytes - j) / size_of(wide);
        vec sum = load(sums + j);
        UNROLL for (int q = 0; q < steps; q++) sum =
            multiply_add(wide, x[q], load_part(wide, b + q * t->b_row + j, lanes), sum);
        store(sums + j, sum);
    }
}

/* One row times a matrix whose rows are contiguous: streams eight of B's rows at a time past a
 * strip of sums. */
INLINE void row_by_rows(const gemm_job *job, const bool wide, char *restrict sums)
{
    int64_t block = gemm_block(wide, job->k), width = job->n * size_of(wide);
    for (int64_t j = 0; j < width; j += STRIP) {
        int64_t bytes = min(STRIP, width - j);
        for (int64_t p = 0; p < job->k; p += block) {
            tile t = tile_begin(job, p, min(block, job->k - p));
            const char *a = job->a + p * t.a_col, *b = job->b + p * t.b_row + j;
            memset(sums, 0, (size_t)(bytes + BYTES - 1) / BYTES * BYTES);
            int64_t q = 0;
            for (; q + 8 <= t.k; q += 8)
                add_steps(wide, 8, &t, a + q * t.a_col, b + q * t.b_row, sums, bytes);
            for (; q < t.k; q++)
                add_steps(wide, 1, &t, a + q * t.a_col, b + q * t.b_row, sums, bytes);
            write_row(job, &t, wide, sums, j, bytes);
        }
    }
}

/* Vectors of a row of C side by side: for eight columns, if one has fewer, and at most. */
enum {
    VECS_32 = BYTES < 32 ? 32 / BYTES : 1,
    VECS_64 = BYTES < 64 ? 64 / BYTES : 1,
    MOST_VECS = BYTES < 32 ? 4 : 2
};

/* sums += a(p) b(p, column) for elements begin..end-1 of each column's piece at byte `at`; `a` is
 * that of the piece's first, and the others follow it. */
INLINE void add_piece(const bool wide, const int vecs, const char *a, const char *const column[],
                      int64_t at, int begin, int end, vec sums[])
{
    const int each = PIECE / size_of(wide);
    UNROLL for (int v = 0; v < vecs; v++)
    {
        vec turned[PIECE / 4];
        load_turned(wide, column + v * lanes_of(wide), at, turned);
        UNROLL for (int i = 0; i < each; i++) if (i >= begin && i < end) sums[v] =
            multiply_add(wide, spread(wide, a + i * size_of(wide)), turned[i], sums[v]);
    }
}

/* Lines of the cache that are asked for ahead of their use: `bytes` of each of some columns, one
 * column behind the other, as memory likes to be read. */
typedef struct ahead {
    const char *column, *end; /* the next column's first byte; that behind the last column */
    int64_t step, bytes, at;
} ahead;

static __attribute__((noinline)) void ask_ahead(ahead *lines, int count)
{
    for (int i = 0; i < count && lines->column != lines->end; i++) {
        __builtin_prefetch(lines->column + lines->at, 0, 2);
        lines->at += LINE;
        if (lines->at >= lines->bytes) lines->column += lines->step, lines->at = 0;
    }
}

/* What follows the block at step p of `columns` columns from j on: their next block, or the first
 * block of the next columns. */
static ahead after_block(const gemm_job *job, int64_t block, int64_t p, int64_t j, int64_t columns)
{
    p += block;
    if (p >= job->k) p = 0, j += columns;
    const char *first = job->b + p * job->b_row + j * job->b_col;
    columns = j < job->n ? min(columns, job->n - j) : 0;
    return (ahead){.column = first,
                   .end = first + columns * job->b_col,
                   .step = job->b_col,
                   .bytes = min(block, job->k - p) * job->b_row};
}

/* The steps [p, p + k) of A's only row side by side: where they are, or copied. */
INLINE const char *steps_of(const gemm_job *job, const bool wide, int64_t p, int64_t k, char *copy)
{
    const int size = size_of(wide);
    const char *a = job->a + p * job->a_col;
    if (job->a_col == size) return a;
    for (int64_t q = 0; q < k; q++) memcpy(copy + q * size, a + q * job->a_col, (size_t)size);
    return copy;
}

/*
 * `vecs` vectors of a row of C from column j on. Each is one chain of additions; side by side they
 * need not wait for each other's. Pieces begin at whole multiples of their length, wherever blocks
 * do: those of aligned columns are lines of the cache. The last piece of all may reach back.
 */
INLINE void add_columns(const gemm_job *job, const bool wide, const int vecs, const bool streamed,
                        int64_t j)
{
    const int size = size_of(wide), lanes = lanes_of(wide), each = PIECE / size;
    int64_t block = gemm_block(wide, job->k);
    const char *column[MOST_VECS * BYTES / 4];
    char copy[GEMM_BLOCK_BYTES];
    for (int i = 0; i < vecs * lanes; i++) column[i] = job->b + min(j + i, job->n - 1) * job->b_col;
    for (int64_t p = 0; p < job->k; p += block) {
        tile t = tile_begin(job, p, min(block, job->k - p));
        const char *a = steps_of(job, wide, p, t.k, copy);
        ahead lines = {0};
        if (streamed) lines = after_block(job, block, p, j, vecs * lanes);
        vec sums[MOST_VECS];
        UNROLL for (int v = 0; v < vecs; v++) sums[v] = (vec){0};
        const int64_t end = p + t.k;
        for (int64_t q = p / each * each; q < end; q += each) {
            if (streamed) ask_ahead(&lines, vecs * lanes * PIECE / LINE);
            const int64_t from = min(q, job->k - each);
            const char *of = a + (from - p) * size;
            if (q >= p && q + each <= end)
                add_piece(wide, vecs, of, column, q * size, 0, each, sums);
            else
                add_piece(wide, vecs, of, column, from * size, (int)(q > p ? q - from : p - from),
                          (int)(min(q + each, end) - from), sums);
        }
        write_row(job, &t, wide, (const char *)sums, j * size,
                  min(vecs * lanes, job->n - j) * size);
    }
}

/* Each has code of its own, as tiles have. */
typedef void (*columns_function)(const gemm_job *, int64_t j);
#define COLUMNS(name, wide, vecs, streamed)                                                        \
    static __attribute__((noinline)) void name(const gemm_job *job, int64_t j)                     \
    {                                                                                              \
        add_columns(job, wide, vecs, streamed, j);                                                 \
    }
COLUMNS(one_f32, false, 1, false)
COLUMNS(few_f32, false, VECS_32, false)
COLUMNS(few_f32_streamed, false, VECS_32, ASKED)
COLUMNS(most_f32, false, MOST_VECS, false)
COLUMNS(one_f64, true, 1, false)
COLUMNS(few_f64, true, VECS_64, false)
COLUMNS(few_f64_streamed, true, VECS_64, ASKED)
COLUMNS(most_f64, true, MOST_VECS, false)

/* Columns j, j + step, ... as long as whole steps are left; where they end. */
static int64_t columns_run(const gemm_job *job, int64_t j, int64_t step, columns_function columns)
{
    for (; j + step <= job->n; j += step) columns(job, j);
    return j;
}

/*
 * One row times a matrix of contiguous columns, which are turned over in registers: eight columns
 * at a time or as many as there are lanes, more where B is cached. Memory is read best along few
 * lines. With AVX-512 they are asked for a block ahead, since such a machine foresees fewer; on the
 * other sets' machines that takes longer than it saves (Zen 3: 64 MB in 5.8 ms, 3.9 without).
 */
static void row_by_columns(const gemm_job *job)
{
    static const columns_function one[] = {one_f32, one_f64}, few[] = {few_f32, few_f64},
                                  most[] = {most_f32, most_f64},
                                  streamed[] = {few_f32_streamed, few_f64_streamed};
    const bool wide = job->wide, cached = job->n * job->b_col < STREAMED;
    const int lanes = lanes_of(wide), width = lanes * (wide ? VECS_64 : VECS_32);
    int64_t j = 0;
    if (cached) j = columns_run(job, j, MOST_VECS * lanes, most[wide]);
    j = columns_run(job, j, width, cached ? few[wide] : streamed[wide]);
    for (; j < job->n; j += lanes) one[wide](job, j);
}

/*
 * A strip of sums begins half a page from where B's rows do within a page: a load waits for a store
 * to the same place of another page.
 */
bool ISA_NAME(gemm_row)(const gemm_job *job, char *scratch)
{
    if (job->b_col == size_of(job->wide)) {
        scratch += (size_t)(job->b + APART / 2 - scratch) % APART / BYTES * BYTES;
        if (job->wide)
            row_by_rows(job, true, scratch);
        else
            row_by_rows(job, false, scratch);
        return true;
    }
    if (job->b_row == size_of(job->wide) && job->k * job->b_row >= PIECE) {
        row_by_columns(job);
        return true;
    }
    return false;
}

size_t ISA_NAME(gemm_row_scratch)(bool wide, int64_t columns)
{
    return (size_t)round_up(min(columns * size_of(wide), STRIP), BYTES) + APART;
}

#endif
