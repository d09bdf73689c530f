/*
 * The time for n of something is n's: operands, outputs, objects of a scope, variables, layers.
 * Each is made with some and with 16 times as many; what takes time by the square takes 256 times
 * as long then. Checkpoints are in test_checkpoint_hostile.c.
 *
 * Nor does it depend on the numbers: what is rounded to 0, as the powers of masked scores are,
 * takes about as long as the rest.
 */
#include "eddy.h"
#include "io/hdf5.h"
#include "tests/folders.h"
#include <time.h>

enum { TIMES = 16, MOST = 20000 * TIMES, ROUNDS = 3 };

static ed_tensor *made[MOST];

/* Seconds of this process' work. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The shortest of some runs: what else the machine does takes none of it shorter. */
static double time_of(void (*run)(int n), int n)
{
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = seconds();
        {
            ED_SCOPE;
            run(n);
            assert_fine();
        }
        const double time = seconds() - start;
        if (time < best) best = time;
    }
    return best;
}

/* Of `few`, and of 16 times as many: the time may be more than 16 times as long, since caches hold
 * less of it and pages are new, but not near the square. */
static void is_linear(const char *what, void (*run)(int n), int few)
{
#if defined EDDY_SANITIZED || defined EDDY_HARD
    skip_since("sanitized or HARD: memory has other times there");
#endif
    const int many = TIMES * few;
    const double before = time_of(run, few), after = time_of(run, many);
    print_message("%s: %d in %.2f ms, %d in %.2f ms\n", what, few, 1e3 * before, many, 1e3 * after);
    if (after > TIMES * TIMES / 2 * before)
        fail_msg("%s: %d times as many take %.1f times as long", what, TIMES, after / before);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Numbers of both kinds, whose dtypes have to be found. */
static void join(int n)
{
    for (int i = 0; i < n; i++) made[i] = i % 2 ? ed_number(i) : ed_integer(i);
    assert_non_null(ed_stack(ed_list_make(made, n)));
    for (int i = 0; i < n; i++) made[i] = ed_ones(ED_SHAPE(1));
    assert_non_null(ed_concat(ed_list_make(made, n)));
}

static void keep(int n)
{
    {
        ED_SCOPE;
        for (int i = 0; i < n; i++) made[i] = ed_scalar(i);
        for (int i = 0; i < n; i++) ed_keep(made[i]); /* the oldest first */
    }
    {
        ED_SCOPE;
        for (int i = 0; i < n; i++) made[i] = ed_scalar(i);
        for (int i = n; i-- > 0;) ed_keep(made[i]);
    }
}

/* Each part's gradient concerns one number of the whole. */
static void take_parts(int n)
{
    ed_tensor *x = ed_range(0, n, .dtype = ED_FLOAT32);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_stack(ed_unstack(x));
    assert_non_null(ed_gradient(tape, ed_mul(y, y), x));
}

static void joining(void **state)
{
    (void)state;
    is_linear("stack and concat", join, 5000);
}

static void keeping(void **state)
{
    (void)state;
    is_linear("keep", keep, 20000);
}

static void parts(void **state)
{
    (void)state;
    is_linear("the gradient of unstack", take_parts, 5000);
}

/* ---- Layers and variables -------------------------------------------------------------------- */

static void make_steps(int n)
{
    for (int i = 0; i < n; i++) made[i] = ed_variable(ed_scalar(1.f));
    ed_list *variables = ed_list_make(made, n);
    ed_optimizer *adam = ed_optimizer_adam();
    for (int step = 0; step < 2; step++)
        assert_true(ed_apply_gradients(adam, variables, variables));
}

/* Layers without a name get one. */
static void add_layers(int n)
{
    ed_layer *model = ed_layer_sequential("m");
    for (int i = 0; i < n; i++) assert_non_null(ed_layer_add_child(model, ed_layer_dense(1)));
    char last[32];
    snprintf(last, sizeof last, "dense_%d", n - 1);
    assert_string_equal(ed_layer_name(ed_layer_child(model, -1)), last);
}

static void optimizing(void **state)
{
    (void)state;
    is_linear("two steps of Adam", make_steps, 8000);
}

static void adding(void **state)
{
    (void)state;
    is_linear("layers without a name", add_layers, 5000);
}

/* ---- Models of symbolic tensors -------------------------------------------------------------- */

/* A chain, every other link of which is an op that has no name yet. */
static ed_layer *chain(int n)
{
    ed_tensor *x = ed_input(ED_SHAPE(2)), *y = x;
    for (int i = 0; i < n / 2; i++) y = ed_add(ed_forward(ed_layer_activation("relu"), y), y);
    return ed_model(x, y);
}

static void describe(int n)
{
    ed_layer *model = chain(n);
    assert_non_null(ed_model_to_dot(model));
    assert_non_null(ed_model_summary(model));
    assert_non_null(ed_forward(model, ed_ones(ED_SHAPE(1, 2))));
}

static void save_and_load(int n)
{
    assert_true(ed_model_save(chain(n / 4), in_folder("chain.keras")));
    ed_layer *model = ed_model_load(in_folder("chain.keras"));
    assert_int_equal(ed_layer_child_count(model), n / 4 / 2);
}

static void describing(void **state)
{
    (void)state;
    is_linear("a model of calls", describe, 1000);
}

static void saving(void **state)
{
    (void)state;
    if (!h5_is_here()) skip_since("without HDF5 there are no .keras files");
    is_linear("a .keras file", save_and_load, 4000);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static ed_tensor *(*applied)(ed_tensor *x);
static ed_tensor *numbers;

static void apply(int n)
{
    for (int i = 0; i < n; i++) {
        ED_SCOPE;
        assert_non_null(applied(numbers));
    }
}

#define FUNCTION(name)                                                                             \
    static ed_tensor *name##_of(ed_tensor *x)                                                      \
    {                                                                                              \
        return ed_##name(x);                                                                       \
    }
#define FUNCTIONS(X)                                                                               \
    X(exp) X(sigmoid) X(silu) X(gelu) X(gelu_tanh) X(softplus) X(mish) X(elu) X(softmax)
FUNCTIONS(FUNCTION)

/* x is added to the scores, which are all alike. */
static ed_tensor *masked_attention(ed_tensor *x)
{
    ed_tensor *ones = ed_ones(ED_SHAPE(ed_dim(x, 0), 8), .dtype = ed_dtype_of(x));
    return ed_scaled_dot_product_attention(ones, ones, ones, x, NULL);
}

/* Every third number is `far`, the others are between -4 and 4. */
static ed_tensor *some_far(double far, ed_dtype dtype)
{
    enum { ROWS = 128 };
    static double x[ROWS * ROWS];
    for (int i = 0; i < ROWS * ROWS; i++) x[i] = i % 3 == 1 ? far : 8.0 * i / (ROWS * ROWS) - 4;
    return ed_cast(ed_constant(x, ED_SHAPE(ROWS, ROWS)), dtype);
}

static void applying(void **state)
{
    (void)state;
#if defined EDDY_SANITIZED || defined EDDY_HARD
    skip_since("sanitized or HARD: it is much slower there");
#endif
#define ROW(name) {#name, name##_of},
    const struct {
        const char *name;
        ed_tensor *(*f)(ed_tensor *x);
    } functions[] = {FUNCTIONS(ROW){"attention", masked_attention}};
    const double far[] = {-200, 200, -1e4, -1e9, -INFINITY, INFINITY};
    for (size_t i = 0; i < 2 * sizeof functions / sizeof *functions; i++) {
        ED_SCOPE;
        const ed_dtype dtype = i % 2 ? ED_FLOAT64 : ED_FLOAT32;
        applied = functions[i / 2].f;
        numbers = some_far(0, dtype);
        const double usual = time_of(apply, 10);
        for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
            numbers = some_far(far[k], dtype);
            const double time = time_of(apply, 10);
            if (time > 8 * usual)
                fail_msg("%s of %s with %g among them takes %.1f times as long",
                         functions[i / 2].name, ed_dtype_name(dtype), far[k], time / usual);
        }
    }
}

#define TEST(f) cmocka_unit_test_teardown(f, check_end)

int main(void)
{
    ed_set_num_threads(1); /* helpers' waiting is no work */
    const struct CMUnitTest tests[] = {
        TEST(joining), TEST(keeping),    TEST(parts),  TEST(optimizing),
        TEST(adding),  TEST(describing), TEST(saving), TEST(applying),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
