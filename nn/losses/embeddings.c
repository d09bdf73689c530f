/* Losses of embeddings: a batch's samples are compared with each other. */
#include "nn/losses/loss.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* ---- What they share ------------------------------------------------------------------------- */

/* Whether y_pred is [batch, n]. */
static bool are_rows(const char *who, const ed_tensor *y_pred)
{
    return y_pred->rank == 2 ||
           ed_fail(ED_INVALID_ARGUMENT, "%s: y_pred must be [batch, n], got %s", who,
                   text_of_tensor(y_pred).s);
}

/* bool [batch, batch]: whether two samples have the same label. */
static ed_tensor *same_class(ed_tensor *labels)
{
    return ed_equal(ed_expand_dims(labels, 1), ed_expand_dims(labels, 0));
}

/* bool [batch, batch]: false on the diagonal. */
static ed_tensor *off_diagonal(const ed_tensor *labels)
{
    return ed_logical_not(ed_eye(labels->size, .dtype = ED_BOOL));
}

/* ---- Circle ---------------------------------------------------------------------------------- */

/* log of the sum of e^x over those of each row that the mask has. */
static ed_tensor *log_sum(ed_tensor *mask, ed_tensor *x)
{
    return ed_reduce_logsumexp(ed_where(mask, x, -INFINITY), .axis = ED_AXES(1));
}

static bool is_positive(const void *options, ed_tensor *y_true, ed_tensor *values, ed_tensor **mask)
{
    (void)options, (void)y_true;
    return (*mask = ed_greater(values, 0)) != NULL;
}

LOSS(circle, CIRCLE, 0, "circle loss of embeddings of length 1", .operands = LOSS_CLASSES,
     .counts = is_positive,
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 6), ED_SAMPLE_IN(0, 0.6, 6, 2)},
                            .attrs = ED_ATTRS(ED_LOSS_CIRCLE_OPTIONS, ed_loss_circle_options,
                                              .gamma = 3)}))
{
    const circle_options *o = options;
    if (!are_rows("circle", y_pred)) return NULL;
    ed_tensor *same = same_class(y_true), *other = ed_logical_not(same);
    if (o->remove_diagonal) same = ed_logical_and(same, off_diagonal(y_true));
    ed_tensor *d = ed_relu(ed_sub(1, ed_matmul(y_pred, y_pred, .transpose_b = true)));
    ed_tensor *near = ed_relu(ed_add(d, o->margin)), *far = ed_relu(ed_sub(1 + o->margin, d));
    ed_tensor *p = ed_mul(ed_mul(near, -o->gamma), ed_sub(o->margin, d));
    ed_tensor *n = ed_mul(ed_mul(far, o->gamma), ed_sub(1 - o->margin, d));
    return ed_softplus(ed_add(log_sum(same, p), log_sum(other, n)));
}

/* ---- Triplets -------------------------------------------------------------------------------- */

/* The distances of all pairs of rows, with gradients of 0 where they are 0. */
static ed_tensor *distances(ed_tensor *x, const char *metric)
{
    if (!strcmp(metric, "angular")) {
        ed_tensor *unit = ed_l2_normalize(x, .axis = ED_AXES(1), .epsilon = 1e-12);
        return ed_relu(ed_sub(1, ed_matmul(unit, unit, .transpose_b = true)));
    }
    ed_tensor *d = ed_sub(ed_expand_dims(x, 1), ed_expand_dims(x, 0));
    ed_tensor *squares = ed_reduce_sum_square(d, .axis = ED_AXES(2));
    if (!strcmp(metric, "squared-L2")) return squares;
    ed_tensor *apart = ed_greater(squares, 0);
    return ed_where(apart, ed_sqrt(ed_where(apart, squares, 1)), 0);
}

/* The smallest, the largest of x along the last axis among those that the mask has; where it has
 * none, the largest, the smallest of all. */
static ed_tensor *nearest(ed_tensor *x, ed_tensor *mask)
{
    ed_tensor *most = ed_reduce_max(x, .axis = ED_AXES(-1), .keepdims = true);
    return ed_reduce_min(ed_where(mask, x, most), .axis = ED_AXES(-1));
}

static ed_tensor *largest(ed_tensor *x, ed_tensor *mask)
{
    ed_tensor *minimum = ed_reduce_min(x, .axis = ED_AXES(-1), .keepdims = true);
    return ed_reduce_max(ed_where(mask, x, minimum), .axis = ED_AXES(-1));
}

LOSS(triplet_semi_hard, TRIPLET_SEMI_HARD, 0,
     "max(margin + D(a, p) - D(a, n), 0), n being just farther than p", .operands = LOSS_CLASSES,
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 6), ED_DISTINCT_IN(-2, 2, 6, 3)}},
                           {.inputs = {ED_SAMPLE_IN(0, 1, 6, 1), ED_DISTINCT_IN(-2, 2, 6, 3)},
                            .attrs = ED_ATTRS(ED_LOSS_TRIPLET_SEMI_HARD_OPTIONS,
                                              ed_loss_triplet_semi_hard_options,
                                              .distance_metric = "angular")}))
{
    const triplet_semi_hard_options *o = options;
    if (!are_rows("triplet_semi_hard", y_pred)) return NULL;
    const int64_t n = y_pred->shape[0];
    ed_tensor *same = same_class(y_true), *other = ed_logical_not(same);
    ed_tensor *d = distances(y_pred, o->distance_metric);
    /* [anchor, positive, negative]: other classes that are farther than the positive one. */
    ed_tensor *to = ed_broadcast_to(ed_expand_dims(d, 1), ED_SHAPE(n, n, n));
    ed_tensor *farther =
        ed_logical_and(ed_expand_dims(other, 1), ed_greater(to, ed_expand_dims(d, 2)));
    ed_tensor *outside = nearest(to, farther), *inside = ed_expand_dims(largest(d, other), 1);
    ed_tensor *negative = ed_where(ed_reduce_any(farther, .axis = ED_AXES(2)), outside, inside);
    ed_tensor *pairs = ed_logical_and(same, off_diagonal(y_true));
    ed_tensor *each = ed_relu(ed_add(ed_sub(d, negative), o->margin));
    ed_tensor *rows = ed_reduce_sum(ed_where(pairs, each, 0), .axis = ED_AXES(1));
    ed_tensor *count = ed_reduce_sum(ed_cast(pairs, y_pred->dtype));
    return ed_mul(rows, ed_div_no_nan(ed_cast(ed_scalar((double)n), y_pred->dtype), count));
}

LOSS(triplet_hard, TRIPLET_HARD, 0,
     "max(margin + D(a, p) - D(a, n), 0), p being the farthest of a's class, n the nearest of "
     "another one",
     .operands = LOSS_CLASSES,
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 6), ED_DISTINCT_IN(-2, 2, 6, 3)}},
                           {.inputs = {ED_SAMPLE_IN(0, 1, 6), ED_DISTINCT_IN(-2, 2, 6, 3)},
                            .attrs = ED_ATTRS(ED_LOSS_TRIPLET_HARD_OPTIONS,
                                              ed_loss_triplet_hard_options, .soft = true,
                                              .distance_metric = "squared-L2")}))
{
    const triplet_hard_options *o = options;
    if (!are_rows("triplet_hard", y_pred)) return NULL;
    ed_tensor *same = same_class(y_true), *d = distances(y_pred, o->distance_metric);
    ed_tensor *positive = largest(d, ed_logical_and(same, off_diagonal(y_true)));
    ed_tensor *more = ed_sub(positive, nearest(d, ed_logical_not(same)));
    return o->soft ? ed_softplus(more) : ed_relu(ed_add(more, o->margin));
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

LOSS(contrastive, CONTRASTIVE, 0, "mean of y d^2 + (1 - y) max(margin - d, 0)^2 of distances d",
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 5, 1), ED_SAMPLE_IN(0, 0.9, 5, 1)}},
                           {.inputs = {ED_SAMPLE_IN(0, 1, 5), ED_SAMPLE_IN(1.1, 2, 5)}}))
{
    const contrastive_options *o = options;
    ed_tensor *apart = ed_square(ed_relu(ed_sub(o->margin, y_pred)));
    ed_tensor *each = ed_add(ed_mul(y_true, ed_square(y_pred)), ed_mul(ed_sub(1, y_true), apart));
    return ed_reduce_mean(each, .axis = ED_AXES(-1));
}
