/* extract_patches: the windows of images as channels; its gradient adds them up again. */
#include "ops/batch.h"
#include "ops/conv.h"
#include "tensor/threads.h"
#include <string.h>

#define PATCHES_GRADIENT_ATTRS(FIELD, T)                                                           \
    ED_EXTRACT_PATCHES_OPTIONS(FIELD, T)                                                           \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the images")
ED_OPTIONS(patches_gradient_attrs, PATCHES_GRADIENT_ATTRS);

static ed_extract_patches_options patches_options(const void *gradient_attrs)
{
    const patches_gradient_attrs *a = gradient_attrs;
    return *ED_OPTIONS_FROM(ED_EXTRACT_PATCHES_OPTIONS, a, ed_extract_patches_options);
}

/* The windows over images of that shape, and the shape of the patches. */
static bool patches_windows(ed_call *call, const int64_t *images, int64_t shape[4])
{
    const ed_extract_patches_options o = patches_options(call->attrs);
    int64_t sizes[2], cells;
    if (!window_pair(call->op->name, "sizes", o.sizes, 3, sizes)) return false;
    const window_options options = {.extent = {sizes[0], sizes[1]},
                                    .strides = o.strides,
                                    .dilations = o.rates,
                                    .padding = o.padding,
                                    .explicit_paddings = o.explicit_paddings};
    const window *w = window_make(call, images, &options);
    if (!w) return false;
    memcpy(shape, (const int64_t[]){w->batch, w->out[0], w->out[1], 0}, 4 * sizeof *shape);
    if (!__builtin_mul_overflow(sizes[0], sizes[1], &cells) &&
        !__builtin_mul_overflow(cells, w->channels, &shape[3]))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "the patches of %s are too large",
                        text_of_ints(images, 4).s);
}

static bool extract_patches_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[4];
    if (x->rank != 4)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must be [batch, height, width, channels], got %s",
                            text_of_tensor(x).s);
    return patches_windows(call, x->shape, shape) && ed_call_output(call, 0, x->dtype, 4, shape);
}

static bool patches_gradient_infer(ed_call *call)
{
    const ed_ints images = ((const patches_gradient_attrs *)call->attrs)->shape;
    const ed_tensor *dy = call->inputs[0];
    int64_t shape[4];
    bool ok = images.values && images.count == 4;
    for (int i = 0; ok && i < 4; i++) ok = images.values[i] >= 0;
    if (!ok)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must be 4 sizes >= 0, got %s",
                            text_of_ints(images.values, images.values ? images.count : 0).s);
    if (!patches_windows(call, images.values, shape)) return false;
    if (dy->rank != 4 || memcmp(dy->shape, shape, sizeof shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "dy is %s; it must be %s",
                            text_of_tensor(dy).s, text_of_ints(shape, 4).s);
    return ed_call_output(call, 0, dy->dtype, 4, images.values);
}

typedef struct patches {
    const window *w;
    char *images, *patches;
    size_t size;
    ed_dtype dtype;
} patches;

/* Calls do for each cell of the window at output `at`, a row of outputs: the cell in the images, -1
 * outside. */
static int64_t patch_cell(const window *w, int64_t at, int64_t tap)
{
    const int64_t ow = at % w->out[1], oh = at / w->out[1] % w->out[0],
                  n = at / w->out[1] / w->out[0];
    const int64_t h = oh * w->stride[0] - w->before[0] + tap / w->extent[1] * w->dilation[0];
    const int64_t v = ow * w->stride[1] - w->before[1] + tap % w->extent[1] * w->dilation[1];
    if (h < 0 || h >= w->image[0] || v < 0 || v >= w->image[1]) return -1;
    return (n * w->image[0] + h) * w->image[1] + v;
}

static void extract_range(int64_t first, int64_t last, int worker, void *user)
{
    const patches *p = user;
    const int64_t taps = p->w->extent[0] * p->w->extent[1];
    const size_t bytes = (size_t)p->w->channels * p->size;
    (void)worker;
    for (int64_t at = first; at < last; at++)
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t cell = patch_cell(p->w, at, tap);
            char *to = p->patches + (size_t)(at * taps + tap) * bytes;
            if (cell < 0)
                memset(to, 0, bytes);
            else
                memcpy(to, p->images + (size_t)cell * bytes, bytes);
        }
}

static bool extract_patches_kernel(ed_call *call)
{
    const window *w = call->plan;
    const ed_tensor *y = call->outputs[0];
    if (!y->size) return true;
    patches p = {w, call->inputs[0]->data, y->data, dtype_size(y->dtype), y->dtype};
    const int64_t n = w->batch * w->out[0] * w->out[1];
    threads_run(n, y->size > OPS_PARALLEL_WORK ? 1 + 4096 / y->shape[3] : n, extract_range, &p);
    return true;
}

/* Image by image: all windows that share a cell add to it in their order. */
static void fold_range(int64_t first, int64_t last, int worker, void *user)
{
    const patches *p = user;
    const window *w = p->w;
    const int64_t taps = w->extent[0] * w->extent[1], each = w->out[0] * w->out[1];
    const int64_t c = w->channels;
    (void)worker;
    for (int64_t at = first * each; at < last * each; at++)
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t cell = patch_cell(w, at, tap), from = (at * taps + tap) * c;
            if (cell < 0) continue;
            if (p->dtype == ED_FLOAT32)
                for (int64_t i = 0; i < c; i++)
                    ((float *)p->images)[cell * c + i] += ((const float *)p->patches)[from + i];
            else
                for (int64_t i = 0; i < c; i++)
                    ((double *)p->images)[cell * c + i] += ((const double *)p->patches)[from + i];
        }
}

static bool patches_gradient_kernel(ed_call *call)
{
    const window *w = call->plan;
    const ed_tensor *dy = call->inputs[0], *dx = call->outputs[0];
    patches p = {w, dx->data, dy->data, dtype_size(dx->dtype), dx->dtype};
    memset(dx->data, 0, (size_t)dx->size * p.size);
    if (!dy->size || !dx->size) return true;
    threads_run(w->batch, dy->size > OPS_PARALLEL_WORK ? 1 : w->batch, fold_range, &p);
    return true;
}

/* Element by element, by the patch's own coordinates. */
static bool plain_patches(const ed_call *call, double *images, double *all, bool fold)
{
    const window *w = call->plan;
    double *at = all;
    for (int64_t n = 0; n < w->batch; n++)
        for (int64_t oh = 0; oh < w->out[0]; oh++)
            for (int64_t ow = 0; ow < w->out[1]; ow++)
                for (int64_t i = 0; i < w->extent[0]; i++)
                    for (int64_t j = 0; j < w->extent[1]; j++)
                        for (int64_t c = 0; c < w->channels; c++, at++) {
                            const int64_t h = oh * w->stride[0] + i * w->dilation[0] - w->before[0];
                            const int64_t v = ow * w->stride[1] + j * w->dilation[1] - w->before[1];
                            const bool inside =
                                h >= 0 && h < w->image[0] && v >= 0 && v < w->image[1];
                            double *cell = inside
                                               ? &images[((n * w->image[0] + h) * w->image[1] + v) *
                                                             w->channels +
                                                         c]
                                               : NULL;
                            if (fold && cell) *cell += *at;
                            if (!fold) *at = cell ? *cell : 0;
                        }
    return true;
}

static bool extract_patches_reference(const ed_call *call)
{
    if (!call->outputs[0]->size) return true;
    return plain_patches(call, (double *)call->inputs[0]->data, (double *)call->outputs[0]->data,
                         false);
}

static bool patches_gradient_reference(const ed_call *call)
{
    const ed_tensor *dx = call->outputs[0];
    memset(dx->data, 0, (size_t)dx->size * sizeof(double));
    if (!call->inputs[0]->size) return true;
    return plain_patches(call, (double *)dx->data, (double *)call->inputs[0]->data, true);
}

extern const ed_op ed_op_patches_gradient;

ed_tensor *patches_folded(const ed_extract_patches_options *o, ed_tensor *dy, ed_ints shape)
{
    return CALL_OP(
        patches_gradient,
        ED_OPTIONS_FROM(ED_EXTRACT_PATCHES_OPTIONS, o, patches_gradient_attrs, .shape = shape), dy);
}

static bool extract_patches_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = patches_folded(g->attrs, g->dy[0], g->shapes[0]);
    return true;
}

static bool patches_gradient_gradient(const ed_gradient_call *g)
{
    const ed_extract_patches_options o = patches_options(g->attrs);
    if (g->needs[0]) g->dx[0] = ed_extract_patches_with(g->dy[0], &o);
    return true;
}

#define PATCHES(...)                                                                               \
    .attrs = ED_ATTRS(ED_EXTRACT_PATCHES_OPTIONS, ed_extract_patches_options, __VA_ARGS__)
#define FOLDED(s, ...)                                                                             \
    .attrs = ED_ATTRS(PATCHES_GRADIENT_ATTRS, patches_gradient_attrs, .shape = s, __VA_ARGS__)

ED_OP(extract_patches) = {
    .name = "extract_patches",
    .doc = "the windows of x as channels",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_EXTRACT_PATCHES_OPTIONS, ed_extract_patches_options),
    .infer = extract_patches_infer,
    .batch = batch_examples,
    .kernel = extract_patches_kernel,
    .gradient = extract_patches_gradient,
    .reference = extract_patches_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 5, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 5, 2)},
                           PATCHES(.sizes = ED_SAMPLE_INTS(2, 3), .strides = ED_SAMPLE_INTS(2, 1),
                                   .rates = ED_SAMPLE_INTS(1, 2), .padding = "SAME")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 4, 2)},
                           PATCHES(.sizes = ED_SAMPLE_INTS(2), .padding = "EXPLICIT",
                                   .explicit_paddings = ED_SAMPLE_INTS(1, 0, 0, 2))}),
};

ED_OP(patches_gradient) = {
    .name = "patches_gradient",
    .doc = "the gradient of extract_patches: each element added to the cell that it came from",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(PATCHES_GRADIENT_ATTRS, patches_gradient_attrs),
    .infer = patches_gradient_infer,
    .batch = batch_examples,
    .kernel = patches_gradient_kernel,
    .gradient = patches_gradient_gradient,
    .reference = patches_gradient_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3, 27)},
                           FOLDED(ED_SAMPLE_INTS(2, 4, 5, 3))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 5, 12)},
                           FOLDED(ED_SAMPLE_INTS(1, 4, 5, 2), .sizes = ED_SAMPLE_INTS(2, 3),
                                  .strides = ED_SAMPLE_INTS(2, 1), .rates = ED_SAMPLE_INTS(1, 2),
                                  .padding = "SAME")}),
};

ed_tensor *ed_extract_patches_with(ed_tensor *x, const ed_extract_patches_options *options)
{
    return CALL_OP(extract_patches, options, x);
}
