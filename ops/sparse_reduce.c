/*
 * Reductions of sparse tensors, and softmax: values are folded where indices agree along the axes
 * that stay.
 */
#include "ops/bins.h"
#include "ops/sparse.h"
#include "ops/sparses.h"
#include "ops/index.h"
#include <math.h>
#include <string.h>

/* ---- Sums and maxima ------------------------------------------------------------------------- */

#define FOLD_ATTRS(FIELD, T)                                                                       \
    SPARSE_SHAPE(FIELD, T)                                                                         \
    ED_REDUCE_OPTIONS(FIELD, T)
ED_OPTIONS(fold_attrs, FOLD_ATTRS);

/* The sizes of the axes that stay, those reduced being 1, and the shape of the result. */
static bool fold_shape(const ed_call *call, int64_t *sizes, int64_t *shape, int *rank)
{
    const fold_attrs *o = call->attrs;
    unsigned reduced;
    if (!ops_axes(call, o->axis, (int)o->dense_shape.count, &reduced)) return false;
    *rank = 0;
    for (int d = 0; d < o->dense_shape.count; d++) {
        const bool gone = reduced >> d & 1;
        sizes[d] = gone ? 1 : o->dense_shape.values[d];
        if (!gone || o->keepdims) shape[(*rank)++] = sizes[d];
    }
    return true;
}

/* For each entry the number of its element in the result. */
static ed_tensor *targets(const ed_tensor *indices, const int64_t *sizes)
{
    const int64_t n = indices->shape[0], rank = indices->shape[1];
    ed_tensor *y = sparse_integers(n, 0);
    for (int64_t i = 0; y && i < n; i++) {
        int64_t number = 0;
        for (int64_t d = 0; d < rank; d++)
            if (sizes[d] != 1) number = number * sizes[d] + sparse_at(indices, i, d);
        sparse_data(y)[i] = number;
    }
    return y;
}

static bool fold_compose(ed_call *call)
{
    const ed_ints dense = ((const fold_attrs *)call->attrs)->dense_shape;
    int64_t sizes[ED_MAX_RANK], shape[ED_MAX_RANK];
    int rank;
    ed_tensor *indices;
    if (!sparse_operands(call, 0, dense, &indices, NULL) || !fold_shape(call, sizes, shape, &rank))
        return false;
    ed_tensor *ids = targets(indices, sizes), *y;
    const int64_t count = index_product(sizes, 0, (int)dense.count);
    if (!ids) return false;
    if (*(const bool *)call->op->extra) {
        y = ed_unsorted_segment_max(call->inputs[1], ids, count);
        y = y ? ed_where(ed_greater(bins_count(ids, count), 0), y, 0) : NULL;
    } else {
        y = ed_unsorted_segment_sum(call->inputs[1], ids, count);
    }
    return ed_call_result(call, 0, ed_reshape(y, (ed_ints){shape, rank}));
}

static bool fold_reference(const ed_call *call)
{
    const ed_ints dense = ((const fold_attrs *)call->attrs)->dense_shape;
    int64_t sizes[ED_MAX_RANK], shape[ED_MAX_RANK];
    const bool largest = *(const bool *)call->op->extra;
    const ed_tensor *values = call->inputs[1], *y = call->outputs[0];
    const double *x = (const double *)values->data, *at = (const double *)call->inputs[0]->data;
    int rank;
    if (!fold_shape(call, sizes, shape, &rank)) return false;
    for (int64_t o = 0; o < y->size; o++) {
        double folded = 0;
        bool any = false;
        for (int64_t i = 0; i < values->size; i++) {
            int64_t number = 0;
            for (int64_t d = 0; d < dense.count; d++)
                number = number * sizes[d] + (int64_t)at[i * dense.count + d] % sizes[d];
            if (number != o) continue;
            if (!largest)
                folded += x[i];
            else if (!any || isnan(x[i]) || x[i] > folded)
                folded = x[i];
            any = true;
        }
        ((double *)y->data)[o] = folded;
    }
    return true;
}

#define FOLD_SAMPLE(in, ...)                                                                       \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(0, 2, 5, 2), in(-2, 2, 5)},                                        \
        .attrs =                                                                                   \
            ED_ATTRS(FOLD_ATTRS, fold_attrs, .dense_shape = ED_SAMPLE_INTS(3, 4), ##__VA_ARGS__)   \
    }
#define FOLD(symbol, max, in, text)                                                                \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {SPARSE_INDICES("indices"), {"values", ED_SET_NUMBER, 'T'}},                   \
        .flags = ED_OP_INTERNAL,                                                                   \
        ED_OP_ATTRS(FOLD_ATTRS, fold_attrs),                                                       \
        .compose = fold_compose,                                                                   \
        .reference = fold_reference,                                                               \
        .extra = &(const bool){max},                                                               \
        .samples = ED_SAMPLES(FOLD_SAMPLE(in), FOLD_SAMPLE(in, .axis = ED_SAMPLE_INTS(1)),         \
                              FOLD_SAMPLE(in, .axis = ED_SAMPLE_INTS(-2), .keepdims = true),       \
                              FOLD_SAMPLE(in, .axis = ED_SAMPLE_INTS(0, 1), .keepdims = true)),    \
    };                                                                                             \
    ed_tensor *ed_##symbol##_with(ed_sparse_tensor *x, const ed_reduce_options *options)           \
    {                                                                                              \
        if (NULL_GIVEN(#symbol, x) ||                                                              \
            !(options = CHECKED_OPTIONS(#symbol, ED_REDUCE_OPTIONS, options)))                     \
            return NULL;                                                                           \
        return CALL_OP(symbol,                                                                     \
                       ED_OPTIONS_FROM(ED_REDUCE_OPTIONS, options, fold_attrs,                     \
                                       .dense_shape = sparse_shape_of(x)),                         \
                       x->indices, x->values);                                                     \
    }

FOLD(sparse_reduce_sum, false, ED_SAMPLE_IN, "sums of entries along axes")
FOLD(sparse_reduce_max, true, ED_DISTINCT_IN, "maxima of entries along axes, 0 of none")

/* ---- Softmax --------------------------------------------------------------------------------- */

#define SOFTMAX_ATTRS(FIELD, T) SPARSE_SHAPE(FIELD, T)
ED_OPTIONS(sparse_softmax_attrs, SOFTMAX_ATTRS);

static bool softmax_compose(ed_call *call)
{
    const ed_ints shape = ((const sparse_softmax_attrs *)call->attrs)->dense_shape;
    ed_tensor *indices, *x = call->inputs[1];
    if (!sparse_operands(call, 0, shape, &indices, NULL)) return false;
    if (shape.count < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must have rank >= 2, got a dense shape %s",
                            text_of_ints(shape.values, shape.count).s);
    int64_t rows;
    ed_tensor *ids =
        sparse_groups(sparse_numbers(indices, shape.values, 0, (int)shape.count - 1), &rows);
    if (!ids) return false;
    ed_tensor *most = ed_stop_gradient(ed_unsorted_segment_max(x, ids, rows));
    ed_tensor *e = ed_exp(ed_sub(x, ed_gather(most, ids)));
    ed_tensor *sum = ed_gather(ed_unsorted_segment_sum(e, ids, rows), ids);
    return ed_call_result(call, 0, ed_div(e, sum));
}

/* Entry by entry, over all that have the same indices but for the last. */
static bool softmax_reference(const ed_call *call)
{
    const ed_ints shape = ((const sparse_softmax_attrs *)call->attrs)->dense_shape;
    const ed_tensor *values = call->inputs[1], *indices = call->inputs[0];
    const int64_t n = values->size, columns = shape.values[shape.count - 1];
    const double *x = (const double *)values->data;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = sparse_plain_number(indices, shape, i) / columns;
        double most = x[i], sum = 0;
        for (int64_t j = 0; j < n; j++)
            if (sparse_plain_number(indices, shape, j) / columns == row && !(x[j] <= most))
                most = x[j];
        for (int64_t j = 0; j < n; j++)
            if (sparse_plain_number(indices, shape, j) / columns == row) sum += exp(x[j] - most);
        ((double *)call->outputs[0]->data)[i] = exp(x[i] - most) / sum;
    }
    return true;
}

#define SOFTMAX_OF(...)                                                                            \
    ED_ATTRS(SOFTMAX_ATTRS, sparse_softmax_attrs, .dense_shape = ED_SAMPLE_INTS(__VA_ARGS__))

ED_OP(sparse_softmax) = {
    .name = "sparse_softmax",
    .doc = "softmax of the entries of each row",
    .operands = {SPARSE_INDICES("indices"), {"values", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_INTERNAL,
    ED_OP_ATTRS(SOFTMAX_ATTRS, sparse_softmax_attrs),
    .compose = softmax_compose,
    .reference = softmax_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 6, 2), ED_SAMPLE_IN(-2, 2, 6)},
                           .attrs = SOFTMAX_OF(3, 4)},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(-2, 2, 5)},
                           .attrs = SOFTMAX_OF(2, 2, 5)}),
};

ed_sparse_tensor *ed_sparse_softmax(ed_sparse_tensor *x)
{
    ED_SCOPE;
    if (NULL_GIVEN("sparse_softmax", x)) return NULL;
    const ed_ints shape = sparse_shape_of(x);
    ed_tensor *values =
        CALL_OP(sparse_softmax, ED_ATTRS(SOFTMAX_ATTRS, sparse_softmax_attrs, .dense_shape = shape),
                x->indices, x->values);
    return values ? ed_keep(sparse_new("sparse_softmax", x->indices, values, shape)) : NULL;
}
