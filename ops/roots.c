/*
 * The square root and the logarithm of matrices.
 *
 * sqrtm: a = V T V^T with T triangular but for blocks of two rows on its diagonal, which stand for
 * pairs of complex eigenvalues (the real Schur form). The root R of T has the same form: its
 * blocks are the roots of T's, and those above them follow from R R = T, one column of blocks after
 * the other (Higham, Computing real square roots of a real matrix, 1987). All in float64.
 *
 * logm: ln a = 2^s ln a^(1 / 2^s), of a matrix so near to the identity that a quadrature of
 * ln (1 + x) = integral of x (1 + t x)^-1 over t = 0 .. 1 is exact (Higham, Functions of Matrices,
 * 2008, 11.5). A composition.
 */
#include "ops/kernels/gemm.h"
#include "ops/kernels/lapack.h"
#include "ops/matrices.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* ---- The root of T, column by column in its place -------------------------------------------- */

/* T [n, n] and its blocks: block b has the rows from begin[b] to begin[b + 1] - 1, one or two. */
typedef struct schur_form {
    int64_t n, blocks, *begin;
    double *t;
} schur_form;

static double *element(const schur_form *f, int64_t i, int64_t j)
{
    return &f->t[j * f->n + i];
}

static int64_t block_size(const schur_form *f, int64_t b)
{
    return f->begin[b + 1] - f->begin[b];
}

static void find_blocks(schur_form *f)
{
    f->blocks = 0;
    for (int64_t i = 0; i < f->n; f->blocks++) {
        f->begin[f->blocks] = i;
        i += i + 1 < f->n && *element(f, i + 1, i) != 0 ? 2 : 1;
    }
    f->begin[f->blocks] = f->n;
}

/* The root of a block on the diagonal; false where it is not real. Both elements on the diagonal of
 * a block of two are the real part of its eigenvalues, and the others have different signs. */
static bool root_of_block(const schur_form *f, int64_t b)
{
    const int64_t i = f->begin[b];
    double *first = element(f, i, i);
    if (block_size(f, b) == 1) {
        const double value = *first;
        *first = sqrt(value);
        return value >= 0;
    }
    double *above = element(f, i, i + 1), *below = element(f, i + 1, i);
    const double real = *first, size = hypot(real, sqrt(fabs(*above)) * sqrt(fabs(*below)));
    const double root = real > 0
                            ? sqrt((size + real) / 2)
                            : sqrt(fabs(*above)) * sqrt(fabs(*below)) / sqrt(2 * (size - real));
    *first = *element(f, i + 1, i + 1) = root;
    *above /= 2 * root;
    *below /= 2 * root;
    return root > 0;
}

/* x [p, q] with A x + x B = x as it was, A and B being the roots of blocks i and j. */
static bool solve_blocks(const schur_form *f, int64_t i, int64_t j, double x[4])
{
    const int64_t p = block_size(f, i), q = block_size(f, j), n = p * q;
    double system[16], log_abs;
    bool zero = true;
    for (int64_t r = 0; r < n; r++) {
        zero &= x[r] == 0;
        for (int64_t c = 0; c < n; c++)
            system[r * n + c] =
                (r % q == c % q ? *element(f, f->begin[i] + r / q, f->begin[i] + c / q) : 0) +
                (r / q == c / q ? *element(f, f->begin[j] + c % q, f->begin[j] + r % q) : 0);
    }
    if (zero) return true;
    matrix_eliminate(n, system, 1, x, &log_abs); /* the determinant itself may underflow */
    return log_abs > -INFINITY;
}

/* Block (i, j) above the diagonal; those left of it and below it are done. */
static bool root_above(const schur_form *f, int64_t i, int64_t j)
{
    const int64_t row = f->begin[i], column = f->begin[j], q = block_size(f, j);
    double x[4];
    for (int64_t e = 0; e < block_size(f, i) * q; e++) {
        x[e] = *element(f, row + e / q, column + e % q);
        for (int64_t k = f->begin[i + 1]; k < column; k++)
            x[e] -= *element(f, row + e / q, k) * *element(f, k, column + e % q);
    }
    if (!solve_blocks(f, i, j, x)) return false;
    for (int64_t e = 0; e < block_size(f, i) * q; e++)
        *element(f, row + e / q, column + e % q) = x[e];
    return true;
}

/* The row at which there is no real root; MATRIX_DONE. */
static int64_t root_of_form(schur_form *f)
{
    find_blocks(f);
    for (int64_t j = 0; j < f->blocks; j++) {
        if (!root_of_block(f, j)) return f->begin[j];
        for (int64_t i = j - 1; i >= 0; i--)
            if (!root_above(f, i, j)) return f->begin[i];
    }
    return MATRIX_DONE;
}

/* ---- sqrtm ----------------------------------------------------------------------------------- */

/* LAPACK, for which matrices lie column by column, works on the transpose, of which the root is the
 * transpose, too. */
static int64_t sqrtm_one(const ed_call *call, int64_t m)
{
    const ed_tensor *a = call->inputs[0], *y = call->outputs[0];
    const int64_t n = matrix_rows(a),
                  wrong = matrix_check_norm(a->dtype, matrix_at(a, m), n * n, n);
    if (wrong != MATRIX_DONE) return wrong;
    double *t = memory_alloc((size_t)(3 * n * n) * sizeof *t), *v = NULL, *vt = NULL;
    schur_form f = {.n = n, .t = t, .begin = memory_alloc((size_t)(n + 1) * sizeof *f.begin)};
    int64_t code = t && f.begin ? MATRIX_DONE : MATRIX_NO_MEMORY;
    if (code == MATRIX_DONE) {
        v = t + n * n, vt = v + n * n;
        for (int64_t e = 0; e < n * n; e++) t[e] = dtype_load(a->dtype, matrix_at(a, m), e);
        code = matrix_lapack_code(lapack_schur_f64(n, t, v));
    }
    if (code == MATRIX_DONE) code = root_of_form(&f);
    /* As it is read here, t is the transpose of R, v of V: y = v^T t v. */
    if (code == MATRIX_DONE && !(gemm_f64(n, n, n, v, 1, n, t, n, 1, vt, n, NULL) &&
                                 gemm_f64(n, n, n, vt, n, 1, v, n, 1, t, n, NULL)))
        code = MATRIX_NO_MEMORY;
    for (int64_t e = 0; code == MATRIX_DONE && e < n * n; e++)
        dtype_store(y->dtype, matrix_at(y, m), e, t[e]);
    memory_free(t);
    memory_free(f.begin);
    if (code != MATRIX_DONE) return code;
    return matrix_is_finite(y->dtype, matrix_at(y, m), n * n) ? MATRIX_DONE : MATRIX_INFINITE;
}

static bool sqrtm_infer(ed_call *call)
{
    return matrix_check_square(call, 0) && matrix_check_lapack(call) && ops_infer_like(call);
}

static bool sqrtm_kernel(ed_call *call)
{
    const int64_t n = matrix_rows(call->inputs[0]);
    return matrices_run(call, 0, 2,
                        (matrix_task){.one = sqrtm_one,
                                      .trouble = "has no real square root",
                                      .work = 30 * n * n * n,
                                      .alone = n > LAPACK_SMALL});
}

static bool sqrtm_gradient(const ed_gradient_call *g)
{
    return matrix_function_gradient(g, ed_sqrtm);
}

/* One step of Denman and Beavers: y = (y + z^-1) / 2, z = (z + y^-1) / 2. Room for two more. */
static void step_plain(int64_t n, double *y, double *z, double *room)
{
    double *of_y = room, *of_z = room + n * n;
    for (int64_t e = 0; e < n * n; e++) of_y[e] = of_z[e] = e / n == e % n;
    double *copies = of_z + n * n;
    memcpy(copies, y, (size_t)(n * n) * sizeof *y);
    matrix_eliminate(n, copies, n, of_y, NULL);
    memcpy(copies, z, (size_t)(n * n) * sizeof *z);
    matrix_eliminate(n, copies, n, of_z, NULL);
    for (int64_t e = 0; e < n * n; e++) {
        y[e] = (y[e] + of_z[e]) / 2;
        z[e] = (z[e] + of_y[e]) / 2;
    }
}

/* a becomes its root; room for four matrices. */
static void root_plain(int64_t n, double *a, double *room)
{
    for (int64_t e = 0; e < n * n; e++) room[e] = e / n == e % n;
    for (int i = 0; i < 12; i++) step_plain(n, a, room, room + n * n);
}

static bool sqrtm_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t n = matrix_rows(x), size = n * n;
    double *room = memory_alloc((size_t)(4 * size) * sizeof *room);
    for (int64_t m = 0; room && x->size && m < matrix_count(x); m++) {
        memcpy(matrix_at(y, m), matrix_at(x, m), (size_t)size * sizeof *room);
        root_plain(n, matrix_at(y, m), room);
    }
    memory_free(room);
    return room;
}

/* sqrtm: y y = x */
ED_OP(sqrtm) = {
    .name = "sqrtm",
    .doc = "the square root of matrices: y with y y = a",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_READS_DY, /* in a matrix whose root is taken */
    .infer = sqrtm_infer,
    .batch = ed_batch_axes,
    .kernel = sqrtm_kernel,
    .gradient = sqrtm_gradient,
    .reference = sqrtm_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3)}},
                          {.inputs = {ED_MATRICES_IN(3, 2, 2)}}),
};

ed_tensor *ed_sqrtm(ed_tensor *a)
{
    return CALL_OP(sqrtm, NULL, a);
}

/* ---- logm ------------------------------------------------------------------------------------ */

/* Gauss and Legendre's quadrature with 7 points on 0 .. 1, the points and the weights: exact to
 * float64 for matrices up to this norm. */
static const double quadrature[][2] = {{0.025446043828620737737, 0.064742483084434846635},
                                       {0.12923440720030278007, 0.13985269574463833395},
                                       {0.29707742431130141655, 0.19091502525255947248},
                                       {0.5, 0.20897959183673469388},
                                       {0.70292257568869858345, 0.19091502525255947248},
                                       {0.87076559279969721993, 0.13985269574463833395},
                                       {0.97455395617137926226, 0.064742483084434846635}};
static const double quadrature_norm = 0.25;

/* Roots of the smallest and the largest numbers are that near to 1 long before this factor. */
static const double most_roots = 0x1p40;

/* The largest norm of the matrices; 0 of none. NAN with an error. */
static double largest_norm(ed_tensor *x)
{
    if (!x || !ed_size(x)) return x ? 0 : NAN;
    ed_tensor *norm =
        ed_reduce_max(ed_norm(ed_stop_gradient(x), .axis = ED_AXES(-2, -1), .ord = 1));
    return norm ? ed_item(norm) : NAN;
}

/* ln (1 + x) */
static ed_tensor *log_near_one(ed_tensor *x, ed_tensor *one)
{
    ed_tensor *sum = NULL;
    for (size_t i = 0; i < sizeof quadrature / sizeof *quadrature; i++) {
        ed_tensor *term = ed_solve(ed_add(one, ed_mul(x, quadrature[i][0])), x);
        term = ed_mul(term, quadrature[i][1]);
        sum = sum ? ed_add(sum, term) : term;
    }
    return sum;
}

static bool logm_compose(ed_call *call)
{
    ed_tensor *a = call->inputs[0];
    if (!matrix_check_square(call, 0)) return false;
    const ed_dtype dtype = ed_dtype_of(a);
    ed_tensor *root = ed_cast(a, ED_FLOAT64), *one = matrix_eye(ed_dim(a, -1), root);
    ed_tensor *x = ed_sub(root, one);
    double factor = 1;
    for (; largest_norm(x) > quadrature_norm; factor *= 2) {
        if (factor > most_roots)
            return ed_call_fail(
                call, ED_INVALID_ARGUMENT,
                "the roots of a matrix do not come near the identity: it is singular, "
                "or too far from normal");
        x = ed_sub(root = ed_sqrtm(root), one);
    }
    return x && ed_call_result(call, 0, ed_cast(ed_mul(log_near_one(x, one), factor), dtype));
}

/* By roots, and the series of ln (1 + x). */
static bool logm_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t n = matrix_rows(x), size = n * n;
    double *a = memory_alloc((size_t)(5 * size) * sizeof *a), *power = a + size;
    for (int64_t m = 0; a && x->size && m < matrix_count(x); m++) {
        double *to = matrix_at(y, m), *next = power + size;
        enum { ROOTS = 6, TERMS = 40 };
        memcpy(a, matrix_at(x, m), (size_t)size * sizeof *a);
        for (int k = 0; k < ROOTS; k++) root_plain(n, a, power);
        for (int64_t e = 0; e < size; e++) a[e] -= e / n == e % n;
        memcpy(power, a, (size_t)size * sizeof *a);
        memset(to, 0, (size_t)size * sizeof *to);
        for (int k = 1; k <= TERMS; k++) {
            for (int64_t e = 0; e < size; e++) {
                to[e] += ldexp((k % 2 ? 1 : -1) * power[e] / k, ROOTS);
                next[e] = 0;
                for (int64_t p = 0; p < n; p++) next[e] += power[e / n * n + p] * a[p * n + e % n];
            }
            memcpy(power, next, (size_t)size * sizeof *next);
        }
    }
    memory_free(a);
    return a;
}

ED_OP(logm) = {
    .name = "logm",
    .doc = "the logarithm of matrices: y with e^y = a",
    .operands = {{"a", ED_SET_FLOAT, 'T', .early = true}},
    .compose = logm_compose,
    .reference = logm_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3)}},
                          {.inputs = {ED_MATRICES_IN(3, 2, 2)}}),
};

ed_tensor *ed_logm(ed_tensor *a)
{
    return CALL_OP(logm, NULL, a);
}
