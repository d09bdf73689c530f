/* batch_norm_inference: y = (x - mean) / sqrt(variance + epsilon) gamma + beta, a composition:
 * whatever belongs to a channel is computed first, then y = x scale + shift. */
#include "ops/execute.h"
#include "ops/ops.h"
#include <math.h>

static bool is_channel(const ed_call *call, int i)
{
    const ed_tensor *x = tensor_read(call->inputs[0]), *t = tensor_read(call->inputs[i]);
    if (t->rank == 1 && t->shape[0] == x->shape[x->rank - 1]) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s, x is %s; expected shape [%lld]",
                        call->op->operands[i].name, text_of_tensor(t).s, text_of_tensor(x).s,
                        (long long)x->shape[x->rank - 1]);
}

static bool batch_norm_inference_compose(ed_call *call)
{
    const ed_batch_norm_inference_options *o = call->attrs;
    ed_tensor *const *in = call->inputs;
    if (ed_rank(in[0]) < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must be [..., channels], got %s",
                            text_of_tensor(tensor_read(in[0])).s);
    for (int i = 1; i < call->n_inputs; i++)
        if (!is_channel(call, i)) return false;
    ed_tensor *scale = ed_rsqrt(ed_add(in[2], o->epsilon));
    if (call->n_inputs > 3) scale = ed_mul(scale, in[3]);
    ed_tensor *y = ed_mul(ed_sub(in[0], in[1]), scale);
    return ed_call_result(call, 0, call->n_inputs > 4 ? ed_add(y, in[4]) : y);
}

static bool batch_norm_inference_reference(const ed_call *call)
{
    const ed_batch_norm_inference_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int64_t n = x->shape[x->rank - 1];
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < x->size; i++) {
        double v[5] = {0, 0, 0, 1, 0};
        for (int k = 1; k < call->n_inputs; k++) v[k] = ((double *)call->inputs[k]->data)[i % n];
        y[i] = (((const double *)x->data)[i] - v[1]) * (1 / sqrt(v[2] + o->epsilon) * v[3]) + v[4];
    }
    return true;
}

ED_OP(batch_norm_inference) = {
    .name = "batch_norm_inference",
    .doc = "y = (x - mean) / sqrt(variance + epsilon) gamma + beta",
    .operands = {{"x", ED_SET_FLOAT, 'T'},
                 {"mean", ED_SET_FLOAT, 'T'},
                 {"variance", ED_SET_FLOAT, 'T'},
                 {"gamma", ED_SET_FLOAT, 'T', .optional = true},
                 {"beta", ED_SET_FLOAT, 'T', .optional = true}},
    ED_OP_ATTRS(ED_BATCH_NORM_INFERENCE_OPTIONS, ed_batch_norm_inference_options),
    .compose = batch_norm_inference_compose,
    .reference = batch_norm_inference_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3), ED_SAMPLE_IN(-1, 1, 3), ED_SAMPLE_IN(0.5, 2, 3),
                    ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(-1, 1, 3), ED_SAMPLE_IN(0.5, 2, 3)},
         .attrs = ED_ATTRS(ED_BATCH_NORM_INFERENCE_OPTIONS, ed_batch_norm_inference_options,
                           .epsilon = 0.1)}),
};

ed_tensor *ed_batch_norm_inference_with(ed_tensor *x, ed_tensor *mean, ed_tensor *variance,
                                        ed_tensor *gamma, ed_tensor *beta,
                                        const ed_batch_norm_inference_options *options)
{
    return CALL_OP_GIVEN(batch_norm_inference, options, x, mean, variance, gamma, beta);
}
