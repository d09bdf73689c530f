#include "ops/batch.h"
#include "ops/index.h"
#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

/*
 * Scatter: rows of a tensor or a variable are changed at indices, by the updates. What comes to one
 * element comes in the order of the indices, whatever the number of threads: threads share out the
 * columns, or rows of single elements. All indices are checked before anything is changed.
 */

typedef enum scatter_mode {
    SCATTER_UPDATE,
    SCATTER_ADD,
    SCATTER_SUB,
    SCATTER_MAX,
    SCATTER_MIN,
    SCATTER_MUL,
    SCATTER_DIV
} scatter_mode;

/* What an op does: `extra` of its definition. nd: the last axis of the indices leads to a row. */
typedef struct scatter_op {
    scatter_mode mode;
    bool nd;
} scatter_op;

#define DOES(what, by)                                                                             \
    .extra = &(const scatter_op)                                                                   \
    {                                                                                              \
        .mode = what, .nd = by                                                                     \
    }

/* to [rows, width] is changed at `count` rows by from, of which each begins `step` behind the one
 * before: the width, or 0. The rows are the indices, or else an array of numbers. */
typedef struct scattering {
    scatter_mode mode;
    ed_dtype dtype;
    const char *from;
    char *to;
    const ed_tensor *indices;
    const int64_t *rows;
    int64_t count, width, step;
    int64_t extent; /* rows of `to`, which so many threads share */
    int64_t shares;
} scattering;

#define TYPE f32
#include "ops/scatter.typed.h"
#define TYPE f64
#include "ops/scatter.typed.h"
#define TYPE i32
#include "ops/scatter.typed.h"
#define TYPE i64
#include "ops/scatter.typed.h"
#define TYPE u8
#include "ops/scatter.typed.h"
#define TYPE u16
#include "ops/scatter.typed.h"
#define TYPE u32
#include "ops/scatter.typed.h"
#define TYPE u64
#include "ops/scatter.typed.h"

/* Signed integers are compared as such, and calculated with, so that they wrap, unsigned. */
static void scatter_columns(const scattering *s, int64_t first, int64_t last)
{
    const bool ordered = s->mode == SCATTER_MAX || s->mode == SCATTER_MIN;
    switch (s->dtype) {
    case ED_FLOAT32: scatter_columns_f32(s, first, last); return;
    case ED_FLOAT64: scatter_columns_f64(s, first, last); return;
    case ED_INT32: (ordered ? scatter_columns_i32 : scatter_columns_u32)(s, first, last); return;
    case ED_INT64: (ordered ? scatter_columns_i64 : scatter_columns_u64)(s, first, last); return;
    default: break;
    }
    switch (dtype_size(s->dtype)) { /* others are only moved, but for uint8 */
    case 1: scatter_columns_u8(s, first, last); return;
    case 2: scatter_columns_u16(s, first, last); return;
    case 4: scatter_columns_u32(s, first, last); return;
    default: scatter_columns_u64(s, first, last);
    }
}

enum {
    SCATTER_COLUMNS = 32,
    SCATTER_ROWS = HARD(3, 512),      /* of which the numbers are read at once */
    SCATTER_MANY = HARD(4, 64 << 10), /* single elements that threads share */
    SCATTER_SHARES = 8,               /* at most: each reads all indices */
};

/* The rows at.., as many as are read at once, by their numbers; room for those. */
static scattering scatter_some(const scattering *s, int64_t at, int64_t *room)
{
    scattering some = *s;
    some.count = s->count - at < SCATTER_ROWS ? s->count - at : SCATTER_ROWS;
    some.rows = s->rows ? s->rows + at : index_some(s->indices, at, some.count, room);
    some.from = s->from + at * s->step * (int64_t)dtype_size(s->dtype);
    return some;
}

static void scatter_range(int64_t first, int64_t last, int worker, void *user)
{
    const scattering *s = user;
    int64_t room[SCATTER_ROWS];
    (void)worker;
    first *= SCATTER_COLUMNS;
    last = last * SCATTER_COLUMNS < s->width ? last * SCATTER_COLUMNS : s->width;
    for (int64_t at = 0; at < s->count; at += SCATTER_ROWS) {
        const scattering some = scatter_some(s, at, room);
        scatter_columns(&some, first, last);
    }
}

/* Takes the single elements whose rows are in first..last-1, and these rows; returns how many. */
static int64_t scatter_take(const scattering *s, int64_t first, int64_t last, int64_t *rows,
                            void *taken)
{
    switch (s->dtype) {
    case ED_FLOAT32: return scatter_take_f32(s, first, last, rows, taken);
    case ED_FLOAT64: return scatter_take_f64(s, first, last, rows, taken);
    case ED_INT32: return scatter_take_i32(s, first, last, rows, taken);
    case ED_INT64: return scatter_take_i64(s, first, last, rows, taken);
    default: break;
    }
    switch (dtype_size(s->dtype)) {
    case 1: return scatter_take_u8(s, first, last, rows, taken);
    case 2: return scatter_take_u16(s, first, last, rows, taken);
    case 4: return scatter_take_u32(s, first, last, rows, taken);
    default: return scatter_take_u64(s, first, last, rows, taken);
    }
}

/* Shares first..last-1 of x's rows, of one element each: all indices are read for them, so that
 * what is added to an element is added in order. */
static void scatter_shares(int64_t first, int64_t last, int worker, void *user)
{
    const scattering *s = user;
    int64_t room[SCATTER_ROWS], rows[SCATTER_ROWS];
    char taken[SCATTER_ROWS * 8] __attribute__((aligned(8)));
    (void)worker;
    first = s->extent * first / s->shares;
    last = s->extent * last / s->shares;
    for (int64_t at = 0; at < s->count; at += SCATTER_ROWS) {
        scattering some = scatter_some(s, at, room);
        some.count = scatter_take(&some, first, last, rows, taken);
        some.rows = rows;
        some.from = taken;
        some.step = 1;
        scatter_columns(&some, 0, 1);
    }
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* How many leading axes of x (of `rank` axes) the indices lead through; -1 with an error. */
static int scatter_axes(const ed_call *call, const ed_tensor *indices, int rank)
{
    const scatter_op *op = call->op->extra;
    const int64_t k = !op->nd ? 1 : indices->rank ? indices->shape[indices->rank - 1] : -1;
    if (k >= 0 && k <= rank) return (int)k;
    ed_call_fail(call, ED_INVALID_ARGUMENT, "indices %s can't index a tensor of rank %d",
                 text_of_tensor(indices).s, rank);
    return -1;
}

/* Whether the updates have the shape of indices (without the last axis for nd) and the rest of the
 * shape that is indexed, or are one number. */
static bool check_updates(const ed_call *call, const ed_tensor *indices, const ed_tensor *updates,
                          int rank, const int64_t *shape)
{
    const scatter_op *op = call->op->extra;
    const int axes = scatter_axes(call, indices, rank), outer = indices->rank - op->nd;
    int64_t wanted[2 * ED_MAX_RANK];
    if (axes < 0) return false;
    memcpy(wanted, indices->shape, (size_t)outer * sizeof *wanted);
    memcpy(wanted + outer, shape + axes, (size_t)(rank - axes) * sizeof *wanted);
    const int all = outer + rank - axes;
    if (updates->rank == 0 ||
        (updates->rank == all && !memcmp(updates->shape, wanted, (size_t)all * sizeof *wanted)))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "updates are %s; with indices %s into %s they must be %s or a number",
                        text_of_tensor(updates).s, text_of_tensor(indices).s,
                        text_of_ints(shape, rank).s, text_of_ints(wanted, all).s);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

/* Finds the rows of x that the indices lead to, checked; false on failure. s->rows, if there are
 * any, are the caller's. */
static bool scatter_rows(const ed_call *call, const ed_tensor *x, const ed_tensor *indices,
                         scattering *s)
{
    s->indices = indices;
    if (!((const scatter_op *)call->op->extra)->nd) return index_check(call, indices, x->shape[0]);
    if (indices->shape[indices->rank - 1] == 1) { /* the indices are the rows */
        const index_order order = index_order_of(indices);
        if (order.least >= 0 && order.largest < x->shape[0]) return true;
    }
    int64_t *rows = memory_alloc((size_t)s->count * sizeof *rows);
    s->rows = rows;
    return rows && index_rows(call, indices, x->shape, 0, rows);
}

/* Changes x at the indices; nothing if it fails. */
static bool scatter_at(ed_call *call, const ed_tensor *x, const ed_tensor *indices,
                       const ed_tensor *updates)
{
    const scatter_op *op = call->op->extra;
    const int axes = scatter_axes(call, indices, x->rank);
    const int64_t n = index_product(indices->shape, 0, indices->rank - op->nd),
                  width = index_product(x->shape, axes, x->rank);
    const size_t element = dtype_size(x->dtype);
    scattering s = {.mode = op->mode,
                    .dtype = x->dtype,
                    .from = updates->data,
                    .to = x->data,
                    .count = n,
                    .width = width,
                    .step = width};
    char *one = NULL;
    if (updates->rank == 0) {
        if (!(one = memory_alloc((size_t)width * element))) return false;
        copy_fill(element, updates->data, one, width);
        s.from = one;
        s.step = 0;
    }
    const int64_t pieces = (width + SCATTER_COLUMNS - 1) / SCATTER_COLUMNS;
    const bool ok = scatter_rows(call, x, indices, &s);
    s.extent = x->size;
    s.shares = width == 1 && n > SCATTER_MANY ? threads_count() : 1;
    if (s.shares > SCATTER_SHARES) s.shares = SCATTER_SHARES;
    if (ok && s.shares > 1)
        threads_run(s.shares, 1, scatter_shares, &s);
    else if (ok)
        threads_run(pieces, n * width > OPS_PARALLEL_WORK ? 1 : pieces, scatter_range, &s);
    memory_free((void *)(uintptr_t)s.rows);
    memory_free(one);
    return ok;
}

static double plain_change(scatter_mode mode, double v, double x)
{
    switch (mode) {
    case SCATTER_ADD: return v + x;
    case SCATTER_SUB: return v - x;
    case SCATTER_MUL: return v * x;
    case SCATTER_DIV: return v / x;
    case SCATTER_MAX: return isnan(x) || x > v ? x : v;
    case SCATTER_MIN: return isnan(x) || x < v ? x : v;
    default: return x;
    }
}

static void scatter_plain(const ed_call *call, double *to, const ed_tensor *x,
                          const ed_tensor *indices, const ed_tensor *updates)
{
    const scatter_op *op = call->op->extra;
    const int k = op->nd ? (int)indices->shape[indices->rank - 1] : 1;
    const double *all = (const double *)indices->data, *from = (const double *)updates->data;
    int64_t n = index_product(indices->shape, 0, indices->rank - op->nd),
            width = index_product(x->shape, k, x->rank);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = 0;
        for (int j = 0; j < k; j++) row = row * x->shape[j] + (int64_t)*all++;
        for (int64_t j = 0; j < width; j++)
            to[row * width + j] = plain_change(op->mode, to[row * width + j],
                                               updates->rank ? from[i * width + j] : *from);
    }
}

/* ---- tensor_scatter_* ------------------------------------------------------------------------ */

static bool tensor_scatter_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    return check_updates(call, call->inputs[1], call->inputs[2], x->rank, x->shape) &&
           ops_infer_like(call);
}

static bool tensor_scatter_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    copy_bytes(y->data, x->data, (size_t)x->size * dtype_size(x->dtype));
    return scatter_at(call, y, call->inputs[1], call->inputs[2]);
}

static bool tensor_scatter_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    double *y = (double *)call->outputs[0]->data;
    memcpy(y, x->data, (size_t)x->size * sizeof *y);
    scatter_plain(call, y, x, call->inputs[1], call->inputs[2]);
    return true;
}

/* What flows to the updates: dy there, summed if they are one number. */
static ed_tensor *to_updates(const ed_gradient_call *g, ed_tensor *there)
{
    return shape_sum_to(there, g->shapes[2]);
}

static bool tensor_scatter_add_gradient(const ed_gradient_call *g)
{
    g->dx[0] = g->dy[0];
    if (g->needs[2]) g->dx[2] = to_updates(g, ed_gather_nd(g->dy[0], g->inputs[1]));
    return true;
}

static bool tensor_scatter_sub_gradient(const ed_gradient_call *g)
{
    tensor_scatter_add_gradient(g);
    if (g->needs[2]) g->dx[2] = ed_neg(g->dx[2]);
    return true;
}

/* Updates that later ones overwrite have no part: each is numbered, and looked for in its row. */
static bool tensor_scatter_update_gradient(const ed_gradient_call *g)
{
    ed_tensor *dy = g->dy[0], *indices = g->inputs[1];
    ed_tensor *zero = ed_zeros(ED_SHAPE(), .dtype = g->dtypes[0]);
    if (g->needs[0]) g->dx[0] = ed_tensor_scatter_update(dy, indices, zero);
    if (!g->needs[2]) return true;
    const ed_ints all = g->shapes[1], outer = {all.values, all.count - 1};
    const int k = (int)all.values[all.count - 1];
    const int64_t n = index_product(all.values, 0, (int)outer.count);
    ed_tensor *numbers = ed_reshape(ed_range(0, (double)n, .dtype = ED_INT64), outer);
    ed_tensor *last = ed_tensor_scatter_update(
        ed_zeros(((ed_ints){g->shapes[0].values, k}), .dtype = ED_INT64), indices, numbers);
    ed_tensor *mine = ed_equal(ed_gather_nd(last, indices), numbers);
    int64_t wide[2 * ED_MAX_RANK];
    for (int64_t i = 0; i < 2 * ED_MAX_RANK; i++) wide[i] = i < outer.count ? all.values[i] : 1;
    mine = ed_reshape(mine, ((ed_ints){wide, outer.count + g->shapes[0].count - k}));
    g->dx[2] = to_updates(g, ed_where(mine, ed_gather_nd(dy, indices), zero));
    return true;
}

/* dy goes in equal parts to all that have the result's value: x's element and updates. */
static bool tensor_scatter_best_gradient(const ed_gradient_call *g)
{
    ed_tensor *x = g->inputs[0], *indices = g->inputs[1], *updates = g->inputs[2];
    ed_tensor *y = g->outputs[0], *there = ed_gather_nd(y, indices);
    ed_tensor *x_has = ed_cast(ed_equal(x, y), g->dtypes[0]);
    ed_tensor *update_has = ed_cast(ed_equal(updates, there), g->dtypes[0]);
    ed_tensor *count = ed_tensor_scatter_add(x_has, indices, update_has);
    ed_tensor *share = ed_div(g->dy[0], count);
    if (g->needs[0]) g->dx[0] = ed_mul(share, x_has);
    if (g->needs[2]) g->dx[2] = to_updates(g, ed_mul(ed_gather_nd(share, indices), update_has));
    return true;
}

/* Samples of indices that lead to elements and to slices, and of one number for all. */
#define ND_SAMPLES                                                                                 \
    ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 4, 3), ED_SAMPLE_IN(0, 2, 5, 2),                  \
                           ED_DISTINCT_IN(-2, 2, 5)}},                                             \
               {.inputs = {ED_DISTINCT_IN(-2, 2, 4, 3), ED_SAMPLE_IN(0, 3, 2, 5, 1),               \
                           ED_DISTINCT_IN(-2, 2, 2, 5, 3)}},                                       \
               {.inputs = {ED_DISTINCT_IN(-2, 2, 5, 2), ED_SAMPLE_IN(0, 4, 3, 1),                  \
                           ED_SAMPLE_IN(0.75, 0.75)}})

/* One number for all indices has no axes. */
static ed_list *tensor_scatter_batch(const ed_batch_call *call)
{
    return call->inputs[2]->rank ? batch_last(call, 1 | 4) : ed_batch_each(call);
}

#define TENSOR_SCATTER(symbol, text, set, save, does, ...)                                         \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"x", set, 'T', .saved = save},                                  \
                                  {"indices", ED_SET_INDEX, 'I', .saved = true},                   \
                                  {"updates", set, 'T', .saved = save}},                           \
                     .results = ED_RESULTS({.name = "y", .saved = save}),                          \
                     .flags = ED_OP_CONTIGUOUS,                                                    \
                     .infer = tensor_scatter_infer,                                                \
                     .batch = tensor_scatter_batch,                                                \
                     .kernel = tensor_scatter_kernel,                                              \
                     .reference = tensor_scatter_plain,                                            \
                     .samples = ND_SAMPLES,                                                        \
                     DOES(does, true),                                                             \
                     __VA_ARGS__};                                                                 \
    ed_tensor *(ed_##symbol)(ed_tensor * x, ed_tensor * indices, ed_tensor * updates)              \
    {                                                                                              \
        return CALL_OP(symbol, NULL, x, indices, updates);                                         \
    }                                                                                              \
    ed_tensor *(ed_##symbol)(ed_tensor * x, ed_tensor * indices, ed_tensor * updates)

TENSOR_SCATTER(tensor_scatter_update, "x with the updates at the indices", ED_SET_ALL, false,
               SCATTER_UPDATE, .gradient = tensor_scatter_update_gradient);
TENSOR_SCATTER(tensor_scatter_add, "x, plus the updates at the indices", ED_SET_NUMBER, false,
               SCATTER_ADD, .gradient = tensor_scatter_add_gradient);
TENSOR_SCATTER(tensor_scatter_sub, "x, minus the updates at the indices", ED_SET_NUMBER, false,
               SCATTER_SUB, .gradient = tensor_scatter_sub_gradient);
TENSOR_SCATTER(tensor_scatter_max, "the maximum of x and the updates at the indices", ED_SET_NUMBER,
               true, SCATTER_MAX, .gradient = tensor_scatter_best_gradient);
TENSOR_SCATTER(tensor_scatter_min, "the minimum of x and the updates at the indices", ED_SET_NUMBER,
               true, SCATTER_MIN, .gradient = tensor_scatter_best_gradient);

/* ---- scatter_nd ------------------------------------------------------------------------------ */

#define SCATTER_ND_ATTRS(FIELD, T) FIELD(T, INTS, shape, ED_NO_LIST, ED_REQUIRED, "of the result")
ED_OPTIONS(scatter_nd_attrs, SCATTER_ND_ATTRS);

static bool scatter_nd_infer(ed_call *call)
{
    int64_t shape[ED_MAX_RANK];
    int rank;
    return shape_of_attr(call, "shape", ((const scatter_nd_attrs *)call->attrs)->shape, &rank,
                         shape) &&
           check_updates(call, call->inputs[0], call->inputs[1], rank, shape) &&
           ed_call_output(call, 0, call->inputs[1]->dtype, rank, shape);
}

static bool scatter_nd_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    copy_fill(1, "", y->data, y->size * (int64_t)dtype_size(y->dtype));
    return scatter_at(call, y, call->inputs[0], call->inputs[1]);
}

static bool scatter_nd_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    memset(y->data, 0, (size_t)y->size * sizeof(double));
    scatter_plain(call, (double *)y->data, y, call->inputs[0], call->inputs[1]);
    return true;
}

static bool scatter_nd_gradient(const ed_gradient_call *g)
{
    g->dx[1] = shape_sum_to(ed_gather_nd(g->dy[0], g->inputs[0]), g->shapes[1]);
    return true;
}

#define SCATTER_SHAPE(...)                                                                         \
    ED_ATTRS(SCATTER_ND_ATTRS, scatter_nd_attrs, .shape = ED_SAMPLE_INTS(__VA_ARGS__))

static ed_list *scatter_nd_batch(const ed_batch_call *call)
{
    return call->inputs[1]->rank ? batch_last(call, 2) : ed_batch_each(call);
}

/* y = zeros, to which the updates are added at the indices */
ED_OP(scatter_nd) = {
    .name = "scatter_nd",
    .doc = "zeros, to which the updates are added at the indices",
    .operands = {{"indices", ED_SET_INDEX, 'I', .saved = true}, {"updates", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(SCATTER_ND_ATTRS, scatter_nd_attrs),
    .infer = scatter_nd_infer,
    .batch = scatter_nd_batch,
    .kernel = scatter_nd_kernel,
    .gradient = scatter_nd_gradient,
    .reference = scatter_nd_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 5, 2), ED_SAMPLE_IN(-2, 2, 5)},
                           .attrs = SCATTER_SHAPE(4, 3)},
                          {.inputs = {ED_SAMPLE_IN(0, 3, 2, 5, 1), ED_SAMPLE_IN(-2, 2, 2, 5, 3)},
                           .attrs = SCATTER_SHAPE(4, 3)},
                          {.inputs = {ED_SAMPLE_IN(0, 3, 3, 1), ED_SAMPLE_IN(0.75, 0.75)},
                           .attrs = SCATTER_SHAPE(4, 2)}),
    DOES(SCATTER_ADD, true),
};

ed_tensor *(ed_scatter_nd)(ed_tensor *indices, ed_tensor *updates, ed_ints shape)
{
    return CALL_OP(scatter_nd, ED_ATTRS(SCATTER_ND_ATTRS, scatter_nd_attrs, .shape = shape),
                   indices, updates);
}

/* ---- On variables ---------------------------------------------------------------------------- */

static bool scatter_variable_infer(ed_call *call)
{
    const ed_tensor *v = call->inputs[0];
    return check_updates(call, call->inputs[1], call->inputs[2], v->rank, v->shape);
}

static bool scatter_variable_kernel(ed_call *call)
{
    return scatter_at(call, call->inputs[0], call->inputs[1], call->inputs[2]);
}

static bool scatter_variable_plain(const ed_call *call)
{
    const ed_tensor *v = call->inputs[0];
    scatter_plain(call, (double *)v->data, v, call->inputs[1], call->inputs[2]);
    return true;
}

#define ROW_SAMPLES                                                                                \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(0, 3, 6), ED_SAMPLE_IN(1, 2, 6, 3)}},  \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(0, 4, 2, 3), ED_SAMPLE_IN(1, 2, 2, 3)}},  \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 2), ED_SAMPLE_IN(0, 4), ED_SAMPLE_IN(1, 2)}})

#define SCATTER_VARIABLE(symbol, text, set, does, by, these)                                       \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"variable", set, 'T', .writes = true},                          \
                                  {"indices", ED_SET_INDEX, 'I'},                                  \
                                  {"updates", set, 'T'}},                                          \
                     .results = ED_NO_RESULTS,                                                     \
                     .flags = ED_OP_CONTIGUOUS,                                                    \
                     .infer = scatter_variable_infer,                                              \
                     .kernel = scatter_variable_kernel,                                            \
                     .no_gradient =                                                                \
                         "it changes a variable, of which later reads see the new value",          \
                     .reference = scatter_variable_plain,                                          \
                     .samples = these,                                                             \
                     DOES(does, by)};                                                              \
    ed_tensor *(ed_##symbol)(ed_tensor * v, ed_tensor * indices, ed_tensor * updates)              \
    {                                                                                              \
        return CALL_OP(symbol, NULL, v, indices, updates);                                         \
    }                                                                                              \
    ed_tensor *(ed_##symbol)(ed_tensor * v, ed_tensor * indices, ed_tensor * updates)

SCATTER_VARIABLE(scatter_update, "rows of a variable = updates", ED_SET_ALL, SCATTER_UPDATE, false,
                 ROW_SAMPLES);
SCATTER_VARIABLE(scatter_add, "rows of a variable += updates", ED_SET_NUMBER, SCATTER_ADD, false,
                 ROW_SAMPLES);
SCATTER_VARIABLE(scatter_sub, "rows of a variable -= updates", ED_SET_NUMBER, SCATTER_SUB, false,
                 ROW_SAMPLES);
SCATTER_VARIABLE(scatter_max, "rows of a variable = their maximum with updates", ED_SET_NUMBER,
                 SCATTER_MAX, false, ROW_SAMPLES);
SCATTER_VARIABLE(scatter_min, "rows of a variable = their minimum with updates", ED_SET_NUMBER,
                 SCATTER_MIN, false, ROW_SAMPLES);
SCATTER_VARIABLE(scatter_mul, "rows of a variable *= updates", ED_SET_NUMBER, SCATTER_MUL, false,
                 ROW_SAMPLES);
SCATTER_VARIABLE(scatter_div, "rows of a variable /= updates", ED_SET_FLOAT, SCATTER_DIV, false,
                 ROW_SAMPLES);
SCATTER_VARIABLE(scatter_nd_update, "elements or slices of a variable = updates", ED_SET_ALL,
                 SCATTER_UPDATE, true, ND_SAMPLES);
SCATTER_VARIABLE(scatter_nd_add, "elements or slices of a variable += updates", ED_SET_NUMBER,
                 SCATTER_ADD, true, ND_SAMPLES);
SCATTER_VARIABLE(scatter_nd_sub, "elements or slices of a variable -= updates", ED_SET_NUMBER,
                 SCATTER_SUB, true, ND_SAMPLES);
