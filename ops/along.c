#include "ops/index.h"
#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <string.h>

/*
 * take_along_axis and put_along_axis: an index for each element, that says where it is along the
 * axis. Everything is done line by line of the last axis.
 */

/* The shape of what is read or written at indices; by which strides, in elements, the tensor that
 * is indexed, the indices and the values follow it; 0 where they are broadcast. */
typedef struct along {
    int rank, axis;
    int64_t shape[ED_MAX_RANK], strides[3][ED_MAX_RANK];
    int64_t n, step, move[3]; /* of the last axis; step: of the indexed tensor along the axis */
    int64_t extent;           /* of the indexed tensor's last axis */
    int64_t dense; /* lines of the cache to fetch of the next line for each element; 0: no more
                       than are needed */
    int64_t ahead; /* elements that are fetched so long before they are needed; 0: none are */
    bool outside;  /* whether an index is not in 0..extent-1, where that is found out on the way */
    const int64_t *indices;
    const char *from;
    char *to;
} along;

/* The strides of contiguous x in tensor number `which`; false if it does not broadcast. */
static bool along_strides(along *a, int which, const ed_tensor *x)
{
    int64_t step = 1;
    const int missing = a->rank - x->rank;
    for (int i = a->rank - 1; i >= 0; i--) {
        const int64_t size = i >= missing ? x->shape[i - missing] : 1;
        const bool indexed = which == 0 && i == a->axis;
        a->strides[which][i] = size == 1 || indexed ? 0 : step;
        if (indexed) a->step = step;
        if (!indexed && size != 1 && size != a->shape[i]) return false;
        step *= size;
    }
    return missing >= 0;
}

/* Makes the plan for x with indices, whose axes but one broadcast with each other. */
static bool along_infer(ed_call *call, int64_t axis)
{
    const ed_tensor *x = call->inputs[0], *indices = call->inputs[1];
    along *a = ed_call_plan(call, sizeof *a);
    if (!a) return false;
    *a = (along){.rank = x->rank};
    if (x->rank == 0 || x->rank != indices->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x is %s, indices are %s; they must have the same rank, at least 1",
                            text_of_tensor(x).s, text_of_tensor(indices).s);
    if (!ops_axis(call, axis, x->rank, &a->axis)) return false;
    for (int i = 0; i < x->rank; i++)
        a->shape[i] = i == a->axis || x->shape[i] == 1 ? indices->shape[i] : x->shape[i];
    if (along_strides(a, 0, x) && along_strides(a, 1, indices)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "x %s and indices %s do not broadcast; only axis %lld may differ",
                        text_of_tensor(x).s, text_of_tensor(indices).s, text_nth(a->axis));
}

/* Where line number `line` begins in each of the three. */
static void along_line(const along *a, int64_t line, int64_t *at)
{
    at[0] = at[1] = at[2] = 0;
    for (int i = a->rank - 2; i >= 0; i--) {
        const int64_t index = line % a->shape[i];
        line /= a->shape[i];
        for (int k = 0; k < 3; k++) at[k] += index * a->strides[k][i];
    }
}

/* What is left to know before lines are worked on, besides memory. */
static void along_begin(along *a)
{
    a->n = a->shape[a->rank - 1];
    for (int k = 0; k < 3; k++) a->move[k] = a->strides[k][a->rank - 1];
}

/* The indices as int64 in 0..bound-1, negative ones counted from the end. NULL on failure. */
static const int64_t *read_from_end(const ed_call *call, const ed_tensor *indices, int64_t bound)
{
    const index_order order = index_order_of(indices);
    const int64_t *all = index_wide(indices);
    int64_t *fixed;
    if (!all || (order.least >= 0 && order.largest < bound)) return all;
    for (int64_t i = 0; i < indices->size; i++)
        if (all[i] >= bound || all[i] < -bound) {
            ed_call_fail(call, ED_OUT_OF_RANGE,
                         "index %lld at position %s is out of bounds: it must be in %lld..%lld",
                         (long long)all[i], text_of_element(indices, i).s, (long long)-bound,
                         (long long)bound - 1);
            index_drop(indices, all);
            return NULL;
        }
    fixed = memory_alloc((size_t)indices->size * sizeof *fixed);
    for (int64_t i = 0; fixed && i < indices->size; i++)
        fixed[i] = all[i] + (all[i] < 0 ? bound : 0);
    index_drop(indices, all);
    return fixed;
}

enum {
    ALONG_AHEAD = 24, /* elements that are fetched before they are needed */
    ALONG_LINE = 64,
    ALONG_FEW = 16,        /* lines of the cache that the machine foresees */
    ALONG_NEAR = 32 << 10, /* bytes of a line that stays in the first cache until it is used */
};

/* a->dense: elements at random are in more than half of a line's lines of the cache if they are
 * three quarters as many. */
static int64_t along_dense(const along *a, const ed_tensor *x)
{
    const int64_t bytes = a->extent * (int64_t)dtype_size(x->dtype);
    const int64_t lines = (bytes + ALONG_LINE - 1) / ALONG_LINE;
    if (bytes > ALONG_NEAR || lines < ALONG_FEW || a->n < lines * 3 / 4) return 0;
    return (lines + a->n - 1) / a->n;
}

/* Intel's processors run so far ahead that asking for elements takes time and gains none; AMD's
 * read lines that are asked for in their order in half the time. */
static bool along_foresees(void)
{
#ifdef __x86_64__
    return HARD(false, __builtin_cpu_is("intel"));
#else
    return false;
#endif
}

/* Whether each index is for an element of its own line, one behind the other. */
static bool take_is_plain(const along *a)
{
    return a->axis == a->rank - 1 && a->step == 1 && a->move[1] == 1;
}

#define TYPE u8
#include "ops/along.typed.h"
#define TYPE u16
#include "ops/along.typed.h"
#define TYPE u32
#include "ops/along.typed.h"
#define TYPE u64
#include "ops/along.typed.h"

/* ---- The indices as numbers of elements, for gradients --------------------------------------- */

#define ALONG_INDICES_ATTRS(FIELD, T)                                                              \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the tensor that is indexed")                     \
    FIELD(T, AXIS, axis, 0, ED_ANY, "along which")
ED_OPTIONS(along_indices_attrs, ALONG_INDICES_ATTRS);

static bool along_indices_infer(ed_call *call)
{
    const along_indices_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0];
    ed_tensor x = {.dtype = ED_INT64};
    int rank;
    if (!shape_of_attr(call, "shape", o->shape, &rank, x.shape) ||
        !tensor_count(call->op->name, ED_INT64, rank, x.shape, &x.size))
        return false;
    x.rank = (uint8_t)rank;
    ed_tensor *const both[] = {&x, (ed_tensor *)indices};
    ed_call inner = *call;
    inner.inputs = (ed_tensor **)both;
    const bool ok = along_infer(&inner, o->axis);
    call->plan = inner.plan;
    if (!ok) return false;
    const along *a = call->plan;
    return ed_call_output(call, 0, ED_INT64, a->rank, a->shape);
}

static bool along_indices_kernel(ed_call *call)
{
    along *a = call->plan;
    const along_indices_attrs *o = call->attrs;
    const ed_tensor *indices = call->inputs[0], *y = call->outputs[0];
    int64_t *to = (int64_t *)y->data;
    const int64_t *all = read_from_end(call, indices, o->shape.values[a->axis]);
    if (!all) return false;
    along_begin(a);
    for (int64_t line = 0; y->size && line < y->size / a->n; line++) {
        int64_t at[3];
        along_line(a, line, at);
        for (int64_t j = 0; j < a->n; j++)
            *to++ = at[0] + j * a->move[0] + all[at[1] + j * a->move[1]] * a->step;
    }
    index_drop(indices, all);
    return true;
}

/* The number of the element of a row-major tensor of that shape that index `at` leads to, `at`
 * being of `rank` axes; axes of size 1 are broadcast. */
static int64_t plain_number(int rank, const int64_t *shape, const int64_t *at)
{
    int64_t number = 0;
    for (int i = 0; i < rank; i++) number = number * shape[i] + (shape[i] == 1 ? 0 : at[i]);
    return number;
}

/* The number of the element of x (of that shape) that element `at` of the result comes from. */
static int64_t plain_source(const ed_tensor *indices, int axis, const int64_t *shape,
                            const int64_t *at)
{
    int64_t there[ED_MAX_RANK];
    memcpy(there, at, sizeof there);
    const double index =
        ((const double *)indices->data)[plain_number(indices->rank, indices->shape, at)];
    there[axis] = (int64_t)index + (index < 0 ? shape[axis] : 0);
    return plain_number(indices->rank, shape, there);
}

static void advance(int rank, const int64_t *shape, int64_t *at)
{
    for (int i = rank - 1; i >= 0 && ++at[i] == shape[i]; i--) at[i] = 0;
}

static bool along_indices_plain(const ed_call *call)
{
    const along *a = call->plan;
    const along_indices_attrs *o = call->attrs;
    const ed_tensor *y = call->outputs[0];
    int64_t at[ED_MAX_RANK] = {0};
    for (int64_t i = 0; i < y->size; i++, advance(y->rank, y->shape, at))
        ((double *)y->data)[i] =
            (double)plain_source(call->inputs[0], a->axis, o->shape.values, at);
    return true;
}

#define INDICES_ATTRS(...) ED_ATTRS(ALONG_INDICES_ATTRS, along_indices_attrs, __VA_ARGS__)

ED_OP(along_indices) = {
    .name = "along_indices",
    .doc = "the numbers of the elements that take_along_axis takes",
    .operands = {{"indices", ED_SET_INDEX}},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ALONG_INDICES_ATTRS, along_indices_attrs),
    .infer = along_indices_infer,
    .kernel = along_indices_kernel,
    .no_gradient = "its operand is an integer",
    .reference = along_indices_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-3, 2, 2, 5)},
                           .attrs = INDICES_ATTRS(.shape = ED_SAMPLE_INTS(2, 3), .axis = -1)},
                          {.inputs = {ED_SAMPLE_IN(0, 3, 2, 1, 3)},
                           .attrs = INDICES_ATTRS(.shape = ED_SAMPLE_INTS(1, 4, 3), .axis = 1)}),
};

/* ---- take_along_axis ------------------------------------------------------------------------- */

static bool take_infer(ed_call *call)
{
    if (!along_infer(call, ((const ed_along_options *)call->attrs)->axis)) return false;
    const along *a = call->plan;
    return ed_call_output(call, 0, call->inputs[0]->dtype, a->rank, a->shape);
}

/* Lines of a plain take, whose indices are looked at when they are in the cache anyway. */
static void take_lines(int64_t first, int64_t last, int worker, void *user)
{
    enum { SOME = 512 };
    const ed_call *call = user;
    along *a = call->plan;
    const ed_tensor *indices = call->inputs[1];
    const size_t element = dtype_size(call->inputs[0]->dtype);
    int64_t room[SOME], at[3];
    (void)worker;
    for (int64_t line = first; line < last; line++) {
        along_line(a, line, at);
        for (int64_t j = 0, n; j < a->n; j += n) {
            n = a->n - j < SOME ? a->n - j : SOME;
            const int64_t *some = index_some(indices, at[1] + j, n, room);
            if (!index_inside(some, n, a->extent)) {
                __atomic_store_n(&a->outside, true, __ATOMIC_RELAXED);
                return;
            }
            const int64_t to = line * a->n + j;
            switch (element) {
            case 1: along_take_u8(a, at[0], some, j, n, to); break;
            case 2: along_take_u16(a, at[0], some, j, n, to); break;
            case 4: along_take_u32(a, at[0], some, j, n, to); break;
            default: along_take_u64(a, at[0], some, j, n, to);
            }
        }
    }
}

static void take_range(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const along *a = call->plan;
    (void)worker;
    for (int64_t line = first; line < last; line++) switch (dtype_size(call->inputs[0]->dtype)) {
        case 1: along_take_line_u8(a, line); break;
        case 2: along_take_line_u16(a, line); break;
        case 4: along_take_line_u32(a, line); break;
        default: along_take_line_u64(a, line);
        }
}

static bool take_kernel(ed_call *call)
{
    along *a = call->plan;
    const ed_tensor *x = call->inputs[0], *indices = call->inputs[1], *y = call->outputs[0];
    along_begin(a);
    a->extent = x->shape[x->rank - 1];
    const bool foresees = along_foresees();
    a->ahead = foresees ? 0 : ALONG_AHEAD;
    a->dense = foresees ? 0 : along_dense(a, x);
    a->from = x->data;
    a->to = y->data;
    const int64_t grain = y->size ? 1 + OPS_PARALLEL_WORK / a->n : 0;
    if (y->size && take_is_plain(a)) {
        threads_run(y->size / a->n, grain, take_lines, call);
        if (!a->outside) return true;
    }
    if (!(a->indices = read_from_end(call, indices, x->shape[a->axis]))) return false;
    if (y->size) threads_run(y->size / a->n, grain, take_range, call);
    index_drop(indices, a->indices);
    return true;
}

ed_tensor *index_along_sum(ed_tensor *dy, ed_tensor *indices, ed_ints shape, int64_t axis)
{
    const int64_t size = index_product(shape.values, 0, (int)shape.count);
    ed_tensor *numbers =
        CALL_OP(along_indices, INDICES_ATTRS(.shape = shape, .axis = axis), indices);
    if (!numbers || !dy) return NULL;
    const ed_ints all = {&numbers->size, 1};
    return ed_reshape(index_sum(ed_reshape(dy, all), ed_reshape(numbers, all), 0, 0, size), shape);
}

static bool take_gradient(const ed_gradient_call *g)
{
    const ed_along_options *o = g->attrs;
    g->dx[0] = index_along_sum(g->dy[0], g->inputs[1], g->shapes[0], o->axis);
    return true;
}

static bool take_plain(const ed_call *call)
{
    const along *a = call->plan;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    int64_t at[ED_MAX_RANK] = {0};
    for (int64_t i = 0; i < y->size; i++, advance(y->rank, y->shape, at))
        ((double *)y->data)[i] =
            ((const double *)x->data)[plain_source(call->inputs[1], a->axis, x->shape, at)];
    return true;
}

#define ALONG(a) ED_ATTRS(ED_ALONG_OPTIONS, ed_along_options, .axis = a)

/* y[i, j, k] = x[i, indices[i, j, k], k], here along axis 1 */
ED_OP(take_along_axis) = {
    .name = "take_along_axis",
    .doc = "the elements of x at indices along an axis, one for each element of the result",
    .operands = {{"x", ED_SET_ALL, 'T'}, {"indices", ED_SET_INDEX, 'I', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_ALONG_OPTIONS, ed_along_options),
    .infer = take_infer,
    .batch = ed_batch_axes,
    .kernel = take_kernel,
    .gradient = take_gradient,
    .reference = take_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-4, 3, 3, 6)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(0, 3, 2, 5, 1)}, .attrs = ALONG(1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 1), ED_SAMPLE_IN(0, 3, 2, 3)}, .attrs = ALONG(0)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 130), ED_SAMPLE_IN(0, 129, 2, 13)}, .attrs = ALONG(1)}),
};

ed_tensor *ed_take_along_axis_with(ed_tensor *x, ed_tensor *indices,
                                   const ed_along_options *options)
{
    return CALL_OP(take_along_axis, options, x, indices);
}

/* ---- put_along_axis -------------------------------------------------------------------------- */

static bool put_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *values = call->inputs[2];
    if (!along_infer(call, ((const ed_along_options *)call->attrs)->axis)) return false;
    along *a = call->plan;
    for (int i = 0; i < a->rank; i++)
        if (i != a->axis && a->shape[i] != x->shape[i])
            return ed_call_fail(
                call, ED_INVALID_ARGUMENT, "indices %s do not broadcast to x, %s, beside axis %lld",
                text_of_tensor(call->inputs[1]).s, text_of_tensor(x).s, text_nth(a->axis));
    if (!along_strides(a, 2, values))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "values %s do not broadcast to the indices, %s",
                            text_of_tensor(values).s, text_of_ints(a->shape, a->rank).s);
    return ops_infer_like(call);
}

/* One line after the other, so that the last of equal indices counts. */
static bool put_kernel(ed_call *call)
{
    along *a = call->plan;
    const ed_tensor *x = call->inputs[0], *indices = call->inputs[1], *y = call->outputs[0];
    if (!(a->indices = read_from_end(call, indices, x->shape[a->axis]))) return false;
    along_begin(a);
    memcpy(y->data, x->data, (size_t)y->size * dtype_size(y->dtype));
    a->from = call->inputs[2]->data;
    a->to = y->data;
    const int64_t lines = index_product(a->shape, 0, a->rank - 1);
    for (int64_t line = 0; a->n && line < lines; line++) switch (dtype_size(x->dtype)) {
        case 1: along_put_u8(a, line); break;
        case 2: along_put_u16(a, line); break;
        case 4: along_put_u32(a, line); break;
        default: along_put_u64(a, line);
        }
    index_drop(indices, a->indices);
    return true;
}

/* Of the values only those count that were not overwritten by later ones: each is numbered, and
 * looked for where it was put. */
static ed_tensor *values_gradient(const ed_gradient_call *g, int64_t axis)
{
    ed_tensor *indices = g->inputs[1];
    ed_tensor *taken = ed_take_along_axis(g->dy[0], indices, .axis = axis);
    if (!taken) return NULL;
    const ed_ints shape = {taken->shape, taken->rank};
    ed_tensor *numbers = ed_reshape(ed_range(0, (double)taken->size, .dtype = ED_INT64), shape);
    ed_tensor *last = ed_put_along_axis(ed_zeros(g->shapes[0], .dtype = ED_INT64), indices, numbers,
                                        .axis = axis);
    ed_tensor *mine = ed_equal(ed_take_along_axis(last, indices, .axis = axis), numbers);
    ed_tensor *zero = ed_zeros(ED_SHAPE(), .dtype = g->dtypes[2]);
    return shape_sum_to(ed_where(mine, taken, zero), g->shapes[2]);
}

static bool put_gradient(const ed_gradient_call *g)
{
    const int64_t axis = ((const ed_along_options *)g->attrs)->axis;
    ed_tensor *zero = ed_zeros(ED_SHAPE(), .dtype = g->dtypes[0]);
    if (g->needs[0]) g->dx[0] = ed_put_along_axis(g->dy[0], g->inputs[1], zero, .axis = axis);
    if (g->needs[2]) g->dx[2] = values_gradient(g, axis);
    return true;
}

static bool put_plain(const ed_call *call)
{
    const along *a = call->plan;
    const ed_tensor *x = call->inputs[0], *values = call->inputs[2];
    double *to = (double *)call->outputs[0]->data;
    int64_t at[ED_MAX_RANK] = {0}, n = index_product(a->shape, 0, a->rank);
    memcpy(to, x->data, (size_t)x->size * sizeof *to);
    for (; n > 0; n--, advance(a->rank, a->shape, at))
        to[plain_source(call->inputs[1], a->axis, x->shape, at)] =
            ((const double *)values
                 ->data)[plain_number(values->rank, values->shape, at + a->rank - values->rank)];
    return true;
}

/* y = x, y[i, indices[i, j, k], k] = values[i, j, k], here along axis 1 */
/* Values that broadcast have fewer axes. */
static ed_list *put_batch(const ed_batch_call *call)
{
    const bool alike = call->inputs[2]->rank == call->inputs[0]->rank;
    return alike ? ed_batch_axes(call) : ed_batch_each(call);
}

ED_OP(put_along_axis) = {
    .name = "put_along_axis",
    .doc = "x with values at indices along an axis, one for each value",
    .operands = {{"x", ED_SET_ALL, 'T'},
                 {"indices", ED_SET_INDEX, 'I', .saved = true},
                 {"values", ED_SET_ALL, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_ALONG_OPTIONS, ed_along_options),
    .infer = put_infer,
    .batch = put_batch,
    .kernel = put_kernel,
    .gradient = put_gradient,
    .reference = put_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-4, 3, 3, 6),
                                      ED_SAMPLE_IN(-2, 2, 3, 6)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(0, 3, 2, 2, 1),
                                      ED_SAMPLE_IN(-2, 2, 1, 3)},
                           .attrs = ALONG(1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(0, 4, 3),
                                      ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *(ed_put_along_axis_with)(ed_tensor *x, ed_tensor *indices, ed_tensor *values,
                                    const ed_along_options *options)
{
    return CALL_OP(put_along_axis, options, x, indices, values);
}
