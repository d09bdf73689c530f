/*
 * Names in checkpoints of Keras 3, as tf.train.Checkpoint wrote them: objects with those names
 * stand for Keras' here. tests/interop/kinds.py does the same with Keras itself, for every kind.
 */
#include "tests/folders.h"
#include "tests/program.h"

/* ---- Objects with given names ---------------------------------------------------------------- */

enum { MOST = 32 };

typedef struct tree {
    int n;
    const char *names[MOST]; /* up to the first '/' */
    void *objects[MOST];
    struct tree *below[MOST]; /* of objects[i]; NULL: something else */
} tree;

static void tree_track(void *self, ed_tracker *t)
{
    const tree *all = self;
    for (int i = 0; i < all->n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(all->names[i], "/"), all->names[i]);
        ed_track(t, name, all->objects[i]);
    }
}

static const ed_trackable_class tree_class = {"tree", tree_track, free};

static tree *tree_new(ed_trackable **object)
{
    tree *t = calloc(1, sizeof *t);
    assert_non_null(t);
    *object = ed_trackable_new(&tree_class, t);
    assert_fine();
    return t;
}

/* Puts the object at a path "layer/kernel", whose text must live as long as the tree. */
static void tree_put(tree *t, const char *path, void *object)
{
    const size_t length = strcspn(path, "/");
    int i = 0;
    while (i < t->n && (strncmp(t->names[i], path, length + 1) != 0 || !t->below[i])) i++;
    assert_true(i < MOST);
    if (i == t->n) {
        t->names[t->n++] = path;
        if (!path[length])
            t->objects[i] = object;
        else
            t->below[i] = tree_new((ed_trackable **)&t->objects[i]);
    }
    if (path[length]) tree_put(t->below[i], path + length + 1, object);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

typedef struct layer_case {
    const char *layer; /* kind and options as JSON */
    int rank;          /* of the input */
    int64_t shape[5];
    int64_t below; /* the input is integers below this; 0: floats */
    int n_inputs;
    const char *names[10]; /* in Keras, in the order of the layer's variables */
} layer_case;

#define KIND(kind, config)                                                                         \
    "{\"module\": \"layer\", \"class_name\": \"" kind "\", \"config\": {" config "}}"
#define CELL        "cell/kernel", "cell/recurrent_kernel", "cell/bias"
#define DENSE(name) name "/_kernel", name "/bias"
#define BELOW(name) name "/cell/kernel", name "/cell/recurrent_kernel", name "/cell/bias"
#define HEADS                                                                                      \
    DENSE("_query_dense"), DENSE("_key_dense"), DENSE("_value_dense"), DENSE("_output_dense")
#define NUMBER(n, name) "_functional/_operations/" #n "/" name

static const layer_case layer_cases[] = {
    {KIND("dense", "\"units\": 3"), 2, {2, 4}, 0, 1, {"_kernel", "bias"}},
    {KIND("embedding", "\"input_dim\": 5, \"output_dim\": 2"), 2, {2, 3}, 5, 1, {"_embeddings"}},
    {KIND("einsum_dense",
          "\"equation\": \"ab,bc->ac\", \"output_shape\": [3], \"bias_axes\": \"c\""),
     2,
     {2, 4},
     0,
     1,
     {"_kernel", "bias"}},
    {KIND("conv1d", "\"filters\": 3, \"kernel_size\": [3]"),
     3,
     {2, 6, 2},
     0,
     1,
     {"_kernel", "bias"}},
    {KIND("conv2d_transpose", "\"filters\": 3, \"kernel_size\": [3, 3]"),
     4,
     {1, 3, 2, 2},
     0,
     1,
     {"kernel", "bias"}},
    {KIND("depthwise_conv1d", "\"kernel_size\": [3]"), 3, {2, 5, 2}, 0, 1, {"kernel", "bias"}},
    {KIND("separable_conv2d", "\"filters\": 3, \"kernel_size\": [3, 3]"),
     4,
     {1, 4, 5, 2},
     0,
     1,
     {"depthwise_kernel", "pointwise_kernel", "bias"}},
    {KIND("batch_normalization", ""),
     2,
     {4, 3},
     0,
     1,
     {"gamma", "beta", "moving_mean", "moving_variance"}},
    {KIND("layer_normalization", ""), 2, {3, 4}, 0, 1, {"gamma", "beta"}},
    {KIND("rms_normalization", ""), 2, {3, 4}, 0, 1, {"scale"}},
    {KIND("prelu", ""), 2, {3, 5}, 0, 1, {"alpha"}},
    {KIND("attention", "\"use_scale\": true, \"score_mode\": \"concat\""),
     3,
     {2, 3, 4},
     0,
     2,
     {"scale", "concat_score_weight"}},
    {KIND("additive_attention", ""), 3, {2, 3, 4}, 0, 2, {"scale"}},
    {KIND("multi_head_attention", "\"num_heads\": 2, \"key_dim\": 3"), 3, {2, 3, 4}, 0, 2, {HEADS}},
    {KIND("group_query_attention",
          "\"head_dim\": 3, \"num_query_heads\": 4, \"num_key_value_heads\": 2"),
     3,
     {2, 3, 4},
     0,
     2,
     {HEADS}},
    {KIND("lstm", "\"units\": 2"), 3, {2, 3, 4}, 0, 1, {CELL}},
    {KIND("conv_lstm1d", "\"filters\": 2, \"kernel_size\": [2]"), 4, {2, 3, 5, 2}, 0, 1, {CELL}},
    {KIND("rnn", "\"cell\": " KIND("gru_cell", "\"units\": 2")), 3, {2, 3, 4}, 0, 1, {CELL}},
    {KIND("bidirectional", "\"layer\": " KIND("gru", "\"units\": 2")),
     3,
     {2, 3, 4},
     0,
     1,
     {BELOW("forward_layer"), BELOW("backward_layer")}},
    {KIND("time_distributed", "\"layer\": " KIND("dense", "\"units\": 2")),
     3,
     {2, 3, 4},
     0,
     1,
     {DENSE("layer")}},
    {KIND("spectral_normalization", "\"layer\": " KIND("dense", "\"units\": 2")),
     2,
     {3, 4},
     0,
     1,
     {"vector_u", DENSE("layer")}},
    {KIND("sequential", "\"layers\": [" KIND("dense", "\"units\": 2") ", " KIND(
                            "flatten", "") ", " KIND("batch_normalization", "") "]"),
     2,
     {3, 4},
     0,
     1,
     {NUMBER(1, "_kernel"), NUMBER(1, "bias"), NUMBER(3, "gamma"), NUMBER(3, "beta"),
      NUMBER(3, "moving_mean"), NUMBER(3, "moving_variance")}},
};

/* A new layer of the case, called once if `built`. */
static ed_layer *layer_of(const layer_case *c)
{
    ed_layer *layer = ed_from_json(c->layer);
    if (!layer) fail_msg("%s: %s", c->layer, ed_error());
    return layer;
}

static ed_list *call(const layer_case *c, ed_layer *layer)
{
    const ed_ints shape = {c->shape, c->rank};
    ed_tensor *x = c->below ? ed_random_uniform(shape, .high = (double)c->below, .dtype = ED_INT32)
                            : ed_random_uniform(shape);
    ed_list *inputs = c->n_inputs == 1 ? ed_list_of(x) : ed_list_of(x, x);
    ed_forward(layer, inputs);
    if (ed_failed()) fail_msg("%s: %s", c->layer, ed_error());
    return ed_layer_variables(layer);
}

/* What stands for Keras' layer: variables under its names, with random values. */
static ed_trackable *keras_layer(const layer_case *c, ed_list *like, ed_tensor **variables)
{
    ed_trackable *object;
    tree *t = tree_new(&object);
    for (int64_t i = 0; i < ed_list_size(like); i++) {
        if (!c->names[i]) fail_msg("%s has more variables than names", c->layer);
        variables[i] = ed_variable(ed_random_normal(ed_shape(ed_list_get(like, i))));
        tree_put(t, c->names[i], variables[i]);
    }
    return object;
}

static void assert_same(const layer_case *c, ed_list *a, ed_tensor **b)
{
    for (int64_t i = 0; i < ed_list_size(a); i++)
        if (!ed_item(ed_reduce_all(ed_equal(ed_list_get(a, i), b[i]))) || ed_failed())
            fail_msg("%s: %s differs %s", c->layer, c->names[i], ed_error());
}

static void layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layer_cases / sizeof *layer_cases; i++) {
        ED_SCOPE;
        const layer_case *c = &layer_cases[i];
        ed_layer *built = layer_of(c), *waiting = layer_of(c);
        ed_list *variables = call(c, built);
        ed_tensor *theirs[10];
        ed_checkpoint *keras = ed_checkpoint("model", keras_layer(c, variables, theirs));
        ed_checkpoint_write(keras, in_folder("keras"));
        ed_restoration *first =
            ed_checkpoint_read(ed_checkpoint("model", built), in_folder("keras"));
        ed_restoration *second =
            ed_checkpoint_read(ed_checkpoint("model", waiting), in_folder("keras"));
        assert_same(c, variables, theirs);
        assert_same(c, call(c, waiting), theirs);
        ed_restoration_assert_consumed(first);
        ed_restoration_assert_consumed(second);

        ed_tensor *ours[10];
        ed_trackable *other = keras_layer(c, variables, ours);
        ed_checkpoint_write(ed_checkpoint("model", built), in_folder("eddy"));
        ed_restoration *third =
            ed_checkpoint_read(ed_checkpoint("model", other), in_folder("eddy"));
        assert_same(c, variables, ours);
        ed_restoration_assert_consumed(third);
        if (ed_failed()) fail_msg("%s: %s", c->layer, ed_error());
    }
}

/* ---- Adafactor and Muon ---------------------------------------------------------------------- */

/* Keras has their slots in _variables alone: the lists _r, momentums, ... are empty. In place of
 * the rows and columns of a vector there are scalars. */

static ed_tensor *filled(ed_ints shape, double value)
{
    return ed_variable(ed_full(shape, value));
}

static ed_list *trained(void)
{
    return ed_list_of(filled(ED_SHAPE(3, 2), 1), filled(ED_SHAPE(4), 2), filled(ED_SHAPE(2, 2), 3));
}

/* An optimizer of Keras after 5 steps; slots that are NULL are scalars. */
static ed_trackable *keras_optimizer(ed_list *variables, ed_tensor **slots, int n,
                                     const char *const *lists)
{
    static const char *const places[] = {"_variables/2", "_variables/3", "_variables/4",
                                         "_variables/5", "_variables/6", "_variables/7",
                                         "_variables/8", "_variables/9", "_variables/10"};
    static const char *const numbers[] = {"_trainable_variables/0", "_trainable_variables/1",
                                          "_trainable_variables/2"};
    ed_trackable *object;
    tree *t = tree_new(&object);
    ed_tensor *steps = ed_variable(ed_cast(ed_full(ED_SHAPE(), 5), ED_INT64));
    ed_tensor *rate = ed_variable(ed_full(ED_SHAPE(), 0.125));
    tree_put(t, "_iterations", steps);
    tree_put(t, "_learning_rate", rate);
    tree_put(t, "_variables/0", steps);
    tree_put(t, "_variables/1", rate);
    for (int i = 0; i < n; i++)
        tree_put(t, places[i],
                 slots[i] ? slots[i] : ed_variable(ed_zeros(ED_SHAPE(), .dtype = ED_INT32)));
    for (int i = 0; i < 3; i++) tree_put(t, numbers[i], ed_list_get(variables, i));
    for (int i = 0; lists[i]; i++) {
        ed_trackable *empty;
        tree_new(&empty);
        tree_put(t, lists[i], empty);
    }
    return object;
}

static void step(ed_optimizer *o, ed_list *variables)
{
    ed_tensor *gradients[3];
    for (int i = 0; i < 3; i++) gradients[i] = ed_mul(ed_list_get(variables, i), 0.25);
    ed_apply_gradients(o, ed_list_make(gradients, 3), variables);
    assert_fine();
}

/* The file's slots are restored whether the optimizer has some or makes them later, and written so
 * that Keras' object finds them. */
static void restores(ed_optimizer *made(void), ed_tensor **slots, int n, const char *const *lists)
{
    ed_list *x = trained(), *y = trained(), *z = trained();
    ed_optimizer *built = made(), *waiting = made();
    step(built, y);
    ed_checkpoint *keras = ed_checkpoint("v", x, "o", keras_optimizer(x, slots, n, lists));
    ed_checkpoint_write(keras, in_folder("keras"));
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("v", y, "o", built), in_folder("keras"));
    assert_fine();
    ed_list *got = ed_optimizer_variables(built);
    int64_t k = 0;
    for (int i = 0; i < n; i++)
        if (slots[i]) assert_true(first(ed_list_get(got, k++)) == first(slots[i]));
    assert_int_equal(ed_list_size(got), k);
    assert_int_equal(ed_optimizer_iterations(built), 5);
    assert_true(ed_restoration_assert_consumed(r));

    r = ed_checkpoint_read(ed_checkpoint("v", z, "o", waiting), in_folder("keras"));
    step(built, y);
    step(waiting, z);
    for (int i = 0; i < 3; i++) assert_true(first(ed_list_get(y, i)) == first(ed_list_get(z, i)));
    assert_true(ed_restoration_assert_consumed(r));

    ed_checkpoint_write(ed_checkpoint("v", y, "o", built), in_folder("eddy"));
    ed_checkpoint_read(keras, in_folder("eddy"), .partial = true); /* but for the scalars */
    got = ed_optimizer_variables(built);
    for (int i = 0, at = 0; i < n; i++)
        if (slots[i]) assert_true(first(ed_list_get(got, at++)) == first(slots[i]));
    ed_checkpoint_read(ed_checkpoint("v", z, "o", waiting), in_folder("eddy"));
    ed_checkpoint_read(ed_checkpoint("o", waiting), in_folder("eddy"), .partial = true);
    assert_fine();
}

static ed_optimizer *adafactor(void)
{
    return ed_optimizer_adafactor(.learning_rate = 0.125);
}

static ed_optimizer *muon(void)
{
    return ed_optimizer_muon(.learning_rate = 0.125);
}

static void optimizers(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *rows[] = {filled(ED_SHAPE(3), 0.25),
                         filled(ED_SHAPE(2), 0.5),
                         filled(ED_SHAPE(3, 2), 0.75),
                         NULL,
                         NULL,
                         filled(ED_SHAPE(4), 1.25),
                         filled(ED_SHAPE(2), 1.5),
                         filled(ED_SHAPE(2), 1.75),
                         filled(ED_SHAPE(2, 2), 2)};
    restores(adafactor, rows, 9, (const char *[]){"_r", "_c", "_v", NULL});
    ed_tensor *momentums[] = {filled(ED_SHAPE(3, 2), 0.25), filled(ED_SHAPE(4), 0.5),
                              filled(ED_SHAPE(4), 0.75), filled(ED_SHAPE(2, 2), 1)};
    restores(muon, momentums, 4, (const char *[]){"momentums", "adam_velocities", NULL});
}

/* ---- Layers in lists ------------------------------------------------------------------------- */

static ed_layer *nested(void)
{
    ed_layer *blocks = ed_layer_sequential("blocks", ed_layer_dense(2, .name = "0"));
    return ed_layer_sequential("model", ed_layer_dense(3, .name = "first"), blocks);
}

/* Keras' checkpoint has them as what the optimizer trains, and nowhere else. */
static void lists(void **state)
{
    (void)state;
    static const char *const numbers[] = {"_trainable_variables/0", "_trainable_variables/1",
                                          "_trainable_variables/2", "_trainable_variables/3"};
    for (int built = 0; built < 2; built++) {
        ED_SCOPE;
        ed_tensor *theirs[] = {filled(ED_SHAPE(3, 3), 1), filled(ED_SHAPE(3), 2),
                               filled(ED_SHAPE(3, 2), 3), filled(ED_SHAPE(2), 4)};
        ed_trackable *model, *optimizer;
        tree *t = tree_new(&model), *o = tree_new(&optimizer);
        tree_put(t, "first/_kernel", theirs[0]);
        tree_put(t, "first/bias", theirs[1]);
        tree_put(o, "_iterations", ed_variable(ed_zeros(ED_SHAPE(), .dtype = ED_INT64)));
        tree_put(o, "_learning_rate", ed_variable(ed_full(ED_SHAPE(), 0.125)));
        for (int i = 0; i < 4; i++) tree_put(o, numbers[i], theirs[i]);
        ed_checkpoint_write(ed_checkpoint("model", model, "optimizer", optimizer),
                            in_folder("lists"));

        ed_layer *layer = nested();
        if (built) ed_forward(layer, some_input());
        ed_checkpoint *ours = ed_checkpoint("model", layer, "optimizer", ed_optimizer_sgd());
        ed_restoration *r = ed_checkpoint_read(
            ours, in_folder("lists"),
            .renames = ED_STRINGS("model/blocks/0/kernel", "optimizer/_trainable_variables/2",
                                  "model/blocks/0/bias", "optimizer/_trainable_variables/3"));
        ed_forward(layer, some_input());
        assert_fine();
        ed_list *variables = ed_layer_variables(layer);
        for (int i = 0; i < 4; i++) assert_true(first(ed_list_get(variables, i)) == i + 1);
        assert_true(ed_restoration_assert_consumed(r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layers, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(optimizers, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(lists, folder_begin, folder_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
