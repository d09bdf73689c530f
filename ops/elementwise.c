#include "ops/elementwise.h"
#include "tensor/copy.h"
#include "tensor/memory.h"
#include "tensor/thread.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <stdlib.h>
#include <string.h>

/* ---- Shapes ---------------------------------------------------------------------------------- */

bool elementwise_infer_as(ed_call *call, ed_dtype dtype)
{
    const ed_tensor *first = call->inputs[0];
    int rank = first->rank;
    int64_t shape[ED_MAX_RANK];
    memcpy(shape, first->shape, (size_t)rank * sizeof *shape);
    for (int i = 1; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (x->rank == rank && !memcmp(x->shape, shape, (size_t)rank * sizeof *shape)) continue;
        int rank_before = rank;
        int64_t before[ED_MAX_RANK];
        memcpy(before, shape, sizeof before);
        if (!ops_broadcast(rank_before, before, x->rank, x->shape, &rank, shape))
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "shapes %s and %s don't broadcast",
                                text_of_ints(before, rank_before).s,
                                text_of_ints(x->shape, x->rank).s);
    }
    return ed_call_output(call, 0, dtype, rank, shape);
}

bool elementwise_infer(ed_call *call)
{
    return elementwise_infer_as(call, call->inputs[call->n_inputs - 1]->dtype);
}

bool elementwise_infer_bool(ed_call *call)
{
    return elementwise_infer_as(call, ED_BOOL);
}

/* ---- The driver ------------------------------------------------------------------------------ */

/*
 * The work is a box of dimensions, those that continue one another in every operand merged, whose
 * elements the output holds in row-major order. Loops want operands whose elements adjoin, or one
 * element for all, so a box is done in one of three ways:
 *
 *     rows     the inner dimension is long and every operand has step 0 or 1 along it: in place,
 *              row by row
 *     blocks   the inner dimension is short: many rows make one contiguous block of the output, for
 *              which the operands that don't look like it are packed
 *     tiles    an operand is strided along a long inner dimension: it is packed tile by tile, of
 *              rows along which its elements lie close together, so that each of its cache lines is
 *              read once
 *
 * How the box is cut depends on its shape and strides alone, never on the number of threads.
 */
enum {
    MOST = 4,                  /* operands */
    LONG = 64,                 /* elements of an inner dimension worth a call */
    NARROW = 16,               /* fewer elements are not worth a call to copy them */
    BLOCK = 2048,              /* elements packed at a time of a block */
    TILE = 8192,               /* ... of a tile */
    TILE_HEIGHT = 32,          /* rows of a tile: whole cache lines of what is strided */
    PIECE = HARD(TILE, 16384), /* elements that a thread takes at a time */
    FAR_PIECES = 4,            /* ... at once past the caches, where it waits at the end */
};

typedef struct plan {
    elementwise_loop loop;
    const void *attrs;
    int n, rank;
    int64_t shape[ED_MAX_RANK];
    const char *in[MOST];
    int64_t strides[MOST][ED_MAX_RANK]; /* in elements */
    size_t element[MOST], out_element;
    char *out;
    bool stream;         /* whether the output goes past the caches */
    int along;           /* blocks: the dimension that they cut; those behind it they hold whole */
    int across;          /* tiles: the dimension along which they are high; -1 for none */
    int64_t high, width; /* tiles: their sizes */
    /* What threads run, each with `room` bytes of scratch of its own. */
    void (*part)(const struct plan *p, int64_t first, int64_t last, char *scratch);
    char *scratch;
    size_t room, packed_at[MOST]; /* where in it operand i is packed */
} plan;

typedef struct packs {
    char *data[MOST];
    const char *from[MOST]; /* where what data holds was read; NULL for nowhere */
    int64_t size[MOST];
} packs;

/* Whether dimension d continues the plan's last one for every operand, so that both are one. */
static bool continues(const plan *p, int64_t extent, int64_t strides[MOST][ED_MAX_RANK], int d)
{
    for (int i = 0; i < p->n; i++)
        if (p->strides[i][p->rank - 1] != strides[i][d] * extent) return false;
    return true;
}

static void make_plan(plan *p, const ed_call *call, elementwise_loop loop)
{
    const ed_tensor *y = call->outputs[0];
    int64_t strides[MOST][ED_MAX_RANK];
    p->loop = loop;
    p->attrs = call->attrs;
    p->scratch = NULL;
    p->room = 0;
    p->n = call->n_inputs;
    p->rank = 0;
    p->out = y->data;
    p->out_element = dtype_size(y->dtype);
    p->stream = false;
    for (int i = 0; i < p->n; i++) {
        const ed_tensor *x = call->inputs[i];
        int skip = y->rank - x->rank;
        p->in[i] = x->data;
        p->element[i] = dtype_size(x->dtype);
        p->packed_at[i] = 0; /* of operands that are not packed, too */
        for (int d = 0; d < y->rank; d++)
            strides[i][d] = d < skip || x->shape[d - skip] == 1 ? 0 : x->strides[d - skip];
    }
    for (int d = 0; d < y->rank; d++) {
        if (y->shape[d] == 1) continue;
        if (p->rank && continues(p, y->shape[d], strides, d))
            p->shape[p->rank - 1] *= y->shape[d];
        else
            p->shape[p->rank++] = y->shape[d];
        for (int i = 0; i < p->n; i++) p->strides[i][p->rank - 1] = strides[i][d];
    }
    if (!p->rank) {
        p->shape[p->rank++] = 1;
        for (int i = 0; i < p->n; i++) p->strides[i][0] = 0;
    }
}

static int64_t inner_of(const plan *p)
{
    return p->shape[p->rank - 1];
}

/* The number of elements in dimensions first..last-1. */
static int64_t extent_of(const plan *p, int first, int last)
{
    int64_t n = 1;
    for (int d = first; d < last; d++) n *= p->shape[d];
    return n;
}

/* The first operand that is strided along the inner dimension; -1 if there is none. */
static int strided_operand(const plan *p)
{
    for (int i = 0; i < p->n; i++)
        if ((uint64_t)p->strides[i][p->rank - 1] > 1) return i;
    return -1;
}

/* n elements; where one element of each operand stands for all, so does one of the output. */
static void call_loop(const plan *p, int64_t n, const void *const *in, const int *steps, char *out)
{
    static const int ones[MOST] = {1, 1, 1, 1};
    for (int i = 0; i < p->n; i++)
        if (steps[i]) {
            p->loop(n, in, steps, out, p->attrs, p->stream);
            return;
        }
    p->loop(1, in, ones, out, p->attrs, false);
    copy_fill_row(p->out_element, out, out + p->out_element, n - 1);
}

/* ---- Scratch --------------------------------------------------------------------------------- */

/* Room for so many elements of operand i. */
static void reserve(plan *p, int i, int64_t elements)
{
    p->packed_at[i] = p->room;
    p->room += ((size_t)elements * p->element[i] + 63) / 64 * 64;
}

static packs packs_in(const plan *p, char *scratch)
{
    packs packed = {0};
    for (int i = 0; i < p->n && scratch; i++) packed.data[i] = scratch + p->packed_at[i];
    return packed;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Elements first..last-1 of the output, which may begin and end within a row. */
static void rows(const plan *p, int64_t first, int64_t last, char *scratch)
{
    (void)scratch;
    int inner = p->rank - 1, steps[MOST];
    int64_t at[ED_MAX_RANK], rest = first;
    for (int i = 0; i < p->n; i++) steps[i] = p->strides[i][inner] != 0;
    for (int d = inner; d >= 0; d--) {
        at[d] = rest % p->shape[d];
        rest /= p->shape[d];
    }
    while (first < last) {
        const void *in[MOST];
        int64_t n = p->shape[inner] - at[inner];
        if (n > last - first) n = last - first;
        for (int i = 0; i < p->n; i++) {
            int64_t offset = 0;
            for (int d = 0; d < p->rank; d++) offset += at[d] * p->strides[i][d];
            in[i] = p->in[i] + offset * (int64_t)p->element[i];
        }
        call_loop(p, n, in, steps, p->out + first * (int64_t)p->out_element);
        first += n;
        at[inner] = 0;
        for (int d = inner - 1; d >= 0 && ++at[d] == p->shape[d]; d--) at[d] = 0;
    }
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* How operand i lies in a box of dimensions along.. of size `count` along the first one. */
enum { ONE_FOR_ALL, ADJOINING, SCATTERED };

static int layout(const plan *p, int i, int64_t count)
{
    int64_t expected = 1;
    bool zero = true, adjoining = true;
    for (int d = p->rank - 1; d >= p->along; d--) {
        int64_t extent = d == p->along ? count : p->shape[d];
        if (extent == 1) continue;
        zero &= p->strides[i][d] == 0;
        adjoining &= p->strides[i][d] == expected;
        expected *= extent;
    }
    return zero ? ONE_FOR_ALL : adjoining ? ADJOINING : SCATTERED;
}

#define TYPE u8
#include "ops/elementwise.typed.h"
#define TYPE u16
#include "ops/elementwise.typed.h"
#define TYPE u32
#include "ops/elementwise.typed.h"
#define TYPE u64
#include "ops/elementwise.typed.h"

/* Many short rows. */
static void pack_narrow(size_t element, const int64_t *shape, const void *from,
                        const int64_t *strides, void *to)
{
    switch (element) {
    case 1: pack_rows_u8(shape, from, strides, to); break;
    case 2: pack_rows_u16(shape, from, strides, to); break;
    case 4: pack_rows_u32(shape, from, strides, to); break;
    default: pack_rows_u64(shape, from, strides, to);
    }
}

/* Operand i's box, packed; one that is there already (it was broadcast) is used again. */
static const char *pack_block(const plan *p, packs *packed, int i, const char *from, int64_t count)
{
    if (packed->from[i] == from && packed->size[i] == count) return packed->data[i];
    int rank = p->rank - p->along;
    int64_t shape[ED_MAX_RANK], to_strides[ED_MAX_RANK];
    memcpy(shape, p->shape + p->along, (size_t)rank * sizeof *shape);
    shape[0] = count;
    tensor_row_major(rank, shape, to_strides);
    if (rank == 2 && shape[1] < NARROW)
        pack_narrow(p->element[i], shape, from, p->strides[i] + p->along, packed->data[i]);
    else
        copy_box(p->element[i], rank, shape, from, p->strides[i] + p->along, packed->data[i],
                 to_strides);
    packed->from[i] = from;
    packed->size[i] = count;
    return packed->data[i];
}

/* Places first..first+count-1 of dimension `along`, in place number `outer` of those before it. */
static void block(const plan *p, packs *packed, int64_t outer, int64_t first, int64_t count)
{
    int64_t behind = extent_of(p, p->along + 1, p->rank);
    const void *in[MOST];
    int steps[MOST];
    for (int i = 0; i < p->n; i++) {
        int64_t offset = first * p->strides[i][p->along], rest = outer;
        for (int d = p->along - 1; d >= 0; d--) {
            offset += rest % p->shape[d] * p->strides[i][d];
            rest /= p->shape[d];
        }
        const char *from = p->in[i] + offset * (int64_t)p->element[i];
        int how = layout(p, i, count);
        steps[i] = how != ONE_FOR_ALL;
        in[i] = how == SCATTERED ? pack_block(p, packed, i, from, count) : from;
    }
    int64_t begin = (outer * p->shape[p->along] + first) * behind;
    call_loop(p, count * behind, in, steps, p->out + begin * (int64_t)p->out_element);
}

static int64_t block_count(const plan *p)
{
    return BLOCK / extent_of(p, p->along + 1, p->rank);
}

static void blocks(const plan *p, int64_t first, int64_t last, char *scratch)
{
    int64_t extent = p->shape[p->along], count = block_count(p),
            each = (extent + count - 1) / count;
    packs packed = packs_in(p, scratch);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % each * count;
        block(p, &packed, b / each, at, extent - at < count ? extent - at : count);
    }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Where a tile begins, and its sizes. */
typedef struct tile {
    int64_t at[ED_MAX_RANK], height, width;
} tile;

static int64_t tiles_along(int64_t extent, int64_t size)
{
    return (extent + size - 1) / size;
}

static tile tile_number(const plan *p, int64_t number)
{
    tile t = {.height = 1};
    int64_t columns = tiles_along(inner_of(p), p->width);
    t.at[p->rank - 1] = number % columns * p->width;
    t.width = inner_of(p) - t.at[p->rank - 1];
    if (t.width > p->width) t.width = p->width;
    number /= columns;
    if (p->across >= 0) {
        int64_t extent = p->shape[p->across], lines = tiles_along(extent, p->high);
        t.at[p->across] = number % lines * p->high;
        t.height = extent - t.at[p->across];
        if (t.height > p->high) t.height = p->high;
        number /= lines;
    }
    for (int d = p->rank - 2; d >= 0; d--) {
        if (d == p->across) continue;
        t.at[d] = number % p->shape[d];
        number /= p->shape[d];
    }
    return t;
}

/* Operand i's elements of a tile, packed, rows p->width apart. */
static const char *pack_tile(const plan *p, packs *packed, int i, const char *from, const tile *t)
{
    int64_t stride = p->strides[i][p->rank - 1];
    if (t->height == 1) {
        copy_row(p->element[i], t->width, from, stride, packed->data[i], 1);
        return packed->data[i];
    }
    copy_box(p->element[i], 2, (const int64_t[]){t->height, t->width}, from,
             (const int64_t[]){p->strides[i][p->across], stride}, packed->data[i],
             (const int64_t[]){p->width, 1});
    return packed->data[i];
}

static void one_tile(const plan *p, packs *packed, const tile *t)
{
    int inner = p->rank - 1, steps[MOST];
    const char *in[MOST];
    int64_t begin = 0, across[MOST]; /* where the rows of operands begin, in bytes */
    for (int d = 0; d < p->rank; d++) begin = begin * p->shape[d] + t->at[d];
    for (int i = 0; i < p->n; i++) {
        const int64_t *strides = p->strides[i];
        int64_t offset = 0;
        for (int d = 0; d < p->rank; d++) offset += t->at[d] * strides[d];
        in[i] = p->in[i] + offset * (int64_t)p->element[i];
        steps[i] = strides[inner] != 0;
        across[i] = (p->across >= 0 ? strides[p->across] : 0) * (int64_t)p->element[i];
        if ((uint64_t)strides[inner] <= 1) continue;
        in[i] = pack_tile(p, packed, i, in[i], t);
        across[i] = p->width * (int64_t)p->element[i];
    }
    char *out = p->out + begin * (int64_t)p->out_element;
    int64_t out_across = extent_of(p, p->across + 1, p->rank) * (int64_t)p->out_element;
    for (int64_t r = 0; r < t->height; r++) {
        const void *row[MOST];
        for (int i = 0; i < p->n; i++) row[i] = in[i] + r * across[i];
        call_loop(p, t->width, row, steps, out + r * out_across);
    }
}

static void tiles(const plan *p, int64_t first, int64_t last, char *scratch)
{
    packs packed = packs_in(p, scratch);
    for (int64_t i = first; i < last; i++) {
        tile t = tile_number(p, i);
        one_tile(p, &packed, &t);
    }
}

/* The dimension along which the elements of operand i lie closest; -1 where there is but one. */
static int closest(const plan *p, int i)
{
    int best = -1;
    for (int d = 0; d < p->rank - 1; d++) {
        int64_t stride = p->strides[i][d];
        if (stride != 0 && (best < 0 || llabs(stride) < llabs(p->strides[i][best]))) best = d;
    }
    return best;
}

/* ---- Choice ---------------------------------------------------------------------------------- */

static void run_part(int64_t first, int64_t last, int worker, void *user)
{
    const plan *p = user;
    p->part(p, first, last, p->scratch ? p->scratch + p->room * (size_t)worker : NULL);
    if (p->stream) copy_stream_end();
}

/* Runs p->part over parts 0..count-1, `each` of them at a time, in parallel if there is enough to
 * do. False without memory. */
static bool in_pieces(plan *p, int64_t count, int64_t each, int64_t size)
{
    const bool alone = size < OPS_PARALLEL_WORK || each >= count;
    const int workers = alone ? 1 : threads_count();
    const size_t bytes = p->room * (size_t)workers;
    char near[2048] __attribute__((aligned(64)));
    if (bytes) p->scratch = bytes <= sizeof near ? near : memory_alloc(bytes);
    if (bytes && !p->scratch) return false;
    threads_run_among(workers, count, size < OPS_PARALLEL_WORK ? count : each, run_part, p);
    if (p->scratch != near) memory_free(p->scratch);
    return true;
}

static bool run_blocks(plan *p, int64_t size)
{
    p->part = blocks;
    p->along = p->rank - 1;
    while (p->along > 0 && extent_of(p, p->along, p->rank) <= BLOCK) p->along--;
    const int64_t extent = p->shape[p->along], most = block_count(p);
    const int64_t count = extent < most ? extent : most;
    for (int i = 0; i < p->n; i++)
        if (layout(p, i, count) == SCATTERED)
            reserve(p, i, count * extent_of(p, p->along + 1, p->rank));
    return in_pieces(p, extent_of(p, 0, p->along) * tiles_along(extent, most), PIECE / BLOCK, size);
}

static bool run_tiles(plan *p, int strided, int64_t size)
{
    p->part = tiles;
    p->across = closest(p, strided);
    p->high = p->across < 0 ? 1 : TILE_HEIGHT;
    p->width = TILE / p->high < inner_of(p) ? TILE / p->high : inner_of(p);
    const int64_t lines = p->across < 0 ? 1 : p->shape[p->across];
    const int64_t others = size / inner_of(p) / lines;
    for (int i = 0; i < p->n; i++)
        if ((uint64_t)p->strides[i][p->rank - 1] > 1)
            reserve(p, i, p->width * (lines < p->high ? lines : p->high));
    return in_pieces(p, others * tiles_along(lines, p->high) * tiles_along(inner_of(p), p->width),
                     PIECE / TILE, size);
}

/* Two threads may have caches of their own, with room for a result twice as large. */
static bool is_far(int64_t bytes)
{
    const int64_t together = thread_self()->made_together;
    if (bytes < together) bytes = together;
    return bytes >= COPY_FAR_BYTES && (bytes >= 2 * COPY_FAR_BYTES || threads_count() == 1);
}

/* Elements of a result past the caches that a thread takes at a time: fewer of a small one, so that
 * all threads have some; whole cache lines. */
static int64_t far_piece(int64_t size)
{
    const int64_t share = (size / threads_count() + COPY_LINE) & -COPY_LINE;
    return share < PIECE ? PIECE : share < FAR_PIECES * PIECE ? share : FAR_PIECES * PIECE;
}

static bool run_plan(plan *p, int64_t size)
{
    int strided = strided_operand(p), inner = p->rank - 1;
    if (inner > 0 && inner_of(p) < LONG) return run_blocks(p, size);
    const int64_t element = (int64_t)p->out_element, row = inner_of(p) * element;
    p->stream = is_far(size * element) && (inner == 0 || row % COPY_LINE == 0) &&
                (uintptr_t)p->out % COPY_LINE == 0;
    if (strided < 0) {
        p->part = rows;
        return in_pieces(p, size, p->stream ? far_piece(size) : PIECE, size);
    }
    return run_tiles(p, strided, size);
}

/* Most calls: every operand contiguous and of the output's size, or a single element. */
static bool is_flat(const ed_call *call)
{
    for (int i = 0; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (x->size != 1 && (x->size != call->outputs[0]->size || !(x->flags & TENSOR_CONTIGUOUS)))
            return false;
    }
    return true;
}

bool elementwise_kernel(ed_call *call)
{
    const elementwise_table *table = call->op->extra;
    const ed_tensor *y = call->outputs[0];
    elementwise_loop loop = (*table)[isa_level][call->inputs[call->n_inputs - 1]->dtype];
    if (y->size == 0) return true;
    if (y->size < OPS_PARALLEL_WORK && is_flat(call)) {
        const void *in[MOST];
        int steps[MOST];
        for (int i = 0; i < call->n_inputs; i++) {
            in[i] = call->inputs[i]->data;
            steps[i] = call->inputs[i]->size != 1 || y->size == 1;
        }
        loop(y->size, in, steps, y->data, call->attrs, false);
        return true;
    }
    plan p;
    make_plan(&p, call, loop);
    return run_plan(&p, y->size);
}

bool elementwise_plain(const ed_call *call, double (*f)(const double *x, const void *attrs))
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) {
        double x[MOST];
        for (int k = 0; k < call->n_inputs; k++) {
            const ed_tensor *t = call->inputs[k];
            int64_t offset = 0, rest = i;
            for (int d = y->rank - 1; d >= 0; d--) {
                int64_t at = rest % y->shape[d];
                int own = d - (y->rank - t->rank);
                if (own >= 0 && t->shape[own] != 1) offset += at * t->strides[own];
                rest /= y->shape[d];
            }
            x[k] = ((const double *)t->data)[offset];
        }
        ((double *)y->data)[i] = f(x, call->attrs);
    }
    return true;
}
