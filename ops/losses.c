/* Losses element by element, and l2_loss: compositions. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <math.h>

/* ---- weighted_cross_entropy_with_logits ------------------------------------------------------ */

/* log(1 + e^-x) = max(-x, 0) + log(1 + e^-|x|) is a softplus, which does not overflow. */
static bool weighted_cross_entropy_compose(ed_call *call)
{
    ed_tensor *z = call->inputs[0], *x = call->inputs[1], *q = call->inputs[2];
    ed_tensor *weight = ed_add(ed_mul(ed_sub(q, 1), z), 1);
    return ed_call_result(call, 0,
                          ed_add(ed_mul(ed_sub(1, z), x), ed_mul(weight, ed_softplus(ed_neg(x)))));
}

PLAIN(weighted_cross_entropy_with_logits,
      (1 - x[0]) * x[1] +
          (1 + (x[2] - 1) * x[0]) * (fmax(-x[1], 0) + log1p(exp(-fabs(x[1])))));

ED_OP(weighted_cross_entropy_with_logits) = {
    .name = "weighted_cross_entropy_with_logits",
    .doc = "(1 - z) x + (1 + (pos_weight - 1) z) log(1 + e^-x) for labels z and logits x",
    .operands = {{"labels", ED_SET_FLOAT, 'T'},
                 {"logits", ED_SET_FLOAT, 'T'},
                 {"pos_weight", ED_SET_FLOAT, 'T'}},
    .compose = weighted_cross_entropy_compose,
    .reference = plain_weighted_cross_entropy_with_logits,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-3, 3, 3, 4), ED_SAMPLE_IN(0.5, 2, 4)}},
        {.inputs = {ED_SAMPLE_IN(0, 1, 4), ED_SAMPLE_IN(-3, 3, 3, 1), ED_SAMPLE_IN(0.5, 2)}}),
};

ed_tensor *(ed_weighted_cross_entropy_with_logits)(ed_tensor *labels, ed_tensor *logits,
                                                   ed_tensor *pos_weight)
{
    return CALL_OP(weighted_cross_entropy_with_logits, NULL, labels, logits, pos_weight);
}

/* ---- log_loss -------------------------------------------------------------------------------- */

static bool log_loss_compose(ed_call *call)
{
    const ed_log_loss_options *o = call->attrs;
    ed_tensor *y = call->inputs[0], *p = call->inputs[1];
    ed_tensor *positive = ed_mul(y, ed_log(ed_add(p, o->epsilon)));
    ed_tensor *negative = ed_mul(ed_sub(1, y), ed_log(ed_add(ed_sub(1, p), o->epsilon)));
    return ed_call_result(call, 0, ed_neg(ed_add(positive, negative)));
}

static double log_loss_at(const double *x, const void *attrs)
{
    const double epsilon = ((const ed_log_loss_options *)attrs)->epsilon;
    return -x[0] * log(x[1] + epsilon) - (1 - x[0]) * log(1 - x[1] + epsilon);
}

static bool log_loss_reference(const ed_call *call)
{
    return elementwise_plain(call, log_loss_at);
}

ED_OP(log_loss) = {
    .name = "log_loss",
    .doc = "-y log(p + epsilon) - (1 - y) log(1 - p + epsilon) for labels y, probabilities p",
    .operands = {{"labels", ED_SET_FLOAT, 'T'}, {"predictions", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_LOG_LOSS_OPTIONS, ed_log_loss_options),
    .compose = log_loss_compose,
    .reference = log_loss_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(0.1, 0.9, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 4), ED_SAMPLE_IN(0.1, 0.9, 3, 1)},
                           .attrs = ED_ATTRS(ED_LOG_LOSS_OPTIONS, ed_log_loss_options,
                                             .epsilon = 0.1)}),
};

ed_tensor *ed_log_loss_with(ed_tensor *labels, ed_tensor *predictions,
                            const ed_log_loss_options *options)
{
    return CALL_OP(log_loss, options, labels, predictions);
}

/* ---- log_poisson_loss ------------------------------------------------------------------------ */

/* Where the term is not wanted, z is 1, whose term has a value and a slope. */
static ed_tensor *stirling(ed_tensor *z)
{
    ed_tensor *within = ed_logical_and(ed_greater_equal(z, 0), ed_less_equal(z, 1));
    ed_tensor *safe = ed_where(within, 1, z);
    ed_tensor *term = ed_add(ed_sub(ed_mul(safe, ed_log(safe)), safe),
                             ed_mul(0.5, ed_log(ed_mul(2 * M_PI, safe))));
    return ed_where(within, 0, term);
}

static bool log_poisson_loss_compose(ed_call *call)
{
    const ed_log_poisson_loss_options *o = call->attrs;
    ed_tensor *z = call->inputs[0], *c = call->inputs[1];
    ed_tensor *loss = ed_sub(ed_exp(c), ed_mul(z, c));
    return ed_call_result(call, 0, o->compute_full_loss ? ed_add(loss, stirling(z)) : loss);
}

static double log_poisson_loss_at(const double *x, const void *attrs)
{
    const bool full = ((const ed_log_poisson_loss_options *)attrs)->compute_full_loss;
    const double z = x[0], loss = exp(x[1]) - z * x[1];
    if (!full || (z >= 0 && z <= 1)) return loss;
    return loss + (z * log(z) - z + 0.5 * log(2 * M_PI * z));
}

static bool log_poisson_loss_reference(const ed_call *call)
{
    return elementwise_plain(call, log_poisson_loss_at);
}

ED_OP(log_poisson_loss) = {
    .name = "log_poisson_loss",
    .doc = "e^c - z c for targets z and log_input c",
    .operands = {{"targets", ED_SET_FLOAT, 'T'}, {"log_input", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_LOG_POISSON_LOSS_OPTIONS, ed_log_poisson_loss_options),
    .compose = log_poisson_loss_compose,
    .reference = log_poisson_loss_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 5, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 5, 4), ED_SAMPLE_IN(-2, 2, 3, 1)},
                           .attrs = ED_ATTRS(ED_LOG_POISSON_LOSS_OPTIONS,
                                             ed_log_poisson_loss_options,
                                             .compute_full_loss = true)}),
};

ed_tensor *ed_log_poisson_loss_with(ed_tensor *targets, ed_tensor *log_input,
                                    const ed_log_poisson_loss_options *options)
{
    return CALL_OP(log_poisson_loss, options, targets, log_input);
}

/* ---- l2_loss --------------------------------------------------------------------------------- */

static bool l2_loss_compose(ed_call *call)
{
    return ed_call_result(call, 0, ed_mul(ed_reduce_sum_square(call->inputs[0]), 0.5));
}

static bool l2_loss_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    double sum = 0;
    for (int64_t i = 0; i < x->size; i++)
        sum += ((const double *)x->data)[i] * ((const double *)x->data)[i];
    *(double *)call->outputs[0]->data = sum / 2;
    return true;
}

ED_OP(l2_loss) = {
    .name = "l2_loss",
    .doc = "half the sum of all squares",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .compose = l2_loss_compose,
    .reference = l2_loss_reference,
    .samples = SAMPLES1(-2, 2),
};
FUNCTION1(l2_loss);
