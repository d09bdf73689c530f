/*
 * indexed_slices: y = zeros, to which the slices of values are added at the indices of the first
 * axis. Its result has no elements until somebody reads them, as gather's gradient, which is made
 * by it, is read by nobody where optimizers use its slices.
 */
#include "ops/slices.h"
#include "ops/execute.h"
#include "ops/index.h"
#include "ops/ops.h"
#include "tensor/thread.h"
#include <string.h>

/* ---- The op ---------------------------------------------------------------------------------- */

#define SLICES_ATTRS(FIELD, T)                                                                     \
    FIELD(T, INT, size, 0, ED_AT_LEAST(0), "of the first axis of the result")
ED_OPTIONS(slices_attrs, SLICES_ATTRS);

/* No listener hears how the elements are made: they know the op that made the slices. */
static ed_tensor *to_dense(const slices *s)
{
    thread_state *self = thread_self();
    ed_listener *listeners = self->listeners;
    ED_SCOPE;
    self->listeners = NULL;
    ed_tensor *dense = ed_retain(ed_unsorted_segment_sum(s->values, s->indices, s->base.shape[0]));
    self->listeners = listeners;
    return dense;
}

static bool slices_infer(ed_call *call)
{
    const ed_tensor *values = call->inputs[0], *indices = call->inputs[1];
    if (values->rank < 1 || indices->rank != 1 || indices->shape[0] != values->shape[0])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "values must be [n, ...] and indices [n]: values is %s, indices is %s",
                            text_of_ints(values->shape, values->rank).s,
                            text_of_ints(indices->shape, indices->rank).s);
    int64_t shape[ED_MAX_RANK];
    memcpy(shape, values->shape, sizeof shape);
    shape[0] = ((const slices_attrs *)call->attrs)->size;
    call->outputs[0] = (ed_tensor *)slices_new(values->dtype, values->rank, shape, to_dense);
    return call->outputs[0];
}

static bool check_indices(const ed_call *call, const int64_t *indices, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0 || indices[i] >= size)
            return ed_call_fail(call, ED_OUT_OF_RANGE,
                                "indices[%lld] is %lld; it must be in 0..%lld", text_nth(i),
                                (long long)indices[i], (long long)size - 1);
    return true;
}

static bool ascend(const int64_t *indices, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (indices[i] <= indices[i - 1]) return false;
    return true;
}

/* The indices as int64, contiguous, with a reference for the caller. */
static ed_tensor *as_int64(const ed_tensor *indices)
{
    if (indices->dtype == ED_INT64) return tensor_contiguous(indices);
    ed_tensor *y = tensor_new(ED_INT64, 1, indices->shape);
    for (int64_t i = 0; y && i < y->size; i++)
        ((int64_t *)y->data)[i] = ((const int32_t *)indices->data)[i];
    return y;
}

static bool slices_kernel(ed_call *call)
{
    slices *s = slices_of(call->outputs[0]);
    s->values = ed_retain(tensor_value(call->operands[0])); /* which tapes know */
    s->indices = as_int64(call->inputs[1]);
    if (!s->indices) return false;
    const int64_t *indices = (const int64_t *)s->indices->data, n = s->indices->size;
    s->unique = ascend(indices, n);
    return check_indices(call, indices, n, s->base.shape[0]);
}

static bool slices_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_gather(g->dy[0], g->inputs[1]);
    return true;
}

static bool slices_reference(const ed_call *call)
{
    const ed_tensor *values = call->inputs[0];
    const double *x = (const double *)values->data, *at = (const double *)call->inputs[1]->data;
    ed_tensor *y = call->outputs[0];
    const int64_t width = values->shape[0] ? values->size / values->shape[0] : 0;
    memset(y->data, 0, (size_t)y->size * sizeof *x);
    for (int64_t i = 0; i < values->size; i++)
        ((double *)y->data)[(int64_t)at[i / width] * width + i % width] += x[i];
    return true;
}

#define SLICES_OF(n) .attrs = ED_ATTRS(SLICES_ATTRS, slices_attrs, .size = n)

ED_OP(indexed_slices) = {
    .name = "indexed_slices",
    .doc = "zeros, to which the slices of values are added at the indices of the first axis",
    .operands = {{"values", ED_SET_FLOAT, 'T', .early = true},
                 {"indices", ED_SET_INDEX, 'I', .saved = true, .early = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(SLICES_ATTRS, slices_attrs),
    .infer = slices_infer,
    .kernel = slices_kernel,
    .gradient = slices_gradient,
    .reference = slices_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 6, 3), ED_SAMPLE_IN(0, 3, 6)}, SLICES_OF(4)},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(0, 8, 3)}, SLICES_OF(9)}),
};

ed_tensor *ed_indexed_slices(ed_tensor *values, ed_tensor *indices, int64_t size)
{
    return CALL_OP(indexed_slices, ED_ATTRS(SLICES_ATTRS, slices_attrs, .size = size), values,
                   indices);
}

bool ed_is_indexed_slices(const ed_tensor *x)
{
    return x && slices_of(x);
}

/* A view for the scope, so that who has it does not depend on x. */
static ed_tensor *part(const char *function, const ed_tensor *x, bool values)
{
    if (NULL_GIVEN(function, x)) return NULL;
    const slices *s = slices_of(x);
    if (!s)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: x must be indexed slices, got %s", function,
                       text_of_tensor(x).s);
    return scope_give(ed_retain(values ? s->values : s->indices));
}

ed_tensor *ed_slices_values(const ed_tensor *x)
{
    return part("slices_values", x, true);
}

ed_tensor *ed_slices_indices(const ed_tensor *x)
{
    return part("slices_indices", x, false);
}

/* ---- What is made of them -------------------------------------------------------------------- */

ed_tensor *ops_slices_gathered(ed_tensor *dy, ed_tensor *indices, ed_ints shape)
{
    int64_t slice[ED_MAX_RANK] = {indices->size};
    for (int64_t i = 1; i < shape.count; i++) slice[i] = shape.values[i];
    return ed_indexed_slices(ed_reshape(dy, ((ed_ints){slice, shape.count})),
                             ed_reshape(indices, ED_SHAPE(indices->size)), shape.values[0]);
}

ed_tensor *ops_slices_add(ed_tensor *a, ed_tensor *b)
{
    const slices *s = slices_of(a), *t = slices_of(b);
    if (!s || !t || s->dense || t->dense) return ed_add(a, b);
    ed_tensor *values = ed_concat(ed_list_of(s->values, t->values));
    return ed_indexed_slices(values, ed_concat(ed_list_of(s->indices, t->indices)), a->shape[0]);
}

ed_tensor *ops_slices_scale(ed_tensor *x, ed_tensor *factor)
{
    const slices *s = slices_of(x);
    return s ? ed_indexed_slices(ed_mul(s->values, factor), s->indices, x->shape[0])
             : ed_mul(x, factor);
}

/* ---- Distinct indices ------------------------------------------------------------------------ */

/* An index, and which slice it is of. */
typedef struct numbered {
    int64_t index, slice;
} numbered;

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

/* Sorts by one digit of the indices, equal ones in their order. */
static void sort_by_digit(const numbered *from, numbered *to, int64_t n, int shift)
{
    int64_t ends[DIGITS] = {0}, end = 0;
    for (int64_t i = 0; i < n; i++) ends[from[i].index >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        const int64_t count = ends[d];
        ends[d] = end;
        end += count;
    }
    for (int64_t i = 0; i < n; i++) to[ends[from[i].index >> shift & (DIGITS - 1)]++] = from[i];
}

/* The slices in the order of their indices, in one of two halves of the room for 2 n. */
static const numbered *sorted(const slices *s, numbered *room)
{
    const int64_t n = s->indices->size, size = s->base.shape[0];
    numbered *from = room, *to = room + n;
    for (int64_t i = 0; i < n; i++) from[i] = (numbered){((const int64_t *)s->indices->data)[i], i};
    for (int shift = 0; shift < 63 && (size - 1) >> shift > 0; shift += DIGIT) {
        sort_by_digit(from, to, n, shift);
        numbered *swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

/* Fills the distinct indices, and for each slice the number of its own among them; returns how many
 * there are. */
static int64_t number_distinct(const numbered *order, int64_t n, int64_t *distinct, int64_t *number)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!i || order[i].index != order[i - 1].index) distinct[count++] = order[i].index;
        number[order[i].slice] = count - 1;
    }
    return count;
}

static ed_tensor *new_indices(int64_t n)
{
    return scope_give(tensor_new(ED_INT64, 1, &n));
}

/* A hash table of the distinct indices so far: a slot holds the number of an index's last slice
 * plus 1. There are 2^(64 - shift) slots, which are never all taken. */
static int64_t *slot_of(int64_t *slots, int shift, const int64_t *indices, int64_t index)
{
    const uint64_t mask = ((uint64_t)1 << (64 - shift)) - 1;
    uint64_t i = index_hash((uint64_t)index) >> shift;
    while (slots[i] && indices[slots[i] - 1] != index) i = (i + 1) & mask;
    return &slots[i];
}

/* Fills what ops_slices_chains returns; false without memory. */
static bool chain(const int64_t *indices, int64_t n, int64_t *first, int64_t *next)
{
    int shift = 63;
    while ((uint64_t)1 << (64 - shift) < 3 * (uint64_t)n) shift--;
    int64_t *slots = memory_zalloc(((size_t)1 << (64 - shift)) * sizeof *slots);
    if (!slots) return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t *last = slot_of(slots, shift, indices, indices[i]);
        if (*last) {
            next[*last - 1] = i;
            first[i] = -1;
        }
        *last = i + 1;
    }
    memory_free(slots);
    return true;
}

ed_tensor *ops_slices_chains(const ed_tensor *x)
{
    const slices *s = slices_of(x);
    const int64_t n = s->indices->size, *indices = (const int64_t *)s->indices->data;
    ed_tensor *chains = scope_give(tensor_new(ED_INT64, 2, (int64_t[]){2, n}));
    if (!chains) return NULL;
    int64_t *first = (int64_t *)chains->data, *next = first + n;
    memcpy(first, indices, (size_t)n * sizeof *first);
    for (int64_t i = 0; i < n; i++) next[i] = -1;
    return s->unique || chain(indices, n, first, next) ? chains : NULL;
}

ed_tensor *ops_slices_unique(ed_tensor *x)
{
    const slices *s = slices_of(x);
    if (!s || s->unique) return x;
    const int64_t n = s->indices->size;
    ed_tensor *number = new_indices(n), *all = new_indices(n);
    numbered *room = number && all ? memory_alloc(2 * (size_t)n * sizeof *room) : NULL;
    if (!room) return NULL;
    const int64_t count =
        number_distinct(sorted(s, room), n, (int64_t *)all->data, (int64_t *)number->data);
    memory_free(room);
    ed_tensor *distinct = ed_slice(all, .end = ED_INTS(count));
    return ed_indexed_slices(ed_unsorted_segment_sum(s->values, number, count), distinct,
                             x->shape[0]);
}

ed_tensor *ops_slices_square_sum(ed_tensor *x)
{
    ed_tensor *unique = ops_slices_unique(x);
    const slices *s = unique ? slices_of(unique) : NULL;
    if (!unique) return NULL;
    return ed_reduce_sum_square(s ? s->values : x);
}
