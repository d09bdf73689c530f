/* edit_distance: Levenshtein's distance of sequences of integers, row by row of the table. */
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

enum { HYPOTHESIS, HYPOTHESIS_LENGTH, TRUTH, TRUTH_LENGTH };

static bool edit_infer(ed_call *call)
{
    const ed_tensor *h = call->inputs[HYPOTHESIS], *t = call->inputs[TRUTH];
    const int r = h->rank;
    bool fit = r >= 1 && t->rank == r;
    if (fit) fit = !memcmp(h->shape, t->shape, (size_t)(r - 1) * sizeof *h->shape);
    for (int i = 1; fit && i < 4; i += 2)
        fit = call->inputs[i]->rank == r - 1 &&
              !memcmp(call->inputs[i]->shape, h->shape, (size_t)(r - 1) * sizeof *h->shape);
    if (!fit)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "hypothesis must be [..., n], truth [..., m], lengths [...]: "
                            "hypothesis is %s, hypothesis_length is %s, truth is %s, truth_length "
                            "is %s",
                            text_of_tensor(h).s, text_of_tensor(call->inputs[HYPOTHESIS_LENGTH]).s,
                            text_of_tensor(t).s, text_of_tensor(call->inputs[TRUTH_LENGTH]).s);
    return ed_call_output(call, 0, ED_FLOAT32, r - 1, h->shape);
}

static int64_t integer_at(const ed_tensor *x, int64_t i)
{
    return x->dtype == ED_INT32 ? ((const int32_t *)x->data)[i] : ((const int64_t *)x->data)[i];
}

static bool edit_lengths_fit(const ed_call *call, int which)
{
    const ed_tensor *x = call->inputs[which + 1], *of = call->inputs[which];
    const int64_t most = of->shape[of->rank - 1];
    for (int64_t i = 0; i < x->size; i++)
        if (integer_at(x, i) < 0 || integer_at(x, i) > most)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s%s is %lld; it must be 0 to %lld",
                                call->op->operands[which + 1].name, text_of_element(x, i).s,
                                (long long)integer_at(x, i), (long long)most);
    return true;
}

/* row[j]: the distance of what was seen of h and the first j of t. */
static int64_t distance(const ed_tensor *h, int64_t at_h, int64_t n, const ed_tensor *t,
                        int64_t at_t, int64_t m, int64_t *row)
{
    for (int64_t j = 0; j <= m; j++) row[j] = j;
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = integer_at(h, at_h + i);
        int64_t diagonal = row[0];
        row[0] = i + 1;
        for (int64_t j = 0; j < m; j++) {
            const int64_t change = diagonal + (integer_at(t, at_t + j) != label);
            diagonal = row[j + 1];
            int64_t best = (row[j] < diagonal ? row[j] : diagonal) + 1;
            row[j + 1] = best < change ? best : change;
        }
    }
    return row[m];
}

static bool edit_kernel(ed_call *call)
{
    const ed_edit_distance_options *o = call->attrs;
    const ed_tensor *h = call->inputs[HYPOTHESIS], *t = call->inputs[TRUTH];
    const int64_t n = h->shape[h->rank - 1], m = t->shape[t->rank - 1];
    float *y = (float *)call->outputs[0]->data;
    if (!edit_lengths_fit(call, HYPOTHESIS) || !edit_lengths_fit(call, TRUTH)) return false;
    if (!call->outputs[0]->size) return true;
    int64_t *row = memory_alloc((size_t)(m + 1) * sizeof *row);
    for (int64_t i = 0; row && i < call->outputs[0]->size; i++) {
        const int64_t length = integer_at(call->inputs[TRUTH_LENGTH], i);
        const int64_t d = distance(h, i * n, integer_at(call->inputs[HYPOTHESIS_LENGTH], i), t,
                                   i * m, length, row);
        y[i] = (float)d;
        if (o->normalize) y[i] = length ? (float)d / (float)length : d ? INFINITY : 0;
    }
    memory_free(row);
    return row != NULL;
}

/* By the definition: the cheapest of the three last edits, in a whole table. */
static bool edit_reference(const ed_call *call)
{
    const ed_edit_distance_options *o = call->attrs;
    const ed_tensor *h = call->inputs[HYPOTHESIS], *t = call->inputs[TRUTH];
    const int64_t n = h->shape[h->rank - 1], m = t->shape[t->rank - 1];
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 2, (const int64_t[]){n + 1, m + 1}));
    if (!room) return false;
    double *d = (double *)room->data;
    for (int64_t k = 0; k < call->outputs[0]->size; k++) {
        const double *a = (const double *)h->data + k * n, *b = (const double *)t->data + k * m;
        const double rows = ((const double *)call->inputs[HYPOTHESIS_LENGTH]->data)[k];
        const double columns = ((const double *)call->inputs[TRUTH_LENGTH]->data)[k];
        for (int64_t i = 0; i <= (int64_t)rows; i++)
            for (int64_t j = 0; j <= (int64_t)columns; j++) {
                double best = i && j ? d[(i - 1) * (m + 1) + j - 1] + (a[i - 1] != b[j - 1])
                                     : (double)(i + j);
                if (i && j) best = fmin(best, d[(i - 1) * (m + 1) + j] + 1);
                if (i && j) best = fmin(best, d[i * (m + 1) + j - 1] + 1);
                d[i * (m + 1) + j] = best;
            }
        const double all = d[(int64_t)rows * (m + 1) + (int64_t)columns];
        ((double *)call->outputs[0]->data)[k] = !o->normalize  ? all
                                                : columns != 0 ? all / columns
                                                : all != 0     ? INFINITY
                                                               : 0;
    }
    return true;
}

#define EDIT(...) ED_ATTRS(ED_EDIT_DISTANCE_OPTIONS, ed_edit_distance_options, __VA_ARGS__)

ED_OP(edit_distance) = {
    .name = "edit_distance",
    .doc = "how many insertions, deletions and replacements make hypothesis truth",
    .operands = {{"hypothesis", ED_SET_INDEX, 'T'},
                 {"hypothesis_length", ED_SET_INDEX, 0},
                 {"truth", ED_SET_INDEX, 'T'},
                 {"truth_length", ED_SET_INDEX, 0}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_EDIT_DISTANCE_OPTIONS, ed_edit_distance_options),
    .infer = edit_infer,
    .kernel = edit_kernel,
    .no_gradient = "it counts",
    .reference = edit_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 2, 2, 6), ED_SAMPLE_IN(0, 6, 2),
                                      ED_SAMPLE_IN(0, 2, 2, 5), ED_SAMPLE_IN(0, 5, 2)}},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 2, 2, 4), ED_SAMPLE_IN(1, 4, 2, 2),
                                      ED_SAMPLE_IN(0, 1, 2, 2, 5), ED_SAMPLE_IN(1, 5, 2, 2)},
                           .attrs = EDIT(.normalize = false)}),
};

ed_tensor *ed_edit_distance_with(ed_tensor *hypothesis, ed_tensor *hypothesis_length,
                                 ed_tensor *truth, ed_tensor *truth_length,
                                 const ed_edit_distance_options *options)
{
    return CALL_OP(edit_distance, options, hypothesis, hypothesis_length, truth, truth_length);
}
