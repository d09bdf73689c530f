/*
 * The Mersenne twister of Matsumoto and Nishimura (1998): a linear recurrence over 624 words, of
 * which the next 624 are made at once, and an output that mixes the bits of a word. Seeded the way
 * Python does it, "by array" from the 32-bit limbs of |seed|, the lowest first.
 */
#include "ops/kernels/seeds.h"

enum { N = 624, M = 397 };

static void seed_by_word(uint32_t *s, uint32_t seed)
{
    s[0] = seed;
    for (uint32_t i = 1; i < N; i++) s[i] = 1812433253u * (s[i - 1] ^ s[i - 1] >> 30) + i;
}

void twister_seed(twister *t, int64_t seed)
{
    uint64_t size = seed < 0 ? -(uint64_t)seed : (uint64_t)seed;
    uint32_t key[2] = {(uint32_t)size, (uint32_t)(size >> 32)}, *s = t->state;
    const int length = key[1] ? 2 : 1;
    int i = 1;

    seed_by_word(s, 19650218);
    for (int k = 0; k < N; k++) { /* N is more than the key's length */
        uint32_t j = (uint32_t)(k % length);
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1664525u) + key[j] + j;
        if (++i == N) s[0] = s[N - 1], i = 1;
    }
    for (int k = 0; k < N - 1; k++) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
        if (++i == N) s[0] = s[N - 1], i = 1;
    }
    s[0] = 0x80000000;
    t->used = N;
}

static void renew(twister *t)
{
    uint32_t *s = t->state;
    for (int i = 0; i < N; i++) {
        uint32_t y = (s[i] & 0x80000000) | (s[(i + 1) % N] & 0x7fffffff);
        s[i] = s[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0df : 0);
    }
    t->used = 0;
}

uint32_t twister_word(twister *t)
{
    if (t->used == N) renew(t);
    uint32_t y = t->state[t->used++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680;
    y ^= y << 15 & 0xefc60000;
    return y ^ y >> 18;
}

int32_t twister_op_seed(twister *t)
{
    uint32_t word;
    do word = twister_word(t);
    while (word > INT32_MAX);
    return (int32_t)word;
}

/* The non-negative remainder. */
static uint64_t reduce(int64_t seed)
{
    int64_t rest = seed % INT32_MAX;
    return (uint64_t)(rest < 0 ? rest + INT32_MAX : rest);
}

philox philox_from_op_seeds(const int64_t *global, const int64_t *op)
{
    uint64_t first = global ? reduce(*global) : 87654321;
    uint64_t second = op ? reduce(*op) : 0;
    if (!first && !second) second = INT32_MAX;
    return philox_from_seeds(first, second);
}
