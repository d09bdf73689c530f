/* Bytes for files to hold. */
#ifndef EDDY_TESTS_NOISE_H
#define EDDY_TESTS_NOISE_H

#include "tests/asserts.h"
#include <stdint.h>
#include <stdlib.h>

/* Bytes that differ from place to place and from seed to seed, to be freed. */
static uint8_t *noise(size_t size, uint64_t seed)
{
    uint8_t *p = malloc(size + 1);
    assert_non_null(p);
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        p[i] = (uint8_t)(x >> 32);
    }
    return p;
}

#endif
