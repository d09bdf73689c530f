/* Losses of sequences of labels and of regions of images. */
#include "nn/losses/loss.h"
#include "ops/ops.h"

LOSS(ctc, CTC, 0, "-log of the probability that the logits spell the labels",
     .operands = LOSS_AS_GIVEN,
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(1, 3, 2, 3), ED_SAMPLE_IN(-1, 1, 2, 7, 4)}}))
{
    (void)options;
    if (y_true->rank != 2 || y_pred->rank != 3)
        return ed_fail(
            ED_INVALID_ARGUMENT,
            "ctc: y_true must be [batch, length], y_pred [batch, time, classes], got %s and "
            "%s",
            text_of_tensor(y_true).s, text_of_tensor(y_pred).s);
    ed_tensor *labels = ed_cast(y_true, ED_INT32);
    ed_tensor *given = ed_cast(ed_not_equal(labels, 0), ED_INT32);
    ed_tensor *lengths = ed_reduce_sum(given, .axis = ED_AXES(1));
    ed_tensor *times =
        ed_full(ED_SHAPE(y_pred->shape[0]), (double)y_pred->shape[1], .dtype = ED_INT32);
    return ed_ctc_loss(labels, y_pred, lengths, times, .logits_time_major = false);
}

static ed_tensor *total(ed_tensor *x, ed_ints axis)
{
    return ed_reduce_sum(x, .axis = axis);
}

LOSS(dice, DICE, 0, "1 - 2 sum(y_true y_pred) / (sum y_true + sum y_pred)",
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(0, 1, 3, 4)}},
                           {.inputs = {ED_SAMPLE_IN(0, 1, 3, 2, 2), ED_SAMPLE_IN(0, 1, 3, 2, 2)},
                            .attrs = ED_ATTRS(ED_LOSS_DICE_OPTIONS, ed_loss_dice_options,
                                              .axis = ED_SAMPLE_INTS(1, 2))}))
{
    const ed_ints axis = ((const dice_options *)options)->axis;
    ed_tensor *both = ed_mul(total(ed_mul(y_true, y_pred), axis), 2);
    ed_tensor *all = ed_add(ed_add(total(y_true, axis), total(y_pred, axis)), LOSS_EPSILON);
    return ed_sub(1, ed_div(both, all));
}

LOSS(tversky, TVERSKY, 0, "1 - i / (i + alpha missed + beta too much)",
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(0, 1, 3, 4)}},
                           {.inputs = {ED_SAMPLE_IN(0, 1, 3, 2, 2), ED_SAMPLE_IN(0, 1, 3, 2, 2)},
                            .attrs = ED_ATTRS(ED_LOSS_TVERSKY_OPTIONS, ed_loss_tversky_options,
                                              .alpha = 0.2, .axis = ED_SAMPLE_INTS(1, 2))}))
{
    const tversky_options *o = options;
    ed_tensor *both = total(ed_mul(y_true, y_pred), o->axis);
    ed_tensor *missed = total(ed_mul(y_true, ed_sub(1, y_pred)), o->axis);
    ed_tensor *wrong = total(ed_mul(y_pred, ed_sub(1, y_true)), o->axis);
    ed_tensor *all = ed_add(both, ed_add(ed_mul(missed, o->alpha), ed_mul(wrong, o->beta)));
    return ed_sub(1, ed_div(both, ed_add(all, LOSS_EPSILON)));
}
