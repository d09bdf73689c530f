/*
 * Accuracy of the elementwise functions in ULP, for every instruction set of the machine: their
 * loops are taken from the ops' definitions.
 *
 * The rules and their true values are in tests/accuracy_rules.c and accuracy_special.c; where long
 * double has no more bits than double there is nothing to compare float64 with.
 *
 * The points: special values, numbers of random bits (all magnitudes alike, NaN and denormals among
 * them), and numbers evenly spread over the range where the function is interesting.
 *
 * EDDY_VERBOSE=1 prints the worst cases, EDDY_ACCURACY=FILE writes them as a page of the docs.
 * EDDY_EXHAUSTIVE=1 takes all 2^32 numbers for float32 functions of one argument,
 * EDDY_EXHAUSTIVE=exp does it for exp alone.
 */
#include "ops/elementwise.h"
#include "tests/accuracy.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifdef EDDY_SANITIZED
enum { CHUNK = 4096, POINTS_F32 = 1 << 17, POINTS_F64 = 1 << 16 };
#else
enum { CHUNK = 4096, POINTS_F32 = 1 << 20, POINTS_F64 = 1 << 17 };
#endif

/* The worst case of one function, type and instruction set. */
typedef struct worst {
    double ulp, x[ACCURACY_OPERANDS], got;
} worst;

/* Infinite where the kind is wrong (NaN, inf, the sign of an exact zero). Digits and exponent are
 * the type's; the unit is that of the larger of the true value and `unit`. */
static double distance(long double got, long double want, long double unit, int digits, int lowest,
                       int highest)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (want == 0 && unit == 0) return got == 0 && !signbit(got) == !signbit(want) ? 0 : INFINITY;
    long double top = ldexpl(1, highest);
    if (isinf(want)) return got == want ? 0 : INFINITY;
    if (fabsl(want) > top)
        want = copysignl(top, want); /* to be rounded to inf, which counts as the next number */
    if (isinf(got)) got = copysignl(top, got);
    int exponent = ilogbl(fmaxl(fabsl(want), unit));
    if (exponent >= highest) exponent = highest - 1;
    if (exponent < lowest) exponent = lowest;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - digits + 1));
}

/* The same by hand for the many: nothing special, no overflow near. */
static double distance32(float got, double want, double unit)
{
    double size = fmax(fabs(want), unit);
    if (got == want && want != 0) return 0;
    if (!(size > 0 && size < (double)FLT_MAX && fabsf(got) <= FLT_MAX))
        return distance(got, want, unit, FLT_MANT_DIG, FLT_MIN_EXP - 1, FLT_MAX_EXP);
    if (size < (double)FLT_MIN) return fabs(got - want) * 0x1p149;
    uint64_t bits; /* 2^(23 - exponent of size), by its bits */
    memcpy(&bits, &size, sizeof bits);
    bits = ((uint64_t)(2 * 1023 + FLT_MANT_DIG - 1) << 52) - (bits & (uint64_t)0x7ff << 52);
    double per_ulp;
    memcpy(&per_ulp, &bits, sizeof per_ulp);
    return fabs(got - want) * per_ulp;
}

static double distance64(double got, long double want, long double unit)
{
    return distance(got, want, unit, DBL_MANT_DIG, DBL_MIN_EXP - 1, DBL_MAX_EXP);
}

static const double specials[] = {
    0.0,         -0.0,
    INFINITY,    -INFINITY,
    NAN,         1,
    -1,          0.5,
    -0.5,        1.5,
    -1.5,        2,
    -2,          2.5,
    3,           -3,
    0.75,        0.25,
    -0.25,       -0.75,
    0x1p-149,    -0x1p-149,
    0x1.8p-148,  0x1p-127,
    -0x1p-127,   0x1p-126,
    -0x1p-126,   0x1.fffffep-127,
    FLT_MAX,     -FLT_MAX,
    0x1p-1074,   -0x1p-1074,
    0x1p-1022,   -0x1p-1022,
    DBL_MAX,     -DBL_MAX,
    88.72283,    88.7229,
    -87.33655,   -88,
    -103.97,     -103.98,
    -104,        104,
    709.78,      709.79,
    -745.13,     -745.14,
    -708.4,      88.5,
    89,          89.4,
    89.5,        -16.7,
    -17.4,       9.01,
    9.02,        10,
    19,          20,
    3.9,         4,
    0x1p23,      0x1p24,
    -0x1p23,     8388607.5,
    0x1p52,      0x1p53,
    0x1p63,      4503599627370495.5,
    3.14159274,  1.57079637,
    6.28318548,  6144,
    6144.5,      65536,
    65537,       1e10,
    1e22,        1e30,
    1e38,        1e300,
    0.99999994,  1.00000012,
    -0.99999994, 0x1.fffffffffffffp-1,
    1e-3,        1e-4,
    -1e-4,       1e-8,
    -1e-8,       1e-20,
    -1e-20,      1e-40,
    1e-310,      -14.3,
    -14.4,       -38.5,
    -38.6,       -10.2,
    -10.3,       -21,
    -21.5,       0.3465736,
    -0.3465736,  1.0397208,
    -1.0397208,  1.732868,
    -1.732868,   -85.603676,
    -77.28591,   -73.820175,
    87,          -87,
    87.00001,    -87.00001,
    1.17552e-38, 16.99,
    -16.99,      17.01,
    -17.01,      5.409,
    -5.409,      5.411,
    -5.411,      9.19,
};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* splitmix64 */
static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A number of operand k's range. */
static double spread(const accuracy_rule *r, int k, uint64_t *state)
{
    while (k > 0 && r->range[k].low == 0 && r->range[k].high == 0) k--;
    const double low = r->range[k].low, high = r->range[k].high;
    const double x = low + (high - low) * (double)(random_bits(state) >> 11) * 0x1p-53;
    return k == 0 && r->whole ? nearbyint(x) : x;
}

/*
 * Chunk c of a function's points: the first ones hold the specials (every pair of them), then bits
 * and range in turn; of a rule within its range that alone.
 */
static void points(const accuracy_rule *r, long c, ed_dtype dtype, double x[][CHUNK])
{
    uint64_t state = (uint64_t)c << 20;
    for (long i = 0; i < CHUNK; i++) {
        const long special = c * CHUNK + i;
        const long places[] = {special % SPECIALS, special / SPECIALS, special / 7 % SPECIALS};
        for (int k = 0; k < ACCURACY_OPERANDS; k++) {
            const uint64_t bits = random_bits(&state);
            const uint32_t half = (uint32_t)bits;
            float x32;
            memcpy(&x32, &half, 4);
            memcpy(&x[k][i], &bits, 8);
            if (dtype == ED_FLOAT32) x[k][i] = x32;
            if (c & 1 || r->within) x[k][i] = spread(r, k, &state);
            if (special < SPECIALS * SPECIALS && !r->within) x[k][i] = specials[places[k]];
            if (dtype == ED_FLOAT32) x[k][i] = (float)x[k][i];
        }
    }
}

/* All floats in order; further operands are 0. */
static void all_floats(long c, double x[][CHUNK])
{
    for (long i = 0; i < CHUNK; i++) {
        const uint32_t bits = (uint32_t)(c * CHUNK + i);
        float x32;
        memcpy(&x32, &bits, 4);
        x[0][i] = x32, x[1][i] = x[2][i] = 0;
    }
}

/* Runs the op's loop of an instruction set; steps 1. */
static void run(const char *name, int isa, ed_dtype dtype, void *to, const void *const *from,
                int64_t n)
{
    static const char zeros[512];
    const ed_op *op = ed_op_find(name);
    const elementwise_table *table = op->extra;
    const void *attrs = op->defaults ? op->defaults : zeros;
    (*table)[isa][dtype](n, from, (const int[]){1, 1, 1}, to, attrs, false);
}

static int operands_of(const char *name)
{
    int n = 1;
    while (n < ACCURACY_OPERANDS && ed_op_find(name)->operands[n].name) n++;
    return n;
}

static void keep_worst(worst *w, double ulp, const double *x, double got)
{
    if (ulp > w->ulp) *w = (worst){ulp, {x[0], x[1], x[2]}, got};
}

/* The i-th point. */
static void point(double x[][CHUNK], int i, double *at)
{
    for (int k = 0; k < ACCURACY_OPERANDS; k++) at[k] = x[k][i];
}

static long double true_value(const accuracy_rule *r, const double *x, long double *magnitude)
{
    const long double wide[] = {x[0], x[1], x[2]};
    *magnitude = r->magnitude ? r->magnitude(wide) : 0;
    return r->truth64(wide);
}

static void true_values(const accuracy_rule *r, double x[][CHUNK], double *want, double *unit)
{
    double at[ACCURACY_OPERANDS];
    for (int i = 0; i < CHUNK; i++) {
        long double magnitude = 0;
        point(x, i, at);
        want[i] = r->truth32 ? r->truth32(at) : (double)true_value(r, at, &magnitude);
        unit[i] = (double)magnitude;
    }
}

/*
 * For all 2^32 numbers: the function's own float64 loop, which the same program measures to a few
 * ULP of float64, stands for true values of float32 where it agrees with every 16th of them, other
 * ones in each chunk. false: it does not, or it may not stand for them.
 */
static bool values_of_loop(const accuracy_rule *r, double x[][CHUNK], int first, double *want,
                           double *unit)
{
    enum { EACH = 16 };
    const double enough = 0x1p-16; /* in ULP of float32 */
    double at[ACCURACY_OPERANDS];
    if (r->bound64 == 0 || r->magnitude) return false;
    run(r->name, isa_best(), ED_FLOAT64, want, (const void *const[]){x[0], x[1], x[2]}, CHUNK);
    memset(unit, 0, CHUNK * sizeof *unit);
    for (int i = first % EACH; i < CHUNK; i += EACH) {
        long double magnitude;
        point(x, i, at);
        const long double truth = r->truth32 ? r->truth32(at) : true_value(r, at, &magnitude);
        const double off = distance(want[i], truth, 0, FLT_MANT_DIG, FLT_MIN_EXP - 1, DBL_MAX_EXP);
        if (off > enough) return false;
    }
    return true;
}

/* The c-th chunk of numbers. */
static void chunk32(const accuracy_rule *r, long c, double x[][CHUNK], bool all, worst *w)
{
    float from[ACCURACY_OPERANDS][CHUNK], got[CHUNK];
    double want[CHUNK], unit[CHUNK], at[ACCURACY_OPERANDS];
    for (int k = 0; k < ACCURACY_OPERANDS; k++)
        for (int i = 0; i < CHUNK; i++) from[k][i] = (float)x[k][i];
    if (!all || !values_of_loop(r, x, (int)(c % CHUNK), want, unit)) true_values(r, x, want, unit);
    for (int isa = 0; isa <= isa_best(); isa++) {
        run(r->name, isa, ED_FLOAT32, got, (const void *const[]){from[0], from[1], from[2]}, CHUNK);
        for (int i = 0; i < CHUNK; i++) {
            const double ulp = distance32(got[i], want[i], unit[i]);
            if (!(ulp > w[isa].ulp)) continue;
            point(x, i, at);
            keep_worst(w + isa, ulp, at, got[i]);
        }
    }
}

static void chunk64(const accuracy_rule *r, double x[][CHUNK], worst *w)
{
    static _Thread_local double got[CHUNK];
    static _Thread_local long double want[CHUNK], unit[CHUNK];
    double at[ACCURACY_OPERANDS];
    for (int i = 0; i < CHUNK; i++) {
        point(x, i, at);
        want[i] = true_value(r, at, unit + i);
    }
    for (int isa = 0; isa <= isa_best(); isa++) {
        run(r->name, isa, ED_FLOAT64, got, (const void *const[]){x[0], x[1], x[2]}, CHUNK);
        for (int i = 0; i < CHUNK; i++) {
            point(x, i, at);
            keep_worst(w + isa, distance64(got[i], want[i], unit[i]), at, got[i]);
        }
    }
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static bool is_exhaustive(const accuracy_rule *r, ed_dtype dtype)
{
    const char *wanted = getenv("EDDY_EXHAUSTIVE");
    return wanted && dtype == ED_FLOAT32 && operands_of(r->name) == 1 && !r->within &&
           (!strcmp(wanted, "1") || !strcmp(wanted, r->name));
}

/* Without a fast true value a quarter of the points must do. */
static long points_of(const accuracy_rule *r, ed_dtype dtype)
{
    if (is_exhaustive(r, dtype)) return 1L << 32;
    const long most = dtype == ED_FLOAT32 ? POINTS_F32 : POINTS_F64;
    return r->truth32 ? most : most / 4;
}

static double bound_of(const accuracy_rule *r, ed_dtype dtype, int isa)
{
#if defined(__x86_64__)
    if (isa == 0 && r->unfused > 0) return r->unfused;
#endif
    return dtype == ED_FLOAT32 ? r->bound32 : r->bound64;
}

/* Prints the worst cases when asked for, and fails or not. */
static int judge(const accuracy_rule *r, ed_dtype dtype, const worst *w)
{
    int bad = 0;
    for (int isa = 0; isa <= isa_best(); isa++) {
        const double bound = bound_of(r, dtype, isa);
        const int over = !(w[isa].ulp <= bound);
        if (over || getenv("EDDY_VERBOSE"))
            print_message("%-9s %s %-8s %7.4f ULP of %g at %a (%.9g), %a, %a: %.17g%s\n", r->name,
                          ed_dtype_name(dtype), isa_name(isa), w[isa].ulp, bound, w[isa].x[0],
                          w[isa].x[0], w[isa].x[1], w[isa].x[2], w[isa].got,
                          over ? "  TOO MUCH" : "");
        bad += over;
    }
    return bad;
}

static void measure(const accuracy_rule *r, ed_dtype dtype, worst *w)
{
    const bool all = is_exhaustive(r, dtype);
    const long chunks = points_of(r, dtype) / CHUNK;
#pragma omp parallel for schedule(dynamic, 1)
    for (long c = 0; c < chunks; c++) {
        static _Thread_local double x[ACCURACY_OPERANDS][CHUNK];
        worst mine[ISA_COUNT] = {0};
        if (all)
            all_floats(c, x);
        else
            points(r, c, dtype, x);
        if (dtype == ED_FLOAT32)
            chunk32(r, c, x, all, mine);
        else
            chunk64(r, x, mine);
#pragma omp critical
        for (int i = 0; i < ISA_COUNT; i++) keep_worst(w + i, mine[i].ulp, mine[i].x, mine[i].got);
    }
}

/* ---- The page -------------------------------------------------------------------------------- */

/* docs/accuracy.md is what EDDY_ACCURACY=FILE has this program write; NULL: no page is wanted. */
static FILE *page;

static void begin_page(void)
{
    const char *path = getenv("EDDY_ACCURACY");
    page = path ? fopen(path, "w") : NULL;
    if (path && !page) fail_msg("%s cannot be written", path);
    if (!page) return;
    fprintf(page,
            "# Accuracy\n\n"
            "The worst error of every elementwise function of floats, measured by "
            "`tests/test_accuracy.c`; `make accuracy` writes this page.\n\n"
            "- The unit is the ULP, the unit in the last place that the true value has in the "
            "result's dtype: a correctly rounded result has at most 0.5.\n"
            "- The tests fail above the bounds. Behind a bound stands what was measured for each "
            "instruction set: ");
    for (int isa = 0; isa <= isa_best(); isa++)
        fprintf(page, "%s%s", isa ? ", " : "", isa_name(isa));
    fprintf(page,
            ".\n"
            "- The true value is computed in double for float32 and in long double for "
            "float64, by other means than the function: the C library, series, continued "
            "fractions. Over all 2^32 numbers it is the function's float64 loop, where that "
            "agrees with every 16th true value.\n"
            "- The points: special values (zeros, infinities, NaN, denormals, limits of "
            "overflow), numbers of random bits, so that all magnitudes are alike, and as "
            "many from the range. \"2^32\" is every float32.\n"
            "- Without fused multiply-add, as on the baseline, what a product loses takes ten "
            "operations to compute; some functions leave it there, and have a larger bound.\n"
            "- Options have their defaults.\n\n"
            "| op | range | float32 | float64 | float32 points | remark |\n"
            "|---|---|---|---|---|---|\n");
}

static void print_column(double bound, const worst *w)
{
    fprintf(page, " %g:", bound);
    for (int isa = 0; isa <= isa_best(); isa++) fprintf(page, " %.4g", w[isa].ulp);
    fprintf(page, " |");
}

static void print_row(const accuracy_rule *r, const worst *w32, const worst *w64)
{
    if (!page) return;
    fprintf(page, "| %s |", r->name);
    for (int k = 0; k < operands_of(r->name); k++)
        if (k == 0 || r->range[k].low != 0 || r->range[k].high != 0)
            fprintf(page, "%s %g..%g", k ? "," : "", r->range[k].low, r->range[k].high);
    fprintf(page, " |");
    print_column(r->bound32, w32);
    print_column(r->bound64, w64);
    fprintf(page, " 2^%d | %s%s", ilogb((double)points_of(r, ED_FLOAT32)),
            r->remark ? r->remark : "", r->remark && r->unfused > 0 ? "; " : "");
    if (r->unfused > 0) fprintf(page, "bound without fused multiply-add: %g", r->unfused);
    fprintf(page, " |\n");
    fflush(page); /* a run of hours can be followed */
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void functions_are_accurate(void **state)
{
    (void)state;
    int bad = 0;
    begin_page();
    for (int i = 0; accuracy_rule_at(i); i++) {
        const accuracy_rule *r = accuracy_rule_at(i);
        worst w32[ISA_COUNT] = {0}, w64[ISA_COUNT] = {0};
        measure(r, ED_FLOAT32, w32);
        if (LDBL_MANT_DIG > DBL_MANT_DIG) measure(r, ED_FLOAT64, w64);
        bad += judge(r, ED_FLOAT32, w32) + judge(r, ED_FLOAT64, w64);
        print_row(r, w32, w64);
    }
    if (page) fclose(page);
    assert_int_equal(bad, 0);
}

/* Whether it is elementwise, from floats to floats; conversions are not functions. */
static bool is_function(const ed_op *op)
{
    if (!(op->operands[0].dtypes & 1u << ED_FLOAT32)) return false;
    if (op->kernel != elementwise_kernel && op->kernel != elementwise_whole_division) return false;
    const elementwise_table *table = op->extra;
    return (*table)[0][ED_FLOAT32] && op->infer != elementwise_infer_bool &&
           strcmp(op->name, "cast") != 0;
}

static void every_function_has_a_rule(void **state)
{
    (void)state;
    int missing = 0;
    for (int i = 0; i < ed_op_count(); i++) {
        const ed_op *op = ed_op_at(i);
        bool found = !is_function(op);
        for (int k = 0; !found && accuracy_rule_at(k); k++)
            found = !strcmp(accuracy_rule_at(k)->name, op->name);
        if (!found) print_message("%s has no rule in tests/accuracy_rules.c\n", op->name);
        missing += !found;
    }
    assert_int_equal(missing, 0);
}

/* 0 and 1 at infinity, also where the factor of the power of e is infinite; NaN for NaN. */
static void slopes_have_limits(void **state)
{
    (void)state;
    static const char *const names[] = {"gelu_gradient", "gelu_tanh_gradient"};
    const float one32[] = {1, 1, 1, 1, 1}, x32[] = {-INFINITY, -FLT_MAX, FLT_MAX, INFINITY, NAN};
    const double one64[] = {1, 1, 1, 1, 1}, x64[] = {-INFINITY, -DBL_MAX, DBL_MAX, INFINITY, NAN};
    for (int isa = 0; isa <= isa_best(); isa++)
        for (int k = 0; k < 2; k++) {
            float y32[5];
            double y64[5];
            run(names[k], isa, ED_FLOAT32, y32, (const void *const[]){one32, x32}, 5);
            run(names[k], isa, ED_FLOAT64, y64, (const void *const[]){one64, x64}, 5);
            for (int i = 0; i < 4; i++) assert_true(y32[i] == i / 2 && y64[i] == i / 2);
            assert_true(isnan(y32[4]) && isnan(y64[4]));
        }
}

/*
 * The same number gives the same bits in every lane, whatever stands beside it (slow paths
 * included), and in a partial vector.
 */
static void check_place(const accuracy_rule *r, int isa, double special, uint64_t *random)
{
    enum { WIDE = 16 };
    float first = 0, x[ACCURACY_OPERANDS][WIDE], got[WIDE];
    for (int lane = 0; lane < WIDE; lane++) {
        for (int i = 0; i < WIDE; i++)
            for (int k = 0; k < ACCURACY_OPERANDS; k++) {
                const uint32_t bits = lane ? (uint32_t)random_bits(random) : 0;
                memcpy(&x[k][i], &bits, 4);
            }
        x[0][lane] = (float)special, x[1][lane] = 1.25f, x[2][lane] = 0.5f;
        run(r->name, isa, ED_FLOAT32, got, (const void *const[]){x[0], x[1], x[2]},
            lane % 2 ? WIDE : lane + 1);
        if (lane == 0) first = got[0];
        if (isnan(first) ? !isnan(got[lane]) : memcmp(&first, got + lane, 4) != 0)
            fail_msg("%s of %g is %.9g in lane 0, %.9g in lane %d", r->name, special, (double)first,
                     (double)got[lane], lane);
    }
}

static void place_does_not_matter(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int isa = 0; isa <= isa_best(); isa++)
        for (int i = 0; accuracy_rule_at(i); i++)
            for (int s = 0; s < SPECIALS; s++)
                check_place(accuracy_rule_at(i), isa, specials[s], &random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_has_a_rule),
        cmocka_unit_test(place_does_not_matter),
        cmocka_unit_test(functions_are_accurate),
        cmocka_unit_test(slopes_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
