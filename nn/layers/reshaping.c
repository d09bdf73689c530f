#include "nn/layers/windows.h"
#include "ops/ops.h"
#include <string.h>

/* ---- All axes behind the first --------------------------------------------------------------- */

/* Checks the rank alone; false, with an error. */
static bool has_rank(const ed_layer *layer, const ed_tensor *x, int rank, bool more)
{
    if (x->rank == rank || (more && x->rank > rank)) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must have rank %s%d, got %s",
                      more ? ">= " : "", rank, text_of_tensor(x).s);
}

static bool flatten_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_flatten_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!has_rank(layer, x, 1, true)) return false;
    int64_t rest = 1;
    for (int i = 1; i < x->rank; i++) rest *= x->shape[i];
    x = layer_channels_to_last(x, layer_channels_first(o->data_format) && x->rank > 2);
    return ed_layer_return(call, ed_reshape(x, ED_SHAPE(call->inputs[0]->shape[0], rest)));
}

LAYER(flatten, FLATTEN, 0, "[batch, ...] to [batch, product of the other sizes]",
      .forward = flatten_forward,
      .samples = LAYER_SAMPLES({.inputs = {{3, {2, 3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(flatten, FLATTEN,
                                                   .data_format = "channels_first"),
                                .inputs = {{4, {2, 3, 2, 2}}},
                                .n_inputs = 1}))

static bool reshape_init(ed_layer *layer)
{
    const ed_layer_reshape_options *o = layer_options(layer);
    int left = 0;
    for (int64_t i = 0; i < o->target_shape.count; i++) left += o->target_shape.values[i] < 0;
    if (o->target_shape.values && o->target_shape.count < ED_MAX_RANK && left < 2) return true;
    return ed_fail(ED_INVALID_ARGUMENT,
                   "reshape: target_shape must be a list of less than %d sizes, one of which may "
                   "be -1; got %s",
                   ED_MAX_RANK, text_of_ints(o->target_shape.values, o->target_shape.count).s);
}

/* The size in place of -1, such that the sizes multiply to those of x without the batch; -1, with
 * an error, if there is none. Without -1 the result has no meaning but its sign. */
static int64_t what_is_left(const ed_layer *layer, const ed_tensor *x, ed_ints target)
{
    int64_t size = 1, known = 1;
    bool fits = true, left = false;
    for (int i = 1; i < x->rank; i++) size *= x->shape[i];
    for (int64_t i = 0; i < target.count; i++) {
        if (target.values[i] < 0)
            left = true;
        else
            fits &= !__builtin_mul_overflow(known, target.values[i], &known);
    }
    fits = fits && (left ? known > 0 && size % known == 0 : known == size);
    if (fits) return left ? size / known : 0;
    layer_fail(layer, ED_INVALID_ARGUMENT, "target_shape %s does not fit the input %s",
               text_of_ints(target.values, target.count).s, text_of_tensor(x).s);
    return -1;
}

static bool reshape_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_reshape_options *o = layer_options(layer);
    const ed_ints target = o->target_shape;
    ed_tensor *x = call->inputs[0];
    if (!has_rank(layer, x, 1, true)) return false;
    const int64_t left = what_is_left(layer, x, target);
    if (left < 0) return false;
    int64_t shape[ED_MAX_RANK] = {x->shape[0]};
    for (int64_t i = 0; i < target.count; i++)
        shape[i + 1] = target.values[i] < 0 ? left : target.values[i];
    return ed_layer_return(call, ed_reshape(x, ((ed_ints){shape, target.count + 1})));
}

LAYER(reshape, RESHAPE, 1, "[batch, ...] to [batch, target_shape...]", .init = reshape_init,
      .forward = reshape_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(reshape, RESHAPE,
                                                   .target_shape = ED_SAMPLE_INTS(2, -1)),
                                .inputs = {{3, {2, 3, 4}}},
                                .n_inputs = 1}))

static bool permute_init(ed_layer *layer)
{
    const ed_layer_permute_options *o = layer_options(layer);
    const int64_t n = o->dims.count;
    unsigned seen = 1;
    bool ok = o->dims.values && n < ED_MAX_RANK;
    for (int64_t i = 0; ok && i < n; i++) {
        const int64_t axis = o->dims.values[i];
        ok = axis >= 1 && axis <= n && !(seen >> axis & 1);
        if (ok) seen |= 1u << axis;
    }
    return ok || ed_fail(ED_INVALID_ARGUMENT,
                         "permute: dims must be the axes behind the first one, each once; got %s",
                         text_of_ints(o->dims.values, n).s);
}

static bool permute_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_permute_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    int64_t axes[ED_MAX_RANK] = {0};
    if (!has_rank(layer, x, (int)o->dims.count + 1, false)) return false;
    if (o->dims.count) memcpy(axes + 1, o->dims.values, (size_t)o->dims.count * sizeof *axes);
    return ed_layer_return(call, ed_transpose(x, .perm = {axes, x->rank}));
}

LAYER(permute, PERMUTE, 1, "the axes but the first in another order", .init = permute_init,
      .forward = permute_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(permute, PERMUTE, .dims = ED_SAMPLE_INTS(2, 1)),
                                .inputs = {{3, {2, 3, 4}}},
                                .n_inputs = 1}))

static bool repeat_vector_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_repeat_vector_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    return has_rank(layer, x, 2, false) &&
           ed_layer_return(call, ed_tile(ed_expand_dims(x, 1), ED_INTS(1, o->n, 1)));
}

LAYER(repeat_vector, REPEAT_VECTOR, 1, "[batch, features] to [batch, n, features]",
      .forward = repeat_vector_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(repeat_vector, REPEAT_VECTOR, .n = 3),
                                .inputs = {{2, {2, 3}}},
                                .n_inputs = 1}))

/* ---- Around the spatial axes ----------------------------------------------------------------- */

typedef struct margins {
    int rank, first; /* number of spatial axes, and the first of them */
    int64_t before[ED_MAX_RANK], after[ED_MAX_RANK];
} margins;

static bool margins_init(ed_layer *layer, const char *option, ed_ints given, int64_t otherwise,
                         const char *data_format)
{
    margins *m = ed_layer_state(layer);
    layer_margins read;
    m->rank = layer_spatial_rank(layer);
    m->first = layer_spatial_axis(data_format && layer_channels_first(data_format));
    if (!layer_read_margins(layer, option, given, otherwise, &read)) return false;
    memcpy(m->before + m->first, read.before, (size_t)m->rank * sizeof *m->before);
    memcpy(m->after + m->first, read.after, (size_t)m->rank * sizeof *m->after);
    return true;
}

static bool zero_padding_init(ed_layer *layer)
{
    const ed_layer_zero_padding2d_options *o = layer_options(layer);
    return margins_init(layer, "padding", o->padding, 1, o->data_format);
}

static bool zero_padding_forward(ed_layer *layer, ed_layer_call *call)
{
    const margins *m = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    return has_rank(layer, x, m->rank + 2, false) &&
           ed_layer_return(call,
                           ed_pad(x, .before = {m->before, x->rank}, .after = {m->after, x->rank}));
}

static bool cropping1d_init(ed_layer *layer)
{
    const ed_layer_cropping1d_options *o = layer_options(layer);
    return margins_init(layer, "cropping", o->cropping, 1, NULL);
}

/* cropping2d and 3d have one list of options. */
static bool cropping_init(ed_layer *layer)
{
    const ed_layer_cropping2d_options *o = layer_options(layer);
    return margins_init(layer, "cropping", o->cropping, layer_spatial_rank(layer) == 3,
                        o->data_format);
}

static bool cropping_forward(ed_layer *layer, ed_layer_call *call)
{
    const margins *m = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    int64_t end[ED_MAX_RANK];
    if (!has_rank(layer, x, m->rank + 2, false)) return false;
    for (int i = 0; i < x->rank; i++) {
        end[i] = x->shape[i] - m->after[i];
        if (m->before[i] + m->after[i] > 0 &&
            (m->before[i] >= x->shape[i] || end[i] <= m->before[i]))
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "cropping %lld and %lld cells leaves nothing of axis %d of %s",
                              (long long)m->before[i], (long long)m->after[i], i,
                              text_of_tensor(x).s);
    }
    return ed_layer_return(call, ed_slice(x, .begin = {m->before, x->rank}, .end = {end, x->rank}));
}

#define MARGINS(symbol, SYMBOL, text, begin, call, ...)                                            \
    LAYER(symbol, SYMBOL, 0, text, .state_size = sizeof(margins), .init = begin##_init,            \
          .forward = call##_forward, .samples = LAYER_SAMPLES(__VA_ARGS__))

MARGINS(zero_padding1d, ZERO_PADDING1D, "zeros before and after the steps", zero_padding,
        zero_padding, {.inputs = {{3, {2, 3, 2}}}, .n_inputs = 1},
        {.options = OPTIONS(zero_padding1d, ZERO_PADDING1D, .padding = ED_SAMPLE_INTS(0, 2),
                            .data_format = "channels_first"),
         .inputs = {{3, {2, 3, 2}}},
         .n_inputs = 1})
MARGINS(zero_padding2d, ZERO_PADDING2D, "zeros around height and width", zero_padding, zero_padding,
        {.inputs = {{4, {1, 3, 2, 2}}}, .n_inputs = 1},
        {.options = OPTIONS(zero_padding2d, ZERO_PADDING2D, .padding = ED_SAMPLE_INTS(0, 2, 1, 0),
                            .data_format = "channels_first"),
         .inputs = {{4, {1, 3, 2, 2}}},
         .n_inputs = 1})
MARGINS(zero_padding3d, ZERO_PADDING3D, "zeros around depth, height and width", zero_padding,
        zero_padding,
        {.options = OPTIONS(zero_padding3d, ZERO_PADDING3D, .padding = ED_SAMPLE_INTS(1, 0, 2)),
         .inputs = {{5, {1, 1, 2, 2, 2}}},
         .n_inputs = 1})
MARGINS(cropping1d, CROPPING1D, "steps cut off at the begin and end", cropping1d, cropping,
        {.inputs = {{3, {2, 4, 2}}}, .n_inputs = 1})
MARGINS(cropping2d, CROPPING2D, "cells cut off around height and width", cropping, cropping,
        {.options = OPTIONS(cropping2d, CROPPING2D, .cropping = ED_SAMPLE_INTS(1, 0, 1, 2),
                            .data_format = "channels_first"),
         .inputs = {{4, {1, 2, 3, 4}}},
         .n_inputs = 1})
MARGINS(cropping3d, CROPPING3D, "cells cut off around depth, height and width", cropping, cropping,
        {.inputs = {{5, {1, 3, 4, 3, 2}}}, .n_inputs = 1})

/* ---- Larger ---------------------------------------------------------------------------------- */

typedef struct up {
    int rank, first; /* number of spatial axes, and the first of them */
    int64_t size[WINDOW_RANKS];
} up;

static bool up_init(ed_layer *layer, ed_ints size, const char *data_format)
{
    up *u = ed_layer_state(layer);
    u->rank = layer_spatial_rank(layer);
    u->first = layer_spatial_axis(data_format && layer_channels_first(data_format));
    return layer_sizes(layer, "size", size, 1, 2, u->size);
}

static bool up_sampling1d_init(ed_layer *layer)
{
    const ed_layer_up_sampling1d_options *o = layer_options(layer);
    return up_init(layer, o->size, NULL);
}

static bool up_sampling2d_init(ed_layer *layer)
{
    const ed_layer_up_sampling2d_options *o = layer_options(layer);
    return up_init(layer, o->size, o->data_format);
}

static bool up_sampling3d_init(ed_layer *layer)
{
    const ed_layer_up_sampling3d_options *o = layer_options(layer);
    return up_init(layer, o->size, o->data_format);
}

static bool repeat_forward(ed_layer *layer, ed_layer_call *call)
{
    const up *u = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!has_rank(layer, x, u->rank + 2, false)) return false;
    for (int i = 0; x && i < u->rank; i++)
        x = ed_repeat(x, ed_integer(u->size[i]), .axis = ED_AXES(u->first + i));
    return ed_layer_return(call, x);
}

static bool up_sampling2d_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_up_sampling2d_options *o = layer_options(layer);
    const up *u = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!strcmp(o->interpolation, "nearest")) return repeat_forward(layer, call);
    if (!layer_accepts(layer, x, 4, false)) return false;
    const bool first = layer_channels_first(o->data_format);
    int64_t size[2];
    for (int i = 0; i < 2; i++)
        if (__builtin_mul_overflow(x->shape[u->first + i], u->size[i], &size[i]))
            return layer_fail(layer, ED_INVALID_ARGUMENT, "the result would be too large");
    ed_tensor *y = ed_resize(layer_channels_to_last(x, first), ((ed_ints){size, 2}),
                             .method = o->interpolation);
    return ed_layer_return(call, layer_channels_to_first(y, first));
}

#define UP(symbol, SYMBOL, text, call, ...)                                                        \
    LAYER(symbol, SYMBOL, 0, text, .state_size = sizeof(up), .init = symbol##_init,                \
          .forward = call##_forward, .samples = LAYER_SAMPLES(__VA_ARGS__))

UP(up_sampling1d, UP_SAMPLING1D, "each step several times", repeat,
   {.inputs = {{3, {2, 3, 2}}}, .n_inputs = 1})
UP(up_sampling2d, UP_SAMPLING2D, "each pixel several times, or interpolated", up_sampling2d,
   {.inputs = {{4, {1, 2, 3, 2}}}, .n_inputs = 1},
   {.options = OPTIONS(up_sampling2d, UP_SAMPLING2D, .size = ED_SAMPLE_INTS(2, 3),
                       .interpolation = "bilinear", .data_format = "channels_first"),
    .inputs = {{4, {1, 2, 2, 3}}},
    .n_inputs = 1})
UP(up_sampling3d, UP_SAMPLING3D, "each cell several times", repeat,
   {.options = OPTIONS(up_sampling3d, UP_SAMPLING3D, .size = ED_SAMPLE_INTS(1, 2, 2),
                       .data_format = "channels_first"),
    .inputs = {{5, {1, 2, 1, 2, 2}}},
    .n_inputs = 1})
