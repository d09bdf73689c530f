/*
 * The loops of sort and argsort for each instruction set: elements become keys and back, a bitonic
 * network sorts a thousand of them in vectors, and more are parted by their size.
 *
 * Two sorted halves of which the second is turned around are one bitonic row. Comparing each
 * element of its first half with that of the second at the same place, smaller ones to the first,
 * leaves two bitonic halves with all of the first below the second; and so on down to single
 * elements. The steps down to a vector compare whole vectors, the rest lanes of one. Where a row
 * ends, all that would come after it is as large as can be: such comparisons change nothing and are
 * left out, so that a row need not have a power of two of elements.
 *
 * Comparing lanes of one vector takes shuffles. So the first steps sort a block of as many vectors
 * as they have lanes by its columns: each column alone, then two as one, the second turned around
 * behind the first, then four. With AVX2 a table of many rows is sorted so: of all its steps those
 * that join the columns are the only ones that compare lanes.
 *
 * Items are parted without a branch: of each vector those up to a bound are packed and stored at
 * one place, the others at another, whole vectors both; what is too much the next store covers.
 * Neither store reaches beyond what has been read, so that one of the places may be the items' own.
 * With AVX-512 they are also parted in four, see sort_quarters.
 */
#include "ops/sort.h"
#include <string.h>

#ifdef ISA
#include "ops/kernels/vector_base.h"

#define TYPE f32
#include "ops/sort_convert.typed.h"
#define TYPE f64
#include "ops/sort_convert.typed.h"
#define TYPE i32
#include "ops/sort_convert.typed.h"
#define TYPE i64
#include "ops/sort_convert.typed.h"
#define TYPE u8
#include "ops/sort_convert.typed.h"

#define CONVERTER(type)                                                                            \
    {                                                                                              \
        make_keys_##type, read_keys_##type, make_pairs_##type, read_pairs_##type                   \
    }

const sort_converter ISA_NAME(sort_converters)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = CONVERTER(f32), [ED_FLOAT64] = CONVERTER(f64), [ED_INT32] = CONVERTER(i32),
    [ED_INT64] = CONVERTER(i64),   [ED_UINT8] = CONVERTER(u8),
};

/* Vectors of the set that has minima and maxima of unsigned numbers; lanes that are up to a bound,
 * as bits, and those lanes packed at the front of a vector. With AVX-512 the larger of two is what
 * the two and the smaller leave by exclusive or: there are twice the units for that. */
#if defined(VECTOR_AVX512)
#define SORT_LEAST_u32(a, b) (vu32) _mm512_min_epu32((__m512i)(a), (__m512i)(b))
#define SORT_MOST_u32(a, b, least)                                                                 \
    (vu32) _mm512_ternarylogic_epi32((__m512i)(a), (__m512i)(b), (__m512i)(least), 0x96)
#define SORT_LEAST_u64(a, b) (vu64) _mm512_min_epu64((__m512i)(a), (__m512i)(b))
#define SORT_MOST_u64(a, b, least)                                                                 \
    (vu64) _mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(least), 0x96)
#define SORT_UPPER_u32(b, a, v) (vu32) _mm512_mask_mov_epi32((__m512i)(a), b, (__m512i)(v))
#define SORT_UPPER_u64(b, a, v) (vu64) _mm512_mask_mov_epi64((__m512i)(a), b, (__m512i)(v))
#define SORT_UPPER_MOST_u32(bits, v, a, b)                                                         \
    (vu32) _mm512_mask_ternarylogic_epi32((__m512i)(v), bits, (__m512i)(a), (__m512i)(b), 0x96)
#define SORT_UPPER_MOST_u64(bits, v, a, b)                                                         \
    (vu64) _mm512_mask_ternarylogic_epi64((__m512i)(v), bits, (__m512i)(a), (__m512i)(b), 0x96)
#define SORT_UP_TO_u32(v, bound) _mm512_cmple_epu32_mask((__m512i)(v), (__m512i)(bound))
#define SORT_UP_TO_u64(v, bound) _mm512_cmple_epu64_mask((__m512i)(v), (__m512i)(bound))
#define SORT_PACKED_u32(v, b)    (vu32) _mm512_maskz_compress_epi32((__mmask16)(b), (__m512i)(v))
#define SORT_PACKED_u64(v, b)    (vu64) _mm512_maskz_compress_epi64((__mmask8)(b), (__m512i)(v))
#define SORT_BUT_u32(b, c)       _kandn_mask16(c, b)
#define SORT_BUT_u64(b, c)       _kandn_mask8(c, b)
#define SORT_NOT_u32(b)          _knot_mask16(b)
#define SORT_NOT_u64(b)          _knot_mask8(b)
#define sort_mask_u32            __mmask16
#define sort_mask_u64            __mmask8
#define SORT_STORE_u32(p, n, v)                                                                    \
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << (n)) - 1), (__m512i)(v))
#define SORT_STORE_u64(p, n, v)                                                                    \
    _mm512_mask_storeu_epi64(p, (__mmask8)((1u << (n)) - 1), (__m512i)(v))
#define SORT_MOST_ITEMS_u32 INT64_MAX
#define SORT_MOST_ITEMS_u64 (1 << 15)
#define SORT_U64            1
#elif defined(VECTOR_AVX2)
#define SORT_LEAST_u32(a, b)               (vu32) _mm256_min_epu32((__m256i)(a), (__m256i)(b))
#define SORT_MOST_u32(a, b, least)         (vu32) _mm256_max_epu32((__m256i)(a), (__m256i)(b))
#define SORT_UPPER_u32(b, a, v)            (vu32) _mm256_blend_epi32((__m256i)(a), (__m256i)(v), (b)&0xff)
#define SORT_UPPER_MOST_u32(bits, v, a, b) SORT_UPPER_u32(bits, v, SORT_MOST_u32(a, b, v))
#define SORT_UP_TO_u32(v, bound)           vbits((vi32)(SORT_LEAST_u32(v, bound) == (v)))
#define SORT_PACKED_u32(v, b)              sort_packed(v, b)
#define SORT_MOST_ITEMS_u32                INT64_MAX

/* For each byte the numbers of its bits that are set, in bytes from the lowest on. */
#define BIT_PLACE(byte, bit)                                                                       \
    ((uint64_t)((byte) >> (bit)&1) * (bit) << 8 * __builtin_popcount((byte) & ((1 << (bit)) - 1)))
#define BIT_PLACES(byte)                                                                           \
    BIT_PLACE(byte, 1) | BIT_PLACE(byte, 2) | BIT_PLACE(byte, 3) | BIT_PLACE(byte, 4) |            \
        BIT_PLACE(byte, 5) | BIT_PLACE(byte, 6) | BIT_PLACE(byte, 7)
#define BIT_PLACES_4(b) BIT_PLACES(b), BIT_PLACES((b) + 1), BIT_PLACES((b) + 2), BIT_PLACES((b) + 3)
#define BIT_PLACES_16(b)                                                                           \
    BIT_PLACES_4(b), BIT_PLACES_4(b + 4), BIT_PLACES_4(b + 8), BIT_PLACES_4(b + 12)
#define BIT_PLACES_64(b)                                                                           \
    BIT_PLACES_16(b), BIT_PLACES_16(b + 16), BIT_PLACES_16(b + 32), BIT_PLACES_16(b + 48)
static const uint64_t packed_lanes[256] = {BIT_PLACES_64(0), BIT_PLACES_64(64), BIT_PLACES_64(128),
                                           BIT_PLACES_64(192)};

VECTOR_INLINE vu32 sort_packed(vu32 v, unsigned bits)
{
    const __m128i lanes = _mm_cvtsi64_si128((int64_t)packed_lanes[bits]);
    return (vu32)_mm256_permutevar8x32_epi32((__m256i)v, _mm256_cvtepu8_epi32(lanes));
}
#endif

#if defined(SORT_LEAST_u32)
#define SORT_U32 1

/* The lanes of v at their own number ^ c. */
#define FROM_4(c, k) (k) ^ (c), ((k) + 1) ^ (c), ((k) + 2) ^ (c), ((k) + 3) ^ (c)
#define FROM_8(c, k) FROM_4(c, k), FROM_4(c, (k) + 4)
#if defined(VECTOR_AVX512)
#define SORT_SWAPPED_u32(v, c) __builtin_shufflevector(v, v, FROM_8(c, 0), FROM_8(c, 8))
#define SORT_SWAPPED_u64(v, c) __builtin_shufflevector(v, v, FROM_8(c, 0))
#else
#define SORT_SWAPPED_u32(v, c) __builtin_shufflevector(v, v, FROM_8(c, 0))
#endif

#define TYPE          u32
#define SORT_LANES_16 (VECTOR_BYTES == 64)
#define SORT_TABLES   (VECTOR_BYTES == 32)
#include "ops/sort_network.typed.h"
#if defined(SORT_U64)
#define TYPE          u64
#define SORT_LANES_16 0
#define SORT_TABLES   0
#include "ops/sort_network.typed.h"
#endif
#endif

#if defined(VECTOR_AVX512)
#define SORT_QUARTERS_OF(type) sort_quartiles_##type, sort_quarter_##type
#else
#define SORT_QUARTERS_OF(type) NULL, NULL
#endif
const sort_vectors ISA_NAME(sort_vectors_table)[2] = {
#if defined(SORT_U32)
    {sort_network_u32, sort_pivot_u32, sort_part_u32, sort_count_u32, sort_take_u32,
     SORT_QUARTERS_OF(u32), SORT_MOST_ITEMS_u32},
#endif
#if defined(SORT_U64)
    {sort_network_u64, sort_pivot_u64, sort_part_u64, sort_count_u64, sort_take_u64,
     SORT_QUARTERS_OF(u64), SORT_MOST_ITEMS_u64},
#endif
};
#endif
