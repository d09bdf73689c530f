#include "ops/window.h"
#include <string.h>

/* Windows wider than this, dilation included, are refused: no image is, and sums of positions stay
 * far from overflow. */
#define WIDEST ((int64_t)1 << 30)

bool window_pair(const char *who, const char *option, ed_ints given, int64_t otherwise,
                 int64_t pair[2])
{
    pair[0] = pair[1] = otherwise;
    if (!given.values) return true;
    const int64_t *numbers = given.values, last = given.count - 1;
    if ((given.count == 1 || given.count == 2) && numbers[0] > 0 && numbers[last] > 0) {
        pair[0] = numbers[0];
        pair[1] = numbers[last];
        return true;
    }
    ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be one integer >= 1, or two, [height, width]; got %s",
            who, option, text_of_ints(given.values, given.count).s);
    return false;
}

static bool place(const ed_call *call, window *w, int axis, bool same)
{
    int64_t steps = w->extent[axis] - 1, span;
    if (__builtin_mul_overflow(steps, w->dilation[axis], &span) || span >= WIDEST)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a window of size %lld with dilation %lld is too large",
                            (long long)w->extent[axis], (long long)w->dilation[axis]);
    /* What changes nothing by being larger is kept small, so that no sum overflows. */
    int64_t size = w->image[axis], stride = w->stride[axis];
    if (stride > size) stride = w->stride[axis] = size > 1 ? size : 1;
    if (!steps) w->dilation[axis] = 1;
    span++;
    if (!same) {
        w->out[axis] = size < span ? 0 : (size - span) / stride + 1;
        w->before[axis] = 0;
        return true;
    }
    w->out[axis] = size > 0 ? (size - 1) / stride + 1 : 0;
    int64_t missing = size > 0 ? (w->out[axis] - 1) * stride + span - size : 0;
    w->before[axis] = missing > 0 ? missing / 2 : 0;
    return true;
}

/* The dilations and the padding into a window that has the rest. */
static bool place_all(const ed_call *call, window *w, ed_ints dilations, const char *padding)
{
    bool same = padding && !strcmp(padding, "SAME");
    if (padding && !same && strcmp(padding, "VALID") != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "padding must be 'VALID' or 'SAME', got '%.40s'", padding);
    return window_pair(call->op->name, "dilations", dilations, 1, w->dilation) &&
           place(call, w, 0, same) && place(call, w, 1, same);
}

const window *window_make(ed_call *call, const int64_t *image, const int64_t extent[2],
                          ed_ints strides, bool stride_by_extent, ed_ints dilations,
                          const char *padding)
{
    window *w = ed_call_plan(call, sizeof *w);
    if (!w) return NULL;
    *w = (window){.batch = image[0],
                  .channels = image[3],
                  .image = {image[1], image[2]},
                  .extent = {extent[0], extent[1]}};
    if (extent[0] < 1 || extent[1] < 1) {
        ed_call_fail(call, ED_INVALID_ARGUMENT, "the window's sizes must be >= 1, got %s",
                     text_of_ints(extent, 2).s);
        return NULL;
    }
    if (!window_pair(call->op->name, "strides", strides, 1, w->stride)) return NULL;
    if (!strides.values && stride_by_extent) memcpy(w->stride, extent, sizeof w->stride);
    return place_all(call, w, dilations, padding) ? w : NULL;
}
