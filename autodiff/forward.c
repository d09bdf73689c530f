#include "autodiff/tape.h"
#include <string.h>

/*
 * Forward mode. An accumulator is a tape that watches the primals, and a tangent for each of its
 * slots. A tangent that is asked for is computed over the nodes that lead to it, forward, each
 * once.
 *
 * Of one node, with outputs y and inputs x, the op's gradient function gives dx = J^T u for any u.
 * That is linear in u, so its own gradient by u, for the gradients t of dx, is J t: the tangents of
 * y for the tangents t of x. So no op needs a rule of its own.
 */

struct ed_forward_accumulator {
    ed_object object;
    ed_tape *tape;        /* retained; nobody else has it */
    ed_tensor **tangents; /* of the slots, retained; NULL: zero, if it is done */
    bool *done;           /* slots */
    int32_t n_slots;      /* with room in both */
    bool running;
};

static void accumulator_destroy(void *object)
{
    ed_forward_accumulator *self = object;
    for (int32_t i = 0; i < self->n_slots; i++) ed_release(self->tangents[i]);
    memory_free(self->tangents);
    memory_free(self->done);
    ed_release(self->tape);
    memory_free(self);
}

static const object_class accumulator_class = {.name = "forward_accumulator",
                                               .destroy = accumulator_destroy};

/* Room for the present slots. */
static bool grow_slots(ed_forward_accumulator *self)
{
    const size_t old = (size_t)self->n_slots, n = (size_t)self->tape->n_slots;
    if (n <= old) return true;
    ed_tensor **tangents = memory_zalloc(n * sizeof *tangents);
    bool *done = tangents ? memory_zalloc(n) : NULL;
    if (!done) return memory_free(tangents), false;
    if (old) {
        memcpy(tangents, self->tangents, old * sizeof *tangents);
        memcpy(done, self->done, old);
    }
    memory_free(self->tangents);
    memory_free(self->done);
    self->tangents = tangents;
    self->done = done;
    self->n_slots = (int32_t)n;
    return true;
}

/* ---- Primals --------------------------------------------------------------------------------- */

static bool add_primal(ed_forward_accumulator *self, ed_tensor *primal, ed_tensor *tangent,
                       int64_t i)
{
    static const char who[] = "forward_accumulator";
    if (!primal)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: primal %lld is NULL", who, text_nth(i)), false;
    if (!tape_check_seed(who, "tangent", "primal", tangent, primal, i)) return false;
    if (tape_slot_of(self->tape, primal) >= 0)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: primal %lld is given twice", who, text_nth(i)),
               false;
    ed_tensor *t = ed_watch(self->tape, primal) ? tape_seed(tangent, primal) : NULL;
    if (!t || !grow_slots(self)) return false;
    const int32_t slot = tape_slot_of(self->tape, primal);
    self->tangents[slot] = ed_retain(t);
    self->done[slot] = true;
    return true;
}

static bool add_primals(ed_forward_accumulator *self, ed_list *primals, ed_list *tangents)
{
    self->tape = ed_retain(ed_tape_begin(.persistent = true, .ignore_accessed_variables = true));
    if (!self->tape) return false;
    self->tape->forward = true;
    self->tape->listener.differentiates = 2; /* the gradient of the gradient */
    self->tape->paused = true;               /* while tangents are made */
    for (int64_t i = 0; i < primals->size; i++)
        if (!add_primal(self, primals->items[i], tangents->items[i], i)) return false;
    self->tape->paused = false;
    return true;
}

ed_forward_accumulator *ed_forward_accumulator_begin(ed_list *primals, ed_list *tangents)
{
    if (NULL_GIVEN("forward_accumulator", primals, tangents)) return NULL;
    if (primals->size != tangents->size)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "forward_accumulator: got %lld tangents for %lld primals",
                       (long long)tangents->size, (long long)primals->size);
    ED_SCOPE;
    ed_forward_accumulator *self = object_new(&accumulator_class, sizeof *self);
    if (!scope_give(self) || !add_primals(self, primals, tangents)) return NULL;
    return ed_keep(self);
}

bool ed_forward_accumulator_stop(ed_forward_accumulator *self)
{
    if (NULL_GIVEN("forward_accumulator_stop", self)) return false;
    if (!tape_is_ours(self->tape, "forward_accumulator_stop")) return false;
    if (!self->tape->recording)
        return ed_fail(ED_FAILED_PRECONDITION, "forward_accumulator_stop: it is stopped already"),
               false;
    tape_stop(self->tape);
    return true;
}

/* ---- One node -------------------------------------------------------------------------------- */

/* What is known of a node while its tangents are computed: arrays of its inputs and outputs. */
typedef struct step {
    const tape_node *node;
    ed_tape *tape;
    ed_tensor **tangents; /* of the inputs */
    ed_tensor **u, **dx;
    bool *needs;
} step;

/*
 * A cotangent. Its elements are of no use, as what is linear in it has a gradient that does not
 * depend on it, so no kernel runs for what is made of it (TENSOR_HOLLOW). Only functions that may
 * look at it get one with elements.
 */
static ed_tensor *cotangent(const ed_op *op, ed_dtype dtype, ed_ints shape)
{
    if (tape_looks_at_dy(op)) return ed_ones(shape, .dtype = dtype);
    ed_tensor *u = scope_give(tensor_new(dtype, (int)shape.count, shape.values));
    if (u) u->flags |= TENSOR_HOLLOW;
    return u;
}

/* A cotangent for each float output, watched by the step's tape. */
static bool make_cotangents(step *s)
{
    const tape_node *node = s->node;
    for (int i = 0; i < node->n_outputs; i++) {
        const int at = node->n_inputs + i;
        s->u[i] = NULL;
        if (node->slots[at] < 0) continue;
        s->u[i] = cotangent(node->op, node->dtypes[at], node->shapes[at]);
        if (!s->u[i] || !ed_watch(s->tape, s->u[i])) return false;
    }
    return true;
}

/* dx = J^T u, recorded. */
static bool pull_back(step *s)
{
    const tape_node *node = s->node;
    for (int i = 0; i < node->n_inputs; i++) {
        s->needs[i] = s->tangents[i];
        s->dx[i] = NULL;
    }
    return tape_call_gradient(node, &(ed_gradient_call){
                                        .op = node->op,
                                        .attrs = node->attrs,
                                        .n_inputs = node->n_inputs,
                                        .n_outputs = node->n_outputs,
                                        .inputs = node->saved,
                                        .outputs = node->saved + node->n_inputs,
                                        .dy = s->u,
                                        .dx = s->dx,
                                        .needs = s->needs,
                                        .shapes = node->shapes,
                                        .dtypes = node->dtypes,
                                    });
}

/* The tensors of `list` where `where` has one. */
static ed_list *those(ed_tensor *const *list, ed_tensor *const *where, int n)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++) count += where[i] != NULL;
    ed_list *some = list_new(count);
    count = 0;
    for (int i = 0; some && i < n; i++)
        if (where[i]) some->items[count++] = ed_retain(list[i]);
    return scope_give(some);
}

/* J t for the outputs: the gradient by u of dx for t. NULL entries are zero. */
static ed_list *transpose(const step *s)
{
    const tape_node *node = s->node;
    ed_list *targets = those(s->dx, s->dx, node->n_inputs),
            *sources = those(s->u, s->u, node->n_outputs),
            *seeds = those(s->tangents, s->dx, node->n_inputs);
    if (!targets || !sources || !seeds) return NULL;
    return ed_gradient_list(s->tape, targets, sources,
                            &(ed_gradient_options){.output_gradients = seeds});
}

static bool run_step(ed_forward_accumulator *self, step *s)
{
    const tape_node *node = s->node;
    s->tape = ed_tape_begin(.ignore_accessed_variables = true);
    if (!s->tape || !make_cotangents(s) || !pull_back(s)) return false;
    ed_list *results = transpose(s);
    if (!results) return false;
    for (int64_t i = 0; i < results->size; i++)
        if (results->items[i] && results->items[i]->flags & TENSOR_HOLLOW)
            return ed_fail(ED_UNIMPLEMENTED, "jvp: the gradient function of %s is not linear in dy",
                           node->op->name),
                   false;
    for (int64_t i = 0, n = 0; i < node->n_outputs; i++)
        if (s->u[i])
            self->tangents[node->slots[node->n_inputs + i]] = ed_retain(results->items[n++]);
    return true;
}

static bool run_node(ed_forward_accumulator *self, const tape_node *node)
{
    ED_SCOPE;
    const size_t n = (size_t)node->n_inputs, m = (size_t)node->n_outputs;
    ed_tensor **room = ed_scope_alloc((2 * n + m) * sizeof *room + n);
    if (!room) return false;
    step s = {.node = node,
              .tangents = room,
              .dx = room + n,
              .u = room + 2 * n,
              .needs = (bool *)(room + 2 * n + m)};
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        s.tangents[i] = node->slots[i] < 0 ? NULL : self->tangents[node->slots[i]];
        any |= s.tangents[i] != NULL;
    }
    if (any && !node->op->gradient) return tape_fail_no_gradient("jvp", node);
    return !any || run_step(self, &s);
}

/* ---- The way to the targets ------------------------------------------------------------------ */

static bool has_output(const tape_node *node, const bool *needed)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const int32_t slot = node->slots[node->n_inputs + i];
        if (slot >= 0 && needed[slot]) return true;
    }
    return false;
}

/* Marks what the targets need and is not known yet. */
static void mark_needed(const ed_forward_accumulator *self, bool *needed)
{
    for (const tape_node *node = self->tape->last; node; node = node->previous) {
        if (!has_output(node, needed)) continue;
        for (int i = 0; i < node->n_inputs; i++)
            if (node->slots[i] >= 0 && !self->done[node->slots[i]]) needed[node->slots[i]] = true;
    }
}

static bool run_needed(ed_forward_accumulator *self, const bool *needed)
{
    for (const tape_node *node = self->tape->first; node; node = node->next) {
        if (!has_output(node, needed)) continue;
        if (!run_node(self, node)) return false;
        for (int i = 0; i < node->n_outputs; i++) {
            const int32_t slot = node->slots[node->n_inputs + i];
            if (slot >= 0) self->done[slot] = true;
        }
    }
    return true;
}

static bool compute_tangents(ed_forward_accumulator *self, const ed_list *targets)
{
    if (!grow_slots(self)) return false;
    bool *needed = ed_scope_alloc((size_t)self->n_slots + 1);
    if (!needed) return false;
    memset(needed, 0, (size_t)self->n_slots);
    for (int64_t i = 0; i < targets->size; i++) {
        const int32_t slot = tape_slot_of(self->tape, targets->items[i]);
        if (slot >= 0 && !self->done[slot]) needed[slot] = true;
    }
    mark_needed(self, needed);
    return run_needed(self, needed);
}

static ed_tensor *tangent_of(const ed_forward_accumulator *self, ed_tensor *target, bool zeros)
{
    const int32_t slot = tape_slot_of(self->tape, target);
    ed_tensor *t = slot >= 0 ? self->tangents[slot] : NULL;
    if (t || !zeros) return t;
    return ed_zeros(((ed_ints){target->shape, target->rank}), .dtype = target->dtype);
}

static bool collect_tangents(ed_forward_accumulator *self, const ed_list *targets, bool zeros,
                             ed_list *result)
{
    error_unconnected(0, NULL);
    for (int64_t i = targets->size - 1; i >= 0; i--) {
        ed_tensor *t = tangent_of(self, targets->items[i], zeros);
        if (!t && zeros) return false;
        result->items[i] = ed_retain(t);
    }
    return true;
}

static bool check_accumulator(const ed_forward_accumulator *self, const ed_list *targets)
{
    static const char who[] = "jvp";
    if (NULL_GIVEN(who, self, targets) || !tape_is_ours(self->tape, who)) return false;
    for (int64_t i = 0; i < targets->size; i++)
        if (!tape_check_target(who, targets->items[i], i)) return false;
    if (self->running)
        return ed_fail(ED_FAILED_PRECONDITION,
                       "jvp: a function that it calls asks for a JVP again"),
               false;
    if (self->tape->broken)
        return ed_fail(ED_OUT_OF_MEMORY, "jvp: out of memory while the accumulator recorded"),
               false;
    return true;
}

ed_list *ed_forward_jvp_list(ed_forward_accumulator *self, ed_list *targets,
                             const ed_jvp_options *options)
{
    if (!check_accumulator(self, targets)) return NULL;
    ED_SCOPE;
    ed_list *result = scope_give(list_new(targets->size));
    if (!result || !ed_scope_hold(self)) return NULL;
    self->running = self->tape->paused = true;
    const bool ok = compute_tangents(self, targets) &&
                    collect_tangents(self, targets, options && options->unconnected_zeros, result);
    self->running = self->tape->paused = false;
    return ok ? ed_keep(result) : NULL;
}

ed_tensor *ed_forward_jvp_tensor(ed_forward_accumulator *self, ed_tensor *target,
                                 const ed_jvp_options *options)
{
    if (NULL_GIVEN("jvp", self, target)) return NULL;
    ED_SCOPE;
    ed_list *targets = ed_list_of_one(target);
    ed_list *list = targets ? ed_forward_jvp_list(self, targets, options) : NULL;
    if (!list || !list->items[0]) return NULL;
    return ed_keep(scope_give(ed_retain(list->items[0])));
}

/* ---- Of a function --------------------------------------------------------------------------- */

static ed_tensor *call_jvp(ed_function f, ed_list *primals, ed_list *tangents, void *user,
                           ed_tensor **value)
{
    ed_forward_accumulator *accumulator = ed_forward_accumulator_begin(primals, tangents);
    if (!accumulator) return NULL;
    const error_before before = error_begin();
    ed_tensor *y = SCOPE_GUARDED(f(primals, user));
    if (!y && error_is_missing(before))
        ed_fail(ED_INVALID_ARGUMENT, "jvp: the function returned NULL without an error");
    if (!y || error_since(before)) return NULL;
    tape_stop(accumulator->tape);
    *value = y;
    return ed_forward_jvp_tensor(accumulator, y, &(ed_jvp_options){.unconnected_zeros = true});
}

ed_tensor *ed_jvp(ed_function f, ed_list *primals, ed_list *tangents, void *user, ed_tensor **value)
{
    if (value) *value = NULL;
    if (NULL_GIVEN("jvp", f, primals, tangents)) return NULL;
    ED_SCOPE;
    ed_tensor *y = NULL, *dy = call_jvp(f, primals, tangents, user, &y);
    if (dy && value) *value = ed_keep(y);
    return ed_keep(dy);
}
