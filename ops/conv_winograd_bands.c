/*
 * Winograd's tiles of images whose channels come first. Vectors of channels are wanted, so what a
 * band of tiles reads is copied as lines first (conv_lines.c), and its results are turned as they
 * are written; both stay in the cache. A band is some rows of tiles of one image, or some images.
 */
#include "ops/conv_winograd.h"

winograd_bands winograd_bands_of(const int64_t tiles[2], int64_t batch, int64_t some)
{
    const int64_t all = tiles[0] * tiles[1];
    winograd_bands b = {.tiles = {tiles[0], tiles[1]}, .batch = batch};
    b.images = conv_min(conv_max(some / all, 1), batch);
    b.rows = conv_min(conv_max(some / tiles[1], 1), tiles[0]);
    b.rows = conv_ceil(tiles[0], conv_ceil(tiles[0], b.rows));
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
                                .count = at.images * at.rows * b->tiles[1]};
    return at;
}

/* The shape of an image's lines, for `rows` rows of tiles. */
static void lines_of(const winograd_bands *b, const conv *c, int64_t rows, int64_t cells[2])
{
    cells[0] = rows * WINOGRAD_TILE + c->w.extent[0] - 1;
    cells[1] = b->tiles[1] * WINOGRAD_TILE + c->w.extent[1] - 1;
}

int64_t winograd_lines_bytes(const winograd_bands *b, const conv *c)
{
    int64_t cells[2];
    lines_of(b, c, b->rows, cells);
    return b->images * cells[0] * cells[1] * c->in * c->size + 64;
}

winograd_images winograd_lines(const winograd_bands *b, const winograd_band *at, const conv *c,
                               char *to)
{
    winograd_images x = {.data = to, .channels = c->in, .outside = to};
    conv whole = *c;
    lines_of(b, c, at->rows, x.cells);
    whole.w.out[1] = b->tiles[1] * WINOGRAD_TILE; /* of whole tiles */
    x.layout.cell = c->in * c->size;
    x.layout.row = x.cells[1] * x.layout.cell;
    x.layout.image = x.cells[0] * x.layout.row;
    for (int64_t i = 0; i < at->images; i++, to += x.layout.image)
        conv_lines(&whole, at->image + i, at->row * WINOGRAD_TILE,
                   (at->row + at->rows) * WINOGRAD_TILE, to);
    return x;
}
