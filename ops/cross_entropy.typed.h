/* The loops of cross-entropies and their gradients, for one float type. */

/* ---- Softmax cross-entropy ------------------------------------------------------------------- */

/* ln of the sum of e^(x - m) over a row, m being its maximum. The next row is asked for. */
VECTOR_INLINE NUMBER TYPED(entropy_log_sum)(const NUMBER *x, int64_t n, NUMBER *m)
{
    *m = lanes_row(LANES_MAX, LANES_ITSELF, x, n, 0);
    return TYPED(number_log)(
        lanes_row_and(LANES_SUM, LANES_EXP_DOWN, x, n, *m, softmax_next(x, n)));
}

static void TYPED(entropy_dense)(const void *labels, const void *x, void *loss, int64_t rows,
                                 int64_t n)
{
    enum { N = LANES_ALL / VECTOR_LANES };
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *z = (const NUMBER *)labels + r * n, *from = (const NUMBER *)x + r * n;
        NUMBER m;
        const NUMBER l = TYPED(entropy_log_sum)(from, n, &m);
        VECTOR acc[N];
        for (int v = 0; v < N; v++) acc[v] = (VECTOR){0};
        for (int64_t i = 0, left = n; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES) {
            /* A label of 0 counts nothing, even where the probability is 0. */
            const VECTOR w = lanes_some(z + i, left, 0);
            const VECTOR d = l - (lanes_some(from + i, left, 0) - m);
            acc[i / VECTOR_LANES % N] += vselect(w == 0, (VECTOR){0}, w * d);
        }
        ((NUMBER *)loss)[r] = lanes_across(LANES_SUM, acc);
    }
}

static void TYPED(entropy_dense_gradient)(const void *labels, const void *x, const void *dy,
                                          int64_t step, void *dx, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *z = (const NUMBER *)labels + r * n, *from = (const NUMBER *)x + r * n;
        const NUMBER g = ((const NUMBER *)dy)[r * step];
        NUMBER *to = (NUMBER *)dx + r * n;
        const NUMBER m = lanes_row(LANES_MAX, LANES_ITSELF, from, n, 0);
        const NUMBER total = lanes_row(LANES_SUM, LANES_ITSELF, z, n, 0);
        const NUMBER k = 1 / lanes_exp(from, to, n, 1, m, softmax_next(from, n));
        for (int64_t i = 0, left = n; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES) {
            const VECTOR p = lanes_some(to + i, left, 0) * k;
            lanes_put(to + i, (p * total - lanes_some(z + i, left, 0)) * g, left);
        }
    }
}

static void TYPED(entropy_sparse)(const void *labels, bool wide, const void *x, void *loss,
                                  int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *from = (const NUMBER *)x + r * n;
        NUMBER m;
        const NUMBER l = TYPED(entropy_log_sum)(from, n, &m);
        ((NUMBER *)loss)[r] = l - (from[label_at(labels, wide, r)] - m);
    }
}

static void TYPED(entropy_sparse_gradient)(const void *labels, bool wide, const void *x,
                                           const void *dy, int64_t step, void *dx, int64_t rows,
                                           int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        const NUMBER *from = (const NUMBER *)x + r * n;
        const NUMBER g = ((const NUMBER *)dy)[r * step];
        NUMBER *to = (NUMBER *)dx + r * n;
        const NUMBER m = lanes_row(LANES_MAX, LANES_ITSELF, from, n, 0);
        const NUMBER k = 1 / lanes_exp(from, to, n, 1, m, softmax_next(from, n));
        const int64_t label = label_at(labels, wide, r);
        const NUMBER there = (to[label] * k - 1) * g;
        for (int64_t i = 0, left = n; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES)
            lanes_put(to + i, lanes_some(to + i, left, 0) * k * g, left);
        to[label] = there;
    }
}

/* ---- Sigmoid cross-entropy ------------------------------------------------------------------- */

/* in: labels, logits, dy */
static void TYPED(sigmoid_cross_entropy_gradient)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    const NUMBER *from[3];
    VECTOR same[3];
    for (int k = 0; k < 3; k++) { /* one element that stands for all is read from a vector */
        same[k] = TYPED(vset)(*(const NUMBER *)in[k]);
        from[k] = steps[k] ? in[k] : (const NUMBER *)&same[k];
    }
    NUMBER *to = out;
    for (int64_t left = n; left > 0; left -= VECTOR_LANES, to += VECTOR_LANES) {
        VECTOR v[3];
        for (int k = 0; k < 3; k++) {
            v[k] = left >= VECTOR_LANES ? vload(from[k]) : vload_part(from[k], left);
            from[k] += steps[k] * VECTOR_LANES;
        }
        lanes_put(to, (vsigmoid(v[1]) - v[0]) * v[2], left);
    }
}

#undef TYPE
