/*
 * One product on one thread: the register tile, packing, and the loops around them.
 *
 * A tile is ROWS x 2 vectors of C held in registers. A step of k loads two vectors of B's row and
 * adds their products with each of ROWS elements of A's column, spread to all lanes: 14 x 2 tiles
 * of AVX-512 ask for 16 loads with 28 fused multiply-adds.
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
 * Products of one row or one column take two loops of their own, which read the matrix once, in its
 * own direction. Products of few columns, which would leave lanes idle, are turned over: C's rows
 * become lanes. Lanes beyond the last column are computed with whatever the packed panel holds
 * there, and not stored.
 */
#include "ops/kernels/gemm_piece.h"

#ifdef ISA
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include "ops/kernels/neon.h"
#endif

#if defined(__AVX512F__)
enum { BYTES = 64, ROWS = 14 };
#elif defined(__AVX2__)
enum { BYTES = 32, ROWS = 6 };
#elif defined(__aarch64__)
enum { BYTES = 16, ROWS = 8 };
#else
enum { BYTES = 16, ROWS = 4 };
#endif
enum {
    PANEL = 2 * BYTES,                                /* a B panel's row */
    LINE_32 = (ROWS * 4 + BYTES - 1) / BYTES * BYTES, /* an A panel's column */
    LINE_64 = (ROWS * 8 + BYTES - 1) / BYTES * BYTES,
    SMALL_B = 64 * 1024,       /* bytes of B that are read where they lie */
    PACKED = 640 * 1024,       /* bytes of B that are packed at a time */
    TURNED = 512,              /* rows of C that a turned product sums at a time */
    SUMS = 8 * ROWS,           /* the same of a product of runs */
    LINE = 64,                 /* bytes of a line of the cache */
    APART = 4096,              /* bytes within which a thin product's strip begins, see row_run */
    STRIP = 16 * 1024,         /* bytes of C's row that a thin product keeps at hand */
    STREAMED = 2 * 1024 * 1024 /* bytes of B that a thin product reads along few lines */
};

/*
 * One vector type for both dtypes: a register's bits. What depends on the dtype asks `wide`, which
 * is a constant wherever these are inlined to.
 */
typedef float vec __attribute__((vector_size(BYTES)));
typedef double vec64 __attribute__((vector_size(BYTES)));
typedef float loose __attribute__((vector_size(BYTES), may_alias, aligned(4)));

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

INLINE int64_t min(int64_t x, int64_t y)
{
    return x < y ? x : y;
}
INLINE int size_of(bool wide)
{
    return wide ? 8 : 4;
}
INLINE int lanes_of(bool wide)
{
    return BYTES / size_of(wide);
}
INLINE int line_of(bool wide)
{
    return wide ? LINE_64 : LINE_32;
}

INLINE vec load(const char *p)
{
    return *(const loose *)p;
}
INLINE void store(char *p, vec v)
{
    *(loose *)p = v;
}

INLINE vec spread(bool wide, const char *p)
{
    return wide ? (vec)(*(const double *)p - (vec64){0}) : *(const float *)p - (vec){0};
}

INLINE vec multiply_add(bool wide, vec x, vec y, vec sum)
{
#if defined(__AVX512F__)
    return wide ? (vec)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)sum)
                : (vec)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)sum);
#elif defined(__AVX2__)
    return wide ? (vec)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)sum)
                : (vec)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)sum);
#elif defined(__aarch64__)
    return wide ? (vec)vfmaq_f64((float64x2_t)sum, (float64x2_t)x, (float64x2_t)y)
                : (vec)vfmaq_f32((float32x4_t)sum, (float32x4_t)x, (float32x4_t)y);
#else
    return wide ? (vec)((vec64)x * (vec64)y + (vec64)sum) : x * y + sum;
#endif
}

INLINE vec add(bool wide, vec x, vec y)
{
    return wide ? (vec)((vec64)x + (vec64)y) : x + y;
}

INLINE vec relu(bool wide, vec x)
{
    typedef int64_t mask64 __attribute__((vector_size(BYTES)));
    typedef int32_t mask32 __attribute__((vector_size(BYTES)));
    return wide ? (vec)(~((vec64)x < 0.0) & (mask64)x) : (vec)(~(x < 0.0f) & (mask32)x);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
INLINE __m256i mask_of(bool wide, int lanes)
{
    return wide ? _mm256_cmpgt_epi64(_mm256_set1_epi64x(lanes), _mm256_setr_epi64x(0, 1, 2, 3))
                : _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes),
                                     _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/* The first `lanes` lanes, 0 in the others; memory behind them is not touched. */
INLINE vec load_part(bool wide, const char *p, int lanes)
{
#if defined(__AVX512F__)
    return wide ? (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << lanes) - 1), p)
                : (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), p);
#elif defined(__AVX2__)
    return wide ? (vec)_mm256_maskload_pd((const double *)p, mask_of(wide, lanes))
                : (vec)_mm256_maskload_ps((const float *)p, mask_of(wide, lanes));
#else
    vec v = {0};
    memcpy(&v, p, (size_t)(lanes * size_of(wide)));
    return v;
#endif
}

INLINE void store_part(bool wide, char *p, vec v, int lanes)
{
#if defined(__AVX512F__)
    if (wide)
        _mm512_mask_storeu_pd(p, (__mmask8)((1u << lanes) - 1), (__m512d)v);
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1u << lanes) - 1), (__m512)v);
#elif defined(__AVX2__)
    if (wide)
        _mm256_maskstore_pd((double *)p, mask_of(wide, lanes), (__m256d)v);
    else
        _mm256_maskstore_ps((float *)p, mask_of(wide, lanes), (__m256)v);
#else
    memcpy(p, &v, (size_t)(lanes * size_of(wide)));
#endif
}

/* What tiles of one block of k share, and the place of the next. */
typedef struct tile {
    int64_t k; /* steps of a run */
    const char *a, *b;
    int64_t a_row, a_col, b_row;
    int64_t runs; /* the sum is over so many runs, which begin at these offsets (NULL: one at 0) */
    const int64_t *a_runs, *b_runs;
    char *c;
    int64_t c_row;
    int lanes;  /* valid ones in the tile's last vector */
    bool first; /* the block begins the sum, else C holds what came before */
    bool relu;  /* these two only in the last block */
    const char *bias;
    int64_t bias_col;
} tile;

/* Joins a sum with what C holds, ends it where the block is the last, and puts it into C. */
INLINE void write_back(const tile *t, const bool wide, vec sum, int64_t row, int64_t column,
                       int lanes)
{
    const bool part = lanes < lanes_of(wide);
    char *c = t->c + row * t->c_row + column;
    if (!t->first) sum = add(wide, part ? load_part(wide, c, lanes) : load(c), sum);
    if (t->bias) {
        vec shift = !t->bias_col ? spread(wide, t->bias)
                    : part       ? load_part(wide, t->bias + column, lanes)
                                 : load(t->bias + column);
        sum = add(wide, sum, shift);
    }
    if (t->relu) sum = relu(wide, sum);
    if (part)
        store_part(wide, c, sum, lanes);
    else
        store(c, sum);
}

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
    if (!t->first)
        UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] =
            add(wide, load(t->c + i / vecs * t->c_row + i % vecs * BYTES), sum[i]);
    if (t->bias)
        UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] =
            add(wide, sum[i], load(t->bias + i % vecs * BYTES));
    if (t->relu) UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] = relu(wide, sum[i]);
    UNROLL for (int i = 0; i < rows * vecs; i++)
        store(t->c + i / vecs * t->c_row + i % vecs * BYTES, sum[i]);
}

/* The micro-kernel: rows x vecs vectors of C in registers, one column of A times one row of B added
 * a step. */
INLINE void tile_run(const tile *t, const bool wide, const int rows, const int vecs,
                     const bool dense)
{
    const int64_t a_row = dense ? size_of(wide) : t->a_row;
    const char *a = t->a, *b = t->b;
    UNROLL for (int r = 0; r < rows; r++) __builtin_prefetch(t->c + r * t->c_row, 1);
    vec sum[2 * ROWS];
    UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] = (vec){0};
    for (int64_t run = 0; run < t->runs; run++) {
        if (t->a_runs) {
            a = t->a + t->a_runs[run];
            b = t->b + t->b_runs[run];
        }
        for (int64_t p = t->k; p > 0; p--) {
            vec row[2];
            UNROLL for (int v = 0; v < vecs; v++) row[v] = load(b + v * BYTES);
            UNROLL for (int r = 0; r < rows; r++)
            {
                vec x = spread(wide, a + r * a_row);
                UNROLL for (int v = 0; v < vecs; v++) sum[r * vecs + v] =
                    multiply_add(wide, x, row[v], sum[r * vecs + v]);
            }
            a += t->a_col;
            b += t->b_row;
        }
    }
    write_sums(t, wide, rows, vecs, sum);
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

typedef void (*tile_function)(const tile *);
#define TILE(rows, name, wide, vecs, dense)                                                        \
    static void name##_##rows(const tile *t)                                                       \
    {                                                                                              \
        tile_run(t, wide, rows, vecs, dense);                                                      \
    }
#define ENTRY(rows, name) name##_##rows,
#define TILES(name, wide, vecs, dense)                                                             \
    EACH_ROWS(TILE, name, wide, vecs, dense)                                                       \
    static const tile_function name[ROWS] = {EACH_ROWS(ENTRY, name)};
TILES(f32_1, false, 1, false)
TILES(f32_2, false, 2, false)
TILES(f32_1_dense, false, 1, true)
TILES(f32_2_dense, false, 2, true)
TILES(f64_1, true, 1, false)
TILES(f64_2, true, 2, false)
TILES(f64_1_dense, true, 1, true)
TILES(f64_2_dense, true, 2, true)
static const tile_function *const tiles[2][2][2] = {{{f32_1, f32_1_dense}, {f32_2, f32_2_dense}},
                                                    {{f64_1, f64_1_dense}, {f64_2, f64_2_dense}}};

/*
 * Rows turned over, PIECE bytes of each at a time. Parts of 16 bytes come to lie below each other
 * in lanes of 16 bytes, so that what is left to do stays within such lanes, which is cheaper. With
 * AVX-512 whole vectors are loaded, which reads a line of the cache once, and exchange lanes;
 * elsewhere the parts go to their lanes as they are loaded.
 */
enum { PART = 16 };
#if defined(__AVX512F__)
enum { PIECE = 64 };
#define LOW_32  0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH_32 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define LOW_64  0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_64 1, 9, 3, 11, 5, 13, 7, 15
#else
enum { PIECE = PART };
#if defined(__AVX2__)
#define LOW_32  0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_32 2, 10, 3, 11, 6, 14, 7, 15
#define LOW_64  0, 4, 2, 6
#define HIGH_64 1, 5, 3, 7
#else
#define LOW_32  0, 4, 1, 5
#define HIGH_32 2, 6, 3, 7
#define LOW_64  0, 2
#define HIGH_64 1, 3
#endif
#endif

/* parts[i * step] = part i of the rows row[0], row[apart], row[2 apart], ... side by side. */
INLINE void load_parts(const char *const row[], const int apart, int64_t at, vec parts[],
                       const int step)
{
#if defined(__AVX512F__)
    vec x = load(row[0] + at), y = load(row[apart] + at);
    vec z = load(row[2 * apart] + at), w = load(row[3 * apart] + at);
    enum { EVEN = 0x88, ODD = 0xdd }; /* parts of both operands */
    vec even_xy = _mm512_shuffle_f32x4(x, y, EVEN), even_zw = _mm512_shuffle_f32x4(z, w, EVEN);
    vec odd_xy = _mm512_shuffle_f32x4(x, y, ODD), odd_zw = _mm512_shuffle_f32x4(z, w, ODD);
    parts[0] = _mm512_shuffle_f32x4(even_xy, even_zw, EVEN);
    parts[step] = _mm512_shuffle_f32x4(odd_xy, odd_zw, EVEN);
    parts[2 * step] = _mm512_shuffle_f32x4(even_xy, even_zw, ODD);
    parts[3 * step] = _mm512_shuffle_f32x4(odd_xy, odd_zw, ODD);
#elif defined(__AVX2__)
    (void)step;
    __m256 one = _mm256_castps128_ps256(_mm_loadu_ps((const float *)(row[0] + at)));
    parts[0] = _mm256_insertf128_ps(one, _mm_loadu_ps((const float *)(row[apart] + at)), 1);
#else
    (void)apart, (void)step;
    parts[0] = load(row[0] + at);
#endif
}

/* turned[i] = the i-th elements of as many rows as there are lanes, from byte `at` on: of each part
 * the lower and the upper half of what was loaded are interleaved, log2(PART / size) times. */
INLINE void load_turned(const bool wide, const char *const row[], int64_t at, vec turned[])
{
    const int n = PART / size_of(wide), all = PIECE / size_of(wide);
    vec next[PIECE / 4];
    UNROLL for (int i = 0; i < n; i++) load_parts(row + i, n, at, turned + i, n);
    UNROLL for (int step = 1; step < n; step *= 2)
    {
        UNROLL for (int i = 0; i < all / 2; i++)
        {
            const int from = i / (n / 2) * n + i % (n / 2);
            vec x = turned[from], y = turned[from + n / 2];
            if (wide) {
                next[2 * i] = (vec)__builtin_shufflevector((vec64)x, (vec64)y, LOW_64);
                next[2 * i + 1] = (vec)__builtin_shufflevector((vec64)x, (vec64)y, HIGH_64);
            } else {
                next[2 * i] = __builtin_shufflevector(x, y, LOW_32);
                next[2 * i + 1] = __builtin_shufflevector(x, y, HIGH_32);
            }
        }
        UNROLL for (int i = 0; i < all; i++) turned[i] = next[i];
    }
}

/* The same for rows of `count` elements, fewer than a piece has; memory behind is not touched. */
INLINE void load_turned_part(const bool wide, const char *const row[], int count, vec turned[])
{
    char part[BYTES / 4][BYTES] __attribute__((aligned(BYTES)));
    const char *line[BYTES / 4];
    for (int i = 0; i < lanes_of(wide); i++) {
        store(part[i], load_part(wide, row[i], count));
        line[i] = part[i];
    }
    load_turned(wide, line, 0, turned);
}

/* Packs k steps of as many lines as there are lanes, see pack_lines. The last piece reaches back
 * into the one before it. */
INLINE void pack_turned(const bool wide, int64_t k, const char *const row[], int64_t step, char *to,
                        int64_t stride)
{
    const int size = size_of(wide), each = PIECE / size;
    vec turned[PIECE / 4];
    if (step != size) {
        for (int64_t p = 0; p < k; p++)
            for (int i = 0; i < lanes_of(wide); i++)
                memcpy(to + p * stride + i * size, row[i] + p * step, (size_t)size);
    } else if (k < each) {
        load_turned_part(wide, row, (int)k, turned);
        for (int64_t p = 0; p < k; p++) store(to + p * stride, turned[p]);
    } else {
        for (int64_t next = 0; next < k; next += each) {
            const int64_t p = min(next, k - each);
            load_turned(wide, row, p * size, turned);
            UNROLL for (int i = 0; i < each; i++) store(to + (p + i) * stride, turned[i]);
        }
    }
}

/*
 * Packs k steps of up to stride/size lines (rows of A, columns of B) so that a step's elements lie
 * side by side: to[p * stride + line * size] = from[line * line_step + p * step]. What is behind
 * the last line, up to the end of its vector, becomes something that can be read, for lanes that
 * nobody keeps.
 */
INLINE void pack_lines(const bool wide, int64_t lines, int64_t k, const char *from,
                       int64_t line_step, int64_t step, char *to, int64_t stride)
{
    const int size = size_of(wide), lanes = lanes_of(wide);
    if (line_step == size) {
        int64_t full = lines / lanes;
        int rest = (int)(lines % lanes);
        for (int64_t p = 0; p < k; p++, from += step, to += stride) {
            for (int64_t v = 0; v < full; v++) store(to + v * BYTES, load(from + v * BYTES));
            if (rest) store(to + full * BYTES, load_part(wide, from + full * BYTES, rest));
        }
        return;
    }
    for (int64_t line = 0; line < lines; line += lanes, to += BYTES) {
        const char *row[BYTES / 4];
        for (int i = 0; i < lanes; i++) row[i] = from + min(line + i, lines - 1) * line_step;
        pack_turned(wide, k, row, step, to, stride);
    }
}

static void pack(bool wide, int64_t lines, int64_t k, const char *from, int64_t line_step,
                 int64_t step, char *to, int64_t stride)
{
    if (wide)
        pack_lines(true, lines, k, from, line_step, step, to, stride);
    else
        pack_lines(false, lines, k, from, line_step, step, to, stride);
}

INLINE int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
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

size_t ISA_NAME(gemm_scratch)(const gemm_job *job)
{
    const bool wide = job->wide;
    int64_t k = gemm_block(wide, job->k), row = packed_row(wide, job->k, job->n), sums = 0;
    if (job->n * size_of(wide) <= PANEL) {
        sums = job->n * turned_stride(wide, job->m);
        row = PANEL + packed_row(wide, job->k, min(job->m, TURNED));
    }
    int64_t thin = (job->n == 1 ? job->m : job->n) * size_of(wide);
    int64_t bytes = k * (row + line_of(wide)) + sums,
            strip = round_up(min(thin, STRIP), BYTES) + APART;
    return (size_t)round_up(bytes > strip ? bytes : strip, 64);
}

void ISA_NAME(gemm_tile)(bool wide, int64_t *rows, int64_t *columns)
{
    *rows = ROWS;
    *columns = PANEL / size_of(wide);
}

/* Begins a block's tiles: what they share, with the last block ending the sums. */
static tile tile_begin(const gemm_job *job, int64_t p, int64_t k)
{
    bool last = p + k >= job->k;
    tile t = {.k = k,
              .runs = 1,
              .a_row = job->a_row,
              .a_col = job->a_col,
              .b_row = job->b_row,
              .c_row = job->c_row,
              .first = p == 0,
              .relu = last && job->relu,
              .bias = last ? job->bias : NULL,
              .bias_col = job->bias_col};
    return t;
}

/* A row of sums into C at byte `at` of its only row. */
INLINE void write_row(const gemm_job *job, const tile *begun, const bool wide, const char *sums,
                      int64_t at, int64_t bytes)
{
    tile t = *begun;
    t.c = job->c + at;
    if (t.bias && t.bias_col) t.bias += at;
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

/* sums += a(p) b(p, column) for the elements from `begin` on of each column's piece at byte `at`;
 * `a` is that of the piece's first, and the others follow it. */
INLINE void add_piece(const bool wide, const int vecs, const char *a, const char *const column[],
                      int64_t at, int begin, vec sums[])
{
    const int each = PIECE / size_of(wide);
    UNROLL for (int v = 0; v < vecs; v++)
    {
        vec turned[PIECE / 4];
        load_turned(wide, column + v * lanes_of(wide), at, turned);
        UNROLL for (int i = 0; i < each; i++) if (i >= begin) sums[v] =
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
        __builtin_prefetch(lines->column + lines->at);
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

/* `vecs` vectors of a row of C from column j on. Each is one chain of additions; side by side they
 * need not wait for each other's. */
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
        int64_t q = 0;
        for (; q + each <= t.k; q += each) {
            if (streamed) ask_ahead(&lines, vecs * lanes * PIECE / LINE);
            add_piece(wide, vecs, a + q * size, column, (p + q) * size, 0, sums);
        }
        if (q < t.k) { /* the piece reaches back */
            int64_t first = t.k - each;
            add_piece(wide, vecs, a + first * size, column, (p + first) * size, (int)(q - first),
                      sums);
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
COLUMNS(few_f32_streamed, false, VECS_32, true)
COLUMNS(most_f32, false, MOST_VECS, false)
COLUMNS(one_f64, true, 1, false)
COLUMNS(few_f64, true, VECS_64, false)
COLUMNS(few_f64_streamed, true, VECS_64, true)
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
 * lines, which are asked for a block ahead, since the machine itself foresees fewer.
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
 * Does a product of one row, where B's layout allows to go without packing. A strip of sums begins
 * half a page from where B's rows do within a page: a load waits for a store to the same place of
 * another page.
 */
static bool row_run(const gemm_job *job, char *scratch)
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

/* One block of k, columns [j, j + columns): B is packed when the first rows need it. */
static void block_run(const gemm_job *job, tile t, int64_t j, int64_t p, int64_t columns,
                      char *scratch)
{
    const bool wide = job->wide;
    const int size = size_of(wide), panel = PANEL / size, line = line_of(wide);
    char *panels = scratch + t.k * line;
    int64_t stripes = (job->m + ROWS - 1) / ROWS;
    bool pack_a = columns > 4 * panel;
    bool small_b = t.k * (job->b_row < 0 ? -job->b_row : job->b_row) <= SMALL_B;
    bool direct_b = job->b_col == size && (stripes <= 3 || small_b);

    for (int64_t s = 0, i = 0; s < stripes; s++) {
        int64_t rows = job->m / stripes + (s < job->m % stripes);
        t.a = job->a + i * job->a_row + p * job->a_col;
        t.a_row = job->a_row;
        t.a_col = job->a_col;
        if (pack_a) {
            pack(wide, rows, t.k, t.a, t.a_row, t.a_col, scratch, line);
            t.a = scratch;
            t.a_row = size;
            t.a_col = line;
        }
        for (int64_t done = 0; done < columns; done += panel) {
            int64_t width = min(panel, columns - done);
            int vecs = width * size > BYTES ? 2 : 1;
            const char *b = job->b + p * job->b_row + (j + done) * job->b_col;
            t.b = panels + done * size * t.k;
            t.b_row = PANEL;
            if (direct_b && width * size == vecs * BYTES) {
                t.b = b;
                t.b_row = job->b_row;
            } else if (s == 0) {
                pack(wide, width, t.k, b, job->b_col, job->b_row, (char *)t.b, PANEL);
            }
            t.c = job->c + i * job->c_row + (j + done) * size;
            t.lanes = (int)(width - (vecs - 1) * panel / 2);
            if (t.bias) t.bias = job->bias + (j + done) * job->bias_col;
            if (pack_a && s + 1 < stripes)
                prefetch_rows(job, job->a + (i + rows) * job->a_row + p * job->a_col, ROWS,
                              done * t.k / columns, min(done + panel, columns) * t.k / columns);
            tiles[wide][vecs - 1][t.a_row == size][rows - 1](&t);
        }
        i += rows;
    }
}

void ISA_NAME(gemm_pack)(bool wide, int64_t k, int64_t n, const char *b, int64_t b_row,
                         int64_t b_col, char *panels, int64_t panel_step)
{
    const int panel = PANEL / size_of(wide);
    for (int64_t j = 0; j < n; j += panel, panels += panel_step)
        pack(wide, min(panel, n - j), k, b + j * b_col, b_col, b_row, panels, PANEL);
}

/*
 * Turns `rows` rows of a panel's sums, a panel apart, into C's columns. Where C's column is
 * contiguous, registers do it: as many rows as there are lanes, PIECE bytes of each at a time.
 */
INLINE void panel_out(const gemm_runs_job *job, const bool wide, int64_t rows, int64_t columns,
                      const char *sums, char *c)
{
    const int size = size_of(wide), lanes = lanes_of(wide), each = PIECE / size;
    for (int64_t i = 0; i < rows && job->c_row == size; i += lanes) {
        const char *row[BYTES / 4];
        for (int q = 0; q < lanes; q++) row[q] = sums + min(i + q, rows - 1) * PANEL;
        for (int64_t j = 0; j < columns; j += each) {
            vec turned[PIECE / 4];
            load_turned(wide, row, j * size, turned);
            char *to = c + i * size + j * job->c_col;
            UNROLL for (int q = 0; q < each; q++, to += job->c_col)
            {
                if (j + q >= columns) continue;
                if (i + lanes <= rows)
                    store(to, turned[q]);
                else
                    store_part(wide, to, turned[q], (int)(rows - i));
            }
        }
    }
    for (int64_t i = 0; i < rows && job->c_row != size; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy(c + i * job->c_row + j * job->c_col, sums + i * PANEL + j * size, (size_t)size);
}

/* The tiles below each other of one panel. */
static void stripes_run(tile t, const bool wide, int64_t m, int vecs)
{
    const char *a = t.a;
    int64_t stripes = (m + ROWS - 1) / ROWS;
    for (int64_t s = 0; s < stripes; s++) {
        int64_t rows = m / stripes + (s < m % stripes);
        t.a = a;
        tiles[wide][vecs - 1][t.a_row == size_of(wide)][rows - 1](&t);
        a += rows * t.a_row;
        t.c += rows * t.c_row;
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
              .first = !job->add};
    for (int64_t j = 0; j < job->n; j += panel) {
        int64_t width = min(panel, job->n - j);
        int vecs = width * size > BYTES ? 2 : 1;
        t.b = job->b + j / panel * job->b_panel;
        t.a = job->a;
        if (job->c_col == size) {
            t.lanes = (int)(width - (vecs - 1) * panel / 2);
            t.c = job->c + j * size;
            t.c_row = job->c_row;
            stripes_run(t, wide, job->m, vecs);
            continue;
        }
        t.lanes = panel / 2;
        t.c_row = PANEL;
        for (int64_t i = 0; i < job->m; i += SUMS, t.a += SUMS * t.a_row) {
            int64_t rows = min(SUMS, job->m - i);
            char *c = job->c + i * job->c_row + j * job->c_col;
            t.c = sums;
            stripes_run(t, wide, rows, vecs);
            if (wide)
                panel_out(job, true, rows, width, sums, c);
            else
                panel_out(job, false, rows, width, sums, c);
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
            t.c = job->c + (i + r) * job->c_row;
            UNROLL for (int q = 0; q < each; q++) if (r + q < rows)
                write_back(&t, wide, turned[q], q, j * size, (int)min(lanes, job->n - j));
        }
    }
}

/* A narrow product: C's rows become lanes, in strips whose sums are turned over at the end. */
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

void ISA_NAME(gemm_piece)(const gemm_job *job, char *scratch)
{
    if (job->k > 0 && job->n == 1 && job->m > 1 && job->c_row == size_of(job->wide)) {
        gemm_job turned = turn(job);
        turned.bias_col = 0;
        if (row_run(&turned, scratch)) return;
    }
    if (job->k > 0 && job->m == 1 && row_run(job, scratch)) return;
    if (is_narrow(job))
        turned_run(job, scratch);
    else
        tiles_run(job, scratch);
}

#endif
