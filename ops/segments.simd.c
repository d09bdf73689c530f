/*
 * Segments: slices of x are folded where their ids are the same, in an order that does not depend
 * on the number of threads: of sorted ids a thread takes whole segments, of others whole columns,
 * or, where there are few columns and few segments, parts of the slices that depend on the shapes,
 * whose results are folded in their order. Ids are checked when they are read to be folded.
 *
 * The ops of sorted ids are compositions of the others, as are the means.
 */
#include "ops/batch.h"
#include "ops/index.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "ops/segments.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* Columns first..last-1 of n rows of x are folded into the rows of y that the ids say; rows of
 * negative ids are left out. Ids are int64, or, `narrow`, int32 if the width is 1. */
#define SEGMENT_ARGUMENTS                                                                          \
    const void *x, void *y, const void *ids, bool narrow, int64_t n, int64_t width, int64_t first, \
        int64_t last
typedef void (*segment_loop)(SEGMENT_ARGUMENTS);

enum {
    SEGMENT_AHEAD = 6,  /* rows that are fetched before they are needed */
    SEGMENT_SAMPLE = 48 /* ids that tell how often neighbours are the same, or are not sorted */
};

#ifdef ISA
/* ======== Loops =============================================================================== */

#include "ops/kernels/vector.h"

#define TYPE f32
#include "ops/segments.typed.h"
#define TYPE f64
#include "ops/segments.typed.h"
#define TYPE i32
#include "ops/segments.typed.h"
#define TYPE i64
#include "ops/segments.typed.h"
#define TYPE u8
#include "ops/segments.typed.h"

#define SEGMENT_LOOPS(type)                                                                        \
    {                                                                                              \
        [SEGMENT_SUM] = segment_sum_##type, [SEGMENT_PROD] = segment_prod_##type,                  \
        [SEGMENT_MAX] = segment_max_##type, [SEGMENT_MIN] = segment_min_##type                     \
    }

const segment_loop ISA_NAME(segment_table)[ED_DTYPE_COUNT][SEGMENT_KINDS] = {
    [ED_FLOAT32] = SEGMENT_LOOPS(f32), [ED_FLOAT64] = SEGMENT_LOOPS(f64),
    [ED_INT32] = SEGMENT_LOOPS(i32),   [ED_INT64] = SEGMENT_LOOPS(i64),
    [ED_UINT8] = SEGMENT_LOOPS(u8),
};

#else
/* ======== Ops ================================================================================= */

typedef const segment_loop segment_loops[SEGMENT_KINDS];
ISA_DECLARE_TABLE(segment_loop, segment_table, [ED_DTYPE_COUNT][SEGMENT_KINDS]);

#define IDS                                                                                        \
    {                                                                                              \
        "ids", ED_SET_INDEX, 'I', .saved = true                                                    \
    }

/* ---- Ids ------------------------------------------------------------------------------------- */

/* Whether none is less than the one before. Of many, the first ones tell that they are not. */
static bool ids_are_sorted(const ed_tensor *ids)
{
    for (int64_t i = 1; i < ids->size && i < SEGMENT_SAMPLE; i++)
        if (index_at(ids, i) < index_at(ids, i - 1)) return false;
    return index_order_of(ids).sorted;
}

/* Whether all ids are below the number of segments. */
static bool check_ids(const ed_call *call, const ed_tensor *ids, int64_t segments)
{
    if (index_order_of(ids).largest < segments) return true;
    int64_t i = 0;
    while (index_at(ids, i) < segments) i++;
    return ed_call_fail(call, ED_OUT_OF_RANGE,
                        "id %lld at position %lld is out of bounds: it must be below %lld, the "
                        "number of segments",
                        (long long)index_at(ids, i), text_nth(i), (long long)segments);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

enum {
    SEGMENT_IDS = 512,    /* that are read at once */
    SEGMENT_COLUMNS = 32, /* of a piece, at least */
    SEGMENT_PARTS = 8     /* of the rows, at most */
};

typedef struct segmenting {
    segment_loop loop;
    const ed_tensor *ids;
    const char *x;
    char *y;
    int64_t n, width, element; /* rows of x, their elements, bytes of each */
    int64_t size;              /* elements of y */
    int64_t rows;              /* of a piece of sorted ids, or of a part */
    int64_t segments;          /* ids must be below */
    bool *outside;             /* whether one is not */
    char *copies;              /* of y, for the parts of the rows but the first */
} segmenting;

static void fold_rows(const segmenting *s, int64_t begin, int64_t end, int64_t first, int64_t last)
{
    int64_t room[SEGMENT_IDS];
    const bool narrow = s->width == 1 && s->ids->dtype == ED_INT32;
    for (int64_t at = begin; at < end; at += SEGMENT_IDS) {
        const int64_t n = end - at < SEGMENT_IDS ? end - at : SEGMENT_IDS;
        if (index_largest(s->ids, at, n) >= s->segments) {
            __atomic_store_n(s->outside, true, __ATOMIC_RELAXED);
            return;
        }
        const void *ids = narrow ? (const void *)((const int32_t *)s->ids->data + at)
                                 : index_some(s->ids, at, n, room);
        s->loop(s->x + at * s->width * s->element, s->y, ids, narrow, n, s->width, first, last);
    }
}

/* Of sorted ids: the segments that begin in these pieces of rows. */
static void fold_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const segmenting *s = user;
    int64_t begin = first * s->rows, end = last * s->rows < s->n ? last * s->rows : s->n;
    (void)worker;
    while (begin && begin < end && index_at(s->ids, begin) == index_at(s->ids, begin - 1)) begin++;
    if (begin == end) return;
    while (end < s->n && index_at(s->ids, end) == index_at(s->ids, end - 1)) end++;
    fold_rows(s, begin, end, 0, s->width);
}

static void fold_columns(int64_t first, int64_t last, int worker, void *user)
{
    const segmenting *s = user;
    (void)worker;
    last *= SEGMENT_COLUMNS;
    fold_rows(s, 0, s->n, first * SEGMENT_COLUMNS, last < s->width ? last : s->width);
}

/* Parts of the rows, each into a copy of its own. */
static void fold_parts(int64_t first, int64_t last, int worker, void *user)
{
    const segmenting *s = user;
    (void)worker;
    for (int64_t part = first; part < last; part++) {
        const int64_t begin = part * s->rows, end = begin + s->rows < s->n ? begin + s->rows : s->n;
        segmenting one = *s;
        if (part) one.y = s->copies + (part - 1) * s->size * s->element;
        fold_rows(&one, begin, end, 0, s->width);
    }
}

/* How many copies of the results narrow rows are worth, as many as there are parts of the rows: so
 * many threads can take some. Depends on shapes only, as the bits of the sums do. */
static int64_t count_parts(const segmenting *s)
{
    const int64_t size = s->n * s->width, least = 8 * s->size;
    if (!s->size || s->width > SEGMENT_COLUMNS) return 1;
    const int64_t parts = size / (least > OPS_PARALLEL_WORK ? least : OPS_PARALLEL_WORK);
    return parts < SEGMENT_PARTS ? parts : SEGMENT_PARTS;
}

/* The first part goes into y itself, and then the copies of the others in their order. */
static bool fold_copies(segmenting *s, int64_t parts, const void *start)
{
    s->copies = memory_alloc((size_t)((parts - 1) * s->size * s->element));
    if (!s->copies) return false;
    copy_fill((size_t)s->element, start, s->copies, (parts - 1) * s->size);
    s->rows = (s->n + parts - 1) / parts;
    threads_run(parts, 1, fold_parts, s);
    for (int64_t part = 1; part < parts; part++)
        s->loop(s->copies + (part - 1) * s->size * s->element, s->y, &(const int64_t){0}, false, 1,
                s->size, 0, s->size);
    memory_free(s->copies);
    return true;
}

static bool fold_all(segmenting *s, const void *start)
{
    const int64_t size = s->n * s->width;
    if (!size) return true;
    const bool sorted = ids_are_sorted(s->ids);
    const int64_t parts = sorted ? 1 : count_parts(s);
    if (parts > 1) return fold_copies(s, parts, start);
    if (sorted) {
        s->rows = OPS_PARALLEL_WORK / s->width + 1;
        const int64_t pieces = (s->n + s->rows - 1) / s->rows;
        threads_run(pieces, size > 2 * OPS_PARALLEL_WORK ? 1 : pieces, fold_pieces, s);
    } else {
        const int64_t pieces = (s->width + SEGMENT_COLUMNS - 1) / SEGMENT_COLUMNS;
        threads_run(pieces, size > OPS_PARALLEL_WORK ? 1 : pieces, fold_columns, s);
    }
    return true;
}

/* A number of the dtype with which folding begins, or which a segment without slices has. */
typedef union segment_start {
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
} segment_start;

static segment_start start_of(segment_kind kind, ed_dtype dtype, bool absent)
{
    const bool max = kind == SEGMENT_MAX;
    segment_start v = {.i64 = 0};
    if (kind == SEGMENT_SUM) return v;
    if (kind == SEGMENT_PROD) {
        dtype_store(dtype, &v, 0, 1);
        return v;
    }
    const double f32 = absent ? FLT_MAX : INFINITY, f64 = absent ? DBL_MAX : INFINITY;
    switch (dtype) {
    case ED_FLOAT32: v.f32 = (float)(max ? -f32 : f32); break;
    case ED_FLOAT64: v.f64 = max ? -f64 : f64; break;
    case ED_INT32: v.i32 = max ? INT32_MIN : INT32_MAX; break;
    case ED_INT64: v.i64 = max ? INT64_MIN : INT64_MAX; break;
    default: v.u8 = max ? 0 : UINT8_MAX;
    }
    return v;
}

/* Whether an element has the bytes with which folding began. */
static bool some_unchanged(const segmenting *s, const segment_start *v, int64_t n)
{
    if (s->element == 4)
        for (int64_t i = 0; i < n; i++)
            if (!memcmp(s->y + 4 * i, v, 4)) return true;
    if (s->element == 8)
        for (int64_t i = 0; i < n; i++)
            if (!memcmp(s->y + 8 * i, v, 8)) return true;
    return false;
}

/* Gives rows of y without any slice the number that stands for none. */
static bool fill_absent(ed_call *call, const segmenting *s, segment_kind kind)
{
    const ed_tensor *y = call->outputs[0];
    const segment_start v = start_of(kind, y->dtype, true);
    uint8_t *present = memory_zalloc((size_t)y->shape[0]);
    if (!present) return false;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t id = index_at(s->ids, i); /* unchecked in ranges that were left out */
        if (id >= 0 && id < y->shape[0]) present[id] = 1;
    }
    for (int64_t k = 0; k < y->shape[0]; k++)
        if (!present[k])
            copy_fill_row((size_t)s->element, &v, s->y + k * s->width * s->element, s->width);
    memory_free(present);
    return true;
}

static bool segment_kernel(ed_call *call)
{
    static const segment_loops *const tables[ISA_COUNT] = ISA_TABLE(segment_table);
    const segment_kind kind = *(const segment_kind *)call->op->extra;
    const ed_tensor *x = call->inputs[0], *ids = call->inputs[1], *y = call->outputs[0];
    const segment_start v = start_of(kind, x->dtype, false);
    bool outside = false;
    segmenting s = {.loop = tables[isa_level][x->dtype][kind],
                    .ids = ids,
                    .x = x->data,
                    .y = y->data,
                    .n = ids->size,
                    .width = index_product(y->shape, 1, y->rank),
                    .size = y->size,
                    .element = (int64_t)dtype_size(x->dtype),
                    .segments = y->shape[0],
                    .outside = &outside};
    copy_fill((size_t)s.element, &v, y->data, y->size);
    if (!fold_all(&s, &v)) return false;
    if ((outside || !x->size) && !check_ids(call, ids, y->shape[0])) return false;
    const bool extreme = kind == SEGMENT_MAX || kind == SEGMENT_MIN;
    return !extreme || !ed_dtype_is_float(x->dtype) || !some_unchanged(&s, &v, y->size) ||
           fill_absent(call, &s, kind);
}

/* ---- Shapes and references ------------------------------------------------------------------- */

#define SEGMENT_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, num_segments, -1, ED_AT_LEAST(0), "number of segments")
ED_OPTIONS(segment_attrs, SEGMENT_ATTRS);

bool segment_check_shapes(const ed_call *call, const ed_tensor *x, const ed_tensor *ids)
{
    return (ids->rank <= x->rank && ids->rank > 0 &&
            !memcmp(x->shape, ids->shape, (size_t)ids->rank * sizeof *x->shape)) ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "ids are %s; expected one id for each slice of x, %s",
                        text_of_tensor(ids).s, text_of_tensor(x).s);
}

static bool segment_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *ids = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    if (!segment_check_shapes(call, x, ids)) return false;
    shape[0] = ((const segment_attrs *)call->attrs)->num_segments;
    const int rest = x->rank - ids->rank;
    memcpy(shape + 1, x->shape + ids->rank, (size_t)rest * sizeof *shape);
    return ed_call_output(call, 0, x->dtype, rest + 1, shape);
}

/* What the numbers of one segment and column come to, n of them. */
typedef double segment_plain_function(const double *x, int64_t n, double absent);

static double plain_sum(const double *x, int64_t n, double absent)
{
    double y = 0;
    (void)absent;
    for (int64_t i = 0; i < n; i++) y += x[i];
    return y;
}
static double plain_prod(const double *x, int64_t n, double absent)
{
    double y = 1;
    (void)absent;
    for (int64_t i = 0; i < n; i++) y *= x[i];
    return y;
}
static double plain_max(const double *x, int64_t n, double absent)
{
    double y = n ? x[0] : absent;
    for (int64_t i = 1; i < n; i++) y = isnan(x[i]) || x[i] > y ? x[i] : y;
    return y;
}
static double plain_min(const double *x, int64_t n, double absent)
{
    double y = n ? x[0] : absent;
    for (int64_t i = 1; i < n; i++) y = isnan(x[i]) || x[i] < y ? x[i] : y;
    return y;
}
static double plain_mean(const double *x, int64_t n, double absent)
{
    return n ? plain_sum(x, n, absent) / (double)n : 0;
}
static double plain_sqrt_n(const double *x, int64_t n, double absent)
{
    return n ? plain_sum(x, n, absent) / sqrt((double)n) : 0;
}

/* Segment by segment and column by column. */
bool segment_plain(const ed_call *call, segment_kind kind, double absent)
{
    static segment_plain_function *const functions[] = {plain_sum, plain_prod, plain_max,
                                                        plain_min, plain_mean, plain_sqrt_n};
    const ed_tensor *x = call->inputs[0], *ids = call->inputs[1], *y = call->outputs[0];
    const int64_t width = index_product(y->shape, 1, y->rank);
    double *some = memory_alloc((size_t)(ids->size + 1) * sizeof *some);
    for (int64_t o = 0; some && o < y->size; o++) {
        int64_t n = 0;
        for (int64_t i = 0; i < ids->size; i++)
            if (((const double *)ids->data)[i] == (double)(o / width))
                some[n++] = ((const double *)x->data)[i * width + o % width];
        ((double *)y->data)[o] = functions[kind](some, n, absent);
    }
    memory_free(some);
    return some;
}

static bool segment_reference(const ed_call *call)
{
    const segment_kind kind = *(const segment_kind *)call->op->extra;
    const ed_dtype dtype = tensor_read(call->operands[0])->dtype; /* inputs are float64 here */
    const segment_start none = start_of(kind, dtype, true);
    return segment_plain(call, kind, dtype_load(dtype, &none, 0));
}

/* ---- Slices of segments ---------------------------------------------------------------------- */

/*
 * segment_slices: y[i] = x[ids[i]], 0 for a negative id: what flows back to the slices; dx = the
 * sums of dy in the segments.
 */
static bool slices_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *ids = call->inputs[1];
    int64_t shape[2 * ED_MAX_RANK];
    if (!x->rank || x->rank + ids->rank - 1 > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x is %s, ids are %s: there are no slices",
                            text_of_tensor(x).s, text_of_tensor(ids).s);
    memcpy(shape, ids->shape, (size_t)ids->rank * sizeof *shape);
    memcpy(shape + ids->rank, x->shape + 1, (size_t)(x->rank - 1) * sizeof *shape);
    return ed_call_output(call, 0, x->dtype, x->rank + ids->rank - 1, shape);
}

/* Rows first..last-1, some of which may be 0. */
static void slices_range(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const ed_tensor *x = call->inputs[0], *ids = call->inputs[1];
    const size_t bytes = (size_t)index_product(x->shape, 1, x->rank) * dtype_size(x->dtype);
    char *y = call->outputs[0]->data;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t id = index_at(ids, i);
        if (id < 0)
            memset(y + (size_t)i * bytes, 0, bytes);
        else
            memcpy(y + (size_t)i * bytes, x->data + (size_t)id * bytes, bytes);
    }
}

static bool slices_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *ids = call->inputs[1], *y = call->outputs[0];
    if (!check_ids(call, ids, x->shape[0])) return false;
    if (!y->size) return true;
    const int64_t width = y->size / ids->size;
    threads_run(ids->size, 1 + OPS_PARALLEL_WORK / width, slices_range, call);
    return true;
}

static bool slices_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_unsorted_segment_sum(g->dy[0], g->inputs[1], g->shapes[0].values[0]);
    return true;
}

static bool slices_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t width = index_product(x->shape, 1, x->rank);
    for (int64_t i = 0; i < y->size; i++) {
        const double id = ((const double *)call->inputs[1]->data)[i / width];
        ((double *)y->data)[i] =
            id < 0 ? 0 : ((const double *)x->data)[(int64_t)id * width + i % width];
    }
    return true;
}

ED_OP(segment_slices) = {
    .name = "segment_slices",
    .doc = "slices of x at the ids, 0 for negative ids",
    .operands = {{"x", ED_SET_NUMBER, 'T'}, IDS},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = slices_infer,
    .kernel = slices_kernel,
    .gradient = slices_gradient,
    .reference = slices_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 2), ED_SAMPLE_IN(-1, 3, 5)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-1, 2, 2, 6)}}),
};

ed_tensor *segment_slices(ed_tensor *x, ed_tensor *ids)
{
    return CALL_OP(segment_slices, NULL, x, ids);
}

/* ---- Any order of ids ------------------------------------------------------------------------ */

#define SEGMENTS(n) ED_ATTRS(SEGMENT_ATTRS, segment_attrs, .num_segments = n)

/* Samples: some ids are negative; a segment stays empty. */
#define SEGMENT_SAMPLES(in)                                                                        \
    ED_SAMPLES({.inputs = {in(-2, 2, 5, 2), ED_SAMPLE_IN(-1, 2, 5)}, .attrs = SEGMENTS(4)},        \
               {.inputs = {in(-2, 2, 7), ED_SAMPLE_IN(0, 1, 7)}, .attrs = SEGMENTS(3)},            \
               {.inputs = {in(-2, 2, 2, 3, 40), ED_SAMPLE_IN(-1, 3, 2, 3)}, .attrs = SEGMENTS(4)})

static ed_list *segment_batch(const ed_batch_call *call)
{
    return batch_last(call, 1);
}

#define UNSORTED(symbol, what, text, in, ...)                                                      \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"x", ED_SET_NUMBER, 'T'}, IDS},                                 \
                     .flags = ED_OP_CONTIGUOUS,                                                    \
                     ED_OP_ATTRS(SEGMENT_ATTRS, segment_attrs),                                    \
                     .infer = segment_infer,                                                       \
                     .batch = segment_batch,                                                       \
                     .kernel = segment_kernel,                                                     \
                     .gradient = symbol##_gradient,                                                \
                     .reference = segment_reference,                                               \
                     .extra = &(const segment_kind){what},                                         \
                     .samples = SEGMENT_SAMPLES(in),                                               \
                     __VA_ARGS__};                                                                 \
    ed_tensor *ed_##symbol(ed_tensor *x, ed_tensor *ids, int64_t num_segments)                     \
    {                                                                                              \
        return CALL_OP(symbol, SEGMENTS(num_segments), x, ids);                                    \
    }

/* unsorted_segment_sum: dx = dy of the segment. */
static bool unsorted_segment_sum_gradient(const ed_gradient_call *g)
{
    g->dx[0] = segment_slices(g->dy[0], g->inputs[1]);
    return true;
}

UNSORTED(unsorted_segment_sum, SEGMENT_SUM, "sums of slices of x with the same id", ED_SAMPLE_IN)

/*
 * unsorted_segment_max, min: dx = dy of the segment over the number of elements that have its
 * value, for those; NaN in a segment that has one. What no slice has is divided by 1.
 */
static bool extreme_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *x = g->inputs[0], *ids = g->inputs[1], *y = g->outputs[0];
    ed_tensor *has = ed_cast(ed_equal(x, segment_slices(y, ids)), g->dtypes[0]);
    ed_tensor *count =
        ed_unsorted_segment_sum(has, ids, ((const segment_attrs *)g->attrs)->num_segments);
    ed_tensor *share = ed_div(g->dy[0], ed_where(ed_is_nan(y), count, ed_maximum(count, 1)));
    g->dx[0] = ed_keep(ed_mul(has, segment_slices(share, ids)));
    return true;
}

#define unsorted_segment_max_gradient  extreme_gradient
#define unsorted_segment_min_gradient  extreme_gradient
UNSORTED(unsorted_segment_max, SEGMENT_MAX, "maxima of slices of x with the same id",
         ED_DISTINCT_IN, SAVES_X, SAVES_Y)
UNSORTED(unsorted_segment_min, SEGMENT_MIN, "minima of slices of x with the same id",
         ED_DISTINCT_IN, SAVES_X, SAVES_Y)

/* unsorted_segment_prod: dx = dy of the segment, times the product of the other slices. */
#define unsorted_segment_prod_gradient segment_products_gradient
UNSORTED(unsorted_segment_prod, SEGMENT_PROD, "products of slices of x with the same id",
         ED_SAMPLE_IN, SAVES_X)
#endif
