/*
 * Philox 4x32-10, vectorised over counters.
 *
 * Every lane of 64 bits works on one counter. A counter's four words live in four vectors, each
 * word in the low half of its lane; what stands in the high half is never looked at, because the
 * rounds only use 32 x 32 -> 64-bit products of low halves:
 *
 *     product a = M0 * c0, product b = M1 * c2
 *     c0' = (b >> 32) ^ c1 ^ k0     c1' = b     c2' = (a >> 32) ^ c3 ^ k1     c3' = a
 *
 * so a round is two multiplications, two shifts and two exclusive ors, and only the end packs the
 * words.
 *
 * A fill is cut into pieces of PIECE elements for the threads and those into chunks of CHUNK
 * elements whose words go to a buffer on the stack; plain loops, which the compiler vectorises,
 * turn them into values. All arithmetic is of the kind that IEEE 754 defines to the last bit (no
 * fused multiply-add, no library function), so every instruction set gives the same bits and so
 * does a loop's tail. Only float64 normals call the C library, one by one.
 */
#include "ops/kernels/philox.h"
#include "ops/kernels/philox_words.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

enum law { BITS, RANGE, UNIFORM, NORMAL, TRUNCATED };
enum type { I32, I64, F16, BF16, F32, F64 };

/* What is drawn. a and b are lo and hi of a UNIFORM, mean and deviation of a normal. */
struct draw {
    philox state;
    enum law law;
    enum type type;
    double a, b;
    uint64_t low, range; /* RANGE: low + word mod range */
};

struct dropout {
    philox state;
    uint64_t threshold; /* kept when the uniform's fraction bits are at least this */
    double scale;
};

enum { CHUNK = 256, PIECE = HARD(4, 128) * CHUNK };

ISA_DECLARE(void, philox_piece, const struct draw *d, int64_t from, int64_t n, char *out);
ISA_DECLARE(void, philox_drop_f32, const struct dropout *d, int64_t from, int64_t n, const float *x,
            float *y, uint8_t *mask);
ISA_DECLARE(void, philox_drop_f64, const struct dropout *d, int64_t from, int64_t n,
            const double *x, double *y, uint8_t *mask);
ISA_DECLARE(void, philox_jumps, int64_t n, uint32_t left, uint32_t *words);

#define M0 0xD2511F53u
#define M1 0xCD9E8D57u
#define W0 0x9E3779B9u
#define W1 0xBB67AE85u

/* Two words as a fraction: in [0, 1). */
static inline double unit_f64(uint32_t w0, uint32_t w1)
{
    uint64_t bits = 0x3ff0000000000000 | (uint64_t)(w0 & 0xfffff) << 32 | w1;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x - 1;
}

/* A pair of normal numbers from a pair of uniform ones, with the C library's functions. */
static inline void normal_pair(double u, double turn, double out[2])
{
    const double v = 2 * M_PI * turn, radius = sqrt(-2 * log(u > 1e-7 ? u : 1e-7));
    out[0] = sin(v) * radius;
    out[1] = cos(v) * radius;
}

#ifdef ISA

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include "ops/kernels/neon.h"
#endif

#if defined(__AVX512F__)
enum { LANES = 8 };
#elif defined(__AVX2__)
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif
typedef uint64_t lanes __attribute__((vector_size(LANES * 8)));

/* The products of the low halves of the lanes. */
static inline lanes multiply(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
    return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
    return (lanes)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
    return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

/* The keys of the ten rounds, in all lanes. */
struct keys {
    lanes k0[10], k1[10];
};

static inline struct keys all_keys(const philox *p)
{
    const lanes zero = {0};
    struct keys keys;
    for (uint32_t i = 0; i < 10; i++) {
        keys.k0[i] = zero + (uint32_t)(p->key[0] + i * W0);
        keys.k1[i] = zero + (uint32_t)(p->key[1] + i * W1);
    }
    return keys;
}

/* Writes the words of LANES counters, the counter's low half given for each,
 * the high half common. */
static inline void rounds(lanes low, uint64_t high, const struct keys *keys, uint32_t *out)
{
    const lanes zero = {0}, m0 = zero + M0, m1 = zero + M1;
    lanes c0 = low, c1 = low >> 32, c2 = zero + high, c3 = c2 >> 32;
    for (int i = 0; i < 10; i++) {
        lanes a = multiply(c0, m0), b = multiply(c2, m1);
        c0 = (b >> 32) ^ c1 ^ keys->k0[i];
        c2 = (a >> 32) ^ c3 ^ keys->k1[i];
        c1 = b;
        c3 = a;
    }
    lanes front = (c0 & 0xffffffff) | c1 << 32, back = (c2 & 0xffffffff) | c3 << 32;
#if defined(__AVX512F__)
    lanes first = __builtin_shufflevector(front, back, 0, 8, 1, 9, 2, 10, 3, 11);
    lanes second = __builtin_shufflevector(front, back, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX2__)
    lanes first = __builtin_shufflevector(front, back, 0, 4, 1, 5);
    lanes second = __builtin_shufflevector(front, back, 2, 6, 3, 7);
#else
    lanes first = __builtin_shufflevector(front, back, 0, 2);
    lanes second = __builtin_shufflevector(front, back, 1, 3);
#endif
    memcpy(out, &first, sizeof first);
    memcpy(out + sizeof first / 4, &second, sizeof second);
}

/* The lanes share the high half of the counter, so the run is cut where the low half wraps around.
 */
void ISA_NAME(philox_words)(const philox *p, uint64_t stride, int64_t blocks, uint32_t *out)
{
    const struct keys keys = all_keys(p);
    uint64_t low = p->counter[0] | (uint64_t)p->counter[1] << 32;
    uint64_t high = p->counter[2] | (uint64_t)p->counter[3] << 32;
    lanes ramp;
    for (int i = 0; i < LANES; i++) ramp[i] = (uint64_t)i * stride;
    while (blocks > 0) {
        uint64_t room = -low / stride + (-low % stride != 0); /* blocks before the low half wraps */
        int64_t n = low && room < (uint64_t)blocks ? (int64_t)room : blocks, i = 0;
        for (; i + LANES <= n; i += LANES, out += 4 * LANES)
            rounds(ramp + (low + (uint64_t)i * stride), high, &keys, out);
        if (i < n) {
            uint32_t last[4 * LANES];
            rounds(ramp + (low + (uint64_t)i * stride), high, &keys, last);
            memcpy(out, last, (size_t)(n - i) * 16);
            out += 4 * (n - i);
        }
        blocks -= n;
        low += (uint64_t)n * stride;
        high++; /* used again only when the low half has wrapped */
    }
}

void ISA_NAME(philox_words_at)(const philox *p, int64_t n, const uint64_t *steps, uint32_t *out)
{
    const struct keys keys = all_keys(p);
    uint64_t low = p->counter[0] | (uint64_t)p->counter[1] << 32;
    uint64_t high = p->counter[2] | (uint64_t)p->counter[3] << 32;
    if (n && low + steps[n - 1] < low) { /* the low half wraps: rare enough to go one by one */
        memset(out, 0, (size_t)((n + LANES - 1) / LANES * LANES) * 16);
        for (int64_t i = 0; i < n; i++) {
            philox at = *p;
            philox_skip(&at, steps[i]);
            philox_block(&at, out + 4 * i);
        }
        return;
    }
    for (int64_t i = 0; i < n; i += LANES) {
        lanes at = {0};
        memcpy(&at, steps + i, (size_t)least(LANES, n - i) * 8);
        rounds(at + low, high, &keys, out + 4 * i);
    }
}

/* The words of elements from ... from + n, a multiple of CHUNK on, that take size words each; whole
 * blocks. */
static void element_words(const philox *p, int64_t from, int64_t n, int size, uint32_t *out)
{
    philox at = *p;
    philox_skip(&at, (uint64_t)(from / 4) * (uint64_t)size);
    ISA_NAME(philox_words)(&at, 1, (n * size + 3) / 4, out);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static inline float as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t as_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The word's low 23 bits as a fraction: in [0, 1). */
static inline float unit_f32(uint32_t word)
{
    return as_float(0x3f800000 | (word & 0x7fffff)) - 1;
}

/* x rounded to the nearest bfloat16 or float16, ties to even, as a float. */
static inline float to_bf16(float x)
{
    uint32_t bits = as_bits(x);
    return x == x ? as_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000) : x;
}

/* Adding and taking away a number whose last place is the wanted one leaves x rounded there. */
static inline float to_f16(float x)
{
    float size = fabsf(x);
    float grid =
        as_float((as_bits(size) & 0x7f800000) + (13u << 23)); /* 2^13 times x's power of two */
    grid = size >= 0x1p-14f ? grid : 0x1p-1f;                 /* last place 2^-24 at the least */
    float rounded = (size + grid) - grid;
    return copysignf(size < 65520 ? rounded : size * INFINITY, x);
}

static inline float to_type(enum type type, float x)
{
    return type == F16 ? to_f16(x) : type == BF16 ? to_bf16(x) : x;
}

/* The bits of a float that is a number of the type (see above). */
static inline uint16_t bits_bf16(float x)
{
    return (uint16_t)(as_bits(x) >> 16);
}

static inline uint16_t bits_f16(float x)
{
    uint32_t bits = as_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t normal = (size - (112u << 23)) >> 13;
    uint32_t small = (uint32_t)(int32_t)(as_float(size) * 0x1p24f); /* used below 2^-14 only */
    uint32_t value = size > 0x7f800000    ? 0x7e00
                     : size == 0x7f800000 ? 0x7c00
                     : size >= 113u << 23 ? normal
                                          : small;
    return (uint16_t)(sign | value);
}

/*
 * The logarithm, sine and cosine of the normals are what TensorFlow's are: the float32 functions of
 * the GNU C library (2.28 and later), whose last places are wrong in 1 of 100 values, each in its
 * own way. So it is not enough to be accurate: their pieces, their coefficients and the order of
 * their operations are followed, in double, where it hardly ever matters whether a product and a
 * sum are fused. For every number that a word can make the result is the same bits;
 * tests/test_philox.c compares.
 *
 * log u: u = 2^e m with m in [0.699, 1.398), which is cut into 16 pieces. For each there is a
 * number near its middle, given by its inverse and its logarithm, so that with r = m inverse - 1,
 * |r| < 0.04,
 *
 *     log u = e log 2 + log_middle + log(1 + r), and log(1 + r) = r + r^2 P(r).
 */
static const double log_inverse[16] = {0x1.661ec79f8f3bep+0, 0x1.571ed4aaf883dp+0,
                                       0x1.49539f0f010bp+0,  0x1.3c995b0b80385p+0,
                                       0x1.30d190c8864a5p+0, 0x1.25e227b0b8eap+0,
                                       0x1.1bb4a4a1a343fp+0, 0x1.12358f08ae5bap+0,
                                       0x1.0953f419900a7p+0, 1,
                                       0x1.e608cfd9a47acp-1, 0x1.ca4b31f026aap-1,
                                       0x1.b2036576afce6p-1, 0x1.9c2d163a1aa2dp-1,
                                       0x1.886e6037841edp-1, 0x1.767dcf5534862p-1};
static const double log_middle[16] = {-0x1.57bf7808caadep-2, -0x1.2bef0a7c06ddbp-2,
                                      -0x1.01eae7f513a67p-2, -0x1.b31d8a68224e9p-3,
                                      -0x1.6574f0ac07758p-3, -0x1.1aa2bc79c81p-3,
                                      -0x1.a4e76ce8c0e5ep-4, -0x1.1973c5a611cccp-4,
                                      -0x1.252f438e10c1ep-5, 0,
                                      0x1.aa5aa5df25984p-5,  0x1.c5e53aa362eb4p-4,
                                      0x1.526e57720db08p-3,  0x1.bc2860d22477p-3,
                                      0x1.1058bc8a07ee1p-2,  0x1.4043057b6ee09p-2};

static inline uint32_t log_cut(float u)
{
    return as_bits(u) - 0x3f330000; /* e above 23 bits, then the piece in 4 bits */
}

static inline float log_f32(float u, double inverse, double middle)
{
    int32_t e = (int32_t)log_cut(u) >> 23;
    double m = (double)as_float(as_bits(u) - ((uint32_t)e << 23));
    double r = m * inverse - 1, z = r * r;
    double p = (0x1.5575b0be00b6ap-2 * r - 0x1.ffffef20a4123p-2) - 0x1.00ea348b88334p-2 * z;
    return (float)(p * z + ((middle + (double)e * M_LN2) + r));
}

/* The table's two numbers for each u. A loop of its own, because compilers' gathers are slow. */
static void log_pieces(int64_t n, const float *u, double *inverse, double *middle)
{
#if defined(__AVX512F__)
    const __m512d i0 = _mm512_loadu_pd(log_inverse), i1 = _mm512_loadu_pd(log_inverse + 8);
    const __m512d m0 = _mm512_loadu_pd(log_middle), m1 = _mm512_loadu_pd(log_middle + 8);
    const __m256i first = _mm256_set1_epi32(0x3f330000);
    for (int64_t i = 0; i < n; i += 8) { /* whole vectors: the arrays have room */
        __m256i cut = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(u + i)), first);
        __m512i piece =
            _mm512_cvtepu32_epi64(_mm256_srli_epi32(cut, 19)); /* 4 bits are looked at */
        _mm512_storeu_pd(inverse + i, _mm512_permutex2var_pd(i0, piece, i1));
        _mm512_storeu_pd(middle + i, _mm512_permutex2var_pd(m0, piece, m1));
    }
#else
    for (int64_t i = 0; i < n; i++) {
        uint32_t piece = log_cut(u[i]) >> 19 & 15;
        inverse[i] = log_inverse[piece];
        middle[i] = log_middle[piece];
    }
#endif
}

/*
 * Sine and cosine of the angle v = 2 pi times the word's fraction, rounded to float32. v = k pi/2 +
 * y with |y| <= pi/4, and polynomials in y^2. k is the word's nearest quarter; at odd eighths v
 * decides, which rounding has put above the first two and below the last two. pi/2 is a double in
 * two parts: the first has 33 bits, so that k times it and the difference are exact and y is
 * rounded once.
 */
static inline void sincos_f32(uint32_t word, float *sine, float *cosine)
{
    uint32_t fraction = word & 0x7fffff, k = (fraction + 0x100000 - (fraction >> 22)) >> 21;
    double v = (double)(float)(2 * M_PI * (double)unit_f32(word)), quarters = (int32_t)k;
    double y = (v - quarters * 0x1.921fb544p0) - quarters * 0x1.0b46p-34;
    double z = y * y, w = z * z, x = y * z;
    double s = (y - x * 0x1.555545995a603p-3) +
               (x * z) * (0x1.1107605230bc4p-7 - z * 0x1.994eb3774cf24p-13);
    double c = ((1 - z * 0x1.ffffffd0c621cp-2) + w * 0x1.55553e1068f19p-5) +
               (w * z) * (z * 0x1.99343027bf8c3p-16 - 0x1.6c087e89a359dp-10);
    uint32_t a = as_bits((float)s), b = as_bits((float)c);
    uint32_t swap = (a ^ b) & -(k & 1);
    *sine = as_float((a ^ swap) ^ (k & 2) << 30);
    *cosine = as_float((b ^ swap) ^ ((k + 1) & 2) << 30);
}

/* Normal numbers from n words, n even and CHUNK at most: every pair of words makes a pair. */
static void normals_f32(int64_t n, const uint32_t *restrict words, float *restrict out)
{
    float u[CHUNK / 2];
    double inverse[CHUNK / 2], middle[CHUNK / 2];
    for (int64_t i = 0; i < n / 2; i++) {
        float x = unit_f32(words[2 * i]);
        u[i] = x > 1e-7f ? x : 1e-7f;
    }
    log_pieces(n / 2, u, inverse, middle);
    for (int64_t i = 0; i < n / 2; i++) {
        float radius = sqrtf(-2 * log_f32(u[i], inverse[i], middle[i])), sine, cosine;
        sincos_f32(words[2 * i + 1], &sine, &cosine);
        out[2 * i] = sine * radius;
        out[2 * i + 1] = cosine * radius;
    }
}

/* From 2 n words, n even. */
static void normals_f64(int64_t n, const uint32_t *words, double *out)
{
    for (int64_t i = 0; i < n; i += 2, words += 4)
        normal_pair(unit_f64(words[0], words[1]), unit_f64(words[2], words[3]), out + i);
}

/*
 * Truncated normals come in groups of one block, every group with a run of STEPS counters of its
 * own from which the values that pass are taken in order. Five groups of six need one block of it;
 * the others get a second one, together; the very few that want more are done again alone.
 */
enum { STEPS = 256, GROUPS = CHUNK / 4 };

/* Puts what passes of n values behind the first kept ones, up to a group; returns how many are kept
 * then. */
static inline int keep(int n, const float *z, float out[4], int kept)
{
    for (int i = 0; i < n && kept < 4; i++)
        if (fabsf(z[i]) < 2) out[kept++] = z[i];
    return kept;
}

static void regroup(philox at, float out[4])
{
    for (int kept = 0; kept < 4; philox_skip(&at, 1)) {
        uint32_t words[4];
        float z[4];
        philox_block(&at, words);
        normals_f32(4, words, z);
        kept = keep(4, z, out, kept);
    }
}

static void truncated_f32(const philox *p, int64_t from, int64_t n, float *out)
{
    uint32_t words[CHUNK];
    uint64_t steps[GROUPS];
    float more[CHUNK];
    philox at = *p;
    int64_t groups = (n + 3) / 4, short_ones = 0;
    philox_skip(&at, (uint64_t)(from / 4) * STEPS);
    ISA_NAME(philox_words)(&at, STEPS, groups, words);
    normals_f32(4 * groups, words, out);
    for (int64_t g = 0; g < groups; g++) {
        const float *z = out + 4 * g;
        steps[short_ones] = (uint64_t)g * STEPS + 1;
        short_ones +=
            !((fabsf(z[0]) < 2) & (fabsf(z[1]) < 2) & (fabsf(z[2]) < 2) & (fabsf(z[3]) < 2));
    }
    ISA_NAME(philox_words_at)(&at, short_ones, steps, words);
    normals_f32(4 * short_ones, words, more);
    for (int64_t i = 0; i < short_ones; i++) {
        float *z = out + 4 * (steps[i] / STEPS);
        if (keep(4, more + 4 * i, z, keep(4, z, z, 0)) == 4) continue;
        philox group = at;
        philox_skip(&group, steps[i] - 1);
        regroup(group, z);
    }
}

static void truncated_f64(const philox *p, int64_t from, int64_t n, double *out)
{
    philox group = *p;
    philox_skip(&group, (uint64_t)(from / 2) * (STEPS / 2));
    for (int64_t i = 0; i < n; i += 2, philox_skip(&group, STEPS / 2)) {
        philox at = group;
        for (int kept = 0; kept < 2; philox_skip(&at, 1)) {
            uint32_t words[4];
            double z[2];
            philox_block(&at, words);
            normals_f64(2, words, z);
            for (int j = 0; j < 2 && kept < 2; j++)
                if (fabs(z[j]) < 2) out[i + kept++] = z[j];
        }
    }
}

/* ---- Chunks: n elements from the multiple of CHUNK from on ----------------------------------- */

/* Each on a frame of its own: within their caller some compilers add up their arrays. */
#define APART static __attribute__((noinline))

APART void integers(const struct draw *d, int64_t from, int64_t n, char *out)
{
    uint32_t words[2 * CHUNK];
    element_words(&d->state, from, n, d->type == I64 ? 2 : 1, words);
    if (d->law == BITS) {
        memcpy(out, words, (size_t)n * (d->type == I64 ? 8 : 4));
    } else if (d->type == I32) {
        uint32_t *o = (uint32_t *)out;
        /* w mod range = high 64 bits of (w * inverse mod 2^64) * range
         * (Lemire, Kaser, Kurz 2019) */
        uint64_t inverse = UINT64_MAX / d->range + 1;
        for (int64_t i = 0; i < n; i++)
            o[i] = (uint32_t)d->low +
                   (uint32_t)((unsigned __int128)(inverse * words[i]) * d->range >> 64);
    } else {
        uint64_t *o = (uint64_t *)out;
        for (int64_t i = 0; i < n; i++)
            o[i] = d->low + (words[2 * i] | (uint64_t)words[2 * i + 1] << 32) % d->range;
    }
}

APART void doubles(const struct draw *d, int64_t from, int64_t n, double *out)
{
    uint32_t words[2 * CHUNK];
    double z[CHUNK], shift = d->a, scale = d->law == UNIFORM ? d->b - d->a : d->b;
    if (d->law != TRUNCATED) element_words(&d->state, from, n, 2, words);
    if (d->law == UNIFORM)
        for (int64_t i = 0; i < n; i++) z[i] = unit_f64(words[2 * i], words[2 * i + 1]);
    else if (d->law == NORMAL)
        normals_f64(n + (n & 1), words, z);
    else
        truncated_f64(&d->state, from, n, z);
    for (int64_t i = 0; i < n; i++) out[i] = z[i] * scale + shift;
}

/* float32 uniforms, the most drawn, in one loop. */
APART void uniforms_f32(const struct draw *d, int64_t from, int64_t n, float *restrict out)
{
    uint32_t words[CHUNK];
    float shift = (float)d->a, scale = (float)d->b - shift;
    element_words(&d->state, from, n, 1, words);
    for (int64_t i = 0; i < n; i++) out[i] = unit_f32(words[i]) * scale + shift;
}

APART void floats(const struct draw *d, int64_t from, int64_t n, char *out)
{
    enum type type = d->type;
    uint32_t words[CHUNK];
    float z[CHUNK], shift = to_type(type, (float)d->a), scale = to_type(type, (float)d->b);
    if (d->law == UNIFORM) scale = to_type(type, scale - shift);
    if (d->law != TRUNCATED) element_words(&d->state, from, n, 1, words);
    if (d->law == UNIFORM) {
        int bits = type == F16 ? 10 : 7;
        uint32_t mask = (1u << bits) - 1;
        float unit = 1 / (float)(1 << bits);
        for (int64_t i = 0; i < n; i++) z[i] = (float)(int32_t)(words[i] & mask) * unit;
    } else if (d->law == NORMAL) {
        normals_f32((n + 3) & ~INT64_C(3), words, z);
    } else {
        truncated_f32(&d->state, from, n, z);
    }
    float *single = (float *)out;
    uint16_t *half = (uint16_t *)out;
    if (type == F32)
        for (int64_t i = 0; i < n; i++) single[i] = z[i] * scale + shift;
    else if (type == F16)
        for (int64_t i = 0; i < n; i++)
            half[i] = bits_f16(to_f16(to_f16(to_f16(z[i]) * scale) + shift));
    else
        for (int64_t i = 0; i < n; i++)
            half[i] = bits_bf16(to_bf16(to_bf16(to_bf16(z[i]) * scale) + shift));
}

/* Elements from ... from + n of a fill, from a multiple of CHUNK; the first one goes to out. */
void ISA_NAME(philox_piece)(const struct draw *d, int64_t from, int64_t n, char *out)
{
    static const int sizes[] = {[I32] = 4, [I64] = 8, [F16] = 2, [BF16] = 2, [F32] = 4, [F64] = 8};
    for (int64_t end = from + n, count; from < end; from += count, out += count * sizes[d->type]) {
        count = least(CHUNK, end - from);
        if (d->type == I32 || d->type == I64)
            integers(d, from, count, out);
        else if (d->type == F64)
            doubles(d, from, count, (double *)out);
        else if (d->type == F32 && d->law == UNIFORM)
            uniforms_f32(d, from, count, (float *)out);
        else
            floats(d, from, count, out);
    }
}

void ISA_NAME(philox_drop_f32)(const struct dropout *d, int64_t from, int64_t n, const float *x,
                               float *y, uint8_t *mask)
{
    uint32_t words[CHUNK], threshold = (uint32_t)d->threshold;
    float scale = (float)d->scale;
    for (int64_t end = from + n, count; from < end; from += count, x += count, y += count) {
        count = least(CHUNK, end - from);
        element_words(&d->state, from, count, 1, words);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            float kept = x[i] * scale;
            y[i] = (words[i] & 0x7fffff) >= threshold ? kept : 0;
        }
        if (!mask) continue;
        for (int64_t i = 0; i < count; i++) mask[i] = (words[i] & 0x7fffff) >= threshold;
        mask += count;
    }
}

void ISA_NAME(philox_drop_f64)(const struct dropout *d, int64_t from, int64_t n, const double *x,
                               double *y, uint8_t *mask)
{
    uint32_t words[2 * CHUNK];
    for (int64_t end = from + n, count; from < end; from += count, x += count, y += count) {
        count = least(CHUNK, end - from);
        element_words(&d->state, from, count, 2, words);
        for (int64_t i = 0; i < count; i++) {
            uint64_t fraction = (uint64_t)(words[2 * i] & 0xfffff) << 32 | words[2 * i + 1];
            double kept = x[i] * d->scale;
            y[i] = fraction >= d->threshold ? kept : 0;
            if (mask) mask[i] = fraction >= d->threshold;
        }
        if (mask) mask += count;
    }
}

/* In place of each word its remainder by left, left - 1, ..., all at least 2. Rounding the quotient
 * reaches no integer: what it lacks of one is more than 2^-32 of it. */
void ISA_NAME(philox_jumps)(int64_t n, uint32_t left, uint32_t *words)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t by = left - (uint32_t)i;
        words[i] -= (uint32_t)(int32_t)((double)words[i] / (double)by) * by;
    }
}

#else /* what exists once */

/* ---- States ---------------------------------------------------------------------------------- */

static uint32_t high_word(uint64_t x)
{
    return (uint32_t)(x >> 32);
}
static uint64_t join(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

philox philox_from_seeds(uint64_t seed, uint64_t seed2)
{
    return (philox){.counter = {0, 0, (uint32_t)seed2, high_word(seed2)},
                    .key = {(uint32_t)seed, high_word(seed)}};
}

philox philox_from_stateless(int64_t seed0, int64_t seed1)
{
    uint64_t a = (uint64_t)seed0, b = (uint64_t)seed1;
    philox scrambler = {.counter = {(uint32_t)a, high_word(a), (uint32_t)b, high_word(b)},
                        .key = {0x3ec8f720, 0x02461e29}};
    uint32_t m[4];
    philox_block(&scrambler, m);
    return (philox){.counter = {0, 0, m[2], m[3]}, .key = {m[0], m[1]}};
}

philox philox_from_state(const int64_t state[3])
{
    philox p;
    uint64_t low = (uint64_t)state[0], high = (uint64_t)state[1], key = (uint64_t)state[2];
    p = (philox){.counter = {(uint32_t)low, high_word(low), (uint32_t)high, high_word(high)},
                 .key = {(uint32_t)key, high_word(key)}};
    return p;
}

void philox_to_state(const philox *p, int64_t state[3])
{
    state[0] = (int64_t)join(p->counter[0], p->counter[1]);
    state[1] = (int64_t)join(p->counter[2], p->counter[3]);
    state[2] = (int64_t)join(p->key[0], p->key[1]);
}

static void advance(philox *p, uint64_t low, uint64_t high)
{
    uint64_t a = join(p->counter[0], p->counter[1]), b = join(p->counter[2], p->counter[3]);
    a += low;
    b += high + (a < low);
    p->counter[0] = (uint32_t)a;
    p->counter[1] = high_word(a);
    p->counter[2] = (uint32_t)b;
    p->counter[3] = high_word(b);
}

void philox_skip(philox *p, uint64_t steps)
{
    advance(p, steps, 0);
}

void philox_skip_elements(philox *p, uint64_t elements)
{
    advance(p, elements << 8, elements >> 56);
}

void philox_block(const philox *p, uint32_t words[4])
{
    uint32_t c0 = p->counter[0], c1 = p->counter[1], c2 = p->counter[2], c3 = p->counter[3];
    uint32_t k0 = p->key[0], k1 = p->key[1];
    for (int i = 0; i < 10; i++, k0 += W0, k1 += W1) {
        uint64_t a = (uint64_t)M0 * c0, b = (uint64_t)M1 * c2;
        c0 = high_word(b) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = high_word(a) ^ c3 ^ k1;
        c3 = (uint32_t)a;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

void philox_two_uniforms(const philox *p, double out[2])
{
    uint32_t words[4];
    philox_block(p, words);
    out[0] = unit_f64(words[0], words[1]);
    out[1] = unit_f64(words[2], words[3]);
}

void philox_two_normals(const philox *p, double out[2])
{
    double units[2];
    philox_two_uniforms(p, units);
    normal_pair(units[0], units[1], out);
}

/* ---- Fills ----------------------------------------------------------------------------------- */

struct fill {
    struct draw draw;
    char *out;
    int size;
};

static void fill_range(int64_t first, int64_t last, int worker, void *user)
{
    const struct fill *f = user;
    (void)worker;
    ISA_CALL(philox_piece)(&f->draw, first, last - first, f->out + first * f->size);
}

static void fill(struct draw d, int64_t n, void *out, int size)
{
    threads_run(n, PIECE, fill_range, &(struct fill){d, out, size});
}

/* A draw of floating numbers: law, type, and lo, hi or mean, deviation. */
static void real(const philox *p, enum law law, enum type type, int64_t n, void *out, double a,
                 double b)
{
    int size = type == F64 ? 8 : type == F32 ? 4 : 2;
    fill((struct draw){.state = *p, .law = law, .type = type, .a = a, .b = b}, n, out, size);
}

void philox_bits_32(const philox *p, int64_t n, void *out)
{
    fill((struct draw){.state = *p, .law = BITS, .type = I32}, n, out, 4);
}

void philox_bits_64(const philox *p, int64_t n, void *out)
{
    fill((struct draw){.state = *p, .law = BITS, .type = I64}, n, out, 8);
}

void philox_range_i32(const philox *p, int64_t n, int32_t *out, int32_t lo, int32_t hi)
{
    uint32_t low = (uint32_t)lo, range = (uint32_t)hi - low;
    fill((struct draw){.state = *p, .law = RANGE, .type = I32, .low = low, .range = range}, n, out,
         4);
}

void philox_range_i64(const philox *p, int64_t n, int64_t *out, int64_t lo, int64_t hi)
{
    uint64_t low = (uint64_t)lo, range = (uint64_t)hi - low;
    fill((struct draw){.state = *p, .law = RANGE, .type = I64, .low = low, .range = range}, n, out,
         8);
}

void philox_uniform_f32(const philox *p, int64_t n, float *out, double lo, double hi)
{
    real(p, UNIFORM, F32, n, out, lo, hi);
}

void philox_uniform_f64(const philox *p, int64_t n, double *out, double lo, double hi)
{
    real(p, UNIFORM, F64, n, out, lo, hi);
}

void philox_uniform_f16(const philox *p, int64_t n, uint16_t *out, double lo, double hi)
{
    real(p, UNIFORM, F16, n, out, lo, hi);
}

void philox_uniform_bf16(const philox *p, int64_t n, uint16_t *out, double lo, double hi)
{
    real(p, UNIFORM, BF16, n, out, lo, hi);
}

void philox_normal_f32(const philox *p, int64_t n, float *out, double mean, double deviation)
{
    real(p, NORMAL, F32, n, out, mean, deviation);
}

void philox_normal_f64(const philox *p, int64_t n, double *out, double mean, double deviation)
{
    real(p, NORMAL, F64, n, out, mean, deviation);
}

void philox_normal_f16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation)
{
    real(p, NORMAL, F16, n, out, mean, deviation);
}

void philox_normal_bf16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation)
{
    real(p, NORMAL, BF16, n, out, mean, deviation);
}

void philox_truncated_f32(const philox *p, int64_t n, float *out, double mean, double deviation)
{
    real(p, TRUNCATED, F32, n, out, mean, deviation);
}

void philox_truncated_f64(const philox *p, int64_t n, double *out, double mean, double deviation)
{
    real(p, TRUNCATED, F64, n, out, mean, deviation);
}

void philox_truncated_f16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation)
{
    real(p, TRUNCATED, F16, n, out, mean, deviation);
}

void philox_truncated_bf16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation)
{
    real(p, TRUNCATED, BF16, n, out, mean, deviation);
}

/* ---- Shuffling ------------------------------------------------------------------------------- */

/*
 * Below 2^32 elements the order is made of numbers of 32 bits, of which caches hold twice as many,
 * in the second half of the memory; widened from the front on, each is read before its place is
 * written to.
 */
static void shuffle_narrow(const philox *p, int64_t n, int64_t *out)
{
    enum { WORDS = 1024 };
    uint32_t words[WORDS], *order = (uint32_t *)out + n;
    philox at = *p;
    for (int64_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (int64_t first = 0, count; first + 1 < n; first += count) {
        count = n - 1 - first < WORDS ? n - 1 - first : WORDS;
        ISA_CALL(philox_words)(&at, 1, (count + 3) / 4, words);
        philox_skip(&at, WORDS / 4);
        ISA_CALL(philox_jumps)(count, (uint32_t)(n - first), words);
        uint32_t *from = order + first;
        for (int64_t j = 0; j < count; j++) {
            uint32_t *other = from + j + words[j], kept = from[j];
            from[j] = *other;
            *other = kept;
        }
    }
    for (int64_t first = 0, count; first < n; first += count) {
        count = n - first < WORDS ? n - first : WORDS;
        memcpy(words, order + first, (size_t)count * sizeof *words);
        for (int64_t j = 0; j < count; j++) out[first + j] = words[j];
    }
}

static void shuffle_wide(const philox *p, int64_t n, int64_t *out)
{
    philox at = *p;
    uint32_t words[4];
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = 0; i + 1 < n; i++) {
        const int half = i % 2 * 2;
        if (!half) {
            philox_block(&at, words);
            philox_skip(&at, 1);
        }
        int64_t other = i + (int64_t)(join(words[half], words[half + 1]) % (uint64_t)(n - i));
        int64_t kept = out[i];
        out[i] = out[other];
        out[other] = kept;
    }
}

void philox_shuffle(const philox *p, int64_t n, int64_t *out)
{
    if (n > UINT32_MAX)
        shuffle_wide(p, n, out);
    else
        shuffle_narrow(p, n, out);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

struct drop {
    struct dropout dropout;
    const void *x;
    void *y;
    uint8_t *mask;
};

static void drop_range_f32(int64_t first, int64_t last, int worker, void *user)
{
    const struct drop *d = user;
    (void)worker;
    ISA_CALL(philox_drop_f32)
    (&d->dropout, first, last - first, (const float *)d->x + first, (float *)d->y + first,
     d->mask ? d->mask + first : NULL);
}

static void drop_range_f64(int64_t first, int64_t last, int worker, void *user)
{
    const struct drop *d = user;
    (void)worker;
    ISA_CALL(philox_drop_f64)
    (&d->dropout, first, last - first, (const double *)d->x + first, (double *)d->y + first,
     d->mask ? d->mask + first : NULL);
}

void philox_dropout_f32(const philox *p, int64_t n, double rate, const float *x, float *y,
                        uint8_t *mask)
{
    struct dropout d = {*p, (uint64_t)ceil((double)(float)rate * 0x1p23), 1 / (1 - rate)};
    threads_run(n, PIECE, drop_range_f32, &(struct drop){d, x, y, mask});
}

void philox_dropout_f64(const philox *p, int64_t n, double rate, const double *x, double *y,
                        uint8_t *mask)
{
    struct dropout d = {*p, (uint64_t)ceil(rate * 0x1p52), 1 / (1 - rate)};
    threads_run(n, PIECE, drop_range_f64, &(struct drop){d, x, y, mask});
}

#endif
