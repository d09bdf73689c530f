/*
 * Images of few channels as lines: the rows that a band of outputs reads, copied with a cell's
 * channels side by side and zeros where padding has no cells:
 *
 *     0 0 | c0 c1 c2 | c0 c1 c2 | ... | 0 0
 *
 * So the taps of a kernel row are one run for any layout and group, every output has all of them,
 * and a row of outputs is one product. Rows of padding are not copied: outputs near them have fewer
 * kernel rows. With few channels a copy costs little, and the pieces at the edges, each a product
 * of its own, cost much.
 *
 * A product with a zero of the padding adds 0, except to a number that is inf or NaN. Whoever uses
 * lines sees to it that there are none among those.
 */
#include "ops/conv_gemm.h"
#include <math.h>
#include <string.h>

enum {
    CHANNELS = 32,          /* lines are for fewer */
    BAND_BYTES = 96 * 1024, /* of lines that bands are cut for ... */
    MOST_BYTES = 512 * 1024 /* ... and that there may be */
};

/* The cells along an axis that so many positions read. */
static int64_t reach(const window *w, int axis, int64_t positions)
{
    return (positions - 1) * w->stride[axis] + (w->extent[axis] - 1) * w->dilation[axis] + 1;
}

/* The share of the taps along an axis that are in the image. */
static double inside(const window *w, int axis)
{
    int64_t begin, end, taps = 0;
    for (int64_t o = 0; o < w->out[axis]; o++) {
        window_taps(w, axis, o, &begin, &end);
        taps += end - begin;
    }
    return (double)taps / (double)w->out[axis] / (double)w->extent[axis];
}

static double bytes_of(const conv *c, int64_t rows)
{
    return (double)reach(&c->w, 0, rows) * (double)reach(&c->w, 1, c->w.out[1]) *
           (double)(c->in * c->size);
}

int64_t conv_lines_begin(conv *c, int64_t rows)
{
    const window *w = &c->w;
    int64_t some = rows;
    if (w->extent[0] * w->extent[1] == 1 || c->in >= CHANNELS) return rows;
    if (inside(w, 0) * inside(w, 1) < 0.5) return rows; /* mostly zeros */
    while (some > 1 && bytes_of(c, some) > BAND_BYTES) some = (some + 1) / 2;
    if (bytes_of(c, some) > MOST_BYTES) return rows;
    c->lines = (size_t)bytes_of(c, some) + 64;
    return some;
}

/* Cells of a row. Channels are taken a vector at a time; what is behind the last of a cell is
 * overwritten by what comes to lie there next. */
static void copy_cells(const conv *c, const char *from, int64_t cells, char *to)
{
    const conv_layout *x = &c->in_images;
    const int64_t cell = c->in * c->size, lanes = c->tile / 2;
    if (x->cell == cell && (x->channel == c->size || c->in == 1)) {
        memcpy(to, from, (size_t)(cells * cell));
        return;
    }
    for (int64_t i = (c->in - 1) / lanes * lanes; i >= 0; i -= lanes) ISA_CALL(gemm_pack_lines)
    (c->wide, conv_min(lanes, c->in - i), cells, from + i * x->channel, x->channel, x->cell,
     to + i * c->size, cell);
}

conv conv_lines(const conv *c, int64_t image, int64_t begin, int64_t end, char *to)
{
    const window *w = &c->w;
    const int64_t cells = reach(w, 1, w->out[1]), cell = c->in * c->size;
    const int64_t top = begin * w->stride[0] - w->before[0];
    const int64_t first = conv_min(conv_max(top, 0), w->image[0]);
    const int64_t last = conv_max(conv_min(top + reach(w, 0, end - begin), w->image[0]), first);
    const int64_t left = conv_min(w->before[1], cells);
    const int64_t right = conv_max(conv_min(w->before[1] + w->image[1], cells), left);
    const char *from = c->x + image * c->in_images.image;
    char *line = to;
    for (int64_t i = first; i < last; i++, line += cells * cell) {
        memset(line, 0, (size_t)(left * cell));
        copy_cells(c, from + i * c->in_images.row, right - left, line + left * cell);
        memset(line + right * cell, 0, (size_t)((cells - right) * cell));
    }
    conv lines = *c;
    lines.x = to;
    lines.in_images = (conv_layout){.row = cells * cell, .cell = cell, .channel = c->size};
    lines.w.image[0] = last - first, lines.w.image[1] = cells;
    lines.w.before[0] += first, lines.w.before[1] = 0;
    return lines;
}

static bool are_finite_f32(const float *x, int64_t n)
{
    bool all = true;
    for (int64_t i = 0; i < n; i++) all &= isfinite(x[i]) != 0;
    return all;
}

static bool are_finite_f64(const double *x, int64_t n)
{
    bool all = true;
    for (int64_t i = 0; i < n; i++) all &= isfinite(x[i]) != 0;
    return all;
}

bool conv_kernel_is_finite(const conv *c)
{
    const int64_t n = c->w.extent[0] * c->w.extent[1] * c->in * c->all_out;
    return c->wide ? are_finite_f64((const double *)c->k, n)
                   : are_finite_f32((const float *)c->k, n);
}
