#include "ops/index.h"
#include "ops/shape.h"
#include "ops/slices.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <string.h>

/*
 * Indexing by tensors: gather, its gradient, one_hot.
 *
 * All indices are checked before anything is touched. Sums at repeated indices are added in the
 * order of the indices, whatever the number of threads: threads share out the columns.
 */

#define INDICES                                                                                    \
    {                                                                                              \
        "indices", ED_SET_INDEX, 'I'                                                               \
    }

int64_t index_product(const int64_t *shape, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= shape[i];
    return n;
}

/* ---- gather ---------------------------------------------------------------------------------- */

/* How a gather lies: the axis, and how many leading axes x and the indices share. */
typedef struct gather_axes {
    int axis, batch;
} gather_axes;

static bool gather_axes_of(const ed_call *call, gather_axes *a)
{
    const ed_gather_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *indices = call->inputs[1];
    int64_t batch = o->batch_dims < 0 ? o->batch_dims + indices->rank : o->batch_dims;
    if (batch < 0 || batch > indices->rank || batch >= x->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "batch_dims is %lld; x %s with indices %s has room for at most %d",
                            (long long)o->batch_dims, text_of_tensor(x).s,
                            text_of_tensor(indices).s,
                            x->rank <= indices->rank ? x->rank - 1 : indices->rank);
    if (memcmp(x->shape, indices->shape, (size_t)batch * sizeof *x->shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the first %lld axes of x, %s, and indices, %s, differ",
                            (long long)batch, text_of_tensor(x).s, text_of_tensor(indices).s);
    if (!ops_axis(call, o->axis, x->rank, &a->axis)) return false;
    a->batch = (int)batch;
    if (a->axis == 0) a->axis = a->batch;
    return a->axis >= batch ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "axis %lld is one of the %lld batch dimensions of x, %s", text_nth(a->axis),
                        (long long)batch, text_of_tensor(x).s);
}

static bool gather_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *indices = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    gather_axes *a = ed_call_plan(call, sizeof *a);
    if (x->rank == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                            text_of_tensor(x).s);
    if (!gather_axes_of(call, a)) return false;
    const int more = indices->rank - a->batch, rank = x->rank + more - 1;
    if (rank > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x %s with indices %s gives rank %d; the maximum is %d",
                            text_of_tensor(x).s, text_of_tensor(indices).s, rank, ED_MAX_RANK);
    for (int i = 0; i < a->axis; i++) shape[i] = x->shape[i];
    for (int i = 0; i < more; i++) shape[a->axis + i] = indices->shape[a->batch + i];
    for (int i = a->axis + 1; i < x->rank; i++) shape[i + more - 1] = x->shape[i];
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

enum { FAR_SLICE = HARD(9, 1024) }; /* bytes: most lines of such a slice are its own */

/* One slice of `width` elements for each index: x is [before, extent, width], y [before, count,
 * width], the indices [before / shared, count]. */
typedef struct gathering {
    size_t element;
    const char *x;
    char *y;
    const int64_t *indices;
    int64_t before, shared, extent, count, width;
    bool stream; /* slices are long, and go past the caches */
} gathering;

#define GATHER_AS(type)                                                                            \
    {                                                                                              \
        const type *a = (const type *)from;                                                        \
        type *b = (type *)to;                                                                      \
        for (int64_t i = first; i < last; i++) b[i] = a[indices[i]];                               \
        break;                                                                                     \
    }

/* Indices first..last-1 in plane k. */
static void gather_piece(const gathering *g, int64_t k, int64_t first, int64_t last)
{
    const int64_t *indices = g->indices + k / g->shared * g->count;
    size_t bytes = g->element * (size_t)g->width;
    const char *from = g->x + k * g->extent * (int64_t)bytes;
    char *to = g->y + k * g->count * (int64_t)bytes;
    switch (bytes) {
    case 1: GATHER_AS(uint8_t)
    case 2: GATHER_AS(uint16_t)
    case 4: GATHER_AS(uint32_t)
    case 8: GATHER_AS(uint64_t)
    default:
        for (int64_t i = first; i < last; i++) {
            char *slice = to + i * (int64_t)bytes;
            const char *source = from + indices[i] * (int64_t)bytes;
            if (g->stream)
                copy_stream(slice, source, bytes);
            else
                memcpy(slice, source, bytes);
        }
    }
}

/* Indices first..last-1 of all planes, one plane after the other. */
static void gather_range(int64_t first, int64_t last, int worker, void *user)
{
    const gathering *g = user;
    (void)worker;
    while (first < last) {
        int64_t k = first / g->count, end = (k + 1) * g->count < last ? (k + 1) * g->count : last;
        gather_piece(g, k, first - k * g->count, end - k * g->count);
        first = end;
    }
    if (g->stream) copy_stream_end();
}

static void gather_all(gathering *g)
{
    const int64_t bytes = (int64_t)g->element * g->width;
    g->stream = bytes >= FAR_SLICE && g->before * g->count * bytes >= COPY_FAR_BYTES;
    threads_run(g->before * g->count, 1 + OPS_PARALLEL_WORK / g->width, gather_range, g);
}

void index_gather(ed_dtype dtype, const char *x, int64_t width, const int64_t *rows, int64_t count,
                  char *y)
{
    if (width && count)
        gather_all(&(gathering){.element = dtype_size(dtype),
                                .x = x,
                                .y = y,
                                .indices = rows,
                                .before = 1,
                                .shared = 1,
                                .count = count,
                                .width = width});
}

static bool gather_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int axis = ((const gather_axes *)call->plan)->axis,
              batch = ((const gather_axes *)call->plan)->batch;
    const int64_t *indices = index_read(call, call->inputs[1], x->shape[axis]);
    if (!indices) return false;
    gathering g = {.element = dtype_size(x->dtype),
                   .x = x->data,
                   .y = y->data,
                   .indices = indices,
                   .before = index_product(x->shape, 0, axis),
                   .shared = index_product(x->shape, batch, axis),
                   .extent = x->shape[axis],
                   .count = index_product(call->inputs[1]->shape, batch, call->inputs[1]->rank),
                   .width = index_product(x->shape, axis + 1, x->rank)};
    if (y->size) gather_all(&g);
    index_drop(call->inputs[1], indices);
    return true;
}

static bool gather_gradient(const ed_gradient_call *g)
{
    const ed_gather_options *o = g->attrs;
    const int64_t batch = o->batch_dims + (o->batch_dims < 0 ? g->shapes[1].count : 0);
    int64_t axis = tensor_axis(o->axis, (int)g->shapes[0].count);
    if (axis == 0) axis = batch;
    const int64_t size = g->shapes[0].values[axis];
    const bool few = g->inputs[1]->size < size / 2; /* slices that are mostly absent */
    g->dx[0] = axis == 0 && few && ED_SET_FLOAT & 1u << g->dtypes[0]
                   ? ops_slices_gathered(g->dy[0], g->inputs[1], g->shapes[0])
                   : index_sum(g->dy[0], g->inputs[1], axis, batch, size);
    return true;
}

static bool gather_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *indices = call->inputs[1];
    const gather_axes *a = call->plan;
    const int64_t before = index_product(x->shape, 0, a->axis),
                  width = index_product(x->shape, a->axis + 1, x->rank), extent = x->shape[a->axis];
    const int64_t batches = index_product(x->shape, 0, a->batch);
    const double *from = (const double *)x->data, *all = (const double *)indices->data;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t k = 0; k < before; k++) {
        const int64_t count = indices->size / batches, batch = k / (before / batches);
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < width; j++)
                *y++ = from[(k * extent + (int64_t)all[batch * count + i]) * width + j];
    }
    return true;
}

/* Indices that differ take from the one x; an x for each call is a further batch dimension, or an
 * axis that goes through unchanged. */
static ed_list *gather_batch(const ed_batch_call *call)
{
    const ed_gather_options *given = call->attrs;
    ed_tensor *x = call->batches[0] ?: call->inputs[0],
              *indices = call->batches[1] ?: call->inputs[1];
    const int64_t shared =
        given->batch_dims < 0 ? given->batch_dims + call->inputs[1]->rank : given->batch_dims;
    int64_t axis = given->axis < 0 ? given->axis + call->inputs[0]->rank : given->axis;
    if (axis < shared) axis = shared;
    if (call->batches[0] && call->batches[1])
        return ed_batch_result(ed_gather(x, indices, .axis = axis + 1, .batch_dims = shared + 1));
    if (call->batches[0] && !shared)
        return ed_batch_result(ed_gather(x, indices, .axis = axis + 1));
    if (call->batches[1] && !axis) return ed_batch_result(ed_gather(x, indices));
    return ed_batch_each(call);
}

ED_OP(gather) = {
    .name = "gather",
    .doc = "slices of x along an axis at the indices",
    .operands = {{"x", ED_SET_ALL, 'T'}, INDICES},
    .operands[1].saved = true,
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_GATHER_OPTIONS, ed_gather_options),
    .infer = gather_infer,
    .batch = gather_batch,
    .kernel = gather_kernel,
    .gradient = gather_gradient,
    .reference = gather_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(0, 3, 6)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 2), ED_SAMPLE_IN(0, 4, 2, 3)},
         .attrs = ED_ATTRS(ED_GATHER_OPTIONS, ed_gather_options, .axis = 1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5), ED_SAMPLE_IN(0, 4, 4)},
         .attrs = ED_ATTRS(ED_GATHER_OPTIONS, ed_gather_options, .axis = -1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 2), ED_SAMPLE_IN(0, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2, 5), ED_SAMPLE_IN(0, 4, 3, 4)},
         .attrs = ED_ATTRS(ED_GATHER_OPTIONS, ed_gather_options, .axis = 2, .batch_dims = 1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4, 2), ED_SAMPLE_IN(0, 3, 3)},
         .attrs = ED_ATTRS(ED_GATHER_OPTIONS, ed_gather_options, .batch_dims = -1)}),
};

ed_tensor *ed_gather_with(ed_tensor *x, ed_tensor *indices, const ed_gather_options *options)
{
    return CALL_OP(gather, options, x, indices);
}

/* ---- Sums at indices ------------------------------------------------------------------------- */

/* y [before, extent, width] is 0 at first; the slices of x [before, count, width] are added at
 * their indices [before / shared, count]. */
typedef struct adding {
    ed_dtype dtype;
    const char *x;
    char *y;
    const int64_t *indices;
    int64_t before, shared, extent, count, width;
} adding;

#define TYPE f32
#include "ops/index.typed.h"
#define TYPE f64
#include "ops/index.typed.h"
#define TYPE u32
#include "ops/index.typed.h"
#define TYPE u64
#include "ops/index.typed.h"
#define TYPE u8
#include "ops/index.typed.h"

static void index_add(const adding *a, int64_t k, int64_t first, int64_t last)
{
    switch (a->dtype) {
    case ED_FLOAT32: index_add_f32(a, k, first, last); break;
    case ED_FLOAT64: index_add_f64(a, k, first, last); break;
    case ED_INT32: index_add_u32(a, k, first, last); break;
    case ED_INT64: index_add_u64(a, k, first, last); break;
    default: index_add_u8(a, k, first, last);
    }
}

enum { COLUMNS = 32 }; /* of a piece, at most; two cache lines of float32 */

/* Pieces of columns; all that is added to one element is added by one thread, in order. */
static void add_range(int64_t first, int64_t last, int worker, void *user)
{
    const adding *a = user;
    int64_t pieces = (a->width + COLUMNS - 1) / COLUMNS;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        int64_t column = i % pieces * COLUMNS, left = a->width - column;
        index_add(a, i / pieces, column, left < COLUMNS ? a->width : column + COLUMNS);
    }
}

static bool add_at(ed_call *call, int64_t before, int64_t shared, int64_t extent, int64_t width)
{
    const ed_tensor *x = call->inputs[0];
    ed_tensor *y = call->outputs[0];
    const int64_t *indices = index_read(call, call->inputs[1], extent);
    if (!indices) return false;
    adding a = {.dtype = x->dtype,
                .x = x->data,
                .y = y->data,
                .indices = indices,
                .before = before,
                .shared = shared,
                .extent = extent,
                .count = before ? call->inputs[1]->size / (before / shared) : 0,
                .width = width};
    copy_fill(1, "", y->data, y->size * (int64_t)dtype_size(y->dtype));
    int64_t pieces = before * ((width + COLUMNS - 1) / COLUMNS);
    threads_run(pieces, x->size > OPS_PARALLEL_WORK ? 1 : pieces, add_range, &a);
    index_drop(call->inputs[1], indices);
    return true;
}

static bool add_at_plain(const ed_call *call, int64_t before, int64_t shared, int64_t extent,
                         int64_t width)
{
    const double *x = (const double *)call->inputs[0]->data,
                 *indices = (const double *)call->inputs[1]->data;
    double *y = (double *)call->outputs[0]->data;
    memset(y, 0, (size_t)call->outputs[0]->size * sizeof *y);
    for (int64_t k = 0; k < before; k++) {
        const int64_t count = call->inputs[1]->size / (before / shared);
        for (int64_t i = k / shared * count; i < (k / shared + 1) * count; i++)
            for (int64_t j = 0; j < width; j++)
                y[(k * extent + (int64_t)indices[i]) * width + j] += *x++;
    }
    return true;
}

/* gather_gradient: zeros, to which the slices of dy are added at the indices of the axis; its
 * gradient is gather. */
#define GATHER_GRADIENT_ATTRS(FIELD, T)                                                            \
    FIELD(T, AXIS, axis, 0, ED_AT_LEAST(0), "along which")                                         \
    FIELD(T, INT, batch_dims, 0, ED_AT_LEAST(0), "leading axes that both have")                    \
    FIELD(T, INT, size, 0, ED_AT_LEAST(0), "of the result there")
ED_OPTIONS(gather_gradient_attrs, GATHER_GRADIENT_ATTRS);

static bool gather_gradient_infer(ed_call *call)
{
    const gather_gradient_attrs *attrs = call->attrs;
    const ed_tensor *dy = call->inputs[0], *indices = call->inputs[1];
    const int64_t axis = attrs->axis, batch = attrs->batch_dims;
    int64_t shape[ED_MAX_RANK];
    const int more = indices->rank - (int)batch, rank = dy->rank - more + 1;
    const size_t size = sizeof *shape;
    if (axis < batch || batch > indices->rank || axis >= rank || rank > ED_MAX_RANK ||
        memcmp(dy->shape, indices->shape, (size_t)batch * size) != 0 ||
        memcmp(dy->shape + axis, indices->shape + batch, (size_t)more * size) != 0)
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT,
            "dy %s does not have the shape of a gather with indices %s along axis %lld",
            text_of_tensor(dy).s, text_of_tensor(indices).s, text_nth(axis));
    for (int i = 0; i < axis; i++) shape[i] = dy->shape[i];
    shape[axis] = attrs->size;
    for (int i = (int)axis + 1; i < rank; i++) shape[i] = dy->shape[i + more - 1];
    return ed_call_output(call, 0, dy->dtype, rank, shape);
}

static bool gather_gradient_kernel(ed_call *call)
{
    const gather_gradient_attrs *attrs = call->attrs;
    const ed_tensor *y = call->outputs[0];
    const int axis = (int)attrs->axis;
    return add_at(call, index_product(y->shape, 0, axis),
                  index_product(y->shape, (int)attrs->batch_dims, axis), attrs->size,
                  index_product(y->shape, axis + 1, y->rank));
}

static bool gather_gradient_gradient(const ed_gradient_call *g)
{
    const gather_gradient_attrs *attrs = g->attrs;
    g->dx[0] =
        ed_gather(g->dy[0], g->inputs[1], .axis = attrs->axis, .batch_dims = attrs->batch_dims);
    return true;
}

static bool gather_gradient_plain(const ed_call *call)
{
    const gather_gradient_attrs *attrs = call->attrs;
    const ed_tensor *y = call->outputs[0];
    const int axis = (int)attrs->axis;
    return add_at_plain(call, index_product(y->shape, 0, axis),
                        index_product(y->shape, (int)attrs->batch_dims, axis), attrs->size,
                        index_product(y->shape, axis + 1, y->rank));
}

/* Indices that differ: the calls are one more axis that both have. */
static ed_list *gather_gradient_batch(const ed_batch_call *call)
{
    gather_gradient_attrs attrs = *(const gather_gradient_attrs *)call->attrs;
    ed_batch_call of_both = *call;
    if (!call->batches[1] && !attrs.batch_dims) return ed_batch_first(call);
    attrs.batch_dims++;
    of_both.attrs = &attrs;
    return ed_batch_axes(&of_both);
}

ED_OP(gather_gradient) = {
    .name = "gather_gradient",
    .doc = "zeros, to which the slices of x are added at the indices of an axis",
    .operands = {{"x", ED_SET_NUMBER, 'T'}, INDICES},
    .operands[1].saved = true,
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(GATHER_GRADIENT_ATTRS, gather_gradient_attrs),
    .infer = gather_gradient_infer,
    .batch = gather_gradient_batch,
    .kernel = gather_gradient_kernel,
    .gradient = gather_gradient_gradient,
    .reference = gather_gradient_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 6, 3), ED_SAMPLE_IN(0, 3, 6)},
         .attrs = ED_ATTRS(GATHER_GRADIENT_ATTRS, gather_gradient_attrs, .axis = 0, .size = 4)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3, 2), ED_SAMPLE_IN(0, 4, 2, 3)},
         .attrs = ED_ATTRS(GATHER_GRADIENT_ATTRS, gather_gradient_attrs, .axis = 1, .size = 5)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2, 4, 2), ED_SAMPLE_IN(0, 4, 3, 4)},
         .attrs = ED_ATTRS(GATHER_GRADIENT_ATTRS, gather_gradient_attrs, .axis = 2, .batch_dims = 1,
                           .size = 5)}),
};

ed_tensor *index_sum(ed_tensor *dy, ed_tensor *indices, int64_t axis, int64_t batch_dims,
                     int64_t size)
{
    const gather_gradient_attrs *attrs =
        ED_ATTRS(GATHER_GRADIENT_ATTRS, gather_gradient_attrs, .axis = axis,
                 .batch_dims = batch_dims, .size = size);
    if (!(ED_SET_HALF & 1u << ed_dtype_of(dy))) return CALL_OP(gather_gradient, attrs, dy, indices);
    return ed_cast(CALL_OP(gather_gradient, attrs, ed_cast(dy, ED_FLOAT32), indices),
                   ed_dtype_of(dy));
}

/* ---- one_hot --------------------------------------------------------------------------------- */

#define ONE_HOT_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, depth, -1, ED_AT_LEAST(0), "size of the new axis") ED_ONE_HOT_OPTIONS(FIELD, T)
ED_OPTIONS(one_hot_attrs, ONE_HOT_ATTRS);

enum {
    HOT_BYTES = HARD(64, 16 << 10), /* of a row that can be made and then copied, at most */
    HOT_SOME = HARD(64, 4 << 10),   /* of short rows that are made at a time */
};

static bool one_hot_infer(ed_call *call)
{
    const one_hot_attrs *attrs = call->attrs;
    const ed_tensor *indices = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    if (indices->rank == ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "indices must have rank < %d, got %s",
                            ED_MAX_RANK, text_of_tensor(indices).s);
    memcpy(shape, indices->shape, sizeof shape);
    shape[indices->rank] = attrs->depth;
    return ed_call_output(call, 0, attrs->dtype ? attrs->dtype : ED_FLOAT32, indices->rank + 1,
                          shape);
}

/* The way of a call: rows of `depth` elements to y. */
typedef struct hot {
    const ed_tensor *indices;
    char *y;
    int64_t depth, element;
    uint64_t one; /* an element that is 1 */
} hot;

/* Puts `value` where the rows first..last-1, which begin at `to`, have their 1. */
static void one_hot_put(const hot *h, int64_t first, int64_t last, uint64_t value, char *to)
{
    for (; first < last; first++, to += h->depth * h->element) {
        const int64_t at = h->indices->dtype == ED_INT64
                               ? ((const int64_t *)h->indices->data)[first]
                               : ((const int32_t *)h->indices->data)[first];
        if (at >= 0 && at < h->depth) memcpy(to + at * h->element, &value, (size_t)h->element);
    }
}

static void one_hot_near(int64_t first, int64_t last, int worker, void *user)
{
    const hot *h = user;
    const int64_t bytes = h->depth * h->element;
    (void)worker;
    memset(h->y + first * bytes, 0, (size_t)((last - first) * bytes));
    one_hot_put(h, first, last, h->one, h->y + first * bytes);
}

/* Some rows at a time are made in zeros, go past the caches and become zeros again. The next ones
 * are made before: ones on their way to the cache behind what goes past it would be waited for. */
static void one_hot_far(int64_t first, int64_t last, int worker, void *user)
{
    const hot *h = user;
    const int64_t bytes = h->depth * h->element, most = bytes < HOT_SOME ? HOT_SOME / bytes : 1;
    char rows[2][HOT_BYTES] __attribute__((aligned(COPY_LINE)));
    (void)worker;
    for (int i = 0; i < 2; i++) memset(rows[i], 0, (size_t)(most * bytes));
    int64_t end = first + most < last ? first + most : last;
    one_hot_put(h, first, end, h->one, rows[0]);
    for (int now = 0; first < last; now = !now) {
        const int64_t next = end + most < last ? end + most : last;
        one_hot_put(h, end, next, h->one, rows[!now]);
        copy_stream(h->y + first * bytes, rows[now], (size_t)((end - first) * bytes));
        one_hot_put(h, first, end, 0, rows[now]);
        first = end;
        end = next;
    }
    copy_stream_end();
}

static bool one_hot_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t depth = ((const one_hot_attrs *)call->attrs)->depth;
    hot h = {call->inputs[0], y->data, depth, (int64_t)dtype_size(y->dtype), 0};
    const bool far = y->size * h.element >= COPY_FAR_BYTES && depth * h.element <= HOT_BYTES;
    dtype_store(y->dtype, &h.one, 0, 1);
    if (y->size)
        threads_run(h.indices->size, 1 + OPS_PARALLEL_WORK / depth,
                    far ? one_hot_far : one_hot_near, &h);
    return true;
}

static bool one_hot_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int64_t depth = ((const one_hot_attrs *)call->attrs)->depth;
    for (int64_t i = 0; i < y->size; i++)
        ((double *)y->data)[i] =
            ((const double *)call->inputs[0]->data)[i / depth] == (double)(i % depth);
    return true;
}

ED_OP(one_hot) = {
    .name = "one_hot",
    .doc = "1 where a new last axis equals the index, else 0",
    .operands = {INDICES},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ONE_HOT_ATTRS, one_hot_attrs),
    .infer = one_hot_infer,
    .batch = ed_batch_first,
    .kernel = one_hot_kernel,
    .no_gradient = "its operand is an integer",
    .reference = one_hot_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-1, 4, 6)},
         .attrs = ED_ATTRS(ONE_HOT_ATTRS, one_hot_attrs, .depth = 4)},
        {.inputs = {ED_SAMPLE_IN(0, 2, 2, 3)},
         .attrs = ED_ATTRS(ONE_HOT_ATTRS, one_hot_attrs, .depth = 3, .dtype = ED_FLOAT64)},
        {.inputs = {ED_SAMPLE_IN(0, 2)},
         .attrs = ED_ATTRS(ONE_HOT_ATTRS, one_hot_attrs, .depth = 3, .dtype = ED_BOOL)}),
};

ed_tensor *ed_one_hot_with(ed_tensor *indices, int64_t depth, const ed_one_hot_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_ONE_HOT_OPTIONS, options);
    return CALL_OP(one_hot,
                   ED_OPTIONS_FROM(ED_ONE_HOT_OPTIONS, options, one_hot_attrs, .depth = depth),
                   indices);
}
