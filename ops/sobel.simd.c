/*
 * sobel_edges: differences of each pixel's neighbours, below less above and right less left,
 * smoothed across. Both are made of a row of numbers and the rows around it in one go. At a border
 * the neighbour that lacks is the one on the other side, as in padding of mode REFLECT.
 */
#include "ops/images.h"
#include "ops/kernels/isa.h"

/* A row of pixels, the rows above and below it, and the row's results. */
typedef struct sobel_row {
    const void *up, *here, *down;
    void *y;
    int64_t width, channels;
    bool stream; /* past the caches */
} sobel_row;

typedef void (*sobel_loop)(const sobel_row *r);

#ifdef ISA

#include "ops/kernels/strided.h"

#define TYPE f32
#include "ops/sobel.typed.h"
#define TYPE f64
#include "ops/sobel.typed.h"

const sobel_loop ISA_NAME(sobel_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = sobel_edges_f32, [ED_FLOAT64] = sobel_edges_f64};

#else

#include "ops/batch.h"
#include "ops/depthwise.h"
#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"

ISA_DECLARE_TABLE(sobel_loop, sobel_table, []);

static bool sobel_edges_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank != 4 || x->shape[1] < 2 || x->shape[2] < 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must be [batch, height, width, channels] of at least 2 by 2 pixels, "
                            "got %s",
                            text_of_tensor(x).s);
    const int64_t shape[] = {x->shape[0], x->shape[1], x->shape[2], x->shape[3], 2};
    return ed_call_output(call, 0, x->dtype, 5, shape);
}

typedef struct sobel_work {
    const ed_tensor *x, *y;
    sobel_loop loop;
    bool stream;
} sobel_work;

static int64_t mirrored(int64_t i, int64_t n)
{
    return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

/* Rows, numbered through all images. */
static void sobel_range(int64_t first, int64_t last, int worker, void *user)
{
    const sobel_work *p = user;
    const ed_tensor *x = p->x;
    const int64_t height = x->shape[1],
                  bytes = x->shape[2] * x->shape[3] * (int64_t)dtype_size(x->dtype);
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t at = i % height, image = i - at;
        p->loop(&(sobel_row){.up = x->data + (image + mirrored(at - 1, height)) * bytes,
                             .here = x->data + i * bytes,
                             .down = x->data + (image + mirrored(at + 1, height)) * bytes,
                             .y = p->y->data + 2 * i * bytes,
                             .width = x->shape[2],
                             .channels = x->shape[3],
                             .stream = p->stream});
    }
}

static bool sobel_edges_kernel(ed_call *call)
{
    static const sobel_loop *const tables[ISA_COUNT] = ISA_TABLE(sobel_table);
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    if (!x->size) return true;
    const int64_t row = x->shape[2] * x->shape[3], rows = x->size / row,
                  bytes = 2 * row * (int64_t)dtype_size(x->dtype);
    sobel_work p = {x, y, tables[isa_level][x->dtype],
                    rows * bytes >= COPY_FAR_BYTES && bytes % COPY_LINE == 0 &&
                        (uintptr_t)y->data % COPY_LINE == 0};
    threads_run(rows, x->size > OPS_PARALLEL_WORK ? 1 + OPS_PARALLEL_WORK / 4 / row : rows,
                sobel_range, &p);
    return true;
}

static const double sobel[2][3][3] = {{{-1, -2, -1}, {0, 0, 0}, {1, 2, 1}},
                                      {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}}};

/* That of a depthwise convolution by the filters, and of the padding before it. */
static bool sobel_edges_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    static const int64_t ones[] = {0, 1, 1};
    const int64_t *x = g->shapes[0].values, c = x[3];
    if (!c) {
        g->dx[0] = ed_keep(ed_zeros(g->shapes[0], .dtype = g->dtypes[0]));
        return true;
    }
    ed_tensor *kernel = ed_constant_of(ED_FLOAT64, sobel, ED_SHAPE(2, 3, 3, 1));
    kernel = ed_cast(ed_transpose(kernel, .perm = ED_AXES(1, 2, 3, 0)), g->dtypes[0]);
    kernel = ed_broadcast_to(kernel, ED_SHAPE(3, 3, c, 2));
    ed_tensor *dy = ed_reshape(g->dy[0], ED_SHAPE(x[0], x[1], x[2], 2 * c));
    ed_tensor *wide =
        depthwise_transposed(ED_ATTRS(ED_DEPTHWISE_CONV2D_OPTIONS, ed_depthwise_conv2d_options, ),
                             dy, kernel, ED_SHAPE(x[0], x[1] + 2, x[2] + 2, c));
    const ed_pad_options *around = ED_ATTRS(ED_PAD_OPTIONS, ed_pad_options, .before = {ones, 3},
                                            .after = {ones, 3}, .mode = "REFLECT");
    g->dx[0] = ed_keep(shape_folded(wide, around, g->shapes[0]));
    return true;
}

/* The cell at row i and column j of image n, or its mirror image, channel k. */
static double plain_cell(const ed_tensor *x, int64_t n, int64_t i, int64_t j, int64_t k)
{
    const int64_t *image = x->shape + 1;
    const int64_t row = n * image[0] + mirrored(i, image[0]);
    const int64_t pixel = row * image[1] + mirrored(j, image[1]);
    return ((const double *)x->data)[pixel * image[2] + k];
}

static bool sobel_edges_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t *image = x->shape + 1;
    for (int64_t at = 0; at < 2 * x->size; at++) {
        const int64_t p = at / 2, k = p % image[2], j = p / image[2] % image[1],
                      i = p / image[2] / image[1] % image[0],
                      n = p / image[2] / image[1] / image[0], across = at % 2, down = 1 - across;
        double sum = 0;
        for (int d = -1; d <= 1; d++) /* along the other axis */
            sum +=
                (d ? 1 : 2) * (plain_cell(x, n, i + down + d * across, j + across + d * down, k) -
                               plain_cell(x, n, i - down + d * across, j - across + d * down, k));
        ((double *)call->outputs[0]->data)[at] = sum;
    }
    return true;
}

ED_OP(sobel_edges) = {
    .name = "sobel_edges",
    .doc = "Sobel's filters, down and across",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = sobel_edges_infer,
    .batch = batch_examples,
    .kernel = sobel_edges_kernel,
    .gradient = sobel_edges_gradient,
    .reference = sobel_edges_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 5, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 3, 1)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 2, 19)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 40, 2)}}),
};

ed_tensor *ed_sobel_edges(ed_tensor *x)
{
    return CALL_OP(sobel_edges, NULL, x);
}

#endif
