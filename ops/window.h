/* Windows that slide over images [batch, height, width, channels]: what convolution and pooling
 * have in common. */
#ifndef EDDY_OPS_WINDOW_H
#define EDDY_OPS_WINDOW_H

#include "ops/execute.h"

/* Pairs are [height, width]. Window `o` along an axis covers cells o * stride - before + i *
 * dilation, 0 <= i < extent, the window's size. */
typedef struct window {
    int64_t batch, channels;
    int64_t image[2], extent[2], stride[2], dilation[2], before[2], out[2];
} window;

/* The pair that an option gives: two integers >= 1, or one that is both; not given, `otherwise`
 * twice. false with an error kept. */
bool window_pair(const char *who, const char *option, ed_ints given, int64_t otherwise,
                 int64_t pair[2]);

/*
 * Computes the windows over images of shape `image` (rank 4), which become the call's plan, and
 * checks everything: two integers >= 1 each for extent, the window's size, strides (not given: the
 * extent if `stride_by_extent`, else 1) and dilations (not given: 1), and the padding, "VALID"
 * (NULL too) or "SAME". VALID has no output where the window is larger than the image. NULL with an
 * error kept.
 */
const window *window_make(ed_call *call, const int64_t *image, const int64_t extent[2],
                          ed_ints strides, bool stride_by_extent, ed_ints dilations,
                          const char *padding);

/* The cells of the window at `o` that are inside the image along an axis: *begin <= i < *end. For
 * dilation 1. */
static inline void window_clip(const window *w, int axis, int64_t o, int64_t *begin, int64_t *end)
{
    int64_t first = o * w->stride[axis] - w->before[axis], last = first + w->extent[axis];
    *begin = first < 0 ? 0 : first;
    *end = last > w->image[axis] ? w->image[axis] : last;
}

#endif
