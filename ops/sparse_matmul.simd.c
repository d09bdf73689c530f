/*
 * The product of a sparse and a dense matrix. Where the rows of entries ascend, each row of the
 * result is a sum of rows of b, kept in registers and written once, and threads take pieces of
 * entries; else rows of b are added to the result in the order of entries, and threads take
 * columns. The gradient by the values is the product of two dense matrices, taken at the entries
 * alone.
 */
#include "ops/index.h"
#include "ops/kernels/isa.h"
#include "ops/sparse.h"
#include "ops/sparses.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <string.h>

enum {
    SPARSE_VECTORS = 8, /* of a row in registers */
    SPARSE_AHEAD = 8,   /* entries whose rows are fetched before they are needed */
    SPARSE_COLUMNS = 32 /* of a piece, at least */
};

/* y[targets[2 e]] = the sum of values[e] b[sources[2 e]] over the entries e. */
typedef struct sparse_product {
    const int64_t *targets, *sources; /* columns of the indices, [n, 2] */
    const void *values, *b;
    void *y;
    int64_t n, width;  /* entries; columns of b */
    int64_t bounds[2]; /* rows of y and b */
    int64_t piece;     /* entries of a piece */
    int wrong, falls;  /* an index is out of bounds; the targets do not ascend */
} sparse_product;

/* y[e] = a[indices[e, 0]] . b[indices[e, 1]], rows of the width. */
typedef struct sparse_sampled {
    const int64_t *indices;
    const void *a, *b;
    void *y;
    int64_t width;
} sparse_sampled;

typedef struct sparse_loops {
    void (*rows)(const sparse_product *s, int64_t first, int64_t last, int64_t next);
    void (*columns)(const sparse_product *s, int64_t first, int64_t last);
    void (*sampled)(const sparse_sampled *s, int64_t first, int64_t last);
} sparse_loops;

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/vector.h"

#define TYPE f32
#include "ops/sparse_matmul.typed.h"
#define TYPE f64
#include "ops/sparse_matmul.typed.h"

const sparse_loops ISA_NAME(sparse_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {product_rows_f32, product_columns_f32, sampled_entries_f32},
    [ED_FLOAT64] = {product_rows_f64, product_columns_f64, sampled_entries_f64},
};

#else
/* ======== Ops ================================================================================= */

ISA_DECLARE_TABLE(sparse_loops, sparse_table, [ED_DTYPE_COUNT]);

static const sparse_loops *loops_of(ed_dtype dtype)
{
    static const sparse_loops *const tables[ISA_COUNT] = ISA_TABLE(sparse_table);
    return &tables[isa_level][dtype];
}

/* ---- The product ----------------------------------------------------------------------------- */

#define PRODUCT_ATTRS(FIELD, T)                                                                    \
    SPARSE_SHAPE(FIELD, T)                                                                         \
    FIELD(T, BOOL, adjoint_a, false, ED_ANY, "the sparse matrix is transposed")
ED_OPTIONS(product_attrs, PRODUCT_ATTRS);
#define PRODUCT(...) ED_ATTRS(PRODUCT_ATTRS, product_attrs, __VA_ARGS__)

static bool refuse_shapes(const ed_call *call, const char *what)
{
    const ed_ints shape = ((const product_attrs *)call->attrs)->dense_shape;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "a is a sparse matrix of shape %s; %s",
                        text_of_ints(shape.values, shape.values ? shape.count : 0).s, what);
}

static bool product_infer(ed_call *call)
{
    const product_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0], *values = call->inputs[1], *b = call->inputs[2];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!shape_of_attr(call, "dense_shape", o->dense_shape, &rank, shape) ||
        !sparse_check_shape(call->op->name, o->dense_shape))
        return false;
    if (rank != 2) return refuse_shapes(call, "it must have rank 2");
    if (indices->rank != 2 || indices->shape[1] != 2 || values->rank != 1 ||
        indices->shape[0] != values->shape[0])
        return refuse_shapes(call, "indices must be [n, 2] and values [n]");
    if (b->rank != 2 || b->shape[0] != shape[!o->adjoint_a])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a has shape %s%s, b is %s; b must be [%lld, p]",
                            text_of_ints(shape, 2).s, o->adjoint_a ? ", transposed" : "",
                            text_of_tensor(b).s, (long long)shape[!o->adjoint_a]);
    return ed_call_output(call, 0, b->dtype, 2, (int64_t[]){shape[o->adjoint_a], b->shape[1]});
}

/* Looks whether entries are within bounds, and their targets ascend. */
static void check_range(int64_t first, int64_t last, int worker, void *user)
{
    sparse_product *s = user;
    int64_t before = first ? s->targets[2 * (first - 1)] : 0;
    int wrong = 0, falls = 0;
    (void)worker;
    for (int64_t e = first; e < last; e++) {
        const int64_t target = s->targets[2 * e];
        wrong |= ((uint64_t)target >= (uint64_t)s->bounds[0]) |
                 ((uint64_t)s->sources[2 * e] >= (uint64_t)s->bounds[1]);
        falls |= target < before;
        before = target;
    }
    if (wrong) __atomic_store_n(&s->wrong, 1, __ATOMIC_RELAXED);
    if (falls) __atomic_store_n(&s->falls, 1, __ATOMIC_RELAXED);
}

/* The product's and the loops. */
typedef struct product_work {
    sparse_product s;
    const sparse_loops *loops;
} product_work;

/* Rows that begin in these pieces of entries, and those without entries before them. */
static void rows_range(int64_t first, int64_t last, int worker, void *user)
{
    const product_work *w = user;
    const sparse_product *s = &w->s;
    const int64_t *at = s->targets;
    int64_t begin = first * s->piece, end = last * s->piece < s->n ? last * s->piece : s->n;
    (void)worker;
    while (begin && begin < end && at[2 * begin] == at[2 * (begin - 1)]) begin++;
    if (begin == end) return;
    while (end < s->n && at[2 * end] == at[2 * (end - 1)]) end++;
    w->loops->rows(s, begin, end, begin ? at[2 * (begin - 1)] + 1 : 0);
}

static void columns_range(int64_t first, int64_t last, int worker, void *user)
{
    const product_work *w = user;
    (void)worker;
    last *= SPARSE_COLUMNS;
    w->loops->columns(&w->s, first * SPARSE_COLUMNS, last < w->s.width ? last : w->s.width);
}

/* Elements of y from the row on are 0. */
static void clear_from(const ed_tensor *y, int64_t row)
{
    const int64_t begin = row * y->shape[1] * (int64_t)dtype_size(y->dtype);
    memset(y->data + begin, 0, (size_t)(y->size * (int64_t)dtype_size(y->dtype) - begin));
}

static void product_run(const ed_tensor *y, product_work *w)
{
    sparse_product *s = &w->s;
    if (s->falls) {
        const int64_t pieces = (s->width + SPARSE_COLUMNS - 1) / SPARSE_COLUMNS;
        clear_from(y, 0);
        threads_run(pieces, s->n * s->width > OPS_PARALLEL_WORK ? 1 : pieces, columns_range, w);
    } else {
        s->piece = 1 + OPS_PARALLEL_WORK / s->width;
        clear_from(y, s->n ? s->targets[2 * (s->n - 1)] + 1 : 0);
        threads_run((s->n + s->piece - 1) / s->piece, 1, rows_range, w);
    }
}

static bool product_kernel(ed_call *call)
{
    const product_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0], *x = call->inputs[1], *y = call->outputs[0];
    const int64_t *at = (const int64_t *)indices->data, *bounds = o->dense_shape.values;
    product_work w = {.loops = loops_of(y->dtype),
                      .s = {.targets = at + o->adjoint_a,
                            .sources = at + !o->adjoint_a,
                            .values = x->data,
                            .b = call->inputs[2]->data,
                            .y = y->data,
                            .n = x->size,
                            .width = y->shape[1],
                            .bounds = {bounds[o->adjoint_a], bounds[!o->adjoint_a]}}};
    const bool outer = threads_may_stop(false); /* what is not checked must not be an index */
    threads_run(x->size, OPS_PARALLEL_WORK, check_range, &w.s);
    threads_may_stop(outer);
    if (w.s.wrong) return sparse_check(call->op->name, indices, x, o->dense_shape, NULL);
    if (y->size) product_run(y, &w);
    return true;
}

static ed_tensor *sampled(ed_tensor *indices, ed_tensor *a, ed_tensor *b);
extern const ed_op ed_op_sparse_dense_matmul;

/* dvalues = dy bT at the entries, db = aT dy. */
static bool product_gradient(const ed_gradient_call *g)
{
    const product_attrs *o = g->attrs;
    ed_tensor *indices = g->inputs[0], *values = g->inputs[1], *b = g->inputs[2], *dy = g->dy[0];
    if (g->needs[1]) g->dx[1] = o->adjoint_a ? sampled(indices, b, dy) : sampled(indices, dy, b);
    if (g->needs[2])
        g->dx[2] = CALL_OP(sparse_dense_matmul,
                           PRODUCT(.dense_shape = o->dense_shape, .adjoint_a = !o->adjoint_a),
                           indices, values, dy);
    return true;
}

static bool product_reference(const ed_call *call)
{
    const product_attrs *o = call->attrs;
    const double *at = (const double *)call->inputs[0]->data;
    const double *values = (const double *)call->inputs[1]->data;
    const double *b = (const double *)call->inputs[2]->data;
    const ed_tensor *y = call->outputs[0];
    const int64_t width = y->shape[1];
    for (int64_t i = 0; i < y->size; i++) {
        double sum = 0;
        for (int64_t e = 0; e < call->inputs[1]->size; e++)
            if ((int64_t)at[2 * e + o->adjoint_a] == i / width)
                sum += values[e] * b[(int64_t)at[2 * e + !o->adjoint_a] * width + i % width];
        ((double *)y->data)[i] = sum;
    }
    return true;
}

#define MATRIX_ATTRS(...) PRODUCT(.dense_shape = ED_SAMPLE_INTS(__VA_ARGS__))
#define MATRIX_OPERANDS(n, rows, columns)                                                          \
    .inputs = {ED_SAMPLE_IN(0, 2, n, 2), ED_SAMPLE_IN(-2, 2, n), ED_SAMPLE_IN(-2, 2, rows, columns)}

ED_OP(sparse_dense_matmul) = {
    .name = "sparse_dense_matmul",
    .doc = "the product of a sparse and a dense matrix",
    .operands = {{"indices", 1 << ED_INT64, .saved = true},
                 {"values", ED_SET_FLOAT, 'T', .saved = true},
                 {"b", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(PRODUCT_ATTRS, product_attrs),
    .infer = product_infer,
    .kernel = product_kernel,
    .gradient = product_gradient,
    .reference = product_reference,
    .samples = ED_SAMPLES({MATRIX_OPERANDS(5, 4, 3), .attrs = MATRIX_ATTRS(3, 4)},
                          {MATRIX_OPERANDS(6, 3, 1), .attrs = MATRIX_ATTRS(5, 3)},
                          {MATRIX_OPERANDS(4, 3, 2),
                           .attrs = PRODUCT(.dense_shape = ED_SAMPLE_INTS(3, 4),
                                            .adjoint_a = true)},
                          {MATRIX_OPERANDS(9, 3, 135), .attrs = MATRIX_ATTRS(3, 3)}),
};

/* ---- Products at entries --------------------------------------------------------------------- */

static bool sampled_infer(ed_call *call)
{
    const ed_tensor *indices = call->inputs[0], *a = call->inputs[1], *b = call->inputs[2];
    if (indices->rank != 2 || indices->shape[1] != 2 || a->rank != 2 || b->rank != 2 ||
        a->shape[1] != b->shape[1])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "indices must be [n, 2], a [m, p] and b [k, p], got %s, %s and %s",
                            text_of_ints(indices->shape, indices->rank).s, text_of_tensor(a).s,
                            text_of_tensor(b).s);
    return ed_call_output(call, 0, a->dtype, 1, indices->shape);
}

static void sampled_range(int64_t first, int64_t last, int worker, void *user)
{
    const sparse_sampled *s = ((const void *const *)user)[0];
    const sparse_loops *loops = ((const void *const *)user)[1];
    (void)worker;
    loops->sampled(s, first, last);
}

static bool sampled_kernel(ed_call *call)
{
    const ed_tensor *indices = call->inputs[0], *a = call->inputs[1], *b = call->inputs[2];
    const ed_tensor *y = call->outputs[0];
    const ed_ints shape = ED_SHAPE(a->shape[0], b->shape[0]);
    if (!sparse_check(call->op->name, indices, y, shape, NULL)) return false;
    const sparse_sampled s = {.indices = (const int64_t *)indices->data,
                              .a = a->data,
                              .b = b->data,
                              .y = y->data,
                              .width = a->shape[1]};
    const void *both[2] = {&s, loops_of(y->dtype)};
    threads_run(y->size, 1 + OPS_PARALLEL_WORK / (1 + s.width), sampled_range, both);
    return true;
}

/* da = s b, db = sT a, s being the sparse matrix of dy. */
static bool sampled_gradient(const ed_gradient_call *g)
{
    ed_tensor *indices = g->inputs[0], *dy = g->dy[0];
    const ed_ints shape = ED_SHAPE(g->shapes[1].values[0], g->shapes[2].values[0]);
    if (g->needs[1])
        g->dx[1] =
            CALL_OP(sparse_dense_matmul, PRODUCT(.dense_shape = shape), indices, dy, g->inputs[2]);
    if (g->needs[2])
        g->dx[2] = CALL_OP(sparse_dense_matmul, PRODUCT(.dense_shape = shape, .adjoint_a = true),
                           indices, dy, g->inputs[1]);
    return true;
}

static bool sampled_reference(const ed_call *call)
{
    const double *at = (const double *)call->inputs[0]->data;
    const double *a = (const double *)call->inputs[1]->data;
    const double *b = (const double *)call->inputs[2]->data;
    const int64_t width = call->inputs[1]->shape[1];
    for (int64_t e = 0; e < call->outputs[0]->size; e++) {
        double sum = 0;
        for (int64_t j = 0; j < width; j++)
            sum += a[(int64_t)at[2 * e] * width + j] * b[(int64_t)at[2 * e + 1] * width + j];
        ((double *)call->outputs[0]->data)[e] = sum;
    }
    return true;
}

ED_OP(sparse_sampled_matmul) = {
    .name = "sparse_sampled_matmul",
    .doc = "elements of the product of a and the transposed b, at the indices",
    .operands = {{"indices", 1 << ED_INT64, .saved = true},
                 {"a", ED_SET_FLOAT, 'T', .saved = true},
                 {"b", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    .infer = sampled_infer,
    .kernel = sampled_kernel,
    .gradient = sampled_gradient,
    .reference = sampled_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 5, 2), ED_SAMPLE_IN(-2, 2, 3, 4),
                                      ED_SAMPLE_IN(-2, 2, 4, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 2, 2, 2), ED_SAMPLE_IN(-2, 2, 3, 37),
                                      ED_SAMPLE_IN(-2, 2, 3, 37)}}),
};

static ed_tensor *sampled(ed_tensor *indices, ed_tensor *a, ed_tensor *b)
{
    return CALL_OP(sparse_sampled_matmul, NULL, indices, a, b);
}

/* ---- The function ---------------------------------------------------------------------------- */

ed_tensor *ed_sparse_dense_matmul_with(ed_sparse_tensor *a, ed_tensor *b,
                                       const ed_sparse_dense_matmul_options *options)
{
    ED_SCOPE;
    if (NULL_GIVEN("sparse_dense_matmul", a, b) ||
        !(options =
              CHECKED_OPTIONS("sparse_dense_matmul", ED_SPARSE_DENSE_MATMUL_OPTIONS, options)))
        return NULL;
    if (options->adjoint_b) {
        if (ed_rank(b) != 2)
            return ed_fail(ED_INVALID_ARGUMENT, "sparse_dense_matmul: b must have rank 2, got %s",
                           text_of_tensor(b).s);
        b = ed_transpose(b);
    }
    return ed_keep(
        CALL_OP(sparse_dense_matmul,
                PRODUCT(.dense_shape = sparse_shape_of(a), .adjoint_a = options->adjoint_a),
                a->indices, a->values, b));
}
#endif
