/*
 * Learns handwritten digits: mnist [DIR [SEED [SAVE]]]. DIR holds MNIST's four files (plain or
 * .gz); without it, or with "", the program draws digits of its own. After every epoch all of the
 * training is saved in the folder SAVE (save/mnist or save/drawn); run again, the program goes on
 * from there, to the same bits as if it had never stopped.
 */
#include <eddy.h>
#include "examples/digits.h"
#include "examples/progress.h"
#include <stdlib.h>

enum { EPOCHS = 5, BATCH = 32, SHOWN = 6 };

static ed_dataset *digits(const char *dir, bool train)
{
    if (*dir)
        return ed_dataset_mnist(train ? "train" : "test", .dir = dir, .batch = BATCH,
                                .shuffle = train);
    ed_tensor *labels, *pictures = draw_digits(train ? 60000 : 10000, train ? 1 : 2, &labels);
    return ed_dataset_from_tensors(pictures, labels, .batch = BATCH, .shuffle = train,
                                   .pixels = true);
}

static void train_epoch(int epoch, ed_layer *model, ed_optimizer *adam, ed_dataset *data)
{
    ED_SCOPE;
    char title[32];
    snprintf(title, sizeof title, "epoch %d/%d", epoch, EPOCHS);
    progress bar = progress_begin(title, ed_dataset_batches(data));
    ed_metric *loss = ed_metric_mean(.name = "loss"),
              *accuracy = ed_metric_sparse_categorical_accuracy(.name = "accuracy");

    ed_tensor *x, *y;
    while (ed_dataset_next(data, &x, &y)) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *logits = ed_forward(model, x, .training = true);
        ed_tensor *mean = ed_reduce_mean(ed_sparse_softmax_cross_entropy(y, logits));
        ed_minimize(adam, tape, mean, model);
        ed_metric_update(loss, mean);
        ed_metric_compare(accuracy, y, logits);
        progress_step(&bar, ed_dim(x, 0), ed_metric_result(loss), ed_metric_result(accuracy));
    }
    if (!ed_failed()) progress_end(&bar, ed_metric_result(loss), ed_metric_result(accuracy));
}

static double evaluate(ed_layer *model, ed_dataset *data)
{
    ed_metric *accuracy = ed_metric_sparse_categorical_accuracy(.name = "accuracy");
    ed_tensor *x, *y;
    while (ed_dataset_next(data, &x, &y)) {
        ED_SCOPE;
        ed_metric_compare(accuracy, y, ed_forward(model, x));
    }
    return ed_metric_result(accuracy);
}

/* A few test digits with what the model says of them. */
static void show_answers(ed_layer *model, ed_dataset *data)
{
    char text[SHOWN][48];
    const char *captions[SHOWN];
    ed_tensor *x, *y;
    if (!ed_dataset_next(data, &x, &y)) return;
    const float *says = ed_data(ed_softmax(ed_forward(model, x)));
    const int32_t *labels = ed_data(y);
    int count = ed_dim(x, 0) < SHOWN ? (int)ed_dim(x, 0) : SHOWN;
    for (int i = 0; says && i < count; i++, says += 10) {
        int best = 0;
        for (int digit = 1; digit < 10; digit++)
            if (says[digit] > says[best]) best = digit;
        int length =
            snprintf(text[i], sizeof text[i], "%d (%.1f %%)", best, 100 * (double)says[best]);
        if (best != labels[i])
            snprintf(text[i] + length, sizeof text[i] - (size_t)length, ", is a %d", labels[i]);
        captions[i] = text[i];
    }
    if (says) show_digits(stdout, ed_data(x), count, captions);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "";
    const char *folder = argc > 3 ? argv[3] : *dir ? "save/mnist" : "save/drawn";
    ed_set_seed(argc > 2 ? atoi(argv[2]) : 1);

    ed_dataset *train = digits(dir, true), *test = digits(dir, false);
    ed_layer *model =
        ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(512, .activation = "relu"),
                            ed_layer_dropout(0.2), ed_layer_dense(10));
    ed_optimizer *adam = ed_optimizer_adam();

    int64_t epoch = 0;
    ed_checkpoint *checkpoint =
        ed_checkpoint("model", model, "optimizer", adam, "data", train, "epoch", ed_counter(&epoch),
                      "random", ed_default_generator());
    ed_checkpoint_manager *manager = ed_checkpoint_manager(checkpoint, folder, .max_to_keep = 3);
    const char *restored = ed_manager_restore_or_initialize(manager);
    if (restored && *restored)
        printf("goes on from %s%s\n", restored,
               epoch < EPOCHS ? "" : ", its end; without that folder it begins anew");

    while (epoch < EPOCHS && !ed_failed()) {
        train_epoch((int)++epoch, model, adam, train);
        const char *saved = ed_manager_save(manager);
        if (saved) printf("  saved as %s\n", saved);
    }

    double accuracy = evaluate(model, test);
    if (!ed_failed()) {
        printf("accuracy on %lld test digits: %.2f %%\n", (long long)ed_dataset_rows(test),
               100 * accuracy);
        show_answers(model, test);
    }
    if (ed_failed()) return fprintf(stderr, "mnist: %s\n", ed_error()), 1;
    return 0;
}
