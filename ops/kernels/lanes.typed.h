/* The functions that ops/kernels/lanes.h lists, for one float type. */

VECTOR_INLINE NUMBER TYPED(lanes_identity)(lanes_fold fold)
{
    return fold == LANES_SUM    ? (NUMBER)-0.0
           : fold == LANES_PROD ? 1
           : fold == LANES_MAX  ? (NUMBER)-INFINITY
                                : (NUMBER)INFINITY;
}

VECTOR_INLINE VECTOR TYPED(lanes_two)(lanes_fold fold, VECTOR a, VECTOR b)
{
    return fold == LANES_SUM    ? a + b
           : fold == LANES_PROD ? a * b
           : fold == LANES_MAX  ? vmax(a, b)
                                : vmin(a, b);
}

VECTOR_INLINE VECTOR TYPED(lanes_mapped)(lanes_map map, VECTOR x, VECTOR m)
{
    return map == LANES_ITSELF    ? x
           : map == LANES_SQUARED ? (x - m) * (x - m)
           : map == LANES_EXP     ? vexp(x - m)
                                  : vexp_down(x - m);
}

/* Whether a lane is one of the first `left`. */
VECTOR_INLINE MASK TYPED(lanes_first)(int64_t left)
{
    MASK at;
    memcpy(&at, TYPED(lanes_number), sizeof at);
    return at < (INTEGER)left;
}

VECTOR_INLINE VECTOR TYPED(lanes_some)(const NUMBER *from, int64_t left, NUMBER other)
{
    if (left >= VECTOR_LANES) return vload(from);
    if (left <= 0) return TYPED(vset)(other);
    return vselect(TYPED(lanes_first)(left), vload_part(from, left), TYPED(vset)(other));
}

VECTOR_INLINE void TYPED(lanes_put)(NUMBER *to, VECTOR x, int64_t left)
{
    if (left >= VECTOR_LANES)
        vstore(to, x);
    else
        vstore_part(to, x, left);
}

VECTOR_INLINE NUMBER TYPED(lanes_across)(lanes_fold fold, VECTOR *acc)
{
    for (int half = LANES_ALL / VECTOR_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) acc[i] = TYPED(lanes_two)(fold, acc[i], acc[i + half]);
    VECTOR v = acc[0];
    if (VECTOR_LANES > 8) v = TYPED(lanes_two)(fold, v, TYPED(LANES_ROTATE_8)(v));
    if (VECTOR_LANES > 4) v = TYPED(lanes_two)(fold, v, TYPED(LANES_ROTATE_4)(v));
    if (VECTOR_LANES > 2) v = TYPED(lanes_two)(fold, v, TYPED(LANES_ROTATE_2)(v));
    v = TYPED(lanes_two)(fold, v, TYPED(LANES_ROTATE_1)(v));
    return v[0];
}

/* Elements of a row at `from` with `left` to go, mapped; the identity behind. */
VECTOR_INLINE VECTOR TYPED(lanes_load)(lanes_fold fold, lanes_map map, const NUMBER *from,
                                       int64_t left, VECTOR m)
{
    if (left >= VECTOR_LANES) return TYPED(lanes_mapped)(map, vload(from), m);
    const VECTOR none = TYPED(vset)(TYPED(lanes_identity)(fold));
    if (left <= 0) return none;
    const VECTOR x = TYPED(lanes_mapped)(map, vload_part(from, left), m);
    return vselect(TYPED(lanes_first)(left), x, none);
}

/* The four elements of a group that belong to one lane, for a vector of lanes. */
VECTOR_INLINE VECTOR TYPED(lanes_group)(lanes_fold fold, lanes_map map, const NUMBER *x, VECTOR m)
{
    const VECTOR a = TYPED(lanes_mapped)(map, vload(x), m);
    const VECTOR b = TYPED(lanes_mapped)(map, vload(x + LANES_ALL), m);
    const VECTOR c = TYPED(lanes_mapped)(map, vload(x + 2 * LANES_ALL), m);
    const VECTOR d = TYPED(lanes_mapped)(map, vload(x + 3 * LANES_ALL), m);
    return TYPED(lanes_two)(fold, TYPED(lanes_two)(fold, a, b), TYPED(lanes_two)(fold, c, d));
}

/* The same of the last group, of which `left` elements are there. */
VECTOR_INLINE VECTOR TYPED(lanes_rest)(lanes_fold fold, lanes_map map, const NUMBER *x,
                                       int64_t left, VECTOR m)
{
    VECTOR t = TYPED(lanes_load)(fold, map, x, left, m);
    if (left > LANES_ALL)
        t = TYPED(lanes_two)(fold, t,
                             TYPED(lanes_load)(fold, map, x + LANES_ALL, left - LANES_ALL, m));
    if (left > 2 * LANES_ALL) {
        const VECTOR u = TYPED(lanes_load)(fold, map, x + 2 * LANES_ALL, left - 2 * LANES_ALL, m);
        const VECTOR v = TYPED(lanes_load)(fold, map, x + 3 * LANES_ALL, left - 3 * LANES_ALL, m);
        t = TYPED(lanes_two)(fold, t, TYPED(lanes_two)(fold, u, v));
    }
    return t;
}

VECTOR_INLINE void TYPED(lanes_abreast)(lanes_fold fold, lanes_map map, const int rows,
                                        const NUMBER *const x[], int64_t n, const NUMBER mean[],
                                        const NUMBER *next, NUMBER to[])
{
    enum { N = LANES_ALL / VECTOR_LANES };
    VECTOR m[LANES_ABREAST], acc[LANES_ABREAST][N];
    for (int r = 0; r < rows; r++) {
        m[r] = TYPED(vset)(mean[r]);
        for (int v = 0; v < N; v++) acc[r][v] = TYPED(vset)(TYPED(lanes_identity)(fold));
    }
    int64_t i = 0;
    for (; i + LANES_GROUP <= n; i += LANES_GROUP) {
        for (int at = 0; next && at < LANES_GROUP; at += 64 / (int)sizeof *next)
            __builtin_prefetch(next + i + at);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < N; v++) {
                const VECTOR t = TYPED(lanes_group)(fold, map, x[r] + i + v * VECTOR_LANES, m[r]);
                acc[r][v] = TYPED(lanes_two)(fold, acc[r][v], t);
            }
    }
    for (int r = 0; r < rows && i < n; r++)
        for (int v = 0; v < N; v++) {
            const int64_t at = i + v * VECTOR_LANES;
            const VECTOR t = TYPED(lanes_rest)(fold, map, x[r] + at, n - at, m[r]);
            acc[r][v] = TYPED(lanes_two)(fold, acc[r][v], t);
        }
    for (int r = 0; r < rows; r++) to[r] = TYPED(lanes_across)(fold, acc[r]);
}

VECTOR_INLINE NUMBER TYPED(lanes_row_and)(lanes_fold fold, lanes_map map, const NUMBER *x,
                                          int64_t n, NUMBER mean, const NUMBER *next)
{
    NUMBER y;
    TYPED(lanes_abreast)(fold, map, 1, &x, n, &mean, next, &y);
    return y;
}

VECTOR_INLINE NUMBER TYPED(lanes_row)(lanes_fold fold, lanes_map map, const NUMBER *x, int64_t n,
                                      NUMBER mean)
{
    return TYPED(lanes_row_and)(fold, map, x, n, mean, NULL);
}

/* One lane of a group: `k` rows, 16 apart, into the lane's totals. Those `ahead` rows on, if that
 * is not 0, are fetched into the cache: what one lane reads of a row is too short for the machine
 * to foresee. */
VECTOR_INLINE void TYPED(lanes_lane)(lanes_fold fold, lanes_map map, const NUMBER *const *rows,
                                     int k, int64_t width, const NUMBER *mean, bool first,
                                     NUMBER *restrict acc, int ahead)
{
    for (int64_t c = 0; c < width; c += VECTOR_LANES) {
        const int64_t left = width - c;
        if (ahead)
            for (int i = 0; i < 4; i++) __builtin_prefetch(rows[i * LANES_ALL + ahead] + c);
        const VECTOR m = map == LANES_ITSELF ? (VECTOR){0} : vload(mean + c);
        VECTOR t = TYPED(lanes_mapped)(map, TYPED(lanes_some)(rows[0] + c, left, 0), m), u, v;
        if (k > 1) {
            u = TYPED(lanes_mapped)(map, TYPED(lanes_some)(rows[LANES_ALL] + c, left, 0), m);
            t = TYPED(lanes_two)(fold, t, u);
        }
        if (k > 2) {
            u = TYPED(lanes_mapped)(map, TYPED(lanes_some)(rows[2 * LANES_ALL] + c, left, 0), m);
            if (k > 3) {
                v = TYPED(lanes_mapped)(map, TYPED(lanes_some)(rows[3 * LANES_ALL] + c, left, 0),
                                        m);
                u = TYPED(lanes_two)(fold, u, v);
            }
            t = TYPED(lanes_two)(fold, t, u);
        }
        vstore(acc + c, first ? t : TYPED(lanes_two)(fold, vload(acc + c), t));
    }
}

VECTOR_INLINE void TYPED(lanes_rows)(lanes_fold fold, lanes_map map, const NUMBER *const *rows,
                                     int64_t n, int64_t width, const NUMBER *mean,
                                     NUMBER *restrict acc, NUMBER *to)
{
    const int64_t step = (width + VECTOR_LANES - 1) / VECTOR_LANES * VECTOR_LANES;
    for (int64_t i = 0; i < n; i += LANES_GROUP)
        for (int64_t l = 0; l < LANES_ALL && i + l < n; l++) {
            const NUMBER *const *at = rows + i + l;
            const int64_t k = (n - i - l + LANES_ALL - 1) / LANES_ALL;
            NUMBER *lane = acc + l * step;
            const int ahead =
                l + LANES_AHEAD < LANES_ALL ? LANES_AHEAD : LANES_AHEAD + LANES_GROUP - LANES_ALL;
            if (i + l + ahead + LANES_GROUP - LANES_ALL < n)
                TYPED(lanes_lane)(fold, map, at, 4, width, mean, i == 0, lane, ahead);
            else if (k >= 4)
                TYPED(lanes_lane)(fold, map, at, 4, width, mean, i == 0, lane, 0);
            else if (k == 3)
                TYPED(lanes_lane)(fold, map, at, 3, width, mean, i == 0, lane, 0);
            else if (k == 2)
                TYPED(lanes_lane)(fold, map, at, 2, width, mean, i == 0, lane, 0);
            else
                TYPED(lanes_lane)(fold, map, at, 1, width, mean, i == 0, lane, 0);
        }
    for (int64_t half = LANES_ALL / 2; half; half /= 2)
        for (int64_t l = 0; l < half && l + half < n; l++)
            for (int64_t c = 0; c < step; c += VECTOR_LANES) {
                NUMBER *a = acc + l * step + c;
                vstore(a, TYPED(lanes_two)(fold, vload(a), vload(a + half * step)));
            }
    memcpy(to, acc, (size_t)step * sizeof *to);
}

VECTOR_INLINE NUMBER TYPED(lanes_exp)(const NUMBER *x, NUMBER *y, int64_t n, NUMBER scale, NUMBER m,
                                      const NUMBER *next)
{
    enum { N = LANES_ALL / VECTOR_LANES, BLOCK = 1024 };
    NUMBER total = 0;
    for (int64_t block = 0; block < n; block += BLOCK) {
        const int64_t end = n - block < BLOCK ? n : block + BLOCK;
        VECTOR acc[N];
        for (int v = 0; v < N; v++) acc[v] = (VECTOR){0};
        for (int64_t i = block; i < end; i += LANES_ALL) {
            for (int at = 0; next && at < LANES_ALL; at += 64 / (int)sizeof *next)
                __builtin_prefetch(next + i + at);
            for (int v = 0; v < N; v++) {
                const int64_t at = i + v * VECTOR_LANES, left = end - at;
                if (left <= 0) break;
                const VECTOR some = TYPED(lanes_some)(x + at, left, (NUMBER)-INFINITY);
                const VECTOR e = vexp_down(some * scale - m);
                TYPED(lanes_put)(y + at, e, left);
                acc[v] += e;
            }
        }
        total += TYPED(lanes_across)(LANES_SUM, acc);
    }
    return total;
}

#undef TYPE
