/*
 * What the groups of workloads share. A workload is one structure: what is made before, what is
 * timed, a check of its result, and what a run moves or computes, so that a time becomes a rate and
 * the machine's limit a time. A group is a file with one function, which adds its workloads from
 * small tables; bench.c runs them. The peers' programs (bench/peers) have the same ids.
 *
 * An id is "group.name": ONLY=conv takes what begins so, before the point or behind it.
 */
#ifndef EDDY_BENCH_H
#define EDDY_BENCH_H

#include "eddy.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { M1 = 1 << 20, M16 = 1 << 24, CALLS = 1000 };

/* What a run does, and so which of the machine's limits (limits.c) it is held against. */
typedef enum bench_unit {
    BENCH_CALLS,        /* nothing that has a limit */
    BENCH_BYTES,        /* bytes read, and written elsewhere: each operand and result once */
    BENCH_UPDATED,      /* the same, where what is written was read before */
    BENCH_READ,         /* bytes read; hardly anything is written */
    BENCH_FLOPS,        /* multiplications and additions of float32 */
    BENCH_DOUBLE_FLOPS, /* of float64 */
    BENCH_WRITTEN,      /* bytes written and forced to disk */
    BENCH_SAMPLES,      /* examples that a step trains on */
} bench_unit;

typedef struct workload workload;
struct workload {
    bench_unit unit;
    double amount;                            /* of the unit, in a run */
    double moved;                             /* beside flops: bytes of operands and results */
    int calls;                                /* made by a run; the time is that of one; 0: one */
    void (*make)(workload *w);                /* before the first run; in a scope that stays open */
    ed_tensor *(*run)(workload *w);           /* what is timed, in a scope of its own */
    void (*before)(workload *w);              /* each run, untimed: a sample is then one run */
    void (*check)(workload *w, ed_tensor *y); /* of what the first run gave: see bench_near */
    void (*drop)(workload *w);                /* at the end: what a scope doesn't release */

    /* Instead of run and check: what bench_gradients differentiates by the tensors of `list`, from
     * a random gradient of its result on. */
    ed_tensor *(*forward)(workload *w);

    const void *row; /* of the group's table */
    int64_t n[8];    /* sizes and choices, as the group likes */

    ed_tensor *x[6]; /* what make leaves for run */
    ed_list *list;   /* with gradients: x[0], x[1] ..., then variables of layers */
    void *more;
    ed_tensor *dy;  /* the gradient of forward's result */
    int64_t memory; /* at the most, in bytes, that a run took in another process; 0: none */

    char id[96]; /* set by bench_add */
};

/* Adds a workload by the name of its group and what is printed by the format. */
__attribute__((format(printf, 2, 3))) void bench_add(workload w, const char *format, ...);

/* The time, in seconds. */
double bench_now(void);

/* Threads that Eddy and the measured limits use. */
int bench_threads(void);

/* Where this program lies. */
const char *bench_folder(void);

/* The gradients of w->forward; what is run where that is given. bench_gradients_make makes dy;
 * _check compares the first gradients with a difference along a random direction. */
ed_tensor *bench_gradients(workload *w);
void bench_gradients_make(workload *w);
void bench_gradients_check(workload *w);

/* ---- For make ---- */

/* Numbers in -2..2; in 0.1..2.1; indices 0 to below. */
ed_tensor *bench_numbers(ed_ints shape);
ed_tensor *bench_positive(ed_ints shape);
ed_tensor *bench_indices(int64_t count, int64_t below, ed_dtype dtype);

/* Leaves Eddy's cache of memory full of freed tensors of other sizes. */
void bench_fill_cache(void);

/* ---- For check: the first complaint is printed instead of a time ---- */

/* Element i of a contiguous tensor, as a double. */
double bench_at(const ed_tensor *t, int64_t i);

/* Complains unless |got - want| <= tolerance max(1, |want|). */
void bench_near(const char *what, double got, double want, double tolerance);

/* Complains unless so. */
void bench_claim(bool so, const char *what);

/* The shape is this one. */
void bench_shape(const ed_tensor *t, ed_ints shape);

/* Indices over 0 to n - 1: all of them, or about a thousand. */
/* clang-format off */
#define BENCH_SPREAD(i, n) for (int64_t i = 0; i < (n); i += (n) > 2000 ? (n) / 997 : 1)
/* clang-format on */

/* ---- The groups ---- */

#define BENCH_GROUPS(GROUP)                                                                        \
    GROUP(limit)                                                                                   \
    GROUP(dispatch)                                                                                \
    GROUP(elementwise)                                                                             \
    GROUP(reduction)                                                                               \
    GROUP(product)                                                                                 \
    GROUP(linalg)                                                                                  \
    GROUP(convolution)                                                                             \
    GROUP(copy)                                                                                    \
    GROUP(image)                                                                                   \
    GROUP(indexing)                                                                                \
    GROUP(many)                                                                                    \
    GROUP(training)                                                                                \
    GROUP(fit)                                                                                     \
    GROUP(optimizer)                                                                               \
    GROUP(random)                                                                                  \
    GROUP(file)                                                                                    \
    GROUP(process)
#define BENCH_DECLARE(group) void bench_##group(void);
BENCH_GROUPS(BENCH_DECLARE)

#endif
