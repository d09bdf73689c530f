#include "autodiff/tape.h"
#include "ops/draws.h"

/*
 * Functions as ops. A call of ed_custom_gradient or ed_recompute goes through the dispatcher as one
 * op, whose attribute is an object that holds the user's functions. The ops inside are hidden from
 * the tapes outside.
 *
 * What f reads besides its inputs (variables, and tensors that a tape outside tracks) would lose
 * its gradient. ed_recompute makes operands of them, ed_custom_gradient refuses them.
 */

/* `given` is a variable or tensor; `value` what f first read from the variable, or the tensor
 * itself. */
typedef struct reading {
    ed_tensor *given, *value; /* retained */
} reading;

/* What notes the operands while f runs. */
typedef struct reader {
    ed_listener listener;
    struct function *function;
    bool failed;
} reader;

typedef struct function {
    ed_object object;
    reader reader;                      /* here, not on the stack: f may be left by longjmp */
    ed_function f;                      /* or, of several results: */
    ed_list_function f_list;            /* NULL: f */
    ed_gradient_function gradient;      /* NULL: recompute, or of several results: */
    ed_list_gradient_function backward; /* NULL: gradient */
    bool recomputes;
    void *user;
    void (*release)(void *user);
    int64_t n_inputs, n_operands, capacity;
    reading *operands; /* the inputs, then what else f read; values only during the call */
    int64_t *index;    /* hash table of 2 * capacity slots: the operand's number + 1; 0: empty */
    ed_list *results;  /* what f returned; only during the call */
    ops_draws *draws;  /* the random numbers that f drew */
} function;

#define FUNCTION_ATTRS(FIELD, T) FIELD(T, OBJECT, function, NULL, ED_ANY, "the user's functions")
ED_OPTIONS(function_attrs, FUNCTION_ATTRS);

static void release_values(function *self)
{
    for (int64_t i = 0; i < self->n_operands; i++) {
        ed_release(self->operands[i].value);
        self->operands[i].value = NULL;
    }
}

static void function_destroy(void *object)
{
    function *self = object;
    release_values(self);
    for (int64_t i = 0; i < self->n_operands; i++) ed_release(self->operands[i].given);
    memory_free(self->operands);
    memory_free(self->index);
    ops_draws_free(self->draws);
    ed_unlisten(&self->reader.listener);
    if (self->release) SCOPE_GUARDED((self->release(self->user), true));
    memory_free(self);
}

static const object_class function_class = {.name = "function", .destroy = function_destroy};

/* The slot of the first operand that is x; an empty one if there is none. */
static int64_t *slot_of(const function *self, const ed_tensor *x)
{
    const uint64_t mask = 2 * (uint64_t)self->capacity - 1;
    uint64_t at = (x->id * 0x9e3779b97f4a7c15 >> 32) & mask;
    while (self->index[at] && self->operands[self->index[at] - 1].given != x) at = (at + 1) & mask;
    return &self->index[at];
}

static void index_operand(function *self, int64_t i)
{
    int64_t *slot = slot_of(self, self->operands[i].given);
    if (!*slot) *slot = i + 1;
}

static bool grow(function *self)
{
    const size_t n = (size_t)self->capacity, more = n ? 2 * n : HARD(1, 4);
    int64_t *index = memory_zalloc(2 * more * sizeof *index);
    reading *operands =
        index ? memory_grow(self->operands, n * sizeof *operands, more * sizeof *operands) : NULL;
    if (!operands) return memory_free(index), false;
    memory_free(self->index);
    self->operands = operands;
    self->index = index;
    self->capacity = (int64_t)more;
    for (int64_t i = 0; i < self->n_operands; i++) index_operand(self, i);
    return true;
}

static bool add_operand(function *self, ed_tensor *given, ed_tensor *value)
{
    if (self->n_operands == self->capacity && !grow(self)) return false;
    self->operands[self->n_operands] = (reading){ed_retain(given), ed_retain(value)};
    index_operand(self, self->n_operands++);
    return true;
}

/* The user's data is released once, also on failure. */
static function *new_function(void *user, void (*release)(void *user), bool complete)
{
    function *self = complete ? object_new(&function_class, sizeof *self) : NULL;
    if (!self) {
        if (release) release(user);
        return NULL;
    }
    self->user = user;
    self->release = release;
    return scope_give(self);
}

static bool take_inputs(function *self, const ed_list *inputs, const char *what)
{
    if (!inputs->size) return ed_fail(ED_INVALID_ARGUMENT, "%s: inputs must not be empty", what);
    for (int64_t i = 0; i < inputs->size; i++) {
        ed_tensor *input = inputs->items[i];
        if (!input)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: input %lld is NULL", what, text_nth(i)), false;
        ed_tensor *value = tensor_read(input);
        if (!value || !add_operand(self, input, value)) return false;
    }
    self->n_inputs = self->n_operands;
    return true;
}

/* ---- Running f, hidden from tapes ------------------------------------------------------------ */

/* Whether x needs a gradient. A custom gradient may read variables that are not trainable. */
static bool matters(const reader *r, const ed_tensor *x)
{
    if (tensor_is_variable(x) &&
        (r->function->recomputes || (ed_variable_is_trainable(x) && ed_dtype_is_float(x->dtype))))
        return true;
    for (ed_listener *l = r->listener.outer; l; l = l->outer) {
        ed_tape *tape = tape_of(l);
        if (tape && tape_slot_of(tape, x) >= 0) return true;
    }
    return false;
}

static void note_operand(reader *r, ed_tensor *given, ed_tensor *value)
{
    if (!*slot_of(r->function, given) && matters(r, given) &&
        !add_operand(r->function, given, value))
        r->failed = true;
}

/* For ed_recompute, a variable that f writes counts as read too: f runs again from its value
 * before, and must not change its value after. */
static void note_reads(ed_listener *listener, const ed_call *call)
{
    reader *r = (reader *)listener;
    for (int i = r->function->recomputes ? 0 : call->n_writes; i < call->n_inputs; i++)
        note_operand(r, call->operands[i], call->inputs[i]);
}

static ed_list *call_function(const function *self, ed_list *inputs)
{
    if (self->f_list) return SCOPE_GUARDED(self->f_list(inputs, self->user));
    ed_tensor *y = SCOPE_GUARDED(self->f(inputs, self->user));
    return y ? ed_list_of_one(y) : NULL;
}

/* The values of what f returned. Each counts as read. */
static bool take_results(function *self, const ed_list *given, const char *what)
{
    if (!given->size)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: the function returned an empty list", what), false;
    if (!(self->results = scope_give(list_new(given->size)))) return false;
    for (int64_t i = 0; i < given->size; i++) {
        ed_tensor *y = given->items[i];
        if (!y)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: result %lld of the function is NULL", what,
                           text_nth(i)),
                   false;
        if (y->flags & TENSOR_WEAK)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: the function must return a tensor, got a plain number (see "
                           "ed_scalar)",
                           what),
                   false;
        ed_tensor *value = tensor_read(y);
        if (!value) return false;
        note_operand(&self->reader, y, value);
        self->results->items[i] = ed_retain(value);
    }
    return true;
}

static bool run_hidden(function *self, ed_list *inputs, const char *what)
{
    self->reader = (reader){.listener = {.before = note_reads, .differentiates = 1, .hides = true},
                            .function = self};
    const error_before before = error_begin();
    ed_listen(&self->reader.listener);
    ed_list *given = call_function(self, inputs);
    if (!given && error_is_missing(before))
        ed_fail(ED_INVALID_ARGUMENT, "%s: the function returned NULL without an error", what);
    const bool ok = given && !error_since(before) && take_results(self, given, what);
    ed_unlisten(&self->reader.listener);
    return ok && !self->reader.failed && !error_since(before);
}

/* Exchanges the operands' values and the variables' present values; and back, in reverse order,
 * as an input may be given twice. */
static void exchange(reading *operand)
{
    if (!tensor_is_variable(operand->given)) return;
    variable *v = (variable *)operand->given;
    ed_tensor *present = v->value;
    v->value = operand->value;
    operand->value = present;
}

static void put_values(function *self)
{
    for (int64_t i = 0; i < self->n_operands; i++) exchange(&self->operands[i]);
}

static void put_back(function *self)
{
    for (int64_t i = self->n_operands; i-- > 0;) exchange(&self->operands[i]);
    release_values(self);
}

/* The call that the tapes see: its outputs. */
static ed_list *call_as(const ed_op *op, function *self)
{
    ed_list *operands = scope_give(list_new(self->n_operands));
    if (!operands) return NULL;
    for (int64_t i = 0; i < operands->size; i++)
        operands->items[i] = ed_retain(self->operands[i].given);
    put_values(self);
    ed_list *outputs = ed_execute_list(op, operands->items, (int)operands->size,
                                       ED_ATTRS(FUNCTION_ATTRS, function_attrs, .function = self));
    put_back(self);
    self->results = NULL;
    return outputs;
}

static ed_tensor *only_one(ed_list *outputs)
{
    return outputs ? scope_give(ed_retain(outputs->items[0])) : NULL;
}

/* The outputs are views of what f returned, with their own ids: the same tensor may be an input. */
static bool infer_results(ed_call *call)
{
    const function *self = ((const function_attrs *)call->attrs)->function;
    if (!self || !self->results)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "only ed_%s can call this op",
                            call->op->name);
    call->ready = true;
    if (!ed_call_outputs(call, self->results->size)) return false;
    for (int i = 0; i < call->n_outputs; i++) {
        const ed_tensor *y = self->results->items[i];
        if (!(call->outputs[i] = tensor_view(y, y->rank, y->shape, y->strides, 0))) return false;
    }
    return true;
}

/* ---- Custom gradients ------------------------------------------------------------------------ */

/* The gradients of the outputs, zeros where nothing flows back. */
static ed_list *all_seeds(const ed_gradient_call *g)
{
    ed_list *dy = scope_give(list_new(g->n_outputs));
    for (int i = 0; dy && i < g->n_outputs; i++) {
        ed_tensor *one = g->dy[i] ? g->dy[i] : ed_zeros_like(g->outputs[i]);
        if (!one) return NULL;
        dy->items[i] = ed_retain(one);
    }
    return dy;
}

static ed_list *call_backward(const function *self, const ed_gradient_call *g)
{
    ed_list *inputs = ed_list_make(g->inputs, g->n_inputs);
    if (!inputs) return NULL;
    if (!self->backward) return self->gradient(inputs, g->outputs[0], g->dy[0], self->user);
    ed_list *outputs = ed_list_make(g->outputs, g->n_outputs), *dy = all_seeds(g);
    return outputs && dy ? self->backward(inputs, outputs, dy, self->user) : NULL;
}

static bool custom_backward(const ed_gradient_call *g)
{
    const error_before before = error_begin();
    ed_list *dx = call_backward(((const function_attrs *)g->attrs)->function, g);
    if (!dx) {
        if (error_is_missing(before))
            ed_fail(ED_INVALID_ARGUMENT,
                    "custom_gradient: the gradient function returned NULL without an error");
        return false;
    }
    if (dx->size != g->n_inputs)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "custom_gradient: the gradient function returned %lld gradients for %d "
                       "inputs",
                       (long long)dx->size, g->n_inputs),
               false;
    for (int i = 0; i < g->n_inputs; i++) g->dx[i] = dx->items[i];
    return true;
}

ED_OP(custom_gradient) = {
    .name = "custom_gradient",
    .doc = "a function with a custom gradient",
    .operands = {{"inputs", ED_SET_ALL, 0}},
    .flags = ED_OP_VARIADIC | ED_OP_MANY_OUTPUTS | ED_OP_INTERNAL | ED_OP_READS_DY,
    ED_OP_ATTRS(FUNCTION_ATTRS, function_attrs),
    .infer = infer_results,
    .gradient = custom_backward,
    SAVES_X,
    SAVES_Y,
};

static void *refuse_reading(const ed_tensor *x)
{
    const char *name = ed_variable_name(x);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "custom_gradient: the function reads %s %s, which is not one of its inputs; "
                   "pass it as an input, so that it gets a gradient",
                   name ? "the variable" : "a tensor that a tape tracks,",
                   name ? name : text_of_tensor(x).s);
}

static ed_list *call_custom(function *self, ed_list *inputs)
{
    static const char what[] = "custom_gradient";
    if (!take_inputs(self, inputs, what) || !run_hidden(self, inputs, what)) return NULL;
    if (self->n_operands > self->n_inputs)
        return refuse_reading(self->operands[self->n_inputs].given);
    return call_as(&ed_op_custom_gradient, self);
}

ed_tensor *ed_custom_gradient(ed_function f, ed_gradient_function gradient, ed_list *inputs,
                              void *user, void (*release)(void *user))
{
    ED_SCOPE;
    function *self =
        new_function(user, release, !NULL_GIVEN("custom_gradient", f, gradient, inputs));
    if (!self) return NULL;
    self->f = f;
    self->gradient = gradient;
    return ed_keep(only_one(call_custom(self, inputs)));
}

ed_list *ed_custom_gradient_list(ed_list_function f, ed_list_gradient_function gradient,
                                 ed_list *inputs, void *user, void (*release)(void *user))
{
    ED_SCOPE;
    function *self =
        new_function(user, release, !NULL_GIVEN("custom_gradient", f, gradient, inputs));
    if (!self) return NULL;
    self->f_list = f;
    self->backward = gradient;
    return ed_keep(call_custom(self, inputs));
}

/* ---- Recompute ------------------------------------------------------------------------------- */

/* If an operand is given twice, the first one gets the gradient. */
static bool is_wanted(const function *self, const ed_gradient_call *g, int i)
{
    return g->needs[i] && *slot_of(self, self->operands[i].given) == i + 1;
}

static ed_list *some_operands(const function *self, const ed_gradient_call *g, bool wanted)
{
    ed_tensor **some = memory_alloc((size_t)g->n_inputs * sizeof *some);
    if (!some) return NULL;
    int64_t n = 0;
    for (int i = 0; i < g->n_inputs; i++)
        if (wanted ? is_wanted(self, g, i) : i < self->n_inputs)
            some[n++] = self->operands[i].given;
    ed_list *list = ed_list_make(some, n);
    memory_free(some);
    return list;
}

/* Whether f returned what it did at first, which dy is the gradient of. */
static bool is_as_before(const ed_tensor *y, const ed_tensor *dy)
{
    if (y->dtype == dy->dtype && !(y->flags & TENSOR_WEAK) && tensor_same_shape(y, dy)) return true;
    ed_fail(ED_INVALID_ARGUMENT,
            "recompute: the function returned %s when it ran first, and %s when it ran again",
            text_of_tensor(dy).s, text_of_tensor(y).s);
    return false;
}

/* The gradients of the operands that need one: runs f again, with a tape. */
static ed_list *run_again(function *self, const ed_gradient_call *g)
{
    ed_list *inputs = some_operands(self, g, false), *sources = some_operands(self, g, true);
    ed_tape *tape = ed_tape_begin(.ignore_accessed_variables = true);
    if (!inputs || !sources || !tape) return NULL;
    for (int64_t i = 0; i < sources->size; i++)
        if (!ed_watch(tape, sources->items[i])) return NULL;
    const error_before before = error_begin();
    ed_tensor *y = SCOPE_GUARDED(self->f(inputs, self->user));
    if (!y && error_is_missing(before))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "recompute: the function returned NULL without an error");
    if (!y || !is_as_before(y, g->dy[0])) return NULL;
    return ed_gradient(tape, y, sources, .output_gradients = ed_list_of_one(g->dy[0]));
}

static bool recompute_backward(const ed_gradient_call *g)
{
    function *self = ((const function_attrs *)g->attrs)->function;
    for (int i = 0; i < g->n_inputs; i++) self->operands[i].value = ed_retain(g->inputs[i]);
    put_values(self);
    ops_draws *outer = ops_draws_replay(self->draws);
    ed_list *gradients = run_again(self, g);
    ops_draws_end(outer);
    put_back(self);
    if (!gradients) return false;
    int64_t n = 0;
    for (int i = 0; i < g->n_inputs; i++)
        if (is_wanted(self, g, i)) g->dx[i] = gradients->items[n++];
    return true;
}

ED_OP(recompute) = {
    .name = "recompute",
    .doc = "a function that the backward pass computes again",
    .operands = {{"inputs", ED_SET_ALL, 0}},
    .flags = ED_OP_VARIADIC | ED_OP_MANY_OUTPUTS | ED_OP_INTERNAL | ED_OP_READS_DY,
    ED_OP_ATTRS(FUNCTION_ATTRS, function_attrs),
    .infer = infer_results,
    .gradient = recompute_backward,
    SAVES_X,
};

ed_tensor *ed_recompute(ed_function f, ed_list *inputs, void *user, void (*release)(void *user))
{
    static const char what[] = "recompute";
    ED_SCOPE;
    function *self = new_function(user, release, !NULL_GIVEN(what, f, inputs));
    if (!self) return NULL;
    self->f = f;
    self->recomputes = true;
    if (!take_inputs(self, inputs, what) || !(self->draws = ops_draws_new())) return NULL;
    ops_draws *outer = ops_draws_record(self->draws);
    bool ran = run_hidden(self, inputs, what);
    ops_draws_end(outer);
    return ran ? ed_keep(only_one(call_as(&ed_op_recompute, self))) : NULL;
}

bool tape_looks_at_dy(const ed_op *op)
{
    return op->flags & ED_OP_READS_DY || !ops_is_built_in(op);
}
