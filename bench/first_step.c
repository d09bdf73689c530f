/*
 * The smallest program that trains: makes the demo's model, takes one step on drawn numbers, prints
 * the most memory that was resident until then, in kB, and ends. The group process starts it.
 */
#include "eddy.h"
#include <stdio.h>

static long peak(void)
{
    char line[128];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "VmHWM: %ld", &kilobytes) < 1)
        ;
    if (status) fclose(status);
    return kilobytes;
}

int main(void)
{
    ed_tensor *x = ed_random_uniform(ED_SHAPE(32, 28, 28));
    ed_tensor *y = ed_random_uniform(ED_SHAPE(32), .dtype = ED_INT32, .high = 10);
    ed_layer *model =
        ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(512, .activation = "relu"),
                            ed_layer_dropout(0.2), ed_layer_dense(10));
    ed_optimizer *adam = ed_optimizer_adam();
    ed_tape *tape = ed_tape_begin();
    ed_tensor *logits = ed_forward(model, x, .training = true);
    ed_tensor *loss = ed_reduce_mean(ed_sparse_softmax_cross_entropy(y, logits));
    ed_minimize(adam, tape, loss, model);
    double first = ed_item(loss);
    if (ed_failed() || !(first > 1 && first < 4)) return 1;
    printf("%ld\n", peak());
    return 0;
}
