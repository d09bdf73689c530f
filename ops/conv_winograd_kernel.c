/*
 * The gradient of the kernel by Winograd's tiles. As y = A^T [(G g G^T) . (B^T d B)] A is linear in
 * g, its gradient is
 *
 *     dg = G^T [ the sum over tiles of (B^T d B) . (A dy A^T) ] G      dy: a tile's 2x2
 *
 * and for all channels the sums are 16 products of matrices, over the tiles of a block at a time:
 *
 *     S[16][in, out] += V[16][tiles, in]^T W[16][tiles, out]
 *
 * Blocks are added up in groups with sums of their own, and the input's channels are cut into parts
 * whose sums stay in the second-level cache; both depend on the shapes alone. If a result is inf or
 * NaN, the caller computes all directly.
 */
#include "ops/conv_winograd.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    BLOCK_BYTES = 384 * 1024, /* of V and W ... */
    LEAST_TILES = 32,         /* ... if that is no less than this */
    PART_BYTES = 512 * 1024,  /* of a part's sums ... */
    LEAST_CHANNELS = 32,      /* ... if that is no less than this */
    UNITS = 16,               /* of work for threads: groups times parts */
};

typedef struct winograd_sums {
    const conv *c;
    const winograd_loops *loops;
    winograd_images x, dy;
    winograd_block all;
    winograd_matrices v, w, sums; /* of a block, and of a group */
    int64_t block, blocks;        /* tiles of one; of all images */
    winograd_bands bands;         /* instead of them, if channels come first */
    int64_t lines[2];             /* likewise: bytes of copies of x and dy */
    int64_t channels, parts;      /* of a part; of all channels */
    int64_t groups, group;        /* elements of one's sums */
    bool finite;
    conv_crew crew;
} winograd_sums;

/* The convolutions whose x are a part of x and dy, for copies of what their windows read. */
static conv source_of_x(const winograd_sums *p, int64_t channel)
{
    conv c = *p->c;
    c.x += channel * c.in_images.channel;
    c.in = conv_min(p->channels, c.in - channel);
    return c;
}

static conv source_of_dy(const winograd_sums *p)
{
    conv c = *p->c;
    c.x = c.y, c.in = c.out, c.in_images = c.out_images;
    for (int d = 0; d < 2; d++) c.w.image[d] = c.w.out[d], c.w.before[d] = 0, c.w.extent[d] = 1;
    return c;
}

static void sums_begin_bands(winograd_sums *p)
{
    const conv x = source_of_x(p, 0), dy = source_of_dy(p);
    p->bands = winograd_bands_of(&p->all, x.w.batch, p->block);
    p->block = p->bands.images * p->bands.rows * p->all.tiles[1];
    p->blocks = p->bands.count;
    p->lines[0] = conv_ceil(winograd_lines_bytes(&p->bands, &x), 64) * 64;
    p->lines[1] = conv_ceil(winograd_lines_bytes(&p->bands, &dy), 64) * 64;
}

static winograd_sums sums_begin(const conv *c)
{
    const window *w = &c->w;
    winograd_sums p = {
        .c = c,
        .loops = winograd_loops_of(c),
        .x = {.data = c->x, .layout = c->in_images, .cells = {w->image[0], w->image[1]}},
        .dy = {.data = c->y, .layout = c->out_images, .cells = {w->out[0], w->out[1]}},
        .finite = true};
    for (int d = 0; d < 2; d++) {
        p.x.before[d] = w->before[d];
        p.all.dilation[d] = w->dilation[d];
        p.all.tiles[d] = winograd_tiles(w->out[d], w->dilation[d]);
    }
    const int64_t row = WINOGRAD_MATRICES * c->out * c->size;
    p.channels = conv_min(conv_max(PART_BYTES / row, LEAST_CHANNELS), c->in);
    p.parts = conv_ceil(c->in, p.channels);
    p.channels = conv_ceil(c->in, p.parts);
    p.parts = conv_ceil(c->in, p.channels);
    const int64_t bytes = WINOGRAD_MATRICES * (p.channels + c->out) * c->size;
    p.all.count = w->batch * p.all.tiles[0] * p.all.tiles[1];
    p.block = conv_min(conv_max(BLOCK_BYTES / bytes, LEAST_TILES), p.all.count);
    p.blocks = conv_ceil(p.all.count, p.block);
    if (!conv_channels_last(c)) sums_begin_bands(&p);
    p.groups = conv_min(conv_ceil(UNITS, p.parts), p.blocks);
    p.v.row = winograd_row(c, p.channels);
    p.w.row = p.sums.row = winograd_row(c, c->out);
    p.v.step = p.block * p.v.row;
    p.w.step = p.block * p.w.row;
    p.sums.step = c->in * p.sums.row;
    p.dy.channels = c->out;
    p.group = WINOGRAD_MATRICES * p.sums.step;
    return p;
}

/* Adds a block's products to sums of a part of `channels`, or begins them. */
static void sums_multiply(const winograd_sums *p, int64_t tiles, int64_t channels, bool add,
                          char *sums)
{
    const int64_t size = p->c->size;
    gemm_runs_job job = {.wide = p->c->wide,
                         .add = add,
                         .m = channels,
                         .n = p->c->out,
                         .k = tiles,
                         .runs = 1,
                         .a_row = size,
                         .a_col = p->v.row * size,
                         .b_row = p->w.row * size,
                         .b_panel = p->c->panel,
                         .c_row = p->sums.row * size,
                         .c_col = size};
    for (int64_t q = 0; q < WINOGRAD_MATRICES; q++) {
        job.a = (const char *)p->v.data + q * p->v.step * size;
        job.b = (const char *)p->w.data + q * p->w.step * size;
        job.c = sums + q * p->sums.step * size;
        ISA_CALL(gemm_runs)(&job);
    }
}

/* Transforms a block, of a part of the channels, or a band by way of copies. Returns its tiles. */
static int64_t transform(const winograd_sums *p, int64_t i, int64_t channel, char *scratch)
{
    winograd_images x = p->x, dy = p->dy;
    winograd_block b = p->all;
    if (p->bands.count) {
        const winograd_band at = winograd_band_at(&p->bands, i);
        const conv of_x = source_of_x(p, channel), of_dy = source_of_dy(p);
        b = at.block;
        x = winograd_lines(&p->bands, &at, &of_x, x.outside, scratch);
        dy = winograd_lines(&p->bands, &at, &of_dy, dy.outside, scratch + p->lines[0]);
    } else {
        b.first = i * p->block;
        b.count = conv_min(p->block, p->all.count - b.first);
        x.data += channel * p->c->size;
        x.channels = conv_min(p->channels, p->c->in - channel);
    }
    p->loops->patches(&x, &b, &p->v);
    p->loops->cells(&dy, &b, &p->w);
    return b.count;
}

/* The sums of one group of blocks, of one part of the channels. */
static void sum_unit(const winograd_sums *p, int64_t unit, char *scratch)
{
    const int64_t group = unit / p->parts, channel = unit % p->parts * p->channels;
    const int64_t first = p->blocks * group / p->groups, last = p->blocks * (group + 1) / p->groups;
    const int64_t channels = conv_min(p->channels, p->c->in - channel);
    char *sums = (char *)p->sums.data + (group * p->group + channel * p->sums.row) * p->c->size;
    for (int64_t i = first; i < last; i++)
        sums_multiply(p, transform(p, i, channel, scratch), channels, i > first, sums);
}

static void sum_range(int64_t first, int64_t last, int worker, void *user)
{
    winograd_sums p = *(const winograd_sums *)user;
    const int64_t size = p.c->size;
    p.v.data = conv_crew_scratch(&p.crew, worker);
    p.w.data = (char *)p.v.data + WINOGRAD_MATRICES * p.v.step * size;
    p.x.outside = p.dy.outside = (char *)p.w.data + WINOGRAD_MATRICES * p.w.step * size;
    memset(p.x.outside, 0, (size_t)((p.v.row + p.w.row) * size));
    for (int64_t i = first; i < last; i++)
        sum_unit(&p, i, p.x.outside + (p.v.row + p.w.row) * size);
}

/* The kernel's rows: the groups' sums joined and transformed. */
static void kernel_range(int64_t first, int64_t last, int worker, void *user)
{
    winograd_sums *p = user;
    const conv *c = p->c;
    winograd_matrices sums = p->sums;
    (void)worker;
    sums.data = (char *)sums.data + first * sums.row * c->size;
    if (!p->loops->kernel(&sums, p->groups, p->group, last - first, c->out,
                          c->k + first * c->out * c->size, c->in * c->out))
        __atomic_store_n(&p->finite, false, __ATOMIC_RELAXED);
}

bool conv_winograd_kernel(const conv *c, bool *finite)
{
    winograd_sums p = sums_begin(c);
    const int64_t units = p.groups * p.parts, grain = conv_grain(c, units);
    const int64_t scratch =
        (WINOGRAD_MATRICES * p.block + 1) * (p.v.row + p.w.row) * c->size + p.lines[0] + p.lines[1];
    size_t bytes;
    if (!memory_mul((size_t)(p.group * c->size), (size_t)p.groups, &bytes)) return conv_too_large();
    p.sums.data = memory_alloc(bytes);
    const bool ok = p.sums.data && conv_crew_open(&p.crew, 0, (size_t)scratch);
    if (ok) {
        threads_run_among(p.crew.count, units, grain, sum_range, &p);
        threads_run(c->in, grain == 1 ? conv_ceil(c->in, UNITS) : c->in, kernel_range, &p);
    }
    memory_free(p.sums.data);
    memory_free(p.crew.scratch);
    *finite = p.finite;
    return ok;
}
