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

/* A hash table of the elements found so far, by their bits; slots hold their numbers plus 1. */
typedef struct unique_table {
    uint64_t *bits; /* of the elements found */
    int64_t *counts, *slots;
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
    uint64_t slot = bits * 0x9e3779b97f4a7c15u >> t->shift;
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

/* Numbers elements with the bits; false without memory. */
static bool unique_number_some(unique_table *t, const uint64_t *bits, int64_t n, int64_t *numbers)
{
    for (int64_t i = 0; i < n; i++) {
        if (t->found >= t->limit && !unique_grow(t)) return false;
        int64_t *slot = unique_slot(t, bits[i]);
        if (!*slot) {
            t->bits[t->found] = bits[i];
            t->counts[t->found] = 0;
            *slot = ++t->found;
        }
        numbers[i] = *slot - 1;
        t->counts[numbers[i]]++;
    }
    return true;
}

/* Numbers all elements; false without memory. */
static bool unique_number(unique_table *t, const ed_tensor *x, int64_t *numbers)
{
    enum { SOME = 512 };
    uint64_t bits[SOME];
    for (int64_t first = 0; first < x->size; first += SOME) {
        const int64_t n = x->size - first < SOME ? x->size - first : SOME;
        unique_bits(x, first, n, bits);
        if (!unique_number_some(t, bits, n, numbers + first)) return false;
    }
    return true;
}

/* The outputs: of each number the element that got it first. */
static bool unique_outputs(ed_call *call, const ed_tensor *x, const unique_table *t,
                           ed_tensor *numbers)
{
    ed_tensor *values = scope_give(tensor_new(x->dtype, 1, &t->found));
    ed_tensor *counts = scope_give(tensor_new(ED_INT64, 1, &t->found));
    const int64_t element = (int64_t)dtype_size(x->dtype), *all = (const int64_t *)numbers->data;
    if (!values || !counts) return false;
    memcpy(counts->data, t->counts, (size_t)t->found * sizeof *t->counts);
    for (int64_t i = 0, next = 0; i < x->size; i++)
        if (all[i] == next)
            memcpy(values->data + next++ * element, x->data + i * element, (size_t)element);
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
    unique_table t = {.bits = memory_alloc((size_t)x->size * sizeof *t.bits),
                      .counts = memory_alloc((size_t)x->size * sizeof *t.counts)};
    ed_tensor *numbers = scope_give(tensor_new(ED_INT64, 1, x->shape));
    const bool ok = t.bits && t.counts && numbers &&
                    unique_number(&t, x, (int64_t *)numbers->data) &&
                    unique_outputs(call, x, &t, numbers);
    memory_free(t.slots);
    memory_free(t.counts);
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

static bool invert_permutation_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    ed_tensor *y = call->outputs[0];
    const int64_t n = x->size, *all = index_read(call, x, n);
    int64_t *to = memory_alloc((size_t)n * sizeof *to);
    bool ok = all && to;
    for (int64_t i = 0; ok && i < n; i++) to[i] = -1;
    for (int64_t i = 0; ok && i < n; i++) {
        if (to[all[i]] >= 0)
            ok = ed_call_fail(call, ED_INVALID_ARGUMENT,
                              "%lld comes twice, at positions %lld and %lld", (long long)all[i],
                              text_nth(to[all[i]]), text_nth(i));
        else
            to[all[i]] = i;
    }
    for (int64_t i = 0; ok && i < n; i++)
        if (y->dtype == ED_INT32)
            ((int32_t *)y->data)[i] = (int32_t)to[i];
        else
            ((int64_t *)y->data)[i] = to[i];
    memory_free(to);
    if (all) index_drop(x, all);
    return ok;
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
