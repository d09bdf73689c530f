/* dilation2d, erosion2d: the maximum over windows of x + filters, a composition of
 * extract_patches. */
#include "ops/conv.h"
#include <math.h>

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

static bool dilation2d_compose(ed_call *call)
{
    morphology m;
    return morphology_of(call, &m) &&
           ed_call_result(call, 0, dilated(&m, call->inputs[0], call->inputs[1]));
}

/* -dilation2d(-x, the filters turned) */
static bool erosion2d_compose(ed_call *call)
{
    morphology m;
    if (!morphology_of(call, &m)) return false;
    ed_tensor *turned = ed_reverse(call->inputs[1], ED_AXES(0, 1));
    return ed_call_result(call, 0, ed_neg(dilated(&m, ed_neg(call->inputs[0]), turned)));
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

static bool dilation2d_reference(const ed_call *call)
{
    return morphology_reference(call, 1);
}

static bool erosion2d_reference(const ed_call *call)
{
    return morphology_reference(call, -1);
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define MORPHOLOGY                                                                                 \
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"filters", ED_SET_FLOAT, 'T'}},                        \
    ED_OP_ATTRS(ED_MORPHOLOGY_OPTIONS, ed_morphology_options),                                     \
    .samples = ED_SAMPLES(                                                                         \
        {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 4, 5, 2), ED_DISTINCT_IN(-1.03, 1, 2, 3, 2)}},        \
        {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 5, 4, 1), ED_DISTINCT_IN(-1.03, 1, 3, 2, 1)},         \
         .attrs = ED_ATTRS(ED_MORPHOLOGY_OPTIONS, ed_morphology_options,                           \
                           .strides = ED_SAMPLE_INTS(2, 1), .dilations = ED_SAMPLE_INTS(1, 2),     \
                           .padding = "SAME")})

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

ed_tensor *ed_dilation2d_with(ed_tensor *x, ed_tensor *filters,
                              const ed_morphology_options *options)
{
    return CALL_OP(dilation2d, options, x, filters);
}

ed_tensor *ed_erosion2d_with(ed_tensor *x, ed_tensor *filters, const ed_morphology_options *options)
{
    return CALL_OP(erosion2d, options, x, filters);
}
