/* Scores of columns: the coefficient of determination, F scores. */
#include "nn/metrics/metric.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* Whether y_pred is [batch, n]. */
static bool is_matrix(const metric_call *call)
{
    return call->y_pred->rank == 2 ||
           ed_fail(ED_INVALID_ARGUMENT, "%s: y_true and y_pred must be [batch, n], got %s",
                   call->who, text_of_tensor(call->y_pred).s);
}

static ed_tensor *over_batch(ed_tensor *x)
{
    return ed_reduce_sum(x, .axis = ED_AXES(0));
}

/* ---- R2 -------------------------------------------------------------------------------------- */

static bool r2_increments(metric_call *call)
{
    if (!is_matrix(call)) return false;
    ed_tensor *t = metric_float64(call->y_true), *p = metric_float64(call->y_pred);
    ed_tensor *w = call->weight ? metric_spread(call, t) : ed_ones_like(t);
    ed_tensor *wt = ed_mul(w, t);
    call->increments[0] = ed_scalar((double)call->y_pred->size, .dtype = ED_FLOAT64);
    call->increments[1] = over_batch(ed_mul(t, wt));
    call->increments[2] = over_batch(wt);
    call->increments[3] = over_batch(ed_mul(ed_squared_difference(t, p), w));
    call->increments[4] = over_batch(w);
    return call->increments[0] && call->increments[3] && call->increments[4];
}

static ed_tensor *r2_result(const void *options, ed_tensor *const *v)
{
    const ed_metric_r2_score_options *o = options;
    ed_tensor *total = ed_sub(v[1], ed_mul(v[2], ed_div(v[2], v[4])));
    ed_tensor *scores = ed_sub(1, ed_div(v[3], total));
    scores = ed_where(ed_is_inf(scores), 0, scores);
    if (!strcmp(o->class_aggregation, "uniform_average"))
        scores = ed_reduce_mean(scores);
    else if (strcmp(o->class_aggregation, "none") != 0)
        scores = ed_div(ed_reduce_sum(ed_mul(total, scores)), ed_reduce_sum(total));
    const double n = ed_item(v[0]), p = (double)o->num_regressors;
    if (!p || p >= n - 1) return scores; /* too few samples for the adjusted one */
    return ed_sub(1, ed_mul(ed_sub(1, scores), (n - 1) / (n - p - 1)));
}

METRIC(r2_score, R2_SCORE, 0, "the coefficient of determination of columns", .compares = true,
       .late = true, .variables = {"num_samples", "squared_sum", "sum", "residual", "count"},
       .increments = r2_increments, .result = r2_result,
       .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 5, 3)}},
                             {.inputs = {ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(-2, 2, 5, 1)},
                              .attrs = ED_ATTRS(ED_METRIC_R2_SCORE_OPTIONS,
                                                ed_metric_r2_score_options,
                                                .class_aggregation = "variance_weighted_average",
                                                .num_regressors = 2)}))

/* ---- F scores -------------------------------------------------------------------------------- */

/* 1 where a prediction is positive. */
static ed_tensor *positives(ed_tensor *p, double threshold)
{
    if (threshold > 0) return ed_cast(ed_greater(p, threshold), ED_FLOAT64);
    ed_tensor *most = ed_reduce_max(p, .axis = ED_AXES(-1), .keepdims = true);
    ed_tensor *best = ed_logical_and(ed_greater_equal(p, most), ed_greater(ed_abs(p), 1e-9));
    return ed_cast(best, ED_FLOAT64);
}

static bool f_increments(metric_call *call, const char *average, double threshold)
{
    if (!is_matrix(call)) return false;
    ed_tensor *t = metric_float64(call->y_true), *p = positives(call->y_pred, threshold);
    ed_tensor *w = call->weight ? metric_spread(call, t) : NULL;
    if (!t || !p || (call->weight && !w)) return false;
    ed_tensor *parts[] = {ed_mul(p, t), ed_mul(p, ed_sub(1, t)), ed_mul(ed_sub(1, p), t), t};
    for (int i = 0; i < 4; i++) {
        if (w) parts[i] = ed_mul(parts[i], w);
        call->increments[i] =
            strcmp(average, "micro") ? over_batch(parts[i]) : ed_reduce_sum(parts[i]);
        if (!call->increments[i]) return false;
    }
    return true;
}

static ed_tensor *f_result(ed_tensor *const *v, const char *average, double beta)
{
    ed_tensor *precision = ed_div(v[0], ed_add(ed_add(v[0], v[1]), LOSS_EPSILON));
    ed_tensor *recall = ed_div(v[0], ed_add(ed_add(v[0], v[2]), LOSS_EPSILON));
    ed_tensor *sum = ed_add(ed_mul(precision, beta * beta), recall);
    ed_tensor *mean = ed_div(ed_mul(precision, recall), ed_add(sum, LOSS_EPSILON));
    ed_tensor *score = ed_mul(mean, 1 + beta * beta);
    if (!strcmp(average, "none")) return score;
    if (strcmp(average, "weighted") != 0) return ed_reduce_mean(score);
    ed_tensor *share = ed_div(v[3], ed_add(ed_reduce_sum(v[3]), LOSS_EPSILON));
    return ed_reduce_sum(ed_mul(score, share));
}

#define F_SCORE(symbol, SYMBOL, text, beta_)                                                       \
    typedef ed_metric_##symbol##_options symbol##_options;                                         \
    static bool symbol##_increments(metric_call *call)                                             \
    {                                                                                              \
        const symbol##_options *o = call->options;                                                 \
        return f_increments(call, o->average, o->threshold);                                       \
    }                                                                                              \
    static ed_tensor *symbol##_result(const void *options, ed_tensor *const *variables)            \
    {                                                                                              \
        const symbol##_options *o = options;                                                       \
        return f_result(variables, o->average, beta_);                                             \
    }                                                                                              \
    METRIC(symbol, SYMBOL, 0, text, .compares = true, .late = true,                                \
           .variables = {"true_positives", "false_positives", "false_negatives",                   \
                         "intermediate_weights"},                                                  \
           .increments = symbol##_increments, .result = symbol##_result,                           \
           .samples =                                                                              \
               ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_DISTINCT_IN(0, 1, 5, 3)},       \
                           .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, symbol##_options,       \
                                             .average = "weighted")},                              \
                          {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(0, 1, 5, 3)},         \
                           .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, symbol##_options,       \
                                             .average = "micro", .threshold = 0.4)},               \
                          {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(0, 1, 5, 3)}}))

F_SCORE(f1_score, F1_SCORE, "the harmonic mean of precision and recall", 1)
F_SCORE(fbeta_score, FBETA_SCORE, "a weighted harmonic mean of precision and recall", o->beta)
