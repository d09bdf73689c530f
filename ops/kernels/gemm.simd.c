/*
 * One product on one thread: the loops around the register tile (gemm_tile.simd.c) and the packing
 * of what it reads (gemm_pack.simd.c).
 *
 *                          panels of B, 2 vectors wide
 *                          +----+----+----+----+
 *                          |    |    |    |    |
 *                          |    |    |    |    |  one block of k
 *        one block of k    |    |    |    |    |
 *        +--------------+  +----+----+----+----+
 *        | stripe of A  |  |tile|tile|tile|tile|  C: the sum of the blocks so far
 *        +--------------+  +----+----+----+----+
 *
 * k is cut into blocks (gemm_block) so that a stripe (ROWS x block) stays in the first-level cache
 * while all panels pass; as many columns pass as make PACKED bytes of panels, which stay in the
 * second or stream from the third while all stripes pass. More columns mean fewer packings of A.
 *
 * Panels and stripes are packed (the tile's elements of a step side by side) where they are used
 * often enough to pay for it or their strides leave no choice; otherwise the tile reads them where
 * they are. Stripes differ in height by one row at most rather than leave a thin last one.
 *
 * Products of one row or one column take loops of their own (gemm_row.simd.c). Products of few
 * columns, which would leave lanes idle, are turned over, and so are those of few rows with a B
 * that lies by columns: C's rows become lanes. Lanes beyond the last column are computed with
 * whatever the packed panel holds there, and not stored.
 */
#include "ops/kernels/isa.h"

#ifdef ISA
#include "ops/kernels/gemm_tile.h"

enum {
    LINE_32 = (ROWS * 4 + BYTES - 1) / BYTES * BYTES, /* an A panel's column */
    LINE_64 = (ROWS * 8 + BYTES - 1) / BYTES * BYTES,
    SMALL_B = 64 * 1024, /* bytes of B that are read where they lie */
    PACKED = 640 * 1024, /* bytes of B that are packed at a time */
    TURNED = 512,        /* rows of C, or columns, that a turned product sums at a time */
    FEW = 2 * PANEL,     /* bytes of the rows of A whose product with rows of B is turned */
    SUMS = 80,           /* rows of C that a product of runs sums, whole vectors of them */
};

INLINE int line_of(bool wide)
{
    return wide ? LINE_64 : LINE_32;
}

/* Bytes of the panels of one step of k that are packed at a time. */
INLINE int64_t packed_row(bool wide, int64_t k, int64_t columns)
{
    int64_t most = k ? PACKED / gemm_block(wide, k) / PANEL * PANEL : PANEL;
    return min(round_up(columns * size_of(wide), PANEL), most);
}

/* Bytes of a line of a turned product's sums for `rows` rows of C, see turned_run. */
INLINE int64_t turned_stride(bool wide, int64_t rows)
{
    return round_up(min(rows, TURNED) * size_of(wide), BYTES);
}

/* Bytes that the panels of k steps and so many columns, or fewer, take at most at a time. */
static int64_t most_packed(bool wide, int64_t k, int64_t columns)
{
    return min(k * round_up(columns * size_of(wide), PANEL), PACKED);
}

/* Enough for every smaller job too: the last block of k, the last piece. */
size_t ISA_NAME(gemm_scratch)(const gemm_job *job)
{
    const bool wide = job->wide;
    const int64_t size = size_of(wide), k = gemm_block(wide, job->k);
    int64_t panels = most_packed(wide, k, job->n), sums = 0;
    if (job->n * size <= PANEL) { /* turned or not */
        sums = job->n * turned_stride(wide, job->m);
        panels = k * PANEL + most_packed(wide, k, min(job->m, TURNED));
    } else if (job->b_row == size && job->b_col != size) { /* see reads_columns */
        sums = min(job->n, TURNED) * turned_stride(wide, min(job->m, FEW / size));
    }
    size_t bytes = (size_t)(k * line_of(wide) + panels + sums);
    size_t strip = ISA_NAME(gemm_row_scratch)(wide, job->n == 1 ? job->m : job->n);
    return (size_t)round_up((int64_t)(bytes > strip ? bytes : strip), 64);
}

void ISA_NAME(gemm_tile)(bool wide, int64_t *rows, int64_t *columns)
{
    *rows = ROWS;
    *columns = PANEL / size_of(wide);
}

/* Asks for a share of the rows of A that come next, steps [p, end), while the current ones are
 * multiplied. */
static void prefetch_rows(const gemm_job *job, const char *a, int64_t rows, int64_t p, int64_t end)
{
    const int size = size_of(job->wide);
    if (job->a_row == size) {
        for (; p < end; p++) {
            __builtin_prefetch(a + p * job->a_col);
            __builtin_prefetch(a + p * job->a_col + (rows - 1) * size);
        }
    } else if (job->a_col == size) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t q = p * size; q < end * size; q += 64)
                __builtin_prefetch(a + r * job->a_row + q);
    }
}

/* The stripes that A's rows make, and the rows of stripe s, which follow those of the others. */
static int64_t stripes_of(const gemm_job *job)
{
    return (job->m + ROWS - 1) / ROWS;
}
static int64_t rows_of(const gemm_job *job, int64_t stripes, int64_t s)
{
    return job->m / stripes + (s < job->m % stripes);
}

/* Where gemm_pack_stripes puts the k steps from p on of stripe s. */
static int64_t stripe_at(const gemm_job *job, int64_t stripes, int64_t s, int64_t p, int64_t k)
{
    return (p * stripes + s * k) * line_of(job->wide);
}

void ISA_NAME(gemm_pack_stripes)(const gemm_job *job, int64_t first, int64_t last, char *to)
{
    const bool wide = job->wide;
    const int64_t stripes = stripes_of(job), block = gemm_block(wide, job->k);
    for (int64_t s = 0, i = 0; s < last; s++) {
        const int64_t rows = rows_of(job, stripes, s);
        for (int64_t p = 0; p < job->k && s >= first; p += block) {
            const int64_t k = min(block, job->k - p);
            ISA_NAME(gemm_pack_lines)
            (wide, rows, k, job->a + i * job->a_row + p * job->a_col, job->a_row, job->a_col,
             to + stripe_at(job, stripes, s, p, k), line_of(wide));
        }
        i += rows;
    }
}

/* Whether a panel of so many columns can be packed by the tiles that read it first: it is whole,
 * and B's rows are contiguous. */
static bool can_pack_on_the_way(const gemm_job *job, int64_t width)
{
    const int size = size_of(job->wide);
    return job->b_col == size && width * size == PANEL;
}

/* The tiles that read a panel at b and pack it. */
static const tile_function *packing_tiles(const gemm_job *job, tile *t, const char *b, char *packed)
{
    t->packed = packed;
    t->b = b;
    t->b_row = job->b_row;
    return ISA_NAME(gemm_packing_tiles)[job->wide];
}

/* One block of k, columns [j, j + columns): B is packed when the first rows need it. */
static void block_run(const gemm_job *job, tile t, int64_t j, int64_t p, int64_t columns,
                      char *scratch)
{
    const bool wide = job->wide;
    const int size = size_of(wide), panel = PANEL / size, line = line_of(wide);
    char *panels = scratch + t.k * line;
    int64_t stripes = stripes_of(job);
    bool pack_a = columns > 4 * panel && !job->stripes;
    bool small_b = t.k * (job->b_row < 0 ? -job->b_row : job->b_row) <= SMALL_B;
    bool direct_b = job->b_col == size && (stripes <= 3 || small_b);

    for (int64_t s = 0, i = 0; s < stripes; s++) {
        int64_t rows = rows_of(job, stripes, s);
        t.a = job->a + i * job->a_row + p * job->a_col;
        t.a_row = job->a_row;
        t.a_col = job->a_col;
        if (pack_a) {
            ISA_NAME(gemm_pack_lines)(wide, rows, t.k, t.a, t.a_row, t.a_col, scratch, line);
            t.a = scratch;
        } else if (job->stripes) {
            t.a = job->stripes + stripe_at(job, stripes, s, p, t.k);
        }
        if (pack_a || job->stripes) t.a_row = size, t.a_col = line;
        for (int64_t done = 0; done < columns; done += panel) {
            int64_t width = min(panel, columns - done);
            int vecs = width * size > BYTES ? 2 : 1;
            const char *b = job->b + p * job->b_row + (j + done) * job->b_col;
            const tile_function *tiles = ISA_NAME(gemm_tiles)[wide][vecs - 1][t.a_row == size];
            char *const packed = panels + done * size * t.k;
            t.b = packed;
            t.b_row = PANEL;
            if (direct_b && width * size == vecs * BYTES) {
                t.b = b;
                t.b_row = job->b_row;
            } else if (s == 0 && t.a_row == size && can_pack_on_the_way(job, width)) {
                tiles = packing_tiles(job, &t, b, packed);
            } else if (s == 0) {
                ISA_NAME(gemm_pack_lines)
                (wide, width, t.k, b, job->b_col, job->b_row, packed, PANEL);
            }
            tile_at(&t, job, i, j + done);
            t.lanes = (int)(width - (vecs - 1) * panel / 2);
            if (pack_a && s + 1 < stripes)
                prefetch_rows(job, job->a + (i + rows) * job->a_row + p * job->a_col, ROWS,
                              done * t.k / columns, min(done + panel, columns) * t.k / columns);
            tiles[rows - 1](&t);
        }
        i += rows;
    }
}

/* Turns `rows` rows of a panel's sums, a panel apart, into C's columns. */
static void panel_out(const gemm_runs_job *job, int64_t rows, int64_t columns, const char *sums,
                      char *c)
{
    const int size = size_of(job->wide);
    if (job->c_row == size) {
        ISA_NAME(gemm_turn)(job->wide, rows, columns, sums, PANEL, c, job->c_col);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy(c + i * job->c_row + j * job->c_col, sums + i * PANEL + j * size, (size_t)size);
}

/* What sums the tiles of a panel, by their rows - 1. */
static const tile_function *tiles_of(const gemm_runs_job *job, const tile *t, int vecs)
{
    if (vecs == 1 && (job->cells == 3 || job->cells == 5))
        return ISA_NAME(gemm_cells)[job->wide][job->cells / 4];
    return ISA_NAME(gemm_tiles)[job->wide][vecs - 1][t->a_row == size_of(job->wide)];
}

/* The tiles below each other of one panel; t is then what is below them. (A copy of t would be
 * read before what was just written to it has reached the cache, and wait for that.) */
static void stripes_run(tile *t, const tile_function *tiles, int64_t m)
{
    int64_t stripes = (m + ROWS - 1) / ROWS;
    for (int64_t s = 0; s < stripes; s++) {
        int64_t rows = m / stripes + (s < m % stripes);
        tiles[rows - 1](t);
        t->a += rows * t->a_row;
        t->c += rows * t->c_row;
    }
}

void ISA_NAME(gemm_runs)(const gemm_runs_job *job)
{
    const bool wide = job->wide;
    const int size = size_of(wide), panel = PANEL / size;
    char sums[SUMS * PANEL] __attribute__((aligned(64)));
    tile t = {.k = job->k,
              .a_row = job->a_row,
              .a_col = job->a_col,
              .b_row = job->b_row,
              .runs = job->runs,
              .a_runs = job->a_runs,
              .b_runs = job->b_runs,
              .first = !job->add,
              .relu = job->relu,
              .bias_col = size};
    for (int64_t j = 0; j < job->n; j += panel) {
        int64_t width = min(panel, job->n - j);
        int vecs = width * size > BYTES ? 2 : 1;
        t.b = job->b + j / panel * job->b_panel;
        t.bias = job->bias ? job->bias + j * size : NULL;
        t.a = job->a;
        const tile_function *tiles = tiles_of(job, &t, vecs);
        if (job->c_col == size) {
            t.lanes = (int)(width - (vecs - 1) * panel / 2);
            t.c = job->c + j * size;
            t.c_row = job->c_row;
            stripes_run(&t, tiles, job->m);
            continue;
        }
        t.lanes = panel / 2;
        t.c_row = PANEL;
        for (int64_t i = 0; i < job->m; i += SUMS) {
            int64_t rows = min(SUMS, job->m - i);
            char *c = job->c + i * job->c_row + j * job->c_col;
            t.c = sums;
            stripes_run(&t, tiles, rows);
            panel_out(job, rows, width, sums, c);
        }
    }
}

/* Sums all blocks of k, tile by tile. */
static void tiles_run(const gemm_job *job, char *scratch)
{
    int64_t block = gemm_block(job->wide, job->k);
    int64_t step = packed_row(job->wide, job->k, job->n) / size_of(job->wide);
    for (int64_t j = 0; j < job->n; j += step) {
        int64_t p = 0;
        do {
            tile t = tile_begin(job, p, min(block, job->k - p));
            block_run(job, t, j, p, min(step, job->n - j), scratch);
            p += block;
        } while (p < job->k);
    }
}

/* The product C^T = B^T A^T. */
static gemm_job turn(const gemm_job *job)
{
    gemm_job turned = *job;
    turned.m = job->n, turned.n = job->m;
    turned.a = job->b, turned.a_row = job->b_col, turned.a_col = job->b_row;
    turned.b = job->a, turned.b_row = job->a_col, turned.b_col = job->a_row;
    turned.bias_row = job->bias_col, turned.bias_col = job->bias_row;
    return turned;
}

/* Whether few columns would leave so many lanes idle that the turned product is the cheaper one. */
static bool is_narrow(const gemm_job *job)
{
    int64_t size = size_of(job->wide), lanes = lanes_of(job->wide);
    if (job->n * size > PANEL || job->k < 8) return false;
    double straight = (double)(job->m * ((job->n + lanes - 1) / lanes));
    double turned = (double)(job->n * ((job->m + lanes - 1) / lanes));
    if (job->a_row != size) turned += (job->a_col == size ? 0.35 : 2) * (double)job->m;
    return turned < 0.95 * straight;
}

/* Whether the rows of a B that lies by columns are better read as they are, as rows of A are, than
 * turned over: few rows of A are turned instead, and C. */
static bool reads_columns(const gemm_job *job)
{
    const int64_t size = size_of(job->wide), lanes = lanes_of(job->wide), m = job->m, n = job->n;
    if (job->stripes || job->b_row != size || job->b_col == size || job->a_col != size ||
        m * size > FEW || job->k < 64)
        return false;
    const double straight = (double)(m * ((n + lanes - 1) / lanes)) + 0.35 * (double)n;
    const double turned = (double)(n * ((m + lanes - 1) / lanes)) + 0.35 * (double)m +
                          0.7 * (double)(m * n) / (double)job->k;
    return turned < 0.95 * straight;
}

/* Turns sums[n][stride] over into `rows` rows of C from row i on, and ends them. */
INLINE void turned_out(const gemm_job *job, const bool wide, int64_t i, int64_t rows,
                       const char *sums, int64_t stride)
{
    const int size = size_of(wide), lanes = lanes_of(wide), each = PIECE / size;
    tile t = tile_begin(job, 0, job->k);
    for (int64_t j = 0; j < job->n; j += lanes) {
        const char *line[BYTES / 4];
        for (int q = 0; q < lanes; q++) line[q] = sums + min(j + q, job->n - 1) * stride;
        for (int64_t r = 0; r < rows; r += each) {
            vec turned[PIECE / 4];
            load_turned(wide, line, r * size, turned);
            tile_at(&t, job, i + r, 0);
            UNROLL for (int q = 0; q < each; q++) if (r + q < rows)
                write_back(&t, wide, turned[q], q, j * size, (int)min(lanes, job->n - j));
        }
    }
}

/* A product of few columns or rows: C's rows become lanes, in strips whose sums are turned over at
 * the end. */
static void turned_run(const gemm_job *job, char *scratch)
{
    const bool wide = job->wide;
    int64_t stride = turned_stride(wide, job->m);
    char *sums = scratch;
    for (int64_t i = 0; i < job->m; i += TURNED) {
        gemm_job strip = *job;
        strip.m = min(TURNED, job->m - i);
        strip.a += i * job->a_row;
        gemm_job turned = turn(&strip);
        turned.c = sums, turned.c_row = stride;
        turned.bias = NULL, turned.relu = false;
        tiles_run(&turned, sums + job->n * stride);
        if (wide)
            turned_out(job, true, i, strip.m, sums, stride);
        else
            turned_out(job, false, i, strip.m, sums, stride);
    }
}

size_t ISA_NAME(gemm_rows_scratch)(bool wide, int64_t k, int64_t rows)
{
    return (size_t)((rows + ROWS - 1) / ROWS * gemm_block(wide, k) * line_of(wide));
}

/* Stripes are packed when the first panel passes, and stay in the second-level cache for the
 * others. */
void ISA_NAME(gemm_rows)(const gemm_job *job, int64_t p, bool packs, char *panels, char *scratch)
{
    const bool wide = job->wide;
    const int size = size_of(wide), panel = PANEL / size, line = line_of(wide);
    const int64_t stripes = stripes_of(job);
    tile t = tile_begin(job, p, min(gemm_block(wide, job->k), job->k - p));
    t.a_row = size, t.a_col = line;
    for (int64_t j = 0; j < job->n; j += panel) {
        const int64_t width = min(panel, job->n - j);
        const int vecs = width * size > BYTES ? 2 : 1;
        char *const at = panels + j * size * t.k;
        const char *b = job->b + p * job->b_row + j * job->b_col;
        const bool on_the_way = packs && can_pack_on_the_way(job, width);
        if (packs && !on_the_way)
            ISA_NAME(gemm_pack_lines)(wide, width, t.k, b, job->b_col, job->b_row, at, PANEL);
        t.lanes = (int)(width - (vecs - 1) * panel / 2);
        for (int64_t s = 0, i = 0; s < stripes; s++) {
            const int64_t rows = rows_of(job, stripes, s);
            char *stripe = scratch + s * t.k * line;
            if (j == 0) {
                const char *a = job->a + i * job->a_row + p * job->a_col;
                ISA_NAME(gemm_pack_lines)
                (wide, rows, t.k, a, job->a_row, job->a_col, stripe, line);
            }
            const tile_function *tiles = ISA_NAME(gemm_tiles)[wide][vecs - 1][true];
            t.a = stripe;
            t.b = at, t.b_row = PANEL;
            if (s == 0 && on_the_way) tiles = packing_tiles(job, &t, b, at);
            tile_at(&t, job, i, j);
            tiles[rows - 1](&t);
            i += rows;
        }
    }
}

void ISA_NAME(gemm_piece)(const gemm_job *job, char *scratch)
{
    if (job->subtract) {
        tiles_run(job, scratch);
        return;
    }
    if (job->k > 0 && job->n == 1 && job->m > 1 && job->c_row == size_of(job->wide)) {
        gemm_job turned = turn(job);
        if (ISA_NAME(gemm_row)(&turned, scratch)) return;
    }
    if (job->k > 0 && job->m == 1 && ISA_NAME(gemm_row)(job, scratch)) return;
    if (is_narrow(job)) {
        turned_run(job, scratch);
    } else if (reads_columns(job)) {
        for (int64_t j = 0; j < job->n; j += TURNED) {
            const gemm_job part = gemm_part(job, 0, job->m, j, min(TURNED, job->n - j));
            turned_run(&part, scratch);
        }
    } else {
        tiles_run(job, scratch);
    }
}

#endif
