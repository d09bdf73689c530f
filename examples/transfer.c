/*
 * A network learns the digits 0 to 6. Its layers but the last, frozen, then serve another one,
 * which learns 7 to 9 from a few examples; at the end all of it is trained a little.
 * transfer [small]
 */
#include <eddy.h>
#include "examples/digits.h"
#include <string.h>

enum { OLD = 7, NEW = 3, EXAMPLES = 30 }; /* the old digits, the new ones, examples of these */

/* Layers that see in an image what 64 numbers can say. */
static ed_layer *eyes(void)
{
    return ed_layer_sequential(
        NULL, ed_layer_reshape(ED_INTS(28, 28, 1)),
        ed_layer_conv2d(16, ED_INTS(3), .activation = "relu"), ed_layer_max_pooling2d(),
        ed_layer_conv2d(32, ED_INTS(3), .activation = "relu"), ed_layer_max_pooling2d(),
        ed_layer_flatten(), ed_layer_dense(64, .activation = "relu"));
}

/* Trains a model; its accuracy with the digits `test`, in percent. */
static double learn(ed_layer *model, ed_list *train, ed_list *test, int epochs, double rate)
{
    ed_model_compile(model, .optimizer = ed_optimizer_adam(.learning_rate = rate),
                     .loss = ed_loss_sparse_categorical_crossentropy(.from_logits = true),
                     .metrics =
                         ED_OBJECTS(ed_metric_sparse_categorical_accuracy(.name = "accuracy")));
    ed_model_fit(model, ed_list_get(train, 0), ed_list_get(train, 1), .epochs = epochs,
                 .batch_size = 16);
    ed_history *reached = ed_model_evaluate(model, ed_list_get(test, 0), ed_list_get(test, 1));
    return 100 * ed_history_last(reached, "accuracy");
}

/* The images and labels of digits `first` and more, or of those below. */
static ed_list *only(ed_tensor *x, ed_tensor *y, int first, bool below)
{
    ed_tensor *mask = below ? ed_less(y, first) : ed_greater_equal(y, first);
    return ed_list_of(ed_boolean_mask(x, mask),
                      ed_sub(ed_boolean_mask(y, mask), below ? 0 : first));
}

/* Examples `begin` to before `end` of both. */
static ed_list *part(ed_list *xy, int64_t begin, int64_t end)
{
    return ed_list_of(ed_slice(ed_list_get(xy, 0), .begin = ED_INTS(begin), .end = ED_INTS(end)),
                      ed_slice(ed_list_get(xy, 1), .begin = ED_INTS(begin), .end = ED_INTS(end)));
}

static long long trained(ed_layer *model)
{
    ed_list *variables = ed_layer_trainable_variables(model);
    int64_t count = 0;
    for (int64_t i = 0; i < ed_list_size(variables); i++)
        count += ed_size(ed_list_get(variables, i));
    return count;
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "small");
    ed_set_seed(1);
    ed_tensor *y, *drawn = draw_digits(small ? 3000 : 30000, 1, &y);
    ed_tensor *x = ed_div(ed_cast(drawn, ED_FLOAT32), 255);
    ed_list *old_digits = only(x, y, OLD, true), *new_digits = only(x, y, OLD, false);
    ed_list *few = part(new_digits, 0, EXAMPLES), *others = part(new_digits, EXAMPLES, ED_END);

    /* Two models of the same symbolic tensors share the layers between them. */
    ed_tensor *image = ed_input(ED_SHAPE(28, 28));
    ed_layer *body = eyes();
    ed_tensor *seen = ed_forward(body, image);
    ed_layer *old = ed_model(image, ed_forward(ed_layer_dense(OLD), seen));
    ed_layer *new = ed_model(image, ed_forward(ed_layer_dense(NEW), seen));
    ed_layer *alone = ed_layer_sequential("alone", eyes(), ed_layer_dense(NEW));

    printf("0 to 6: %.1f %%\n", learn(old, old_digits, old_digits, small ? 2 : 4, 1e-3));
    printf("7 to 9 from %d examples:\n", EXAMPLES);
    double right = learn(alone, few, others, 30, 1e-3);
    printf("alone:  %.1f %%, %lld weights trained\n", right, trained(alone));
    ed_layer_set_trainable(body, false);
    right = learn(new, few, others, 30, 5e-3);
    printf("frozen: %.1f %%, %lld weights trained\n", right, trained(new));
    ed_layer_set_trainable(body, true);
    right = learn(new, few, others, 15, 2e-4);
    printf("tuned:  %.1f %%, %lld weights trained\n", right, trained(new));
    if (ed_failed()) return fprintf(stderr, "transfer: %s\n", ed_error()), 1;
    return 0;
}
