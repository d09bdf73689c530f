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
 * mask (NULL: none) broadcasts to [..., heads, targets, sources]: bool, true where a source takes
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

/*
 * ---- Alignments (ops/ctc.c, ops/ctc_decoders.c, ops/edit_distance.c) ----------------------------
 *
 * Labels are int32 or int64, and so are lengths, [batch].
 */

/*
 * The loss of connectionist temporal classification, [batch]: -log of the probability that logits
 * [time, batch, classes] spell the labels [batch, length], blanks in between and repetitions
 * joined. Where no alignment is possible it is infinite, with a gradient of zeros. Labels outside
 * 0..classes-1, blanks among them and lengths that the tensors don't have are errors.
 */
#define ED_CTC_LOSS_OPTIONS(FIELD, T)                                                              \
    FIELD(T, BOOL, logits_time_major, true, ED_ANY,                                                \
          "logits are [time, batch, classes]; else "                                               \
          "[batch, time, classes]")                                                                \
    FIELD(T, INT, blank_index, 0, ED_ANY, "class of the blank; negative: from the end")
ED_OPTIONS(ed_ctc_loss_options, ED_CTC_LOSS_OPTIONS);
ed_tensor *ed_ctc_loss_with(ed_tensor *labels, ed_tensor *logits, ed_tensor *label_length,
                            ed_tensor *logit_length, const ed_ctc_loss_options *options);

/*
 * The likeliest class of each step of inputs [time, batch, classes], without blanks and
 * repetitions: int64 [batch, time], -1 behind the end, where TensorFlow has a sparse tensor; the
 * lengths, int64 [batch]; minus the sum of the largest inputs, [batch, 1].
 */
#define ED_CTC_GREEDY_OPTIONS(FIELD, T)                                                            \
    FIELD(T, BOOL, merge_repeated, true, ED_ANY, "join classes that follow each other")            \
    FIELD(T, INT, blank_index, -1, ED_ANY, "class of the blank; negative: from the end")
ED_OPTIONS(ed_ctc_greedy_options, ED_CTC_GREEDY_OPTIONS);
ed_tensor *ed_ctc_greedy_decoder_with(ed_tensor *inputs, ed_tensor *sequence_length,
                                      ed_tensor **lengths, ed_tensor **neg_sum_logits,
                                      const ed_ctc_greedy_options *options);

/*
 * The likeliest labellings of inputs [time, batch, classes] that a search with so many beams finds,
 * the last class being the blank: int64 [top_paths, batch, time], best first, -1 behind the end;
 * their lengths, int64 [top_paths, batch]; the logarithms of their probabilities, [batch,
 * top_paths]. Fewer than top_paths there are if a step knows fewer: the rest is empty, of -inf.
 */
#define ED_CTC_BEAM_OPTIONS(FIELD, T)                                                              \
    FIELD(T, INT, beam_width, 100, ED_BETWEEN(1, 1 << 20), "labellings that are followed")         \
    FIELD(T, INT, top_paths, 1, ED_BETWEEN(1, 1 << 20),                                            \
          "labellings that are given; at most "                                                    \
          "beam_width")
ED_OPTIONS(ed_ctc_beam_options, ED_CTC_BEAM_OPTIONS);
ed_tensor *ed_ctc_beam_search_decoder_with(ed_tensor *inputs, ed_tensor *sequence_length,
                                           ed_tensor **lengths, ed_tensor **log_probability,
                                           const ed_ctc_beam_options *options);

/*
 * Levenshtein's distance of sequences of integers, hypothesis [..., n] and truth [..., m], of
 * which the lengths [...] count: float32 [...]. Normalized: divided by truth's length, infinite
 * where only that is 0. No gradient.
 */
#define ED_EDIT_DISTANCE_OPTIONS(FIELD, T)                                                         \
    FIELD(T, BOOL, normalize, true, ED_ANY, "divide by the length of truth")
ED_OPTIONS(ed_edit_distance_options, ED_EDIT_DISTANCE_OPTIONS);
ed_tensor *ed_edit_distance_with(ed_tensor *hypothesis, ed_tensor *hypothesis_length,
                                 ed_tensor *truth, ed_tensor *truth_length,
                                 const ed_edit_distance_options *options);

/* labels [batch, n] without the repetitions in the first seq_length [batch] of each row: [batch,
 * the longest], zeros behind; their lengths (int32) to *lengths. No gradient. */
ed_tensor *ed_collapse_repeated(ed_tensor *labels, ed_tensor *seq_length, ed_tensor **lengths);

#pragma GCC visibility pop
#endif
