#include "ops/symbol.h"
#include "tensor/thread.h"
#include <string.h>

static void node_free(symbol_node *node)
{
    for (int i = 0; node->inputs && i < 2 * node->n_inputs; i++) ed_release(node->inputs[i]);
    if (node->op) ed_attrs_free(node->op, node->attrs);
    ed_release(node->layer);
    memory_free(node->inputs);
    memory_free(node->forms);
    memory_free(node->name);
    memory_free(node);
}

/* A node often holds the last reference of the one before. One after the other they are freed, not
 * one within the other: a description may have more of them than a stack has room for. */
static void node_destroy(void *object)
{
    static __thread symbol_node *waiting;
    static __thread bool freeing;
    symbol_node *node = object;
    node->next = waiting;
    waiting = node;
    if (freeing) return;
    freeing = true;
    while ((node = waiting)) {
        waiting = node->next;
        node_free(node);
    }
    freeing = false;
}

static const object_class node_class = {.name = "node", .destroy = node_destroy};

symbol_node *symbol_node_new(int n_inputs, ed_tensor *const *inputs, ed_tensor *const *masks,
                             int n_outputs)
{
    symbol_node *node = object_new(&node_class, sizeof *node);
    if (!node) return NULL;
    node->n_inputs = n_inputs;
    node->n_outputs = n_outputs;
    node->inputs = memory_zalloc((2 * (size_t)n_inputs + 1) * sizeof *node->inputs);
    node->forms = memory_zalloc((2 * (size_t)n_outputs + 1) * sizeof *node->forms);
    if (!node->inputs || !node->forms) return ed_release(node), NULL;
    for (int i = 0; i < n_inputs; i++) {
        node->inputs[i] = ed_retain(inputs[i]);
        if (masks) node->inputs[n_inputs + i] = ed_retain(masks[i]);
    }
    return node;
}

bool symbol_note(symbol_node *node, int i, const ed_tensor *first, const ed_tensor *second)
{
    if (!first || !second) return true;
    if (first->dtype != second->dtype || first->rank != second->rank)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "the result's dtype or rank depends on a size that is open"),
               false;
    symbol_form *form = node->forms + i;
    form->dtype = first->dtype;
    form->rank = first->rank;
    memcpy(form->shapes[0], first->shape, sizeof first->shape);
    memcpy(form->shapes[1], second->shape, sizeof second->shape);
    return true;
}

/* ---- Symbols --------------------------------------------------------------------------------- */

/* A hollow tensor of the shape: a view of one element, so it needs no memory. */
static ed_tensor *new_example(const symbol_form *form, int example)
{
    const int64_t none[ED_MAX_RANK] = {0};
    ed_tensor *one = tensor_new(form->dtype, 0, none);
    if (!one) return NULL;
    memset(one->data, 0, dtype_size(form->dtype));
    ed_tensor *t = tensor_view(one, form->rank, form->shapes[example], none, 0);
    if (t) t->flags |= TENSOR_HOLLOW;
    ed_release(one);
    return t;
}

ed_tensor *symbol_new(symbol_node *node, int i)
{
    const symbol_form *form = node->forms + i;
    return tensor_symbol(new_example(form, 0), new_example(form, 1), node, i);
}

/* ---- Traces ---------------------------------------------------------------------------------- */

symbol_trace symbol_trace_begin(void)
{
    thread_state *self = thread_self();
    const symbol_trace outer = {self->listeners, self->tracing};
    self->listeners = NULL;
    self->tracing++;
    return outer;
}

void symbol_trace_end(symbol_trace outer)
{
    thread_state *self = thread_self();
    self->listeners = outer.listeners;
    self->tracing = outer.tracing;
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* Puts "?" for the numbers in which the texts differ; false if they differ in more than that. */
static bool put_open(char *s, const char *other)
{
    char *to = s;
    while (*s) {
        const size_t n = digits(s), m = digits(other);
        if (!n != !m || (!n && *s != *other)) return false;
        if (n && (n != m || memcmp(s, other, n) != 0)) {
            *to++ = '?';
            s += n;
        } else
            for (size_t i = n ? n : 1; i > 0; i--) *to++ = *s++;
        other += n ? m : 1;
    }
    *to = 0;
    return !*other;
}

/* Whether f goes well with the example; its error is moved to *error. */
static bool try_example(bool (*f)(void *, int), void *user, int k, error_saved *error)
{
    error_saved before;
    error_save(&before);
    error_quiet(true);
    const symbol_trace outer = symbol_trace_begin();
    const bool ok = f(user, k);
    symbol_trace_end(outer);
    error_quiet(false);
    error_save(error);
    error_restore(&before, true);
    return ok && !error->code;
}

/* Fails with the error of one example, whose sizes it may have, or that of both. */
static void fail_with(const error_saved *error, int k, const char *other)
{
    char sentence[ERROR_MESSAGE_SIZE];
    strcpy(sentence, error->message + error->sentence);
    if (other && put_open(sentence, other)) {
        ed_fail(error->code, "%s", sentence);
        return;
    }
    ed_fail(error->code,
            "%s (%d and %d stand here for sizes that are open, -1, and can't be used as if they "
            "were known)",
            error->message + error->sentence, k ? SYMBOL_OTHER_BATCH : SYMBOL_BATCH,
            k ? SYMBOL_OTHER_SIZE : SYMBOL_SIZE);
}

bool symbol_try(bool (*f)(void *user, int example), void *user)
{
    error_saved errors[2];
    const bool first = try_example(f, user, 0, &errors[0]);
    if (!first && errors[0].code == ED_OUT_OF_MEMORY)
        return ed_fail(ED_OUT_OF_MEMORY, "%s", errors[0].message + errors[0].sentence), false;
    const bool second = try_example(f, user, 1, &errors[1]);
    if (first && second) return true;
    const bool both = !first && !second;
    fail_with(&errors[first], first, both ? errors[1].message + errors[1].sentence : NULL);
    return false;
}

/* ---- Calls of ops ---------------------------------------------------------------------------- */

typedef struct op_calls {
    const ed_call *call;
    const ed_list *results[2];
} op_calls;

/* What the op makes of example k; the scope has it. */
static bool run_example(void *user, int k)
{
    op_calls *o = user;
    const ed_call *call = o->call;
    ed_tensor **operands = ed_scope_alloc((size_t)call->n_inputs * sizeof *operands);
    if (!operands) return false;
    for (int i = 0; i < call->n_inputs; i++) operands[i] = symbol_example(call->operands[i], k);
    o->results[k] = ed_execute_list(call->op, operands, call->n_inputs, call->attrs);
    return o->results[k];
}

/* The node of the call, for the caller, from the results of both examples. */
static symbol_node *node_of_call(const ed_call *call, const ed_list *const results[2])
{
    const int n = (int)results[0]->size;
    symbol_node *node = symbol_node_new(call->n_inputs, call->operands, NULL, n);
    if (!node) return NULL;
    node->op = call->op;
    bool ok = !call->op->attrs_size || (node->attrs = ed_attrs_copy(call->op, call->attrs));
    for (int i = 0; ok && i < n; i++)
        ok = symbol_note(node, i, results[0]->items[i], results[1]->items[i]);
    if (ok) return node;
    ed_release(node);
    return NULL;
}

static bool put_symbols(ed_call *call, symbol_node *node)
{
    if (call->op->flags & ED_OP_MANY_OUTPUTS && !ed_call_outputs(call, node->n_outputs))
        return false;
    for (int i = 0; i < node->n_outputs; i++)
        if (!(call->outputs[i] = symbol_new(node, i))) return false;
    return true;
}

bool symbol_execute(ed_call *call)
{
    ED_SCOPE;
    if (call->n_writes)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "it changes a variable, so it can't be part of a model's description; "
                            "a layer of one's own can");
    op_calls o = {.call = call};
    if (!symbol_try(run_example, &o)) return false;
    if (o.results[0]->size != o.results[1]->size)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the number of its results depends on a size that is open");
    symbol_node *node = scope_give(node_of_call(call, o.results));
    return node && put_symbols(call, node);
}
