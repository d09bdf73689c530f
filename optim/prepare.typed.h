/* Clipping and weight decay of a strip, and its sum of squares, for one float type. */

/* The comparisons keep a NaN. */
static void TYPED(prepare_strip)(const optim_preparation *how, const optim_part *p,
                                 NUMBER *restrict prepared)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w;
    const NUMBER scale = (NUMBER)how->scale, limit = (NUMBER)how->limit;
    const NUMBER decay = (NUMBER)how->decay, rate = (NUMBER)how->rate;
    for (int64_t i = 0; i < p->n; i++) {
        NUMBER x = g[i] * scale;
        x = x > limit ? limit : x;
        prepared[i] = x < -limit ? -limit : x;
    }
    if (decay != 0)
        for (int64_t i = 0; i < p->n; i++) w[i] -= w[i] * decay * rate;
}

/*
 * Element i is added to sum i mod SUMS. So additions don't depend on each other, and the result
 * does not depend on the width of the vectors.
 */
static double TYPED(prepare_squares)(int64_t n, const NUMBER *g)
{
    enum { SUMS = 32 };
    double sums[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) sums[j] += (double)g[i + j] * (double)g[i + j];
    for (int j = 0; i + j < n; j++) sums[j] += (double)g[i + j] * (double)g[i + j];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

static void TYPED(accumulate_strip)(double scale, double steps, int64_t n, const NUMBER *restrict g,
                                    NUMBER *restrict sum)
{
    const NUMBER factor = (NUMBER)scale, count = (NUMBER)steps;
    if (steps > 0)
        for (int64_t i = 0; i < n; i++) sum[i] = (g[i] * factor + sum[i]) / count;
    else
        for (int64_t i = 0; i < n; i++) sum[i] = g[i] * factor + sum[i];
}

static void TYPED(average_strip)(double momentum, bool overwrites, int64_t n, NUMBER *restrict w,
                                 NUMBER *restrict average)
{
    const NUMBER keep = (NUMBER)momentum, take = 1 - keep;
    for (int64_t i = 0; i < n; i++) average[i] = keep * average[i] + take * w[i];
    if (overwrites)
        for (int64_t i = 0; i < n; i++) w[i] = average[i];
}

#undef TYPE
