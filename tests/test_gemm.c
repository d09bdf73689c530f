/*
 * Matrix products against a plain loop in double precision, for every instruction set, layout and
 * epilogue; and the promise of gemm.h that neither threads nor tiling nor layout changes a bit.
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
#include "tests/skip.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How an operand lies in memory: transposed or not, a gap after each line, signs and zeros of its
 * strides. */
typedef struct layout {
    bool transposed;
    int gap, row_sign, column_sign, spacing;
} layout;

static const layout plain = {false, 0, 1, 1, 1};

/* A matrix of either dtype whose element (i, j) is at data[origin + i * row + j * column]. */
typedef struct matrix {
    bool wide;
    int64_t rows, columns, row, column, origin, length;
    void *data;
} matrix;

static uint32_t seed = 1;

static double draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 8 & 0xffff) / 32768.0 - 1;
}

static double get(const matrix *x, int64_t i, int64_t j)
{
    int64_t at = x->origin + i * x->row + j * x->column;
    return x->wide ? ((double *)x->data)[at] : ((float *)x->data)[at];
}

static void set(const matrix *x, int64_t i, int64_t j, double value)
{
    int64_t at = x->origin + i * x->row + j * x->column;
    if (x->wide)
        ((double *)x->data)[at] = value;
    else
        ((float *)x->data)[at] = (float)value;
}

static void *start(const matrix *x)
{
    return (char *)x->data + x->origin * (x->wide ? 8 : 4);
}

/* A matrix with random elements; what lies between them is NaN. */
static matrix make(bool wide, int64_t rows, int64_t columns, layout l)
{
    int64_t inner = (l.transposed ? rows : columns) * l.spacing + l.gap;
    matrix x = {.wide = wide, .rows = rows, .columns = columns};
    x.row = (l.transposed ? l.spacing : inner) * l.row_sign;
    x.column = (l.transposed ? inner : l.spacing) * l.column_sign;
    x.origin = (x.row < 0 ? -x.row * rows : 0) + (x.column < 0 ? -x.column * columns : 0);
    x.length = x.origin + llabs(x.row) * rows + llabs(x.column) * columns + inner;
    x.data = malloc((size_t)x.length * (wide ? 8 : 4));
    assert_non_null(x.data);
    memset(x.data, 0xff, (size_t)x.length * (wide ? 8 : 4));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) set(&x, i, j, draw());
    return x;
}

static void multiply(const matrix *a, const matrix *b, const matrix *c, const gemm_epilogue *e)
{
    if (a->wide)
        assert_true(gemm_f64(a->rows, b->columns, a->columns, start(a), a->row, a->column, start(b),
                             b->row, b->column, start(c), c->row, e));
    else
        assert_true(gemm_f32(a->rows, b->columns, a->columns, start(a), a->row, a->column, start(b),
                             b->row, b->column, start(c), c->row, e));
}

static void compare(const matrix *a, const matrix *b, const matrix *c, const gemm_epilogue *e)
{
    double epsilon = a->wide ? DBL_EPSILON : FLT_EPSILON;
    for (int64_t i = 0; i < a->rows; i++) {
        for (int64_t j = 0; j < b->columns; j++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < a->columns; p++) {
                double term = get(a, i, p) * get(b, p, j);
                sum += term;
                size += fabs(term);
            }
            if (e && e->bias) {
                double bias = a->wide ? ((double *)e->bias)[j] : ((float *)e->bias)[j];
                sum += bias;
                size += fabs(bias);
            }
            if (e && e->activation == GEMM_RELU && sum < 0) sum = 0;
            double bound = epsilon * (size + fabs(sum)) * (2 + (double)a->columns / 8);
            if (!(fabs(get(c, i, j) - sum) <= bound))
                fail_msg("%s [%d,%d]x[%d,%d] at (%d,%d): %.9g, not %.9g", isa_name(isa_level),
                         (int)a->rows, (int)a->columns, (int)b->rows, (int)b->columns, (int)i,
                         (int)j, get(c, i, j), sum);
        }
    }
}

/* Gaps between C's rows must stay as they were. */
static void check_gaps(const matrix *c)
{
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = c->columns; j < c->row; j++) assert_true(isnan(get(c, i, j)));
}

static void check(bool wide, int64_t m, int64_t n, int64_t k, layout la, layout lb, int gap,
                  const gemm_epilogue *e)
{
    matrix a = make(wide, m, k, la), b = make(wide, k, n, lb);
    layout lc = plain;
    lc.gap = gap;
    matrix c = make(wide, m, n, lc);
    multiply(&a, &b, &c, e);
    compare(&a, &b, &c, e);
    check_gaps(&c);
    free(a.data);
    free(b.data);
    free(c.data);
}

static const layout transposed = {true, 0, 1, 1, 1};

static void each_isa(void (*test)(void))
{
    int before = isa_level;
    for (int level = 0; level <= isa_best(); level++) {
        assert_true(isa_set(level));
        test();
    }
    isa_set(before);
}

static void shapes(void)
{
    static const int sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 200};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++)
            for (int q = 0; q < SIZES; q++) {
                int turn = (i + 3 * j + 5 * q) % 8;
                if (sizes[i] * sizes[j] * sizes[q] > 300000 && turn % 4) continue;
                check(turn & 4, sizes[i], sizes[j], sizes[q], turn & 1 ? transposed : plain,
                      turn & 2 ? transposed : plain, turn % 3, NULL);
            }
}

static void test_shapes(void **state)
{
    (void)state;
    each_isa(shapes);
}

static void transposes(void)
{
    static const int sizes[][3] = {{1, 1, 1},      {3, 5, 7},      {32, 10, 512},
                                   {1, 70, 700},   {70, 1, 700},   {33, 600, 45},
                                   {100, 65, 784}, {29, 31, 1000}, {30, 530, 70}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int turn = 0; turn < 8; turn++)
            check(turn & 4, sizes[i][0], sizes[i][1], sizes[i][2], turn & 1 ? transposed : plain,
                  turn & 2 ? transposed : plain, 0, NULL);
}

static void test_transposes(void **state)
{
    (void)state;
    each_isa(transposes);
}

static void strides(void)
{
    static const layout layouts[] = {
        {false, 5, 1, 1, 1},  {true, 3, 1, 1, 1},  {false, 0, -1, 1, 1}, {false, 2, 1, -1, 1},
        {true, 0, -1, -1, 1}, {false, 1, 1, 1, 2}, {true, 0, 1, -1, 3},  {false, 0, 0, 1, 1},
        {false, 0, 1, 0, 1},  {true, 0, 0, 0, 1}};
    enum { LAYOUTS = sizeof layouts / sizeof *layouts };
    static const int sizes[][3] = {
        {1, 40, 50}, {40, 1, 50}, {20, 37, 50}, {50, 130, 340}, {1, 90, 700}};
    for (int i = 0; i < LAYOUTS; i++)
        for (int j = 0; j < LAYOUTS; j++)
            for (int q = 0; q < 5; q++)
                check((i + j) & 1, sizes[q][0], sizes[q][1], sizes[q][2], layouts[i], layouts[j], q,
                      NULL);
}

static void test_strides(void **state)
{
    (void)state;
    each_isa(strides);
}

static void epilogues(void)
{
    double wide_bias[200];
    float bias[200];
    for (int i = 0; i < 200; i++) bias[i] = (float)(wide_bias[i] = 3 * draw());
    static const int sizes[][3] = {{1, 40, 50},  {40, 1, 50},  {5, 3, 0},      {20, 37, 50},
                                   {30, 64, 16}, {1, 40, 700}, {50, 130, 700}, {16, 150, 90}};
    for (unsigned q = 0; q < sizeof sizes / sizeof *sizes; q++)
        for (int turn = 0; turn < 16; turn++) {
            bool wide = turn & 1;
            gemm_epilogue e = {turn & 2 ? wide ? (void *)wide_bias : (void *)bias : NULL,
                               turn & 4 ? GEMM_RELU : GEMM_NONE};
            check(wide, sizes[q][0], sizes[q][1], sizes[q][2], turn & 8 ? transposed : plain,
                  turn & 8 || q > 6 ? transposed : plain, 0, &e);
            if (sizes[q][1] == 1) check(wide, sizes[q][0], 1, sizes[q][2], plain, plain, 2, &e);
        }
}

static void test_epilogues(void **state)
{
    (void)state;
    each_isa(epilogues);
}

/* Large products: two of several threads, each with a large piece; one that takes its columns in
 * groups; two that take rows several times, with blocks of k in groups of two and one and in
 * one. */
static void large(void)
{
    static const int sizes[][3] = {
        {600, 520, 330}, {520, 600, 350}, {115, 3601, 330}, {170, 1203, 570}, {290, 1003, 700}};
    static double wide_bias[3601];
    static float bias[3601];
    for (int i = 0; i < 3601; i++) bias[i] = (float)(wide_bias[i] = 3 * draw());
    int threads = ed_num_threads();
    for (unsigned q = 0; q < sizeof sizes / sizeof *sizes; q++) {
        bool wide = q & 1;
        gemm_epilogue e = {wide ? (void *)wide_bias : (void *)bias, GEMM_RELU};
        ed_set_num_threads(sizes[q][0] < 300 ? 1 : 3);
        check(wide, sizes[q][0], sizes[q][1], sizes[q][2], q & 1 ? transposed : plain,
              q & 2 ? transposed : plain, 3, &e);
    }
    ed_set_num_threads(threads);
}

/* The only product of a batch is large, and its operands do not begin where their memory does. */
static void large_of_batch(void)
{
    enum { M = 340, N = 330, K = 331, ROWS = 3 };
    const int threads = ed_num_threads();
    matrix a = make(false, M + ROWS, K, plain), b = make(false, K + ROWS, N, plain);
    matrix c = make(false, M + ROWS, N, plain);
    gemm_batch batch = {1, &(int64_t){ROWS * K}, &(int64_t){ROWS * N}, &(int64_t){ROWS * N}};
    memset(c.data, 0xff, (size_t)c.length * 4);
    ed_set_num_threads(1);
    assert_true(gemm_batch_f32(&batch, M, N, K, a.data, K, 1, b.data, N, 1, c.data, N, NULL));
    for (int64_t j = 0; j < ROWS * N; j++) assert_true(isnan(get(&c, 0, j)));
    a.origin += ROWS * K, b.origin += ROWS * N, c.origin += ROWS * N;
    a.rows = M, b.rows = K;
    compare(&a, &b, &c, NULL);
    free(a.data), free(b.data), free(c.data);
    ed_set_num_threads(threads);
}

static void test_large(void **state)
{
    (void)state;
    each_isa(large);
    each_isa(large_of_batch);
}

/* Blocks of k side by side, more threads than tiles; the last block is the shortest. */
static void deep(void)
{
    const int threads = ed_num_threads();
    ed_set_num_threads(64);
    check(false, 4, 633, 1281, plain, plain, 0, NULL);
    check(true, 4, 313, 769, plain, plain, 0, NULL);
    ed_set_num_threads(threads);
}

static void test_deep(void **state)
{
    (void)state;
    each_isa(deep);
}

/* C - A B from what C holds: elements as they should be, the bits of one thread for any number of
 * threads, and of a lower product all that is on the diagonal and left of it. */
static void subtractions(void)
{
    static const int sizes[][3] = {{1, 40, 50},  {40, 1, 700}, {20, 37, 0},     {9, 12, 700},
                                   {50, 50, 70}, {97, 97, 9},  {340, 340, 333}, {600, 600, 330}};
    const int threads = ed_num_threads();
    for (unsigned q = 0; q < 4 * sizeof sizes / sizeof *sizes; q++) {
        const int *s = sizes[q / 4];
        const bool wide = q & 1, lower = q & 2 && s[0] == s[1];
        const gemm_epilogue e = {.subtract = true, .lower = lower};
        matrix a = make(wide, s[0], s[2], q & 2 ? transposed : plain);
        matrix b = make(wide, s[2], s[1], q & 4 ? transposed : plain);
        matrix from = make(wide, s[0], s[1], plain), product = make(wide, s[0], s[1], plain);
        matrix one = make(wide, s[0], s[1], plain), some = make(wide, s[0], s[1], plain);
        multiply(&a, &b, &product, NULL);
        for (int n = 1; n <= 3; n++) {
            matrix *c = n == 1 ? &one : &some;
            memcpy(c->data, from.data, (size_t)c->length * (wide ? 8 : 4));
            ed_set_num_threads(n);
            multiply(&a, &b, c, &e);
            for (int64_t i = 0; i < s[0]; i++)
                for (int64_t j = 0; j < (lower ? i + 1 : s[1]); j++) {
                    const double want = get(&from, i, j) - get(&product, i, j);
                    const double bound = (wide ? 1e-14 : 1e-5) * (1 + s[2] * 0.2);
                    if (!(fabs(get(c, i, j) - want) <= bound))
                        fail_msg("[%d,%d,%d] at (%d,%d): %g, not %g", s[0], s[1], s[2], (int)i,
                                 (int)j, get(c, i, j), want);
                    assert_true(get(c, i, j) == get(&one, i, j));
                }
        }
        free(a.data), free(b.data), free(from.data), free(product.data);
        free(one.data), free(some.data);
    }
    ed_set_num_threads(threads);
}

static void test_subtractions(void **state)
{
    (void)state;
    each_isa(subtractions);
}

static void test_empty(void **state)
{
    (void)state;
    check(false, 0, 3, 2, plain, plain, 0, NULL);
    check(false, 3, 0, 2, plain, plain, 0, NULL);
    check(true, 3, 40, 0, plain, plain, 1, NULL);
    check(false, 1, 40, 0, plain, plain, 0, NULL);
    check(false, 40, 1, 0, plain, plain, 0, NULL);
    assert_true(gemm_f32(0, 0, 0, NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL));
    gemm_batch none = {0, NULL, NULL, NULL};
    assert_true(gemm_batch_f64(&none, 3, 3, 3, NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL));
}

static void specials(void)
{
    for (int turn = 0; turn < 8; turn++) {
        int m = turn & 4 ? 1 : 20, n = 37, k = 50;
        matrix a = make(turn & 1, m, k, plain),
               b = make(turn & 1, k, n, turn & 2 ? transposed : plain);
        matrix c = make(turn & 1, m, n, plain);
        for (int p = 0; p < k; p++) set(&a, 0, p, 0);
        set(&b, 3, 5, NAN);
        set(&b, 4, 36, INFINITY);
        gemm_epilogue e = {NULL, GEMM_RELU};
        multiply(&a, &b, &c, &e);
        for (int j = 0; j < n; j++) assert_true(isnan(get(&c, 0, j)) == (j == 5 || j == 36));
        free(a.data);
        free(b.data);
        free(c.data);
    }
}

static void test_specials(void **state)
{
    (void)state;
    each_isa(specials);
}

static bool same(const matrix *x, const matrix *y)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            double u = get(x, i, j), v = get(y, i, j);
            if (memcmp(&u, &v, sizeof u)) return false;
        }
    return true;
}

/* The bits of one thread and plain layouts come out of any number of threads, any layout, and of a
 * row taken alone. */
static void bits(void)
{
    static const int sizes[][3] = {{32, 512, 784}, {784, 100, 32}, {9, 32, 5000},  {3, 2, 9000},
                                   {1, 900, 700},  {900, 1, 700},  {1, 1, 100000}, {300, 70, 650},
                                   {1, 530, 1100}, {64, 128, 128}, {340, 331, 333}};
    int threads = ed_num_threads();
    for (unsigned q = 0; q < 2 * sizeof sizes / sizeof *sizes; q++) {
        const int *s = sizes[q / 2];
        matrix a = make(q & 1, s[0], s[2], plain), b = make(q & 1, s[2], s[1], plain);
        matrix at = make(q & 1, s[0], s[2], transposed), bt = make(q & 1, s[2], s[1], transposed);
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t p = 0; p < a.columns; p++) set(&at, i, p, get(&a, i, p));
        for (int64_t p = 0; p < b.rows; p++)
            for (int64_t j = 0; j < b.columns; j++) set(&bt, p, j, get(&b, p, j));
        matrix one = make(q & 1, s[0], s[1], plain), other = make(q & 1, s[0], s[1], plain);
        ed_set_num_threads(1);
        multiply(&a, &b, &one, NULL);
        for (int n = 1; n <= 3; n++) {
            ed_set_num_threads(n);
            for (int turn = 0; turn < 4; turn++) {
                multiply(turn & 1 ? &at : &a, turn & 2 ? &bt : &b, &other, NULL);
                assert_true(same(&one, &other));
            }
        }
        matrix row = a, row_result = make(q & 1, 1, s[1], plain), wanted = one;
        row.rows = wanted.rows = 1;
        row.origin = wanted.origin = 0;
        row.origin += (a.rows - 1) * a.row, wanted.origin += (one.rows - 1) * one.row;
        multiply(&row, &b, &row_result, NULL);
        assert_true(same(&wanted, &row_result));
        free(a.data), free(b.data), free(at.data), free(bt.data), free(one.data), free(other.data);
        free(row_result.data);
    }
    ed_set_num_threads(threads);
}

static void test_bits(void **state)
{
    (void)state;
    each_isa(bits);
}

/* c(i,j) as gemm.h defines it, by C's fused multiply-add. */
static double by_definition(const matrix *a, const matrix *b, int64_t i, int64_t j)
{
    const int64_t k = a->columns, block = gemm_block(a->wide, k);
    double total = 0;
    for (int64_t begin = 0; begin < k; begin += block) {
        double sum = 0;
        for (int64_t p = begin; p < k && p < begin + block; p++)
            sum = a->wide ? fma(get(a, i, p), get(b, p, j), sum)
                          : fmaf((float)get(a, i, p), (float)get(b, p, j), (float)sum);
        total = begin == 0 ? sum : a->wide ? total + sum : (float)total + (float)sum;
    }
    return total;
}

static void has_defined_bits(int64_t m, int64_t n)
{
    for (int wide = 0; wide < 2; wide++) {
        matrix a = make(wide, m, 700, plain), b = make(wide, 700, n, transposed);
        matrix c = make(wide, m, n, plain);
        multiply(&a, &b, &c, NULL);
        for (int64_t i = 0; i < c.rows; i++)
            for (int64_t j = 0; j < c.columns; j++)
                assert_true(get(&c, i, j) == by_definition(&a, &b, i, j));
        free(a.data), free(b.data), free(c.data);
    }
}

/* The sets with fused multiply-add give the bits of the definition: each other's, and the same on
 * every kind of machine. */
static void test_fma_sets_agree(void **state)
{
    (void)state;
    int before = isa_level;
#if defined(__aarch64__)
    const int first = ISA_BASELINE;
#else
    const int first = ISA_AVX2;
#endif
    if (isa_best() < first) skip_since("no fused multiply-add");
    for (int level = first; isa_set(level); level++) {
        has_defined_bits(45, 61);
        has_defined_bits(16, 130);
    }
    isa_set(before);
}

/* Products at scattered offsets, operands shared between products, as broadcasting makes them. */
static void test_batch(void **state)
{
    (void)state;
    static const int sizes[][4] = {
        {7, 5, 6, 4}, {2, 130, 120, 110}, {50, 16, 16, 16}, {1, 3, 4, 9000}};
    for (int q = 0; q < 8; q++) {
        const int *s = sizes[q / 2];
        bool wide = q & 1;
        int64_t count = s[0], m = s[1], n = s[2], k = s[3];
        matrix a = make(wide, count * m, k, plain), b = make(wide, k, n, plain);
        matrix c = make(wide, count * m, n, plain), whole = make(wide, count * m, n, plain);
        int64_t at[64], bt[64] = {0}, ct[64];
        for (int64_t i = 0; i < count; i++) at[i] = i * m * k, ct[i] = (count - 1 - i) * m * n;
        gemm_batch batch = {count, at, bt, ct};
        if (wide)
            assert_true(
                gemm_batch_f64(&batch, m, n, k, a.data, k, 1, b.data, n, 1, c.data, n, NULL));
        else
            assert_true(
                gemm_batch_f32(&batch, m, n, k, a.data, k, 1, b.data, n, 1, c.data, n, NULL));
        multiply(&a, &b, &whole, NULL);
        for (int64_t i = 0; i < count; i++) {
            matrix x = c, y = whole;
            x.rows = y.rows = m;
            x.origin = ct[i];
            y.origin = i * m * n;
            assert_true(same(&x, &y));
        }
        free(a.data), free(b.data), free(c.data), free(whole.data);
    }
}

/* Products that have A in common, each with columns of its own. */
static void shared_rows(void)
{
    enum { COUNT = 9, M = 32, N = 170, K = 300 };
    for (int q = 0; q < 4; q++) {
        const bool wide = q & 1, turned = q & 2;
        matrix a = make(wide, M, K, plain),
               b = make(wide, K, COUNT * N, turned ? transposed : plain);
        matrix c = make(wide, COUNT * M, N, plain), whole = make(wide, M, COUNT * N, plain);
        int64_t at[COUNT] = {0}, bt[COUNT], ct[COUNT];
        for (int64_t i = 0; i < COUNT; i++) bt[i] = i * N * b.column, ct[i] = i * M * N;
        gemm_batch batch = {COUNT, at, bt, ct};
        assert_true(wide ? gemm_batch_f64(&batch, M, N, K, a.data, K, 1, b.data, b.row, b.column,
                                          c.data, N, NULL)
                         : gemm_batch_f32(&batch, M, N, K, a.data, K, 1, b.data, b.row, b.column,
                                          c.data, N, NULL));
        multiply(&a, &b, &whole, NULL);
        for (int64_t i = 0; i < COUNT; i++) {
            matrix x = c, y = whole;
            x.rows = M, y.columns = N;
            x.origin = ct[i], y.origin = i * N;
            assert_true(same(&x, &y));
        }
        free(a.data), free(b.data), free(c.data), free(whole.data);
    }
}

static void test_shared_rows(void **state)
{
    (void)state;
    each_isa(shared_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),       cmocka_unit_test(test_transposes),
        cmocka_unit_test(test_strides),      cmocka_unit_test(test_epilogues),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_specials),
        cmocka_unit_test(test_bits),         cmocka_unit_test(test_fma_sets_agree),
        cmocka_unit_test(test_batch),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_subtractions), cmocka_unit_test(test_shared_rows),
        cmocka_unit_test(test_deep),
    };
    blas_rule = BLAS_NEVER; /* tests/test_blas.c has what OpenBLAS computes */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
