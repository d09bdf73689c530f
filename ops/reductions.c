/*
 * The reduction ops: shape rule, reference and gradient of each; what computes is in reduce.c and
 * reduce.simd.c.
 */
#include "ops/reductions.h"
#include <math.h>

/* ---- Shapes, kernel, reference --------------------------------------------------------------- */

int reduce_shape(ed_ints shape, unsigned mask, bool keepdims, int64_t *out)
{
    int rank = 0;
    for (int d = 0; d < shape.count; d++) {
        if (!(mask & 1u << d))
            out[rank++] = shape.values[d];
        else if (keepdims)
            out[rank++] = 1;
    }
    return rank;
}

bool reduce_infer(ed_call *call)
{
    const ed_reduce_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0];
    unsigned *mask = ed_call_plan(call, sizeof *mask);
    int64_t shape[ED_MAX_RANK];
    if (!ops_axes(call, options->axis, x->rank, mask)) return false;
    int rank = reduce_shape((ed_ints){x->shape, x->rank}, *mask, options->keepdims, shape);
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

/* The same for ops that have no value for nothing. */
static bool extreme_infer(ed_call *call)
{
    if (!reduce_infer(call)) return false;
    const ed_tensor *x = call->inputs[0];
    if (x->size > 0 || call->outputs[0]->size == 0) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "the reduced axes of %s are empty; there is no largest or smallest element",
                        text_of_tensor(x).s);
}

bool reduce_reference(const ed_call *call,
                      double (*f)(const double *x, int64_t n, const void *attrs))
{
    const ed_reduce_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    unsigned mask;
    if (!ops_axes(call, options->axis, x->rank, &mask)) return false;
    int64_t n = y->size ? x->size / y->size : 0; /* elements of each group */
    double *groups = memory_alloc((size_t)(x->size + 1) * sizeof *groups);
    int64_t *filled = memory_zalloc((size_t)(y->size + 1) * sizeof *filled);
    for (int64_t i = 0; groups && filled && i < x->size; i++) {
        int64_t rest = i, output = 0, apart = 1;
        for (int d = x->rank - 1; d >= 0; d--) {
            if (!(mask & 1u << d)) {
                output += rest % x->shape[d] * apart;
                apart *= x->shape[d];
            }
            rest /= x->shape[d];
        }
        groups[output * n + filled[output]++] = ((const double *)x->data)[i];
    }
    for (int64_t o = 0; groups && filled && o < y->size; o++)
        ((double *)y->data)[o] = f(groups + o * n, n, call->attrs);
    bool ok = groups && filled;
    memory_free(groups);
    memory_free(filled);
    return ok;
}

/* ---- What gradients share -------------------------------------------------------------------- */

unsigned reduce_mask_of(const ed_gradient_call *g)
{
    const ed_reduce_options *options = g->attrs;
    int rank = (int)g->shapes[0].count;
    if (!options->axis.values) return (1u << rank) - 1;
    unsigned mask = 0;
    for (int64_t i = 0; i < options->axis.count; i++)
        mask |= 1u << tensor_axis(options->axis.values[i], rank);
    return mask;
}

double reduce_count_of(const ed_gradient_call *g)
{
    unsigned mask = reduce_mask_of(g);
    double n = 1;
    for (int d = 0; d < g->shapes[0].count; d++)
        if (mask & 1u << d) n *= (double)g->shapes[0].values[d];
    return n;
}

ed_tensor *reduce_kept(const ed_gradient_call *g, ed_tensor *t)
{
    int64_t shape[ED_MAX_RANK];
    if (((const ed_reduce_options *)g->attrs)->keepdims) return t;
    return ed_reshape(t,
                      (ed_ints){shape, reduce_shape(g->shapes[0], reduce_mask_of(g), true, shape)});
}

const ed_reduce_options *reduce_keeping(const ed_gradient_call *g, ed_reduce_options *options)
{
    *options = (ed_reduce_options)ED_COMPLETE(
        ED_REDUCE_OPTIONS, , .axis = ((const ed_reduce_options *)g->attrs)->axis, .keepdims = true);
    return options;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* reduce_sum: y = sum of x, dx = dy for each element */
KERNEL(reduce_sum, REDUCE_SUM)
PLAIN(reduce_sum, reduce_plain(false, x, n))

static bool reduce_sum_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_broadcast_to(reduce_kept(g, g->dy[0]), g->shapes[0]);
    return true;
}

REDUCTION(reduce_sum, "y = sum of x over the axes", ED_SET_NUMBER, reduce_infer,
          .gradient = reduce_sum_gradient, .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* reduce_mean: y = sum of x / n, dx = dy / n; of integers by int64, towards 0 */
static ed_tensor *widened(const ed_tensor *x)
{
    ed_tensor *packed = tensor_contiguous(x);
    if (!packed || x->dtype == ED_INT64) return packed;
    ed_tensor *wide = tensor_new(ED_INT64, x->rank, x->shape);
    int64_t *to = wide ? (int64_t *)wide->data : NULL;
    for (int64_t i = 0; wide && i < x->size; i++)
        to[i] = x->dtype == ED_INT32 ? ((const int32_t *)packed->data)[i]
                                     : ((const uint8_t *)packed->data)[i];
    ed_release(packed);
    return wide;
}

static bool mean_of_integers(const ed_call *call)
{
    ed_tensor *y = call->outputs[0], *wide = widened(call->inputs[0]);
    int64_t *sums = wide ? memory_alloc((size_t)(y->size + 1) * sizeof *sums) : NULL;
    bool ok = sums && reduce_run(REDUCE_SUM, wide, *(const unsigned *)call->plan, sums, NULL);
    const int64_t n = y->size ? call->inputs[0]->size / y->size : 1;
    for (int64_t i = 0; ok && i < y->size; i++) switch (y->dtype) {
        case ED_INT64: ((int64_t *)y->data)[i] = sums[i] / n; break;
        case ED_INT32: ((int32_t *)y->data)[i] = (int32_t)(sums[i] / n); break;
        default: ((uint8_t *)y->data)[i] = (uint8_t)(sums[i] / n);
        }
    memory_free(sums);
    ed_release(wide);
    return ok;
}

static bool reduce_mean_kernel(ed_call *call)
{
    if (!ed_dtype_is_float(call->inputs[0]->dtype)) return mean_of_integers(call);
    return reduce_run(REDUCE_MEAN, call->inputs[0], *(const unsigned *)call->plan,
                      call->outputs[0]->data, NULL);
}

/* Of integers nothing has no mean. */
static bool mean_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (!reduce_infer(call)) return false;
    return ed_dtype_is_float(x->dtype) || x->size || !call->outputs[0]->size ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "the reduced axes of %s are empty",
                        text_of_tensor(x).s);
}

PLAIN(reduce_mean, reduce_plain(false, x, n) / (double)n)

static bool reduce_mean_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_broadcast_to(reduce_kept(g, ed_div(g->dy[0], reduce_count_of(g))), g->shapes[0]);
    return true;
}

REDUCTION(reduce_mean, "y = mean of x over the axes; NaN of nothing", ED_SET_NUMBER, mean_infer,
          .flags = ED_OP_PREFERS_FLOATS, .gradient = reduce_mean_gradient,
          .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

ed_tensor *ops_sum_to(ed_tensor *dy, ed_ints shape)
{
    if (!dy) return NULL;
    const ed_tensor *value = tensor_value(dy);
    int leading = value->rank - (int)shape.count, n = 0;
    int64_t axes[ED_MAX_RANK];
    bool inner = false;
    for (int d = 0; d < value->rank; d++) {
        if (d >= leading && (shape.values[d - leading] != 1 || value->shape[d] == 1)) continue;
        inner |= d >= leading;
        axes[n++] = d;
    }
    if (!n) return dy;
    ed_tensor *sum = ed_reduce_sum(dy, .axis = {axes, n}, .keepdims = inner);
    return inner && leading ? ed_reshape(sum, shape) : sum;
}

/* ---- Product --------------------------------------------------------------------------------- */

/* x [outer, n] moved on by `by` along the last axis; ones come in. */
static ed_tensor *moved_on(ed_tensor *x, int64_t by)
{
    ed_tensor *head = ed_slice(x, .end = ED_INTS(ed_dim(x, 0), ed_dim(x, 1) - by));
    return ed_pad(head, .before = ED_INTS(0, by), .after = ED_INTS(0, 0), .value = 1);
}

/*
 * The product of all before each element along the last axis: of the one before, then of 2, 4, 8,
 * ... Nothing is divided, so zeros do no harm, in gradients of any order either.
 */
static ed_tensor *products_before(ed_tensor *x)
{
    if (!x) return NULL;
    int64_t n = ed_dim(x, 1);
    x = moved_on(x, 1);
    for (int64_t have = 1; x && have < n - 1; have *= 2) x = ed_mul(x, moved_on(x, have));
    return x;
}

/* reduce_prod: y = product of x, dx = dy times the product of the others */
KERNEL(reduce_prod, REDUCE_PROD)
PLAIN(reduce_prod, reduce_plain(true, x, n))

static bool reduce_prod_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_ints shape = g->shapes[0];
    unsigned mask = reduce_mask_of(g);
    int64_t order[ED_MAX_RANK], back[ED_MAX_RANK], count = 1, outer = 1;
    int rank = 0;
    for (int gone = 0; gone < 2; gone++)
        for (int d = 0; d < shape.count; d++)
            if (!(mask & 1u << d) == !gone) {
                back[d] = rank;
                order[rank++] = d;
                *(gone ? &count : &outer) *= shape.values[d];
            }
    if (!count || !outer) {
        g->dx[0] = ed_keep(ed_zeros(shape, .dtype = g->dtypes[0]));
        return true;
    }
    ed_tensor *x = ed_transpose(g->inputs[0], .perm = {order, rank});
    if (!x) return false;
    int64_t moved[ED_MAX_RANK];
    for (int d = 0; d < rank; d++) moved[d] = x->shape[d];
    x = ed_reshape(x, ED_SHAPE(outer, count));
    ed_tensor *after = ed_reverse(products_before(ed_reverse(x, ED_AXES(1))), ED_AXES(1));
    ed_tensor *others = ed_mul(products_before(x), after);
    others = ed_transpose(ed_reshape(others, (ed_ints){moved, rank}), .perm = {back, rank});
    g->dx[0] = ed_keep(ed_mul(others, reduce_kept(g, g->dy[0])));
    return true;
}

REDUCTION(reduce_prod, "y = product of x over the axes", ED_SET_NUMBER, reduce_infer,
          .gradient = reduce_prod_gradient, SAVES_X, .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* ---- Largest and smallest -------------------------------------------------------------------- */

/* reduce_max: y = largest of x, dx = dy / k for the k elements that equal it;
 * 0 / 0 where y is NaN */
KERNEL(reduce_max, REDUCE_MAX)
PLAIN_LOOP(reduce_max, -INFINITY, x[i] > y || x[i] != x[i] ? x[i] : y)

static bool extreme_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_reduce_options options;
    ed_tensor *ties = ed_cast(ed_equal(g->inputs[0], reduce_kept(g, g->outputs[0])), g->dtypes[0]);
    ed_tensor *share =
        ed_div(reduce_kept(g, g->dy[0]), ed_reduce_sum_with(ties, reduce_keeping(g, &options)));
    g->dx[0] = ed_keep(ed_mul(ties, share));
    return true;
}

REDUCTION(reduce_max, "y = largest of x over the axes; ties share the gradient", ED_SET_NUMBER,
          extreme_infer, .gradient = extreme_gradient, SAVES_X, SAVES_Y,
          .samples = SAMPLES(ED_DISTINCT_IN, -2, 2))

/* reduce_min: y = smallest of x, its gradient like the largest's */
KERNEL(reduce_min, REDUCE_MIN)
PLAIN_LOOP(reduce_min, INFINITY, x[i] < y || x[i] != x[i] ? x[i] : y)
REDUCTION(reduce_min, "y = smallest of x over the axes; ties share the gradient", ED_SET_NUMBER,
          extreme_infer, .gradient = extreme_gradient, SAVES_X, SAVES_Y,
          .samples = SAMPLES(ED_DISTINCT_IN, -2, 2))

/* reduce_any, reduce_all: whether any, all are true */
KERNEL(reduce_any, REDUCE_MAX)
KERNEL(reduce_all, REDUCE_MIN)
PLAIN_LOOP(reduce_any, 0, y != 0 || x[i] != 0)
PLAIN_LOOP(reduce_all, 1, y != 0 && x[i] != 0)
REDUCTION(reduce_any, "whether any of x over the axes is true", ED_SET_BOOL, reduce_infer,
          .no_gradient = "truth does not change gradually", .samples = SAMPLES(ED_SAMPLE_IN, 0, 1))
REDUCTION(reduce_all, "whether all of x over the axes are true", ED_SET_BOOL, reduce_infer,
          .no_gradient = "truth does not change gradually", .samples = SAMPLES(ED_SAMPLE_IN, 0, 1))

/* ---- Sum of exponentials --------------------------------------------------------------------- */

/* reduce_logsumexp: y = ln sum e^x, dx = dy e^(x - y) */
KERNEL(reduce_logsumexp, REDUCE_LOGSUMEXP)

static double logsumexp_of(const double *x, int64_t n)
{
    double m = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    if (!isfinite(m)) m = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - m);
    return m + log(sum);
}

PLAIN(reduce_logsumexp, logsumexp_of(x, n))

static bool reduce_logsumexp_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *part = ed_exp(ed_sub(g->inputs[0], reduce_kept(g, g->outputs[0])));
    g->dx[0] = ed_keep(ed_mul(part, reduce_kept(g, g->dy[0])));
    return true;
}

REDUCTION(reduce_logsumexp, "y = ln of the sum of e^x over the axes", ED_SET_FLOAT, reduce_infer,
          .gradient = reduce_logsumexp_gradient, SAVES_X, SAVES_Y,
          .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* ---- Index of the best ----------------------------------------------------------------------- */

static bool best_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int axis;
    int64_t shape[ED_MAX_RANK];
    if (!ops_axis(call, ((const ed_argmax_options *)call->attrs)->axis, x->rank, &axis))
        return false;
    *(int *)ed_call_plan(call, sizeof axis) = axis;
    int rank = reduce_shape((ed_ints){x->shape, x->rank}, 1u << axis, false, shape);
    if (!ed_call_output(call, 0, ED_INT64, rank, shape)) return false;
    if (x->shape[axis] || !call->outputs[0]->size) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "axis %lld of %s is empty; there is no index",
                        text_nth(axis), text_of_tensor(x).s);
}

static bool plain_best(const ed_call *call, bool smallest)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    int axis;
    if (!ops_axis(call, ((const ed_argmax_options *)call->attrs)->axis, x->rank, &axis))
        return false;
    int64_t n = x->shape[axis], inner = 1;
    for (int d = axis + 1; d < x->rank; d++) inner *= x->shape[d];
    for (int64_t o = 0; o < y->size; o++) {
        const double *from = (const double *)x->data + o / inner * inner * n + o % inner;
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++) {
            double v = from[i * inner], b = best < 0 ? 0 : from[best * inner];
            if (v == v && (best < 0 || (smallest ? v < b : v > b))) best = i;
        }
        ((double *)y->data)[o] = best < 0 ? 0 : (double)best;
    }
    return true;
}

#define ALONG(...) ED_ATTRS(ED_ARGMAX_OPTIONS, ed_argmax_options, __VA_ARGS__)
#define BEST(symbol, text, smallest)                                                               \
    static bool symbol##_kernel(ed_call *call)                                                     \
    {                                                                                              \
        return reduce_best(call->inputs[0], 1u << *(const int *)call->plan, smallest,              \
                           (int64_t *)call->outputs[0]->data);                                     \
    }                                                                                              \
    static bool plain_##symbol(const ed_call *call)                                                \
    {                                                                                              \
        return plain_best(call, smallest);                                                         \
    }                                                                                              \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = X(ED_SET_NUMBER),                                                 \
                     ED_OP_ATTRS(ED_ARGMAX_OPTIONS, ed_argmax_options),                            \
                     .infer = best_infer,                                                          \
                     .batch = ed_batch_axes,                                                       \
                     .kernel = symbol##_kernel,                                                    \
                     .reference = plain_##symbol,                                                  \
                     .no_gradient = "an index does not change gradually",                          \
                     .samples = ED_SAMPLES(                                                        \
                         {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4)}},                                \
                         {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 4, 2)}, .attrs = ALONG(.axis = 1)},  \
                         {.inputs = {ED_DISTINCT_IN(-2, 2, 3, 70)}, .attrs = ALONG(.axis = -1)})}; \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_argmax_options *options)                  \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

/* argmax, argmin: the first index of the largest, the smallest */
BEST(argmax, "index of the largest of x along the axis, the first of equals", false)
BEST(argmin, "index of the smallest of x along the axis, the first of equals", true)
