/* Layers that take what they need to know from data: statistics, boundaries, vocabularies, and what
 * a checkpoint saves of them. Vocabularies and weights are those of Keras. */
#include "tests/folders.h"
#include "eddy.h"
#include <math.h>

static void assert_same(ed_tensor *a, ed_tensor *b)
{
    assert_true(a && b && ed_size(a) == ed_size(b));
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(a, b)))) < 1e-6);
}

static void assert_refused(const void *result, const char *why)
{
    assert_null(result);
    assert_non_null(strstr(ed_error(), why));
    ed_clear_error();
}

static void statistics_of_data(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_random_normal(ED_SHAPE(50, 3), .mean = 4, .stddev = 2);
    ed_layer *norm = ed_layer_normalization();
    assert_true(ed_layer_adapt(norm, x));
    ed_tensor *variance, *mean = ed_moments(ed_forward(norm, x), &variance, .axis = ED_AXES(0));
    assert_same(mean, ed_zeros(ED_SHAPE(3)));
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(variance, 1)))) < 1e-5);
    ed_layer *bins = ed_layer_discretization(.num_bins = 4);
    assert_refused(ed_forward(bins, x), "call ed_layer_adapt");
    assert_true(ed_layer_adapt(bins, ed_range(0, 8)));
    ed_tensor *y = ed_forward(bins, ed_range(0, 8));
    assert_int_equal(ed_item(ed_index(y, 0)), 0);
    assert_int_equal(ed_item(ed_index(y, 7)), 3);
    assert_refused((void *)(intptr_t)ed_layer_adapt(ed_layer_dense(2), x), "takes nothing");
}

/* ---- Vocabularies ---------------------------------------------------------------------------- */

#define LIST(type, ...)                                                                            \
    (const type[]){__VA_ARGS__}, ED_SHAPE(sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define INTEGERS(...) ed_constant_of(ED_INT64, LIST(int64_t, __VA_ARGS__))
#define FLOATS(rows, ...)                                                                          \
    ed_reshape(ed_constant_of(ED_FLOAT32, LIST(float, __VA_ARGS__)), ED_SHAPE(rows, -1))

static ed_tensor *tokens(void)
{
    static const int64_t all[60] = {7, 4,  3,  0, 0,  -3, -3, -3, -1, 6, 4, 7,  3,  4,  8,
                                    5, 4,  3,  3, 8,  0,  6,  5,  -3, 1, 7, 3,  -3, 6,  5,
                                    7, -1, -2, 7, -3, 3,  -3, 0,  2,  2, 1, -3, -3, -2, -3,
                                    5, 3,  4,  0, 4,  6,  1,  2,  8,  6, 8, 1,  5,  8,  4};
    return ed_constant_of(ED_INT64, all, ED_SHAPE(12, 5));
}

#define ADAPTED(...)                                                                               \
    ({                                                                                             \
        ed_layer *layer_ = ed_layer_integer_lookup(__VA_ARGS__);                                   \
        assert_true(ed_layer_adapt(layer_, tokens()));                                             \
        layer_;                                                                                    \
    })

static void vocabularies(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_same(ed_layer_get_vocabulary(ADAPTED()),
                INTEGERS(-1, -3, 4, 3, 8, 7, 6, 5, 0, 1, 2, -2));
    assert_same(ed_layer_get_vocabulary(ADAPTED(.max_tokens = 6)), INTEGERS(-1, -3, 4, 3, 8, 7));
    ed_layer *masks = ADAPTED(.mask_token = ED_INTS(0));
    assert_same(ed_layer_get_vocabulary(masks), INTEGERS(0, -1, -3, 4, 3, 8, 7, 6, 5, 1, 2, -2));
    ed_layer *back = ADAPTED(.mask_token = ED_INTS(0), .invert = true);
    assert_same(ed_forward(back, ed_forward(masks, INTEGERS(-3, 0, 99, 2))),
                INTEGERS(-3, 0, -1, 2));
    ed_layer *given = ed_layer_integer_lookup(.vocabulary = ED_INTS(-1, 12, 36));
    assert_same(ed_layer_get_vocabulary(given), INTEGERS(-1, 12, 36));
    assert_refused(ed_layer_get_vocabulary(ed_layer_dense(1)), "no vocabulary");
    assert_refused(ed_layer_get_vocabulary(ed_layer_integer_lookup()),
                   "vocabulary is not known yet: call ed_layer_adapt");
    assert_refused((void *)(intptr_t)ed_layer_adapt(given, tokens()), "was given");
    ed_layer *strict = ADAPTED(.num_oov_indices = 0);
    assert_refused(ed_forward(strict, INTEGERS(4, 17)), "17 is not in the vocabulary");
    assert_refused(ed_layer_integer_lookup(.vocabulary = ED_INTS(3, 4, 3)), "3 comes twice");
    assert_refused(ed_layer_integer_lookup(.vocabulary = ED_INTS(3, 4), .mask_token = ED_INTS(4)),
                   "mask_token 4");
}

/* The modes that are integers in Keras. */
static void encoded_tokens(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_reshape(INTEGERS(12, 1138, 42, 0, 42, 1000, 36, -5), ED_SHAPE(2, 4));
    ed_layer *multi_hot =
        ed_layer_integer_lookup(.vocabulary = ED_INTS(12, 36, 42), .mask_token = ED_INTS(0),
                                .output_mode = "multi_hot");
    assert_same(ed_forward(multi_hot, x), FLOATS(2, 1, 1, 0, 1, 1, 0, 1, 1));
    ed_layer *count = ed_layer_integer_lookup(.vocabulary = ED_INTS(12, 36, 42), .max_tokens = 6,
                                              .pad_to_max_tokens = true, .output_mode = "count");
    assert_same(ed_forward(count, x), FLOATS(2, 2, 1, 0, 1, 0, 0, 2, 0, 1, 1, 0, 0));
    ed_layer *one_hot =
        ed_layer_integer_lookup(.vocabulary = ED_INTS(12, 36, 42), .output_mode = "one_hot");
    assert_same(ed_forward(one_hot, INTEGERS(12, 5)), FLOATS(2, 0, 1, 0, 0, 1, 0, 0, 0));
}

static void document_frequencies(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *layer = ADAPTED(.output_mode = "tf_idf", .max_tokens = 6, .mask_token = ED_INTS(2));
    ed_tensor *one_each = ed_reshape(ed_layer_get_vocabulary(layer), ED_SHAPE(1, -1));
    assert_same(ed_forward(layer, one_each),
                FLOATS(1, 1.108644, 0.998529, 1.098612, 0.998529, 1.223775, 1.223775));
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

static ed_checkpoint *checkpoint_of(ed_layer *layer)
{
    return ed_checkpoint("model", layer);
}

/* What was adapted goes into a layer that was not, and into one that was adapted to as much. */
static void check_restored(ed_layer *adapted, ed_layer *fresh, ed_layer *other, ed_tensor *x)
{
    ed_tensor *expected = ed_forward(adapted, x);
    assert_non_null(expected);
    const char *path = in_folder("adapted");
    assert_true(ed_checkpoint_write(checkpoint_of(adapted), path));
    assert_true(ed_checkpoint_read(checkpoint_of(fresh), path));
    assert_same(ed_forward(fresh, x), expected);
    assert_true(ed_checkpoint_read(checkpoint_of(other), path));
    assert_same(ed_forward(other, x), expected);
}

static void adapted_layers_are_restored(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_random_normal(ED_SHAPE(50, 3), .mean = 4), *y = ed_mul(x, x);
    ed_layer *norm[3], *bins[3];
    for (int i = 0; i < 3; i++) {
        norm[i] = ed_layer_normalization(.name = "norm");
        bins[i] = ed_layer_discretization(.num_bins = 5, .name = "bins");
        if (i == 1) continue;
        assert_true(ed_layer_adapt(norm[i], i ? y : x));
        assert_true(ed_layer_adapt(bins[i], i ? y : x));
    }
    check_restored(norm[0], norm[1], norm[2], x);
    check_restored(bins[0], bins[1], bins[2], x);
    ed_layer *other = ADAPTED(.mask_token = ED_INTS(2), .output_mode = "tf_idf");
    assert_true(ed_layer_adapt(other, ed_add(tokens(), 2)));
    assert_true(ed_layer_adapt(other, ed_mul(tokens(), 100))); /* other sizes */
    assert_true(ed_layer_adapt(other, ed_neg(tokens())));
    check_restored(ADAPTED(.mask_token = ED_INTS(2), .output_mode = "tf_idf"),
                   ed_layer_integer_lookup(.mask_token = ED_INTS(2), .output_mode = "tf_idf"),
                   ADAPTED(.mask_token = ED_INTS(2), .output_mode = "tf_idf"), tokens());
}

/* New data count more than a checkpoint whose values still wait. */
static void adapted_after_a_restore(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("before");
    assert_true(ed_checkpoint_write(checkpoint_of(ADAPTED(.max_tokens = 4)), path));
    ed_layer *layer = ed_layer_integer_lookup();
    assert_true(ed_checkpoint_read(checkpoint_of(layer), path));
    assert_true(ed_layer_adapt(layer, INTEGERS(5, 6, 5)));
    assert_same(ed_layer_get_vocabulary(layer), INTEGERS(-1, 5, 6));
    assert_same(ed_forward(layer, INTEGERS(6, 4)), INTEGERS(2, 0));
    ed_layer *again = ed_layer_integer_lookup();
    assert_true(ed_checkpoint_read(checkpoint_of(again), path));
    assert_same(ed_layer_get_vocabulary(again), INTEGERS(-1, -3, 4, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_of_data),
        cmocka_unit_test(vocabularies),
        cmocka_unit_test(encoded_tokens),
        cmocka_unit_test(document_frequencies),
        cmocka_unit_test(adapted_layers_are_restored),
        cmocka_unit_test(adapted_after_a_restore),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
