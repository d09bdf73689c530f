/*
 * A convolution and its two gradients as matrix products whose operands are read where they lie
 * (gemm_runs): no matrix of windows is made, nothing is padded.
 *
 *   forward          y[ow, out] = sum over the taps (kh, kw) of X[ow, in] K[kh, kw][in, out]
 *   gradient_input   dx[t, in] = sum over those taps that hit an output of dY[t, out] K[kh, kw]^T
 *                    for the pixels w = phase + t stride, which all have the same taps
 *   gradient_kernel  dK[kh, kw][in, out] = sum over output rows of X^T[in, ow] dY[ow, out]
 *
 * Pixels whose windows are inside the source have all taps; at the edges some are missing, and
 * those are left out, not multiplied by zeros. So a plane of results falls into pieces of pixels
 * with the same taps, each a product of its own:
 *
 *        +-+---------------+-+
 *        |c|  row by row   |c|   rows at an edge have fewer kernel rows,
 *        +-+---------------+-+   columns at an edge fewer kernel columns;
 *        |e|   interior,   |e|
 *        |e|  row by row   |e|   e: pixels below each other are one product
 *        +-+---------------+-+
 *        |c|  row by row   |c|   c: corners, pixel by pixel
 *        +-+---------------+-+
 *
 * Threads take bands of rows; those, and the groups of bands whose sums make up the kernel's
 * gradient, depend on the shapes only, so the number of threads changes no bit. The kernel is
 * packed once for all bands.
 */
#include "ops/conv.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_piece.h"
#include "tensor/hard.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    BANDS = 16,                /* images are cut so that there are so many bands, if rows allow */
    BLOCK_BYTES = 384 * 1024,  /* of packed kernel used at a time */
    GROUPS = 16,               /* of bands with sums of their own in gradient_kernel ... */
    GROUP_KERNEL = 512 * 1024, /* ... if the kernel is no larger than this */
    THREAD_WORK = HARD(1, 200000), /* multiply-adds worth a second thread */
    MERGE = 32, /* gradient_kernel joins kernel columns of fewer channels than this */
};

/* A convolution and how it is computed. */
typedef struct conv {
    window w;
    bool wide;
    int64_t size, in, out;   /* bytes of an element; channels of the group at work */
    int64_t all_in, all_out; /* channels of the images: a cell's */
    int64_t groups;
    char *x, *k, *y;
    int64_t tile, panel;   /* columns of the register tile, and their bytes */
    int64_t panels, depth; /* of the packed kernel: panels, and steps in each */
    char *packed;
} conv;

static int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t max64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* For y > 0. */
static int64_t ceil_div(int64_t x, int64_t y)
{
    return x >= 0 ? (x + y - 1) / y : -(-x / y);
}

static int64_t floor_div(int64_t x, int64_t y)
{
    return -ceil_div(-x, y);
}

static conv conv_begin(const conv_call *call)
{
    int64_t rows;
    conv c = {.w = *call->w,
              .wide = call->y->dtype == ED_FLOAT64,
              .in = call->kernel->shape[2],
              .all_in = call->w->channels,
              .all_out = call->kernel->shape[3],
              .x = call->x->data,
              .k = call->kernel->data,
              .y = call->y->data};
    c.groups = c.all_in / c.in;
    c.out = c.all_out / c.groups;
    c.size = c.wide ? 8 : 4;
    ISA_CALL(gemm_tile)(c.wide, &rows, &c.tile);
    c.panel = c.tile * c.size;
    return c;
}

/* How many of `units` pieces of work a thread takes at a time: all if a second one doesn't pay. */
static int64_t grain(const conv *c, int64_t units)
{
    const window *w = &c->w;
    double taps = (double)(w->extent[0] * w->extent[1]);
    double work = (double)(w->batch * w->out[0] * w->out[1]) * taps * (double)(c->in * c->out);
    return work < 2.0 * THREAD_WORK ? units : 1;
}

/* ---- Taps ------------------------------------------------------------------------------------ */

/*
 * One axis of a class of results: position t < positions takes tap q < taps, which is kernel index
 * `index + q index_step`, from source cell `base + q base_step + t step`, if that is one of the
 * `limit` cells there are.
 */
typedef struct axis {
    int64_t positions, step, limit;
    int64_t taps, index, index_step, base, base_step;
} axis;

static axis forward_axis(const window *w, int d)
{
    return (axis){.positions = w->out[d],
                  .step = w->stride[d],
                  .limit = w->image[d],
                  .taps = w->extent[d],
                  .index_step = 1,
                  .base = -w->before[d],
                  .base_step = w->dilation[d]};
}

/* Image cells phase, phase + stride, ..., whose taps are those by which an output reads them. */
static axis backward_axis(const window *w, int d, int64_t phase)
{
    int64_t stride = w->stride[d], dilation = w->dilation[d], first = -1, second = -1, taps = 0;
    for (int64_t i = 0; i < w->extent[d]; i++) {
        if ((phase + w->before[d] - i * dilation) % stride) continue;
        taps++;
        if (first < 0)
            first = i;
        else if (second < 0)
            second = i;
    }
    int64_t between = second < 0 ? 1 : second - first;
    return (axis){.positions = ceil_div(w->image[d] - phase, stride),
                  .step = 1,
                  .limit = w->out[d],
                  .taps = taps,
                  .index = max64(first, 0),
                  .index_step = between,
                  .base = taps ? (phase + w->before[d] - first * dilation) / stride : 0,
                  .base_step = second < 0 ? 1 : -between * dilation / stride};
}

/* The taps *begin <= q < *end that position t has. */
static void clip(const axis *a, int64_t t, int64_t *begin, int64_t *end)
{
    int64_t first = a->base + t * a->step, step = a->base_step;
    if (step < 0) { /* as seen from the other end */
        first = a->limit - 1 - first;
        step = -step;
    }
    *begin = min64(max64(ceil_div(-first, step), 0), a->taps);
    *end = max64(min64(floor_div(a->limit - 1 - first, step) + 1, a->taps), *begin);
}

/* The positions *begin <= t < *end that have all taps. */
static void interior(const axis *a, int64_t *begin, int64_t *end)
{
    int64_t last = a->base + (a->taps - 1) * a->base_step;
    int64_t low = min64(a->base, last), high = max64(a->base, last);
    *begin = 0;
    *end = a->positions;
    if (!a->taps) return;
    *begin = min64(max64(ceil_div(-low, a->step), 0), a->positions);
    *end = max64(min64(floor_div(a->limit - 1 - high, a->step) + 1, a->positions), *begin);
}

/* ---- Planes of results: forward and gradient_input ------------------------------------------- */

/* A plane of results of one image, and where its source and results lie; steps in bytes. */
typedef struct plane {
    const conv *c;
    axis h, w;
    const char *a;
    char *result;
    int64_t k;                  /* channels of the source: the steps of a tap */
    int64_t a_row, a_cell;      /* to the source's next row, next cell */
    int64_t result_h, result_w; /* to the next position's result */
    int64_t *a_runs, *b_runs;
    gemm_runs_job job;
} plane;

/* `count` positions from (t, u) on, along a row or down a column, that have the same taps. */
static void run_segment(plane *p, int64_t t, int64_t u, int64_t count, bool down)
{
    const conv *c = p->c;
    int64_t h0, h1, w0, w1, runs = 0, tap = p->k * c->panel, columns = c->w.extent[1];
    clip(&p->h, t, &h0, &h1);
    clip(&p->w, u, &w0, &w1);
    /* Adjoining kernel columns that meet adjoining cells are one run. */
    bool joined =
        p->w.base_step == 1 && p->w.index_step == 1 && w1 > w0 && p->a_cell == p->k * c->size;
    for (int64_t i = h0; i < h1; i++) {
        int64_t row = p->h.base + i * p->h.base_step + t * p->h.step;
        int64_t index = (p->h.index + i * p->h.index_step) * columns + p->w.index;
        for (int64_t j = w0; j < (joined ? w0 + 1 : w1); j++, runs++) {
            int64_t cell = p->w.base + j * p->w.base_step + u * p->w.step;
            p->a_runs[runs] = row * p->a_row + cell * p->a_cell;
            p->b_runs[runs] = (index + j * p->w.index_step) * tap;
        }
    }
    p->job.m = count;
    p->job.k = joined ? (w1 - w0) * p->k : p->k;
    p->job.runs = runs;
    p->job.a_row = down ? p->h.step * p->a_row : p->w.step * p->a_cell;
    p->job.c = p->result + t * p->result_h + u * p->result_w;
    p->job.c_row = down ? p->result_h : p->result_w;
    ISA_CALL(gemm_runs)(&p->job);
}

/* Rows [begin, end) of the plane. */
static void run_rows(plane *p, int64_t begin, int64_t end)
{
    int64_t top, bottom, left, right;
    interior(&p->h, &top, &bottom);
    interior(&p->w, &left, &right);
    top = min64(max64(top, begin), end);
    bottom = max64(min64(bottom, end), top);
    for (int64_t t = begin; t < end; t++) {
        bool inside = t >= top && t < bottom;
        if (left < right) run_segment(p, t, left, right - left, false);
        if (inside && t > top) continue;
        for (int64_t u = 0; u < p->w.positions; u++)
            if (u < left || u >= right) run_segment(p, t, u, inside ? bottom - top : 1, true);
    }
}

/* The same for all of the kernel's panels, as many at a time as stay in the cache. */
static void run_plane(plane *p, int64_t begin, int64_t end, int64_t channels, int64_t *lists)
{
    const conv *c = p->c;
    char *result = p->result;
    int64_t panel = c->depth * c->panel, some = max64(1, BLOCK_BYTES / panel);
    p->a_runs = lists;
    p->b_runs = lists + c->w.extent[0] * c->w.extent[1];
    p->job = (gemm_runs_job){.wide = c->wide,
                             .a_runs = p->a_runs,
                             .b_runs = p->b_runs,
                             .a = p->a,
                             .a_col = c->size,
                             .b_row = c->panel,
                             .b_panel = panel};
    for (int64_t j = 0; j < c->panels; j += some) {
        p->job.b = c->packed + j * panel;
        p->job.n = min64(some * c->tile, channels - j * c->tile);
        p->result = result + j * c->panel;
        run_rows(p, begin, end);
    }
}

static bool too_large(void)
{
    return ed_fail(ED_OUT_OF_MEMORY, "conv2d: the operands are too large"), false;
}

/* Where the kernel's numbers are found, as B[k, n]. */
typedef struct packing {
    const conv *c;
    int64_t k, n, b_row, b_col;
} packing;

/* Pieces are a panel's taps, one after the other. */
static void pack_range(int64_t first, int64_t last, int worker, void *user)
{
    const packing *p = user;
    const conv *c = p->c;
    int64_t taps = c->w.extent[0] * c->w.extent[1], tap = c->in * c->all_out * c->size;
    (void)worker;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t j = piece / taps, i = piece % taps;
        const char *from = c->k + i * tap + j * c->tile * p->b_col;
        char *to = c->packed + (j * c->depth + i * p->k) * c->panel;
        ISA_CALL(gemm_pack)
        (c->wide, p->k, min64(c->tile, p->n - j * c->tile), from, p->b_row, p->b_col, to, c->panel);
    }
}

/* Packs the kernel's taps, B[k, n] each, one after the other. */
static bool pack_kernel(conv *c, int64_t k, int64_t n, int64_t b_row, int64_t b_col)
{
    size_t bytes;
    int64_t taps = c->w.extent[0] * c->w.extent[1];
    c->panels = ceil_div(n, c->tile);
    c->depth = taps * k;
    if (!memory_mul((size_t)(c->panels * c->panel), (size_t)c->depth, &bytes)) return too_large();
    c->packed = memory_alloc(bytes);
    if (!c->packed) return false;
    int64_t pieces = c->panels * taps;
    threads_run(pieces, grain(c, pieces), pack_range, &(packing){c, k, n, b_row, b_col});
    return true;
}

/* Rows a band has, if images have so many. */
static int64_t band_rows(const conv *c, int64_t rows)
{
    return max64(1, ceil_div(rows * min64(c->w.batch, BANDS), BANDS));
}

/* Units of work for threads; each worker has two lists of `entries` numbers and more scratch. */
struct kernel_plan;
typedef struct crew {
    const conv *c;
    struct kernel_plan *plan;    /* of the kernel's gradient */
    int64_t rows, bands, phases; /* of an image's band; of an image; of the input's gradient */
    int count;                   /* of workers with scratch */
    size_t each;
    char *scratch;
} crew;

static bool crew_open(crew *p, int64_t entries, size_t more)
{
    size_t bytes;
    p->count = threads_count();
    if (!memory_mul((size_t)entries, 2 * sizeof(int64_t), &bytes) ||
        __builtin_add_overflow(bytes + 64, more, &p->each) ||
        !memory_mul(p->each = p->each / 64 * 64, (size_t)p->count, &bytes))
        return too_large();
    p->scratch = memory_alloc(bytes);
    return p->scratch != NULL;
}

static void *crew_scratch(const crew *p, int worker)
{
    return p->scratch + p->each * (size_t)worker;
}

static bool product(const conv *c, int64_t m, int64_t n, int64_t k, const char *a, int64_t a_row,
                    int64_t a_col, const char *b, int64_t b_row, int64_t b_col, char *to,
                    int64_t to_row)
{
    return c->wide ? gemm_f64(m, n, k, (const double *)a, a_row, a_col, (const double *)b, b_row,
                              b_col, (double *)to, to_row, NULL)
                   : gemm_f32(m, n, k, (const float *)a, a_row, a_col, (const float *)b, b_row,
                              b_col, (float *)to, to_row, NULL);
}

/* A window of one cell that visits every cell, without padding: one plain product of pixels. */
static bool is_pointwise(const window *w)
{
    return w->extent[0] == 1 && w->extent[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
           w->out[0] == w->image[0] && w->out[1] == w->image[1] && !w->before[0] && !w->before[1];
}

static int64_t pixels(const conv *c)
{
    return c->w.batch * c->w.out[0] * c->w.out[1];
}

static void forward_band(const conv *c, int64_t image, int64_t begin, int64_t end, int64_t *lists)
{
    const window *w = &c->w;
    plane p = {.c = c, .h = forward_axis(w, 0), .w = forward_axis(w, 1), .k = c->in};
    p.a_cell = c->all_in * c->size;
    p.a_row = w->image[1] * p.a_cell;
    p.a = c->x + image * w->image[0] * p.a_row;
    p.result_w = c->all_out * c->size;
    p.result_h = w->out[1] * p.result_w;
    p.result = c->y + image * w->out[0] * p.result_h;
    run_plane(&p, begin, end, c->out, lists);
}

static void forward_range(int64_t first, int64_t last, int worker, void *user)
{
    const crew *p = user;
    for (int64_t i = first; i < last; i++) {
        int64_t begin = i % p->bands * p->rows;
        forward_band(p->c, i / p->bands, begin, min64(begin + p->rows, p->c->w.out[0]),
                     crew_scratch(p, worker));
    }
}

/* The group at work is the i-th of them. */
static conv in_group(const conv *all, int64_t i)
{
    conv c = *all;
    c.x += i * c.in * c.size;
    c.k += i * c.out * c.size;
    c.y += i * c.out * c.size;
    return c;
}

/* Runs each group. */
static bool each_group(const conv_call *call, bool (*run)(conv c))
{
    const conv all = conv_begin(call);
    for (int64_t i = 0; i < all.groups; i++)
        if (!run(in_group(&all, i))) return false;
    return true;
}

static bool group_forward(conv c)
{
    const window *w = &c.w;
    crew p = {.c = &c, .rows = band_rows(&c, w->out[0])};
    if (is_pointwise(w))
        return product(&c, pixels(&c), c.out, c.in, c.x, c.all_in, 1, c.k, c.all_out, 1, c.y,
                       c.all_out);
    p.bands = ceil_div(w->out[0], p.rows);
    bool ok = crew_open(&p, w->extent[0] * w->extent[1], 0) &&
              pack_kernel(&c, c.in, c.out, c.all_out * c.size, c.size);
    int64_t units = w->batch * p.bands;
    if (ok) threads_run_among(p.count, units, grain(&c, units), forward_range, &p);
    memory_free(c.packed);
    memory_free(p.scratch);
    return ok;
}

bool conv_forward(const conv_call *call)
{
    return each_group(call, group_forward);
}

/* Positions [begin, end) of one row phase, all column phases. */
static void input_band(const conv *c, int64_t image, int64_t phase, int64_t begin, int64_t end,
                       int64_t *lists)
{
    const window *w = &c->w;
    int64_t cell = c->all_in * c->size, row = w->image[1] * cell;
    plane p = {.c = c, .h = backward_axis(w, 0, phase), .k = c->out};
    p.a_cell = c->all_out * c->size;
    p.a_row = w->out[1] * p.a_cell;
    p.a = c->y + image * w->out[0] * p.a_row;
    p.result_w = w->stride[1] * cell;
    p.result_h = w->stride[0] * row;
    for (int64_t q = 0; q < min64(w->stride[1], w->image[1]); q++) {
        p.w = backward_axis(w, 1, q);
        p.result = c->x + (image * w->image[0] + phase) * row + q * cell;
        run_plane(&p, begin, min64(end, p.h.positions), c->in, lists);
    }
}

static void input_range(int64_t first, int64_t last, int worker, void *user)
{
    const crew *p = user;
    int64_t each = p->phases * p->bands;
    for (int64_t i = first; i < last; i++) {
        int64_t begin = i % p->bands * p->rows;
        input_band(p->c, i / each, i / p->bands % p->phases, begin, begin + p->rows,
                   crew_scratch(p, worker));
    }
}

static bool group_gradient_input(conv c)
{
    const window *w = &c.w;
    crew p = {.c = &c, .phases = min64(w->stride[0], w->image[0])};
    if (is_pointwise(w))
        return product(&c, pixels(&c), c.in, c.out, c.y, c.all_out, 1, c.k, 1, c.all_out, c.x,
                       c.all_in);
    int64_t most = ceil_div(w->image[0], w->stride[0]);
    p.rows = band_rows(&c, most);
    p.bands = ceil_div(most, p.rows);
    bool ok = crew_open(&p, w->extent[0] * w->extent[1], 0) &&
              pack_kernel(&c, c.out, c.in, c.size, c.all_out * c.size);
    int64_t units = w->batch * p.phases * p.bands;
    if (ok) threads_run_among(p.count, units, grain(&c, units), input_range, &p);
    memory_free(c.packed);
    memory_free(p.scratch);
    return ok;
}

bool conv_gradient_input(const conv_call *call)
{
    return each_group(call, group_gradient_input);
}

/* ---- Gradient of the kernel ------------------------------------------------------------------ */

/*
 * Bands of output rows are added up in groups with a kernel of sums each, or, where the kernel is
 * large, in one group whose kernel rows and panels are work for threads.
 */
typedef struct kernel_plan {
    int64_t rows, bands, all; /* of a band; of an image; of all images */
    int64_t groups, parts, columns;
    bool direct;   /* rows of dy are whole vectors: they need no packing */
    int64_t bytes; /* of a kernel */
    char *sums;
} kernel_plan;

/* One band of one image at work on some of the kernel's columns `out`. */
typedef struct kernel_band {
    const conv *c;
    int64_t begin, end; /* output rows */
    char *sums;
    int64_t row; /* dy's, in bytes */
    int64_t *a_runs, *b_runs;
    gemm_runs_job job;
} kernel_band;

/*
 * Adds taps [q0, q1) of `a`, a part of kernel row i, for `count` output columns from u on that have
 * them; or for one column, `down` all rows.
 */
static void add_taps(const kernel_band *b, int64_t i, const axis *a, int64_t q0, int64_t q1,
                     int64_t u, int64_t count, bool down)
{
    const conv *c = b->c;
    const window *w = &c->w;
    axis h = forward_axis(w, 0);
    int64_t begin, end, cell = c->all_in * c->size, runs = 0;
    h.taps = 1, h.base += i * h.base_step;
    interior(&h, &begin, &end);
    begin = max64(begin, b->begin);
    end = min64(end, b->end);
    if (begin >= end || q0 >= q1) return;
    int64_t column = a->base + q0 * a->base_step + u * a->step;
    for (int64_t t = begin; t < (down ? begin + 1 : end); t++, runs++) {
        b->a_runs[runs] = ((h.base + t * h.step) * w->image[1] + column) * cell;
        b->b_runs[runs] = (t - b->begin) * b->row + u * b->job.b_row;
    }
    gemm_runs_job job = b->job;
    job.m = (q1 - q0) * c->in;
    job.k = down ? end - begin : count;
    job.runs = runs;
    job.a_col = down ? w->stride[0] * w->image[1] * cell : w->stride[1] * cell;
    if (down) job.b_row = b->row;
    job.c = b->sums + (i * w->extent[1] + a->index + q0) * c->in * job.c_row;
    ISA_CALL(gemm_runs)(&job);
}

/* Kernel row i, taps [q, q + count) of its columns. */
static void add_row(const kernel_band *b, int64_t i, int64_t q, int64_t count)
{
    axis a = forward_axis(&b->c->w, 1);
    int64_t left, right, q0, q1;
    a.index = q, a.base += q * a.base_step, a.taps = count;
    interior(&a, &left, &right);
    if (left < right) add_taps(b, i, &a, 0, count, left, right - left, false);
    if (count == 1) return;
    for (int64_t u = 0; u < a.positions; u++) {
        if (u >= left && u < right) continue;
        clip(&a, u, &q0, &q1);
        add_taps(b, i, &a, q0, q1, u, 1, true);
    }
}

/* Adds a band's part to kernel rows [i, end) of `sums`, columns [j, j + plan's). */
static void add_band(const conv *c, const kernel_plan *p, int64_t unit, int64_t i, int64_t end,
                     int64_t j, char *sums, int64_t *lists)
{
    const window *w = &c->w;
    int64_t image = unit / p->bands, begin = unit % p->bands * p->rows;
    int64_t n = min64(p->columns, c->out - j), out = c->all_out * c->size;
    kernel_band b = {.c = c, .begin = begin, .end = min64(begin + p->rows, w->out[0])};
    int64_t cells = (b.end - b.begin) * w->out[1];
    const char *dy = c->y + (image * w->out[0] + begin) * w->out[1] * out + j * c->size;
    char *packed = (char *)(lists + 2 * p->rows);
    b.a_runs = lists;
    b.b_runs = lists + p->rows;
    b.sums = sums + j * c->size;
    b.job = (gemm_runs_job){.wide = c->wide,
                            .add = true,
                            .n = n,
                            .a_runs = b.a_runs,
                            .b_runs = b.b_runs,
                            .a = c->x + image * w->image[0] * w->image[1] * c->all_in * c->size,
                            .a_row = c->size,
                            .b = p->direct ? dy : packed,
                            .b_row = p->direct ? out : c->panel,
                            .b_panel = p->direct ? c->panel : cells * c->panel,
                            .c_row = c->out * c->size};
    b.row = w->out[1] * b.job.b_row;
    if (!p->direct) ISA_CALL(gemm_pack)(c->wide, cells, n, dy, out, c->size, packed, b.job.b_panel);
    bool merge = w->dilation[1] == 1 && c->in < MERGE && c->groups == 1;
    int64_t merged = merge ? w->extent[1] : 1;
    for (; i < end; i++)
        for (int64_t q = 0; q < w->extent[1]; q += merged) add_row(&b, i, q, merged);
}

static void kernel_unit(const conv *c, const kernel_plan *p, int64_t unit, int64_t *lists)
{
    int64_t group = unit / p->parts, part = unit % p->parts, blocks = ceil_div(c->out, p->columns);
    int64_t begin = p->all * group / p->groups, end = p->all * (group + 1) / p->groups;
    bool whole = p->parts == 1;
    for (int64_t i = begin; i < end; i++)
        add_band(c, p, i, whole ? 0 : part / blocks, whole ? c->w.extent[0] : part / blocks + 1,
                 whole ? 0 : part % blocks * p->columns, p->sums + group * p->bytes, lists);
}

#define JOIN(name, type)                                                                           \
    static void name(type *to, const type *sums, int64_t groups, int64_t n)                        \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) to[i] = sums[i];                                           \
        for (int64_t g = 1; g < groups; g++)                                                       \
            for (int64_t i = 0; i < n; i++) to[i] += sums[g * n + i];                              \
    }
JOIN(join_f32, float)
JOIN(join_f64, double)

static void kernel_range(int64_t first, int64_t last, int worker, void *user)
{
    const crew *p = user;
    for (int64_t i = first; i < last; i++) kernel_unit(p->c, p->plan, i, crew_scratch(p, worker));
}

static bool run_kernel(conv *c, kernel_plan *p, size_t packed)
{
    crew workers = {.c = c, .plan = p};
    int64_t units = p->groups * p->parts, n = p->bytes / c->size;
    size_t bytes = (size_t)(p->groups * p->bytes);
    p->sums = p->groups > 1 ? memory_alloc(bytes) : c->k;
    if (!p->sums) return false;
    bool ok = crew_open(&workers, p->rows, packed);
    if (ok) {
        memset(p->sums, 0, bytes);
        threads_run_among(workers.count, units, grain(c, units), kernel_range, &workers);
        if (p->groups > 1 && c->wide)
            join_f64((double *)c->k, (double *)p->sums, p->groups, n);
        else if (p->groups > 1)
            join_f32((float *)c->k, (float *)p->sums, p->groups, n);
    }
    if (p->sums != c->k) memory_free(p->sums);
    memory_free(workers.scratch);
    return ok;
}

/* Of a group's kernel in rows of its own c.out numbers. */
static bool group_gradient(conv c)
{
    const window *w = &c.w;
    size_t packed = 0;
    kernel_plan p = {.rows = band_rows(&c, w->out[0]), .direct = c.out % (c.tile / 2) == 0};
    p.bands = ceil_div(w->out[0], p.rows);
    p.all = p.bands * w->batch;
    p.bytes = w->extent[0] * w->extent[1] * c.in * c.out * c.size;
    bool small = p.bytes <= GROUP_KERNEL;
    p.groups = small ? min64(GROUPS, p.all) : 1;
    p.columns = small ? c.out : 4 * c.tile;
    p.parts = small ? 1 : w->extent[0] * ceil_div(c.out, p.columns);
    size_t panels = (size_t)ceil_div(min64(p.columns, c.out), c.tile);
    if (!p.direct && !memory_mul((size_t)(p.rows * w->out[1] * c.panel), panels, &packed))
        return too_large();
    return run_kernel(&c, &p, packed);
}

/* The gradient of a group's columns of the kernel, computed aside if there are other groups. */
static bool group_gradient_kernel(conv c)
{
    if (is_pointwise(&c.w))
        return product(&c, c.in, c.out, pixels(&c), c.x, 1, c.all_in, c.y, c.all_out, 1, c.k,
                       c.all_out);
    if (c.groups == 1) return group_gradient(c);
    char *to = c.k;
    size_t row = (size_t)(c.out * c.size);
    int64_t rows = c.w.extent[0] * c.w.extent[1] * c.in;
    if (!(c.k = memory_alloc((size_t)rows * row))) return false;
    bool ok = group_gradient(c);
    for (int64_t i = 0; ok && i < rows; i++)
        memcpy(to + i * c.all_out * c.size, c.k + (size_t)i * row, row);
    memory_free(c.k);
    return ok;
}

bool conv_gradient_kernel(const conv_call *call)
{
    return each_group(call, group_gradient_kernel);
}
