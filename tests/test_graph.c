/* Models described by symbolic tensors: they compute what their layers and ops compute when they
 * are called by hand, for any size that was left open; what can't be described is refused. */
#include "eddy.h"
#include "tests/asserts.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static ed_tensor *noise(ed_ints shape)
{
    return ed_random_normal(shape, .generator = ed_generator_from_seed(7));
}

static void assert_shape(const ed_tensor *t, ed_ints shape)
{
    assert_non_null(t);
    assert_int_equal(ed_rank(t), shape.count);
    for (int i = 0; i < ed_rank(t); i++) assert_int_equal(ed_dim(t, i), shape.values[i]);
}

static void assert_same(ed_tensor *a, ed_tensor *b)
{
    assert_fine();
    assert_true(ed_all_close(a, b, 0, 0, NULL));
}

static void shapes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_input(ED_SHAPE(28, 28));
    assert_true(ed_is_symbolic(x));
    assert_false(ed_is_symbolic(NULL));
    assert_false(ed_is_symbolic(ed_zeros(ED_SHAPE(2))));
    assert_shape(x, ED_SHAPE(-1, 28, 28));
    assert_int_equal(ed_size(x), -1);
    assert_string_equal(ed_to_string(x), "(no elements yet)\ntensor float32 [-1, 28, 28]");
    assert_shape(ed_forward(ed_layer_flatten(), x), ED_SHAPE(-1, 784));
    assert_shape(ed_reduce_sum(x), ((ed_ints){(int64_t[1]){0}, 0}));
    assert_shape(ed_reshape(x, ED_SHAPE(ed_dim(x, 0), 14, 56)), ED_SHAPE(-1, 14, 56));
    assert_shape(ed_input(ED_SHAPE(3), .batch_size = 8), ED_SHAPE(8, 3));
    ed_tensor *image = ed_input(ED_SHAPE(-1, -1, 3));
    ed_tensor *y = ed_forward(ed_layer_conv2d(4, ED_INTS(3), .strides = ED_INTS(2)), image);
    assert_shape(y, ED_SHAPE(-1, -1, -1, 4));
    assert_shape(ed_forward(ed_layer_global_average_pooling2d(), y), ED_SHAPE(-1, 4));
    assert_shape(ed_concat(ed_list_of(y, y), .axis = -1), ED_SHAPE(-1, -1, -1, 8));
    assert_fine();
}

static void computes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *first = ed_layer_dense(5, .activation = "tanh"), *second = ed_layer_dense(5);
    ed_tensor *a = ed_input(ED_SHAPE(4)), *b = ed_input(ED_SHAPE(3));
    ed_tensor *h = ed_forward(first, a);
    ed_tensor *sum = ed_add(ed_mul(h, 2.0), ed_forward(second, b));
    ed_layer *model = ed_model(ed_list_of(a, b), ed_list_of(ed_sigmoid(sum), h), .name = "two");
    assert_fine();
    assert_string_equal(ed_layer_name(model), "two");
    assert_string_equal(ed_layer_path(first), "two/dense");
    assert_string_equal(ed_variable_name(ed_layer_weight(second, 0)), "two/dense_1/kernel");
    assert_int_equal(ed_list_size(ed_layer_variables(model)), 4);
    for (int64_t batch = 1; batch < 40; batch += 12) {
        ed_tensor *x = noise(ED_SHAPE(batch, 4)), *z = noise(ED_SHAPE(batch, 3));
        ed_list *y = ed_forward(model, ed_list_of(x, z));
        assert_int_equal(ed_list_size(y), 2);
        ed_tensor *by_hand = ed_forward(first, x);
        assert_same(ed_list_get(y, 1), by_hand);
        by_hand = ed_sigmoid(ed_add(ed_mul(by_hand, 2.0), ed_forward(second, z)));
        assert_same(ed_list_get(y, 0), by_hand);
    }
}

/* Gradients go through ops and layers; a variable that an op reads is read anew. */
static void trains(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *scale = ed_variable(ed_scalar(2.0), .name = "scale");
    ed_tensor *x = ed_input(ED_SHAPE(3));
    ed_layer *dense = ed_layer_dense(2);
    ed_layer *model = ed_model(x, ed_mul(ed_forward(dense, x), scale));
    ed_tensor *data = noise(ED_SHAPE(6, 3));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_forward(model, data);
    ed_list *g = ed_gradient(tape, y, ed_list_of(ed_layer_weight(dense, 1), scale));
    assert_same(ed_list_get(g, 0), ed_full(ED_SHAPE(2), 12.0));
    assert_true(
        ed_all_close(ed_list_get(g, 1), ed_reduce_sum(ed_forward(dense, data)), 1e-5, 1e-5, NULL));
    ed_assign(scale, ed_scalar(0.0));
    assert_same(ed_forward(model, data), ed_zeros(ED_SHAPE(6, 2)));
}

/* One layer called twice has its weights once; models share what is between two tensors. */
static void shares(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_input(ED_SHAPE(6)), *z = ed_input(ED_SHAPE(6));
    ed_layer *tower = ed_layer_dense(4), *head = ed_layer_dense(1);
    ed_tensor *tx = ed_forward(tower, x), *code = ed_sub(tx, ed_forward(tower, z));
    ed_layer *model = ed_model(ed_list_of(x, z), ed_forward(head, code));
    assert_int_equal(ed_layer_child_count(model), 2);
    assert_int_equal(ed_layer_count_params(model), 6 * 4 + 4 + 4 + 1);
    ed_layer *encoder = ed_model(x, tx, .name = "encoder");
    ed_layer *rest = ed_model(code, ed_model_outputs(model), .name = "rest");
    assert_fine();
    assert_ptr_equal(ed_layer_child(encoder, 0), tower);
    assert_string_equal(ed_layer_path(tower), "functional/dense");
    ed_tensor *a = noise(ED_SHAPE(3, 6)), *b = ed_ones(ED_SHAPE(3, 6));
    ed_tensor *by_parts = ed_sub(ed_forward(encoder, a), ed_forward(encoder, b));
    assert_same(ed_forward_one(model, ed_list_of(a, b)), ed_forward(rest, by_parts));
    /* frozen in one, frozen in all */
    assert_true(ed_layer_set_trainable(encoder, false));
    assert_int_equal(ed_list_size(ed_layer_trainable_variables(model)), 2);
    ed_layer *values = ed_model(ed_model_inputs(model), ed_model_values(model, "dense"));
    assert_same(ed_forward_one(values, ed_list_of(a, b)), ed_forward(tower, a));
    /* a model is a layer of another; a layer in both counts once */
    ed_tensor *y = ed_input(ED_SHAPE(6));
    ed_layer *outer = ed_model(y, ed_add(ed_forward(encoder, y), ed_forward(tower, y)));
    assert_fine();
    assert_int_equal(ed_layer_count_params(outer), 6 * 4 + 4);
    assert_int_equal(ed_list_size(ed_layer_variables(outer)), 2);
    assert_same(ed_forward(outer, a), ed_mul(ed_forward(tower, a), 2.0));
}

/* The layers outlive the model that was their parent. */
static void outlives(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_input(ED_SHAPE(2));
    ed_tensor *h = ed_forward(ed_layer_dense(2), x);
    ed_layer *second;
    {
        ED_SCOPE;
        ed_layer *first = ed_model(x, ed_forward(ed_layer_dense(1), h), .name = "first");
        assert_string_equal(ed_layer_path(ed_layer_child(first, 0)), "first/dense");
        second = ed_keep(ed_model(x, h, .name = "second"));
    }
    assert_string_equal(ed_layer_path(ed_layer_child(second, 0)), "second/dense");
    assert_ptr_equal(ed_layer_parent(ed_layer_child(second, 0)), second);
    assert_shape(ed_forward(second, ed_ones(ED_SHAPE(5, 2))), ED_SHAPE(5, 2));
    assert_fine();
}

/* Masks go with the values; the description's dropout is the model's. */
static void masks_and_training(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *ids = ed_input(ED_SHAPE(-1), .dtype = ED_INT32);
    ed_layer *embedding = ed_layer_embedding(10, 3, .mask_zero = true), *lstm = ed_layer_lstm(4);
    ed_layer *model = ed_model(ids, ed_forward(lstm, ed_forward(embedding, ids)));
    ed_tensor *some = ed_constant(((int32_t[]){1, 2, 0, 0, 3, 4, 5, 0}), ED_SHAPE(2, 4));
    ed_list *masks = NULL;
    ed_tensor *e = ed_forward(embedding, some, .output_masks = &masks);
    ed_tensor *y = ed_forward(lstm, e, .mask = ed_list_get(masks, 0));
    assert_same(ed_forward(model, some), y);
    assert_false(ed_all_close(y, ed_forward(lstm, e), 1e-5, 0, NULL));
    ed_tensor *x = ed_input(ED_SHAPE(50));
    ed_layer *drop = ed_layer_dropout(0.5);
    ed_layer *plain = ed_model(x, ed_forward(drop, x));
    ed_layer *always = ed_model(x, ed_forward(drop, x, .training = true));
    ed_tensor *ones = ed_ones(ED_SHAPE(2, 50));
    assert_same(ed_forward(plain, ones), ones);
    assert_false(ed_all_close(ed_forward(plain, ones, .training = true), ones, 0, 0, NULL));
    assert_false(ed_all_close(ed_forward(always, ones), ones, 0, 0, NULL));
    assert_fine();
}

static void fits(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_input(ED_SHAPE(4));
    ed_layer *model = ed_model(
        x, ed_forward(ed_layer_dense(1), ed_forward(ed_layer_dense(8, .activation = "relu"), x)));
    ed_model_compile(model, .loss = ed_loss_mean_squared_error(),
                     .optimizer = ed_optimizer_adam(.learning_rate = 0.05));
    ed_tensor *data = noise(ED_SHAPE(64, 4));
    ed_tensor *target = ed_reduce_sum(data, .axis = ED_AXES(1), .keepdims = true);
    ed_history *history = ed_model_fit(model, data, target, .epochs = 30, .verbose = 0);
    assert_fine();
    assert_true(ed_history_last(history, "loss") < 0.2);
}

/* Each line of the table, without what draws it and without the gaps. */
static const char *plain(const char *table)
{
    char *text = ed_scope_alloc(strlen(table) + 1), *to = text;
    for (const char *c = table; *c; c++) {
        if (*c & 0x80) continue;
        if (*c == ' ' && (to == text || to[-1] == ' ' || to[-1] == '\n')) continue;
        if (*c == '\n' && (to == text || to[-1] == '\n')) continue;
        *to++ = *c;
    }
    *to = 0;
    return text;
}

/* The table is Keras' table. */
static void looks(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *image = ed_input(ED_SHAPE(28, 28)), *table = ed_input(ED_SHAPE(10));
    ed_layer *encoder =
        ed_layer_sequential("enc", ed_layer_dense(5), ed_layer_batch_normalization());
    assert_string_equal(plain(ed_model_summary(encoder)),
                        "Model: \"enc\"\nLayer (type) Output Shape Param # \n"
                        "dense (Dense) ? 0 (unbuilt) \n"
                        "batch_normalization (BatchNormalization) ? 0 (unbuilt) \n"
                        "Total params: 0 (0.00 B)\nTrainable params: 0 (0.00 B)\n"
                        "Non-trainable params: 0 (0.00 B)\n");
    ed_tensor *both = ed_forward_one(ed_layer_concatenate(),
                                     ed_list_of(ed_forward(ed_layer_flatten(), image), table));
    ed_tensor *y = ed_forward(ed_layer_dense(2, .trainable = false), ed_forward(encoder, both));
    ed_layer *model = ed_model(ed_list_of(image, table), ed_add(y, 1.0));
    assert_string_equal(
        plain(ed_model_summary(model, .expand_nested = true, .show_trainable = true)),
        "Model: \"functional\"\nLayer (type) Output Shape Param # Trainable Connected to \n"
        "input_layer (InputLayer) (None, 28, 28) 0 - - \n"
        "flatten (Flatten) (None, 784) 0 Y input_layer[0][0] \n"
        "input_layer_1 (InputLayer) (None, 10) 0 - - \n"
        "concatenate (Concatenate) (None, 794) 0 Y flatten[0][0], input_layer_1[0][0] \n"
        "enc (Sequential) (None, 5) 3,995 Y concatenate[0][0] \n"
        "dense (Dense) (None, 5) 3,975 Y - \n"
        "batch_normalization (BatchNormalization) (None, 5) 20 Y - \n"
        "dense (Dense) (None, 2) 12 N enc[0][0] \n"
        "add (Add) (None, 2) 0 - dense[0][0] \n"
        "Total params: 4,007 (15.65 KB)\nTrainable params: 3,985 (15.57 KB)\n"
        "Non-trainable params: 22 (88.00 B)\n");
    assert_string_equal(ed_model_to_dot(encoder, .left_to_right = true),
                        "digraph \"enc\" {\n  rankdir=LR;\n  node [shape=box];\n"
                        "  n0 [label=\"dense (Dense)\\n(None, 5)\"];\n"
                        "  n1 [label=\"batch_normalization (BatchNormalization)\\n(None, 5)\"];\n"
                        "  n0 -> n1;\n}\n");
    const char *dot = ed_model_to_dot(model, .show_shapes = false);
    assert_non_null(strstr(dot, "n3 [label=\"concatenate (Concatenate)\"];"));
    assert_non_null(strstr(dot, "  n1 -> n3;\n  n2 -> n3;\n"));
    ed_layer *lstm = ed_layer_lstm(4, .return_state = true);
    ed_tensor *x = ed_input(ED_SHAPE(3, 2));
    assert_non_null(strstr(ed_model_summary(ed_model(x, ed_forward(lstm, ed_list_of(x)))),
                           " [(None, 4), (None, 4), (None, 4)] "));
    assert_fine();
}

static void refuses(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_input(ED_SHAPE(8), .name = "x"), *z = ed_input(ED_SHAPE(8), .name = "z");
    ed_tensor *h = ed_forward(ed_layer_dense(2), x);
    assert_fails(ed_item_int64(ed_reduce_sum(h)), ED_FAILED_PRECONDITION, "no elements yet");
    assert_fails(ed_item_at(h, 0, 1) > 0, ED_FAILED_PRECONDITION, "no elements yet");
    assert_fails(ed_data(h), ED_FAILED_PRECONDITION, "no elements yet");
    assert_fails(ed_variable(h), ED_FAILED_PRECONDITION, "no elements yet");
    assert_fails(ed_gradient(ed_tape_begin(), h, ed_variable(ed_zeros(ED_SHAPE(2)))),
                 ED_FAILED_PRECONDITION, "is symbolic");
    assert_fails(ed_assign(ed_variable(ed_zeros(ED_SHAPE(13, 2))), h), ED_INVALID_ARGUMENT,
                 "changes a variable");
    assert_fails(ed_nonzero(x), ED_UNIMPLEMENTED, "needs the elements of x");
    assert_fails(ed_model(z, h), ED_INVALID_ARGUMENT, "not among the inputs: x");
    assert_fails(ed_model(ed_list_of(x, x), h), ED_INVALID_ARGUMENT, "are the same");
    assert_fails(ed_model(ed_ones(ED_SHAPE(2, 8)), h), ED_INVALID_ARGUMENT,
                 "must be a symbolic tensor");
    assert_fails(ed_model(x, ed_ones(ED_SHAPE(2))), ED_INVALID_ARGUMENT,
                 "must be a symbolic tensor");
    assert_fails(ed_model(x, ed_list_make(NULL, 0)), ED_INVALID_ARGUMENT, "at least one output");
    assert_fails(ed_input(ED_SHAPE(-2)), ED_INVALID_ARGUMENT, "-1 is one that is open");
    assert_fails(ed_input(ED_SHAPE(2), .name = "a/b"), ED_INVALID_ARGUMENT, "invalid name");
    assert_fails(ed_ones_like(x), ED_FAILED_PRECONDITION, "not known yet");
    assert_fails(ed_write_npy("never.npy", x), ED_FAILED_PRECONDITION, "no elements yet");
    assert_fails(ed_dataset_from_tensors(x, x), ED_FAILED_PRECONDITION, "no elements yet");
    assert_fails(ed_model_predict(ed_layer_dense(2), x), ED_FAILED_PRECONDITION, "no elements yet");
    /* sizes that nobody gave are not told */
    assert_fails(ed_add(x, ed_ones(ED_SHAPE(9))), ED_INVALID_ARGUMENT, "shapes [?, 8] and [9]");
    assert_fails(ed_matmul(x, ed_ones(ED_SHAPE(7, 2))), ED_INVALID_ARGUMENT, "a is [?, 8], b");
    assert_fails(ed_forward(ed_layer_conv2d(4, ED_INTS(3)), x), ED_INVALID_ARGUMENT,
                 "float32[?, 8]");
    assert_fails(
        ed_forward(ed_layer_sequential("s", ed_layer_dense(6), ed_layer_conv2d(4, ED_INTS(3))), x),
        ED_INVALID_ARGUMENT, "float32[?, 6]");
    assert_fails(ed_reshape(x, ED_SHAPE(3, 5)), ED_INVALID_ARGUMENT, "?");
    /* a size that was taken for granted */
    assert_fails(ed_add(x, ed_ones(ED_SHAPE(13, 8))), ED_INVALID_ARGUMENT, "19");
    assert_fails(ed_forward(ed_layer_dense(2), ed_reshape(x, ED_SHAPE(1, -1))), ED_INVALID_ARGUMENT,
                 "open");
    ed_layer *model = ed_model(x, h);
    assert_fails(ed_forward(model, ed_ones(ED_SHAPE(2, 9))), ED_INVALID_ARGUMENT,
                 "input 0 must be float32[-1, 8], got float32[2, 9]");
    assert_fails(ed_forward_one(model, ed_list_of(h, h)), ED_INVALID_ARGUMENT, "got 2 inputs");
    assert_fails(ed_model_values(model, "nobody"), ED_NOT_FOUND, "nobody");
    assert_fails(ed_model_inputs(ed_layer_dense(2)), ED_INVALID_ARGUMENT, "made by ed_model");
    ed_tensor *twice = ed_forward(ed_layer_dense(2, .name = "same"), x);
    assert_fails(ed_model(x, ed_forward(ed_layer_dense(2, .name = "same"), twice)),
                 ED_INVALID_ARGUMENT, "two layers are named same");
}

/* A layer of many inputs does not make every row of the table as wide as all their names. */
static void wide_models(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { INPUTS = 100 };
    ed_tensor *x = ed_input(ED_SHAPE(2)), *many[INPUTS];
    for (int i = 0; i < INPUTS; i++) many[i] = ed_neg(x);
    ed_layer *model = ed_model(x, ed_concat(ed_list_make(many, INPUTS), .axis = 1));
    const char *table = ed_model_summary(model);
    assert_fine();
    assert_non_null(strstr(table, "[0][0], and 68 more"));
    assert_true(strlen(table) < 102 * 2 * 3 * 500);
}

static void *make_chain(void *unused)
{
    (void)unused;
    ED_SCOPE;
    ed_tensor *h = ed_retain(ed_input(ED_SHAPE(1)));
    for (int i = 0; i < 30000 && h; i++) {
        ED_SCOPE;
        ed_tensor *next = ed_retain(ed_neg(h));
        ed_release(h);
        h = next;
    }
    ed_release(h);
    return ed_failed() ? NULL : h;
}

/* The release of a long chain takes no more stack than that of a short one. */
static void long_chains(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_attr_t small;
    void *made = NULL;
    const int64_t tensors = ed_memory_stats().live_tensors;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 512 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &small, make_chain, NULL), 0);
    assert_int_equal(pthread_join(thread, &made), 0);
    pthread_attr_destroy(&small);
    assert_non_null(made);
    assert_int_equal(ed_memory_stats().live_tensors, tensors);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shapes),      cmocka_unit_test(computes),
    cmocka_unit_test(trains),      cmocka_unit_test(shares),
    cmocka_unit_test(outlives),    cmocka_unit_test(masks_and_training),
    cmocka_unit_test(fits),        cmocka_unit_test(looks),
    cmocka_unit_test(refuses),     cmocka_unit_test(wide_models),
    cmocka_unit_test(long_chains),
};

int main(void)
{
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
