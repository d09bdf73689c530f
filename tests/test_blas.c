/*
 * OpenBLAS beside Eddy: products that it computes for us agree with a plain loop and keep their
 * bits for any number of threads; it works on the calling thread alone; what the program's own
 * calls to it do stays as it was; its LAPACK is there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tensor/tensor.h"
#include "ops/kernels/blas.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/isa.h"
#include <cblas.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double draw(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 8 & 0xffff) / 32768.0 - 1;
}

static void *numbers(bool wide, int64_t count)
{
    void *data = malloc((size_t)count * (wide ? 8 : 4) + 1);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        if (wide)
            ((double *)data)[i] = draw();
        else
            ((float *)data)[i] = (float)draw();
    }
    return data;
}

/* A product of contiguous matrices, either of which may be a transposed view. */
typedef struct product {
    bool wide, ta, tb;
    int64_t m, n, k;
    void *a, *b, *c;
    const gemm_epilogue *epilogue;
} product;

static product make(bool wide, bool ta, bool tb, int64_t m, int64_t n, int64_t k)
{
    product p = {.wide = wide, .ta = ta, .tb = tb, .m = m, .n = n, .k = k};
    p.a = numbers(wide, m * k);
    p.b = numbers(wide, k * n);
    p.c = malloc((size_t)(m * n) * (wide ? 8 : 4));
    assert_non_null(p.c);
    return p;
}

static void drop(const product *p)
{
    free(p->a), free(p->b), free(p->c);
}

/* C begins as NaN: nothing of it may get into the result. */
static void run(const product *p)
{
    memset(p->c, 0xff, (size_t)(p->m * p->n) * (p->wide ? 8 : 4));
    const int64_t ar = p->ta ? 1 : p->k, ac = p->ta ? p->m : 1;
    const int64_t br = p->tb ? 1 : p->n, bc = p->tb ? p->k : 1;
    assert_true(
        p->wide ? gemm_f64(p->m, p->n, p->k, p->a, ar, ac, p->b, br, bc, p->c, p->n, p->epilogue)
                : gemm_f32(p->m, p->n, p->k, p->a, ar, ac, p->b, br, bc, p->c, p->n, p->epilogue));
}

static double at(const product *p, const void *data, int64_t i)
{
    return p->wide ? ((const double *)data)[i] : ((const float *)data)[i];
}

static void compare(const product *p)
{
    const gemm_epilogue *e = p->epilogue;
    const double epsilon = p->wide ? DBL_EPSILON : FLT_EPSILON;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0, size = 0;
            for (int64_t q = 0; q < p->k; q++) {
                double term = at(p, p->a, p->ta ? q * p->m + i : i * p->k + q) *
                              at(p, p->b, p->tb ? j * p->k + q : q * p->n + j);
                sum += term, size += fabs(term);
            }
            if (e && e->bias) sum += at(p, e->bias, j), size += fabs(at(p, e->bias, j));
            if (e && e->activation == GEMM_RELU && sum < 0) sum = 0;
            double bound = epsilon * (size + fabs(sum)) * (2 + (double)p->k / 8);
            if (!(fabs(at(p, p->c, i * p->n + j) - sum) <= bound))
                fail_msg("%d %dx%dx%d at (%d, %d): %.9g, not %.9g", p->wide, (int)p->m, (int)p->n,
                         (int)p->k, (int)i, (int)j, at(p, p->c, i * p->n + j), sum);
        }
}

/* Pieces of one and of many calls, uneven ones, thin ones, deep ones. */
static const int sizes[][3] = {{1, 1, 1},     {2, 3, 4},      {8, 8, 256},  {64, 64, 64},
                               {65, 65, 65},  {129, 17, 90},  {300, 5, 40}, {9, 700, 33},
                               {9, 32, 3000}, {130, 257, 100}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int all_products(void **state)
{
    (void)state;
    blas_rule = BLAS_ALWAYS;
    return 0;
}

static int products_it_is_ahead_at(void **state)
{
    (void)state;
    blas_rule = BLAS_AHEAD;
    return 0;
}

static void agrees_with_plain_loops(void **state)
{
    (void)state;
    for (int turn = 0; turn < 8 * SIZES; turn++) {
        const int *s = sizes[turn / 8];
        product p = make(turn & 1, turn & 2, turn & 4, s[0], s[1], s[2]);
        run(&p);
        compare(&p);
        void *bias = numbers(turn & 1, s[1]);
        const gemm_epilogue e = {turn & 2 ? bias : NULL, GEMM_RELU};
        p.epilogue = &e;
        run(&p);
        compare(&p);
        free(bias);
        drop(&p);
    }
}

static void bits_are_of_any_number_of_threads(void **state)
{
    (void)state;
    static const int large[][3] = {
        {300, 260, 200}, {9, 32, 5000}, {1030, 1020, 16}, {128, 512, 784}};
    const int threads = ed_num_threads();
    for (int turn = 0; turn < 32; turn++) {
        const int *s = large[turn / 8];
        product p = make(turn & 1, turn & 2, turn & 4, s[0], s[1], s[2]);
        const size_t bytes = (size_t)(p.m * p.n) * (p.wide ? 8 : 4);
        void *one = malloc(bytes);
        for (int n = 1; n <= 3; n++) {
            ed_set_num_threads(n);
            run(&p);
            if (n == 1) memcpy(one, p.c, bytes);
            assert_memory_equal(one, p.c, bytes);
        }
        free(one);
        drop(&p);
    }
    ed_set_num_threads(threads);
}

/* Short calls from three threads at a time, many times: a build that is not made for that fails. */
static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    const int threads = ed_num_threads();
    product p = make(true, false, false, 20, 20, 6000);
    double one[20 * 20];
    ed_set_num_threads(1);
    run(&p);
    memcpy(one, p.c, sizeof one);
    ed_set_num_threads(3);
    for (int i = 0; i < 1000; i++) {
        run(&p);
        assert_memory_equal(one, p.c, sizeof one);
    }
    ed_set_num_threads(threads);
    drop(&p);
}

static void nan_and_infinity_spread(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        product p = make(wide, false, false, 70, 80, 90);
        for (int i = 0; i < 90; i++) { /* a row of zeros: 0 * NaN and 0 * infinity are NaN */
            if (wide)
                ((double *)p.a)[i] = 0;
            else
                ((float *)p.a)[i] = 0;
        }
        for (int i = 0; i < 2; i++) {
            double value = i ? (double)INFINITY : (double)NAN;
            if (wide)
                ((double *)p.b)[(3 + i) * 80 + 5 + 60 * i] = value;
            else
                ((float *)p.b)[(3 + i) * 80 + 5 + 60 * i] = (float)value;
        }
        run(&p);
        for (int j = 0; j < 80; j++) assert_true(isnan(at(&p, p.c, j)) == (j == 5 || j == 65));
        for (int i = 1; i < 70; i++) assert_true(isinf(at(&p, p.c, i * 80 + 65)));
        drop(&p);
    }
}

static void the_shape_decides(void **state)
{
    (void)state;
    gemm_job job = {.m = 64,
                    .n = 64,
                    .k = 64,
                    .a_row = 256,
                    .a_col = 4,
                    .b_row = 256,
                    .b_col = 4,
                    .c_row = 256};
    const bool takes = openblas_get_parallel() != OPENBLAS_SEQUENTIAL;
    assert_true(blas_takes(&job) == takes);
    static const int64_t strides[][2] = {{-256, 4}, {0, 4}, {252, 4}, {512, 8}, {4, 0}, {4, -256}};
    assert_true(blas_reads(false, 64, 64, 256, 4) && blas_reads(false, 64, 64, 4, 256));
    for (int i = 0; i < 6; i++) {
        gemm_job other = job;
        other.a_row = strides[i][0], other.a_col = strides[i][1];
        assert_true(blas_takes(&other) == takes);
        assert_false(blas_reads(false, 64, 64, strides[i][0], strides[i][1]));
    }
    job.k = 0;
    assert_false(blas_takes(&job));
}

/* Element [i, j] of `from`, [rows, columns], 2 (i columns + j) behind the first of the result,
 * backwards or not. */
static void *spread(bool wide, const void *from, int64_t rows, int64_t columns, bool backwards)
{
    const int64_t size = rows * columns, each = wide ? 8 : 4;
    char *to = malloc((size_t)(2 * size * each));
    assert_non_null(to);
    memset(to, 0xff, (size_t)(2 * size * each));
    for (int64_t e = 0; e < size; e++)
        memcpy(to + 2 * each * (backwards ? size - 1 - e : e), (const char *)from + e * each,
               (size_t)each);
    return to;
}

/* Every second element, forwards and backwards: the bits of contiguous operands. */
static void views_have_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * SIZES; i++) {
        const bool wide = i & 1, backwards = i & 2;
        const int *size = sizes[i / 4];
        product p = make(wide, false, false, size[0], size[1], size[2]);
        run(&p);
        const size_t bytes = (size_t)(p.m * p.n) * (wide ? 8 : 4), each = wide ? 8 : 4;
        char *a = spread(wide, p.a, p.m, p.k, backwards),
             *b = spread(wide, p.b, p.k, p.n, backwards);
        const int64_t step = backwards ? -2 : 2;
        const char *first_a = backwards ? a + 2 * each * (size_t)(p.m * p.k - 1) : a;
        const char *first_b = backwards ? b + 2 * each * (size_t)(p.k * p.n - 1) : b;
        void *c = malloc(bytes);
        assert_non_null(c);
        assert_true(wide ? gemm_f64(p.m, p.n, p.k, (const double *)first_a, step * p.k, step,
                                    (const double *)first_b, step * p.n, step, c, p.n, NULL)
                         : gemm_f32(p.m, p.n, p.k, (const float *)first_a, step * p.k, step,
                                    (const float *)first_b, step * p.n, step, c, p.n, NULL));
        assert_memory_equal(c, p.c, bytes);
        free(a), free(b), free(c);
        drop(&p);
    }
}

/* `from`, [rows, columns], turned over. */
static void *turned(bool wide, const void *from, int64_t rows, int64_t columns)
{
    const size_t each = wide ? 8 : 4;
    char *to = malloc((size_t)(rows * columns) * each);
    assert_non_null(to);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy(to + (size_t)(j * rows + i) * each,
                   (const char *)from + (size_t)(i * columns + j) * each, each);
    return to;
}

/* With the set that OpenBLAS computes for, whatever kernels it chose for this machine. */
static void transposed_views_have_the_same_bits(void **state)
{
    (void)state;
    const int level = isa_level;
    assert_true(isa_set(ISA_BASELINE));
    for (int i = 0; i < 8; i++) {
        product p = make(i & 1, false, false, 33, 34, 35), q = p;
        run(&p);
        q.ta = i & 2, q.tb = i & 4;
        if (q.ta) q.a = turned(q.wide, p.a, p.m, p.k);
        if (q.tb) q.b = turned(q.wide, p.b, p.k, p.n);
        q.c = numbers(q.wide, q.m * q.n);
        run(&q);
        assert_memory_equal(q.c, p.c, (size_t)(p.m * p.n) * (p.wide ? 8 : 4));
        if (q.ta) free(q.a);
        if (q.tb) free(q.b);
        free(q.c);
        drop(&p);
    }
    assert_true(isa_set(level));
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* OpenBLAS's threads wait for work spinning, for a while. */
static void wait_until_idle(void)
{
    for (int i = 0; i < 100; i++) {
        double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
        usleep(50000);
        if (seconds(CLOCK_PROCESS_CPUTIME_ID) - before < 0.002) return;
    }
}

static void works_on_the_calling_thread_alone(void **state)
{
    (void)state;
    const int threads = ed_num_threads();
    ed_set_num_threads(1);
    for (int wide = 0; wide < 2; wide++) {
        product p = make(wide, false, true, 512, 512, 512);
        run(&p);
        wait_until_idle();
        double all = seconds(CLOCK_PROCESS_CPUTIME_ID), own = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 10; i++) run(&p);
        own = seconds(CLOCK_THREAD_CPUTIME_ID) - own;
        all = seconds(CLOCK_PROCESS_CPUTIME_ID) - all;
        if (all > 1.25 * own)
            fail_msg("other threads worked %.3f s beside our %.3f", all - own, own);
        drop(&p);
    }
    ed_set_num_threads(threads);
}

/* ---- The program's own calls ----------------------------------------------------------------- */

typedef struct host {
    const double *a, *b;
    double *c;
} host;

enum { HOST = 300 };

static void host_multiplies(const host *h)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, HOST, HOST, HOST, 1, h->a, HOST, h->b,
                HOST, 0, h->c, HOST);
}

static int omp_threads(void)
{
    int (*count)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    return count ? count() : 0;
}

static bool ended;

static void *eddy_multiplies(void *user)
{
    (void)user;
    product p = make(true, false, false, 400, 400, 400);
    while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) run(&p);
    drop(&p);
    return NULL;
}

/* With OpenBLAS on two threads: their number and the result's bits, before, beside and after. */
static void own_calls_are_as_they_were(void **state)
{
    (void)state;
    const int before = openblas_get_num_threads();
    openblas_set_num_threads(2);
    const int threads = openblas_get_num_threads(), omp = omp_threads();
    assert_true(threads == (openblas_get_parallel() == OPENBLAS_SEQUENTIAL ? 1 : 2));
    host h = {numbers(true, HOST * HOST), numbers(true, HOST * HOST), numbers(true, HOST * HOST)};
    double *first = numbers(true, HOST * HOST);
    host_multiplies(&h);
    memcpy(first, h.c, HOST * HOST * sizeof *first);
    ended = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, eddy_multiplies, NULL), 0);
    product p = make(false, false, false, 300, 300, 300);
    for (int i = 0; i < 50; i++) {
        run(&p);
        assert_int_equal(openblas_get_num_threads(), threads);
        assert_int_equal(omp_threads(), omp);
        host_multiplies(&h);
        assert_memory_equal(first, h.c, HOST * HOST * sizeof *first);
    }
    __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    assert_int_equal(openblas_get_num_threads(), threads);
    openblas_set_num_threads(before);
    drop(&p);
    free((void *)h.a), free((void *)h.b), free(h.c), free(first);
}

/* ---- LAPACK ---------------------------------------------------------------------------------- */

extern void dpotrf_(const char *uplo, const blasint *n, double *a, const blasint *lda,
                    blasint *info, size_t uplo_length);

static void lapack_is_there(void **state)
{
    (void)state;
    double a[] = {4, 2, 2, 10};
    const blasint n = 2;
    blasint info = -1;
    dpotrf_("L", &n, a, &n, &info, 1);
    assert_int_equal(info, 0);
    assert_true(a[0] == 2 && a[1] == 1 && a[3] == 3);
}

int main(void)
{
#define ALWAYS(test) cmocka_unit_test_setup_teardown(test, all_products, products_it_is_ahead_at)
    const struct CMUnitTest tests[] = {
        ALWAYS(agrees_with_plain_loops),
        ALWAYS(bits_are_of_any_number_of_threads),
        ALWAYS(threads_do_not_disturb_each_other),
        ALWAYS(nan_and_infinity_spread),
        ALWAYS(the_shape_decides),
        ALWAYS(views_have_the_same_bits),
        ALWAYS(works_on_the_calling_thread_alone),
        ALWAYS(own_calls_are_as_they_were),
        cmocka_unit_test(transposed_views_have_the_same_bits),
        cmocka_unit_test(lapack_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
