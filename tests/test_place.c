/* Errors know the place of the call: a program as users build it, with the headers as they are
 * installed. */
#include "eddy.h"
#include "tests/folders.h"
#include "tests/skip.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The error kept is of this file and that line, and says so first. */
static void check_place(int line)
{
    const ed_place *place = ed_error_place();
    assert_non_null(place);
    assert_string_equal(place->file, __FILE__);
    assert_int_equal(place->line, line);
    char begin[100];
    snprintf(begin, sizeof begin, "%s:%d: ", __FILE__, line);
    if (strncmp(ed_error(), begin, strlen(begin))) fail_msg("%s", ed_error());
    ed_clear_error();
    assert_null(ed_error_place());
}

static void test_calls(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = ed_ones(ED_SHAPE(2)), *b = ed_ones(ED_SHAPE(3));
    assert_null(ed_add(a, b)); /* a macro of its own */
    check_place(__LINE__ - 1);
    assert_null(ed_matmul(a, b)); /* with options */
    check_place(__LINE__ - 1);
    assert_null(ed_exp(ed_cast(a, ED_BOOL))); /* a plain function */
    check_place(__LINE__ - 1);
    assert_null(ed_constant(((float[]){1, 2}), ED_SHAPE(3)));
    check_place(__LINE__ - 1);
    assert_null(ed_forward(ed_layer_dense(3), ed_ones(ED_SHAPE(2), .dtype = ED_INT32)));
    check_place(__LINE__ - 1);
    assert_null(ed_gradient(NULL, a, b));
    check_place(__LINE__ - 1);
    assert_null(ed_checkpoint_read(ed_checkpoint("a", a), "/nowhere/at/all"));
    check_place(__LINE__ - 1);
    assert_string_equal(ed_error(), "");
}

/* Of calls within calls, on several lines, each has its own; clang has the outermost one's last
 * line for all of them. */
static void test_nested(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = ed_ones(ED_SHAPE(2)), *b = ed_ones(ED_SHAPE(3));
#ifdef __clang__
    const bool clang = true;
#else
    const bool clang = false;
#endif
    /* clang-format off */
    int line = __LINE__;
    assert_null(ed_add(a,
                       ed_exp(ed_mul(b,
                                     a))));
    check_place(line + (clang ? 3 : 2));
    line = __LINE__;
    assert_null(ed_add(ed_exp(ed_mul(b, 2)),
                       ed_exp(a)));
    /* clang-format on */
    check_place(line + (clang ? 2 : 1));
}

static int inner_line;

static ed_tensor *faulty(ed_list *inputs, void *user)
{
    ed_tensor *x = ed_list_get(inputs, 0);
    if (!user) return ed_fail(ED_CANCELLED, "refused"), NULL;
    inner_line = __LINE__ + 1;
    return ed_add(x, ed_ones(ED_SHAPE(3)));
}

/* What fails within a callback has the callback's place, what fails behind it the call's. */
static void test_callbacks(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_list *inputs = ed_list_of(ed_ones(ED_SHAPE(2)));
    assert_null((ed_recompute)(faulty, inputs, &inner_line, NULL));
    check_place(inner_line);
    assert_null(ed_exp(ed_list_get(inputs, 7)));
    check_place(__LINE__ - 1);
}

/* The plain functions have none, nor has a call behind one that has. */
static void test_unknown(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = ed_ones(ED_SHAPE(2)), *b = ed_ones(ED_SHAPE(3));
    assert_null((ed_sub)(a, b));
    assert_null(ed_error_place());
    assert_int_equal(strncmp(ed_error(), "sub: ", 5), 0);
    ed_clear_error();
}

/* A gradient that is not connected is NULL; who uses it hears which and why. */
static void test_unconnected(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *w = ed_variable(1.0, .name = "w"), *bias = ed_variable(2.0, .name = "bias");
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_square(w);
    const int line = __LINE__ + 1;
    ed_list *gradients = ed_gradient(tape, loss, ed_list_of(w, bias));
    assert_non_null(ed_list_get(gradients, 0));
    assert_null(ed_list_get(gradients, 1));
    assert_null(ed_mul(ed_list_get(gradients, 1), 2));
    char expected[200];
    snprintf(expected, sizeof expected,
             "mul: a is NULL (ed_gradient at %s:%d returned NULL for source 1, the variable bias, "
             "which no target depends on)",
             __FILE__, line);
    assert_non_null(strstr(ed_error(), expected));
    check_place(line + 3);
    assert_null(ed_list_of(w, ed_list_get(gradients, 1)));
    assert_non_null(strstr(ed_error(), "list: entry 1 is NULL (ed_gradient at"));
    ed_clear_error();
    tape = ed_tape_begin();
    assert_non_null(ed_gradient(tape, ed_square(w), w));
    assert_null(ed_mul(NULL, 2));
    assert_null(strstr(ed_error(), "gradient"));
    ed_clear_error();
}

/* Printing what a failed call returned shows why. */
static void test_print_null(void **state)
{
    (void)state;
    ED_SCOPE;
    char *written = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&written, &size);
    ed_tensor *sum = ed_add(ed_ones(ED_SHAPE(2)), ed_ones(ED_SHAPE(3)));
    const int line = __LINE__ - 1;
    assert_false(ed_print(file, sum));
    fclose(file);
    char expected[200];
    snprintf(expected, sizeof expected, "NULL (%s:%d: add: ", __FILE__, line);
    assert_int_equal(strncmp(written, expected, strlen(expected)), 0);
    free(written);
    ed_clear_error();
}

static char told[3][200];
static int calls;

static void tell(ed_error_code code, const char *message, void *user)
{
    (void)code;
    snprintf(told[calls++ % 3], sizeof told[0], "%s", message);
    if (user) longjmp(user, 1);
    ed_clear_error();
    ed_fail(ED_IO, "of the handler itself");
}

/* No handler within the handler. */
static void test_handler_that_fails(void **state)
{
    (void)state;
    calls = 0;
    ed_set_error_handler(tell, NULL);
    ed_fail(ED_OUT_OF_RANGE, "first");
    assert_int_equal(calls, 1);
    assert_non_null(strstr(ed_error(), "of the handler itself"));
    ed_clear_error();
    ed_fail(ED_OUT_OF_RANGE, "second");
    assert_int_equal(calls, 2);
    assert_non_null(strstr(told[1], "second"));
    ed_set_error_handler(NULL, NULL);
    ed_clear_error();
}

static __attribute__((noinline)) void fail_deeper(int depth)
{
    char room[256];
    memset(room, depth, sizeof room);
    if (depth)
        fail_deeper(depth - 1);
    else
        ed_add(ed_ones(ED_SHAPE(2)), ed_ones(ED_SHAPE(3)));
    __asm__ volatile("" ::"r"(room));
}

/* It may be left by longjmp, from any depth, as often as it likes. */
static void test_handler_that_jumps(void **state)
{
    (void)state;
    jmp_buf back;
    calls = 0;
    for (volatile int i = 0; i < 50; i++) {
        ed_set_error_handler(tell, &back);
        ed_scope scope = ed_scope_open();
        if (!setjmp(back)) fail_deeper(i * 7 % 20);
        ed_clear_error();
        ed_scope_close(&scope);
        assert_int_equal(calls, i + 1);
    }
    ed_set_error_handler(NULL, NULL);
}

/* The place of the call that a handler left is not that of a later call that has none. */
static void test_place_after_a_jump(void **state)
{
    (void)state;
    jmp_buf back;
    ed_scope scope = ed_scope_open();
    ed_set_error_handler(tell, &back);
    if (!setjmp(back)) ed_add(ed_ones(ED_SHAPE(2)), ed_ones(ED_SHAPE(3)));
    ed_set_error_handler(NULL, NULL);
    ed_clear_error();
    assert_null((ed_exp)(NULL));
    assert_null(ed_error_place());
    assert_int_equal(strncmp(ed_error(), "exp: x is NULL", 14), 0);
    ed_clear_error();
    ed_scope_close(&scope);
}

/* A language may set a place whose strings it frees after the call. */
static void test_place_that_is_gone(void **state)
{
    (void)state;
    ED_SCOPE;
    char file[] = "script.lang";
    const ed_place there = {file, NULL, 7};
    ed_tensor *a = ed_variable(1.0), *b = ed_variable(2.0);
    ed_tape *tape = ed_tape_begin();
    ed_list *loss = ed_list_of(ed_square(a));
    ed_here = &there;
    assert_null((ed_gradient_tensor)(tape, loss, b, NULL));
    ed_here = NULL;
    memset(file, 0x7f, sizeof file); /* as free would */
    assert_null(ed_mul(NULL, 2));
    assert_non_null(strstr(ed_error(), "(ed_gradient at script.lang:7 returned NULL"));
    ed_clear_error();
}

/* A new error may quote the one that was discarded. */
static void test_error_in_an_error(void **state)
{
    (void)state;
    (ed_fail)(ED_NOT_FOUND, "there is no %s", "file");
    const char *why = ed_error();
    ed_clear_error();
    (ed_fail)(ED_IO, "can't load: %s", why);
    assert_string_equal(ed_error(), "can't load: there is no file");
    ed_clear_error();
}

/* Of a message that is too long the middle is left out, between whole characters. */
static void test_long_messages(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    char *name = malloc(LENGTH + 2);
    assert_non_null(name);
    for (int shift = 0; shift < 2; shift++) {
        ED_SCOPE;
        name[0] = 'n';
        for (int i = shift; i < LENGTH + shift; i += 2) memcpy(name + i, "\xc3\xbc", 2);
        name[LENGTH + shift] = 0;
        ed_layer *layer = ed_layer_dense(3, .name = name);
        ed_tensor *v = ed_variable(1.0, .name = name);
        assert_null(ed_forward(layer, ed_ones(ED_SHAPE(3))));
        if (!strstr(ed_error(), ": the input must have rank >= 2, got float32[3]"))
            fail_msg("%s", ed_error());
        assert_non_null(strstr(ed_error(), "test_place.c:"));
        ed_clear_error();
        assert_null(ed_assign(v, ed_ones(ED_SHAPE(3))));
        assert_non_null(strstr(ed_error(), "assign: the variable "));
        assert_non_null(strstr(ed_error(), "must have the same shape"));
        ed_clear_error();
        assert_null(ed_read_npy(name));
        assert_non_null(strstr(ed_error(), "file not found"));
        for (const char *s = ed_error(); *s; s++)
            if ((unsigned char)*s == 0xc3)
                assert_int_equal((unsigned char)*++s, 0xbc);
            else
                assert_true((signed char)*s > 0);
        ed_clear_error();
    }
    free(name);
}

/* Messages have points in numbers, whatever the program's locale has. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < 4 && !found; i++) found = setlocale(LC_NUMERIC, commas[i]);
    if (!found) skip_since("no locale with a decimal comma");
    ed_fail(ED_INVALID_ARGUMENT, "%g", 0.5);
    assert_non_null(strstr(ed_error(), "0.5"));
    char shown[10];
    snprintf(shown, sizeof shown, "%g", .5);
    assert_string_equal(shown, "0,5");
    ed_clear_error();
    setlocale(LC_NUMERIC, "C");
}

/* Runs this program again with EDDY_ERRORS set, where it fails by `--fail`; what it wrote, and
 * how it ended. */
static int run_with(const char *errors, char *output, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        setenv("EDDY_ERRORS", errors, 1);
        dup2(ends[1], 2);
        execute(built("tests/test_place"), (char *[]){"test_place", "--fail", NULL});
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], output + used, size - 1 - used)) > 0;) used += (size_t)n;
    output[used] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static int fail_once(void)
{
    ed_tensor *a = ed_ones(ED_SHAPE(2)), *b = ed_ones(ED_SHAPE(3));
    ed_add(a, b);
    ed_add(b, a); /* not an error of its own: one is kept */
    return 0;
}

static void test_environment(void **state)
{
    (void)state;
    char output[20000];
    assert_int_equal(run_with("", output, sizeof output), 0);
    assert_string_equal(output, "");
    assert_int_equal(run_with("print", output, sizeof output), 0);
    assert_non_null(strstr(output, "eddy: " __FILE__ ":"));
    assert_non_null(strstr(output, "(in fail_once)\n"));
    assert_null(strstr(strchr(output, '\n') + 1, "eddy: "));
    assert_int_equal(run_with("backtrace", output, sizeof output), 0);
    assert_non_null(strstr(output, "ed_fail"));
    assert_true(WIFSIGNALED(run_with("abort", output, sizeof output)));
    assert_non_null(strstr(output, "(in fail_once)\n"));
    assert_int_equal(run_with("loud", output, sizeof output), 0);
    assert_non_null(strstr(output, "EDDY_ERRORS is print, backtrace or abort, not loud"));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--fail")) return fail_once();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_unconnected),
        cmocka_unit_test(test_print_null),
        cmocka_unit_test(test_handler_that_fails),
        cmocka_unit_test(test_handler_that_jumps),
        cmocka_unit_test(test_place_after_a_jump),
        cmocka_unit_test(test_place_that_is_gone),
        cmocka_unit_test(test_error_in_an_error),
        cmocka_unit_test(test_long_messages),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
