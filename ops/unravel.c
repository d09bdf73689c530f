/*
 * Numbers of elements as indices (unravel_index), and shapes that broadcast.
 */
#include "ops/index.h"
#include "ops/shape.h"
#include <string.h>

#define UNRAVEL_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_REQUIRED, "of the tensor whose elements are numbered")
ED_OPTIONS(unravel_attrs, UNRAVEL_ATTRS);

static bool unravel_index_infer(ed_call *call)
{
    const ed_tensor *indices = call->inputs[0];
    int64_t dims[ED_MAX_RANK], shape[ED_MAX_RANK + 1], *size = ed_call_plan(call, sizeof *size);
    int rank;
    if (!shape_of_attr(call, "shape", ((const unravel_attrs *)call->attrs)->shape, &rank, dims) ||
        !tensor_count(call->op->name, ED_INT64, rank, dims, size))
        return false;
    if (indices->rank == ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "indices must have rank < %d, got %s",
                            ED_MAX_RANK, text_of_tensor(indices).s);
    shape[0] = rank;
    memcpy(shape + 1, indices->shape, (size_t)indices->rank * sizeof *shape);
    return ed_call_output(call, 0, indices->dtype, indices->rank + 1, shape);
}

static bool unravel_index_kernel(ed_call *call)
{
    const ed_ints dims = ((const unravel_attrs *)call->attrs)->shape;
    const ed_tensor *indices = call->inputs[0], *y = call->outputs[0];
    const int64_t *all = index_read(call, indices, *(const int64_t *)call->plan);
    if (!all) return false;
    for (int64_t i = 0; i < indices->size; i++) {
        int64_t rest = all[i];
        for (int64_t d = dims.count - 1; d >= 0; rest /= dims.values[d--]) {
            const int64_t at = rest % dims.values[d];
            if (y->dtype == ED_INT64)
                ((int64_t *)y->data)[d * indices->size + i] = at;
            else
                ((int32_t *)y->data)[d * indices->size + i] = (int32_t)at;
        }
    }
    index_drop(indices, all);
    return true;
}

/* By subtraction, from the first axis on. */
static bool unravel_index_plain(const ed_call *call)
{
    const ed_ints dims = ((const unravel_attrs *)call->attrs)->shape;
    const int64_t n = call->inputs[0]->size;
    for (int64_t i = 0; i < n; i++) {
        double rest = ((const double *)call->inputs[0]->data)[i];
        for (int64_t d = 0; d < dims.count; d++) {
            const int64_t behind = index_product(dims.values, (int)d + 1, (int)dims.count);
            int64_t at = 0;
            for (; rest >= (double)behind; rest -= (double)behind) at++;
            ((double *)call->outputs[0]->data)[d * n + i] = (double)at;
        }
    }
    return true;
}

#define UNRAVEL(...) ED_ATTRS(UNRAVEL_ATTRS, unravel_attrs, .shape = __VA_ARGS__)

ED_OP(unravel_index) = {
    .name = "unravel_index",
    .doc = "the index along each axis, [rank, ...], of the elements with these numbers",
    .operands = {{"indices", ED_SET_INDEX, 'I'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(UNRAVEL_ATTRS, unravel_attrs),
    .infer = unravel_index_infer,
    .kernel = unravel_index_kernel,
    .no_gradient = "its operand is an integer",
    .reference = unravel_index_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(0, 11, 5)}, .attrs = UNRAVEL(ED_SAMPLE_INTS(3, 4))},
        {.inputs = {ED_SAMPLE_IN(0, 23, 2, 3)}, .attrs = UNRAVEL(ED_SAMPLE_INTS(2, 3, 4))},
        {.inputs = {ED_SAMPLE_IN(0, 6)}, .attrs = UNRAVEL(ED_SAMPLE_INTS(7))}),
};

ed_tensor *ed_unravel_index(ed_tensor *indices, ed_ints shape)
{
    return CALL_OP(unravel_index, UNRAVEL(shape), indices);
}

/* ---- broadcast_shapes ------------------------------------------------------------------------ */

/* Whether a list is a shape. */
static bool is_shape(ed_ints list)
{
    bool fine = list.values && list.count >= 0 && list.count <= ED_MAX_RANK;
    for (int64_t i = 0; fine && i < list.count; i++) fine = list.values[i] >= 0;
    if (!fine)
        ed_fail(ED_INVALID_ARGUMENT,
                "broadcast_shapes: a shape must have 0 to %d sizes, >= 0, got %s", ED_MAX_RANK,
                list.values ? text_of_ints(list.values, list.count).s : "NULL");
    return fine;
}

ed_ints ed_broadcast_shapes(ed_ints a, ed_ints b)
{
    int64_t shape[ED_MAX_RANK] = {0}, *kept = NULL;
    int rank = 0;
    if (!is_shape(a) || !is_shape(b)) return (ed_ints){NULL, 0};
    if (!ops_broadcast((int)a.count, a.values, (int)b.count, b.values, &rank, shape))
        ed_fail(ED_INVALID_ARGUMENT, "broadcast_shapes: shapes %s and %s don't broadcast",
                text_of_ints(a.values, a.count).s, text_of_ints(b.values, b.count).s);
    else if ((kept = ed_scope_alloc(sizeof shape)))
        memcpy(kept, shape, sizeof shape);
    return (ed_ints){kept, kept ? rank : 0};
}
