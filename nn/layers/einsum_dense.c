#include "nn/layer_core.h"
#include "nn/layers/einsum_dense.h"
#include "ops/ops.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* The equation is split once, when the layer is made: letters of x, of the kernel, of the
 * output. An ellipsis, at the same end of x and output, stands for axes that are passed on. */

typedef struct parts {
    char x[ED_MAX_RANK + 1], kernel[ED_MAX_RANK + 1], y[ED_MAX_RANK + 1];
    bool left, right; /* an ellipsis before, behind */
} parts;

typedef struct einsum_dense {
    parts parts;
    activation activation;
    ed_tensor *kernel, *bias; /* the layer's */
    int rank;                 /* of the input */
    int64_t otherwise;        /* the size of an axis of the output that is not given; 0: must be */
} einsum_dense;

void einsum_dense_set_size(ed_layer *layer, int64_t size)
{
    ((einsum_dense *)ed_layer_state(layer))->otherwise = size;
}

/* Takes letters into `into`; the place behind them, NULL if there are none or too many. */
static const char *take_letters(const char *at, char *into)
{
    int n = 0;
    for (; isalpha((unsigned char)*at); at++) {
        if (n == ED_MAX_RANK || strchr(into, *at)) return NULL;
        into[n++] = *at;
    }
    return n ? at : NULL;
}

static bool take_dots(const char **at)
{
    const bool given = !strncmp(*at, "...", 3);
    if (given) *at += 3;
    return given;
}

static bool split_equation(const char *equation, parts *p)
{
    const char *at = equation;
    p->left = take_dots(&at);
    if (!(at = take_letters(at, p->x))) return false;
    p->right = take_dots(&at);
    if (*at++ != ',' || !(at = take_letters(at, p->kernel)) || strncmp(at, "->", 2) != 0)
        return false;
    at += 2;
    if (take_dots(&at) != p->left || !(at = take_letters(at, p->y)) || take_dots(&at) != p->right)
        return false;
    return !*at && !(p->left && p->right);
}

static bool known_letters(const parts *p)
{
    for (const char *c = p->kernel; *c; c++)
        if (!strchr(p->x, *c) && !strchr(p->y, *c)) return false;
    for (const char *c = p->y; *c; c++)
        if (!strchr(p->x, *c) && !strchr(p->kernel, *c)) return false;
    return true;
}

static bool einsum_dense_init(ed_layer *layer)
{
    const ed_layer_einsum_dense_options *o = layer_options(layer);
    einsum_dense *e = ed_layer_state(layer);
    if (!o->equation || !o->output_shape.values)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "%s is required",
                          o->equation ? "output_shape" : "equation");
    if (!split_equation(o->equation, &e->parts) || !known_letters(&e->parts))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "equation: expected \"ab,bc->ac\", \"...b,bc->...c\" or "
                          "\"ab...,bc->ac...\", each letter in two of the three, got \"%s\"",
                          o->equation);
    for (const char *c = o->bias_axes ? o->bias_axes : ""; *c; c++)
        if (!strchr(e->parts.y, *c))
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "bias_axes: '%c' is not one of the output's axes \"%s\"", *c,
                              e->parts.y);
    return (e->activation = nn_activation("einsum_dense", o->activation));
}

/* The output's sizes, of the axes that have letters; -1: as x has it. */
static bool output_sizes(const ed_layer *layer, const parts *p, ed_ints given, int64_t *sizes)
{
    const int64_t n = (int64_t)strlen(p->y), more = p->left ? 0 : 1;
    /* The first axis is the batch: before the letters, or the first of them. */
    if (given.count != n - more)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "output_shape must have %lld sizes for \"%s\" (without the batch), got "
                          "%lld",
                          (long long)(n - more), p->y, (long long)given.count);
    if (more) sizes[0] = -1;
    memcpy(sizes + more, given.values, (size_t)given.count * sizeof *sizes);
    return true;
}

/* The size of the axis that has that letter; -1, with an error, if x and the output differ. */
static int64_t letter_size(const ed_layer *layer, const einsum_dense *e, char letter,
                           const ed_tensor *x, const int64_t *sizes)
{
    const parts *p = &e->parts;
    const char *in = strchr(p->x, letter), *out = strchr(p->y, letter);
    const int before = p->left ? x->rank - (int)strlen(p->x) : 0;
    const int64_t has = in ? x->shape[before + (in - p->x)] : -1;
    const int64_t wanted = out ? sizes[out - p->y] : -1;
    if (has >= 0 && (wanted < 0 || wanted == has)) return has;
    if (has < 0 && wanted >= 0) return wanted;
    if (has < 0 && e->otherwise) return e->otherwise;
    if (has < 0)
        layer_fail(layer, ED_INVALID_ARGUMENT, "output_shape: the size of '%c' must be given",
                   letter);
    else
        layer_fail(layer, ED_INVALID_ARGUMENT,
                   "output_shape: the size of '%c' is %lld, but %lld in the input", letter,
                   (long long)wanted, (long long)has);
    return -1;
}

static bool accepts(const ed_layer *layer, const einsum_dense *e, const ed_tensor *x)
{
    const bool more = e->parts.left || e->parts.right;
    return layer_accepts(layer, x, (int)strlen(e->parts.x), more);
}

/* Keras' fans for a kernel of any rank: over axes that x has and the output lacks; the others. */
static ed_initializer *by_fans(const parts *p, const int64_t *kernel)
{
    double in = 1, out = 1;
    for (int i = 0; p->kernel[i]; i++)
        *(strchr(p->y, p->kernel[i]) ? &out : &in) *= (double)kernel[i];
    const double limit = sqrt(6 / fmax(1, in + out));
    return ed_initializer_random_uniform(.minval = -limit, .maxval = limit);
}

static bool add_bias(ed_layer *layer, einsum_dense *e, const ed_tensor *x, const int64_t *sizes)
{
    const ed_layer_einsum_dense_options *o = layer_options(layer);
    const parts *p = &e->parts;
    if (!o->bias_axes || !*o->bias_axes) return true;
    int64_t shape[ED_MAX_RANK];
    int n = 0;
    for (const char *c = p->y; *c; c++) {
        const bool of_bias = strchr(o->bias_axes, *c);
        if (!n && !of_bias) continue;
        shape[n] = of_bias ? letter_size(layer, e, *c, x, sizes) : 1;
        if (shape[n++] < 0) return false;
    }
    for (int i = p->right ? (int)strlen(p->x) : x->rank; i < x->rank && n < ED_MAX_RANK; i++)
        shape[n++] = 1;
    return (e->bias = LAYER_ADD_BIAS(layer, o, ((ed_ints){shape, n}), x->dtype));
}

static bool einsum_dense_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_einsum_dense_options *o = layer_options(layer);
    einsum_dense *e = ed_layer_state(layer);
    const ed_tensor *x = call->inputs[0];
    int64_t sizes[ED_MAX_RANK], kernel[ED_MAX_RANK];
    if (!accepts(layer, e, x) || !output_sizes(layer, &e->parts, o->output_shape, sizes))
        return false;
    int n = 0;
    for (const char *c = e->parts.kernel; *c; c++)
        if ((kernel[n++] = letter_size(layer, e, *c, x, sizes)) < 0) return false;
    ed_initializer *initializer =
        o->kernel_initializer ? o->kernel_initializer : by_fans(&e->parts, kernel);
    if (!initializer) return false;
    e->kernel = ed_layer_add_weight(
        layer, "kernel", ((ed_ints){kernel, n}), .dtype = x->dtype, .initializer = initializer,
        .regularizer = o->kernel_regularizer, .constraint = o->kernel_constraint);
    e->rank = x->rank;
    e->bias = NULL;
    return e->kernel && add_bias(layer, e, x, sizes);
}

static bool einsum_dense_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_einsum_dense_options *o = layer_options(layer);
    const einsum_dense *e = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!accepts(layer, e, x)) return false;
    if (e->parts.right && x->rank != e->rank) /* the bias has an axis for each that is behind */
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must have rank %d, got %s",
                          e->rank, text_of_tensor(x).s);
    ed_tensor *y = ed_einsum(o->equation, ed_list_of(x, e->kernel));
    if (y && e->bias) y = ed_add(y, e->bias);
    return ed_layer_return(call, y ? e->activation(y) : NULL);
}

LAYER(einsum_dense, EINSUM_DENSE, 2, "activation(einsum(equation, x, kernel) + bias)",
      .state_size = sizeof(einsum_dense), .init = einsum_dense_init, .build = einsum_dense_build,
      .forward = einsum_dense_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(einsum_dense, EINSUM_DENSE, .equation = "abc,cde->abde",
                              .output_shape = ED_SAMPLE_INTS(-1, 2, 3), .bias_axes = "de",
                              .activation = "tanh"),
           .inputs = {{3, {2, 3, 4}}},
           .n_inputs = 1},
          {.options = OPTIONS(einsum_dense, EINSUM_DENSE, .equation = "...x,xy->...y",
                              .output_shape = ED_SAMPLE_INTS(3), .bias_axes = "y"),
           .inputs = {{3, {2, 3, 2}}},
           .n_inputs = 1},
          {.options = OPTIONS(einsum_dense, EINSUM_DENSE, .equation = "ab...,bc->ac...",
                              .output_shape = ED_SAMPLE_INTS(3), .bias_axes = "c"),
           .inputs = {{3, {2, 4, 2}}},
           .n_inputs = 1}))
