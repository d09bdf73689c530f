/* Pools to a given size, axis by axis: compositions of slices and reductions, of avg_pool2d and
 * max_pool2d where these have the same windows. */
#include "ops/conv.h"
#include <math.h>

typedef ed_tensor *adaptive_reduction(ed_tensor *x, const ed_reduce_options *options);

/* Reduces one axis, which stays with size 1. */
static ed_tensor *reduced(ed_tensor *x, int axis, adaptive_reduction *reduce)
{
    return reduce(
        x, ED_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options, .axis = ED_AXES(axis), .keepdims = true));
}

/* Cells begin to end - 1 along an axis. */
static ed_tensor *cells_of(ed_tensor *x, int axis, int64_t begin, int64_t end)
{
    int64_t first[ED_MAX_RANK] = {0}, last[ED_MAX_RANK];
    for (int i = 0; i < axis; i++) last[i] = ed_dim(x, i);
    first[axis] = begin, last[axis] = end;
    return ed_slice(x, .begin = {first, axis + 1}, .end = {last, axis + 1});
}

static int64_t bin_begin(int64_t n, int64_t m, int64_t i)
{
    return i * n / m;
}

static int64_t bin_end(int64_t n, int64_t m, int64_t i)
{
    return ((i + 1) * n + m - 1) / m;
}

/* The axis in m windows of the same size, by a view that has them along an axis of their own. */
static ed_tensor *pooled_evenly(ed_tensor *x, int axis, int64_t m, adaptive_reduction *reduce)
{
    const ed_ints shape = ed_shape(x);
    int64_t split[ED_MAX_RANK + 1];
    for (int i = 0; i < shape.count; i++) split[i < axis ? i : i + 1] = shape.values[i];
    split[axis] = m;
    split[axis + 1] = shape.values[axis] / m;
    ed_tensor *bins = ed_reshape(x, ((ed_ints){split, shape.count + 1}));
    return reduce(bins, ED_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options, .axis = ED_AXES(axis + 1)));
}

/* The axis in m windows. */
static ed_tensor *pooled(ed_tensor *x, int axis, int64_t m, adaptive_reduction *reduce)
{
    const int64_t n = ed_dim(x, axis);
    if (m == n) return x;
    if (m == 1) return reduced(x, axis, reduce);
    if (n % m == 0) return pooled_evenly(x, axis, m, reduce);
    ed_tensor **bins = ed_scope_alloc((size_t)m * sizeof *bins);
    if (!bins) return NULL;
    for (int64_t i = 0; i < m; i++) {
        bins[i] = reduced(cells_of(x, axis, bin_begin(n, m, i), bin_end(n, m, i)), axis, reduce);
        if (!bins[i]) return NULL;
    }
    return ed_concat(ed_list_make(bins, m), .axis = axis);
}

/* What the options say of `rank` spatial axes: the first of them, and their sizes. */
static bool adaptive_sizes(const ed_call *call, ed_ints given, const char *format, int rank,
                           int *axis, int64_t *sizes)
{
    ed_tensor *x = call->inputs[0];
    *axis = window_channels_first(format) ? 2 : 1;
    if (ed_rank(x) != rank + 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank %d, got %s", rank + 2,
                            text_of_ints(ed_shape(x).values, ed_rank(x)).s);
    if (!spatial_numbers(call, "output_size", given, rank, 1, 1, sizes)) return false;
    for (int i = 0; i < rank; i++)
        if (ed_dim(x, *axis + i) == 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "x has no cells to pool, it is %s",
                                text_of_ints(ed_shape(x).values, ed_rank(x)).s);
    return true;
}

enum { FEW_CELLS = 16 }; /* of a window, whose sum one after the other is as exact as any */

/* Whether it is avg_pool2d or max_pool2d, which make y: in windows of the same size, of means small
 * ones. The gradient of max_pool2d is another one where cells are equal. */
static bool pooled_2d(ed_tensor *x, int axis, const int64_t *wanted, const char *format,
                      adaptive_reduction *reduce, ed_tensor **y)
{
    const int64_t height = ed_dim(x, axis), width = ed_dim(x, axis + 1);
    const bool largest = reduce == ed_reduce_max_with;
    if (height % wanted[0] != 0 || width % wanted[1] != 0) return false;
    const int64_t cells[] = {height / wanted[0], width / wanted[1]};
    if (largest ? ops_differentiated() > 0 : cells[0] * cells[1] > FEW_CELLS) return false;
    const ed_pool2d_options *windows =
        ED_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options, .window = {cells, 2}, .data_format = format);
    *y = largest ? ed_max_pool2d_with(x, windows) : ed_avg_pool2d_with(x, windows);
    return true;
}

static bool adaptive_compose(ed_call *call, ed_ints sizes, const char *format, int rank,
                             adaptive_reduction *reduce)
{
    int64_t wanted[3];
    int axis;
    ed_tensor *y = call->inputs[0];
    if (!adaptive_sizes(call, sizes, format, rank, &axis, wanted)) return false;
    if (rank == 2 && pooled_2d(y, axis, wanted, format, reduce, &y))
        return ed_call_result(call, 0, y);
    for (int i = 0; y && i < rank; i++) y = pooled(y, axis + i, wanted[i], reduce);
    return ed_call_result(call, 0, y == call->inputs[0] ? ed_identity(y) : y);
}

/* ---- The reference --------------------------------------------------------------------------- */

/* One result from all cells of its window. */
static double adaptive_value(const ed_tensor *x, const ed_tensor *y, const int64_t *at, int axis,
                             int rank, bool maximum)
{
    double value = maximum ? -INFINITY : 0, count = 0;
    for (int64_t e = 0; e < x->size; e++) {
        bool inside = true;
        int64_t rest = e;
        for (int i = x->rank - 1; i >= 0; i--) {
            const int64_t cell = rest % x->shape[i], n = x->shape[i], m = y->shape[i];
            const bool spatial = i >= axis && i < axis + rank;
            rest /= n;
            inside =
                inside && (spatial ? cell >= bin_begin(n, m, at[i]) && cell < bin_end(n, m, at[i])
                                   : cell == at[i]);
        }
        if (!inside) continue;
        const double v = ((const double *)x->data)[e];
        count++;
        value = !maximum ? value + v : isnan(value) || isnan(v) ? NAN : fmax(value, v);
    }
    return maximum ? value : value / count;
}

static bool adaptive_reference(const ed_call *call, ed_ints sizes, const char *format, int rank,
                               bool maximum)
{
    const ed_tensor *y = call->outputs[0];
    int64_t wanted[3];
    int axis;
    if (!adaptive_sizes(call, sizes, format, rank, &axis, wanted)) return false;
    for (int64_t e = 0; e < y->size; e++) {
        int64_t at[5], rest = e;
        for (int i = y->rank - 1; i >= 0; i--) {
            at[i] = rest % y->shape[i];
            rest /= y->shape[i];
        }
        ((double *)y->data)[e] = adaptive_value(call->inputs[0], y, at, axis, rank, maximum);
    }
    return true;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define ADAPTIVE(symbol, n, reduce, maximum, text, ...)                                            \
    extern const ed_op ed_op_##symbol;                                                             \
    static bool symbol##_compose(ed_call *call)                                                    \
    {                                                                                              \
        const ed_adaptive_pool##n##d_options *o = call->attrs;                                     \
        return adaptive_compose(call, o->output_size, o->data_format, n, reduce);                  \
    }                                                                                              \
    static bool symbol##_reference(const ed_call *call)                                            \
    {                                                                                              \
        const ed_adaptive_pool##n##d_options *o = call->attrs;                                     \
        return adaptive_reference(call, o->output_size, o->data_format, n, maximum);               \
    }                                                                                              \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"x", ED_SET_FLOAT, 'T'}},                                       \
                     ED_OP_ATTRS(ED_ADAPTIVE_POOL##n##D_OPTIONS, ed_adaptive_pool##n##d_options),  \
                     .compose = symbol##_compose,                                                  \
                     .reference = symbol##_reference,                                              \
                     .samples = ED_SAMPLES(__VA_ARGS__)};                                          \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_adaptive_pool##n##d_options *options)     \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }                                                                                              \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_adaptive_pool##n##d_options *options)

#define ATTRS(n, ...)                                                                              \
    .attrs = ED_ATTRS(ED_ADAPTIVE_POOL##n##D_OPTIONS, ed_adaptive_pool##n##d_options, __VA_ARGS__)
#define SAMPLES_1D(IN)                                                                             \
    {.inputs = {IN(-2, 2, 2, 7, 3)}, ATTRS(1, .output_size = ED_SAMPLE_INTS(3))},                  \
    {                                                                                              \
        .inputs = {IN(-2, 2, 2, 3, 4)},                                                            \
        ATTRS(1, .output_size = ED_SAMPLE_INTS(6), .data_format = "NCW")                           \
    }
#define SAMPLES_2D(IN)                                                                             \
    {.inputs = {IN(-2, 2, 1, 5, 4, 2)}, ATTRS(2, .output_size = ED_SAMPLE_INTS(3, 2))},            \
    {                                                                                              \
        .inputs = {IN(-2, 2, 1, 2, 3, 5)}, ATTRS(2, .data_format = "NCHW")                         \
    }
#define SAMPLES_3D(IN)                                                                             \
    {                                                                                              \
        .inputs = {IN(-2, 2, 1, 3, 4, 2, 2)}, ATTRS(3, .output_size = ED_SAMPLE_INTS(2, 3, 2))     \
    }

ADAPTIVE(adaptive_avg_pool1d, 1, ed_reduce_mean_with, false, "y = the means of so many windows",
         SAMPLES_1D(ED_SAMPLE_IN));
ADAPTIVE(adaptive_avg_pool2d, 2, ed_reduce_mean_with, false, "y = the means of so many windows",
         SAMPLES_2D(ED_SAMPLE_IN));
ADAPTIVE(adaptive_avg_pool3d, 3, ed_reduce_mean_with, false, "y = the means of so many windows",
         SAMPLES_3D(ED_SAMPLE_IN));
ADAPTIVE(adaptive_max_pool1d, 1, ed_reduce_max_with, true, "y = the maxima of so many windows",
         SAMPLES_1D(ED_DISTINCT_IN));
ADAPTIVE(adaptive_max_pool2d, 2, ed_reduce_max_with, true, "y = the maxima of so many windows",
         SAMPLES_2D(ED_DISTINCT_IN));
ADAPTIVE(adaptive_max_pool3d, 3, ed_reduce_max_with, true, "y = the maxima of so many windows",
         SAMPLES_3D(ED_DISTINCT_IN));
