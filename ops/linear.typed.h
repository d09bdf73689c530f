/* linear_relu_gradient's loops, for one float type. */

/* A vector of a row, from element j on. */
#define TAKE(from)     lanes_some((const NUMBER *)(from) + j, n - j, 0)
#define PUT(to, value) lanes_put((NUMBER *)(to) + j, value, n - j)

static void TYPED(linear_mask)(int64_t rows, int64_t n, const void *dys, const void *ys, void *gs,
                               void *sums)
{
    const VECTOR zero = TYPED(vset)(0);
    for (int64_t i = 0; i < rows; i++) {
        const NUMBER *dy = (const NUMBER *)dys + i * n, *y = (const NUMBER *)ys + i * n;
        NUMBER *g = (NUMBER *)gs + i * n;
        for (int64_t j = 0; j < n; j += VECTOR_LANES) {
            const VECTOR value = vselect((MASK)(TAKE(y) > zero), TAKE(dy), zero);
            PUT(g, value);
            PUT(sums, (i ? TAKE(sums) : zero) + value);
        }
    }
}

static void TYPED(linear_join)(int64_t groups, int64_t n, const void *sums, void *total)
{
    const VECTOR zero = TYPED(vset)(0);
    for (int64_t j = 0; j < n; j += VECTOR_LANES) {
        VECTOR sum = zero;
        for (int64_t i = 0; i < groups; i++) sum += TAKE((const NUMBER *)sums + i * n);
        PUT(total, sum);
    }
}

#undef TAKE
#undef PUT
#undef TYPE
