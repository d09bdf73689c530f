#include "nn/layer.h"

/* What lies between two layers is released as soon as the second has seen it, unless a tape holds
 * it. */
static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    ed_tensor *y = ed_retain(x);
    for (int64_t i = 0; y && i < layer->n_children; i++) {
        ED_SCOPE;
        ed_tensor *next = ed_retain(ed_forward_with(layer->children[i], y, options));
        ed_release(y);
        y = next;
    }
    return scope_give(y);
}

ed_layer *ed_layer_sequential_of(const char *name, ed_layer *const *layers, int64_t count)
{
    static const ed_layer_class class = {
        .name = "sequential", .forward = forward, .in_order = true};
    if (count < 0 || (count && !layers))
        return ed_fail(ED_INVALID_ARGUMENT, "sequential: NULL given");
    for (int64_t i = 0; i < count; i++)
        if (!layers[i])
            return ed_fail(ED_INVALID_ARGUMENT, "sequential: layer %lld is NULL", text_nth(i));
    ED_SCOPE;
    ed_layer *model = ed_layer_new(&class, name);
    for (int64_t i = 0; model && i < count; i++)
        if (!ed_layer_add_child(model, layers[i])) return NULL;
    return ed_keep(model);
}
