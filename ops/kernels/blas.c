/*
 * OpenBLAS uses one thread where we call it: the threads are our pool's, and its bits depend on
 * their number. How it is told so depends on how it was built (openblas_get_parallel):
 *
 * - for one thread: it computes wrong results where several threads call it at a time (Debian's
 *   does in some 0.3 % of small calls), and the program may be calling it too. It takes no product.
 * - with OpenMP: it asks OpenMP how many threads the calling thread may have. That is a setting of
 *   each thread; it is put back after the call.
 * - with threads of its own, as Debian installs it: its number of threads is one for the whole
 *   process (so is that of openblas_set_num_threads_local), and the program's. What is left is that
 *   it never cuts a product of up to SINGLE multiply-adds: larger ones are made of such calls.
 *
 * A call never has one row or one column, unless the whole product does: newer versions compute
 * such calls by other routines, whose use of threads has other limits.
 */
#include "ops/kernels/blas.h"
#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <strings.h>

int blas_rule = BLAS_AHEAD;

/*
 * The multiply-adds from which OpenBLAS is ahead, by instruction set and dtype (float32, float64);
 * 0: at no size. tools/crossover.c prints the figures they are set by. GFLOP/s of one thread on
 * an AMD EPYC (Zen 3), OpenBLAS 0.3.21 with threads of its own: ours, its calls as they are made
 * here, and one call of it for the whole product, which only OpenMP's build could make:
 *
 *                          float32              float64
 *               16^3    13.8  15.2  13.5      6.5  12.2  12.3
 *    baseline   24^3    17.6  27.2  26.8      7.6  16.2  16.1
 *               64^3    19.3  48.5  47.0      8.4  27.0  26.7
 *              512^3    19.0  45.0  70.4      9.6  22.7  35.3
 *    AVX2      512^3    76.0  45.0  76.0     37.9  22.7  40.9
 *             1024^3    74.5  40.8  77.2     33.8  21.7  37.1
 *
 * The baseline set stands for every machine whose vectors are not ours. With OPENBLAS_CORETYPE
 * set to a machine without AVX2, its calls come to 31.3 and 19.7 at 512^3 (Sandybridge), 18.2 and
 * 9.9 (Nehalem, where they gain nothing).
 *
 * On a machine with AVX-512 whose set is the baseline (EDDY_ISA, ISAS) all products are ours, too:
 * OpenBLAS has kernels for small ones there whose bits depend on how the operands lie.
 *
 * On aarch64 the baseline has a tile of its own, whose inner loop is 16 fused multiply-adds to 9
 * loads, so all products are ours; no figures of such a machine were taken.
 */
enum { THIN = 8 }; /* rows, columns or steps below which the loops for thin products are used */
#if defined(__aarch64__)
static const double ahead_from[ISA_COUNT][2];
#else
static const double ahead_from[ISA_COUNT][2] = {{16384, 16384}, {0, 0}, {0, 0}};
#endif

/* ---- How it may be called -------------------------------------------------------------------- */

enum { SINGLE = 4 * 65536, EDGE = 64 };

static struct {
    bool safe;  /* several threads may call it at a time */
    bool whole; /* calls may be of any size */
    bool alike; /* its bits do not depend on how the operands lie */
    int (*omp_threads)(void);
    void (*omp_set_threads)(int);
} library;

__attribute__((constructor)) static void look(void)
{
    int kind = openblas_get_parallel();
    library.safe = kind != OPENBLAS_SEQUENTIAL;
    const char *core = openblas_get_corename();
    library.alike = strcasecmp(core, "SkylakeX") != 0 && strcasecmp(core, "Cooperlake") != 0 &&
                    strcasecmp(core, "SapphireRapids") != 0;
    if (kind != OPENBLAS_OPENMP) return;
    library.omp_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    library.omp_set_threads = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    library.whole = library.omp_threads && library.omp_set_threads;
}

/* ---- What it takes --------------------------------------------------------------------------- */

/* Whether lines of `length` elements, of `size` bytes each, lie one after the other. */
static bool has_lines(int64_t size, int64_t step, int64_t line, int64_t length)
{
    return step == size && line >= length * size && line / size <= INT_MAX;
}

bool blas_reads(bool wide, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    const int64_t size = wide ? 8 : 4;
    return has_lines(size, column, row, columns) || has_lines(size, row, column, rows);
}

static bool has_sizes(const gemm_job *job)
{
    const int64_t size = job->wide ? 8 : 4;
    return job->m <= INT_MAX && job->n <= INT_MAX && job->k <= INT_MAX &&
           has_lines(size, size, job->c_row, job->n);
}

bool blas_takes(const gemm_job *job)
{
    const double from = ahead_from[isa_level][job->wide];
    const bool ahead = from > 0 && library.alike;
    if (!library.safe) return false;
    if (blas_rule == BLAS_NEVER || (blas_rule == BLAS_AHEAD && !ahead)) return false;
    int64_t least = blas_rule == BLAS_ALWAYS ? 1 : THIN;
    if (job->m < least || job->n < least || job->k < least) return false;
    double work = (double)job->m * (double)job->n * (double)job->k;
    return (blas_rule == BLAS_ALWAYS || work >= from) && has_sizes(job);
}

/* ---- Calling it ------------------------------------------------------------------------------ */

/* C = A B for a part of a job; from its second step on, or to subtract, added to C. */
static void call(const gemm_job *j, int64_t row, int64_t column, int64_t step, int64_t rows,
                 int64_t columns, int64_t steps)
{
    const int64_t size = j->wide ? 8 : 4;
    const bool a_lines = has_lines(size, j->a_col, j->a_row, j->k);
    const bool b_lines = has_lines(size, j->b_col, j->b_row, j->n);
    const blasint m = (blasint)rows, n = (blasint)columns, k = (blasint)steps;
    const blasint lda = (blasint)((a_lines ? j->a_row : j->a_col) / size);
    const blasint ldb = (blasint)((b_lines ? j->b_row : j->b_col) / size);
    const blasint ldc = (blasint)(j->c_row / size);
    const char *a = j->a + row * j->a_row + step * j->a_col;
    const char *b = j->b + step * j->b_row + column * j->b_col;
    char *c = j->c + row * j->c_row + column * size;
    const CBLAS_TRANSPOSE ta = a_lines ? CblasNoTrans : CblasTrans;
    const CBLAS_TRANSPOSE tb = b_lines ? CblasNoTrans : CblasTrans;
    const int alpha = j->subtract ? -1 : 1, beta = j->subtract || step > 0;
    if (j->wide)
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, (const double *)a, lda,
                    (const double *)b, ldb, beta, (double *)c, ldc);
    else
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, (float)alpha, (const float *)a, lda,
                    (const float *)b, ldb, (float)beta, (float *)c, ldc);
}

static int64_t parts_of(int64_t length, int64_t longest)
{
    return (length + longest - 1) / longest;
}

/* The product in calls of at most SINGLE multiply-adds, cut evenly. */
static void call_in_parts(const gemm_job *job)
{
    const int64_t m = job->m, n = job->n, k = job->k;
    const int64_t ms = parts_of(m, EDGE), rows = parts_of(m, ms);
    const int64_t ns = parts_of(n, EDGE * EDGE / rows), columns = parts_of(n, ns);
    const int64_t ks = parts_of(k, SINGLE / (rows * columns));
    for (int64_t i = 0; i < ms * ns; i++) {
        int64_t row = m * (i / ns) / ms, row_end = m * (i / ns + 1) / ms;
        int64_t column = n * (i % ns) / ns, column_end = n * (i % ns + 1) / ns;
        for (int64_t p = 0; p < ks; p++) {
            int64_t step = k * p / ks, step_end = k * (p + 1) / ks;
            call(job, row, column, step, row_end - row, column_end - column, step_end - step);
        }
    }
}

#define END_ROW(name, type)                                                                        \
    static void name(type *c, const type *bias, int64_t step, int64_t n, bool relu)                \
    {                                                                                              \
        for (int64_t j = 0; bias && j < n; j++) c[j] += bias[j * step];                            \
        for (int64_t j = 0; relu && j < n; j++) c[j] = c[j] < 0 ? 0 : c[j];                        \
    }
END_ROW(end_row_f32, float)
END_ROW(end_row_f64, double)

void blas_gemm(const gemm_job *job)
{
    int threads = library.omp_threads ? library.omp_threads() : 1;
    if (threads > 1) library.omp_set_threads(1);
    if (library.whole)
        call(job, 0, 0, 0, job->m, job->n, job->k);
    else
        call_in_parts(job);
    if (threads > 1) library.omp_set_threads(threads);
    for (int64_t i = 0; (job->bias || job->relu) && i < job->m; i++) {
        char *c = job->c + i * job->c_row;
        const char *bias = job->bias ? job->bias + i * job->bias_row : NULL;
        const int64_t step = job->bias_col != 0;
        if (job->wide)
            end_row_f64((double *)c, (const double *)bias, step, job->n, job->relu);
        else
            end_row_f32((float *)c, (const float *)bias, step, job->n, job->relu);
    }
}
