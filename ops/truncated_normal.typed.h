/* Normal numbers between bounds, for one float type: of TensorFlow's arithmetic, step by step. */

/* One distribution. low and high are those of (x - mean) / stddev; where one bound is infinite, or
 * both are below the mean, all is mirrored by a negative stddev, so that low is the one that
 * counts. */
typedef struct TYPED(truncated) {
    proposal from;
    NUMBER mean, stddev, low, high, rate;
} TYPED(truncated);

static TYPED(truncated) TYPED(truncated_of)(const double *parameters)
{
    const NUMBER mean = (NUMBER)parameters[0], stddev = (NUMBER)parameters[1],
                 minval = (NUMBER)parameters[2], maxval = (NUMBER)parameters[3];
    const bool mirrored = isinf(minval) || maxval < mean;
    TYPED(truncated)
    t = {.mean = mean, .stddev = mirrored ? -stddev : stddev};
    t.low = ((mirrored ? maxval : minval) - mean) / t.stddev;
    t.high = ((mirrored ? minval : maxval) - mean) / t.stddev;
    const NUMBER root = TYPED(number_sqrt)(t.low * t.low + 4);
    const NUMBER width =
        2 * TYPED(number_exp)((NUMBER)0.5 + t.low * (t.low - root) / 4) / (t.low + root);
    const NUMBER inside = (NUMBER)1.3; /* so many stddevs beside the mean: enough are accepted */
    const bool around = (t.low < -inside && t.high >= 0) || (t.high > inside && t.low <= 0);
    t.from = around ? NORMALS : t.high - t.low < width ? UNIFORMS : EXPONENTIALS;
    t.rate = (t.low + root) / 2;
    return t;
}

/* What so many rounds propose: z, and whether it is accepted. */
static void TYPED(propose)(const TYPED(truncated) *t, const philox *at, int64_t rounds, NUMBER *z,
                           bool *fits)
{
    enum { GROUP = 16 / sizeof(NUMBER) }; /* numbers that a step of the counter makes */
    NUMBER units[2 * ROUNDS * GROUP];
    if (t->from == NORMALS) {
        TYPED(philox_normal)(at, rounds * GROUP, z, 0, 1);
        for (int64_t i = 0; i < rounds * GROUP; i++) fits[i] = z[i] >= t->low && z[i] <= t->high;
        return;
    }
    TYPED(philox_uniform)(at, rounds * (t->from == UNIFORMS ? 2 : 1) * GROUP, units, 0, 1);
    if (t->from == UNIFORMS) {
        const NUMBER width = t->high - t->low, most = t->low < 0 ? 0 : t->low * t->low;
        for (int64_t i = 0; i < rounds * GROUP; i++) {
            const int64_t place = i / GROUP * 2 * GROUP + i % GROUP;
            z[i] = units[place] * width + t->low;
            fits[i] = units[place + GROUP] <= TYPED(number_exp)((most - z[i] * z[i]) / 2);
        }
        return;
    }
    for (int64_t i = 0; i < rounds * GROUP / 2; i++) {
        z[i] = -TYPED(number_log)(units[2 * i]) / t->rate + t->low;
        const NUMBER off = t->low < t->rate ? t->rate - z[i] : t->low - t->rate;
        fits[i] = units[2 * i + 1] <= TYPED(number_exp)(-off * off / 2) && z[i] < t->high;
    }
}

/* n numbers, `stride` apart; the counter moves on. false: none of MOST_MISSES was accepted. */
static bool TYPED(truncated_fill)(const double *parameters, philox *at, int64_t n, int64_t stride,
                                  NUMBER *y)
{
    enum { GROUP = 16 / sizeof(NUMBER) };
    const TYPED(truncated) t = TYPED(truncated_of)(parameters);
    const int64_t each = t.from == EXPONENTIALS ? GROUP / 2 : GROUP;
    const uint64_t steps = t.from == UNIFORMS ? 2 : 1;
    NUMBER z[ROUNDS * GROUP];
    bool fits[ROUNDS * GROUP];
    int misses = 0;
    for (int64_t done = 0; done < n;) {
        const int64_t wanted = (n - done + each - 1) / each,
                      rounds = wanted < ROUNDS ? wanted : ROUNDS;
        int64_t used = 0;
        TYPED(propose)(&t, at, rounds, z, fits);
        for (; used < rounds * each && done < n; used++) {
            misses = fits[used] ? 0 : misses + 1;
            if (misses == MOST_MISSES) return false;
            y[done * stride] = z[used] * t.stddev + t.mean;
            done += fits[used];
        }
        philox_skip(at, (uint64_t)((used + each - 1) / each) * steps);
    }
    return true;
}

#undef TYPE
