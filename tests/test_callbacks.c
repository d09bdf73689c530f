/*
 * Functions that the library calls and that do more than they may: they close scopes from before
 * the call, leave by longjmp, ask for their own gradient. An error handler may leave by longjmp.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/skip.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Closing scopes of others ---------------------------------------------------------------- */

static ed_scope outermost, between;
static int closed;

/* What every function below does. Scopes of its own it may open and close as it likes. */
static void close_others(void)
{
    ed_scope own = ed_scope_open();
    ed_scope_alloc(100);
    ed_scope_close(&own);
    ed_scope_open();
    ed_scope_close(closed % 2 ? &between : &outermost);
    failed_with(ED_FAILED_PRECONDITION, "scope_close: the scope is from before");
    closed++;
}

static ed_tensor *square(ed_list *inputs, void *user)
{
    ed_tensor *y = ed_square(ed_list_get(inputs, 0));
    (void)user;
    close_others();
    return y;
}

static ed_list *gradient_of_square(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    ed_tensor *dx = ed_mul(ed_mul(ed_list_get(inputs, 0), 2.0), dy);
    (void)y;
    (void)user;
    close_others();
    return ed_list_of(dx);
}

static void release_user(void *user)
{
    (void)user;
    close_others();
}

static void closing_functions(void)
{
    ed_tensor *x = ed_constant(((double[]){3}), ED_SHAPE());
    ed_list *inputs = ed_list_of(x);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *again = ed_recompute(square, inputs, NULL, release_user);
    ed_tensor *custom = ed_custom_gradient(square, gradient_of_square, inputs, NULL, NULL);
    assert_true(ed_item(again) == 9 && ed_item(custom) == 9);
    assert_true(ed_item(ed_gradient(tape, again, x)) == 6);
    assert_true(ed_item(ed_gradient(tape, custom, x)) == 6);
    assert_true(ed_check_gradient(square, inputs, NULL, NULL));
    assert_int_equal(closed >= 6, 1);
    closed = 0;
    assert_true(ed_item(ed_list_get(ed_hessian_vector_product(square, inputs, inputs, NULL), 0)) ==
                6);
    assert_int_equal(closed, 1);
}

static void hear(ed_listener *self, const ed_call *call)
{
    (void)self;
    (void)call;
    close_others();
}

static bool closing_infer(ed_call *call)
{
    const ed_tensor *x = call->operands[0];
    close_others();
    return ed_call_output(call, 0, ed_dtype_of(x), ed_rank(x), ed_shape(x).values);
}

static bool closing_kernel(ed_call *call)
{
    float *y = ed_call_data(call, 0);
    close_others();
    y[0] = 5;
    return true;
}

static bool closing_gradient(const ed_gradient_call *g)
{
    close_others();
    g->dx[0] = ed_mul(g->dy[0], 7.0);
    return true;
}

static const ed_op closing_op = {
    .name = "closes",
    .doc = "closes scopes",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .infer = closing_infer,
    .kernel = closing_kernel,
    .gradient = closing_gradient,
};

static void closing_ops(void)
{
    ed_listener listener = {.before = hear, .after = hear};
    ed_tensor *x = ed_ones(ED_SHAPE(1));
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    assert_true(ed_listen(&listener));
    ed_tensor *y = ed_call_op(&closing_op, &x, 1, NULL);
    assert_true(ed_unlisten(&listener));
    assert_true(ed_item(y) == 5);
    assert_true(ed_item(ed_gradient(tape, y, x)) == 7);
    assert_int_equal(closed, 5);
}

static bool closing_layer(ed_layer *layer)
{
    (void)layer;
    close_others();
    return true;
}

static bool closing_build(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    return closing_layer(layer);
}

static bool closing_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *y = ed_add(call->inputs[0], 1.0);
    closing_layer(layer);
    return ed_layer_return(call, y);
}

static void closing_destroy(ed_layer *layer)
{
    closing_layer(layer);
}

static void closing_layers(void)
{
    static const ed_layer_class closes = {.kind.name = "closes",
                                          .init = closing_layer,
                                          .build = closing_build,
                                          .forward = closing_forward,
                                          .destroy = closing_destroy};
    {
        ED_SCOPE;
        ed_layer *model =
            ed_layer_sequential("m", ed_layer_new(&closes, NULL), ed_layer_new(&closes, NULL));
        assert_true(ed_item(ed_forward(model, ed_ones(ED_SHAPE(1)))) == 3);
    }
    assert_int_equal(closed, 8);
}

static void closing_deleter(void *data, void *user)
{
    (void)data;
    (void)user;
    close_others();
}

static void closing_memory(void)
{
    static float data[2];
    {
        ED_SCOPE;
        ed_wrap(ED_FLOAT32, data, ED_SHAPE(2), closing_deleter, NULL);
    }
    assert_int_equal(closed, 1);
}

/* Both scopes outside stay open, whatever is called within, and close afterwards. */
static void within_scopes(void (*f)(void))
{
    const int64_t before = ed_memory_stats().live_tensors;
    closed = 0;
    outermost = ed_scope_open();
    ed_tensor *first = ed_ones(ED_SHAPE(3));
    between = ed_scope_open();
    ed_tensor *second = ed_ones(ED_SHAPE(3));
    f();
    assert_true(ed_item(ed_reduce_sum(ed_add(first, second))) == 6);
    ed_scope_close(&between);
    ed_scope_close(&outermost);
    assert_fine();
    assert_int_equal(ed_memory_stats().live_tensors, before);
}

static void scopes_of_callers_stay_open(void **state)
{
    (void)state;
    within_scopes(closing_functions);
    within_scopes(closing_ops);
    within_scopes(closing_layers);
    within_scopes(closing_memory);
}

/* ---- Continuing after an error --------------------------------------------------------------- */

static bool complain(void)
{
    ed_fail(ED_IO, "complaint");
    return true;
}

static bool complaining_infer(ed_call *call)
{
    const ed_tensor *x = call->operands[0];
    return complain() && ed_call_output(call, 0, ed_dtype_of(x), ed_rank(x), ed_shape(x).values);
}

static bool complaining_kernel(ed_call *call)
{
    *(float *)ed_call_data(call, 0) = 5;
    return complain();
}

static bool fine_infer(ed_call *call)
{
    const ed_tensor *x = call->operands[0];
    return ed_call_output(call, 0, ed_dtype_of(x), ed_rank(x), ed_shape(x).values);
}

static bool fine_kernel(ed_call *call)
{
    *(float *)ed_call_data(call, 0) = 5;
    return true;
}

static bool complaining_op_gradient(const ed_gradient_call *g)
{
    g->dx[0] = g->dy[0];
    return complain();
}

#define COMPLAINER(i, k, g)                                                                        \
    {                                                                                              \
        .name = "complains", .doc = "keeps an error", .operands = {{"x", ED_SET_FLOAT, 'T'}},      \
        .infer = i, .kernel = k, .gradient = g                                                     \
    }
static const ed_op complaining_ops[] = {
    COMPLAINER(complaining_infer, fine_kernel, complaining_op_gradient),
    COMPLAINER(fine_infer, complaining_kernel, complaining_op_gradient),
    COMPLAINER(fine_infer, fine_kernel, complaining_op_gradient)};

static bool call_infer(ed_list *inputs)
{
    ed_tensor *x = ed_list_get(inputs, 0);
    return ed_call_op(&complaining_ops[0], &x, 1, NULL);
}

static bool call_kernel(ed_list *inputs)
{
    ed_tensor *x = ed_list_get(inputs, 0);
    return ed_call_op(&complaining_ops[1], &x, 1, NULL);
}

static bool call_op_gradient(ed_list *inputs)
{
    ed_tensor *x = ed_list_get(inputs, 0);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    return ed_gradient(tape, ed_call_op(&complaining_ops[2], &x, 1, NULL), x);
}

static bool complaining_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return complain() && ed_layer_return(call, call->inputs[0]);
}

static bool call_layer(ed_list *inputs)
{
    static const ed_layer_class complains = {.kind.name = "complains",
                                             .forward = complaining_forward};
    return ed_forward(ed_layer_sequential("m", ed_layer_new(&complains, NULL)),
                      ed_list_get(inputs, 0));
}

static ed_tensor *complaining_square(ed_list *inputs, void *user)
{
    (void)user;
    complain();
    return ed_square(ed_list_get(inputs, 0));
}

static ed_list *complaining_gradient(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    (void)inputs, (void)y, (void)user;
    complain();
    return ed_list_of(dy);
}

static ed_tensor *plain_square(ed_list *inputs, void *user)
{
    (void)user;
    return ed_square(ed_list_get(inputs, 0));
}

static bool call_recompute(ed_list *inputs)
{
    return ed_recompute(complaining_square, inputs, NULL, NULL);
}

static bool call_custom_gradient(ed_list *inputs)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, ed_list_get(inputs, 0));
    ed_tensor *y = ed_custom_gradient(plain_square, complaining_gradient, inputs, NULL, NULL);
    return ed_gradient(tape, y, ed_list_get(inputs, 0));
}

static ed_list *doubles(ed_list *inputs)
{
    return ed_list_of(ed_cast(ed_list_get(inputs, 0), ED_FLOAT64));
}

static bool call_check(ed_list *inputs)
{
    return ed_check_gradient(complaining_square, doubles(inputs), NULL, NULL);
}

static bool call_hessian(ed_list *inputs)
{
    return ed_hessian_vector_product(complaining_square, inputs, inputs, NULL);
}

static bool initialize(void *user)
{
    (void)user;
    return complain();
}

static bool call_manager(ed_list *inputs)
{
    char folder[] = "/tmp/eddy-callbacks-XXXXXX";
    (void)inputs;
    if (!mkdtemp(folder)) return false;
    bool ok;
    {
        ED_SCOPE;
        ed_checkpoint_manager *manager = ed_checkpoint_manager(ed_checkpoint("v", ed_variable(1.0)),
                                                               folder, .initialize = initialize);
        ok = ed_manager_restore_or_initialize(manager);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return !system(command) && ok;
}

static const struct {
    const char *name;
    bool (*call)(ed_list *inputs);
} complaining[] = {
    {"infer", call_infer},
    {"kernel", call_kernel},
    {"op's gradient", call_op_gradient},
    {"layer", call_layer},
    {"recompute", call_recompute},
    {"custom gradient", call_custom_gradient},
    {"check_gradient", call_check},
    {"hessian", call_hessian},
    {"manager", call_manager},
};

/* A function that keeps an error has failed, whatever it returns. */
static void functions_that_continue_after_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof complaining / sizeof *complaining; i++) {
        ED_SCOPE;
        ed_list *inputs = ed_list_of(ed_full(ED_SHAPE(1), 3.0));
        if (complaining[i].call(inputs)) fail_msg("%s", complaining[i].name);
        failed_with(ED_IO, "complaint");
    }
}

static ed_tensor *failing_function(ed_list *inputs, void *user)
{
    (void)user;
    return ed_add(ed_list_get(inputs, 0), ed_ones(ED_SHAPE(3)));
}

static ed_list *failing_gradient(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    (void)y, (void)dy;
    ed_tensor *dx = failing_function(inputs, user);
    return dx ? ed_list_of(dx) : NULL;
}

static bool failing_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return ed_layer_return(call, ed_reshape(call->inputs[0], ED_SHAPE(7)));
}

static bool fail_op(ed_list *inputs)
{
    return failing_function(inputs, NULL);
}

static bool fail_split(ed_list *inputs)
{
    return ed_split(ed_list_get(inputs, 0), 7);
}

static bool fail_layer(ed_list *inputs)
{
    static const ed_layer_class fails = {.kind.name = "fails", .forward = failing_forward};
    return ed_forward(ed_layer_new(&fails, NULL), ed_list_get(inputs, 0));
}

static bool fail_init(ed_list *inputs)
{
    (void)inputs;
    return ed_layer_dense(3, .activation = "none of these");
}

static bool fail_recompute(ed_list *inputs)
{
    return ed_recompute(failing_function, inputs, NULL, NULL);
}

static bool fail_gradient(ed_list *inputs)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, ed_list_get(inputs, 0));
    ed_tensor *y = ed_custom_gradient(plain_square, failing_gradient, inputs, NULL, NULL);
    return ed_gradient(tape, y, ed_list_get(inputs, 0));
}

static bool fail_hessian(ed_list *inputs)
{
    return ed_hessian_vector_product(failing_function, inputs, inputs, NULL);
}

static void discard(ed_error_code code, const char *message, void *user)
{
    (void)code, (void)message;
    ++*(int *)user;
    ed_clear_error();
}

/* A handler that discards errors is called once for each: the call fails without another. */
static void handlers_may_discard_errors(void **state)
{
    (void)state;
    bool (*const calls[])(ed_list *) = {fail_op,        fail_split,    fail_layer,  fail_init,
                                        fail_recompute, fail_gradient, fail_hessian};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        ED_SCOPE;
        int count = 0;
        ed_list *inputs = ed_list_of(ed_ones(ED_SHAPE(2)));
        ed_set_error_handler(discard, &count);
        const bool ok = calls[i](inputs);
        ed_set_error_handler(NULL, NULL);
        if (ok || count != 1) fail_msg("call %d: %d, %d errors", (int)i, ok, count);
        assert_fine();
    }
}

/* ---- Leaving by longjmp ---------------------------------------------------------------------- */

static jmp_buf place;

/* Its own frame, so that nobody's registers are lost; true if f returned. */
static bool try(void (*f)(void))
{
    if (setjmp(place)) return false;
    f();
    return true;
}

static ed_tensor *leave(ed_list *inputs, void *user)
{
    (void)user;
    ed_random_normal(ED_SHAPE(2));
    ed_square(ed_list_get(inputs, 0));
    longjmp(place, 1);
}

static void leave_recompute(void)
{
    ed_recompute(leave, ed_list_of(ed_ones(ED_SHAPE(2))), NULL, NULL);
}

static void leave_custom_gradient(void)
{
    ed_custom_gradient(leave, gradient_of_square, ed_list_of(ed_ones(ED_SHAPE(2))), NULL, NULL);
}

static bool leave_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    ed_square(call->inputs[0]);
    longjmp(place, 1);
}

static ed_layer *leaver(void)
{
    static const ed_layer_class class = {.kind.name = "leaver", .forward = leave_forward};
    return ed_layer_new(&class, NULL);
}

static void leave_layer(void)
{
    ed_forward(leaver(), ed_ones(ED_SHAPE(2)));
}

static void leave_layer_with_losses(void)
{
    ed_list *losses;
    ed_forward(leaver(), ed_ones(ED_SHAPE(2)), .losses = &losses);
}

static ed_tensor *leave_loss(void *user, ed_tensor *y_true, ed_tensor *y_pred)
{
    (void)user;
    ed_sub(y_true, y_pred);
    longjmp(place, 1);
}

static void leave_metric(void)
{
    ed_metric *metric = ed_metric_mean_loss(ed_loss_from_with(leave_loss, NULL, NULL, NULL));
    ed_metric_compare(metric, ed_ones(ED_SHAPE(2)), ed_ones(ED_SHAPE(2)));
}

static void leave_description(void)
{
    ed_forward(leaver(), ed_input(ED_SHAPE(2)));
}

/* What a listener, or states that are noted, on the stack of the function would lie in. */
static __attribute__((noinline)) int overwrite_stack(void)
{
    volatile char junk[20000];
    for (size_t i = 0; i < sizeof junk; i++) junk[i] = (char)0xa5;
    return junk[77];
}

static ed_tensor *sum_of_squares(ed_list *inputs, void *user)
{
    (void)user;
    return ed_reduce_sum(ed_square(ed_list_get(inputs, 0)));
}

static void hear_error(ed_error_code code, const char *message, void *user)
{
    (void)code;
    (void)message;
    ++*(int *)user;
}

/* Layers keep what they add to a loss, ops describe models, handlers hear of errors. */
static void layers_work(void)
{
    ED_SCOPE;
    int heard = 0;
    ed_layer *layer = ed_layer_activity_regularization(.l2 = 1);
    assert_non_null(ed_forward(layer, ed_ones(ED_SHAPE(2, 3)), .training = true));
    assert_int_equal(ed_list_size(ed_layer_losses(layer)), 1);
    assert_true(ed_is_symbolic(ed_neg(ed_input(ED_SHAPE(2)))));
    ed_set_error_handler(hear_error, &heard);
    assert_null(ed_reshape(ed_ones(ED_SHAPE(2)), ED_SHAPE(3)));
    ed_set_error_handler(NULL, NULL);
    ed_clear_error();
    assert_int_equal(heard, 1);
}

/* Tapes record, random numbers are drawn, scopes are closed. */
static void works(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_full(ED_SHAPE(2), 3.0);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *dx = ed_gradient(tape, ed_reduce_sum(ed_square(x)), x);
    assert_true(ed_item(ed_reduce_sum(dx)) == 12);
    ed_set_seed(5);
    ed_tensor *a = ed_random_normal(ED_SHAPE(4));
    ed_set_seed(5);
    ed_tensor *b = ed_random_normal(ED_SHAPE(4));
    assert_true(ed_item(ed_reduce_sum(ed_square(ed_sub(a, b)))) == 0);
    assert_true(ed_item(ed_recompute(sum_of_squares, ed_list_of(x), NULL, NULL)) == 18);
    assert_fine();
}

static void leave_by(void (*f)(void))
{
    ed_scope scope = ed_scope_open();
    assert_false(try(f));
    overwrite_stack();
    ed_neg(ed_ones(ED_SHAPE(2)));
    ed_scope_close(&scope);
    works();
    layers_work();
}

static void functions_that_do_not_return(void **state)
{
    (void)state;
    void (*const functions[])(void) = {leave_recompute, leave_custom_gradient, leave_layer,
                                       leave_description, leave_metric};
    for (int i = 0; i < 5; i++) leave_by(functions[i]);
}

/* The losses that the call held are lost. */
static void leave_losses(void)
{
    leave_by(leave_layer_with_losses);
}

static void jump(ed_error_code code, const char *message, void *user)
{
    (void)code;
    (void)message;
    (void)user;
    longjmp(place, 1);
}

static void fail_in_infer(void)
{
    ED_SCOPE;
    ed_reshape(ed_ones(ED_SHAPE(2)), ED_SHAPE(3));
}

static void fail_in_kernel(void)
{
    ED_SCOPE;
    ed_gather(ed_ones(ED_SHAPE(2)), ed_constant(((int64_t[]){9}), ED_SHAPE(1)));
}

static ed_tensor *fails(ed_list *inputs, void *user)
{
    (void)user;
    return ed_reshape(ed_list_get(inputs, 0), ED_SHAPE(77));
}

static void fail_in_function(void)
{
    ED_SCOPE;
    ed_recompute(fails, ed_list_of(ed_ones(ED_SHAPE(2))), NULL, NULL);
}

static void fail_in_layer(void)
{
    ED_SCOPE;
    ed_layer *model = ed_layer_sequential("m", ed_layer_dense(2), ed_layer_flatten(),
                                          ed_layer_conv2d(1, ED_SHAPE(1, 1)));
    ed_forward(model, ed_ones(ED_SHAPE(2, 2)));
}

static void fail_in_metric(void)
{
    ED_SCOPE;
    ed_metric_compare(ed_metric_precision(), ed_ones(ED_SHAPE(2, 3)), ed_ones(ED_SHAPE(5)));
}

static void fail_in_table(void)
{
    static const ed_op taken = {
        .name = "add", .doc = "", .infer = closing_infer, .no_gradient = "no"};
    ed_op_register(&taken);
}

static void fail_without_memory(void)
{
    ED_SCOPE;
    ed_memory_fail_at(0, true);
    ed_random_normal(ED_SHAPE(100000));
}

static void fail_of_its_own(void)
{
    ed_fail(ED_NOT_FOUND, "mine");
}

static void *look_up(void *unused)
{
    (void)unused;
    assert_non_null(ed_op_find("add"));
    assert_non_null(ed_kind_find("layer", "dense"));
    works();
    return NULL;
}

static void fail_everywhere(void)
{
    void (*const failures[])(void) = {
        fail_in_infer,       fail_in_kernel,  fail_in_function,    fail_in_layer,  fail_in_table,
        fail_without_memory, fail_of_its_own, fail_without_memory, fail_in_kernel, fail_in_metric};
    ed_set_error_handler(jump, NULL);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        ed_scope scope = ed_scope_open();
        assert_false(try(failures[i]));
        ed_memory_fail_at(-1, false);
        overwrite_stack();
        assert_true(ed_failed());
        ed_clear_error();
        ed_scope_close(&scope);
        assert_fine();
        works();
        pthread_t other;
        assert_int_equal(pthread_create(&other, NULL, look_up, NULL), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
    }
    ed_set_error_handler(NULL, NULL);
}

/* In a process of its own: what a call held when it was left is lost. */
static void in_child(void (*f)(void))
{
#ifdef __SANITIZE_THREAD__
    skip_since("thread sanitizer: it takes locks for held in a child of fork");
#endif
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        f();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void functions_and_error_handlers_may_jump(void **state)
{
    (void)state;
    in_child(leave_losses);
    in_child(fail_everywhere);
}

/* What is left of an interrupted op does not make later work stoppable that must not stop. */
static void read_while_interrupted(void)
{
    ed_set_error_handler(jump, NULL);
    {
        ED_SCOPE;
        assert_false(try(fail_in_kernel));
        ed_clear_error();
    }
    ed_set_error_handler(NULL, NULL);
    ED_SCOPE;
    ed_tensor *x = ed_transpose(ed_reshape(ed_range(0, 1 << 20), ED_SHAPE(1 << 10, 1 << 10)));
    ed_interrupt();
    const int32_t *data = ed_data(x);
    ed_clear_interrupt();
    assert_true(data && data[1] == 1 << 10 && data[(1 << 20) - 2] == (1 << 20) - 1 - (1 << 10));
}

static void an_op_that_was_left_stops_nothing(void **state)
{
    (void)state;
    in_child(read_while_interrupted);
}

/* ---- Gradients of themselves ----------------------------------------------------------------- */

typedef struct own {
    ed_tape *tape;
    ed_tensor *x, *y;
} own;

static ed_tensor *first_input(ed_list *inputs, void *user)
{
    (void)user;
    return ed_identity(ed_list_get(inputs, 0));
}

static ed_list *own_gradient(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    own *o = user;
    (void)inputs;
    (void)y;
    (void)dy;
    ed_tensor *dx = ed_gradient(o->tape, o->y, o->x);
    return dx ? ed_list_of(dx) : NULL;
}

static void a_gradient_that_needs_itself(void **state)
{
    (void)state;
    ED_SCOPE;
    own o = {.tape = ed_tape_begin(.persistent = true), .x = ed_ones(ED_SHAPE(2))};
    ed_watch(o.tape, o.x);
    o.y = ed_custom_gradient(first_input, own_gradient, ed_list_of(o.x), &o, NULL);
    assert_fails(ed_gradient(o.tape, o.y, o.x), ED_FAILED_PRECONDITION, "need them again");
    assert_non_null(ed_gradient(o.tape, ed_square(o.x), o.x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(scopes_of_callers_stay_open, check_end),
        cmocka_unit_test_teardown(functions_that_continue_after_an_error, check_end),
        cmocka_unit_test_teardown(handlers_may_discard_errors, check_end),
        cmocka_unit_test_teardown(functions_that_do_not_return, check_end),
        cmocka_unit_test_teardown(functions_and_error_handlers_may_jump, check_end),
        cmocka_unit_test_teardown(an_op_that_was_left_stops_nothing, check_end),
        cmocka_unit_test_teardown(a_gradient_that_needs_itself, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
