/*
 * The loops of batch normalization, and how they go through memory.
 *
 * Forward: the statistics of each channel (the variance of ops/reduce.h), then y. Backward: the two
 * sums that every channel needs, then dx. A channel that lies in lines is done whole before the
 * next one, so that its second pass finds it in the cache; with few channels, and where channels
 * lie side by side, all sums come first, and the second pass begins where the first one ended.
 *
 *     rows     numbers repeat their constants every `period`: the channels, or, where they are few,
 *              some rows of them. Sums are added by NORM_ROWS rows, those by pieces of
 *              NORM_PIECE_ROWS, and the pieces pairwise.
 *     lines    sums are taken by blocks in the type at hand, and blocks added in float64, by
 *              pieces of NORM_PIECE elements of a channel
 *
 * So all depends on shapes alone, not on the number of threads.
 */
#include "ops/batch_norm.h"
#include "ops/kernels/isa.h"
#include "ops/reduce.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

enum {
    NORM_ROWS = 64,         /* that are summed at once */
    NORM_PIECE_ROWS = 512,  /* whose sums are added pairwise */
    NORM_COLUMNS = 1024,    /* bytes of a row that are worked on side by side */
    NORM_PERIOD = 64,       /* numbers that a row has at least, if rows of the channels fit in */
    NORM_PIECE = 1 << 16,   /* elements of a channel's lines that a thread takes at a time */
    NORM_SOME = 1 << 14,    /* numbers of rows that a thread writes at a time */
    NORM_CHANNEL = 1 << 11, /* elements of a channel that is worth being done by itself */
};

/* A call at work. Of rows the constants are `period` numbers each, of lines one for a channel; a is
 * the shift of the forward pass. */
typedef struct norm_work {
    const struct norm_loops *loops;
    batch_norm_view v;
    size_t element;
    const char *x, *dy;
    char *to;
    char *mean, *scale, *a, *b;
    bool stream;
    int64_t period, rows, chunks, wide;      /* of rows: chunks are `wide` numbers of a row */
    int64_t count, pieces;                   /* of lines: elements of a channel, pieces of it */
    void *sums;                              /* of every piece */
    const ed_tensor *operand;                /* x */
    char *gamma, *variance, *dgamma, *dbeta; /* of each channel */
    double epsilon;
    bool failed; /* no memory */
} norm_work;

typedef struct norm_loops {
    void (*rows)(const norm_work *w, int64_t first, int64_t last);
    void (*gradient_rows)(const norm_work *w, int64_t first, int64_t last);
    void (*row_sums)(const norm_work *w, int64_t first, int64_t last, int64_t column, int64_t width,
                     void *to);
    void (*line)(const norm_work *w, int64_t c, int64_t at, int64_t n);
    void (*gradient_line)(const norm_work *w, int64_t c, int64_t at, int64_t n);
    void (*line_sums)(const norm_work *w, int64_t c, int64_t at, int64_t n, double sums[2]);
    /* scale = gamma / sqrt(variance + epsilon) of n channels; gamma NULL: 1. */
    void (*scale)(const void *variance, const void *gamma, double epsilon, void *scale, int64_t n);
    /* A channel's two sums to where they are kept. */
    void (*put)(const double sums[2], void *a, void *b);
    /* Adds n numbers to others. */
    void (*add)(void *to, const void *from, int64_t n);
    /* From n channels' sums of dy in a, of dy (x - mean) in b, and r in scale: dgamma and dbeta,
     * and what dx needs in the places of the three. */
    void (*shares)(void *a, void *b, void *scale, const void *gamma, int64_t count, int64_t n,
                   void *dgamma, void *dbeta);
    void (*stream_end)(void);
} norm_loops;

#ifdef ISA

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/batch_norm.typed.h"
#define TYPE f64
#include "ops/batch_norm.typed.h"

static void norm_stream_end(void)
{
    vstream_end();
}

#define NORM_ROW(type)                                                                             \
    {                                                                                              \
        norm_rows_##type, norm_gradient_rows_##type, norm_row_sums_##type, norm_line_##type,       \
            norm_gradient_line_##type, norm_line_sums_##type, norm_scale_##type, norm_put_##type,  \
            norm_add_##type, norm_shares_##type, norm_stream_end                                   \
    }
const norm_loops ISA_NAME(norm_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = NORM_ROW(f32), [ED_FLOAT64] = NORM_ROW(f64)};

#else

ISA_DECLARE_TABLE(norm_loops, norm_table, []);

static norm_work begin_work(const batch_norm_view *v, const ed_tensor *x, const ed_tensor *to)
{
    static const norm_loops *const tables[ISA_COUNT] = ISA_TABLE(norm_table);
    norm_work w = {.loops = &tables[isa_level][x->dtype],
                   .v = *v,
                   .element = dtype_size(x->dtype),
                   .x = x->data,
                   .to = to->data,
                   .count = v->before * v->after,
                   .operand = x};
    w.period = v->channels;
    w.rows = v->before;
    while (v->after == 1 && 2 * w.period <= NORM_PERIOD && w.rows % 2 == 0)
        w.period *= 2, w.rows /= 2;
    w.wide = NORM_COLUMNS / (int64_t)w.element;
    w.chunks = (w.period + w.wide - 1) / w.wide;
    w.pieces = (w.count + NORM_PIECE - 1) / NORM_PIECE;
    const int64_t line = (v->after > 1 ? v->after : w.period) * (int64_t)w.element;
    w.stream = line % 64 == 0 && x->size * (int64_t)w.element >= COPY_FAR_BYTES;
    return w;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The constants of n channels again and again, up to the period. */
static void repeat(const norm_work *w, void *constants)
{
    const size_t row = (size_t)w->v.channels * w->element, all = (size_t)w->period * w->element;
    for (size_t done = row; done < all; done *= 2)
        memcpy((char *)constants + done, constants, done);
}

static int64_t some_rows(const norm_work *w)
{
    if (w->operand->size <= OPS_PARALLEL_WORK) return w->rows;
    return w->period < NORM_SOME ? NORM_SOME / w->period : 1;
}

/* Both from the last row on. */
static void forward_rows(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    w->loops->rows(w, w->rows - last, w->rows - first);
    if (w->stream) w->loops->stream_end();
}

static void backward_rows(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    w->loops->gradient_rows(w, w->rows - last, w->rows - first);
    if (w->stream) w->loops->stream_end();
}

/* Pieces of NORM_PIECE_ROWS rows by `wide` numbers. */
static void sum_rows(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / w->chunks * NORM_PIECE_ROWS, column = i % w->chunks * w->wide;
        const int64_t end = w->rows - row < NORM_PIECE_ROWS ? w->rows : row + NORM_PIECE_ROWS;
        w->loops->row_sums(
            w, row, end, column, w->period - column < w->wide ? w->period - column : w->wide,
            (char *)w->sums + (size_t)(2 * (i / w->chunks) * w->period) * w->element);
    }
}

/* The sums of all rows into the first places of w->sums, which are a and b. */
static void sum_all_rows(norm_work *w, int64_t pieces)
{
    const size_t piece = 2 * (size_t)w->period * w->element;
    const int64_t items = pieces * w->chunks;
    threads_run(items, w->operand->size > OPS_PARALLEL_WORK ? 1 : items, sum_rows, w);
    for (int64_t step = 1; step < pieces; step *= 2)
        for (int64_t i = 0; i + step < pieces; i += 2 * step)
            w->loops->add((char *)w->sums + (size_t)i * piece,
                          (char *)w->sums + (size_t)(i + step) * piece, 2 * w->period);
    for (int64_t half = w->period / 2; half >= w->v.channels; half /= 2) {
        w->loops->add(w->a, w->a + (size_t)half * w->element, half);
        w->loops->add(w->b, w->b + (size_t)half * w->element, half);
    }
}

static void rows_backward(norm_work *w, int64_t pieces)
{
    const int64_t n = w->v.channels;
    w->loops->scale(w->variance, NULL, w->epsilon, w->scale, n);
    sum_all_rows(w, pieces);
    w->loops->shares(w->a, w->b, w->scale, w->gamma, w->count, n, w->dgamma, w->dbeta);
    repeat(w, w->a);
    repeat(w, w->b);
    repeat(w, w->scale);
    threads_run(w->rows, some_rows(w), backward_rows, w);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Whether each channel is done from beginning to end by one thread. */
static bool whole_channels(const norm_work *w)
{
    return w->v.after > 1 && w->count >= HARD(2, NORM_CHANNEL) &&
           w->v.channels >= 4 * threads_count();
}

typedef void (*each_line)(const norm_work *w, int64_t c, int64_t at, int64_t n, double *sums);

/* The lines of a piece of a channel; at: the index of the first element. */
static void lines_of(const norm_work *w, int64_t c, int64_t piece, each_line f, double *sums)
{
    const int64_t after = w->v.after;
    int64_t i = piece * NORM_PIECE, last = i + NORM_PIECE < w->count ? i + NORM_PIECE : w->count;
    for (int64_t n; i < last; i += n) {
        n = after - i % after < last - i ? after - i % after : last - i;
        f(w, c, (i / after * w->v.channels + c) * after + i % after, n, sums);
    }
}

static void forward_line(const norm_work *w, int64_t c, int64_t at, int64_t n, double *sums)
{
    (void)sums;
    w->loops->line(w, c, at, n);
}

static void backward_line(const norm_work *w, int64_t c, int64_t at, int64_t n, double *sums)
{
    (void)sums;
    w->loops->gradient_line(w, c, at, n);
}

static void sum_line(const norm_work *w, int64_t c, int64_t at, int64_t n, double *sums)
{
    w->loops->line_sums(w, c, at, n, sums);
}

static void sum_piece(const norm_work *w, int64_t c, int64_t piece)
{
    double *sums = (double *)w->sums + 2 * (c * w->pieces + piece);
    sums[0] = sums[1] = 0;
    lines_of(w, c, piece, sum_line, sums);
}

/* From the sums of a channel's pieces all that dx needs. */
static void end_sums(const norm_work *w, int64_t c)
{
    const size_t at = (size_t)c * w->element;
    double *sums = (double *)w->sums + 2 * c * w->pieces;
    for (int64_t i = 1; i < w->pieces; i++) sums[0] += sums[2 * i], sums[1] += sums[2 * i + 1];
    w->loops->put(sums, w->a + at, w->b + at);
    w->loops->scale(w->variance + at, NULL, w->epsilon, w->scale + at, 1);
    w->loops->shares(w->a + at, w->b + at, w->scale + at, w->gamma + at, w->count, 1,
                     w->dgamma + at, w->dbeta + at);
}

/* Numbers of pieces count through the channels. */
static void forward_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        lines_of(w, i / w->pieces, i % w->pieces, forward_line, NULL);
    if (w->stream) w->loops->stream_end();
}

static void backward_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        lines_of(w, i / w->pieces, i % w->pieces, backward_line, NULL);
    if (w->stream) w->loops->stream_end();
}

static void sum_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) sum_piece(w, i / w->pieces, i % w->pieces);
}

/* The mean and variance of n channels from c on. */
static bool statistics(const norm_work *w, int64_t c, int64_t n)
{
    const batch_norm_view *v = &w->v;
    const size_t at = (size_t)c * w->element;
    ed_tensor x = *w->operand;
    x.rank = 3;
    x.size = v->before * n * v->after;
    x.data = (void *)(w->x + (size_t)(c * v->after) * w->element);
    x.shape[0] = v->before, x.shape[1] = n, x.shape[2] = v->after;
    x.strides[0] = v->channels * v->after, x.strides[1] = v->after, x.strides[2] = 1;
    return reduce_run(REDUCE_VARIANCE, &x, 1 | 4, w->variance + at, w->mean + at);
}

static void forward_channels(int64_t first, int64_t last, int worker, void *user)
{
    norm_work *w = user;
    for (int64_t c = first; c < last; c++) {
        const size_t at = (size_t)c * w->element;
        if (!statistics(w, c, 1)) {
            __atomic_store_n(&w->failed, true, __ATOMIC_RELAXED);
            return;
        }
        w->loops->scale(w->variance + at, w->gamma + at, w->epsilon, w->scale + at, 1);
        forward_pieces(c * w->pieces, (c + 1) * w->pieces, worker, user);
    }
}

static void backward_channels(int64_t first, int64_t last, int worker, void *user)
{
    const norm_work *w = user;
    for (int64_t c = first; c < last; c++) {
        sum_pieces(c * w->pieces, (c + 1) * w->pieces, worker, user);
        end_sums(w, c);
        backward_pieces(c * w->pieces, (c + 1) * w->pieces, worker, user);
    }
}

static void lines_backward(norm_work *w)
{
    const int64_t channels = w->v.channels, all = channels * w->pieces;
    const int64_t grain = w->operand->size > OPS_PARALLEL_WORK ? 1 : all;
    if (whole_channels(w)) {
        threads_run(channels, 1, backward_channels, w);
        return;
    }
    threads_run(all, grain, sum_pieces, w);
    for (int64_t c = 0; c < channels; c++) end_sums(w, c);
    threads_run(all, grain, backward_pieces, w);
}

/* ---- The passes ------------------------------------------------------------------------------ */

/* y, once all constants are there. */
static void write_results(norm_work *w)
{
    if (w->v.after == 1) {
        threads_run(w->rows, some_rows(w), forward_rows, w);
    } else {
        const int64_t all = w->v.channels * w->pieces;
        threads_run(all, w->operand->size > OPS_PARALLEL_WORK ? 1 : all, forward_pieces, w);
    }
}

/* Constants of the channels, repeated in `to` if they have to be; NULL: zeros. */
static char *repeated(const norm_work *w, const ed_tensor *of, char *to)
{
    const size_t row = (size_t)w->v.channels * w->element;
    if (of && w->period == w->v.channels) return of->data;
    if (of)
        memcpy(to, of->data, row);
    else
        memset(to, 0, row);
    repeat(w, to);
    return to;
}

bool batch_norm_forward(const batch_norm_view *v, const ed_tensor *x, const ed_tensor *gamma,
                        const ed_tensor *beta, double epsilon, const ed_tensor *y,
                        const ed_tensor *mean, const ed_tensor *variance)
{
    norm_work w = begin_work(v, x, y);
    const size_t row = (size_t)w.period * w.element;
    char *const scratch = memory_alloc(3 * row);
    if (!scratch) return false;
    w.scale = scratch;
    w.gamma = gamma->data;
    w.epsilon = epsilon;
    w.mean = mean->data;
    w.variance = variance->data;
    w.a = repeated(&w, beta, scratch + row);
    if (whole_channels(&w)) {
        threads_run(v->channels, 1, forward_channels, &w);
    } else if (statistics(&w, 0, v->channels)) {
        w.loops->scale(w.variance, w.gamma, epsilon, w.scale, v->channels);
        repeat(&w, w.scale);
        w.mean = repeated(&w, mean, scratch + 2 * row);
        write_results(&w);
    } else
        w.failed = true;
    memory_free(scratch);
    return !w.failed;
}

bool batch_norm_apply(const batch_norm_view *v, const ed_tensor *x, const ed_tensor *mean,
                      const ed_tensor *scale, const ed_tensor *shift, const ed_tensor *y)
{
    norm_work w = begin_work(v, x, y);
    const size_t row = (size_t)w.period * w.element;
    char *scratch = NULL;
    if ((!shift || w.period > v->channels) && !(scratch = memory_alloc(3 * row))) return false;
    w.mean = repeated(&w, mean, scratch);
    w.scale = repeated(&w, scale, scratch + row);
    w.a = repeated(&w, shift, scratch + 2 * row);
    write_results(&w);
    memory_free(scratch);
    return true;
}

bool batch_norm_backward(const batch_norm_view *v, const batch_norm_back *back)
{
    norm_work w = begin_work(v, back->x, back->dx);
    const int64_t pieces = (w.rows + NORM_PIECE_ROWS - 1) / NORM_PIECE_ROWS;
    const size_t row = (size_t)w.period * w.element;
    const size_t sums = v->after == 1
                            ? 2 * (size_t)pieces * row
                            : 2 * (size_t)(v->channels * w.pieces) * sizeof(double) + 2 * row;
    char *const scratch = memory_alloc(sums + 2 * row);
    if (!scratch) return false;
    w.dy = back->dy->data;
    w.gamma = back->gamma->data;
    w.epsilon = back->epsilon;
    w.variance = back->variance->data;
    w.dgamma = back->dgamma->data;
    w.dbeta = back->dbeta->data;
    w.sums = scratch;
    w.b = scratch + (v->after == 1 ? row : sums - row);
    w.a = w.b - row;
    w.scale = scratch + sums;
    w.mean = repeated(&w, back->mean, w.scale + row);
    if (v->after == 1)
        rows_backward(&w, pieces);
    else
        lines_backward(&w);
    memory_free(scratch);
    return true;
}

#endif
