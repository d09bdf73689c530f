#include "nn/layer.h"
#include "ops/ops.h"

static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    (void)options;
    if (x->rank == 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the input is %s; it takes at least 1 dimension", text_of_tensor(x).s);
    int64_t rest = 1;
    for (int i = 1; i < x->rank; i++) rest *= x->shape[i];
    return ed_reshape(x, ED_SHAPE(x->shape[0], rest));
}

ed_layer *ed_layer_flatten_with(const ed_layer_options *options)
{
    static const ed_layer_class class = {.name = "flatten", .forward = forward};
    return ed_layer_new(&class, options ? options->name : NULL);
}
