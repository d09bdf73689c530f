#include "ops/fingerprint.h"
#include "tensor/threads.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 24 }; /* of an int64 in decimal: a sign and up to 19 digits */

/* Writes x in decimal; returns the number of characters. */
static size_t decimal(int64_t x, char *chars)
{
    char digits[TEXT_BYTES];
    size_t n = 0, length = 0;
    uint64_t rest = x < 0 ? -(uint64_t)x : (uint64_t)x;
    do digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (x < 0) chars[length++] = '-';
    while (n) chars[length++] = digits[--n];
    return length;
}

/* The bytes from there on as a little-endian number. */
static uint64_t fetch(const char *bytes, size_t count)
{
    uint64_t x = 0;
    for (size_t i = 0; i < count; i++) x |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return x;
}

static uint64_t rotated(uint64_t x, int right)
{
    return x >> right | x << (64 - right);
}

static uint64_t mixed(uint64_t x)
{
    return x ^ (x >> 47);
}

/* ---- FarmHash: Fingerprint64 of at most 32 bytes --------------------------------------------- */

static const uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

static uint64_t joined(uint64_t u, uint64_t v, uint64_t mul)
{
    const uint64_t a = mixed((u ^ v) * mul);
    return mixed((v ^ a) * mul) * mul;
}

static uint64_t fingerprint(const char *s, size_t n)
{
    const uint64_t mul = k2 + 2 * n;
    if (n > 16) {
        const uint64_t a = fetch(s, 8) * k1, b = fetch(s + 8, 8), c = fetch(s + n - 8, 8) * mul,
                       d = fetch(s + n - 16, 8) * k2;
        return joined(rotated(a + b, 43) + rotated(c, 30) + d, a + rotated(b + k2, 18) + c, mul);
    }
    if (n >= 8) {
        const uint64_t a = fetch(s, 8) + k2, b = fetch(s + n - 8, 8);
        return joined(rotated(b, 37) * mul + a, (rotated(a, 25) + b) * mul, mul);
    }
    if (n >= 4) return joined(n + (fetch(s, 4) << 3), fetch(s + n - 4, 4), mul);
    const uint64_t y = fetch(s, 1) + (fetch(s + n / 2, 1) << 8), z = n + (fetch(s + n - 1, 1) << 2);
    return mixed((y * k2) ^ (z * k0)) * k2;
}

/* The fingerprint of two in a row: tsl's FingerprintCat64. */
static uint64_t chained(uint64_t first, uint64_t second)
{
    const uint64_t mul = 0xc6a4a7935bd1e995;
    const uint64_t x = ((first ^ mul) ^ (mixed(second * mul) * mul)) * mul;
    return mixed(mixed(x) * mul);
}

/* ---- SipHash-2-4 ----------------------------------------------------------------------------- */

static void sip_rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1];
        v[1] = rotated(v[1], 64 - 13) ^ v[0];
        v[0] = rotated(v[0], 32);
        v[2] += v[3];
        v[3] = rotated(v[3], 64 - 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotated(v[3], 64 - 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotated(v[1], 64 - 17) ^ v[2];
        v[2] = rotated(v[2], 32);
    }
}

static uint64_t siphash(const int64_t *key, const char *s, size_t n)
{
    const uint64_t a = (uint64_t)key[0], b = (uint64_t)key[1];
    uint64_t v[4] = {a ^ 0x736f6d6570736575, b ^ 0x646f72616e646f6d, a ^ 0x6c7967656e657261,
                     b ^ 0x7465646279746573};
    for (size_t at = 0; at <= n; at += 8) {
        const uint64_t word =
            at + 8 <= n ? fetch(s + at, 8) : fetch(s + at, n - at) | (uint64_t)n << 56;
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- hash_buckets ---------------------------------------------------------------------------- */

#define HASH_BUCKETS_ATTRS(FIELD, T)                                                               \
    FIELD(T, INT, num_buckets, 1, ED_AT_LEAST(1), "of the hashes")                                 \
    FIELD(T, INTS, key, ED_NO_LIST, ED_ANY, "two integers: SipHash; default: FarmHash")
ED_OPTIONS(hash_buckets_attrs, HASH_BUCKETS_ATTRS);

static int64_t bucket(const hash_buckets_attrs *a, const char *chars, size_t length)
{
    const uint64_t hash =
        a->key.values ? siphash(a->key.values, chars, length) : fingerprint(chars, length);
    return (int64_t)(hash % (uint64_t)a->num_buckets);
}

static bool hash_buckets_infer(ed_call *call)
{
    const hash_buckets_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (a->key.values && a->key.count != 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "key must be two integers, got %s",
                            text_of_ints(a->key.values, a->key.count).s);
    return ed_call_output(call, 0, ED_INT64, x->rank, x->shape);
}

static void hash_range(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const ed_tensor *x = call->inputs[0];
    int64_t *y = (int64_t *)call->outputs[0]->data;
    char chars[TEXT_BYTES];
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t value =
            x->dtype == ED_INT64 ? ((const int64_t *)x->data)[i] : ((const int32_t *)x->data)[i];
        const size_t length = decimal(value, chars);
        y[i] = bucket(call->attrs, chars, length);
    }
}

static bool hash_buckets_kernel(ed_call *call)
{
    threads_run(call->inputs[0]->size, 1 + OPS_PARALLEL_WORK / 32, hash_range, call);
    return true;
}

static bool hash_buckets_plain(const ed_call *call)
{
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        char chars[TEXT_BYTES];
        const int n =
            snprintf(chars, sizeof chars, "%.0f", ((const double *)call->inputs[0]->data)[i]);
        ((double *)call->outputs[0]->data)[i] = (double)bucket(call->attrs, chars, (size_t)n);
    }
    return true;
}

#define HASH_BUCKETS(...) ED_ATTRS(HASH_BUCKETS_ATTRS, hash_buckets_attrs, __VA_ARGS__)

ED_OP(hash_buckets) = {
    .name = "hash_buckets",
    .doc = "a hash of the integer's decimal text, mod num_buckets",
    .operands = {{"x", ED_SET_INDEX}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(HASH_BUCKETS_ATTRS, hash_buckets_attrs),
    .infer = hash_buckets_infer,
    .kernel = hash_buckets_kernel,
    .no_gradient = "its result is an integer",
    .reference = hash_buckets_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-9, 99, 5, 3)},
                           .attrs = HASH_BUCKETS(.num_buckets = 1 << 20)},
                          {.inputs = {ED_SAMPLE_IN(100000, 999999, 7)},
                           .attrs = HASH_BUCKETS(.num_buckets = 7, .key = ED_SAMPLE_INTS(3, -4))}),
};

ed_tensor *fingerprint_buckets(ed_tensor *x, int64_t num_buckets, ed_ints key)
{
    return CALL_OP(hash_buckets, HASH_BUCKETS(.num_buckets = num_buckets, .key = key), x);
}

/* ---- hash_cross ------------------------------------------------------------------------------ */

#define HASH_CROSS_ATTRS(FIELD, T) FIELD(T, INT, num_buckets, 1, ED_AT_LEAST(1), "of the hashes")
ED_OPTIONS(hash_cross_attrs, HASH_CROSS_ATTRS);

static const uint64_t cross_key = 956888297470; /* tf.sparse.cross_hashed's default */

static bool hash_cross_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    for (int i = 1; i < call->n_inputs; i++)
        if (call->inputs[i]->rank != x->rank ||
            memcmp(call->inputs[i]->shape, x->shape, (size_t)x->rank * sizeof *x->shape) != 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "the inputs must have the same shape, got %s and %s",
                                text_of_tensor(x).s, text_of_tensor(call->inputs[i]).s);
    return ed_call_output(call, 0, ED_INT64, x->rank, x->shape);
}

/* The hash is taken mod the number of buckets once, at the end. */
static bool hash_cross_kernel(ed_call *call)
{
    const hash_cross_attrs *a = call->attrs;
    int64_t *y = (int64_t *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        uint64_t hash = cross_key;
        for (int k = 0; k < call->n_inputs; k++)
            hash = chained(hash, (uint64_t)((const int64_t *)call->inputs[k]->data)[i]);
        y[i] = (int64_t)(hash % (uint64_t)a->num_buckets);
    }
    return true;
}

static bool hash_cross_plain(const ed_call *call)
{
    const hash_cross_attrs *a = call->attrs;
    for (int64_t i = 0; i < call->inputs[0]->size; i++) {
        uint64_t hash = cross_key;
        for (int k = 0; k < call->n_inputs; k++)
            hash = chained(hash, (uint64_t)(int64_t)((const double *)call->inputs[k]->data)[i]);
        ((double *)call->outputs[0]->data)[i] = (double)(hash % (uint64_t)a->num_buckets);
    }
    return true;
}

#define HASH_CROSS(n) ED_ATTRS(HASH_CROSS_ATTRS, hash_cross_attrs, .num_buckets = n)

ED_OP(hash_cross) = {
    .name = "hash_cross",
    .doc = "a hash of the integers at one place of all inputs, mod num_buckets",
    .operands = {{"x", 1 << ED_INT64}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL | ED_OP_VARIADIC,
    ED_OP_ATTRS(HASH_CROSS_ATTRS, hash_cross_attrs),
    .infer = hash_cross_infer,
    .kernel = hash_cross_kernel,
    .no_gradient = "its result is an integer",
    .reference = hash_cross_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-9, 99, 5, 3), ED_SAMPLE_IN(0, 3, 5, 3)},
                           .attrs = HASH_CROSS(1 << 20)},
                          {.inputs = {ED_SAMPLE_IN(-9, 99, 4)}, .attrs = HASH_CROSS(7)}),
};

ed_tensor *fingerprint_cross(ed_tensor *const *inputs, int n, int64_t num_buckets)
{
    return ed_call_op(&ed_op_hash_cross, inputs, n, HASH_CROSS(num_buckets));
}
