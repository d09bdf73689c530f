/*
 * A whole training, as the demo does it: flatten, 512 relu, dropout, 10, Adam, shuffled batches of
 * 32. Drawn numbers stand for pictures; where EDDY_DATA names a folder with MNIST, it learns that.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/skip.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROWS = 500, /* the last batch is a small one */
    BATCH = 32,
    STEPS = (ROWS + BATCH - 1) / BATCH,
    RESIDENT_BYTES = 1 << 20, /* by which the process may seem to grow */
};

typedef struct training {
    ed_layer *model;
    ed_optimizer *adam;
    ed_dataset *data;
} training;

static ed_dataset *drawn(void)
{
    ed_tensor *x = ed_random_uniform(ED_SHAPE(ROWS, 28, 28));
    ed_tensor *y = ed_random_uniform(ED_SHAPE(ROWS), .dtype = ED_INT32, .high = 10);
    return ed_dataset_from_tensors(x, y, .batch = BATCH, .shuffle = true);
}

static training begin(ed_dataset *data)
{
    return (training){
        .model = ed_layer_sequential("mlp", ed_layer_flatten(),
                                     ed_layer_dense(512, .activation = "relu"),
                                     ed_layer_dropout(0.2), ed_layer_dense(10)),
        .adam = ed_optimizer_adam(),
        .data = data,
    };
}

/* An epoch, or its first `most` steps; losses, if wanted, has room for them. Returns the steps. */
static int epoch(const training *t, int most, float *losses)
{
    ED_SCOPE;
    ed_tensor *x, *y;
    int steps = 0;
    while (ed_dataset_next(t->data, &x, &y)) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *logits = ed_forward(t->model, x, .training = true);
        ed_tensor *loss = ed_reduce_mean(ed_sparse_softmax_cross_entropy(y, logits));
        ed_minimize(t->adam, tape, loss, t->model);
        if (losses && loss) losses[steps] = (float)ed_item(loss);
        if (++steps == most) break;
    }
    assert_fine();
    return steps;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int64_t resident(void)
{
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    long long all, pages;
    if (file < 0) return -1;
    bool ok = read(file, text, sizeof text - 1) > 0 && sscanf(text, "%lld %lld", &all, &pages) == 2;
    close(file);
    return ok ? pages * sysconf(_SC_PAGESIZE) : -1;
}

static void does_not_grow(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_set_seed(1);
    training t = begin(drawn());
    epoch(&t, 0, NULL);
    ed_memory before = ed_memory_stats();
    int64_t pages = resident();
    for (int i = 0; i < 10; i++) {
        epoch(&t, 0, NULL);
        ed_memory after = ed_memory_stats();
        assert_int_equal(after.live_tensors, before.live_tensors);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
#ifndef EDDY_SANITIZED /* sanitizers keep what was freed */
    if (pages < 0) skip_since("no /proc/self/statm");
    int64_t grown = resident() - pages;
    if (grown > RESIDENT_BYTES) fail_msg("the process has grown by %lld bytes", (long long)grown);
#else
    (void)pages;
#endif
}

/* ---- The same every time --------------------------------------------------------------------- */

typedef struct record {
    float losses[2][STEPS];
    float kernel[512 * 10];
} record;

static void train(uint64_t seed, int threads, record *r)
{
    ED_SCOPE;
    int before = ed_num_threads();
    memset(r, 0, sizeof *r);
    assert_true(ed_set_num_threads(threads));
    ed_set_seed(seed);
    training t = begin(drawn());
    for (int i = 0; i < 2; i++) assert_int_equal(epoch(&t, 0, r->losses[i]), STEPS);
    ed_tensor *kernel = ed_list_get(ed_layer_trainable_variables(t.model), 2);
    assert_true(ed_copy_to(kernel, r->kernel, ed_size(kernel)));
    assert_true(ed_set_num_threads(before));
}

static void assert_same(const record *a, const record *b)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < STEPS; j++)
            if (memcmp(&a->losses[i][j], &b->losses[i][j], sizeof(float)) != 0)
                fail_msg("epoch %d, step %d: loss %.9g and %.9g", i, j, (double)a->losses[i][j],
                         (double)b->losses[i][j]);
    assert_memory_equal(a->kernel, b->kernel, sizeof a->kernel);
}

static void any_number_of_threads(void **state)
{
    (void)state;
    static record one, more;
    train(7, 1, &one);
    for (int threads = 2; threads <= 3; threads++) {
        train(7, threads, &more);
        assert_same(&one, &more);
    }
}

static void same_seed(void **state)
{
    (void)state;
    static record a, b;
    int threads = ed_num_threads();
    train(1, threads, &a);
    train(1, threads, &b);
    assert_same(&a, &b);
    train(2, threads, &b);
    assert_memory_not_equal(a.losses, b.losses, sizeof a.losses);
    /* There is nothing to learn here but by heart: yet that is under way. */
    assert_true(a.losses[0][0] > 2 && a.losses[0][0] < 3);
}

/* ---- Learning -------------------------------------------------------------------------------- */

static void learns_mnist(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *folder = getenv("EDDY_DATA");
    char dir[4096];
    if (!folder || snprintf(dir, sizeof dir, "%s/mnist", folder) >= (int)sizeof dir ||
        access(dir, R_OK))
        skip_since("EDDY_DATA has no MNIST");
    ed_set_seed(1);
    training t = begin(ed_dataset_mnist("train", .dir = dir, .batch = BATCH, .shuffle = true));
    epoch(&t, 10000 / BATCH, NULL);
    ed_dataset *test = ed_dataset_mnist("test", .dir = dir, .batch = 1000);
    ed_metric *accuracy = ed_metric_sparse_categorical_accuracy(.name = "accuracy");
    ed_tensor *x, *y;
    while (ed_dataset_next(test, &x, &y)) {
        ED_SCOPE;
        ed_metric_compare(accuracy, y, ed_forward(t.model, x));
    }
    assert_fine();
    if (!(ed_metric_result(accuracy) > 0.9))
        fail_msg("accuracy after 10000 digits: %.4f", ed_metric_result(accuracy));
}

#define TEST(name) cmocka_unit_test_teardown(name, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(does_not_grow),
        TEST(any_number_of_threads),
        TEST(same_seed),
        TEST(learns_mnist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
