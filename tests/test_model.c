/* Training by compile and fit: the loss falls as in a loop by hand, to the same bits; histories,
 * validation, weights, callbacks, several outputs, and what is refused. */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/folders.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { ROWS = 50 };

/* Inputs, and a class that depends on them. */
static ed_tensor *inputs(void)
{
    return ed_random_normal(ED_SHAPE(ROWS, 4), .generator = ed_generator_from_seed(1));
}

static ed_tensor *labels(ed_tensor *x)
{
    return ed_cast(ed_greater(ed_reduce_sum(x, .axis = ED_AXES(1)), 0), ED_INT32);
}

static ed_layer *model_of(uint64_t seed)
{
    ed_generator *g = ed_generator_from_seed(seed);
    return ed_layer_sequential(
        "m",
        ed_layer_dense(8, .activation = "tanh",
                       .kernel_initializer = ed_initializer_glorot_uniform(.generator = g),
                       .kernel_regularizer = ed_regularizer_l2(1e-3)),
        ed_layer_dense(2, .kernel_initializer = ed_initializer_glorot_uniform(.generator = g)));
}

static ed_loss *crossentropy(void)
{
    return ed_loss_sparse_categorical_crossentropy(.from_logits = true);
}

static bool compile(ed_layer *model)
{
    return ed_model_compile(model, .optimizer = ed_optimizer_sgd(.learning_rate = 0.5),
                            .loss = crossentropy(),
                            .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy()));
}

/* The same training by hand; its last loss. */
static double by_hand(ed_layer *model, ed_tensor *x, ed_tensor *y, int epochs, int64_t batch)
{
    ed_optimizer *sgd = ed_optimizer_sgd(.learning_rate = 0.5);
    double sum = 0;
    for (int e = 0; e < epochs; e++) {
        sum = 0;
        for (int64_t i = 0; i < ROWS; i += batch) {
            ED_SCOPE;
            const int64_t end = i + batch < ROWS ? i + batch : ROWS;
            ed_tensor *part = ed_slice(x, .begin = ED_INTS(i), .end = ED_INTS(end));
            ed_tape *tape = ed_tape_begin();
            ed_tensor *loss = ed_loss_compute(crossentropy(),
                                              ed_slice(y, .begin = ED_INTS(i), .end = ED_INTS(end)),
                                              ed_forward(model, part, .training = true));
            loss = ed_add(loss, ed_list_get(ed_layer_losses(model), 0));
            sum += ed_item(loss) * (double)(end - i);
            ed_minimize(sgd, tape, loss, model);
        }
    }
    return sum / ROWS;
}

static void fit_is_the_loop(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *a = model_of(7), *b = model_of(7);
    assert_true(compile(a));
    ed_history *h = ed_model_fit(a, x, y, .epochs = 5, .batch_size = 16, .shuffle = false);
    assert_non_null(h);
    const double last = by_hand(b, x, y, 5, 16);
    assert_true(ed_history_last(h, "loss") == last);
    for (int64_t i = 0; i < 4; i++)
        assert_true(ed_all_close(ed_list_get(ed_layer_variables(a), i),
                                 ed_list_get(ed_layer_variables(b), i), 0, 0, NULL));
    assert_int_equal(ed_history_epochs(h), 5);
    assert_int_equal(ed_history_count(h), 2);
    assert_string_equal(ed_history_name(h, 1), "sparse_categorical_accuracy");
    const double *loss = ed_data(ed_history_values(h, "loss"));
    assert_true(loss[4] < loss[0]);

    /* Evaluation is that of the whole, prediction that of forward. */
    ed_history *tested = ed_model_evaluate(a, x, y, .batch_size = 7);
    ed_tensor *all = ed_forward(a, x);
    ed_tensor *whole =
        ed_add(ed_loss_compute(crossentropy(), y, all), ed_list_get(ed_layer_losses(a), 0));
    assert_true(fabs(ed_history_last(tested, "loss") - ed_item(whole)) < 1e-6);
    assert_true(ed_all_close(ed_model_predict(a, x, .batch_size = 7), all, 1e-6, 1e-6, NULL));
    assert_false(ed_failed());
}

static void shuffled_rows_are_all_rows(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *a = model_of(3), *b = model_of(3);
    compile(a);
    compile(b);
    ed_history *h[2];
    for (int i = 0; i < 2; i++)
        h[i] = ed_model_fit(i ? b : a, x, y, .epochs = 30, .batch_size = 8, .validation_split = 0.2,
                            .generator = ed_generator_from_seed(5));
    assert_true(ed_history_last(h[0], "loss") == ed_history_last(h[1], "loss"));
    assert_true(ed_history_last(h[0], "sparse_categorical_accuracy") > 0.9);
    assert_true(ed_history_last(h[0], "val_loss") > 0);
    assert_int_equal(ed_history_count(h[0]), 4);

    /* A dataset is the same data. */
    ed_dataset *data = ed_dataset_from_tensors(x, y, .batch = 10);
    assert_non_null(ed_model_fit(a, data, NULL, .epochs = 2, .validation_x = data));
    assert_false(ed_failed());
}

/* A model without trainable variables, Keras trains it too: its values are measured. */
static void nothing_to_train(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *model = model_of(7);
    assert_true(compile(model));
    ed_layer_set_trainable(model, false);
    ed_history *h = ed_model_fit(model, x, y, .epochs = 2);
    const double loss = ed_history_last(ed_model_evaluate(model, x, y), "loss");
    assert_true(fabs(ed_history_last(h, "loss") - loss) < 1e-6);
    assert_int_equal(ed_optimizer_iterations(ed_model_optimizer(model)), 0);
    assert_false(ed_failed());
}

/* What a callback sees of the first variable: the mean of its elements. */
typedef struct seen {
    double at_epoch_end, at_test_begin;
} seen;

static bool look(void *user, ed_training *t)
{
    seen *s = user;
    if (t->event != ED_EPOCH_END && t->event != ED_TEST_BEGIN) return true;
    const double mean = ed_item(ed_reduce_mean(ed_list_get(ed_layer_variables(t->model), 0)));
    if (t->event == ED_EPOCH_END) s->at_epoch_end = mean;
    if (t->event == ED_TEST_BEGIN) s->at_test_begin = mean;
    return true;
}

/* With use_ema the variables become their averages in the end; swap_ema_weights shows these to
 * evaluations, and to the callbacks behind it. */
static void averages_of_variables(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    double last[3];
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_layer *model = model_of(7);
        ed_optimizer *sgd =
            ed_optimizer_sgd(.learning_rate = 0.1, .use_ema = i > 0, .ema_momentum = 0.9);
        ed_model_compile(model, .optimizer = sgd, .loss = crossentropy());
        seen s;
        ed_callback *swap = ed_callback_swap_ema_weights(.swap_on_epoch = true);
        ed_callback *looks = ed_callback_from(look, &s, NULL);
        ed_objects callbacks = i == 2 ? ED_OBJECTS(swap, looks) : ED_OBJECTS(looks);
        assert_non_null(ed_model_fit(model, x, y, .epochs = 3, .shuffle = false, .validation_x = x,
                                     .validation_y = y, .callbacks = callbacks));
        last[i] = ed_item(ed_reduce_mean(ed_list_get(ed_layer_variables(model), 0)));
        if (i != 1) assert_true(s.at_epoch_end == last[i] && s.at_test_begin == last[i]);
        if (i == 1) assert_true(s.at_epoch_end == last[0]); /* the training's own values */
    }
    assert_true(last[1] != last[0] && last[2] == last[1]);

    ed_layer *model = model_of(7);
    assert_true(compile(model));
    ed_model_fit(model, x, y, .callbacks = ED_OBJECTS(ed_callback_swap_ema_weights()));
    failed_with(ED_INVALID_ARGUMENT, "the optimizer keeps no averages");
}

/* Evaluating and predicting leave a dataset where it is, however far they go. */
static void passes_apart(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *model = model_of(3);
    compile(model);
    for (int shuffle = 0; shuffle < 2; shuffle++)
        for (int64_t steps = 0; steps < 2; steps++) {
            ED_SCOPE;
            ed_dataset *data = ed_dataset_from_tensors(x, y, .batch = 10, .shuffle = shuffle);
            ed_tensor *rows, *first = ed_model_predict(model, data, .steps = 1);
            int64_t batches = 0;
            for (; ed_dataset_next(data, &rows, NULL); batches++) {
                ED_SCOPE;
                ed_tensor *own = ed_forward(model, rows);
                if (!batches) assert_true(ed_all_close(own, first, 1e-6, 1e-6, NULL));
                assert_non_null(ed_model_predict(model, data, .steps = steps));
                assert_non_null(ed_model_evaluate(model, data, NULL, .steps = steps));
                assert_true(batches < ed_dataset_batches(data));
            }
            assert_int_equal(batches, ed_dataset_batches(data));
        }
}

/* What a callback evaluates: the data that the training goes through. */
static bool evaluates(void *user, ed_training *t)
{
    ed_layer *other = *(ed_layer **)user;
    ed_dataset *data = ((void **)user)[1];
    if (t->event != ED_BATCH_END) return true;
    ++*(int *)((void **)user)[2];
    return ed_model_evaluate(other, data, NULL) && ed_model_predict(t->model, data);
}

/* With a callback that evaluates another model, or the one that is trained. */
static void callbacks_evaluate_the_data_of_the_training(void **state)
{
    (void)state;
    static const char *const names[] = {"loss", "sparse_categorical_accuracy", "val_loss",
                                        "val_sparse_categorical_accuracy"};
    ed_history *h[3];
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    for (int i = 0; i < 3; i++) {
        ed_layer *model = model_of(3), *other = model_of(4);
        compile(model);
        compile(other);
        ed_dataset *data = ed_dataset_from_tensors(x, y, .batch = 10, .shuffle = true, .seed = 7);
        int calls = 0;
        void *user[] = {i < 2 ? other : model, data, &calls};
        ed_callback *callback = ed_callback_from(evaluates, user, NULL);
        h[i] = i ? ed_model_fit(model, data, NULL, .epochs = 2, .validation_x = data,
                                .callbacks = ED_OBJECTS(callback))
                 : ed_model_fit(model, data, NULL, .epochs = 2, .validation_x = data);
        assert_int_equal(calls, (i > 0) * 2 * ed_dataset_batches(data));
        for (int k = 0; k < 4; k++)
            assert_true(ed_history_last(h[i], names[k]) == ed_history_last(h[0], names[k]));
    }
}

static void weights_count(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *a = model_of(9), *b = model_of(9);
    ed_model_compile(a, .loss = crossentropy());
    ed_model_compile(b, .loss = crossentropy());
    ed_tensor *factors = ed_constant(ED_VALUES(float, 0.5, 3), ED_SHAPE(2));
    ed_tensor *w = ed_gather(factors, y);
    ed_history *by_class = ed_model_fit(a, x, y, .shuffle = false, .class_weight = factors);
    ed_history *by_row = ed_model_fit(b, x, y, .shuffle = false, .sample_weight = w);
    assert_true(ed_history_last(by_class, "loss") == ed_history_last(by_row, "loss"));
}

/* Weighted metrics count rows as the loss does, those without weights count each once; also in a
 * validation. */
static void metrics_have_weights(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(9);
    ed_tensor *w = ed_cast(y, ED_FLOAT32); /* only the rows of class 1 */
    assert_true(ed_model_compile(
        m, .loss = crossentropy(), .optimizer = ed_optimizer_sgd(.learning_rate = 0),
        .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy(.name = "plain")),
        .weighted_metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy(.name = "weighted"))));
    ed_history *h =
        ed_model_fit(m, x, y, .validation_x = x, .validation_y = y, .validation_sample_weight = w,
                     .class_weight = ed_constant(ED_VALUES(float, 1, 0), ED_SHAPE(2)));
    assert_non_null(h);
    const ed_tensor *right =
        ed_cast(ed_equal(ed_argmax(ed_forward(m, x), .axis = 1), ed_cast(y, ED_INT64)), ED_FLOAT32);
    const double all = ed_item(ed_reduce_mean((ed_tensor *)right));
    const double ones = ed_item(ed_reduce_sum(ed_mul((ed_tensor *)right, w))),
                 n = ed_item(ed_reduce_sum(w));
    assert_true(fabs(ed_history_last(h, "plain") - all) < 1e-6);
    assert_true(fabs(ed_history_last(h, "val_plain") - all) < 1e-6);
    assert_true(fabs(ed_history_last(h, "val_weighted") - ones / n) < 1e-6);
    assert_true(fabs(ed_history_last(h, "weighted") - (all * ROWS - ones) / (ROWS - n)) < 1e-6);
    ed_tensor *few = ed_slice(w, .end = ED_INTS(9));
    assert_null(ed_model_fit(m, x, y, .validation_x = x, .validation_y = y,
                             .validation_sample_weight = few));
    assert_non_null(strstr(ed_error(), "validation: sample_weight must be [50]"));
    ed_clear_error();
    assert_null(ed_model_fit(m, x, y, .validation_sample_weight = w));
    assert_non_null(strstr(ed_error(), "without validation_x"));
    ed_clear_error();
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

typedef struct heard {
    int events[ED_PREDICT_BATCH_END + 1];
    int64_t stop_at;
} heard;

static bool hear(void *user, ed_training *training)
{
    heard *h = user;
    h->events[training->event]++;
    if (training->event == ED_EPOCH_END) {
        assert_true(isfinite(ed_training_value(training, "loss")));
        assert_true(isnan(ed_training_value(training, "none")));
        if (training->epoch == h->stop_at) training->stop = true;
    }
    return true;
}

static bool refuse(void *user, ed_training *training)
{
    (void)user;
    return training->event != ED_BATCH_END || ed_fail(ED_FAILED_PRECONDITION, "enough");
}

static void callbacks_hear(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    compile(m);
    heard h = {.stop_at = 2};
    ed_history *history =
        ed_model_fit(m, x, y, .epochs = 9, .batch_size = 25, .validation_split = 0.5,
                     .callbacks = ED_OBJECTS(ed_callback_from(hear, &h, NULL)));
    assert_int_equal(ed_history_epochs(history), 3);
    const int told[] = {1, 1, 3, 3, 3, 3, 3, 3, 3, 3};
    for (int i = 0; i < 10; i++) assert_int_equal(h.events[i], told[i]);

    assert_null(
        ed_model_fit(m, x, y, .callbacks = ED_OBJECTS(ed_callback_from(refuse, NULL, NULL))));
    assert_non_null(strstr(ed_error(), "enough (epoch 0, batch 0)"));
    ed_clear_error();
}

static void stops_early_with_the_best_weights(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    ed_model_compile(m, .optimizer = ed_optimizer_sgd(.learning_rate = 40), .loss = crossentropy());
    ed_history *h =
        ed_model_fit(m, x, y, .epochs = 200, .validation_split = 0.3, .shuffle = false,
                     .callbacks = ED_OBJECTS(
                         ed_callback_early_stopping(.patience = 3, .restore_best_weights = true)));
    assert_non_null(h);
    const int64_t n = ed_history_epochs(h);
    assert_in_range(n, 4, 199);
    const double *values = ed_data(ed_history_values(h, "val_loss"));
    double best = values[0];
    for (int64_t i = 1; i < n; i++) best = values[i] < best ? values[i] : best;
    ed_tensor *vx = ed_slice(x, .begin = ED_INTS(35)), *vy = ed_slice(y, .begin = ED_INTS(35));
    assert_true(ed_history_last(ed_model_evaluate(m, vx, vy), "loss") == best);
}

static void logs_are_written(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    char csv[4200], json[4200], line[200];
    snprintf(csv, sizeof csv, "%s/log.csv", folder_root);
    snprintf(json, sizeof json, "%s/log.jsonl", folder_root);
    ed_layer *m = model_of(1);
    compile(m);
    for (int i = 0; i < 2; i++)
        assert_non_null(ed_model_fit(
            m, x, y, .epochs = 2,
            .callbacks = ED_OBJECTS(
                ed_callback_csv_logger(csv, .append = true), ed_callback_json_logger(json),
                ed_callback_reduce_lr_on_plateau(.monitor = "loss"), ed_callback_terminate_on_nan(),
                ed_callback_learning_rate_scheduler(ed_schedule_exponential_decay(0.1, 1, 0.5)))));
    FILE *file = fopen(csv, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "epoch,loss,sparse_categorical_accuracy\n");
    int lines = 0;
    while (fgets(line, sizeof line, file)) assert_int_equal(atoi(line), lines++ % 2);
    assert_int_equal(lines, 4);
    fclose(file);
    file = fopen(json, "r");
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(strncmp(line, "{\"epoch\": 0, \"loss\": 0.", 23), 0);
    fclose(file);
    assert_true(ed_optimizer_learning_rate(ed_model_optimizer(m)) == 0.05);
    assert_null(
        ed_model_fit(m, x, y, .callbacks = ED_OBJECTS(ed_callback_csv_logger("/nowhere/x.csv"))));
    assert_non_null(strstr(ed_error(), "/nowhere/x.csv"));
    ed_clear_error();
}

/* No change of the loss is as large as min_delta: after `patience` epochs each the rate is halved,
 * down to min_lr. */
static void plateaus_reduce_the_rate(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    static const double expected[] = {0.08, 0.08, 0.04, 0.04, 0.02, 0.02, 0.015, 0.015};
    for (int epochs = 1; epochs <= 8; epochs++) {
        ed_layer *m = model_of(1);
        compile(m);
        ed_optimizer_set_learning_rate(ed_model_optimizer(m), 0.08);
        ed_callback *reduce =
            ed_callback_reduce_lr_on_plateau(.monitor = "loss", .factor = 0.5, .patience = 2,
                                             .min_delta = 1000, .min_lr = 0.015);
        ed_model_fit(m, x, y, .epochs = epochs, .callbacks = ED_OBJECTS(reduce));
        const double rate = ed_optimizer_learning_rate(ed_model_optimizer(m));
        if (fabs(rate - expected[epochs - 1]) > 1e-9)
            fail_msg("after %d epochs the rate is %g: %s", epochs, rate, ed_error());
    }
}

static void nan_ends_it(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    compile(m);
    assert_null(ed_model_fit(m, ed_mul(x, INFINITY), y,
                             .callbacks = ED_OBJECTS(ed_callback_terminate_on_nan())));
    assert_non_null(strstr(ed_error(), "the first variable that is not finite is m/dense/"));
    ed_clear_error();
}

static bool interrupt(void *user, ed_training *t)
{
    int *ends = user;
    if (t->event == ED_BATCH_BEGIN && t->step == 1) ed_interrupt();
    if (t->event == ED_TRAIN_END) *ends += t->failed;
    return true;
}

static void interrupts_end_it(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    int ends = 0;
    compile(m);
    assert_null(ed_model_fit(m, x, y, .epochs = 3, .batch_size = 10,
                             .callbacks = ED_OBJECTS(ed_callback_from(interrupt, &ends, NULL))));
    assert_int_equal(ed_error_kind(), ED_CANCELLED);
    assert_non_null(strstr(ed_error(), "interrupted"));
    assert_non_null(strstr(ed_error(), "(epoch 0, batch 1)"));
    assert_int_equal(ends, 1);
    ed_clear_interrupt();
    ed_clear_error();
    assert_non_null(ed_model_fit(m, x, y));
}

/* After the first batches of each size, no step takes more memory than those before. */
static void memory_stays_flat(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    compile(m);
    int64_t live = 0, tensors = 0;
    for (int i = 0, steps = 0; steps < 10000; i++) {
        ED_SCOPE;
        const int64_t batch = 1 + (i * 7) % ROWS;
        assert_non_null(ed_model_fit(m, x, y, .batch_size = batch, .validation_split = 0.1));
        steps += (int)(45 / batch + 1);
        const ed_memory now = ed_memory_stats();
        if (i == ROWS) live = now.live_bytes, tensors = now.live_tensors;
        if (i <= ROWS) continue;
        assert_int_equal(now.live_tensors, tensors);
        assert_true(now.live_bytes <= live + 4096);
    }
}

static void validation_has_so_many_steps(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    compile(m);
    heard h = {.stop_at = -1};
    assert_non_null(ed_model_fit(m, x, y, .batch_size = 5, .validation_split = 0.5,
                                 .validation_steps = 2,
                                 .callbacks = ED_OBJECTS(ed_callback_from(hear, &h, NULL))));
    assert_int_equal(h.events[ED_BATCH_END], 5);
    assert_int_equal(h.events[ED_TEST_BATCH_END], 2);
}

static bool stop_at_once(void *user, ed_training *training)
{
    (void)user;
    return training->stop = true;
}

static void predictions_are_heard(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs();
    ed_layer *m = model_of(1);
    heard h = {.stop_at = -1};
    ed_objects callbacks = ED_OBJECTS(ed_callback_from(hear, &h, NULL));
    ed_tensor *all = ed_model_predict(m, x, .batch_size = 20, .callbacks = callbacks);
    assert_int_equal(ed_dim(all, 0), ROWS);
    assert_int_equal(h.events[ED_PREDICT_BEGIN], 1);
    assert_int_equal(h.events[ED_PREDICT_BATCH_BEGIN], 3);
    assert_int_equal(h.events[ED_PREDICT_BATCH_END], 3);
    assert_int_equal(h.events[ED_PREDICT_END], 1);
    ed_callback *stop = ed_callback_from(stop_at_once, NULL, NULL);
    ed_tensor *some = ed_model_predict(m, x, .batch_size = 20, .callbacks = ED_OBJECTS(stop));
    assert_int_equal(ed_dim(some, 0), 20);
    assert_false(ed_failed());
}

#define REFUSES(text, call)                                                                        \
    do {                                                                                           \
        assert_false(call);                                                                        \
        if (!strstr(ed_error(), text)) fail_msg("the error is: %s", ed_error());                   \
        ed_clear_error();                                                                          \
    } while (0)

/* ---- Several outputs ------------------------------------------------------------------------- */

typedef struct heads {
    ed_layer *a, *b;
} heads;

static bool heads_init(ed_layer *layer)
{
    heads *h = ed_layer_state(layer);
    h->a = ed_layer_add_child(layer, ed_layer_dense(2, .name = "a"));
    h->b = ed_layer_add_child(layer, ed_layer_dense(1, .name = "b"));
    return h->a && h->b;
}

static bool heads_forward(ed_layer *layer, ed_layer_call *call)
{
    heads *h = ed_layer_state(layer);
    return ed_layer_return(call, ed_forward(h->a, call->inputs[0])) &&
           ed_layer_return(call, ed_forward(h->b, call->inputs[0]));
}

static const ed_layer_class heads_class = {.kind.name = "heads",
                                           .state_size = sizeof(heads),
                                           .init = heads_init,
                                           .forward = heads_forward};

static void two_outputs(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_list *both = ed_list_of(y, ed_reduce_sum(x, .axis = ED_AXES(1), .keepdims = true));
    ed_layer *m = ed_layer_new(&heads_class, "two");
    ed_objects losses = ED_OBJECTS(crossentropy(), ed_loss_mean_squared_error());
    const double factors[] = {1, 0.5};
    assert_true(ed_model_compile(m, .losses = losses, .loss_weights = {factors, 2},
                                 .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy())));
    assert_true(ed_model_add_metric(m, 1, ed_metric_accuracy(.name = "same")));
    ed_history *h = ed_model_fit(m, x, both, .epochs = 3);
    assert_non_null(h);
    const char *const names[] = {"loss", "a_loss", "b_loss", "a_sparse_categorical_accuracy",
                                 "b_same"};
    assert_int_equal(ed_history_count(h), 5);
    for (int i = 0; i < 5; i++) assert_string_equal(ed_history_name(h, i), names[i]);
    const double sum = ed_history_last(h, "a_loss") + 0.5 * ed_history_last(h, "b_loss");
    assert_true(fabs(ed_history_last(h, "loss") - sum) < 1e-5);
    const double *loss = ed_data(ed_history_values(h, "loss"));
    assert_true(loss[2] < loss[0]);
    assert_int_equal(ed_list_size(ed_model_predict_list(m, x)), 2);
    assert_null(ed_model_predict(m, x));
    assert_non_null(strstr(ed_error(), "2 outputs"));
    ed_clear_error();
    assert_null(ed_model_fit(m, x, y));
    assert_non_null(strstr(ed_error(), "1 tensors y for 2 losses"));
    ed_clear_error();
}

/* Losses by the names of outputs, in another order, are those of the order; so are batches of a
 * dataset of lists. An output without a loss needs no labels. */
static void named_outputs(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_input(ED_SHAPE(4), .name = "x"), *z = ed_input(ED_SHAPE(4), .name = "z");
    ed_tensor *a = ed_forward(ed_layer_dense(2, .name = "a"), ed_add(x, z));
    ed_tensor *b = ed_forward(ed_layer_dense(1, .name = "b"), x);
    ed_layer *m = ed_model(ed_list_of(x, z), ed_list_of(a, b));
    assert_int_equal(ed_model_input_index(m, "z"), 1);
    assert_int_equal(ed_model_output_index(m, "b"), 1);
    ed_tensor *data = inputs(), *y = labels(data), *sums = ed_reduce_sum(data, .axis = ED_AXES(1));
    ed_list *xs = ed_list_of(data, data), *ys = ed_list_of(y, sums);
    ed_loss *of_a = crossentropy(), *of_b = ed_loss_mean_squared_error();
    const double factors[] = {1, 0.5}, turned[] = {0.5, 1};
    ed_model_compile(m, .losses = ED_OBJECTS(of_a, of_b), .loss_weights = {factors, 2});
    const double loss = ed_history_last(ed_model_evaluate(m, xs, ys), "loss");
    assert_true(ed_model_compile(m, .losses = ED_OBJECTS(of_b, of_a), .outputs = "b, a",
                                 .loss_weights = {turned, 2}));
    ed_metric *metric = ed_metric_by_name("accuracy", of_a, m);
    assert_string_equal(ed_kind_of(metric)->name, "sparse_categorical_accuracy");
    assert_true(ed_model_add_metric(m, ed_model_output_index(m, "a"), metric));
    assert_true(ed_history_last(ed_model_evaluate(m, xs, ys), "loss") == loss);
    ed_dataset *set = ed_dataset_from_lists(xs, ys, .batch = 32);
    assert_true(ed_history_last(ed_model_evaluate(m, set, NULL), "loss") == loss);
    assert_non_null(ed_model_fit(m, set, NULL, .epochs = 2));
    assert_true(ed_model_compile(m, .losses = ED_OBJECTS(of_a, NULL)));
    ed_history *h = ed_model_fit(m, xs, y);
    assert_int_equal(ed_history_count(h), 1);
    REFUSES("2 tensors x and 2 y", ed_dataset_next(set, &x, &y));
    REFUSES("no output named 'c'; its outputs are a, b", ed_model_output_index(m, "c") >= 0);
    REFUSES("outputs has a twice",
            ed_model_compile(m, .losses = ED_OBJECTS(of_a, of_b), .outputs = "a, a"));
    REFUSES("outputs names 1 of them",
            ed_model_compile(m, .losses = ED_OBJECTS(of_a), .outputs = "a"));
    REFUSES("more names",
            ed_model_compile(m, .losses = ED_OBJECTS(of_a, of_b), .outputs = "a,b,c"));
    REFUSES("unknown metric \"acuracy\"; did you mean \"accuracy\"?",
            ed_metric_by_name("acuracy", NULL, NULL));
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void misuse_is_an_error(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x), *few = ed_slice(y, .end = ED_INTS(9));
    ed_layer *m = model_of(1);
    REFUSES("is not compiled", ed_model_fit(m, x, y));
    REFUSES("a loss is required", ed_model_compile(m));
    REFUSES("metric 0 must be a metric, got a loss",
            ed_model_compile(m, .loss = crossentropy(), .metrics = ED_OBJECTS(crossentropy())));
    REFUSES("optimizer must be an optimizer",
            ed_model_compile(m, .loss = crossentropy(), .optimizer = (void *)x));
    compile(m);
    REFUSES("y 0 has 9 rows, x has 50", ed_model_fit(m, x, few));
    REFUSES("x 0 must be a tensor of rows, got a scalar", ed_model_fit(m, ed_scalar(1.0), y));
    REFUSES("sample_weight must be [50]", ed_model_fit(m, x, y, .sample_weight = few));
    REFUSES("sample_weight must be a tensor, got a list",
            ed_model_fit(m, x, y, .sample_weight = ed_list_of(y)));
    REFUSES("class_weight must be a tensor, got a list",
            ed_model_fit(m, x, y, .class_weight = ed_list_of(y)));
    REFUSES("class_weight must be floats", ed_model_fit(m, x, y, .class_weight = y));
    REFUSES("callback 0 is a metric",
            ed_model_fit(m, x, y, .callbacks = ED_OBJECTS(ed_metric_mean())));
    REFUSES("there are no rows", ed_model_fit(m, ed_zeros(ED_SHAPE(0, 4)), ed_zeros(ED_SHAPE(0))));
    REFUSES("leaves 0 of 1 rows", ed_model_fit(m, ed_zeros(ED_SHAPE(1, 4)), ed_zeros(ED_SHAPE(1)),
                                               .validation_split = 0.5));
    REFUSES("give either", ed_model_fit(m, x, y, .validation_split = 0.5, .validation_x = x));
    REFUSES("y must be NULL", ed_model_fit(m, ed_dataset_from_tensors(x, y), y));
    REFUSES("(epoch 0, batch 0)", ed_model_fit(m, x, ed_add(y, 5)));
    REFUSES("epochs", ed_model_fit(m, x, y, .epochs = -1));
    REFUSES("no value named val_loss; it has loss, sparse_categorical_accuracy",
            ed_model_fit(m, x, y, .callbacks = ED_OBJECTS(ed_callback_early_stopping())));
    REFUSES("there is no value named", ed_history_values(ed_model_fit(m, x, y), "val_loss"));
    assert_int_equal(ed_history_epochs(ed_model_fit(m, x, y, .epochs = 0)), 0);
}

/* Each allocation of a training refused in turn: an error, and nothing leaks. */
static void without_memory(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = inputs(), *y = labels(x);
    ed_layer *m = model_of(1);
    compile(m);
    ed_model_fit(m, x, y);
    const int64_t live = ed_memory_live();
    bool refused = true;
    for (int64_t i = 0; refused; i++) {
        {
            ED_SCOPE;
            ed_memory_fail_at(i, false);
            const bool ok =
                ed_model_fit(m, x, y, .batch_size = 25, .validation_split = 0.5) != NULL;
            refused = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_true(ok != refused || ok);
            if (refused && !ok) assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
            ed_clear_error();
        }
        assert_int_equal(ed_memory_live(), live);
    }
}

/* What layers add to a loss: in training kept by the layers; else only for who asks for it. */
static void losses_of_calls(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *model =
        ed_layer_sequential(NULL, ed_layer_activity_regularization(.l1 = 0.5),
                            ed_layer_dense(1, .kernel_initializer = ed_initializer_ones(),
                                           .activity_regularizer = ed_regularizer_l2(0.25)));
    ed_tensor *x = ed_full(ED_SHAPE(2, 3), 2), *zeros = ed_zeros(ED_SHAPE(2, 1));
    ed_list *losses = NULL;
    assert_non_null(ed_forward(model, x));
    assert_int_equal(ed_list_size(ed_layer_losses(model)), 0);
    for (int training = 0; training < 2; training++) {
        assert_non_null(ed_forward(model, x, .training = training, .losses = &losses));
        assert_int_equal(ed_list_size(losses), 2);
        assert_true(ed_item(ed_list_get(losses, 0)) == 3 && ed_item(ed_list_get(losses, 1)) == 9);
        assert_int_equal(ed_list_size(ed_layer_losses(model)), 0);
    }
    assert_non_null(ed_forward(model, x, .training = true));
    assert_int_equal(ed_list_size(ed_layer_losses(model)), 2);
    ed_model_compile(model, .loss = ed_loss_mean_squared_error());
    assert_true(fabs(ed_history_last(ed_model_evaluate(model, x, zeros), "loss") - 48) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_of_calls),
        cmocka_unit_test(plateaus_reduce_the_rate),
        cmocka_unit_test(fit_is_the_loop),
        cmocka_unit_test(shuffled_rows_are_all_rows),
        cmocka_unit_test(nothing_to_train),
        cmocka_unit_test(averages_of_variables),
        cmocka_unit_test(passes_apart),
        cmocka_unit_test(callbacks_evaluate_the_data_of_the_training),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(metrics_have_weights),
        cmocka_unit_test(callbacks_hear),
        cmocka_unit_test(interrupts_end_it),
        cmocka_unit_test(memory_stays_flat),
        cmocka_unit_test(validation_has_so_many_steps),
        cmocka_unit_test(predictions_are_heard),
        cmocka_unit_test(stops_early_with_the_best_weights),
        cmocka_unit_test(logs_are_written),
        cmocka_unit_test(nan_ends_it),
        cmocka_unit_test(two_outputs),
        cmocka_unit_test(named_outputs),
        cmocka_unit_test(misuse_is_an_error),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
