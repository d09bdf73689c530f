/*
 * Optimizer steps alone, over 10 million float32 parameters and over those of a small network: one
 * line each, workload<TAB>seconds a step<TAB>GB/s. Usage: bench_optim [--threads N] [--only
 * PREFIX]. Medians.
 */
#include "eddy.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 400, VARIABLES = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static ed_tensor *numbers(int64_t n)
{
    float *values = malloc((size_t)n * sizeof *values);
    if (!values) exit(1);
    for (int64_t i = 0; i < n; i++) values[i] = (float)(i * 2654435761u % 2000) / 1000 - 1;
    ed_tensor *t = ed_constant(values, ED_SHAPE(n));
    free(values);
    return t;
}

static void time_steps(const char *name, ed_optimizer *optimizer, const int64_t *sizes, int count,
                       double bytes)
{
    ed_tensor *variables[VARIABLES], *gradients[VARIABLES];
    double seconds[MOST], elements = 0;
    for (int i = 0; i < count; i++) {
        gradients[i] = numbers(sizes[i]);
        variables[i] = ed_variable(gradients[i]);
        elements += (double)sizes[i];
    }
    ed_list *g = ed_list_make(gradients, count), *v = ed_list_make(variables, count);
    for (int i = 0; i < 3; i++) ed_apply_gradients(optimizer, g, v);
    int n = 0;
    double end = now() + 1;
    while (n < MOST && (n < 5 || now() < end)) {
        double start = now();
        ed_apply_gradients(optimizer, g, v);
        seconds[n++] = now() - start;
    }
    qsort(seconds, (size_t)n, sizeof *seconds, ascending);
    printf("%s\t%.4e\t%.1f GB/s\n", name, seconds[n / 2], elements * bytes / seconds[n / 2] * 1e-9);
}

enum { ADAM, SGD, SGD_MOMENTUM, RMSPROP, ADAM_CLIPPED, KINDS };

static const struct kind {
    const char *name;
    double bytes; /* read and written for each parameter */
} kinds[KINDS] = {{"adam", 28},
                  {"sgd", 12},
                  {"sgd_momentum", 20},
                  {"rmsprop", 20},
                  {"adam_clip_global_norm", 32}};

static ed_optimizer *make(int kind)
{
    switch (kind) {
    case ADAM: return ed_adam();
    case SGD: return ed_sgd(.learning_rate = 1e-3);
    case SGD_MOMENTUM: return ed_sgd(.learning_rate = 1e-3, .momentum = 0.9);
    case RMSPROP: return ed_rmsprop();
    default: return ed_adam(.clip.global_norm = 1);
    }
}

int main(int argc, char **argv)
{
    const char *only = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--threads")) omp_set_num_threads(atoi(argv[i + 1]));
        if (!strcmp(argv[i], "--only")) only = argv[i + 1];
    }
    static const int64_t mlp[] = {784 * 512, 512, 512 * 10, 10};
    int64_t hundred[VARIABLES];
    for (int i = 0; i < VARIABLES; i++) hundred[i] = 100000;
    const struct {
        const char *name;
        const int64_t *sizes;
        int count;
    } loads[] = {{"10M_in_1", (const int64_t[]){10000000}, 1},
                 {"10M_in_100", hundred, VARIABLES},
                 {"mlp", mlp, 4}};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
            ED_SCOPE;
            char name[64];
            snprintf(name, sizeof name, "H.%s_%s", kinds[kind].name, loads[i].name);
            if (strncmp(name, only, strlen(only))) continue;
            time_steps(name, make(kind), loads[i].sizes, loads[i].count, kinds[kind].bytes);
        }
    if (ed_failed()) return fprintf(stderr, "%s\n", ed_error()), 1;
}
