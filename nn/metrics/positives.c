/* Numbers of true and false positives and negatives, precision, recall. */
#include "nn/metrics/counts.h"
#include "ops/ops.h"

static const double half = 0.5, lowest = -1e10;

/* The thresholds, or what stands for none: 0.5, or with top_k a number below all predictions. */
static ed_floats thresholds_or(ed_floats given, int64_t top_k)
{
    return given.count ? given : (ed_floats){top_k ? &lowest : &half, 1};
}

/* A scalar of one threshold. */
static ed_tensor *scalar_of_one(ed_tensor *x)
{
    return x && x->size == 1 ? ed_reshape(x, ED_SHAPE()) : x;
}

#define BINARY_SAMPLES(SYMBOL, symbol)                                                             \
    .samples =                                                                                     \
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 9), ED_SAMPLE_IN(0, 1, 9)}},                    \
                   {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(0, 1, 5, 3)},                \
                    .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,  \
                                      .thresholds = {(const double[]){0.7, 0.2, 1}, 3})})

/* ---- Numbers --------------------------------------------------------------------------------- */

#define NUMBER(symbol, SYMBOL, text)                                                               \
    static int symbol##_shape(const void *options, int64_t *shape)                                 \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = options;                                           \
        shape[0] = thresholds_or(o->thresholds, 0).count;                                          \
        return 1;                                                                                  \
    }                                                                                              \
    static bool symbol##_increments(metric_call *call)                                             \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = call->options;                                     \
        const counts_wanted wanted = {.thresholds = thresholds_or(o->thresholds, 0),               \
                                      .class_id = -1};                                             \
        counts all;                                                                                \
        if (!counts_of(call, &wanted, &all)) return false;                                         \
        call->increments[0] = all.symbol;                                                          \
        return true;                                                                               \
    }                                                                                              \
    static ed_tensor *symbol##_result(const void *options, ed_tensor *const *variables)            \
    {                                                                                              \
        (void)options;                                                                             \
        return scalar_of_one(variables[0]);                                                        \
    }                                                                                              \
    METRIC(symbol, SYMBOL, 0, text, .compares = true, .variables = {"accumulator"},                \
           .shape = symbol##_shape, .increments = symbol##_increments, .result = symbol##_result,  \
           BINARY_SAMPLES(SYMBOL, symbol))

NUMBER(true_positives, TRUE_POSITIVES, "the number of positives that are predicted")
NUMBER(false_positives, FALSE_POSITIVES, "the number of negatives that are predicted as positive")
NUMBER(true_negatives, TRUE_NEGATIVES, "the number of negatives that are predicted")
NUMBER(false_negatives, FALSE_NEGATIVES, "the number of positives that are predicted as negative")

/* ---- Precision and recall -------------------------------------------------------------------- */

/* true_positives / (true_positives + other) */
static ed_tensor *share_of(const void *options, ed_tensor *const *variables)
{
    (void)options;
    ed_tensor *all = ed_add(variables[0], variables[1]);
    return scalar_of_one(ed_div_no_nan(variables[0], all));
}

#define SHARE(symbol, SYMBOL, other, text)                                                         \
    static int symbol##_shape(const void *options, int64_t *shape)                                 \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = options;                                           \
        shape[0] = thresholds_or(o->thresholds, o->top_k).count;                                   \
        return 1;                                                                                  \
    }                                                                                              \
    static bool symbol##_increments(metric_call *call)                                             \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = call->options;                                     \
        const counts_wanted wanted = {.thresholds = thresholds_or(o->thresholds, o->top_k),        \
                                      .top_k = o->top_k,                                           \
                                      .class_id = o->class_id};                                    \
        counts all;                                                                                \
        if (!counts_of(call, &wanted, &all)) return false;                                         \
        call->increments[0] = all.true_positives;                                                  \
        call->increments[1] = all.other;                                                           \
        return true;                                                                               \
    }                                                                                              \
    METRIC(symbol, SYMBOL, 0, text, .compares = true, .variables = {"true_positives", #other},     \
           .shape = symbol##_shape, .increments = symbol##_increments, .result = share_of,         \
           .samples = ED_SAMPLES(                                                                  \
               {.inputs = {ED_SAMPLE_IN(-1, 1, 9), ED_SAMPLE_IN(0, 1, 9)}},                        \
               {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(0, 1, 5, 3)},                    \
                .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,      \
                                  .thresholds = {(const double[]){0.7, 0.2, 1}, 3})},              \
               {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_DISTINCT_IN(0, 1, 5, 3)},                  \
                .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,      \
                                  .top_k = 2, .class_id = 1)}))

SHARE(precision, PRECISION, false_positives, "the share of positive predictions that are right")
SHARE(recall, RECALL, false_negatives, "the share of positives that are found")
