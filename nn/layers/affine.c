#include "nn/layers/augment.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/*
 * random_rotation, random_zoom, random_translation, random_shear: the pixel at (x, y) of the result
 * is that at (a0 x + a1 y + a2, b0 x + b1 y + b2) of the image, with six numbers for each image.
 */
typedef struct affine {
    ed_tensor *a[3], *b[3];                /* [batch, 1, 1]; NULL: that of no change */
    const char *fill_mode, *interpolation; /* the options */
    double fill_value;
} affine;

/* ---- Pixels at any place --------------------------------------------------------------------- */

/* Coordinates along an axis of n pixels, moved to pixels that there are, as fill_mode says. */
static ed_tensor *inside(const char *fill_mode, ed_tensor *at, int64_t n)
{
    const double last = (double)(n - 1);
    if (!strcmp(fill_mode, "constant")) return at;
    if (!strcmp(fill_mode, "reflect")) {
        at = ed_floor_mod(at, (double)(2 * n));
        at = ed_where(ed_greater_equal(at, (double)n), ed_sub((double)(2 * n - 1), at), at);
    } else if (!strcmp(fill_mode, "wrap") && n > 1) {
        ed_tensor *turns = ed_floor(ed_div(ed_abs(at), last));
        ed_tensor *below = ed_add(at, ed_mul(ed_add(turns, 1.0), (double)n)),
                  *above = ed_sub(at, ed_mul(turns, (double)n));
        at = ed_where(ed_less(at, 0.0), below, ed_where(ed_greater(at, last), above, at));
    }
    return at ? ed_clip(at, 0, last) : NULL;
}

/* The pixels at whole coordinates [batch, height, width]: [batch, height, width, channels]. */
static ed_tensor *pixels(const affine *t, ed_tensor *x, ed_tensor *at_x, ed_tensor *at_y)
{
    const int64_t batch = x->shape[0], h = x->shape[1], w = x->shape[2], channels = x->shape[3];
    ed_tensor *column = ed_clip(at_x, 0, (double)(w - 1)), *row = ed_clip(at_y, 0, (double)(h - 1));
    ed_tensor *is = ed_logical_and(ed_equal(column, at_x), ed_equal(row, at_y));
    ed_tensor *numbers = ed_add(ed_mul(ed_cast(row, ED_INT64), w), ed_cast(column, ED_INT64));
    ed_tensor *all = ed_reshape(x, ED_SHAPE(batch, h * w, channels));
    ed_tensor *y =
        ed_gather(all, ed_reshape(numbers, ED_SHAPE(batch, h * w)), .axis = 1, .batch_dims = 1);
    y = ed_reshape(y, ED_SHAPE(batch, h, w, channels));
    if (strcmp(t->fill_mode, "constant") != 0) return y;
    return ed_where(ed_expand_dims(is, -1), y, t->fill_value);
}

/* a + share (b - a), the share [batch, height, width] of all channels. */
static ed_tensor *between(ed_tensor *a, ed_tensor *b, ed_tensor *share)
{
    ed_tensor *part = ed_expand_dims(share, -1);
    return ed_add(ed_mul(a, ed_sub(1.0, part)), ed_mul(b, part));
}

static ed_tensor *interpolated(const affine *t, ed_tensor *x, ed_tensor *at_x, ed_tensor *at_y)
{
    if (!strcmp(t->interpolation, "nearest")) return pixels(t, x, ed_round(at_x), ed_round(at_y));
    ed_tensor *left = ed_floor(at_x), *top = ed_floor(at_y);
    ed_tensor *right = ed_add(left, 1.0), *bottom = ed_add(top, 1.0);
    ed_tensor *share = ed_sub(at_x, left);
    return between(between(pixels(t, x, left, top), pixels(t, x, right, top), share),
                   between(pixels(t, x, left, bottom), pixels(t, x, right, bottom), share),
                   ed_sub(at_y, top));
}

ed_tensor *augment_sample(ed_tensor *x, ed_tensor *at_x, ed_tensor *at_y, const char *fill_mode,
                          double fill_value, const char *interpolation)
{
    const affine t = {
        .fill_mode = fill_mode, .interpolation = interpolation, .fill_value = fill_value};
    return interpolated(&t, x, inside(fill_mode, at_x, x->shape[2]),
                        inside(fill_mode, at_y, x->shape[1]));
}

void augment_grid(const ed_tensor *x, ed_tensor **columns, ed_tensor **rows)
{
    const int64_t h = x->shape[1], w = x->shape[2];
    *columns = ed_reshape(ed_range(0, w, .dtype = x->dtype), ED_SHAPE(1, 1, w));
    *rows = ed_reshape(ed_range(0, h, .dtype = x->dtype), ED_SHAPE(1, h, 1));
}

/* c0 x + c1 y + c2. */
static ed_tensor *line(ed_tensor *const c[3], ed_tensor *x, ed_tensor *y)
{
    return ed_add(ed_add(ed_mul(c[0], x), ed_mul(c[1], y)), c[2]);
}

static ed_tensor *transformed(affine *t, ed_tensor *image)
{
    ed_tensor *x = augment_batch(image);
    if (!x || x->size == 0) return x ? image : NULL;
    const int64_t h = x->shape[1], w = x->shape[2];
    for (int i = 0; i < 3; i++) {
        if (!t->a[i]) t->a[i] = ed_full(ED_SHAPE(1, 1, 1), i == 0, .dtype = x->dtype);
        if (!t->b[i]) t->b[i] = ed_full(ED_SHAPE(1, 1, 1), i == 1, .dtype = x->dtype);
    }
    ed_tensor *columns, *rows;
    augment_grid(x, &columns, &rows);
    const int64_t batch = x->shape[0];
    ed_tensor *zeros = ed_zeros(ED_SHAPE(batch, h, w), .dtype = x->dtype);
    ed_tensor *at_x = ed_add(line(t->a, columns, rows), zeros),
              *at_y = ed_add(line(t->b, columns, rows), zeros);
    ed_tensor *y = augment_sample(x, at_x, at_y, t->fill_mode, t->fill_value, t->interpolation);
    return augment_like(y, image);
}

/* A number for each image, [batch, 1, 1]. */
static ed_tensor *drawn(const ed_tensor *x, augment_range bounds, ed_generator *generator)
{
    ed_tensor *numbers = augment_of_each(x, bounds, generator);
    return numbers && x->rank == 4 ? ed_squeeze(numbers, .axis = ED_AXES(-1)) : numbers;
}

/* The transformation that changes nothing, from a layer's options. */
#define AFFINE(o)                                                                                  \
    {                                                                                              \
        .fill_mode = (o)->fill_mode, .interpolation = (o)->interpolation,                          \
        .fill_value = (o)->fill_value                                                              \
    }

static const double sample_factor[] = {0.1, 0.1}, other_factor[] = {-0.2, -0.2};

/* Options of a sample. */
#define FACTOR(values)                                                                             \
    {                                                                                              \
        values, 2                                                                                  \
    }
#define IMAGES .inputs = {{4, {2, 3, 4, 2}}}, .n_inputs = 1
#define IMAGE  .inputs = {{3, {3, 2, 1}}}, .n_inputs = 1

/* ---- random_rotation ------------------------------------------------------------------------- */

static bool random_rotation_init(ed_layer *layer)
{
    const ed_layer_random_rotation_options *o = layer_options(layer);
    return augment_factor(layer, "factor", o->factor, true, ed_layer_state(layer));
}

static bool random_rotation_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_rotation_options *o = layer_options(layer);
    const augment_range *factor = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    const double middle_x = (double)(x->shape[x->rank - 2] - 1) / 2,
                 middle_y = (double)(x->shape[x->rank - 3] - 1) / 2;
    ed_tensor *angle = drawn(x, *factor, o->generator);
    if (!angle || !(angle = ed_mul(angle, 2 * M_PI))) return false;
    ed_tensor *cosine = ed_cos(angle), *sine = ed_sin(angle);
    affine t = AFFINE(o);
    t.a[0] = t.b[1] = cosine;
    t.a[1] = ed_neg(sine);
    t.b[0] = sine;
    t.a[2] = ed_add(ed_mul(ed_sub(1.0, cosine), middle_x), ed_mul(sine, middle_y));
    t.b[2] = ed_sub(ed_mul(ed_sub(1.0, cosine), middle_y), ed_mul(sine, middle_x));
    return t.b[2] && ed_layer_return(call, transformed(&t, x));
}

LAYER(random_rotation, RANDOM_ROTATION, 1, "in training images are turned",
      .state_size = sizeof(augment_range), .init = random_rotation_init,
      .forward = random_rotation_forward, .track = augment_track,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(random_rotation, RANDOM_ROTATION, .factor = FACTOR(sample_factor)),
           IMAGES},
          {.options = OPTIONS(random_rotation, RANDOM_ROTATION, .factor = FACTOR(other_factor),
                              .fill_mode = "constant", .fill_value = 1),
           IMAGE}))

/* ---- random_zoom ----------------------------------------------------------------------------- */

static bool random_zoom_init(ed_layer *layer)
{
    const ed_layer_random_zoom_options *o = layer_options(layer);
    augment_range *factors = ed_layer_state(layer);
    return augment_factor(layer, "height_factor", o->height_factor, true, &factors[0]) &&
           augment_factor(layer, "width_factor", o->width_factor, true, &factors[1]);
}

/* The middle stays: (n - 1) / 2 (1 - zoom). */
static ed_tensor *centered(ed_tensor *zoom, int64_t n)
{
    return ed_mul(ed_sub(1.0, zoom), (double)(n - 1) / 2);
}

static bool random_zoom_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_zoom_options *o = layer_options(layer);
    const augment_range *factors = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *tall = drawn(x, factors[0], o->generator);
    ed_tensor *wide = o->width_factor.values ? drawn(x, factors[1], o->generator) : tall;
    if (!tall || !wide) return false;
    affine t = AFFINE(o);
    t.a[0] = ed_add(wide, 1.0);
    t.b[1] = ed_add(tall, 1.0);
    t.a[2] = centered(t.a[0], x->shape[x->rank - 2]);
    t.b[2] = centered(t.b[1], x->shape[x->rank - 3]);
    return t.b[2] && t.a[2] && ed_layer_return(call, transformed(&t, x));
}

LAYER(random_zoom, RANDOM_ZOOM, 1, "in training images become smaller or larger",
      .state_size = 2 * sizeof(augment_range), .init = random_zoom_init,
      .forward = random_zoom_forward, .track = augment_track,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(random_zoom, RANDOM_ZOOM, .height_factor = FACTOR(sample_factor),
                              .fill_mode = "wrap"),
           IMAGES},
          {.options = OPTIONS(random_zoom, RANDOM_ZOOM, .height_factor = FACTOR(sample_factor),
                              .width_factor = FACTOR(other_factor), .fill_mode = "nearest"),
           IMAGE}))

/* ---- random_translation ---------------------------------------------------------------------- */

static bool random_translation_init(ed_layer *layer)
{
    const ed_layer_random_translation_options *o = layer_options(layer);
    augment_range *factors = ed_layer_state(layer);
    return augment_factor(layer, "height_factor", o->height_factor, true, &factors[0]) &&
           augment_factor(layer, "width_factor", o->width_factor, true, &factors[1]);
}

static bool random_translation_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_translation_options *o = layer_options(layer);
    const augment_range *factors = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *down = drawn(x, factors[0], o->generator);
    ed_tensor *right = down ? drawn(x, factors[1], o->generator) : NULL;
    if (!right) return false;
    affine t = AFFINE(o);
    t.a[2] = ed_mul(right, -(double)x->shape[x->rank - 2]);
    t.b[2] = ed_mul(down, -(double)x->shape[x->rank - 3]);
    return t.a[2] && t.b[2] && ed_layer_return(call, transformed(&t, x));
}

LAYER(random_translation, RANDOM_TRANSLATION, 2, "in training images are shifted",
      .state_size = 2 * sizeof(augment_range), .init = random_translation_init,
      .forward = random_translation_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_translation, RANDOM_TRANSLATION,
                                                   .height_factor = FACTOR(sample_factor),
                                                   .width_factor = FACTOR(other_factor)),
                                IMAGES},
                               {.options = OPTIONS(random_translation, RANDOM_TRANSLATION,
                                                   .height_factor = FACTOR(sample_factor),
                                                   .width_factor = FACTOR(other_factor),
                                                   .fill_mode = "constant"),
                                IMAGE}))

/* ---- random_shear ---------------------------------------------------------------------------- */

static bool random_shear_init(ed_layer *layer)
{
    const ed_layer_random_shear_options *o = layer_options(layer);
    augment_range *factors = ed_layer_state(layer);
    return augment_factor(layer, "x_factor", o->x_factor, true, &factors[0]) &&
           augment_factor(layer, "y_factor", o->y_factor, true, &factors[1]);
}

static bool random_shear_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_shear_options *o = layer_options(layer);
    const augment_range *factors = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *side = drawn(x, (augment_range){-1, 1}, o->generator);
    ed_tensor *vertical = side ? drawn(x, factors[1], o->generator) : NULL;
    ed_tensor *horizontal = vertical ? drawn(x, factors[0], o->generator) : NULL;
    if (!horizontal) return false;
    ed_tensor *turned = ed_less(side, 0.0);
    affine t = AFFINE(o);
    t.a[1] = ed_where(turned, ed_neg(horizontal), horizontal);
    t.b[0] = ed_where(turned, ed_neg(vertical), vertical);
    return t.a[1] && t.b[0] && ed_layer_return(call, transformed(&t, x));
}

static const double sample_shear[] = {0.3, 0.3};

LAYER(random_shear, RANDOM_SHEAR, 0, "in training images are sheared",
      .state_size = 2 * sizeof(augment_range), .init = random_shear_init,
      .forward = random_shear_forward, .track = augment_track,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(random_shear, RANDOM_SHEAR, .x_factor = FACTOR(sample_shear)),
           IMAGES},
          {.options = OPTIONS(random_shear, RANDOM_SHEAR, .x_factor = FACTOR(sample_shear),
                              .y_factor = FACTOR(sample_shear), .fill_mode = "constant"),
           IMAGE}))
