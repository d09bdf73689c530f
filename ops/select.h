/*
 * The element that has a certain number among the sorted ones, without sorting: its key, an
 * unsigned number in the elements' order, is found byte by byte, most significant first, among the
 * elements that agree so far (radix select), whatever their order. Of many, a sample tells between
 * which two the one lies, mostly, which leaves few after one pass.
 */
#ifndef EDDY_OPS_SELECT_H
#define EDDY_OPS_SELECT_H

#include "tensor/hard.h"
#include <stdbool.h>
#include <stdint.h>

/* Keys in a sample, and of how many elements on one is taken. */
enum { SELECT_SAMPLE = 256, SELECT_FROM = HARD(SELECT_SAMPLE, 1 << 13) };

/* The key number *kth of the n sorted ones; *kth is then its number among those that are equal.
 * candidates: room for n keys, which may be `keys`. */
uint64_t select_by_bytes(const uint64_t *keys, int64_t n, int64_t *kth, uint64_t *candidates);

/* Between which keys number kth of n is expected, by a sample of SELECT_SAMPLE of them, which it
 * sorts. */
typedef struct select_range {
    uint64_t low, high;
} select_range;
select_range select_near(uint64_t *sample, int64_t n, int64_t kth);

/* select_by_bytes by way of a sample. */
uint64_t select_of_keys(const uint64_t *keys, int64_t n, int64_t *kth, uint64_t *candidates);

#endif
