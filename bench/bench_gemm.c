/*
 * Matrix products for the shapes that training asks for, in turn with OpenBLAS's, which runs its
 * own threads. A line a shape: name, seconds, GFLOP/s.
 *
 * bench_gemm crossover prints GFLOP/s by size instead, on one thread and on all, of our kernels, of
 * OpenBLAS called as Eddy calls it, and of one call to it for the whole product: the limits in
 * ops/kernels/blas.c are set by these. EDDY_ISA chooses the kernels.
 */
#include "bench/programs.h"
#include "ops/kernels/blas.h"
#include "ops/kernels/gemm.h"
#include "tensor/tensor.h"
#include <cblas.h>
#include <stdbool.h>

enum { SERIES = 9 };

typedef struct shape {
    const char *layout; /* "NN", "TN", ...: which operands are transposed views */
    int m, n, k, count;
} shape;

static const shape shapes[] = {
    {"NN", 32, 512, 784, 1},     {"TN", 784, 512, 32, 1},     {"NN", 32, 10, 512, 1},
    {"TN", 512, 10, 32, 1},      {"NT", 32, 512, 10, 1},      {"NN", 128, 512, 784, 1},
    {"TN", 784, 512, 128, 1},    {"NN", 128, 10, 512, 1},     {"TN", 512, 10, 128, 1},
    {"NT", 128, 512, 10, 1},     {"NN", 500, 512, 784, 1},    {"TN", 784, 512, 500, 1},
    {"NN", 5000, 512, 784, 1},   {"TN", 784, 512, 5000, 1},   {"NN", 32, 32, 32, 1},
    {"NN", 64, 64, 64, 1},       {"NN", 128, 128, 128, 1},    {"NN", 256, 256, 256, 1},
    {"NN", 512, 512, 512, 1},    {"NT", 512, 512, 512, 1},    {"TN", 512, 512, 512, 1},
    {"TT", 512, 512, 512, 1},    {"NN", 1024, 1024, 1024, 1}, {"TN", 1024, 1024, 1024, 1},
    {"NN", 2048, 2048, 2048, 1}, {"NN", 16, 16, 16, 1024},    {"NN", 128, 128, 128, 64},
    {"NT", 128, 128, 128, 64},   {"NN", 4096, 1, 4096, 1},    {"NN", 1, 4096, 4096, 1},
    {"NN", 1, 512, 784, 1},      {"NT", 1, 512, 784, 1},      {"NN", 25088, 64, 576, 1},
    {"NN", 25088, 32, 9, 1},     {"TN", 9, 32, 25088, 1},
};

typedef struct problem {
    bool wide;
    shape s;
    int64_t a_row, a_col, b_row, b_col;
    void *a, *b, *c;
    int64_t *at, *bt, *ct;
} problem;

static void *numbers(bool wide, int64_t count)
{
    void *data = aligned_alloc(64, (size_t)(count * 8 + 63) / 64 * 64);
    if (!data) exit(1);
    for (int64_t i = 0; i < count; i++) {
        double value = (double)(i * 2654435761u % 1000) / 500 - 1;
        if (wide)
            ((double *)data)[i] = value;
        else
            ((float *)data)[i] = (float)value;
    }
    return data;
}

static problem make(bool wide, shape s)
{
    bool ta = s.layout[0] == 'T', tb = s.layout[1] == 'T';
    problem p = {.wide = wide, .s = s};
    p.a_row = ta ? 1 : s.k, p.a_col = ta ? s.m : 1;
    p.b_row = tb ? 1 : s.n, p.b_col = tb ? s.k : 1;
    int64_t a = (int64_t)s.m * s.k, b = (int64_t)s.k * s.n, c = (int64_t)s.m * s.n;
    p.a = numbers(wide, a * s.count);
    p.b = numbers(wide, b * s.count);
    p.c = numbers(wide, c * s.count);
    p.at = numbers(true, s.count), p.bt = numbers(true, s.count), p.ct = numbers(true, s.count);
    for (int i = 0; i < s.count; i++) p.at[i] = i * a, p.bt[i] = i * b, p.ct[i] = i * c;
    return p;
}

static void drop(problem *p)
{
    free(p->a), free(p->b), free(p->c), free(p->at), free(p->bt), free(p->ct);
}

static void run_eddy(const problem *p)
{
    const shape *s = &p->s;
    gemm_batch batch = {s->count, p->at, p->bt, p->ct};
    bool ok = p->wide ? gemm_batch_f64(&batch, s->m, s->n, s->k, p->a, p->a_row, p->a_col, p->b,
                                       p->b_row, p->b_col, p->c, s->n, NULL)
                      : gemm_batch_f32(&batch, s->m, s->n, s->k, p->a, p->a_row, p->a_col, p->b,
                                       p->b_row, p->b_col, p->c, s->n, NULL);
    if (!ok) exit(1);
}

static void run_openblas(const problem *p)
{
    const shape *s = &p->s;
    CBLAS_TRANSPOSE ta = s->layout[0] == 'T' ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = s->layout[1] == 'T' ? CblasTrans : CblasNoTrans;
    int lda = ta == CblasTrans ? s->m : s->k, ldb = tb == CblasTrans ? s->k : s->n;
    for (int i = 0; i < s->count; i++) {
        if (p->wide)
            cblas_dgemm(CblasRowMajor, ta, tb, s->m, s->n, s->k, 1, (double *)p->a + p->at[i], lda,
                        (double *)p->b + p->bt[i], ldb, 0, (double *)p->c + p->ct[i], s->n);
        else
            cblas_sgemm(CblasRowMajor, ta, tb, s->m, s->n, s->k, 1, (float *)p->a + p->at[i], lda,
                        (float *)p->b + p->bt[i], ldb, 0, (float *)p->c + p->ct[i], s->n);
    }
}

/* On one thread its own time counts, which other work on the machine disturbs less. */
static clockid_t watch = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(void (*run)(const problem *), const problem *p, int64_t times)
{
    double begin = now();
    for (int64_t i = 0; i < times; i++) run(p);
    return (now() - begin) / (double)times;
}

/* How the workload is called in the table of peers: operands as they lie, T
 * for a transposed view. */
static void name_of(shape s, bool wide, char *name, size_t size)
{
    bool ta = s.layout[0] == 'T', tb = s.layout[1] == 'T';
    int length =
        s.count > 1 ? snprintf(name, size, "D.bmm_%dx", s.count) : snprintf(name, size, "D.mm_");
    snprintf(name + length, size - (size_t)length, "[%d,%d]%sx[%d,%d]%s%s", ta ? s.k : s.m,
             ta ? s.m : s.k, ta ? "T" : "", tb ? s.n : s.k, tb ? s.k : s.n, tb ? "T" : "",
             wide ? "_f64" : "");
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, bench_by_value);
    return values[count / 2];
}

static void measure(shape s, bool wide, const char *name)
{
    problem p = make(wide, s);
    double flops = 2.0 * s.m * s.n * s.k * s.count, ours[SERIES];
    int64_t times = flops < 4e6 ? (int64_t)(4e6 / flops) : 1;
    int series = flops > 3e9 ? 3 : SERIES;
    run_eddy(&p);
    double theirs[SERIES];
    run_openblas(&p);
    for (int j = 0; j < series; j++) {
        ours[j] = seconds(run_eddy, &p, times);
        theirs[j] = seconds(run_openblas, &p, times);
    }
    double us = median(ours, series);
    printf("%s\t%.4e\t%.1f GFLOP/s, OpenBLAS %.1f\n", name, us, flops / us * 1e-9,
           flops / median(theirs, series) * 1e-9);
    fflush(stdout);
    drop(&p);
}

static void run_ours(const problem *p)
{
    blas_rule = BLAS_NEVER;
    run_eddy(p);
}

static void run_pieces(const problem *p)
{
    blas_rule = BLAS_ALWAYS;
    run_eddy(p);
}

/* GFLOP/s of one shape, ours, OpenBLAS in pieces and whole: medians of runs in turn. */
static void cross(shape s, bool wide, double rates[3])
{
    void (*const ways[])(const problem *) = {run_ours, run_pieces, run_openblas};
    problem p = make(wide, s);
    double flops = 2.0 * s.m * s.n * s.k, times[3][SERIES];
    int64_t inner = flops < 4e6 ? (int64_t)(4e6 / flops) : 1;
    for (int j = 0; j < SERIES; j++)
        for (int way = 0; way < 3; way++) {
            if (j == 0) ways[way](&p);
            times[way][j] = seconds(ways[way], &p, inner);
        }
    for (int way = 0; way < 3; way++) rates[way] = flops / median(times[way], SERIES) * 1e-9;
    blas_rule = BLAS_AHEAD;
    drop(&p);
}

static void crossover(int threads)
{
    static const shape by_size[] = {
        {"NN", 8, 8, 8, 1},       {"NN", 16, 16, 16, 1},       {"NN", 24, 24, 24, 1},
        {"NN", 32, 32, 32, 1},    {"NN", 64, 64, 64, 1},       {"NN", 128, 128, 128, 1},
        {"NN", 256, 256, 256, 1}, {"NN", 512, 512, 512, 1},    {"TN", 512, 512, 512, 1},
        {"NT", 512, 512, 512, 1}, {"NN", 1024, 1024, 1024, 1}, {"NN", 32, 512, 784, 1},
        {"NN", 4, 512, 784, 1},   {"NT", 1, 512, 784, 1},      {"NT", 1, 4096, 4096, 1},
        {"TN", 9, 32, 25088, 1},
    };
    ed_set_num_threads(threads);
    openblas_set_num_threads(threads);
    watch = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    printf("%-28s %26s %26s\n%-28s", "GFLOP/s", "float32", "float64", threads > 1 ? "all" : "one");
    for (int wide = 0; wide < 2; wide++) printf(" %8s %8s %8s", "ours", "pieces", "whole");
    for (unsigned i = 0; i < sizeof by_size / sizeof *by_size; i++) {
        char name[80];
        name_of(by_size[i], false, name, sizeof name);
        printf("\n%-28s", name + strlen("D.mm_"));
        for (int wide = 0; wide < 2; wide++) {
            double rates[3];
            cross(by_size[i], wide, rates);
            printf(" %8.1f %8.1f %8.1f", rates[0], rates[1], rates[2]);
        }
        fflush(stdout);
    }
    printf("\n\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "crossover")) {
        const int threads = ed_num_threads();
        crossover(1);
        if (threads > 1) crossover(threads);
        return 0;
    }
    for (int wide = 0; wide < 2; wide++)
        for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            char name[80];
            name_of(shapes[i], wide, name, sizeof name);
            if (bench_wanted(argc, argv, name)) measure(shapes[i], wide, name);
        }
    return 0;
}
