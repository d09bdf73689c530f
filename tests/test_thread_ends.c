/*
 * How threads begin and end: the first call of one without memory, tapes that outlive the thread
 * whose ops they record, and one model that several threads ask.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/skip.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static void *run_in_thread(void *(*f)(void *), void *user)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, f, user), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

/* ---- The first allocation -------------------------------------------------------------------- */

#ifndef EDDY_SANITIZED
static __thread bool refuses;
void *__libc_calloc(size_t n, size_t size);

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    return refuses ? NULL : __libc_calloc(n, size);
}

static bool goes;

static void note(void *data, void *user)
{
    (void)data;
    (void)user;
    goes = true;
}

/* The scope that was opened without memory is closed, with what came when memory was back; nothing
 * of it is left to the thread's end. */
static void *begin_without_memory(void *unused)
{
    (void)unused;
    static float data[2];
    refuses = true;
    ed_scope outer = ed_scope_open(), inner = ed_scope_open();
    ed_tensor *none = ed_ones(ED_SHAPE(2));
    ed_scope_close(&inner);
    refuses = false;
    if (none) return "a tensor without memory";
    if (!ed_failed()) return "no error";
    if (ed_error_kind() != ED_OUT_OF_MEMORY) return (void *)ed_error();
    if (ed_failed()) ed_clear_error();
    if (!ed_wrap(ED_FLOAT32, data, ED_SHAPE(2), note, NULL) || ed_failed())
        return (void *)ed_error();
    ed_scope_close(&outer);
    return goes ? NULL : "the scope was not closed";
}

/* Nothing but ed_failed is asked, when memory is back. */
static void *ask_without_memory(void *unused)
{
    (void)unused;
    refuses = true;
    ed_scope scope = ed_scope_open();
    refuses = false;
    const bool failed = ed_failed();
    ed_scope_close(&scope);
    return failed ? NULL : "the error is lost";
}
#endif

static void threads_that_begin_without_memory(void **state)
{
    (void)state;
#ifdef EDDY_SANITIZED
    skip_since("sanitized: calloc is the sanitizer's");
#else
    for (int i = 0; i < 3; i++) {
        goes = false;
        const char *wrong = run_in_thread(begin_without_memory, NULL);
        if (wrong) fail_msg("%s", wrong);
        wrong = run_in_thread(ask_without_memory, NULL);
        if (wrong) fail_msg("%s", wrong);
    }
#endif
}

/* ---- Tapes ----------------------------------------------------------------------------------- */

/* Records, and is kept by nobody but the caller. */
static void *begin_tape(void *unused)
{
    (void)unused;
    ed_tensor *x = ed_ones(ED_SHAPE(100));
    ed_tape *tape = ed_retain(ed_tape_begin());
    ed_watch(tape, x);
    ed_square(x);
    return tape;
}

/* A thread that may have the address of the one that has ended. */
static void *stop_tape(void *tape)
{
    ed_ones(ED_SHAPE(1));
    const bool stopped = ed_tape_stop(tape);
    const bool refused = ed_failed() && strstr(ed_error(), "in another thread");
    ed_clear_error();
    return !stopped && refused ? tape : NULL;
}

static void tapes_of_ended_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        ed_tape *tape = run_in_thread(begin_tape, NULL);
        assert_ptr_equal(run_in_thread(stop_tape, tape), tape);
        ed_release(tape);
    }
}

typedef struct recording {
    ed_tape *tape;
    sem_t begun, released;
} recording;

static void *record_until_released(void *user)
{
    recording *r = user;
    r->tape = begin_tape(NULL);
    sem_post(&r->begun);
    sem_wait(&r->released);
    return NULL; /* without another op */
}

static void tapes_released_elsewhere(void **state)
{
    (void)state;
    recording r;
    pthread_t thread;
    sem_init(&r.begun, 0, 0);
    sem_init(&r.released, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, record_until_released, &r), 0);
    sem_wait(&r.begun);
    ed_release(r.tape);
    sem_post(&r.released);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- One model ------------------------------------------------------------------------------- */

enum { ASKERS = 4, ROUNDS = 200 };

typedef struct question {
    ed_layer *model;
    pthread_barrier_t *barrier;
} question;

static void *ask(void *user)
{
    const question *q = user;
    ED_SCOPE;
    pthread_barrier_wait(q->barrier);
    ed_list *trainable = ed_layer_trainable_variables(q->model),
            *all = ed_layer_variables(q->model);
    ed_list *rest = ed_layer_non_trainable_variables(q->model);
    ed_tensor *y = ed_forward(q->model, ed_ones(ED_SHAPE(1, 3)));
    return ed_list_size(trainable) == 4 && ed_list_size(all) == 6 && ed_list_size(rest) == 2 && y
               ? user
               : NULL;
}

static void one_model_is_asked_by_several(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, ASKERS);
    for (int round = 0; round < ROUNDS; round++) {
        ED_SCOPE;
        ed_layer *model =
            ed_layer_sequential("m", ed_layer_dense(2), ed_layer_batch_normalization());
        ed_forward(model, ed_ones(ED_SHAPE(1, 3)));
        question q = {model, &barrier};
        pthread_t threads[ASKERS];
        void *ok;
        for (int i = 0; i < ASKERS; i++) pthread_create(&threads[i], NULL, ask, &q);
        for (int i = 0; i < ASKERS; i++) {
            pthread_join(threads[i], &ok);
            assert_non_null(ok);
        }
    }
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_teardown(test, check_end)
    const struct CMUnitTest tests[] = {
        TEST(threads_that_begin_without_memory),
        TEST(tapes_of_ended_threads),
        TEST(tapes_released_elsewhere),
        TEST(one_model_is_asked_by_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
