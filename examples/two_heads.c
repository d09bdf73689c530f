/*
 * A model with two answers about one image: which digit it shows (classes) and how strong it is (a
 * number). Both heads share the layers that look at the image; each has a loss of its own.
 * two_heads [small [EPOCHS]]
 */
#include <eddy.h>
#include "examples/digits.h"
#include <stdlib.h>
#include <string.h>

enum { TESTED = 1000, SHOWN = 5 };

/* Digits [n, 28, 28] darkened by a factor: their classes [n], and that factor [n, 1]. */
static ed_tensor *data(int64_t n, uint64_t seed, ed_list **answers)
{
    ed_tensor *classes, *drawn = ed_cast(draw_digits(n, seed, &classes), ED_FLOAT32);
    ed_tensor *strength = ed_random_uniform(ED_SHAPE(n, 1), .low = 0.3, .high = 1);
    ed_tensor *strongest = ed_reduce_max(drawn, .axis = ED_AXES(1, 2), .keepdims = true);
    ed_tensor *factor = ed_div(ed_reshape(strength, ED_SHAPE(n, 1, 1)), strongest);
    *answers = ed_list_of(classes, strength);
    return ed_add(ed_mul(drawn, factor), ed_random_normal(ED_SHAPE(n, 28, 28), .stddev = 0.1));
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "small");
    const int epochs = argc > 2 ? atoi(argv[2]) : small ? 5 : 10;
    ed_set_seed(1);
    ed_list *y, *test_y;
    ed_tensor *x = data(small ? 6000 : 30000, 1, &y), *test_x = data(TESTED, 2, &test_y);

    ed_tensor *image = ed_input(ED_SHAPE(28, 28), .name = "image");
    ed_layer *look = ed_layer_sequential("look", ed_layer_reshape(ED_INTS(28, 28, 1)),
                                         ed_layer_conv2d(16, ED_INTS(3), .activation = "relu"),
                                         ed_layer_max_pooling2d(), ed_layer_flatten(),
                                         ed_layer_dense(64, .activation = "relu"));
    ed_tensor *seen = ed_forward(look, image);
    ed_tensor *digit = ed_forward(ed_layer_dense(10, .name = "digit"), seen);
    ed_tensor *strength = ed_forward(ed_layer_dense(1, .name = "strength"), seen);
    ed_layer *model = ed_model(image, ed_list_of(digit, strength), .name = "two_heads");
    printf("%s", ed_model_summary(model));

    ed_model_compile(
        model, .optimizer = ed_optimizer_adam(.learning_rate = 2e-3),
        .losses = ED_OBJECTS(ed_loss_sparse_categorical_crossentropy(.from_logits = true),
                             ed_loss_mean_squared_error()),
        .loss_weights = ED_FLOATS(1, 10),
        .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy(.name = "accuracy")));
    ed_model_add_metric(model, 1, ed_metric_mean_absolute_error(.name = "mae"));
    ed_model_fit(model, x, y, .epochs = epochs, .verbose = 2);

    ed_history *reached = ed_model_evaluate(model, test_x, test_y);
    printf("on %d other images: %.1f %% of the digits right, strength wrong by %.3f\n", TESTED,
           100 * ed_history_last(reached, "digit_accuracy"),
           ed_history_last(reached, "strength_mae"));

    ed_list *says = ed_model_predict_list(model, test_x);
    ed_tensor *which = ed_argmax(ed_list_get(says, 0), .axis = 1), *how = ed_list_get(says, 1);
    for (int i = 0; i < SHOWN && !ed_failed(); i++)
        printf("a %g of strength %.2f: it says %g of strength %.2f\n",
               ed_item_at(ed_list_get(test_y, 0), i), ed_item_at(ed_list_get(test_y, 1), i, 0),
               ed_item_at(which, i), ed_item_at(how, i, 0));
    if (ed_failed()) return fprintf(stderr, "two_heads: %s\n", ed_error()), 1;
    return 0;
}
