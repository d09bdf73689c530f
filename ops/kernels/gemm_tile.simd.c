/*
 * The micro-kernels of matrix products. A tile is rows x 2 vectors of C held in registers. A step
 * of k loads two vectors of B's row and adds their products with each of the rows' elements of A's
 * column, spread to all lanes: 14 x 2 tiles of AVX-512 ask for 16 loads with 28 fused
 * multiply-adds.
 */
#include "ops/kernels/isa.h"

#ifdef ISA
#include "ops/kernels/gemm_tile.h"

enum {
    PREFETCH_ROWS = 5, /* of C before each run, if there are several */
    AHEAD = 128,       /* elements from a step of packed rows of A to what is asked for then */
    STEPS_AHEAD = 8,   /* steps from one to the row of B that is asked for then, by AVX-512 */
    MOST_CELLS = 5,    /* that rows share */
    NEAR = 5,          /* rows of A with a pointer: 14 offsets from one would not be registers */
};

static void write_part(const tile *t, bool wide, int rows, int vecs, const vec sums[])
{
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vecs; v++)
            write_back(t, wide, sums[r * vecs + v], r, v * BYTES,
                       v == vecs - 1 ? t->lanes : lanes_of(wide));
}

/* write_back of a whole tile, whose sums stay in registers. */
INLINE void write_sums(const tile *t, const bool wide, const int rows, const int vecs, vec sum[])
{
    if (t->lanes < lanes_of(wide)) {
        vec copy[2 * ROWS];
        UNROLL for (int i = 0; i < rows * vecs; i++) copy[i] = sum[i];
        write_part(t, wide, rows, vecs, copy);
        return;
    }
    if (t->subtract) UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] = negative(wide, sum[i]);
    if (!t->first)
        UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] =
            add(wide, load(t->c + i / vecs * t->c_row + i % vecs * BYTES), sum[i]);
    if (t->bias && t->bias_col)
        UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] =
            add(wide, sum[i], load(t->bias + i % vecs * BYTES));
    else if (t->bias)
        UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] =
            add(wide, sum[i], spread(wide, t->bias + i / vecs * t->bias_row));
    if (t->relu) UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] = relu(wide, sum[i]);
    UNROLL for (int i = 0; i < rows * vecs; i++)
        store(t->c + i / vecs * t->c_row + i % vecs * BYTES, sum[i]);
}

/* The next of C's rows, which is written at the end. */
INLINE void prefetch_row(const tile *t, const int vecs, const char **c)
{
    __builtin_prefetch(*c, 1);
    if (vecs == 2) __builtin_prefetch(*c + BYTES, 1);
    *c += t->c_row;
}

/* Where the next step is read: pointers to every so many rows of A, and B's row. */
typedef struct place {
    const char *from[ROWS / NEAR + 1], *b;
    char *to; /* where B's row is packed */
    int64_t a_row, a_col, b_row;
} place;

/* Adds one column of A times one row of B, which `packs` also puts behind those before. */
INLINE void step(place *at, const bool wide, const int rows, const int vecs, const bool dense,
                 const bool packs, vec sum[])
{
    const int near = dense ? rows : NEAR;
    vec row[2];
    UNROLL for (int v = 0; v < vecs; v++) row[v] = load(at->b + v * BYTES);
    if (dense) {
        for (int i = 0; i < rows * size_of(wide); i += 64)
            __builtin_prefetch(at->from[0] + AHEAD * size_of(wide) + i);
        UNROLL for (int v = 0; v < (BYTES < 64 ? 0 : vecs); v++)
            __builtin_prefetch(at->b + STEPS_AHEAD * at->b_row + v * BYTES);
    }
    if (packs) {
        UNROLL for (int v = 0; v < vecs; v++) store(at->to + v * BYTES, row[v]);
        at->to += vecs * BYTES;
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        vec x = spread(wide, at->from[r / near] + r % near * at->a_row);
        UNROLL for (int v = 0; v < vecs; v++) sum[r * vecs + v] =
            multiply_add(wide, x, row[v], sum[r * vecs + v]);
    }
    UNROLL for (int i = 0; i < (rows + near - 1) / near; i++) at->from[i] += at->a_col;
    at->b += at->b_row;
}

/* The micro-kernel: rows x vecs vectors of C in registers. C's rows are prefetched few at a time:
 * all at once they would keep A and B waiting. Of several runs, some are before each. */
INLINE void tile_run(const tile *t, const bool wide, const int rows, const int vecs,
                     const bool dense, const bool packs)
{
    place at = {.to = t->packed,
                .a_row = dense ? size_of(wide) : t->a_row,
                .a_col = t->a_col,
                .b_row = t->b_row};
    const char *a = t->a, *c = t->c;
    const int near = dense ? rows : NEAR;
    int prefetched = 0;
    vec sum[2 * ROWS];
    UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] = (vec){0};
    at.b = t->b;
    for (int64_t run = 0; run < t->runs; run++) {
        if (t->a_runs) {
            a = t->a + t->a_runs[run];
            at.b = t->b + t->b_runs[run];
        }
        UNROLL for (int i = 0; i < (rows + near - 1) / near; i++) at.from[i] =
            a + i * near * at.a_row;
        int64_t left = t->k;
        if (t->runs > 1) {
            for (int i = 0; i < PREFETCH_ROWS && prefetched < rows; i++, prefetched++)
                prefetch_row(t, vecs, &c);
        } else {
            for (; left >= 2 && prefetched < rows; left -= 2, prefetched++) {
                prefetch_row(t, vecs, &c);
                UNROLL for (int i = 0; i < 2; i++) step(&at, wide, rows, vecs, dense, packs, sum);
            }
        }
        for (; left >= 2; left -= 2)
            UNROLL for (int i = 0; i < 2; i++) step(&at, wide, rows, vecs, dense, packs, sum);
        if (left) step(&at, wide, rows, vecs, dense, packs, sum);
    }
    write_sums(t, wide, rows, vecs, sum);
}

/*
 * The micro-kernel of one vector a row for runs of cells that the rows share: what is cell q + 1 of
 * a row is cell q of the next one. Each element of A is loaded once for all rows that have its
 * cell, where tile_run would wait for as many loads as it has multiply-adds.
 */
INLINE void cells_run(const tile *t, const bool wide, const int rows, const int cells)
{
    const int64_t b_cell = t->k / cells * t->b_row;
    const int all = rows + cells - 1;
    vec sum[ROWS];
    UNROLL for (int i = 0; i < rows; i++) sum[i] = (vec){0};
    for (int64_t run = 0; run < t->runs; run++) {
        const char *b = t->b + t->b_runs[run], *from[(ROWS + MOST_CELLS) / NEAR + 1];
        UNROLL for (int i = 0; i < all; i += NEAR) from[i / NEAR] =
            t->a + t->a_runs[run] + i * t->a_row;
        for (int64_t left = t->k / cells; left > 0; left--) {
            vec row[MOST_CELLS];
            UNROLL for (int q = 0; q < cells; q++) row[q] = load(b + q * b_cell);
            UNROLL for (int p = 0; p < all; p++)
            {
                const vec x = spread(wide, from[p / NEAR] + p % NEAR * t->a_row);
                UNROLL for (int q = 0; q < cells; q++) if (p - q >= 0 && p - q < rows) sum[p - q] =
                    multiply_add(wide, x, row[q], sum[p - q]);
            }
            UNROLL for (int i = 0; i < all; i += NEAR) from[i / NEAR] += t->a_col;
            b += t->b_row;
        }
    }
    write_sums(t, wide, rows, 1, sum);
}

/* Every tile has code of its own, so that its sums are registers. */
#define ROWS_1_4(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)
#define ROWS_5_6(X, ...) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define ROWS_7_8(X, ...) X(7, __VA_ARGS__) X(8, __VA_ARGS__)
#define ROWS_9_14(X, ...)                                                                          \
    X(9, __VA_ARGS__)                                                                              \
    X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
#if defined(__AVX512F__)
#define EACH_ROWS(X, ...)                                                                          \
    ROWS_1_4(X, __VA_ARGS__)                                                                       \
    ROWS_5_6(X, __VA_ARGS__) ROWS_7_8(X, __VA_ARGS__) ROWS_9_14(X, __VA_ARGS__)
#elif defined(__AVX2__)
#define EACH_ROWS(X, ...) ROWS_1_4(X, __VA_ARGS__) ROWS_5_6(X, __VA_ARGS__)
#elif defined(__aarch64__)
#define EACH_ROWS(X, ...) ROWS_1_4(X, __VA_ARGS__) ROWS_5_6(X, __VA_ARGS__) ROWS_7_8(X, __VA_ARGS__)
#else
#define EACH_ROWS(X, ...) ROWS_1_4(X, __VA_ARGS__)
#endif

#define TILE(rows, name, wide, vecs, dense, packs)                                                 \
    static void name##_##rows(const tile *t)                                                       \
    {                                                                                              \
        tile_run(t, wide, rows, vecs, dense, packs);                                               \
    }
#define ENTRY(rows, name)                     name##_##rows,
#define TILES(name, wide, vecs, dense, packs) EACH_ROWS(TILE, name, wide, vecs, dense, packs)
TILES(f32_1, false, 1, false, false)
TILES(f32_2, false, 2, false, false)
TILES(f32_1_dense, false, 1, true, false)
TILES(f32_2_dense, false, 2, true, false)
TILES(f32_2_packs, false, 2, true, true)
TILES(f64_1, true, 1, false, false)
TILES(f64_2, true, 2, false, false)
TILES(f64_1_dense, true, 1, true, false)
TILES(f64_2_dense, true, 2, true, false)
TILES(f64_2_packs, true, 2, true, true)

#define CELLS(rows, name, wide, cells)                                                             \
    static void name##_##rows(const tile *t)                                                       \
    {                                                                                              \
        cells_run(t, wide, rows, cells);                                                           \
    }
EACH_ROWS(CELLS, f32_cells_3, false, 3)
EACH_ROWS(CELLS, f32_cells_5, false, 5)
EACH_ROWS(CELLS, f64_cells_3, true, 3)
EACH_ROWS(CELLS, f64_cells_5, true, 5)

#define TABLE(name)                                                                                \
    {                                                                                              \
        EACH_ROWS(ENTRY, name)                                                                     \
    }
const tile_function ISA_NAME(gemm_tiles)[2][2][2][ROWS] = {
    {{TABLE(f32_1), TABLE(f32_1_dense)}, {TABLE(f32_2), TABLE(f32_2_dense)}},
    {{TABLE(f64_1), TABLE(f64_1_dense)}, {TABLE(f64_2), TABLE(f64_2_dense)}},
};
const tile_function ISA_NAME(gemm_packing_tiles)[2][ROWS] = {TABLE(f32_2_packs),
                                                             TABLE(f64_2_packs)};
const tile_function ISA_NAME(gemm_cells)[2][2][ROWS] = {
    {TABLE(f32_cells_3), TABLE(f32_cells_5)},
    {TABLE(f64_cells_3), TABLE(f64_cells_5)},
};

#endif
