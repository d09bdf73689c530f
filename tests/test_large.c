/*
 * Results that go past the caches have the bits of those that don't: of ops for which the parts
 * along the first axis do not know of each other, in every instruction set.
 */
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include "tensor/copy.h"

enum { PARTS = 3 };

typedef struct op_case {
    const char *name;
    ed_tensor *(*run)(ed_tensor *x);
    ed_dtype dtype;
    int64_t shape[3]; /* of a part */
} op_case;

static ed_tensor *cumsum_down(ed_tensor *x)
{
    return ed_cumsum(x, .axis = 1);
}
static ed_tensor *cumsum_up(ed_tensor *x)
{
    return ed_cumsum(x, .axis = 1, .reverse = true, .exclusive = true);
}
static ed_tensor *cumsum_along(ed_tensor *x)
{
    return ed_cumsum(x, .axis = -1);
}
static ed_tensor *cumsum_back(ed_tensor *x)
{
    return ed_cumsum(x, .axis = -1, .reverse = true);
}
static ed_tensor *cummin_up(ed_tensor *x)
{
    return ed_cummin(x, .axis = 1, .reverse = true);
}

static ed_tensor *clipped(ed_tensor *x)
{
    return ed_clip(x, -50, 50);
}
static ed_tensor *above(ed_tensor *x)
{
    return ed_threshold(x, 3, -1);
}
static ed_tensor *bounded(ed_tensor *x)
{
    return ed_bounded_relu(x, .negative_slope = 0.5, .max_value = 20, .threshold = 1);
}
static ed_tensor *made_finite(ed_tensor *x)
{
    return ed_nan_to_num(ed_div(x, ed_maximum(x, 0)));
}
static ed_tensor *to_half(ed_tensor *x)
{
    return ed_cast(x, ED_FLOAT16);
}
static ed_tensor *to_bfloat(ed_tensor *x)
{
    return ed_cast(x, ED_BFLOAT16);
}
static ed_tensor *three_times(ed_tensor *x)
{
    return ed_add_n(ed_list_of(x, x, x));
}
static ed_tensor *each_twice(ed_tensor *x)
{
    return ed_repeat(x, 2, .axis = ED_AXES(-1));
}
static ed_tensor *turned(ed_tensor *x)
{
    return ed_contiguous(ed_transpose(ed_reverse(x, ED_INTS(2)), .perm = ED_AXES(0, 2, 1)));
}
static ed_tensor *some_columns(ed_tensor *x)
{
    return ed_contiguous(ed_slice(x, .begin = ED_INTS(0, 1, 3)));
}
static ed_tensor *some_slices(ed_tensor *x)
{
    ed_tensor *indices = ed_floor_mod(ed_mul(ed_range(0, 2 * ed_dim(x, 1)), 7), ed_dim(x, 1));
    return ed_gather(x, ed_cast(indices, ED_INT64), .axis = 1);
}

/* x as images of three channels, with values from 0 to 1. */
static ed_tensor *colors(ed_tensor *x)
{
    const int64_t *s = ed_shape(x).values;
    return ed_mul(ed_add(ed_reshape(x, ED_SHAPE(s[0], s[1], s[2] / 3, 3)), 100), 0.005);
}
static ed_tensor *sobel(ed_tensor *x)
{
    return ed_sobel_edges(colors(x));
}
static ed_tensor *hsv(ed_tensor *x)
{
    return ed_rgb_to_hsv(colors(x));
}
static ed_tensor *rgb(ed_tensor *x)
{
    return ed_hsv_to_rgb(colors(x));
}
static ed_tensor *yuv(ed_tensor *x)
{
    return ed_rgb_to_yuv(colors(x));
}
static ed_tensor *hue(ed_tensor *x)
{
    return ed_adjust_hue(colors(x), 0.3);
}
static ed_tensor *saturation(ed_tensor *x)
{
    return ed_adjust_saturation(colors(x), 0.7);
}
static ed_tensor *contrast(ed_tensor *x)
{
    return ed_adjust_contrast(colors(x), 0.7);
}
static ed_tensor *three_greys(ed_tensor *x)
{
    return ed_grayscale_to_rgb(ed_expand_dims(x, -1));
}
static ed_tensor *responses(ed_tensor *x)
{
    return ed_local_response_normalization(x, .beta = 0.75);
}
static ed_tensor *dilated(ed_tensor *x)
{
    return ed_dilation2d(colors(x), ed_zeros(ED_SHAPE(3, 3, 3)), .padding = "SAME");
}

static const op_case cases[] = {
    {"cumsum of columns", cumsum_down, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of columns, doubles", cumsum_down, ED_FLOAT64, {2, 301, 1200}},
    {"cumsum of columns, backwards", cumsum_up, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of columns, integers", cumsum_up, ED_INT32, {1, 1030, 1360}},
    {"cumsum of many columns", cumsum_down, ED_FLOAT32, {1, 70, 20000}},
    {"cumsum of rows", cumsum_along, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of rows, doubles", cumsum_along, ED_FLOAT64, {1, 515, 1368}},
    {"cumsum of rows, backwards", cumsum_back, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of rows, doubles backwards", cumsum_back, ED_FLOAT64, {1, 515, 1368}},
    {"sobel_edges", sobel, ED_FLOAT32, {2, 300, 1344}},
    {"sobel_edges, doubles", sobel, ED_FLOAT64, {1, 300, 1344}},
    {"sobel_edges of odd rows", sobel, ED_FLOAT32, {2, 300, 1341}},
    {"rgb_to_hsv", hsv, ED_FLOAT32, {2, 601, 1341}},
    {"hsv_to_rgb, doubles", rgb, ED_FLOAT64, {1, 601, 1341}},
    {"rgb_to_yuv", yuv, ED_FLOAT32, {2, 601, 1341}},
    {"adjust_hue", hue, ED_FLOAT32, {2, 601, 1341}},
    {"adjust_saturation", saturation, ED_FLOAT32, {2, 601, 1341}},
    {"adjust_contrast", contrast, ED_FLOAT32, {2, 601, 1341}},
    {"grayscale_to_rgb", three_greys, ED_FLOAT32, {1, 601, 901}},
    {"local_response_normalization", responses, ED_FLOAT32, {2, 60, 13440}},
    {"local_response_normalization of doubles", responses, ED_FLOAT64, {1, 6300, 136}},
    {"dilation2d", dilated, ED_FLOAT32, {2, 601, 1341}},
    {"cummin of bytes", cummin_up, ED_UINT8, {1, 2060, 2880}},
    {"clip", clipped, ED_FLOAT32, {1, 1031, 1361}},
    {"clip of integers", clipped, ED_INT32, {1, 1031, 1361}},
    {"threshold", above, ED_FLOAT64, {1, 517, 1361}},
    {"bounded_relu", bounded, ED_FLOAT32, {1, 1031, 1361}},
    {"nan_to_num", made_finite, ED_FLOAT32, {1, 1031, 1361}},
    {"cast to float16", to_half, ED_FLOAT32, {1, 2063, 1361}},
    {"cast to bfloat16", to_bfloat, ED_FLOAT64, {1, 2063, 1361}},
    {"add_n", three_times, ED_FLOAT32, {1, 1031, 1361}},
    {"repeat", each_twice, ED_FLOAT32, {1, 1031, 681}},
    {"transposed backwards", turned, ED_FLOAT32, {1, 1031, 1361}},
    {"rows that are cut", some_columns, ED_FLOAT64, {1, 520, 1361}},
    {"gather of long slices", some_slices, ED_FLOAT32, {1, 517, 1361}},
};

/* Of whole numbers around 0 that every dtype holds. */
static ed_tensor *numbers(const op_case *c)
{
    const int64_t *s = c->shape;
    ed_tensor *x = ed_random_uniform(ED_SHAPE(PARTS * s[0], s[1], s[2]), .low = -100, .high = 100);
    if (c->dtype == ED_UINT8) x = ed_abs(x);
    return ed_cast(x, c->dtype);
}

/* Part i of the first axis. */
static ed_tensor *part_of(ed_tensor *x, int64_t i)
{
    const int64_t n = ed_dim(x, 0) / PARTS;
    return ed_contiguous(ed_slice(x, .begin = ED_INTS(i * n), .end = ED_INTS((i + 1) * n)));
}

static void check(const op_case *c)
{
    ED_SCOPE;
    ed_tensor *x = numbers(c), *y = c->run(x);
    assert_fine();
    const int64_t bytes = ed_size(y) * ed_dtype_size(ed_dtype_of(y));
    if (bytes < COPY_FAR_BYTES) fail_msg("%s: the result is not large", c->name);
    for (int64_t i = 0; i < PARTS; i++) {
        ED_SCOPE;
        ed_tensor *part = part_of(x, i);
        assert_same_tensor(part_of(y, i), c->run(part));
    }
}

static void parts_of_large_results(void **state)
{
    (void)state;
    const int threads = ed_num_threads();
    for (int isa = 0; isa < ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases && isa_set(isa); i++) {
            ed_set_num_threads(1 + (int)i % 3);
            check(&cases[i]);
        }
    ed_set_num_threads(threads);
    isa_set(isa_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_large_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
