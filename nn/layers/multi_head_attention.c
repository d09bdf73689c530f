#include "nn/layers/attend.h"
#include "nn/layers/einsum_dense.h"
#include "ops/ops.h"
#include "track/graph.h"
#include <math.h>

/*
 * The projections are layers for inputs of any rank, [..., in] to [..., heads, size]. Axes over
 * which attention goes become one; the others, if there are any, lie beside the batch:
 *
 *     [batch, ..., in] -> [batch, others..., heads, steps, size] -> attention and all the way back
 */

enum { QUERY, KEY, VALUE, OUTPUT, PROJECTIONS };

typedef struct multi_head {
    ed_layer *of[PROJECTIONS]; /* the children */
    int64_t heads;             /* of query */
    bool causal, sized;        /* sized: the output's size was given */
    bool returns_weights;
    double dropout;
    ed_generator *generator;
    ed_ints axes; /* in the options */
} multi_head;

/* Adds an einsum_dense; o has the options of weights. */
#define PROJECTION(layer, o, name_, equation_, axes_, ...)                                         \
    ed_layer_add_child(layer, ed_layer_einsum_dense(equation_, __VA_ARGS__,                        \
                                                    .bias_axes = (o)->use_bias ? axes_ : NULL,     \
                                                    .kernel_initializer = (o)->kernel_initializer, \
                                                    .kernel_regularizer = (o)->kernel_regularizer, \
                                                    .kernel_constraint = (o)->kernel_constraint,   \
                                                    .bias_initializer = (o)->bias_initializer,     \
                                                    .bias_regularizer = (o)->bias_regularizer,     \
                                                    .bias_constraint = (o)->bias_constraint,       \
                                                    .dtype = (o)->dtype, .name = name_))

static bool added(const multi_head *m)
{
    for (int i = 0; i < PROJECTIONS; i++)
        if (!m->of[i]) return false;
    return true;
}

static bool multi_head_attention_init(ed_layer *layer)
{
    /* Letters of the output's axes, of which there may be several. */
    static const char *const outputs[] = {"...nh,nha->...a", "...nh,nhab->...ab",
                                          "...nh,nhabc->...abc"};
    static const char *const letters[] = {"a", "ab", "abc"};
    const ed_layer_multi_head_attention_options *o = layer_options(layer);
    multi_head *m = ed_layer_state(layer);
    const int64_t n = o->num_heads, size = o->value_dim ? o->value_dim : o->key_dim, any = -1;
    const ed_ints shape = o->output_shape.count ? o->output_shape : (ed_ints){&any, 1};
    if (shape.count > 3)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "output_shape has at most 3 sizes, got %lld",
                          (long long)shape.count);
    m->heads = n;
    m->causal = o->use_causal_mask;
    m->returns_weights = o->return_attention_scores;
    m->sized = o->output_shape.count;
    m->dropout = o->dropout;
    m->generator = o->generator;
    m->axes = o->attention_axes;
    m->of[QUERY] = PROJECTION(layer, o, "query", "...i,inh->...nh", "nh", ED_INTS(n, o->key_dim));
    m->of[KEY] = PROJECTION(layer, o, "key", "...i,inh->...nh", "nh", ED_INTS(n, o->key_dim));
    m->of[VALUE] = PROJECTION(layer, o, "value", "...i,inh->...nh", "nh", ED_INTS(n, size));
    m->of[OUTPUT] = PROJECTION(layer, o, "attention_output", outputs[shape.count - 1],
                               letters[shape.count - 1], shape);
    return added(m);
}

static bool group_query_attention_init(ed_layer *layer)
{
    const ed_layer_group_query_attention_options *o = layer_options(layer);
    multi_head *m = ed_layer_state(layer);
    const int64_t n = o->num_query_heads, few = o->num_key_value_heads, size = o->head_dim;
    if (n % few)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "num_query_heads must be a multiple of num_key_value_heads, got %lld and "
                          "%lld",
                          (long long)n, (long long)few);
    m->heads = n;
    m->causal = o->use_causal_mask;
    m->returns_weights = o->return_attention_scores;
    m->dropout = o->dropout;
    m->generator = o->generator;
    m->of[QUERY] = PROJECTION(layer, o, "query", "...i,inh->...nh", "nh", ED_INTS(n, size));
    m->of[KEY] = PROJECTION(layer, o, "key", "...i,inh->...nh", "nh", ED_INTS(few, size));
    m->of[VALUE] = PROJECTION(layer, o, "value", "...i,inh->...nh", "nh", ED_INTS(few, size));
    m->of[OUTPUT] = PROJECTION(layer, o, "attention_output", "...nh,nha->...a", "a", ED_INTS(-1));
    return added(m);
}

/* Of one call: which axes attention goes over. */
typedef struct axes {
    int rank;        /* of the inputs */
    int n, n_others; /* of axes with attention, and of the others but the first and the last */
    int64_t at[ED_MAX_RANK], others[ED_MAX_RANK];
} axes;

static bool find_axes(const ed_layer *layer, const multi_head *m, const ed_tensor *q, axes *a)
{
    bool used[ED_MAX_RANK] = {false};
    *a = (axes){.rank = q->rank};
    for (int64_t i = 0; i < m->axes.count; i++) {
        const int64_t given = m->axes.values[i], at = given < 0 ? given + q->rank : given;
        if (at < 1 || at > q->rank - 2 || used[at])
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "attention_axes: %lld is not an axis between the first and the last "
                              "of %s",
                              text_nth(given), text_of_tensor(q).s);
        used[at] = true;
    }
    for (int i = 1; i < q->rank - 1; i++)
        if (used[i] || !m->axes.count)
            a->at[a->n++] = i;
        else
            a->others[a->n_others++] = i;
    return true;
}

static bool check_inputs(const ed_layer *layer, const ed_layer_call *call, const axes *a)
{
    const ed_tensor *q = call->inputs[0], *v = call->inputs[1];
    const ed_tensor *k = call->n_inputs > 2 ? call->inputs[2] : v;
    if (!layer_accepts(layer, v, q->rank, false) || !layer_accepts(layer, k, q->rank, false))
        return false;
    bool fine = q->shape[0] == v->shape[0];
    for (int i = 0; i < q->rank - 1; i++) fine &= v->shape[i] == k->shape[i];
    for (int i = 0; i < a->n_others; i++) fine &= q->shape[a->others[i]] == v->shape[a->others[i]];
    if (fine) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "query [batch, targets, ...], value and key [batch, sources, ...] don't fit: "
                      "query is %s, value %s, key %s",
                      text_of_tensor(q).s, text_of_tensor(v).s, text_of_tensor(k).s);
}

static ed_tensor *project(ed_layer *child, ed_tensor *x)
{
    ed_tensor *none = NULL, *y = NULL;
    if (!x) return NULL;
    ed_layer_call call = {.n_inputs = 1, .inputs = &x, .masks = &none};
    if (layer_call(child, &call)) y = call.outputs[0];
    layer_call_end(&call);
    return y;
}

/* The order of axes batch, others, heads, those with attention, size. */
static void order(const axes *a, int64_t *perm)
{
    int n = 0;
    perm[n++] = 0;
    for (int i = 0; i < a->n_others; i++) perm[n++] = a->others[i];
    perm[n++] = a->rank - 1;
    for (int i = 0; i < a->n; i++) perm[n++] = a->at[i];
    perm[n] = a->rank;
}

/* [batch, ..., heads, size] to [batch, others..., heads, steps, size]. */
static ed_tensor *to_heads(const axes *a, ed_tensor *x)
{
    int64_t perm[ED_MAX_RANK], shape[ED_MAX_RANK];
    if (!x) return NULL;
    order(a, perm);
    if (!(x = ed_transpose(x, .perm = {perm, a->rank + 1})) || a->n == 1) return x;
    const int leading = a->n_others + 2;
    for (int i = 0; i < leading; i++) shape[i] = x->shape[i];
    shape[leading] = 1;
    for (int i = 0; i < a->n; i++) shape[leading] *= x->shape[leading + i];
    shape[leading + 1] = x->shape[x->rank - 1];
    return ed_reshape(x, ((ed_ints){shape, leading + 2}));
}

/* And back, with query's steps. */
static ed_tensor *from_heads(const axes *a, ed_tensor *x, const ed_tensor *q)
{
    int64_t perm[ED_MAX_RANK], back[ED_MAX_RANK], shape[ED_MAX_RANK];
    if (!x) return NULL;
    order(a, perm);
    const int leading = a->n_others + 2;
    for (int i = 0; i < leading; i++) shape[i] = x->shape[i];
    for (int i = 0; i < a->n; i++) shape[leading + i] = q->shape[a->at[i]];
    shape[a->rank] = x->shape[x->rank - 1];
    for (int i = 0; i <= a->rank; i++) back[perm[i]] = i;
    if (a->n != 1 && !(x = ed_reshape(x, ((ed_ints){shape, a->rank + 1})))) return NULL;
    return ed_transpose(x, .perm = {back, a->rank + 1});
}

/* A bool mask that was given, to [batch, 1..., heads or 1, targets, sources]. */
static ed_tensor *given_mask(const ed_layer *layer, const axes *a, ed_tensor *mask)
{
    const bool heads = mask->rank == 2 + 2 * a->n;
    if (mask->dtype != ED_BOOL || (!heads && mask->rank != 1 + 2 * a->n))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the mask, the fourth input, must be bool [batch, targets, sources] or "
                          "[batch, heads, targets, sources], got %s",
                          text_of_tensor(mask).s);
    int64_t shape[ED_MAX_RANK] = {mask->shape[0]};
    int n = 1;
    for (int i = 0; i < a->n_others; i++) shape[n++] = 1;
    shape[n++] = heads ? mask->shape[1] : 1;
    for (int side = 0; side < 2; side++) {
        shape[n] = 1;
        for (int i = 0; i < a->n; i++) shape[n] *= mask->shape[mask->rank - (2 - side) * a->n + i];
        n++;
    }
    return ed_reshape(mask, ((ed_ints){shape, n}));
}

/* The mask of an input, bool [batch, steps], along the last axis but `from_end`. */
static ed_tensor *step_mask(const ed_layer *layer, const axes *a, ed_tensor *mask, int from_end)
{
    if (a->n != 1 || mask->rank != 2)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "masks of inputs are for attention over one axis, [batch, steps]; got %s "
                          "(a mask as the fourth input is for all)",
                          text_of_tensor(mask).s);
    int64_t shape[ED_MAX_RANK] = {mask->shape[0]};
    const int rank = a->n_others + 4;
    for (int i = 1; i < rank; i++) shape[i] = 1;
    shape[rank - 1 - from_end] = mask->shape[1];
    return ed_reshape(mask, ((ed_ints){shape, rank}));
}

/* All masks in one, NULL if there is none; false, with an error, on failure. */
static bool join_masks(const ed_layer *layer, const axes *a, const ed_layer_call *call,
                       ed_tensor **joined)
{
    ed_tensor *parts[4] = {NULL}, *all = NULL;
    int n = 0;
    if (call->n_inputs > 3 && !(parts[n++] = given_mask(layer, a, call->inputs[3]))) return false;
    if (call->masks[0] && !(parts[n++] = step_mask(layer, a, call->masks[0], 1))) return false;
    if (call->masks[1] && !(parts[n++] = step_mask(layer, a, call->masks[1], 0))) return false;
    if (call->n_inputs > 2 && call->masks[2] && call->inputs[2] != call->inputs[1] &&
        !(parts[n++] = step_mask(layer, a, call->masks[2], 0)))
        return false;
    for (int i = 0; i < n; i++)
        if (!(all = all ? ed_logical_and(all, parts[i]) : parts[i])) return false;
    *joined = all;
    return true;
}

/* As ed_scaled_dot_product_attention, and the weights before dropout. */
static ed_tensor *by_weights(const multi_head *m, ed_tensor *q, ed_tensor *k, ed_tensor *v,
                             ed_tensor *mask, double dropout, ed_tensor **weights)
{
    const int heads = q->rank - 3;
    const int64_t times = k->shape[heads] ? q->shape[heads] / k->shape[heads] : 1;
    if (times > 1) {
        k = ed_repeat(k, times, .axis = ED_AXES(heads));
        v = ed_repeat(v, times, .axis = ED_AXES(heads));
    }
    ed_tensor *scores =
        ed_matmul(ed_mul(q, 1 / sqrt((double)q->shape[q->rank - 1])), k, .transpose_b = true);
    *weights = scores ? attend_weights(scores, mask, m->causal) : NULL;
    ed_tensor *used = *weights;
    if (used && dropout > 0) used = ed_dropout(used, dropout, .generator = m->generator);
    return used ? ed_matmul(used, v) : NULL;
}

/* The weights of several axes with attention: [..., targets..., sources...]. */
static ed_tensor *of_axes(const axes *a, ed_tensor *weights, const ed_tensor *q, const ed_tensor *k)
{
    if (a->n == 1) return weights;
    int64_t shape[2 * ED_MAX_RANK];
    int n = 0;
    for (; n < weights->rank - 2; n++) shape[n] = weights->shape[n];
    for (int i = 0; i < a->n; i++) shape[n++] = q->shape[a->at[i]];
    for (int i = 0; i < a->n; i++) shape[n++] = k->shape[a->at[i]];
    return ed_reshape(weights, ((ed_ints){shape, n}));
}

static bool multi_head_forward(ed_layer *layer, ed_layer_call *call)
{
    const multi_head *m = ed_layer_state(layer);
    ed_tensor *q = call->inputs[0], *v = call->inputs[1], *mask;
    ed_tensor *k = call->n_inputs > 2 ? call->inputs[2] : v;
    axes a;
    if (!layer_accepts(layer, q, 3, true) || !find_axes(layer, m, q, &a) ||
        !check_inputs(layer, call, &a) || !join_masks(layer, &a, call, &mask))
        return false;
    if (q->rank + 1 > ED_MAX_RANK)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must have rank < %d, got %s",
                          ED_MAX_RANK, text_of_tensor(q).s);
    ed_tensor *heads = to_heads(&a, project(m->of[QUERY], q));
    ed_tensor *keys = to_heads(&a, project(m->of[KEY], k));
    ed_tensor *values = to_heads(&a, project(m->of[VALUE], v));
    if (!heads || !keys || !values) return false;
    const double dropout = call->training ? m->dropout : 0;
    if (!m->returns_weights) {
        ed_tensor *y =
            ed_scaled_dot_product_attention(heads, keys, values, mask, NULL, .is_causal = m->causal,
                                            .generator = m->generator, .dropout_rate = dropout);
        return ed_layer_return(call, project(m->of[OUTPUT], from_heads(&a, y, q)));
    }
    ed_tensor *weights, *y = by_weights(m, heads, keys, values, mask, dropout, &weights);
    return y && ed_layer_return(call, project(m->of[OUTPUT], from_heads(&a, y, q))) &&
           ed_layer_return(call, of_axes(&a, weights, q, k));
}

static bool multi_head_build(ed_layer *layer, const ed_layer_call *call)
{
    const multi_head *m = ed_layer_state(layer);
    const ed_tensor *q = call->inputs[0];
    if (!layer_accepts(layer, q, 3, true)) return false;
    if (!m->sized) einsum_dense_set_size(m->of[OUTPUT], q->shape[q->rank - 1]);
    return true;
}

/* Keras' names of the children; a generator that was given. */
static void multi_head_track(ed_layer *layer, ed_tracker *t)
{
    static const char *const names[] = {"_query_dense", "_key_dense", "_value_dense",
                                        "_output_dense"};
    const multi_head *m = ed_layer_state(layer);
    for (int i = 0; i < PROJECTIONS; i++)
        graph_name(t, t->self, GRAPH_ALIAS, names[i], graph_object(t, m->of[i]));
    if (m->generator) ed_track(t, "generator", m->generator);
}

#define MULTI_HEAD(symbol, SYMBOL, needed, text, ...)                                              \
    LAYER(symbol, SYMBOL, needed, text, .state_size = sizeof(multi_head), .min_inputs = 2,         \
          .max_inputs = 4, .init = symbol##_init, .build = multi_head_build,                       \
          .forward = multi_head_forward, .track = multi_head_track, .passes_masks = true,          \
          .samples = LAYER_SAMPLES(__VA_ARGS__))

MULTI_HEAD(
    multi_head_attention, MULTI_HEAD_ATTENTION, 2, "attention of several projections",
    {.options = OPTIONS(multi_head_attention, MULTI_HEAD_ATTENTION, .num_heads = 2, .key_dim = 3),
     .inputs = {{3, {2, 2, 3}}, {3, {2, 4, 2}}},
     .n_inputs = 2},
    {.options = OPTIONS(multi_head_attention, MULTI_HEAD_ATTENTION, .num_heads = 1, .key_dim = 2,
                        .value_dim = 3, .use_bias = false, .output_shape = ED_SAMPLE_INTS(2, 2),
                        .use_causal_mask = true, .dropout = 0.5),
     .inputs = {{3, {1, 2, 3}}, {3, {1, 3, 2}}, {3, {1, 3, 3}}},
     .n_inputs = 3},
    {.options = OPTIONS(multi_head_attention, MULTI_HEAD_ATTENTION, .num_heads = 2, .key_dim = 2,
                        .attention_axes = ED_SAMPLE_INTS(1)),
     .inputs = {{4, {1, 2, 2, 2}}, {4, {1, 3, 2, 2}}},
     .n_inputs = 2},
    {.options = OPTIONS(multi_head_attention, MULTI_HEAD_ATTENTION, .num_heads = 1, .key_dim = 2),
     .inputs = {{4, {1, 2, 2, 2}}, {4, {1, 3, 1, 2}}},
     .n_inputs = 2},
    {.options = OPTIONS(multi_head_attention, MULTI_HEAD_ATTENTION, .num_heads = 1, .key_dim = 2,
                        .return_attention_scores = true, .use_causal_mask = true),
     .inputs = {{4, {1, 2, 2, 2}}, {4, {1, 3, 1, 2}}},
     .n_inputs = 2})

MULTI_HEAD(group_query_attention, GROUP_QUERY_ATTENTION, 3,
           "attention with fewer heads of key and value",
           {.options = OPTIONS(group_query_attention, GROUP_QUERY_ATTENTION, .head_dim = 2,
                               .num_query_heads = 4, .num_key_value_heads = 2),
            .inputs = {{3, {2, 2, 3}}, {3, {2, 3, 2}}},
            .n_inputs = 2},
           {.options = OPTIONS(group_query_attention, GROUP_QUERY_ATTENTION, .head_dim = 2,
                               .num_query_heads = 4, .num_key_value_heads = 2, .dropout = 0.5,
                               .return_attention_scores = true),
            .inputs = {{3, {2, 2, 3}}, {3, {2, 3, 2}}},
            .n_inputs = 2})
