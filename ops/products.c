/* Products of vectors and matrices that are compositions: matvec, tensordot, inner, outer,
 * kron. */
#include "ops/matrices.h"
#include "ops/ops.h"
#include <string.h>

/* For references. */
static const double *values(const ed_call *call, int i)
{
    return (const double *)call->inputs[i]->data;
}

static bool mismatch(const ed_call *call, const char *wanted)
{
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s: a is %s, b is %s", wanted,
                        text_of_tensor(call->inputs[0]).s, text_of_tensor(call->inputs[1]).s);
}

#define TWO(dtypes)                                                                                \
    {                                                                                              \
        {"a", dtypes, 'T'},                                                                        \
        {                                                                                          \
            "b", dtypes, 'T'                                                                       \
        }                                                                                          \
    }

/* ---- matvec ---------------------------------------------------------------------------------- */

static bool matvec_compose(ed_call *call)
{
    const ed_matvec_options *o = call->attrs;
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    const int rank = ed_rank(a);
    if (rank < 2 || ed_rank(b) < 1 || ed_dim(a, o->transpose_a ? -2 : -1) != ed_dim(b, -1))
        return mismatch(call, "a must be matrices and b vectors of as many elements as they have "
                              "columns");
    ed_tensor *y = ed_matmul(a, ed_expand_dims(b, -1), .transpose_a = o->transpose_a);
    return ed_call_result(call, 0, ed_squeeze(y, .axis = ED_AXES(-1)));
}

/* Samples have one matrix, or as many as vectors. */
static bool matvec_reference(const ed_call *call)
{
    const ed_matvec_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t n = b->shape[b->rank - 1], m = y->shape[y->rank - 1];
    for (int64_t e = 0; e < y->size; e++) {
        double sum = 0;
        const int64_t i = e % m, batch = e / m;
        const double *matrix = values(call, 0) + (a->rank > 2 ? batch % a->shape[0] * m * n : 0);
        const double *vector = values(call, 1) + (b->rank > 1 ? batch % b->shape[0] * n : 0);
        for (int64_t k = 0; k < n; k++)
            sum += matrix[o->transpose_a ? k * m + i : i * n + k] * vector[k];
        ((double *)y->data)[e] = sum;
    }
    return true;
}

ED_OP(matvec) = {
    .name = "matvec",
    .doc = "y[..., i] = sum over k of a[..., i, k] b[..., k]",
    .operands = TWO(ED_SET_FLOAT),
    ED_OP_ATTRS(ED_MATVEC_OPTIONS, ed_matvec_options),
    .compose = matvec_compose,
    .reference = matvec_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = ED_ATTRS(ED_MATVEC_OPTIONS, ed_matvec_options,
                                             .transpose_a = true)}),
};

ed_tensor *ed_matvec_with(ed_tensor *a, ed_tensor *b, const ed_matvec_options *options)
{
    return CALL_OP(matvec, options, a, b);
}

/* ---- tensordot ------------------------------------------------------------------------------- */

/* The axes that are summed, of a and b; false with an error. */
typedef struct pairs {
    int n, a[ED_MAX_RANK], b[ED_MAX_RANK];
} pairs;

static bool find_axes(const ed_call *call, ed_ints list, int rank, int *axes)
{
    unsigned seen = 0;
    for (int64_t i = 0; i < list.count; i++) {
        if (!ops_axis(call, list.values[i], rank, &axes[i])) return false;
        if (seen >> axes[i] & 1)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "axis %lld is named twice",
                                text_nth(axes[i]));
        seen |= 1u << axes[i];
    }
    return true;
}

static bool find_pairs(const ed_call *call, pairs *p)
{
    const ed_tensordot_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    const int rank_a = ed_rank(a), rank_b = ed_rank(b);
    if (!o->a_axes.values != !o->b_axes.values || o->a_axes.count != o->b_axes.count ||
        o->a_axes.count > rank_a || o->b_axes.count > rank_b)
        return mismatch(call, "a_axes and b_axes must name as many axes");
    p->n = (int)o->a_axes.count;
    if (!find_axes(call, o->a_axes, rank_a, p->a) || !find_axes(call, o->b_axes, rank_b, p->b))
        return false;
    if (!o->a_axes.values) {
        if (o->axes > rank_a || o->axes > rank_b)
            return mismatch(call, "a and b have not so many axes");
        p->n = (int)o->axes;
        for (int i = 0; i < p->n; i++) p->a[i] = rank_a - p->n + i, p->b[i] = i;
    }
    for (int i = 0; i < p->n; i++)
        if (ed_dim(a, p->a[i]) != ed_dim(b, p->b[i]))
            return mismatch(call, "the axes that are summed differ in size");
    if (rank_a + rank_b - 2 * p->n > ED_MAX_RANK)
        return mismatch(call, "the result has too many axes");
    return true;
}

/* x as a matrix, of the summed axes last or first; adds the sizes of the others to shape. */
static ed_tensor *fold(ed_tensor *x, const int *axes, int n, bool last, int64_t *shape, int *rank)
{
    int64_t perm[ED_MAX_RANK], summed = 1, others = 1;
    int place = last ? 0 : n;
    for (int d = 0; d < ed_rank(x); d++) {
        bool is_summed = false;
        for (int i = 0; i < n; i++) is_summed |= axes[i] == d;
        if (is_summed) continue;
        perm[place++] = d;
        others *= shape[(*rank)++] = ed_dim(x, d);
    }
    for (int i = 0; i < n; i++) {
        perm[last ? place + i : i] = axes[i];
        summed *= ed_dim(x, axes[i]);
    }
    ed_tensor *ordered = ed_transpose(x, .perm = {perm, ed_rank(x)});
    return last ? ed_reshape(ordered, ED_SHAPE(others, summed))
                : ed_reshape(ordered, ED_SHAPE(summed, others));
}

static bool tensordot_compose(ed_call *call)
{
    pairs p;
    int64_t shape[2 * ED_MAX_RANK];
    int rank = 0;
    if (!find_pairs(call, &p)) return false;
    ed_tensor *a = fold(call->inputs[0], p.a, p.n, true, shape, &rank);
    ed_tensor *b = fold(call->inputs[1], p.b, p.n, false, shape, &rank);
    return ed_call_result(call, 0, ed_reshape(ed_matmul(a, b), (ed_ints){shape, rank}));
}

static bool is_among(const int *axes, int n, int d)
{
    for (int i = 0; i < n; i++)
        if (axes[i] == d) return true;
    return false;
}

/* The place in x, row-major, of the indices of its axes that are not summed; the others are 0. */
static int64_t place_in(const ed_tensor *x, const int *axes, int n, const int64_t *at)
{
    int64_t place = 0;
    for (int d = 0; d < x->rank; d++)
        place = place * x->shape[d] + (is_among(axes, n, d) ? 0 : *at++);
    return place;
}

/* Each element is a sum over all values of the summed indices. */
static bool tensordot_reference(const ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    pairs p;
    if (!find_pairs(call, &p)) return false;
    int64_t terms = 1;
    for (int k = 0; k < p.n; k++) terms *= a->shape[p.a[k]];
    for (int64_t e = 0; e < y->size; e++) {
        int64_t at[ED_MAX_RANK], rest = e;
        double sum = 0;
        for (int d = y->rank - 1; d >= 0; rest /= y->shape[d], d--) at[d] = rest % y->shape[d];
        const int64_t in_a = place_in(a, p.a, p.n, at);
        const int64_t in_b = place_in(b, p.b, p.n, at + a->rank - p.n);
        for (int64_t t = 0; t < terms; t++) {
            int64_t from_a = in_a, from_b = in_b, left = t;
            for (int k = p.n - 1; k >= 0; left /= a->shape[p.a[k]], k--) {
                const int64_t i = left % a->shape[p.a[k]];
                from_a += i * a->strides[p.a[k]];
                from_b += i * b->strides[p.b[k]];
            }
            sum += values(call, 0)[from_a] * values(call, 1)[from_b];
        }
        ((double *)y->data)[e] = sum;
    }
    return true;
}

#define DOT(...) ED_ATTRS(ED_TENSORDOT_OPTIONS, ed_tensordot_options, __VA_ARGS__)

ED_OP(tensordot) = {
    .name = "tensordot",
    .doc = "sums of products over pairs of axes",
    .operands = TWO(ED_SET_FLOAT),
    ED_OP_ATTRS(ED_TENSORDOT_OPTIONS, ed_tensordot_options),
    .compose = tensordot_compose,
    .reference = tensordot_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3, 2)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2), ED_SAMPLE_IN(-2, 2, 3)}, .attrs = DOT(.axes = 0)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 4, 2)},
         .attrs = DOT(.a_axes = ED_SAMPLE_INTS(0), .b_axes = ED_SAMPLE_INTS(-1))}),
};

ed_tensor *ed_tensordot_with(ed_tensor *a, ed_tensor *b, const ed_tensordot_options *options)
{
    return CALL_OP(tensordot, options, a, b);
}

/* ---- inner, outer ---------------------------------------------------------------------------- */

static bool inner_compose(ed_call *call)
{
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    const int rank_a = ed_rank(a), rank_b = ed_rank(b);
    if (rank_a == 0 || rank_b == 0) return ed_call_result(call, 0, ed_mul(a, b));
    if (ed_dim(a, -1) != ed_dim(b, -1) || rank_a + rank_b - 2 > ED_MAX_RANK)
        return mismatch(call, "a and b must have last axes of the same size");
    return ed_call_result(call, 0,
                          ed_tensordot(a, b, .a_axes = ED_AXES(-1), .b_axes = ED_AXES(-1)));
}

static bool inner_reference(const ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t n = a->rank && b->rank ? a->shape[a->rank - 1] : 1;
    for (int64_t e = 0; e < y->size; e++) {
        double sum = 0;
        int64_t columns = 1;
        for (int d = 0; d < b->rank - (a->rank && b->rank); d++) columns *= b->shape[d];
        for (int64_t k = 0; k < n; k++)
            sum += values(call, 0)[e / columns * n + k] * values(call, 1)[e % columns * n + k];
        ((double *)y->data)[e] = sum;
    }
    return true;
}

ED_OP(inner) = {
    .name = "inner",
    .doc = "sums of products over the last axes",
    .operands = TWO(ED_SET_FLOAT),
    .compose = inner_compose,
    .reference = inner_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 4, 3)}}),
};

ed_tensor *ed_inner(ed_tensor *a, ed_tensor *b)
{
    return CALL_OP(inner, NULL, a, b);
}

static bool outer_compose(ed_call *call)
{
    ed_tensor *a = ed_reshape(call->inputs[0], ED_SHAPE(-1, 1));
    return ed_call_result(call, 0, ed_mul(a, ed_flatten(call->inputs[1])));
}

static bool outer_reference(const ed_call *call)
{
    const int64_t n = call->inputs[1]->size;
    for (int64_t e = 0; e < call->outputs[0]->size; e++)
        ((double *)call->outputs[0]->data)[e] = values(call, 0)[e / n] * values(call, 1)[e % n];
    return true;
}

ED_OP(outer) = {
    .name = "outer",
    .doc = "y[i, j] = a[i] b[j], of all elements",
    .operands = TWO(ED_SET_NUMBER),
    .compose = outer_compose,
    .reference = outer_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2), ED_SAMPLE_IN(-2, 2, 3)}}),
};

ed_tensor *ed_outer(ed_tensor *a, ed_tensor *b)
{
    return CALL_OP(outer, NULL, a, b);
}

/* ---- kron ------------------------------------------------------------------------------------ */

/* a as [a0, 1, a1, 1, ...] times b as [1, b0, 1, b1, ...]. */
static bool kron_compose(ed_call *call)
{
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    const int rank_a = ed_rank(a), rank_b = ed_rank(b), rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t wide_a[ED_MAX_RANK], wide_b[ED_MAX_RANK], shape[ED_MAX_RANK];
    if (2 * rank > ED_MAX_RANK) return mismatch(call, "ranks of up to 4 are possible");
    for (int d = 0; d < rank; d++) {
        const int in_a = d - (rank - rank_a), in_b = d - (rank - rank_b);
        wide_a[2 * d] = in_a < 0 ? 1 : ed_dim(a, in_a);
        wide_b[2 * d + 1] = in_b < 0 ? 1 : ed_dim(b, in_b);
        wide_a[2 * d + 1] = wide_b[2 * d] = 1;
        if (__builtin_mul_overflow(wide_a[2 * d], wide_b[2 * d + 1], &shape[d]))
            return mismatch(call, "the result is too large");
    }
    ed_tensor *product = ed_mul(ed_reshape(a, (ed_ints){wide_a, 2 * rank}),
                                ed_reshape(b, (ed_ints){wide_b, 2 * rank}));
    return ed_call_result(call, 0, ed_reshape(product, (ed_ints){shape, rank}));
}

static bool kron_reference(const ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    for (int64_t e = 0; e < y->size; e++) {
        int64_t at[ED_MAX_RANK], rest = e, in_a = 0, in_b = 0;
        for (int d = y->rank - 1; d >= 0; rest /= y->shape[d], d--) at[d] = rest % y->shape[d];
        for (int d = 0; d < y->rank; d++) {
            const int axis_a = d - (y->rank - a->rank), axis_b = d - (y->rank - b->rank);
            const int64_t size_b = axis_b < 0 ? 1 : b->shape[axis_b];
            if (axis_a >= 0) in_a = in_a * a->shape[axis_a] + at[d] / size_b;
            if (axis_b >= 0) in_b = in_b * size_b + at[d] % size_b;
        }
        ((double *)y->data)[e] = values(call, 0)[in_a] * values(call, 1)[in_b];
    }
    return true;
}

ED_OP(kron) = {
    .name = "kron",
    .doc = "the Kronecker product: blocks a[i, j] b",
    .operands = TWO(ED_SET_NUMBER),
    .compose = kron_compose,
    .reference = kron_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2), ED_SAMPLE_IN(-2, 2, 2, 2)}}),
};

ed_tensor *ed_kron(ed_tensor *a, ed_tensor *b)
{
    return CALL_OP(kron, NULL, a, b);
}
