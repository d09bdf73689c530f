/*
 * Forward mode: accumulators, and products of Jacobians and Hessians with vectors.
 */
#include "tests/checks.h"
#include "tests/tapes.h"

static ed_tensor *sum_of_cubes(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *a = ed_list_get(inputs, 0), *b = ed_list_get(inputs, 1);
    return ed_reduce_sum(ed_mul(ed_mul(ed_mul(a, a), a), b));
}

static void tangents(void)
{
    ed_tensor *x = V(1, 2), *w = ed_variable(ed_reshape(V(1, 2, 3, 4), ED_SHAPE(2, 2)));
    ed_tensor *dw = ed_reshape(V(1, 0, 0, 1), ED_SHAPE(2, 2)), *other = V(1, 1);
    ed_forward_accumulator *acc =
        ed_forward_accumulator_begin(ed_list_of(x, w), ed_list_of(V(10, 100), dw));
    ed_tensor *y = ed_matvec(w, x); /* W dx + dW x */
    assert_values(ed_forward_jvp(acc, y), 211, 432);
    ed_tensor *z = ed_mul(ed_exp(y), 2.0), *untouched = ed_exp(other);
    assert_values(ed_forward_jvp(acc, ed_list_get(ed_list_of(z, y), 1)), 211, 432);
    ed_list *both = ed_forward_jvp(acc, ed_list_of(z, untouched, x, w));
    assert_values(ed_list_get(both, 0), 2 * exp(5) * 211, 2 * exp(11) * 432);
    assert_unconnected(ed_list_get(both, 1));
    assert_values(ed_list_get(both, 2), 10, 100);
    assert_values(ed_list_get(both, 3), 1, 0, 0, 1);
    assert_unconnected(ed_forward_jvp(acc, untouched));
    assert_values(ed_forward_jvp(acc, untouched, .unconnected_zeros = true), 0, 0);
    assert_true(ed_forward_accumulator_stop(acc));
    ed_tensor *later = ed_mul(y, 2.0);
    assert_unconnected(ed_forward_jvp(acc, later));
    assert_values(ed_forward_jvp(acc, z), 2 * exp(5) * 211, 2 * exp(11) * 432);
    assert_unconnected(ed_forward_jvp(acc, ed_stop_gradient(y)));
}

/* Numbers and broadcasts are tangents; a variable's holds for all values that it takes. */
static void tangents_that_broadcast(void)
{
    ed_tensor *x = ed_reshape(V(1, 2, 3, 4), ED_SHAPE(2, 2)), *v = ed_variable(V(2, 3));
    ed_forward_accumulator *acc =
        ed_forward_accumulator_begin(ed_list_of(x, v), ed_list_of(V(1, 10), ed_number(5)));
    ed_tensor *before = ed_mul(v, v);
    ed_assign(v, V(7, 7));
    ed_tensor *y = ed_mul(x, x), *after = ed_mul(v, v);
    assert_values(ed_forward_jvp(acc, y), 2, 40, 6, 80);
    assert_values(ed_forward_jvp(acc, before), 20, 30);
    assert_values(ed_forward_jvp(acc, after), 70, 70);
    assert_values(ed_forward_jvp(acc, v), 5, 5);
}

/* Several results, a list of operands, one result that nobody uses, slices of rows, integers. */
static void ops_of_many_kinds(void)
{
    ed_tensor *x = ed_reshape(V(3, 1, 2, 6, 5, 4), ED_SHAPE(3, 2));
    ed_tensor *dx = ed_reshape(V(1, 2, 3, 4, 5, 6), ED_SHAPE(3, 2));
    ed_tensor *rows = ed_constant(ED_VALUES(int, 2, 0, 2), ED_SHAPE(3));
    ed_forward_accumulator *acc = ed_forward_accumulator_begin(ed_list_of(x), ed_list_of(dx));
    ed_list *parts = ed_unstack(x);
    ed_tensor *y = ed_concat(ed_list_of(ed_list_get(parts, 2), ed_list_get(parts, 0)));
    assert_values(ed_forward_jvp(acc, y), 5, 6, 1, 2);
    assert_values(ed_forward_jvp(acc, ed_gather(x, rows)), 5, 6, 1, 2, 5, 6);
    assert_values(ed_forward_jvp(acc, ed_sort(ed_reshape(x, ED_SHAPE(6)))), 2, 3, 1, 6, 5, 4);
    assert_values(ed_forward_jvp(acc, ed_reduce_max(x, .axis = ED_AXES(1))), 1, 4, 5);
    assert_values(ed_forward_jvp(acc, ed_cast(x, ED_FLOAT32)), 1, 2, 3, 4, 5, 6);
    assert_fails(ed_forward_jvp(acc, ed_argmax(x)), ED_INVALID_ARGUMENT, "jvp: target must have a");
    assert_fails(ed_forward_jvp(acc, ed_mul(x, ed_floor(x))), ED_UNIMPLEMENTED,
                 "jvp: the path from a source to the target contains floor");
    assert_values(ed_forward_jvp(acc, ed_mul(x, 2.0)), 2, 4, 6, 8, 10, 12);
}

/* ---- Every op -------------------------------------------------------------------------------- */

static ed_list *random_like(const ed_list *list, uint64_t *state)
{
    ed_list *result = scope_give(list_new(list->size));
    for (int64_t i = 0; i < list->size; i++) {
        const ed_tensor *x = list->items[i];
        ed_tensor *t = tensor_new(x->dtype, x->rank, x->shape);
        for (int64_t k = 0; k < t->size; k++)
            dtype_store(t->dtype, t->data, k, random_unit(state) - 0.5);
        result->items[i] = t;
    }
    return result;
}

static double product(const ed_list *a, const ed_list *b)
{
    double sum = 0;
    for (int64_t i = 0; i < a->size; i++) {
        const double *x = ed_as_doubles(a->items[i]), *y = ed_as_doubles(b->items[i]);
        for (int64_t k = 0; k < ed_size(a->items[i]); k++) sum += x[k] * y[k];
    }
    return sum;
}

/* The tensors of a trial to which gradients flow. */
static ed_list *primals_of(const trial *t)
{
    ed_tensor *some[ED_MAX_OPERANDS];
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) some[n++] = t->x[i];
    return ed_list_make(some, n);
}

/* u . (J t) is (u J) . t. Returns whether there was something to compare. */
static bool compare_with_reverse(const trial *t, uint64_t *state)
{
    ed_list *primals = primals_of(t), *ts = random_like(primals, state);
    if (!primals->size) return false;
    ed_tape *tape = ed_tape_begin(.ignore_accessed_variables = true);
    for (int64_t i = 0; i < primals->size; i++) ed_watch(tape, primals->items[i]);
    ed_forward_accumulator *acc = ed_forward_accumulator_begin(primals, ts);
    ed_list *y = trial_floats(trial_run(t));
    ed_forward_accumulator_stop(acc), ed_tape_stop(tape);
    if (!y) return false;
    ed_list *us = random_like(y, state);
    ed_list *dy = ed_forward_jvp(acc, y, .unconnected_zeros = true);
    ed_list *dx = ed_gradient(tape, y, primals, .output_gradients = us, .unconnected_zeros = true);
    if (!dy || !dx) fail_msg("%s: %s", t->op->name, ed_error());
    const double forward = product(us, dy), reverse = product(dx, ts);
    double tolerance = 1e-9; /* casts round */
    for (int64_t i = 0; i < y->size; i++)
        if (ed_dtype_of(y->items[i]) != ED_FLOAT64) tolerance = 1e-2;
    if (!(fabs(forward - reverse) <= tolerance * fmax(1, fabs(forward))))
        fail_msg("%s: %.17g forward, %.17g in reverse", t->op->name, forward, reverse);
    return true;
}

static void every_op(void)
{
    uint64_t state = 7;
    int compared = 0;
    for (int i = 0; i < ed_op_count(); i++) {
        const ed_op *op = ed_op_at(i);
        const bool first_order = op->flags & ED_OP_FIRST_ORDER; /* an error says so */
        if (op->no_gradient || !op->samples || check_is_closed(op) || first_order) continue;
        findings f = {.op = op, .sample = -1};
        trial t;
        bool any = false;
        for (int s = 0; trial_begin(&f, &t, s, ED_FLOAT64); s++) {
            ED_SCOPE;
            if (trial_fill(&t)) any |= compare_with_reverse(&t, &state);
        }
        compared += any;
    }
    if (compared < 150) fail_msg("%d ops only", compared);
}

/* ---- Tensors whose elements nobody reads ----------------------------------------------------- */

static int heard;
static void hear(ed_listener *self, const ed_call *call)
{
    (void)self, (void)call;
    heard++;
}

static void hollow_tensors(void)
{
    ed_tensor *u = ed_zeros(ED_SHAPE(2)), *v = ed_variable(ed_ones(ED_SHAPE(2)));
    u->flags |= TENSOR_HOLLOW;
    ed_listener listener = {.before = hear, .after = hear};
    ed_listen(&listener);
    ed_tensor *y = ed_concat(ed_list_of(ed_reshape(ed_exp(u), ED_SHAPE(2)), ed_ones(ED_SHAPE(1))));
    ed_tensor *row =
        ed_gather(ed_reshape(u, ED_SHAPE(2, 1)), ed_constant(ED_VALUES(int, 1), ED_SHAPE(1)));
    assert_true(y->flags & TENSOR_HOLLOW && row->flags & TENSOR_HOLLOW);
    assert_int_equal(ed_size(y), 3);
    assert_int_equal(heard, 2); /* of ed_ones */
    assert_fails(ed_equal(u, u), ED_UNIMPLEMENTED, "equal: an operand has no elements");
    assert_fails(ed_assign(v, u), ED_UNIMPLEMENTED, "it would write a value that has no elements");
    assert_false(ed_mul(v, v)->flags & TENSOR_HOLLOW);
    ed_unlisten(&listener);
}

/* ---- In and around tapes --------------------------------------------------------------------- */

/* Forward over reverse: the Hessian's product, the same as reverse over reverse. */
static void around_a_tape(void)
{
    ed_tensor *a = V(1, 2), *b = ed_variable(V(3, 4)), *u = V(0.5, -1), *v = V(2, 0.25);
    ed_list *inputs = ed_list_of(a, b), *vectors = ed_list_of(u, v);
    ed_forward_accumulator *acc = ed_forward_accumulator_begin(inputs, vectors);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, a);
    ed_tensor *y = sum_of_cubes(inputs, NULL);
    ed_list *products = ed_forward_jvp(acc, ed_gradient(tape, y, inputs));
    ed_forward_accumulator_stop(acc);
    ed_list *expected = ed_hessian_vector_product(sum_of_cubes, inputs, vectors, NULL);
    for (int i = 0; i < 2; i++) assert_same(ed_list_get(products, i), ed_list_get(expected, i));
}

/* Reverse over forward: the gradient of a tangent. */
static void inside_a_tape(void)
{
    ed_tensor *x = V(1, 2), *dx = V(3, 5);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x), ed_watch(tape, dx);
    ed_forward_accumulator *acc = ed_forward_accumulator_begin(ed_list_of(x), ed_list_of(dx));
    ed_tensor *y = ed_mul(ed_exp(x), x), *dy = ed_forward_jvp(acc, y); /* (1 + x) e^x dx */
    assert_values(dy, 6 * exp(1), 15 * exp(2));
    assert_values(ed_gradient(tape, dy, x), 9 * exp(1), 20 * exp(2));
    assert_values(ed_gradient(tape, dy, dx), 2 * exp(1), 3 * exp(2));
}

/* Forward over forward over forward: the third derivative. */
static void around_another(void)
{
    ed_tensor *x = V(2, 3);
    ed_list *xs = ed_list_of(x), *ones = ed_list_of(ed_number(1));
    ed_forward_accumulator *a = ed_forward_accumulator_begin(xs, ones);
    ed_forward_accumulator *b = ed_forward_accumulator_begin(xs, ones);
    ed_forward_accumulator *c = ed_forward_accumulator_begin(xs, ones);
    ed_tensor *y = ed_mul(ed_mul(x, x), ed_mul(x, x));
    ed_tensor *first = ed_forward_jvp(c, y), *second = ed_forward_jvp(b, first);
    assert_values(first, 32, 108);
    assert_values(second, 48, 108);
    assert_values(ed_forward_jvp(a, second), 48, 72);
    assert_values(ed_forward_jvp(a, y), 32, 108);
    assert_unconnected(ed_forward_jvp(c, first)); /* it does not hear itself */
}

/* ---- Functions of the program's -------------------------------------------------------------- */

static ed_tensor *square_of_first(ed_list *inputs, void *user)
{
    ed_tensor *x = ed_list_get(inputs, 0);
    const char *word = user;
    if (word && !strcmp(word, "null")) return NULL;
    if (word && !strcmp(word, "error")) return ed_fail(ED_OUT_OF_RANGE, "own words");
    if (word && !strcmp(word, "integer")) return ed_cast(x, ED_INT32);
    if (word && !strcmp(word, "constant")) return V(7);
    if (word && !strcmp(word, "scope")) {
        ed_scope outermost = {1};
        ed_scope_close(&outermost);
    }
    return ed_mul(x, x);
}

static ed_list *three_times(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    (void)y, (void)user;
    return ed_list_of(ed_mul(ed_mul(dy, ed_list_get(inputs, 0)), 3.0));
}

static void own_functions(void)
{
    ed_tensor *x = V(2, 3), *y;
    ed_list *xs = ed_list_of(x), *ts = ed_list_of(V(1, 10));
    ed_forward_accumulator *acc = ed_forward_accumulator_begin(xs, ts);
    y = ed_custom_gradient(square_of_first, three_times, xs, NULL, NULL);
    assert_values(ed_forward_jvp(acc, y), 6, 90);
    y = ed_recompute(square_of_first, xs, NULL, NULL);
    assert_values(ed_forward_jvp(acc, y), 4, 60);
    ed_forward_accumulator_stop(acc);

    assert_values(ed_jvp(square_of_first, xs, ts, NULL, &y), 4, 60);
    assert_values(y, 4, 9);
    assert_values(ed_jvp(square_of_first, xs, ts, "constant", NULL), 0);
    assert_fails(ed_jvp(square_of_first, xs, ts, "null", &y), ED_INVALID_ARGUMENT,
                 "jvp: the function returned NULL without an error");
    assert_fails(ed_jvp(square_of_first, xs, ts, "error", &y), ED_OUT_OF_RANGE, "own words");
    assert_fails(ed_jvp(square_of_first, xs, ts, "scope", &y), ED_FAILED_PRECONDITION,
                 "scope_close: the scope is from before");
    assert_fails(ed_jvp(square_of_first, xs, ts, "integer", &y), ED_INVALID_ARGUMENT, "float");
    assert_null(y);
    assert_fails(ed_jvp(NULL, xs, ts, NULL, NULL), ED_INVALID_ARGUMENT, "f is NULL");
    assert_null(thread_self()->listeners);
}

/* ---- Misuse ---------------------------------------------------------------------------------- */

static ed_forward_accumulator *asked;
static ed_list *asking(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    (void)inputs, (void)user, (void)dy;
    ed_tensor *t = ed_forward_jvp(asked, y);
    return t ? ed_list_of(t) : NULL;
}

static void misuse(void)
{
    ed_tensor *x = V(2, 3), *i = ed_constant(ED_VALUES(int, 1, 2), ED_SHAPE(2));
    ed_list *xs = ed_list_of(x), *ts = ed_list_of(V(1, 10)), *none = ed_list_make(NULL, 0);
    ed_list *hole = ed_list_make_optional((ed_tensor *[]){NULL}, 1);
#define BEGIN(primals, tangents, words)                                                            \
    assert_fails(ed_forward_accumulator_begin(primals, tangents), ED_INVALID_ARGUMENT, words)
    BEGIN(NULL, ts, "primals is NULL");
    BEGIN(xs, NULL, "tangents is NULL");
    BEGIN(xs, none, "got 0 tangents for 1 primals");
    BEGIN(hole, ts, "primal 0 is NULL");
    BEGIN(xs, hole, "tangent 0 is NULL");
    BEGIN(xs, ed_list_of(V(1, 2, 3)), "tangent 0 is float64[3], but its primal is float64[2]");
    BEGIN(xs, ed_list_of(ed_ones(ED_SHAPE(2))), "tangent 0 is float32[2]");
    BEGIN(ed_list_of(i), ed_list_of(i), "float dtype, got int32[2]");
    BEGIN(ed_list_of(ed_number(2)), ed_list_of(ed_number(2)), "plain number");
    BEGIN(ed_list_of(x, x), ed_list_of(x, x), "primal 1 is given twice");
    assert_null(thread_self()->listeners);

    ed_forward_accumulator *acc = ed_forward_accumulator_begin(xs, ts);
    assert_fails(ed_forward_jvp_list(acc, NULL, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_forward_jvp_list(acc, hole, NULL), ED_INVALID_ARGUMENT, "target 0 is NULL");
    assert_fails(ed_forward_jvp_tensor(NULL, x, NULL), ED_INVALID_ARGUMENT, "NULL");
    asked = acc;
    ed_tensor *y = ed_custom_gradient(square_of_first, asking, xs, NULL, NULL);
    assert_fails(ed_forward_jvp(acc, y), ED_FAILED_PRECONDITION, "asks for a JVP again");
    assert_values(ed_forward_jvp(acc, ed_mul(x, x)), 4, 60);
    assert_true(ed_forward_accumulator_stop(acc));
    assert_fails(ed_forward_accumulator_stop(acc), ED_FAILED_PRECONDITION, "stopped already");
    acc = ed_forward_accumulator_begin(none, none);
    assert_unconnected(ed_forward_jvp(acc, ed_mul(x, x)));
}

static bool attempt(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(double, 1, 2, 3), ED_SHAPE(3));
    ed_tensor *t = ed_constant(ED_VALUES(double, 3, 2, 1), ED_SHAPE(3));
    ed_list *xs = ed_list_of(x), *ts = ed_list_of(t);
    ed_tape *tape = ed_tape_begin();
    if (!tape || !ed_watch(tape, x)) return false;
    ed_forward_accumulator *acc = ed_forward_accumulator_begin(xs, ts);
    ed_tensor *y = acc ? ed_softmax(ed_mul(ed_exp(x), ed_gather(x, ed_argsort(x)))) : NULL;
    ed_tensor *dy = y ? ed_forward_jvp(acc, y) : NULL;
    ed_tensor *g = dy ? ed_gradient(tape, dy, x) : NULL;
    return g && !ed_failed();
}

static void allocations_that_fail(void)
{
    for (int all = 0; all < 2; all++) {
        int64_t n = 0;
        while (!succeeds_without(n, all, attempt)) n++;
        assert_true(n > 50);
    }
}

static int set_up(void **state)
{
    (void)state;
    ED_SCOPE;
    every_op(); /* what ops make once */
    return !grow_tables();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tangents),      TEST(tangents_that_broadcast), TEST(ops_of_many_kinds),
        TEST(every_op),      TEST(hollow_tensors),          TEST(around_a_tape),
        TEST(inside_a_tape), TEST(around_another),          TEST(own_functions),
        TEST(misuse),        TEST(allocations_that_fail),
    };
    return cmocka_run_group_tests_name("forward", tests, set_up, NULL);
}
