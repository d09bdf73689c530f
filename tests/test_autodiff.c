/*
 * The tape, sentence by sentence of autodiff/autodiff.h. Every test runs in a scope of its own and
 * must leave no error, no tensor and no byte behind.
 */
#include "autodiff/autodiff.h"
#include "ops/execute.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Helpers --------------------------------------------------------------------------------- */

#define COUNT(...) (sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define V(...)     ed_constant(((double[]){__VA_ARGS__}), ED_SHAPE(COUNT(__VA_ARGS__)))
#define S(number)  ed_scalar(number, .dtype = ED_FLOAT64)

static void near(const char *file, int line, const ed_tensor *t, const double *expected, size_t n)
{
    if (!t) {
        print_error("NULL instead of a tensor: %s\n", ed_error());
        _fail(file, line);
        return;
    }
    const double *values = ed_as_doubles(t);
    if (ed_size(t) != (int64_t)n) print_error("%s", text_of_tensor(t).s), _fail(file, line);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(values[i] - expected[i]) <= 1e-12 + 1e-6 * fabs(expected[i])) &&
            !(isnan(values[i]) && isnan(expected[i]))) {
            print_error("element %zu is %.17g, expected %.17g\n", i, values[i], expected[i]);
            _fail(file, line);
        }
}

/* The tensor's elements are these. */
#define assert_values(tensor, ...)                                                                 \
    near(__FILE__, __LINE__, tensor, (double[]){__VA_ARGS__}, COUNT(__VA_ARGS__))

static void same(const char *file, int line, const ed_tensor *a, const ed_tensor *b)
{
    if (!a || !b)
        print_error("NULL: %s\n", ed_error()), _fail(file, line);
    else
        near(file, line, a, ed_as_doubles(b), (size_t)ed_size(b));
}
#define assert_same(a, b) same(__FILE__, __LINE__, a, b)

static void failed(const char *file, int line, ed_error_code code, const char *part)
{
    if (ed_error_kind() != code || !strstr(ed_error(), part)) {
        print_error("error %d '%s', expected %d '%s'\n", ed_error_kind(), ed_error(), code, part);
        _fail(file, line);
    }
    ed_clear_error();
}

/* The call gives nothing and keeps this error. */
#define assert_fails(call, code, part)                                                             \
    do {                                                                                           \
        assert_false(ed_failed());                                                                 \
        assert_false(call);                                                                        \
        failed(__FILE__, __LINE__, code, part);                                                    \
    } while (0)

/* The call gives nothing, which is no error. */
#define assert_unconnected(call)                                                                   \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_string_equal(ed_error(), "");                                                       \
    } while (0)

static void run(void **state)
{
    ed_scope_close(&(ed_scope){1}); /* what a test left that failed */
    ed_clear_error();
    int64_t tensors = ed_memory_stats().live_tensors, bytes = ed_memory_stats().live_bytes;
    {
        ED_SCOPE;
        (*(void (*const *)(void)) * state)();
    }
    assert_string_equal(ed_error(), "");
    assert_int_equal(ed_memory_stats().live_tensors, tensors);
    assert_int_equal(ed_memory_stats().live_bytes, bytes);
    assert_null(thread_self()->listeners);
}

/* ---- Ops of the test's own ------------------------------------------------------------------- */

/* three: x -> 2 x, 3 x, round(x) as int32. Counts the calls of its gradient and the missing dys. */
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
                            .n_outputs = 3,
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

static const ed_attr odd_schema[] = {ATTR(odd_attrs, shape, ED_ATTR_INTS, ""),
                                     ATTR(odd_attrs, word, ED_ATTR_STRING, ""),
                                     ATTR(odd_attrs, held, ED_ATTR_OBJECT, ""),
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
    if (!strcmp(a->word, "ones"))
        g->dx[0] = ed_ones_with(a->shape, &(ed_create_options){.dtype = g->dtypes[0]});
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
    ed_tensor *fixed = ed_variable(V(5), .not_trainable = true);
    ed_tensor *whole = ed_variable(1), *unread = ed_variable(V(1));
    ed_tape *tape = ed_tape_begin();
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 0);
    ed_greater(b, a); /* a read is a read, whatever comes of it */
    ed_add(whole, 1);
    ed_tensor *y = ed_mul(ed_mul(b, a), fixed);
    ed_list *seen = ed_watched_variables(tape);
    assert_int_equal(ed_list_size(seen), 2);
    assert_ptr_equal(ed_list_get(seen, 0), a);
    assert_ptr_equal(ed_list_get(seen, 1), b);
    ed_list *g = ed_gradient(tape, y, ed_list_of(a, b, fixed, whole, unread));
    assert_values(ed_list_get(g, 0), 15);
    assert_values(ed_list_get(g, 1), 10);
    for (int i = 2; i < 5; i++) assert_null(ed_list_get(g, i));
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 2);
    assert_fails(ed_watched_variables(NULL), ED_INVALID_ARGUMENT, "NULL");

    tape = ed_tape_begin();
    assert_ptr_equal(ed_watch(tape, fixed), fixed);
    y = ed_mul(fixed, ed_mul(fixed, a));
    assert_values(ed_gradient(tape, y, fixed), 20);
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 2);

    tape = ed_tape_begin();
    assert_true(ed_set_trainable(fixed, true) && ed_set_trainable(a, false));
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

/* ed_value is a constant, whether the variable was read before it or not. */
static void values_of_variables(void)
{
    ed_tensor *v = ed_variable(V(2));
    for (int read = 0; read < 2; read++) {
        ed_tape *tape = ed_tape_begin(.persistent = true);
        if (read) ed_mul(v, 1);
        ed_tensor *value = ed_value(v), *y = ed_mul(value, v);
        assert_values(ed_gradient(tape, y, v), 2);
        assert_unconnected(ed_gradient(tape, y, value));
        ed_watch(tape, value);
        y = ed_mul(value, v);
        assert_values(ed_gradient(tape, y, v), 2);
        assert_values(ed_gradient(tape, y, value), 2);
    }
}

/* ---- A tape's life --------------------------------------------------------------------------- */

static void consumed(void)
{
    ed_tensor *x = V(3);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(x, x);
    assert_fails(ed_gradient(tape, ed_greater(x, 1), x), ED_INVALID_ARGUMENT, "floats only");
    assert_fails(ed_gradient(tape, (ed_tensor *)NULL, x), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_gradient(tape, y, (ed_tensor *)NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_gradient(tape, y, (ed_list *)NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_gradient((ed_tape *)NULL, y, x), ED_INVALID_ARGUMENT, "NULL");
    assert_values(ed_gradient(tape, y, x), 6);
    assert_fails(ed_gradient(tape, y, x), ED_FAILED_PRECONDITION, ".persistent = true");
    assert_fails(ed_tape_stop(tape), ED_FAILED_PRECONDITION, "one gradient");
    assert_fails(ed_tape_resume(tape), ED_FAILED_PRECONDITION, "one gradient");
    assert_fails(ed_tape_reset(tape), ED_FAILED_PRECONDITION, "one gradient");
    assert_fails(ed_watch(tape, x), ED_FAILED_PRECONDITION, "one gradient");
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
    assert_fails(ed_tape_resume(tape), ED_FAILED_PRECONDITION, "recording already");
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
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 1);
    assert_true(ed_tape_reset(tape));
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 0);
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
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 1);
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
                 "output gradient 0 is float64[3], its target float64[2]");
    assert_fails(ed_gradient(tape, ed_list_of(y, z), x, GIVEN(V(1), ed_ones(ED_SHAPE(2)))),
                 ED_INVALID_ARGUMENT, "output gradient 1 is float32[2], its target float64[2]");
    assert_fails(ed_gradient(tape, y, x, GIVEN(ed_ones(ED_SHAPE(1, 2), .dtype = ED_FLOAT64))),
                 ED_INVALID_ARGUMENT, "float64[1, 2]");
    assert_fails(ed_gradient(tape, y, x, GIVEN(y, z)), ED_INVALID_ARGUMENT,
                 "2 output gradients for 1 targets");
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

/* What is assigned is cut off from what it was made of; writing copies what somebody still holds.
 */
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
        "gradient of test_odd: that of operand 0 is float64[1, 3], the operand float64[3]");
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
    failed(__FILE__, __LINE__, ED_NOT_FOUND, "earlier");
}

/* ---- Custom gradients ------------------------------------------------------------------------ */

static int released;

static void count_release(void *user)
{
    (void)user;
    released++;
}

/* What the functions below are told. */
typedef struct told {
    ed_tensor *tensor; /* read beside the inputs */
    ed_tensor *target; /* to ask for */
    ed_tape *tape;
    const char *word;
    int calls;
} told;

/* x^3, whose gradient is said to be 10 x^2 dy. */
static ed_tensor *cube(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *x = ed_list_get(inputs, 0);
    return ed_mul(x, ed_mul(x, x));
}

static ed_list *ten_squares(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    (void)user;
    ed_tensor *x = ed_list_get(inputs, 0);
    if (!ed_failed()) assert_ptr_not_equal(output, x);
    return ed_list_of(ed_mul(dy, ed_mul(10, ed_mul(x, x))));
}

static void custom_gradient(void)
{
    ed_tensor *x = V(1, 2);
    ed_tape *outer = ed_tape_begin(), *tape = ed_tape_begin();
    ed_watch(tape, x), ed_watch(outer, x);
    released = 0;
    ed_tensor *y =
        ed_mul(ed_custom_gradient(cube, ten_squares, ed_list_of(x), NULL, count_release), V(1, 3));
    assert_values(y, 1, 24);
    ed_tensor *d = ed_gradient(tape, y, x);
    assert_values(d, 10, 120);
    assert_int_equal(released, 0); /* the outer tape holds it */
    assert_values(ed_gradient(outer, d, x), 20, 120);
    assert_int_equal(released, 1);
}

static void custom_of_variable(void)
{
    ed_tensor *v = ed_variable(V(2));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_custom_gradient(cube, ten_squares, ed_list_of(v), NULL, NULL);
    ed_assign(v, V(100));
    assert_values(ed_gradient(tape, y, v), 40);
}

static ed_tensor *odd_function(ed_list *inputs, void *user)
{
    told *t = user;
    t->calls++;
    ed_tensor *x = ed_list_get(inputs, 0);
    if (!strcmp(t->word, "null")) return NULL;
    if (!strcmp(t->word, "error")) return ed_fail(ED_OUT_OF_RANGE, "own words");
    if (!strcmp(t->word, "left")) ed_reshape(x, ED_SHAPE(3, 3));
    if (!strcmp(t->word, "number")) return ed_number(1);
    if (!strcmp(t->word, "input")) return x;
    if (!strcmp(t->word, "stop")) ed_tape_stop(t->tape);
    if (!strcmp(t->word, "gradient")) ed_gradient(t->tape, x, x);
    if (!strcmp(t->word, "tape")) ed_watch(ed_tape_begin(), x);
    return t->tensor ? ed_mul(x, t->tensor) : ed_mul(x, 2);
}

static ed_list *odd_backward(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    told *t = user;
    (void)output;
    if (!strcmp(t->word, "two")) return ed_list_of(dy, dy);
    if (!strcmp(t->word, "no list")) return NULL;
    if (!strcmp(t->word, "backward error")) return ed_fail(ED_OUT_OF_RANGE, "own words");
    if (!strcmp(t->word, "shape")) return ed_list_of(ed_reshape(dy, ED_SHAPE(1, -1)));
    if (!strcmp(t->word, "reset")) ed_tape_reset(t->tape);
    if (!strcmp(t->word, "ask")) {
        ed_tensor *x = ed_list_get(inputs, 0);
        return ed_list_of(ed_gradient(t->tape, t->target, x));
    }
    if (!strcmp(t->word, "unconnected")) {
        ed_tensor *x = ed_list_get(inputs, 0);
        return ed_gradient(ed_tape_begin(), x, ed_list_of(x)); /* a list of one NULL */
    }
    return ed_list_of(dy);
}

static ed_tensor *odd_custom(told *t, ed_tensor *x)
{
    return ed_custom_gradient(odd_function, odd_backward, ed_list_of(x), t, count_release);
}

/* Release is called once, however it goes. */
static void custom_failures(void)
{
    ed_tensor *x = V(1, 2), *v = ed_variable(V(3, 4), .name = "weights");
    told t = {.word = "null"};
#define REFUSED(call, code, part)                                                                  \
    do {                                                                                           \
        released = 0;                                                                              \
        assert_fails(call, code, part);                                                            \
        assert_int_equal(released, 1);                                                             \
    } while (0)
    REFUSED(odd_custom(&t, x), ED_INVALID_ARGUMENT, "returned NULL");
    t.word = "error";
    REFUSED(odd_custom(&t, x), ED_OUT_OF_RANGE, "own words");
    t.word = "left";
    REFUSED(odd_custom(&t, x), ED_INVALID_ARGUMENT, "reshape");
    t.word = "number";
    REFUSED(odd_custom(&t, x), ED_INVALID_ARGUMENT, "plain number");
    t = (told){.word = "", .tensor = v};
    REFUSED(odd_custom(&t, x), ED_INVALID_ARGUMENT, "the variable weights");
    ed_list *inputs = ed_list_of(x), *none = ed_list_make(NULL, 0);
#define CUSTOM(f, g, list) ed_custom_gradient(f, g, list, &t, count_release)
    REFUSED(CUSTOM(NULL, odd_backward, inputs), ED_INVALID_ARGUMENT, "NULL");
    REFUSED(CUSTOM(odd_function, NULL, inputs), ED_INVALID_ARGUMENT, "NULL");
    REFUSED(CUSTOM(odd_function, odd_backward, NULL), ED_INVALID_ARGUMENT, "NULL");
    REFUSED(CUSTOM(odd_function, odd_backward, none), ED_INVALID_ARGUMENT, "at least one");

    static const struct {
        const char *word, *part;
        ed_error_code code;
    } cases[] = {{"two", "2 gradients for 1 inputs", ED_INVALID_ARGUMENT},
                 {"no list", "returned NULL", ED_INVALID_ARGUMENT},
                 {"backward error", "own words", ED_OUT_OF_RANGE},
                 {"shape", "float64[1, 2], the operand float64[2]", ED_INVALID_ARGUMENT},
                 {"reset", "a gradient is being computed", ED_FAILED_PRECONDITION}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t = (told){.word = cases[i].word};
        released = 0;
        ED_SCOPE;
        t.tape = ed_tape_begin(.persistent = true);
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x), ed_watch(t.tape, x);
        ed_tensor *y = odd_custom(&t, x);
        assert_fails(ed_gradient(i == 4 ? t.tape : tape, y, x), cases[i].code, cases[i].part);
        assert_int_equal(released, 0);
        assert_true(ed_tape_reset(t.tape));
        assert_int_equal(released, i != 4 ? 1 : 0);
    }
}

static void custom_reading(void)
{
    ed_tensor *x = V(1, 2), *fixed = ed_variable(V(3, 4), .not_trainable = true), *c = V(5, 6);
    told t = {.word = "", .tensor = fixed};
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    assert_values(odd_custom(&t, x), 3, 8);
    t.tensor = c;
    assert_values(odd_custom(&t, x), 5, 12);
    ed_watch(tape, c);
    assert_fails(odd_custom(&t, x), ED_INVALID_ARGUMENT, "a tensor that a tape tracks, float64[2]");
    ed_watch(tape, fixed);
    t.tensor = fixed;
    assert_fails(odd_custom(&t, x), ED_INVALID_ARGUMENT, "the variable");
    t.tensor = x;
    assert_values(ed_gradient(tape, odd_custom(&t, x), x), 1, 1);

    /* the result may be the input, and nothing may flow back */
    t = (told){.word = "input"};
    ed_tensor *y = odd_custom(&t, x);
    assert_values(ed_gradient(tape, ed_mul(y, x), x), 2, 4);
    assert_values(ed_gradient(tape, ed_mul(y, x), y), 1, 2);
    t = (told){.word = "unconnected"};
    assert_unconnected(ed_gradient(tape, odd_custom(&t, x), x));

    /* inputs of other kinds get none */
    t = (told){.word = "input"};
    y = odd_custom(&t, ed_scalar(3));
    assert_int_equal(ed_dtype_of(y), ED_INT32);
    assert_unconnected(ed_gradient(tape, ed_cast(y, ED_FLOAT64), x));
}

/* Inside a function tapes may be begun, left, and even the outer ones stopped. */
static void tapes_inside_functions(void)
{
    ed_tensor *x = V(1, 2);
    static const char *words[] = {"stop", "gradient", "tape"};
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin(), *other = ed_tape_begin();
        ed_watch(tape, x), ed_watch(other, x);
        told t = {.word = words[i], .tape = tape};
        ed_tensor *y = odd_custom(&t, x), *z = ed_mul(y, y);
        assert_values(ed_gradient(other, z, x), 4, 8);
        if (i == 2) assert_values(ed_gradient(tape, z, x), 4, 8);
    }
    assert_null(thread_self()->listeners);
}

/* A gradient function may ask the tape that is being walked, if it is persistent. */
static void walks_in_walks(void)
{
    ed_tensor *x = V(1, 2);
    for (int persistent = 0; persistent < 2; persistent++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin(.persistent = persistent);
        ed_watch(tape, x);
        told t = {.word = "ask", .tape = tape, .target = ed_mul(x, ed_mul(x, x))};
        ed_tensor *y = ed_mul(odd_custom(&t, x), ed_mul(x, 5));
        if (persistent)
            assert_values(ed_gradient(tape, y, x), 3 + 10, 12 + 20);
        else
            assert_fails(ed_gradient(tape, y, x), ED_FAILED_PRECONDITION, "consumed");
    }
}

/* ---- Recompute ------------------------------------------------------------------------------- */

/* Two layers, of x, w1 and v, a variable or tensor beside the inputs. */
static ed_tensor *layers(ed_list *inputs, void *user)
{
    told *t = user;
    t->calls++;
    ed_tensor *h = ed_tanh(ed_matmul(ed_list_get(inputs, 0), ed_list_get(inputs, 1)));
    return ed_exp(ed_mul(ed_matmul(h, t->tensor), 0.3));
}

static ed_tensor *small(double seed, int64_t rows, int64_t columns)
{
    double values[64];
    for (int64_t i = 0; i < rows * columns; i++) values[i] = sin(seed + 1.7 * (double)i);
    return ed_constant(values, ED_SHAPE(rows, columns));
}

static void recompute(void)
{
    ed_tensor *x = small(1, 4, 3), *w = ed_variable(small(2, 3, 5)), *c = small(4, 5, 2);
    ed_tensor *v = ed_variable(small(3, 5, 2)), *start = ed_value(v), *first = ed_value(w);
    for (int captured = 0; captured < 2; captured++) {
        ED_SCOPE;
        ed_list *inputs = ed_list_of(x, w), *expected = NULL;
        told t = {.tensor = captured ? c : v};
        ed_list *sources = ed_list_of(x, w, t.tensor);
        for (int again = 0; again < 2; again++) {
            ed_assign(v, start), ed_assign(w, first);
            ed_tape *tape = ed_tape_begin();
            ed_watch(tape, x), ed_watch(tape, c);
            t.calls = released = 0;
            ed_tensor *y =
                again ? ed_recompute(layers, inputs, &t, count_release) : layers(inputs, &t);
            ed_tensor *loss = ed_reduce_sum(ed_mul(y, y));
            ed_assign(v, ed_zeros_like(v)), ed_assign(w, ed_zeros_like(w));
            ed_list *g = ed_gradient(tape, loss, sources);
            assert_values(ed_reduce_sum(v), 0);
            assert_int_equal(t.calls, again + 1);
            assert_int_equal(released, again);
            for (int i = 0; again && i < 3; i++)
                assert_same(ed_list_get(g, i), ed_list_get(expected, i));
            expected = g;
        }
    }
}

static ed_tensor *product(ed_list *inputs, void *user)
{
    (void)user;
    return ed_mul(ed_list_get(inputs, 0), ed_list_get(inputs, 1));
}

/* An input given twice, or found beside the inputs too, is one. */
static void recompute_twice_the_same(void)
{
    ed_tensor *x = V(3), *v = ed_variable(V(5));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    assert_values(ed_gradient(tape, ed_recompute(product, ed_list_of(x, x), NULL, NULL), x), 6);
    ed_tensor *y = ed_recompute(product, ed_list_of(v, v), NULL, NULL);
    ed_assign(v, V(100));
    assert_values(ed_gradient(tape, y, v), 10);
    assert_values(v, 100);
    told t = {.word = "", .tensor = v};
    y = ed_recompute(odd_function, ed_list_of(v), &t, NULL);
    ed_assign(v, V(7));
    assert_values(ed_gradient(tape, y, v), 200);
    assert_values(v, 7);
    y = ed_recompute(product, ed_list_of(x, ed_number(2)), NULL, NULL);
    assert_values(ed_gradient(tape, y, x), 2);
}

static ed_tensor *noisy(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *x = ed_dropout(ed_list_get(inputs, 0), 0.5);
    ed_tensor *noise = ed_random_normal(ed_shape(x), .dtype = ED_FLOAT64);
    return ed_mul(ed_mul(x, x), noise);
}

static ed_tensor *noisy_nested(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *x = ed_dropout(ed_list_get(inputs, 0), 0.25);
    x = ed_recompute(noisy, ed_list_of(x), NULL, NULL);
    return ed_add(ed_mul(x, x), ed_dropout(x, 0.5));
}

/* The same random numbers the second time; those drawn later come as if nothing had been run again.
 */
static void recompute_random(void)
{
    ed_tensor *x = ed_random_normal(ED_SHAPE(50), .dtype = ED_FLOAT64);
    static const ed_function functions[] = {noisy, noisy_nested};
    for (int f = 0; f < 2; f++) {
        ED_SCOPE;
        ed_tensor *g[2], *y[2], *later[2], *second[2];
        for (int again = 0; again < 2; again++) {
            ed_set_seed(11);
            ed_tape *outer = ed_tape_begin(), *tape = ed_tape_begin();
            ed_watch(tape, x), ed_watch(outer, x);
            y[again] = again ? ed_recompute(functions[f], ed_list_of(x), NULL, NULL)
                             : functions[f](ed_list_of(x), NULL);
            ed_tensor *loss = ed_reduce_sum(y[again]);
            ed_random_normal(ED_SHAPE(3));
            g[again] = ed_gradient(tape, loss, x);
            second[again] = ed_gradient(outer, ed_mul(g[again], g[again]), x);
            later[again] = ed_random_normal(ED_SHAPE(5));
        }
        assert_same(y[0], y[1]);
        assert_same(g[0], g[1]);
        assert_same(second[0], second[1]);
        assert_same(later[0], later[1]);
    }
}

static ed_tensor *other_tensor(ed_list *inputs, void *user)
{
    (void)inputs;
    return user;
}

/* What is only returned is read too. */
static void recompute_of_another(void)
{
    ed_tensor *x = V(3), *v = ed_variable(V(5)), *c = V(7);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x), ed_watch(tape, c);
    ed_tensor *y = ed_recompute(other_tensor, ed_list_of(x), v, NULL);
    ed_assign(v, V(6));
    assert_values(y, 5);
    assert_values(ed_gradient(tape, ed_mul(y, y), v), 10);
    assert_values(ed_gradient(tape, ed_recompute(other_tensor, ed_list_of(x), c, NULL), c), 1);
    assert_unconnected(ed_gradient(tape, y, x));
    assert_fails(ed_custom_gradient(other_tensor, ten_squares, ed_list_of(x), v, NULL),
                 ED_INVALID_ARGUMENT, "the variable");
}

/* mean = (mean + x) / 2; x - mean; and a count. */
static ed_tensor *normalize(ed_list *inputs, void *user)
{
    ed_list *state = user;
    ed_tensor *x = ed_list_get(inputs, 0), *mean = ed_list_get(state, 0);
    ed_tensor *y = ed_mul(x, mean);
    ed_assign(mean, ed_mul(ed_add(mean, x), 0.5));
    ed_assign_add(ed_list_get(state, 1), 1);
    return ed_mul(y, ed_sub(x, mean));
}

/* Variables that f assigns are assigned once. */
static void recompute_assigning(void)
{
    ed_tensor *x = V(3);
    for (int trainable = 0; trainable < 2; trainable++) {
        ED_SCOPE;
        ed_tensor *mean = ed_variable(V(1), .not_trainable = !trainable), *count = ed_variable(0);
        ed_list *state = ed_list_of(mean, count), *sources = ed_list_of(x, mean), *expected = NULL;
        for (int again = 0; again < 2; again++) {
            ed_assign(mean, V(1));
            ed_tape *tape = ed_tape_begin();
            ed_watch(tape, x);
            ed_tensor *y = again ? ed_recompute(normalize, ed_list_of(x), state, NULL)
                                 : normalize(ed_list_of(x), state);
            assert_values(y, 3);
            assert_values(mean, 2);
            ed_list *g = ed_gradient(tape, y, sources);
            assert_values(mean, 2);
            /* y = x m (x - m'), m' a leaf of its own */
            assert_values(ed_list_get(g, 0), 4);
            if (trainable && again) assert_same(ed_list_get(g, 1), ed_list_get(expected, 1));
            if (!trainable) assert_null(ed_list_get(g, 1));
            expected = g;
        }
    }
}

static void recompute_second_order(void)
{
    ed_tensor *x = small(1, 4, 3), *w = ed_variable(small(2, 3, 5)),
              *v = ed_variable(small(3, 5, 2));
    told t = {.tensor = v};
    ed_list *sources = ed_list_of(x, w, v), *expected = NULL;
    for (int again = 0; again < 2; again++) {
        ed_tape *outer = ed_tape_begin(), *inner = ed_tape_begin();
        ed_watch(outer, x), ed_watch(inner, x);
        ed_tensor *y =
            again ? ed_recompute(layers, ed_list_of(x, w), &t, NULL) : layers(ed_list_of(x, w), &t);
        ed_list *first = ed_gradient(inner, ed_mul(y, y), sources);
        ed_tensor *sum = S(0);
        for (int i = 0; i < 3; i++)
            sum = ed_add(sum, ed_reduce_sum(ed_square(ed_list_get(first, i))));
        ed_list *second = ed_gradient(outer, sum, sources);
        for (int i = 0; again && i < 3; i++)
            assert_same(ed_list_get(second, i), ed_list_get(expected, i));
        expected = second;
    }
}

static ed_tensor *deep(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *x = ed_list_get(inputs, 0);
    for (int i = 0; i < 16; i++) {
        ED_SCOPE;
        x = ed_keep(ed_tanh(ed_mul(x, 1.01)));
    }
    return x;
}

/* 16 blocks of 16 pairs: what is kept is a block, not all. */
static void recompute_memory(void)
{
    enum { N = 20000 };
    int64_t peaks[2];
    ed_tensor *x = ed_ones(ED_SHAPE(N), .dtype = ED_FLOAT64), *expected = NULL;
    for (int again = 0; again < 2; again++) {
        ED_SCOPE;
        int64_t before = ed_memory_stats().live_bytes;
        ed_memory_reset_peak();
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x);
        ed_tensor *y = x;
        for (int i = 0; i < 16; i++) {
            ED_SCOPE;
            y = ed_keep(again ? ed_recompute(deep, ed_list_of(y), NULL, NULL)
                              : deep(ed_list_of(y), NULL));
        }
        ed_tensor *g = ed_gradient(tape, y, x);
        if (again)
            assert_same(g, expected);
        else
            expected = ed_retain(g);
        peaks[again] = ed_memory_stats().peak_bytes - before;
    }
    ed_release(expected);
    if (peaks[1] * 4 > peaks[0])
        fail_msg("peak %lld, without %lld", (long long)peaks[1], (long long)peaks[0]);
}

static void recompute_failures(void)
{
    ed_tensor *x = V(1, 2);
    told t = {.word = "null"};
#define RECOMPUTE() ed_recompute(odd_function, ed_list_of(x), &t, count_release)
    REFUSED(RECOMPUTE(), ED_INVALID_ARGUMENT, "recompute: the function returned NULL");
    t.word = "error";
    REFUSED(RECOMPUTE(), ED_OUT_OF_RANGE, "own words");
    t.word = "number";
    REFUSED(RECOMPUTE(), ED_INVALID_ARGUMENT, "plain number");
    ed_list *inputs = ed_list_of(x), *none = ed_list_make(NULL, 0);
    REFUSED(ed_recompute(NULL, inputs, &t, count_release), ED_INVALID_ARGUMENT, "NULL");
    REFUSED(ed_recompute(odd_function, NULL, &t, count_release), ED_INVALID_ARGUMENT, "NULL");
    REFUSED(ed_recompute(odd_function, none, &t, count_release), ED_INVALID_ARGUMENT, "at least");
    static const char *words[] = {"null", "error", "left"};
    static const char *parts[] = {"returned NULL", "own words", "reshape"};
    ed_tensor *v = ed_variable(V(2, 2));
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x);
        t = (told){.word = "", .tensor = v};
        released = 0;
        ed_assign(v, V(2, 2));
        ed_tensor *y = RECOMPUTE();
        ed_assign(v, V(3, 3));
        t.word = words[i];
        assert_null(ed_gradient(tape, y, x));
        if (!strstr(ed_error(), parts[i])) fail_msg("%s", ed_error());
        ed_clear_error();
        assert_int_equal(released, 1);
        assert_values(v, 3, 3);
    }
    /* no tape: nothing is kept */
    t = (told){.word = ""};
    released = 0;
    {
        ED_SCOPE;
        assert_values(RECOMPUTE(), 2, 4);
        assert_int_equal(released, 1);
    }
}

/* ---- Jacobians and Hessians ------------------------------------------------------------------ */

static void jacobian(void)
{
    ed_tensor *x = V(1, 2, 3), *other = V(1), *w = ed_reshape(V(1, 2, 3, 4, 5, 6), ED_SHAPE(2, 3));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x), ed_watch(tape, other);
    ed_tensor *square = ed_mul(x, x);
    ed_tensor *y = ed_reduce_sum(ed_mul(w, square), .axis = ED_AXES(1));
    ed_tensor *j = ed_jacobian(tape, y, x);
    assert_values(j, 2, 8, 18, 8, 20, 36);
    assert_int_equal(ed_rank(j), 2);
    assert_int_equal(ed_dim(j, 0), 2);
    assert_values(ed_jacobian(tape, square, x), 2, 0, 0, 0, 4, 0, 0, 0, 6);
    assert_unconnected(ed_jacobian(tape, y, w));
    assert_values(ed_jacobian(tape, ed_reduce_sum(y), x), 10, 28, 54);
    ed_tensor *f = ed_cast(square, ED_FLOAT32);
    assert_int_equal(ed_dtype_of(ed_jacobian(tape, f, x)), ED_FLOAT64);
    ed_tensor *empty = ed_slice(square, .end = ED_INTS(0));
    assert_int_equal(ed_size(ed_jacobian(tape, empty, x)), 0);
    assert_fails(ed_jacobian(NULL, y, x), ED_INVALID_ARGUMENT, "jacobian: NULL");
    assert_fails(ed_jacobian(tape, NULL, x), ED_INVALID_ARGUMENT, "jacobian: NULL");
    assert_fails(ed_jacobian(ed_tape_begin(), y, x), ED_FAILED_PRECONDITION, "persistent");
    assert_fails(ed_jacobian(tape, ed_floor(x), x), ED_UNIMPLEMENTED, "floor");
    assert_fails(ed_jacobian(tape, ed_ones(ED_SHAPE(1, 1, 1, 1, 1)), ed_ones(ED_SHAPE(1, 1, 1, 1))),
                 ED_INVALID_ARGUMENT, "more than 8 dimensions");
    ed_tensor *v = ed_variable(V(2, 3));
    assert_values(ed_jacobian(tape, ed_mul(v, v), v), 4, 0, 0, 6);

    /* of a gradient: the Hessian */
    ed_tensor *h = ed_jacobian(tape, ed_gradient(tape, ed_reduce_sum(ed_mul(square, x)), x), x);
    assert_values(h, 6, 0, 0, 0, 12, 0, 0, 0, 18);
}

static void batch_jacobian(void)
{
    ed_tensor *x = ed_reshape(V(1, 2, 3, 4, 5, 6), ED_SHAPE(3, 2));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    /* y[b] = x0^2, x0 x1, x1^2 */
    ed_tensor *a = ed_slice(x, .end = ED_INTS(ED_END, 1)), *b = ed_slice(x, .begin = ED_INTS(0, 1));
    ed_tensor *y = ed_concat(ed_list_of(ed_mul(a, a), ed_mul(a, b), ed_mul(b, b)), .axis = 1);
    ed_tensor *j = ed_batch_jacobian(tape, y, x);
    assert_int_equal(ed_rank(j), 3);
    assert_values(j, 2, 0, 2, 1, 0, 4, 6, 0, 4, 3, 0, 8, 10, 0, 6, 5, 0, 12);
    ed_tensor *other = ed_ones(ED_SHAPE(3, 2, 2), .dtype = ED_FLOAT64);
    j = ed_batch_jacobian(tape, y, other);
    assert_int_equal(ed_rank(j), 4);
    assert_values(ed_reduce_sum(ed_abs(j)), 0);
    assert_values(ed_batch_jacobian(tape, ed_reduce_sum(y, .axis = ED_AXES(1)), x), 4, 5, 10, 11,
                  16, 17);
    assert_fails(ed_batch_jacobian(tape, y, V(1, 2)), ED_INVALID_ARGUMENT, "same first dimension");
    assert_fails(ed_batch_jacobian(tape, S(1), x), ED_INVALID_ARGUMENT, "same first dimension");
    assert_fails(ed_batch_jacobian(ed_tape_begin(), y, x), ED_FAILED_PRECONDITION, "persistent");
    ed_tensor *empty = ed_zeros(ED_SHAPE(0, 2));
    assert_int_equal(ed_rank(ed_batch_jacobian(tape, empty, empty)), 3);
}

/* f(a, b) = sum of a^2 b + exp(a) */
static ed_tensor *mixed(ed_list *inputs, void *user)
{
    told *t = user;
    if (t && !strcmp(t->word, "null")) return NULL;
    ed_tensor *a = ed_list_get(inputs, 0), *b = ed_list_get(inputs, 1);
    ed_tensor *y = ed_add(ed_mul(ed_mul(a, a), b), ed_exp(a));
    return t ? y : ed_reduce_sum(y);
}

static void hessian_vector_product(void)
{
    ed_tensor *a = V(1, 2), *b = ed_variable(V(3, 4)), *u = V(0.5, -1), *v = V(2, 0.25);
    for (int outside = 0; outside < 2; outside++) {
        ed_tape *tape = outside ? ed_tape_begin() : NULL;
        if (tape) ed_watch(tape, a);
        ed_list *h = ed_hessian_vector_product(mixed, ed_list_of(a, b), ed_list_of(u, v), NULL);
        /* d/da = (2 b + e^a) u + 2 a v, d/db = 2 a u */
        assert_values(ed_list_get(h, 0), (6 + exp(1)) * 0.5 + 4, -(8 + exp(2)) + 1);
        assert_values(ed_list_get(h, 1), 1, -4);
        /* the third derivative */
        if (tape)
            assert_values(ed_gradient(tape, ed_list_get(h, 0), a), exp(1) * 0.5 + 4, -exp(2) + 0.5);
    }
    told t = {.word = "null"};
    ed_list *ab = ed_list_of(a, b), *uv = ed_list_of(u, v), *one = ed_list_of(u);
#define HVP(f, x, y, user) ed_hessian_vector_product(f, x, y, user)
    assert_fails(HVP(mixed, ab, uv, &t), ED_INVALID_ARGUMENT, "NULL");
    t.word = "vector";
    assert_fails(HVP(mixed, ab, uv, &t), ED_INVALID_ARGUMENT, "a scalar, not float64[2]");
    assert_fails(HVP(mixed, ab, one, NULL), ED_INVALID_ARGUMENT, "1 vectors for 2 inputs");
    assert_fails(HVP(NULL, ab, uv, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(HVP(mixed, ab, ed_list_of(u, V(1, 2, 3)), NULL), ED_INVALID_ARGUMENT,
                 "output gradient 1");
    assert_fails(HVP(mixed, ed_list_of(a, ed_scalar(1)), uv, NULL), ED_INVALID_ARGUMENT, "int32");
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

/* Forward and gradient of two layers with everything that allocates; NULL if memory fails. */
static ed_list *train(ed_tensor *x, ed_tensor *w, ed_tensor *v)
{
    ED_SCOPE;
    ed_tape *outer = ed_tape_begin(), *tape = ed_tape_begin(.persistent = true);
    told t = {.tensor = v};
    ed_tensor *y = ed_recompute(layers, ed_list_of(x, w), &t, count_release);
    y = ed_custom_gradient(cube, ten_squares, ed_list_of(y), NULL, count_release);
    y = ed_concat(ed_list_of(y, ed_relu(ed_matmul(x, ed_matmul(w, v)))));
    ed_list *g = ed_gradient(tape, ed_reduce_mean(ed_square(y)), ed_list_of(w, v));
    ed_tensor *sum = ed_add(ed_reduce_sum(ed_list_get(g, 0)), ed_reduce_sum(ed_list_get(g, 1)));
    ed_list *h = ed_gradient(outer, sum, ed_list_of(w, v));
    return ed_keep(ed_list_concat(g, h));
}

static void allocations_that_fail(void)
{
    ed_tensor *x = small(1, 4, 3), *w = ed_variable(small(2, 3, 5)),
              *v = ed_variable(small(3, 5, 2));
    ed_list *expected = train(x, w, v);
    assert_int_equal(ed_list_size(expected), 4);
    int64_t tensors = ed_memory_stats().live_tensors, bytes = ed_memory_stats().live_bytes, n = 0;
    for (int repeat = 0; repeat < 2; repeat++)
        for (n = 0;; n++) {
            ED_SCOPE;
            released = 0;
            ed_memory_fail_at(n, repeat);
            ed_list *result = train(x, w, v);
            bool happened = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            if (!happened) break;
            if (result) fail_msg("allocation %lld failed, the gradient did not", (long long)n);
            if (ed_error_kind() != ED_OUT_OF_MEMORY) fail_msg("%lld: %s", (long long)n, ed_error());
            ed_clear_error();
            if (released > 2) fail_msg("released %d times", released);
            if (ed_memory_stats().live_tensors != tensors || ed_memory_stats().live_bytes != bytes)
                fail_msg("allocation %lld: %lld tensors and %lld bytes are left", (long long)n,
                         (long long)(ed_memory_stats().live_tensors - tensors),
                         (long long)(ed_memory_stats().live_bytes - bytes));
            assert_null(thread_self()->listeners);
            if (n % 16) continue;
            result = train(x, w, v);
            for (int i = 0; i < 4; i++)
                assert_same(ed_list_get(result, i), ed_list_get(expected, i));
        }
    if (n < 100) fail_msg("%lld allocations only", (long long)n);
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
        if (ed_list_size(ed_watched_variables(tape)) != 1 || ed_failed()) return "wrong";
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
    assert_int_equal(ed_list_size(ed_watched_variables(tape)), 0);
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

/* The thread's own tables grow once; here, so that no test is taken for the leak. */
static int warm_up(void **state)
{
    (void)state;
    ED_SCOPE;
    for (int i = 0; i < 300000; i++) ed_number(1);
    return ed_failed() || !ed_op_register(&three) || !ed_op_register(&odd);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, run, NULL, NULL, &(void (*)(void))                                                  \
        {                                                                                          \
            name                                                                                   \
        }                                                                                          \
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
        TEST(custom_gradient),
        TEST(custom_of_variable),
        TEST(custom_failures),
        TEST(custom_reading),
        TEST(tapes_inside_functions),
        TEST(walks_in_walks),
        TEST(recompute),
        TEST(recompute_twice_the_same),
        TEST(recompute_of_another),
        TEST(recompute_random),
        TEST(recompute_assigning),
        TEST(recompute_second_order),
        TEST(recompute_memory),
        TEST(recompute_failures),
        TEST(jacobian),
        TEST(batch_jacobian),
        TEST(hessian_vector_product),
        TEST(nothing_watched),
        TEST(what_is_saved),
        TEST(walk_frees),
        TEST(long_chain),
        TEST(allocations_that_fail),
        TEST(threads),
        TEST(ids_of_threads),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
