/*
 * max_pool2d and avg_pool2d against loops over all cells, for layouts, windows, strides, paddings
 * and widths that end anywhere within a vector; NaN, equal cells, numbers of threads, no elements.
 */
#include "autodiff/autodiff.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>

/* Images and windows; the same numbers for height and width but for the image. */
typedef struct pooling {
    int64_t batch, height, width, channels, window, stride, dilation;
    const char *padding;
} pooling;

static ed_tensor *numbers(ed_dtype dtype, ed_ints shape)
{
    static uint32_t seed = 1;
    ed_tensor *x = scope_give(tensor_new(dtype, (int)shape.count, shape.values));
    for (int64_t i = 0; i < x->size; i++) {
        seed = seed * 1664525u + 1013904223u;
        dtype_store(dtype, x->data, i, (double)(seed >> 24) / 16 - 8); /* some are equal */
    }
    return x;
}

static ed_tensor *pooled(bool mean, ed_tensor *x, const pooling *p, const char *format)
{
    const ed_ints window = {&p->window, 1}, strides = {&p->stride, 1},
                  dilations = {&p->dilation, 1};
    return mean ? ed_avg_pool2d(x, .window = window, .strides = strides, .dilations = dilations,
                                .padding = p->padding, .data_format = format)
                : ed_max_pool2d(x, .window = window, .strides = strides, .dilations = dilations,
                                .padding = p->padding, .data_format = format);
}

/* y and dx for dy = sin y, of images with channels last. */
static void with_gradient(bool mean, ed_tensor *x, const pooling *p, const char *format,
                          ed_tensor *to[2])
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    to[0] = pooled(mean, x, p, format);
    to[1] = ed_gradient(tape, to[0], x, .output_gradients = ed_list_of(ed_sin(to[0])));
    assert_false(ed_failed());
}

/* What precedes the image along an axis of that size, for padding SAME. */
static int64_t before(const pooling *p, int64_t size, int64_t out)
{
    const int64_t missing = (out - 1) * p->stride + (p->window - 1) * p->dilation + 1 - size;
    return strcmp(p->padding, "SAME") || missing < 0 ? 0 : missing / 2;
}

static void assert_close(double a, double b)
{
    if (!(fabs(a - b) <= 1e-5) && !(isnan(a) && isnan(b))) fail_msg("%g, expected %g", a, b);
}

/* Each window of one image's channel: y, and dx summed up. */
static void assert_windows(bool mean, const pooling *p, const double *x, ed_tensor *y, ed_tensor *d)
{
    const int64_t rows = ed_dim(y, 1), columns = ed_dim(y, 2), c = p->channels;
    const double *values = ed_as_doubles(y), *dx = ed_as_doubles(d);
    double *sums = (double *)ed_zeros(ed_shape(d), .dtype = ED_FLOAT64)->data;
    for (int64_t e = 0; e < ed_size(y); e++) {
        const int64_t n = e / c / columns / rows, h = e / c / columns % rows, w = e / c % columns;
        const int64_t top = h * p->stride - before(p, p->height, rows),
                      left = w * p->stride - before(p, p->width, columns);
        int64_t best = -1, count = 0;
        double sum = 0, dy = sin(values[e]);
        for (int turn = 0; turn < 2; turn++)
            for (int64_t k = 0; k < p->window * p->window; k++) {
                const int64_t i = top + k / p->window * p->dilation,
                              j = left + k % p->window * p->dilation,
                              at = ((n * p->height + i) * p->width + j) * c + e % c;
                if (i < 0 || j < 0 || i >= p->height || j >= p->width) continue;
                if (turn) {
                    sums[at] += mean ? dy / (double)count : at == best ? dy : 0;
                    continue;
                }
                count++;
                sum += x[at];
                if (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best]))) best = at;
            }
        assert_close(values[e], mean ? sum / (double)count : x[best]);
    }
    for (int64_t i = 0; i < ed_size(d); i++) assert_close(dx[i], sums[i]);
}

static void assert_pooling(bool mean, ed_dtype dtype, const pooling *p, bool with_nan)
{
    ED_SCOPE;
    ed_tensor *x = numbers(dtype, ED_SHAPE(p->batch, p->height, p->width, p->channels));
    ed_tensor *last[2], *first[2];
    for (int64_t i = 3; with_nan && i < x->size; i += 17) dtype_store(dtype, x->data, i, NAN);
    with_gradient(mean, x, p, "NHWC", last);
    assert_windows(mean, p, ed_as_doubles(x), last[0], last[1]);
    with_gradient(mean, ed_transpose(x, .perm = ED_INTS(0, 3, 1, 2)), p, "NCHW", first);
    for (int i = 0; i < 2; i++) {
        ed_tensor *same = ed_contiguous(ed_transpose(first[i], .perm = ED_INTS(0, 2, 3, 1)));
        const double *a = ed_as_doubles(same), *b = ed_as_doubles(last[i]);
        assert_int_equal(ed_size(same), ed_size(last[i]));
        for (int64_t k = 0; k < ed_size(same); k++) assert_close(a[k], b[k]);
    }
}

static const pooling poolings[] = {
    {2, 6, 70, 1, 2, 2, 1, "VALID"},  {1, 5, 37, 3, 3, 2, 1, "SAME"},
    {2, 7, 21, 35, 2, 2, 1, "VALID"}, {1, 9, 40, 2, 3, 1, 1, "SAME"},
    {1, 8, 66, 1, 2, 3, 2, "VALID"},  {2, 3, 5, 150, 2, 1, 1, "SAME"},
    {1, 12, 12, 5, 4, 4, 1, "SAME"},  {1, 4, 9, 17, 3, 2, 2, "SAME"},
    {3, 1, 33, 1, 1, 2, 1, "VALID"},  {1, 5, 64, 6, 5, 5, 1, "VALID"},
};

static void windows_of_all_kinds(void **state)
{
    (void)state;
    const int best = isa_level;
    for (int level = 0; level <= isa_best(); level++) {
        isa_set(level);
        for (size_t i = 0; i < sizeof poolings / sizeof *poolings; i++)
            for (int k = 0; k < 4; k++)
                assert_pooling(k & 1, k & 2 ? ED_FLOAT64 : ED_FLOAT32, &poolings[i], false);
    }
    isa_set(best);
}

static void widths_of_all_tails(void **state)
{
    (void)state;
    const int best = isa_level;
    for (int level = 0; level <= isa_best(); level++) {
        isa_set(level);
        for (int64_t n = 2; n < 70; n++)
            for (int64_t stride = 1; stride <= 3; stride++) {
                assert_pooling(n & 1, ED_FLOAT32, &(pooling){1, 3, n, 1, 2, stride, 1, "SAME"},
                               false);
                assert_pooling(!(n & 1), ED_FLOAT32, &(pooling){1, 3, 4, n, 2, stride, 1, "VALID"},
                               false);
            }
    }
    isa_set(best);
}

static void a_nan_is_the_largest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof poolings / sizeof *poolings; i++)
        assert_pooling(false, ED_FLOAT32, &poolings[i], true);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    const int before_ = ed_num_threads();
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(2, 41, 43, 140)), *one[2], *now[2];
    for (int64_t stride = 1; stride <= 3; stride++)
        for (int k = 0; k < 4; k++)
            for (int threads = 1; threads <= 3; threads++) {
                const pooling p = {.window = 2, .stride = stride, .dilation = 1, .padding = "SAME"};
                ed_set_num_threads(threads);
                with_gradient(k & 1, x, &p, k & 2 ? "NCHW" : "NHWC", now);
                if (threads == 1) memcpy(one, now, sizeof now);
                for (int i = 0; i < 2; i++) assert_same_tensor(one[i], now[i]);
            }
    ed_set_num_threads(before_);
}

static void without_elements(void **state)
{
    (void)state;
    ED_SCOPE;
    const pooling p = {.window = 3, .stride = 1, .dilation = 1, .padding = "VALID"};
    ed_tensor *to[2];
    for (int mean = 0; mean < 2; mean++) {
        with_gradient(mean, ed_zeros(ED_SHAPE(0, 4, 4, 2)), &p, "NHWC", to);
        assert_int_equal(ed_size(to[1]), 0);
        with_gradient(mean, ed_ones(ED_SHAPE(1, 2, 2, 2)), &p, "NHWC", to);
        assert_int_equal(ed_size(to[0]), 0);
        assert_int_equal(ed_size(to[1]), 8);
        for (int i = 0; i < 8; i++) assert_close(ed_as_doubles(to[1])[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_all_kinds), cmocka_unit_test(widths_of_all_tails),
        cmocka_unit_test(a_nan_is_the_largest), cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(without_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
