/*
 * Losses of many classes by a sample of them: compositions of what the candidate samplers give
 * (ops/candidates.c).
 */
#include "ops/execute.h"
#include "ops/ops.h"

/* What both losses are given. */
typedef struct sampled_call {
    const char *name;
    ed_tensor *weights, *biases, *labels, *inputs, *sampled, *true_count, *sampled_count;
    int64_t batch, num_true, num_sampled;
} sampled_call;

static bool has_shape(const ed_tensor *x, int rank, int64_t first, int64_t second)
{
    return x && x->rank == rank && (first < 0 || x->shape[0] == first) &&
           (rank < 2 || second < 0 || x->shape[1] == second);
}

static const ed_tensor *value_of(ed_tensor *x)
{
    return x ? tensor_read(x) : NULL;
}

static bool check_call(sampled_call *c)
{
    const ed_tensor *w = value_of(c->weights), *labels = value_of(c->labels),
                    *inputs = value_of(c->inputs), *sampled = value_of(c->sampled);
    if (!w || !labels || !inputs || !sampled || !c->biases || !c->true_count || !c->sampled_count)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: an operand is NULL", c->name), false;
    if (!has_shape(w, 2, -1, -1) || !has_shape(value_of(c->biases), 1, w->shape[0], -1) ||
        !has_shape(inputs, 2, -1, w->shape[1]) || !has_shape(labels, 2, inputs->shape[0], -1) ||
        !has_shape(sampled, 1, -1, -1) ||
        !has_shape(value_of(c->true_count), 2, labels->shape[0], labels->shape[1]) ||
        !has_shape(value_of(c->sampled_count), 1, sampled->shape[0], -1))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: weights are %s, biases %s, labels %s, inputs %s, sampled %s, expected "
                       "counts %s and %s; expected [classes, n], [classes], [batch, num_true], "
                       "[batch, n], [sampled], [batch, num_true] and [sampled]",
                       c->name, text_of_tensor(w).s, text_of_tensor(value_of(c->biases)).s,
                       text_of_tensor(labels).s, text_of_tensor(inputs).s,
                       text_of_tensor(sampled).s, text_of_tensor(value_of(c->true_count)).s,
                       text_of_tensor(value_of(c->sampled_count)).s),
               false;
    c->batch = labels->shape[0];
    c->num_true = labels->shape[1];
    c->num_sampled = sampled->shape[0];
    return true;
}

/* Logits less the logarithm of the expected count: of the true classes [batch, num_true], and of
 * the sampled ones [batch, sampled], very negative where they are true ones and `remove`. */
static void both_logits(const sampled_call *c, bool remove, ed_tensor **true_logits,
                        ed_tensor **sampled_logits)
{
    const ed_dtype dtype = ed_dtype_of(c->inputs);
    ed_tensor *rows = ed_gather(c->weights, c->labels);
    ed_tensor *dots =
        ed_reduce_sum(ed_mul(rows, ed_expand_dims(c->inputs, 1)), .axis = ED_AXES(-1));
    *true_logits = ed_sub(ed_add(dots, ed_gather(c->biases, c->labels)),
                          ed_log(ed_cast(c->true_count, dtype)));
    ed_tensor *products =
        ed_matmul(c->inputs, ed_gather(c->weights, c->sampled), .transpose_b = true);
    ed_tensor *shift =
        ed_sub(ed_gather(c->biases, c->sampled), ed_log(ed_cast(c->sampled_count, dtype)));
    *sampled_logits = ed_add(products, shift);
    if (!remove) return;
    ed_tensor *hits = ed_reduce_any(
        ed_equal(ed_expand_dims(ed_cast(c->labels, ED_INT64), 2), ed_cast(c->sampled, ED_INT64)),
        .axis = ED_AXES(1));
    *sampled_logits = ed_add(*sampled_logits, ed_mul(ed_cast(hits, dtype), -(double)__FLT_MAX__));
}

ed_tensor *ed_sampled_softmax_loss_with(ed_tensor *weights, ed_tensor *biases, ed_tensor *labels,
                                        ed_tensor *inputs, ed_tensor *sampled,
                                        ed_tensor *true_expected_count,
                                        ed_tensor *sampled_expected_count,
                                        const ed_sampled_softmax_loss_options *options)
{
    ED_SCOPE;
    sampled_call c = {
        "sampled_softmax_loss", weights, biases, labels, inputs, sampled, true_expected_count,
        sampled_expected_count};
    ed_tensor *of_true, *of_sampled;
    options = OPTIONS_OR_DEFAULTS(ED_SAMPLED_SOFTMAX_LOSS_OPTIONS, options);
    if (!check_call(&c)) return NULL;
    both_logits(&c, options->remove_accidental_hits, &of_true, &of_sampled);
    ed_tensor *logits = ed_concat(ed_list_of(of_true, of_sampled), .axis = 1);
    if (!logits) return NULL;
    ed_tensor *part =
        ed_full(ED_INTS(c.batch, c.num_true), 1 / (double)c.num_true, .dtype = ed_dtype_of(logits));
    ed_tensor *zeros = ed_zeros(ED_INTS(c.batch, c.num_sampled), .dtype = ed_dtype_of(logits));
    ed_tensor *targets = ed_concat(ed_list_of(part, zeros), .axis = 1);
    return ed_keep(ed_softmax_cross_entropy(targets, logits));
}

ed_tensor *ed_nce_loss_with(ed_tensor *weights, ed_tensor *biases, ed_tensor *labels,
                            ed_tensor *inputs, ed_tensor *sampled, ed_tensor *true_expected_count,
                            ed_tensor *sampled_expected_count, const ed_nce_loss_options *options)
{
    ED_SCOPE;
    sampled_call c = {"nce_loss",
                      weights,
                      biases,
                      labels,
                      inputs,
                      sampled,
                      true_expected_count,
                      sampled_expected_count};
    ed_tensor *of_true, *of_sampled;
    options = OPTIONS_OR_DEFAULTS(ED_NCE_LOSS_OPTIONS, options);
    if (!check_call(&c)) return NULL;
    both_logits(&c, options->remove_accidental_hits, &of_true, &of_sampled);
    if (!of_true || !of_sampled) return NULL;
    ed_tensor *part = ed_full(ED_INTS(c.batch, c.num_true), 1 / (double)c.num_true,
                              .dtype = ed_dtype_of(of_true));
    ed_tensor *is = ed_sigmoid_cross_entropy(part, of_true);
    ed_tensor *is_not = ed_sigmoid_cross_entropy(ed_zeros_like(of_sampled), of_sampled);
    return ed_keep(
        ed_add(ed_reduce_sum(is, .axis = ED_AXES(1)), ed_reduce_sum(is_not, .axis = ED_AXES(1))));
}
