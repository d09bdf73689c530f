#include "nn/metrics/metric.h"

static bool mean_kernel(ed_call *call)
{
    const ed_tensor *values = call->inputs[2];
    double sum = 0;
    for (int64_t i = 0; i < values->size; i++) sum += dtype_load(values->dtype, values->data, i);
    return metric_add(call, sum, values->size);
}

static bool mean_reference(const ed_call *call)
{
    const ed_tensor *values = call->inputs[2];
    double sum = 0;
    for (int64_t i = 0; i < values->size; i++) sum += ((const double *)values->data)[i];
    return metric_add_reference(call, sum, values->size);
}

METRIC_OP(mean, "total += sum of the values, count += their number",
          .operands = {METRIC_OPERANDS, {"values", ED_SET_ALL, 'T'}}, .infer = metric_infer,
          .kernel = mean_kernel, .reference = mean_reference,
          .samples = ED_SAMPLES(METRIC_SAMPLE(ED_SAMPLE_IN(-2, 2, 3, 4)),
                                METRIC_SAMPLE(ED_SAMPLE_IN(-2, 2))));

METRIC(mean, MEAN, 0, "the mean of all values given")
