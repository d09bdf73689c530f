/* The loops of resize.simd.c along a row. Sums go from the first input to the last, whatever the
 * form of the loop. */

typedef NUMBER TYPED(resize_four) __attribute__((vector_size(4 * sizeof(NUMBER))));

/* Four elements from anywhere. */
static inline TYPED(resize_four) TYPED(resize_load)(const NUMBER *from)
{
    TYPED(resize_four) v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* One output cell, channel by channel. */
static inline void TYPED(resize_cell)(const NUMBER *from, const NUMBER *w, int64_t count,
                                      int64_t channels, NUMBER *to)
{
    for (int64_t c = 0; c < channels; c++) {
        NUMBER sum = w[0] * from[c];
        for (int64_t k = 1; k < count; k++) sum += w[k] * from[k * channels + c];
        to[c] = sum;
    }
}

/* Cells of three or four channels, by vectors of four, which write into the cell behind and read
 * one element of it: not for the last ones. */
static inline void TYPED(resize_cells_of_four)(const resize_axis *axis, int64_t channels,
                                               int64_t end, const NUMBER *from, NUMBER *to)
{
    const NUMBER *w = axis->weights;
    for (int64_t i = 0; i < end; i++, w += axis->most) {
        const NUMBER *at = from + axis->first[i] * channels;
        const int64_t n = axis->count[i];
        TYPED(resize_four) sum = w[0] * TYPED(resize_load)(at);
        if (n == 2)
            sum += w[1] * TYPED(resize_load)(at + channels);
        else if (n == 4)
            sum = sum + w[1] * TYPED(resize_load)(at + channels) +
                  w[2] * TYPED(resize_load)(at + 2 * channels) +
                  w[3] * TYPED(resize_load)(at + 3 * channels);
        else
            for (int64_t k = 1; k < n; k++) sum += w[k] * TYPED(resize_load)(at + k * channels);
        memcpy(to + i * channels, &sum, sizeof sum);
    }
}

/* Single channels. */
static inline void TYPED(resize_single)(const resize_axis *axis, const NUMBER *from, NUMBER *to)
{
    const NUMBER *w = axis->weights;
    for (int64_t i = 0; i < axis->out; i++, w += axis->most) {
        const NUMBER *at = from + axis->first[i];
        NUMBER sum = w[0] * at[0];
        if (axis->count[i] == 2)
            sum += w[1] * at[1];
        else
            for (int64_t k = 1; k < axis->count[i]; k++) sum += w[k] * at[k];
        to[i] = sum;
    }
}

/* `left` elements, at most a vector, of the sum of cells that are `step` apart. */
VECTOR_INLINE VECTOR TYPED(resize_sum)(const NUMBER *at, int64_t step, const NUMBER *w, int64_t n,
                                       int64_t left)
{
    VECTOR sum = w[0] * lanes_some(at, left, 0);
    for (int64_t k = 1; k < n; k++) sum += w[k] * lanes_some(at + k * step, left, 0);
    return sum;
}

/* Many channels, by vectors of them. */
static inline void TYPED(resize_wide)(const resize_axis *axis, int64_t channels, const NUMBER *from,
                                      NUMBER *to)
{
    const NUMBER *w = axis->weights;
    for (int64_t i = 0; i < axis->out; i++, w += axis->most, to += channels) {
        const NUMBER *at = from + axis->first[i] * channels;
        const int64_t n = axis->count[i];
        int64_t c = 0;
        for (; n == 2 && c + VECTOR_LANES <= channels; c += VECTOR_LANES)
            vstore(to + c, TYPED(resize_sum)(at + c, channels, w, 2, VECTOR_LANES));
        for (; n == 4 && c + VECTOR_LANES <= channels; c += VECTOR_LANES)
            vstore(to + c, TYPED(resize_sum)(at + c, channels, w, 4, VECTOR_LANES));
        for (; c < channels; c += VECTOR_LANES)
            lanes_put(to + c, TYPED(resize_sum)(at + c, channels, w, n, channels - c),
                      channels - c);
    }
}

static void TYPED(resize_across)(const resize_axis *axis, int64_t channels, const void *from,
                                 void *to)
{
    if (channels == 1) {
        TYPED(resize_single)(axis, from, to);
        return;
    }
    if (channels > 4) {
        TYPED(resize_wide)(axis, channels, from, to);
        return;
    }
    const int64_t inner = channels > 2 ? axis->inner : 0;
    TYPED(resize_cells_of_four)(axis, channels, inner, from, to);
    for (int64_t i = inner; i < axis->out; i++)
        TYPED(resize_cell)((const NUMBER *)from + axis->first[i] * channels,
                           (const NUMBER *)axis->weights + i * axis->most, axis->count[i], channels,
                           (NUMBER *)to + i * channels);
}

/* The sum of rows of whole vectors, past the caches. */
static void TYPED(resize_past)(const void *const *rows, const void *weights, int64_t count,
                               int64_t n, void *to)
{
    const NUMBER *w = weights, *a = rows[0], *b = rows[count > 1];
    const NUMBER first = w[0], second = count > 1 ? w[1] : 0;
    for (int64_t i = 0; count == 2 && i < n; i += VECTOR_LANES)
        vstream((NUMBER *)to + i, first * vload(a + i) + second * vload(b + i));
    for (int64_t i = 0; count != 2 && i < n; i += VECTOR_LANES) {
        VECTOR sum = first * vload(a + i);
        for (int64_t k = 1; k < count; k++) sum += w[k] * vload((const NUMBER *)rows[k] + i);
        vstream((NUMBER *)to + i, sum);
    }
}

/* Sums of at most two along both axes at once, past the caches, for cells of whole vectors; as
 * resize_across and resize_past sum them. */
static void TYPED(resize_both)(const resize_axis *axis, int64_t channels, const void *const *rows,
                               const void *weights, int64_t count, void *to)
{
    const NUMBER *down = weights, *w = axis->weights, *upper = rows[0], *lower = rows[count > 1];
    NUMBER *y = to;
    for (int64_t i = 0; i < axis->out; i++, w += axis->most, y += channels) {
        const int64_t first = axis->first[i] * channels, n = axis->count[i];
        const NUMBER *a = upper + first, *b = lower + first;
        if (n == 2 && count == 2) {
            for (int64_t c = 0; c < channels; c += VECTOR_LANES)
                vstream(y + c,
                        down[0] * TYPED(resize_sum)(a + c, channels, w, 2, VECTOR_LANES) +
                            down[1] * TYPED(resize_sum)(b + c, channels, w, 2, VECTOR_LANES));
            continue;
        }
        for (int64_t c = 0; c < channels; c += VECTOR_LANES) {
            VECTOR sum = down[0] * TYPED(resize_sum)(a + c, channels, w, n, VECTOR_LANES);
            if (count == 2) sum += down[1] * TYPED(resize_sum)(b + c, channels, w, n, VECTOR_LANES);
            vstream(y + c, sum);
        }
    }
}

#undef TYPE
