/* ed_interrupt: ops fail while it holds, and what a program holds is as after the last success. */
#include "eddy.h"
#include "tests/asserts.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Elements of the large ops: a few milliseconds of work. */
#ifdef EDDY_SANITIZED
enum { SIZE = 1 << 18 };
#else
enum { SIZE = 1 << 21 };
#endif

static void on_alarm(int number)
{
    (void)number;
    ed_interrupt();
}

/* Interrupts the program so many microseconds from now. */
static void interrupt_in(int microseconds)
{
    signal(SIGALRM, on_alarm);
    const struct timeval when = {microseconds / 1000000, microseconds % 1000000};
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = when}, NULL);
}

static void disarm(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    ed_clear_interrupt();
    ed_clear_error();
}

static void ops_fail_until_it_is_cleared(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(3)), *v = ed_variable(x);
    ed_interrupt();
    assert_true(ed_interrupted());
    assert_null(ed_add(x, x));
    assert_int_equal(ed_error_kind(), ED_CANCELLED);
    assert_string_equal(ed_error(), "add: interrupted");
    ed_clear_error();
    assert_null(ed_random_normal(ED_SHAPE(3)));
    assert_int_equal(ed_error_kind(), ED_CANCELLED);
    disarm();
    assert_false(ed_interrupted());
    assert_true(ed_item(ed_reduce_sum(ed_add(v, x))) == 6);
    assert_fine();
}

/* Whatever the moment, the op either fails or gives what it always gives. */
static void large_ops_end_early_or_whole(void **state)
{
    (void)state;
    enum { TRIALS = 60 };
    int cancelled = 0;
    srand(7);
    for (int i = 0; i < TRIALS; i++) {
        ED_SCOPE;
        const bool alone = i % 3 == 0;
        const int threads = ed_num_threads();
        if (alone) ed_set_num_threads(1);
        ed_tensor *x = ed_random_uniform(ED_SHAPE(SIZE / 1024, 1024), .low = 0.5);
        interrupt_in(1 + rand() % 3000);
        ed_tensor *y = i % 2 ? ed_matmul(x, x, .transpose_b = true) : ed_pow(x, x);
        if (!y) assert_int_equal(ed_error_kind(), ED_CANCELLED);
        cancelled += !y;
        disarm();
        ed_tensor *again = i % 2 ? ed_matmul(x, x, .transpose_b = true) : ed_pow(x, x);
        assert_fine();
        if (y) {
            float *a = malloc((size_t)ed_size(y) * 4), *b = malloc((size_t)ed_size(y) * 4);
            assert_true(ed_copy_to(y, a, ed_size(y)) && ed_copy_to(again, b, ed_size(y)));
            assert_memory_equal(a, b, (size_t)ed_size(y) * 4);
            free(a);
            free(b);
        }
        ed_set_num_threads(threads);
    }
    assert_true(cancelled > TRIALS / 4);
}

typedef struct training {
    ed_layer *model;
    ed_optimizer *adam;
    ed_tensor *x, *y;
} training;

static training begin(void)
{
    training t = {.model = ed_layer_sequential("mlp", ed_layer_dense(256, .activation = "relu"),
                                               ed_layer_dense(10)),
                  .adam = ed_optimizer_adam(.global_clipnorm = 1)};
    ed_set_seed(3);
    t.x = ed_random_normal(ED_SHAPE(64, 512));
    t.y = ed_random_uniform(ED_SHAPE(64), .dtype = ED_INT32, .high = 10);
    return t;
}

static bool step(const training *t)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss =
        ed_reduce_mean(ed_sparse_softmax_cross_entropy(t->y, ed_forward(t->model, t->x)));
    return ed_minimize(t->adam, tape, loss, t->model);
}

static float *weights(const training *t, int64_t *count)
{
    ED_SCOPE;
    ed_list *list = ed_layer_variables(t->model);
    *count = 0;
    for (int64_t i = 0; i < ed_list_size(list); i++) *count += ed_size(ed_list_get(list, i));
    float *all = malloc((size_t)*count * sizeof *all), *to = all;
    for (int64_t i = 0; i < ed_list_size(list); i++) {
        ed_tensor *v = ed_list_get(list, i);
        assert_true(ed_copy_to(v, to, ed_size(v)));
        to += ed_size(v);
    }
    return all;
}

/* A training that is interrupted again and again, and repeats the step that was, ends in the same
 * bits as one that never is. */
static void steps_happen_whole_or_not_at_all(void **state)
{
    (void)state;
    enum { STEPS = 60 };
    float *ends[2];
    int64_t count = 0;
    int interruptions = 0;
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        ED_SCOPE;
        ed_set_seed(11);
        training t = begin();
        assert_true(step(&t)); /* builds */
        const clock_t start = clock();
        assert_true(step(&t));
        const int lasts = (int)((double)(clock() - start) / CLOCKS_PER_SEC * 1e6) + 100;
        for (int done = 0; done < STEPS;) {
            if (disturbed) interrupt_in(1 + rand() % (3 * lasts));
            const bool fine = step(&t);
            if (!fine) assert_int_equal(ed_error_kind(), ED_CANCELLED);
            interruptions += !fine;
            disarm();
            done += fine;
        }
        ends[disturbed] = weights(&t, &count);
        assert_fine();
    }
    assert_memory_equal(ends[0], ends[1], (size_t)count * sizeof **ends);
    assert_true(interruptions > 0);
    free(ends[0]);
    free(ends[1]);
}

static int end(void **state)
{
    disarm();
    return check_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ops_fail_until_it_is_cleared, end),
        cmocka_unit_test_teardown(large_ops_end_early_or_whole, end),
        cmocka_unit_test_teardown(steps_happen_whole_or_not_at_all, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
