/*
 * Convolution of images [batch, height, width, channels] with a kernel [kh, kw, in, out], and its
 * two gradients, as matrix products whose operands are read where they lie (gemm_runs): no matrix
 * of windows is ever made.
 *
 *   forward          one output row:  y[ow, out]   = sum over kh of  X[ow, (kw, in)]  K[kh][(kw,
 * in), out] X's rows are windows into one image row, stride_w * in apart; a run of steps is a
 * kernel row gradient_input   one image row, columns w = w0 + t stride_w: dx[t, in]  = sum over
 * those (kh, kw) that hit an output  dY[t, out]  K[kh, kw]^T[out, in] gradient_kernel  dK[kh][(kw,
 * in), out]  = sum over output rows  X^T[(kw, in), ow]  dY[ow, out]
 *
 * The work is cut into bands of rows of an image. Where windows hang over an image's edge, the
 * band's rows are first copied between zeros, with one row of zeros for those above and below; a
 * band is small enough for the second-level cache, which also bounds the memory. The kernel is
 * packed once for all bands. Bands, and the groups of bands whose sums make up the kernel's
 * gradient, depend on the shapes only, so the number of threads changes no bit.
 *
 * Zeros around an image are multiplied like other cells: an infinite kernel element makes NaN of
 * them.
 */
#include "ops/execute.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_piece.h"
#include "ops/ops.h"
#include "ops/window.h"
#include <omp.h>
#include <string.h>

enum {
    BAND_BYTES = 256 * 1024,   /* of padded rows that a band works on */
    BANDS = 16,                /* cut images so that there are at least so many, if rows allow */
    BLOCK_BYTES = 384 * 1024,  /* of packed kernel used at a time */
    GROUPS = 16,               /* of bands with partial sums of their own in gradient_kernel ... */
    GROUP_KERNEL = 512 * 1024, /* ... if the kernel is no larger than this */
    THREAD_WORK = 200000,      /* multiply-adds worth a second thread */
};

/* A convolution: y = x * k, any two of them given and the third wanted. */
typedef struct conv {
    window w;
    bool wide;
    int64_t size, in, out; /* bytes of an element; channels */
    char *x, *k, *y;
    int64_t tile, panel;   /* columns of the register tile, and their bytes */
    int64_t panels, depth; /* of the packed kernel: panels, and steps in each */
    char *packed;
    /* Bands: so many rows each, so many an image. Padded rows have `width` cells, `before` of them
     * zeros on the left. */
    int64_t band_rows, bands, width, before;
    bool padded;
    int64_t slots;  /* padded rows a band needs at most */
    int64_t lists;  /* entries in a list of runs */
    size_t scratch; /* bytes for one band on one thread */
} conv;

static int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t max64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return x >= 0 ? (x + y - 1) / y : -(-x / y);
}

static int64_t floor_div(int64_t x, int64_t y)
{
    return -ceil_div(-x, y);
}

static void conv_begin(conv *c, const window *w, int64_t out, ed_dtype dtype)
{
    int64_t rows;
    *c = (conv){.w = *w, .wide = dtype == ED_FLOAT64, .in = w->channels, .out = out};
    c->size = c->wide ? 8 : 4;
    ISA_CALL(gemm_tile)(c->wide, &rows, &c->tile);
    c->panel = c->tile * c->size;
}

/* Threads for `units` pieces of work. */
static int thread_count(const conv *c, int64_t units)
{
    const window *w = &c->w;
    double work = (double)(w->batch * w->out[0] * w->out[1]) *
                  (double)(w->extent[0] * w->extent[1]) * (double)(c->in * c->out);
    if (work < 2.0 * THREAD_WORK || omp_in_parallel()) return 1;
    return (int)min64(units, omp_get_max_threads());
}

static bool too_large(void)
{
    return ed_fail(ED_OUT_OF_MEMORY, "conv2d: the rows of a band are larger than any memory"),
           false;
}

/*
 * Cuts images of `rows` rows, each of which needs `reach` rows of `cells` channels, `step` rows
 * further for the next one. Says how much scratch a band needs: the run lists, and padded rows with
 * one of zeros. false if that can't be.
 */
static bool cut_bands(conv *c, int64_t rows, int64_t reach, int64_t step, int64_t limit,
                      int64_t cells)
{
    size_t row, bytes, lists;
    if (!memory_mul((size_t)c->width, (size_t)(cells * c->size), &row)) return too_large();
    int64_t fit = max64(1, ((int64_t)(BAND_BYTES / row) - reach) / step + 1);
    c->band_rows = max64(1, min64(fit, ceil_div(rows * c->w.batch, BANDS)));
    c->bands = ceil_div(rows, c->band_rows);
    c->slots = min64((c->band_rows - 1) * step + reach, limit);
    c->lists = max64(c->w.extent[0] * c->w.extent[1], c->band_rows);
    if (!memory_mul(row, (size_t)c->slots + 1, &bytes) ||
        !memory_mul((size_t)c->lists, 2 * sizeof(int64_t), &lists))
        return too_large();
    c->scratch = (lists + (c->padded ? bytes : 0) + 63) / 64 * 64;
    return true;
}

/*
 * Rows [begin, end) of an image of `length` cells a row copied to `to`, each between zeros; returns
 * where the row of zeros is that follows them.
 */
static int64_t pad_rows(const conv *c, const char *image, int64_t begin, int64_t end,
                        int64_t length, int64_t cells, char *to)
{
    size_t cell = (size_t)(cells * c->size), row = (size_t)c->width * cell;
    size_t before = (size_t)c->before * cell;
    size_t inside = (size_t)min64(length, c->width - c->before) * cell;
    for (int64_t i = begin; i < end; i++, to += row) {
        memset(to, 0, before);
        memcpy(to + before, image + (size_t)(i * length) * cell, inside);
        memset(to + before + inside, 0, row - before - inside);
    }
    memset(to, 0, row);
    return (end - begin) * (int64_t)row;
}

/* Packs slices of the kernel: B[k, n] of slice i at k + i * from, its steps after those of the
 * slices before it. */
static bool pack_kernel(conv *c, int64_t slices, int64_t k, int64_t n, int64_t b_row, int64_t b_col)
{
    size_t bytes;
    c->panels = ceil_div(n, c->tile);
    c->depth = slices * k;
    if (!memory_mul((size_t)(c->panels * c->panel), (size_t)c->depth, &bytes)) return false;
    c->packed = memory_alloc(bytes);
    if (!c->packed) return false;
    int64_t from = c->in * c->out * c->size;
#pragma omp parallel for schedule(static) collapse(2)                                              \
    num_threads(thread_count(c, c->panels *slices))
    for (int64_t j = 0; j < c->panels; j++)
        for (int64_t i = 0; i < slices; i++)
            ISA_CALL(gemm_pack)
            (c->wide, k, min64(c->tile, n - j * c->tile), c->k + i * from + j * c->tile * b_col,
             b_row, b_col, c->packed + (j * c->depth + i * k) * c->panel, c->panel);
    return true;
}

/* A band at work. */
typedef struct band {
    const conv *c;
    int64_t image, begin, end; /* rows of the result */
    int64_t *a_runs, *b_runs;
    const char *a;              /* the band's source rows */
    int64_t first, last, zeros; /* source rows there are, and where a row of zeros lies */
    int64_t row;                /* bytes from a source row to the next */
} band;

/* Makes a band's source rows: [first, last) of an image at `from` with rows of `length` cells. */
static void band_source(band *b, const char *from, int64_t first, int64_t last, int64_t limit,
                        int64_t length, int64_t cells, char *scratch)
{
    const conv *c = b->c;
    b->a_runs = (int64_t *)scratch;
    b->b_runs = b->a_runs + c->lists;
    b->first = min64(max64(first, 0), limit);
    b->last = max64(min64(last, limit), b->first);
    b->row = (c->padded ? c->width : length) * cells * c->size;
    const char *image = from + b->image * limit * length * cells * c->size;
    if (c->padded) {
        char *rows = (char *)(b->b_runs + c->lists);
        b->zeros = pad_rows(c, image, b->first, b->last, length, cells, rows);
        b->a = rows;
    } else {
        b->zeros = 0; /* never asked for */
        b->a = image + b->first * b->row;
    }
}

static int64_t source_row(const band *b, int64_t i)
{
    return i >= b->first && i < b->last ? (i - b->first) * b->row : b->zeros;
}

/* ---- Forward
 * ------------------------------------------------------------------------------------------------------
 */

/* The padded rows that windows read; the same for forward and gradient_kernel. */
static bool cut_windows(conv *c)
{
    const window *w = &c->w;
    int64_t reach = (w->extent[0] - 1) * w->dilation[0] + 1;
    int64_t across = (w->extent[1] - 1) * w->dilation[1] + 1;
    c->width = (w->out[1] - 1) * w->stride[1] + across;
    c->before = w->before[1];
    c->padded = w->before[0] || w->before[1] || c->width > w->image[1] ||
                (w->out[0] - 1) * w->stride[0] + reach > w->image[0];
    return cut_bands(c, w->out[0], reach, w->stride[0], w->image[0], c->in);
}

static band window_band(const conv *c, int64_t unit, char *scratch)
{
    const window *w = &c->w;
    int64_t begin = unit % c->bands * c->band_rows;
    band b = {.c = c,
              .image = unit / c->bands,
              .begin = begin,
              .end = min64(begin + c->band_rows, w->out[0])};
    int64_t first = b.begin * w->stride[0] - w->before[0];
    int64_t last =
        (b.end - 1) * w->stride[0] - w->before[0] + (w->extent[0] - 1) * w->dilation[0] + 1;
    band_source(&b, c->x, first, last, w->image[0], w->image[1], c->in, scratch);
    return b;
}

/* Kernel rows are one run each where their columns adjoin. */
static bool joins(const conv *c)
{
    return c->w.dilation[1] == 1;
}

static void forward_band(const conv *c, int64_t unit, char *scratch)
{
    const window *w = &c->w;
    band b = window_band(c, unit, scratch);
    int64_t cell = c->in * c->size, parts = joins(c) ? 1 : w->extent[1];
    int64_t some = max64(1, BLOCK_BYTES / max64(1, c->depth * c->panel));
    gemm_runs_job job = {.wide = c->wide,
                         .m = w->out[1],
                         .k = c->in * (w->extent[1] / parts),
                         .runs = w->extent[0] * parts,
                         .a_runs = b.a_runs,
                         .b_runs = b.b_runs,
                         .a = b.a,
                         .a_row = w->stride[1] * cell,
                         .a_col = c->size,
                         .b_row = c->panel,
                         .b_panel = c->depth * c->panel,
                         .c_row = c->out * c->size};
    for (int64_t j = 0; j < c->panels; j += some) {
        job.b = c->packed + j * job.b_panel;
        job.n = min64(some * c->tile, c->out - j * c->tile);
        for (int64_t oh = b.begin; oh < b.end; oh++) {
            for (int64_t r = 0; r < job.runs; r++) {
                int64_t ih = oh * w->stride[0] - w->before[0] + r / parts * w->dilation[0];
                b.a_runs[r] = source_row(&b, ih) + r % parts * w->dilation[1] * cell;
                b.b_runs[r] = r * job.k * c->panel;
            }
            job.c =
                c->y + ((b.image * w->out[0] + oh) * w->out[1] * c->out + j * c->tile) * c->size;
            ISA_CALL(gemm_runs)(&job);
        }
    }
}

/* Bands on threads, each with scratch of its own. */
static bool run_units(const conv *c, int64_t units, void (*run)(const conv *, int64_t, char *))
{
    int threads = thread_count(c, units);
    size_t bytes;
    char *scratch;
    if (!memory_mul(c->scratch, (size_t)threads, &bytes) || !(scratch = memory_alloc(bytes)))
        return false;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < units; i++)
        run(c, i, scratch + c->scratch * (size_t)omp_get_thread_num());
    memory_free(scratch);
    return true;
}

/* A window of one cell that visits every cell: one plain product of pixels. */
static bool is_pointwise(const window *w)
{
    return w->extent[0] == 1 && w->extent[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1;
}

static bool product(const conv *c, int64_t m, int64_t n, int64_t k, const char *a, int64_t a_row,
                    int64_t a_col, const char *b, int64_t b_row, int64_t b_col, char *to)
{
    return c->wide ? gemm_f64(m, n, k, (const double *)a, a_row, a_col, (const double *)b, b_row,
                              b_col, (double *)to, n, NULL)
                   : gemm_f32(m, n, k, (const float *)a, a_row, a_col, (const float *)b, b_row,
                              b_col, (float *)to, n, NULL);
}

static int64_t pixels(const conv *c)
{
    return c->w.batch * c->w.out[0] * c->w.out[1];
}

static bool forward(conv *c)
{
    if (is_pointwise(&c->w))
        return product(c, pixels(c), c->out, c->in, c->x, c->in, 1, c->k, c->out, 1, c->y);
    bool ok =
        cut_windows(c) &&
        pack_kernel(c, c->w.extent[0] * c->w.extent[1], c->in, c->out, c->out * c->size, c->size) &&
        run_units(c, c->w.batch * c->bands, forward_band);
    memory_free(c->packed);
    return ok;
}

/* ---- Gradient of the input
 * ---------------------------------------------------------------------------------------- */

static void input_band(const conv *c, int64_t unit, char *scratch)
{
    const window *w = &c->w;
    int64_t begin = unit % c->bands * c->band_rows, cell = c->out * c->size;
    band b = {.c = c,
              .image = unit / c->bands,
              .begin = begin,
              .end = min64(begin + c->band_rows, w->image[0])};
    int64_t reach = (w->extent[0] - 1) * w->dilation[0];
    band_source(&b, c->y, ceil_div(b.begin + w->before[0] - reach, w->stride[0]),
                floor_div(b.end - 1 + w->before[0], w->stride[0]) + 1, w->out[0], w->out[1], c->out,
                scratch);
    gemm_runs_job job = {.wide = c->wide,
                         .n = c->in,
                         .k = c->out,
                         .a_runs = b.a_runs,
                         .b_runs = b.b_runs,
                         .a = b.a,
                         .a_row = cell,
                         .a_col = c->size,
                         .b = c->packed,
                         .b_row = c->panel,
                         .b_panel = c->depth * c->panel,
                         .c_row = w->stride[1] * c->in * c->size};
    int64_t phases = min64(w->stride[1], w->image[1]);
    for (int64_t h = b.begin; h < b.end; h++) {
        for (int64_t w0 = 0; w0 < phases; w0++) {
            job.m = ceil_div(w->image[1] - w0, w->stride[1]);
            job.runs = 0;
            for (int64_t i = 0; i < w->extent[0]; i++) {
                int64_t from_h = h + w->before[0] - i * w->dilation[0];
                int64_t oh = floor_div(from_h, w->stride[0]);
                if (oh * w->stride[0] != from_h || oh < b.first || oh >= b.last) continue;
                for (int64_t j = 0; j < w->extent[1]; j++) {
                    int64_t from_w = w0 + w->before[1] - j * w->dilation[1];
                    int64_t ow = floor_div(from_w, w->stride[1]);
                    if (ow * w->stride[1] != from_w) continue;
                    b.a_runs[job.runs] = source_row(&b, oh) + (ow + c->before) * cell;
                    b.b_runs[job.runs++] = (i * w->extent[1] + j) * c->out * c->panel;
                }
            }
            job.c = c->x + ((b.image * w->image[0] + h) * w->image[1] + w0) * c->in * c->size;
            ISA_CALL(gemm_runs)(&job);
        }
    }
}

static bool gradient_input(conv *c)
{
    const window *w = &c->w;
    if (is_pointwise(w))
        return product(c, pixels(c), c->in, c->out, c->y, c->out, 1, c->k, 1, c->out, c->x);
    int64_t span = (w->extent[0] - 1) * w->dilation[0];
    c->before =
        max64(0, -floor_div(w->before[1] - (w->extent[1] - 1) * w->dilation[1], w->stride[1]));
    int64_t last = floor_div(w->image[1] - 1 + w->before[1], w->stride[1]);
    c->width = c->before + max64(w->out[1], last + 1);
    c->padded = c->width > w->out[1];
    bool ok =
        cut_bands(c, w->image[0], span / w->stride[0] + 2, 1, w->out[0], c->out) &&
        pack_kernel(c, w->extent[0] * w->extent[1], c->out, c->in, c->size, c->out * c->size) &&
        run_units(c, w->batch * c->bands, input_band);
    memory_free(c->packed);
    return ok;
}

/* ---- Gradient of the kernel
 * --------------------------------------------------------------------------------------- */

/* Groups of bands, and what a unit of work is: a group, or of an only group some kernel rows and
 * panels. */
typedef struct kernel_plan {
    int64_t groups, bands, parts,
        columns;   /* bands in all; parts of the kernel; columns of a part */
    bool direct;   /* rows of dy are whole vectors: they need no packing */
    int64_t bytes; /* of the kernel */
    char *sums;    /* one kernel a group */
    size_t packed; /* bytes of a band's packed dy */
} kernel_plan;

/* Adds a band's part to rows [kh, kh + 1) or all of a kernel at `to`, columns [j, j + n). */
static void kernel_band(const conv *c, const kernel_plan *p, int64_t unit, int64_t kh_begin,
                        int64_t kh_end, int64_t j, char *to, bool add, char *scratch)
{
    const window *w = &c->w;
    band b = window_band(c, unit, scratch + p->packed);
    int64_t cell = c->in * c->size, parts = joins(c) ? 1 : w->extent[1];
    int64_t n = min64(p->columns, c->out - j), rows = b.end - b.begin, out = c->out * c->size;
    const char *dy = c->y + (b.image * w->out[0] + b.begin) * w->out[1] * out + j * c->size;
    gemm_runs_job job = {.wide = c->wide,
                         .add = add,
                         .m = c->in * (w->extent[1] / parts),
                         .n = n,
                         .k = w->out[1],
                         .runs = rows,
                         .a_runs = b.a_runs,
                         .b_runs = b.b_runs,
                         .a = b.a,
                         .a_row = c->size,
                         .a_col = w->stride[1] * cell,
                         .b = p->direct ? dy : scratch,
                         .b_row = p->direct ? out : c->panel,
                         .b_panel = p->direct ? c->panel : rows * w->out[1] * c->panel,
                         .c_row = out};
    if (!p->direct)
        ISA_CALL(gemm_pack)(c->wide, rows * w->out[1], n, dy, out, c->size, scratch, job.b_panel);
    for (int64_t i = kh_begin; i < kh_end; i++)
        for (int64_t q = 0; q < parts; q++) {
            for (int64_t r = 0; r < rows; r++) {
                int64_t ih = (b.begin + r) * w->stride[0] - w->before[0] + i * w->dilation[0];
                b.a_runs[r] = source_row(&b, ih) + q * w->dilation[1] * cell;
                b.b_runs[r] = r * w->out[1] * job.b_row;
            }
            job.c = to + (i * w->extent[1] + q) * c->in * out + j * c->size;
            ISA_CALL(gemm_runs)(&job);
        }
}

static void kernel_unit(const conv *c, const kernel_plan *p, int64_t unit, char *scratch)
{
    int64_t group = unit / p->parts, part = unit % p->parts;
    int64_t blocks = ceil_div(c->out, p->columns), kh = part / blocks,
            j = part % blocks * p->columns;
    bool whole = p->parts == 1;
    int64_t begin = p->bands * group / p->groups, end = p->bands * (group + 1) / p->groups;
    for (int64_t i = begin; i < end; i++)
        kernel_band(c, p, i, whole ? 0 : kh, whole ? c->w.extent[0] : kh + 1, j,
                    p->sums + group * p->bytes, i > begin, scratch);
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

static bool run_kernel(conv *c, kernel_plan *p)
{
    int64_t units = p->groups * p->parts;
    int threads = thread_count(c, units);
    size_t bytes, each = p->packed + c->scratch;
    if (!memory_mul(each, (size_t)threads, &bytes)) return false;
    char *scratch = memory_alloc(bytes);
    p->sums = p->groups > 1 ? memory_alloc((size_t)(p->groups * p->bytes)) : c->k;
    bool ok = scratch && p->sums;
    if (ok) {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int64_t i = 0; i < units; i++)
            kernel_unit(c, p, i, scratch + each * (size_t)omp_get_thread_num());
        if (p->groups > 1 && c->wide)
            join_f64((double *)c->k, (double *)p->sums, p->groups, p->bytes / c->size);
        else if (p->groups > 1)
            join_f32((float *)c->k, (float *)p->sums, p->groups, p->bytes / c->size);
    }
    if (p->sums != c->k) memory_free(p->sums);
    memory_free(scratch);
    return ok;
}

static bool gradient_kernel(conv *c)
{
    const window *w = &c->w;
    if (is_pointwise(w))
        return product(c, c->in, c->out, pixels(c), c->x, 1, c->in, c->y, c->out, 1, c->k);
    if (!cut_windows(c)) return false;
    size_t packed;
    kernel_plan p = {.bands = w->batch * c->bands,
                     .direct = c->out % (c->tile / 2) == 0,
                     .bytes = w->extent[0] * w->extent[1] * c->in * c->out * c->size};
    bool small = p.bytes <= GROUP_KERNEL;
    p.groups = small ? min64(GROUPS, p.bands) : 1;
    p.columns = small ? max64(c->out, 1) : 4 * c->tile;
    p.parts = small ? 1 : w->extent[0] * ceil_div(c->out, p.columns);
    if (!memory_mul((size_t)(c->band_rows * w->out[1] * c->panel),
                    (size_t)ceil_div(min64(p.columns, c->out), c->tile), &packed))
        return false;
    p.packed = p.direct ? 0 : packed;
    return run_kernel(c, &p);
}

/* ---- The ops
 * ------------------------------------------------------------------------------------------------------
 */

/* Attributes of the gradients: the convolution's, and the shape that is wanted (of x or of the
 * kernel). */
typedef struct conv2d_gradient_attrs {
    ed_conv2d_options conv;
    ed_ints shape;
} conv2d_gradient_attrs;

/* The windows of a convolution of images x with a kernel; both shapes have rank 4. */
static bool windows(const ed_call *call, const int64_t *x, const int64_t *kernel, window *w)
{
    const ed_conv2d_options *o = call->attrs;
    if (x[3] != kernel[2])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "channels differ: x is %s, kernel [kh, kw, in, out] is %s",
                            text_of_ints(x, 4).s, text_of_ints(kernel, 4).s);
    return window_make(call, x, kernel, o->strides, false, o->dilations, o->padding, w);
}

static bool is_rank_4(const ed_call *call, const ed_tensor *t, const char *name, const char *wanted)
{
    if (t->rank == 4) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must be %s, not %s", name, wanted,
                        text_of_ints(t->shape, t->rank).s);
}

/* Whether dy has the shape that the convolution's output has. */
static bool check_dy(const ed_call *call, const window *w, const ed_tensor *dy, int64_t out)
{
    int64_t shape[] = {w->batch, w->out[0], w->out[1], out};
    if (dy->rank == 4 && !memcmp(shape, dy->shape, sizeof shape)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "dy is %s, the convolution gives %s",
                        text_of_ints(dy->shape, dy->rank).s, text_of_ints(shape, 4).s);
}

static bool check_shape(const ed_call *call, ed_ints shape)
{
    bool ok = shape.count == 4 && shape.values;
    for (int i = 0; ok && i < 4; i++) ok = shape.values[i] >= 0;
    return ok || ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must be 4 extents");
}

static bool conv2d_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *kernel = call->inputs[1];
    window w;
    if (!is_rank_4(call, x, "x", "[batch, height, width, in]") ||
        !is_rank_4(call, kernel, "kernel", "[kh, kw, in, out]") ||
        !windows(call, x->shape, kernel->shape, &w))
        return false;
    int64_t shape[] = {w.batch, w.out[0], w.out[1], kernel->shape[3]};
    return ed_call_output(call, 0, x->dtype, 4, shape);
}

static bool conv2d_gradient_input_infer(ed_call *call)
{
    const conv2d_gradient_attrs *o = call->attrs;
    const ed_tensor *dy = call->inputs[0], *kernel = call->inputs[1];
    window w;
    return check_shape(call, o->shape) && is_rank_4(call, kernel, "kernel", "[kh, kw, in, out]") &&
           windows(call, o->shape.values, kernel->shape, &w) &&
           check_dy(call, &w, dy, kernel->shape[3]) &&
           ed_call_output(call, 0, dy->dtype, 4, o->shape.values);
}

static bool conv2d_gradient_kernel_infer(ed_call *call)
{
    const conv2d_gradient_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[1];
    window w;
    return check_shape(call, o->shape) && is_rank_4(call, x, "x", "[batch, height, width, in]") &&
           windows(call, x->shape, o->shape.values, &w) &&
           check_dy(call, &w, dy, o->shape.values[3]) &&
           ed_call_output(call, 0, dy->dtype, 4, o->shape.values);
}

/* Runs one of the three: the tensors in their roles, of which `result` is the output. */
static bool run_conv(ed_call *call, const ed_tensor *x, const ed_tensor *k, const ed_tensor *y,
                     bool (*run)(conv *))
{
    const ed_tensor *result = call->outputs[0];
    window w;
    conv c;
    if (!windows(call, x->shape, k->shape, &w)) return false;
    if (!result->size) return true;
    if (!x->size || !k->size || !y->size) {
        memset(result->data, 0, (size_t)result->size * dtype_size(result->dtype));
        return true;
    }
    conv_begin(&c, &w, k->shape[3], result->dtype);
    c.x = x->data;
    c.k = k->data;
    c.y = y->data;
    return run(&c);
}

static bool conv2d_kernel(ed_call *call)
{
    return run_conv(call, call->inputs[0], call->inputs[1], call->outputs[0], forward);
}

static bool conv2d_gradient_input_kernel(ed_call *call)
{
    return run_conv(call, call->outputs[0], call->inputs[1], call->inputs[0], gradient_input);
}

static bool conv2d_gradient_kernel_kernel(ed_call *call)
{
    return run_conv(call, call->inputs[0], call->outputs[0], call->inputs[1], gradient_kernel);
}

/* The plain sum: for each product of an x, a kernel element and a y, `join` adds two of them to the
 * third. */
static bool plain(const ed_call *call, const ed_tensor *x, const ed_tensor *k, const ed_tensor *y,
                  void (*join)(double *x, double *k, double *y))
{
    window w;
    double *xs = (double *)x->data, *ks = (double *)k->data, *ys = (double *)y->data;
    double *result = (double *)call->outputs[0]->data;
    int64_t in = k->shape[2], out = k->shape[3];
    if (!windows(call, x->shape, k->shape, &w)) return false;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) result[i] = 0;
    for (int64_t e = 0; e < y->size; e++)
        for (int64_t p = 0; p < k->size / out; p++) {
            int64_t o = e % out, ow = e / out % w.out[1], oh = e / out / w.out[1] % w.out[0];
            int64_t c = p % in, kw = p / in % w.extent[1], kh = p / in / w.extent[1];
            int64_t h = oh * w.stride[0] - w.before[0] + kh * w.dilation[0];
            int64_t v = ow * w.stride[1] - w.before[1] + kw * w.dilation[1];
            int64_t n = e / out / w.out[1] / w.out[0];
            if (h < 0 || h >= w.image[0] || v < 0 || v >= w.image[1]) continue;
            join(&xs[((n * w.image[0] + h) * w.image[1] + v) * in + c], &ks[p * out + o], &ys[e]);
        }
    return true;
}

static void join_y(double *x, double *k, double *y)
{
    *y += *x * *k;
}

static void join_x(double *x, double *k, double *y)
{
    *x += *y * *k;
}

static void join_k(double *x, double *k, double *y)
{
    *k += *x * *y;
}

static bool conv2d_reference(const ed_call *call)
{
    return plain(call, call->inputs[0], call->inputs[1], call->outputs[0], join_y);
}

static bool conv2d_gradient_input_reference(const ed_call *call)
{
    return plain(call, call->outputs[0], call->inputs[1], call->inputs[0], join_x);
}

static bool conv2d_gradient_kernel_reference(const ed_call *call)
{
    return plain(call, call->inputs[0], call->outputs[0], call->inputs[1], join_k);
}

/* The three ops are linear in each operand, and each one's gradients are the other two. */
static ed_tensor *convolve(const void *attrs, ed_tensor *x, ed_tensor *k)
{
    return ed_conv2d_with(x, k, attrs);
}

extern const ed_op ed_op_conv2d_gradient_input, ed_op_conv2d_gradient_kernel;

static ed_tensor *input_gradient(const void *attrs, ed_tensor *dy, ed_tensor *k, ed_ints shape)
{
    conv2d_gradient_attrs a = {*(const ed_conv2d_options *)attrs, shape};
    return CALL_OP(conv2d_gradient_input, &a, dy, k);
}

static ed_tensor *kernel_gradient(const void *attrs, ed_tensor *x, ed_tensor *dy, ed_ints shape)
{
    conv2d_gradient_attrs a = {*(const ed_conv2d_options *)attrs, shape};
    return CALL_OP(conv2d_gradient_kernel, &a, x, dy);
}

static bool conv2d_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = input_gradient(g->attrs, g->dy[0], g->inputs[1], g->shapes[0]);
    if (g->needs[1]) g->dx[1] = kernel_gradient(g->attrs, g->inputs[0], g->dy[0], g->shapes[1]);
    return true;
}

static bool conv2d_gradient_input_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = convolve(g->attrs, g->dy[0], g->inputs[1]);
    if (g->needs[1]) g->dx[1] = kernel_gradient(g->attrs, g->dy[0], g->inputs[0], g->shapes[1]);
    return true;
}

static bool conv2d_gradient_kernel_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = input_gradient(g->attrs, g->inputs[1], g->dy[0], g->shapes[0]);
    if (g->needs[1]) g->dx[1] = convolve(g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

#define PAIR(a, b)                                                                                 \
    {                                                                                              \
        (const int64_t[]){a, b}, 2                                                                 \
    }
#define EXTENTS(...)                                                                               \
    {                                                                                              \
        (const int64_t[]){__VA_ARGS__}, 4                                                          \
    }
#define OPTIONS(...)                                                                               \
    .attrs = &(const ed_conv2d_options)                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define WITH(s, ...)                                                                               \
    .attrs = &(const conv2d_gradient_attrs)                                                        \
    {                                                                                              \
        .conv = {__VA_ARGS__}, .shape = s                                                          \
    }
#define CONV_ATTRS(type, path)                                                                     \
    {"strides", ED_ATTR_INTS, offsetof(type, path strides), "[height, width], default 1, 1"},      \
        {"dilations", ED_ATTR_INTS, offsetof(type, path dilations),                                \
         "[height, width], default 1, 1"},                                                         \
    {                                                                                              \
        "padding", ED_ATTR_STRING, offsetof(type, path padding), "\"VALID\" (default) or \"SAME\"" \
    }

static const ed_attr conv2d_attrs[] = {CONV_ATTRS(ed_conv2d_options, ), {0}};
static const ed_attr gradient_attrs[] = {
    CONV_ATTRS(conv2d_gradient_attrs, conv.),
    {"shape", ED_ATTR_INTS, offsetof(conv2d_gradient_attrs, shape), "of the result"},
    {0}};

/* conv2d: y = x * kernel, dx and dkernel by ops of their own */
ED_OP(conv2d) = {
    .name = "conv2d",
    .doc =
        "y[n, i, j, o] = sum over the window and channels of x[n, i', j', c] kernel[kh, kw, c, o]",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    .attrs = conv2d_attrs,
    .attrs_size = sizeof(ed_conv2d_options),
    .infer = conv2d_infer,
    .kernel = conv2d_kernel,
    .gradient = conv2d_gradient,
    .saves = ED_SAVES_ALL_INPUTS,
    .reference = conv2d_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 2)}},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 5, 6, 2), ED_SAMPLE_IN(-2, 2, 3, 3, 2, 3)},
                    OPTIONS(.padding = "SAME")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 5, 1), ED_SAMPLE_IN(-2, 2, 3, 2, 1, 2)},
                    OPTIONS(.padding = "SAME", .strides = PAIR(2, 3))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 7, 6, 2), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 1)},
                    OPTIONS(.strides = PAIR(2, 1), .dilations = PAIR(3, 2))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 5, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 2)},
                    OPTIONS(.padding = "SAME", .strides = PAIR(1, 2), .dilations = PAIR(2, 3))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 4), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3)}},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 5, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 1, 2, 3)},
                    OPTIONS(.strides = PAIR(3, 2))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 2, 1), ED_SAMPLE_IN(-2, 2, 3, 3, 1, 1)}}),
};

/* conv2d_gradient_input: dx = dy * kernel turned over, linear in both */
ED_OP(conv2d_gradient_input) = {
    .name = "conv2d_gradient_input",
    .doc = "the gradient of conv2d by x: dy sent back through the kernel",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .attrs = gradient_attrs,
    .attrs_size = sizeof(conv2d_gradient_attrs),
    .infer = conv2d_gradient_input_infer,
    .kernel = conv2d_gradient_input_kernel,
    .gradient = conv2d_gradient_input_gradient,
    .saves = ED_SAVES_ALL_INPUTS,
    .reference = conv2d_gradient_input_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 2)},
                    WITH(EXTENTS(2, 5, 4, 3), .padding = "VALID")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 1, 2)},
                    WITH(EXTENTS(2, 6, 5, 1), .padding = "SAME", .strides = PAIR(2, 3))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 2)},
                    WITH(EXTENTS(1, 4, 5, 2), .padding = "SAME", .strides = PAIR(1, 2),
                         .dilations = PAIR(2, 3))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 3), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3)},
                    WITH(EXTENTS(2, 3, 3, 4), .padding = "VALID")}),
};

/* conv2d_gradient_kernel: dkernel = x * dy, linear in both */
ED_OP(conv2d_gradient_kernel) = {
    .name = "conv2d_gradient_kernel",
    .doc = "the gradient of conv2d by its kernel",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .attrs = gradient_attrs,
    .attrs_size = sizeof(conv2d_gradient_attrs),
    .infer = conv2d_gradient_kernel_infer,
    .kernel = conv2d_gradient_kernel_kernel,
    .gradient = conv2d_gradient_kernel_gradient,
    .saves = ED_SAVES_ALL_INPUTS,
    .reference = conv2d_gradient_kernel_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2)},
                    WITH(EXTENTS(3, 2, 3, 2), .padding = "VALID")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 5, 1), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 2)},
                    WITH(EXTENTS(3, 2, 1, 2), .padding = "SAME", .strides = PAIR(2, 3))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 4, 3, 2)},
                    WITH(EXTENTS(3, 2, 2, 2), .padding = "SAME", .strides = PAIR(1, 2),
                         .dilations = PAIR(2, 3))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 3)},
                    WITH(EXTENTS(1, 1, 4, 3), .padding = "VALID")}),
};

ed_tensor *ed_conv2d_with(ed_tensor *x, ed_tensor *kernel, const ed_conv2d_options *options)
{
    return CALL_OP(conv2d, options, x, kernel);
}
