/*
 * A convolutional network that reads digits, trained by compile and fit. DIR holds MNIST's four
 * files (plain or .gz); there it comes to 99 % in three epochs. Without it the program draws digits
 * of its own. mnist_cnn [DIR | small [EPOCHS]]
 */
#include <eddy.h>
#include "examples/digits.h"
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, SHOWN = 5 };

static ed_dataset *digits(const char *dir, bool train, int64_t count)
{
    if (dir)
        return ed_dataset_mnist(train ? "train" : "test", .dir = dir, .batch = BATCH,
                                .shuffle = train);
    ed_tensor *labels, *pictures = draw_digits(count, train ? 1 : 2, &labels);
    return ed_dataset_from_tensors(pictures, labels, .batch = BATCH, .shuffle = train,
                                   .pixels = true);
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "small");
    const char *dir = argc > 1 && !small ? argv[1] : NULL;
    const int epochs = argc > 2 ? atoi(argv[2]) : 3;
    ed_set_seed(1);
    ed_dataset *train = digits(dir, true, small ? 4000 : 30000);
    ed_dataset *test = digits(dir, false, small ? 500 : 5000);

    ed_layer *model = ed_layer_sequential(
        "cnn", ed_layer_reshape(ED_INTS(28, 28, 1)),
        ed_layer_conv2d(16, ED_INTS(3), .activation = "relu"), ed_layer_max_pooling2d(),
        ed_layer_conv2d(32, ED_INTS(3), .activation = "relu"), ed_layer_max_pooling2d(),
        ed_layer_flatten(), ed_layer_dense(128, .activation = "relu"), ed_layer_dropout(0.3),
        ed_layer_dense(10));
    const double steps = epochs * (double)ed_dataset_batches(train);
    ed_model_compile(
        model, .optimizer = ed_optimizer_adam(.schedule = ed_schedule_cosine_decay(3e-3, steps)),
        .loss = ed_loss_sparse_categorical_crossentropy(.from_logits = true),
        .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy(.name = "accuracy")));
    ed_model_fit(model, train, NULL, .epochs = epochs, .validation_x = test, .verbose = 2);

    ed_history *reached = ed_model_evaluate(model, test, NULL);
    printf("accuracy on %lld other digits: %.2f %%\n", (long long)ed_dataset_rows(test),
           100 * ed_history_last(reached, "accuracy"));

    ed_tensor *x, *y;
    ed_dataset_next(test, &x, &y);
    ed_tensor *says = ed_softmax(ed_forward(model, x));
    for (int i = 0; i < SHOWN && !ed_failed(); i++) {
        ed_tensor *row = ed_index(says, i);
        printf("a %g: it says %g (%.1f %%)\n", ed_item_at(y, i), ed_item(ed_argmax(row)),
               100 * ed_item(ed_reduce_max(row)));
    }
    if (ed_failed()) return fprintf(stderr, "mnist_cnn: %s\n", ed_error()), 1;
    return 0;
}
