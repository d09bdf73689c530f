/*
 * einsum: sums of products, said by the labels of the operands' axes. A composition: operands are
 * contracted two at a time, the cheapest pair first, each pair by one matrix product over
 * transposed views. Its axes are [labels of both that stay, of a alone, of both that are summed]
 * and [labels of both that stay, of both that are summed, of b alone].
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include <string.h>

/* Labels are letters; the axes of an ellipsis have the numbers behind, the last axis the last. */
enum { LETTERS = 52, LABELS = LETTERS + ED_MAX_RANK };

typedef struct term {
    ed_tensor *x;
    int n;
    int labels[ED_MAX_RANK];
} term;

typedef struct parts {
    term *terms;           /* one an operand */
    term output;           /* without a tensor */
    int64_t sizes[LABELS]; /* -1: no operand has it */
} parts;

#define EINSUM_ATTRS(FIELD, T)                                                                     \
    FIELD(T, STRING, equation, "", ED_REQUIRED, "labels of the operands' axes -> of the result's")
ED_OPTIONS(einsum_attrs, EINSUM_ATTRS);

/* ---- Reading the equation -------------------------------------------------------------------- */

static int label_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

static bool add_label(const ed_call *call, term *t, int label)
{
    if (t->n == ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "more than %d axes in a part of '%.100s'",
                            ED_MAX_RANK, ((const einsum_attrs *)call->attrs)->equation);
    t->labels[t->n++] = label;
    return true;
}

/* The labels of one part, up to ',', '-' or the end; an ellipsis has `axes` axes. */
static bool read_part(const ed_call *call, const char **at, int axes, term *t)
{
    bool seen = false;
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ') continue;
        if (!strncmp(*at, "...", 3) && !seen) {
            for (int i = 0; i < axes; i++)
                if (!add_label(call, t, LABELS - axes + i)) return false;
            *at += 2;
            seen = true;
            continue;
        }
        const int label = label_of(**at);
        if (label < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "'%c' in '%.100s' is no label", **at,
                                ((const einsum_attrs *)call->attrs)->equation);
        if (!add_label(call, t, label)) return false;
    }
    return true;
}

/* How many letters a part has, and whether it has an ellipsis. */
static int count_letters(const char *at, bool *ellipsis)
{
    int n = 0;
    *ellipsis = false;
    for (; *at && *at != ',' && *at != '-'; at++) {
        n += label_of(*at) >= 0;
        *ellipsis |= *at == '.';
    }
    return n;
}

static text label_name(int label)
{
    text t = {"..."};
    if (label >= LETTERS) return t;
    t.s[0] = (char)(label < 26 ? 'A' + label : 'a' + label - 26);
    t.s[1] = 0;
    return t;
}

static bool read_operand(const ed_call *call, parts *e, int i, const char **at, int *widest)
{
    const ed_tensor *x = call->inputs[i];
    const int rank = ed_rank(x);
    bool ellipsis;
    const int letters = count_letters(*at, &ellipsis), axes = rank - letters;
    if (axes < 0 || (axes > 0 && !ellipsis))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "operand %lld is %s; '%.100s' says %d axes for it", text_nth(i),
                            text_of_tensor(x).s, ((const einsum_attrs *)call->attrs)->equation,
                            letters);
    term *t = &e->terms[i];
    *t = (term){.x = call->inputs[i]};
    if (!read_part(call, at, axes, t)) return false;
    if (axes > *widest) *widest = axes;
    for (int d = 0; d < t->n; d++) {
        int64_t *size = &e->sizes[t->labels[d]], mine = ed_dim(x, d);
        const bool stretches = t->labels[d] >= LETTERS && (*size == 1 || mine == 1);
        if (*size >= 0 && *size != mine && !stretches)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "label %s has size %lld, and %lld in operand %lld, %s",
                                label_name(t->labels[d]).s, (long long)*size, (long long)mine,
                                text_nth(i), text_of_tensor(x).s);
        if (*size < 0 || *size == 1) *size = mine;
    }
    return true;
}

/* Without '->': the ellipsis, then the letters that are there once, in their order. */
static bool imply_output(const ed_call *call, parts *e, int widest)
{
    int times[LABELS] = {0};
    for (int i = 0; i < call->n_inputs; i++)
        for (int d = 0; d < e->terms[i].n; d++) times[e->terms[i].labels[d]]++;
    for (int i = 0; i < widest; i++)
        if (!add_label(call, &e->output, LABELS - widest + i)) return false;
    for (int l = 0; l < LETTERS; l++)
        if (times[l] == 1 && !add_label(call, &e->output, l)) return false;
    return true;
}

static bool check_output_labels(const ed_call *call, const parts *e)
{
    bool seen[LABELS] = {false};
    for (int d = 0; d < e->output.n; d++) {
        const int label = e->output.labels[d];
        if (seen[label] || e->sizes[label] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "label %s of the result %s",
                                label_name(label).s,
                                seen[label] ? "is there twice" : "is in no operand");
        seen[label] = true;
    }
    return true;
}

/* Fills e, whose terms have room for the operands. */
static bool read_equation(const ed_call *call, parts *e)
{
    const char *at = ((const einsum_attrs *)call->attrs)->equation;
    int widest = 0, i = 0;
    if (!at) at = "";
    for (int l = 0; l < LABELS; l++) e->sizes[l] = -1;
    e->output = (term){0};
    while (true) {
        if (i < call->n_inputs && !read_operand(call, e, i, &at, &widest)) return false;
        i++;
        if (i > call->n_inputs || *at != ',') break;
        at++;
    }
    if (i != call->n_inputs || *at == ',')
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "'%.100s' does not have %d operands",
                            ((const einsum_attrs *)call->attrs)->equation, call->n_inputs);
    if (!*at) return imply_output(call, e, widest);
    if (strncmp(at, "->", 2))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "'%.10s' is not '->'", at);
    at += 2;
    if (!read_part(call, &at, widest, &e->output)) return false;
    if (*at) return ed_call_fail(call, ED_INVALID_ARGUMENT, "'%.10s' behind the result", at);
    return check_output_labels(call, e);
}

/* ---- Axes of one operand --------------------------------------------------------------------- */

extern const ed_op ed_op_einsum_diagonal;

#define DIAGONAL_ATTRS(FIELD, T)                                                                   \
    FIELD(T, INT, first, 0, ED_ANY, "axis that stays")                                             \
    FIELD(T, INT, second, 1, ED_ANY, "axis that goes, behind it, of the same size")
ED_OPTIONS(diagonal_attrs, DIAGONAL_ATTRS);
#define DIAGONAL(...) ED_ATTRS(DIAGONAL_ATTRS, diagonal_attrs, __VA_ARGS__)

static int place_of(const term *t, int label)
{
    for (int d = 0; d < t->n; d++)
        if (t->labels[d] == label) return d;
    return -1;
}

static void drop_label(term *t, int d)
{
    t->n--;
    memmove(t->labels + d, t->labels + d + 1, (size_t)(t->n - d) * sizeof *t->labels);
}

/* A label that a term has twice is its diagonal; an axis of size 1 that stands for more goes. */
static bool simplify(const parts *e, term *t)
{
    for (int d = t->n - 1; d >= 0; d--) {
        const int first = place_of(t, t->labels[d]);
        if (first < d)
            t->x = CALL_OP(einsum_diagonal, DIAGONAL(.first = first, .second = d), t->x);
        else if (ed_dim(t->x, d) != e->sizes[t->labels[d]])
            t->x = ed_squeeze(t->x, .axis = ED_AXES(d));
        else
            continue;
        if (!t->x) return false;
        drop_label(t, d);
    }
    return true;
}

/* Sums the term over the labels that are not kept. */
static bool sum_out(term *t, const bool *kept)
{
    int64_t axes[ED_MAX_RANK];
    int n = 0;
    for (int d = 0; d < t->n; d++)
        if (!kept[t->labels[d]]) axes[n++] = d;
    if (n) t->x = ed_reduce_sum(t->x, .axis = {axes, n});
    for (int i = n - 1; i >= 0; i--) drop_label(t, (int)axes[i]);
    return t->x;
}

/* The term's axes in the order of the labels, all of which it has. */
static ed_tensor *ordered(const term *t, const int *labels, int n)
{
    int64_t perm[ED_MAX_RANK];
    bool same = true;
    for (int d = 0; d < n; d++) {
        perm[d] = place_of(t, labels[d]);
        same &= perm[d] == d;
    }
    return same ? t->x : ed_transpose(t->x, .perm = {perm, n});
}

/* ---- Two operands ---------------------------------------------------------------------------- */

/* The labels of a pair by what becomes of them. */
typedef struct groups {
    int batch[ED_MAX_RANK], left[ED_MAX_RANK], summed[ED_MAX_RANK], right[ED_MAX_RANK];
    int n_batch, n_left, n_summed, n_right;
} groups;

static void group(const term *a, const term *b, const bool *kept, groups *g)
{
    *g = (groups){.n_batch = 0};
    for (int d = 0; d < a->n; d++) {
        const int label = a->labels[d];
        if (place_of(b, label) < 0)
            g->left[g->n_left++] = label;
        else if (kept[label])
            g->batch[g->n_batch++] = label;
        else
            g->summed[g->n_summed++] = label;
    }
    for (int d = 0; d < b->n; d++)
        if (place_of(a, b->labels[d]) < 0) g->right[g->n_right++] = b->labels[d];
}

static void add_labels(int *labels, int *n, const int *more, int count)
{
    memcpy(labels + *n, more, (size_t)count * sizeof *more);
    *n += count;
}

static int64_t size_of(const parts *e, const int *labels, int n)
{
    int64_t size = 1;
    for (int i = 0; i < n; i++) size *= e->sizes[labels[i]];
    return size;
}

/* x as [batch, rows, columns], the batch's labels in one axis or as they are. */
static ed_tensor *as_matrices(const parts *e, const term *t, const groups *g, bool of_a)
{
    int labels[ED_MAX_RANK], n = 0;
    int64_t shape[ED_MAX_RANK];
    const int *rows = of_a ? g->left : g->summed, *columns = of_a ? g->summed : g->right;
    const int n_rows = of_a ? g->n_left : g->n_summed, n_columns = of_a ? g->n_summed : g->n_right;
    add_labels(labels, &n, g->batch, g->n_batch);
    add_labels(labels, &n, rows, n_rows);
    add_labels(labels, &n, columns, n_columns);
    const bool joined = g->n_batch + 2 > ED_MAX_RANK;
    int rank = 0;
    if (joined)
        shape[rank++] = size_of(e, g->batch, g->n_batch);
    else
        for (; rank < g->n_batch; rank++) shape[rank] = e->sizes[g->batch[rank]];
    shape[rank++] = size_of(e, rows, n_rows);
    shape[rank++] = size_of(e, columns, n_columns);
    ed_tensor *x = ordered(t, labels, n);
    return x && (joined || n_rows != 1 || n_columns != 1) ? ed_reshape(x, (ed_ints){shape, rank})
                                                          : x;
}

/* x with axes of size 1 for the labels that it has not. */
static ed_tensor *spread(const term *t, const int *labels, int n)
{
    int own[ED_MAX_RANK] = {0}, count = 0;
    for (int d = 0; d < n; d++)
        if (place_of(t, labels[d]) >= 0) own[count++] = labels[d];
    ed_tensor *x = ordered(t, own, count);
    for (int d = 0; d < n; d++)
        if (place_of(t, labels[d]) < 0) x = ed_expand_dims(x, d);
    return x;
}

/* Both by one product, in a. */
static bool contract(const ed_call *call, const parts *e, term *a, const term *b, const bool *kept)
{
    groups g;
    int labels[3 * ED_MAX_RANK], n = 0;
    int64_t shape[ED_MAX_RANK];
    group(a, b, kept, &g);
    add_labels(labels, &n, g.batch, g.n_batch);
    add_labels(labels, &n, g.left, g.n_left);
    add_labels(labels, &n, g.right, g.n_right);
    if (n > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a product of two operands has %d axes; %d are possible", n,
                            ED_MAX_RANK);
    for (int d = 0; d < n; d++) shape[d] = e->sizes[labels[d]];
    ed_tensor *y;
    if (g.n_summed) {
        y = ed_matmul(as_matrices(e, a, &g, true), as_matrices(e, b, &g, false));
        if (g.n_batch + 2 > ED_MAX_RANK || g.n_left != 1 || g.n_right != 1)
            y = ed_reshape(y, (ed_ints){shape, n});
    } else
        y = ed_mul(spread(a, labels, n), spread(b, labels, n));
    a->x = y;
    a->n = n;
    memcpy(a->labels, labels, (size_t)n * sizeof *labels);
    return y;
}

/* The multiply-adds of a pair. */
static double cost_of(const parts *e, const term *a, const term *b)
{
    double cost = 1;
    for (int d = 0; d < a->n; d++) cost *= (double)e->sizes[a->labels[d]];
    for (int d = 0; d < b->n; d++)
        if (place_of(a, b->labels[d]) < 0) cost *= (double)e->sizes[b->labels[d]];
    return cost;
}

static void cheapest(const parts *e, int n, int *a, int *b)
{
    double least = 0;
    *a = 0, *b = 1;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            const double cost = cost_of(e, &e->terms[i], &e->terms[j]);
            if ((i || j > 1) && cost >= least) continue;
            least = cost;
            *a = i, *b = j;
        }
}

/* Labels of the result, and of operands other than a and b. */
static void find_kept(const parts *e, int n, int a, int b, bool *kept)
{
    memset(kept, 0, LABELS * sizeof *kept);
    for (int d = 0; d < e->output.n; d++) kept[e->output.labels[d]] = true;
    for (int i = 0; i < n; i++)
        for (int d = 0; i != a && i != b && d < e->terms[i].n; d++)
            kept[e->terms[i].labels[d]] = true;
}

/* ---- einsum ---------------------------------------------------------------------------------- */

static bool compute(ed_call *call, parts *e)
{
    bool kept[LABELS];
    int n = call->n_inputs;
    if (!read_equation(call, e)) return false;
    for (int i = 0; i < n; i++)
        if (!simplify(e, &e->terms[i])) return false;
    for (int i = 0; i < n; i++) { /* what one operand alone has */
        find_kept(e, n, i, i, kept);
        if (!sum_out(&e->terms[i], kept)) return false;
    }
    for (; n > 1; n--) {
        int a, b;
        cheapest(e, n, &a, &b);
        find_kept(e, n, a, b, kept);
        if (!contract(call, e, &e->terms[a], &e->terms[b], kept)) return false;
        e->terms[b] = e->terms[n - 1];
    }
    find_kept(e, 0, 0, 0, kept);
    if (!sum_out(&e->terms[0], kept)) return false;
    return ed_call_result(call, 0, ordered(&e->terms[0], e->output.labels, e->output.n));
}

static bool einsum_compose(ed_call *call)
{
    parts e;
    e.terms = memory_alloc((size_t)call->n_inputs * sizeof *e.terms);
    const bool ok = e.terms && compute(call, &e);
    memory_free(e.terms);
    return ok;
}

/* The product of the operands' elements at one place, an index for each label. */
static double product_at(const ed_call *call, const parts *e, const int64_t *at)
{
    double product = 1;
    for (int i = 0; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        int64_t place = 0;
        for (int d = 0; d < x->rank; d++)
            place = place * x->shape[d] + (x->shape[d] == 1 ? 0 : at[e->terms[i].labels[d]]);
        product *= ((const double *)x->data)[place];
    }
    return product;
}

/* Every combination of indices, one after the other. */
static void sum_all(const ed_call *call, const parts *e)
{
    const ed_tensor *y = call->outputs[0];
    int64_t at[LABELS] = {0};
    for (int l = 0; l < LABELS; l++)
        if (e->sizes[l] == 0) return;
    while (true) {
        int64_t place = 0;
        for (int d = 0; d < e->output.n; d++) place = place * y->shape[d] + at[e->output.labels[d]];
        ((double *)y->data)[place] += product_at(call, e, at);
        int l = 0;
        while (l < LABELS && (e->sizes[l] < 0 || ++at[l] == e->sizes[l])) at[l++] = 0;
        if (l == LABELS) return;
    }
}

static bool einsum_reference(const ed_call *call)
{
    parts e;
    term terms[ED_MAX_OPERANDS];
    e.terms = terms;
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = 0;
    if (!read_equation(call, &e)) return false;
    sum_all(call, &e);
    return true;
}

#define SUM(said) ED_ATTRS(EINSUM_ATTRS, einsum_attrs, .equation = said)

ED_OP(einsum) = {
    .name = "einsum",
    .doc = "sums of products over labelled axes: 'ij,jk->ik'",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_VARIADIC,
    ED_OP_ATTRS(EINSUM_ATTRS, einsum_attrs),
    .compose = einsum_compose,
    .reference = einsum_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 3, 2)}, .attrs = SUM("ij,jk")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2), ED_SAMPLE_IN(-2, 2, 2, 1, 2)},
         .attrs = SUM("b...i, b...i -> ...b")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3), ED_SAMPLE_IN(-2, 2, 3)},
         .attrs = SUM("bii,i->bi")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2), ED_SAMPLE_IN(-2, 2, 2), ED_SAMPLE_IN(-2, 2, 2)},
         .attrs = SUM("i,i,i->i")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2)}, .attrs = SUM("iji->j")}),
};

ed_tensor *ed_einsum(const char *equation, ed_list *operands)
{
    if (!operands) return ed_fail(ED_INVALID_ARGUMENT, "einsum: the list of operands is NULL");
    return ed_call_op(&ed_op_einsum, operands->items, (int)operands->size, SUM(equation));
}

/* ---- einsum_diagonal ------------------------------------------------------------------------- */

static bool diagonal_infer(ed_call *call)
{
    const diagonal_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int64_t first = o->first, second = o->second;
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK];
    if (first < 0 || first >= second || second >= x->rank || x->shape[first] != x->shape[second])
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s has no diagonal of axes %lld and %lld",
                            text_of_tensor(x).s, (long long)first, (long long)second);
    for (int d = 0, n = 0; d < x->rank; d++) {
        if (d == second) continue;
        shape[n] = x->shape[d];
        strides[n++] = x->strides[d] + (d == first ? x->strides[second] : 0);
    }
    return ed_call_view(call, 0, 0, x->rank - 1, shape, strides, 0);
}

/* dx = dy on the diagonal, 0 elsewhere */
static bool diagonal_gradient(const ed_gradient_call *g)
{
    const diagonal_attrs *o = g->attrs;
    const ed_ints shape = g->shapes[0];
    const int64_t n = shape.values[o->first];
    ed_tensor *a = ed_range(0, (double)n, .dtype = ED_INT64), *b = a;
    for (int64_t d = shape.count - 1; d > o->first; d--) a = ed_expand_dims(a, 1);
    for (int64_t d = shape.count - 1; d > o->second; d--) b = ed_expand_dims(b, 1);
    ed_tensor *dy = ed_expand_dims(g->dy[0], o->second);
    g->dx[0] = ed_where(ed_equal(a, b), dy, 0);
    return true;
}

static bool diagonal_reference(const ed_call *call)
{
    const diagonal_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    for (int64_t e = 0; e < y->size; e++) {
        int64_t at[ED_MAX_RANK], rest = e, place = 0;
        for (int d = y->rank - 1; d >= 0; rest /= y->shape[d], d--) at[d] = rest % y->shape[d];
        for (int d = 0; d < x->rank; d++) {
            const int64_t from = d == o->second ? o->first : d > o->second ? d - 1 : d;
            place = place * x->shape[d] + at[from];
        }
        ((double *)y->data)[e] = ((const double *)x->data)[place];
    }
    return true;
}

ED_OP(einsum_diagonal) = {
    .name = "einsum_diagonal",
    .doc = "x where the indices of two axes are the same",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_INTERNAL,
    ED_OP_ATTRS(DIAGONAL_ATTRS, diagonal_attrs),
    .infer = diagonal_infer,
    .gradient = diagonal_gradient,
    .reference = diagonal_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2, 3)},
                           .attrs = DIAGONAL(.second = 2)}),
};
