/* The loops of lines.h for one float type. */

static NUMBER TYPED(lanes_sum)(VECTOR x)
{
    NUMBER sum = 0;
    for (int i = 0; i < VECTOR_LANES; i++) sum += x[i];
    return sum;
}

VECTOR_INLINE void TYPED(add_some)(const int lines, int64_t length, const NUMBER *a, int64_t stride,
                                   const NUMBER *z, int64_t step, NUMBER *restrict y)
{
    VECTOR factor[TOGETHER];
    UNROLL for (int r = 0; r < lines; r++) factor[r] = TYPED(vset)(z[r * step]);
    for (int64_t j = 0; j < length; j += VECTOR_LANES) {
        VECTOR sum = vload(y + j);
        UNROLL for (int r = 0; r < lines; r++) sum =
            vfma(factor[r], vload(a + r * stride + j), sum);
        vstore(y + j, sum);
    }
}

static void TYPED(lines_add)(int64_t lines, int64_t length, const NUMBER *a, int64_t stride,
                             const NUMBER *z, int64_t step, NUMBER *y)
{
    int64_t r = 0;
    for (; r + TOGETHER <= lines; r += TOGETHER)
        TYPED(add_some)(TOGETHER, length, a + r * stride, stride, z + r * step, step, y);
    for (; r < lines; r++)
        TYPED(add_some)(1, length, a + r * stride, stride, z + r * step, step, y);
}

VECTOR_INLINE void TYPED(dot_some)(const int lines, int64_t length, const NUMBER *a, int64_t stride,
                                   const NUMBER *x, NUMBER *sums)
{
    VECTOR sum[TOGETHER];
    UNROLL for (int r = 0; r < lines; r++) sum[r] = (VECTOR){0};
    for (int64_t j = 0; j < length; j += VECTOR_LANES) {
        const VECTOR factor = vload(x + j);
        UNROLL for (int r = 0; r < lines; r++) sum[r] =
            vfma(factor, vload(a + r * stride + j), sum[r]);
    }
    UNROLL for (int r = 0; r < lines; r++) sums[r] = TYPED(lanes_sum)(sum[r]);
}

static void TYPED(lines_dot)(int64_t lines, int64_t length, const NUMBER *a, int64_t stride,
                             const NUMBER *x, NUMBER *sums)
{
    int64_t r = 0;
    for (; r + TOGETHER <= lines; r += TOGETHER)
        TYPED(dot_some)(TOGETHER, length, a + r * stride, stride, x, sums + r);
    for (; r < lines; r++) TYPED(dot_some)(1, length, a + r * stride, stride, x, sums + r);
}

/* Both at once, of four lines: y += the sum of z[r] line(r), sums[r] += line(r) x. */
static void TYPED(lines_both)(int64_t length, const NUMBER *a, int64_t stride, const NUMBER *x,
                              const NUMBER *z, NUMBER *sums, NUMBER *restrict y)
{
    VECTOR sum[4] = {0}, factor[4];
    UNROLL for (int r = 0; r < 4; r++) factor[r] = TYPED(vset)(z[r]);
    for (int64_t j = 0; j < length; j += VECTOR_LANES) {
        const VECTOR at = vload(x + j);
        VECTOR down = vload(y + j);
        UNROLL for (int r = 0; r < 4; r++)
        {
            const VECTOR line = vload(a + r * stride + j);
            sum[r] = vfma(at, line, sum[r]);
            down = vfma(factor[r], line, down);
        }
        vstore(y + j, down);
    }
    UNROLL for (int r = 0; r < 4; r++) sums[r] += TYPED(lanes_sum)(sum[r]);
}

static void TYPED(lines_symmetric)(int64_t first, int64_t last, int64_t n, const NUMBER *a,
                                   int64_t stride, const NUMBER *x, NUMBER *y)
{
    for (int64_t i = first; i < last; i += 4) {
        const int64_t square = i / LINES_UNIT * LINES_UNIT, right = square + LINES_UNIT;
        const NUMBER *line = a + i * stride;
        NUMBER sums[4];
        TYPED(dot_some)(4, LINES_UNIT, line + square, stride, x + square, sums);
        TYPED(lines_both)(n - right, line + right, stride, x + right, x + i, sums, y + right);
        for (int r = 0; r < 4; r++) y[i + r] += sums[r];
    }
}

static void TYPED(lines_substitute)(bool lower, bool unit, int64_t n, const NUMBER *t, int64_t row,
                                    int64_t column, int64_t length, NUMBER *b, int64_t stride)
{
    NUMBER factors[LINES_FEW];
    const int64_t step = lower ? 1 : -1, start = lower ? 0 : n - 1;
    for (int64_t s = 0; s < n; s++) {
        const int64_t i = start + s * step;
        NUMBER *y = b + i * stride;
        for (int64_t p = 0; p < s; p++) factors[p] = -t[i * row + (start + p * step) * column];
        TYPED(lines_add)(s, length, b + start * stride, step * stride, factors, 1, y);
        if (unit) continue;
        const VECTOR pivot = TYPED(vset)(t[i * (row + column)]);
        for (int64_t j = 0; j < length; j += VECTOR_LANES) vstore(y + j, vload(y + j) / pivot);
    }
}

static NUMBER TYPED(size)(NUMBER x)
{
    return x < 0 ? -x : x;
}

static int64_t TYPED(lines_largest)(int64_t n, const NUMBER *x)
{
    VECTOR most = {0};
    NUMBER largest = 0;
    int64_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        const VECTOR size = TYPED(vabs)(vload(x + i));
        most = vselect(size > most, size, most);
    }
    for (int l = 0; l < VECTOR_LANES; l++) largest = most[l] > largest ? most[l] : largest;
    for (; i < n; i++) largest = TYPED(size)(x[i]) > largest ? TYPED(size)(x[i]) : largest;
    for (i = 0; i < n; i++)
        if (TYPED(size)(x[i]) == largest) return i;
    return 0;
}

static double TYPED(lines_squares)(int64_t n, const NUMBER *x)
{
    enum { SUMS = 16 };
    double sums[SUMS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++) sums[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; k < SUMS; k++) sum += sums[k];
    for (; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

#undef TYPE
