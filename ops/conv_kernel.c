/*
 * The gradient of conv2d by its kernel: dK[kh, kw][in, out] = sum over output rows of
 * X^T[in, ow] dY[ow, out], products of X where it lies (conv_gemm.c) and bands of dY, packed.
 *
 * Bands of output rows are added up in groups with a kernel of sums each, or, where the kernel is
 * large, in one group whose kernel rows and panels are work for threads.
 */
#include "ops/conv_gemm.h"
#include "ops/kernels/gemm.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    GROUPS = 16,               /* of bands with sums of their own ... */
    GROUP_KERNEL = 512 * 1024, /* ... if the kernel is no larger than this */
    MERGE = 32,                /* kernel columns of fewer channels than this are joined */
};

typedef struct kernel_plan {
    const conv *c;
    conv_crew crew;
    int64_t rows, bands, all; /* of a band; of an image; of all images */
    int64_t groups, parts, columns;
    bool direct;   /* rows of dy are whole vectors: they need no packing */
    size_t packed; /* bytes of dy, packed */
    int64_t bytes; /* of a kernel */
    char *sums;
} kernel_plan;

/* One band of one image at work on some of the kernel's columns `out`. */
typedef struct kernel_band {
    const conv *c;
    int64_t begin, end; /* output rows */
    char *sums;
    int64_t row;      /* dy's, in bytes */
    int64_t channels; /* at work one by one, their taps being rows; 1: all are rows */
    int64_t *a_runs, *b_runs;
    gemm_runs_job job;
} kernel_band;

/*
 * Adds taps [q0, q1) of `a`, a part of kernel row i, for `count` output columns from u on that have
 * them; or for one column, `down` all rows.
 */
static void add_taps(const kernel_band *b, int64_t i, const conv_axis *a, int64_t q0, int64_t q1,
                     int64_t u, int64_t count, bool down)
{
    const conv *c = b->c;
    const window *w = &c->w;
    conv_axis h = conv_axis_forward(w, 0);
    const conv_layout *x = &c->in_images;
    int64_t begin, end, runs = 0;
    h.taps = 1, h.base += i * h.base_step;
    conv_axis_interior(&h, &begin, &end);
    begin = conv_max(begin, b->begin);
    end = conv_min(end, b->end);
    if (begin >= end || q0 >= q1) return;
    int64_t column = a->base + q0 * a->base_step + u * a->step;
    for (int64_t t = begin; t < (down ? begin + 1 : end); t++, runs++) {
        b->a_runs[runs] = (h.base + t * h.step) * x->row + column * x->cell;
        b->b_runs[runs] = (t - b->begin) * b->row + u * b->job.b_row;
    }
    gemm_runs_job job = b->job;
    job.m = (q1 - q0) * c->in / b->channels;
    job.k = down ? end - begin : count;
    job.runs = runs;
    job.a_col = down ? w->stride[0] * x->row : w->stride[1] * x->cell;
    if (down) job.b_row = b->row;
    job.c = b->sums + (i * w->extent[1] + a->index + q0) * c->in * c->out * c->size;
    for (int64_t channel = 0; channel < b->channels; channel++) {
        ISA_CALL(gemm_runs)(&job);
        job.a += x->channel;
        job.c += c->out * c->size;
    }
}

/* Kernel row i, taps [q, q + count) of its columns. */
static void add_row(const kernel_band *b, int64_t i, int64_t q, int64_t count)
{
    conv_axis a = conv_axis_forward(&b->c->w, 1);
    int64_t left, right, q0, q1;
    a.index = q, a.base += q * a.base_step, a.taps = count;
    conv_axis_interior(&a, &left, &right);
    if (left < right) add_taps(b, i, &a, 0, count, left, right - left, false);
    if (count == 1) return;
    for (int64_t u = 0; u < a.positions; u++) {
        if (u >= left && u < right) continue;
        conv_axis_clip(&a, u, &q0, &q1);
        add_taps(b, i, &a, q0, q1, u, 1, true);
    }
}

/* Columns [j, j + n) of a band's dy, packed if they need it. */
static void band_dy(kernel_band *b, int64_t image, int64_t j, bool direct, char *packed)
{
    const conv *c = b->c;
    const conv_layout *y = &c->out_images;
    const char *dy = c->y + image * y->image + b->begin * y->row + j * y->channel;
    const int64_t cells = (b->end - b->begin) * c->w.out[1];
    b->job.b = direct ? dy : packed;
    b->job.b_row = direct ? y->cell : c->panel;
    b->job.b_panel = direct ? c->panel : cells * c->panel;
    b->row = c->w.out[1] * b->job.b_row;
    if (!direct) ISA_CALL(gemm_pack)
    (c->wide, cells, b->job.n, dy, y->cell, y->channel, packed, b->job.b_panel);
}

/* Adds a band's part to kernel rows [i, end) of `sums`, columns [j, j + plan's). */
static void add_band(const conv *c, const kernel_plan *p, int64_t unit, int64_t i, int64_t end,
                     int64_t j, char *sums, int64_t *lists)
{
    int64_t image = unit / p->bands, begin = unit % p->bands * p->rows;
    const int64_t stop = conv_min(begin + p->rows, c->w.out[0]);
    char *packed = (char *)(lists + 2 * p->rows);
    conv lines;
    if (c->lines) {
        lines = conv_lines(c, image, begin, stop, packed + p->packed);
        c = &lines;
    }
    const window *w = &c->w;
    const conv_layout *x = &c->in_images;
    const bool dense = x->cell == c->in * c->size && w->dilation[1] == 1 && c->in < MERGE;
    const bool by_taps = !dense && c->in < w->extent[1];
    kernel_band b = {.c = c,
                     .begin = begin,
                     .end = stop,
                     .sums = sums + j * c->size,
                     .channels = by_taps ? c->in : 1,
                     .a_runs = lists,
                     .b_runs = lists + p->rows};
    b.job = (gemm_runs_job){.wide = c->wide,
                            .add = true,
                            .n = conv_min(p->columns, c->out - j),
                            .a_runs = b.a_runs,
                            .b_runs = b.b_runs,
                            .a = c->x + image * x->image,
                            .a_row = dense     ? c->size
                                     : by_taps ? w->dilation[1] * x->cell
                                               : x->channel,
                            .c_row = c->out * c->size * (by_taps ? c->in : 1),
                            .c_col = c->size};
    band_dy(&b, image, j, p->direct, packed);
    int64_t merged = dense || by_taps ? w->extent[1] : 1;
    for (; i < end; i++)
        for (int64_t q = 0; q < w->extent[1]; q += merged) add_row(&b, i, q, merged);
}

static void kernel_unit(const conv *c, const kernel_plan *p, int64_t unit, int64_t *lists)
{
    int64_t group = unit / p->parts, part = unit % p->parts, blocks = conv_ceil(c->out, p->columns);
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
    const kernel_plan *p = user;
    for (int64_t i = first; i < last; i++)
        kernel_unit(p->c, p, i, conv_crew_scratch(&p->crew, worker));
}

static bool run_kernel(kernel_plan *p)
{
    const conv *c = p->c;
    int64_t units = p->groups * p->parts, n = p->bytes / c->size;
    size_t bytes = (size_t)(p->groups * p->bytes);
    p->sums = p->groups > 1 ? memory_alloc(bytes) : c->k;
    if (!p->sums) return false;
    bool ok = conv_crew_open(&p->crew, p->rows, p->packed + c->lines);
    if (ok) {
        memset(p->sums, 0, bytes);
        threads_run_among(p->crew.count, units, conv_grain(c, units), kernel_range, p);
        if (p->groups > 1 && c->wide)
            join_f64((double *)c->k, (double *)p->sums, p->groups, n);
        else if (p->groups > 1)
            join_f32((float *)c->k, (float *)p->sums, p->groups, n);
    }
    if (p->sums != c->k) memory_free(p->sums);
    memory_free(p->crew.scratch);
    return ok;
}

/* Of a group's kernel in rows of its own c.out numbers; from lines of x, if that may be. */
static bool group_gradient(conv c, bool lines)
{
    const window *w = &c.w;
    if (conv_is_pointwise(w)) conv_flatten(&c);
    kernel_plan p = {.c = &c, .rows = conv_band_rows(&c, w->out[0])};
    p.bytes = w->extent[0] * w->extent[1] * c.in * c.out * c.size;
    const bool small = p.bytes <= GROUP_KERNEL;
    if (small && lines) p.rows = conv_lines_begin(&c, p.rows);
    p.direct = c.out_images.channel == c.size && c.out % (c.tile / 2) == 0;
    p.bands = conv_ceil(w->out[0], p.rows);
    p.all = p.bands * w->batch;
    p.groups = small ? conv_min(GROUPS, p.all) : 1;
    p.columns = small ? c.out : 4 * c.tile;
    p.parts = small ? 1 : w->extent[0] * conv_ceil(c.out, p.columns);
    size_t panels = (size_t)conv_ceil(conv_min(p.columns, c.out), c.tile);
    if (!p.direct && !memory_mul((size_t)(p.rows * w->out[1] * c.panel), panels, &p.packed))
        return conv_too_large();
    if (!run_kernel(&p)) return false;
    if (!c.lines) return true;
    c.lines = 0, c.all_out = c.out;
    return conv_kernel_is_finite(&c) || group_gradient(c, false);
}

/* A pointwise one of images with their channels last. */
static bool pixels_gradient(const conv *c)
{
    const int64_t pixels = c->w.batch * c->w.out[0] * c->w.out[1];
    return c->wide ? gemm_f64(c->in, c->out, pixels, (const double *)c->x, 1, c->all_in,
                              (const double *)c->y, c->all_out, 1, (double *)c->k, c->all_out, NULL)
                   : gemm_f32(c->in, c->out, pixels, (const float *)c->x, 1, c->all_in,
                              (const float *)c->y, c->all_out, 1, (float *)c->k, c->all_out, NULL);
}

/* The gradient of a group's columns of the kernel, computed aside if there are other groups. */
static bool group_gradient_kernel(conv c)
{
    if (conv_is_pointwise(&c.w) && conv_channels_last(&c)) return pixels_gradient(&c);
    if (c.groups == 1) return group_gradient(c, true);
    char *to = c.k;
    size_t row = (size_t)(c.out * c.size);
    int64_t rows = c.w.extent[0] * c.w.extent[1] * c.in;
    if (!(c.k = memory_alloc((size_t)rows * row))) return false;
    bool ok = group_gradient(c, true);
    for (int64_t i = 0; ok && i < rows; i++)
        memcpy(to + i * c.all_out * c.size, c.k + (size_t)i * row, row);
    memory_free(c.k);
    return ok;
}

bool conv_gradient_kernel(const conv_call *call)
{
    const conv all = conv_begin(call);
    bool finite = false;
    if (conv_winograd_suits(&all, false) && !conv_winograd_kernel(&all, &finite)) return false;
    return finite || conv_each_group(&all, group_gradient_kernel);
}
