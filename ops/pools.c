/*
 * Pooling with one and three spatial axes, made of that with two: of three axes the last two are
 * pooled first and then the first, which gives the same maxima, the same first of equals, and the
 * same means, because the number of cells along one axis doesn't depend on the others.
 */
#include "ops/conv.h"
#include <math.h>
#include <string.h>

/* What the options say of `rank` axes. */
typedef struct pools {
    int rank;
    bool first; /* channels */
    const char *padding;
    int64_t window[3], strides[3], dilations[3], paddings[6];
} pools;

static bool read_pools(const ed_call *call, const ed_pool3d_options *o, int rank, pools *p)
{
    const ed_tensor *x = call->inputs[0];
    const ed_ints pads = o->explicit_paddings;
    *p = (pools){
        .rank = rank, .first = window_channels_first(o->data_format), .padding = o->padding};
    if (ed_rank(x) != rank + 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank %d, got %s", rank + 2,
                            text_of_ints(ed_shape(x).values, ed_rank(x)).s);
    if (!strcmp(o->padding, "EXPLICIT") != (pads.values != NULL) ||
        (pads.values && pads.count != 2 * rank))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "padding 'EXPLICIT' goes with %d explicit_paddings, before and after "
                            "each axis; got padding '%s' and %s",
                            2 * rank, o->padding, text_of_ints(pads.values, pads.count).s);
    if (!spatial_numbers(call, "window", o->window, rank, 2, 1, p->window) ||
        !spatial_numbers(call, "strides", o->strides, rank, 1, 1, p->strides) ||
        !spatial_numbers(call, "dilations", o->dilations, rank, 1, 1, p->dilations) ||
        !spatial_numbers(call, "explicit_paddings", pads, 2 * rank, 0, 0, p->paddings))
        return false;
    if (!o->strides.values) memcpy(p->strides, p->window, sizeof p->strides);
    return true;
}

typedef ed_tensor *pool_function(ed_tensor *x, const ed_pool2d_options *options);

/* Pools axes i and j of the options, one of which may be -1: that axis of x stays. */
static ed_tensor *pool_axes(const pools *p, ed_tensor *x, int i, int j, pool_function *pool)
{
    const int64_t sizes[] = {i < 0 ? 1 : p->window[i], j < 0 ? 1 : p->window[j]},
                  strides[] = {i < 0 ? 1 : p->strides[i], j < 0 ? 1 : p->strides[j]},
                  dilations[] = {i < 0 ? 1 : p->dilations[i], j < 0 ? 1 : p->dilations[j]},
                  paddings[] = {i < 0 ? 0 : p->paddings[2 * i], i < 0 ? 0 : p->paddings[2 * i + 1],
                                j < 0 ? 0 : p->paddings[2 * j], j < 0 ? 0 : p->paddings[2 * j + 1]};
    return pool(
        x,
        ED_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options, .window = {sizes, 2},
                 .strides = {strides, 2}, .dilations = {dilations, 2}, .padding = p->padding,
                 .explicit_paddings = {strcmp(p->padding, "EXPLICIT") != 0 ? NULL : paddings, 4}));
}

static ed_tensor *pool_line(const pools *p, ed_tensor *x, pool_function *pool)
{
    ed_tensor *y = pool_axes(p, ed_expand_dims(x, 1), -1, 0, pool);
    return y ? ed_squeeze(y, .axis = ED_AXES(1)) : NULL;
}

static ed_tensor *pool_volume(const ed_call *call, const pools *p, ed_tensor *x,
                              pool_function *pool)
{
    const int64_t *s = ed_shape(x).values, c = s[4];
    int64_t planes, cells;
    if (__builtin_mul_overflow(s[0], s[1], &planes) || __builtin_mul_overflow(s[2], s[3], &cells))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x is too large"), NULL;
    ed_tensor *y = pool_axes(p, ed_reshape(x, ED_SHAPE(planes, s[2], s[3], c)), 1, 2, pool);
    if (!y) return NULL;
    const int64_t h = ed_dim(y, 1), w = ed_dim(y, 2);
    y = pool_axes(p, ed_reshape(y, ED_SHAPE(s[0], s[1], h * w, c)), 0, -1, pool);
    return y ? ed_reshape(y, ED_SHAPE(s[0], ed_dim(y, 1), h, w, c)) : NULL;
}

static bool pools_compose(ed_call *call, const ed_pool3d_options *o, int rank, pool_function *pool)
{
    pools p;
    if (!read_pools(call, o, rank, &p)) return false;
    ed_tensor *x = spatial_last(call->inputs[0], p.first);
    if (!x) return false;
    ed_tensor *y = rank == 1 ? pool_line(&p, x, pool) : pool_volume(call, &p, x, pool);
    return ed_call_result(call, 0, spatial_first(y, p.first));
}

/* ---- The reference --------------------------------------------------------------------------- */

/* Window o along an axis of `size` cells that has `out` windows: cell i, -1 outside. */
static int64_t pools_cell(const pools *p, int axis, int64_t size, int64_t out, int64_t o, int64_t i)
{
    const int64_t span = (p->window[axis] - 1) * p->dilations[axis] + 1;
    const int64_t missing = (out - 1) * p->strides[axis] + span - size;
    const int64_t before =
        !strcmp(p->padding, "SAME") ? (missing > 0 ? missing / 2 : 0) : p->paddings[2 * axis];
    const int64_t at = o * p->strides[axis] - before + i * p->dilations[axis];
    return at < 0 || at >= size ? -1 : at;
}

/* Along an axis, by axis: the pooled one element at a time over the whole window. */
static double pools_value(const pools *p, const ed_tensor *x, const ed_tensor *y, const int64_t *at,
                          bool maximum)
{
    const int axis = p->first ? 2 : 1, channel = p->first ? 1 : p->rank + 1;
    int64_t cells = 1, count = 0;
    double value = maximum ? -INFINITY : 0;
    for (int i = 0; i < p->rank; i++) cells *= p->window[i];
    for (int64_t e = 0; e < cells; e++) {
        int64_t rest = e, offset = at[0] * x->strides[0] + at[channel] * x->strides[channel];
        bool inside = true;
        for (int i = p->rank - 1; i >= 0; i--) {
            const int64_t cell = pools_cell(p, i, x->shape[axis + i], y->shape[axis + i],
                                            at[axis + i], rest % p->window[i]);
            rest /= p->window[i];
            inside = inside && cell >= 0;
            offset += cell * x->strides[axis + i];
        }
        if (!inside) continue;
        const double v = ((const double *)x->data)[offset];
        count++;
        if (!maximum)
            value += v;
        else if (v > value || isnan(v))
            value = isnan(value) ? value : v;
    }
    return maximum ? value : value / (double)(count ? count : 1);
}

static bool pools_reference(const ed_call *call, const ed_pool3d_options *o, int rank, bool maximum)
{
    const ed_tensor *y = call->outputs[0];
    pools p;
    if (!read_pools(call, o, rank, &p)) return false;
    for (int64_t e = 0; e < y->size; e++) {
        int64_t at[5], rest = e;
        for (int i = rank + 1; i >= 0; i--) {
            at[i] = rest % y->shape[i];
            rest /= y->shape[i];
        }
        ((double *)y->data)[e] = pools_value(&p, call->inputs[0], y, at, maximum);
    }
    return true;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define POOLS(name, rank, pool, maximum)                                                           \
    static bool name##_compose(ed_call *call)                                                      \
    {                                                                                              \
        const ed_pool##rank##d_options *o = call->attrs;                                           \
        return pools_compose(call, POOLS_OPTIONS(o), rank, pool);                                  \
    }                                                                                              \
    static bool name##_reference(const ed_call *call)                                              \
    {                                                                                              \
        const ed_pool##rank##d_options *o = call->attrs;                                           \
        return pools_reference(call, POOLS_OPTIONS(o), rank, maximum);                             \
    }                                                                                              \
    ed_tensor *ed_##name##_with(ed_tensor *x, const ed_pool##rank##d_options *options)             \
    {                                                                                              \
        return CALL_OP(name, options, x);                                                          \
    }
#define POOLS_OPTIONS(o)                                                                           \
    ED_OPTIONS_FROM(ED_POOL_OPTIONS, o, ed_pool3d_options, .data_format = (o)->data_format)

extern const ed_op ed_op_max_pool1d, ed_op_avg_pool1d, ed_op_max_pool3d, ed_op_avg_pool3d;
POOLS(max_pool1d, 1, ed_max_pool2d_with, true)
POOLS(avg_pool1d, 1, ed_avg_pool2d_with, false)
POOLS(max_pool3d, 3, ed_max_pool2d_with, true)
POOLS(avg_pool3d, 3, ed_avg_pool2d_with, false)

#define POOL_OP(symbol, LIST, T, text)                                                             \
    .name = #symbol, .doc = text, .operands = {{"x", ED_SET_FLOAT, 'T'}}, ED_OP_ATTRS(LIST, T),    \
    .compose = symbol##_compose, .reference = symbol##_reference
#define LINE_SAMPLES(IN)                                                                           \
    ED_SAMPLES(                                                                                    \
        {.inputs = {IN(-2, 2, 2, 5, 3)}},                                                          \
        {.inputs = {IN(-2, 2, 2, 3, 6)},                                                           \
         .attrs = ED_ATTRS(ED_POOL1D_OPTIONS, ed_pool1d_options, .window = ED_SAMPLE_INTS(3),      \
                           .strides = ED_SAMPLE_INTS(1), .dilations = ED_SAMPLE_INTS(2),           \
                           .padding = "EXPLICIT", .explicit_paddings = ED_SAMPLE_INTS(2, 1),       \
                           .data_format = "NCW")})
#define VOLUME_SAMPLES(IN)                                                                         \
    ED_SAMPLES({.inputs = {IN(-2, 2, 1, 4, 5, 3, 2)},                                              \
                .attrs = ED_ATTRS(ED_POOL3D_OPTIONS, ed_pool3d_options,                            \
                                  .strides = ED_SAMPLE_INTS(2, 1, 3), .padding = "SAME")},         \
               {.inputs = {IN(-2, 2, 1, 2, 3, 4, 5)},                                              \
                .attrs = ED_ATTRS(ED_POOL3D_OPTIONS, ed_pool3d_options,                            \
                                  .window = ED_SAMPLE_INTS(2, 3, 1), .data_format = "NCDHW")})

ED_OP(max_pool1d) = {
    POOL_OP(max_pool1d, ED_POOL1D_OPTIONS, ed_pool1d_options, "y = the largest x of each window"),
    .samples = LINE_SAMPLES(ED_DISTINCT_IN)};
ED_OP(avg_pool1d) = {
    POOL_OP(avg_pool1d, ED_POOL1D_OPTIONS, ed_pool1d_options, "y = the mean x of each window"),
    .samples = LINE_SAMPLES(ED_SAMPLE_IN)};
ED_OP(max_pool3d) = {
    POOL_OP(max_pool3d, ED_POOL3D_OPTIONS, ed_pool3d_options, "y = the largest x of each window"),
    .samples = VOLUME_SAMPLES(ED_DISTINCT_IN)};
ED_OP(avg_pool3d) = {
    POOL_OP(avg_pool3d, ED_POOL3D_OPTIONS, ed_pool3d_options, "y = the mean x of each window"),
    .samples = VOLUME_SAMPLES(ED_SAMPLE_IN)};
