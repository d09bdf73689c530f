#include "tensor/threads.h"
#include "tensor/float_state.h"
#include "tensor/tensor.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/*
 * One job at a time. The caller publishes it by counting `generation` up, takes pieces like
 * everybody else, then closes the job and waits for the helpers inside to leave. A helper enters
 * (inside++) before it looks whether the job is still open; the caller closes before it looks
 * whether anybody is inside: whichever comes second sees the other.
 *
 * Each thread has a share of the pieces, the same stretch whenever as many are to be done, and
 * takes from the others' when its own is done. So a thread finds in its caches what the op before
 * left there: two cores that have no cache in common stepped over ten million weights at half the
 * speed when they took pieces by turns.
 *
 * Helpers wait for the next job spinning for a short time, since one op follows another, and then
 * sleep.
 */

typedef struct job {
    threads_range range;
    void *user;
    int64_t grain;
    int count;  /* of the threads that may take part */
    int shares; /* how many there are: at most as many */
    bool may_stop;
    uint64_t floats; /* the caller's floating-point state, without traps */
} job;

typedef struct share {
    int64_t next, end;
} __attribute__((aligned(64))) share; /* a cache line, which others want only at the end */

static struct {
    pthread_mutex_t lock;  /* of what follows, and for sleeping */
    pthread_cond_t work;   /* a new generation */
    pthread_cond_t left;   /* nobody is inside */
    pthread_mutex_t owner; /* held by the caller whose job it is */
    int count;             /* threads to use, the caller's included; 0: not asked yet */
    int started;           /* helpers that exist */
    int asleep;
    bool ended;
    pthread_t helpers[THREADS_MOST];

    uint32_t generation; /* these are atomic */
    uint32_t inside;
    bool open;
    job job;
    share shares[THREADS_MOST];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .left = PTHREAD_COND_INITIALIZER,
          .owner = PTHREAD_MUTEX_INITIALIZER};

static __thread bool working; /* within a range, or alone: work is done at once */

enum { SPIN_NS = 50000 };

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most machines */
#endif
}

/* Whether `*word` ceases to be `value` within the time that is worth spinning. */
static bool spin_while(const uint32_t *word, uint32_t value)
{
    int64_t end = 0;
    for (int turns = 1;; turns++) {
        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return true;
        relax();
        if (turns % 64) continue;
        int64_t now = nanoseconds();
        if (!end) end = now + SPIN_NS;
        if (now > end) return false;
    }
}

/* ---- Interruption ---------------------------------------------------------------------------- */

int threads_interrupted;
__thread threads_stop threads_stops;

void ed_interrupt(void)
{
    __atomic_store_n(&threads_interrupted, 1, __ATOMIC_RELAXED);
}

void ed_clear_interrupt(void)
{
    __atomic_store_n(&threads_interrupted, 0, __ATOMIC_RELAXED);
}

bool ed_interrupted(void)
{
    return threads_stopped();
}

/* ---- Helpers --------------------------------------------------------------------------------- */

static void take_share(job *j, share *s, int worker)
{
    while (!j->may_stop || !threads_stopped()) {
        if (__atomic_load_n(&s->next, __ATOMIC_RELAXED) >= s->end) return;
        const int64_t first = __atomic_fetch_add(&s->next, j->grain, __ATOMIC_RELAXED);
        if (first >= s->end) return;
        j->range(first, s->end - first < j->grain ? s->end : first + j->grain, worker, j->user);
    }
}

/* Its own share, then what is left of the others. */
static void take_ranges(job *j, int worker)
{
    for (int k = 0; k < j->shares; k++)
        take_share(j, &pool.shares[(worker + k) % j->shares], worker);
}

static void take_ranges_as_caller(job *j, int worker)
{
    const uint64_t own = float_state();
    float_set_state(j->floats);
    take_ranges(j, worker);
    float_set_state(own);
}

/* The last one out tells a caller that may be asleep. */
static void leave(void)
{
    if (__atomic_sub_fetch(&pool.inside, 1, __ATOMIC_SEQ_CST) == 0 &&
        !__atomic_load_n(&pool.open, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.left);
        pthread_mutex_unlock(&pool.lock);
    }
}

static uint32_t wait_for_work(uint32_t seen)
{
    if (!spin_while(&pool.generation, seen)) {
        pthread_mutex_lock(&pool.lock);
        pool.asleep++;
        while (__atomic_load_n(&pool.generation, __ATOMIC_SEQ_CST) == seen && !pool.ended)
            pthread_cond_wait(&pool.work, &pool.lock);
        pool.asleep--;
        pthread_mutex_unlock(&pool.lock);
    }
    return __atomic_load_n(&pool.generation, __ATOMIC_SEQ_CST);
}

static void *help(void *argument)
{
    int worker = (int)(intptr_t)argument;
    uint32_t seen = 0;
    working = true;
    for (;;) {
        seen = wait_for_work(seen);
        if (__atomic_load_n(&pool.ended, __ATOMIC_SEQ_CST)) return NULL;
        if (worker >= __atomic_load_n(&pool.count, __ATOMIC_RELAXED)) continue;
        __atomic_add_fetch(&pool.inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&pool.open, __ATOMIC_SEQ_CST) && worker < pool.job.count)
            take_ranges_as_caller(&pool.job, worker);
        leave();
    }
}

/* ---- How many -------------------------------------------------------------------------------- */

static int from_environment(const char *name)
{
    const char *text = getenv(name);
    long n = text ? strtol(text, NULL, 10) : 0;
    return n < 1 ? 0 : n > THREADS_MOST ? THREADS_MOST : (int)n;
}

static int choose_count(void)
{
    int n = from_environment("EDDY_NUM_THREADS");
    if (!n) n = from_environment("OMP_NUM_THREADS");
    if (n) return n;
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) n = CPU_COUNT(&cores);
    return n < 1 ? 1 : n > THREADS_MOST ? THREADS_MOST : n;
}

int threads_count(void)
{
    int count = __atomic_load_n(&pool.count, __ATOMIC_RELAXED);
    if (count) return count;
    count = choose_count();
    __atomic_store_n(&pool.count, count, __ATOMIC_RELAXED);
    return count;
}

int ed_num_threads(void)
{
    return threads_count();
}

bool ed_set_num_threads(int count)
{
    if (count < 1 || count > THREADS_MOST)
        return ed_fail(ED_INVALID_ARGUMENT, "set_num_threads: count must be 1 to %d, got %d",
                       THREADS_MOST, count),
               false;
    __atomic_store_n(&pool.count, count, __ATOMIC_RELAXED);
    return true;
}

/* ---- A child of fork has no helpers and starts anew ------------------------------------------ */

static void in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_mutex_init(&pool.owner, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.left, NULL);
    pool.started = pool.asleep = 0;
    pool.inside = 0;
    pool.open = false;
}

/* Missing helpers are no error: the caller does their share. Signals are the program's own
 * threads' business. */
static void start_helpers(int count)
{
    static bool watching_forks;
    if (!watching_forks) watching_forks = pthread_atfork(NULL, NULL, in_child) == 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.started < count - 1 && pthread_create(&pool.helpers[pool.started], NULL, help,
                                                      (void *)(intptr_t)(pool.started + 1)) == 0)
        pool.started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

__attribute__((destructor(104))) static void threads_end(void)
{
    pthread_mutex_lock(&pool.lock);
    __atomic_store_n(&pool.ended, true, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&pool.generation, 1, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (; pool.started; pool.started--) pthread_join(pool.helpers[pool.started - 1], NULL);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void publish(void)
{
    __atomic_store_n(&pool.open, true, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&pool.generation, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&pool.lock);
    if (pool.asleep) pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

static void wait_for_helpers(void)
{
    __atomic_store_n(&pool.open, false, __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t inside = __atomic_load_n(&pool.inside, __ATOMIC_SEQ_CST);
        if (!inside) return;
        if (spin_while(&pool.inside, inside)) continue;
        pthread_mutex_lock(&pool.lock);
        if (__atomic_load_n(&pool.inside, __ATOMIC_SEQ_CST))
            pthread_cond_wait(&pool.left, &pool.lock);
        pthread_mutex_unlock(&pool.lock);
    }
}

void threads_alone(void)
{
    working = true;
}

void threads_run(int64_t n, int64_t grain, threads_range range, void *user)
{
    threads_run_among(threads_count(), n, grain, range, user);
}

/* At once; or in a few steps, between which it can be stopped. */
static void run_alone(int64_t n, int64_t grain, threads_range range, void *user)
{
    enum { STEPS = 64 };
    int64_t step = grain < n && threads_stops.may ? (n / grain / STEPS + 1) * grain : n;
    for (int64_t first = 0; first < n; first += step) {
        if (threads_stops.may && threads_stopped()) {
            threads_stops.left_out = true;
            return;
        }
        range(first, n - first < step ? n : first + step, 0, user);
    }
}

/* As many shares as there are threads, or as pieces if those are fewer. Their borders are pieces',
 * which do not depend on the number of threads. */
static int share_out(int count, int64_t n, int64_t grain)
{
    const int64_t pieces = (n - 1) / grain + 1;
    const int shares = pieces < count ? (int)pieces : count;
    for (int i = 0; i < shares; i++)
        pool.shares[i] = (share){i * pieces / shares * grain, (i + 1) * pieces / shares * grain};
    pool.shares[shares - 1].end = n;
    return shares;
}

static bool all_taken(const job *j)
{
    for (int i = 0; i < j->shares; i++)
        if (pool.shares[i].next < pool.shares[i].end) return false;
    return true;
}

void threads_run_among(int count, int64_t n, int64_t grain, threads_range range, void *user)
{
    if (grain >= n || count < 2 || working || pthread_mutex_trylock(&pool.owner)) {
        run_alone(n, grain, range, user);
        return;
    }
    working = true;
    if (pool.started < count - 1) start_helpers(count);
    pool.job = (job){.range = range,
                     .user = user,
                     .grain = grain,
                     .count = count,
                     .shares = share_out(count, n, grain),
                     .may_stop = threads_stops.may,
                     .floats = float_without_traps(float_state())};
    publish();
    take_ranges(&pool.job, 0);
    wait_for_helpers();
    if (!all_taken(&pool.job)) threads_stops.left_out = true;
    working = false;
    pthread_mutex_unlock(&pool.owner);
}
