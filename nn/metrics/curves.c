/* Metrics of a whole curve of thresholds: one rate at another, the area under the curve. */
#include "nn/metrics/counts.h"
#include "ops/ops.h"
#include <string.h>

/* The variables of all. */
enum { TP, FP, TN, FN };
#define FOUR .variables = {"true_positives", "false_positives", "true_negatives", "false_negatives"}

static bool add_counts(metric_call *call, const counts_wanted *wanted)
{
    counts all;
    if (!counts_of(call, wanted, &all)) return false;
    call->increments[TP] = all.true_positives;
    call->increments[FP] = all.false_positives;
    call->increments[TN] = all.true_negatives;
    call->increments[FN] = all.false_negatives;
    return true;
}

/* a / (a + b), 0 where both are 0. */
static ed_tensor *rate(ed_tensor *const *v, int a, int b)
{
    return ed_div_no_nan(v[a], ed_add(v[a], v[b]));
}

/* ---- One rate at another --------------------------------------------------------------------- */

/* n thresholds, evenly from 0 to 1; of one: 0.5. In the scope; values NULL with an error. */
static ed_floats even_thresholds(int64_t n)
{
    double *t = ed_scope_alloc((size_t)n * sizeof *t);
    for (int64_t i = 0; t && i < n; i++) t[i] = n == 1 ? 0.5 : (double)i / (double)(n - 1);
    return (ed_floats){t, n};
}

static bool even_increments(metric_call *call, int64_t n, int64_t class_id)
{
    const counts_wanted wanted = {.thresholds = even_thresholds(n), .class_id = class_id};
    return wanted.thresholds.values && add_counts(call, &wanted);
}

/* The largest of `wanted` where `bound` is at least `least`. */
static ed_tensor *best_where(ed_tensor *wanted, ed_tensor *bound, double least)
{
    return ed_reduce_max(ed_where(ed_greater_equal(bound, least), wanted, 0));
}

/* The rate a / (a + b) where the rate c / (c + d) is at least the option `limit`. */
#define RATE_AT(symbol, SYMBOL, limit, text, a, b, c, d)                                           \
    static int symbol##_shape(const void *options, int64_t *shape)                                 \
    {                                                                                              \
        shape[0] = ((const ed_metric_##symbol##_options *)options)->num_thresholds;                \
        return 1;                                                                                  \
    }                                                                                              \
    static bool symbol##_increments(metric_call *call)                                             \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = call->options;                                     \
        return even_increments(call, o->num_thresholds, o->class_id);                              \
    }                                                                                              \
    static ed_tensor *symbol##_result(const void *options, ed_tensor *const *v)                    \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = options;                                           \
        return best_where(rate(v, a, b), rate(v, c, d), o->limit);                                 \
    }                                                                                              \
    METRIC(symbol, SYMBOL, 1, text, .compares = true, FOUR, .shape = symbol##_shape,               \
           .increments = symbol##_increments, .result = symbol##_result,                           \
           .samples = ED_SAMPLES(                                                                  \
               {.inputs = {ED_SAMPLE_IN(-1, 1, 9), ED_SAMPLE_IN(0, 1, 9)},                         \
                .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,      \
                                  .limit = 0.5, .num_thresholds = 8)},                             \
               {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(0, 1, 5, 3)},                    \
                .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,      \
                                  .limit = 0.2, .num_thresholds = 1, .class_id = 2)}))

RATE_AT(sensitivity_at_specificity, SENSITIVITY_AT_SPECIFICITY, specificity,
        "the best sensitivity where the specificity is high enough", TP, FN, TN, FP)
RATE_AT(specificity_at_sensitivity, SPECIFICITY_AT_SENSITIVITY, sensitivity,
        "the best specificity where the sensitivity is high enough", TN, FP, TP, FN)
RATE_AT(precision_at_recall, PRECISION_AT_RECALL, recall,
        "the best precision where the recall is high enough", TP, FP, TP, FN)
RATE_AT(recall_at_precision, RECALL_AT_PRECISION, precision,
        "the best recall where the precision is high enough", TP, FN, TP, FP)

/* ---- The area under a curve ------------------------------------------------------------------ */

typedef ed_metric_auc_options auc_options;

static int64_t auc_count(const auc_options *o)
{
    return o->thresholds.count ? o->thresholds.count + 2 : o->num_thresholds;
}

/* Those given, or even ones, between ends a little below 0 and above 1. */
static ed_floats auc_thresholds(const auc_options *o)
{
    const int64_t n = auc_count(o);
    double *t = ed_scope_alloc((size_t)n * sizeof *t);
    if (!t) return (ed_floats){NULL, 0};
    for (int64_t i = 1; i < n - 1; i++)
        t[i] = o->thresholds.count ? o->thresholds.values[i - 1] : (double)i / (double)(n - 1);
    for (int64_t i = 2; i < n - 1; i++) /* given ones are sorted */
        for (int64_t k = i; k > 1 && t[k] < t[k - 1]; k--) {
            const double other = t[k];
            t[k] = t[k - 1];
            t[k - 1] = other;
        }
    t[0] = -LOSS_EPSILON;
    t[n - 1] = 1 + LOSS_EPSILON;
    return (ed_floats){t, n};
}

static bool auc_check(const char *who, const void *options)
{
    const auc_options *o = options;
    if (o->num_labels && !o->multi_label)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: num_labels is for multi_label = true", who);
    return !o->num_labels || !o->label_weights.count || o->num_labels == o->label_weights.count ||
           ed_fail(ED_INVALID_ARGUMENT, "%s: num_labels is %lld, label_weights has %lld numbers",
                   who, (long long)o->num_labels, (long long)o->label_weights.count);
}

static bool auc_increments(metric_call *call)
{
    const auc_options *o = call->options;
    const counts_wanted wanted = {.thresholds = auc_thresholds(o),
                                  .class_id = -1,
                                  .multi_label = o->multi_label,
                                  .label_weights = o->label_weights};
    const int64_t labels = call->y_pred->shape[call->y_pred->rank - 1];
    if (!wanted.thresholds.values) return false;
    if (o->multi_label && ((o->num_labels && o->num_labels != labels) ||
                           (o->label_weights.count && o->label_weights.count != labels)))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: y_pred is %s; its last axis must have num_labels, or as many as "
                       "label_weights",
                       call->who, text_of_tensor(call->y_pred).s);
    if (o->from_logits) call->y_pred = ed_sigmoid(call->y_pred);
    return (call->y_pred = ed_clip(call->y_pred, 0, 1)) && add_counts(call, &wanted);
}

/* All but the last / the first threshold. */
static ed_tensor *left(ed_tensor *x)
{
    return ed_slice(x, .end = ED_INTS(-1));
}

static ed_tensor *right(ed_tensor *x)
{
    return ed_slice(x, .begin = ED_INTS(1));
}

/* The sum of the pieces' areas; of labels their mean, weighted. */
static ed_tensor *total_area(const auc_options *o, ed_tensor *pieces)
{
    if (!o->multi_label) return ed_reduce_sum(pieces);
    ed_tensor *each = ed_reduce_sum(pieces, .axis = ED_AXES(0));
    const ed_floats w = o->label_weights;
    if (!w.count) return ed_reduce_mean(each);
    ed_tensor *weights = ed_constant_of(ED_FLOAT64, w.values, ED_SHAPE(w.count));
    return ed_div_no_nan(ed_reduce_sum(ed_mul(each, weights)), ed_reduce_sum(weights));
}

/* Precision between two thresholds is not linear in recall: the area of a hyperbola. */
static ed_tensor *interpolated_precision(const auc_options *o, ed_tensor *const *v)
{
    ed_tensor *tp = v[TP], *p = ed_add(v[TP], v[FP]), *zero = ed_zeros_like(right(tp));
    ed_tensor *more_tp = ed_sub(left(tp), right(tp)), *more_p = ed_sub(left(p), right(p));
    ed_tensor *slope = ed_div_no_nan(more_tp, ed_maximum(more_p, zero));
    ed_tensor *intercept = ed_sub(right(tp), ed_mul(slope, right(p)));
    ed_tensor *both = ed_logical_and(ed_greater(left(p), 0), ed_greater(right(p), 0));
    ed_tensor *ratio = ed_where(both, ed_div_no_nan(left(p), ed_maximum(right(p), zero)), 1);
    ed_tensor *piece = ed_mul(slope, ed_add(more_tp, ed_mul(intercept, ed_log(ratio))));
    ed_tensor *all = ed_maximum(ed_add(right(tp), right(v[FN])), zero);
    return total_area(o, ed_div_no_nan(piece, all));
}

/* Gains of precision and recall; where nothing is found 1 and 0. */
static void gains(ed_tensor *const *v, ed_tensor **x, ed_tensor **y)
{
    ed_tensor *scale = ed_div_no_nan(ed_add(v[TP], v[FN]), ed_add(v[TN], v[FP]));
    ed_tensor *none = ed_equal(v[TP], 0);
    ed_tensor *recall = ed_sub(1, ed_mul(scale, ed_div_no_nan(v[FN], v[TP])));
    ed_tensor *precision = ed_sub(1, ed_mul(scale, ed_div_no_nan(v[FP], v[TP])));
    *x = ed_relu(ed_where(none, 0, recall));
    *y = ed_where(none, 1, precision);
}

static ed_tensor *auc_result(const void *options, ed_tensor *const *v)
{
    const auc_options *o = options;
    const bool between = !strcmp(o->summation_method, "interpolation");
    ed_tensor *x, *y;
    if (!strcmp(o->curve, "PR") && between) return interpolated_precision(o, v);
    if (!strcmp(o->curve, "PRGAIN"))
        gains(v, &x, &y);
    else if (!strcmp(o->curve, "PR"))
        x = rate(v, TP, FN), y = rate(v, TP, FP);
    else
        x = rate(v, FP, TN), y = rate(v, TP, FN);
    ed_tensor *height = between ? ed_mul(ed_add(left(y), right(y)), 0.5)
                        : !strcmp(o->summation_method, "minoring") ? ed_minimum(left(y), right(y))
                                                                   : ed_maximum(left(y), right(y));
    return total_area(o, ed_mul(ed_sub(left(x), right(x)), height));
}

METRIC(auc, AUC, 0, "the area under a curve of positives", .compares = true, .late = true, FOUR,
       .check = auc_check, .increments = auc_increments, .result = auc_result,
       .samples = ED_SAMPLES(
           {.inputs = {ED_SAMPLE_IN(-1, 1, 9), ED_SAMPLE_IN(0, 1, 9)}},
           {.inputs = {ED_SAMPLE_IN(0, 1, 5, 3), ED_SAMPLE_IN(0, 1, 5, 3)},
            .attrs = ED_ATTRS(ED_METRIC_AUC_OPTIONS, ed_metric_auc_options, .curve = "PR",
                              .multi_label = true, .num_thresholds = 7,
                              .label_weights = {(const double[]){1, 2, 3}, 3})},
           {.inputs = {ED_SAMPLE_IN(0, 1, 9), ED_SAMPLE_IN(-2, 2, 9)},
            .attrs = ED_ATTRS(ED_METRIC_AUC_OPTIONS, ed_metric_auc_options, .curve = "PRGAIN",
                              .from_logits = true, .summation_method = "minoring",
                              .thresholds = {(const double[]){0.7, 0.2}, 2})}))
