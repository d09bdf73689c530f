/*
 * The loops of pooling, and how the work is cut.
 *
 * A vector's lanes are neighbours that have the same cells: channels of one window, where these
 * come last, or windows of one channel, side by side, whose cells are the columns' stride apart.
 * Images with channels first are [batch channels, height, width, 1]. So each window is read once,
 * into registers.
 *
 * The work is cut into rows of windows. A row of windows that adds to cells begins with zeros where
 * none before it has been; where windows overlap in height, the rows of an image (of a chunk of its
 * channels) are one thread's, in order. Where windows of channels that come last lie side by side,
 * means are not added to cells but written. So the results depend on the shapes and, with channels
 * first, on the width of vectors, but not on the number of threads.
 */
#include "ops/kernels/isa.h"
#include "ops/pool.h"
#include "tensor/copy.h"
#include "tensor/threads.h"

/* The cells of a vector of windows: elements from one to that below it, to that on its right. */
typedef struct pool_cells {
    int64_t rows, columns, row_step, column_step;
    bool tiled, stream; /* see pool_row */
} pool_cells;

/* A row of windows: x and image begin with the first element of an image's chunk of channels,
 * pooled with the row's. */
typedef struct pool_row {
    const window *w;
    const void *x;
    void *image, *pooled;
    int64_t channels; /* in the chunk */
    int64_t first;    /* elements from the image's beginning to the first row of cells */
    int64_t rows;     /* of cells */
    int64_t inner[2]; /* windows from .. to have all their columns in the image */
    bool tiled;       /* no cell has two windows: it is written, not added to, ... */
    bool stream;      /* ... past the caches */
    bool ahead;       /* x is prefetched */
} pool_row;

typedef struct pool_loops {
    void (*row[POOL_KINDS])(const pool_row *r);
} pool_loops;

enum { POOL_AHEAD = 4096 }; /* bytes from the cells at work to those that are prefetched */

/* How many of begin, begin + step, ... are below end. */
static inline int64_t pool_steps(int64_t begin, int64_t end, int64_t step)
{
    return begin >= end ? 0 : step == 1 ? end - begin : (end - begin + step - 1) / step;
}

#ifdef ISA

#include "ops/kernels/strided.h"

#define TYPE f32
#include "ops/pool.typed.h"
#define TYPE f64
#include "ops/pool.typed.h"

#define POOL_LOOPS(type)                                                                           \
    {                                                                                              \
        {                                                                                          \
            pool_max_##type, pool_max_scatter_##type, pool_max_gather_##type, pool_means_##type,   \
                pool_means_scatter_##type                                                          \
        }                                                                                          \
    }
const pool_loops ISA_NAME(pool_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = POOL_LOOPS(f32), [ED_FLOAT64] = POOL_LOOPS(f64)};

#else

#include "ops/ops.h"
#include <string.h>

ISA_DECLARE_TABLE(pool_loops, pool_table, []);

enum { POOL_CHUNK = 128 }; /* channels at a time, of what adds to cells */

typedef struct pool_work {
    window w;
    void (*row)(const pool_row *r);
    const char *x;
    char *image, *pooled;
    int64_t size, chunk, chunks; /* of an element; channels at a time; how often that is */
    int64_t inner[2];
    bool scatters, tiled, stream, ahead;
} pool_work;

/* The image's row behind the last that rows of windows up to oh have cells in. */
static int64_t rows_seen(const window *w, int64_t oh)
{
    if (oh < 0) return 0;
    const int64_t span = (w->extent[0] - 1) * w->dilation[0] + 1;
    const int64_t end = oh * w->stride[0] - w->before[0] + span;
    return oh == w->out[0] - 1 || end > w->image[0] ? w->image[0] : end < 0 ? 0 : end;
}

/* Zeros into rows [begin, end) of a chunk of channels. */
static void clear_rows(const pool_work *p, char *image, int64_t begin, int64_t end,
                       int64_t channels)
{
    const window *w = &p->w;
    const int64_t pixel = w->channels * p->size, pixels = (end - begin) * w->image[1];
    image += begin * w->image[1] * pixel;
    if (channels == w->channels)
        memset(image, 0, (size_t)(pixels * pixel));
    else
        for (int64_t i = 0; i < pixels; i++)
            memset(image + i * pixel, 0, (size_t)(channels * p->size));
}

/* Zeros into the cells of windows of row oh that adds to them, and into those behind the windows;
 * where windows are tiled, into the latter alone. */
static void clear_cells(const pool_work *p, char *image, int64_t oh, int64_t begin, int64_t end,
                        int64_t channels)
{
    const window *w = &p->w;
    const int64_t pixel = w->channels * p->size, last = rows_seen(w, oh);
    int64_t seen = rows_seen(w, oh - 1), columns = w->out[1] * w->stride[1] - w->before[1];
    if (p->tiled && begin < end) {
        columns = columns < 0 ? 0 : columns;
        for (int64_t i = begin; i < end && columns < w->image[1]; i++)
            memset(image + (i * w->image[1] + columns) * pixel, 0,
                   (size_t)((w->image[1] - columns) * pixel));
        seen = end;
    }
    clear_rows(p, image, seen, last, channels);
}

/* Rows of windows, numbered through all images' chunks. */
static void pool_range(int64_t first, int64_t last, int worker, void *user)
{
    const pool_work *p = user;
    const window *w = &p->w;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t oh = i % w->out[0], unit = i / w->out[0];
        const int64_t n = unit / p->chunks, channel = unit % p->chunks * p->chunk;
        const int64_t rest = w->channels - channel;
        const int64_t at = n * w->image[0] * w->image[1] * w->channels + channel;
        const int64_t to = (n * w->out[0] + oh) * w->out[1] * w->channels + channel;
        int64_t begin, end;
        window_clip(w, 0, oh, &begin, &end);
        pool_row r = {.w = w,
                      .x = p->x + at * p->size,
                      .image = p->image + at * p->size,
                      .pooled = p->pooled + to * p->size,
                      .channels = rest < p->chunk ? rest : p->chunk,
                      .rows = pool_steps(begin, end, w->dilation[0]),
                      .inner = {p->inner[0], p->inner[1]},
                      .tiled = p->tiled,
                      .stream = p->stream,
                      .ahead = p->ahead};
        r.first = r.rows ? begin * w->image[1] * w->channels : 0;
        if (p->scatters) clear_cells(p, r.image, oh, begin, end, r.channels);
        p->row(&r);
    }
}

/* Whether each cell has one window, or lies behind the last one. */
static bool is_tiled(const window *w)
{
    bool tiled = w->channels > 1;
    for (int a = 0; a < 2; a++)
        tiled = tiled && w->extent[a] == w->stride[a] && w->dilation[a] == 1;
    return tiled;
}

/* The windows [from, to) of a row that have all their columns in the image. */
static void find_inner(const window *w, int64_t inner[2])
{
    const int64_t stride = w->stride[1], out = w->out[1];
    const int64_t room = w->image[1] - 1 - (w->extent[1] - 1) * w->dilation[1] + w->before[1];
    const int64_t from = (w->before[1] + stride - 1) / stride,
                  to = room < 0 ? 0 : room / stride + 1;
    inner[0] = from < out ? from : out;
    inner[1] = to < inner[0] ? inner[0] : to < out ? to : out;
}

/* Rows of windows that a thread takes at a time. */
static int64_t rows_at_a_time(const pool_work *p, int64_t rows)
{
    const window *w = &p->w;
    int64_t cells = 1; /* of a window, as many as can be in the image */
    for (int a = 0; a < 2; a++) cells *= w->extent[a] < w->image[a] ? w->extent[a] : w->image[a];
    if (w->batch * w->channels * w->out[0] * w->out[1] * cells <= OPS_PARALLEL_WORK) return rows;
    const int64_t some = 1 + OPS_PARALLEL_WORK / 2 / (w->out[1] * p->chunk * cells),
                  span = rows_seen(w, 0) + w->before[0];
    const bool apart = span <= w->stride[0] || w->out[0] == 1;
    return !p->scatters || apart ? some : (some + w->out[0] - 1) / w->out[0] * w->out[0];
}

void pool_run(const ed_call *call, pool_kind kind, const ed_tensor *x, const ed_tensor *image,
              const ed_tensor *pooled)
{
    static const pool_loops *const tables[ISA_COUNT] = ISA_TABLE(pool_table);
    pool_work p = {.w = *(const window *)call->plan,
                   .row = tables[isa_level][pooled->dtype].row[kind],
                   .x = (x ? x : image)->data,
                   .image = (image ? image : x)->data,
                   .pooled = pooled->data,
                   .size = (int64_t)dtype_size(pooled->dtype),
                   .scatters = kind == POOL_MAX_SCATTER || kind == POOL_MEAN_SCATTER};
    window *w = &p.w;
    if (pool_channels_first(call)) {
        w->batch *= w->channels;
        w->channels = 1;
    }
    if (pooled->size == 0) {
        if (p.scatters) memset(p.image, 0, (size_t)(image->size * p.size));
        return;
    }
    p.tiled = p.scatters && is_tiled(w);
    p.stream = p.tiled && w->channels * p.size % 64 == 0 && (uintptr_t)image->data % 64 == 0 &&
               image->size * p.size >= COPY_FAR_BYTES;
    /* What a thread reads and writes so much of comes from behind the caches, too. */
    p.ahead = x && x->size * p.size * (1 + p.scatters) / threads_count() >= COPY_FAR_BYTES;
    p.chunk = p.scatters && !p.tiled && w->channels > POOL_CHUNK ? POOL_CHUNK : w->channels;
    p.chunks = (w->channels + p.chunk - 1) / p.chunk;
    find_inner(w, p.inner);
    const int64_t rows = w->batch * p.chunks * w->out[0];
    threads_run(rows, rows_at_a_time(&p, rows), pool_range, &p);
}

/* ---- What the ops have in common ------------------------------------------------------------- */

ed_pool2d_options pool_options(const void *attrs)
{
    const pool_gradient_attrs *a = attrs;
    return *ED_OPTIONS_FROM(ED_POOL2D_OPTIONS, a, ed_pool2d_options);
}

bool pool_channels_first(const ed_call *call)
{
    return window_channels_first(pool_options(call->attrs).data_format);
}

bool pool_plan(ed_call *call, const int64_t *image, int64_t pooled[4])
{
    const ed_pool2d_options o = pool_options(call->attrs);
    const bool first = window_channels_first(o.data_format);
    int64_t extent[2], last[4];
    if (!window_pair(call->op->name, "window", o.window, 2, extent)) return false;
    window_shape_in(first, image, last);
    const window *w = window_make(
        call, last,
        WINDOW_OPTIONS_OF(&o, .extent = {extent[0], extent[1]}, .stride_by_extent = true));
    if (!w) return false;
    const int64_t values[] = {w->batch, w->out[0], w->out[1], w->channels};
    window_shape_out(first, values, pooled);
    return true;
}

bool pool_is_images(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank == 4) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must be %s, got %s",
                        pool_channels_first(call) ? "[batch, channels, height, width]"
                                                  : "[batch, height, width, channels]",
                        text_of_ints(x->shape, x->rank).s);
}

bool pool_same_shape(const ed_call *call, const char *name, const ed_tensor *t,
                     const int64_t *shape)
{
    if (t->rank == 4 && !memcmp(t->shape, shape, 4 * sizeof *shape)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s; it must be %s", name,
                        text_of_ints(t->shape, t->rank).s, text_of_ints(shape, 4).s);
}

bool pool_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[4];
    return pool_is_images(call) && pool_plan(call, x->shape, shape) &&
           ed_call_output(call, 0, x->dtype, 4, shape);
}

#endif
