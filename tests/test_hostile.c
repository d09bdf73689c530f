/*
 * The library as a careless or hostile user meets it: sizes no machine has, numbers that are none,
 * names full of format characters, damaged files, memory that fails. Functions of a program's that
 * misbehave are in test_hostile_callbacks.c.
 */
#include "tensor/core.h"
#include "tests/attacks.h"
#include "tests/skip.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <zlib.h>

#define TIB (INT64_C(1) << 40)

/* ---- Sizes ----------------------------------------------------------------------------------- */

static void shapes_no_machine_has(void **state)
{
    (void)state;
    static const int64_t large[] = {INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 47,
                                    INT64_C(1) << 62, INT64_MAX};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (size_t j = 0; j < sizeof large / sizeof *large; j++)
            for (int zero = -1; zero < 3; zero++) {
                ED_SCOPE;
                int64_t shape[3] = {large[i], large[j], 3};
                if (zero >= 0) {
                    shape[2] = shape[zero];
                    shape[zero] = 0;
                }
                ed_ints given = {shape, 3};
                TOO_LARGE(ed_zeros(given));
                TOO_LARGE(ed_ones(given));
                TOO_LARGE(ed_full(given, 1));
                TOO_LARGE(ed_random_normal(given));
                TOO_LARGE(ed_random_uniform(given));
                TOO_LARGE(ed_initialize(ed_initializer_glorot_uniform(), given, ED_FLOAT32));
                TOO_LARGE(ed_constant(((float[]){1}), given));
                TOO_LARGE(ed_broadcast_to(ed_scalar(1.f), given));
                REFUSED(ed_reshape(ed_scalar(1.f), given));
                TOO_LARGE(ed_tile(ed_ones(ED_SHAPE(1, 1, 2)), given));
                TOO_LARGE(ed_pad(ed_ones(ED_SHAPE(2, 2, 2)), .before = given, .after = given));
            }
    static const int64_t negative[] = {-1, INT32_MIN, INT64_MIN};
    for (size_t i = 0; i < 3; i++) {
        ED_SCOPE;
        REFUSED(ed_zeros(ED_SHAPE(2, negative[i])));
        REFUSED(ed_zeros(ED_SHAPE(0, negative[i])));
        REFUSED(ed_eye(negative[i]));
        REFUSED(ed_linspace(0, 1, negative[i]));
        REFUSED(ed_one_hot(ed_ones(ED_SHAPE(2), .dtype = ED_INT32), negative[i]));
        REFUSED(ed_unsorted_segment_sum(ed_ones(ED_SHAPE(2)),
                                        ed_zeros(ED_SHAPE(2), .dtype = ED_INT32), negative[i]));
        REFUSED(ed_tile(ed_ones(ED_SHAPE(2)), ED_SHAPE(negative[i])));
        REFUSED(ed_pad(ed_ones(ED_SHAPE(2)), .before = ED_SHAPE(negative[i])));
        REFUSED(ed_layer_dense(negative[i]));
        REFUSED(ed_layer_conv2d(negative[i], ED_SHAPE(1, 1)));
        REFUSED(ed_layer_conv2d(1, ED_SHAPE(1, negative[i])));
    }
}

static void numbers_no_machine_has(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *i = ed_zeros(ED_SHAPE(2), .dtype = ED_INT32), *x = ed_ones(ED_SHAPE(2));
    TOO_LARGE(ed_eye(INT64_C(1) << 31));
    TOO_LARGE(ed_eye(INT64_MAX, .columns = INT64_MAX));
    TOO_LARGE(ed_linspace(0, 1, INT64_MAX));
    TOO_LARGE(ed_linspace(0, 1, INT64_C(1) << 44));
    TOO_LARGE(ed_range(0, 1e15));
    TOO_LARGE(ed_range(0, 1e300, .delta = 1e-300));
    TOO_LARGE(ed_range(-INFINITY, INFINITY));
    TOO_LARGE(ed_one_hot(i, INT64_MAX));
    TOO_LARGE(ed_one_hot(i, TIB));
    TOO_LARGE(ed_unsorted_segment_sum(x, i, INT64_MAX));
    TOO_LARGE(ed_unsorted_segment_sum(x, i, TIB));
    TOO_LARGE(ed_split(x, INT64_MAX));
    REFUSED(ed_split_sizes(x, ED_SHAPE(INT64_MAX, INT64_MAX, 4)));
    REFUSED(ed_split_sizes(x, ED_SHAPE(INT64_MAX, -1, 3)));
    REFUSED(ed_index(x, INT64_MAX));
    REFUSED(ed_gather(x, i, .axis = INT64_MAX));
    REFUSED(ed_gather(x, i, .axis = INT64_MIN));
    REFUSED(ed_reduce_sum(x, .axis = ED_AXES(INT64_MIN)));
    REFUSED(ed_softmax(x, .axis = INT64_MIN));
    REFUSED(ed_argmax(x, .axis = INT64_C(1) << 32));
    REFUSED(ed_transpose(x, .perm = ED_AXES(INT64_C(1) << 32)));
    REFUSED(ed_squeeze(x, .axis = ED_AXES(INT64_MIN)));
    REFUSED(ed_expand_dims(x, -(INT64_C(1) << 32)));
    REFUSED(ed_concat(ed_list_of(x, x), .axis = INT64_MIN));
    REFUSED(ed_stack(ed_list_of(x, x), .axis = INT64_MAX));
    REFUSED(ed_reverse(x, ED_AXES(INT64_MIN)));
    TOO_LARGE(ed_layer_new(&(ed_layer_class){.kind.name = "huge", .state_size = SIZE_MAX}, NULL));
    ed_tensor *image = ed_ones(ED_SHAPE(1, 4, 4, 1)), *kernel = ed_ones(ED_SHAPE(2, 2, 1, 1));
    for (int64_t n = INT64_MAX; n > 1; n >>= 15) {
        ED_SCOPE;
        ed_conv2d(image, kernel, .strides = ED_SHAPE(n, n), .padding = "SAME");
        ed_conv2d(image, kernel, .dilations = ED_SHAPE(n, n));
        ed_conv2d(image, kernel, .dilations = ED_SHAPE(n, n), .padding = "SAME");
        ed_max_pool2d(image, .window = ED_SHAPE(n, n));
        ed_avg_pool2d(image, .window = ED_SHAPE(n, n), .padding = "SAME");
        ed_avg_pool2d(image, .window = ED_SHAPE(n, 1), .strides = ED_SHAPE(n, 1));
        ed_slice(image, .begin = ED_SHAPE(n, -n), .end = ED_SHAPE(-n, n), .step = ED_SHAPE(n, -n));
        ed_slice(image, .begin = ED_SHAPE(-n), .end = ED_SHAPE(ED_END), .step = ED_SHAPE(-n - 1));
        ed_clear_error();
    }
}

/* Lists whose count is nonsense are refused, with and without a tape, which copies them. */
static void lists_of_nonsense(void **state)
{
    (void)state;
    static const int64_t counts[] = {-1, -2, INT32_MIN, INT64_MIN, -(INT64_C(1) << 32)};
    int64_t some[16] = {0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ED_SCOPE;
        ed_tensor *x = ed_ones(ED_SHAPE(2, 3));
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x);
        ed_ints bad = {some, counts[i]};
        REFUSED(ed_reduce_sum(x, .axis = bad));
        REFUSED(ed_reduce_max(x, .axis = bad));
        REFUSED(ed_reduce_logsumexp(x, .axis = bad));
        REFUSED(ed_reduce_variance(x, .axis = bad));
        REFUSED(ed_reshape(x, bad));
        REFUSED(ed_transpose(x, .perm = bad));
        REFUSED(ed_slice(x, .begin = bad));
        REFUSED(ed_slice(x, .end = bad));
        REFUSED(ed_slice(x, .step = bad));
        REFUSED(ed_squeeze(x, .axis = bad));
        REFUSED(ed_broadcast_to(x, bad));
        REFUSED(ed_split_sizes(x, bad));
        REFUSED(ed_tile(x, bad));
        REFUSED(ed_pad(x, .before = bad));
        REFUSED(ed_reverse(x, bad));
        REFUSED(ed_zeros(bad));
        REFUSED(ed_initialize(ed_initializer_glorot_uniform(), bad, ED_FLOAT32));
        REFUSED(ed_initialize(ed_initializer_glorot_uniform(), (ed_ints){NULL, 2}, ED_FLOAT32));
        REFUSED(ed_constant(((float[]){1}), bad));
        REFUSED(ed_wrap(ED_FLOAT32, some, bad, NULL, NULL));
        REFUSED(ed_layer_conv2d(2, bad));
        REFUSED(ed_layer_max_pooling2d(.pool_size = bad));
        REFUSED(ed_conv2d(ed_ones(ED_SHAPE(1, 2, 2, 1)), ed_ones(ED_SHAPE(1, 1, 1, 1)),
                          .strides = bad));
        REFUSED(ed_max_pool2d(ed_ones(ED_SHAPE(1, 2, 2, 1)), .window = bad));
    }
}

/* A view of one number that looks like terabytes: whatever would write it out is refused before a
 * page is touched. */
static void giants(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *g = ed_broadcast_to(ed_scalar(1.f), ED_SHAPE(TIB));
    ed_tensor *square = ed_broadcast_to(ed_scalar(1.f), ED_SHAPE(TIB / 2, 2));
    ed_tensor *whole = ed_broadcast_to(ed_scalar(1), ED_SHAPE(TIB));
    ed_tensor *v = ed_variable(ed_scalar(1.f)), *small = ed_ones(ED_SHAPE(2));
    FINE(g && square && whole);
    FINE(ed_to_string(g));
    FINE(ed_to_string(square));
    FINE(ed_index(g, -1));
    FINE(ed_slice(g, .step = ED_SHAPE(-(TIB / 2))));
    FINE(ed_slice(g, .begin = ED_SHAPE(TIB - 3)));
    FINE(ed_transpose(square));
    FINE(ed_reverse(g, ED_AXES(0)));
    FINE(ed_expand_dims(g, 0));
    OUT_OF_MEMORY(ed_neg(g));
    OUT_OF_MEMORY(ed_exp(g));
    OUT_OF_MEMORY(ed_add(g, g));
    OUT_OF_MEMORY(ed_add(g, 1.0));
    OUT_OF_MEMORY(ed_equal(g, g));
    OUT_OF_MEMORY(ed_where(ed_scalar(true, .dtype = ED_BOOL), g, 1.0));
    OUT_OF_MEMORY(ed_cast(g, ED_FLOAT64));
    OUT_OF_MEMORY(ed_contiguous(g));
    OUT_OF_MEMORY(ed_data(g));
    OUT_OF_MEMORY(ed_zeros_like(g));
    OUT_OF_MEMORY(ed_ones_like(g));
    OUT_OF_MEMORY(ed_concat(ed_list_of(g, g)));
    OUT_OF_MEMORY(ed_stack(ed_list_of(g, g)));
    OUT_OF_MEMORY(ed_tile(g, ED_SHAPE(2)));
    OUT_OF_MEMORY(ed_pad(g, .before = ED_SHAPE(1)));
    OUT_OF_MEMORY(ed_softmax(g));
    OUT_OF_MEMORY(ed_log_softmax(square));
    OUT_OF_MEMORY(ed_dropout(g, 0.5));
    OUT_OF_MEMORY(ed_random_shuffle(g));
    OUT_OF_MEMORY(ed_matmul(square, ed_ones(ED_SHAPE(2, 2))));
    OUT_OF_MEMORY(ed_linear(square, ed_ones(ED_SHAPE(2, 2)), small, "relu"));
    OUT_OF_MEMORY(ed_bias_add(square, small));
    OUT_OF_MEMORY(ed_gather(small, whole));
    OUT_OF_MEMORY(ed_one_hot(whole, 2));
    OUT_OF_MEMORY(ed_reduce_sum(square, .axis = ED_AXES(1)));
    OUT_OF_MEMORY(ed_argmax(square, .axis = 1));
    OUT_OF_MEMORY(ed_unstack(g));
    OUT_OF_MEMORY(ed_split(g, TIB));
    OUT_OF_MEMORY(ed_softmax_cross_entropy(square, square));
    OUT_OF_MEMORY(ed_sigmoid_cross_entropy(g, g));
    OUT_OF_MEMORY(ed_variable(g));
    OUT_OF_MEMORY(ed_dataset_from_tensors(g, g));
    OUT_OF_MEMORY(ed_metric_update(ed_metric_mean(), g));
    OUT_OF_MEMORY(ed_metric_compare(ed_metric_accuracy(), g, g));
    OUT_OF_MEMORY(ed_forward(ed_layer_dense(2), square));
    OUT_OF_MEMORY(ed_forward(ed_layer_batch_normalization(), square, .training = true));
    OUT_OF_MEMORY(ed_forward(ed_layer_dropout(0.5), square, .training = true));
    OUT_OF_MEMORY(ed_forward(ed_layer_activation("gelu"), square));
    REFUSED(ed_assign(v, g));
    REFUSED(ed_assign_add(v, g));
    REFUSED(!isnan(ed_item(g)));
    ed_tensor *images = ed_broadcast_to(ed_scalar(1.f), ED_SHAPE(TIB / 16, 4, 4, 1));
    OUT_OF_MEMORY(ed_conv2d(images, ed_ones(ED_SHAPE(2, 2, 1, 1))));
    OUT_OF_MEMORY(ed_max_pool2d(images));
    OUT_OF_MEMORY(ed_avg_pool2d(images));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, small);
    ed_tensor *wide = ed_broadcast_to(ed_index(small, 0), ED_SHAPE(TIB));
    FINE(wide);
    FINE(ed_gradient(tape, ed_index(wide, 5), ed_scalar(1.f)) == NULL);
    OUT_OF_MEMORY(ed_gradient(tape, ed_index(wide, 5), small));
    OUT_OF_MEMORY(ed_jacobian(tape, wide, small));
}

/* Both gradients of pooling, which sum and which read its windows. */
static void gradients_of_nothing(ed_tensor *(*pool)(ed_tensor *, const ed_pool2d_options *),
                                 ed_tensor *x, const char *padding)
{
    const ed_pool2d_options options =
        ED_COMPLETE(ED_POOL2D_OPTIONS, ed_pool2d_options, .padding = padding);
    ed_tape *outer = ed_tape_begin(.persistent = true), *tape = ed_tape_begin();
    ed_watch(outer, x);
    ed_watch(tape, x);
    ed_tensor *seed = ed_identity(pool(x, &options)), *dy = ed_watch(outer, ed_zeros_like(seed));
    ed_tensor *dx = ed_gradient(tape, seed, x, .output_gradients = ed_list_of(dy));
    FINE(dx);
    assert_int_equal(ed_size(dx), 0);
    FINE(ed_gradient(outer, dx, dy, .unconnected_zeros = true));
}

/* Shapes of terabytes without an element: nothing is done for each of their rows or windows. */
static void giants_without_elements(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {TIB, 4, 4, 0}, {1, TIB, 0, 1}, {1, 0, TIB, 1}, {TIB, 0, 4, 4}, {0, TIB, 2, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int same = 0; same < 2; same++) {
            ED_SCOPE;
            ed_tensor *x = ed_zeros(((ed_ints){shapes[i], 4}));
            gradients_of_nothing(ed_max_pool2d_with, x, same ? "SAME" : "VALID");
            gradients_of_nothing(ed_avg_pool2d_with, x, same ? "SAME" : "VALID");
        }
    ED_SCOPE;
    FINE(ed_random_shuffle(ed_zeros(ED_SHAPE(TIB, 0))));
    FINE(ed_random_shuffle(ed_zeros(ED_SHAPE(INT64_C(1) << 31, 0))));
}

/* Parts without an element have headers: so many of them are refused before memory is used. */
static void parts_without_elements(void **state)
{
    (void)state;
    ED_SCOPE;
    static const int64_t counts[] = {TIB, INT64_C(1) << 31, INT32_MAX, 1 << 25};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        OUT_OF_MEMORY(ed_split(ed_zeros(ED_SHAPE(counts[i] * 8, 0)), counts[i]));
        OUT_OF_MEMORY(ed_split(ed_zeros(ED_SHAPE(0)), counts[i]));
        ed_unstack(ed_zeros(ED_SHAPE(counts[i], 0)));
        failed_with(ED_OUT_OF_MEMORY, "the limit is 16777216");
    }
}

/* More than there is, in pieces that each would fit. */
static void more_than_the_machine_has(void **state)
{
    (void)state;
#if defined EDDY_SANITIZED || defined EDDY_HARD
    skip_since("sanitized or HARD: fresh memory is written");
#endif
    ED_SCOPE;
    const int64_t pages = sysconf(_SC_PHYS_PAGES) / 2, bytes = pages * sysconf(_SC_PAGESIZE);
    ed_tensor *held[64];
    int made = 0;
    for (; made < 64; made++)
        if (!(held[made] = tensor_new(ED_UINT8, 1, &bytes))) break;
    assert_true(made < 64);
    refused("tensor_new", true, ED_OUT_OF_MEMORY, ED_OUT_OF_MEMORY);
    while (made > 0) ed_release(held[--made]);
}

/* ---- Numbers that are none ------------------------------------------------------------------- */

static void options_that_are_no_numbers(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1, -1e-300};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ED_SCOPE;
        const double n = bad[i];
        ed_tensor *x = ed_ones(ED_SHAPE(2, 2));
        REFUSED(ed_optimizer_sgd(.learning_rate = n));
        REFUSED(ed_optimizer_sgd(.momentum = n));
        REFUSED(ed_optimizer_sgd(.weight_decay = n));
        REFUSED(ed_optimizer_adam(.learning_rate = n));
        REFUSED(ed_optimizer_adam(.beta_1 = n));
        REFUSED(ed_optimizer_adam(.beta_2 = n));
        REFUSED(ed_optimizer_adam(.epsilon = n));
        REFUSED(ed_optimizer_adam(.weight_decay = n));
        REFUSED(ed_optimizer_rmsprop(.learning_rate = n));
        REFUSED(ed_optimizer_rmsprop(.rho = n));
        REFUSED(ed_optimizer_rmsprop(.momentum = n));
        REFUSED(ed_optimizer_rmsprop(.epsilon = n));
        REFUSED(ed_optimizer_rmsprop(.weight_decay = n));
        REFUSED(ed_optimizer_set_learning_rate(ed_optimizer_sgd(), n));
        REFUSED(ed_dropout(x, n));
        REFUSED(ed_layer_dropout(n));
        REFUSED(ed_layer_batch_normalization(.epsilon = n));
        REFUSED(ed_layer_batch_normalization(.momentum = n));
        if (n == INFINITY) continue;
        REFUSED(
            ed_batch_norm(x, ed_ones(ED_SHAPE(2)), ed_ones(ED_SHAPE(2)), NULL, NULL, .epsilon = n));
        REFUSED(ed_optimizer_sgd(.clipvalue = n));
        REFUSED(ed_optimizer_adam(.clipnorm = n));
        REFUSED(ed_optimizer_rmsprop(.global_clipnorm = n));
        REFUSED(ed_clip_by_norm(x, n));
        REFUSED(ed_clip_by_global_norm(ed_list_of(x), n, NULL));
    }
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2));
    REFUSED(ed_clip(x, NAN, 1));
    REFUSED(ed_clip(x, 0, NAN));
    REFUSED(ed_clip(x, 1, -1));
    REFUSED(ed_range(0, NAN));
    REFUSED(ed_range(0, 1, .delta = NAN));
    REFUSED(ed_range(0, 1, .delta = 0));
    REFUSED(ed_full(ED_SHAPE(2), NAN, .dtype = ED_INT32));
    REFUSED(ed_full(ED_SHAPE(2), 1e300, .dtype = ED_INT64));
    REFUSED(ed_scalar(INFINITY, .dtype = ED_BOOL));
    REFUSED(ed_add(ed_ones(ED_SHAPE(2), .dtype = ED_INT32), NAN));
    REFUSED(ed_initialize(ed_initializer_constant(NAN), ED_SHAPE(2), ED_FLOAT32));
    REFUSED(ed_random_uniform(ED_SHAPE(2), .low = NAN));
    REFUSED(ed_random_uniform(ED_SHAPE(2), .high = INFINITY));
    REFUSED(ed_random_uniform(ED_SHAPE(2), .low = 0, .high = 1e300, .dtype = ED_INT32));
    REFUSED(ed_random_uniform(ED_SHAPE(2), .low = -1e30, .high = NAN, .dtype = ED_INT64));
    REFUSED(ed_random_normal(ED_SHAPE(2), .stddev = NAN));
    REFUSED(ed_random_normal(ED_SHAPE(2), .mean = INFINITY));
    REFUSED(ed_random_truncated_normal(ED_SHAPE(2), .stddev = INFINITY));
    REFUSED(ed_check_gradient(NULL, NULL, NULL, NULL, .step = NAN));
    REFUSED(ed_dataset_from_tensors(x, x, .batch = -1));
    REFUSED(ed_dataset_from_tensors(x, x, .batch = INT64_MIN));
}

/* Values that are none go through all that learns; nothing is indexed by them. */
static void values_that_are_no_numbers(void **state)
{
    (void)state;
    ED_SCOPE;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.f, 0};
    ed_tensor *x = ed_constant(bad, ED_SHAPE(2, 4)),
              *labels = ed_zeros(ED_SHAPE(2), .dtype = ED_INT32);
    ed_layer *model = ed_layer_sequential("m", ed_layer_dense(4, .activation = "softmax"),
                                          ed_layer_batch_normalization(), ed_layer_dense(3));
    ed_optimizer *optimizers[] = {ed_optimizer_sgd(.momentum = 0.9, .global_clipnorm = 1),
                                  ed_optimizer_adam(.amsgrad = true, .clipnorm = 1),
                                  ed_optimizer_rmsprop(.centered = true, .clipvalue = 1)};
    for (size_t i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = ed_reduce_mean(
            ed_sparse_softmax_cross_entropy(labels, ed_forward(model, x, .training = true)));
        FINE(ed_minimize(optimizers[i], tape, loss, model));
    }
    ed_metric *metric = ed_metric_sparse_categorical_accuracy();
    FINE(ed_metric_compare(metric, labels, x));
    REFUSED(ed_metric_compare(metric, ed_constant(((int64_t[]){0, INT64_MIN}), ED_SHAPE(2)), x));
    REFUSED(ed_gather(x, ed_constant(((int64_t[]){INT64_MAX}), ED_SHAPE(1))));
    REFUSED(ed_gather(x, ed_constant(((int32_t[]){INT32_MIN}), ED_SHAPE(1))));
    REFUSED(
        ed_sparse_softmax_cross_entropy(ed_constant(((int64_t[]){0, INT64_MIN}), ED_SHAPE(2)), x));
    FINE(ed_cast(x, ED_UINT8));
    FINE(ed_cast(x, ED_INT32));
    FINE(ed_to_string(x));
    FINE(ed_random_shuffle(x));
}

/* ---- Names and texts ------------------------------------------------------------------------- */

static const char evil[] = "%n%s%n%s%p%1000000d%hhn";

static void has_evil(const char *call)
{
    if (!ed_failed()) fail_msg("%s kept no error", call);
    if (!strstr(ed_error(), evil)) fail_msg("%s: %s", call, ed_error());
    ed_clear_error();
}
#define NAMES_EVIL(call) (assert_false(!!(call)), has_evil(#call))

/* Equations that say nothing, or what the operands are not. */
static void equations_that_are_none(void **state)
{
    (void)state;
    ED_SCOPE;
    char endless[2000], wide[64];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    snprintf(wide, sizeof wide, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ->");
    ed_tensor *a = ed_ones(ED_SHAPE(2, 3)), *b = ed_ones(ED_SHAPE(3, 4));
    const char *const none[] = {NULL,       "",           "->",       ",",         ",->",
                                "...",      "ij",         "ij,jk,kl", "ij,jk->",   "ij,jk->il",
                                "ij,jk>ik", "-",          "ij,jk->",  "ij,jk->ii", "ii,jk",
                                "ij,ij",    "i...j",      "..",       "ij,....",   "ij,jk->ik->",
                                "i1,jk",    "ij,jk->i%n", "é,jk",     "ij;jk",     "ijk,jk",
                                "ij,jk-",   "...i...,jk", endless,    wide};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ed_tensor *y = ed_einsum(none[i], ed_list_of(a, b));
        if (!y != ed_failed())
            fail_msg("einsum \"%s\": %s", none[i], y ? "an error is kept" : "no error");
        if (y && strcmp(none[i], "ij,jk->") != 0) fail_msg("einsum \"%s\" works", none[i]);
        ed_clear_error();
    }
    REFUSED(ed_einsum("ij,jk->ik", ed_list_of(a)));
    REFUSED(ed_einsum("ij,jk->ik", ed_list_of(a, a)));
    TOO_LARGE(
        ed_einsum("ij,jk->ik", ed_list_of(ed_ones(ED_SHAPE(TIB, 0)), ed_ones(ED_SHAPE(0, 2)))));
    FINE(ed_einsum("ij,jk->ik", ed_list_of(ed_ones(ED_SHAPE(TIB, 0)), ed_ones(ED_SHAPE(0, 0)))));
}

static void names_are_no_formats(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2, 2)), *v = ed_variable(x, .name = evil);
    assert_string_equal(ed_variable_name(v), evil);
    NAMES_EVIL(ed_assign(v, ed_ones(ED_SHAPE(3))));
    NAMES_EVIL(ed_assign_add(v, ed_ones(ED_SHAPE(3))));
    NAMES_EVIL(
        ed_apply_gradients(ed_optimizer_sgd(), ed_list_of(ed_ones(ED_SHAPE(3))), ed_list_of(v)));
    NAMES_EVIL(ed_activate(x, evil));
    NAMES_EVIL(ed_layer_activation(evil));
    NAMES_EVIL(ed_layer_dense(2, .activation = evil));
    NAMES_EVIL(ed_linear(x, x, NULL, evil));
    NAMES_EVIL(ed_op_find(evil));
    NAMES_EVIL(ed_read_idx(evil));
    NAMES_EVIL(ed_dataset_mnist(evil, .dir = "."));
    NAMES_EVIL(ed_dataset_mnist("train", .dir = evil));
    NAMES_EVIL(ed_layer_max_pooling2d(.padding = evil));
    NAMES_EVIL(
        ed_conv2d(ed_ones(ED_SHAPE(1, 2, 2, 1)), ed_ones(ED_SHAPE(1, 1, 1, 1)), .padding = evil));
    NAMES_EVIL(ed_fail(ED_IO, "%s", evil));
    ed_layer *layer = ed_layer_dense(2, .name = evil), *model = ed_layer_sequential(evil, layer);
    NAMES_EVIL(ed_forward(model, ed_ones(ED_SHAPE(2), .dtype = ED_INT32)));
    NAMES_EVIL(ed_layer_add_child(model, ed_layer_dense(2, .name = evil)));
    NAMES_EVIL(ed_layer_find_child(model, evil + 1) ? NULL : ed_layer_find_child(layer, evil));
    FINE(ed_forward(model, x));
    FINE(strstr(ed_model_summary(model), evil));
    ed_metric *metric = ed_metric_accuracy(.name = evil);
    NAMES_EVIL(ed_metric_compare(metric, x, ed_ones(ED_SHAPE(3))));
    NAMES_EVIL(ed_metric_update(metric, x));
}

static void names_of_a_million(void **state)
{
    (void)state;
    enum { LONG = 1 << 20 };
    static char name[LONG + 1];
    memset(name, 'x', LONG);
    {
        ED_SCOPE;
        ed_tensor *x = ed_ones(ED_SHAPE(2, 2)), *v = ed_variable(x, .name = name);
        assert_int_equal(strlen(ed_variable_name(v)), LONG);
        FINE(ed_apply_gradients(ed_optimizer_adam(), ed_list_of(x), ed_list_of(v)));
        REFUSED(ed_assign(v, ed_ones(ED_SHAPE(3))));
        refused("activate", !ed_activate(x, name), ED_NOT_FOUND, ED_INVALID_ARGUMENT);
        refused("op_find", !ed_op_find(name), ED_NOT_FOUND, ED_NOT_FOUND);
        refused("read_idx", !ed_read_idx(name), ED_IO, ED_NOT_FOUND);
        REFUSED(ed_dataset_mnist("train", .dir = name));
        REFUSED(ed_fail(ED_INVALID_ARGUMENT, "%s", name));
        ed_layer *model =
            ed_layer_sequential(name, ed_layer_dense(2, .name = name), ed_layer_dense(3));
        FINE(ed_forward(model, x));
        FINE(ed_model_summary(model));
        REFUSED(ed_forward(model, ed_ones(ED_SHAPE(5, 5))));
        REFUSED(ed_layer_add_child(model, ed_layer_dense(2, .name = name)));
        REFUSED(ed_layer_dense(2, .name = ""));
        REFUSED(ed_layer_dense(2, .name = "a/b"));
    }
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static void scopes_misused(void **state)
{
    (void)state;
    ed_scope outer = ed_scope_open();
    ed_tensor *x = ed_ones(ED_SHAPE(2));
    ed_scope inner = ed_scope_open(), again = inner;
    ed_tensor *y = ed_neg(x);
    assert_ptr_equal(ed_keep(y), y);
    assert_ptr_equal(ed_keep(y), y); /* belongs to the outer one already */
    assert_ptr_equal(ed_keep(x), x);
    ed_scope_close(&inner);
    ed_scope_close(&inner);
    assert_true(ed_item(ed_index(y, 0)) == -1);
    ed_scope_close(&again); /* is not open any more */
    ed_scope_close(&(ed_scope){UINT32_MAX});
    ed_scope_close(&(ed_scope){0});
    assert_true(ed_item(ed_index(x, 1)) == 1);
    ed_scope deep[3] = {ed_scope_open(), ed_scope_open(), ed_scope_open()};
    ed_neg(x);
    ed_scope_close(&deep[0]); /* the outer one first: all are closed */
    ed_scope_close(&deep[2]);
    ed_scope_close(&deep[1]);
    for (int i = 0; i < 3; i++) ed_retain(x);
    for (int i = 0; i < 3; i++) ed_release(x);
    ed_tensor *kept = ed_retain(ed_neg(x));
    ed_scope_close(&outer);
    ED_SCOPE;
    assert_true(ed_item(ed_index(kept, 0)) == -1);
    ed_release(kept);
}

/* ---- Memory of others ------------------------------------------------------------------------ */

static void count_deletion(void *data, void *user)
{
    (void)data;
    ++*(int *)user;
}

static void wrapped_memory_is_given_back_once(void **state)
{
    (void)state;
    static float data[6] = {1, 2, 3, 4, 5, 6};
    int deleted = 0;
    REFUSED(ed_wrap(ED_FLOAT32, (char *)data + 1, ED_SHAPE(2), count_deletion, &deleted));
    REFUSED(ed_wrap(ED_FLOAT32, data, ED_SHAPE(-6), count_deletion, &deleted));
    REFUSED(
        ed_wrap(ED_FLOAT32, data, ED_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), count_deletion, &deleted));
    TOO_LARGE(ed_wrap(ED_FLOAT32, data, ED_SHAPE(0, INT64_MAX, 4), count_deletion, &deleted));
    assert_int_equal(deleted, 0);
    for (int n = 0; n < 20; n++) {
        ED_SCOPE;
        ed_memory_fail_at(n, true);
        ed_tensor *t = ed_wrap(ED_FLOAT32, data, ED_SHAPE(2, 3), count_deletion, &deleted);
        bool failed = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_int_equal(!t, failed);
        assert_int_equal(deleted, 0);
        if (!t) refused("wrap", true, ED_OUT_OF_MEMORY, ED_OUT_OF_MEMORY);
        if (t) break;
    }
    assert_int_equal(deleted, 1);
    ed_tensor *view;
    {
        ED_SCOPE;
        ed_tensor *t = ed_wrap(ED_FLOAT32, data, ED_SHAPE(2, 3), count_deletion, &deleted);
        ed_tensor *v = ed_variable(t); /* has a copy */
        FINE(ed_assign_add(v, 1.0));
        FINE(ed_apply_gradients(ed_optimizer_sgd(), ed_list_of(t), ed_list_of(v)));
        view = ed_retain(
            ed_index(ed_reshape(ed_transpose(ed_reshape(t, ED_SHAPE(6))), ED_SHAPE(6)), 4));
    }
    assert_int_equal(deleted, 1);
    assert_true(ed_item(view) == 5 && data[0] == 1);
    ed_release(view);
    assert_int_equal(deleted, 2);
}

/* A view, a tape and a dataset see the value that was there when they were made. */
static void variables_assigned_while_seen(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_ones(ED_SHAPE(4))), *w = ed_variable(v);
    ed_tensor *value = ed_value(v), *view = ed_slice(v, .step = ED_SHAPE(2));
    ed_dataset *set = ed_dataset_from_tensors(v, v, .batch = 2);
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_square(v);
    FINE(ed_assign_add(v, 1.0));
    FINE(ed_assign_add(v, v));
    FINE(ed_assign_sub(v, ed_slice(v, .step = ED_SHAPE(-1))));
    FINE(ed_assign(v, ed_reverse(v, ED_AXES(0))));
    FINE(ed_assign(v, v));
    FINE(ed_apply_gradients(ed_optimizer_sgd(), ed_list_of(v), ed_list_of(v)));
    ed_tensor *dv = ed_gradient(tape, y, v), *bx, *by;
    assert_true(ed_item(ed_reduce_sum(value)) == 4 && ed_item(ed_reduce_sum(view)) == 2);
    assert_true(ed_item(ed_reduce_sum(dv)) == 8 && ed_item(ed_reduce_sum(w)) == 4);
    assert_true(ed_dataset_next(set, &bx, &by) && ed_item(ed_reduce_sum(bx)) == 2);
    assert_true(ed_item(ed_reduce_sum(v)) == 0);
    assert_false(ed_failed());
}

/* ---- Nothing to learn from ------------------------------------------------------------------- */

static void empty_tensors(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_zeros(ED_SHAPE(0, 8, 8, 2)),
              *labels = ed_zeros(ED_SHAPE(0), .dtype = ED_INT32);
    ed_layer *model = ed_layer_sequential(
        "m", ed_layer_conv2d(3, ED_SHAPE(3, 3), .padding = "SAME", .activation = "relu"),
        ed_layer_batch_normalization(), ed_layer_max_pooling2d(), ed_layer_dropout(0.5),
        ed_layer_activation("gelu"), ed_layer_global_average_pooling2d(), ed_layer_flatten(),
        ed_layer_dense(4));
    ed_optimizer *optimizers[] = {ed_optimizer_sgd(.momentum = 0.9, .nesterov = true),
                                  ed_optimizer_adam(.global_clipnorm = 1),
                                  ed_optimizer_rmsprop(.momentum = 0.5)};
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *y = ed_forward(model, x, .training = i > 0);
        FINE(y && ed_dim(y, 0) == 0 && ed_dim(y, 1) == 4);
        ed_tensor *loss = ed_reduce_sum(ed_sparse_softmax_cross_entropy(labels, y));
        FINE(ed_minimize(optimizers[i], tape, loss, model));
        FINE(ed_to_string(y));
    }
    ed_metric *mean = ed_metric_mean(), *classes = ed_metric_sparse_categorical_accuracy();
    FINE(ed_metric_update(mean, ed_zeros(ED_SHAPE(0))) && ed_metric_result(mean) == 0);
    FINE(ed_metric_compare(classes, labels, ed_zeros(ED_SHAPE(0, 4))));
    FINE(ed_metric_compare(ed_metric_accuracy(), labels, labels));
    FINE(ed_softmax_cross_entropy(ed_zeros(ED_SHAPE(0, 3)), ed_zeros(ED_SHAPE(0, 3))));
    FINE(ed_sigmoid_cross_entropy(ed_zeros(ED_SHAPE(0, 3)), ed_zeros(ED_SHAPE(0, 3))));
    ed_metric_compare(classes, labels, ed_zeros(ED_SHAPE(0, 0)));
    ed_forward(ed_layer_dense(2), ed_zeros(ED_SHAPE(3, 0)));
    ed_forward(ed_layer_conv2d(2, ED_SHAPE(2, 2)), ed_zeros(ED_SHAPE(3, 4, 4, 0)));
    ed_forward(ed_layer_conv2d(2, ED_SHAPE(2, 2)), ed_zeros(ED_SHAPE(3, 0, 4, 1)));
    ed_forward(ed_layer_batch_normalization(), ed_zeros(ED_SHAPE(3, 0)), .training = true);
    ed_forward(ed_layer_global_average_pooling2d(), ed_zeros(ED_SHAPE(2, 0, 0, 3)));
    ed_forward(ed_layer_max_pooling2d(), ed_zeros(ED_SHAPE(2, 0, 0, 3)));
    ed_clear_error();
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(0, 3)));
    for (int i = 0; i < 3; i++)
        FINE(
            ed_apply_gradients(optimizers[i], ed_list_of(ed_zeros(ED_SHAPE(0, 3))), ed_list_of(v)));
    FINE(ed_clip_by_norm(v, 1));
    FINE(ed_clip_by_global_norm(ed_list_of(v), 1, NULL));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *y = ed_square(v);
    FINE(ed_jacobian(tape, y, v));
    FINE(ed_batch_jacobian(tape, y, v));
    ed_dataset *set = ed_dataset_from_tensors(x, labels, .batch = 3, .shuffle = true);
    ed_tensor *bx, *by;
    FINE(!ed_dataset_next(set, &bx, &by) && !ed_dataset_next(set, &bx, &by) &&
         ed_dataset_batches(set) == 0);
    FINE(ed_dataset_x(set) && ed_dataset_y(set) && ed_dataset_rewind(set));
}

static void datasets_of_odd_sizes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_reshape(ed_range(0, 10), ED_SHAPE(5, 2)), *bx, *by;
    ed_dataset *large = ed_dataset_from_tensors(x, x, .batch = INT64_MAX, .shuffle = true);
    FINE(ed_dataset_next(large, &bx, &by) && ed_dim(bx, 0) == 5 &&
         !ed_dataset_next(large, NULL, NULL));
    ed_dataset *none = ed_dataset_from_tensors(x, x, .batch = INT64_MAX, .drop_remainder = true);
    FINE(!ed_dataset_next(none, &bx, NULL) && !bx && ed_dataset_batches(none) == 0);
    ed_tensor *wide = ed_zeros(ED_SHAPE(INT64_C(1) << 46, 0), .dtype = ED_UINT8);
    OUT_OF_MEMORY(ed_dataset_from_tensors(wide, wide, .shuffle = true));
    ed_dataset *empty_rows =
        ed_dataset_from_tensors(wide, wide, .batch = INT64_C(1) << 45, .pixels = true);
    FINE(ed_dataset_next(empty_rows, &bx, &by) && ed_dim(bx, 0) == INT64_C(1) << 45 &&
         ed_size(by) == 0);
    REFUSED(ed_dataset_from_tensors(x, ed_ones(ED_SHAPE(4))));
    REFUSED(ed_dataset_from_tensors(x, ed_scalar(1)));
    REFUSED(ed_dataset_from_tensors(x, x, .pixels = true));
}

/* ---- Files ----------------------------------------------------------------------------------- */

static char path[] = "/tmp/eddy-hostile-XXXXXX";

static void write_bytes(const unsigned char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static size_t zip(unsigned char *out, size_t room, const unsigned char *bytes, size_t n)
{
    z_stream z = {.next_in = (unsigned char *)bytes,
                  .avail_in = (unsigned)n,
                  .next_out = out,
                  .avail_out = (unsigned)room};
    deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* An error that names the file, or the tensor that the bytes now say. */
static void read_damaged(void)
{
    ED_SCOPE;
    ed_memory_reset_peak();
    int64_t peak = ed_memory_stats().peak_bytes;
    ed_tensor *t = ed_read_idx(path);
    assert_true(!t == ed_failed());
    if (!t && !strstr(ed_error(), path)) fail_msg("%s", ed_error());
    if (ed_memory_stats().peak_bytes - peak > 1 << 20) fail_msg("much memory for a small file");
    ed_clear_error();
}

static void damaged_files(void **state)
{
    (void)state;
    static const unsigned char plain[] = {0,  0,  0x0b, 2,  0,  0,  0,  3,  0,  0,  0,  4,
                                          1,  2,  3,    4,  5,  6,  7,  8,  9,  10, 11, 12,
                                          13, 14, 15,   16, 17, 18, 19, 20, 21, 22, 23, 24};
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    unsigned char zipped[256], bytes[256];
    size_t sizes[2] = {sizeof plain, zip(zipped, sizeof zipped, plain, sizeof plain)};
    const unsigned char *files[2] = {plain, zipped};
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (int f = 0; f < 2; f++) {
        ED_SCOPE;
        write_bytes(files[f], sizes[f]);
        FINE(ed_read_idx(path));
        for (size_t n = 0; n < sizes[f]; n++) {
            write_bytes(files[f], n);
            refused("read_idx", !ed_read_idx(path), ED_DATA_LOSS, ED_DATA_LOSS);
        }
        for (size_t at = 0; at < sizes[f]; at++)
            for (size_t v = 0; v < sizeof values + 8; v++) {
                memcpy(bytes, files[f], sizes[f]);
                bytes[at] = v < sizeof values ? values[v] : bytes[at] ^ 1u << (v - sizeof values);
                write_bytes(bytes, sizes[f]);
                read_damaged();
            }
    }
    unlink(path);
    strcpy(path + sizeof path - 7, "XXXXXX");
}

/* Neither a pipe nor a folder holds a tensor; nobody waits for one that has no other end. */
static void files_that_are_none(void **state)
{
    (void)state;
    ED_SCOPE;
    int file = mkstemp(path);
    close(file);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused("fifo", !ed_read_idx(path), ED_IO, ED_DATA_LOSS);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused("folder", !ed_read_idx(path), ED_IO, ED_DATA_LOSS);
    rmdir(path);
    refused("/dev/zero", !ed_read_idx("/dev/zero"), ED_IO, ED_DATA_LOSS);
    refused("/dev/null", !ed_read_idx("/dev/null"), ED_IO, ED_DATA_LOSS);
    refused("/dev/random", !ed_read_idx("/dev/urandom"), ED_IO, ED_DATA_LOSS);
    strcpy(path + sizeof path - 7, "XXXXXX");
}

/* Gigabytes of zeros in a few kilobytes, with a header that asks for more or less of them. */
static void a_bomb(void **state)
{
    (void)state;
    enum { REAL = 24 << 20 };
    unsigned char *zeros = calloc(1, REAL), *zipped = malloc(1 << 20);
    assert_true(zeros && zipped);
    zeros[2] = 8;
    zeros[3] = 2;
    int file = mkstemp(path);
    close(file);
    static const unsigned char claims[][2] = {{0x7f, 0xff}, {0x00, 0x80}, {0x00, 0x01}};
    for (int i = 0; i < 3; i++) {
        zeros[4] = zeros[8] = claims[i][0];
        zeros[5] = zeros[9] = claims[i][1];
        write_bytes(zipped, zip(zipped, 1 << 20, zeros, REAL));
        read_damaged();
    }
    unlink(path);
    free(zeros);
    free(zipped);
    strcpy(path + sizeof path - 7, "XXXXXX");
}

/* ---- Memory that fails ----------------------------------------------------------------------- */

/* Runs the scenario with allocation 0, 1, 2, ... failing, once or from there
 * on, until none does. */
static void with_failing_memory(bool (*scenario)(void))
{
    for (int repeat = 0; repeat < 2; repeat++) {
        for (int64_t n = 0;; n++) {
            ed_memory start = ed_memory_stats();
            ed_memory_fail_at(n, repeat);
            bool ok;
            {
                ED_SCOPE;
                ok = scenario() && !ed_failed();
            }
            bool happened = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            if (!happened) {
                FINE(ok);
                break;
            }
            if (!ok && ed_error_kind() != ED_OUT_OF_MEMORY)
                fail_msg("allocation %lld: '%s'", (long long)n, ed_error());
            ed_clear_error();
            ed_memory now = ed_memory_stats();
            if (now.live_tensors != start.live_tensors || now.live_bytes > start.live_bytes + 65536)
                fail_msg("allocation %lld left %lld tensors, %lld bytes", (long long)n,
                         (long long)(now.live_tensors - start.live_tensors),
                         (long long)(now.live_bytes - start.live_bytes));
        }
        FINE(scenario()); /* what failed can be used again */
    }
}

static int which_optimizer;

static bool train_a_network(void)
{
    ED_SCOPE;
    ed_generator *generator = ed_generator_from_seed(1);
    ed_tensor *x = ed_random_normal(ED_SHAPE(3, 6, 6, 1), .generator = generator);
    ed_tensor *labels = ed_zeros(ED_SHAPE(3), .dtype = ED_INT32);
    ed_layer *model =
        ed_layer_sequential("m", ed_layer_conv2d(2, ED_SHAPE(3, 3), .activation = "relu"),
                            ed_layer_batch_normalization(), ed_layer_max_pooling2d(),
                            ed_layer_dropout(0.2), ed_layer_flatten(), ed_layer_dense(3));
    ed_optimizer *optimizer =
        which_optimizer == 0   ? ed_optimizer_sgd(.momentum = 0.9, .clipnorm = 1)
        : which_optimizer == 1 ? ed_optimizer_adam(.amsgrad = true, .clipvalue = 1)
                               : ed_optimizer_rmsprop(.centered = true, .momentum = 0.1);
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(
        ed_sparse_softmax_cross_entropy(labels, ed_forward(model, x, .training = true)));
    return ed_minimize(optimizer, tape, loss, model) && ed_optimizer_variables(optimizer) &&
           ed_model_summary(model) && isfinite(ed_item(loss));
}

static bool read_an_epoch(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_zeros(ED_SHAPE(7, 2), .dtype = ED_UINT8), *y = ed_range(0, 7), *bx, *by;
    ed_dataset *set =
        ed_dataset_from_tensors(x, y, .batch = 3, .shuffle = true, .seed = 5, .pixels = true);
    int64_t rows = 0;
    while (ed_dataset_next(set, &bx, &by)) rows += ed_dim(bx, 0);
    return ed_dataset_x(set) && rows == 7 && !ed_failed();
}

static bool print_all(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_reshape(ed_range(0, 24), ED_SHAPE(2, 3, 4));
    return ed_to_string(x) && ed_to_string(ed_transpose(x)) && ed_to_string(ed_scalar(1.5)) &&
           ed_to_string(ed_variable(x)) && ed_to_string(ed_zeros(ED_SHAPE(40, 40)));
}

static bool differentiate(void)
{
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_range(1, 4, .dtype = ED_FLOAT64));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *y = ed_mul(ed_exp(v), ed_reduce_sum(v));
    ed_list *inputs = ed_list_of(v);
    ed_tensor *again = ed_recompute(returns_square, inputs, NULL, NULL);
    return ed_jacobian(tape, y, v) && ed_batch_jacobian(tape, ed_square(v), v) &&
           ed_gradient(tape, again, v) && ed_tape_watched_variables(tape) &&
           ed_hessian_vector_product(returns_square, inputs, inputs, NULL) &&
           ed_check_gradient(returns_square, inputs, NULL, NULL, .second_order = true);
}

static bool measure(void)
{
    ED_SCOPE;
    ed_metric *mean = ed_metric_mean(.name = "a"), *accuracy = ed_metric_accuracy(.name = "b");
    ed_metric *classes = ed_metric_sparse_categorical_accuracy(.name = "c");
    ed_tensor *x = ed_transpose(ed_ones(ED_SHAPE(3, 2)));
    ed_tensor *labels = ed_zeros(ED_SHAPE(2), .dtype = ED_INT64);
    return ed_metric_update(mean, x) && ed_metric_compare(accuracy, x, x) &&
           ed_metric_compare(classes, labels, x) && ed_metric_result(mean) == 1;
}

static void memory_fails_in_training(void **state)
{
    (void)state;
    for (which_optimizer = 0; which_optimizer < 3; which_optimizer++)
        with_failing_memory(train_a_network);
}

static void memory_fails_elsewhere(void **state)
{
    (void)state;
    with_failing_memory(read_an_epoch);
    with_failing_memory(print_all);
    with_failing_memory(differentiate);
    with_failing_memory(measure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(shapes_no_machine_has),
        ATTACK(numbers_no_machine_has),
        ATTACK(lists_of_nonsense),
        ATTACK(giants),
        ATTACK(giants_without_elements),
        ATTACK(parts_without_elements),
        ATTACK(more_than_the_machine_has),
        ATTACK(options_that_are_no_numbers),
        ATTACK(values_that_are_no_numbers),
        ATTACK(equations_that_are_none),
        ATTACK(names_are_no_formats),
        ATTACK(names_of_a_million),
        ATTACK(scopes_misused),
        ATTACK(wrapped_memory_is_given_back_once),
        ATTACK(variables_assigned_while_seen),
        ATTACK(empty_tensors),
        ATTACK(datasets_of_odd_sizes),
        ATTACK(damaged_files),
        ATTACK(files_that_are_none),
        ATTACK(a_bomb),
        ATTACK(memory_fails_in_training),
        ATTACK(memory_fails_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
