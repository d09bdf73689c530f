#include "nn/layer_core.h"
#include "ops/ops.h"
#include <string.h>

/* Layers of several inputs. Masks are those of steps: [batch, ...], of a lower rank than the
 * inputs, with which they broadcast once axes of size 1 are added behind them. */

/* t with axes of size 1 at axis `at`, so that it has this rank: a view. */
static ed_tensor *with_rank(ed_tensor *t, int at, int rank)
{
    if (!t || t->rank >= rank) return t;
    int64_t shape[ED_MAX_RANK];
    const int more = rank - t->rank;
    for (int i = 0; i < rank; i++) shape[i] = i < at ? t->shape[i] : 1;
    for (int i = at; i < t->rank; i++) shape[i + more] = t->shape[i];
    return ed_reshape(t, ((ed_ints){shape, rank}));
}

/* The highest rank; 0, with an error, if an input has no batch or another one. */
static int common_rank(const ed_layer *layer, const ed_layer_call *call)
{
    int rank = 0;
    for (int i = 0; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i], *first = call->inputs[0];
        if (!x->rank || x->shape[0] != first->shape[0])
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "the inputs must be [batch, ...] with one size of the batch, got %s "
                              "and %s",
                              text_of_tensor(first).s, text_of_tensor(x).s),
                   0;
        if (x->rank > rank) rank = x->rank;
    }
    return rank;
}

/* Input i with that rank, and its mask as it broadcasts with it; NULL without one. */
static ed_tensor *input(const ed_layer_call *call, int i, int rank)
{
    return with_rank(call->inputs[i], 1, rank);
}

static ed_tensor *mask_of(const ed_layer_call *call, int i, int rank)
{
    return with_rank(call->masks[i], call->masks[i] ? call->masks[i]->rank : 0, rank);
}

static bool all_masked(const ed_layer_call *call)
{
    for (int i = 0; i < call->n_inputs; i++)
        if (!call->masks[i]) return false;
    return true;
}

/* Checks that masks are bool and not of a higher rank than their inputs. */
static bool check_masks(const ed_layer *layer, const ed_layer_call *call)
{
    for (int i = 0; i < call->n_inputs; i++) {
        const ed_tensor *mask = call->masks[i];
        if (mask && (mask->dtype != ED_BOOL || mask->rank > call->inputs[i]->rank))
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "the mask of input %lld must be bool [batch, ...], got %s for %s",
                              text_nth(i), text_of_tensor(mask).s,
                              text_of_tensor(call->inputs[i]).s);
    }
    return true;
}

/* The output, with a mask that is true where one of the inputs' is, if all have one. */
static bool give(ed_layer_call *call, ed_tensor *y)
{
    if (!ed_layer_return(call, y)) return false;
    if (!all_masked(call)) return true;
    ed_tensor *mask = call->masks[0];
    for (int i = 1; i < call->n_inputs && mask; i++) mask = ed_logical_or(mask, call->masks[i]);
    return mask && ed_layer_return_mask(call, 0, mask);
}

/* ---- Element by element ---------------------------------------------------------------------- */

typedef ed_tensor *(*merge)(ed_tensor_like *a, ed_tensor_like *b);

static ed_tensor *fold(const ed_layer *layer, const ed_layer_call *call, merge f)
{
    const int rank = common_rank(layer, call);
    if (!rank || !check_masks(layer, call)) return NULL;
    ed_tensor *y = input(call, 0, rank);
    for (int i = 1; i < call->n_inputs && y; i++) y = f(y, input(call, i, rank));
    return y;
}

static bool add_forward(ed_layer *layer, ed_layer_call *call)
{
    return give(call, fold(layer, call, ed_add));
}

static bool subtract_forward(ed_layer *layer, ed_layer_call *call)
{
    return give(call, fold(layer, call, ed_sub));
}

static bool average_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *sum = fold(layer, call, ed_add);
    return give(call, sum ? ed_div(sum, ed_integer(call->n_inputs)) : NULL);
}

/* Elements of masked steps count as 1; the product of none but such is 0. */
static bool multiply_forward(ed_layer *layer, ed_layer_call *call)
{
    const int rank = common_rank(layer, call);
    if (!rank || !check_masks(layer, call)) return false;
    ed_tensor *y = NULL, *some = NULL;
    const bool all = all_masked(call);
    for (int i = 0; i < call->n_inputs; i++) {
        ed_tensor *x = input(call, i, rank), *mask = mask_of(call, i, rank);
        if (mask) x = ed_where(mask, x, ed_integer(1));
        if (all) some = some ? ed_logical_or(some, mask) : mask;
        y = y ? ed_mul(y, x) : x;
        if (!y) return false;
    }
    return give(call, all ? ed_where(some, y, ed_integer(0)) : y);
}

/* An element of a masked step is that of the other inputs. */
static bool extreme(ed_layer *layer, ed_layer_call *call, merge f)
{
    const int rank = common_rank(layer, call);
    if (!rank || !check_masks(layer, call)) return false;
    ed_tensor *y = input(call, 0, rank), *known = mask_of(call, 0, rank);
    for (int i = 1; i < call->n_inputs && y; i++) {
        ed_tensor *x = input(call, i, rank), *mask = mask_of(call, i, rank);
        if (mask) x = ed_where(mask, x, y);
        if (known) y = ed_where(known, y, x);
        known = known && mask ? ed_logical_or(known, mask) : NULL;
        y = f(y, x);
    }
    return give(call, y);
}

static bool maximum_forward(ed_layer *layer, ed_layer_call *call)
{
    return extreme(layer, call, ed_maximum);
}

static bool minimum_forward(ed_layer *layer, ed_layer_call *call)
{
    return extreme(layer, call, ed_minimum);
}

#define TWO_INPUTS .inputs = {{3, {2, 3, 2}}, {3, {2, 3, 2}}}, .n_inputs = 2
#define MERGE(symbol, SYMBOL, text, most)                                                          \
    LAYER(symbol, SYMBOL, 0, text, .min_inputs = most > 0 ? most : 1, .max_inputs = most,          \
          .forward = symbol##_forward,                                                             \
          .samples = LAYER_SAMPLES({TWO_INPUTS},                                                   \
                                   {.inputs = {{3, {2, 3, 2}}, {2, {2, 2}}}, .n_inputs = 2}))

MERGE(add, ADD, "the sum of the inputs", -1)
MERGE(subtract, SUBTRACT, "the first of two inputs less the second", 2)
MERGE(multiply, MULTIPLY, "the product of the inputs, element by element", -1)
MERGE(average, AVERAGE, "the mean of the inputs", -1)
MERGE(maximum, MAXIMUM, "the largest of the inputs' elements", -1)
MERGE(minimum, MINIMUM, "the smallest of the inputs' elements", -1)

/* ---- concatenate ----------------------------------------------------------------------------- */

/* The inputs' masks, of the inputs' shapes, joined; then whether any of the last axis is true. */
static ed_tensor *join_masks(const ed_layer_call *call, int64_t axis)
{
    ed_list *masks = ed_list_make(NULL, 0);
    for (int i = 0; i < call->n_inputs && masks; i++) {
        const ed_tensor *x = call->inputs[i];
        ed_tensor *mask = mask_of(call, i, x->rank);
        mask = mask ? ed_broadcast_to(mask, ed_shape(x)) : ed_ones(ed_shape(x), .dtype = ED_BOOL);
        masks = mask ? ed_list_concat(masks, ed_list_of(mask)) : NULL;
    }
    return masks ? ed_reduce_any(ed_concat(masks, .axis = axis), .axis = ED_AXES(-1)) : NULL;
}

static bool concatenate_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_concatenate_options *o = layer_options(layer);
    if (!check_masks(layer, call)) return false;
    ed_list *inputs = ed_list_make(call->inputs, call->n_inputs);
    if (!inputs || !ed_layer_return(call, ed_concat(inputs, .axis = o->axis))) return false;
    for (int i = 0; i < call->n_inputs; i++) {
        if (!call->masks[i]) continue;
        ed_tensor *mask = join_masks(call, o->axis);
        return mask && ed_layer_return_mask(call, 0, mask);
    }
    return true;
}

LAYER(concatenate, CONCATENATE, 0, "the inputs joined along an axis", .min_inputs = 1,
      .max_inputs = -1, .forward = concatenate_forward,
      .samples = LAYER_SAMPLES({TWO_INPUTS},
                               {.options = OPTIONS(concatenate, CONCATENATE, .axis = 1),
                                .inputs = {{3, {2, 3, 2}}, {3, {2, 1, 2}}, {3, {2, 2, 2}}},
                                .n_inputs = 3}))

/* ---- dot ------------------------------------------------------------------------------------- */

static bool dot_init(ed_layer *layer)
{
    const ed_layer_dot_options *o = layer_options(layer);
    return (o->axes.values && (o->axes.count == 1 || o->axes.count == 2)) ||
           ed_fail(ED_INVALID_ARGUMENT,
                   "dot: axes must be one axis for both inputs, or one for each; got %s",
                   text_of_ints(o->axes.values, o->axes.count).s);
}

/* The axis of input i, from 0; 0, with an error, if it has no such axis or it is the first. */
static int dot_axis(const ed_layer *layer, const ed_layer_call *call, int i)
{
    const ed_layer_dot_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[i];
    const int64_t given = o->axes.values[o->axes.count == 1 ? 0 : i];
    const int64_t axis = given < 0 ? given + x->rank : given;
    if (axis > 0 && axis < x->rank) return (int)axis;
    layer_fail(layer, ED_OUT_OF_RANGE, "axis %lld is not one behind the batch of input %lld, %s",
               (long long)given, text_nth(i), text_of_tensor(x).s);
    return 0;
}

/* x as matrices, [batch, other axes, axis] or [batch, axis, other axes]; appends the sizes of the
 * other axes to shape. */
static ed_tensor *as_matrices(ed_tensor *x, int axis, bool axis_last, int64_t *shape, int *n)
{
    int64_t axes[ED_MAX_RANK] = {0}, rest = 1;
    int at = axis_last ? 1 : 2;
    for (int i = 1; i < x->rank; i++) {
        if (i == axis) continue;
        axes[at++] = i;
        shape[(*n)++] = x->shape[i];
        rest *= x->shape[i];
    }
    axes[axis_last ? at : 1] = axis;
    x = ed_transpose(x, .perm = {axes, x->rank});
    const int64_t size = x ? x->shape[axis_last ? x->rank - 1 : 1] : 0;
    return x ? ed_reshape(x, axis_last ? ED_SHAPE(x->shape[0], rest, size)
                                       : ED_SHAPE(x->shape[0], size, rest))
             : NULL;
}

static bool dot_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_dot_options *o = layer_options(layer);
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    const int axis_a = common_rank(layer, call) ? dot_axis(layer, call, 0) : 0;
    const int axis_b = axis_a ? dot_axis(layer, call, 1) : 0;
    if (!axis_b) return false;
    if (a->shape[axis_a] != b->shape[axis_b] || a->rank + b->rank - 3 > ED_MAX_RANK)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "axis %d of %s and axis %d of %s must have one size, and the result at "
                          "most rank %d",
                          axis_a, text_of_tensor(a).s, axis_b, text_of_tensor(b).s, ED_MAX_RANK);
    if (o->normalize) {
        a = ed_l2_normalize(a, .axis = ED_AXES(axis_a), .epsilon = 1e-14);
        b = ed_l2_normalize(b, .axis = ED_AXES(axis_b), .epsilon = 1e-14);
        if (!a || !b) return false;
    }
    int64_t shape[2 * ED_MAX_RANK] = {a->shape[0]};
    int n = 1;
    a = as_matrices(a, axis_a, true, shape, &n);
    b = as_matrices(b, axis_b, false, shape, &n);
    if (n == 1) shape[n++] = 1;
    return ed_layer_return(call, ed_reshape(ed_matmul(a, b), ((ed_ints){shape, n})));
}

LAYER(dot, DOT, 1, "products of two inputs, summed along an axis of each", .min_inputs = 2,
      .max_inputs = 2, .init = dot_init, .forward = dot_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(dot, DOT, .axes = ED_SAMPLE_INTS(1, 2)),
                                .inputs = {{3, {2, 3, 2}}, {4, {2, 2, 3, 2}}},
                                .n_inputs = 2},
                               {.options = OPTIONS(dot, DOT, .axes = ED_SAMPLE_INTS(-1),
                                                   .normalize = true),
                                .inputs = {{2, {2, 3}}, {2, {2, 3}}},
                                .n_inputs = 2}))
