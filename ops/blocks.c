/*
 * Blocks of space as channels or as batch: space_to_depth, depth_to_space, space_to_batch,
 * batch_to_space. Compositions: an axis is split into (blocks, block), the axes change places,
 * neighbours are joined, which copies once.
 */
#include "ops/shape.h"
#include <string.h>

#define ANY                                                                                        \
    {                                                                                              \
        {                                                                                          \
            "x", ED_SET_ALL, 'T'                                                                   \
        }                                                                                          \
    }

/* x seen in one shape, its axes in another order, seen in a third shape. */
static ed_tensor *regroup(ed_tensor *x, ed_ints split, ed_ints perm, ed_ints joined)
{
    return ed_reshape(ed_transpose(ed_reshape(x, split), .perm = perm), joined);
}

/* ---- Depth ----------------------------------------------------------------------------------- */

#define DEPTH_ATTRS(FIELD, T)                                                                      \
    FIELD(T, INT, block_size, 2, ED_AT_LEAST(1), "height and width of a block")                    \
    ED_DEPTH_OPTIONS(FIELD, T)
ED_OPTIONS(depth_attrs, DEPTH_ATTRS);

static bool channels_first(const void *attrs)
{
    return !strcmp(((const depth_attrs *)attrs)->data_format, "NCHW");
}

/* The sizes n, h, w, c of x, rank 4, of which h and w (or c) are multiples of the block's. */
static bool depth_sizes(const ed_call *call, bool to_depth, int64_t *nhwc)
{
    const ed_tensor *x = tensor_read(call->inputs[0]);
    const int64_t s = ((const depth_attrs *)call->attrs)->block_size;
    const bool first = channels_first(call->attrs);
    if (x->rank != 4)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank 4, got %s",
                            text_of_tensor(x).s);
    nhwc[0] = x->shape[0];
    nhwc[1] = x->shape[1 + first];
    nhwc[2] = x->shape[2 + first];
    nhwc[3] = x->shape[first ? 1 : 3];
    int64_t area;
    if (to_depth ? nhwc[1] % s || nhwc[2] % s
                 : __builtin_mul_overflow(s, s, &area) || nhwc[3] % area)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s of %s must be divisible by the block's, block_size is %lld",
                            to_depth ? "height and width" : "the number of channels",
                            text_of_tensor(x).s, (long long)s);
    return true;
}

static bool space_to_depth_compose(ed_call *call)
{
    const int64_t s = ((const depth_attrs *)call->attrs)->block_size;
    ed_tensor *x = call->inputs[0];
    int64_t d[4];
    if (!depth_sizes(call, true, d)) return false;
    const int64_t n = d[0], h = d[1] / s, w = d[2] / s, c = d[3];
    x = channels_first(call->attrs)
            ? regroup(x, ED_SHAPE(n, c, h, s, w, s), ED_AXES(0, 3, 5, 1, 2, 4),
                      ED_SHAPE(n, s * s * c, h, w))
            : regroup(x, ED_SHAPE(n, h, s, w, s, c), ED_AXES(0, 1, 3, 2, 4, 5),
                      ED_SHAPE(n, h, w, s * s * c));
    return ed_call_result(call, 0, x);
}

static bool depth_to_space_compose(ed_call *call)
{
    const int64_t s = ((const depth_attrs *)call->attrs)->block_size;
    ed_tensor *x = call->inputs[0];
    int64_t d[4], height, width;
    if (!depth_sizes(call, false, d)) return false;
    const int64_t n = d[0], h = d[1], w = d[2], c = d[3] / s / s;
    if (__builtin_mul_overflow(h, s, &height) || __builtin_mul_overflow(w, s, &width))
        return ed_call_fail(call, ED_OUT_OF_MEMORY, "block_size is too large");
    x = channels_first(call->attrs)
            ? regroup(x, ED_SHAPE(n, s, s, c, h, w), ED_AXES(0, 3, 4, 1, 5, 2),
                      ED_SHAPE(n, c, height, width))
            : regroup(x, ED_SHAPE(n, h, w, s, s, c), ED_AXES(0, 1, 3, 2, 4, 5),
                      ED_SHAPE(n, height, width, c));
    return ed_call_result(call, 0, x);
}

/* Channel k of the deep tensor is channel k % c at position k / c of the block. */
static int64_t depth_source(const ed_call *call, const ed_tensor *x, const int64_t *at,
                            bool to_depth)
{
    const int64_t s = ((const depth_attrs *)call->attrs)->block_size;
    const int first = channels_first(call->attrs), channel = first ? 1 : 3;
    const int64_t c = to_depth ? x->shape[channel] : x->shape[channel] / s / s;
    int64_t from[4] = {at[0]};
    int64_t *h = &from[1 + first], *w = &from[2 + first], k = at[channel];
    *h = at[1 + first];
    *w = at[2 + first];
    if (to_depth) {
        *h = *h * s + k / c / s;
        *w = *w * s + k / c % s;
        from[channel] = k % c;
    } else {
        from[channel] = (*h % s * s + *w % s) * c + k;
        *h /= s;
        *w /= s;
    }
    return shape_number(x, from);
}

static int64_t space_to_depth_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    return depth_source(call, x, at, true);
}

static int64_t depth_to_space_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    return depth_source(call, x, at, false);
}

static bool space_to_depth_plain(const ed_call *call)
{
    return shape_plain(call, space_to_depth_source, 0);
}

static bool depth_to_space_plain(const ed_call *call)
{
    return shape_plain(call, depth_to_space_source, 0);
}

#define DEPTH(...) ED_ATTRS(DEPTH_ATTRS, depth_attrs, __VA_ARGS__)

ED_OP(space_to_depth) = {
    .name = "space_to_depth",
    .doc = "blocks of height and width become channels",
    .operands = ANY,
    ED_OP_ATTRS(DEPTH_ATTRS, depth_attrs),
    .compose = space_to_depth_compose,
    .reference = space_to_depth_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 6, 2)},
                           .attrs = DEPTH(.block_size = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 6)},
                           .attrs = DEPTH(.block_size = 3, .data_format = "NCHW")}),
};

ED_OP(depth_to_space) = {
    .name = "depth_to_space",
    .doc = "channels become blocks of height and width",
    .operands = ANY,
    ED_OP_ATTRS(DEPTH_ATTRS, depth_attrs),
    .compose = depth_to_space_compose,
    .reference = depth_to_space_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 3, 8)},
                           .attrs = DEPTH(.block_size = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 12, 2, 3)},
                           .attrs = DEPTH(.block_size = 2, .data_format = "NCHW")}),
};

ed_tensor *ed_space_to_depth_with(ed_tensor *x, int64_t block_size, const ed_depth_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_DEPTH_OPTIONS, options);
    return CALL_OP(
        space_to_depth,
        ED_OPTIONS_FROM(ED_DEPTH_OPTIONS, options, depth_attrs, .block_size = block_size), x);
}

ed_tensor *ed_depth_to_space_with(ed_tensor *x, int64_t block_size, const ed_depth_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_DEPTH_OPTIONS, options);
    return CALL_OP(
        depth_to_space,
        ED_OPTIONS_FROM(ED_DEPTH_OPTIONS, options, depth_attrs, .block_size = block_size), x);
}
