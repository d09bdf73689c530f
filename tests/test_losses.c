/*
 * Every loss, checked by its definition alone, on its samples: values in float32 and float64,
 * gradients against finite differences, reductions, weights and masks, refusals, every allocation
 * refused in turn. A new kind needs nothing here. Then what no sample says.
 */
#include "eddy.h"
#include "nn/losses/loss.h"
#include "tests/checks.h"
#include "tests/survives.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const loss_class *class; /* the one that is checked, for messages */

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (condition) break;                                                                      \
        printf("loss %s: ", class ? class->kind.name : "of one's own");                            \
        printf(__VA_ARGS__);                                                                       \
        printf("; the error: %s\n", ed_error());                                                   \
        fail();                                                                                    \
    } while (0)

/* ---- Samples --------------------------------------------------------------------------------- */

/* The operand of a sample in float64, or int64 where it is whole numbers. */
static ed_tensor *make_input(const ed_sample_input *in, bool whole, ed_generator *generator)
{
    const ed_ints shape = {in->shape, in->rank};
    if (whole)
        return ed_random_uniform(shape, .dtype = ED_INT64, .low = in->low, .high = in->high + 1,
                                 .generator = generator);
    if (!in->distinct)
        return ed_random_uniform(shape, .dtype = ED_FLOAT64, .low = in->low, .high = in->high,
                                 .generator = generator);
    int64_t size = 1;
    for (int d = 0; d < in->rank; d++) size *= in->shape[d];
    ed_tensor *even = ed_linspace(in->low, in->high, size, .dtype = ED_FLOAT64);
    ed_tensor *order = ed_argsort(ed_random_uniform(ED_SHAPE(size), .generator = generator));
    return ed_reshape(ed_gather(even, order), shape);
}

typedef struct operands {
    ed_tensor *y_true, *y_pred;
} operands;

static operands make_operands(const ed_sample *s)
{
    ed_generator *generator = ed_generator_from_seed(5);
    const bool whole = class->operands != LOSS_ALIKE;
    operands x = {make_input(&s->inputs[0], whole, generator), NULL};
    x.y_pred = make_input(&s->inputs[1], false, generator);
    return x;
}

/* The loss of a sample's options, with that reduction. */
static ed_loss *make_loss(const ed_sample *s, const char *reduction)
{
    const ed_kind *kind = &class->kind;
    max_align_t options[32];
    assert_true(kind->options_size <= sizeof options);
    memcpy(options, s->attrs ? s->attrs : kind->defaults, kind->options_size);
    *(const char **)ED_FIELD_AT(schema_find(kind->fields, "reduction"), options) = reduction;
    return ed_make(kind, options);
}

static void each_sample(void (*check)(const ed_sample *s))
{
    int checked = 0;
    for (int i = 0; i < ed_kind_count(); i++) {
        if (strcmp(ed_kind_at(i)->family, "loss") != 0) continue;
        class = (const loss_class *)ed_kind_at(i);
        CHECK(class->samples && !class->samples->last, "no samples");
        for (const ed_sample *s = class->samples; !s->last; s++) {
            ED_SCOPE;
            ed_clear_error();
            check(s);
            checked++;
        }
    }
    class = NULL;
    assert_true(checked > 30);
}

/* ---- Values and gradients -------------------------------------------------------------------- */

static void values_agree(const ed_sample *s)
{
    operands x = make_operands(s);
    ed_loss *loss = make_loss(s, "none");
    ed_tensor *wanted = ed_loss_values(loss, x.y_true, x.y_pred);
    CHECK(wanted && ed_dtype_of(wanted) == ED_FLOAT64, "no values");
    CHECK(ed_item(ed_reduce_all(ed_is_finite(wanted))), "values are not finite");
    ed_tensor *y_true = class->operands == LOSS_ALIKE ? ed_cast(x.y_true, ED_FLOAT32) : x.y_true;
    ed_tensor *got = ed_loss_values(loss, y_true, ed_cast(x.y_pred, ED_FLOAT32));
    CHECK(got && ed_dtype_of(got) == ED_FLOAT32, "no values in float32");
    ed_close_report report;
    CHECK(ed_all_close(got, wanted, 1e-4, 1e-5, &report), "float32: %s", report.text);
    /* The same labels in another dtype. */
    y_true =
        class->operands == LOSS_ALIKE ? ed_cast(x.y_true, ED_FLOAT32) : ed_cast(x.y_true, ED_INT32);
    got = ed_loss_values(loss, y_true, x.y_pred);
    CHECK(ed_all_close(got, wanted, 1e-4, 1e-5, &report), "y_true: %s", report.text);
}

/* The sum of the values, each times a number of its own. */
static ed_tensor *measure(ed_loss *loss, const operands *x)
{
    ed_tensor *values = ed_loss_values(loss, x->y_true, x->y_pred);
    ed_tensor *weights = ed_linspace(0.5, 1.5, ed_size(values), .dtype = ED_FLOAT64);
    return ed_reduce_sum(ed_mul(values, ed_reshape(weights, ed_shape(values))));
}

/* The central difference by element i of y_pred. */
static double difference(ed_loss *loss, const operands *x, int64_t i)
{
    ED_SCOPE;
    const double step = 1e-6;
    ed_tensor *at = ed_one_hot(ed_scalar((double)i, .dtype = ED_INT32), ed_size(x->y_pred),
                               .dtype = ED_FLOAT64);
    at = ed_mul(ed_reshape(at, ed_shape(x->y_pred)), step);
    const operands above = {x->y_true, ed_add(x->y_pred, at)},
                   below = {x->y_true, ed_sub(x->y_pred, at)};
    return (ed_item(measure(loss, &above)) - ed_item(measure(loss, &below))) / (2 * step);
}

static void gradients_agree(const ed_sample *s)
{
    const operands x = make_operands(s);
    ed_loss *loss = make_loss(s, "sum");
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x.y_pred);
    ed_tensor *gradient = ed_gradient(tape, measure(loss, &x), x.y_pred);
    const bool has_none = strstr(class->kind.doc, "no gradient");
    CHECK(!gradient == has_none, "a gradient: %d", gradient != NULL);
    ed_clear_error();
    if (has_none) return;
    const double *got = ed_data(gradient);
    for (int64_t i = 0; i < ed_size(x.y_pred); i++) {
        const double wanted = difference(loss, &x, i);
        CHECK(fabs(got[i] - wanted) <= 1e-6 * (1 + fabs(wanted)),
              "element %lld: the gradient is %.9g, the difference %.9g", (long long)i, got[i],
              wanted);
    }
}

/* ---- Reductions, weights, masks -------------------------------------------------------------- */

static double item(ed_tensor *x)
{
    CHECK(x && ed_rank(x) == 0, "no scalar");
    return ed_item(x);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

static void reductions_agree(const ed_sample *s)
{
    operands x = make_operands(s);
    ed_loss *none = make_loss(s, "none"), *sum = make_loss(s, "sum"), *mean = make_loss(s, "mean"),
            *batch = make_loss(s, "sum_over_batch_size"),
            *weighted = make_loss(s, "mean_with_sample_weight");
    ed_tensor *values = ed_loss_values(none, x.y_true, x.y_pred);
    const double all = item(ed_reduce_sum(values));
    CHECK(near(item(ed_loss_compute(sum, x.y_true, x.y_pred)), all), "the sum");
    const double average = item(ed_loss_compute(mean, x.y_true, x.y_pred));
    CHECK(class->counts || near(average, all / (double)ed_size(values)), "the mean");
    CHECK(item(ed_loss_compute(batch, x.y_true, x.y_pred)) == average, "sum_over_batch_size");
    CHECK(class->counts || ed_rank(values) == 0 ||
              near(item(ed_loss_compute(weighted, x.y_true, x.y_pred)), average),
          "mean_with_sample_weight");
    if (ed_rank(values) == 0) return;
    /* Weights, and a mask that leaves the last row of values out. */
    ed_tensor *w = ed_random_uniform(ed_shape(values), .dtype = ED_FLOAT64, .high = 2);
    const double with = item(ed_reduce_sum(ed_mul(values, w)));
    CHECK(near(item(ed_loss_compute(sum, x.y_true, x.y_pred, .sample_weight = w)), with),
          "the weighted sum");
    ed_tensor *mask =
        ed_reshape(ed_less(ed_range(0, (double)ed_size(values)), (double)ed_size(values) - 1),
                   ed_shape(values));
    ed_tensor *rest = ed_where(mask, ed_mul(values, w), 0);
    CHECK(near(item(ed_loss_compute(sum, x.y_true, x.y_pred, .sample_weight = w, .mask = mask)),
               item(ed_reduce_sum(rest))),
          "the masked sum");
    if (!class->counts)
        CHECK(
            near(item(ed_loss_compute(mean, x.y_true, x.y_pred, .sample_weight = w, .mask = mask)),
                 item(ed_reduce_sum(rest)) / (double)(ed_size(values) - 1)),
            "the masked mean");
    ed_tensor *off = ed_zeros(ed_shape(values), .dtype = ED_BOOL);
    CHECK(item(ed_loss_compute(mean, x.y_true, x.y_pred, .mask = off)) == 0, "all are masked");
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuses(const ed_sample *s)
{
    static const int64_t sizes[ED_MAX_RANK] = {2, 1, 3, 1, 1, 1, 1, 1};
    operands x = make_operands(s);
    ed_loss *loss = make_loss(s, "sum");
    CHECK(!ed_loss_compute(NULL, x.y_true, x.y_pred) && strstr(ed_error(), "loss is NULL"), "NULL");
    ed_clear_error();
    CHECK(!ed_loss_compute(loss, NULL, x.y_pred) && strstr(ed_error(), "y_true is NULL"), "NULL");
    ed_clear_error();
    CHECK(!ed_loss_compute(loss, x.y_true, NULL) && strstr(ed_error(), "y_pred is NULL"), "NULL");
    ed_clear_error();
    for (int at = 0; at < 3; at++)
        for (int rank = 0; rank <= ED_MAX_RANK; rank++)
            for (int d = ED_FLOAT32; d < ED_DTYPE_COUNT; d++) {
                ED_SCOPE;
                operands y = x;
                ed_tensor *strange = ed_zeros(((ed_ints){sizes, rank}), .dtype = (ed_dtype)d);
                if (at < 2) *(at ? &y.y_pred : &y.y_true) = strange;
                ed_tensor *got = ed_loss_compute(loss, y.y_true, y.y_pred,
                                                 .sample_weight = at == 2 ? strange : NULL);
                CHECK(!got == ed_failed(), "%s: %s", ed_to_string(strange),
                      got ? "taken, with an error" : "refused without a reason");
                CHECK(got || strstr(ed_error(), class->kind.name),
                      "the error does not name the loss");
                ed_clear_error();
            }
}

static bool compute_all(const void *sample)
{
    const ed_sample *s = sample;
    ED_SCOPE;
    operands x = make_operands(s);
    ed_loss *loss = make_loss(s, "mean");
    ed_tape *tape = loss && x.y_pred ? ed_tape_begin() : NULL;
    if (!tape || !ed_watch(tape, x.y_pred)) return false;
    ed_tensor *values = ed_loss_values(loss, x.y_true, x.y_pred);
    ed_tensor *ones = values ? ed_ones_like(values) : NULL;
    ed_tensor *y = ones ? ed_loss_compute(loss, x.y_true, x.y_pred, .sample_weight = ones,
                                          .mask = ed_cast(ones, ED_BOOL))
                        : NULL;
    return y && (strstr(class->kind.doc, "no gradient") || ed_gradient(tape, y, x.y_pred)) &&
           ed_to_json(loss);
}

static void survives(const ed_sample *s)
{
    CHECK(compute_all(s), "fails");
    survives_refusals(class->kind.name, compute_all, s);
}

/* ---- What no sample says --------------------------------------------------------------------- */

static void fails(ed_tensor *got, const char *message)
{
    CHECK(!got && strstr(ed_error(), message), "expected '%s'", message);
    ed_clear_error();
}

/* Ranks that differ by an axis of 1 meet; everything else that would broadcast is refused. */
static void shapes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_loss *mse = ed_loss_mean_squared_error(.reduction = "none");
    ed_tensor *row = ed_range(0, 4, .dtype = ED_FLOAT32), *column = ed_reshape(row, ED_SHAPE(4, 1));
    assert_int_equal(ed_size(ed_loss_compute(mse, row, column)), 4);
    assert_int_equal(ed_size(ed_loss_compute(mse, column, row)), 4);
    assert_int_equal(ed_rank(ed_loss_compute(mse, row, row)), 0);
    fails(ed_loss_compute(mse, ed_zeros(ED_SHAPE(1)), row), "their shapes must agree");
    fails(ed_loss_compute(mse, ed_zeros(ED_SHAPE(4, 4)), row), "their shapes must agree");
    ed_tensor *matrix = ed_ones(ED_SHAPE(4, 3, 2));
    fails(ed_loss_compute(mse, matrix, matrix, .sample_weight = ed_ones(ED_SHAPE(4))),
          "weights must have the values' rank");
    fails(ed_loss_compute(mse, matrix, matrix, .mask = ed_ones(ED_SHAPE(3), .dtype = ED_BOOL)),
          "weights must have the values' rank");
    fails(ed_loss_compute(mse, matrix, matrix, .sample_weight = ed_ones(ED_SHAPE(4)),
                          .mask = ed_ones(ED_SHAPE(4, 3), .dtype = ED_BOOL)),
          "sample_weight must have the mask's rank");
    ed_tensor *fine = ed_loss_compute(mse, matrix, matrix, .sample_weight = ed_ones(ED_SHAPE(4, 1)),
                                      .mask = ed_ones(ED_SHAPE(4, 3), .dtype = ED_BOOL));
    assert_non_null(fine);
    /* Of no sample the loss is 0. */
    ed_tensor *nothing = ed_zeros(ED_SHAPE(0, 3));
    assert_true(ed_item(ed_loss_compute(ed_loss_huber(), nothing, nothing)) == 0);
}

static void labels(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_loss *loss = ed_loss_sparse_categorical_crossentropy(.from_logits = true);
    ed_tensor *logits = ed_zeros(ED_SHAPE(2, 3));
    const int32_t outside[] = {0, 3};
    fails(ed_loss_compute(loss, ed_constant(outside, ED_SHAPE(2)), logits), "label 3");
    assert_int_equal(ed_failed(), 0);
    fails(ed_loss_compute(loss, ed_zeros(ED_SHAPE(2, 3)), logits), "expected labels [...]");
    ed_loss *ignoring =
        ed_loss_sparse_categorical_crossentropy(.from_logits = true, .ignore_class = ED_INTS(3, 7));
    ed_tensor *value = ed_loss_compute(ignoring, ed_constant(outside, ED_SHAPE(2)), logits);
    assert_true(fabs(ed_item(value) - log(3)) < 1e-6); /* the mean of one that counts */
    fails(ed_loss_compute(ed_loss_sparse_categorical_crossentropy(.axis = 0), ed_zeros(ED_SHAPE(2)),
                          logits),
          "axis must be the last one");
}

/* tfa.losses' triplets, by plain loops. */
static void triplets(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 7 };
    const int32_t label[N] = {0, 1, 0, 2, 1, 0, 2};
    ed_tensor *x = ed_random_normal(ED_SHAPE(N, 3), .dtype = ED_FLOAT64,
                                    .generator = ed_generator_from_seed(1));
    const double *at = ed_data(x);
    double d[N][N], semi = 0, hard = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            d[i][j] = 0;
            for (int k = 0; k < 3; k++) d[i][j] += pow(at[3 * i + k] - at[3 * j + k], 2);
            d[i][j] = sqrt(d[i][j]);
        }
    int pairs = 0;
    for (int a = 0; a < N; a++) {
        double farthest = 0, nearest = INFINITY;
        for (int p = 0; p < N; p++) {
            if (label[p] == label[a]) farthest = fmax(farthest, d[a][p]);
            if (label[p] != label[a]) nearest = fmin(nearest, d[a][p]);
            if (p == a || label[p] != label[a]) continue;
            double outside = INFINITY, inside = 0;
            for (int n = 0; n < N; n++) {
                if (label[n] == label[a]) continue;
                if (d[a][n] > d[a][p]) outside = fmin(outside, d[a][n]);
                inside = fmax(inside, d[a][n]);
            }
            semi += fmax(1 + d[a][p] - (isinf(outside) ? inside : outside), 0);
            pairs++;
        }
        hard += fmax(1 + farthest - nearest, 0);
    }
    ed_tensor *y = ed_constant(label, ED_SHAPE(N));
    const double got_semi = ed_item(ed_loss_compute(ed_loss_triplet_semi_hard(), y, x)),
                 got_hard = ed_item(ed_loss_compute(ed_loss_triplet_hard(), y, x));
    assert_true(fabs(got_semi - semi / pairs) < 1e-12);
    assert_true(fabs(got_hard - hard / N) < 1e-12);
}

/* ---- A loss of one's own --------------------------------------------------------------------- */

static ed_tensor *cubes(void *user, ed_tensor *y_true, ed_tensor *y_pred)
{
    ++*(int *)user;
    return ed_reduce_mean(ed_pow(ed_abs(ed_sub(y_pred, y_true)), 3.0), .axis = ED_AXES(-1));
}

static ed_tensor *nothing(void *user, ed_tensor *y_true, ed_tensor *y_pred)
{
    (void)user, (void)y_true, (void)y_pred;
    return NULL;
}

static void gone(void *user)
{
    *(int *)user = -1;
}

static void own(void **state)
{
    (void)state;
    int calls = 0;
    {
        ED_SCOPE;
        ed_loss_from_options options = ED_NEW_OPTIONS(ED_LOSS_FROM_OPTIONS, ed_loss_from_options);
        options.name = "cubes";
        options.reduction = "sum";
        ed_loss *loss = ed_loss_from_with(cubes, &calls, gone, &options);
        assert_string_equal(ed_loss_name(loss), "cubes");
        ed_tensor *zeros = ed_zeros(ED_SHAPE(2, 2)), *twos = ed_full(ED_SHAPE(2, 2), 2);
        assert_true(ed_item(ed_loss_compute(loss, zeros, twos)) == 16);
        assert_int_equal(calls, 1);
        assert_null(ed_kind_of(loss));
        assert_null(ed_to_json(loss));
        ed_clear_error();
        ed_loss *none = ed_loss_from("none", nothing, NULL, .reduction = "none");
        fails(ed_loss_compute(none, zeros, twos), "none: the function returned NULL");
        assert_null(ed_loss_from("wrong", nothing, NULL, .reduction = "some"));
        assert_non_null(strstr(ed_error(), "reduction"));
        ed_clear_error();
    }
    assert_int_equal(calls, -1);
}

/* ---------------------------------------------------------------------------------------------- */

#define TEST(name, check)                                                                          \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        each_sample(check);                                                                        \
    }
TEST(values, values_agree)
TEST(gradients, gradients_agree)
TEST(reductions, reductions_agree)
TEST(nonsense, refuses)
TEST(memory, survives)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),   cmocka_unit_test(gradients), cmocka_unit_test(reductions),
        cmocka_unit_test(nonsense), cmocka_unit_test(memory),    cmocka_unit_test(shapes),
        cmocka_unit_test(labels),   cmocka_unit_test(triplets),  cmocka_unit_test(own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
