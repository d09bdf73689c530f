/* compute_accidental_hits and collapse_repeated: integers whose number depends on values. */
#include "ops/execute.h"
#include "ops/ops.h"
#include <float.h>
#include <string.h>

/* The elements of operand i as int64 one after the other; NULL with an error. */
static const int64_t *integers_of(const ed_call *call, int i)
{
    ed_tensor *x = ed_contiguous(ed_cast(call->inputs[i], ED_INT64));
    return x ? (const int64_t *)x->data : NULL;
}

/* ---- compute_accidental_hits ----------------------------------------------------------------- */

enum { CLASSES, SAMPLED };

/* The last position of a class among those sampled, as TensorFlow has it; -1. */
static int64_t position_of(int64_t class, const int64_t *sampled, int64_t n)
{
    while (n > 0 && sampled[n - 1] != class) n--;
    return n - 1;
}

/* The number of hits, whose rows and positions are stored where they are wanted. */
static int64_t find_hits(const ed_call *call, const int64_t *classes, const int64_t *sampled,
                         int32_t *rows, int64_t *positions)
{
    const int64_t size = ed_size(call->inputs[CLASSES]), n = ed_size(call->inputs[SAMPLED]);
    const int64_t num_true = size ? ed_dim(call->inputs[CLASSES], 1) : 1;
    int64_t hits = 0;
    for (int64_t i = 0; i < size; i++) {
        const int64_t at = position_of(classes[i], sampled, n);
        if (at < 0) continue;
        if (rows) rows[hits] = (int32_t)(i / num_true), positions[hits] = at;
        hits++;
    }
    return hits;
}

static bool compute_accidental_hits_compose(ed_call *call)
{
    ed_tensor *classes = call->inputs[CLASSES], *sampled = call->inputs[SAMPLED];
    if (ed_rank(classes) != 2 || ed_rank(sampled) != 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "true_classes must be [batch, num_true] and sampled_candidates [n], "
                            "got %s and %s",
                            text_of_tensor(tensor_read(classes)).s,
                            text_of_tensor(tensor_read(sampled)).s);
    const int64_t *truth = integers_of(call, CLASSES), *drawn = integers_of(call, SAMPLED);
    if (!truth || !drawn) return false;
    const int64_t hits = find_hits(call, truth, drawn, NULL, NULL);
    ed_tensor *rows = scope_give(tensor_new(ED_INT32, 1, &hits));
    ed_tensor *positions = scope_give(tensor_new(ED_INT64, 1, &hits));
    if (!rows || !positions) return false;
    find_hits(call, truth, drawn, (int32_t *)rows->data, (int64_t *)positions->data);
    return ed_call_result(call, 0, rows) && ed_call_result(call, 1, positions) &&
           ed_call_result(call, 2, ed_full(ED_INTS(hits), -FLT_MAX));
}

static bool compute_accidental_hits_reference(const ed_call *call)
{
    const ed_tensor *classes = call->inputs[CLASSES], *sampled = call->inputs[SAMPLED];
    int64_t hits = 0;
    for (int64_t i = 0; i < classes->size; i++) {
        int64_t at = -1;
        for (int64_t k = 0; k < sampled->size; k++)
            if (((const double *)sampled->data)[k] == ((const double *)classes->data)[i]) at = k;
        if (at < 0) continue;
        ((double *)call->outputs[0]->data)[hits] = (double)(i / classes->shape[1]);
        ((double *)call->outputs[1]->data)[hits] = (double)at;
        ((double *)call->outputs[2]->data)[hits++] = -FLT_MAX;
    }
    return true;
}

ED_OP(compute_accidental_hits) = {
    .name = "compute_accidental_hits",
    .doc = "which sampled classes are true ones: rows, positions, and very negative weights",
    .operands = {{"true_classes", ED_SET_INDEX, 'I', .early = true},
                 {"sampled_candidates", ED_SET_INDEX, 'I', .early = true}},
    .results = ED_RESULTS({.name = "indices"}, {.name = "ids"}, {.name = "weights"}),
    .compose = compute_accidental_hits_compose,
    .no_gradient = "its operands are integers",
    .reference = compute_accidental_hits_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 9, 4, 2), ED_SAMPLE_IN(0, 9, 5)}},
                          {.inputs = {ED_SAMPLE_IN(0, 2, 3, 1), ED_SAMPLE_IN(0, 2, 6)}}),
};

ed_tensor *ed_compute_accidental_hits(ed_tensor *true_classes, ed_tensor *sampled_candidates,
                                      ed_tensor **ids, ed_tensor **weights)
{
    return ops_call_into(&ed_op_compute_accidental_hits,
                         (ed_tensor *const[]){true_classes, sampled_candidates}, 2, NULL,
                         (ed_tensor * *const[]){ids, weights});
}

/* ---- collapse_repeated ----------------------------------------------------------------------- */

enum { LABELS, LENGTHS };

/* The labels of one sequence without repetitions, which are stored where they are wanted. */
static int64_t collapse(const int64_t *labels, int64_t length, int64_t *to)
{
    int64_t n = 0;
    for (int64_t i = 0; i < length; i++)
        if (i == 0 || labels[i] != labels[i - 1]) {
            if (to) to[n] = labels[i];
            n++;
        }
    return n;
}

/* The longest of the new sequences, whose lengths are stored; -1 with an error. */
static int64_t collapsed_lengths(const ed_call *call, const int64_t *labels, const int64_t *lengths,
                                 int32_t *to)
{
    const int64_t batch = ed_dim(call->inputs[LABELS], 0), n = ed_dim(call->inputs[LABELS], 1);
    int64_t longest = 0;
    for (int64_t i = 0; i < batch; i++) {
        if (lengths[i] < 0 || lengths[i] > n) {
            ed_call_fail(call, ED_OUT_OF_RANGE, "seq_length[%lld] is %lld; it must be 0 to %lld",
                         text_nth(i), (long long)lengths[i], (long long)n);
            return -1;
        }
        const int64_t length = collapse(labels + i * n, lengths[i], NULL);
        to[i] = (int32_t)length;
        if (length > longest) longest = length;
    }
    return longest;
}

static bool collapse_repeated_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[LABELS], *of = call->inputs[LENGTHS];
    if (ed_rank(x) != 2 || ed_rank(of) != 1 || ed_dim(of, 0) != ed_dim(x, 0))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "labels must be [batch, n] and seq_length [batch], got %s and %s",
                            text_of_tensor(tensor_read(x)).s, text_of_tensor(tensor_read(of)).s);
    const int64_t batch = ed_dim(x, 0), n = ed_dim(x, 1);
    const int64_t *labels = integers_of(call, LABELS), *lengths = integers_of(call, LENGTHS);
    ed_tensor *after = scope_give(tensor_new(ED_INT32, 1, &batch));
    if (!labels || !lengths || !after) return false;
    const int64_t longest = collapsed_lengths(call, labels, lengths, (int32_t *)after->data);
    if (longest < 0) return false;
    ed_tensor *y = scope_give(tensor_new(ED_INT64, 2, (const int64_t[]){batch, longest}));
    if (!y) return false;
    memset(y->data, 0, (size_t)y->size * sizeof(int64_t));
    for (int64_t i = 0; i < batch; i++)
        collapse(labels + i * n, lengths[i], (int64_t *)y->data + i * longest);
    return ed_call_result(call, 0, ed_cast(y, ed_dtype_of(x))) && ed_call_result(call, 1, after);
}

static bool collapse_repeated_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[LABELS], *y = call->outputs[0];
    memset(y->data, 0, (size_t)y->size * sizeof(double));
    for (int64_t i = 0; i < x->shape[0]; i++) {
        double *to = (double *)y->data + i * y->shape[1], before = -1;
        double *length = (double *)call->outputs[1]->data + i;
        *length = 0;
        for (int64_t k = 0; (double)k < ((const double *)call->inputs[LENGTHS]->data)[i]; k++) {
            const double label = ((const double *)x->data)[i * x->shape[1] + k];
            if (label != before) *to++ = label, *length += 1;
            before = label;
        }
    }
    return true;
}

ED_OP(collapse_repeated) = {
    .name = "collapse_repeated",
    .doc = "sequences of labels, each once where it is repeated, and their lengths",
    .operands = {{"labels", ED_SET_INDEX, 'T', .early = true},
                 {"seq_length", ED_SET_INDEX, 'L', .early = true}},
    .results = ED_RESULTS({.name = "labels"}, {.name = "lengths"}),
    .compose = collapse_repeated_compose,
    .no_gradient = "its operands are integers",
    .reference = collapse_repeated_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 6), ED_SAMPLE_IN(2, 6, 3)}},
                          {.inputs = {ED_SAMPLE_IN(0, 2, 2, 4), ED_SAMPLE_IN(0, 4, 2)}}),
};

ed_tensor *ed_collapse_repeated(ed_tensor *labels, ed_tensor *seq_length, ed_tensor **lengths)
{
    return ops_call_into(&ed_op_collapse_repeated, (ed_tensor *const[]){labels, seq_length}, 2,
                         NULL, (ed_tensor * *const[]){lengths});
}
