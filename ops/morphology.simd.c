/*
 * dilation2d, erosion2d: the maximum over windows of x + filters. What is differentiated is a
 * composition of extract_patches; else an op of its own reads each window where it lies.
 *
 * With a stride of 1 the windows of a row that have all their columns are one run of numbers,
 * whatever the number of channels. The filters are laid out for that: each tap's channels are
 * repeated until whole vectors begin again with channel 0.
 */
#include "ops/kernels/isa.h"
#include "ops/window.h"

typedef struct morphology_row morphology_row;

typedef struct morphology_work {
    window w;
    const char *x, *taps; /* the filters, laid out */
    char *y;
    int64_t bytes, period; /* of a number; of a tap, in numbers */
    void (*row)(morphology_row *r);
} morphology_work;

/* A row of windows: x begins with the first row of cells that is inside the image, y with the
 * row's results. */
struct morphology_row {
    const morphology_work *work;
    const void *x;
    void *y;
    int64_t taps[2], columns[2]; /* the taps from .. to that are inside: down; across, as found */
};

typedef struct morphology_loops {
    int64_t lanes;
    void (*row[2])(morphology_row *r); /* the maximum; the minimum */
} morphology_loops;

#ifdef ISA

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/morphology.typed.h"
#define TYPE f64
#include "ops/morphology.typed.h"

#define MORPHOLOGY_LOOPS(type, lanes)                                                              \
    {                                                                                              \
        lanes,                                                                                     \
        {                                                                                          \
            dilated_row_##type, eroded_row_##type                                                  \
        }                                                                                          \
    }
const morphology_loops ISA_NAME(morphology_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = MORPHOLOGY_LOOPS(f32, VECTOR_F32),
    [ED_FLOAT64] = MORPHOLOGY_LOOPS(f64, VECTOR_F64)};

#else

#include "ops/batch.h"
#include "ops/conv.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

ISA_DECLARE_TABLE(morphology_loops, morphology_table, []);

/* The windows: their extents, strides and dilations, and the cells around. */
typedef struct morphology {
    int64_t extent[2], strides[2], dilations[2], before[2], after[2], out[2];
} morphology;

static bool morphology_of(const ed_call *call, morphology *m)
{
    const ed_morphology_options *o = call->attrs;
    ed_tensor *x = call->inputs[0], *filters = call->inputs[1];
    const ed_ints shape = ed_shape(x);
    *m = (morphology){{0}};
    if (ed_rank(x) != 4 || ed_rank(filters) != 3 || ed_dim(filters, 2) != ed_dim(x, 3))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must be [batch, height, width, channels] and filters [height, "
                            "width, channels]; got %s and %s",
                            text_of_ints(shape.values, ed_rank(x)).s,
                            text_of_ints(ed_shape(filters).values, ed_rank(filters)).s);
    if (!spatial_numbers(call, "strides", o->strides, 2, 1, 1, m->strides) ||
        !spatial_numbers(call, "dilations", o->dilations, 2, 1, 1, m->dilations))
        return false;
    for (int i = 0; i < 2; i++) {
        const int64_t n = shape.values[i + 1];
        m->extent[i] = ed_dim(filters, i);
        if (m->extent[i] < 1 || m->extent[i] >= 1 << 20)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "filters must have 1 to 2^20 cells along "
                                "each axis, they are %s",
                                text_of_ints(ed_shape(filters).values, 3).s);
        const int64_t span = (m->extent[i] - 1) * m->dilations[i] + 1;
        const bool same = *o->padding == 'S';
        m->out[i] = same       ? n / m->strides[i] + (n % m->strides[i] != 0)
                    : n < span ? 0
                               : (n - span) / m->strides[i] + 1;
        const int64_t missing = m->out[i] ? (m->out[i] - 1) * m->strides[i] + span - n : 0;
        m->before[i] = same && missing > 0 ? missing / 2 : 0;
        m->after[i] = same && missing > 0 ? missing - m->before[i] : 0;
    }
    return true;
}

/* The windows of x, [batch, h', w', taps, channels]; cells around it are 0. */
static ed_tensor *windows_of(const morphology *m, ed_tensor *x)
{
    const int64_t before[] = {0, m->before[0], m->before[1]},
                  after[] = {0, m->after[0], m->after[1]};
    ed_tensor *wide = ed_pad(x, .before = {before, 3}, .after = {after, 3});
    ed_tensor *patches = ed_extract_patches(wide, .sizes = {m->extent, 2},
                                            .strides = {m->strides, 2}, .rates = {m->dilations, 2});
    return ed_reshape(patches, ED_SHAPE(ed_dim(x, 0), m->out[0], m->out[1],
                                        m->extent[0] * m->extent[1], ed_dim(x, 3)));
}

/* max over the window of x + filters */
static ed_tensor *dilated(const morphology *m, ed_tensor *x, ed_tensor *filters)
{
    const int64_t taps = m->extent[0] * m->extent[1];
    ed_tensor *rows = ed_reshape(filters, ED_SHAPE(taps, ed_dim(x, 3)));
    ed_tensor *sums = ed_add(windows_of(m, x), rows);
    if (m->before[0] || m->after[0] || m->before[1] || m->after[1]) {
        ed_tensor *inside = ed_greater(windows_of(m, ed_ones_like(x)), 0);
        sums = ed_where(inside, sums, -INFINITY);
    }
    return ed_reduce_max(sums, .axis = ED_AXES(3));
}

/* ---- Where nobody differentiates ------------------------------------------------------------- */

#define MORPHOLOGY_ATTRS(FIELD, T)                                                                 \
    ED_MORPHOLOGY_OPTIONS(FIELD, T)                                                                \
    FIELD(T, BOOL, minimum, false, ED_ANY, "erosion2d")
ED_OPTIONS(morphology_attrs, MORPHOLOGY_ATTRS);

static bool dilate_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    morphology m;
    if (!morphology_of(call, &m)) return false;
    const int64_t shape[] = {x->shape[0], m.out[0], m.out[1], x->shape[3]};
    window *w = ed_call_plan(call, sizeof *w);
    if (!w) return false;
    *w = (window){.batch = shape[0], .channels = shape[3]};
    for (int i = 0; i < 2; i++) {
        w->image[i] = x->shape[i + 1];
        w->extent[i] = m.extent[i];
        w->stride[i] = m.strides[i];
        w->dilation[i] = m.dilations[i];
        w->before[i] = m.before[i];
        w->out[i] = m.out[i];
    }
    return ed_call_output(call, 0, x->dtype, 4, shape);
}

/* Rows of windows, numbered through all images. */
static void morphology_range(int64_t first, int64_t last, int worker, void *user)
{
    const morphology_work *p = user;
    const window *w = &p->w;
    const int64_t bytes = w->channels * p->bytes;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t oh = i % w->out[0];
        morphology_row r = {.work = p, .y = p->y + i * w->out[1] * bytes};
        window_taps(w, 0, oh, &r.taps[0], &r.taps[1]);
        const int64_t row = oh * w->stride[0] - w->before[0] + r.taps[0] * w->dilation[0];
        r.x = p->x + (i / w->out[0] * w->image[0] + row) * w->image[1] * bytes;
        p->row(&r);
    }
}

/* Each tap's channels, over and over; the last tap first for a minimum. */
static char *laid_out(const morphology_work *p, const ed_tensor *filters, bool minimum)
{
    const int64_t channels = p->w.channels * p->bytes, taps = p->w.extent[0] * p->w.extent[1];
    char *all = memory_alloc((size_t)(taps * p->period * p->bytes));
    for (int64_t i = 0; all && i < taps; i++)
        for (int64_t at = 0; at < p->period * p->bytes; at += channels)
            memcpy(all + i * p->period * p->bytes + at,
                   filters->data + (minimum ? taps - 1 - i : i) * channels, (size_t)channels);
    return all;
}

static bool dilate_kernel(ed_call *call)
{
    static const morphology_loops *const tables[ISA_COUNT] = ISA_TABLE(morphology_table);
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    if (!y->size) return true;
    const morphology_loops *loops = &tables[isa_level][x->dtype];
    const bool minimum = ((const morphology_attrs *)call->attrs)->minimum;
    morphology_work p = {.w = *(const window *)call->plan,
                         .x = x->data,
                         .y = y->data,
                         .bytes = (int64_t)dtype_size(x->dtype),
                         .row = loops->row[minimum]};
    for (p.period = p.w.channels; p.period % loops->lanes;) p.period += p.w.channels;
    char *taps = laid_out(&p, call->inputs[1], minimum);
    if (!taps) return false;
    p.taps = taps;
    const int64_t rows = p.w.batch * p.w.out[0],
                  work = p.w.out[1] * p.w.channels * p.w.extent[0] * p.w.extent[1];
    threads_run(rows, rows * work > OPS_PARALLEL_WORK ? 1 + OPS_PARALLEL_WORK / 2 / work : rows,
                morphology_range, &p);
    memory_free(taps);
    return true;
}

extern const ed_op ed_op_dilate;

/* A minimum: -dilation2d(-x, the filters turned). */
static bool morphology_compose(ed_call *call, bool minimum)
{
    const ed_morphology_options *o = call->attrs;
    ed_tensor *x = call->inputs[0], *filters = call->inputs[1];
    morphology m;
    if (!morphology_of(call, &m)) return false;
    if (!ops_differentiated())
        return ed_call_result(
            call, 0,
            CALL_OP(dilate,
                    ED_OPTIONS_FROM(ED_MORPHOLOGY_OPTIONS, o, morphology_attrs, .minimum = minimum),
                    x, filters));
    if (!minimum) return ed_call_result(call, 0, dilated(&m, x, filters));
    ed_tensor *turned = ed_reverse(filters, ED_AXES(0, 1));
    return ed_call_result(call, 0, ed_neg(dilated(&m, ed_neg(x), turned)));
}

static bool dilation2d_compose(ed_call *call)
{
    return morphology_compose(call, false);
}

static bool erosion2d_compose(ed_call *call)
{
    return morphology_compose(call, true);
}

/* ---- The reference --------------------------------------------------------------------------- */

/* The value of one window, whose first cell is (h, w): the sign is -1 for a minimum. */
static double morphology_value(const ed_call *call, const morphology *m, int64_t image, int64_t h,
                               int64_t w, int64_t c, double sign)
{
    const ed_tensor *x = call->inputs[0], *filters = call->inputs[1];
    double value = -INFINITY;
    for (int64_t i = 0; i < m->extent[0]; i++)
        for (int64_t j = 0; j < m->extent[1]; j++) {
            const int64_t y = h + i * m->dilations[0], z = w + j * m->dilations[1];
            if (y < 0 || y >= x->shape[1] || z < 0 || z >= x->shape[2]) continue;
            const int64_t fi = sign < 0 ? m->extent[0] - 1 - i : i,
                          fj = sign < 0 ? m->extent[1] - 1 - j : j;
            const double cell =
                ((const double *)
                     x->data)[((image * x->shape[1] + y) * x->shape[2] + z) * x->shape[3] + c];
            const double tap =
                ((const double *)filters->data)[(fi * m->extent[1] + fj) * x->shape[3] + c];
            const double v = sign * cell + tap;
            value = isnan(value) || isnan(v) ? NAN : fmax(value, v);
        }
    return sign * value;
}

static bool morphology_reference(const ed_call *call, double sign)
{
    const ed_tensor *y = call->outputs[0];
    morphology m;
    if (!morphology_of(call, &m)) return false;
    for (int64_t e = 0; e < y->size; e++) {
        const int64_t c = e % y->shape[3], w = e / y->shape[3] % y->shape[2],
                      h = e / y->shape[3] / y->shape[2] % y->shape[1],
                      image = e / y->shape[3] / y->shape[2] / y->shape[1];
        ((double *)y->data)[e] = morphology_value(call, &m, image, h * m.strides[0] - m.before[0],
                                                  w * m.strides[1] - m.before[1], c, sign);
    }
    return true;
}

static bool dilate_reference(const ed_call *call)
{
    return morphology_reference(call, ((const morphology_attrs *)call->attrs)->minimum ? -1 : 1);
}

static bool dilation2d_reference(const ed_call *call)
{
    return morphology_reference(call, 1);
}

static bool erosion2d_reference(const ed_call *call)
{
    return morphology_reference(call, -1);
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define MORPHOLOGY_OPERANDS                                                                        \
    {                                                                                              \
        {"x", ED_SET_FLOAT, 'T'},                                                                  \
        {                                                                                          \
            "filters", ED_SET_FLOAT, 'T'                                                           \
        }                                                                                          \
    }
#define SAMPLE_INPUTS                                                                              \
    {                                                                                              \
        ED_DISTINCT_IN(-2, 2, 1, 4, 5, 2), ED_DISTINCT_IN(-1.03, 1, 2, 3, 2)                       \
    }
#define SAMPLE_STRIDED                                                                             \
    {                                                                                              \
        ED_DISTINCT_IN(-2, 2, 2, 5, 4, 1), ED_DISTINCT_IN(-1.03, 1, 3, 2, 1)                       \
    }
#define STRIDED_SAME                                                                               \
    .strides = ED_SAMPLE_INTS(2, 1), .dilations = ED_SAMPLE_INTS(1, 2), .padding = "SAME"
#define MORPHOLOGY                                                                                 \
    .operands = MORPHOLOGY_OPERANDS, ED_OP_ATTRS(ED_MORPHOLOGY_OPTIONS, ed_morphology_options),    \
    .samples = ED_SAMPLES(                                                                         \
        {.inputs = SAMPLE_INPUTS},                                                                 \
        {.inputs = SAMPLE_STRIDED,                                                                 \
         .attrs = ED_ATTRS(ED_MORPHOLOGY_OPTIONS, ed_morphology_options, STRIDED_SAME)})

ED_OP(dilation2d) = {.name = "dilation2d",
                     .doc = "y = max over the window of x + filters",
                     .compose = dilation2d_compose,
                     .reference = dilation2d_reference,
                     MORPHOLOGY};
ED_OP(erosion2d) = {.name = "erosion2d",
                    .doc = "y = min over the window of x - filters, turned by 180 degrees",
                    .compose = erosion2d_compose,
                    .reference = erosion2d_reference,
                    MORPHOLOGY};

ED_OP(dilate) = {
    .name = "dilate",
    .doc = "dilation2d or erosion2d",
    .operands = MORPHOLOGY_OPERANDS,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(MORPHOLOGY_ATTRS, morphology_attrs),
    .infer = dilate_infer,
    .batch = batch_first_examples,
    .kernel = dilate_kernel,
    .no_gradient = "dilation2d and erosion2d are made of other ops where they need one",
    .reference = dilate_reference,
    .samples = ED_SAMPLES(
        {.inputs = SAMPLE_INPUTS},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 30, 3), ED_SAMPLE_IN(-1, 1, 3, 3, 3)},
         .attrs = ED_ATTRS(MORPHOLOGY_ATTRS, morphology_attrs, .padding = "SAME")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 4, 21), ED_SAMPLE_IN(-1, 1, 2, 2, 21)},
         .attrs = ED_ATTRS(MORPHOLOGY_ATTRS, morphology_attrs, .dilations = ED_SAMPLE_INTS(2),
                           .padding = "SAME", .minimum = true)},
        {.inputs = SAMPLE_STRIDED,
         .attrs = ED_ATTRS(MORPHOLOGY_ATTRS, morphology_attrs, STRIDED_SAME, .minimum = true)}),
};

ed_tensor *ed_dilation2d_with(ed_tensor *x, ed_tensor *filters,
                              const ed_morphology_options *options)
{
    return CALL_OP(dilation2d, options, x, filters);
}

ed_tensor *ed_erosion2d_with(ed_tensor *x, ed_tensor *filters, const ed_morphology_options *options)
{
    return CALL_OP(erosion2d, options, x, filters);
}

#endif
