/*
 * index_shuffle: where an index stands in a random order that nobody writes down. Numbers of twice
 * `half` bits are permuted by four rounds of the block cipher Simon (Beaulieu and others, 2013),
 * and again until the result is no larger than max_index. TensorFlow's numbers.
 */
#include "ops/ops.h"
#include "ops/stateless.h"
#include <string.h>

enum { ROUNDS = 4, LEAST_HALF = 8 };

/* What TensorFlow puts before the two numbers of a seed. */
static const uint32_t first_of_key = 498247692;

/* Words of `half` bits. */
typedef struct cipher {
    int half;
    uint64_t mask, keys[ROUNDS];
} cipher;

static uint64_t rotated(const cipher *c, uint64_t x, int bits)
{
    return (x << bits | x >> (c->half - bits)) & c->mask;
}

static cipher cipher_of(const int64_t seed[2], int64_t max_index)
{
    cipher c = {.half = LEAST_HALF};
    while (c.half < 32 && (max_index - 1) >> 2 * c.half) c.half++;
    c.mask = (UINT64_C(1) << c.half) - 1;
    c.keys[0] = first_of_key & c.mask;
    for (int k = 0; k < 2; k++) c.keys[1 + k] = (uint32_t)seed[k] & c.mask;
    c.keys[3] = (0xfffffffd ^ c.keys[0] ^ rotated(&c, c.keys[2], c.half - 3) ^
                 rotated(&c, c.keys[2], c.half - 4)) &
                c.mask;
    return c;
}

static uint64_t encrypted(const cipher *c, uint64_t x)
{
    uint64_t left = x >> c->half & c->mask, right = x & c->mask;
    for (int k = 0; k < ROUNDS; k++) {
        const uint64_t mixed = left ^ c->keys[k] ^ rotated(c, right, 2) ^
                               (rotated(c, right, 1) & rotated(c, right, 8));
        left = right;
        right = mixed;
    }
    return left << c->half | right;
}

static int64_t shuffled(const int64_t seed[2], int64_t index, int64_t max_index)
{
    if (!max_index) return 0;
    const cipher c = cipher_of(seed, max_index);
    uint64_t x = (uint64_t)index;
    do x = encrypted(&c, x);
    while (x > (uint64_t)max_index);
    return (int64_t)x;
}

/* The elements as int64, in order. */
static const int64_t *integers_of(ed_tensor *x)
{
    ed_tensor *y = ed_contiguous(ed_cast(x, ED_INT64));
    return y ? ed_data(y) : NULL;
}

static bool index_shuffle_compose(ed_call *call)
{
    if (!stateless_check(call, 1)) return false;
    /* Each in the shape of both. */
    ed_tensor *given = call->inputs[0], *largest = call->inputs[2];
    ed_tensor *index = ed_add(given, ed_sub(largest, largest)),
              *most = ed_add(largest, ed_sub(given, given));
    if (!index || !most) return false;
    const int64_t *at = integers_of(index), *ends = integers_of(most),
                  *seed = integers_of(call->inputs[1]);
    ed_tensor *y = scope_give(tensor_new(ED_INT64, ed_rank(index), ed_shape(index).values));
    if (!at || !ends || !seed || !y) return false;
    for (int64_t i = 0; i < y->size; i++) {
        if (at[i] < 0 || at[i] > ends[i])
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "index %lld is not from 0 to %lld",
                                (long long)at[i], (long long)ends[i]);
        ((int64_t *)y->data)[i] = shuffled(seed, at[i], ends[i]);
    }
    return ed_call_result(call, 0, ed_cast(y, ed_dtype_of(given)));
}

/* Bit i of a word of n bits, rotated to the left. */
static bool plain_bit(const bool *word, int n, int i, int by)
{
    return word[(i + n - by) % n];
}

/* The same on single bits. */
static int64_t plain_shuffled(const double *seed, int64_t index, int64_t max_index)
{
    int n = LEAST_HALF;
    while (((int64_t)1 << 2 * n) < max_index) n++;
    bool key[ROUNDS][32], word[2][32], next[32];
    for (int i = 0; i < n; i++) {
        key[0][i] = first_of_key >> i & 1;
        for (int k = 0; k < 2; k++) key[1 + k][i] = (int64_t)seed[k] >> i & 1;
    }
    for (int i = 0; i < n; i++)
        key[3][i] = (i != 1) ^ key[0][i] ^ key[2][(i + 3) % n] ^ key[2][(i + 4) % n];
    do {
        for (int i = 0; i < n; i++) word[1][i] = index >> i & 1, word[0][i] = index >> (n + i) & 1;
        for (int k = 0; k < ROUNDS; k++) {
            for (int i = 0; i < n; i++)
                next[i] = word[0][i] ^ key[k][i] ^ plain_bit(word[1], n, i, 2) ^
                          (plain_bit(word[1], n, i, 1) && plain_bit(word[1], n, i, 8));
            memcpy(word[0], word[1], sizeof next);
            memcpy(word[1], next, sizeof next);
        }
        index = 0;
        for (int i = 0; i < n; i++)
            index |= (int64_t)word[1][i] << i | (int64_t)word[0][i] << (n + i);
    } while (index > max_index);
    return index;
}

/* Of samples of which each operand has one element or all. */
static bool index_shuffle_reference(const ed_call *call)
{
    const ed_tensor *index = call->inputs[0], *most = call->inputs[2], *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++)
        ((double *)y->data)[i] =
            (double)plain_shuffled((const double *)call->inputs[1]->data,
                                   (int64_t)((const double *)index->data)[index->size == 1 ? 0 : i],
                                   (int64_t)((const double *)most->data)[most->size == 1 ? 0 : i]);
    return true;
}

ED_OP(index_shuffle) = {
    .name = "index_shuffle",
    .doc = "where an index stands in a random order of the numbers up to max_index",
    .operands = {{"index", ED_SET_INDEX, 'T', .early = true},
                 {"seed", ED_SET_INDEX, 'S', .early = true},
                 {"max_index", ED_SET_INDEX, 'T', .early = true}},
    .compose = index_shuffle_compose,
    .no_gradient = "an index does not change gradually",
    .reference = index_shuffle_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 900, 5), ED_SAMPLE_IN(-9, 9, 2),
                                      ED_SAMPLE_IN(1000, 9000, 5)}},
                          {.inputs = {ED_SAMPLE_IN(0, 900, 3, 2), ED_SAMPLE_IN(-9, 9, 2),
                                      ED_SAMPLE_IN(100000, 900000)}}),
};

ed_tensor *ed_index_shuffle(ed_tensor *index, ed_tensor *seed, ed_tensor *max_index)
{
    return CALL_OP(index_shuffle, NULL, index, seed, max_index);
}
