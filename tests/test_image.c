/* Images: what TensorFlow 2.21 gives, and what is refused. */
#include "eddy.h"
#include "tests/asserts.h"
#include <math.h>

/* x [3, 4, 1]: 0, 1, 2^1.5, 3^1.5, ... */
static ed_tensor *powers(void)
{
    return ed_reshape(ed_pow(ed_range(0, 12, .dtype = ED_FLOAT32), 1.5), ED_SHAPE(3, 4, 1));
}

static ed_tensor *floats(const float *values, ed_ints shape)
{
    return ed_constant_of(ED_FLOAT32, values, shape);
}

/* Two pixels, [1, 2, 3]. */
static ed_tensor *pixels(void)
{
    return ed_constant(ED_VALUES(uint8_t, 10, 200, 30, 250, 128, 0), ED_SHAPE(1, 2, 3));
}

#define assert_close(y, tolerance, ...)                                                            \
    do {                                                                                           \
        const ed_tensor *y_ = y;                                                                   \
        assert_fine();                                                                             \
        ed_close_report r_;                                                                        \
        if (!ed_all_close(y_, floats((const float[]){__VA_ARGS__}, ed_shape(y_)), 1e-5, tolerance, \
                          &r_))                                                                    \
            fail_msg("%s", r_.text);                                                               \
    } while (0)

static void resized(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = powers();
    const ed_ints size = ED_INTS(2, 3);
#define assert_method(name, ...)                                                                   \
    assert_close(ed_resize(x, size, .method = name, .antialias = true), 1e-5, __VA_ARGS__)
    assert_method("bilinear", 3.54528856f, 6.0483737f, 9.31862259f, 18.3197861f, 23.1716099f,
                  28.4055042f);
    assert_method("nearest", 0, 2.82842708f, 5.19615221f, 22.6274166f, 31.622776f, 36.482872f);
    assert_method("bicubic", 2.50039625f, 5.0754261f, 8.57280922f, 18.5829868f, 24.0065784f,
                  29.8523674f);
    assert_method("area", 3.09836173f, 5.58902264f, 8.9242897f, 18.7454033f, 23.8538055f,
                  29.3667068f);
    assert_method("lanczos3", 1.93130195f, 4.47765827f, 8.0376873f, 18.781559f, 24.4093075f,
                  30.4764595f);
    assert_method("lanczos5", 1.73344648f, 4.23129225f, 7.78853321f, 18.9255371f, 24.57407f,
                  30.6713104f);
    assert_method("gaussian", 4.6058836f, 7.20968485f, 10.421216f, 17.5461159f, 22.0895653f,
                  26.9663258f);
    assert_method("mitchellcubic", 3.49022365f, 6.10191917f, 9.47399235f, 18.0415154f, 23.0380821f,
                  28.4148388f);
    assert_close(ed_resize(x, ED_INTS(2, 6)), 1e-5, 2, 2.77254248f, 3.92016339f, 5.42047691f,
                 7.16136694f, 8.52717972f, 18.970562f, 21.0078239f, 23.7694588f, 26.6669464f,
                 29.6917686f, 31.992218f);
    /* Bytes become floats, but for nearest. */
    assert_int_equal(ed_dtype_of(ed_resize(pixels(), size)), ED_FLOAT32);
    assert_int_equal(ed_dtype_of(ed_resize(pixels(), size, .method = "nearest")), ED_UINT8);
}

/* A result that is too large for the caches goes past them, with the bits of its images by
 * themselves, which do not. */
static void resized_past_the_caches(void **state)
{
    (void)state;
    const ed_ints sizes[] = {ED_INTS(97, 480), ED_INTS(97, 6400)};
    const char *methods[] = {"bilinear", "bicubic", "bilinear"};
    const int before = ed_num_threads();
    for (int i = 0; i < 9; i++) {
        ED_SCOPE;
        const int kind = i / 3, wide = kind == 1;
        const ed_ints size = sizes[wide];
        assert_true(ed_set_num_threads(1 + i % 3));
        ed_tensor *x = ed_random_uniform(ED_SHAPE(4, 50, size.values[1] / 2, wide ? 3 : 40),
                                         .dtype = kind == 2 ? ED_FLOAT64 : ED_FLOAT32);
        ed_tensor *whole = ed_resize(x, size, .method = methods[kind]);
        for (int64_t n = 0; n < 4; n++) {
            ed_tensor *one = ed_slice(x, .begin = ED_INTS(n), .end = ED_INTS(n + 1));
            assert_same_tensor(ed_slice(whole, .begin = ED_INTS(n), .end = ED_INTS(n + 1)),
                               ed_resize(one, size, .method = methods[kind]));
        }
    }
    ed_set_num_threads(before);
}

static void cropped(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *boxes = floats((float[]){.1f, .2f, .9f, .7f, .8f, -.2f, .1f, .5f}, ED_SHAPE(2, 4));
    ed_tensor *image = ed_expand_dims(powers(), 0), *of = ed_zeros(ED_SHAPE(2), .dtype = ED_INT32);
    assert_close(ed_crop_and_resize(image, boxes, of, ED_INTS(2, 3), .extrapolation_value = -1),
                 1e-4, 2.46164083f, 3.79418969f, 5.46801376f, 22.182415f, 25.376606f, 28.7028809f,
                 -1, 18.5295086f, 22.762289f, -1, 2.24623084f, 4.11909914f);
    /* A box that is the whole image ends at its last pixel, whatever the sizes. */
    for (int64_t n = 2; n < 60; n++) {
        ed_tensor *whole = floats((float[]){0, 0, 1, 1}, ED_SHAPE(1, 4));
        ed_tensor *y = ed_crop_and_resize(ed_ones(ED_SHAPE(1, n, 2 * n, 1)), whole,
                                          ed_zeros(ED_SHAPE(1), .dtype = ED_INT32),
                                          ED_INTS(61 - n, n + 3), .extrapolation_value = -9);
        assert_true(ed_item(ed_reduce_min(y)) > 0.999);
    }
    ed_tensor *two = ed_ones(ED_SHAPE(2), .dtype = ED_INT32);
    assert_fails(ed_crop_and_resize(image, boxes, two, ED_INTS(2, 3)), ED_OUT_OF_RANGE,
                 "index 1 at position 0 is out of bounds");
}

static void colored(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = floats((float[]){.2f, .5f, .9f, .7f, .1f, .4f, .3f, .3f, .3f}, ED_SHAPE(3, 3));
    assert_close(ed_rgb_to_hsv(x), 1e-6, 0.59523809f, 0.777777791f, 0.899999976f, 0.916666627f,
                 0.857142806f, 0.699999988f, 0, 0, 0.3f);
    assert_close(ed_hsv_to_rgb(ed_rgb_to_hsv(x)), 1e-6, .2f, .5f, .9f, .7f, .1f, .4f, .3f, .3f,
                 .3f);
    assert_close(ed_adjust_hue(x, .3), 1e-6, .9f, .2f, .64f, .52f, .7f, .1f, .3f, .3f, .3f);
    assert_close(ed_adjust_saturation(x, .5), 1e-6, .55f, .7f, .9f, .7f, .4f, .55f, .3f, .3f, .3f);
    ed_tensor *u = pixels();
    assert_close(ed_adjust_contrast(u, .5), 0, 70, 182, 22, 190, 146, 7);
    assert_close(ed_adjust_brightness(u, .2), 0, 61, 251, 81, 255, 179, 51);
    assert_close(ed_adjust_gamma(u, .gamma = 2.2, .gain = .9), 0, 0, 134, 2, 220, 50, 0);
    assert_close(ed_rgb_to_grayscale(u), 0, 124, 150);
    assert_close(ed_adjust_hue(u, -.25), 0, 200, 125, 10, 250, 0, 247);
    assert_close(ed_adjust_saturation(u, 1.7), 0, 0, 200, 21, 250, 128, 0);
    assert_fails(ed_rgb_to_hsv(powers()), ED_INVALID_ARGUMENT, "x must be [..., 3], got");
}

static void measured(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_div(powers(), 40.0), *y = ed_sin(ed_mul(powers(), 3.0));
    assert_close(ed_per_image_standardization(pixels()), 1e-6, -0.96067065f, 1.00198984f,
                 -0.754074812f, 1.51847935f, 0.258244783f, -1.06396854f);
    assert_close(ed_psnr(x, y, 1), 1e-5, 1.72767913f);
    assert_close(ed_ssim(x, y, 1, .filter_size = 3), 1e-5, -0.056927897f);
    assert_close(ed_psnr(x, x, 1), 0, INFINITY);
    assert_fails(ed_ssim(x, y, 1), ED_INVALID_ARGUMENT, "filter_size is 11; images, here 3 by 4");
}

static ed_tensor *hue(ed_tensor *x)
{
    return ed_adjust_hue(x, 0.4);
}
static ed_tensor *saturation(ed_tensor *x)
{
    return ed_adjust_saturation(x, 1.4);
}
static ed_tensor *dilation(ed_tensor *x)
{
    ed_tensor *filters = ed_slice(x, .end = ED_INTS(1, 3, 2));
    return ed_dilation2d(x, ed_squeeze(filters, .axis = ED_AXES(0)), .padding = "SAME");
}
static ed_tensor *erosion(ed_tensor *x)
{
    ed_tensor *filters = ed_slice(x, .end = ED_INTS(1, 2, 3));
    return ed_erosion2d(x, ed_squeeze(filters, .axis = ED_AXES(0)), .strides = ED_INTS(2, 1));
}
static ed_tensor *largest(ed_tensor *x)
{
    return ed_adaptive_max_pool2d(x, .output_size = ED_INTS(4, 5));
}

/* What takes another way while a tape listens gives the same bits, of few channels and of many. */
static void taped_or_not(void **state)
{
    (void)state;
    ed_tensor *(*const ops[])(ed_tensor * x) = {hue, saturation, dilation, erosion, largest};
    for (int i = 0; i < 5; i++)
        for (int64_t channels = 3; channels < (i < 2 ? 4 : 50); channels += 31) {
            ED_SCOPE;
            ed_tensor *x =
                ed_random_uniform(ED_SHAPE(2, 8, 20, channels), .low = -0.2, .high = 1.1);
            ed_tensor *y = ops[i](x);
            ed_tape *tape = ed_tape_begin();
            ed_watch(tape, x);
            assert_same_tensor(ops[i](x), y);
            ed_tape_stop(tape);
        }
}

/* A pixel does not count in its own place, nor equal ones anywhere. */
static void edges(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *same = ed_full(ED_SHAPE(1, 4, 50, 3), 0.1);
    assert_same_tensor(ed_sobel_edges(same), ed_zeros(ED_SHAPE(1, 4, 50, 3, 2)));
    const float one[] = {1, 2, 4, 3, NAN, 5, 9, 6, 8};
    const double *y = ed_as_doubles(ed_sobel_edges(floats(one, ED_SHAPE(1, 3, 3, 1))));
    assert_true(y[8] == 20 && y[9] == 6);
    assert_true(isnan(y[2]) && y[3] == 10);
}

static void suppressed(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *boxes =
        floats((float[]){0, 0, 1, 1, 0, .1f, 1, 1.1f, 0, .5f, 1, 1.5f, 2, 2, 3, 3}, ED_SHAPE(4, 4));
    ed_tensor *scores = floats((float[]){.9f, .8f, .7f, .6f}, ED_SHAPE(4)), *kept;
    assert_close(ed_non_max_suppression(boxes, scores, 3), 0, 0, 2, 3);
    assert_close(ed_non_max_suppression_with_scores(boxes, scores, 4, &kept, .iou_threshold = 1,
                                                    .score_threshold = .1, .soft_nms_sigma = .5),
                 0, 0, 2, 3, 1);
    assert_close(kept, 1e-6, 0.9f, 0.626387477f, 0.6f, 0.340875357f);
    assert_close(ed_non_max_suppression_padded(boxes, scores, 6, &kept), 0, 0, 2, 3);
    assert_close(kept, 0, 3);
}

/* Two images of the same boxes, in another order; two classes, in another order of their scores. */
static void suppressed_in_batches(void **state)
{
    (void)state;
    ED_SCOPE;
    static const float all[] = {0, 0, 1, 1, 0, .1f, 1, 1.1f, 0, .5f, 1, 1.5f, 2, 2, 3, 3,
                                2, 2, 3, 3, 0, .5f, 1, 1.5f, 0, .1f, 1, 1.1f, 0, 0, 1, 1},
                       of[] = {.9f, .6f,  .8f, .7f, .7f, .8f, .6f,  .9f,
                               .9f, .06f, .4f, .7f, .7f, .4f, .06f, .9f};
    ed_tensor *boxes = floats(all, ED_SHAPE(2, 4, 4)), *both = floats(of, ED_SHAPE(2, 4, 2)), *n,
              *kept, *classes;
    ed_tensor *first = ed_squeeze(ed_slice(both, .end = ED_SHAPE(2, 4, 1)));
    assert_close(ed_non_max_suppression_padded(boxes, first, 6, &n, .score_threshold = .2,
                                               .pad_to_max_output_size = true),
                 0, 0, 2, 3, 0, 0, 0, 0, 2, 1, 0, 0, 0);
    assert_close(n, 0, 3, 3);
    boxes = ed_expand_dims(boxes, 2);
    assert_close(ed_combined_non_max_suppression(boxes, both, 3, 5, &kept, &classes, &n,
                                                 .score_threshold = .2),
                 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, .5f, 1, 1, 0, .5f, 1, 1, 0, .1f, 1, 1, 1, 1, 1, 1, 0,
                 0, 1, 1, 0, .1f, 1, 1, 0, .5f, 1, 1, 0, .5f, 1, 1);
    assert_close(kept, 0, .9f, .9f, .8f, .7f, .7f, .9f, .9f, .7f, .7f, .4f);
    assert_close(classes, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0);
    assert_close(n, 0, 5, 5);
    assert_close(ed_combined_non_max_suppression(boxes, both, 2, 5, &kept, &classes, &n,
                                                 .pad_per_class = true, .clip_boxes = false),
                 0, 0, 0, 1, 1, 2, 2, 3, 3, 0, .5f, 1, 1.5f, 0, .5f, 1, 1.5f, 2, 2, 3, 3, 0, 0, 1,
                 1, 0, .1f, 1, 1.1f, 0, .5f, 1, 1.5f);
    assert_close(kept, 0, .9f, .9f, .8f, .7f, .9f, .9f, .7f, .7f);
    assert_close(classes, 0, 0, 1, 1, 0, 0, 1, 0, 1);
    assert_close(n, 0, 4, 4);
    assert_fails(ed_non_max_suppression_padded(boxes, both, 6, &n), ED_INVALID_ARGUMENT,
                 "boxes must be [..., n, 4]");
    assert_null(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(resized, check_end),
        cmocka_unit_test_teardown(resized_past_the_caches, check_end),
        cmocka_unit_test_teardown(cropped, check_end),
        cmocka_unit_test_teardown(colored, check_end),
        cmocka_unit_test_teardown(measured, check_end),
        cmocka_unit_test_teardown(taped_or_not, check_end),
        cmocka_unit_test_teardown(edges, check_end),
        cmocka_unit_test_teardown(suppressed, check_end),
        cmocka_unit_test_teardown(suppressed_in_batches, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
