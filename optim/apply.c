#include "ops/execute.h"
#include "ops/ops.h"
#include "ops/slices.h"
#include "optim/optimizer.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/*
 * A step is one call of one op, which writes all variables and their slots. All that may fail comes
 * before the first change: ed_apply_gradients checks the lists and creates missing slots, which it
 * removes again if the call fails; the dispatcher allocates new buffers where a value is shared,
 * and makes gradients contiguous; the kernel is one pass over all variables (pass.c).
 */

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
 * gradients; then of those that are slices what ops_slices_chains gives. */
#define APPLY_ATTRS(FIELD, T)                                                                      \
    FIELD(T, OBJECT, optimizer, NULL, ED_ANY, "the optimizer")                                     \
    FIELD(T, FLOATS, multipliers, ED_NO_LIST, ED_ANY, "of the learning rate; default: 1")          \
    FIELD(T, FLOATS, decays, ED_NO_LIST, ED_ANY, "weight decays; default: that of all")            \
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
    ed_floats multipliers, decays;
} applied;

static bool take_apart(const ed_call *call, applied *a)
{
    const apply_attrs *attrs = call->attrs;
    *a = (applied){.optimizer = optimizer_of(call),
                   .slices = attrs->slices,
                   .multipliers = attrs->multipliers,
                   .decays = attrs->decays};
    ed_optimizer *o = a->optimizer;
    if (!o || o->made.object.class != &optim_object)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the attribute optimizer must be an optimizer, got %s",
                            o ? o->made.object.class->name : "NULL");
    if (o->class->whole)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s steps otherwise", o->class->kind.name);
    a->each = written_each(o);
    const int64_t whole = call->n_inputs - a->slices.count;
    a->n = (int)(whole / (a->each + 1));
    if (whole < 0 || whole % (a->each + 1))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "got %d operands, expected %d for each variable", call->n_inputs,
                            a->each + 1);
    if ((a->multipliers.values && a->multipliers.count != a->n) ||
        (a->decays.values && a->decays.count != a->n))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "got %lld multipliers and %lld decays for %d variables",
                            (long long)a->multipliers.count, (long long)a->decays.count, a->n);
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
    return v->rank && g->rank == v->rank && indices->dtype == ED_INT64 && indices->rank == 2 &&
           indices->shape[0] == 2 && indices->shape[1] == g->shape[0] &&
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

/* Chains lead on, and to slices that are there. */
static bool check_chains(const ed_call *call, const ed_tensor *chains, int64_t size)
{
    const int64_t n = chains->shape[1];
    const int64_t *at = (const int64_t *)chains->data, *next = at + n;
    for (int64_t i = 0; i < n; i++)
        if (at[i] < -1 || at[i] >= size || next[i] >= n || (next[i] <= i && next[i] != -1))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "slice %lld of %lld has index %lld of %lld and is followed by %lld",
                                text_nth(i), (long long)n, (long long)at[i], (long long)size,
                                (long long)next[i]);
    return true;
}

static optim_job job_for(const applied *a, int i)
{
    const ed_tensor *w = a->written[i * a->each], *g = a->gradients[i];
    const int k = slices_at(a, i);
    optim_job job = {.dtype = w->dtype,
                     .piece = optim_piece(1),
                     .width = 1,
                     .multiplier = a->multipliers.values ? a->multipliers.values[i] : 1,
                     .decay = a->decays.values ? a->decays.values[i]
                                               : a->optimizer->common->weight_decay};
    job.part =
        (optim_part){.n = g->size, .left = g->size, .g = g->data, .source = g->data, .w = w->data};
    for (int s = 0, at = 1; s < OPTIM_SLOTS; s++)
        if (a->optimizer->slots & 1u << s) job.part.slots[s] = a->written[i * a->each + at++]->data;
    if (k < 0 || !g->size) return job;
    job.indices = (const int64_t *)a->indices[k]->data;
    job.next = job.indices + g->shape[0];
    job.width = g->size / g->shape[0];
    job.piece = optim_piece(job.width);
    return job;
}

static bool apply_kernel(ed_call *call)
{
    applied a;
    if (!take_apart(call, &a)) return false;
    for (int64_t k = 0; k < a.slices.count; k++)
        if (!check_chains(call, a.indices[k], a.written[a.slices.values[k] * a.each]->shape[0]))
            return false;
    for (int i = 0; i < a.n; i++) a.optimizer->jobs[i] = job_for(&a, i);
    return optim_pass(a.optimizer, a.n);
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
    if (!slices_of(g) || o->common->weight_decay > 0 || o->slots >> OPTIM_OWN) return false;
    return o->common->lazy || !o->slots;
}

/* Whether norms are taken, of the sums of slices with the same index. */
static bool needs_sums(const ed_optimizer *o)
{
    const optim_common *c = o->common;
    return c->clipnorm > 0 || c->global_clipnorm > 0 || c->dynamic_loss_scale;
}

/* Adds the gradients, and then the chains of slices, whose variables are noted; the number of
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
            if (needs_sums(o) && !(g = ops_slices_unique(g))) return 0;
            if (!(indices[*n_noted] = ops_slices_chains(g))) return 0;
            noted[(*n_noted)++] = nth;
            g = slices_of(g)->values;
        }
        operands[n++] = g;
        nth++;
    }
    return n + (int)*n_noted;
}

/* What a step needs beside the lists, in one piece of memory. */
typedef struct step_room {
    optim_entry **entries; /* of the variables that have a gradient */
    int64_t n, n_slices;
    ed_tensor **operands;
    int64_t *slices;
    double *multipliers, *decays;
} step_room;

static bool room_for_step(step_room *r, const ed_optimizer *o, int64_t n)
{
    const int64_t most = n * (written_each(o) + 2);
    if (most > INT_MAX)
        return ed_fail(ED_OUT_OF_MEMORY, "apply_gradients: %lld variables are too many",
                       (long long)n),
               false;
    const size_t each = (size_t)most * sizeof *r->operands +
                        (size_t)n * (sizeof *r->entries + sizeof(int64_t) + 2 * sizeof(double));
    *r = (step_room){.operands = memory_alloc(each)};
    if (!r->operands) return false;
    r->entries = (optim_entry **)(r->operands + most);
    r->slices = (int64_t *)(r->entries + n);
    r->multipliers = (double *)(r->slices + n);
    r->decays = r->multipliers + n;
    return true;
}

/* The entries, of which the missing ones are created; false, with an error, on failure. */
static bool take_entries(ed_optimizer *o, const ed_list *gradients, const ed_list *variables,
                         step_room *r)
{
    int64_t hint = 0;
    for (int64_t i = 0; i < variables->size; i++)
        if (gradients->items[i] && !optim_find(o, variables->items[i], &hint) &&
            !optim_add(o, variables->items[i]))
            return false;
    hint = 0;
    for (int64_t i = 0; i < variables->size; i++)
        if (gradients->items[i]) r->entries[r->n++] = optim_find(o, variables->items[i], &hint);
    return true;
}

/* Writes the operands of a step; returns their number, 0 on failure. */
static int take_operands(const ed_optimizer *o, const ed_list *gradients, step_room *r)
{
    int n = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const optim_entry *e = r->entries[i];
        r->operands[n++] = e->variable;
        for (int s = 0; s < OPTIM_SLOTS; s++)
            if (e->slots[s]) r->operands[n++] = e->slots[s];
        r->multipliers[i] = e->multiplier;
        r->decays[i] = e->decay;
    }
    return take_gradients(o, gradients, r->operands, n, r->slices, &r->n_slices);
}

static bool apply_elementwise(ed_optimizer *o, const ed_list *gradients, step_room *r)
{
    const int n = take_operands(o, gradients, r);
    const bool plain = !o->n_settings && !o->n_undecayed && !o->class->decay;
    return n && ed_execute(&ed_op_apply_gradients, r->operands, n,
                           ED_ATTRS(APPLY_ATTRS, apply_attrs, .optimizer = o,
                                    .slices = {r->slices, r->n_slices},
                                    .multipliers = {plain ? NULL : r->multipliers, r->n},
                                    .decays = {plain ? NULL : r->decays, r->n}),
                           NULL);
}

/* ---- Constraints ----------------------------------------------------------------------------- */

/* What a call changes, held so that it can be undone: values that are held are not written. */
typedef struct held {
    ed_tensor **values; /* of each variable and its slots */
    int64_t iterations, finite_steps;
    double scale;
} held;

static bool hold_values(held *h, const ed_optimizer *o, const step_room *r)
{
    *h = (held){.values = memory_zalloc((size_t)r->n * (1 + OPTIM_SLOTS) * sizeof *h->values),
                .iterations = o->iterations,
                .finite_steps = o->finite_steps,
                .scale = o->scale};
    for (int64_t i = 0; h->values && i < r->n; i++) {
        const optim_entry *e = r->entries[i];
        ed_tensor **to = h->values + i * (1 + OPTIM_SLOTS);
        to[OPTIM_SLOTS] = ed_retain(tensor_value(e->variable));
        for (int s = 0; s < OPTIM_SLOTS; s++)
            if (e->slots[s]) to[s] = ed_retain(tensor_value(e->slots[s]));
    }
    return h->values;
}

/* Back to what is held, or gives it up. */
static void let_go(held *h, ed_optimizer *o, const step_room *r, bool back)
{
    for (int64_t i = 0; i < r->n; i++) {
        const optim_entry *e = r->entries[i];
        for (int s = 0; s <= OPTIM_SLOTS; s++) {
            ed_tensor *value = h->values[i * (1 + OPTIM_SLOTS) + s];
            if (back && value)
                variable_replace(s == OPTIM_SLOTS ? e->variable : e->slots[s], value);
            else
                ed_release(value);
        }
    }
    memory_free(h->values);
    if (!back) return;
    o->iterations = h->iterations;
    o->finite_steps = h->finite_steps;
    o->scale = h->scale;
}

static bool constrain_all(const step_room *r)
{
    for (int64_t i = 0; i < r->n; i++) {
        ed_tensor *v = r->entries[i]->variable;
        ed_constraint *constraint = ed_variable_constraint(v);
        if (!constraint) continue;
        ed_tensor *value = ed_constrain(constraint, ed_value(v));
        if (!value || !ed_assign(v, value)) return false;
    }
    return true;
}

static bool apply_constrained(ed_optimizer *o, const ed_list *gradients, step_room *r)
{
    held h;
    if (!hold_values(&h, o, r)) return false;
    const bool ok = apply_elementwise(o, gradients, r) && constrain_all(r);
    let_go(&h, o, r, !ok);
    return ok;
}

/* ---------------------------------------------------------------------------------------------- */

static bool apply_to_entries(ed_optimizer *o, const ed_list *gradients, step_room *r)
{
    if (o->class->whole) return optim_apply_whole(o, gradients, r->entries, r->n);
    for (int64_t i = 0; i < r->n; i++)
        if (ed_variable_constraint(r->entries[i]->variable))
            return apply_constrained(o, gradients, r);
    return apply_elementwise(o, gradients, r);
}

bool ed_apply_gradients(ed_optimizer *optimizer, ed_list *gradients, ed_list *variables)
{
    if (NULL_GIVEN("apply_gradients", optimizer, gradients, variables)) return false;
    if (!check_lists(gradients, variables)) return false;
    ED_SCOPE;
    const int64_t before = optimizer->n_entries;
    step_room r;
    if (!room_for_step(&r, optimizer, variables->size)) return false;
    const bool ok = take_entries(optimizer, gradients, variables, &r) &&
                    apply_to_entries(optimizer, gradients, &r);
    memory_free(r.operands);
    if (!ok) optim_unmade(optimizer, before);
    if (!ok) optim_drop_entries(optimizer, before);
    return ok;
}

ed_list *optim_trained(const char *who, ed_tape *tape, void *trained)
{
    if (!trained) return ed_tape_watched_variables(tape);
    const object_class *class = ((const ed_object *)trained)->class;
    if (class == &tensor_list_class) return trained;
    if (class == &tensor_variable_class) return ed_list_of_one(trained);
    if (class->trainable) return class->trainable(trained);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s: trained must be a layer, a list of variables, a variable or NULL, got %s",
                   who, class->name);
}

bool(ed_minimize)(ed_optimizer *optimizer, ed_tape *tape, ed_tensor *loss, void *trained)
{
    if (NULL_GIVEN("minimize", optimizer, tape, loss)) return false;
    if (!trained && ed_failed()) return false; /* the call that returns `trained` failed */
    ED_SCOPE;
    ed_list *variables = optim_trained("minimize", tape, trained);
    if (!variables) return false;
    if (!variables->size)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "minimize: there are no variables to train; those of a layer that is not "
                       "trainable are left out"),
               false;
    const double scale = optim_loss_scale(optimizer);
    ed_list *scales =
        scale == 1 ? NULL : ed_list_of_one(ed_full(ed_shape(loss), scale, .dtype = loss->dtype));
    if (scale != 1 && !scales) return false;
    ed_list *gradients = ed_gradient(tape, loss, variables, .output_gradients = scales);
    return ed_apply_gradients(optimizer, gradients, variables);
}
