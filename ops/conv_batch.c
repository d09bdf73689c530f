/*
 * Many convolutions as one. Each of x [examples, in], kernel [in, out] and y [examples, out] has
 * two of three axes, spatial ones aside; where two of the tensors differ from call to call, the
 * calls go into the axis that these have in common. Where all three differ, the calls are groups of
 * one convolution.
 */
#include "ops/batch.h"
#include "ops/conv.h"
#include "tensor/schema.h"

/* Whether the tensor in that role differs from call to call; the result always does. */
static bool conv_differs(const ed_batch_call *call, int operand)
{
    return operand < 0 || call->batches[operand];
}

/* Puts the places of x, the kernel and y in the order of the operands and runs the call. */
static ed_list *run_batch(const ed_batch_call *call, const conv_roles *r, batch_place x,
                          batch_place kernel, batch_place y, int64_t groups)
{
    const int roles[] = {r->x, r->kernel, r->y};
    const batch_place places[] = {x, kernel, y};
    batch_place operands[2], output = {0, 1};
    for (int i = 0; i < 3; i++) *(roles[i] < 0 ? &output : &operands[roles[i]]) = places[i];
    void *attrs = batch_attrs(call, output.axis);
    int64_t *of_call = attrs ? batch_field(call->op, attrs, "groups") : NULL;
    if (of_call) *of_call = groups;
    return batch_along(call, operands, &output, attrs);
}

static bool channels_first(const ed_batch_call *call)
{
    char *const *format = batch_option(call, "data_format");
    return window_channels_first(*format);
}

static const batch_place nowhere = {-1, 1}, examples = {0, 1};

ed_list *conv_batch_of(const ed_batch_call *call, const conv_roles *r)
{
    const int64_t groups = *(const int64_t *)batch_option(call, "groups");
    const int channel = channels_first(call) ? 1 : 3;
    const bool x = conv_differs(call, r->x), kernel = conv_differs(call, r->kernel),
               y = conv_differs(call, r->y);
    const batch_place within = {channel, groups}, whole = {channel, 1};
    int64_t all;
    if (!kernel) return run_batch(call, r, examples, nowhere, examples, groups);
    if (!y) return run_batch(call, r, within, (batch_place){2, 1}, nowhere, groups);
    if (!x) return run_batch(call, r, nowhere, (batch_place){3, groups}, within, groups);
    if (__builtin_mul_overflow(groups, call->n, &all)) return ed_batch_each(call);
    return run_batch(call, r, whole, (batch_place){3, 1}, whole, all);
}

/* Here the channels of x are the groups; where the kernel and x differ, so do the calls. */
ed_list *depthwise_batch_of(const ed_batch_call *call, const conv_roles *r)
{
    const int channel = channels_first(call) ? 1 : 3;
    const batch_place whole = {channel, 1};
    const int64_t in = (r->kernel < 0 ? call->outputs[0] : call->inputs[r->kernel])->shape[2];
    if (!conv_differs(call, r->kernel)) return run_batch(call, r, examples, nowhere, examples, 1);
    if (conv_differs(call, r->x)) return run_batch(call, r, whole, (batch_place){2, 1}, whole, 1);
    return run_batch(call, r, nowhere, (batch_place){3, 1}, (batch_place){channel, in}, 1);
}
