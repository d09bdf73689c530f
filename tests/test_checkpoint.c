/* Saving and restoring: whole trainings, what is strict and what is not, what waits, what is other
 * than expected; that a restore which fails changes nothing. */
#include "io/bundle.h"
#include "track/graph.h"
#include "tests/folders.h"
#include "tests/program.h"
#include "tests/training.h"

/* ---- Whole trainings ------------------------------------------------------------------------- */

enum { STEPS = 14 };

/* Saved after every step in turn and gone on with in objects made anew: the same bits. */
static void resumes_exactly(void **state)
{
    (void)state;
    for (int kind = 0; kind < TRAINING_OPTIMIZERS; kind++) {
        ED_SCOPE;
        double whole[STEPS];
        training a;
        training_begin(&a, kind);
        char paths[STEPS][96];
        for (int i = 0; i < STEPS; i++) {
            snprintf(paths[i], sizeof paths[i], "%s/exact-%d", folder_root, i);
            assert_non_null(ed_checkpoint_write(a.checkpoint, paths[i]));
            whole[i] = training_step(&a);
        }
        assert_fine();
        for (int from = 0; from < STEPS; from++) {
            ED_SCOPE;
            training b;
            training_begin(&b, kind);
            for (int i = 0; i < from % 3; i++) training_step(&b); /* built, or not yet */
            if (from % 3 && from == 1) continue; /* slots here that the file does not have */
            ed_restoration *r = ed_checkpoint_read(b.checkpoint, paths[from]);
            assert_fine();
            assert_int_equal(b.step, from);
            for (int i = from; i < STEPS; i++) {
                double loss = training_step(&b);
                assert_fine();
                if (loss != whole[i])
                    fail_msg("optimizer %d from step %d: loss %d is %.17g, not %.17g", kind, from,
                             i, loss, whole[i]);
            }
            if (from) assert_true(ed_restoration_assert_consumed(r));
            assert_true(ed_restoration_assert_existing_objects_matched(r) || !from);
            ed_clear_error();
        }
    }
}

/* ---- Strictness ------------------------------------------------------------------------------ */

static void strictness(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("strict");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", floats(3, 1), "b", floats(2, 2)), path));
    ed_tensor *a = floats(3, 9), *b = floats(2, 9), *c = floats(2, 9), *wide = floats(4, 9);
    ed_tensor *whole = ed_variable(ed_cast(ed_full(ED_SHAPE(3), 9), ED_INT32), .name = "i");

    assert_null(ed_checkpoint_read(ed_checkpoint("a", a, "b", b, "c", c), path));
    failed_with(ED_INVALID_ARGUMENT, "missing from the file: c");
    assert_null(ed_checkpoint_read(ed_checkpoint("a", a), path));
    failed_with(ED_INVALID_ARGUMENT, "unexpected in the file: b");
    assert_null(ed_checkpoint_read(ed_checkpoint("a", a, "b", wide), path));
    failed_with(ED_INVALID_ARGUMENT, "b is float32[4] in the program and float32[2] in the file");
    assert_null(ed_checkpoint_read(ed_checkpoint("a", whole, "b", b), path));
    failed_with(ED_INVALID_ARGUMENT, "a is int32[3] in the program and float32[3] in the file");
    assert_null(ed_checkpoint_read(ed_checkpoint("a", whole, "b", b), path, .partial = true));
    failed_with(ED_INVALID_ARGUMENT, "a is int32[3] in the program");
    assert_true(first(a) == 9 && first(b) == 9 && first(c) == 9);

    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("a", a, "c", c), path, .partial = true);
    assert_fine();
    assert_true(first(a) == 1 && first(c) == 9);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 1);
    assert_string_equal(ed_restoration_path(r, ED_RESTORED, 0), "a");
    assert_int_equal(ed_restoration_count(r, ED_MISSING), 1);
    assert_string_equal(ed_restoration_path(r, ED_MISSING, 0), "c");
    assert_int_equal(ed_restoration_count(r, ED_UNEXPECTED), 1); /* b */
    assert_null(ed_restoration_path(r, ED_UNEXPECTED, 1));
    failed_with(ED_OUT_OF_RANGE, "index 1 is out of bounds for 1 paths");
    assert_non_null(strstr(ed_restoration_report(r), "missing from the file: 1\n    c\n"));
    assert_fine();
}

static void no_such_files(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = floats(3, 9);
    assert_null(ed_checkpoint_read(ed_checkpoint("a", a), in_folder("nothing-here")));
    failed_with(ED_NOT_FOUND, "nothing-here");
    assert_null(ed_checkpoint("a", ed_zeros(ED_SHAPE(3))));
    failed_with(ED_INVALID_ARGUMENT, "tensor");
    assert_null(ed_checkpoint("a"));
    failed_with(ED_INVALID_ARGUMENT, "pairs of name and object, got");
    assert_null(ed_checkpoint("a", a, "a", a));
    failed_with(ED_INVALID_ARGUMENT, "duplicate name 'a'");
    assert_null(ed_checkpoint("", a));
    failed_with(ED_INVALID_ARGUMENT, "empty");
    assert_null(ed_checkpoint("save_counter", a));
    failed_with(ED_INVALID_ARGUMENT, "the name 'save_counter' is reserved");
    assert_null(ed_checkpoint_write(ed_checkpoint("a", a), "/proc/nowhere/x"));
    assert_true(ed_failed());
    ed_clear_error();
}

/* ---- Part of a model ------------------------------------------------------------------------- */

static ed_layer *net(const char *name, const char *base, int64_t classes)
{
    ed_layer *layer = ed_layer_sequential(name, ed_layer_dense(4, .name = base),
                                          ed_layer_dense(classes, .name = "head"));
    ed_forward(layer, ed_ones(ED_SHAPE(1, 3)));
    return layer;
}

static double weight(ed_layer *layer, int64_t i)
{
    return first(ed_list_get(ed_layer_variables(layer), i));
}

static void warm_start(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("pretrained");
    ed_layer *old = net("old", "base", 10);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("model", old), path));

    /* a head of another size: all but that */
    ed_layer *tuned = net("tuned", "base", 2);
    double head = weight(tuned, 2);
    assert_null(ed_checkpoint_read(ed_checkpoint("model", tuned), path, .partial = true));
    failed_with(ED_INVALID_ARGUMENT, "model/head/kernel is float32[4, 2] in the program");
    ed_restoration *r =
        ed_checkpoint_read(ed_checkpoint("model", tuned), path, .skip = ED_STRINGS("model/head*"));
    assert_fine();
    assert_true(weight(tuned, 0) == weight(old, 0) && weight(tuned, 2) == head);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 2);
    assert_int_equal(ed_restoration_count(r, ED_UNEXPECTED), 0);

    /* patterns with mistakes */
    assert_null(ed_checkpoint_read(ed_checkpoint("model", tuned), path, .partial = true,
                                   .skip = ED_STRINGS("model/head*", "model/haed*")));
    failed_with(ED_INVALID_ARGUMENT, "skip: no path matches \"model/haed*\"");
    assert_null(ed_checkpoint_read(ed_checkpoint("model", tuned), path,
                                   .only = ED_STRINGS("model/bias?", "*base*")));
    failed_with(ED_INVALID_ARGUMENT, "only: no path matches \"model/bias?\"");
    assert_true(weight(tuned, 2) == head);

    ed_layer *only = net("only", "base", 2);
    ed_checkpoint_read(ed_checkpoint("model", only), path, .only = ED_STRINGS("*kernel"),
                       .skip = ED_STRINGS("*head*"));
    assert_fine();
    assert_true(weight(only, 0) == weight(old, 0));

    /* other names here */
    ed_layer *other = net("other", "encoder", 10);
    assert_null(ed_checkpoint_read(ed_checkpoint("net", other), path));
    failed_with(ED_INVALID_ARGUMENT, "net/encoder/kernel");
    ed_checkpoint_read(ed_checkpoint("net", other), path,
                       .renames = ED_STRINGS("net", "model", "net/encoder", "model/base"));
    assert_fine();
    for (int64_t i = 0; i < 4; i++) assert_true(weight(other, i) == weight(old, i));
    assert_null(ed_checkpoint_read(ed_checkpoint("net", other), path,
                                   .renames = ED_STRINGS("net/base", "model/base")));
    failed_with(ED_NOT_FOUND, "net/base not found in the program");
    assert_null(ed_checkpoint_read(ed_checkpoint("net", other), path,
                                   .renames = ED_STRINGS("net", "modell")));
    failed_with(ED_NOT_FOUND, "modell not found in the file");
    assert_null(
        ed_checkpoint_read(ed_checkpoint("net", other), path, .renames = ED_STRINGS("net")));
    failed_with(ED_INVALID_ARGUMENT, "pairs");
}

/* ---- What waits ------------------------------------------------------------------------------ */

static void waits_for_first_call(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("waits");
    ed_layer *old = net("mlp", "base", 5);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("model", old), path));
    ed_layer *fresh = ed_layer_sequential("mlp", ed_layer_dense(4, .name = "base"),
                                          ed_layer_dense(5, .name = "head"));
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("model", fresh), path);
    assert_fine();
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 0);
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 4);
    assert_false(ed_restoration_assert_consumed(r));
    failed_with(ED_FAILED_PRECONDITION, "but not restored");
    unlink(in_folder("waits.index")); /* what waits was read */
    ed_set_seed(1);
    ed_tensor *before = ed_random_uniform(ED_SHAPE(3));
    ed_set_seed(1);
    ed_forward(fresh, ed_ones(ED_SHAPE(1, 3)));
    ed_tensor *after = ed_random_uniform(ED_SHAPE(3));
    assert_fine();
    assert_true(first(before) == first(after)); /* nothing was drawn for the weights */
    for (int64_t i = 0; i < 4; i++) assert_true(weight(fresh, i) == weight(old, i));
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 0);

    /* of another shape: the first call fails, the next one too, and says it */
    assert_non_null(ed_checkpoint_write(ed_checkpoint("model", old), path));
    ed_layer *narrow = ed_layer_sequential("mlp", ed_layer_dense(4, .name = "base"),
                                           ed_layer_dense(2, .name = "head"));
    ed_checkpoint *c = ed_checkpoint("model", narrow);
    r = ed_checkpoint_read(c, path);
    assert_fine();
    for (int i = 0; i < 2; i++) {
        assert_null(ed_forward(narrow, ed_ones(ED_SHAPE(1, 3))));
        failed_with(ED_INVALID_ARGUMENT,
                    "mlp/head/kernel is float32[4, 2] in the program, but in the checkpoint");
    }
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2);
    assert_true(ed_restoration_expect_partial(r));
    assert_non_null(ed_forward(narrow, ed_ones(ED_SHAPE(1, 3))));
    assert_fine();

    /* a layer more than the file has */
    ed_layer *longer =
        ed_layer_sequential("mlp", ed_layer_dense(4, .name = "base"),
                            ed_layer_dense(5, .name = "head"), ed_layer_dense(1, .name = "more"));
    ed_checkpoint_read(ed_checkpoint("model", longer), path);
    assert_fine();
    assert_null(ed_forward(longer, ed_ones(ED_SHAPE(1, 3))));
    failed_with(ED_NOT_FOUND, "more: the checkpoint");
    ed_checkpoint_read(ed_checkpoint("model", longer), path, .partial = true);
    assert_non_null(ed_forward(longer, ed_ones(ED_SHAPE(1, 3))));
    assert_fine();
}

/* ---- Other names for what is created later --------------------------------------------------- */

static ed_layer *unbuilt(const char *name)
{
    return ed_layer_sequential(name, ed_layer_dense(4, .name = "first"),
                               ed_layer_dense(5, .name = "last"));
}

static void assert_same_weights(ed_layer *a, ed_layer *b)
{
    assert_fine();
    assert_int_equal(ed_list_size(ed_layer_variables(a)), ed_list_size(ed_layer_variables(b)));
    for (int64_t i = 0; i < ed_list_size(ed_layer_variables(a)); i++)
        assert_true(ed_all_close(ed_list_get(ed_layer_variables(a), i),
                                 ed_list_get(ed_layer_variables(b), i), 0, 0, NULL));
}

/* Weights, and layers with all of theirs, of layers that were never called. */
static void renames_wait(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("renames");
    ed_layer *old = net("old", "base", 5);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("model", old), path));

    ed_layer *fresh = unbuilt("net");
    ed_checkpoint *c = ed_checkpoint("net", fresh);
    ed_restoration *r = NULL;
    for (int64_t n = 0; !r; n++) { /* without memory it fails as a whole */
        ed_memory_fail_at(n, false);
        r = ed_checkpoint_read(c, path,
                               .renames = ED_STRINGS("net/first/kernel", "model/base/kernel",
                                                     "net/first/bias", "model/base/bias",
                                                     "net/last", "model/head"));
        if (!r) failed_with(ED_OUT_OF_MEMORY, "memory");
        ed_memory_fail_at(-1, false);
    }
    assert_fine();
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 4);
    assert_string_equal(ed_restoration_path(r, ED_WAITING, 0), "net/first/kernel");
    unlink(in_folder("renames.index"));
    ed_forward(fresh, ed_ones(ED_SHAPE(1, 3)));
    assert_same_weights(fresh, old);
    assert_true(ed_restoration_assert_consumed(r));
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 4);
}

/* A layer that makes another one when it is called first. */
static bool late_build(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    return ed_layer_add_child(layer, ed_layer_dense(4, .name = "inner"));
}

static bool late_forward(ed_layer *layer, ed_layer_call *call)
{
    return ed_layer_return(call, ed_forward(ed_layer_child(layer, 0), call->inputs[0]));
}

static const ed_layer_class late_class = {
    .kind.name = "late", .build = late_build, .forward = late_forward};

/* What waits under its new name is saved under it, too. */
static void renames_of_children(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("children"), *again = in_folder("again");
    ed_layer *old = ed_layer_dense(4);
    ed_forward(old, ed_ones(ED_SHAPE(1, 3)));
    assert_non_null(ed_checkpoint_write(ed_checkpoint("dense", old), path));

    ed_layer *late = ed_layer_new(&late_class, NULL), *later = ed_layer_new(&late_class, NULL);
    ed_checkpoint *c = ed_checkpoint("model", late);
    ed_checkpoint_read(c, path,
                       .renames = ED_STRINGS("model/inner/kernel", "dense/kernel",
                                             "model/inner/bias", "dense/bias"));
    assert_fine();
    assert_non_null(ed_checkpoint_write(c, again));
    ed_forward(late, ed_ones(ED_SHAPE(1, 3)));
    assert_same_weights(late, old);
    ed_checkpoint_read(ed_checkpoint("model", later), again);
    ed_forward(later, ed_ones(ED_SHAPE(1, 3)));
    assert_same_weights(later, old);
}

/* As from Keras 3, which names the weights in lists of layers by the optimizer alone. */
static void renames_from_the_optimizer(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("trained");
    ed_layer *old = net("old", "base", 5), *fresh = unbuilt("net");
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.1),
                 *other = ed_optimizer_adam(.learning_rate = 0.1);
    train_layer(old, adam);
    ed_checkpoint *both = ed_checkpoint("model", old, "optimizer", adam);
    assert_non_null(ed_checkpoint_write(both, path));
    ed_restoration *r = ed_checkpoint_read(
        ed_checkpoint("net", fresh, "optimizer", other), path,
        .renames = ED_STRINGS("net/first/kernel", "optimizer/_trainable_variables/0",
                              "net/first/bias", "optimizer/_trainable_variables/1",
                              "net/last/kernel", "optimizer/_trainable_variables/2",
                              "net/last/bias", "optimizer/_trainable_variables/3"));
    assert_fine();
    for (int step = 0; step < 3; step++) {
        train_layer(old, adam);
        train_layer(fresh, other);
        assert_same_weights(fresh, old);
    }
    assert_true(ed_restoration_assert_consumed(r));
}

static void renames_that_fail(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("wrong");
    ed_layer *old = net("old", "base", 5), *fresh = unbuilt("net");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("model", old), path));
    ed_checkpoint *c = ed_checkpoint("net", fresh);
    assert_null(ed_checkpoint_read(
        c, path, .renames = ED_STRINGS("net/first/kernel", "model/base/kernels")));
    failed_with(ED_NOT_FOUND, "model/base/kernels not found in the file");
    assert_null(
        ed_checkpoint_read(c, path, .renames = ED_STRINGS("none/kernel", "model/base/kernel")));
    failed_with(ED_NOT_FOUND, "none/kernel not found in the program");
    assert_null(ed_checkpoint_read(c, path,
                                   .renames = ED_STRINGS("net/first/a", "model/base/kernel",
                                                         "net/first/b", "model/base/kernel")));
    failed_with(ED_INVALID_ARGUMENT, "duplicate net/first/b or model/base/kernel");
    ed_tensor *taken = floats(4, 0);
    assert_null(ed_checkpoint_read(
        ed_checkpoint("net", fresh, "taken", taken), path,
        .renames = ED_STRINGS("taken", "model/base/bias", "net/first/bias", "model/base/bias")));
    failed_with(ED_INVALID_ARGUMENT, "duplicate net/first/bias or model/base/bias");

    /* a name that no weight gets, and a weight that has no name */
    ed_checkpoint_read(c, path,
                       .renames =
                           ED_STRINGS("net/first/kernel", "model/base/kernel", "net/first/bais",
                                      "model/base/bias", "net/last", "model/head"));
    assert_fine();
    assert_null(ed_forward(fresh, ed_ones(ED_SHAPE(1, 3))));
    failed_with(ED_NOT_FOUND, "has no value for bias");
}

/* ---- A structure of the program's own -------------------------------------------------------- */

struct agent {
    ed_layer *policy;
    int64_t episodes;
    double best;
};

static void track_agent(void *self, ed_tracker *t)
{
    struct agent *a = self;
    ed_track(t, "policy", a->policy);
    ed_track_int64(t, "episodes", &a->episodes);
    ed_track_float64(t, "best", &a->best);
}

static const ed_trackable_class agent_class = {.name = "agent", .track = track_agent};

static void own_structures(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("own");
    struct agent a = {net("p", "base", 2), 41, 0.1}, b = {net("p", "base", 2), 0, 0};
    assert_non_null(
        ed_checkpoint_write(ed_checkpoint("agent", ed_trackable_new(&agent_class, &a)), path));
    ed_restoration *r =
        ed_checkpoint_read(ed_checkpoint("agent", ed_trackable_new(&agent_class, &b)), path);
    assert_fine();
    assert_true(b.episodes == 41 && b.best == 0.1 && weight(a.policy, 3) == weight(b.policy, 3));
    assert_true(ed_restoration_assert_existing_objects_matched(r));
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void counting(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = floats(2, 1);
    ed_checkpoint *c = ed_checkpoint("v", v);
    assert_string_equal(ed_checkpoint_save(c, in_folder("deep/er/ckpt")),
                        in_folder("deep/er/ckpt-1"));
    ed_assign(v, ed_full(ED_SHAPE(2), 2));
    assert_string_equal(ed_checkpoint_save(c, in_folder("deep/er/ckpt")),
                        in_folder("deep/er/ckpt-2"));
    assert_int_equal(ed_checkpoint_save_counter(c), 2);
    assert_string_equal(ed_latest_checkpoint(in_folder("deep/er")), in_folder("deep/er/ckpt-2"));
    ed_tensor *w = floats(2, 9);
    ed_checkpoint *d = ed_checkpoint("v", w);
    ed_restoration *r = ed_checkpoint_restore(d, in_folder("deep/er/ckpt-2"));
    assert_fine();
    assert_true(ed_restoration_assert_consumed(r));
    assert_int_equal(ed_checkpoint_save_counter(d), 2);
    assert_true(first(w) == 2);
}

/* A prefix without a name is refused before anything is counted or written. */
static void prefix_without_name(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_checkpoint *c = ed_checkpoint("v", floats(2, 1));
    const char *prefixes[] = {"", in_folder("deep/"), "/"};
    for (int i = 0; i < 3; i++) {
        assert_null(ed_checkpoint_save(c, prefixes[i]));
        assert_int_equal(ed_error_kind(), ED_INVALID_ARGUMENT);
        ed_clear_error();
        assert_int_equal(ed_checkpoint_save_counter(c), 0);
    }
    assert_int_not_equal(access("-1.index", F_OK), 0);
}

/* ---- Refused allocations --------------------------------------------------------------------- */

/* Each allocation of a save, a restore and the steps after it in turn: an error, nothing lost. */
static void refused_memory(void **state)
{
    (void)state;
    for (int64_t n = 0, whole = 0; !whole; n++) {
        ed_memory before = ed_memory_stats();
        {
            ED_SCOPE;
            training a;
            training_begin(&a, 0);
            double losses[3];
            for (int i = 0; i < 2; i++) training_step(&a);
            const char *path = in_folder("refused");
            ed_memory_fail_at(n, false);
            const char *saved = ed_checkpoint_write(a.checkpoint, path);
            bool refused = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_true(refused == !saved);
            ed_clear_error();
            if (refused) {
                assert_int_not_equal(access(in_folder("refused.index"), F_OK), n ? 1 : 0);
                assert_non_null(ed_checkpoint_write(a.checkpoint, path));
            }
            for (int i = 0; i < 3; i++) losses[i] = training_step(&a);

            training b;
            training_begin(&b, 0);
            ed_memory_fail_at(n, false);
            ed_restoration *r = ed_checkpoint_read(b.checkpoint, path);
            bool refused_too = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_true(refused_too == !r);
            if (refused_too) {
                ed_clear_error();
                assert_int_equal(b.step, 0);
                assert_non_null(ed_checkpoint_read(b.checkpoint, path));
            }
            assert_fine();
            for (int i = 0; i < 3; i++) assert_true(training_step(&b) == losses[i]);
            assert_fine();
            whole = !refused && !refused_too;
        }
        assert_int_equal(ed_memory_stats().live_tensors, before.live_tensors);
        assert_int_equal(ed_memory_stats().live_bytes, before.live_bytes);
    }
}

/* The same for the first step after a restore, which makes what waits. A step that fails is tried
 * again and goes as it would have. */
static void refused_memory_while_waiting(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("refused");
    training a;
    training_begin(&a, 0);
    for (int i = 0; i < 2; i++) training_step(&a);
    assert_non_null(ed_checkpoint_write(a.checkpoint, path));
    for (int i = 0; i < 3; i++) training_step(&a);
    ed_tensor *x = ed_ones(ED_SHAPE(2, 6));
    double expected = first(ed_forward(a.model, x));
    for (int64_t n = 0, whole = 0; !whole; n++) {
        ED_SCOPE;
        training b;
        training_begin(&b, 0);
        ed_restoration *r = ed_checkpoint_read(b.checkpoint, path);
        assert_fine();
        ed_memory_fail_at(n, false);
        ed_forward(b.model, x);
        whole = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        ed_clear_error();
        for (int i = 0; i < 3; i++) training_step(&b);
        assert_fine();
        assert_true(first(ed_forward(b.model, x)) == expected);
        assert_true(ed_restoration_assert_consumed(r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(strictness, check_end),
        cmocka_unit_test_teardown(no_such_files, check_end),
        cmocka_unit_test_teardown(warm_start, check_end),
        cmocka_unit_test_teardown(waits_for_first_call, check_end),
        cmocka_unit_test_teardown(renames_wait, check_end),
        cmocka_unit_test_teardown(renames_of_children, check_end),
        cmocka_unit_test_teardown(renames_from_the_optimizer, check_end),
        cmocka_unit_test_teardown(renames_that_fail, check_end),
        cmocka_unit_test_teardown(own_structures, check_end),
        cmocka_unit_test_teardown(counting, check_end),
        cmocka_unit_test_teardown(resumes_exactly, check_end),
        cmocka_unit_test_teardown(prefix_without_name, check_end),
        cmocka_unit_test_teardown(refused_memory, check_end),
        cmocka_unit_test_teardown(refused_memory_while_waiting, check_end),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
