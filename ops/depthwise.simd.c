/*
 * Depthwise convolution of images with channels last, computed where they lie. Threads take rows of
 * the result; for the kernel's gradient pieces of dy's rows, each with sums of its own, which are
 * added pairwise. Rows and pieces depend on the shapes alone. With stride 1 and a multiplier of 1
 * the gradient of the input is the convolution of dy with the kernel turned over.
 */
#include "ops/conv_gemm.h"
#include "ops/depthwise.h"
#include "ops/kernels/isa.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    DEPTHWISE_SOME = 8,       /* outputs at a time, and ... */
    DEPTHWISE_TAPS = 9,       /* ... taps of the kernel's gradient: their sums are registers ... */
    DEPTHWISE_CELLS = 16,     /* ... while so many outputs pass, whose cells stay in the cache */
    DEPTHWISE_PIECES = 64,    /* of dy's rows, each with sums of its own, at most */
    DEPTHWISE_SENDERS = 32,   /* taps that a cell of the input's gradient gets from at a time */
    DEPTHWISE_MULTIPLIER = 8, /* multipliers whose sums for the input's gradient are registers */
};

/* The taps of an output: rows [h0, h1) of the kernel from image row `row` on, columns [v0, v1). */
typedef struct depthwise_taps {
    int64_t row, h0, h1, v0, v1;
} depthwise_taps;

/* A tap of a gradient: where the first output finds its cell, or where the output is; and the
 * kernel's number; in elements. */
typedef struct depthwise_tap {
    int64_t x, k;
} depthwise_tap;

/* Computes row `row` of an image of the result, and perhaps others of the `left` from it on.
 * Returns how many they are. */
typedef int depthwise_function(const depthwise_call *d, const void *image, int64_t row,
                               int64_t left, void *to);

typedef struct depthwise_loops {
    depthwise_function *row, *input_row;
    void (*kernel_row)(const depthwise_call *d, const void *image, int64_t oh, const void *dy,
                       void *sums);
    void (*join)(void *to, const void *from, int64_t n);
} depthwise_loops;

#ifdef ISA

#include "ops/kernels/strided.h"

/* What goes past the caches is written by whole lines: halves of lines of several outputs in turn
 * keep memory waiting. Where a line is few vectors two rows at a time have sums and taps in
 * registers and read the rows that they share once. */
enum {
    DEPTHWISE_VECS = COPY_LINE / VECTOR_BYTES,
    DEPTHWISE_ROWS = DEPTHWISE_VECS <= 2 ? 2 : 1,
    DEPTHWISE_SUMS = 12, /* vectors of sums, at most */
    DEPTHWISE_ABREAST = DEPTHWISE_SUMS / DEPTHWISE_ROWS / DEPTHWISE_VECS, /* outputs of each row */
};

/* The number in the image of the cell that tap (h, v) of output ow reads. */
VECTOR_INLINE int64_t depthwise_at(const window *w, const depthwise_taps *t, int64_t h, int64_t v,
                                   int64_t ow)
{
    return (t->row + h * w->dilation[0]) * w->image[1] + ow * w->stride[1] - w->before[1] +
           v * w->dilation[1];
}

/* Finds the columns of taps of output ow. Returns the end of those outputs behind it that have the
 * same, if those are all taps; else ow + 1. */
VECTOR_INLINE int64_t depthwise_alike(const window *w, int64_t ow, depthwise_taps *t)
{
    window_taps(w, 1, ow, &t->v0, &t->v1);
    if (t->v0 > 0 || t->v1 < w->extent[1]) return ow + 1;
    const int64_t room = w->image[1] - 1 - (w->extent[1] - 1) * w->dilation[1] + w->before[1];
    const int64_t end = room / w->stride[1] + 1;
    return end < w->out[1] ? end : w->out[1];
}

/* Whether the outputs of row oh have all rows of taps. */
VECTOR_INLINE bool depthwise_is_whole(const window *w, int64_t oh)
{
    int64_t h0, h1;
    window_taps(w, 0, oh, &h0, &h1);
    return h1 - h0 == w->extent[0];
}

/* Lists `count` taps of output ow, row by row, from number i on. */
VECTOR_INLINE void depthwise_list(const window *w, const depthwise_taps *t, int64_t ow, int64_t i,
                                  int count, depthwise_tap *taps)
{
    const int64_t columns = t->v1 - t->v0;
    int64_t h = t->h0 + i / columns, v = t->v0 + i % columns;
    for (int n = 0; n < count; n++) {
        taps[n].x = depthwise_at(w, t, h, v, ow) * w->channels;
        taps[n].k = (h * w->extent[1] + v) * w->channels;
        if (++v == t->v1) v = t->v0, h++;
    }
}

#define TYPE f32
#include "ops/depthwise.typed.h"
#define TYPE f64
#include "ops/depthwise.typed.h"

#define DEPTHWISE_ROW(type)                                                                        \
    {                                                                                              \
        depthwise_row_##type, depthwise_input_row_##type, depthwise_kernel_row_##type,             \
            depthwise_join_##type                                                                  \
    }
const depthwise_loops ISA_NAME(depthwise_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = DEPTHWISE_ROW(f32), [ED_FLOAT64] = DEPTHWISE_ROW(f64)};

#else

ISA_DECLARE_TABLE(depthwise_loops, depthwise_table, []);

/* A call at work: from images of `from_image` bytes to rows of `to_row`. */
typedef struct depthwise_work {
    const depthwise_call *d;
    const depthwise_loops *loops;
    depthwise_function *run;
    const char *from;
    char *to;
    int64_t rows, to_row, from_image; /* of an image of the result; bytes */
    int64_t pieces, bytes;            /* of dy's rows; of a kernel */
} depthwise_work;

static const depthwise_loops *depthwise_loops_for(ed_dtype dtype)
{
    static const depthwise_loops *const tables[ISA_COUNT] = ISA_TABLE(depthwise_table);
    return &tables[isa_level][dtype];
}

static bool depthwise_pays(const depthwise_call *d)
{
    return d->y->size * d->w.extent[0] * d->w.extent[1] > OPS_PARALLEL_WORK;
}

static void depthwise_rows(int64_t first, int64_t last, int worker, void *user)
{
    const depthwise_work *p = user;
    (void)worker;
    for (int64_t i = first; i < last;) {
        const int64_t row = i % p->rows;
        i += p->run(p->d, p->from + i / p->rows * p->from_image, row,
                    conv_min(p->rows - row, last - i), p->to + i * p->to_row);
    }
}

static void run_rows(depthwise_work *p)
{
    const int64_t units = p->d->w.batch * p->rows;
    threads_run(units, depthwise_pays(p->d) ? 4 : units, depthwise_rows, p);
}

bool depthwise_forward(const depthwise_call *call)
{
    depthwise_call copy = *call, *d = &copy;
    const window *w = &d->w;
    const int64_t size = (int64_t)dtype_size(d->x->dtype), cell = w->channels * size;
    const depthwise_loops *loops = depthwise_loops_for(d->x->dtype);
    copy.stream = cell % COPY_LINE == 0 && (uintptr_t)d->y->data % COPY_LINE == 0 &&
                  d->y->size * size >= COPY_FAR_BYTES;
    depthwise_work p = {.d = d,
                        .run = loops->row,
                        .from = d->x->data,
                        .to = d->y->data,
                        .rows = w->out[0],
                        .to_row = w->out[1] * cell * d->multiplier,
                        .from_image = w->image[0] * w->image[1] * cell};
    run_rows(&p);
    return true;
}

/* The gradient of the input as a convolution of dy, with stride 1 and a multiplier of 1. */
static bool turned_over(const depthwise_call *d)
{
    const int64_t taps = d->w.extent[0] * d->w.extent[1];
    const size_t row = (size_t)d->w.channels * dtype_size(d->x->dtype);
    ed_tensor *kernel = tensor_new(d->x->dtype, 4, d->kernel->shape);
    if (!kernel) return false;
    for (int64_t i = 0; i < taps; i++)
        memcpy(kernel->data + (size_t)i * row, d->kernel->data + (size_t)(taps - 1 - i) * row, row);
    depthwise_call turned = {.w = d->w, .multiplier = 1, .x = d->y, .kernel = kernel, .y = d->x};
    for (int a = 0; a < 2; a++) {
        turned.w.image[a] = d->w.out[a];
        turned.w.out[a] = d->w.image[a];
        turned.w.before[a] = (d->w.extent[a] - 1) * d->w.dilation[a] - d->w.before[a];
    }
    const bool ok = depthwise_forward(&turned);
    ed_release(kernel);
    return ok;
}

bool depthwise_gradient_input(const depthwise_call *d)
{
    const window *w = &d->w;
    if (d->multiplier == 1 && w->stride[0] == 1 && w->stride[1] == 1) return turned_over(d);
    const int64_t size = (int64_t)dtype_size(d->x->dtype), cell = w->channels * size;
    depthwise_work p = {.d = d,
                        .run = depthwise_loops_for(d->x->dtype)->input_row,
                        .from = d->y->data,
                        .to = d->x->data,
                        .rows = w->image[0],
                        .to_row = w->image[1] * cell,
                        .from_image = w->out[0] * w->out[1] * cell * d->multiplier};
    run_rows(&p);
    return true;
}

static void kernel_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const depthwise_work *p = user;
    const depthwise_call *d = p->d;
    const int64_t all = d->w.batch * p->rows;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        char *sums = p->to + i * p->bytes;
        memset(sums, 0, (size_t)p->bytes);
        for (int64_t row = all * i / p->pieces; row < all * (i + 1) / p->pieces; row++)
            p->loops->kernel_row(d, p->from + row / p->rows * p->from_image, row % p->rows,
                                 d->y->data + row * p->to_row, sums);
    }
}

void depthwise_join(ed_dtype dtype, char *sums, int64_t pieces, int64_t n)
{
    const depthwise_loops *loops = depthwise_loops_for(dtype);
    const int64_t bytes = n * (int64_t)dtype_size(dtype);
    for (int64_t step = 1; step < pieces; step *= 2)
        for (int64_t i = 0; i + step < pieces; i += 2 * step)
            loops->join(sums + i * bytes, sums + (i + step) * bytes, n);
}

bool depthwise_gradient_kernel(const depthwise_call *d)
{
    const window *w = &d->w;
    const int64_t size = (int64_t)dtype_size(d->x->dtype), cell = w->channels * size;
    depthwise_work p = {.d = d,
                        .loops = depthwise_loops_for(d->x->dtype),
                        .from = d->x->data,
                        .rows = w->out[0],
                        .to_row = w->out[1] * cell * d->multiplier,
                        .from_image = w->image[0] * w->image[1] * cell,
                        .pieces = w->batch * w->out[0],
                        .bytes = d->kernel->size * size};
    if (p.pieces > DEPTHWISE_PIECES) p.pieces = DEPTHWISE_PIECES;
    if (!(p.to = memory_alloc((size_t)(p.pieces * p.bytes)))) return false;
    threads_run(p.pieces, depthwise_pays(d) ? 1 : p.pieces, kernel_pieces, &p);
    depthwise_join(d->x->dtype, p.to, p.pieces, d->kernel->size);
    memcpy(d->kernel->data, p.to, (size_t)p.bytes);
    memory_free(p.to);
    return true;
}

#endif
