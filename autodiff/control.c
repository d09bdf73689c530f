#include "autodiff/control.h"
#include "autodiff/vectorize.h"

/* Loops over slices. The slices of a tensor are the outputs of one call of unstack, whose gradient
 * is one call of stack. */

typedef struct loop {
    const char *who;
    ed_list_function f;
    void *user;
    int64_t n;       /* slices of each */
    int64_t n_elems; /* tensors that have them */
    ed_list **parts; /* for each, its slices: n, or 1 */
    bool reverse;
} loop;

/* ---- Calls of the function ------------------------------------------------------------------- */

/* The values of tensors and variables, which may change: a list of the scope. */
static ed_list *values_of(const char *who, const char *what, const ed_list *given)
{
    ed_list *values = scope_give(list_new(given->size));
    for (int64_t i = 0; values && i < given->size; i++) {
        ed_tensor *x = given->items[i];
        if (!x) return ed_fail(ED_INVALID_ARGUMENT, "%s: %s %lld is NULL", who, what, text_nth(i));
        if (x->flags & TENSOR_WEAK)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: %s %lld must be a tensor, got a plain number (see ed_scalar)", who,
                           what, text_nth(i));
        if (!(values->items[i] = ed_retain(tensor_is_variable(x) ? ed_identity(x) : x)))
            return NULL;
    }
    return values;
}

static ed_list *call_checked(const loop *l, ed_list *inputs)
{
    const error_before before = error_begin();
    ed_list *y = SCOPE_GUARDED(l->f(inputs, l->user));
    if (!y && error_is_missing(before))
        ed_fail(ED_INVALID_ARGUMENT, "%s: the function returned NULL without an error", l->who);
    if (!y || error_since(before)) return NULL;
    return values_of(l->who, "result", y);
}

/* f of the accumulators (NULL: none) and the slices that come at that turn. */
static ed_list *call_turn(const loop *l, const ed_list *accumulators, int64_t turn)
{
    const int64_t n = ed_list_size(accumulators), i = l->reverse ? l->n - 1 - turn : turn;
    ed_list *inputs = scope_give(list_new(n + l->n_elems));
    if (!inputs) return NULL;
    for (int64_t k = 0; k < n; k++) inputs->items[k] = ed_retain(accumulators->items[k]);
    for (int64_t k = 0; k < l->n_elems; k++)
        inputs->items[n + k] = ed_retain(l->parts[k]->items[l->parts[k]->size == 1 ? 0 : i]);
    return call_checked(l, inputs);
}

/* Puts the next accumulators in the place of those, of which the caller has a reference. */
static bool take_turn(const loop *l, ed_list **accumulators, int64_t turn)
{
    ED_SCOPE;
    ed_list *next = call_turn(l, *accumulators, turn);
    if (!next) return false;
    if (next->size != (*accumulators)->size)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: the function returned %lld tensors for %lld accumulators", l->who,
                       (long long)next->size, (long long)(*accumulators)->size),
               false;
    ed_retain(next);
    ed_release(*accumulators);
    *accumulators = next;
    return true;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static bool take_parts(loop *l, const ed_list *elems, bool broadcast)
{
    l->n = broadcast ? 1 : -1;
    for (int64_t k = 0; k < elems->size; k++) {
        ed_tensor *x = elems->items[k];
        if (!x)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: tensor %lld is NULL", l->who, text_nth(k)),
                   false;
        if (x->rank < 1)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: tensor %lld is %s, which has no first axis",
                           l->who, text_nth(k), text_of_tensor(x).s),
                   false;
        const int64_t n = x->shape[0];
        if (l->n == -1 || (broadcast && l->n == 1)) l->n = n;
        if (n != l->n && !(broadcast && n == 1))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: tensor %lld is %s, but the first axis of others has the size %lld",
                           l->who, text_nth(k), text_of_tensor(x).s, (long long)l->n),
                   false;
        if (!(l->parts[k] = ed_unstack(x))) return false;
    }
    return true;
}

static bool loop_begin(loop *l, const ed_list *elems, bool broadcast)
{
    if (!elems->size)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: elems must not be empty", l->who), false;
    l->n_elems = elems->size;
    l->parts = ed_scope_alloc((size_t)elems->size * sizeof *l->parts);
    return l->parts && take_parts(l, elems, broadcast);
}

/* For results of which there is one for each slice. */
static bool has_slices(const loop *l)
{
    if (l->n) return true;
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s: the first axis has the size 0, and nothing says what the function returns",
                   l->who),
           false;
}

/* ---- Results that are stacked ---------------------------------------------------------------- */

/* Puts the results of a turn into the lists, which the first one makes. */
static bool put_results(const loop *l, ed_list ***lists, int64_t *count, const ed_list *y,
                        int64_t turn)
{
    if (!turn) {
        *count = y->size;
        *lists = ed_scope_alloc((size_t)y->size * sizeof **lists + 1);
        for (int64_t k = 0; *lists && k < y->size; k++)
            if (!((*lists)[k] = scope_give(list_new(l->n)))) return false;
        if (!*lists) return false;
    }
    if (y->size != *count)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: the function returned %lld tensors, after %lld at first", l->who,
                       (long long)y->size, (long long)*count),
               false;
    const int64_t at = l->reverse ? l->n - 1 - turn : turn, first = l->reverse ? l->n - 1 : 0;
    for (int64_t k = 0; k < *count; k++) {
        ed_list *list = (*lists)[k];
        list->items[at] = ed_retain(y->items[k]);
        const ed_tensor *a = list->items[first], *b = list->items[at];
        if (a->dtype == b->dtype && tensor_same_shape(a, b)) continue;
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: result %lld of the function is %s, after %s at first", l->who,
                       text_nth(k), text_of_tensor(b).s, text_of_tensor(a).s),
               false;
    }
    return true;
}

static ed_list *stack_all(ed_list *const *lists, int64_t count)
{
    ed_list *result = scope_give(list_new(count));
    for (int64_t k = 0; result && k < count; k++)
        if (!(result->items[k] = ed_retain(ed_stack(lists[k])))) return NULL;
    return result;
}

static ed_list *map_slices(loop *l, const ed_list *elems, bool broadcast)
{
    ed_list **lists = NULL;
    int64_t count = 0;
    if (!loop_begin(l, elems, broadcast) || !has_slices(l)) return NULL;
    for (int64_t i = 0; i < l->n; i++) {
        ed_list *y;
        {
            ED_SCOPE;
            y = ed_keep(call_turn(l, NULL, i));
        }
        if (!y || !put_results(l, &lists, &count, y, i)) return NULL;
    }
    return stack_all(lists, count);
}

ed_list *ed_map_fn(ed_list_function f, ed_list *elems, void *user)
{
    loop l = {.who = "map_fn", .f = f, .user = user};
    if (NULL_GIVEN(l.who, f, elems)) return NULL;
    ED_SCOPE;
    return ed_keep(map_slices(&l, elems, false));
}

/* ---- All slices at once ---------------------------------------------------------------------- */

/* What f gets for a tensor: what stands for its slices, or the one slice. */
static ed_tensor *slice_of(vectorized *v, ed_tensor *x, int64_t n)
{
    return x->shape[0] == n ? vectorized_slice(v, x) : ed_index(x, 0);
}

/* The results of one call of f; NULL if it can't be called so. */
static ed_list *call_once(const loop *l, vectorized *v, const ed_list *values, int64_t n)
{
    ed_list *inputs = scope_give(list_new(values->size));
    for (int64_t k = 0; inputs && k < values->size; k++)
        if (!(inputs->items[k] = ed_retain(slice_of(v, values->items[k], n)))) return NULL;
    return inputs ? call_checked(l, inputs) : NULL;
}

/* false: slice by slice, please; errors of that are the ones to tell. */
static bool map_at_once(const loop *l, const ed_list *values, int64_t n, ed_list **result)
{
    vectorized *v = vectorized_begin(n);
    *result = NULL;
    if (!v) return false;
    const ed_list *y = call_once(l, v, values, n);
    const bool noted = vectorized_stop(v) && y;
    if (noted) *result = vectorized_run(v, y);
    return noted;
}

/* The size of the first axes; 0 if they do not fit, and for one slice. */
static int64_t slices_at_once(const ed_list *elems)
{
    int64_t n = 1;
    for (int64_t k = 0; k < elems->size; k++) {
        const ed_tensor *x = elems->items[k];
        if (!x || x->rank < 1 || (n != 1 && x->shape[0] != 1 && x->shape[0] != n)) return 0;
        if (x->shape[0] != 1) n = x->shape[0];
    }
    return n > 1 ? n : 0;
}

ed_list *ed_vectorized_map(ed_list_function f, ed_list *elems, void *user)
{
    loop l = {.who = "vectorized_map", .f = f, .user = user};
    if (NULL_GIVEN(l.who, f, elems)) return NULL;
    ED_SCOPE;
    const int64_t n = slices_at_once(elems);
    ed_list *values = n ? values_of(l.who, "tensor", elems) : NULL, *result = NULL;
    const error_before before = error_begin();
    if (n && !values) return NULL;
    if (values && map_at_once(&l, values, n, &result)) return ed_keep(result);
    if (error_since(before)) return NULL;
    return ed_keep(map_slices(&l, elems, true));
}

/* ---- Folds and scans ------------------------------------------------------------------------- */

/* The first accumulators, with a reference for the caller, and how many turns they take. */
static ed_list *first_accumulators(const loop *l, const ed_list *initializer, int64_t *taken)
{
    *taken = !initializer;
    if (initializer) return ed_retain(values_of(l->who, "initializer", initializer));
    if (!l->n)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: the first axis has the size 0, and there is no initializer", l->who);
    ed_list *first = list_new(l->n_elems);
    for (int64_t k = 0; first && k < l->n_elems; k++)
        first->items[k] = ed_retain(l->parts[k]->items[l->reverse ? l->n - 1 : 0]);
    return first;
}

static ed_list *fold_slices(loop *l, const ed_list *elems, const ed_list *initializer)
{
    int64_t turn;
    if (!loop_begin(l, elems, false)) return NULL;
    ed_list *accumulators = first_accumulators(l, initializer, &turn);
    bool ok = accumulators;
    for (; ok && turn < l->n; turn++) ok = take_turn(l, &accumulators, turn);
    if (ok) return scope_give(accumulators);
    ed_release(accumulators);
    return NULL;
}

static ed_list *scan_slices(loop *l, const ed_list *elems, const ed_list *initializer)
{
    int64_t turn, count = 0;
    ed_list **lists = NULL;
    if (!loop_begin(l, elems, false) || !has_slices(l)) return NULL;
    ed_list *accumulators = first_accumulators(l, initializer, &turn);
    bool ok = accumulators && (!turn || put_results(l, &lists, &count, accumulators, 0));
    for (; ok && turn < l->n; turn++)
        ok =
            take_turn(l, &accumulators, turn) && put_results(l, &lists, &count, accumulators, turn);
    ed_release(accumulators);
    return ok ? stack_all(lists, count) : NULL;
}

typedef ed_list *folder(loop *l, const ed_list *elems, const ed_list *initializer);

static ed_list *fold_checked(loop *l, folder *fold, const ed_list *elems,
                             const ed_list *initializer)
{
    const ed_list_function f = l->f;
    if (NULL_GIVEN(l->who, f, elems)) return NULL;
    ED_SCOPE;
    return ed_keep(fold(l, elems, initializer));
}

ed_list *ed_foldl(ed_list_function f, ed_list *elems, ed_list *initializer, void *user)
{
    return fold_checked(&(loop){.who = "foldl", .f = f, .user = user}, fold_slices, elems,
                        initializer);
}

ed_list *ed_foldr(ed_list_function f, ed_list *elems, ed_list *initializer, void *user)
{
    return fold_checked(&(loop){.who = "foldr", .f = f, .user = user, .reverse = true}, fold_slices,
                        elems, initializer);
}

ed_list *ed_scan_with(ed_list_function f, ed_list *elems, ed_list *initializer, void *user,
                      const ed_scan_options *options)
{
    const bool reverse = options && options->reverse;
    return fold_checked(&(loop){.who = "scan", .f = f, .user = user, .reverse = reverse},
                        scan_slices, elems, initializer);
}

/* ---- While ----------------------------------------------------------------------------------- */

/* Whether the loop goes on into *goes; false if the condition failed. */
static bool ask_condition(ed_condition condition, ed_list *variables, void *user, bool *goes)
{
    ED_SCOPE;
    const error_before before = error_begin();
    *goes = SCOPE_GUARDED(condition(variables, user));
    return !error_since(before);
}

static bool same_dtypes(const ed_list *before, const ed_list *after)
{
    for (int64_t i = 0; i < before->size; i++)
        if (before->items[i]->dtype != after->items[i]->dtype)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "while_loop: variable %lld was %s, and the body returned %s",
                           text_nth(i), text_of_tensor(before->items[i]).s,
                           text_of_tensor(after->items[i]).s),
                   false;
    return true;
}

static bool turn_once(const loop *l, ed_list **variables)
{
    ED_SCOPE;
    const ed_list *before = ed_scope_hold(*variables);
    return before && take_turn(l, variables, 0) && same_dtypes(before, *variables);
}

ed_list *ed_while_loop_with(ed_condition condition, ed_list_function body, ed_list *variables,
                            void *user, const ed_while_loop_options *options)
{
    if (NULL_GIVEN("while_loop", condition, body, variables)) return NULL;
    const int64_t limit = options ? options->maximum_iterations : 0;
    if (limit < 0)
        return ed_fail(ED_INVALID_ARGUMENT, "while_loop: maximum_iterations must be >= 0, got %lld",
                       (long long)limit);
    ED_SCOPE;
    const loop l = {.who = "while_loop", .f = body, .user = user};
    ed_list *now = ed_retain(values_of(l.who, "variable", variables));
    bool ok = now, goes = true;
    for (int64_t i = 0; ok && goes && (!limit || i < limit); i++) {
        ok = ask_condition(condition, now, user, &goes);
        if (ok && goes) ok = turn_once(&l, &now);
    }
    if (ok) return ed_keep(scope_give(now));
    ed_release(now);
    return NULL;
}
