/*
 * Nanoseconds an element of the elementwise loops, data in the L1 cache: one line a function, one
 * column for each type and instruction set. Arguments name the functions to run; all without. The
 * figure is the fastest of many short runs.
 */
#include "ops/elementwise.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N = 2048, REPEAT = 20, RUNS = 60 };

static float x32[N], y32[N], to32[N];
static double x64[N], y64[N], to64[N];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double measure(elementwise_loop loop, int wide, const void *attrs)
{
    const void *const in32[] = {x32, y32}, *const in64[] = {x64, y64};
    double best = 1e30;
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        for (int i = 0; i < REPEAT; i++)
            loop(N, wide ? in64 : in32, (const int[]){1, 1}, wide ? (void *)to64 : (void *)to32,
                 attrs);
        double one = (now() - start) / (REPEAT * N);
        if (one < best) best = one;
    }
    return best;
}

static int wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return argc < 2;
}

/* An elementwise op that takes floats and gives what it takes. */
static int suits(const ed_op *op)
{
    return op->kernel == elementwise_kernel && op->operands[0].dtypes & ED_SET_FLOAT &&
           op->infer != elementwise_infer_bool && !op->operands[2].name && strcmp(op->name, "cast");
}

int main(int argc, char **argv)
{
    int sets = isa_best() + 1;
    for (int i = 0; i < N; i++) { /* every function is defined on part of -1.5 .. 4.5 */
        double step = (double)i * 0.6180339887498949;
        x64[i] = -1.5 + 6.0 * (step - (double)(long)step);
        y64[N - 1 - i] = x64[i];
        x32[i] = (float)x64[i], y32[N - 1 - i] = (float)x64[i];
    }
    printf("%-22s", "ns/element");
    for (int i = 0; i < 2 * sets; i++)
        printf(" %3s %-8s", i < sets ? "f32" : "f64", isa_name(i % sets));
    printf("\n");
    for (int f = 0; f < ed_op_count(); f++) {
        const ed_op *op = ed_op_at(f);
        const elementwise_table *table = op->extra;
        if (!suits(op) || !wanted(op->name, argc, argv)) continue;
        printf("%-22s", op->name);
        for (int i = 0; i < 2 * sets; i++) {
            elementwise_loop loop = (*table)[i % sets][i < sets ? ED_FLOAT32 : ED_FLOAT64];
            printf(" %12.3f", measure(loop, i >= sets, op->defaults));
        }
        printf("\n");
    }
    return 0;
}
