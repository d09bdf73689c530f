/*
 * The gradient of conv2d by an input of few channels, which would leave most lanes of a product
 * over its channels idle. Instead all taps are multiplied at once, and what a cell is sent by the
 * windows that have it is added up:
 *
 *     P[position, (tap, in)] = dY[position, out] K[(tap, in), out]^T,  dx[cell of tap] += P
 *
 * or, where the cells of a channel lie side by side, the product turned over, P^T = K dY^T, whose
 * rows are added to rows of dx.
 *
 * Threads take bands of dx's rows. Each computes what rows of dy send it, some of them at a time,
 * and drops what is of other bands' rows. A cell's products come in the order of dy's rows and then
 * in one that the shapes say, so neither the bands nor the number of threads change a bit.
 */
#include "ops/conv_fold.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    PRODUCTS = 128 * 1024, /* bytes of products at a time, if that is a row of dy at least */
    REACHES = 4,           /* bands are so many times as high as a window, or higher */
};

typedef struct folding {
    fold_plan f;
    conv_crew crew;
    int64_t rows, bands, some; /* of a band; of an image; dy's rows at a time */
    int64_t bytes;             /* of the products */
} folding;

/* P of dy's rows [first, first + count), from `dy` on. */
static void fold_multiply(const folding *p, const char *dy, int64_t count, char *scratch)
{
    const conv *c = p->f.c;
    const int64_t positions = count * c->w.out[1], row = p->f.row * c->size;
    gemm_runs_job job = {.wide = c->wide,
                         .k = c->out,
                         .runs = 1,
                         .b_row = c->panel,
                         .b_panel = c->out * c->panel,
                         .c = scratch,
                         .c_row = row,
                         .c_col = c->size};
    if (p->f.by_taps) {
        char *packed = scratch + p->bytes;
        ISA_CALL(gemm_pack)
        (c->wide, c->out, positions, dy, c->out_images.channel, c->out_images.cell, packed,
         job.b_panel);
        job.m = p->f.taps, job.n = positions;
        job.a = c->k, job.a_row = c->all_out * c->size, job.a_col = c->size;
        job.b = packed;
    } else {
        job.m = positions, job.n = p->f.row; /* whole vectors */
        job.a = dy, job.a_row = c->out_images.cell, job.a_col = c->out_images.channel;
        job.b = c->packed;
    }
    ISA_CALL(gemm_runs)(&job);
}

/* Rows [begin, end) of one image of dx. */
static void fold_band(const folding *p, int64_t image, int64_t begin, int64_t end, char *scratch)
{
    static const fold_loops *const tables[ISA_COUNT] = ISA_TABLE(fold_table);
    const fold_loops *loops = &tables[isa_level][p->f.c->wide ? ED_FLOAT64 : ED_FLOAT32];
    const conv *c = p->f.c;
    const window *w = &c->w;
    const int64_t reach = (w->extent[0] - 1) * w->dilation[0];
    const int64_t first = conv_max(conv_ceil(begin + w->before[0] - reach, w->stride[0]), 0);
    const int64_t last = conv_min(conv_ceil(end + w->before[0], w->stride[0]), w->out[0]);
    const int64_t each = w->out[1] * (p->f.by_taps ? c->size : p->f.row * c->size);
    char *to = c->x + image * c->in_images.image;
    for (int64_t oh = first, count; oh < last; oh += count) {
        count = conv_min(p->some, last - oh);
        fold_multiply(p, c->y + image * c->out_images.image + oh * c->out_images.row, count,
                      scratch);
        for (int64_t i = 0; i < count; i++)
            loops->add(&p->f, scratch + i * each, to, oh + i, begin, end);
    }
}

/* Zeros into rows [begin, end) of the group's channels. */
static void clear(const conv *c, int64_t image, int64_t begin, int64_t end)
{
    const conv_layout *x = &c->in_images;
    const int64_t cells = (end - begin) * c->w.image[1];
    char *to = c->x + image * x->image + begin * x->row;
    if (x->cell == c->size)
        for (int64_t i = 0; i < c->in; i++)
            memset(to + i * x->channel, 0, (size_t)(cells * c->size));
    else
        for (int64_t i = 0; i < cells; i++) memset(to + i * x->cell, 0, (size_t)(c->in * c->size));
}

static void fold_range(int64_t first, int64_t last, int worker, void *user)
{
    const folding *p = user;
    const conv *c = p->f.c;
    for (int64_t i = first; i < last; i++) {
        const int64_t begin = i % p->bands * p->rows;
        const int64_t end = conv_min(begin + p->rows, c->w.image[0]);
        clear(c, i / p->bands, begin, end);
        fold_band(p, i / p->bands, begin, end, conv_crew_scratch(&p->crew, worker));
    }
}

static fold_plan fold_begin(const conv *c)
{
    const window *w = &c->w;
    const conv_axis columns = conv_axis_forward(w, 1);
    fold_plan f = {.c = c,
                   .by_taps = c->in_images.cell == c->size,
                   .in = c->in,
                   .taps = w->extent[0] * w->extent[1] * c->in,
                   .cell = c->in_images.cell / c->size,
                   .line = c->in_images.row / c->size,
                   .plane = c->in_images.channel / c->size};
    f.row = conv_ceil(f.taps, c->tile) * c->tile;
    conv_axis_interior(&columns, &f.inner[0], &f.inner[1]);
    return f;
}

/* Chooses how rows of dx and dy are divided. */
static void fold_divide(folding *p)
{
    const conv *c = p->f.c;
    const window *w = &c->w;
    const int64_t reach = (w->extent[0] - 1) * w->dilation[0] + 1;
    p->rows = conv_max(conv_band_rows(c, w->image[0]), REACHES * reach);
    p->bands = conv_ceil(w->image[0], p->rows);
    p->some = conv_max(PRODUCTS / (p->f.row * c->size) / conv_max(w->out[1], 1), 1);
    p->some = conv_min(p->some, w->out[0]);
}

/* The bytes that a thread needs: of products, and, where rows of them are taps, of packed dy, whose
 * positions are then a row. */
static bool fold_scratch(folding *p, size_t *bytes)
{
    fold_plan *f = &p->f;
    const conv *c = f->c;
    const int64_t positions = p->some * c->w.out[1];
    size_t packed = 0;
    if (f->by_taps) {
        f->row = conv_ceil(positions, c->tile) * c->tile;
        if (!memory_mul((size_t)(f->row * c->size), (size_t)c->out, &packed))
            return conv_too_large();
    }
    p->bytes = (f->by_taps ? f->taps : positions) * f->row * c->size;
    if (__builtin_add_overflow(packed, (size_t)p->bytes + 64, bytes)) return conv_too_large();
    return true;
}

/* Packs the kernel, whose taps are the columns of a product. */
static bool fold_pack_kernel(const fold_plan *f, conv *c)
{
    size_t bytes;
    if (!memory_mul((size_t)(f->row * c->size), (size_t)c->out, &bytes)) return conv_too_large();
    if (!(c->packed = memory_alloc(bytes))) return false;
    ISA_CALL(gemm_pack)
    (c->wide, c->out, f->taps, c->k, c->size, c->all_out * c->size, c->packed, c->out * c->panel);
    return true;
}

bool conv_gradient_input_folded(conv c)
{
    folding p = {.f = fold_begin(&c)};
    size_t scratch = 0;
    fold_divide(&p);
    if (!fold_scratch(&p, &scratch)) return false;
    if (!p.f.by_taps && !fold_pack_kernel(&p.f, &c)) return false;
    const int64_t units = c.w.batch * p.bands;
    const bool ok = conv_crew_open(&p.crew, 0, scratch);
    if (ok) threads_run_among(p.crew.count, units, conv_grain(&c, units), fold_range, &p);
    memory_free(c.packed);
    memory_free(p.crew.scratch);
    return ok;
}
