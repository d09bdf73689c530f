/*
 * Fine-tuning: a network that has learned digits 0 to 9 learns a new question from few examples, is
 * it even or odd? fine_tune [SAVE], SAVE being the folder in which the demo (mnist.c) saved its
 * training.
 *
 * The hidden layer is restored from there and stays as it is; a new head is trained on what it
 * sees. The same network from nothing is trained beside it on the same few digits.
 */
#include <eddy.h>
#include "examples/digits.h"

enum { EXAMPLES = 200, STEPS = 300 };

static ed_layer *network(const char *name)
{
    return ed_layer_sequential(name, ed_layer_flatten(),
                               ed_layer_dense(512, .activation = "relu", .name = "dense"),
                               ed_layer_dense(2, .name = "parity"));
}

static double train(ed_layer *model, ed_tensor *x, ed_tensor *y)
{
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 3e-3);
    for (int step = 0; step < STEPS; step++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *logits = ed_forward(model, x, .training = true);
        ed_tensor *loss = ed_reduce_mean(ed_sparse_softmax_cross_entropy(y, logits));
        ed_minimize(adam, tape, loss, model);
    }
    ed_metric *right = ed_metric_sparse_categorical_accuracy(.name = "parity");
    ed_tensor *labels, *unseen = draw_digits(2000, 77, &labels);
    ed_tensor *pictures = ed_div(ed_cast(unseen, ED_FLOAT32), 255);
    ed_tensor *parity = ed_sub(labels, ed_mul(ed_floor_div(labels, 2), 2));
    ed_metric_compare(right, parity, ed_forward(model, pictures));
    return 100 * ed_metric_result(right);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "save/drawn";
    ed_set_seed(1);
    ed_tensor *labels, *drawn = draw_digits(EXAMPLES, 33, &labels);
    ed_tensor *x = ed_div(ed_cast(drawn, ED_FLOAT32), 255);
    ed_tensor *y = ed_sub(labels, ed_mul(ed_floor_div(labels, 2), 2));

    const char *path = ed_latest_checkpoint(folder);
    if (!path && !ed_failed())
        return fprintf(stderr, "fine_tune: nothing in %s: make demo saves it there\n", folder), 1;
    ed_layer *tuned = network("mlp"), *plain = network("plain");
    ed_forward(tuned, x);
    ed_restoration *report = ed_checkpoint_restore(ed_checkpoint("model", tuned), path,
                                                   .only = ED_STRINGS("model/dense/*"));
    ed_layer *hidden = ed_layer_find_child(tuned, "dense");
    for (int64_t i = 0; hidden && i < 2; i++) /* kernel and bias stay as they are */
        ed_variable_set_trainable(ed_list_get(ed_layer_variables(hidden), i), false);
    if (report)
        printf("%lld values from %s; %lld variables are trained\n",
               (long long)ed_restoration_count(report, ED_RESTORED), path,
               (long long)ed_list_size(ed_layer_trainable_variables(tuned)));

    double with = train(tuned, x, y), without = train(plain, x, y);
    if (ed_failed()) return fprintf(stderr, "fine_tune: %s\n", ed_error()), 1;
    printf("even or odd, learned from %d digits: %.1f %% right on others; from nothing: %.1f %%\n",
           EXAMPLES, with, without);
    return 0;
}
