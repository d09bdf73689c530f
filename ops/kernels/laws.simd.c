/* The loops of laws.h, for each instruction set. */
#include "ops/kernels/laws.h"

#ifdef ISA

#include "ops/kernels/philox_words.h"
#include "ops/kernels/vector.h"
#include <math.h>
#include <string.h>

enum { LANES = VECTOR_F64 };

/* ---- Numbers of the stream ------------------------------------------------------------------- */

/* Block number `block` of samples that have `each` steps of the counter: of those in `which`, which
 * ascend, or of all n. */
static void draw_blocks(const philox *p, int64_t k, int each, int n, const int *which, int block,
                        uint32_t *words)
{
    uint64_t steps[LAWS_MOST];
    philox at = *p;
    philox_skip(&at, (uint64_t)k * (uint64_t)each + (uint64_t)block);
    if (which)
        for (int i = 0; i < n; i++) steps[i] = (uint64_t)which[i] * (uint64_t)each;
    else
        for (int i = 0; i < n; i++) steps[i] = (uint64_t)i * (uint64_t)each;
    ISA_NAME(philox_words_at)(&at, n, steps, words);
}

/* Two words as a fraction: in [0, 1). */
VECTOR_INLINE vf64 unit_of(vu64 pair)
{
    return (vf64)((pair & 0xfffff) << 32 | pair >> 32 | 0x3ff0000000000000) - 1;
}

/* The two uniform numbers of a block, for each lane. */
VECTOR_INLINE void two_units(const uint32_t *words, vf64 *first, vf64 *last)
{
    vu64 a, b;
    memcpy(&a, words, sizeof a);
    memcpy(&b, words + 2 * LANES, sizeof b);
#if VECTOR_BYTES == 64
    *first = unit_of(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
    *last = unit_of(__builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
#elif VECTOR_BYTES == 32
    *first = unit_of(__builtin_shufflevector(a, b, 0, 2, 4, 6));
    *last = unit_of(__builtin_shufflevector(a, b, 1, 3, 5, 7));
#else
    *first = unit_of(__builtin_shufflevector(a, b, 0, 2));
    *last = unit_of(__builtin_shufflevector(a, b, 1, 3));
#endif
}

/* Uniform numbers k to k + n - 1 of the stream, two to a block; returns where the first one is. */
static const double *draw_units(const philox *p, int64_t k, int n, double *units)
{
    uint32_t words[2 * LAWS_MOST + 8 * LAWS_UNIT];
    philox at = *p;
    philox_skip(&at, (uint64_t)k / 2);
    const int odd = (int)(k % 2);
    ISA_NAME(philox_words)(&at, 1, (n + odd + 1) / 2, words);
    memset(words + (n + odd + 1) / 2 * 4, 0, 4 * LAWS_UNIT * sizeof *words);
    for (int i = 0; i < n + LANES; i += LANES) {
        vu64 pairs;
        memcpy(&pairs, words + 2 * i, sizeof pairs);
        vstore_f64(units + i, unit_of(pairs));
    }
    return units + odd;
}

/* ---- Functions nearly ------------------------------------------------------------------------ */

/* x = 2^e m with m around 1, s = (m - 1) / (m + 1): log x = e log 2 + 2 (s + s^3/3 + s^5/5 ...).
 * Of 0 it is -709. */
VECTOR_INLINE vf64 near_log(vf64 x)
{
    const vf64 magic = vset_f64(0x1.8p52);
    const vi64 e = (vi64)((vu64)x - 0x3fe6a09e667f3bcd) >> 52;
    const vf64 m = (vf64)((vu64)x - ((vu64)e << 52)), s = (m - 1) / (m + 1), z = s * s;
    const vf64 exponent = (vf64)((vi64)magic + e) - magic;
    const vf64 p = POLYNOMIAL_F64(z, 2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15,
                                  2. / 17, 2. / 19);
    return vfma_f64(exponent, vset_f64(0x1.62e42fefa39efp-1), vfma_f64(s * z, p, s + s));
}

/* log(1 + x) also of x near 0: what adding 1 loses is made good. */
VECTOR_INLINE vf64 near_log1p(vf64 x)
{
    const vf64 y = x + 1;
    return near_log(y) + (x - (y - 1)) / y;
}

/* e^x for -700 <= x <= 0. */
VECTOR_INLINE vf64 near_exp(vf64 x)
{
    const vf64 zero = {0};
    vf64 n;
    const vf64 m = vexp_parts_f64(x, zero, &n), magic = vset_f64(0x1.8p52);
    return (m + 1) * (vf64)((((vu64)(n + magic) - (vu64)magic) + 1023) << 52);
}

/* Sine and cosine of 2 pi u: of y, |y| <= pi / 4, in the quarter k. */
VECTOR_INLINE void near_sincos(vf64 u, vf64 *sine, vf64 *cosine)
{
    const vf64 magic = vset_f64(0x1.8p52), shifted = 4 * u + magic;
    const vf64 y = (4 * u - (shifted - magic)) * 0x1.921fb54442d18p0, z = y * y;
    const vf64 s = POLYNOMIAL_F64(z, 1., -1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800,
                                  1. / 6227020800, -1. / 1307674368000) *
                   y;
    const vf64 c = POLYNOMIAL_F64(z, 1., -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800,
                                  1. / 479001600, -1. / 87178291200, 1. / 20922789888000);
    const vi64 k = (vi64)shifted, odd = -(k & 1);
    *sine = (vf64)((vu64)vselect_f64(odd, c, s) ^ ((vu64)k & 2) << 62);
    *cosine = (vf64)((vu64)vselect_f64(odd, s, c) ^ (((vu64)k + 1) & 2) << 62);
}

/* ---- What is not sure ------------------------------------------------------------------------ */

#define SLACK 1e-11

/* Whether x may be on the other side of y: they are nearer than that share of y. */
VECTOR_INLINE vi64 too_near(vf64 x, vf64 y, vf64 share)
{
    return vabs_f64(x - y) <= share * y;
}

/* Whether 2e-11 more or less could be rounded to another float32: the bits that it does not have
 * are half of its last place, nearly. */
VECTOR_INLINE vi64 between_floats(vf64 x)
{
    const vi64 rest = ((vi64)x & 0x1fffffff) - (0x10000000 - 0x20000);
    return (rest >= 0) & (rest < 0x40000);
}

/* ---- Gamma and exponential ------------------------------------------------------------------- */

/* What is left of n samples: which ones, and whether for the lack of a root, as refused, or not
 * sure. */
typedef struct leftover {
    int n, which[LAWS_MOST];
    enum why { ROOTLESS, REFUSED, UNSURE } why[LAWS_MOST];
} leftover;

static void remain(leftover *r, int first, int n, unsigned taken, unsigned rootless,
                   unsigned unsure)
{
    for (unsigned rest = ~taken & ((1u << LANES) - 1); rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        if (first + lane >= n) return;
        r->which[r->n] = first + lane;
        r->why[r->n++] = unsure >> lane & 1 ? UNSURE : rootless >> lane & 1 ? ROOTLESS : REFUSED;
    }
}

/* One attempt of Marsaglia's and Tsang's method each, with a normal number and uniform ones, the
 * second for the power. */
static void try_gamma(int n, const double *alphas, const double *normals, const double *units,
                      const double *powers, double *y, leftover *r)
{
    r->n = 0;
    for (int i = 0; i < n; i += LANES) {
        const vf64 alpha = vload_f64(alphas + i), x = vload_f64(normals + i);
        const vf64 u = vload_f64(units + i), square = x * x;
        const vi64 small = alpha < 1;
        const vf64 d = alpha + vselect_f64(small, vset_f64(2.0 / 3), vset_f64(-1.0 / 3));
        const vf64 root = 1 + 1.0 / 3 / vsqrt_f64(d) * x, v = root * root * root;
        const vf64 surely = 1 - 0.0331 * square * square;
        const vi64 rootless = root <= 0;
        vi64 taken = (u < surely - SLACK) & ~rootless;
        vi64 unsure = (vabs_f64(u - surely) <= SLACK) | (vabs_f64(root) <= 0.02) | (alpha == 1);
        if (!vall_i64(taken | rootless | unsure)) {
            const vf64 excess = 0.5 * square + d * (1 - v + near_log(v)) - near_log(u);
            const vf64 slack = SLACK * (1 + d * (1 + vabs_f64(v)));
            unsure |= ~taken & ~rootless & ~((excess > slack) | (excess < -slack));
            taken |= ~rootless & (excess > slack);
        }
        vf64 value = d * v;
        if (vbits_i64(small)) {
            const vf64 raised = near_log(vload_f64(powers + i)) / alpha;
            const vf64 power = near_exp(vgreater_f64(raised, vset_f64(-700)));
            value = vselect_f64(small, value * power, value);
        }
        unsure |= between_floats(value);
        vstore_f64(y + i, value);
        const unsigned done = vbits_i64(taken & ~unsure);
        if (done + 1 != 1u << LANES) remain(r, i, n, done, vbits_i64(rootless), vbits_i64(unsure));
    }
}

static int list_unsure(int first, int n, unsigned unsure, int *left, int count)
{
    for (; unsure; unsure &= unsure - 1) {
        const int i = first + __builtin_ctz(unsure);
        if (i < n) left[count++] = i;
    }
    return count;
}

/* y = -log(1 - u) / rate */
static int exponentials(int n, const double *units, const double *rates, double *y, int *left)
{
    int count = 0;
    for (int i = 0; i < n; i += LANES) {
        vf64 value = -near_log(1 - vload_f64(units + i)); /* 1 - u is exact */
        if (rates) value /= vload_f64(rates + i);
        vstore_f64(y + i, value);
        count = list_unsure(i, n, vbits_i64(between_floats(value)), left, count);
    }
    return count;
}

int ISA_NAME(laws_exponential)(const philox *p, int64_t k, int n, const double *const *parameters,
                               double *y, int *left)
{
    double units[LAWS_MOST + 2 * LAWS_UNIT];
    return exponentials(n, draw_units(p, k, n, units), parameters[0], y, left);
}

/* The numbers that the first attempts take: of each sample's first block normal ones, of its second
 * uniform ones, the last one first. */
typedef struct gamma_numbers {
    double normals[2][LAWS_MOST], units[2][LAWS_MOST];
} gamma_numbers;

static void draw_gamma(const philox *p, int64_t k, int n, gamma_numbers *g)
{
    uint32_t words[4 * LAWS_MOST];
    draw_blocks(p, k, LAWS_STEPS, n, NULL, 0, words);
    for (int i = 0; i < n; i += LANES) {
        vf64 u, angle, sine, cosine;
        two_units(words + 4 * i, &u, &angle);
        const vf64 radius = vsqrt_f64(-2 * near_log(vgreater_f64(u, vset_f64(1e-7))));
        near_sincos(angle, &sine, &cosine);
        vstore_f64(g->normals[0] + i, cosine * radius);
        vstore_f64(g->normals[1] + i, sine * radius);
    }
    draw_blocks(p, k, LAWS_STEPS, n, NULL, 1, words);
    for (int i = 0; i < n; i += LANES) {
        vf64 first, last;
        two_units(words + 4 * i, &first, &last);
        vstore_f64(g->units[0] + i, last);
        vstore_f64(g->units[1] + i, first);
    }
}

/* Exponential numbers of each sample's first uniform one: alpha is 1. */
static int gamma_ones(const philox *p, int64_t k, int n, double *y, int *left)
{
    uint32_t words[4 * LAWS_MOST];
    double units[LAWS_MOST];
    draw_blocks(p, k, LAWS_STEPS, n, NULL, 0, words);
    for (int i = 0; i < n; i += LANES) {
        vf64 first, last;
        two_units(words + 4 * i, &first, &last);
        vstore_f64(units + i, last);
    }
    return exponentials(n, units, NULL, y, left);
}

/* The second attempts of what the first ones refused; both may leave samples. */
static int gamma_again(const philox *p, int64_t k, const double *alphas, const gamma_numbers *g,
                       leftover *r, double *y, int *left)
{
    uint32_t words[4 * LAWS_MOST];
    double alpha[LAWS_MOST], x[LAWS_MOST], u[LAWS_MOST], power[LAWS_MOST], value[LAWS_MOST];
    int which[LAWS_MOST], n = 0, count = 0;
    enum why why[LAWS_MOST];
    for (int i = 0; i < r->n; i++) {
        if (r->why[i] == UNSURE) left[count++] = r->which[i];
        why[n] = r->why[i];
        which[n] = r->which[i];
        n += r->why[i] != UNSURE;
    }
    if (!n) return count;
    draw_blocks(p, k, LAWS_STEPS, n, which, 2, words);
    for (int i = 0; i < n; i += LANES) {
        vf64 first, last;
        two_units(words + 4 * i, &first, &last);
        vstore_f64(power + i, last);
    }
    for (int i = 0; i < (n + LANES - 1) / LANES * LANES; i++) {
        const int at = which[i < n ? i : 0];
        const bool both = i < n && why[i] == ROOTLESS; /* of the uniform numbers are still there */
        alpha[i] = alphas[at];
        x[i] = g->normals[1][at];
        u[i] = g->units[both ? 0 : 1][at];
        power[i] = both ? g->units[1][at] : power[i];
    }
    try_gamma(n, alpha, x, u, power, value, r);
    for (int i = 0; i < n; i++) y[which[i]] = value[i];
    for (int i = 0; i < r->n; i++) left[count++] = which[r->which[i]];
    return count;
}

int ISA_NAME(laws_gamma)(const philox *p, int64_t k, int n, const double *const *parameters,
                         double *y, int *left)
{
    const double *alphas = parameters[0];
    gamma_numbers g;
    leftover r;
    int ones = 0;
    for (int i = 0; i < n; i++) ones += alphas[i] == 1;
    if (ones == n) return gamma_ones(p, k, n, y, left);
    draw_gamma(p, k, n, &g);
    try_gamma(n, alphas, g.normals[0], g.units[0], g.units[1], y, &r);
    return gamma_again(p, k, alphas, &g, &r, y, left);
}

/* ---- Counts ---------------------------------------------------------------------------------- */

int ISA_NAME(laws_bernoulli)(const philox *p, int64_t k, int n, const double *const *parameters,
                             double *y, int *left)
{
    double units[LAWS_MOST + 2 * LAWS_UNIT];
    const double *u = draw_units(p, k, n, units);
    const vf64 zero = {0};
    (void)left;
    for (int i = 0; i < n; i += LANES) {
        const vi64 below = vload_f64(u + i) < vload_f64(parameters[0] + i);
        vstore_f64(y + i, vselect_f64(below, vset_f64(1), zero));
    }
    return 0;
}

/*
 * Samples that take one uniform number after the other until `so_far` has passed `limit`, in a
 * rising or a falling way, and count them: those which are not done yet move together after each
 * block.
 */
typedef struct counting {
    const philox *p;
    int64_t k;
    int n, which[LAWS_MOST];
    double so_far[LAWS_MOST], limit[LAWS_MOST], scale[LAWS_MOST], count[LAWS_MOST];
} counting;

/* In `more` 1 for a sample that is not done, in `unsure` 1 for one that is to be left. */
typedef void count_block(counting *c, const uint32_t *words, int64_t *more, int64_t *unsure);

VECTOR_INLINE int count_all(counting *c, int each, count_block *count, double *y, int *left,
                            int n_left)
{
    uint32_t words[4 * LAWS_MOST];
    int64_t more[LAWS_MOST], unsure[LAWS_MOST];
    for (int block = 0; c->n; block++) {
        int n = 0;
        draw_blocks(c->p, c->k, each, c->n, c->which, block, words);
        count(c, words, more, unsure);
        for (int i = 0; i < c->n; i++) {
            const int at = c->which[i];
            y[at] = c->count[i];
            left[n_left] = at;
            n_left += (int)unsure[i];
            c->which[n] = at;
            c->so_far[n] = c->so_far[i];
            c->limit[n] = c->limit[i];
            c->scale[n] = c->scale[i];
            c->count[n] = c->count[i];
            n += (int)more[i];
        }
        c->n = n;
    }
    return n_left;
}

/* Counts for one vector of samples what both numbers of a block made of them: `two` so far, of
 * which the first (go) and both (on) are still on this side of the limit. */
VECTOR_INLINE void count_two(counting *c, int i, vf64 two, vi64 go, vi64 on, vi64 doubt,
                             int64_t *more, int64_t *unsure)
{
    const vf64 zero = {0}, one = zero + 1;
    const vi64 further = on & ~doubt & 1, unsure_of = doubt & 1;
    const vf64 counted = vselect_f64(go, one, zero) + vselect_f64(on, one, zero);
    vstore_f64(c->so_far + i, two);
    vstore_f64(c->count + i, vload_f64(c->count + i) + counted);
    memcpy(more + i, &further, sizeof further);
    memcpy(unsure + i, &unsure_of, sizeof unsure_of);
}

/* The product of the numbers is above e^-mean. */
VECTOR_INLINE void count_poisson(counting *c, const uint32_t *words, int64_t *more, int64_t *unsure)
{
    const vf64 slack = vset_f64(SLACK);
    for (int i = 0; i < c->n; i += LANES) {
        vf64 first, last, bound = vload_f64(c->limit + i);
        two_units(words + 4 * i, &first, &last);
        const vf64 one = vload_f64(c->so_far + i) * last, two = one * first;
        const vi64 go = one > bound, on = go & (two > bound);
        const vi64 doubt = too_near(one, bound, slack) | (go & too_near(two, bound, slack));
        count_two(c, i, two, go, on, doubt, more, unsure);
    }
}

/* Samples by Hormann's methods, which attempt it with two numbers after the other. */
typedef struct rejecting {
    const philox *p;
    int64_t k;
    int n, which[LAWS_MOST];
    double means[LAWS_MOST]; /* or trials */
    double probs[LAWS_MOST];
} rejecting;

/* What an attempt gives, whether it is taken, and whether that is not sure. */
typedef struct attempt {
    vf64 count;
    vi64 taken, unsure;
} attempt;
typedef attempt attempt_of(vf64 u, vf64 v, vf64 mean, vf64 prob);

VECTOR_INLINE int reject_all(rejecting *r, attempt_of *attempt_with, double *y, int *left,
                             int n_left)
{
    uint32_t words[4 * LAWS_MOST];
    for (int block = 0; r->n; block++) {
        int n = 0;
        draw_blocks(r->p, r->k, LAWS_STEPS, r->n, r->which, block, words);
        for (int i = 0; i < r->n; i += LANES) {
            vf64 first, last;
            two_units(words + 4 * i, &first, &last);
            const attempt made =
                attempt_with(last - 0.5, first, vload_f64(r->means + i), vload_f64(r->probs + i));
            const unsigned unsure = vbits_i64(made.unsure);
            const unsigned again = vbits_i64(~made.taken & ~made.unsure);
            for (int j = 0; j < LANES && i + j < r->n; j++) {
                const int at = r->which[i + j];
                y[at] = made.count[j];
                left[n_left] = at;
                n_left += (int)(unsure >> j & 1);
                r->which[n] = at;
                r->means[n] = r->means[i + j];
                r->probs[n] = r->probs[i + j];
                n += (int)(again >> j & 1);
            }
        }
        r->n = n;
    }
    return n_left;
}

/* The rest: x is the logarithm that is to be below y, `size` the sum of what these were made of. */
VECTOR_INLINE void decide(attempt *made, vi64 refused, vf64 x, vf64 y, vf64 size)
{
    const vf64 slack = 1e-10 + 1e-13 * size, excess = y - x;
    const vi64 open = ~made->taken & ~refused;
    made->unsure = open & ~((excess > slack) | (excess < -slack));
    made->taken |= open & (excess > slack);
}

/* As stirling_tail of ops/distributions.c has it. */
VECTOR_INLINE vf64 stirling_tails(vf64 k)
{
    const vf64 next = k + 1, square = next * next;
    vf64 tail = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / next;
    for (unsigned few = vbits_i64((k >= 0) & (k <= 9)); few; few &= few - 1) {
        const int j = __builtin_ctz(few);
        tail[j] = laws_stirling[(int)k[j]];
    }
    return tail;
}

VECTOR_INLINE attempt attempt_poisson(vf64 u, vf64 v, vf64 mean, vf64 unused)
{
    const vf64 b = 0.931 + 2.53 * vsqrt_f64(mean), a = -0.059 + 0.02483 * b;
    const vf64 box = 0.9277 - 3.6224 / (b - 2), near = 0.5 - vabs_f64(u);
    const vf64 n = vfloor_f64((2 * a / near + b) * u + mean + 0.43);
    attempt made = {.count = n, .taken = (near >= 0.07) & (v <= box)};
    const vi64 refused = (n < 0) | ((near < 0.013) & (v > near));
    (void)unused;
    if (vall_i64(made.taken | refused)) return made;
    const vf64 inverse = 1.1239 + 1.1328 / (b - 3.4);
    const vf64 log_mean = near_log(mean), log_next = near_log(n + 1);
    const vf64 log_factorial =
        (n + 0.5) * log_next - (n + 1) + 0x1.d67f1c864beb4p-1 + stirling_tails(n);
    decide(&made, refused, near_log(v * inverse / (a / (near * near) + b)),
           -mean + n * log_mean - log_factorial, mean + (n + 1) * (1 + log_mean + log_next));
    made.unsure |= ~made.taken & ~refused & (v == 0);
    return made;
}

int ISA_NAME(laws_poisson)(const philox *p, int64_t k, int n, const double *const *parameters,
                           double *y, int *left)
{
    const double *means = parameters[0];
    counting c = {.p = p, .k = k};
    rejecting r = {.p = p, .k = k};
    for (int i = 0; i < n; i++) {
        const bool few = means[i] < LAWS_FEW;
        c.which[c.n] = r.which[r.n] = i;
        c.limit[c.n] = -means[i];
        r.means[r.n] = means[i];
        c.so_far[c.n] = 1;
        c.count[c.n] = 0;
        c.n += few;
        r.n += !few;
    }
    for (int i = 0; i < c.n; i += LANES) vstore_f64(c.limit + i, near_exp(vload_f64(c.limit + i)));
    const int n_left = count_all(&c, LAWS_STEPS, count_poisson, y, left, 0);
    return reject_all(&r, attempt_poisson, y, left, n_left);
}

/* Waiting times fit into the trials; scale: log(1 - probability). */
VECTOR_INLINE vf64 wait(vf64 unit, vf64 scale, vf64 trials, vi64 *doubt)
{
    const vf64 time = near_log(unit) / scale, whole = vrint_f64(time);
    const vi64 beyond = time > trials * (1 + SLACK) + 1;
    *doubt = ~beyond & too_near(time, whole, vset_f64(SLACK));
    return vceil_f64(time);
}

VECTOR_INLINE void count_binomial(counting *c, const uint32_t *words, int64_t *more,
                                  int64_t *unsure)
{
    for (int i = 0; i < c->n; i += LANES) {
        vf64 first, last, trials = vload_f64(c->limit + i), scale = vload_f64(c->scale + i);
        vi64 doubt, later;
        two_units(words + 4 * i, &first, &last);
        const vf64 one = vload_f64(c->so_far + i) + wait(last, scale, trials, &doubt);
        const vf64 two = one + wait(first, scale, trials, &later);
        const vi64 go = one <= trials, on = go & (two <= trials);
        doubt |= go & later;
        count_two(c, i, two, go, on, doubt, more, unsure);
    }
}

VECTOR_INLINE attempt attempt_binomial(vf64 u, vf64 v, vf64 trials, vf64 prob)
{
    const vf64 deviation = vsqrt_f64(trials * prob * (1 - prob)), b = 1.15 + 2.53 * deviation;
    const vf64 a = -0.0873 + 0.0248 * b + 0.01 * prob, c = trials * prob + 0.5;
    const vf64 box = 0.92 - 4.2 / b, near = 0.5 - vabs_f64(u);
    const vf64 k = vfloor_f64((2 * a / near + b) * u + c);
    attempt made = {.count = k, .taken = (near >= 0.07) & (v <= box)};
    const vi64 refused = (k < 0) | (k > trials);
    if (vall_i64(made.taken | refused)) return made;
    const vf64 odds = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * deviation;
    const vf64 m = vfloor_f64((trials + 1) * prob);
    const vf64 x = near_log((m + 1) / (odds * (trials - m + 1)));
    const vf64 y = near_log((trials - m + 1) / (trials - k + 1));
    const vf64 z = near_log(odds * (trials - k + 1) / (k + 1));
    const vf64 bound = (m + 0.5) * x + (trials + 1) * y + (k + 0.5) * z + stirling_tails(m) +
                       stirling_tails(trials - m) - stirling_tails(k) - stirling_tails(trials - k);
    decide(&made, refused, near_log(v * alpha / (a / (near * near) + b)), bound,
           (trials + 1) * (1 + vabs_f64(x) + vabs_f64(y) + vabs_f64(z)));
    made.unsure |= ~made.taken & ~refused & (v == 0);
    return made;
}

int ISA_NAME(laws_binomial)(const philox *p, int64_t k, int n, const double *const *parameters,
                            double *y, int *left)
{
    const double *trials = parameters[0], *probs = parameters[1];
    counting c = {.p = p, .k = k};
    rejecting r = {.p = p, .k = k};
    for (int i = 0; i < n; i++) {
        const double rare = probs[i] <= 0.5 ? probs[i] : 1 - probs[i];
        const bool none = trials[i] == 0 || rare == 0, many = trials[i] * rare >= LAWS_FEW;
        y[i] = 0;
        c.which[c.n] = r.which[r.n] = i;
        c.limit[c.n] = r.means[r.n] = trials[i];
        c.scale[c.n] = -rare;
        r.probs[r.n] = rare;
        c.so_far[c.n] = c.count[c.n] = 0;
        c.n += !none && !many;
        r.n += !none && many;
    }
    for (int i = 0; i < c.n; i += LANES)
        vstore_f64(c.scale + i, near_log1p(vload_f64(c.scale + i)));
    int n_left = count_all(&c, LAWS_FEW_STEPS, count_binomial, y, left, 0);
    n_left = reject_all(&r, attempt_binomial, y, left, n_left);
    for (int i = 0; i < n; i++) y[i] = probs[i] <= 0.5 ? y[i] : trials[i] - y[i];
    return n_left;
}

/* ---- Classes --------------------------------------------------------------------------------- */

double ISA_NAME(laws_classes)(bool wide, int64_t n, const void *logits, double *sums)
{
    const vf64 lowest = vset_f64(-INFINITY), zero = {0};
    vf64 largest = lowest, total = zero;
    if (wide)
        memcpy(sums, logits, (size_t)n * sizeof *sums);
    else
        for (int64_t i = 0; i < n; i++) sums[i] = ((const float *)logits)[i];
    for (int64_t i = n; i % LAWS_UNIT; i++) sums[i] = -INFINITY;
    for (int64_t i = 0; i < n; i += LANES) {
        const vf64 x = vload_f64(sums + i);
        const vf64 finite = vselect_f64(x - x == 0, x, lowest);
        vstore_f64(sums + i, finite);
        largest = vgreater_f64(finite, largest);
    }
    double most = largest[0];
    for (int j = 1; j < LANES; j++) most = fmax(most, largest[j]);
    if (most == -INFINITY) return 0;
    for (int64_t i = 0; i < n; i += LANES) {
        const vf64 x = vload_f64(sums + i), power = vgreater_f64(x - most, vset_f64(-700));
        total += vsums_f64(vselect_f64(x == lowest, zero, near_exp(power)), false);
        vstore_f64(sums + i, total);
        total = vset_f64(total[LANES - 1]);
    }
    return total[0];
}

#else /* what exists once */

const double laws_stirling[10] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                  0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                  0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                  0.00833056343336287};

#endif
