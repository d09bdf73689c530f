/*
 * A variational autoencoder (Kingma and Welling, 2013): the encoder gives for each digit a normal
 * distribution of a few numbers, the decoder makes an image of numbers drawn from it. Numbers drawn
 * from the standard normal distribution then make digits that nobody wrote.
 * vae [FILE.png [small [EPOCHS]]]
 */
#include <eddy.h>
#include "examples/digits.h"
#include <stdlib.h>

enum { NUMBERS = 8, PIXELS = 28 * 28, ROWS = 8 };

/*
 * (mean, log of the variance) -> numbers drawn; what the distributions differ from the standard
 * normal one (Kullback-Leibler divergence) is added to the loss, by pixel as the loss is.
 */
static bool draw_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *mean = call->inputs[0], *log_variance = call->inputs[1];
    ed_tensor *differ = ed_sub(ed_add(ed_square(mean), ed_exp(log_variance)), log_variance);
    ed_tensor *divergence = ed_reduce_sum(ed_sub(differ, 1), .axis = ED_AXES(1));
    if (!ed_layer_add_loss(layer, ed_div(ed_reduce_mean(divergence), 2 * PIXELS))) return false;
    ed_tensor *noise = ed_random_normal(ed_shape(mean));
    return ed_layer_return(call, ed_add(mean, ed_mul(ed_exp(ed_div(log_variance, 2)), noise)));
}

static const ed_layer_class draw_class = {
    .kind.name = "draw", .min_inputs = 2, .max_inputs = 2, .forward = draw_forward};

static ed_layer *autoencoder(ed_layer *decoder)
{
    ed_tensor *image = ed_input(ED_SHAPE(PIXELS));
    ed_tensor *hidden = ed_forward(ed_layer_dense(256, .activation = "relu"), image);
    ed_tensor *mean = ed_forward(ed_layer_dense(NUMBERS), hidden);
    ed_tensor *log_variance = ed_forward(ed_layer_dense(NUMBERS), hidden);
    ed_layer *draw = ed_layer_new(&draw_class, NULL);
    ed_tensor *numbers = ed_forward_one(draw, ed_list_of(mean, log_variance));
    return ed_model(image, ed_forward(decoder, numbers));
}

static double mean_squared(ed_tensor *a, ed_tensor *b)
{
    return ed_item(ed_reduce_mean(ed_square(ed_sub(a, b))));
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "vae.png";
    const bool small = argc > 2;
    const int epochs = argc > 3 ? atoi(argv[3]) : small ? 10 : 30;
    ed_set_seed(1);
    ed_layer *decoder = ed_layer_sequential("decoder", ed_layer_dense(256, .activation = "relu"),
                                            ed_layer_dense(PIXELS, .activation = "sigmoid"));
    ed_layer *model = autoencoder(decoder);
    ed_tensor *x = draw_images(small ? 2000 : 20000, 1), *test = draw_images(500, 2);
    ed_model_compile(model, .optimizer = ed_optimizer_adam(.learning_rate = 2e-3),
                     .loss = ed_loss_binary_crossentropy());
    ed_model_fit(model, x, x, .epochs = epochs, .batch_size = 64, .verbose = 2);

    printf("mean squared error of images that come back: %.4f\n",
           mean_squared(ed_model_predict(model, test), test));
    printf("mean squared error of their mean: %.4f\n",
           mean_squared(ed_reduce_mean(test, .axis = ED_AXES(0)), test));

    /* ROWS x ROWS new images side by side. */
    ed_tensor *made = ed_forward(decoder, ed_random_normal(ED_SHAPE(ROWS * ROWS, NUMBERS)));
    made =
        ed_transpose(ed_reshape(made, ED_SHAPE(ROWS, ROWS, 28, 28)), .perm = ED_AXES(0, 2, 1, 3));
    if (ed_write_png(file, ed_reshape(made, ED_SHAPE(ROWS * 28, ROWS * 28))))
        printf("written to %s\n", file);
    if (ed_failed()) return fprintf(stderr, "vae: %s\n", ed_error()), 1;
    return 0;
}
