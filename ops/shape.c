#include "ops/shape.h"
#include "tensor/copy.h"
#include <string.h>

/*
 * Shapes. Every op here is a view of its operand: a shape, strides and the offset of the first
 * element. Only a reshape that no strides can say, and contiguous, copy.
 */

/* ---- Helpers --------------------------------------------------------------------------------- */

bool shape_too_large(const ed_call *call)
{
    return ed_call_fail(call, ED_OUT_OF_MEMORY,
                        "the result has more elements than memory can hold");
}

bool shape_of_attr(const ed_call *call, const char *name, ed_ints list, int *rank, int64_t *shape)
{
    if (!list.values) return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is required", name);
    if (list.count < 0 || list.count > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must have 0 to %d entries, got %lld",
                            name, ED_MAX_RANK, (long long)list.count);
    *rank = (int)list.count;
    for (int i = 0; i < *rank; i++) shape[i] = list.values[i];
    return true;
}

int64_t shape_number(const ed_tensor *x, const int64_t *at)
{
    int64_t number = 0;
    for (int i = 0; i < x->rank; i++) number = number * x->shape[i] + at[i];
    return number;
}

bool shape_plain(const ed_call *call,
                 int64_t (*source)(const ed_call *call, const ed_tensor *x, const int64_t *at),
                 double otherwise)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const double *from = (const double *)x->data;
    for (int64_t i = 0; i < y->size; i++) {
        int64_t at[ED_MAX_RANK], rest = i;
        for (int d = y->rank - 1; d >= 0; d--) {
            at[d] = rest % y->shape[d];
            rest /= y->shape[d];
        }
        int64_t number = source(call, x, at);
        ((double *)y->data)[i] = number < 0 ? otherwise : from[number];
    }
    return true;
}

void shape_place(const ed_call *call, int i, int64_t offset, const int64_t *strides)
{
    const ed_tensor *x = call->inputs[i];
    ed_tensor *y = call->outputs[0];
    size_t element = dtype_size(x->dtype);
    if (x->size == 0) return;
    copy_box(element, x->rank, x->shape, x->data, x->strides, y->data + offset * (int64_t)element,
             strides);
}

static bool is_half(const ed_tensor *x)
{
    return x && ED_SET_HALF & 1u << x->dtype;
}

ed_tensor *shape_sum_to(ed_tensor *dy, ed_ints shape)
{
    if (!is_half(dy)) return ops_sum_to(dy, shape);
    return ed_cast(ops_sum_to(ed_cast(dy, ED_FLOAT32), shape), dy->dtype);
}

ed_tensor *shape_sum_axis(ed_tensor *dy, int64_t axis)
{
    if (!is_half(dy)) return ed_reduce_sum(dy, .axis = {&axis, 1});
    return ed_cast(ed_reduce_sum(ed_cast(dy, ED_FLOAT32), .axis = {&axis, 1}), dy->dtype);
}

/* For the ops whose operand's elements stay in order: dx = dy in x's shape. */
static bool reshape_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_reshape(g->dy[0], g->shapes[0]);
    return true;
}

static bool same_elements(const ed_call *call)
{
    memcpy(call->outputs[0]->data, call->inputs[0]->data,
           (size_t)call->inputs[0]->size * sizeof(double));
    return true;
}

static bool pack_kernel(ed_call *call)
{
    tensor_pack(call->inputs[0], call->outputs[0]->data);
    return true;
}

/* ---- reshape --------------------------------------------------------------------------------- */

#define RESHAPE_ATTRS(FIELD, T) FIELD(T, INTS, shape, ED_NO_LIST, ED_REQUIRED, "of the result")
ED_OPTIONS(reshape_attrs, RESHAPE_ATTRS);
#define SHAPED(...) ED_ATTRS(RESHAPE_ATTRS, reshape_attrs, .shape = __VA_ARGS__)

static bool reshape_mismatch(const ed_call *call, ed_ints wanted)
{
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "%s has %lld elements; they can't have the shape %s",
                        text_of_tensor(call->inputs[0]).s, (long long)call->inputs[0]->size,
                        text_of_ints(wanted.values, wanted.count).s);
}

/* Puts what is left in place of a -1. */
static bool complete(const ed_call *call, int rank, int64_t *shape)
{
    ed_ints wanted = ((const reshape_attrs *)call->attrs)->shape;
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "invalid shape %s: %s",
                                text_of_ints(shape, rank).s,
                                shape[i] < -1 ? "sizes must be >= -1" : "only one size may be -1");
        if (shape[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(known, shape[i], &known))
            return reshape_mismatch(call, wanted);
    }
    int64_t size = call->inputs[0]->size;
    if (open < 0 ? known != size : known == 0 || size % known != 0)
        return reshape_mismatch(call, wanted);
    if (open >= 0) shape[open] = size / known;
    return true;
}

/*
 * Strides under which x's elements lie in the new shape, if there are any. Both shapes are walked
 * side by side and cut into the smallest runs of dimensions with the same number of elements;
 * within each run x must lie without gaps.
 */
static bool strides_for(const ed_tensor *x, int rank, const int64_t *shape, int64_t *strides)
{
    if (x->flags & TENSOR_CONTIGUOUS) {
        tensor_row_major(rank, shape, strides);
        return true;
    }
    int64_t old_shape[ED_MAX_RANK], old_strides[ED_MAX_RANK], gap = 1;
    int old = 0, i = 0;
    for (int d = 0; d < x->rank; d++)
        if (x->shape[d] != 1) {
            old_shape[old] = x->shape[d];
            old_strides[old++] = x->strides[d];
        }
    for (int o = 0; o < old;) {
        int64_t have = old_shape[o], want = shape[i];
        int first = i, end = o + 1;
        for (i++; have != want;)
            if (want < have) {
                want *= shape[i++];
            } else {
                if (old_strides[end - 1] != old_shape[end] * old_strides[end]) return false;
                have *= old_shape[end++];
            }
        gap = old_strides[end - 1];
        for (int d = i - 1; d >= first; d--) {
            strides[d] = gap;
            gap *= shape[d];
        }
        gap = old_strides[end - 1];
        o = end;
    }
    for (; i < rank; i++) strides[i] = gap; /* sizes of 1 */
    return true;
}

static bool reshape_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK], size;
    int rank = 0;
    if (!shape_of_attr(call, "shape", ((const reshape_attrs *)call->attrs)->shape, &rank, shape) ||
        !complete(call, rank, shape) || !tensor_count(call->op->name, x->dtype, rank, shape, &size))
        return false;
    if (strides_for(x, rank, shape, strides))
        return ed_call_view(call, 0, 0, rank, shape, strides, 0);
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

/* The output says all of the shape. */
static ed_list *reshape_batch(const ed_batch_call *call)
{
    int64_t shape[ED_MAX_RANK + 1];
    return ed_batch_result(
        ed_reshape(call->batches[0], shape_of_batch(call->n, call->outputs[0], shape)));
}

ED_OP(reshape) = {
    .name = "reshape",
    .doc = "the same elements in another shape, one size of which may be -1",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(RESHAPE_ATTRS, reshape_attrs),
    .infer = reshape_infer,
    .batch = reshape_batch,
    .kernel = pack_kernel,
    .gradient = reshape_gradient,
    .reference = same_elements,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 6)}, .attrs = SHAPED(ED_SAMPLE_INTS(2, -1, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 1, 6)}, .attrs = SHAPED(ED_SAMPLE_INTS(12))},
        {.inputs = {ED_SAMPLE_IN(-2, 2)}, .attrs = SHAPED(ED_SAMPLE_INTS(1, 1))}),
};

ed_tensor *ed_reshape(ed_tensor *x, ed_ints shape)
{
    return CALL_OP(reshape, SHAPED(shape), x);
}

ed_tensor *ed_flatten(ed_tensor *x)
{
    return ed_reshape(x, ED_SHAPE(-1));
}

/* ---- transpose ------------------------------------------------------------------------------- */

/* The axes in their new order. */
static bool permutation(const ed_call *call, int rank, int *perm)
{
    ed_ints given = ((const ed_transpose_options *)call->attrs)->perm;
    unsigned seen = 0;
    if (given.values && given.count != rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "perm %s must name each axis of %s once",
                            text_of_places(given.values, given.count).s,
                            text_of_tensor(call->inputs[0]).s);
    for (int i = 0; i < rank; i++) {
        perm[i] = rank - 1 - i;
        if (given.values && !ops_axis(call, given.values[i], rank, &perm[i])) return false;
        if (seen & 1u << perm[i])
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "perm %s names axis %lld twice",
                                text_of_places(given.values, given.count).s, text_nth(perm[i]));
        seen |= 1u << perm[i];
    }
    return true;
}

static bool transpose_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int perm[ED_MAX_RANK];
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK];
    if (!permutation(call, x->rank, perm)) return false;
    for (int i = 0; i < x->rank; i++) {
        shape[i] = x->shape[perm[i]];
        strides[i] = x->strides[perm[i]];
    }
    return ed_call_view(call, 0, 0, x->rank, shape, strides, 0);
}

static bool transpose_gradient(const ed_gradient_call *g)
{
    const ed_transpose_options *options = g->attrs;
    int rank = (int)g->shapes[0].count;
    int64_t inverse[ED_MAX_RANK];
    for (int i = 0; options->perm.values && i < rank; i++)
        inverse[tensor_axis(options->perm.values[i], rank)] = i;
    ed_ints perm = {options->perm.values ? inverse : NULL, rank};
    g->dx[0] = ed_transpose(g->dy[0], .perm = perm);
    return true;
}

static int64_t transpose_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    ed_ints perm = ((const ed_transpose_options *)call->attrs)->perm;
    int64_t from[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        from[perm.values ? tensor_axis(perm.values[i], x->rank) : x->rank - 1 - i] = at[i];
    return shape_number(x, from);
}

static bool transpose_plain(const ed_call *call)
{
    return shape_plain(call, transpose_source, 0);
}

static ed_list *transpose_batch(const ed_batch_call *call)
{
    const ed_ints given = ((const ed_transpose_options *)call->attrs)->perm;
    const int rank = call->inputs[0]->rank;
    int64_t perm[ED_MAX_RANK + 1] = {0};
    for (int i = 0; i < rank; i++)
        perm[i + 1] = 1 + (given.values ? tensor_axis(given.values[i], rank) : rank - 1 - i);
    return ed_batch_result(ed_transpose(call->batches[0], .perm = {perm, rank + 1}));
}

ED_OP(transpose) = {
    .name = "transpose",
    .doc = "axes in another order, by default reversed",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(ED_TRANSPOSE_OPTIONS, ed_transpose_options),
    .infer = transpose_infer,
    .batch = transpose_batch,
    .gradient = transpose_gradient,
    .reference = transpose_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_TRANSPOSE_OPTIONS, ed_transpose_options,
                                             .perm = ED_SAMPLE_INTS(1, -1, 0))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_transpose_with(ed_tensor *x, const ed_transpose_options *options)
{
    return CALL_OP(transpose, options, x);
}

/* ---- expand_dims, squeeze -------------------------------------------------------------------- */

#define AXIS_ATTRS(FIELD, T)                                                                       \
    FIELD(T, AXIS, axis, 0, ED_ANY, "index of the new axis; negative: from the end")
ED_OPTIONS(axis_attrs, AXIS_ATTRS);

static bool expand_dims_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK];
    int axis;
    if (x->rank == ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank < %d, got %s", ED_MAX_RANK,
                            text_of_tensor(x).s);
    if (!ops_axis(call, ((const axis_attrs *)call->attrs)->axis, x->rank + 1, &axis)) return false;
    for (int i = 0; i < x->rank; i++) {
        shape[i + (i >= axis)] = x->shape[i];
        strides[i + (i >= axis)] = x->strides[i];
    }
    shape[axis] = 1;
    strides[axis] = axis < x->rank ? x->shape[axis] * x->strides[axis] : 1;
    return ed_call_view(call, 0, 0, x->rank + 1, shape, strides, 0);
}

ED_OP(expand_dims) = {
    .name = "expand_dims",
    .doc = "a new axis of size 1",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(AXIS_ATTRS, axis_attrs),
    .infer = expand_dims_infer,
    .batch = reshape_batch,
    .gradient = reshape_gradient,
    .reference = same_elements,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = ED_ATTRS(AXIS_ATTRS, axis_attrs, .axis = 1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3)},
                           .attrs = ED_ATTRS(AXIS_ATTRS, axis_attrs, .axis = -1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_expand_dims(ed_tensor *x, int64_t axis)
{
    return CALL_OP(expand_dims, ED_ATTRS(AXIS_ATTRS, axis_attrs, .axis = axis), x);
}

static bool squeeze_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    ed_ints axes = ((const ed_squeeze_options *)call->attrs)->axis;
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK];
    unsigned mask;
    int rank = 0;
    if (!ops_axes(call, axes, x->rank, &mask)) return false;
    for (int i = 0; i < x->rank; i++) {
        bool named = mask & 1u << i;
        if (named && x->shape[i] == 1) continue;
        if (named && axes.values)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "axis %lld of %s must have size 1, got %lld", text_nth(i),
                                text_of_tensor(x).s, (long long)x->shape[i]);
        shape[rank] = x->shape[i];
        strides[rank++] = x->strides[i];
    }
    return ed_call_view(call, 0, 0, rank, shape, strides, 0);
}

ED_OP(squeeze) = {
    .name = "squeeze",
    .doc = "without axes of size 1",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(ED_SQUEEZE_OPTIONS, ed_squeeze_options),
    .infer = squeeze_infer,
    .batch = reshape_batch,
    .gradient = reshape_gradient,
    .reference = same_elements,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 1, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 1)},
                           .attrs = ED_ATTRS(ED_SQUEEZE_OPTIONS, ed_squeeze_options,
                                             .axis = ED_SAMPLE_INTS(-1))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 1)}}),
};

ed_tensor *ed_squeeze_with(ed_tensor *x, const ed_squeeze_options *options)
{
    return CALL_OP(squeeze, options, x);
}

/* ---- broadcast_to ---------------------------------------------------------------------------- */

static bool broadcast_to_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK];
    int rank = 0;
    if (!shape_of_attr(call, "shape", ((const reshape_attrs *)call->attrs)->shape, &rank, shape))
        return false;
    bool fits = rank >= x->rank;
    for (int i = rank - 1; fits && i >= 0; i--) {
        int own = i - (rank - x->rank);
        bool same = own >= 0 && x->shape[own] == shape[i];
        if (shape[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "shape %s has a negative size",
                                text_of_ints(shape, rank).s);
        fits = same || own < 0 || x->shape[own] == 1;
        strides[i] = same ? x->strides[own] : 0;
    }
    if (!fits)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s does not broadcast to %s",
                            text_of_tensor(x).s, text_of_ints(shape, rank).s);
    return ed_call_view(call, 0, 0, rank, shape, strides, 0);
}

static bool broadcast_to_gradient(const ed_gradient_call *g)
{
    g->dx[0] = shape_sum_to(g->dy[0], g->shapes[0]);
    return true;
}

static int64_t broadcast_to_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    int64_t from[ED_MAX_RANK];
    int skip = call->outputs[0]->rank - x->rank;
    for (int i = 0; i < x->rank; i++) from[i] = x->shape[i] == 1 ? 0 : at[i + skip];
    return shape_number(x, from);
}

static bool broadcast_to_plain(const ed_call *call)
{
    return shape_plain(call, broadcast_to_source, 0);
}

static ed_list *broadcast_to_batch(const ed_batch_call *call)
{
    int64_t wide[ED_MAX_RANK + 1], shape[ED_MAX_RANK + 1];
    const ed_tensor *x = call->inputs[0];
    const int more = call->outputs[0]->rank - x->rank;
    for (int i = 0; i < more; i++) wide[i + 1] = 1;
    for (int i = 0; i < x->rank; i++) wide[i + 1 + more] = x->shape[i];
    wide[0] = call->n;
    ed_tensor *aligned = ed_reshape(call->batches[0], ((ed_ints){wide, x->rank + more + 1}));
    return ed_batch_result(
        ed_broadcast_to(aligned, shape_of_batch(call->n, call->outputs[0], shape)));
}

ED_OP(broadcast_to) = {
    .name = "broadcast_to",
    .doc = "x repeated along axes of size 1 and new leading ones",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(RESHAPE_ATTRS, reshape_attrs),
    .infer = broadcast_to_infer,
    .batch = broadcast_to_batch,
    .gradient = broadcast_to_gradient,
    .reference = broadcast_to_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 1)}, .attrs = SHAPED(ED_SAMPLE_INTS(2, 3, 4))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4)}, .attrs = SHAPED(ED_SAMPLE_INTS(3, 4))},
        {.inputs = {ED_SAMPLE_IN(-2, 2)}, .attrs = SHAPED(ED_SAMPLE_INTS(2, 2))}),
};

ed_tensor *ed_broadcast_to(ed_tensor *x, ed_ints shape)
{
    return CALL_OP(broadcast_to, SHAPED(shape), x);
}

/* ---- contiguous ------------------------------------------------------------------------------ */

static bool contiguous_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->flags & TENSOR_CONTIGUOUS)
        return ed_call_view(call, 0, 0, x->rank, x->shape, x->strides, 0);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape);
}

ED_OP(contiguous) = {
    .name = "contiguous",
    .doc = "the same values in row-major order without gaps",
    .operands = SHAPE_OPERAND,
    .infer = contiguous_infer,
    .batch = ed_batch_first,
    .kernel = pack_kernel,
    .gradient = reshape_gradient,
    .reference = same_elements,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_contiguous(ed_tensor *x)
{
    if (x && !(x->flags & (TENSOR_VARIABLE | TENSOR_WEAK)) && x->flags & TENSOR_CONTIGUOUS)
        return x;
    return CALL_OP(contiguous, NULL, x);
}

/* ---- reverse --------------------------------------------------------------------------------- */

#define REVERSE_ATTRS(FIELD, T) FIELD(T, AXES, axes, ED_NO_LIST, ED_ANY, "which; default: all")
ED_OPTIONS(reverse_attrs, REVERSE_ATTRS);

static bool reverse_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t strides[ED_MAX_RANK], offset = 0;
    unsigned mask;
    if (!ops_axes(call, ((const reverse_attrs *)call->attrs)->axes, x->rank, &mask)) return false;
    for (int i = 0; i < x->rank; i++) {
        bool turned = mask & 1u << i && x->shape[i] > 1;
        strides[i] = turned ? -x->strides[i] : x->strides[i];
        if (turned) offset += (x->shape[i] - 1) * x->strides[i];
    }
    return ed_call_view(call, 0, 0, x->rank, x->shape, strides, offset);
}

static bool reverse_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_reverse(g->dy[0], ((const reverse_attrs *)g->attrs)->axes);
    return true;
}

static int64_t reverse_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    ed_ints axes = ((const reverse_attrs *)call->attrs)->axes;
    int64_t from[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++) from[i] = axes.values ? at[i] : x->shape[i] - 1 - at[i];
    for (int64_t k = 0; axes.values && k < axes.count; k++) {
        int i = tensor_axis(axes.values[k], x->rank);
        from[i] = x->shape[i] - 1 - at[i];
    }
    return shape_number(x, from);
}

static bool reverse_plain(const ed_call *call)
{
    return shape_plain(call, reverse_source, 0);
}

ED_OP(reverse) = {
    .name = "reverse",
    .doc = "in reverse order along the axes",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(REVERSE_ATTRS, reverse_attrs),
    .infer = reverse_infer,
    .batch = ed_batch_axes,
    .gradient = reverse_gradient,
    .reference = reverse_plain,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                    .attrs = ED_ATTRS(REVERSE_ATTRS, reverse_attrs, .axes = ED_SAMPLE_INTS(-1))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                    .attrs = ED_ATTRS(REVERSE_ATTRS, reverse_attrs, .axes = ED_SAMPLE_INTS(0, 1))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 4)}}),
};

ed_tensor *ed_reverse(ed_tensor *x, ed_ints axes)
{
    return CALL_OP(reverse, ED_ATTRS(REVERSE_ATTRS, reverse_attrs, .axes = axes), x);
}
