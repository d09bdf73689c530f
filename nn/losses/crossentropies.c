/* Cross entropies, of probabilities or logits. */
#include "nn/losses/loss.h"
#include "ops/ops.h"

/* ---- What they share ------------------------------------------------------------------------- */

static ed_tensor *clipped(ed_tensor *p)
{
    return ed_clip(p, LOSS_EPSILON, 1 - LOSS_EPSILON);
}

/* The labels, with `share` of them spread over n classes. */
static ed_tensor *smooth(ed_tensor *y_true, double share, double n)
{
    return share == 0 ? y_true : ed_add(ed_mul(y_true, 1 - share), share / n);
}

/* The number of classes over which labels are spread, as Keras has it: of the last axis. */
static double classes(const ed_tensor *y_true)
{
    return (double)y_true->shape[y_true->rank - 1];
}

/* Probabilities that sum to 1 along the axis, clipped. */
static ed_tensor *shares(ed_tensor *p, int64_t axis)
{
    return clipped(ed_div(p, ed_reduce_sum(p, .axis = ED_AXES(axis), .keepdims = true)));
}

static bool is_last(int64_t axis, const ed_tensor *x)
{
    return axis == -1 || axis == x->rank - 1;
}

#define LABELS(...)        ED_SAMPLE_IN(0.1, 0.9, __VA_ARGS__)
#define PROBABILITIES(...) ED_SAMPLE_IN(0.1, 0.8, __VA_ARGS__)
#define LOGITS(...)        ED_SAMPLE_IN(-2, 2, __VA_ARGS__)

/* Samples of a kind with the options of ED_LOSS_SMOOTHING. */
#define SMOOTHING_SAMPLES(SYMBOL, symbol)                                                          \
    ED_SAMPLES({.inputs = {LABELS(3, 4), PROBABILITIES(3, 4)}},                                    \
               {.inputs = {LABELS(3, 4), LOGITS(3, 4)},                                            \
                .attrs = ED_ATTRS(ED_LOSS_##SYMBOL##_OPTIONS, ed_loss_##symbol##_options,          \
                                  .from_logits = true, .label_smoothing = 0.2)},                   \
               {.inputs = {LABELS(3, 4, 2), LOGITS(3, 4, 2)},                                      \
                .attrs = ED_ATTRS(ED_LOSS_##SYMBOL##_OPTIONS, ed_loss_##symbol##_options,          \
                                  .from_logits = true, .axis = 1)})

/* ---- Two classes ----------------------------------------------------------------------------- */

/* Each element's cross entropy. */
static ed_tensor *binary(ed_tensor *t, ed_tensor *p, bool from_logits)
{
    if (from_logits) return ed_sigmoid_cross_entropy(t, p);
    p = clipped(p);
    ed_tensor *one = ed_mul(t, ed_log(p));
    return ed_neg(ed_add(one, ed_mul(ed_sub(1, t), ed_log(ed_sub(1, p)))));
}

ed_tensor *loss_binary_crossentropy(ed_tensor *y_true, ed_tensor *y_pred, bool from_logits,
                                    double label_smoothing, int64_t axis)
{
    ed_tensor *t = smooth(y_true, label_smoothing, 2);
    return ed_reduce_mean(binary(t, y_pred, from_logits), .axis = ED_AXES(axis));
}

LOSS(binary_crossentropy, BINARY_CROSSENTROPY, 0, "mean of -y log p - (1 - y) log(1 - p)",
     .samples = SMOOTHING_SAMPLES(BINARY_CROSSENTROPY, binary_crossentropy),
     .kind.short_name = "bce")
{
    const binary_crossentropy_options *o = options;
    return loss_binary_crossentropy(y_true, y_pred, o->from_logits, o->label_smoothing, o->axis);
}

LOSS(binary_focal_crossentropy, BINARY_FOCAL_CROSSENTROPY, 0,
     "binary cross entropy times (1 - q)^gamma, q being the probability of the label",
     .samples = ED_SAMPLES({.inputs = {LABELS(3, 4), PROBABILITIES(3, 4)}},
                           {.inputs = {LABELS(3, 4), LOGITS(3, 4)},
                            .attrs = ED_ATTRS(ED_LOSS_BINARY_FOCAL_CROSSENTROPY_OPTIONS,
                                              ed_loss_binary_focal_crossentropy_options,
                                              .from_logits = true, .label_smoothing = 0.2,
                                              .apply_class_balancing = true, .axis = 0)}))
{
    const binary_focal_crossentropy_options *o = options;
    ed_tensor *t = smooth(y_true, o->label_smoothing, 2);
    ed_tensor *p = o->from_logits ? ed_sigmoid(y_pred) : y_pred;
    ed_tensor *other = ed_sub(1, t);
    ed_tensor *q = ed_add(ed_mul(t, p), ed_mul(other, ed_sub(1, p)));
    ed_tensor *focal = ed_mul(ed_pow(ed_sub(1, q), o->gamma), binary(t, p, false));
    if (o->apply_class_balancing)
        focal = ed_mul(ed_add(ed_mul(t, o->alpha), ed_mul(other, 1 - o->alpha)), focal);
    return ed_reduce_mean(focal, .axis = ED_AXES(o->axis));
}

/* ---- Many classes ---------------------------------------------------------------------------- */

ed_tensor *loss_categorical_crossentropy(ed_tensor *y_true, ed_tensor *y_pred, bool from_logits,
                                         double label_smoothing, int64_t axis)
{
    ed_tensor *t = smooth(y_true, label_smoothing, classes(y_true));
    if (from_logits && is_last(axis, y_pred)) return ed_softmax_cross_entropy(t, y_pred);
    ed_tensor *logs =
        from_logits ? ed_log_softmax(y_pred, .axis = axis) : ed_log(shares(y_pred, axis));
    return ed_neg(ed_reduce_sum(ed_mul(t, logs), .axis = ED_AXES(axis)));
}

LOSS(categorical_crossentropy, CATEGORICAL_CROSSENTROPY, 0, "-sum y_true log p",
     .samples = SMOOTHING_SAMPLES(CATEGORICAL_CROSSENTROPY, categorical_crossentropy))
{
    const categorical_crossentropy_options *o = options;
    return loss_categorical_crossentropy(y_true, y_pred, o->from_logits, o->label_smoothing,
                                         o->axis);
}

LOSS(categorical_focal_crossentropy, CATEGORICAL_FOCAL_CROSSENTROPY, 0,
     "-sum alpha (1 - p)^gamma y_true log p",
     .samples = SMOOTHING_SAMPLES(CATEGORICAL_FOCAL_CROSSENTROPY, categorical_focal_crossentropy))
{
    const categorical_focal_crossentropy_options *o = options;
    ed_tensor *t = smooth(y_true, o->label_smoothing, classes(y_true));
    ed_tensor *p = shares(o->from_logits ? ed_softmax(y_pred, .axis = o->axis) : y_pred, o->axis);
    ed_tensor *each = ed_neg(ed_mul(t, ed_log(p)));
    ed_tensor *factor = ed_mul(ed_pow(ed_sub(1, p), o->gamma), o->alpha);
    return ed_reduce_sum(ed_mul(factor, each), .axis = ED_AXES(o->axis));
}

/* ---- Labels that name the class -------------------------------------------------------------- */

ed_tensor *loss_sparse_categorical_crossentropy(ed_tensor *labels, ed_tensor *y_pred,
                                                bool from_logits, ed_ints ignored, int64_t axis)
{
    if (!is_last(axis, y_pred))
        return ed_fail(ED_INVALID_ARGUMENT, "sparse_categorical_crossentropy: axis must be the "
                                            "last one; transpose y_pred before");
    ed_tensor *counts;
    if (!loss_labels_that_count(labels, ignored, &counts)) return NULL;
    if (counts) {
        labels = ed_where(counts, labels, 0);
        y_pred = ed_where(ed_expand_dims(counts, -1), y_pred, 0);
    }
    ed_tensor *logits = from_logits ? y_pred : ed_log(clipped(y_pred));
    ed_tensor *values = ed_sparse_softmax_cross_entropy(labels, logits);
    return counts ? ed_where(counts, values, 0) : values;
}

static bool not_ignored(const void *options, ed_tensor *y_true, ed_tensor *values, ed_tensor **mask)
{
    (void)values;
    const ed_loss_sparse_categorical_crossentropy_options *o = options;
    return loss_labels_that_count(y_true, o->ignore_class, mask);
}

LOSS(sparse_categorical_crossentropy, SPARSE_CATEGORICAL_CROSSENTROPY, 0,
     "-log of the probability of the class that y_true names", .operands = LOSS_CLASSES,
     .counts = not_ignored,
     .samples = ED_SAMPLES(
         {.inputs = {ED_SAMPLE_IN(0, 3, 3), PROBABILITIES(3, 4)}},
         {.inputs = {ED_SAMPLE_IN(0, 1, 3, 1), LOGITS(3, 2)},
          .attrs = ED_ATTRS(ED_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_OPTIONS,
                            ed_loss_sparse_categorical_crossentropy_options, .from_logits = true)},
         {.inputs = {ED_SAMPLE_IN(-1, 2, 4, 2), LOGITS(4, 2, 3)},
          .attrs = ED_ATTRS(ED_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_OPTIONS,
                            ed_loss_sparse_categorical_crossentropy_options, .from_logits = true,
                            .ignore_class = ED_SAMPLE_INTS(-1))}))
{
    const sparse_categorical_crossentropy_options *o = options;
    return loss_sparse_categorical_crossentropy(y_true, y_pred, o->from_logits, o->ignore_class,
                                                o->axis);
}

LOSS(categorical_generalized_cross_entropy, CATEGORICAL_GENERALIZED_CROSS_ENTROPY, 0,
     "(1 - p^q) / q for the probability p of the class that y_true names", .operands = LOSS_CLASSES,
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 3, 3), PROBABILITIES(3, 4)}}))
{
    const double q = ((const categorical_generalized_cross_entropy_options *)options)->q;
    ed_tensor *at = ed_expand_dims(y_true, -1);
    ed_tensor *p = ed_squeeze(ed_take_along_axis(y_pred, at, .axis = -1), .axis = ED_AXES(-1));
    return ed_div(ed_sub(1, ed_pow(p, q)), q);
}
