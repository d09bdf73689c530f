/*
 * Convolution and pooling, forward and back by the ops' own gradient functions, for layers of
 * common image networks.
 */
#include "bench/programs.h"
#include "ops/execute.h"
#include "ops/ops.h"

typedef struct layer {
    const char *name;
    int64_t x[4], kernel[4]; /* kernel {0}: max_pool2d, {1}: avg_pool2d, windows of 2 x 2 */
    int64_t stride;
    const char *padding;
    bool first; /* of its network: nobody asks for dx */
} layer;

static const layer layers[] = {
    {"conv_32x1x28x28_3x3x32", {32, 28, 28, 1}, {3, 3, 1, 32}, 1, "SAME", true},
    {"conv_32x64x28x28_3x3x64", {32, 28, 28, 64}, {3, 3, 64, 64}, 1, "SAME", false},
    {"conv_32x256x14x14_1x1x256", {32, 14, 14, 256}, {1, 1, 256, 256}, 1, "VALID", false},
    {"conv_32x256x14x14_3x3x256", {32, 14, 14, 256}, {3, 3, 256, 256}, 1, "SAME", false},
    {"conv_8x3x224x224_7x7x64_s2", {8, 224, 224, 3}, {7, 7, 3, 64}, 2, "SAME", true},
    {"conv_32x64x28x28_3x3x128_s2", {32, 28, 28, 64}, {3, 3, 64, 128}, 2, "SAME", false},
    {"conv_128x1x28x28_5x5x6", {128, 28, 28, 1}, {5, 5, 1, 6}, 1, "SAME", true},
    {"conv_128x6x14x14_5x5x16", {128, 14, 14, 6}, {5, 5, 6, 16}, 1, "VALID", false},
    {"maxpool2", {32, 56, 56, 64}, {0}, 2, "VALID", false},
    {"avgpool2", {32, 56, 56, 64}, {1}, 2, "VALID", false},
};

static ed_tensor *numbers(ed_ints shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape.count; i++) count *= shape.values[i];
    float *data = malloc((size_t)count * sizeof *data);
    if (!data) exit(1);
    for (int64_t i = 0; i < count; i++) data[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
    ed_tensor *t = ed_constant(data, shape);
    free(data);
    return t;
}

/* Ends the program with the library's error. */
static void stop(void)
{
    fprintf(stderr, "bench_conv: %s\n", ed_error());
    exit(1);
}

/* The calls of a layer. */
typedef struct calls {
    const ed_op *op;
    const void *attrs;
    int n;
    ed_tensor *in[2], *dy;
    bool needs[2];
} calls;

static void forward(void *user)
{
    const calls *c = user;
    ED_SCOPE;
    if (!ed_call_op(c->op, c->in, c->n, c->attrs)) stop();
}

static void forward_back(void *user)
{
    const calls *c = user;
    ED_SCOPE;
    ed_tensor *y = ed_call_op(c->op, c->in, c->n, c->attrs), *dx[2] = {NULL};
    ed_ints shapes[2] = {ed_shape(c->in[0]), c->n > 1 ? ed_shape(c->in[1]) : (ed_ints){0}};
    ed_dtype dtypes[2] = {ED_FLOAT32, ED_FLOAT32};
    ed_gradient_call g = {.op = c->op,
                          .attrs = c->attrs,
                          .n_inputs = c->n,
                          .n_outputs = 1,
                          .inputs = c->in,
                          .outputs = &y,
                          .dy = &c->dy,
                          .dx = dx,
                          .needs = c->needs,
                          .shapes = shapes,
                          .dtypes = dtypes};
    if (!y || !c->op->gradient(&g) || ed_failed()) stop();
}

static void measure(int argc, char **argv, const layer *l)
{
    ED_SCOPE;
    char name[80];
    int64_t steps[] = {l->stride, l->stride};
    ed_conv2d_options conv = ED_NEW_OPTIONS(ED_CONV2D_OPTIONS, ed_conv2d_options);
    ed_pool2d_options pool = ED_NEW_OPTIONS(ED_POOL2D_OPTIONS, ed_pool2d_options);
    conv.strides = (ed_ints){steps, 2};
    conv.padding = pool.padding = l->padding;
    bool is_conv = l->kernel[1] != 0;
    calls c = {.op = ed_op_find(is_conv        ? "conv2d"
                                : l->kernel[0] ? "avg_pool2d"
                                               : "max_pool2d"),
               .attrs = is_conv ? (void *)&conv : (void *)&pool,
               .n = is_conv ? 2 : 1,
               .needs = {!l->first, is_conv}};
    snprintf(name, sizeof name, "E.%s_nhwc_fwd_bwd", l->name);
    if (!bench_wanted(argc, argv, name)) return;
    c.in[0] = numbers((ed_ints){l->x, 4});
    if (is_conv) c.in[1] = numbers((ed_ints){l->kernel, 4});
    c.dy = numbers(ed_shape(ed_call_op(c.op, c.in, c.n, c.attrs)));
    bench_run(name, forward_back, &c, 1);
    snprintf(name, sizeof name, "E.%s_nhwc_fwd", l->name);
    bench_run(name, forward, &c, 1);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < sizeof layers / sizeof *layers; i++) measure(argc, argv, &layers[i]);
    if (ed_failed()) stop();
    return 0;
}
