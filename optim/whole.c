#include "ops/execute.h"
#include "ops/ops.h"
#include "ops/slices.h"
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>

/*
 * Steps of optimizers that need all of a variable at once: norms of it, its rows and columns,
 * products. The next values of all variables and slots are computed by public ops; one call of an
 * op then writes them. So nothing has changed if one of them fails. What pass.c does to a strip of
 * elements is done here to whole tensors.
 */

/* ---- The op ---------------------------------------------------------------------------------- */

#define VALUES_ATTRS(FIELD, T) FIELD(T, OBJECT, optimizer, NULL, ED_ANY, "the optimizer")
ED_OPTIONS(values_attrs, VALUES_ATTRS);

static bool values_infer(ed_call *call)
{
    const int n = call->n_inputs / 2;
    const ed_optimizer *o = ((const values_attrs *)call->attrs)->optimizer;
    if (!o || o->made.object.class != &optim_object || call->n_inputs % 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the attribute optimizer must be an optimizer, and there must be as "
                            "many values as variables, got %d operands",
                            call->n_inputs);
    call->n_writes = n;
    for (int i = 0; i < n; i++)
        if (call->inputs[i]->dtype != call->inputs[n + i]->dtype ||
            !tensor_same_shape(call->inputs[i], call->inputs[n + i]))
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "the variable %s becomes %s",
                                text_of_tensor(call->inputs[i]).s,
                                text_of_tensor(call->inputs[n + i]).s);
    return true;
}

static bool values_kernel(ed_call *call)
{
    const int n = call->n_inputs / 2;
    for (int i = 0; i < n; i++) {
        const ed_tensor *x = call->inputs[n + i];
        memcpy(call->inputs[i]->data, x->data, (size_t)x->size * dtype_size(x->dtype));
    }
    ((ed_optimizer *)((const values_attrs *)call->attrs)->optimizer)->iterations++;
    return true;
}

ED_OP(apply_values) = {
    .name = "apply_values",
    .doc = "an optimizer's step: variables and slots, and then their next values",
    .operands = {{"variables", ED_SET_FLOAT, .writes = true}},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_CONTIGUOUS | ED_OP_VARIADIC | ED_OP_INTERNAL,
    ED_OP_ATTRS(VALUES_ATTRS, values_attrs),
    .infer = values_infer,
    .kernel = values_kernel,
    .no_gradient = "it updates variables",
};

/* ---- A call ---------------------------------------------------------------------------------- */

/* The variables' gradients, and what is written. */
typedef struct whole_call {
    ed_optimizer *o;
    optim_entry *const *entries;
    int64_t n;
    double rate;
    ed_tensor **g;
    ed_tensor **variables, **values; /* pairs */
    int64_t n_pairs;
} whole_call;

static void put(whole_call *c, ed_tensor *v, ed_tensor *value)
{
    c->variables[c->n_pairs] = v;
    c->values[c->n_pairs++] = value;
}

/* Gradients without the loss's scale. */
static bool unscale(whole_call *c, const ed_list *gradients)
{
    const double scale = optim_loss_scale(c->o);
    int64_t n = 0;
    for (int64_t i = 0; i < gradients->size; i++) {
        ed_tensor *g = gradients->items[i];
        if (!g) continue;
        if (slices_of(g) || scale != 1) g = ed_mul(g, 1 / scale);
        if (!(c->g[n++] = g)) return false;
    }
    return true;
}

/* Adds what earlier calls have summed. */
static bool accumulate(whole_call *c)
{
    const bool steps = optim_steps_next(c->o);
    for (int64_t i = 0; i < c->n; i++) {
        ed_tensor *sum = c->entries[i]->slots[OPTIM_SUM];
        ed_tensor *g = ed_add(c->g[i], sum);
        if (steps) g = ed_div(g, (double)optim_calls(c->o));
        ed_tensor *next = steps ? ed_zeros_like(sum) : g;
        if (!g || !next) return false;
        put(c, sum, next);
        c->g[i] = g;
    }
    return true;
}

static bool clip(whole_call *c)
{
    const optim_common *o = c->o->common;
    ed_list *all = o->global_clipnorm > 0
                       ? ed_clip_by_global_norm(ed_list_make(c->g, c->n), o->global_clipnorm, NULL)
                       : NULL;
    if (o->global_clipnorm > 0 && !all) return false;
    for (int64_t i = 0; i < c->n; i++) {
        if (all) c->g[i] = ed_list_get(all, i);
        if (o->clipnorm > 0) c->g[i] = ed_clip_by_norm(c->g[i], o->clipnorm);
        if (o->clipvalue > 0)
            c->g[i] = ed_maximum(ed_minimum(c->g[i], o->clipvalue), -o->clipvalue);
        if (!c->g[i]) return false;
    }
    return true;
}

/* The next average, and the value that the variable has then. */
static ed_tensor *average(whole_call *c, const optim_entry *e, ed_tensor *w)
{
    if (!e->slots[OPTIM_AVERAGE]) return w;
    const double momentum = optim_ema_momentum(c->o);
    ed_tensor *next = ed_add(ed_mul(e->slots[OPTIM_AVERAGE], momentum), ed_mul(w, 1 - momentum));
    if (next) put(c, e->slots[OPTIM_AVERAGE], next);
    return next && optim_ema_overwrites(c->o) ? next : next ? w : NULL;
}

static bool finish_one(whole_call *c, const optim_entry *e, ed_tensor *w)
{
    ed_constraint *constraint = ed_variable_constraint(e->variable);
    if (!(w = average(c, e, w))) return false;
    if (constraint && !(w = ed_constrain(constraint, w))) return false;
    put(c, e->variable, w);
    return true;
}

static bool step_one(whole_call *c, int64_t i)
{
    const optim_entry *e = c->entries[i];
    const double rate = optim_number(e->variable->dtype, c->rate * e->multiplier);
    optim_whole x = {.variable = e->variable,
                     .g = c->g[i],
                     .w = ed_value(e->variable),
                     .rate = rate,
                     .step = optim_steps(c->o) + 1};
    x.decay = e->decay;
    if (e->decay > 0 && !c->o->class->own_decay)
        x.w = ed_sub(x.w, ed_mul(ed_mul(x.w, e->decay), rate));
    for (int s = 0; s < OPTIM_OWN; s++)
        if (e->slots[s]) x.slots[s] = ed_value(e->slots[s]);
    if (!x.w || !c->o->class->whole(c->o, &x) || !x.w) return false;
    for (int s = 0; s < OPTIM_OWN; s++) {
        if (!e->slots[s]) continue;
        if (!x.slots[s]) return false;
        put(c, e->slots[s], x.slots[s]);
    }
    return finish_one(c, e, x.w);
}

static bool is_finite(const whole_call *c, bool *finite)
{
    *finite = true;
    for (int64_t i = 0; i < c->n && *finite; i++) {
        ed_tensor *squares = ops_slices_square_sum(c->g[i]);
        if (!squares) return false;
        *finite = isfinite(ed_item(squares));
    }
    return true;
}

static bool next_values(whole_call *c)
{
    if (optim_calls(c->o) > 1 && !accumulate(c)) return false;
    if (!optim_steps_next(c->o)) {
        for (int64_t i = 0; i < c->n; i++)
            if (!finish_one(c, c->entries[i], ed_value(c->entries[i]->variable))) return false;
        return true;
    }
    if (!clip(c)) return false;
    for (int64_t i = 0; i < c->n; i++)
        if (!step_one(c, i)) return false;
    return true;
}

static bool write_all(const whole_call *c)
{
    memcpy(c->variables + c->n_pairs, c->values, (size_t)c->n_pairs * sizeof *c->values);
    return ed_execute(&ed_op_apply_values, c->variables, (int)(2 * c->n_pairs),
                      ED_ATTRS(VALUES_ATTRS, values_attrs, .optimizer = c->o), NULL);
}

bool optim_apply_whole(ed_optimizer *o, const ed_list *gradients, optim_entry *const *entries,
                       int64_t n)
{
    ED_SCOPE;
    const int64_t most = n * (1 + OPTIM_SLOTS);
    ed_tensor **room = ed_scope_alloc((size_t)(n + 3 * most) * sizeof *room);
    whole_call c = {.o = o, .entries = entries, .n = n, .rate = optim_rate(o), .g = room};
    if (!room || isnan(c.rate)) return false;
    c.variables = room + n;
    c.values = c.variables + 2 * most;
    bool finite = true;
    if (!unscale(&c, gradients)) return false;
    if (o->common->dynamic_loss_scale && !is_finite(&c, &finite)) return false;
    if (finite && (!next_values(&c) || !write_all(&c))) return false;
    if (o->common->dynamic_loss_scale) optim_note_finite(o, finite);
    return true;
}
