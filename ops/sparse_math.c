/*
 * Arithmetic of sparse tensors: two of them joined entry by entry, and one with a dense tensor.
 */
#include "ops/sparse.h"
#include "ops/sparses.h"
#include <math.h>
#include <string.h>

#define SPARSE_ATTRS(FIELD, T) SPARSE_SHAPE(FIELD, T)
ED_OPTIONS(sparse_attrs, SPARSE_ATTRS);
#define SHAPED(...) ED_ATTRS(SPARSE_ATTRS, sparse_attrs, .dense_shape = ED_SAMPLE_INTS(__VA_ARGS__))

/* ---- Two sparse tensors ---------------------------------------------------------------------- */

typedef enum sparse_join { JOIN_SUM, JOIN_MAXIMUM, JOIN_MINIMUM } sparse_join;

/* The order of all numbers of two tensors that ascend, those of a before equal ones of b. */
static ed_tensor *merged(const ed_tensor *a, const ed_tensor *b)
{
    ed_tensor *order = sparse_integers(a->size + b->size, 0);
    const int64_t *x = (const int64_t *)a->data, *y = (const int64_t *)b->data;
    int64_t i = 0, j = 0;
    while (order && i + j < order->size) {
        const bool first = j == b->size || (i < a->size && x[i] <= y[j]);
        sparse_data(order)[i + j] = first ? i : a->size + j;
        first ? i++ : j++;
    }
    return order;
}

/* The different ones among all numbers, ascending; in `groups` which of them each number is. */
static ed_tensor *united(ed_tensor *a, ed_tensor *b, ed_tensor *groups)
{
    ed_tensor *all = a && b ? ed_concat(ed_list_of(a, b)) : NULL;
    if (!all || !groups) return NULL;
    ed_tensor *order = sparse_ascends(a) && sparse_ascends(b) ? merged(a, b) : ed_argsort(all);
    ed_tensor *distinct = sparse_integers(all->size, 0);
    if (!order || !distinct || !(order = ed_contiguous(order))) return NULL;
    int64_t count = 0;
    for (int64_t i = 0; i < all->size; i++) {
        const int64_t at = sparse_data(order)[i], number = sparse_data(all)[at];
        if (!count || sparse_data(distinct)[count - 1] != number)
            sparse_data(distinct)[count++] = number;
        sparse_data(groups)[at] = count - 1;
    }
    return ed_slice(distinct, .begin = ED_INTS(0), .end = ED_INTS(count));
}

static ed_tensor *joined_values(const ed_call *call, ed_tensor *groups, int64_t count)
{
    const sparse_join kind = *(const sparse_join *)call->op->extra;
    ed_tensor *x = call->inputs[1], *y = call->inputs[3];
    const int64_t n = ed_size(x), m = ed_size(y);
    if (kind == JOIN_SUM)
        return ed_unsorted_segment_sum(ed_concat(ed_list_of(x, y)), groups, count);
    ed_tensor *of_a = ed_slice(groups, .begin = ED_INTS(0), .end = ED_INTS(n));
    ed_tensor *of_b = ed_slice(groups, .begin = ED_INTS(n), .end = ED_INTS(n + m));
    x = ed_unsorted_segment_sum(x, of_a, count);
    y = ed_unsorted_segment_sum(y, of_b, count);
    return kind == JOIN_MAXIMUM ? ed_maximum(x, y) : ed_minimum(x, y);
}

static bool join_compose(ed_call *call)
{
    const ed_ints shape = ((const sparse_attrs *)call->attrs)->dense_shape;
    ed_tensor *a, *b;
    if (!sparse_operands(call, 0, shape, &a, NULL) || !sparse_operands(call, 2, shape, &b, NULL))
        return false;
    const int rank = (int)shape.count;
    ed_tensor *groups = sparse_integers(a->shape[0] + b->shape[0], 0);
    ed_tensor *numbers = united(sparse_numbers(a, shape.values, 0, rank),
                                sparse_numbers(b, shape.values, 0, rank), groups);
    ed_tensor *indices = sparse_indices_of(numbers, shape);
    return indices && ed_call_result(call, 0, indices) &&
           ed_call_result(call, 1, joined_values(call, groups, numbers->size));
}

/* The sum of the values of one operand at a number; *found, if there is any. */
static double plain_at(const ed_call *call, int operand, ed_ints shape, int64_t number, bool *found)
{
    const ed_tensor *indices = call->inputs[operand], *values = call->inputs[operand + 1];
    double sum = 0;
    for (int64_t i = 0; i < values->size; i++) {
        if (sparse_plain_number(indices, shape, i) != number) continue;
        sum += ((const double *)values->data)[i];
        *found = true;
    }
    return sum;
}

/* Element by element of the dense tensor. */
static bool join_reference(const ed_call *call)
{
    const sparse_join kind = *(const sparse_join *)call->op->extra;
    const ed_ints shape = ((const sparse_attrs *)call->attrs)->dense_shape;
    double *at = (double *)call->outputs[0]->data, *y = (double *)call->outputs[1]->data;
    int64_t size = 1;
    for (int64_t d = 0; d < shape.count; d++) size *= shape.values[d];
    for (int64_t number = 0; number < size; number++) {
        bool found = false;
        const double a = plain_at(call, 0, shape, number, &found);
        const double b = plain_at(call, 2, shape, number, &found);
        if (!found) continue;
        const double best =
            isnan(a) || (!isnan(b) && (kind == JOIN_MAXIMUM ? a > b : a < b)) ? a : b;
        *y++ = kind == JOIN_SUM ? a + b : best;
        int64_t rest = size;
        for (int64_t d = 0; d < shape.count; d++)
            *at++ = (double)(number / (rest /= shape.values[d]) % shape.values[d]);
    }
    return true;
}

#define JOIN(symbol, kind, text)                                                                   \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {SPARSE_INDICES("a_indices"),                                                  \
                     {"a_values", ED_SET_NUMBER, 'T'},                                             \
                     SPARSE_INDICES("b_indices"),                                                  \
                     {"b_values", ED_SET_NUMBER, 'T'}},                                            \
        .results = ED_RESULTS({.name = "indices"}, {.name = "values"}),                            \
        .flags = ED_OP_INTERNAL,                                                                   \
        ED_OP_ATTRS(SPARSE_ATTRS, sparse_attrs),                                                   \
        .compose = join_compose,                                                                   \
        .reference = join_reference,                                                               \
        .extra = &(const sparse_join){kind},                                                       \
        .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 4, 2), ED_DISTINCT_IN(-2, 2, 4),      \
                                          ED_SAMPLE_IN(0, 2, 5, 2), ED_DISTINCT_IN(-2.1, 2, 5)},   \
                               .attrs = SHAPED(3, 4)},                                             \
                              {.inputs = {ED_SAMPLE_IN(0, 5, 3, 1), ED_DISTINCT_IN(0.5, 2, 3),     \
                                          ED_SAMPLE_IN(0, 5, 2, 1), ED_DISTINCT_IN(-2, -0.7, 2)},  \
                               .attrs = SHAPED(6)}),                                               \
    }

JOIN(sparse_add, JOIN_SUM, "the entries of a + b");
JOIN(sparse_maximum, JOIN_MAXIMUM, "the entries of the maximum of a and b");
JOIN(sparse_minimum, JOIN_MINIMUM, "the entries of the minimum of a and b");

static ed_sparse_tensor *join_entries(const ed_op *op, ed_sparse_tensor *a, ed_sparse_tensor *b)
{
    ed_tensor *y[2];
    if (NULL_GIVEN(op->name, a, b)) return NULL;
    const ed_ints shape = sparse_shape_of(a);
    if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: a has shape %s, b %s; they must be the same",
                       op->name, text_of_ints(a->shape, a->rank).s,
                       text_of_ints(b->shape, b->rank).s);
    if (!ed_execute(op, (ed_tensor *[]){a->indices, a->values, b->indices, b->values}, 4,
                    ED_ATTRS(SPARSE_ATTRS, sparse_attrs, .dense_shape = shape), y))
        return NULL;
    return sparse_new(op->name, y[0], y[1], shape);
}

ed_sparse_tensor *ed_sparse_maximum(ed_sparse_tensor *a, ed_sparse_tensor *b)
{
    ED_SCOPE;
    return ed_keep(join_entries(&ed_op_sparse_maximum, a, b));
}

ed_sparse_tensor *ed_sparse_minimum(ed_sparse_tensor *a, ed_sparse_tensor *b)
{
    ED_SCOPE;
    return ed_keep(join_entries(&ed_op_sparse_minimum, a, b));
}

/* x with ones for values. */
static ed_sparse_tensor *counting(ed_sparse_tensor *x)
{
    ed_tensor *ones = ed_ones(ED_SHAPE(x->indices->shape[0]), .dtype = ED_INT64);
    return ones ? sparse_new("sparse_add", x->indices, ones, sparse_shape_of(x)) : NULL;
}

/* Without those sums of several entries whose magnitude is below the threshold. NaN stays. */
static ed_sparse_tensor *without_small(ed_sparse_tensor *sum, ed_sparse_tensor *a,
                                       ed_sparse_tensor *b, double threshold)
{
    const int64_t n = sum->indices->shape[0];
    const void *values = ed_data(sum->values);
    a = counting(a);
    b = a ? counting(b) : NULL;
    ed_sparse_tensor *all = b ? join_entries(&ed_op_sparse_add, a, b) : NULL;
    bool *large = ed_scope_alloc((size_t)n + 1);
    if (!large || !values || !all) return NULL;
    const int64_t *counts = ed_data(all->values);
    for (int64_t i = 0; i < n; i++)
        large[i] = counts[i] < 2 || !(fabs(dtype_load(sum->values->dtype, values, i)) < threshold);
    return sparse_chosen("sparse_add", sum, large);
}

ed_sparse_tensor *ed_sparse_add_with(ed_sparse_tensor *a, ed_sparse_tensor *b,
                                     const ed_sparse_add_options *options)
{
    ED_SCOPE;
    if (!(options = CHECKED_OPTIONS("sparse_add", ED_SPARSE_ADD_OPTIONS, options))) return NULL;
    ed_sparse_tensor *sum = join_entries(&ed_op_sparse_add, a, b);
    if (sum && options->threshold > 0) sum = without_small(sum, a, b, options->threshold);
    return ed_keep(sum);
}

/* ---- A sparse and a dense tensor ------------------------------------------------------------- */

ed_tensor *ed_sparse_add_dense(ed_sparse_tensor *a, ed_tensor *b)
{
    if (NULL_GIVEN("sparse_add_dense", a, b)) return NULL;
    if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "sparse_add_dense: a has shape %s, b is %s; shapes must be the same",
                       text_of_ints(a->shape, a->rank).s, text_of_tensor(b).s);
    return ed_tensor_scatter_add(b, a->indices, a->values);
}

/* Where the entries are in b, which broadcasts to the shape. */
static ed_tensor *indices_within(const ed_call *call, const ed_tensor *indices, const ed_tensor *b,
                                 ed_ints shape)
{
    const int64_t n = indices->shape[0], ahead = shape.count - b->rank;
    bool fits = ahead >= 0;
    for (int d = 0; fits && d < b->rank; d++)
        fits = b->shape[d] == 1 || b->shape[d] == shape.values[ahead + d];
    if (!fits)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "b must broadcast to %s, got %s",
                            text_of_ints(shape.values, shape.count).s, text_of_tensor(b).s),
               NULL;
    ed_tensor *at = scope_give(tensor_new(ED_INT64, 2, (int64_t[]){n, b->rank}));
    for (int64_t i = 0; at && i < n; i++)
        for (int d = 0; d < b->rank; d++)
            sparse_data(at)[i * b->rank + d] =
                b->shape[d] == 1 ? 0 : sparse_at(indices, i, ahead + d);
    return at;
}

static bool scaled_compose(ed_call *call)
{
    const ed_ints shape = ((const sparse_attrs *)call->attrs)->dense_shape;
    ed_tensor *indices, *values = call->inputs[1], *b = call->inputs[2];
    if (!sparse_operands(call, 0, shape, &indices, NULL)) return false;
    ed_tensor *at = indices_within(call, indices, b, shape);
    if (!at) return false;
    if (ed_rank(b)) b = ed_gather_nd(b, at);
    return ed_call_result(call, 0,
                          *(const bool *)call->op->extra ? ed_div(values, b) : ed_mul(values, b));
}

static bool scaled_reference(const ed_call *call)
{
    const ed_ints shape = ((const sparse_attrs *)call->attrs)->dense_shape;
    const ed_tensor *b = call->inputs[2], *y = call->outputs[0];
    const double *at = (const double *)call->inputs[0]->data;
    for (int64_t i = 0; i < y->size; i++, at += shape.count) {
        int64_t number = 0;
        for (int d = 0; d < b->rank; d++)
            number = number * b->shape[d] + (int64_t)at[shape.count - b->rank + d] % b->shape[d];
        const double x = ((const double *)call->inputs[1]->data)[i];
        const double factor = ((const double *)b->data)[number];
        ((double *)y->data)[i] = *(const bool *)call->op->extra ? x / factor : x * factor;
    }
    return true;
}

#define SCALED_SAMPLE(...)                                                                         \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(0, 2, 4, 2), ED_SAMPLE_IN(-2, 2, 4), __VA_ARGS__},                 \
        .attrs = SHAPED(3, 4)                                                                      \
    }
#define SCALED(symbol, set, divides, text)                                                         \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {SPARSE_INDICES("indices"), {"values", set, 'T'}, {"b", set, 'T'}},            \
        .flags = ED_OP_INTERNAL,                                                                   \
        ED_OP_ATTRS(SPARSE_ATTRS, sparse_attrs),                                                   \
        .compose = scaled_compose,                                                                 \
        .reference = scaled_reference,                                                             \
        .extra = &(const bool){divides},                                                           \
        .samples = ED_SAMPLES(                                                                     \
            SCALED_SAMPLE(ED_SAMPLE_IN(0.5, 2, 3, 4)), SCALED_SAMPLE(ED_SAMPLE_IN(0.5, 2, 3, 1)),  \
            SCALED_SAMPLE(ED_SAMPLE_IN(0.5, 2, 4)), SCALED_SAMPLE(ED_SAMPLE_IN(0.5, 2)))}

SCALED(sparse_multiply, ED_SET_NUMBER, false, "the values times the elements of b at the indices");
SCALED(sparse_divide, ED_SET_FLOAT, true, "the values over the elements of b at the indices");

static ed_sparse_tensor *scale(const ed_op *op, ed_sparse_tensor *a, ed_tensor *b)
{
    if (NULL_GIVEN(op->name, a, b)) return NULL;
    ed_tensor *values =
        ed_call_op(op, (ed_tensor *[]){a->indices, a->values, b}, 3,
                   ED_ATTRS(SPARSE_ATTRS, sparse_attrs, .dense_shape = sparse_shape_of(a)));
    return values ? sparse_new(op->name, a->indices, values, sparse_shape_of(a)) : NULL;
}

ed_sparse_tensor *(ed_sparse_multiply)(ed_sparse_tensor *a, ed_tensor *b)
{
    ED_SCOPE;
    return ed_keep(scale(&ed_op_sparse_multiply, a, b));
}

ed_sparse_tensor *(ed_sparse_divide)(ed_sparse_tensor *a, ed_tensor *b)
{
    ED_SCOPE;
    return ed_keep(scale(&ed_op_sparse_divide, a, b));
}
