/*
 * How many threads OpenBLAS uses depends on how it was built (openblas_get_parallel):
 *
 * - for one thread: it may not be called by several at a time, so there is a lock around our calls.
 * - with OpenMP: as many as OpenMP says the calling thread may have, a setting of each thread; it
 * is   1 during our calls.
 * - with threads of its own: as many as the program says, or one a core, which is a setting of the
 *   whole process. It stays as it is: putting it back would race with the program's own calls. None
 *   but matrices above LAPACK_SMALL are cut into parts for threads, as the program's setting says,
 *   not by who else calls. So the bits do not depend on the number of our threads.
 */
#include "ops/kernels/lapack.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum {
    PARTS = 4,               /* of a tridiagonal matrix that threads take, a power of two, ... */
    PART_ROWS = HARD(6, 128) /* ... and the fewest rows of one */
};

static struct {
    int kind;
    pthread_mutex_t alone;
    int (*omp_threads)(void);
    void (*omp_set_threads)(int);
} library = {.alone = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void look_for_openmp(void)
{
    library.kind = openblas_get_parallel();
    if (library.kind != OPENBLAS_OPENMP) return;
    library.omp_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    library.omp_set_threads = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
}

/* Brackets a call; what begin returns is what end takes. */
static int begin(void)
{
    if (library.kind == OPENBLAS_SEQUENTIAL) pthread_mutex_lock(&library.alone);
    const int threads = library.omp_threads && library.omp_set_threads ? library.omp_threads() : 1;
    if (threads > 1) library.omp_set_threads(1);
    return threads;
}

static void end(int threads)
{
    if (threads > 1) library.omp_set_threads(threads);
    if (library.kind == OPENBLAS_SEQUENTIAL) pthread_mutex_unlock(&library.alone);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Fortran passes the lengths of its texts behind all arguments. */
#define DECLARE(prefix, type)                                                                      \
    void prefix##sterf_(const blasint *n, type *d, type *e, blasint *info);                        \
    void prefix##stedc_(const char *compz, const blasint *n, type *d, type *e, type *z,            \
                        const blasint *ldz, type *work, const blasint *lwork, blasint *iwork,      \
                        const blasint *liwork, blasint *info, size_t);                             \
    void prefix##bdsdc_(const char *uplo, const char *compq, const blasint *n, type *d, type *e,   \
                        type *u, const blasint *ldu, type *vt, const blasint *ldvt, type *q,       \
                        blasint *iq, type *work, blasint *iwork, blasint *info, size_t, size_t);   \
    void prefix##laed1_(const blasint *n, type *d, type *q, const blasint *ldq, blasint *indxq,    \
                        type *rho, const blasint *cutpnt, type *work, blasint *iwork,              \
                        blasint *info)
DECLARE(s, float);
DECLARE(d, double);
#define sterf_f32 ssterf_
#define sterf_f64 dsterf_
#define stedc_f32 sstedc_
#define stedc_f64 dstedc_
#define laed1_f32 slaed1_
#define laed1_f64 dlaed1_
#define bdsdc_f32 sbdsdc_
#define bdsdc_f64 dbdsdc_

/* A leading dimension, which is at least 1. */
static blasint leading(int64_t n)
{
    return n > 0 ? (blasint)n : 1;
}

void dgees_(const char *jobvs, const char *sort, void *select, const blasint *n, double *a,
            const blasint *lda, blasint *sdim, double *wr, double *wi, double *vs,
            const blasint *ldvs, double *work, const blasint *lwork, blasint *bwork, blasint *info,
            size_t, size_t);

int lapack_schur_f64(int64_t size, double *a, double *v)
{
    const blasint n = (blasint)size, lda = leading(size);
    blasint ask = -1, sorted = 0, info = 0;
    double best = 0;
    double *values = memory_alloc((size_t)(2 * size) * sizeof *values);
    if (!values) return LAPACK_NO_MEMORY;
    double *imaginary = values + size;
    dgees_("V", "N", NULL, &n, a, &lda, &sorted, values, imaginary, v, &lda, &best, &ask, NULL,
           &info, 1, 1);
    blasint most = (blasint)best + 1;
    double *work = memory_alloc((size_t)most * sizeof *work);
    const int threads = begin();
    if (work)
        dgees_("V", "N", NULL, &n, a, &lda, &sorted, values, imaginary, v, &lda, work, &most, NULL,
               &info, 1, 1);
    end(threads);
    memory_free(work);
    memory_free(values);
    return work ? (int)info : LAPACK_NO_MEMORY;
}

#define TYPE f32
#include "ops/kernels/lapack.typed.h"
#define TYPE f64
#include "ops/kernels/lapack.typed.h"
