/* What all layers have: names, children, lists of variables, refusals; and layers of one's own. */
#include "tests/ramps.h"
#include <math.h>

static const char *variable_names(const ed_list *list)
{
    static char names[1024];
    names[0] = 0;
    for (int64_t i = 0; i < ed_list_size(list); i++) {
        strcat(names, i ? " " : "");
        strcat(names, ed_variable_name(ed_list_get(list, i)));
    }
    return names;
}

/* ---- The tree -------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *inner =
        ed_layer_sequential("block", ed_layer_dense(4), ed_layer_dense(3, .name = "last"));
    ed_layer *model = ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(5),
                                          ed_layer_dropout(0.5), ed_layer_dense(5), inner,
                                          ed_layer_dense(2, .name = "dense_2"), ed_layer_dense(2));
    assert_non_null(ed_forward(model, ramp(ED_SHAPE(2, 3, 2))));
    assert_string_equal(
        variable_names(ed_layer_variables(model)),
        "mlp/dense/kernel mlp/dense/bias mlp/dense_1/kernel mlp/dense_1/bias "
        "mlp/block/dense/kernel mlp/block/dense/bias mlp/block/last/kernel mlp/block/last/bias "
        "mlp/dense_2/kernel mlp/dense_2/bias mlp/dense_3/kernel mlp/dense_3/bias");
    assert_int_equal(ed_layer_child_count(model), 7);
    assert_string_equal(ed_layer_name(ed_layer_child(model, 3)), "dense_1");
    assert_ptr_equal(ed_layer_child(model, -3), inner);
    assert_ptr_equal(ed_layer_find_child(ed_layer_find_child(model, "block"), "last"),
                     ed_layer_child(inner, 1));
    ed_layer *alone = ed_layer_dense(1);
    assert_non_null(ed_forward(alone, ramp(ED_SHAPE(1, 2))));
    assert_string_equal(variable_names(ed_layer_variables(alone)), "dense/kernel dense/bias");
    assert_string_equal(ed_layer_name(ed_layer_sequential(NULL, alone)), "sequential");
    assert_fine();
}

static bool add_two_and_fail(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    ed_layer_add_child(layer, ed_layer_dense(1));
    ed_layer_add_child(layer, ed_layer_dense(1));
    return false;
}

static bool pass(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return ed_layer_return(call, call->inputs[0]);
}

static void assert_child(ed_layer *layer, int64_t i, const char *name)
{
    assert_string_equal(ed_layer_name(ed_layer_child(layer, i)), name);
    assert_ptr_equal(ed_layer_find_child(layer, name), ed_layer_child(layer, i));
}

/* The first free number, whether those below were given by the user or not. */
static void test_automatic_names(void **state)
{
    (void)state;
    ED_SCOPE;
    static const struct {
        const char *given, *expected;
    } children[] = {
        {"dense_2", "dense_2"},     {NULL, "dense"},          {NULL, "dense_1"},
        {NULL, "dense_3"},          {"dense_04", "dense_04"}, {"dense_6", "dense_6"},
        {NULL, "dense_4"},          {NULL, "dense_5"},        {NULL, "dense_7"},
        {"dense_1_1", "dense_1_1"}, {NULL, "dense_8"},
    };
    const int64_t n = sizeof children / sizeof *children;
    ed_layer *model = ed_layer_sequential("m");
    for (int64_t i = 0; i < n; i++)
        ed_layer_add_child(model, ed_layer_dense(1, .name = children[i].given));
    for (int64_t i = 0; i < n; i++) assert_child(model, i, children[i].expected);
    assert_null(ed_layer_add_child(model, ed_layer_dense(1, .name = "dense_7")));
    assert_error("two layers are named dense_7");
    /* A name that another kind's layers count from. */
    ed_layer *mixed = ed_layer_sequential("mixed", ed_layer_flatten(.name = "dense"),
                                          ed_layer_dense(1), ed_layer_flatten());
    assert_child(mixed, 0, "dense");
    assert_child(mixed, 1, "dense_1");
    assert_child(mixed, 2, "flatten");
    assert_fine();
}

/* Removed children give their numbers back. */
static void test_names_after_failed_build(void **state)
{
    (void)state;
    ED_SCOPE;
    static const ed_layer_class class = {
        .kind.name = "fails", .build = add_two_and_fail, .forward = pass};
    ed_layer *layer = ed_layer_new(&class, NULL);
    ed_layer_add_child(layer, ed_layer_dense(1));
    for (int i = 0; i < 2; i++) {
        assert_null(ed_forward(layer, ramp(ED_SHAPE(1, 2))));
        assert_error("fails: build failed without an error");
        assert_null(ed_layer_find_child(layer, "dense_1"));
        assert_error("there is no child named dense_1");
    }
    for (int i = 0; i < 9; i++) ed_layer_add_child(layer, ed_layer_dense(1));
    assert_child(layer, 0, "dense");
    assert_child(layer, 1, "dense_1");
    assert_child(layer, 9, "dense_9");
    assert_fine();
}

static void test_tree_refusals(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *child = ed_layer_dense(3), *model = ed_layer_sequential("a", child),
             *empty = ed_layer_sequential("b");
    assert_null(ed_layer_sequential("other", child));
    assert_error("other: the layer dense already belongs to a");
    assert_null(ed_layer_add_child(model, child));
    assert_error("already belongs to a");
    ed_layer *outer = ed_layer_sequential("outer", model);
    assert_null(ed_layer_add_child(child, outer));
    assert_error("outer/a/dense: the layer outer can't be its own child");
    assert_null(ed_layer_add_child(empty, empty));
    assert_error("its own child");
    assert_null(ed_layer_sequential("x", ed_layer_dense(1, .name = "same"),
                                    ed_layer_dense(1, .name = "same")));
    assert_error("two layers are named same");
    assert_null(ed_layer_dense(1, .name = "a/b"));
    assert_error("contain '/'");
    assert_null(ed_layer_sequential("", ed_layer_flatten()));
    assert_error("invalid name");
    assert_null(ed_layer_child(model, 1));
    assert_error("a: child 1 is out of bounds: there are 1");
    assert_null(ed_layer_find_child(model, "none"));
    assert_error("there is no child named none");
    assert_null(ed_layer_variables(model));
    assert_error("outer/a: the layer has no variables before its first ed_forward");
    /* A sequential that failed has let its layers go. */
    ed_layer *free_layer = ed_layer_flatten();
    assert_null(ed_layer_sequential("x", free_layer, child));
    ed_clear_error();
    assert_non_null(ed_layer_sequential("x", free_layer));
    assert_fine();
}

static void test_null(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *layer = ed_layer_dense(2);
    ed_tensor *x = ramp(ED_SHAPE(1, 2));
    const ed_layer_class nothing = {.kind.name = "nothing"};
#define NULL_IS_REFUSED(call)                                                                      \
    do {                                                                                           \
        assert_true(!(call));                                                                      \
        assert_true(ed_failed());                                                                  \
        ed_clear_error();                                                                          \
    } while (0)
    NULL_IS_REFUSED(ed_forward(NULL, x));
    NULL_IS_REFUSED(ed_forward(layer, NULL));
    NULL_IS_REFUSED(ed_layer_variables(NULL));
    NULL_IS_REFUSED(ed_layer_trainable_variables(NULL));
    NULL_IS_REFUSED(ed_layer_non_trainable_variables(NULL));
    NULL_IS_REFUSED(ed_layer_name(NULL));
    NULL_IS_REFUSED(ed_layer_child_count(NULL));
    NULL_IS_REFUSED(ed_layer_child(NULL, 0));
    NULL_IS_REFUSED(ed_layer_find_child(NULL, "a"));
    NULL_IS_REFUSED(ed_layer_find_child(layer, NULL));
    NULL_IS_REFUSED(ed_model_summary(NULL));
    NULL_IS_REFUSED(ed_model_to_dot(NULL));
    NULL_IS_REFUSED(ed_layer_new(NULL, NULL));
    NULL_IS_REFUSED(ed_layer_new(&nothing, NULL));
    NULL_IS_REFUSED(ed_layer_state(NULL));
    NULL_IS_REFUSED(ed_layer_add_child(NULL, layer));
    NULL_IS_REFUSED(ed_layer_add_child(layer, NULL));
    NULL_IS_REFUSED(ed_layer_add_weight(NULL, "w", ED_SHAPE(1)));
    NULL_IS_REFUSED(ed_layer_add_weight(layer, NULL, ED_SHAPE(1)));
    NULL_IS_REFUSED(ed_layer_adopt_weight(NULL, "w", ed_variable(1)));
    NULL_IS_REFUSED(ed_layer_adopt_weight(layer, NULL, ed_variable(1)));
    NULL_IS_REFUSED(ed_layer_adopt_weight(layer, "w", NULL));
    NULL_IS_REFUSED(ed_layer_sequential("x", layer, NULL));
    NULL_IS_REFUSED(ed_layer_sequential_of("x", NULL, 1));
    NULL_IS_REFUSED(ed_activate(NULL, "relu"));
    NULL_IS_REFUSED(ed_metric_update(NULL, x));
    NULL_IS_REFUSED(ed_metric_compare(NULL, x, x));
    NULL_IS_REFUSED(ed_metric_reset(NULL));
    ed_metric *mean = ed_metric_mean(), *accuracy = ed_metric_accuracy();
    NULL_IS_REFUSED(ed_metric_update(mean, NULL));
    NULL_IS_REFUSED(ed_metric_compare(accuracy, NULL, x));
    NULL_IS_REFUSED(ed_metric_compare(accuracy, x, NULL));
    assert_true(isnan(ed_metric_result(NULL)));
    ed_clear_error();
    /* The plain functions take no options as the defaults. */
    assert_non_null(ed_forward_with(ed_layer_dense(1), x, NULL));
    assert_non_null(ed_layer_max_pooling2d_with(NULL));
    assert_non_null(ed_layer_global_average_pooling2d_with(NULL));
    assert_non_null(ed_layer_batch_normalization_with(NULL));
    assert_non_null(ed_layer_flatten_with(NULL));
    assert_non_null(ed_layer_dropout_with(NULL));
    assert_non_null(ed_layer_activation_with(NULL));
    assert_non_null(ed_layer_add_weight_with(layer, "w", ED_SHAPE(1), NULL));
    assert_fine();
}

static void refuse_input(ed_layer *layer, ed_tensor *x, const char *why)
{
    assert_null(ed_forward(layer, x, .training = true));
    assert_error(why);
}

static void test_wrong_inputs(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *model =
        ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(5), ed_layer_dense(2));
    refuse_input(model, ramp(ED_SHAPE()),
                 "mlp/flatten: the input must have rank >= 1, got float32[]");
    assert_non_null(ed_forward(model, ramp(ED_SHAPE(2, 6))));
    refuse_input(
        model, ramp(ED_SHAPE(2, 7)),
        "mlp/dense: the size of the input's last axis must be 6, as when the layer was built; got "
        "float32[2, 7]");
    refuse_input(model, ed_cast(ramp(ED_SHAPE(2, 6)), ED_INT32),
                 "mlp/dense: the input must be float32 or float64, got int32[2, 6]");
    refuse_input(model, ed_cast(ramp(ED_SHAPE(2, 6)), ED_FLOAT64), "float64");
    refuse_input(ed_layer_dense(3), ramp(ED_SHAPE(6)),
                 "dense: the input must have rank >= 2, got float32[6]");
    ed_layer *conv = ed_layer_conv2d(2, ED_INTS(2, 2));
    refuse_input(conv, ramp(ED_SHAPE(2, 3, 3)),
                 "conv2d: the input must have rank 4, got float32[2, 3, 3]");
    assert_non_null(ed_forward(conv, ramp(ED_SHAPE(1, 3, 3, 2))));
    refuse_input(conv, ramp(ED_SHAPE(1, 3, 3, 1)), "last axis must be 2");
    refuse_input(ed_layer_max_pooling2d(), ramp(ED_SHAPE(3)),
                 "max_pooling2d: the input must have rank 4, got float32[3]");
    refuse_input(ed_layer_global_average_pooling2d(), ramp(ED_SHAPE(3)),
                 "global_average_pooling2d: the input");
    refuse_input(ed_layer_batch_normalization(), ramp(ED_SHAPE(3)),
                 "batch_normalization: the input");
    refuse_input(ed_layer_dropout(0.5), ed_cast(ramp(ED_SHAPE(3)), ED_INT32),
                 "dropout: the input must be float32 or float64, got int32[3]");
}

static void test_wrong_options(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_null(ed_layer_dense(0));
    assert_error("dense: units must be at least 1, got 0");
    assert_null(ed_layer_dense(1, .activation = "rellu"));
    assert_error("dense: there is no activation 'rellu'");
    assert_null(ed_layer_activation("none"));
    assert_error("'none'");
    assert_null(ed_activate(ramp(ED_SHAPE(1)), "none"));
    assert_error("'none'; the activations are linear, relu, relu6");
    assert_null(ed_activate(ramp(ED_SHAPE(1)), "relu7"));
    assert_error("softmax, log_softmax, sparsemax, glu");
    assert_null(ed_layer_conv2d(0, ED_INTS(1, 1)));
    assert_error("filters must be at least 1, got 0");
    assert_null(ed_layer_conv2d(1, ED_INTS(1, 1, 1)));
    assert_error("kernel_size must be one integer >= 1, or two, [height, width]; got [1, 1, 1]");
    assert_null(ed_layer_conv2d(1, (ed_ints){0}));
    assert_error("kernel_size is not given");
    assert_null(ed_layer_conv2d(1, ED_INTS(1, 1), .strides = ED_INTS(0, 1)));
    assert_error("strides must be at least 1, got 0");
    assert_null(ed_layer_conv2d(1, ED_INTS(1, 1), .padding = "same"));
    assert_error("padding must be one of \"VALID\", \"SAME\", got \"same\"");
    assert_null(ed_layer_max_pooling2d(.pool_size = ED_INTS(2, -1)));
    assert_error("pool_size must be at least 1, got -1");
    assert_null(ed_layer_dropout(1));
    assert_error("rate must be in [0, 1), got 1");
    assert_null(ed_layer_dropout(NAN));
    assert_error("rate");
    assert_null(ed_layer_batch_normalization(.momentum = 2));
    assert_error("momentum must be in [0, 1], got 2");
    assert_null(ed_layer_batch_normalization(.epsilon = -1));
    assert_error("epsilon must be in [0, 1e+30), got -1");
}

static void test_lists(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *model = ed_layer_sequential("m", ed_layer_dense(3), ed_layer_batch_normalization());
    assert_non_null(ed_forward(model, ramp(ED_SHAPE(2, 3))));
    ed_list *trainable = ed_layer_trainable_variables(model);
    assert_string_equal(variable_names(trainable),
                        "m/dense/kernel m/dense/bias m/batch_normalization/gamma "
                        "m/batch_normalization/beta");
    assert_string_equal(variable_names(ed_layer_non_trainable_variables(model)),
                        "m/batch_normalization/moving_mean m/batch_normalization/moving_variance");
    assert_ptr_equal(ed_layer_trainable_variables(model), trainable);
    assert_true(ed_variable_set_trainable(ed_list_get(trainable, 0), false));
    assert_int_equal(ed_list_size(ed_layer_trainable_variables(model)), 3);
    assert_int_equal(ed_list_size(ed_layer_non_trainable_variables(model)), 3);
    assert_int_equal(ed_list_size(trainable), 4);
    ed_variable_set_trainable(ed_list_get(trainable, 0), true);
    assert_int_equal(ed_list_size(ed_layer_trainable_variables(model)), 4);
    ed_layer *late = ed_layer_dense(1);
    assert_non_null(ed_layer_add_child(ed_layer_child(model, 0), late));
    assert_non_null(ed_forward(late, ramp(ED_SHAPE(1, 2))));
    assert_int_equal(ed_list_size(ed_layer_variables(model)), 8);
    assert_string_equal(ed_variable_name(ed_list_get(ed_layer_variables(model), 2)),
                        "m/dense/dense/kernel");
    assert_fine();
}

/* ---- A layer of one's own -------------------------------------------------------------------- */

/* x + scale inner(x), with a child that is made in build, a weight, a counter in the state, and a
 * build that can be made to fail. */
typedef struct residual {
    ed_layer *inner;
    ed_tensor *scale;
    int *destroyed;
    int calls, training_calls;
    bool broken;
} residual;

static bool clash_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return ed_layer_return(call, ed_add(call->inputs[0], ed_zeros(ED_SHAPE(7))));
}

/* What goes wrong in an op tells the layer; the innermost one. */
static void test_blame(void **state)
{
    (void)state;
    ED_SCOPE;
    static const ed_layer_class clash = {.kind.name = "clash", .forward = clash_forward};
    ed_layer *model =
        ed_layer_sequential("net", ed_layer_sequential("block", ed_layer_new(&clash, NULL)));
    assert_null(ed_forward(model, ramp(ED_SHAPE(2, 3))));
    assert_non_null(strstr(ed_error(), "add: "));
    assert_null(strstr(strstr(ed_error(), "in the layer") + 1, "in the layer"));
    assert_error(" (in the layer net/block/clash)");
}

static bool residual_build(ed_layer *layer, const ed_layer_call *call)
{
    residual *r = ed_layer_state(layer);
    r->inner = ed_layer_add_child(layer, ed_layer_dense(ed_dim(call->inputs[0], -1)));
    r->scale = ed_layer_add_weight(layer, "scale", ED_SHAPE(),
                                   .initializer = ed_initializer_constant(0.5));
    if (!ed_layer_add_weight(layer, "steps", ED_SHAPE(1), .initializer = ed_initializer_zeros(),
                             .trainable = false))
        return false;
    return r->broken ? ed_fail(ED_INVALID_ARGUMENT, "residual: broken") != NULL : true;
}

static bool residual_forward(ed_layer *layer, ed_layer_call *call)
{
    residual *r = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    r->calls++;
    r->training_calls += call->training;
    ed_tensor *inner = ed_forward(r->inner, x, .training = call->training);
    return ed_layer_return(call, ed_add(x, ed_mul(r->scale, inner)));
}

static void residual_destroy(ed_layer *layer)
{
    residual *r = ed_layer_state(layer);
    if (r->destroyed) ++*r->destroyed;
}

static const ed_layer_class residual_class = {.kind.name = "residual",
                                              .state_size = sizeof(residual),
                                              .build = residual_build,
                                              .forward = residual_forward,
                                              .destroy = residual_destroy};

static void test_own_layer(void **state)
{
    (void)state;
    int destroyed = 0;
    {
        ED_SCOPE;
        ed_layer *own = ed_layer_new(&residual_class, NULL),
                 *model = ed_layer_sequential("net", ed_layer_flatten(), own, ed_layer_dense(1));
        residual *r = ed_layer_state(own);
        r->destroyed = &destroyed;
        r->broken = true;
        ed_tensor *x = ramp(ED_SHAPE(2, 3));
        for (int i = 0; i < 2; i++) {
            assert_null(ed_forward(model, x));
            assert_error("residual: broken");
            assert_int_equal(ed_layer_child_count(own), 0);
            assert_null(ed_layer_variables(own));
            assert_error("net/residual");
        }
        r->broken = false;
        ed_tensor *y = ed_forward(model, x, .training = true);
        assert_non_null(y);
        assert_non_null(ed_forward(model, x));
        assert_int_equal(r->calls, 2);
        assert_int_equal(r->training_calls, 1);
        assert_string_equal(variable_names(ed_layer_variables(model)),
                            "net/residual/scale net/residual/steps net/residual/dense/kernel "
                            "net/residual/dense/bias net/dense/kernel net/dense/bias");
        assert_int_equal(ed_list_size(ed_layer_trainable_variables(model)), 5);
        assert_null(ed_layer_add_weight(own, "scale", ED_SHAPE(1)));
        assert_error("net/residual/scale: the layer already has a weight of this name");
        assert_null(ed_layer_add_weight(own, "a/b", ED_SHAPE(1)));
        assert_error("invalid name");
        assert_null(ed_layer_add_weight(own, "n", ED_SHAPE(-1)));
        assert_error("negative dimension");
        assert_null(ed_layer_add_weight(own, "n", ED_SHAPE(1), .dtype = ED_INT32));
        assert_error("float32 or float64");
        assert_null(ed_layer_add_weight(own, "n", ED_SHAPE(1), .initializer = (void *)x));
        assert_error("initializer must be an initializer, got a tensor");
        ed_tensor *by_hand =
            ed_add(x, ed_mul(0.5, ed_linear(x, ed_list_get(ed_layer_variables(own), 2),
                                            ed_list_get(ed_layer_variables(own), 3), NULL)));
        ed_tensor *out = ed_forward(own, x);
        for (int i = 0; i < 6; i++) assert_true(element(out, i) == element(by_hand, i));
        assert_fine();
    }
    assert_int_equal(destroyed, 1);
}

/* A variable that was made before becomes a weight: it is listed, and learns its path. */
static void test_adopted(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *own = ed_layer_new(&residual_class, NULL);
    ed_tensor *v = ed_variable(ed_ones(ED_SHAPE(2)), .name = "mine");
    assert_ptr_equal(ed_layer_adopt_weight(own, "v", v), v);
    assert_string_equal(ed_variable_name(v), "residual/v");
    assert_int_equal(ed_list_size(ed_layer_variables(own)), 1);
    ed_layer *model = ed_layer_sequential("net", own);
    assert_non_null(ed_forward(model, ramp(ED_SHAPE(2, 3))));
    assert_string_equal(ed_variable_name(v), "net/residual/v");
    assert_int_equal(ed_list_size(ed_layer_trainable_variables(model)), 4);
    assert_null(ed_layer_adopt_weight(own, "v", ed_variable(ed_ones(ED_SHAPE(2)))));
    assert_error("net/residual/v: the layer already has a weight of this name");
    assert_null(ed_layer_adopt_weight(own, "w", ed_ones(ED_SHAPE(2))));
    assert_error("the weight w must be a variable");
    assert_null(ed_layer_adopt_weight(ed_layer_new(&residual_class, NULL), "w", v));
    assert_error("the variable net/residual/v is another layer's weight");
}

/* ---- Many inputs and outputs, masks ---------------------------------------------------------- */

/* (x, state) -> (y, new state), the second output masked; the first layer call sees both shapes. */
static bool cell_build(ed_layer *layer, const ed_layer_call *call)
{
    return ed_layer_add_weight(layer, "kernel",
                               ED_SHAPE(ed_dim(call->inputs[0], -1), ed_dim(call->inputs[1], -1)));
}

static bool cell_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *kernel = ed_list_get(ed_layer_variables(layer), 0);
    ed_tensor *state = ed_tanh(ed_add(ed_matmul(call->inputs[0], kernel), call->inputs[1]));
    return ed_layer_return(call, ed_mul(state, 2)) && ed_layer_return(call, state) &&
           (!call->masks[1] || ed_layer_return_mask(call, 1, call->masks[1]));
}

static const ed_layer_class cell_class = {.kind.name = "cell",
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .passes_masks = true,
                                          .build = cell_build,
                                          .forward = cell_forward};

/* The sum of all inputs, any number of them, as outputs: it and as many copies. */
static bool fan_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    ed_tensor *sum = call->inputs[0];
    for (int i = 1; i < call->n_inputs; i++) sum = ed_add(sum, call->inputs[i]);
    for (int i = 0; i < call->n_inputs; i++)
        if (!ed_layer_return(call, sum)) return false;
    return true;
}

static void test_many_inputs(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *cell = ed_layer_new(&cell_class, NULL);
    ed_tensor *x = ramp(ED_SHAPE(2, 3)), *s = ramp(ED_SHAPE(2, 4)), *mask;
    ed_list *masks;
    ed_list *outputs = ed_forward(cell, ed_list_of(x, s));
    assert_int_equal(ed_list_size(outputs), 2);
    assert_int_equal(ed_dim(ed_list_get(outputs, 1), -1), 4);
    assert_int_equal(ed_list_size(ed_layer_variables(cell)), 1);
    mask = ed_greater(ed_ones(ED_SHAPE(2)), 0);
    assert_non_null(ed_forward(cell, ed_list_of(x, s), .mask = mask, .output_masks = &masks));
    assert_ptr_equal(ed_list_get(masks, 0), mask);
    assert_null(ed_list_get(masks, 1));
    assert_fine();
    assert_null(ed_forward(cell, x));
    assert_error("cell: got 1 inputs, expected 2");
    assert_null(ed_forward_one(cell, ed_list_of(x, s)));
    assert_error("cell: the layer has 2 outputs");
    assert_null(ed_forward(cell, ed_list_of(x, s), .masks = ed_list_of(mask)));
    assert_error("got 1 masks for 2 inputs");
    assert_null(ed_forward(cell, x, .masks = ed_list_of(mask, mask)));
    assert_error("got 2 masks for 1 inputs");
    /* Sequential hands all outputs on, and masks. */
    static const ed_layer_class fan = {
        .kind.name = "fan", .max_inputs = -1, .forward = fan_forward, .passes_masks = true};
    ed_layer *net = ed_layer_sequential("net", ed_layer_new(&cell_class, NULL),
                                        ed_layer_new(&cell_class, NULL), ed_layer_new(&fan, NULL));
    outputs =
        ed_forward(net, ed_list_of(ramp(ED_SHAPE(2, 4)), s), .mask = mask, .output_masks = &masks);
    assert_int_equal(ed_list_size(outputs), 2);
    assert_ptr_equal(ed_list_get(masks, 0), mask);
    ed_tensor *many[40];
    for (int i = 0; i < 40; i++) many[i] = x;
    ed_layer *wide =
        ed_layer_sequential("wide", ed_layer_new(&fan, NULL), ed_layer_new(&fan, NULL));
    outputs = ed_forward(wide, ed_list_make(many, 40));
    assert_int_equal(ed_list_size(outputs), 40);
    assert_true(element(ed_list_get(outputs, 39), 1) == 1600 * element(x, 1));
    assert_fine();
}

typedef struct gated {
    ed_layer *values, *gate;
    int inits;
} gated;

static bool gated_init(ed_layer *layer)
{
    gated *g = ed_layer_state(layer);
    g->inits++;
    g->values = ed_layer_add_child(layer, ed_layer_dense(3, .name = "values"));
    g->gate = ed_layer_add_child(layer, ed_layer_dense(3, .activation = "sigmoid"));
    return g->values && g->gate;
}

static bool gated_forward(ed_layer *layer, ed_layer_call *call)
{
    const gated *g = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    return ed_layer_return(call, ed_mul(ed_forward(g->values, x), ed_forward(g->gate, x)));
}

static bool init_fails(ed_layer *layer)
{
    return ed_layer_add_child(layer, ed_layer_dense(1)) && false;
}

static bool init_goes_on(ed_layer *layer)
{
    ed_layer_add_child(layer, ed_layer_dense(0));
    return true;
}

static void test_init(void **state)
{
    (void)state;
    static const ed_layer_class class = {.kind.name = "gated",
                                         .state_size = sizeof(gated),
                                         .init = gated_init,
                                         .forward = gated_forward},
                                bad = {.kind.name = "bad", .init = init_fails, .forward = pass},
                                hasty = {
                                    .kind.name = "hasty", .init = init_goes_on, .forward = pass};
    ED_SCOPE;
    ed_layer *layer = ed_layer_new(&class, "own");
    assert_int_equal(ed_layer_child_count(layer), 2);
    assert_non_null(ed_forward(layer, ramp(ED_SHAPE(2, 4))));
    assert_non_null(ed_forward(layer, ramp(ED_SHAPE(2, 4))));
    assert_int_equal(((const gated *)ed_layer_state(layer))->inits, 1);
    assert_string_equal(variable_names(ed_layer_variables(layer)),
                        "own/values/kernel own/values/bias own/dense/kernel own/dense/bias");
    assert_fine();
    assert_null(ed_layer_new(&bad, NULL));
    assert_error("bad: init failed without an error");
    assert_null(ed_layer_new(&hasty, NULL));
    assert_error("units must be at least 1");
}

/*
 * Making a model, its first forward and a training step, allocation n failing: an error, or the
 * step is made; and a second try succeeds on what the first one left. Nothing is lost either way.
 */
static bool disturbed(int64_t n)
{
    ED_SCOPE;
    ed_tensor *x = ramp(ED_SHAPE(4, 3, 1)), *y = ramp(ED_SHAPE(4, 2));
    assert_fine();
    ed_memory_fail_at(n, false);
    ed_layer *model =
        ed_layer_sequential("m", ed_layer_flatten(), ed_layer_dense(8, .activation = "relu"),
                            ed_layer_batch_normalization(), ed_layer_dropout(0.3),
                            ed_layer_new(&residual_class, NULL), ed_layer_dense(2));
    ed_optimizer *o = ed_optimizer_adam(.clipnorm = 1);
    step(model, o, x, y);
    bool happened = ed_memory_has_failed(), failed = ed_failed();
    ed_memory_fail_at(-1, false);
    assert_true(happened == failed);
    ed_clear_error();
    if (failed && model && o) {
        assert_true(ed_optimizer_iterations(o) == 0);
        step(model, o, x, y);
        assert_fine();
        assert_int_equal(ed_optimizer_iterations(o), 1);
        assert_int_equal(ed_list_size(ed_layer_trainable_variables(model)), 9);
    }
    return !failed;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    assert_true(disturbances(disturbed) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_automatic_names),
        cmocka_unit_test(test_names_after_failed_build),
        cmocka_unit_test(test_tree_refusals),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_own_layer),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_many_inputs),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
