#include "optim/optimizer.h"
#include "ops/execute.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/*
 * A step is made in two halves. The first may fail: it checks the lists, makes missing slots, packs
 * gradients that are strided views, and gets writable memory for all that will change
 * (variable_write copies what somebody else still holds). Until its end no number has changed, and
 * entries made on the way are taken back if it fails. The second half can't fail: one pass over all
 * variables.
 *
 * For the pass every variable is cut into pieces of PIECE elements, counted through over all
 * variables; threads share the count, so a hundred small variables cost one parallel region.
 * Borders depend on the shapes only.
 */
enum { PIECE = 16384, STRIP = 1024 };

/* ---- Making and looking ---------------------------------------------------------------------- */

static void destroy(void *object)
{
    ed_optimizer *o = object;
    optim_drop_entries(o, 0);
    made_end(o);
    graph_wait_end(&o->wait);
    memory_free(o->entries);
    memory_free(o->index);
    memory_free(o->jobs);
    memory_free(o);
}

static const object_class optimizer_class = {.name = "optimizer",
                                             .destroy = destroy,
                                             .track = optim_track,
                                             .wait = optim_wait,
                                             .is_made = true};

static unsigned all_slots(const optim_class *class)
{
    unsigned slots = 0;
    for (int s = 0; s < OPTIM_SLOTS; s++) slots |= class->slots[s] ? 1u << s : 0;
    return slots;
}

void *optim_make(const ed_kind *kind, const void *options)
{
    const optim_class *class = (const optim_class *)kind;
    const optim_common *c = options;
    if ((c->clipvalue > 0) + (c->clipnorm > 0) + (c->global_clipnorm > 0) > 1)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: at most one of clipnorm, clipvalue and global_clipnorm can be set",
                       kind->name);
    ed_optimizer *o = made_new(&optimizer_class, sizeof *o, kind, options);
    if (!o) return NULL;
    o->class = class;
    o->common = o->made.options;
    o->slots = class->in_use ? class->in_use(options) : all_slots(class);
    return scope_give(o);
}

int64_t ed_optimizer_iterations(const ed_optimizer *optimizer)
{
    return optimizer ? optimizer->iterations
                     : (ed_fail(ED_INVALID_ARGUMENT, "iterations: NULL given"), 0);
}

double ed_optimizer_learning_rate(const ed_optimizer *optimizer)
{
    return optimizer ? optimizer->common->learning_rate
                     : (ed_fail(ED_INVALID_ARGUMENT, "learning_rate: NULL given"), 0);
}

bool ed_optimizer_set_learning_rate(ed_optimizer *optimizer, double learning_rate)
{
    if (!optimizer) return ed_fail(ED_INVALID_ARGUMENT, "set_learning_rate: NULL given"), false;
    const ed_kind *kind = &optimizer->class->kind;
    const optim_common wanted = {.learning_rate = learning_rate};
    if (!schema_check_field(kind->name, kind->fields, &wanted)) return false;
    optimizer->common->learning_rate = learning_rate;
    return true;
}

/* ---- The half that may fail ------------------------------------------------------------------ */

static bool check_pair(const ed_tensor *g, const ed_tensor *v)
{
    if (v->dtype != ED_FLOAT32 && v->dtype != ED_FLOAT64)
        return ed_fail(
                   ED_INVALID_ARGUMENT,
                   "apply_gradients: the variable %s is %s; optimizers update float32 and float64",
                   ed_variable_name(v), text_of_tensor(v).s),
               false;
    if (g->dtype != v->dtype || g->rank != v->rank ||
        memcmp(g->shape, v->shape, (size_t)v->rank * sizeof *v->shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "apply_gradients: the variable %s is %s, its gradient %s",
                       ed_variable_name(v), text_of_tensor(v).s, text_of_tensor(g).s),
               false;
    return true;
}

static bool check_lists(const ed_list *gradients, const ed_list *variables)
{
    if (gradients->size != variables->size)
        return ed_fail(ED_INVALID_ARGUMENT, "apply_gradients: %lld gradients for %lld variables",
                       (long long)gradients->size, (long long)variables->size),
               false;
    int64_t given = 0;
    for (int64_t i = 0; i < variables->size; i++) {
        const ed_tensor *g = gradients->items[i], *v = variables->items[i];
        if (!ed_is_variable(v))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "apply_gradients: entry %lld of the variables is none", text_nth(i)),
                   false;
        if (!g) continue;
        if (!check_pair(g, v)) return false;
        given++;
    }
    if (!given)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "apply_gradients: none of the %lld gradients is given: does the loss depend "
                       "on the variables?",
                       (long long)variables->size),
               false;
    return true;
}

static bool room_for_jobs(ed_optimizer *o, int64_t n)
{
    if (n <= o->job_capacity) return true;
    optim_job *jobs = memory_alloc((size_t)n * sizeof *jobs);
    if (!jobs) return false;
    memory_free(o->jobs);
    o->jobs = jobs;
    o->job_capacity = n;
    return true;
}

static bool make_job(ed_optimizer *o, optim_job *job, const ed_tensor *gradient, ed_tensor *v,
                     int64_t *hint)
{
    optim_entry *e = optim_find(o, v, hint);
    if (e && e->seen == o->calls)
        return ed_fail(ED_INVALID_ARGUMENT, "apply_gradients: the variable %s comes twice",
                       ed_variable_name(v)),
               false;
    if (!e && !(e = optim_add(o, v))) return false;
    e->seen = o->calls;
    *job = (optim_job){.dtype = v->dtype, .scale = 1};
    job->part.n = v->size;
    /* Held before the variable is written: a gradient that is the variable's own value must stay as
     * it is. */
    job->gradient = tensor_contiguous(tensor_read(gradient));
    if (!job->gradient) return false;
    job->part.g = job->gradient->data;
    return true;
}

/* Memory for all that changes; entries stand still from here on. */
static bool make_writable(ed_optimizer *o, optim_job *job, const ed_tensor *v, int64_t *hint)
{
    optim_entry *e = optim_find(o, v, hint);
    if (!(job->part.w = variable_write(e->variable, true))) return false;
    for (int s = 0; s < OPTIM_SLOTS; s++)
        if (e->slots[s] && !(job->part.slots[s] = variable_write(e->slots[s], true))) return false;
    return true;
}

static int64_t make_jobs(ed_optimizer *o, const ed_list *gradients, const ed_list *variables,
                         bool *ok)
{
    int64_t n = 0, hint = 0;
    for (int64_t i = 0; *ok && i < variables->size; i++)
        if (gradients->items[i]) {
            *ok = make_job(o, &o->jobs[n], gradients->items[i], variables->items[i], &hint);
            n += *ok;
        }
    hint = 0;
    for (int64_t i = 0, j = 0; *ok && i < variables->size; i++)
        if (gradients->items[i]) *ok = make_writable(o, &o->jobs[j++], variables->items[i], &hint);
    return n;
}

/* ---- The pass -------------------------------------------------------------------------------- */

typedef struct pass {
    const ed_optimizer *optimizer;
    optim_job *jobs;
    int64_t n_jobs, pieces, elements;
    optim_update update;
    double numbers[2][OPTIM_NUMBERS]; /* for float32, float64 */
    double *squares;                  /* of each piece, for clipping by norm */
    bool prepare;
} pass;

static void count_pieces(pass *p)
{
    for (int64_t i = 0; i < p->n_jobs; i++) {
        optim_job *job = &p->jobs[i];
        job->first_piece = p->pieces;
        job->part.numbers = p->numbers[job->dtype == ED_FLOAT64];
        p->pieces += (job->part.n + PIECE - 1) / PIECE;
        p->elements += job->part.n;
    }
}

/* The job that piece i belongs to: the last one that begins there or before (jobs without elements
 * have no piece). */
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

static optim_part stretch(const optim_part *of, ed_dtype dtype, int64_t begin, int64_t n)
{
    size_t offset = (size_t)begin * dtype_size(dtype);
    optim_part part = *of;
    part.n = n;
    part.g = (const char *)of->g + offset;
    part.w = (char *)of->w + offset;
    for (int s = 0; s < OPTIM_SLOTS; s++)
        part.slots[s] = of->slots[s] ? (char *)of->slots[s] + offset : NULL;
    return part;
}

static optim_part piece_part(const optim_job *job, int64_t piece)
{
    int64_t begin = (piece - job->first_piece) * PIECE, left = job->part.n - begin;
    return stretch(&job->part, job->dtype, begin, left < PIECE ? left : PIECE);
}

static void update_prepared(const pass *p, const optim_job *job, const optim_part *whole)
{
    const ed_optimizer *o = p->optimizer;
    optim_preparation how = {.scale = job->scale,
                             .limit = o->common->clipvalue > 0 ? o->common->clipvalue : INFINITY,
                             .decay = optim_float(o->common->weight_decay),
                             .rate = optim_float(o->common->learning_rate)};
    union {
        float f32[STRIP];
        double f64[STRIP];
    } prepared;
    for (int64_t begin = 0; begin < whole->n; begin += STRIP) {
        int64_t left = whole->n - begin;
        optim_part part = stretch(whole, job->dtype, begin, left < STRIP ? left : STRIP);
        ISA_CALL(optim_prepare)(job->dtype, &how, part.n, part.g, part.w, &prepared);
        part.g = &prepared;
        p->update(job->dtype, &part);
    }
}

static void update_piece(const pass *p, int64_t i)
{
    const optim_job *job = job_of(p, i);
    optim_part part = piece_part(job, i);
    if (p->prepare)
        update_prepared(p, job, &part);
    else
        p->update(job->dtype, &part);
}

static void update_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    for (int64_t i = first; i < last; i++) update_piece(user, i);
}

static void square_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    pass *p = user;
    for (int64_t i = first; i < last; i++) {
        const optim_job *job = job_of(p, i);
        optim_part part = piece_part(job, i);
        p->squares[i] = ISA_CALL(optim_squares)(job->dtype, part.n, part.g);
    }
}

/* A few elements are done before a second thread has heard of them. */
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

/* Finite norms give c / max(norm, c); a global one that is not finite makes everything NaN, as its
 * elements can't be told apart. */
static void find_scales(pass *p)
{
    const optim_common *c = p->optimizer->common;
    over_pieces(p, square_range);
    double all = sqrt(sum(p->squares, 0, p->pieces));
    for (int64_t i = 0; i < p->n_jobs; i++) {
        optim_job *job = &p->jobs[i];
        if (c->global_clipnorm > 0)
            job->scale = isfinite(all) ? c->global_clipnorm / fmax(all, c->global_clipnorm) : NAN;
        else {
            int64_t end = i + 1 < p->n_jobs ? p->jobs[i + 1].first_piece : p->pieces;
            double norm = sqrt(sum(p->squares, job->first_piece, end));
            job->scale = norm > c->clipnorm ? c->clipnorm / norm : norm == norm ? 1 : NAN;
        }
    }
}

/* For those dtypes that occur. */
static void work_out_numbers(pass *p)
{
    const ed_optimizer *o = p->optimizer;
    bool done[2] = {false, false};
    for (int64_t i = 0; i < p->n_jobs; i++) {
        bool wide = p->jobs[i].dtype == ED_FLOAT64;
        if (!done[wide])
            o->class->numbers(o, p->jobs[i].dtype, o->iterations + 1, p->numbers[wide]);
        done[wide] = true;
    }
}

static bool run(ed_optimizer *o, int64_t n_jobs)
{
    const optim_common *c = o->common;
    bool by_norm = c->clipnorm > 0 || c->global_clipnorm > 0;
    pass p = {
        .optimizer = o, .jobs = o->jobs, .n_jobs = n_jobs, .update = o->class->update[isa_level]};
    p.prepare = by_norm || c->clipvalue > 0 || o->common->weight_decay > 0;
    count_pieces(&p);
    if (by_norm) {
        if (!(p.squares = memory_alloc((size_t)p.pieces * sizeof *p.squares))) return false;
        find_scales(&p);
        memory_free(p.squares);
    }
    work_out_numbers(&p);
    over_pieces(&p, update_range);
    o->iterations++;
    return true;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

bool ed_apply_gradients(ed_optimizer *optimizer, ed_list *gradients, ed_list *variables)
{
    if (!optimizer || !gradients || !variables)
        return ed_fail(ED_INVALID_ARGUMENT, "apply_gradients: NULL given"), false;
    if (!check_lists(gradients, variables)) return false;
    ED_SCOPE;
    int64_t before = optimizer->n_entries;
    bool ok = room_for_jobs(optimizer, variables->size);
    optimizer->calls++;
    int64_t n = make_jobs(optimizer, gradients, variables, &ok);
    ok = ok && run(optimizer, n);
    while (n > 0) ed_release(optimizer->jobs[--n].gradient);
    if (!ok) optim_unmade(optimizer, before);
    if (!ok) optim_drop_entries(optimizer, before);
    return ok;
}

bool ed_minimize(ed_optimizer *optimizer, ed_tape *tape, ed_tensor *loss, ed_list *variables)
{
    if (!optimizer || !tape || !loss || !variables)
        return ed_fail(ED_INVALID_ARGUMENT, "minimize: NULL given"), false;
    ED_SCOPE;
    return ed_apply_gradients(optimizer, ed_gradient(tape, loss, variables), variables);
}
