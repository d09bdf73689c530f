/* The loops of dilation and erosion for one float type. */

/* One or some vectors of adjoining results of a row, from element `at` of the run that begins at
 * `to`; `from` is the first cell of the run's first tap. */
VECTOR_INLINE void TYPED(morphology_some)(const morphology_row *r, const NUMBER *from, NUMBER *to,
                                          int64_t at, const int vecs, int64_t left,
                                          const bool minimum)
{
    const window *w = &r->work->w;
    const int64_t period = r->work->period, across = w->dilation[1] * w->channels,
                  down = w->dilation[0] * w->image[1] * w->channels;
    const NUMBER *row = (const NUMBER *)r->work->taps + r->taps[0] * w->extent[1] * period;
    const NUMBER *by[VECTOR_TOGETHER];
    VECTOR y[VECTOR_TOGETHER];
    for (int k = 0; k < vecs; k++) {
        by[k] = row + (at + k * VECTOR_LANES) % period;
        y[k] = TYPED(vset)(-INFINITY);
    }
    from += at;
    for (int64_t i = r->taps[0]; i < r->taps[1]; i++, from += down)
        for (int64_t j = r->columns[0]; j < r->columns[1]; j++) {
            const int64_t tap = ((i - r->taps[0]) * w->extent[1] + j) * period;
            const NUMBER *cell = from + (j - r->columns[0]) * across;
            for (int k = 0; k < vecs; k++) {
                const VECTOR x = lanes_some(cell + k * VECTOR_LANES, left, 0),
                             f = vload(by[k] + tap);
                y[k] = vmax(y[k], minimum ? f - x : x + f);
            }
        }
    for (int k = 0; k < vecs; k++)
        lanes_put(to + at + k * VECTOR_LANES, minimum ? -y[k] : y[k], left);
}

/* n adjoining results that have the same taps. */
VECTOR_INLINE void TYPED(morphology_run)(const morphology_row *r, const NUMBER *from, NUMBER *to,
                                         int64_t n, const bool minimum)
{
    enum { TURN = VECTOR_TOGETHER * VECTOR_LANES };
    int64_t i = 0;
    for (; i + TURN <= n; i += TURN)
        TYPED(morphology_some)(r, from, to, i, VECTOR_TOGETHER, VECTOR_LANES, minimum);
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        TYPED(morphology_some)(r, from, to, i, 1, VECTOR_LANES, minimum);
    if (i < n) TYPED(morphology_some)(r, from, to, i, 1, n - i, minimum);
}

/* The row's windows, those side by side at once that have all their columns. */
VECTOR_INLINE void TYPED(morphology_windows)(morphology_row *r, const bool minimum)
{
    const window *w = &r->work->w;
    const int64_t c = w->channels, span = (w->extent[1] - 1) * w->dilation[1];
    const int64_t whole = w->stride[1] == 1 ? w->image[1] - span + w->before[1] : 0;
    for (int64_t ow = 0, next; ow < w->out[1]; ow = next) {
        window_taps(w, 1, ow, &r->columns[0], &r->columns[1]);
        next = ow >= w->before[1] && ow < whole ? (whole < w->out[1] ? whole : w->out[1]) : ow + 1;
        const int64_t column = ow * w->stride[1] - w->before[1] + r->columns[0] * w->dilation[1];
        TYPED(morphology_run)
        (r, (const NUMBER *)r->x + column * c, (NUMBER *)r->y + ow * c, (next - ow) * c, minimum);
    }
}

static void TYPED(dilated_row)(morphology_row *r)
{
    TYPED(morphology_windows)(r, false);
}

static void TYPED(eroded_row)(morphology_row *r)
{
    TYPED(morphology_windows)(r, true);
}

#undef TYPE
