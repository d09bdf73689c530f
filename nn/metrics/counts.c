#include "nn/metrics/counts.h"
#include "ops/ops.h"

/*
 * For each prediction the number k of thresholds below it is found by a binary search; how many
 * predictions have each k, summed from the end, says how many are above each threshold. So a batch
 * of n costs n log(thresholds) and not their product.
 */

/* ---- Operands -------------------------------------------------------------------------------- */

/* x where it is one of the k largest of its row, else less than all thresholds. */
static ed_tensor *only_top(ed_tensor *x, int64_t k)
{
    const int64_t n = x->shape[x->rank - 1];
    ed_tensor *at;
    if (k >= n) return x;
    if (!ed_top_k(x, k, &at)) return NULL;
    ed_tensor *each = ed_one_hot(at, n, .dtype = ED_BOOL);
    return ed_where(ed_reduce_any(each, .axis = ED_AXES(-2)), x, -1e30);
}

/* One class of the last axis, which stays with size 1. */
static ed_tensor *only_class(ed_tensor *x, int64_t i)
{
    return ed_strided_slice(x, ED_ELLIPSIS, ED_RANGE(i, i + 1));
}

static bool select_operands(const metric_call *call, const counts_wanted *wanted, ed_tensor **t,
                            ed_tensor **p)
{
    if (wanted->top_k) *p = only_top(*p, wanted->top_k);
    if (!*p) return false;
    if (wanted->class_id < 0) return true;
    if ((*p)->rank < 2 || wanted->class_id >= (*p)->shape[(*p)->rank - 1])
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: class_id is %lld, y_pred is %s; it must be [batch, classes] with more "
                       "classes",
                       call->who, (long long)wanted->class_id, text_of_tensor(*p).s);
    *t = only_class(*t, wanted->class_id);
    *p = only_class(*p, wanted->class_id);
    return *t && *p;
}

/* The weights of all elements of p, flat; NULL without an error: all are 1. */
static ed_tensor *element_weights(const metric_call *call, const counts_wanted *wanted,
                                  const ed_tensor *p)
{
    const ed_floats labels = wanted->label_weights;
    ed_tensor *w = call->weight ? metric_spread(call, p) : NULL;
    if (call->weight && !w) return NULL;
    if (labels.count && !wanted->multi_label) {
        if (labels.count != p->shape[p->rank - 1])
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: label_weights has %lld numbers, y_pred is %s; its last axis must "
                           "have as many",
                           call->who, (long long)labels.count, text_of_tensor(p).s);
        ed_tensor *each = ed_constant_of(ED_FLOAT64, labels.values, ED_SHAPE(labels.count));
        each = ed_broadcast_to(each, ed_shape(p));
        w = w ? ed_mul(w, each) : each;
    }
    return w ? ed_reshape(w, ED_SHAPE(-1)) : NULL;
}

/* ---- Thresholds ------------------------------------------------------------------------------ */

/* Where each threshold is in ascending order. */
static void rank_thresholds(ed_floats t, int64_t *ranks)
{
    for (int64_t i = 0; i < t.count; i++) {
        ranks[i] = 0;
        for (int64_t j = 0; j < t.count; j++)
            ranks[i] += t.values[j] < t.values[i] || (t.values[j] == t.values[i] && j < i);
    }
}

static bool ascend(ed_floats t)
{
    for (int64_t i = 1; i < t.count; i++)
        if (t.values[i] < t.values[i - 1]) return false;
    return true;
}

/* The thresholds, ascending, in the dtype of the predictions, as Keras compares them; *ranks: where
 * each one went, NULL if they ascend. NULL with an error. */
static ed_tensor *sorted_thresholds(ed_floats t, ed_dtype dtype, ed_tensor **ranks)
{
    ed_tensor *all = ed_constant_of(ED_FLOAT64, t.values, ED_SHAPE(t.count));
    *ranks = NULL;
    if (!ascend(t)) {
        int64_t *places = ed_scope_alloc((size_t)t.count * sizeof *places);
        if (!places) return NULL;
        rank_thresholds(t, places);
        if (!(*ranks = ed_constant_of(ED_INT64, places, ED_SHAPE(t.count)))) return NULL;
        all = ed_sort(all);
    }
    return all && dtype != ED_FLOAT64 ? ed_cast(all, dtype) : all;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

/* How many elements, by weight, have each label, class and number of thresholds below:
 * [labels, 2, thresholds + 1]. */
static ed_tensor *bins(const counts_wanted *wanted, ed_tensor *sorted, ed_tensor *t, ed_tensor *p,
                       ed_tensor *weights)
{
    const int64_t n = wanted->thresholds.count + 1;
    const int64_t labels = wanted->multi_label ? p->shape[1] : 1;
    ed_tensor *finite = ed_where(ed_is_nan(p), -1e30, p); /* NaN is not above any threshold */
    ed_tensor *below = ed_searchsorted(sorted, ed_reshape(finite, ED_SHAPE(-1)));
    ed_tensor *positive = ed_reshape(ed_cast(ed_not_equal(t, 0), ED_INT64), ED_SHAPE(-1));
    ed_tensor *at = ed_add(below, ed_mul(positive, (double)n));
    if (wanted->multi_label) {
        ed_tensor *label = ed_range(0, (double)labels, .dtype = ED_INT64);
        label = ed_reshape(ed_broadcast_to(label, ed_shape(p)), ED_SHAPE(-1));
        at = ed_add(at, ed_mul(label, (double)(2 * n)));
    }
    ed_tensor *ones = weights ? weights : ed_ones(ed_shape(at), .dtype = ED_FLOAT64);
    ed_tensor *count = ed_unsorted_segment_sum(ones, at, 2 * n * labels);
    return ed_reshape(count, ED_SHAPE(labels, 2, n));
}

/* [labels, 2, thresholds] of one class as [thresholds], with multi_label [thresholds, labels], in
 * the order in which the thresholds were given. */
static ed_tensor *part(const counts_wanted *wanted, ed_tensor *x, int64_t class, ed_tensor *ranks)
{
    ed_tensor *rows = ed_strided_slice(x, ED_ALL, ED_INDEX(class));
    rows = wanted->multi_label ? ed_transpose(rows) : ed_reshape(rows, ED_SHAPE(-1));
    return ranks ? ed_gather(rows, ranks) : rows;
}

bool counts_of(const metric_call *call, const counts_wanted *wanted, counts *to)
{
    ed_tensor *t = call->y_true, *p = call->y_pred, *ranks;
    if (!select_operands(call, wanted, &t, &p)) return false;
    if (wanted->multi_label && p->rank != 2)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: with multi_label y_pred must be [batch, labels], got %s", call->who,
                       text_of_tensor(p).s);
    ed_tensor *weights = element_weights(call, wanted, p);
    if (!weights && (call->weight || (wanted->label_weights.count && !wanted->multi_label)))
        return false;
    ed_tensor *sorted = sorted_thresholds(wanted->thresholds, p->dtype, &ranks);
    ed_tensor *all = sorted ? bins(wanted, sorted, t, p, weights) : NULL;
    /* [labels, 2, thresholds]: above each threshold, and not. */
    ed_tensor *from = ed_cumsum(all, .axis = -1, .reverse = true);
    ed_tensor *above = ed_strided_slice(from, ED_ELLIPSIS, ED_RANGE(1, INT64_MAX));
    ed_tensor *not_above = ed_strided_slice(ed_cumsum(all, .axis = -1), ED_ELLIPSIS,
                                            ED_RANGE(0, wanted->thresholds.count));
    to->true_positives = part(wanted, above, 1, ranks);
    to->false_positives = part(wanted, above, 0, ranks);
    to->true_negatives = part(wanted, not_above, 0, ranks);
    to->false_negatives = part(wanted, not_above, 1, ranks);
    return to->true_positives && to->false_positives && to->true_negatives && to->false_negatives;
}
