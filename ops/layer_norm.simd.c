/*
 * The loops of normalization by groups. Groups that are whole rows, one channel an element, are
 * worked on row by row; others by units of some groups of one sample, whose rows are read three
 * times while they are in the cache. Sums are taken by blocks in the type at hand, and blocks added
 * in float64; what pieces of rows or samples add to the gradients of gamma and beta is added
 * pairwise. So all depends on the shapes alone.
 */
#include "ops/kernels/isa.h"
#include "ops/layer_norm.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/* A call at work; y is dx in the backward one. sums: for each piece of rows, or sample, what it
 * adds to dgamma and, after that, to dbeta. */
typedef struct norm_work {
    norm_groups p;
    const struct norm_group_loops *loops;
    const void *x, *dy, *gamma, *beta;
    void *y, *sums;
    int64_t piece;            /* rows of a piece */
    int64_t ahead;            /* rows by which x and dy are prefetched; 0: they are not */
    bool stream;              /* whether y, of rows, goes past the caches */
    int64_t together, chunks; /* groups of a unit; units of a sample */
    size_t size, each;        /* of an element, of a worker's scratch, in bytes */
    char *scratch;
} norm_work;

/* Some groups of one sample, as layer_norm.typed.h says; `first` is the index of its first element,
 * `channel` of its first channel. */
typedef struct norm_unit {
    int64_t sample, first, channel, width, before, after, stride;
} norm_unit;

typedef struct norm_group_loops {
    void (*rows_forward)(const norm_work *w, int64_t first, int64_t last);
    void (*rows_backward)(const norm_work *w, int64_t first, int64_t last, void *sums);
    void (*unit_forward)(const norm_work *w, const norm_unit *u, void *scratch);
    void (*unit_backward)(const norm_work *w, const norm_unit *u, void *scratch);
    void (*join)(void *to, const void *from, int64_t n);
} norm_group_loops;

#ifdef ISA

#include "ops/kernels/lanes.h"

enum {
    NORM_ROWS = 4,         /* that a gradient works on side by side */
    NORM_ROW_SHORT = 2048, /* elements of a row of which the cache holds so many */
};

#define TYPE f32
#include "ops/layer_norm.typed.h"
#define TYPE f64
#include "ops/layer_norm.typed.h"

#define NORM_GROUP_ROW(type)                                                                       \
    {                                                                                              \
        norm_rows_forward_##type, norm_rows_backward_##type, norm_unit_forward_##type,             \
            norm_unit_backward_##type, norm_join_##type                                            \
    }
const norm_group_loops ISA_NAME(norm_group_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = NORM_GROUP_ROW(f32), [ED_FLOAT64] = NORM_GROUP_ROW(f64)};

#else

ISA_DECLARE_TABLE(norm_group_loops, norm_group_table, []);

enum {
    PIECE_ELEMENTS = 32768, /* of rows that are a thread's piece of work */
    PIECE_LEAST = 64,
    PIECE_MOST = 512,
    UNIT_CHANNELS = 64,           /* of a unit, if groups have fewer */
    FAR_BYTES = HARD(0, 2 << 20), /* of x that is not in the nearer caches */
    AHEAD_BYTES = 8 << 10,        /* by which it is prefetched then */
};

static norm_work norm_begin(const norm_groups *p, const ed_tensor *x)
{
    static const norm_group_loops *const tables[ISA_COUNT] = ISA_TABLE(norm_group_table);
    norm_work w = {.p = *p, .loops = &tables[isa_level][x->dtype], .x = x->data};
    w.size = dtype_size(x->dtype);
    w.piece = PIECE_ELEMENTS / p->channels;
    if (w.piece < PIECE_LEAST) w.piece = PIECE_LEAST;
    if (w.piece > PIECE_MOST) w.piece = PIECE_MOST;
    w.together = p->channels < UNIT_CHANNELS ? UNIT_CHANNELS / p->channels : 1;
    if (w.together > p->groups) w.together = p->groups;
    w.chunks = (p->groups + w.together - 1) / w.together;
    return w;
}

/* Whether each group is a row, and each of its elements a channel. */
static bool are_rows(const norm_groups *p)
{
    return p->before == 1 && p->groups == 1 && p->after == 1;
}

static int64_t pieces(const norm_work *w)
{
    return are_rows(&w->p) ? (w->p.batch + w->piece - 1) / w->piece : w->p.batch;
}

static void run_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t begin = i * w->piece, rest = w->p.batch - begin;
        const int64_t end = begin + (rest < w->piece ? rest : w->piece);
        if (w->dy)
            w->loops->rows_backward(w, begin, end,
                                    (char *)w->sums + (size_t)(2 * i * w->p.channels) * w->size);
        else
            w->loops->rows_forward(w, begin, end);
    }
    if (w->stream) copy_stream_end();
}

static void run_units(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    const norm_groups *p = &w->p;
    const int64_t row = norm_channels(p) * p->after;
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i % w->chunks * w->together, rest = p->groups - group;
        norm_unit u = {.sample = i / w->chunks,
                       .channel = group * p->channels,
                       .width = (rest < w->together ? rest : w->together) * p->channels,
                       .before = p->before,
                       .after = p->after,
                       .stride = row};
        u.first = u.sample * p->before * row + u.channel * p->after;
        void *scratch = w->scratch + w->each * (size_t)worker;
        if (w->dy)
            w->loops->unit_backward(w, &u, scratch);
        else
            w->loops->unit_forward(w, &u, scratch);
    }
}

/* How rows are read and written. What is computed of a row waits for a chain of sums, meanwhile the
 * next ones come. */
static void pass_caches(norm_work *w, const ed_tensor *x)
{
    const int64_t row = w->p.channels * (int64_t)w->size, bytes = x->size * (int64_t)w->size;
    if (bytes >= FAR_BYTES) w->ahead = row < AHEAD_BYTES ? AHEAD_BYTES / row : 1;
    w->stream = bytes >= COPY_FAR_BYTES && row % COPY_LINE == 0 && (uintptr_t)w->y % COPY_LINE == 0;
}

static bool run(norm_work *w, const ed_tensor *x)
{
    const bool pays = x->size > OPS_PARALLEL_WORK;
    if (are_rows(&w->p)) {
        pass_caches(w, x);
        const int64_t n = pieces(w);
        threads_run(n, pays ? 1 : n, run_pieces, w);
        return true;
    }
    const int count = threads_count();
    const int64_t units = w->p.batch * w->chunks;
    w->each = (size_t)(w->together * w->p.channels) * (2 * sizeof(double) + 5 * w->size);
    w->each = (w->each + 63) / 64 * 64;
    w->scratch = memory_alloc(w->each * (size_t)count);
    if (!w->scratch) return false;
    threads_run_among(count, units, pays ? 1 : units, run_units, w);
    memory_free(w->scratch);
    return true;
}

bool norm_forward(const norm_groups *p, const ed_tensor *x, const ed_tensor *gamma,
                  const ed_tensor *beta, const ed_tensor *y)
{
    norm_work w = norm_begin(p, x);
    w.gamma = gamma ? gamma->data : NULL;
    w.beta = beta ? beta->data : NULL;
    w.y = y->data;
    return run(&w, x);
}

bool norm_backward(const norm_groups *p, const ed_tensor *x, const ed_tensor *dy,
                   const ed_tensor *gamma, const ed_tensor *dx, const ed_tensor *dgamma,
                   const ed_tensor *dbeta)
{
    norm_work w = norm_begin(p, x);
    const int64_t n = pieces(&w), channels = norm_channels(p);
    const size_t row = 2 * (size_t)channels * w.size;
    w.dy = dy->data;
    w.gamma = gamma ? gamma->data : NULL;
    w.y = dx->data;
    w.sums = memory_alloc((size_t)n * row);
    bool ok = w.sums && run(&w, x);
    char *sums = w.sums;
    for (int64_t step = 1; ok && step < n; step *= 2)
        for (int64_t i = 0; i + step < n; i += 2 * step)
            w.loops->join(sums + (size_t)i * row, sums + (size_t)(i + step) * row, 2 * channels);
    if (ok) {
        memcpy(dgamma->data, sums, row / 2);
        memcpy(dbeta->data, sums + row / 2, row / 2);
    }
    memory_free(w.sums);
    return ok;
}

#endif
