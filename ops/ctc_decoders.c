/*
 * ctc_greedy_decoder and ctc_beam_search_decoder: what inputs [time, batch, classes] spell.
 *
 * The beam search follows the likeliest prefixes. Each has two probabilities, of the paths that end
 * in a blank and of those that end in its last label; a step makes them anew from the prefix's own
 * and from those of the prefix one label shorter, if that is followed too. The prefixes of a sample
 * are a tree, so that one that is met again is the same node.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS, LENGTHS };

static bool decoder_shapes(const ed_call *call)
{
    const ed_tensor *x = call->inputs[INPUTS], *n = call->inputs[LENGTHS];
    if (x->rank == 3 && n->rank == 1 && n->shape[0] == x->shape[1] && (x->shape[2] || !x->shape[0]))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "inputs must be [time, batch, classes] with at least one class, and "
                        "sequence_length [batch]: inputs is %s, sequence_length is %s",
                        text_of_tensor(x).s, text_of_tensor(n).s);
}

static int64_t length_at(const ed_tensor *x, int64_t i)
{
    return x->dtype == ED_INT32 ? ((const int32_t *)x->data)[i] : ((const int64_t *)x->data)[i];
}

static bool decoder_lengths(const ed_call *call)
{
    const ed_tensor *x = call->inputs[LENGTHS];
    const int64_t most = call->inputs[INPUTS]->shape[0];
    for (int64_t i = 0; i < x->size; i++)
        if (length_at(x, i) < 0 || length_at(x, i) > most)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "sequence_length[%lld] is %lld; it must be 0 to %lld", text_nth(i),
                                (long long)length_at(x, i), (long long)most);
    return true;
}

/* ---- Greedy ---------------------------------------------------------------------------------- */

static bool greedy_infer(ed_call *call)
{
    const ed_ctc_greedy_options *o = call->attrs;
    const ed_tensor *x = call->inputs[INPUTS];
    if (!decoder_shapes(call)) return false;
    const int64_t classes = x->shape[2], batch = x->shape[1], all[] = {batch, x->shape[0]};
    if (o->blank_index >= classes || o->blank_index < -classes) {
        if (classes)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "blank_index is %lld, inputs is %s",
                                (long long)o->blank_index, text_of_tensor(x).s);
    }
    return ed_call_output(call, 0, ED_INT64, 2, all) &&
           ed_call_output(call, 1, ED_INT64, 1, &batch) &&
           ed_call_output(call, 2, x->dtype, 2, (const int64_t[]){batch, 1});
}

/* The first of the largest elements. */
static int64_t largest_of(const ed_tensor *x, int64_t at, int64_t n)
{
    int64_t best = 0;
    for (int64_t c = 1; c < n; c++)
        if (dtype_load(x->dtype, x->data, at + c) > dtype_load(x->dtype, x->data, at + best))
            best = c;
    return best;
}

static bool greedy_kernel(ed_call *call)
{
    const ed_ctc_greedy_options *o = call->attrs;
    const ed_tensor *x = call->inputs[INPUTS];
    const int64_t time = x->shape[0], batch = x->shape[1], classes = x->shape[2];
    const int64_t blank = o->blank_index < 0 ? o->blank_index + classes : o->blank_index;
    if (!decoder_lengths(call)) return false;
    for (int64_t b = 0; b < batch; b++) {
        int64_t *y = (int64_t *)call->outputs[0]->data + b * time, n = 0, before = -1;
        double sum = 0;
        for (int64_t t = 0; t < length_at(call->inputs[LENGTHS], b); t++) {
            const int64_t at = (t * batch + b) * classes, c = largest_of(x, at, classes);
            sum -= dtype_load(x->dtype, x->data, at + c);
            if (c != blank && !(o->merge_repeated && c == before)) y[n++] = c;
            before = c;
        }
        ((int64_t *)call->outputs[1]->data)[b] = n;
        for (; n < time; n++) y[n] = -1;
        dtype_store(x->dtype, call->outputs[2]->data, b, sum);
    }
    return true;
}

/* A path of classes first, which is then shortened. */
static bool greedy_reference(const ed_call *call)
{
    const ed_ctc_greedy_options *o = call->attrs;
    const ed_tensor *x = call->inputs[INPUTS];
    const int64_t time = x->shape[0], batch = x->shape[1], classes = x->shape[2];
    for (int64_t b = 0; b < batch; b++) {
        double *y = (double *)call->outputs[0]->data + b * time, sum = 0;
        const int64_t steps = (int64_t)((const double *)call->inputs[LENGTHS]->data)[b];
        int64_t n = 0;
        for (int64_t t = 0; t < time; t++) {
            const double *p = (const double *)x->data + (t * batch + b) * classes;
            y[t] = 0;
            for (int64_t c = 0; c < classes; c++) y[t] = p[c] > p[(int64_t)y[t]] ? (double)c : y[t];
            sum += t < steps ? p[(int64_t)y[t]] : 0;
        }
        const int64_t blank = o->blank_index < 0 ? o->blank_index + classes : o->blank_index;
        double last = -1;
        for (int64_t t = 0; t < steps; t++) {
            const double c = y[t];
            const bool again = o->merge_repeated && c == last;
            last = c;
            if (c != (double)blank && !again) y[n++] = c;
        }
        ((double *)call->outputs[1]->data)[b] = (double)n;
        ((double *)call->outputs[2]->data)[b] = -sum;
        while (n < time) y[n++] = -1;
    }
    return true;
}

ED_OP(ctc_greedy_decoder) = {
    .name = "ctc_greedy_decoder",
    .doc = "the likeliest class of each step, without blanks and repetitions",
    .operands = {{"inputs", ED_SET_FLOAT, 'T'}, {"sequence_length", ED_SET_INDEX, 0}},
    .results = ED_RESULTS({.name = "decoded"}, {.name = "lengths"}, {.name = "neg_sum_logits"}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_CTC_GREEDY_OPTIONS, ed_ctc_greedy_options),
    .infer = greedy_infer,
    .kernel = greedy_kernel,
    .no_gradient = "it chooses classes",
    .reference = greedy_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 7, 3, 4), ED_SAMPLE_IN(0, 7, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 2, 3), ED_SAMPLE_IN(3, 5, 2)},
                           .attrs = ED_ATTRS(ED_CTC_GREEDY_OPTIONS, ed_ctc_greedy_options,
                                             .merge_repeated = false, .blank_index = 0)}),
};

ed_tensor *ed_ctc_greedy_decoder_with(ed_tensor *inputs, ed_tensor *sequence_length,
                                      ed_tensor **lengths, ed_tensor **neg_sum_logits,
                                      const ed_ctc_greedy_options *options)
{
    return ops_call_into(&ed_op_ctc_greedy_decoder, (ed_tensor *const[]){inputs, sequence_length},
                         2, options, (ed_tensor * *const[]){lengths, neg_sum_logits});
}

/* ---- Beam search ----------------------------------------------------------------------------- */

/* A prefix: its last label, and the logarithms of the probabilities of its paths that end in a
 * blank and in the label, before and after the step. */
typedef struct prefix {
    int64_t parent, child, sibling, label; /* nodes; -1: none */
    double blank, spoken, new_blank, new_spoken;
    bool followed;
} prefix;

/* A prefix that a step may add to those that are followed, or one of these. */
typedef struct candidate {
    double total;
    int64_t node, label; /* label -1: the node itself; else one longer than it */
} candidate;

typedef struct search {
    prefix *nodes;
    int64_t n_nodes, width, classes, n_beams, n_heap;
    int64_t *beams;
    candidate *heap; /* the worst first */
    double *p;       /* a step's logarithms of probabilities */
    bool *taken;     /* classes by which followed prefixes continue one */
} search;

static double log_sum(double a, double b)
{
    const double m = a > b ? a : b;
    return m == -INFINITY ? m : m + log(exp(a - m) + exp(b - m));
}

static int64_t length_of(const search *s, const candidate *c)
{
    int64_t n = c->label >= 0;
    for (int64_t at = c->node; s->nodes[at].parent >= 0; at = s->nodes[at].parent) n++;
    return n;
}

/* Of equally likely ones the shorter is better, then the one with the smaller label at the last
 * place where they differ. */
static bool is_worse(const search *s, const candidate *a, const candidate *b)
{
    if (a->total != b->total) return a->total < b->total;
    const int64_t m = length_of(s, a), n = length_of(s, b);
    if (m != n) return m > n;
    const bool longer_a = a->label >= 0, longer_b = b->label >= 0;
    int64_t i = a->node, j = b->node;
    const int64_t of_a = longer_a ? a->label : s->nodes[i].label;
    const int64_t of_b = longer_b ? b->label : s->nodes[j].label;
    if (of_a != of_b) return of_a > of_b;
    if (!longer_a && i != j) i = s->nodes[i].parent;
    if (!longer_b && i != j) j = s->nodes[j].parent;
    for (; i != j; i = s->nodes[i].parent, j = s->nodes[j].parent)
        if (s->nodes[i].label != s->nodes[j].label) return s->nodes[i].label > s->nodes[j].label;
    return false;
}

static void sink(search *s, int64_t i)
{
    for (;;) {
        int64_t least = i;
        for (int64_t c = 2 * i + 1; c <= 2 * i + 2 && c < s->n_heap; c++)
            if (is_worse(s, &s->heap[c], &s->heap[least])) least = c;
        if (least == i) return;
        const candidate other = s->heap[i];
        s->heap[i] = s->heap[least];
        s->heap[least] = other;
        i = least;
    }
}

static void offer(search *s, candidate new)
{
    if (s->n_heap == s->width) {
        if (!is_worse(s, &s->heap[0], &new)) return;
        s->heap[0] = new;
        sink(s, 0);
        return;
    }
    int64_t i = s->n_heap++;
    for (; i && is_worse(s, &new, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = new;
}

/* The heap from the best on. */
static void order(search *s)
{
    const int64_t n = s->n_heap;
    while (s->n_heap > 1) {
        const candidate worst = s->heap[0];
        s->heap[0] = s->heap[--s->n_heap];
        sink(s, 0);
        s->heap[s->n_heap] = worst;
    }
    s->n_heap = n;
}

/* What a path needs to continue a prefix by a label: after the same label, a blank. */
static double continues(const prefix *p, int64_t label)
{
    return p->label == label ? p->blank : log_sum(p->blank, p->spoken);
}

/* What is NaN is impossible. */
static void softmax_step(search *s, const ed_tensor *x, int64_t at)
{
    double m = -INFINITY, sum = 0;
    for (int64_t c = 0; c < s->classes; c++) {
        s->p[c] = dtype_load(x->dtype, x->data, at + c);
        m = fmax(m, s->p[c]);
    }
    for (int64_t c = 0; c < s->classes; c++) sum += exp(s->p[c] - m);
    for (int64_t c = 0; c < s->classes; c++) {
        const double p = s->p[c] - m - log(sum);
        s->p[c] = isnan(p) ? -INFINITY : p;
    }
}

/* Prefixes one longer than a followed one, but for those that are followed themselves. */
static void extend(search *s, int64_t node)
{
    const prefix *of = &s->nodes[node];
    memset(s->taken, 0, (size_t)s->classes);
    for (int64_t c = of->child; c >= 0; c = s->nodes[c].sibling)
        if (s->nodes[c].followed) s->taken[s->nodes[c].label] = true;
    for (int64_t label = 0; label < s->classes - 1; label++) {
        const double total = s->p[label] + continues(of, label);
        if (!s->taken[label] && total > -INFINITY) offer(s, (candidate){total, node, label});
    }
}

/* The node of a prefix that is one longer. */
static int64_t node_of(search *s, int64_t parent, int64_t label)
{
    for (int64_t c = s->nodes[parent].child; c >= 0; c = s->nodes[c].sibling)
        if (s->nodes[c].label == label) return c;
    s->nodes[s->n_nodes] = (prefix){.parent = parent,
                                    .child = -1,
                                    .sibling = s->nodes[parent].child,
                                    .label = label,
                                    .blank = -INFINITY,
                                    .spoken = -INFINITY};
    s->nodes[parent].child = s->n_nodes;
    return s->n_nodes++;
}

/* The followed prefixes' new probabilities. */
static void stay(search *s)
{
    for (int64_t i = 0; i < s->n_beams; i++) {
        prefix *p = &s->nodes[s->beams[i]];
        p->new_blank = log_sum(p->blank, p->spoken) + s->p[s->classes - 1];
        p->new_spoken = -INFINITY;
        if (p->label < 0) continue;
        const prefix *parent = &s->nodes[p->parent];
        const double from = parent->followed ? continues(parent, p->label) : -INFINITY;
        p->new_spoken = log_sum(p->spoken, from) + s->p[p->label];
    }
}

static void search_step(search *s)
{
    stay(s);
    s->n_heap = 0;
    for (int64_t i = 0; i < s->n_beams; i++) {
        const prefix *p = &s->nodes[s->beams[i]];
        offer(s, (candidate){log_sum(p->new_blank, p->new_spoken), s->beams[i], -1});
    }
    for (int64_t i = 0; i < s->n_beams; i++) extend(s, s->beams[i]);
    for (int64_t i = 0; i < s->n_beams; i++) {
        prefix *p = &s->nodes[s->beams[i]];
        p->followed = false;
        p->blank = p->new_blank;
        p->spoken = p->new_spoken;
    }
    s->n_beams = s->n_heap;
    for (int64_t i = 0; i < s->n_heap; i++) {
        const candidate *c = &s->heap[i];
        const int64_t node = c->label < 0 ? c->node : node_of(s, c->node, c->label);
        if (c->label >= 0) {
            s->nodes[node].blank = -INFINITY;
            s->nodes[node].spoken = c->total;
        }
        s->nodes[node].followed = true;
        s->beams[i] = node;
    }
}

static bool search_begin(search *s, const ed_call *call)
{
    const ed_ctc_beam_options *o = call->attrs;
    const ed_tensor *x = call->inputs[INPUTS];
    size_t nodes;
    *s = (search){.width = o->beam_width, .classes = x->shape[2]};
    if (__builtin_mul_overflow((size_t)x->shape[0], (size_t)s->width, &nodes) ||
        nodes > SIZE_MAX / 2 / sizeof(prefix) - 1)
        return ed_call_fail(call, ED_OUT_OF_MEMORY, "beam_width is too large");
    s->nodes = memory_alloc((nodes + 1) * sizeof *s->nodes);
    s->beams = memory_alloc((size_t)s->width * sizeof *s->beams);
    s->heap = memory_alloc((size_t)s->width * sizeof *s->heap);
    s->p = memory_alloc((size_t)s->classes * sizeof *s->p);
    s->taken = memory_alloc((size_t)s->classes);
    return s->nodes && s->beams && s->heap && s->p && s->taken;
}

static void search_end(search *s)
{
    memory_free(s->nodes);
    memory_free(s->beams);
    memory_free(s->heap);
    memory_free(s->p);
    memory_free(s->taken);
}

/* Writes path number `path` of a sample: labels, length, logarithm of the probability. */
static void write_path(const search *s, const ed_call *call, int64_t path, int64_t sample)
{
    const ed_tensor *x = call->inputs[INPUTS];
    const int64_t time = x->shape[0], batch = x->shape[1];
    const int64_t top = ((const ed_ctc_beam_options *)call->attrs)->top_paths;
    const bool there = path < s->n_heap;
    int64_t *y = (int64_t *)call->outputs[0]->data + (path * batch + sample) * time, n = 0;
    const int64_t last = there ? s->heap[path].node : 0;
    for (int64_t at = last; s->nodes[at].parent >= 0; at = s->nodes[at].parent) n++;
    for (int64_t t = n; t < time; t++) y[t] = -1;
    ((int64_t *)call->outputs[1]->data)[path * batch + sample] = n;
    for (int64_t at = last; s->nodes[at].parent >= 0; at = s->nodes[at].parent)
        y[--n] = s->nodes[at].label;
    dtype_store(x->dtype, call->outputs[2]->data, sample * top + path,
                there ? s->heap[path].total : -INFINITY);
}

static void search_sample(search *s, const ed_call *call, int64_t sample)
{
    const ed_tensor *x = call->inputs[INPUTS];
    s->nodes[0] = (prefix){.parent = -1,
                           .child = -1,
                           .sibling = -1,
                           .label = -1,
                           .spoken = -INFINITY,
                           .followed = true};
    s->beams[0] = 0;
    s->n_nodes = s->n_beams = 1;
    for (int64_t t = 0; t < length_at(call->inputs[LENGTHS], sample); t++) {
        softmax_step(s, x, (t * x->shape[1] + sample) * s->classes);
        search_step(s);
    }
    s->n_heap = 0;
    for (int64_t i = 0; i < s->n_beams; i++) {
        const prefix *p = &s->nodes[s->beams[i]];
        offer(s, (candidate){log_sum(p->blank, p->spoken), s->beams[i], -1});
    }
    order(s);
    for (int64_t i = 0; i < ((const ed_ctc_beam_options *)call->attrs)->top_paths; i++)
        write_path(s, call, i, sample);
}

static bool beam_infer(ed_call *call)
{
    const ed_ctc_beam_options *o = call->attrs;
    const ed_tensor *x = call->inputs[INPUTS];
    if (!decoder_shapes(call)) return false;
    if (o->top_paths > o->beam_width)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "top_paths must be at most beam_width, got %lld and %lld",
                            (long long)o->top_paths, (long long)o->beam_width);
    const int64_t all[] = {o->top_paths, x->shape[1], x->shape[0]};
    const int64_t each[] = {x->shape[1], o->top_paths};
    return ed_call_output(call, 0, ED_INT64, 3, all) && ed_call_output(call, 1, ED_INT64, 2, all) &&
           ed_call_output(call, 2, x->dtype, 2, each);
}

static bool beam_kernel(ed_call *call)
{
    const int64_t batch = call->inputs[INPUTS]->shape[1];
    search s;
    if (!decoder_lengths(call)) return false;
    const bool ok = !batch || search_begin(&s, call);
    for (int64_t b = 0; ok && b < batch; b++) search_sample(&s, call, b);
    if (batch) search_end(&s);
    return ok;
}

/* ---- Its reference: the same search on written-out labellings -------------------------------- */

/* A labelling as a chain of labels from the last one on, and its two probabilities. */
typedef struct spelling {
    const struct spelling *front; /* without the last label; NULL of the empty one */
    double label, n, blank, spoken;
} spelling;

static bool same_spelling(const spelling *a, const spelling *b)
{
    for (; a != b && a->front && b->front; a = a->front, b = b->front)
        if (a->label != b->label) return false;
    return a == b || (!a->front && !b->front);
}

static int better_first(const void *first, const void *second)
{
    const spelling *a = first, *b = second;
    const double x = log_sum(a->blank, a->spoken), y = log_sum(b->blank, b->spoken);
    if (x != y) return (x < y) - (x > y);
    if (a->n != b->n) return (a->n > b->n) - (a->n < b->n);
    for (; a->front && b->front; a = a->front, b = b->front)
        if (a->label != b->label) return a->label > b->label ? 1 : -1;
    return 0;
}

/* The logarithm of the probability of going on from `a` by a label. */
static double goes_on(const spelling *a, double label)
{
    return a->front && a->label == label ? a->blank : log_sum(a->blank, a->spoken);
}

static const spelling *find_spelling(const spelling *all, int64_t n, const spelling *wanted)
{
    for (int64_t i = 0; i < n; i++)
        if (all[i].n == wanted->n && same_spelling(&all[i], wanted)) return &all[i];
    return NULL;
}

/* All that n spellings become by a step of probabilities p, the blank's last: how many. */
static int64_t plain_step(const spelling *from, int64_t n, const double *p, int64_t classes,
                          spelling *to)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        spelling *stays = &to[count++];
        *stays = from[i];
        stays->blank = log_sum(from[i].blank, from[i].spoken) + p[classes - 1];
        stays->spoken = -INFINITY;
        if (!from[i].front) continue;
        const spelling *front = find_spelling(from, n, from[i].front);
        const double joins = front ? goes_on(front, from[i].label) : -INFINITY;
        stays->spoken = log_sum(from[i].spoken, joins) + p[(int64_t)from[i].label];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < classes - 1; c++) {
            spelling new = {&from[i], (double)c, from[i].n + 1, -INFINITY, -INFINITY};
            new.spoken = p[c] + goes_on(&from[i], (double)c);
            if (new.spoken > -INFINITY && !find_spelling(from, n, &new)) to[count++] = new;
        }
    return count;
}

static void plain_softmax(const double *x, int64_t n, double *p)
{
    double m = -INFINITY, sum = 0;
    for (int64_t c = 0; c < n; c++) m = fmax(m, x[c]);
    for (int64_t c = 0; c < n; c++) sum += exp(x[c] - m);
    for (int64_t c = 0; c < n; c++)
        p[c] = isnan(x[c] - m - log(sum)) ? -INFINITY : x[c] - m - log(sum);
}

/* Each step's spellings stay where they are, for those that go on from them. */
static bool plain_search(const ed_call *call, int64_t b)
{
    const ed_ctc_beam_options *o = call->attrs;
    const ed_tensor *x = call->inputs[INPUTS];
    const int64_t time = x->shape[0], batch = x->shape[1], classes = x->shape[2];
    const int64_t steps = (int64_t)((const double *)call->inputs[LENGTHS]->data)[b];
    const int64_t most = o->beam_width * classes;
    spelling *all = memory_alloc((size_t)(steps * o->beam_width + 1 + most) * sizeof *all);
    double *p = memory_alloc((size_t)classes * sizeof *p);
    spelling *now = all;
    int64_t n = 1;
    if (all) *all = (spelling){.spoken = -INFINITY};
    for (int64_t t = 0; all && p && t < steps; t++) {
        plain_softmax((const double *)x->data + (t * batch + b) * classes, classes, p);
        const int64_t count = plain_step(now, n, p, classes, now + n);
        now += n;
        n = count < o->beam_width ? count : o->beam_width;
        qsort(now, (size_t)count, sizeof *now, better_first);
    }
    if (all) qsort(now, (size_t)n, sizeof *now, better_first);
    for (int64_t i = 0; all && i < o->top_paths; i++) {
        double *y = (double *)call->outputs[0]->data + (i * batch + b) * time;
        const spelling *s = i < n ? &now[i] : all;
        for (int64_t k = (int64_t)s->n; k < time; k++) y[k] = -1;
        ((double *)call->outputs[1]->data)[i * batch + b] = s->n;
        ((double *)call->outputs[2]->data)[b * o->top_paths + i] =
            i < n ? log_sum(s->blank, s->spoken) : -INFINITY;
        for (int64_t k = (int64_t)s->n; s->front; s = s->front) y[--k] = s->label;
    }
    memory_free(p);
    memory_free(all);
    return all && p;
}

static bool beam_reference(const ed_call *call)
{
    for (int64_t b = 0; b < call->inputs[INPUTS]->shape[1]; b++)
        if (!plain_search(call, b)) return false;
    return true;
}

#define BEAM(...) ED_ATTRS(ED_CTC_BEAM_OPTIONS, ed_ctc_beam_options, __VA_ARGS__)

ED_OP(ctc_beam_search_decoder) = {
    .name = "ctc_beam_search_decoder",
    .doc = "the likeliest labellings that a search with beam_width beams finds",
    .operands = {{"inputs", ED_SET_FLOAT, 'T'}, {"sequence_length", ED_SET_INDEX, 0}},
    .results = ED_RESULTS({.name = "decoded"}, {.name = "lengths"}, {.name = "log_probability"}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_CTC_BEAM_OPTIONS, ed_ctc_beam_options),
    .infer = beam_infer,
    .kernel = beam_kernel,
    .no_gradient = "it chooses labels",
    .reference = beam_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 2, 3), ED_SAMPLE_IN(1, 4, 2)},

                           .attrs = BEAM(.beam_width = 4, .top_paths = 3)}),
};

ed_tensor *ed_ctc_beam_search_decoder_with(ed_tensor *inputs, ed_tensor *sequence_length,
                                           ed_tensor **lengths, ed_tensor **log_probability,
                                           const ed_ctc_beam_options *options)
{
    return ops_call_into(&ed_op_ctc_beam_search_decoder,
                         (ed_tensor *const[]){inputs, sequence_length}, 2, options,
                         (ed_tensor * *const[]){lengths, log_probability});
}
