/*
 * Every public function, called with NULL: it returns nothing, keeps an error that says so (or none
 * where NULL is a fair question), leaves nothing behind, and keeps the first error when there is
 * one already. A line for each function; a function without a line fails the test, which asks the
 * program for the names that the library exports.
 */
#include "eddy.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

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
    RETURNS(ed_failed, ((void)(ed_failed)(), true));
    RETURNS(ed_error, ((void)(ed_error)(), true));
    RETURNS(ed_error_kind, ((void)(ed_error_kind)(), true));
    RETURNS(ed_set_error_handler, ((ed_set_error_handler)(NULL, NULL), true));
    RETURNS(ed_set_warning_handler, ((ed_set_warning_handler)(NULL, NULL), true));
    {
        ed_scope scope = ed_scope_open();
        RETURNS(ed_scope_open, scope.depth);
        ed_scope_close(&scope);
    }
    RETURNS(ed_scope_close, ((ed_scope_close)(NULL), true));
    RETURNS(ed_keep, !(ed_keep)(NULL));
    RETURNS(ed_retain, !(ed_retain)(NULL));
    RETURNS(ed_release, ((ed_release)(NULL), true));
    RETURNS(ed_num_threads, ((void)(ed_num_threads)(), true));
    RETURNS(ed_interrupt, ((ed_interrupt)(), true));
    RETURNS(ed_interrupted, (ed_interrupted)());
    RETURNS(ed_clear_interrupt, ((ed_clear_interrupt)(), true));
    FAILS(ed_set_num_threads, !(ed_set_num_threads)(0));
    RETURNS(ed_memory_stats, (ed_memory_stats)().live_bytes > 0);
    RETURNS(ed_memory_reset_peak, ((ed_memory_reset_peak)(), true));
    RETURNS(ed_memory_trim, ((void)(ed_memory_trim)(), true));
    RETURNS(ed_memory_set_cache_limit, ((ed_memory_set_cache_limit)(1 << 30), true));
    RETURNS(ed_memory_fail_at, ((ed_memory_fail_at)(-1, false), true));
    RETURNS(ed_memory_has_failed, !(ed_memory_has_failed)());
    FAILS(ed_constant_of, !(ed_constant_of)(ED_DTYPE_NONE, NULL, none));
    FAILS(ed_wrap, !(ed_wrap)(ED_DTYPE_NONE, NULL, none, NULL, NULL));
    FAILS(ed_scalar_with, !(ed_scalar_with)(NULL, NULL));
    RETURNS(ed_as_tensor, !(ed_as_tensor)(NULL));
    RETURNS(ed_number, ((void)(ed_number)(0), true));
    RETURNS(ed_integer, ((void)(ed_integer)(0), true));
    RETURNS(ed_dtype_of, !(ed_dtype_of)(NULL));
    RETURNS(ed_rank, !(ed_rank)(NULL));
    RETURNS(ed_size, !(ed_size)(NULL));
    RETURNS(ed_shape, !(ed_shape)(NULL).values);
    FAILS(ed_dim, !(ed_dim)(NULL, 0));
    RETURNS(ed_strides, !(ed_strides)(NULL).values);
    RETURNS(ed_is_contiguous, !(ed_is_contiguous)(NULL));
    FAILS(ed_item, isnan((ed_item)(NULL)));
    FAILS(ed_item_int64, !(ed_item_int64)(NULL));
    FAILS(ed_copy_to_of, !(ed_copy_to_of)(NULL, ED_DTYPE_NONE, NULL, 0));
    FAILS(ed_data, !(ed_data)(NULL));
    RETURNS(ed_tensor_id, !(ed_tensor_id)(NULL));
    FAILS(ed_to_string, !(ed_to_string)(NULL));
    FAILS(ed_print, !(ed_print)(NULL, NULL));
    FAILS(ed_variable_with, !(ed_variable_with)(NULL, NULL));
    RETURNS(ed_is_variable, !(ed_is_variable)(NULL));
    RETURNS(ed_variable_name, !(ed_variable_name)(NULL));
    RETURNS(ed_variable_is_trainable, !(ed_variable_is_trainable)(NULL));
    FAILS(ed_variable_set_trainable, !(ed_variable_set_trainable)(NULL, false));
    ONE(ed_value);
    FAILS(ed_assign, !(ed_assign)(NULL, NULL));
    RETURNS(ed_list_make, ((void)(ed_list_make)(NULL, 0), true));
    RETURNS(ed_list_size, !(ed_list_size)(NULL));
    FAILS(ed_list_get, !(ed_list_get)(NULL, 0));
    FAILS(ed_list_concat, !(ed_list_concat)(NULL, NULL));
}

/* ops/op.h */
static void call_op(call *now)
{
    ed_call empty = {.op = ed_op_find("add"), .n_outputs = 1};
    RETURNS(ed_fail, !(ed_fail)(ED_IO, "%s", "told"));
    FAILS(ed_call_fail, !(ed_call_fail)(NULL, ED_IO, "%s", "told"));
    FAILS(ed_call_output, !(ed_call_output)(&empty, 1, ED_FLOAT32, 0, NULL));
    FAILS(ed_call_output, !(ed_call_output)(NULL, 0, ED_DTYPE_NONE, 0, NULL));
    FAILS(ed_call_view, !(ed_call_view)(NULL, 0, 0, 0, NULL, NULL, 0));
    FAILS(ed_call_data, !(ed_call_data)(NULL, 0));
    FAILS(ed_execute, !(ed_execute)(NULL, NULL, 0, NULL, NULL));
    FAILS(ed_call_op, !(ed_call_op)(NULL, NULL, 0, NULL));
    FAILS(ed_op_register, !(ed_op_register)(NULL));
    FAILS(ed_as_doubles, !(ed_as_doubles)(NULL));
    FAILS(ed_op_find, !(ed_op_find)(NULL));
    RETURNS(ed_op_count, ((void)(ed_op_count)(), true));
    RETURNS(ed_op_at, ((void)(ed_op_at)(0), true));
}

/* ops/ops.h */
static void call_ops(call *now)
{
    FAILS(ed_zeros_with, !(ed_zeros_with)(none, NULL));
    FAILS(ed_ones_with, !(ed_ones_with)(none, NULL));
    FAILS(ed_full_with, !(ed_full_with)(none, NULL, NULL));
    ONE(ed_zeros_like);
    ONE(ed_ones_like);
    RETURNS(ed_eye_with, ((void)(ed_eye_with)(0, NULL), true));
    RETURNS(ed_range_with, ((void)(ed_range_with)(0, 0, NULL), true));
    RETURNS(ed_linspace_with, ((void)(ed_linspace_with)(0, 0, 0, NULL), true));
    TWO(ed_add);
    TWO(ed_sub);
    TWO(ed_mul);
    TWO(ed_div);
    TWO(ed_floor_div);
    TWO(ed_floor_mod);
    TWO(ed_pow);
    TWO(ed_maximum);
    TWO(ed_minimum);
    TWO(ed_squared_difference);
    TWO(ed_atan2);
    ONE(ed_neg);
    ONE(ed_abs);
    ONE(ed_sign);
    ONE(ed_square);
    ONE(ed_reciprocal);
    ONE(ed_floor);
    ONE(ed_ceil);
    ONE(ed_round);
    FAILS(ed_clip, !(ed_clip)(NULL, 0, 0));
    ONE(ed_exp);
    ONE(ed_expm1);
    ONE(ed_log);
    ONE(ed_log1p);
    ONE(ed_log2);
    ONE(ed_sqrt);
    ONE(ed_rsqrt);
    ONE(ed_sin);
    ONE(ed_cos);
    ONE(ed_tan);
    ONE(ed_asin);
    ONE(ed_acos);
    ONE(ed_atan);
    ONE(ed_sinh);
    ONE(ed_cosh);
    ONE(ed_tanh);
    ONE(ed_asinh);
    ONE(ed_acosh);
    ONE(ed_atanh);
    ONE(ed_erf);
    ONE(ed_erfc);
    ONE(ed_relu);
    ONE(ed_relu6);
    FAILS(ed_leaky_relu, !(ed_leaky_relu)(NULL, 0));
    ONE(ed_elu);
    ONE(ed_selu);
    ONE(ed_sigmoid);
    ONE(ed_softplus);
    ONE(ed_softsign);
    ONE(ed_silu);
    ONE(ed_log_sigmoid);
    ONE(ed_gelu);
    ONE(ed_gelu_tanh);
    ONE(ed_hard_sigmoid);
    TWO(ed_equal);
    TWO(ed_not_equal);
    TWO(ed_less);
    TWO(ed_less_equal);
    TWO(ed_greater);
    TWO(ed_greater_equal);
    TWO(ed_logical_and);
    TWO(ed_logical_or);
    TWO(ed_logical_xor);
    ONE(ed_logical_not);
    ONE(ed_is_nan);
    ONE(ed_is_inf);
    ONE(ed_is_finite);
    FAILS(ed_where, !(ed_where)(NULL, NULL, NULL));
    FAILS(ed_cast, !(ed_cast)(NULL, ED_DTYPE_NONE));
    FAILS(ed_matmul_with, !(ed_matmul_with)(NULL, NULL, NULL));
    FAILS(ed_linear, !(ed_linear)(NULL, NULL, NULL, NULL));
    TWO(ed_bias_add);
    FAILS(ed_reduce_sum_with, !(ed_reduce_sum_with)(NULL, NULL));
    FAILS(ed_reduce_mean_with, !(ed_reduce_mean_with)(NULL, NULL));
    FAILS(ed_reduce_prod_with, !(ed_reduce_prod_with)(NULL, NULL));
    FAILS(ed_reduce_max_with, !(ed_reduce_max_with)(NULL, NULL));
    FAILS(ed_reduce_min_with, !(ed_reduce_min_with)(NULL, NULL));
    FAILS(ed_reduce_any_with, !(ed_reduce_any_with)(NULL, NULL));
    FAILS(ed_reduce_all_with, !(ed_reduce_all_with)(NULL, NULL));
    FAILS(ed_reduce_logsumexp_with, !(ed_reduce_logsumexp_with)(NULL, NULL));
    FAILS(ed_reduce_variance_with, !(ed_reduce_variance_with)(NULL, NULL));
    FAILS(ed_reduce_std_with, !(ed_reduce_std_with)(NULL, NULL));
    FAILS(ed_argmax_with, !(ed_argmax_with)(NULL, NULL));
    FAILS(ed_argmin_with, !(ed_argmin_with)(NULL, NULL));
    FAILS(ed_reshape, !(ed_reshape)(NULL, none));
    FAILS(ed_transpose_with, !(ed_transpose_with)(NULL, NULL));
    FAILS(ed_slice_with, !(ed_slice_with)(NULL, NULL));
    FAILS(ed_index, !(ed_index)(NULL, 0));
    FAILS(ed_expand_dims, !(ed_expand_dims)(NULL, 0));
    FAILS(ed_squeeze_with, !(ed_squeeze_with)(NULL, NULL));
    FAILS(ed_broadcast_to, !(ed_broadcast_to)(NULL, none));
    ONE(ed_flatten);
    ONE(ed_contiguous);
    FAILS(ed_concat_with, !(ed_concat_with)(NULL, NULL));
    FAILS(ed_stack_with, !(ed_stack_with)(NULL, NULL));
    FAILS(ed_split_with, !(ed_split_with)(NULL, 0, NULL));
    FAILS(ed_split_sizes_with, !(ed_split_sizes_with)(NULL, none, NULL));
    FAILS(ed_unstack_with, !(ed_unstack_with)(NULL, NULL));
    FAILS(ed_tile, !(ed_tile)(NULL, none));
    FAILS(ed_pad_with, !(ed_pad_with)(NULL, NULL));
    FAILS(ed_reverse, !(ed_reverse)(NULL, none));
    FAILS(ed_gather_with, !(ed_gather_with)(NULL, NULL, NULL));
    FAILS(ed_one_hot_with, !(ed_one_hot_with)(NULL, 0, NULL));
    FAILS(ed_unsorted_segment_sum, !(ed_unsorted_segment_sum)(NULL, NULL, 0));
    FAILS(ed_softmax_with, !(ed_softmax_with)(NULL, NULL));
    FAILS(ed_log_softmax_with, !(ed_log_softmax_with)(NULL, NULL));
    TWO(ed_softmax_cross_entropy);
    TWO(ed_sparse_softmax_cross_entropy);
    TWO(ed_sigmoid_cross_entropy);
    FAILS(ed_conv2d_with, !(ed_conv2d_with)(NULL, NULL, NULL));
    FAILS(ed_max_pool2d_with, !(ed_max_pool2d_with)(NULL, NULL));
    FAILS(ed_avg_pool2d_with, !(ed_avg_pool2d_with)(NULL, NULL));
    FAILS(ed_batch_norm, !(ed_batch_norm)(NULL, NULL, NULL, 0, NULL, NULL));
    RETURNS(ed_generator_from_seed, ((void)(ed_generator_from_seed)(0), true));
    RETURNS(ed_generator_state, ((ed_generator_state)(NULL, NULL), true));
    FAILS(ed_generator_set_state, !(ed_generator_set_state)(NULL, NULL));
    RETURNS(ed_set_seed, ((ed_set_seed)(0), true));
    FAILS(ed_random_uniform_with, !(ed_random_uniform_with)(none, NULL));
    FAILS(ed_random_normal_with, !(ed_random_normal_with)(none, NULL));
    FAILS(ed_random_truncated_normal_with, !(ed_random_truncated_normal_with)(none, NULL));
    FAILS(ed_random_shuffle_with, !(ed_random_shuffle_with)(NULL, NULL));
    FAILS(ed_dropout_with, !(ed_dropout_with)(NULL, 0, NULL));
    FAILS(ed_assign_add, !(ed_assign_add)(NULL, NULL));
    FAILS(ed_assign_sub, !(ed_assign_sub)(NULL, NULL));
    ONE(ed_stop_gradient);
}

/* autodiff/autodiff.h */
static void call_autodiff(call *now)
{
    RETURNS(ed_tape_begin_with, ((void)(ed_tape_begin_with)(NULL), true));
    FAILS(ed_tape_stop, !(ed_tape_stop)(NULL));
    FAILS(ed_tape_resume, !(ed_tape_resume)(NULL));
    FAILS(ed_tape_reset, !(ed_tape_reset)(NULL));
    FAILS(ed_watch, !(ed_watch)(NULL, x));
    FAILS(ed_tape_watched_variables, !(ed_tape_watched_variables)(NULL));
    FAILS(ed_gradient_tensor, !(ed_gradient_tensor)(NULL, NULL, NULL, NULL));
    FAILS(ed_gradient_list, !(ed_gradient_list)(NULL, NULL, NULL, NULL));
    RETURNS(ed_list_itself, !(ed_list_itself)(NULL));
    FAILS(ed_list_of_one, !(ed_list_of_one)(NULL));
    FAILS(ed_jacobian, !(ed_jacobian)(NULL, NULL, NULL));
    FAILS(ed_batch_jacobian, !(ed_batch_jacobian)(NULL, NULL, NULL));
    FAILS(ed_hessian_vector_product, !(ed_hessian_vector_product)(NULL, NULL, NULL, NULL));
    FAILS(ed_custom_gradient, !(ed_custom_gradient)(NULL, NULL, NULL, NULL, NULL));
    FAILS(ed_recompute, !(ed_recompute)(NULL, NULL, NULL, NULL));
    FAILS(ed_check_gradient_with, !(ed_check_gradient_with)(NULL, NULL, NULL, NULL, NULL));
}

/* optim/optim.h */
static void call_optim(call *now)
{
    RETURNS(ed_optimizer_sgd_with, ((void)(ed_optimizer_sgd_with)(NULL), true));
    RETURNS(ed_optimizer_adam_with, ((void)(ed_optimizer_adam_with)(NULL), true));
    RETURNS(ed_optimizer_rmsprop_with, ((void)(ed_optimizer_rmsprop_with)(NULL), true));
    FAILS(ed_apply_gradients, !(ed_apply_gradients)(NULL, NULL, NULL));
    FAILS(ed_minimize, !(ed_minimize)(NULL, NULL, NULL, NULL));
    FAILS(ed_optimizer_iterations, !(ed_optimizer_iterations)(NULL));
    FAILS(ed_optimizer_learning_rate, !(ed_optimizer_learning_rate)(NULL));
    FAILS(ed_optimizer_set_learning_rate, !(ed_optimizer_set_learning_rate)(NULL, 0));
    FAILS(ed_optimizer_variables, !(ed_optimizer_variables)(NULL));
    FAILS(ed_clip_by_norm, !(ed_clip_by_norm)(NULL, 0));
    FAILS(ed_clip_by_global_norm, !(ed_clip_by_global_norm)(NULL, 0, NULL));
}

/* nn/nn.h */
static void call_nn(call *now)
{
    FAILS(ed_initialize, !(ed_initialize)((ed_initializer){0}, none, ED_DTYPE_NONE));
    FAILS(ed_forward_with, !(ed_forward_with)(NULL, NULL, NULL));
    FAILS(ed_layer_variables, !(ed_layer_variables)(NULL));
    FAILS(ed_layer_trainable_variables, !(ed_layer_trainable_variables)(NULL));
    FAILS(ed_layer_non_trainable_variables, !(ed_layer_non_trainable_variables)(NULL));
    RETURNS(ed_layer_name, ((void)(ed_layer_name)(NULL), true));
    FAILS(ed_layer_child_count, !(ed_layer_child_count)(NULL));
    FAILS(ed_layer_child, !(ed_layer_child)(NULL, 0));
    FAILS(ed_layer_find_child, !(ed_layer_find_child)(NULL, NULL));
    FAILS(ed_layer_summary, !(ed_layer_summary)(NULL));
    FAILS(ed_layer_dense_with, !(ed_layer_dense_with)(0, NULL));
    FAILS(ed_layer_conv2d_with, !(ed_layer_conv2d_with)(0, none, NULL));
    RETURNS(ed_layer_max_pooling2d_with, ((void)(ed_layer_max_pooling2d_with)(NULL), true));
    RETURNS(ed_layer_global_average_pooling2d_with,
            ((void)(ed_layer_global_average_pooling2d_with)(NULL), true));
    RETURNS(ed_layer_batch_normalization_with,
            ((void)(ed_layer_batch_normalization_with)(NULL), true));
    RETURNS(ed_layer_flatten_with, ((void)(ed_layer_flatten_with)(NULL), true));
    RETURNS(ed_layer_dropout_with, ((void)(ed_layer_dropout_with)(0, NULL), true));
    RETURNS(ed_layer_activation_with, ((void)(ed_layer_activation_with)(NULL, NULL), true));
    FAILS(ed_activate, !(ed_activate)(NULL, "relu"));
    FAILS(ed_layer_sequential_of, !(ed_layer_sequential_of)(NULL, NULL, 2));
    FAILS(ed_layer_new, !(ed_layer_new)(NULL, NULL));
    FAILS(ed_layer_state, !(ed_layer_state)(NULL));
    FAILS(ed_layer_add_child, !(ed_layer_add_child)(NULL, NULL));
    FAILS(ed_layer_adopt_weight, !ed_layer_adopt_weight(NULL, NULL, NULL));
    FAILS(ed_layer_add_weight_with, !(ed_layer_add_weight_with)(NULL, NULL, none, NULL));
    RETURNS(ed_metric_mean, ((void)(ed_metric_mean)(NULL), true));
    RETURNS(ed_metric_accuracy, ((void)(ed_metric_accuracy)(NULL), true));
    RETURNS(ed_metric_sparse_categorical_accuracy,
            ((void)(ed_metric_sparse_categorical_accuracy)(NULL), true));
    FAILS(ed_metric_update, !(ed_metric_update)(NULL, NULL));
    FAILS(ed_metric_compare, !(ed_metric_compare)(NULL, NULL, NULL));
    FAILS(ed_metric_result, isnan((ed_metric_result)(NULL)));
    FAILS(ed_metric_reset, !(ed_metric_reset)(NULL));
}

/* io/io.h */
static void call_io(call *now)
{
    const void *const pair[2] = {NULL, NULL}, *const unnamed[2] = {NULL, x};
    ONE(ed_read_npy);
    FAILS(ed_write_npy, !(ed_write_npy)(NULL, NULL));
    FAILS(ed_write_npy, !(ed_write_npy)(NULL, x));
    FAILS(ed_write_npy, !(ed_write_npy)("/tmp/eddy_never_written", NULL));
    ONE(ed_archive_open);
    ONE(ed_archive_format);
    ONE(ed_archive_count);
    FAILS(ed_archive_name, !(ed_archive_name)(NULL, 0));
    FAILS(ed_archive_find, (ed_archive_find)(NULL, NULL) < 0);
    FAILS(ed_archive_find, (ed_archive_find)(NULL, "x") < 0);
    FAILS(ed_archive_dtype, !(ed_archive_dtype)(NULL, 0));
    FAILS(ed_archive_shape, !(ed_archive_shape)(NULL, 0).values);
    FAILS(ed_archive_bytes, !(ed_archive_bytes)(NULL, 0));
    FAILS(ed_archive_tensor, !(ed_archive_tensor)(NULL, 0));
    FAILS(ed_archive_get, !(ed_archive_get)(NULL, NULL));
    FAILS(ed_archive_get, !(ed_archive_get)(NULL, "x"));
    FAILS(ed_archive_verify, !(ed_archive_verify)(NULL, 0));
    FAILS(ed_archive_digest, !(ed_archive_digest)(NULL, 0));
    FAILS(ed_archive_metadata, !(ed_archive_metadata)(NULL, NULL));
    FAILS(ed_archive_metadata, !(ed_archive_metadata)(NULL, "x"));
    FAILS(ed_write_npz_of, !(ed_write_npz_of)(NULL, pair, 2));
    FAILS(ed_write_npz_of, !(ed_write_npz_of)("/tmp/eddy_never_written", NULL, 2));
    FAILS(ed_write_npz_of, !(ed_write_npz_of)("/tmp/eddy_never_written", pair, 2));
    FAILS(ed_write_safetensors_of, !(ed_write_safetensors_of)(NULL, pair, 2));
    FAILS(ed_write_safetensors_of, !(ed_write_safetensors_of)("/tmp/eddy_never_written", NULL, 2));
    FAILS(ed_write_safetensors_of,
          !(ed_write_safetensors_of)("/tmp/eddy_never_written", unnamed, 2));
}

/* data/data.h */
static void call_data(call *now)
{
    ONE(ed_read_idx);
    FAILS(ed_dataset_from_tensors_with, !(ed_dataset_from_tensors_with)(NULL, NULL, NULL));
    FAILS(ed_dataset_mnist_with, !(ed_dataset_mnist_with)(NULL, NULL));
    FAILS(ed_dataset_next, !(ed_dataset_next)(NULL, NULL, NULL));
    FAILS(ed_dataset_begin, !(ed_dataset_begin)(NULL));
    FAILS(ed_dataset_rewind, !(ed_dataset_rewind)(NULL));
    RETURNS(ed_dataset_rows, !(ed_dataset_rows)(NULL));
    RETURNS(ed_dataset_batches, !(ed_dataset_batches)(NULL));
    ONE(ed_dataset_x);
    ONE(ed_dataset_y);
}

/* track/track.h: what is called in the wrong place is like NULL */
static void call_track(call *now)
{
    FAILS(ed_trackable_new, !(ed_trackable_new)(NULL, NULL));
    ONE(ed_counter);
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
    FAILS(ed_checkpoint_save_counter, !(ed_checkpoint_save_counter)(NULL));
    FAILS(ed_checkpoint_restore_with, !(ed_checkpoint_restore_with)(NULL, "x", NULL));
    FAILS(ed_checkpoint_read_with, !(ed_checkpoint_read_with)(NULL, "x", NULL));
    FAILS(ed_restoration_count, !(ed_restoration_count)(NULL, ED_RESTORED));
    FAILS(ed_restoration_path, !(ed_restoration_path)(NULL, ED_RESTORED, 0));
    ONE(ed_restoration_report);
    ONE(ed_restoration_assert_consumed);
    ONE(ed_restoration_assert_existing_objects_matched);
    ONE(ed_restoration_assert_nontrivial_match);
    ONE(ed_restoration_expect_partial);
}

static void call_manager(call *now)
{
    FAILS(ed_checkpoint_manager_with, !(ed_checkpoint_manager_with)(NULL, "x", NULL));
    FAILS(ed_manager_save_with, !(ed_manager_save_with)(NULL, NULL));
    ONE(ed_manager_wait);
    ONE(ed_manager_restore_or_initialize);
    ONE(ed_manager_restoration);
    ONE(ed_manager_skipped);
    ONE(ed_manager_count);
    FAILS(ed_manager_checkpoint, !(ed_manager_checkpoint)(NULL, 0));
    ONE(ed_manager_latest);
    ONE(ed_manager_best);
    ONE(ed_latest_checkpoint);
}

static void call_all(call *now)
{
    call_tensor(now);
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

static void null_is_an_error(void **state)
{
    (void)state;
    static call now[2];
    ED_SCOPE;
    x = ed_scalar(1.0);
    now[1].error_before = true;
    call_all(&now[0]);
    call_all(&now[1]);
    printf("test_null: %lld calls\n", (long long)(now[0].calls + now[1].calls));
    assert_int_equal(now[0].failures + now[1].failures, 0);
}

static bool has_line(const call *now, const char *name)
{
    for (int64_t i = 0; i < now->n_names; i++)
        if (!strcmp(now->names[i], name)) return true;
    return false;
}

/* The program is linked with -rdynamic and so exports what the library does. */
static void every_function_has_a_line(void **state)
{
    (void)state;
    static call now;
    ED_SCOPE;
    x = ed_scalar(1.0);
    call_all(&now);
    char command[64], line[512];
    snprintf(command, sizeof command, "nm -D --defined-only /proc/%d/exe", (int)getpid());
    FILE *names = popen(command, "r");
    assert_non_null(names);
    int functions = 0, without = 0;
    while (fgets(line, sizeof line, names)) {
        char *name = strstr(line, " T ed_");
        if (!name) continue;
        name += 3;
        name[strcspn(name, "\n")] = 0;
        functions++;
        if (strcmp(name, "ed_clear_error") && !has_line(&now, name)) {
            printf("%s has no line\n", name);
            without++;
        }
    }
    assert_int_equal(pclose(names), 0);
    assert_true(functions > 200);
    assert_int_equal(without, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_an_error),
        cmocka_unit_test(every_function_has_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
