#include "autodiff/tape.h"
#include "autodiff/vectorize.h"
#include <string.h>

/*
 * Jacobians: one backward pass for each element of the target, with a one-hot gradient of the
 * target, whatever the number of sources. Reverse mode only, so an op needs no more than its
 * gradient. Many passes are one walk, whose ops run for all of their gradients at once
 * (autodiff/vectorize.h); where that can't be, they come one after the other.
 */

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

/*
 * Several gradients of the target, [count, ...]: zeros, with ones at first, first + step, ... in
 * the first of them, one further in each of the next. Of one, in the target's shape.
 */
static ed_tensor *ones_at(const ed_tensor *target, int64_t first, int64_t step, int64_t count)
{
    int64_t shape[ED_MAX_RANK + 1] = {count};
    const bool several = count > 1;
    memcpy(shape + several, target->shape, (size_t)target->rank * sizeof *shape);
    ed_tensor *dy = scope_give(tensor_new(target->dtype, target->rank + several, shape));
    if (!dy) return NULL;
    memset(dy->data, 0, (size_t)dy->size * dtype_size(target->dtype));
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = first + k; i < target->size; i += step)
            dtype_store(target->dtype, dy->data, k * target->size + i, 1);
    return dy;
}

/* What jacobians are made of: passes with the gradients of the target, and the rows of each source,
 * which are joined and reshaped. */
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

/* The gradients of the sources for one of the target. */
static ed_list *gradients_for(const rows *r, ed_tensor *dy, bool first)
{
    ed_list *seeds = ed_list_of_one(dy);
    if (!seeds) return NULL;
    return ed_gradient_list(
        r->tape, ed_list_of_one(r->target), r->sources,
        &(ed_gradient_options){.output_gradients = seeds, .unconnected_zeros = r->zeros || !first});
}

/* The same for several of them as one walk, [count, ...] each. NULL without an error: some op has
 * to be asked for one after the other. */
static ed_list *gradients_at_once(const rows *r, ed_tensor *dy, bool first)
{
    vectorized *v = vectorized_begin(dy->shape[0]);
    if (!v) return NULL;
    ed_tensor *slice = vectorized_slice(v, dy);
    const ed_list *each = slice ? gradients_for(r, slice, first) : NULL;
    return vectorized_stop(v) && each ? vectorized_run(v, each) : NULL;
}

/* Those of one pass, [1, ...] each; of the only pass as they are. */
static ed_list *gradients_alone(const rows *r, ed_tensor *dy, bool first)
{
    ed_list *each = gradients_for(r, dy, first);
    ed_list *all = each ? scope_give(list_new(each->size)) : NULL;
    for (int64_t s = 0; all && s < each->size; s++) {
        ed_tensor *row = each->items[s];
        if (row && r->passes > 1 && !(row = ed_expand_dims(row, 0))) return NULL;
        all->items[s] = ed_retain(row);
    }
    return all;
}

/* Passes i to i + count: their rows of each source into its list as entry `at`. Those of the first
 * pass may be NULL. */
static bool pass(const rows *r, ed_list *const *lists, int64_t at, int64_t i, int64_t count)
{
    ED_SCOPE;
    ed_tensor *dy = ones_at(r->target, i, r->passes, count);
    if (!dy) return false;
    ed_list *all = (count > 1 ? gradients_at_once : gradients_alone)(r, dy, i == 0);
    for (int64_t s = 0; all && s < r->sources->size; s++)
        lists[s]->items[at] = ed_retain(all->items[s]);
    return all;
}

/* The elements of the largest operand that the tape knows of. */
static int64_t largest_operand(const ed_tape *tape)
{
    int64_t largest = 1;
    for (const tape_node *node = tape->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++) {
            int64_t size = 1;
            for (int64_t k = 0; k < node->shapes[i].count; k++) size *= node->shapes[i].values[k];
            if (size > largest) largest = size;
        }
    return largest;
}

/* How many passes at once: as many as hold some megabytes of an operand. One if a gradient function
 * may look at the gradients that it gets. */
static int64_t passes_at_once(const rows *r)
{
    enum { ELEMENTS = HARD(64, 1 << 21) };
    if (r->target->rank == ED_MAX_RANK) return 1;
    for (const tape_node *node = r->tape->first; node; node = node->next)
        if (tape_looks_at_dy(node->op)) return 1;
    const int64_t most = ELEMENTS / largest_operand(r->tape);
    return most < 1 ? 1 : most < r->passes ? most : r->passes;
}

/* All passes, `count` at once: their rows in one list a source. */
static bool run_passes(const rows *r, ed_list **lists, int64_t count)
{
    const int64_t parts = (r->passes + count - 1) / count;
    for (int64_t s = 0; s < r->sources->size; s++)
        if (!(lists[s] = scope_give(list_new(parts)))) return false;
    for (int64_t k = 0; k < parts; k++) {
        const int64_t i = k * count, left = r->passes - i;
        if (!pass(r, lists, k, i, left < count ? left : count)) return false;
    }
    return true;
}

/* A source's jacobian of its rows into *j; NULL if it is unconnected. */
static bool join_rows(const rows *r, const ed_list *list, const ed_tensor *source, ed_tensor **j)
{
    int rank;
    int64_t sizes[ED_MAX_RANK];
    join(r->what, r->target, source, r->skip, &rank, sizes);
    const ed_ints shape = {sizes, rank};
    *j = NULL;
    if (!list) return (*j = ed_zeros(shape, .dtype = source->dtype));
    if (!list->items[0]) return true;
    ed_tensor *all = list->size > 1 ? ed_concat((ed_list *)list, .axis = 0) : list->items[0];
    if (r->skip && r->passes > 1) {
        int64_t perm[ED_MAX_RANK] = {1, 0};
        for (int i = 2; all && i < all->rank; i++) perm[i] = i;
        all = ed_transpose(all, .perm = {perm, source->rank + 1});
    }
    return (*j = ed_reshape(all, shape));
}

static bool fill(const rows *r, ed_list **lists, ed_list *result)
{
    bool any = false; /* source with elements */
    for (int64_t s = 0; s < r->sources->size; s++) any |= r->sources->items[s]->size;
    any &= r->passes > 0;
    const error_before before = error_begin();
    const int64_t count = any ? passes_at_once(r) : 0;
    if (count && !run_passes(r, lists, count) &&
        (count == 1 || error_since(before) || !run_passes(r, lists, 1)))
        return false;
    for (int64_t s = 0; s < r->sources->size; s++) {
        ed_tensor *j;
        const bool empty = !any || !((const ed_tensor *)r->sources->items[s])->size;
        if (!join_rows(r, empty ? NULL : lists[s], r->sources->items[s], &j)) return false;
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
