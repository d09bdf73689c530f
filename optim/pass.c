#include "ops/execute.h"
#include "optim/optimizer.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/*
 * One pass over all variables. Each is divided into pieces of PIECE elements, numbered over all
 * variables. The threads share these pieces, so a hundred small variables cost one parallel region.
 * The division depends on the shapes only, so the result does not depend on the number of threads.
 */
enum { PIECE = HARD(64, 16384), STRIP = 512 };

/* How far ahead a slice is asked for, and how many of its lines of memory: no processor foresees
 * indices that have no pattern. */
enum { AHEAD = 8, AHEAD_BYTES = 512, LINE = 64 };

int64_t optim_piece(int64_t width)
{
    return width < PIECE ? PIECE / width * width : width;
}

typedef struct pass {
    ed_optimizer *optimizer;
    optim_job *jobs;
    int64_t n_jobs, pieces, elements;
    optim_update update;
    double rate;                      /* the learning rate */
    double numbers[2][OPTIM_NUMBERS]; /* for float32, float64 */
    double *squares;                  /* of each piece, for clipping by norm */
    bool steps;                       /* rather than only adds the gradients */
    bool prepare, sums, averages;     /* gradients, w; gradients were summed; ema */
    bool overwrites;
    double momentum; /* of the averages */
} pass;

static void count_pieces(pass *p)
{
    for (int64_t i = 0; i < p->n_jobs; i++) {
        optim_job *job = &p->jobs[i];
        job->first_piece = p->pieces;
        job->part.numbers =
            job->multiplier == 1 ? p->numbers[job->dtype == ED_FLOAT64] : job->numbers;
        p->pieces += (job->part.n + job->piece - 1) / job->piece;
        p->elements += job->part.n;
    }
}

/* The job of piece i: the last one whose first piece is i or less (jobs without elements have no
 * piece). */
static const optim_job *job_of(const pass *p, int64_t piece)
{
    int64_t low = 0, high = p->n_jobs - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (p->jobs[middle].first_piece <= piece)
            low = middle;
        else
            high = middle - 1;
    }
    return &p->jobs[low];
}

static optim_part range_of(const optim_part *of, ed_dtype dtype, int64_t begin, int64_t n)
{
    size_t offset = (size_t)begin * dtype_size(dtype);
    optim_part part = *of;
    part.n = n;
    part.left -= begin;
    part.g = (const char *)of->g + offset;
    part.source = (const char *)of->source + offset;
    part.w = (char *)of->w + offset;
    for (int s = 0; s < OPTIM_SLOTS; s++)
        part.slots[s] = of->slots[s] ? (char *)of->slots[s] + offset : NULL;
    return part;
}

/* The elements of g in a piece. */
static int64_t piece_elements(const optim_job *job, int64_t piece, int64_t *begin)
{
    *begin = (piece - job->first_piece) * job->piece;
    const int64_t left = job->part.n - *begin;
    return left < job->piece ? left : job->piece;
}

/* What comes after the update of a range: the averages, and the sum of gradients begins anew. */
static void finish_part(const pass *p, const optim_job *job, const optim_part *part)
{
    if (p->averages) ISA_CALL(optim_average)
    (job->dtype, p->momentum, p->overwrites, part->n, part->w, part->slots[OPTIM_AVERAGE]);
    if (p->sums) memset(part->slots[OPTIM_SUM], 0, (size_t)part->n * dtype_size(job->dtype));
}

static void update_prepared(const pass *p, const optim_job *job, const optim_part *whole)
{
    const optim_common *c = p->optimizer->common;
    const optim_preparation how = {.scale = job->scale,
                                   .limit = c->clipvalue > 0 ? c->clipvalue : INFINITY,
                                   .decay = optim_number(job->dtype, job->decay),
                                   .rate = optim_number(job->dtype, p->rate * job->multiplier)};
    union {
        float f32[STRIP];
        double f64[STRIP];
    } prepared;
    for (int64_t begin = 0; begin < whole->n; begin += STRIP) {
        const int64_t left = whole->n - begin;
        const optim_part part = range_of(whole, job->dtype, begin, left < STRIP ? left : STRIP);
        optim_part clipped = part;
        clipped.g = &prepared;
        ISA_CALL(optim_prepare)(job->dtype, &how, &part, &prepared);
        p->update(job->dtype, &clipped);
        finish_part(p, job, &part);
    }
}

static void update_part(const pass *p, const optim_job *job, const optim_part *part)
{
    if (p->prepare) {
        update_prepared(p, job, part);
        return;
    }
    p->update(job->dtype, part);
    finish_part(p, job, part);
}

/* ---- Slices ---- */

static const char *slice_at(const optim_job *job, int64_t i, size_t bytes)
{
    return (const char *)job->part.g + (size_t)i * bytes;
}

static void ask_for_slice(const optim_job *job, int64_t i, size_t bytes)
{
    if (job->indices[i] < 0) return;
    const char *w = (const char *)job->part.w + (size_t)job->indices[i] * bytes;
    for (size_t line = 0; line < bytes && line < AHEAD_BYTES; line += LINE)
        __builtin_prefetch(w + line, 1);
}

/* Sets where the gradient of slice i is, and w and the slots of its index. In place: a structure
 * that is copied right after its fields were written makes the processor wait. */
static void set_slice(const pass *p, const optim_job *job, int64_t i, size_t bytes,
                      optim_part *part)
{
    const size_t offset = (size_t)job->indices[i] * bytes;
    part->g = part->source = slice_at(job, i, bytes);
    part->w = (char *)job->part.w + offset;
    for (int s = 0; p->optimizer->slots && s < OPTIM_SLOTS; s++)
        if (part->slots[s]) part->slots[s] = (char *)job->part.slots[s] + offset;
}

/* The gradient is the sum of slice i and of all that have its index. */
static void update_summed(const pass *p, const optim_job *job, const optim_part *whole, int64_t i)
{
    const size_t size = dtype_size(job->dtype), bytes = (size_t)job->width * size;
    union {
        float f32[STRIP];
        double f64[STRIP];
    } sum;
    for (int64_t begin = 0; begin < whole->n; begin += STRIP) {
        const int64_t left = whole->n - begin;
        optim_part part = range_of(whole, job->dtype, begin, left < STRIP ? left : STRIP);
        memcpy(&sum, part.g, (size_t)part.n * size);
        part.g = &sum;
        for (int64_t k = job->next[i]; k >= 0; k = job->next[k]) {
            const char *g = slice_at(job, k, bytes) + (size_t)begin * size;
            ISA_CALL(optim_accumulate)(job->dtype, 1, 0, part.n, g, &sum);
        }
        update_part(p, job, &part);
    }
}

/* Slices first..last-1, and with them those that have the same indices. So no two threads write to
 * the same place, and any division of the slices gives the same sums. */
static void update_slices(const pass *p, const optim_job *job, int64_t first, int64_t last)
{
    const size_t bytes = (size_t)job->width * dtype_size(job->dtype);
    optim_part part = job->part;
    part.n = part.left = job->width;
    for (int64_t i = first; i < last; i++) {
        if (i + AHEAD < last) ask_for_slice(job, i + AHEAD, bytes);
        if (job->indices[i] < 0) continue;
        set_slice(p, job, i, bytes, &part);
        if (job->next[i] < 0)
            update_part(p, job, &part);
        else
            update_summed(p, job, &part, i);
    }
}

static void update_piece(const pass *p, int64_t i)
{
    const optim_job *job = job_of(p, i);
    int64_t begin, n = piece_elements(job, i, &begin);
    if (job->indices) {
        update_slices(p, job, begin / job->width, (begin + n) / job->width);
        return;
    }
    const optim_part part = range_of(&job->part, job->dtype, begin, n);
    update_part(p, job, &part);
}

static void update_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    for (int64_t i = first; i < last; i++) update_piece(user, i);
}

/* A call that is no step moves the averages alone. */
static void average_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const pass *p = user;
    for (int64_t i = first; i < last; i++) {
        const optim_job *job = job_of(p, i);
        int64_t begin, n = piece_elements(job, i, &begin);
        const optim_part part = range_of(&job->part, job->dtype, begin, n);
        ISA_CALL(optim_average)
        (job->dtype, p->momentum, p->overwrites, n, part.w, part.slots[OPTIM_AVERAGE]);
    }
}

static void accumulate_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const pass *p = user;
    const double steps = p->steps ? (double)optim_calls(p->optimizer) : 0;
    for (int64_t i = first; i < last; i++) {
        const optim_job *job = job_of(p, i);
        int64_t begin, n = piece_elements(job, i, &begin);
        const optim_part part = range_of(&job->part, job->dtype, begin, n);
        ISA_CALL(optim_accumulate)
        (job->dtype, 1 / optim_loss_scale(p->optimizer), steps, n, part.g, part.slots[OPTIM_SUM]);
    }
}

static void square_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    pass *p = user;
    for (int64_t i = first; i < last; i++) {
        const optim_job *job = job_of(p, i);
        int64_t begin, n = piece_elements(job, i, &begin);
        p->squares[i] = ISA_CALL(optim_squares)(
            job->dtype, n, (const char *)job->part.g + (size_t)begin * dtype_size(job->dtype));
    }
}

/* Few elements are done by this thread, which is faster than to start another one. */
static void over_pieces(pass *p, threads_range range)
{
    threads_run(p->pieces, p->elements > OPS_PARALLEL_WORK ? 1 : p->pieces, range, p);
}

static double sum(const double *values, int64_t begin, int64_t end)
{
    double total = 0;
    for (int64_t i = begin; i < end; i++) total += values[i];
    return total;
}

/* c / max(norm, c) for a finite norm. A global norm that is not finite makes all gradients NaN,
 * as in TensorFlow. The gradients have the factor `scale`. */
static void find_scales(pass *p, double scale)
{
    const optim_common *c = p->optimizer->common;
    over_pieces(p, square_range);
    const double all = sqrt(sum(p->squares, 0, p->pieces)) / scale;
    for (int64_t i = 0; i < p->n_jobs; i++) {
        optim_job *job = &p->jobs[i];
        if (c->global_clipnorm > 0)
            job->scale = isfinite(all) ? c->global_clipnorm / fmax(all, c->global_clipnorm) : NAN;
        else {
            const int64_t end = i + 1 < p->n_jobs ? p->jobs[i + 1].first_piece : p->pieces;
            const double norm = sqrt(sum(p->squares, job->first_piece, end)) / scale;
            job->scale = norm > c->clipnorm ? c->clipnorm / norm : norm == norm ? 1 : NAN;
        }
        job->scale /= scale;
    }
}

/* For those dtypes that the variables have, and for each variable with its own learning rate. */
static void work_out_numbers(pass *p)
{
    ed_optimizer *o = p->optimizer;
    const int64_t step = optim_steps(o) + 1;
    bool done[2] = {false, false};
    for (int64_t i = 0; i < p->n_jobs; i++) {
        optim_job *job = &p->jobs[i];
        const bool wide = job->dtype == ED_FLOAT64, own = job->multiplier != 1;
        if (!own && done[wide]) continue;
        const double rate = optim_number(job->dtype, p->rate * job->multiplier);
        o->class->numbers(o, job->dtype, step, rate, own ? job->numbers : p->numbers[wide]);
        if (!own) done[wide] = true;
    }
}

/* Of a call with gradient accumulation: g is in the sums then, without the loss's scale. */
static void accumulate(pass *p)
{
    over_pieces(p, accumulate_range);
    for (int64_t i = 0; i < p->n_jobs; i++) {
        optim_part *part = &p->jobs[i].part;
        part->g = part->source = part->slots[OPTIM_SUM];
    }
}

static void update(pass *p, bool by_norm)
{
    const double scale = p->sums ? 1 : optim_loss_scale(p->optimizer);
    for (int64_t i = 0; i < p->n_jobs; i++) p->jobs[i].scale = 1 / scale;
    if (by_norm) find_scales(p, scale);
    work_out_numbers(p);
    over_pieces(p, update_range);
}

static bool is_finite(pass *p)
{
    over_pieces(p, square_range);
    return isfinite(sum(p->squares, 0, p->pieces));
}

/* With dynamic_loss_scale a call whose gradients are not finite only lowers the scale. */
static void run_pass(pass *p, ed_optimizer *o, bool by_norm)
{
    const bool dynamic = o->common->dynamic_loss_scale, finite = !dynamic || is_finite(p);
    if (finite && p->sums) accumulate(p);
    if (finite && p->steps)
        update(p, by_norm);
    else if (finite && p->averages)
        over_pieces(p, average_range);
    if (finite) o->iterations++;
    if (dynamic) optim_note_finite(o, finite);
}

bool optim_pass(ed_optimizer *o, int64_t n_jobs)
{
    const optim_common *c = o->common;
    const bool by_norm = c->clipnorm > 0 || c->global_clipnorm > 0;
    pass p = {.optimizer = o,
              .jobs = o->jobs,
              .n_jobs = n_jobs,
              .update = o->class->update[isa_level],
              .rate = optim_rate(o),
              .steps = optim_steps_next(o),
              .sums = optim_calls(o) > 1,
              .averages = c->use_ema,
              .overwrites = optim_ema_overwrites(o),
              .momentum = optim_ema_momentum(o)};
    if (isnan(p.rate)) return false;
    p.prepare = by_norm || c->clipvalue > 0 || optim_loss_scale(o) != 1 || p.averages || p.sums;
    for (int64_t i = 0; i < n_jobs; i++) p.prepare |= o->jobs[i].decay > 0;
    count_pieces(&p);
    if ((by_norm || c->dynamic_loss_scale) &&
        !(p.squares = memory_alloc((size_t)(p.pieces + 1) * sizeof *p.squares)))
        return false;
    run_pass(&p, o, by_norm);
    memory_free(p.squares);
    return true;
}
