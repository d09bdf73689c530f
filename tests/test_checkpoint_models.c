/*
 * Saving and restoring of models and optimizers under attack: files of other optimizers, numbers
 * that can't be, values that wait for layers without weights, everything released in every order,
 * other threads and processes, memory that is refused.
 */
#include "io/bundle.h"
#include "tests/folders.h"
#include "tests/program.h"
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>

/* ---- Optimizers ------------------------------------------------------------------------------ */

enum { ADAM, AMSGRAD, MOMENTUM, SGD, RMSPROP, KINDS };

static ed_optimizer *optimizer_of(int kind)
{
    switch (kind) {
    case ADAM: return ed_optimizer_adam(.learning_rate = 0.5);
    case AMSGRAD: return ed_optimizer_adam(.learning_rate = 0.5, .amsgrad = true);
    case MOMENTUM: return ed_optimizer_sgd(.learning_rate = 0.5, .momentum = 0.9);
    case SGD: return ed_optimizer_sgd(.learning_rate = 0.5);
    default: return ed_optimizer_rmsprop(.learning_rate = 0.5, .momentum = 0.5, .centered = true);
    }
}

/* A step by gradients that differ for each variable. */
static void step(ed_optimizer *o, ed_list *variables)
{
    ED_SCOPE;
    ed_tensor *gradients[8];
    for (int64_t i = 0; i < ed_list_size(variables); i++)
        gradients[i] = ed_mul(ed_add(ed_list_get(variables, i), 1), 0.25);
    ed_apply_gradients(o, ed_list_make(gradients, ed_list_size(variables)), variables);
}

/* Slots by slots. */
static bool same_slots(const ed_optimizer *a, const ed_optimizer *b)
{
    ED_SCOPE;
    ed_list *x = ed_optimizer_variables(a), *y = ed_optimizer_variables(b);
    if (ed_list_size(x) != ed_list_size(y)) return false;
    for (int64_t i = 0; i < ed_list_size(x); i++)
        if (first(ed_list_get(x, i)) != first(ed_list_get(y, i))) return false;
    return true;
}

static ed_checkpoint *with_optimizer(ed_list *variables, ed_optimizer *o)
{
    return ed_checkpoint("v", variables, "o", o);
}

/* Each kind's file into each kind, before and after its first step. */
static void kinds_of_optimizers(void **state)
{
    (void)state;
    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++)
            for (int stepped = 0; stepped < 2; stepped++) {
                ED_SCOPE;
                ed_optimizer *a = optimizer_of(from), *b = optimizer_of(to);
                ed_list *x = ed_list_of(floats(3, 1), floats(3, 2)),
                        *y = ed_list_of(floats(3, 8), floats(3, 9));
                step(a, x);
                if (stepped) step(b, y);
                assert_non_null(ed_checkpoint_write(with_optimizer(x, a), in_folder("kinds")));
                ed_restoration *r = ed_checkpoint_read(with_optimizer(y, b), in_folder("kinds"));
                if (from != to) {
                    assert_null(r);
                    failed_with(ED_INVALID_ARGUMENT, "does not match the objects");
                    assert_true(ed_optimizer_iterations(b) == stepped &&
                                first(ed_list_get(y, 0)) > 5);
                    continue;
                }
                assert_fine();
                assert_true(!stepped || ed_restoration_assert_consumed(r));
                step(a, x);
                step(b, y);
                assert_fine();
                assert_true(ed_restoration_assert_consumed(r) && same_slots(a, b));
                assert_true(first(ed_list_get(x, 1)) == first(ed_list_get(y, 1)));
            }
}

static void steps_too_early(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_optimizer *o = ed_optimizer_adam();
    ed_list *x = ed_list_of(floats(3, 1), floats(3, 2));
    ed_checkpoint *c = with_optimizer(x, o);
    assert_non_null(ed_checkpoint_write(c, in_folder("early")));
    step(o, x);
    assert_null(ed_checkpoint_read(c, in_folder("early")));
    failed_with(ED_INVALID_ARGUMENT, "the optimizer has slots that the file does not have");
    assert_int_equal(ed_optimizer_iterations(o), 1);
    ed_checkpoint_read(c, in_folder("early"), .partial = true);
    assert_fine();
    assert_true(ed_optimizer_iterations(o) == 0 && first(ed_list_get(x, 0)) == 1);
}

/* Slots belong to variables, not to places: another order, some frozen, one that came later. */
static void order_of_variables(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        ED_SCOPE;
        ed_optimizer *a = optimizer_of(kind), *b = optimizer_of(kind), *c = optimizer_of(kind);
        ed_tensor *u = floats(3, 1), *v = floats(3, 2), *w = floats(3, 3);
        ed_tensor *u2 = floats(3, 0), *v2 = floats(3, 0), *w2 = floats(3, 0);
        step(a, ed_list_of(u, v, w));
        step(a, ed_list_of(u, v, w));
        ed_checkpoint *mine = with_optimizer(ed_list_of(u, v, w), a),
                      *other = with_optimizer(ed_list_of(u2, v2, w2), b);
        assert_non_null(ed_checkpoint_write(mine, in_folder("order")));
        ed_restoration *r = ed_checkpoint_read(other, in_folder("order"));
        assert_fine();
        step(b, ed_list_of(w2, u2)); /* v2 is frozen: its slots wait on */
        assert_true(ed_restoration_count(r, ED_WAITING) > 0 || kind == SGD);

        /* saved now, nothing is lost */
        assert_non_null(ed_checkpoint_write(other, in_folder("order-2")));
        ed_tensor *u3 = floats(3, 0), *v3 = floats(3, 0), *w3 = floats(3, 0);
        r = ed_checkpoint_read(with_optimizer(ed_list_of(u3, v3, w3), c), in_folder("order-2"));
        assert_fine();
        step(a, ed_list_of(u, w));
        step(c, ed_list_of(v3, u3, w3));
        step(b, ed_list_of(v2, w2, u2));
        step(a, ed_list_of(u, v, w));
        assert_fine();
        assert_true(ed_restoration_assert_consumed(r));
        assert_true(first(u) == first(u2) && first(w) == first(w2) && first(w) == first(w3));
        if (kind != ADAM && kind != AMSGRAD) /* whose steps know how many there were */
            assert_true(first(v) == first(v2));
        assert_true(first(v2) == first(v3) && first(u2) == first(u3));
    }
}

/* Without the variables: its slots go by their order. */
static void optimizer_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        ED_SCOPE;
        ed_optimizer *a = optimizer_of(kind), *b = optimizer_of(kind), *c = optimizer_of(kind);
        ed_list *x = ed_list_of(floats(3, 1), floats(2, 2)),
                *y = ed_list_of(floats(3, 1), floats(2, 2)),
                *z = ed_list_of(floats(3, 1), floats(2, 2));
        step(a, x);
        step(c, z);
        step(c, z);
        for (int i = 0; i < 2; i++) ed_assign(ed_list_get(y, i), ed_list_get(x, i));
        for (int i = 0; i < 2; i++) ed_assign(ed_list_get(z, i), ed_list_get(x, i));
        assert_non_null(ed_checkpoint_write(ed_checkpoint("o", a), in_folder("alone")));
        ed_archive *file = ed_archive_open(in_folder("alone"));
        for (int64_t i = 0; i < ed_archive_count(file); i++) /* no variable of another's */
            assert_null(strstr(ed_archive_name(file, i), "_trainable_variables"));
        ed_restoration *r = ed_checkpoint_read(ed_checkpoint("o", b), in_folder("alone")),
                       *s = ed_checkpoint_read(ed_checkpoint("o", c), in_folder("alone"));
        assert_fine();
        assert_non_null(ed_checkpoint_write(ed_checkpoint("o", b), in_folder("alone-2")));
        step(a, x);
        step(b, y);
        step(c, z);
        assert_fine();
        assert_true(ed_restoration_assert_consumed(r) && ed_restoration_assert_consumed(s));
        assert_true(same_slots(a, b) && same_slots(a, c));
        ed_optimizer *d = optimizer_of(kind);
        ed_list *q = ed_list_of(floats(3, 0), floats(2, 0));
        ed_checkpoint_read(ed_checkpoint("o", d), in_folder("alone-2"));
        step(d, q);
        assert_fine();
        assert_true(ed_optimizer_iterations(d) == 2 &&
                    (kind == SGD || !same_slots(d, optimizer_of(kind))));
    }
}

/* The bundle again with one number another. */
static void forge_number(const char *from, const char *path, const char *key, io_dtype dtype,
                         double number)
{
    const int64_t whole = fabs(number) < 1e9 ? (int64_t)number : 0;
    const float narrow = (float)number;
    const void *data = dtype == IO_INT64     ? (const void *)&whole
                       : dtype == IO_FLOAT32 ? (const void *)&narrow
                                             : (const void *)&number;
    bundle *b = bundle_open("test", from);
    bundle_writer *w = bundle_create("test", path);
    bool found = false;
    for (int64_t i = 0; i < bundle_count(b); i++) {
        const bundle_entry *e = bundle_at(b, i);
        char bytes[64];
        io_buffer message = {0};
        if (!strcmp(e->name, BUNDLE_DIGESTS)) continue;
        if (!strcmp(e->name, BUNDLE_GRAPH)) {
            assert_true(bundle_string(b, e, 0, &message));
            const io_span span = {message.data, message.size};
            assert_true(bundle_add_strings(w, e->name, 0, NULL, &span, 1));
        } else if (!strncmp(e->name, key, strlen(key))) {
            size_t size = (size_t)io_dtype_bits(dtype) / 8;
            found = bundle_add_raw(w, e->name, dtype, 0, NULL, data, size);
        } else {
            size_t size = (size_t)e->bytes;
            assert_true(size <= sizeof bytes && bundle_read(b, e, bytes));
            assert_true(bundle_add_raw(w, e->name, e->dtype, e->rank, e->shape, bytes, size));
        }
        io_buffer_free(&message);
    }
    assert_true(found && bundle_finish(w));
    ed_release(b);
}

static void numbers_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        io_dtype dtype;
        double value;
        const char *words; /* NULL: it is taken */
    } cases[] = {
        {"o/_iterations", IO_INT64, -1, "must be >= 0"},
        {"o/_iterations", IO_FLOAT64, NAN, "an integer is required"},
        {"o/_iterations", IO_FLOAT64, 0.5, "an integer is required"},
        {"o/_iterations", IO_FLOAT64, 1e300, "an integer is required"},
        {"o/_iterations", IO_FLOAT64, 17, NULL},
        {"o/_iterations", IO_FLOAT16, 1, "different dtype"},
        {"o/_learning_rate", IO_FLOAT32, NAN, "finite"},
        {"o/_learning_rate", IO_FLOAT32, -0.1, "finite"},
        {"o/_learning_rate", IO_FLOAT32, INFINITY, "finite"},
        {"o/_learning_rate", IO_FLOAT64, 1e300, "finite"},
        {"o/_learning_rate", IO_FLOAT32, 0.25, NULL},
        {"m/count", IO_INT64, -3, "must be >= 0"},
        {"save_counter", IO_INT64, -3, "must be >= 0"},
        {"save_counter", IO_INT64, 4, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ED_SCOPE;
        ed_optimizer *o = ed_optimizer_adam();
        ed_metric *m = ed_metric_mean(.name = "m");
        ed_tensor *v = floats(1, 3);
        ed_checkpoint *c = ed_checkpoint("o", o, "m", m, "v", v);
        const char *saved = ed_checkpoint_save(c, in_folder("numbers"));
        assert_fine();

        forge_number(saved, in_folder("forged"), cases[i].key, cases[i].dtype, cases[i].value);
        ed_assign(v, ed_full(ED_SHAPE(1), 5));
        ed_restoration *r = ed_checkpoint_restore(c, in_folder("forged"));
        if (cases[i].words) {
            assert_null(r);
            failed_with(ED_INVALID_ARGUMENT, cases[i].words);
            assert_true(first(v) == 5 && ed_checkpoint_save_counter(c) == 1);
        } else {
            assert_fine();
            assert_true(first(v) == 3);
        }
    }
}

/* The rate is saved in the dtype of the variables, and read from either. */
static void rate_of_dtype(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64};
    for (int d = 0; d < 2; d++)
        for (int known = 0; known < 2; known++) {
            ED_SCOPE;
            ed_optimizer *o = ed_optimizer_adam(), *p = ed_optimizer_adam();
            ed_tensor *v = ed_variable(ed_ones(ED_SHAPE(1), .dtype = dtypes[d]));
            ed_list *all = ed_list_of(v), *g = ed_list_of(ed_ones_like(v));
            assert_true(ed_optimizer_set_learning_rate(o, 1 / 3.0));
            assert_true(ed_apply_gradients(o, g, all));
            if (known) assert_true(ed_apply_gradients(p, g, all));
            const char *path = in_folder("rate");
            assert_non_null(ed_checkpoint_write(ed_checkpoint("o", o, "v", v), path));
            assert_non_null(ed_checkpoint_read(ed_checkpoint("o", p, "v", v), path));
            assert_true(ed_optimizer_learning_rate(p) == (d ? 1 / 3.0 : (double)(1 / 3.0f)));
            assert_fine();
        }
}

/* ---- What waits ------------------------------------------------------------------------------ */

static ed_layer *mlp(void)
{
    return ed_layer_sequential("mlp", ed_layer_dense(4, .name = "base"),
                               ed_layer_sequential("inner", ed_layer_dense(3, .name = "a"),
                                                   ed_layer_dense(3, .name = "b")),
                               ed_layer_batch_normalization(), ed_layer_dense(2, .name = "head"));
}

static double run(ed_layer *model)
{
    ED_SCOPE;
    return ed_item(ed_reduce_sum(ed_square(ed_forward(model, some_input()))));
}

/* Restored and saved again before anything was called, twice: nothing is lost. */
static void saved_while_waiting(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        ED_SCOPE;
        ed_set_seed(kind + 1); /* of some weights momentum makes infinite ones, which have no sum */
        ed_layer *model = mlp();
        ed_optimizer *o = optimizer_of(kind);
        for (int i = 0; i < 3; i++) train_layer(model, o);
        const char *path = in_folder("first");
        assert_non_null(ed_checkpoint_write(ed_checkpoint("m", model, "o", o), path));
        ed_layer *last = NULL;
        ed_optimizer *p = NULL;
        ed_restoration *r = NULL;
        for (int i = 0; i < 3; i++) {
            last = mlp();
            p = optimizer_of(kind);
            ed_checkpoint *c = ed_checkpoint("m", last, "o", p);
            r = ed_checkpoint_read(c, path);
            assert_fine();
            if (i == 1) run(last); /* the second has weights, and no slots */
            path = i ? in_folder("third") : in_folder("second");
            assert_non_null(ed_checkpoint_write(c, path));
        }
        assert_true(run(last) == run(model));
        for (int i = 0; i < 3; i++) {
            train_layer(model, o);
            train_layer(last, p);
            assert_true(run(last) == run(model));
        }
        assert_fine();
        assert_true(ed_restoration_assert_consumed(r) && same_slots(o, p));
    }
}

/* A model that was never called has nothing to save, and says so; but a part of one may wait. */
static void saved_unbuilt(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = mlp(), *b = mlp(), *c = mlp();
    const char *path = in_folder("unbuilt");
    assert_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    failed_with(ED_FAILED_PRECONDITION,
                "checkpoint: m has no variables to save before its first call");
    ed_optimizer *o = ed_optimizer_adam();
    assert_null(ed_checkpoint_save(ed_checkpoint("m", a, "o", o), path));
    failed_with(ED_FAILED_PRECONDITION, "checkpoint: m has");
    run(c);
    ed_checkpoint *both = ed_checkpoint("m", c, "o", o);
    assert_non_null(ed_checkpoint_write(both, path));
    /* What waits for the first call is saved again. */
    ed_checkpoint *waiting = ed_checkpoint("m", b, "o", ed_optimizer_adam());
    assert_non_null(ed_checkpoint_read(waiting, path));
    assert_non_null(ed_checkpoint_write(waiting, in_folder("again")));
    ed_layer *d = mlp();
    ed_checkpoint_read(ed_checkpoint("m", d, "o", ed_optimizer_adam()), in_folder("again"));
    assert_true(run(d) == run(c));
    /* A layer without weights, and one beside others that were called, are fine. */
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", ed_layer_flatten()), path));
    assert_fine();
}

/* A restore of a part leaves alone what an older one left waiting; one of all is the last word. */
static void restored_twice(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *one = mlp(), *two = mlp(), *model = mlp(), *other = mlp();
    ed_optimizer *o = ed_optimizer_adam(), *p = ed_optimizer_adam();
    train_layer(one, o);
    train_layer(one, o);
    run(two);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", one, "o", o), in_folder("one")));
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", two), in_folder("two")));
    ed_checkpoint *c = ed_checkpoint("m", model, "o", p);
    ed_restoration *r = ed_checkpoint_read(c, in_folder("one"));
    ed_checkpoint_read(c, in_folder("two"), .only = ED_STRINGS("m/base*"));
    assert_fine();
    run(model);
    double base = first(ed_list_get(ed_layer_variables(ed_layer_child(model, 0)), 0)),
           head = first(ed_list_get(ed_layer_variables(ed_layer_child(model, -1)), 0));
    assert_true(base == first(ed_list_get(ed_layer_variables(ed_layer_child(two, 0)), 0)));
    assert_true(head == first(ed_list_get(ed_layer_variables(ed_layer_child(one, -1)), 0)));
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2 + 2 * 10);
    train_layer(model, p);
    train_layer(one, o);
    assert_fine();
    /* base's, of the first file, with their slots: those variables came from elsewhere */
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2 + 4);
    assert_int_equal(ed_optimizer_iterations(p), 3);

    ed_checkpoint *d = ed_checkpoint("m", other);
    ed_checkpoint_read(d, in_folder("one"), .partial = true);
    ed_checkpoint_read(d, in_folder("two"));
    assert_fine();
    assert_true(run(other) == run(two));
}

/* A layer whose children come when it is called, one of which brings a number of its own. */
typedef struct late {
    int64_t units;
    bool more;
} late;

static void track_counted(ed_layer *layer, ed_tracker *t)
{
    ed_track_int64(t, "calls", ed_layer_state(layer));
}

static bool count_call(ed_layer *layer, ed_layer_call *call)
{
    ++*(int64_t *)ed_layer_state(layer);
    return ed_layer_return(call, call->inputs[0]);
}

static const ed_layer_class counted_class = {.kind.name = "counted",
                                             .state_size = sizeof(int64_t),
                                             .forward = count_call,
                                             .track = track_counted};

static bool build_late(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    const late *l = ed_layer_state(layer);
    ed_layer_add_child(layer, ed_layer_sequential("net", ed_layer_dense(l->units, .name = "in"),
                                                  ed_layer_dense(2)));
    ed_layer_add_child(layer, ed_layer_new(&counted_class, "calls"));
    if (l->more) ed_layer_add_child(layer, ed_layer_sequential("more", ed_layer_dense(2)));
    return ed_layer_add_weight(layer, "scale", ED_SHAPE(), .initializer = ed_initializer_ones());
}

static bool forward_late(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *x = call->inputs[0];
    for (int64_t i = 0; i < ed_layer_child_count(layer); i++)
        x = ed_forward(ed_layer_child(layer, i), x, .training = call->training);
    return ed_layer_return(call, x ? ed_mul(x, ed_list_get(ed_layer_variables(layer), 0)) : NULL);
}

static const ed_layer_class late_class = {
    .kind.name = "late", .state_size = sizeof(late), .build = build_late, .forward = forward_late};

static ed_layer *late_new(int64_t units, bool more)
{
    ed_layer *layer = ed_layer_new(&late_class, "late");
    *(late *)ed_layer_state(layer) = (late){units, more};
    return layer;
}

static void late_children(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("late");
    ed_layer *a = late_new(4, false), *b = late_new(4, false), *wide = late_new(5, false),
             *more = late_new(4, true);
    run(a);
    run(a);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("m", b), path);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", b), in_folder("late-2")));
    double twice = run(a), once = run(b);
    assert_fine();
    assert_true(twice == once && ed_restoration_assert_consumed(r));
    assert_int_equal(ed_restoration_count(r, ED_RESTORED),
                     6); /* with the counter, while it built */
    assert_int_equal(*(int64_t *)ed_layer_state(ed_layer_child(b, 1)), 3);
    ed_layer *again = late_new(4, false);
    ed_checkpoint_read(ed_checkpoint("m", again), in_folder("late-2"));
    assert_true(run(again) == once);
    assert_int_equal(*(int64_t *)ed_layer_state(ed_layer_child(again, 1)), 3);
    assert_fine();

    /* another shape: refused at each call, until it is not waited for */
    r = ed_checkpoint_read(ed_checkpoint("m", wide), path);
    assert_fine();
    int64_t waiting = ed_restoration_count(r, ED_WAITING);
    for (int i = 0; i < 3; i++) {
        assert_null(ed_forward(wide, some_input()));
        failed_with(ED_INVALID_ARGUMENT,
                    "late/net/in/kernel is float32[3, 5] in the program, but in the checkpoint");
    }
    assert_true(ed_restoration_expect_partial(r) && ed_restoration_count(r, ED_WAITING) == 0 &&
                waiting > 0);
    assert_non_null(ed_forward(wide, some_input()));

    /* a child that the file does not have */
    ed_checkpoint_read(ed_checkpoint("m", more), path);
    assert_fine();
    for (int i = 0; i < 2; i++) {
        assert_null(ed_forward(more, some_input()));
        failed_with(ED_NOT_FOUND, "has no value for");
    }
    ed_checkpoint_read(ed_checkpoint("m", more), path, .partial = true);
    assert_non_null(ed_forward(more, some_input()));
    assert_fine();
}

/* A layer that is added when the restore is over is the program's own affair. */
static void layers_added_later(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = mlp(), *b = mlp();
    run(a);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), in_folder("added")));
    ed_checkpoint *c = ed_checkpoint("m", b);
    ed_restoration *r = ed_checkpoint_read(c, in_folder("added"));
    ed_layer_add_child(b, ed_layer_dense(7, .name = "top"));
    run(b);
    assert_fine();
    assert_false(ed_restoration_assert_consumed(r));
    failed_with(ED_FAILED_PRECONDITION, "not restored: m/top/kernel, m/top/bias");
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 0);
    assert_null(ed_checkpoint_read(c, in_folder("added")));
    failed_with(ED_INVALID_ARGUMENT, "missing from the file: m/top/kernel, m/top/bias");
}

/* Everything is given up in each order; what is left goes on. */
static void released_in_every_order(void **state)
{
    (void)state;
    enum { CHECKPOINT, RESTORATION, MODEL, OPTIMIZER, THINGS };
    ED_SCOPE;
    ed_layer *a = mlp();
    ed_optimizer *o = ed_optimizer_adam();
    train_layer(a, o);
    const char *path = in_folder("orders");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a, "o", o), path));
    double expected = run(a);
    for (int order = 0; order < 24; order++) {
        void *things[THINGS];
        {
            ED_SCOPE;
            things[MODEL] = ed_retain(mlp());
            things[OPTIMIZER] = ed_retain(ed_optimizer_adam());
            things[CHECKPOINT] =
                ed_retain(ed_checkpoint("m", things[MODEL], "o", things[OPTIMIZER]));
            ed_checkpoint_read(things[CHECKPOINT], path); /* an older one, taken over */
            things[RESTORATION] = ed_retain(ed_checkpoint_read(things[CHECKPOINT], path));
            assert_fine();
        }
        for (int left = THINGS, code = order; left; code /= left--) {
            ED_SCOPE;
            int chosen = 0;
            for (int skip = code % left; things[chosen] == NULL || skip-- > 0;) chosen++;
            if (things[MODEL] && order % 2) assert_true(run(things[MODEL]) == expected);
            if (things[RESTORATION]) {
                bool held =
                    things[CHECKPOINT] && ed_restoration_assert_consumed(things[RESTORATION]);
                if (!things[CHECKPOINT]) ed_restoration_assert_consumed(things[RESTORATION]);
                assert_true(held == !ed_failed());
                ed_clear_error();
                assert_non_null(ed_restoration_report(things[RESTORATION]));
            }
            ed_release(things[chosen]);
            things[chosen] = NULL;
            assert_fine();
        }
    }
    ed_restoration *r;
    {
        ED_SCOPE;
        r = ed_keep(ed_checkpoint_read(ed_checkpoint("m", mlp(), "o", ed_optimizer_adam()), path));
    }
    assert_false(ed_restoration_assert_existing_objects_matched(r));
    failed_with(ED_FAILED_PRECONDITION, "the checkpoint was released");
}

/* ---- Other threads, other processes ---------------------------------------------------------- */

typedef struct job {
    ed_checkpoint *checkpoint;
    const char *path, *own;
    bool ok;
} job;

static void *restore_it(void *user)
{
    ED_SCOPE;
    job *j = user;
    for (int i = 0; i < 20; i++) {
        ED_SCOPE;
        j->ok = ed_checkpoint_read(j->checkpoint, j->path) &&
                ed_checkpoint_write(j->checkpoint, j->own);
    }
    return NULL;
}

/* Each thread its own objects; what one restored, another uses when it is done. */
static void threads(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { THREADS = 4 };
    ed_layer *a = mlp(), *models[THREADS];
    run(a);
    const char *path = in_folder("threads");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    pthread_t ids[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        models[i] = mlp();
        if (i % 2) run(models[i]);
        static const char *own[THREADS] = {"own-0", "own-1", "own-2", "own-3"};
        jobs[i] = (job){ed_checkpoint("m", models[i]), path, in_folder("%s", own[i]), false};
        assert_int_equal(pthread_create(&ids[i], NULL, restore_it, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++) assert_true(jobs[i].ok && run(models[i]) == run(a));
    assert_fine();
}

static void children(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = mlp(), *b = mlp();
    run(a);
    const char *path = in_folder("fork");
    ed_checkpoint *c = ed_checkpoint("m", b);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    ed_checkpoint_read(c, path);
    pid_t child = fork();
    if (child == 0) {
        bool ok = run(b) == run(a) && ed_checkpoint_read(c, path) &&
                  ed_checkpoint_write(c, in_folder("fork-child"));
        _exit(ok && !ed_failed() ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(run(b) == run(a));
    ed_checkpoint_read(c, in_folder("fork-child"));
    assert_fine();
}

/* ---- Refused allocations --------------------------------------------------------------------- */

/* A restore that fails has changed nothing, one that waits can be saved; at each allocation. */
static void refused(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = late_new(4, false);
    ed_optimizer *o = ed_optimizer_adam();
    train_layer(a, o);
    const char *path = in_folder("refused"), *again = in_folder("refused-2");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a, "o", o), path));
    double expected = run(a);
    int64_t rounds = 0;
    for (bool whole = false; !whole; rounds++) {
        ED_SCOPE;
        ed_layer *b = late_new(4, false);
        ed_optimizer *p = ed_optimizer_adam();
        ed_checkpoint *c = ed_checkpoint("m", b, "o", p);
        ed_memory_fail_at(rounds, false);
        ed_restoration *r = ed_checkpoint_read(c, path);
        const char *saved = r ? ed_checkpoint_write(c, again) : NULL;
        ed_tensor *y = saved ? ed_forward(b, some_input()) : NULL;
        whole = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_true(whole == !!y);
        assert_true(whole == !ed_failed());
        ed_clear_error();
        assert_int_equal(ed_optimizer_iterations(p), r ? 1 : 0);
        if (!r) assert_non_null(r = ed_checkpoint_read(c, path));
        assert_non_null(ed_checkpoint_write(c, again));
        assert_true(run(b) == expected);
        assert_int_equal(ed_restoration_count(r, ED_WAITING), 10);
        assert_fine();
    }
    assert_true(rounds > 300);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static bool fields_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *x = call->inputs[0];
    for (int64_t i = 0; i < ed_layer_child_count(layer); i++)
        x = ed_forward(ed_layer_child(layer, i), x);
    for (int64_t i = 0; i < ed_layer_weight_count(layer); i++)
        x = ed_mul(x, ed_layer_weight(layer, i));
    return ed_layer_return(call, x);
}

static const ed_layer_class fields_class = {.kind.name = "fields", .forward = fields_forward};

/* A layer with the parts in fields, or as they were saved before fields counted. */
static ed_layer *with_fields(bool fields)
{
    ed_layer *layer = ed_layer_new(&fields_class, NULL);
    ed_layer *parts[] = {ed_layer_dense(2), ed_layer_dense(2), ed_layer_dense(2, .name = "own")};
    ed_tensor *scale = ed_variable(ed_scalar(fields ? 1.0 : 3.0));
    const char *names[] = {"first", "blocks/0", "blocks/1"};
    for (int i = 0; i < 3; i++) {
        if (fields)
            assert_ptr_equal(ed_layer_add_field(layer, names[i], parts[i]), parts[i]);
        else
            ed_layer_add_child(layer, parts[i]);
    }
    if (fields)
        assert_ptr_equal(ed_layer_add_field(layer, "scales/0", scale), scale);
    else
        ed_layer_adopt_weight(layer, "scales_0", scale);
    return layer;
}

static void fields(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(1, 3));
    ed_layer *model = with_fields(true), *older = with_fields(false);
    ed_forward(model, x);
    ed_tensor *expected = ed_forward(older, x);
    assert_string_equal(ed_layer_path(ed_layer_child(model, 0)), "fields/first");
    assert_string_equal(ed_layer_path(ed_layer_child(model, 1)), "fields/blocks_0");
    assert_string_equal(ed_layer_path(ed_layer_child(model, 2)), "fields/own");
    assert_string_equal(ed_variable_name(ed_layer_weight(model, 0)), "fields/scales_0");
    assert_null(strstr(ed_layer_path(ed_layer_child(older, 0)), "first"));
    const char *path = ed_checkpoint_write(ed_checkpoint("m", older), in_folder("older"));
    for (int built = 0; built < 2; built++) {
        ed_layer *newer = with_fields(true);
        if (built) ed_forward(newer, x);
        ed_restoration *r = ed_checkpoint_read(ed_checkpoint("m", newer), path);
        assert_true(ed_all_close(ed_forward(newer, x), expected, 0, 0, NULL));
        assert_true(ed_restoration_assert_consumed(r));
        const char *again = ed_checkpoint_write(ed_checkpoint("m", newer), in_folder("newer"));
        ed_layer *last = with_fields(true);
        r = ed_checkpoint_read(ed_checkpoint("m", last), again);
        assert_true(ed_all_close(ed_forward(last, x), expected, 0, 0, NULL));
        assert_true(ed_restoration_assert_consumed(r));
        assert_fine();
    }
    assert_fails(ed_layer_add_field(model, "blocks/0", ed_layer_dense(1)), ED_INVALID_ARGUMENT,
                 "two layers are named blocks/0");
    assert_fails(ed_layer_add_field(model, "blocks", ed_layer_dense(1)), ED_INVALID_ARGUMENT,
                 "blocks can't be a part of its own and have parts");
    assert_fails(ed_layer_add_field(model, "blocks/0/x", ed_layer_dense(1)), ED_INVALID_ARGUMENT,
                 "blocks/0 can't be a part of its own and have parts");
    assert_fails(ed_layer_add_field(model, "own", ed_layer_dense(1)), ED_INVALID_ARGUMENT,
                 "two layers are named own");
    assert_fails(ed_layer_add_field(model, "a//b", ed_layer_dense(1)), ED_INVALID_ARGUMENT,
                 "invalid field 'a//b'");
    assert_fails(ed_layer_add_field(model, "x", x), ED_INVALID_ARGUMENT,
                 "x must be a layer or a variable, got tensor");
    assert_fails(ed_layer_add_field(model, "x", ed_list_of(x)), ED_INVALID_ARGUMENT, "got list");
    assert_fails(ed_layer_add_field(model, "x", ed_optimizer_sgd()), ED_INVALID_ARGUMENT,
                 "got optimizer");
    assert_fails(ed_layer_add_field(model, "scales/0", ed_variable(ed_scalar(1.0))),
                 ED_INVALID_ARGUMENT, "already has a weight");
}

#define TEST(f) cmocka_unit_test_teardown(f, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kinds_of_optimizers),
        TEST(steps_too_early),
        TEST(order_of_variables),
        TEST(optimizer_alone),
        TEST(numbers_that_cannot_be),
        TEST(rate_of_dtype),
        TEST(saved_while_waiting),
        TEST(saved_unbuilt),
        TEST(restored_twice),
        TEST(late_children),
        TEST(layers_added_later),
        TEST(released_in_every_order),
        TEST(threads),
        TEST(children),
        TEST(refused),
        TEST(fields),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
