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

/* What a call's options say of its windows. */
typedef struct window_options {
    int64_t extent[2]; /* the window's size */
    ed_ints strides, dilations, explicit_paddings;
    bool stride_by_extent; /* strides not given: the extent, else 1 */
    const char *padding;   /* "VALID" (NULL too), "SAME" or "EXPLICIT" */
    const char *data_format;
} window_options;

/* The same of a structure of options that has these fields. */
#define WINDOW_OPTIONS_OF(o, ...)                                                                  \
    (&(const window_options){.strides = (o)->strides,                                              \
                             .dilations = (o)->dilations,                                          \
                             .explicit_paddings = (o)->explicit_paddings,                          \
                             .padding = (o)->padding,                                              \
                             __VA_ARGS__})

/*
 * Computes the windows over images of shape `image` ([batch, height, width, channels]), which
 * become the call's plan, and checks everything: integers >= 1 for extent, strides and dilations
 * (not given: 1); four paddings >= 0 for "EXPLICIT". VALID has no output where the window is larger
 * than the image. NULL with an error kept.
 */
const window *window_make(ed_call *call, const int64_t *image, const window_options *options);

/* Whether data_format says that the axis of the channels is the second, not the last. */
static inline bool window_channels_first(const char *data_format)
{
    return data_format && data_format[1] == 'C';
}

/* A shape [batch, height, width, channels] in the order of data_format, and back. */
void window_shape_out(bool channels_first, const int64_t last[4], int64_t shape[4]);
void window_shape_in(bool channels_first, const int64_t shape[4], int64_t last[4]);

/*
 * Runs a kernel or a reference that takes images with their channels last. Those of a call whose
 * images have channels first it gets as copies: the inputs in the mask and, if `output`, output 0.
 */
bool window_run_kernel(ed_call *call, bool channels_first, unsigned inputs, bool output,
                       bool (*kernel)(ed_call *call));
bool window_run_reference(const ed_call *call, bool channels_first, unsigned inputs, bool output,
                          bool (*reference)(const ed_call *call));

/* The cells of the window at `o` that are inside the image along an axis: *begin, *begin +
 * dilation, ..., below *end; none if *begin >= *end. */
static inline void window_clip(const window *w, int axis, int64_t o, int64_t *begin, int64_t *end)
{
    const int64_t dilation = w->dilation[axis], first = o * w->stride[axis] - w->before[axis],
                  last = first + (w->extent[axis] - 1) * dilation + 1;
    *begin = first < 0 ? first + (-first + dilation - 1) / dilation * dilation : first;
    *end = last > w->image[axis] ? w->image[axis] : last;
}

/* The same as the indices *begin <= i < *end of the window's taps. */
static inline void window_taps(const window *w, int axis, int64_t o, int64_t *begin, int64_t *end)
{
    const int64_t dilation = w->dilation[axis], first = o * w->stride[axis] - w->before[axis];
    const int64_t below = w->image[axis] - first; /* of i * dilation */
    *begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
    *end = below <= 0 ? 0 : (below + dilation - 1) / dilation;
    if (*end > w->extent[axis]) *end = w->extent[axis];
    if (*begin > *end) *begin = *end;
}

#endif
