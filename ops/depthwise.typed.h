/*
 * The loops of depthwise convolution for one float type: rows of an image. With a multiplier of 1
 * the channels of some adjoining outputs are worked on in registers, a vector at a time, so that
 * memory is read and written in its order; with others plain loops do it, but for the gradient of
 * the input, whose cells are sums of registers for small multipliers, too.
 */

/* A vector of sums with the bias, if there is one, and the activation. */
VECTOR_INLINE VECTOR TYPED(depthwise_end)(const depthwise_call *d, VECTOR sum, VECTOR bias)
{
    if (d->bias) sum += bias;
    return d->relu ? vselect((MASK)(sum < 0), (VECTOR){0}, sum) : sum;
}

/* `count` adjoining outputs from ow on in each of `rows` rows, of `vecs` vectors of channels from
 * `channel` on, which have the taps of t; of several vectors all are whole. */
VECTOR_INLINE void TYPED(depthwise_some)(const depthwise_call *d, const NUMBER *x, const NUMBER *k,
                                         NUMBER *y, const depthwise_taps *t, int64_t channel,
                                         int64_t ow, const int rows, const int count,
                                         const int vecs, int64_t left, bool stream)
{
    const window *w = &d->w;
    const int64_t c = w->channels, step = w->stride[1] * c, taps = t->v1 - t->v0;
    const int64_t across = w->dilation[1] * c, down = w->dilation[0] * w->image[1] * c;
    const int64_t row = w->stride[0] * w->image[1] * c;
    const NUMBER *from = x + channel + depthwise_at(w, t, t->h0, t->v0, ow) * c;
    const NUMBER *by = k + channel + (t->h0 * w->extent[1] + t->v0) * c;
    const int all = rows * count * vecs;
    VECTOR acc[DEPTHWISE_SUMS], tap[DEPTHWISE_VECS], bias[DEPTHWISE_VECS] = {0};
    for (int i = 0; i < all; i++) acc[i] = (VECTOR){0};
    for (int64_t h = t->h0; h < t->h1; h++) {
        for (int64_t v = 0; v < taps; v++, from += across, by += c) {
            for (int q = 0; q < vecs; q++) tap[q] = lanes_some(by + q * VECTOR_LANES, left, 0);
            for (int i = 0; i < all; i++) {
                const int q = i % vecs, cell = i / vecs;
                const NUMBER *at = from + cell / count * row + cell % count * step;
                acc[i] = vfma(lanes_some(at + q * VECTOR_LANES, left, 0), tap[q], acc[i]);
            }
        }
        from += down - taps * across;
        by += (w->extent[1] - taps) * c;
    }
    if (rows > 1) /* what the next rows will be the first to read */
        for (int i = 0; i < rows * count; i++)
            __builtin_prefetch(from + (i / count + rows - 1) * row + i % count * step, 0, 2);
    else /* the lowest row is the one that nobody has read yet */
        for (int i = 0; i < count; i++) __builtin_prefetch(from - down + (count + i) * step);
    for (int q = 0; q < vecs && d->bias; q++)
        bias[q] = lanes_some((const NUMBER *)d->bias->data + channel + q * VECTOR_LANES, left, 0);
    for (int i = 0; i < all; i++) {
        const int q = i % vecs, cell = i / vecs;
        const VECTOR end = TYPED(depthwise_end)(d, acc[i], bias[q]);
        NUMBER *to = y + (cell / count * w->out[1] + ow + cell % count) * c + channel;
        if (stream)
            vstream(to + q * VECTOR_LANES, end);
        else
            lanes_put(to + q * VECTOR_LANES, end, left);
    }
}

/* The same of all channels; what is streamed has whole lines. Returns `count`. */
VECTOR_INLINE int TYPED(depthwise_cells)(const depthwise_call *d, const NUMBER *x, const NUMBER *k,
                                         NUMBER *y, const depthwise_taps *t, int64_t ow,
                                         const int rows, const int count, const bool stream)
{
    const int vecs = stream ? DEPTHWISE_VECS : 1, step = vecs * VECTOR_LANES;
    const int64_t c = d->w.channels;
    int64_t i = 0;
    for (; i + step <= c; i += step)
        TYPED(depthwise_some)(d, x, k, y, t, i, ow, rows, count, vecs, VECTOR_LANES, stream);
    if (i < c) TYPED(depthwise_some)(d, x, k, y, t, i, ow, rows, count, 1, c - i, false);
    return count;
}

/* `rows` rows, the first being that of t, `most` outputs of each at a time. */
VECTOR_INLINE void TYPED(depthwise_walk)(const depthwise_call *d, const NUMBER *x, NUMBER *y,
                                         depthwise_taps *t, const int rows, const int most,
                                         const bool stream)
{
    const window *w = &d->w;
    const NUMBER *k = (const NUMBER *)d->kernel->data;
    for (int64_t ow = 0; ow < w->out[1];) {
        const int64_t count = depthwise_alike(w, ow, t) - ow;
        if (count >= most)
            ow += TYPED(depthwise_cells)(d, x, k, y, t, ow, rows, most, stream);
        else if (most > 4 && count >= 4)
            ow += TYPED(depthwise_cells)(d, x, k, y, t, ow, rows, 4, stream);
        else if (most > 2 && count >= 2)
            ow += TYPED(depthwise_cells)(d, x, k, y, t, ow, rows, 2, stream);
        else
            ow += TYPED(depthwise_cells)(d, x, k, y, t, ow, rows, 1, stream);
    }
    if (stream) vstream_end();
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
    if (!d->bias) return;
    for (int64_t ow = 0; ow < w->out[1]; ow++, y += c * m)
        for (int64_t i = 0, left; (left = c * m - i) > 0; i += VECTOR_LANES) {
            const VECTOR bias = lanes_some((const NUMBER *)d->bias->data + i, left, 0);
            lanes_put(y + i, TYPED(depthwise_end)(d, lanes_some(y + i, left, 0), bias), left);
        }
}

/* Row oh of the output of one image, and perhaps others of the `left` from it on. Returns how many
 * they are. */
static int TYPED(depthwise_row)(const depthwise_call *d, const void *image, int64_t oh,
                                int64_t left, void *to)
{
    const window *w = &d->w;
    const NUMBER *x = image;
    NUMBER *y = to;
    depthwise_taps t = {.row = oh * w->stride[0] - w->before[0]};
    window_taps(w, 0, oh, &t.h0, &t.h1);
    if (d->multiplier > 1) {
        TYPED(depthwise_plain)(d, x, (const NUMBER *)d->kernel->data, y, &t);
    } else if (!d->stream) {
        TYPED(depthwise_walk)(d, x, y, &t, 1, DEPTHWISE_SOME, false);
    } else if (DEPTHWISE_ROWS > 1 && left >= DEPTHWISE_ROWS && t.h1 - t.h0 == w->extent[0] &&
               depthwise_is_whole(w, oh + DEPTHWISE_ROWS - 1)) {
        TYPED(depthwise_walk)(d, x, y, &t, DEPTHWISE_ROWS, DEPTHWISE_ABREAST, true);
        return DEPTHWISE_ROWS;
    } else {
        TYPED(depthwise_walk)(d, x, y, &t, 1, DEPTHWISE_SOME / DEPTHWISE_VECS, true);
    }
    return 1;
}

/* A multiplier of 1, or a large one: what the windows' taps send to a row of dx, tap by tap. */
static void TYPED(depthwise_plain_input)(const depthwise_call *d, const NUMBER *dy, const NUMBER *k,
                                         int64_t h, int64_t oh, NUMBER *dx)
{
    const window *w = &d->w;
    const int64_t c = w->channels, m = d->multiplier;
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

/* Begins a cell of dx with what n taps send it, or adds that to it: a channel's outputs, m, are
 * summed last. */
VECTOR_INLINE void TYPED(depthwise_send)(const depthwise_call *d, const NUMBER *dy, const NUMBER *k,
                                         NUMBER *dx, const depthwise_tap *taps, int n, bool add,
                                         const int64_t m)
{
    const int64_t c = d->w.channels;
    NUMBER parts[DEPTHWISE_MULTIPLIER * VECTOR_LANES];
    for (int64_t i = 0, left; (left = c - i) > 0; i += VECTOR_LANES) {
        VECTOR sum;
        for (int64_t q = 0; q < m; q++) {
            const int64_t at = i * m + q * VECTOR_LANES, rest = c * m - at;
            sum = (VECTOR){0};
            for (int t = 0; t < n; t++)
                sum = vfma(lanes_some(dy + taps[t].x + at, rest, 0),
                           lanes_some(k + taps[t].k + at, rest, 0), sum);
            vstore(parts + q * VECTOR_LANES, sum);
        }
        sum = strided_read(parts, VECTOR_LANES, m);
        for (int64_t j = 1; j < m; j++) sum += strided_read(parts + j, VECTOR_LANES, m);
        if (add) sum += lanes_some(dx + i, left, 0);
        lanes_put(dx + i, sum, left);
    }
}

/* The cell of dx at positions t and u of the axes, see conv_gemm.h. */
static void TYPED(depthwise_cell)(const depthwise_call *d, const NUMBER *dy, const NUMBER *k,
                                  NUMBER *dx, const conv_axis *h, int64_t t, const conv_axis *v,
                                  int64_t u)
{
    const window *w = &d->w;
    const int64_t outputs = w->channels * d->multiplier;
    depthwise_tap taps[DEPTHWISE_SENDERS];
    bool add = false;
    int n = 0;
    for (int64_t i = 0; i < h->taps; i++) {
        const int64_t oh = h->base + i * h->base_step + t;
        const int64_t row = (h->index + i * h->index_step) * w->extent[1] + v->index;
        for (int64_t j = 0; j < v->taps && oh >= 0 && oh < h->limit; j++) {
            const int64_t ow = v->base + j * v->base_step + u;
            if (ow < 0 || ow >= v->limit) continue;
            if (n == DEPTHWISE_SENDERS) {
                TYPED(depthwise_send)(d, dy, k, dx, taps, n, add, d->multiplier);
                add = true, n = 0;
            }
            taps[n++] = (depthwise_tap){(oh * w->out[1] + ow) * outputs,
                                        (row + j * v->index_step) * outputs};
        }
    }
    if (d->multiplier == 2)
        TYPED(depthwise_send)(d, dy, k, dx, taps, n, add, 2);
    else
        TYPED(depthwise_send)(d, dy, k, dx, taps, n, add, d->multiplier);
}

/* Row `row` of the gradient of one image, what the rows of dy send it whose windows have it; one at
 * a time, as the result says. */
static int TYPED(depthwise_input_row)(const depthwise_call *d, const void *image, int64_t row,
                                      int64_t left, void *to)
{
    const window *w = &d->w;
    const int64_t c = w->channels, t = row / w->stride[0], step = w->stride[1];
    const conv_axis h = conv_axis_backward(w, 0, row % w->stride[0]);
    const NUMBER *dy = image, *k = (const NUMBER *)d->kernel->data;
    NUMBER *dx = to;
    (void)left;
    if (d->multiplier == 1 || d->multiplier > DEPTHWISE_MULTIPLIER) {
        memset(dx, 0, (size_t)(w->image[1] * c) * sizeof *dx);
        for (int64_t i = 0; i < h.taps; i++) {
            const int64_t oh = h.base + i * h.base_step + t;
            if (oh >= 0 && oh < h.limit)
                TYPED(depthwise_plain_input)(d, dy, k, h.index + i * h.index_step, oh, dx);
        }
        return 1;
    }
    for (int64_t phase = 0; phase < conv_min(step, w->image[1]); phase++) {
        const conv_axis v = conv_axis_backward(w, 1, phase);
        for (int64_t u = 0; u < v.positions; u++)
            TYPED(depthwise_cell)(d, dy, k, dx + (phase + u * step) * c, &h, t, &v, u);
    }
    return 1;
}

/* dk += x dy of a vector of channels: `count` taps of the outputs [begin, end), which have them
 * all. */
VECTOR_INLINE void TYPED(depthwise_products)(const depthwise_call *d, const NUMBER *x,
                                             const NUMBER *dy, NUMBER *dk,
                                             const depthwise_tap *taps, int64_t begin, int64_t end,
                                             int count, int64_t left)
{
    const int64_t c = d->w.channels, step = d->w.stride[1] * c;
    const NUMBER *from[DEPTHWISE_TAPS];
    VECTOR acc[DEPTHWISE_TAPS];
    for (int i = 0; i < count; i++) {
        from[i] = x + taps[i].x;
        acc[i] = (VECTOR){0};
    }
    dy += begin * c;
    for (int64_t ow = begin, at = 0; ow < end; ow++, at += step, dy += c) {
        __builtin_prefetch(dy + DEPTHWISE_CELLS * c);
        __builtin_prefetch(from[count - 1] + at + DEPTHWISE_CELLS * step);
        const VECTOR by = lanes_some(dy, left, 0);
        for (int i = 0; i < count; i++)
            acc[i] = vfma(lanes_some(from[i] + at, left, 0), by, acc[i]);
    }
    for (int i = 0; i < count; i++) {
        NUMBER *to = dk + taps[i].k;
        lanes_put(to, lanes_some(to, left, 0) + acc[i], left);
    }
}

/* The same of all channels, the taps from number `first` on. Returns how many. */
VECTOR_INLINE int64_t TYPED(depthwise_add_taps)(const depthwise_call *d, const NUMBER *x,
                                                const NUMBER *dy, NUMBER *dk,
                                                const depthwise_taps *t, int64_t first,
                                                int64_t begin, int64_t end, int count)
{
    const int64_t c = d->w.channels;
    depthwise_tap taps[DEPTHWISE_TAPS];
    int64_t i = 0;
    depthwise_list(&d->w, t, begin, first, count, taps);
    for (; i + VECTOR_LANES <= c; i += VECTOR_LANES)
        TYPED(depthwise_products)(d, x + i, dy + i, dk + i, taps, begin, end, count, VECTOR_LANES);
    if (i < c) TYPED(depthwise_products)(d, x + i, dy + i, dk + i, taps, begin, end, count, c - i);
    return count;
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
    const NUMBER *x = image, *dy = dys;
    NUMBER *dk = sums;
    depthwise_taps t = {.row = oh * w->stride[0] - w->before[0]};
    window_taps(w, 0, oh, &t.h0, &t.h1);
    if (d->multiplier > 1) {
        TYPED(depthwise_plain_taps)(d, x, dy, dk, &t);
        return;
    }
    for (int64_t ow = 0, end; ow < w->out[1]; ow = end) {
        end = depthwise_alike(w, ow, &t);
        if (end > ow + DEPTHWISE_CELLS) end = ow + DEPTHWISE_CELLS;
        const int64_t all = (t.h1 - t.h0) * (t.v1 - t.v0);
        for (int64_t i = 0; i < all;) {
            if (all - i >= DEPTHWISE_TAPS)
                i += TYPED(depthwise_add_taps)(d, x, dy, dk, &t, i, ow, end, DEPTHWISE_TAPS);
            else if (all - i >= 3)
                i += TYPED(depthwise_add_taps)(d, x, dy, dk, &t, i, ow, end, 3);
            else
                i += TYPED(depthwise_add_taps)(d, x, dy, dk, &t, i, ow, end, 1);
        }
    }
}

static void TYPED(depthwise_join)(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((NUMBER *)to)[i] += ((const NUMBER *)from)[i];
}

#undef TYPE
