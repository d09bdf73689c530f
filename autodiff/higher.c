#include "autodiff/tape.h"
#include <string.h>

/* Jacobians: one backward pass for each element of the target, with a one-hot gradient of the
 * target; the rows are stacked. Reverse mode only, so an op needs no more than its gradient. */

static bool check_tape(const char *what, ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    if (NULL_GIVEN(what, tape, target, source)) return false;
    if (!tape->persistent)
        return ed_fail(ED_FAILED_PRECONDITION,
                       "%s: the tape must be persistent: one gradient is computed for each element "
                       "of the target",
                       what);
    return true;
}

/* The shape of a followed by that of b without its first `skip` dimensions. */
static bool join(const char *what, const ed_tensor *a, const ed_tensor *b, int skip, int *rank,
                 int64_t *shape)
{
    *rank = a->rank + b->rank - skip;
    if (*rank > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: target %s and source %s have ranks that add up to more than %d", what,
                       text_of_tensor(a).s, text_of_tensor(b).s, ED_MAX_RANK),
               false;
    for (int i = 0; i < a->rank; i++) shape[i] = a->shape[i];
    for (int i = skip; i < b->rank; i++) shape[a->rank + i - skip] = b->shape[i];
    return true;
}

/* Zeros in the shape of the target, with ones at first, first + step, ... */
static ed_tensor *ones_at(const ed_tensor *target, int64_t first, int64_t step)
{
    ed_tensor *dy = tensor_new(target->dtype, target->rank, target->shape);
    if (!dy) return NULL;
    memset(dy->data, 0, (size_t)dy->size * dtype_size(target->dtype));
    for (int64_t i = first; i < dy->size; i += step) dtype_store(target->dtype, dy->data, i, 1);
    return scope_give(dy);
}

/* The source's gradient for that gradient of the target. Unconnected: zeros; but NULL, without
 * an error, at the first pass. */
static ed_tensor *row(ed_tape *tape, ed_tensor *target, ed_tensor *source, int64_t i, int64_t step)
{
    ED_SCOPE;
    ed_tensor *dy = ones_at(target, i, step);
    if (!dy) return NULL;
    return ed_keep(ed_gradient_tensor(tape, ed_list_of_one(target), source,
                                      &(ed_gradient_options){.output_gradients = ed_list_of_one(dy),
                                                             .unconnected_zeros = i > 0}));
}

/* One pass for each of the first `step` elements, with ones at every step-th element from there
 * on: the rows, stacked along `axis` and reshaped. NULL, without an error, if unconnected. */
static ed_tensor *stack_rows(ed_tape *tape, ed_tensor *target, ed_tensor *source, int64_t step,
                             int axis, ed_ints shape)
{
    ED_SCOPE;
    if (target->size == 0 || source->size == 0)
        return ed_keep(ed_zeros(shape, .dtype = source->dtype));
    ed_list *list = list_new(step);
    if (!scope_give(list)) return NULL;
    for (int64_t i = 0; i < step; i++)
        if (!(list->items[i] = ed_retain(row(tape, target, source, i, step)))) return NULL;
    return ed_keep(ed_reshape(ed_stack(list, .axis = axis), shape));
}

ed_tensor *ed_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (!check_tape("jacobian", tape, target, source) ||
        !join("jacobian", target, source, 0, &rank, shape))
        return NULL;
    return stack_rows(tape, target, source, target->size, 0, (ed_ints){shape, rank});
}

/* Column j of all rows in one pass: rows of the batch don't depend on each other. */
ed_tensor *ed_batch_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    if (!check_tape("batch_jacobian", tape, target, source)) return NULL;
    if (target->rank < 1 || source->rank < 1 || target->shape[0] != source->shape[0])
        return ed_fail(ED_INVALID_ARGUMENT,
                       "batch_jacobian: target %s and source %s must have the same size of the "
                       "first axis, the batch",
                       text_of_tensor(target).s, text_of_tensor(source).s);
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (!join("batch_jacobian", target, source, 1, &rank, shape)) return NULL;
    int64_t columns = target->size ? target->size / target->shape[0] : 0;
    ed_tensor *jacobian = stack_rows(tape, target, source, columns, 1, (ed_ints){shape, rank});
    if (jacobian || ed_failed()) return jacobian;
    return ed_zeros(((ed_ints){shape, rank}), .dtype = source->dtype);
}

/* The gradient of (gradient of f) . vectors: reverse over reverse. */
static ed_list *hessian_vector(ed_function f, ed_list *inputs, ed_list *vectors, void *user)
{
    ed_tape *outer = ed_tape_begin(.ignore_accessed_variables = true);
    ed_tape *inner = ed_tape_begin(.ignore_accessed_variables = true);
    if (!outer || !inner) return NULL;
    for (int64_t i = 0; i < inputs->size; i++)
        if (!ed_watch(outer, inputs->items[i]) || !ed_watch(inner, inputs->items[i])) return NULL;
    const error_before before = error_begin();
    ed_tensor *y = SCOPE_GUARDED(f(inputs, user));
    if (!y && error_is_missing(before))
        ed_fail(ED_INVALID_ARGUMENT, "hessian_vector_product: f returned NULL without an error");
    if (!y || error_since(before)) return NULL;
    if (y->size != 1)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "hessian_vector_product: f must return a scalar, got %s",
                       text_of_tensor(y).s);
    ed_list *gradients = ed_gradient_list(inner, ed_list_of_one(y), inputs,
                                          &(ed_gradient_options){.unconnected_zeros = true});
    return ed_gradient_list(
        outer, gradients, inputs,
        &(ed_gradient_options){.output_gradients = vectors, .unconnected_zeros = true});
}

ed_list *ed_hessian_vector_product(ed_function f, ed_list *inputs, ed_list *vectors, void *user)
{
    if (NULL_GIVEN("hessian_vector_product", f, inputs, vectors)) return NULL;
    if (inputs->size != vectors->size)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "hessian_vector_product: got %lld vectors for %lld inputs",
                       (long long)vectors->size, (long long)inputs->size);
    ED_SCOPE;
    return ed_keep(hessian_vector(f, inputs, vectors, user));
}
