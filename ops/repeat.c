/*
 * Slices chosen by numbers: repeat, reverse_sequence, sequence_mask.
 */
#include "ops/index.h"
#include "ops/shape.h"
#include "tensor/copy.h"
#include <string.h>

/* A contiguous tensor of x's elements, which the scope holds. */
static ed_tensor *packed(const ed_tensor *x)
{
    return x ? scope_give(tensor_contiguous(tensor_read(x))) : NULL;
}

/* ---- repeat ---------------------------------------------------------------------------------- */

static bool repeat_too_many(const ed_call *call)
{
    return ed_call_fail(call, ED_OUT_OF_MEMORY, "the result is larger than memory can hold");
}

/* The axis, and x, without one flattened. */
static ed_tensor *repeat_operand(const ed_call *call, int *axis)
{
    const ed_ints given = ((const ed_repeat_options *)call->attrs)->axis;
    ed_tensor *x = call->inputs[0];
    *axis = 0;
    if (!given.values) return ed_flatten(x);
    if (given.count != 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "axis must be one axis, got %s",
                            text_of_places(given.values, given.count).s),
               NULL;
    return ops_axis(call, given.values[0], ed_rank(x), axis) ? x : NULL;
}

/* How often each slice comes, checked; index_drop gives them back. NULL with an error. */
static const int64_t *repeat_counts(const ed_call *call, const ed_tensor *x, int axis,
                                    const ed_tensor *repeats)
{
    if (!repeats) return NULL;
    if (repeats->rank > 1 || (repeats->size != 1 && repeats->size != x->shape[axis]))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "repeats are %s; expected one number, or one for each slice of %s "
                            "along axis %lld",
                            text_of_tensor(repeats).s, text_of_tensor(x).s, text_nth(axis)),
               NULL;
    const int64_t *all = index_wide(repeats);
    for (int64_t i = 0; all && i < repeats->size; i++)
        if (all[i] < 0) {
            ed_call_fail(call, ED_INVALID_ARGUMENT,
                         "repeats must be >= 0, got %lld at position %lld", (long long)all[i],
                         text_nth(i));
            index_drop(repeats, all);
            return NULL;
        }
    return all;
}

/* Each slice `count` times: x seen as [.., 1, rest] broadcast to [.., count, rest]. */
static ed_tensor *repeat_all(const ed_call *call, ed_tensor *x, int axis, int64_t count)
{
    int64_t shape[ED_MAX_RANK], before = 1, behind = 1;
    const ed_ints old = ed_shape(x);
    memcpy(shape, old.values, (size_t)old.count * sizeof *shape);
    if (__builtin_mul_overflow(shape[axis], count, &shape[axis]))
        return repeat_too_many(call), NULL;
    for (int i = 0; i <= axis; i++) before *= old.values[i];
    for (int i = axis + 1; i < old.count; i++) behind *= old.values[i];
    ed_tensor *wide = ed_broadcast_to(ed_reshape(x, ED_SHAPE(before, 1, behind)),
                                      ED_SHAPE(before, count, behind));
    return ed_reshape(wide, (ed_ints){shape, old.count});
}

/* Each slice as often as its number says: gathered at its index so many times. */
static ed_tensor *repeat_each(const ed_call *call, ed_tensor *x, int axis, const int64_t *counts)
{
    const int64_t n = ed_dim(x, axis);
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        if (__builtin_add_overflow(total, counts[i], &total)) return repeat_too_many(call), NULL;
    ed_tensor *indices = scope_give(tensor_new(ED_INT64, 1, &total));
    if (!indices) return NULL;
    int64_t *to = (int64_t *)indices->data;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < counts[i]; j++) *to++ = i;
    return ed_gather(x, indices, .axis = axis);
}

static bool repeat_compose(ed_call *call)
{
    int axis;
    ed_tensor *x = repeat_operand(call, &axis);
    const ed_tensor *repeats = x ? packed(call->inputs[1]) : NULL;
    const int64_t *counts = repeat_counts(call, x, axis, repeats);
    if (!counts) return false;
    ed_tensor *y = repeats->size == 1 ? repeat_all(call, x, axis, counts[0])
                                      : repeat_each(call, x, axis, counts);
    index_drop(repeats, counts);
    return ed_call_result(call, 0, y);
}

static bool repeat_plain(const ed_call *call)
{
    const ed_ints given = ((const ed_repeat_options *)call->attrs)->axis;
    const ed_tensor *x = call->inputs[0], *repeats = call->inputs[1];
    const int axis = given.values ? tensor_axis(given.values[0], x->rank) : 0;
    const int64_t n = given.values ? x->shape[axis] : x->size;
    const int64_t behind = given.values ? index_product(x->shape, axis + 1, x->rank) : 1;
    const double *counts = (const double *)repeats->data;
    double *to = (double *)call->outputs[0]->data;
    for (int64_t i = 0; x->size && i < x->size / behind; i++)
        for (int64_t k = 0; k < (int64_t)counts[repeats->size == 1 ? 0 : i % n]; k++)
            for (int64_t j = 0; j < behind; j++) *to++ = ((const double *)x->data)[i * behind + j];
    return true;
}

#define REPEAT(...) ED_ATTRS(ED_REPEAT_OPTIONS, ed_repeat_options, .axis = __VA_ARGS__)

ED_OP(repeat) = {
    .name = "repeat",
    .doc = "each slice of x along an axis so many times in a row",
    .operands = {{"x", ED_SET_ALL, 'T'}, {"repeats", ED_SET_INDEX, 'I', .early = true}},
    ED_OP_ATTRS(ED_REPEAT_OPTIONS, ed_repeat_options),
    .compose = repeat_compose,
    .reference = repeat_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(2, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4, 3), ED_SAMPLE_IN(0, 3, 4)},
                           .attrs = REPEAT(ED_SAMPLE_INTS(0))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 2), ED_SAMPLE_IN(0, 2, 5)},
                           .attrs = REPEAT(ED_SAMPLE_INTS(-2))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(3, 3, 1)},
                           .attrs = REPEAT(ED_SAMPLE_INTS(1))}),
};

ed_tensor *(ed_repeat_with)(ed_tensor *x, ed_tensor *repeats, const ed_repeat_options *options)
{
    return CALL_OP(repeat, options, x, repeats);
}

/* ---- reverse_sequence ------------------------------------------------------------------------ */

/* x seen as [before, first axis, between, second axis, behind]. */
typedef struct sequences {
    int64_t before, first, between, second, behind;
    bool batch_first;
} sequences;

static bool sequence_axes(const ed_call *call, int *seq, int *batch)
{
    const ed_reverse_sequence_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *lengths = call->inputs[1];
    if (!ops_axis(call, o->seq_axis, x->rank, seq) ||
        !ops_axis(call, o->batch_axis, x->rank, batch))
        return false;
    if (*seq == *batch)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "seq_axis and batch_axis must differ, both are %lld", text_nth(*seq));
    if (lengths->rank == 1 && lengths->size == x->shape[*batch]) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "seq_lengths are %s; expected one for each slice of x, %s, along axis %lld",
                        text_of_tensor(lengths).s, text_of_tensor(x).s, text_nth(*batch));
}

static bool reverse_sequence_infer(ed_call *call)
{
    int seq, batch;
    return sequence_axes(call, &seq, &batch) && ops_infer_like(call);
}

static sequences sequences_of(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int seq, batch;
    sequence_axes(call, &seq, &batch);
    const int a = seq < batch ? seq : batch, b = seq < batch ? batch : seq;
    return (sequences){index_product(x->shape, 0, a),           x->shape[a],
                       index_product(x->shape, a + 1, b),       x->shape[b],
                       index_product(x->shape, b + 1, x->rank), batch < seq};
}

static const int64_t *sequence_lengths(const ed_call *call, int64_t most)
{
    const ed_tensor *lengths = call->inputs[1];
    const int64_t *all = index_wide(lengths);
    for (int64_t i = 0; all && i < lengths->size; i++)
        if (all[i] < 0 || all[i] > most) {
            ed_call_fail(call, ED_OUT_OF_RANGE,
                         "the length %lld at position %lld must be in 0..%lld", (long long)all[i],
                         text_nth(i), (long long)most);
            index_drop(lengths, all);
            return NULL;
        }
    return all;
}

/* Where each slice of the last axes comes from. */
static void sequence_rows(const sequences *s, const int64_t *lengths, int64_t *rows)
{
    for (int64_t a = 0; a < s->before; a++)
        for (int64_t i = 0; i < s->first; i++)
            for (int64_t b = 0; b < s->between; b++)
                for (int64_t j = 0; j < s->second; j++) {
                    const int64_t length = lengths[s->batch_first ? i : j];
                    const int64_t at = s->batch_first ? j : i;
                    const int64_t from = at < length ? length - 1 - at : at;
                    const int64_t i2 = s->batch_first ? i : from, j2 = s->batch_first ? from : j;
                    *rows++ = ((a * s->first + i2) * s->between + b) * s->second + j2;
                }
}

static bool reverse_sequence_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const sequences s = sequences_of(call);
    const int64_t *lengths = sequence_lengths(call, s.batch_first ? s.second : s.first);
    if (!lengths) return false;
    const int64_t n = x->size ? x->size / s.behind : 0;
    int64_t *rows = memory_alloc((size_t)n * sizeof *rows);
    if (rows && n) {
        sequence_rows(&s, lengths, rows);
        index_gather(x->dtype, x->data, s.behind, rows, n, call->outputs[0]->data);
    }
    index_drop(call->inputs[1], lengths);
    memory_free(rows);
    return rows;
}

static bool reverse_sequence_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_reverse_sequence_with(g->dy[0], g->inputs[1], g->attrs);
    return true;
}

static bool reverse_sequence_plain(const ed_call *call)
{
    const ed_reverse_sequence_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int seq = tensor_axis(o->seq_axis, x->rank), batch = tensor_axis(o->batch_axis, x->rank);
    for (int64_t i = 0; i < x->size; i++) {
        int64_t at[ED_MAX_RANK], rest = i;
        for (int d = x->rank - 1; d >= 0; rest /= x->shape[d--]) at[d] = rest % x->shape[d];
        const int64_t length = (int64_t)((const double *)call->inputs[1]->data)[at[batch]];
        if (at[seq] < length) at[seq] = length - 1 - at[seq];
        ((double *)call->outputs[0]->data)[i] = ((const double *)x->data)[shape_number(x, at)];
    }
    return true;
}

#define SEQUENCES(...)                                                                             \
    ED_ATTRS(ED_REVERSE_SEQUENCE_OPTIONS, ed_reverse_sequence_options, __VA_ARGS__)

ED_OP(reverse_sequence) = {
    .name = "reverse_sequence",
    .doc = "the first seq_lengths[i] elements of each sequence in reverse order",
    .operands = {{"x", ED_SET_ALL, 'T'}, {"seq_lengths", ED_SET_INDEX, 'I', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_REVERSE_SEQUENCE_OPTIONS, ed_reverse_sequence_options),
    .infer = reverse_sequence_infer,
    .batch = ed_batch_first,
    .kernel = reverse_sequence_kernel,
    .gradient = reverse_sequence_gradient,
    .reference = reverse_sequence_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5), ED_SAMPLE_IN(0, 5, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 2, 4, 3), ED_SAMPLE_IN(0, 5, 4)},
                           .attrs = SEQUENCES(.seq_axis = 0, .batch_axis = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2, 4), ED_SAMPLE_IN(0, 4, 3)},
                           .attrs = SEQUENCES(.seq_axis = -1, .batch_axis = 1)}),
};

ed_tensor *ed_reverse_sequence_with(ed_tensor *x, ed_tensor *seq_lengths,
                                    const ed_reverse_sequence_options *options)
{
    return CALL_OP(reverse_sequence, options, x, seq_lengths);
}

/* ---- sequence_mask --------------------------------------------------------------------------- */

/* Ones up to each length, then zeros. */
static void mask_rows(const int64_t *lengths, int64_t count, ed_tensor *y)
{
    const size_t element = dtype_size(y->dtype);
    const int64_t n = y->shape[y->rank - 1];
    const uint64_t zero = 0;
    uint64_t one = 0;
    dtype_store(y->dtype, &one, 0, 1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = lengths[i] < 0 ? 0 : lengths[i] < n ? lengths[i] : n;
        char *to = y->data + (size_t)(i * n) * element;
        copy_fill_row(element, &one, to, length);
        copy_fill_row(element, &zero, to + (size_t)length * element, n - length);
    }
}

static bool sequence_mask_compose(ed_call *call)
{
    const ed_sequence_mask_options *o = call->attrs;
    const ed_tensor *lengths = packed(call->inputs[0]);
    int64_t shape[ED_MAX_RANK], longest = 0;
    if (!lengths) return false;
    if (lengths->rank == ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "lengths must have rank < %d, got %s",
                            ED_MAX_RANK, text_of_tensor(lengths).s);
    const int64_t *all = index_wide(lengths);
    for (int64_t i = 0; all && i < lengths->size; i++)
        if (all[i] > longest) longest = all[i];
    memcpy(shape, lengths->shape, sizeof shape);
    shape[lengths->rank] = o->maxlen < 0 ? longest : o->maxlen;
    ed_tensor *y =
        all ? scope_give(tensor_new(o->dtype ? o->dtype : ED_BOOL, lengths->rank + 1, shape))
            : NULL;
    if (y) mask_rows(all, lengths->size, y);
    if (all) index_drop(lengths, all);
    return ed_call_result(call, 0, y);
}

static bool sequence_mask_plain(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) {
        const int64_t n = y->shape[y->rank - 1];
        ((double *)y->data)[i] = (double)(i % n) < ((const double *)call->inputs[0]->data)[i / n];
    }
    return true;
}

#define MASK(...) ED_ATTRS(ED_SEQUENCE_MASK_OPTIONS, ed_sequence_mask_options, __VA_ARGS__)

ED_OP(sequence_mask) = {
    .name = "sequence_mask",
    .doc = "whether the index along a new last axis is less than the length",
    .operands = {{"lengths", ED_SET_INDEX, 'I', .early = true}},
    ED_OP_ATTRS(ED_SEQUENCE_MASK_OPTIONS, ed_sequence_mask_options),
    .compose = sequence_mask_compose,
    .no_gradient = "its operand is an integer",
    .reference = sequence_mask_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(0, 5, 4)}},
        {.inputs = {ED_SAMPLE_IN(-1, 6, 2, 3)}, .attrs = MASK(.maxlen = 4, .dtype = ED_FLOAT32)},
        {.inputs = {ED_SAMPLE_IN(0, 3)}, .attrs = MASK(.maxlen = 2, .dtype = ED_FLOAT16)}),
};

ed_tensor *ed_sequence_mask_with(ed_tensor *lengths, const ed_sequence_mask_options *options)
{
    return CALL_OP(sequence_mask, options, lengths);
}
