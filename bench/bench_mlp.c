/*
 * Training steps of the classic MLP on digits, 784-512-10 with relu and dropout, Adam at its
 * defaults, at several batch sizes.
 */
#include "bench/programs.h"
#include "eddy.h"

typedef struct training {
    ed_layer *model;
    ed_optimizer *adam;
    ed_tensor *x, *y;
} training;

static void step(void *user)
{
    training *t = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *logits = ed_forward(t->model, t->x, .training = true);
    ed_tensor *loss = ed_reduce_mean(ed_sparse_softmax_cross_entropy(t->y, logits));
    ed_minimize(t->adam, tape, loss, t->model);
}

static void infer(void *user)
{
    training *t = user;
    ED_SCOPE;
    ed_forward(t->model, t->x);
}

static void measure(int argc, char **argv, int64_t batch)
{
    ED_SCOPE;
    char name[64];
    training t = {
        .model = ed_layer_sequential("mlp", ed_layer_flatten(),
                                     ed_layer_dense(512, .activation = "relu"),
                                     ed_layer_dropout(0.2), ed_layer_dense(10)),
        .adam = ed_optimizer_adam(),
        .x = ed_random_uniform(ED_SHAPE(batch, 28, 28)),
        .y = ed_random_uniform(ED_SHAPE(batch), .dtype = ED_INT32, .high = 10),
    };
    snprintf(name, sizeof name, "G.mlp_784_512_10_adam_b%d", (int)batch);
    if (bench_wanted(argc, argv, name)) bench_run(name, step, &t, 1);
    snprintf(name, sizeof name, "G.mlp_infer_b%d", (int)batch);
    if (bench_wanted(argc, argv, name)) bench_run(name, infer, &t, 1);
}

int main(int argc, char **argv)
{
    ed_set_seed(1);
    for (int i = 0; i < 4; i++) measure(argc, argv, (int64_t[]){32, 128, 500, 5000}[i]);
    return ed_failed() ? fprintf(stderr, "%s\n", ed_error()), 1 : 0;
}
