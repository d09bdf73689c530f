/* Random numbers, permutations, dropout. */
#include "bench/bench.h"

typedef struct row {
    const char *name;
    ed_tensor *(*run)(workload *w);
    int bytes; /* of an element: read and written */
    double mean, variance;
} row;

static ed_tensor *uniform(workload *w)
{
    return ed_random_uniform(ED_SHAPE(w->n[0]));
}

static ed_tensor *normal(workload *w)
{
    return ed_random_normal(ED_SHAPE(w->n[0]));
}

static ed_tensor *truncated_normal(workload *w)
{
    return ed_random_truncated_normal(ED_SHAPE(w->n[0]));
}

static ed_tensor *bernoulli(workload *w)
{
    return ed_random_bernoulli(ed_scalar(0.8), .shape = ED_SHAPE(w->n[0]), .dtype = ED_FLOAT32);
}

static ed_tensor *dropout(workload *w)
{
    return ed_dropout(w->x[0], 0.2);
}

/* The same numbers each time, without which there is no slope to check. */
static ed_tensor *same_dropout(workload *w)
{
    ed_set_seed(1);
    return ed_dropout(w->x[0], 0.2);
}

static ed_tensor *permutation(workload *w)
{
    return ed_random_permutation(w->n[0]);
}

static void make(workload *w)
{
    w->x[0] = ed_ones(ED_SHAPE(w->n[0]));
    w->list = ed_list_of(w->x[0]);
}

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    double sum = 0, squares = 0, n = (double)w->n[0];
    for (int64_t i = 0; i < w->n[0]; i++) {
        double v = bench_at(y, i);
        sum += v, squares += v * v;
    }
    double mean = sum / n;
    bench_near("the mean", mean, r->mean, 10 * sqrt(r->variance / n) + 1e-9);
    bench_near("the variance", squares / n - mean * mean, r->variance, 30 / sqrt(n));
}

void bench_random(void)
{
    /* The variance of a normal distribution cut at two deviations is 0.7737. */
    static const row rows[] = {{"uniform", uniform, 4, 0.5, 1 / 12.0},
                               {"normal", normal, 4, 0, 1},
                               {"truncated_normal", truncated_normal, 4, 0, 0.7737},
                               {"bernoulli", bernoulli, 4, 0.8, 0.16},
                               {"dropout", dropout, 8, 1, 0.25}};
    const double m = M1;
    static row permuted = {"permutation", permutation, 8, 0, 0};
    permuted.mean = (m - 1) / 2, permuted.variance = (m * m - 1) / 12;
    workload w = {BENCH_BYTES, .make = make, .check = check, .n = {M16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w.row = &rows[i], w.run = rows[i].run, w.amount = (double)rows[i].bytes * M16;
        bench_add(w, "%s_16M", rows[i].name);
    }
    w.forward = same_dropout, w.amount = 20.0 * M16;
    bench_add(w, "dropout_16M_grad");
    w.forward = NULL, w.n[0] = 128 * 512, w.amount = 8.0 * 128 * 512;
    bench_add(w, "dropout_65536");
    w.row = &permuted, w.run = permutation, w.n[0] = M1, w.amount = 8.0 * M1;
    bench_add(w, "permutation_1M");
}
