/*
 * A user's op, loaded at run time from a shared object, is checked as a built-in one is; then the
 * gradient checker on a user's own function, and what is refused.
 */
#include "eddy.h"
#include "tests/checks.h"
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The shared object stands beside the test. */
static const ed_op *load(void)
{
    char path[4096] = "";
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(n > 0);
    strcpy(strrchr(path, '/') + 1, "shared_softcap.so");
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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
    assert_non_null(strstr(report, "input 0, element [0, 0]: the tape says 1.116"));
    assert_false(ed_failed());
    assert_true(ed_check_gradient(wrong, inputs, NULL, &report, .rtol = 0.02));
}

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
    expect_error(exp_of_first, whole, NULL, "none of the inputs");
    expect_error(in_float32, inputs, NULL, "float32[2, 3]");
    expect_error(fails, inputs, NULL, "without an error");
    expect_error(smooth, inputs, &(ed_check_options){.step = 0}, "step");
    expect_error(smooth, inputs, &(ed_check_options){.step = NAN}, "step");
    expect_error(smooth, inputs, &(ed_check_options){.step = 1e-6, .rtol = -1}, "rtol");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_builtins_rights),
        cmocka_unit_test(is_found_by_its_name),
        cmocka_unit_test(is_in_the_middle_of_a_tape),
        cmocka_unit_test(incomplete_definitions_are_refused),
        cmocka_unit_test(right_functions_pass),
        cmocka_unit_test(wrong_functions_are_reported),
        cmocka_unit_test(wrong_arguments_are_errors),
        cmocka_unit_test(failing_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
