/*
 * Attention, recurrent layers and alignments beyond their values (which tests/test_ops.c checks):
 * targets without sources, scores of several blocks, labels that nothing can spell, lengths and
 * labels out of range, second derivatives on one tape.
 */
#include "autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/tapes.h"
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

/* Scores of several blocks. */

typedef struct scores {
    ed_tensor *query, *key, *value, *dy;
    int64_t group; /* heads of query for one of key */
    ed_tensor *mask;
    bool causal;
    double scale;
} scores;

/* By ops on the whole matrix of scores. */
static ed_tensor *plain_attention(const scores *s)
{
    ed_tensor *key = ed_repeat(s->key, ed_integer(s->group), .axis = ED_AXES(-3));
    ed_tensor *value = ed_repeat(s->value, ed_integer(s->group), .axis = ED_AXES(-3));
    ed_tensor *x = ed_mul(ed_matmul(s->query, key, .transpose_b = true), s->scale);
    if (s->mask && ed_dtype_of(s->mask) == ED_BOOL)
        x = ed_where(s->mask, x, -INFINITY);
    else if (s->mask)
        x = ed_add(x, s->mask);
    if (s->causal) {
        ed_tensor *seen = ed_tril(ed_ones(ED_SHAPE(ed_dim(x, -2), ed_dim(x, -1))));
        x = ed_where(ed_cast(seen, ED_BOOL), x, -INFINITY);
    }
    return ed_matmul(ed_softmax(x), value);
}

static ed_tensor *attention_of(const scores *s)
{
    return ed_scaled_dot_product_attention(s->query, s->key, s->value, s->mask, NULL,
                                           .is_causal = s->causal, .scale = s->scale);
}

static void check_attention(const scores *s)
{
    ed_tensor *const x[] = {s->query, s->key, s->value};
    ed_list *of = ed_list_make(x, 3), *dx[2];
    for (int i = 0; i < 2; i++) {
        ed_tape *tape = ed_tape_begin();
        for (int k = 0; k < 3; k++) ed_watch(tape, x[k]);
        ed_tensor *y = i ? plain_attention(s) : attention_of(s);
        dx[i] = ed_gradient(tape, y, of, .output_gradients = ed_list_of(s->dy));
    }
    const double near = ed_dtype_of(s->dy) == ED_FLOAT64 ? 1e-11 : 2e-4;
    assert_close_to(attention_of(s), plain_attention(s), near);
    for (int k = 0; k < 3; k++) assert_close_to(ed_list_get(dx[0], k), ed_list_get(dx[1], k), near);
}

/* A mask for [targets, sources]: all rows see themselves or the last source; later rows nothing of
 * the first block, the rest is drawn. */
static ed_tensor *some_sources(ed_tensor *numbers)
{
    enum { LATE = 256 }; /* columns of a block */
    const int64_t t = ed_dim(numbers, 0), n = ed_dim(numbers, 1);
    ed_tensor *rows = ed_expand_dims(ed_range(0, t), 1), *columns = ed_range(0, n);
    ed_tensor *own = ed_equal(columns, ed_minimum(rows, ed_integer(n - 1)));
    ed_tensor *late = ed_logical_or(ed_less(rows, LATE), ed_greater_equal(columns, LATE));
    return ed_logical_or(ed_logical_and(ed_greater(numbers, 0), late), own);
}

static void attention_in_blocks(void **state)
{
    (void)state;
    enum { KINDS = 6 };
    static const struct {
        int64_t targets, sources, group;
        double scale;
    } shapes[] = {{150, 300, 1, 0.3}, {300, 150, 2, 0.5},   {1, 520, 1, 0.2},
                  {520, 1, 1, 0.2},   {64, 64, 3, 0.125},   {65, 257, 2, 1},
                  {129, 513, 1, 0.1}, {200, 300, 1, -0.25}, {513, 600, 1, 0.7}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 2 * KINDS; kind++) {
            ED_SCOPE;
            const int64_t t = shapes[i].targets, n = shapes[i].sources, group = shapes[i].group;
            const ed_dtype dtype = kind < KINDS ? ED_FLOAT64 : ED_FLOAT32;
            ed_tensor *numbers = ed_random_normal(ED_SHAPE(t, n), .dtype = dtype);
            const scores s = {.query = ed_random_normal(ED_SHAPE(2, group, t, 5), .dtype = dtype),
                              .key = ed_random_normal(ED_SHAPE(2, 1, n, 5), .dtype = dtype),
                              .value = ed_random_normal(ED_SHAPE(2, 1, n, 3), .dtype = dtype),
                              .dy = ed_random_normal(ED_SHAPE(2, group, t, 3), .dtype = dtype),
                              .group = group,
                              .mask = kind / 2 % 3 == 0   ? NULL
                                      : kind / 2 % 3 == 1 ? some_sources(numbers)
                                                          : numbers,
                              .causal = kind % 2,
                              .scale = shapes[i].scale};
            check_attention(&s);
            assert_false(ed_failed());
        }
}

/* Of query, key and value under dropout. Within another tape the gradient is made of public ops,
 * with what dropout keeps of the whole matrix. */
static ed_list *dropped_gradients(const scores *s, bool within)
{
    ed_list *of = ed_list_of(s->query, s->key, s->value);
    ed_tape *outer = within ? ed_tape_begin() : NULL, *tape = ed_tape_begin();
    for (int k = 0; k < 3; k++) {
        if (outer) ed_watch(outer, ed_list_get(of, k));
        ed_watch(tape, ed_list_get(of, k));
    }
    ed_set_seed(5);
    ed_tensor *y = ed_scaled_dot_product_attention(s->query, s->key, s->value, NULL, NULL,
                                                   .is_causal = s->causal, .dropout_rate = 0.3);
    ed_list *dx = ed_gradient(tape, y, of, .output_gradients = ed_list_of(s->dy));
    return dx;
}

static void dropout_in_blocks(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        ED_SCOPE;
        const scores s = {.query = ed_random_normal(ED_SHAPE(2, 300, 5), .dtype = ED_FLOAT64),
                          .key = ed_random_normal(ED_SHAPE(2, 520, 5), .dtype = ED_FLOAT64),
                          .value = ed_random_normal(ED_SHAPE(2, 520, 3), .dtype = ED_FLOAT64),
                          .dy = ed_random_normal(ED_SHAPE(2, 300, 3), .dtype = ED_FLOAT64),
                          .causal = causal};
        ed_list *by_blocks = dropped_gradients(&s, false), *by_ops = dropped_gradients(&s, true);
        for (int k = 0; k < 3; k++)
            assert_close_to(ed_list_get(by_blocks, k), ed_list_get(by_ops, k), 1e-11);
        assert_false(ed_failed());
    }
}

/* Finite masks over a whole row: all take the same part, also of the gradient. */
static void masks_of_large_numbers(void **state)
{
    (void)state;
    for (double large = 1e4; large < 1e31; large *= 1e3) {
        ED_SCOPE;
        ed_tensor *query = ed_zeros(ED_SHAPE(2, 3)), *key = ed_zeros(ED_SHAPE(300, 3));
        ed_tensor *value = ed_range(0, 300, .dtype = ED_FLOAT32),
                  *mask = ed_full(ED_SHAPE(1, 300), -large);
        value = ed_reshape(value, ED_SHAPE(300, 1));
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, value);
        ed_tensor *y = ed_scaled_dot_product_attention(query, key, value, mask, NULL);
        assert_close_to(y, ed_full(ED_SHAPE(2, 1), 149.5), 1e-6);
        assert_close_to(ed_gradient(tape, y, value), ed_full(ED_SHAPE(300, 1), 2 / 300.0), 1e-6);
    }
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_without_sources), cmocka_unit_test(attention_in_blocks),
        cmocka_unit_test(dropout_in_blocks),       cmocka_unit_test(masks_of_large_numbers),
        cmocka_unit_test(losses_of_alignments),    cmocka_unit_test(second_derivatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
