/*
 * Depthwise convolution of images with channels first: planes, of which each is worked on by
 * itself, a vector of a row's outputs at a time.
 *
 * What a plane's outputs read is copied to lines of scratch first, with zeros where padding has no
 * cells, so that each tap of a vector of outputs is one load:
 *
 *     forward, kernel's gradient   a row of x; with strides its cells 0, s, 2 s, ..., then those
 *                                  from 1 on, ...: phases
 *     input's gradient             a row of dy; with strides its cells s apart, zeros between
 *
 * A product with a cell that is not there adds 0, except to a number that is inf or NaN. Where such
 * a number is met the work is done `carefully`: a line like the others tells which cells are there.
 *
 * Threads take planes, of large ones bands of rows; for the kernel's gradient channels and pieces
 * of the batch, each with sums of its own, which are added pairwise.
 */
#include "ops/depthwise.h"
#include "ops/kernels/isa.h"
#include "tensor/threads.h"
#include <string.h>

enum {
    PLANES_WINDOW = 32,        /* rows and columns of a kernel, at most */
    PLANES_SPARE = 64,         /* cells that a line may have beyond those of both images */
    PLANES_LINES = 256 * 1024, /* bytes of lines that bands of rows are cut for, ... */
    PLANES_ROWS = 8,           /* ... and rows of a band at least */
    PLANES_UNITS = 64,         /* channels and pieces of the batch for the kernel's gradient */
    PLANES_SOME = 4,           /* vectors of outputs at a time, and ... */
    PLANES_TAPS = 9,           /* ... taps of the kernel's gradient: their sums are registers */
    PLANES_SCRATCH = 64 * 2,   /* bytes behind the scratch's parts */
};

/* A row of the kernel that an output row has, and the line that it meets; in elements. */
typedef struct planes_row {
    int64_t line, kernel;
} planes_row;

/* A call, and how its lines lie: sizes in elements. */
typedef struct planes_call {
    const depthwise_call *d;
    bool back;              /* the input's gradient: from dy to x */
    bool ends;              /* the sums with a bias and an activation */
    int64_t size, lanes;    /* bytes of an element; elements of the largest vector */
    int64_t from[2], to[2]; /* rows and columns of the planes */
    int64_t phases, span, line;
    int64_t offsets[PLANES_WINDOW]; /* of a column's taps in a line */
    int64_t rows, bands, lines;     /* rows of a band; of a plane; a band's lines */
    int64_t pieces;                 /* of the batch */
    char *sums;                     /* the pieces' */
    int count;
    size_t each;
    char *scratch;
} planes_call;

/* The parts of a thread's scratch. */
typedef struct planes_scratch {
    char *there, *kernel, *sums, *lines;
} planes_scratch;

typedef struct planes_loops {
    void (*band)(const planes_call *p, const planes_scratch *s, int64_t plane, int64_t band);
    void (*kernel)(const planes_call *p, const planes_scratch *s, int64_t channel, int64_t piece);
} planes_loops;

#ifdef ISA

#include "ops/kernels/lanes.h"

VECTOR_INLINE int64_t planes_clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Lists the kernel's rows that row r of the result has, with lines of the rows from `first` on. */
static int planes_rows(const planes_call *p, int64_t r, int64_t first, planes_row *rows)
{
    const window *w = &p->d->w;
    int n = 0;
    for (int64_t h = 0; h < w->extent[0]; h++) {
        const int64_t tap = h * w->dilation[0];
        const int64_t at = p->back ? r + w->before[0] - tap : r * w->stride[0] - w->before[0] + tap;
        const int64_t step = p->back ? w->stride[0] : 1;
        if (at < 0 || at % step || at / step >= p->from[0]) continue;
        rows[n++] = (planes_row){(at / step - first) * p->line, h * w->extent[1]};
    }
    return n;
}

/* The rows [*first, *last) that rows [begin, end) of the result read. */
static void planes_reach(const planes_call *p, int64_t begin, int64_t end, int64_t *first,
                         int64_t *last)
{
    const window *w = &p->d->w;
    const int64_t reach = (w->extent[0] - 1) * w->dilation[0], s = w->stride[0];
    int64_t low, high;
    if (p->back) {
        low = begin + w->before[0] - reach;
        low = low < 0 ? 0 : low / s;
        high = (end - 1 + w->before[0]) / s + 1;
    } else {
        low = begin * s - w->before[0];
        high = (end - 1) * s - w->before[0] + reach + 1;
    }
    *first = planes_clamp(low, 0, p->from[0]);
    *last = planes_clamp(high, *first, p->from[0]);
}

#define TYPE f32
#include "ops/depthwise_planes.typed.h"
#define TYPE f64
#include "ops/depthwise_planes.typed.h"

const planes_loops ISA_NAME(planes_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {planes_band_f32, planes_kernel_f32},
    [ED_FLOAT64] = {planes_band_f64, planes_kernel_f64}};

#else

ISA_DECLARE_TABLE(planes_loops, planes_table, []);

static const planes_loops *planes_loops_for(const planes_call *p)
{
    static const planes_loops *const tables[ISA_COUNT] = ISA_TABLE(planes_table);
    return &tables[isa_level][p->d->x->dtype];
}

static int64_t planes_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* The most lines that a band of so many rows reads. */
static int64_t planes_lines(const planes_call *p, int64_t rows)
{
    const window *w = &p->d->w;
    const int64_t reach = (w->extent[0] - 1) * w->dilation[0], s = w->stride[0];
    const int64_t lines = p->back ? (rows - 1 + reach) / s + 2 : (rows - 1) * s + reach + 1;
    return lines < p->from[0] ? lines : p->from[0];
}

static planes_call planes_begin(const depthwise_call *d, bool back)
{
    const window *w = &d->w;
    const int64_t columns = w->extent[1], dilation = w->dilation[1], s = back ? 1 : w->stride[1];
    const int64_t reach = (columns - 1) * dilation;
    planes_call p = {.d = d, .back = back, .size = (int64_t)dtype_size(d->x->dtype)};
    p.lanes = 64 / p.size;
    p.ends = d->bias && !back;
    for (int a = 0; a < 2; a++) {
        p.from[a] = back ? w->out[a] : w->image[a];
        p.to[a] = back ? w->image[a] : w->out[a];
    }
    p.phases = s <= reach ? s : reach + 1;
    p.span = planes_up(p.to[1], p.lanes) + reach / s;
    p.line = p.phases * p.span;
    for (int64_t v = 0; v < columns; v++) {
        const int64_t at = (back ? columns - 1 - v : v) * dilation;
        p.offsets[v] = at % s * p.span + at / s;
    }
    p.rows = p.to[0];
    while (p.rows > PLANES_ROWS && planes_lines(&p, p.rows) * p.line * p.size > PLANES_LINES)
        p.rows = (p.rows + 1) / 2;
    p.bands = (p.to[0] + p.rows - 1) / p.rows;
    p.lines = planes_lines(&p, p.rows);
    return p;
}

/* Bytes of a worker's scratch before its sums, and before its lines. */
static int64_t planes_before_sums(const planes_call *p)
{
    return (p->line + p->d->w.extent[0] * p->d->w.extent[1] + 1) * p->size;
}

static int64_t planes_before_lines(const planes_call *p)
{
    const int64_t taps = p->d->w.extent[0] * p->d->w.extent[1];
    return planes_before_sums(p) + (p->sums ? taps * p->d->multiplier * 64 : 0);
}

static planes_scratch planes_parts(const planes_call *p, int worker)
{
    char *const own = p->scratch + p->each * (size_t)worker;
    return (planes_scratch){.there = own,
                            .kernel = own + p->line * p->size,
                            .sums = own + planes_before_sums(p),
                            .lines = own + planes_before_lines(p)};
}

static bool planes_open(planes_call *p)
{
    size_t bytes;
    const int64_t lines = p->lines * p->line, row = p->from[1]; /* which is copied there, too */
    p->count = threads_count();
    p->each = (size_t)planes_before_lines(p) + (size_t)((lines > row ? lines : row) * p->size) +
              PLANES_SCRATCH;
    p->each = p->each / 64 * 64;
    p->scratch = memory_mul(p->each, (size_t)p->count, &bytes) ? memory_alloc(bytes) : NULL;
    return p->scratch != NULL;
}

static int64_t planes_grain(const planes_call *p, int64_t units)
{
    const window *w = &p->d->w;
    return p->d->y->size * w->extent[0] * w->extent[1] > OPS_PARALLEL_WORK ? 1 : units;
}

bool depthwise_planes_fit(const depthwise_call *d)
{
    const window *w = &d->w;
    return w->extent[0] <= PLANES_WINDOW && w->extent[1] <= PLANES_WINDOW &&
           (w->extent[1] - 1) * w->dilation[1] <= w->image[1] + w->out[1] + PLANES_SPARE;
}

static void planes_bands(int64_t first, int64_t last, int worker, void *user)
{
    const planes_call *p = user;
    const planes_loops *loops = planes_loops_for(p);
    const planes_scratch s = planes_parts(p, worker);
    for (int64_t i = first; i < last; i++) loops->band(p, &s, i / p->bands, i % p->bands);
}

static bool planes_run(const depthwise_call *d, bool back)
{
    planes_call p = planes_begin(d, back);
    const int64_t units = d->w.batch * d->w.channels * p.bands;
    if (!planes_open(&p)) return false;
    threads_run_among(p.count, units, planes_grain(&p, units), planes_bands, &p);
    memory_free(p.scratch);
    return true;
}

bool depthwise_planes_forward(const depthwise_call *d)
{
    return planes_run(d, false);
}

bool depthwise_planes_gradient_input(const depthwise_call *d)
{
    return planes_run(d, true);
}

static void planes_kernels(int64_t first, int64_t last, int worker, void *user)
{
    const planes_call *p = user;
    const planes_loops *loops = planes_loops_for(p);
    const planes_scratch s = planes_parts(p, worker);
    for (int64_t i = first; i < last; i++) loops->kernel(p, &s, i / p->pieces, i % p->pieces);
}

bool depthwise_planes_gradient_kernel(const depthwise_call *d)
{
    const window *w = &d->w;
    planes_call p = planes_begin(d, false);
    const int64_t n = d->kernel->size, most = (PLANES_UNITS + w->channels - 1) / w->channels;
    p.pieces = most < w->batch ? most : w->batch;
    size_t bytes;
    if (!memory_mul((size_t)(n * p.size), (size_t)p.pieces, &bytes) ||
        !(p.sums = memory_alloc(bytes)))
        return false;
    const bool ok = planes_open(&p);
    if (ok) {
        const int64_t units = w->channels * p.pieces;
        threads_run_among(p.count, units, planes_grain(&p, units), planes_kernels, &p);
        depthwise_join(d->x->dtype, p.sums, p.pieces, n);
        memcpy(d->kernel->data, p.sums, (size_t)(n * p.size));
    }
    memory_free(p.scratch);
    memory_free(p.sums);
    return ok;
}

#endif
