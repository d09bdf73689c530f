/* Convolutions, pools and batch normalization, in both layouts, forward and with gradients. */
#include "bench/bench.h"

/* ---- Convolutions: [batch, size, size, in], kernel [k, k, in / groups, out], SAME, a bias ---- */

typedef struct conv {
    const char *name;
    int64_t batch, size, in, k, out, stride, dilation, groups;
} conv;

static const conv convs[] = {
    {"conv2d_3x3_1to32_32x28x28", 32, 28, 1, 3, 32, 1, 1, 1},
    {"conv2d_3x3_64to64_32x28x28", 32, 28, 64, 3, 64, 1, 1, 1},
    {"conv2d_3x3_64to64_32x56x56", 32, 56, 64, 3, 64, 1, 1, 1},
    {"conv2d_3x3_256to256_8x14x14", 8, 14, 256, 3, 256, 1, 1, 1},
    {"conv2d_3x3_64to128_s2_32x28x28", 32, 28, 64, 3, 128, 2, 1, 1},
    {"conv2d_3x3_64to64_d2_32x28x28", 32, 28, 64, 3, 64, 1, 2, 1},
    {"conv2d_3x3_64to64_g4_32x28x28", 32, 28, 64, 3, 64, 1, 1, 4},
    {"conv2d_5x5_6to16_128x14x14", 128, 14, 6, 5, 16, 1, 1, 1},
    {"conv2d_7x7_3to64_s2_8x224x224", 8, 224, 3, 7, 64, 2, 1, 1},
    {"conv2d_1x1_256to256_32x14x14", 32, 14, 256, 1, 256, 1, 1, 1},
    {"depthwise_3x3_64_32x56x56", 32, 56, 64, 3, 64, 1, 1, 64},
};

enum { NCHW }; /* n[NCHW]: the layout */

static bool depthwise(const conv *c)
{
    return c->groups == c->in && c->in > 1;
}

static ed_ints image(const workload *w, int64_t *shape, int64_t batch, int64_t size,
                     int64_t channels)
{
    bool nchw = w->n[NCHW];
    shape[0] = batch, shape[1] = nchw ? channels : size;
    shape[2] = size, shape[3] = nchw ? size : channels;
    return (ed_ints){shape, 4};
}

static void make_conv(workload *w)
{
    const conv *c = w->row;
    int64_t shape[4];
    w->x[0] = bench_numbers(image(w, shape, c->batch, c->size, c->in));
    w->x[1] = bench_numbers(depthwise(c) ? ED_SHAPE(c->k, c->k, c->in, 1)
                                         : ED_SHAPE(c->k, c->k, c->in / c->groups, c->out));
    w->x[2] = bench_numbers(ED_SHAPE(c->out));
    w->list = ed_list_of(w->x[0], w->x[1], w->x[2]);
}

static ed_tensor *forward(workload *w)
{
    const conv *c = w->row;
    const char *format = w->n[NCHW] ? "NCHW" : "NHWC";
    ed_ints strides = ED_INTS(c->stride), dilations = ED_INTS(c->dilation);
    if (depthwise(c))
        return ed_depthwise_conv2d_bias(w->x[0], w->x[1], w->x[2], .strides = strides,
                                        .padding = "SAME", .data_format = format);
    return ed_conv2d_bias(w->x[0], w->x[1], w->x[2], .strides = strides, .dilations = dilations,
                          .padding = "SAME", .groups = c->groups, .data_format = format);
}

/* Element (b, i, j, k) of an image. */
static double at(const workload *w, const ed_tensor *x, int64_t b, int64_t i, int64_t j, int64_t k)
{
    bool nchw = w->n[NCHW];
    int64_t channels = ed_dim(x, nchw ? 1 : 3), rows = ed_dim(x, nchw ? 2 : 1),
            columns = ed_dim(x, nchw ? 3 : 2);
    return bench_at(x, nchw ? ((b * channels + k) * rows + i) * columns + j
                            : ((b * rows + i) * columns + j) * channels + k);
}

/* Output (b, i, j, o) by the definition. */
static double conv_want(const workload *w, int64_t b, int64_t i, int64_t j, int64_t o)
{
    const conv *c = w->row;
    int64_t out = (c->size + c->stride - 1) / c->stride, per = c->in / c->groups;
    int64_t pad = (out - 1) * c->stride + (c->k - 1) * c->dilation + 1 - c->size;
    int64_t before = pad > 0 ? pad / 2 : 0, first = o / (c->out / c->groups) * per;
    double sum = bench_at(w->x[2], o);
    for (int64_t p = 0; p < c->k; p++)
        for (int64_t q = 0; q < c->k; q++) {
            int64_t y = i * c->stride - before + p * c->dilation,
                    x = j * c->stride - before + q * c->dilation;
            if (y < 0 || y >= c->size || x < 0 || x >= c->size) continue;
            for (int64_t k = 0; k < per; k++)
                sum += at(w, w->x[0], b, y, x, first + k) *
                       bench_at(w->x[1], depthwise(c) ? (p * c->k + q) * c->in + o
                                                      : ((p * c->k + q) * per + k) * c->out + o);
        }
    return sum;
}

static void check_conv(workload *w, ed_tensor *y)
{
    const conv *c = w->row;
    int64_t out = (c->size + c->stride - 1) / c->stride;
    for (int64_t s = 0; s < 60; s++) {
        int64_t b = s % c->batch, i = s * 7 % out, j = s * 11 % out, o = s * 13 % c->out;
        bench_near("an element", at(w, y, b, i, j, o), conv_want(w, b, i, j, o), 1e-4);
    }
}

/* ---- Along one and three axes: VALID, no bias ---- */

/* [batch, size ..., in], kernel [k ..., in, out]; of one axis the other two sizes and k are 1. */
typedef struct line_conv {
    const char *name;
    int axes;
    int64_t batch, size[3], in, k[3], out;
} line_conv;

static const line_conv line_convs[] = {
    {"conv1d_3_64to64_32x1024", 1, 32, {1, 1, 1024}, 64, {1, 1, 3}, 64},
    {"conv3d_3x3x3_16to32_4x24x24x24", 3, 4, {24, 24, 24}, 16, {3, 3, 3}, 32},
};

static void make_line_conv(workload *w)
{
    const line_conv *c = w->row;
    int64_t x[] = {c->batch, c->size[0], c->size[1], c->size[2], c->in};
    int64_t kernel[] = {c->k[0], c->k[1], c->k[2], c->in, c->out};
    int from = 3 - c->axes;
    x[from] = c->batch;
    w->x[0] = bench_numbers((ed_ints){x + from, 5 - from});
    w->x[1] = bench_numbers((ed_ints){kernel + from, 5 - from});
    w->list = ed_list_of(w->x[0], w->x[1]);
}

static ed_tensor *line_forward(workload *w)
{
    return ((const line_conv *)w->row)->axes == 1 ? ed_conv1d(w->x[0], w->x[1])
                                                  : ed_conv3d(w->x[0], w->x[1]);
}

static void check_line_conv(workload *w, ed_tensor *y)
{
    const line_conv *c = w->row;
    int64_t to[3], window = c->k[0] * c->k[1] * c->k[2];
    for (int a = 0; a < 3; a++) to[a] = c->size[a] - c->k[a] + 1;
    BENCH_SPREAD(at, ed_size(y))
    {
        int64_t o = at % c->out, place = at / c->out;
        int64_t j = place % to[2], i = place / to[2] % to[1], h = place / to[2] / to[1] % to[0];
        double sum = 0;
        for (int64_t p = 0; p < window * c->in; p++) {
            int64_t k = p % c->in, q = p / c->in;
            int64_t z = place / to[2] / to[1] / to[0];
            z = z * c->size[0] + h + q / c->k[2] / c->k[1];
            z = z * c->size[1] + i + q / c->k[2] % c->k[1];
            z = z * c->size[2] + j + q % c->k[2];
            sum += bench_at(w->x[0], z * c->in + k) * bench_at(w->x[1], p * c->out + o);
        }
        bench_near("an element", bench_at(y, at), sum, 1e-4);
    }
}

/* Of x and y, of so many elements; with gradients dy, x again and dx too. Kernels are small. */
static double bytes_moved(int64_t x, int64_t y, bool gradients)
{
    return 4.0 * (double)(gradients ? 3 * x + 2 * y : x + y);
}

static void add_line_convs(void)
{
    for (size_t i = 0; i < sizeof line_convs / sizeof *line_convs; i++) {
        const line_conv *c = &line_convs[i];
        double flops = 2.0 * (double)(c->batch * c->in * c->out);
        int64_t from = 1, to = 1;
        for (int a = 0; a < 3; a++) {
            from *= c->size[a], to *= c->size[a] - c->k[a] + 1;
            flops *= (double)((c->size[a] - c->k[a] + 1) * c->k[a]);
        }
        workload w = {BENCH_FLOPS,
                      flops,
                      bytes_moved(c->batch * from * c->in, c->batch * to * c->out, false),
                      .make = make_line_conv,
                      .run = line_forward,
                      .check = check_line_conv,
                      .row = c};
        bench_add(w, "%s", c->name);
        w.forward = w.run, w.amount *= 3;
        w.moved = bytes_moved(c->batch * from * c->in, c->batch * to * c->out, true);
        bench_add(w, "%s_grad", c->name);
    }
}

/* ---- Pools of 2 x 2 and batch normalization of [32, 56, 56, 64] ---- */

enum { BATCH = 32, SIZE = 56, CHANNELS = 64 };

static void make_image(workload *w)
{
    int64_t shape[4];
    w->x[0] = bench_numbers(image(w, shape, BATCH, SIZE, CHANNELS));
    w->list = ed_list_of(w->x[0]);
}

static ed_tensor *max_pool(workload *w)
{
    return ed_max_pool2d(w->x[0], .data_format = w->n[NCHW] ? "NCHW" : "NHWC");
}

static ed_tensor *avg_pool(workload *w)
{
    return ed_avg_pool2d(w->x[0], .data_format = w->n[NCHW] ? "NCHW" : "NHWC");
}

static void check_pool(workload *w, ed_tensor *y)
{
    for (int64_t s = 0; s < 200; s++) {
        int64_t b = s % BATCH, i = s * 7 % (SIZE / 2), j = s * 11 % (SIZE / 2), k = s % CHANNELS;
        double most = -INFINITY, sum = 0;
        for (int p = 0; p < 4; p++) {
            double x = at(w, w->x[0], b, 2 * i + p / 2, 2 * j + p % 2, k);
            most = fmax(most, x), sum += x;
        }
        bench_near("an element", at(w, y, b, i, j, k), w->run == max_pool ? most : sum / 4, 1e-6);
    }
}

static void make_batch_norm(workload *w)
{
    make_image(w);
    ed_layer *layer = ed_layer_batch_normalization(.axis = w->n[NCHW] ? 1 : -1);
    w->more = layer;
    ed_forward(layer, w->x[0], .training = true);
    w->list = ed_list_concat(w->list, ed_layer_trainable_variables(layer));
}

static ed_tensor *batch_norm(workload *w)
{
    return ed_forward((ed_layer *)w->more, w->x[0], .training = true);
}

/* Of a channel the mean is 0 and the variance 1. */
static void check_batch_norm(workload *w, ed_tensor *y)
{
    for (int64_t k = 0; k < CHANNELS; k += 21) {
        double sum = 0, squares = 0, n = BATCH * SIZE * SIZE;
        for (int64_t r = 0; r < BATCH * SIZE * SIZE; r++) {
            double v = at(w, y, r / (SIZE * SIZE), r / SIZE % SIZE, r % SIZE, k);
            sum += v, squares += v * v;
        }
        bench_near("a mean", sum / n, 0, 1e-4);
        bench_near("a variance", squares / n, 1, 2e-3);
    }
}

/* ---- All ---- */

/* Each of them in both layouts, with and without gradients, of which the amount is `gradient` times
 * as large and `moved` the bytes. */
static void add(workload w, const char *name, double gradient, double moved)
{
    for (int nchw = 0; nchw < 2; nchw++) {
        workload both = w;
        w.n[NCHW] = both.n[NCHW] = nchw;
        bench_add(w, "%s_%s", name, nchw ? "nchw" : "nhwc");
        both.forward = w.run, both.amount *= gradient, both.moved = moved;
        bench_add(both, "%s_%s_grad", name, nchw ? "nchw" : "nhwc");
    }
}

void bench_convolution(void)
{
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        const conv *c = &convs[i];
        int64_t out = (c->size + c->stride - 1) / c->stride;
        double flops = 2.0 * (double)(c->batch * out * out * c->out) *
                       (double)(c->k * c->k * c->in / c->groups);
        int64_t read = c->batch * c->size * c->size * c->in,
                written = c->batch * out * out * c->out;
        add((workload){BENCH_FLOPS, flops, bytes_moved(read, written, false), .make = make_conv,
                       .run = forward, .check = check_conv, .row = c},
            c->name, 3, bytes_moved(read, written, true));
    }
    add_line_convs();
    double bytes = 4.0 * BATCH * SIZE * SIZE * CHANNELS;
    workload pool = {BENCH_BYTES, 1.25 * bytes, .make = make_image, .check = check_pool};
    pool.run = max_pool;
    add(pool, "max_pool2d_32x56x56x64", 2, 0);
    pool.run = avg_pool;
    add(pool, "avg_pool2d_32x56x56x64", 2, 0);
    add((workload){BENCH_BYTES, 2 * bytes, .make = make_batch_norm, .run = batch_norm,
                   .check = check_batch_norm},
        "batch_norm_32x56x56x64", 2.5, 0);
}
