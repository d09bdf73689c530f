/* What layers of images share. */
#ifndef EDDY_NN_LAYERS_AUGMENT_H
#define EDDY_NN_LAYERS_AUGMENT_H

#include "nn/layer_core.h"
#include "ops/ops.h"

/* Two numbers, the lower one first. */
typedef struct augment_range {
    double low, high;
} augment_range;

/* Whether x is floats, images or one image; false with an error. */
bool augment_accepts(const ed_layer *layer, const ed_tensor *x);

/* Numbers between the bounds; drawn, unless these are the same. */
ed_tensor *augment_between(ed_ints shape, ed_dtype dtype, augment_range bounds,
                           ed_generator *generator);

/* One for each image, [batch, 1, 1, 1] or [1, 1, 1]. */
ed_tensor *augment_of_each(const ed_tensor *x, augment_range bounds, ed_generator *generator);

/* Whether an option is one or two numbers, and whether bounds are in order; false, with an error
 * that names the option, if not. */
bool augment_one_or_two(const ed_layer *layer, const char *name, int64_t count);
bool augment_in_order(const ed_layer *layer, const char *name, augment_range bounds);

/* The bounds of an option: two numbers, or one f, whose lower bound is -|f| if `both`, else 0; not
 * given: 0. false, with an error that names the option, if they are not such. */
bool augment_factor(const ed_layer *layer, const char *name, ed_floats given, bool both,
                    augment_range *bounds);

/* The same, with other bounds where the option is not given. */
static inline bool augment_factor_or(const ed_layer *layer, const char *name, ed_floats given,
                                     double low, double high, augment_range *bounds)
{
    if (given.values) return augment_factor(layer, name, given, false, bounds);
    *bounds = (augment_range){low, high};
    return true;
}

/* Pixels of one range as those of another. */
ed_tensor *augment_in_range(ed_tensor *x, augment_range from, augment_range to);

/* Which images are changed, each with a probability that is drawn between the bounds. */
ed_tensor *augment_chosen(const ed_tensor *x, augment_range probability, ed_generator *generator);

/* Pixels [batch, height, width, channels] at the coordinates [batch, height, width]. */
ed_tensor *augment_sample(ed_tensor *x, ed_tensor *at_x, ed_tensor *at_y, const char *fill_mode,
                          double fill_value, const char *interpolation);

/* The coordinates of all pixels, [1, 1, width] and [1, height, 1]. */
void augment_grid(const ed_tensor *x, ed_tensor **columns, ed_tensor **rows);

/* Images [batch, height, width, channels] blurred by Gaussian kernels of two odd sizes; sigma:
 * [2]. */
ed_tensor *augment_blurred(ed_tensor *x, const int64_t sizes[2], ed_tensor *sigma);

/* f(images, ...) of one image too: as a batch of one, and back. */
static inline ed_tensor *augment_batch(ed_tensor *x)
{
    return x->rank == 3 ? ed_expand_dims(x, 0) : x;
}
static inline ed_tensor *augment_like(ed_tensor *y, const ed_tensor *x)
{
    return y && x->rank == 3 ? ed_squeeze(y, .axis = ED_AXES(0)) : y;
}

/* The bounds of pixels, by default 0 and 255. */
bool augment_values(const ed_layer *layer, ed_floats given, augment_range *bounds);

/* For .track of layers with the option generator. */
void augment_track(ed_layer *layer, ed_tracker *tracker);

#endif
