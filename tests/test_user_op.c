/*
 * A user's op, loaded at run time from a shared object, is checked as a built-in one is; then the
 * gradient checker on a user's own function, and what is refused.
 */
#include "eddy.h"
#include "tests/checks.h"
#include "tests/folders.h"
#include <dlfcn.h>
#include <math.h>

static const ed_op *load(void)
{
    void *object = dlopen(built("tests/shared_softcap.so"), RTLD_NOW | RTLD_LOCAL);
    if (!object) fail_msg("%s", dlerror());
    return dlsym(object, "softcap");
}

static const ed_op *softcap;

static int setup(void **state)
{
    (void)state;
    softcap = load();
    return softcap && ed_op_register(softcap) ? 0 : -1;
}

static void has_a_builtins_rights(void **state)
{
    (void)state;
    findings f;
    bool ok = check_op(softcap, &f);
    if (!ok) printf("%s", f.text);
    assert_true(ok);
    assert_true(f.checks > 100);
}

static void is_found_by_its_name(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_ptr_equal(ed_op_find("softcap"), softcap);
    bool listed = false;
    for (int i = 0; i < ed_op_count(); i++) listed |= ed_op_at(i) == softcap;
    assert_true(listed);
    ed_tensor *x = ed_scalar(1e9, .dtype = ED_FLOAT64);
    assert_true(ed_item(ed_call_op(ed_op_find("softcap"), &x, 1, NULL)) == 30);
}

static void is_in_the_middle_of_a_tape(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *w = ed_variable(ed_scalar(0.5, .dtype = ED_FLOAT64));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *x = ed_mul(w, 2.0), *y = ed_square(ed_call_op(softcap, &x, 1, NULL));
    double t = 30 * tanh(1. / 30);
    double expected = 2 * t * (1 - t * t / 900) * 2;
    assert_true(fabs(ed_item(ed_gradient(tape, y, w)) - expected) < 1e-12);
}

/* ---- An op of many outputs with a large plan ------------------------------------------------- */

/* powers: y[k] = x^(k + 1) for k < count; the exponents are the plan. */
typedef struct powers_attrs {
    int64_t count;
} powers_attrs;

static bool powers_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t count = ((const powers_attrs *)call->attrs)->count;
    if (count < 0 || count > 1000)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "count is %lld", (long long)count);
    int64_t *exponents = ed_call_plan(call, (size_t)count * sizeof *exponents);
    if (!exponents || !ed_call_outputs(call, count)) return false;
    for (int i = 0; i < count; i++) {
        exponents[i] = i + 1;
        if (!ed_call_output(call, i, x->dtype, x->rank, x->shape)) return false;
    }
    return true;
}

static bool powers_kernel(ed_call *call)
{
    const int64_t *exponents = call->plan;
    const double *x = ed_data(call->inputs[0]);
    for (int k = 0; k < call->n_outputs; k++)
        for (int64_t i = 0; i < call->inputs[0]->size; i++)
            ((double *)ed_call_data(call, k))[i] = pow(x[i], (double)exponents[k]);
    return true;
}

static bool powers_reference(const ed_call *call)
{
    const double *x = (const double *)call->inputs[0]->data;
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        double y = 1;
        for (int k = 0; k < call->n_outputs; k++) ((double *)call->outputs[k]->data)[i] = y *= x[i];
    }
    return true;
}

static bool powers_gradient(const ed_gradient_call *g)
{
    for (int k = 0; k < g->n_outputs; k++) {
        if (!g->dy[k]) continue;
        ed_tensor *part = ed_mul(g->dy[k], ed_mul(ed_pow(g->inputs[0], k), k + 1));
        g->dx[0] = g->dx[0] ? ed_add(g->dx[0], part) : part;
    }
    return true;
}

static const ed_op powers = {
    .name = "test_powers",
    .doc = "y[k] = x^(k + 1)",
    .operands = {{"x", 1 << ED_FLOAT64, 'T', .saved = true}},
    .results = ED_RESULTS({.name = "power"}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_MANY_OUTPUTS,
    .attrs = (const ed_field[]){{"count", ED_FIELD_INT, offsetof(powers_attrs, count), "of powers"},
                                {0}},
    .attrs_size = sizeof(powers_attrs),
    .infer = powers_infer,
    .kernel = powers_kernel,
    .gradient = powers_gradient,
    .reference = powers_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 1.2, 2, 3)}, .attrs = &(powers_attrs){3}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 1.2, 4)}, .attrs = &(powers_attrs){30}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 1.2)}}),
};

static void may_have_any_number_of_outputs(void **state)
{
    (void)state;
    findings f;
    bool ok = check_op(&powers, &f);
    if (!ok) printf("%s", f.text);
    assert_true(ok);
    ED_SCOPE;
    ed_tensor *x = ed_scalar(2, .dtype = ED_FLOAT64), *y;
    ed_list *list = ed_execute_list(&powers, &x, 1, &(powers_attrs){40});
    assert_int_equal(ed_list_size(list), 40);
    assert_true(ed_item(ed_list_get(list, 39)) == 0x1p40);
    assert_int_equal(ed_list_size(ed_execute_list(&powers, &x, 1, NULL)), 0);
    assert_int_equal(ed_list_size(ed_execute_list(softcap, &x, 1, NULL)), 1);
    assert_false(ed_failed());
    assert_false(ed_execute(&powers, &x, 1, NULL, &y));
    assert_non_null(strstr(ed_error(), "execute: test_powers"));
    ed_clear_error();
    assert_null(ed_call_op(&powers, &x, 1, NULL));
    assert_non_null(strstr(ed_error(), "ed_execute_list"));
    ed_clear_error();
    ed_op fixed = powers;
    fixed.flags = ED_OP_CONTIGUOUS;
    assert_null(ed_execute_list(&fixed, &x, 1, &(powers_attrs){1}));
    assert_non_null(strstr(ed_error(), "test_powers: call_outputs"));
    ed_clear_error();
}

/* Five that the definition says, of which some are saved. */
static bool five_infer(ed_call *call)
{
    for (int i = 0; i < 5; i++)
        if (!ed_call_output(call, i, ED_FLOAT64, 0, NULL)) return false;
    return true;
}

static bool five_kernel(ed_call *call)
{
    for (int i = 0; i < 5; i++)
        *(double *)ed_call_data(call, i) = (i + 1) * *(const double *)ed_data(call->inputs[i]);
    return true;
}

/* d/dx[i] of the sum of all (i + 1) x[i] is i + 1, by way of what was saved and what not. */
static bool five_gradient(const ed_gradient_call *g)
{
    for (int i = 0; i < 5; i++) {
        if ((i < 1) != !g->inputs[i] || (i == 3) != !g->outputs[i]) return false;
        g->dx[i] = ed_mul(g->dy[i], i + 1);
    }
    return true;
}

static const ed_op five = {
    .name = "test_five",
    .doc = "1 x, 2 x, ...",
    .operands = {{"first", ED_SET_FLOAT, 'T'}, {"others", ED_SET_FLOAT, 'T', .saved = true}},
    .results = ED_RESULTS({"a", true}, {"b", true}, {"c", true}, {"d", false}, {"e", true}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_VARIADIC,
    .infer = five_infer,
    .kernel = five_kernel,
    .gradient = five_gradient,
};

static void saves_what_it_says(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x[5], *y[5];
    ed_tape *tape = ed_tape_begin();
    for (int i = 0; i < 5; i++) x[i] = ed_watch(tape, ed_scalar(1, .dtype = ED_FLOAT64));
    assert_true(ed_execute(&five, x, 5, NULL, y));
    ed_list *dx = ed_gradient(tape, ed_list_make(y, 5), ed_list_make(x, 5));
    for (int i = 0; i < 5; i++) {
        assert_true(ed_item(y[i]) == i + 1);
        assert_true(ed_item(ed_list_get(dx, i)) == i + 1);
    }
}

/* ---- Registration that is refused ------------------------------------------------------------ */

static bool no_gradient(const ed_gradient_call *g)
{
    (void)g;
    return true;
}

static void expect_refused(const ed_op *op, const char *word)
{
    int count = ed_op_count();
    assert_false(ed_op_register(op));
    if (!strstr(ed_error(), word)) fail_msg("%s: %s is expected", ed_error(), word);
    ed_clear_error();
    assert_int_equal(ed_op_count(), count);
}

static void incomplete_definitions_are_refused(void **state)
{
    (void)state;
    ed_op op = *softcap;
    expect_refused(NULL, "NULL");
    expect_refused(&op, "already");
    op.name = "";
    expect_refused(&op, "name");
    op.name = "other";
    op.no_gradient = "for no reason";
    expect_refused(&op, "gradient");
    op.gradient = NULL;
    op.no_gradient = NULL;
    expect_refused(&op, "gradient");
    op.gradient = no_gradient;
    op.infer = NULL;
    expect_refused(&op, "infer");
    op = *softcap;
    op.name = "other";
    op.doc = NULL;
    expect_refused(&op, "documentation");
    op = *softcap;
    op.name = "other";
    op.attrs_size = 1000;
    op.defaults = NULL;
    expect_refused(&op, "defaults");
    ED_SCOPE;
    ed_tensor *x = ed_scalar(1.0);
    assert_null(ed_call_op(&op, &x, 1, NULL));
    assert_non_null(strstr(ed_error(), "other: attrs is NULL, and the op has no defaults"));
    ed_clear_error();
}

/* ---- The gradient checker on a user's function
 * ------------------------------------------------- */

static ed_tensor *smooth(ed_list *inputs, void *user)
{
    (void)user;
    ED_SCOPE;
    ed_tensor *x = ed_list_get(inputs, 0), *y = ed_list_get(inputs, 1);
    return ed_keep(ed_mul(ed_exp(x), ed_sin(ed_mul(x, y))));
}

/* A gradient of its own that is wrong by a hundredth. */
static ed_list *wrong_way_back(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    (void)inputs, (void)user;
    return ed_list_of(ed_mul(ed_mul(dy, output), 1.01));
}

static ed_tensor *exp_of_first(ed_list *inputs, void *user)
{
    (void)user;
    return ed_exp(ed_list_get(inputs, 0));
}

static ed_tensor *wrong(ed_list *inputs, void *user)
{
    return ed_custom_gradient(exp_of_first, wrong_way_back, inputs, user, NULL);
}

static ed_tensor *in_float32(ed_list *inputs, void *user)
{
    (void)user;
    return ed_cast(ed_list_get(inputs, 0), ED_FLOAT32);
}

static ed_tensor *fails(ed_list *inputs, void *user)
{
    (void)inputs, (void)user;
    return NULL;
}

static ed_list *two_inputs(void)
{
    static const double x[] = {0.1, -0.7, 1.3, 0.4, 0.9, -0.2}, y[] = {0.5, 1.5, -1};
    return ed_list_of(ed_constant(x, ED_SHAPE(2, 3)), ed_constant(y, ED_SHAPE(3)));
}

static void right_functions_pass(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *report;
    assert_true(ed_check_gradient(smooth, two_inputs(), NULL, &report));
    assert_non_null(strstr(report, "of 54 elements"));
    assert_true(ed_check_gradient(smooth, two_inputs(), NULL, NULL, .second_order = true));
    assert_true(ed_check_gradient_with(smooth, two_inputs(), NULL, &report, NULL));
    assert_true(ed_check_gradient(smooth, two_inputs(), NULL, &report, .limit = 2));
    assert_non_null(strstr(report, "of 8 elements"));
    assert_false(ed_failed());
}

static void wrong_functions_are_reported(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *report;
    static const double x[] = {0.1, -0.7};
    ed_list *inputs = ed_list_of(ed_constant(x, ED_SHAPE(2, 1)));
    assert_false(ed_check_gradient(wrong, inputs, NULL, &report));
    assert_non_null(strstr(report, "input 0, element [0, 0]: the tape has 1.116"));
    assert_false(ed_failed());
    assert_true(ed_check_gradient(wrong, inputs, NULL, &report, .rtol = 0.02));
}

#define CHECK(...)                                                                                 \
    (&(const ed_check_options)ED_COMPLETE(ED_CHECK_OPTIONS, ed_check_options, __VA_ARGS__))

static void expect_error(ed_function f, ed_list *inputs, const ed_check_options *options,
                         const char *word)
{
    const char *report = NULL;
    assert_false(ed_check_gradient_with(f, inputs, NULL, &report, options));
    assert_string_equal(report, "");
    if (!strstr(ed_error(), word)) fail_msg("'%s': '%s' is expected", ed_error(), word);
    ed_clear_error();
}

static void wrong_arguments_are_errors(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_list *inputs = two_inputs(), *whole = ed_list_of(ed_scalar(1)),
            *single = ed_list_of(ed_scalar(1.0));
    expect_error(NULL, inputs, NULL, "NULL");
    expect_error(smooth, NULL, NULL, "NULL");
    expect_error(exp_of_first, single, NULL, "float64");
    expect_error(exp_of_first, whole, NULL, "at least one input must be float64");
    expect_error(in_float32, inputs, NULL, "float32[2, 3]");
    expect_error(fails, inputs, NULL, "without an error");
    expect_error(smooth, inputs, CHECK(.step = 0), "step");
    expect_error(smooth, inputs, CHECK(.step = NAN), "step");
    expect_error(smooth, inputs, CHECK(.rtol = -1), "rtol");
}

static void failing_memory_is_an_error(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_list *inputs = two_inputs();
    bool failed = true;
    for (int n = 0; failed; n++) {
        const char *report;
        ed_memory before = ed_memory_stats();
        ed_memory_fail_at(n, false);
        {
            ED_SCOPE;
            bool ok =
                ed_check_gradient(smooth, inputs, NULL, &report, .second_order = true, .limit = 2);
            failed = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_true(ok == !failed && ed_failed() == failed);
            ed_clear_error();
        }
        ed_memory after = ed_memory_stats();
        assert_int_equal(after.live_tensors, before.live_tensors);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
}

/* ---- Ops that replace ------------------------------------------------------------------------ */

static bool store_infer(ed_call *call)
{
    return ed_rank(call->inputs[0]) == ed_rank(call->inputs[1]);
}

static bool store_kernel(ed_call *call)
{
    return ed_is_contiguous(call->inputs[1]) && ed_call_replace(call, 0, call->inputs[1]);
}

static const ed_op store = {
    .name = "store",
    .doc = "variable = x",
    .operands = {{"variable", ED_SET_ALL, 'T', .writes = true}, {"x", ED_SET_ALL, 'T'}},
    .results = ED_NO_RESULTS,
    .flags = ED_OP_REPLACES | ED_OP_CONTIGUOUS,
    .infer = store_infer,
    .kernel = store_kernel,
    .no_gradient = "it writes",
};

typedef struct store_listener {
    ed_listener base;
    double heard; /* the last element of what was written */
} store_listener;

static void hear_store(ed_listener *self, const ed_call *call)
{
    ((store_listener *)self)->heard = ((const float *)ed_data(call->inputs[0]))[3];
}

static void replaces_with_contiguous_operands(void **state)
{
    (void)state;
    ED_SCOPE;
    static const float values[] = {1, 2, 3, 4};
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(2, 2))),
              *x = ed_transpose(ed_constant(values, ED_SHAPE(2, 2)));
    store_listener listener = {.base.after = hear_store};
    assert_true(ed_listen(&listener.base));
    for (int i = 0; i < 3; i++) {
        listener.heard = 0;
        assert_ptr_equal(ed_call_op(&store, (ed_tensor *[]){v, x}, 2, NULL), v);
        assert_true(listener.heard == 4);
        const float *now = ed_data(v);
        assert_true(now[0] == 1 && now[1] == 3 && now[2] == 2 && now[3] == 4);
    }
    assert_ptr_equal(ed_call_op(&store, (ed_tensor *[]){v, v}, 2, NULL), v);
    assert_true(ed_unlisten(&listener.base));
    assert_false(ed_failed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_builtins_rights),
        cmocka_unit_test(is_found_by_its_name),
        cmocka_unit_test(is_in_the_middle_of_a_tape),
        cmocka_unit_test(may_have_any_number_of_outputs),
        cmocka_unit_test(saves_what_it_says),
        cmocka_unit_test(replaces_with_contiguous_operands),
        cmocka_unit_test(incomplete_definitions_are_refused),
        cmocka_unit_test(right_functions_pass),
        cmocka_unit_test(wrong_functions_are_reported),
        cmocka_unit_test(wrong_arguments_are_errors),
        cmocka_unit_test(failing_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
