/* Confusion matrices and what follows from them. */
#include "nn/metrics/metric.h"
#include "ops/ops.h"

/* How classes are found in y_true and y_pred. */
typedef struct classes_wanted {
    int64_t num_classes;
    ed_ints ignored;
    bool sparse_true, sparse_pred; /* they name classes */
    int64_t axis;
} classes_wanted;

/* The classes that x names, or of its largest elements along the axis: int64. */
static ed_tensor *classes_in(ed_tensor *x, bool sparse, int64_t axis)
{
    if (!sparse) x = ed_argmax(x, .axis = axis);
    return x && x->dtype != ED_INT64 ? ed_cast(x, ED_INT64) : x;
}

static ed_tensor *flat(ed_tensor *x)
{
    return ed_reshape(x, ED_SHAPE(-1));
}

static bool add_matrix(metric_call *call, const classes_wanted *wanted)
{
    ed_tensor *t = classes_in(call->y_true, wanted->sparse_true, wanted->axis);
    ed_tensor *p = classes_in(call->y_pred, wanted->sparse_pred, wanted->axis);
    if (!t || !p || !loss_same_rank(&t, &p)) return false;
    if (!tensor_same_shape(t, p))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: y_true is %s, y_pred is %s; they must have one class each for the same "
                       "elements",
                       call->who, text_of_tensor(call->y_true).s, text_of_tensor(call->y_pred).s);
    ed_tensor *w =
        call->weight ? metric_spread(call, t) : ed_ones(ed_shape(t), .dtype = ED_FLOAT64);
    ed_tensor *counts;
    if (!loss_labels_that_count(t, wanted->ignored, &counts)) return false;
    if (counts) {
        t = ed_where(counts, t, 0);
        p = ed_where(counts, p, 0);
        w = ed_where(counts, w, 0);
    }
    if (!(w = flat(w))) return false; /* NULL would stand for no weights */
    call->increments[0] = ed_confusion_matrix(
        flat(t), flat(p), w, .num_classes = wanted->num_classes, .dtype = ED_FLOAT64);
    return call->increments[0];
}

/* ---- Intersection over union ----------------------------------------------------------------- */

/* The mean over the target classes (count 0: all) that occur. */
static ed_tensor *mean_iou(ed_tensor *matrix, ed_ints targets)
{
    ed_tensor *both = ed_diag_part(matrix);
    ed_tensor *sums = ed_add(ed_reduce_sum(matrix, .axis = ED_AXES(0)),
                             ed_reduce_sum(matrix, .axis = ED_AXES(1)));
    ed_tensor *all = ed_sub(sums, both);
    if (targets.count) {
        ed_tensor *at = ed_constant_of(ED_INT64, targets.values, ED_SHAPE(targets.count));
        both = ed_gather(both, at);
        all = ed_gather(all, at);
    }
    ed_tensor *occurs = ed_greater(all, 1e-9);
    ed_tensor *iou = ed_where(occurs, ed_div(both, ed_add(all, LOSS_EPSILON)), 0);
    ed_tensor *number = ed_reduce_sum(ed_cast(occurs, ED_FLOAT64));
    return ed_div(ed_reduce_sum(iou), ed_add(number, LOSS_EPSILON));
}

static bool are_targets(const char *who, ed_ints targets, int64_t num_classes)
{
    if (!targets.count)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: target_class_ids names no class", who);
    for (int64_t i = 0; i < targets.count; i++)
        if (targets.values[i] < 0 || targets.values[i] >= num_classes)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: target_class_ids has %lld, which must be in 0..%lld", who,
                           (long long)targets.values[i], (long long)num_classes - 1);
    return true;
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

/* The shape, the increments and the definition of a kind; the fields of METRIC that are left. */
#define MATRIX(symbol, SYMBOL, needed, text, sparse_true_, ...)                                    \
    static int symbol##_shape(const void *options, int64_t *shape)                                 \
    {                                                                                              \
        shape[0] = shape[1] = ((const ed_metric_##symbol##_options *)options)->num_classes;        \
        return 2;                                                                                  \
    }                                                                                              \
    static bool symbol##_increments(metric_call *call)                                             \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = call->options;                                     \
        return add_matrix(call, &(const classes_wanted){.num_classes = o->num_classes,             \
                                                        .ignored = o->ignore_class,                \
                                                        .sparse_true = sparse_true_,               \
                                                        .sparse_pred = o->sparse_y_pred,           \
                                                        .axis = o->axis});                         \
    }                                                                                              \
    METRIC(symbol, SYMBOL, needed, text, .compares = true, .operands = LOSS_ANY,                   \
           .variables = {"total_confusion_matrix"}, .shape = symbol##_shape,                       \
           .increments = symbol##_increments, __VA_ARGS__)

/* The result of a kind, by its options o and the matrix v[0]. */
#define RESULT(symbol, expression)                                                                 \
    static ed_tensor *symbol##_result(const void *options, ed_tensor *const *v)                    \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = options;                                           \
        (void)o;                                                                                   \
        return expression;                                                                         \
    }
#define CHECK(symbol)                                                                              \
    static bool symbol##_check(const char *who, const void *options)                               \
    {                                                                                              \
        const ed_metric_##symbol##_options *o = options;                                           \
        return are_targets(who, o->target_class_ids, o->num_classes);                              \
    }

/* Samples of classes that are named / one-hot, with further options. */
#define NAMED(SYMBOL, symbol, ...)                                                                 \
    .samples = ED_SAMPLES(                                                                         \
        {.inputs = {ED_SAMPLE_IN(0, 3, 9), ED_SAMPLE_IN(0, 3, 9)},                                 \
         .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,             \
                           .num_classes = 4, ##__VA_ARGS__)},                                      \
        {.inputs = {ED_SAMPLE_IN(0, 4, 3, 2), ED_SAMPLE_IN(0, 3, 3, 2)},                           \
         .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,             \
                           .num_classes = 4, .ignore_class = ED_SAMPLE_INTS(4), ##__VA_ARGS__)})
#define ONE_HOT(SYMBOL, symbol, ...)                                                               \
    .samples =                                                                                     \
        ED_SAMPLES({.inputs = {ED_DISTINCT_IN(0, 1, 9, 4), ED_DISTINCT_IN(0, 1, 9, 4)},            \
                    .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,  \
                                      .num_classes = 4, ##__VA_ARGS__)})

RESULT(confusion_matrix, v[0])
MATRIX(confusion_matrix, CONFUSION_MATRIX, 1, "how often each class was predicted as each",
       o->sparse_y_true, .result = confusion_matrix_result,
       NAMED(CONFUSION_MATRIX, confusion_matrix))

RESULT(iou, mean_iou(v[0], o->target_class_ids))
CHECK(iou)
MATRIX(iou, IOU, 2, "intersection over union of some classes", o->sparse_y_true, .check = iou_check,
       .result = iou_result, NAMED(IOU, iou, .target_class_ids = ED_SAMPLE_INTS(0, 2)))

RESULT(mean_iou, mean_iou(v[0], (ed_ints){NULL, 0}))
MATRIX(mean_iou, MEAN_IOU, 1, "intersection over union of all classes", o->sparse_y_true,
       .result = mean_iou_result, NAMED(MEAN_IOU, mean_iou))

RESULT(one_hot_iou, mean_iou(v[0], o->target_class_ids))
CHECK(one_hot_iou)
MATRIX(one_hot_iou, ONE_HOT_IOU, 2, "intersection over union of some classes, y_true being one-hot",
       false, .check = one_hot_iou_check, .result = one_hot_iou_result,
       ONE_HOT(ONE_HOT_IOU, one_hot_iou, .target_class_ids = ED_SAMPLE_INTS(0, 2)))

RESULT(one_hot_mean_iou, mean_iou(v[0], (ed_ints){NULL, 0}))
MATRIX(one_hot_mean_iou, ONE_HOT_MEAN_IOU, 1,
       "intersection over union of all classes, y_true being one-hot", false,
       .result = one_hot_mean_iou_result, ONE_HOT(ONE_HOT_MEAN_IOU, one_hot_mean_iou))

/* ---- Two classes ----------------------------------------------------------------------------- */

static int binary_iou_shape(const void *options, int64_t *shape)
{
    (void)options;
    shape[0] = shape[1] = 2;
    return 2;
}

static bool binary_iou_increments(metric_call *call)
{
    const ed_metric_binary_iou_options *o = call->options;
    call->y_pred = ed_cast(ed_greater_equal(call->y_pred, o->threshold), ED_INT64);
    return call->y_pred &&
           add_matrix(call, &(const classes_wanted){
                                .num_classes = 2, .sparse_true = true, .sparse_pred = true});
}

RESULT(binary_iou, mean_iou(v[0], o->target_class_ids))
METRIC(binary_iou, BINARY_IOU, 0, "intersection over union of two classes", .compares = true,
       .variables = {"total_confusion_matrix"}, .shape = binary_iou_shape,
       .increments = binary_iou_increments, .result = binary_iou_result,
       .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 9), ED_SAMPLE_IN(0, 1, 9)}},
                             {.inputs = {ED_SAMPLE_IN(0, 1, 5, 2), ED_SAMPLE_IN(0, 1, 5, 2)},
                              .attrs = ED_ATTRS(ED_METRIC_BINARY_IOU_OPTIONS,
                                                ed_metric_binary_iou_options, .threshold = 0.3,
                                                .target_class_ids = ED_SAMPLE_INTS(1))}))
