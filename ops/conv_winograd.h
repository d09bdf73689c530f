/*
 * Between conv_winograd.c, conv_winograd_kernel.c, what both use for images whose channels come
 * first, conv_winograd_bands.c, and their loops, conv_winograd.simd.c.
 *
 * Winograd's F(2x2, 3x3): the four results of a tile of 2x2, windows of 3x3 over a patch d of 4x4,
 * take 16 products for each pair of channels, not 36:
 *
 *     Y = A^T [ (G g G^T) . (B^T d B) ] A        g: the kernel, 3x3; ".": element by element
 *
 *           | 1  0 -1  0 |        |  1   0   0 |          | 1  1  1  0 |
 *     B^T = | 0  1  1  0 |    G = | 1/2 1/2 1/2|    A^T = | 0  1 -1 -1 |
 *           | 0 -1  1  0 |        | 1/2-1/2 1/2|
 *           | 0  1  0 -1 |        |  0   0   1 |
 *
 * Element by element over all tiles and channels these are 16 products of matrices. Numbers 0..15
 * of matrices and of a patch's cells are row by row.
 *
 * Windows whose cells are d apart, dilated ones, have tiles and patches whose cells are d apart. Of
 * every 2 d rows the first d begin a row of tiles each; with d = 2, tiles a, b, c, ... cover
 *
 *     row of tiles 0:  a b a b . c d c d .        so tile i begins at row (i / d) 2 d + i % d,
 *                  1:  e f e f . g h g h .        and likewise along a row.
 *                  0:  a b a b . c d c d .
 *                  1:  e f e f . g h g h .
 */
#ifndef EDDY_OPS_CONV_WINOGRAD_H
#define EDDY_OPS_CONV_WINOGRAD_H

#include "ops/conv_gemm.h"

enum { WINOGRAD_PATCH = 4, WINOGRAD_TILE = 2, WINOGRAD_KERNEL = 3, WINOGRAD_MATRICES = 16 };

/* Images with their channels last, as tiles see them. */
typedef struct winograd_images {
    char *data;
    conv_layout layout;
    int64_t channels, cells[2];
    int64_t before[2]; /* where in front of the image the first tile begins */
    char *outside;     /* a cell's channels: zeros, or room for what nobody keeps */
} winograd_images;

/* `count` tiles from the first on, of all images' tiles row by row, [tiles[0], tiles[1]] each. */
typedef struct winograd_block {
    int64_t tiles[2], dilation[2], first, count;
} winograd_block;

/* The tiles that so many cells along an axis have, and the cells that so many tiles cover. */
static inline int64_t winograd_tiles(int64_t cells, int64_t dilation)
{
    const int64_t all = WINOGRAD_TILE * dilation;
    return cells / all * dilation + conv_min(cells % all, dilation);
}

static inline int64_t winograd_cells(int64_t tiles, int64_t dilation)
{
    return conv_ceil(tiles, dilation) * WINOGRAD_TILE * dilation;
}

/* Sixteen matrices: elements to the next one, and of each to the next row. */
typedef struct winograd_matrices {
    void *data;
    int64_t step, row;
} winograd_matrices;

/* What becomes of results: bias(channel) or NULL is added, relu applied. Where a result of a tile
 * is inf or NaN before that, its row of tiles, or d rows with dilation d, of all images', is
 * marked. */
typedef struct winograd_end {
    const void *bias;
    bool relu;
    char *marks;
} winograd_end;

/* Rows of matrices are whole vectors. */
typedef struct winograd_loops {
    /* G g G^T: row i of each matrix from kernel elements from[tap tap_step + i row_step + j]. */
    void (*taps)(const void *from, int64_t tap_step, int64_t row_step, int64_t rows,
                 int64_t columns, const winograd_matrices *to);
    /* B^T d B: row i of each matrix from the patch of the block's tile i. */
    void (*patches)(const winograd_images *from, const winograd_block *b,
                    const winograd_matrices *to);
    /* A^T m A: tile i from row i of each matrix. */
    void (*results)(const winograd_matrices *from, const winograd_block *b,
                    const winograd_images *to, const winograd_end *end);
    /* A y A^T: row i of each matrix from the 2x2 cells of the block's tile i. */
    void (*cells)(const winograd_images *from, const winograd_block *b,
                  const winograd_matrices *to);
    /* G^T s G: rows of a kernel from those of matrices, the sums of `groups` of them which are
     * `group` elements apart. Whether all are finite. */
    bool (*kernel)(const winograd_matrices *from, int64_t groups, int64_t group, int64_t rows,
                   int64_t columns, void *to, int64_t tap_step);
} winograd_loops;

ISA_DECLARE_TABLE(winograd_loops, winograd_table, [ED_DTYPE_COUNT]);

/* The loops for the machine and a convolution's dtype. */
const winograd_loops *winograd_loops_of(const conv *c);

/* Numbers of a row of a matrix: whole vectors, and a line of the cache more, since rows whose
 * distance is a large power of two drive each other out. */
int64_t winograd_row(const conv *c, int64_t channels);

/* Tiles of `batch` images whose channels come first, in bands: rows of tiles, whose cells are rows
 * without gaps, or whole images. */
typedef struct winograd_bands {
    int64_t tiles[2], batch; /* of an image; images */
    int64_t dilation[2];
    int64_t rows, images, count; /* of a band; bands */
} winograd_bands;

typedef struct winograd_band {
    int64_t image, images, row, rows; /* the first and how many */
    winograd_block block;             /* the tiles, as if there were no others */
} winograd_band;

/* Bands of about so many tiles of all images', which `all` says. */
winograd_bands winograd_bands_of(const winograd_block *all, int64_t batch, int64_t some);
winograd_band winograd_band_at(const winograd_bands *b, int64_t i);

/* Copies what the windows of a convolution, or its tiles themselves where the window is one cell,
 * read of its x. `outside` is for rows of padding; `to` has room for winograd_lines_bytes. */
winograd_images winograd_lines(const winograd_bands *b, const winograd_band *at, const conv *c,
                               char *outside, char *to);
int64_t winograd_lines_bytes(const winograd_bands *b, const conv *c);

#endif
