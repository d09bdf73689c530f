/* L-BFGS: known minima, in about as many steps as SciPy takes, what is left after failures. */
#include "tests/asserts.h"
#include "eddy.h"
#include <math.h>

/* The sum of 100 (b - a^2)^2 + (1 - a)^2 over neighbours of a vector. */
static ed_tensor *rosenbrock(void *vector)
{
    ed_tensor *x = vector;
    const int64_t n = ed_size(x);
    ed_tensor *a = ed_slice(x, .begin = ED_INTS(0), .end = ED_INTS(n - 1));
    ed_tensor *b = ed_slice(x, .begin = ED_INTS(1), .end = ED_INTS(n));
    ed_tensor *far = ed_square(ed_sub(b, ed_square(a))), *near = ed_square(ed_sub(1.0, a));
    return ed_reduce_sum(ed_add(ed_mul(far, 100.0), near));
}

static ed_tensor *start(ed_dtype dtype)
{
    static const double values[] = {-1.2, 1, -0.5, 2, 0.3};
    return ed_variable(ed_cast(ed_constant_of(ED_FLOAT64, values, ED_SHAPE(5)), dtype));
}

static double distance_to_ones(ed_tensor *x)
{
    return ed_item(ed_reduce_max(ed_abs(ed_sub(x, 1.0))));
}

static void known_minimum(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = start(ED_FLOAT64);
    ed_lbfgs_report report;
    ed_tensor *least = ed_lbfgs(rosenbrock, x, x, &report, .max_iter = 200, .max_eval = 1000,
                                .tolerance_change = 1e-14);
    assert_true(least && ed_item(least) < 1e-12 && report.converged);
    assert_true(distance_to_ones(x) < 1e-6);
    assert_true(report.loss == ed_item(least) && report.gradient < 1e-4);
    assert_true(report.iterations < 60 && report.evaluations < 75); /* SciPy's: 53 and 67 */
    assert_true(fabs(ed_item(rosenbrock(x)) - report.loss) < 1e-15);
    ed_tensor *single = start(ED_FLOAT32);
    assert_non_null(ed_lbfgs(rosenbrock, single, ed_list_of(single), NULL, .max_iter = 100));
    assert_true(ed_item(rosenbrock(single)) < 1e-4);
}

typedef struct fitting {
    ed_layer *model;
    ed_tensor *x, *y;
} fitting;

static ed_tensor *squares(void *user)
{
    const fitting *f = user;
    return ed_reduce_mean(ed_square(ed_sub(ed_forward(f->model, f->x), f->y)));
}

/* A quadratic function of 4 numbers: the answer of the normal equations. */
static void least_squares(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_generator *g = ed_generator_from_seed(3);
    fitting f = {.model = ed_layer_dense(1),
                 .x = ed_random_normal(ED_SHAPE(50, 3), .dtype = ED_FLOAT64, .generator = g),
                 .y = ed_random_normal(ED_SHAPE(50, 1), .dtype = ED_FLOAT64, .generator = g)};
    ed_lbfgs_report report;
    ed_set_seed(1);
    assert_non_null(ed_lbfgs(squares, &f, f.model, &report, .max_iter = 50, .tolerance_grad = 1e-8,
                             .tolerance_change = 1e-18));
    assert_true(report.converged && report.iterations < 25);
    ed_tensor *ones = ed_ones(ED_SHAPE(50, 1), .dtype = ED_FLOAT64);
    ed_tensor *exact = ed_lstsq(ed_concat(ed_list_of(f.x, ones), .axis = 1), f.y);
    ed_list *weights = ed_layer_variables(f.model);
    ed_tensor *found = ed_concat(
        ed_list_of(ed_reshape(ed_list_get(weights, 0), ED_SHAPE(-1)), ed_list_get(weights, 1)));
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(found, ed_reshape(exact, ED_SHAPE(-1)))))) <
                1e-6);
}

/* Without a search the step is the learning rate, the first one as long as PyTorch's. */
static void fixed_steps(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = start(ED_FLOAT64);
    ed_lbfgs_report report;
    assert_non_null(ed_lbfgs(rosenbrock, x, NULL, &report, .max_iter = 1, .line_search = "none",
                             .learning_rate = 0.5));
    assert_int_equal(report.iterations, 1);
    assert_int_equal(report.evaluations, 2);
    ed_tensor *moved = ed_reduce_sum(ed_abs(ed_sub(x, start(ED_FLOAT64))));
    assert_true(fabs(ed_item(moved) - 0.5) < 1e-12);
}

typedef struct failing {
    ed_tensor *x;
    int calls, after;
} failing;

static ed_tensor *fails(void *user)
{
    failing *f = user;
    return ++f->calls > f->after ? NULL : rosenbrock(f->x);
}

/* -inf or NaN for |x| > 1. */
static ed_tensor *falls(void *x)
{
    ed_tensor *inside = ed_sub(1.0, ed_square(x));
    return ed_reduce_sum(ed_log(inside));
}

static ed_tensor *falls_to_nothing(void *x)
{
    return ed_reduce_sum(ed_log(ed_relu(ed_sub(1.0, ed_square(x)))));
}

/* The variables stay as they were after the last step. */
static void failures(void **state)
{
    (void)state;
    ED_SCOPE;
    for (int after = 0; after < 12; after++) {
        failing f = {.x = start(ED_FLOAT64), .after = after};
        ed_lbfgs_report report;
        assert_null(ed_lbfgs(fails, &f, f.x, &report));
        assert_true(*ed_error());
        ed_clear_error();
        if (after > 0) assert_true(fabs(ed_item(rosenbrock(f.x)) - report.loss) < 1e-12);
    }
    ed_tensor *x = start(ED_FLOAT64), *half = ed_variable(ed_scalar(0.5));
    assert_null(ed_lbfgs(falls, half, half, NULL, .line_search = "none"));
    assert_non_null(strstr(ed_error(), "the loss became nan"));
    ed_clear_error();
    assert_null(ed_lbfgs(falls_to_nothing, half, half, NULL, .line_search = "none"));
    assert_non_null(strstr(ed_error(), "the loss became -inf"));
    ed_clear_error();
    assert_true(ed_item(half) == 0.5);
    assert_null(ed_lbfgs(NULL, x, x, NULL));
    ed_clear_error();
    assert_null(ed_lbfgs(rosenbrock, x, ed_scalar(1.0), NULL));
    ed_clear_error();
    assert_null(ed_lbfgs(rosenbrock, x, x, NULL, .max_iter = 0));
    ed_clear_error();
    for (int64_t n = 0;; n++) {
        ED_SCOPE;
        ed_tensor *v = start(ED_FLOAT64);
        const int64_t live = ed_memory_stats().live_tensors;
        ed_memory_fail_at(n, false);
        const bool fine = ed_lbfgs(rosenbrock, v, v, NULL, .max_iter = 3);
        const bool failed = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_true(fine || ed_failed());
        ed_clear_error();
        assert_int_equal(ed_memory_stats().live_tensors, live + fine);
        if (!failed) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_minimum),
        cmocka_unit_test(least_squares),
        cmocka_unit_test(fixed_steps),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
