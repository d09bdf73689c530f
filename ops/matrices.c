#include "ops/matrices.h"
#include "ops/kernels/lapack.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Batches --------------------------------------------------------------------------------- */

static int64_t size_of_product(const int64_t *sizes, int n)
{
    int64_t size = 1;
    for (int d = 0; d < n; d++) size *= sizes[d];
    return size;
}

int64_t matrix_count(const ed_tensor *x)
{
    return size_of_product(x->shape, x->rank - 2);
}

void *matrix_at(const ed_tensor *x, int64_t i)
{
    const int64_t each = size_of_product(x->shape + x->rank - 2, 2);
    return x->data + (size_t)(i * each) * dtype_size(x->dtype);
}

void *matrix_of(const ed_tensor *x, const ed_tensor *y, int64_t i)
{
    const int skip = y->rank - x->rank;
    int64_t at = 0, step = 1;
    for (int d = y->rank - 3; d >= 0; i /= y->shape[d], d--) {
        if (d < skip) break;
        if (x->shape[d - skip] != 1) at += i % y->shape[d] * step;
        step *= x->shape[d - skip];
    }
    return matrix_at(x, at);
}

enum { CHECKED = HARD(7, 32768) }; /* numbers that a thread looks at, at a time */

/* Whether n numbers stay finite when they are multiplied by the factor: then their products with 0
 * add up to 0. Sums side by side need not wait for each other. */
static bool part_stays_finite(ed_dtype dtype, const void *data, int64_t n, double factor)
{
    enum { SUMS = 16 };
    const float narrow = (float)factor, *narrows = data;
    const double *wides = data;
    double none = 0;
    int64_t i = 0;
    if (dtype == ED_FLOAT32) {
        float sums[SUMS] = {0};
        for (; i + SUMS <= n; i += SUMS)
            for (int k = 0; k < SUMS; k++) sums[k] += narrows[i + k] * narrow * 0;
        for (int k = 0; k < SUMS; k++) none += (double)sums[k];
        for (; i < n; i++) none += (double)(narrows[i] * narrow * 0);
    } else {
        double sums[SUMS] = {0};
        for (; i + SUMS <= n; i += SUMS)
            for (int k = 0; k < SUMS; k++) sums[k] += wides[i + k] * factor * 0;
        for (int k = 0; k < SUMS; k++) none += sums[k];
        for (; i < n; i++) none += wides[i] * factor * 0;
    }
    return none == 0;
}

/* The numbers, and where they are copied to if that is wanted. */
typedef struct checking {
    ed_dtype dtype;
    const char *data;
    char *copy;
    double factor;
    bool failed;
} checking;

static void check_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    checking *c = user;
    const size_t size = dtype_size(c->dtype), at = (size_t)first * size;
    if (!part_stays_finite(c->dtype, c->data + at, last - first, c->factor))
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
    if (c->copy) memcpy(c->copy + at, c->data + at, (size_t)(last - first) * size);
}

/* All threads look at a large matrix, which is mostly waiting for memory. */
static bool stay_finite(ed_dtype dtype, const void *data, int64_t n, double factor, void *copy)
{
    checking c = {dtype, data, copy, factor, false};
    if (n > 0) threads_run(n, CHECKED, check_range, &c);
    return !c.failed;
}

bool matrix_is_finite(ed_dtype dtype, const void *data, int64_t n)
{
    return stay_finite(dtype, data, n, 1, NULL);
}

bool matrix_copy_finite(ed_dtype dtype, const void *data, int64_t n, void *copy)
{
    return stay_finite(dtype, data, n, 1, copy);
}

int64_t matrix_check_norm(ed_dtype dtype, const void *data, int64_t n, int64_t terms)
{
    if (stay_finite(dtype, data, n, (double)terms, NULL)) return MATRIX_DONE;
    return stay_finite(dtype, data, n, 1, NULL) ? MATRIX_TOO_LARGE : MATRIX_NOT_FINITE;
}

bool matrix_check(const ed_call *call, int i)
{
    const ed_tensor *x = call->inputs[i];
    return x->rank >= 2 ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s; it must be matrices, of rank >= 2",
                        call->op->operands[i].name, text_of_tensor(x).s);
}

bool matrix_check_square(const ed_call *call, int i)
{
    const ed_tensor *x = call->inputs[i];
    return matrix_check(call, i) &&
           (matrix_rows(x) == matrix_columns(x) ||
            ed_call_fail(call, ED_INVALID_ARGUMENT, "%s is %s; its matrices must be square",
                         call->op->operands[i].name, text_of_tensor(x).s));
}

bool matrix_broadcast(const ed_call *call, int *rank, int64_t *shape)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    return ops_broadcast(a->rank - 2, a->shape, b->rank - 2, b->shape, rank, shape) ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "leading dimensions don't broadcast: %s is %s, %s is %s",
                        call->op->operands[0].name, text_of_tensor(a).s, call->op->operands[1].name,
                        text_of_tensor(b).s);
}

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct running {
    const ed_call *call;
    const matrix_task *task;
    int64_t failed; /* the first matrix that did; of the codes, its one */
    int64_t code;
    int lock;
    char *room; /* task->room bytes for each worker */
} running;

static void note_failure(running *r, int64_t i, int64_t code)
{
    while (__atomic_exchange_n(&r->lock, 1, __ATOMIC_ACQUIRE))
        ;
    if (r->failed < 0 || i < r->failed) {
        r->failed = i;
        r->code = code;
    }
    __atomic_store_n(&r->lock, 0, __ATOMIC_RELEASE);
}

static void run_range(int64_t first, int64_t last, int worker, void *user)
{
    running *r = user;
    char *const room = r->room ? r->room + (size_t)worker * r->task->room : NULL;
    for (int64_t i = first; i < last; i += SMALL_MANY) {
        const int64_t count = last - i < SMALL_MANY ? last - i : SMALL_MANY;
        bool left[SMALL_MANY];
        if (r->task->many) r->task->many(r->call, i, count, left, room);
        for (int64_t l = 0; l < count; l++) {
            const int64_t code =
                !r->task->many || left[l] ? r->task->one(r->call, i + l) : MATRIX_DONE;
            if (code != MATRIX_DONE) note_failure(r, i + l, code);
        }
    }
}

/* "a", or "a[1, 0]" of a batch. */
static text name_of(const ed_call *call, const ed_tensor *y, int inner, int64_t i)
{
    text t;
    const char *name = call->op->operands[0].name;
    int64_t at[ED_MAX_RANK];
    const int rank = y->rank - inner;
    for (int d = rank - 1; d >= 0; i /= y->shape[d], d--) at[d] = i % y->shape[d];
    snprintf(t.s, sizeof t.s, "%s%s", name, rank > 0 ? text_of_places(at, rank).s : "");
    return t;
}

static bool fail(ed_call *call, const running *r, const ed_tensor *y, int inner)
{
    const text name = name_of(call, y, inner, r->failed);
    switch (r->code) {
    case MATRIX_NO_MEMORY: /* said on the thread that was without */
        if (ed_failed()) return false;
        return ed_call_fail(call, ED_OUT_OF_MEMORY, "%s: out of memory", name.s);
    case MATRIX_NOT_FINITE:
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s has a NaN or an infinity", name.s);
    case MATRIX_OVERFLOWS:
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s is too near a singular matrix: the result overflows", name.s);
    case MATRIX_TOO_LARGE:
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s has elements so large that its norm overflows", name.s);
    case MATRIX_INFINITE:
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s: the result overflows", name.s);
    case MATRIX_DIVERGES:
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s: the iteration did not converge",
                            name.s);
    default:
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s %s (pivot %lld)", name.s,
                            r->task->trouble, text_nth(r->code));
    }
}

bool matrices_run(ed_call *call, int output, int inner, matrix_task task)
{
    const ed_tensor *y = call->outputs[output];
    const int64_t count = size_of_product(y->shape, y->rank - inner);
    int64_t grain = task.alone                       ? count
                    : task.work >= OPS_PARALLEL_WORK ? 1
                                                     : OPS_PARALLEL_WORK / (task.work + 1) + 1;
    if (task.many) grain = (grain + SMALL_MANY - 1) / SMALL_MANY * SMALL_MANY;
    running r = {.call = call, .task = &task, .failed = -1};
    if (y->size == 0) return true;
    const int workers = threads_count();
    if (task.many && task.room && !(r.room = memory_alloc((size_t)workers * task.room)))
        return false;
    threads_run_among(workers, count, grain, run_range, &r);
    memory_free(r.room);
    return r.failed < 0 || fail(call, &r, y, inner);
}

/* ---- Factors --------------------------------------------------------------------------------- */

void matrix_exchange(char *x, char *y, size_t n)
{
    char other[512];
    for (size_t done = 0, some; x != y && done < n; done += some) {
        some = n - done < sizeof other ? n - done : sizeof other;
        memcpy(other, x + done, some);
        memcpy(x + done, y + done, some);
        memcpy(y + done, other, some);
    }
}

void *matrix_lu(ed_dtype dtype, int64_t n, const void *a, int64_t **swaps, int64_t *code)
{
    const size_t bytes = (size_t)(n * n) * dtype_size(dtype), padded = (bytes + 7) / 8 * 8;
    char *lu = memory_alloc(padded + (size_t)n * sizeof **swaps);
    *code = MATRIX_NO_MEMORY;
    if (!lu) return NULL;
    *swaps = (int64_t *)(lu + padded);
    *code = !matrix_copy_finite(dtype, a, n * n, lu) ? MATRIX_NOT_FINITE
            : dtype == ED_FLOAT32                    ? factor_lu_f32(n, n, (float *)lu, n, *swaps)
                                                     : factor_lu_f64(n, n, (double *)lu, n, *swaps);
    if (*code != MATRIX_NO_MEMORY && *code != MATRIX_NOT_FINITE) return lu;
    memory_free(lu);
    return NULL;
}

bool matrix_check_lapack(const ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    return (matrix_rows(a) <= LAPACK_LARGEST && matrix_columns(a) <= LAPACK_LARGEST) ||
           a->size == 0 ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "a is %s; up to %d rows and columns are possible", text_of_tensor(a).s,
                        LAPACK_LARGEST);
}

int64_t matrix_lapack_code(int info)
{
    if (info == LAPACK_NO_MEMORY) return MATRIX_NO_MEMORY;
    return info ? MATRIX_DIVERGES : MATRIX_DONE;
}

/* ---- References ------------------------------------------------------------------------------ */

double *matrix_copied(const ed_tensor *x, const ed_tensor *y, int64_t i)
{
    const int64_t n = matrix_rows(x) * matrix_columns(x);
    ed_tensor *copy = scope_give(tensor_new(ED_FLOAT64, 1, &n));
    if (!copy) return NULL;
    return memcpy(copy->data, matrix_of(x, y, i), (size_t)n * sizeof(double));
}

double matrix_eliminate(int64_t n, double *a, int64_t columns, double *b, double *log_abs)
{
    double det = 1, log_sum = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        if (best != k) det = -det;
        matrix_exchange((char *)(a + k * n), (char *)(a + best * n), (size_t)n * sizeof *a);
        matrix_exchange((char *)(b + k * columns), (char *)(b + best * columns),
                        (size_t)columns * sizeof *b);
        const double pivot = a[k * n + k];
        det *= pivot;
        log_sum += log(fabs(pivot));
        if (log_abs) *log_abs = log_sum;
        if (pivot == 0) return 0;
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / pivot;
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            for (int64_t j = 0; j < columns; j++) b[i * columns + j] -= factor * b[k * columns + j];
        }
    }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t j = 0; j < columns; j++) {
            double sum = b[i * columns + j];
            for (int64_t k = i + 1; k < n; k++) sum -= a[i * n + k] * b[k * columns + j];
            b[i * columns + j] = sum / a[i * n + i];
        }
    return det;
}

/* One of Jacobi's rotations, which makes a(p, q) of symmetric a [n, n] 0. */
static void rotate(int64_t n, double *a, int64_t p, int64_t q)
{
    if (a[p * n + q] == 0) return;
    const double t0 = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    const double t = copysign(1, t0) / (fabs(t0) + hypot(t0, 1)), c = 1 / sqrt(t * t + 1);
    const double s = t * c;
    for (int64_t k = 0; k < n; k++) {
        const double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
}

void matrix_eigenvalues(int64_t n, double *a, double *w)
{
    double largest = 0;
    for (int64_t e = 0; e < n * n; e++) largest = fmax(largest, fabs(a[e]));
    for (int64_t e = 0; largest > 0 && e < n * n; e++) a[e] /= largest;
    for (int round = 0; round < 15; round++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) rotate(n, a, p, q);
    for (int64_t i = 0; i < n; i++) {
        const double value = a[i * n + i] * largest;
        int64_t at = i;
        for (; at > 0 && w[at - 1] > value; at--) w[at] = w[at - 1];
        w[at] = value;
    }
}

/* Columns p and q of A [rows, n] turned by an angle. */
static void turn(int64_t rows, int64_t n, double *a, int64_t p, int64_t q, double c, double s)
{
    for (int64_t i = 0; i < rows; i++) {
        const double x = a[i * n + p], y = a[i * n + q];
        a[i * n + p] = c * x - s * y;
        a[i * n + q] = s * x + c * y;
    }
}

/* Turns columns p and q of A, and of V, so that A's are orthogonal. */
static void make_orthogonal(int64_t m, int64_t n, double *a, double *v, int64_t p, int64_t q)
{
    double x = 0, y = 0, xy = 0;
    for (int64_t i = 0; i < m; i++) {
        x += a[i * n + p] * a[i * n + p];
        y += a[i * n + q] * a[i * n + q];
        xy += a[i * n + p] * a[i * n + q];
    }
    if (xy == 0) return;
    const double t0 = (y - x) / (2 * xy);
    const double t = copysign(1, t0) / (fabs(t0) + hypot(t0, 1)), c = 1 / sqrt(t * t + 1);
    turn(m, n, a, p, q, c, t * c);
    if (v) turn(n, n, v, p, q, c, t * c);
}

double matrix_singular(int64_t m, int64_t n, double *a, double *v, double *s)
{
    double largest = 0;
    for (int64_t e = 0; e < m * n; e++) largest = fmax(largest, fabs(a[e]));
    for (int64_t e = 0; largest > 0 && e < m * n; e++) a[e] /= largest;
    for (int64_t e = 0; v && e < n * n; e++) v[e] = e / n == e % n;
    for (int round = 0; round < 15; round++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) make_orthogonal(m, n, a, v, p, q);
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++) sum += a[i * n + j] * a[i * n + j];
        const double value = sqrt(sum) * largest;
        int64_t at = j;
        for (; at > 0 && s[at - 1] < value; at--) s[at] = s[at - 1];
        s[at] = value;
    }
    return largest;
}

/* ---- Made of public ops ---------------------------------------------------------------------- */

ed_tensor *matrix_transpose(ed_tensor *x)
{
    int64_t perm[ED_MAX_RANK];
    const int rank = x ? ed_rank(x) : 0;
    if (rank < 2) return NULL;
    for (int i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ed_transpose(x, .perm = {perm, rank});
}

/* Where column - row lies in least..most, [rows, columns]. */
static ed_tensor *mask(int64_t rows, int64_t columns, int64_t least, int64_t most)
{
    ed_tensor *row = ed_expand_dims(ed_range(0, (double)rows, .dtype = ED_INT64), 1);
    ed_tensor *column = ed_range(0, (double)columns, .dtype = ED_INT64);
    ed_tensor *offset = ed_sub(column, row);
    return ed_logical_and(ed_greater_equal(offset, ed_scalar(least, .dtype = ED_INT64)),
                          ed_less_equal(offset, ed_scalar(most, .dtype = ED_INT64)));
}

ed_tensor *matrix_band(ed_tensor *x, int64_t least, int64_t most)
{
    return x ? ed_where(mask(ed_dim(x, -2), ed_dim(x, -1), least, most), x, 0) : NULL;
}

ed_tensor *matrix_diagonal(ed_tensor *x)
{
    if (!x) return NULL;
    const int64_t m = ed_dim(x, -2), n = ed_dim(x, -1), least = m < n ? m : n;
    return ed_reduce_sum(matrix_band(matrix_corner(x, least, least), 0, 0), .axis = ED_AXES(-1));
}

ed_tensor *matrix_of_diagonal(ed_tensor *diagonal)
{
    if (!diagonal) return NULL;
    const int64_t n = ed_dim(diagonal, -1);
    return ed_where(mask(n, n, 0, 0), ed_expand_dims(diagonal, -1), 0);
}

ed_tensor *matrix_eye(int64_t n, const ed_tensor *x)
{
    return x ? ed_eye(n, .dtype = ed_dtype_of(x)) : NULL;
}

ed_tensor *matrix_corner(ed_tensor *x, int64_t rows, int64_t columns)
{
    int64_t end[ED_MAX_RANK];
    if (!x) return NULL;
    const int rank = ed_rank(x);
    if (ed_dim(x, -2) == rows && ed_dim(x, -1) == columns) return x;
    for (int d = 0; d < rank; d++) end[d] = ed_dim(x, d);
    end[rank - 2] = rows;
    end[rank - 1] = columns;
    return ed_slice(x, .end = {end, rank});
}

bool matrix_function_gradient(const ed_gradient_call *g, ed_tensor *(*f)(ed_tensor *a))
{
    ed_tensor *turned = matrix_transpose(g->inputs[0]), *dy = g->dy[0];
    if (!turned) return false;
    const int64_t n = ed_dim(turned, -1);
    ed_tensor *above = ed_concat(ed_list_of(turned, dy), .axis = -1);
    ed_tensor *below = ed_concat(ed_list_of(ed_zeros_like(turned), turned), .axis = -1);
    ed_tensor *all = f(ed_concat(ed_list_of(above, below), .axis = -2));
    ed_list *blocks = all ? ed_split(matrix_corner(all, n, 2 * n), 2, .axis = -1) : NULL;
    g->dx[0] = blocks ? ed_list_get(blocks, 1) : NULL;
    return g->dx[0];
}
