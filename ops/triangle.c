/*
 * Parts of matrices: band_part, tril, triu keep the elements of some diagonals and set the others
 * to 0. All of them are one kernel: element [i, j] stays if low <= j - i <= high.
 */
#include "ops/shape.h"
#include "tensor/threads.h"
#include <string.h>

#define BAND_ATTRS(FIELD, T)                                                                       \
    FIELD(T, INT, num_lower, 0, ED_ANY, "how many diagonals below the main one; negative: all")    \
    FIELD(T, INT, num_upper, 0, ED_ANY, "how many diagonals above the main one; negative: all")
ED_OPTIONS(band_attrs, BAND_ATTRS);

typedef struct band {
    int64_t low, high;
} band;

static int64_t at_most(int64_t x, int64_t limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

/* The diagonals that stay; k of tril and triu is held within the matrix. */
static band band_of(const ed_op *op, const void *attrs)
{
    if (!strcmp(op->name, "band_part")) {
        const band_attrs *b = attrs;
        return (band){b->num_lower < 0 ? -INT64_MAX : -b->num_lower,
                      b->num_upper < 0 ? INT64_MAX : b->num_upper};
    }
    const int64_t k = at_most(((const ed_triangle_options *)attrs)->k, INT64_MAX);
    return !strcmp(op->name, "tril") ? (band){-INT64_MAX, k} : (band){k, INT64_MAX};
}

static bool band_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank >= 2) return ops_infer_like(call);
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 2, got %s",
                        text_of_tensor(x).s);
}

/* Rows first..last-1 of all matrices. */
static void band_rows(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
    const size_t element = dtype_size(x->dtype), bytes = element * (size_t)columns;
    const band b = band_of(call->op, call->attrs);
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const int64_t i = r % rows;
        int64_t begin = b.low < -i ? 0 : i + at_most(b.low, columns + rows);
        int64_t end = b.high >= columns - i ? columns : i + at_most(b.high, columns + rows) + 1;
        if (begin > columns) begin = columns;
        if (end < begin) end = begin;
        char *to = y->data + (size_t)r * bytes;
        memset(to, 0, element * (size_t)begin);
        memcpy(to + element * (size_t)begin, x->data + (size_t)r * bytes + element * (size_t)begin,
               element * (size_t)(end - begin));
        memset(to + element * (size_t)end, 0, element * (size_t)(columns - end));
    }
}

static bool band_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (!x->size) return true;
    const int64_t columns = x->shape[x->rank - 1];
    threads_run(x->size / columns, 1 + OPS_PARALLEL_WORK / columns, band_rows, call);
    return true;
}

static bool band_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_call_op(g->op, &g->dy[0], 1, g->attrs);
    return true;
}

static int64_t band_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const band b = band_of(call->op, call->attrs);
    const int64_t d = at[x->rank - 1] - at[x->rank - 2];
    return b.low <= d && d <= b.high ? shape_number(x, at) : -1;
}

static bool band_plain(const ed_call *call)
{
    return shape_plain(call, band_source, 0);
}

/* What the three have in common. */
#define BAND(symbol, text, LIST, T, ...)                                                           \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"x", ED_SET_ALL, 'T'}},                                         \
                     .flags = ED_OP_CONTIGUOUS,                                                    \
                     ED_OP_ATTRS(LIST, T),                                                         \
                     .infer = band_infer,                                                          \
                     .batch = ed_batch_axes,                                                       \
                     .kernel = band_kernel,                                                        \
                     .gradient = band_gradient,                                                    \
                     .reference = band_plain,                                                      \
                     .samples = ED_SAMPLES(__VA_ARGS__)}

#define TRIANGLE(...) ED_ATTRS(ED_TRIANGLE_OPTIONS, ed_triangle_options, __VA_ARGS__)

BAND(band_part, "the diagonals around the main one of each matrix, else 0", BAND_ATTRS, band_attrs,
     {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5)},
      .attrs = ED_ATTRS(BAND_ATTRS, band_attrs, .num_lower = 1)},
     {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3)},
      .attrs = ED_ATTRS(BAND_ATTRS, band_attrs, .num_lower = -1, .num_upper = 1)});
BAND(tril, "the lower triangle of each matrix, else 0", ED_TRIANGLE_OPTIONS, ed_triangle_options,
     {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5)}},
     {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3)}, .attrs = TRIANGLE(.k = -1)},
     {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, .attrs = TRIANGLE(.k = 2)});
BAND(triu, "the upper triangle of each matrix, else 0", ED_TRIANGLE_OPTIONS, ed_triangle_options,
     {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5)}},
     {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3)}, .attrs = TRIANGLE(.k = -1)},
     {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, .attrs = TRIANGLE(.k = 2)});

ed_tensor *ed_band_part(ed_tensor *x, int64_t num_lower, int64_t num_upper)
{
    return CALL_OP(band_part,
                   ED_ATTRS(BAND_ATTRS, band_attrs, .num_lower = num_lower, .num_upper = num_upper),
                   x);
}

ed_tensor *ed_tril_with(ed_tensor *x, const ed_triangle_options *options)
{
    return CALL_OP(tril, options, x);
}

ed_tensor *ed_triu_with(ed_tensor *x, const ed_triangle_options *options)
{
    return CALL_OP(triu, options, x);
}
