/*
 * The structure of metrics. A metric has a total, float64, and a count, int64: variables, to which
 * an op of its kind adds values, or what labels and predictions give. A kind is that op and a
 * METRIC of the same symbol, alone in a file or with its kin (metric_mean.c has the shortest):
 *
 *     METRIC_OP(mean, "total += sum of the values, count += their number",
 *               .operands = {METRIC_OPERANDS, {"values", ED_SET_ALL, 'T'}}, .infer = ...,
 *               .kernel = ..., .reference = ..., .samples = ...);
 *     METRIC(mean, MEAN, 0, "the mean of all values given")
 *
 * The rest is common to all, in metric.c: creation, updates, the result, checkpoints.
 */
#ifndef EDDY_NN_METRIC_H
#define EDDY_NN_METRIC_H

#include "nn/nn.h"
#include "ops/execute.h"
#include "tensor/schema_core.h"

/* A kind of metric. */
typedef struct metric_class {
    ed_kind kind;
    const ed_op *op; /* of total, count, and values or labels and predictions */
} metric_class;

/* Creates a metric: kind.make of all kinds. */
void *metric_make(const ed_kind *kind, const void *options);

/* The definition of a kind from its list of options in nn.h; the first `needed` are required
 * arguments. */
#define METRIC(symbol, SYMBOL, needed, text)                                                       \
    ED_SCHEMA(symbol, ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options);                 \
    static const metric_class symbol##_class = {                                                   \
        .kind = SCHEMA_KIND(metric, symbol, text, needed, metric_make),                            \
        .op = &ed_op_metric_##symbol};                                                             \
    SCHEMA_KIND_END(metric, symbol)

/* ---- Ops ------------------------------------------------------------------------------------- */

/* The definition of a metric's op, ed_op_metric_<symbol>. The fields that are left: operands,
 * infer, kernel, reference, samples. */
#define METRIC_OP(symbol, text, ...)                                                               \
    ED_OP(metric_##symbol) = {.name = "metric_" #symbol,                                           \
                              .doc = text,                                                         \
                              .results = ED_NO_RESULTS,                                            \
                              .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,                          \
                              .no_gradient = "it updates a metric",                                \
                              __VA_ARGS__}

/* The first two operands. The next are the values (one operand, for ed_metric_update), or the
 * labels and the predictions (two, for ed_metric_compare). */
#define METRIC_OPERANDS                                                                            \
    {"total", 1 << ED_FLOAT64, 'D', .writes = true},                                               \
    {                                                                                              \
        "count", 1 << ED_INT64, 'N', .writes = true                                                \
    }

/* A sample of the op: METRIC_SAMPLE(ED_SAMPLE_IN(-2, 2, 3, 4)) has the operands after those two. */
#define METRIC_SAMPLE(...)                                                                         \
    {                                                                                              \
        .inputs = { ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9), __VA_ARGS__ }                         \
    }

/* For infer: checks that total and count are scalars; false, with an error, if not. */
bool metric_infer(ed_call *call);

/* The same, and that labels and predictions have the same shape; or one of them [..., 1], where the
 * other one has [...], which Keras squeezes. */
bool metric_infer_same_shape(ed_call *call);

/* For kernels, last: total += sum, count += n. ED_OUT_OF_RANGE if the count would overflow. */
bool metric_add(const ed_call *call, double sum, int64_t n);

/* For references: the same, with a count in float64. */
bool metric_add_reference(const ed_call *call, double sum, int64_t n);

#endif
