/* The loops of layer_norm.simd.c for one float type. */

enum { TYPED(norm_block) = 4096 }; /* elements that are summed before they go to a double */

/* The sum of n adjoining numbers, or of the squares of their distances to m; meanwhile n numbers
 * at `next` are prefetched, unless it is NULL. */
VECTOR_INLINE double TYPED(norm_sum)(lanes_map map, const NUMBER *x, int64_t n, NUMBER m,
                                     const NUMBER *next)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += TYPED(norm_block)) {
        const int64_t some = n - i < TYPED(norm_block) ? n - i : TYPED(norm_block);
        sum += lanes_row_and(LANES_SUM, map, x + i, some, m, next ? next + i : NULL);
    }
    return sum;
}

static NUMBER TYPED(norm_root)(double variance, double epsilon)
{
    return (NUMBER)(1 / sqrt(variance + epsilon));
}

/* ---- Rows: each is a group, each of its elements a channel ----------------------------------- */

/* 1 / sqrt(variance + epsilon) of a row, and its mean; meanwhile as many numbers at `next` and
 * `after` are prefetched, unless NULL. */
static NUMBER TYPED(norm_row_statistics)(const norm_work *w, const NUMBER *x, NUMBER *mean,
                                         const NUMBER *next, const NUMBER *after)
{
    const int64_t n = w->p.channels;
    *mean = 0;
    if (w->p.centred) *mean = (NUMBER)(TYPED(norm_sum)(LANES_ITSELF, x, n, 0, next) / (double)n);
    const double squares = TYPED(norm_sum)(LANES_SQUARED, x, n, *mean, after);
    return TYPED(norm_root)(squares / (double)n, w->p.epsilon);
}

/* A vector of a row's result, or its first `left` numbers. */
VECTOR_INLINE void TYPED(norm_results)(const NUMBER *x, const NUMBER *gamma, const NUMBER *beta,
                                       int64_t left, NUMBER mean, NUMBER r, NUMBER *y, bool stream)
{
    const VECTOR scale = gamma ? lanes_some(gamma, left, 0) * r : TYPED(vset)(r);
    VECTOR v = (lanes_some(x, left, 0) - mean) * scale;
    if (beta) v += lanes_some(beta, left, 0);
    if (stream)
        vstream(y, v);
    else
        lanes_put(y, v, left);
}

VECTOR_INLINE void TYPED(norm_row_forward)(const norm_work *w, int64_t row, const NUMBER *gamma,
                                           const NUMBER *beta, const bool stream)
{
    const int64_t n = w->p.channels;
    const NUMBER *x = (const NUMBER *)w->x + row * n;
    NUMBER *y = (NUMBER *)w->y + row * n, mean;
    const NUMBER *next = w->ahead && row + w->ahead < w->p.batch ? x + w->ahead * n : NULL;
    const NUMBER r = TYPED(norm_row_statistics)(w, x, &mean, next, NULL);
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        TYPED(norm_results)(x + i, gamma ? gamma + i : NULL, beta ? beta + i : NULL, VECTOR_LANES,
                            mean, r, y + i, stream);
    if (i < n)
        TYPED(norm_results)(x + i, gamma ? gamma + i : NULL, beta ? beta + i : NULL, n - i, mean, r,
                            y + i, false);
}

VECTOR_INLINE void TYPED(norm_some_forward)(const norm_work *w, int64_t first, int64_t last,
                                            const NUMBER *gamma, const NUMBER *beta)
{
    if (w->stream)
        for (; first < last; first++) TYPED(norm_row_forward)(w, first, gamma, beta, true);
    else
        for (; first < last; first++) TYPED(norm_row_forward)(w, first, gamma, beta, false);
}

static void TYPED(norm_rows_forward)(const norm_work *w, int64_t first, int64_t last)
{
    const NUMBER *gamma = w->gamma, *beta = w->beta;
    if (gamma && beta) /* in most calls: the compiler leaves out the questions */
        TYPED(norm_some_forward)(w, first, last, gamma, beta);
    else
        TYPED(norm_some_forward)(w, first, last, gamma, beta);
}

/* Of `left` elements, or a whole vector: gamma dy into *first, gamma dy (x - mean) into *second. */
VECTOR_INLINE void TYPED(norm_terms)(const NUMBER *x, const NUMBER *dy, const NUMBER *gamma,
                                     int64_t left, VECTOR mean, VECTOR *first, VECTOR *second)
{
    const VECTOR d = lanes_some(dy, left, 0), k = gamma ? lanes_some(gamma, left, 0) : vset(d, 1);
    *first = k * d;
    *second = k * (d * (lanes_some(x, left, 0) - mean));
}

/* sums[0] = of gamma dy, sums[1] = of gamma dy (x - mean); in the order of ops/kernels/lanes.h, by
 * blocks. */
VECTOR_INLINE void TYPED(norm_row_sums)(const NUMBER *x, const NUMBER *dy, const NUMBER *gamma,
                                        NUMBER m, int64_t n, double sums[2])
{
    enum { N = LANES_ALL / VECTOR_LANES };
    const VECTOR mean = TYPED(vset)(m);
    sums[0] = sums[1] = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < TYPED(norm_block) ? n : i + TYPED(norm_block);
        VECTOR a[N], b[N];
        for (int v = 0; v < N; v++) a[v] = b[v] = (VECTOR){0};
        for (; i + LANES_GROUP <= end; i += LANES_GROUP)
            for (int v = 0; v < N; v++) {
                VECTOR of_a[4], of_b[4];
                for (int k = 0; k < 4; k++) {
                    const int64_t at = i + k * LANES_ALL + v * VECTOR_LANES;
                    TYPED(norm_terms)(x + at, dy + at, gamma ? gamma + at : NULL, VECTOR_LANES,
                                      mean, &of_a[k], &of_b[k]);
                }
                a[v] += (of_a[0] + of_a[1]) + (of_a[2] + of_a[3]);
                b[v] += (of_b[0] + of_b[1]) + (of_b[2] + of_b[3]);
            }
        for (; i < end; i += LANES_ALL)
            for (int v = 0; v < N && i + v * VECTOR_LANES < end; v++) {
                const int64_t at = i + v * VECTOR_LANES;
                VECTOR of_a, of_b;
                TYPED(norm_terms)(x + at, dy + at, gamma ? gamma + at : NULL, end - at, mean, &of_a,
                                  &of_b);
                a[v] += of_a;
                b[v] += of_b;
            }
        i = end;
        sums[0] += lanes_across(LANES_SUM, a);
        sums[1] += lanes_across(LANES_SUM, b);
    }
}

/* What the gradient of a row takes, as ops/layer_norm.h says. */
typedef struct TYPED(norm_row) {
    NUMBER mean, r, a, b;
} TYPED(norm_row);

static TYPED(norm_row)
    TYPED(norm_row_of)(const norm_work *w, const NUMBER *x, const NUMBER *dy, int64_t ahead)
{
    const NUMBER *gamma = w->gamma;
    const int64_t n = w->p.channels;
    TYPED(norm_row) row;
    double of[2];
    row.r = TYPED(norm_row_statistics)(w, x, &row.mean, ahead ? x + ahead : NULL,
                                       ahead ? dy + ahead : NULL);
    if (gamma)
        TYPED(norm_row_sums)(x, dy, gamma, row.mean, n, of);
    else
        TYPED(norm_row_sums)(x, dy, NULL, row.mean, n, of);
    row.a = w->p.centred ? (NUMBER)(of[0] / (double)n) : 0;
    row.b = (NUMBER)(of[1] / (double)n) * row.r * row.r;
    return row;
}

/* Some vectors of columns of `rows` rows that are n numbers apart, or the first `left` columns of
 * one. */
VECTOR_INLINE void TYPED(norm_gradients)(const int rows, const int vectors,
                                         const TYPED(norm_row) *of, const NUMBER *x,
                                         const NUMBER *dy, const NUMBER *gamma, int64_t n,
                                         int64_t left, NUMBER *dx, NUMBER *dgamma, NUMBER *dbeta,
                                         bool stream)
{
    enum { MOST = COPY_LINE / VECTOR_BYTES };
    VECTOR k[MOST], to_gamma[MOST], to_beta[MOST];
    for (int j = 0; j < vectors; j++) {
        const int at = j * VECTOR_LANES;
        k[j] = gamma ? lanes_some(gamma + at, left, 0) : TYPED(vset)(1);
        to_gamma[j] = lanes_some(dgamma + at, left, 0);
        to_beta[j] = lanes_some(dbeta + at, left, 0);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            const int64_t at = i * n + j * VECTOR_LANES;
            const VECTOR d = lanes_some(x + at, left, 0) - of[i].mean;
            const VECTOR v = lanes_some(dy + at, left, 0);
            to_gamma[j] += v * d * of[i].r;
            to_beta[j] += v;
            const VECTOR y = of[i].r * (k[j] * v - of[i].a - d * of[i].b);
            if (stream)
                vstream(dx + at, y);
            else
                lanes_put(dx + at, y, left);
        }
    for (int j = 0; j < vectors; j++) {
        lanes_put(dgamma + j * VECTOR_LANES, to_gamma[j], left);
        lanes_put(dbeta + j * VECTOR_LANES, to_beta[j], left);
    }
}

VECTOR_INLINE void TYPED(norm_some_rows)(const int rows, const norm_work *w, int64_t first,
                                         NUMBER *dgamma, NUMBER *dbeta, const bool stream)
{
    const int64_t n = w->p.channels;
    const NUMBER *x = (const NUMBER *)w->x + first * n, *dy = (const NUMBER *)w->dy + first * n;
    const NUMBER *gamma = w->gamma;
    NUMBER *dx = (NUMBER *)w->y + first * n;
    TYPED(norm_row) of[NORM_ROWS];
    int64_t i = 0;
    const int64_t ahead = w->ahead && first + w->ahead + rows <= w->p.batch ? w->ahead * n : 0;
    for (int k = 0; k < rows; k++) of[k] = TYPED(norm_row_of)(w, x + k * n, dy + k * n, ahead);
    /* Past the caches a whole line at a time: halves of lines of several rows in turn are slow. */
    const int vectors = stream ? COPY_LINE / VECTOR_BYTES : 1, step = vectors * VECTOR_LANES;
    for (; i + step <= n; i += step)
        TYPED(norm_gradients)(rows, vectors, of, x + i, dy + i, gamma ? gamma + i : NULL, n,
                              VECTOR_LANES, dx + i, dgamma + i, dbeta + i, stream);
    for (; i < n; i += VECTOR_LANES)
        TYPED(norm_gradients)(rows, 1, of, x + i, dy + i, gamma ? gamma + i : NULL, n, n - i,
                              dx + i, dgamma + i, dbeta + i, false);
}

/* Rows [first, last); what they add to dgamma and dbeta into `sums`, 2 n numbers. Some rows at a
 * time, as long as the cache holds them, so that the sums are read and written once for all. */
static void TYPED(norm_rows_backward)(const norm_work *w, int64_t first, int64_t last, void *sums)
{
    const int64_t n = w->p.channels;
    NUMBER *dgamma = sums, *dbeta = dgamma + n;
    memset(sums, 0, 2 * (size_t)n * sizeof *dgamma);
    if (n <= NORM_ROW_SHORT && w->stream)
        for (; first + NORM_ROWS <= last; first += NORM_ROWS)
            TYPED(norm_some_rows)(NORM_ROWS, w, first, dgamma, dbeta, true);
    else if (n <= NORM_ROW_SHORT)
        for (; first + NORM_ROWS <= last; first += NORM_ROWS)
            TYPED(norm_some_rows)(NORM_ROWS, w, first, dgamma, dbeta, false);
    for (; first < last; first++) TYPED(norm_some_rows)(1, w, first, dgamma, dbeta, w->stream);
}

/* ---- Any groups ------------------------------------------------------------------------------ */

/*
 * A unit is some groups of one sample, `width` channels from x on: in each of `before` rows,
 * `stride` numbers apart, width * after adjoining numbers. sums[c] = the sum of term(c) over all
 * of channel c's elements: x; (x - mean)^2; or, with dy, dy (x - mean), and dy without x.
 */
typedef enum TYPED(norm_term) {
    TYPED(norm_itself),
    TYPED(norm_squared),
    TYPED(norm_product),
} TYPED(norm_term);

static inline NUMBER TYPED(norm_term_of)(TYPED(norm_term) term, NUMBER x, NUMBER dy, NUMBER m)
{
    const NUMBER d = x - m;
    return term == TYPED(norm_itself) ? x : term == TYPED(norm_squared) ? d * d : dy * d;
}

/* Channels side by side: after is 1. */
VECTOR_INLINE void TYPED(norm_columns)(TYPED(norm_term) term, const norm_unit *u, const NUMBER *x,
                                       const NUMBER *dy, const NUMBER *mean, double *sums)
{
    enum { ROWS = 64, SOME = 64 };
    for (int64_t c = 0; c < u->width; c += SOME) {
        const int64_t n = u->width - c < SOME ? u->width - c : SOME;
        for (int64_t i = 0; i < n; i++) sums[c + i] = 0;
        for (int64_t row = 0; row < u->before; row += ROWS) {
            NUMBER some[SOME] = {0};
            for (int64_t r = row; r < u->before && r < row + ROWS; r++) {
                const NUMBER *restrict from = x + r * u->stride + c;
                const NUMBER *restrict by = dy + r * u->stride + c;
                for (int64_t i = 0; i < n; i++)
                    some[i] += TYPED(norm_term_of)(term, from[i], by[i], mean[c + i]);
            }
            for (int64_t i = 0; i < n; i++) sums[c + i] += some[i];
        }
    }
}

/* Channels one after the other: sixteen sums at once, of 4096 elements at a time. */
VECTOR_INLINE void TYPED(norm_lines)(TYPED(norm_term) term, const norm_unit *u, const NUMBER *x,
                                     const NUMBER *dy, const NUMBER *mean, double *sums)
{
    for (int64_t c = 0; c < u->width; c++) {
        sums[c] = 0;
        for (int64_t r = 0; r < u->before; r++) {
            const NUMBER *from = x + r * u->stride + c * u->after;
            const NUMBER *by = dy + r * u->stride + c * u->after;
            for (int64_t i = 0; i < u->after;) {
                const int64_t end =
                    u->after - i < TYPED(norm_block) ? u->after : i + TYPED(norm_block);
                NUMBER lane[LANES_ALL] = {0};
                for (; i + LANES_ALL <= end; i += LANES_ALL)
                    for (int l = 0; l < LANES_ALL; l++)
                        lane[l] += TYPED(norm_term_of)(term, from[i + l], by[i + l], mean[c]);
                for (int l = 0; i < end; i++, l++)
                    lane[l] += TYPED(norm_term_of)(term, from[i], by[i], mean[c]);
                double sum = 0;
                for (int l = 0; l < LANES_ALL; l++) sum += lane[l];
                sums[c] += sum;
            }
        }
    }
}

static void TYPED(norm_channel_sums)(TYPED(norm_term) term, const norm_unit *u, const NUMBER *x,
                                     const NUMBER *dy, const NUMBER *mean, double *sums)
{
    if (u->after > 1) {
        if (term == TYPED(norm_itself))
            TYPED(norm_lines)(TYPED(norm_itself), u, x, dy, mean, sums);
        else if (term == TYPED(norm_squared))
            TYPED(norm_lines)(TYPED(norm_squared), u, x, dy, mean, sums);
        else
            TYPED(norm_lines)(TYPED(norm_product), u, x, dy, mean, sums);
    } else if (term == TYPED(norm_itself))
        TYPED(norm_columns)(TYPED(norm_itself), u, x, dy, mean, sums);
    else if (term == TYPED(norm_squared))
        TYPED(norm_columns)(TYPED(norm_squared), u, x, dy, mean, sums);
    else
        TYPED(norm_columns)(TYPED(norm_product), u, x, dy, mean, sums);
}

/* The sums of a group's channels, each times its gamma (NULL: 1), together. */
static double TYPED(norm_group_sum)(const double *sums, const NUMBER *gamma, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += gamma ? gamma[i] * sums[i] : sums[i];
    return sum;
}

/* mean[c] and r[c] of the unit's channels. */
static void TYPED(norm_statistics)(const norm_work *w, const norm_unit *u, const NUMBER *x,
                                   NUMBER *mean, NUMBER *r, double *sums)
{
    const int64_t n = w->p.channels;
    const double count = (double)norm_count(&w->p);
    memset(mean, 0, (size_t)u->width * sizeof *mean);
    if (w->p.centred) {
        TYPED(norm_channel_sums)(TYPED(norm_itself), u, x, x, mean, sums);
        for (int64_t c = 0; c < u->width; c += n) {
            const NUMBER m = (NUMBER)(TYPED(norm_group_sum)(sums + c, NULL, n) / count);
            for (int64_t i = 0; i < n; i++) mean[c + i] = m;
        }
    }
    TYPED(norm_channel_sums)(TYPED(norm_squared), u, x, x, mean, sums);
    for (int64_t c = 0; c < u->width; c += n) {
        const double variance = TYPED(norm_group_sum)(sums + c, NULL, n) / count;
        const NUMBER root = TYPED(norm_root)(variance, w->p.epsilon);
        for (int64_t i = 0; i < n; i++) r[c + i] = root;
    }
}

static void TYPED(norm_unit_forward)(const norm_work *w, const norm_unit *u, void *scratch)
{
    double *sums = scratch;
    NUMBER *mean = (NUMBER *)(sums + 2 * u->width), *scale = mean + u->width,
           *shift = scale + u->width;
    const NUMBER *x = (const NUMBER *)w->x + u->first, *gamma = w->gamma, *beta = w->beta;
    NUMBER *y = (NUMBER *)w->y + u->first;
    TYPED(norm_statistics)(w, u, x, mean, scale, sums);
    for (int64_t c = 0; c < u->width; c++) {
        if (gamma) scale[c] = gamma[u->channel + c] * scale[c];
        shift[c] = beta ? beta[u->channel + c] : 0;
    }
    for (int64_t row = 0; row < u->before; row++, x += u->stride, y += u->stride)
        if (u->after == 1)
            for (int64_t c = 0; c < u->width; c++) y[c] = (x[c] - mean[c]) * scale[c] + shift[c];
        else
            for (int64_t c = 0; c < u->width; c++)
                for (int64_t i = c * u->after; i < (c + 1) * u->after; i++)
                    y[i] = (x[i] - mean[c]) * scale[c] + shift[c];
}

/* a[c] and b[c] from the sums of dy and, after them, those of dy (x - mean); what the sample adds
 * to dgamma and dbeta into its row of w->sums. */
static void TYPED(norm_shares_of)(const norm_work *w, const norm_unit *u, const double *sums,
                                  const NUMBER *r, NUMBER *a, NUMBER *b)
{
    const int64_t n = w->p.channels, all = norm_channels(&w->p);
    const double count = (double)norm_count(&w->p);
    const NUMBER *gamma = w->gamma ? (const NUMBER *)w->gamma + u->channel : NULL;
    NUMBER *dgamma = (NUMBER *)w->sums + 2 * u->sample * all + u->channel;
    for (int64_t c = 0; c < u->width; c++) {
        dgamma[c] = (NUMBER)sums[u->width + c] * r[c];
        dgamma[all + c] = (NUMBER)sums[c];
    }
    for (int64_t c = 0; c < u->width; c += n) {
        const NUMBER *k = gamma ? gamma + c : NULL;
        const double of_dy = TYPED(norm_group_sum)(sums + c, k, n);
        const double of_products = TYPED(norm_group_sum)(sums + u->width + c, k, n);
        for (int64_t i = c; i < c + n; i++) {
            a[i] = w->p.centred ? (NUMBER)(of_dy / count) : 0;
            b[i] = (NUMBER)(of_products / count) * r[i] * r[i];
        }
    }
}

static void TYPED(norm_unit_backward)(const norm_work *w, const norm_unit *u, void *scratch)
{
    double *sums = scratch;
    NUMBER *mean = (NUMBER *)(sums + 2 * u->width), *r = mean + u->width, *a = r + u->width,
           *b = a + u->width, *k = b + u->width;
    const NUMBER *x = (const NUMBER *)w->x + u->first, *dy = (const NUMBER *)w->dy + u->first;
    NUMBER *dx = (NUMBER *)w->y + u->first;
    TYPED(norm_statistics)(w, u, x, mean, r, sums);
    TYPED(norm_channel_sums)(TYPED(norm_itself), u, dy, dy, mean, sums);
    TYPED(norm_channel_sums)(TYPED(norm_product), u, x, dy, mean, sums + u->width);
    TYPED(norm_shares_of)(w, u, sums, r, a, b);
    for (int64_t c = 0; c < u->width; c++)
        k[c] = w->gamma ? ((const NUMBER *)w->gamma)[u->channel + c] : 1;
    for (int64_t row = 0; row < u->before; row++) {
        if (u->after == 1)
            for (int64_t c = 0; c < u->width; c++)
                dx[c] = r[c] * (k[c] * dy[c] - a[c] - (x[c] - mean[c]) * b[c]);
        else
            for (int64_t c = 0; c < u->width; c++)
                for (int64_t i = c * u->after; i < (c + 1) * u->after; i++)
                    dx[i] = r[c] * (k[c] * dy[i] - a[c] - (x[i] - mean[c]) * b[c]);
        x += u->stride, dy += u->stride, dx += u->stride;
    }
}

/* to += from, n numbers. */
static void TYPED(norm_join)(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((NUMBER *)to)[i] += ((const NUMBER *)from)[i];
}

#undef TYPE
