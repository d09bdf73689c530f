/* spectral.h for one float type. */

#define WIDE (sizeof(NUMBER) == sizeof(double))

/* ---- Scale ----------------------------------------------------------------------------------- */

/* A power of two, as two factors, either of which is a float where the whole one may not be. */
typedef struct TYPED(scale) {
    NUMBER half, rest;
} TYPED(scale);

static TYPED(scale) TYPED(power_of_two)(int exponent)
{
    return (TYPED(scale)){(NUMBER)ldexp(1, exponent / 2),
                          (NUMBER)ldexp(1, exponent - exponent / 2)};
}

static NUMBER TYPED(largest)(int64_t n, const NUMBER *x, NUMBER most)
{
    for (int64_t i = 0; i < n; i++) {
        const NUMBER size = x[i] < 0 ? -x[i] : x[i];
        most = size > most ? size : most;
    }
    return most;
}

/* The exponent that brings the largest element to 1/2 ... 1, so that no square overflows and none
 * that matters underflows. */
static int TYPED(exponent_of)(NUMBER most)
{
    int exponent = 0;
    if (most > 0) frexp((double)most, &exponent);
    return -exponent;
}

static void TYPED(rescale)(int64_t n, NUMBER *x, int exponent)
{
    const TYPED(scale) s = TYPED(power_of_two)(exponent);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] * s.half * s.rest;
}

/* ---- The rest of the matrix ------------------------------------------------------------------ */

/* C += A[0]^T B[0] + A[1]^T B[1] in rows [first, last) and columns [left, right), for lines A and
 * B, k of each; or of a symmetric C what is right of the diagonal's squares, with them. */
typedef struct TYPED(update) {
    bool symmetric;
    int64_t first, last, left, right, k;
    NUMBER *c, *a[2], *b[2];
    int64_t a_stride, stride; /* of A; of B and C */
} TYPED(update);

static void TYPED(update_rows)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(update) *u = user;
    const int64_t size = sizeof(NUMBER), row = u->first + first;
    const int64_t left = u->symmetric ? unit_below(row) : u->left;
    int64_t tile_rows, tile_columns;
    ISA_CALL(gemm_tile)(WIDE, &tile_rows, &tile_columns);
    const gemm_runs_job job = {.wide = WIDE,
                               .add = true,
                               .m = last - first,
                               .n = u->right - left,
                               .k = u->k,
                               .runs = 2,
                               .a_runs = (int64_t[]){0, (u->a[1] - u->a[0]) * size},
                               .b_runs = (int64_t[]){0, (u->b[1] - u->b[0]) * size},
                               .a = (const char *)(u->a[0] + row),
                               .b = (const char *)(u->b[0] + left),
                               .c = (char *)(u->c + row * u->stride + left),
                               .a_row = size,
                               .a_col = u->a_stride * size,
                               .b_row = u->stride * size,
                               .b_panel = tile_columns * size,
                               .c_row = u->stride * size,
                               .c_col = size};
    ISA_CALL(gemm_runs)(&job);
}

static void TYPED(add_panel)(TYPED(update) u)
{
    const int64_t rows = u.last - u.first, work = rows * (u.right - u.left) * u.k;
    if (rows > 0) threads_run(rows, work < UPDATE_WORK ? rows : ROWS, TYPED(update_rows), &u);
}

/* ---- Tridiagonal ----------------------------------------------------------------------------- */

/* A [n, n], in rows of `stride`, of which `rows` count; the lines of W; sums of pieces. */
typedef struct TYPED(symmetric) {
    int64_t n, rows, stride, first, pieces;
    NUMBER *a, *w, *parts, *d, *e, *tau;
    const NUMBER *x;
} TYPED(symmetric);

/* A piece is a band of rows and the one that mirrors it: together they are of the same work. */
static void TYPED(multiply_bands)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(symmetric) *s = user;
    const int64_t bands = 2 * s->pieces;
    for (int64_t p = first; p < last; p++) {
        NUMBER *part = s->parts + p * s->stride;
        memset(part + s->first, 0, (size_t)(s->rows - s->first) * sizeof *part);
        for (int mirrored = 0; mirrored < 2; mirrored++) {
            const int64_t band = mirrored ? bands - 1 - p : p;
            ISA_CALL(lines_symmetric)
            (WIDE, band_at(s->first, s->rows, bands, band),
             band_at(s->first, s->rows, bands, band + 1), s->rows, s->a, s->stride, s->x, part);
        }
    }
}

/* y = A x, from row `first` on. */
static void TYPED(symmetric_times)(TYPED(symmetric) *s, int64_t first, const NUMBER *x, NUMBER *y)
{
    const int64_t rows = s->rows - first;
    s->first = first, s->x = x, s->pieces = pieces_of(rows * rows);
    threads_run(s->pieces, 1, TYPED(multiply_bands), s);
    for (int64_t j = first; j < s->rows; j++) y[j] = s->parts[j];
    for (int64_t p = 1; p < s->pieces; p++)
        for (int64_t j = first; j < s->rows; j++) y[j] += s->parts[p * s->stride + j];
}

/* Row i reflected, k rows of its panel being done. */
static void TYPED(tridiagonal_row)(TYPED(symmetric) *s, int64_t panel, int64_t i)
{
    const int64_t k = i - panel, here = unit_below(i), next = unit_below(i + 1), size = s->rows;
    const int64_t stride = s->stride;
    NUMBER *row = s->a + i * stride, *v = s->a + panel * stride, *w = s->w + k * stride;
    NUMBER with_v[PANEL], with_w[PANEL], of_w;
    ISA_CALL(lines_add)(WIDE, k, size - here, v + here, stride, s->w + i, stride, row + here);
    ISA_CALL(lines_add)(WIDE, k, size - here, s->w + here, stride, v + i, stride, row + here);
    s->d[i] = row[i];
    const NUMBER tau = s->tau[i] = TYPED(factor_reflection)(s->n - i - 1, row + i + 1, &s->e[i]);
    memset(row, 0, (size_t)(i + 1) * sizeof *row);

    TYPED(symmetric_times)(s, next, row, w);
    ISA_CALL(lines_dot)(WIDE, k, size - next, v + next, stride, row + next, with_v);
    ISA_CALL(lines_dot)(WIDE, k, size - next, s->w + next, stride, row + next, with_w);
    ISA_CALL(lines_add)(WIDE, k, size - next, v + next, stride, with_w, 1, w + next);
    ISA_CALL(lines_add)(WIDE, k, size - next, s->w + next, stride, with_v, 1, w + next);
    memset(w, 0, (size_t)(i + 1) * sizeof *w);
    ISA_CALL(lines_dot)(WIDE, 1, size - next, w + next, stride, row + next, &of_w);
    const NUMBER back = tau * of_w / 2;
    for (int64_t j = next; j < size; j++) w[j] = -tau * (w[j] - back * row[j]);
}

/* The diagonal d [n] and what is beside it, e [n - 1]; A's rows become the reflections. */
static void TYPED(make_tridiagonal)(TYPED(symmetric) *s)
{
    for (int64_t i = 0; i < s->n - 1; i += PANEL) {
        const int64_t k = spectral_least(PANEL, s->n - 1 - i), rest = i + k;
        for (int64_t j = i; j < rest; j++) TYPED(tridiagonal_row)(s, i, j);
        NUMBER *v = s->a + i * s->stride;
        TYPED(add_panel)
        ((TYPED(update)){.symmetric = true,
                         .first = rest,
                         .last = s->n,
                         .left = rest,
                         .right = s->rows,
                         .k = k,
                         .c = s->a,
                         .a = {v, s->w},
                         .b = {s->w, v},
                         .a_stride = s->stride,
                         .stride = s->stride});
    }
    s->d[s->n - 1] = s->a[(s->n - 1) * (s->stride + 1)];
}

/* ---- Reflections applied --------------------------------------------------------------------- */

/* The product of `count` reflections, lines of `length`, of which that of line i begins at element
 * i + offset, times X [rows, columns], which is continued by the identity. */
typedef struct TYPED(back) {
    int64_t count, length, offset, stride, rows, columns, x_row, x_column;
    const NUMBER *v, *tau, *x;
    int64_t y_columns;
    NUMBER *y;        /* [length, y_columns] */
    NUMBER *t, *room; /* BLOCK x BLOCK of each block; of each worker */
    bool failed;
} TYPED(back);

static size_t TYPED(back_room)(int64_t length)
{
    return (size_t)(length + 2 * BLOCK) * STRIP + BLOCK * BLOCK;
}

/* Of a block's reflections: where they begin, how many there are, their first element. */
typedef struct TYPED(block) {
    int64_t first, count, top;
    const NUMBER *v;
} TYPED(block);

static TYPED(block) TYPED(block_of)(const TYPED(back) *b, int64_t i)
{
    const int64_t first = i * BLOCK, top = first + b->offset;
    return (TYPED(block)){first, spectral_least(BLOCK, b->count - first), top,
                          b->v + first * b->stride + top};
}

/* -T of blocks, with which their product is I - V^T T V. */
static void TYPED(join_blocks)(int64_t first, int64_t last, int worker, void *user)
{
    TYPED(back) *b = user;
    NUMBER *vv = b->room + (size_t)worker * TYPED(back_room)(b->length);
    for (int64_t i = first; i < last; i++) {
        const TYPED(block) k = TYPED(block_of)(b, i);
        NUMBER *t = b->t + i * BLOCK * BLOCK;
        if (!TYPED(gemm)(k.count, k.count, b->length - k.top, k.v, b->stride, 1, k.v, 1, b->stride,
                         vv, k.count, NULL))
            __atomic_store_n(&b->failed, true, __ATOMIC_RELAXED);
        TYPED(factor_join)(k.count, b->tau + k.first, vv, t);
        for (int64_t e = 0; e < k.count * k.count; e++) t[e] = -t[e];
    }
}

/* STRIP columns of X from j on, in panels of as many columns as a tile of a product has: panel p's
 * element (i, q) is strip[p length `wide` + i `wide` + q]. And those that there are of Y. */
static void TYPED(load_strip)(const TYPED(back) *b, int64_t j, int64_t wide, NUMBER *strip)
{
    for (int64_t left = j; left < j + STRIP; left += wide)
        for (int64_t i = 0; i < b->length; i++, strip += wide) {
            const int64_t given = i < b->rows ? spectral_least(wide, b->columns - left) : 0;
            const NUMBER *from = b->x + i * b->x_row + left * b->x_column;
            int64_t q = 0;
            for (; q < given; q++) strip[q] = from[q * b->x_column];
            for (; q < wide; q++) strip[q] = i == left + q;
        }
}

static void TYPED(store_strip)(const TYPED(back) *b, int64_t j, int64_t wide, const NUMBER *strip)
{
    for (int64_t left = j; left < spectral_least(j + STRIP, b->y_columns); left += wide)
        for (int64_t i = 0; i < b->length; i++, strip += wide)
            memcpy(b->y + i * b->y_columns + left, strip,
                   (size_t)spectral_least(wide, b->y_columns - left) * sizeof *strip);
}

/* C = (add: C +) A B, of STRIP columns in panels; b_panel elements from one of B's to the next. */
static void TYPED(multiply_strip)(bool add, int64_t m, int64_t n, int64_t k, const NUMBER *a,
                                  int64_t a_row, int64_t a_column, const NUMBER *b, int64_t b_row,
                                  int64_t b_panel, NUMBER *c, int64_t c_row)
{
    const int64_t size = sizeof(NUMBER), none = 0;
    ISA_CALL(gemm_runs)
    (&(gemm_runs_job){.wide = WIDE,
                      .add = add,
                      .m = m,
                      .n = n,
                      .k = k,
                      .runs = 1,
                      .a_runs = &none,
                      .b_runs = &none,
                      .a = (const char *)a,
                      .b = (const char *)b,
                      .c = (char *)c,
                      .a_row = a_row * size,
                      .a_col = a_column * size,
                      .b_row = b_row * size,
                      .b_panel = b_panel * size,
                      .c_row = c_row * size,
                      .c_col = size});
}

/* The strip less V^T T V of it. */
static void TYPED(reflect_strip)(const TYPED(back) *b, TYPED(block) k, const NUMBER *t,
                                 int64_t wide, NUMBER *strip)
{
    const int64_t length = b->length - k.top, panel = b->length * wide;
    NUMBER *of_v = strip + b->length * STRIP, *of_t = of_v + BLOCK * STRIP;
    strip += k.top * wide;
    TYPED(multiply_strip)
    (false, k.count, STRIP, length, k.v, b->stride, 1, strip, wide, panel, of_v, STRIP);
    TYPED(multiply_strip)
    (false, k.count, STRIP, k.count, t, k.count, 1, of_v, STRIP, wide, of_t, STRIP);
    for (int64_t j = 0; j < STRIP; j += wide, strip += panel) TYPED(multiply_strip)
    (true, length, wide, k.count, k.v, 1, b->stride, of_t + j, STRIP, wide, strip, wide);
}

static void TYPED(reflect_strips)(int64_t first, int64_t last, int worker, void *user)
{
    const TYPED(back) *b = user;
    int64_t rows, wide;
    ISA_CALL(gemm_tile)(WIDE, &rows, &wide);
    NUMBER *strip = b->room + (size_t)worker * TYPED(back_room)(b->length);
    for (int64_t s = first; s < last; s++) {
        TYPED(load_strip)(b, s * STRIP, wide, strip);
        for (int64_t i = (b->count + BLOCK - 1) / BLOCK - 1; i >= 0; i--) TYPED(reflect_strip)
        (b, TYPED(block_of)(b, i), b->t + i * BLOCK * BLOCK, wide, strip);
        TYPED(store_strip)(b, s * STRIP, wide, strip);
    }
}

/* false without memory. */
static bool TYPED(reflect_back)(TYPED(back) b)
{
    const int workers = threads_count();
    const int64_t blocks = (b.count + BLOCK - 1) / BLOCK;
    const size_t joined = (size_t)blocks * BLOCK * BLOCK;
    b.t = memory_alloc((joined + (size_t)workers * TYPED(back_room)(b.length)) * sizeof *b.t);
    if (!b.t) return false;
    b.room = b.t + joined;
    threads_run_among(workers, blocks, 1, TYPED(join_blocks), &b);
    threads_run_among(workers, (b.y_columns + STRIP - 1) / STRIP, 1, TYPED(reflect_strips), &b);
    memory_free(b.t);
    return !b.failed;
}

/* LAPACK is not to loop over what an interrupted reduction left. */
static bool TYPED(are_finite)(int64_t n, const NUMBER *x)
{
    NUMBER none = 0;
    for (int64_t i = 0; i < n; i++) none += x[i] * 0;
    return none == 0;
}

/* ---- eigh ------------------------------------------------------------------------------------ */

/* The lower triangle of A as an upper one, with the squares on the diagonal, and zeros from row and
 * column n on. */
static void TYPED(turn_lower)(int64_t n, const NUMBER *a, int exponent, const TYPED(symmetric) *s)
{
    const TYPED(scale) by = TYPED(power_of_two)(exponent);
    for (int64_t top = 0; top < s->rows; top += LINES_UNIT)
        for (int64_t left = top; left < s->rows; left += LINES_UNIT)
            for (int64_t i = top; i < top + LINES_UNIT; i++) {
                NUMBER *to = s->a + i * s->stride;
                const int64_t right = i < n ? spectral_least(left + LINES_UNIT, n) : left;
                int64_t j = left;
                for (; j < spectral_least(i, right); j++) to[j] = a[i * n + j] * by.half * by.rest;
                for (; j < right; j++) to[j] = a[j * n + i] * by.half * by.rest;
                for (; j < left + LINES_UNIT; j++) to[j] = 0;
            }
}

static int TYPED(eigh_in)(TYPED(symmetric) *s, NUMBER *w, NUMBER *v, NUMBER *z)
{
    const int64_t n = s->n;
    TYPED(make_tridiagonal)(s);
    if (!TYPED(are_finite)(n, s->d) || !TYPED(are_finite)(n - 1, s->e)) return LAPACK_DIVERGES;
    memcpy(w, s->d, (size_t)n * sizeof *w);
    const int info = TYPED(lapack_tridiagonal)(n, w, s->e, z);
    if (info || !v) return info;
    const bool ok = TYPED(reflect_back)((TYPED(back)){.count = n - 1,
                                                      .length = n,
                                                      .offset = 1,
                                                      .stride = s->stride,
                                                      .rows = n,
                                                      .columns = n,
                                                      .x_row = 1,
                                                      .x_column = n,
                                                      .v = s->a,
                                                      .tau = s->tau,
                                                      .x = z,
                                                      .y_columns = n,
                                                      .y = v});
    return ok ? 0 : LAPACK_NO_MEMORY;
}

int TYPED(spectral_eigh)(int64_t n, const NUMBER *a, NUMBER *w, NUMBER *v)
{
    const int64_t rows = unit_above(n), stride = rows + LINES_UNIT;
    const int64_t elements = (rows + PANEL + PIECES + 3) * stride;
    NUMBER most = 0;
    NUMBER *room = memory_alloc((size_t)(elements + (v ? n * n : 0)) * sizeof *room);
    if (!room) return LAPACK_NO_MEMORY;
    TYPED(symmetric) s = {.n = n, .rows = rows, .stride = stride, .a = room};
    s.w = s.a + rows * stride;
    s.parts = s.w + PANEL * stride;
    s.d = s.parts + PIECES * stride;
    s.e = s.d + stride;
    s.tau = s.e + stride;
    for (int64_t i = 0; i < n; i++) most = TYPED(largest)(i + 1, a + i * n, most);
    const int exponent = TYPED(exponent_of)(most);
    TYPED(turn_lower)(n, a, exponent, &s);
    const int info = TYPED(eigh_in)(&s, w, v, v ? room + elements : NULL);
    TYPED(rescale)(n, w, -exponent);
    memory_free(room);
    return info;
}

/* ---- Bidiagonal ------------------------------------------------------------------------------ */

/* M [m, n], m >= n, in rows of `stride`, of which `columns` count, as in the lines of Y; the lines
 * of V and X, of which `rows` count; sums of pieces. */
typedef struct TYPED(bidiagonal) {
    int64_t m, n, columns, rows, stride, v_stride, first, left, pieces;
    NUMBER *a, *v, *x, *y, *parts, *d, *e, *tau_v, *tau_u;
    const NUMBER *by;
    NUMBER *to;
} TYPED(bidiagonal);

static int64_t TYPED(piece_at)(const TYPED(bidiagonal) *s, int64_t i)
{
    return s->first + (s->m - s->first) * i / s->pieces;
}

static void TYPED(columns_times)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(bidiagonal) *s = user;
    for (int64_t p = first; p < last; p++) {
        const int64_t row = TYPED(piece_at)(s, p);
        NUMBER *part = s->parts + p * s->stride + s->left;
        memset(part, 0, (size_t)(s->columns - s->left) * sizeof *part);
        ISA_CALL(lines_add)
        (WIDE, TYPED(piece_at)(s, p + 1) - row, s->columns - s->left,
         s->a + row * s->stride + s->left, s->stride, s->by + row, 1, part);
    }
}

static void TYPED(rows_times)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const TYPED(bidiagonal) *s = user;
    const int64_t row = TYPED(piece_at)(s, first);
    ISA_CALL(lines_dot)
    (WIDE, TYPED(piece_at)(s, last) - row, s->columns - s->left, s->a + row * s->stride + s->left,
     s->stride, s->by + s->left, s->to + row);
}

/* y = M^T v, of rows from `first` and columns from `left` on; or x = M u. */
static void TYPED(multiply_part)(TYPED(bidiagonal) *s, bool columns, int64_t first, int64_t left,
                                 const NUMBER *by, NUMBER *to)
{
    s->first = first, s->left = left, s->by = by, s->to = to;
    s->pieces = pieces_of((s->m - first) * (s->columns - left));
    threads_run(s->pieces, 1, columns ? TYPED(columns_times) : TYPED(rows_times), s);
    if (!columns) return;
    for (int64_t j = left; j < s->columns; j++) to[j] = s->parts[j];
    for (int64_t p = 1; p < s->pieces; p++)
        for (int64_t j = left; j < s->columns; j++) to[j] += s->parts[p * s->stride + j];
}

/* Column i reflected, k columns and rows of its panel being done. */
static void TYPED(bidiagonal_column)(TYPED(bidiagonal) *s, int64_t panel, int64_t i)
{
    const int64_t k = i - panel, here = unit_below(i), next = unit_below(i + 1);
    const int64_t height = s->rows - here, width = s->columns - next;
    NUMBER *v = s->v + panel * s->v_stride, *u = s->a + panel * s->stride;
    NUMBER *column = s->v + i * s->v_stride, *y = s->y + k * s->stride;
    NUMBER with_v[PANEL], with_x[PANEL];
    memset(column, 0, (size_t)s->rows * sizeof *column);
    for (int64_t j = i; j < s->m; j++) column[j] = s->a[j * s->stride + i];
    ISA_CALL(lines_add)
    (WIDE, k, height, v + here, s->v_stride, s->y + i, s->stride, column + here);
    ISA_CALL(lines_add)
    (WIDE, k, height, s->x + here, s->v_stride, u + i, s->stride, column + here);
    memset(column, 0, (size_t)i * sizeof *column);
    const NUMBER tau = s->tau_v[i] = TYPED(factor_reflection)(s->m - i, column + i, &s->d[i]);
    if (i + 1 == s->n) return;

    TYPED(multiply_part)(s, true, i, next, column, y);
    ISA_CALL(lines_dot)(WIDE, k, height, v + here, s->v_stride, column + here, with_v);
    ISA_CALL(lines_dot)(WIDE, k, height, s->x + here, s->v_stride, column + here, with_x);
    ISA_CALL(lines_add)(WIDE, k, width, s->y + next, s->stride, with_v, 1, y + next);
    ISA_CALL(lines_add)(WIDE, k, width, u + next, s->stride, with_x, 1, y + next);
    for (int64_t j = next; j < s->columns; j++) y[j] *= -tau;
}

/* Row i, whose column is done. */
static void TYPED(bidiagonal_row)(TYPED(bidiagonal) *s, int64_t panel, int64_t i)
{
    const int64_t k = i - panel, next = unit_below(i + 1);
    const int64_t height = s->rows - next, width = s->columns - next;
    NUMBER *v = s->v + panel * s->v_stride, *u = s->a + panel * s->stride;
    NUMBER *row = s->a + i * s->stride, *x = s->x + k * s->v_stride;
    NUMBER with_y[PANEL], with_u[PANEL];
    ISA_CALL(lines_add)
    (WIDE, k + 1, width, s->y + next, s->stride, v + i, s->v_stride, row + next);
    ISA_CALL(lines_add)(WIDE, k, width, u + next, s->stride, s->x + i, s->v_stride, row + next);
    const NUMBER tau = s->tau_u[i] = TYPED(factor_reflection)(s->n - i - 1, row + i + 1, &s->e[i]);
    memset(row, 0, (size_t)(i + 1) * sizeof *row);

    memset(x, 0, (size_t)s->rows * sizeof *x);
    TYPED(multiply_part)(s, false, i + 1, next, row, x);
    ISA_CALL(lines_dot)(WIDE, k + 1, width, s->y + next, s->stride, row + next, with_y);
    ISA_CALL(lines_dot)(WIDE, k, width, u + next, s->stride, row + next, with_u);
    ISA_CALL(lines_add)(WIDE, k + 1, height, v + next, s->v_stride, with_y, 1, x + next);
    ISA_CALL(lines_add)(WIDE, k, height, s->x + next, s->v_stride, with_u, 1, x + next);
    for (int64_t j = next; j < s->rows; j++) x[j] *= -tau;
}

/* The diagonal d [n] and what is above it, e [n - 1]; M's rows become the reflections u. */
static void TYPED(make_bidiagonal)(TYPED(bidiagonal) *s)
{
    for (int64_t i = 0; i < s->n; i += PANEL) {
        const int64_t k = spectral_least(PANEL, s->n - i), rest = i + k;
        for (int64_t j = i; j < rest; j++) {
            TYPED(bidiagonal_column)(s, i, j);
            if (j + 1 < s->n) TYPED(bidiagonal_row)(s, i, j);
        }
        if (rest == s->n) return;
        TYPED(add_panel)
        ((TYPED(update)){.first = rest,
                         .last = s->m,
                         .left = unit_below(rest),
                         .right = s->columns,
                         .k = k,
                         .c = s->a,
                         .a = {s->v + i * s->v_stride, s->x},
                         .b = {s->y, s->a + i * s->stride},
                         .a_stride = s->v_stride,
                         .stride = s->stride});
    }
}

/* ---- svd ------------------------------------------------------------------------------------- */

/* M [m, n], m >= n, of any strides: s [n], and u [m, u_columns] and v [n, n] if u is not NULL. */
static int TYPED(svd_in)(TYPED(bidiagonal) *b, NUMBER *s, int64_t u_columns, NUMBER *u, NUMBER *v,
                         NUMBER *x, NUMBER *y)
{
    const int64_t m = b->m, n = b->n;
    TYPED(make_bidiagonal)(b);
    if (!TYPED(are_finite)(n, b->d) || !TYPED(are_finite)(n - 1, b->e)) return LAPACK_DIVERGES;
    memcpy(s, b->d, (size_t)n * sizeof *s);
    const int info = TYPED(lapack_bidiagonal)(n, s, b->e, u ? x : NULL, u ? y : NULL);
    if (info || !u) return info;
    const TYPED(back) left = {.count = n,
                              .length = m,
                              .stride = b->v_stride,
                              .rows = n,
                              .columns = n,
                              .x_row = 1,
                              .x_column = n,
                              .v = b->v,
                              .tau = b->tau_v,
                              .x = x,
                              .y_columns = u_columns,
                              .y = u};
    const TYPED(back) right = {.count = n - 1,
                               .length = n,
                               .offset = 1,
                               .stride = b->stride,
                               .rows = n,
                               .columns = n,
                               .x_row = n,
                               .x_column = 1,
                               .v = b->a,
                               .tau = b->tau_u,
                               .x = y,
                               .y_columns = n,
                               .y = v};
    return TYPED(reflect_back)(left) && TYPED(reflect_back)(right) ? 0 : LAPACK_NO_MEMORY;
}

/* to [m, n], in rows of `stride`, = A of any strides, scaled. */
static void TYPED(scale_into)(int64_t m, int64_t n, const NUMBER *a, int64_t row, int64_t column,
                              int exponent, NUMBER *to, int64_t stride)
{
    const TYPED(scale) by = TYPED(power_of_two)(exponent);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[i * stride + j] = a[i * row + j * column] * by.half * by.rest;
}

/* A times a power of two, as it is: u [m, u_columns]. */
static int TYPED(svd_straight)(int64_t m, int64_t n, const NUMBER *a, int64_t row, int64_t column,
                               int exponent, NUMBER *s, int64_t u_columns, NUMBER *u, NUMBER *v)
{
    const int64_t columns = unit_above(n), rows = unit_above(m), stride = columns + LINES_UNIT;
    const int64_t v_stride = rows + LINES_UNIT;
    const int64_t elements = (m + PANEL + PIECES + 4) * stride + (n + PANEL) * v_stride;
    NUMBER *room = memory_alloc((size_t)(elements + (u ? 2 * n * n : 0)) * sizeof *room);
    if (!room) return LAPACK_NO_MEMORY;
    TYPED(bidiagonal)
    b = {.m = m,
         .n = n,
         .columns = columns,
         .rows = rows,
         .stride = stride,
         .v_stride = v_stride,
         .a = room};
    b.y = b.a + m * stride;
    b.parts = b.y + PANEL * stride;
    b.d = b.parts + PIECES * stride;
    b.e = b.d + stride;
    b.tau_v = b.e + stride;
    b.tau_u = b.tau_v + stride;
    b.v = b.tau_u + stride;
    b.x = b.v + n * v_stride;
    TYPED(scale_into)(m, n, a, row, column, exponent, b.a, stride);
    for (int64_t i = 0; i < m; i++)
        memset(b.a + i * stride + n, 0, (size_t)(columns - n) * sizeof *b.a);
    const int info =
        TYPED(svd_in)(&b, s, u_columns, u, v, room + elements, room + elements + n * n);
    memory_free(room);
    return info;
}

/* The same by way of A = Q R, for many rows: u [m, n]. */
static int TYPED(svd_by_qr)(int64_t m, int64_t n, const NUMBER *a, int64_t row, int64_t column,
                            int exponent, NUMBER *s, NUMBER *u, NUMBER *v)
{
    const int64_t q_columns = u ? n : 0;
    NUMBER *copy = memory_alloc((size_t)(m * n + (m + n) * q_columns) * sizeof *copy);
    NUMBER *q = copy + m * n, *inner = u ? q + m * n : NULL;
    int info = LAPACK_NO_MEMORY;
    if (!copy) return info;
    TYPED(scale_into)(m, n, a, row, column, exponent, copy, n);
    if (TYPED(factor_qr)(m, n, copy, n, q_columns, q))
        info = TYPED(svd_straight)(n, n, copy, n, 1, 0, s, n, inner, v);
    if (!info && u && !TYPED(gemm)(m, n, n, q, n, 1, inner, n, 1, u, n, NULL))
        info = LAPACK_NO_MEMORY;
    memory_free(copy);
    return info;
}

/* The reflections make a tall matrix bidiagonal: of a wide one its transpose. */
int TYPED(spectral_svd)(bool full, int64_t m, int64_t n, const NUMBER *a, NUMBER *s, NUMBER *u,
                        NUMBER *v)
{
    const bool wide = m < n;
    const int64_t most = wide ? n : m, few = wide ? m : n;
    const int64_t row = wide ? 1 : n, column = wide ? n : 1;
    NUMBER *left = wide ? v : u, *right = wide ? u : v;
    const int exponent = TYPED(exponent_of)(TYPED(largest)(m * n, a, 0));
    const int info = most >= MANY_ROWS * few && !full
                         ? TYPED(svd_by_qr)(most, few, a, row, column, exponent, s, left, right)
                         : TYPED(svd_straight)(most, few, a, row, column, exponent, s,
                                               full ? most : few, left, right);
    TYPED(rescale)(few, s, -exponent);
    return info;
}

#undef WIDE
#undef TYPE
