#include "ops/select.h"
#include <string.h>

enum { NEAR = 24 }; /* keys of the sample, how far from its place the one may be */

/* How many keys have each byte. */
static void tally_bytes(const uint64_t *keys, int64_t n, int shift, int64_t *counts)
{
    int64_t odd[256] = {0}; /* apart, so that equal neighbours do not wait for each other */
    memset(counts, 0, sizeof odd);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        counts[keys[i] >> shift & 255]++;
        odd[keys[i + 1] >> shift & 255]++;
    }
    if (n % 2) counts[keys[n - 1] >> shift & 255]++;
    for (int byte = 0; byte < 256; byte++) counts[byte] += odd[byte];
}

uint64_t select_by_bytes(const uint64_t *keys, int64_t n, int64_t *kth, uint64_t *candidates)
{
    for (int shift = 56; shift >= 0; shift -= 8) {
        int64_t counts[256], left = 0;
        uint64_t byte = 0;
        tally_bytes(keys, n, shift, counts);
        for (; *kth >= counts[byte]; byte++) *kth -= counts[byte];
        if (counts[byte] == n) continue;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t key = keys[i];
            candidates[left] = key;
            left += (key >> shift & 255) == byte;
        }
        keys = candidates;
        n = left;
    }
    return keys[0];
}

static void sort_sample(uint64_t *sample)
{
    for (int i = 1; i < SELECT_SAMPLE; i++) {
        const uint64_t key = sample[i];
        int j = i;
        for (; j > 0 && sample[j - 1] > key; j--) sample[j] = sample[j - 1];
        sample[j] = key;
    }
}

select_range select_near(uint64_t *sample, int64_t n, int64_t kth)
{
    const int at = (int)((double)kth / (double)n * SELECT_SAMPLE);
    sort_sample(sample);
    return (select_range){at < NEAR ? 0 : sample[at - NEAR],
                          at + NEAR < SELECT_SAMPLE ? sample[at + NEAR] : UINT64_MAX};
}

uint64_t select_of_keys(const uint64_t *keys, int64_t n, int64_t *kth, uint64_t *candidates)
{
    uint64_t sample[SELECT_SAMPLE];
    if (n < SELECT_FROM) return select_by_bytes(keys, n, kth, candidates);
    for (int i = 0; i < SELECT_SAMPLE; i++) sample[i] = keys[n / SELECT_SAMPLE * i];
    const select_range near = select_near(sample, n, *kth);
    int64_t left = 0, less = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        candidates[left] = key;
        left += (key >= near.low) & (key <= near.high);
        less += key < near.low;
    }
    if (*kth < less || *kth >= less + left) return select_by_bytes(keys, n, kth, candidates);
    *kth -= less;
    return select_by_bytes(candidates, left, kth, candidates);
}
