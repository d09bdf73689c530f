/*
 * Cross-entropies. They take logits, so that nothing overflows and no probability is stored; the
 * gradient computes the exponentials again and writes nothing but its result. A row's largest
 * element, exponentials and sum are passes over a row that the cache holds, as in softmax.simd.c.
 */
#include "ops/softmax.h"
#include "ops/elementwise.h"
#include "ops/loops.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

typedef struct entropy_loops {
    /* Losses of rows of labels and logits, and dlogits for dy[0], dy[step], ... */
    void (*dense)(const void *labels, const void *x, void *loss, int64_t rows, int64_t n);
    void (*dense_back)(const void *labels, const void *x, const void *dy, int64_t step, void *dx,
                       int64_t rows, int64_t n);
    /* The same with labels that name the class: int64 (wide) or int32. */
    void (*sparse)(const void *labels, bool wide, const void *x, void *loss, int64_t rows,
                   int64_t n);
    void (*sparse_back)(const void *labels, bool wide, const void *x, const void *dy, int64_t step,
                        void *dx, int64_t rows, int64_t n);
} entropy_loops;

static inline int64_t label_at(const void *labels, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)labels)[i] : ((const int32_t *)labels)[i];
}

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/cross_entropy.typed.h"
#define TYPE f64
#include "ops/cross_entropy.typed.h"

const entropy_loops ISA_NAME(entropy_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {entropy_dense_f32, entropy_dense_gradient_f32, entropy_sparse_f32,
                    entropy_sparse_gradient_f32},
    [ED_FLOAT64] = {entropy_dense_f64, entropy_dense_gradient_f64, entropy_sparse_f64,
                    entropy_sparse_gradient_f64}};

#else
/* ======== Ops ================================================================================= */

ISA_DECLARE_TABLE(entropy_loops, entropy_table, []);

static const entropy_loops *loops_for(ed_dtype dtype)
{
    static const entropy_loops *const tables[ISA_COUNT] = ISA_TABLE(entropy_table);
    return &tables[isa_level][dtype];
}

/* The gradients' ops, which are defined after the ops they belong to. */
extern const ed_op ed_op_softmax_cross_entropy_gradient,
    ed_op_sparse_softmax_cross_entropy_gradient, ed_op_sigmoid_cross_entropy_gradient;

/* ---- Softmax cross-entropy ------------------------------------------------------------------- */

/*
 * Labels at inputs[0], logits at inputs[1] and, for the gradients, dy at inputs[2]: dense labels
 * have the logits' shape, sparse ones and dy that without the last axis.
 */
static bool check_entropy(ed_call *call, bool sparse)
{
    const ed_tensor *labels = call->inputs[0], *x = call->inputs[1];
    const int rank = x->rank - sparse;
    if (x->rank < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "logits must have shape [..., classes], got %s", text_of_tensor(x).s);
    if (labels->rank != rank ||
        memcmp(labels->shape, x->shape, (size_t)rank * sizeof *x->shape) != 0)
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT, "labels are %s, logits are %s; labels must have shape %s",
            text_of_tensor(labels).s, text_of_tensor(x).s, text_of_ints(x->shape, rank).s);
    return true;
}

static bool infer_loss(ed_call *call, bool sparse)
{
    const ed_tensor *x = call->inputs[1];
    return check_entropy(call, sparse) && ed_call_output(call, 0, x->dtype, x->rank - 1, x->shape);
}

static bool infer_entropy_back(ed_call *call, bool sparse)
{
    const ed_tensor *x = call->inputs[1], *dy = call->inputs[2];
    if (!check_entropy(call, sparse)) return false;
    if (dy->rank != x->rank - 1 ||
        memcmp(dy->shape, x->shape, (size_t)dy->rank * sizeof *x->shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dy is %s, logits are %s; dy must have shape %s", text_of_tensor(dy).s,
                            text_of_tensor(x).s, text_of_ints(x->shape, x->rank - 1).s);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape);
}

/* Operands as the loops want them; dy, often one number for all rows, keeps its stride. */
typedef struct entropy {
    const entropy_loops *loops;
    ed_tensor *labels, *x, *dy; /* retained */
    char *y;
    int64_t rows, n, step;
    size_t element, label;
    bool wide;
} entropy;

static bool open_entropy(entropy *e, const ed_call *call)
{
    const ed_tensor *dy = call->n_inputs > 2 ? call->inputs[2] : NULL;
    const bool strided = dy && dy->rank == 1;
    *e = (entropy){.labels = tensor_contiguous(call->inputs[0]),
                   .x = tensor_contiguous(call->inputs[1]),
                   .dy = strided ? ed_retain((ed_tensor *)dy)
                         : dy    ? tensor_contiguous(dy)
                                 : NULL,
                   .step = strided ? dy->strides[0] : 1};
    if (!e->labels || !e->x || (dy && !e->dy)) return false;
    e->loops = loops_for(e->x->dtype);
    e->y = call->outputs[0]->data;
    e->n = e->x->shape[e->x->rank - 1];
    e->rows = e->n ? e->x->size / e->n : 0;
    e->element = dtype_size(e->x->dtype);
    e->label = dtype_size(e->labels->dtype);
    e->wide = e->labels->dtype == ED_INT64;
    return true;
}

static void close_entropy(entropy *e)
{
    ed_release(e->labels);
    ed_release(e->x);
    ed_release(e->dy);
}

static bool check_labels(const ed_call *call, const ed_tensor *labels, int64_t n)
{
    for (int64_t i = 0; i < labels->size; i++) {
        const int64_t label = label_at(labels->data, labels->dtype == ED_INT64, i);
        if (label < 0 || label >= n)
            return ed_call_fail(
                call, ED_OUT_OF_RANGE,
                "label %lld at %s is out of bounds for %lld classes: it must be in 0..%lld",
                (long long)label, text_of_element(labels, i).s, (long long)n, (long long)(n - 1));
    }
    return true;
}

static bool softmax_cross_entropy_infer(ed_call *call)
{
    return infer_loss(call, false);
}

/* Opens, runs over the rows, closes; labels of classes are checked before anything is computed. */
static bool run_entropy(ed_call *call, bool sparse, threads_range rows)
{
    entropy e;
    const bool ok = open_entropy(&e, call) && (!sparse || check_labels(call, e.labels, e.n));
    if (ok && e.n == 0) memset(e.y, 0, (size_t)call->outputs[0]->size * e.element);
    if (ok && e.rows) threads_run(e.rows, softmax_turn(e.rows, e.n), rows, &e);
    close_entropy(&e);
    return ok;
}

static void dense_rows(int64_t first, int64_t last, int worker, void *user)
{
    const entropy *e = user;
    const size_t at = (size_t)(first * e->n) * e->element;
    (void)worker;
    e->loops->dense(e->labels->data + at, e->x->data + at, e->y + (size_t)first * e->element,
                    last - first, e->n);
}

static void dense_back_rows(int64_t first, int64_t last, int worker, void *user)
{
    const entropy *e = user;
    const size_t at = (size_t)(first * e->n) * e->element;
    (void)worker;
    e->loops->dense_back(e->labels->data + at, e->x->data + at,
                         e->dy->data + first * e->step * (int64_t)e->element, e->step, e->y + at,
                         last - first, e->n);
}

static void sparse_rows(int64_t first, int64_t last, int worker, void *user)
{
    const entropy *e = user;
    (void)worker;
    e->loops->sparse(e->labels->data + (size_t)first * e->label, e->wide,
                     e->x->data + (size_t)(first * e->n) * e->element,
                     e->y + (size_t)first * e->element, last - first, e->n);
}

static void sparse_back_rows(int64_t first, int64_t last, int worker, void *user)
{
    const entropy *e = user;
    const size_t at = (size_t)(first * e->n) * e->element;
    (void)worker;
    e->loops->sparse_back(e->labels->data + (size_t)first * e->label, e->wide, e->x->data + at,
                          e->dy->data + first * e->step * (int64_t)e->element, e->step, e->y + at,
                          last - first, e->n);
}

static bool softmax_cross_entropy_kernel(ed_call *call)
{
    return run_entropy(call, false, dense_rows);
}

static bool softmax_cross_entropy_gradient_infer(ed_call *call)
{
    return infer_entropy_back(call, false);
}

static bool softmax_cross_entropy_gradient_kernel(ed_call *call)
{
    return run_entropy(call, false, dense_back_rows);
}

static bool sparse_softmax_cross_entropy_infer(ed_call *call)
{
    return infer_loss(call, true);
}

static bool sparse_softmax_cross_entropy_kernel(ed_call *call)
{
    return run_entropy(call, true, sparse_rows);
}

static bool sparse_softmax_cross_entropy_gradient_infer(ed_call *call)
{
    return infer_entropy_back(call, true);
}

static bool sparse_softmax_cross_entropy_gradient_kernel(ed_call *call)
{
    return run_entropy(call, true, sparse_back_rows);
}

/* References: a row's log-probabilities are computed in place of the loss' or dlogits' loops. */
static bool plain_entropy(const ed_call *call, bool sparse, bool back)
{
    const ed_tensor *x = call->inputs[1], *y = call->outputs[0];
    const int64_t n = x->shape[x->rank - 1], rows = back ? (n ? y->size / n : 0) : y->size;
    double *log_p = memory_alloc(2 * (size_t)(n + 1) * sizeof *log_p), *z = log_p + n + 1;
    for (int64_t r = 0; log_p && r < rows; r++) {
        const double *labels = (const double *)call->inputs[0]->data + (sparse ? r : r * n);
        double loss = 0;
        softmax_plain((const double *)x->data + r * n, log_p, n, 1, true);
        for (int64_t i = 0; i < n; i++) {
            z[i] = sparse ? i == (int64_t)*labels : labels[i];
            if (z[i] != 0) loss -= z[i] * log_p[i];
        }
        if (!back) ((double *)y->data)[r] = loss;
        for (int64_t i = 0; back && i < n; i++)
            ((double *)y->data)[r * n + i] = ((const double *)call->inputs[2]->data)[r] *
                                             (exp(log_p[i]) * reduce_plain(false, z, n) - z[i]);
    }
    memory_free(log_p);
    return log_p != NULL;
}

static bool plain_softmax_cross_entropy(const ed_call *call)
{
    return plain_entropy(call, false, false);
}

static bool plain_softmax_cross_entropy_gradient(const ed_call *call)
{
    return plain_entropy(call, false, true);
}

static bool plain_sparse_softmax_cross_entropy(const ed_call *call)
{
    return plain_entropy(call, true, false);
}

static bool plain_sparse_softmax_cross_entropy_gradient(const ed_call *call)
{
    return plain_entropy(call, true, true);
}

/* One number a row, so that it meets the row's elements. */
static ed_tensor *a_row(ed_tensor *x)
{
    return ed_expand_dims(x, -1);
}

static ed_tensor *sum_row(ed_tensor *x)
{
    return ed_reduce_sum(x, .axis = ED_AXES(-1));
}

#define DENSE                                                                                      \
    {"labels", ED_SET_FLOAT, 'T', .saved = true},                                                  \
    {                                                                                              \
        "logits", ED_SET_FLOAT, 'T', .saved = true                                                 \
    }
#define SPARSE                                                                                     \
    {"labels", ED_SET_INDEX, 'I', .saved = true},                                                  \
    {                                                                                              \
        "logits", ED_SET_FLOAT, 'T', .saved = true                                                 \
    }
#define ENTROPY(symbol, text, samples_, ...)                                                       \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .infer = symbol##_infer,                                                      \
                     .batch = ed_batch_axes,                                                       \
                     .kernel = symbol##_kernel,                                                    \
                     .gradient = symbol##_gradient,                                                \
                     .reference = plain_##symbol,                                                  \
                     .samples = samples_,                                                          \
                     __VA_ARGS__}

/* softmax_cross_entropy: y = -sum z log_softmax x, dz = -dy log_softmax x,
 * dx = dy (softmax x sum z - z) */
static bool softmax_cross_entropy_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *z = g->inputs[0], *x = g->inputs[1], *dy = g->dy[0];
    if (g->needs[0]) g->dx[0] = ed_keep(ed_mul(a_row(ed_neg(dy)), ed_log_softmax(x)));
    if (g->needs[1]) g->dx[1] = ed_keep(CALL_OP(softmax_cross_entropy_gradient, NULL, z, x, dy));
    return true;
}

ENTROPY(softmax_cross_entropy, "-sum of labels times log_softmax of logits",
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                   {.inputs = {ED_SAMPLE_IN(0, 1, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 3)}},
                   {.inputs = {ED_SAMPLE_IN(0, 1, 5), ED_SAMPLE_IN(-2, 2, 5)}}),
        .operands = {DENSE});

ed_tensor *ed_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits)
{
    return CALL_OP(softmax_cross_entropy, NULL, labels, logits);
}

/*
 * For dx = dy (p Z - z), p = softmax x, Z = sum z, and u flowing back, with q = sum u p of each
 * row: to dy sum u (p Z - z), to z dy (q - u), to x dy Z p (u - q).
 */
static bool softmax_cross_entropy_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *z = g->inputs[0], *dy = g->inputs[2], *u = g->dy[0], *p = ed_softmax(g->inputs[1]);
    ed_tensor *total = softmax_sum_along(z, -1), *q = softmax_sum_along(ed_mul(u, p), -1);
    if (g->needs[0]) g->dx[0] = ed_keep(ed_mul(a_row(dy), ed_sub(q, u)));
    if (g->needs[1]) g->dx[1] = ed_keep(ed_mul(ed_mul(a_row(dy), total), ed_mul(p, ed_sub(u, q))));
    if (g->needs[2]) g->dx[2] = ed_keep(sum_row(ed_mul(u, ed_sub(ed_mul(p, total), z))));
    return true;
}

ENTROPY(softmax_cross_entropy_gradient,
        "dlogits = dy (softmax of logits times sum of labels - labels)",
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4),
                               ED_SAMPLE_IN(-2, 2, 3)}},
                   {.inputs = {ED_SAMPLE_IN(0, 1, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 3),
                               ED_SAMPLE_IN(-2, 2, 2, 2)}}),
        .operands = {DENSE, {"dy", ED_SET_FLOAT, 'T', .saved = true}}, .flags = ED_OP_INTERNAL);

/* sparse_softmax_cross_entropy: y = -log_softmax x at the label, dx = dy (softmax x - one_hot
 * label) */
static bool sparse_softmax_cross_entropy_gradient(const ed_gradient_call *g)
{
    if (g->needs[1])
        g->dx[1] = CALL_OP(sparse_softmax_cross_entropy_gradient, NULL, g->inputs[0], g->inputs[1],
                           g->dy[0]);
    return true;
}

ENTROPY(sparse_softmax_cross_entropy, "-log_softmax of logits at the label",
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 3, 3), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                   {.inputs = {ED_SAMPLE_IN(0, 2, 2, 2), ED_SAMPLE_IN(-2, 2, 2, 2, 3)}},
                   {.inputs = {ED_SAMPLE_IN(0, 4), ED_SAMPLE_IN(-2, 2, 5)}}),
        .operands = {SPARSE});

ed_tensor *ed_sparse_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits)
{
    return CALL_OP(sparse_softmax_cross_entropy, NULL, labels, logits);
}

/* For dx = dy (p - h), h = one_hot label, and u flowing back: to dy sum u (p - h), to x dy p (u -
 * sum u p). */
static bool sparse_softmax_cross_entropy_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *dy = g->inputs[2], *u = g->dy[0], *p = ed_softmax(g->inputs[1]);
    const int64_t n = g->shapes[1].values[g->shapes[1].count - 1];
    if (g->needs[1]) {
        ed_tensor *q = softmax_sum_along(ed_mul(u, p), -1);
        g->dx[1] = ed_keep(ed_mul(a_row(dy), ed_mul(p, ed_sub(u, q))));
    }
    if (g->needs[2]) {
        ed_tensor *h = ed_one_hot(g->inputs[0], n, .dtype = g->dtypes[1]);
        g->dx[2] = ed_keep(sum_row(ed_mul(u, ed_sub(p, h))));
    }
    return true;
}

ENTROPY(sparse_softmax_cross_entropy_gradient,
        "dlogits = dy (softmax of logits - one_hot of labels)",
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 3, 3), ED_SAMPLE_IN(-2, 2, 3, 4),
                               ED_SAMPLE_IN(-2, 2, 3)}},
                   {.inputs = {ED_SAMPLE_IN(0, 2, 2, 2), ED_SAMPLE_IN(-2, 2, 2, 2, 3),
                               ED_SAMPLE_IN(-2, 2, 2, 2)}}),
        .operands = {SPARSE, {"dy", ED_SET_FLOAT, 'T', .saved = true}}, .flags = ED_OP_INTERNAL);

#endif

/* ---- Sigmoid cross-entropy: elementwise ------------------------------------------------------ */

/* sigmoid_cross_entropy: y = max(x, 0) - x z + log(1 + e^-|x|) for a = z, b = x; dz = -dy x, dx =
 * dy (sigmoid x - z) */
VECTOR_LOOPS2(sigmoid_cross_entropy, (vmax(b, vset(b, 0)) - b * a) + vsoftplus(-vabs(b)));

LOOPS(sigmoid_cross_entropy_gradient, [ED_FLOAT32] = sigmoid_cross_entropy_gradient_f32,
      [ED_FLOAT64] = sigmoid_cross_entropy_gradient_f64);

#ifndef ISA
PLAIN(sigmoid_cross_entropy, fmax(x[1], 0) - x[1] * x[0] + log1p(exp(-fabs(x[1]))));
PLAIN(sigmoid_cross_entropy_gradient, (1 / (1 + exp(-x[1])) - x[0]) * x[2]);

static bool sigmoid_cross_entropy_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *z = g->inputs[0], *x = g->inputs[1], *dy = g->dy[0];
    if (g->needs[0]) g->dx[0] = ed_keep(ops_sum_to(ed_neg(ed_mul(dy, x)), g->shapes[0]));
    if (g->needs[1])
        g->dx[1] = ed_keep(
            ops_sum_to(CALL_OP(sigmoid_cross_entropy_gradient, NULL, z, x, dy), g->shapes[1]));
    return true;
}

ELEMENTWISE(sigmoid_cross_entropy, "max(x, 0) - x z + log(1 + e^-|x|) for labels z and logits x",
            .operands = {DENSE}, .gradient = sigmoid_cross_entropy_gradient,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-3, 3, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1, 4), ED_SAMPLE_IN(-3, 3, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1), ED_SAMPLE_IN(-3, 3)}}));

ed_tensor *ed_sigmoid_cross_entropy(ed_tensor *labels, ed_tensor *logits)
{
    return CALL_OP(sigmoid_cross_entropy, NULL, labels, logits);
}

/* For dx = dy (s - z), s = sigmoid x, and u flowing back: to z -u dy, to x u dy s (1 - s), to dy u
 * (s - z). */
static bool sigmoid_cross_entropy_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *z = g->inputs[0], *x = g->inputs[1], *dy = g->inputs[2], *u = g->dy[0],
              *s = ed_sigmoid(x);
    if (g->needs[0]) g->dx[0] = ed_keep(ops_sum_to(ed_neg(ed_mul(u, dy)), g->shapes[0]));
    if (g->needs[1])
        g->dx[1] =
            ed_keep(ops_sum_to(ed_mul(ed_mul(u, dy), ed_mul(s, ed_sub(1, s))), g->shapes[1]));
    if (g->needs[2]) g->dx[2] = ed_keep(ops_sum_to(ed_mul(u, ed_sub(s, z)), g->shapes[2]));
    return true;
}

ELEMENTWISE(sigmoid_cross_entropy_gradient, "dlogits = dy (sigmoid of logits - labels)",
            .operands = {DENSE, {"dy", ED_SET_FLOAT, 'T', .saved = true}}, .flags = ED_OP_INTERNAL,
            .gradient = sigmoid_cross_entropy_gradient_gradient,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-3, 3, 3, 4),
                                              ED_SAMPLE_IN(-2, 2, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1), ED_SAMPLE_IN(-3, 3, 3),
                                              ED_SAMPLE_IN(-2, 2, 3)}}));
#endif
