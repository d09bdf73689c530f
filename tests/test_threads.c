/* The pool of threads: every piece is done once, whoever does it. */
#include "eddy.h"
#include "tensor/threads.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 200 };

typedef struct tally {
    int64_t n, grain;
    int times[MOST], wrong;
} tally;

static void count_range(int64_t first, int64_t last, int worker, void *user)
{
    tally *t = user;
    const bool whole = last - first == t->grain || last == t->n;
    if (first % t->grain || !whole || worker < 0 || worker >= threads_count())
        __atomic_add_fetch(&t->wrong, 1, __ATOMIC_RELAXED);
    for (int64_t i = first; i < last; i++) __atomic_add_fetch(&t->times[i], 1, __ATOMIC_RELAXED);
}

static void every_piece_is_done_once(void **state)
{
    (void)state;
    const int before = ed_num_threads();
    static const int64_t sizes[] = {2, 3, 5, 64, 65, MOST}, grains[] = {1, 2, 7, 64, 199};
    for (int threads = 2; threads <= 5; threads++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
                if (grains[k] >= sizes[i]) continue;
                tally t = {.n = sizes[i], .grain = grains[k]};
                assert_true(ed_set_num_threads(threads));
                threads_run(t.n, t.grain, count_range, &t);
                assert_int_equal(t.wrong, 0);
                for (int64_t e = 0; e < MOST; e++) assert_int_equal(t.times[e], e < t.n);
            }
    ed_set_num_threads(before);
}

static void stop_at_once(int64_t first, int64_t last, int worker, void *user)
{
    (void)first, (void)last, (void)worker, (void)user;
    ed_interrupt();
}

static void pieces_that_are_left_out_are_told(void **state)
{
    (void)state;
    const int before = ed_num_threads();
    const bool may = threads_may_stop(true);
    assert_true(ed_set_num_threads(3));
    threads_left_out();
    threads_run(MOST, 1, stop_at_once, NULL);
    assert_true(threads_left_out());
    ed_clear_interrupt();
    threads_run(MOST, 1, count_range, &(tally){.n = MOST, .grain = 1});
    assert_false(threads_left_out());
    threads_may_stop(may);
    ed_set_num_threads(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_done_once),
        cmocka_unit_test(pieces_that_are_left_out_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
