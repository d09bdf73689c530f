#include "nn/layers/attend.h"
#include "ops/ops.h"
#include <string.h>

/* attention and additive_attention: three tensors [batch, length, size]. */

typedef struct scorer {
    bool concat, additive, causal, returns_weights;
    double dropout;
    ed_generator *generator;
    ed_tensor *scale, *weight; /* the layer's */
} scorer;

static bool attention_init(ed_layer *layer)
{
    const ed_layer_attention_options *o = layer_options(layer);
    scorer *s = ed_layer_state(layer);
    *s = (scorer){.concat = !strcmp(o->score_mode, "concat"),
                  .causal = o->use_causal_mask,
                  .returns_weights = o->return_attention_scores,
                  .dropout = o->dropout,
                  .generator = o->generator};
    return true;
}

static bool additive_attention_init(ed_layer *layer)
{
    const ed_layer_additive_attention_options *o = layer_options(layer);
    scorer *s = ed_layer_state(layer);
    *s = (scorer){.additive = true,
                  .causal = o->use_causal_mask,
                  .returns_weights = o->return_attention_scores,
                  .dropout = o->dropout,
                  .generator = o->generator};
    return true;
}

static bool check_three(const ed_layer *layer, const ed_layer_call *call)
{
    const ed_tensor *q = call->inputs[0], *v = call->inputs[1],
                    *k = call->inputs[call->n_inputs > 2 ? 2 : 1];
    for (int i = 0; i < call->n_inputs; i++)
        if (!layer_accepts(layer, call->inputs[i], 3, false)) return false;
    if (q->shape[0] == v->shape[0] && v->shape[0] == k->shape[0] && v->shape[1] == k->shape[1] &&
        q->shape[2] == k->shape[2])
        return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "query [batch, targets, size], value [batch, sources, n] and key [batch, "
                      "sources, size] don't fit: query is %s, value %s, key %s",
                      text_of_tensor(q).s, text_of_tensor(v).s, text_of_tensor(k).s);
}

static bool attention_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_attention_options *o = layer_options(layer);
    scorer *s = ed_layer_state(layer);
    const ed_dtype dtype = call->inputs[0]->dtype;
    if (!check_three(layer, call)) return false;
    s->scale = s->weight = NULL;
    if (o->use_scale &&
        !(s->scale = ed_layer_add_weight(layer, "scale", ED_SHAPE(),
                                         .initializer = ed_initializer_ones(), .dtype = dtype)))
        return false;
    return !s->concat ||
           (s->weight = ed_layer_add_weight(layer, "concat_score_weight", ED_SHAPE(),
                                            .initializer = ed_initializer_ones(), .dtype = dtype));
}

static bool additive_attention_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_additive_attention_options *o = layer_options(layer);
    scorer *s = ed_layer_state(layer);
    const ed_tensor *q = call->inputs[0];
    if (!check_three(layer, call)) return false;
    s->scale = NULL;
    return !o->use_scale || (s->scale = ed_layer_add_weight(layer, "scale", ED_SHAPE(q->shape[2]),
                                                            .dtype = q->dtype));
}

/* [batch, targets, sources] of pairs, without a product. */
static ed_tensor *pair_scores(const scorer *s, ed_tensor *q, ed_tensor *k)
{
    ed_tensor *sum = ed_add(ed_expand_dims(q, 2), ed_expand_dims(k, 1));
    if (s->concat && s->scale) sum = ed_mul(sum, s->scale);
    ed_tensor *t = sum ? ed_tanh(sum) : NULL;
    if (s->additive && s->scale) t = ed_mul(t, s->scale);
    ed_tensor *scores = t ? ed_reduce_sum(t, .axis = ED_AXES(-1)) : NULL;
    return s->weight ? ed_mul(scores, s->weight) : scores;
}

/* true where a target sees a source, [targets, sources] and the mask; *fine: no error. */
static ed_tensor *seen(const ed_tensor *scores, ed_tensor *mask, bool causal, bool *fine)
{
    *fine = true;
    if (!causal) return mask;
    const int64_t targets = scores->shape[scores->rank - 2], n = scores->shape[scores->rank - 1];
    ed_tensor *rows = ed_range(0, (double)targets, .dtype = ED_INT32);
    ed_tensor *columns = ed_range(0, (double)n, .dtype = ED_INT32);
    ed_tensor *before =
        columns ? ed_greater_equal(ed_expand_dims(rows, 1), ed_expand_dims(columns, 0)) : NULL;
    if (before && mask) before = ed_logical_and(mask, before);
    *fine = before;
    return before;
}

ed_tensor *attend_weights(ed_tensor *scores, ed_tensor *mask, bool causal)
{
    bool fine;
    ed_tensor *m = seen(scores, mask, causal, &fine);
    if (!fine) return NULL;
    if (m) scores = ed_where(m, scores, ed_sub(scores, 1e9));
    return scores ? ed_softmax(scores) : NULL;
}

/* Also the weights. */
static ed_tensor *by_weights(const scorer *s, ed_tensor *q, ed_tensor *k, ed_tensor *v,
                             ed_tensor *mask, double dropout, ed_tensor **weights)
{
    ed_tensor *scores;
    if (s->concat || s->additive)
        scores = pair_scores(s, q, k);
    else
        scores = ed_matmul(s->scale ? ed_mul(q, s->scale) : q, k, .transpose_b = true);
    if (mask && !(mask = ed_expand_dims(mask, 1))) return NULL;
    *weights = scores ? attend_weights(scores, mask, s->causal) : NULL;
    if (*weights && dropout > 0)
        *weights = ed_dropout(*weights, dropout, .generator = s->generator);
    return *weights ? ed_matmul(*weights, v) : NULL;
}

static ed_tensor *by_products(const scorer *s, ed_tensor *q, ed_tensor *k, ed_tensor *v,
                              ed_tensor *mask, double dropout)
{
    if (mask && !(mask = ed_expand_dims(mask, 1))) return NULL;
    if (s->scale && !(q = ed_mul(q, s->scale))) return NULL;
    return ed_scaled_dot_product_attention(q, k, v, mask, NULL, .scale = 1, .is_causal = s->causal,
                                           .dropout_rate = dropout, .generator = s->generator);
}

static bool attention_forward(ed_layer *layer, ed_layer_call *call)
{
    const scorer *s = ed_layer_state(layer);
    if (!check_three(layer, call)) return false;
    ed_tensor *q = call->inputs[0], *v = call->inputs[1];
    ed_tensor *k = call->n_inputs > 2 ? call->inputs[2] : v, *mask = call->masks[0];
    const double dropout = call->training ? s->dropout : 0;
    ed_tensor *weights = NULL, *y;
    if (s->concat || s->additive || s->returns_weights)
        y = by_weights(s, q, k, v, call->masks[1], dropout, &weights);
    else
        y = by_products(s, q, k, v, call->masks[1], dropout);
    if (y && mask) y = ed_where(ed_expand_dims(mask, -1), y, 0);
    return ed_layer_return(call, y) && (!s->returns_weights || ed_layer_return(call, weights));
}

/* A generator that was given continues in a restored model where it was. */
static void attention_track(ed_layer *layer, ed_tracker *tracker)
{
    const scorer *s = ed_layer_state(layer);
    if (s->generator) ed_track(tracker, "generator", s->generator);
}

#define SAMPLE_OF(symbol, SYMBOL, n, ...)                                                          \
    {                                                                                              \
        .options = OPTIONS(symbol, SYMBOL, __VA_ARGS__),                                           \
        .inputs = {{3, {2, 2, 3}}, {3, {2, 4, 3}}, {3, {2, 4, 3}}}, .n_inputs = n                  \
    }

LAYER(attention, ATTENTION, 0, "softmax of scores of query and key, times value",
      .state_size = sizeof(scorer), .min_inputs = 2, .max_inputs = 3, .init = attention_init,
      .build = attention_build, .forward = attention_forward, .track = attention_track,
      .passes_masks = true,
      .samples = LAYER_SAMPLES(SAMPLE_OF(attention, ATTENTION, 2, .use_scale = true),
                               SAMPLE_OF(attention, ATTENTION, 3, .use_scale = true,
                                         .score_mode = "concat", .dropout = 0.5),
                               SAMPLE_OF(attention, ATTENTION, 3, .use_causal_mask = true,
                                         .use_scale = true, .return_attention_scores = true)))

LAYER(additive_attention, ADDITIVE_ATTENTION, 0,
      "attention with scores sum(scale tanh(query + key))", .state_size = sizeof(scorer),
      .min_inputs = 2, .max_inputs = 3, .init = additive_attention_init,
      .build = additive_attention_build, .forward = attention_forward, .track = attention_track,
      .passes_masks = true,
      .samples = LAYER_SAMPLES(
          SAMPLE_OF(additive_attention, ADDITIVE_ATTENTION, 2, .use_causal_mask = true),
          SAMPLE_OF(additive_attention, ADDITIVE_ATTENTION, 3, .use_scale = false, .dropout = 0.5,
                    .return_attention_scores = true)))
