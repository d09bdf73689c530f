/*
 * Every public function, called with NULL: it returns nothing, keeps an error that says so (or none
 * where NULL is a fair question), leaves nothing behind, and keeps the first error when there is
 * one already. The test asks the program for the names that the library exports. A function is
 * called with zeros for all arguments unless it has a line below: those that may succeed, return
 * something else than a pointer, a number or a truth, or are called in several ways.
 */
#include "eddy.h"
#include "tests/folders.h"
#include <dlfcn.h>
#include <math.h>

/* What is known while the calls are made. */
typedef struct call {
    bool error_before; /* they find an error kept */
    ed_memory before;
    int failures;
    int64_t calls, n_names;
    const char *names[2000];
} call;

static ed_tensor *x; /* something that is not NULL, for the other operand */
static const ed_ints none;

static void begin(call *now, const char *name)
{
    ed_clear_error();
    if (now->error_before) ed_fail(ED_IO, "the first error");
    if (now->n_names < 2000) now->names[now->n_names++] = name;
    now->before = ed_memory_stats();
}

static void complain(call *now, const char *text, const char *what)
{
    now->failures++;
    printf("%s%s: %s; the error: %s\n", text, now->error_before ? ", an error being kept" : "",
           what, ed_error());
}

static void end(call *now, const char *text, bool nothing, bool must_fail)
{
    ed_memory after = ed_memory_stats();
    now->calls++;
    if (!nothing) complain(now, text, "does not return nothing");
    if (now->error_before && strcmp(ed_error(), "the first error"))
        complain(now, text, "the first error is lost");
    if (must_fail && !*ed_error()) complain(now, text, "no error is kept");
    if (must_fail && after.live_tensors != now->before.live_tensors)
        complain(now, text, "tensors stay");
}

/* `nothing` is the call and whether it returned nothing. FAILS: with an error; RETURNS: perhaps. */
#define CALL(name, nothing, must_fail)                                                             \
    do {                                                                                           \
        ED_SCOPE;                                                                                  \
        begin(now, #name);                                                                         \
        bool ok_ = nothing;                                                                        \
        end(now, #nothing, ok_, must_fail);                                                        \
    } while (0)
#define FAILS(name, nothing)   CALL(name, nothing, true)
#define RETURNS(name, nothing) CALL(name, nothing, false)

/* Functions of one or two tensors, which fail if any is NULL. */
#define ONE(name) FAILS(name, !(name)(NULL))
#define TWO(name)                                                                                  \
    FAILS(name, !(name)(NULL, NULL));                                                              \
    FAILS(name, !(name)(x, NULL));                                                                 \
    FAILS(name, !(name)(NULL, x))

/* tensor/tensor.h */
static void call_tensor(call *now)
{
    RETURNS(ed_dtype_name, !strcmp((ed_dtype_name)(ED_DTYPE_NONE), "none"));
    RETURNS(ed_dtype_size, !(ed_dtype_size)(ED_DTYPE_NONE));
    RETURNS(ed_dtype_is_float, !(ed_dtype_is_float)(ED_DTYPE_NONE));
    FAILS(ed_dtype_load, isnan((ed_dtype_load)(ED_FLOAT32, NULL, 0)));
    FAILS(ed_dtype_store, !(ed_dtype_store)(ED_FLOAT32, NULL, 0, 1));
    RETURNS(ed_dtype_holds, !(ed_dtype_holds)(ED_DTYPE_NONE, 1));
    RETURNS(ed_set_index_base, !(ed_set_index_base)(0));
    RETURNS(ed_failed, ((void)(ed_failed)(), true));
    RETURNS(ed_error, ((void)(ed_error)(), true));
    RETURNS(ed_error_kind, ((void)(ed_error_kind)(), true));
    RETURNS(ed_error_place, !(ed_error_place)());
    RETURNS(ed_set_error_handler, ((ed_set_error_handler)(NULL, NULL), true));
    RETURNS(ed_set_warning_handler, ((ed_set_warning_handler)(NULL, NULL), true));
    {
        ed_scope scope = ed_scope_open();
        RETURNS(ed_scope_open, scope.depth);
        ed_scope_close(&scope);
    }
    RETURNS(ed_scope_close, ((ed_scope_close)(NULL), true));
    RETURNS(ed_keep, !(ed_keep)(NULL));
    FAILS(ed_scope_hold, !(ed_scope_hold)(NULL));
    RETURNS(ed_scope_alloc, (ed_scope_alloc)(0));
    RETURNS(ed_retain, !(ed_retain)(NULL));
    RETURNS(ed_release, ((ed_release)(NULL), true));
    RETURNS(ed_version, ((void)(ed_version)(), true));
    RETURNS(ed_num_threads, ((void)(ed_num_threads)(), true));
    RETURNS(ed_interrupt, ((ed_interrupt)(), true));
    RETURNS(ed_interrupted, (ed_interrupted)());
    RETURNS(ed_clear_interrupt, ((ed_clear_interrupt)(), true));
    FAILS(ed_set_num_threads, !(ed_set_num_threads)(0));
    RETURNS(ed_memory_stats, (ed_memory_stats)().live_bytes > 0);
    RETURNS(ed_memory_live, (ed_memory_live)() > 0);
    {
        void *memory;
        RETURNS(ed_memory_alloc, (memory = (ed_memory_alloc)(8)) != NULL);
        RETURNS(ed_memory_free, ((ed_memory_free)(memory), (ed_memory_free)(NULL), true));
    }
    RETURNS(ed_memory_reset_peak, ((ed_memory_reset_peak)(), true));
    RETURNS(ed_memory_trim, ((void)(ed_memory_trim)(), true));
    RETURNS(ed_memory_set_cache_limit, ((ed_memory_set_cache_limit)(1 << 30), true));
    RETURNS(ed_memory_fail_at, ((ed_memory_fail_at)(-1, false), true));
    RETURNS(ed_memory_has_failed, !(ed_memory_has_failed)());
    FAILS(ed_constant_of, !(ed_constant_of)(ED_DTYPE_NONE, NULL, none));
    FAILS(ed_empty, !(ed_empty)(ED_FLOAT32, ED_SHAPE(2), NULL));
    RETURNS(ed_is_weak, !(ed_is_weak)(NULL));
    FAILS(ed_constant_within, !(ed_constant_within)(ED_DTYPE_NONE, NULL, 0, none));
    FAILS(ed_wrap, !(ed_wrap)(ED_DTYPE_NONE, NULL, none, NULL, NULL));
    FAILS(ed_scalar_with, !(ed_scalar_with)(NULL, NULL));
    RETURNS(ed_as_tensor, !(ed_as_tensor)(NULL));
    RETURNS(ed_number, ((void)(ed_number)(0), true));
    RETURNS(ed_integer, ((void)(ed_integer)(0), true));
    RETURNS(ed_dtype_of, !(ed_dtype_of)(NULL));
    RETURNS(ed_rank, !(ed_rank)(NULL));
    RETURNS(ed_size, !(ed_size)(NULL));
    RETURNS(ed_shape, !(ed_shape)(NULL).values);
    FAILS(ed_broadcast_shapes, !(ed_broadcast_shapes)(none, none).values);
    FAILS(ed_dim, !(ed_dim)(NULL, 0));
    RETURNS(ed_strides, !(ed_strides)(NULL).values);
    RETURNS(ed_is_contiguous, !(ed_is_contiguous)(NULL));
    FAILS(ed_item, isnan((ed_item)(NULL)));
    FAILS(ed_item_at_of, isnan((ed_item_at_of)(NULL, (ed_ints){0})));
    FAILS(ed_item_int64, !(ed_item_int64)(NULL));
    FAILS(ed_copy_to_of, !(ed_copy_to_of)(NULL, ED_DTYPE_NONE, NULL, 0));
    FAILS(ed_data, !(ed_data)(NULL));
    RETURNS(ed_tensor_id, !(ed_tensor_id)(NULL));
    FAILS(ed_to_string_with, !(ed_to_string_with)(NULL, NULL));
    FAILS(ed_print_with, !(ed_print_with)(NULL, NULL, NULL));
    FAILS(ed_variable_with, !(ed_variable_with)(NULL, NULL));
    RETURNS(ed_is_variable, !(ed_is_variable)(NULL));
    RETURNS(ed_is_symbolic, !(ed_is_symbolic)(NULL));
    RETURNS(ed_is_indexed_slices, !(ed_is_indexed_slices)(NULL));
    RETURNS(ed_variable_name, !(ed_variable_name)(NULL));
    RETURNS(ed_variable_is_trainable, !(ed_variable_is_trainable)(NULL));
    FAILS(ed_variable_set_trainable, !(ed_variable_set_trainable)(NULL, false));
    RETURNS(ed_list_make, ((void)(ed_list_make)(NULL, 0), true));
    FAILS(ed_list_make_optional, !(ed_list_make_optional)(NULL, 1));
    RETURNS(ed_list_size, !(ed_list_size)(NULL));
    FAILS(ed_list_get, !(ed_list_get)(NULL, 0));
    FAILS(ed_list_concat, !(ed_list_concat)(NULL, NULL));
}

/* tensor/schema.h */
static void call_schema(call *now)
{
    RETURNS(ed_kind_at, ((void)(ed_kind_at)(0), true));
    RETURNS(ed_kind_count, ((void)(ed_kind_count)(), true));
    RETURNS(ed_kind_of, !(ed_kind_of)(NULL));
    RETURNS(ed_options_of, !(ed_options_of)(NULL));
}

/* ops/op.h */
static void call_op(call *now)
{
    ed_tensor *output = NULL;
    ed_call empty = {.op = ed_op_find("add"), .n_outputs = 1, .outputs = &output};
    RETURNS(ed_fail, !(ed_fail)(ED_IO, "%s", "told"));
    FAILS(ed_call_fail, !(ed_call_fail)(NULL, ED_IO, "%s", "told"));
    FAILS(ed_call_output, !(ed_call_output)(&empty, 1, ED_FLOAT32, 0, NULL));
    FAILS(ed_call_output, !(ed_call_output)(NULL, 0, ED_DTYPE_NONE, 0, NULL));
    FAILS(ed_call_view, !(ed_call_view)(NULL, 0, 0, 0, NULL, NULL, 0));
    FAILS(ed_call_data, !(ed_call_data)(NULL, 0));
    FAILS(ed_call_outputs, !(ed_call_outputs)(NULL, 1));
    FAILS(ed_call_outputs, !(ed_call_outputs)(&empty, 1));
    FAILS(ed_call_plan, !(ed_call_plan)(NULL, 1));
    FAILS(ed_call_plan, !(ed_call_plan)(&empty, 1));
    RETURNS(ed_attrs_free, ((ed_attrs_free)(NULL, NULL), true));
    FAILS(ed_execute, !(ed_execute)(NULL, NULL, 0, NULL, NULL));
    FAILS(ed_call_op, !(ed_call_op)(NULL, NULL, 0, NULL));
    FAILS(ed_execute_list, !(ed_execute_list)(NULL, NULL, 0, NULL));
    RETURNS(ed_unlisten, !(ed_unlisten)(NULL));
    RETURNS(ed_attrs_free, ((ed_attrs_free)(NULL, NULL), true));
    FAILS(ed_op_register, !(ed_op_register)(NULL));
    FAILS(ed_as_doubles, !(ed_as_doubles)(NULL));
    FAILS(ed_op_find, !(ed_op_find)(NULL));
    RETURNS(ed_op_count, ((void)(ed_op_count)(), true));
    RETURNS(ed_op_at, ((void)(ed_op_at)(0), true));
}

/* ops/ops.h */
static void call_ops(call *now)
{
    RETURNS(ed_eye_with, ((void)(ed_eye_with)(0, NULL), true));
    RETURNS(ed_sparse_eye_with, ((void)(ed_sparse_eye_with)(0, NULL), true));
    FAILS(ed_sparse_shape, !(ed_sparse_shape)(NULL).values);
    RETURNS(ed_random_permutation_with, ((void)(ed_random_permutation_with)(0, NULL), true));
    RETURNS(ed_range_with, ((void)(ed_range_with)(0, 0, NULL), true));
    RETURNS(ed_linspace_with, ((void)(ed_linspace_with)(0, 0, 0, NULL), true));
    RETURNS(ed_generator_from_seed, ((void)(ed_generator_from_seed)(0), true));
    RETURNS(ed_generator_state, ((ed_generator_state)(NULL, NULL), true));
    RETURNS(ed_set_seed, ((ed_set_seed)(0), true));
}

/* autodiff/autodiff.h */
static void call_autodiff(call *now)
{
    RETURNS(ed_tape_begin_with, ((void)(ed_tape_begin_with)(NULL), true));
    FAILS(ed_watch, !(ed_watch)(NULL, x));
    RETURNS(ed_list_itself, !(ed_list_itself)(NULL));
}

/* optim/ */
static void call_optim(call *now)
{
    FAILS(ed_schedule_at, isnan((ed_schedule_at)(NULL, 1)));
    RETURNS(ed_variable_constraint, !(ed_variable_constraint)(NULL));
    FAILS(ed_optimizer_learning_rate, (ed_optimizer_learning_rate)(NULL) == 0);
    FAILS(ed_optimizer_loss_scale, (ed_optimizer_loss_scale)(NULL) == 0);
}

/* nn/, model/ */
static void call_nn(call *now)
{
    RETURNS(ed_history_count, !(ed_history_count)(NULL));
    RETURNS(ed_history_epochs, !(ed_history_epochs)(NULL));
    RETURNS(ed_layer_name, ((void)(ed_layer_name)(NULL), true));
    RETURNS(ed_layer_is_trainable, !(ed_layer_is_trainable)(NULL));
    RETURNS(ed_layer_is_named, !(ed_layer_is_named)(NULL));
    RETURNS(ed_layer_is_built, !(ed_layer_is_built)(NULL));
    FAILS(ed_activate, !(ed_activate)(NULL, "relu"));
    FAILS(ed_layer_sequential_of, !(ed_layer_sequential_of)(NULL, NULL, 2));
    FAILS(ed_metric_result, isnan((ed_metric_result)(NULL)));
    FAILS(ed_model_input_index, (ed_model_input_index)(NULL, NULL) == -1);
    FAILS(ed_model_output_index, (ed_model_output_index)(NULL, NULL) == -1);
}

/* io/io.h */
static void call_io(call *now)
{
    const void *const pair[2] = {NULL, NULL}, *const unnamed[2] = {NULL, x};
    static const char never[] = "/tmp/eddy_never_written.npz";
    FAILS(ed_write_npy, !(ed_write_npy)(NULL, x));
    FAILS(ed_write_npy, !(ed_write_npy)("/tmp/eddy_never_written", NULL));
    FAILS(ed_archive_find, (ed_archive_find)(NULL, NULL) < 0);
    FAILS(ed_archive_find, (ed_archive_find)(NULL, "x") < 0);
    FAILS(ed_archive_shape, !(ed_archive_shape)(NULL, 0).values);
    FAILS(ed_archive_get, !(ed_archive_get)(NULL, "x"));
    FAILS(ed_archive_metadata, !(ed_archive_metadata)(NULL, "x"));
    FAILS(ed_archive_write_with, !(ed_archive_write_with)(NULL, (ed_named){pair, 2}, NULL));
    FAILS(ed_archive_write_with, !(ed_archive_write_with)(never, (ed_named){NULL, 2}, NULL));
    FAILS(ed_archive_write_with, !(ed_archive_write_with)(never, (ed_named){pair, 2}, NULL));
    FAILS(ed_archive_write_with, !(ed_archive_write_with)(never, (ed_named){unnamed, 2}, NULL));
}

/* data/data.h */
static void call_data(call *now)
{
    FAILS(ed_write_png, !(ed_write_png)(NULL, x));
    FAILS(ed_write_png, !(ed_write_png)("/tmp/eddy_never_written", NULL));
    RETURNS(ed_dataset_rows, !(ed_dataset_rows)(NULL));
    RETURNS(ed_dataset_batches, !(ed_dataset_batches)(NULL));
}

/* track/track.h: what is called in the wrong place is like NULL */
static void call_track(call *now)
{
    FAILS(ed_track, ((ed_track)(NULL, NULL, NULL), true));
    FAILS(ed_track_int64, ((ed_track_int64)(NULL, "x", NULL), true));
    FAILS(ed_track_float64, ((ed_track_float64)(NULL, "x", NULL), true));
    FAILS(ed_track_state, ((ed_track_state)(NULL, "x", NULL, NULL), true));
    RETURNS(ed_default_generator, (ed_default_generator)() != NULL);
}

/* train/train.h: saving and restoring */
static void call_checkpoint(call *now)
{
    FAILS(ed_checkpoint_of, !(ed_checkpoint_of)(NULL, 1));
    FAILS(ed_checkpoint_of, !(ed_checkpoint_of)((const void *[]){NULL, NULL}, 2));
    FAILS(ed_checkpoint_of, !(ed_checkpoint_of)((const void *[]){"a", NULL}, 2));
    FAILS(ed_checkpoint_save, !(ed_checkpoint_save)(NULL, "x"));
    FAILS(ed_checkpoint_write, !(ed_checkpoint_write)(NULL, "x"));
    FAILS(ed_checkpoint_restore_with, !(ed_checkpoint_restore_with)(NULL, "x", NULL));
    FAILS(ed_checkpoint_read_with, !(ed_checkpoint_read_with)(NULL, "x", NULL));
    FAILS(ed_restoration_count, !(ed_restoration_count)(NULL, ED_RESTORED));
    FAILS(ed_restoration_path, !(ed_restoration_path)(NULL, ED_RESTORED, 0));
}

static void call_manager(call *now)
{
    FAILS(ed_checkpoint_manager_with, !(ed_checkpoint_manager_with)(NULL, "x", NULL));
}

static void call_all(call *now)
{
    call_tensor(now);
    call_schema(now);
    call_op(now);
    call_ops(now);
    call_autodiff(now);
    call_optim(now);
    call_nn(now);
    call_io(now);
    call_data(now);
    call_track(now);
    call_checkpoint(now);
    call_manager(now);
    ed_clear_error();
}

static bool has_line(const call *now, const char *name)
{
    for (int64_t i = 0; i < now->n_names; i++)
        if (!strcmp(now->names[i], name)) return true;
    return false;
}

/* The maker of a kind of object: NULL means its defaults, which may do. */
static bool is_maker(const char *function)
{
    bool makes = false;
    for (int i = 0; i < ed_kind_count(); i++) {
        char name[128];
        const ed_kind *kind = ed_kind_at(i);
        snprintf(name, sizeof name, "ed_%s_%s_with", kind->family, kind->name);
        makes |= !strcmp(name, function);
    }
    return makes;
}

/* Integer arguments, pointers among them, come in registers: more of them than a function has do no
 * harm. */
static void call_with_zeros(call *now, const char *name, void *function)
{
    typedef int64_t any_function(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                                 int64_t, int64_t, int64_t, int64_t, int64_t);
    ED_SCOPE;
    const bool may_return = is_maker(name);
    begin(now, name);
    now->n_names--; /* no line, and the name does not stay */
    const int64_t result = ((any_function *)function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    /* A bool is its lowest byte: a function leaves anything in the register's upper half. */
    end(now, name, may_return || (result & 0xff) == 0, !may_return);
}

/* The library that programs link with says what is public. */
static void each_function(void (*take)(call *now, const char *name, void *function), call *now)
{
    char command[4200], line[512];
    snprintf(command, sizeof command, "nm -D --defined-only '%s'", built("libeddy.so"));
    FILE *names = popen(command, "r");
    assert_non_null(names);
    int functions = 0;
    while (fgets(line, sizeof line, names)) {
        char *name = strstr(line, " T ed_");
        if (!name) continue;
        name += 3;
        name[strcspn(name, "\n")] = 0;
        functions++;
        void *function = dlsym(RTLD_DEFAULT, name);
        assert_non_null(function);
        if (strcmp(name, "ed_clear_error") && !has_line(now, name)) take(now, name, function);
    }
    assert_int_equal(pclose(names), 0);
    assert_true(functions > 200);
}

static void null_is_an_error(void **state)
{
    (void)state;
    static call now[2];
    ED_SCOPE;
    x = ed_scalar(1.0);
    now[1].error_before = true;
    for (int i = 0; i < 2; i++) {
        call_all(&now[i]);
        each_function(call_with_zeros, &now[i]);
        ed_clear_error();
    }
    printf("test_null: %lld calls\n", (long long)(now[0].calls + now[1].calls));
    assert_int_equal(now[0].failures + now[1].failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
