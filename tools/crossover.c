/*
 * GFLOP/s of matrix products by size, on one thread and on all: of our kernels, of OpenBLAS called
 * as Eddy calls it, and of one call to it for the whole product. The limits in ops/kernels/blas.c
 * are set by these. EDDY_ISA chooses the kernels.
 *
 *     make build/gcc/tools/crossover && EDDY_ISA=baseline build/gcc/tools/crossover
 */
#include "ops/kernels/blas.h"
#include "ops/kernels/gemm.h"
#include "tensor/tensor.h"
#include <cblas.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SERIES = 9 };

typedef struct shape {
    const char *layout; /* "NN", "TN", ...: which operands are transposed views */
    int m, n, k;
} shape;

typedef struct problem {
    bool wide;
    shape s;
    int64_t a_row, a_col, b_row, b_col;
    void *a, *b, *c;
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
    p.a = numbers(wide, (int64_t)s.m * s.k);
    p.b = numbers(wide, (int64_t)s.k * s.n);
    p.c = numbers(wide, (int64_t)s.m * s.n);
    return p;
}

static void drop(problem *p)
{
    free(p->a), free(p->b), free(p->c);
}

static void run_eddy(const problem *p)
{
    const shape *s = &p->s;
    gemm_batch batch = {1, (int64_t[]){0}, (int64_t[]){0}, (int64_t[]){0}};
    bool ok = p->wide ? gemm_batch_f64(&batch, s->m, s->n, s->k, p->a, p->a_row, p->a_col, p->b,
                                       p->b_row, p->b_col, p->c, s->n, NULL)
                      : gemm_batch_f32(&batch, s->m, s->n, s->k, p->a, p->a_row, p->a_col, p->b,
                                       p->b_row, p->b_col, p->c, s->n, NULL);
    if (!ok) exit(1);
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

static void run_whole(const problem *p)
{
    const shape *s = &p->s;
    CBLAS_TRANSPOSE ta = s->layout[0] == 'T' ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = s->layout[1] == 'T' ? CblasTrans : CblasNoTrans;
    int lda = ta == CblasTrans ? s->m : s->k, ldb = tb == CblasTrans ? s->k : s->n;
    if (p->wide)
        cblas_dgemm(CblasRowMajor, ta, tb, s->m, s->n, s->k, 1, p->a, lda, p->b, ldb, 0, p->c,
                    s->n);
    else
        cblas_sgemm(CblasRowMajor, ta, tb, s->m, s->n, s->k, 1, p->a, lda, p->b, ldb, 0, p->c,
                    s->n);
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values)
{
    qsort(values, SERIES, sizeof *values, by_value);
    return values[SERIES / 2];
}

/* GFLOP/s of one shape, ours, OpenBLAS in pieces and whole: medians of runs in turn. */
static void cross(shape s, bool wide, double rates[3])
{
    void (*const ways[])(const problem *) = {run_ours, run_pieces, run_whole};
    problem p = make(wide, s);
    double flops = 2.0 * s.m * s.n * s.k, times[3][SERIES];
    int64_t inner = flops < 4e6 ? (int64_t)(4e6 / flops) : 1;
    for (int j = 0; j < SERIES; j++)
        for (int way = 0; way < 3; way++) {
            if (j == 0) ways[way](&p);
            times[way][j] = seconds(ways[way], &p, inner);
        }
    for (int way = 0; way < 3; way++) rates[way] = flops / median(times[way]) * 1e-9;
    blas_rule = BLAS_AHEAD;
    drop(&p);
}

static void crossover(int threads)
{
    static const shape by_size[] = {
        {"NN", 8, 8, 8},       {"NN", 16, 16, 16},       {"NN", 24, 24, 24},
        {"NN", 32, 32, 32},    {"NN", 64, 64, 64},       {"NN", 128, 128, 128},
        {"NN", 256, 256, 256}, {"NN", 512, 512, 512},    {"TN", 512, 512, 512},
        {"NT", 512, 512, 512}, {"NN", 1024, 1024, 1024}, {"NN", 32, 512, 784},
        {"NN", 4, 512, 784},   {"NT", 1, 512, 784},      {"NT", 1, 4096, 4096},
        {"TN", 9, 32, 25088},
    };
    ed_set_num_threads(threads);
    openblas_set_num_threads(threads);
    watch = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    printf("%-28s %26s %26s\n%-28s", "GFLOP/s", "float32", "float64", threads > 1 ? "all" : "one");
    for (int wide = 0; wide < 2; wide++) printf(" %8s %8s %8s", "ours", "pieces", "whole");
    for (unsigned i = 0; i < sizeof by_size / sizeof *by_size; i++) {
        char name[80];
        const shape *s = &by_size[i];
        snprintf(name, sizeof name, "[%d,%d]x[%d,%d] %s", s->m, s->k, s->k, s->n, s->layout);
        printf("\n%-28s", name);
        for (int wide = 0; wide < 2; wide++) {
            double rates[3];
            cross(by_size[i], wide, rates);
            printf(" %8.1f %8.1f %8.1f", rates[0], rates[1], rates[2]);
        }
        fflush(stdout);
    }
    printf("\n\n");
}

int main(void)
{
    const int threads = ed_num_threads();
    crossover(1);
    if (threads > 1) crossover(threads);
    return 0;
}
