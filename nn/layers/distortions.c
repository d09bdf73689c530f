#include "nn/layers/augment.h"
#include "ops/ops.h"

/* random_perspective, random_elastic_transform: pixels from other places, which no six numbers
 * tell. */

static const double always[] = {1, 1}, sample_range[] = {-2, 2}, sample_scale[] = {0.9, 1};

/* ---- random_perspective ---------------------------------------------------------------------- */

static bool random_perspective_init(ed_layer *layer)
{
    const ed_layer_random_perspective_options *o = layer_options(layer);
    return augment_factor_or(layer, "factor", o->factor, 0, 1, ed_layer_state(layer));
}

/* Corner i of an image: its x (k = 0) or y (k = 1). */
static double corner(const ed_tensor *x, int i, int k)
{
    const bool far = k ? i >= 2 : i % 2;
    return far ? (double)(x->shape[k ? 1 : 2] - 1) : 0;
}

/*
 * The eight numbers, each [batch, 1, 1], with which (x, y) of the result is
 * ((a0 x + a1 y + a2) / d, (a3 x + a4 y + a5) / d) of the image, d = a6 x + a7 y + 1: those that
 * take the moved corners [batch, 4, 2] to the corners. They solve eight equations.
 */
static ed_list *homography(const ed_tensor *x, ed_tensor *moved)
{
    const int64_t batch = x->shape[0];
    ed_tensor *rows[8], *right[8];
    for (int i = 0; i < 8; i++) {
        const double to = corner(x, i / 2, i % 2);
        ed_tensor *from = ed_gather(moved, ed_scalar(i / 2, .dtype = ED_INT32), .axis = 1);
        ed_tensor *one = ed_ones(ED_SHAPE(batch, 1), .dtype = x->dtype);
        ed_tensor *none = ed_zeros(ED_SHAPE(batch, 3), .dtype = x->dtype);
        ed_tensor *point = ed_concat(ed_list_of(from, one), .axis = -1), *last = ed_mul(from, -to);
        rows[i] = i % 2 ? ed_concat(ed_list_of(none, point, last), .axis = -1)
                        : ed_concat(ed_list_of(point, none, last), .axis = -1);
        right[i] = ed_full(ED_SHAPE(batch, 1), to, .dtype = x->dtype);
        if (!rows[i] || !right[i]) return NULL;
    }
    ed_tensor *a = ed_stack(ed_list_make(rows, 8), .axis = 1),
              *b = ed_stack(ed_list_make(right, 8), .axis = 1);
    return ed_unstack(ed_expand_dims(ed_solve(a, b), -1), .axis = 1);
}

static ed_tensor *seen(const ed_layer_random_perspective_options *o, ed_tensor *x, ed_tensor *u)
{
    double places[8];
    for (int i = 0; i < 8; i++) places[i] = corner(x, i / 2, i % 2);
    ed_tensor *corners = ed_cast(ed_constant_of(ED_FLOAT64, places, ED_SHAPE(1, 4, 2)), x->dtype);
    ed_list *numbers = homography(x, ed_mul(corners, ed_add(u, 1.0)));
    if (!numbers) return NULL;
    ed_tensor *a[8], *columns, *rows;
    for (int i = 0; i < 8; i++) a[i] = ed_list_get(numbers, i);
    augment_grid(x, &columns, &rows);
    ed_tensor *d = ed_add(ed_add(ed_mul(a[6], columns), ed_mul(a[7], rows)), 1.0);
    ed_tensor *at[2];
    for (int k = 0; k < 2; k++)
        at[k] = ed_div(
            ed_add(ed_add(ed_mul(a[3 * k], columns), ed_mul(a[3 * k + 1], rows)), a[3 * k + 2]), d);
    return augment_sample(x, at[0], at[1], "constant", o->fill_value, o->interpolation);
}

static bool random_perspective_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_perspective_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    const bool flat = x->shape[x->rank - 2] < 2 || x->shape[x->rank - 3] < 2;
    if (!call->training || flat || x->size == 0) return ed_layer_return(call, x);
    ed_tensor *chosen = augment_chosen(x, *(augment_range *)ed_layer_state(layer), o->generator);
    ed_tensor *batch = chosen ? augment_batch(x) : NULL;
    if (!batch) return false;
    ed_tensor *u = ed_random_uniform(
        ED_SHAPE(batch->shape[0], 4, 2), .dtype = x->dtype, .low = -0.5 * o->scale,
        .high = o->scale > 0 ? 0.5 * o->scale : 1, .generator = o->generator);
    if (u && o->scale == 0) u = ed_zeros_like(u);
    ed_tensor *y = u ? augment_like(seen(o, batch, u), x) : NULL;
    return y && ed_layer_return(call, ed_where(chosen, y, x));
}

LAYER(random_perspective, RANDOM_PERSPECTIVE, 0, "in training images are seen from another side",
      .state_size = sizeof(augment_range), .init = random_perspective_init,
      .forward = random_perspective_forward, .track = augment_track,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(random_perspective, RANDOM_PERSPECTIVE, .factor = {always, 2}),
           .inputs = {{4, {2, 3, 4, 2}}},
           .n_inputs = 1},
          {.options = OPTIONS(random_perspective, RANDOM_PERSPECTIVE, .interpolation = "nearest",
                              .scale = 0, .fill_value = 2),
           .inputs = {{3, {3, 4, 1}}},
           .n_inputs = 1}))

/* ---- random_elastic_transform ---------------------------------------------------------------- */

typedef struct elastic {
    augment_range factor, scale, values;
} elastic;

static bool random_elastic_transform_init(ed_layer *layer)
{
    const ed_layer_random_elastic_transform_options *o = layer_options(layer);
    elastic *e = ed_layer_state(layer);
    return augment_factor_or(layer, "factor", o->factor, 0, 1, &e->factor) &&
           augment_factor_or(layer, "scale", o->scale, 0, 1, &e->scale) &&
           augment_values(layer, o->value_range, &e->values);
}

/* Smooth random numbers [batch, height, width]. */
static ed_tensor *wave(const ed_tensor *x, double sigma, ed_generator *generator)
{
    const int64_t size = (6 * (int64_t)sigma) | 1, sizes[] = {size, size};
    ed_tensor *noise = ed_random_normal(ED_SHAPE(x->shape[0], x->shape[1], x->shape[2], 1),
                                        .dtype = x->dtype, .generator = generator);
    ed_tensor *both = noise ? ed_full(ED_SHAPE(2), sigma, .dtype = x->dtype) : NULL;
    ed_tensor *y = both ? augment_blurred(ed_mul(noise, sigma), sizes, both) : NULL;
    return y ? ed_squeeze(y, .axis = ED_AXES(-1)) : NULL;
}

static ed_tensor *bent(const ed_layer_random_elastic_transform_options *o, ed_tensor *x,
                       double scale)
{
    const double h = (double)x->shape[1], w = (double)x->shape[2];
    const double sigma = (h < w ? h : w) * 0.05 * scale, alpha = (h < w ? w : h) * 0.1 * scale;
    if (!(sigma > 0)) return x;
    ed_tensor *columns, *rows, *dx = wave(x, sigma, o->generator);
    ed_tensor *dy = dx ? wave(x, sigma, o->generator) : NULL;
    if (!dy) return NULL;
    augment_grid(x, &columns, &rows);
    return augment_sample(x, ed_add(columns, ed_mul(dx, alpha)), ed_add(rows, ed_mul(dy, alpha)),
                          o->fill_mode, o->fill_value, o->interpolation);
}

static bool random_elastic_transform_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_elastic_transform_options *o = layer_options(layer);
    const elastic *e = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training || x->size == 0 || e->scale.high == 0 || e->factor.high == 0)
        return ed_layer_return(call, x);
    ed_tensor *chosen = augment_chosen(x, e->factor, o->generator);
    ed_tensor *scale = chosen ? ed_random_uniform(ED_SHAPE(), .dtype = ED_FLOAT64, .low = 0,
                                                  .high = 1, .generator = o->generator)
                              : NULL;
    ed_tensor *batch = scale ? augment_batch(x) : NULL;
    if (!batch) return false;
    const double share = e->scale.low + ed_item(scale) * (e->scale.high - e->scale.low);
    ed_tensor *y = augment_like(bent(o, batch, share), x);
    y = y ? ed_where(chosen, y, x) : NULL;
    return ed_layer_return(call, y ? ed_clip(y, e->values.low, e->values.high) : NULL);
}

LAYER(random_elastic_transform, RANDOM_ELASTIC_TRANSFORM, 0,
      "in training images are bent as if they were soft", .state_size = sizeof(elastic),
      .init = random_elastic_transform_init, .forward = random_elastic_transform_forward,
      .track = augment_track,
      .samples =
          LAYER_SAMPLES({.options = OPTIONS(random_elastic_transform, RANDOM_ELASTIC_TRANSFORM,
                                            .factor = {always, 2}, .scale = {sample_scale, 2},
                                            .value_range = {sample_range, 2}),
                         .inputs = {{4, {2, 5, 4, 2}}},
                         .n_inputs = 1},
                        {.options = OPTIONS(random_elastic_transform, RANDOM_ELASTIC_TRANSFORM,
                                            .fill_mode = "constant", .interpolation = "nearest"),
                         .inputs = {{3, {3, 4, 1}}},
                         .n_inputs = 1}))
