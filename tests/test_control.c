/*
 * Functions of tensors in loops: maps, folds, scans, while.
 */
#include "autodiff/control.h"
#include "tests/tapes.h"
#include <setjmp.h>

/* What the functions below do besides. */
static const char *word = "";
static int calls;

static ed_list *odd_word(ed_list *inputs)
{
    if (!strcmp(word, "null")) return NULL;
    if (!strcmp(word, "error")) return ed_fail(ED_OUT_OF_RANGE, "own words");
    if (!strcmp(word, "hole")) return ed_list_make_optional((ed_tensor *[]){NULL}, 1);
    if (!strcmp(word, "number")) return ed_list_of(ed_number(2));
    if (!strcmp(word, "more")) return ed_list_concat(inputs, inputs);
    if (!strcmp(word, "later more") && calls > 1) return ed_list_concat(inputs, inputs);
    if (!strcmp(word, "later wider") && calls > 1) return ed_list_of(ed_ones(ED_SHAPE(5)));
    if (!strcmp(word, "other dtype")) return ed_list_of(ed_ones(ED_SHAPE(2)));
    if (!strcmp(word, "scope")) {
        ed_scope outermost = {1};
        ed_scope_close(&outermost);
    }
    return NULL;
}

/* a exp(b), and a + b of other shape */
static ed_list *two_of_two(ed_list *inputs, void *user)
{
    calls++;
    if (*word) {
        ed_list *odd = odd_word(inputs);
        if (odd || ed_failed() || !strcmp(word, "null")) return odd;
    }
    (void)user;
    ed_tensor *a = ed_list_get(inputs, 0), *b = ed_list_get(inputs, -1);
    return ed_list_of(ed_mul(a, ed_exp(b)), ed_reshape(ed_add(a, b), ED_SHAPE(-1, 1)));
}

static void maps(void)
{
    ed_tensor *a = ed_reshape(V(1, 2, 3, 4, 5, 6), ED_SHAPE(3, 2)), *b = ed_variable(V(0, 1, 2));
    ed_list *elems = ed_list_of(a, b);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, a);
    ed_list *y = ed_map_fn(two_of_two, elems, NULL);
    assert_int_equal(ed_list_size(y), 2);
    ed_tensor *whole = ed_mul(a, ed_exp(ed_reshape(b, ED_SHAPE(3, 1))));
    assert_same(ed_list_get(y, 0), whole);
    assert_int_equal(ed_rank(ed_list_get(y, 1)), 3);
    assert_values(ed_list_get(y, 1), 1, 2, 4, 5, 7, 8);
    for (int i = 0; i < 2; i++) {
        ed_tensor *source = i ? b : a;
        assert_same(ed_gradient(tape, ed_list_get(y, 0), source), ed_gradient(tape, whole, source));
    }
    /* one slice for all */
    ed_list *wide = ed_list_of(ed_reshape(V(3, 4), ED_SHAPE(1, 2)), b);
    y = ed_vectorized_map(two_of_two, wide, NULL);
    assert_values(ed_list_get(y, 1), 3, 4, 4, 5, 5, 6);
    assert_fails(ed_map_fn(two_of_two, wide, NULL), ED_INVALID_ARGUMENT,
                 "map_fn: tensor 1 is float64[3], but the first axis of others has the size 1");
    assert_fails(ed_vectorized_map(two_of_two, ed_list_of(V(1, 2), b), NULL), ED_INVALID_ARGUMENT,
                 "vectorized_map: tensor 1 is float64[3], but the first axis of others has");
}

/* What functions get of the slices: as `word` says. */
static ed_list *of_slice(ed_list *inputs, void *user)
{
    calls++;
    ed_tensor *w = user, *x = ed_list_get(inputs, 0), *b = ed_list_get(inputs, -1);
    if (!strcmp(word, "network"))
        return ed_list_of(
            ed_softmax(ed_tanh(ed_linear(ed_reshape(x, ED_SHAPE(1, -1)), w, NULL, NULL))));
    if (!strcmp(word, "axes"))
        return ed_list_of(ed_reduce_sum(ed_mul(x, x)), ed_cumsum(ed_transpose(x)),
                          ed_concat(ed_list_of(x, ed_pad(x, .before = ED_INTS(1))), .axis = 0),
                          ed_slice(x, .begin = ED_INTS(1)), ed_index(x, -1), ed_argmax(x),
                          ed_sort(x, .direction = "DESCENDING"), ed_gather(w, ed_argmax(x)));
    if (!strcmp(word, "the same")) return ed_list_of(ed_square(w), b);
    if (!strcmp(word, "reads")) return ed_list_of(ed_mul(x, ed_item(ed_reduce_sum(b))));
    if (!strcmp(word, "writes"))
        return ed_assign_add(w, ed_reduce_sum(x)) ? ed_list_of(ed_add(x, w)) : NULL;
    if (!strcmp(word, "counts"))
        return ed_assign_add(w, 1) ? ed_list_of(ed_add(x, ed_value(w))) : NULL;
    if (!strcmp(word, "compares"))
        return ed_list_of(ed_cast(ed_greater(b, ed_reduce_max(x)), ED_INT32), ed_argmax(x));
    if (!strcmp(word, "nested compares")) {
        word = "compares";
        ed_list *rows = ed_vectorized_map(of_slice, ed_list_of(x, ed_sub(x, b)), w);
        word = "nested compares";
        return ed_list_of(ed_list_get(rows, 0), ed_mul(x, ed_cast(ed_list_get(rows, 0), x->dtype)));
    }
    if (!strcmp(word, "fails")) return ed_list_of(ed_matmul(x, ed_ones(ED_SHAPE(7, 7))));
    ed_list *inner = ed_list_of(x, ed_broadcast_to(b, ED_SHAPE(ed_dim(x, 0))));
    word = "the same";
    ed_list *y = ed_vectorized_map(of_slice, inner, w);
    word = "nested";
    return ed_list_of(ed_mul(ed_expand_dims(ed_list_get(y, 1), -1), x), ed_list_get(y, 0));
}

/* Both maps give the same; how often the function was called for all slices at once. */
static int compare_maps(const char *name, ed_list *elems, ed_tensor *w)
{
    word = name;
    ed_list *one = ed_map_fn(of_slice, elems, w);
    calls = 0;
    ed_list *all = ed_vectorized_map(of_slice, elems, w);
    const int times = calls;
    if (!one || !all) fail_msg("%s: %s", name, ed_error());
    assert_int_equal(ed_list_size(one), ed_list_size(all));
    for (int64_t i = 0; i < ed_list_size(one); i++)
        assert_close_to(ed_list_get(all, i), ed_list_get(one, i), 1e-14);
    word = "";
    return times;
}

static void all_slices_at_once(void)
{
    ed_tensor *w = ed_variable(ed_random_normal(ED_SHAPE(12, 5), .dtype = ED_FLOAT64));
    ed_list *elems = ed_list_of(ed_random_normal(ED_SHAPE(6, 3, 4), .dtype = ED_FLOAT64),
                                ed_random_normal(ED_SHAPE(6), .dtype = ED_FLOAT64));
    assert_int_equal(compare_maps("network", elems, w), 1);
    assert_int_equal(compare_maps("axes", elems, w), 1);
    assert_int_equal(compare_maps("the same", elems, w), 1);
    assert_int_equal(compare_maps("nested", elems, w), 2);
    assert_int_equal(compare_maps("compares", elems, w), 1);
    ed_tensor *square = ed_random_normal(ED_SHAPE(5, 4, 4), .dtype = ED_FLOAT64);
    compare_maps("nested compares", ed_list_of(square, ed_reduce_mean(square, .axis = ED_AXES(-1))),
                 w);
    assert_int_equal(compare_maps("reads", elems, w), 7); /* in vain at once, then one by one */
    calls = 0;
    word = "fails";
    assert_fails(ed_vectorized_map(of_slice, elems, w), ED_INVALID_ARGUMENT, "matmul");
    word = "counts";
    ed_tensor *turns = ed_variable(S(0));
    ed_list *y = ed_vectorized_map(of_slice, ed_list_of(V(0, 0, 0)), turns);
    assert_values(ed_list_get(y, 0), 1, 2, 3);
    assert_values(ed_value(turns), 3);
    word = "writes";
    ed_tensor *sum = ed_variable(S(0));
    assert_non_null(ed_vectorized_map(of_slice, elems, sum));
    assert_close_to(ed_value(sum), ed_reduce_sum(ed_list_get(elems, 0)), 1e-12);
    word = "";
}

static void gradients_of_all_slices(void)
{
    ed_tensor *x = ed_random_normal(ED_SHAPE(6, 3, 4), .dtype = ED_FLOAT64);
    ed_tensor *w = ed_variable(ed_random_normal(ED_SHAPE(12, 5), .dtype = ED_FLOAT64));
    ed_list *gradients[2];
    for (int all = 0; all < 2; all++) {
        word = "network";
        ed_tape *outer = ed_tape_begin(), *tape = ed_tape_begin();
        ed_watch(outer, x), ed_watch(tape, x);
        ed_list *y = (all ? ed_vectorized_map : ed_map_fn)(of_slice, ed_list_of(x), w);
        ed_list *first = ed_gradient(tape, ed_square(ed_list_get(y, 0)), ed_list_of(x, w));
        gradients[all] = ed_gradient(outer, first, ed_list_of(x, w));
        word = "";
    }
    for (int i = 0; i < 2; i++)
        assert_close_to(ed_list_get(gradients[1], i), ed_list_get(gradients[0], i), 1e-12);
}

/* A function may be left for good; what listened to it ends with its scope. */
static jmp_buf way_out;

static ed_list *leaves(ed_list *inputs, void *user)
{
    (void)inputs, (void)user;
    longjmp(way_out, 1);
}

static void functions_that_are_left(void)
{
    ed_tensor *x = V(1, 2, 3);
    if (!setjmp(way_out)) ed_vectorized_map(leaves, ed_list_of(x), NULL);
    assert_values(ed_square(x), 1, 4, 9);
    assert_fails(ed_square(NULL), ED_INVALID_ARGUMENT, "NULL");
}

/* Elements that are not there make no number, even for a function that forgets the error. */
static ed_list *forgets(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *x = ed_list_get(inputs, 0);
    const double first = ed_item(x);
    ed_clear_error();
    const double *all = ed_as_doubles(x);
    ed_clear_error();
    return ed_list_of(ed_mul(x, first > 0 ? 1 : -1), ed_add(x, all ? all[0] : 0));
}

static void looks_are_noticed(void)
{
    ed_list *y = ed_vectorized_map(forgets, ed_list_of(V(1, -2, 3)), NULL);
    assert_values(ed_list_get(y, 0), 1, 2, 3);
    assert_values(ed_list_get(y, 1), 2, -4, 6);
}

/* Nothing is told of what was tried in vain. */
static void count_errors(ed_error_code code, const char *message, void *user)
{
    (void)code, (void)message;
    ++*(int *)user;
}

static void attempts_are_silent(void)
{
    int errors = 0;
    ed_set_error_handler(count_errors, &errors);
    word = "reads";
    ed_list *y = ed_vectorized_map(of_slice, ed_list_of(V(1, 2, 3), V(1, 2, 3)), S(1));
    word = "";
    ed_set_error_handler(NULL, NULL);
    assert_values(ed_list_get(y, 0), 1, 4, 9);
    assert_int_equal(errors, 0);
}

static void maps_that_fail(void)
{
    ed_list *elems = ed_list_of(V(1, 2, 3), V(1, 2, 3)), *none = ed_list_make(NULL, 0);
    ed_list *hole = ed_list_make_optional((ed_tensor *[]){NULL}, 1);
#define MAP(name, list, kind, words)                                                               \
    word = name, calls = 0;                                                                        \
    assert_fails(ed_map_fn(two_of_two, list, NULL), kind, words)
    MAP("null", elems, ED_INVALID_ARGUMENT, "map_fn: the function returned NULL without");
    MAP("error", elems, ED_OUT_OF_RANGE, "own words");
    assert_int_equal(calls, 1);
    MAP("hole", elems, ED_INVALID_ARGUMENT, "map_fn: result 0 is NULL");
    MAP("number", elems, ED_INVALID_ARGUMENT, "got a plain number");
    MAP("scope", elems, ED_FAILED_PRECONDITION, "scope_close: the scope is from before");
    MAP("later more", elems, ED_INVALID_ARGUMENT, "returned 4 tensors, after 2 at first");
    MAP("later wider", elems, ED_INVALID_ARGUMENT, "returned 1 tensors, after 2 at first");
    word = "";
    MAP("", none, ED_INVALID_ARGUMENT, "map_fn: elems must not be empty");
    MAP("", NULL, ED_INVALID_ARGUMENT, "elems is NULL");
    MAP("", hole, ED_INVALID_ARGUMENT, "tensor 0 is NULL");
    MAP("", ed_list_of(S(1)), ED_INVALID_ARGUMENT, "has no first axis");
    MAP("", ed_list_of(ed_zeros(ED_SHAPE(0, 3))), ED_INVALID_ARGUMENT, "the size 0, and nothing");
    MAP("", ed_list_of(ed_zeros(ED_SHAPE(1ll << 40, 0))), ED_OUT_OF_MEMORY, "");
    assert_fails(ed_map_fn(NULL, elems, NULL), ED_INVALID_ARGUMENT, "f is NULL");
}

/* ---- Folds and scans ------------------------------------------------------------------------- */

/* s x + 1 */
static ed_list *horner(ed_list *inputs, void *user)
{
    calls++;
    if (*word) {
        ed_list *odd = odd_word(inputs);
        if (odd || ed_failed() || !strcmp(word, "null")) return odd;
    }
    (void)user;
    return ed_list_of(ed_add(ed_mul(ed_list_get(inputs, 0), ed_list_get(inputs, 1)), 1.0));
}

static void folds(void)
{
    ed_tensor *x = V(2, 3, 5), *first = S(7);
    ed_list *elems = ed_list_of(x), *init = ed_list_of(first);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x), ed_watch(tape, first);
    ed_tensor *y = ed_list_get(ed_foldl(horner, elems, init, NULL), 0);
    assert_values(y, ((7 * 2 + 1) * 3 + 1) * 5 + 1);
    assert_values(ed_gradient(tape, y, x), 7 * 15, 15 * 5, 46);
    assert_values(ed_gradient(tape, y, first), 30);
    assert_values(ed_list_get(ed_foldr(horner, elems, init, NULL), 0),
                  ((7 * 5 + 1) * 3 + 1) * 2 + 1);
    assert_values(ed_list_get(ed_foldl(horner, elems, NULL, NULL), 0), (2 * 3 + 1) * 5 + 1);
    assert_values(ed_list_get(ed_foldr(horner, elems, NULL, NULL), 0), (5 * 3 + 1) * 2 + 1);
    ed_list *empty = ed_list_of(ed_zeros(ED_SHAPE(0), .dtype = ED_FLOAT64));
    assert_values(ed_list_get(ed_foldl(horner, empty, init, NULL), 0), 7);

    ed_tensor *s = ed_list_get(ed_scan(horner, elems, init, NULL), 0);
    assert_values(s, 15, 46, 231);
    assert_values(ed_gradient(tape, s, first), 2 + 6 + 30);
    assert_values(ed_list_get(ed_scan(horner, elems, init, NULL, .reverse = true), 0), 219, 109,
                  36);
    assert_values(ed_list_get(ed_scan(horner, elems, NULL, NULL), 0), 2, 7, 36);
    assert_values(ed_list_get(ed_scan(horner, elems, NULL, NULL, .reverse = true), 0), 33, 16, 5);

    assert_fails(ed_foldl(horner, empty, NULL, NULL), ED_INVALID_ARGUMENT, "no initializer");
    assert_fails(ed_scan(horner, empty, init, NULL), ED_INVALID_ARGUMENT, "scan: the first axis");
    assert_fails(ed_foldr(horner, elems, ed_list_make_optional((ed_tensor *[]){NULL}, 1), NULL),
                 ED_INVALID_ARGUMENT, "foldr: initializer 0 is NULL");
    assert_fails(ed_foldl(NULL, elems, NULL, NULL), ED_INVALID_ARGUMENT, "foldl: f is NULL");
    assert_fails(ed_scan(horner, NULL, NULL, NULL), ED_INVALID_ARGUMENT, "scan: elems is NULL");
    word = "more";
    assert_fails(ed_foldl(horner, elems, init, NULL), ED_INVALID_ARGUMENT,
                 "foldl: the function returned 4 tensors for 1 accumulators");
    word = "later wider", calls = 0;
    assert_fails(ed_scan(horner, elems, init, NULL), ED_INVALID_ARGUMENT,
                 "scan: result 0 of the function is float32[5], after float64[] at first");
    word = "error";
    assert_fails(ed_scan(horner, elems, init, NULL), ED_OUT_OF_RANGE, "own words");
    word = "scope";
    assert_fails(ed_foldr(horner, elems, init, NULL), ED_FAILED_PRECONDITION, "is from before");
    word = "";
}

/* A variable that the function assigns, as an accumulator and a result: its value counts. */
static ed_list *counting(ed_list *inputs, void *user)
{
    (void)inputs;
    ed_assign_add(user, 1.0);
    return ed_list_of((ed_tensor *)user);
}

static void results_that_are_variables(void)
{
    ed_tensor *v = ed_variable(V(10, 20));
    ed_list *elems = ed_list_of(V(1, 2, 3));
    assert_values(ed_list_get(ed_map_fn(counting, elems, v), 0), 11, 21, 12, 22, 13, 23);
    ed_assign(v, V(0, 0));
    assert_values(ed_list_get(ed_scan(counting, elems, ed_list_of(v), v), 0), 1, 1, 2, 2, 3, 3);
}

/* What each call makes besides is released before the next. */
static ed_list *wasteful(ed_list *inputs, void *user)
{
    ed_ones(ED_SHAPE(1 << 20));
    int64_t *most = user;
    const int64_t live = ed_memory_stats().live_bytes;
    if (live > *most) *most = live;
    return ed_list_of(ed_list_get(inputs, 0));
}

static void memory(void)
{
    int64_t most = 0;
    const int64_t before = ed_memory_stats().live_bytes;
    ed_foldl(wasteful, ed_list_of(ed_ones(ED_SHAPE(50))), NULL, &most);
    ed_map_fn(wasteful, ed_list_of(ed_ones(ED_SHAPE(50))), &most);
    assert_true(most - before < 9 << 20);
}

/* ---- While ----------------------------------------------------------------------------------- */

static bool below_100(ed_list *variables, void *user)
{
    (void)user;
    if (!strcmp(word, "condition")) ed_fail(ED_OUT_OF_RANGE, "own words");
    if (!strcmp(word, "condition scope")) {
        ed_scope outermost = {1};
        ed_scope_close(&outermost);
    }
    return ed_item(ed_list_get(variables, 0)) < 100;
}

/* y x, x */
static ed_list *multiply(ed_list *variables, void *user)
{
    (void)user;
    if (*word) {
        ed_list *odd = odd_word(variables);
        if (odd || ed_failed() || !strcmp(word, "null")) return odd;
    }
    ed_tensor *y = ed_list_get(variables, 0), *x = ed_list_get(variables, 1);
    return ed_list_of(ed_mul(y, x), x);
}

static void while_loops(void)
{
    ed_tensor *x = S(3);
    ed_list *variables = ed_list_of(S(1), x);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_list *y = ed_while_loop(below_100, multiply, variables, NULL);
    assert_values(ed_list_get(y, 0), 243);
    assert_values(ed_gradient(tape, ed_list_get(y, 0), x), 5 * 81);
    y = ed_while_loop(below_100, multiply, variables, NULL, .maximum_iterations = 2);
    assert_values(ed_list_get(y, 0), 9);
    y = ed_while_loop(below_100, multiply, ed_list_of(S(100), x), NULL);
    assert_values(ed_list_get(y, 0), 100);
#define LOOP(name, kind, words)                                                                    \
    word = name;                                                                                   \
    assert_fails(ed_while_loop(below_100, multiply, variables, NULL), kind, words)
    LOOP("condition", ED_OUT_OF_RANGE, "own words");
    LOOP("condition scope", ED_FAILED_PRECONDITION, "scope_close: the scope is from before");
    LOOP("error", ED_OUT_OF_RANGE, "own words");
    LOOP("null", ED_INVALID_ARGUMENT, "while_loop: the function returned NULL without an error");
    LOOP("more", ED_INVALID_ARGUMENT, "returned 4 tensors for 2");
    word = "";
    assert_fails(ed_while_loop(NULL, multiply, variables, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_while_loop(below_100, NULL, variables, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_while_loop(below_100, multiply, NULL, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(ed_while_loop(below_100, multiply, variables, NULL, .maximum_iterations = -1),
                 ED_INVALID_ARGUMENT, "maximum_iterations must be >= 0, got -1");
}

static bool attempt(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(double, 2, 3, 5), ED_SHAPE(3));
    ed_list *elems = x ? ed_list_of(x) : NULL;
    ed_tape *tape = ed_tape_begin();
    if (!elems || !tape || !ed_watch(tape, x)) return false;
    ed_list *m = ed_map_fn(horner, ed_list_concat(elems, elems), NULL);
    ed_list *s = m ? ed_scan(horner, m, NULL, NULL) : NULL;
    ed_list *y = s ? ed_foldl(horner, s, NULL, NULL) : NULL;
    ed_tensor *g = y ? ed_gradient(tape, ed_list_get(y, 0), x) : NULL;
    ed_list *w = g ? ed_while_loop(below_100, multiply, ed_list_concat(y, y), NULL) : NULL;
    return w && !ed_failed();
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
    return !grow_tables();
}

/* What a function keeps of a map's slices. */
static ed_tensor *kept;

static ed_list *keeps_slice(ed_list *inputs, void *user)
{
    (void)user;
    kept = ed_retain(ed_list_get(inputs, 0));
    return ed_list_of(ed_exp(kept));
}

static void slices_kept_after_their_map(void)
{
    assert_non_null(ed_vectorized_map(keeps_slice, ed_list_of(ed_ones(ED_SHAPE(3, 2))), NULL));
    scope_give(kept);
    assert_fails(ed_data(kept), ED_FAILED_PRECONDITION,
                 "for the slices in a function that ed_vectorized_map called");
    assert_fails(ed_assign(ed_variable(ed_zeros(ED_SHAPE(2))), kept), ED_UNIMPLEMENTED,
                 "depends on a slice of ed_vectorized_map outside of its call");
    assert_fails(ed_greater(kept, 0.0), ED_UNIMPLEMENTED,
                 "kept from the function that ed_vectorized_map called");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(maps),
        TEST(all_slices_at_once),
        TEST(gradients_of_all_slices),
        TEST(attempts_are_silent),
        TEST(functions_that_are_left),
        TEST(looks_are_noticed),
        TEST(slices_kept_after_their_map),
        TEST(maps_that_fail),
        TEST(folds),
        TEST(memory),
        TEST(while_loops),
        TEST(results_that_are_variables),
        TEST(allocations_that_fail),
    };
    return cmocka_run_group_tests_name("control", tests, set_up, NULL);
}
