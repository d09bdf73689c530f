/*
 * The product of a sparse and a dense matrix. Entries are brought into the order of the rows of the
 * result; then each row is the sum of rows of b, kept in registers and written once. Its gradient
 * by the values is the product of two dense matrices, taken at the entries alone.
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
};

/* y[r] = the sum of values[e] b[sources[e step]] for the entries e from begins[r] on. */
typedef struct sparse_product {
    const int64_t *begins, *sources;
    const void *values, *b;
    void *y;
    int64_t n, step, width; /* entries; distance of sources; columns of b */
} sparse_product;

/* y[e] = a[indices[e, 0]] . b[indices[e, 1]], rows of the width. */
typedef struct sparse_sampled {
    const int64_t *indices;
    const void *a, *b;
    void *y;
    int64_t width;
} sparse_sampled;

typedef struct sparse_loops {
    void (*rows)(const sparse_product *s, int64_t first, int64_t last);
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
    [ED_FLOAT32] = {product_rows_f32, sampled_entries_f32},
    [ED_FLOAT64] = {product_rows_f64, sampled_entries_f64},
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

/* Counts the entries of each row into begins[row + 1]; *sorted: whether rows ascend. */
static bool count_rows(const ed_call *call, int64_t *begins, bool *sorted)
{
    const product_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0];
    const int64_t *at = (const int64_t *)indices->data, *bounds = o->dense_shape.values;
    int64_t before = 0;
    *sorted = true;
    for (int64_t e = 0; e < indices->shape[0]; e++, at += 2) {
        if ((uint64_t)at[0] >= (uint64_t)bounds[0] || (uint64_t)at[1] >= (uint64_t)bounds[1])
            return sparse_check(call->op->name, indices, call->inputs[1], o->dense_shape, NULL);
        const int64_t row = at[o->adjoint_a];
        *sorted &= row >= before;
        before = row;
        if (begins) begins[row + 1]++;
    }
    return true;
}

/*
 * The entries in the order of rows, in new memory, for the product; NULL without memory. Row r
 * begins at begins[r + 1], where its next entry comes; so when all are there, at begins[r].
 */
static void *sorted_entries(const ed_call *call, int64_t *begins, sparse_product *s)
{
    const product_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0], *x = call->inputs[1];
    const int64_t *at = (const int64_t *)indices->data;
    const size_t element = dtype_size(x->dtype);
    int64_t *sources = memory_alloc((size_t)x->size * (sizeof *sources + element) + 1);
    if (!sources) return NULL;
    char *values = (char *)(sources + x->size);
    for (int64_t e = 0; e < x->size; e++, at += 2) {
        const int64_t to = begins[at[o->adjoint_a] + 1]++;
        sources[to] = at[!o->adjoint_a];
        memcpy(values + (size_t)to * element, x->data + (size_t)e * element, element);
    }
    s->begins = begins;
    s->sources = sources;
    s->values = values;
    s->step = 1;
    return sources;
}

static void product_range(int64_t first, int64_t last, int worker, void *user)
{
    const sparse_product *s = ((const void *const *)user)[0];
    const sparse_loops *loops = ((const void *const *)user)[1];
    (void)worker;
    loops->rows(s, first, last);
}

static void product_run(const ed_call *call, sparse_product *s)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t rows = y->shape[0], work = (s->n / rows + 1) * s->width;
    const void *both[2] = {s, loops_of(y->dtype)};
    threads_run(rows, 1 + OPS_PARALLEL_WORK / work, product_range, both);
}

static bool product_kernel(ed_call *call)
{
    const product_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0], *x = call->inputs[1], *y = call->outputs[0];
    const int64_t rows = y->shape[0];
    bool sorted;
    if (!y->size) return count_rows(call, NULL, &sorted);
    int64_t *begins = memory_zalloc((size_t)(rows + 2) * sizeof *begins);
    if (!begins) return false;
    sparse_product s = {.begins = begins + 1,
                        .sources = (const int64_t *)indices->data + !o->adjoint_a,
                        .values = x->data,
                        .b = call->inputs[2]->data,
                        .y = y->data,
                        .n = x->size,
                        .step = 2,
                        .width = y->shape[1]};
    bool fine = count_rows(call, begins + 1, &sorted);
    for (int64_t r = 1; fine && r <= rows; r++) begins[r + 1] += begins[r];
    void *room = NULL;
    if (fine && !sorted) fine = (room = sorted_entries(call, begins, &s));
    if (fine) product_run(call, &s);
    memory_free(room);
    memory_free(begins);
    return fine;
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
