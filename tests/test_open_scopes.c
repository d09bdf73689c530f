/*
 * Functions of a program's that leave a scope open: the call goes on as if they had not, their
 * results live, and the program's own scopes close as they should.
 */
#include "tests/attacks.h"
#include <setjmp.h>
#include <stdlib.h>

static int calls;

/* Leaves two scopes open, in which the result of what follows is made. */
static void leave_open(void)
{
    calls++;
    ed_scope_open();
    for (int i = 0; i < 3; i++) ed_random_normal(ED_SHAPE(5));
    ed_scope_open();
}

static ed_tensor *square(ed_list *inputs, void *user)
{
    (void)user;
    leave_open();
    return ed_square(ed_list_get(inputs, 0));
}

static ed_tensor *sum_of_squares(ed_list *inputs, void *user)
{
    (void)user;
    leave_open();
    return returns_square(inputs, user);
}

static ed_list *squares(ed_list *inputs, void *user)
{
    return ed_list_of(square(inputs, user));
}

static ed_list *sums(ed_list *inputs, void *user)
{
    (void)user;
    leave_open();
    return ed_list_of(ed_add(ed_list_get(inputs, 0), ed_list_get(inputs, -1)));
}

static bool is_small(ed_list *variables, void *user)
{
    (void)user;
    leave_open();
    return ed_item(ed_reduce_sum(ed_list_get(variables, 0))) < 1e3;
}

static ed_list *gradient(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    (void)output;
    (void)user;
    leave_open();
    return ed_list_of(ed_mul(ed_mul(dy, 2.0), ed_list_get(inputs, 0)));
}

static ed_list *gradient_list(ed_list *inputs, ed_list *outputs, ed_list *dy, void *user)
{
    return gradient(inputs, ed_list_get(outputs, 0), ed_list_get(dy, 0), user);
}

static void release(void *user)
{
    (void)user;
    leave_open();
}

static void expect(ed_tensor *y, double sum)
{
    FINE(y);
    assert_float_equal(ed_item(ed_reduce_sum(y)), sum, 1e-9);
}

static ed_tensor *numbers(void)
{
    return ed_constant(((double[]){1, 2, 3}), ED_SHAPE(3));
}

static void loops(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_list *x = ed_list_of(numbers());
    expect(ed_list_get(ed_map_fn(squares, x, NULL), 0), 14);
    expect(ed_list_get(ed_vectorized_map(squares, x, NULL), 0), 14);
    expect(ed_list_get(ed_foldl(sums, x, NULL, NULL), 0), 6);
    expect(ed_list_get(ed_foldr(sums, x, NULL, NULL), 0), 6);
    expect(ed_list_get(ed_scan(sums, x, NULL, NULL), 0), 1 + 3 + 6);
    expect(ed_list_get(ed_while_loop(is_small, sums, x, NULL), 0), 6 * 256);
    ed_sparse_tensor *sparse = ed_sparse_from_dense(numbers());
    expect(ed_sparse_to_dense(ed_sparse_map_values(square, &sparse, 1, NULL), 0), 14);
}

static void derivatives(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = numbers();
    ed_list *inputs = ed_list_of(x);
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y[] = {
        ed_custom_gradient(square, gradient, inputs, NULL, release),
        ed_list_get(ed_custom_gradient_list(squares, gradient_list, inputs, NULL, release), 0),
        ed_recompute(square, inputs, NULL, release),
    };
    for (int i = 0; i < 3; i++) {
        expect(y[i], 14);
        expect(ed_gradient(tape, y[i], x), 12);
    }
    ed_tensor *value;
    expect(ed_jvp(square, inputs, inputs, NULL, &value), 28);
    expect(value, 14);
    expect(ed_list_get(ed_hessian_vector_product(sum_of_squares, inputs, inputs, NULL), 0), 12);
    FINE(ed_check_gradient(square, inputs, NULL, NULL));
}

/* ---- Objects --------------------------------------------------------------------------------- */

static bool odd_init(ed_layer *layer)
{
    (void)layer;
    leave_open();
    return true;
}

static bool odd_build(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    leave_open();
    return ed_layer_add_weight(layer, "w", ED_SHAPE(2));
}

static bool odd_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    leave_open();
    return ed_layer_return(call, ed_add(call->inputs[0], 1.0));
}

static void odd_destroy(ed_layer *layer)
{
    (void)layer;
    leave_open();
}

static void odd_track(ed_layer *layer, ed_tracker *t)
{
    (void)layer;
    (void)t;
    leave_open();
}

static bool odd_adapt(ed_layer *layer, ed_tensor *data)
{
    (void)layer;
    (void)data;
    leave_open();
    return true;
}

static ed_tensor *odd_lambda(ed_tensor *x, void *user)
{
    (void)user;
    leave_open();
    return ed_mul(x, 2.0);
}

static ed_tensor *odd_loss(void *user, ed_tensor *y_true, ed_tensor *y_pred)
{
    (void)user;
    leave_open();
    return ed_reduce_mean(ed_square(ed_sub(y_true, y_pred)), .axis = ED_AXES(-1));
}

static bool odd_callback(void *user, ed_training *training)
{
    (void)user;
    (void)training;
    leave_open();
    return true;
}

static void layers_and_training(void **state)
{
    (void)state;
    static const ed_layer_class class = {.kind.name = "odd",
                                         .init = odd_init,
                                         .build = odd_build,
                                         .forward = odd_forward,
                                         .destroy = odd_destroy,
                                         .track = odd_track,
                                         .adapt = odd_adapt};
    ED_SCOPE;
    ed_tensor *x = ed_random_normal(ED_SHAPE(8, 3)), *y = ed_ones(ED_SHAPE(8, 2));
    ed_layer *odd = ed_layer_new(&class, NULL);
    FINE(ed_layer_adapt(odd, x));
    ed_layer *model = ed_layer_sequential("m", ed_layer_dense(2), odd,
                                          ed_layer_lambda("twice", odd_lambda, NULL));
    FINE(ed_forward(model, x));
    FINE(ed_model_compile(model, .loss = ed_loss_from_with(odd_loss, NULL, release, NULL)));
    ed_callback *callback = ed_callback_from(odd_callback, NULL, release);
    FINE(
        ed_model_fit(model, x, y, .epochs = 2, .batch_size = 4, .callbacks = ED_OBJECTS(callback)));
    FINE(ed_checkpoint("model", model));
}

static ed_tensor *weight;

static ed_tensor *objective(void *user)
{
    (void)user;
    leave_open();
    return ed_reduce_sum(ed_square(ed_sub(weight, 3.0)));
}

static void drop(void *data, void *user)
{
    (void)data;
    (void)user;
    leave_open();
}

static void handle(ed_error_code code, const char *message, void *user)
{
    (void)code;
    (void)message;
    (void)user;
    leave_open();
}

static void others(void **state)
{
    (void)state;
    ED_SCOPE;
    weight = ed_variable(numbers());
    expect(ed_lbfgs(objective, NULL, weight, NULL), 0);
    expect(weight, 9);
    static float outside[2] = {1, 2};
    {
        ED_SCOPE;
        expect(ed_wrap(ED_FLOAT32, outside, ED_SHAPE(2), drop, NULL), 3);
    }
    ed_set_error_handler(handle, NULL);
    REFUSED(ed_reshape(weight, ED_SHAPE(7)));
    ed_set_error_handler(NULL, NULL);
    expect(weight, 9);
}

/* ---- Scopes that longjmp leaves open --------------------------------------------------------- */

static jmp_buf out;

static ed_list *leave_all(ed_list *inputs, void *user)
{
    (void)inputs;
    (void)user;
    leave_open();
    longjmp(out, 1);
}

/* Goes on after a map of its own was left in the middle. */
static ed_list *try_and_go_on(ed_list *inputs, void *user)
{
    (void)user;
    if (!setjmp(out)) ed_map_fn(leave_all, ed_list_of(ed_ones(ED_SHAPE(2))), NULL);
    return ed_list_of(ed_neg(ed_list_get(inputs, 0)));
}

static void a_call_left_within_a_function(void **state)
{
    (void)state;
    ED_SCOPE;
    expect(ed_list_get(ed_map_fn(try_and_go_on, ed_list_of(numbers()), NULL), 0), -6);
}

/* The scope of the program's that is open stays the innermost one. */
static void scopes_close_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        ed_scope mine = ed_scope_open();
        const int64_t tensors = ed_memory_stats().live_tensors;
        ed_list *y = ed_map_fn(squares, ed_list_of(numbers()), NULL);
        expect(ed_list_get(y, 0), 14);
        ed_scope_close(&mine);
        assert_true(ed_memory_stats().live_tensors <= tensors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(loops),
        ATTACK(derivatives),
        ATTACK(layers_and_training),
        ATTACK(others),
        ATTACK(a_call_left_within_a_function),
        ATTACK(scopes_close_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
