#include "nn/layers/categories.h"
#include "ops/ops.h"
#include <string.h>

ed_tensor *categories_encoded(const char *mode, ed_tensor *x, int64_t depth, ed_tensor *weights,
                              ed_dtype dtype)
{
    const bool one = !strcmp(mode, "one_hot");
    if (one && x->rank > 1 && x->shape[x->rank - 1] == 1) x = ed_squeeze(x, .axis = ED_AXES(-1));
    if (!x) return NULL;
    ed_tensor *hot = ed_one_hot(x, depth, .dtype = dtype);
    if (one || !hot || x->rank == 0) return hot;
    if (!strcmp(mode, "multi_hot")) return ed_reduce_max(hot, .axis = ED_AXES(-2));
    if (weights) hot = ed_mul(hot, ed_expand_dims(ed_cast(weights, dtype), -1));
    return hot ? ed_reduce_sum(hot, .axis = ED_AXES(-2)) : NULL;
}

/* ---- Weights made from data ------------------------------------------------------------------ */

static bool adopt(ed_layer *layer, const char *name, ed_tensor *value)
{
    ed_tensor *v = ed_variable(value, .trainable = false);
    return v && ed_layer_adopt_weight(layer, name, v);
}

bool learned_weights(ed_layer *layer, const learned_name *names, int n, const char *what)
{
    static const int64_t any = -1;
    for (int64_t i = layer->n_weights; i < n; i++) {
        ed_tensor *value;
        int node;
        if (!layer_waiting(layer, names[i].name, NULL, names[i].dtype, (ed_ints){&any, 1}, &value,
                           &node))
            return false;
        if (!value)
            return layer_fail(layer, ED_FAILED_PRECONDITION,
                              "the %s not known yet: call ed_layer_adapt with data first", what);
        if (!adopt(layer, names[i].name, scope_give(value))) return false;
    }
    return true;
}

static bool same_sizes(const ed_layer *layer, ed_tensor *const *values, int n)
{
    bool same = layer->n_weights == n;
    for (int i = 0; same && i < n; i++) same = ed_size(layer->weights[i]) == values[i]->size;
    return same;
}

bool learned_set(ed_layer *layer, const char *const *names, ed_tensor *const *values, int n)
{
    if (same_sizes(layer, values, n)) {
        for (int i = 0; i < n; i++)
            if (!ed_assign(layer->weights[i], values[i])) return false;
        return true;
    }
    graph_wait_end(&layer->wait); /* values of a checkpoint that wait are not wanted any more */
    layer_truncate(layer, layer->n_children, 0);
    for (int i = 0; i < n; i++)
        if (!adopt(layer, names[i], values[i])) {
            layer_truncate(layer, layer->n_children, 0);
            return false;
        }
    return true;
}
