/*
 * A host that changes the floating-point state of its thread after the helpers have started:
 * results are those of one thread. One that traps exceptions: ops on ordinary input raise no
 * signal.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { SIZE = 1 << 21 };

/* Quotients and products, many of them denormal, none exact. */
static ed_tensor *compute(ed_tensor *x, int threads)
{
    assert_true(ed_set_num_threads(threads));
    return ed_add(ed_mul(ed_div(x, 3.0), 1e-38), ed_mul(x, 1.5e-39));
}

static void same_bits(ed_tensor *x)
{
    for (int i = 0; i < 10; i++) {
        ED_SCOPE;
        const void *one = ed_data(compute(x, 1)), *four = ed_data(compute(x, 4));
        assert_memory_equal(one, four, SIZE * sizeof(float));
    }
}

static void results_follow_the_caller(void **state)
{
    (void)state;
    ED_SCOPE;
    const int threads = ed_num_threads();
    ed_tensor *x = ed_random_uniform(ED_SHAPE(SIZE));
    same_bits(x); /* helpers are started */
    ed_tensor *nearest = compute(x, 4);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    same_bits(x);
    ed_tensor *upward = compute(x, 4);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_true(memcmp(ed_data(nearest), ed_data(upward), SIZE * sizeof(float)) != 0);
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    same_bits(x);
    _mm_setcsr(before);
#endif
    assert_memory_equal(ed_data(nearest), ed_data(compute(x, 4)), SIZE * sizeof(float));
    assert_true(ed_set_num_threads(threads));
}

static void traps_do_not_reach_ops(void **state)
{
    (void)state;
    ED_SCOPE;
    const int threads = ed_num_threads();
    const int traps = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW;
    if (feenableexcept(traps) == -1) skip();
    for (int i = 1; i <= 4; i += 3) {
        assert_true(ed_set_num_threads(i));
        ed_tensor *x = ed_random_uniform(ED_SHAPE(1 << 18), .low = 0.5, .high = 2);
        ed_tensor *few = ed_slice(x, .end = ED_SHAPE(3));
        for (int j = 0; j < 2; j++) {
            ed_tensor *v = j ? few : x;
            assert_true(ed_log(v) && ed_pow(v, 1.7) && ed_rsqrt(v) && ed_exp(v) && ed_tanh(v));
            assert_true(ed_reduce_mean(ed_softmax(v)) && ed_gelu(v) && ed_sqrt(ed_neg(v)));
        }
    }
    assert_int_equal(fegetexcept() & traps, traps);
    feclearexcept(FE_ALL_EXCEPT);
    fedisableexcept(traps);
    assert_true(ed_set_num_threads(threads));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(results_follow_the_caller, check_end),
        cmocka_unit_test_teardown(traps_do_not_reach_ops, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
