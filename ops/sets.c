/*
 * Sets of numbers along the last axis: intersection, union, difference. Both operands are sorted,
 * and pairs of lines merged twice: once to see how large the sets are, and to write them.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

typedef enum set_kind { SET_INTERSECTION, SET_UNION, SET_DIFFERENCE } set_kind;

#define TYPE f32
#include "ops/sets.typed.h"
#define TYPE f64
#include "ops/sets.typed.h"
#define TYPE i32
#include "ops/sets.typed.h"
#define TYPE i64
#include "ops/sets.typed.h"
#define TYPE u8
#include "ops/sets.typed.h"

/* All lines of sorted a and b. */
typedef struct set_work {
    set_kind kind;
    const ed_tensor *a, *b;
    int64_t m, n; /* elements of a line */
    int64_t *counts;
    ed_tensor *y; /* NULL: the sets are counted only */
} set_work;

static int64_t merge(const set_work *w, const char *a, const char *b, char *to)
{
    switch (w->a->dtype) {
    case ED_FLOAT32: return set_merge_f32(w->kind, a, w->m, b, w->n, to);
    case ED_FLOAT64: return set_merge_f64(w->kind, a, w->m, b, w->n, to);
    case ED_INT32: return set_merge_i32(w->kind, a, w->m, b, w->n, to);
    case ED_INT64: return set_merge_i64(w->kind, a, w->m, b, w->n, to);
    default: return set_merge_u8(w->kind, a, w->m, b, w->n, to);
    }
}

static void merge_range(int64_t first, int64_t last, int worker, void *user)
{
    const set_work *w = user;
    const int64_t element = (int64_t)dtype_size(w->a->dtype);
    const int64_t k = w->y ? w->y->shape[w->y->rank - 1] : 0;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        char *to = w->y ? w->y->data + i * k * element : NULL;
        w->counts[i] =
            merge(w, w->a->data + i * w->m * element, w->b->data + i * w->n * element, to);
        if (to) memset(to + w->counts[i] * element, 0, (size_t)((k - w->counts[i]) * element));
    }
}

static void merge_all(set_work *w, int64_t lines)
{
    const bool outer = threads_may_stop(false); /* counts say how much is written */
    threads_run(lines, 1 + OPS_PARALLEL_WORK / 8 / (1 + w->m + w->n), merge_range, w);
    threads_may_stop(outer);
}

/* The elements of both sorted along the last axis, contiguous. */
static const ed_tensor *sorted_lines(const ed_call *call, int i)
{
    ed_tensor *x = call->inputs[i];
    if (ed_rank(x) < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must have rank >= 1, got %s",
                            call->op->operands[i].name, text_of_tensor(tensor_read(x)).s),
               NULL;
    return ed_contiguous(ed_sort(x));
}

static bool set_compose(ed_call *call)
{
    set_work w = {.kind = *(const set_kind *)call->op->extra};
    if (!(w.a = sorted_lines(call, 0)) || !(w.b = sorted_lines(call, 1))) return false;
    const int leading = w.a->rank - 1;
    int64_t shape[ED_MAX_RANK], lines = 1;
    if (w.b->rank != w.a->rank ||
        memcmp(w.a->shape, w.b->shape, (size_t)leading * sizeof *shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a is %s, b is %s; only the last axes may differ",
                            text_of_tensor(w.a).s, text_of_tensor(w.b).s);
    for (int i = 0; i < leading; i++) lines *= shape[i] = w.a->shape[i];
    w.m = w.a->shape[leading];
    w.n = w.b->shape[leading];
    ed_tensor *counts = scope_give(tensor_new(ED_INT64, leading, shape));
    if (!counts) return false;
    w.counts = (int64_t *)counts->data;
    merge_all(&w, lines);
    shape[leading] = 0;
    for (int64_t i = 0; i < lines; i++)
        if (w.counts[i] > shape[leading]) shape[leading] = w.counts[i];
    if (!(w.y = scope_give(tensor_new(w.a->dtype, leading + 1, shape)))) return false;
    if (w.y->size) merge_all(&w, lines);
    return ed_call_result(call, 0, w.y) && ed_call_result(call, 1, counts);
}

/* Whether a line has x, all NaN being one. */
static bool plain_has(const double *line, int64_t n, double x)
{
    bool has = false;
    for (int64_t i = 0; i < n; i++) has |= isnan(x) ? isnan(line[i]) : line[i] == x;
    return has;
}

/* The smallest element of both lines that follows x in the order; false if there is none. */
static bool plain_next(const double *a, int64_t m, const double *b, int64_t n, bool any, double *x)
{
    bool found = false;
    double next = 0;
    for (int64_t i = 0; i < m + n; i++) {
        const double y = i < m ? a[i] : b[i - m];
        const bool behind = !any || (!isnan(*x) && (isnan(y) || y > *x));
        if (behind && (!found || (!isnan(y) && (isnan(next) || y < next)))) {
            next = y;
            found = true;
        }
    }
    *x = next;
    return found;
}

static bool set_plain(const ed_call *call)
{
    const set_kind kind = *(const set_kind *)call->op->extra;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t m = a->shape[a->rank - 1], n = b->shape[b->rank - 1], k = y->shape[y->rank - 1];
    for (int64_t i = 0; i < call->outputs[1]->size; i++) {
        const double *x = (const double *)a->data + i * m, *z = (const double *)b->data + i * n;
        double *to = (double *)y->data + i * k, value = 0;
        int64_t count = 0;
        for (bool any = false; plain_next(x, m, z, n, any, &value); any = true) {
            const bool in_a = plain_has(x, m, value), in_b = plain_has(z, n, value);
            if (kind == SET_UNION || (kind == SET_DIFFERENCE ? in_a && !in_b : in_a && in_b))
                to[count++] = value;
        }
        ((double *)call->outputs[1]->data)[i] = (double)count;
        while (count < k) to[count++] = 0;
    }
    return true;
}

/* The three differ by what they take. */
#define SET_OP(symbol, which, text)                                                                \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {{"a", ED_SET_NUMBER, 'T', .early = true},                                     \
                     {"b", ED_SET_NUMBER, 'T', .early = true}},                                    \
        .results = ED_RESULTS({.name = "values"}, {.name = "counts"}),                             \
        .compose = set_compose,                                                                    \
        .no_gradient = "which elements are the same does not change smoothly",                     \
        .reference = set_plain,                                                                    \
        .extra = &(const set_kind){which},                                                         \
        .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(1, 2, 3, 5), ED_SAMPLE_IN(0, 9, 3, 4)}},    \
                              {.inputs = {ED_SAMPLE_IN(-2, 2, 7), ED_SAMPLE_IN(1, 1, 6)}},         \
                              {.inputs = {ED_SAMPLE_IN(1, 1, 2, 4), ED_SAMPLE_IN(1, 1, 2, 4)}})}

SET_OP(set_intersection, SET_INTERSECTION,
       "what is in both sets along the last axis, and how many");
SET_OP(set_union, SET_UNION, "what is in one of the sets along the last axis, and how many");
SET_OP(set_difference, SET_DIFFERENCE,
       "what is in a, but not in b, along the last axis, and how many");

ed_tensor *ed_set_intersection(ed_tensor *a, ed_tensor *b, ed_tensor **counts)
{
    return ops_call_into(&ed_op_set_intersection, (ed_tensor *const[]){a, b}, 2, NULL,
                         (ed_tensor * *const[]){counts});
}

ed_tensor *ed_set_union(ed_tensor *a, ed_tensor *b, ed_tensor **counts)
{
    return ops_call_into(&ed_op_set_union, (ed_tensor *const[]){a, b}, 2, NULL,
                         (ed_tensor * *const[]){counts});
}

ed_tensor *ed_set_difference(ed_tensor *a, ed_tensor *b, ed_tensor **counts)
{
    return ops_call_into(&ed_op_set_difference, (ed_tensor *const[]){a, b}, 2, NULL,
                         (ed_tensor * *const[]){counts});
}
