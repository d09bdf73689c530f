/*
 * Largest and mean values of windows over images [batch, height, width, channels], with gradients
 * of both orders.
 *
 * The maximum's gradient sends dy to the first largest cell of each window; it is linear in dy, and
 * its own gradient fetches from those cells again (max_pool2d_gather). All loops run along
 * channels, a chunk of them at a time, so that no cell is written by two threads: the work is cut
 * into image rows (what reads windows) or into images and chunks (what adds to cells).
 */
#include "ops/kernels/isa.h"
#include "ops/window.h"
#include "tensor/threads.h"

enum { CHUNK = 128 }; /* channels at a time */

/* Chunk `begin`.. of one window: the cells inside the image, row by row. */
typedef struct cells {
    int64_t rows[2], columns[2]; /* begin and end inside the image; none if begin >= end */
    int64_t steps[2];            /* to the next row, the next column */
    int64_t width, channels;     /* of the image */
    int64_t n;                   /* channels in the chunk */
} cells;

#ifdef ISA
/* Elements from the image's first to that of a cell. */
static inline int64_t cell_at(const cells *c, int64_t h, int64_t w)
{
    return (h * c->width + w) * c->channels;
}
#endif

/* Over one window's cells: `image` is its chunk's first element, `pooled` the window's. */
typedef struct pool_loops {
    /* The maximum of the cells; and the number, in their order, of the first cell that has it. */
    void (*max)(const cells *c, const void *image, void *pooled);
    void (*argmax)(const cells *c, const void *image, void *pooled, int32_t *index);
    /* Adds the pooled to the cells of those numbers; fetches these cells. */
    void (*scatter)(const cells *c, void *image, const void *pooled, const int32_t *index);
    void (*gather)(const cells *c, const void *image, void *pooled, const int32_t *index);
    /* The sum of the cells; adds the pooled to each of them; n elements over a count. */
    void (*sum)(const cells *c, const void *image, void *pooled);
    void (*add)(const cells *c, void *image, const void *pooled);
    void (*divide)(int64_t n, const void *from, int64_t count, void *to);
} pool_loops;

#ifdef ISA

#include "tensor/typed.h"

#define TYPE f32
#include "ops/pool.typed.h"
#define TYPE f64
#include "ops/pool.typed.h"

#define POOL_ROW(type)                                                                             \
    {                                                                                              \
        pool_max_##type, pool_argmax_##type, pool_scatter_##type, pool_gather_##type,              \
            pool_sum_##type, pool_add_##type, pool_divide_##type                                   \
    }
const pool_loops ISA_NAME(pool_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = POOL_ROW(f32), [ED_FLOAT64] = POOL_ROW(f64)};

#else

#include "ops/ops.h"
#include <math.h>
#include <string.h>

ISA_DECLARE_TABLE(pool_loops, pool_table, []);

static const pool_loops *pool_loops_for(ed_dtype dtype)
{
    static const pool_loops *const tables[ISA_COUNT] = ISA_TABLE(pool_table);
    return &tables[isa_level][dtype];
}

/* Attributes of avg_pool2d's gradient: the pooling's, and the images' shape. */
#define POOL_GRADIENT_ATTRS(FIELD, T)                                                              \
    ED_POOL2D_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the images")
ED_OPTIONS(pool_gradient_attrs, POOL_GRADIENT_ATTRS);

static ed_pool2d_options pooling(const void *gradient_attrs)
{
    const pool_gradient_attrs *a = gradient_attrs;
    return *ED_OPTIONS_FROM(ED_POOL2D_OPTIONS, a, ed_pool2d_options);
}

/* The windows over images of that shape, the plan of a call. */
static const window *windows(ed_call *call, const ed_pool2d_options *o, const int64_t *image)
{
    int64_t extent[2];
    if (!window_pair(call->op->name, "window", o->window, 2, extent)) return NULL;
    int64_t last[4];
    window_shape_in(window_channels_first(o->data_format), image, last);
    return window_make(
        call, last,
        WINDOW_OPTIONS_OF(o, .extent = {extent[0], extent[1]}, .stride_by_extent = true));
}

/* Whether the images of a call have their channels first. */
static bool is_first(const ed_call *call)
{
    return window_channels_first(pooling(call->attrs).data_format);
}

/* The shape of the windows' values. */
static void pooled_shape(const ed_call *call, const window *w, int64_t shape[4])
{
    const int64_t last[] = {w->batch, w->out[0], w->out[1], w->channels};
    window_shape_out(is_first(call), last, shape);
}

static bool is_images(const ed_call *call, const ed_tensor *x)
{
    if (x->rank == 4) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must be %s, got %s",
                        is_first(call) ? "[batch, channels, height, width]"
                                       : "[batch, height, width, channels]",
                        text_of_ints(x->shape, x->rank).s);
}

static bool infer_pooled(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const window *w = is_images(call, x) ? windows(call, call->attrs, x->shape) : NULL;
    if (!w) return false;
    int64_t shape[4];
    pooled_shape(call, w, shape);
    return ed_call_output(call, 0, x->dtype, 4, shape);
}

static bool same_shape(const ed_call *call, const char *name, const ed_tensor *t,
                       const int64_t *shape)
{
    if (t->rank == 4 && !memcmp(t->shape, shape, 4 * sizeof *shape)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s; it must be %s", name,
                        text_of_ints(t->shape, t->rank).s, text_of_ints(shape, 4).s);
}

static cells cells_of(const window *w, int64_t oh, int64_t ow, int64_t n)
{
    cells c = {.steps = {w->dilation[0], w->dilation[1]},
               .width = w->image[1],
               .channels = w->channels,
               .n = n};
    window_clip(w, 0, oh, &c.rows[0], &c.rows[1]);
    window_clip(w, 1, ow, &c.columns[0], &c.columns[1]);
    return c;
}

static int64_t steps_between(const int64_t ends[2], int64_t step)
{
    return ends[1] > ends[0] ? (ends[1] - ends[0] + step - 1) / step : 0;
}

/* By which a window's sum is divided: the number of its cells; 1 if there are none. */
static int64_t cell_count(const cells *c)
{
    const int64_t n = steps_between(c->rows, c->steps[0]) * steps_between(c->columns, c->steps[1]);
    return n ? n : 1;
}

/* One window's chunk of channels: pointers to the images' and the windows' first element of it. */
typedef void (*window_function)(const pool_loops *loops, const cells *c, const char *x, char *image,
                                char *pooled);

/* What a kernel works on: x is read (or NULL), image and pooled are read or written as the function
 * says. */
typedef struct work {
    const pool_loops *loops;
    window w;
    int64_t size;
    const char *x;
    char *image, *pooled;
    window_function run;
} work;

static void run_window(const work *p, int64_t n, int64_t oh, int64_t ow, int64_t channel,
                       int64_t count)
{
    const window *w = &p->w;
    cells c = cells_of(w, oh, ow, count);
    int64_t image = (n * w->image[0] * w->image[1] * w->channels + channel) * p->size;
    int64_t at = (((n * w->out[0] + oh) * w->out[1] + ow) * w->channels + channel) * p->size;
    p->run(p->loops, &c, p->x ? p->x + image : NULL, p->image + image, p->pooled + at);
}

static int64_t chunk(const window *w, int64_t channel)
{
    return w->channels - channel < CHUNK ? w->channels - channel : CHUNK;
}

static bool pays(const window *w)
{
    return w->batch * w->out[0] * w->out[1] * w->channels * w->extent[0] * w->extent[1] >
           OPS_PARALLEL_WORK;
}

/* Rows of windows. */
static void window_rows(int64_t first, int64_t last, int worker, void *user)
{
    const work *p = user;
    const window *w = &p->w;
    (void)worker;
    for (int64_t row = first; row < last; row++)
        for (int64_t ow = 0; ow < w->out[1]; ow++)
            for (int64_t c = 0; c < w->channels; c += CHUNK)
                run_window(p, row / w->out[0], row % w->out[0], ow, c, chunk(w, c));
}

/* Without elements there is no work, however many windows the shape has. */
static bool is_empty(const window *w)
{
    return w->batch == 0 || w->out[0] == 0 || w->out[1] == 0 || w->channels == 0;
}

/* All windows, in any order. */
static void run_windows(work *p)
{
    if (is_empty(&p->w)) return;
    int64_t rows = p->w.batch * p->w.out[0];
    threads_run(rows, pays(&p->w) ? 1 : rows, window_rows, p);
}

/* All windows of some images' chunks of channels, in row order. */
static void window_units(int64_t first, int64_t last, int worker, void *user)
{
    const work *p = user;
    const window *w = &p->w;
    int64_t chunks = (w->channels + CHUNK - 1) / CHUNK;
    (void)worker;
    for (int64_t unit = first; unit < last; unit++)
        for (int64_t o = 0; o < w->out[0] * w->out[1]; o++) {
            int64_t c = unit % chunks * CHUNK;
            run_window(p, unit / chunks, o / w->out[1], o % w->out[1], c, chunk(w, c));
        }
}

/* All windows; those that share cells follow each other in row order. */
static void run_windows_in_order(work *p)
{
    const window *w = &p->w;
    int64_t units = w->batch * ((w->channels + CHUNK - 1) / CHUNK);
    memset(p->image, 0, (size_t)(w->batch * w->image[0] * w->image[1] * w->channels * p->size));
    if (is_empty(w)) return;
    threads_run(units, pays(w) ? 1 : units, window_units, p);
}

static work work_of(const ed_call *call, window_function run)
{
    const ed_dtype dtype = call->outputs[0]->dtype;
    return (work){.loops = pool_loops_for(dtype),
                  .w = *(const window *)call->plan,
                  .size = (int64_t)dtype_size(dtype),
                  .run = run};
}

/* ---- max_pool2d ------------------------------------------------------------------------------ */

static void max_window(const pool_loops *loops, const cells *c, const char *x, char *image,
                       char *pooled)
{
    (void)x;
    loops->max(c, image, pooled);
}

static bool max_pool2d_last(ed_call *call)
{
    work p = work_of(call, max_window);
    p.image = call->inputs[0]->data;
    p.pooled = call->outputs[0]->data;
    run_windows(&p);
    return true;
}

static bool max_pool2d_kernel(ed_call *call)
{
    return window_run_kernel(call, is_first(call), 1, true, max_pool2d_last);
}

/* Adds pooled's elements to the image at the positions of x's largest cells. */
static void scatter_window(const pool_loops *loops, const cells *c, const char *x, char *image,
                           char *pooled)
{
    double best[CHUNK];
    int32_t index[CHUNK];
    loops->argmax(c, x, best, index);
    loops->scatter(c, image, pooled, index);
}

static bool max_pool2d_gradient_last(ed_call *call)
{
    work p = work_of(call, scatter_window);
    p.x = call->inputs[0]->data;
    p.image = call->outputs[0]->data;
    p.pooled = call->inputs[1]->data;
    run_windows_in_order(&p);
    return true;
}

static bool max_pool2d_gradient_kernel(ed_call *call)
{
    return window_run_kernel(call, is_first(call), 3, true, max_pool2d_gradient_last);
}

/* Fetches the image's elements at the positions of x's largest cells. */
static void gather_window(const pool_loops *loops, const cells *c, const char *x, char *image,
                          char *pooled)
{
    double best[CHUNK];
    int32_t index[CHUNK];
    loops->argmax(c, x, best, index);
    loops->gather(c, image, pooled, index);
}

static bool max_pool2d_gather_last(ed_call *call)
{
    work p = work_of(call, gather_window);
    p.x = call->inputs[0]->data;
    p.image = call->inputs[1]->data;
    p.pooled = call->outputs[0]->data;
    memset(p.pooled, 0, (size_t)(call->outputs[0]->size * p.size));
    run_windows(&p);
    return true;
}

static bool max_pool2d_gather_kernel(ed_call *call)
{
    return window_run_kernel(call, is_first(call), 3, true, max_pool2d_gather_last);
}

static bool max_pool2d_gradient_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const window *w = is_images(call, x) ? windows(call, call->attrs, x->shape) : NULL;
    if (!w) return false;
    int64_t shape[4];
    pooled_shape(call, w, shape);
    return same_shape(call, "dy", call->inputs[1], shape) &&
           ed_call_output(call, 0, x->dtype, 4, x->shape);
}

static bool max_pool2d_gather_infer(ed_call *call)
{
    return is_images(call, call->inputs[0]) &&
           same_shape(call, "v", call->inputs[1], call->inputs[0]->shape) && infer_pooled(call);
}

extern const ed_op ed_op_max_pool2d_gradient, ed_op_max_pool2d_gather, ed_op_avg_pool2d_gradient;

static bool max_pool2d_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = CALL_OP(max_pool2d_gradient, g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

static bool max_pool2d_gradient_gradient(const ed_gradient_call *g)
{
    if (g->needs[1]) g->dx[1] = CALL_OP(max_pool2d_gather, g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

static bool max_pool2d_gather_gradient(const ed_gradient_call *g)
{
    if (g->needs[1]) g->dx[1] = CALL_OP(max_pool2d_gradient, g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

static void fetch(double *pooled, double *cell)
{
    *pooled = *cell;
}

static void send(double *pooled, double *cell)
{
    *cell += *pooled;
}

/* Calls join for each window and channel with its value and where its largest cell is; without any
 * cell, what is fetched is `none`. */
static bool plain_max(const ed_call *call, double *pooled, double *image, double none,
                      void (*join)(double *pooled, double *cell))
{
    const double *x = (double *)call->inputs[0]->data;
    const window *w = call->plan;
    for (int64_t e = 0; e < w->batch * w->out[0] * w->out[1] * w->channels; e++) {
        int64_t ow = e / w->channels % w->out[1], oh = e / w->channels / w->out[1] % w->out[0];
        int64_t n = e / w->channels / w->out[1] / w->out[0], best = -1;
        cells c = cells_of(w, oh, ow, 1);
        for (int64_t i = c.rows[0]; i < c.rows[1]; i += c.steps[0])
            for (int64_t j = c.columns[0]; j < c.columns[1]; j += c.steps[1]) {
                int64_t at =
                    ((n * w->image[0] + i) * w->image[1] + j) * w->channels + e % w->channels;
                if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
                    best = at;
            }
        if (best >= 0)
            join(&pooled[e], &image[best]);
        else if (join == fetch)
            pooled[e] = none;
    }
    return true;
}

static bool max_pool2d_plain(const ed_call *call)
{
    return plain_max(call, (double *)call->outputs[0]->data, (double *)call->inputs[0]->data,
                     -INFINITY, fetch);
}

static bool max_pool2d_reference(const ed_call *call)
{
    return window_run_reference(call, is_first(call), 1, true, max_pool2d_plain);
}

static bool max_pool2d_gradient_plain(const ed_call *call)
{
    double *image = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) image[i] = 0;
    return plain_max(call, (double *)call->inputs[1]->data, image, 0, send);
}

static bool max_pool2d_gradient_reference(const ed_call *call)
{
    return window_run_reference(call, is_first(call), 3, true, max_pool2d_gradient_plain);
}

static bool max_pool2d_gather_plain(const ed_call *call)
{
    return plain_max(call, (double *)call->outputs[0]->data, (double *)call->inputs[1]->data, 0,
                     fetch);
}

static bool max_pool2d_gather_reference(const ed_call *call)
{
    return window_run_reference(call, is_first(call), 3, true, max_pool2d_gather_plain);
}

#define OPTIONS(...) .attrs = ED_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options, __VA_ARGS__)
#define SHAPED(shape_, ...)                                                                        \
    .attrs = ED_ATTRS(POOL_GRADIENT_ATTRS, pool_gradient_attrs, .shape = shape_, __VA_ARGS__)
#define POOL_SAMPLES(IN)                                                                           \
    ED_SAMPLES({.inputs = {IN(-2, 2, 2, 4, 6, 3)}},                                                \
               {.inputs = {IN(-2, 2, 1, 5, 4, 2)}, OPTIONS(.padding = "SAME")},                    \
               {.inputs = {IN(-2, 2, 1, 6, 5, 2)},                                                 \
                OPTIONS(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2),           \
                        .padding = "SAME")},                                                       \
               {.inputs = {IN(-2, 2, 2, 5, 5, 1)},                                                 \
                OPTIONS(.window = ED_SAMPLE_INTS(3, 3), .strides = ED_SAMPLE_INTS(2, 1))},         \
               {.inputs = {IN(-2, 2, 1, 2, 2, 2)}, OPTIONS(.window = ED_SAMPLE_INTS(3, 3))},       \
               {.inputs = {IN(-2, 2, 1, 2, 7, 5)},                                                 \
                OPTIONS(.window = ED_SAMPLE_INTS(2, 3), .strides = ED_SAMPLE_INTS(1),              \
                        .dilations = ED_SAMPLE_INTS(2, 1), .padding = "EXPLICIT",                  \
                        .explicit_paddings = ED_SAMPLE_INTS(1, 0, 2, 1), .data_format = "NCHW")})

/* max_pool2d: y = the largest of each window, dx = dy at the first largest cell */
ED_OP(max_pool2d) = {
    .name = "max_pool2d",
    .doc = "y = the largest x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = infer_pooled,
    .kernel = max_pool2d_kernel,
    .gradient = max_pool2d_gradient,
    SAVES_X,
    .reference = max_pool2d_reference,
    .samples = POOL_SAMPLES(ED_DISTINCT_IN),
};

ED_OP(max_pool2d_gradient) = {
    .name = "max_pool2d_gradient",
    .doc = "dy at the first largest x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = max_pool2d_gradient_infer,
    .kernel = max_pool2d_gradient_kernel,
    .gradient = max_pool2d_gradient_gradient,
    SAVES_X,
    .reference = max_pool2d_gradient_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 2, 4, 6, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 3, 3)}},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 6, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 6, 3, 2)},
                    OPTIONS(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2),
                            .padding = "SAME")},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 1, 2, 1, 2)},
                    OPTIONS(.dilations = ED_SAMPLE_INTS(2), .data_format = "NCHW")}),
};

ED_OP(max_pool2d_gather) = {
    .name = "max_pool2d_gather",
    .doc = "v at the first largest x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"v", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = max_pool2d_gather_infer,
    .kernel = max_pool2d_gather_kernel,
    .gradient = max_pool2d_gather_gradient,
    SAVES_X,
    .reference = max_pool2d_gather_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 2, 4, 6, 3), ED_SAMPLE_IN(-2, 2, 2, 4, 6, 3)}},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 6, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 6, 5, 2)},
                    OPTIONS(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2),
                            .padding = "SAME")},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 1, 2, 4, 5)},
                    OPTIONS(.dilations = ED_SAMPLE_INTS(2), .data_format = "NCHW")}),
};

ed_tensor *ed_max_pool2d_with(ed_tensor *x, const ed_pool2d_options *options)
{
    return CALL_OP(max_pool2d, options, x);
}

/* ---- avg_pool2d ------------------------------------------------------------------------------ */

static void mean_window(const pool_loops *loops, const cells *c, const char *x, char *image,
                        char *pooled)
{
    (void)x;
    loops->sum(c, image, pooled);
    loops->divide(c->n, pooled, cell_count(c), pooled);
}

static bool avg_pool2d_last(ed_call *call)
{
    work p = work_of(call, mean_window);
    p.image = call->inputs[0]->data;
    p.pooled = call->outputs[0]->data;
    run_windows(&p);
    return true;
}

static bool avg_pool2d_kernel(ed_call *call)
{
    return window_run_kernel(call, is_first(call), 1, true, avg_pool2d_last);
}

static void share_window(const pool_loops *loops, const cells *c, const char *x, char *image,
                         char *pooled)
{
    double share[CHUNK];
    (void)x;
    loops->divide(c->n, pooled, cell_count(c), share);
    loops->add(c, image, share);
}

static bool avg_pool2d_gradient_last(ed_call *call)
{
    work p = work_of(call, share_window);
    p.image = call->outputs[0]->data;
    p.pooled = call->inputs[0]->data;
    run_windows_in_order(&p);
    return true;
}

static bool avg_pool2d_gradient_kernel(ed_call *call)
{
    return window_run_kernel(call, is_first(call), 1, true, avg_pool2d_gradient_last);
}

static bool avg_pool2d_gradient_infer(ed_call *call)
{
    const pool_gradient_attrs *o = call->attrs;
    const ed_tensor *dy = call->inputs[0];
    bool ok = o->shape.values && o->shape.count == 4;
    for (int i = 0; ok && i < 4; i++) ok = o->shape.values[i] >= 0;
    if (!ok)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must be 4 sizes >= 0, got %s",
                            text_of_ints(o->shape.values, o->shape.values ? o->shape.count : 0).s);
    const ed_pool2d_options pool = pooling(o);
    const window *w = windows(call, &pool, o->shape.values);
    if (!w) return false;
    int64_t shape[4];
    pooled_shape(call, w, shape);
    return same_shape(call, "dy", dy, shape) &&
           ed_call_output(call, 0, dy->dtype, 4, o->shape.values);
}

static bool avg_pool2d_gradient(const ed_gradient_call *g)
{
    const ed_pool2d_options *o = g->attrs;
    if (g->needs[0])
        g->dx[0] = CALL_OP(
            avg_pool2d_gradient,
            ED_OPTIONS_FROM(ED_POOL2D_OPTIONS, o, pool_gradient_attrs, .shape = g->shapes[0]),
            g->dy[0]);
    return true;
}

static bool avg_pool2d_gradient_gradient(const ed_gradient_call *g)
{
    const ed_pool2d_options o = pooling(g->attrs);
    if (g->needs[0]) g->dx[0] = ed_avg_pool2d_with(g->dy[0], &o);
    return true;
}

/* Calls join for each window, channel and cell, with the number of the window's cells. */
static bool plain_mean(const ed_call *call, double *pooled, double *cells_,
                       void (*join)(double *pooled, double *cell, double count))
{
    const window *w = call->plan;
    for (int64_t e = 0; e < w->batch * w->out[0] * w->out[1] * w->channels; e++) {
        int64_t ow = e / w->channels % w->out[1], oh = e / w->channels / w->out[1] % w->out[0];
        int64_t n = e / w->channels / w->out[1] / w->out[0];
        cells c = cells_of(w, oh, ow, 1);
        for (int64_t i = c.rows[0]; i < c.rows[1]; i += c.steps[0])
            for (int64_t j = c.columns[0]; j < c.columns[1]; j += c.steps[1])
                join(&pooled[e],
                     &cells_[((n * w->image[0] + i) * w->image[1] + j) * w->channels +
                             e % w->channels],
                     (double)cell_count(&c));
    }
    return true;
}

static void take_share(double *pooled, double *cell, double count)
{
    *pooled += *cell / count;
}

static void give_share(double *pooled, double *cell, double count)
{
    *cell += *pooled / count;
}

static bool avg_pool2d_plain(const ed_call *call)
{
    double *pooled = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) pooled[i] = 0;
    return plain_mean(call, pooled, (double *)call->inputs[0]->data, take_share);
}

static bool avg_pool2d_reference(const ed_call *call)
{
    return window_run_reference(call, is_first(call), 1, true, avg_pool2d_plain);
}

static bool avg_pool2d_gradient_plain(const ed_call *call)
{
    double *image = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) image[i] = 0;
    return plain_mean(call, (double *)call->inputs[0]->data, image, give_share);
}

static bool avg_pool2d_gradient_reference(const ed_call *call)
{
    return window_run_reference(call, is_first(call), 1, true, avg_pool2d_gradient_plain);
}

/* avg_pool2d: y = the mean of each window, dx = dy / count at each of its cells */
ED_OP(avg_pool2d) = {
    .name = "avg_pool2d",
    .doc = "y = the mean x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = infer_pooled,
    .kernel = avg_pool2d_kernel,
    .gradient = avg_pool2d_gradient,
    .reference = avg_pool2d_reference,
    .samples = POOL_SAMPLES(ED_SAMPLE_IN),
};

ED_OP(avg_pool2d_gradient) = {
    .name = "avg_pool2d_gradient",
    .doc = "dy / count at each cell of its window",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(POOL_GRADIENT_ATTRS, pool_gradient_attrs),
    .infer = avg_pool2d_gradient_infer,
    .kernel = avg_pool2d_gradient_kernel,
    .gradient = avg_pool2d_gradient_gradient,
    .reference = avg_pool2d_gradient_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3, 3)},
                           SHAPED(ED_SAMPLE_INTS(2, 4, 6, 3), .padding = "VALID")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 6, 3, 2)},
                           SHAPED(ED_SAMPLE_INTS(1, 6, 5, 2), .window = ED_SAMPLE_INTS(3, 2),
                                  .strides = ED_SAMPLE_INTS(1, 2), .padding = "SAME")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 1, 2)},
                           SHAPED(ED_SAMPLE_INTS(1, 2, 4, 5), .dilations = ED_SAMPLE_INTS(2),
                                  .data_format = "NCHW")}),
};

ed_tensor *ed_avg_pool2d_with(ed_tensor *x, const ed_pool2d_options *options)
{
    return CALL_OP(avg_pool2d, options, x);
}

#endif
