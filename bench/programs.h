/* What the bench_* programs share: a clock, medians, a line a workload: `name<TAB>seconds`. */
#ifndef EDDY_BENCH_PROGRAMS_H
#define EDDY_BENCH_PROGRAMS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The workloads to run, by prefix: program [prefix...]; none means all. */
static inline int bench_wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(name, argv[i], strlen(argv[i]))) return 1;
    return argc < 2;
}

/*
 * Runs f(user), which does the work `per` times, for about half a second and prints the median of
 * one.
 */
static inline void bench_run(const char *name, void (*f)(void *user), void *user, double per)
{
    enum { MOST = 2000 };
    static double seconds[MOST];
    double start = bench_now();
    f(user);
    double once = bench_now() - start, end = bench_now() + 0.5;
    int inner = once > 1e-3 ? 1 : (int)(1e-3 / (once + 1e-9)) + 1, n = 0;
    for (int i = 0; i < 3 * inner && bench_now() < end; i++) f(user);
    end = bench_now() + 0.5;
    while (n < 5 || (n < MOST && bench_now() < end)) {
        start = bench_now();
        for (int i = 0; i < inner; i++) f(user);
        seconds[n++] = (bench_now() - start) / inner / per;
    }
    qsort(seconds, (size_t)n, sizeof *seconds, bench_by_value);
    printf("%s\t%.4e\n", name, seconds[n / 2]);
    fflush(stdout);
}

#endif
