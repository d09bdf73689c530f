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

/* Along an axis: paddings -1 mean SAME. */
static bool place(const ed_call *call, window *w, int axis, const int64_t paddings[2])
{
    int64_t steps = w->extent[axis] - 1, span;
    if (__builtin_mul_overflow(steps, w->dilation[axis], &span) || span >= WIDEST)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a window of size %lld with dilation %lld is too large",
                            (long long)w->extent[axis], (long long)w->dilation[axis]);
    const bool same = paddings[0] < 0;
    int64_t size = w->image[axis];
    if (!same && size > 0 && __builtin_add_overflow(size, paddings[0] + paddings[1], &size))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "the padded images are too large");
    /* What changes nothing by being larger is kept small, so that no sum overflows. */
    int64_t stride = w->stride[axis];
    if (stride > size) stride = w->stride[axis] = size > 1 ? size : 1;
    if (!steps) w->dilation[axis] = 1;
    span++;
    if (!same) {
        w->out[axis] = size < span ? 0 : (size - span) / stride + 1;
        w->before[axis] = paddings[0];
        return true;
    }
    w->out[axis] = size > 0 ? (size - 1) / stride + 1 : 0;
    int64_t missing = size > 0 ? (w->out[axis] - 1) * stride + span - size : 0;
    w->before[axis] = missing > 0 ? missing / 2 : 0;
    return true;
}

/* What an option of padding says: before and after each axis, or -1 for SAME. */
static bool read_padding(const ed_call *call, const window_options *o, int64_t paddings[4])
{
    const char *name = o->padding ? o->padding : "VALID";
    const ed_ints given = o->explicit_paddings;
    const bool same = !strcmp(name, "SAME"), explicit = !strcmp(name, "EXPLICIT");
    for (int i = 0; i < 4; i++) paddings[i] = same ? -1 : 0;
    if (!same && !explicit && strcmp(name, "VALID") != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "padding must be 'VALID', 'SAME' or 'EXPLICIT', got '%.40s'", name);
    if (!explicit && given.values)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "explicit_paddings are for padding 'EXPLICIT', which is '%s'", name);
    if (!explicit) return true;
    bool ok = given.values && given.count == 4;
    for (int i = 0; ok && i < 4; i++) {
        paddings[i] = given.values[i];
        ok = paddings[i] >= 0 && paddings[i] < WIDEST;
    }
    return ok || ed_call_fail(call, ED_INVALID_ARGUMENT,
                              "explicit_paddings must be [top, bottom, left, right], each >= 0 and "
                              "below 2^30; got %s",
                              text_of_ints(given.values, given.values ? given.count : 0).s);
}

const window *window_make(ed_call *call, const int64_t *image, const window_options *o)
{
    int64_t paddings[4];
    window *w = ed_call_plan(call, sizeof *w);
    if (!w) return NULL;
    *w = (window){.batch = image[0],
                  .channels = image[3],
                  .image = {image[1], image[2]},
                  .extent = {o->extent[0], o->extent[1]}};
    if (o->extent[0] < 1 || o->extent[1] < 1) {
        ed_call_fail(call, ED_INVALID_ARGUMENT, "the window's sizes must be >= 1, got %s",
                     text_of_ints(o->extent, 2).s);
        return NULL;
    }
    const char *who = call->op->name;
    if (!window_pair(who, "strides", o->strides, 1, w->stride) ||
        !window_pair(who, "dilations", o->dilations, 1, w->dilation) ||
        !read_padding(call, o, paddings))
        return NULL;
    if (!o->strides.values && o->stride_by_extent) memcpy(w->stride, o->extent, sizeof w->stride);
    return place(call, w, 0, paddings) && place(call, w, 1, paddings + 2) ? w : NULL;
}

/* ---- Channels first -------------------------------------------------------------------------- */

static const int first_from_last[] = {0, 3, 1, 2}, last_from_first[] = {0, 2, 3, 1};

void window_shape_out(bool channels_first, const int64_t last[4], int64_t shape[4])
{
    for (int i = 0; i < 4; i++) shape[i] = last[channels_first ? first_from_last[i] : i];
}

void window_shape_in(bool channels_first, const int64_t shape[4], int64_t last[4])
{
    for (int i = 0; i < 4; i++) last[i] = shape[channels_first ? last_from_first[i] : i];
}

/* x with its axes in that order into contiguous memory. */
static bool reorder(const ed_tensor *x, const int order[4], void *to)
{
    int64_t shape[4], strides[4];
    for (int i = 0; i < 4; i++) {
        shape[i] = x->shape[order[i]];
        strides[i] = x->strides[order[i]];
    }
    ed_tensor *view = tensor_view(x, 4, shape, strides, 0);
    if (view) tensor_pack(view, to);
    ed_release(view);
    return view != NULL;
}

/* A copy of x with its channels last; not filled if `empty`. */
static ed_tensor *channels_last(const ed_tensor *x, bool empty)
{
    int64_t shape[4];
    window_shape_in(true, x->shape, shape);
    ed_tensor *copy = tensor_new(x->dtype, 4, shape);
    if (!copy || empty || reorder(x, last_from_first, copy->data)) return copy;
    ed_release(copy);
    return NULL;
}

bool window_run_kernel(ed_call *call, bool channels_first, unsigned inputs, bool output,
                       bool (*kernel)(ed_call *call))
{
    if (!channels_first) return kernel(call);
    ed_tensor *copies[ED_MAX_OPERANDS] = {NULL}, *in[ED_MAX_OPERANDS], *out = call->outputs[0];
    ed_call inner = *call;
    bool ok = true;
    for (int i = 0; i < call->n_inputs; i++) {
        if (inputs >> i & 1) ok = ok && (copies[i] = channels_last(call->inputs[i], false));
        in[i] = copies[i] ? copies[i] : call->inputs[i];
    }
    if (output) ok = ok && (out = channels_last(call->outputs[0], true));
    inner.inputs = in;
    inner.outputs = &out;
    ok = ok && kernel(&inner) && (!output || reorder(out, first_from_last, call->outputs[0]->data));
    for (int i = 0; i < call->n_inputs; i++) ed_release(copies[i]);
    if (output && out != call->outputs[0]) ed_release(out);
    return ok;
}

/* The elements of a contiguous x [n, a, b, c] as [n, b, c, a], or the other way round. */
static void plain_reorder(const int64_t last[4], double *channels_first, double *channels_last,
                          bool to_last)
{
    for (int64_t n = 0; n < last[0]; n++)
        for (int64_t i = 0; i < last[1] * last[2]; i++)
            for (int64_t c = 0; c < last[3]; c++) {
                double *first = &channels_first[(n * last[3] + c) * last[1] * last[2] + i];
                double *second = &channels_last[(n * last[1] * last[2] + i) * last[3] + c];
                *(to_last ? second : first) = *(to_last ? first : second);
            }
}

bool window_run_reference(const ed_call *call, bool channels_first, unsigned inputs, bool output,
                          bool (*reference)(const ed_call *call))
{
    if (!channels_first) return reference(call);
    ed_tensor *in[ED_MAX_OPERANDS], *out = call->outputs[0];
    ed_call inner = *call;
    int64_t last[4];
    for (int i = 0; i < call->n_inputs; i++) {
        in[i] = call->inputs[i];
        if (!(inputs >> i & 1)) continue;
        window_shape_in(true, in[i]->shape, last);
        if (!(in[i] = scope_give(tensor_new(ED_FLOAT64, 4, last)))) return false;
        plain_reorder(last, (double *)call->inputs[i]->data, (double *)in[i]->data, true);
    }
    if (output) {
        window_shape_in(true, out->shape, last);
        if (!(out = scope_give(tensor_new(ED_FLOAT64, 4, last)))) return false;
    }
    inner.inputs = in;
    inner.outputs = &out;
    if (!reference(&inner)) return false;
    if (output) plain_reorder(last, (double *)call->outputs[0]->data, (double *)out->data, false);
    return true;
}
