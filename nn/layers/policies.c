#include "nn/layers/augment.h"
#include "ops/ops.h"

/* random_color_jitter, rand_augment, aug_mix: layers of this folder, one after the other. */

static const double sample_factor[] = {0.1, 0.2}, sample_range[] = {-2, 2};

/* A layer of the kind, with Keras' name of the child: ED_MAKE_CHILD(random_hue, RANDOM_HUE). */
#define CHILD(layer, symbol, SYMBOL, ...)                                                          \
    ed_layer_add_child(                                                                            \
        layer, ed_layer_##symbol##_with(OPTIONS(symbol, SYMBOL, .name = #symbol, ##__VA_ARGS__)))

static ed_tensor *changed_by(ed_layer *layer, int64_t child, ed_tensor *x)
{
    return ed_forward(layer->children[child], x, .training = true);
}

/* A number from 0 to n - 1; negative, with an error, on failure. */
static int64_t pick(int64_t n, ed_generator *generator)
{
    ed_tensor *u = ed_random_uniform(ED_SHAPE(1), .dtype = ED_INT64, .low = 0, .high = (double)n,
                                     .generator = generator);
    return u ? (int64_t)ed_item(u) : -1;
}

/* ---- random_color_jitter --------------------------------------------------------------------- */

static bool random_color_jitter_init(ed_layer *layer)
{
    const ed_layer_random_color_jitter_options *o = layer_options(layer);
    const ed_floats values = o->value_range;
    ed_generator *g = o->generator;
    return (!o->brightness_factor.values ||
            CHILD(layer, random_brightness, RANDOM_BRIGHTNESS, .factor = o->brightness_factor,
                  .value_range = values, .generator = g)) &&
           (!o->contrast_factor.values ||
            CHILD(layer, random_contrast, RANDOM_CONTRAST, .factor = o->contrast_factor,
                  .value_range = values, .generator = g)) &&
           (!o->saturation_factor.values ||
            CHILD(layer, random_saturation, RANDOM_SATURATION, .factor = o->saturation_factor,
                  .value_range = values, .generator = g)) &&
           (!o->hue_factor.values || CHILD(layer, random_hue, RANDOM_HUE, .factor = o->hue_factor,
                                           .value_range = values, .generator = g));
}

static bool random_color_jitter_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    for (int64_t i = 0; call->training && x && i < layer->n_children; i++)
        x = changed_by(layer, i, x);
    return ed_layer_return(call, x);
}

LAYER(random_color_jitter, RANDOM_COLOR_JITTER, 0,
      "in training images get another brightness, contrast, saturation and hue",
      .init = random_color_jitter_init, .forward = random_color_jitter_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_color_jitter, RANDOM_COLOR_JITTER,
                                                   .brightness_factor = {sample_factor, 2},
                                                   .contrast_factor = {sample_factor, 2},
                                                   .saturation_factor = {sample_factor, 2},
                                                   .hue_factor = {sample_factor, 2},
                                                   .value_range = {sample_range, 2}),
                                .inputs = {{4, {2, 2, 3, 3}}},
                                .n_inputs = 1}))

/* ---- The changes of rand_augment and aug_mix ------------------------------------------------- */

typedef struct policy {
    ed_floats factor, values;
    const char *interpolation;
    ed_generator *generator;
    bool all; /* those also that aug_mix leaves out */
} policy;

static bool add_places(ed_layer *layer, const policy *p)
{
    return CHILD(layer, random_shear, RANDOM_SHEAR, .x_factor = p->factor, .y_factor = p->factor,
                 .interpolation = p->interpolation, .generator = p->generator) &&
           CHILD(layer, random_translation, RANDOM_TRANSLATION, .height_factor = p->factor,
                 .width_factor = p->factor, .interpolation = p->interpolation,
                 .generator = p->generator) &&
           CHILD(layer, random_rotation, RANDOM_ROTATION, .factor = p->factor,
                 .interpolation = p->interpolation, .generator = p->generator);
}

static bool add_others(ed_layer *layer, const policy *p)
{
    return CHILD(layer, random_brightness, RANDOM_BRIGHTNESS, .factor = p->factor,
                 .value_range = p->values, .generator = p->generator) &&
           CHILD(layer, random_color_degeneration, RANDOM_COLOR_DEGENERATION, .factor = p->factor,
                 .value_range = p->values, .generator = p->generator) &&
           CHILD(layer, random_contrast, RANDOM_CONTRAST, .factor = p->factor,
                 .value_range = p->values, .generator = p->generator) &&
           CHILD(layer, random_sharpness, RANDOM_SHARPNESS, .factor = p->factor,
                 .value_range = p->values, .generator = p->generator);
}

static bool add_changes(ed_layer *layer, const policy *p)
{
    const int64_t eighth = (int64_t)(8 * p->factor.values[1]), bits = eighth > 1 ? eighth : 1;
    return add_places(layer, p) && (!p->all || add_others(layer, p)) &&
           CHILD(layer, random_posterization, RANDOM_POSTERIZATION, .factor = ED_INTS(bits),
                 .value_range = p->values, .generator = p->generator) &&
           CHILD(layer, solarization, SOLARIZATION, .addition_factor = p->factor,
                 .threshold_factor = p->factor, .value_range = p->values,
                 .generator = p->generator) &&
           CHILD(layer, auto_contrast, AUTO_CONTRAST, .value_range = p->values) &&
           CHILD(layer, equalization, EQUALIZATION, .value_range = p->values);
}

/* ---- rand_augment ---------------------------------------------------------------------------- */

static bool rand_augment_init(ed_layer *layer)
{
    const ed_layer_rand_augment_options *o = layer_options(layer);
    augment_range f;
    if (!augment_factor_or(layer, "factor", o->factor, 0, 0.5, &f)) return false;
    return add_changes(layer, &(policy){.factor = {(double[]){f.low, f.high}, 2},
                                        .values = o->value_range,
                                        .interpolation = o->interpolation,
                                        .generator = o->generator,
                                        .all = true});
}

static bool rand_augment_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_rand_augment_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    for (int64_t i = 0; call->training && x && i < o->num_ops; i++) {
        const int64_t child = pick(layer->n_children, o->generator);
        x = child < 0 ? NULL : changed_by(layer, child, x);
    }
    return ed_layer_return(call, x);
}

LAYER(rand_augment, RAND_AUGMENT, 0, "in training images are changed in a few ways that are drawn",
      .init = rand_augment_init, .forward = rand_augment_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.inputs = {{4, {2, 3, 4, 3}}}, .n_inputs = 1}))

/* ---- aug_mix --------------------------------------------------------------------------------- */

static bool aug_mix_init(ed_layer *layer)
{
    const ed_layer_aug_mix_options *o = layer_options(layer);
    augment_range f, *values = ed_layer_state(layer);
    if (!augment_factor_or(layer, "factor", o->factor, 0, 0.3, &f) ||
        !augment_values(layer, o->value_range, values))
        return false;
    return add_changes(layer, &(policy){.factor = {(double[]){f.low, f.high}, 2},
                                        .values = o->value_range,
                                        .interpolation = o->interpolation,
                                        .generator = o->generator,
                                        .all = o->all_ops});
}

/* Shares that add up to 1, [n], of Dirichlet's distribution. */
static ed_tensor *dirichlet(double alpha, int64_t n, ed_dtype dtype, ed_generator *generator)
{
    ed_tensor *g =
        ed_random_gamma(ed_full(ED_SHAPE(n), alpha, .dtype = ED_FLOAT64), .generator = generator);
    g = g ? ed_add(g, 1e-300) : NULL;
    return g ? ed_cast(ed_div(g, ed_reduce_sum(g)), dtype) : NULL;
}

/* The image after a chain of changes; each may be none. */
static ed_tensor *chain(ed_layer *layer, ed_tensor *x)
{
    const ed_layer_aug_mix_options *o = layer_options(layer);
    for (int64_t i = 0; x && i < o->chain_depth; i++) {
        const int64_t child = pick(layer->n_children + 1, o->generator);
        if (child < 0) return NULL;
        if (child < layer->n_children) x = changed_by(layer, child, x);
    }
    return x;
}

static bool aug_mix_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_aug_mix_options *o = layer_options(layer);
    const augment_range *values = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0], *sum = NULL;
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_list *weights = ed_unstack(dirichlet(o->alpha, o->num_chains, x->dtype, o->generator));
    ed_list *shares = weights ? ed_unstack(dirichlet(o->alpha, 2, x->dtype, o->generator)) : NULL;
    if (!shares) return false;
    for (int64_t i = 0; i < o->num_chains; i++) {
        ed_tensor *part = ed_mul(chain(layer, x), ed_list_get(weights, i));
        if (!part || !(sum = sum ? ed_add(sum, part) : part)) return false;
    }
    sum = ed_add(ed_mul(ed_list_get(shares, 0), x), ed_mul(ed_list_get(shares, 1), sum));
    return ed_layer_return(call, sum ? ed_clip(sum, values->low, values->high) : NULL);
}

LAYER(aug_mix, AUG_MIX, 0, "in training images are mixed with chains of changes",
      .state_size = sizeof(augment_range), .init = aug_mix_init, .forward = aug_mix_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.inputs = {{4, {2, 3, 4, 3}}}, .n_inputs = 1},
                               {.options = OPTIONS(aug_mix, AUG_MIX, .all_ops = false),
                                .inputs = {{3, {3, 4, 1}}},
                                .n_inputs = 1}))
