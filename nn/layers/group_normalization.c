#include "nn/layers/gamma_beta.h"
#include "ops/ops.h"

typedef struct groups {
    int rank, axis; /* of the inputs; of the channels, from 0 */
    int64_t channels, count;
    ed_tensor *gamma, *beta; /* the layer's; or NULL */
} groups;

static bool group_normalization_init(ed_layer *layer)
{
    const ed_layer_group_normalization_options *o = layer_options(layer);
    return o->groups || ed_fail(ED_INVALID_ARGUMENT,
                                "group_normalization: groups must be at least 1, or -1 for a group "
                                "of each channel; got 0");
}

static bool group_normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_group_normalization_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[0];
    groups *g = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true) || (g->axis = layer_axis(layer, x, o->axis)) < 0)
        return false;
    if (!g->axis)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "axis 0 is that of the batch; the channels must have another one");
    g->rank = x->rank;
    g->channels = x->shape[g->axis];
    g->count = o->groups < 0 ? g->channels : o->groups;
    g->gamma = g->beta = NULL;
    if (!g->count || g->channels % g->count)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "%lld groups do not divide the %lld channels of the input %s",
                          (long long)g->count, (long long)g->channels, text_of_tensor(x).s);
    const ed_ints shape = ED_SHAPE(g->channels);
    if (o->scale && !(g->gamma = LAYER_ADD_GAMMA(layer, o, shape, x->dtype))) return false;
    return !o->center || (g->beta = LAYER_ADD_BETA(layer, o, shape, x->dtype));
}

static bool group_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_group_normalization_options *o = layer_options(layer);
    const groups *g = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, g->rank, false)) return false;
    if (x->shape[g->axis] != g->channels)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the layer was built for %lld channels, got %s with axis %d",
                          (long long)g->channels, text_of_tensor(x).s, g->axis);
    ed_tensor *y = ed_group_norm(x, g->gamma, g->gamma ? g->beta : NULL, .groups = g->count,
                                 .axis = g->axis, .epsilon = o->epsilon);
    if (!g->beta || g->gamma) return ed_layer_return(call, y);
    const layer_axes channels = {.axes = {g->axis}, .sizes = {g->channels}, .count = 1};
    return ed_layer_return(call, ed_add(y, layer_along(&channels, x, g->beta)));
}

LAYER(group_normalization, GROUP_NORMALIZATION, 0,
      "gamma (x - mean) / sqrt(variance + epsilon) + beta, for each group of channels",
      .state_size = sizeof(groups), .init = group_normalization_init,
      .build = group_normalization_build, .forward = group_normalization_forward,
      .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(group_normalization, GROUP_NORMALIZATION,
                                                   .groups = 2),
                                .inputs = {{3, {2, 3, 4}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(group_normalization, GROUP_NORMALIZATION,
                                                   .groups = -1, .axis = 1, .scale = false),
                                .inputs = {{3, {2, 2, 5}}},
                                .n_inputs = 1}))
