/* The library's layers, initializers and metrics, and learning with them. */
#include "tests/initializers.h"
#include "tests/ramps.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* ---- The library's layers -------------------------------------------------------------------- */

static void set(ed_layer *layer, int64_t i, ed_tensor *value)
{
    assert_non_null(ed_assign(ed_list_get(ed_layer_variables(layer), i), value));
}

static void test_dense(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ramp(ED_SHAPE(2, 2, 3));
    const char *names[] = {
        NULL,          "linear",     "relu",        "relu6",        "leaky_relu",  "elu",
        "celu",        "selu",       "sigmoid",     "hard_sigmoid", "log_sigmoid", "sparse_sigmoid",
        "tanh",        "hard_tanh",  "tanh_shrink", "hard_shrink",  "soft_shrink", "softplus",
        "sparse_plus", "squareplus", "softsign",    "silu",         "swish",       "hard_silu",
        "hard_swish",  "gelu",       "mish",        "exponential",  "threshold",   "softmax",
        "log_softmax", "sparsemax"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ed_layer *layer = ed_layer_dense(4, .activation = names[i]);
        ed_tensor *y = ed_forward(layer, x);
        assert_fine();
        ed_list *w = ed_layer_variables(layer);
        set(layer, 1, ramp(ED_SHAPE(4)));
        y = ed_forward(layer, x);
        ed_tensor *expected =
            ed_activate(ed_bias_add(ed_matmul(ed_reshape(x, ED_SHAPE(4, 3)), ed_list_get(w, 0)),
                                    ed_list_get(w, 1)),
                        names[i]);
        assert_int_equal(ed_rank(y), 3);
        assert_int_equal(ed_dim(y, 2), 4);
        for (int j = 0; j < 16; j++)
            assert_true(fabsf(element(y, j) - element(expected, j)) <= 2e-6f);
    }
    ed_layer *bare = ed_layer_dense(4, .use_bias = false);
    assert_non_null(ed_forward(bare, ed_cast(x, ED_FLOAT64)));
    assert_int_equal(ed_list_size(ed_layer_variables(bare)), 1);
    assert_int_equal(ed_dtype_of(ed_list_get(ed_layer_variables(bare), 0)), ED_FLOAT64);
    assert_int_equal(ed_size(ed_forward(ed_layer_dense(4), ramp(ED_SHAPE(0, 3)))), 0);
    assert_fine();
}

/* Keras' values of -2, -0.75, 0.25 and 3. */
static void test_activations(void **state)
{
    (void)state;
    ED_SCOPE;
    static const struct {
        const char *name;
        float y[4];
    } cases[] = {
        {"linear", {-2, -0.75f, 0.25f, 3}},
        {"relu", {0, 0, 0.25f, 3}},
        {"relu6", {0, 0, 0.25f, 3}},
        {"leaky_relu", {-0.40000001f, -0.15000001f, 0.25f, 3}},
        {"elu", {-0.86466473f, -0.52763343f, 0.25f, 3}},
        {"celu", {-0.86466473f, -0.52763343f, 0.25f, 3}},
        {"selu", {-1.5201665f, -0.92763197f, 0.26267526f, 3.1521029f}},
        {"sigmoid", {0.11920292f, 0.32082129f, 0.56217653f, 0.95257413f}},
        {"hard_sigmoid", {0.16666667f, 0.375f, 0.54166669f, 1}},
        {"log_sigmoid", {-2.1269281f, -1.1368711f, -0.57593942f, -0.048587352f}},
        {"sparse_sigmoid", {0, 0.125f, 0.625f, 1}},
        {"tanh", {-0.96402758f, -0.63514894f, 0.24491866f, 0.99505472f}},
        {"hard_tanh", {-1, -0.75f, 0.25f, 1}},
        {"tanh_shrink", {-1.0359724f, -0.11485106f, 0.0050813407f, 2.0049453f}},
        {"hard_shrink", {-2, -0.75f, 0, 3}},
        {"soft_shrink", {-1.5f, -0.25f, 0, 2.5f}},
        {"softplus", {0.126928f, 0.38687101f, 0.82593942f, 3.0485873f}},
        {"sparse_plus", {0, 0.015625f, 0.390625f, 3}},
        {"squareplus", {0.41421354f, 0.69300044f, 1.1327822f, 3.3027756f}},
        {"softsign", {-0.66666669f, -0.42857143f, 0.2f, 0.75f}},
        {"silu", {-0.23840584f, -0.24061596f, 0.14054413f, 2.8577223f}},
        {"swish", {-0.23840584f, -0.24061596f, 0.14054413f, 2.8577223f}},
        {"hard_silu", {-0.33333334f, -0.28125f, 0.13541667f, 3}},
        {"hard_swish", {-0.33333334f, -0.28125f, 0.13541667f, 3}},
        {"gelu", {-0.045500264f, -0.16997054f, 0.14967658f, 2.9959502f}},
        {"mish", {-0.25250146f, -0.27649474f, 0.16957241f, 2.9865351f}},
        {"exponential", {0.13533528f, 0.47236654f, 1.2840254f, 20.085537f}},
        {"softmax", {0.0061579677f, 0.02149342f, 0.058425169f, 0.91392344f}},
        {"log_softmax", {-5.0900083f, -3.8400085f, -2.8400085f, -0.090008482f}},
        {"sparsemax", {0, 0, 0, 1}},
        {"threshold", {0, 0, 0.25f, 3}},
        {"glu", {-1.1243531f, -0.71443057f}},
    };
    ed_tensor *x = ed_constant(ED_VALUES(float, -2, -0.75f, 0.25f, 3), ED_SHAPE(1, 4));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ed_tensor *y = ed_activate(x, cases[i].name);
        for (int k = 0; k < (int)ed_size(y); k++)
            if (fabsf(element(y, k) - cases[i].y[k]) > 2e-6f * fmaxf(1, fabsf(cases[i].y[k])))
                fail_msg("%s of %g is %.9g", cases[i].name, (double)element(x, k),
                         (double)element(y, k));
    }
    assert_int_equal(ed_size(ed_activate(x, "glu")), 2);
    assert_fine();
}

static void test_convolution(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ramp(ED_SHAPE(2, 5, 6, 3));
    ed_layer *conv = ed_layer_conv2d(4, ED_INTS(3, 2), .strides = ED_INTS(2, 1), .padding = "SAME",
                                     .activation = "relu");
    ed_layer *model = ed_layer_sequential("cnn", conv, ed_layer_max_pooling2d(),
                                          ed_layer_global_average_pooling2d(), ed_layer_dense(2));
    ed_tensor *y = ed_forward(model, x);
    assert_fine();
    assert_int_equal(ed_dim(y, 0), 2);
    assert_int_equal(ed_dim(y, 1), 2);
    ed_list *w = ed_layer_variables(conv);
    set(conv, 1, ramp(ED_SHAPE(4)));
    assert_memory_equal(ed_shape(ed_list_get(w, 0)).values, ((int64_t[]){3, 2, 3, 4}),
                        4 * sizeof(int64_t));
    ed_tensor *expected = ed_relu(
        ed_bias_add(ed_conv2d(x, ed_list_get(w, 0), .strides = ED_INTS(2, 1), .padding = "SAME"),
                    ed_list_get(w, 1)));
    ed_tensor *got = ed_forward(conv, x);
    assert_int_equal(ed_size(got), ed_size(expected));
    for (int64_t i = 0; i < ed_size(got); i++)
        assert_true(fabsf(element(got, i) - element(expected, i)) < 1e-5f);
    ed_tensor *pooled =
        ed_forward(ed_layer_max_pooling2d(.pool_size = ED_INTS(2, 3), .strides = ED_INTS(1, 2)), x);
    assert_memory_equal(ed_shape(pooled).values, ((int64_t[]){2, 4, 2, 3}), 4 * sizeof(int64_t));
    ed_tensor *mean = ed_forward(ed_layer_global_average_pooling2d(), x);
    float sum = 0;
    for (int i = 0; i < 30; i++) sum += element(x, i * 3 + 1);
    assert_true(fabsf(element(mean, 1) - sum / 30) < 1e-6f);
    assert_fine();
}

static void test_batch_normalization(void **state)
{
    (void)state;
    ED_SCOPE;
    float values[] = {1, 10, 3, 30};
    ed_tensor *x = ed_constant(values, ED_SHAPE(2, 2));
    ed_layer *layer = ed_layer_batch_normalization(.momentum = 0.9);
    ed_tensor *y = ed_forward(layer, x);
    assert_fine();
    assert_true(fabsf(element(y, 3) - 30 / sqrtf(1.001f)) < 1e-4f);
    ed_tensor *mean = ed_list_get(ed_layer_non_trainable_variables(layer), 0),
              *variance = ed_list_get(ed_layer_non_trainable_variables(layer), 1);
    assert_true(element(mean, 0) == 0 && element(variance, 1) == 1);
    y = ed_forward(layer, x, .training = true);
    assert_true(fabsf(element(y, 0) + 1 / sqrtf(1.001f)) < 1e-5f);
    assert_true(fabsf(element(y, 3) - 10 / sqrtf(100.001f)) < 1e-5f);
    assert_true(fabsf(element(mean, 0) - 0.2f) < 1e-6f && fabsf(element(mean, 1) - 2) < 1e-5f);
    assert_true(fabsf(element(variance, 0) - 1) < 1e-6f &&
                fabsf(element(variance, 1) - 10.9f) < 1e-4f);
    y = ed_forward(layer, x);
    assert_true(fabsf(element(y, 2) - 2.8f / sqrtf(1.001f)) < 1e-5f);
    assert_non_null(ed_forward(layer, ramp(ED_SHAPE(0, 2)), .training = true));
    assert_true(fabsf(element(mean, 0) - 0.2f) < 1e-6f);
    ed_layer *plain = ed_layer_batch_normalization(.center = false, .scale = false);
    assert_non_null(ed_forward(plain, x, .training = true));
    assert_int_equal(ed_list_size(ed_layer_trainable_variables(plain)), 0);
    assert_int_equal(ed_list_size(ed_layer_variables(plain)), 2);
    assert_fine();
}

/* Against Keras 3.14: one batch in training, then by the moving statistics. */
static void test_batch_normalization_as_keras(void **state)
{
    (void)state;
    static const float training[] = {-2.30934811f,  -1.33313584f, -1.33343208f, 1.46232271f,
                                     -0.444378614f, -1.77781069f, 1.10311604f,  0.444378614f,
                                     -2.22218943f,  0.743909299f, 1.33313584f,  -2.6665678f};
    static const float moved[] = {-1.8630178f,  0.432699919f, -1.80331826f, 2.055161f,
                                  0.694942296f, -1.93443942f, 1.68200111f,  0.957184672f,
                                  -2.06556058f, 1.30884123f,  1.21942699f,  -2.19668174f};
    static const float means[] = {0.0406250022f, -0.0874999985f, 0},
                       variances[] = {1.00888669f, 0.907812476f, 0.907812476f};
    ED_SCOPE;
    ed_layer *layer = ed_layer_batch_normalization(.momentum = 0.9);
    ed_tensor *x = ramp(ED_SHAPE(4, 3));
    assert_non_null(ed_forward(layer, x));
    set(layer, 0, ed_constant(((float[]){1.5f, -1, 0.5f}), ED_SHAPE(3)));
    set(layer, 1, ed_constant(((float[]){0.25f, 0, -2}), ED_SHAPE(3)));
    ed_tensor *y = ed_forward(layer, x, .training = true), *z = ed_forward(layer, x);
    assert_fine();
    for (int i = 0; i < 12; i++) {
        assert_true(fabsf(element(y, i) - training[i]) < 1e-6f);
        assert_true(fabsf(element(z, i) - moved[i]) < 1e-6f);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(fabsf(element(ed_list_get(ed_layer_variables(layer), 2), i) - means[i]) <
                    1e-7f);
        assert_true(fabsf(element(ed_list_get(ed_layer_variables(layer), 3), i) - variances[i]) <
                    2e-7f);
    }
}

/* The statistics move once a training step, whatever the optimizer does, and no tape sees it. */
static void test_statistics_and_training(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *model = ed_layer_sequential(
        "m", ed_layer_dense(2), ed_layer_batch_normalization(.momentum = 0.5), ed_layer_dense(1));
    ed_optimizer *o = ed_optimizer_sgd();
    ed_tensor *x = ramp(ED_SHAPE(4, 3));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(ed_square(ed_forward(model, x, .training = true)));
    assert_int_equal(ed_list_size(ed_tape_watched_variables(tape)), 6);
    ed_tensor *mean = ed_list_get(ed_layer_non_trainable_variables(model), 0),
              *held = ed_value(mean);
    assert_true(ed_minimize(o, tape, loss, model));
    assert_true(element(held, 0) == element(mean, 0) && element(mean, 0) != 0);
    assert_int_equal(ed_list_size(ed_optimizer_variables(o)), 0);
    assert_fine();
}

static void test_small_layers(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ramp(ED_SHAPE(2, 3, 4)), *flat = ed_forward(ed_layer_flatten(), x);
    assert_int_equal(ed_rank(flat), 2);
    assert_int_equal(ed_dim(flat, 1), 12);
    assert_int_equal(ed_dim(ed_forward(ed_layer_flatten(), ramp(ED_SHAPE(0, 3, 4))), 1), 12);
    assert_int_equal(ed_dim(ed_forward(ed_layer_flatten(), ramp(ED_SHAPE(5))), 1), 1);
    ed_generator *a = ed_generator_from_seed(3), *b = ed_generator_from_seed(3);
    ed_layer *one = ed_layer_dropout(0.5, .generator = a),
             *other = ed_layer_dropout(0.5, .generator = b);
    assert_ptr_equal(ed_forward(one, x), x);
    ed_tensor *first = ed_forward(one, x, .training = true),
              *same = ed_forward(other, x, .training = true);
    for (int i = 0; i < 24; i++) {
        assert_true(element(first, i) == element(same, i));
        assert_true(element(first, i) == 0 || element(first, i) == 2 * element(x, i));
    }
    assert_ptr_equal(ed_forward(ed_layer_dropout(0), x, .training = true), x);
    assert_true(element(ed_forward(ed_layer_activation("relu"), x), 0) == 0);
    assert_ptr_equal(ed_activate(x, NULL), x);
    assert_ptr_equal(ed_forward(ed_layer_sequential("empty"), x), x);
    assert_fine();
}

/* ---- Initializers ---------------------------------------------------------------------------- */

static void check_spread(const char *name, double stddev, double limit)
{
    ED_SCOPE;
    ed_tensor *t = ed_initialize(initializer_named(name, ed_generator_from_seed(1)),
                                 ED_SHAPE(3, 2, 50, 100), ED_FLOAT32);
    assert_fine();
    double sum = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < ed_size(t); i++) {
        double x = element(t, i);
        sum += x;
        squares += x * x;
        largest = fmax(largest, fabs(x));
    }
    double n = (double)ed_size(t);
    assert_true(fabs(sum / n) < 4 * stddev / sqrt(n));
    assert_true(fabs(sqrt(squares / n) / stddev - 1) < 0.015);
    assert_true(largest <= limit * 1.000001);
    assert_true(largest > limit * 0.98 || limit > 1e3);
}

static void test_initializers(void **state)
{
    (void)state;
    ED_SCOPE;
    double in = 300, out = 600, mean = (in + out) / 2, cut = 2 / 0.87962566103423978;
    check_spread("glorot_uniform", sqrt(1 / mean), sqrt(3 / mean));
    check_spread("variance_scaling", sqrt(1 / in), sqrt(1 / in) * cut);
    check_spread("glorot_normal", sqrt(1 / mean), sqrt(1 / mean) * cut);
    check_spread("he_uniform", sqrt(2 / in), sqrt(6 / in));
    check_spread("he_normal", sqrt(2 / in), sqrt(2 / in) * cut);
    check_spread("lecun_uniform", sqrt(1 / in), sqrt(3 / in));
    check_spread("lecun_normal", sqrt(1 / in), sqrt(1 / in) * cut);
    check_spread("random_uniform", 0.05 / sqrt(3), 0.05);
    check_spread("random_normal", 0.05, 1e6);
    check_spread("truncated_normal", 0.05 * 0.87962566103423978, 0.1);
    assert_true(ed_item(ed_initialize(ed_initializer_constant(2.5), ED_SHAPE(1, 1), ED_FLOAT64)) ==
                2.5);
    assert_true(ed_item(ed_initialize(ed_initializer_zeros(), ED_SHAPE(), ED_FLOAT32)) == 0);
    assert_true(ed_item(ed_initialize(ed_initializer_ones(), ED_SHAPE(1), ED_FLOAT32)) == 1);
    assert_non_null(ed_initialize(ed_initializer_glorot_uniform(), ED_SHAPE(), ED_FLOAT32));
    assert_int_equal(ed_size(ed_initialize(ed_initializer_he_normal(), ED_SHAPE(0, 3), ED_FLOAT32)),
                     0);
    assert_fine();
    assert_null(ed_make(ed_kind_find("initializer", "nothing"), NULL));
    for (int i = 0; i < ed_kind_count(); i++)
        if (!strcmp(ed_kind_at(i)->family, "initializer"))
            assert_non_null(strstr(ed_error(), ed_kind_at(i)->name));
    assert_error("unknown initializer \"nothing\"; there are constant, ");
    assert_null(ed_kind_find("initializer", "glorot"));
    assert_error("did you mean \"glorot_normal\" or \"glorot_uniform\"?");
    assert_null(ed_initialize(ed_initializer_zeros(), ED_SHAPE(1), ED_INT32));
    assert_error("int32");
    assert_null(ed_initialize(ed_initializer_constant(NAN), ED_SHAPE(1), ED_FLOAT32));
    assert_error("nan");
    assert_null(
        ed_initialize(ed_initializer_zeros(), ED_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), ED_FLOAT32));
    assert_error("the rank of shape must be 0 to 8, got 9");
    assert_null(ed_initialize(ed_initializer_glorot_uniform(), ED_SHAPE(INT64_MAX, 8), ED_FLOAT32));
    assert_error("more elements");
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static void test_metrics(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_metric *mean = ed_metric_mean(.name = "loss"), *accuracy = ed_metric_accuracy();
    ed_metric *sparse = ed_metric_sparse_categorical_accuracy();
    assert_true(ed_metric_result(mean) == 0);
    assert_true(ed_metric_update(mean, ed_constant(((float[]){1, 2, 3}), ED_SHAPE(3))));
    assert_true(ed_metric_update(mean, ed_scalar(6)));
    assert_true(ed_metric_result(mean) == 3);
    assert_true(ed_metric_reset(mean));
    assert_true(ed_metric_result(mean) == 0);
    ed_tensor *a = ed_constant(((int64_t[]){1, 2, 3, INT64_MAX}), ED_SHAPE(4));
    ed_tensor *b = ed_constant(((int64_t[]){1, 2, 0, INT64_MAX - 1}), ED_SHAPE(4));
    assert_true(ed_metric_compare(accuracy, a, b));
    assert_true(ed_metric_result(accuracy) == 0.5);
    assert_true(ed_metric_compare(accuracy, ed_constant(((float[]){0.5f}), ED_SHAPE(1)),
                                  ed_constant(((float[]){0.5f}), ED_SHAPE(1))));
    assert_true(fabs(ed_metric_result(accuracy) - 0.6) < 1e-12);
    assert_true(ed_metric_reset(accuracy));
    assert_true(ed_metric_compare(accuracy, ed_reshape(a, ED_SHAPE(4, 1)), b));
    assert_true(ed_metric_result(accuracy) == 0.5);
    assert_true(ed_metric_compare(accuracy, ed_reshape(a, ED_SHAPE(2, 2)),
                                  ed_reshape(b, ED_SHAPE(2, 2, 1))));
    assert_true(ed_metric_result(accuracy) == 0.5);
    assert_true(ed_metric_compare(accuracy, ed_scalar(1), ed_ones(ED_SHAPE(1))));
    assert_fine();
    assert_false(ed_metric_compare(accuracy, a, ed_reshape(b, ED_SHAPE(4, 1, 1))));
    assert_error("must have the same shape, but for a last dimension of 1");
    assert_false(ed_metric_compare(accuracy, a, ed_reshape(b, ED_SHAPE(1, 4))));
    assert_error("int64[4], predictions are int64[1, 4]");
    ed_tensor *logits = ed_constant(((float[]){0, 2, 1, 5, 5, 1, NAN, 0, 1}), ED_SHAPE(3, 3));
    ed_tensor *labels = ed_constant(((int32_t[]){1, 0, 2}), ED_SHAPE(3));
    assert_true(ed_metric_compare(sparse, labels, logits));
    assert_true(ed_metric_result(sparse) == 1);
    assert_true(ed_metric_compare(sparse, ed_reshape(labels, ED_SHAPE(3, 1)), logits));
    assert_true(ed_metric_result(sparse) == 1);
    assert_true(ed_metric_reset(sparse) && ed_metric_compare(sparse, labels, logits));
    assert_true(
        ed_metric_compare(sparse, ed_constant(((uint8_t[]){0, 1, 0}), ED_SHAPE(3)), logits));
    assert_true(ed_metric_result(sparse) == 0.5);
    assert_fine();
    assert_false(
        ed_metric_compare(sparse, ed_constant(((int32_t[]){1, 0, 3}), ED_SHAPE(3)), logits));
    assert_error("sparse_categorical_accuracy: the label 3 is out of bounds: it must be in 0..2");
    assert_false(ed_metric_compare(sparse, logits, logits));
    assert_error("labels is float32[3, 3]; it takes int32, int64");
    assert_false(ed_metric_compare(sparse, labels, ed_index(logits, 0)));
    assert_error("[..., classes]");
    assert_false(ed_metric_compare(accuracy, a, labels));
    assert_error("must have the same shape");
    assert_false(ed_metric_compare(mean, a, a));
    assert_error("loss takes values");
    assert_false(ed_metric_update(accuracy, a));
    assert_error("accuracy takes labels and predictions");
    assert_true(ed_metric_result(sparse) == 0.5);
}

/* ---- Learning -------------------------------------------------------------------------------- */

/* What minimize trains: a layer, a list, a variable, or what the tape watched. */
static void test_trained(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ramp(ED_SHAPE(4, 3)), *v = ed_variable(ed_ones(ED_SHAPE(1)));
    ed_optimizer *o = ed_optimizer_sgd(.learning_rate = 0.25);
    ed_layer *model = ed_layer_dense(1), *unbuilt = ed_layer_dense(1);
    /* Built within the expression, and found nevertheless: arguments have no order. */
    ed_tape *tape = ed_tape_begin();
    assert_true(ed_minimize(o, tape, ed_reduce_mean(ed_forward(model, x)), model));
    ed_tensor *bias = ed_list_get(ed_layer_variables(model), 1);
    assert_true(ed_item(bias) == -0.25);
    tape = ed_tape_begin();
    assert_true(ed_minimize(o, tape, ed_reduce_mean(ed_forward(model, x)), NULL));
    assert_true(ed_item(bias) == -0.5);
    tape = ed_tape_begin();
    assert_true(ed_minimize(o, tape, ed_mul(ed_add(bias, v), 2), v));
    assert_true(ed_item(v) == 0.5 && ed_item(bias) == -0.5);
    tape = ed_tape_begin();
    assert_true(ed_minimize(o, tape, ed_add(bias, v), ed_list_of(bias)));
    assert_true(ed_item(v) == 0.5 && ed_item(bias) == -0.75);
    assert_fine();

    tape = ed_tape_begin();
    ed_tensor *loss = ed_add(bias, v);
    assert_fails(ed_minimize(o, tape, loss, unbuilt), ED_FAILED_PRECONDITION,
                 "no variables before its first ed_forward");
    assert_fails(ed_minimize(o, tape, loss, ed_list_make(NULL, 0)), ED_INVALID_ARGUMENT,
                 "no variables to train");
    assert_fails(ed_minimize(o, tape, loss, (void *)o), ED_INVALID_ARGUMENT,
                 "minimize: trained must be a layer, a list of variables, a variable or NULL, got "
                 "optimizer");
    assert_fails(ed_minimize(o, tape, NULL, model), ED_INVALID_ARGUMENT, "minimize: loss is NULL");
    /* No list, since it could not be made, is not the same as none given. */
    assert_false(ed_minimize(o, tape, loss, ed_layer_trainable_variables(NULL)));
    assert_error("NULL");
    assert_int_equal(ed_optimizer_iterations(o), 4);
}

static void test_linear_regression(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(1);
    ed_tensor *x = ramp(ED_SHAPE(32, 2)), *w = ed_constant(((float[]){2, -3}), ED_SHAPE(2, 1));
    ed_tensor *y = ed_add(ed_matmul(x, w), 0.5);
    ed_layer *model = ed_layer_dense(1);
    ed_optimizer *o = ed_optimizer_sgd(.learning_rate = 0.1, .momentum = 0.9);
    for (int i = 0; i < 300; i++) step(model, o, x, y);
    assert_fine();
    ed_list *found = ed_layer_trainable_variables(model);
    assert_true(fabsf(element(ed_list_get(found, 0), 0) - 2) < 1e-3f);
    assert_true(fabsf(element(ed_list_get(found, 0), 1) + 3) < 1e-3f);
    assert_true(fabsf(element(ed_list_get(found, 1), 0) - 0.5f) < 1e-3f);
}

static void test_xor(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(2);
    ed_tensor *x = ed_constant(((float[]){0, 0, 0, 1, 1, 0, 1, 1}), ED_SHAPE(4, 2));
    ed_tensor *y = ed_constant(((float[]){0, 1, 1, 0}), ED_SHAPE(4, 1));
    ed_layer *model = ed_layer_sequential("xor", ed_layer_dense(8, .activation = "tanh"),
                                          ed_layer_dense(1, .activation = "sigmoid"));
    ed_optimizer *o = ed_optimizer_adam(.learning_rate = 0.05);
    double loss = 1;
    for (int i = 0; i < 500; i++) loss = step(model, o, x, y);
    assert_fine();
    assert_true(loss < 0.01);
    ed_tensor *answer = ed_forward(model, x);
    for (int i = 0; i < 4; i++) assert_true((element(answer, i) > 0.5f) == (i == 1 || i == 2));
}

/* Statistics of the memory do not grow over steps. */
static void test_no_growth(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *model = ed_layer_sequential("m", ed_layer_dense(8, .activation = "relu"),
                                          ed_layer_batch_normalization(), ed_layer_dropout(0.3),
                                          ed_layer_dense(2));
    ed_optimizer *o = ed_optimizer_adam(.global_clipnorm = 1);
    ed_tensor *x = ramp(ED_SHAPE(4, 3)), *y = ramp(ED_SHAPE(4, 2));
    for (int i = 0; i < 3; i++) step(model, o, x, y);
    ed_memory before = ed_memory_stats();
    for (int i = 0; i < 20; i++) step(model, o, x, y);
    ed_memory after = ed_memory_stats();
    assert_fine();
    assert_int_equal(before.live_tensors, after.live_tensors);
    assert_int_equal(before.live_bytes, after.live_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_batch_normalization),
        cmocka_unit_test(test_batch_normalization_as_keras),
        cmocka_unit_test(test_statistics_and_training),
        cmocka_unit_test(test_small_layers),
        cmocka_unit_test(test_initializers),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_trained),
        cmocka_unit_test(test_linear_regression),
        cmocka_unit_test(test_xor),
        cmocka_unit_test(test_no_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
