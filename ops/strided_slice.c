/*
 * strided_slice and assign_strided_slice: subscripts become a slice with an index for each axis, as
 * ed_slice has it, and the shape that it is seen in: without the axes of indices, with new ones.
 */
#include "ops/shape.h"
#include <string.h>

/* What a list of subscripts says of a tensor. */
typedef struct subscripted {
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK], step[ED_MAX_RANK]; /* of each axis */
    int from[ED_MAX_RANK]; /* the axis that each axis of the result is; -1: it is new */
    int rank, rank_of_result;
    int64_t slice[ED_MAX_RANK], shape[ED_MAX_RANK]; /* shapes of the slice and of the result */
} subscripted;

static bool add_result_axis(const ed_call *call, subscripted *s, int from)
{
    if (s->rank_of_result < ED_MAX_RANK) {
        s->from[s->rank_of_result++] = from;
        return true;
    }
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "the result's rank is larger than the maximum, %d", ED_MAX_RANK);
}

/* The next axis whole, or a part of it. */
static bool add_range(const ed_call *call, subscripted *s, int64_t begin, int64_t end, int64_t step)
{
    const int axis = s->rank++;
    s->begin[axis] = begin;
    s->end[axis] = end;
    s->step[axis] = step;
    return add_result_axis(call, s, axis);
}

static bool add_index(const ed_call *call, subscripted *s, int64_t index)
{
    const ed_tensor *x = call->inputs[0];
    const int axis = s->rank;
    const int64_t n = x->shape[axis], i = index < 0 ? index + n : index;
    if (i < 0 || i >= n)
        return ed_call_fail(call, ED_OUT_OF_RANGE,
                            "index %lld is out of bounds for axis %lld of %s", (long long)index,
                            text_nth(axis), text_of_tensor(x).s);
    s->begin[axis] = index;
    s->end[axis] = index == -1 ? ED_END : index + 1;
    s->step[axis] = 1;
    s->rank++;
    return true;
}

static bool add_whole(const ed_call *call, subscripted *s, int64_t count)
{
    for (; count > 0; count--)
        if (!add_range(call, s, ED_END, ED_END, 1)) return false;
    return true;
}

/* Whether there are no more of them than axes, and one ellipsis at most; *axes is how many axes
 * they stand for, without the ellipsis. */
static bool count_axes(const ed_call *call, const ed_subscript *all, int64_t n, int64_t *axes)
{
    int64_t ellipses = 0;
    *axes = 0;
    for (int64_t i = 0; i < n; i++) {
        if (all[i].kind < ED_SUBSCRIPT_INDEX || all[i].kind > ED_SUBSCRIPT_NEW_AXIS)
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "subscript %lld has no kind",
                                text_nth(i));
        ellipses += all[i].kind == ED_SUBSCRIPT_ELLIPSIS;
        *axes += all[i].kind == ED_SUBSCRIPT_INDEX || all[i].kind == ED_SUBSCRIPT_RANGE;
    }
    if (ellipses <= 1 && *axes <= call->inputs[0]->rank) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        ellipses > 1 ? "at most one subscript may be an ellipsis, got %lld"
                                     : "%lld subscripts are too many for %s",
                        (long long)(ellipses > 1 ? ellipses : *axes),
                        text_of_tensor(call->inputs[0]).s);
}

static bool add_all(const ed_call *call, const ed_subscript *all, int64_t n, subscripted *s)
{
    int64_t axes;
    if (!count_axes(call, all, n, &axes)) return false;
    for (int64_t i = 0; i < n; i++) {
        const ed_subscript *one = &all[i];
        const bool added =
            one->kind == ED_SUBSCRIPT_INDEX   ? add_index(call, s, one->begin)
            : one->kind == ED_SUBSCRIPT_RANGE ? add_range(call, s, one->begin, one->end, one->step)
            : one->kind == ED_SUBSCRIPT_NEW_AXIS ? add_result_axis(call, s, -1)
                                                 : add_whole(call, s, call->inputs[0]->rank - axes);
        if (!added) return false;
    }
    return add_whole(call, s, call->inputs[0]->rank - s->rank);
}

static ed_slice_options slice_of_subscripts(const subscripted *s)
{
    return (ed_slice_options)ED_COMPLETE(ED_SLICE_OPTIONS, , .begin = {s->begin, s->rank},
                                         .end = {s->end, s->rank}, .step = {s->step, s->rank});
}

/* Reads the subscripts of x; false, with an error that begins with the name. */
static bool read_subscripts(const char *name, ed_tensor *x, const ed_subscript *all, int64_t n,
                            subscripted *s)
{
    const ed_op op = {.name = name};
    ed_tensor *value = x ? tensor_read(x) : NULL;
    const ed_call call = {.op = &op, .n_inputs = 1, .inputs = &value};
    int64_t strides[ED_MAX_RANK], offset;
    *s = (subscripted){.rank = 0};
    if (!value || n < 0 || !all)
        return ed_call_fail(&call, ED_INVALID_ARGUMENT, "%s",
                            !x ? "the tensor is NULL" : "the array of subscripts is NULL");
    if (!add_all(&call, all, n, s)) return false;
    const ed_slice_options slice = slice_of_subscripts(s);
    if (!shape_slice(&call, s->rank, value->shape, value->strides, &slice, s->slice, strides,
                     &offset))
        return false;
    for (int i = 0; i < s->rank_of_result; i++)
        s->shape[i] = s->from[i] < 0 ? 1 : s->slice[s->from[i]];
    return true;
}

/* The slice without the axes of indices and with new ones, whatever sizes the others have: of a
 * symbol they may be open. */
static ed_tensor *seen_as_result(ed_tensor *y, const subscripted *s)
{
    bool stays[ED_MAX_RANK] = {false};
    int64_t gone[ED_MAX_RANK], n = 0;
    for (int i = 0; i < s->rank_of_result; i++)
        if (s->from[i] >= 0) stays[s->from[i]] = true;
    for (int i = 0; i < s->rank; i++)
        if (!stays[i]) gone[n++] = i;
    if (n) y = ed_squeeze(y, .axis = {gone, n});
    for (int i = 0; i < s->rank_of_result; i++)
        if (s->from[i] < 0) y = ed_expand_dims(y, i);
    return y;
}

ed_tensor *ed_strided_slice_of(ed_tensor *x, const ed_subscript *subscripts, int64_t count)
{
    subscripted s;
    if (!read_subscripts("strided_slice", x, subscripts, count, &s)) return NULL;
    const ed_slice_options slice = slice_of_subscripts(&s);
    ED_SCOPE;
    ed_tensor *y = ed_slice_with(x, &slice);
    return ed_keep(seen_as_result(y, &s));
}

ed_tensor *(ed_assign_strided_slice_of)(ed_tensor *v, ed_tensor *value,
                                        const ed_subscript *subscripts, int64_t count)
{
    subscripted s;
    if (!value) return ed_fail(ED_INVALID_ARGUMENT, "assign_strided_slice: value is NULL");
    if (!read_subscripts("assign_strided_slice", v, subscripts, count, &s)) return NULL;
    const ed_slice_options slice = slice_of_subscripts(&s);
    ED_SCOPE;
    if (ed_rank(value)) /* others are for all elements, whatever the shapes */
        value = ed_reshape(ed_broadcast_to(value, (ed_ints){s.shape, s.rank_of_result}),
                           (ed_ints){s.slice, s.rank});
    return (ed_assign_slice_with)(v, value, &slice);
}
