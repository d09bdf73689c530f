/*
 * One model and several threads of the program's own. Training: each thread computes the gradients
 * of a part of the batch, the main thread adds them up and changes the variables while no other
 * thread runs. Inference: all threads ask the model at the same time.
 *
 * What nn/nn.h asks for: the first call of a model, calls with .training and changes of its
 * variables need it alone; calls without .training do not. Scopes, errors and tapes belong to their
 * thread; what one thread hands to another is retained.
 */
#include <eddy.h>
#include <pthread.h>

enum { THREADS = 4, ROWS = 64, STEPS = 200 };

/* What a thread is asked, and its answer. */
typedef struct job {
    pthread_t thread;
    ed_layer *model;
    ed_tensor *x, *y;   /* a part of the batch; y NULL: inference */
    ed_list *gradients; /* retained; of training */
    ed_tensor *output;  /* retained; of inference */
    char error[200];    /* of this thread */
} job;

static ed_list *gradients_of(ed_layer *model, ed_tensor *x, ed_tensor *y)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(ed_squared_difference(ed_forward(model, x), y));
    return ed_keep(ed_gradient(tape, loss, ed_layer_trainable_variables(model)));
}

static void *work(void *user)
{
    ED_SCOPE;
    job *j = user;
    if (j->y)
        j->gradients = ed_retain(gradients_of(j->model, j->x, j->y));
    else
        j->output = ed_retain(ed_forward(j->model, j->x));
    snprintf(j->error, sizeof j->error, "%s", ed_error());
    return NULL;
}

/* Runs the jobs and waits for them; the first error becomes one of this thread. */
static bool run(job *jobs)
{
    int begun = 0;
    while (begun < THREADS && !pthread_create(&jobs[begun].thread, NULL, work, &jobs[begun]))
        begun++;
    for (int i = 0; i < begun; i++) pthread_join(jobs[i].thread, NULL);
    if (begun < THREADS) ed_fail(ED_FAILED_PRECONDITION, "no thread could be created");
    for (int i = 0; i < begun; i++)
        if (*jobs[i].error) ed_fail(ED_INVALID_ARGUMENT, "in a thread: %s", jobs[i].error);
    return !ed_failed();
}

/* The mean of what the threads computed, whose parts have the same size. */
static ed_list *mean_gradients(const job *jobs)
{
    ED_SCOPE;
    ed_tensor *means[16];
    const int64_t n = ed_list_size(jobs[0].gradients);
    if (n > 16) return ed_fail(ED_INVALID_ARGUMENT, "more than 16 variables");
    for (int64_t v = 0; v < n; v++) {
        ed_tensor *sum = ed_list_get(jobs[0].gradients, v);
        for (int i = 1; i < THREADS; i++) sum = ed_add(sum, ed_list_get(jobs[i].gradients, v));
        means[v] = ed_div(sum, THREADS);
    }
    return ed_keep(ed_list_make(means, n));
}

static void forget(job *jobs)
{
    for (int i = 0; i < THREADS; i++) {
        ed_release(jobs[i].gradients);
        ed_release(jobs[i].output);
    }
}

/* A step with the gradients of all threads; how far they are from those of the whole batch. */
static double train_step(ed_layer *model, ed_optimizer *optimizer, ed_tensor *x, ed_tensor *y)
{
    ED_SCOPE;
    job jobs[THREADS] = {{0}};
    ed_list *xs = ed_split(x, THREADS), *ys = ed_split(y, THREADS);
    for (int i = 0; i < THREADS; i++) {
        jobs[i].model = model;
        jobs[i].x = ed_list_get(xs, i);
        jobs[i].y = ed_list_get(ys, i);
    }
    ed_list *means = run(jobs) ? mean_gradients(jobs) : NULL;
    ed_list *whole = gradients_of(model, x, y);
    ed_close_report report = {0};
    ed_all_close(ed_list_get(means, 0), ed_list_get(whole, 0), 0, 0, &report);
    ed_apply_gradients(optimizer, means, ed_layer_trainable_variables(model));
    forget(jobs);
    return report.max_absolute;
}

/* Whether each thread gets the answer that this one gets. */
static bool ask(ed_layer *model)
{
    ED_SCOPE;
    bool same = true;
    job jobs[THREADS] = {{0}};
    ed_tensor *x = ed_random_normal(ED_SHAPE(ROWS, 3)), *expected = ed_forward(model, x);
    for (int i = 0; i < THREADS; i++) {
        jobs[i].model = model;
        jobs[i].x = x;
    }
    run(jobs);
    for (int i = 0; i < THREADS && !ed_failed(); i++)
        same &= ed_all_close(jobs[i].output, expected, 0, 0, NULL);
    forget(jobs);
    return same && !ed_failed();
}

int main(void)
{
    ed_set_seed(1);
    ed_set_num_threads(1); /* the program has threads of its own */
    ed_tensor *x = ed_random_normal(ED_SHAPE(ROWS, 3));
    ed_tensor *y = ed_reduce_sum(ed_sin(x), .axis = ED_AXES(1), .keepdims = true);
    ed_layer *model =
        ed_layer_sequential("net", ed_layer_dense(32, .activation = "tanh"), ed_layer_dense(1));
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.02);
    ed_forward(model, x); /* the first call, alone */

    double farthest = 0;
    for (int step = 0; step < STEPS && !ed_failed(); step++) {
        const double distance = train_step(model, adam, x, y);
        if (distance > farthest) farthest = distance;
    }
    ed_tensor *loss = ed_reduce_mean(ed_squared_difference(ed_forward(model, x), y));
    printf("loss %.4f; gradients are at most %.1e from those of one thread\n", ed_item(loss),
           farthest);
    printf("the same answer in all threads: %s\n", ask(model) ? "yes" : "no");
    if (ed_failed()) fprintf(stderr, "threads: %s\n", ed_error());
    return ed_failed();
}
