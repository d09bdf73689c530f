/*
 * layer_norm, rms_norm, group_norm and instance_norm beyond the small samples of tests/test_ops.c:
 * rows of all lengths, many rows, every instruction set, numbers of threads, no elements.
 */
#include "autodiff/autodiff.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>

enum { LAYER, RMS, GROUP, INSTANCE, INSTANCE_FIRST, NORMS };

static ed_tensor *numbers(ed_dtype dtype, ed_ints shape)
{
    static uint32_t seed = 1;
    ed_tensor *x = scope_give(tensor_new(dtype, (int)shape.count, shape.values));
    for (int64_t i = 0; i < x->size; i++) {
        seed = seed * 1664525u + 1013904223u;
        dtype_store(dtype, x->data, i, 1 + (seed >> 8) * 0x1p-23);
    }
    return x;
}

static ed_tensor *normalized(int norm, ed_tensor *x, ed_tensor *gamma, ed_tensor *beta)
{
    switch (norm) {
    case LAYER: return ed_layer_norm(x, gamma, beta);
    case RMS: return ed_rms_norm(x, gamma);
    case GROUP: return ed_group_norm(x, gamma, beta, .groups = 2);
    case INSTANCE: return ed_instance_norm(x, gamma, beta);
    default: return ed_instance_norm(x, gamma, beta, .axis = 1);
    }
}

/* y, dx, dgamma and, but for rms_norm, dbeta; how many. gamma and beta may be NULL. */
static int all_of(int norm, ed_tensor *x, ed_tensor *gamma, ed_tensor *beta, ed_tensor **to)
{
    const int n = !gamma ? 1 : norm == RMS || !beta ? 2 : 3;
    ed_tensor *sources[] = {x, gamma, beta};
    ed_tape *tape = ed_tape_begin();
    for (int i = 0; i < n; i++) ed_watch(tape, sources[i]);
    to[0] = normalized(norm, x, gamma, beta);
    ed_tensor *dy = ed_sin(ed_mul(x, 3));
    ed_list *d =
        ed_gradient(tape, to[0], ed_list_make(sources, n), .output_gradients = ed_list_of(dy));
    for (int i = 0; i < n; i++) to[i + 1] = ed_list_get(d, i);
    return n + 1;
}

static void assert_near(ed_tensor *a, ed_tensor *b, double bound)
{
    assert_false(ed_failed());
    assert_int_equal(ed_size(a), ed_size(b));
    const double *x = ed_as_doubles(a), *y = ed_as_doubles(b);
    for (int64_t i = 0; i < ed_size(a); i++)
        if (!(fabs(x[i] - y[i]) <= bound * (1 + fabs(y[i]))))
            fail_msg("element %d: %g, %g", (int)i, x[i], y[i]);
}

/* float32 against float64, whose vectors have half as many lanes. */
static void assert_norm(int norm, ed_ints shape, int operands)
{
    ED_SCOPE;
    const int64_t channels = shape.values[norm == INSTANCE_FIRST ? 1 : shape.count - 1];
    ed_tensor *x = numbers(ED_FLOAT32, shape), *gamma = numbers(ED_FLOAT32, ED_SHAPE(channels)),
              *beta = numbers(ED_FLOAT32, ED_SHAPE(channels)), *narrow[4], *wide[4];
    if (operands < 3) beta = NULL;
    if (operands < 2) gamma = NULL;
    const int n = all_of(norm, x, gamma, beta, narrow);
    all_of(norm, ed_cast(x, ED_FLOAT64), gamma ? ed_cast(gamma, ED_FLOAT64) : NULL,
           beta ? ed_cast(beta, ED_FLOAT64) : NULL, wide);
    for (int i = 0; i < n; i++) assert_near(narrow[i], wide[i], 2e-4);
}

static void rows_of_all_lengths(void **state)
{
    (void)state;
    const int best = isa_level;
    for (int level = 0; level <= isa_best(); level++) {
        isa_set(level);
        for (int64_t n = 1; n < 5000; n += n < 70 ? 1 : n < 400 ? 29 : 1531)
            for (int norm = LAYER; norm <= RMS; norm++)
                assert_norm(norm, ED_SHAPE(7, n), 1 + (int)n % 3);
    }
    isa_set(best);
}

static void groups_of_all_widths(void **state)
{
    (void)state;
    const int best = isa_level;
    for (int level = 0; level <= isa_best(); level++) {
        isa_set(level);
        for (int64_t n = 2; n < 300; n += n < 40 ? 2 : 34)
            for (int norm = GROUP; norm < NORMS; norm++) {
                assert_norm(norm, ED_SHAPE(3, 5, n), 1 + (int)n / 2 % 3);
                assert_norm(norm, ED_SHAPE(2, n, 6), 1 + (int)n / 2 % 3);
            }
    }
    isa_set(best);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    const int before = ed_num_threads();
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(1031, 70)), *first[4], *now[4];
    ed_tensor *gamma = numbers(ED_FLOAT32, ED_SHAPE(70)), *beta = numbers(ED_FLOAT32, ED_SHAPE(70));
    for (int norm = 0; norm < NORMS; norm++)
        for (int threads = 1; threads <= 3; threads++) {
            ed_set_num_threads(threads);
            ed_tensor *seen = norm < GROUP ? x : ed_reshape(x, ED_SHAPE(1031, 70, 1));
            if (norm == GROUP || norm == INSTANCE) seen = ed_reshape(x, ED_SHAPE(1031, 1, 70));
            const int n = all_of(norm, seen, gamma, beta, now);
            if (threads == 1) memcpy(first, now, sizeof now);
            for (int i = 0; i < n; i++) assert_same_tensor(first[i], now[i]);
        }
    ed_set_num_threads(before);
}

/* Rows that are prefetched and written past the caches have the bits of the same ones among few. */
static void many_rows_have_the_same_bits(void **state)
{
    (void)state;
    enum { ROWS = 8300, FEW = 5 };
    static const int64_t firsts[] = {0, 4001, ROWS - FEW};
    const int best = isa_level, before = ed_num_threads();
    for (int level = 0; level <= isa_best(); level++)
        for (int norm = LAYER; norm <= RMS; norm++) {
            ED_SCOPE;
            isa_set(level);
            ed_set_num_threads(1 + level % 3);
            ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(ROWS, 512)), *all[4], *few[4];
            ed_tensor *gamma = numbers(ED_FLOAT32, ED_SHAPE(512)), *beta = ed_square(gamma);
            all_of(norm, x, gamma, beta, all);
            for (int i = 0; i < 3; i++) {
                const ed_ints begin = ED_INTS(firsts[i]), end = ED_INTS(firsts[i] + FEW);
                ed_tensor *some = ed_contiguous(ed_slice(x, .begin = begin, .end = end));
                all_of(norm, some, gamma, beta, few);
                for (int k = 0; k < 2; k++) /* y and dx */
                    assert_same_tensor(ed_contiguous(ed_slice(all[k], .begin = begin, .end = end)),
                                       few[k]);
            }
        }
    ed_set_num_threads(before);
    isa_set(best);
}

static void without_elements(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *gamma = ed_ones(ED_SHAPE(4)), *all[4];
    for (int norm = 0; norm < NORMS; norm++) {
        ed_tensor *x = ed_zeros(norm < GROUP ? ED_SHAPE(0, 4) : ED_SHAPE(0, 4, 4));
        const int n = all_of(norm, x, gamma, gamma, all);
        assert_int_equal(ed_size(all[0]), 0);
        for (int i = 2; i < n; i++) assert_near(all[i], ed_zeros(ED_SHAPE(4)), 0);
    }
    assert_int_equal(ed_size(ed_layer_norm(ed_zeros(ED_SHAPE(3, 0)), NULL, NULL)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_lengths),    cmocka_unit_test(groups_of_all_widths),
        cmocka_unit_test(threads_change_nothing), cmocka_unit_test(many_rows_have_the_same_bits),
        cmocka_unit_test(without_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
