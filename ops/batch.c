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

ed_list *ed_batch_first(const ed_batch_call *call)
{
    if (NULL_GIVEN("batch", call)) return NULL;
    for (int i = 1; i < call->n_inputs; i++)
        if (call->batches[i]) return ed_batch_each(call);
    ed_tensor **operands = operands_of(call);
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
