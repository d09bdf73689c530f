/*
 * Reductions, softmax, cross-entropy, batch normalization: large ones against the memory's pace,
 * and those of a small network's step. Usage: bench_reduce [prefix...].
 */
#include "bench/programs.h"
#include "eddy.h"

typedef struct load {
    ed_tensor *x, *labels;
    ed_ints axis;
    ed_tensor *(*reduce)(ed_tensor *x, const ed_reduce_options *options);
    ed_tensor *(*best)(ed_tensor *x, const ed_argmax_options *options);
} load;

static ed_tensor *numbers(int64_t rows, int64_t columns)
{
    float *values = malloc((size_t)(rows * columns) * sizeof *values);
    if (!values) exit(1);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (float)(i * 2654435761u % 2000) / 1000 - 1;
    ed_tensor *t = ed_constant(values, ED_SHAPE(rows, columns));
    free(values);
    return t;
}

static ed_tensor *labels(int64_t rows, int64_t classes)
{
    ed_tensor *x = ed_range(0, (double)rows, .dtype = ED_INT32);
    return ed_floor_mod(x, (double)classes);
}

static void reduce(void *user)
{
    ED_SCOPE;
    load *l = user;
    l->reduce(l->x, ED_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options, .axis = l->axis));
}

static void best(void *user)
{
    ED_SCOPE;
    load *l = user;
    if (l->axis.values)
        l->best(l->x, ED_ATTRS(ED_ARGMAX_OPTIONS, ed_argmax_options, .axis = l->axis.values[0]));
    else
        l->best(ed_reshape(l->x, ED_SHAPE(-1)), NULL);
}

static void norm(void *user)
{
    ED_SCOPE;
    load *l = user;
    ed_sqrt(ed_reduce_sum(ed_square(l->x)));
}

static ed_tensor *softmax_of(ed_tensor *x)
{
    return ed_softmax(x);
}

static ed_tensor *log_softmax_of(ed_tensor *x)
{
    return ed_log_softmax(x);
}

static void softmax(void *user)
{
    ED_SCOPE;
    softmax_of(((load *)user)->x);
}

static void log_softmax(void *user)
{
    ED_SCOPE;
    log_softmax_of(((load *)user)->x);
}

/* Forward and back, as peers are measured: the sum of the result times numbers. */
static void both_ways(load *l, ed_tensor *(*f)(ed_tensor *x))
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, l->x);
    ed_tensor *y = f(l->x);
    ed_gradient(tape, y, l->x, .output_gradients = ed_list_of(l->x));
}

static void softmax_both(void *user)
{
    both_ways(user, softmax_of);
}

static void log_softmax_both(void *user)
{
    both_ways(user, log_softmax_of);
}

static void entropy(void *user)
{
    ED_SCOPE;
    load *l = user;
    ed_reduce_mean(ed_sparse_softmax_cross_entropy(l->labels, l->x));
}

static void entropy_both(void *user)
{
    ED_SCOPE;
    load *l = user;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, l->x);
    ed_tensor *loss = ed_reduce_mean(ed_sparse_softmax_cross_entropy(l->labels, l->x));
    ed_gradient(tape, loss, l->x);
}

static void batch_norm_both(void *user)
{
    ED_SCOPE;
    load *l = user;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, l->x);
    ed_tensor *ones = ed_ones(ED_SHAPE(ed_dim(l->x, 1)));
    ed_tensor *y = ed_batch_norm(l->x, ones, ones, NULL, NULL);
    ed_gradient(tape, y, l->x, .output_gradients = ed_list_of(l->x));
}

static int count;
static char **words;

static void run(const char *name, void (*f)(void *), load l)
{
    if (bench_wanted(count, words, name)) bench_run(name, f, &l, 1);
    if (ed_failed()) {
        fprintf(stderr, "%s: %s\n", name, ed_error());
        exit(1);
    }
}

/* Freed tensors of other sizes fill the cache. */
static void fill_cache(void)
{
    ED_SCOPE;
    for (int i = 0; i < 20; i++) ed_zeros(ED_SHAPE(1 << 24));
    for (int i = 0; i < 40; i++) ed_zeros(ED_SHAPE(1000000 + 300000 * i));
}

int main(int argc, char **argv)
{
    count = argc, words = argv;
    const ed_ints none = {0}, first = ED_AXES(0), last = ED_AXES(1);
    ed_tensor *x = numbers(4096, 4096);
    run("C.sum_all_16M", reduce, (load){.x = x, .axis = none, .reduce = ed_reduce_sum_with});
    run("C.sum_axis0_[4096,4096]", reduce,
        (load){.x = x, .axis = first, .reduce = ed_reduce_sum_with});
    run("C.sum_axis1_[4096,4096]", reduce,
        (load){.x = x, .axis = last, .reduce = ed_reduce_sum_with});
    run("C.mean_all_16M", reduce, (load){.x = x, .axis = none, .reduce = ed_reduce_mean_with});
    run("C.max_all_16M", reduce, (load){.x = x, .axis = none, .reduce = ed_reduce_max_with});
    run("C.max_axis0_[4096,4096]", reduce,
        (load){.x = x, .axis = first, .reduce = ed_reduce_max_with});
    run("C.max_axis1_[4096,4096]", reduce,
        (load){.x = x, .axis = last, .reduce = ed_reduce_max_with});
    run("C.var_all_16M", reduce, (load){.x = x, .axis = none, .reduce = ed_reduce_variance_with});
    run("C.var_axis0_[4096,4096]", reduce,
        (load){.x = x, .axis = first, .reduce = ed_reduce_variance_with});
    run("C.var_axis1_[4096,4096]", reduce,
        (load){.x = x, .axis = last, .reduce = ed_reduce_variance_with});
    run("C.logsumexp_axis1_[4096,4096]", reduce,
        (load){.x = x, .axis = last, .reduce = ed_reduce_logsumexp_with});
    run("C.argmax_all_16M", best, (load){.x = x, .axis = none, .best = ed_argmax_with});
    run("C.argmax_axis0_[4096,4096]", best, (load){.x = x, .axis = first, .best = ed_argmax_with});
    run("C.argmax_axis1_[4096,4096]", best, (load){.x = x, .axis = last, .best = ed_argmax_with});
    run("C.norm_all_16M", norm, (load){.x = x});

    ed_tensor *logits = numbers(8192, 1000);
    load l = {.x = logits, .labels = labels(8192, 1000)};
    run("C.softmax_[8192,1000]_fwd", softmax, l);
    fill_cache();
    run("C.softmax_[8192,1000]_fwd_full_cache", softmax, l);
    run("C.softmax_[8192,1000]_fwd_bwd", softmax_both, l);
    run("C.log_softmax_[8192,1000]_fwd", log_softmax, l);
    run("C.log_softmax_[8192,1000]_fwd_bwd", log_softmax_both, l);
    run("C.cross_entropy_[8192,1000]_fwd", entropy, l);
    run("C.cross_entropy_[8192,1000]_fwd_bwd", entropy_both, l);
    run("C.batchnorm_[8192,512]_fwd_bwd", batch_norm_both, (load){.x = numbers(8192, 512)});

    load small = {.x = numbers(32, 10),
                  .labels = labels(32, 10),
                  .axis = first,
                  .reduce = ed_reduce_sum_with};
    run("small.cross_entropy_[32,10]_fwd", entropy, small);
    run("small.cross_entropy_[32,10]_fwd_bwd", entropy_both, small);
    run("small.softmax_[32,10]_fwd", softmax, small);
    run("small.sum_axis0_[32,10]", reduce, small);
    small.x = numbers(32, 512);
    run("small.sum_axis0_[32,512]", reduce, small);
    small.axis = last, small.best = ed_argmax_with;
    run("small.sum_axis1_[32,512]", reduce, small);
    small.x = numbers(5000, 10);
    run("small.argmax_axis1_[5000,10]", best, small);
    return 0;
}
