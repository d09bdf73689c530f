/*
 * What this machine can do at most: bytes copied, updated in place and read, in and out of the
 * cache, bytes written to disk, and multiply-adds. Threads of their own, each on its part of the
 * memory.
 */
#include "bench/bench.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MOST_THREADS = 256, HUGE_PAGE = 2 << 20 };

typedef struct part {
    workload *w;
    int index;
    float sink;
} part;

/* By the machine's sets, since these loops are no kernels of Eddy's. */
#if defined(__x86_64__)
#define TARGET(name) __attribute__((target(name)))
#define HAS(name)    __builtin_cpu_supports(name)
#else
#define TARGET(name)
#define HAS(name) 0
#endif
#ifdef __clang__
#define FUSED
#else
#define FUSED __attribute__((optimize("fp-contract=fast", "O3")))
#endif

typedef float wide __attribute__((vector_size(32), aligned(32)));

/* ---- Memory ---- */

/* n[0] bytes, n[1] times. */
static void copy_part(part *p)
{
    size_t size = (size_t)p->w->n[0] / (size_t)bench_threads();
    char *memory = p->w->more;
    for (int64_t i = 0; i < p->w->n[1]; i++)
        memcpy(memory + p->w->n[0] + size * (size_t)p->index, memory + size * (size_t)p->index,
               size);
}

/* How far ahead memory is asked for, beyond where the machine's own prefetching stops. */
enum { AHEAD = 4096 / sizeof(wide) };

/* The same past the caches where a machine can: nothing is fetched only to be overwritten. Of four
 * places, as below. */
TARGET("avx") static void stream(wide *to, const wide *from, size_t n)
{
    const size_t apart = n / 8 * 2;
    for (size_t i = 0; i < apart; i += 2)
        for (size_t k = 0; k < 8; k++) {
            const size_t at = k / 2 * apart + i + k % 2;
            if (k % 2 == 0) __builtin_prefetch(from + at + AHEAD);
#if defined(__x86_64__)
            _mm256_stream_ps((float *)(to + at), (__m256)from[at]);
#else
            to[at] = from[at];
#endif
        }
}

static void stream_part(part *p)
{
    size_t size = (size_t)p->w->n[0] / (size_t)bench_threads() / sizeof(wide);
    wide *from = (wide *)p->w->more + size * (size_t)p->index;
    for (int64_t i = 0; i < p->w->n[1]; i++)
        stream(from + (size_t)p->w->n[0] / sizeof(wide), from, size);
}

/* The sum of n, `run` at one place before it goes on at the next of 8 / run places. */
TARGET("avx")
static inline __attribute__((always_inline)) float sum(const wide *x, size_t n, const size_t run)
{
    const size_t apart = n / 8 * run;
    wide s[8] = {{0}};
    for (size_t i = 0; i < apart; i += run)
        for (size_t k = 0; k < 8; k++) {
            const wide *at = x + k / run * apart + i + k % run;
            if (k % run % 2 == 0) __builtin_prefetch(at + AHEAD);
            s[k] += *at;
        }
    for (int k = 1; k < 8; k++) s[0] += s[k];
    return s[0][0];
}

TARGET("avx") static float sum_cached(const wide *x, size_t n)
{
    return sum(x, n, 8);
}

/* Of four places: while one is at the end of a page, where the machine's own prefetching stops, the
 * others keep memory at work. */
TARGET("avx") static float sum_far(const wide *x, size_t n)
{
    return sum(x, n, 2);
}

static void read_part(part *p)
{
    const size_t size = (size_t)p->w->n[0] / (size_t)bench_threads() / sizeof(wide);
    const wide *x = (const wide *)p->w->more + size * (size_t)p->index;
    const bool cached = p->w->n[1] > 1; /* read more than once */
    for (int64_t i = 0; i < p->w->n[1]; i++) p->sink += (cached ? sum_cached : sum_far)(x, size);
}

TARGET("avx") static void negate(wide *x, size_t n)
{
    const size_t apart = n / 8 * 2;
    for (size_t i = 0; i < apart; i += 2)
        for (size_t k = 0; k < 8; k++) {
            wide *at = x + k / 2 * apart + i + k % 2;
            if (k % 2 == 0) __builtin_prefetch(at + AHEAD);
            *at = -*at;
        }
}

/* In place: what is written is in a cache already. */
static void update_part(part *p)
{
    size_t size = (size_t)p->w->n[0] / (size_t)bench_threads() / sizeof(wide);
    for (int64_t i = 0; i < p->w->n[1]; i++)
        negate((wide *)p->w->more + size * (size_t)p->index, size);
}

static void make_memory(workload *w)
{
    w->more = aligned_alloc(HUGE_PAGE, 2 * (size_t)w->n[0]);
    if (!w->more) abort();
    madvise(w->more, 2 * (size_t)w->n[0], MADV_HUGEPAGE); /* as Eddy does with its own */
    memset(w->more, 0, 2 * (size_t)w->n[0]);
}

static void drop_memory(workload *w)
{
    free(w->more);
}

/* ---- Disk: n[0] bytes written and forced there, in TMPDIR or the program's folder ---- */

static void write_part(part *p)
{
    char path[600];
    const char *given = getenv("TMPDIR"), *memory = p->w->more;
    if (p->index) return;
    snprintf(path, sizeof path, "%s/eddy-bench-%d", given ? given : bench_folder(), (int)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0) abort();
    unlink(path);
    for (int64_t at = 0; at < p->w->n[0]; at += 1 << 20)
        if (write(file, memory + at, 1 << 20) != 1 << 20) abort();
    if (fsync(file)) abort();
    close(file);
}

/* ---- Multiply-adds: twelve chains, which fit the registers of every set ---- */

/* Of all threads together, so that the amount is one for any number of them: long enough that the
 * second thread's start does not count. */
enum { CHAINS = 12, STEPS = 16000000 };

/* clang-format off */
#define MULTIPLY_ADDS(name, element, bytes, set)                                                   \
    TARGET(set) FUSED static float name(long steps)                                                \
    {                                                                                              \
        typedef element vector __attribute__((vector_size(bytes)));                                \
        vector a[CHAINS], x = {1}, y = {(element)0.5};                                             \
        for (int i = 0; i < CHAINS; i++) a[i] = (vector){(element)i};                              \
        for (long s = 0; s < steps; s++)                                                           \
            for (int i = 0; i < CHAINS; i++) a[i] = a[i] * x + y;                                  \
        for (int i = 1; i < CHAINS; i++) a[0] += a[i];                                             \
        return (float)a[0][0];                                                                     \
    }
MULTIPLY_ADDS(flops_512, float, 64, "avx512f")
MULTIPLY_ADDS(flops_256, float, 32, "avx2,fma")
MULTIPLY_ADDS(flops_128, float, 16, "sse2")
MULTIPLY_ADDS(double_flops_512, double, 64, "avx512f")
MULTIPLY_ADDS(double_flops_256, double, 32, "avx2,fma")
MULTIPLY_ADDS(double_flops_128, double, 16, "sse2")
/* clang-format on */

/* Bytes of the widest vectors. */
static int width(void)
{
    return HAS("avx512f") ? 64 : HAS("fma") ? 32 : 16;
}

static void flops_part(part *p)
{
    const long steps = STEPS / bench_threads();
    p->sink = width() == 64   ? flops_512(steps)
              : width() == 32 ? flops_256(steps)
                              : flops_128(steps);
}

static void double_flops_part(part *p)
{
    const long steps = STEPS / bench_threads();
    p->sink = width() == 64   ? double_flops_512(steps)
              : width() == 32 ? double_flops_256(steps)
                              : double_flops_128(steps);
}

/* ---- All ---- */

static void *begin(void *argument)
{
    part *p = argument;
    void (*const *f)(part *) = p->w->row;
    (*f)(p);
    return NULL;
}

static ed_tensor *on_threads(workload *w)
{
    part parts[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int n = bench_threads() < MOST_THREADS ? bench_threads() : MOST_THREADS;
    for (int i = 0; i < n; i++) {
        parts[i] = (part){w, i, 0};
        if (i && pthread_create(&threads[i], NULL, begin, &parts[i])) abort();
    }
    begin(&parts[0]);
    for (int i = 1; i < n; i++) pthread_join(threads[i], NULL);
    return NULL;
}

void bench_limit(void)
{
    static void (*const copy)(part *) = copy_part, (*const read)(part *) = read_part,
                                   (*const streamed)(part *) = stream_part,
                                   (*const update)(part *) = update_part,
                                   (*const written)(part *) = write_part,
                                   (*const flops)(part *) = flops_part,
                                   (*const doubles)(part *) = double_flops_part;
    static const struct {
        const char *name;
        int64_t bytes;
        int times;
    } sizes[] = {{"cache", 8 << 20, 25}, {"memory", 64 << 20, 1}};
    for (int i = 0; i < 2; i++) {
        workload w = {.calls = sizes[i].times,
                      .make = make_memory,
                      .run = on_threads,
                      .drop = drop_memory,
                      .n = {sizes[i].bytes, sizes[i].times}};
        w.unit = BENCH_BYTES, w.amount = 2 * (double)sizes[i].bytes, w.row = &copy;
        bench_add(w, "copy_%s", sizes[i].name);
        w.row = &streamed;
        bench_add(w, "stream_%s", sizes[i].name);
        w.unit = BENCH_UPDATED, w.row = &update;
        bench_add(w, "update_%s", sizes[i].name);
        w.unit = BENCH_READ, w.amount = (double)sizes[i].bytes, w.row = &read;
        bench_add(w, "read_%s", sizes[i].name);
    }
    workload disk = {BENCH_WRITTEN,     384 << 20,           .make = make_memory,
                     .run = on_threads, .drop = drop_memory, .n = {384 << 20}};
    disk.row = &written;
    bench_add(disk, "write_and_sync");
    double chains = 2.0 * CHAINS * STEPS * width();
    bench_add((workload){BENCH_FLOPS, chains / 4, .run = on_threads, .row = &flops}, "flops");
    bench_add((workload){BENCH_DOUBLE_FLOPS, chains / 8, .run = on_threads, .row = &doubles},
              "double_flops");
}
