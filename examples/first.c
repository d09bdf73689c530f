#include <eddy.h>

int main(void)
{
    ed_set_seed(1);
    ed_tensor *x = ed_random_normal(ED_SHAPE(256, 3));
    ed_tensor *w = ed_constant(ED_VALUES(float, 1, -2, 3), ED_SHAPE(3, 1));
    ed_tensor *y = ed_add(ed_matmul(x, w), 4); /* what the model has to find out */

    ed_layer *model = ed_layer_dense(1);
    ed_model_compile(model, .optimizer = ed_optimizer_adam(.learning_rate = 0.1),
                     .loss = ed_loss_mean_squared_error());
    ed_history *history = ed_model_fit(model, x, y, .epochs = 40);
    printf("loss %.2g\n", ed_history_last(history, "loss"));
    ed_print(stdout, ed_list_get(ed_layer_trainable_variables(model), 0)); /* 1, -2, 3 */
    ed_print(stdout, ed_list_get(ed_layer_trainable_variables(model), 1)); /* 4 */

    if (ed_failed()) fprintf(stderr, "%s\n", ed_error());
    return ed_failed();
}
