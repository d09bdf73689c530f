/*
 * Attention, recurrent layers and alignments beyond their values (which tests/test_ops.c checks):
 * targets without sources, labels that nothing can spell, lengths and labels out of range, second
 * derivatives on one tape.
 */
#include "autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include <math.h>
#include <string.h>

static double at(ed_tensor *x, int64_t i)
{
    assert_non_null(x);
    return ed_as_doubles(x)[i];
}

/* A target that sees nothing gets zeros, and nothing flows back from it. */
static void targets_without_sources(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_random_normal(ED_SHAPE(2, 3, 4)), *l;
    ed_tensor *mask = ed_cast(ed_zeros(ED_SHAPE(3, 3)), ED_BOOL);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_scaled_dot_product_attention(x, x, x, mask, &l);
    ed_tensor *dx = ed_gradient(tape, y, x);
    for (int64_t i = 0; i < 24; i++) assert_true(at(y, i) == 0 && at(dx, i) == 0);
    assert_true(at(l, 0) == -INFINITY);
}

static void losses_of_alignments(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *logits = ed_zeros(ED_SHAPE(2, 2, 2));
    ed_tensor *labels = ed_constant(ED_VALUES(int, 1, 1, 1, 1), ED_SHAPE(2, 2));
    ed_tensor *lengths = ed_constant(ED_VALUES(int, 1, 2), ED_SHAPE(2));
    ed_tensor *steps = ed_constant(ED_VALUES(int, 2, 2), ED_SHAPE(2));
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, logits);
    ed_tensor *loss = ed_ctc_loss(labels, logits, lengths, steps);
    assert_true(fabs(at(loss, 0) + log(0.75)) < 1e-6); /* three of four paths spell "1" */
    assert_true(at(loss, 1) == INFINITY);              /* "1 1" takes a blank in between */
    ed_tensor *dx = ed_gradient(tape, loss, logits);
    assert_true(fabs(at(dx, 0) - 1 / 6.0) < 1e-6 && at(dx, 2) == 0 && at(dx, 3) == 0);
    assert_null(ed_ctc_loss(labels, logits, lengths, steps, .blank_index = 1));
    assert_non_null(strstr(ed_error(), "labels[0, 0] is 1"));
    ed_clear_error();
    assert_null(ed_ctc_loss(labels, logits, lengths, ed_add(steps, 1)));
    assert_non_null(strstr(ed_error(), "logit_length[0] is 3; it must be 0 to 2"));
    ed_clear_error();
}

/* A tape within another one knows higher derivatives; one alone says that it does not. */
static void second_derivatives(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(1, 2, 2)), *k = ed_ones(ED_SHAPE(2, 4)), *h;
    ed_tape *outer = ed_tape_begin();
    ed_watch(outer, x);
    ed_tape *inner = ed_tape_begin();
    ed_watch(inner, x);
    ed_lstm(x, k, ed_ones(ED_SHAPE(1, 4)), NULL, NULL, NULL, NULL, &h, NULL);
    assert_non_null(ed_gradient(outer, ed_gradient(inner, h, x), x));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_lstm(x, k, ed_ones(ED_SHAPE(1, 4)), NULL, NULL, NULL, NULL, &h, NULL);
    assert_null(ed_gradient(tape, ed_gradient(tape, h, x), x));
    assert_non_null(strstr(ed_error(), "tape within another"));
    ed_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(targets_without_sources),
                                       cmocka_unit_test(losses_of_alignments),
                                       cmocka_unit_test(second_derivatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
