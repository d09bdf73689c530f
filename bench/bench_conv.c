/*
 * Convolution and pooling, forward and both gradients: time and GFLOP/s for the layers of common
 * image networks. Usage: bench_conv [layers whose name contains this]. Medians of short series.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SERIES = 9 };

typedef struct layer {
    const char *name;
    int64_t x[4], kernel[4]; /* kernel [0]: max_pool2d, [1]: avg_pool2d of 2 x 2 where [1] is 0 */
    int64_t stride;
    const char *padding;
} layer;

static const layer layers[] = {
    {"32x28x28x1 3x3x32 same", {32, 28, 28, 1}, {3, 3, 1, 32}, 1, "SAME"},
    {"32x28x28x64 3x3x64 same", {32, 28, 28, 64}, {3, 3, 64, 64}, 1, "SAME"},
    {"32x14x14x256 1x1x256", {32, 14, 14, 256}, {1, 1, 256, 256}, 1, "VALID"},
    {"32x14x14x256 3x3x256 same", {32, 14, 14, 256}, {3, 3, 256, 256}, 1, "SAME"},
    {"8x224x224x3 7x7x64 stride 2", {8, 224, 224, 3}, {7, 7, 3, 64}, 2, "SAME"},
    {"32x28x28x64 3x3x128 stride 2", {32, 28, 28, 64}, {3, 3, 64, 128}, 2, "SAME"},
    {"128x28x28x1 5x5x6 same", {128, 28, 28, 1}, {5, 5, 1, 6}, 1, "SAME"},
    {"128x14x14x6 5x5x16", {128, 14, 14, 6}, {5, 5, 6, 16}, 1, "VALID"},
    {"max_pool2d 32x112x112x64", {32, 112, 112, 64}, {0}, 2, "VALID"},
    {"avg_pool2d 32x112x112x64", {32, 112, 112, 64}, {1}, 2, "VALID"},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

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

/* The calls of a layer: forward, and its gradients by the op's own gradient function. */
typedef struct calls {
    const ed_op *op;
    const void *attrs;
    int n;
    ed_tensor *in[2], *y, *dy;
} calls;

static ed_tensor *run_forward(const calls *c)
{
    return ed_call_op(c->op, c->in, c->n, c->attrs);
}

static ed_tensor *run_gradient(const calls *c, int i)
{
    ed_tensor *dx[2] = {NULL};
    bool needs[2] = {i == 0, i == 1};
    ed_ints shapes[2] = {ed_shape(c->in[0]), c->n > 1 ? ed_shape(c->in[1]) : (ed_ints){0}};
    ed_dtype dtypes[2] = {ED_FLOAT32, ED_FLOAT32};
    ed_gradient_call g = {.op = c->op,
                          .attrs = c->attrs,
                          .n_inputs = c->n,
                          .n_outputs = 1,
                          .inputs = c->in,
                          .outputs = &c->y,
                          .dy = &c->dy,
                          .dx = dx,
                          .needs = needs,
                          .shapes = shapes,
                          .dtypes = dtypes};
    return c->op->gradient(&g) ? dx[i] : NULL;
}

/* which: 0 forward, 1 gradient of the input, 2 of the kernel. */
static double seconds(const calls *c, int which)
{
    double times[SERIES];
    for (int i = -1; i < SERIES; i++) {
        ED_SCOPE;
        double begin = now();
        ed_tensor *result = which ? run_gradient(c, which - 1) : run_forward(c);
        if (!result) exit(1);
        if (i >= 0) times[i] = now() - begin;
    }
    qsort(times, SERIES, sizeof *times, ascending);
    return times[SERIES / 2];
}

static void bench(const layer *l)
{
    ED_SCOPE;
    int64_t steps[] = {l->stride, l->stride};
    ed_conv2d_options conv = {.strides = {steps, 2}, .padding = l->padding};
    ed_pool2d_options pool = {.padding = l->padding};
    bool is_conv = l->kernel[1] != 0;
    calls c = {.op = ed_op_find(is_conv        ? "conv2d"
                                : l->kernel[0] ? "avg_pool2d"
                                               : "max_pool2d"),
               .attrs = is_conv ? (void *)&conv : (void *)&pool,
               .n = is_conv ? 2 : 1};
    c.in[0] = numbers((ed_ints){l->x, 4});
    if (is_conv) c.in[1] = numbers((ed_ints){l->kernel, 4});
    c.y = run_forward(&c);
    c.dy = numbers(ed_shape(c.y));
    double flops =
        2.0 * (double)ed_size(c.y) * (double)(l->kernel[0] * l->kernel[1] * l->kernel[2]);
    printf("%-32s", l->name);
    for (int which = 0; which <= c.n; which++) {
        double s = seconds(&c, which);
        printf("  %s %8.3f ms", which == 0 ? "y" : which == 1 ? "dx" : "dk", s * 1e3);
        if (is_conv) printf(" %6.1f GF", flops / s * 1e-9);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    printf("float32, %d threads\n", omp_get_max_threads());
    for (unsigned i = 0; i < sizeof layers / sizeof *layers; i++)
        if (argc < 2 || strstr(layers[i].name, argv[1])) bench(&layers[i]);
    if (ed_failed()) fprintf(stderr, "%s\n", ed_error());
    return ed_failed();
}
