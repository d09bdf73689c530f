/* Functions of a program's that misbehave: handlers of errors, ops, gradients and layers. */
#include "tensor/core.h"
#include "tests/attacks.h"
#include <stdlib.h>

/* ---- Handlers that call back ----------------------------------------------------------------- */

static int calls_of_handler;

static void busy_handler(ed_error_code code, const char *message, void *user)
{
    calls_of_handler++;
    (void)code;
    (void)user;
    ED_SCOPE;
    assert_true(strlen(message) > 0);
    assert_true(ed_failed());
    ed_fail(ED_IO, "another");
    ed_tensor *x = ed_neg(ed_ones(ED_SHAPE(100)));
    ed_matmul(ed_ones(ED_SHAPE(100, 100)), ed_reshape(x, ED_SHAPE(100, 1)));
    ed_op_find("add");
    ed_op_find("there is none");
    ed_op_count();
    ed_random_normal(ED_SHAPE(3));
    ed_memory_stats();
    ed_memory_trim();
}

static bool infer_like(ed_call *call)
{
    return ed_call_output(call, 0, call->inputs[0]->dtype, call->inputs[0]->rank,
                          call->inputs[0]->shape);
}

static void handlers_call_the_library(void **state)
{
    (void)state;
    static const ed_op taken = {.name = "add", .doc = "", .infer = infer_like, .no_gradient = "no"};
    ed_set_error_handler(busy_handler, NULL);
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2));
    REFUSED(ed_op_register(&taken)); /* the table of ops is in use then */
    REFUSED(ed_reshape(x, ED_SHAPE(3)));
    REFUSED(ed_forward(ed_layer_dense(2), ed_ones(ED_SHAPE())));
    refused("op_find", !ed_op_find("nothing"), ED_NOT_FOUND, ED_NOT_FOUND);
    refused("read_idx", !ed_read_idx("/nowhere"), ED_NOT_FOUND, ED_NOT_FOUND);
    ed_memory_fail_at(0, true);
    ed_tensor *y = ed_neg(x);
    ed_memory_fail_at(-1, false);
    refused("neg", !y, ED_OUT_OF_MEMORY, ED_OUT_OF_MEMORY);
    ed_set_error_handler(NULL, NULL);
    assert_int_equal(calls_of_handler, 6);
}

/* ---- Ops and functions of a user that misbehave ---------------------------------------------- */

static bool infer_nothing(ed_call *call)
{
    (void)call;
    return true;
}

static bool infer_fails(ed_call *call)
{
    infer_like(call);
    return false;
}

static bool infer_too_much(ed_call *call)
{
    return infer_like(call) && infer_like(call) &&
           (ed_call_output(call, 1, ED_FLOAT32, 0, NULL) ||
            ed_call_output(call, -1, ED_FLOAT32, 0, NULL) ||
            ed_call_output(call, INT32_MAX, ED_FLOAT32, 0, NULL));
}

static bool kernel_fails(ed_call *call)
{
    (void)call;
    return false;
}

static bool kernel_copies(ed_call *call)
{
    return ed_copy_to_of(call->inputs[0], call->inputs[0]->dtype, ed_call_data(call, 0),
                         ed_size(call->inputs[0]));
}

static bool gradient_fails(const ed_gradient_call *g)
{
    (void)g;
    return false;
}

static bool gradient_of_shape(const ed_gradient_call *g)
{
    g->dx[0] = ed_ones(ED_SHAPE(7));
    return true;
}

static bool gradient_of_dtype(const ed_gradient_call *g)
{
    g->dx[0] = ed_zeros(g->shapes[0], .dtype = ED_INT32);
    return true;
}

static bool gradient_of_failure(const ed_gradient_call *g)
{
    g->dx[0] = ed_add(g->dy[0], NULL);
    return true;
}

static void ops_that_misbehave(void **state)
{
    (void)state;
#define OP(...) NAMED("odd", __VA_ARGS__)
#define NAMED(called, ...)                                                                         \
    {                                                                                              \
        .operands = {{"x", ED_SET_FLOAT, 'T'}}, .doc = "", .name = (called), __VA_ARGS__           \
    }
    static const ed_result three[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {0}};
    static const ed_op silent[] = {
        OP(.infer = infer_nothing, .kernel = kernel_copies, .no_gradient = "no"),
        OP(.infer = infer_nothing, .no_gradient = "no"),
        OP(.infer = infer_like, .no_gradient = "no"),
        OP(.infer = infer_fails, .kernel = kernel_copies, .no_gradient = "no"),
        OP(.infer = infer_like, .kernel = kernel_fails, .no_gradient = "no"),
        OP(.infer = infer_too_much, .kernel = kernel_copies, .no_gradient = "no"),
        OP(.infer = infer_like, .kernel = kernel_copies, .results = three, .no_gradient = "no"),
        OP(.kernel = kernel_copies, .no_gradient = "no"),
    };
    static const ed_op odd_gradients[] = {
        OP(.infer = infer_like, .kernel = kernel_copies, .gradient = gradient_fails),
        OP(.infer = infer_like, .kernel = kernel_copies, .gradient = gradient_of_shape),
        OP(.infer = infer_like, .kernel = kernel_copies, .gradient = gradient_of_dtype),
        OP(.infer = infer_like, .kernel = kernel_copies, .gradient = gradient_of_failure),
    };
    static const ed_op malformed[] = {
        {0},
        NAMED("", .infer = infer_like, .no_gradient = "no"),
        NAMED(NULL, .infer = infer_like, .no_gradient = "no"),
        OP(.infer = infer_like),
        OP(.infer = infer_like, .gradient = gradient_fails, .no_gradient = "both"),
        OP(.infer = infer_like, .no_gradient = "no", .attrs_size = 4096),
        OP(.no_gradient = "no"),
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        REFUSED(ed_op_register(&malformed[i]));
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2, 3));
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        REFUSED(ed_call_op(&silent[i], &x, 1, NULL));
    for (size_t i = 0; i < sizeof odd_gradients / sizeof *odd_gradients; i++) {
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x);
        ed_tensor *y = ed_call_op(&odd_gradients[i], &x, 1, NULL);
        REFUSED(ed_gradient(tape, y, x));
    }
}

static ed_tensor *returns_null(ed_list *inputs, void *user)
{
    (void)inputs;
    (void)user;
    return NULL;
}

static ed_tensor *returns_input(ed_list *inputs, void *user)
{
    (void)user;
    return ed_list_get(inputs, 0);
}

static ed_list *no_gradients(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    (void)inputs;
    (void)output;
    (void)dy;
    (void)user;
    return NULL;
}

static ed_list *many_gradients(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    (void)user;
    (void)inputs;
    return ed_list_of(dy, dy, output);
}

static ed_list *other_shape(ed_list *inputs, ed_tensor *output, ed_tensor *dy, void *user)
{
    (void)user;
    (void)inputs;
    (void)output;
    return ed_list_of(ed_expand_dims(dy, 0));
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void functions_that_misbehave(void **state)
{
    (void)state;
    ED_SCOPE;
    int released = 0;
    ed_tensor *x = ed_ones(ED_SHAPE(3), .dtype = ED_FLOAT64);
    ed_list *inputs = ed_list_of(x);
    REFUSED(ed_custom_gradient(returns_null, no_gradients, inputs, &released, count_release));
    REFUSED(ed_custom_gradient(NULL, no_gradients, inputs, &released, count_release));
    REFUSED(ed_custom_gradient(returns_square, NULL, inputs, &released, count_release));
    REFUSED(ed_custom_gradient(returns_square, no_gradients, ed_list_make(NULL, 0), &released,
                               count_release));
    REFUSED(ed_recompute(returns_null, inputs, &released, count_release));
    REFUSED(ed_recompute(NULL, inputs, &released, count_release));
    assert_int_equal(released, 6);
    static const ed_gradient_function odd[] = {no_gradients, many_gradients, other_shape};
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x);
        ed_tensor *y = ed_custom_gradient(returns_square, odd[i], inputs, &released, count_release);
        REFUSED(ed_gradient(tape, y, x));
    }
    assert_int_equal(released, 9);
    REFUSED(ed_hessian_vector_product(returns_null, inputs, inputs, NULL));
    REFUSED(ed_hessian_vector_product(returns_input, inputs, inputs, NULL));
    REFUSED(ed_hessian_vector_product(returns_square, inputs, ed_list_of(x, x), NULL));
    REFUSED(
        ed_hessian_vector_product(returns_square, inputs, ed_list_of(ed_ones(ED_SHAPE(5))), NULL));
    const char *report = NULL;
    REFUSED(ed_check_gradient(returns_null, inputs, NULL, &report));
    FINE(ed_check_gradient(returns_input, inputs, NULL, &report));
    REFUSED(ed_check_gradient(returns_square, inputs, NULL, NULL, .limit = INT64_MIN));
    ed_clear_error();
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static int stage, destroyed;

static bool odd_build(ed_layer *layer, const ed_layer_call *call)
{
    if (!ed_layer_add_weight(layer, "w", ED_SHAPE(2)) ||
        !ed_layer_add_child(layer, ed_layer_dense(2)))
        return false;
    if (stage == 0) return false;
    if (stage == 1)
        return ed_reshape(call->inputs[0], ED_SHAPE(99)), true; /* goes on after an error */
    if (stage == 2) return !!ed_layer_add_weight(layer, "w", ED_SHAPE(2));
    if (stage == 3) return !!ed_layer_add_child(layer, layer);
    return true;
}

static bool odd_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    ed_tensor *x = call->inputs[0];
    return ed_layer_return(call, stage == 4 ? NULL : stage == 5 ? ed_matmul(x, x) : x);
}

static void odd_destroy(ed_layer *layer)
{
    (void)layer;
    destroyed++;
}

static void layers_that_misbehave(void **state)
{
    (void)state;
    static const ed_layer_class class = {.kind.name = "odd",
                                         .state_size = 8,
                                         .build = odd_build,
                                         .forward = odd_forward,
                                         .destroy = odd_destroy};
    destroyed = 0;
    {
        ED_SCOPE;
        ed_tensor *x = ed_ones(ED_SHAPE(2, 3));
        ed_layer *odd = ed_layer_new(&class, NULL),
                 *model = ed_layer_sequential("m", ed_layer_dense(3), odd);
        for (stage = 0; stage < 6; stage++) {
            bool nothing = !ed_forward(model, x);
            refused("forward", nothing, ED_INVALID_ARGUMENT, ED_FAILED_PRECONDITION);
            assert_int_equal(ed_layer_child_count(odd), stage < 4 ? 0 : 1);
            assert_int_equal(ed_list_size(ed_layer_variables(model)), stage < 4 ? 2 : 3);
        }
        FINE(ed_forward(model, x));
        REFUSED(ed_layer_add_child(model, model));
        REFUSED(ed_layer_add_child(odd, model));
        REFUSED(ed_layer_add_child(ed_layer_child(odd, 0), model));
        REFUSED(ed_layer_add_child(model, odd));
        REFUSED(ed_layer_sequential("other", odd));
        ed_layer *twice = ed_layer_dense(1);
        REFUSED(ed_layer_sequential("both", twice, twice));
        FINE(ed_layer_sequential("again", twice)); /* the failed one gave it back */
    }
    assert_int_equal(destroyed, 1);
}

/* A chain of layers deeper than any stack is refused before it becomes one. */
static void layers_too_deep(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *model = ed_layer_dense(1);
    int depth = 0;
    for (; model && depth < 200000; depth++) {
        ED_SCOPE;
        model = ed_keep(ed_layer_sequential("s", model));
    }
    assert_true(depth < 200000);
    REFUSED(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(handlers_call_the_library), ATTACK(ops_that_misbehave),
        ATTACK(functions_that_misbehave),  ATTACK(layers_that_misbehave),
        ATTACK(layers_too_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
