/*
 * ctc_loss: connectionist temporal classification (Graves et al., 2006). The labels with blanks
 * around each are the states s of an automaton; alpha(t, s) is the logarithm of the probability of
 * all beginnings that are in state s at step t, beta(t, s) that of all ends behind it. All is
 * computed in float64. The op "ctc_alignment" takes log-probabilities, so that log_softmax has its
 * own gradient.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

#define ALIGNMENT_ATTRS(FIELD, T) FIELD(T, INT, blank, 0, ED_AT_LEAST(0), "class of the blank")
ED_OPTIONS(alignment_attrs, ALIGNMENT_ATTRS);

enum { LOGITS, LABELS, LABEL_LENGTH, LOGIT_LENGTH, DLOSS };

static bool alignment_shapes(const ed_call *call)
{
    const ed_tensor *x = call->inputs[LOGITS], *labels = call->inputs[LABELS];
    if (x->rank != 3 || labels->rank != 2 || labels->shape[0] != x->shape[0])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "log_probs must be [batch, time, classes] and labels [batch, length]: "
                            "log_probs is %s, labels is %s",
                            text_of_tensor(x).s, text_of_tensor(labels).s);
    for (int i = LABEL_LENGTH; i < call->n_inputs; i++)
        if (call->inputs[i]->rank != 1 || call->inputs[i]->shape[0] != x->shape[0])
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must be [%lld], got %s",
                                call->op->operands[i].name, (long long)x->shape[0],
                                text_of_tensor(call->inputs[i]).s);
    const int64_t blank = ((const alignment_attrs *)call->attrs)->blank;
    if (blank < x->shape[2] || !x->size) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "blank is class %lld, of %lld classes there are",
                        (long long)blank, (long long)x->shape[2]);
}

static int64_t whole(const ed_tensor *x, int64_t i)
{
    return x->dtype == ED_INT32 ? ((const int32_t *)x->data)[i] : ((const int64_t *)x->data)[i];
}

/* Whether a length of each sample is one that the tensors have. */
static bool lengths_fit(const ed_call *call, int which, int64_t most)
{
    const ed_tensor *x = call->inputs[which];
    for (int64_t i = 0; i < x->size; i++)
        if (whole(x, i) < 0 || whole(x, i) > most)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s[%lld] is %lld; it must be 0 to %lld",
                                call->op->operands[which].name, text_nth(i), (long long)whole(x, i),
                                (long long)most);
    return true;
}

static bool values_fit(const ed_call *call)
{
    const ed_tensor *x = call->inputs[LOGITS], *labels = call->inputs[LABELS];
    const int64_t n = labels->shape[1], blank = ((const alignment_attrs *)call->attrs)->blank;
    if (!lengths_fit(call, LABEL_LENGTH, n) || !lengths_fit(call, LOGIT_LENGTH, x->shape[1]))
        return false;
    for (int64_t b = 0; b < x->shape[0]; b++)
        for (int64_t i = 0; i < whole(call->inputs[LABEL_LENGTH], b); i++) {
            const int64_t label = whole(labels, b * n + i);
            if (label >= 0 && label < x->shape[2] && label != blank) continue;
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "labels[%lld, %lld] is %lld; a label must be 0 to %lld and not "
                                "the blank, %lld",
                                text_nth(b), text_nth(i), (long long)label,
                                (long long)x->shape[2] - 1, (long long)blank);
        }
    return true;
}

/* ---- One sample ------------------------------------------------------------------------------ */

/* A sample's automaton: states, steps, and the log-probability of a state at a step. */
typedef struct automaton {
    const ed_tensor *x, *labels;
    int64_t sample, states, steps, blank;
} automaton;

static automaton automaton_of(const ed_call *call, int64_t sample)
{
    return (automaton){.x = call->inputs[LOGITS],
                       .labels = call->inputs[LABELS],
                       .sample = sample,
                       .states = 2 * whole(call->inputs[LABEL_LENGTH], sample) + 1,
                       .steps = whole(call->inputs[LOGIT_LENGTH], sample),
                       .blank = ((const alignment_attrs *)call->attrs)->blank};
}

static int64_t class_of(const automaton *a, int64_t s)
{
    return s % 2 ? whole(a->labels, a->sample * a->labels->shape[1] + s / 2) : a->blank;
}

static double emits(const automaton *a, int64_t t, int64_t s)
{
    const ed_tensor *x = a->x;
    return dtype_load(x->dtype, x->data,
                      (a->sample * x->shape[1] + t) * x->shape[2] + class_of(a, s));
}

/* log(e^a + e^b); infinities are no NaN. */
static double log_add(double a, double b)
{
    const double m = a > b || isnan(a) ? a : b;
    return isinf(m) || isnan(m) ? m : m + log(exp(a - m) + exp(b - m));
}

/* a + b, where what is impossible stays so. */
static double follows(double a, double b)
{
    return a == -INFINITY ? a : a + b;
}

/* Whether a path may go from s - 2 to s: over a blank between different labels. */
static bool skips(const automaton *a, int64_t s)
{
    return s >= 2 && s % 2 && class_of(a, s) != class_of(a, s - 2);
}

/* One step of alpha in place, from the last state on. */
static void alpha_step(const automaton *a, int64_t t, double *alpha)
{
    for (int64_t s = a->states - 1; s >= 0; s--) {
        double sum = t ? alpha[s] : s < 2 ? 0 : -INFINITY;
        if (t && s >= 1) sum = log_add(sum, alpha[s - 1]);
        if (t && skips(a, s)) sum = log_add(sum, alpha[s - 2]);
        alpha[s] = follows(sum, emits(a, t, s));
    }
}

/* beta of step t in place from that of step t + 1: what lies behind step t. */
static void beta_step(const automaton *a, int64_t t, double *beta)
{
    for (int64_t s = 0; s < a->states; s++) {
        if (t == a->steps - 1) {
            beta[s] = s >= a->states - 2 ? 0 : -INFINITY;
            continue;
        }
        double sum = follows(beta[s], emits(a, t + 1, s));
        if (s + 1 < a->states) sum = log_add(sum, follows(beta[s + 1], emits(a, t + 1, s + 1)));
        if (s + 2 < a->states && skips(a, s + 2))
            sum = log_add(sum, follows(beta[s + 2], emits(a, t + 1, s + 2)));
        beta[s] = sum;
    }
}

static double total_of(const automaton *a, const double *alpha)
{
    if (!a->steps) return a->states == 1 ? 0 : -INFINITY;
    const double last = alpha[a->states - 1];
    return a->states > 1 ? log_add(last, alpha[a->states - 2]) : last;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

typedef struct samples {
    ed_call *call;
    double *scratch;
    int64_t each; /* numbers of a worker */
} samples;

static void align(int64_t first, int64_t last, int worker, void *user)
{
    const samples *w = user;
    double *alpha = w->scratch + w->each * worker;
    ed_tensor *y = w->call->outputs[0];
    for (int64_t b = first; b < last; b++) {
        const automaton a = automaton_of(w->call, b);
        for (int64_t t = 0; t < a.steps; t++) alpha_step(&a, t, alpha);
        dtype_store(y->dtype, y->data, b, -total_of(&a, alpha));
    }
}

/* What a step adds to the gradient: minus the share of the paths in each state. */
static void occupy(const automaton *a, int64_t t, const double *alpha, const double *beta,
                   double total, double scale, double *of_classes, ed_tensor *dx)
{
    const int64_t classes = a->x->shape[2], at = (a->sample * a->x->shape[1] + t) * classes;
    for (int64_t s = 0; s < a->states; s++) of_classes[class_of(a, s)] = 0;
    for (int64_t s = 0; s < a->states; s++)
        if (alpha[s] != -INFINITY && beta[s] != -INFINITY)
            of_classes[class_of(a, s)] += exp(alpha[s] + beta[s] - total);
    for (int64_t s = 0; s < a->states; s++) {
        const double share = of_classes[class_of(a, s)];
        if (share != 0) dtype_store(dx->dtype, dx->data, at + class_of(a, s), -scale * share);
    }
}

static void align_back(int64_t first, int64_t last, int worker, void *user)
{
    const samples *w = user;
    const ed_tensor *dy = w->call->inputs[DLOSS];
    double *scratch = w->scratch + w->each * worker;
    for (int64_t b = first; b < last; b++) {
        const automaton a = automaton_of(w->call, b);
        const int64_t n = 2 * a.labels->shape[1] + 1;
        double *alpha = scratch, *beta = alpha + n * a.x->shape[1], *of_classes = beta + n;
        for (int64_t t = 0; t < a.steps; t++) {
            if (t) memcpy(alpha + t * n, alpha + (t - 1) * n, (size_t)a.states * sizeof *alpha);
            alpha_step(&a, t, alpha + t * n);
        }
        const double total = total_of(&a, alpha + (a.steps ? a.steps - 1 : 0) * n);
        if (total == -INFINITY) continue;
        for (int64_t t = a.steps - 1; t >= 0; t--) {
            beta_step(&a, t, beta);
            occupy(&a, t, alpha + t * n, beta, total, dtype_load(dy->dtype, dy->data, b),
                   of_classes, w->call->outputs[0]);
        }
    }
}

static bool run_samples(ed_call *call, bool back)
{
    const ed_tensor *x = call->inputs[LOGITS];
    const int64_t n = 2 * call->inputs[LABELS]->shape[1] + 1;
    const int count = threads_count();
    if (!values_fit(call)) return false;
    if (!x->shape[0]) return true;
    samples w = {.call = call, .each = back ? n * (x->shape[1] + 1) + x->shape[2] : n};
    w.scratch = memory_alloc((size_t)w.each * (size_t)count * sizeof *w.scratch);
    if (!w.scratch) return false;
    const bool few = x->shape[0] * x->shape[1] * n < OPS_PARALLEL_WORK / 16;
    threads_run_among(count, x->shape[0], few ? x->shape[0] : 1, back ? align_back : align, &w);
    memory_free(w.scratch);
    return true;
}

static bool alignment_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[LOGITS];
    return alignment_shapes(call) && ed_call_output(call, 0, x->dtype, 1, x->shape);
}

static bool alignment_kernel(ed_call *call)
{
    return run_samples(call, false);
}

static bool alignment_back_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[LOGITS];
    return alignment_shapes(call) && ed_call_output(call, 0, x->dtype, 3, x->shape);
}

static bool alignment_back_kernel(ed_call *call)
{
    ed_tensor *dx = call->outputs[0];
    memset(dx->data, 0, (size_t)dx->size * dtype_size(dx->dtype));
    return run_samples(call, true);
}

/* ---- References ------------------------------------------------------------------------------ */

/* All of a sample by a table of [step, state], in either direction. */
typedef struct table {
    int64_t steps, states, time, classes, blank;
    const double *x, *labels;
    bool backwards;
} table;

static table table_of(const ed_call *call, int64_t b, bool backwards)
{
    const ed_tensor *x = call->inputs[LOGITS];
    table k = {.steps = (int64_t)((const double *)call->inputs[LOGIT_LENGTH]->data)[b],
               .time = x->shape[1],
               .classes = x->shape[2],
               .blank = ((const alignment_attrs *)call->attrs)->blank,
               .backwards = backwards};
    k.states = 2 * (int64_t)((const double *)call->inputs[LABEL_LENGTH]->data)[b] + 1;
    k.x = (const double *)x->data + b * k.time * k.classes;
    k.labels = (const double *)call->inputs[LABELS]->data + b * call->inputs[LABELS]->shape[1];
    return k;
}

static int64_t plain_class(const table *k, int64_t s)
{
    if (k->backwards) s = k->states - 1 - s;
    return s % 2 ? (int64_t)k->labels[s / 2] : k->blank;
}

static double plain_emits(const table *k, int64_t t, int64_t s)
{
    if (k->backwards) t = k->steps - 1 - t;
    return k->x[t * k->classes + plain_class(k, s)];
}

/* log of the probability of being in state s at step t, for all of both, and of coming there. */
static void fill_alphas(const table *k, double *p, double *before)
{
    for (int64_t t = 0; t < k->steps; t++)
        for (int64_t s = 0; s < k->states; s++) {
            double *to = p + t * k->states + s, *from = to - k->states;
            double sum = t ? from[0] : s < 2 ? 0 : -INFINITY;
            if (t && s > 0) sum = log_add(sum, from[-1]);
            if (t && s > 1 && plain_class(k, s) != k->blank &&
                plain_class(k, s) != plain_class(k, s - 2))
                sum = log_add(sum, from[-2]);
            before[t * k->states + s] = sum;
            *to = follows(sum, plain_emits(k, t, s));
        }
}

static double plain_total(const table *k, const double *p)
{
    if (!k->steps) return k->states == 1 ? 0 : -INFINITY;
    const double *last = p + k->steps * k->states - 1;
    return k->states > 1 ? log_add(last[0], last[-1]) : last[0];
}

static double *table_room(const table *k)
{
    const int64_t shape[] = {2 * k->steps * k->states};
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, shape));
    return room ? (double *)room->data : NULL;
}

static bool alignment_reference(const ed_call *call)
{
    for (int64_t b = 0; b < call->outputs[0]->size; b++) {
        ED_SCOPE;
        const table k = table_of(call, b, false);
        double *p = table_room(&k);
        if (!p) return false;
        fill_alphas(&k, p, p + k.steps * k.states);
        ((double *)call->outputs[0]->data)[b] = -plain_total(&k, p);
    }
    return true;
}

static bool alignment_back_reference(const ed_call *call)
{
    double *dx = (double *)call->outputs[0]->data;
    memset(dx, 0, (size_t)call->outputs[0]->size * sizeof *dx);
    for (int64_t b = 0; b < call->inputs[LOGITS]->shape[0]; b++) {
        ED_SCOPE;
        const table k = table_of(call, b, false), r = table_of(call, b, true);
        double *p = table_room(&k), *q = table_room(&r);
        if (!p || !q) return false;
        const int64_t n = k.steps * k.states;
        fill_alphas(&k, p, p + n);
        fill_alphas(&r, q, q + n);
        const double total = plain_total(&k, p);
        const double dy = ((const double *)call->inputs[DLOSS]->data)[b];
        for (int64_t i = 0; total != -INFINITY && i < n; i++) {
            const double behind = q[2 * n - 1 - i];
            if (p[i] == -INFINITY || behind == -INFINITY) continue;
            const double share = exp(p[i] + behind - total);
            if (share != 0)
                dx[(b * k.time + i / k.states) * k.classes + plain_class(&k, i % k.states)] -=
                    dy * share;
        }
    }
    return true;
}

/* ---- The ops --------------------------------------------------------------------------------- */

#define BLANK(i) ED_ATTRS(ALIGNMENT_ATTRS, alignment_attrs, .blank = i)
#define ALIGNED                                                                                    \
    {"log_probs", ED_SET_FLOAT, 'T', .saved = true}, {"labels", ED_SET_INDEX, 0, .saved = true},   \
        {"label_length", ED_SET_INDEX, 0, .saved = true},                                          \
    {                                                                                              \
        "logit_length", ED_SET_INDEX, 0, .saved = true                                             \
    }
#define SAMPLE(b, t, c, n, from, to)                                                               \
    ED_SAMPLE_IN(-3, 0, b, t, c), ED_SAMPLE_IN(from, to, b, n), ED_SAMPLE_IN(0, n, b),             \
        ED_SAMPLE_IN(2 * n, t, b)

ED_OP(ctc_alignment_gradient) = {
    .name = "ctc_alignment_gradient",
    .doc = "minus the shares of paths in each class, times dloss",
    .operands = {ALIGNED, {"dloss", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ALIGNMENT_ATTRS, alignment_attrs),
    .infer = alignment_back_infer,
    .kernel = alignment_back_kernel,
    .no_gradient = "ctc_loss has gradients of first order only: the second couples all pairs of "
                   "frames",
    .reference = alignment_back_reference,
    .samples = ED_SAMPLES({.inputs = {SAMPLE(3, 7, 5, 2, 1, 4), ED_SAMPLE_IN(-1, 1, 3)}},
                          {.inputs = {SAMPLE(2, 9, 4, 3, 0, 2), ED_SAMPLE_IN(-1, 1, 2)},
                           .attrs = BLANK(3)}),
};

static bool alignment_gradient(const ed_gradient_call *g)
{
    ed_tensor *const *x = g->inputs;
    if (g->needs[LOGITS])
        g->dx[LOGITS] = CALL_OP(ctc_alignment_gradient, g->attrs, x[LOGITS], x[LABELS],
                                x[LABEL_LENGTH], x[LOGIT_LENGTH], g->dy[0]);
    return true;
}

ED_OP(ctc_alignment) = {
    .name = "ctc_alignment",
    .doc = "-log of the probability that the classes' log_probs spell the labels",
    .operands = {ALIGNED},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS | ED_OP_FIRST_ORDER,
    ED_OP_ATTRS(ALIGNMENT_ATTRS, alignment_attrs),
    .infer = alignment_infer,
    .kernel = alignment_kernel,
    .gradient = alignment_gradient,
    .reference = alignment_reference,
    .samples = ED_SAMPLES({.inputs = {SAMPLE(3, 7, 5, 2, 1, 4)}},
                          {.inputs = {SAMPLE(2, 9, 4, 3, 0, 2)}, .attrs = BLANK(3)}),
};

static bool ctc_loss_compose(ed_call *call)
{
    const ed_ctc_loss_options *o = call->attrs;
    ed_tensor *logits = call->inputs[1];
    if (ed_rank(logits) != 3)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "logits must be %s, got %s",
                            o->logits_time_major ? "[time, batch, classes]"
                                                 : "[batch, time, classes]",
                            text_of_tensor(logits).s);
    const int64_t classes = ed_dim(logits, 2);
    const int64_t blank = o->blank_index < 0 ? o->blank_index + classes : o->blank_index;
    if (blank < 0 || blank >= classes)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "blank_index is %lld, logits are %s",
                            (long long)o->blank_index, text_of_tensor(logits).s);
    if (o->logits_time_major) logits = ed_transpose(logits, .perm = ED_AXES(1, 0, 2));
    ed_tensor *loss = CALL_OP(ctc_alignment, BLANK(blank), ed_log_softmax(logits), call->inputs[0],
                              call->inputs[2], call->inputs[3]);
    return ed_call_result(call, 0, loss);
}

/* The same table as the alignment's, of log-probabilities that are computed here. */
static bool ctc_loss_reference(const ed_call *call)
{
    const ed_ctc_loss_options *o = call->attrs;
    const ed_tensor *x = call->inputs[1];
    const bool major = o->logits_time_major;
    const int64_t batch = x->shape[major], time = x->shape[!major], classes = x->shape[2];
    const int64_t shape[] = {batch, time, classes};
    ed_tensor *p = scope_give(tensor_new(ED_FLOAT64, 3, shape));
    if (!p) return false;
    for (int64_t i = 0; i < batch * time; i++) {
        const int64_t at = major ? i % time * batch + i / time : i;
        const double *from = (const double *)x->data + at * classes;
        double *to = (double *)p->data + i * classes, m = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++) m = fmax(m, from[c]);
        for (int64_t c = 0; c < classes; c++) sum += exp(from[c] - m);
        for (int64_t c = 0; c < classes; c++) to[c] = from[c] - m - log(sum);
    }
    ed_call plain = *call;
    ed_tensor *in[] = {p, call->inputs[0], call->inputs[2], call->inputs[3]};
    const int64_t blank = o->blank_index < 0 ? o->blank_index + classes : o->blank_index;
    plain.inputs = in;
    plain.attrs = BLANK(blank);
    return alignment_reference(&plain);
}

#define CTC(...) ED_ATTRS(ED_CTC_LOSS_OPTIONS, ed_ctc_loss_options, __VA_ARGS__)

ED_OP(ctc_loss) = {
    .name = "ctc_loss",
    .doc = "-log of the probability that logits spell the labels, blanks in between",
    .operands = {{"labels", ED_SET_INDEX, 0},
                 {"logits", ED_SET_FLOAT, 'T'},
                 {"label_length", ED_SET_INDEX, 0},
                 {"logit_length", ED_SET_INDEX, 0}},
    .flags = ED_OP_FIRST_ORDER,
    ED_OP_ATTRS(ED_CTC_LOSS_OPTIONS, ed_ctc_loss_options),
    .compose = ctc_loss_compose,
    .reference = ctc_loss_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(1, 4, 3, 2), ED_SAMPLE_IN(-2, 2, 7, 3, 5),
                                      ED_SAMPLE_IN(0, 2, 3), ED_SAMPLE_IN(4, 7, 3)}},
                          {.inputs = {ED_SAMPLE_IN(0, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 8, 4),
                                      ED_SAMPLE_IN(0, 3, 2), ED_SAMPLE_IN(6, 8, 2)},
                           .attrs = CTC(.logits_time_major = false, .blank_index = -1)}),
};

ed_tensor *ed_ctc_loss_with(ed_tensor *labels, ed_tensor *logits, ed_tensor *label_length,
                            ed_tensor *logit_length, const ed_ctc_loss_options *options)
{
    return CALL_OP(ctc_loss, options, labels, logits, label_length, logit_length);
}
