#include "nn/layers/gamma_beta.h"
#include "ops/ops.h"
#include <math.h>

/* Normalizations of the slices along some axes. What no single op computes, as for axes that are
 * not the last ones, consists of several. */

typedef struct slices {
    int rank; /* of the inputs */
    layer_axes axes;
    ed_tensor *gamma, *beta; /* the layer's; or NULL */
} slices;

static bool begin_build(ed_layer *layer, const ed_tensor *x, ed_ints axes)
{
    slices *s = ed_layer_state(layer);
    s->rank = x->rank;
    s->gamma = s->beta = NULL;
    return layer_accepts(layer, x, 1, true) && layer_find_axes(layer, x, axes, &s->axes);
}

/* The state, if the input is one that the layer was built for. */
static const slices *begin_call(ed_layer *layer, const ed_tensor *x)
{
    const slices *s = ed_layer_state(layer);
    return layer_accepts(layer, x, 1, true) && layer_same_axes(layer, x, &s->axes, s->rank) ? s
                                                                                            : NULL;
}

#define AXES_OF(s)  ((ed_ints){(s)->axes.axes, (s)->axes.count})
#define SHAPE_OF(s) ((ed_ints){(s)->axes.sizes, (s)->axes.count})

/* ---- layer_normalization --------------------------------------------------------------------- */

static bool layer_normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_layer_normalization_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[0];
    slices *s = ed_layer_state(layer);
    if (!begin_build(layer, x, o->axis)) return false;
    const bool scale = o->scale || o->rms_scaling, center = o->center && !o->rms_scaling;
    if (scale && !(s->gamma = LAYER_ADD_GAMMA(layer, o, SHAPE_OF(s), x->dtype))) return false;
    return !center || (s->beta = LAYER_ADD_BETA(layer, o, SHAPE_OF(s), x->dtype));
}

/* The same by several ops. */
static ed_tensor *normalize(const slices *s, ed_tensor *x, double epsilon, bool rms_scaling)
{
    ed_tensor *mean = NULL, *variance = NULL;
    if (!(mean = ed_moments(x, &variance, .axis = AXES_OF(s), .keepdims = true))) return NULL;
    ed_tensor *factor = ed_rsqrt(ed_add(variance, epsilon));
    if (s->gamma) factor = ed_mul(factor, layer_along(&s->axes, x, s->gamma));
    ed_tensor *y = ed_mul(rms_scaling ? x : ed_sub(x, mean), factor);
    return s->beta ? ed_add(y, layer_along(&s->axes, x, s->beta)) : y;
}

static bool layer_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_layer_normalization_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    const slices *s = begin_call(layer, x);
    if (!s) return false;
    if (!s->axes.last || o->rms_scaling)
        return ed_layer_return(call, normalize(s, x, o->epsilon, o->rms_scaling));
    ed_tensor *y = ed_layer_norm(x, s->gamma, s->gamma ? s->beta : NULL, .axis = AXES_OF(s),
                                 .epsilon = o->epsilon);
    return ed_layer_return(call, s->beta && !s->gamma ? ed_add(y, s->beta) : y);
}

LAYER(layer_normalization, LAYER_NORMALIZATION, 0,
      "gamma (x - mean) / sqrt(variance + epsilon) + beta, for each slice along the axes",
      .state_size = sizeof(slices), .build = layer_normalization_build,
      .forward = layer_normalization_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES(
          {.inputs = {{2, {3, 4}}}, .n_inputs = 1},
          {.options = OPTIONS(layer_normalization, LAYER_NORMALIZATION, .scale = false,
                              .axis = ED_SAMPLE_INTS(-1, 1)),
           .inputs = {{3, {2, 3, 2}}},
           .n_inputs = 1},
          {.options = OPTIONS(layer_normalization, LAYER_NORMALIZATION, .axis = ED_SAMPLE_INTS(1)),
           .inputs = {{3, {2, 3, 2}}},
           .n_inputs = 1},
          {.options = OPTIONS(layer_normalization, LAYER_NORMALIZATION, .rms_scaling = true),
           .inputs = {{2, {3, 4}}},
           .n_inputs = 1}))

/* ---- rms_normalization ----------------------------------------------------------------------- */

static bool rms_normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_rms_normalization_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[0];
    slices *s = ed_layer_state(layer);
    if (!begin_build(layer, x, o->axis)) return false;
    s->gamma = ed_layer_add_weight(layer, "scale", SHAPE_OF(s), .dtype = x->dtype,
                                   .initializer = ed_initializer_ones());
    return s->gamma;
}

static bool rms_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_rms_normalization_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    const slices *s = begin_call(layer, x);
    if (!s) return false;
    if (s->axes.last)
        return ed_layer_return(call,
                               ed_rms_norm(x, s->gamma, .axis = AXES_OF(s), .epsilon = o->epsilon));
    ed_tensor *squares = ed_reduce_mean(ed_square(x), .axis = AXES_OF(s), .keepdims = true);
    ed_tensor *y = ed_mul(x, ed_rsqrt(ed_add(squares, o->epsilon)));
    return ed_layer_return(call, ed_mul(y, layer_along(&s->axes, x, s->gamma)));
}

LAYER(rms_normalization, RMS_NORMALIZATION, 0,
      "scale x / sqrt(mean of x^2 + epsilon), for each slice along the axes",
      .state_size = sizeof(slices), .build = rms_normalization_build,
      .forward = rms_normalization_forward,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(rms_normalization, RMS_NORMALIZATION,
                                                   .axis = ED_SAMPLE_INTS(1)),
                                .inputs = {{3, {2, 3, 2}}},
                                .n_inputs = 1}))

/* ---- unit_normalization ---------------------------------------------------------------------- */

static bool unit_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_unit_normalization_options *o = layer_options(layer);
    static const int64_t last = -1;
    const ed_ints axes = o->axis.values ? o->axis : (ed_ints){&last, 1};
    ed_tensor *x = call->inputs[0];
    return layer_accepts(layer, x, 1, true) &&
           ed_layer_return(call, ed_l2_normalize(x, .axis = axes, .epsilon = 1e-24));
}

LAYER(unit_normalization, UNIT_NORMALIZATION, 0, "x divided by its Euclidean norm",
      .forward = unit_normalization_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.inputs = {{2, {3, 4}}}, .n_inputs = 1},
                               {.options = OPTIONS(unit_normalization, UNIT_NORMALIZATION,
                                                   .axis = ED_SAMPLE_INTS(1, 2)),
                                .inputs = {{3, {2, 3, 2}}},
                                .n_inputs = 1}))
