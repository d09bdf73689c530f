/*
 * Threads that share, end early, take what is another's, change their number at work; processes
 * that fork amid all that.
 */
#include "eddy.h"
#include "tests/skip.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { THREADS = 4 };

static void run_threads(void *(*body)(void *), void *user)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, user), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* ---- Sharing --------------------------------------------------------------------------------- */

typedef struct shared {
    ed_tensor *x, *w, *product;
    ed_generator *generator;
} shared;

static void *use_shared(void *user)
{
    const shared *s = user;
    for (int i = 0; i < 20; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, s->x);
        ed_tensor *y = ed_matmul(s->x, s->w), *view = ed_transpose(s->x);
        if (!ed_item(ed_reduce_all(ed_equal(y, s->product)))) return "another product";
        if (!ed_gradient(tape, ed_reduce_sum(ed_square(y)), s->x)) return "no gradient";
        ed_retain(view);
        ed_random_normal(ED_SHAPE(100), .generator = s->generator);
        ed_random_uniform(ED_SHAPE(100));
        ed_memory_stats();
        ed_op_find("add");
        ed_reshape(view, ED_SHAPE(7)); /* each thread has its own error */
        if (!ed_failed()) return "no error";
        ed_clear_error();
        ed_release(view);
    }
    return NULL;
}

static void tensors_are_shared(void **state)
{
    (void)state;
    ED_SCOPE;
    shared s = {.x = ed_random_normal(ED_SHAPE(128, 64)),
                .w = ed_variable(ed_random_normal(ED_SHAPE(64, 128))),
                .generator = ed_generator_from_seed(1)};
    s.product = ed_matmul(s.x, s.w);
    run_threads(use_shared, &s);
}

/* The number of threads changes while products and convolutions share out their scratch. */
static void *change_number(void *user)
{
    for (int i = 0; !__atomic_load_n((bool *)user, __ATOMIC_RELAXED); i++)
        ed_set_num_threads(1 + i % 9);
    return NULL;
}

static void the_number_changes_at_work(void **state)
{
    (void)state;
    ED_SCOPE;
    int number = ed_num_threads();
    bool stop = false;
    ed_tensor *a = ed_random_normal(ED_SHAPE(300, 200)), *b = ed_random_normal(ED_SHAPE(200, 300));
    ed_tensor *image = ed_random_normal(ED_SHAPE(4, 30, 30, 8));
    ed_tensor *kernel = ed_random_normal(ED_SHAPE(3, 3, 8, 16));
    ed_tensor *product = ed_matmul(a, b), *result = ed_conv2d(image, kernel);
    pthread_t changer;
    assert_int_equal(pthread_create(&changer, NULL, change_number, &stop), 0);
    bool same = true;
    for (int i = 0; i < 60; i++) {
        ED_SCOPE;
        same &= ed_item(ed_reduce_all(ed_equal(ed_matmul(a, b), product))) == 1;
        same &= ed_item(ed_reduce_all(ed_equal(ed_conv2d(image, kernel), result))) == 1;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(changer, NULL);
    ed_set_num_threads(number);
    assert_true(same && !ed_failed());
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void *end_in_the_middle(void *user)
{
    ed_scope_open();
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *v = ed_variable(ed_ones(ED_SHAPE(10)));
    ed_scope_open();
    ed_square(v);
    ed_retain(tape); /* one too many: given back by the caller */
    *(ed_tape **)user = tape;
    ed_reshape(v, ED_SHAPE(3));
    pthread_exit(NULL);
}

static void threads_end_in_the_middle(void **state)
{
    (void)state;
    ED_SCOPE;
    int64_t before = ed_memory_stats().live_tensors;
    for (int i = 0; i < 10; i++) {
        ed_tape *tape = NULL;
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, end_in_the_middle, &tape), 0);
        pthread_join(thread, NULL);
        assert_non_null(tape);
        ed_release(tape);
    }
    assert_int_equal(ed_memory_stats().live_tensors, before);
    assert_false(ed_failed());
}

/* ---- Another's tape -------------------------------------------------------------------------- */

typedef struct foreign {
    ed_tape *tape;
    ed_tensor *x, *y;
} foreign;

static void *use_foreign(void *user)
{
    const foreign *f = user;
    ED_SCOPE;
    void *result = NULL;
    if (ed_tape_stop(f->tape) || !ed_failed()) result = "stopped another's tape";
    ed_clear_error();
    if (ed_gradient_tensor(f->tape, ed_list_of(f->y), f->x, NULL) || !ed_failed())
        result = "asked another's tape";
    ed_clear_error();
    if (ed_watch(f->tape, f->y) || !ed_failed()) result = "watched by another's tape";
    ed_clear_error();
    if (ed_tape_reset(f->tape) || !ed_failed()) result = "reset another's tape";
    ed_clear_error();
    return result;
}

static void a_recording_tape_is_its_threads(void **state)
{
    (void)state;
    ED_SCOPE;
    foreign f = {.tape = ed_tape_begin(.persistent = true), .x = ed_ones(ED_SHAPE(3))};
    ed_watch(f.tape, f.x);
    f.y = ed_square(f.x);
    run_threads(use_foreign, &f);
    assert_non_null(ed_gradient(f.tape, f.y, f.x));
    assert_false(ed_failed());
}

static void *release_foreign(void *user)
{
    ed_release(user);
    return NULL;
}

/* The last to let go of it is another thread, while its own goes on. */
static void a_recording_tape_goes_elsewhere(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_memory before = ed_memory_stats();
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_tape *tape = NULL;
        {
            ED_SCOPE;
            tape = ed_retain(ed_tape_begin(.persistent = true));
            ed_square(ed_variable(ed_ones(ED_SHAPE(3))));
        }
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, release_foreign, tape), 0);
        pthread_join(thread, NULL);
        ed_square(ed_variable(ed_ones(ED_SHAPE(3))));
        assert_false(ed_failed());
    }
    assert_int_equal(ed_memory_stats().live_tensors, before.live_tensors);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

static void *work(void *user)
{
    while (!__atomic_load_n((bool *)user, __ATOMIC_RELAXED)) {
        ED_SCOPE;
        ed_tensor *x = ed_random_normal(ED_SHAPE(200, 200));
        ed_item(ed_reduce_sum(ed_matmul(x, x)));
        ed_op_find("add");
        ed_memory_stats();
        ed_memory_trim();
    }
    return NULL;
}

/* What a child can do: everything, in new threads too. */
static int be_child(void)
{
    alarm(20);
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(300, 300));
    bool ok = ed_item(ed_index(ed_flatten(ed_matmul(x, x)), 7)) == 300;
    ok &= ed_random_uniform(ED_SHAPE(10)) && ed_op_find("mul") && ed_memory_stats().live_bytes > 0;
    ed_memory_trim();
    return ok && !ed_failed() ? 0 : 1;
}

static void forks_amid_work(void **state)
{
    (void)state;
#ifdef EDDY_SANITIZED
    skip_since("sanitizers' own locks don't survive fork");
#endif
    bool stop = false;
    pthread_t workers[3];
    for (int i = 0; i < 3; i++) pthread_create(&workers[i], NULL, work, &stop);
    int failed = 0;
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) _exit(be_child());
        int status = -1;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(workers[i], NULL);
    assert_int_equal(failed, 0);
    assert_int_equal(be_child(), 0);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_shared),
        cmocka_unit_test(the_number_changes_at_work),
        cmocka_unit_test(threads_end_in_the_middle),
        cmocka_unit_test(a_recording_tape_is_its_threads),
        cmocka_unit_test(a_recording_tape_goes_elsewhere),
        cmocka_unit_test(forks_amid_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
