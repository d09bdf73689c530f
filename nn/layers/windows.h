/* Layers over one, two or three spatial axes: what convolutions, pools, paddings and the like have
 * in common. */
#ifndef EDDY_NN_LAYERS_WINDOWS_H
#define EDDY_NN_LAYERS_WINDOWS_H

#include "nn/layer_core.h"

enum { WINDOW_RANKS = 3 };

/* Number of spatial axes: the digit in the kind's name, as in conv2d. */
int layer_spatial_rank(const ed_layer *layer);

static inline bool layer_channels_first(const char *data_format)
{
    return data_format[sizeof "channels_" - 1] == 'f';
}

/* The axis of the channels, and the first spatial axis. */
static inline int layer_channel_axis(bool channels_first, int rank)
{
    return channels_first ? 1 : rank + 1;
}
static inline int layer_spatial_axis(bool channels_first)
{
    return channels_first ? 2 : 1;
}

/* The same as ops write it: "NHWC". */
const char *layer_op_format(bool channels_first, int rank);

/* An option that is one number for all spatial axes or one for each, none of them below `least`;
 * not given: `otherwise`. false, with an error, for something else. */
bool layer_sizes(const ed_layer *layer, const char *option, ed_ints given, int64_t least,
                 int64_t otherwise, int64_t sizes[WINDOW_RANKS]);

/* An option that says what is before and after each spatial axis: one number for all, one for each
 * axis, or two for each; with one axis two are before and after. */
typedef struct layer_margins {
    int64_t before[WINDOW_RANKS], after[WINDOW_RANKS];
} layer_margins;
bool layer_read_margins(const ed_layer *layer, const char *option, ed_ints given, int64_t otherwise,
                        layer_margins *margins);

/* Checks that x has `rank` spatial axes and, unless `channels` is 0, that number of channels. */
bool layer_accepts_images(const ed_layer *layer, const ed_tensor *x, int rank, bool channels_first,
                          int64_t channels);

/* x with its channels last, or back in the second place: a view; x itself if !move. */
ed_tensor *layer_channels_to_last(ed_tensor *x, bool move);
ed_tensor *layer_channels_to_first(ed_tensor *x, bool move);

#endif
