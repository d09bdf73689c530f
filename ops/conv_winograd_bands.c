/*
 * Winograd's tiles of images whose channels come first. Vectors of channels are wanted, so what a
 * band of tiles reads is copied as lines first (conv_lines.c), and its results are turned as they
 * are written; both stay in the cache. A band is some rows of tiles of one image, or some images.
 */
#include "ops/conv_winograd.h"

winograd_bands winograd_bands_of(const winograd_block *all, int64_t batch, int64_t some)
{
    const int64_t *tiles = all->tiles, *dilation = all->dilation;
    winograd_bands b = {
        .tiles = {tiles[0], tiles[1]}, .batch = batch, .dilation = {dilation[0], dilation[1]}};
    b.images = conv_min(conv_max(some / (tiles[0] * tiles[1]), 1), batch);
    b.rows = conv_min(conv_max(some / tiles[1], 1), tiles[0]);
    b.rows = conv_ceil(tiles[0], conv_ceil(tiles[0], b.rows));
    b.rows = conv_min(conv_ceil(b.rows, dilation[0]) * dilation[0], tiles[0]);
    b.count = b.rows < tiles[0] ? batch * conv_ceil(tiles[0], b.rows) : conv_ceil(batch, b.images);
    return b;
}

winograd_band winograd_band_at(const winograd_bands *b, int64_t i)
{
    const int64_t each = conv_ceil(b->tiles[0], b->rows);
    winograd_band at = {.image = i / each * b->images, .row = i % each * b->rows};
    at.images = conv_min(b->images, b->batch - at.image);
    at.rows = conv_min(b->rows, b->tiles[0] - at.row);
    at.block = (winograd_block){.tiles = {at.rows, b->tiles[1]},
                                .dilation = {b->dilation[0], b->dilation[1]},
                                .count = at.images * at.rows * b->tiles[1]};
    return at;
}

/* The shape of an image's lines, for `rows` rows of tiles. */
static void lines_of(const winograd_bands *b, const conv *c, int64_t rows, int64_t cells[2])
{
    const int64_t tiles[2] = {rows, b->tiles[1]};
    for (int d = 0; d < 2; d++)
        cells[d] = winograd_cells(tiles[d], b->dilation[d]) + (c->w.extent[d] - 1) * b->dilation[d];
}

int64_t winograd_lines_bytes(const winograd_bands *b, const conv *c)
{
    int64_t cells[2];
    lines_of(b, c, b->rows, cells);
    return b->images * cells[0] * cells[1] * c->in * c->size + 64;
}

winograd_images winograd_lines(const winograd_bands *b, const winograd_band *at, const conv *c,
                               char *outside, char *to)
{
    winograd_images x = {.data = to, .channels = c->in, .outside = outside};
    conv whole = *c;
    lines_of(b, c, at->rows, x.cells);
    const int64_t top = winograd_cells(at->row, b->dilation[0]);
    const int64_t rows = winograd_cells(at->rows, b->dilation[0]);
    whole.w.out[1] = winograd_cells(b->tiles[1], b->dilation[1]); /* of whole tiles */
    x.layout.cell = c->in * c->size;
    x.layout.row = x.cells[1] * x.layout.cell;
    x.layout.image = x.cells[0] * x.layout.row;
    for (int64_t i = 0; i < at->images; i++, to += x.layout.image) {
        const conv lines = conv_lines(&whole, at->image + i, top, top + rows, to);
        x.before[0] = lines.w.before[0] - top;
        x.cells[0] = lines.w.image[0];
    }
    return x;
}
