/* ed_interrupt: ops fail while it holds, and what a program holds is as after the last success. */
#include "ops/index.h"
#include "tensor/threads.h"
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

/* ---- Indices --------------------------------------------------------------------------------- */

/* Every call is interrupted when it has begun. */
static void interrupt_call(ed_listener *self, const ed_call *call)
{
    (void)self;
    (void)call;
    ed_interrupt();
}

/* What is skipped leaves memory as it was; no index may come of that. */
static void indices_are_read_whole(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++)
        for (int wide = 0; wide < 2; wide++) {
            ED_SCOPE;
            assert_true(ed_set_num_threads(threads));
            const ed_dtype dtype = wide ? ED_INT64 : ED_INT32;
            ed_tensor *x = ed_cast(ed_range(0, SIZE, .dtype = ED_INT64), dtype);
            const bool outer = threads_may_stop(true);
            ed_interrupt();
            const index_order order = index_order_of(x);
            const int64_t *all = index_wide(x);
            disarm();
            threads_may_stop(outer);
            assert_true(order.largest == SIZE - 1 && order.least == 0 && order.sorted);
            for (int64_t i = 0; i < SIZE; i++) assert_int_equal(all[i], i);
            index_drop(x, all);
        }
}

static ed_tensor *op_of_indices(int which, ed_tensor *x, ed_tensor *i)
{
    ed_tensor *counts = NULL, *y = NULL;
    switch (which) {
    case 0: return ed_gather(x, i);
    case 1: return ed_scatter_nd(ed_expand_dims(i, -1), x, ED_SHAPE(SIZE));
    case 2: return ed_gather(x, ed_argsort(i));
    case 3: return ed_unsorted_segment_sum(x, i, SIZE);
    case 4: y = ed_unique(i, &counts, NULL); return y ? counts : NULL;
    case 5: y = ed_top_k(x, SIZE / 2, &counts); return y ? counts : NULL;
    case 6: return ed_tensor_scatter_add(x, ed_expand_dims(i, -1), x);
    case 7: return ed_bincount(i, NULL, .maxlength = SIZE);
    case 8: return ed_take_along_axis(x, i, .axis = 0);
    case 9: return ed_list_get(ed_dynamic_partition(x, ed_cast(ed_greater(i, 3), ED_INT32), 2), 1);
    case 10: return ed_unsorted_segment_max(x, i, 100);
    default: return NULL;
    }
}

/* Ops of indices fail, or give what they always give; with an index out of bounds they fail. */
static void ops_of_indices_end_early_or_whole(void **state)
{
    (void)state;
    ed_listener listener = {.before = interrupt_call};
    for (int which = 0; which < 11; which++)
        for (int bad = 0; bad < 2; bad++) {
            ED_SCOPE;
            ed_tensor *i = ed_range(0, SIZE, .dtype = ED_INT32);
            ed_tensor *x = ed_cast(i, ED_FLOAT32);
            if (bad)
                i = ed_concat(ed_list_of(ed_slice(i, .begin = ED_INTS(1)),
                                         ed_constant(ED_VALUES(int32_t, 1 << 30), ED_SHAPE(1))),
                              .axis = 0);
            ed_tensor *whole = bad ? NULL : op_of_indices(which, x, i);
            ed_clear_error();
            ed_listen(&listener);
            ed_tensor *y = op_of_indices(which, x, i);
            ed_unlisten(&listener);
            if (!y) assert_true(ed_failed());
            if (y && !ed_failed() && whole) {
                disarm();
                assert_true(ed_item(ed_reduce_all(ed_equal(y, whole))));
            }
            disarm();
        }
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
        cmocka_unit_test_teardown(indices_are_read_whole, end),
        cmocka_unit_test_teardown(ops_of_indices_end_early_or_whole, end),
        cmocka_unit_test_teardown(steps_happen_whole_or_not_at_all, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
