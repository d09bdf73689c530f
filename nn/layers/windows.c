#include "nn/layers/windows.h"
#include "ops/ops.h"
#include <string.h>

int layer_spatial_rank(const ed_layer *layer)
{
    return *strpbrk(layer->class->kind.name, "123") - '0';
}

const char *layer_op_format(bool channels_first, int rank)
{
    static const char *const formats[WINDOW_RANKS][2] = {
        {"NWC", "NCW"}, {"NHWC", "NCHW"}, {"NDHWC", "NCDHW"}};
    return formats[rank - 1][channels_first];
}

bool layer_sizes(const ed_layer *layer, const char *option, ed_ints given, int64_t least,
                 int64_t otherwise, int64_t sizes[WINDOW_RANKS])
{
    static const char *const or_each[] = {"", ", or two, [height, width]",
                                          ", or three, [depth, height, width]"};
    const int rank = layer_spatial_rank(layer);
    bool ok = !given.values || given.count == 1 || given.count == rank;
    for (int i = 0; i < rank && ok; i++) {
        sizes[i] = given.values ? given.values[given.count == 1 ? 0 : i] : otherwise;
        ok = sizes[i] >= least;
    }
    return ok || ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be one integer >= %lld%s; got %s",
                         layer->class->kind.name, option, (long long)least, or_each[rank - 1],
                         text_of_ints(given.values, given.count).s);
}

bool layer_read_margins(const ed_layer *layer, const char *option, ed_ints given, int64_t otherwise,
                        layer_margins *margins)
{
    static const char *const forms[] = {"two integers, [before, after]",
                                        "two, [height, width], or four, [top, bottom, left, right]",
                                        "three, or six, before and after each axis"};
    const int rank = layer_spatial_rank(layer);
    if (!given.values) given = (ed_ints){&otherwise, 1};
    const int64_t *v = given.values;
    bool ok = given.count == 1 || given.count == rank || given.count == 2 * rank;
    for (int i = 0; i < rank && ok; i++) {
        const bool both = given.count == 2 * rank;
        const int at = given.count == 1 ? 0 : both ? 2 * i : i;
        margins->before[i] = v[at];
        margins->after[i] = v[at + both];
        ok = v[at] >= 0 && v[at + both] >= 0;
    }
    return ok || ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be one integer >= 0, or %s; got %s",
                         layer->class->kind.name, option, forms[rank - 1],
                         text_of_ints(v, given.count).s);
}

bool layer_accepts_images(const ed_layer *layer, const ed_tensor *x, int rank, bool channels_first,
                          int64_t channels)
{
    if (!layer_accepts(layer, x, rank + 2, false)) return false;
    if (!channels_first && channels) return layer_same_last(layer, x, channels);
    if (!channels || x->shape[1] == channels) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the layer was built for %lld channels at axis 1, got %s",
                      (long long)channels, text_of_tensor(x).s);
}

ed_tensor *layer_channels_to_last(ed_tensor *x, bool move)
{
    int64_t axes[ED_MAX_RANK] = {0};
    if (!move) return x;
    for (int i = 1; i < x->rank; i++) axes[i] = i + 1 < x->rank ? i + 1 : 1;
    return ed_transpose(x, .perm = {axes, x->rank});
}

ed_tensor *layer_channels_to_first(ed_tensor *x, bool move)
{
    int64_t axes[ED_MAX_RANK] = {0};
    if (!x || !move) return x;
    for (int i = 1; i < x->rank; i++) axes[i] = i == 1 ? x->rank - 1 : i - 1;
    return ed_transpose(x, .perm = {axes, x->rank});
}
