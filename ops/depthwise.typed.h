/*
 * The loops of depthwise convolution for one float type: rows of an image. With a multiplier of 1 a
 * vector of channels is worked on along the row, some outputs at a time, in registers; with others
 * plain loops do it.
 */

/* `count` adjoining outputs from ow on, that all have the taps [v0, v1) of each row [h0, h1). */
VECTOR_INLINE void TYPED(depthwise_some)(const depthwise_call *d, const NUMBER *x, const NUMBER *k,
                                         NUMBER *y, const depthwise_taps *t, int64_t ow, int count,
                                         int64_t left)
{
    const window *w = &d->w;
    const int64_t c = w->channels, step = w->stride[1] * c;
    VECTOR acc[DEPTHWISE_SOME];
    for (int i = 0; i < count; i++) acc[i] = (VECTOR){0};
    for (int64_t h = t->h0; h < t->h1; h++)
        for (int64_t v = t->v0; v < t->v1; v++) {
            const int64_t row = t->row + h * w->dilation[0];
            const int64_t column = ow * w->stride[1] - w->before[1] + v * w->dilation[1];
            const NUMBER *from = x + (row * w->image[1] + column) * c;
            const VECTOR by = lanes_some(k + (h * w->extent[1] + v) * c, left, 0);
            for (int i = 0; i < count; i++)
                acc[i] = vfma(lanes_some(from + i * step, left, 0), by, acc[i]);
        }
    for (int i = 0; i < count; i++) lanes_put(y + (ow + i) * c, acc[i], left);
}

/* The outputs of one row for a vector of channels, of which `left` are there. */
VECTOR_INLINE void TYPED(depthwise_line)(const depthwise_call *d, const NUMBER *x, const NUMBER *k,
                                         NUMBER *y, depthwise_taps *t, int64_t left)
{
    const window *w = &d->w;
    for (int64_t ow = 0; ow < w->out[1];) {
        int64_t begin, end;
        window_taps(w, 1, ow, &t->v0, &t->v1);
        window_taps(w, 1, ow + DEPTHWISE_SOME - 1, &begin, &end);
        const bool whole = ow + DEPTHWISE_SOME <= w->out[1] && begin == t->v0 && end == t->v1;
        if (whole)
            TYPED(depthwise_some)(d, x, k, y, t, ow, DEPTHWISE_SOME, left);
        else
            TYPED(depthwise_some)(d, x, k, y, t, ow, 1, left);
        ow += whole ? DEPTHWISE_SOME : 1;
    }
}

/* Any multiplier: y += x k, tap by tap. */
static void TYPED(depthwise_plain)(const depthwise_call *d, const NUMBER *x, const NUMBER *k,
                                   NUMBER *y, const depthwise_taps *t)
{
    const window *w = &d->w;
    const int64_t c = w->channels, m = d->multiplier;
    memset(y, 0, (size_t)(w->out[1] * c * m) * sizeof *y);
    for (int64_t h = t->h0; h < t->h1; h++)
        for (int64_t ow = 0; ow < w->out[1]; ow++) {
            int64_t v, end;
            window_taps(w, 1, ow, &v, &end);
            for (; v < end; v++) {
                const int64_t row = t->row + h * w->dilation[0];
                const int64_t column = ow * w->stride[1] - w->before[1] + v * w->dilation[1];
                const NUMBER *restrict from = x + (row * w->image[1] + column) * c;
                const NUMBER *restrict by = k + (h * w->extent[1] + v) * c * m;
                NUMBER *restrict to = y + ow * c * m;
                for (int64_t i = 0; i < c; i++)
                    for (int64_t j = 0; j < m; j++) to[i * m + j] += from[i] * by[i * m + j];
            }
        }
}

/* Row oh of the output of one image. */
static void TYPED(depthwise_row)(const depthwise_call *d, const void *image, int64_t oh, void *to)
{
    const window *w = &d->w;
    const int64_t c = w->channels;
    const NUMBER *x = image, *k = (const NUMBER *)d->kernel->data;
    NUMBER *y = to;
    depthwise_taps t = {.row = oh * w->stride[0] - w->before[0]};
    window_taps(w, 0, oh, &t.h0, &t.h1);
    if (d->multiplier > 1) {
        TYPED(depthwise_plain)(d, x, k, y, &t);
        return;
    }
    int64_t i = 0;
    for (; i + VECTOR_LANES <= c; i += VECTOR_LANES)
        TYPED(depthwise_line)(d, x + i, k + i, y + i, &t, VECTOR_LANES);
    if (i < c) TYPED(depthwise_line)(d, x + i, k + i, y + i, &t, c - i);
}

/* Row h of the gradient of one image: what the rows of dy send it whose windows have it. */
static void TYPED(depthwise_input_row)(const depthwise_call *d, const void *image, int64_t row,
                                       void *to)
{
    const window *w = &d->w;
    const int64_t c = w->channels, m = d->multiplier;
    const NUMBER *dy = image, *k = (const NUMBER *)d->kernel->data;
    NUMBER *dx = to;
    memset(dx, 0, (size_t)(w->image[1] * c) * sizeof *dx);
    for (int64_t h = 0; h < w->extent[0]; h++) {
        const int64_t at = row + w->before[0] - h * w->dilation[0], oh = at / w->stride[0];
        if (at < 0 || at % w->stride[0] || oh >= w->out[0]) continue;
        for (int64_t ow = 0; ow < w->out[1]; ow++) {
            int64_t v, end;
            window_taps(w, 1, ow, &v, &end);
            const NUMBER *restrict from = dy + (oh * w->out[1] + ow) * c * m;
            for (; v < end; v++) {
                const int64_t column = ow * w->stride[1] - w->before[1] + v * w->dilation[1];
                const NUMBER *restrict by = k + (h * w->extent[1] + v) * c * m;
                NUMBER *restrict sum = dx + column * c;
                if (m == 1)
                    for (int64_t i = 0; i < c; i++) sum[i] += from[i] * by[i];
                else
                    for (int64_t i = 0; i < c; i++)
                        for (int64_t j = 0; j < m; j++) sum[i] += from[i * m + j] * by[i * m + j];
            }
        }
    }
}

/* dk += x dy of a vector of channels: tap row h, taps [v, v + count), outputs [begin, end), which
 * have them all. */
VECTOR_INLINE void TYPED(depthwise_products)(const depthwise_call *d, const NUMBER *x,
                                             const NUMBER *dy, NUMBER *dk, int64_t begin,
                                             int64_t end, int count, int64_t left)
{
    const window *w = &d->w;
    const int64_t c = w->channels, step = w->dilation[1] * c;
    VECTOR acc[DEPTHWISE_SOME];
    for (int i = 0; i < count; i++) acc[i] = (VECTOR){0};
    for (int64_t ow = begin; ow < end; ow++) {
        const VECTOR by = lanes_some(dy + ow * c, left, 0);
        const NUMBER *from = x + (ow * w->stride[1] - w->before[1]) * c;
        for (int i = 0; i < count; i++)
            acc[i] = vfma(lanes_some(from + i * step, left, 0), by, acc[i]);
    }
    for (int i = 0; i < count; i++)
        lanes_put(dk + i * c, lanes_some(dk + i * c, left, 0) + acc[i], left);
}

/* The outputs *begin <= ow < *end whose tap v is inside the image. */
static void TYPED(depthwise_range)(const window *w, int64_t v, int64_t *begin, int64_t *end)
{
    const int64_t stride = w->stride[1], at = v * w->dilation[1] - w->before[1];
    const int64_t below = w->image[1] - at;
    *begin = at < 0 ? (-at + stride - 1) / stride : 0;
    *end = below <= 0 ? 0 : (below + stride - 1) / stride;
    if (*end > w->out[1]) *end = w->out[1];
    if (*begin > *end) *begin = *end;
}

/* Taps [v, v + n) of row h: those outputs that have all of them at once, the others tap by tap. */
VECTOR_INLINE void TYPED(depthwise_tap_row)(const depthwise_call *d, const NUMBER *x,
                                            const NUMBER *dy, NUMBER *dk, int64_t v, int n,
                                            int64_t left)
{
    const window *w = &d->w;
    const int64_t c = w->channels, step = w->dilation[1] * c;
    int64_t begin = 0, end = w->out[1];
    for (int i = 0; i < n; i++) {
        int64_t first, last;
        TYPED(depthwise_range)(w, v + i, &first, &last);
        if (first > begin) begin = first;
        if (last < end) end = last;
    }
    if (begin > end) begin = end;
    if (n == DEPTHWISE_SOME)
        TYPED(depthwise_products)(d, x + v * step, dy, dk + v * c, begin, end, DEPTHWISE_SOME,
                                  left);
    else if (n == 3)
        TYPED(depthwise_products)(d, x + v * step, dy, dk + v * c, begin, end, 3, left);
    else if (n == 2)
        TYPED(depthwise_products)(d, x + v * step, dy, dk + v * c, begin, end, 2, left);
    else
        TYPED(depthwise_products)(d, x + v * step, dy, dk + v * c, begin, end, 1, left);
    for (int i = 0; i < n && n > 1; i++) {
        int64_t first, last;
        TYPED(depthwise_range)(w, v + i, &first, &last);
        const int64_t stop = last < begin ? last : begin, go = first > end ? first : end;
        const NUMBER *from = x + (v + i) * step;
        NUMBER *to = dk + (v + i) * c;
        if (first < stop) TYPED(depthwise_products)(d, from, dy, to, first, stop, 1, left);
        if (go < last) TYPED(depthwise_products)(d, from, dy, to, go, last, 1, left);
    }
}

VECTOR_INLINE void TYPED(depthwise_tap_rows)(const depthwise_call *d, const NUMBER *x,
                                             const NUMBER *dy, NUMBER *dk, const depthwise_taps *t,
                                             int64_t left)
{
    const window *w = &d->w;
    const int64_t c = w->channels;
    for (int64_t h = t->h0; h < t->h1; h++) {
        const NUMBER *row = x + (t->row + h * w->dilation[0]) * w->image[1] * c;
        for (int64_t v = 0; v < w->extent[1]; v += DEPTHWISE_SOME) {
            const int64_t n = w->extent[1] - v;
            TYPED(depthwise_tap_row)(d, row, dy, dk + h * w->extent[1] * c, v,
                                     n < DEPTHWISE_SOME ? (int)n : DEPTHWISE_SOME, left);
        }
    }
}

static void TYPED(depthwise_plain_taps)(const depthwise_call *d, const NUMBER *x, const NUMBER *dy,
                                        NUMBER *dk, const depthwise_taps *t)
{
    const window *w = &d->w;
    const int64_t c = w->channels, m = d->multiplier;
    for (int64_t h = t->h0; h < t->h1; h++)
        for (int64_t ow = 0; ow < w->out[1]; ow++) {
            int64_t v, end;
            window_taps(w, 1, ow, &v, &end);
            for (; v < end; v++) {
                const int64_t row = t->row + h * w->dilation[0];
                const int64_t column = ow * w->stride[1] - w->before[1] + v * w->dilation[1];
                const NUMBER *restrict from = x + (row * w->image[1] + column) * c;
                const NUMBER *restrict by = dy + ow * c * m;
                NUMBER *restrict to = dk + (h * w->extent[1] + v) * c * m;
                for (int64_t i = 0; i < c; i++)
                    for (int64_t j = 0; j < m; j++) to[i * m + j] += from[i] * by[i * m + j];
            }
        }
}

/* What row oh of dy adds to the gradient of the kernel. */
static void TYPED(depthwise_kernel_row)(const depthwise_call *d, const void *image, int64_t oh,
                                        const void *dys, void *sums)
{
    const window *w = &d->w;
    const int64_t c = w->channels;
    const NUMBER *x = image, *dy = dys;
    NUMBER *dk = sums;
    depthwise_taps t = {.row = oh * w->stride[0] - w->before[0]};
    window_taps(w, 0, oh, &t.h0, &t.h1);
    if (d->multiplier > 1) {
        TYPED(depthwise_plain_taps)(d, x, dy, dk, &t);
        return;
    }
    int64_t i = 0;
    for (; i + VECTOR_LANES <= c; i += VECTOR_LANES)
        TYPED(depthwise_tap_rows)(d, x + i, dy + i, dk + i, &t, VECTOR_LANES);
    if (i < c) TYPED(depthwise_tap_rows)(d, x + i, dy + i, dk + i, &t, c - i);
}

static void TYPED(depthwise_join)(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((NUMBER *)to)[i] += ((const NUMBER *)from)[i];
}

#undef TYPE
