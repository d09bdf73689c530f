/* The loops of attention for one float type. */

/* s = scale s + mask. */
static void TYPED(attention_add_mask)(const attention_block *b, int64_t at, NUMBER *s, int64_t n)
{
    const NUMBER scale = (NUMBER)b->scale;
    const int64_t step = b->mask_column;
    if (b->kind == MASK_F32) {
        const float *mask = (const float *)b->mask + at;
        for (int64_t i = 0; i < n; i++) s[i] = s[i] * scale + (NUMBER)mask[i * step];
    } else {
        const double *mask = (const double *)b->mask + at;
        for (int64_t i = 0; i < n; i++) s[i] = s[i] * scale + (NUMBER)mask[i * step];
    }
}

/* Masks the first n scores of a row; scales them unless that can wait. Returns the scale that is
 * still to be applied, above 0, so that the largest score stays the largest. */
static NUMBER TYPED(attention_mask_row)(const attention_block *b, int64_t row, NUMBER *s, int64_t n)
{
    const int64_t at = (b->row + row) * b->mask_row + b->column * b->mask_column;
    NUMBER scale = (NUMBER)b->scale;
    if (b->kind == MASK_F32 || b->kind == MASK_F64) {
        TYPED(attention_add_mask)(b, at, s, n);
        scale = 1;
    } else if (!(scale > 0)) {
        for (int64_t i = 0; i < n; i++) s[i] *= scale;
        scale = 1;
    }
    if (b->kind == MASK_BOOL) {
        const uint8_t *mask = (const uint8_t *)b->mask + at;
        for (int64_t i = 0; i < n; i++) s[i] = mask[i * b->mask_column] ? s[i] : (NUMBER)-INFINITY;
    }
    return scale;
}

/* What dropout leaves of a row. */
static void TYPED(attention_drop)(const attention_block *b, int64_t row, NUMBER *p)
{
    const uint8_t *keep = b->keep + row * b->columns;
    const NUMBER factor = (NUMBER)b->factor;
    for (int64_t i = 0; i < b->columns; i++) p[i] = keep[i] ? p[i] * factor : 0;
}

static void TYPED(attention_exponentials)(const attention_block *b, void *scores, void *largest,
                                          void *sum, void *rescale)
{
    for (int64_t r = 0; r < b->rows; r++) {
        NUMBER *s = (NUMBER *)scores + r * b->stride, *total = (NUMBER *)sum + r;
        const int64_t seen = attention_seen(b, r);
        const NUMBER scale = TYPED(attention_mask_row)(b, r, s, seen);
        const NUMBER before = ((NUMBER *)largest)[r];
        const NUMBER here = scale * lanes_row(LANES_MAX, LANES_ITSELF, s, seen, 0);
        const NUMBER m = here > before || here != here ? here : before;
        ((NUMBER *)largest)[r] = m;
        if (m == (NUMBER)-INFINITY) { /* nothing takes part yet */
            ((NUMBER *)rescale)[r] = 1;
            memset(s, 0, (size_t)b->columns * sizeof *s);
            continue;
        }
        /* of the first numbers: 0 without a power */
        const NUMBER change = before == (NUMBER)-INFINITY ? 0 : TYPED(number_exp)(before - m);
        ((NUMBER *)rescale)[r] = change;
        *total = *total * change + lanes_exp(s, s, seen, scale, m, NULL);
        memset(s + seen, 0, (size_t)(b->columns - seen) * sizeof *s);
        if (b->keep) TYPED(attention_drop)(b, r, s);
    }
}

static void TYPED(attention_join)(int64_t rows, int64_t n, const void *rescale, const void *t,
                                  void *y)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *from = (const NUMBER *)t + r * n, k = ((const NUMBER *)rescale)[r];
        NUMBER *to = (NUMBER *)y + r * n;
        for (int64_t i = 0; i < n; i++) to[i] = to[i] * k + from[i];
    }
}

static void TYPED(attention_finish)(int64_t rows, int64_t n, const void *largest, const void *sum,
                                    void *y, void *logsumexp)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER total = ((const NUMBER *)sum)[r], k = 1 / total;
        NUMBER *to = (NUMBER *)y + r * n;
        ((NUMBER *)logsumexp)[r] = ((const NUMBER *)largest)[r] + TYPED(number_log)(total);
        for (int64_t i = 0; i < n; i++) to[i] = total == 0 ? 0 : to[i] * k;
    }
}

static void TYPED(attention_probabilities)(const attention_block *b, void *scores,
                                           const void *largest, const void *sum)
{
    for (int64_t r = 0; r < b->rows; r++) {
        NUMBER *s = (NUMBER *)scores + r * b->stride;
        const NUMBER most = ((const NUMBER *)largest)[r], total = ((const NUMBER *)sum)[r];
        const int64_t seen = most == (NUMBER)-INFINITY ? 0 : attention_seen(b, r);
        const VECTOR scale = TYPED(vset)(TYPED(attention_mask_row)(b, r, s, seen));
        const VECTOR m = TYPED(vset)(most), k = TYPED(vset)(1 / total);
        memset(s + seen, 0, (size_t)(b->columns - seen) * sizeof *s);
        for (int64_t i = 0, left = seen; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
            lanes_put(s + i, vexp_down(lanes_some(s + i, left, 0) * scale - m) * k, left);
    }
}

static void TYPED(attention_gradient)(const attention_block *b, void *p, void *g, const void *delta)
{
    const NUMBER scale = (NUMBER)b->scale;
    for (int64_t r = 0; r < b->rows; r++) {
        NUMBER *of = (NUMBER *)p + r * b->stride, *to = (NUMBER *)g + r * b->stride;
        const NUMBER d = ((const NUMBER *)delta)[r];
        if (b->keep) TYPED(attention_drop)(b, r, to);
        for (int64_t i = 0; i < b->columns; i++) to[i] = of[i] * (to[i] - d) * scale;
        if (b->keep) TYPED(attention_drop)(b, r, of);
    }
}

static void TYPED(attention_add)(int64_t n, const void *t, void *y)
{
    for (int64_t i = 0; i < n; i++) ((NUMBER *)y)[i] += ((const NUMBER *)t)[i];
}

#undef TYPE
