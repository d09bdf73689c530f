/*
 * Batch normalization. Forward: the statistics of each channel in one pass (the variance of
 * ops/reduce.h), then one that normalizes. Backward, an op of its own: one pass for the two sums
 * that every channel needs, one that writes dx. Sums are added by 64 rows, those by pieces of 512
 * rows, and the pieces pairwise: the same for any number of threads.
 */
#include "ops/reduce.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

enum {
    NORM_PIECE = 512,    /* rows whose sums are added pairwise */
    NORM_GRAIN = 64,     /* rows that are summed at once, or that a thread takes at a time */
    NORM_COLUMNS = 1024, /* bytes of a row that are worked on side by side */
};

typedef struct norm_loops {
    /* y = (x - mean) scale + shift for rows of n channels. */
    void (*rows)(const void *x, const void *mean, const void *scale, const void *shift, void *y,
                 int64_t rows, int64_t n);
    /* sums = of dy, products = of dy (x - mean), for `width` of n channels. */
    void (*sums)(const void *x, const void *dy, const void *mean, int64_t rows, int64_t n,
                 int64_t width, void *sums, void *products);
    /* dx = scale (dy - a - (x - mean) b). */
    void (*gradient_rows)(const void *x, const void *dy, const void *mean, const void *scale,
                          const void *a, const void *b, void *dx, int64_t rows, int64_t n);
    /* scale = gamma / sqrt(variance + epsilon) of n channels; gamma NULL: 1. */
    void (*scale)(const void *variance, const void *gamma, double epsilon, void *scale, int64_t n);
    /* Adds n numbers to others. */
    void (*add)(void *to, const void *from, int64_t n);
    /*
     * From n sums of dy and, after them, n of dy (x - mean), and r, the scale without gamma: dbeta
     * = sum dy, dgamma = r sum dy (x - mean). Where the sums were, what dx needs: their shares a =
     * sum dy / rows and b = r^2 sum dy (x - mean) / rows; in r's, r gamma.
     */
    void (*shares)(void *sums, void *r, const void *gamma, int64_t rows, int64_t n, void *dgamma,
                   void *dbeta);
} norm_loops;

#ifdef ISA

#include "tensor/typed.h"

#define TYPE f32
#include "ops/norm.typed.h"
#define TYPE f64
#include "ops/norm.typed.h"

#define NORM_ROW(type)                                                                             \
    {                                                                                              \
        norm_rows_##type, norm_sums_##type, norm_gradient_rows_##type, norm_scale_##type,          \
            norm_add_##type, norm_shares_##type                                                    \
    }
const norm_loops ISA_NAME(norm_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = NORM_ROW(f32), [ED_FLOAT64] = NORM_ROW(f64)};

#else

ISA_DECLARE_TABLE(norm_loops, norm_table, []);

static const norm_loops *loops_for(ed_dtype dtype)
{
    static const norm_loops *const tables[ISA_COUNT] = ISA_TABLE(norm_table);
    return &tables[isa_level][dtype];
}

#define NORM_ATTRS(FIELD, T) FIELD(T, FLOAT, epsilon, 1e-3, ED_ANY, "added to the variance")
ED_OPTIONS(norm_attrs, NORM_ATTRS);

/* Operands from the first named on have shape [channels] of x. */
static bool check_channels(const ed_call *call, int first, int last)
{
    const ed_tensor *x = call->inputs[0];
    const double epsilon = ((const norm_attrs *)call->attrs)->epsilon;
    if (x->rank < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must be [..., channels], got %s",
                            text_of_tensor(x).s);
    if (!(epsilon >= 0))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "epsilon must be >= 0, got %g", epsilon);
    for (int i = first; i <= last; i++) {
        const ed_tensor *t = call->inputs[i];
        if (t->rank != 1 || t->shape[0] != x->shape[x->rank - 1])
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "%s is %s, x is %s; expected shape [%lld]",
                                call->op->operands[i].name, text_of_tensor(t).s,
                                text_of_tensor(x).s, (long long)x->shape[x->rank - 1]);
    }
    return true;
}

static bool infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    return check_channels(call, 1, 2) && ed_call_output(call, 0, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 1, x->dtype, 1, x->shape + x->rank - 1) &&
           ed_call_output(call, 2, x->dtype, 1, x->shape + x->rank - 1);
}

static int64_t rows_of(const ed_tensor *x, int64_t *n)
{
    *n = x->shape[x->rank - 1];
    return *n ? x->size / *n : 0;
}

/* What a pass over the rows needs to know; `a` and `b` are a row's further operands. */
typedef struct passes {
    const norm_loops *loops;
    int64_t rows, n, chunks, wide;
    size_t row, element;
    const char *x, *dy, *mean, *scale, *a, *b;
    char *to;
} passes;

/* Rows that a thread takes at a time: all if more threads don't pay. */
static int64_t norm_grain(const ed_tensor *x, int64_t rows)
{
    return x->size > OPS_PARALLEL_WORK ? NORM_GRAIN : rows;
}

static void forward_rows(int64_t first, int64_t last, int worker, void *user)
{
    const passes *p = user;
    const size_t at = (size_t)first * p->row;
    (void)worker;
    p->loops->rows(p->x + at, p->mean, p->scale, p->a, p->to + at, last - first, p->n);
}

static void backward_rows(int64_t first, int64_t last, int worker, void *user)
{
    const passes *p = user;
    const size_t at = (size_t)first * p->row;
    (void)worker;
    p->loops->gradient_rows(p->x + at, p->dy + at, p->mean, p->scale, p->a, p->b, p->to + at,
                            last - first, p->n);
}

/* Pieces of NORM_PIECE rows by `wide` channels: the sums of each, and the products after them. */
static void sum_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const passes *p = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / p->chunks * NORM_PIECE, column = i % p->chunks * p->wide;
        const size_t skip = (size_t)column * p->element, at = (size_t)row * p->row + skip;
        char *to = p->to + (size_t)(i / p->chunks) * 2 * p->row + skip;
        p->loops->sums(p->x + at, p->dy + at, p->mean + skip,
                       p->rows - row < NORM_PIECE ? p->rows - row : NORM_PIECE, p->n,
                       p->n - column < p->wide ? p->n - column : p->wide, to, to + p->row);
    }
}

static bool kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *beta = call->inputs[2], *mean = call->outputs[1],
                    *variance = call->outputs[2];
    const norm_loops *loops = loops_for(x->dtype);
    const size_t element = dtype_size(x->dtype);
    int64_t n, rows = rows_of(x, &n);
    char *y = call->outputs[0]->data;
    if (!reduce_run(REDUCE_VARIANCE, x, (1u << (x->rank - 1)) - 1, variance->data, mean->data))
        return false;
    if (x->size == 0) return true;
    char *scale = memory_alloc((size_t)n * element);
    if (!scale) return false;
    loops->scale(variance->data, call->inputs[1]->data, ((const norm_attrs *)call->attrs)->epsilon,
                 scale, n);
    passes p = {.loops = loops,
                .rows = rows,
                .n = n,
                .row = (size_t)n * element,
                .x = x->data,
                .mean = mean->data,
                .scale = scale,
                .a = beta->data,
                .to = y};
    threads_run(rows, norm_grain(x, rows), forward_rows, &p);
    memory_free(scale);
    return true;
}

static bool plain_batch_norm(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const double epsilon = ((const norm_attrs *)call->attrs)->epsilon;
    const double *gamma = (const double *)call->inputs[1]->data,
                 *beta = (const double *)call->inputs[2]->data;
    int64_t n, rows = rows_of(x, &n);
    for (int64_t c = 0; c < n; c++) {
        const double *from = (const double *)x->data + c;
        double *y = (double *)call->outputs[0]->data + c, mean = 0, variance = 0;
        for (int64_t r = 0; r < rows; r++) mean += from[r * n];
        mean /= (double)rows;
        for (int64_t r = 0; r < rows; r++) variance += (from[r * n] - mean) * (from[r * n] - mean);
        variance /= (double)rows;
        for (int64_t r = 0; r < rows; r++)
            y[r * n] = (from[r * n] - mean) * (gamma[c] / sqrt(variance + epsilon)) + beta[c];
        ((double *)call->outputs[1]->data)[c] = mean;
        ((double *)call->outputs[2]->data)[c] = variance;
    }
    return true;
}

/* ---- The gradient ---------------------------------------------------------------------------- */

static bool back_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[4];
    if (!check_channels(call, 1, 3)) return false;
    if (dy->rank != x->rank || memcmp(dy->shape, x->shape, (size_t)x->rank * sizeof *x->shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dy is %s, x is %s; they must have the same shape",
                            text_of_tensor(dy).s, text_of_tensor(x).s);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 1, x->dtype, 1, x->shape + x->rank - 1) &&
           ed_call_output(call, 2, x->dtype, 1, x->shape + x->rank - 1);
}

/* The sums of dy into the first n numbers of `partial`, those of dy (x - mean) into the next n; it
 * has room for every piece's. */
static void sum_all(const passes *all, const ed_tensor *x, int64_t pieces, char *partial)
{
    passes p = *all;
    p.wide = NORM_COLUMNS / (int64_t)p.element;
    p.chunks = (p.n + p.wide - 1) / p.wide;
    p.to = partial;
    const int64_t items = pieces * p.chunks;
    threads_run(items, x->size > OPS_PARALLEL_WORK ? 1 : items, sum_pieces, &p);
    for (int64_t step = 1; step < pieces; step *= 2)
        for (int64_t i = 0; i + step < pieces; i += 2 * step)
            p.loops->add(partial + (size_t)i * 2 * p.row, partial + (size_t)(i + step) * 2 * p.row,
                         2 * p.n);
}

static bool back_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *mean = call->inputs[2], *dy = call->inputs[4];
    const size_t element = dtype_size(x->dtype);
    int64_t n, rows = rows_of(x, &n), pieces = (rows + NORM_PIECE - 1) / NORM_PIECE;
    if (x->size == 0) {
        memset(call->outputs[1]->data, 0, (size_t)n * element);
        memset(call->outputs[2]->data, 0, (size_t)n * element);
        return true;
    }
    char *partial = memory_alloc((size_t)(2 * pieces + 1) * (size_t)n * element);
    if (!partial) return false;
    char *scale = partial + 2 * (size_t)(pieces * n) * element;
    const passes p = {.loops = loops_for(x->dtype),
                      .rows = rows,
                      .n = n,
                      .row = (size_t)n * element,
                      .element = element,
                      .x = x->data,
                      .dy = dy->data,
                      .mean = mean->data,
                      .scale = scale,
                      .a = partial,
                      .b = partial + (size_t)n * element,
                      .to = call->outputs[0]->data};
    sum_all(&p, x, pieces, partial);
    p.loops->scale(call->inputs[3]->data, NULL, ((const norm_attrs *)call->attrs)->epsilon, scale,
                   n);
    p.loops->shares(partial, scale, call->inputs[1]->data, rows, n, call->outputs[1]->data,
                    call->outputs[2]->data);
    threads_run(rows, norm_grain(x, rows), backward_rows, (void *)&p);
    memory_free(partial);
    return true;
}

static bool plain_batch_norm_gradient(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const double epsilon = ((const norm_attrs *)call->attrs)->epsilon;
    int64_t n, rows = rows_of(x, &n);
    for (int64_t c = 0; c < n; c++) {
        const double *from = (const double *)x->data + c,
                     *dy = (const double *)call->inputs[4]->data + c;
        const double gamma = ((const double *)call->inputs[1]->data)[c],
                     mean = ((const double *)call->inputs[2]->data)[c];
        const double r = 1 / sqrt(((const double *)call->inputs[3]->data)[c] + epsilon);
        double *dx = (double *)call->outputs[0]->data + c, sum = 0, product = 0;
        for (int64_t i = 0; i < rows; i++) {
            sum += dy[i * n];
            product += dy[i * n] * (from[i * n] - mean);
        }
        const double a = sum / (double)rows, b = product / (double)rows * r * r;
        for (int64_t i = 0; i < rows; i++)
            dx[i * n] = r * gamma * (dy[i * n] - a - (from[i * n] - mean) * b);
        ((double *)call->outputs[1]->data)[c] = product * r;
        ((double *)call->outputs[2]->data)[c] = sum;
    }
    return true;
}

/* Over all axes of x [..., channels] but the last: how many elements; sum; mean. */
static double count_of(const ed_gradient_call *g)
{
    double n = 1;
    for (int d = 0; d + 1 < g->shapes[0].count; d++) n *= (double)g->shapes[0].values[d];
    return n;
}

static const int64_t first_axes[ED_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};

static ed_tensor *sum(ed_tensor *x)
{
    return ed_reduce_sum(x, .axis = {first_axes, ed_rank(x) - 1});
}

static ed_tensor *mean(ed_tensor *x)
{
    return ed_reduce_mean(x, .axis = {first_axes, ed_rank(x) - 1});
}

/*
 * batch_norm_gradient: with r = 1 / sqrt(variance + epsilon), x' = (x - mean) r and means over all
 * axes but the last, dx = gamma r (dy - mean dy - x' mean(dy x')), dgamma = sum dy x', dbeta = sum
 * dy. What flows back for u, v, w flowing into the three: they come together as L = n gamma r s + n
 * v d + w sum dy,   s = cov - a d, cov = mean(u dy) - mean u mean dy, a = mean(u x'), d = mean(dy
 * x'), whose derivative to x' is h = v dy - gamma r (u d + dy a).
 */
static bool back_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *x = g->inputs[0], *gamma = g->inputs[1], *variance = g->inputs[3],
              *dy = g->inputs[4];
    ed_tensor *u = g->dy[0] ? g->dy[0] : ed_zeros_like(x),
              *v = g->dy[1] ? g->dy[1] : ed_zeros_like(gamma);
    const double n = count_of(g);
    ed_tensor *r = ed_rsqrt(ed_add(variance, ((const norm_attrs *)g->attrs)->epsilon));
    ed_tensor *centred = ed_sub(x, g->inputs[2]), *normal = ed_mul(centred, r),
              *scale = ed_mul(gamma, r);
    ed_tensor *a = mean(ed_mul(u, normal)), *d = mean(ed_mul(dy, normal));
    if (g->needs[4]) {
        ed_tensor *through = ed_mul(scale, ed_sub(ed_sub(u, mean(u)), ed_mul(normal, a)));
        through = ed_add(through, ed_mul(normal, v));
        g->dx[4] = ed_keep(g->dy[2] ? ed_add(through, g->dy[2]) : through);
    }
    ed_tensor *cov = ed_sub(mean(ed_mul(u, dy)), ed_mul(mean(u), mean(dy)));
    ed_tensor *s = ed_mul(ed_sub(cov, ed_mul(a, d)), n);
    ed_tensor *h = ed_sub(ed_mul(v, dy), ed_mul(scale, ed_add(ed_mul(u, d), ed_mul(dy, a))));
    if (g->needs[0]) g->dx[0] = ed_keep(ed_mul(h, r));
    if (g->needs[1]) g->dx[1] = ed_keep(ed_mul(r, s));
    if (g->needs[2]) g->dx[2] = ed_keep(ed_neg(ed_mul(r, sum(h))));
    if (g->needs[3]) {
        ed_tensor *to_r = ed_add(ed_mul(gamma, s), sum(ed_mul(h, centred)));
        g->dx[3] = ed_keep(ed_mul(ed_mul(to_r, -0.5), ed_mul(r, ed_square(r))));
    }
    return true;
}

#define CHANNELS(name, ...)                                                                        \
    {                                                                                              \
        name, ED_SET_FLOAT, 'T', __VA_ARGS__                                                       \
    }
#define SAVED(name) CHANNELS(name, .saved = true)
#define EPSILON     ED_OP_ATTRS(NORM_ATTRS, norm_attrs)
#define SOME(e)     .attrs = ED_ATTRS(NORM_ATTRS, norm_attrs, .epsilon = e)

ED_OP(batch_norm_gradient) = {
    .name = "batch_norm_gradient",
    .doc = "dx, dgamma, dbeta of batch_norm from x, gamma, mean, variance, dy",
    .operands = {SAVED("x"), SAVED("gamma"), SAVED("mean"), SAVED("variance"), SAVED("dy")},
    .results = ED_RESULTS({.name = "dx"}, {.name = "dgamma"}, {.name = "dbeta"}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    EPSILON,
    .infer = back_infer,
    .kernel = back_kernel,
    .gradient = back_gradient,
    .reference = plain_batch_norm_gradient,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-1, 1, 3),
                    ED_SAMPLE_IN(0.5, 2, 3), ED_SAMPLE_IN(-2, 2, 5, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-1, 1, 3),
                    ED_SAMPLE_IN(0.5, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 2, 3)},
         SOME(0.1)})};

/* What flows into the statistics: dx = dmean / n, and dvariance 2 (x - mean) / n. */
static ed_tensor *through_statistics(const ed_gradient_call *g, ed_tensor *dx)
{
    const double n = count_of(g);
    if (g->dy[1]) {
        ed_tensor *more = ed_broadcast_to(ed_div(g->dy[1], n), g->shapes[0]);
        dx = dx ? ed_add(dx, more) : more;
    }
    if (g->dy[2]) {
        ed_tensor *more = ed_mul(ed_sub(g->inputs[0], g->outputs[1]), ed_mul(g->dy[2], 2 / n));
        dx = dx ? ed_add(dx, more) : more;
    }
    return dx;
}

/* batch_norm: y = (x - mean) / sqrt(variance + epsilon) gamma + beta */
static bool batch_norm_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *d[3] = {NULL, NULL, NULL};
    if (g->dy[0]) {
        ed_tensor *const inputs[] = {g->inputs[0], g->inputs[1], g->outputs[1], g->outputs[2],
                                     g->dy[0]};
        if (!ed_execute(&ed_op_batch_norm_gradient, inputs, 5, g->attrs, d)) return false;
    }
    if (g->needs[0]) d[0] = through_statistics(g, d[0]);
    for (int i = 0; i < 3; i++)
        if (g->needs[i]) g->dx[i] = ed_keep(d[i]);
    return true;
}

ED_OP(batch_norm) = {
    .name = "batch_norm",
    .doc = "y = (x - mean) / sqrt(variance + epsilon) gamma + beta; and the mean and variance of "
           "all axes but the last",
    .operands = {SAVED("x"), SAVED("gamma"), CHANNELS("beta")},
    .results = ED_RESULTS({.name = "y"}, {.name = "mean", .saved = true},
                          {.name = "variance", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    EPSILON,
    .infer = infer,
    .kernel = kernel,
    .gradient = batch_norm_gradient,
    .reference = plain_batch_norm,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 3),
                                      ED_SAMPLE_IN(-2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3),
                                      ED_SAMPLE_IN(-2, 2, 3)},
                           SOME(0.1)})};

ed_tensor *ed_batch_norm(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta, double epsilon,
                         ed_tensor **mean_out, ed_tensor **variance_out)
{
    ed_tensor *outputs[3];
    bool ok = ed_execute(&ed_op_batch_norm, (ed_tensor *const[]){x, gamma, beta}, 3,
                         ED_ATTRS(NORM_ATTRS, norm_attrs, .epsilon = epsilon), outputs);
    if (mean_out) *mean_out = ok ? outputs[1] : NULL;
    if (variance_out) *variance_out = ok ? outputs[2] : NULL;
    return ok ? outputs[0] : NULL;
}

#endif
