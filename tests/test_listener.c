/*
 * Listeners: who is notified of what; and a training step that was recorded by one, run again.
 *
 * A recording is a list of calls: the op, a copy of its attributes, and of each operand where it
 * comes from. That is what a tracer keeps.
 */
#include "ops/ops.h"
#include "tests/folders.h"
#include "tests/training.h"

/* ---- Recordings ------------------------------------------------------------------------------ */

typedef enum source {
    CONSTANT, /* a tensor or number from outside */
    VARIABLE, /* the variable itself */
    VALUE,    /* what a variable was when a call before read it */
    RESULT,   /* of a call before */
} source;

typedef struct origin {
    source from;
    ed_tensor *held; /* CONSTANT, VARIABLE; retained */
    uint64_t id;     /* VALUE, RESULT; of a VARIABLE that is read: of its value */
} origin;

enum { MOST_CALLS = 300, MOST_INPUTS = 64, MOST_IDS = 2000 };

typedef struct step_call {
    const ed_op *op;
    void *attrs;
    bool drew; /* random numbers: a state of its own */
    int n, n_writes, n_outputs;
    origin operands[MOST_INPUTS];
    uint64_t outputs[8];
} step_call;

typedef struct recording {
    ed_listener listener;
    step_call calls[MOST_CALLS];
    int n_calls, constants;
    uint64_t known[MOST_IDS]; /* results, and values of variables that were read */
    source kinds[MOST_IDS];
    int n_known;
} recording;

static void know(recording *r, uint64_t id, source kind)
{
    assert_true(r->n_known < MOST_IDS);
    r->known[r->n_known] = id;
    r->kinds[r->n_known++] = kind;
}

static origin origin_of(recording *r, const ed_call *call, int i)
{
    ed_tensor *operand = call->operands[i];
    if (ed_is_variable(operand)) {
        const uint64_t id = i < call->n_writes ? 0 : ed_tensor_id(call->inputs[i]);
        if (id) know(r, id, VALUE);
        return (origin){VARIABLE, ed_retain(operand), id};
    }
    int k = 0;
    while (k < r->n_known && r->known[k] != ed_tensor_id(operand)) k++;
    if (k < r->n_known && r->kinds[k] != CONSTANT) return (origin){r->kinds[k], NULL, r->known[k]};
    if (k == r->n_known) know(r, ed_tensor_id(operand), CONSTANT);
    r->constants += k + 1 == r->n_known && ed_rank(operand) > 0;
    return (origin){CONSTANT, ed_retain(operand), 0};
}

static void record(ed_listener *self, const ed_call *call)
{
    recording *r = (recording *)self;
    assert_true(r->n_calls < MOST_CALLS && call->n_inputs <= MOST_INPUTS && call->n_outputs <= 8);
    step_call *c = &r->calls[r->n_calls++];
    *c = (step_call){.op = call->op,
                     .attrs = ed_attrs_copy(call->op, call->attrs),
                     .drew = call->drawn,
                     .n = call->n_inputs,
                     .n_writes = call->n_writes,
                     .n_outputs = call->n_outputs};
    for (int i = 0; i < c->n; i++) c->operands[i] = origin_of(r, call, i);
    for (int i = 0; i < c->n_outputs; i++)
        know(r, c->outputs[i] = ed_tensor_id(call->outputs[i]), RESULT);
}

static void forget(recording *r)
{
    for (int k = 0; k < r->n_calls; k++) {
        step_call *c = &r->calls[k];
        for (int i = 0; i < c->n; i++) ed_release(c->operands[i].held);
        ed_attrs_free(c->op, c->attrs);
    }
    r->n_calls = r->n_known = r->constants = 0;
}

/* The tensors that stand for the recorded ids this time. */
typedef struct bindings {
    uint64_t ids[MOST_IDS];
    ed_tensor *tensors[MOST_IDS];
    int n;
} bindings;

static void bind(bindings *b, uint64_t id, ed_tensor *t)
{
    assert_true(b->n < MOST_IDS && t);
    b->ids[b->n] = id;
    b->tensors[b->n++] = t;
}

static ed_tensor *bound(const bindings *b, uint64_t id)
{
    for (int i = 0; i < b->n; i++)
        if (b->ids[i] == id) return b->tensors[i];
    return NULL;
}

static ed_tensor *operand_now(bindings *b, const origin *o)
{
    if (o->held && o->id && !bound(b, o->id)) bind(b, o->id, ed_value(o->held));
    return o->held ? o->held : bound(b, o->id);
}

/* The states of a run that draws anew, each beside the recorded one: what repeats a draw, as a
 * gradient does, has its state. */
typedef struct states {
    ed_listener listener;
    struct {
        uint64_t recorded[3], now[3];
    } pairs[20];
    int n;
} states;

static ed_draw *draw_of(const ed_op *op, const void *attrs)
{
    for (const ed_field *a = op->attrs; a && a->name; a++)
        if (a->type == ED_FIELD_DRAW) return ED_FIELD_AT(a, attrs);
    return NULL;
}

static void see_state(ed_listener *self, const ed_call *call)
{
    states *s = (states *)self;
    const ed_draw *draw = draw_of(call->op, call->attrs);
    if (draw && call->drawn) memcpy(s->pairs[s->n++].now, draw->state, sizeof draw->state);
}

/* Attributes for this run: of what drew without a state, of what repeats with the new one. */
static void *attrs_anew(const step_call *c, states *s)
{
    void *attrs = ed_attrs_copy(c->op, c->attrs);
    ed_draw *draw = draw_of(c->op, attrs);
    if (!draw) return attrs;
    assert_true(draw->drawn);
    if (c->drew) {
        assert_true(s->n < 20);
        memcpy(s->pairs[s->n].recorded, draw->state, sizeof draw->state);
        draw->drawn = false;
    }
    for (int i = 0; i < s->n; i++)
        if (!memcmp(s->pairs[i].recorded, draw->state, sizeof draw->state))
            memcpy(draw->state, s->pairs[i].now, sizeof draw->state);
    return attrs;
}

static void run_again(const recording *r, bool anew)
{
    ED_SCOPE;
    static bindings b;
    states s = {.listener = {.after = see_state}};
    b.n = 0;
    ed_listen(&s.listener);
    for (int k = 0; k < r->n_calls; k++) {
        const step_call *c = &r->calls[k];
        ed_tensor *operands[MOST_INPUTS];
        for (int i = 0; i < c->n; i++) operands[i] = operand_now(&b, &c->operands[i]);
        void *attrs = anew ? attrs_anew(c, &s) : c->attrs;
        ed_list *results = ed_execute_list(c->op, operands, c->n, attrs);
        if (anew) ed_attrs_free(c->op, attrs);
        assert_fine();
        assert_int_equal(ed_list_size(results), c->n_outputs);
        for (int i = 0; i < c->n_outputs; i++) bind(&b, c->outputs[i], ed_list_get(results, i));
    }
    ed_unlisten(&s.listener);
}

/* ---- A step, and the step again -------------------------------------------------------------- */

/* All that a step changes. */
typedef struct outcome {
    double numbers[1000];
    int n;
    int64_t iterations;
    double loss;
} outcome;

static outcome outcome_of(const training *t)
{
    ED_SCOPE;
    outcome o = {.iterations = ed_optimizer_iterations(t->optimizer),
                 .loss = ed_metric_result(t->loss)};
    ed_list *all =
        ed_list_concat(ed_layer_variables(t->model), ed_optimizer_variables(t->optimizer));
    for (int64_t i = 0; i < ed_list_size(all); i++) {
        const ed_tensor *v = ed_list_get(all, i);
        const double *values = ed_as_doubles(v);
        assert_true(o.n + ed_size(v) <= 1000);
        memcpy(o.numbers + o.n, values, (size_t)ed_size(v) * sizeof *values);
        o.n += (int)ed_size(v);
    }
    assert_fine();
    return o;
}

static void expect_outcome(const training *t, const outcome *wanted)
{
    const outcome o = outcome_of(t);
    assert_int_equal(o.n, wanted->n);
    assert_memory_equal(o.numbers, wanted->numbers, (size_t)o.n * sizeof *o.numbers);
    assert_int_equal(o.iterations, wanted->iterations);
    assert_memory_equal(&o.loss, &wanted->loss, sizeof o.loss);
}

static void restart(training *t, const char *path)
{
    ED_SCOPE;
    assert_non_null(ed_checkpoint_read(t->checkpoint, path));
    assert_fine();
}

static void step_on(training *t, ed_tensor *x, ed_tensor *y)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(
        ed_sparse_softmax_cross_entropy(y, ed_forward(t->model, x, .training = true)));
    ed_minimize(t->optimizer, tape, loss, ed_layer_trainable_variables(t->model));
    ed_metric_update(t->loss, loss);
    assert_fine();
}

static bool has_call(const recording *r, const char *op)
{
    for (int k = 0; k < r->n_calls; k++)
        if (!strcmp(r->calls[k].op->name, op)) return true;
    return false;
}

static void step_again(int optimizer)
{
    ED_SCOPE;
    static training t;
    static recording r;
    static outcome start, once, twice;
    r.listener = (ed_listener){.after = record};
    training_begin(&t, optimizer);
    training_step(&t);
    ed_tensor *x, *y;
    assert_true(ed_dataset_next(t.data, &x, &y));
    const char *path = ed_checkpoint_write(t.checkpoint, in_folder("start_%d", optimizer));
    assert_fine();
    start = outcome_of(&t);

    assert_true(ed_listen(&r.listener));
    step_on(&t, x, y);
    assert_true(ed_unlisten(&r.listener));
    once = outcome_of(&t);
    assert_true(memcmp(once.numbers, start.numbers, sizeof once.numbers) != 0);
    assert_true(has_call(&r, "dropout") && has_call(&r, "batch_norm") &&
                has_call(&r, "assign_moving_average") && has_call(&r, "metric_mean") &&
                has_call(&r, "apply_gradients"));
    assert_int_equal(r.constants, 2); /* the batch: all else comes from calls and variables */

    /* With the numbers it drew, and drawing them from generators that are where they were. */
    for (int anew = 0; anew < 2; anew++) {
        restart(&t, path);
        expect_outcome(&t, &start);
        run_again(&r, anew);
        expect_outcome(&t, &once);
    }

    /* A step more, with new numbers, is what the step itself would have been on that batch. */
    run_again(&r, true);
    twice = outcome_of(&t);
    restart(&t, path);
    step_on(&t, x, y);
    expect_outcome(&t, &once);
    step_on(&t, x, y);
    expect_outcome(&t, &twice);
    forget(&r);
}

static void steps_again(void **state)
{
    (void)state;
    for (int optimizer = 0; optimizer < TRAINING_OPTIMIZERS; optimizer++) step_again(optimizer);
}

/* ---- Drawing anew ---------------------------------------------------------------------------- */

/* Runs the recording on v = 0; `numbers` are v's afterwards. */
static void run_from_zeros(recording *r, bool anew, ed_tensor *v, float numbers[50])
{
    ed_assign(v, ed_zeros(ED_SHAPE(50)));
    run_again(r, anew);
    assert_true(ed_copy_to(v, numbers, 50));
}

static void drawn_anew(void **state)
{
    (void)state;
    ED_SCOPE;
    static recording r;
    r.listener = (ed_listener){.after = record};
    ed_generator *g = ed_generator_from_seed(3);
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(50)));
    uint64_t begin[3], end[3], now[3];
    float first[50], again[50];
    ed_generator_state(g, begin);
    ed_listen(&r.listener);
    ed_assign_add(v,
                  ed_dropout(ed_random_normal(ED_SHAPE(50), .generator = g), 0.5, .generator = g));
    ed_unlisten(&r.listener);
    assert_true(ed_copy_to(v, first, 50));
    ed_generator_state(g, end);
    assert_true(r.calls[0].drew && r.calls[1].drew && !r.calls[2].drew);

    /* As it was: the same numbers, and the generator stays. */
    run_from_zeros(&r, false, v, again);
    assert_memory_equal(first, again, sizeof first);
    ed_generator_state(g, now);
    assert_memory_equal(now, end, sizeof now);

    /* Anew: others; and from the state of before the same ones, to the same end. */
    run_from_zeros(&r, true, v, again);
    assert_true(memcmp(first, again, sizeof first) != 0);
    assert_true(ed_generator_set_state(g, begin));
    run_from_zeros(&r, true, v, again);
    assert_memory_equal(first, again, sizeof first);
    ed_generator_state(g, now);
    assert_memory_equal(now, end, sizeof now);
    forget(&r);
    assert_fine();
}

/* ---- Who is notified of what ----------------------------------------------------------------- */

typedef struct counter {
    ed_listener listener;
    int before, after;
    bool leaves;
    const ed_op *last;
    struct counter *other; /* is stopped, and gone */
    bool calls;            /* an op */
} counter;

static void count_before(ed_listener *self, const ed_call *call)
{
    counter *c = (counter *)self;
    c->before++;
    assert_true(call->n_inputs == 0 || call->inputs[0]);
}

static void count_after(ed_listener *self, const ed_call *call)
{
    counter *c = (counter *)self;
    c->after++;
    c->last = call->op;
    if (c->leaves) assert_true(ed_unlisten(self));
    if (c->other) {
        assert_true(ed_unlisten(&c->other->listener));
        ed_memory_free(c->other);
        c->other = NULL;
    }
    if (c->calls) assert_null(ed_neg(call->outputs[0]));
}

static counter new_counter(void)
{
    return (counter){.listener = {.before = count_before, .after = count_after}};
}

static void notified(void **state)
{
    (void)state;
    ED_SCOPE;
    counter a = new_counter(), b = new_counter(), silent = {0};
    ed_tensor *x = ed_ones(ED_SHAPE(3)), *v = ed_variable(x);
    assert_fails(ed_listen(NULL), ED_INVALID_ARGUMENT, "listen: listener is NULL");
    assert_true(ed_listen(&a.listener) && ed_listen(&silent.listener) && ed_listen(&b.listener));
    assert_fails(ed_listen(&a.listener), ED_FAILED_PRECONDITION, "already listening");
    ed_add(x, x);
    ed_assign_add(v, 1);
    ed_value(v);
    assert_int_equal(a.before, 3);
    assert_int_equal(a.after, 3);
    assert_string_equal(a.last->name, "identity");

    /* Refused by its operands: nothing; later: no `after`. */
    assert_fails(ed_add(x, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_int_equal(a.before, 3);
    assert_fails(ed_add(x, ed_ones(ED_SHAPE(2))), ED_INVALID_ARGUMENT, "add");
    assert_int_equal(a.before, 5);
    assert_int_equal(a.after, 4);

    b.leaves = true;
    ed_neg(x);
    ed_neg(x);
    assert_int_equal(b.after, 5);
    assert_int_equal(a.after, 6);
    assert_false(ed_unlisten(&b.listener));
    assert_true(ed_unlisten(&a.listener) && ed_unlisten(&silent.listener));
    ed_neg(x);
    assert_int_equal(a.after, 6);
    assert_fine();
}

static ed_tensor *squares(ed_list *inputs, void *user)
{
    (void)user;
    return ed_square(ed_mul(ed_list_get(inputs, 0), 3));
}

/* A listener hears what happens inside a function that a tape sees as one op. */
static void inside_functions(void **state)
{
    (void)state;
    ED_SCOPE;
    counter c = new_counter();
    ed_tensor *x = ed_scalar(2.0);
    ed_listen(&c.listener);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_recompute(squares, ed_list_of(x), NULL, NULL);
    assert_int_equal(c.after, 3);
    assert_string_equal(c.last->name, "recompute");
    ed_tensor *dx = ed_gradient(tape, y, x);
    assert_true(ed_item(dx) == 36);
    assert_true(ed_unlisten(&c.listener));
    assert_fine();
}

/* What f changes is not changed again when it is run again. */
static ed_tensor *counting(ed_list *inputs, void *user)
{
    ed_assign_add(user, 1);
    return ed_square(ed_list_get(inputs, 0));
}

static void writes_inside_functions(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_scalar(2.0), *calls = ed_variable(0.0, .trainable = false);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_recompute(counting, ed_list_of(x), calls, NULL);
    assert_true(ed_item(calls) == 1);
    assert_true(ed_item(ed_gradient(tape, y, x)) == 4);
    assert_true(ed_item(calls) == 1);
    assert_fine();
}

#define TEST(name) cmocka_unit_test_teardown(name, check_end)

/* A listener stops the one that would be notified next. */
static void stopped_by_another(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(3));
    for (int leaves = 0; leaves < 2; leaves++) {
        counter first = new_counter(), last = new_counter(),
                *middle = ed_memory_alloc(sizeof first);
        *middle = new_counter();
        first.other = middle;
        first.leaves = leaves;
        ed_listen(&last.listener);
        ed_listen(&middle->listener);
        ed_listen(&first.listener);
        ed_neg(x);
        assert_int_equal(first.after, 1);
        assert_int_equal(last.after, 1);
        assert_true(ed_unlisten(&first.listener) == !leaves);
        assert_true(ed_unlisten(&last.listener));
    }
    assert_fine();
}

static void ops_of_a_listener_fail(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(3));
    counter a = new_counter();
    a.calls = true;
    ed_listen(&a.listener);
    assert_fails(!ed_neg(x), ED_FAILED_PRECONDITION, "neg: a listener called the op");
    assert_int_equal(a.after, 1);
    assert_int_equal(a.before, 1);
    a.calls = false;
    assert_non_null(ed_neg(x));
    assert_true(ed_unlisten(&a.listener));
    assert_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stopped_by_another), TEST(ops_of_a_listener_fail),  TEST(notified),
        TEST(inside_functions),   TEST(writes_inside_functions), TEST(drawn_anew),
        TEST(steps_again),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
