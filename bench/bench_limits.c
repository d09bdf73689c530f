/*
 * What this machine can do at most, to be read beside the other figures: bytes a second through
 * memory, multiply-adds a second. Two lines, of which the second column is the time for 64 MB
 * copied and for one GFLOP.
 */
#include "bench/programs.h"
#include <omp.h>

enum { BYTES = 64 << 20 };

static char *from, *to;

static void copy(void *user)
{
    (void)user;
    int pieces = omp_get_max_threads();
#pragma omp parallel for
    for (int i = 0; i < pieces; i++) {
        size_t piece = BYTES / (size_t)pieces;
        memcpy(to + (size_t)i * piece, from + (size_t)i * piece, piece);
    }
}

typedef float wide __attribute__((vector_size(64)));

/* Twenty chains of multiply-adds, which the compiler keeps in registers. */
enum { CHAINS = 20 };
__attribute__((target_clones("default", "avx2,fma", "avx512f"),
               optimize("fp-contract=fast"))) static float
multiply_adds(long steps)
{
    wide a[CHAINS], x = {1.0f}, y = {0.5f};
    for (int i = 0; i < CHAINS; i++) a[i] = (wide){(float)i}; /* else they were all one */
    for (long s = 0; s < steps; s++)
#pragma GCC unroll 20
        for (int i = 0; i < CHAINS; i++) a[i] = a[i] * x + y;
    wide sum = a[0];
#pragma GCC unroll 20
    for (int i = 1; i < CHAINS; i++) sum += a[i];
    return sum[0];
}

static volatile float sink;

static void gigaflop(void *user)
{
    (void)user;
    int threads = omp_get_max_threads();
    long steps = 1000000000L / (CHAINS * 16 * 2) / threads;
#pragma omp parallel for
    for (int i = 0; i < threads; i++) sink = multiply_adds(steps);
}

int main(int argc, char **argv)
{
    if (!bench_wanted(argc, argv, "limit")) return 0;
    from = calloc(1, BYTES);
    to = calloc(1, BYTES);
    if (!from || !to) return 1;
    memset(from, 1, BYTES);
    memset(to, 1, BYTES);
    bench_run("limit_copy_64MB", copy, NULL, 1);
    bench_run("limit_fma_GFLOP", gigaflop, NULL, 1);
    free(from);
    free(to);
    return 0;
}
