#include "autodiff/tape.h"
#include <string.h>

/*
 * The way back. Forward once over the nodes: which slots can be reached from a source? Then
 * backward: each node that leads from a source and whose outputs have a gradient is asked for the
 * gradients of those operands that matter; they add up in their slots.
 */

typedef struct walk {
    ed_tape *tape;
    tape_node *last;
    int32_t n_slots;
    ed_tensor **gradients; /* one a slot; retained */
    bool *leads;           /* slots that a source leads to, the sources' own included */
    bool *is_source;
} walk;

static bool walk_begin(walk *w, ed_tape *tape)
{
    size_t n = (size_t)tape->n_slots;
    *w = (walk){.tape = tape, .last = tape->last, .n_slots = tape->n_slots};
    w->gradients = memory_zalloc(n * (sizeof(ed_tensor *) + 2));
    if (!w->gradients) return false;
    w->leads = (bool *)(w->gradients + n);
    w->is_source = w->leads + n;
    return true;
}

static void walk_end(walk *w)
{
    for (int32_t i = 0; w->gradients && i < w->n_slots; i++) ed_release(w->gradients[i]);
    memory_free(w->gradients);
}

/* Adds to a slot's gradient. */
static bool add(walk *w, int32_t slot, ed_tensor *gradient)
{
    ed_tensor *old = w->gradients[slot];
    ed_tensor *sum = old ? ed_add(old, gradient) : gradient;
    if (!sum) return false;
    ed_retain(sum);
    ed_release(old);
    w->gradients[slot] = sum;
    return true;
}

static void mark(walk *w)
{
    for (tape_node *node = w->tape->first; node; node = node->next) {
        node->leads = false;
        for (int i = 0; i < node->n_inputs; i++)
            node->leads |= node->slots[i] >= 0 && w->leads[node->slots[i]];
        if (!node->leads) continue;
        for (int i = 0; i < node->n_outputs; i++)
            if (node->slots[node->n_inputs + i] >= 0)
                w->leads[node->slots[node->n_inputs + i]] = true;
        if (node == w->last) return;
    }
}

/* ---- One node -------------------------------------------------------------------------------- */

static bool check_gradient(const tape_node *node, int i, const ed_tensor *dx)
{
    if (dx->dtype == node->dtypes[i] && dx->rank == node->shapes[i].count &&
        !memcmp(dx->shape, node->shapes[i].values, (size_t)dx->rank * sizeof *dx->shape))
        return true;
    ed_fail(ED_INVALID_ARGUMENT, "gradient of %s: that of operand %d is %s, the operand %s%s",
            node->op->name, i, text_of_tensor(dx).s, ed_dtype_name(node->dtypes[i]),
            text_of_ints(node->shapes[i].values, node->shapes[i].count).s);
    return false;
}

static bool backward_with(walk *w, tape_node *node, ed_tensor **dy, ed_tensor **dx, bool *needs)
{
    for (int i = 0; i < node->n_inputs; i++) {
        needs[i] = node->slots[i] >= 0 && w->leads[node->slots[i]];
        dx[i] = NULL;
    }
    ed_gradient_call call = {
        .op = node->op,
        .attrs = node->attrs,
        .n_inputs = node->n_inputs,
        .n_outputs = node->n_outputs,
        .inputs = node->saved,
        .outputs = node->saved + node->n_inputs,
        .dy = dy,
        .dx = dx,
        .needs = needs,
        .shapes = node->shapes,
        .dtypes = node->dtypes,
    };
    bool failed_before = ed_failed();
    if (!node->op->gradient(&call) || (!failed_before && ed_failed())) return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (needs[i] && dx[i] &&
            (!check_gradient(node, i, dx[i]) || !add(w, node->slots[i], dx[i])))
            return false;
    return true;
}

static bool refuse(const tape_node *node)
{
    ed_fail(ED_UNIMPLEMENTED,
            "gradient: the way from a source to the target passes %s, which has no gradient: %s",
            node->op->name, node->op->no_gradient);
    return false;
}

static bool backward(walk *w, tape_node *node)
{
    ed_tensor *dy[ED_MAX_OUTPUTS];
    bool any = false;
    for (int i = 0; i < node->n_outputs; i++) {
        int32_t slot = node->slots[node->n_inputs + i];
        dy[i] = slot >= 0 ? w->gradients[slot] : NULL;
        any |= dy[i] != NULL;
    }
    if (!any) return true;
    if (!node->op->gradient) return refuse(node);
    ED_SCOPE;
    if (node->n_inputs <= ED_MAX_OPERANDS) {
        ed_tensor *dx[ED_MAX_OPERANDS];
        bool needs[ED_MAX_OPERANDS];
        return backward_with(w, node, dy, dx, needs);
    }
    size_t n = (size_t)node->n_inputs;
    ed_tensor **dx = memory_alloc(n * (sizeof *dx + sizeof(bool)));
    bool ok = dx && backward_with(w, node, dy, dx, (bool *)(dx + n));
    memory_free(dx);
    return ok;
}

/* What flowed into a node's outputs is no longer needed, unless it was asked for. */
static void drop_outputs(walk *w, const tape_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        int32_t slot = node->slots[node->n_inputs + i];
        if (slot < 0 || w->is_source[slot]) continue;
        ed_release(w->gradients[slot]);
        w->gradients[slot] = NULL;
    }
}

static bool walk_back(walk *w)
{
    for (tape_node *node = w->last; node; node = node->previous) {
        if (node->leads && !backward(w, node)) return false;
        drop_outputs(w, node);
        if (!w->tape->persistent) tape_release_node(node);
    }
    return true;
}

/* ---- Targets and sources --------------------------------------------------------------------- */

/* What flows into target i: the gradient given, a number or a tensor that broadcasts to its shape,
 * or ones. */
static ed_tensor *seed(ed_tensor *target, const ed_gradient_options *options, int64_t i)
{
    ed_list *given = options ? options->output_gradients : NULL;
    ed_tensor *dy = given && i < given->size ? given->items[i] : NULL;
    ed_ints shape = {target->shape, target->rank};
    if (!dy) return ed_ones_with(shape, &(ed_create_options){.dtype = target->dtype});
    ed_tensor *value = tensor_read(dy);
    if (value->flags & TENSOR_WEAK)
        return ed_full_with(shape, value, &(ed_create_options){.dtype = target->dtype});
    if (value->dtype != target->dtype)
        return ed_fail(ED_INVALID_ARGUMENT, "gradient: output gradient %lld is %s, its target %s",
                       (long long)i, text_of_tensor(dy).s, text_of_tensor(target).s);
    return ed_broadcast_to(dy, shape);
}

static bool check_targets(const ed_list *targets, const ed_gradient_options *options)
{
    ed_list *given = options ? options->output_gradients : NULL;
    if (given && given->size != targets->size)
        return ed_fail(ED_INVALID_ARGUMENT, "gradient: %lld output gradients for %lld targets",
                       (long long)given->size, (long long)targets->size),
               false;
    for (int64_t i = 0; i < targets->size; i++) {
        if (!targets->items[i])
            return ed_fail(ED_INVALID_ARGUMENT, "gradient: target %lld is NULL", (long long)i),
                   false;
        if (!ed_dtype_is_float(targets->items[i]->dtype))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "gradient: the target is %s; there are gradients of floats only",
                           text_of_tensor(targets->items[i]).s),
                   false;
    }
    return true;
}

static bool begin_sources(walk *w, const ed_list *sources)
{
    for (int64_t i = 0; i < sources->size; i++) {
        if (!sources->items[i])
            return ed_fail(ED_INVALID_ARGUMENT, "gradient: source %lld is NULL", (long long)i),
                   false;
        int32_t slot = tape_slot_of(w->tape, sources->items[i]);
        if (slot >= 0 && slot < w->n_slots) w->leads[slot] = w->is_source[slot] = true;
    }
    return true;
}

static bool begin_targets(walk *w, const ed_list *targets, const ed_gradient_options *options)
{
    for (int64_t i = 0; i < targets->size; i++) {
        int32_t slot = tape_slot_of(w->tape, targets->items[i]);
        if (slot < 0 || slot >= w->n_slots || !w->leads[slot]) continue;
        ed_tensor *dy = seed(targets->items[i], options, i);
        if (!dy || !add(w, slot, dy)) return false;
    }
    return true;
}

static bool collect(walk *w, const ed_list *sources, const ed_gradient_options *options,
                    ed_list *result)
{
    for (int64_t i = 0; i < sources->size; i++) {
        ed_tensor *source = sources->items[i];
        int32_t slot = tape_slot_of(w->tape, source);
        ed_tensor *gradient = slot >= 0 && slot < w->n_slots ? w->gradients[slot] : NULL;
        if (!gradient && options && options->unconnected_zeros &&
            !(gradient = ed_zeros_with((ed_ints){source->shape, source->rank},
                                       &(ed_create_options){.dtype = source->dtype})))
            return false;
        result->items[i] = ed_retain(gradient);
    }
    return true;
}

static bool check_tape(const ed_tape *tape)
{
    if (!tape) return ed_fail(ED_INVALID_ARGUMENT, "gradient: the tape is NULL"), false;
    if (tape->consumed)
        return ed_fail(ED_FAILED_PRECONDITION,
                       "gradient: the tape was consumed by its first gradient; "
                       "begin it with .persistent = true to ask again"),
               false;
    if (tape->broken)
        return ed_fail(ED_OUT_OF_MEMORY,
                       "gradient: the tape is incomplete, memory failed while it recorded"),
               false;
    return true;
}

static bool gradients(walk *w, ed_list *targets, ed_list *sources,
                      const ed_gradient_options *options, ed_list *result)
{
    ED_SCOPE;
    if (!begin_sources(w, sources)) return false;
    mark(w);
    return begin_targets(w, targets, options) && walk_back(w) &&
           collect(w, sources, options, result);
}

ed_list *ed_gradient_list(ed_tape *tape, ed_list *targets, ed_list *sources,
                          const ed_gradient_options *options)
{
    if (!check_tape(tape)) return NULL;
    if (!targets || !sources)
        return ed_fail(ED_INVALID_ARGUMENT, "gradient: target or source is NULL");
    if (!check_targets(targets, options)) return NULL;
    if (!tape->persistent) tape_stop(tape);
    walk w;
    ed_list *result = list_new(sources->size);
    bool ok = walk_begin(&w, tape) && result && gradients(&w, targets, sources, options, result);
    walk_end(&w);
    if (!tape->persistent) {
        tape->consumed = true;
        tape_clear(tape);
    }
    if (ok) return scope_give(result);
    ed_release(result);
    return NULL;
}

ed_tensor *ed_gradient_tensor(ed_tape *tape, ed_list *targets, ed_tensor *source,
                              const ed_gradient_options *options)
{
    if (!check_tape(tape)) return NULL;
    if (!source) return ed_fail(ED_INVALID_ARGUMENT, "gradient: the source is NULL");
    ED_SCOPE;
    ed_list *list = ed_gradient_list(tape, targets, ed_list_of_one(source), options);
    if (!list || !list->items[0]) return NULL;
    ed_tensor *gradient = scope_give(ed_retain(list->items[0]));
    return ed_keep(gradient);
}

ed_list *ed_list_itself(ed_list *list)
{
    return list;
}

ed_list *ed_list_of_one(ed_tensor *tensor)
{
    if (!tensor) return ed_fail(ED_INVALID_ARGUMENT, "a tensor is expected, not NULL");
    return ed_list_make(&tensor, 1);
}
