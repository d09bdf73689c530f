/*
 * A user's own op, as it comes in a shared object of its own: an ordinary program with the one
 * header. softcap: y = cap tanh(x / cap), dx = dy (1 - (y / cap)^2).
 */
#include "eddy.h"
#include <math.h>

typedef struct softcap_options {
    double cap;
} softcap_options;

static bool infer(ed_call *call)
{
    const softcap_options *options = call->attrs;
    if (!(options->cap > 0) || !isfinite(options->cap))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "cap must be above 0, not %g", options->cap);
    ed_ints shape = ed_shape(call->inputs[0]);
    return ed_call_output(call, 0, ed_dtype_of(call->inputs[0]), (int)shape.count, shape.values);
}

static void run(double cap, int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = cap * tanh(x[i] / cap);
}

static bool kernel(ed_call *call)
{
    double cap = ((const softcap_options *)call->attrs)->cap;
    int64_t n = ed_size(call->inputs[0]);
    const void *x = ed_data(call->inputs[0]);
    void *y = ed_call_data(call, 0);
    if (!x) return false;
    if (ed_dtype_of(call->inputs[0]) == ED_FLOAT64) {
        run(cap, n, x, y);
        return true;
    }
    for (int64_t i = 0; i < n; i++)
        ((float *)y)[i] = (float)(cap * tanh(((const float *)x)[i] / cap));
    return true;
}

static bool gradient(const ed_gradient_call *g)
{
    double cap = ((const softcap_options *)g->attrs)->cap;
    ed_tensor *ratio = ed_mul(g->outputs[0], 1 / cap);
    g->dx[0] = ed_mul(g->dy[0], ed_sub(1.0, ed_square(ratio)));
    return true;
}

static bool reference(const ed_call *call)
{
    double cap = ((const softcap_options *)call->attrs)->cap;
    run(cap, ed_size(call->inputs[0]), ed_data(call->inputs[0]),
        (double *)ed_data(call->outputs[0]));
    return true;
}

static const ed_field attrs[] = {
    {"cap", ED_FIELD_FLOAT, offsetof(softcap_options, cap), "the bound, above 0"},
    {0},
};

extern const ed_op softcap __attribute__((visibility("default")));
const ed_op softcap = {
    .name = "softcap",
    .doc = "y = cap tanh(x / cap)",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    .attrs = attrs,
    .attrs_size = sizeof(softcap_options),
    .defaults = &(const softcap_options){.cap = 30},
    .infer = infer,
    .kernel = kernel,
    .gradient = gradient,
    .results = ED_RESULTS({.name = "y", .saved = true}),
    .reference = reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-50, 50, 3, 5)}},
                   {.inputs = {ED_SAMPLE_IN(-3, 3, 4)}, .attrs = &(const softcap_options){1.5}},
                   {.inputs = {ED_SAMPLE_IN(-3, 3)}}),
};
