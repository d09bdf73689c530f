/* Sequences: attention, recurrent layers' ops, alignments. ops.h says what holds for all. */
#ifndef EDDY_OPS_SEQUENCE_H
#define EDDY_OPS_SEQUENCE_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * softmax(scale query key^T + mask) value of each head, without the matrix of scores in memory.
 * query [..., heads, targets, size], key [..., heads, sources, size], value [..., heads, sources,
 * value_size], result [..., heads, targets, value_size]: PyTorch's layout. Tensors laid out as
 * jax.nn.dot_product_attention has them, [batch, length, heads, size], go in as views,
 * ed_transpose(x, .perm = ED_AXES(0, 2, 1, 3)), which copy nothing. Leading axes agree; key and
 * value may have fewer heads, each then serves as many heads of query that follow each other
 * (grouped heads).
 *
 * mask (NULL: none) broadcasts to [..., heads, targets, sources]: of bool, true where a source takes
 * part; of floats, added to the scores. A target without any source gets zeros. What is masked must
 * be finite all the same: 0 times infinity is NaN.
 *
 * *logsumexp (NULL: not wanted) gets the logarithm of the sum of the exponentials of the scores,
 * [..., heads, targets]. The gradient computes the scores again, by blocks. For higher derivatives,
 * and for the gradient of a mask of floats, it is made of public ops, scores in memory.
 */
#define ED_ATTENTION_VALUES(FIELD, T)                                                              \
    FIELD(T, FLOAT, scale, 0, ED_ANY, "of the scores; 0: 1 / sqrt(size)")                          \
    FIELD(T, BOOL, is_causal, false, ED_ANY, "target i sees sources 0 to i only")                  \
    FIELD(T, FLOAT, dropout_rate, 0, ED_FROM(0, 1), "share of the probabilities that become 0")
#define ED_ATTENTION_OPTIONS(FIELD, T)                                                             \
    ED_ATTENTION_VALUES(FIELD, T)                                                                  \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of dropout; default: the process's source")
ED_OPTIONS(ed_attention_options, ED_ATTENTION_OPTIONS);
ed_tensor *ed_scaled_dot_product_attention_with(ed_tensor *query, ed_tensor *key, ed_tensor *value,
                                                ed_tensor *mask, ed_tensor **logsumexp,
                                                const ed_attention_options *options);

#pragma GCC visibility pop
#endif
