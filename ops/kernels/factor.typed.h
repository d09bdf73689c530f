/* The factorizations of factor.h for one dtype. */

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
    NUMBER *product = memory_alloc((size_t)(m * n) * sizeof *product);
    if (!product) return false;
    const bool ok =
        TYPED(gemm)(m, n, k, a.at, a.row, a.column, b.at, b.row, b.column, product, n, NULL);
    for (int64_t i = 0; ok && i < m; i++) {
        const NUMBER *restrict from = product + i * n;
        NUMBER *restrict to = c.at + i * c.row;
        for (int64_t j = 0; j < n; j++) to[j] -= from[j];
    }
    memory_free(product);
    return ok;
}

/* ---- Triangular systems ---------------------------------------------------------------------- */

/* By substitution: rows of B that lie together, a strip of them after the other ... */
static void TYPED(substitute_strip)(factor_triangle t, const NUMBER *a, int64_t columns, NUMBER *b,
                                    int64_t b_row)
{
    for (int64_t s = 0; s < t.n; s++) {
        const int64_t i = t.lower ? s : t.n - 1 - s;
        NUMBER *restrict to = b + i * b_row;
        for (int64_t p = 0; p < s; p++) {
            const int64_t k = t.lower ? p : t.n - 1 - p;
            const NUMBER factor = a[i * t.row + k * t.column];
            const NUMBER *restrict from = b + k * b_row;
            for (int64_t j = 0; j < columns; j++) to[j] -= factor * from[j];
        }
        if (t.unit) continue;
        const NUMBER pivot = a[i * (t.row + t.column)];
        for (int64_t j = 0; j < columns; j++) to[j] /= pivot;
    }
}

static void TYPED(substitute_rows)(factor_triangle t, const NUMBER *a, int64_t columns, NUMBER *b,
                                   int64_t b_row)
{
    for (int64_t j = 0; j < columns; j += STRIP)
        TYPED(substitute_strip)(t, a, least(STRIP, columns - j), b + j, b_row);
}

/* ... and columns that do. */
static void TYPED(substitute_columns)(factor_triangle t, const NUMBER *a, int64_t columns,
                                      NUMBER *b, int64_t b_column)
{
    for (int64_t j = 0; j < columns; j++) {
        NUMBER *x = b + j * b_column;
        for (int64_t s = 0; s < t.n; s++) {
            const int64_t i = t.lower ? s : t.n - 1 - s;
            NUMBER sum = x[i];
            for (int64_t p = 0; p < s; p++) {
                const int64_t k = t.lower ? p : t.n - 1 - p;
                sum -= a[i * t.row + k * t.column] * x[k];
            }
            x[i] = t.unit ? sum : sum / a[i * (t.row + t.column)];
        }
    }
}

bool TYPED(factor_solve)(factor_triangle t, const NUMBER *a, int64_t columns, NUMBER *b,
                         int64_t b_row, int64_t b_column)
{
    if (t.n <= FEW || columns == 0) {
        if (b_column == 1)
            TYPED(substitute_rows)(t, a, columns, b, b_row);
        else
            TYPED(substitute_columns)(t, a, columns, b, b_column);
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

/* The lower triangle of C [n, n] -= A A^T, A [n, k]. */
static bool TYPED(subtract_square)(int64_t n, int64_t k, TYPED(part) a, TYPED(part) c)
{
    if (n <= 4 * FEW) return TYPED(subtract)(n, n, k, a, TYPED(turned)(a), c);
    const int64_t n1 = n / 2, n2 = n - n1;
    const TYPED(part) a2 = TYPED(from)(a, n1, 0);
    return TYPED(subtract_square)(n1, k, a, c) &&
           TYPED(subtract)(n2, n1, k, a2, TYPED(turned)(a), TYPED(from)(c, n1, 0)) &&
           TYPED(subtract_square)(n2, k, a2, TYPED(from)(c, n1, n1));
}

int64_t TYPED(factor_cholesky)(int64_t n, NUMBER *a, int64_t lda)
{
    if (n <= FEW) return TYPED(cholesky_few)(n, a, lda);
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

static void TYPED(exchange)(int64_t columns, NUMBER *a, int64_t lda, int64_t first, int64_t last,
                            const int64_t *swaps)
{
    for (int64_t i = first; i < last; i++) {
        NUMBER *x = a + i * lda, *y = a + swaps[i] * lda;
        for (int64_t j = 0; x != y && j < columns; j++) {
            const NUMBER other = x[j];
            x[j] = y[j];
            y[j] = other;
        }
    }
}

static int64_t TYPED(lu_few)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t *swaps)
{
    int64_t bad = FACTOR_DONE;
    for (int64_t k = 0; k < least(m, n); k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++)
            if (fabs((double)a[i * lda + k]) > fabs((double)a[best * lda + k])) best = i;
        swaps[k] = best;
        TYPED(exchange)(n, a, lda, k, k + 1, swaps);
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

/* Narrow columns of a wide matrix are copied to lie together: the rows of a power of two of columns
 * all fall into the same few lines of the cache. */
static int64_t TYPED(lu_narrow)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t *swaps)
{
    NUMBER *room = memory_alloc((size_t)(m * n) * sizeof *room);
    if (!room) return FACTOR_NO_MEMORY;
    for (int64_t i = 0; i < m; i++) memcpy(room + i * n, a + i * lda, (size_t)n * sizeof *a);
    const int64_t bad = TYPED(factor_lu)(m, n, room, n, swaps);
    for (int64_t i = 0; i < m; i++) memcpy(a + i * lda, room + i * n, (size_t)n * sizeof *a);
    memory_free(room);
    return bad;
}

int64_t TYPED(factor_lu)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t *swaps)
{
    const int64_t k = least(m, n), n1 = k / 2, n2 = n - n1;
    if (k <= FEW / 2) return TYPED(lu_few)(m, n, a, lda, swaps);
    if (n <= NARROW && lda > WIDE) return TYPED(lu_narrow)(m, n, a, lda, swaps);
    NUMBER *right = a + n1, *below = a + n1 * lda;
    const int64_t bad = TYPED(factor_lu)(m, n1, a, lda, swaps);
    if (bad == FACTOR_NO_MEMORY) return bad;
    TYPED(exchange)(n2, right, lda, 0, n1, swaps);
    if (!TYPED(factor_solve)((factor_triangle){true, true, n1, lda, 1}, a, n2, right, lda, 1) ||
        !TYPED(subtract)(m - n1, n2, n1, (TYPED(part)){below, lda, 1}, (TYPED(part)){right, lda, 1},
                         (TYPED(part)){below + n1, lda, 1}))
        return FACTOR_NO_MEMORY;
    const int64_t late = TYPED(factor_lu)(m - n1, n2, below + n1, lda, swaps + n1);
    if (late == FACTOR_NO_MEMORY) return late;
    TYPED(exchange)(n1, below, lda, 0, k - n1, swaps + n1);
    for (int64_t i = n1; i < k; i++) swaps[i] += n1;
    return bad >= 0 ? bad : late >= 0 ? late + n1 : FACTOR_DONE;
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* The reflection that turns column c below row c into one number, which it becomes; below it comes
 * the reflection's vector without its first element, 1. Returns tau: H = I - tau v v^T. */
static NUMBER TYPED(reflection)(int64_t m, NUMBER *a, int64_t lda, int64_t c)
{
    double largest = 0, sum = 0;
    for (int64_t i = c + 1; i < m; i++) { /* fmax is more than GCC 12 can vectorize for aarch64 */
        const double x = fabs((double)a[i * lda + c]);
        largest = x > largest ? x : largest;
    }
    if (!(largest > 0)) return 0;
    const double alpha = (double)a[c * lda + c];
    const double scale = fmax(largest, fabs(alpha));
    for (int64_t i = c + 1; i < m; i++) {
        const double x = (double)a[i * lda + c] / scale;
        sum += x * x;
    }
    const double first = alpha / scale, beta = -copysign(sqrt(sum + first * first), first);
    for (int64_t i = c + 1; i < m; i++)
        a[i * lda + c] = (NUMBER)((double)a[i * lda + c] / scale / (first - beta));
    a[c * lda + c] = (NUMBER)(beta * scale);
    return (NUMBER)((beta - first) / beta);
}

/* Column c's reflection on the columns c + 1 .. n - 1. */
static void TYPED(reflect)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t c, NUMBER tau,
                           NUMBER *restrict w)
{
    NUMBER *restrict top = a + c * lda;
    for (int64_t j = c + 1; j < n; j++) w[j] = top[j];
    for (int64_t i = c + 1; i < m; i++) {
        const NUMBER *restrict row = a + i * lda;
        for (int64_t j = c + 1; j < n; j++) w[j] += row[c] * row[j];
    }
    for (int64_t j = c + 1; j < n; j++) top[j] -= tau * w[j];
    for (int64_t i = c + 1; i < m; i++) {
        NUMBER *restrict row = a + i * lda;
        const NUMBER factor = tau * row[c];
        for (int64_t j = c + 1; j < n; j++) row[j] -= factor * w[j];
    }
}

/* Room for reflections that are applied together: H1 H2 ... = I - V T V^T. */
typedef struct TYPED(reflections) {
    NUMBER *tau;                /* of all columns */
    NUMBER *v, *t, *vv, *w, *x; /* V [m, PANEL]; T, V^T V [PANEL, PANEL]; [PANEL, columns] */
} TYPED(reflections);

void TYPED(factor_join)(int64_t n, const NUMBER *tau, const NUMBER *vv, NUMBER *t)
{
    memset(t, 0, (size_t)(n * n) * sizeof *t);
    for (int64_t j = 0; j < n; j++) {
        t[j * n + j] = tau[j];
        for (int64_t i = 0; i < j; i++) {
            NUMBER sum = 0;
            for (int64_t k = i; k < j; k++) sum += t[i * n + k] * vv[k * n + j];
            t[i * n + j] = -tau[j] * sum;
        }
    }
}

/* V and T of b reflections whose vectors lie below the diagonal of A [m, b]. */
static bool TYPED(join)(const TYPED(reflections) *r, int64_t m, int64_t b, const NUMBER *a,
                        int64_t lda, const NUMBER *tau)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < b; j++) r->v[i * b + j] = i > j ? a[i * lda + j] : i == j;
    if (!TYPED(gemm)(b, b, m, r->v, 1, b, r->v, b, 1, r->vv, b, NULL)) return false;
    TYPED(factor_join)(b, tau, r->vv, r->t);
    return true;
}

/* C [m, n] = (I - V T V^T) C, or with T^T. */
static bool TYPED(apply)(const TYPED(reflections) *r, bool transposed, int64_t m, int64_t b,
                         NUMBER *c, int64_t ldc, int64_t n)
{
    if (n == 0) return true;
    const int64_t row = transposed ? 1 : b, column = transposed ? b : 1;
    return TYPED(gemm)(b, n, m, r->v, 1, b, c, ldc, 1, r->w, n, NULL) &&
           TYPED(gemm)(b, n, b, r->t, row, column, r->w, n, 1, r->x, n, NULL) &&
           TYPED(subtract)(m, n, b, (TYPED(part)){r->v, b, 1}, (TYPED(part)){r->x, n, 1},
                           (TYPED(part)){c, ldc, 1});
}

static bool TYPED(reduce)(const TYPED(reflections) *r, int64_t m, int64_t n, NUMBER *a, int64_t lda)
{
    const int64_t k = least(m, n);
    for (int64_t j = 0; j < k; j += PANEL) {
        const int64_t b = least(PANEL, k - j), rest = n - j - b;
        NUMBER *corner = a + j * lda + j;
        for (int64_t c = 0; c < b; c++) {
            r->tau[j + c] = TYPED(reflection)(m - j, corner, lda, c);
            TYPED(reflect)(m - j, b, corner, lda, c, r->tau[j + c], r->w);
        }
        if (rest && (!TYPED(join)(r, m - j, b, corner, lda, r->tau + j) ||
                     !TYPED(apply)(r, true, m - j, b, corner + b, lda, rest)))
            return false;
    }
    return true;
}

static bool TYPED(form)(const TYPED(reflections) *r, int64_t m, int64_t k, const NUMBER *a,
                        int64_t lda, int64_t columns, NUMBER *q)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < columns; j++) q[i * columns + j] = i == j;
    for (int64_t j = k > 0 ? (k - 1) / PANEL * PANEL : -1; j >= 0; j -= PANEL) {
        const int64_t b = least(PANEL, k - j);
        if (columns <= j) continue;
        if (!TYPED(join)(r, m - j, b, a + j * lda + j, lda, r->tau + j) ||
            !TYPED(apply)(r, false, m - j, b, q + j * columns + j, columns, columns - j))
            return false;
    }
    return true;
}

bool TYPED(factor_qr)(int64_t m, int64_t n, NUMBER *a, int64_t lda, int64_t q_columns, NUMBER *q)
{
    const int64_t k = least(m, n), widest = n > q_columns ? n : q_columns;
    const int64_t each = (widest > PANEL ? widest : PANEL) * PANEL;
    NUMBER *room =
        memory_alloc((size_t)(k + m * PANEL + 2 * PANEL * PANEL + 2 * each) * sizeof *room);
    if (!room) return false;
    TYPED(reflections) r = {.tau = room, .v = room + k};
    r.t = r.v + m * PANEL;
    r.vv = r.t + PANEL * PANEL;
    r.w = r.vv + PANEL * PANEL;
    r.x = r.w + each;
    const bool ok = TYPED(reduce)(&r, m, n, a, lda) && TYPED(form)(&r, m, k, a, lda, q_columns, q);
    for (int64_t i = 1; i < m; i++)
        for (int64_t j = 0; j < least(i, n); j++) a[i * lda + j] = 0;
    memory_free(room);
    return ok;
}

#undef TYPE
