/*
 * Softmax and cross-entropies. A row (the elements along the axis) is read from memory once: its
 * largest element, the exponentials, their sum and the scaling are passes over a row that the cache
 * holds. Cross-entropies take logits, so that nothing overflows and no probability is stored; the
 * way back makes the exponentials anew and writes nothing but its result.
 */
#include "ops/elementwise.h"
#include "ops/loops.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

enum {
    PIECE = 16384,
    COLUMNS = 1024
}; /* elements in a thread's turn; bytes of a row of columns that are worked on side by side */

typedef struct softmax_loops {
    /* y = softmax or log_softmax of rows of n adjoining elements. */
    void (*rows)(const void *x, void *y, int64_t rows, int64_t n, bool logarithm);
    /* The same for `width` columns of n elements, `apart` from each other. */
    void (*columns)(const void *x, void *y, int64_t n, int64_t apart, int64_t width,
                    bool logarithm);
    /* dx of rows from y and dy. */
    void (*back)(const void *y, const void *dy, void *dx, int64_t rows, int64_t n, bool logarithm);
    /* Cross-entropy of rows of labels and logits, and dlogits for dy[0], dy[step], ... */
    void (*entropy)(const void *labels, const void *x, void *loss, int64_t rows, int64_t n);
    void (*entropy_back)(const void *labels, const void *x, const void *dy, int64_t step, void *dx,
                         int64_t rows, int64_t n);
    /* The same with labels that name the class: int64 (wide) or int32. */
    void (*sparse)(const void *labels, bool wide, const void *x, void *loss, int64_t rows,
                   int64_t n);
    void (*sparse_back)(const void *labels, bool wide, const void *x, const void *dy, int64_t step,
                        void *dx, int64_t rows, int64_t n);
} softmax_loops;

static inline int64_t label_at(const void *labels, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)labels)[i] : ((const int32_t *)labels)[i];
}

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/lanes.h"

/* Vectors of a row of n elements: i is the first one's place, left how many there are from there
 * on. */
#define EACH_VECTOR(n, vectors)                                                                    \
    for (int64_t i = 0, left = n; left > 0; i += vectors, left -= vectors)

#define SOFTMAX_LOOPS(bits, number, vector, vectors, log_of)                                       \
    /* y = e^(x - m); their sum, a block at a time. */                                             \
    VECTOR_INLINE number exp_row_##bits(const number *x, number *y, int64_t n, number m)           \
    {                                                                                              \
        enum { N = LANES_ALL / vectors, BLOCK = 1024 };                                            \
        number total = 0;                                                                          \
        for (int64_t block = 0; block < n; block += BLOCK) {                                       \
            const int64_t end = n - block < BLOCK ? n : block + BLOCK;                             \
            vector acc[N];                                                                         \
            for (int v = 0; v < N; v++) acc[v] = (vector){0};                                      \
            for (int64_t i = block; i < end; i += LANES_ALL)                                       \
                for (int v = 0; v < N; v++) {                                                      \
                    const int64_t at = i + v * vectors, left = end - at;                           \
                    if (left <= 0) break;                                                          \
                    const vector e =                                                               \
                        lanes_load_##bits(LANES_SUM, LANES_EXP, x + at, left, vset_##bits(m));     \
                    lanes_put_##bits(y + at, e, left);                                             \
                    acc[v] += e;                                                                   \
                }                                                                                  \
            total += lanes_across_##bits(LANES_SUM, acc);                                          \
        }                                                                                          \
        return total;                                                                              \
    }                                                                                              \
    static void rows_##bits(const void *x, void *y, int64_t rows, int64_t n, bool logarithm)       \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const number *from = (const number *)x + r * n;                                        \
            number *to = (number *)y + r * n;                                                      \
            const number m = lanes_row_##bits(LANES_MAX, LANES_ITSELF, from, n, 0);                \
            if (logarithm) {                                                                       \
                const number l = log_of(lanes_row_##bits(LANES_SUM, LANES_EXP, from, n, m));       \
                EACH_VECTOR(n, vectors)                                                            \
                lanes_put_##bits(to + i, lanes_some_##bits(from + i, left, 0) - m - l, left);      \
            } else {                                                                               \
                const number k = 1 / exp_row_##bits(from, to, n, m);                               \
                EACH_VECTOR(n, vectors)                                                            \
                lanes_put_##bits(to + i, lanes_some_##bits(to + i, left, 0) * k, left);            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Sums of columns: by 64 rows, then those. */                                                 \
    static void columns_##bits(const void *x, void *y, int64_t n, int64_t apart, int64_t width,    \
                               bool logarithm)                                                     \
    {                                                                                              \
        number m[COLUMNS / sizeof(number)] __attribute__((aligned(64)));                           \
        number sum[COLUMNS / sizeof(number)] __attribute__((aligned(64)));                         \
        number part[COLUMNS / sizeof(number)] __attribute__((aligned(64)));                        \
        const number *from = x;                                                                    \
        number *to = y;                                                                            \
        EACH_VECTOR(width, vectors) vstore_##bits(m + i, vset_##bits((number)-INFINITY));          \
        for (int64_t r = 0; r < n; r++) EACH_VECTOR(width, vectors)                                \
        vstore_##bits(m + i, vmax_##bits(vload_##bits(m + i),                                      \
                                         lanes_some_##bits(from + r * apart + i, left, 0)));       \
        memset(sum, 0, sizeof sum);                                                                \
        for (int64_t first = 0; first < n; first += 64) {                                          \
            memset(part, 0, sizeof part);                                                          \
            for (int64_t r = first; r < n && r < first + 64; r++) EACH_VECTOR(width, vectors)      \
                {                                                                                  \
                    const vector d = lanes_some_##bits(from + r * apart + i, left, 0) -            \
                                     vload_##bits(m + i),                                          \
                                 e = vexp_##bits(d);                                               \
                    lanes_put_##bits(to + r * apart + i, logarithm ? d : e, left);                 \
                    vstore_##bits(part + i, vload_##bits(part + i) + e);                           \
                }                                                                                  \
            EACH_VECTOR(width, vectors)                                                            \
            vstore_##bits(sum + i, vload_##bits(sum + i) + vload_##bits(part + i));                \
        }                                                                                          \
        for (int64_t c = 0; c < width; c++) sum[c] = logarithm ? log_of(sum[c]) : 1 / sum[c];      \
        for (int64_t r = 0; r < n; r++) EACH_VECTOR(width, vectors)                                \
            {                                                                                      \
                const vector v = lanes_some_##bits(to + r * apart + i, left, 0),                   \
                             s = vload_##bits(sum + i);                                            \
                lanes_put_##bits(to + r * apart + i, logarithm ? v - s : v * s, left);             \
            }                                                                                      \
    }                                                                                              \
    /* The sum of x y; partial vectors are filled up with zeros. */                                \
    VECTOR_INLINE number dot_##bits(const number *x, const number *y, int64_t n)                   \
    {                                                                                              \
        enum { N = LANES_ALL / vectors > 4 ? LANES_ALL / vectors : 4 };                            \
        vector acc[N];                                                                             \
        for (int v = 0; v < N; v++) acc[v] = (vector){0};                                          \
        for (int64_t i = 0; i < n; i += N * vectors)                                               \
            for (int v = 0; v < N; v++) {                                                          \
                const int64_t at = i + v * vectors, left = n - at;                                 \
                if (left <= 0) break;                                                              \
                acc[v] += lanes_some_##bits(x + at, left, 0) * lanes_some_##bits(y + at, left, 0); \
            }                                                                                      \
        for (int v = LANES_ALL / vectors; v < N; v++) acc[v % (LANES_ALL / vectors)] += acc[v];    \
        return lanes_across_##bits(LANES_SUM, acc);                                                \
    }                                                                                              \
    static void back_##bits(const void *y, const void *dy, void *dx, int64_t rows, int64_t n,      \
                            bool logarithm)                                                        \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const number *a = (const number *)y + r * n, *b = (const number *)dy + r * n;          \
            number *to = (number *)dx + r * n;                                                     \
            if (logarithm) {                                                                       \
                const number sum = lanes_row_##bits(LANES_SUM, LANES_ITSELF, b, n, 0);             \
                EACH_VECTOR(n, vectors)                                                            \
                lanes_put_##bits(to + i,                                                           \
                                 lanes_some_##bits(b + i, left, 0) -                               \
                                     vexp_##bits(lanes_some_##bits(a + i, left, 0)) * sum,         \
                                 left);                                                            \
            } else {                                                                               \
                const number sum = dot_##bits(a, b, n);                                            \
                EACH_VECTOR(n, vectors)                                                            \
                lanes_put_##bits(to + i,                                                           \
                                 lanes_some_##bits(a + i, left, 0) *                               \
                                     (lanes_some_##bits(b + i, left, 0) - sum),                    \
                                 left);                                                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void entropy_##bits(const void *labels, const void *x, void *loss, int64_t rows,        \
                               int64_t n)                                                          \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const number *z = (const number *)labels + r * n, *from = (const number *)x + r * n;   \
            const number m = lanes_row_##bits(LANES_MAX, LANES_ITSELF, from, n, 0);                \
            const number l = log_of(lanes_row_##bits(LANES_SUM, LANES_EXP, from, n, m));           \
            vector acc[LANES_ALL / vectors];                                                       \
            for (int v = 0; v < LANES_ALL / vectors; v++) acc[v] = (vector){0};                    \
            EACH_VECTOR(n, vectors)                                                                \
            { /* a label of 0 counts nothing, even where the probability is 0 */                   \
                const vector w = lanes_some_##bits(z + i, left, 0),                                \
                             d = l - (lanes_some_##bits(from + i, left, 0) - m);                   \
                acc[i / vectors % (LANES_ALL / vectors)] +=                                        \
                    vselect_##bits(w == 0, (vector){0}, w * d);                                    \
            }                                                                                      \
            ((number *)loss)[r] = lanes_across_##bits(LANES_SUM, acc);                             \
        }                                                                                          \
    }                                                                                              \
    static void entropy_back_##bits(const void *labels, const void *x, const void *dy,             \
                                    int64_t step, void *dx, int64_t rows, int64_t n)               \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const number *z = (const number *)labels + r * n, *from = (const number *)x + r * n;   \
            const number g = ((const number *)dy)[r * step];                                       \
            number *to = (number *)dx + r * n;                                                     \
            const number m = lanes_row_##bits(LANES_MAX, LANES_ITSELF, from, n, 0);                \
            const number total = lanes_row_##bits(LANES_SUM, LANES_ITSELF, z, n, 0);               \
            const number k = 1 / exp_row_##bits(from, to, n, m);                                   \
            EACH_VECTOR(n, vectors)                                                                \
            lanes_put_##bits(to + i,                                                               \
                             (lanes_some_##bits(to + i, left, 0) * k * total -                     \
                              lanes_some_##bits(z + i, left, 0)) *                                 \
                                 g,                                                                \
                             left);                                                                \
        }                                                                                          \
    }                                                                                              \
    static void sparse_##bits(const void *labels, bool wide, const void *x, void *loss,            \
                              int64_t rows, int64_t n)                                             \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const number *from = (const number *)x + r * n;                                        \
            const number m = lanes_row_##bits(LANES_MAX, LANES_ITSELF, from, n, 0);                \
            const number l = log_of(lanes_row_##bits(LANES_SUM, LANES_EXP, from, n, m));           \
            ((number *)loss)[r] = l - (from[label_at(labels, wide, r)] - m);                       \
        }                                                                                          \
    }                                                                                              \
    static void sparse_back_##bits(const void *labels, bool wide, const void *x, const void *dy,   \
                                   int64_t step, void *dx, int64_t rows, int64_t n)                \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const number *from = (const number *)x + r * n;                                        \
            const number g = ((const number *)dy)[r * step];                                       \
            number *to = (number *)dx + r * n;                                                     \
            const number m = lanes_row_##bits(LANES_MAX, LANES_ITSELF, from, n, 0);                \
            const number k = 1 / exp_row_##bits(from, to, n, m);                                   \
            const int64_t label = label_at(labels, wide, r);                                       \
            const number there = (to[label] * k - 1) * g;                                          \
            EACH_VECTOR(n, vectors)                                                                \
            lanes_put_##bits(to + i, lanes_some_##bits(to + i, left, 0) * k * g, left);            \
            to[label] = there;                                                                     \
        }                                                                                          \
    }
SOFTMAX_LOOPS(f32, float, vf32, VECTOR_F32, logf)
SOFTMAX_LOOPS(f64, double, vf64, VECTOR_F64, log)

#define SOFTMAX_ROW(bits)                                                                          \
    {                                                                                              \
        rows_##bits, columns_##bits, back_##bits, entropy_##bits, entropy_back_##bits,             \
            sparse_##bits, sparse_back_##bits                                                      \
    }
const softmax_loops ISA_NAME(softmax_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = SOFTMAX_ROW(f32), [ED_FLOAT64] = SOFTMAX_ROW(f64)};

#else
/* ======== Ops ================================================================================= */

#if defined(__x86_64__)
extern const softmax_loops softmax_table_avx2[], softmax_table_avx512[];
#endif
extern const softmax_loops softmax_table_baseline[];

static const softmax_loops *loops_for(ed_dtype dtype)
{
    static const softmax_loops *const tables[ISA_COUNT] = ISA_TABLE(softmax_table);
    return &tables[isa_level][dtype];
}

/* The ways back, which are defined behind what they belong to. */
extern const ed_op ed_op_softmax_gradient, ed_op_log_softmax_gradient,
    ed_op_softmax_cross_entropy_gradient, ed_op_sparse_softmax_cross_entropy_gradient,
    ed_op_sigmoid_cross_entropy_gradient;

/* Rows of n elements that a thread takes at a time: all of them if more threads don't pay. */
static int64_t turn(int64_t rows, int64_t n)
{
    return rows * n <= OPS_PARALLEL_WORK ? rows : n < PIECE ? PIECE / n : 1;
}

/* ---- Softmax --------------------------------------------------------------------------------- */

static const ed_attr attributes[] = {
    ATTR(ed_softmax_options, axis, ED_ATTR_INT, "of the sum; default -1"), {0}};
static const ed_softmax_options last_axis = {-1};

static bool softmax_infer(ed_call *call)
{
    int axis;
    if (!ops_axis(call, ((const ed_softmax_options *)call->attrs)->axis, call->inputs[0]->rank,
                  &axis))
        return false;
    call->scratch[0] = axis;
    return ops_infer_like(call);
}

/* Extents before, of, and behind an axis. */
static void extents(const ed_tensor *x, int axis, int64_t *outer, int64_t *n, int64_t *inner)
{
    *outer = *inner = 1;
    for (int d = 0; d < axis; d++) *outer *= x->shape[d];
    *n = x->shape[axis];
    for (int d = axis + 1; d < x->rank; d++) *inner *= x->shape[d];
}

/* A softmax, or the way back from one, on its way through the threads. */
typedef struct softmax_job {
    const softmax_loops *loops;
    const char *x, *dy;
    char *y;
    int64_t n, inner, width; /* width: columns of a chunk, where the axis is not the last */
    size_t element;
    bool logarithm;
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
    extents(x, (int)call->scratch[0], &outer, &j.n, &j.inner);
    if (j.inner == 1) {
        threads_run(outer, turn(outer, j.n), softmax_rows, &j);
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
    j->loops->back(j->x + at, j->dy + at, j->y + at, last - first, j->n, j->logarithm);
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
    threads_run(y->size / j.n, turn(y->size / j.n, j.n), softmax_back_rows, &j);
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
                            "y is %s, dy %s; one shape of at least one dimension is expected",
                            text_of_tensor(y).s, text_of_tensor(dy).s);
    return ops_infer_like(call);
}

/* Softmax or its logarithm of n numbers, `apart` from each other. */
static void plain_softmax_of(const double *x, double *y, int64_t n, int64_t apart, bool logarithm)
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
        plain_softmax_of((const double *)x->data + at, (double *)call->outputs[0]->data + at, n,
                         inner, logarithm);
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

/* Whether the call's axis is the last, which has the fused ways back. */
static bool is_last(const ed_gradient_call *g)
{
    const int rank = (int)g->shapes[0].count;
    return tensor_axis(((const ed_softmax_options *)g->attrs)->axis, rank) == rank - 1;
}

static ed_tensor *sum_along(ed_tensor *x, int64_t axis)
{
    return ed_reduce_sum(x, .axis = ED_AXES(axis), .keepdims = true);
}

#define ALONG(a)                                                                                   \
    .attrs = &(const ed_softmax_options)                                                           \
    {                                                                                              \
        a                                                                                          \
    }
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
#define AXIS .attrs = attributes, .attrs_size = sizeof(ed_softmax_options), .defaults = &last_axis
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
                                  : ed_mul(y, ed_sub(dy, sum_along(ed_mul(dy, y), axis))));
    return true;
}

ED_OP(softmax) = {.name = "softmax",
                  .doc = "y = e^x / sum of e^x along the axis",
                  .operands = X,
                  .flags = ED_OP_CONTIGUOUS,
                  AXIS,
                  .infer = softmax_infer,
                  .kernel = softmax_kernel,
                  .gradient = softmax_gradient,
                  .saves = ED_SAVES_OUTPUT(0),
                  .reference = plain_softmax,
                  .samples = SAMPLES_X};

ed_tensor *ed_softmax_with(ed_tensor *x, const ed_softmax_options *options)
{
    return CALL_OP(softmax, options, x);
}

/* For dx = y (dy - sum dy y) and u flowing back: to dy the same of u, to y u (dy - sum dy y) - dy
 * sum u y. */
static bool softmax_gradient_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = g->inputs[0], *dy = g->inputs[1], *u = g->dy[0];
    if (g->needs[1]) g->dx[1] = ed_keep(CALL_OP(softmax_gradient, NULL, y, u));
    if (g->needs[0])
        g->dx[0] = ed_keep(ed_sub(ed_mul(u, ed_sub(dy, sum_along(ed_mul(dy, y), -1))),
                                  ed_mul(dy, sum_along(ed_mul(u, y), -1))));
    return true;
}

ED_OP(softmax_gradient) = {
    .name = "softmax_gradient",
    .doc = "dx = y (dy - sum of dy y) along the last axis",
    .operands = Y_AND_DY,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = back_infer,
    .kernel = softmax_gradient_kernel,
    .gradient = softmax_gradient_gradient,
    .saves = ED_SAVES_ALL_INPUTS,
    .reference = plain_softmax_gradient,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}})};

/* log_softmax: y = x - ln sum e^x, dx = dy - e^y sum dy */
static bool log_softmax_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = g->outputs[0], *dy = g->dy[0];
    const int64_t axis = ((const ed_softmax_options *)g->attrs)->axis;
    g->dx[0] = ed_keep(is_last(g) ? CALL_OP(log_softmax_gradient, NULL, y, dy)
                                  : ed_sub(dy, ed_mul(ed_exp(y), sum_along(dy, axis))));
    return true;
}

ED_OP(log_softmax) = {.name = "log_softmax",
                      .doc = "y = x - ln of the sum of e^x along the axis",
                      .operands = X,
                      .flags = ED_OP_CONTIGUOUS,
                      AXIS,
                      .infer = softmax_infer,
                      .kernel = log_softmax_kernel,
                      .gradient = log_softmax_gradient,
                      .saves = ED_SAVES_OUTPUT(0),
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
    if (g->needs[1]) g->dx[1] = ed_keep(ed_sub(u, sum_along(part, -1)));
    if (g->needs[0]) g->dx[0] = ed_keep(ed_neg(ed_mul(part, sum_along(g->inputs[1], -1))));
    return true;
}

ED_OP(log_softmax_gradient) = {
    .name = "log_softmax_gradient",
    .doc = "dx = dy - e^y sum of dy along the last axis",
    .operands = Y_AND_DY,
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = back_infer,
    .kernel = log_softmax_gradient_kernel,
    .gradient = log_softmax_gradient_gradient,
    .saves = ED_SAVES_ALL_INPUTS,
    .reference = plain_log_softmax_gradient,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 0, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}})};

/* ---- Cross-entropy --------------------------------------------------------------------------- */

/*
 * Labels at inputs[0], logits at inputs[1] and, for the ways back, dy at inputs[2]: dense labels
 * have the logits' shape, sparse ones and dy that without the last axis.
 */
static bool check_entropy(ed_call *call, bool sparse)
{
    const ed_tensor *labels = call->inputs[0], *x = call->inputs[1];
    const int rank = x->rank - sparse;
    if (x->rank < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "logits are %s; [..., classes] is expected",
                            text_of_tensor(x).s);
    if (labels->rank != rank ||
        memcmp(labels->shape, x->shape, (size_t)rank * sizeof *x->shape) != 0)
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT, "labels are %s, logits %s; labels of shape %s are expected",
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
                            "dy is %s, logits %s; dy of shape %s is expected", text_of_tensor(dy).s,
                            text_of_tensor(x).s, text_of_ints(x->shape, x->rank - 1).s);
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape);
}

/* Operands as the loops want them; dy, often one number for all rows, keeps its stride. */
typedef struct entropy {
    const softmax_loops *loops;
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

/* Where element i of a tensor is, in the words of an index. */
static text place(const ed_tensor *t, int64_t i)
{
    int64_t at[ED_MAX_RANK];
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = i % t->shape[d];
        i /= t->shape[d];
    }
    return text_of_ints(at, t->rank);
}

static bool check_labels(const ed_call *call, const ed_tensor *labels, int64_t n)
{
    for (int64_t i = 0; i < labels->size; i++) {
        const int64_t label = label_at(labels->data, labels->dtype == ED_INT64, i);
        if (label < 0 || label >= n)
            return ed_call_fail(
                call, ED_OUT_OF_RANGE, "label %lld at %s is outside the %lld classes, 0 to %lld",
                (long long)label, place(labels, i).s, (long long)n, (long long)(n - 1));
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
    if (ok && e.rows) threads_run(e.rows, turn(e.rows, e.n), rows, &e);
    close_entropy(&e);
    return ok;
}

static void entropy_rows(int64_t first, int64_t last, int worker, void *user)
{
    const entropy *e = user;
    const size_t at = (size_t)(first * e->n) * e->element;
    (void)worker;
    e->loops->entropy(e->labels->data + at, e->x->data + at, e->y + (size_t)first * e->element,
                      last - first, e->n);
}

static void entropy_back_rows(int64_t first, int64_t last, int worker, void *user)
{
    const entropy *e = user;
    const size_t at = (size_t)(first * e->n) * e->element;
    (void)worker;
    e->loops->entropy_back(e->labels->data + at, e->x->data + at,
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
    return run_entropy(call, false, entropy_rows);
}

static bool softmax_cross_entropy_gradient_infer(ed_call *call)
{
    return infer_entropy_back(call, false);
}

static bool softmax_cross_entropy_gradient_kernel(ed_call *call)
{
    return run_entropy(call, false, entropy_back_rows);
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

/* References: a row's log-probabilities are worked out in place of the loss' or dlogits' loops. */
static bool plain_entropy(const ed_call *call, bool sparse, bool back)
{
    const ed_tensor *x = call->inputs[1], *y = call->outputs[0];
    const int64_t n = x->shape[x->rank - 1], rows = back ? (n ? y->size / n : 0) : y->size;
    double *log_p = memory_alloc(2 * (size_t)(n + 1) * sizeof *log_p), *z = log_p + n + 1;
    for (int64_t r = 0; log_p && r < rows; r++) {
        const double *labels = (const double *)call->inputs[0]->data + (sparse ? r : r * n);
        double loss = 0;
        plain_softmax_of((const double *)x->data + r * n, log_p, n, 1, true);
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
    {"labels", ED_SET_FLOAT, 'T'},                                                                 \
    {                                                                                              \
        "logits", ED_SET_FLOAT, 'T'                                                                \
    }
#define SPARSE                                                                                     \
    {"labels", ED_SET_INDEX, 'I'},                                                                 \
    {                                                                                              \
        "logits", ED_SET_FLOAT, 'T'                                                                \
    }
#define ENTROPY(symbol, text, samples_, ...)                                                       \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .infer = symbol##_infer,                                                      \
                     .kernel = symbol##_kernel,                                                    \
                     .gradient = symbol##_gradient,                                                \
                     .saves = ED_SAVES_ALL_INPUTS,                                                 \
                     .reference = plain_##symbol,                                                  \
                     .samples = samples_,                                                          \
                     __VA_ARGS__}

/* softmax_cross_entropy: y = -sum z log_softmax x, dz = -dy log_softmax x, dx = dy (softmax x sum z
 * - z) */
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
    ed_tensor *total = sum_along(z, -1), *q = sum_along(ed_mul(u, p), -1);
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
        .operands = {DENSE, {"dy", ED_SET_FLOAT, 'T'}}, .flags = ED_OP_INTERNAL);

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
        ed_tensor *q = sum_along(ed_mul(u, p), -1);
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
        .operands = {SPARSE, {"dy", ED_SET_FLOAT, 'T'}}, .flags = ED_OP_INTERNAL);

#endif

/* ---- Sigmoid cross-entropy: elementwise
 * -------------------------------------------------------------------------------------- */

/* sigmoid_cross_entropy: y = max(x, 0) - x z + log(1 + e^-|x|) for a = z, b = x; dz = -dy x, dx =
 * dy (sigmoid x - z) */
VECTOR_LOOPS2(sigmoid_cross_entropy, (vmax(b, vset(b, 0)) - b * a) + vsoftplus(-vabs(b)));

#ifdef ISA
#define LOOP3(name, type, vector)                                                                  \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        enum { WIDE = sizeof(vector) / sizeof(type) };                                             \
        const type *from[3];                                                                       \
        vector same[3];                                                                            \
        for (int k = 0; k < 3; k++) { /* one element that stands for all is read from a vector */  \
            same[k] = vset((vector){0}, *(const type *)in[k]);                                     \
            from[k] = steps[k] ? in[k] : (const type *)&same[k];                                   \
        }                                                                                          \
        type *to = out;                                                                            \
        for (int64_t left = n; left > 0; left -= WIDE, to += WIDE) {                               \
            vector v[3];                                                                           \
            for (int k = 0; k < 3; k++, from[k - 1] += steps[k - 1] * WIDE)                        \
                v[k] = left >= WIDE ? vload(from[k]) : vload_part(from[k], left);                  \
            const vector y = (vsigmoid(v[1]) - v[0]) * v[2];                                       \
            if (left >= WIDE)                                                                      \
                vstore(to, y);                                                                     \
            else                                                                                   \
                vstore_part(to, y, left);                                                          \
        }                                                                                          \
    }
LOOP3(sigmoid_cross_entropy_gradient, float, vf32)
LOOP3(sigmoid_cross_entropy_gradient, double, vf64)
#endif
LOOPS(sigmoid_cross_entropy_gradient, [ED_FLOAT32] = sigmoid_cross_entropy_gradient_float,
      [ED_FLOAT64] = sigmoid_cross_entropy_gradient_double);

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
            .saves = ED_SAVES_ALL_INPUTS,
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
            .operands = {DENSE, {"dy", ED_SET_FLOAT, 'T'}}, .flags = ED_OP_INTERNAL,
            .gradient = sigmoid_cross_entropy_gradient_gradient, .saves = ED_SAVES_ALL_INPUTS,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-3, 3, 3, 4),
                                              ED_SAMPLE_IN(-2, 2, 3, 4)}},
                                  {.inputs = {ED_SAMPLE_IN(0, 1), ED_SAMPLE_IN(-3, 3, 3),
                                              ED_SAMPLE_IN(-2, 2, 3)}}));
#endif
