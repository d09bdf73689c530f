/* Losses. ops.h says what holds for all. */
#ifndef EDDY_OPS_LOSSES_H
#define EDDY_OPS_LOSSES_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* -sum labels log_softmax(logits) along the last axis: labels and logits [..., classes], result
 * [...]. Gradients for both. */
ed_tensor *ed_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* The same for labels (int32 or int64 [...]) that name the class; a label outside 0..classes-1 is
 * an error that names it. */
ed_tensor *ed_sparse_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* max(x, 0) - x z + log(1 + e^-|x|) for logits x and labels z, element by element. Gradients for
 * both. */
ed_tensor *ed_sigmoid_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* ---- Element by element, as tf.nn has them (ops/losses.c) --------------------------------- */

/* The same with weight pos_weight on the positive part: (1 - z) x + (1 + (pos_weight - 1) z)
 * log(1 + e^-x) for logits x and labels z. */
ed_tensor *ed_weighted_cross_entropy_with_logits(ed_tensor *labels, ed_tensor *logits,
                                                 ed_tensor_like *pos_weight);

/* -y log(p + epsilon) - (1 - y) log(1 - p + epsilon) for labels y and probabilities p. */
#define ED_LOG_LOSS_OPTIONS(FIELD, T)                                                              \
    FIELD(T, FLOAT, epsilon, 1e-7, ED_AT_LEAST(0), "keeps logarithms finite")
ED_OPTIONS(ed_log_loss_options, ED_LOG_LOSS_OPTIONS);
ed_tensor *ed_log_loss_with(ed_tensor *labels, ed_tensor *predictions,
                            const ed_log_loss_options *options);

/*
 * e^c - z c for targets z and c, the logarithm of the prediction: the negative logarithm of
 * Poisson's probability but for a term of z alone. compute_full_loss adds that term by Stirling's
 * formula, z log z - z + log(2 pi z) / 2, where z is outside 0..1.
 */
#define ED_LOG_POISSON_LOSS_OPTIONS(FIELD, T)                                                      \
    FIELD(T, BOOL, compute_full_loss, false, ED_ANY, "add the term of the targets alone")
ED_OPTIONS(ed_log_poisson_loss_options, ED_LOG_POISSON_LOSS_OPTIONS);
ed_tensor *ed_log_poisson_loss_with(ed_tensor *targets, ed_tensor *log_input,
                                    const ed_log_poisson_loss_options *options);

/* Half the sum of all squares, of rank 0. */
ed_tensor *ed_l2_loss(ed_tensor *x);

/*
 * ---- Losses of many classes by a sample of them, as tf.nn has them (ops/sampled_losses.c) -------
 *
 * weights [classes, n] and biases [classes] of the classes, the true ones in labels (int64 [batch,
 * num_true]), inputs [batch, n]; the sampled classes (int64 [sampled]) and the expected counts that
 * ed_log_uniform_candidate_sampler and its like give. The result is [batch]. From all logits the
 * logarithm of the expected count is subtracted. remove_accidental_hits: a sampled class that is a
 * true one does not count. sampled_softmax_loss: cross entropy of softmax, the true classes sharing
 * the label; nce_loss: sums of sigmoid cross entropies.
 */
#define ED_SAMPLED_SOFTMAX_LOSS_OPTIONS(FIELD, T)                                                  \
    FIELD(T, BOOL, remove_accidental_hits, true, ED_ANY, "leave out sampled classes that are true")
/* Of ed_nce_loss. */
#define ED_NCE_LOSS_OPTIONS(FIELD, T)                                                              \
    FIELD(T, BOOL, remove_accidental_hits, false, ED_ANY, "leave out sampled classes that are true")
ED_OPTIONS(ed_sampled_softmax_loss_options, ED_SAMPLED_SOFTMAX_LOSS_OPTIONS);
ED_OPTIONS(ed_nce_loss_options, ED_NCE_LOSS_OPTIONS);
ed_tensor *ed_sampled_softmax_loss_with(ed_tensor *weights, ed_tensor *biases, ed_tensor *labels,
                                        ed_tensor *inputs, ed_tensor *sampled,
                                        ed_tensor *true_expected_count,
                                        ed_tensor *sampled_expected_count,
                                        const ed_sampled_softmax_loss_options *options);
ed_tensor *ed_nce_loss_with(ed_tensor *weights, ed_tensor *biases, ed_tensor *labels,
                            ed_tensor *inputs, ed_tensor *sampled, ed_tensor *true_expected_count,
                            ed_tensor *sampled_expected_count, const ed_nce_loss_options *options);

/*
 * ---- One value a sample, as tf.keras.losses' functions have them (ops/keras_losses.c) -----------
 *
 * y_true and y_pred broadcast to [..., n], n >= 0 and rank >= 1; the result is [...], a mean along
 * the last axis where nothing else is said, and gradients exist for both. d is y_pred - y_true.
 */

/* d^2 / 2 where |d| <= delta, else delta |d| - delta^2 / 2. */
#define ED_HUBER_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, FLOAT, delta, 1, ED_AT_LEAST(0), "where the parabola becomes a line")
ED_OPTIONS(ed_huber_options, ED_HUBER_OPTIONS);
ed_tensor *ed_huber_with(ed_tensor *y_true, ed_tensor *y_pred, const ed_huber_options *options);

/* log cosh d, without overflow: infinite for an infinite d of either sign. */
ed_tensor *ed_log_cosh(ed_tensor *y_true, ed_tensor *y_pred);

/* max(1 - y_true y_pred, 0), and its square. Labels are -1 or 1; where all are 0 or 1, they become
 * -1 and 1. */
ed_tensor *ed_hinge(ed_tensor *y_true, ed_tensor *y_pred);
ed_tensor *ed_squared_hinge(ed_tensor *y_true, ed_tensor *y_pred);

/* max(1 + largest of (1 - y_true) y_pred - sum of y_true y_pred, 0); labels are 0 or 1. */
ed_tensor *ed_categorical_hinge(ed_tensor *y_true, ed_tensor *y_pred);

/* Sum of y_true log(y_true / y_pred), both clipped to 1e-7..1. */
ed_tensor *ed_kl_divergence(ed_tensor *y_true, ed_tensor *y_pred);

/* y_pred - y_true log(y_pred + 1e-7). */
ed_tensor *ed_poisson(ed_tensor *y_true, ed_tensor *y_pred);

/* d^2; |d|; 100 |d| / max(|y_true|, 1e-7); the square of log(max(y_pred, 1e-7) + 1) -
 * log(max(y_true, 1e-7) + 1). */
ed_tensor *ed_mean_squared_error(ed_tensor *y_true, ed_tensor *y_pred);
ed_tensor *ed_mean_absolute_error(ed_tensor *y_true, ed_tensor *y_pred);
ed_tensor *ed_mean_absolute_percentage_error(ed_tensor *y_true, ed_tensor *y_pred);
ed_tensor *ed_mean_squared_logarithmic_error(ed_tensor *y_true, ed_tensor *y_pred);

/*
 * Which of the sampled classes, int32 or int64 [n], are true ones: for each of true_classes [batch,
 * num_true] that was sampled its row (int32), to *ids its last position among the sampled (int64),
 * and to *weights the lowest float32, by which its logit is to change. No gradient.
 */
ed_tensor *ed_compute_accidental_hits(ed_tensor *true_classes, ed_tensor *sampled_candidates,
                                      ed_tensor **ids, ed_tensor **weights);

#pragma GCC visibility pop
#endif
