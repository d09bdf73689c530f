/*
 * CRC-32C is a remainder of polynomials over two elements, with bits in reflected order: the lowest
 * bit is the highest power.
 *
 * The processor's instruction divides eight bytes; one can begin in each cycle, but its result
 * takes three. So three lanes are computed at the same time,
 *
 *     | lane a, from the crc so far | lane b, from 0 | lane c, from 0 |
 *
 * and combined: a is multiplied by x^(8 * 2 lanes), b by x^(8 * lane). A carry-less product of two
 * 32-bit numbers, put through the instruction again, is a * b * x^33 modulo the polynomial, so the
 * constants are the powers less 33.
 */
#define XXH_STATIC_LINKING_ONLY /* the state's size */
#include "io/checksum.h"
#include "tensor/memory.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- CRC-32C by tables ----------------------------------------------------------------------- */

/* tables[k][byte]: the remainder of the byte followed by k zero bytes. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t r = i;
        for (int bit = 0; bit < 8; bit++) r = r >> 1 ^ (r & 1 ? 0x82f63b78u : 0);
        tables[0][i] = r;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
}

uint32_t io_crc32c_plain(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *p = data;
    pthread_once(&tables_once, make_tables);
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint32_t low = crc ^ (p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24);
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
              tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
              tables[0][p[7]];
    }
    for (; size; size--) crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 255];
    return ~crc;
}

/* ---- CRC-32C by the instruction -------------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2,pclmul")))

/* A lane's length in bytes; x^(8 lanes - 33), x^(16 lanes - 33). */
typedef struct lanes {
    size_t size;
    uint32_t once, twice;
} lanes;

static const lanes wide = {2048, 0xa51b6135, 0x82f89c77}, narrow = {128, 0x0d3b6092, 0xb9e02b86};

static inline uint64_t load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* crc multiplied by the constant's power, before the remainder. */
TARGET static inline uint64_t multiply(uint64_t crc, uint32_t constant)
{
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int)constant), 0));
}

/* Three lanes; takes and returns the register, not the crc. */
TARGET static inline uint64_t three_lanes(uint64_t a, const uint8_t *p, lanes l)
{
    uint64_t b = 0, c = 0;
    for (const uint8_t *end = p + l.size; p < end; p += 8) {
        a = _mm_crc32_u64(a, load(p));
        b = _mm_crc32_u64(b, load(p + l.size));
        c = _mm_crc32_u64(c, load(p + 2 * l.size));
    }
    return c ^ _mm_crc32_u64(0, multiply(a, l.twice) ^ multiply(b, l.once));
}

TARGET static uint32_t crc32c_fast(uint32_t crc, const uint8_t *p, size_t size)
{
    uint64_t r = ~crc;
    for (; size >= 3 * wide.size; size -= 3 * wide.size, p += 3 * wide.size)
        r = three_lanes(r, p, wide);
    for (; size >= 3 * narrow.size; size -= 3 * narrow.size, p += 3 * narrow.size)
        r = three_lanes(r, p, narrow);
    for (; size >= 8; size -= 8, p += 8) r = _mm_crc32_u64(r, load(p));
    for (; size; size--) r = _mm_crc32_u8((uint32_t)r, *p++);
    return ~(uint32_t)r;
}

uint32_t io_crc32c(uint32_t crc, const void *data, size_t size)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")
               ? crc32c_fast(crc, data, size)
               : io_crc32c_plain(crc, data, size);
}

#else

uint32_t io_crc32c(uint32_t crc, const void *data, size_t size)
{
    return io_crc32c_plain(crc, data, size);
}

#endif

/* ---- Combining ------------------------------------------------------------------------------- */

/* a * b modulo the polynomial. The highest bit is x^0. */
static uint32_t product(uint32_t a, uint32_t b)
{
    uint32_t p = 0;
    for (; a; a <<= 1, b = b >> 1 ^ (b & 1 ? 0x82f63b78u : 0))
        if (a >> 31) p ^= b;
    return p;
}

uint32_t io_crc32c_join(uint32_t first, uint32_t rest, size_t rest_size)
{
    /* first * x^(8 rest_size), the power by squaring x^8. */
    uint32_t power = 1u << 23;
    for (; rest_size; rest_size >>= 1, power = product(power, power))
        if (rest_size & 1) first = product(first, power);
    return first ^ rest;
}

/* ---- XXH3 ------------------------------------------------------------------------------------ */

struct io_digester {
    XXH3_state_t state;
};

static io_digest of_hash(XXH128_hash_t hash)
{
    return (io_digest){hash.low64, hash.high64};
}

io_digester *io_digest_begin(void)
{
    io_digester *d = memory_zalloc(sizeof *d);
    if (d) XXH3_128bits_reset(&d->state);
    return d;
}

/* Builds of the library that choose by the processor have this besides the plain one, which is
 * half as fast. */
XXH_errorcode XXH3_128bits_update_dispatch(XXH3_state_t *, const void *, size_t)
    __attribute__((weak));

void io_digest_add(io_digester *d, const void *data, size_t size)
{
    if (!size) return;
    if (XXH3_128bits_update_dispatch)
        XXH3_128bits_update_dispatch(&d->state, data, size);
    else
        XXH3_128bits_update(&d->state, data, size);
}

io_digest io_digest_end(const io_digester *d)
{
    return of_hash(XXH3_128bits_digest(&d->state));
}

io_digest io_digest_of(const void *data, size_t size)
{
    return of_hash(XXH3_128bits(data, size));
}

void io_digest_text(io_digest digest, char text[33])
{
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)digest.high,
             (unsigned long long)digest.low);
}
