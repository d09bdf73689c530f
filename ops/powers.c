/* Powers of square matrices: matrix_power, a composition, and expm. */
#include "ops/kernels/gemm.h"
#include "ops/matrices.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* ---- matrix_power ---------------------------------------------------------------------------- */

#define POWER_ATTRS(FIELD, T) FIELD(T, INT, n, 1, ED_ANY, "the exponent; negative: of the inverse")
ED_OPTIONS(power_attrs, POWER_ATTRS);
#define POWER(exponent) ED_ATTRS(POWER_ATTRS, power_attrs, .n = exponent)

/* By squaring. */
static bool power_compose(ed_call *call)
{
    const power_attrs *o = call->attrs;
    if (!matrix_check_square(call, 0)) return false;
    ed_tensor *square = call->inputs[0], *y = NULL;
    if (o->n == 0) {
        ed_tensor *eye = matrix_eye(ed_dim(square, -1), square);
        return ed_call_result(call, 0, ed_add(ed_mul(square, 0), eye));
    }
    if (o->n < 0) square = ed_inv(square);
    uint64_t rest = o->n < 0 ? -(uint64_t)o->n : (uint64_t)o->n;
    for (; square; square = ed_matmul(square, square)) {
        if (rest & 1) y = y ? ed_matmul(y, square) : square;
        if (!(rest >>= 1)) break;
    }
    return square && ed_call_result(call, 0, y);
}

/* C = A B, square. */
static void multiply_plain(int64_t n, const double *a, const double *b, double *c)
{
    for (int64_t e = 0; e < n * n; e++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum += a[e / n * n + k] * b[k * n + e % n];
        c[e] = sum;
    }
}

/* One product after the other; samples have small exponents. */
static bool power_reference(const ed_call *call)
{
    const power_attrs *o = call->attrs;
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        double *a = matrix_copied(call->inputs[0], y, i), *to = matrix_at(y, i);
        double *from = matrix_copied(call->inputs[0], y, i);
        if (!a || !from) return false;
        for (int64_t e = 0; e < n * n; e++) to[e] = (e / n == e % n) + (o->n == 0 ? a[e] * 0 : 0);
        if (o->n < 0) matrix_eliminate(n, a, n, to, NULL);
        for (int64_t p = 0; p < o->n; p++) {
            memcpy(from, to, (size_t)(n * n) * sizeof *to);
            if (p == 0)
                memcpy(to, a, (size_t)(n * n) * sizeof *to);
            else
                multiply_plain(n, a, from, to);
        }
    }
    return true;
}

ED_OP(matrix_power) = {
    .name = "matrix_power",
    .doc = "a to the power of n",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(POWER_ATTRS, power_attrs),
    .compose = power_compose,
    .reference = power_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 3, 3)}, .attrs = POWER(3)},
                          {.inputs = {ED_MATRICES_IN(3, 2, 2)}, .attrs = POWER(-1)}),
};

ed_tensor *ed_matrix_power(ed_tensor *a, int64_t n)
{
    return CALL_OP(matrix_power, POWER(n), a);
}

/* ---- expm ------------------------------------------------------------------------------------ */

/*
 * e^A = (e^(A / 2^s))^(2^s), the inner one by a Pade approximant of degree 13: (V - U)^-1 (V + U),
 * U the odd and V the even powers (Higham, The scaling and squaring method, 2005). All in float64.
 */
enum { POWERS = 6 }; /* matrices of room: A, A^2, A^4, A^6, U, V */

static const double pade[] = {64764752532480000,
                              32382376266240000,
                              7771770303897600,
                              1187353796428800,
                              129060195264000,
                              10559470521600,
                              670442572800,
                              33522128640,
                              1323241920,
                              40840800,
                              960960,
                              16380,
                              182,
                              1};
static const double pade_norm = 5.371920351148152; /* up to which it is exact */

static bool multiply_square(int64_t n, const double *a, const double *b, double *c)
{
    return gemm_f64(n, n, n, a, n, 1, b, n, 1, c, n, NULL);
}

/* The largest sum of absolute values of a column. */
static double norm_of(int64_t n, const double *a)
{
    double norm = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += fabs(a[i * n + j]);
        norm = fmax(norm, sum);
    }
    return norm;
}

/* To = the sum of p[i] room[i], i = 1 .. 3, and p[0] times the identity. */
static void combine(int64_t n, const double *room, const double p[4], double *to)
{
    const double *a2 = room + n * n, *a4 = a2 + n * n, *a6 = a4 + n * n;
    for (int64_t e = 0; e < n * n; e++) to[e] = p[3] * a6[e] + p[2] * a4[e] + p[1] * a2[e];
    for (int64_t i = 0; i < n; i++) to[i * (n + 1)] += p[0];
}

/* U or V, by the coefficients from `first` on, in steps of 2; `spare` is lost. */
static bool half(int64_t n, const double *room, int first, double *to, double *spare)
{
    const double *p = pade + first, *a6 = room + 3 * n * n;
    combine(n, room, (double[]){0, p[8], p[10], p[12]}, spare);
    if (!multiply_square(n, a6, spare, to)) return false;
    combine(n, room, (double[]){p[0], p[2], p[4], p[6]}, spare);
    for (int64_t e = 0; e < n * n; e++) to[e] += spare[e];
    return true;
}

/* X = (V - U)^-1 (V + U) in the place of V; U is lost. */
static int64_t divide(int64_t n, double *u, double *v)
{
    int64_t *swaps, code;
    for (int64_t e = 0; e < n * n; e++) {
        const double odd = u[e], even = v[e];
        u[e] = even - odd;
        v[e] = even + odd;
    }
    void *lu = matrix_lu(ED_FLOAT64, n, u, &swaps, &code);
    if (lu && code == MATRIX_DONE &&
        !matrix_solve_factored(ED_FLOAT64, false, n, lu, swaps, n, (char *)v))
        code = MATRIX_NO_MEMORY;
    memory_free(lu);
    return code;
}

/* e^A in the place of A, the first of the room's matrices. A square of what is not finite is not
 * finite either: of an A with huge numbers a thousand squarings would be left. */
static int64_t exponentiate(int64_t n, double *room)
{
    double *a = room, *u = room + 4 * n * n, *v = u + n * n;
    const double norm = norm_of(n, a);
    const int squarings = norm > pade_norm ? (int)ceil(log2(norm / pade_norm)) : 0;
    for (int64_t e = 0; e < n * n; e++) a[e] = ldexp(a[e], -squarings);
    for (int64_t i = 1; i <= 3; i++) /* A^2, A^4, A^6 */
        if (!multiply_square(n, room + (i == 1 ? 0 : n * n), room + (i - 1) * n * n,
                             room + i * n * n))
            return MATRIX_NO_MEMORY;
    if (!half(n, room, 1, v, u) || !multiply_square(n, a, v, u) || !half(n, room, 0, v, a))
        return MATRIX_NO_MEMORY;
    const int64_t code = divide(n, u, v);
    if (code != MATRIX_DONE) return code;
    memcpy(a, v, (size_t)(n * n) * sizeof *a);
    for (int s = 0; s < squarings; s++) {
        if (!multiply_square(n, a, a, v)) return MATRIX_NO_MEMORY;
        if (!matrix_is_finite(ED_FLOAT64, v, n * n)) return MATRIX_INFINITE;
        memcpy(a, v, (size_t)(n * n) * sizeof *a);
    }
    return MATRIX_DONE;
}

static int64_t expm_one(const ed_call *call, int64_t i)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t n = matrix_rows(x);
    const void *from = matrix_at(x, i);
    void *to = matrix_at(y, i);
    const int64_t wrong = matrix_check_norm(x->dtype, from, n * n, n);
    if (wrong != MATRIX_DONE) return wrong;
    double *room = memory_alloc((size_t)(POWERS * n * n) * sizeof *room);
    if (!room) return MATRIX_NO_MEMORY;
    for (int64_t e = 0; e < n * n; e++) room[e] = dtype_load(x->dtype, from, e);
    const int64_t code = exponentiate(n, room);
    for (int64_t e = 0; e < n * n; e++) dtype_store(y->dtype, to, e, room[e]);
    memory_free(room);
    if (code == MATRIX_NO_MEMORY) return code;
    return code == MATRIX_DONE && matrix_is_finite(y->dtype, to, n * n) ? MATRIX_DONE
                                                                        : MATRIX_INFINITE;
}

static bool expm_infer(ed_call *call)
{
    return matrix_check_square(call, 0) && ops_infer_like(call);
}

static bool expm_kernel(ed_call *call)
{
    const int64_t n = matrix_rows(call->inputs[0]);
    return matrices_run(call, 0, 2, (matrix_task){expm_one, .work = 20 * n * n * n});
}

static bool expm_gradient(const ed_gradient_call *g)
{
    return matrix_function_gradient(g, ed_expm);
}

/* C = factor A B. */
static void multiply_wide(int64_t n, long double factor, const long double *a, const long double *b,
                          long double *c)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++) c[i * n + j] += factor * a[i * n + k] * b[k * n + j];
    }
}

/* The second of the room's four matrices becomes e^A. */
static void series_plain(int64_t n, const double *a, long double *room)
{
    long double *scaled = room, *sum = room + n * n, *term = sum + n * n, *next = term + n * n;
    int squarings = 0;
    for (double norm = norm_of(n, a); norm > 0.5; norm /= 2) squarings++;
    for (int64_t e = 0; e < n * n; e++) {
        scaled[e] = ldexpl((long double)a[e], -squarings);
        sum[e] = term[e] = e / n == e % n;
    }
    for (int k = 1; k < 18; k++) {
        multiply_wide(n, 1 / (long double)k, scaled, term, next);
        for (int64_t e = 0; e < n * n; e++) sum[e] += term[e] = next[e];
    }
    for (int k = 0; k < squarings; k++) {
        multiply_wide(n, 1, sum, sum, next);
        memcpy(sum, next, (size_t)(n * n) * sizeof *sum);
    }
}

/* By the series, of a / 2^s with norm below 1 / 2, which is then squared. */
static bool expm_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t n = matrix_rows(x);
    long double *room = memory_alloc((size_t)(4 * n * n + 1) * sizeof *room);
    for (int64_t i = 0; room && x->size && i < matrix_count(x); i++) {
        const double *from = matrix_at(x, i);
        double *to = matrix_at(call->outputs[0], i);
        series_plain(n, from, room);
        for (int64_t e = 0; e < n * n; e++) to[e] = (double)room[n * n + e];
    }
    memory_free(room);
    return room;
}

/* expm: y = e^a */
ED_OP(expm) = {
    .name = "expm",
    .doc = "e^a, the sum of a^k / k!, of square matrices",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_READS_DY, /* in a matrix that is scaled */
    .infer = expm_infer,
    .batch = ed_batch_axes,
    .kernel = expm_kernel,
    .gradient = expm_gradient,
    .reference = expm_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 3, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-4, 4, 3, 2, 2)}}),
};

ed_tensor *ed_expm(ed_tensor *a)
{
    return CALL_OP(expm, NULL, a);
}
