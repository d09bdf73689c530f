/* The loops of conv_fold.simd.c for one float type. */

VECTOR_INLINE void TYPED(fold_some)(NUMBER *to, const NUMBER *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += VECTOR_LANES)
        lanes_put(to + i, lanes_some(to + i, n - i, 0) + lanes_some(from + i, n - i, 0), n - i);
}

/* The products of one position: of its kernel rows [first, last). */
VECTOR_INLINE void TYPED(fold_position)(const fold_plan *f, const NUMBER *products, NUMBER *image,
                                        int64_t u, int64_t first, int64_t last)
{
    const window *w = &f->c->w;
    const int64_t in = f->in, column = w->dilation[1] * f->cell;
    int64_t v0 = 0, v1 = w->extent[1];
    if (u < f->inner[0] || u >= f->inner[1]) window_taps(w, 1, u, &v0, &v1);
    products += u * f->row + v0 * in;
    image += (u * w->stride[1] - w->before[1] + v0 * w->dilation[1]) * f->cell;
    for (int64_t i = first; i < last; i++) {
        const NUMBER *from = products + i * w->extent[1] * in;
        NUMBER *to = image + i * w->dilation[0] * f->line;
        if (column == in)
            TYPED(fold_some)(to, from, (v1 - v0) * in);
        else
            for (int64_t v = v0; v < v1; v++, to += column, from += in)
                TYPED(fold_some)(to, from, in);
    }
}

/*
 * Positions that write no cell in common follow each other: a load that needs parts of several
 * stores before it would wait for all of them.
 */
static void TYPED(fold_positions)(const fold_plan *f, const NUMBER *products, NUMBER *image,
                                  int64_t first, int64_t last)
{
    const window *w = &f->c->w;
    const int64_t span = (w->extent[1] - 1) * w->dilation[1] + 1;
    const int64_t apart = conv_min(conv_ceil(span, w->stride[1]), w->out[1]);
    for (int64_t begin = 0; begin < apart; begin++)
        for (int64_t u = begin; u < w->out[1]; u += apart)
            TYPED(fold_position)(f, products, image, u, first, last);
}

/* Positions [u, end) of one tap, whose cells are `step` apart. What is behind the products can be
 * read. */
VECTOR_INLINE void TYPED(fold_tap)(const NUMBER *products, NUMBER *to, int64_t u, int64_t end,
                                   const int64_t step)
{
    for (int64_t left; (left = end - u) > 0; u += VECTOR_LANES)
        strided_add(to + u * step, vload(products + u), left, step);
}

static void TYPED(fold_taps)(const fold_plan *f, const NUMBER *products, NUMBER *image,
                             int64_t first, int64_t last)
{
    const window *w = &f->c->w;
    const int64_t step = w->stride[1];
    for (int64_t v = 0; v < w->extent[1]; v++) {
        const int64_t column = v * w->dilation[1] - w->before[1];
        const int64_t u = conv_max(conv_ceil(-column, step), 0);
        const int64_t end = conv_min(conv_ceil(w->image[1] - column, step), w->out[1]);
        for (int64_t i = first; i < last; i++) {
            const NUMBER *from = products + (i * w->extent[1] + v) * f->in * f->row;
            NUMBER *to = image + i * w->dilation[0] * f->line + column;
            for (int64_t j = 0; j < f->in; j++, from += f->row, to += f->plane)
                if (step == 1)
                    TYPED(fold_tap)(from, to, u, end, 1);
                else if (step == 2)
                    TYPED(fold_tap)(from, to, u, end, 2);
                else
                    TYPED(fold_tap)(from, to, u, end, step);
        }
    }
}

static void TYPED(fold_add)(const fold_plan *f, const void *products, void *image, int64_t oh,
                            int64_t begin, int64_t end)
{
    int64_t first, last;
    NUMBER *to = (NUMBER *)image + fold_rows(&f->c->w, oh, begin, end, &first, &last) * f->line;
    if (f->by_taps)
        TYPED(fold_taps)(f, products, to, first, last);
    else
        TYPED(fold_positions)(f, products, to, first, last);
}

#undef TYPE
