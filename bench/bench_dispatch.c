/*
 * What an op costs beyond its arithmetic: one-element tensors, where nearly all the time is the
 * doorway's. Prints `workload<TAB>seconds`.
 */
#include "eddy.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHAIN = 1000, SAMPLES = 301 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median time of one of the CHAIN ops that f runs. */
static void measure(const char *name, void (*f)(ed_tensor *x), int64_t size)
{
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(size));
    double seconds[SAMPLES];
    for (int i = 0; i < 20; i++) f(x);
    for (int i = 0; i < SAMPLES; i++) {
        double start = now();
        f(x);
        seconds[i] = (now() - start) / CHAIN;
    }
    qsort(seconds, SAMPLES, sizeof *seconds, by_value);
    printf("%s\t%.3e\t# min %.1f ns, median %.1f ns\n", name, seconds[SAMPLES / 2],
           seconds[0] * 1e9, seconds[SAMPLES / 2] * 1e9);
}

static void adds(ed_tensor *x)
{
    ED_SCOPE;
    for (int i = 0; i < CHAIN; i++) ed_add(x, x);
}

static void recorded_adds(ed_tensor *x)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    for (int i = 0; i < CHAIN; i++) ed_add(x, x);
}

static void add_chain(ed_tensor *x)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_watch(tape, x), *one = ed_value(x);
    for (int i = 0; i < CHAIN; i++) y = ed_add(y, one);
    ed_gradient(tape, y, x);
}

static void mul_chain(ed_tensor *x)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_watch(tape, x), *one = ed_ones_like(x);
    for (int i = 0; i < CHAIN; i++) y = ed_mul(y, one);
    ed_gradient(tape, y, x);
}

static void reshapes(ed_tensor *x)
{
    ED_SCOPE;
    for (int i = 0; i < CHAIN; i++) ed_reshape(x, ED_SHAPE(-1, 1));
}

static void slices(ed_tensor *x)
{
    ED_SCOPE;
    for (int i = 0; i < CHAIN; i++) ed_slice(x, .end = ED_INTS(1));
}

int main(void)
{
    measure("A.add_1_nograd", adds, 1);
    measure("A.add_64_nograd", adds, 64);
    measure("A.add_1_recorded", recorded_adds, 1);
    measure("A.chain1000_1_fwd_bwd", add_chain, 1);
    measure("A.chain1000_64_fwd_bwd", add_chain, 64);
    measure("A.chain1000_mul_1_fwd_bwd", mul_chain, 1);
    measure("A.view_64", reshapes, 64);
    measure("A.slice_64", slices, 64);
    return ed_failed() ? fprintf(stderr, "%s\n", ed_error()), 1 : 0;
}
