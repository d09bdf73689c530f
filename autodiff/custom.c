#include "autodiff/tape.h"
#include "ops/draws.h"
#include <string.h>

/*
 * Functions as ops. A call of ed_custom_gradient or ed_recompute goes through the doorway as one
 * op, whose attribute is an object that holds the user's functions; what happens inside is hidden
 * from the tapes that listen outside.
 */

typedef struct function {
    ed_object object;
    ed_function f;
    ed_gradient_function gradient;
    void *user;
    void (*release)(void *user);

    /* Of ed_recompute: which of the operands, behind the inputs, are the values of variables that f
     * read. */
    int64_t n_inputs, n_variables;
    ed_tensor **variables; /* retained */
    ed_tensor *result;     /* what f returned; only during the call */
    ops_draws *draws;      /* the random numbers that f drew */
} function;

typedef struct function_attrs {
    function *function;
} function_attrs;

static const ed_attr attrs[] = {
    ATTR(function_attrs, function, ED_ATTR_OBJECT, "the user's functions"), {0}};

static void function_destroy(void *object)
{
    function *f = object;
    for (int64_t i = 0; i < f->n_variables; i++) ed_release(f->variables[i]);
    memory_free(f->variables);
    ops_draws_free(f->draws);
    if (f->release) f->release(f->user);
    memory_free(f);
}

static const object_class function_class = {"function", function_destroy};

static function *new_function(ed_function f, void *user, void (*release)(void *user),
                              const ed_list *inputs, const char *what)
{
    if (!f || !inputs) return ed_fail(ED_INVALID_ARGUMENT, "%s: NULL given", what);
    if (!inputs->size)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: at least one input is needed", what);
    for (int64_t i = 0; i < inputs->size; i++)
        if (!inputs->items[i])
            return ed_fail(ED_INVALID_ARGUMENT, "%s: input %lld is NULL", what, (long long)i);
    function *self = object_new(&function_class, sizeof *self);
    if (!self) return NULL;
    self->f = f;
    self->user = user;
    self->n_inputs = inputs->size;
    if (!scope_give(self)) return NULL;
    self->release = release; /* from here on the object answers for it */
    return self;
}

/* ---- Which variables does f read? ------------------------------------------------------------ */

typedef struct reader {
    ops_listener listener;
    function *function;
    ed_list *inputs;
    bool failed;
} reader;

static bool is_known(const reader *r, const ed_tensor *v)
{
    for (int64_t i = 0; i < r->inputs->size; i++)
        if (tensor_read(r->inputs->items[i]) == tensor_read(v)) return true;
    for (int64_t i = 0; i < r->function->n_variables; i++)
        if (r->function->variables[i] == v) return true;
    return false;
}

static void note_reads(ops_listener *listener, const ed_call *call, ed_tensor *const *operands)
{
    reader *r = (reader *)listener;
    function *f = r->function;
    for (int i = 0; i < call->n_inputs; i++) {
        ed_tensor *v = operands[i];
        if (!ed_is_trainable(v) || !ed_dtype_is_float(v->dtype) || is_known(r, v)) continue;
        void *grown = memory_grow(f->variables, (size_t)f->n_variables * sizeof(ed_tensor *),
                                  ((size_t)f->n_variables + 1) * sizeof(ed_tensor *));
        if (!grown) {
            r->failed = true;
            return;
        }
        f->variables = grown;
        f->variables[f->n_variables++] = ed_retain(v);
    }
}

/* f's result, unseen by the tapes outside; the trainable variables that it read are noted in self.
 */
static ed_tensor *run_hidden(function *self, ed_list *inputs)
{
    reader r = {.listener.after = note_reads, .function = self, .inputs = inputs};
    ops_listener *paused = tape_pause();
    ops_listen(&r.listener);
    ed_tensor *y = self->f(inputs, self->user);
    tape_unpause(paused);
    if (!y && !ed_failed())
        return ed_fail(ED_INVALID_ARGUMENT, "a function returned NULL without an error");
    return r.failed ? NULL : y;
}

/* ---- The op's parts -------------------------------------------------------------------------- */

/* The output is a view of what f returned, with an id of its own: the same value may have come in
 * as an input. */
static bool infer_result(ed_call *call)
{
    const ed_tensor *y = ((const function_attrs *)call->attrs)->function->result;
    call->ready = true;
    return (call->outputs[0] = tensor_view(y, y->rank, y->shape, y->strides, 0)) != NULL;
}

static bool put(const ed_gradient_call *g, const ed_list *list, const char *what)
{
    if (!list) {
        if (!ed_failed())
            ed_fail(ED_INVALID_ARGUMENT, "%s: the gradient function returned NULL", what);
        return false;
    }
    if (list->size != g->n_inputs) {
        ed_fail(ED_INVALID_ARGUMENT,
                "%s: the gradient function returned %lld gradients for %d inputs", what,
                (long long)list->size, g->n_inputs);
        return false;
    }
    for (int i = 0; i < g->n_inputs; i++)
        g->dx[i] = list->items[i] ? tensor_read(list->items[i]) : NULL;
    return true;
}

static bool custom_backward(const ed_gradient_call *g)
{
    function *self = ((const function_attrs *)g->attrs)->function;
    ed_list *inputs = ed_list_make(g->inputs, g->n_inputs);
    if (!inputs) return false;
    return put(g, self->gradient(inputs, g->outputs[0], g->dy[0], self->user), "custom_gradient");
}

ED_OP(custom_gradient) = {
    .name = "custom_gradient",
    .doc = "a function with a gradient of its own",
    .operands = {{"inputs", ED_SET_ALL, 0}},
    .flags = ED_OP_VARIADIC | ED_OP_INTERNAL,
    .attrs = attrs,
    .attrs_size = sizeof(function_attrs),
    .infer = infer_result,
    .gradient = custom_backward,
    .saves = ED_SAVES_ALL_INPUTS | ED_SAVES_OUTPUT(0),
};

static ed_tensor *custom(ed_function f, ed_gradient_function gradient, ed_list *inputs, void *user,
                         void (*release)(void *user))
{
    function *self = new_function(f, user, release, inputs, "custom_gradient");
    if (!self) return NULL;
    self->gradient = gradient;
    self->result = run_hidden(self, inputs);
    if (!self->result) return NULL;
    self->result = tensor_read(self->result);
    if (self->n_variables)
        return ed_fail(
            ED_INVALID_ARGUMENT,
            "custom_gradient: the function reads the trainable variable %s, which is none of its "
            "inputs; pass it as one, so that it gets a gradient",
            ed_name(self->variables[0]));
    return ed_call_op(&ed_op_custom_gradient, inputs->items, (int)inputs->size,
                      &(function_attrs){self});
}

ed_tensor *ed_custom_gradient(ed_function f, ed_gradient_function gradient, ed_list *inputs,
                              void *user, void (*release)(void *user))
{
    if (!gradient) return ed_fail(ED_INVALID_ARGUMENT, "custom_gradient: NULL given");
    ED_SCOPE;
    return ed_keep(custom(f, gradient, inputs, user, release));
}

/* ---- Recompute ------------------------------------------------------------------------------- */

/* Puts the values of then into the variables and returns those of now, which this list keeps. */
static void exchange(function *self, ed_tensor **values)
{
    for (int64_t i = 0; i < self->n_variables; i++) {
        variable *v = (variable *)self->variables[i];
        ed_tensor *present = v->value;
        v->value = values[i];
        values[i] = present;
    }
}

static ed_list *rerun(function *self, const ed_gradient_call *g, ed_list *inputs, ed_list *sources)
{
    ed_tape *tape = ed_tape_begin(.ignore_accessed_variables = true);
    for (int64_t i = 0; i < sources->size; i++)
        if (ed_dtype_is_float(sources->items[i]->dtype) && !ed_watch(tape, sources->items[i]))
            return NULL;
    ed_tensor *y = self->f(inputs, self->user);
    if (!y) return NULL;
    return ed_gradient_list(tape, ed_list_of_one(y), sources,
                            &(ed_gradient_options){.output_gradients = ed_list_of_one(g->dy[0])});
}

static bool recompute_backward(const ed_gradient_call *g)
{
    function *self = ((const function_attrs *)g->attrs)->function;
    ed_list *inputs = ed_list_make(g->inputs, self->n_inputs);
    ed_list *sources = ed_list_make(g->inputs, g->n_inputs);
    ed_tensor **values = memory_alloc(((size_t)self->n_variables + 1) * sizeof *values);
    if (!inputs || !sources || !values) {
        memory_free(values);
        return false;
    }
    memcpy(values, g->inputs + self->n_inputs, (size_t)self->n_variables * sizeof *values);
    exchange(self, values);
    ops_draws *outer = ops_draws_replay(self->draws);
    ed_list *gradients = rerun(self, g, inputs, sources);
    ops_draws_end(outer);
    exchange(self, values);
    memory_free(values);
    return put(g, gradients, "recompute");
}

ED_OP(recompute) = {
    .name = "recompute",
    .doc = "a function whose inside is computed again on the way back",
    .operands = {{"inputs", ED_SET_ALL, 0}},
    .flags = ED_OP_VARIADIC | ED_OP_INTERNAL,
    .attrs = attrs,
    .attrs_size = sizeof(function_attrs),
    .infer = infer_result,
    .gradient = recompute_backward,
    .saves = ED_SAVES_ALL_INPUTS,
};

static ed_tensor *recompute(ed_function f, ed_list *inputs, void *user, void (*release)(void *user))
{
    function *self = new_function(f, user, release, inputs, "recompute");
    if (!self || !(self->draws = ops_draws_new())) return NULL;
    ops_draws *outer = ops_draws_record(self->draws);
    self->result = run_hidden(self, inputs);
    ops_draws_end(outer);
    if (!self->result) return NULL;
    self->result = tensor_read(self->result);
    ed_list *operands = list_new(inputs->size + self->n_variables);
    if (!scope_give(operands)) return NULL;
    for (int64_t i = 0; i < operands->size; i++)
        operands->items[i] =
            ed_retain(i < inputs->size ? inputs->items[i] : self->variables[i - inputs->size]);
    return ed_call_op(&ed_op_recompute, operands->items, (int)operands->size,
                      &(function_attrs){self});
}

ed_tensor *ed_recompute(ed_function f, ed_list *inputs, void *user, void (*release)(void *user))
{
    ED_SCOPE;
    return ed_keep(recompute(f, inputs, user, release));
}
