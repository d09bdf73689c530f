/* What the forward pass and the gradients of conv2d have in common, see conv_gemm.c. */
#include "ops/conv_gemm.h"
#include "tensor/hard.h"
#include "tensor/threads.h"

enum {
    BANDS = 16, /* images are cut so that there are so many bands, if rows allow */
    THREAD_WORK = HARD(1, 200000), /* multiply-adds worth a second thread */
};

static conv_layout layout(bool channels_first, const int64_t cells[2], int64_t channels,
                          int64_t size)
{
    const int64_t all = cells[0] * cells[1], cell = channels_first ? size : channels * size;
    return (conv_layout){.image = all * channels * size,
                         .row = cells[1] * cell,
                         .cell = cell,
                         .channel = channels_first ? all * size : size};
}

conv conv_begin(const conv_call *call)
{
    int64_t rows;
    conv c = {.w = *call->w,
              .wide = call->y->dtype == ED_FLOAT64,
              .in = call->kernel->shape[2],
              .all_in = call->w->channels,
              .all_out = call->kernel->shape[3],
              .x = call->x->data,
              .k = call->kernel->data,
              .y = call->y->data,
              .bias = call->bias ? call->bias->data : NULL,
              .relu = call->relu};
    c.groups = c.in ? c.all_in / c.in : 1;
    c.out = c.all_out / c.groups;
    c.size = c.wide ? 8 : 4;
    c.in_images = layout(call->channels_first, c.w.image, c.all_in, c.size);
    c.out_images = layout(call->channels_first, c.w.out, c.all_out, c.size);
    ISA_CALL(gemm_tile)(c.wide, &rows, &c.tile);
    c.panel = c.tile * c.size;
    return c;
}

conv conv_group(const conv *all, int64_t i)
{
    conv c = *all;
    c.x += i * c.in * c.in_images.channel;
    c.k += i * c.out * c.size;
    c.y += i * c.out * c.out_images.channel;
    if (c.bias) c.bias += i * c.out * c.size;
    return c;
}

conv conv_turned(const conv *c)
{
    conv t = *c;
    t.x = c->y, t.y = c->x;
    t.in = c->out, t.out = c->in;
    t.all_in = c->all_out, t.all_out = c->all_in;
    t.in_images = c->out_images, t.out_images = c->in_images;
    for (int d = 0; d < 2; d++) {
        t.w.image[d] = c->w.out[d], t.w.out[d] = c->w.image[d];
        t.w.before[d] = (c->w.extent[d] - 1) * c->w.dilation[d] - c->w.before[d];
    }
    return t;
}

bool conv_each_group(const conv *all, bool (*run)(conv c))
{
    for (int64_t i = 0; i < all->groups; i++)
        if (!run(conv_group(all, i))) return false;
    return true;
}

int64_t conv_grain(const conv *c, int64_t units)
{
    const window *w = &c->w;
    double taps = (double)(w->extent[0] * w->extent[1]);
    double work = (double)(w->batch * w->out[0] * w->out[1]) * taps * (double)(c->in * c->out);
    return work < 2.0 * THREAD_WORK ? units : 1;
}

int64_t conv_band_rows(const conv *c, int64_t rows)
{
    return conv_max(1, conv_ceil(rows * conv_min(c->w.batch, BANDS), BANDS));
}

bool conv_is_pointwise(const window *w)
{
    return w->extent[0] == 1 && w->extent[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
           w->out[0] == w->image[0] && w->out[1] == w->image[1] && !w->before[0] && !w->before[1];
}

void conv_flatten(conv *c)
{
    window *w = &c->w;
    w->image[1] = w->out[1] = w->image[0] * w->image[1];
    w->image[0] = w->out[0] = 1;
    c->in_images.row = c->in_images.cell * w->image[1];
    c->out_images.row = c->out_images.cell * w->image[1];
}

bool conv_too_large(void)
{
    return ed_fail(ED_OUT_OF_MEMORY, "conv2d: the operands are too large"), false;
}

bool conv_crew_open(conv_crew *p, int64_t entries, size_t more)
{
    size_t bytes;
    p->count = threads_count();
    if (!memory_mul((size_t)entries, 2 * sizeof(int64_t), &bytes) ||
        __builtin_add_overflow(bytes + 64, more, &p->each) ||
        !memory_mul(p->each = p->each / 64 * 64, (size_t)p->count, &bytes))
        return conv_too_large();
    p->scratch = memory_alloc(bytes);
    return p->scratch != NULL;
}

conv_axis conv_axis_forward(const window *w, int d)
{
    return (conv_axis){.positions = w->out[d],
                       .step = w->stride[d],
                       .limit = w->image[d],
                       .taps = w->extent[d],
                       .index_step = 1,
                       .base = -w->before[d],
                       .base_step = w->dilation[d]};
}

conv_axis conv_axis_backward(const window *w, int d, int64_t phase)
{
    int64_t stride = w->stride[d], dilation = w->dilation[d], first = -1, second = -1, taps = 0;
    for (int64_t i = 0; i < w->extent[d]; i++) {
        if ((phase + w->before[d] - i * dilation) % stride) continue;
        taps++;
        if (first < 0)
            first = i;
        else if (second < 0)
            second = i;
    }
    int64_t between = second < 0 ? 1 : second - first;
    return (conv_axis){.positions = conv_ceil(w->image[d] - phase, stride),
                       .step = 1,
                       .limit = w->out[d],
                       .taps = taps,
                       .index = conv_max(first, 0),
                       .index_step = between,
                       .base = taps ? (phase + w->before[d] - first * dilation) / stride : 0,
                       .base_step = second < 0 ? 1 : -between * dilation / stride};
}

void conv_axis_clip(const conv_axis *a, int64_t t, int64_t *begin, int64_t *end)
{
    int64_t first = a->base + t * a->step, step = a->base_step;
    if (step < 0) { /* as seen from the other end */
        first = a->limit - 1 - first;
        step = -step;
    }
    *begin = conv_min(conv_max(conv_ceil(-first, step), 0), a->taps);
    *end = conv_max(conv_min(conv_floor(a->limit - 1 - first, step) + 1, a->taps), *begin);
}

void conv_axis_interior(const conv_axis *a, int64_t *begin, int64_t *end)
{
    int64_t last = a->base + (a->taps - 1) * a->base_step;
    int64_t low = conv_min(a->base, last), high = conv_max(a->base, last);
    *begin = 0;
    *end = a->positions;
    if (!a->taps) return;
    *begin = conv_min(conv_max(conv_ceil(-low, a->step), 0), a->positions);
    *end = conv_max(conv_min(conv_floor(a->limit - 1 - high, a->step) + 1, a->positions), *begin);
}
