/* A training whose every step depends on all that a checkpoint holds. */
#ifndef EDDY_TESTS_TRAINING_H
#define EDDY_TESTS_TRAINING_H

#include "tests/asserts.h"
#include "train/train.h"
#include <math.h>

typedef struct training {
    ed_layer *model;
    ed_optimizer *optimizer;
    ed_dataset *data;
    ed_metric *loss;
    int64_t step;
    ed_checkpoint *checkpoint;
} training;

enum { TRAINING_OPTIMIZERS = 5 };

static inline ed_optimizer *training_optimizer(int kind)
{
    switch (kind) {
    case 0: return ed_optimizer_adam(.learning_rate = 0.01);
    case 1: return ed_optimizer_adam(.learning_rate = 0.01, .amsgrad = true, .weight_decay = 0.01);
    case 2: return ed_optimizer_sgd(.learning_rate = 0.05, .momentum = 0.9, .nesterov = true);
    case 3: return ed_optimizer_sgd(.learning_rate = 0.05);
    default:
        return ed_optimizer_rmsprop(.learning_rate = 0.003, .momentum = 0.5, .centered = true,
                                    .global_clipnorm = 1);
    }
}

/* `t` stays where it is: its counter is part of the checkpoint. */
static inline void training_begin(training *t, int optimizer)
{
    ed_set_seed(7);
    ed_generator *fixed = ed_generator_from_seed(5);
    ed_tensor *x = ed_random_normal(ED_SHAPE(70, 6), .generator = fixed);
    ed_tensor *y =
        ed_random_uniform(ED_SHAPE(70), .dtype = ED_INT32, .high = 3, .generator = fixed);
    ed_generator *noise = ed_generator_from_seed(11); /* saved with the layer that draws from it */
    t->model = ed_layer_sequential("mlp", ed_layer_dense(8, .activation = "tanh"),
                                   ed_layer_batch_normalization(), ed_layer_dropout(0.3),
                                   ed_layer_dropout(0.1, .generator = noise), ed_layer_dense(3));
    t->optimizer = training_optimizer(optimizer);
    t->data = ed_dataset_from_tensors(x, y, .batch = 16, .shuffle = true, .seed = 3);
    t->loss = ed_metric_mean(.name = "loss");
    t->step = 0;
    t->checkpoint =
        ed_checkpoint("model", t->model, "optimizer", t->optimizer, "data", t->data, "loss",
                      t->loss, "step", ed_counter(&t->step), "random", ed_default_generator());
    assert_fine();
}

/* On the next batch; the data begin anew at their end. Its loss and the mean so far, added. */
static inline double training_step(training *t)
{
    ED_SCOPE;
    ed_tensor *x, *y;
    if (!ed_dataset_next(t->data, &x, &y) && !ed_dataset_next(t->data, &x, &y)) return NAN;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(
        ed_sparse_softmax_cross_entropy(y, ed_forward(t->model, x, .training = true)));
    ed_minimize(t->optimizer, tape, loss, t->model);
    ed_metric_update(t->loss, loss);
    t->step++;
    return ed_item(loss) + ed_metric_result(t->loss);
}

#endif
