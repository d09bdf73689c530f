/*
 * What bindings for other languages stand on: lua/ includes the public headers alone, and so can
 * any other. Elements and tensors made in place, references that a scope holds, memory beside
 * Eddy's objects, what an object is.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/folders.h"
#include <math.h>

/* ---- The version ---------------------------------------------------------------------------- */

static void library_and_headers_agree_on_the_version(void **unused)
{
    (void)unused;
    char parts[64];
    snprintf(parts, sizeof parts, "%d.%d.%d", ED_VERSION_MAJOR, ED_VERSION_MINOR, ED_VERSION_PATCH);
    assert_string_equal(ed_version(), parts);
    assert_string_equal(ed_version(), ED_VERSION);
}

/* ---- Elements and tensors -------------------------------------------------------------------- */

static void elements_of_each_dtype(void **unused)
{
    (void)unused;
    for (int d = ED_DTYPE_NONE + 1; d < ED_DTYPE_COUNT; d++) {
        const ed_dtype dtype = (ed_dtype)d;
        uint64_t room[2] = {0};
        assert_true(ed_dtype_holds(dtype, 1) && ed_dtype_store(dtype, room, 1, 1));
        assert_true(ed_dtype_load(dtype, room, 1) == 1 && ed_dtype_load(dtype, room, 0) == 0);
        assert_true(ed_dtype_holds(dtype, 0.5) == ed_dtype_is_float(dtype));
        assert_true(ed_dtype_holds(dtype, NAN) == ed_dtype_is_float(dtype));
        if (ed_dtype_is_float(dtype)) continue;
        assert_fails(ed_dtype_store(dtype, room, 0, 1e30), ED_INVALID_ARGUMENT,
                     "dtype_store: 1e+30 cannot be represented as");
        assert_true(ed_dtype_load(dtype, room, 0) == 0);
    }
    assert_true(isnan(ed_dtype_load(ED_DTYPE_NONE, &(float){1}, 0)));
    assert_error("dtype_load: dtype is none");
    assert_fails(ed_dtype_store(ED_DTYPE_COUNT, &(float){1}, 0, 1), ED_INVALID_ARGUMENT, "none");
}

static void a_tensor_is_filled_in_place(void **unused)
{
    (void)unused;
    ED_SCOPE;
    void *data;
    ed_tensor *t = ed_empty(ED_INT32, ED_SHAPE(2, 3), &data);
    assert_non_null(t);
    assert_ptr_equal(data, ed_data(t));
    for (int i = 0; i < 6; i++) ((int32_t *)data)[i] = i;
    assert_same_tensor(t, ed_constant(ED_VALUES(int32_t, 0, 1, 2, 3, 4, 5), ED_SHAPE(2, 3)));
    assert_true(ed_empty(ED_BOOL, ED_SHAPE(), &data) && data);
    assert_true(ed_empty(ED_BOOL, ED_SHAPE(0), &data) && data);
    assert_fails(ed_empty(ED_BOOL, ED_SHAPE(-1), &data), ED_INVALID_ARGUMENT, "[-1]");
    assert_null(data);
    assert_fails(ed_empty(ED_DTYPE_NONE, ED_SHAPE(2), &data), ED_INVALID_ARGUMENT, "unknown dtype");
}

static void plain_numbers_are_weak(void **unused)
{
    (void)unused;
    ED_SCOPE;
    assert_true(ed_is_weak(ed_number(2)) && ed_is_weak(ed_integer(2)));
    assert_false(ed_is_weak(ed_scalar(2.0)) || ed_is_weak(ed_add(2.0, 1.0)));
    assert_false(ed_is_weak(ed_variable(1.0)));
}

static void lists_may_have_gaps(void **unused)
{
    (void)unused;
    ED_SCOPE;
    ed_tensor *entries[] = {NULL, ed_scalar(1), NULL};
    const ed_list *list = ed_list_make_optional(entries, 3);
    assert_int_equal(ed_list_size(list), 3);
    assert_null(ed_list_get(list, 0));
    assert_ptr_equal(ed_list_get(list, 1), entries[1]);
    assert_fine();
    assert_fails(ed_list_make(entries, 3), ED_INVALID_ARGUMENT, "entry 0 is NULL");
}

/* ---- Scopes and memory ----------------------------------------------------------------------- */

static void a_scope_holds(void **unused)
{
    (void)unused;
    const int64_t before = ed_memory_stats().live_tensors;
    ed_scope outer = ed_scope_open(), scope = ed_scope_open();
    ed_tensor *t = ed_keep(ed_scalar(1.0));
    ed_scope_close(&scope);
    ed_retain(t);
    ed_scope_close(&outer);
    scope = ed_scope_open();
    assert_ptr_equal(ed_scope_hold(t), t);
    ed_release(t);
    assert_true(ed_item(t) == 1);
    ed_scope_close(&scope);
    assert_int_equal(ed_memory_stats().live_tensors, before);
}

static void memory_beside_objects(void **unused)
{
    (void)unused;
    const int64_t before = ed_memory_live();
    char *memory = ed_memory_alloc(1 << 20);
    assert_non_null(memory);
    assert_true(!memory[0] && !memory[(1 << 20) - 1]);
    assert_true(ed_memory_live() >= before + (1 << 20));
    ed_memory_free(memory);
    assert_int_equal(ed_memory_live(), before);
    {
        ED_SCOPE;
        assert_non_null(ed_scope_alloc(1 << 20));
        assert_true(ed_memory_live() >= before + (1 << 20));
    }
    assert_int_equal(ed_memory_live(), before);
    ED_SCOPE;
    ed_memory_fail_at(0, true);
    void *refused = ed_memory_alloc(8), *refused_too = ed_scope_alloc(8);
    ed_memory_fail_at(-1, false);
    assert_true(!refused && !refused_too);
    failed_with(ED_OUT_OF_MEMORY, "");
}

static void messages_count_from_one(void **unused)
{
    (void)unused;
    ED_SCOPE;
    ed_tensor *entry = NULL;
    assert_int_equal(ed_set_index_base(1), 0);
    assert_fails(ed_list_make(&entry, 1), ED_INVALID_ARGUMENT, "entry 1 is NULL");
    assert_int_equal(ed_set_index_base(0), 1);
    assert_fails(ed_list_make(&entry, 1), ED_INVALID_ARGUMENT, "entry 0 is NULL");
}

/* ---- What an object is ----------------------------------------------------------------------- */

static void layers_say_what_they_are(void **unused)
{
    (void)unused;
    ED_SCOPE;
    ed_layer *dense = ed_layer_dense(2), *named = ed_layer_dense(1, .name = "last");
    assert_null(ed_layer_parent(dense));
    assert_fine();
    ed_layer *model = ed_layer_sequential("mlp", dense, named);
    assert_ptr_equal(ed_layer_parent(dense), model);
    assert_string_equal(ed_layer_kind(dense)->kind.name, "dense");
    assert_string_equal(ed_layer_path(dense), "mlp/dense");
    assert_true(ed_layer_is_named(named) && !ed_layer_is_named(dense));
    assert_true(!ed_layer_is_built(dense) && !ed_layer_weight_count(dense));
    assert_non_null(ed_forward(model, ed_ones(ED_SHAPE(1, 3))));
    assert_true(ed_layer_is_built(dense));
    assert_int_equal(ed_layer_weight_count(dense), 2);
    assert_int_equal(ed_layer_weight_count(model), 0);
    assert_string_equal(ed_variable_name(ed_layer_weight(dense, -2)), "mlp/dense/kernel");
    assert_ptr_equal(ed_layer_weight(dense, 1), ed_layer_weight(dense, -1));
    assert_fails(ed_layer_weight(dense, 2), ED_OUT_OF_RANGE,
                 "mlp/dense: weight 2 is out of bounds: there are 2");
    assert_string_equal(ed_kind_of(ed_optimizer_adam())->name, "adam");
}

static void track_nothing(void *self, ed_tracker *tracker)
{
    (void)self, (void)tracker;
}

static void count_end(void *self)
{
    ++*(int *)self;
}

static void trackables_end_once(void **unused)
{
    static const ed_trackable_class class = {"counted", track_nothing, count_end};
    (void)unused;
    int ends = 0;
    {
        ED_SCOPE;
        assert_non_null(ed_trackable_new(&class, &ends));
        assert_int_equal(ends, 0);
    }
    assert_int_equal(ends, 1);
    ED_SCOPE;
    ed_memory_fail_at(0, true);
    void *refused = ed_trackable_new(&class, &ends);
    ed_memory_fail_at(-1, false);
    assert_null(refused);
    assert_error("");
    assert_int_equal(ends, 1);
}

/* ---- Images ---------------------------------------------------------------------------------- */

static void images_fail_cleanly(void **unused)
{
    (void)unused;
    ED_SCOPE;
    const char *path = in_folder("x.png");
    assert_true(ed_write_png(path, ed_full(ED_SHAPE(2, 2), 0.5)));
    FILE *file = fopen(path, "rb");
    uint8_t head[8] = {0};
    assert_non_null(file);
    assert_int_equal(fread(head, 1, 8, file), 8);
    fclose(file);
    assert_memory_equal(head, "\x89PNG\r\n\x1a\n", 8);
    assert_fails(ed_write_png(path, ed_ones(ED_SHAPE(2))), ED_INVALID_ARGUMENT, "float32[2]");
    assert_fails(ed_write_png(path, ed_ones(ED_SHAPE(2, 2), .dtype = ED_INT32)),
                 ED_INVALID_ARGUMENT, "int32");
    assert_fails(ed_write_png("/nowhere/x.png", ed_ones(ED_SHAPE(2, 2))), ED_IO, "nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_and_headers_agree_on_the_version),
        cmocka_unit_test_teardown(elements_of_each_dtype, check_end),
        cmocka_unit_test_teardown(a_tensor_is_filled_in_place, check_end),
        cmocka_unit_test_teardown(plain_numbers_are_weak, check_end),
        cmocka_unit_test_teardown(lists_may_have_gaps, check_end),
        cmocka_unit_test_teardown(a_scope_holds, check_end),
        cmocka_unit_test_teardown(memory_beside_objects, check_end),
        cmocka_unit_test_teardown(messages_count_from_one, check_end),
        cmocka_unit_test_teardown(layers_say_what_they_are, check_end),
        cmocka_unit_test_teardown(trackables_end_once, check_end),
        cmocka_unit_test_teardown(images_fail_cleanly, check_end),
    };
    return cmocka_run_group_tests_name("binding", tests, folder_begin, folder_end);
}
