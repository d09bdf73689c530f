#include "nn/layers/gamma_beta.h"
#include "ops/ops.h"

int layer_axis(const ed_layer *layer, const ed_tensor *x, int64_t axis)
{
    if (axis >= -x->rank && axis < x->rank) return (int)(axis < 0 ? axis + x->rank : axis);
    layer_fail(layer, ED_OUT_OF_RANGE, "axis %lld is out of bounds for %s", (long long)axis,
               text_of_tensor(x).s);
    return -1;
}

bool layer_find_axes(const ed_layer *layer, const ed_tensor *x, ed_ints given, layer_axes *found)
{
    static const int64_t last = -1;
    if (!given.values) given = (ed_ints){&last, 1};
    unsigned mask = 0;
    for (int64_t i = 0; i < given.count; i++) {
        const int axis = layer_axis(layer, x, given.values[i]);
        if (axis < 0) return false;
        if (mask >> axis & 1)
            return layer_fail(layer, ED_INVALID_ARGUMENT, "axis %d comes twice in %s", axis,
                              text_of_ints(given.values, given.count).s);
        mask |= 1u << axis;
    }
    found->count = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1)) continue;
        found->axes[found->count] = i;
        found->sizes[found->count++] = x->shape[i];
    }
    if (!found->count) return layer_fail(layer, ED_INVALID_ARGUMENT, "axis is an empty list");
    found->last = found->axes[0] == x->rank - found->count;
    return true;
}

ed_tensor *layer_along(const layer_axes *axes, const ed_tensor *x, ed_tensor *weight)
{
    int64_t shape[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = 1;
    for (int i = 0; i < axes->count; i++) shape[axes->axes[i]] = axes->sizes[i];
    return ed_reshape(weight, ((ed_ints){shape, x->rank}));
}

bool layer_same_axes(const ed_layer *layer, const ed_tensor *x, const layer_axes *axes, int rank)
{
    if (x->rank != rank)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the layer was built for inputs of rank %d, got %s", rank,
                          text_of_tensor(x).s);
    for (int i = 0; i < axes->count; i++)
        if (x->shape[axes->axes[i]] != axes->sizes[i])
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "the layer was built for inputs of size %lld along axis %lld, got %s",
                              (long long)axes->sizes[i], (long long)axes->axes[i],
                              text_of_tensor(x).s);
    return true;
}
