#include "nn/layers/augment.h"
#include "ops/ops.h"
#include <string.h>

/* random_gaussian_blur, random_erasing; mix_up, cut_mix. */

static const double sample_range[] = {-2, 2}, always[] = {1, 1}, half[] = {0.5, 0.5};

/* ---- random_gaussian_blur -------------------------------------------------------------------- */

ed_tensor *augment_chosen(const ed_tensor *x, augment_range probability, ed_generator *generator)
{
    ed_tensor *p = augment_of_each(x, probability, generator);
    ed_tensor *draws = p ? augment_of_each(x, (augment_range){0, 1}, generator) : NULL;
    return draws ? ed_less(draws, p) : NULL;
}

/* A kernel along one axis, [n], whose sum is 1. */
static ed_tensor *bell(int64_t n, ed_tensor *sigma)
{
    ed_tensor *at = ed_sub(ed_range(0, n, .dtype = sigma->dtype), (double)(n - 1) / 2);
    ed_tensor *y = ed_exp(ed_mul(ed_square(ed_div(at, sigma)), -0.5));
    return ed_div(y, ed_reduce_sum(y));
}

ed_tensor *augment_blurred(ed_tensor *x, const int64_t sizes[2], ed_tensor *sigma)
{
    ed_list *each = ed_unstack(sigma);
    if (!x || !each) return NULL;
    ed_tensor *a = bell(sizes[0], ed_list_get(each, 0)), *b = bell(sizes[1], ed_list_get(each, 1));
    ed_tensor *kernel = ed_mul(ed_expand_dims(b, 1), ed_expand_dims(a, 0));
    kernel = ed_reshape(kernel, ED_SHAPE(sizes[0], sizes[1], 1, 1));
    kernel = ed_tile(kernel, ED_INTS(1, 1, x->shape[3], 1));
    return ed_depthwise_conv2d(x, kernel, .padding = "SAME");
}

typedef struct blur {
    augment_range factor, sigma, values;
    int64_t sizes[2];
} blur;

static bool random_gaussian_blur_init(ed_layer *layer)
{
    const ed_layer_random_gaussian_blur_options *o = layer_options(layer);
    blur *b = ed_layer_state(layer);
    const ed_ints k = o->kernel_size;
    if (k.values && !augment_one_or_two(layer, "kernel_size", k.count)) return false;
    for (int i = 0; i < 2; i++) {
        b->sizes[i] = !k.values ? 3 : k.values[k.count == 1 ? 0 : i];
        if (b->sizes[i] % 2 == 0)
            return layer_fail(layer, ED_INVALID_ARGUMENT, "kernel_size must be odd, got %lld",
                              (long long)b->sizes[i]);
    }
    return augment_factor_or(layer, "factor", o->factor, 0, 1, &b->factor) &&
           augment_factor_or(layer, "sigma", o->sigma, 0, 1, &b->sigma) &&
           augment_values(layer, o->value_range, &b->values);
}

/* Numbers of the whole batch, and never 0. */
static ed_tensor *positive(ed_ints shape, ed_dtype dtype, augment_range bounds,
                           ed_generator *generator)
{
    return ed_add(augment_between(shape, dtype, bounds, generator), 1e-6);
}

static bool random_gaussian_blur_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_gaussian_blur_options *o = layer_options(layer);
    const blur *b = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *chosen = augment_chosen(x, b->factor, o->generator);
    ed_tensor *sigma = chosen ? positive(ED_SHAPE(2), x->dtype, b->sigma, o->generator) : NULL;
    ed_tensor *batch = sigma ? augment_batch(x) : NULL;
    ed_tensor *y = batch ? augment_like(augment_blurred(batch, b->sizes, sigma), x) : NULL;
    y = y ? ed_where(chosen, y, x) : NULL;
    return ed_layer_return(call, y ? ed_clip(y, b->values.low, b->values.high) : NULL);
}

LAYER(random_gaussian_blur, RANDOM_GAUSSIAN_BLUR, 0, "in training images are blurred or not",
      .state_size = sizeof(blur), .init = random_gaussian_blur_init,
      .forward = random_gaussian_blur_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.options = OPTIONS(random_gaussian_blur, RANDOM_GAUSSIAN_BLUR,
                                                   .factor = {always, 2}, .sigma = {half, 2},
                                                   .kernel_size = ED_SAMPLE_INTS(3, 5),
                                                   .value_range = {sample_range, 2}),
                                .inputs = {{4, {2, 3, 4, 2}}},
                                .n_inputs = 1},
                               {.inputs = {{3, {3, 2, 1}}}, .n_inputs = 1}))

/* ---- Rectangles ------------------------------------------------------------------------------ */

/* Whether each coordinate along an axis of n pixels is within a range that is drawn: its length is
 * the share, [batch, 1, 1, 1], of n. Sets *length to that in pixels. */
static ed_tensor *box_within(const ed_tensor *x, ed_tensor *share, int axis,
                             ed_generator *generator, ed_tensor **length)
{
    const int64_t n = x->shape[x->rank + axis];
    int64_t shape[] = {1, 1, 1, 1};
    shape[4 + axis] = n;
    ed_tensor *start = augment_of_each(x, (augment_range){0, 1}, generator);
    if (!start || !share || !(*length = ed_mul(share, (double)n))) return NULL;
    start = ed_mul(start, ed_sub((double)n, *length));
    ed_tensor *at =
        ed_reshape(ed_range(0, n, .dtype = x->dtype), ((ed_ints){shape + 4 - x->rank, x->rank}));
    return ed_logical_and(ed_greater_equal(at, start), ed_less(at, ed_add(start, *length)));
}

/* Whether a pixel is in the image's rectangle; columns are drawn first, as by Keras. *lengths are
 * its width and height. */
static ed_tensor *rectangle(const ed_tensor *x, ed_tensor *const shares[2], ed_generator *generator,
                            ed_tensor *lengths[2])
{
    ed_tensor *columns = box_within(x, shares[0], -2, generator, &lengths[0]);
    ed_tensor *rows = columns ? box_within(x, shares[1], -3, generator, &lengths[1]) : NULL;
    return rows ? ed_logical_and(columns, rows) : NULL;
}

/* ---- random_erasing -------------------------------------------------------------------------- */

typedef struct erasing {
    augment_range factor, scale, values;
} erasing;

static bool random_erasing_init(ed_layer *layer)
{
    const ed_layer_random_erasing_options *o = layer_options(layer);
    erasing *e = ed_layer_state(layer);
    return augment_factor_or(layer, "factor", o->factor, 0, 1, &e->factor) &&
           augment_factor_or(layer, "scale", o->scale, 0.02, 0.33, &e->scale) &&
           augment_values(layer, o->value_range, &e->values);
}

/* What stands in rectangles. */
static ed_tensor *filling(const ed_layer *layer, const ed_tensor *x)
{
    const ed_layer_random_erasing_options *o = layer_options(layer);
    const erasing *e = ed_layer_state((ed_layer *)layer);
    const int64_t n = o->fill_value.count, channels = x->shape[x->rank - 1];
    ed_tensor *y;
    if (!o->fill_value.values)
        y = ed_mul(ed_random_normal(((ed_ints){x->shape, x->rank}), .dtype = x->dtype,
                                    .generator = o->generator),
                   e->values.high);
    else if (n != 1 && n != channels)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "fill_value must be 1 number or %lld, one for each channel, got %lld",
                          (long long)channels, (long long)n);
    else
        y = ed_cast(ed_constant_of(ED_FLOAT64, o->fill_value.values, ED_SHAPE(n)), x->dtype);
    return y ? ed_clip(y, e->values.low, e->values.high) : NULL;
}

static bool random_erasing_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_random_erasing_options *o = layer_options(layer);
    const erasing *e = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0], *shares[2] = {NULL, NULL}, *lengths[2];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    for (int i = 0; i < 2; i++) {
        ed_tensor *area = augment_of_each(x, e->scale, o->generator);
        if (!area || !(shares[i] = ed_sqrt(area))) return false;
    }
    ed_tensor *erased = rectangle(x, shares, o->generator, lengths);
    ed_tensor *chosen = erased ? augment_chosen(x, e->factor, o->generator) : NULL;
    ed_tensor *value = chosen ? filling(layer, x) : NULL;
    return value && ed_layer_return(call, ed_where(ed_logical_and(erased, chosen), value, x));
}

LAYER(random_erasing, RANDOM_ERASING, 0, "in training a rectangle of images is erased or not",
      .state_size = sizeof(erasing), .init = random_erasing_init, .forward = random_erasing_forward,
      .track = augment_track,
      .samples = LAYER_SAMPLES({.inputs = {{4, {2, 3, 4, 2}}}, .n_inputs = 1},
                               {.options = OPTIONS(random_erasing, RANDOM_ERASING,
                                                   .factor = {always, 2}, .scale = {always, 2},
                                                   .fill_value = {half, 2}),
                                .inputs = {{3, {3, 2, 2}}},
                                .n_inputs = 1}))

/* ---- mix_up, cut_mix ------------------------------------------------------------------------- */

/* Numbers of Beta(alpha, alpha), [batch, 1, 1, 1]. Where both gamma numbers are 0, as they are for
 * a small alpha, it is 0 or 1. */
static ed_tensor *beta(ed_tensor *alpha, const ed_tensor *x, ed_generator *generator)
{
    const ed_ints shape = ED_SHAPE(x->shape[0], 1, 1, 1);
    ed_tensor *all = ed_broadcast_to(ed_cast(alpha, ED_FLOAT64), shape);
    ed_tensor *a = ed_random_gamma(all, .generator = generator);
    ed_tensor *b = a ? ed_random_gamma(all, .generator = generator) : NULL;
    ed_tensor *u = b ? ed_random_uniform(shape, .dtype = ED_FLOAT64, .generator = generator) : NULL;
    ed_tensor *sum = u ? ed_add(a, b) : NULL;
    if (!sum) return NULL;
    ed_tensor *none = ed_equal(sum, 0.0);
    ed_tensor *share = ed_where(none, ed_round(u), ed_div(a, ed_where(none, 1.0, sum)));
    return ed_cast(share, x->dtype);
}

/* Whether there are images, and labels that belong to them. */
static bool accepts_pair(const ed_layer *layer, const ed_layer_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->n_inputs > 1 ? call->inputs[1] : NULL;
    if (!augment_accepts(layer, x) || !y) return !y && !ed_failed();
    if (!layer_accepts(layer, y, 1, true)) return false;
    return (x->rank == 4 && y->shape[0] == x->shape[0]) ||
           layer_fail(layer, ED_INVALID_ARGUMENT, "labels must be [batch, ...]: they are %s of %s",
                      text_of_tensor(y).s, text_of_tensor(x).s);
}

/* Returns the inputs as they are. */
static bool return_inputs(ed_layer_call *call)
{
    bool fine = true;
    for (int i = 0; fine && i < call->n_inputs; i++) fine = ed_layer_return(call, call->inputs[i]);
    return fine;
}

/* w a + (1 - w) a[order], w being [batch, 1, 1, 1]. */
static ed_tensor *shared(ed_tensor *a, ed_tensor *w, ed_tensor *order)
{
    int64_t shape[ED_MAX_RANK] = {a->shape[0]};
    for (int i = 1; i < a->rank; i++) shape[i] = 1;
    w = ed_cast(ed_reshape(w, ((ed_ints){shape, a->rank})), a->dtype);
    return ed_add(ed_mul(w, a), ed_mul(ed_sub(1.0, w), ed_gather(a, order, .axis = 0)));
}

static bool mix_up_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_mix_up_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!accepts_pair(layer, call)) return false;
    if (!call->training || x->rank == 3) return return_inputs(call);
    ed_tensor *order = ed_random_permutation(x->shape[0], .generator = o->generator);
    ed_tensor *w = order ? beta(ed_full(ED_SHAPE(), o->alpha), x, o->generator) : NULL;
    if (!w || !ed_layer_return(call, shared(x, w, order))) return false;
    return call->n_inputs == 1 || ed_layer_return(call, shared(call->inputs[1], w, order));
}

LAYER(mix_up, MIX_UP, 0, "in training each image is mixed with another one", .max_inputs = 2,
      .forward = mix_up_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.inputs = {{4, {3, 2, 2, 1}}}, .n_inputs = 1},
                               {.inputs = {{4, {2, 2, 2, 1}}, {2, {2, 3}}}, .n_inputs = 2},
                               {.inputs = {{3, {2, 2, 1}}}, .n_inputs = 1}))

static bool cut_mix_init(ed_layer *layer)
{
    const ed_layer_cut_mix_options *o = layer_options(layer);
    return augment_factor_or(layer, "factor", o->factor, 0, 1, ed_layer_state(layer));
}

static bool cut_mix_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_cut_mix_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0], *lengths[2];
    if (!accepts_pair(layer, call)) return false;
    if (!call->training || x->rank == 3) return return_inputs(call);
    const augment_range *factor = ed_layer_state(layer);
    ed_tensor *alpha = positive(ED_SHAPE(), ED_FLOAT64, *factor, o->generator);
    ed_tensor *w = alpha ? beta(alpha, x, o->generator) : NULL;
    ed_tensor *side = w ? ed_sqrt(ed_sub(1.0, w)) : NULL;
    ed_tensor *mask =
        side ? rectangle(x, (ed_tensor *const[]){side, side}, o->generator, lengths) : NULL;
    ed_tensor *order = mask ? ed_random_permutation(x->shape[0], .generator = o->generator) : NULL;
    if (!order || !ed_layer_return(call, ed_where(mask, ed_gather(x, order, .axis = 0), x)))
        return false;
    if (call->n_inputs == 1) return true;
    const double pixels = (double)(x->shape[1] * x->shape[2]);
    w = ed_sub(1.0, ed_div(ed_mul(lengths[0], lengths[1]), pixels));
    return w && ed_layer_return(call, shared(call->inputs[1], w, order));
}

LAYER(cut_mix, CUT_MIX, 0, "in training a rectangle of each image comes from another one",
      .max_inputs = 2, .state_size = sizeof(augment_range), .init = cut_mix_init,
      .forward = cut_mix_forward, .track = augment_track,
      .samples = LAYER_SAMPLES({.inputs = {{4, {3, 2, 2, 1}}}, .n_inputs = 1},
                               {.inputs = {{4, {2, 3, 2, 2}}, {2, {2, 3}}}, .n_inputs = 2}))
