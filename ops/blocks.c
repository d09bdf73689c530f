/*
 * Blocks of space as channels or as batch: space_to_depth, depth_to_space, space_to_batch,
 * batch_to_space. Compositions: an axis is split into (blocks, block), the axes change places,
 * neighbours are joined, which copies once.
 */
#include "ops/shape.h"
#include <string.h>

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
    .operands = SHAPE_OPERAND,
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
    .operands = SHAPE_OPERAND,
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

/* ---- Batch ----------------------------------------------------------------------------------- */

#define BLOCK_ATTRS(FIELD, T)                                                                      \
    FIELD(T, INTS, block_shape, ED_NO_LIST, ED_REQUIRED, "the block's size along axis 1, 2, ...")  \
    ED_BLOCK_OPTIONS(FIELD, T)
ED_OPTIONS(block_attrs, BLOCK_ATTRS);

/* Entry i of a list that may be shorter. */
static int64_t border(ed_ints list, int64_t i)
{
    return list.values && i < list.count ? list.values[i] : 0;
}

static bool check_border(const ed_call *call, const char *name, ed_ints list)
{
    const ed_ints block = ((const block_attrs *)call->attrs)->block_shape;
    bool fine = !list.values || list.count <= block.count;
    for (int64_t i = 0; fine && list.values && i < list.count; i++) fine = list.values[i] >= 0;
    return fine || ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "%s %s must have at most one number, >= 0, for each entry of "
                                "block_shape %s",
                                name, text_of_ints(list.values, list.count).s,
                                text_of_ints(block.values, block.count).s);
}

static bool blocks_too_large(const ed_call *call)
{
    const ed_ints block = ((const block_attrs *)call->attrs)->block_shape;
    return ed_call_fail(call, ED_OUT_OF_MEMORY, "block_shape %s is too large for %s",
                        text_of_ints(block.values, block.count).s,
                        text_of_tensor(tensor_read(call->inputs[0])).s);
}

/* Whether the lists suit x; *size is the number of elements of a block. */
static bool check_blocks(const ed_call *call, int64_t *size)
{
    const block_attrs *o = call->attrs;
    const ed_tensor *x = tensor_read(call->inputs[0]);
    const ed_ints block = o->block_shape;
    *size = 1;
    if (!block.values) return ed_call_fail(call, ED_INVALID_ARGUMENT, "block_shape is required");
    bool fine = block.count < x->rank;
    for (int64_t i = 0; fine && i < block.count; i++)
        fine = block.values[i] >= 1 && !__builtin_mul_overflow(*size, block.values[i], size);
    if (!fine)
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT,
            "block_shape %s must have numbers >= 1, at most one for each axis of x, "
            "%s, behind the first",
            text_of_ints(block.values, block.count).s, text_of_tensor(x).s);
    return check_border(call, "before", o->before) && check_border(call, "after", o->after);
}

/*
 * Moves the blocks of axes first..first+n-1 to the front of the batch, or from there. The tensor is
 * seen as [batch, axes before, blocks, block, blocks, block, ..., rest], its axes in this order or
 * in [block, block, ..., batch, axes before, blocks, blocks, ..., rest].
 */
static ed_tensor *move_blocks(ed_tensor *x, const int64_t *block, int first, int n, bool to_batch)
{
    int64_t apart[ED_MAX_RANK], moved[ED_MAX_RANK], perm[ED_MAX_RANK], back[ED_MAX_RANK];
    int64_t shape[ED_MAX_RANK], before = 1, rest = 1, size = 1;
    const ed_ints old = ed_shape(x);
    int rank = 0;
    if (!x) return NULL;
    memcpy(shape, old.values, (size_t)old.count * sizeof *shape);
    for (int i = 0; i < n; i++) size *= block[i];
    for (int i = 1; i < first; i++) before *= shape[i];
    for (int i = first + n; i < old.count; i++) rest *= shape[i];
    shape[0] = to_batch ? shape[0] * size : shape[0] / size;
    for (int i = 0; i < n; i++)
        shape[first + i] = to_batch ? shape[first + i] / block[i] : shape[first + i] * block[i];
    const ed_ints less = to_batch ? ed_shape(x) : (ed_ints){shape, old.count};
    apart[rank++] = less.values[0];
    if (first > 1) apart[rank++] = before;
    const int lead = rank;
    for (int i = 0; i < n; i++) {
        apart[rank++] = less.values[first + i] / block[i];
        apart[rank++] = block[i];
    }
    apart[rank++] = rest;
    for (int i = 0; i < n; i++) {
        perm[i] = lead + 2 * i + 1;
        perm[n + lead + i] = lead + 2 * i;
    }
    for (int i = 0; i < lead; i++) perm[n + i] = i;
    perm[rank - 1] = rank - 1;
    for (int i = 0; i < rank; i++) {
        moved[i] = apart[perm[i]];
        back[perm[i]] = i;
    }
    const ed_ints new = {shape, old.count};
    return to_batch ? regroup(x, (ed_ints){apart, rank}, (ed_ints){perm, rank}, new)
                    : regroup(x, (ed_ints){moved, rank}, (ed_ints){back, rank}, new);
}

/* All of them; a few at a time, so that the ranks that this takes are ranks of tensors. */
static ed_tensor *all_blocks(ed_tensor *x, ed_ints block, bool to_batch)
{
    enum { ALONE = 3, MORE = 2 }; /* the first ones, and others */
    const int all = (int)block.count, head = all <= ALONE ? all : ALONE - 1 + all % 2;
    if (!to_batch) x = move_blocks(x, block.values, 1, head, false);
    for (int i = head; i < all; i += MORE) {
        const int at = to_batch ? all - MORE - (i - head) : i;
        x = move_blocks(x, block.values + at, 1 + at, MORE, to_batch);
    }
    return to_batch ? move_blocks(x, block.values, 1, head, true) : x;
}

static bool space_to_batch_compose(ed_call *call)
{
    const block_attrs *o = call->attrs;
    const ed_ints block = o->block_shape;
    ed_tensor *x = call->inputs[0];
    int64_t before[ED_MAX_RANK] = {0}, after[ED_MAX_RANK] = {0}, size;
    if (!check_blocks(call, &size)) return false;
    if (__builtin_mul_overflow(ed_dim(x, 0), size, &size)) return blocks_too_large(call);
    bool any = false;
    for (int i = 0; i < block.count; i++) {
        int64_t padded;
        before[i + 1] = border(o->before, i);
        after[i + 1] = border(o->after, i);
        any |= before[i + 1] || after[i + 1];
        if (__builtin_add_overflow(ed_dim(x, i + 1), before[i + 1], &padded) ||
            __builtin_add_overflow(padded, after[i + 1], &padded) || padded % block.values[i])
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "axis %lld of %s, with %lld and %lld elements added, must be "
                                "divisible by the block's size, %lld",
                                text_nth(i + 1), text_of_tensor(tensor_read(x)).s,
                                (long long)before[i + 1], (long long)after[i + 1],
                                (long long)block.values[i]);
    }
    const int n = (int)block.count + 1;
    if (any) x = ed_pad(x, .before = {before, n}, .after = {after, n});
    return ed_call_result(call, 0, all_blocks(x, block, true));
}

static bool batch_to_space_compose(ed_call *call)
{
    const block_attrs *o = call->attrs;
    const ed_ints block = o->block_shape;
    ed_tensor *x = call->inputs[0];
    int64_t begin[ED_MAX_RANK] = {0}, end[ED_MAX_RANK] = {ED_END}, size;
    if (!check_blocks(call, &size)) return false;
    if (ed_dim(x, 0) % size)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the batch of x, %s, must be divisible by the %lld elements of a block",
                            text_of_tensor(tensor_read(x)).s, (long long)size);
    for (int i = 0; i < block.count; i++) {
        int64_t whole;
        begin[i + 1] = border(o->before, i);
        if (__builtin_mul_overflow(ed_dim(x, i + 1), block.values[i], &whole))
            return blocks_too_large(call);
        if (begin[i + 1] > whole || border(o->after, i) > whole - begin[i + 1])
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "axis %lld of %s has fewer elements in blocks of %lld than are cut "
                                "off, %lld and %lld",
                                text_nth(i + 1), text_of_tensor(tensor_read(x)).s,
                                (long long)block.values[i], (long long)begin[i + 1],
                                (long long)border(o->after, i));
        end[i + 1] = whole - border(o->after, i);
    }
    const int n = (int)block.count + 1;
    x = all_blocks(x, block, false);
    return ed_call_result(call, 0, ed_slice(x, .begin = {begin, n}, .end = {end, n}));
}

/* Batch n / batches of y is the block's position, counted with the last axis the fastest. */
static int64_t space_to_batch_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const block_attrs *o = call->attrs;
    int64_t from[ED_MAX_RANK], position = x->shape[0] ? at[0] / x->shape[0] : 0;
    memcpy(from, at, sizeof from);
    from[0] = at[0] % x->shape[0];
    for (int64_t i = o->block_shape.count - 1; i >= 0; i--) {
        const int64_t size = o->block_shape.values[i];
        from[i + 1] = at[i + 1] * size + position % size - border(o->before, i);
        position /= size;
        if (from[i + 1] < 0 || from[i + 1] >= x->shape[i + 1]) return -1;
    }
    return shape_number(x, from);
}

static int64_t batch_to_space_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const block_attrs *o = call->attrs;
    int64_t from[ED_MAX_RANK], position = 0;
    memcpy(from, at, sizeof from);
    for (int64_t i = 0; i < o->block_shape.count; i++) {
        const int64_t size = o->block_shape.values[i], place = at[i + 1] + border(o->before, i);
        from[i + 1] = place / size;
        position = position * size + place % size;
    }
    from[0] += position * call->outputs[0]->shape[0];
    return shape_number(x, from);
}

static bool space_to_batch_plain(const ed_call *call)
{
    return shape_plain(call, space_to_batch_source, 0);
}

static bool batch_to_space_plain(const ed_call *call)
{
    return shape_plain(call, batch_to_space_source, 0);
}

#define BLOCKS(...) ED_ATTRS(BLOCK_ATTRS, block_attrs, __VA_ARGS__)

ED_OP(space_to_batch) = {
    .name = "space_to_batch",
    .doc = "the positions of blocks, of the axes behind the first, become batches",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(BLOCK_ATTRS, block_attrs),
    .compose = space_to_batch_compose,
    .reference = space_to_batch_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 6, 3)},
                           .attrs = BLOCKS(.block_shape = ED_SAMPLE_INTS(2, 3))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5)},
                           .attrs = BLOCKS(.block_shape = ED_SAMPLE_INTS(3),
                                           .before = ED_SAMPLE_INTS(3),
                                           .after = ED_SAMPLE_INTS(1))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 4, 1, 2)},
                           .attrs = BLOCKS(.block_shape = ED_SAMPLE_INTS(2, 1, 2, 1),
                                           .after = ED_SAMPLE_INTS(1, 0, 1))}),
};

ED_OP(batch_to_space) = {
    .name = "batch_to_space",
    .doc = "batches become the positions of blocks, of the axes behind the first",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(BLOCK_ATTRS, block_attrs),
    .compose = batch_to_space_compose,
    .reference = batch_to_space_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 12, 2, 2, 3)},
         .attrs = BLOCKS(.block_shape = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 6, 3)},
         .attrs = BLOCKS(.block_shape = ED_SAMPLE_INTS(3), .before = ED_SAMPLE_INTS(3),
                         .after = ED_SAMPLE_INTS(1))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 2, 3, 1, 2)},
         .attrs = BLOCKS(.block_shape = ED_SAMPLE_INTS(2, 1, 2, 1), .after = ED_SAMPLE_INTS(1))}),
};

ed_tensor *ed_space_to_batch_with(ed_tensor *x, ed_ints block_shape,
                                  const ed_block_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_BLOCK_OPTIONS, options);
    return CALL_OP(
        space_to_batch,
        ED_OPTIONS_FROM(ED_BLOCK_OPTIONS, options, block_attrs, .block_shape = block_shape), x);
}

ed_tensor *ed_batch_to_space_with(ed_tensor *x, ed_ints block_shape,
                                  const ed_block_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_BLOCK_OPTIONS, options);
    return CALL_OP(
        batch_to_space,
        ED_OPTIONS_FROM(ED_BLOCK_OPTIONS, options, block_attrs, .block_shape = block_shape), x);
}
