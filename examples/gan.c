/*
 * Two networks against each other (Goodfellow et al., 2014): the maker makes images of random
 * numbers, the judge tells them from digits, and each learns from the other.
 * gan [FILE.png [STEPS]]
 */
#include <eddy.h>
#include "examples/digits.h"
#include <stdlib.h>

enum { NUMBERS = 16, BATCH = 64, PIXELS = 28 * 28, ROWS = 8 };

static ed_tensor *make(ed_layer *maker, int64_t n)
{
    return ed_forward(maker, ed_random_normal(ED_SHAPE(n, NUMBERS)), .training = true);
}

/*
 * How far the judge is from `answer` for all images: 1, they are digits, or 0, they were made. It
 * sees them through noise, or it would soon know all digits by heart and the maker learn nothing.
 */
static ed_tensor *cost(ed_layer *judge, ed_tensor *images, double answer, double noise)
{
    ed_tensor *seen = ed_add(images, ed_random_normal(ed_shape(images), .stddev = noise));
    ed_tensor *scores = ed_forward(judge, seen, .training = true);
    return ed_reduce_mean(ed_sigmoid_cross_entropy(ed_full(ed_shape(scores), answer), scores));
}

/* The mean squared difference of images from the digit that is closest to each. */
static double difference(ed_tensor *images, ed_tensor *digits)
{
    ed_tensor *products = ed_matmul(images, digits, .transpose_b = true);
    ed_tensor *squares =
        ed_add(ed_reduce_sum(ed_square(images), .axis = ED_AXES(1), .keepdims = true),
               ed_reduce_sum(ed_square(digits), .axis = ED_AXES(1)));
    ed_tensor *apart = ed_sub(squares, ed_mul(products, 2));
    return ed_item(ed_reduce_mean(ed_reduce_min(apart, .axis = ED_AXES(1)))) / PIXELS;
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "gan.png";
    const int steps = argc > 2 ? atoi(argv[2]) : 10000;
    ed_set_seed(1);
    ed_layer *maker = ed_layer_sequential("maker", ed_layer_dense(128, .activation = "relu"),
                                          ed_layer_batch_normalization(.momentum = 0.8),
                                          ed_layer_dense(PIXELS, .activation = "sigmoid"));
    ed_layer *judge = ed_layer_sequential("judge", ed_layer_dense(128),
                                          ed_layer_leaky_relu(.negative_slope = 0.2),
                                          ed_layer_dropout(0.3), ed_layer_dense(1));
    ed_optimizer *maker_adam = ed_optimizer_adam(.learning_rate = 1e-3, .beta_1 = 0.5);
    ed_optimizer *judge_adam = ed_optimizer_adam(.learning_rate = 5e-4, .beta_1 = 0.5);

    ed_tensor *digits = draw_images(4000, 1);
    for (int step = 1; step <= steps && !ed_failed(); step++) {
        ED_SCOPE;
        const double noise = 0.2 - 0.15 * step / steps;
        ed_tensor *real = ed_random_choice(digits, NULL, ED_SHAPE(BATCH));
        ed_tensor *made = make(maker, BATCH);
        ed_tape *tape = ed_tape_begin();
        ed_tensor *judge_loss = ed_add(cost(judge, real, 0.9, noise), cost(judge, made, 0, noise));
        ed_minimize(judge_adam, tape, judge_loss, judge);

        tape = ed_tape_begin();
        ed_tensor *maker_loss = cost(judge, make(maker, BATCH), 1, noise);
        ed_minimize(maker_adam, tape, maker_loss, maker);
        if (step % (steps < 5 ? 1 : steps / 5) == 0)
            printf("step %d: losses of the judge %.3f, of the maker %.3f\n", step,
                   ed_item(judge_loss), ed_item(maker_loss));
    }

    ed_tensor *images = make(maker, ROWS * ROWS);
    printf("made images: %.4f from the closest digit\n", difference(images, digits));
    ed_tensor *grid =
        ed_transpose(ed_reshape(images, ED_SHAPE(ROWS, ROWS, 28, 28)), .perm = ED_AXES(0, 2, 1, 3));
    if (ed_write_png(file, ed_reshape(grid, ED_SHAPE(ROWS * 28, ROWS * 28))))
        printf("written to %s\n", file);
    if (ed_failed()) return fprintf(stderr, "gan: %s\n", ed_error()), 1;
    return 0;
}
