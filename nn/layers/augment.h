/* What layers of images share. */
#ifndef EDDY_NN_LAYERS_AUGMENT_H
#define EDDY_NN_LAYERS_AUGMENT_H

#include "nn/layer_core.h"

/* Two numbers, the lower one first. */
typedef struct augment_range {
    double low, high;
} augment_range;

/* Whether x is floats, images or one image; false with an error. */
bool augment_accepts(const ed_layer *layer, const ed_tensor *x);

/* A number for each image, [batch, 1, 1, 1] or [1, 1, 1], between the bounds; drawn, unless these
 * are the same. */
ed_tensor *augment_of_each(const ed_tensor *x, augment_range bounds, ed_generator *generator);

/* The bounds of an option: two numbers, or one f, whose lower bound is -|f| if `both`, else 0; not
 * given: 0. false, with an error that names the option, if they are not such. */
bool augment_factor(const ed_layer *layer, const char *name, ed_floats given, bool both,
                    augment_range *bounds);

/* The bounds of pixels, by default 0 and 255. */
bool augment_values(const ed_layer *layer, ed_floats given, augment_range *bounds);

/* For .track of layers with the option generator. */
void augment_track(ed_layer *layer, ed_tracker *tracker);

#endif
