/*
 * TensorFlow's own checkpoints restored into programs like those for which its verdicts are
 * recorded: values after, assertions, errors. Where Eddy is stricter, a restore that fails changes
 * nothing, while TensorFlow leaves those variables assigned that came before the failure.
 */
#include "tests/folders.h"
#include "tests/json.h"
#include "train/train.h"

/* ---- A tf.Module: children under names ------------------------------------------------------- */

typedef struct module {
    int count;
    const char *names[8];
    void *objects[8];
} module;

static void track_module(void *self, ed_tracker *t)
{
    module *m = self;
    for (int i = 0; i < m->count; i++) ed_track(t, m->names[i], m->objects[i]);
}

static const ed_trackable_class module_class = {.name = "module", .track = track_module};

static void add(module *m, const char *name, void *object)
{
    m->names[m->count] = name;
    m->objects[m->count++] = object;
}

/* A variable that holds 99 everywhere. */
static ed_tensor *full(ed_ints shape, ed_dtype dtype)
{
    return ed_variable(ed_full(shape, 99, .dtype = dtype), .name = "v");
}

#define FLOATS(...) full(ED_SHAPE(__VA_ARGS__), ED_FLOAT32)

/* A module that makes its variables when it is first used. */
static bool late_build(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    return ed_layer_add_weight(layer, "kernel", ED_SHAPE(2, 3),
                               .initializer = ed_initializer_zeros()) &&
           ed_layer_add_weight(layer, "bias", ED_SHAPE(3), .initializer = ed_initializer_zeros());
}

static bool late_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return ed_layer_return(call, call->inputs[0]);
}

static const ed_layer_class late_class = {
    .kind.name = "dense", .build = late_build, .forward = late_forward};

/* ---- The programs ---------------------------------------------------------------------------- */

typedef struct program {
    module root, dense;
    ed_layer *late;
} program;

static void dense(program *p, const char *name, ed_tensor *kernel, ed_tensor *bias)
{
    if (kernel) add(&p->dense, "kernel", kernel);
    if (bias) add(&p->dense, "bias", bias);
    add(&p->root, name, ed_trackable_new(&module_class, &p->dense));
}

static void make(program *p, const char *kind)
{
    ed_tensor *kernel = FLOATS(2, 3), *bias = FLOATS(3), *step = full(ED_SHAPE(), ED_INT64);
    *p = (program){0};
    if (!strcmp(kind, "file_has_more")) {
        dense(p, "dense", kernel, NULL);
        return;
    }
    if (!strcmp(kind, "other_names")) {
        dense(p, "thing", kernel, bias);
        return;
    }
    if (!strcmp(kind, "empty_program")) return;
    if (!strcmp(kind, "wrong_int_width")) step = full(ED_SHAPE(), ED_INT32);
    add(&p->root, "step", step);
    if (!strcmp(kind, "only_step")) return;
    if (!strcmp(kind, "variable_made_later"))
        add(&p->root, "dense", p->late = ed_layer_new(&late_class, "dense"));
    else if (!strcmp(kind, "list_instead_of_module"))
        add(&p->root, "dense", ed_list_of(kernel, bias));
    else if (!strcmp(kind, "wrong_shape"))
        dense(p, "dense", FLOATS(3, 2), bias);
    else if (!strcmp(kind, "wrong_rank"))
        dense(p, "dense", FLOATS(6), bias);
    else if (!strcmp(kind, "wrong_dtype"))
        dense(p, "dense", full(ED_SHAPE(2, 3), ED_FLOAT64), bias);
    else if (!strcmp(kind, "swapped_names"))
        dense(p, "dense", bias, kernel);
    else
        dense(p, "dense", kernel, bias);
    if (!strcmp(kind, "program_has_more")) add(&p->dense, "gamma", FLOATS(3));
    if (!strcmp(kind, "shared_object_twice")) add(&p->root, "again", p->root.objects[1]);
}

static ed_tensor *variable_at(const program *p, const char *path)
{
    const char *leaf = strchr(path, '/') ? strchr(path, '/') + 1 : path;
    if (p->late && strchr(path, '/'))
        return ed_list_get(ed_layer_variables(p->late), strcmp(leaf, "kernel") ? 1 : 0);
    for (int i = 0; i < p->dense.count; i++)
        if (!strcmp(p->dense.names[i], leaf)) return p->dense.objects[i];
    for (int i = 0; i < p->root.count; i++) {
        if (!strcmp(p->root.names[i], path)) return p->root.objects[i];
        if (strcmp(leaf, "0") == 0 || strcmp(leaf, "1") == 0)
            if (!strcmp(p->root.names[i], "dense"))
                return ed_list_get(p->root.objects[i], leaf[0] - '0');
    }
    fail_msg("no variable %s", path);
    return NULL;
}

/* After an error every value is what it was; TensorFlow's record has some of the file's. */
static void check_values(const program *p, const json *values, bool failed)
{
    for (int64_t i = 0; i < json_count(values); i++) {
        ED_SCOPE;
        ed_tensor *v = variable_at(p, json_key(values, i));
        const json *expected = json_at(values, i);
        ed_tensor *numbers = ed_cast(ed_value(v), ED_FLOAT64);
        assert_fine();
        const double *x = ed_data(numbers);
        assert_int_equal(ed_size(v), json_count(expected));
        for (int64_t k = 0; k < ed_size(v); k++) {
            double right = failed ? 99 : json_number(json_at(expected, k));
            if (x[k] != right)
                fail_msg("%s[%lld] is %g, not %g", json_key(values, i), (long long)k, x[k], right);
        }
    }
}

static void check_assertion(const json *verdict, const char *name,
                            bool (*assertion)(ed_restoration *), ed_restoration *r)
{
    bool expected = !strcmp(json_text(json_get(verdict, name)), "ok");
    if (assertion(r) != expected)
        fail_msg("%s should %s: %s", name, expected ? "hold" : "fail", ed_error());
    assert_true(expected == !ed_failed());
    ed_clear_error();
}

static void check(const char *title, const json *verdict)
{
    ED_SCOPE;
    bool reading = !strncmp(title, "read ", 5);
    program p;
    make(&p, strchr(title, ' ') + 1);
    const void *pairs[16];
    for (int i = 0; i < p.root.count; i++) {
        pairs[2 * i] = p.root.names[i];
        pairs[2 * i + 1] = p.root.objects[i];
    }
    ed_checkpoint *c = ed_checkpoint_of(pairs, 2 * p.root.count);
    assert_fine();
    const char *path = in_data("tf/made/ckpt/restore/ckpt");
    ed_restoration *r = reading ? ed_checkpoint_read(c, path, .partial = true)
                                : ed_checkpoint_restore(c, path, .partial = true);
    const json *values = json_get(verdict, "values_after");
    if (json_get(verdict, "error")) {
        assert_null(r);
        assert_int_equal(ed_error_kind(), ED_INVALID_ARGUMENT);
        ed_clear_error();
        check_values(&p, values, true);
        return;
    }
    assert_fine();
    if (p.late) {
        check_assertion(verdict, "assert_consumed_before", ed_restoration_assert_consumed, r);
        ed_forward(p.late, ed_ones(ED_SHAPE(1)));
        assert_fine();
    }
    check_values(&p, values, false);
    check_assertion(verdict, "assert_consumed", ed_restoration_assert_consumed, r);
    check_assertion(verdict, "assert_existing_objects_matched",
                    ed_restoration_assert_existing_objects_matched, r);
    check_assertion(verdict, "assert_nontrivial_match", ed_restoration_assert_nontrivial_match, r);
}

static void verdicts(void **state)
{
    (void)state;
    json *record = json_read_file(in_data("tf/made/ckpt/restore/restore.json"));
    const json *results = json_get(record, "results");
    assert_int_equal(json_count(results), 28);
    for (int64_t i = 0; i < json_count(results); i++) {
        print_message("%s\n", json_key(results, i));
        check(json_key(results, i), json_at(results, i));
    }
    json_free(record);
}

/* ---- Other roots, other objects -------------------------------------------------------------- */

static void roots(void **state)
{
    (void)state;
    data_folder(); /* or it is skipped */
    ED_SCOPE;
    /* the root is a module */
    module sub = {0}, root = {0};
    add(&sub, "b", NULL);
    ed_archive *file_of = ed_archive_open(in_data("tf/made/ckpt/root_module/ckpt-1"));
    assert_fine();
    ed_tensor *w = ed_archive_get(file_of, "w/.ATTRIBUTES/VARIABLE_VALUE"),
              *b = ed_archive_get(file_of, "sub/b/.ATTRIBUTES/VARIABLE_VALUE");
    assert_fine();
    ed_tensor *own = ed_variable(ed_zeros_like(w)), *below = ed_variable(ed_zeros_like(b));
    sub.objects[0] = below;
    add(&root, "w", own);
    add(&root, "sub", ed_trackable_new(&module_class, &sub));
    int64_t step = 0;
    ed_checkpoint *c = ed_checkpoint("root", ed_trackable_new(&module_class, &root), "sub2",
                                     root.objects[1], "step", ed_counter(&step));
    ed_restoration *r = ed_checkpoint_restore(c, in_data("tf/made/ckpt/root_module/ckpt-1"));
    assert_fine();
    assert_true(ed_restoration_assert_consumed(r));
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(own, w)))) == 0);
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(below, b)))) == 0);

    /* the root is a variable */
    ed_archive *alone = ed_archive_open(in_data("tf/made/ckpt/root_variable/ckpt"));
    ed_tensor *value = ed_archive_get(alone, "/.ATTRIBUTES/VARIABLE_VALUE");
    assert_fine();
    ed_tensor *v = ed_variable(ed_zeros_like(value));
    r = ed_checkpoint_read(ed_checkpoint("root", v), in_data("tf/made/ckpt/root_variable/ckpt"));
    assert_fine();
    assert_true(ed_restoration_assert_consumed(r));
    assert_memory_equal(ed_data(v), ed_data(value),
                        (size_t)ed_size(v) * ed_dtype_size(ed_dtype_of(v)));

    /* a child called .ATTRIBUTES: the file is sound, though TensorFlow looks for it elsewhere and
     * finds nothing (NotFoundError) */
    module d = {0};
    add(&d, "w", FLOATS());
    add(&d, ".ATTRIBUTES", FLOATS());
    r = ed_checkpoint_read(ed_checkpoint("d", ed_trackable_new(&module_class, &d)),
                           in_data("tf/made/ckpt/reserved/ckpt"));
    assert_fine();
    assert_true(ed_restoration_assert_consumed(r));
    ed_archive *reserved = ed_archive_open(in_data("tf/made/ckpt/reserved/ckpt"));
    ed_tensor *odd = ed_archive_get(reserved, "d/..ATTRIBUTES"
                                              "/.ATTRIBUTES/VARIABLE_VALUE");
    assert_fine();
    assert_true(ed_item(odd) == ed_item(d.objects[1]));
}

/* A generator goes on where TensorFlow's stopped. */
static void generators(void **state)
{
    (void)state;
    data_folder(); /* or it is skipped */
    ED_SCOPE;
    ed_generator *g = ed_generator_from_seed(1);
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("rng", g),
                                           in_data("tf/made/ckpt/kinds/ckpt"), .partial = true);
    assert_fine();
    ed_tensor *expected = ed_archive_get(ed_archive_open(in_data("tf/made/ckpt/kinds/ckpt")),
                                         "rng/_state_var/.ATTRIBUTES/VARIABLE_VALUE");
    assert_fine();
    uint64_t now[3];
    ed_generator_state(g, now);
    assert_memory_equal(now, ed_data(expected), sizeof now);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 1);
    assert_int_equal(ed_restoration_count(r, ED_UNEXPECTED), 3); /* iterator, Python state, table */
}

/* Checkpoints of Saver, by names: as the variables are called, or as renames say. */
static void names(void **state)
{
    (void)state;
    data_folder(); /* or it is skipped */
    ED_SCOPE;
    const char *path = in_data("tf/made/v1/saver/model.ckpt-20");
    ed_archive *saver = ed_archive_open(path);
    assert_fine();
    const char *key = NULL;
    for (int64_t i = 0; i < ed_archive_count(saver) && !key; i++)
        if (ed_archive_shape(saver, i).count == 2) key = ed_archive_name(saver, i);
    assert_non_null(key);
    ed_tensor *expected = ed_archive_get(saver, key);
    ed_tensor *by_name = ed_variable(ed_zeros_like(expected), .name = key),
              *renamed = ed_variable(ed_zeros_like(expected), .name = "other");
    assert_fine();
    ed_restoration *r = ed_checkpoint_restore(ed_checkpoint("v", by_name), path);
    assert_fine();
    assert_true(ed_restoration_assert_consumed(r) || strstr(ed_error(), "save_counter"));
    ed_clear_error();
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(by_name, expected)))) == 0);
    assert_null(ed_checkpoint_restore(ed_checkpoint("v", renamed), path));
    assert_error("missing from the file: v");
    ed_checkpoint_restore(ed_checkpoint("v", renamed), path, .renames = ED_STRINGS("v", key));
    assert_fine();
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(renamed, expected)))) == 0);

    ed_layer *late = ed_layer_dense(ed_dim(expected, 1), .use_bias = false); /* never called */
    ed_checkpoint_restore(ed_checkpoint("late", late), path,
                          .renames = ED_STRINGS("late/kernel", key));
    ed_forward(late, ed_zeros(ED_SHAPE(1, ed_dim(expected, 0))));
    assert_fine();
    assert_true(ed_all_close(ed_list_get(ed_layer_variables(late), 0), expected, 0, 0, NULL));
}

/* Lists of options that are not as they should be are refused before anything is read. */
static void lists(void **state)
{
    (void)state;
    ED_SCOPE;
    static const char *const some[] = {"v", NULL};
    const ed_strings bad[] = {{some, 2}, {some, -1}};
    const char *path = in_folder("v");
    ed_tensor *v = ed_variable(1.0);
    ed_checkpoint *ckpt = ed_checkpoint("v", v);
    assert_non_null(ed_checkpoint_write(ckpt, path));
    ed_assign(v, 2.0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(ed_checkpoint_read(ckpt, path, .only = bad[i]));
        assert_error("checkpoint_read: only must be strings");
        assert_null(ed_checkpoint_read(ckpt, path, .skip = bad[i]));
        assert_error("checkpoint_read: skip must be strings");
        assert_null(ed_checkpoint_read(ckpt, path, .renames = bad[i]));
        assert_error("checkpoint_read: renames must be strings");
    }
    assert_true(ed_item(v) == 2);
    assert_non_null(ed_checkpoint_read(ckpt, path, .only = {some, 1}, .skip = {some, 0}));
    assert_true(ed_item(v) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(roots),
        cmocka_unit_test(generators),
        cmocka_unit_test(names),
        cmocka_unit_test_setup_teardown(lists, folder_begin, folder_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
