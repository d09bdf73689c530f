/* Small matrices for one dtype; see small.h. */

/* ---- Lanes ----------------------------------------------------------------------------------- */

/* Element l of vector v changes places with element v of vector l: the lower and the upper half of
 * the vectors are interleaved, log2(VECTOR_LANES) times. */
VECTOR_INLINE void TYPED(turn_block)(VECTOR *block)
{
    VECTOR next[VECTOR_LANES];
    for (int step = 1; step < VECTOR_LANES; step *= 2) {
        for (int v = 0; v < VECTOR_LANES / 2; v++) {
            next[2 * v] = TYPED(STRIDED)(FIRST)(block[v], block[v + VECTOR_LANES / 2]);
            next[2 * v + 1] = TYPED(STRIDED)(SECOND)(block[v], block[v + VECTOR_LANES / 2]);
        }
        for (int v = 0; v < VECTOR_LANES; v++) block[v] = next[v];
    }
}

/* Elements [rows, columns] of matrices that follow each other, the first of which also fills the
 * lanes that have none. */
static void TYPED(load_lanes)(int64_t rows, int64_t columns, int64_t count, const NUMBER *from,
                              VECTOR *to)
{
    const int64_t size = rows * columns;
    int64_t e = 0;
    for (; e + VECTOR_LANES <= size; e += VECTOR_LANES) {
        VECTOR block[VECTOR_LANES];
        for (int64_t l = 0; l < VECTOR_LANES; l++)
            block[l] = vload(from + (l < count ? l : 0) * size + e);
        TYPED(turn_block)(block);
        for (int l = 0; l < VECTOR_LANES; l++) to[e + l] = block[l];
    }
    for (; e < size; e++)
        for (int64_t l = 0; l < VECTOR_LANES; l++)
            ((NUMBER *)(to + e))[l] = from[(l < count ? l : 0) * size + e];
}

/* The other way round, of the lanes that are done. */
static void TYPED(store_lanes)(int64_t rows, int64_t columns, int64_t count, const MASK *done,
                               const VECTOR *from, NUMBER *to)
{
    const int64_t size = rows * columns;
    int64_t e = 0;
    for (; e + VECTOR_LANES <= size; e += VECTOR_LANES) {
        VECTOR block[VECTOR_LANES];
        for (int l = 0; l < VECTOR_LANES; l++) block[l] = from[e + l];
        TYPED(turn_block)(block);
        for (int64_t l = 0; l < count; l++)
            if ((*done)[l]) vstore(to + l * size + e, block[l]);
    }
    for (; e < size; e++)
        for (int64_t l = 0; l < count; l++)
            if ((*done)[l]) to[l * size + e] = from[e][l];
}

/* The lanes whose n elements are finite and of no extreme size. */
static MASK TYPED(usual)(int64_t n, const VECTOR *x)
{
    VECTOR largest = {0}, none = {0};
    for (int64_t e = 0; e < n; e++) {
        none += x[e] * 0;
        largest = vselect(vabs(x[e]) > largest, vabs(x[e]), largest);
    }
    return (MASK)(none == 0) & (MASK)(largest <= MOST) &
           ((MASK)(largest >= LEAST) | (MASK)(largest == 0));
}

/* The numbers of lane l's n values in order, the largest first or last. */
static void TYPED(order)(int64_t n, const VECTOR *values, int64_t l, bool falling, int *at)
{
    for (int i = 0; i < n; i++) {
        const NUMBER value = values[i][l];
        int place = i;
        for (; place > 0; place--) {
            const NUMBER other = values[at[place - 1]][l];
            if (falling ? other >= value : other <= value) break;
            at[place] = at[place - 1];
        }
        at[place] = i;
    }
}

static void TYPED(begin_vectors)(int64_t n, VECTOR *v)
{
    for (int64_t e = 0; e < n * n; e++) v[e] = vset(v[e], e / n == e % n);
}

/* A rotation: of x and y it makes c x - s y and s x + c y, in the lanes of the mask; as what it
 * adds to them, with tau = s / (1 + c), so that small angles round little (Rutishauser, 1966). */
typedef struct TYPED(rotation) {
    MASK mask;
    VECTOR s, t, tau;
} TYPED(rotation);

/* That which makes (x, xy; xy, y) diagonal. */
VECTOR_INLINE TYPED(rotation) TYPED(rotation_of)(MASK mask, VECTOR x, VECTOR y, VECTOR xy)
{
    const VECTOR one = 1 - (VECTOR){0};
    const VECTOR theta = (y - x) / (2 * vselect(mask, xy, one));
    const VECTOR size = 1 / (vabs(theta) + vsqrt(theta * theta + 1));
    TYPED(rotation) r = {.mask = mask};
    r.t = vselect((MASK)(theta < 0), -size, size);
    const VECTOR c = 1 / vsqrt(r.t * r.t + 1);
    r.s = r.t * c;
    r.tau = r.s / (1 + c);
    return r;
}

VECTOR_INLINE void TYPED(rotate)(TYPED(rotation) r, VECTOR *x, VECTOR *y)
{
    const VECTOR from_x = *x, from_y = *y;
    *x = vselect(r.mask, vfma(-r.s, vfma(r.tau, from_x, from_y), from_x), from_x);
    *y = vselect(r.mask, vfma(r.s, vfma(-r.tau, from_y, from_x), from_y), from_y);
}

/* Columns p and q of [rows, n]. */
VECTOR_INLINE void TYPED(rotate_columns)(TYPED(rotation) r, int64_t rows, int64_t n, VECTOR *a,
                                         int64_t p, int64_t q)
{
    for (int64_t i = 0; i < rows; i++) TYPED(rotate)(r, a + i * n + p, a + i * n + q);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* L in the place of A's lower triangle; the lanes in which all pivots are above 0. */
static MASK TYPED(cholesky_lanes)(int64_t n, VECTOR *a)
{
    enum { ROWS = 4 }; /* at once: a sum alone would wait for itself */
    MASK good = ~(MASK){0};
    for (int64_t j = 0; j < n; j++) {
        VECTOR *const row = a + j * n, pivot = row[j];
        for (int64_t k = 0; k < j; k++) pivot = vfma(-row[k], row[k], pivot);
        good &= (MASK)(pivot > 0);
        row[j] = vsqrt(pivot);
        for (int64_t i = j + 1; i < n; i += ROWS) {
            VECTOR sums[ROWS], *rows[ROWS];
            for (int r = 0; r < ROWS; r++) { /* the last row again, where there are no more */
                rows[r] = a + (i + r < n ? i + r : n - 1) * n;
                sums[r] = rows[r][j];
            }
            for (int64_t k = 0; k < j; k++)
                for (int r = 0; r < ROWS; r++) sums[r] = vfma(-rows[r][k], row[k], sums[r]);
            for (int r = 0; r < ROWS; r++) rows[r][j] = sums[r] / row[j];
        }
    }
    return good;
}

static void TYPED(small_cholesky)(int64_t n, int64_t count, const NUMBER *from, NUMBER *to,
                                  bool *left, VECTOR *a)
{
    for (int64_t first = 0; first < count; first += VECTOR_LANES) {
        const int64_t lanes = count - first < VECTOR_LANES ? count - first : VECTOR_LANES;
        TYPED(load_lanes)(n, n, lanes, from + first * n * n, a);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) a[i * n + j] = (VECTOR){0};
        const MASK done = TYPED(usual)(n * n, a) & TYPED(cholesky_lanes)(n, a);
        for (int64_t l = 0; l < lanes; l++) left[first + l] = !done[l];
        TYPED(store_lanes)(n, n, lanes, &done, a, to + first * n * n);
    }
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* The reflection I - tau v v^T, v = [1, ...], that leaves one number of column c of A [m, n] below
 * its row c; the rest of v comes below it. `good`: lanes in which no square underflows. */
static VECTOR TYPED(reflection)(int64_t m, int64_t n, int64_t c, VECTOR *a, MASK *good)
{
    VECTOR *const column = a + c, alpha = column[c * n], sum = {0}, largest = {0};
    for (int64_t i = c + 1; i < m; i++) {
        sum = vfma(column[i * n], column[i * n], sum);
        largest = vselect((MASK)(vabs(column[i * n]) > largest), vabs(column[i * n]), largest);
    }
    const MASK some = (MASK)(largest > 0);
    *good &= ~some | (MASK)(largest >= LEAST);
    const VECTOR beta = -vcopysign(vsqrt(vfma(alpha, alpha, sum)), alpha);
    const VECTOR factor = 1 / (alpha - beta);
    column[c * n] = vselect(some, beta, alpha);
    for (int64_t i = c + 1; i < m; i++) column[i * n] *= vselect(some, factor, (VECTOR){0});
    return vselect(some, (beta - alpha) / beta, (VECTOR){0});
}

/* Applies it, from A, to the columns `begin` ... of X [m, columns], which may be A. */
static void TYPED(reflect)(int64_t m, int64_t n, int64_t c, const VECTOR *a, const VECTOR *tau,
                           int64_t columns, int64_t begin, VECTOR *x)
{
    enum { COLUMNS = 4 }; /* at once: a sum alone would wait for itself */
    for (int64_t j = begin; j < columns; j += COLUMNS) {
        VECTOR sums[COLUMNS];
        const int64_t some = columns - j < COLUMNS ? columns - j : COLUMNS;
        VECTOR *const top = x + c * columns + j;
        for (int s = 0; s < COLUMNS; s++) sums[s] = top[s < some ? s : 0];
        for (int64_t i = c + 1; i < m; i++)
            for (int s = 0; s < COLUMNS; s++)
                sums[s] = vfma(a[i * n + c], x[i * columns + j + (s < some ? s : 0)], sums[s]);
        for (int64_t s = 0; s < some; s++) {
            sums[s] *= *tau;
            top[s] -= sums[s];
            for (int64_t i = c + 1; i < m; i++)
                x[i * columns + j + s] = vfma(-a[i * n + c], sums[s], x[i * columns + j + s]);
        }
    }
}

/* A [m, n] becomes R with zeros below it; Q [m, k] of as many columns as wanted. */
static MASK TYPED(qr_lanes)(int64_t m, int64_t n, int64_t k, VECTOR *a, VECTOR *q)
{
    VECTOR tau[SMALL_SIDE];
    MASK good = ~(MASK){0};
    const int64_t steps = m < n ? m : n;
    for (int64_t c = 0; c < steps; c++) {
        tau[c] = TYPED(reflection)(m, n, c, a, &good);
        TYPED(reflect)(m, n, c, a, &tau[c], n, c + 1, a);
    }
    for (int64_t e = 0; e < m * k; e++) q[e] = vset(q[e], e / k == e % k);
    for (int64_t c = steps - 1; c >= 0; c--) TYPED(reflect)(m, n, c, a, &tau[c], k, c, q);
    for (int64_t i = 1; i < m; i++)
        for (int64_t j = 0; j < i && j < n; j++) a[i * n + j] = (VECTOR){0};
    return good;
}

static void TYPED(small_qr)(int64_t m, int64_t n, int64_t k, int64_t count, const NUMBER *from,
                            NUMBER *q, NUMBER *r, bool *left, VECTOR *room)
{
    VECTOR *const a = room, *const vectors = room + m * n;
    for (int64_t first = 0; first < count; first += VECTOR_LANES) {
        const int64_t lanes = count - first < VECTOR_LANES ? count - first : VECTOR_LANES;
        TYPED(load_lanes)(m, n, lanes, from + first * m * n, a);
        const MASK done = TYPED(usual)(m * n, a) & TYPED(qr_lanes)(m, n, k, a, vectors);
        for (int64_t l = 0; l < lanes; l++) left[first + l] = !done[l];
        TYPED(store_lanes)(m, k, lanes, &done, vectors, q + first * m * k);
        TYPED(store_lanes)(k, n, lanes, &done, a, r + first * k * n);
    }
}

/* ---- Equations ------------------------------------------------------------------------------- */

/* x and y change places in the lanes of the mask. */
VECTOR_INLINE void TYPED(exchange)(MASK mask, int64_t n, VECTOR *x, VECTOR *y)
{
    for (int64_t j = 0; j < n; j++) {
        const VECTOR other = x[j];
        x[j] = vselect(mask, y[j], x[j]);
        y[j] = vselect(mask, other, y[j]);
    }
}

/* A [n, n] becomes upper triangular, B [n, k] what belongs to it. The determinant; of its factors'
 * products, one after the other, the smallest. */
static VECTOR TYPED(eliminate)(int64_t n, int64_t k, VECTOR *a, VECTOR *b, VECTOR *smallest)
{
    VECTOR det = 1 - (VECTOR){0};
    *smallest = det;
    for (int64_t c = 0; c < n; c++) {
        for (int64_t i = c + 1; i < n; i++) {
            const MASK mask = (MASK)(vabs(a[i * n + c]) > vabs(a[c * n + c]));
            if (NO_LANE(mask)) continue;
            TYPED(exchange)(mask, n - c, a + c * n + c, a + i * n + c);
            TYPED(exchange)(mask, k, b + c * k, b + i * k);
            det = vselect(mask, -det, det);
        }
        det *= a[c * n + c];
        *smallest = vselect((MASK)(vabs(det) < *smallest), vabs(det), *smallest);
        for (int64_t i = c + 1; i < n; i++) {
            const VECTOR factor = -a[i * n + c] / a[c * n + c];
            for (int64_t j = c + 1; j < n; j++)
                a[i * n + j] = vfma(factor, a[c * n + j], a[i * n + j]);
            for (int64_t j = 0; j < k; j++) b[i * k + j] = vfma(factor, b[c * k + j], b[i * k + j]);
        }
    }
    return det;
}

static void TYPED(substitute)(int64_t n, int64_t k, const VECTOR *a, VECTOR *b)
{
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t j = 0; j < k; j++) {
            VECTOR sum = b[i * k + j];
            for (int64_t p = i + 1; p < n; p++) sum = vfma(-a[i * n + p], b[p * k + j], sum);
            b[i * k + j] = sum / a[i * (n + 1)];
        }
}

static void TYPED(load_lanes_of)(bool adjoint, int64_t n, int64_t count, const void *const *from,
                                 VECTOR *to)
{
    for (int64_t l = 0; l < VECTOR_LANES; l++) {
        const NUMBER *matrix = from[l < count ? l : 0];
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                ((NUMBER *)(to + (adjoint ? j * n + i : i * n + j)))[l] = matrix[i * n + j];
    }
}

static void TYPED(small_solve)(bool adjoint, int64_t n, int64_t k, int64_t count,
                               const void *const *from, NUMBER *b, NUMBER *det, bool *left,
                               VECTOR *room)
{
    VECTOR *const a = room, *const x = room + n * n;
    for (int64_t first = 0; first < count; first += VECTOR_LANES) {
        const int64_t lanes = count - first < VECTOR_LANES ? count - first : VECTOR_LANES;
        TYPED(load_lanes_of)(adjoint, n, lanes, from + first, a);
        if (k) TYPED(load_lanes)(n, k, lanes, b + first * n * k, x);
        MASK done = TYPED(usual)(n * n, a) & TYPED(usual)(n * k, x);
        VECTOR smallest;
        const VECTOR product = TYPED(eliminate)(n, k, a, x, &smallest);
        TYPED(substitute)(n, k, a, x);
        done &= TYPED(usual)(n * k, x);
        if (det) /* not where it over- or underflows on its way */
            done &= (MASK)(smallest >= LEAST * LEAST * LEAST) & (MASK)(product * 0 == 0);
        for (int64_t l = 0; l < lanes; l++) {
            left[first + l] = !done[l];
            if (det && done[l]) det[first + l] = product[l];
        }
        if (k) TYPED(store_lanes)(n, k, lanes, &done, x, b + first * n * k);
    }
}

/* ---- Eigenvalues ----------------------------------------------------------------------------- */

/* Makes a(p, q) zero in the lanes where it counts; these lanes. */
static MASK TYPED(eigh_step)(int64_t n, VECTOR *a, VECTOR *v, VECTOR limit, int64_t p, int64_t q)
{
    VECTOR *app = a + p * n + p, *aqq = a + q * n + q, apq = a[p * n + q];
    const MASK mask = (MASK)(vabs(apq) > limit);
    if (NO_LANE(mask)) return mask;
    const TYPED(rotation) r = TYPED(rotation_of)(mask, *app, *aqq, apq);
    for (int64_t k = 0; k < n; k++) {
        if (k == p || k == q) continue;
        TYPED(rotate)(r, a + k * n + p, a + k * n + q);
        a[p * n + k] = a[k * n + p];
        a[q * n + k] = a[k * n + q];
    }
    *app = vselect(mask, *app - r.t * apq, *app);
    *aqq = vselect(mask, *aqq + r.t * apq, *aqq);
    a[p * n + q] = a[q * n + p] = vselect(mask, apq * 0, apq);
    if (v) TYPED(rotate_columns)(r, n, n, v, p, q);
    return mask;
}

/* Turns the matrices diagonal; the lanes in which that takes too long. */
static MASK TYPED(eigh_sweeps)(int64_t n, VECTOR *a, VECTOR *v)
{
    VECTOR largest = {0};
    MASK busy = {0};
    for (int64_t e = 0; e < n * n; e++)
        largest = vselect(vabs(a[e]) > largest, vabs(a[e]), largest);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        busy = (MASK){0};
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                busy |= TYPED(eigh_step)(n, a, v, largest * (EPSILON / 32), p, q);
        if (NO_LANE(busy)) break;
    }
    return busy;
}

static void TYPED(small_eigh)(int64_t n, int64_t count, const NUMBER *from, NUMBER *w,
                              NUMBER *vectors, bool *left)
{
    VECTOR a[SMALL_SIDE * SMALL_SIDE], v[SMALL_SIDE * SMALL_SIDE], values[SMALL_SIDE];
    for (int64_t first = 0; first < count; first += VECTOR_LANES) {
        const int64_t lanes = count - first < VECTOR_LANES ? count - first : VECTOR_LANES;
        TYPED(load_lanes)(n, n, lanes, from + first * n * n, a);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
        MASK done = TYPED(usual)(n * n, a);
        if (vectors) TYPED(begin_vectors)(n, v);
        done &= ~TYPED(eigh_sweeps)(n, a, vectors ? v : NULL);
        for (int64_t i = 0; i < n; i++) values[i] = a[i * (n + 1)];
        for (int64_t l = 0; l < lanes; l++) {
            int at[SMALL_SIDE];
            NUMBER *to = vectors + (first + l) * n * n;
            if ((left[first + l] = !done[l])) continue;
            TYPED(order)(n, values, l, false, at);
            for (int64_t j = 0; j < n; j++) w[(first + l) * n + j] = values[at[j]][l];
            for (int64_t e = 0; vectors && e < n * n; e++) to[e] = v[e / n * n + at[e % n]][l];
        }
    }
}

/* ---- Singular values ------------------------------------------------------------------------- */

/* Makes columns p and q of A [m, n] orthogonal in the lanes where they are not; these lanes. */
static MASK TYPED(svd_step)(int64_t m, int64_t n, VECTOR *a, VECTOR *v, int64_t p, int64_t q)
{
    const NUMBER limit = EPSILON * (NUMBER)(2 + (NUMBER)m / 4);
    VECTOR x = {0}, y = {0}, xy = {0};
    for (int64_t i = 0; i < m; i++) {
        const VECTOR *row = a + i * n;
        x = vfma(row[p], row[p], x);
        y = vfma(row[q], row[q], y);
        xy = vfma(row[p], row[q], xy);
    }
    const MASK mask = (MASK)(vabs(xy) > limit * (vsqrt(x) * vsqrt(y)));
    if (NO_LANE(mask)) return mask;
    const TYPED(rotation) r = TYPED(rotation_of)(mask, x, y, xy);
    TYPED(rotate_columns)(r, m, n, a, p, q);
    if (v) TYPED(rotate_columns)(r, n, n, v, p, q);
    return mask;
}

/* Turns the columns of A [m, n] orthogonal; s: their lengths. The lanes in which that takes too
 * long. */
static MASK TYPED(svd_sweeps)(int64_t m, int64_t n, VECTOR *a, VECTOR *v, VECTOR *s)
{
    MASK busy = {0};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        busy = (MASK){0};
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) busy |= TYPED(svd_step)(m, n, a, v, p, q);
        if (NO_LANE(busy)) break;
    }
    for (int64_t j = 0; j < n; j++) {
        VECTOR sum = {0};
        for (int64_t i = 0; i < m; i++) sum = vfma(a[i * n + j], a[i * n + j], sum);
        s[j] = vsqrt(sum);
    }
    return busy;
}

/* The lanes that have a singular value so small that its vector is not exact. */
static MASK TYPED(deficient)(int64_t n, const VECTOR *s)
{
    VECTOR largest = s[0], smallest = s[0];
    for (int64_t j = 1; j < n; j++) {
        largest = vselect((MASK)(s[j] > largest), s[j], largest);
        smallest = vselect((MASK)(s[j] < smallest), s[j], smallest);
    }
    return (MASK)(smallest <= largest * (64 * EPSILON));
}

/* [rows, columns] with its axes swapped. */
static void TYPED(turn)(int64_t rows, int64_t columns, const VECTOR *from, VECTOR *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
}

static void TYPED(small_svd)(int64_t m, int64_t n, int64_t count, const NUMBER *from, NUMBER *s,
                             NUMBER *u, NUMBER *vectors, bool *left)
{
    const bool wide = m < n;
    const int64_t k = wide ? m : n, longer = wide ? n : m;
    VECTOR a[SMALL_SIDE * SMALL_SIDE], v[SMALL_SIDE * SMALL_SIDE], values[SMALL_SIDE];
    for (int64_t first = 0; first < count; first += VECTOR_LANES) {
        const int64_t lanes = count - first < VECTOR_LANES ? count - first : VECTOR_LANES;
        TYPED(load_lanes)(m, n, lanes, from + first * m * n, wide ? v : a);
        if (wide) TYPED(turn)(m, n, v, a);
        MASK done = TYPED(usual)(m * n, a);
        if (u) TYPED(begin_vectors)(k, v);
        done &= ~TYPED(svd_sweeps)(longer, k, a, u ? v : NULL, values);
        if (u) done &= ~TYPED(deficient)(k, values);
        for (int64_t l = 0; l < lanes; l++) {
            int at[SMALL_SIDE];
            const int64_t matrix = first + l;
            if ((left[matrix] = !done[l])) continue;
            TYPED(order)(k, values, l, true, at);
            for (int64_t j = 0; j < k; j++) s[matrix * k + j] = values[at[j]][l];
            if (!u) continue;
            NUMBER *sides = (wide ? vectors : u) + matrix * longer * k;
            NUMBER *turned = (wide ? u : vectors) + matrix * k * k;
            for (int64_t e = 0; e < longer * k; e++)
                sides[e] = a[e / k * k + at[e % k]][l] / values[at[e % k]][l];
            for (int64_t e = 0; e < k * k; e++) turned[e] = v[e / k * k + at[e % k]][l];
        }
    }
}

#undef TYPE
