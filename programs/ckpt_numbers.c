/* Elements of any dtype as float64 numbers, in blocks that fit the L1 cache. */
#include "programs/ckpt.h"
#include <math.h>
#include <string.h>

/* ---- Small floats ---------------------------------------------------------------------------- */

/* Special values of the largest exponent or of the negative zero. */
enum special { NONE, IEEE, ONE_NAN, NAN_FOR_MINUS_ZERO };

static const struct small_float {
    io_dtype dtype;
    uint8_t exponent, mantissa, bias; /* bits, bits */
    enum special special;
} small_floats[] = {
    {IO_FLOAT8_E5M2, 5, 2, 15, IEEE},
    {IO_FLOAT8_E4M3FN, 4, 3, 7, ONE_NAN},
    {IO_FLOAT8_E4M3FNUZ, 4, 3, 8, NAN_FOR_MINUS_ZERO},
    {IO_FLOAT8_E4M3B11FNUZ, 4, 3, 11, NAN_FOR_MINUS_ZERO},
    {IO_FLOAT8_E5M2FNUZ, 5, 2, 16, NAN_FOR_MINUS_ZERO},
    {IO_FLOAT4_E2M1FN, 2, 1, 1, NONE},
};
enum { SMALL_FLOATS = sizeof small_floats / sizeof *small_floats };

static const struct small_float *small_float_of(io_dtype dtype)
{
    for (int i = 0; i < SMALL_FLOATS; i++)
        if (small_floats[i].dtype == dtype) return &small_floats[i];
    return NULL;
}

static double small_float_value(const struct small_float *f, unsigned bits)
{
    int sign = 1 << (f->exponent + f->mantissa), one = 1 << f->mantissa;
    int exponent = ((int)bits & (sign - 1)) >> f->mantissa, mantissa = (int)bits & (one - 1);
    bool negative = (int)bits & sign, top = exponent == (1 << f->exponent) - 1;
    if (f->special == IEEE && top) return mantissa ? NAN : negative ? -INFINITY : INFINITY;
    if (f->special == ONE_NAN && top && mantissa == one - 1) return NAN;
    if (f->special == NAN_FOR_MINUS_ZERO && (int)bits == sign) return NAN;
    double value = exponent ? ldexp(one + mantissa, exponent - f->bias - f->mantissa)
                            : ldexp(mantissa, 1 - f->bias - f->mantissa);
    return negative ? -value : value;
}

/* An element that a file stores in a byte. */
static double byte_value(io_dtype dtype, unsigned byte)
{
    switch (dtype) {
    case IO_INT4: return (int)(byte & 15) - (byte & 8 ? 16 : 0);
    case IO_UINT4: return byte & 15;
    case IO_INT2: return (int)(byte & 3) - (byte & 2 ? 4 : 0);
    case IO_UINT2: return byte & 3;
    case IO_FLOAT8_E8M0: return byte == 255 ? NAN : ldexp(1, (int)byte - 127);
    default: return small_float_value(small_float_of(dtype), byte);
    }
}

static bool is_byte(io_dtype dtype)
{
    return (dtype >= IO_INT4 && dtype <= IO_UINT2) || dtype == IO_FLOAT8_E8M0 ||
           small_float_of(dtype);
}

/* ---- Numbers of tensors ---------------------------------------------------------------------- */

/* The dtype of tensors whose numbers are stored the same way; ED_DTYPE_NONE if there is none. A
 * bool is read as a number, since a file may have other bytes than 0 and 1. */
static ed_dtype plain_dtype(io_dtype dtype)
{
    switch (dtype) {
    case IO_BOOL:
    case IO_QUINT8: return ED_UINT8;
    case IO_COMPLEX64: return ED_FLOAT32;
    case IO_COMPLEX128: return ED_FLOAT64;
    case IO_QINT8: return io_dtype_to(IO_INT8);
    case IO_QINT16: return io_dtype_to(IO_INT16);
    case IO_QUINT16: return io_dtype_to(IO_UINT16);
    case IO_QINT32: return ED_INT32;
    default: return io_dtype_to(dtype);
    }
}

bool ckpt_numbers_of(const archive_item *item, ckpt_numbers *numbers)
{
    ed_dtype plain = plain_dtype(item->dtype);
    int64_t elements = ckpt_elements(item);
    int parts = item->dtype == IO_COMPLEX64 || item->dtype == IO_COMPLEX128 ? 2 : 1;
    *numbers = (ckpt_numbers){item->dtype, plain ? ed_dtype_size(plain) : 1, 0};
    if (elements < 0 || __builtin_mul_overflow(elements, parts, &numbers->count) ||
        numbers->count > INT64_MAX / (int64_t)numbers->width)
        return false;
    /* Some files pack numbers of less than a byte. */
    return plain || (is_byte(item->dtype) && item->bytes == elements);
}

void ckpt_decode(const ckpt_numbers *numbers, const uint8_t *from, size_t n, double *to)
{
    double aligned[CKPT_BLOCK];
    ed_dtype plain = plain_dtype(numbers->dtype);
    if (!plain) {
        for (size_t i = 0; i < n; i++) to[i] = byte_value(numbers->dtype, from[i]);
        return;
    }
    memcpy(aligned, from, n * numbers->width);
    for (size_t i = 0; i < n; i++) to[i] = dtype_load(plain, aligned, (int64_t)i);
}

/* ---- Streams --------------------------------------------------------------------------------- */

struct cutter {
    const ckpt_numbers *numbers;
    ckpt_take *take;
    void *user;
    io_digester *digest;
    uint8_t split[16]; /* the first bytes of a number that is split between two pieces */
    size_t held;
};

static void take_whole(struct cutter *c, const uint8_t *from, size_t n)
{
    for (size_t block; n; from += block * c->numbers->width, n -= block) {
        block = n < CKPT_BLOCK ? n : CKPT_BLOCK;
        c->take(c->user, from, block);
    }
}

static bool cut(void *user, const void *data, size_t size)
{
    struct cutter *c = user;
    const uint8_t *from = data;
    if (c->digest) io_digest_add(c->digest, data, size);
    if (!c->take || !size) return true;
    size_t width = c->numbers->width, wanted = c->held ? width - c->held : 0;
    size_t first = wanted < size ? wanted : size;
    memcpy(c->split + c->held, from, first);
    c->held += first;
    if (c->held == width) {
        take_whole(c, c->split, 1);
        c->held = 0;
    }
    if (c->held) return true;
    size_t whole = (size - first) / width, rest = (size - first) % width;
    take_whole(c, from + first, whole);
    memcpy(c->split, from + size - rest, rest);
    c->held = rest;
    return true;
}

bool ckpt_stream(const archive_item *item, const ckpt_numbers *numbers, ckpt_take *take, void *user,
                 io_digester *digest)
{
    struct cutter c = {.numbers = numbers, .take = take, .user = user, .digest = digest};
    return archive_stream(item, cut, &c);
}
