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
 * Where channels come first, a cell's channels, or where those are few a kernel row's taps, are the
 * steps of a run; only the strides differ. Results are turned as they leave the register tiles.
 * Images of few channels are copied first, so that they have no edges (conv_lines.c).
 *
 * Threads take bands of rows; those, and the groups of bands whose sums make up the kernel's
 * gradient, depend on the shapes only, so the number of threads changes no bit. The kernel is
 * packed once for all bands.
 */
#include "ops/conv_gemm.h"
#include "ops/kernels/gemm.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    BLOCK_BYTES = 384 * 1024, /* of packed kernel used at a time */
    FEW_CHANNELS = 16,        /* of an input whose gradient is added up from all taps' products */
};

/* A plane of results of one image, and where its source and results lie; steps in bytes. */
typedef struct plane {
    const conv *c;
    conv_axis h, w;
    const char *a;
    char *result;
    int64_t k; /* channels of the source */
    conv_layout source;
    int64_t result_h, result_w; /* to the next position's result */
    int64_t *a_runs, *b_runs;
    gemm_runs_job job;
} plane;

/* What the steps of a run are: a cell's channels, those of all cells of a kernel row, or the cells
 * of one channel. */
typedef enum { RUN_CELL, RUN_ROW, RUN_CHANNEL } run_kind;

static run_kind run_of(const plane *p, int64_t columns)
{
    const bool dense = p->source.channel == p->c->size && p->source.cell == p->k * p->c->size;
    if (dense && p->w.base_step == 1 && p->w.index_step == 1) return RUN_ROW;
    return columns > p->k ? RUN_CHANNEL : RUN_CELL;
}

/* Lists the runs of rows [h0, h1) and columns [w0, w1) of the taps at (t, u). */
static void list_runs(plane *p, int64_t t, int64_t u, const int64_t h[2], const int64_t w[2])
{
    const conv *c = p->c;
    const int64_t columns = w[1] - w[0], tap = p->k * c->panel;
    const run_kind kind = run_of(p, columns);
    const int64_t each = kind == RUN_CELL ? columns : kind == RUN_CHANNEL ? p->k : columns > 0;
    int64_t runs = 0, a = 0, b = 0;
    p->job.k = kind == RUN_CELL ? p->k : kind == RUN_CHANNEL ? columns : columns * p->k;
    p->job.a_col = kind == RUN_CHANNEL ? p->w.base_step * p->source.cell : p->source.channel;
    p->job.b_row = kind == RUN_CHANNEL ? p->w.index_step * tap : c->panel;
    if (kind == RUN_CELL) a = p->w.base_step * p->source.cell, b = p->w.index_step * tap;
    if (kind == RUN_CHANNEL) a = p->source.channel, b = c->panel;
    for (int64_t i = h[0]; i < h[1]; i++) {
        int64_t row = p->h.base + i * p->h.base_step + t * p->h.step;
        int64_t cell = p->w.base + w[0] * p->w.base_step + u * p->w.step;
        int64_t index = (p->h.index + i * p->h.index_step) * c->w.extent[1] + p->w.index +
                        w[0] * p->w.index_step;
        for (int64_t j = 0; j < each; j++, runs++) {
            p->a_runs[runs] = row * p->source.row + cell * p->source.cell + j * a;
            p->b_runs[runs] = index * tap + j * b;
        }
    }
    p->job.runs = runs;
}

/* `count` positions from (t, u) on, along a row or down a column, that have the same taps. */
static void run_segment(plane *p, int64_t t, int64_t u, int64_t count, bool down)
{
    int64_t h[2], w[2];
    conv_axis_clip(&p->h, t, &h[0], &h[1]);
    conv_axis_clip(&p->w, u, &w[0], &w[1]);
    list_runs(p, t, u, h, w);
    p->job.a = p->a;
    p->job.m = count;
    p->job.a_row = down ? p->h.step * p->source.row : p->w.step * p->source.cell;
    p->job.cells = run_of(p, w[1] - w[0]) == RUN_ROW && !down && p->w.step == 1 ? w[1] - w[0] : 0;
    p->job.c = p->result + t * p->result_h + u * p->result_w;
    p->job.c_row = down ? p->result_h : p->result_w;
    ISA_CALL(gemm_runs)(&p->job);
}

/* The columns [left, right) of rows [t, end), whose windows are inside the source: their runs
 * differ by where they begin alone. */
static void run_interior(plane *p, int64_t t, int64_t end, int64_t left, int64_t right)
{
    run_segment(p, t, left, right - left, false);
    while (++t < end) {
        p->job.a += p->h.step * p->source.row;
        p->job.c += p->result_h;
        ISA_CALL(gemm_runs)(&p->job);
    }
}

/* Rows [begin, end) of the plane. */
static void run_rows(plane *p, int64_t begin, int64_t end)
{
    int64_t top, bottom, left, right;
    conv_axis_interior(&p->h, &top, &bottom);
    conv_axis_interior(&p->w, &left, &right);
    top = conv_min(conv_max(top, begin), end);
    bottom = conv_max(conv_min(bottom, end), top);
    for (int64_t t = begin, next; t < end; t = next) {
        const bool inside = t >= top && t < bottom;
        next = inside ? bottom : t + 1;
        if (left < right) run_interior(p, t, t + 1, left, right);
        for (int64_t u = 0; u < p->w.positions; u++)
            if (u < left || u >= right) run_segment(p, t, u, next - t, true);
        if (left < right && next > t + 1) run_interior(p, t + 1, next, left, right);
    }
}

/* The same for all of the kernel's panels, as many at a time as stay in the cache. `channel`: bytes
 * from one channel of the results to the next. */
static void run_plane(plane *p, int64_t begin, int64_t end, int64_t channels, int64_t channel,
                      int64_t *lists)
{
    const conv *c = p->c;
    char *result = p->result;
    int64_t panel = c->depth * c->panel, some = conv_max(1, BLOCK_BYTES / panel);
    p->a_runs = lists;
    p->b_runs = lists + c->w.extent[0] * c->w.extent[1];
    p->job = (gemm_runs_job){.wide = c->wide,
                             .a_runs = p->a_runs,
                             .b_runs = p->b_runs,
                             .a = p->a,
                             .b_panel = panel,
                             .c_col = channel,
                             .relu = c->relu};
    for (int64_t j = 0; j < c->panels; j += some) {
        p->job.b = c->packed + j * panel;
        if (c->bias) p->job.bias = c->bias + j * c->panel;
        p->job.n = conv_min(some * c->tile, channels - j * c->tile);
        p->result = result + j * c->tile * channel;
        run_rows(p, begin, end);
    }
}

/* Where the kernel's numbers are found, as B[k, n]. */
typedef struct packing {
    const conv *c;
    int64_t k, n, b_row, b_col;
    bool turned; /* taps in reverse */
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
        const char *from = c->k + (p->turned ? taps - 1 - i : i) * tap + j * c->tile * p->b_col;
        char *to = c->packed + (j * c->depth + i * p->k) * c->panel;
        ISA_CALL(gemm_pack)
        (c->wide, p->k, conv_min(c->tile, p->n - j * c->tile), from, p->b_row, p->b_col, to,
         c->panel);
    }
}

/* Packs the kernel's taps, B[k, n] each, one after the other, and behind them the bias. */
static bool pack_kernel(conv *c, int64_t k, int64_t n, int64_t b_row, int64_t b_col, bool turned)
{
    size_t bytes;
    int64_t taps = c->w.extent[0] * c->w.extent[1];
    c->panels = conv_ceil(n, c->tile);
    c->depth = taps * k;
    const size_t step = (size_t)(c->panels * c->panel);
    if (!memory_mul(step, (size_t)c->depth + 1, &bytes)) return conv_too_large();
    c->packed = memory_alloc(bytes);
    if (!c->packed) return false;
    if (c->bias) {
        char *bias = c->packed + bytes - step;
        memset(bias, 0, step);
        c->bias = memcpy(bias, c->bias, (size_t)(n * c->size));
    }
    int64_t pieces = c->panels * taps;
    threads_run(pieces, conv_grain(c, pieces), pack_range,
                &(packing){c, k, n, b_row, b_col, turned});
    return true;
}

/* Bands of rows, work for threads: of all groups, which share lines of the cache. */
typedef struct bands {
    conv *groups; /* each with its kernel */
    int64_t count;
    conv_crew crew;
    int64_t rows, bands, phases; /* of a band; of an image; of the input's gradient */
    const char *marks;           /* of those to be computed; NULL: all are */
} bands;

/*
 * A pointwise convolution, a product of all pixels or, where channels come first, of each image's:
 *
 *     to [pixels, n] = from [pixels, k] B    or    to [n, pixels] = B^T from [k, pixels]
 *
 * with b(p,j) = K[p b_row + j b_col], and with the bias and the activation.
 */
static bool pointwise(const conv *c, const char *from, int64_t k, int64_t from_all, char *to,
                      int64_t n, int64_t to_all, int64_t b_row, int64_t b_col)
{
    const int64_t batch = c->w.batch, pixels = c->w.out[0] * c->w.out[1];
    const gemm_epilogue end = {c->bias, c->relu ? GEMM_RELU : GEMM_NONE, !conv_channels_last(c)};
    if (conv_channels_last(c))
        return c->wide ? gemm_f64(batch * pixels, n, k, (const double *)from, from_all, 1,
                                  (const double *)c->k, b_row, b_col, (double *)to, to_all, &end)
                       : gemm_f32(batch * pixels, n, k, (const float *)from, from_all, 1,
                                  (const float *)c->k, b_row, b_col, (float *)to, to_all, &end);
    int64_t *starts = memory_alloc((size_t)batch * 3 * sizeof *starts);
    if (!starts) return false;
    for (int64_t i = 0; i < batch; i++) {
        starts[i] = 0;
        starts[batch + i] = i * from_all * pixels;
        starts[2 * batch + i] = i * to_all * pixels;
    }
    const gemm_batch all = {batch, starts, starts + batch, starts + 2 * batch};
    const bool ok =
        c->wide ? gemm_batch_f64(&all, n, pixels, k, (const double *)c->k, b_col, b_row,
                                 (const double *)from, pixels, 1, (double *)to, pixels, &end)
                : gemm_batch_f32(&all, n, pixels, k, (const float *)c->k, b_col, b_row,
                                 (const float *)from, pixels, 1, (float *)to, pixels, &end);
    memory_free(starts);
    return ok;
}

static void forward_band(const conv *c, int64_t image, int64_t begin, int64_t end, int64_t *lists)
{
    const window *w = &c->w;
    conv lines;
    if (c->lines) {
        lines = conv_lines(c, image, begin, end, (char *)(lists + 2 * w->extent[0] * w->extent[1]));
        c = &lines, w = &lines.w;
    }
    plane p = {.c = c,
               .h = conv_axis_forward(w, 0),
               .w = conv_axis_forward(w, 1),
               .k = c->in,
               .source = c->in_images,
               .a = c->x + image * c->in_images.image,
               .result_w = c->out_images.cell,
               .result_h = c->out_images.row,
               .result = c->y + image * c->out_images.image};
    run_plane(&p, begin, end, c->out, c->out_images.channel, lists);
}

static void forward_range(int64_t first, int64_t last, int worker, void *user)
{
    const bands *p = user;
    for (int64_t i = first; i < last; i++) {
        int64_t begin = i % p->bands * p->rows;
        if (p->marks && !p->marks[i]) continue;
        for (const conv *c = p->groups; c < p->groups + p->count; c++)
            forward_band(c, i / p->bands, begin, conv_min(begin + p->rows, c->w.out[0]),
                         conv_crew_scratch(&p->crew, worker));
    }
}

/* Runs all bands of all images, with kernels packed by `pack`. */
static bool run_bands(bands *p, const conv *all, bool (*pack)(conv *c), threads_range range)
{
    const window *w = &all->w;
    const int64_t units = w->batch * p->phases * p->bands;
    conv whole = *all;
    whole.out = all->all_out;
    p->groups = memory_alloc((size_t)all->groups * sizeof *p->groups);
    if (!p->groups) return false;
    bool ok = true;
    for (; ok && p->count < all->groups; p->count++) {
        p->groups[p->count] = conv_group(all, p->count);
        ok = pack(&p->groups[p->count]);
    }
    ok = ok && conv_crew_open(&p->crew, w->extent[0] * w->extent[1], all->lines);
    if (ok) threads_run_among(p->crew.count, units, conv_grain(&whole, units), range, p);
    for (int64_t i = 0; i < p->count; i++) memory_free(p->groups[i].packed);
    memory_free(p->groups);
    memory_free(p->crew.scratch);
    return ok;
}

/* The same by Winograd's tiles, `range` being for rows that an inf or NaN is near. */
static bool run_winograd(const conv *c, bool back, bool (*pack)(conv *c), threads_range range)
{
    const int64_t all = back ? c->w.image[0] : c->w.out[0], rows = 2 * c->w.dilation[0];
    bands p = {.rows = rows, .bands = conv_ceil(all, rows), .phases = 1};
    const size_t count = (size_t)(c->w.batch * p.bands);
    char *marks = memory_alloc(count);
    if (!marks) return false;
    memset(marks, 0, count);
    p.marks = marks;
    bool ok = conv_winograd(c, back, marks);
    if (ok && memchr(marks, 1, count)) ok = run_bands(&p, c, pack, range);
    memory_free(marks);
    return ok;
}

static bool pointwise_forward(conv c)
{
    return pointwise(&c, c.x, c.in, c.all_in, c.y, c.out, c.all_out, c.all_out, 1);
}

static bool pack_forward(conv *c)
{
    return pack_kernel(c, c->in, c->out, c->all_out * c->size, c->size, false);
}

/* Runs `c` by what is a forward pass once kernels are packed, that of `at_work`. */
static bool run_forward(conv c, const conv *at_work, bool (*pack)(conv *c))
{
    const int64_t all = at_work->w.out[0];
    conv of_lines = *at_work;
    bands p = {.rows = conv_band_rows(&c, all), .phases = 1};
    const int64_t rows = conv_lines_begin(&of_lines, p.rows);
    if (of_lines.lines && conv_kernel_is_finite(&c)) c.lines = of_lines.lines, p.rows = rows;
    p.bands = conv_ceil(all, p.rows);
    return run_bands(&p, &c, pack, forward_range);
}

bool conv_forward(const conv_call *call)
{
    conv c = conv_begin(call);
    const window *w = &c.w;
    if (conv_is_pointwise(w) || !c.in) return conv_each_group(&c, pointwise_forward);
    if (conv_winograd_suits(&c, false)) return run_winograd(&c, false, pack_forward, forward_range);
    return run_forward(c, &c, pack_forward);
}

/* Positions [begin, end) of one row phase, all column phases. */
static void input_band(const conv *c, int64_t image, int64_t phase, int64_t begin, int64_t end,
                       int64_t *lists)
{
    const window *w = &c->w;
    const conv_layout to = c->in_images;
    plane p = {.c = c,
               .h = conv_axis_backward(w, 0, phase),
               .k = c->out,
               .source = c->out_images,
               .a = c->y + image * c->out_images.image,
               .result_w = w->stride[1] * to.cell,
               .result_h = w->stride[0] * to.row};
    for (int64_t q = 0; q < conv_min(w->stride[1], w->image[1]); q++) {
        p.w = conv_axis_backward(w, 1, q);
        p.result = c->x + image * to.image + phase * to.row + q * to.cell;
        run_plane(&p, begin, conv_min(end, p.h.positions), c->in, to.channel, lists);
    }
}

static void input_range(int64_t first, int64_t last, int worker, void *user)
{
    const bands *p = user;
    int64_t each = p->phases * p->bands;
    for (int64_t i = first; i < last; i++) {
        int64_t begin = i % p->bands * p->rows;
        if (p->marks && !p->marks[i]) continue;
        for (const conv *c = p->groups; c < p->groups + p->count; c++)
            input_band(c, i / each, i / p->bands % p->phases, begin, begin + p->rows,
                       conv_crew_scratch(&p->crew, worker));
    }
}

static bool pointwise_input(conv c)
{
    return pointwise(&c, c.y, c.out, c.all_out, c.x, c.in, c.all_in, 1, c.all_out);
}

static bool pack_input(conv *c)
{
    return pack_kernel(c, c->out, c->in, c->size, c->all_out * c->size, false);
}

/* Packs the kernel turned by 180 degrees, and makes of c the convolution that the gradient is. */
static bool pack_turned(conv *c)
{
    const bool ok = pack_kernel(c, c->out, c->in, c->size, c->all_out * c->size, true);
    *c = conv_turned(c);
    return ok;
}

/* Without strides the gradient is a convolution, whose windows' cells come in their order. */
static bool is_convolution(const conv *turned)
{
    const window *w = &turned->w;
    return w->stride[0] == 1 && w->stride[1] == 1 && w->before[0] >= 0 && w->before[1] >= 0;
}

bool conv_gradient_input(const conv_call *call)
{
    const conv c = conv_begin(call);
    const window *w = &c.w;
    if (conv_is_pointwise(w)) return conv_each_group(&c, pointwise_input);
    if (conv_winograd_suits(&c, true)) return run_winograd(&c, true, pack_input, input_range);
    if (c.in < FEW_CHANNELS && w->extent[0] * w->extent[1] > 1)
        return conv_each_group(&c, conv_gradient_input_folded);
    const conv turned = conv_turned(&c);
    if (is_convolution(&turned)) return run_forward(c, &turned, pack_turned);
    bands p = {.phases = conv_min(w->stride[0], w->image[0])};
    const int64_t most = conv_ceil(w->image[0], w->stride[0]);
    p.rows = conv_band_rows(&c, most);
    p.bands = conv_ceil(most, p.rows);
    return run_bands(&p, &c, pack_input, input_range);
}
