/*
 * Sparse tensors: the object, and what all of its functions share. Indices are plain integers, so
 * functions compute new ones where they stand; values pass through ops, which tapes hear.
 */
#include "ops/sparse.h"
#include "ops/sparses.h"
#include <stdio.h>
#include <string.h>

/* ---- The object ------------------------------------------------------------------------------ */

static void sparse_destroy(void *object)
{
    ed_sparse_tensor *x = object;
    ed_release(x->indices);
    ed_release(x->values);
    memory_free(x);
}

static const object_class sparse_class = {.name = "sparse_tensor", .destroy = sparse_destroy};

bool sparse_check_shape(const char *who, ed_ints shape)
{
    int64_t size = 1;
    if (!shape.values || shape.count < 0 || shape.count > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: the dense shape must have 0 to %d sizes", who,
                       ED_MAX_RANK),
               false;
    for (int64_t d = 0; d < shape.count; d++) {
        if (shape.values[d] < 0)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: the dense shape %s has a negative size", who,
                           text_of_ints(shape.values, shape.count).s),
                   false;
        if (shape.values[d] && __builtin_mul_overflow(size, shape.values[d], &size))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: the dense shape %s has 2^63 elements or more, which is too many",
                           who, text_of_ints(shape.values, shape.count).s),
                   false;
    }
    return true;
}

bool sparse_check(const char *who, const ed_tensor *indices, const ed_tensor *values, ed_ints shape,
                  bool *ordered)
{
    if (!sparse_check_shape(who, shape)) return false;
    if (indices->rank != 2 || values->rank != 1 || indices->shape[0] != values->shape[0] ||
        indices->shape[1] != shape.count)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: indices must be [n, %lld] and values [n] for the dense shape %s, got "
                       "%s and %s",
                       who, (long long)shape.count, text_of_ints(shape.values, shape.count).s,
                       text_of_tensor(indices).s, text_of_tensor(values).s),
               false;
    const int64_t *at = (const int64_t *)indices->data;
    int64_t before = -1;
    bool ascends = true;
    for (int64_t i = 0; i < indices->shape[0]; i++) {
        int64_t number = 0;
        for (int64_t d = 0; d < shape.count; d++, at++) {
            if ((uint64_t)*at >= (uint64_t)shape.values[d])
                return ed_fail(ED_OUT_OF_RANGE,
                               "%s: entry %lld has index %lld along axis %lld, which must be in "
                               "0..%lld",
                               who, text_nth(i), (long long)*at, text_nth(d),
                               (long long)shape.values[d] - 1),
                       false;
            number = number * shape.values[d] + *at;
        }
        ascends &= number > before;
        before = number;
    }
    if (ordered) *ordered = ascends;
    return true;
}

/* The indices as int64, contiguous, with a reference for the caller. */
static ed_tensor *own_indices(const char *who, ed_tensor *indices)
{
    ed_tensor *read = tensor_read(indices);
    if (!read) return NULL;
    if (read->dtype == ED_INT32) return ed_retain(ed_cast(read, ED_INT64));
    if (read->dtype != ED_INT64)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: indices must be int32 or int64, got %s", who,
                       text_of_tensor(read).s);
    return tensor_contiguous(read);
}

ed_sparse_tensor *sparse_new(const char *who, ed_tensor *indices, ed_tensor *values, ed_ints shape)
{
    if (NULL_GIVEN(who, indices, values)) return NULL;
    if (ed_is_variable(values)) values = ed_value(values);
    ed_sparse_tensor *x = values ? object_new(&sparse_class, sizeof *x) : NULL;
    if (!x) return NULL;
    x->values = ed_retain(values);
    x->indices = own_indices(who, indices);
    if (!x->indices || !sparse_check(who, x->indices, values, shape, &x->ordered)) {
        ed_release(x);
        return NULL;
    }
    x->rank = (int)shape.count;
    memcpy(x->shape, shape.values, (size_t)x->rank * sizeof *x->shape);
    return scope_give(x);
}

ed_sparse_tensor *ed_sparse_tensor_of(ed_tensor *indices, ed_tensor *values, ed_ints shape)
{
    ED_SCOPE;
    return ed_keep(sparse_new("sparse_tensor", indices, values, shape));
}

ed_tensor *ed_sparse_indices(const ed_sparse_tensor *x)
{
    return NULL_GIVEN("sparse_indices", x) ? NULL : scope_give(ed_retain(x->indices));
}

ed_tensor *ed_sparse_values(const ed_sparse_tensor *x)
{
    return NULL_GIVEN("sparse_values", x) ? NULL : scope_give(ed_retain(x->values));
}

ed_ints ed_sparse_shape(const ed_sparse_tensor *x)
{
    return NULL_GIVEN("sparse_shape", x) ? (ed_ints){0} : sparse_shape_of(x);
}

bool ed_sparse_is_ordered(const ed_sparse_tensor *x)
{
    return !NULL_GIVEN("sparse_is_ordered", x) && x->ordered;
}

const char *ed_sparse_to_string_with(const ed_sparse_tensor *x, const ed_print_options *options)
{
    static const char form[] = "indices:\n%s\nvalues:\n%s\nsparse %s%s";
    if (NULL_GIVEN("sparse_to_string", x)) return NULL;
    const char *indices = ed_to_string_with(x->indices, options);
    const char *values = indices ? ed_to_string_with(x->values, options) : NULL;
    if (!values) return NULL;
    const text shape = text_of_ints(x->shape, x->rank);
    const char *dtype = ed_dtype_name(x->values->dtype);
    const size_t room =
        strlen(indices) + strlen(values) + strlen(dtype) + strlen(shape.s) + sizeof form;
    char *s = ed_scope_alloc(room);
    if (s) snprintf(s, room, form, indices, values, dtype, shape.s);
    return s;
}

/* ---- Entries --------------------------------------------------------------------------------- */

ed_tensor *sparse_integers(int64_t n, int rank)
{
    return scope_give(tensor_new(ED_INT64, rank ? 2 : 1, (int64_t[]){n, rank}));
}

bool sparse_operands(const ed_call *call, int first, ed_ints shape, ed_tensor **indices,
                     bool *ordered)
{
    const ed_tensor *values = tensor_read(call->inputs[first + 1]);
    ed_tensor *read = tensor_read(call->inputs[first]);
    *indices = read ? scope_give(tensor_contiguous(read)) : NULL;
    return *indices && values && sparse_check(call->op->name, *indices, values, shape, ordered);
}

ed_tensor *sparse_numbers(const ed_tensor *indices, const int64_t *shape, int begin, int end)
{
    const int64_t n = indices->shape[0], rank = indices->shape[1];
    ed_tensor *numbers = sparse_integers(n, 0);
    const int64_t *at = (const int64_t *)indices->data;
    for (int64_t i = 0; numbers && i < n; i++, at += rank) {
        int64_t number = 0;
        for (int d = begin; d < end; d++) number = number * shape[d] + at[d];
        sparse_data(numbers)[i] = number;
    }
    return numbers;
}

ed_tensor *sparse_indices_of(const ed_tensor *numbers, ed_ints shape)
{
    const int64_t n = numbers ? numbers->size : 0;
    ed_tensor *indices = scope_give(tensor_new(ED_INT64, 2, (int64_t[]){n, shape.count}));
    for (int64_t i = 0; indices && numbers && i < n; i++) {
        int64_t rest = ((const int64_t *)numbers->data)[i];
        for (int64_t d = shape.count - 1; d >= 0; d--) {
            const int64_t above = rest / shape.values[d];
            sparse_data(indices)[i * shape.count + d] = rest - above * shape.values[d];
            rest = above;
        }
    }
    return numbers ? indices : NULL;
}

bool sparse_ascends(const ed_tensor *numbers)
{
    const int64_t *v = (const int64_t *)numbers->data;
    for (int64_t i = 1; i < numbers->size; i++)
        if (v[i] < v[i - 1]) return false;
    return true;
}

ed_tensor *sparse_groups(ed_tensor *numbers, int64_t *count)
{
    *count = 0;
    if (!numbers) return NULL;
    if (!sparse_ascends(numbers)) {
        ed_tensor *groups, *distinct = ed_unique(numbers, &groups, NULL);
        *count = ed_size(distinct);
        return distinct ? groups : NULL;
    }
    ed_tensor *groups = sparse_integers(numbers->size, 0);
    const int64_t *v = (const int64_t *)numbers->data;
    for (int64_t i = 0; groups && i < numbers->size; i++) {
        *count += !i || v[i] != v[i - 1];
        sparse_data(groups)[i] = *count - 1;
    }
    return groups;
}

ed_sparse_tensor *sparse_taken(const char *who, const ed_sparse_tensor *x, ed_tensor *indices,
                               ed_tensor *order, ed_ints shape)
{
    ed_tensor *values = indices && order ? ed_gather(x->values, order) : NULL;
    return values ? sparse_new(who, indices, values, shape) : NULL;
}

/* Rows of indices at `order`. */
static ed_tensor *rows_at(const ed_tensor *indices, const ed_tensor *order)
{
    const int64_t rank = indices->shape[1];
    ed_tensor *rows =
        order ? scope_give(tensor_new(ED_INT64, 2, (int64_t[]){order->size, rank})) : NULL;
    for (int64_t i = 0; rows && i < order->size; i++)
        for (int64_t d = 0; d < rank; d++)
            sparse_data(rows)[i * rank + d] =
                sparse_at(indices, ((const int64_t *)order->data)[i], d);
    return rows;
}

ed_sparse_tensor *sparse_in_order(const char *who, ed_tensor *indices, ed_tensor *values,
                                  ed_ints shape)
{
    if (!indices || !values || !sparse_check(who, indices, values, shape, NULL)) return NULL;
    ed_tensor *numbers = sparse_numbers(indices, shape.values, 0, (int)shape.count);
    if (!numbers) return NULL;
    if (sparse_ascends(numbers)) return sparse_new(who, indices, values, shape);
    ed_tensor *order = ed_argsort(numbers);
    ed_tensor *rows = order ? rows_at(indices, order) : NULL;
    values = rows ? ed_gather(values, order) : NULL;
    return values ? sparse_new(who, rows, values, shape) : NULL;
}

int64_t sparse_plain_number(const ed_tensor *indices, ed_ints shape, int64_t i)
{
    int64_t number = 0;
    for (int64_t d = 0; d < shape.count; d++)
        number = number * shape.values[d] +
                 (int64_t)((const double *)indices->data)[i * shape.count + d];
    return number;
}
