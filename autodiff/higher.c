#include "autodiff/tape.h"

/*
 * Jacobians: one walk back for every element of the target, with a one-hot gradient flowing into
 * it; the rows are stacked. (All reverse mode: no op needs anything more than its gradient.)
 */

static bool check(const char *what, ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    if (!tape || !target || !source)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: NULL given", what), false;
    if (!tape->persistent)
        return ed_fail(ED_FAILED_PRECONDITION,
                       "%s: the tape must be persistent, it is walked once for every element",
                       what),
               false;
    return true;
}

/* The shapes of both, joined, without the first `skip` dimensions of the second. */
static bool join(const char *what, const ed_tensor *a, const ed_tensor *b, int skip, int *rank,
                 int64_t *shape)
{
    *rank = a->rank + b->rank - skip;
    if (*rank > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: target %s and source %s make more than %d dimensions", what,
                       text_of_tensor(a).s, text_of_tensor(b).s, ED_MAX_RANK),
               false;
    for (int i = 0; i < a->rank; i++) shape[i] = a->shape[i];
    for (int i = skip; i < b->rank; i++) shape[a->rank + i - skip] = b->shape[i];
    return true;
}

/* Row i of a Jacobian: what flows to the source when `dy`, reshaped like the target, flows into it.
 * Zeros if nothing does. */
static ed_tensor *row(ed_tape *tape, ed_tensor *target, ed_tensor *source, ed_tensor *dy)
{
    dy = dy ? ed_reshape(dy, ed_shape(target)) : NULL;
    if (!dy) return NULL;
    return ed_gradient_tensor(
        tape, ed_list_of_one(target), source,
        &(ed_gradient_options){.output_gradients = ed_list_of_one(dy), .unconnected_zeros = true});
}

/* Whether anything of the target depends on the source; asked once, with ones. */
static bool connected(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    ED_SCOPE;
    return ed_gradient_tensor(tape, ed_list_of_one(target), source, NULL) != NULL;
}

static ed_tensor *jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (!join("jacobian", target, source, 0, &rank, shape)) return NULL;
    if (target->size == 0 || source->size == 0)
        return ed_zeros_with((ed_ints){shape, rank}, &(ed_create_options){.dtype = source->dtype});
    ed_list *rows = list_new(target->size);
    if (!scope_give(rows)) return NULL;
    for (int64_t i = 0; i < target->size; i++) {
        ED_SCOPE;
        ed_tensor *at = ed_constant(&i, ED_SHAPE(1));
        ed_tensor *dy =
            at ? ed_one_hot_with(at, target->size, &(ed_one_hot_options){.dtype = target->dtype})
               : NULL;
        if (!(rows->items[i] = ed_retain(row(tape, target, source, dy)))) return NULL;
    }
    return ed_reshape(ed_stack(rows), (ed_ints){shape, rank});
}

ed_tensor *ed_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    if (!check("jacobian", tape, target, source)) return NULL;
    if (!connected(tape, target, source)) return NULL;
    ED_SCOPE;
    return ed_keep(jacobian(tape, target, source));
}

/* Column j of all rows at once: the batch's rows do not mix, so ones may flow into the column of
 * each of them. */
static ed_tensor *batch_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (!join("batch_jacobian", target, source, 1, &rank, shape)) return NULL;
    int64_t batch = target->shape[0];
    if (target->size == 0 || source->size == 0)
        return ed_zeros_with((ed_ints){shape, rank}, &(ed_create_options){.dtype = source->dtype});
    int64_t columns = target->size / batch;
    ed_list *stack = list_new(columns);
    if (!scope_give(stack)) return NULL;
    for (int64_t j = 0; j < columns; j++) {
        ED_SCOPE;
        ed_tensor *at =
            ed_full_with(ED_SHAPE(batch), ed_integer(j), &(ed_create_options){.dtype = ED_INT64});
        ed_tensor *dy =
            at ? ed_one_hot_with(at, columns, &(ed_one_hot_options){.dtype = target->dtype}) : NULL;
        if (!(stack->items[j] = ed_retain(row(tape, target, source, dy)))) return NULL;
    }
    return ed_reshape(ed_stack(stack, .axis = 1), (ed_ints){shape, rank});
}

ed_tensor *ed_batch_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    if (!check("batch_jacobian", tape, target, source)) return NULL;
    if (target->rank < 1 || source->rank < 1 || target->shape[0] != source->shape[0])
        return ed_fail(
            ED_INVALID_ARGUMENT,
            "batch_jacobian: target %s and source %s need the same first dimension, the batch",
            text_of_tensor(target).s, text_of_tensor(source).s);
    ED_SCOPE;
    return ed_keep(batch_jacobian(tape, target, source));
}

/* The gradient of (gradient of f) . vectors: reverse over reverse. */
static ed_list *hessian_vector(ed_function f, ed_list *inputs, ed_list *vectors, void *user)
{
    ed_tape *outer = ed_tape_begin(.ignore_accessed_variables = true);
    ed_tape *inner = ed_tape_begin(.persistent = true, .ignore_accessed_variables = true);
    if (!outer || !inner) return NULL;
    for (int64_t i = 0; i < inputs->size; i++)
        if (!ed_watch(outer, inputs->items[i]) || !ed_watch(inner, inputs->items[i])) return NULL;
    ed_tensor *y = f(inputs, user);
    if (!y || !ed_tape_stop(inner)) return NULL;
    if (y->size != 1)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "hessian_vector_product: f must return a scalar, not %s",
                       text_of_tensor(y).s);
    ed_list *gradients = ed_gradient_list(inner, ed_list_of_one(y), inputs,
                                          &(ed_gradient_options){.unconnected_zeros = true});
    if (!gradients || !ed_tape_stop(outer)) return NULL;
    return ed_gradient_list(
        outer, gradients, inputs,
        &(ed_gradient_options){.output_gradients = vectors, .unconnected_zeros = true});
}

ed_list *ed_hessian_vector_product(ed_function f, ed_list *inputs, ed_list *vectors, void *user)
{
    if (!f || !inputs || !vectors)
        return ed_fail(ED_INVALID_ARGUMENT, "hessian_vector_product: NULL given");
    if (inputs->size != vectors->size)
        return ed_fail(ED_INVALID_ARGUMENT, "hessian_vector_product: %lld vectors for %lld inputs",
                       (long long)vectors->size, (long long)inputs->size);
    ED_SCOPE;
    return ed_keep(hessian_vector(f, inputs, vectors, user));
}
