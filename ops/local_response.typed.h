/* The loops of neighbour_sum and local_response_normalization for one float type. */

/* x / base^beta. */
VECTOR_INLINE VECTOR TYPED(response)(const neighbours *p, VECTOR x, VECTOR sum)
{
    const VECTOR base = sum * (NUMBER)p->o.alpha + (NUMBER)p->o.bias;
    if (p->o.beta == 0.5) return x / vsqrt(base);
    if (p->o.beta == 1) return x / base;
    return x * vpow(base, vset(base, (NUMBER)-p->o.beta));
}

/* Some rows. They are laid out in `room` first, zeros between them, so that each sum takes the same
 * steps, and what is read was written a while ago. */
VECTOR_INLINE void TYPED(neighbour_rows)(const neighbours *p, const NUMBER *x, NUMBER *y,
                                         int64_t rows, NUMBER *room, const bool normalize)
{
    const int64_t n = p->n, wide = neighbours_wide(p, sizeof(NUMBER));
    for (int64_t row = 0; row < rows; row++) {
        NUMBER *to = room + row * wide + p->radius;
        for (int64_t i = 0; i < n; i += VECTOR_LANES) {
            const VECTOR v = lanes_some(x + row * n + i, n - i, 0);
            lanes_put(to + i, normalize ? v * v : v, n - i);
        }
    }
    for (int64_t row = 0; row < rows; row++, x += n, y += n)
        for (int64_t i = 0; i < n; i += VECTOR_LANES) {
            const NUMBER *from = room + row * wide + i;
            VECTOR sum = {0};
            for (int64_t d = 0; d <= 2 * p->radius; d++) sum += vload(from + d);
            if (normalize) sum = TYPED(response)(p, lanes_some(x + i, n - i, 0), sum);
            if (p->stream)
                vstream(y + i, sum);
            else
                lanes_put(y + i, sum, n - i);
        }
    if (p->stream) vstream_end();
}

static void TYPED(neighbours_sum)(const neighbours *p, const void *x, void *y, int64_t rows,
                                  void *room)
{
    TYPED(neighbour_rows)(p, x, y, rows, room, false);
}

static void TYPED(neighbours_response)(const neighbours *p, const void *x, void *y, int64_t rows,
                                       void *room)
{
    TYPED(neighbour_rows)(p, x, y, rows, room, true);
}

#undef TYPE
