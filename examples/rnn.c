/*
 * A layer of one's own with two inputs and two outputs: a recurrent cell learns to add binary
 * numbers. It gets a pair of bits at each step, the lowest first, and what it has to keep in its
 * state is the carry. It is trained on numbers of 8 bits, and then adds numbers of 64 bits.
 */
#include <eddy.h>

enum { UNITS = 16, BATCH = 64, STEPS = 300 };

/* Its weights, and the layer that makes its output. */
typedef struct cell {
    ed_tensor *kernel, *recurrent_kernel, *bias;
    ed_layer *output;
} cell;

static bool cell_init(ed_layer *layer)
{
    cell *c = ed_layer_state(layer);
    c->output = ed_layer_add_child(layer, ed_layer_dense(1, .name = "output"));
    return c->output;
}

/* x [batch, in], state [batch, units] */
static bool cell_build(ed_layer *layer, const ed_layer_call *call)
{
    cell *c = ed_layer_state(layer);
    int64_t in = ed_dim(call->inputs[0], -1), units = ed_dim(call->inputs[1], -1);
    c->kernel = ed_layer_add_weight(layer, "kernel", ED_SHAPE(in, units));
    c->recurrent_kernel = ed_layer_add_weight(layer, "recurrent_kernel", ED_SHAPE(units, units));
    c->bias =
        ed_layer_add_weight(layer, "bias", ED_SHAPE(units), .initializer = ed_initializer_zeros());
    return c->kernel && c->recurrent_kernel && c->bias;
}

/* (x, state) -> (output [batch, 1], new state [batch, units]) */
static bool cell_forward(ed_layer *layer, ed_layer_call *call)
{
    const cell *c = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0], *state = call->inputs[1];
    state = ed_tanh(
        ed_add(ed_linear(x, c->kernel, c->bias, NULL), ed_matmul(state, c->recurrent_kernel)));
    return ed_layer_return(call, ed_forward(c->output, state)) && ed_layer_return(call, state);
}

static const ed_layer_class cell_class = {.kind.name = "cell",
                                          .state_size = sizeof(cell),
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .init = cell_init,
                                          .build = cell_build,
                                          .forward = cell_forward};

/* The cell adds pairs of random numbers of so many bits: the loss, and the share of right sums. */
static ed_tensor *add(ed_layer *model, int bits, int pairs, ed_tensor **right)
{
    ed_tensor *pair_bits = ed_round(ed_random_uniform(ED_SHAPE(bits, pairs, 2)));
    ed_tensor *state = ed_zeros(ED_SHAPE(pairs, UNITS)), *carry = ed_zeros(ED_SHAPE(pairs, 1));
    ed_tensor *loss = ed_scalar(0.0), *all_right = ed_ones(ED_SHAPE(pairs, 1), .dtype = ED_BOOL);
    for (int i = 0; i < bits; i++) {
        ed_tensor *x = ed_index(pair_bits, i);
        ed_tensor *sum = ed_add(ed_reduce_sum(x, .axis = ED_AXES(-1), .keepdims = true), carry);
        ed_tensor *bit = ed_floor_mod(sum, 2);
        carry = ed_floor_div(sum, 2);

        ed_list *outputs = ed_forward(model, ed_list_of(x, state));
        ed_tensor *logit = ed_list_get(outputs, 0);
        state = ed_list_get(outputs, 1);
        loss = ed_add(loss, ed_reduce_mean(ed_sigmoid_cross_entropy(bit, logit)));
        all_right = ed_logical_and(all_right, ed_equal(ed_greater(logit, 0), ed_greater(bit, 0)));
    }
    *right = ed_reduce_mean(ed_cast(all_right, ED_FLOAT32));
    return ed_div(loss, bits);
}

int main(void)
{
    ed_set_seed(1);
    ed_layer *model = ed_layer_new(&cell_class, NULL);
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.01, .global_clipnorm = 1);
    for (int step = 1; step <= STEPS && !ed_failed(); step++) {
        ED_SCOPE;
        ed_tensor *right;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = add(model, 8, BATCH, &right);
        ed_minimize(adam, tape, loss, model);
        if (step % (STEPS / 5) == 0)
            printf("step %d: loss %.3f, right sums %.0f %%\n", step, ed_item(loss),
                   100 * ed_item(right));
    }
    ed_tensor *right;
    add(model, 64, 1000, &right);
    if (ed_failed()) return fprintf(stderr, "rnn: %s\n", ed_error()), 1;
    printf("right sums of numbers of 64 bits: %.1f %%\n", 100 * ed_item(right));
    return 0;
}
