/* The factorizations of factor.h for one dtype. */

#define WIDE (sizeof(NUMBER) == sizeof(double))

/* ---- Products -------------------------------------------------------------------------------- */

/* A matrix within another: its elements, and the strides of rows and columns. */
typedef struct TYPED(part) {
    NUMBER *at;
    int64_t row, column;
} TYPED(part);

static TYPED(part) TYPED(from)(TYPED(part) a, int64_t i, int64_t j)
{
    a.at += i * a.row + j * a.column;
    return a;
}

static TYPED(part) TYPED(turned)(TYPED(part) a)
{
    return (TYPED(part)){a.at, a.column, a.row};
}

static void TYPED(subtract_small)(int64_t m, int64_t n, int64_t k, TYPED(part) a, TYPED(part) b,
                                  TYPED(part) c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            const NUMBER factor = a.at[i * a.row + p * a.column];
            const NUMBER *restrict from = b.at + p * b.row;
            NUMBER *restrict to = c.at + i * c.row;
            if (b.column == 1)
                for (int64_t j = 0; j < n; j++) to[j] -= factor * from[j];
            else
                for (int64_t j = 0; j < n; j++) to[j] -= factor * from[j * b.column];
        }
}

/* The same by way of a product, for which thin products have the better loops. */
static bool TYPED(subtract_thin)(int64_t m, int64_t n, int64_t k, TYPED(part) a, TYPED(part) b,
                                 TYPED(part) c)
{
    NUMBER *product = memory_alloc((size_t)(m * n) * sizeof *product);
    if (!product) return false;
    const bool ok =
        TYPED(gemm)(m, n, k, a.at, a.row, a.column, b.at, b.row, b.column, product, n, NULL);
    for (int64_t i = 0; ok && i < m; i++)
        for (int64_t j = 0; j < n; j++) c.at[i * c.row + j] -= product[i * n + j];
    memory_free(product);
    return ok;
}

/* C [m, n] -= A [m, k] B [k, n], of which C has one stride that is 1. */
static bool TYPED(subtract)(int64_t m, int64_t n, int64_t k, TYPED(part) a, TYPED(part) b,
                            TYPED(part) c)
{
    if (!m || !n || !k) return true;
    if (c.column != 1)
        return TYPED(subtract)(n, m, k, TYPED(turned)(b), TYPED(turned)(a), TYPED(turned)(c));
    if (m * n * k <= SMALL) {
        TYPED(subtract_small)(m, n, k, a, b, c);
        return true;
    }
    if (n <= THIN) return TYPED(subtract_thin)(m, n, k, a, b, c);
    return TYPED(gemm)(m, n, k, a.at, a.row, a.column, b.at, b.row, b.column, c.at, c.row,
                       &(gemm_epilogue){.subtract = true});
}

/* ---- Triangular systems ---------------------------------------------------------------------- */

/* X = T^-1 B for up to FEW rows. */
typedef struct TYPED(rows) {
    factor_triangle t;
    const NUMBER *a;
    int64_t columns;
    TYPED(part) b;
} TYPED(rows);

/* Strips of B's columns, each in a copy whose rows lie together. */
static void TYPED(solve_strips)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(rows) *r = user;
    const factor_triangle *t = &r->t;
    const int64_t size = sizeof(NUMBER), row = r->b.row * size, column = r->b.column * size;
    NUMBER room[LINES_FEW * STRIP] __attribute__((aligned(64)));
    for (int64_t s = first; s < last; s++) {
        const int64_t width = least(STRIP, r->columns - s * STRIP), length = units_of(width);
        NUMBER *b = r->b.at + s * STRIP * r->b.column;
        if (width < length) memset(room, 0, (size_t)(t->n * length * size));
        ISA_CALL(gemm_pack_lines)
        (WIDE, width, t->n, (char *)b, column, row, (char *)room, length * size);
        ISA_CALL(lines_substitute)
        (WIDE, t->lower, t->unit, t->n, r->a, t->row, t->column, length, room, length);
        if (r->b.column != 1) ISA_CALL(gemm_turn)
        (WIDE, t->n, width, (char *)room, length * size, (char *)b, column);
        else for (int64_t i = 0; i < t->n; i++)
            memcpy(b + i * r->b.row, room + i * length, (size_t)(width * size));
    }
}

bool TYPED(factor_solve)(factor_triangle t, const NUMBER *a, int64_t columns, NUMBER *b,
                         int64_t b_row, int64_t b_column)
{
    if (t.n == 0 || columns == 0) return true;
    if (t.n <= FEW) {
        TYPED(rows) r = {t, a, columns, {b, b_row, b_column}};
        threads_run((columns - 1) / STRIP + 1, STRIPS, TYPED(solve_strips), &r);
        return true;
    }
    const int64_t n1 = t.n / 2, n2 = t.n - n1;
    const TYPED(part) all = {(NUMBER *)a, t.row, t.column}, x = {b, b_row, b_column};
    const TYPED(part) x2 = TYPED(from)(x, n1, 0);
    factor_triangle first = t, second = t;
    const NUMBER *last = a + n1 * (t.row + t.column);
    first.n = n1, second.n = n2;
    if (t.lower)
        return TYPED(factor_solve)(first, a, columns, b, b_row, b_column) &&
               TYPED(subtract)(n2, columns, n1, TYPED(from)(all, n1, 0), x, x2) &&
               TYPED(factor_solve)(second, last, columns, x2.at, b_row, b_column);
    return TYPED(factor_solve)(second, last, columns, x2.at, b_row, b_column) &&
           TYPED(subtract)(n1, columns, n2, TYPED(from)(all, 0, n1), x2, x) &&
           TYPED(factor_solve)(first, a, columns, b, b_row, b_column);
}

/* B [n, n] = T^-1 for lower T, zeros above its diagonal. */
static bool TYPED(invert)(factor_triangle t, const NUMBER *a, NUMBER *b, int64_t ldb)
{
    if (t.n <= FEW) {
        for (int64_t i = 0; i < t.n; i++)
            for (int64_t j = 0; j < t.n; j++) b[i * ldb + j] = i == j;
        return TYPED(factor_solve)(t, a, t.n, b, ldb, 1);
    }
    const int64_t n1 = t.n / 2, n2 = t.n - n1;
    const TYPED(part) below = {(NUMBER *)a + n1 * t.row, t.row, t.column};
    const NUMBER *last = below.at + n1 * t.column;
    NUMBER *b21 = b + n1 * ldb;
    factor_triangle first = t, second = t;
    first.n = n1, second.n = n2;
    for (int64_t i = 0; i < n1; i++) memset(b + i * ldb + n1, 0, (size_t)n2 * sizeof *b);
    for (int64_t i = 0; i < n2; i++) memset(b21 + i * ldb, 0, (size_t)n1 * sizeof *b);
    return TYPED(invert)(first, a, b, ldb) && TYPED(invert)(second, last, b21 + n1, ldb) &&
           TYPED(subtract)(n2, n1, n1, below, (TYPED(part)){b, ldb, 1},
                           (TYPED(part)){b21, ldb, 1}) &&
           TYPED(factor_solve)(second, last, n1, b21, ldb, 1);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

static int64_t TYPED(cholesky_few)(int64_t n, NUMBER *a, int64_t lda)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            const NUMBER *x = a + i * lda, *y = a + j * lda;
            NUMBER sum = x[j];
            for (int64_t k = 0; k < j; k++) sum -= x[k] * y[k];
            if (i > j)
                a[i * lda + j] = sum / y[j];
            else if (sum > 0)
                a[i * lda + i] = TYPED(number_sqrt)(sum);
            else
                return i;
        }
    return FACTOR_DONE;
}

/* The lower triangle of C [n, n] -= A A^T, A [n, k]; the upper one is lost. */
static bool TYPED(subtract_square)(int64_t n, int64_t k, TYPED(part) a, TYPED(part) c)
{
    if (n * n * k <= SMALL) return TYPED(subtract)(n, n, k, a, TYPED(turned)(a), c);
    return TYPED(gemm)(n, n, k, a.at, a.row, a.column, a.at, a.column, a.row, c.at, c.row,
                       &(gemm_epilogue){.subtract = true, .lower = true});
}

int64_t TYPED(factor_cholesky)(int64_t n, NUMBER *a, int64_t lda)
{
    if (n <= PLAIN) return TYPED(cholesky_few)(n, a, lda);
    const int64_t n1 = n / 2, n2 = n - n1;
    NUMBER *a21 = a + n1 * lda, *a22 = a21 + n1;
    int64_t bad = TYPED(factor_cholesky)(n1, a, lda);
    if (bad != FACTOR_DONE) return bad;
    if (!TYPED(factor_solve)((factor_triangle){true, false, n1, lda, 1}, a, n2, a21, 1, lda) ||
        !TYPED(subtract_square)(n2, n1, (TYPED(part)){a21, lda, 1}, (TYPED(part)){a22, lda, 1}))
        return FACTOR_NO_MEMORY;
    bad = TYPED(factor_cholesky)(n2, a22, lda);
    return bad < 0 ? bad : bad + n1;
}

/* ---- LU -------------------------------------------------------------------------------------- */

static void TYPED(exchange_two)(int64_t n, NUMBER *restrict x, NUMBER *restrict y, int64_t step)
{
    for (int64_t i = 0; i < n * step; i += step) {
        const NUMBER other = x[i];
        x[i] = y[i];
        y[i] = other;
    }
}

/* Rows i and swaps[i] of A [.., columns], for all i below n in turn. */
typedef struct TYPED(rows_exchange) {
    int64_t n;
    TYPED(part) a;
    const int64_t *swaps;
} TYPED(rows_exchange);

static void TYPED(exchange_range)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(rows_exchange) *e = user;
    for (int64_t i = 0; i < e->n; i++) {
        NUMBER *x = e->a.at + i * e->a.row + first * e->a.column;
        NUMBER *y = e->a.at + e->swaps[i] * e->a.row + first * e->a.column;
        if (x == y) continue;
        if (e->a.column == 1)
            TYPED(exchange_two)(last - first, x, y, 1);
        else
            TYPED(exchange_two)(last - first, x, y, e->a.column);
    }
}

static void TYPED(exchange)(int64_t n, int64_t columns, TYPED(part) a, const int64_t *swaps)
{
    TYPED(rows_exchange) e = {n, a, swaps};
    const int64_t grain = n * columns < EXCHANGED ? columns : EXCHANGED_COLUMNS;
    if (columns > 0) threads_run(columns, grain, TYPED(exchange_range), &e);
}

/* A small A [m, n], row by row. */
static int64_t TYPED(lu_small)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t *swaps)
{
    int64_t bad = FACTOR_DONE;
    for (int64_t k = 0; k < least(m, n); k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++)
            if (fabs((double)a[i * lda + k]) > fabs((double)a[best * lda + k])) best = i;
        swaps[k] = best;
        if (best != k) TYPED(exchange_two)(n, a + k * lda, a + best * lda, 1);
        const NUMBER *restrict from = a + k * lda;
        if (from[k] == 0) {
            if (bad < 0) bad = k;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++) {
            NUMBER *restrict to = a + i * lda;
            const NUMBER factor = to[k] /= from[k];
            for (int64_t j = k + 1; j < n; j++) to[j] -= factor * from[j];
        }
    }
    return bad;
}

/* A few columns of A [m, n], which lie `stride` apart: each is given all that the ones before it
 * have to say, then its pivot is looked for. Behind the m rows there are LINES_UNIT to spare. */
static int64_t TYPED(lu_few)(int64_t m, int64_t n, NUMBER *a, int64_t stride, int64_t *swaps)
{
    int64_t bad = FACTOR_DONE;
    NUMBER factors[COLUMNS];
    for (int64_t j = 0; j < n; j++) {
        NUMBER *restrict x = a + j * stride;
        const int64_t before = least(j, m);
        for (int64_t k = 0; k < before; k++) {
            const NUMBER *restrict l = a + k * stride;
            for (int64_t i = k + 1; i < before; i++) x[i] -= x[k] * l[i];
            factors[k] = -x[k];
        }
        if (j >= m) continue;
        ISA_CALL(lines_add)(WIDE, j, units_of(m - j), a + j, stride, factors, 1, x + j);
        swaps[j] = j + ISA_CALL(lines_largest)(WIDE, m - j, x + j);
        if (swaps[j] != j) TYPED(exchange_two)(n, a + j, a + swaps[j], stride);
        const NUMBER pivot = x[j];
        if (pivot == 0 && bad < 0) bad = j;
        for (int64_t i = j + 1; pivot != 0 && i < m; i++) x[i] /= pivot;
    }
    return bad;
}

static int64_t TYPED(lu)(int64_t m, int64_t n, TYPED(part) a, int64_t *swaps);

/* Narrow columns are copied to lie one after the other. */
static int64_t TYPED(lu_narrow)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t *swaps)
{
    const int64_t size = sizeof(NUMBER), stride = units_of(m) + LINES_UNIT;
    NUMBER *room = memory_alloc((size_t)(n * stride * size));
    if (!room) return FACTOR_NO_MEMORY;
    ISA_CALL(gemm_pack_lines)
    (WIDE, m, n, (char *)a, lda * size, size, (char *)room, stride * size);
    for (int64_t j = 0; j < n; j++) memset(room + j * stride + m, 0, (size_t)((stride - m) * size));
    const int64_t bad = TYPED(lu)(m, n, (TYPED(part)){room, 1, stride}, swaps);
    ISA_CALL(gemm_turn)(WIDE, n, m, (char *)room, stride * size, (char *)a, lda * size);
    memory_free(room);
    return bad;
}

static int64_t TYPED(lu)(int64_t m, int64_t n, TYPED(part) a, int64_t *swaps)
{
    const int64_t k = least(m, n), n1 = k / 2, n2 = n - n1;
    if (m <= PLAIN && n <= PLAIN && a.column == 1) return TYPED(lu_small)(m, n, a.at, a.row, swaps);
    if (a.row != 1 && (n <= NARROW || k < 2)) return TYPED(lu_narrow)(m, n, a.at, a.row, swaps);
    if (a.row == 1 && (n <= COLUMNS || k < 2)) return TYPED(lu_few)(m, n, a.at, a.column, swaps);
    const TYPED(part) right = TYPED(from)(a, 0, n1), below = TYPED(from)(a, n1, 0);
    const TYPED(part) rest = TYPED(from)(a, n1, n1);
    const int64_t bad = TYPED(lu)(m, n1, a, swaps);
    if (bad == FACTOR_NO_MEMORY) return bad;
    TYPED(exchange)(n1, n2, right, swaps);
    if (!TYPED(factor_solve)((factor_triangle){true, true, n1, a.row, a.column}, a.at, n2, right.at,
                             right.row, right.column) ||
        !TYPED(subtract)(m - n1, n2, n1, below, right, rest))
        return FACTOR_NO_MEMORY;
    const int64_t late = TYPED(lu)(m - n1, n2, rest, swaps + n1);
    if (late == FACTOR_NO_MEMORY) return late;
    TYPED(exchange)(k - n1, n1, below, swaps + n1);
    for (int64_t i = n1; i < k; i++) swaps[i] += n1;
    return bad >= 0 ? bad : late >= 0 ? late + n1 : FACTOR_DONE;
}

int64_t TYPED(factor_lu)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t *swaps)
{
    return m && n ? TYPED(lu)(m, n, (TYPED(part)){a, lda, 1}, swaps) : FACTOR_DONE;
}

/* Columns swaps[i] and i of rows, from the last i on. */
typedef struct TYPED(columns) {
    int64_t n;
    const int64_t *swaps;
    NUMBER *x;
} TYPED(columns);

static void TYPED(exchange_columns)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(columns) *c = user;
    for (int64_t i = first; i < last; i++) {
        NUMBER *x = c->x + i * c->n;
        for (int64_t j = c->n - 1; j >= 0; j--) {
            const NUMBER other = x[j];
            x[j] = x[c->swaps[j]];
            x[c->swaps[j]] = other;
        }
    }
}

/* The inverse of the lower triangular factor, L or U^T, comes first: half of it is zeros. */
bool TYPED(factor_lu_inverse)(bool adjoint, int64_t n, const NUMBER *lu, const int64_t *swaps,
                              NUMBER *x)
{
    const int64_t row = adjoint ? 1 : n, column = adjoint ? n : 1;
    if (!TYPED(invert)((factor_triangle){true, !adjoint, n, row, column}, lu, x, n) ||
        !TYPED(factor_solve)((factor_triangle){false, adjoint, n, row, column}, lu, n, x, n, 1))
        return false;
    TYPED(columns) c = {n, swaps, x};
    if (!adjoint) threads_run(n, EXCHANGED / n + 1, TYPED(exchange_columns), &c);
    for (int64_t i = n - 1; adjoint && i >= 0; i--)
        if (swaps[i] != i) TYPED(exchange_two)(n, x + i * n, x + swaps[i] * n, 1);
    return true;
}

/* ---- QR -------------------------------------------------------------------------------------- */

/*
 * Where squares are lost, the reflection is that of `by` times x. That x may be so small that
 * nothing computed of it has enough digits; but beside a first number that is not, it is nothing.
 */
NUMBER TYPED(factor_reflection)(int64_t n, NUMBER *x, NUMBER *beta)
{
    const double first = (double)x[0], squares = ISA_CALL(lines_squares)(WIDE, n - 1, x + 1);
    const bool is_small = squares < LEAST_SQUARES && fabs(first) < 1;
    *beta = x[0];
    if (is_small || squares > MOST_SQUARES) {
        const double by = is_small ? 0x1p600 : 0x1p-600;
        const double most =
            n > 1 ? fabs((double)x[1 + ISA_CALL(lines_largest)(WIDE, n - 1, x + 1)]) : 0;
        if (most > 0 && most < INFINITY) {
            for (int64_t i = 0; i < n; i++) x[i] = (NUMBER)((double)x[i] * by);
            const NUMBER tau = TYPED(factor_reflection)(n, x, beta);
            *beta = (NUMBER)((double)*beta / by);
            return tau;
        }
    }
    x[0] = 1;
    if (squares == 0) return 0;
    const double reflected = -copysign(hypot(first, sqrt(squares)), first), by = first - reflected;
    for (int64_t i = 1; i < n; i++) x[i] = (NUMBER)((double)x[i] / by);
    *beta = (NUMBER)reflected;
    return (NUMBER)((reflected - first) / reflected);
}

/* Column j of T, of `stride`, from the products vv[i step] of vector j and those before it. */
static void TYPED(join_one)(int64_t j, NUMBER tau, const NUMBER *vv, int64_t step, NUMBER *t,
                            int64_t stride)
{
    t[j * stride + j] = tau;
    for (int64_t i = 0; i < j; i++) {
        NUMBER sum = 0;
        for (int64_t k = i; k < j; k++) sum += t[i * stride + k] * vv[k * step];
        t[i * stride + j] = -tau * sum;
    }
}

void TYPED(factor_join)(int64_t n, const NUMBER *tau, const NUMBER *vv, NUMBER *t)
{
    memset(t, 0, (size_t)(n * n) * sizeof *t);
    for (int64_t j = 0; j < n; j++) TYPED(join_one)(j, tau[j], vv + j, n, t, n);
}

/* Reflections as lines: line i has the vector of H_i, its 1 at element i, zeros before that and
 * behind row m, LINES_UNIT of them at least. Those of a panel are applied together. */
typedef struct TYPED(reflections) {
    int64_t m, stride;
    NUMBER *v, *t; /* the lines; T [PANEL, PANEL] of each panel */
    NUMBER *w, *x; /* [PANEL, columns] */
} TYPED(reflections);

/* b columns of A from the diagonal's element `a` on, whose rows are m: each is given the
 * reflections before it and then makes the next one. Their lines are v. */
static void TYPED(reflect_panel)(int64_t m, int64_t b, NUMBER *a, int64_t lda, NUMBER *v,
                                 int64_t stride, NUMBER *t)
{
    const int64_t size = sizeof(NUMBER), length = units_of(m);
    NUMBER w[PANEL];
    ISA_CALL(gemm_pack_lines)(WIDE, m, b, (char *)a, lda * size, size, (char *)v, stride * size);
    for (int64_t j = 0; j < b; j++) {
        NUMBER *x = v + j * stride, beta;
        memset(x + m, 0, (size_t)(LINES_UNIT * size));
        ISA_CALL(lines_dot)(WIDE, j, length, v, stride, x, w);
        for (int64_t i = j - 1; i >= 0; i--) {
            NUMBER sum = 0;
            for (int64_t k = 0; k <= i; k++) sum += t[k * PANEL + i] * w[k];
            w[i] = -sum;
        }
        ISA_CALL(lines_add)(WIDE, j, length, v, stride, w, 1, x);
        const NUMBER tau = TYPED(factor_reflection)(m - j, x + j, &beta);
        for (int64_t i = 0; i < j; i++) a[i * lda + j] = x[i];
        a[j * lda + j] = beta;
        memset(x, 0, (size_t)(j * size));
        ISA_CALL(lines_dot)(WIDE, j, length, v, stride, x, w);
        TYPED(join_one)(j, tau, w, 1, t, PANEL);
    }
}

/* C [m - first, n] = (I - V T V^T) C, or with T^T, by the b reflections from the first on. */
static bool TYPED(apply)(const TYPED(reflections) *r, bool transposed, int64_t first, int64_t b,
                         NUMBER *c, int64_t ldc, int64_t n)
{
    if (n == 0) return true;
    const int64_t m = r->m - first, row = transposed ? 1 : PANEL, column = transposed ? PANEL : 1;
    const TYPED(part) v = {r->v + first * (r->stride + 1), 1, r->stride};
    const NUMBER *t = r->t + first * PANEL;
    return TYPED(gemm)(b, n, m, v.at, r->stride, 1, c, ldc, 1, r->w, n, NULL) &&
           TYPED(gemm)(b, n, b, t, row, column, r->w, n, 1, r->x, n, NULL) &&
           TYPED(subtract)(m, n, b, v, (TYPED(part)){r->x, n, 1}, (TYPED(part)){c, ldc, 1});
}

static bool TYPED(reduce)(const TYPED(reflections) *r, int64_t n, NUMBER *a, int64_t lda)
{
    const int64_t k = least(r->m, n);
    for (int64_t j = 0; j < k; j += PANEL) {
        const int64_t b = least(PANEL, k - j);
        NUMBER *corner = a + j * lda + j;
        TYPED(reflect_panel)
        (r->m - j, b, corner, lda, r->v + j * (r->stride + 1), r->stride, r->t + j * PANEL);
        if (!TYPED(apply)(r, true, j, b, corner + b, lda, n - j - b)) return false;
    }
    return true;
}

/* Q, of which only rows and columns from a panel's first on are more than the identity's. */
static bool TYPED(form)(const TYPED(reflections) *r, int64_t k, int64_t columns, NUMBER *q)
{
    for (int64_t i = 0; i < r->m; i++)
        for (int64_t j = 0; j < columns; j++) q[i * columns + j] = i == j;
    for (int64_t j = k > 0 ? (k - 1) / PANEL * PANEL : -1; j >= 0; j -= PANEL)
        if (columns > j && !TYPED(apply)(r, false, j, least(PANEL, k - j), q + j * columns + j,
                                         columns, columns - j))
            return false;
    return true;
}

bool TYPED(factor_qr)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t q_columns, NUMBER *q)
{
    const int64_t k = least(m, n), stride = units_of(m) + 2 * LINES_UNIT;
    const int64_t lines = k * stride, joins = (k + PANEL) * PANEL;
    const int64_t each = (n > q_columns ? n : q_columns) * PANEL;
    NUMBER *room = memory_alloc((size_t)(lines + joins + 2 * each) * sizeof *room);
    if (!room) return false;
    const TYPED(reflections) r = {.m = m,
                                  .stride = stride,
                                  .v = room,
                                  .t = room + lines,
                                  .w = room + lines + joins,
                                  .x = room + lines + joins + each};
    memset(r.t, 0, (size_t)joins * sizeof *r.t);
    const bool ok = TYPED(reduce)(&r, n, a, lda) && TYPED(form)(&r, k, q_columns, q);
    for (int64_t i = 1; i < m; i++) memset(a + i * lda, 0, (size_t)least(i, n) * sizeof *a);
    memory_free(room);
    return ok;
}

#undef WIDE
#undef TYPE
