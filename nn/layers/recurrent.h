/*
 * Layers: sequences, [batch, time, ...].
 *
 * A recurrent layer walks over the steps of its first input; further inputs are the states to begin
 * with, zeros if there are none: ed_forward(lstm, ed_list_of(x, h, c)). Its result is the output of
 * the last step, [batch, units], or with return_sequences that of all, [batch, time, units]; with
 * return_state the last states follow as further outputs. A mask, bool [batch, time], skips steps:
 * where it is false the states stay and the output is that of the step before. Gradients reach the
 * weights, the input and the states.
 */
#ifndef EDDY_NN_LAYERS_RECURRENT_H
#define EDDY_NN_LAYERS_RECURRENT_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* Options of layers that walk over steps. */
#define ED_LAYER_WALK(FIELD, T)                                                                    \
    FIELD(T, BOOL, return_sequences, false, ED_ANY, "all steps' outputs; else the last one's")     \
    FIELD(T, BOOL, return_state, false, ED_ANY, "the last states are further outputs")             \
    FIELD(T, BOOL, go_backwards, false, ED_ANY,                                                    \
          "begin with the last step; outputs are in the order of the walk")                        \
    FIELD(T, BOOL, stateful, false, ED_ANY,                                                        \
          "the next call begins with this one's last states; see ed_layer_reset_states")           \
    FIELD(T, BOOL, unroll, false, ED_ANY, "no effect: every walk is a loop of calls")              \
    FIELD(T, BOOL, zero_output_for_mask, false, ED_ANY, "outputs of steps that are skipped are 0")

/* Options of cells that have weights; of those without default activation. */
#define ED_LAYER_RECURRENT(FIELD, T)                                                               \
    FIELD(T, INITIALIZER, recurrent_initializer, NULL, ED_OTHERWISE("orthogonal"),                 \
          "of recurrent_kernel")                                                                   \
    FIELD(T, REGULARIZER, recurrent_regularizer, NULL, ED_ANY, "of recurrent_kernel")              \
    FIELD(T, CONSTRAINT, recurrent_constraint, NULL, ED_ANY, "of recurrent_kernel")
#define ED_LAYER_CELL_DROPOUT(FIELD, T)                                                            \
    FIELD(T, FLOAT, dropout, 0, ED_FROM(0, 1), "share of the inputs that become 0")                \
    FIELD(T, FLOAT, recurrent_dropout, 0, ED_FROM(0, 1), "share of the states that become 0")      \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of dropout; default: the process's")

/*
 * ---- Cells: one step ----------------------------------------------------------------------------
 *
 * A cell takes x [batch, in] and its states, and gives the output and the new states; called with x
 * alone it begins with zeros: ed_forward(cell, ed_list_of(x, h)) gives a list of two. Weights:
 * kernel [in, gates units], recurrent_kernel [units, gates units], bias [gates units]. With
 * .training = true, dropout multiplies input or state by one mask, the same for all steps of a
 * walk.
 */

/* h = activation(x kernel + h recurrent_kernel + bias): (x, h) -> (h, h). */
#define ED_LAYER_SIMPLE_RNN_CELL_OPTIONS(FIELD, T)                                                 \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of output and state")                            \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of the result, by name")                     \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, simple_rnn_cell, ED_LAYER_SIMPLE_RNN_CELL_OPTIONS, units);

/* Gates i, f, c, o: c = f c + i activation(c'), h = o activation(c), i, f and o after
 * recurrent_activation: (x, h, c) -> (h, h, c). */
#define ED_LAYER_LSTM_CELL_OPTIONS(FIELD, T)                                                       \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of output and states")                           \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of c' and c, by name")                       \
    FIELD(T, ACTIVATION, recurrent_activation, "sigmoid", ED_ANY, "of the gates, by name")         \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    FIELD(T, BOOL, unit_forget_bias, true, ED_ANY, "the bias of f begins with 1")                  \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, lstm_cell, ED_LAYER_LSTM_CELL_OPTIONS, units);

/* Gates z, r, h: h = z h + (1 - z) n, n = activation(x_h + r (h R_h + b)) with a bias [2, 3 units]
 * of inputs and of states, or without reset_after n = activation(x_h + (r h) R_h) with [3 units]:
 * (x, h) -> (h, h). */
#define ED_LAYER_GRU_CELL_OPTIONS(FIELD, T)                                                        \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of output and state")                            \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of n, by name")                              \
    FIELD(T, ACTIVATION, recurrent_activation, "sigmoid", ED_ANY, "of z and r, by name")           \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    FIELD(T, BOOL, reset_after, true, ED_ANY, "multiply by r after the product")                   \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, gru_cell, ED_LAYER_GRU_CELL_OPTIONS, units);

/* Cells on top of each other, as one: the output of one is the input of the next; the states are
 * those of the first cell, of the second, ... A cell of another kind has as many states as its
 * class takes inputs beyond the first, one if it takes any number. */
#define ED_LAYER_STACKED_RNN_CELLS_OPTIONS(FIELD, T)                                               \
    FIELD(T, LAYERS, cells, ED_NO_LIST, ED_ANY, "from the input to the output")                    \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, stacked_rnn_cells, ED_LAYER_STACKED_RNN_CELLS_OPTIONS, cells);

/*
 * ---- Recurrent layers ---------------------------------------------------------------------------
 *
 * The child "cell" is the cell above and has the weights. With the default activations and without
 * recurrent_dropout the whole sequence is one op, ed_simple_rnn, ed_lstm or ed_gru.
 */

/* A walk of the cell simple_rnn_cell. activity_regularizer has no effect, as in Keras. */
#define ED_LAYER_SIMPLE_RNN_OPTIONS(FIELD, T)                                                      \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of output and state")                            \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of the result, by name")                     \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    ED_LAYER_WALK(FIELD, T)                                                                        \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, simple_rnn, ED_LAYER_SIMPLE_RNN_OPTIONS, units);

/* A walk of the cell lstm_cell. */
#define ED_LAYER_LSTM_OPTIONS(FIELD, T)                                                            \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of output and states")                           \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of c' and c, by name")                       \
    FIELD(T, ACTIVATION, recurrent_activation, "sigmoid", ED_ANY, "of the gates, by name")         \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    FIELD(T, BOOL, unit_forget_bias, true, ED_ANY, "the bias of f begins with 1")                  \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    ED_LAYER_WALK(FIELD, T)                                                                        \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, lstm, ED_LAYER_LSTM_OPTIONS, units);

/* A walk of the cell gru_cell. */
#define ED_LAYER_GRU_OPTIONS(FIELD, T)                                                             \
    FIELD(T, INT, units, 0, ED_AT_LEAST(1), "size of output and state")                            \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of n, by name")                              \
    FIELD(T, ACTIVATION, recurrent_activation, "sigmoid", ED_ANY, "of z and r, by name")           \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    FIELD(T, BOOL, reset_after, true, ED_ANY, "multiply by r after the product")                   \
    ED_LAYER_WALK(FIELD, T)                                                                        \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, gru, ED_LAYER_GRU_OPTIONS, units);

/*
 * A walk by any cell, a child of this layer: one of the cells above, or a layer of one's own that
 * takes x and its states and gives the output and the new states. Such a cell is called with x
 * alone at the first step, unless state_size says how large its states are: ED_INTS(16) means one
 * state, zeros [batch, 16].
 */
#define ED_LAYER_RNN_OPTIONS(FIELD, T)                                                             \
    FIELD(T, LAYER, cell, NULL, ED_ANY, "what is called at each step")                             \
    FIELD(T, INTS, state_size, ED_NO_LIST, ED_AT_LEAST(1),                                         \
          "of each state to begin with; default: the cell is called without states")               \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_WALK(FIELD, T)                                                                        \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, rnn, ED_LAYER_RNN_OPTIONS, cell);

/*
 * A recurrent layer forwards and another one of its kind backwards, the results joined: children
 * forward_layer and backward_layer, made anew from the options of `layer`. The backward results are
 * turned round in time, so that each step has both. If backward_layer is given, which goes
 * backwards, the two layers are the children. Of initial states the first half is the forward
 * layer's. With merge_mode "none" both results are outputs.
 */
#define ED_LAYER_BIDIRECTIONAL_OPTIONS(FIELD, T)                                                   \
    FIELD(T, LAYER, layer, NULL, ED_ANY, "a recurrent layer")                                      \
    FIELD(T, CHOICE, merge_mode, "concat", ED_ONE_OF("sum", "mul", "concat", "ave", "none"),       \
          "how the results are joined")                                                            \
    FIELD(T, LAYER, backward_layer, NULL, ED_ANY, "default: as layer, backwards")                  \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, bidirectional, ED_LAYER_BIDIRECTIONAL_OPTIONS, layer);

/* Calls a layer, the only child, for each step [batch, ...] of x [batch, time, ...]; the outputs
 * lie along the second axis. The layer gets the mask of its step. */
#define ED_LAYER_TIME_DISTRIBUTED_OPTIONS(FIELD, T)                                                \
    FIELD(T, LAYER, layer, NULL, ED_ANY, "what is called at each step")                            \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, time_distributed, ED_LAYER_TIME_DISTRIBUTED_OPTIONS, layer);

/* Begins anew: the stateful layers among this one and all below it forget their states. */
bool ed_layer_reset_states(ed_layer *layer);

/*
 * ---- Convolutional LSTM -------------------------------------------------------------------------
 *
 * lstm with convolutions in place of products: [batch, time, ...spatial, channels] to [batch,
 * ...spatial', filters], or with return_sequences [batch, time, ...]. Weights of the child "cell":
 * kernel [...kernel_size, channels, 4 filters], recurrent_kernel [...kernel_size, filters, 4
 * filters], bias [4 filters]. The convolution of the states keeps their size.
 */
#define ED_LAYER_CONV_LSTM(FIELD, T)                                                               \
    FIELD(T, INT, filters, 0, ED_AT_LEAST(1), "number of output channels")                         \
    FIELD(T, INTS, kernel_size, ED_NO_LIST, ED_AT_LEAST(1), "one for each axis, or one for all")   \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "likewise, of the input; default: 1")      \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "of the input's convolution")   \
    FIELD(T, CHOICE, data_format, "channels_last", ED_ONE_OF("channels_last", "channels_first"),   \
          "where the axis of the channels is")                                                     \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_AT_LEAST(1), "of the input's; default: 1")            \
    FIELD(T, ACTIVATION, activation, "tanh", ED_ANY, "of c' and c, by name")                       \
    FIELD(T, ACTIVATION, recurrent_activation, "sigmoid", ED_ANY, "of the gates, by name")         \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_RECURRENT(FIELD, T)                                                                   \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    FIELD(T, BOOL, unit_forget_bias, true, ED_ANY, "the bias of f begins with 1")                  \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_CELL_DROPOUT(FIELD, T)                                                                \
    ED_LAYER_WALK(FIELD, T)                                                                        \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_CONV_LSTM1D_OPTIONS(FIELD, T) ED_LAYER_CONV_LSTM(FIELD, T)
ED_KIND(layer, conv_lstm1d, ED_LAYER_CONV_LSTM1D_OPTIONS, filters, kernel_size);
#define ED_LAYER_CONV_LSTM2D_OPTIONS(FIELD, T) ED_LAYER_CONV_LSTM(FIELD, T)
ED_KIND(layer, conv_lstm2d, ED_LAYER_CONV_LSTM2D_OPTIONS, filters, kernel_size);
#define ED_LAYER_CONV_LSTM3D_OPTIONS(FIELD, T) ED_LAYER_CONV_LSTM(FIELD, T)
ED_KIND(layer, conv_lstm3d, ED_LAYER_CONV_LSTM3D_OPTIONS, filters, kernel_size);

#pragma GCC visibility pop
#endif
