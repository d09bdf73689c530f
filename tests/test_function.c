/*
 * What is made of functions of tensors: custom gradients, recomputing, jacobians, Hessians.
 */
#include "tests/tapes.h"

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
    REFUSED(CUSTOM(odd_function, odd_backward, none), ED_INVALID_ARGUMENT,
            "inputs must not be empty");

    static const struct {
        const char *word, *part;
        ed_error_code code;
    } cases[] = {{"two", "2 gradients for 1 inputs", ED_INVALID_ARGUMENT},
                 {"no list", "returned NULL", ED_INVALID_ARGUMENT},
                 {"backward error", "own words", ED_OUT_OF_RANGE},
                 {"shape", "float64[1, 2], but the operand is float64[2]", ED_INVALID_ARGUMENT},
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
    ed_tensor *x = V(1, 2), *fixed = ed_variable(V(3, 4), .trainable = false), *c = V(5, 6);
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

static ed_tensor *sum_all(ed_list *inputs, void *user)
{
    return ed_add(ed_reduce_sum(ed_concat(inputs)), user);
}

/* Each of many inputs twice, and a variable that is none of them. */
static void recompute_of_many(void)
{
    enum { N = 50 };
    ed_tensor *v = ed_variable(V(1)), *x[2 * N];
    ed_tape *tape = ed_tape_begin(.persistent = true);
    for (int i = 0; i < N; i++) ed_watch(tape, x[i] = x[2 * N - 1 - i] = V(1));
    ed_tensor *y = ed_recompute(sum_all, ed_list_make(x, 2 * N), v, NULL);
    assert_values(y, 2 * N + 1);
    for (int i = 0; i < N; i++) assert_values(ed_gradient(tape, y, x[i]), 2);
    assert_values(ed_gradient(tape, y, v), 1);
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

/* The same random numbers the second time; those drawn later come as if
 * nothing had been run again. */
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
        ed_tensor *mean = ed_variable(V(1), .trainable = trainable), *count = ed_variable(0);
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
    REFUSED(ed_recompute(odd_function, none, &t, count_release), ED_INVALID_ARGUMENT,
            "inputs must not be empty");
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
    assert_fails(ed_jacobian(NULL, y, x), ED_INVALID_ARGUMENT, "jacobian: tape is NULL");
    assert_fails(ed_jacobian(tape, NULL, x), ED_INVALID_ARGUMENT, "jacobian: target is NULL");
    assert_fails(ed_jacobian(ed_tape_begin(), y, x), ED_FAILED_PRECONDITION, "persistent");
    assert_fails(ed_jacobian(tape, ed_floor(x), x), ED_UNIMPLEMENTED, "floor");
    assert_fails(ed_jacobian(tape, ed_ones(ED_SHAPE(1, 1, 1, 1, 1)), ed_ones(ED_SHAPE(1, 1, 1, 1))),
                 ED_INVALID_ARGUMENT, "ranks that add up to more than 8");
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
    assert_fails(ed_batch_jacobian(tape, y, V(1, 2)), ED_INVALID_ARGUMENT,
                 "same size of the first axis");
    assert_fails(ed_batch_jacobian(tape, S(1), x), ED_INVALID_ARGUMENT,
                 "same size of the first axis");
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
    assert_fails(HVP(mixed, ab, uv, &t), ED_INVALID_ARGUMENT, "a scalar, got float64[2]");
    assert_fails(HVP(mixed, ab, one, NULL), ED_INVALID_ARGUMENT, "1 vectors for 2 inputs");
    assert_fails(HVP(NULL, ab, uv, NULL), ED_INVALID_ARGUMENT, "NULL");
    assert_fails(HVP(mixed, ab, ed_list_of(u, V(1, 2, 3)), NULL), ED_INVALID_ARGUMENT,
                 "output gradient 1");
    assert_fails(HVP(mixed, ed_list_of(a, ed_scalar(1)), uv, NULL), ED_INVALID_ARGUMENT, "int32");
}
/* ---- Allocations that fail ------------------------------------------------------------------- */

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
/* ---- All ------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    return !grow_tables();
}

/* ---- The gradient checker -------------------------------------------------------------------- */

static ed_tensor *first_by_last(ed_list *inputs, void *user)
{
    (void)user;
    return ed_mul(ed_list_get(inputs, 0), ed_list_get(inputs, -1));
}

/* A tensor that is given twice is two inputs, as is a variable beside its value. */
static void checks_of_inputs_given_twice(void)
{
    ed_tensor *x = ed_constant(((double[]){1, 2, 3, 4}), ED_SHAPE(2, 2)), *v = ed_variable(x);
    const char *report;
    ed_list *const inputs[] = {ed_list_of(x, x), ed_list_of(v, v), ed_list_of(x, v)};
    for (int i = 0; i < 3; i++)
        if (!ed_check_gradient(first_by_last, inputs[i], NULL, &report, .second_order = true))
            fail_msg("%d: %s %s", i, report, ed_error());
}

/* Of a strided input, whose elements are copied. */
static void checks_without_memory(void)
{
    ed_tensor *x = ed_constant(((double[]){1, 2, 3, 4, 5, 6}), ED_SHAPE(2, 3));
    ed_list *inputs = ed_list_of(ed_transpose(x));
    for (int at = 0;; at++) {
        ED_SCOPE;
        ed_memory_fail_at(at, false);
        const bool ok = ed_check_gradient(first_by_last, inputs, NULL, NULL);
        const bool failed = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_true(ok || ed_error_kind() == ED_OUT_OF_MEMORY);
        ed_clear_error();
        if (!failed) break;
    }
}

/* Returns another shape or dtype each time. */
static ed_tensor *inconstant(ed_list *inputs, void *user)
{
    told *t = user;
    ed_tensor *x = ed_list_get(inputs, 0);
    switch (t->calls++) {
    case 0: return ed_square(x);
    case 1: return ed_reshape(ed_square(x), ED_SHAPE(-1));
    case 2: return ed_cast(x, ED_FLOAT64);
    case 3: return ed_cast(x, ED_INT32);
    default: return ed_number(1);
    }
}

static void recompute_of_another_result(void)
{
    ed_tensor *x = ed_ones(ED_SHAPE(2, 2));
    told t = {0};
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_recompute(inconstant, ed_list_of(x), &t, NULL);
    static const char *const results[] = {"float32[4]", "float64[2, 2]", "int32[2, 2]",
                                          "float64[]"};
    for (int i = 0; i < 4; i++) {
        char words[100];
        snprintf(words, sizeof words, "returned float32[2, 2] when it ran first, and %s when",
                 results[i]);
        assert_fails(ed_gradient(tape, y, x), ED_INVALID_ARGUMENT, words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(custom_gradient),
        TEST(custom_of_variable),
        TEST(custom_failures),
        TEST(custom_reading),
        TEST(tapes_inside_functions),
        TEST(walks_in_walks),
        TEST(recompute),
        TEST(recompute_twice_the_same),
        TEST(recompute_of_many),
        TEST(recompute_of_another),
        TEST(recompute_random),
        TEST(recompute_assigning),
        TEST(recompute_second_order),
        TEST(recompute_memory),
        TEST(recompute_failures),
        TEST(recompute_of_another_result),
        TEST(checks_of_inputs_given_twice),
        TEST(checks_without_memory),
        TEST(jacobian),
        TEST(batch_jacobian),
        TEST(hessian_vector_product),
        TEST(allocations_that_fail),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
