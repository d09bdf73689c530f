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

#define AXIS_ATTRS                                                                                 \
    (const ed_attr[])                                                                              \
    {                                                                                              \
        ATTR(ed_concat_options, axis, ED_ATTR_AXIS,                                                \
             "which; default the first; negative: from the end"),                                  \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
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
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s has no axis to join; ed_stack makes one",
                            text_of_tensor(first).s);
    if (!ops_axis(call, ((const ed_concat_options *)call->attrs)->axis, first->rank, &axis))
        return false;
    memcpy(shape, first->shape, sizeof shape);
    for (int i = 1; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (!agree_but_for(first, x, axis))
            return ed_call_fail(
                call, ED_INVALID_ARGUMENT, "%s and %s (operand %lld) differ beside axis %lld",
                text_of_tensor(first).s, text_of_tensor(x).s, text_nth(i), text_nth(axis));
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

/* A part of dy along an axis. */
static ed_tensor *part(ed_tensor *dy, int axis, int64_t begin, int64_t end)
{
    int64_t begins[ED_MAX_RANK] = {0}, ends[ED_MAX_RANK];
    for (int i = 0; i < axis; i++) ends[i] = ED_END;
    begins[axis] = begin;
    ends[axis] = end;
    return ed_slice_with(dy,
                         &(ed_slice_options){.begin = {begins, axis + 1}, .end = {ends, axis + 1}});
}

static bool concat_gradient(const ed_gradient_call *g)
{
    int axis = tensor_axis(((const ed_concat_options *)g->attrs)->axis, (int)g->shapes[0].count);
    int64_t begin = 0;
    for (int i = 0; i < g->n_inputs; i++) {
        int64_t end = begin + g->shapes[i].values[axis];
        if (g->needs[i]) g->dx[i] = part(g->dy[0], axis, begin, end);
        begin = end;
    }
    return true;
}

static bool concat_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int axis = tensor_axis(((const ed_concat_options *)call->attrs)->axis, y->rank);
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
    .attrs = AXIS_ATTRS,
    .attrs_size = sizeof(ed_concat_options),
    .infer = concat_infer,
    .kernel = concat_kernel,
    .gradient = concat_gradient,
    .reference = concat_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 4, 3),
                                      ED_SAMPLE_IN(-2, 2, 1, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2), ED_SAMPLE_IN(-2, 2, 2, 1, 2)},
                           .attrs = &(const ed_concat_options){-2}},
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
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s has %d dimensions, as many as there can be",
                            text_of_tensor(first).s, ED_MAX_RANK);
    if (!ops_axis(call, ((const ed_concat_options *)call->attrs)->axis, first->rank + 1, &axis))
        return false;
    for (int i = 1; i < call->n_inputs; i++)
        if (!agree_but_for(first, call->inputs[i], -1))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "shapes differ: %s and %s (operand %lld)", text_of_tensor(first).s,
                                text_of_tensor(call->inputs[i]).s, text_nth(i));
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
    int axis =
        tensor_axis(((const ed_concat_options *)g->attrs)->axis, (int)g->shapes[0].count + 1);
    for (int i = 0; i < g->n_inputs; i++)
        if (g->needs[i])
            g->dx[i] = axis ? ed_squeeze(part(g->dy[0], axis, i, i + 1), .axis = ED_AXES(axis))
                            : ed_index(g->dy[0], i);
    return true;
}

static bool stack_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int axis = tensor_axis(((const ed_concat_options *)call->attrs)->axis, y->rank);
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
    .attrs = AXIS_ATTRS,
    .attrs_size = sizeof(ed_concat_options),
    .infer = stack_infer,
    .kernel = stack_kernel,
    .gradient = stack_gradient,
    .reference = stack_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3),
                                      ED_SAMPLE_IN(-2, 2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = &(const ed_concat_options){-1}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_stack_with(ed_list *list, const ed_concat_options *options)
{
    if (!list) return ed_fail(ED_INVALID_ARGUMENT, "stack: the list is NULL");
    return ed_call_op(&ed_op_stack, list->items, (int)list->size, options);
}

/* ---- split, split_sizes, unstack ------------------------------------------------------------- */

/* The axis an option means; -1 with an error. */
static int axis_of(const char *name, const ed_tensor *x, const ed_concat_options *options)
{
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "%s: x is NULL", name), -1;
    int64_t given = options ? options->axis : 0;
    int axis = tensor_axis(given, x->rank);
    if (axis < 0)
        ed_fail(ED_INVALID_ARGUMENT, "%s: axis %lld is outside a tensor of rank %d, %s", name,
                text_nth(given), x->rank, text_of_tensor(x).s);
    return axis;
}

/* `count` parts along the axis, each of sizes[i] or all of `size`; with `drop` the axis goes. */
static ed_list *parts(ed_tensor *x, int axis, int64_t count, const int64_t *sizes, int64_t size,
                      bool drop)
{
    ed_list *list = list_new(count);
    int64_t begin = 0;
    for (int64_t i = 0; list && i < count; i++) {
        ED_SCOPE;
        int64_t end = begin + (sizes ? sizes[i] : size);
        ed_tensor *piece = drop && axis == 0 ? ed_index(x, i) : part(x, axis, begin, end);
        if (drop && axis) piece = ed_squeeze(piece, .axis = ED_AXES(axis));
        begin = end;
        list->items[i] = ed_retain(piece);
        if (piece) continue;
        ed_release(list);
        list = NULL;
    }
    return scope_give(list);
}

ed_list *ed_split_with(ed_tensor *x, int64_t count, const ed_concat_options *options)
{
    int axis = axis_of("split", x, options);
    if (axis < 0) return NULL;
    if (count <= 0 || x->shape[axis] % count != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "split: axis %lld of %s can't be cut into %lld equal parts", text_nth(axis),
                       text_of_tensor(x).s, (long long)count);
    return parts(x, axis, count, NULL, x->shape[axis] / count, false);
}

/* Puts what is left in place of a -1; false if the sizes don't make up the extent. */
static bool complete(int64_t *sizes, int64_t count, int64_t extent)
{
    int64_t sum = 0, open = -1;
    for (int64_t i = 0; i < count; i++) {
        if (sizes[i] == -1 && open < 0)
            open = i;
        else if (sizes[i] < 0 || sizes[i] > extent - sum)
            return false;
        else
            sum += sizes[i];
    }
    if (open >= 0) sizes[open] = extent - sum;
    return open >= 0 || sum == extent;
}

ed_list *ed_split_sizes_with(ed_tensor *x, ed_ints sizes, const ed_concat_options *options)
{
    int axis = axis_of("split_sizes", x, options);
    size_t bytes;
    if (axis < 0) return NULL;
    if (!sizes.values || sizes.count < 0 ||
        !memory_mul((size_t)sizes.count, sizeof(int64_t), &bytes))
        return ed_fail(ED_INVALID_ARGUMENT, "split_sizes: the sizes are not given");
    int64_t *whole = memory_alloc(bytes);
    if (!whole) return NULL;
    memcpy(whole, sizes.values, bytes);
    ed_list *list = NULL;
    if (complete(whole, sizes.count, x->shape[axis]))
        list = parts(x, axis, sizes.count, whole, 0, false);
    else
        ed_fail(ED_INVALID_ARGUMENT, "split_sizes: the sizes %s don't make up axis %lld of %s",
                text_of_ints(sizes.values, sizes.count).s, text_nth(axis), text_of_tensor(x).s);
    memory_free(whole);
    return list;
}

ed_list *ed_unstack_with(ed_tensor *x, const ed_concat_options *options)
{
    int axis = axis_of("unstack", x, options);
    return axis < 0 ? NULL : parts(x, axis, x->shape[axis], NULL, 1, true);
}

/* ---- tile ------------------------------------------------------------------------------------ */

typedef struct tile_attrs {
    ed_ints multiples;
} tile_attrs;

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
                            "multiples %s are not one for each axis of %s",
                            text_of_ints(shape, rank).s, text_of_tensor(x).s);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "negative multiple %lld of axis %lld",
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
    .attrs = (const ed_attr[]){ATTR(tile_attrs, multiples, ED_ATTR_INTS, "one for each axis"), {0}},
    .attrs_size = sizeof(tile_attrs),
    .infer = tile_infer,
    .kernel = tile_kernel,
    .gradient = tile_gradient,
    .reference = tile_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)}, .attrs = &(const tile_attrs){ED_SAMPLE_INTS(2, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 1, 2)},
         .attrs = &(const tile_attrs){ED_SAMPLE_INTS(1, 4, 2)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2)}, .attrs = &(const tile_attrs){ED_SAMPLE_INTS()}}),
};

ed_tensor *ed_tile(ed_tensor *x, ed_ints multiples)
{
    return CALL_OP(tile, (&(tile_attrs){multiples}), x);
}

/* ---- pad ------------------------------------------------------------------------------------- */

static bool check_padding(const ed_call *call, const char *name, ed_ints list)
{
    const ed_tensor *x = call->inputs[0];
    if (!list.values) return true;
    if (list.count != x->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s %s is not one number for each axis of %s", name,
                            text_of_ints(list.values, list.count).s, text_of_tensor(x).s);
    for (int i = 0; i < x->rank; i++)
        if (list.values[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "%s %s: a number is negative; ed_slice cuts", name,
                                text_of_ints(list.values, list.count).s);
    return true;
}

static int64_t padding(ed_ints list, int i)
{
    return list.values ? list.values[i] : 0;
}

static bool pad_infer(ed_call *call)
{
    const ed_pad_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    if (!check_padding(call, "before", options->before) ||
        !check_padding(call, "after", options->after))
        return false;
    if (!dtype_holds(x->dtype, options->value))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "the value %.17g can't be an element of %s",
                            options->value, ed_dtype_name(x->dtype));
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

/* Large ones are cut along the first axis that has something to cut; the axes before it are of
 * extent 1 in x. */
static bool pad_kernel(ed_call *call)
{
    padder p;
    const ed_tensor *x = call->inputs[0];
    ed_tensor *y = call->outputs[0];
    int64_t element = (int64_t)dtype_size(x->dtype);
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

static bool pad_gradient(const ed_gradient_call *g)
{
    const ed_pad_options *options = g->attrs;
    int rank = (int)g->shapes[0].count;
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        begin[i] = padding(options->before, i);
        end[i] = begin[i] + g->shapes[0].values[i];
    }
    g->dx[0] =
        ed_slice_with(g->dy[0], &(ed_slice_options){.begin = {begin, rank}, .end = {end, rank}});
    return true;
}

static int64_t pad_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const ed_pad_options *options = call->attrs;
    int64_t from[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        from[i] = at[i] - padding(options->before, i);
        if (from[i] < 0 || from[i] >= x->shape[i]) return -1;
    }
    return shape_number(x, from);
}

static bool pad_plain(const ed_call *call)
{
    return shape_plain(call, pad_source, ((const ed_pad_options *)call->attrs)->value);
}

ED_OP(pad) = {
    .name = "pad",
    .doc = "elements of a value around x",
    .operands = ANY,
    .attrs = (const ed_attr[]){ATTR(ed_pad_options, before, ED_ATTR_INTS,
                                    "how many, one number for each axis"),
                               ATTR(ed_pad_options, after, ED_ATTR_INTS,
                                    "how many, one number for each axis"),
                               ATTR(ed_pad_options, value, ED_ATTR_FLOAT, "default 0"),
                               {0}},
    .attrs_size = sizeof(ed_pad_options),
    .infer = pad_infer,
    .kernel = pad_kernel,
    .gradient = pad_gradient,
    .reference = pad_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = &(const ed_pad_options){ED_SAMPLE_INTS(1, 0),
                                                            ED_SAMPLE_INTS(2, 3), 1}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3)},
                           .attrs = &(const ed_pad_options){.before = ED_SAMPLE_INTS(0, 2, 0)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4)},
                           .attrs = &(const ed_pad_options){.after = ED_SAMPLE_INTS(1)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_pad_with(ed_tensor *x, const ed_pad_options *options)
{
    return CALL_OP(pad, options, x);
}
