/*
 * dynamic_stitch: slices of several tensors put together by indices, the opposite of
 * dynamic_partition. A composition of one gather.
 */
#include "ops/index.h"
#include "ops/shape.h"
#include <string.h>

/* A contiguous tensor of x's elements, which the scope holds. */
static ed_tensor *packed(const ed_tensor *x)
{
    return x ? scope_give(tensor_contiguous(tensor_read(x))) : NULL;
}

/* x with its first axes, which `indices` has, as one. */
static ed_tensor *as_rows(const ed_call *call, ed_tensor *x, const ed_tensor *indices)
{
    const ed_ints shape = ed_shape(x), leading = ed_shape(indices);
    int64_t rows[ED_MAX_RANK + 1];
    if (leading.count > shape.count ||
        memcmp(leading.values, shape.values, (size_t)leading.count * sizeof *rows) != 0 ||
        (!leading.count && shape.count == ED_MAX_RANK))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s is %s; it must have the leading axes of %s",
                            call->op->operands[1].name, text_of_tensor(call->inputs[1]).s,
                            text_of_tensor(call->inputs[0]).s),
               NULL;
    int rank = 0;
    rows[rank++] = ed_size(indices);
    for (int64_t i = leading.count; i < shape.count; i++) rows[rank++] = shape.values[i];
    return ed_reshape(x, (ed_ints){rows, rank});
}

/* ---- dynamic_stitch -------------------------------------------------------------------------- */

/* Which slice each place gets, the last that is for it; `n`, behind the last one, for none. */
static ed_tensor *stitch_sources(const ed_call *call, const ed_tensor *indices, bool *gaps)
{
    const int64_t *all = index_wide(indices), n = indices->size;
    int64_t places = 0;
    for (int64_t i = 0; all && i < n; i++) {
        if (all[i] < 0 || all[i] == INT64_MAX) {
            ed_call_fail(call, ED_OUT_OF_RANGE, "index %lld at position %lld must be >= 0",
                         (long long)all[i], text_nth(i));
            index_drop(indices, all);
            return NULL;
        }
        if (all[i] >= places) places = all[i] + 1;
    }
    ed_tensor *sources = all ? scope_give(tensor_new(ED_INT64, 1, &places)) : NULL;
    int64_t *to = sources ? (int64_t *)sources->data : NULL;
    for (int64_t i = 0; to && i < places; i++) to[i] = n;
    for (int64_t i = 0; to && i < n; i++) to[all[i]] = i;
    for (int64_t i = 0; to && i < places; i++) *gaps |= to[i] == n;
    if (all) index_drop(indices, all);
    return sources;
}

/* rows, and one of zeros behind them. */
static ed_tensor *with_zeros(ed_tensor *rows)
{
    int64_t after = 1;
    return ed_pad(rows, .after = {&after, 1});
}

static bool dynamic_stitch_compose(ed_call *call)
{
    const ed_tensor *indices = packed(call->inputs[0]);
    bool gaps = false;
    ed_tensor *rows = indices ? as_rows(call, call->inputs[1], indices) : NULL;
    ed_tensor *sources = rows ? stitch_sources(call, indices, &gaps) : NULL;
    if (gaps) rows = with_zeros(rows);
    return ed_call_result(call, 0, sources ? ed_gather(rows, sources) : NULL);
}

static bool dynamic_stitch_plain(const ed_call *call)
{
    const ed_tensor *indices = call->inputs[0], *data = call->inputs[1], *y = call->outputs[0];
    const int64_t each = indices->size ? data->size / indices->size : 0;
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = 0;
    for (int64_t i = 0; i < indices->size; i++)
        for (int64_t j = 0; j < each; j++)
            ((double *)y->data)[(int64_t)((const double *)indices->data)[i] * each + j] =
                ((const double *)data->data)[i * each + j];
    return true;
}

ED_OP(dynamic_stitch) = {
    .name = "dynamic_stitch",
    .doc = "the slices of data at their indices, 0 where there is none",
    .operands = {{"indices", ED_SET_INDEX, 'I', .early = true}, {"data", ED_SET_ALL, 'T'}},
    .compose = dynamic_stitch_compose,
    .reference = dynamic_stitch_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 5, 4), ED_SAMPLE_IN(-2, 2, 4, 3)}},
                          {.inputs = {ED_SAMPLE_IN(0, 3, 2, 4), ED_SAMPLE_IN(-2, 2, 2, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 0), ED_SAMPLE_IN(-2, 2, 3)}}),
};

/* The lists as one tensor of indices and one of rows. */
static ed_tensor *stitch_lists(const ed_list *indices, const ed_list *data)
{
    const ed_call named = {.op = &ed_op_dynamic_stitch};
    ed_list *places = scope_give(list_new(indices->size)), *rows = scope_give(list_new(data->size));
    if (!places || !rows) return NULL;
    for (int64_t i = 0; i < indices->size; i++) {
        if (!indices->items[i] || !data->items[i])
            return ed_fail(ED_INVALID_ARGUMENT, "dynamic_stitch: %s[%lld] is NULL",
                           indices->items[i] ? "data" : "indices", (long long)i);
        ed_tensor *both[] = {tensor_read(indices->items[i]), tensor_read(data->items[i])};
        ed_call call = named;
        call.inputs = both;
        if (!both[0] || !both[1]) return NULL;
        places->items[i] = ed_retain(ed_flatten(indices->items[i]));
        rows->items[i] = ed_retain(as_rows(&call, data->items[i], both[0]));
        if (!places->items[i] || !rows->items[i]) return NULL;
    }
    return CALL_OP(dynamic_stitch, NULL, ed_concat(places), ed_concat(rows));
}

ed_tensor *ed_dynamic_stitch(ed_list *indices, ed_list *data)
{
    if (!indices || !data)
        return ed_fail(ED_INVALID_ARGUMENT, "dynamic_stitch: %s is NULL",
                       indices ? "data" : "indices");
    if (indices->size != data->size || !data->size)
        return ed_fail(
            ED_INVALID_ARGUMENT,
            "dynamic_stitch: got %lld tensors of indices and %lld of data; there must be "
            "as many of both, at least one",
            (long long)indices->size, (long long)data->size);
    ED_SCOPE;
    const error_before before = error_begin();
    ed_tensor *y = stitch_lists(indices, data);
    error_within(before, "dynamic_stitch");
    return ed_keep(y);
}
