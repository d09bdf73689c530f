/*
 * Cumulative sums, products, maxima, minima and logsumexp along an axis.
 *
 * A row is the elements along the axis. Rows of adjoining elements are gone through one by one, a
 * sum four vectors at a time; where the axis is not the last, a strip of columns goes through the
 * rows side by side, four rows at a time. Sums and products of float32 are kept in float64 and
 * rounded once an element; what is large goes past the caches. `exclusive` is the same with the
 * results one place further.
 */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/recurrence.h"
#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

enum { STRIP = 8192 }; /* columns that are worked on side by side, at most */

typedef enum cumulation {
    CUM_SUM,
    CUM_PROD,
    CUM_MAX,
    CUM_MIN,
    CUM_LOGSUMEXP,
    CUMULATIONS
} cumulation;

/* y[i] of x[0..i] for `width` columns of n elements, `apart` from each other; apart < 0: backwards.
 * width 1: a row. room: for a double a column. */
#define CUMULATIVE_ARGUMENTS                                                                       \
    const void *x, void *y, int64_t n, int64_t apart, int64_t width, void *room, bool stream
typedef void (*cumulative_loop)(CUMULATIVE_ARGUMENTS);

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/vector.h"

VECTOR_INLINE void cumulative_stream(void *to, const void *line)
{
    for (int at = 0; at < COPY_LINE; at += VECTOR_BYTES) {
        vf32 v;
        memcpy(&v, (const char *)line + at, sizeof v);
        vstream_f32((float *)to + at / 4, v);
    }
}

#define TYPE f32
#define SUM  f64
#include "ops/cumulative.typed.h"
#define TYPE f64
#define SUM  f64
#include "ops/cumulative.typed.h"
#define TYPE i32
#define SUM  i32
#include "ops/cumulative.typed.h"
#define TYPE i64
#define SUM  i64
#include "ops/cumulative.typed.h"
#define TYPE u8
#define SUM  u8
#include "ops/cumulative.typed.h"

#define CUMULATIVE_LOOPS(type)                                                                     \
    [CUM_SUM] = cumsum_##type, [CUM_PROD] = cumprod_##type, [CUM_MAX] = cummax_##type,             \
    [CUM_MIN] = cummin_##type

const cumulative_loop ISA_NAME(cumulative_table)[ED_DTYPE_COUNT][CUMULATIONS] = {
    [ED_FLOAT32] = {CUMULATIVE_LOOPS(f32), [CUM_LOGSUMEXP] = cumlogsumexp_f32},
    [ED_FLOAT64] = {CUMULATIVE_LOOPS(f64), [CUM_LOGSUMEXP] = cumlogsumexp_f64},
    [ED_INT32] = {CUMULATIVE_LOOPS(i32)},
    [ED_INT64] = {CUMULATIVE_LOOPS(i64)},
    [ED_UINT8] = {CUMULATIVE_LOOPS(u8)},
};

#else
/* ======== Ops ================================================================================= */

typedef const cumulative_loop cumulative_loops[CUMULATIONS];
ISA_DECLARE_TABLE(cumulative_loop, cumulative_table, [ED_DTYPE_COUNT][CUMULATIONS]);

/* The ops' attributes: those of cummax and cummin are the first two. */
static const ed_cumulative_options *options_of(const void *attrs)
{
    return attrs;
}

static int cumulative_axis(const ed_call *call)
{
    return *(const int *)call->plan;
}

static bool cumulative_infer(ed_call *call)
{
    int *axis = ed_call_plan(call, sizeof *axis);
    const int64_t given = options_of(call->attrs)->axis;
    return ops_axis(call, given, call->inputs[0]->rank, axis) && ops_infer_like(call);
}

/* A call as the threads share it. */
typedef struct cumulative_job {
    cumulative_loop loop;
    const char *x;
    char *y;
    int64_t n, inner, element;
    int64_t strip; /* columns of one */
    double *room;  /* for each worker a strip */
    bool exclusive, reverse, stream;
    double first; /* what an exclusive one begins with */
    ed_dtype dtype;
} cumulative_job;

/* `width` columns of one strip, beginning at element `at`. */
static void cumulative_strip(const cumulative_job *j, int64_t at, int64_t width, int worker)
{
    const int64_t step = j->reverse ? -j->inner : j->inner, n = j->n - j->exclusive;
    const int64_t begin = at + (j->reverse ? (j->n - 1) * j->inner : 0);
    const char *x = j->x + begin * j->element;
    char *y = j->y + begin * j->element;
    if (j->exclusive) {
        for (int64_t c = 0; c < width; c++) dtype_store(j->dtype, y, c, j->first);
        y += step * j->element;
    }
    if (n > 0) j->loop(x, y, n, step, width, j->room + worker * j->strip, j->stream);
    if (j->stream) copy_stream_end();
}

static void cumulative_range(int64_t first, int64_t last, int worker, void *user)
{
    const cumulative_job *j = user;
    const int64_t strips = (j->inner + j->strip - 1) / j->strip;
    for (int64_t i = first; i < last; i++) {
        const int64_t column = i % strips * j->strip, left = j->inner - column;
        cumulative_strip(j, i / strips * j->n * j->inner + column,
                         left < j->strip ? left : j->strip, worker);
    }
}

/* Whether the result goes past the caches: it is large, and what a loop writes are whole lines. */
static bool goes_far(const cumulative_job *j, int64_t size)
{
    const bool row = j->inner == 1;
    const int64_t whole = (row ? j->n : j->inner) | (row ? 0 : j->strip);
    return size * j->element >= COPY_FAR_BYTES && (uintptr_t)j->y % COPY_LINE == 0 &&
           whole * j->element % COPY_LINE == 0 && !(row && j->exclusive);
}

/* How many columns a strip has: one strip alone is cut for the threads. */
static int64_t strip_of(int64_t size, int64_t outer, int64_t inner, int threads)
{
    const int64_t strip = inner < STRIP ? inner : STRIP;
    const bool alone = outer == 1 && inner >= 128 && inner <= STRIP && threads > 1;
    return alone && size > OPS_PARALLEL_WORK ? (inner / 2 + 15) / 16 * 16 : strip;
}

static bool cumulative_kernel(ed_call *call)
{
    static const cumulative_loops *const tables[ISA_COUNT] = ISA_TABLE(cumulative_table);
    static const double firsts[CUMULATIONS] = {[CUM_PROD] = 1, [CUM_LOGSUMEXP] = -INFINITY};
    const cumulation how = *(const cumulation *)call->op->extra;
    const bool full = how != CUM_MAX && how != CUM_MIN; /* has an option `exclusive` */
    const ed_tensor *x = call->inputs[0];
    const int axis = cumulative_axis(call);
    if (x->size == 0) return true;
    cumulative_job j = {.loop = tables[isa_level][x->dtype][how],
                        .x = x->data,
                        .y = call->outputs[0]->data,
                        .n = x->shape[axis],
                        .inner = 1,
                        .element = (int64_t)dtype_size(x->dtype),
                        .reverse = options_of(call->attrs)->reverse,
                        .exclusive = full && options_of(call->attrs)->exclusive,
                        .first = firsts[how],
                        .dtype = x->dtype};
    for (int d = axis + 1; d < x->rank; d++) j.inner *= x->shape[d];
    const int64_t outer = x->size / j.n / j.inner;
    const int workers = threads_count();
    j.strip = strip_of(x->size, outer, j.inner, workers);
    j.stream = goes_far(&j, x->size);
    j.room = memory_alloc((size_t)(workers * j.strip) * sizeof *j.room);
    if (!j.room) return false;
    const int64_t strips = outer * ((j.inner + j.strip - 1) / j.strip);
    const int64_t each = OPS_PARALLEL_WORK / (j.n * j.strip) / 2 + 1;
    threads_run_among(workers, strips, x->size < OPS_PARALLEL_WORK ? strips : each,
                      cumulative_range, &j);
    memory_free(j.room);
    return true;
}

/* ---- References ------------------------------------------------------------------------------ */

/* From k numbers, each of its own loop: nothing is carried from one element to the next. */
static double cumulated(cumulation how, const double *x, int64_t apart, int64_t k)
{
    double y = how == CUM_PROD  ? 1
               : how == CUM_SUM ? 0
               : how == CUM_MIN ? INFINITY
                                : -INFINITY,
           sum = 0;
    for (int64_t i = 0; i < k; i++) {
        const double v = x[i * apart];
        if (how == CUM_SUM) y += v;
        if (how == CUM_PROD) y *= v;
        if (how == CUM_MIN) y = v < y || v != v ? v : y;
        if (how == CUM_MAX || how == CUM_LOGSUMEXP) y = v > y || v != v ? v : y;
    }
    if (how != CUM_LOGSUMEXP || !isfinite(y)) return y;
    for (int64_t i = 0; i < k; i++) sum += exp(x[i * apart] - y);
    return y + log(sum);
}

static bool cumulative_reference(const ed_call *call)
{
    const cumulation how = *(const cumulation *)call->op->extra;
    const ed_tensor *x = call->inputs[0];
    const ed_cumulative_options *o = options_of(call->attrs);
    const int64_t n = x->rank ? x->shape[cumulative_axis(call)] : 0;
    const bool exclusive = how != CUM_MAX && how != CUM_MIN && o->exclusive;
    int64_t inner = 1;
    for (int d = cumulative_axis(call) + 1; d < x->rank; d++) inner *= x->shape[d];
    for (int64_t i = 0; i < x->size; i++) {
        const int64_t at = i / inner % n, row = i / inner / n * n * inner + i % inner;
        const double *from = (const double *)x->data + row + (o->reverse ? (n - 1) * inner : 0);
        ((double *)call->outputs[0]->data)[i] = cumulated(
            how, from, o->reverse ? -inner : inner, (o->reverse ? n - 1 - at : at) + !exclusive);
    }
    return true;
}

#define CUM_ATTRS(...) .attrs = ED_ATTRS(ED_CUMULATIVE_OPTIONS, ed_cumulative_options, __VA_ARGS__)
#define SAMPLES_CUM                                                                                \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},                                                   \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, CUM_ATTRS(.axis = -1, .exclusive = true)},         \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2)}, CUM_ATTRS(.axis = 1, .reverse = true)},         \
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5)}, CUM_ATTRS(.exclusive = true, .reverse = true)})

/* A definition with the options of TensorFlow's, and its public function. */
#define CUMULATIVE(symbol, how, text, set, ...)                                                    \
    static const cumulation symbol##_how = how;                                                    \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     ONE(set),                                                                     \
                     .flags = ED_OP_CONTIGUOUS,                                                    \
                     ED_OP_ATTRS(ED_CUMULATIVE_OPTIONS, ed_cumulative_options),                    \
                     .infer = cumulative_infer,                                                    \
                     .batch = ed_batch_axes,                                                       \
                     .kernel = cumulative_kernel,                                                  \
                     .gradient = symbol##_gradient,                                                \
                     .reference = cumulative_reference,                                            \
                     .extra = &symbol##_how,                                                       \
                     __VA_ARGS__};                                                                 \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_cumulative_options *options)              \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

/* ---- cumsum ---------------------------------------------------------------------------------- */

/* cumsum: y = sum of x[..i], dx = the same of dy from the other end */
static bool cumsum_gradient(const ed_gradient_call *g)
{
    ed_cumulative_options o = *options_of(g->attrs);
    o.reverse = !o.reverse;
    g->dx[0] = ed_cumsum_with(g->dy[0], &o);
    return true;
}

CUMULATIVE(cumsum, CUM_SUM, "y = the sum of all up to each element along the axis", ED_SET_NUMBER,
           .samples = SAMPLES_CUM)

/* ---- cumprod --------------------------------------------------------------------------------- */

/*
 * cumprod: y = product of x[..i]. dx[i] = (product of what is before i) s[i], where s[i] = dy[i] +
 * x[i+1] s[i+1]; exclusive: dy[i+1] + x[i+1] s[i+1]. Nothing is divided, so zeros do no harm.
 */
static bool cumprod_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_cumulative_options o = *options_of(g->attrs);
    ed_tensor *x = g->inputs[0], *dy = g->dy[0];
    ed_tensor *next = recurrence_neighbour(x, o.axis, o.reverse, 0);
    if (o.exclusive) dy = recurrence_neighbour(dy, o.axis, o.reverse, 0);
    ed_tensor *behind = recurrence(next, dy, o.axis, !o.reverse);
    o.exclusive = true;
    g->dx[0] = ed_keep(ed_mul(ed_cumprod_with(x, &o), behind));
    return true;
}

CUMULATIVE(cumprod, CUM_PROD, "y = the product of all up to each element along the axis",
           ED_SET_NUMBER, SAVES_X, .samples = SAMPLES_CUM)

/* ---- cumulative_logsumexp -------------------------------------------------------------------- */

/*
 * cumulative_logsumexp: y = ln of the sum of e^x[..i]. With the inclusive y, dx[i] = e^(x[i] -
 * y[i]) s[i], s[i] = dy[i] + e^(y[i] - y[i+1]) s[i+1], whose powers are at most 1; exclusive: of
 * dy[i+1].
 */
static bool cumulative_logsumexp_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_cumulative_options o = *options_of(g->attrs);
    ed_tensor *x = g->inputs[0], *dy = g->dy[0], *y = g->outputs[0];
    if (!o.exclusive) {
        ed_tensor *next = recurrence_neighbour(y, o.axis, o.reverse, INFINITY);
        ed_tensor *step = ed_where(ed_equal(y, next), 0, ed_sub(y, next));
        ed_tensor *behind = recurrence(ed_exp(step), dy, o.axis, !o.reverse);
        ed_tensor *share = ed_where(ed_equal(x, y), 0, ed_sub(x, y));
        g->dx[0] = ed_keep(ed_mul(ed_exp(share), behind));
        return true;
    }
    /* Of what comes after i: y[i+1] is the first that x[i] is in. */
    ed_tensor *next = recurrence_neighbour(y, o.axis, o.reverse, INFINITY),
              *second = recurrence_neighbour(next, o.axis, o.reverse, INFINITY);
    ed_tensor *step = ed_where(ed_equal(next, second), 0, ed_sub(next, second));
    ed_tensor *behind = recurrence(ed_exp(step), recurrence_neighbour(dy, o.axis, o.reverse, 0),
                                   o.axis, !o.reverse);
    ed_tensor *share = ed_where(ed_equal(x, next), 0, ed_sub(x, next));
    g->dx[0] = ed_keep(ed_mul(ed_exp(share), behind));
    return true;
}

CUMULATIVE(cumulative_logsumexp, CUM_LOGSUMEXP,
           "y = ln of the sum of e^x of all up to each element along the axis", ED_SET_FLOAT,
           SAVES_X, SAVES_Y, .samples = SAMPLES_CUM)

/* ---- cummax, cummin -------------------------------------------------------------------------- */

/*
 * cummax_source: the index, in row-major order, of the element that cummax or cummin takes at each
 * place: the first of equals, and of NaN. Their gradients go there.
 */
#define SOURCE_ATTRS(FIELD, T)                                                                     \
    ED_CUMMAX_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, BOOL, smallest, false, ED_ANY, "of cummin")
ED_OPTIONS(source_attrs, SOURCE_ATTRS);

static bool source_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    return cumulative_infer(call) && ed_call_output(call, 0, ED_INT64, x->rank, x->shape);
}

/* Writes index by index; to: int64 or, for the reference, float64. */
static bool source_run(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const source_attrs *o = call->attrs;
    int64_t inner = 1;
    for (int d = cumulative_axis(call) + 1; d < x->rank; d++) inner *= x->shape[d];
    for (int64_t i = 0; x->size && i < x->size / x->shape[cumulative_axis(call)]; i++) {
        const int64_t n = x->shape[cumulative_axis(call)], step = o->reverse ? -inner : inner;
        int64_t at = i / inner * n * inner + i % inner + (o->reverse ? (n - 1) * inner : 0);
        int64_t best = at;
        double value = dtype_load(x->dtype, x->data, at);
        for (int64_t k = 0; k < n; k++, at += step) {
            const double v = dtype_load(x->dtype, x->data, at);
            if (value == value && (v != v || (o->smallest ? v < value : v > value))) {
                best = at;
                value = v;
            }
            dtype_store(y->dtype, y->data, at, (double)best);
        }
    }
    return true;
}

static bool source_kernel(ed_call *call)
{
    return source_run(call);
}

ED_OP(cummax_source) = {
    .name = "cummax_source",
    .doc = "the index of the element that cummax or cummin takes",
    ONE(ED_SET_FLOAT),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(SOURCE_ATTRS, source_attrs),
    .infer = source_infer,
    .kernel = source_kernel,
    .no_gradient = "an index does not change gradually",
    .reference = source_run,
    .samples = ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)},
                           .attrs = ED_ATTRS(SOURCE_ATTRS, source_attrs, .axis = 1, .reverse = true,
                                             .smallest = true)}),
};

static bool extreme_gradient(const ed_gradient_call *g, bool smallest)
{
    ED_SCOPE;
    const ed_cummax_options *o = g->attrs;
    ed_tensor *x = g->inputs[0];
    int64_t size = 1;
    for (int64_t d = 0; d < g->shapes[0].count; d++) size *= g->shapes[0].values[d];
    ed_tensor *source =
        CALL_OP(cummax_source,
                ED_OPTIONS_FROM(ED_CUMMAX_OPTIONS, o, source_attrs, .smallest = smallest), x);
    ed_tensor *sums = ed_unsorted_segment_sum(ed_flatten(g->dy[0]), ed_flatten(source), size);
    g->dx[0] = ed_keep(ed_reshape(sums, g->shapes[0]));
    return true;
}

static bool cummax_gradient(const ed_gradient_call *g)
{
    return extreme_gradient(g, false);
}

static bool cummin_gradient(const ed_gradient_call *g)
{
    return extreme_gradient(g, true);
}

#define EXTREME_ATTRS(...) .attrs = ED_ATTRS(ED_CUMMAX_OPTIONS, ed_cummax_options, __VA_ARGS__)
#define CUMULATIVE_EXTREME(symbol, how, text)                                                      \
    static const cumulation symbol##_how = how;                                                    \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     ONE(ED_SET_NUMBER),                                                           \
                     .flags = ED_OP_CONTIGUOUS,                                                    \
                     ED_OP_ATTRS(ED_CUMMAX_OPTIONS, ed_cummax_options),                            \
                     .infer = cumulative_infer,                                                    \
                     .batch = ed_batch_axes,                                                       \
                     .kernel = cumulative_kernel,                                                  \
                     .gradient = symbol##_gradient,                                                \
                     .reference = cumulative_reference,                                            \
                     .extra = &symbol##_how,                                                       \
                     SAVES_X,                                                                      \
                     .samples = ED_SAMPLES(                                                        \
                         {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)}},                                \
                         {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 3, 2)}, EXTREME_ATTRS(.axis = -2)},  \
                         {.inputs = {ED_DISTINCT_IN(-2, 2, 5)}, EXTREME_ATTRS(.reverse = true)})}; \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_cummax_options *options)                  \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

CUMULATIVE_EXTREME(cummax, CUM_MAX, "y = the maximum of all up to each element along the axis")
CUMULATIVE_EXTREME(cummin, CUM_MIN, "y = the minimum of all up to each element along the axis")
#endif
