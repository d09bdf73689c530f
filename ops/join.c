#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <string.h>

/*
 * Joining and repeating: concat, stack, tile, pad; and their opposites, which are lists of views.
 * All of them place boxes of elements into a larger one.
 */

#define ANY                                                                                        \
    {                                                                                              \
        {                                                                                          \
            "x", ED_SET_ALL, 'T'                                                                   \
        }                                                                                          \
    }

#define ALONG(a) ED_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options, .axis = a)

/* The attribute axis, which all these ops have among others. */
static int64_t axis_attr(const ed_op *op, const void *attrs)
{
    return *(const int64_t *)ED_FIELD_AT(schema_find(op->attrs, "axis"), attrs);
}

static bool too_large(const ed_call *call)
{
    return ed_call_fail(call, ED_OUT_OF_MEMORY,
                        "the result has more elements than memory can hold");
}

/* ---- concat ---------------------------------------------------------------------------------- */

static bool agree_but_for(const ed_tensor *a, const ed_tensor *b, int axis)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (i != axis && a->shape[i] != b->shape[i]) return false;
    return true;
}

static bool concat_infer(ed_call *call)
{
    const ed_tensor *first = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    int axis;
    if (first->rank == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "operands must have rank >= 1, got %s; ed_stack joins along a new axis",
                            text_of_tensor(first).s);
    if (!ops_axis(call, axis_attr(call->op, call->attrs), first->rank, &axis)) return false;
    memcpy(shape, first->shape, sizeof shape);
    for (int i = 1; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (!agree_but_for(first, x, axis))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "operand %lld is %s, operand %lld is %s; only axis %lld may differ",
                                text_nth(0), text_of_tensor(first).s, text_nth(i),
                                text_of_tensor(x).s, text_nth(axis));
        if (__builtin_add_overflow(shape[axis], x->shape[axis], &shape[axis]))
            return too_large(call);
    }
    *(int *)ed_call_plan(call, sizeof axis) = axis;
    return ed_call_output(call, 0, first->dtype, first->rank, shape);
}

static bool concat_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int axis = *(const int *)call->plan;
    int64_t offset = 0;
    for (int i = 0; i < call->n_inputs; i++) {
        shape_place(call, i, offset, y->strides);
        offset += call->inputs[i]->shape[axis] * y->strides[axis];
    }
    return true;
}

/* dx = the parts of dy; the list belongs to the scope of the backward pass. */
static bool give_parts(const ed_gradient_call *g, const ed_list *parts)
{
    for (int i = 0; parts && i < g->n_inputs; i++)
        if (g->needs[i]) g->dx[i] = parts->items[i];
    return parts;
}

static bool concat_gradient(const ed_gradient_call *g)
{
    int axis = tensor_axis(axis_attr(g->op, g->attrs), (int)g->shapes[0].count);
    int64_t *sizes = memory_alloc((size_t)g->n_inputs * sizeof *sizes);
    if (!sizes) return false;
    for (int i = 0; i < g->n_inputs; i++) sizes[i] = g->shapes[i].values[axis];
    bool ok =
        give_parts(g, ed_split_sizes_with(g->dy[0], (ed_ints){sizes, g->n_inputs}, ALONG(axis)));
    memory_free(sizes);
    return ok;
}

static bool concat_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int axis = tensor_axis(axis_attr(call->op, call->attrs), y->rank);
    int64_t before = 1;
    for (int i = 0; i < axis; i++) before *= y->shape[i];
    double *to = (double *)y->data;
    for (int64_t k = 0; k < before; k++)
        for (int i = 0; i < call->n_inputs; i++) {
            const ed_tensor *x = call->inputs[i];
            int64_t n = x->size / before;
            for (int64_t j = 0; j < n; j++) *to++ = ((const double *)x->data)[k * n + j];
        }
    return true;
}

ED_OP(concat) = {
    .name = "concat",
    .doc = "joined along an existing axis",
    .operands = ANY,
    .flags = ED_OP_VARIADIC,
    ED_OP_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options),
    .infer = concat_infer,
    .kernel = concat_kernel,
    .gradient = concat_gradient,
    .reference = concat_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 4, 3),
                                      ED_SAMPLE_IN(-2, 2, 1, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2), ED_SAMPLE_IN(-2, 2, 2, 1, 2)},
                           .attrs = ALONG(-2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3)}}),
};

ed_tensor *ed_concat_with(ed_list *list, const ed_concat_options *options)
{
    if (!list) return ed_fail(ED_INVALID_ARGUMENT, "concat: the list is NULL");
    return ed_call_op(&ed_op_concat, list->items, (int)list->size, options);
}

/* ---- stack ----------------------------------------------------------------------------------- */

static bool stack_infer(ed_call *call)
{
    const ed_tensor *first = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    int axis;
    if (first->rank == ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "operands must have rank < %d, got %s",
                            ED_MAX_RANK, text_of_tensor(first).s);
    if (!ops_axis(call, axis_attr(call->op, call->attrs), first->rank + 1, &axis)) return false;
    for (int i = 1; i < call->n_inputs; i++)
        if (!agree_but_for(first, call->inputs[i], -1))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "shapes differ: operand %lld is %s, operand %lld is %s",
                                text_nth(0), text_of_tensor(first).s, text_nth(i),
                                text_of_tensor(call->inputs[i]).s);
    for (int i = 0; i < first->rank; i++) shape[i + (i >= axis)] = first->shape[i];
    shape[axis] = call->n_inputs;
    *(int *)ed_call_plan(call, sizeof axis) = axis;
    return ed_call_output(call, 0, first->dtype, first->rank + 1, shape);
}

static bool stack_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int axis = *(const int *)call->plan;
    int64_t strides[ED_MAX_RANK];
    for (int i = 0; i < y->rank - 1; i++) strides[i] = y->strides[i + (i >= axis)];
    for (int i = 0; i < call->n_inputs; i++) shape_place(call, i, i * y->strides[axis], strides);
    return true;
}

static bool stack_gradient(const ed_gradient_call *g)
{
    return give_parts(g, ed_unstack_with(g->dy[0], g->attrs));
}

static bool stack_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int axis = tensor_axis(axis_attr(call->op, call->attrs), y->rank);
    int64_t behind = 1;
    for (int i = axis + 1; i < y->rank; i++) behind *= y->shape[i];
    for (int i = 0; i < call->n_inputs; i++)
        for (int64_t j = 0; j < call->inputs[i]->size; j++)
            ((double *)y->data)[(j / behind * call->n_inputs + i) * behind + j % behind] =
                ((const double *)call->inputs[i]->data)[j];
    return true;
}

ED_OP(stack) = {
    .name = "stack",
    .doc = "joined along a new axis",
    .operands = ANY,
    .flags = ED_OP_VARIADIC,
    ED_OP_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options),
    .infer = stack_infer,
    .kernel = stack_kernel,
    .gradient = stack_gradient,
    .reference = stack_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3),
                                      ED_SAMPLE_IN(-2, 2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = ALONG(-1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_stack_with(ed_list *list, const ed_concat_options *options)
{
    if (!list) return ed_fail(ED_INVALID_ARGUMENT, "stack: the list is NULL");
    return ed_call_op(&ed_op_stack, list->items, (int)list->size, options);
}

/* ---- split, split_sizes, unstack ------------------------------------------------------------- */

/* All three begin with the axis. */
#define SPLIT_ATTRS(FIELD, T)                                                                      \
    FIELD(T, INT, count, 0, ED_ANY, "number of parts") ED_CONCAT_OPTIONS(FIELD, T)
ED_OPTIONS(split_attrs, SPLIT_ATTRS);

#define SPLIT_SIZES_ATTRS(FIELD, T)                                                                \
    FIELD(T, INTS, sizes, ED_NO_LIST, ED_ANY, "of the parts; one may be -1: the rest")             \
    ED_CONCAT_OPTIONS(FIELD, T)
ED_OPTIONS(split_sizes_attrs, SPLIT_SIZES_ATTRS);

/* How an axis is cut: into `count` parts, each of sizes[i] (where that is -1, of what is left), or
 * all of `each`. */
typedef struct cut {
    int axis;
    int64_t count, each, left;
    const int64_t *sizes;
    bool drop; /* the axis goes */
} cut;

static int64_t part_size(const cut *c, int64_t i)
{
    return !c->sizes ? c->each : c->sizes[i] == -1 ? c->left : c->sizes[i];
}

/* Works out what is left for a -1; false if the sizes don't make up the dimension. */
static bool complete(cut *c, int64_t dimension)
{
    bool open = false;
    c->left = dimension;
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t size = c->sizes[i];
        if (size == -1 && !open)
            open = true;
        else if (size < 0 || size > c->left)
            return false;
        else
            c->left -= size;
    }
    return open || c->left == 0;
}

/* The parts as views. */
static bool make_parts(ed_call *call, const cut *c)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK], offset = 0;
    for (int i = 0, to = 0; i < x->rank; i++) {
        if (c->drop && i == c->axis) continue;
        shape[to] = x->shape[i];
        strides[to++] = x->strides[i];
    }
    if (!ed_call_outputs(call, c->count)) return false;
    call->ready = true;
    for (int i = 0; i < call->n_outputs; i++) {
        if (!c->drop) shape[c->axis] = part_size(c, i);
        if (!ed_call_view(call, i, 0, x->rank - c->drop, shape, strides, offset)) return false;
        offset += part_size(c, i) * x->strides[c->axis];
    }
    return true;
}

static bool axis_of(const ed_call *call, int *axis)
{
    return ops_axis(call, axis_attr(call->op, call->attrs), call->inputs[0]->rank, axis);
}

static bool split_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    cut c = {.count = ((const split_attrs *)call->attrs)->count};
    if (!axis_of(call, &c.axis)) return false;
    if (c.count <= 0 || x->shape[c.axis] % c.count)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "axis %lld of %s can't be split into %lld equal parts",
                            text_nth(c.axis), text_of_tensor(x).s, (long long)c.count);
    c.each = x->shape[c.axis] / c.count;
    return make_parts(call, &c);
}

static bool split_sizes_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const ed_ints sizes = ((const split_sizes_attrs *)call->attrs)->sizes;
    cut c = {.count = sizes.count, .sizes = sizes.values};
    if (!sizes.values) return ed_call_fail(call, ED_INVALID_ARGUMENT, "sizes is required");
    if (!axis_of(call, &c.axis)) return false;
    if (!complete(&c, x->shape[c.axis]))
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT,
            "the sum of sizes %s must be the size of axis %lld of %s, and none be negative",
            text_of_ints(sizes.values, sizes.count).s, text_nth(c.axis), text_of_tensor(x).s);
    return make_parts(call, &c);
}

static bool unstack_infer(ed_call *call)
{
    cut c = {.each = 1, .drop = true};
    if (!axis_of(call, &c.axis)) return false;
    c.count = call->inputs[0]->shape[c.axis];
    return make_parts(call, &c);
}

/*
 * dx = the parts' gradients joined again, by one op; zeros for a part without one. Parts of one
 * size share them.
 */
static bool join_parts(const ed_gradient_call *g, const cut *c, const ed_op *op)
{
    int64_t shape[ED_MAX_RANK], rank = 0;
    ed_tensor **parts = memory_alloc((size_t)g->n_outputs * sizeof *parts), *zeros = NULL;
    bool ok = parts;
    for (int64_t i = 0; i < g->shapes[0].count; i++)
        if (!c->drop || i != c->axis) shape[rank++] = g->shapes[0].values[i];
    for (int i = 0; ok && i < g->n_outputs; i++) {
        parts[i] = g->dy[i];
        if (parts[i]) continue;
        const int64_t size = part_size(c, i);
        if (!zeros || (!c->drop && zeros->shape[c->axis] != size)) {
            if (!c->drop) shape[c->axis] = size;
            zeros = ed_zeros(((ed_ints){shape, rank}), .dtype = g->dtypes[0]);
        }
        ok = (parts[i] = zeros) != NULL;
    }
    g->dx[0] = ok ? ed_call_op(op, parts, g->n_outputs, ALONG(c->axis)) : NULL;
    memory_free(parts);
    return g->dx[0];
}

static int axis_of_gradient(const ed_gradient_call *g)
{
    return tensor_axis(axis_attr(g->op, g->attrs), (int)g->shapes[0].count);
}

static bool split_gradient(const ed_gradient_call *g)
{
    cut c = {.axis = axis_of_gradient(g), .count = g->n_outputs};
    c.each = g->shapes[0].values[c.axis] / c.count;
    return join_parts(g, &c, &ed_op_concat);
}

static bool split_sizes_gradient(const ed_gradient_call *g)
{
    const ed_ints sizes = ((const split_sizes_attrs *)g->attrs)->sizes;
    cut c = {.axis = axis_of_gradient(g), .count = sizes.count, .sizes = sizes.values};
    return complete(&c, g->shapes[0].values[c.axis]) && join_parts(g, &c, &ed_op_concat);
}

static bool unstack_gradient(const ed_gradient_call *g)
{
    return join_parts(g, &(cut){.axis = axis_of_gradient(g), .drop = true}, &ed_op_stack);
}

/* x seen as [before, rest]: each part takes its share of the rest. */
static bool parts_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    int axis = tensor_axis(axis_attr(call->op, call->attrs), x->rank);
    int64_t before = 1;
    for (int i = 0; i < axis; i++) before *= x->shape[i];
    for (int64_t k = 0; k < before; k++)
        for (int i = 0; i < call->n_outputs; i++) {
            const ed_tensor *y = call->outputs[i];
            int64_t n = y->size / before;
            for (int64_t j = 0; j < n; j++) ((double *)y->data)[k * n + j] = *from++;
        }
    return true;
}

#define PARTS .flags = ED_OP_MANY_OUTPUTS, .results = ED_RESULTS({.name = "part"})

ED_OP(split) = {
    .name = "split",
    .doc = "x cut into equal parts along an axis: views",
    .operands = ANY,
    PARTS,
    ED_OP_ATTRS(SPLIT_ATTRS, split_attrs),
    .infer = split_infer,
    .gradient = split_gradient,
    .reference = parts_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3)},
                           .attrs = ED_ATTRS(SPLIT_ATTRS, split_attrs, .count = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 3)},
                           .attrs = ED_ATTRS(SPLIT_ATTRS, split_attrs, .axis = -2, .count = 3)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5)},
                           .attrs = ED_ATTRS(SPLIT_ATTRS, split_attrs, .count = 5)}),
};

ED_OP(split_sizes) = {
    .name = "split_sizes",
    .doc = "x cut into parts of these sizes along an axis: views",
    .operands = ANY,
    PARTS,
    ED_OP_ATTRS(SPLIT_SIZES_ATTRS, split_sizes_attrs),
    .infer = split_sizes_infer,
    .gradient = split_sizes_gradient,
    .reference = parts_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 6, 2)},
                           .attrs = ED_ATTRS(SPLIT_SIZES_ATTRS, split_sizes_attrs,
                                             .sizes = ED_SAMPLE_INTS(1, 3, 2))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 2)},
                           .attrs = ED_ATTRS(SPLIT_SIZES_ATTRS, split_sizes_attrs, .axis = 1,
                                             .sizes = ED_SAMPLE_INTS(2, -1, 0))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4)},
                           .attrs = ED_ATTRS(SPLIT_SIZES_ATTRS, split_sizes_attrs, .axis = -1,
                                             .sizes = ED_SAMPLE_INTS(-1))}),
};

ED_OP(unstack) = {
    .name = "unstack",
    .doc = "the slices of x along an axis, which goes: views",
    .operands = ANY,
    PARTS,
    ED_OP_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options),
    .infer = unstack_infer,
    .gradient = unstack_gradient,
    .reference = parts_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2)}, .attrs = ALONG(-2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5)}}),
};

ed_list *ed_split_with(ed_tensor *x, int64_t count, const ed_concat_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CONCAT_OPTIONS, options);
    return ed_execute_list(
        &ed_op_split, &x, 1,
        ED_OPTIONS_FROM(ED_CONCAT_OPTIONS, options, split_attrs, .count = count));
}

ed_list *ed_split_sizes_with(ed_tensor *x, ed_ints sizes, const ed_concat_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CONCAT_OPTIONS, options);
    return ed_execute_list(
        &ed_op_split_sizes, &x, 1,
        ED_OPTIONS_FROM(ED_CONCAT_OPTIONS, options, split_sizes_attrs, .sizes = sizes));
}

ed_list *ed_unstack_with(ed_tensor *x, const ed_concat_options *options)
{
    return ed_execute_list(&ed_op_unstack, &x, 1, options);
}

/* ---- tile ------------------------------------------------------------------------------------ */

#define TILE_ATTRS(FIELD, T) FIELD(T, INTS, multiples, ED_NO_LIST, ED_ANY, "one for each axis")
ED_OPTIONS(tile_attrs, TILE_ATTRS);

static bool tile_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!shape_of_attr(call, "multiples", ((const tile_attrs *)call->attrs)->multiples, &rank,
                       shape))
        return false;
    if (rank != x->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "multiples %s must have one number for each axis of %s",
                            text_of_ints(shape, rank).s, text_of_tensor(x).s);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "multiples must be >= 0, got %lld for axis %lld",
                                (long long)shape[i], text_nth(i));
        if (__builtin_mul_overflow(shape[i], x->shape[i], &shape[i])) return too_large(call);
    }
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

/* y seen as [multiple, extent, multiple, extent, ...], into which x is copied with strides of 0 for
 * the multiples. */
static bool tile_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    int64_t shape[COPY_MAX_RANK], from[COPY_MAX_RANK], to[COPY_MAX_RANK];
    if (y->size == 0) return true;
    for (int i = 0; i < x->rank; i++) {
        shape[2 * i] = y->shape[i] / x->shape[i];
        from[2 * i] = 0;
        to[2 * i] = x->shape[i] * y->strides[i];
        shape[2 * i + 1] = x->shape[i];
        from[2 * i + 1] = x->strides[i];
        to[2 * i + 1] = y->strides[i];
    }
    copy_box(dtype_size(x->dtype), 2 * x->rank, shape, x->data, from, y->data, to);
    return true;
}

/* Axis by axis from the front: dy seen as [before, multiple, behind], summed over the multiple. */
static bool tile_gradient(const ed_gradient_call *g)
{
    ed_ints multiples = ((const tile_attrs *)g->attrs)->multiples, shape = g->shapes[0];
    ed_tensor *sum = g->dy[0];
    int64_t before = 1;
    for (int64_t i = 0; sum && i < shape.count; i++) {
        if (multiples.values[i] != 1) {
            int64_t behind = shape.values[i];
            for (int64_t j = i + 1; j < shape.count; j++)
                behind *= shape.values[j] * multiples.values[j];
            sum = shape_sum_axis(ed_reshape(sum, ED_SHAPE(before, multiples.values[i], behind)), 1);
        }
        before *= shape.values[i];
    }
    g->dx[0] = ed_reshape(sum, shape);
    return true;
}

static int64_t tile_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    int64_t from[ED_MAX_RANK];
    (void)call;
    for (int i = 0; i < x->rank; i++) from[i] = at[i] % x->shape[i];
    return shape_number(x, from);
}

static bool tile_plain(const ed_call *call)
{
    return shape_plain(call, tile_source, 0);
}

ED_OP(tile) = {
    .name = "tile",
    .doc = "x repeated multiples[i] times along axis i",
    .operands = ANY,
    ED_OP_ATTRS(TILE_ATTRS, tile_attrs),
    .infer = tile_infer,
    .kernel = tile_kernel,
    .gradient = tile_gradient,
    .reference = tile_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
         .attrs = ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 1, 2)},
         .attrs = ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = ED_SAMPLE_INTS(1, 4, 2))},
        {.inputs = {ED_SAMPLE_IN(-2, 2)},
         .attrs = ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = ED_SAMPLE_INTS())}),
};

ed_tensor *ed_tile(ed_tensor *x, ed_ints multiples)
{
    return CALL_OP(tile, ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = multiples), x);
}

/* ---- pad ------------------------------------------------------------------------------------- */

static bool check_padding(const ed_call *call, const char *name, ed_ints list)
{
    const ed_tensor *x = call->inputs[0];
    if (!list.values) return true;
    if (list.count > x->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s %s must have at most one number for each axis of %s", name,
                            text_of_ints(list.values, list.count).s, text_of_tensor(x).s);
    for (int64_t i = 0; i < list.count; i++)
        if (list.values[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "%s must be >= 0, got %s (ed_slice removes elements)", name,
                                text_of_ints(list.values, list.count).s);
    return true;
}

static int64_t padding(ed_ints list, int i)
{
    return list.values && i < list.count ? list.values[i] : 0;
}

/* What lies beyond the ends of an axis: a value, or elements of the axis. */
typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_SYMMETRIC, PAD_EDGE } pad_mode;

static pad_mode mode_of(const ed_pad_options *options)
{
    return options->mode[0] == 'R'   ? PAD_REFLECT
           : options->mode[0] == 'S' ? PAD_SYMMETRIC
           : options->mode[0] == 'E' ? PAD_EDGE
                                     : PAD_CONSTANT;
}

/* The index in an axis of n to which index i, from before 0 to beyond n, leads. */
static int64_t continued(pad_mode mode, int64_t i, int64_t n)
{
    if (mode == PAD_EDGE) return i < 0 ? 0 : i < n ? i : n - 1;
    const int64_t twice = mode == PAD_REFLECT;
    return i < 0 ? -i - 1 + twice : i < n ? i : 2 * n - 1 - twice - i;
}

/* A mode needs elements to continue with. */
static bool check_mode(const ed_call *call, const ed_pad_options *options)
{
    const ed_tensor *x = call->inputs[0];
    const pad_mode mode = mode_of(options);
    for (int i = 0; mode != PAD_CONSTANT && i < x->rank; i++) {
        const int64_t n = x->shape[i], before = padding(options->before, i),
                      after = padding(options->after, i), most = before > after ? before : after;
        if (mode == PAD_EDGE ? most && !n : most > (mode == PAD_REFLECT && n ? n - 1 : n))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "mode %s can add at most %lld elements at an end of axis %lld of "
                                "%s, got %lld",
                                options->mode, (long long)(mode == PAD_REFLECT && n ? n - 1 : n),
                                text_nth(i), text_of_tensor(x).s, (long long)most);
    }
    return true;
}

static bool pad_infer(ed_call *call)
{
    const ed_pad_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    if (!check_padding(call, "before", options->before) ||
        !check_padding(call, "after", options->after) || !check_mode(call, options))
        return false;
    if (!dtype_holds(x->dtype, options->value))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the value %.17g cannot be represented as %s", options->value,
                            ed_dtype_name(x->dtype));
    for (int i = 0; i < x->rank; i++)
        if (__builtin_add_overflow(padding(options->before, i), padding(options->after, i),
                                   &shape[i]) ||
            __builtin_add_overflow(shape[i], x->shape[i], &shape[i]))
            return too_large(call);
    return ed_call_output(call, 0, x->dtype, x->rank, shape);
}

/*
 * The output is written once and in order: before, what is inside, after, from the outermost axis
 * inwards. Axes without padding behind the last one that has some are one row, if x's elements
 * adjoin there.
 */
typedef struct padder {
    const ed_tensor *x, *y;
    const ed_pad_options *options;
    size_t element;
    int row;          /* the axis from which on everything is one row */
    int64_t row_size; /* its elements in x, */
    int64_t row_step; /* and their stride */
    uint64_t value;
} padder;

static void make_padder(padder *p, const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    *p = (padder){.x = x,
                  .y = y,
                  .options = call->attrs,
                  .element = dtype_size(x->dtype),
                  .row = x->rank - 1};
    dtype_store(x->dtype, &p->value, 0, p->options->value);
    p->row_size = x->shape[p->row];
    p->row_step = x->strides[p->row];
    while (p->row > 0 && x->shape[p->row] == y->shape[p->row] &&
           x->strides[p->row - 1] == p->row_size * p->row_step) {
        p->row--;
        p->row_size *= x->shape[p->row];
    }
}

static void pad_axis(const padder *p, int axis, const char *from, char *to);

/* Elements first..last-1 of the axis, of those that x has. */
static void pad_inside(const padder *p, int axis, int64_t first, int64_t last, const char *from,
                       char *to)
{
    int64_t element = (int64_t)p->element;
    if (axis == p->row) {
        int64_t each = p->row_size / p->x->shape[axis];
        copy_row(p->element, (last - first) * each, from + first * p->x->strides[axis] * element,
                 p->row_step, to + first * each * element, 1);
        return;
    }
    for (int64_t i = first; i < last; i++)
        pad_axis(p, axis + 1, from + i * p->x->strides[axis] * element,
                 to + i * p->y->strides[axis] * element);
}

static void pad_axis(const padder *p, int axis, const char *from, char *to)
{
    int64_t step = p->y->strides[axis], extent = p->x->shape[axis];
    int64_t before = padding(p->options->before, axis), after = padding(p->options->after, axis);
    char *inside = to + before * step * (int64_t)p->element;
    copy_fill_row(p->element, &p->value, to, before * step);
    pad_inside(p, axis, 0, extent, from, inside);
    copy_fill_row(p->element, &p->value, inside + extent * step * (int64_t)p->element,
                  after * step);
}

typedef struct pad_job {
    const padder *p;
    const char *from;
    char *to;
} pad_job;

static void pad_range(int64_t first, int64_t last, int worker, void *user)
{
    const pad_job *j = user;
    (void)worker;
    pad_inside(j->p, 0, first, last, j->from, j->to);
}

/* Output rows first..last-1, of the last axis, under a mode that continues x. */
static void continued_rows(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const ed_pad_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const pad_mode mode = mode_of(options);
    const int64_t element = (int64_t)dtype_size(x->dtype);
    const int row = x->rank - 1;
    const int64_t n = x->shape[row], step = x->strides[row], before = padding(options->before, row);
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        int64_t offset = 0, rest = r;
        for (int d = row - 1; d >= 0; d--) {
            const int64_t at = rest % y->shape[d] - padding(options->before, d);
            offset += continued(mode, at, x->shape[d]) * x->strides[d];
            rest /= y->shape[d];
        }
        const char *from = x->data + offset * element;
        char *to = y->data + r * y->shape[row] * element;
        for (int64_t i = -before; i < 0; i++, to += element)
            memcpy(to, from + continued(mode, i, n) * step * element, (size_t)element);
        copy_row((size_t)element, n, from, step, to, 1);
        to += n * element;
        for (int64_t i = n; i < y->shape[row] - before; i++, to += element)
            memcpy(to, from + continued(mode, i, n) * step * element, (size_t)element);
    }
}

static bool pad_continued(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    if (!y->size) return true;
    const int64_t row = y->shape[y->rank - 1];
    threads_run(y->size / row, 1 + OPS_PARALLEL_WORK / row, continued_rows, call);
    return true;
}

/* Large ones are cut along the first axis that has something to cut; the axes before it are of
 * size 1 in x. */
static bool pad_kernel(ed_call *call)
{
    padder p;
    const ed_tensor *x = call->inputs[0];
    ed_tensor *y = call->outputs[0];
    int64_t element = (int64_t)dtype_size(x->dtype);
    if (x->rank && mode_of(call->attrs) != PAD_CONSTANT) return pad_continued(call);
    if (x->size == 0 || x->rank == 0) {
        uint64_t value = 0;
        dtype_store(x->dtype, &value, 0, ((const ed_pad_options *)call->attrs)->value);
        if (x->size == 0)
            copy_fill((size_t)element, &value, y->data, y->size);
        else
            memcpy(y->data, x->data, (size_t)element);
        return true;
    }
    make_padder(&p, call);
    if (y->size < OPS_PARALLEL_WORK || p.row == 0) {
        pad_axis(&p, 0, x->data, y->data);
        return true;
    }
    int64_t step = y->strides[0] * element, before = padding(p.options->before, 0) * step;
    copy_fill((size_t)element, &p.value, y->data, before / element);
    copy_fill((size_t)element, &p.value, y->data + before + x->shape[0] * step,
              padding(p.options->after, 0) * y->strides[0]);
    threads_run(x->shape[0], 1 + OPS_PARALLEL_WORK * x->shape[0] / y->size, pad_range,
                &(pad_job){&p, x->data, y->data + before});
    return true;
}

/* Elements first..end-1 of an axis. */
static ed_tensor *range_of(ed_tensor *x, int axis, int64_t first, int64_t end)
{
    int64_t begin[ED_MAX_RANK] = {0}, stop[ED_MAX_RANK];
    for (int i = 0; i < axis; i++) stop[i] = ED_END;
    begin[axis] = first;
    stop[axis] = end;
    return ed_slice(x, .begin = {begin, axis + 1}, .end = {stop, axis + 1});
}

/* sum, to which the dy of a border is added where its elements were taken from. */
static ed_tensor *folded(ed_tensor *sum, ed_tensor *border, pad_mode mode, int axis, bool front)
{
    const int64_t n = ed_dim(sum, axis), along = axis;
    int64_t before[ED_MAX_RANK] = {0}, after[ED_MAX_RANK] = {0};
    border = mode == PAD_EDGE ? ed_reduce_sum(border, .axis = {&along, 1}, .keepdims = true)
                              : ed_reverse(border, (ed_ints){&along, 1});
    if (!border) return NULL;
    const int64_t apart = mode == PAD_REFLECT, rest = n - ed_dim(border, axis) - apart;
    before[axis] = front ? apart : rest;
    after[axis] = front ? rest : apart;
    return ed_add(sum, ed_pad(border, .before = {before, axis + 1}, .after = {after, axis + 1}));
}

static bool continued_gradient(const ed_gradient_call *g)
{
    const ed_pad_options *options = g->attrs;
    const pad_mode mode = mode_of(options);
    const bool half = ED_SET_HALF & 1u << g->dtypes[0];
    ed_tensor *dx = half ? ed_cast(g->dy[0], ED_FLOAT32) : g->dy[0];
    for (int i = 0; dx && i < g->shapes[0].count; i++) {
        const int64_t before = padding(options->before, i), after = padding(options->after, i);
        const int64_t n = g->shapes[0].values[i];
        if (!before && !after) continue;
        ed_tensor *sum = range_of(dx, i, before, before + n);
        if (before) sum = folded(sum, range_of(dx, i, 0, before), mode, i, true);
        if (sum && after)
            sum = folded(sum, range_of(dx, i, before + n, before + n + after), mode, i, false);
        dx = sum;
    }
    g->dx[0] = half ? ed_cast(dx, g->dtypes[0]) : dx;
    return true;
}

static bool pad_gradient(const ed_gradient_call *g)
{
    const ed_pad_options *options = g->attrs;
    if (mode_of(options) != PAD_CONSTANT) return continued_gradient(g);
    int rank = (int)g->shapes[0].count;
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        begin[i] = padding(options->before, i);
        end[i] = begin[i] + g->shapes[0].values[i];
    }
    g->dx[0] = ed_slice(g->dy[0], .begin = {begin, rank}, .end = {end, rank});
    return true;
}

static int64_t pad_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const ed_pad_options *options = call->attrs;
    int64_t from[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        const int64_t n = x->shape[i];
        from[i] = at[i] - padding(options->before, i);
        if (from[i] >= 0 && from[i] < n) continue;
        if (!strcmp(options->mode, "CONSTANT")) return -1;
        const int64_t end = from[i] < 0 ? 0 : n - 1, apart = end - from[i];
        from[i] = !strcmp(options->mode, "EDGE")      ? end
                  : !strcmp(options->mode, "REFLECT") ? end + apart
                                                      : end + apart - (apart > 0 ? 1 : -1);
    }
    return shape_number(x, from);
}

static bool pad_plain(const ed_call *call)
{
    return shape_plain(call, pad_source, ((const ed_pad_options *)call->attrs)->value);
}

#define PADDED(...) ED_ATTRS(ED_PAD_OPTIONS, ed_pad_options, __VA_ARGS__)

ED_OP(pad) = {
    .name = "pad",
    .doc = "elements of a value around x",
    .operands = ANY,
    ED_OP_ATTRS(ED_PAD_OPTIONS, ed_pad_options),
    .infer = pad_infer,
    .kernel = pad_kernel,
    .gradient = pad_gradient,
    .reference = pad_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(1, 0),
                                           .after = ED_SAMPLE_INTS(2, 3), .value = 1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(0, 2, 0))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4)},
                           .attrs = PADDED(.after = ED_SAMPLE_INTS(1))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(2, 1),
                                           .after = ED_SAMPLE_INTS(1, 3), .mode = "REFLECT")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(3),
                                           .after = ED_SAMPLE_INTS(1, 3), .mode = "SYMMETRIC")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(0, 5),
                                           .after = ED_SAMPLE_INTS(4, 1), .mode = "EDGE")}),
};

ed_tensor *ed_pad_with(ed_tensor *x, const ed_pad_options *options)
{
    return CALL_OP(pad, options, x);
}
