/*
 * sobol_sample: Sobol's sequence in the order of the Gray code (Antonov and Saleev, 1979). Each
 * dimension has a direction number for each binary digit of a point's number; point n is the
 * exclusive or of those whose digits are set in n ^ (n >> 1), so that one of them leads from a
 * point to the next. A dimension's numbers follow from a primitive polynomial and the first few of
 * them (ops/sobol_numbers.h).
 */
#include "ops/execute.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "ops/sobol_numbers.h"
#include "tensor/hard.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

#ifdef ISA
/* ======== Loops =============================================================================== */

/* y = a ^ b, as fractions of 2^31. */
void ISA_NAME(sobol_f32)(const int32_t *restrict a, const int32_t *restrict b, int64_t n,
                         float *restrict y);
void ISA_NAME(sobol_f32)(const int32_t *restrict a, const int32_t *restrict b, int64_t n,
                         float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(a[i] ^ b[i]) * 0x1p-31f;
}

void ISA_NAME(sobol_f64)(const int32_t *restrict a, const int32_t *restrict b, int64_t n,
                         double *restrict y);
void ISA_NAME(sobol_f64)(const int32_t *restrict a, const int32_t *restrict b, int64_t n,
                         double *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = (a[i] ^ b[i]) * 0x1p-31;
}

#else
/* ======== The op ============================================================================== */

ISA_DECLARE(void, sobol_f32, const int32_t *a, const int32_t *b, int64_t n, float *y);
ISA_DECLARE(void, sobol_f64, const int32_t *a, const int32_t *b, int64_t n, double *y);

#define SOBOL_ATTRS(FIELD, T)                                                                      \
    FIELD(T, INT, dim, 1, ED_BETWEEN(1, SOBOL_DIMENSIONS), "of the points")                        \
    FIELD(T, INT, num_results, 1, ED_AT_LEAST(0), "number of points")                              \
    ED_SOBOL_SAMPLE_OPTIONS(FIELD, T)
ED_OPTIONS(sobol_attrs, SOBOL_ATTRS);

enum {
    DIGITS = 31,
    TABLE = HARD(8, 8192), /* numbers of low points, at most, if not of one alone */
    PATTERN = 64           /* numbers of the rows that are written at once, at least */
};

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

/* The next n bits, fewer than 64. */
static uint32_t next_bits(reader *r, int n)
{
    const int64_t word = r->bit / 64;
    const int from = (int)(r->bit % 64);
    uint64_t y = sobol_bits[word] >> from;
    if (from + n > 64) y |= sobol_bits[word + 1] << (64 - from);
    r->bit += n;
    return (uint32_t)(y & ((UINT64_C(1) << n) - 1));
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

/* numbers [digits, dim], as fractions of 2^31: the first dimension has the powers of 1/2. */
static void direct(int64_t dim, int digits, int32_t *numbers)
{
    reader r = {0};
    for (int k = 0; k < digits; k++) numbers[k * dim] = INT32_C(1) << (DIGITS - 1 - k);
    for (int64_t d = 1; d < dim; d++) {
        uint32_t between, m[SOBOL_DEGREES];
        int32_t v[DIGITS];
        const int degree = next_dimension(&r, &between, m);
        for (int k = 0; k < digits && k < degree; k++) v[k] = (int32_t)m[k] << (DIGITS - 1 - k);
        for (int k = degree; k < digits; k++) {
            v[k] = v[k - degree] ^ v[k - degree] >> degree;
            for (uint32_t left = between; left; left &= left - 1)
                v[k] ^= v[k - degree + 1 + __builtin_ctz(left)];
        }
        for (int k = 0; k < digits; k++) numbers[k * dim + d] = v[k];
    }
}

/* ---- Points ---------------------------------------------------------------------------------- */

/*
 * The Gray code of an exclusive or is that of the Gray codes. So a point's numbers are those of its
 * low binary digits, which a table has, and those of the point with the low digits 0, its base.
 */
typedef struct points {
    const sobol_attrs *attrs;
    int low;          /* digits of the points in the table */
    int64_t together; /* rows that are written at once, a power of 2 no larger than the table */
    int32_t *numbers; /* [digits, dim] */
    int32_t *table;   /* [1 << low, dim] */
    void *y;
} points;

static void change(int32_t *x, const int32_t *by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] ^= by[i];
}

/* x = the numbers of a point. */
static void point_numbers(const points *p, uint32_t point, int32_t *x)
{
    const int64_t dim = p->attrs->dim;
    memset(x, 0, (size_t)dim * sizeof *x);
    for (uint32_t left = point ^ point >> 1; left; left &= left - 1)
        change(x, p->numbers + __builtin_ctz(left) * dim, dim);
}

/* The points of one base with low digits first..last-1, from row i of y on. In `bases` it stands as
 * often as rows are written together, so that these are one loop, however short they are. */
static void write_rows(const points *p, const int32_t *bases, int64_t first, int64_t last,
                       int64_t i)
{
    const int64_t dim = p->attrs->dim;
    while (first < last) {
        const int64_t within = first % p->together, whole = p->together - within;
        const int64_t rows = last - first < whole ? last - first : whole;
        const int32_t *low = p->table + first * dim, *base = bases + within * dim;
        if (p->attrs->dtype == ED_FLOAT32)
            ISA_CALL(sobol_f32)(low, base, rows * dim, (float *)p->y + i * dim);
        else
            ISA_CALL(sobol_f64)(low, base, rows * dim, (double *)p->y + i * dim);
        first += rows;
        i += rows;
    }
}

/* From the numbers of a base to those of the one with the next higher digits, `high`. */
static void next_base(const points *p, uint32_t high, int32_t *x)
{
    const int64_t dim = p->attrs->dim;
    change(x, p->numbers + (p->low + __builtin_ctz(high)) * dim, dim);
    if (p->low) change(x, p->numbers + (p->low - 1) * dim, dim);
}

static void point_rows(int64_t first, int64_t last, int worker, void *user)
{
    const points *p = user;
    const int64_t dim = p->attrs->dim, size = INT64_C(1) << p->low;
    const int64_t ahead = p->attrs->skip + 1; /* the point of the first row */
    int32_t bases[SOBOL_DIMENSIONS + 2 * PATTERN];
    (void)worker;
    int64_t high = (ahead + first) >> p->low;
    point_numbers(p, (uint32_t)(high << p->low), bases);
    while (first < last) {
        const int64_t low = (ahead + first) % size;
        const int64_t rows = last - first < size - low ? last - first : size - low;
        for (int64_t k = 1; k < p->together; k++)
            memcpy(bases + k * dim, bases, (size_t)dim * sizeof *bases);
        write_rows(p, bases, low, low + rows, first);
        first += rows;
        if (first < last) next_base(p, (uint32_t)++high, bases);
    }
}

static void fill_table(const points *p)
{
    const int64_t dim = p->attrs->dim;
    memset(p->table, 0, (size_t)dim * sizeof *p->table);
    for (int64_t k = 1; k < INT64_C(1) << p->low; k++) {
        int32_t *x = p->table + k * dim;
        memcpy(x, x - dim, (size_t)dim * sizeof *x);
        change(x, p->numbers + __builtin_ctz((unsigned)k) * dim, dim);
    }
}

static bool sobol_kernel(ed_call *call)
{
    const sobol_attrs *a = call->attrs;
    points p = {.attrs = a, .together = 1, .y = ed_call_data(call, 0)};
    int digits = 0;
    while ((a->skip + a->num_results) >> digits) digits++;
    while (p.low < digits && a->dim << (p.low + 1) <= TABLE) p.low++;
    while (p.together < INT64_C(1) << p.low && p.together * a->dim < PATTERN) p.together *= 2;
    const int64_t rows = digits + (INT64_C(1) << p.low);
    p.numbers = memory_alloc((size_t)(rows * a->dim) * sizeof *p.numbers);
    if (!p.numbers) return false;
    p.table = p.numbers + digits * a->dim;
    direct(a->dim, digits, p.numbers);
    fill_table(&p);
    threads_run(a->num_results, 1 + OPS_PARALLEL_WORK / a->dim, point_rows, &p);
    memory_free(p.numbers);
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
#endif
