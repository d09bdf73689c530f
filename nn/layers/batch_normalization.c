#include "nn/layer_core.h"
#include "ops/ops.h"

/*
 * Training: y = gamma (x - mean) / sqrt(variance + epsilon) + beta with the batch's own mean and
 * variance. Inference: the same with the moving ones, as one product and one sum: y = x s + (beta -
 * moving_mean s), s = gamma / sqrt(moving_variance + epsilon).
 */

typedef struct norm {
    double momentum, epsilon;
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

static ed_tensor *weight(ed_layer *layer, const char *name, const ed_tensor *x,
                         const char *initializer, bool trainable)
{
    return ed_layer_add_weight(layer, name, ED_SHAPE(x->shape[x->rank - 1]), .dtype = x->dtype,
                               .otherwise = initializer, .trainable = trainable);
}

static bool batch_normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_batch_normalization_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[0];
    norm *n = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true)) return false;
    ed_ints shape = ED_SHAPE(x->shape[x->rank - 1]);
    drop_constants(n); /* of a build that failed */
    if (!o->scale && !(n->ones = ed_retain(ed_ones(shape, .dtype = x->dtype)))) return false;
    if (!o->center && !(n->zeros = ed_retain(ed_zeros(shape, .dtype = x->dtype)))) return false;
    n->gamma = o->scale ? weight(layer, "gamma", x, "ones", true) : n->ones;
    if (!n->gamma) return false;
    n->beta = o->center ? weight(layer, "beta", x, "zeros", true) : n->zeros;
    if (!n->beta) return false;
    n->moving_mean = weight(layer, "moving_mean", x, "zeros", false);
    if (!n->moving_mean) return false;
    n->moving_variance = weight(layer, "moving_variance", x, "ones", false);
    return n->moving_variance != NULL;
}

static ed_tensor *by_moving(const norm *n, ed_tensor *x)
{
    ed_tensor *s = ed_mul(ed_rsqrt(ed_add(n->moving_variance, n->epsilon)), n->gamma);
    return ed_add(ed_mul(x, s), ed_sub(n->beta, ed_mul(n->moving_mean, s)));
}

static bool batch_normalization_init(ed_layer *layer)
{
    const ed_layer_batch_normalization_options *o = layer_options(layer);
    norm *n = ed_layer_state(layer);
    n->momentum = o->momentum;
    n->epsilon = o->epsilon;
    return true;
}

static bool batch_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const norm *n = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 2, true) || !layer_same_last(layer, x, n->gamma->shape[0]))
        return false;
    if (!call->training || !ed_layer_is_trainable(layer))
        return ed_layer_return(call, by_moving(n, x));
    ed_tensor *mean, *variance;
    ed_tensor *y = ed_batch_norm(x, n->gamma, n->beta, n->epsilon, &mean, &variance);
    if (!y || x->size == 0) return ed_layer_return(call, y); /* an empty batch has no statistics */
    ed_list *moving = ed_list_of(n->moving_mean, n->moving_variance);
    return ed_assign_moving_averages(moving, ed_list_of(mean, variance), n->momentum) &&
           ed_layer_return(call, y);
}

static void batch_normalization_destroy(ed_layer *layer)
{
    drop_constants(ed_layer_state(layer));
}

LAYER(batch_normalization, BATCH_NORMALIZATION, 0,
      "gamma (x - mean) / sqrt(variance + epsilon) + beta, for each channel",
      .state_size = sizeof(norm), .init = batch_normalization_init,
      .build = batch_normalization_build, .forward = batch_normalization_forward,
      .destroy = batch_normalization_destroy, .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {6, 3}}}, .n_inputs = 1},
                               {.options = OPTIONS(batch_normalization, BATCH_NORMALIZATION,
                                                   .scale = false, .center = false),
                                .inputs = {{3, {2, 3, 2}}},
                                .n_inputs = 1}))
