/* Layers that change images in ways that are drawn: what holds whatever is drawn. */
#include "nn/nn.h"
#include "tests/asserts.h"

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
                                       TEST(rectangles), TEST(perspective), TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
