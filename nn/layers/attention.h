/*
 * Layers: attention. Their inputs are a list: ed_forward_one(layer, ed_list_of(query, value)), with
 * key as a third one where it is not value.
 *
 * The masks of the inputs, bool [batch, length], say which steps take part: steps of value, or key,
 * that are false are not seen. The output has the mask of query. With return_attention_scores there
 * is a second output: the weights with which each target sees the sources, [batch, (heads,)
 * targets, sources].
 */
#ifndef EDDY_NN_LAYERS_ATTENTION_H
#define EDDY_NN_LAYERS_ATTENTION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* Options of all of them. */
#define ED_LAYER_ATTENTION_COMMON(FIELD, T)                                                        \
    FIELD(T, FLOAT, dropout, 0, ED_FROM(0, 1), "share of the weights that become 0 in training")   \
    FIELD(T, BOOL, use_causal_mask, false, ED_ANY, "target i sees sources 0 to i only")            \
    FIELD(T, BOOL, return_attention_scores, false, ED_ANY, "a second output: the weights")         \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of dropout; default: the process's")

/*
 * softmax(scores) value: query [batch, targets, size], value [batch, sources, n], key [batch,
 * sources, size] (default: value) to [batch, targets, n]. Scores: "dot" scale query key^T, "concat"
 * concat_score_weight sum(tanh(scale (query + key))). Where query's mask is false the output is 0.
 * Weights, scalars: scale with use_scale, concat_score_weight with "concat".
 */
#define ED_LAYER_ATTENTION_OPTIONS(FIELD, T)                                                       \
    FIELD(T, BOOL, use_scale, false, ED_ANY, "whether there is the weight scale")                  \
    FIELD(T, CHOICE, score_mode, "dot", ED_ONE_OF("dot", "concat"), "how scores are computed")     \
    ED_LAYER_ATTENTION_COMMON(FIELD, T)                                                            \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, attention, ED_LAYER_ATTENTION_OPTIONS);

/* The same with scores sum(scale tanh(query + key)); weight scale [size] with use_scale. */
#define ED_LAYER_ADDITIVE_ATTENTION_OPTIONS(FIELD, T)                                              \
    FIELD(T, BOOL, use_scale, true, ED_ANY, "whether there is the weight scale")                   \
    ED_LAYER_ATTENTION_COMMON(FIELD, T)                                                            \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, additive_attention, ED_LAYER_ADDITIVE_ATTENTION_OPTIONS);

/*
 * ed_scaled_dot_product_attention of num_heads projections: query [batch, targets, in], value and
 * key [batch, sources, ...] to [batch, targets, in], or the last axes that output_shape says. A
 * fourth input is a bool mask [batch, targets, sources] or [batch, heads, targets, sources], true
 * where a target sees a source. Inputs may have more axes, [batch, ..., in]: attention goes over
 * all between the first and the last, or over attention_axes. Children, einsum_dense: query, key
 * [in, num_heads, key_dim], value [in, num_heads, value_dim], attention_output [num_heads,
 * value_dim, ...]. A target that sees nothing gets zeros before attention_output.
 */
#define ED_LAYER_MULTI_HEAD_ATTENTION_OPTIONS(FIELD, T)                                            \
    FIELD(T, INT, num_heads, 0, ED_AT_LEAST(1), "number of heads")                                 \
    FIELD(T, INT, key_dim, 0, ED_AT_LEAST(1), "size of a head's query and key")                    \
    FIELD(T, INT, value_dim, 0, ED_AT_LEAST(0), "size of a head's value; 0: key_dim")              \
    FIELD(T, BOOL, use_bias, true, ED_ANY, "whether the projections have a bias")                  \
    FIELD(T, INTS, output_shape, ED_NO_LIST, ED_AT_LEAST(1), "last axes; default: query's last")   \
    FIELD(T, AXES, attention_axes, ED_NO_LIST, ED_ANY, "over which; default: all in between")      \
    ED_LAYER_ATTENTION_COMMON(FIELD, T)                                                            \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    FIELD(T, INITIALIZER, bias_initializer, NULL, ED_OTHERWISE("zeros"), "of biases")              \
    FIELD(T, REGULARIZER, bias_regularizer, NULL, ED_ANY, "of biases")                             \
    FIELD(T, CONSTRAINT, bias_constraint, NULL, ED_ANY, "of biases")                               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, multi_head_attention, ED_LAYER_MULTI_HEAD_ATTENTION_OPTIONS, num_heads, key_dim);

/* The same with fewer heads of key and value, each of which serves as many heads of query that
 * follow each other; inputs have rank 3. */
#define ED_LAYER_GROUP_QUERY_ATTENTION_OPTIONS(FIELD, T)                                           \
    FIELD(T, INT, head_dim, 0, ED_AT_LEAST(1), "size of a head")                                   \
    FIELD(T, INT, num_query_heads, 0, ED_AT_LEAST(1), "a multiple of num_key_value_heads")         \
    FIELD(T, INT, num_key_value_heads, 0, ED_AT_LEAST(1), "number of heads of key and value")      \
    FIELD(T, BOOL, use_bias, true, ED_ANY, "whether the projections have a bias")                  \
    ED_LAYER_ATTENTION_COMMON(FIELD, T)                                                            \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    FIELD(T, INITIALIZER, bias_initializer, NULL, ED_OTHERWISE("zeros"), "of biases")              \
    FIELD(T, REGULARIZER, bias_regularizer, NULL, ED_ANY, "of biases")                             \
    FIELD(T, CONSTRAINT, bias_constraint, NULL, ED_ANY, "of biases")                               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, group_query_attention, ED_LAYER_GROUP_QUERY_ATTENTION_OPTIONS, head_dim,
        num_query_heads, num_key_value_heads);

#pragma GCC visibility pop
#endif
