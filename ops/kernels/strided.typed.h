/* The functions that ops/kernels/strided.h lists, for one float type. */

VECTOR_INLINE VECTOR TYPED(strided_read)(const NUMBER *from, int64_t left, const int64_t step)
{
    enum { LAST = VECTOR_LANES - 1 };
    if (step == 1) return lanes_some(from, left, 0);
    if (step == 2) {
        const int64_t n = 2 * left - 1;
        const VECTOR a = lanes_some(from, n, 0), b = lanes_some(from + LAST, n - LAST, 0);
        return TYPED(STRIDED)(EVEN)(a, b);
    }
    NUMBER some[VECTOR_LANES] = {0};
    for (int64_t i = 0; i < left && i < VECTOR_LANES; i++) some[i] = from[i * step];
    return vload(some);
}

VECTOR_INLINE void TYPED(strided_add)(NUMBER *to, VECTOR x, int64_t left, const int64_t step)
{
    enum { LAST = VECTOR_LANES - 1 };
    if (step == 1) {
        lanes_put(to, lanes_some(to, left, 0) + x, left);
    } else if (step == 2) {
        const VECTOR zero = {0};
        const int64_t n = 2 * left - 1, rest = n - LAST;
        lanes_put(to, lanes_some(to, n, 0) + TYPED(STRIDED)(LOW)(x, zero), n);
        if (rest > 0)
            lanes_put(to + LAST, lanes_some(to + LAST, rest, 0) + TYPED(STRIDED)(HIGH)(x, zero),
                      rest);
    } else {
        NUMBER some[VECTOR_LANES];
        vstore(some, x);
        for (int64_t i = 0; i < left && i < VECTOR_LANES; i++) to[i * step] += some[i];
    }
}

VECTOR_INLINE void TYPED(strided_add_pairs)(NUMBER *to, VECTOR a, VECTOR b, int64_t left)
{
    const int64_t n = 2 * left, rest = n - VECTOR_LANES;
    NUMBER *second = to + VECTOR_LANES;
    lanes_put(to, lanes_some(to, n, 0) + TYPED(STRIDED)(FIRST)(a, b), n);
    if (rest > 0)
        lanes_put(second, lanes_some(second, rest, 0) + TYPED(STRIDED)(SECOND)(a, b), rest);
}

#undef TYPE
