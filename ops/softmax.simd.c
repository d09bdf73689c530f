/*
 * Softmax and its logarithm. A row (the elements along the axis) is read from memory once: its
 * largest element, the exponentials, their sum and the scaling are passes over a row that the cache
 * holds.
 */
#include "ops/softmax.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

enum { COLUMNS = 1024 }; /* bytes of a row of columns that are worked on side by side */

typedef struct softmax_loops {
    /* y = softmax or log_softmax of rows of n adjoining elements. */
    void (*rows)(const void *x, void *y, int64_t rows, int64_t n, bool logarithm);
    /* The same for `width` columns of n elements, `apart` from each other. */
    void (*columns)(const void *x, void *y, int64_t n, int64_t apart, int64_t width,
                    bool logarithm);
    /* dx of rows from y and dy; `stream`: past the caches. */
    void (*back)(const void *y, const void *dy, void *dx, int64_t rows, int64_t n, bool logarithm,
                 bool stream);
} softmax_loops;

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/softmax.typed.h"
#define TYPE f64
#include "ops/softmax.typed.h"

const softmax_loops ISA_NAME(softmax_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {softmax_rows_f32, softmax_columns_f32, softmax_gradient_rows_f32},
    [ED_FLOAT64] = {softmax_rows_f64, softmax_columns_f64, softmax_gradient_rows_f64}};

#else
/* ======== Ops ================================================================================= */

ISA_DECLARE_TABLE(softmax_loops, softmax_table, []);

static const softmax_loops *loops_for(ed_dtype dtype)
{
    static const softmax_loops *const tables[ISA_COUNT] = ISA_TABLE(softmax_table);
    return &tables[isa_level][dtype];
}

/* The gradients' ops, which are defined after the ops they belong to. */
extern const ed_op ed_op_softmax_gradient, ed_op_log_softmax_gradient;

static bool softmax_infer(ed_call *call)
{
    int *axis = ed_call_plan(call, sizeof *axis);
    return ops_axis(call, ((const ed_softmax_options *)call->attrs)->axis, call->inputs[0]->rank,
                    axis) &&
           ops_infer_like(call);
}

/* The sizes before, of and after an axis. */
static void extents(const ed_tensor *x, int axis, int64_t *outer, int64_t *n, int64_t *inner)
{
    *outer = *inner = 1;
    for (int d = 0; d < axis; d++) *outer *= x->shape[d];
    *n = x->shape[axis];
    for (int d = axis + 1; d < x->rank; d++) *inner *= x->shape[d];
}

/* A softmax, or its gradient, as the threads share it. */
typedef struct softmax_job {
    const softmax_loops *loops;
    const char *x, *dy;
    char *y;
    int64_t n, inner, width; /* width: columns of a chunk, where the axis is not the last */
    size_t element;
    bool logarithm, stream;
} softmax_job;

static void softmax_rows(int64_t first, int64_t last, int worker, void *user)
{
    const softmax_job *j = user;
    const size_t at = (size_t)(first * j->n) * j->element;
    (void)worker;
    j->loops->rows(j->x + at, j->y + at, last - first, j->n, j->logarithm);
}

static void softmax_chunks(int64_t first, int64_t last, int worker, void *user)
{
    const softmax_job *j = user;
    const int64_t chunks = (j->inner + j->width - 1) / j->width;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t column = i % chunks * j->width, left = j->inner - column;
        const size_t at = (size_t)(i / chunks * j->n * j->inner + column) * j->element;
        j->loops->columns(j->x + at, j->y + at, j->n, j->inner, left < j->width ? left : j->width,
                          j->logarithm);
    }
}

static bool run_softmax(ed_call *call, bool logarithm)
{
    const ed_tensor *x = call->inputs[0];
    softmax_job j = {.loops = loops_for(x->dtype),
                     .x = x->data,
                     .y = call->outputs[0]->data,
                     .element = dtype_size(x->dtype),
                     .logarithm = logarithm};
    int64_t outer;
    if (x->size == 0) return true;
    extents(x, *(const int *)call->plan, &outer, &j.n, &j.inner);
    if (j.inner == 1) {
        threads_run(outer, softmax_turn(outer, j.n), softmax_rows, &j);
        return true;
    }
    j.width = COLUMNS / (int64_t)j.element;
    const int64_t chunks = outer * ((j.inner + j.width - 1) / j.width);
    threads_run(chunks, x->size > OPS_PARALLEL_WORK ? 1 : chunks, softmax_chunks, &j);
    return true;
}

static bool softmax_kernel(ed_call *call)
{
    return run_softmax(call, false);
}

static bool log_softmax_kernel(ed_call *call)
{
    return run_softmax(call, true);
}

static void softmax_back_rows(int64_t first, int64_t last, int worker, void *user)
{
    const softmax_job *j = user;
    const size_t at = (size_t)(first * j->n) * j->element;
    (void)worker;
    j->loops->back(j->x + at, j->dy + at, j->y + at, last - first, j->n, j->logarithm, j->stream);
}

static bool run_back(ed_call *call, bool logarithm)
{
    const ed_tensor *y = call->inputs[0];
    if (y->size == 0) return true;
    softmax_job j = {.loops = loops_for(y->dtype),
                     .x = y->data,
                     .dy = call->inputs[1]->data,
                     .y = call->outputs[0]->data,
                     .n = y->shape[y->rank - 1],
                     .element = dtype_size(y->dtype),
                     .logarithm = logarithm};
    j.stream = y->size * (int64_t)j.element >= COPY_FAR_BYTES;
    threads_run(y->size / j.n, softmax_turn(y->size / j.n, j.n), softmax_back_rows, &j);
    return true;
}

static bool softmax_gradient_kernel(ed_call *call)
{
    return run_back(call, false);
}

static bool log_softmax_gradient_kernel(ed_call *call)
{
    return run_back(call, true);
}

/* Two operands of one shape and a last axis. */
static bool back_infer(ed_call *call)
{
    const ed_tensor *y = call->inputs[0], *dy = call->inputs[1];
    if (y->rank < 1 || y->rank != dy->rank ||
        memcmp(y->shape, dy->shape, (size_t)y->rank * sizeof *y->shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "y is %s, dy is %s; they must have the same shape, of rank >= 1",
                            text_of_tensor(y).s, text_of_tensor(dy).s);
    return ops_infer_like(call);
}

void softmax_plain(const double *x, double *y, int64_t n, int64_t apart, bool logarithm)
{
    double m = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) m = fmax(m, x[i * apart]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i * apart] - m);
    for (int64_t i = 0; i < n; i++)
        y[i * apart] = logarithm ? x[i * apart] - m - log(sum) : exp(x[i * apart] - m) / sum;
}

static bool plain_along(const ed_call *call, bool logarithm)
{
    const ed_tensor *x = call->inputs[0];
    int axis;
    int64_t outer, n, inner;
    if (!ops_axis(call, ((const ed_softmax_options *)call->attrs)->axis, x->rank, &axis))
        return false;
    extents(x, axis, &outer, &n, &inner);
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t at = i / inner * n * inner + i % inner;
        softmax_plain((const double *)x->data + at, (double *)call->outputs[0]->data + at, n, inner,
                      logarithm);
    }
    return true;
}

static bool plain_softmax(const ed_call *call)
{
    return plain_along(call, false);
}

static bool plain_log_softmax(const ed_call *call)
{
    return plain_along(call, true);
}

static bool plain_back(const ed_call *call, bool logarithm)
{
    const ed_tensor *t = call->inputs[0];
    const int64_t n = t->shape[t->rank - 1];
    for (int64_t first = 0; first < t->size; first += n) {
        const double *y = (const double *)t->data + first,
                     *dy = (const double *)call->inputs[1]->data + first;
        double *dx = (double *)call->outputs[0]->data + first, sum = 0;
        for (int64_t i = 0; i < n; i++) sum += dy[i] * (logarithm ? 1 : y[i]);
        for (int64_t i = 0; i < n; i++)
            dx[i] = logarithm ? dy[i] - exp(y[i]) * sum : y[i] * (dy[i] - sum);
    }
    return true;
}

static bool plain_softmax_gradient(const ed_call *call)
{
    return plain_back(call, false);
}

static bool plain_log_softmax_gradient(const ed_call *call)
{
    return plain_back(call, true);
}

/* Whether the call's axis is the last, which has the fused gradients. */
static bool is_last(const ed_gradient_call *g)
{
    const int rank = (int)g->shapes[0].count;
    return tensor_axis(((const ed_softmax_options *)g->attrs)->axis, rank) == rank - 1;
}

#define ALONG(a) .attrs = ED_ATTRS(ED_SOFTMAX_OPTIONS, ed_softmax_options, .axis = a)
#define X                                                                                          \
    {                                                                                              \
        {                                                                                          \
            "x", ED_SET_FLOAT, 'T'                                                                 \
        }                                                                                          \
    }
#define Y_AND_DY                                                                                   \
    {                                                                                              \
        {"y", ED_SET_FLOAT, 'T'},                                                                  \
        {                                                                                          \
            "dy", ED_SET_FLOAT, 'T'                                                                \
        }                                                                                          \
    }
#define AXIS ED_OP_ATTRS(ED_SOFTMAX_OPTIONS, ed_softmax_options)
#define SAMPLES_X                                                                                  \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},                                            \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, ALONG(0)},                                  \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)}, ALONG(-2)},                              \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 5)}, ALONG(-1)})

/* softmax: y = e^x / sum e^x, dx = y (dy - sum dy y) */
static bool softmax_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = g->outputs[0], *dy = g->dy[0];
    const int64_t axis = ((const ed_softmax_options *)g->attrs)->axis;
    g->dx[0] = ed_keep(is_last(g) ? CALL_OP(softmax_gradient, NULL, y, dy)
                                  : ed_mul(y, ed_sub(dy, softmax_sum_along(ed_mul(dy, y), axis))));
    return true;
}

ED_OP(softmax) = {.name = "softmax",
                  .doc = "y = e^x / sum of e^x along the axis",
                  .operands = X,
                  .flags = ED_OP_CONTIGUOUS,
                  AXIS,
                  .infer = softmax_infer,
                  .batch = ed_batch_axes,
                  .kernel = softmax_kernel,
                  .gradient = softmax_gradient,
                  SAVES_Y,
                  .reference = plain_softmax,
                  .samples = SAMPLES_X};

ed_tensor *ed_softmax_with(ed_tensor *x, const ed_softmax_options *options)
{
    return CALL_OP(softmax, options, x);
}

/* For dx = y (dy - sum dy y) and u flowing back: to dy the same of u,
 * to y u (dy - sum dy y) - dy sum u y. */
static bool softmax_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = g->inputs[0], *dy = g->inputs[1], *u = g->dy[0];
    if (g->needs[1]) g->dx[1] = ed_keep(CALL_OP(softmax_gradient, NULL, y, u));
    if (g->needs[0])
        g->dx[0] = ed_keep(ed_sub(ed_mul(u, ed_sub(dy, softmax_sum_along(ed_mul(dy, y), -1))),
                                  ed_mul(dy, softmax_sum_along(ed_mul(u, y), -1))));
    return true;
}

ED_OP(softmax_gradient) = {
    .name = "softmax_gradient",
    .doc = "dx = y (dy - sum of dy y) along the last axis",
    .operands = Y_AND_DY,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = back_infer,
    .batch = ed_batch_axes,
    .kernel = softmax_gradient_kernel,
    .gradient = softmax_gradient_gradient,
    SAVES_AB,
    .reference = plain_softmax_gradient,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}})};

/* log_softmax: y = x - ln sum e^x, dx = dy - e^y sum dy */
static bool log_softmax_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = g->outputs[0], *dy = g->dy[0];
    const int64_t axis = ((const ed_softmax_options *)g->attrs)->axis;
    g->dx[0] = ed_keep(is_last(g) ? CALL_OP(log_softmax_gradient, NULL, y, dy)
                                  : ed_sub(dy, ed_mul(ed_exp(y), softmax_sum_along(dy, axis))));
    return true;
}

ED_OP(log_softmax) = {.name = "log_softmax",
                      .doc = "y = x - ln of the sum of e^x along the axis",
                      .operands = X,
                      .flags = ED_OP_CONTIGUOUS,
                      AXIS,
                      .infer = softmax_infer,
                      .batch = ed_batch_axes,
                      .kernel = log_softmax_kernel,
                      .gradient = log_softmax_gradient,
                      SAVES_Y,
                      .reference = plain_log_softmax,
                      .samples = SAMPLES_X};

ed_tensor *ed_log_softmax_with(ed_tensor *x, const ed_softmax_options *options)
{
    return CALL_OP(log_softmax, options, x);
}

/* For dx = dy - e^y sum dy: to dy u - sum u e^y, to y -u e^y sum dy. */
static bool log_softmax_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *u = g->dy[0], *part = ed_mul(u, ed_exp(g->inputs[0]));
    if (g->needs[1]) g->dx[1] = ed_keep(ed_sub(u, softmax_sum_along(part, -1)));
    if (g->needs[0]) g->dx[0] = ed_keep(ed_neg(ed_mul(part, softmax_sum_along(g->inputs[1], -1))));
    return true;
}

ED_OP(log_softmax_gradient) = {
    .name = "log_softmax_gradient",
    .doc = "dx = dy - e^y sum of dy along the last axis",
    .operands = Y_AND_DY,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = back_infer,
    .batch = ed_batch_axes,
    .kernel = log_softmax_gradient_kernel,
    .gradient = log_softmax_gradient_gradient,
    SAVES_AB,
    .reference = plain_log_softmax_gradient,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 0, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}})};

#endif
