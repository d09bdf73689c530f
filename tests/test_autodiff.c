/*
 * The tape, sentence by sentence of autodiff/autodiff.h.
 */
#include "tests/tapes.h"
#include <pthread.h>

/* ---- Ops of the test's own ------------------------------------------------------------------- */

/* three: x -> 2 x, 3 x, x as int32. Counts the calls of its gradient and the missing dys. */
static int three_calls, three_missing;

static bool three_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    return ed_call_output(call, 0, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 1, x->dtype, x->rank, x->shape) &&
           ed_call_output(call, 2, ED_INT32, x->rank, x->shape);
}

static bool three_kernel(ed_call *call)
{
    const double *x = (const double *)call->inputs[0]->data;
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        ((double *)ed_call_data(call, 0))[i] = 2 * x[i];
        ((double *)ed_call_data(call, 1))[i] = 3 * x[i];
        ((int32_t *)ed_call_data(call, 2))[i] = (int32_t)x[i];
    }
    return true;
}

static bool three_gradient(const ed_gradient_call *g)
{
    three_calls++;
    three_missing += !g->dy[0] + !g->dy[1];
    assert_null(g->dy[2]);
    assert_null(g->inputs[0]);
    assert_null(g->outputs[0]);
    ed_tensor *a = g->dy[0] ? ed_mul(g->dy[0], 2) : NULL,
              *b = g->dy[1] ? ed_mul(g->dy[1], 3) : NULL;
    g->dx[0] = a && b ? ed_add(a, b) : a ? a : b;
    return true;
}

static const ed_op three = {.name = "test_three",
                            .doc = "2 x, 3 x, x as int32",
                            .operands = {{"x", 1 << ED_FLOAT64, 'T'}},
                            .results = ED_RESULTS({.name = "a"}, {.name = "b"}, {.name = "c"}),
                            .flags = ED_OP_CONTIGUOUS,
                            .infer = three_infer,
                            .kernel = three_kernel,
                            .gradient = three_gradient};

/* odd: any number of operands; the output is the first one's copy. Its gradient does what its
 * attributes say. */
typedef struct odd_attrs {
    ed_ints shape; /* of what the gradient returns */
    const char *word;
    ed_list *held;
} odd_attrs;

static const ed_field odd_schema[] = {{"shape", ED_FIELD_INTS, offsetof(odd_attrs, shape)},
                                      {"word", ED_FIELD_STRING, offsetof(odd_attrs, word)},
                                      {"held", ED_FIELD_OBJECT, offsetof(odd_attrs, held)},
                                      {0}};

static bool odd_kernel(ed_call *call)
{
    tensor_pack(call->inputs[0], ed_call_data(call, 0));
    return true;
}

static bool odd_gradient(const ed_gradient_call *g)
{
    const odd_attrs *a = g->attrs;
    if (!strcmp(a->word, "held")) g->dx[0] = ed_mul(g->dy[0], a->held->items[0]);
    if (!strcmp(a->word, "ones")) g->dx[0] = ed_ones(a->shape, .dtype = g->dtypes[0]);
    if (!strcmp(a->word, "float")) g->dx[0] = ed_ones(a->shape);
    if (!strcmp(a->word, "number")) g->dx[0] = ed_number(1);
    if (!strcmp(a->word, "failing")) g->dx[0] = ed_reshape(g->dy[0], ED_SHAPE(7, 7));
    if (!strcmp(a->word, "each"))
        for (int i = 0; i < g->n_inputs; i++)
            if (g->needs[i]) g->dx[i] = ed_mul(g->dy[0], i + 1);
    return strcmp(a->word, "false") != 0 || ed_fail(ED_OUT_OF_RANGE, "odd") != NULL;
}

static const ed_op odd = {.name = "test_odd",
                          .doc = "the first operand",
                          .operands = {{"x", ED_SET_ALL, 0}},
                          .flags = ED_OP_VARIADIC,
                          .attrs = odd_schema,
                          .attrs_size = sizeof(odd_attrs),
                          .infer = ops_infer_like,
                          .kernel = odd_kernel,
                          .gradient = odd_gradient};

static ed_tensor *odd_of(ed_tensor *x, const char *word, ed_ints shape)
{
    return ed_call_op(&odd, &x, 1, &(odd_attrs){.word = word, .shape = shape});
}

/* ---- Watching -------------------------------------------------------------------------------- */

static void watching(void)
{
    ed_tensor *x = V(1, 2, 3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *before = ed_mul(x, 5);
    assert_ptr_equal(ed_watch(tape, x), x);
    assert_ptr_equal(ed_watch(tape, x), x);
    ed_tensor *y = ed_mul(x, x), *constant = ed_mul(V(1), 2);
    assert_values(ed_gradient(tape, y, x), 2, 4, 6);
    assert_unconnected(ed_gradient(tape, before, x));
    assert_unconnected(ed_gradient(tape, constant, x));
    assert_fails(ed_watch(tape, ed_scalar(1)), ED_INVALID_ARGUMENT, "int32[]");
    assert_fails(ed_watch(tape, ed_number(1)), ED_INVALID_ARGUMENT, "plain number");
    assert_fails(ed_watch(tape, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_watch(NULL, x), ED_INVALID_ARGUMENT, "NULL");
    assert_non_null(ed_watch(tape, ed_zeros(ED_SHAPE(2), .dtype = ED_FLOAT16)));
    assert_non_null(ed_watch(tape, ed_zeros(ED_SHAPE(0))));
}

static void variables(void)
{
    ed_tensor *a = ed_variable(V(2)), *b = ed_variable(V(3));
    ed_tensor *fixed = ed_variable(V(5), .trainable = false);
    ed_tensor *whole = ed_variable(1), *unread = ed_variable(V(1));
    ed_tape *tape = ed_tape_begin();
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 0);
    ed_greater(b, a); /* a read is a read, whatever comes of it */
    ed_add(whole, 1);
    ed_tensor *y = ed_mul(ed_mul(b, a), fixed);
    ed_list *seen = ed_tape_watched_variables(tape);
    assert_int_equal(ed_list_size(seen), 2);
    assert_ptr_equal(ed_list_get(seen, 0), a);
    assert_ptr_equal(ed_list_get(seen, 1), b);
    ed_list *g = ed_gradient(tape, y, ed_list_of(a, b, fixed, whole, unread));
    assert_values(ed_list_get(g, 0), 15);
    assert_values(ed_list_get(g, 1), 10);
    for (int i = 2; i < 5; i++) assert_null(ed_list_get(g, i));
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 2);
    assert_fails(ed_tape_watched_variables(NULL), ED_INVALID_ARGUMENT, "NULL");

    tape = ed_tape_begin();
    assert_ptr_equal(ed_watch(tape, fixed), fixed);
    y = ed_mul(fixed, ed_mul(fixed, a));
    assert_values(ed_gradient(tape, y, fixed), 20);
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 2);

    tape = ed_tape_begin();
    assert_true(ed_variable_set_trainable(fixed, true) && ed_variable_set_trainable(a, false));
    g = ed_gradient(tape, ed_mul(fixed, a), ed_list_of(fixed, a));
    assert_values(ed_list_get(g, 0), 2);
    assert_null(ed_list_get(g, 1));
}

static void variables_ignored(void)
{
    ed_tensor *a = ed_variable(V(2)), *b = ed_variable(V(3));
    ed_tape *tape = ed_tape_begin(.ignore_accessed_variables = true);
    ed_watch(tape, b);
    ed_list *g = ed_gradient(tape, ed_mul(a, b), ed_list_of(a, b));
    assert_null(ed_list_get(g, 0));
    assert_values(ed_list_get(g, 1), 2);
    tape = ed_tape_begin(.ignore_accessed_variables = true);
    assert_unconnected(ed_gradient(tape, a, a));
}

/* Reading a variable is an op: gradients flow through what was read; those of several reads add
 * up. */
static void values_of_variables(void)
{
    ed_tensor *v = ed_variable(V(2)), *fixed = ed_variable(V(5), .trainable = false);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *value = ed_value(v), *y = ed_mul(value, v);
    assert_values(ed_gradient(tape, ed_mul(value, 3), v), 3);
    assert_values(ed_gradient(tape, y, v), 4);
    assert_values(ed_gradient(tape, y, value), 2);
    ed_assign(v, V(7));
    assert_values(value, 2);
    assert_values(ed_gradient(tape, y, v), 4);
    assert_values(ed_gradient(tape, ed_mul(value, ed_value(v)), v), 9);
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 1);
    ed_watch(tape, fixed);
    assert_values(ed_gradient(tape, ed_square(ed_value(fixed)), fixed), 10);
    assert_values(ed_gradient(tape, ed_mul(ed_identity(y), 2), v), 8);
    assert_unconnected(ed_gradient(tape, ed_mul(ed_stop_gradient(value), 2), v));
}

/* ---- A tape's life --------------------------------------------------------------------------- */

static void consumed(void)
{
    ed_tensor *x = V(3);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(x, x);
    assert_fails(ed_gradient(tape, ed_greater(x, 1), x), ED_INVALID_ARGUMENT,
                 "must have a float dtype");
    assert_fails(ed_gradient(tape, (ed_tensor *)NULL, x), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_gradient(tape, y, (ed_tensor *)NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_gradient(tape, y, (ed_list *)NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_gradient((ed_tape *)NULL, y, x), ED_INVALID_ARGUMENT, "NULL");
    assert_values(ed_gradient(tape, y, x), 6);
    assert_fails(ed_gradient(tape, y, x), ED_FAILED_PRECONDITION, ".persistent = true");
    assert_fails(ed_tape_stop(tape), ED_FAILED_PRECONDITION, "consumed by its first gradient");
    assert_fails(ed_tape_resume(tape), ED_FAILED_PRECONDITION, "consumed by its first gradient");
    assert_fails(ed_tape_reset(tape), ED_FAILED_PRECONDITION, "consumed by its first gradient");
    assert_fails(ed_watch(tape, x), ED_FAILED_PRECONDITION, "consumed by its first gradient");
    assert_null(thread_self()->listeners);
}

static void persistent(void)
{
    ed_tensor *x = V(3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(x, x), *z = ed_mul(y, y);
    for (int i = 0; i < 3; i++) {
        assert_values(ed_gradient(tape, z, x), 108);
        assert_values(ed_gradient(tape, y, x), 6);
        assert_values(ed_gradient(tape, z, y), 18);
    }
    ed_tensor *more = ed_mul(z, x); /* still recording */
    assert_values(ed_gradient(tape, more, x), 5 * 81);
}

static void stop_resume_reset(void)
{
    ed_tensor *x = V(3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(x, x);
    assert_fails(ed_tape_resume(tape), ED_FAILED_PRECONDITION, "already recording");
    assert_true(ed_tape_stop(tape));
    assert_fails(ed_tape_stop(tape), ED_FAILED_PRECONDITION, "not recording");
    assert_fails(ed_tape_reset(tape), ED_FAILED_PRECONDITION, "not recording");
    ed_tensor *unseen = ed_mul(y, 2);
    assert_true(ed_tape_resume(tape));
    ed_tensor *z = ed_mul(y, 3);
    assert_unconnected(ed_gradient(tape, unseen, x));
    assert_values(ed_gradient(tape, z, x), 18);
    assert_true(ed_tape_reset(tape));
    assert_unconnected(ed_gradient(tape, z, x));
    assert_unconnected(ed_gradient(tape, ed_mul(x, x), x));
    ed_watch(tape, x);
    assert_values(ed_gradient(tape, ed_mul(x, z), x), 27);
    assert_fails(ed_tape_stop(NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_tape_resume(NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_tape_reset(NULL), ED_INVALID_ARGUMENT, "NULL");

    ed_tensor *v = ed_variable(V(1));
    ed_mul(v, v);
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 1);
    assert_true(ed_tape_reset(tape));
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 0);
}

/* Tapes end with their scope, in any order, while others go on. */
static void tapes_and_scopes(void)
{
    ed_tensor *x = V(3);
    ed_tape *outer = ed_tape_begin();
    ed_watch(outer, x);
    {
        ED_SCOPE;
        ed_tape *inner = ed_tape_begin();
        ed_watch(inner, x);
        ed_mul(x, x);
    }
    ed_tape *first = ed_tape_begin(), *second = ed_tape_begin();
    ed_watch(first, x), ed_watch(second, x);
    ed_tensor *y = ed_mul(x, x);
    assert_values(ed_gradient(first, y, x), 6);
    ed_tensor *z = ed_mul(y, y);
    assert_values(ed_gradient(second, z, x), 108);
    assert_values(ed_gradient(outer, z, x), 108);
}

/* ---- Higher orders --------------------------------------------------------------------------- */

static void third_order(void)
{
    ed_tensor *x = V(2, -1);
    ed_tape *t1 = ed_tape_begin(), *t2 = ed_tape_begin(), *t3 = ed_tape_begin();
    ed_watch(t1, x), ed_watch(t2, x), ed_watch(t3, x);
    ed_tensor *square = ed_mul(x, x), *y = ed_mul(square, square);
    ed_tensor *d1 = ed_gradient(t3, y, x);
    ed_tensor *d2 = ed_gradient(t2, d1, x);
    ed_tensor *d3 = ed_gradient(t1, d2, x);
    assert_values(d1, 32, -4);
    assert_values(d2, 48, 12);
    assert_values(d3, 48, -24);
}

static void third_order_of_variable(void)
{
    ed_tensor *v = ed_variable(V(2));
    ed_tape *t1 = ed_tape_begin(), *t2 = ed_tape_begin(), *t3 = ed_tape_begin();
    ed_tensor *y = ed_mul(ed_mul(v, v), ed_mul(v, v));
    ed_tensor *d1 = ed_gradient(t3, y, v);
    ed_assign(v, V(100));
    ed_tensor *d2 = ed_gradient(t2, d1, v);
    assert_values(d2, 48);
    assert_values(ed_gradient(t1, d2, v), 48);
}

/* A persistent tape that still records, records its own gradients. */
static void own_context(void)
{
    ed_tensor *x = V(2);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_exp(ed_mul(x, 3)), *d = y;
    for (int order = 1; order <= 4; order++) {
        d = ed_gradient(tape, d, x);
        assert_values(d, pow(3, order) * exp(6));
    }
    assert_values(ed_gradient(tape, y, x), 3 * exp(6));
}

static void inner_watch_only(void)
{
    ed_tensor *x = V(2);
    ed_tape *outer = ed_tape_begin(), *inner = ed_tape_begin();
    ed_watch(inner, x);
    ed_tensor *d = ed_gradient(inner, ed_mul(x, x), x);
    assert_values(d, 4);
    assert_unconnected(ed_gradient(outer, d, x));
}

/* ---- Targets and sources --------------------------------------------------------------------- */

static void targets_and_sources(void)
{
    ed_tensor *x = V(1, 2), *w = V(3, 4), *other = V(0);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x), ed_watch(tape, w);
    ed_tensor *y = ed_mul(x, w), *z = ed_mul(y, y);
    assert_values(ed_gradient(tape, ed_list_of(y, z), x), 3 + 18, 4 + 64);
    assert_values(ed_gradient(tape, ed_list_of(y, y), x), 6, 8);
    ed_list *g = ed_gradient(tape, z, ed_list_of(w, x, x, y, other, z));
    assert_int_equal(ed_list_size(g), 6);
    assert_values(ed_list_get(g, 0), 6, 32);
    assert_values(ed_list_get(g, 1), 18, 64);
    assert_values(ed_list_get(g, 2), 18, 64);
    assert_values(ed_list_get(g, 3), 6, 16);
    assert_null(ed_list_get(g, 4));
    assert_values(ed_list_get(g, 5), 1, 1);
    assert_values(ed_gradient(tape, ed_list_of(x, z), x), 19, 65);
    assert_values(ed_gradient(tape, ed_list_of(y, z), y), 7, 17);
    assert_unconnected(ed_gradient(tape, y, z)); /* the wrong way round */
    assert_int_equal(ed_list_size(ed_gradient(tape, z, ed_list_make(NULL, 0))), 0);
    g = ed_gradient(tape, ed_list_make(NULL, 0), ed_list_of(x));
    assert_null(ed_list_get(g, 0));
    ed_list *holes = ed_gradient(tape, z, ed_list_of(other));
    assert_fails(ed_gradient(tape, z, holes), ED_INVALID_ARGUMENT, "source 0 is NULL");
    assert_fails(ed_gradient(tape, holes, x), ED_INVALID_ARGUMENT, "target 0 is NULL");
    assert_false(ed_failed());
}

static void variable_targets(void)
{
    ed_tensor *v = ed_variable(V(2)), *unread = ed_variable(V(5));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *y = ed_mul(v, v);
    assert_values(ed_gradient(tape, v, v), 1);
    assert_values(ed_gradient(tape, ed_list_of(y, v), v), 5);
    assert_unconnected(ed_gradient(tape, y, unread));
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 1);
    assert_values(ed_gradient(tape, unread, unread), 1);
    tape = ed_tape_begin();
    assert_values(ed_gradient(tape, unread, unread), 1);
}

static void unconnected(void)
{
    ed_tensor *x = V(1, 2), *other = ed_ones(ED_SHAPE(2, 3)), *whole = ed_scalar(3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x), ed_watch(tape, other);
    ed_tensor *y = ed_mul(x, x);
    assert_unconnected(ed_gradient(tape, y, other));
    assert_unconnected(ed_gradient(tape, y, whole));
    ed_tensor *zeros = ed_gradient(tape, y, other, .unconnected_zeros = true);
    assert_values(zeros, 0, 0, 0, 0, 0, 0);
    assert_int_equal(ed_dtype_of(zeros), ED_FLOAT32);
    assert_int_equal(ed_rank(zeros), 2);
    zeros = ed_gradient(tape, y, whole, .unconnected_zeros = true);
    assert_int_equal(ed_dtype_of(zeros), ED_INT32);
    ed_list *g = ed_gradient(tape, y, ed_list_of(other, x), .unconnected_zeros = true);
    assert_values(ed_list_get(g, 0), 0, 0, 0, 0, 0, 0);
    assert_values(ed_list_get(g, 1), 2, 4);
}

static void output_gradients(void)
{
    ed_tensor *x = V(1, 2), *v = ed_variable(V(5, 7));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(x, x), *z = ed_mul(x, 3);
#define GIVEN(...) .output_gradients = ed_list_of(__VA_ARGS__)
    assert_values(ed_gradient(tape, y, x, GIVEN(V(10, 100))), 20, 400);
    assert_values(ed_gradient(tape, y, x, GIVEN(S(10))), 20, 40);
    assert_values(ed_gradient(tape, y, x, GIVEN(V(10))), 20, 40);
    assert_values(ed_gradient(tape, y, x, GIVEN(ed_number(0.5))), 1, 2);
    assert_values(ed_gradient(tape, y, x, GIVEN(ed_integer(2))), 4, 8);
    assert_values(ed_gradient(tape, y, x, GIVEN(v)), 10, 28);
    assert_values(ed_gradient(tape, ed_list_of(y, z), x, GIVEN(V(1, 1), V(0, 2))), 2, 10);
    assert_fails(ed_gradient(tape, y, x, GIVEN(V(1, 2, 3))), ED_INVALID_ARGUMENT,
                 "output gradient 0 is float64[3], but its target is float64[2]");
    assert_fails(ed_gradient(tape, ed_list_of(y, z), x, GIVEN(V(1), ed_ones(ED_SHAPE(2)))),
                 ED_INVALID_ARGUMENT,
                 "output gradient 1 is float32[2], but its target is float64[2]");
    assert_fails(ed_gradient(tape, y, x, GIVEN(ed_ones(ED_SHAPE(1, 2), .dtype = ED_FLOAT64))),
                 ED_INVALID_ARGUMENT, "float64[1, 2]");
    assert_fails(ed_gradient(tape, y, x, GIVEN(y, z)), ED_INVALID_ARGUMENT,
                 "must have 1 entries like the targets, got 2");
    ed_list *holes = ed_gradient(tape, y, ed_list_of(S(1)));
    assert_fails(ed_gradient(tape, y, x, .output_gradients = holes), ED_INVALID_ARGUMENT,
                 "output gradient 0 is NULL");
    /* and what flows in may itself be differentiated */
    ed_tensor *dy = V(2, 3);
    ed_watch(tape, dy);
    ed_tensor *dx = ed_gradient(tape, y, x, GIVEN(dy));
    assert_values(ed_gradient(tape, dx, dy), 2, 4);
}

/* ---- Variables that change ------------------------------------------------------------------- */

static void assigned_between(void)
{
    ed_tensor *v = ed_variable(V(2, 3)), *x = V(10, 20);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(ed_mul(v, v), x);
    ed_assign(v, V(100, 100));
    assert_values(ed_gradient(tape, y, v), 40, 120);
    ed_assign_add(v, V(1, 1));
    assert_values(ed_gradient(tape, y, x), 4, 9);
    assert_values(v, 101, 101);

    /* both reads count, each with its value */
    tape = ed_tape_begin();
    ed_assign(v, V(2, 3));
    ed_tensor *a = ed_mul(v, v);
    ed_assign_sub(v, V(1, 1));
    ed_tensor *b = ed_mul(v, ed_mul(v, v));
    assert_values(ed_gradient(tape, ed_add(a, b), v), 4 + 3, 6 + 12);
}

/* What is assigned is cut off from what it was made of; writing copies what
 * somebody still holds. */
static void assigned_inside(void)
{
    ed_tensor *v = ed_variable(V(2)), *x = V(5);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_assign(v, ed_mul(x, x));
    ed_tensor *y = ed_mul(v, v);
    assert_unconnected(ed_gradient(tape, y, x));
    assert_values(ed_gradient(tape, y, v), 50);
    ed_assign_add(v, x);
    assert_values(v, 30);
    assert_unconnected(ed_gradient(tape, ed_mul(v, 1), x));
    ed_tensor *held = ed_value(v);
    ed_assign_add(v, V(1));
    assert_values(held, 30);
    assert_values(ed_gradient(tape, y, v), 50);
    ed_tensor *saved = ed_mul(v, x);
    for (int i = 0; i < 3; i++) ed_assign_add(v, V(1));
    assert_values(ed_gradient(tape, saved, x), 31);
}

/* ---- Ways that are cut ----------------------------------------------------------------------- */

static void whole_numbers_cut(void)
{
    ed_tensor *x = V(1.5, 2.5);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *cut = ed_cast(ed_cast(x, ED_INT32), ED_FLOAT64);
    assert_unconnected(ed_gradient(tape, cut, x));
    assert_values(ed_gradient(tape, ed_mul(cut, x), x), 1, 2);
    assert_fails(ed_gradient(tape, ed_cast(x, ED_INT32), x), ED_INVALID_ARGUMENT, "int32[2]");
    ed_tensor *through = ed_cast(ed_cast(x, ED_FLOAT32), ED_FLOAT64);
    assert_values(ed_gradient(tape, ed_mul(through, through), x), 3, 5);
    assert_int_equal(ed_dtype_of(ed_gradient(tape, through, x)), ED_FLOAT64);
    assert_values(ed_gradient(tape, ed_where(ed_greater(x, 2), ed_mul(x, x), x), x), 1, 5);
}

static void no_gradient(void)
{
    ed_tensor *x = V(1.5);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *low = ed_floor(x), *y = ed_mul(low, x), *z = ed_mul(y, y), *w = ed_mul(x, x);
    assert_fails(ed_gradient(tape, y, x), ED_UNIMPLEMENTED, "floor");
    assert_values(ed_gradient(tape, y, low), 1.5);          /* upstream of the source */
    assert_values(ed_gradient(tape, w, x), 3);              /* off the target */
    assert_values(ed_gradient(tape, z, y), 2 * 1.5);        /* both */
    assert_values(ed_gradient(tape, ed_mul(w, low), w), 1); /* on a branch to no source */
    assert_fails(ed_gradient(tape, ed_list_of(w, z), ed_list_of(w, x)), ED_UNIMPLEMENTED, "floor");
}

static void stop_gradient(void)
{
    ed_tensor *x = V(3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *stopped = ed_stop_gradient(x);
    assert_values(stopped, 3);
    assert_values(ed_gradient(tape, ed_mul(x, stopped), x), 3);
    assert_unconnected(ed_gradient(tape, stopped, x));
    assert_values(ed_gradient(tape, stopped, x, .unconnected_zeros = true), 0);
    ed_watch(tape, stopped); /* a tensor that no tape knows until it is watched */
    assert_values(ed_gradient(tape, ed_mul(stopped, stopped), stopped), 6);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static void several_outputs(void)
{
    ed_tensor *x = V(1, 2), *y[3];
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    assert_true(ed_execute(&three, &x, 1, NULL, y));
    three_calls = three_missing = 0;
    assert_values(ed_gradient(tape, ed_mul(y[0], y[1]), x), 12, 24);
    assert_int_equal(three_missing, 0);
    assert_values(ed_gradient(tape, y[1], x), 3, 3);
    assert_int_equal(three_missing, 1);
    assert_values(ed_gradient(tape, ed_list_of(y[0], y[1]), x), 5, 5);
    assert_int_equal(three_calls, 3);
    /* as a source, an output gets what flows into it, and the other one nothing */
    ed_list *g = ed_gradient(tape, ed_mul(y[0], y[0]), ed_list_of(y[0], y[1]));
    assert_values(ed_list_get(g, 0), 4, 8);
    assert_null(ed_list_get(g, 1));
    assert_int_equal(three_calls, 3);
    assert_unconnected(ed_gradient(tape, ed_cast(y[2], ED_FLOAT64), x));
}

static void many_operands(void)
{
    enum { N = 40 };
    ed_tensor *x[N];
    ed_tape *tape = ed_tape_begin(.persistent = true);
    for (int i = 0; i < N; i++) {
        x[i] = i % 3 == 2 ? ed_scalar(i) : S(i);
        if (i % 3 == 1) ed_watch(tape, x[i]);
    }
    ed_tensor *y = ed_call_op(&odd, x, N, &(odd_attrs){.word = "each", .shape = ED_SHAPE()});
    for (int i = 0; i < N; i++) {
        ed_tensor *g = ed_gradient(tape, y, x[i]);
        if (i % 3 == 1)
            assert_values(g, i + 1);
        else
            assert_unconnected(g);
    }
}

/* The tape's copy of attributes outlives the caller's. */
static void attributes(void)
{
    ed_tensor *x = V(1, 2, 3), *y, *z;
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    {
        char word[] = "ones";
        int64_t shape[] = {3};
        y = odd_of(x, word, (ed_ints){shape, 1});
        memset(word, 'x', 4);
        shape[0] = -1;
        ED_SCOPE;
        z = ed_keep(
            ed_call_op(&odd, &x, 1, &(odd_attrs){.word = "held", .held = ed_list_of(V(4, 5, 6))}));
    }
    assert_values(ed_gradient(tape, y, x), 1, 1, 1);
    assert_values(ed_gradient(tape, z, x), 4, 5, 6);
}

static void wrong_gradients(void)
{
    ed_tensor *x = V(1, 2, 3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = odd_of(x, "ones", ED_SHAPE(1, 3));
    assert_fails(
        ed_gradient(tape, y, x), ED_INVALID_ARGUMENT,
        "gradient of test_odd: the gradient of operand 0 is float64[1, 3], but the operand is "
        "float64[3]");
    assert_fails(ed_gradient(tape, odd_of(x, "float", ED_SHAPE(3)), x), ED_INVALID_ARGUMENT,
                 "float32[3]");
    assert_fails(ed_gradient(tape, odd_of(x, "failing", ED_SHAPE(3)), x), ED_INVALID_ARGUMENT,
                 "reshape");
    assert_fails(ed_gradient(tape, odd_of(x, "false", ED_SHAPE(3)), x), ED_OUT_OF_RANGE, "odd");
    ed_tensor *s = S(1);
    ed_watch(tape, s);
    assert_fails(ed_gradient(tape, odd_of(s, "number", ED_SHAPE(3)), s), ED_INVALID_ARGUMENT,
                 "number");
    assert_unconnected(ed_gradient(tape, odd_of(x, "nothing", ED_SHAPE()), x));
    /* an error that was kept before hides none */
    ed_tensor *failing = odd_of(x, "failing", ED_SHAPE(3)), *good = ed_mul(x, x);
    ed_fail(ED_NOT_FOUND, "earlier");
    assert_null(ed_gradient(tape, failing, x));
    assert_values(ed_gradient(tape, good, x), 2, 4, 6);
    failed_with(ED_NOT_FOUND, "earlier");
}
/* ---- Memory ---------------------------------------------------------------------------------- */

static void nothing_watched(void)
{
    enum { N = 1000 };
    ed_tensor *x = ed_ones(ED_SHAPE(N));
    ed_tape *tape = ed_tape_begin();
    int64_t before = ed_memory_stats().live_bytes, tensors = ed_memory_stats().live_tensors;
    for (int i = 0; i < 200; i++) {
        ED_SCOPE;
        ed_tanh(ed_mul(x, x));
    }
    assert_int_equal(ed_memory_stats().live_tensors, tensors);
    assert_int_equal(ed_memory_stats().live_bytes, before);
    assert_unconnected(ed_gradient(tape, x, x));
}

/* Ops save what they declare: a chain of additions keeps no tensor alive, one of tanh each. */
static void what_is_saved(void)
{
    enum { N = 50 };
    ed_tensor *x = ed_ones(ED_SHAPE(100));
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    int64_t tensors = ed_memory_stats().live_tensors;
    for (int i = 0; i < N; i++) {
        ED_SCOPE;
        ed_add(x, x), ed_tanh(x);
    }
    assert_int_equal(ed_memory_stats().live_tensors, tensors + N);
}

/* A walk gives up what it has passed: gradients take the place of what was saved. */
static void walk_frees(void)
{
    enum { N = 64, SIZE = 16 << 10 };
    int64_t peaks[2];
    for (int persistent = 0; persistent < 2; persistent++) {
        ED_SCOPE;
        ed_tensor *x = ed_ones(ED_SHAPE(SIZE));
        ed_tape *tape = ed_tape_begin(.persistent = persistent);
        ed_watch(tape, x);
        ed_tensor *y = x, *kept[N];
        for (int i = 0; i < N; i++) {
            ED_SCOPE;
            kept[i] = y = ed_retain(ed_tanh(y));
        }
        for (int i = 0; i < N; i++) ed_release(kept[i]); /* the tape holds them */
        assert_true(ed_tape_stop(tape));
        int64_t before = ed_memory_stats().live_bytes;
        assert_true(before > N * SIZE * 4);
        ed_memory_reset_peak();
        ed_tensor *g = ed_gradient(tape, y, x);
        assert_non_null(g);
        peaks[persistent] = ed_memory_stats().peak_bytes - before;
        int64_t left = ed_memory_stats().live_bytes - before;
        if (persistent)
            assert_true(left > 0);
        else
            assert_true(left < -(N - 2) * SIZE * 4);
        if (peaks[persistent] > 8 * SIZE * 4) fail_msg("peak %lld", (long long)peaks[persistent]);
    }
}

static void long_chain(void)
{
    enum { N = 100000 };
    ed_tensor *x = V(1), *one = V(1);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = x;
    for (int i = 0; i < N; i++) {
        ED_SCOPE;
        y = ed_keep(i % 2 ? ed_mul(y, one) : ed_add(y, x));
    }
    assert_values(y, N / 2 + 1);
    assert_values(ed_gradient(tape, y, x), N / 2 + 1);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static ed_tensor *shared;

static void *in_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *y = shared;
        for (int k = 0; k < 20; k++) y = ed_mul(y, shared);
        ed_tensor *g = ed_gradient(tape, y, shared);
        if (!g || fabs(ed_item(g) - 21 * pow(1.1, 20)) > 1e-9) return "wrong";
        if (ed_list_size(ed_tape_watched_variables(tape)) != 1 || ed_failed()) return "wrong";
    }
    return NULL;
}

static void threads(void)
{
    enum { N = 4 };
    pthread_t thread[N];
    shared = ed_variable(V(1.1));
    ed_tape *tape = ed_tape_begin(); /* hears nothing of the others */
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, in_thread, NULL), 0);
    for (int i = 0; i < N; i++) {
        void *word;
        pthread_join(thread[i], &word);
        assert_null(word);
    }
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 0);
}

/* A tape that knows tensors of many threads finds them as fast. */
static void *make_tensor(void *list)
{
    ed_list *l = list;
    for (int64_t i = 0; i < l->size; i++) {
        ED_SCOPE;
        l->items[i] = ed_retain(V(1));
    }
    return NULL;
}

static void ids_of_threads(void)
{
    enum { THREADS = 8, N = 4000 };
    ed_tensor *sum = S(0);
    ed_tape *tape = ed_tape_begin();
    ed_list *lists[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        lists[i] = scope_give(list_new(N));
        assert_int_equal(pthread_create(&thread, NULL, make_tensor, lists[i]), 0);
        pthread_join(thread, NULL);
        for (int64_t k = 0; k < N; k++) ed_watch(tape, lists[i]->items[k]);
    }
    for (int i = 0; i < THREADS; i++) sum = ed_add(sum, ed_mul(ed_list_get(lists[i], i), i));
    assert_values(ed_gradient(tape, sum, ed_list_get(lists[5], 5)), 5);
}

/* ---- All ------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    return !grow_tables() || !ed_op_register(&three) || !ed_op_register(&odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(watching),
        TEST(variables),
        TEST(variables_ignored),
        TEST(values_of_variables),
        TEST(consumed),
        TEST(persistent),
        TEST(stop_resume_reset),
        TEST(tapes_and_scopes),
        TEST(third_order),
        TEST(third_order_of_variable),
        TEST(own_context),
        TEST(inner_watch_only),
        TEST(targets_and_sources),
        TEST(variable_targets),
        TEST(unconnected),
        TEST(output_gradients),
        TEST(assigned_between),
        TEST(assigned_inside),
        TEST(whole_numbers_cut),
        TEST(no_gradient),
        TEST(stop_gradient),
        TEST(several_outputs),
        TEST(many_operands),
        TEST(attributes),
        TEST(wrong_gradients),
        TEST(nothing_watched),
        TEST(what_is_saved),
        TEST(walk_frees),
        TEST(long_chain),
        TEST(threads),
        TEST(ids_of_threads),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
