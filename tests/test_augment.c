/* Layers that change images in ways that are drawn: what holds whatever is drawn. */
#include "nn/nn.h"
#include "tests/asserts.h"
#include <math.h>

static ed_tensor *images(int64_t n, int64_t h, int64_t w, int64_t channels)
{
    return ed_random_uniform(ED_SHAPE(n, h, w, channels), .low = 1, .high = 254);
}

static bool same(ed_tensor *a, ed_tensor *b)
{
    assert_fine();
    return ed_item(ed_reduce_all(ed_equal(a, b))) != 0;
}

static double sum(ed_tensor *x)
{
    assert_fine();
    return ed_item(ed_reduce_sum(ed_cast(x, ED_FLOAT64)));
}

/* In training the image changes, differently from call to call, and keeps its shape and range. */
static void changes(ed_layer *layer, ed_tensor *x)
{
    assert_true(same(ed_forward(layer, x), x));
    ed_tensor *a = ed_forward(layer, x, .training = true),
              *b = ed_forward(layer, x, .training = true);
    if (same(a, x) || same(a, b)) fail_msg("%s: nothing changes", ed_kind_of(layer)->name);
    assert_true(ed_item(ed_reduce_min(a)) >= -1e-3 && ed_item(ed_reduce_max(a)) <= 255.001);
}

static const ed_floats always = {(const double[]){1, 1}, 2};

static void all_change(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(3);
    ed_tensor *x = images(4, 24, 20, 3);
    changes(ed_layer_random_posterization(ED_INTS(7)), x);
    changes(ed_layer_random_gaussian_blur(.factor = always, .sigma = ED_FLOATS(0.5, 1)), x);
    changes(ed_layer_random_erasing(.factor = always), x);
    changes(ed_layer_random_perspective(.factor = always), x);
    changes(ed_layer_random_elastic_transform(.factor = always, .scale = ED_FLOATS(0.5, 1)), x);
    changes(ed_layer_random_color_jitter(.brightness_factor = ED_FLOATS(0.3),
                                         .contrast_factor = ED_FLOATS(0.3)),
            x);
    changes(ed_layer_mix_up(), x);
    changes(ed_layer_cut_mix(), x);
    changes(ed_layer_rand_augment(), x);
    changes(ed_layer_aug_mix(), x);
}

static void seeds(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = images(3, 8, 8, 3), *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = ed_forward(ed_layer_rand_augment(.generator = ed_generator_from_seed(5)), x,
                          .training = true);
    assert_true(same(y[0], y[1]));
}

/* Shares of images and labels are the same: a label that is the image's only value stays so. */
static void labels(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(7);
    ed_tensor *y = ed_reshape(ed_range(0, 64, .dtype = ED_FLOAT32), ED_SHAPE(64, 1));
    ed_tensor *x = ed_broadcast_to(ed_reshape(y, ED_SHAPE(64, 1, 1, 1)), ED_SHAPE(64, 4, 4, 2));
    ed_list *mixed = ed_forward(ed_layer_mix_up(.alpha = 0.7), ed_list_of(x, y), .training = true);
    ed_tensor *mean = ed_reduce_mean(ed_list_get(mixed, 0), .axis = ED_AXES(1, 2, 3));
    ed_tensor *off = ed_sub(ed_expand_dims(mean, 1), ed_list_get(mixed, 1));
    assert_true(ed_item(ed_reduce_max(ed_abs(off))) < 1e-4);
    assert_false(same(ed_list_get(mixed, 1), y));

    /* Rectangles end between pixels: their share is right on the average. */
    x = ed_broadcast_to(ed_reshape(y, ED_SHAPE(64, 1, 1, 1)), ED_SHAPE(64, 40, 40, 1));
    mixed = ed_forward(ed_layer_cut_mix(), ed_list_of(x, y), .training = true);
    mean = ed_reduce_mean(ed_list_get(mixed, 0), .axis = ED_AXES(1, 2, 3));
    off = ed_sub(ed_expand_dims(mean, 1), ed_list_get(mixed, 1));
    assert_true(ed_item(ed_reduce_max(ed_abs(off))) < 64 * 0.06);
    assert_false(same(ed_list_get(mixed, 1), y));
    assert_fails(ed_forward(ed_layer_mix_up(), ed_list_of(x, ed_ones(ED_SHAPE(3, 1)))),
                 ED_INVALID_ARGUMENT, "labels must be [batch, ...]");
}

/* A rectangle of the share: with scale s its sides are roots of s. */
static void rectangles(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(9);
    ed_tensor *x = ed_ones(ED_SHAPE(50, 40, 40, 1));
    ed_layer *layer = ed_layer_random_erasing(.factor = always, .scale = ED_FLOATS(0.25, 0.25),
                                              .fill_value = ED_FLOATS(0));
    ed_tensor *y = ed_forward(layer, x, .training = true);
    assert_true(sum(y) == 50 * (1600 - 400));
    ed_tensor *rows = ed_reduce_min(y, .axis = ED_AXES(2, 3)),
              *columns = ed_reduce_min(y, .axis = ED_AXES(1, 3));
    assert_true(sum(rows) == 50 * 20 && sum(columns) == 50 * 20);
    layer = ed_layer_random_erasing(.factor = ED_FLOATS(0.5, 0.5), .scale = always,
                                    .fill_value = ED_FLOATS(0));
    x = ed_ones(ED_SHAPE(400, 1, 1, 1));
    const double left = sum(ed_forward(layer, x, .training = true));
    assert_true(left > 150 && left < 250);
}

/* The new places of the corners show the image's corners; lines stay lines. */
static void perspective(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(1);
    ed_tensor *x = ed_ones(ED_SHAPE(20, 30, 30, 1));
    ed_layer *layer = ed_layer_random_perspective(.factor = always, .scale = 0.2);
    ed_tensor *y = ed_forward(layer, x, .training = true);
    const double share = sum(y) / (20 * 900);
    assert_true(share > 0.7 && share <= 1 + 1e-6);
    layer = ed_layer_random_perspective(.factor = always, .fill_value = 1);
    ed_tensor *off = ed_sub(ed_forward(layer, x, .training = true), 1.0);
    assert_true(ed_item(ed_reduce_max(ed_abs(off))) < 1e-5);
}

/* Where a point of the unit square is, if its corners (0, 0), (1, 0), (0, 1), (1, 1) are those:
 * Heckbert, Fundamentals of Texture Mapping, 2.2.3. */
static void in_quadrilateral(const double corner[4][2], double u, double v, double at[2])
{
    double d1[2], d2[2], sum[2];
    for (int k = 0; k < 2; k++) {
        d1[k] = corner[1][k] - corner[3][k];
        d2[k] = corner[2][k] - corner[3][k];
        sum[k] = corner[0][k] - corner[1][k] + corner[3][k] - corner[2][k];
    }
    const double area = d1[0] * d2[1] - d1[1] * d2[0];
    const double g = (sum[0] * d2[1] - sum[1] * d2[0]) / area,
                 h = (d1[0] * sum[1] - d1[1] * sum[0]) / area;
    for (int k = 0; k < 2; k++)
        at[k] = ((corner[1][k] - corner[0][k] + g * corner[1][k]) * u +
                 (corner[2][k] - corner[0][k] + h * corner[2][k]) * v + corner[0][k]) /
                (g * u + h * v + 1);
}

/* The image has its own coordinates as pixels: each that is seen in the result, taken to where the
 * moved corners put it, is at the place where it is seen. */
static void corners(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 5, H = 17, W = 23 };
    float pixels[H][W][3];
    for (int i = 0; i < H * W; i++) {
        float *p = pixels[i / W][i % W];
        p[0] = (float)(i % W), p[1] = (float)(i / W), p[2] = 1;
    }
    ed_tensor *x = ed_constant_of(ED_FLOAT32, pixels, ED_SHAPE(1, H, W, 3));
    x = ed_broadcast_to(x, ED_SHAPE(N, H, W, 3));
    ed_layer *layer = ed_layer_random_perspective(.factor = always, .scale = 0.6,
                                                  .generator = ed_generator_from_seed(11));
    ed_tensor *y = ed_forward(layer, x, .training = true);
    ed_generator *same_draws = ed_generator_from_seed(11);
    ed_random_uniform(ED_SHAPE(N, 1, 1, 1), .generator = same_draws); /* which are changed */
    const float *u = ed_data(ed_random_uniform(ED_SHAPE(N, 4, 2), .low = -0.3, .high = 0.3,
                                               .generator = same_draws)),
                *seen = ed_data(y);
    assert_fine();
    int checked = 0;
    for (int n = 0; n < N; n++) {
        double moved[4][2], at[2];
        for (int c = 0; c < 4; c++) {
            moved[c][0] = c % 2 * (W - 1) * (1 + u[n * 8 + c * 2]);
            moved[c][1] = c / 2 * (H - 1) * (1 + u[n * 8 + c * 2 + 1]);
        }
        for (int i = 0; i < H * W; i++) {
            const float *p = seen + (n * H * W + i) * 3;
            if (fabsf(p[2] - 1) > 1e-6) continue; /* partly from outside */
            in_quadrilateral(moved, p[0] / (W - 1), p[1] / (H - 1), at);
            assert_true(fabs(at[0] - i % W) < 2e-3 && fabs(at[1] - i / W) < 2e-3);
            checked++;
        }
    }
    assert_true(checked > N * H * W / 2);
}

static void refused(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_fails(ed_layer_random_gaussian_blur(.kernel_size = ED_INTS(4)), ED_INVALID_ARGUMENT,
                 "kernel_size must be odd, got 4");
    assert_fails(ed_layer_random_posterization(ED_INTS(5, 3)), ED_INVALID_ARGUMENT,
                 "factor must be [lower, upper]");
    assert_fails(
        ed_layer_contrast_limited_adaptive_histogram_equalization(.tile_grid_size = ED_INTS(3)),
        ED_INVALID_ARGUMENT, "tile_grid_size must be 2 numbers");
    assert_fails(ed_forward(ed_layer_contrast_limited_adaptive_histogram_equalization(),
                            ed_ones(ED_SHAPE(1, 3, 3, 1))),
                 ED_INVALID_ARGUMENT, "tiles are too many");
    assert_fails(ed_forward(ed_layer_contrast_limited_adaptive_histogram_equalization(
                                    .tile_grid_size = ED_INTS(INT64_MAX, 1)),
                            ed_ones(ED_SHAPE(1, 3, 3, 1))),
                 ED_INVALID_ARGUMENT, "9223372036854775807 x 1 tiles are too many");
    assert_fails(ed_forward(ed_layer_random_erasing(.fill_value = ED_FLOATS(1, 2)),
                            ed_ones(ED_SHAPE(1, 3, 3, 3)), .training = true),
                 ED_INVALID_ARGUMENT, "fill_value must be 1 number or 3");
    assert_ptr_equal(ed_kind_find("layer", "CLAHE"),
                     ed_kind_find("layer", "contrast_limited_adaptive_histogram_equalization"));
}

#define TEST(name) cmocka_unit_test_teardown(name, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(all_change), TEST(seeds),       TEST(labels),
                                       TEST(rectangles), TEST(perspective), TEST(corners),
                                       TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
