/*
 * Winograd's convolution, F(2x2, 3x3), see conv_winograd.h. Per block of tiles, small enough for
 * its matrices to stay in the second-level cache:
 *
 *     source --patches--> V[16][tile, channels] --products with U--> M[16][tile, results] --> y
 *
 * U[16], the transformed kernel, is made once a call, packed as products want it. The gradient of
 * the input is the convolution of dy with the kernel turned by 180 degrees.
 *
 * An inf or NaN spreads to all results of its tile; so do numbers that only the transforms make
 * overflow. The caller is told which rows have such results, and computes those directly: results
 * are inf or NaN exactly where those of the sums over windows are.
 *
 * A result depends on its tile and the kernel alone, whatever blocks tiles are put in.
 */
#include "ops/conv_winograd.h"
#include "tensor/threads.h"
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_CHANNELS = 16,      /* in and out: with fewer, transforms cost more than products */
    LEAST_PAIRS = 512,        /* of a channel in and one out: likewise */
    LEAST_TILES = 16,         /* with fewer, that of the kernel does */
    BLOCK_BYTES = 512 * 1024, /* of V and M */
    LEAST_STRIPES = 3,        /* register tiles below each other that a block has at least ... */
    MOST_BLOCKS = 16,         /* ... unless there are fewer blocks than this */
    CHUNK = 32,               /* rows and columns of the kernel transformed at a time */
};

static conv_winograd_use use = CONV_WINOGRAD_WHERE_FASTER;

void conv_winograd_set(conv_winograd_use to)
{
    use = to;
}

__attribute__((constructor)) static void choose(void)
{
    const char *wanted = getenv("EDDY_WINOGRAD");
    if (wanted && !strcmp(wanted, "0")) use = CONV_WINOGRAD_NEVER;
}

/* A convolution at work, from x to y or from dy to dx. */
typedef struct winograd {
    const conv *c;
    const winograd_loops *loops;
    bool back;
    conv source; /* c, or what its input's gradient is */
    winograd_images from, to;
    winograd_matrices v, m; /* of a block */
    winograd_end end;
    winograd_block all;
    int64_t block;          /* tiles */
    winograd_bands bands;   /* instead of blocks, if channels come first */
    int64_t lines, results; /* likewise: bytes of a band's copies */
    int64_t matrix, panels; /* bytes of a matrix of U and of its panels' steps */
    char *packed;
    conv_crew crew;
} winograd;

static bool is_regular(const conv *c, bool back)
{
    const window *w = &c->w;
    bool is = c->groups == 1 && c->in;
    for (int d = 0; d < 2; d++)
        is = is && w->extent[d] == WINOGRAD_KERNEL && w->stride[d] == 1 &&
             (!back || conv_channels_last(c) ||
              w->before[d] <= (WINOGRAD_KERNEL - 1) * w->dilation[d]);
    return is;
}

bool conv_winograd_suits(const conv *c, bool back)
{
    const int64_t *cells = back ? c->w.image : c->w.out, *dilation = c->w.dilation;
    if (use == CONV_WINOGRAD_NEVER || !is_regular(c, back)) return false;
    const int64_t tiles =
        winograd_tiles(cells[0], dilation[0]) * winograd_tiles(cells[1], dilation[1]);
    if (use == CONV_WINOGRAD_ALWAYS) return true;
    return c->in >= LEAST_CHANNELS && c->out >= LEAST_CHANNELS && c->in * c->out >= LEAST_PAIRS &&
           tiles * c->w.batch >= LEAST_TILES && cells[0] * cells[1] * 3 >= tiles * 8;
}

const winograd_loops *winograd_loops_of(const conv *c)
{
    static const winograd_loops *const tables[ISA_COUNT] = ISA_TABLE(winograd_table);
    return &tables[isa_level][c->wide ? ED_FLOAT64 : ED_FLOAT32];
}

int64_t winograd_row(const conv *c, int64_t channels)
{
    return conv_ceil(channels, c->tile / 2) * (c->tile / 2) + 64 / c->size;
}

static int64_t block_of(const winograd *p)
{
    const conv *c = p->c;
    int64_t rows, columns;
    ISA_CALL(gemm_tile)(c->wide, &rows, &columns);
    const int64_t bytes = WINOGRAD_MATRICES * (p->v.row + p->m.row) * c->size;
    const int64_t some = conv_max(BLOCK_BYTES / bytes, LEAST_STRIPES * rows);
    return conv_ceil(conv_min(some, conv_ceil(p->all.count, MOST_BLOCKS)), rows) * rows;
}

/* Bands of tiles, for copies of what they read. */
static void begin_bands(winograd *p)
{
    const conv *c = &p->source;
    p->bands = winograd_bands_of(&p->all, c->w.batch, p->block);
    p->block = p->bands.images * p->bands.rows * p->all.tiles[1];
    p->lines = conv_ceil(winograd_lines_bytes(&p->bands, c), 64) * 64;
    p->results = p->bands.images * winograd_cells(p->bands.rows, c->w.dilation[0]) *
                 p->to.cells[1] * p->m.row * c->size;
}

static winograd winograd_begin(const conv *c, bool back, char *marks)
{
    const conv source = back ? conv_turned(c) : *c;
    const window *w = &source.w;
    winograd p = {.c = c,
                  .loops = winograd_loops_of(c),
                  .back = back,
                  .source = source,
                  .from = {.data = source.x, .layout = source.in_images, .channels = source.in},
                  .to = {.data = source.y, .layout = source.out_images, .channels = source.out},
                  .end = {.bias = c->bias, .relu = c->relu, .marks = marks}};
    for (int d = 0; d < 2; d++) {
        p.from.cells[d] = w->image[d];
        p.to.cells[d] = w->out[d];
        p.from.before[d] = w->before[d];
        p.all.dilation[d] = w->dilation[d];
        p.all.tiles[d] = winograd_tiles(w->out[d], w->dilation[d]);
    }
    p.all.count = w->batch * p.all.tiles[0] * p.all.tiles[1];
    p.v.row = winograd_row(c, p.from.channels);
    p.m.row = winograd_row(c, p.to.channels);
    p.block = block_of(&p);
    if (!conv_channels_last(c)) begin_bands(&p);
    p.v.step = p.block * p.v.row;
    p.m.step = p.block * p.m.row;
    p.panels = p.from.channels * c->panel;
    p.matrix = conv_ceil(p.to.channels, c->tile) * p.panels;
    return p;
}

/* A chunk of the kernel, from [i, j] on: transformed, then packed. */
static void pack_chunk(const winograd *p, int64_t i, int64_t j, char *scratch)
{
    const conv *c = p->c;
    const int64_t tap = c->in * c->out, rows = conv_min(CHUNK, c->in - i);
    const int64_t columns = conv_min(CHUNK, c->out - j), size = c->size;
    const winograd_matrices some = {scratch, CHUNK * CHUNK, CHUNK};
    const char *from = c->k + (i * c->out + j) * size;
    if (p->back) from += (WINOGRAD_KERNEL * WINOGRAD_KERNEL - 1) * tap * size;
    p->loops->taps(from, p->back ? -tap : tap, c->out, rows, columns, &some);
    for (int64_t q = 0; q < WINOGRAD_MATRICES; q++, scratch += some.step * size) {
        char *to = p->packed + q * p->matrix;
        if (p->back) ISA_CALL(gemm_pack)
        (c->wide, columns, rows, scratch, size, some.row * size,
         to + i / c->tile * p->panels + j * c->panel, p->panels);
        else ISA_CALL(gemm_pack)(c->wide, rows, columns, scratch, some.row * size, size,
                                 to + j / c->tile * p->panels + i * c->panel, p->panels);
    }
}

static void pack_range(int64_t first, int64_t last, int worker, void *user)
{
    const winograd *p = user;
    const int64_t chunks = conv_ceil(p->c->out, CHUNK);
    for (int64_t i = first; i < last; i++)
        pack_chunk(p, i / chunks * CHUNK, i % chunks * CHUNK, conv_crew_scratch(&p->crew, worker));
}

/* The products of a block's patches with U. */
static void multiply_block(const winograd *p, int64_t tiles, const char *v, char *m)
{
    const conv *c = p->c;
    gemm_runs_job job = {.wide = c->wide,
                         .m = tiles,
                         .n = p->to.channels,
                         .k = p->from.channels,
                         .runs = 1,
                         .a_row = p->v.row * c->size,
                         .a_col = c->size,
                         .b_row = c->panel,
                         .b_panel = p->panels,
                         .c_row = p->m.row * c->size,
                         .c_col = c->size};
    for (int64_t q = 0; q < WINOGRAD_MATRICES; q++) {
        job.a = v + q * p->v.step * c->size;
        job.b = p->packed + q * p->matrix;
        job.c = m + q * p->m.step * c->size;
        ISA_CALL(gemm_runs)(&job);
    }
}

/* One block, or one band by way of copies. */
static void run_block(winograd *p, int64_t i)
{
    winograd_block b = p->all;
    b.first = i * p->block;
    b.count = conv_min(p->block, p->all.count - b.first);
    p->loops->patches(&p->from, &b, &p->v);
    multiply_block(p, b.count, p->v.data, p->m.data);
    p->loops->results(&p->m, &b, &p->to, &p->end);
}

static void run_band(const winograd *p, int64_t i, char *scratch)
{
    const int64_t cell = p->m.row * p->c->size, columns = p->to.cells[1];
    const winograd_band at = winograd_band_at(&p->bands, i);
    const winograd_images from =
        winograd_lines(&p->bands, &at, &p->source, p->from.outside, scratch);
    winograd_images to = p->to;
    winograd_end end = p->end;
    const int64_t dilation = p->all.dilation[0], top = winograd_cells(at.row, dilation);
    end.marks += at.image * conv_ceil(p->all.tiles[0], dilation) + at.row / dilation;
    to.cells[0] = conv_min(winograd_cells(at.rows, dilation), to.cells[0] - top);
    to.data = scratch + p->lines;
    to.layout =
        (conv_layout){.image = to.cells[0] * columns * cell, .row = columns * cell, .cell = cell};
    p->loops->patches(&from, &at.block, &p->v);
    multiply_block(p, at.block.count, p->v.data, p->m.data);
    p->loops->results(&p->m, &at.block, &to, &end);
    for (int64_t image = 0; image < at.images; image++) ISA_CALL(gemm_turn)
    (p->c->wide, to.cells[0] * columns, to.channels, to.data + image * to.layout.image, cell,
     p->to.data + (at.image + image) * p->to.layout.image + top * p->to.layout.row,
     p->to.layout.channel);
}

static void block_range(int64_t first, int64_t last, int worker, void *user)
{
    winograd p = *(const winograd *)user;
    const int64_t size = p.c->size;
    p.v.data = conv_crew_scratch(&p.crew, worker);
    p.m.data = (char *)p.v.data + WINOGRAD_MATRICES * p.v.step * size;
    p.from.outside = (char *)p.m.data + WINOGRAD_MATRICES * p.m.step * size;
    p.to.outside = p.from.outside + p.v.row * size;
    memset(p.from.outside, 0, (size_t)(p.v.row * size));
    for (int64_t i = first; i < last; i++)
        if (p.bands.count)
            run_band(&p, i, p.to.outside + p.m.row * size);
        else
            run_block(&p, i);
}

/* Bytes that a thread needs: of a block, or of a chunk of the kernel. */
static size_t scratch_of(const winograd *p)
{
    const int64_t block = (WINOGRAD_MATRICES * p->block + 1) * (p->v.row + p->m.row);
    const int64_t bytes = block * p->c->size + p->lines + p->results;
    return (size_t)conv_max(bytes, WINOGRAD_MATRICES * CHUNK * CHUNK * p->c->size);
}

bool conv_winograd(const conv *c, bool back, char *marks)
{
    winograd p = winograd_begin(c, back, marks);
    const int64_t units = p.bands.count ? p.bands.count : conv_ceil(p.all.count, p.block);
    const int64_t chunks = conv_ceil(c->in, CHUNK) * conv_ceil(c->out, CHUNK);
    size_t bytes;
    if (!memory_mul((size_t)p.matrix, WINOGRAD_MATRICES, &bytes)) return conv_too_large();
    p.packed = memory_alloc(bytes);
    const bool ok = p.packed && conv_crew_open(&p.crew, 0, scratch_of(&p));
    if (ok) {
        threads_run_among(p.crew.count, chunks, conv_grain(c, chunks), pack_range, &p);
        threads_run_among(p.crew.count, units, conv_grain(c, units), block_range, &p);
    }
    memory_free(p.packed);
    memory_free(p.crew.scratch);
    return ok;
}
