#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/*
 * Tensors from nothing. Ops without operands: no tape records them. full takes its value as an
 * operand, so that a gradient flows back to it.
 */

static const char from_nothing[] = "it has no operands";

static bool checked_dtype(const ed_call *call, ed_dtype dtype, unsigned allowed)
{
    if (dtype > ED_DTYPE_NONE && dtype < ED_DTYPE_COUNT && allowed & 1u << dtype) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "dtype %s is not supported",
                        ed_dtype_name(dtype));
}

static ed_dtype dtype_or(ed_dtype dtype, ed_dtype otherwise)
{
    return dtype ? dtype : otherwise;
}

/* ---- zeros, ones ----------------------------------------------------------------------------- */

#define SHAPE_ATTR(FIELD, T) FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the result")
#define FILL_ATTRS(FIELD, T) SHAPE_ATTR(FIELD, T) ED_CREATE_OPTIONS(FIELD, T)
ED_OPTIONS(fill_attrs, FILL_ATTRS);

static bool fill_infer(ed_call *call)
{
    const fill_attrs *attrs = call->attrs;
    int64_t shape[ED_MAX_RANK];
    int rank;
    ed_dtype dtype = dtype_or(attrs->dtype, ED_FLOAT32);
    return shape_of_attr(call, "shape", attrs->shape, &rank, shape) &&
           checked_dtype(call, dtype, ED_SET_ALL) && ed_call_output(call, 0, dtype, rank, shape);
}

static void fill(ed_tensor *y, double number)
{
    uint64_t value = 0;
    dtype_store(y->dtype, &value, 0, number);
    copy_fill(dtype_size(y->dtype), &value, y->data, y->size);
}

static bool fill_plain(const ed_call *call, double number)
{
    for (int64_t i = 0; i < call->outputs[0]->size; i++)
        ((double *)call->outputs[0]->data)[i] = number;
    return true;
}

static bool zeros_kernel(ed_call *call)
{
    fill(call->outputs[0], 0);
    return true;
}

static bool zeros_plain(const ed_call *call)
{
    return fill_plain(call, 0);
}

static bool ones_kernel(ed_call *call)
{
    fill(call->outputs[0], 1);
    return true;
}

static bool ones_plain(const ed_call *call)
{
    return fill_plain(call, 1);
}

#define FILLED(of, ...)                                                                            \
    {                                                                                              \
        .attrs =                                                                                   \
            ED_ATTRS(FILL_ATTRS, fill_attrs, .shape = ED_SAMPLE_INTS(__VA_ARGS__), .dtype = of)    \
    }
#define FILL_SAMPLES                                                                               \
    ED_SAMPLES(FILLED(ED_DTYPE_NONE, 2, 3), FILLED(ED_FLOAT64), FILLED(ED_BOOL, 4, 0))

ED_OP(zeros) = {
    .name = "zeros",
    .doc = "all 0",
    ED_OP_ATTRS(FILL_ATTRS, fill_attrs),
    .infer = fill_infer,
    .kernel = zeros_kernel,
    .no_gradient = from_nothing,
    .reference = zeros_plain,
    .samples = FILL_SAMPLES,
};

ED_OP(ones) = {
    .name = "ones",
    .doc = "all 1",
    ED_OP_ATTRS(FILL_ATTRS, fill_attrs),
    .infer = fill_infer,
    .kernel = ones_kernel,
    .no_gradient = from_nothing,
    .reference = ones_plain,
    .samples = FILL_SAMPLES,
};

ed_tensor *ed_zeros_with(ed_ints shape, const ed_create_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CREATE_OPTIONS, options);
    return ed_call_op(&ed_op_zeros, NULL, 0,
                      ED_OPTIONS_FROM(ED_CREATE_OPTIONS, options, fill_attrs, .shape = shape));
}

ed_tensor *ed_ones_with(ed_ints shape, const ed_create_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CREATE_OPTIONS, options);
    return ed_call_op(&ed_op_ones, NULL, 0,
                      ED_OPTIONS_FROM(ED_CREATE_OPTIONS, options, fill_attrs, .shape = shape));
}

/* The attributes of a tensor like x. */
static fill_attrs like(const ed_tensor *x)
{
    ed_dtype dtype = x->flags & TENSOR_WEAK ? number_default_dtype(x) : (ed_dtype)x->dtype;
    return (fill_attrs)ED_COMPLETE(FILL_ATTRS, fill_attrs, .shape = {x->shape, x->rank},
                                   .dtype = dtype);
}

static bool check_like(const char *who, const ed_tensor *x)
{
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "%s: x is NULL", who);
    return !tensor_is_symbol(x) ||
           ed_fail(ED_FAILED_PRECONDITION,
                   "%s: x is symbolic, its shape %s is not known yet; x * 0 is a symbolic tensor",
                   who, text_of_tensor(x).s);
}

ed_tensor *(ed_zeros_like)(ed_tensor *x)
{
    if (!check_like("zeros_like", x)) return NULL;
    fill_attrs attrs = like(x);
    return ed_call_op(&ed_op_zeros, NULL, 0, &attrs);
}

ed_tensor *(ed_ones_like)(ed_tensor *x)
{
    if (!check_like("ones_like", x)) return NULL;
    fill_attrs attrs = like(x);
    return ed_call_op(&ed_op_ones, NULL, 0, &attrs);
}

/* ---- full: dvalue = sum of dy ---------------------------------------------------------------- */

ED_OPTIONS(full_attrs, SHAPE_ATTR);

static bool full_infer(ed_call *call)
{
    const ed_tensor *value = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (value->rank != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "value must be a number or a 0-d tensor, got %s",
                            text_of_tensor(value).s);
    return shape_of_attr(call, "shape", ((const full_attrs *)call->attrs)->shape, &rank, shape) &&
           ed_call_output(call, 0, value->dtype, rank, shape);
}

static bool full_kernel(ed_call *call)
{
    ed_tensor *y = call->outputs[0];
    copy_fill(dtype_size(y->dtype), call->inputs[0]->data, y->data, y->size);
    return true;
}

static bool full_gradient(const ed_gradient_call *g)
{
    g->dx[0] = shape_sum_to(g->dy[0], g->shapes[0]);
    return true;
}

static bool full_plain(const ed_call *call)
{
    return fill_plain(call, *(const double *)call->inputs[0]->data);
}

ED_OP(full) = {
    .name = "full",
    .doc = "all the value, which is 0-d",
    .operands = {{"value", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(SHAPE_ATTR, full_attrs),
    .infer = full_infer,
    .kernel = full_kernel,
    .gradient = full_gradient,
    .reference = full_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2)},
                           .attrs = ED_ATTRS(SHAPE_ATTR, full_attrs,
                                             .shape = ED_SAMPLE_INTS(2, 3))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)},
                           .attrs = ED_ATTRS(SHAPE_ATTR, full_attrs, .shape = ED_SAMPLE_INTS())}),
};

ed_tensor *ed_full_with(ed_ints shape, ed_tensor *value, const ed_full_options *options)
{
    if (!value) return ed_fail(ED_INVALID_ARGUMENT, "full: value is NULL");
    options = OPTIONS_OR_DEFAULTS(ED_FULL_OPTIONS, options);
    if (!schema_complete("full", options)) return NULL;
    const ed_dtype dtype = options->dtype;
    const error_before before = error_begin();
    if (value->flags & TENSOR_WEAK)
        value = ed_scalar(value, .dtype = dtype_or(dtype, ED_FLOAT32));
    else if (dtype && dtype != value->dtype)
        return ed_fail(ED_INVALID_ARGUMENT, "full: value is %s, dtype is %s; ed_cast the value",
                       text_of_tensor(value).s, ed_dtype_name(dtype));
    error_within(before, "full");
    return CALL_OP(full, ED_ATTRS(SHAPE_ATTR, full_attrs, .shape = shape), value);
}

/* ---- eye ------------------------------------------------------------------------------------- */

#define EYE_ATTRS(FIELD, T)                                                                        \
    FIELD(T, INT, rows, 0, ED_AT_LEAST(0), "size of the first axis") ED_EYE_OPTIONS(FIELD, T)
ED_OPTIONS(eye_attrs, EYE_ATTRS);

static bool eye_infer(ed_call *call)
{
    const eye_attrs *attrs = call->attrs;
    ed_dtype dtype = dtype_or(attrs->dtype, ED_FLOAT32);
    const int64_t shape[2] = {attrs->rows, attrs->columns < 0 ? attrs->rows : attrs->columns};
    return checked_dtype(call, dtype, ED_SET_ALL) && ed_call_output(call, 0, dtype, 2, shape);
}

static bool eye_kernel(ed_call *call)
{
    ed_tensor *y = call->outputs[0];
    int64_t n = y->shape[0] < y->shape[1] ? y->shape[0] : y->shape[1];
    uint64_t one = 0;
    dtype_store(y->dtype, &one, 0, 1);
    fill(y, 0);
    copy_row(dtype_size(y->dtype), n, &one, 0, y->data, y->shape[1] + 1);
    return true;
}

static bool eye_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++)
        ((double *)y->data)[i] = i / y->shape[1] == i % y->shape[1];
    return true;
}

ED_OP(eye) = {
    .name = "eye",
    .doc = "the identity matrix",
    ED_OP_ATTRS(EYE_ATTRS, eye_attrs),
    .infer = eye_infer,
    .kernel = eye_kernel,
    .no_gradient = from_nothing,
    .reference = eye_plain,
    .samples = ED_SAMPLES(
        {.attrs = ED_ATTRS(EYE_ATTRS, eye_attrs, .rows = 3)},
        {.attrs = ED_ATTRS(EYE_ATTRS, eye_attrs, .rows = 2, .columns = 4, .dtype = ED_FLOAT64)},
        {.attrs = ED_ATTRS(EYE_ATTRS, eye_attrs, .rows = 4, .columns = 1, .dtype = ED_INT32)}),
};

ed_tensor *ed_eye_with(int64_t rows, const ed_eye_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_EYE_OPTIONS, options);
    return ed_call_op(&ed_op_eye, NULL, 0,
                      ED_OPTIONS_FROM(ED_EYE_OPTIONS, options, eye_attrs, .rows = rows));
}

/* ---- Numbers that follow from their places --------------------------------------------------- */

enum { STRIP_BYTES = HARD(64, 4096) }; /* of numbers that are made at a time */

/* Makes numbers first..first+n-1 of a result at `to`. */
typedef void (*numbers_function)(const void *attrs, ed_dtype dtype, int64_t first, int32_t n,
                                 void *to);

typedef struct numbers {
    const ed_call *call;
    numbers_function some;
    bool stream; /* past the caches */
} numbers;

static void numbers_range(int64_t first, int64_t last, int worker, void *user)
{
    const numbers *m = user;
    const ed_tensor *y = m->call->outputs[0];
    const int64_t element = (int64_t)dtype_size(y->dtype), most = STRIP_BYTES / element;
    char strip[STRIP_BYTES] __attribute__((aligned(COPY_LINE)));
    (void)worker;
    for (int64_t i = first; i < last; i += most) {
        const int64_t n = last - i < most ? last - i : most;
        char *to = y->data + i * element;
        m->some(m->call->attrs, y->dtype, i, (int32_t)n, m->stream ? strip : to);
        if (m->stream) copy_stream(to, strip, (size_t)(n * element));
    }
    if (m->stream) copy_stream_end();
}

static bool make_numbers(ed_call *call, numbers_function some)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t bytes = y->size * (int64_t)dtype_size(y->dtype);
    numbers m = {.call = call, .some = some, .stream = bytes >= COPY_FAR_BYTES};
    if (y->size) threads_run(y->size, OPS_PARALLEL_WORK, numbers_range, &m);
    return true;
}

/* ---- range ----------------------------------------------------------------------------------- */

#define RANGE_ATTRS(FIELD, T)                                                                      \
    FIELD(T, FLOAT, start, 0, ED_ANY, "the first number")                                          \
    FIELD(T, FLOAT, limit, 0, ED_ANY, "above all numbers, or below them if delta is negative")     \
    ED_RANGE_OPTIONS(FIELD, T)
ED_OPTIONS(range_attrs, RANGE_ATTRS);

static bool is_int32(double x)
{
    return x >= INT32_MIN && x <= INT32_MAX && x == floor(x);
}

/* An integer, and so small that no integer nearby was rounded to it. */
static bool is_exact(double x)
{
    return fabs(x) <= 0x1p53 && x == floor(x);
}

static bool is_int64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 && x == floor(x);
}

/* Whether start, delta and the last of n elements are numbers of an integer dtype. */
static bool range_fits(const range_attrs *r, ed_dtype dtype, int64_t n)
{
    if (!(ED_SET_INDEX & 1u << dtype) && dtype != ED_UINT8) return true;
    if (!is_int64(r->start) || !is_int64(r->delta)) return false;
    int64_t last;
    if (__builtin_mul_overflow((int64_t)r->delta, n ? n - 1 : 0, &last) ||
        __builtin_add_overflow((int64_t)r->start, last, &last))
        return false;
    int64_t low = dtype == ED_INT32 ? INT32_MIN : dtype == ED_UINT8 ? 0 : INT64_MIN;
    int64_t high = dtype == ED_INT32 ? INT32_MAX : dtype == ED_UINT8 ? UINT8_MAX : INT64_MAX;
    int64_t start = (int64_t)r->start;
    return start >= low && start <= high && last >= low && last <= high;
}

static bool range_infer(ed_call *call)
{
    const range_attrs *r = call->attrs;
    bool small = is_int32(r->start) && is_int32(r->limit) && is_int32(r->delta);
    bool whole = is_exact(r->start) && is_exact(r->limit) && is_exact(r->delta);
    ed_dtype dtype = dtype_or(r->dtype, small ? ED_INT32 : whole ? ED_INT64 : ED_FLOAT32);
    if (!checked_dtype(call, dtype, ED_SET_NUMBER)) return false;
    double count = ceil((r->limit - r->start) / r->delta);
    if (r->delta == 0 || isinf(r->delta) || isnan(count))
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT,
            "start %g, limit %g, delta %g: delta must be finite and not 0, no argument NaN",
            r->start, r->limit, r->delta);
    if (count >= 0x1p62)
        return ed_call_fail(call, ED_OUT_OF_MEMORY,
                            "start %g, limit %g, delta %g give more elements than memory can hold",
                            r->start, r->limit, r->delta);
    int64_t n = count > 0 ? (int64_t)count : 0;
    if (!range_fits(r, dtype, n))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "start %.17g, limit %.17g, delta %.17g cannot be represented as %s",
                            r->start, r->limit, r->delta, ed_dtype_name(dtype));
    return ed_call_output(call, 0, dtype, 1, &n);
}

/* Floats are start + i delta in double precision, rounded once; integers are exact. */
#define RANGE_FLOATS(type)                                                                         \
    for (int32_t i = 0; i < n; i++)                                                                \
        ((type *)to)[i] = (type)(r->start + ((double)first + i) * r->delta);                       \
    break
#define RANGE_INTEGERS(type)                                                                       \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i] = (type)(start + (first + i) * delta);         \
    break

static void range_some(const void *attrs, ed_dtype dtype, int64_t first, int32_t n, void *to)
{
    const range_attrs *r = attrs;
    const bool floats = dtype == ED_FLOAT32 || dtype == ED_FLOAT64;
    const int64_t start = floats ? 0 : (int64_t)r->start, delta = floats ? 0 : (int64_t)r->delta;
    switch (dtype) {
    case ED_FLOAT32: RANGE_FLOATS(float);
    case ED_FLOAT64: RANGE_FLOATS(double);
    case ED_INT32: RANGE_INTEGERS(int32_t);
    case ED_INT64: RANGE_INTEGERS(int64_t);
    default: RANGE_INTEGERS(uint8_t);
    }
}

static bool range_kernel(ed_call *call)
{
    return make_numbers(call, range_some);
}

static bool range_plain(const ed_call *call)
{
    const range_attrs *r = call->attrs;
    for (int64_t i = 0; i < call->outputs[0]->size; i++)
        ((double *)call->outputs[0]->data)[i] = r->start + (double)i * r->delta;
    return true;
}

ED_OP(range) = {
    .name = "range",
    .doc = "start, start + delta, ... up to but without limit",
    ED_OP_ATTRS(RANGE_ATTRS, range_attrs),
    .infer = range_infer,
    .kernel = range_kernel,
    .no_gradient = from_nothing,
    .reference = range_plain,
    .samples = ED_SAMPLES({.attrs = ED_ATTRS(RANGE_ATTRS, range_attrs, .limit = 5)},
                          {.attrs = ED_ATTRS(RANGE_ATTRS, range_attrs, .start = 2, .limit = -3,
                                             .delta = -0.5, .dtype = ED_FLOAT64)},
                          {.attrs = ED_ATTRS(RANGE_ATTRS, range_attrs, .start = 3, .limit = 3,
                                             .dtype = ED_INT64)}),
};

ed_tensor *ed_range_with(double start, double limit, const ed_range_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_RANGE_OPTIONS, options);
    return ed_call_op(
        &ed_op_range, NULL, 0,
        ED_OPTIONS_FROM(ED_RANGE_OPTIONS, options, range_attrs, .start = start, .limit = limit));
}

/* ---- linspace -------------------------------------------------------------------------------- */

#define LINSPACE_ATTRS(FIELD, T)                                                                   \
    FIELD(T, FLOAT, start, 0, ED_ANY, "the first number")                                          \
    FIELD(T, FLOAT, stop, 0, ED_ANY, "the last number")                                            \
    FIELD(T, INT, num, 50, ED_AT_LEAST(0), "number of elements") ED_CREATE_OPTIONS(FIELD, T)
ED_OPTIONS(linspace_attrs, LINSPACE_ATTRS);

static bool linspace_infer(ed_call *call)
{
    const linspace_attrs *attrs = call->attrs;
    ed_dtype dtype = dtype_or(attrs->dtype, ED_FLOAT32);
    return checked_dtype(call, dtype, ED_SET_FLOAT) &&
           ed_call_output(call, 0, dtype, 1, &attrs->num);
}

/* The ends are exact. Number i, if they lie so far apart that a step overflows. */
static double linspace_far(const linspace_attrs *a, int64_t i)
{
    const double gaps = (double)(a->num - 1);
    return a->start * ((gaps - (double)i) / gaps) + a->stop * ((double)i / gaps);
}

static void linspace_some(const void *attrs, ed_dtype dtype, int64_t first, int32_t n, void *to)
{
    const linspace_attrs *a = attrs;
    const double gaps = (double)(a->num - 1), step = (a->stop - a->start) / gaps;
    const int32_t begin = first == 0, end = first + n == a->num && a->num > 1 ? n - 1 : n;
    if (isinf(step)) {
        for (int32_t i = begin; i < end; i++) dtype_store(dtype, to, i, linspace_far(a, first + i));
    } else if (dtype == ED_FLOAT32) {
        for (int32_t i = begin; i < end; i++)
            ((float *)to)[i] = (float)(a->start + ((double)first + i) * step);
    } else {
        for (int32_t i = begin; i < end; i++)
            ((double *)to)[i] = a->start + ((double)first + i) * step;
    }
    if (begin) dtype_store(dtype, to, 0, a->start);
    if (end < n) dtype_store(dtype, to, end, a->stop);
}

static bool linspace_kernel(ed_call *call)
{
    return make_numbers(call, linspace_some);
}

static bool linspace_plain(const ed_call *call)
{
    const linspace_attrs *a = call->attrs;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < a->num; i++)
        y[i] = a->num == 1 ? a->start
                           : a->start + (a->stop - a->start) * (double)i / (double)(a->num - 1);
    return true;
}

#define LINE(from, to, count, of)                                                                  \
    {                                                                                              \
        .attrs = ED_ATTRS(LINSPACE_ATTRS, linspace_attrs, .start = from, .stop = to, .num = count, \
                          .dtype = of)                                                             \
    }

ED_OP(linspace) = {
    .name = "linspace",
    .doc = "evenly spaced numbers, both ends included",
    ED_OP_ATTRS(LINSPACE_ATTRS, linspace_attrs),
    .infer = linspace_infer,
    .kernel = linspace_kernel,
    .no_gradient = from_nothing,
    .reference = linspace_plain,
    .samples = ED_SAMPLES(LINE(0, 1, 5, ED_FLOAT32), LINE(3, -2, 7, ED_FLOAT64),
                          LINE(1, 2, 1, ED_FLOAT64), LINE(1, 2, 0, ED_FLOAT64)),
};

ed_tensor *ed_linspace_with(double start, double stop, int64_t num,
                            const ed_create_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CREATE_OPTIONS, options);
    return ed_call_op(&ed_op_linspace, NULL, 0,
                      ED_OPTIONS_FROM(ED_CREATE_OPTIONS, options, linspace_attrs, .start = start,
                                      .stop = stop, .num = num));
}
