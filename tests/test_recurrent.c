/* What layers over steps do beyond one call: states that are kept, cells of one's own, both
 * directions. */
#include "tests/folders.h"
#include "eddy.h"
#include <math.h>

static ed_tensor *steps(int64_t batch, int64_t time)
{
    return ed_random_uniform(ED_SHAPE(batch, time, 3), .low = -1, .high = 1,
                             .generator = ed_generator_from_seed(5));
}

static void assert_same(ed_tensor *a, ed_tensor *b)
{
    assert_true(a && b);
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(a, b)))) < 1e-6);
}

static ed_tensor *from_to(ed_tensor *x, int64_t begin, int64_t end)
{
    return ed_slice(x, .begin = ED_INTS(0, begin), .end = ED_INTS(ed_dim(x, 0), end));
}

/* Two halves after each other are the whole; a reset begins anew; another batch is refused. */
static void states_are_kept(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *layer = ed_layer_lstm(4, .stateful = true);
    ed_layer *model = ed_layer_sequential(NULL, layer);
    ed_tensor *x = steps(2, 6), *whole = ed_forward(model, x);
    assert_true(ed_layer_reset_states(model));
    assert_same(ed_forward(model, x), whole);
    assert_true(ed_layer_reset_states(model));
    ed_forward(model, from_to(x, 0, 3));
    assert_same(ed_forward(model, from_to(x, 3, 6)), whole);
    assert_null(ed_forward(model, steps(3, 6)));
    assert_non_null(strstr(ed_error(), "ed_layer_reset_states"));
    ed_clear_error();
    assert_true(ed_layer_reset_states(model));
    assert_non_null(ed_forward(model, steps(3, 6)));
}

/* The loop over cells gives what the op for the whole sequence does. */
static void loop_is_the_op(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = steps(2, 4);
    ed_tensor *mask = ed_greater(ed_index(ed_transpose(x, .perm = ED_AXES(2, 0, 1)), 0), 0.0);
    ed_layer *op = ed_layer_gru(3, .return_sequences = true);
    ed_layer *loop = ed_layer_rnn(ed_layer_gru_cell(3), .return_sequences = true);
    ed_tensor *wanted = ed_forward(op, x, .mask = mask);
    assert_non_null(ed_forward(loop, x));
    assert_true(ed_layer_set_weights(loop, ed_layer_get_weights(op)));
    assert_same(ed_forward(loop, x, .mask = mask), wanted);
}

static bool sum_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    ed_tensor *sum = ed_add(call->inputs[0], call->inputs[1]);
    return ed_layer_return(call, sum) && ed_layer_return(call, sum);
}

static const ed_layer_class sum_class = {
    .kind.name = "sum", .min_inputs = 2, .max_inputs = 2, .forward = sum_forward};

static void cells_of_ones_own(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = steps(2, 4);
    ed_layer *rnn = ed_layer_rnn(ed_layer_new(&sum_class, NULL), .state_size = ED_INTS(3));
    assert_same(ed_forward(rnn, x), ed_reduce_sum(x, .axis = ED_AXES(1)));
    ed_layer *forth = ed_layer_rnn(ed_layer_new(&sum_class, NULL), .state_size = ED_INTS(3));
    assert_null(ed_layer_bidirectional(forth)); /* can't be made a second time */
    assert_non_null(strstr(ed_error(), "backward_layer"));
    ed_clear_error();
    ed_layer *back = ed_layer_rnn(ed_layer_new(&sum_class, NULL), .state_size = ED_INTS(3),
                                  .go_backwards = true);
    ed_layer *both = ed_layer_bidirectional(forth, .backward_layer = back, .merge_mode = "ave");
    assert_same(ed_forward(both, x), ed_reduce_sum(x, .axis = ED_AXES(1)));
}

/* One mask of dropout serves all steps of a walk. */
static void dropout_is_the_same_at_each_step(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *layer =
        ed_layer_rnn(ed_layer_simple_rnn_cell(8, .dropout = 0.5, .activation = "linear",
                                              .recurrent_initializer = ed_initializer_zeros()),
                     .return_sequences = true);
    ed_tensor *x = ed_ones(ED_SHAPE(1, 3, 16));
    ed_tensor *y = ed_forward(layer, x, .training = true);
    assert_same(from_to(y, 0, 1), from_to(y, 2, 3));
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(y, ed_forward(layer, x, .training = true))))) >
                1e-6);
}

/* With the channels first the same weights give the same numbers, in the other order. */
static void conv_lstm_channels_first(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_random_normal(ED_SHAPE(2, 3, 5, 4, 2));
    ed_layer *last = ed_layer_conv_lstm2d(3, ED_INTS(2, 3), .padding = "SAME",
                                          .return_sequences = true, .return_state = true),
             *first = ed_layer_conv_lstm2d(3, ED_INTS(2, 3), .padding = "SAME",
                                           .data_format = "channels_first",
                                           .return_sequences = true, .return_state = true);
    ed_tensor *turned = ed_transpose(x, .perm = ED_AXES(0, 1, 4, 2, 3));
    assert_non_null(ed_forward_list(first, ed_list_of(turned), NULL));
    ed_list *wanted = ed_forward_list(last, ed_list_of(x), NULL);
    assert_true(ed_layer_set_weights(first, ed_layer_get_weights(last)));
    ed_list *got = ed_forward_list(first, ed_list_of(turned), NULL);
    assert_true(got && wanted && ed_list_size(got) == 3);
    for (int i = 0; i < 3; i++) {
        ed_tensor *y = i ? ed_transpose(ed_list_get(got, i), .perm = ED_AXES(0, 2, 3, 1))
                         : ed_transpose(ed_list_get(got, i), .perm = ED_AXES(0, 1, 3, 4, 2));
        ed_tensor *off = ed_sub(y, ed_list_get(wanted, i));
        assert_true(ed_item(ed_reduce_max(ed_abs(off))) < 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_lstm_channels_first),
        cmocka_unit_test(states_are_kept),
        cmocka_unit_test(loop_is_the_op),
        cmocka_unit_test(cells_of_ones_own),
        cmocka_unit_test(dropout_is_the_same_at_each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
