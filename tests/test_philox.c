/*
 * The random numbers' promises: published and recorded values, the same bits from every instruction
 * set, thread count and cut, normals as the C library has them, and the shape of the
 * distributions.
 */
#include "ops/kernels/isa.h"
#include "ops/kernels/philox.h"
#include "ops/kernels/seeds.h"
#include "tensor/threads.h"
#include "tests/skip.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Known answers --------------------------------------------------------------------------- */

static void check_block(philox p, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    uint32_t words[4], expected[4] = {a, b, c, d};
    philox_block(&p, words);
    assert_memory_equal(words, expected, sizeof words);
    philox_bits_32(&p, 4, words);
    assert_memory_equal(words, expected, sizeof words);
}

static void known_blocks(void **state)
{
    (void)state;
    philox ones;
    memset(&ones, 0xff, sizeof ones);
    check_block((philox){{0}, {0}}, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    check_block(ones, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    check_block(
        (philox){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}},
        0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
    check_block(philox_from_seeds(1, 5), 0xe799099e, 0xe403d27b, 0x7faeb60e, 0x7aa0c986);
}

/* Values printed in TensorFlow's shortest form, which reads back as the value itself. */
static void check_f32(int n, const float *x, const float *expected)
{
    for (int i = 0; i < n; i++)
        if (x[i] != expected[i])
            fail_msg("value %d is %.9g, expected %.9g", i, (double)x[i], (double)expected[i]);
}

static void check_f64(int n, const double *x, const double *expected)
{
    for (int i = 0; i < n; i++)
        if (fabs(x[i] - expected[i]) > 2e-15 * fabs(expected[i]))
            fail_msg("value %d is %.17g, expected %.17g", i, x[i], expected[i]);
}

#define CHECK_F32(draw, ...)                                                                       \
    do {                                                                                           \
        const float wanted[] = {__VA_ARGS__};                                                      \
        enum { N = sizeof wanted / sizeof *wanted };                                               \
        float out[N];                                                                              \
        draw(&p, N, out, 0, 1);                                                                    \
        check_f32(N, out, wanted);                                                                 \
    } while (0)

#define CHECK_F64(draw, ...)                                                                       \
    do {                                                                                           \
        const double wanted[] = {__VA_ARGS__};                                                     \
        enum { N = sizeof wanted / sizeof *wanted };                                               \
        double out[N];                                                                             \
        draw(&p, N, out, 0, 1);                                                                    \
        check_f64(N, out, wanted);                                                                 \
    } while (0)

static void stateless(void **state)
{
    (void)state;
    philox p = philox_from_stateless(1, 2);
    philox expected = {{0, 0, 0x619cb60b, 0xf7734320}, {0x6d2f7fba, 0x908502c9}};
    assert_memory_equal(&p, &expected, sizeof p);
    uint32_t words[6],
        known[] = {0x41ec0a2c, 0x679894f1, 0xebff843e, 0x16148793, 0x00a2d093, 0xf1531dc5};
    philox_bits_32(&p, 6, words);
    assert_memory_equal(words, known, sizeof words);
    int64_t full[1];
    philox_bits_64(&p, 1, full);
    assert_int_equal((uint64_t)full[0], 0x679894f141ec0a2c);

    CHECK_F32(philox_uniform_f32, 0.8440604f, 0.19204533f, 0.9962232f, 0.1603874f, 0.27199018f,
              0.649346f);
    CHECK_F32(philox_normal_f32, 0.5441101f, 0.20738031f, 0.07356432f, 0.04643455f, -1.3015898f,
              -0.9538565f);
    CHECK_F32(philox_truncated_f32, 0.5441101f, 0.20738031f, 0.07356432f, 0.04643455f, 0.16820592f,
              -1.6850333f);
    CHECK_F64(philox_uniform_f64, 0.7524837538451801, 0.9697857725627486);
    CHECK_F64(philox_normal_f64, -0.1423118100189212, 0.7406072461585091, -1.469047669443883,
              1.147747453689489);

    int32_t small[4], known_small[] = {0, 9, 4, 9};
    int64_t large[2], known_large[] = {444, 278};
    philox_range_i32(&p, 4, small, 0, 10);
    assert_memory_equal(small, known_small, sizeof small);
    philox_range_i64(&p, 2, large, 0, 1000);
    assert_memory_equal(large, known_large, sizeof large);

    uint16_t half[4], known_half[4]; /* 0.543, 0.2354, 0.06055, 0.8936 are k / 1024 */
    for (int i = 0; i < 4; i++) {
        static const int k[] = {556, 241, 62, 915};
        int e = ilogb(k[i]);
        known_half[i] = (uint16_t)((e + 5) << 10 | (k[i] << (10 - e) & 0x3ff));
    }
    philox_uniform_f16(&p, 4, half, 0, 1);
    assert_memory_equal(half, known_half, sizeof half);

    int32_t split[4], known_split[] = {1105988140, 1738052849, -335576002, 370444179};
    philox_bits_32(&p, 4, split);
    assert_memory_equal(split, known_split, sizeof split);

    p = philox_from_stateless(0, 0);
    expected = (philox){{0, 0, 0x33da8054, 0xff2f51a8}, {0xdd5b9083, 0xdf7a3ef6}};
    assert_memory_equal(&p, &expected, sizeof p);
    CHECK_F32(philox_uniform_f32, 0.21101546f, 0.70601f, 0.8000634f, 0.77079225f);
    CHECK_F32(philox_normal_f32, -1.697034f, -0.4813767f, -0.6622369f, 0.08701119f);

    p = philox_from_stateless(42, -1);
    expected = (philox){{0, 0, 0xc60a92b2, 0xb1c27b20}, {0xf7474edd, 0x9aa1ef63}};
    assert_memory_equal(&p, &expected, sizeof p);
    CHECK_F32(philox_uniform_f32, 0.90889966f, 0.23994613f, 0.21193099f, 0.109481335f);
}

static void generators(void **state)
{
    (void)state;
    philox p = philox_from_state((const int64_t[]){1234, 0, 0});
    int64_t s[3], known[] = {1234, 0, 0}, after[] = {2770, 0, 0}, minus[] = {-1, -1, -1};
    philox_to_state(&p, s);
    assert_memory_equal(s, known, sizeof s);
    CHECK_F32(philox_normal_f32, 0.9356609f, 1.0854305f, -0.93788373f, -0.5061547f, 1.3169702f,
              0.7137579f);
    int64_t seeds[3], known_seeds[] = {472453817354278855, 4059409125917362668, -65898304404607253};
    philox_bits_64(&p, 3, seeds);
    assert_memory_equal(seeds, known_seeds, sizeof seeds);
    philox_skip_elements(&p, 6);
    philox_to_state(&p, s);
    assert_memory_equal(s, after, sizeof s);

    p = philox_from_state((const int64_t[]){-1, -1, -1});
    philox_to_state(&p, s);
    assert_memory_equal(s, minus, sizeof s);

    p = philox_from_state((const int64_t[]){123, 0, 0});
    CHECK_F32(philox_normal_f32, 0.8673864f, -0.29899067f, -0.9310337f, -1.5828488f, 1.2481191f,
              -0.6770643f);
    p = philox_from_state((const int64_t[]){42, 0, 0});
    CHECK_F32(philox_normal_f32, -0.7565803f, -0.06854702f, 0.07595026f, -1.2573844f, -0.23193763f,
              -1.8107855f);
}

static void global_seeds(void **state)
{
    (void)state;
    static const struct {
        int64_t seed;
        int32_t op[3];
        float uniform[6];
        int seeds, numbers;
    } known[] = {
        {1,
         {577090037, 271041745, 1095513148},
         {0.1651309f, 0.9014813f, 0.6309742f, 0.4345461f, 0.2919390f, 0.6425021f},
         3,
         6},
        {42, {478163327}, {0.6645621f, 0.4410068f, 0.3528825f, 0.4644825f}, 1, 4},
        {1234, {1892932127}, {0.5380393f, 0.3646187f, 0.5816301f}, 1, 3},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        twister t;
        twister_seed(&t, known[i].seed);
        int64_t op = twister_op_seed(&t);
        assert_int_equal(op, known[i].op[0]);
        for (int j = 1; j < known[i].seeds; j++)
            assert_int_equal(twister_op_seed(&t), known[i].op[j]);
        philox p = philox_from_op_seeds(&known[i].seed, &op);
        float x[6];
        philox_uniform_f32(&p, known[i].numbers, x, 0, 1);
        for (int j = 0; j < known[i].numbers; j++) /* printed with seven digits */
            assert_true(fabsf(x[j] - known[i].uniform[j]) < 6e-8f);
        if (known[i].seed == 42)
            CHECK_F32(philox_normal_f32, 0.3274685f, -0.8426258f, 0.3194337f, -1.4075519f);
    }
    int64_t one = 1, minus_five = -5, zero = 0;
    philox p = philox_from_op_seeds(NULL, &one), q = philox_from_seeds(87654321, 1);
    assert_memory_equal(&p, &q, sizeof p);
    float x[3];
    philox_uniform_f32(&p, 3, x, 0, 1);
    assert_true(fabsf(x[0] - 0.2390374f) < 6e-8f && fabsf(x[1] - 0.9203995f) < 6e-8f &&
                fabsf(x[2] - 0.0505124f) < 6e-8f);
    p = philox_from_op_seeds(&minus_five, &zero), q = philox_from_seeds(2147483642, 0);
    assert_memory_equal(&p, &q, sizeof p);
    p = philox_from_op_seeds(&zero, &zero), q = philox_from_seeds(0, 2147483647);
    assert_memory_equal(&p, &q, sizeof p);
}

/* Python: random.Random(s).getrandbits(32) twice, for seeds of one and two limbs and a negative
 * one. */
static void twisters(void **state)
{
    (void)state;
    static const struct {
        int64_t seed;
        uint32_t words[2], word_1000;
    } known[] = {
        {INT64_C(0), {0xd82c07cd, 0x629f6fbe}, 0x078548d7},
        {INT64_C(1), {0x2265b1f5, 0x91b7584a}, 0x80c6bcbd},
        {INT64_C(-5), {0x9f767c45, 0x4164d839}, 0x8c65024f},
        {INT64_C(12345678901234), {0x06691c81, 0x8f40f694}, 0x3a2f9b24},
        {INT64_C(9223372036854775807), {0x510fa39f, 0xa81394c8}, 0x63ad2602},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        twister t;
        twister_seed(&t, known[i].seed);
        assert_int_equal(twister_word(&t), known[i].words[0]);
        assert_int_equal(twister_word(&t), known[i].words[1]);
        for (int j = 2; j < 1000; j++) twister_word(&t);
        assert_int_equal(twister_word(&t), known[i].word_1000);
    }
}

/* ---- The counter ----------------------------------------------------------------------------- */

static void carries(void **state)
{
    (void)state;
    philox p = {{0xfffffffe, 0xffffffff, 0xffffffff, 0}, {1, 2}}, q = p;
    philox_skip(&q, 3);
    assert_int_equal(q.counter[0], 1);
    assert_int_equal(q.counter[1], 0);
    assert_int_equal(q.counter[2], 0);
    assert_int_equal(q.counter[3], 1);
    philox_skip_elements(&q, UINT64_C(1) << 60);
    assert_int_equal(q.counter[2], 16);

    /* A run over the wrap of the low half, for every place of the wrap in a vector and strides
     * other than one. */
    for (int level = 0; isa_set(level); level++)
        for (uint32_t before = 0; before < 20; before++) {
            uint32_t run[4 * 40], block[4];
            float truncated[160], plain[160];
            q = p;
            q.counter[0] = 0u - before;
            if (!before) q.counter[1] = q.counter[2] = 0;
            philox_bits_32(&q, 4 * 40, run);
            philox at = q;
            for (int i = 0; i < 40; i++, philox_skip(&at, 1)) {
                philox_block(&at, block);
                assert_memory_equal(block, run + 4 * i, sizeof block);
            }
            q.counter[0] = 0u - 256 * before - 128;
            philox_truncated_f32(&q, 160, truncated, 0, 1);
            for (int i = 0; i < 160; i += 4) {
                philox_truncated_f32(&q, 4, plain + i, 0, 1);
                philox_skip(&q, 256);
            }
            assert_memory_equal(plain, truncated, sizeof plain);
        }
    isa_set(isa_best());
}

/* ---- Every law at once: the same bits however it is computed --------------------------------- */

enum { LAWS = 18, MOST = 70003 };

static void draw(int law, const philox *p, int64_t n, void *out)
{
    switch (law) {
    case 0: philox_bits_32(p, n, out); break;
    case 1: philox_bits_64(p, n, out); break;
    case 2: philox_range_i32(p, n, out, -3, 1000000000); break;
    case 3: philox_range_i64(p, n, out, INT64_MIN, INT64_MAX); break;
    case 4: philox_uniform_f32(p, n, out, -1, 3); break;
    case 5: philox_uniform_f64(p, n, out, -1, 3); break;
    case 6: philox_uniform_f16(p, n, out, -1, 3); break;
    case 7: philox_uniform_bf16(p, n, out, -1, 3); break;
    case 8: philox_normal_f32(p, n, out, 1, 2); break;
    case 9: philox_normal_f64(p, n, out, 1, 2); break;
    case 10: philox_normal_f16(p, n, out, 1, 2); break;
    case 11: philox_normal_bf16(p, n, out, 1, 2); break;
    case 12: philox_truncated_f32(p, n, out, 1, 2); break;
    case 13: philox_truncated_f64(p, n, out, 1, 2); break;
    case 14: philox_truncated_f16(p, n, out, 1, 2); break;
    case 15: philox_truncated_bf16(p, n, out, 1, 2); break;
    case 16: philox_range_i32(p, n, out, 5, 6); break;
    case 17: philox_shuffle(p, n, out); break;
    }
}

static int size_of(int law)
{
    static const int sizes[LAWS] = {4, 8, 4, 8, 4, 8, 2, 2, 4, 8, 2, 2, 4, 8, 2, 2, 4, 8};
    return sizes[law];
}

struct drawing {
    int law;
    const philox *p;
    void *out;
};

/* Inside of a range the calling thread does everything alone. */
static void draw_alone(int64_t first, int64_t last, int worker, void *user)
{
    const struct drawing *d = user;
    (void)last, (void)worker;
    if (first == 0) draw(d->law, d->p, MOST, d->out);
}

static void same_bits(void **state)
{
    (void)state;
    static char once[MOST * 8], again[MOST * 8 + 8];
    const philox p = philox_from_stateless(7, 8);
    for (int law = 0; law < LAWS; law++) {
        const size_t size = (size_t)size_of(law);
        isa_set(isa_best());
        draw(law, &p, MOST, once);
        for (int level = 0; isa_set(level); level++)
            for (int alone = 0; alone < 2; alone++) {
                memset(again, 0x55, MOST * size);
                if (alone)
                    threads_run(2, 1, draw_alone, &(struct drawing){law, &p, again});
                else
                    draw(law, &p, MOST, again);
                if (memcmp(once, again, MOST * size))
                    fail_msg("law %d differs on %s, %s", law, isa_name(level),
                             alone ? "on one thread" : "on all threads");
            }
        if (law == 17) continue;
        for (int level = 0; isa_set(level); level++) /* a short draw is a long one's beginning */
            for (int64_t n = 0; n < 1100; n += n < 70 ? 1 : 97) {
                memset(again, 0x55, (size_t)n * size + 8);
                draw(law, &p, n, again);
                assert_memory_equal(once, again, (size_t)n * size);
                for (int i = 0; i < 8; i++) assert_int_equal(again[(size_t)n * size + i], 0x55);
            }
    }
    isa_set(isa_best());
}

/* ---- Against the plain formulas -------------------------------------------------------------- */

static float plain_unit(uint32_t w)
{
    return (float)(w & 0x7fffff) * 0x1p-23f;
}

/* The C library whose logarithm, sine and cosine the normals follow, in its version for machines
 * that fuse products and sums. */
static bool library_is_followed(void)
{
#if defined(__GLIBC__) && defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#elif defined(__GLIBC__) && defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* 86 % of the values that a word can make are met as the first of a pair, and as the second. */
static void plain_normals(void **state)
{
    (void)state;
    enum { N = 1 << 20, SEEDS = 32 };
    if (!library_is_followed()) skip_since("another C library has other normals");
    uint32_t *words = malloc(N * 4);
    float *x = malloc(N * 4);
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        philox p = philox_from_stateless(seed, 3);
        philox_bits_32(&p, N, words);
        philox_normal_f32(&p, N, x, 0, 1);
        for (int i = 0; i < N; i += 2) {
            float u = fmaxf(plain_unit(words[i]), 1e-7f);
            float v = (float)(2 * M_PI * (double)plain_unit(words[i + 1]));
            float radius = sqrtf(-2 * logf(u)), pair[2] = {sinf(v) * radius, cosf(v) * radius};
            if (memcmp(x + i, pair, sizeof pair))
                fail_msg("words %08x %08x: %.9g %.9g, the C library has %.9g %.9g", words[i],
                         words[i + 1], (double)x[i], (double)x[i + 1], (double)pair[0],
                         (double)pair[1]);
        }
    }
    free(words), free(x);
}

static void plain_ranges(void **state)
{
    (void)state;
    const philox p = philox_from_stateless(5, 6);
    uint32_t words[1000];
    int32_t x[1000];
    int64_t y[500];
    const int64_t his[] = {-99, 0, 1, 7, 65536, INT32_MAX};
    philox_bits_32(&p, 1000, words);
    for (int k = 0; k < 6; k++) {
        philox_range_i32(&p, 1000, x, -100, (int32_t)his[k]);
        philox_range_i64(&p, 500, y, -100, his[k]);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(x[i], (int32_t)(words[i] % (uint32_t)(his[k] + 100)) - 100);
        for (int i = 0; i < 500; i++) {
            uint64_t w = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
            assert_int_equal(y[i], (int64_t)(w % (uint64_t)(his[k] + 100)) - 100);
        }
    }
    philox_range_i32(&p, 1000, x, INT32_MIN, INT32_MAX);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(x[i], (int32_t)((words[i] % UINT32_MAX) + 0x80000000u));
}

/* The value of a float16 or bfloat16. */
static double half_value(uint16_t h, bool brain)
{
    int fraction = brain ? 7 : 10, bias = brain ? 127 : 15, mask = brain ? 255 : 31;
    int e = h >> fraction & mask, m = h & ((1 << fraction) - 1);
    double size =
        e ? ldexp(m + (1 << fraction), e - bias - fraction) : ldexp(m, 1 - bias - fraction);
    return h & 0x8000 ? -size : size;
}

static void halves(void **state)
{
    (void)state;
    enum { N = 40000 };
    static uint16_t h[N], b[N];
    static float x[N];
    const philox p = philox_from_stateless(9, 9);
    static const double deviations[] = {1, 1e-5, 3e-7}; /* normal and subnormal float16 */
    for (int k = 0; k < 3; k++) {
        double deviation = deviations[k];
        philox_normal_f32(&p, N, x, 0, deviation);
        philox_normal_f16(&p, N, h, 0, deviation);
        philox_normal_bf16(&p, N, b, 0, deviation);
        for (int i = 0; i < N; i++) {
            double f = (double)x[i], last = fmax(ldexp(fabs(f), -10), 0x1p-24);
            /* deviation and value are each rounded; the small deviations
             * have few bits themselves */
            assert_true(fabs(half_value(h[i], false) - f) <= 1.6 * last + fabs(f) * (k ? 0.2 : 0));
            assert_true(fabs(half_value(b[i], true) - f) <= 2 * ldexp(fabs(f), -7));
        }
    }
    philox_uniform_f16(&p, N, h, 0, 1);
    philox_uniform_bf16(&p, N, b, 0, 1);
    uint32_t words[64];
    philox_bits_32(&p, 64, words);
    for (int i = 0; i < 64; i++) {
        assert_true(half_value(h[i], false) == (words[i] & 0x3ff) / 1024.0);
        assert_true(half_value(b[i], true) == (words[i] & 0x7f) / 128.0);
    }
    philox_normal_f16(&p, 4, h, 1e30, 1); /* beyond the type: infinite */
    assert_int_equal(h[0], 0x7c00);
    philox_normal_f16(&p, 4, h, NAN, 1);
    assert_true((h[0] & 0x7fff) > 0x7c00);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

static void drops(void **state)
{
    (void)state;
    enum { N = 100003 };
    static float x[N], y[N], u[N], dx[N];
    static double xd[N], yd[N], ud[N];
    static uint8_t mask[N];
    const philox p = philox_from_stateless(3, 4);
    const double rates[] = {0, 0.2, 0.5, 0.9999999};
    for (int i = 0; i < N; i++) xd[i] = x[i] = (float)(i + 1);
    philox_uniform_f32(&p, N, u, 0, 1);
    philox_uniform_f64(&p, N, ud, 0, 1);
    for (int k = 0; k < 4; k++) {
        double rate = rates[k];
        float scale = (float)(1 / (1 - rate));
        for (int level = 0; isa_set(level); level++) {
            philox_dropout_f32(&p, N, rate, x, y, mask);
            for (int i = 0; i < N; i++) {
                bool kept = u[i] >= (float)rate;
                assert_int_equal(mask[i], kept);
                assert_true(y[i] == (kept ? x[i] * scale : 0));
            }
            memcpy(dx, x, sizeof x);
            philox_dropout_f32(&p, N, rate, dx, dx, NULL); /* in place, as a gradient would */
            assert_memory_equal(dx, y, sizeof y);
            philox_dropout_f64(&p, N, rate, xd, yd, mask);
            for (int i = 0; i < N; i++) {
                bool kept = ud[i] >= rate;
                assert_int_equal(mask[i], kept);
                assert_true(yd[i] == (kept ? xd[i] * (1 / (1 - rate)) : 0));
            }
        }
    }
    isa_set(isa_best());
}

/* ---- Distributions --------------------------------------------------------------------------- */

static void moments(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    float *x = malloc(N * sizeof *x);
    const philox p = philox_from_stateless(11, 12);
    double sum = 0, squares = 0, cubes = 0;
    int bins[100] = {0};

    philox_uniform_f32(&p, N, x, 0, 1);
    for (int i = 0; i < N; i++) {
        assert_true(x[i] >= 0 && x[i] < 1);
        bins[(int)(x[i] * 100)]++;
    }
    for (int i = 0; i < 100; i++) sum += pow(bins[i] - N / 100.0, 2) / (N / 100.0);
    assert_true(sum > 55 && sum < 160); /* chi-square with 99 degrees of freedom */

    philox_normal_f32(&p, N, x, 0, 1);
    sum = 0;
    for (int i = 0; i < N; i++) sum += x[i], squares += (double)x[i] * x[i], cubes += pow(x[i], 3);
    assert_true(fabs(sum / N) < 5e-3 && fabs(squares / N - 1) < 8e-3 && fabs(cubes / N) < 2e-2);

    philox_truncated_f32(&p, N, x, 0, 1);
    sum = squares = 0;
    for (int i = 0; i < N; i++) {
        assert_true(fabsf(x[i]) < 2);
        sum += x[i], squares += (double)x[i] * x[i];
    }
    assert_true(fabs(sum / N) < 5e-3 && fabs(sqrt(squares / N) - 0.87962566) < 4e-3);
    free(x);
}

static void shuffles(void **state)
{
    (void)state;
    enum { N = 5000 };
    static int64_t order[N], plain[N];
    static uint32_t words[N];
    static char seen[N];
    const philox p = philox_from_stateless(1, 1);
    philox_bits_32(&p, N, words);
    philox_shuffle(&p, N, order);
    for (int i = 0; i < N; i++) plain[i] = i;
    for (int i = 0; i + 1 < N; i++) {
        int64_t j = i + words[i] % (uint32_t)(N - i), t = plain[i];
        plain[i] = plain[j], plain[j] = t;
    }
    assert_memory_equal(plain, order, sizeof order);
    for (int i = 0; i < N; i++) assert_false(seen[order[i]]++);
    philox_shuffle(&p, 1, order);
    assert_int_equal(order[0], 0);
    philox_shuffle(&p, 0, order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_blocks), cmocka_unit_test(stateless),
        cmocka_unit_test(generators),   cmocka_unit_test(global_seeds),
        cmocka_unit_test(twisters),     cmocka_unit_test(carries),
        cmocka_unit_test(same_bits),    cmocka_unit_test(plain_normals),
        cmocka_unit_test(plain_ranges), cmocka_unit_test(halves),
        cmocka_unit_test(drops),        cmocka_unit_test(moments),
        cmocka_unit_test(shuffles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
