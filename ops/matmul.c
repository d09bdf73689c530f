/*
 * Matrix products: matmul over batches that broadcast, and linear, which joins bias and relu to the
 * product. The inner layer, ops/kernels/gemm.h, takes operands of any strides; what is left to do
 * here is to say where each matrix lies. A batch of left operands on one right operand is a single
 * product, if its rows follow each other evenly.
 */
#include "ops/execute.h"
#include "ops/kernels/gemm.h"
#include "ops/linear.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <string.h>

/* ---- matmul ---------------------------------------------------------------------------------- */

/* One operand's last two dimensions, in the order the product takes them. */
typedef struct matrices {
    int64_t rows, columns, row, column; /* sizes; strides in elements */
} matrices;

static matrices last_two(const ed_tensor *x, bool transposed)
{
    int r = x->rank - 2, c = x->rank - 1;
    matrices m = {x->shape[r], x->shape[c], x->strides[r], x->strides[c]};
    return transposed ? (matrices){m.columns, m.rows, m.column, m.row} : m;
}

/* Many products in a row: dtype and the two operands decide, `batch` may be NULL for one. */
static bool multiply(const ed_tensor *a, matrices ma, const ed_tensor *b, matrices mb, ed_tensor *y,
                     const gemm_batch *batch, const gemm_epilogue *epilogue)
{
    static const int64_t zero = 0;
    const gemm_batch one = {1, &zero, &zero, &zero};
    if (!batch) batch = &one;
    if (y->dtype == ED_FLOAT32)
        return gemm_batch_f32(batch, ma.rows, mb.columns, ma.columns, (const float *)a->data,
                              ma.row, ma.column, (const float *)b->data, mb.row, mb.column,
                              (float *)y->data, mb.columns, epilogue);
    return gemm_batch_f64(batch, ma.rows, mb.columns, ma.columns, (const double *)a->data, ma.row,
                          ma.column, (const double *)b->data, mb.row, mb.column, (double *)y->data,
                          mb.columns, epilogue);
}

static bool matmul_infer(ed_call *call)
{
    const ed_matmul_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    if (a->rank < 2 || b->rank < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a and b must have rank >= 2: a is %s, b is %s (ed_expand_dims makes a "
                            "vector a matrix of one row or column)",
                            text_of_ints(a->shape, a->rank).s, text_of_ints(b->shape, b->rank).s);
    matrices ma = last_two(a, o->transpose_a), mb = last_two(b, o->transpose_b);
    if (ma.columns != mb.rows)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "inner dimensions differ: a is %s%s, b is %s%s",
                            text_of_ints(a->shape, a->rank).s, o->transpose_a ? " transposed" : "",
                            text_of_ints(b->shape, b->rank).s, o->transpose_b ? " transposed" : "");
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (!ops_broadcast(a->rank - 2, a->shape, b->rank - 2, b->shape, &rank, shape))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "leading dimensions don't broadcast: a is %s, b is %s",
                            text_of_ints(a->shape, a->rank).s, text_of_ints(b->shape, b->rank).s);
    shape[rank] = ma.rows;
    shape[rank + 1] = mb.columns;
    return ed_call_output(call, 0, a->dtype, rank + 2, shape);
}

/* Whether the leading dimensions of x continue its rows at an even stride; then counts them all as
 * rows. */
static bool fold_rows(const ed_tensor *x, matrices *m)
{
    int64_t rows = m->rows;
    for (int d = x->rank - 3; d >= 0; d--) {
        if (x->shape[d] == 1) continue;
        if (rows == 1)
            m->row = x->strides[d];
        else if (x->strides[d] != m->row * rows)
            return false;
        rows *= x->shape[d];
    }
    m->rows = rows;
    return true;
}

static bool is_single(const ed_tensor *x)
{
    for (int d = 0; d < x->rank - 2; d++)
        if (x->shape[d] != 1) return false;
    return true;
}

/* Steps to the next matrix of a batch of y's leading dimensions, one stride a dimension, 0 where x
 * is broadcast. */
static void batch_strides(const ed_tensor *x, const ed_tensor *y, int64_t *strides)
{
    int skip = y->rank - x->rank;
    for (int d = 0; d < y->rank - 2; d++)
        strides[d] = d < skip || x->shape[d - skip] == 1 ? 0 : x->strides[d - skip];
}

enum { BATCH = 512 }; /* products whose offsets are computed at a time */

static bool multiply_batches(const ed_tensor *a, matrices ma, const ed_tensor *b, matrices mb,
                             ed_tensor *y)
{
    int rank = y->rank - 2;
    int64_t sa[ED_MAX_RANK], sb[ED_MAX_RANK], index[ED_MAX_RANK] = {0};
    int64_t count = y->size / (ma.rows * mb.columns), most = count < BATCH ? count : BATCH;
    int64_t *places = memory_alloc((size_t)(3 * most) * sizeof *places);
    int64_t at_a = 0, at_b = 0, done = 0;
    bool ok = places != NULL;
    batch_strides(a, y, sa);
    batch_strides(b, y, sb);
    while (ok && done < count) {
        gemm_batch batch = {0, places, places + most, places + 2 * most};
        for (; batch.count < most && done < count; batch.count++, done++) {
            places[batch.count] = at_a;
            places[most + batch.count] = at_b;
            places[2 * most + batch.count] = done * ma.rows * mb.columns;
            for (int d = rank - 1; d >= 0; d--) {
                at_a += sa[d], at_b += sb[d];
                if (++index[d] < y->shape[d]) break;
                at_a -= sa[d] * y->shape[d], at_b -= sb[d] * y->shape[d];
                index[d] = 0;
            }
        }
        ok = multiply(a, ma, b, mb, y, &batch, NULL);
    }
    memory_free(places);
    return ok;
}

static bool matmul_kernel(ed_call *call)
{
    const ed_matmul_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    ed_tensor *y = call->outputs[0];
    matrices ma = last_two(a, o->transpose_a), mb = last_two(b, o->transpose_b);
    if (!y->size) return true;
    if (is_single(b) && fold_rows(a, &ma)) return multiply(a, ma, b, mb, y, NULL, NULL);
    return multiply_batches(a, ma, b, mb, y);
}

/* x as a matrix of its last dimension. */
static ed_tensor *flat(ed_tensor *x)
{
    if (!x || x->rank == 2) return x;
    int64_t rows = 1;
    for (int d = 0; d < x->rank - 1; d++) rows *= x->shape[d];
    return ed_reshape(x, ED_SHAPE(rows, x->shape[x->rank - 1]));
}

/* da = dy b^T, db = a^T dy, with the transposes of the operands taken along. */
static bool matmul_gradient(const ed_gradient_call *g)
{
    const ed_matmul_options *o = g->attrs;
    ed_tensor *a = g->inputs[0], *b = g->inputs[1], *dy = g->dy[0];
    bool ta = o->transpose_a, tb = o->transpose_b;
    if (g->needs[0]) {
        ed_tensor *da = ta ? ed_matmul(b, dy, .transpose_a = tb, .transpose_b = true)
                           : ed_matmul(dy, b, .transpose_b = !tb);
        g->dx[0] = ops_sum_to(da, g->shapes[0]);
    }
    if (g->needs[1]) {
        /* One b for many a: the sum over the batch is part of one product. */
        if (g->shapes[1].count == 2 && g->shapes[0].count > 2 && !ta && ed_size(dy) > 0) {
            a = flat(a);
            dy = flat(dy);
        }
        ed_tensor *db = tb ? ed_matmul(dy, a, .transpose_a = true, .transpose_b = ta)
                           : ed_matmul(a, dy, .transpose_a = !ta);
        g->dx[1] = ops_sum_to(db, g->shapes[1]);
    }
    return true;
}

static bool matmul_reference(const ed_call *call)
{
    const ed_matmul_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    matrices ma = last_two(a, o->transpose_a), mb = last_two(b, o->transpose_b);
    int64_t sa[ED_MAX_RANK], sb[ED_MAX_RANK];
    batch_strides(a, y, sa);
    batch_strides(b, y, sb);
    for (int64_t e = 0; e < y->size; e++) {
        int64_t j = e % mb.columns, i = e / mb.columns % ma.rows, rest = e / mb.columns / ma.rows;
        int64_t at_a = i * ma.row, at_b = j * mb.column;
        for (int d = y->rank - 3; d >= 0; rest /= y->shape[d], d--) {
            at_a += rest % y->shape[d] * sa[d];
            at_b += rest % y->shape[d] * sb[d];
        }
        double sum = 0;
        for (int64_t p = 0; p < ma.columns; p++)
            sum +=
                ((double *)a->data)[at_a + p * ma.column] * ((double *)b->data)[at_b + p * mb.row];
        ((double *)y->data)[e] = sum;
    }
    return true;
}

#define PRODUCT(...) ED_ATTRS(ED_MATMUL_OPTIONS, ed_matmul_options, __VA_ARGS__)

/* matmul: y = a b, da = dy b^T, db = a^T dy */
ED_OP(matmul) = {
    .name = "matmul",
    .doc = "y[..., i, j] = sum over k of a[..., i, k] b[..., k, j]",
    .operands = {{"a", ED_SET_FLOAT, 'T'}, {"b", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_MATMUL_OPTIONS, ed_matmul_options),
    .infer = matmul_infer,
    .batch = ed_batch_broadcast,
    .kernel = matmul_kernel,
    .gradient = matmul_gradient,
    SAVES_AB,
    .reference = matmul_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4, 5)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(-2, 2, 4, 5)},
                           .attrs = PRODUCT(.transpose_a = true)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 5, 4)},
                           .attrs = PRODUCT(.transpose_b = true)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(-2, 2, 5, 4)},
                           .attrs = PRODUCT(.transpose_a = true, .transpose_b = true)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 4, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 1, 3, 2),
                                      ED_SAMPLE_IN(-2, 2, 3, 2, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 4)},
                           .attrs = PRODUCT(.transpose_a = true, .transpose_b = true)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 1), ED_SAMPLE_IN(-2, 2, 1, 1)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 0), ED_SAMPLE_IN(-2, 2, 0, 3)}}),
};

ed_tensor *ed_matmul_with(ed_tensor *a, ed_tensor *b, const ed_matmul_options *options)
{
    return CALL_OP(matmul, options, a, b);
}

/* ---- linear ---------------------------------------------------------------------------------- */

/* The bias, which may be left out. */
static ed_tensor *bias_of(const ed_call *call)
{
    return call->n_inputs > 2 ? call->inputs[2] : NULL;
}

static bool linear_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *w = call->inputs[1], *bias = bias_of(call);
    if (x->rank < 1 || w->rank != 2 || x->shape[x->rank - 1] != w->shape[0])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must be [..., in] and w [in, out]: x is %s, w is %s",
                            text_of_ints(x->shape, x->rank).s, text_of_ints(w->shape, w->rank).s);
    if (bias && (bias->rank != 1 || bias->shape[0] != w->shape[1]))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "bias must be [out]: w is %s, bias is %s",
                            text_of_ints(w->shape, w->rank).s,
                            text_of_ints(bias->shape, bias->rank).s);
    int64_t shape[ED_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = w->shape[1];
    return ed_call_output(call, 0, x->dtype, x->rank, shape);
}

/* x as a matrix of its last dimension, if its rows follow each other evenly. */
static bool rows_of(const ed_tensor *x, matrices *m)
{
    *m = x->rank >= 2 ? last_two(x, false) : (matrices){1, x->shape[0], 0, x->strides[0]};
    return x->rank <= 2 || fold_rows(x, m);
}

static bool linear_run(ed_call *call, gemm_activation activation)
{
    ed_tensor *x = call->inputs[0], *w = call->inputs[1], *y = call->outputs[0];
    if (!y->size) return true;
    ed_tensor *given = bias_of(call), *bias = given ? tensor_contiguous(given) : NULL, *copy = NULL;
    matrices rows;
    bool ok = !given || bias;
    if (ok && !rows_of(x, &rows)) {
        ok = (copy = tensor_contiguous(x)) != NULL;
        rows = (matrices){y->size / w->shape[1], w->shape[0], w->shape[0], 1};
        x = copy;
    }
    if (ok) {
        gemm_epilogue epilogue = {bias ? bias->data : NULL, activation};
        ok = multiply(x, rows, w, last_two(w, false), y, NULL, &epilogue);
    }
    ed_release(copy);
    ed_release(bias);
    return ok;
}

static bool linear_kernel(ed_call *call)
{
    return linear_run(call, GEMM_NONE);
}

static bool linear_relu_kernel(ed_call *call)
{
    return linear_run(call, GEMM_RELU);
}

static bool linear_plain(const ed_call *call, bool relu)
{
    const ed_tensor *x = call->inputs[0], *w = call->inputs[1], *bias = bias_of(call);
    double *y = (double *)call->outputs[0]->data;
    int64_t in = w->shape[0], out = w->shape[1];
    for (int64_t e = 0; e < call->outputs[0]->size; e++) {
        double sum = 0;
        for (int64_t p = 0; p < in; p++)
            sum += ((double *)x->data)[e / out * in + p] * ((double *)w->data)[p * out + e % out];
        if (bias) sum += ((double *)bias->data)[e % out];
        y[e] = relu && sum < 0 ? 0 : sum;
    }
    return true;
}

static bool linear_reference(const ed_call *call)
{
    return linear_plain(call, false);
}

static bool linear_relu_reference(const ed_call *call)
{
    return linear_plain(call, true);
}

/* dx = dy w^T, dw = x^T dy over all rows. */
static void product_gradient(const ed_gradient_call *g, ed_tensor *dy)
{
    ed_tensor *rows = flat(dy);
    if (g->needs[0]) {
        ed_tensor *dx = ed_matmul(rows, g->inputs[1], .transpose_b = true);
        g->dx[0] = g->shapes[0].count == 2 ? dx : ed_reshape(dx, g->shapes[0]);
    }
    if (g->needs[1]) g->dx[1] = ed_matmul(flat(g->inputs[0]), rows, .transpose_a = true);
}

static bool linear_gradient(const ed_gradient_call *g)
{
    product_gradient(g, g->dy[0]);
    if (g->n_inputs > 2 && g->needs[2]) g->dx[2] = ops_sum_to(g->dy[0], g->shapes[2]);
    return true;
}

static bool linear_relu_backward(const ed_gradient_call *g)
{
    ed_tensor *dbias, *dz = ops_relu_backward(g, &dbias);
    if (!dz) return false;
    product_gradient(g, dz);
    if (g->n_inputs > 2 && g->needs[2]) g->dx[2] = dbias;
    return true;
}

#define LINEAR_SAMPLES                                                                             \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4, 5),                          \
                    ED_SAMPLE_IN(-2, 2, 5)}},                                                      \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4, 1),                       \
                    ED_SAMPLE_IN(-2, 2, 1)}},                                                      \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4), ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(-2, 2, 3)}},   \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 4, 5)}})
#define LINEAR_OPERANDS                                                                            \
    {                                                                                              \
        {"x", ED_SET_FLOAT, 'T'}, {"w", ED_SET_FLOAT, 'T'},                                        \
        {                                                                                          \
            "bias", ED_SET_FLOAT, 'T', .optional = true                                            \
        }                                                                                          \
    }

/* linear: y = x w + bias, dx = dy w^T, dw = x^T dy, dbias = sum of dy's rows */
ED_OP(linear) = {
    .name = "linear",
    .doc = "y = x w + bias",
    .operands = LINEAR_OPERANDS,
    .infer = linear_infer,
    .batch = ed_batch_first,
    .kernel = linear_kernel,
    .gradient = linear_gradient,
    SAVES_AB,
    .reference = linear_reference,
    .samples = LINEAR_SAMPLES,
};

/* linear_relu: y = relu(x w + bias), as linear with dy where y > 0, else 0 */
ED_OP(linear_relu) = {
    .name = "linear_relu",
    .doc = "y = relu(x w + bias)",
    .operands = LINEAR_OPERANDS,
    .infer = linear_infer,
    .batch = ed_batch_first,
    .kernel = linear_relu_kernel,
    .gradient = linear_relu_backward,
    SAVES_AB,
    SAVES_Y,
    .reference = linear_relu_reference,
    .samples = LINEAR_SAMPLES,
};

ed_tensor *ed_linear(ed_tensor *x, ed_tensor *w, ed_tensor *bias, const char *activation)
{
    bool relu = activation && !strcmp(activation, "relu");
    if (activation && *activation && !relu)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "linear: unknown activation '%.40s': must be '' or 'relu'", activation);
    return relu ? CALL_OP_GIVEN(linear_relu, NULL, x, w, bias)
                : CALL_OP_GIVEN(linear, NULL, x, w, bias);
}
