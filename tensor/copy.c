#include "tensor/copy.h"
#include "tensor/core.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * A box is first brought into the order in which its places are written, and dimensions that
 * continue one another are merged. What remains is one of three cases:
 *
 *     rows         the innermost dimension adjoins on the writing side: row by row
 *     transposed   ... but another one adjoins on the reading side: tile by tile, so that every
 *                  cache line is read whole once and written whole once
 *     scattered    neither adjoins: element by element
 *
 * A tile is one cache line wide and as many elements high. It goes through a buffer of its own,
 * because its lines lie a power of two apart more often than not and would push one another out of
 * the first cache; out of the buffer it is turned in registers, 16 bytes at a time.
 */

enum {
    LINE = 64,
    SMALL_BYTES = HARD(0, 256 << 10), /* below, one thread does it */
    STREAM_BYTES = 16 << 20, /* from here on caches are passed by: nothing of it would stay there */
    PIECE_BYTES = HARD(LINE, 512 << 10), /* what a thread takes at a time */
    MOST_PIECES = 64,
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

void copy_row(size_t element, int64_t n, const void *from, int64_t from_stride, void *to,
              int64_t to_stride)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)n * element);
        return;
    }
    if (to_stride == 1 && from_stride == 0) {
        copy_fill_row(element, from, to, n);
        return;
    }
    switch (element) {
    case 1: copy_row_u8(n, from, from_stride, to, to_stride); break;
    case 2: copy_row_u16(n, from, from_stride, to, to_stride); break;
    case 4: copy_row_u32(n, from, from_stride, to, to_stride); break;
    default: copy_row_u64(n, from, from_stride, to, to_stride);
    }
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

#ifdef __SSE2__
static void stream_line(char *to, const char *from)
{
    __m128i v[LINE / 16];
    memcpy(v, from, LINE);
    for (int k = 0; k < LINE / 16; k++) _mm_stream_si128((__m128i *)to + k, v[k]);
}

static void stream_end(void)
{
    _mm_sfence();
}

#else
static void stream_line(char *to, const char *from)
{
    memcpy(to, from, LINE);
}

static void stream_end(void) {}
#endif

/* Bytes; both ends may lie anywhere. */
static void stream_row(char *to, const char *from, size_t bytes)
{
    size_t i = bytes < 4 * LINE ? bytes : -(uintptr_t)to & (LINE - 1);
    memcpy(to, from, i);
    for (; i + LINE <= bytes; i += LINE) stream_line(to + i, from + i);
    memcpy(to + i, from + i, bytes - i);
}

static void stream_fill(size_t element, const void *value, char *to, int64_t n)
{
    char line[LINE] __attribute__((aligned(LINE)));
    size_t bytes = (size_t)n * element, i = -(uintptr_t)to & (LINE - 1);
    copy_fill_row(element, value, line, (int64_t)(LINE / element));
    if (i > bytes) i = bytes;
    memcpy(to, line, i);
    for (; i + LINE <= bytes; i += LINE) stream_line(to + i, line);
    memcpy(to + i, line, bytes - i);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

static void turn_in_cache(size_t element, const char *lines, char *to, int64_t step)
{
    switch (element) {
    case 1: copy_turn_u8(lines, to, step); break;
    case 2: copy_turn_u16(lines, to, step); break;
    case 4: copy_turn_u32(lines, to, step); break;
    default: copy_turn_u64(lines, to, step);
    }
}

/* Past the caches only whole lines go, one after the other. */
static void turn_tile(size_t element, const char *lines, char *to, int64_t step, bool past)
{
    char turned[LINE * LINE] __attribute__((aligned(LINE)));
    turn_in_cache(element, lines, past ? turned : to, past ? LINE : step);
    for (int64_t i = 0; past && i < LINE / (int64_t)element; i++)
        stream_line(to + i * step, turned + i * LINE);
}

/* What doesn't fill a tile: the longer side is the inner loop. */
static void turn_plainly(size_t element, int64_t rows, int64_t columns, const char *from,
                         int64_t from_step, char *to, int64_t to_step)
{
    int64_t size = (int64_t)element;
    if (columns < rows)
        for (int64_t c = 0; c < columns; c++)
            copy_row(element, rows, from + c * from_step, 1, to + c * size, to_step / size);
    else
        for (int64_t r = 0; r < rows; r++)
            copy_row(element, columns, from + r * size, from_step / size, to + r * to_step, 1);
}

/* rows x columns elements: rows adjoin in `from`, columns in `to`. */
static void turn_block(size_t element, int64_t rows, int64_t columns, const char *from,
                       int64_t from_step, char *to, int64_t to_step, bool past)
{
    char lines[LINE * LINE] __attribute__((aligned(LINE)));
    int64_t size = (int64_t)element, side = LINE / size;
    int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
    for (int64_t c = 0; c < whole_columns; c += side)
        for (int64_t r = 0; r < whole_rows; r += side) {
            const char *first = from + r * size + c * from_step;
            for (int64_t i = 0; i < side; i++) {
                memcpy(lines + i * LINE, first + i * from_step, LINE);
                __builtin_prefetch(first + (i + side) * from_step);
            }
            turn_tile(element, lines, to + r * to_step + c * size, to_step, past);
        }
    turn_plainly(element, rows, columns - whole_columns, from + whole_columns * from_step,
                 from_step, to + whole_columns * size, to_step);
    turn_plainly(element, rows - whole_rows, whole_columns, from + whole_rows * size, from_step,
                 to + whole_rows * to_step, to_step);
}

/* In blocks of so many rows that a kilobyte of each column is read before the next columns. */
static void transposed(const box *b, int64_t rows, int64_t columns, const char *from,
                       int64_t from_step, char *to, int64_t to_step)
{
    int64_t size = (int64_t)b->element, block = 16 * LINE / size;
    bool past = b->stream && ((uintptr_t)to | (uintptr_t)to_step) % LINE == 0;
    for (int64_t r = 0; r < rows; r += block)
        turn_block(b->element, rows - r < block ? rows - r : block, columns, from + r * size,
                   from_step, to + r * to_step, to_step, past);
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

static void innermost(const box *b, int turned, const char *from, char *to)
{
    int last = b->rank - 1;
    int64_t element = (int64_t)b->element;
    if (turned >= 0)
        transposed(b, b->shape[turned], b->shape[last], from, b->from_step[last], to,
                   b->to_step[turned]);
    else if (b->stream && b->from_step[last] == element && b->to_step[last] == element)
        stream_row(to, from, (size_t)(b->shape[last] * element));
    else
        copy_row(b->element, b->shape[last], from, b->from_step[last] / element, to,
                 b->to_step[last] / element);
}

static void copy_one(const box *b)
{
    int turned = partner(b), loop[COPY_MAX_RANK], n = 0;
    int64_t at[COPY_MAX_RANK] = {0};
    for (int i = 0; i < b->rank - 1; i++)
        if (i != turned) loop[n++] = i;
    const char *from = b->from;
    char *to = b->to;
    for (;;) {
        innermost(b, turned, from, to);
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
    if (b->stream) stream_end();
}

/* A box to be copied in pieces along a dimension. */
typedef struct cut_box {
    const box *whole;
    int cut;
} cut_box;

static void copy_range(int64_t first, int64_t last, int worker, void *user)
{
    const cut_box *c = user;
    box piece = *c->whole;
    (void)worker;
    piece.from += first * piece.from_step[c->cut];
    piece.to += first * piece.to_step[c->cut];
    piece.shape[c->cut] = last - first;
    copy_one(&piece);
}

/* Cuts along the outermost dimension that has enough to cut, in whole lines. */
static void copy_pieces(const box *b, int64_t bytes)
{
    int cut = 0;
    int64_t pieces = bytes / PIECE_BYTES + 1;
    if (pieces < 2) pieces = 2;
    if (pieces > MOST_PIECES) pieces = MOST_PIECES;
    for (int i = 0; b->shape[cut] < pieces && i < b->rank; i++)
        if (b->shape[i] > b->shape[cut]) cut = i;
    int64_t step = (b->shape[cut] + pieces - 1) / pieces;
    if (step > LINE) step = (step + LINE - 1) / LINE * LINE;
    threads_run(b->shape[cut], step, copy_range, &(cut_box){b, cut});
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
    b.stream = bytes >= STREAM_BYTES;
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
        stream_end();
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
    threads_run(n, PIECE_BYTES / (int64_t)element, fill_range,
                &(fill){element, value, to, bytes >= STREAM_BYTES});
}

/* ---- Tensors --------------------------------------------------------------------------------- */

void tensor_pack(const ed_tensor *t, void *to)
{
    size_t element = dtype_size(t->dtype);
    int64_t strides[ED_MAX_RANK];
    if (t->flags & TENSOR_CONTIGUOUS && t->size * (int64_t)element < SMALL_BYTES) {
        memcpy(to, t->data, (size_t)t->size * element);
        return;
    }
    tensor_row_major(t->rank, t->shape, strides);
    copy_box(element, t->rank, t->shape, t->data, t->strides, to, strides);
}
