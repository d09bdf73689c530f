#include "ops/batch.h"
#include "ops/execute.h"
#include "ops/ops.h"
#include "ops/shape.h"
#include <string.h>

/* Many calls of an op as one, whose operands and results have a new first axis for the calls. */

/* ---- Operands -------------------------------------------------------------------------------- */

/* One call on operands for all calls; outputs as they come. */
static ed_list *run_all(const ed_batch_call *call, ed_tensor *const *operands, const void *attrs)
{
    return ed_execute_list(call->op, operands, call->n_inputs, attrs);
}

/* Room for the operands, those that do not differ filled in. */
static ed_tensor **operands_of(const ed_batch_call *call)
{
    ed_tensor **operands = ed_scope_alloc((size_t)call->n_inputs * sizeof *operands + 1);
    for (int i = 0; operands && i < call->n_inputs; i++)
        operands[i] = call->batches[i] ?: call->inputs[i];
    return operands;
}

/* x [n, ...] with axes of size 1 behind the first, so that it has `rank` others. */
static ed_tensor *widen(ed_tensor *x, int rank)
{
    const int more = rank - (x->rank - 1);
    if (more <= 0) return x;
    int64_t shape[ED_MAX_RANK];
    if (rank >= ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT, "%s has no room for an axis more: the most are %d",
                       text_of_tensor(x).s, ED_MAX_RANK);
    shape[0] = x->shape[0];
    for (int i = 1; i <= rank; i++) shape[i] = i <= more ? 1 : x->shape[i - more];
    return ed_reshape(x, ((ed_ints){shape, rank + 1}));
}

/* ---- Rules ----------------------------------------------------------------------------------- */

ed_list *ed_batch_broadcast(const ed_batch_call *call)
{
    if (NULL_GIVEN("batch", call)) return NULL;
    int rank = 0;
    ed_tensor **operands = operands_of(call);
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i]->rank > rank) rank = call->inputs[i]->rank;
    for (int i = 0; operands && i < call->n_inputs; i++)
        if (call->batches[i] && !(operands[i] = widen(operands[i], rank))) return NULL;
    return operands ? run_all(call, operands, call->attrs) : NULL;
}

/* The axis of one call among those of all: negative ones count from the end, as before. */
static int64_t moved(int64_t axis)
{
    return axis < 0 ? axis : axis + 1;
}

/* The attributes with the axes moved; `all`: AXES that are not given become all of the `rank`. */
static void *move_axes(const ed_batch_call *call, bool all, int rank)
{
    const ed_op *op = call->op;
    char *attrs = ed_scope_alloc(op->attrs_size);
    if (!attrs) return NULL;
    memcpy(attrs, call->attrs, op->attrs_size);
    for (const ed_field *field = op->attrs; field->name; field++) {
        if (field->type == ED_FIELD_AXIS) {
            int64_t *axis = ED_FIELD_AT(field, attrs);
            *axis = moved(*axis);
        }
        ed_ints *axes = ED_FIELD_AT(field, attrs);
        if (field->type != ED_FIELD_AXES || (!axes->values && !all)) continue;
        const int64_t count = axes->values ? axes->count : rank;
        int64_t *values = ed_scope_alloc((size_t)count * sizeof *values + 1);
        if (!values) return NULL;
        for (int64_t i = 0; i < count; i++)
            values[i] = axes->values ? moved(axes->values[i]) : i + 1;
        *axes = (ed_ints){values, count};
    }
    return attrs;
}

static ed_list *along_axes(const ed_batch_call *call, bool all)
{
    int64_t shape[ED_MAX_RANK];
    ed_tensor **operands = operands_of(call);
    for (int i = 0; operands && i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (call->batches[i]) continue;
        if (x->rank == ED_MAX_RANK) return ed_batch_each(call);
        if (!(operands[i] = ed_broadcast_to(operands[i], shape_of_batch(call->n, x, shape))))
            return NULL;
    }
    const void *attrs = call->op->attrs_size ? move_axes(call, all, call->inputs[0]->rank) : NULL;
    return operands && (attrs || !call->op->attrs_size) ? run_all(call, operands, attrs) : NULL;
}

ed_list *ed_batch_first(const ed_batch_call *call)
{
    if (NULL_GIVEN("batch", call)) return NULL;
    for (int i = 1; i < call->n_inputs; i++)
        if (call->batches[i]) return ed_batch_each(call);
    const void *attrs = call->op->attrs_size ? move_axes(call, false, 0) : NULL;
    ed_tensor **operands = operands_of(call);
    return operands && (attrs || !call->op->attrs_size) ? run_all(call, operands, attrs) : NULL;
}

ed_list *ed_batch_axes(const ed_batch_call *call)
{
    if (NULL_GIVEN("batch", call)) return NULL;
    return along_axes(call, false);
}

ed_list *ed_batch_reduction(const ed_batch_call *call)
{
    if (NULL_GIVEN("batch", call)) return NULL;
    return along_axes(call, true);
}

/* ---- Along an axis of one call --------------------------------------------------------------- */

/* The sizes of the tensor [n, ...] or, without n, [...] of one call, with the axis as `groups` and
 * what is left; the number of sizes. */
static int split_axis(const int64_t *shape, int rank, batch_place at, int64_t *wide)
{
    for (int i = 0; i < rank; i++) wide[i + (i > at.axis)] = shape[i];
    wide[at.axis] = at.groups;
    wide[at.axis + 1] = at.groups ? shape[at.axis] / at.groups : 0;
    return rank + 1;
}

static ed_tensor *reordered(ed_tensor *x, ed_ints wide, const int64_t *perm, ed_ints shape)
{
    ed_tensor *y = ed_reshape(x, wide);
    return y ? ed_reshape(ed_transpose(y, .perm = {perm, wide.count}), shape) : NULL;
}

/* x [n, ...] with the calls at that place. */
static ed_tensor *calls_into(ed_tensor *x, batch_place at)
{
    int64_t wide[ED_MAX_RANK + 1], perm[ED_MAX_RANK + 1], shape[ED_MAX_RANK];
    const int rank = x->rank - 1;
    memcpy(shape, x->shape + 1, (size_t)rank * sizeof *shape);
    const int count = 1 + split_axis(shape, rank, at, wide + 1);
    wide[0] = x->shape[0];
    if (__builtin_mul_overflow(shape[at.axis], wide[0], &shape[at.axis]) || count > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT, "%s is too large for one call", text_of_tensor(x).s);
    for (int i = 0; i < count; i++) perm[i] = i <= at.axis ? i + 1 : i == at.axis + 1 ? 0 : i;
    return reordered(x, (ed_ints){wide, count}, perm, (ed_ints){shape, rank});
}

/* And back: [n, ...]. */
static ed_tensor *calls_out_of(ed_tensor *y, batch_place at, int64_t n)
{
    int64_t wide[ED_MAX_RANK + 2], perm[ED_MAX_RANK + 2], shape[ED_MAX_RANK + 1];
    const int count = 1 + split_axis(y->shape, y->rank, at, wide), behind = at.axis + 1;
    if (count > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT, "%s is too large for one call", text_of_tensor(y).s);
    memmove(wide + behind + 1, wide + behind, (size_t)(count - 1 - behind) * sizeof *wide);
    wide[behind] = n;
    wide[behind + 1] /= n;
    for (int i = 0; i < count; i++) perm[i] = i == 0 ? behind : i <= behind ? i - 1 : i;
    shape[0] = n;
    memcpy(shape + 1, y->shape, (size_t)y->rank * sizeof *shape);
    shape[behind] /= n;
    return reordered(y, (ed_ints){wide, count}, perm, (ed_ints){shape, y->rank + 1});
}

/* Operand i [n, ...], also if it does not differ. */
static ed_tensor *repeated(const ed_batch_call *call, int i)
{
    int64_t shape[ED_MAX_RANK + 1];
    const ed_tensor *x = call->inputs[i];
    if (call->batches[i]) return call->batches[i];
    if (x->rank == ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT, "%s has no room for an axis more: the most are %d",
                       text_of_tensor(x).s, ED_MAX_RANK);
    return ed_broadcast_to(call->inputs[i], shape_of_batch(call->n, x, shape));
}

ed_list *batch_along(const ed_batch_call *call, const batch_place *places,
                     const batch_place *outputs, const void *attrs)
{
    for (int i = 0; i < call->n_inputs; i++)
        if (call->batches[i] && places[i].axis < 0) return ed_batch_each(call);
    ed_tensor **operands = operands_of(call);
    for (int i = 0; operands && i < call->n_inputs; i++) {
        if (places[i].axis < 0) continue;
        ed_tensor *x = repeated(call, i);
        if (!x || !(operands[i] = calls_into(x, places[i]))) return NULL;
    }
    ed_list *y = operands && attrs ? run_all(call, operands, attrs) : NULL;
    ed_list *result = y ? scope_give(list_new(y->size)) : NULL;
    for (int64_t i = 0; result && i < y->size; i++)
        if (!(result->items[i] = ed_retain(calls_out_of(y->items[i], outputs[i], call->n))))
            return NULL;
    return result;
}

/* The axis moved there. */
static ed_tensor *move_axis(ed_tensor *x, int from, int to)
{
    int64_t perm[ED_MAX_RANK];
    for (int i = 0, rest = 0; i < x->rank; i++) {
        if (rest == from) rest++;
        perm[i] = i == to ? from : rest++;
    }
    return ed_transpose(x, .perm = {perm, x->rank});
}

/* A copy of the attributes. *shape: the INTS `shape` in it, and *sizes a copy of theirs with room
 * for one more; NULL if there are none. NULL without memory. */
static void *copy_attrs(const ed_batch_call *call, ed_ints **shape, int64_t **sizes)
{
    const size_t size = call->op->attrs_size;
    char *attrs = ed_scope_alloc(size + 1);
    *shape = NULL;
    *sizes = NULL;
    if (!attrs || !size) return attrs;
    memcpy(attrs, call->attrs, size);
    if (!(*shape = batch_field(call->op, attrs, "shape"))) return attrs;
    const size_t count = (size_t)(*shape)->count;
    if (!(*sizes = ed_scope_alloc((count + 1) * sizeof **sizes))) return NULL;
    if (count) memcpy(*sizes, (*shape)->values, count * sizeof **sizes);
    return attrs;
}

/* The attributes, an INTS `shape` of which has one size more: the calls. */
static void *with_last(const ed_batch_call *call)
{
    ed_ints *shape;
    int64_t *sizes;
    void *attrs = copy_attrs(call, &shape, &sizes);
    if (!attrs || !shape) return attrs;
    sizes[shape->count] = call->n;
    *shape = (ed_ints){sizes, shape->count + 1};
    return attrs;
}

ed_list *batch_last(const ed_batch_call *call, unsigned operand_bits)
{
    for (int i = 0; i < call->n_inputs; i++)
        if (call->batches[i] && !(operand_bits & 1u << i)) return ed_batch_each(call);
    ed_tensor **operands = operands_of(call);
    void *attrs = with_last(call);
    for (int i = 0; operands && i < call->n_inputs; i++) {
        if (!(operand_bits & 1u << i)) continue;
        ed_tensor *x = repeated(call, i);
        if (!x || !(operands[i] = move_axis(x, 0, x->rank - 1))) return NULL;
    }
    ed_list *y = operands && attrs ? run_all(call, operands, attrs) : NULL;
    ed_list *result = y ? scope_give(list_new(y->size)) : NULL;
    for (int64_t i = 0; result && i < y->size; i++)
        if (!(result->items[i] = ed_retain(move_axis(y->items[i], y->items[i]->rank - 1, 0))))
            return NULL;
    return result;
}

/* The description of the attribute of that name; NULL: there is none. */
static const ed_field *attribute(const ed_op *op, const char *name)
{
    const ed_field *field = op->attrs;
    while (field->name && strcmp(field->name, name) != 0) field++;
    return field->name ? field : NULL;
}

void *batch_field(const ed_op *op, void *attrs, const char *name)
{
    const ed_field *field = attribute(op, name);
    return field ? ED_FIELD_AT(field, attrs) : NULL;
}

const void *batch_option(const ed_batch_call *call, const char *name)
{
    const ed_field *field = attribute(call->op, name);
    return field ? (const char *)call->attrs + field->offset : NULL;
}

void *batch_attrs(const ed_batch_call *call, int axis)
{
    ed_ints *shape;
    int64_t *sizes;
    void *attrs = copy_attrs(call, &shape, &sizes);
    if (!attrs || !shape || !shape->count) return attrs;
    if (__builtin_mul_overflow(sizes[axis], call->n, &sizes[axis]))
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s is too large for one call", call->op->name,
                       text_of_ints(shape->values, shape->count).s);
    shape->values = sizes;
    return attrs;
}

static ed_list *along_examples(const ed_batch_call *call, int operands)
{
    batch_place places[ED_MAX_OPERANDS], outputs[ED_MAX_OPERANDS];
    for (int i = 0; i < ED_MAX_OPERANDS; i++) {
        places[i] = (batch_place){i < operands ? 0 : -1, 1};
        outputs[i] = (batch_place){0, 1};
    }
    return batch_along(call, places, outputs, batch_attrs(call, 0));
}

ed_list *batch_examples(const ed_batch_call *call)
{
    return along_examples(call, call->n_inputs);
}

ed_list *batch_first_examples(const ed_batch_call *call)
{
    return along_examples(call, 1);
}

/* ---- One call after the other ---------------------------------------------------------------- */

/* The outputs of call number i into the lists, as that entry of each. */
static bool run_one(const ed_batch_call *call, ed_list *const *slices, ed_list **lists, int64_t i)
{
    ED_SCOPE;
    ed_tensor **operands = operands_of(call);
    for (int k = 0; operands && k < call->n_inputs; k++)
        if (slices[k]) operands[k] = slices[k]->items[i];
    ed_list *y = operands ? run_all(call, operands, call->attrs) : NULL;
    for (int k = 0; y && k < call->n_outputs; k++) lists[k]->items[i] = ed_retain(y->items[k]);
    return y;
}

ed_list *ed_batch_each(const ed_batch_call *call)
{
    if (NULL_GIVEN("batch", call)) return NULL;
    ed_list **slices = ed_scope_alloc((size_t)call->n_inputs * sizeof *slices + 1);
    ed_list **lists = ed_scope_alloc((size_t)call->n_outputs * sizeof *lists + 1);
    ed_list *result = scope_give(list_new(call->n_outputs));
    if (!slices || !lists || !result) return NULL;
    for (int k = 0; k < call->n_inputs; k++) {
        slices[k] = NULL;
        if (call->batches[k] && !(slices[k] = ed_unstack(call->batches[k]))) return NULL;
    }
    for (int k = 0; k < call->n_outputs; k++)
        if (!(lists[k] = scope_give(list_new(call->n)))) return NULL;
    for (int64_t i = 0; i < call->n; i++)
        if (!run_one(call, slices, lists, i)) return NULL;
    for (int k = 0; k < call->n_outputs; k++)
        if (!(result->items[k] = ed_retain(ed_stack(lists[k])))) return NULL;
    return result;
}

ed_list *ed_batch_result(ed_tensor *output)
{
    if (NULL_GIVEN("batch_result", output)) return NULL;
    return ed_list_make(&output, 1);
}
