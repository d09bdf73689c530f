/*
 * Diagonals of matrices: diag_part takes them, diag makes matrices of them, set_diag puts them into
 * matrices. Each is made of the other two's gradients. Diagonal k holds the elements [i, i + k];
 * several are rows of one tensor, the highest first, each as long as the longest one.
 */
#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <string.h>

/* Which diagonals, of matrices of which size. */
typedef struct diagonals {
    int64_t low, high;           /* the diagonals */
    int64_t rows, columns;       /* of a matrix */
    int64_t longest;             /* the elements of the longest one */
    bool left_above, left_below; /* where shorter ones stand in their row */
    int64_t matrices;            /* how many there are */
} diagonals;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t diagonal_length(const diagonals *d, int64_t k)
{
    return smaller(d->rows + smaller(k, 0), d->columns - larger(k, 0));
}

/* Where diagonal k begins in its row. */
static int64_t diagonal_offset(const diagonals *d, int64_t k)
{
    const bool left = (k >= 0 && d->left_above) || (k <= 0 && d->left_below);
    return left ? 0 : d->longest - diagonal_length(d, k);
}

/* The options k and align, which all three have. */
static bool read_options(const ed_call *call, ed_ints k, const char *align, diagonals *d)
{
    const bool one = k.values && k.count == 1;
    d->low = k.values && k.count > 0 ? k.values[0] : 0;
    d->high = one || !k.values || k.count < 2 ? d->low : k.values[1];
    d->left_above = align[0] == 'L';
    d->left_below = !strcmp(strchr(align, '_'), "_LEFT");
    if (!k.values || one || (k.count == 2 && d->low <= d->high)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "k must be one diagonal or the lowest and the highest one, got %s",
                        text_of_ints(k.values, k.count).s);
}

/* Whether the matrices have such diagonals; works out how long the longest one is. */
static bool check_bounds(const ed_call *call, diagonals *d)
{
    const int64_t ends[] = {d->low, d->high};
    for (int i = 0; i < 2; i++)
        if (ends[i] && (ends[i] <= -d->rows || ends[i] >= d->columns))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "matrices of %lld rows and %lld columns have no diagonal %lld",
                                (long long)d->rows, (long long)d->columns, (long long)ends[i]);
    d->longest = smaller(d->rows + smaller(d->high, 0), d->columns - larger(d->low, 0));
    return true;
}

/* The same for the diagonals of x. */
static bool diagonals_of(const ed_call *call, ed_ints k, const char *align, diagonals *d)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 2, got %s",
                            text_of_tensor(x).s);
    d->rows = x->shape[x->rank - 2];
    d->columns = x->shape[x->rank - 1];
    d->matrices = 1;
    for (int i = 0; i < x->rank - 2; i++) d->matrices *= x->shape[i];
    return read_options(call, k, align, d) && check_bounds(call, d);
}

/* The shape of the diagonals of a tensor with the first `leading` axes of `shape`; its rank. */
static int diagonals_shape(const diagonals *d, int leading, const int64_t *shape, int64_t *out)
{
    memcpy(out, shape, (size_t)leading * sizeof *out);
    if (d->high > d->low) out[leading++] = d->high - d->low + 1;
    out[leading++] = d->longest;
    return leading;
}

static bool check_padding_value(const ed_call *call, double value)
{
    const ed_dtype dtype = call->inputs[0]->dtype;
    if (dtype_holds(dtype, value)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "the padding_value %.17g cannot be represented as %s", value,
                        ed_dtype_name(dtype));
}

/* ---- Moving ---------------------------------------------------------------------------------- */

/* Diagonals in rows of one tensor, and matrices. */
typedef struct mover {
    const diagonals *d;
    const ed_tensor *x; /* what is read */
    char *y;
    uint64_t padding;
} mover;

/* The first element of matrix m of x, which may lie in any way. */
static const char *matrix_at(const ed_tensor *x, int64_t m)
{
    int64_t offset = 0;
    for (int i = x->rank - 3; i >= 0; m /= x->shape[i--]) offset += m % x->shape[i] * x->strides[i];
    return x->data + offset * (int64_t)dtype_size(x->dtype);
}

/* Rows first..last-1 of the diagonals of all matrices x. */
static void take_rows(int64_t first, int64_t last, int worker, void *user)
{
    const mover *w = user;
    const diagonals *d = w->d;
    const ed_tensor *x = w->x;
    const int64_t element = (int64_t)dtype_size(x->dtype), n = d->high - d->low + 1;
    const int64_t down = x->strides[x->rank - 2], right = x->strides[x->rank - 1];
    (void)worker;
    for (int64_t row = first; row < last; row++) {
        const int64_t k = d->high - row % n, length = diagonal_length(d, k),
                      before = diagonal_offset(d, k);
        const char *from =
            matrix_at(x, row / n) + (larger(k, 0) * right - smaller(k, 0) * down) * element;
        char *to = w->y + row * d->longest * element;
        copy_fill_row((size_t)element, &w->padding, to, before);
        copy_row((size_t)element, length, from, down + right, to + before * element, 1);
        copy_fill_row((size_t)element, &w->padding, to + (before + length) * element,
                      d->longest - before - length);
    }
}

/* Puts rows first..last-1 of the diagonals x into contiguous matrices y. */
static void put_rows(int64_t first, int64_t last, int worker, void *user)
{
    const mover *w = user;
    const diagonals *d = w->d;
    const int64_t element = (int64_t)dtype_size(w->x->dtype), n = d->high - d->low + 1;
    (void)worker;
    for (int64_t row = first; row < last; row++) {
        const int64_t k = d->high - row % n, size = d->rows * d->columns;
        const int64_t at = row / n * size + larger(k, 0) - smaller(k, 0) * d->columns;
        copy_row((size_t)element, diagonal_length(d, k),
                 w->x->data + (row * d->longest + diagonal_offset(d, k)) * element, 1,
                 w->y + at * element, d->columns + 1);
    }
}

static void move_all(const mover *w, void (*rows)(int64_t, int64_t, int, void *))
{
    const diagonals *d = w->d;
    if (!d->longest) return;
    threads_run(d->matrices * (d->high - d->low + 1), 1 + OPS_PARALLEL_WORK / d->longest, rows,
                (void *)(uintptr_t)w);
}

/* ---- References ------------------------------------------------------------------------------ */

/* The place in the row of diagonal k of element number i of it, or -1. */
static int64_t plain_place(const diagonals *d, int64_t k, int64_t i)
{
    int64_t length = 0;
    for (int64_t r = 0; r < d->rows; r++) length += r + k >= 0 && r + k < d->columns;
    const bool left = k > 0   ? d->left_above
                      : k < 0 ? d->left_below
                              : d->left_above || d->left_below;
    return i + (left ? 0 : d->longest - length);
}

/* For each element of a diagonal: its number among the matrices' elements and among the rows'. */
static void plain_visit(const diagonals *d, const double *from, double *to, bool take)
{
    const int64_t n = d->high - d->low + 1;
    for (int64_t m = 0; m < d->matrices; m++)
        for (int64_t r = 0; r < d->rows; r++)
            for (int64_t c = 0; c < d->columns; c++) {
                const int64_t k = c - r, matrix = (m * d->rows + r) * d->columns + c;
                if (k < d->low || k > d->high) continue;
                const int64_t row =
                    (m * n + d->high - k) * d->longest + plain_place(d, k, k > 0 ? r : c);
                if (take)
                    to[row] = from[matrix];
                else
                    to[matrix] = from[row];
            }
}

static void plain_fill(const ed_tensor *y, double value)
{
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = value;
}

/* ---- diag_part ------------------------------------------------------------------------------- */

/* One diagonal is a view. */
static bool diag_part_infer(ed_call *call)
{
    const ed_diag_part_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    diagonals *d = ed_call_plan(call, sizeof *d);
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK];
    if (!diagonals_of(call, o->k, o->align, d) || !check_padding_value(call, o->padding_value))
        return false;
    const int rank = diagonals_shape(d, x->rank - 2, x->shape, shape);
    if (d->high > d->low) return ed_call_output(call, 0, x->dtype, rank, shape);
    const int64_t down = x->strides[x->rank - 2], right = x->strides[x->rank - 1];
    memcpy(strides, x->strides, sizeof strides);
    strides[rank - 1] = down + right;
    const int64_t offset = larger(d->low, 0) * right - smaller(d->low, 0) * down;
    return ed_call_view(call, 0, 0, rank, shape, strides, d->longest ? offset : 0);
}

static bool diag_part_kernel(ed_call *call)
{
    mover w = {.d = call->plan, .x = call->inputs[0], .y = call->outputs[0]->data};
    dtype_store(w.x->dtype, &w.padding, 0,
                ((const ed_diag_part_options *)call->attrs)->padding_value);
    move_all(&w, take_rows);
    return true;
}

/* dx = dy on the diagonals, 0 elsewhere */
static bool diag_part_gradient(const ed_gradient_call *g)
{
    const ed_diag_part_options *o = g->attrs;
    g->dx[0] = ed_set_diag(ed_zeros(g->shapes[0], .dtype = g->dtypes[0]), g->dy[0], .k = o->k,
                           .align = o->align);
    return true;
}

static bool diag_part_plain(const ed_call *call)
{
    const ed_diag_part_options *o = call->attrs;
    plain_fill(call->outputs[0], o->padding_value);
    plain_visit(call->plan, (const double *)call->inputs[0]->data, (double *)call->outputs[0]->data,
                true);
    return true;
}

#define PART(...) ED_ATTRS(ED_DIAG_PART_OPTIONS, ed_diag_part_options, __VA_ARGS__)

ED_OP(diag_part) = {
    .name = "diag_part",
    .doc = "diagonals of each matrix; of one diagonal a view",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(ED_DIAG_PART_OPTIONS, ed_diag_part_options),
    .infer = diag_part_infer,
    .batch = ed_batch_axes,
    .kernel = diag_part_kernel,
    .gradient = diag_part_gradient,
    .reference = diag_part_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5)},
                           .attrs = PART(.k = ED_SAMPLE_INTS(-1))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
                           .attrs = PART(.k = ED_SAMPLE_INTS(-1, 2), .padding_value = 1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3)},
                           .attrs = PART(.k = ED_SAMPLE_INTS(-3, -1), .align = "LEFT_RIGHT")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = PART(.k = ED_SAMPLE_INTS(-2, 2), .align = "RIGHT_RIGHT")}),
};

ed_tensor *ed_diag_part_with(ed_tensor *x, const ed_diag_part_options *options)
{
    return CALL_OP(diag_part, options, x);
}

/* ---- diag ------------------------------------------------------------------------------------ */

/* The size of the matrices: what is not given is as small as can be, of both the larger. */
static bool matrix_size(const ed_call *call, diagonals *d)
{
    const ed_diag_options *o = call->attrs;
    int64_t rows, columns;
    if (__builtin_sub_overflow(d->longest, smaller(d->high, 0), &rows) ||
        __builtin_add_overflow(d->longest, larger(d->low, 0), &columns))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "k is out of any matrix's bounds, got %s",
                            text_of_ints(o->k.values, o->k.count).s);
    const bool any = o->num_rows < 0 && o->num_cols < 0;
    d->rows = any ? larger(rows, columns) : o->num_rows < 0 ? rows : o->num_rows;
    d->columns = any ? larger(rows, columns) : o->num_cols < 0 ? columns : o->num_cols;
    if (d->rows >= rows && d->columns >= columns && (d->rows == rows || d->columns == columns))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "diagonals of %lld elements, the lowest %lld, the highest %lld, do not fit "
                        "%lld rows and %lld columns",
                        (long long)d->longest, (long long)d->low, (long long)d->high,
                        (long long)d->rows, (long long)d->columns);
}

static bool diag_infer(ed_call *call)
{
    const ed_diag_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    diagonals *d = ed_call_plan(call, sizeof *d);
    int64_t shape[ED_MAX_RANK + 1];
    if (!read_options(call, o->k, o->align, d) || !check_padding_value(call, o->padding_value))
        return false;
    const bool many = d->high > d->low;
    if (x->rank < 1 + many || x->rank - many >= ED_MAX_RANK ||
        (many && (uint64_t)x->shape[x->rank - 2] - 1 != (uint64_t)d->high - (uint64_t)d->low))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x is %s; the diagonals %lld to %lld must be its last axes",
                            text_of_tensor(x).s, (long long)d->low, (long long)d->high);
    const int leading = x->rank - 1 - many;
    d->longest = x->shape[x->rank - 1];
    d->matrices = 1;
    for (int i = 0; i < leading; i++) d->matrices *= shape[i] = x->shape[i];
    if (!matrix_size(call, d) || !check_bounds(call, d)) return false;
    shape[leading] = d->rows;
    shape[leading + 1] = d->columns;
    return ed_call_output(call, 0, x->dtype, leading + 2, shape);
}

static bool diag_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    mover w = {.d = call->plan, .x = call->inputs[0], .y = y->data};
    dtype_store(y->dtype, &w.padding, 0, ((const ed_diag_options *)call->attrs)->padding_value);
    copy_fill(dtype_size(y->dtype), &w.padding, y->data, y->size);
    move_all(&w, put_rows);
    return true;
}

/* dx = the diagonals of dy */
static bool diag_gradient(const ed_gradient_call *g)
{
    const ed_diag_options *o = g->attrs;
    g->dx[0] = ed_diag_part(g->dy[0], .k = o->k, .align = o->align);
    return true;
}

static bool diag_plain(const ed_call *call)
{
    const ed_diag_options *o = call->attrs;
    plain_fill(call->outputs[0], o->padding_value);
    plain_visit(call->plan, (const double *)call->inputs[0]->data, (double *)call->outputs[0]->data,
                false);
    return true;
}

#define DIAG(...) ED_ATTRS(ED_DIAG_OPTIONS, ed_diag_options, __VA_ARGS__)

ED_OP(diag) = {
    .name = "diag",
    .doc = "matrices with these diagonals, and padding_value elsewhere",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_DIAG_OPTIONS, ed_diag_options),
    .infer = diag_infer,
    .batch = ed_batch_axes,
    .kernel = diag_kernel,
    .gradient = diag_gradient,
    .reference = diag_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
         .attrs = DIAG(.k = ED_SAMPLE_INTS(1), .padding_value = 1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3)}, .attrs = DIAG(.num_rows = 3, .num_cols = 5)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
         .attrs = DIAG(.k = ED_SAMPLE_INTS(-1, 1), .align = "LEFT_RIGHT")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
         .attrs = DIAG(.k = ED_SAMPLE_INTS(-2, -1), .num_cols = 4, .align = "LEFT_LEFT")}),
};

ed_tensor *ed_diag_with(ed_tensor *x, const ed_diag_options *options)
{
    return CALL_OP(diag, options, x);
}

/* ---- set_diag -------------------------------------------------------------------------------- */

static bool set_diag_infer(ed_call *call)
{
    const ed_set_diag_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *diagonal = call->inputs[1];
    diagonals *d = ed_call_plan(call, sizeof *d);
    int64_t shape[ED_MAX_RANK];
    if (!diagonals_of(call, o->k, o->align, d)) return false;
    const int rank = diagonals_shape(d, x->rank - 2, x->shape, shape);
    if (diagonal->rank != rank || memcmp(diagonal->shape, shape, (size_t)rank * sizeof *shape))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "diagonal is %s; the diagonals %lld to %lld of x, %s, have shape %s",
                            text_of_tensor(diagonal).s, (long long)d->low, (long long)d->high,
                            text_of_tensor(x).s, text_of_ints(shape, rank).s);
    return ops_infer_like(call);
}

static bool set_diag_kernel(ed_call *call)
{
    const mover w = {.d = call->plan, .x = call->inputs[1], .y = call->outputs[0]->data};
    tensor_pack(call->inputs[0], w.y);
    move_all(&w, put_rows);
    return true;
}

/* dx = dy, 0 on the diagonals; d diagonal = the diagonals of dy */
static bool set_diag_gradient(const ed_gradient_call *g)
{
    const ed_set_diag_options *o = g->attrs;
    if (g->needs[0])
        g->dx[0] = ed_set_diag(g->dy[0], ed_zeros(g->shapes[1], .dtype = g->dtypes[1]), .k = o->k,
                               .align = o->align);
    if (g->needs[1]) g->dx[1] = ed_diag_part(g->dy[0], .k = o->k, .align = o->align);
    return true;
}

static bool set_diag_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    memcpy(call->outputs[0]->data, x->data, (size_t)x->size * sizeof(double));
    plain_visit(call->plan, (const double *)call->inputs[1]->data, (double *)call->outputs[0]->data,
                false);
    return true;
}

#define SET_DIAG(...) ED_ATTRS(ED_SET_DIAG_OPTIONS, ed_set_diag_options, __VA_ARGS__)

ED_OP(set_diag) = {
    .name = "set_diag",
    .doc = "x with other diagonals",
    .operands = {{"x", ED_SET_ALL, 'T'}, {"diagonal", ED_SET_ALL, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SET_DIAG_OPTIONS, ed_set_diag_options),
    .infer = set_diag_infer,
    .batch = ed_batch_axes,
    .kernel = set_diag_kernel,
    .gradient = set_diag_gradient,
    .reference = set_diag_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(-2, 2, 2, 2)},
                           .attrs = SET_DIAG(.k = ED_SAMPLE_INTS(-2))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 4, 3)},
                           .attrs = SET_DIAG(.k = ED_SAMPLE_INTS(-1, 2))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 2, 2)},
                           .attrs = SET_DIAG(.k = ED_SAMPLE_INTS(1, 2), .align = "LEFT_RIGHT")}),
};

ed_tensor *ed_set_diag_with(ed_tensor *x, ed_tensor *diagonal, const ed_set_diag_options *options)
{
    return CALL_OP(set_diag, options, x, diagonal);
}

/* ---- trace ----------------------------------------------------------------------------------- */

static bool trace_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    if (ed_rank(x) < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 2, got %s",
                            text_of_tensor(tensor_read(x)).s);
    return ed_call_result(call, 0, ed_reduce_sum(ed_diag_part(x), .axis = ED_AXES(-1)));
}

static bool trace_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
    for (int64_t m = 0; m < y->size; m++) {
        double sum = 0;
        for (int64_t i = 0; i < rows && i < columns; i++)
            sum += ((const double *)x->data)[(m * rows + i) * columns + i];
        ((double *)y->data)[m] = sum;
    }
    return true;
}

ED_OP(trace) = {
    .name = "trace",
    .doc = "the sum of each matrix's main diagonal",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .compose = trace_compose,
    .reference = trace_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5)}}),
};

ed_tensor *ed_trace(ed_tensor *x)
{
    return CALL_OP(trace, NULL, x);
}
