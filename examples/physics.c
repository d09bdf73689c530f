/*
 * A network that solves u'' = -u, u(0) = 0, u'(0) = 1 on [0, 3], from the equation alone: it is
 * trained until its second derivative, a gradient of a gradient, is what the equation wants.
 * physics [STEPS]
 */
#include <eddy.h>
#include <stdlib.h>

/* t + t^2 net(t): whatever the network says, u(0) = 0 and u'(0) = 1. */
static ed_tensor *u(ed_layer *net, ed_tensor *t)
{
    return ed_add(t, ed_mul(ed_square(t), ed_forward(net, t)));
}

/* u'' + u at each row of t, which should be 0; u of a row depends on that row alone. */
static ed_tensor *residual(ed_layer *net, ed_tensor *t)
{
    ed_tape *outer = ed_tape_begin(), *inner = ed_tape_begin();
    ed_watch(outer, t);
    ed_watch(inner, t);
    ed_tensor *value = u(net, t), *slope = ed_gradient(inner, value, t);
    return ed_add(ed_gradient(outer, slope, t), value);
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 5000;
    ed_set_seed(1);
    ed_layer *net =
        ed_layer_sequential("net", ed_layer_dense(32, .activation = "tanh"),
                            ed_layer_dense(32, .activation = "tanh"), ed_layer_dense(1));
    ed_optimizer *adam = ed_optimizer_adam(.schedule = ed_schedule_polynomial_decay(
                                               5e-3, steps, .end_learning_rate = 1e-5));
    for (int step = 1; step <= steps && !ed_failed(); step++) {
        ED_SCOPE;
        ed_tensor *t = ed_random_uniform(ED_SHAPE(64, 1), .high = 3);
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = ed_reduce_mean(ed_square(residual(net, t)));
        ed_minimize(adam, tape, loss, net);
        if (step % (steps < 5 ? 1 : steps / 5) == 0)
            printf("step %4d: residual %.2g\n", step, ed_item(loss));
    }

    printf("    t      u(t)    sin(t)\n");
    ed_tensor *t = ed_reshape(ed_linspace(0, 3, 7), ED_SHAPE(-1, 1));
    ed_tensor *solved = u(net, t), *right = ed_sin(t);
    for (int i = 0; i < 7 && !ed_failed(); i++)
        printf("%5.1f  %8.4f  %8.4f\n", ed_item_at(t, i, 0), ed_item_at(solved, i, 0),
               ed_item_at(right, i, 0));
    printf("largest error: %.2g\n", ed_item(ed_reduce_max(ed_abs(ed_sub(solved, right)))));
    if (ed_failed()) return fprintf(stderr, "physics: %s\n", ed_error()), 1;
    return 0;
}
