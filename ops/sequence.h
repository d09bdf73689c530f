/* Sequences: attention, recurrent layers' ops, alignments. ops.h says what holds for all. */
#ifndef EDDY_OPS_SEQUENCE_H
#define EDDY_OPS_SEQUENCE_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * softmax(scale query key^T + mask) value of each head, without the matrix of scores in memory.
 * query [..., heads, targets, size], key [..., heads, sources, size], value [..., heads, sources,
 * value_size], result [..., heads, targets, value_size]: PyTorch's layout. Tensors laid out as
 * jax.nn.dot_product_attention has them, [batch, length, heads, size], go in as views,
 * ed_transpose(x, .perm = ED_AXES(0, 2, 1, 3)), which copy nothing. Leading axes agree; key and
 * value may have fewer heads, each then serves as many heads of query that follow each other
 * (grouped heads).
 *
 * mask (NULL: none) broadcasts to [..., heads, targets, sources]: of bool, true where a source takes
 * part; of floats, added to the scores. A target without any source gets zeros. What is masked must
 * be finite all the same: 0 times infinity is NaN.
 *
 * *logsumexp (NULL: not wanted) gets the logarithm of the sum of the exponentials of the scores,
 * [..., heads, targets]. The gradient computes the scores again, by blocks. For higher derivatives,
 * and for the gradient of a mask of floats, it is made of public ops, scores in memory.
 */
#define ED_ATTENTION_VALUES(FIELD, T)                                                              \
    FIELD(T, FLOAT, scale, 0, ED_ANY, "of the scores; 0: 1 / sqrt(size)")                          \
    FIELD(T, BOOL, is_causal, false, ED_ANY, "target i sees sources 0 to i only")                  \
    FIELD(T, FLOAT, dropout_rate, 0, ED_FROM(0, 1), "share of the probabilities that become 0")
#define ED_ATTENTION_OPTIONS(FIELD, T)                                                             \
    ED_ATTENTION_VALUES(FIELD, T)                                                                  \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of dropout; default: the process's source")
ED_OPTIONS(ed_attention_options, ED_ATTENTION_OPTIONS);
ed_tensor *ed_scaled_dot_product_attention_with(ed_tensor *query, ed_tensor *key, ed_tensor *value,
                                                ed_tensor *mask, ed_tensor **logsumexp,
                                                const ed_attention_options *options);

/*
 * ---- Recurrent layers as whole sequences, as Keras has them (ops/recurrent.c) -------------------
 *
 * inputs [batch, time, features]; kernel [features, gates units] and recurrent_kernel [units, gates
 * units]; bias [gates units] (NULL: none); initial states [batch, units] (NULL: zeros); mask bool
 * [batch, time] (NULL: all true): where it is false the state stays, and the result is that of the
 * step before, zeros before the first. The result is that of all steps, [batch, time, units]; *h
 * and *c get the last states. All inputs are projected by one product; the gradient is one walk
 * back. For higher derivatives, where one tape records within another, the op is made of public
 * ops, step by step.
 */
#define ED_RECURRENT_OPTIONS(FIELD, T)                                                             \
    FIELD(T, BOOL, go_backwards, false, ED_ANY,                                                    \
          "begin with the last step; results are in the order of the walk")                        \
    FIELD(T, BOOL, time_major, false, ED_ANY, "inputs, result and mask are [time, batch, ...]")
ED_OPTIONS(ed_recurrent_options, ED_RECURRENT_OPTIONS);

/* Gates i, f, c, o: c = sigmoid(f) c + sigmoid(i) tanh(c'), h = sigmoid(o) tanh(c). */
ed_tensor *ed_lstm_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                        ed_tensor *bias, ed_tensor *initial_h, ed_tensor *initial_c,
                        ed_tensor *mask, ed_tensor **h, ed_tensor **c,
                        const ed_recurrent_options *options);

/*
 * Gates z, r, h: h = z h + (1 - z) n with n = tanh(x_h + r (h R_h)), the bias [2, 3 units] of
 * inputs and of states, if reset_after; else n = tanh(x_h + (r h) R_h), the bias [3 units], always
 * step by step.
 */
#define ED_GRU_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, BOOL, reset_after, true, ED_ANY, "multiply by r after the product")                   \
    ED_RECURRENT_OPTIONS(FIELD, T)
ED_OPTIONS(ed_gru_options, ED_GRU_OPTIONS);
ed_tensor *ed_gru_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                       ed_tensor *bias, ed_tensor *initial_h, ed_tensor *mask, ed_tensor **h,
                       const ed_gru_options *options);

/* h = tanh(x + h R). */
ed_tensor *ed_simple_rnn_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                              ed_tensor *bias, ed_tensor *initial_h, ed_tensor *mask, ed_tensor **h,
                              const ed_recurrent_options *options);

/* One step: inputs [batch, features], the new h; *new_c gets the new c. */
ed_tensor *ed_lstm_cell(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                        ed_tensor *bias, ed_tensor *h, ed_tensor *c, ed_tensor **new_c);
#define ED_GRU_CELL_OPTIONS(FIELD, T)                                                              \
    FIELD(T, BOOL, reset_after, true, ED_ANY, "multiply by r after the product")
ED_OPTIONS(ed_gru_cell_options, ED_GRU_CELL_OPTIONS);
ed_tensor *ed_gru_cell_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                            ed_tensor *bias, ed_tensor *h, const ed_gru_cell_options *options);

#pragma GCC visibility pop
#endif
