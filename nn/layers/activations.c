#include "nn/layer_core.h"
#include "ops/ops.h"

/* Activations with options; those by name are in activation.c. */

static bool relu_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_relu_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 0, true)) return false;
    return ed_layer_return(call, ed_bounded_relu(x, .max_value = o->max_value,
                                                 .negative_slope = o->negative_slope,
                                                 .threshold = o->threshold));
}

LAYER(relu, RELU, 0, "min(x, max_value) where x > threshold, else negative_slope (x - threshold)",
      .forward = relu_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(relu, RELU, .max_value = 0.5,
                                                   .negative_slope = 0.1, .threshold = 0.2),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

static bool leaky_relu_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_leaky_relu_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    return layer_accepts(layer, x, 0, true) &&
           ed_layer_return(call, ed_leaky_relu(x, o->negative_slope));
}

LAYER(leaky_relu, LEAKY_RELU, 0, "x > 0 ? x : negative_slope x", .forward = leaky_relu_forward,
      .passes_masks = true, .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1}))

static bool elu_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_elu_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 0, true)) return false;
    ed_tensor *y = ed_elu(x);
    if (o->alpha != 1) y = ed_where(ed_greater(x, 0.0), x, ed_mul(y, o->alpha));
    return ed_layer_return(call, y);
}

LAYER(elu, ELU, 0, "x > 0 ? x : alpha (e^x - 1)", .forward = elu_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES(
          {.inputs = {{2, {3, 4}}}, .n_inputs = 1},
          {.options = OPTIONS(elu, ELU, .alpha = 0.5), .inputs = {{2, {3, 4}}}, .n_inputs = 1}))

/* ---- prelu ----------------------------------------------------------------------------------- */

typedef struct prelu {
    ed_tensor *alpha; /* the layer's */
} prelu;

static bool prelu_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_prelu_options *o = layer_options(layer);
    prelu *p = ed_layer_state(layer);
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK] = {0};
    if (!layer_accepts(layer, x, 1, true)) return false;
    for (int i = 1; i < x->rank; i++) shape[i - 1] = x->shape[i];
    for (int64_t i = 0; i < o->shared_axes.count; i++) {
        const int64_t given = o->shared_axes.values[i], axis = given < 0 ? given + x->rank : given;
        if (axis < 1 || axis >= x->rank)
            return layer_fail(layer, ED_OUT_OF_RANGE,
                              "shared_axes: axis %lld is not one of the axes behind the first of "
                              "%s",
                              (long long)given, text_of_tensor(x).s);
        shape[axis - 1] = 1;
    }
    p->alpha =
        ed_layer_add_weight(layer, "alpha", ((ed_ints){shape, x->rank - 1}), .dtype = x->dtype,
                            .initializer = o->alpha_initializer ?: ed_initializer_zeros(),
                            .regularizer = o->alpha_regularizer, .constraint = o->alpha_constraint);
    return p->alpha;
}

static bool prelu_forward(ed_layer *layer, ed_layer_call *call)
{
    const prelu *p = ed_layer_state(layer);
    const ed_tensor *alpha = p->alpha;
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, alpha->rank + 1, false)) return false;
    for (int i = 0; i < alpha->rank; i++)
        if (alpha->shape[i] != 1 && alpha->shape[i] != x->shape[i + 1])
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "the layer was built for inputs of size %lld along axis %d, got %s",
                              (long long)alpha->shape[i], i + 1, text_of_tensor(x).s);
    return ed_layer_return(call, ed_prelu(x, p->alpha));
}

LAYER(prelu, PRELU, 0, "x > 0 ? x : alpha x, alpha being a weight", .state_size = sizeof(prelu),
      .build = prelu_build, .forward = prelu_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(prelu, PRELU,
                                                   .shared_axes = ED_SAMPLE_INTS(1, 2)),
                                .inputs = {{4, {2, 2, 3, 2}}},
                                .n_inputs = 1}))

/* ---- softmax --------------------------------------------------------------------------------- */

static bool check_mask(const ed_layer *layer, const ed_tensor *x, const ed_tensor *mask)
{
    bool fits = mask->dtype == ED_BOOL && mask->rank <= x->rank;
    for (int i = 1; fits && i <= mask->rank; i++) {
        const int64_t size = mask->shape[mask->rank - i];
        fits = size == 1 || size == x->shape[x->rank - i];
    }
    return fits || layer_fail(layer, ED_INVALID_ARGUMENT,
                              "the mask must be bool and broadcast with the input %s, got %s",
                              text_of_tensor(x).s, text_of_tensor(mask).s);
}

static ed_tensor *softmax_along(ed_tensor *x, ed_ints axes)
{
    if (axes.count == 1) return ed_softmax(x, .axis = axes.values[0]);
    return ed_exp(ed_sub(x, ed_reduce_logsumexp(x, .axis = axes, .keepdims = true)));
}

static bool softmax_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_softmax_options *o = layer_options(layer);
    static const int64_t last = -1;
    const ed_ints axes = o->axis.values ? o->axis : (ed_ints){&last, 1};
    ed_tensor *x = call->inputs[0], *mask = call->masks[0];
    if (!layer_accepts(layer, x, 1, true)) return false;
    if (!mask) return ed_layer_return(call, softmax_along(x, axes));
    if (!check_mask(layer, x, mask)) return false;
    ed_tensor *y = softmax_along(ed_where(mask, x, -1e38), axes); /* e^-1e38 is 0 */
    return ed_layer_return(call, ed_where(mask, y, 0.0));
}

LAYER(softmax, SOFTMAX, 0, "e^x / sum e^x along the axes", .forward = softmax_forward,
      .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(softmax, SOFTMAX, .axis = ED_SAMPLE_INTS(1, 2)),
                                .inputs = {{3, {2, 3, 2}}},
                                .n_inputs = 1}))
