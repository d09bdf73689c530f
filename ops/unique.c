#include "ops/index.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * unique, invert_permutation. How many results the first has depends on the elements, so it is a
 * composition, which makes its outputs itself.
 */

/* A contiguous tensor of x's elements, which the scope holds. */
static ed_tensor *packed(const ed_tensor *x)
{
    return x ? scope_give(tensor_contiguous(tensor_read(x))) : NULL;
}

/* ---- unique ---------------------------------------------------------------------------------- */

enum {
    UNIQUE_SOME = 512, /* elements whose bits are taken at once */
    UNIQUE_PARTS = 16,
    UNIQUE_PART = HARD(64, 1 << 16) /* elements of a part, at least */
};

/* A hash table of the elements found so far, by their bits; slots hold their numbers plus 1. */
typedef struct unique_table {
    uint64_t *bits;           /* of the elements found */
    int64_t *firsts, *counts; /* where each is first, and how often it is there */
    int64_t *slots;
    int64_t found, limit; /* half the slots, at which there will be more */
    int shift;            /* 64 less the slots' power of two */
} unique_table;

static uint64_t float_bits(double value)
{
    uint64_t bits;
    value += 0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? UINT64_MAX : bits;
}

#define BITS_OF(type, convert)                                                                     \
    for (int64_t i = 0; i < n; i++) bits[i] = convert(((const type *)x->data)[first + i]);         \
    break

/* Of elements first..first+n-1. */
static void unique_bits(const ed_tensor *x, int64_t first, int64_t n, uint64_t *bits)
{
    if (x->dtype == ED_FLOAT32 || x->dtype == ED_FLOAT64) switch (x->dtype) {
        case ED_FLOAT32: BITS_OF(float, float_bits);
        default: BITS_OF(double, float_bits);
        }
    else
        switch (dtype_size(x->dtype)) {
        case 1: BITS_OF(uint8_t, );
        case 2: BITS_OF(uint16_t, );
        case 4: BITS_OF(uint32_t, );
        default: BITS_OF(uint64_t, );
        }
}

static int64_t *unique_slot(const unique_table *t, uint64_t bits)
{
    const uint64_t mask = ((uint64_t)1 << (64 - t->shift)) - 1;
    uint64_t slot = index_hash(bits) >> t->shift;
    while (t->slots[slot] && t->bits[t->slots[slot] - 1] != bits) slot = (slot + 1) & mask;
    return &t->slots[slot];
}

/* Twice the slots, at first 1024. */
static bool unique_grow(unique_table *t)
{
    int64_t *old = t->slots;
    const int shift = old ? t->shift - 1 : 54;
    int64_t *slots = memory_zalloc(((size_t)1 << (64 - shift)) * sizeof *slots);
    if (!slots) return false;
    memory_free(old);
    t->slots = slots;
    t->shift = shift;
    t->limit = (int64_t)1 << (63 - shift);
    for (int64_t i = 0; i < t->found; i++) *unique_slot(t, t->bits[i]) = i + 1;
    return true;
}

/* Numbers elements from `first` on with the bits; false without memory. */
static bool unique_number_some(unique_table *t, const uint64_t *bits, int64_t first, int64_t n,
                               int64_t *numbers)
{
    for (int64_t i = 0; i < n; i++) {
        if (t->found >= t->limit && !unique_grow(t)) return false;
        int64_t *slot = unique_slot(t, bits[i]);
        if (!*slot) {
            t->bits[t->found] = bits[i];
            t->firsts[t->found] = first + i;
            t->counts[t->found] = 0;
            *slot = ++t->found;
        }
        numbers[first + i] = *slot - 1;
        t->counts[*slot - 1]++;
    }
    return true;
}

/* Numbers all elements; false without memory. */
static bool unique_number(unique_table *t, const ed_tensor *x, int64_t *numbers)
{
    uint64_t bits[UNIQUE_SOME];
    t->bits = memory_alloc((size_t)x->size * sizeof *t->bits);
    t->firsts = memory_alloc((size_t)x->size * sizeof *t->firsts);
    t->counts = memory_alloc((size_t)x->size * sizeof *t->counts);
    if (!t->bits || !t->firsts || !t->counts) return false;
    for (int64_t first = 0; first < x->size; first += UNIQUE_SOME) {
        const int64_t n = x->size - first < UNIQUE_SOME ? x->size - first : UNIQUE_SOME;
        unique_bits(x, first, n, bits);
        if (!unique_number_some(t, bits, first, n, numbers)) return false;
    }
    return true;
}

/* ---- Integers of a small range: those of each part counted by value, without a hash ---------- */

/* Parts are elements that follow one another; found: how many values a part has. */
typedef struct unique_range {
    const ed_tensor *x;
    int64_t *numbers;
    int64_t parts, each;      /* each: elements of a part */
    int64_t least, values;    /* that an element may have, and how many from it on */
    int64_t *counts, *firsts; /* [parts, values]: of each value; of those found, in order */
    int64_t *number;          /* [values]: of each value, plus 1 */
    int64_t found[UNIQUE_PARTS];
} unique_range;

/* Elements first..first+n-1, at most UNIQUE_SOME: their own, or in the room. */
static const int64_t *unique_integers(const ed_tensor *x, int64_t first, int64_t n, int64_t *room)
{
    if (x->dtype == ED_INT32 || x->dtype == ED_INT64) return index_some(x, first, n, room);
    unique_bits(x, first, n, (uint64_t *)room);
    return room;
}

/* The next elements of a part from `at` on, of which there are *n: 0 at its end. */
static const int64_t *unique_next(const unique_range *r, int64_t part, int64_t at, int64_t *n,
                                  int64_t *room)
{
    const int64_t size = r->x->size, end = (part + 1) * r->each;
    *n = (end < size ? end : size) - at;
    if (*n > UNIQUE_SOME) *n = UNIQUE_SOME;
    return *n > 0 ? unique_integers(r->x, at, *n, room) : NULL;
}

static void unique_counts(int64_t begin, int64_t last, int worker, void *user)
{
    unique_range *r = user;
    int64_t room[UNIQUE_SOME], n;
    const int64_t *v;
    (void)worker;
    for (int64_t part = begin; part < last; part++) {
        int64_t *counts = r->counts + part * r->values, *firsts = r->firsts + part * r->values;
        int64_t found = 0;
        for (int64_t at = part * r->each; (v = unique_next(r, part, at, &n, room)); at += n)
            for (int64_t i = 0; i < n; i++)
                if (!counts[v[i] - r->least]++) firsts[found++] = at + i;
        r->found[part] = found;
    }
}

static void unique_numbers(int64_t begin, int64_t last, int worker, void *user)
{
    const unique_range *r = user;
    int64_t room[UNIQUE_SOME], n;
    const int64_t *v;
    (void)worker;
    for (int64_t part = begin; part < last; part++)
        for (int64_t at = part * r->each; (v = unique_next(r, part, at, &n, room)); at += n)
            for (int64_t i = 0; i < n; i++) r->numbers[at + i] = r->number[v[i] - r->least] - 1;
}

/* Plans to count by value: r says the values and how x is parted. false if there are too many from
 * the least to the most for that to be little work beside that of the elements. */
static bool unique_plan(unique_range *r)
{
    const ed_tensor *x = r->x;
    const int64_t parts = x->size / UNIQUE_PART, threads = threads_count();
    const size_t element = dtype_size(x->dtype);
    uint64_t most = 0; /* from the least on */
    if (!x->size || ED_SET_FLOAT & 1u << x->dtype) return false;
    r->parts = parts < 1 ? 1 : parts < threads ? parts : threads;
    if (r->parts > UNIQUE_PARTS) r->parts = UNIQUE_PARTS;
    r->each = (x->size + r->parts - 1) / r->parts;
    if (x->dtype == ED_INT32 || x->dtype == ED_INT64) {
        const index_order order = index_order_of(x);
        r->least = order.least;
        most = (uint64_t)order.largest - (uint64_t)order.least;
    } else {
        most = element <= 2 ? ((uint64_t)1 << 8 * element) - 1 : UINT64_MAX;
    }
    if (most >= (uint64_t)r->each) return false;
    r->values = (int64_t)most + 1;
    return true;
}

/* The parts' values in order of their first element get numbers. */
static void unique_join(unique_range *r, unique_table *t)
{
    int64_t room;
    for (int64_t p = 0; p < r->parts; p++)
        for (int64_t k = 0; k < r->found[p]; k++) {
            const int64_t first = r->firsts[p * r->values + k];
            const int64_t value = *unique_integers(r->x, first, 1, &room) - r->least;
            if (!r->number[value]) {
                t->firsts[t->found] = first;
                t->counts[t->found] = 0;
                r->number[value] = ++t->found;
            }
            t->counts[r->number[value] - 1] += r->counts[p * r->values + value];
        }
}

/* Numbers all elements; false without memory. */
static bool unique_by_value(unique_range *r, unique_table *t)
{
    const size_t values = (size_t)r->values, all = (size_t)r->parts * values;
    r->counts = memory_zalloc(all * sizeof *r->counts);
    r->firsts = memory_alloc(all * sizeof *r->firsts);
    r->number = memory_zalloc(values * sizeof *r->number);
    t->firsts = memory_alloc(values * sizeof *t->firsts);
    t->counts = memory_alloc(values * sizeof *t->counts);
    const bool ok = r->counts && r->firsts && r->number && t->firsts && t->counts;
    if (ok) {
        threads_run(r->parts, 1, unique_counts, r);
        unique_join(r, t);
        threads_run(r->parts, 1, unique_numbers, r);
    }
    memory_free(r->number);
    memory_free(r->firsts);
    memory_free(r->counts);
    return ok;
}

/* By value or by hash; false without memory. */
static bool unique_number_all(unique_table *t, const ed_tensor *x, int64_t *numbers)
{
    unique_range r = {.x = x, .numbers = numbers};
    const bool outer = threads_may_stop(false); /* what nobody saw would be missing */
    const bool ok = unique_plan(&r) ? unique_by_value(&r, t) : unique_number(t, x, numbers);
    threads_may_stop(outer);
    return ok;
}

/* The outputs: of each number the element that got it first. */
static bool unique_outputs(ed_call *call, const ed_tensor *x, const unique_table *t,
                           ed_tensor *numbers)
{
    ed_tensor *values = scope_give(tensor_new(x->dtype, 1, &t->found));
    ed_tensor *counts = scope_give(tensor_new(ED_INT64, 1, &t->found));
    const int64_t element = (int64_t)dtype_size(x->dtype);
    if (!values || !counts) return false;
    memcpy(counts->data, t->counts, (size_t)t->found * sizeof *t->counts);
    for (int64_t i = 0; i < t->found; i++)
        memcpy(values->data + i * element, x->data + t->firsts[i] * element, (size_t)element);
    return ed_call_result(call, 0, values) && ed_call_result(call, 1, numbers) &&
           ed_call_result(call, 2, counts);
}

static bool unique_compose(ed_call *call)
{
    const ed_tensor *x = packed(call->inputs[0]);
    if (!x) return false;
    if (x->rank != 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank 1, got %s",
                            text_of_tensor(x).s);
    unique_table t = {.found = 0};
    ed_tensor *numbers = scope_give(tensor_new(ED_INT64, 1, x->shape));
    const bool ok = numbers && unique_number_all(&t, x, (int64_t *)numbers->data) &&
                    unique_outputs(call, x, &t, numbers);
    memory_free(t.slots);
    memory_free(t.counts);
    memory_free(t.firsts);
    memory_free(t.bits);
    return ok;
}

typedef struct plain_place {
    double value;
    int64_t index;
} plain_place;

static int compare_places(const void *a, const void *b)
{
    const plain_place *x = a, *y = b;
    if (isnan(x->value) != isnan(y->value)) return isnan(x->value) ? 1 : -1;
    if (x->value != y->value && !isnan(x->value)) return x->value < y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Sorted elements show which are equal; the first of each gets the next number. */
static bool unique_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    double *values = (double *)call->outputs[0]->data, *numbers = (double *)call->outputs[1]->data,
           *counts = (double *)call->outputs[2]->data;
    plain_place *all = memory_alloc((size_t)x->size * sizeof *all);
    int64_t *first = memory_alloc((size_t)x->size * sizeof *first), found = 0;
    for (int64_t i = 0; all && i < x->size; i++) all[i] = (plain_place){from[i], i};
    if (all && x->size) qsort(all, (size_t)x->size, sizeof *all, compare_places);
    for (int64_t i = 0; all && first && i < x->size; i++) {
        const bool same = i && (all[i].value == all[i - 1].value ||
                                (isnan(all[i].value) && isnan(all[i - 1].value)));
        first[all[i].index] = same ? first[all[i - 1].index] : all[i].index;
    }
    for (int64_t i = 0; all && first && i < x->size; i++) {
        if (first[i] == i) {
            values[found] = from[i];
            counts[found] = 0;
            numbers[i] = (double)found++;
        }
        numbers[i] = numbers[first[i]];
        counts[(int64_t)numbers[i]]++;
    }
    memory_free(first);
    memory_free(all);
    return all && first;
}

ED_OP(unique) = {
    .name = "unique",
    .doc = "the different elements of x, each element's index among them, and their counts",
    .operands = {{"x", ED_SET_ALL & ~ED_SET_HALF, .early = true}},
    .results = ED_RESULTS({.name = "values"}, {.name = "indices"}, {.name = "counts"}),
    .compose = unique_compose,
    .no_gradient = "which elements are the same does not change smoothly",
    .reference = unique_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 7)}},
                          {.inputs = {ED_SAMPLE_IN(1, 1, 6)}}),
};

ed_tensor *ed_unique(ed_tensor *x, ed_tensor **indices, ed_tensor **counts)
{
    return ops_call_into(&ed_op_unique, &x, 1, NULL, (ed_tensor * *const[]){indices, counts});
}

/* ---- invert_permutation ---------------------------------------------------------------------- */

static bool invert_permutation_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank == 1) return ops_infer_like(call);
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank 1, got %s",
                        text_of_tensor(x).s);
}

/* y[x[i]] = i; y begins with -1, by which what comes twice is found. */
#define INVERT(name, type)                                                                         \
    static bool name(const ed_call *call, const ed_tensor *x)                                      \
    {                                                                                              \
        const type *restrict from = (const type *)x->data;                                         \
        type *restrict to = (type *)call->outputs[0]->data;                                        \
        for (int64_t i = 0; i < x->size; i++) to[i] = -1;                                          \
        for (int64_t i = 0; i < x->size; i++) {                                                    \
            const type at = from[i];                                                               \
            if (to[at] >= 0) return comes_twice(call, at, to[at], i);                              \
            to[at] = (type)i;                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }

static bool comes_twice(const ed_call *call, int64_t number, int64_t first, int64_t second)
{
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%lld comes twice, at positions %lld and %lld",
                        (long long)number, text_nth(first), text_nth(second));
}

INVERT(invert_i32, int32_t)
INVERT(invert_i64, int64_t)

static bool invert_permutation_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (!index_check(call, x, x->size)) return false;
    return x->dtype == ED_INT32 ? invert_i32(call, x) : invert_i64(call, x);
}

static bool invert_permutation_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    for (int64_t i = 0; i < x->size; i++)
        ((double *)call->outputs[0]->data)[(int64_t)((const double *)x->data)[i]] = (double)i;
    return true;
}

ED_OP(invert_permutation) = {
    .name = "invert_permutation",
    .doc = "y[x[i]] = i for a permutation x",
    .operands = {{"x", ED_SET_INDEX}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = invert_permutation_infer,
    .kernel = invert_permutation_kernel,
    .no_gradient = "its operand is an integer",
    .reference = invert_permutation_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 0, 1)}}, {.inputs = {ED_SAMPLE_IN(0, 0, 0)}}),
};

ed_tensor *ed_invert_permutation(ed_tensor *x)
{
    return CALL_OP(invert_permutation, NULL, x);
}
