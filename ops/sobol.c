/*
 * sobol_sample: Sobol's sequence in the order of the Gray code (Antonov and Saleev, 1979). Each
 * dimension has a direction number for each binary digit of a point's number; point n is the
 * exclusive or of those whose digits are set in n ^ (n >> 1), so that one of them leads from a
 * point to the next. A dimension's numbers follow from a primitive polynomial and the first few of
 * them (ops/sobol_numbers.h).
 */
#include "ops/sobol_numbers.h"
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <math.h>

#define SOBOL_ATTRS(FIELD, T)                                                                      \
    FIELD(T, INT, dim, 1, ED_BETWEEN(1, SOBOL_DIMENSIONS), "of the points")                        \
    FIELD(T, INT, num_results, 1, ED_AT_LEAST(0), "number of points")                              \
    ED_SOBOL_SAMPLE_OPTIONS(FIELD, T)
ED_OPTIONS(sobol_attrs, SOBOL_ATTRS);

enum { DIGITS = 31, DIMENSIONS_AT_ONCE = 256 };

static bool sobol_infer(ed_call *call)
{
    const sobol_attrs *a = call->attrs;
    if (a->dtype != ED_FLOAT32 && a->dtype != ED_FLOAT64)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "dtype must be float32 or float64, got %s",
                            ed_dtype_name(a->dtype));
    if (a->num_results > INT32_MAX || a->skip > INT32_MAX - a->num_results)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "skip %lld and num_results %lld must be at most %lld together",
                            (long long)a->skip, (long long)a->num_results, (long long)INT32_MAX);
    return ed_call_output(call, 0, a->dtype, 2, (const int64_t[]){a->num_results, a->dim});
}

/* ---- Direction numbers ----------------------------------------------------------------------- */

/* Where the table is read: the next bit, the degree of the next polynomial, how many of that degree
 * are left. */
typedef struct reader {
    int64_t bit;
    int degree, left;
} reader;

static uint32_t next_bits(reader *r, int n)
{
    uint32_t y = 0;
    for (int k = 0; k < n; k++, r->bit++)
        y |= (uint32_t)(sobol_bits[r->bit / 64] >> r->bit % 64 & 1) << k;
    return y;
}

/* Of the next dimension: the degree, the polynomial's coefficients between the first and the last,
 * that of x lowest, and the first numbers m. */
static int next_dimension(reader *r, uint32_t *between, uint32_t m[SOBOL_DEGREES])
{
    if (!r->left) r->left = sobol_counts[r->degree++];
    r->left--;
    *between = next_bits(r, r->degree - 1);
    for (int k = 0; k < r->degree; k++) m[k] = next_bits(r, k) << 1 | 1;
    return r->degree;
}

/* numbers [DIGITS, dim], as fractions of 2^31: the first dimension has the powers of 1/2. */
static void direct(int64_t dim, int32_t *numbers)
{
    reader r = {0};
    for (int k = 0; k < DIGITS; k++) numbers[k * dim] = INT32_C(1) << (DIGITS - 1 - k);
    for (int64_t d = 1; d < dim; d++) {
        uint32_t between, m[SOBOL_DEGREES];
        int32_t *v = numbers + d;
        const int degree = next_dimension(&r, &between, m);
        for (int k = 0; k < degree; k++) v[k * dim] = (int32_t)m[k] << (DIGITS - 1 - k);
        for (int k = degree; k < DIGITS; k++) {
            const int32_t last = v[(k - degree) * dim];
            int32_t y = last ^ last >> degree;
            for (int j = 1; j < degree; j++)
                if (between >> (degree - 1 - j) & 1) y ^= v[(k - j) * dim];
            v[k * dim] = y;
        }
    }
}

/* ---- Points ---------------------------------------------------------------------------------- */

typedef struct points {
    const sobol_attrs *attrs;
    const int32_t *numbers;
    void *y;
} points;

/* Columns d to d + n - 1 of rows first to last - 1. */
static void columns(const points *p, int64_t first, int64_t last, int64_t d, int64_t n)
{
    const int64_t dim = p->attrs->dim;
    const int32_t *numbers = p->numbers + d;
    int32_t x[DIMENSIONS_AT_ONCE] = {0};
    uint32_t point = (uint32_t)(p->attrs->skip + first);
    for (int k = 0; k < DIGITS; k++)
        for (int64_t j = 0; (point ^ point >> 1) >> k & 1 && j < n; j++)
            x[j] ^= numbers[k * dim + j];
    for (int64_t i = first; i < last; i++) {
        const int32_t *change = numbers + __builtin_ctz(++point) * dim;
        for (int64_t j = 0; j < n; j++) x[j] ^= change[j];
        float *singles = (float *)p->y + i * dim + d;
        double *doubles = (double *)p->y + i * dim + d;
        if (p->attrs->dtype == ED_FLOAT32)
            for (int64_t j = 0; j < n; j++) singles[j] = (float)x[j] * 0x1p-31f;
        else
            for (int64_t j = 0; j < n; j++) doubles[j] = x[j] * 0x1p-31;
    }
}

static void point_rows(int64_t first, int64_t last, int worker, void *user)
{
    const points *p = user;
    const int64_t dim = p->attrs->dim;
    (void)worker;
    for (int64_t d = 0; d < dim; d += DIMENSIONS_AT_ONCE)
        columns(p, first, last, d, dim - d < DIMENSIONS_AT_ONCE ? dim - d : DIMENSIONS_AT_ONCE);
}

static bool sobol_kernel(ed_call *call)
{
    const sobol_attrs *a = call->attrs;
    points p = {.attrs = a, .y = ed_call_data(call, 0)};
    int32_t *numbers = memory_alloc((size_t)a->dim * DIGITS * sizeof *numbers);
    if (!numbers) return false;
    direct(a->dim, numbers);
    p.numbers = numbers;
    threads_run(a->num_results, 1 + OPS_PARALLEL_WORK / a->dim, point_rows, &p);
    memory_free(numbers);
    return true;
}

/* By the recurrence of the numbers m, and from the digits of each point alone. */
static bool sobol_reference(const ed_call *call)
{
    const sobol_attrs *a = call->attrs;
    reader r = {0};
    for (int64_t d = 0; d < a->dim; d++) {
        uint64_t m[DIGITS];
        uint32_t between = 0, first[SOBOL_DEGREES];
        const int degree = d ? next_dimension(&r, &between, first) : 0;
        for (int k = 0; k < DIGITS; k++) {
            m[k] = d == 0 ? 1 : k < degree ? first[k] : m[k - degree] ^ m[k - degree] << degree;
            for (int j = 1; d && k >= degree && j < degree; j++)
                m[k] ^= (between >> (degree - 1 - j) & 1) * m[k - j] << j;
        }
        for (int64_t i = 0; i < a->num_results; i++) {
            const int64_t point = a->skip + i + 1;
            uint64_t x = 0;
            for (int k = 0; k < DIGITS; k++)
                if ((point ^ point >> 1) >> k & 1) x ^= m[k] << (DIGITS - 1 - k);
            ((double *)call->outputs[0]->data)[i * a->dim + d] = ldexp((double)x, -DIGITS);
        }
    }
    return true;
}

#define SOBOL(...) .attrs = ED_ATTRS(SOBOL_ATTRS, sobol_attrs, __VA_ARGS__)

/* y[i, d] = the exclusive or of dimension d's numbers for the digits of the Gray code of skip + i +
 * 1 */
ED_OP(sobol_sample) = {
    .name = "sobol_sample",
    .doc = "points of the Sobol sequence, which fill the unit cube evenly",
    ED_OP_ATTRS(SOBOL_ATTRS, sobol_attrs),
    .infer = sobol_infer,
    .kernel = sobol_kernel,
    .no_gradient = "it has no operands",
    .reference = sobol_reference,
    .samples = ED_SAMPLES({SOBOL(.dim = 3, .num_results = 5)},
                          {SOBOL(.dim = 300, .num_results = 9, .skip = 70000)},
                          {SOBOL(.dim = 40, .num_results = 4, .skip = 1000, .dtype = ED_FLOAT64)},
                          {SOBOL(.dim = 2, .num_results = 0)}),
};

ed_tensor *ed_sobol_sample_with(int64_t dim, int64_t num_results,
                                const ed_sobol_sample_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_SOBOL_SAMPLE_OPTIONS, options);
    return ed_call_op(&ed_op_sobol_sample, NULL, 0,
                      ED_OPTIONS_FROM(ED_SOBOL_SAMPLE_OPTIONS, options, sobol_attrs, .dim = dim,
                                      .num_results = num_results));
}
