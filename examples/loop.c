#include <eddy.h>

int main(void)
{
    ed_set_seed(1);
    ed_tensor *x = ed_random_normal(ED_SHAPE(256, 3));
    ed_tensor *w = ed_constant(ED_VALUES(float, 1, -2, 3), ED_SHAPE(3, 1));
    ed_tensor *y = ed_add(ed_matmul(x, w), 4); /* what the model has to find out */

    ed_layer *model = ed_layer_dense(1);
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.1);
    for (int step = 1; step <= 300; step++) {
        ED_SCOPE; /* what is made in this block goes with it */
        ed_tape *tape = ed_tape_begin();
        ed_tensor *error = ed_sub(ed_forward(model, x), y);
        ed_tensor *loss = ed_reduce_mean(ed_square(error));
        ed_minimize(adam, tape, loss, model);
        if (step % 100 == 0) printf("step %d: loss %.2g\n", step, ed_item(loss));
    }
    ed_print(stdout, ed_list_get(ed_layer_trainable_variables(model), 0)); /* 1, -2, 3 */
    ed_print(stdout, ed_list_get(ed_layer_trainable_variables(model), 1)); /* 4 */

    if (ed_failed()) fprintf(stderr, "%s\n", ed_error());
    return ed_failed();
}
