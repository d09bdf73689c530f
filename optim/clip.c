#include "ops/ops.h"
#include "optim/optim.h"
#include "ops/slices.h"
#include "tensor/thread.h"

static bool check_clip_norm(const char *name, double clip_norm)
{
    if (clip_norm > 0) return true;
    ed_fail(ED_INVALID_ARGUMENT, "%s: clip_norm must be above 0, got %g", name, clip_norm);
    return false;
}

/* Whether t is the result: norm is known and below the limit, so t would be multiplied by 1. */
static bool stays(const ed_tensor *t, const ed_tensor *norm, double clip_norm)
{
    return !tensor_is_variable(t) && !(norm->flags & TENSOR_HOLLOW) &&
           dtype_load(norm->dtype, norm->data, 0) < clip_norm;
}

ed_tensor *ed_clip_by_norm(ed_tensor *t, double clip_norm)
{
    if (NULL_GIVEN("clip_by_norm", t) || !check_clip_norm("clip_by_norm", clip_norm)) return NULL;
    ED_SCOPE;
    ed_tensor *norm = ed_sqrt(ops_slices_square_sum(t));
    if (norm && stays(t, norm, clip_norm)) return ed_keep(scope_give(ed_retain(t)));
    return ed_keep(ops_slices_scale(t, ed_div(clip_norm, ed_maximum(norm, clip_norm))));
}

/* Of the entries that are not NULL; 0 if there is none. */
static ed_tensor *norm_of_all(const ed_list *list)
{
    ed_tensor *sum = NULL;
    for (int64_t i = 0; i < list->size; i++) {
        if (!list->items[i]) continue;
        ed_tensor *squares = ops_slices_square_sum(list->items[i]);
        if (!squares || !(sum = sum ? ed_add(sum, squares) : squares)) return NULL;
    }
    return ed_sqrt(sum ? sum : ed_zeros(ED_SHAPE()));
}

ed_tensor *ed_global_norm(ed_list *list)
{
    if (NULL_GIVEN("global_norm", list)) return NULL;
    ED_SCOPE;
    return ed_keep(norm_of_all(list));
}

/* Of the elements that multiples of all take: of indexed slices, the values'. */
static int64_t bytes_of_all(const ed_list *list)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < list->size; i++) {
        const ed_tensor *t = list->items[i];
        if (!t) continue;
        const slices *s = slices_of(t);
        bytes += (s ? s->values : t)->size * (int64_t)dtype_size(t->dtype);
    }
    return bytes;
}

static bool scale_all(const ed_list *list, ed_tensor *norm, double clip_norm, ed_list *result)
{
    /* norm - norm is 0 for a finite norm and NaN for any other. */
    ed_tensor *scale = ed_add(ed_div(clip_norm, ed_maximum(norm, clip_norm)), ed_sub(norm, norm));
    if (!scale) return false;
    for (int64_t i = 0; i < list->size; i++) {
        ed_tensor *t = list->items[i];
        if (!t) continue;
        result->items[i] = ed_retain(stays(t, norm, clip_norm) ? t : ops_slices_scale(t, scale));
        if (!result->items[i]) return false;
    }
    return true;
}

static ed_list *scaled(const ed_list *list, ed_tensor *norm, double clip_norm)
{
    ed_list *result = list_new(list->size);
    if (!result) return NULL;
    thread_self()->made_together = bytes_of_all(list);
    const bool ok = scale_all(list, norm, clip_norm, result);
    thread_self()->made_together = 0;
    return ok ? scope_give(result) : (ed_release(result), NULL);
}

ed_list *ed_clip_by_global_norm(ed_list *list, double clip_norm, ed_tensor **global)
{
    if (global) *global = NULL;
    static const char what[] = "clip_by_global_norm";
    if (NULL_GIVEN(what, list) || !check_clip_norm(what, clip_norm)) return NULL;
    ED_SCOPE;
    ed_tensor *norm = norm_of_all(list);
    ed_list *result = norm ? scaled(list, norm, clip_norm) : NULL;
    if (result && global) *global = ed_keep(norm);
    return ed_keep(result);
}
