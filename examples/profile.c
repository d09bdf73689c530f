/*
 * What a training step is made of: a listener prints a table of the ops of one step of the demo's
 * network, the optimizer, dropout and metrics included. profile [STEPS]: the mean of so many steps.
 */
#include <eddy.h>
#include "examples/digits.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 32, WARM = 20, MOST_OPS = 200 };

typedef struct row {
    const ed_op *op;
    int64_t calls, bytes;
    double seconds;
} row;

/* The listener is the first member, so its address is the profile's. */
typedef struct profile {
    ed_listener listener;
    row rows[MOST_OPS];
    int n_rows;
    double begin;
} profile;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void before(ed_listener *self, const ed_call *call)
{
    (void)call;
    ((profile *)self)->begin = now();
}

static int64_t bytes_of(const ed_tensor *t)
{
    return ed_size(t) * (int64_t)ed_dtype_size(ed_dtype_of(t));
}

/* What a call reads and writes; a view neither, as it only says where its elements lie. */
static int64_t bytes_moved(const ed_call *call)
{
    int64_t bytes = 0;
    for (int i = 0; i < call->n_inputs; i++)
        bytes += bytes_of(call->inputs[i]) * (i < call->n_writes ? 2 : 1);
    for (int i = 0; i < call->n_outputs; i++) bytes += bytes_of(call->outputs[i]);
    return call->ready ? 0 : bytes;
}

static void after(ed_listener *self, const ed_call *call)
{
    profile *p = (profile *)self;
    const double seconds = now() - p->begin;
    int i = 0;
    while (i < p->n_rows && p->rows[i].op != call->op) i++;
    if (i == MOST_OPS) return;
    if (i == p->n_rows) p->rows[p->n_rows++] = (row){.op = call->op};
    p->rows[i].calls++;
    p->rows[i].seconds += seconds;
    p->rows[i].bytes += bytes_moved(call);
}

static int by_time(const void *a, const void *b)
{
    const double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void put_row(const char *name, double calls, double seconds, double bytes, double share)
{
    printf("%-36s %6.0f %11.2f us %12.1f KB %6.1f %%\n", name, calls, 1e6 * seconds, bytes / 1e3,
           100 * share);
}

static void put_table(profile *p, int steps, double whole)
{
    row all = {0};
    qsort(p->rows, (size_t)p->n_rows, sizeof *p->rows, by_time);
    printf("%-36s %6s %14s %15s %8s\n", "op", "calls", "time", "bytes", "of step");
    for (int i = 0; i < p->n_rows; i++) {
        const row *r = &p->rows[i];
        put_row(r->op->name, (double)r->calls / steps, r->seconds / steps, (double)r->bytes / steps,
                r->seconds / whole);
        all.calls += r->calls;
        all.seconds += r->seconds;
        all.bytes += r->bytes;
    }
    put_row("all ops", (double)all.calls / steps, all.seconds / steps, (double)all.bytes / steps,
            all.seconds / whole);
    printf("a step takes %.2f us; what ops don't is the tape, layers, and this listener\n",
           1e6 * whole / steps);
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 100;
    static profile p = {.listener = {.before = before, .after = after}};
    ed_set_seed(1);
    ed_tensor *labels, *pictures = draw_digits(BATCH * 64, 1, &labels);
    ed_dataset *data =
        ed_dataset_from_tensors(pictures, labels, .batch = BATCH, .shuffle = true, .pixels = true);
    ed_layer *model =
        ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(512, .activation = "relu"),
                            ed_layer_dropout(0.2), ed_layer_dense(10));
    ed_optimizer *adam = ed_optimizer_adam();
    ed_metric *loss = ed_metric_mean(), *accuracy = ed_metric_sparse_categorical_accuracy();

    double begin = 0;
    for (int step = -WARM; step < steps && !ed_failed(); step++) {
        ED_SCOPE;
        ed_tensor *x, *y;
        if (step == 0) {
            begin = now();
            ed_listen(&p.listener);
        }
        while (!ed_dataset_next(data, &x, &y) && !ed_failed()) continue; /* the next epoch */
        ed_tape *tape = ed_tape_begin();
        ed_tensor *logits = ed_forward(model, x, .training = true);
        ed_tensor *mean = ed_reduce_mean(ed_sparse_softmax_cross_entropy(y, logits));
        ed_minimize(adam, tape, mean, ed_layer_trainable_variables(model));
        ed_metric_update(loss, mean);
        ed_metric_compare(accuracy, y, logits);
    }
    ed_unlisten(&p.listener);
    if (ed_failed()) return fprintf(stderr, "profile: %s\n", ed_error()), 1;
    put_table(&p, steps, now() - begin);
    return 0;
}
