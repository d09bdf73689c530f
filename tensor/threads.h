/*
 * The library's one pool of threads. Work is cut into pieces whose borders depend on shapes only;
 * each thread has a share of them, and whoever is done with it takes from the others.
 *
 * Why not the compiler's parallel loops: their end is a barrier that every thread has to reach, and
 * they wait for it spinning. On a busy machine a loop of 10 us then lasts as long as it takes the
 * system to give the other thread a core: 20 ms were measured. Here the caller does all pieces
 * itself if nobody comes to help, and waits only for those that somebody has begun.
 */
#ifndef EDDY_TENSOR_THREADS_H
#define EDDY_TENSOR_THREADS_H

#include "tensor/hard.h"
#include <stdbool.h>
#include <stdint.h>

enum { THREADS_MOST = 64 };

/*
 * Calls range(first, last, worker, user) for ranges of `grain` numbers (the last one shorter) that
 * together are 0..n-1, in any order, some at the same time, and returns when all have returned.
 * worker differs between calls that run at the same time: a number for scratch memory. A call
 * within a range, or while another thread's work has the pool, or with grain >= n, does everything
 * in the calling thread, in order.
 */
typedef void (*threads_range)(int64_t first, int64_t last, int worker, void *user);
void threads_run(int64_t n, int64_t grain, threads_range range, void *user);

/*
 * The same with worker below `count`, for ranges whose scratch was made for so many: meanwhile
 * somebody may have changed how many there are.
 */
void threads_run_among(int count, int64_t n, int64_t grain, threads_range range, void *user);

/* From here on the calling thread does all work itself: for one in the background, which is not to
 * have the pool while those in the foreground want it. */
void threads_alone(void);

/*
 * Whether the calling thread's ranges may be left out once the program is interrupted: for work
 * whose result is thrown away then. Returns what held before. Whoever does that work must not take
 * a number that a range should have written as an index unchecked.
 */
static inline bool threads_may_stop(bool may);

/* Whether ranges of the calling thread were left out since this was asked last. */
static inline bool threads_left_out(void);

/* How many threads work at most, the caller's included. */
int threads_count(void);

/* ---- Every op's way through is inline -------------------------------------------------------- */

/* Written by handlers of signals, which have it without a lock. */
extern int threads_interrupted;

static inline bool threads_stopped(void)
{
    return __atomic_load_n(&threads_interrupted, __ATOMIC_RELAXED);
}

typedef struct threads_stop {
    bool may, left_out;
} threads_stop;

extern __thread threads_stop threads_stops __attribute__((tls_model("initial-exec")));

static inline bool threads_may_stop(bool may)
{
    const bool before = threads_stops.may;
    threads_stops.may = may;
    return before;
}

static inline bool threads_left_out(void)
{
    const bool was = threads_stops.left_out;
    threads_stops.left_out = false;
    return was;
}

#endif
