#include "autodiff/tape.h"
#include <string.h>

/* Jacobians: one backward pass for each element of the target, with a one-hot gradient of the
 * target, whatever the number of sources; the rows are stacked. Reverse mode only, so an op needs
 * no more than its gradient. */

static bool check_tape(const char *what, const ed_tape *tape, const ed_tensor *target,
                       const void *source)
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

/* What jacobians are made of: passes with the gradients of the target, and the rows of each source,
 * which are stacked along the axis and reshaped. */
typedef struct rows {
    const char *what;
    ed_tape *tape;
    ed_tensor *target;
    ed_list *sources;
    int skip; /* dimensions that target and source share: 1 for a batch */
    bool zeros;
    int64_t passes;
} rows;

/* Whether the ranks are small enough for each source. */
static bool check_sources(const rows *r)
{
    int rank;
    int64_t shape[ED_MAX_RANK];
    for (int64_t i = 0; i < r->sources->size; i++) {
        const ed_tensor *source = r->sources->items[i];
        if (!source)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: source %lld is NULL", r->what, text_nth(i)),
                   false;
        if (r->skip &&
            (r->target->rank < 1 || source->rank < 1 || r->target->shape[0] != source->shape[0]))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: target %s and source %s must have the same size of the first axis, "
                           "the batch",
                           r->what, text_of_tensor(r->target).s, text_of_tensor(source).s),
                   false;
        if (!join(r->what, r->target, source, r->skip, &rank, shape)) return false;
    }
    return true;
}

/* One pass, for the elements i, i + passes, ... of the target: a row for each source, of which
 * those of the first pass may be NULL. */
static bool pass(const rows *r, ed_list *const *lists, int64_t i)
{
    ED_SCOPE;
    ed_tensor *dy = ones_at(r->target, i, r->passes);
    ed_list *seeds = dy ? ed_list_of_one(dy) : NULL;
    if (!seeds) return false;
    ed_list *gradients = ed_gradient_list(
        r->tape, ed_list_of_one(r->target), r->sources,
        &(ed_gradient_options){.output_gradients = seeds, .unconnected_zeros = r->zeros || i > 0});
    for (int64_t s = 0; gradients && s < r->sources->size; s++)
        lists[s]->items[i] = ed_retain(gradients->items[s]);
    return gradients;
}

/* A source's jacobian of its rows into *j; NULL if it is unconnected. */
static bool stack_rows(const rows *r, ed_list *list, const ed_tensor *source, ed_tensor **j)
{
    int rank;
    int64_t sizes[ED_MAX_RANK];
    join(r->what, r->target, source, r->skip, &rank, sizes);
    const ed_ints shape = {sizes, rank};
    const bool empty = r->target->size == 0 || source->size == 0;
    *j = NULL;
    if (!empty && !list->items[0]) return true;
    *j = empty ? ed_zeros(shape, .dtype = source->dtype)
               : ed_reshape(ed_stack(list, .axis = r->skip), shape);
    return *j;
}

static bool fill(const rows *r, ed_list **lists, ed_list *result)
{
    for (int64_t s = 0; s < r->sources->size; s++)
        if (!(lists[s] = scope_give(list_new(r->passes)))) return false;
    bool any = false; /* source with elements */
    for (int64_t s = 0; s < r->sources->size; s++) any |= r->sources->items[s]->size;
    for (int64_t i = 0; any && i < r->passes; i++)
        if (!pass(r, lists, i)) return false;
    for (int64_t s = 0; s < r->sources->size; s++) {
        ed_tensor *j;
        if (!stack_rows(r, lists[s], r->sources->items[s], &j)) return false;
        result->items[s] = ed_retain(j);
    }
    return true;
}

static ed_list *jacobians(const rows *r)
{
    if (!check_sources(r)) return NULL;
    ED_SCOPE;
    ed_list **lists = ed_scope_alloc((size_t)r->sources->size * sizeof *lists + 1);
    ed_list *result = lists ? scope_give(list_new(r->sources->size)) : NULL;
    return result && fill(r, lists, result) ? ed_keep(result) : NULL;
}

/* The first of them. */
static ed_tensor *first_of(ed_list *list)
{
    if (!list || !list->items[0]) return NULL;
    return scope_give(ed_retain(list->items[0]));
}

ed_list *ed_jacobian_list(ed_tape *tape, ed_tensor *target, ed_list *sources,
                          const ed_jacobian_options *options)
{
    static const char what[] = "jacobian";
    if (!check_tape(what, tape, target, sources)) return NULL;
    return jacobians(&(rows){.what = what,
                             .tape = tape,
                             .target = target,
                             .sources = sources,
                             .zeros = options && options->unconnected_zeros,
                             .passes = target->size});
}

ed_tensor *ed_jacobian_with(ed_tape *tape, ed_tensor *target, ed_tensor *source,
                            const ed_jacobian_options *options)
{
    if (!check_tape("jacobian", tape, target, source)) return NULL;
    ED_SCOPE;
    return ed_keep(first_of(ed_jacobian_list(tape, target, ed_list_of_one(source), options)));
}

ed_tensor *(ed_jacobian)(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    return ed_jacobian_with(tape, target, source, NULL);
}

/* Column j of all rows in one pass: rows of the batch don't depend on each other. */
ed_list *ed_batch_jacobian_list(ed_tape *tape, ed_tensor *target, ed_list *sources)
{
    static const char what[] = "batch_jacobian";
    if (!check_tape(what, tape, target, sources)) return NULL;
    return jacobians(
        &(rows){.what = what,
                .tape = tape,
                .target = target,
                .sources = sources,
                .skip = 1,
                .zeros = true,
                .passes = target->rank && target->size ? target->size / target->shape[0] : 0});
}

ed_tensor *(ed_batch_jacobian)(ed_tape *tape, ed_tensor *target, ed_tensor *source)
{
    if (!check_tape("batch_jacobian", tape, target, source)) return NULL;
    ED_SCOPE;
    return ed_keep(first_of(ed_batch_jacobian_list(tape, target, ed_list_of_one(source))));
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
