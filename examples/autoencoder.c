/*
 * Digits through a bottleneck of 32 numbers and back: the network learns to give its input without
 * the noise. Writes an image with examples above and its answers below.
 * autoencoder [FILE.png [small [EPOCHS]]]
 */
#include <eddy.h>
#include "examples/digits.h"
#include <stdlib.h>

enum { NUMBERS = 32, PIXELS = 28 * 28, SHOWN = 10 };

static ed_layer *autoencoder(void)
{
    return ed_layer_sequential("autoencoder", ed_layer_dense(256, .activation = "relu"),
                               ed_layer_dense(NUMBERS), ed_layer_dense(256, .activation = "relu"),
                               ed_layer_dense(PIXELS, .activation = "sigmoid"));
}

static ed_tensor *noisy(ed_tensor *x)
{
    ed_tensor *noise = ed_random_normal(ed_shape(x), .stddev = 0.25);
    return ed_clip(ed_add(x, noise), 0, 1);
}

static double mean_squared(ed_tensor *a, ed_tensor *b)
{
    return ed_item(ed_reduce_mean(ed_square(ed_sub(a, b))));
}

/* Images side by side: [28, 28 * SHOWN]. */
static ed_tensor *row(ed_tensor *images)
{
    images = ed_reshape(images, ED_SHAPE(SHOWN, 28, 28));
    return ed_reshape(ed_transpose(images, .perm = ED_AXES(1, 0, 2)), ED_SHAPE(28, -1));
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "autoencoder.png";
    const bool small = argc > 2;
    const int epochs = argc > 3 ? atoi(argv[3]) : small ? 8 : 20;
    ed_set_seed(1);
    ed_tensor *x = draw_images(small ? 3000 : 20000, 1), *test = draw_images(500, 2);

    ed_layer *model = autoencoder();
    ed_model_compile(model, .optimizer = ed_optimizer_adam(.learning_rate = 2e-3),
                     .loss = ed_loss_binary_crossentropy());
    ed_model_fit(model, noisy(x), x, .epochs = epochs, .batch_size = 64, .verbose = 2);

    ed_tensor *seen = noisy(test), *said = ed_model_predict(model, seen);
    printf("mean squared error of the noise: %.4f\n", mean_squared(seen, test));
    printf("mean squared error of the answers: %.4f\n", mean_squared(said, test));
    ed_tensor *above = row(ed_slice(seen, .end = ED_INTS(SHOWN)));
    ed_tensor *below = row(ed_slice(said, .end = ED_INTS(SHOWN)));
    if (ed_write_png(file, ed_concat(ed_list_of(above, below), .axis = 0)))
        printf("written to %s\n", file);
    if (ed_failed()) return fprintf(stderr, "autoencoder: %s\n", ed_error()), 1;
    return 0;
}
