#include "nn/layer_core.h"
#include "ops/ops.h"
#include <stdio.h>
#include <string.h>

static ed_tensor *linear(ed_tensor *x)
{
    return x;
}

/* Those that have options, with their defaults. */
#define DEFAULTS(name)                                                                             \
    static ed_tensor *name(ed_tensor *x)                                                           \
    {                                                                                              \
        return ed_##name##_with(x, NULL);                                                          \
    }                                                                                              \
    static ed_tensor *name(ed_tensor *x)
DEFAULTS(celu);
DEFAULTS(glu);
DEFAULTS(hard_shrink);
DEFAULTS(log_softmax);
DEFAULTS(soft_shrink);
DEFAULTS(softmax);
DEFAULTS(sparsemax);
DEFAULTS(squareplus);

static ed_tensor *leaky_relu(ed_tensor *x)
{
    return ed_leaky_relu(x, 0.2);
}

static ed_tensor *threshold(ed_tensor *x)
{
    return ed_threshold(x, 0, 0);
}

static const struct {
    const char *name;
    activation f;
} activations[] = {
    {"", linear},
    {"linear", linear},
    {"relu", ed_relu},
    {"relu6", ed_relu6},
    {"leaky_relu", leaky_relu},
    {"elu", ed_elu},
    {"celu", celu},
    {"selu", ed_selu},
    {"sigmoid", ed_sigmoid},
    {"hard_sigmoid", ed_hard_sigmoid},
    {"log_sigmoid", ed_log_sigmoid},
    {"sparse_sigmoid", ed_sparse_sigmoid},
    {"tanh", ed_tanh},
    {"hard_tanh", ed_hard_tanh},
    {"tanh_shrink", ed_tanh_shrink},
    {"hard_shrink", hard_shrink},
    {"soft_shrink", soft_shrink},
    {"softplus", ed_softplus},
    {"sparse_plus", ed_sparse_plus},
    {"squareplus", squareplus},
    {"softsign", ed_softsign},
    {"silu", ed_silu},
    {"swish", ed_silu},
    {"hard_silu", ed_hard_silu},
    {"hard_swish", ed_hard_silu},
    {"gelu", ed_gelu},
    {"mish", ed_mish},
    {"exponential", ed_exp},
    {"threshold", threshold},
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"sparsemax", sparsemax},
    {"glu", glu},
};

activation nn_activation(const char *who, const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (!strcmp(name ? name : "", activations[i].name)) return activations[i].f;
    char known[24 * sizeof activations / sizeof *activations] = "";
    for (size_t i = 1; i < sizeof activations / sizeof *activations; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 1 ? ", " : "",
                 activations[i].name);
    ed_fail(ED_NOT_FOUND, "%s: there is no activation '%s'; the activations are %s", who, name,
            known);
    return NULL;
}

ed_tensor *ed_activate(ed_tensor *x, const char *activation_name)
{
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "activate: x is NULL");
    activation f = nn_activation("activate", activation_name);
    return f ? f(x) : NULL;
}

/* ---- As a layer ------------------------------------------------------------------------------ */

static bool activation_init(ed_layer *layer)
{
    const ed_layer_activation_options *o = layer_options(layer);
    return (*(activation *)ed_layer_state(layer) = nn_activation("activation", o->activation));
}

static bool activation_forward(ed_layer *layer, ed_layer_call *call)
{
    const activation f = *(activation *)ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    return layer_accepts(layer, x, 0, true) && ed_layer_return(call, f(x));
}

LAYER(activation, ACTIVATION, 1, "an activation by name", .state_size = sizeof(activation),
      .init = activation_init, .forward = activation_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(activation, ACTIVATION,
                                                   .activation = "softplus"),
                                .inputs = {{2, {3, 4}}},
                                .n_inputs = 1}))

static bool identity_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return ed_layer_return(call, call->inputs[0]);
}

LAYER(identity, IDENTITY, 0, "x itself", .forward = identity_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1}))
