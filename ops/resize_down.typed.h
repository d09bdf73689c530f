/* The sum of rows, from elements FROM to elements TYPE, from the first row to the last. */

#define RESIZE_PASTE(name, from, to)  resize_##name##_##from##_##to
#define RESIZE_PASTED(name, from, to) RESIZE_PASTE(name, from, to)
#define RESIZE_DOWN(name)             RESIZE_PASTED(name, FROM, TYPE)
#define RESIZE_FROM                   TYPED_PASTE(number, FROM)

/* n elements of k <= 4 rows, added to what there is if `more`; k and more are constants. */
static inline __attribute__((always_inline)) void RESIZE_DOWN(some)(int k, bool more,
                                                                    const void *const *rows,
                                                                    const NUMBER *w, int64_t n,
                                                                    NUMBER *restrict to)
{
    const RESIZE_FROM *restrict a = rows[0], *restrict b = k > 1 ? rows[1] : a,
                                *restrict c = k > 2 ? rows[2] : a,
                                *restrict d = k > 3 ? rows[3] : a;
    const NUMBER wa = w[0], wb = k > 1 ? w[1] : 0, wc = k > 2 ? w[2] : 0, wd = k > 3 ? w[3] : 0;
    for (int64_t i = 0; i < n; i++) {
        NUMBER sum = wa * (NUMBER)a[i];
        if (more) sum = to[i] + sum;
        if (k > 1) sum += wb * (NUMBER)b[i];
        if (k > 2) sum += wc * (NUMBER)c[i];
        if (k > 3) sum += wd * (NUMBER)d[i];
        to[i] = sum;
    }
}

static void RESIZE_DOWN(add)(const void *const *rows, const NUMBER *w, int64_t count, int64_t n,
                             NUMBER *to)
{
    switch (count) {
    case 1: RESIZE_DOWN(some)(1, true, rows, w, n, to); return;
    case 2: RESIZE_DOWN(some)(2, true, rows, w, n, to); return;
    case 3: RESIZE_DOWN(some)(3, true, rows, w, n, to); return;
    default: RESIZE_DOWN(some)(4, true, rows, w, n, to);
    }
}

static void RESIZE_DOWN(down)(const void *const *rows, const void *weights, int64_t count,
                              int64_t n, void *to)
{
    const NUMBER *w = weights;
    switch (count) {
    case 1: RESIZE_DOWN(some)(1, false, rows, w, n, to); return;
    case 2: RESIZE_DOWN(some)(2, false, rows, w, n, to); return;
    case 3: RESIZE_DOWN(some)(3, false, rows, w, n, to); return;
    default: RESIZE_DOWN(some)(4, false, rows, w, n, to);
    }
    for (int64_t k = 4; k < count; k += 4) RESIZE_DOWN(add)(rows + k, w + k, count - k, n, to);
}

#undef RESIZE_PASTE
#undef RESIZE_PASTED
#undef RESIZE_DOWN
#undef RESIZE_FROM
#undef FROM
#undef TYPE
