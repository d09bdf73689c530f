#include "ops/shape.h"
#include <string.h>

/*
 * Joining: concat, stack; and their opposites, which are lists of views. They place boxes of
 * elements into a larger one.
 */

#define ALONG(a) ED_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options, .axis = a)

/* The attribute axis, which all these ops have among others. */
static int64_t axis_attr(const ed_op *op, const void *attrs)
{
    return *(const int64_t *)ED_FIELD_AT(schema_find(op->attrs, "axis"), attrs);
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
            return shape_too_large(call);
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
    .operands = SHAPE_OPERAND,
    .flags = ED_OP_VARIADIC,
    ED_OP_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options),
    .infer = concat_infer,
    .batch = ed_batch_axes,
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
    .operands = SHAPE_OPERAND,
    .flags = ED_OP_VARIADIC,
    ED_OP_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options),
    .infer = stack_infer,
    .batch = ed_batch_axes,
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
    FIELD(T, INTS, sizes, ED_NO_LIST, ED_REQUIRED, "of the parts; one may be -1: the rest")        \
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
    .operands = SHAPE_OPERAND,
    PARTS,
    ED_OP_ATTRS(SPLIT_ATTRS, split_attrs),
    .infer = split_infer,
    .batch = ed_batch_axes,
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
    .operands = SHAPE_OPERAND,
    PARTS,
    ED_OP_ATTRS(SPLIT_SIZES_ATTRS, split_sizes_attrs),
    .infer = split_sizes_infer,
    .batch = ed_batch_axes,
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
    .operands = SHAPE_OPERAND,
    PARTS,
    ED_OP_ATTRS(ED_CONCAT_OPTIONS, ed_concat_options),
    .infer = unstack_infer,
    .batch = ed_batch_axes,
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
