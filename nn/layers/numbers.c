#include "nn/layer_core.h"
#include "nn/layers/categories.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* rescaling, normalization, discretization, category_encoding; and what takes statistics of
 * data. */

/* x as floats: as it is, or integers as float32 or the layer's dtype. */
static ed_tensor *as_floats(const ed_layer *layer, ed_tensor *x)
{
    if (ed_dtype_is_float(x->dtype)) return x;
    return ed_cast(x, layer->dtype ? layer->dtype : ED_FLOAT32);
}

/* ---- rescaling ------------------------------------------------------------------------------- */

static bool rescaling_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_rescaling_options *o = layer_options(layer);
    ed_tensor *x = as_floats(layer, call->inputs[0]);
    return ed_layer_return(call, x ? ed_add(ed_mul(x, o->scale), o->offset) : NULL);
}

LAYER(rescaling, RESCALING, 1, "x scale + offset", .forward = rescaling_forward,
      .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(rescaling, RESCALING, .scale = 2, .offset = -1),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

/* ---- normalization --------------------------------------------------------------------------- */

typedef struct normalization {
    ed_tensor *mean, *variance, *count; /* the layer's; count NULL: the others are constants */
    ed_tensor *constants[2];            /* retained; or NULL */
    int rank;                           /* of the input */
    bool kept[ED_MAX_RANK];             /* axes with statistics of their own */
    int64_t shape[ED_MAX_RANK];         /* of the statistics, 1 on the other axes */
} normalization;

static bool find_kept(ed_layer *layer, normalization *n, const ed_tensor *x)
{
    static const int64_t last = -1;
    const ed_layer_normalization_options *o = layer_options(layer);
    const ed_ints axis = o->axis.values ? o->axis : (ed_ints){&last, 1};
    memset(n->kept, 0, sizeof n->kept);
    n->rank = x->rank;
    for (int64_t i = 0; i < axis.count; i++) {
        const int64_t given = axis.values[i], at = given < 0 ? given + x->rank : given;
        if (at < 0 || at >= x->rank)
            return layer_fail(layer, ED_INVALID_ARGUMENT, "axis: %lld is out of bounds for %s",
                              text_nth(given), text_of_tensor(x).s);
        n->kept[at] = true;
    }
    for (int i = 0; i < x->rank; i++) n->shape[i] = n->kept[i] ? x->shape[i] : 1;
    return true;
}

/* A constant of the statistics' shape from one number, or from one for each element. */
static ed_tensor *constant_of(ed_layer *layer, const normalization *n, const char *name,
                              ed_floats given, ed_dtype dtype)
{
    int64_t size = 1;
    for (int i = 0; i < n->rank; i++) size *= n->shape[i];
    if (given.count != 1 && given.count != size)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "%s must be 1 or %lld numbers, got %lld",
                          name, (long long)size, (long long)given.count);
    const int64_t count = given.count;
    ed_tensor *t = ed_constant_of(ED_FLOAT64, given.values, ED_SHAPE(count));
    if (t && count != 1) t = ed_reshape(t, ((ed_ints){n->shape, n->rank}));
    return t ? ed_cast(t, dtype) : NULL;
}

static void drop_constants(normalization *n)
{
    for (int i = 0; i < 2; i++) {
        ed_release(n->constants[i]);
        n->constants[i] = NULL;
    }
}

static bool add_statistics(ed_layer *layer, normalization *n, ed_dtype dtype)
{
    int64_t shape[ED_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < n->rank; i++)
        if (n->kept[i]) shape[rank++] = n->shape[i];
    n->mean = ed_layer_add_weight(layer, "mean", ((ed_ints){shape, rank}), .dtype = dtype,
                                  .initializer = ed_initializer_zeros(), .trainable = false);
    if (!n->mean) return false;
    n->variance = ed_layer_add_weight(layer, "variance", ((ed_ints){shape, rank}), .dtype = dtype,
                                      .initializer = ed_initializer_ones(), .trainable = false);
    if (!n->variance) return false;
    ed_tensor *count = ed_variable(ed_scalar(0, .dtype = ED_INT64), .trainable = false);
    return count && (n->count = ed_layer_adopt_weight(layer, "count", count));
}

static bool normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_normalization_options *o = layer_options(layer);
    normalization *n = ed_layer_state(layer);
    const ed_tensor *x = call->inputs[0];
    const ed_dtype dtype = ed_dtype_is_float(x->dtype) ? x->dtype
                           : layer->dtype              ? layer->dtype
                                                       : ED_FLOAT32;
    if (dtype != ED_FLOAT32 && dtype != ED_FLOAT64) return layer_accepts(layer, x, 0, true);
    if (!find_kept(layer, n, x)) return false;
    drop_constants(n);
    if (!o->mean.values) return add_statistics(layer, n, dtype);
    n->mean = n->constants[0] = ed_retain(constant_of(layer, n, "mean", o->mean, dtype));
    n->variance = n->constants[1] =
        n->mean ? ed_retain(constant_of(layer, n, "variance", o->variance, dtype)) : NULL;
    return n->variance;
}

static bool normalization_init(ed_layer *layer)
{
    const ed_layer_normalization_options *o = layer_options(layer);
    if (!o->mean.values == !o->variance.values) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT, "mean and variance are given together");
}

static bool fits(const ed_layer *layer, const normalization *n, const ed_tensor *x)
{
    bool fine = x->rank == n->rank;
    for (int i = 0; fine && i < n->rank; i++) fine = !n->kept[i] || x->shape[i] == n->shape[i];
    return fine || layer_fail(layer, ED_INVALID_ARGUMENT,
                              "the input must be as when the layer was built, of rank %d and with "
                              "sizes %s where they are not 1; got %s",
                              n->rank, text_of_ints(n->shape, n->rank).s, text_of_tensor(x).s);
}

static bool normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_normalization_options *o = layer_options(layer);
    const normalization *n = ed_layer_state(layer);
    const ed_ints shape = {n->shape, n->rank};
    if (!fits(layer, n, call->inputs[0])) return false;
    ed_tensor *x = as_floats(layer, call->inputs[0]), *mean = n->mean, *variance = n->variance;
    if (mean->size != 1 || n->count) mean = ed_reshape(mean, shape);
    if (variance->size != 1 || n->count) variance = ed_reshape(variance, shape);
    ed_tensor *scale = variance ? ed_maximum(ed_sqrt(variance), 1e-7) : NULL;
    if (!x || !mean || !scale) return false;
    return ed_layer_return(call, o->invert ? ed_add(ed_mul(x, scale), mean)
                                           : ed_div(ed_sub(x, mean), scale));
}

static void normalization_destroy(ed_layer *layer)
{
    drop_constants(ed_layer_state(layer));
}

/* A call without data builds the layer. */
static bool build_for(ed_layer *layer, const ed_tensor *data)
{
    const ed_dtype dtype = ed_dtype_is_float(data->dtype) ? data->dtype : ED_FLOAT32;
    return layer->built ||
           ed_layer_build(layer, ((ed_ints){data->shape, data->rank}), .dtype = dtype);
}

static bool normalization_adapt(ed_layer *layer, ed_tensor *data)
{
    normalization *n = ed_layer_state(layer);
    if (!build_for(layer, data) || !fits(layer, n, data)) return false;
    if (!n->count)
        return layer_fail(layer, ED_FAILED_PRECONDITION,
                          "mean and variance were given; a layer without them can be adapted");
    if (data->size == 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the data are empty: %s",
                          text_of_tensor(data).s);
    int64_t axes[ED_MAX_RANK];
    int count = 0;
    for (int i = 0; i < n->rank; i++)
        if (!n->kept[i]) axes[count++] = i;
    ed_tensor *x = ed_cast(data, n->mean->dtype), *mean = x, *variance = ed_zeros_like(x);
    if (count) mean = ed_moments(x, &variance, .axis = {axes, count});
    return mean && variance && ed_assign(n->mean, mean) && ed_assign(n->variance, variance);
}

LAYER(normalization, NORMALIZATION, 0, "(x - mean) / sqrt(variance), of given numbers or of data",
      .state_size = sizeof(normalization), .init = normalization_init, .build = normalization_build,
      .forward = normalization_forward, .destroy = normalization_destroy,
      .adapt = normalization_adapt, .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(normalization, NORMALIZATION, .invert = true,
                                                   .axis = ED_SAMPLE_INTS(1, 2)),
                                .inputs = {{3, {2, 3, 2}}},
                                .n_inputs = 1}))

/* ---- discretization -------------------------------------------------------------------------- */

typedef struct bins {
    ed_tensor
        *given; /* boundaries that are options, float64; retained; NULL: the weight is taken */
} bins;

static bool discretization_init(ed_layer *layer)
{
    const ed_layer_discretization_options *o = layer_options(layer);
    bins *b = ed_layer_state(layer);
    if (!o->bin_boundaries.values == !o->num_bins)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "either bin_boundaries or num_bins must be given");
    if (o->num_bins) return true;
    for (int64_t i = 1; i < o->bin_boundaries.count; i++)
        if (o->bin_boundaries.values[i] < o->bin_boundaries.values[i - 1])
            return layer_fail(layer, ED_INVALID_ARGUMENT, "bin_boundaries must ascend");
    const int64_t n = o->bin_boundaries.count;
    return (b->given =
                ed_retain(ed_constant_of(ED_FLOAT64, o->bin_boundaries.values, ED_SHAPE(n))));
}

static const learned_name boundaries_name = {"bin_boundaries", ED_FLOAT64};

static bool discretization_build(ed_layer *layer, const ed_layer_call *call)
{
    const bins *b = ed_layer_state(layer);
    (void)call;
    return b->given || learned_weights(layer, &boundaries_name, 1, "boundaries are");
}

static bool discretization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_discretization_options *o = layer_options(layer);
    const bins *b = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0], *boundaries = b->given ? b->given : layer->weights[0];
    if (x->dtype == ED_BOOL)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must be numbers, got %s",
                          text_of_tensor(x).s);
    ed_tensor *y = ed_bucketize(ed_stop_gradient(ed_cast(x, ED_FLOAT64)), boundaries);
    if (y && y->dtype != ED_INT32) y = ed_cast(y, ED_INT32);
    if (y && strcmp(o->output_mode, "int") != 0)
        y = categories_encoded(o->output_mode, y, ed_size(boundaries) + 1, NULL,
                               categories_dtype(layer));
    return ed_layer_return(call, y);
}

static void discretization_destroy(ed_layer *layer)
{
    ed_release(((bins *)ed_layer_state(layer))->given);
}

/* Boundaries at the elements 1/n, 2/n, ... of the way through the sorted data, as a histogram of
 * equal counts has them. */
static bool discretization_adapt(ed_layer *layer, ed_tensor *data)
{
    const ed_layer_discretization_options *o = layer_options(layer);
    if (!o->num_bins)
        return layer_fail(layer, ED_FAILED_PRECONDITION,
                          "bin_boundaries were given; a layer with num_bins can be adapted");
    if (data->size == 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the data are empty: %s",
                          text_of_tensor(data).s);
    const int64_t n = o->num_bins - 1;
    double *boundaries = ed_scope_alloc((size_t)n * sizeof *boundaries + 1);
    ed_tensor *x = ed_reshape(ed_cast(data, ED_FLOAT64), ED_SHAPE(-1));
    if (!boundaries || !x) return false;
    for (int64_t i = 0; i < n; i++) {
        ed_tensor *q = ed_quantile(x, (double)(i + 1) / (double)o->num_bins);
        if (!q) return false;
        boundaries[i] = ed_item(q);
    }
    ed_tensor *made = ed_constant_of(ED_FLOAT64, boundaries, ED_SHAPE(n));
    return made && learned_set(layer, &boundaries_name.name, &made, 1);
}

static const double sample_boundaries[] = {-0.5, 0.25};

LAYER(discretization, DISCRETIZATION, 0, "the number of the bin that x lies in",
      .state_size = sizeof(bins), .init = discretization_init, .build = discretization_build,
      .forward = discretization_forward, .destroy = discretization_destroy,
      .adapt = discretization_adapt,
      .samples = LAYER_SAMPLES({.options = OPTIONS(discretization, DISCRETIZATION,
                                                   .bin_boundaries = {sample_boundaries, 2},
                                                   .output_mode = "one_hot", .dtype = ED_FLOAT64),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

bool ed_layer_adapt(ed_layer *layer, ed_tensor *data)
{
    if (NULL_GIVEN("layer_adapt", layer, data)) return false;
    ED_SCOPE;
    if (layer->class->adapt) return SCOPE_GUARDED(layer->class->adapt(layer, data));
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "a layer of this kind takes nothing from data; normalization, "
                      "discretization and integer_lookup do");
}

/* ---- category_encoding ----------------------------------------------------------------------- */

static bool category_encoding_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_category_encoding_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0], *weights = call->n_inputs > 1 ? call->inputs[1] : NULL;
    if (x->dtype == ED_BOOL || ed_dtype_is_float(x->dtype))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must be integers, got %s",
                          text_of_tensor(x).s);
    if (weights && strcmp(o->output_mode, "count") != 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "weights are for output_mode \"count\"");
    if (weights && (weights->rank != x->rank ||
                    memcmp(weights->shape, x->shape, (size_t)x->rank * sizeof *x->shape) != 0))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "weights must have the input's shape: the input is %s, the weights %s",
                          text_of_tensor(x).s, text_of_tensor(weights).s);
    if (x->size && !(x->flags & TENSOR_HOLLOW)) {
        const double least = ed_item(ed_reduce_min(x)), most = ed_item(ed_reduce_max(x));
        if (!(least >= 0 && most < (double)o->num_tokens))
            return layer_fail(layer, ED_OUT_OF_RANGE,
                              "the input must be in 0..num_tokens - 1 = %lld, got %g to %g",
                              (long long)o->num_tokens - 1, least, most);
    }
    return ed_layer_return(call, categories_encoded(o->output_mode, x, o->num_tokens, weights,
                                                    categories_dtype(layer)));
}

LAYER(category_encoding, CATEGORY_ENCODING, 1, "integers as one_hot, multi_hot or counts",
      .max_inputs = 2, .forward = category_encoding_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(category_encoding, CATEGORY_ENCODING,
                                                   .num_tokens = 4, .dtype = ED_FLOAT64),
                                .inputs = {{2, {2, 3}, .below = 4}},
                                .n_inputs = 1},
                               {.options = OPTIONS(category_encoding, CATEGORY_ENCODING,
                                                   .num_tokens = 4, .output_mode = "count",
                                                   .dtype = ED_FLOAT64),
                                .inputs = {{2, {2, 3}, .below = 4}, {2, {2, 3}}},
                                .n_inputs = 2}))
