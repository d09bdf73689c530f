/*
 * Losses, as in Keras (nn/losses/).
 *
 *     ed_loss *loss = ed_loss_sparse_categorical_crossentropy(.from_logits = true);
 *     ed_tensor *value = ed_loss_compute(loss, labels, ed_forward(model, x, .training = true));
 *
 * y_true is what is wanted, y_pred (float32 or float64) what the model gives. A loss has a value
 * for each sample: where nothing else is said, y_true and y_pred have one shape [..., n], and the
 * values, [...], are means along the last axis. y_true is cast to the dtype of y_pred; [batch]
 * meets [batch, 1], which Keras squeezes; other shapes are never broadcast. Gradients exist for
 * y_pred and for a y_true of its dtype.
 */
#ifndef EDDY_NN_LOSSES_H
#define EDDY_NN_LOSSES_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A function of what is wanted and what is given. */
typedef struct ed_loss ed_loss;

/* Options of ed_loss_compute; NULL: not given. */
typedef struct ed_loss_compute_options {
    ed_tensor *sample_weight; /* factors of the values, of their shape, of the same rank with sizes
                               * of 1, or a scalar */
    ed_tensor *mask;          /* of the values' shape: bool, false where a sample does not count */
} ed_loss_compute_options;

/*
 * The loss: the samples' values, times their weights, reduced to a scalar as the option `reduction`
 * says; with "none" the values themselves:
 *
 *     ed_loss_compute(loss, y_true, y_pred, .sample_weight = w)
 *
 * A mask takes values out, and the mean is that of the others. Fails for shapes that do not fit and
 * labels out of range. Of no sample at all the loss is 0.
 */
ed_tensor *ed_loss_compute_with(ed_loss *loss, ed_tensor *y_true, ed_tensor *y_pred,
                                const ed_loss_compute_options *options);
#define ed_loss_compute(loss, y_true, y_pred, ...)                                                 \
    ed_loss_compute_with(loss, y_true, y_pred,                                                     \
                         ED_GIVEN_(ed_loss_compute_options, __VA_ARGS__)                           \
                             ED_OPTIONAL_(0, ##__VA_ARGS__))

/* The samples' values, without weights and reduction. */
ed_tensor *ed_loss_values(ed_loss *loss, ed_tensor *y_true, ed_tensor *y_pred);

/* Its name: the option's, or else the kind's. Valid as long as the loss. */
const char *ed_loss_name(const ed_loss *loss);

/* The options of all losses. */
#define ED_LOSS_COMMON(FIELD, T)                                                                   \
    FIELD(T, CHOICE, reduction, "sum_over_batch_size",                                             \
          ED_ONE_OF("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none"),      \
          "sum_over_batch_size and mean: the sum of the values divided by their number; "          \
          "mean_with_sample_weight: by the sum of their weights")                                  \
    FIELD(T, STRING, name, NULL, ED_ANY, "used in messages; default: the kind's")

/* What a loss of one's own computes of y_true and y_pred, as they were given: the samples' values;
 * NULL with an error on failure. */
typedef ed_tensor *(*ed_loss_function)(void *user, ed_tensor *y_true, ed_tensor *y_pred);

/* Options of ed_loss_from. */
#define ED_LOSS_FROM_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_OPTIONS(ed_loss_from_options, ED_LOSS_FROM_OPTIONS);

/* A loss by a function of `user`, y_true and y_pred. `destroy`, if not NULL, is called with `user`
 * when the loss is no more. */
ed_loss *ed_loss_from_with(ed_loss_function function, void *user, void (*destroy)(void *user),
                           const ed_loss_from_options *options);
#define ed_loss_from(name_, function, user, ...)                                                   \
    ED_WITH_OPTIONS(ed_loss_from_with(function, user, NULL, &ed_options_), ED_LOSS_FROM_OPTIONS,   \
                    ed_loss_from_options, .name = name_, ##__VA_ARGS__)

/* ---- Errors (nn/losses/errors.c); d is y_pred - y_true --------------------------------------- */

/* Mean of d^2. */
#define ED_LOSS_MEAN_SQUARED_ERROR_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, mean_squared_error, ED_LOSS_MEAN_SQUARED_ERROR_OPTIONS);

/* Mean of |d|. */
#define ED_LOSS_MEAN_ABSOLUTE_ERROR_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, mean_absolute_error, ED_LOSS_MEAN_ABSOLUTE_ERROR_OPTIONS);

/* Mean of 100 |d| / max(|y_true|, 1e-7). */
#define ED_LOSS_MEAN_ABSOLUTE_PERCENTAGE_ERROR_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, mean_absolute_percentage_error, ED_LOSS_MEAN_ABSOLUTE_PERCENTAGE_ERROR_OPTIONS);

/* Mean of (log(y_pred + 1) - log(y_true + 1))^2, both at least 1e-7. */
#define ED_LOSS_MEAN_SQUARED_LOGARITHMIC_ERROR_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, mean_squared_logarithmic_error, ED_LOSS_MEAN_SQUARED_LOGARITHMIC_ERROR_OPTIONS);

/* Minus the cosine of the angle between y_true and y_pred, -1 to 1, along an axis: their scalar
 * product once both have length 1. */
#define ED_LOSS_COSINE_SIMILARITY_OPTIONS(FIELD, T)                                                \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the vectors")                                             \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, cosine_similarity, ED_LOSS_COSINE_SIMILARITY_OPTIONS);

/* Mean of d^2 / 2 where |d| <= delta, else of delta |d| - delta^2 / 2 (Huber, "Robust Estimation of
 * a Location Parameter", 1964). */
#define ED_LOSS_HUBER_OPTIONS(FIELD, T)                                                            \
    FIELD(T, FLOAT, delta, 1, ED_AT_LEAST(0), "where the parabola becomes a line")                 \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, huber, ED_LOSS_HUBER_OPTIONS);

/* Mean of log cosh d. */
#define ED_LOSS_LOG_COSH_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, log_cosh, ED_LOSS_LOG_COSH_OPTIONS);

/* Mean of y_pred - y_true log(y_pred + 1e-7). */
#define ED_LOSS_POISSON_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, poisson, ED_LOSS_POISSON_OPTIONS);

/* Sum of y_true log(y_true / y_pred), both clipped to 1e-7..1. */
#define ED_LOSS_KL_DIVERGENCE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, kl_divergence, ED_LOSS_KL_DIVERGENCE_OPTIONS);

/* Means of |d| and d^2, by the names that textbooks have. */
#define ED_LOSS_ABSOLUTE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, absolute, ED_LOSS_ABSOLUTE_OPTIONS);
#define ED_LOSS_SQUARE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, square, ED_LOSS_SQUARE_OPTIONS);

/*
 * ---- Margins (nn/losses/margins.c) --------------------------------------------------------------
 *
 * Labels are -1 or 1; where all are 0 or 1, they become -1 and 1. m is y_true y_pred.
 */

/* Mean of max(1 - m, 0), and of its square. */
#define ED_LOSS_HINGE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, hinge, ED_LOSS_HINGE_OPTIONS);
#define ED_LOSS_SQUARED_HINGE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, squared_hinge, ED_LOSS_SQUARED_HINGE_OPTIONS);

/* Of labels 0 or 1: max(1 + largest of (1 - y_true) y_pred - sum of y_true y_pred, 0). */
#define ED_LOSS_CATEGORICAL_HINGE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, categorical_hinge, ED_LOSS_CATEGORICAL_HINGE_OPTIONS);

/* The share of wrong signs: mean of 1 where m <= 0, else 0. It has no gradient. */
#define ED_LOSS_ZERO_ONE_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, zero_one, ED_LOSS_ZERO_ONE_OPTIONS);

/* Mean of e^-m, as boosting has it. */
#define ED_LOSS_EXPONENTIAL_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, exponential, ED_LOSS_EXPONENTIAL_OPTIONS);

/* The logistic loss: mean of log(1 + e^-m). */
#define ED_LOSS_LOG_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, log, ED_LOSS_LOG_OPTIONS);

/*
 * ---- Cross entropies (nn/losses/crossentropies.c) -----------------------------------------------
 *
 * y_pred are probabilities, clipped to 1e-7..1 - 1e-7, or, with from_logits, logits, which is
 * faster and more exact.
 */

/* The options of all cross entropies / of those that have all classes in y_true. */
#define ED_LOSS_FROM_LOGITS(FIELD, T)                                                              \
    FIELD(T, BOOL, from_logits, false, ED_ANY, "y_pred are logits, not probabilities")
#define ED_LOSS_SMOOTHING(FIELD, T)                                                                \
    ED_LOSS_FROM_LOGITS(FIELD, T)                                                                  \
    FIELD(T, FLOAT, label_smoothing, 0, ED_BETWEEN(0, 1),                                          \
          "share of the labels that is spread evenly over all classes")                            \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the classes")

/* Mean of -y_true log p - (1 - y_true) log(1 - p), along the axis. */
#define ED_LOSS_BINARY_CROSSENTROPY_OPTIONS(FIELD, T)                                              \
    ED_LOSS_SMOOTHING(FIELD, T)                                                                    \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, binary_crossentropy, ED_LOSS_BINARY_CROSSENTROPY_OPTIONS);

/* The same times (1 - q)^gamma, q being the probability of what y_true says (Lin et al., "Focal
 * Loss for Dense Object Detection", 2018). */
#define ED_LOSS_BINARY_FOCAL_CROSSENTROPY_OPTIONS(FIELD, T)                                        \
    FIELD(T, BOOL, apply_class_balancing, false, ED_ANY,                                           \
          "multiply by alpha for class 1, 1 - alpha for class 0")                                  \
    FIELD(T, FLOAT, alpha, 0.25, ED_FINITE, "weight of class 1")                                   \
    FIELD(T, FLOAT, gamma, 2, ED_FINITE, "exponent of 1 - q")                                      \
    ED_LOSS_SMOOTHING(FIELD, T)                                                                    \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, binary_focal_crossentropy, ED_LOSS_BINARY_FOCAL_CROSSENTROPY_OPTIONS);

/* -sum y_true log p along the axis, p being y_pred divided by its sum along the axis. */
#define ED_LOSS_CATEGORICAL_CROSSENTROPY_OPTIONS(FIELD, T)                                         \
    ED_LOSS_SMOOTHING(FIELD, T)                                                                    \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, categorical_crossentropy, ED_LOSS_CATEGORICAL_CROSSENTROPY_OPTIONS);

/* -sum alpha (1 - p)^gamma y_true log p along the axis. */
#define ED_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY_OPTIONS(FIELD, T)                                   \
    FIELD(T, FLOAT, alpha, 0.25, ED_FINITE, "factor of all")                                       \
    FIELD(T, FLOAT, gamma, 2, ED_FINITE, "exponent of 1 - p")                                      \
    ED_LOSS_SMOOTHING(FIELD, T)                                                                    \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, categorical_focal_crossentropy, ED_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY_OPTIONS);

/* The same as categorical_crossentropy for labels that name the class: y_true is [...] or [..., 1],
 * y_pred [..., classes]; ED_OUT_OF_RANGE for labels outside 0..classes-1. */
#define ED_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_OPTIONS(FIELD, T)                                  \
    ED_LOSS_FROM_LOGITS(FIELD, T)                                                                  \
    FIELD(T, INTS, ignore_class, ED_NO_LIST, ED_ANY,                                               \
          "labels that do not count, inside or outside 0..classes-1; default: none")               \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the classes")                                             \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, sparse_categorical_crossentropy, ED_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_OPTIONS);

/* (1 - p^q) / q for the probability p of the class that y_true, [...] or [..., 1], names in y_pred,
 * [..., classes] (Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural
 * Networks with Noisy Labels", 2018). */
#define ED_LOSS_CATEGORICAL_GENERALIZED_CROSS_ENTROPY_OPTIONS(FIELD, T)                            \
    FIELD(T, FLOAT, q, 0.5, ED_BETWEEN(1e-6, 1), "near 0 it is cross entropy, at 1 1 - p")         \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, categorical_generalized_cross_entropy,
        ED_LOSS_CATEGORICAL_GENERALIZED_CROSS_ENTROPY_OPTIONS);

/* ---- Sequences and regions (nn/losses/regions.c) --------------------------------------------- */

/* ed_ctc_loss of labels [batch, length], 0 being the blank, with which they are filled up, and
 * logits [batch, time, classes]: [batch]. */
#define ED_LOSS_CTC_OPTIONS(FIELD, T) ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, ctc, ED_LOSS_CTC_OPTIONS);

/* 1 - 2 sum(y_true y_pred) / (sum y_true + sum y_pred + 1e-7): how little two sets overlap. */
#define ED_LOSS_DICE_OPTIONS(FIELD, T)                                                             \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "of the sums; default: all")                          \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, dice, ED_LOSS_DICE_OPTIONS);

/* 1 - i / (i + alpha sum(y_true (1 - y_pred)) + beta sum(y_pred (1 - y_true)) + 1e-7) with i =
 * sum(y_true y_pred) (Salehi et al., "Tversky loss function for image segmentation", 2017). */
#define ED_LOSS_TVERSKY_OPTIONS(FIELD, T)                                                          \
    FIELD(T, FLOAT, alpha, 0.5, ED_FINITE, "weight of what is missed")                             \
    FIELD(T, FLOAT, beta, 0.5, ED_FINITE, "weight of what is too much")                            \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "of the sums; default: all")                          \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, tversky, ED_LOSS_TVERSKY_OPTIONS);

/*
 * ---- Embeddings (nn/losses/embeddings.c) --------------------------------------------------------
 *
 * y_true are classes, [batch] or [batch, 1], y_pred embeddings, [batch, n]: those of one class
 * shall be near each other, those of two far apart. The values are [batch].
 */

/* Circle loss of embeddings of length 1 (Sun et al., "Circle Loss: A Unified Perspective of Pair
 * Similarity Optimization", 2020). Samples with the value 0 do not count in the mean. */
#define ED_LOSS_CIRCLE_OPTIONS(FIELD, T)                                                           \
    FIELD(T, FLOAT, gamma, 80, ED_FINITE, "scale")                                                 \
    FIELD(T, FLOAT, margin, 0.4, ED_FINITE, "how far the classes shall be apart")                  \
    FIELD(T, BOOL, remove_diagonal, true, ED_ANY, "a sample is no partner of itself")              \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, circle, ED_LOSS_CIRCLE_OPTIONS);

/* How far apart embeddings are. */
#define ED_LOSS_DISTANCE(FIELD, T)                                                                 \
    FIELD(T, CHOICE, distance_metric, "L2", ED_ONE_OF("L2", "squared-L2", "angular"),              \
          "Euclidean, its square, or 1 - cosine")

/* max(margin + D(a, p) - D(a, n), 0) for each pair of one class, n being the nearest sample of
 * another class that is farther than p, else the farthest of another class: the mean is that of all
 * pairs (Schroff et al., "FaceNet", 2015). */
#define ED_LOSS_TRIPLET_SEMI_HARD_OPTIONS(FIELD, T)                                                \
    FIELD(T, FLOAT, margin, 1, ED_FINITE, "how much farther other classes shall be")               \
    ED_LOSS_DISTANCE(FIELD, T)                                                                     \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, triplet_semi_hard, ED_LOSS_TRIPLET_SEMI_HARD_OPTIONS);

/* max(margin + D(a, p) - D(a, n), 0), p being the farthest sample of a's class, n the nearest of
 * another one (Hermans et al., "In Defense of the Triplet Loss", 2017). */
#define ED_LOSS_TRIPLET_HARD_OPTIONS(FIELD, T)                                                     \
    FIELD(T, FLOAT, margin, 1, ED_FINITE, "how much farther other classes shall be")               \
    FIELD(T, BOOL, soft, false, ED_ANY, "log(1 + e^(D(a, p) - D(a, n))) instead")                  \
    ED_LOSS_DISTANCE(FIELD, T)                                                                     \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, triplet_hard, ED_LOSS_TRIPLET_HARD_OPTIONS);

/* Of distances: mean of y_true y_pred^2 + (1 - y_true) max(margin - y_pred, 0)^2 along the last
 * axis, y_true being 1 for pairs of one class, y_pred their distance, of the same shape (Hadsell et
 * al., "Dimensionality Reduction by Learning an Invariant Mapping", 2006). */
#define ED_LOSS_CONTRASTIVE_OPTIONS(FIELD, T)                                                      \
    FIELD(T, FLOAT, margin, 1, ED_FINITE, "how far pairs of two classes shall be apart")           \
    ED_LOSS_COMMON(FIELD, T)
ED_KIND(loss, contrastive, ED_LOSS_CONTRASTIVE_OPTIONS);

#pragma GCC visibility pop
#endif
