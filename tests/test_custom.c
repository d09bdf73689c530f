/*
 * Custom gradients of functions of several results.
 */
#include "tests/tapes.h"

static int released;
static void count_release(void *user)
{
    (void)user;
    released++;
}

/* a b and a + b, and an integer */
static ed_list *product_and_sum(ed_list *inputs, void *user)
{
    (void)user;
    ed_tensor *a = ed_list_get(inputs, 0), *b = ed_list_get(inputs, 1);
    return ed_list_of(ed_mul(a, b), ed_add(a, b), ed_constant(ED_VALUES(int, 7), ED_SHAPE(1)));
}

/* Ten times the product's gradient, and the sum's. */
static ed_list *plain_backward(ed_list *inputs, ed_list *outputs, ed_list *dy, void *user)
{
    (void)user, (void)outputs;
    ed_tensor *a = ed_list_get(inputs, 0), *b = ed_list_get(inputs, 1);
    ed_tensor *dp = ed_mul(ed_list_get(dy, 0), 10.0), *ds = ed_list_get(dy, 1);
    return ed_list_of(ed_add(ed_mul(dp, b), ds), ed_add(ed_mul(dp, a), ds));
}

static ed_list *backward(ed_list *inputs, ed_list *outputs, ed_list *dy, void *user)
{
    assert_int_equal(ed_list_size(outputs), 3);
    assert_values(ed_list_get(outputs, 2), 7);
    assert_int_equal(ed_dtype_of(ed_list_get(dy, 2)), ED_INT32);
    return plain_backward(inputs, outputs, dy, user);
}

static void several_results(void)
{
    ed_tensor *a = V(2, 3), *b = ed_variable(V(5, 7));
    released = 0;
    {
        ED_SCOPE;
        ed_tape *outer = ed_tape_begin(.persistent = true),
                *tape = ed_tape_begin(.persistent = true);
        ed_watch(tape, a), ed_watch(outer, a);
        ed_list *y = ed_custom_gradient_list(product_and_sum, backward, ed_list_of(a, b), NULL,
                                             count_release);
        assert_int_equal(ed_list_size(y), 3);
        ed_tensor *product = ed_list_get(y, 0), *sum = ed_list_get(y, 1);
        assert_values(product, 10, 21);
        assert_values(sum, 7, 10);
        assert_values(ed_gradient(tape, product, a), 50, 70);
        assert_values(ed_gradient(tape, sum, b), 1, 1);
        assert_values(ed_gradient(tape, ed_list_of(product, sum), b), 21, 31);
        /* a b (a + b), the product's part ten times; and the gradient of the gradient by b */
        ed_tensor *da = ed_gradient(tape, ed_mul(product, sum), a);
        assert_values(da, 50 * 7 + 10, 70 * 10 + 21);
        assert_values(ed_gradient(outer, ed_gradient(tape, product, a), b), 10, 10);
        assert_int_equal(released, 0);
    }
    assert_int_equal(released, 1);
}

/* What the functions below do. */
static const char *word;

static ed_list *odd(ed_list *inputs, void *user)
{
    ed_tensor *x = ed_list_get(inputs, 0);
    if (!strcmp(word, "null")) return NULL;
    if (!strcmp(word, "error")) return ed_fail(ED_OUT_OF_RANGE, "own words");
    if (!strcmp(word, "empty")) return ed_list_make(NULL, 0);
    if (!strcmp(word, "hole")) return ed_list_make_optional((ed_tensor *[]){x, NULL}, 2);
    if (!strcmp(word, "number")) return ed_list_of(x, ed_number(2));
    if (!strcmp(word, "variable")) return ed_list_of(x, (ed_tensor *)user);
    return ed_list_of(x, ed_exp(x));
}

static ed_list *odd_backward(ed_list *inputs, ed_list *outputs, ed_list *dy, void *user)
{
    (void)inputs, (void)user;
    if (!*word) {
        ed_scope outermost = {1};
        ed_scope_close(&outermost);
        failed_with(ED_FAILED_PRECONDITION, "scope_close: the scope is from before");
    }
    if (!strcmp(word, "no gradients")) return NULL;
    if (!strcmp(word, "two gradients")) return dy;
    if (!strcmp(word, "shape")) return ed_list_of(V(1, 2, 3));
    return ed_list_of(ed_mul(ed_list_get(dy, 1), ed_list_get(outputs, 1)));
}

static void what_goes_wrong(void)
{
    ed_tensor *x = V(1, 2), *v = ed_variable(V(1, 1));
#define ODD() ed_custom_gradient_list(odd, odd_backward, ed_list_of(x), v, count_release)
#define REFUSED(name, kind, words)                                                                 \
    do {                                                                                           \
        word = name;                                                                               \
        released = 0;                                                                              \
        ED_SCOPE;                                                                                  \
        assert_fails(ODD(), kind, words);                                                          \
        assert_int_equal(released, 1);                                                             \
    } while (0)
    REFUSED("null", ED_INVALID_ARGUMENT, "custom_gradient: the function returned NULL without");
    REFUSED("error", ED_OUT_OF_RANGE, "own words");
    REFUSED("empty", ED_INVALID_ARGUMENT, "returned an empty list");
    REFUSED("hole", ED_INVALID_ARGUMENT, "result 1 of the function is NULL");
    REFUSED("number", ED_INVALID_ARGUMENT, "got a plain number");
    REFUSED("variable", ED_INVALID_ARGUMENT, "reads the variable");
    released = 0;
    ed_list *inputs = ed_list_of(x);
    assert_fails(ed_custom_gradient_list(NULL, odd_backward, inputs, NULL, count_release),
                 ED_INVALID_ARGUMENT, "f is NULL");
    assert_fails(ed_custom_gradient_list(odd, NULL, inputs, NULL, count_release),
                 ED_INVALID_ARGUMENT, "gradient is NULL");
    assert_fails(ed_custom_gradient_list(odd, odd_backward, NULL, NULL, count_release),
                 ED_INVALID_ARGUMENT, "inputs is NULL");
    assert_int_equal(released, 3);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    word = "";
    ed_list *y = ODD();
    ed_tensor *second = ed_list_get(y, 1);
    assert_values(ed_gradient(tape, second, x), exp(1), exp(2));
    word = "no gradients";
    assert_fails(ed_gradient(tape, second, x), ED_INVALID_ARGUMENT, "returned NULL without");
    word = "two gradients";
    assert_fails(ed_gradient(tape, second, x), ED_INVALID_ARGUMENT, "2 gradients for 1 inputs");
    word = "shape";
    assert_fails(ed_gradient(tape, second, x), ED_INVALID_ARGUMENT, "operand is float64[2]");
}

static bool attempt(void)
{
    ED_SCOPE;
    word = "";
    ed_tensor *x = ed_constant(ED_VALUES(double, 1, 2), ED_SHAPE(2));
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_list *inputs = ed_list_of(x);
    ed_list *y = ed_custom_gradient_list(product_and_sum, plain_backward,
                                         ed_list_concat(inputs, inputs), NULL, count_release);
    ed_tensor *target = y ? ed_mul(ed_list_get(y, 0), ed_list_get(y, 1)) : NULL;
    ed_tensor *g = target ? ed_gradient(tape, target, x) : NULL;
    return g && !ed_failed();
}

static void allocations_that_fail(void)
{
    for (int all = 0; all < 2; all++) {
        int64_t n = 0;
        while (!succeeds_without(n, all, attempt)) n++;
        assert_true(n > 10);
    }
}

static int set_up(void **state)
{
    (void)state;
    return !grow_tables();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(several_results),
        TEST(what_goes_wrong),
        TEST(allocations_that_fail),
    };
    return cmocka_run_group_tests_name("custom", tests, set_up, NULL);
}
