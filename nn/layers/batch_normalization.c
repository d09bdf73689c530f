#include "nn/layers/gamma_beta.h"
#include "ops/ops.h"

/*
 * Training: y = gamma (x - mean) / sqrt(variance + epsilon) + beta with the batch's own mean and
 * variance; of a masked batch, those of the elements that count. Inference: the same with the
 * moving ones.
 */

typedef struct norm {
    int rank, axis; /* of the inputs; of the channels, from 0 */
    int64_t channels;
    ed_tensor *gamma, *beta; /* the layer's, or the constants below */
    ed_tensor *ones, *zeros; /* constants in place of gamma and beta; retained; or NULL */
    ed_tensor *moving_mean, *moving_variance; /* the layer's */
} norm;

static void drop_constants(norm *n)
{
    ed_release(n->ones);
    ed_release(n->zeros);
    n->ones = n->zeros = NULL;
}

/* gamma and beta, or constants in their place. */
static bool add_trained(ed_layer *layer, norm *n, ed_ints shape, ed_dtype dtype)
{
    const ed_layer_batch_normalization_options *o = layer_options(layer);
    drop_constants(n); /* of a build that failed */
    if (!o->scale && !(n->ones = ed_retain(ed_ones(shape, .dtype = dtype)))) return false;
    if (!o->center && !(n->zeros = ed_retain(ed_zeros(shape, .dtype = dtype)))) return false;
    n->gamma = o->scale ? LAYER_ADD_GAMMA(layer, o, shape, dtype) : n->ones;
    if (!n->gamma) return false;
    n->beta = o->center ? LAYER_ADD_BETA(layer, o, shape, dtype) : n->zeros;
    return n->beta;
}

static bool batch_normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_batch_normalization_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[0];
    norm *n = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true) || (n->axis = layer_axis(layer, x, o->axis)) < 0)
        return false;
    n->rank = o->axis < 0 && n->axis == x->rank - 1 ? 0 : x->rank;
    n->channels = x->shape[n->axis];
    if (!add_trained(layer, n, ED_SHAPE(n->channels), x->dtype)) return false;
    n->moving_mean = ed_layer_add_weight(
        layer, "moving_mean", ED_SHAPE(n->channels), .dtype = x->dtype,
        .initializer = o->moving_mean_initializer ?: ed_initializer_zeros(), .trainable = false);
    if (!n->moving_mean) return false;
    n->moving_variance = ed_layer_add_weight(
        layer, "moving_variance", ED_SHAPE(n->channels), .dtype = x->dtype,
        .initializer = o->moving_variance_initializer ?: ed_initializer_ones(), .trainable = false);
    return n->moving_variance;
}

/* ---- The calls ------------------------------------------------------------------------------- */

/* Statistics of the elements that `counts` has as true; those of none are 0. */
static ed_tensor *by_masked(const norm *n, ed_tensor *x, ed_tensor *counts, int axis,
                            double epsilon, ed_tensor **mean, ed_tensor **variance)
{
    int64_t axes[ED_MAX_RANK], sizes[ED_MAX_RANK];
    for (int i = 0, next = 0; i < x->rank; i++) {
        sizes[i] = i == axis ? n->channels : 1;
        if (i != axis) axes[next++] = i;
    }
    const ed_ints others = {axes, x->rank - 1}, along = {sizes, x->rank};
    counts = ed_broadcast_to(counts, ed_shape(x));
    ed_tensor *number = ed_add(ed_reduce_sum(ed_cast(counts, x->dtype), .axis = others), 1e-7);
    *mean = ed_div(ed_reduce_sum(ed_where(counts, x, 0.0), .axis = others), number);
    ed_tensor *off = ed_where(counts, ed_sub(x, ed_reshape(*mean, along)), 0.0);
    *variance = ed_div(ed_reduce_sum_square(off, .axis = others), number);
    return ed_batch_norm_inference(x, *mean, *variance, n->gamma, n->beta, .axis = axis,
                                   .epsilon = epsilon);
}

static ed_tensor *in_training(const norm *n, ed_tensor *x, ed_tensor *counts, int axis,
                              double epsilon, double momentum)
{
    ed_tensor *mean, *variance;
    ed_tensor *y = counts ? by_masked(n, x, counts, axis, epsilon, &mean, &variance)
                          : ed_batch_norm(x, n->gamma, n->beta, &mean, &variance, .axis = axis,
                                          .epsilon = epsilon);
    if (!y || x->size == 0) return y; /* an empty batch has no statistics */
    ed_list *moving = ed_list_of(n->moving_mean, n->moving_variance);
    return ed_assign_moving_averages(moving, ed_list_of(mean, variance), momentum) ? y : NULL;
}

/* The mask with an axis behind it, [..., 1]. */
static ed_tensor *place_mask(const ed_layer *layer, const ed_tensor *x, ed_tensor *mask)
{
    bool fits = mask->dtype == ED_BOOL && mask->rank == x->rank - 1;
    for (int i = 0; fits && i < mask->rank; i++)
        fits = mask->shape[i] == x->shape[i] || mask->shape[i] == 1;
    if (!fits)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the mask must be bool and have the axes of the input but the last, got "
                          "%s for the input %s",
                          text_of_tensor(mask).s, text_of_tensor(x).s);
    return ed_expand_dims(mask, -1);
}

static bool batch_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_batch_normalization_options *o = layer_options(layer);
    const norm *n = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0], *mask = call->masks[0], *counts = NULL;
    if (!layer_accepts(layer, x, n->rank ? n->rank : 2, !n->rank)) return false;
    const int axis = n->rank ? n->axis : x->rank - 1;
    if (x->shape[axis] != n->channels)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the layer was built for %lld channels, got %s with axis %d",
                          (long long)n->channels, text_of_tensor(x).s, axis);
    if (!call->training || !ed_layer_is_trainable(layer))
        return ed_layer_return(call, ed_batch_norm_inference(x, n->moving_mean, n->moving_variance,
                                                             n->gamma, n->beta, .axis = axis,
                                                             .epsilon = o->epsilon));
    if (mask && !(counts = place_mask(layer, x, mask))) return false;
    return ed_layer_return(call, in_training(n, x, counts, axis, o->epsilon, o->momentum));
}

static void batch_normalization_destroy(ed_layer *layer)
{
    drop_constants(ed_layer_state(layer));
}

LAYER(batch_normalization, BATCH_NORMALIZATION, 0,
      "gamma (x - mean) / sqrt(variance + epsilon) + beta, for each channel",
      .state_size = sizeof(norm), .build = batch_normalization_build,
      .forward = batch_normalization_forward, .destroy = batch_normalization_destroy,
      .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {6, 3}}}, .n_inputs = 1},
                               {.options = OPTIONS(batch_normalization, BATCH_NORMALIZATION,
                                                   .scale = false, .center = false),
                                .inputs = {{3, {2, 3, 2}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(batch_normalization, BATCH_NORMALIZATION,
                                                   .axis = 1),
                                .inputs = {{4, {2, 3, 2, 2}}},
                                .n_inputs = 1}))
