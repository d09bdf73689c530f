#include "tensor/copy.h"
#include "tensor/core.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

/*
 * A box is first brought into the order in which its places are written, and dimensions that
 * continue one another are merged; elements that always come together become one. What remains is
 * one of four cases:
 *
 *     rows         the innermost dimension adjoins on the writing side: row by row
 *     blocks       ... and so do others, with few bytes together: one place of many at a time
 *     transposed   ... but another one adjoins on the reading side: tile by tile, so that every
 *                  cache line is read whole once and written whole once
 *     scattered    neither adjoins: element by element
 *
 * Tiles are turned in blocks. A tile is one cache line wide and as many elements high:
 *
 *        from: 64 columns                  lines                      to: a run of each row
 *     |<- 128 bytes ->|               +---------------+
 *     +---------------+  copied       | tile | tile ..|  turned in    +----------------+ row 0
 *     +---------------+  ---------->  |      |        |  registers    +----------------+ row 1
 *     :               :               :      :        :  --------->   :  64 elements   :
 *
 * Columns lie a power of two apart more often than not and would push one another out of the first
 * cache, so a run of each is read into a buffer. Past the caches a row of the result goes as a
 * whole run, too: single lines that far apart take memory four times as long.
 */

enum {
    LINE = COPY_LINE,
    SMALL_BYTES = HARD(0, 256 << 10), /* below, one thread does it */
    PIECE_BYTES =
        HARD(LINE, 64 << 10), /* what a thread takes at a time: neighbours share channels */
    FAR_PIECE_BYTES = HARD(LINE, 256 << 10), /* ... past the caches, where it waits at the end */
    MOST_PIECES = 1024,
    MOST_TURNED = 64, /* of pieces with tiles */
    RUN = 2 * LINE,   /* bytes of a column that a block of tiles takes */
    PITCH = RUN + 16, /* of its buffer: no power of two */
    BUFFER = 4096,    /* of what goes past the caches in short pieces */
    SOME = 8,         /* blocks that are worth it */
    AHEAD = 8,        /* columns that are fetched before they are needed */
    START = 16,       /* lines of the next row that are prefetched: hardware foresees the others */
};

typedef struct box {
    size_t element;
    int rank;
    bool stream;
    int64_t shape[COPY_MAX_RANK], from_step[COPY_MAX_RANK], to_step[COPY_MAX_RANK]; /* in bytes */
    const char *from;
    char *to;
} box;

/* ---- Elements of each size ------------------------------------------------------------------- */

/*
 * For tiles: vectors of 16 bytes; the square of as many vectors as one has elements is turned by
 * log2(elements) rounds, each of which interleaves vector i with vector i + elements / 2.
 */
#define LOW_u8(a, b)                                                                               \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_u8(a, b)                                                                              \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_u16(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_u16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_u32(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_u32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW_u64(a, b)  __builtin_shufflevector(a, b, 0, 2)
#define HIGH_u64(a, b) __builtin_shufflevector(a, b, 1, 3)

#define TYPE u8
#include "tensor/copy.typed.h"
#define TYPE u16
#include "tensor/copy.typed.h"
#define TYPE u32
#include "tensor/copy.typed.h"
#define TYPE u64
#include "tensor/copy.typed.h"

/* ---- Rows ------------------------------------------------------------------------------------ */

/* copy_row with steps in bytes, which need not be whole elements. */
static void copy_steps(size_t element, int64_t n, const char *from, int64_t from_step, char *to,
                       int64_t to_step)
{
    const int64_t size = (int64_t)element;
    if (to_step == size && from_step == size) {
        memcpy(to, from, (size_t)n * element);
        return;
    }
    if (to_step == size && from_step == 0) {
        copy_fill_row(element, from, to, n);
        return;
    }
    switch (element) {
    case 1: copy_steps_u8(n, from, from_step, to, to_step); break;
    case 2: copy_steps_u16(n, from, from_step, to, to_step); break;
    case 4: copy_steps_u32(n, from, from_step, to, to_step); break;
    default: copy_steps_u64(n, from, from_step, to, to_step);
    }
}

void copy_row(size_t element, int64_t n, const void *from, int64_t from_stride, void *to,
              int64_t to_stride)
{
    const int64_t size = (int64_t)element;
    copy_steps(element, n, from, from_stride * size, to, to_stride * size);
}

void copy_fill_row(size_t element, const void *value, void *to, int64_t n)
{
    switch (element) {
    case 1: copy_fill_u8(value, to, n); break;
    case 2: copy_fill_u16(value, to, n); break;
    case 4: copy_fill_u32(value, to, n); break;
    default: copy_fill_u64(value, to, n);
    }
}

/* ---- Past the caches ------------------------------------------------------------------------- */

/*
 * Whole lines to memory aligned to them, from anywhere or each the same (step 0). By vectors of 32
 * bytes where the machine has them: by those of 16 a copy took 4.5 ms where it now takes 2.6.
 */
#ifdef __SSE2__
__attribute__((target("avx"))) static void stream_wide(char *to, const char *from, size_t step,
                                                       size_t lines)
{
    for (size_t i = 0; i < lines; i++)
        for (int k = 0; k < LINE; k += 32)
            _mm256_stream_si256((__m256i *)(to + i * LINE + k),
                                _mm256_loadu_si256((const __m256i *)(from + i * step + k)));
}

static void stream_lines(char *to, const char *from, size_t step, size_t lines)
{
    if (__builtin_cpu_supports("avx")) {
        stream_wide(to, from, step, lines);
        return;
    }
    for (size_t i = 0; i < lines; i++)
        for (int k = 0; k < LINE; k += 16)
            _mm_stream_si128((__m128i *)(to + i * LINE + k),
                             _mm_loadu_si128((const __m128i *)(from + i * step + k)));
}

void copy_stream_end(void)
{
    _mm_sfence();
}

#else
static void stream_lines(char *to, const char *from, size_t step, size_t lines)
{
    for (size_t i = 0; i < lines; i++) memcpy(to + i * LINE, from + i * step, LINE);
}

void copy_stream_end(void) {}
#endif

void copy_stream(void *to, const void *from, size_t bytes)
{
    const size_t head = bytes < 2 * LINE ? bytes : -(uintptr_t)to & (LINE - 1);
    const size_t middle = (bytes - head) / LINE * LINE, end = head + middle;
    char *target = to;
    const char *source = from;
    memcpy(target, source, head);
    stream_lines(target + head, source + head, LINE, middle / LINE);
    memcpy(target + end, source + end, bytes - end);
}

static void stream_fill(size_t element, const void *value, char *to, int64_t n)
{
    char values[2 * LINE];
    size_t bytes = (size_t)n * element, head = -(uintptr_t)to & (LINE - 1);
    copy_fill_row(element, value, values, (int64_t)(sizeof values / element));
    if (head > bytes) head = bytes;
    const size_t end = head + (bytes - head) / LINE * LINE;
    const char *line = values + head % element;
    memcpy(to, values, head);
    stream_lines(to + head, line, 0, (end - head) / LINE);
    memcpy(to + end, line, bytes - end);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

static void turn_tile(size_t element, const char *lines, char *to, int64_t step)
{
    switch (element) {
    case 1: copy_turn_u8(lines, to, step); break;
    case 2: copy_turn_u16(lines, to, step); break;
    case 4: copy_turn_u32(lines, to, step); break;
    default: copy_turn_u64(lines, to, step);
    }
}

/* What doesn't fill a tile: the longer side is the inner loop. */
static void turn_plainly(size_t element, int64_t rows, int64_t columns, const char *from,
                         int64_t from_step, char *to, int64_t to_step)
{
    int64_t size = (int64_t)element;
    if (columns < rows)
        for (int64_t c = 0; c < columns; c++)
            copy_steps(element, rows, from + c * from_step, size, to + c * size, to_step);
    else
        for (int64_t r = 0; r < rows; r++)
            copy_steps(element, columns, from + r * size, from_step, to + r * to_step, size);
}

/* Tiles of one row of them, in `lines`: runs of `bytes` bytes in `to`. */
static void turn_runs(const box *b, const char *lines, int64_t bytes, char *to, int64_t to_step)
{
    const int64_t size = (int64_t)b->element;
    for (int64_t at = 0; at < bytes; at += LINE)
        turn_tile(b->element, lines + at / size * PITCH, to + at, to_step);
}

/* The same past the caches, on a frame of its own: small copies need no room for its runs. */
static __attribute__((noinline)) void stream_runs(const box *b, const char *lines, int64_t bytes,
                                                  char *to, int64_t to_step)
{
    char turned[LINE * LINE] __attribute__((aligned(LINE)));
    turn_runs(b, lines, bytes, turned, bytes);
    for (int64_t i = 0; i < LINE / (int64_t)b->element; i++)
        copy_stream(to + i * to_step, turned + i * bytes, (size_t)bytes);
}

/* A block of whole tiles: at most RUN bytes of at most LINE columns. */
static void turn_block(const box *b, int64_t rows, int64_t columns, const char *from,
                       int64_t from_step, char *to, int64_t to_step)
{
    char lines[LINE * PITCH] __attribute__((aligned(LINE)));
    const int64_t size = (int64_t)b->element, bytes = rows * size;
    for (int64_t c = 0; c < columns; c++) {
        const char *column = from + c * from_step;
        for (int64_t i = 0; i < bytes; i += LINE) {
            memcpy(lines + c * PITCH + i, column + i, LINE);
            __builtin_prefetch(column + AHEAD * from_step + i);
        }
    }
    for (int64_t i = 0; i < bytes; i += LINE)
        (b->stream ? stream_runs : turn_runs)(b, lines + i, columns * size, to + i / size * to_step,
                                              to_step);
}

/* rows x columns elements: rows adjoin in `from`, columns in `to`. */
static void transposed(const box *b, int64_t rows, int64_t columns, const char *from,
                       int64_t from_step, char *to, int64_t to_step)
{
    const int64_t size = (int64_t)b->element, side = LINE / size, high = RUN / size;
    const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
    for (int64_t r = 0; r < whole_rows; r += high)
        for (int64_t c = 0; c < whole_columns; c += LINE)
            turn_block(b, whole_rows - r < high ? whole_rows - r : high,
                       whole_columns - c < LINE ? whole_columns - c : LINE,
                       from + r * size + c * from_step, from_step, to + r * to_step + c * size,
                       to_step);
    turn_plainly(b->element, rows, columns - whole_columns, from + whole_columns * from_step,
                 from_step, to + whole_columns * size, to_step);
    turn_plainly(b->element, rows - whole_rows, whole_columns, from + whole_rows * size, from_step,
                 to + whole_rows * to_step, to_step);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* So few bytes that a call of memcpy would cost more than the copy; not 0. */
static inline __attribute__((always_inline)) void copy_few(char *to, const char *from, int64_t n)
{
    if (n >= 16) {
        for (int64_t at = 0; at < n - 16; at += 16) memcpy(to + at, from + at, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
    }
}

static inline __attribute__((always_inline)) void copy_runs_of(int64_t bytes, int64_t n,
                                                               const char *from, int64_t from_step,
                                                               char *to, int64_t to_step)
{
    for (int64_t i = 0; i < n; i++) copy_few(to + i * to_step, from + i * from_step, bytes);
}

/* n runs of so many bytes. */
static void copy_runs(int64_t bytes, int64_t n, const char *from, int64_t from_step, char *to,
                      int64_t to_step)
{
    switch (bytes) { /* the usual ones: the compiler knows their length */
    case 12: copy_runs_of(12, n, from, from_step, to, to_step); break;
    case 16: copy_runs_of(16, n, from, from_step, to, to_step); break;
    case 32: copy_runs_of(32, n, from, from_step, to, to_step); break;
    case 64: copy_runs_of(64, n, from, from_step, to, to_step); break;
    default: copy_runs_of(bytes, n, from, from_step, to, to_step);
    }
}

/*
 * The innermost dimensions whose places adjoin, as long as they are short together, are a block.
 * The first of them, if the next dimension outside adjoins too and has some of them; else the rank.
 */
static int block_of(const box *b)
{
    int first = b->rank;
    int64_t bytes = (int64_t)b->element;
    while (first > 1 && b->to_step[first - 1] == bytes && bytes * b->shape[first - 1] <= RUN)
        bytes *= b->shape[--first];
    return b->to_step[first - 1] == bytes && b->shape[first - 1] >= SOME ? first : b->rank;
}

/* n blocks, so many bytes apart: in turn what is at each of their places, from dimension d on. */
static void copy_blocks(const box *b, int d, int64_t n, const char *from, int64_t from_step,
                        char *to, int64_t to_step)
{
    const int64_t element = (int64_t)b->element;
    if (d == b->rank) {
        copy_steps(b->element, n, from, from_step, to, to_step);
    } else if (d == b->rank - 1 && b->from_step[d] == element) {
        copy_runs(b->shape[d] * element, n, from, from_step, to, to_step);
    } else {
        for (int64_t i = 0; i < b->shape[d]; i++)
            copy_blocks(b, d + 1, n, from + i * b->from_step[d], from_step, to + i * b->to_step[d],
                        to_step);
    }
}

/* The blocks from dimension d on along the one outside; past the caches by way of a buffer. */
static void copy_many_blocks(const box *b, int d, const char *from, char *to)
{
    char buffer[BUFFER] __attribute__((aligned(LINE)));
    const int64_t n = b->shape[d - 1], from_step = b->from_step[d - 1], bytes = b->to_step[d - 1];
    const int64_t most = BUFFER / bytes;
    for (int64_t i = 0; i < n; i += most, from += most * from_step, to += most * bytes) {
        const int64_t some = n - i < most ? n - i : most;
        copy_blocks(b, d, some, from, from_step, b->stream ? buffer : to, bytes);
        if (b->stream) copy_stream(to, buffer, (size_t)(some * bytes));
    }
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static int64_t size_of(int64_t step)
{
    return step < 0 ? -step : step;
}

/* Puts a dimension where it belongs, the largest steps of writing first. */
static void insert(box *b, int64_t extent, int64_t from_step, int64_t to_step)
{
    int at = b->rank++;
    for (; at > 0 && size_of(b->to_step[at - 1]) < size_of(to_step); at--) {
        b->shape[at] = b->shape[at - 1];
        b->from_step[at] = b->from_step[at - 1];
        b->to_step[at] = b->to_step[at - 1];
    }
    b->shape[at] = extent;
    b->from_step[at] = from_step;
    b->to_step[at] = to_step;
}

static void merge(box *b)
{
    int n = 0;
    for (int i = 0; i < b->rank; i++) {
        bool one = n && b->from_step[n - 1] == b->from_step[i] * b->shape[i] &&
                   b->to_step[n - 1] == b->to_step[i] * b->shape[i];
        b->shape[one ? n - 1 : n] = one ? b->shape[n - 1] * b->shape[i] : b->shape[i];
        n += !one;
        b->from_step[n - 1] = b->from_step[i];
        b->to_step[n - 1] = b->to_step[i];
    }
    b->rank = n;
}

/* Elements that always come together become one. */
static void fuse_elements(box *b)
{
    const int last = b->rank - 1;
    const int64_t size = (int64_t)b->element, bytes = b->shape[last] * size;
    if (last == 0 || b->from_step[last] != size || b->to_step[last] != size) return;
    if (bytes != 2 && bytes != 4 && bytes != 8) return;
    b->element = (size_t)bytes;
    b->rank--;
}

/* Dimensions that are read backwards are gone through from the other end, if they can be turned
 * against the innermost one then. */
static void face_forward(box *b)
{
    const int64_t element = (int64_t)b->element;
    for (int i = 0; i < b->rank - 1; i++) {
        if (b->from_step[i] != -element) continue;
        b->from += (b->shape[i] - 1) * b->from_step[i];
        b->to += (b->shape[i] - 1) * b->to_step[i];
        b->from_step[i] = element;
        b->to_step[i] = -b->to_step[i];
    }
}

/* The dimension to turn against the innermost one, -1 if rows do as well. */
static int partner(const box *b)
{
    int last = b->rank - 1;
    int64_t element = (int64_t)b->element;
    if (b->to_step[last] != element || size_of(b->from_step[last]) <= element) return -1;
    for (int i = 0; i < last; i++)
        if (b->from_step[i] == element && b->shape[i] * b->shape[last] >= 16) return i;
    return -1;
}

/* Prefetches the first lines of a row that does not adjoin the one that is being copied. */
static void prefetch_row(const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes && at < START * LINE; at += LINE) __builtin_prefetch(from + at);
}

/* n rows of so many bytes. */
static void copy_rows(const box *b, int64_t n, size_t bytes, const char *from, int64_t from_step,
                      char *to, int64_t to_step)
{
    if (b->stream)
        for (int64_t i = 0; i < n; i++) {
            if (i + 1 < n) prefetch_row(from + (i + 1) * from_step, bytes);
            copy_stream(to + i * to_step, from + i * from_step, bytes);
        }
    else if (bytes % LINE || bytes > RUN)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, bytes);
    else /* so few lines that a call costs as much */
        for (int64_t i = 0; i < n; i++)
            for (size_t at = 0; at < bytes; at += LINE)
                memcpy(to + i * to_step + at, from + i * from_step + at, LINE);
}

/* A row whose elements don't adjoin; past the caches by way of a buffer. */
static void copy_apart(const box *b, int64_t n, const char *from, int64_t from_step, char *to,
                       int64_t to_step)
{
    char buffer[BUFFER] __attribute__((aligned(LINE)));
    const int64_t element = (int64_t)b->element, most = BUFFER / element;
    if (!b->stream || to_step != element) {
        copy_steps(b->element, n, from, from_step, to, to_step);
        return;
    }
    if (from_step == 0) {
        stream_fill(b->element, from, to, n);
        return;
    }
    for (int64_t i = 0; i < n; i += most) {
        const int64_t some = n - i < most ? n - i : most;
        copy_steps(b->element, some, from + i * from_step, from_step, buffer, element);
        copy_stream(to + i * element, buffer, (size_t)(some * element));
    }
}

/* Dimensions that are copied together. */
typedef struct plane {
    enum { ROWS, TILES, BLOCKS } of;
    int outside; /* the one around what is inside, -1 if there is none; turned against it: tiles */
    int inner;   /* the innermost, or the first of a block's */
} plane;

static plane plane_of(const box *b)
{
    const int turned = partner(b), last = b->rank - 1, block = block_of(b);
    if (turned >= 0) return (plane){TILES, turned, last};
    if (block < b->rank) return (plane){BLOCKS, block - 1, block};
    return (plane){ROWS, last - 1, last};
}

static void copy_plane(const box *b, plane p, const char *from, char *to)
{
    const int last = b->rank - 1, i = p.outside;
    const int64_t element = (int64_t)b->element, n = i < 0 ? 1 : b->shape[i];
    const int64_t from_step = i < 0 ? 0 : b->from_step[i], to_step = i < 0 ? 0 : b->to_step[i];
    if (p.of == TILES)
        transposed(b, n, b->shape[last], from, b->from_step[last], to, to_step);
    else if (p.of == BLOCKS)
        copy_many_blocks(b, p.inner, from, to);
    else if (b->from_step[last] == element && b->to_step[last] == element)
        copy_rows(b, n, (size_t)(b->shape[last] * element), from, from_step, to, to_step);
    else
        for (int64_t k = 0; k < n; k++)
            copy_apart(b, b->shape[last], from + k * from_step, b->from_step[last],
                       to + k * to_step, b->to_step[last]);
}

static void copy_one(const box *b)
{
    const plane p = plane_of(b);
    int loop[COPY_MAX_RANK], n = 0;
    int64_t at[COPY_MAX_RANK] = {0};
    for (int i = 0; i < p.inner; i++)
        if (i != p.outside) loop[n++] = i;
    const char *from = b->from;
    char *to = b->to;
    for (;;) {
        copy_plane(b, p, from, to);
        int d = n - 1;
        for (; d >= 0; d--) {
            int i = loop[d];
            from += b->from_step[i];
            to += b->to_step[i];
            if (++at[d] < b->shape[i]) break;
            from -= b->from_step[i] * b->shape[i];
            to -= b->to_step[i] * b->shape[i];
            at[d] = 0;
        }
        if (d < 0) break;
    }
    if (b->stream) copy_stream_end();
}

/*
 * A box that is copied in pieces: they are numbered along `outer` dimensions, each of whose places
 * is apart, and along one more, where a piece has whole units, so that tiles and lines stay whole.
 */
typedef struct cut_box {
    const box *whole;
    int outer, dims[COPY_MAX_RANK]; /* the one that is cut: dims[outer] */
    int64_t unit, units;
} cut_box;

/* Units first..last-1 of the dimension that is cut, at `place` of the outer ones. */
static void copy_units(const cut_box *c, int64_t place, int64_t first, int64_t last)
{
    const int cut = c->dims[c->outer];
    box piece = *c->whole;
    for (int k = c->outer - 1; k >= 0; k--) {
        const int i = c->dims[k];
        piece.from += place % piece.shape[i] * piece.from_step[i];
        piece.to += place % piece.shape[i] * piece.to_step[i];
        place /= piece.shape[i];
        piece.shape[i] = 1;
    }
    const int64_t begin = first * c->unit, end = last * c->unit;
    piece.from += begin * piece.from_step[cut];
    piece.to += begin * piece.to_step[cut];
    piece.shape[cut] = (end < piece.shape[cut] ? end : piece.shape[cut]) - begin;
    copy_one(&piece);
}

static void copy_range(int64_t first, int64_t last, int worker, void *user)
{
    const cut_box *c = user;
    (void)worker;
    while (first < last) {
        const int64_t place = first / c->units, at = first % c->units;
        const int64_t n = c->units - at < last - first ? c->units - at : last - first;
        copy_units(c, place, at, at + n);
        first += n;
    }
}

/* The dimensions as they are cut, in order; of two that are turned the longer one, last. */
static int cut_order(const box *b, int turned, int *dims)
{
    const int last = b->rank - 1;
    int n = 0;
    for (int i = 0; i < last; i++)
        if (i != turned) dims[n++] = i;
    dims[n++] = turned >= 0 && b->shape[turned] > b->shape[last] ? turned : last;
    return n;
}

static int64_t piece_bytes(bool stream)
{
    return stream ? FAR_PIECE_BYTES : PIECE_BYTES;
}

/* Cuts along as few dimensions as give enough pieces. */
static void copy_pieces(const box *b, int64_t bytes)
{
    const int turned = partner(b), most = turned < 0 ? MOST_PIECES : MOST_TURNED;
    const int64_t each = piece_bytes(b->stream);
    const int64_t pieces = bytes / each < most ? bytes / each + 1 : most;
    cut_box c = {.whole = b};
    const int rank = cut_order(b, turned, c.dims);
    int64_t n = 1;
    for (;; c.outer++) {
        const int i = c.dims[c.outer];
        c.unit = c.outer == rank - 1 ? LINE : 1;
        c.units = (b->shape[i] + c.unit - 1) / c.unit;
        n *= c.units;
        if (n >= pieces || c.outer == rank - 1) break;
    }
    threads_run(n, (n + pieces - 1) / pieces, copy_range, &c);
}

void copy_box(size_t element, int rank, const int64_t *shape, const void *from,
              const int64_t *from_strides, void *to, const int64_t *to_strides)
{
    box b = {.element = element, .from = from, .to = to};
    int64_t bytes = (int64_t)element;
    for (int i = 0; i < rank; i++) {
        bytes *= shape[i];
        if (shape[i] != 1)
            insert(&b, shape[i], from_strides[i] * (int64_t)element,
                   to_strides[i] * (int64_t)element);
    }
    if (bytes == 0) return;
    if (b.rank == 0) {
        memcpy(to, from, element);
        return;
    }
    merge(&b);
    fuse_elements(&b);
    face_forward(&b);
    b.stream = bytes >= COPY_FAR_BYTES;
    if (bytes < SMALL_BYTES)
        copy_one(&b);
    else
        copy_pieces(&b, bytes);
}

typedef struct fill {
    size_t element;
    const void *value;
    char *to;
    bool stream;
} fill;

static void fill_range(int64_t first, int64_t last, int worker, void *user)
{
    const fill *f = user;
    char *to = f->to + first * (int64_t)f->element;
    (void)worker;
    if (f->stream) {
        stream_fill(f->element, f->value, to, last - first);
        copy_stream_end();
    } else {
        copy_fill_row(f->element, f->value, to, last - first);
    }
}

void copy_fill(size_t element, const void *value, void *to, int64_t n)
{
    int64_t bytes = n * (int64_t)element;
    if (bytes < SMALL_BYTES) {
        copy_fill_row(element, value, to, n);
        return;
    }
    fill f = {element, value, to, bytes >= COPY_FAR_BYTES};
    threads_run(n, piece_bytes(f.stream) / (int64_t)element, fill_range, &f);
}

void copy_bytes(void *to, const void *from, size_t bytes)
{
    const int64_t n = (int64_t)bytes, one = 1;
    if (n < SMALL_BYTES)
        memcpy(to, from, bytes);
    else
        copy_box(1, 1, &n, from, &one, to, &one);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

void tensor_pack(const ed_tensor *t, void *to)
{
    size_t element = dtype_size(t->dtype);
    int64_t strides[ED_MAX_RANK];
    if (t->flags & TENSOR_CONTIGUOUS) {
        copy_bytes(to, t->data, (size_t)t->size * element);
        return;
    }
    tensor_row_major(t->rank, t->shape, strides);
    copy_box(element, t->rank, t->shape, t->data, t->strides, to, strides);
}
