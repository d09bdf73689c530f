/*
 * Where elements lie changes nothing: images with channels first have the results of those with
 * channels last, at sizes of which threads take pieces and results pass by the caches; copies of
 * views are what an index by index copy is; and any number of threads gives the same bits.
 */
#include "autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include <math.h>

/* ---- Channels first and last ----------------------------------------------------------------- */

static ed_tensor *to_first(ed_tensor *x)
{
    return ed_contiguous(ed_transpose(x, .perm = ED_AXES(0, 3, 1, 2)));
}

static ed_tensor *to_last(ed_tensor *x)
{
    return ed_contiguous(ed_transpose(x, .perm = ED_AXES(0, 2, 3, 1)));
}

/* One of the ops, of images in one of the layouts. */
typedef struct image_op {
    const char *name;
    ed_tensor *(*f)(ed_tensor *x, ed_tensor *kernel, const char *format);
    int64_t kernel[4];
} image_op;

static ed_tensor *same_conv(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_conv2d(x, kernel, .padding = "SAME", .data_format = format);
}

static ed_tensor *strided_conv(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_conv2d(x, kernel, .strides = ED_INTS(2, 3), .padding = "SAME", .data_format = format);
}

static ed_tensor *dilated_conv(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_conv2d(x, kernel, .dilations = ED_INTS(2), .data_format = format);
}

static ed_tensor *grouped_conv(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_conv2d(x, kernel, .groups = 2, .data_format = format);
}

/* The bias is the kernel's mean. */
static ed_tensor *bias_conv(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    ed_tensor *bias = ed_reduce_mean(kernel, .axis = ED_AXES(0, 1, 2));
    return ed_conv2d_bias(x, kernel, bias, .padding = "SAME", .activation = "relu",
                          .data_format = format);
}

static ed_tensor *bias_depthwise(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    ed_tensor *bias = ed_reshape(ed_reduce_mean(kernel, .axis = ED_AXES(0, 1)), ED_SHAPE(-1));
    return ed_depthwise_conv2d_bias(x, kernel, bias, .padding = "SAME", .activation = "relu",
                                    .data_format = format);
}

/* kernel: [kh, kw, out, in] */
static ed_tensor *transposed_conv(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_contiguous(ed_conv2d_transpose(x, kernel, .strides = ED_INTS(2, 1), .padding = "SAME",
                                             .data_format = format));
}

/* Of an image's cells as one line: the result is an image of one row. */
static ed_tensor *as_lines(ed_tensor *x, ed_tensor *kernel, const char *format, bool transposed)
{
    const bool first = !strcmp(format, "NCHW");
    const int rows = first ? 2 : 1;
    const int64_t n = ed_dim(x, 0), channels = ed_dim(x, first ? 1 : 3);
    x = ed_reshape(x, first ? ED_SHAPE(n, channels, -1) : ED_SHAPE(n, -1, channels));
    kernel = ed_squeeze(kernel, .axis = ED_AXES(0));
    const char *lines = first ? "NCW" : "NWC";
    ed_tensor *y =
        transposed ? ed_conv1d_transpose(x, kernel, .strides = ED_INTS(2), .padding = "VALID",
                                         .data_format = lines)
                   : ed_conv1d(x, kernel, .strides = ED_INTS(3), .groups = 2, .padding = "EXPLICIT",
                               .data_format = lines, .explicit_paddings = ED_INTS(4, 1));
    return ed_contiguous(ed_expand_dims(y, rows));
}

static ed_tensor *conv_of_lines(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return as_lines(x, kernel, format, false);
}

static ed_tensor *transposed_conv_of_lines(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return as_lines(x, kernel, format, true);
}

static ed_tensor *depthwise(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_depthwise_conv2d(x, kernel, .padding = "SAME", .data_format = format);
}

static ed_tensor *strided_depthwise(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_depthwise_conv2d(x, kernel, .strides = ED_INTS(2, 3), .padding = "EXPLICIT",
                               .explicit_paddings = ED_INTS(1, 4, 2, 0), .data_format = format);
}

static ed_tensor *dilated_depthwise(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_depthwise_conv2d(x, kernel, .dilations = ED_INTS(3, 2), .padding = "SAME",
                               .data_format = format);
}

static ed_tensor *every_other_row(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_depthwise_conv2d(x, kernel, .strides = ED_INTS(2, 1), .padding = "SAME",
                               .data_format = format);
}

static ed_tensor *largest(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    (void)kernel;
    return ed_max_pool2d(x, .data_format = format);
}

static ed_tensor *mean(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    (void)kernel;
    return ed_avg_pool2d(x, .window = ED_INTS(3), .strides = ED_INTS(2), .data_format = format);
}

static ed_tensor *halved(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    (void)kernel;
    return ed_avg_pool2d(x, .data_format = format);
}

/* The kernel, [1, 1, 1, channels], is gamma and beta. */
static ed_tensor *normalized(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    ed_tensor *gamma = ed_reshape(kernel, ED_SHAPE(-1));
    return ed_batch_norm(x, gamma, gamma, NULL, NULL, .axis = strcmp(format, "NCHW") ? -1 : 1);
}

typedef struct outcome {
    ed_tensor *y, *dx, *dkernel;
} outcome;

/* The result, and its gradients; pools have no kernel. */
static outcome run(const image_op *op, ed_tensor *x, ed_tensor *kernel, const char *format)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_watch(tape, kernel);
    outcome o = {.y = op->f(x, kernel, format)};
    const bool has_kernel = op->f != largest && op->f != mean && op->f != halved;
    ed_list *sources = has_kernel ? ed_list_of(x, kernel) : ed_list_of(x);
    /* A flow that is the same number for the same element in both layouts. */
    ed_list *d = ed_gradient(tape, o.y, sources, .output_gradients = ed_list_of(ed_sin(o.y)));
    o.dx = d ? ed_list_get(d, 0) : NULL;
    o.dkernel = has_kernel && d ? ed_list_get(d, 1) : NULL;
    return o;
}

static void assert_close(const char *name, ed_tensor *a, ed_tensor *b)
{
    assert_fine();
    const double largest_of = ed_item(ed_reduce_max(ed_abs(a)));
    const double apart = ed_item(ed_reduce_max(ed_abs(ed_sub(a, b))));
    if (!(apart <= 3e-5 * largest_of)) fail_msg("%s: %g apart, of %g", name, apart, largest_of);
}

static void compare_layouts(const image_op *op, ed_ints shape)
{
    ED_SCOPE;
    ed_generator *g = ed_generator_from_seed(3);
    ed_tensor *last = ed_random_normal(shape, .generator = g), *first = to_first(last);
    ed_tensor *kernel = ed_random_normal(((ed_ints){op->kernel, 4}), .generator = g);
    const outcome expected = run(op, last, kernel, "NHWC");
    outcome one = {0};
    for (int threads = 1; threads <= 3; threads++) {
        ed_set_num_threads(threads);
        const outcome got = run(op, first, kernel, "NCHW");
        const outcome again = run(op, last, kernel, "NHWC");
        assert_fine();
        assert_true(ed_is_contiguous(got.y));
        assert_same_tensor(again.y, expected.y);
        assert_same_tensor(again.dx, expected.dx);
        if (again.dkernel) assert_same_tensor(again.dkernel, expected.dkernel);
        if (threads > 1) {
            assert_same_tensor(got.y, one.y);
            assert_same_tensor(got.dx, one.dx);
            if (got.dkernel) assert_same_tensor(got.dkernel, one.dkernel);
        } else {
            one = got;
        }
    }
    assert_close(op->name, expected.y, to_last(one.y));
    assert_close(op->name, expected.dx, to_last(one.dx));
    if (one.dkernel) assert_close(op->name, expected.dkernel, one.dkernel);
}

static void channels_first_is_channels_last(void **state)
{
    (void)state;
    const int threads = ed_num_threads();
    static const image_op ops[] = {
        {"conv2d 3x3", same_conv, {3, 3, 6, 10}},
        {"conv2d 1x1", same_conv, {1, 1, 6, 9}},
        {"conv2d with strides", strided_conv, {5, 4, 6, 17}},
        {"conv2d with dilations", dilated_conv, {3, 2, 6, 8}},
        {"conv2d of groups", grouped_conv, {3, 3, 3, 8}},
        {"conv2d_bias 3x3", bias_conv, {3, 3, 6, 20}},
        {"conv2d_bias 1x1", bias_conv, {1, 1, 6, 9}},
        {"conv2d_transpose", transposed_conv, {3, 4, 10, 6}},
        {"conv1d of groups", conv_of_lines, {1, 5, 3, 8}},
        {"conv1d_transpose", transposed_conv_of_lines, {1, 3, 5, 6}},
        {"depthwise_conv2d_bias", bias_depthwise, {3, 3, 6, 1}},
        {"depthwise_conv2d_bias 2", bias_depthwise, {3, 3, 6, 2}},
        {"depthwise_conv2d", depthwise, {3, 3, 6, 2}},
        {"depthwise_conv2d with strides", strided_depthwise, {3, 5, 6, 1}},
        {"depthwise_conv2d with dilations", dilated_depthwise, {2, 3, 6, 1}},
        {"max_pool2d", largest, {1, 1, 1, 1}},
        {"avg_pool2d", mean, {1, 1, 1, 1}},
        {"avg_pool2d side by side", halved, {1, 1, 1, 1}},
        {"batch_norm", normalized, {1, 1, 1, 6}},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        compare_layouts(&ops[i], ED_SHAPE(3, 67, 45, 6));
        compare_layouts(&ops[i], ED_SHAPE(1, 9, 11, 6));
    }
    /* A first layer's channels, and results past the caches. */
    compare_layouts(&(image_op){"conv2d of 1 channel", same_conv, {3, 3, 1, 32}},
                    ED_SHAPE(8, 28, 28, 1));
    compare_layouts(&(image_op){"conv2d of 3 channels", strided_conv, {7, 7, 3, 16}},
                    ED_SHAPE(2, 64, 60, 3));
    compare_layouts(&(image_op){"batch_norm", normalized, {1, 1, 1, 6}}, ED_SHAPE(4, 432, 413, 6));
    compare_layouts(&(image_op){"conv2d of 6 channels", same_conv, {5, 5, 6, 16}},
                    ED_SHAPE(17, 14, 14, 6));
    compare_layouts(&(image_op){"conv2d of 40 channels to few", same_conv, {5, 5, 40, 8}},
                    ED_SHAPE(2, 19, 23, 40));
    compare_layouts(&(image_op){"conv2d of large groups", grouped_conv, {3, 3, 20, 24}},
                    ED_SHAPE(2, 19, 23, 40));
    compare_layouts(&(image_op){"conv2d_bias 1x1 to many", bias_conv, {1, 1, 64, 448}},
                    ED_SHAPE(1, 36, 40, 64));
    compare_layouts(&(image_op){"conv2d_bias 1x1 of many", bias_conv, {1, 1, 700, 20}},
                    ED_SHAPE(2, 9, 11, 700));
    compare_layouts(
        &(image_op){"depthwise_conv2d_bias past the caches", bias_depthwise, {3, 3, 32, 1}},
        ED_SHAPE(4, 131, 257, 32));
    compare_layouts(
        &(image_op){"depthwise_conv2d past the caches", dilated_depthwise, {3, 2, 32, 1}},
        ED_SHAPE(4, 131, 257, 32));
    compare_layouts(
        &(image_op){"depthwise_conv2d of every other row", every_other_row, {3, 3, 32, 1}},
        ED_SHAPE(4, 269, 257, 32));
    compare_layouts(&(image_op){"max_pool2d past the caches", largest, {1, 1, 1, 1}},
                    ED_SHAPE(4, 131, 257, 32));
    compare_layouts(&(image_op){"avg_pool2d past the caches", halved, {1, 1, 1, 1}},
                    ED_SHAPE(4, 131, 257, 32));
    ed_set_num_threads(threads);
}

/* Of an x without channels only the bias is left. */
static void bias_of_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *bias = ed_constant(((float[]){-1, 0.5f, 2}), ED_SHAPE(3));
    ed_tensor *expected = ed_constant(((float[]){0, 0.5f, 2}), ED_SHAPE(3));
    expected = ed_contiguous(ed_broadcast_to(expected, ED_SHAPE(2, 2, 3, 3)));
    ed_tensor *kernel = ed_ones(ED_SHAPE(2, 2, 0, 3));
    ed_tensor *last =
        ed_conv2d_bias(ed_ones(ED_SHAPE(2, 3, 4, 0)), kernel, bias, .activation = "relu");
    ed_tensor *first = ed_conv2d_bias(ed_ones(ED_SHAPE(2, 0, 3, 4)), kernel, bias,
                                      .activation = "relu", .data_format = "NCHW");
    assert_fine();
    assert_same_tensor(last, expected);
    assert_same_tensor(to_last(first), expected);
}

/* ---- Groups and padding ---------------------------------------------------------------------- */

static const ed_ints wide_pads = {(int64_t[]){1, 7, 9, 2}, 4};

static ed_tensor *padded_groups(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_conv2d(x, kernel, .groups = 2, .dilations = ED_INTS(2, 1), .padding = "EXPLICIT",
                     .explicit_paddings = wide_pads, .data_format = format);
}

/* The same of each group by itself, of images with zeros around them. */
static ed_tensor *halves(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    const int64_t *p = wide_pads.values;
    x = ed_pad(x, .before = ED_INTS(0, p[0], p[2], 0), .after = ED_INTS(0, p[1], p[3], 0));
    ed_list *images = ed_split(x, 2, .axis = 3), *kernels = ed_split(kernel, 2, .axis = 3);
    ed_tensor *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = ed_conv2d(ed_list_get(images, i), ed_list_get(kernels, i), .data_format = format,
                         .dilations = ED_INTS(2, 1));
    return ed_concat(ed_list_of(y[0], y[1]), .axis = 3);
}

static void groups_are_convolutions(void **state)
{
    (void)state;
    static const int64_t channels[][2] = {{20, 17}, {16, 33}, {7, 5}, {40, 36}};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (int64_t columns = 5; columns <= 12; columns += 7) {
            ED_SCOPE;
            const int64_t in = channels[i][0], out = channels[i][1];
            ed_generator *g = ed_generator_from_seed(5);
            ed_tensor *x = ed_random_normal(ED_SHAPE(3, 9, 17, 2 * in), .generator = g);
            ed_tensor *kernel = ed_random_normal(ED_SHAPE(3, columns, in, 2 * out), .generator = g);
            const outcome expected = run(&(image_op){"halves", halves, {0}}, x, kernel, "NHWC");
            const outcome got = run(&(image_op){"groups", padded_groups, {0}}, x, kernel, "NHWC");
            assert_close("groups", expected.y, got.y);
            assert_close("groups", expected.dx, got.dx);
            assert_close("groups", expected.dkernel, got.dkernel);
        }
}

/* ---- Each channel by itself ------------------------------------------------------------------ */

typedef struct depthwise_case {
    int64_t batch, height, width, channels, rows, columns, multiplier, strides[2], dilations[2];
    const char *padding;
} depthwise_case;

static const depthwise_case *at_work;

static ed_tensor *each_channel(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    return ed_depthwise_conv2d(x, kernel,
                               .strides = ED_INTS(at_work->strides[0], at_work->strides[1]),
                               .dilations = ED_INTS(at_work->dilations[0], at_work->dilations[1]),
                               .padding = at_work->padding, .data_format = format);
}

/* The same as a convolution of a group for each channel. */
static ed_tensor *each_group(ed_tensor *x, ed_tensor *kernel, const char *format)
{
    const int64_t *k = ed_shape(kernel).values;
    ed_tensor *grouped = ed_reshape(kernel, ED_SHAPE(k[0], k[1], 1, k[2] * k[3]));
    return ed_conv2d(x, grouped, .strides = ED_INTS(at_work->strides[0], at_work->strides[1]),
                     .dilations = ED_INTS(at_work->dilations[0], at_work->dilations[1]),
                     .padding = at_work->padding, .groups = k[2], .data_format = format);
}

static void depthwise_is_a_group_each(void **state)
{
    (void)state;
    static const depthwise_case cases[] = {
        {2, 9, 12, 35, 3, 3, 1, {1, 1}, {1, 1}, "SAME"},
        {2, 8, 30, 16, 3, 3, 1, {1, 1}, {1, 1}, "SAME"},
        {1, 20, 71, 3, 5, 5, 1, {1, 1}, {1, 1}, "SAME"},
        {3, 7, 7, 40, 7, 7, 1, {1, 1}, {1, 1}, "VALID"},
        {2, 7, 5, 19, 7, 7, 1, {1, 1}, {1, 1}, "SAME"},
        {2, 17, 33, 5, 3, 3, 2, {2, 2}, {1, 1}, "SAME"},
        {1, 21, 38, 17, 3, 2, 1, {3, 2}, {1, 1}, "VALID"},
        {1, 11, 40, 2, 1, 1, 3, {4, 4}, {1, 1}, "VALID"},
        {2, 9, 12, 35, 3, 3, 2, {1, 1}, {1, 1}, "SAME"},
        {1, 13, 12, 19, 7, 7, 3, {1, 1}, {1, 1}, "SAME"},
        {2, 12, 9, 17, 5, 3, 8, {2, 3}, {1, 2}, "VALID"},
        {1, 9, 8, 5, 3, 3, 9, {2, 1}, {1, 1}, "SAME"},
        {2, 19, 23, 4, 3, 3, 1, {1, 1}, {7, 9}, "SAME"},
        {1, 90, 900, 1, 3, 3, 1, {1, 1}, {1, 1}, "SAME"},
        {1, 40, 37, 2, 35, 3, 1, {1, 1}, {1, 1}, "SAME"},
        {4, 128, 160, 64, 3, 3, 1, {1, 1}, {1, 1}, "SAME"}, /* goes past the caches */
    };
    const image_op depthwise_op = {"depthwise", each_channel, {0}};
    const image_op grouped_op = {"grouped", each_group, {0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ED_SCOPE;
        const depthwise_case *c = at_work = &cases[i];
        ed_generator *g = ed_generator_from_seed(5);
        ed_tensor *x =
            ed_random_normal(ED_SHAPE(c->batch, c->height, c->width, c->channels), .generator = g);
        ed_tensor *kernel = ed_random_normal(
            ED_SHAPE(c->rows, c->columns, c->channels, c->multiplier), .generator = g);
        const outcome expected = run(&grouped_op, x, kernel, "NHWC");
        const outcome last = run(&depthwise_op, x, kernel, "NHWC");
        const outcome first = run(&depthwise_op, to_first(x), kernel, "NCHW");
        char name[32];
        snprintf(name, sizeof name, "case %d", (int)i);
        assert_close(name, expected.y, last.y);
        assert_close(name, expected.y, to_last(first.y));
        assert_close(name, expected.dx, last.dx);
        assert_close(name, expected.dx, to_last(first.dx));
        assert_close(name, expected.dkernel, last.dkernel);
        assert_close(name, expected.dkernel, first.dkernel);
    }
}

/* What is not there is left out, not multiplied: no NaN comes of an infinite number and it. */
static void what_is_outside_is_left_out(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2, 5, 21, 3));
    ed_tensor *corner = ed_pad(ed_full(ED_SHAPE(1, 1, 3, 1), INFINITY), .after = ED_INTS(2, 2));
    ed_tensor *kernel = ed_where(ed_is_finite(corner), ed_ones(ED_SHAPE(3, 3, 3, 1)), corner);
    for (int stride = 1; stride <= 2; stride++) {
        const image_op op = {"depthwise", each_channel, {0}},
                       grouped = {"grouped", each_group, {0}};
        const depthwise_case c = {
            .strides = {stride, stride}, .dilations = {1, 1}, .padding = "SAME"};
        at_work = &c;
        const outcome last = run(&op, x, kernel, "NHWC");
        const outcome first = run(&op, to_first(x), kernel, "NCHW");
        const outcome groups = run(&grouped, x, kernel, "NHWC");
        assert_same_tensor(ed_is_nan(groups.y), ed_is_nan(last.y));
        assert_same_tensor(ed_is_finite(groups.y), ed_is_finite(last.y));
        assert_same_tensor(ed_is_finite(groups.dx), ed_is_finite(last.dx));
        assert_same_tensor(ed_is_finite(groups.dkernel), ed_is_finite(last.dkernel));
        assert_same_tensor(ed_is_nan(last.y), ed_is_nan(to_last(first.y)));
        assert_same_tensor(ed_is_finite(last.y), ed_is_finite(to_last(first.y)));
        assert_same_tensor(ed_is_finite(last.dx), ed_is_finite(to_last(first.dx)));
        assert_same_tensor(ed_is_finite(last.dkernel), ed_is_finite(first.dkernel));
        assert_fine();
    }
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static uint64_t drawn = 88172645463325252u;

/* Below n. */
static int64_t draw(int64_t n)
{
    drawn ^= drawn << 13, drawn ^= drawn >> 7, drawn ^= drawn << 17;
    return (int64_t)(drawn >> 20) % n;
}

enum { RANKS = 4 };

/* A view: some of each dimension, in other steps, in another order. */
typedef struct cut {
    int rank;
    int64_t shape[RANKS], begin[RANKS], step[RANKS], perm[RANKS];
} cut;

/* At most `most` elements. */
static cut draw_cut(int64_t most)
{
    cut c = {.rank = 1 + (int)draw(RANKS)};
    int64_t left = most;
    for (int d = 0; d < c.rank; d++) {
        const int64_t size = draw(3) ? 1 + draw(d + 1 < c.rank ? 90 : 700) : 64 * (1 + draw(4));
        c.shape[d] = size > left ? left : size;
        left /= c.shape[d];
        c.begin[d] = draw(3) ? 0 : draw(c.shape[d]);
        c.step[d] = draw(6) ? 1 : 2;
        c.perm[d] = d;
    }
    for (int d = c.rank - 1; d > 0; d--) {
        const int64_t other = draw(d + 1), was = c.perm[d];
        c.perm[d] = c.perm[other];
        c.perm[other] = was;
    }
    return c;
}

/* Whether y is the cut of x, which is contiguous; both of elements of so many bytes. */
static bool is_cut(const cut *c, const char *x, ed_tensor *y, size_t size)
{
    int64_t steps[RANKS], at[RANKS] = {0}, step = 1;
    for (int d = c->rank - 1; d >= 0; step *= c->shape[d--]) steps[d] = step;
    const char *copied = ed_data(y);
    for (int64_t i = 0; i < ed_size(y); i++) {
        int64_t from = 0;
        for (int d = 0; d < c->rank; d++) {
            const int64_t p = c->perm[d];
            from += (c->begin[p] + at[d] * c->step[p]) * steps[p];
        }
        if (memcmp(copied + (size_t)i * size, x + (size_t)from * size, size) != 0) return false;
        for (int d = c->rank - 1; d >= 0 && ++at[d] == ed_dim(y, d); d--) at[d] = 0;
    }
    return true;
}

static void views_are_copied(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_UINT8, ED_FLOAT16, ED_INT32, ED_FLOAT64};
    for (int i = 0; i < 200; i++) {
        ED_SCOPE;
        const ed_dtype dtype = dtypes[i % 4];
        const cut c = draw_cut(i % 40 == 3 ? 5 << 20 : i % 3 ? 1 << 14 : 1 << 19);
        const ed_ints shape = {c.shape, c.rank}, begin = {c.begin, c.rank}, step = {c.step, c.rank},
                      perm = {c.perm, c.rank};
        ed_tensor *x = ed_cast(ed_random_uniform(shape, .high = 250), dtype);
        ed_tensor *view = ed_transpose(ed_slice(x, .begin = begin, .step = step), .perm = perm);
        ed_tensor *y = ed_contiguous(view);
        assert_fine();
        if (!is_cut(&c, ed_data(x), y, ed_dtype_size(dtype)))
            fail_msg("copy %d: %s of rank %d", i, ed_dtype_name(dtype), c.rank);
        assert_same_tensor(y, ed_constant_of(dtype, ed_data(y), ed_shape(y)));
    }
}

/* Copies that pass by the caches, of rows that begin anywhere and of elements apart from each
 * other. */
static void large_views_are_copied(void **state)
{
    (void)state;
    static const struct {
        ed_dtype dtype;
        cut cut;
    } cases[] = {
        {ED_FLOAT32, {2, {2100, 2203}, {0, 3}, {1, 1}, {0, 1}}},
        {ED_FLOAT32, {2, {1801, 4803}, {0, 1}, {1, 2}, {0, 1}}},
        {ED_FLOAT64, {2, {9001, 517}, {1, 0}, {1, 2}, {0, 1}}},
        {ED_UINT8, {2, {2501, 21001}, {0, 2}, {1, 3}, {0, 1}}},
    };
    const int before = ed_num_threads();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ED_SCOPE;
        const cut *c = &cases[i].cut;
        const ed_dtype dtype = cases[i].dtype;
        ed_tensor *x =
            ed_cast(ed_random_uniform(((ed_ints){c->shape, c->rank}), .high = 250), dtype);
        ed_tensor *view = ed_slice(x, .begin = {c->begin, c->rank}, .step = {c->step, c->rank});
        assert_true(ed_set_num_threads(1 + (int)i % 3));
        ed_tensor *y = ed_contiguous(view);
        assert_fine();
        if (!is_cut(c, ed_data(x), y, ed_dtype_size(dtype))) fail_msg("large copy %zu", i);
    }
    assert_true(ed_set_num_threads(before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(channels_first_is_channels_last, check_end),
        cmocka_unit_test_teardown(bias_of_nothing, check_end),
        cmocka_unit_test_teardown(groups_are_convolutions, check_end),
        cmocka_unit_test_teardown(depthwise_is_a_group_each, check_end),
        cmocka_unit_test_teardown(what_is_outside_is_left_out, check_end),
        cmocka_unit_test_teardown(views_are_copied, check_end),
        cmocka_unit_test_teardown(large_views_are_copied, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
