/*
 * Random ops: TensorFlow's streams through the public functions, what advances a generator and what
 * doesn't, options that are refused, dropout and its gradient.
 */
#include "autodiff/autodiff.h"
#include "ops/generator.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static void near(ed_tensor *x, int n, const float *expected)
{
    if (!x) fail_msg("%s", ed_error());
    assert_int_equal(ed_dtype_of(x), ED_FLOAT32);
    assert_int_equal(ed_size(x), n);
    const float *got = ed_data(x);
    for (int i = 0; i < n; i++)
        if (fabsf(got[i] - expected[i]) > 2.5e-7f * fmaxf(1, fabsf(expected[i])))
            fail_msg("value %d is %.9g, expected %.9g", i, (double)got[i], (double)expected[i]);
}

#define NEAR(x, ...)                                                                               \
    near(x, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (const float[]){__VA_ARGS__})

static void numbers(ed_tensor *x, int n, const int64_t *expected)
{
    if (!x) fail_msg("%s", ed_error());
    assert_int_equal(ed_size(x), n);
    const double *got = ed_as_doubles(x);
    for (int i = 0; i < n; i++) assert_int_equal((int64_t)got[i], expected[i]);
}

#define NUMBERS(x, ...)                                                                            \
    numbers(x, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static void global_seed(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(1);
    NEAR(ed_random_uniform(ED_SHAPE(6)), 0.1651309f, 0.9014813f, 0.6309742f, 0.4345461f, 0.2919390f,
         0.6425021f);
    ed_tensor *second = ed_random_uniform(ED_SHAPE(6));
    ed_set_seed(1);
    ed_random_normal(ED_SHAPE(3)); /* one draw of seeds, whatever is drawn */
    ed_tensor *again = ed_random_uniform(ED_SHAPE(6));
    assert_memory_equal(ed_data(second), ed_data(again), 24);
    ed_set_seed(42);
    NEAR(ed_random_uniform(ED_SHAPE(2, 2)), 0.6645621f, 0.4410068f, 0.3528825f, 0.4644825f);
    ed_set_seed(42);
    NEAR(ed_random_normal(ED_SHAPE(4)), 0.3274685f, -0.8426258f, 0.3194337f, -1.4075519f);
    ed_set_seed(1234);
    NEAR(ed_random_uniform(ED_SHAPE(3)), 0.5380393f, 0.3646187f, 0.5816301f);
    ed_set_seed(1234);
    NEAR(ed_random_uniform(ED_SHAPE(3), .low = -2, .high = 2), 0.1521572f, -0.5415252f, 0.3265204f);
}

static void generators(void **state)
{
    (void)state;
    ED_SCOPE;
    uint64_t s[3];
    ed_generator *g = ed_generator_from_seed(1234);
    NEAR(ed_random_normal(ED_SHAPE(2, 3), .generator = g), 0.9356609f, 1.0854305f, -0.93788373f,
         -0.5061547f, 1.3169702f, 0.7137579f);
    ed_generator_state(g, s);
    assert_int_equal(s[0], 2770);
    assert_int_equal(s[1], 0);
    assert_int_equal(s[2], 0);

    /* What is refused, and what is empty, draws nothing; rate 0 neither. */
    ed_tensor *x = ed_constant(((float[]){1, 2, 3, 4, 5, 6}), ED_SHAPE(6));
    ed_random_uniform(ED_SHAPE(0, 5), .generator = g);
    ed_dropout(x, 0, .generator = g);
    assert_false(ed_failed());
    assert_null(ed_random_uniform(ED_SHAPE(-1), .generator = g));
    ed_clear_error();
    assert_null(ed_random_uniform(ED_SHAPE(2), .generator = g, .low = 3));
    ed_clear_error();
    assert_null(ed_dropout(x, 1, .generator = g));
    ed_clear_error();
    ed_generator_state(g, s);
    assert_int_equal(s[0], 2770);
    ed_dropout(x, 0.5, .generator = g);
    ed_generator_state(g, s);
    assert_int_equal(s[0], 2770 + 6 * 256);

    const uint64_t end[3] = {UINT64_MAX, 7, 9}; /* the carry, and going back */
    assert_true(ed_generator_set_state(g, end));
    ed_tensor *a = ed_random_uniform(ED_SHAPE(40), .generator = g);
    ed_generator_state(g, s);
    assert_int_equal(s[0], 40 * 256 - 1);
    assert_int_equal(s[1], 8);
    assert_int_equal(s[2], 9);
    ed_generator_set_state(g, end);
    ed_tensor *b = ed_random_uniform(ED_SHAPE(40), .generator = g);
    assert_memory_equal(ed_data(a), ed_data(b), 160);

    assert_false(ed_generator_set_state(NULL, s));
    ed_clear_error();
    assert_false(ed_generator_set_state(g, NULL));
    ed_clear_error();
    ed_generator_state(NULL, s);
    assert_true(ed_failed());
    ed_clear_error();
}

/* Every dtype makes numbers of its kind, in their range. */
static void dtypes(void **state)
{
    (void)state;
    static const ed_dtype floats[] = {ED_FLOAT32, ED_FLOAT64, ED_FLOAT16, ED_BFLOAT16};
    static const ed_dtype whole[] = {ED_INT32, ED_INT64};
    ed_set_seed(3);
    for (int k = 0; k < 4; k++) {
        ED_SCOPE;
        ed_tensor *u = ed_random_uniform(ED_SHAPE(1000), .dtype = floats[k], .low = 2, .high = 6);
        ed_tensor *z = ed_random_normal(ED_SHAPE(1000), .dtype = floats[k], .mean = 8);
        ed_tensor *t = ed_random_truncated_normal(ED_SHAPE(1000), .dtype = floats[k], .stddev = 3);
        assert_false(ed_failed());
        assert_int_equal(ed_dtype_of(t), floats[k]);
        double mean_u = 0, mean_z = 0;
        for (int i = 0; i < 1000; i++) {
            double v = dtype_load(floats[k], u->data, i);
            assert_true(v >= 2 && v <= 6);
            mean_u += v / 1000;
            mean_z += dtype_load(floats[k], z->data, i) / 1000;
            assert_true(fabs(dtype_load(floats[k], t->data, i)) <= 6.01);
        }
        assert_true(fabs(mean_u - 4) < 0.2 && fabs(mean_z - 8) < 0.2);
    }
    for (int k = 0; k < 2; k++) {
        ED_SCOPE;
        ed_tensor *x = ed_random_uniform(ED_SHAPE(1000), .dtype = whole[k], .low = -2, .high = 3);
        int seen = 0;
        for (int i = 0; i < 1000; i++) {
            double v = dtype_load(whole[k], x->data, i);
            assert_true(v >= -2 && v < 3);
            seen |= 1 << ((int)v + 2);
        }
        assert_int_equal(seen, 31);
    }
    ED_SCOPE; /* full ranges, whose length the type can't hold */
    ed_generator *g = ed_generator_from_seed(1234);
    ed_tensor *x = ed_random_uniform(ED_SHAPE(3), .dtype = ED_INT64, .low = -0x1p63, .high = 0x1p63,
                                     .generator = g);
    assert_int_equal(((const int64_t *)ed_data(x))[0], 472453817354278855);
    assert_int_equal(((const int64_t *)ed_data(x))[2], -65898304404607253);
    x = ed_random_uniform(ED_SHAPE(100), .dtype = ED_INT32, .low = -0x1p31, .high = 0x1p31);
    int negative = 0;
    for (int i = 0; i < 100; i++) negative += ((const int32_t *)ed_data(x))[i] < 0;
    assert_in_range(negative, 20, 80);
    x = ed_random_uniform(ED_SHAPE(100), .dtype = ED_INT32, .low = 0x1p31 - 2, .high = 0x1p31);
    for (int i = 0; i < 100; i++) assert_true(((const int32_t *)ed_data(x))[i] >= INT32_MAX - 1);
    assert_true(ed_item(ed_random_uniform(ED_SHAPE(), .low = 1, .high = 1)) == 1);
}

static void refusals(void **state)
{
    (void)state;
    ED_SCOPE;
    const ed_error_code bad = ED_INVALID_ARGUMENT;
    const ed_ints none = {0};
    assert_fails(ed_random_uniform(none), bad, "random_uniform: shape is required");
    assert_fails(ed_random_normal(none), bad, "random_normal: shape is required");
    assert_fails(ed_random_truncated_normal(none), bad,
                 "random_truncated_normal: shape is required");
    assert_fails(ed_random_uniform_with(none, NULL), bad, "shape is required");
    assert_fails(ed_random_uniform(ED_SHAPE(2, -3)), bad, "negative dimension");
    assert_fails(ed_random_normal(ED_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)), bad,
                 "rank must be 0 to 8, got 9");
    assert_fails(ed_random_normal(ED_SHAPE(INT64_MAX, 4)), ED_OUT_OF_MEMORY, "more elements");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = ED_UINT8), bad, "got uint8");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = ED_BOOL), bad, "got bool");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = (ed_dtype)77), bad, "not a dtype");
    assert_fails(ed_random_normal(ED_SHAPE(2), .dtype = ED_INT32), bad,
                 "dtype must be a float, got int32");
    assert_fails(ed_random_normal(ED_SHAPE(2), .stddev = -1), bad,
                 "stddev must be at least 0, got -1");
    assert_fails(ed_random_normal(ED_SHAPE(2), .mean = NAN), bad, "mean must be finite, got nan");
    assert_fails(ed_random_normal(ED_SHAPE(2), .stddev = INFINITY), bad,
                 "stddev must be finite, got inf");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .low = 2, .high = 1), bad, "low is 2, high is 1");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .high = NAN), bad, "finite");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = ED_INT32, .high = 0), bad,
                 "there is no integer");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = ED_INT32, .high = 2.5), bad,
                 "must be integers in the range of int32");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = ED_INT32, .high = 0x1p32), bad,
                 "must be integers in the range of int32");
    assert_fails(ed_random_uniform(ED_SHAPE(2), .dtype = ED_INT64, .low = -0x1p64, .high = 1), bad,
                 "must be integers in the range of int64");

    ed_tensor *x = ed_constant(((float[]){1, 2}), ED_SHAPE(2));
    ed_tensor *whole = ed_constant(((int32_t[]){1, 2}), ED_SHAPE(2));
    assert_fails(ed_dropout(NULL, 0.5), bad, "x is NULL");
    assert_fails(ed_dropout(x, -0.1), bad, "dropout: rate must be in [0, 1), got -0.1");
    assert_fails(ed_dropout(x, 1), bad, "got 1");
    assert_fails(ed_dropout(x, NAN), bad, "got nan");
    assert_fails(ed_dropout(whole, 0.5), bad, "int32[2]");
    assert_fails(ed_random_shuffle(NULL), bad, "x is NULL");
    assert_fails(ed_random_shuffle(ed_constant(((float[]){1}), ED_SHAPE())), bad,
                 "x must have rank >= 1, got float32[]");
    assert_fails(ed_random_shuffle_with(NULL, NULL), bad, "x is NULL");
}

static void shuffles(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 50 };
    int32_t rows[2 * N];
    for (int i = 0; i < 2 * N; i++) rows[i] = i;
    ed_set_seed(7);
    ed_tensor *x = ed_constant(rows, ED_SHAPE(N, 2)), *y = ed_random_shuffle(x);
    const int32_t *got = ed_data(y);
    assert_non_null(got);
    bool seen[N] = {0};
    int moved = 0;
    for (int i = 0; i < N; i++) {
        assert_int_equal(got[2 * i] % 2, 0);
        assert_int_equal(got[2 * i + 1], got[2 * i] + 1);
        assert_false(seen[got[2 * i] / 2]);
        seen[got[2 * i] / 2] = true;
        moved += got[2 * i] != 2 * i;
    }
    assert_true(moved > N / 2);
    ed_generator *g = ed_generator_from_seed(1);
    assert_int_equal(ed_size(ed_random_shuffle(x, .generator = g)), 2 * N);
    uint64_t s[3];
    ed_generator_state(g, s);
    assert_int_equal(s[0], 1 + 256 * N);
    assert_int_equal(ed_size(ed_random_shuffle(ed_constant(rows, ED_SHAPE(0, 3)))), 0);
    assert_int_equal(ed_item(ed_random_shuffle(ed_constant(rows + 5, ED_SHAPE(1)))), 5);
}

/* dropout(x) = x * factors, factors 0 or 1 / (1 - rate); so are its gradient and that one's
 * gradient. */
static void drops(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 400 };
    double numbers[N];
    for (int i = 0; i < N; i++) numbers[i] = i + 1;
    ed_tensor *x = ed_constant(numbers, ED_SHAPE(20, 20));
    ed_set_seed(5);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_tensor *transposed = ed_transpose(ed_watch(tape, x));
    ed_tensor *y = ed_dropout(transposed, 0.25);
    ed_tensor *dx = ed_gradient(tape, y, transposed, .output_gradients = ed_list_of(transposed));
    const double *out = ed_data(y), *in = ed_data(transposed), *back = ed_data(dx);
    assert_non_null(back);
    int kept = 0;
    for (int i = 0; i < N; i++) {
        assert_true(out[i] == 0 || out[i] == in[i] * (1 / 0.75));
        assert_true(back[i] == out[i]); /* dy was x itself */
        kept += out[i] != 0;
    }
    assert_in_range(kept, 250, 350);
    assert_ptr_equal(ed_data(ed_dropout(x, 0)), ed_data(x));
    assert_int_equal(ed_size(ed_dropout(ed_constant(numbers, ED_SHAPE(0)), 0.5)), 0);
    ed_tensor *weights = ed_variable(ed_constant(((float[]){1, 2}), ED_SHAPE(2)));
    assert_false(ed_is_variable(ed_dropout(weights, 0)));
    assert_non_null(ed_dropout(weights, 0.5));
}

static void *draw_many(void *generator)
{
    for (int i = 0; i < 200; i++) {
        ED_SCOPE;
        if (!ed_random_uniform(ED_SHAPE(3), .generator = generator)) return generator;
        if (!ed_random_uniform(ED_SHAPE(3))) return generator;
    }
    return NULL;
}

/* Generators and the source may be shared between threads: no draw is given twice. */
static void threads(void **state)
{
    (void)state;
    ED_SCOPE;
    pthread_t thread[3];
    uint64_t s[3];
    ed_generator *g = ed_generator_from_seed(0);
    for (int i = 0; i < 3; i++) pthread_create(&thread[i], NULL, draw_many, g);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    ed_generator_state(g, s);
    assert_int_equal(s[0], 3 * 200 * 3 * 256);
}

static void without_memory(void **state)
{
    (void)state;
    int n = 0;
    for (bool done = false; !done; n++) {
        ED_SCOPE;
        ed_memory_fail_at(n, false);
        ed_generator *g = ed_generator_from_seed(1);
        ed_tensor *x = g ? ed_random_normal(ED_SHAPE(5), .generator = g) : NULL;
        ed_tensor *y = ed_random_shuffle(ed_dropout(x, 0.5));
        done = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_true(done ? y && !ed_failed() : ed_error_kind() == ED_OUT_OF_MEMORY);
        ed_clear_error();
    }
    assert_true(n > 4);
}

/* A call that fails for want of memory leaves the generator as it was. */
static void without_memory_no_draw(void **state)
{
    (void)state;
    ED_SCOPE;
    float values[12] = {1};
    ed_generator *g = ed_generator_from_seed(7);
    ed_tensor *x = ed_transpose(ed_constant(values, ED_SHAPE(4, 3)));
    for (int what = 0; what < 2; what++) {
        int n = 0;
        for (bool done = false; !done; n++) {
            ED_SCOPE;
            uint64_t before[3], after[3];
            ed_generator_state(g, before);
            ed_memory_fail_at(n, false);
            ed_tensor *y = what ? ed_dropout(x, 0.5, .generator = g)
                                : ed_random_normal(ED_SHAPE(5), .generator = g);
            done = !ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            ed_generator_state(g, after);
            assert_int_equal(y != NULL, done);
            assert_int_equal(after[0] != before[0], done);
            ed_clear_error();
        }
        assert_true(n > 2);
    }
}

/* TensorFlow's numbers for the seed [1, 2]. */
static void stateless(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *seed = ed_constant(ED_VALUES(int64_t, 1, 2), ED_SHAPE(2));
    NEAR(ed_stateless_uniform(seed, ED_SHAPE(6)), 0.8440604f, 0.19204533f, 0.9962232f, 0.1603874f,
         0.27199018f, 0.649346f);
    NEAR(ed_stateless_normal(seed, ED_SHAPE(2, 3)), 0.5441101f, 0.20738031f, 0.07356432f,
         0.04643455f, -1.3015898f, -0.9538565f);
    NEAR(ed_stateless_truncated_normal(seed, ED_SHAPE(6)), 0.5441101f, 0.20738031f, 0.07356432f,
         0.04643455f, 0.16820592f, -1.6850333f);
    NUMBERS(ed_stateless_split(ed_cast(seed, ED_INT32), 2), 1105988140, 1738052849, -335576002,
            370444179);
    NUMBERS(ed_stateless_fold_in(seed, ed_scalar(3)), 1105988140, 3);
    NUMBERS(ed_stateless_shuffle(ed_range(0, 6, .dtype = ED_INT64), seed), 4, 5, 0, 3, 1, 2);
}

static void distributions(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *seed = ed_constant(ED_VALUES(int64_t, 1, 2), ED_SHAPE(2));
    const ed_ints shape = ED_SHAPE(2, 3);
    NEAR(ed_stateless_gamma(ed_constant(ED_VALUES(float, 0.5f, 1, 3), ED_SHAPE(3)), seed,
                            .shape = shape),
         0.06695361f, 2.2487352f, 3.4035148f, 0.62823545f, 1.8935091f, 2.4479712f);
    NUMBERS(ed_stateless_poisson(ed_constant(ED_VALUES(float, 0.5f, 4, 400), ED_SHAPE(3)), seed,
                                 .shape = shape),
            3, 6, 381, 2, 6, 412);
    NUMBERS(ed_stateless_binomial(ed_constant(ED_VALUES(double, 10, 400, 7e4), ED_SHAPE(3)),
                                  ed_constant(ED_VALUES(double, .3, .5, .9), ED_SHAPE(3)), seed,
                                  .shape = shape),
            5, 215, 63074, 5, 212, 62954);
    ed_tensor *logits = ed_log(ed_reshape(
        ed_constant(ED_VALUES(float, .1f, .2f, .7f, .5f, .25f, .25f), ED_SHAPE(6)), shape));
    NUMBERS(ed_stateless_categorical(logits, seed, 5), 2, 2, 1, 2, 2, 1, 2, 0, 2, 2);
    assert_null(ed_stateless_gamma(ed_constant(ED_VALUES(float, 1, -1), ED_SHAPE(2)), seed));
    assert_string_equal(
        ed_error(), "stateless_gamma: alpha[1], counted flat, is -1; it must be > 0 and finite");
    ed_clear_error();
}

/* TensorFlow's numbers for the seed [7, 11], of parameters at the ends of their ranges, too. */
static void more_distributions(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *seed = ed_constant(ED_VALUES(int64_t, 7, 11), ED_SHAPE(2));
    NEAR(ed_stateless_gamma(ed_constant(ED_VALUES(float, 0.3f, 1, 50), ED_SHAPE(3)), seed,
                            .shape = ED_SHAPE(3, 3)),
         0.0273978952f, 1.97757971f, 45.9423714f, 0.295292825f, 0.58235234f, 57.9056816f,
         1.32687843f, 0.88791889f, 50.9368439f);
    ed_tensor *doubles = ed_stateless_gamma(ed_constant(ED_VALUES(double, 0.3, 5), ED_SHAPE(2)),
                                            seed, .shape = ED_SHAPE(2, 2));
    NEAR(ed_cast(doubles, ED_FLOAT32), 0.0273978909f, 6.59463086f, 0.295292815f, 9.29414391f);
    NUMBERS(ed_stateless_poisson(ed_constant(ED_VALUES(float, 0, 3, 60), ED_SHAPE(3)), seed,
                                 .shape = ED_SHAPE(4, 3)),
            0, 5, 53, 0, 5, 62, 0, 4, 66, 0, 0, 60);
    NUMBERS(ed_stateless_poisson(ed_constant(ED_VALUES(double, 9, 1e5), ED_SHAPE(2)), seed,
                                 .shape = ED_SHAPE(2, 2), .dtype = ED_INT64),
            13, 100581, 11, 100393);
    NUMBERS(ed_stateless_binomial(ed_constant(ED_VALUES(float, 5, 1000, 50), ED_SHAPE(3)),
                                  ed_constant(ED_VALUES(float, .3f, .4f, .95f), ED_SHAPE(3)), seed,
                                  .shape = ED_SHAPE(4, 3)),
            2, 397, 49, 1, 404, 46, 0, 407, 46, 2, 365, 45);
    NUMBERS(ed_stateless_binomial(ed_constant(ED_VALUES(double, 0, 20, 1e6), ED_SHAPE(3)),
                                  ed_constant(ED_VALUES(double, .5, 1, .01), ED_SHAPE(3)), seed,
                                  .shape = ED_SHAPE(2, 3)),
            0, 20, 9984, 0, 20, 10025);
}

/* Samples in float32 are drawn many at a time, with approximations where these can't change a bit;
 * those in float64 one by one. Rounded, they are the same. */
static void many_samples(void **state)
{
    enum { N = 30001 };
    (void)state;
    ED_SCOPE;
    ed_tensor *seed = ed_constant(ED_VALUES(int, 7, 8), ED_SHAPE(2));
    ed_tensor *unit = ed_stateless_uniform(seed, ED_SHAPE(N));
    ed_tensor *parameters[] = {
        ed_add(unit, 0.05),
        ed_exp(ed_mul(ed_sub(unit, 0.5), 40)),
        ed_add(ed_floor(ed_mul(unit, 3)), 1),
        ed_ones(ED_SHAPE(N)),
    };
    for (int i = 0; i < 4; i++) {
        ed_tensor *wide = ed_cast(parameters[i], ED_FLOAT64);
        ed_tensor *gamma =
            ed_cast(ed_maximum(ed_stateless_gamma(wide, seed), 0x1p-126), ED_FLOAT32);
        assert_same_tensor(gamma, ed_stateless_gamma(parameters[i], seed));
        ed_generator *one = ed_generator_from_seed(i), *other = ed_generator_from_seed(i);
        ed_tensor *y = ed_random_exponential(wide, .generator = one);
        assert_same_tensor(ed_cast(ed_maximum(y, 0x1p-126), ED_FLOAT32),
                           ed_random_exponential(parameters[i], .generator = other));
    }
}

/* The gradient by alpha is TensorFlow's, and follows a sample of fixed probability: so does the
 * gradient's gradient. */
static void gamma_gradients(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *seed = ed_constant(ED_VALUES(int64_t, 1, 2), ED_SHAPE(2));
    ed_tensor *alpha = ed_constant(ED_VALUES(float, 0.3f, 1, 3), ED_SHAPE(3));
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, alpha);
    ed_tensor *y = ed_stateless_gamma(alpha, seed);
    NEAR(ed_gradient(tape, y, alpha), 0.09645394f, 1.5243567f, 1.3087753f);

    const double a[] = {0.4, 1.5, 30, 5000}, h = 1e-4;
    ed_tensor *x = ed_constant(a, ED_SHAPE(4));
    ed_tape *outer = ed_tape_begin(), *inner = ed_tape_begin();
    ed_watch(outer, x);
    ed_watch(inner, x);
    ed_tensor *sample = ed_stateless_gamma(x, seed);
    ed_tensor *first = ed_gradient(inner, sample, x), *second = ed_gradient(outer, first, x);
    assert_fine();
    for (int i = 0; i < 4; i++) {
        const double *z = ed_data(sample), *dz = ed_data(first), *ddz = ed_data(second);
        double p[3];
        for (int k = -1; k <= 1; k++) /* the same at each, but for the third order of h */
            p[k + 1] = ed_item(ed_igamma(
                ed_scalar(a[i] + k * h, .dtype = ED_FLOAT64),
                ed_scalar(z[i] + k * h * dz[i] + k * k * h * h * ddz[i] / 2, .dtype = ED_FLOAT64)));
        const double slope = fabs(p[2] - p[0]) / (2 * h),
                     bend = fabs(p[2] + p[0] - 2 * p[1]) / (h * h);
        if (slope > 1e-6 || bend > 1e-4) fail_msg("%g: %g, %g", a[i], slope, bend);
    }
}

/* TensorFlow's, by each way to propose numbers, in one call and in both dtypes. */
static void truncated_normals(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *seed = ed_constant(ED_VALUES(int64_t, 1, 2), ED_SHAPE(2));
    NEAR(ed_stateless_parameterized_truncated_normal(0, 1, -2, 2, seed, .shape = ED_SHAPE(6)),
         0.5441101f, 0.20738031f, 0.07356432f, 0.04643455f, -1.3015898f, -0.9538565f);
    ed_tensor *means = ed_constant(ED_VALUES(float, 0, 0, 5, 0), ED_SHAPE(4));
    ed_tensor *stddevs = ed_constant(ED_VALUES(float, 1, 2, 1, 0.5f), ED_SHAPE(4));
    ed_tensor *low = ed_constant(ED_VALUES(float, -2, 1, -INFINITY, 2), ED_SHAPE(4));
    ed_tensor *high = ed_constant(ED_VALUES(float, 2, 2, 3, INFINITY), ED_SHAPE(4));
    NEAR(ed_stateless_parameterized_truncated_normal(means, stddevs, low, high, seed,
                                                     .shape = ED_SHAPE(2, 4)),
         0.5441101f, 1.2719902f, 2.6945872f, 2.0593214f, 0.20738031f, 1.649346f, 2.8953476f,
         2.1230264f);
    ed_tensor *doubles = ed_stateless_parameterized_truncated_normal(
        ed_cast(means, ED_FLOAT64), ed_cast(stddevs, ED_FLOAT64), ed_cast(low, ED_FLOAT64),
        ed_cast(high, ED_FLOAT64), seed, .shape = ED_SHAPE(2, 4));
    NEAR(ed_cast(doubles, ED_FLOAT32), -0.14231181f, 1.1759223f, 2.9213751f, 2.0379401f,
         0.74060725f, 1.8555557f, 2.9276562f, 2.1809521f);
    assert_fails(ed_stateless_parameterized_truncated_normal(0, 1, 2, low, seed),
                 ED_INVALID_ARGUMENT,
                 "minval 2 and maxval -2 of set 0 of parameters; minval must be less");
    assert_fails(ed_stateless_parameterized_truncated_normal(0, 1, -INFINITY, INFINITY, seed),
                 ED_INVALID_ARGUMENT, "and one of them finite");
    assert_fails(ed_stateless_parameterized_truncated_normal(0, 1, 0, NAN, seed),
                 ED_INVALID_ARGUMENT, "maxvals[0], counted flat, is nan; it must be a number");
    assert_fails(ed_stateless_parameterized_truncated_normal(0, 0, 0, 1, seed), ED_INVALID_ARGUMENT,
                 "stddevs[0], counted flat, is 0; it must be > 0 and finite");
    assert_fails(ed_stateless_parameterized_truncated_normal(means, stddevs, low,
                                                             ed_ones(ED_SHAPE(3)), seed),
                 ED_INVALID_ARGUMENT, "do not broadcast");
    assert_int_equal(ed_size(ed_stateless_parameterized_truncated_normal(
                         means, stddevs, low, high, seed, .shape = ED_SHAPE(0, 4))),
                     0);
}

/* TensorFlow's: the corners of the table, and a point far on. */
static void sobol_points(void **state)
{
    (void)state;
    ED_SCOPE;
    NEAR(ed_sobol_sample(5, 4), 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.75f, 0.25f, 0.25f, 0.25f, 0.75f,
         0.25f, 0.75f, 0.75f, 0.75f, 0.25f, 0.375f, 0.375f, 0.625f, 0.875f, 0.375f);
    NEAR(ed_slice(ed_sobol_sample(1867, 2, .skip = 99999), .begin = ED_INTS(0, 1864)), 0.36969757f,
         0.67572784f, 0.1410904f, 0.8696976f, 0.17572784f, 0.6410904f);
    assert_fails(ed_sobol_sample(1868, 1), ED_INVALID_ARGUMENT,
                 "dim must be in [1, 1867], got 1868");
    assert_fails(ed_sobol_sample(1, 7, .skip = 2147483647), ED_INVALID_ARGUMENT,
                 "skip 2147483647 and num_results 7 must be at most 2147483647 together");
    assert_fails(ed_sobol_sample(1, 1, .dtype = ED_INT32), ED_INVALID_ARGUMENT,
                 "dtype must be float32 or float64, got int32");
}

/* Each row is the point alone, wherever many begin and whoever computes them. */
static void sobol_rows(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 3, 64, 65, 1867};
    const int64_t n = 70001, skip = 12345;
    const int threads = ed_num_threads();
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
        for (int t = 1; t <= 3; t++) {
            ED_SCOPE;
            ed_set_num_threads(t);
            const int64_t dim = dims[k], rows = n / dim + 2;
            const float *all = ed_data(ed_sobol_sample(dim, rows, .skip = skip));
            for (int64_t i = 0; i < rows; i += 1 + rows / 50) {
                const float *one = ed_data(ed_sobol_sample(dim, 1, .skip = skip + i));
                assert_memory_equal(all + i * dim, one, (size_t)dim * sizeof *one);
            }
        }
    ed_set_num_threads(threads);
}

/* TensorFlow's numbers, from blocks of 16 to 62 bits. */
static void shuffled_indices(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *ten = ed_range(0, 10, .dtype = ED_INT32), *index;
    ed_tensor *seed = ed_constant(ED_VALUES(int32_t, 5, 9), ED_SHAPE(2));
    NUMBERS(ed_index_shuffle(ten, seed, ed_constant(ED_VALUES(int32_t, 9), ED_SHAPE())), 8, 0, 6, 3,
            1, 5, 4, 7, 2, 9);
    seed = ed_constant(ED_VALUES(int64_t, -3, 123456789012), ED_SHAPE(2));
    index = ed_constant(ED_VALUES(int64_t, 0, 1, 12345678901), ED_SHAPE(3));
    ed_tensor *most = ed_constant(ED_VALUES(int64_t, 1000000000000), ED_SHAPE());
    NUMBERS(ed_index_shuffle(index, seed, most), 294219717346, 296752570235, 327640058613);
    seed = ed_constant(ED_VALUES(int64_t, 7, 8), ED_SHAPE(2));
    index = ed_constant(ED_VALUES(int64_t, 0, 1, 69999), ED_SHAPE(3));
    most = ed_constant(ED_VALUES(int64_t, 70000), ED_SHAPE());
    NUMBERS(ed_index_shuffle(index, seed, most), 45522, 69616, 69138);
    index = ed_constant(ED_VALUES(int64_t, 0, 1, INT64_C(1) << 61), ED_SHAPE(3));
    assert_fails(ed_index_shuffle(index, seed, most), ED_INVALID_ARGUMENT,
                 "index 2305843009213693952 is not from 0 to 70000");
    most = ed_constant(ED_VALUES(int64_t, INT64_C(1) << 62), ED_SHAPE());
    const ed_tensor *y = ed_index_shuffle(index, seed, most);
    assert_non_null(y);
    const int64_t *got = ed_data(y);
    assert_true(got[0] == 237587256937235479 && got[1] == 237587325656696206 &&
                got[2] == 2543430291920733231);
}

/* TensorFlow's after tf.random.set_seed(7), and of Generator.from_seed(7). */
static void drawn_distributions(void **state)
{
    (void)state;
    ED_SCOPE;
    const ed_ints shape = ED_SHAPE(2, 3);
    ed_set_seed(7);
    NEAR(ed_random_gamma(ed_constant(ED_VALUES(float, 0.5f, 1, 3), ED_SHAPE(3)), .shape = shape),
         0.43344408f, 0.12252013f, 0.71127957f, 1.5728632f, 0.094375543f, 2.5074389f);
    ed_set_seed(7);
    NUMBERS(
        ed_random_poisson(ed_constant(ED_VALUES(float, 0.5f, 4, 400), ED_SHAPE(3)), .shape = shape),
        0, 3, 396, 0, 1, 386);
    ed_tensor *logits = ed_log(ed_reshape(
        ed_constant(ED_VALUES(float, .1f, .2f, .7f, .5f, .25f, .25f), ED_SHAPE(6)), shape));
    ed_set_seed(7);
    NUMBERS(ed_random_categorical(logits, 5), 2, 0, 2, 2, 1, 0, 2, 0, 2, 0);
    ed_generator *g = ed_generator_from_seed(7);
    NUMBERS(ed_random_binomial(ed_constant(ED_VALUES(double, 10, 400, 7e4), ED_SHAPE(3)),
                               ed_constant(ED_VALUES(double, .3, .5, .9), ED_SHAPE(3)),
                               .shape = shape, .generator = g),
            2, 193, 63025, 1, 201, 62950);
    g = ed_generator_from_seed(5); /* also of the second draw, for which it moves on as there */
    NUMBERS(
        ed_random_binomial(ed_scalar(10.0), ed_scalar(0.5), .shape = ED_SHAPE(2), .generator = g),
        5, 5);
    NUMBERS(ed_random_binomial(ed_constant(ED_VALUES(float, 1, 2, 30, 1000), ED_SHAPE(4)),
                               ed_constant(ED_VALUES(float, .5f, .2f, .1f, .3f), ED_SHAPE(4)),
                               .generator = g),
            0, 1, 3, 299);
    uint64_t after[3];
    ed_generator_state(g, after);
    assert_true(after[0] == 268805 && after[1] == 0 && after[2] == 0);
    ed_set_seed(7);
    NUMBERS(ed_random_permutation(6), 4, 1, 5, 2, 0, 3);
    assert_fails(ed_random_permutation(-1), ED_INVALID_ARGUMENT, "n must be >= 0, got -1");
    assert_fails(ed_random_bernoulli(ed_scalar(1.5)), ED_INVALID_ARGUMENT,
                 "random_bernoulli: probs[0], counted flat, is 1.5; it must be in 0..1");
}

/* Mean and variance of n numbers are within 5 standard errors of the distribution's, the
 * variance's for a distribution of this kurtosis. */
static void has_moments(ed_tensor *x, double mean, double variance, double kurtosis)
{
    if (!x) fail_msg("%s", ed_error());
    const double *v = ed_as_doubles(x), n = (double)ed_size(x);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < ed_size(x); i++) sum += v[i];
    for (int64_t i = 0; i < ed_size(x); i++) squares += (v[i] - mean) * (v[i] - mean);
    if (fabs(sum / n - mean) > 5 * sqrt(variance / n))
        fail_msg("mean %g, expected %g", sum / n, mean);
    if (fabs(squares / n - variance) > 5 * variance * sqrt((kurtosis - 1) / n))
        fail_msg("variance %g, expected %g", squares / n, variance);
}

static void moments(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_generator *g = ed_generator_from_seed(3);
    const ed_ints many = ED_SHAPE(20000);
#define DRAWS .shape = many, .generator = g
    has_moments(ed_random_gamma(ed_scalar(2.5), DRAWS), 2.5, 2.5, 3 + 6 / 2.5);
    has_moments(ed_random_gamma(ed_scalar(0.4), DRAWS), 0.4, 0.4, 3 + 6 / 0.4);
    has_moments(ed_random_exponential(ed_scalar(4.0), DRAWS), 0.25, 0.0625, 9);
    has_moments(ed_random_poisson(ed_scalar(3.0), DRAWS), 3, 3, 3 + 1.0 / 3);
    has_moments(ed_random_poisson(ed_scalar(60.0), DRAWS), 60, 60, 3 + 1.0 / 60);
    has_moments(ed_random_bernoulli(ed_scalar(0.3), DRAWS), 0.3, 0.21, 1 / 0.21 - 3);
    has_moments(ed_random_binomial(ed_scalar(9.0), ed_scalar(0.3), DRAWS), 2.7, 1.89, 3);
    uint64_t after[3];
    ed_generator_state(g, after);
    assert_int_equal(after[0], 3 + 256 * (6 * 20000 + 50 * 20000 + 150));
}

/* How often 0..3 is among the numbers. */
static void has_shares(ed_tensor *x, const double *shares)
{
    if (!x) fail_msg("%s", ed_error());
    const double *v = ed_as_doubles(x), n = (double)ed_size(x);
    for (int k = 0; k < 4; k++) {
        double count = 0;
        for (int64_t i = 0; i < ed_size(x); i++) count += v[i] == k;
        if (fabs(count / n - shares[k]) > 5 * sqrt(shares[k] * (1 - shares[k]) / n))
            fail_msg("%d has the share %g, expected %g", k, count / n, shares[k]);
    }
}

static void choices(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(11);
    ed_tensor *x = ed_range(0, 4),
              *weights = ed_constant(ED_VALUES(float, 1, 0, 4, 5), ED_SHAPE(4));
    has_shares(ed_random_choice(x, NULL, ED_SHAPE(100, 100)), (double[]){.25, .25, .25, .25});
    has_shares(ed_random_choice(x, weights, ED_SHAPE(10000)), (double[]){.1, 0, .4, .5});
    /* Without replacement: the first of two is 0 in a tenth of the draws, and so on. */
    double first[4] = {0}, both[4] = {0};
    for (int i = 0; i < 4000; i++) {
        ED_SCOPE;
        const double *two =
            ed_as_doubles(ed_random_choice(x, weights, ED_SHAPE(2), .replace = false));
        assert_true(two[0] != two[1]);
        first[(int)two[0]]++;
        both[(int)two[0]]++;
        both[(int)two[1]]++;
    }
    const double share = .1 + .4 * .1 / .6 + .5 * .1 / .5;
    assert_true(fabs(first[0] / 4000 - .1) < .025 && fabs(first[3] / 4000 - .5) < .04);
    assert_true(both[1] == 0 && fabs(both[0] / 4000 - share) < .035);
    ed_tensor *rows =
        ed_random_choice(ed_reshape(ed_range(0, 8), ED_SHAPE(4, 2)), NULL, ED_SHAPE(3, 1));
    assert_int_equal(ed_rank(rows), 3);
    assert_int_equal(ed_dim(rows, 2), 2);
    const ed_error_code bad = ED_INVALID_ARGUMENT;
    assert_fails(ed_random_choice(x, weights, ED_SHAPE(4), .replace = false), bad,
                 "random_choice: 3 slices of x");
    assert_fails(ed_random_choice(x, x, ED_SHAPE(1)), bad, "weights must be floats [4]");
    assert_fails(ed_random_choice(x, ed_neg(weights), ED_SHAPE(1)), bad, "weights[0] is -1");
    assert_fails(ed_random_choice(x, NULL, ED_SHAPE(-1)), bad, "shape is [-1]");
    assert_fails(ed_random_choice(x, NULL, ((ed_ints){(int64_t[]){1}, INT64_MIN})), bad,
                 "shape must have 0 to 8 entries with x int32[4], got -9223372036854775808");
    assert_fails(ed_random_choice(x, NULL, ((ed_ints){0})), bad, "shape is required");
    assert_fails(ed_random_choice(NULL, NULL, ED_SHAPE(1)), bad, "got NULL");
    assert_int_equal(ed_size(ed_random_choice(x, NULL, ED_SHAPE(0))), 0);
}

/* Frequencies of sampled classes, and TensorFlow's losses. */
/* A generator in the same state changes an image in the same way, and moves on. */
static void changed_images(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_random_uniform(ED_SHAPE(3, 4, 5, 3));
    ed_generator *a = ed_generator_from_seed(1), *b = ed_generator_from_seed(1);
    ed_tensor *left[] = {ed_random_flip_left_right(x, .generator = a),
                         ed_random_flip_up_down(x, .generator = a),
                         ed_random_crop(x, ED_SHAPE(2, 3, 2, 3), .generator = a),
                         ed_random_brightness(x, 0.3, .generator = a),
                         ed_random_contrast(x, 0.5, 1.5, .generator = a),
                         ed_random_hue(x, 0.3, .generator = a),
                         ed_random_saturation(x, 0.5, 1.5, .generator = a)};
    ed_tensor *right[] = {ed_random_flip_left_right(x, .generator = b),
                          ed_random_flip_up_down(x, .generator = b),
                          ed_random_crop(x, ED_SHAPE(2, 3, 2, 3), .generator = b),
                          ed_random_brightness(x, 0.3, .generator = b),
                          ed_random_contrast(x, 0.5, 1.5, .generator = b),
                          ed_random_hue(x, 0.3, .generator = b),
                          ed_random_saturation(x, 0.5, 1.5, .generator = b)};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        assert_true(ed_item(ed_reduce_all(ed_equal(left[i], right[i]))));
    ed_tensor *next = ed_random_brightness(x, 0.3, .generator = a);
    assert_false(ed_item(ed_reduce_any(ed_equal(next, left[3]))));
    assert_fails(ed_random_crop(x, ED_SHAPE(2, 3)), ED_INVALID_ARGUMENT,
                 "stateless_random_crop: size must have a number from 0 to x's for each axis");
}

static void sampled_classes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_generator *g = ed_generator_from_seed(9);
    ed_tensor *labels = ed_constant(ED_VALUES(int64_t, 1, 2, 4, 0), ED_SHAPE(2, 2)), *of_true,
              *of_sampled;
    has_shares(
        ed_uniform_candidate_sampler(labels, 20000, 5, NULL, NULL, .unique = false, .generator = g),
        (double[]){.2, .2, .2, .2});
    ed_tensor *sampled = ed_log_uniform_candidate_sampler(labels, 20000, 10, &of_true, &of_sampled,
                                                          .unique = false, .generator = g);
    double shares[4];
    for (int k = 0; k < 4; k++) shares[k] = log((k + 2.0) / (k + 1)) / log(11);
    has_shares(sampled, shares);
    assert_true(fabs(ed_as_doubles(of_true)[3] - 20000 * shares[0]) < 0.01);
    sampled = ed_log_uniform_candidate_sampler(labels, 10, 10, &of_true, NULL, .generator = g);
    assert_int_equal((int)ed_item(ed_reduce_sum(sampled)), 45); /* each comes once */
    /* TensorFlow's expected counts of these weights */
    ed_tensor *weights = ed_constant(ED_VALUES(float, 1, 2, 3, 4, 5), ED_SHAPE(5));
    sampled = ed_fixed_unigram_candidate_sampler(labels, 20000, weights, &of_true, &of_sampled,
                                                 .unique = false, .distortion = 0.75,
                                                 .num_reserved_ids = 1, .generator = g);
    has_shares(sampled, (double[]){0, .08981959, .1510580, .2047442});
    NEAR(ed_mul(of_true, 4 / 20000.), .3592784f, .6042318f, 1.0161927f, 0);
    sampled = ed_fixed_unigram_candidate_sampler(labels, 5, weights, &of_true, NULL,
                                                 .num_reserved_ids = 1, .generator = g);
    assert_int_equal((int)ed_item(ed_reduce_sum(sampled)), 15); /* each but the first */
    assert_fails(
        ed_fixed_unigram_candidate_sampler(
            labels, 2, ed_constant(ED_VALUES(float, 1, -1, 1, 1, 1), ED_SHAPE(5)), NULL, NULL),
        ED_INVALID_ARGUMENT, "unigrams[1] is -1");
    assert_fails(ed_fixed_unigram_candidate_sampler(labels, 2, ed_zeros(ED_SHAPE(5)), NULL, NULL),
                 ED_INVALID_ARGUMENT, "unigrams are all 0");
    assert_fails(
        ed_fixed_unigram_candidate_sampler(
            labels, 3, ed_constant(ED_VALUES(float, 1, 0, 1, 0, 0), ED_SHAPE(5)), NULL, NULL),
        ED_INVALID_ARGUMENT, "num_sampled is 3, but only 2 weights are above 0");
#ifndef EDDY_SANITIZED /* for the sake of memory */
    /* more than the draws in vain that are allowed, none of them in vain */
    assert_non_null(ed_fixed_unigram_candidate_sampler(labels, (1 << 24) + 3, weights, NULL, NULL,
                                                       .unique = false));
#endif
    assert_fails(ed_fixed_unigram_candidate_sampler(labels, 6, weights, NULL, NULL),
                 ED_INVALID_ARGUMENT, "num_sampled is 6, but there are only 5 different classes");
    /* learned: equal at first, then what was true more often */
    ed_tensor *counts = ed_variable(ed_ones(ED_SHAPE(5)));
    has_shares(ed_learned_unigram_candidate_sampler(labels, 20000, counts, &of_true, NULL,
                                                    .unique = false, .generator = g),
               (double[]){.2, .2, .2, .2});
    NEAR(ed_value(counts), 2, 2, 2, 1, 2);
    has_shares(ed_learned_unigram_candidate_sampler(labels, 20000, counts, NULL, NULL,
                                                    .unique = false, .generator = g),
               (double[]){2 / 9., 2 / 9., 2 / 9., 1 / 9.});
    sampled = ed_all_candidate_sampler(labels, 5, &of_true, &of_sampled);
    assert_int_equal((int)ed_item(ed_reduce_sum(sampled)), 10);
    assert_int_equal((int)ed_item(ed_reduce_sum(of_true)), 4);
    assert_int_equal((int)ed_item(ed_reduce_sum(of_sampled)), 5);
    assert_fails(ed_all_candidate_sampler(labels, 0, NULL, NULL), ED_INVALID_ARGUMENT,
                 "num_sampled must be at least 1");
    assert_fails(ed_uniform_candidate_sampler(labels, 11, 10, NULL, NULL), ED_INVALID_ARGUMENT,
                 "uniform_candidate_sampler: num_sampled is 11, but there are only 10 different");
    assert_fails(ed_uniform_candidate_sampler(labels, 2, 4, NULL, NULL), ED_OUT_OF_RANGE,
                 "true_classes[2], counted flat, is 4; it must be in 0..3");
}

static void sampled_losses(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *w = ed_constant(ED_VALUES(float, 1.25, -1.75, -1.25, -1, -1.25, 1.25, 1.5, .25, -2,
                                         -1.75, -.75, -.25, .5, 0, -1, -1.5, .75, 1),
                               ED_SHAPE(6, 3));
    ed_tensor *b = ed_constant(ED_VALUES(float, -1, -.75, 0, -.25, .75, 0), ED_SHAPE(6));
    ed_tensor *x = ed_constant(ED_VALUES(float, -.25, -.25, .75, .25, -1.5, 1), ED_SHAPE(2, 3));
    ed_tensor *labels = ed_constant(ED_VALUES(int64_t, 1, 2, 4, 0), ED_SHAPE(2, 2));
    ed_tensor *s = ed_constant(ED_VALUES(int64_t, 2, 5, 3, 1), ED_SHAPE(4));
    ed_tensor *of_true = ed_constant(ED_VALUES(float, .5, .25, .75, .5), ED_SHAPE(2, 2));
    ed_tensor *of_sampled = ed_constant(ED_VALUES(float, .25, .5, .75, .5), ED_SHAPE(4));
    NEAR(ed_sampled_softmax_loss(w, b, labels, x, s, of_true, of_sampled), 1.9986122f, 2.4576621f);
    NEAR(ed_sampled_softmax_loss(w, b, labels, x, s, of_true, of_sampled,
                                 .remove_accidental_hits = false),
         2.3474002f, 2.4576621f);
    NEAR(ed_nce_loss(w, b, labels, x, s, of_true, of_sampled), 6.5426502f, 6.6729307f);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, w);
    ed_tensor *y = ed_sampled_softmax_loss(w, b, labels, x, s, of_true, of_sampled);
    NEAR(ed_index(ed_gradient(tape, y, w), 1), .1988791f, -.9611398f, .5633817f);
    y = ed_nce_loss(w, b, labels, x, s, of_true, of_sampled, .remove_accidental_hits = true);
    NEAR(y, 4.4324226f, 6.6729307f);
    NEAR(ed_index(ed_gradient(tape, y, w), 1), .1586768f, -1.492708f, 1.175355f);
    assert_fails(ed_nce_loss(w, b, s, x, s, of_true, of_sampled), ED_INVALID_ARGUMENT,
                 "nce_loss: weights are float32[6, 3], biases float32[6], labels int64[4]");
    assert_fails(ed_sampled_softmax_loss(w, NULL, labels, x, s, of_true, of_sampled),
                 ED_INVALID_ARGUMENT, "an operand is NULL");
}

#define TEST(name) cmocka_unit_test_teardown(name, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(global_seed),
        TEST(generators),
        TEST(dtypes),
        TEST(refusals),
        TEST(shuffles),
        TEST(drops),
        TEST(threads),
        TEST(without_memory),
        TEST(without_memory_no_draw),
        TEST(stateless),
        TEST(distributions),
        TEST(more_distributions),
        TEST(many_samples),
        TEST(gamma_gradients),
        TEST(truncated_normals),
        TEST(sobol_points),
        TEST(sobol_rows),
        TEST(shuffled_indices),
        TEST(drawn_distributions),
        TEST(moments),
        TEST(choices),
        TEST(changed_images),
        TEST(sampled_classes),
        TEST(sampled_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
