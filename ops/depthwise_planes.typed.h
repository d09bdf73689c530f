/* The loops of depthwise_planes.simd.c for one float type. */

/* Copies a row to a line, zeros where the line has no cell. */
static void TYPED(planes_line)(const planes_call *p, const NUMBER *row, NUMBER *line)
{
    const window *w = &p->d->w;
    const int64_t s = w->stride[1], width = p->from[1];
    int64_t before = w->before[1];
    if (p->back) before = (w->extent[1] - 1) * w->dilation[1] - before;
    if (p->back && s > 1) {
        memset(line, 0, (size_t)p->line * sizeof *line);
        for (int64_t i = 0; i < width; i++) {
            const int64_t at = i * s + before;
            if (at >= 0 && at < p->span) line[at] = row[i];
        }
        return;
    }
    for (int64_t phase = 0; phase < p->phases; phase++, line += p->span) {
        const int64_t first = before - phase, last = first + width;
        const int64_t begin = planes_clamp(first > 0 ? (first + s - 1) / s : 0, 0, p->span);
        const int64_t end = planes_clamp(last > 0 ? (last + s - 1) / s : 0, begin, p->span);
        const NUMBER *from = row - first;
        memset(line, 0, (size_t)begin * sizeof *line);
        if (s == 1)
            memcpy(line + begin, from + begin, (size_t)(end - begin) * sizeof *line);
        else
            for (int64_t i = begin; i < end; i++) line[i] = from[i * s];
        memset(line + end, 0, (size_t)(p->span - end) * sizeof *line);
    }
}

/* Copies the rows that [begin, end) of the result read. Returns the first one. */
static int64_t TYPED(planes_fill)(const planes_call *p, const planes_scratch *s,
                                  const NUMBER *plane, int64_t begin, int64_t end)
{
    NUMBER *lines = (NUMBER *)s->lines;
    int64_t first, last;
    planes_reach(p, begin, end, &first, &last);
    for (int64_t i = first; i < last; i++)
        TYPED(planes_line)(p, plane + i * p->from[1], lines + (i - first) * p->line);
    return first;
}

/* Fills the line that tells which cells are there. Its source is the first of the lines. */
static void TYPED(planes_there)(const planes_call *p, const planes_scratch *s)
{
    NUMBER *ones = (NUMBER *)s->lines;
    for (int64_t i = 0; i < p->from[1]; i++) ones[i] = 1;
    TYPED(planes_line)(p, ones, (NUMBER *)s->there);
}

/* sum + line tap, where a cell is there. */
VECTOR_INLINE VECTOR TYPED(planes_add)(const bool careful, const NUMBER *line, const NUMBER *there,
                                       VECTOR tap, VECTOR sum)
{
    const VECTOR new = vfma(vload(line), tap, sum);
    return careful ? vselect(vload(there) != 0, new, sum) : new;
}

/* `count` vectors of a row's outputs from `at` on, of which `left` are there. */
VECTOR_INLINE int TYPED(planes_some)(const planes_call *p, const planes_scratch *s,
                                     const planes_row *rows, int n, NUMBER *to, int64_t at,
                                     int64_t left, const bool add, const bool careful,
                                     const int count)
{
    const NUMBER *kernel = (const NUMBER *)s->kernel, *lines = (const NUMBER *)s->lines + at;
    const NUMBER *there = (const NUMBER *)s->there + at;
    const int64_t columns = p->d->w.extent[1];
    VECTOR acc[PLANES_SOME];
    to += at;
    for (int i = 0; i < count; i++)
        acc[i] = add ? lanes_some(to + i * VECTOR_LANES, left - i * VECTOR_LANES, 0) : (VECTOR){0};
    for (int r = 0; r < n; r++) {
        const NUMBER *taps = kernel + rows[r].kernel, *line = lines + rows[r].line;
        for (int64_t v = 0; v < columns; v++) {
            const VECTOR tap = TYPED(vset)(taps[v]);
            const int64_t offset = p->offsets[v];
            for (int i = 0; i < count; i++)
                acc[i] = TYPED(planes_add)(careful, line + offset + i * VECTOR_LANES,
                                           there + offset + i * VECTOR_LANES, tap, acc[i]);
        }
    }
    if (p->ends) {
        const VECTOR zero = {0}, bias = TYPED(vset)(kernel[p->d->w.extent[0] * columns]);
        for (int i = 0; i < count; i++) acc[i] += bias;
        for (int i = 0; p->d->relu && i < count; i++)
            acc[i] = vselect((MASK)(acc[i] < zero), zero, acc[i]);
    }
    for (int i = 0; i < count; i++)
        lanes_put(to + i * VECTOR_LANES, acc[i], left - i * VECTOR_LANES);
    return count * VECTOR_LANES;
}

/* A row of the result; `add`: to what it holds. */
VECTOR_INLINE void TYPED(planes_outputs)(const planes_call *p, const planes_scratch *s,
                                         const planes_row *rows, int n, NUMBER *to, const bool add,
                                         const bool careful)
{
    for (int64_t at = 0, left; (left = p->to[1] - at) > 0;)
        if (left > (PLANES_SOME - 1) * VECTOR_LANES)
            at += TYPED(planes_some)(p, s, rows, n, to, at, left, add, careful, PLANES_SOME);
        else if (left > VECTOR_LANES)
            at += TYPED(planes_some)(p, s, rows, n, to, at, left, add, careful, 2);
        else
            at += TYPED(planes_some)(p, s, rows, n, to, at, left, add, careful, 1);
}

/* Gathers the kernel of an output channel, and behind it the bias. Returns whether all numbers of
 * the kernel are finite. */
static bool TYPED(planes_gather)(const planes_call *p, const planes_scratch *s, int64_t channel)
{
    const window *w = &p->d->w;
    const int64_t step = w->channels * p->d->multiplier;
    const NUMBER *from = (const NUMBER *)p->d->kernel->data + channel;
    NUMBER *to = (NUMBER *)s->kernel;
    bool finite = true;
    for (int64_t i = 0; i < w->extent[0] * w->extent[1]; i++) {
        to[i] = from[i * step];
        finite = finite && isfinite(to[i]);
    }
    if (p->ends) to[w->extent[0] * w->extent[1]] = ((const NUMBER *)p->d->bias->data)[channel];
    return finite;
}

/* A band of a plane of x, with the planes of y that its channel makes. */
static void TYPED(planes_band)(const planes_call *p, const planes_scratch *s, int64_t plane,
                               int64_t band)
{
    const depthwise_call *d = p->d;
    const int64_t m = d->multiplier, from = p->from[0] * p->from[1], to = p->to[0] * p->to[1];
    const int64_t begin = band * p->rows, end = planes_clamp(begin + p->rows, 0, p->to[0]);
    int64_t first = 0;
    for (int64_t q = 0; q < m; q++) {
        const int64_t other = plane * m + q;
        const bool finite = TYPED(planes_gather)(p, s, plane % d->w.channels * m + q);
        if (!finite) TYPED(planes_there)(p, s);
        if (p->back)
            first = TYPED(planes_fill)(p, s, (const NUMBER *)d->y->data + other * from, begin, end);
        else if (q == 0 || !finite)
            first = TYPED(planes_fill)(p, s, (const NUMBER *)d->x->data + plane * from, begin, end);
        NUMBER *result =
            p->back ? (NUMBER *)d->x->data + plane * to : (NUMBER *)d->y->data + other * to;
        for (int64_t r = begin; r < end; r++) {
            planes_row rows[PLANES_WINDOW];
            const int n = planes_rows(p, r, first, rows);
            NUMBER *row = result + r * p->to[1];
            const bool add = p->back && q > 0;
            if (!finite)
                TYPED(planes_outputs)(p, s, rows, n, row, add, true);
            else if (add)
                TYPED(planes_outputs)(p, s, rows, n, row, true, false);
            else
                TYPED(planes_outputs)(p, s, rows, n, row, false, false);
        }
    }
}

/* Adds x dy to the sums of `count` taps from number `tap` on, for rows [begin, end) of dy, which
 * have kernel rows from h on. */
VECTOR_INLINE int TYPED(planes_products)(const planes_call *p, const planes_scratch *s,
                                         const NUMBER *dy, NUMBER *sums, int64_t begin, int64_t end,
                                         int64_t first, int64_t tap, const bool careful,
                                         const int count)
{
    const window *w = &p->d->w;
    const NUMBER *there[PLANES_TAPS], *from[PLANES_TAPS];
    const int64_t columns = w->extent[1], width = w->out[1];
    VECTOR acc[PLANES_TAPS];
    for (int i = 0; i < count; i++) {
        const int64_t h = (tap + i) / columns, offset = p->offsets[(tap + i) % columns];
        const int64_t row = begin * w->stride[0] - w->before[0] + h * w->dilation[0] - first;
        from[i] = (const NUMBER *)s->lines + row * p->line + offset;
        there[i] = (const NUMBER *)s->there + offset;
        acc[i] = vload(sums + i * VECTOR_LANES);
    }
    for (int64_t r = begin, at = 0; r < end; r++, at += w->stride[0] * p->line)
        for (int64_t ow = 0; ow < width; ow += VECTOR_LANES) {
            const int64_t left = width - ow;
            const VECTOR by = lanes_some(dy + r * width + ow, left, 0);
            for (int i = 0; i < count; i++) {
                const VECTOR sum = vfma(vload(from[i] + at + ow), by, acc[i]);
                const MASK is = (vload(there[i] + ow) != 0) & TYPED(lanes_first)(left);
                acc[i] = careful ? vselect(is, sum, acc[i]) : sum;
            }
        }
    for (int i = 0; i < count; i++) vstore(sums + i * VECTOR_LANES, acc[i]);
    return count;
}

/* Rows [begin, end) of dy, which have the kernel rows [h0, h1). */
VECTOR_INLINE void TYPED(planes_taps)(const planes_call *p, const planes_scratch *s,
                                      const NUMBER *dy, NUMBER *sums, int64_t begin, int64_t end,
                                      int64_t first, int64_t h0, int64_t h1, const bool careful)
{
    const int64_t columns = p->d->w.extent[1], all = h1 * columns;
    for (int64_t i = h0 * columns; i < all;) {
        NUMBER *at = sums + i * VECTOR_LANES;
        if (all - i >= PLANES_TAPS)
            i += TYPED(planes_products)(p, s, dy, at, begin, end, first, i, careful, PLANES_TAPS);
        else if (all - i >= 3)
            i += TYPED(planes_products)(p, s, dy, at, begin, end, first, i, careful, 3);
        else
            i += TYPED(planes_products)(p, s, dy, at, begin, end, first, i, careful, 1);
    }
}

/* A band of dy's plane. */
VECTOR_INLINE void TYPED(planes_add_band)(const planes_call *p, const planes_scratch *s,
                                          const NUMBER *dy, NUMBER *sums, int64_t begin,
                                          int64_t end, int64_t first, const bool careful)
{
    for (int64_t r = begin, next; r < end; r = next) {
        int64_t h0, h1, g0, g1;
        window_taps(&p->d->w, 0, r, &h0, &h1);
        for (next = r + 1; next < end; next++) {
            window_taps(&p->d->w, 0, next, &g0, &g1);
            if (g0 != h0 || g1 != h1) break;
        }
        TYPED(planes_taps)(p, s, dy, sums, r, next, first, h0, h1, careful);
    }
}

/* The sums of a channel's taps over a piece of the batch: vectors. */
VECTOR_INLINE void TYPED(planes_sums)(const planes_call *p, const planes_scratch *s,
                                      int64_t channel, int64_t piece, const bool careful)
{
    const depthwise_call *d = p->d;
    const window *w = &d->w;
    const int64_t m = d->multiplier, taps = w->extent[0] * w->extent[1], batch = w->batch;
    NUMBER *sums = (NUMBER *)s->sums;
    memset(sums, 0, (size_t)(taps * m * VECTOR_LANES) * sizeof *sums);
    if (careful) TYPED(planes_there)(p, s);
    for (int64_t n = batch * piece / p->pieces; n < batch * (piece + 1) / p->pieces; n++) {
        const int64_t plane = n * w->channels + channel;
        const NUMBER *x = (const NUMBER *)d->x->data + plane * p->from[0] * p->from[1];
        const NUMBER *dy = (const NUMBER *)d->y->data + plane * m * p->to[0] * p->to[1];
        for (int64_t begin = 0; begin < p->to[0]; begin += p->rows) {
            const int64_t end = planes_clamp(begin + p->rows, 0, p->to[0]);
            const int64_t first = TYPED(planes_fill)(p, s, x, begin, end);
            for (int64_t q = 0; q < m; q++)
                TYPED(planes_add_band)(p, s, dy + q * p->to[0] * p->to[1],
                                       sums + q * taps * VECTOR_LANES, begin, end, first, careful);
        }
    }
}

/* Folds the sums into the piece's kernel. Returns whether all are finite. */
VECTOR_INLINE bool TYPED(planes_fold)(const planes_call *p, const planes_scratch *s,
                                      int64_t channel, int64_t piece)
{
    const depthwise_call *d = p->d;
    const int64_t m = d->multiplier, taps = d->w.extent[0] * d->w.extent[1];
    NUMBER *to = (NUMBER *)p->sums + piece * d->kernel->size + channel * m;
    const NUMBER *sums = (const NUMBER *)s->sums;
    bool finite = true;
    for (int64_t q = 0; q < m; q++)
        for (int64_t i = 0; i < taps; i++, sums += VECTOR_LANES) {
            NUMBER sum = 0;
            for (int j = 0; j < VECTOR_LANES; j++) sum += sums[j];
            to[i * d->w.channels * m + q] = sum;
            finite = finite && isfinite(sum);
        }
    return finite;
}

static void TYPED(planes_kernel)(const planes_call *p, const planes_scratch *s, int64_t channel,
                                 int64_t piece)
{
    TYPED(planes_sums)(p, s, channel, piece, false);
    if (TYPED(planes_fold)(p, s, channel, piece)) return;
    TYPED(planes_sums)(p, s, channel, piece, true);
    TYPED(planes_fold)(p, s, channel, piece);
}

#undef TYPE
