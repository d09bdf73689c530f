#include "optim/optimizer.h"
#include "ops/execute.h"
#include "ops/slices.h"
#include "tensor/threads.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/*
 * A step is one call of one op, which writes all variables and their slots. All that may fail comes
 * before the first change: ed_apply_gradients checks the lists and creates missing slots, which it
 * removes again if the call fails; the dispatcher allocates new buffers where a value is shared,
 * and makes gradients contiguous; the kernel is one pass over all variables.
 *
 * For the pass each variable is divided into pieces of PIECE elements, numbered over all variables.
 * The threads share these pieces, so a hundred small variables cost one parallel region. The
 * division depends on the shapes only, so the result does not depend on the number of threads.
 */
enum { PIECE = HARD(64, 16384), STRIP = 512 };

/* ---- Creation and properties ----------------------------------------------------------------- */

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
                     : (ed_fail(ED_INVALID_ARGUMENT, "optimizer_iterations: optimizer is NULL"), 0);
}

double ed_optimizer_learning_rate(const ed_optimizer *optimizer)
{
    return optimizer
               ? optimizer->common->learning_rate
               : (ed_fail(ED_INVALID_ARGUMENT, "optimizer_learning_rate: optimizer is NULL"), 0);
}

bool ed_optimizer_set_learning_rate(ed_optimizer *optimizer, double learning_rate)
{
    if (!optimizer)
        return ed_fail(ED_INVALID_ARGUMENT, "optimizer_set_learning_rate: optimizer is NULL"),
               false;
    const ed_kind *kind = &optimizer->class->kind;
    const optim_common wanted = {.learning_rate = learning_rate};
    if (!schema_check_field(kind->name, kind->fields, &wanted)) return false;
    optimizer->common->learning_rate = learning_rate;
    return true;
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
    part.g = (const char *)of->g + offset;
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

/* The slice whose gradient begins at an element of g. */
static optim_part slice_of(const optim_job *job, int64_t at)
{
    optim_part part =
        range_of(&job->part, job->dtype, job->indices[at / job->width] * job->width, job->width);
    part.g = (const char *)job->part.g + (size_t)at * dtype_size(job->dtype);
    return part;
}

static void update_prepared(const pass *p, const optim_job *job, const optim_part *whole)
{
    const ed_optimizer *o = p->optimizer;
    optim_preparation how = {.scale = job->scale,
                             .limit = o->common->clipvalue > 0 ? o->common->clipvalue : INFINITY,
                             .decay = optim_number(job->dtype, o->common->weight_decay),
                             .rate = optim_number(job->dtype, o->common->learning_rate)};
    union {
        float f32[STRIP];
        double f64[STRIP];
    } prepared;
    for (int64_t begin = 0; begin < whole->n; begin += STRIP) {
        int64_t left = whole->n - begin;
        optim_part part = range_of(whole, job->dtype, begin, left < STRIP ? left : STRIP);
        ISA_CALL(optim_prepare)(job->dtype, &how, part.n, part.g, part.w, &prepared);
        part.g = &prepared;
        p->update(job->dtype, &part);
    }
}

static void update_part(const pass *p, const optim_job *job, const optim_part *part)
{
    if (p->prepare)
        update_prepared(p, job, part);
    else
        p->update(job->dtype, part);
}

static void update_piece(const pass *p, int64_t i)
{
    const optim_job *job = job_of(p, i);
    int64_t begin, n = piece_elements(job, i, &begin);
    if (!job->indices) {
        const optim_part part = range_of(&job->part, job->dtype, begin, n);
        update_part(p, job, &part);
        return;
    }
    for (int64_t at = begin; at < begin + n; at += job->width) {
        const optim_part part = slice_of(job, at);
        update_part(p, job, &part);
    }
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
 * as in TensorFlow. */
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

/* For those dtypes that the variables have. */
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

static bool step(ed_optimizer *o, int64_t n_jobs)
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

/* ---- The op ---------------------------------------------------------------------------------- */

/* Operands: each variable followed by its slots in use, in the order of the class; then the
 * gradients; then the indices of those that are slices, ascending. */
#define APPLY_ATTRS(FIELD, T)                                                                      \
    FIELD(T, OBJECT, optimizer, NULL, ED_ANY, "the optimizer")                                     \
    FIELD(T, INTS, slices, ED_NO_LIST, ED_ANY, "the variables whose gradients are slices")
ED_OPTIONS(apply_attrs, APPLY_ATTRS);

static ed_optimizer *optimizer_of(const ed_call *call)
{
    return ((const apply_attrs *)call->attrs)->optimizer;
}

/* The number of operands of a variable, without its gradient. */
static int written_each(const ed_optimizer *o)
{
    return 1 + __builtin_popcount(o->slots);
}

/* A call taken apart: variables' operands, gradients and indices. */
typedef struct applied {
    ed_optimizer *optimizer;
    int each, n;
    ed_tensor *const *written, *const *gradients, *const *indices;
    ed_ints slices; /* the variables of the indices */
} applied;

static bool take_apart(const ed_call *call, applied *a)
{
    *a = (applied){.optimizer = optimizer_of(call),
                   .slices = ((const apply_attrs *)call->attrs)->slices};
    ed_optimizer *o = a->optimizer;
    if (!o || o->made.object.class != &optimizer_class)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the attribute optimizer must be an optimizer, got %s",
                            o ? o->made.object.class->name : "NULL");
    a->each = written_each(o);
    const int64_t whole = call->n_inputs - a->slices.count;
    a->n = (int)(whole / (a->each + 1));
    if (whole < 0 || whole % (a->each + 1))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "got %d operands, expected %d for each variable", call->n_inputs,
                            a->each + 1);
    a->written = call->inputs;
    a->gradients = a->written + a->n * a->each;
    a->indices = a->gradients + a->n;
    return true;
}

/* Whether gradient i is slices of its variable v: the number of its indices; else -1. */
static int slices_at(const applied *a, int i)
{
    for (int64_t k = 0; k < a->slices.count; k++)
        if (a->slices.values[k] == i) return (int)k;
    return -1;
}

static bool are_slices(const ed_tensor *g, const ed_tensor *indices, const ed_tensor *v)
{
    return v->rank && g->rank == v->rank && indices->dtype == ED_INT64 && indices->rank == 1 &&
           indices->shape[0] == g->shape[0] &&
           !memcmp(g->shape + 1, v->shape + 1, (size_t)(v->rank - 1) * sizeof *v->shape);
}

static bool check_operand(const ed_call *call, int i, const ed_tensor *x, const ed_tensor *v,
                          const ed_tensor *indices)
{
    if (ed_dtype_is_float(v->dtype) && x->dtype == v->dtype &&
        (indices ? are_slices(x, indices, v) : tensor_same_shape(x, v)))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "operand %lld is %s, but its variable is %s",
                        text_nth(i), text_of_tensor(x).s, text_of_tensor(v).s);
}

static bool apply_infer(ed_call *call)
{
    applied a;
    if (!take_apart(call, &a)) return false;
    call->n_writes = a.n * a.each;
    for (int i = 0; i < call->n_writes; i++)
        if (!check_operand(call, i, a.written[i], a.written[i / a.each * a.each], NULL))
            return false;
    for (int i = 0; i < a.n; i++) {
        const int k = slices_at(&a, i);
        if (!check_operand(call, call->n_writes + i, a.gradients[i], a.written[i * a.each],
                           k < 0 ? NULL : a.indices[k]))
            return false;
    }
    return room_for_jobs(a.optimizer, a.n);
}

/* No slice may come twice, which two threads would write. */
static bool check_ascending(const ed_call *call, const ed_tensor *indices, int64_t size)
{
    const int64_t *at = (const int64_t *)indices->data;
    for (int64_t i = 0; i < indices->size; i++)
        if (at[i] < (i ? at[i - 1] + 1 : 0) || at[i] >= size)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "indices must ascend within 0..%lld, entry %lld is %lld",
                                (long long)size - 1, text_nth(i), (long long)at[i]);
    return true;
}

static optim_job job_for(const applied *a, int i)
{
    const ed_tensor *w = a->written[i * a->each], *g = a->gradients[i];
    const int k = slices_at(a, i);
    optim_job job = {.dtype = w->dtype, .scale = 1, .piece = PIECE, .width = 1};
    job.part = (optim_part){.n = g->size, .g = g->data, .w = w->data};
    for (int s = 0, at = 1; s < OPTIM_SLOTS; s++)
        if (a->optimizer->slots & 1u << s) job.part.slots[s] = a->written[i * a->each + at++]->data;
    if (k < 0 || !g->size) return job;
    job.indices = (const int64_t *)a->indices[k]->data;
    job.width = g->size / g->shape[0];
    job.piece = job.width < PIECE ? PIECE / job.width * job.width : job.width;
    return job;
}

static bool apply_kernel(ed_call *call)
{
    applied a;
    if (!take_apart(call, &a)) return false;
    for (int64_t k = 0; k < a.slices.count; k++)
        if (!check_ascending(call, a.indices[k], a.written[a.slices.values[k] * a.each]->shape[0]))
            return false;
    for (int i = 0; i < a.n; i++) a.optimizer->jobs[i] = job_for(&a, i);
    return step(a.optimizer, a.n);
}

ED_OP(apply_gradients) = {
    .name = "apply_gradients",
    .doc = "an optimizer's step: variables, each with its slots, and then their gradients",
    .operands = {{"variables", ED_SET_FLOAT | 1 << ED_INT64, .writes = true}},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_CONTIGUOUS | ED_OP_VARIADIC | ED_OP_INTERNAL,
    ED_OP_ATTRS(APPLY_ATTRS, apply_attrs),
    .infer = apply_infer,
    .kernel = apply_kernel,
    .no_gradient = "it updates variables",
};

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool check_pair(const ed_tensor *g, const ed_tensor *v)
{
    if (v->dtype != ED_FLOAT32 && v->dtype != ED_FLOAT64)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "apply_gradients: the variable %s must be float32 or float64, got %s",
                       ed_variable_name(v), text_of_tensor(v).s),
               false;
    if (g->dtype != v->dtype || g->rank != v->rank ||
        memcmp(g->shape, v->shape, (size_t)v->rank * sizeof *v->shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "apply_gradients: the variable %s is %s, but its gradient is %s",
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
            return ed_fail(
                       ED_INVALID_ARGUMENT,
                       "apply_gradients: entry %lld of variables must be a variable, got a tensor",
                       text_nth(i)),
                   false;
        if (!g) continue;
        if (!check_pair(g, v)) return false;
        given++;
    }
    if (!given)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "apply_gradients: all %lld gradients are NULL: does the loss depend on the "
                       "variables?",
                       (long long)variables->size),
               false;
    return true;
}

/* Whether the step changes nothing but the gradient's slices. */
static bool by_slices(const ed_optimizer *o, const ed_tensor *g)
{
    return slices_of(g) && o->common->weight_decay == 0 && (o->common->lazy || !o->slots);
}

/* Adds the gradients, and then the indices of slices, whose variables are noted; the number of
 * operands, 0 on failure. */
static int take_gradients(const ed_optimizer *o, const ed_list *gradients, ed_tensor **operands,
                          int n, int64_t *noted, int64_t *n_noted)
{
    ed_tensor **indices = operands + n;
    int nth = 0;
    for (int64_t i = 0; i < gradients->size; i++) indices += gradients->items[i] != NULL;
    *n_noted = 0;
    for (int64_t i = 0; i < gradients->size; i++) {
        ed_tensor *g = gradients->items[i];
        if (!g) continue;
        if (by_slices(o, g)) {
            if (!(g = ops_slices_unique(g))) return 0;
            indices[*n_noted] = slices_of(g)->indices;
            noted[(*n_noted)++] = nth;
            g = slices_of(g)->values;
        }
        operands[n++] = g;
        nth++;
    }
    return n + (int)*n_noted;
}

/* Writes the operands of a step over those variables that have a gradient; returns their number,
 * 0 on failure. Creates missing entries. */
static int take_operands(ed_optimizer *o, const ed_list *gradients, const ed_list *variables,
                         ed_tensor **operands, int64_t *noted, int64_t *n_noted)
{
    int n = 0;
    int64_t hint = 0;
    for (int64_t i = 0; i < variables->size; i++) {
        if (!gradients->items[i]) continue;
        const optim_entry *e = optim_find(o, variables->items[i], &hint);
        if (!e && !(e = optim_add(o, variables->items[i]))) return 0;
        operands[n++] = e->variable;
        for (int s = 0; s < OPTIM_SLOTS; s++)
            if (e->slots[s]) operands[n++] = e->slots[s];
    }
    return take_gradients(o, gradients, operands, n, noted, n_noted);
}

bool ed_apply_gradients(ed_optimizer *optimizer, ed_list *gradients, ed_list *variables)
{
    if (NULL_GIVEN("apply_gradients", optimizer, gradients, variables)) return false;
    if (!check_lists(gradients, variables)) return false;
    ED_SCOPE;
    const int64_t before = optimizer->n_entries;
    const int64_t most = variables->size * (written_each(optimizer) + 2);
    if (most > INT_MAX)
        return ed_fail(ED_OUT_OF_MEMORY, "apply_gradients: %lld variables are too many",
                       (long long)variables->size),
               false;
    ed_tensor **operands =
        memory_alloc((size_t)most * sizeof *operands + (size_t)variables->size * sizeof(int64_t));
    int64_t *noted = operands ? (int64_t *)(operands + most) : NULL, n_noted = 0;
    int n =
        operands ? take_operands(optimizer, gradients, variables, operands, noted, &n_noted) : 0;
    bool ok = n && ed_execute(&ed_op_apply_gradients, operands, n,
                              ED_ATTRS(APPLY_ATTRS, apply_attrs, .optimizer = optimizer,
                                       .slices = {noted, n_noted}),
                              NULL);
    memory_free(operands);
    if (!ok) optim_unmade(optimizer, before);
    if (!ok) optim_drop_entries(optimizer, before);
    return ok;
}

static ed_list *trained_variables(ed_tape *tape, void *trained)
{
    if (!trained) return ed_tape_watched_variables(tape);
    const object_class *class = ((const ed_object *)trained)->class;
    if (class == &tensor_list_class) return trained;
    if (class == &tensor_variable_class) return ed_list_of_one(trained);
    if (class->trainable) return class->trainable(trained);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "minimize: trained must be a layer, a list of variables, a variable or NULL, "
                   "got %s",
                   class->name);
}

bool(ed_minimize)(ed_optimizer *optimizer, ed_tape *tape, ed_tensor *loss, void *trained)
{
    if (NULL_GIVEN("minimize", optimizer, tape, loss)) return false;
    if (!trained && ed_failed()) return false; /* the call that returns `trained` failed */
    ED_SCOPE;
    ed_list *variables = trained_variables(tape, trained);
    if (!variables) return false;
    if (!variables->size)
        return ed_fail(ED_INVALID_ARGUMENT, "minimize: there are no variables to train"), false;
    return ed_apply_gradients(optimizer, ed_gradient(tape, loss, variables), variables);
}
