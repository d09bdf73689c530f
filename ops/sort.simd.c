/*
 * The loops of sort and argsort for each instruction set: elements become keys and back, and a
 * bitonic network sorts a few thousand of them in vectors.
 *
 * Two sorted halves of which the second is turned around are one bitonic row. Comparing each
 * element of its first half with that of the second at the same place, smaller ones to the first,
 * leaves two bitonic halves with all of the first below the second; and so on down to single
 * elements. The steps down to a vector compare whole vectors, the rest lanes of one. Where a row
 * ends, all that would come after it is as large as can be: such comparisons change nothing and are
 * left out, so that a row need not have a power of two of elements.
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

/* Vectors of the set that has minima and maxima of unsigned numbers. */
#if defined(VECTOR_AVX512)
#define SORT_LEAST_u32(a, b)    (vu32) _mm512_min_epu32((__m512i)(a), (__m512i)(b))
#define SORT_MOST_u32(a, b)     (vu32) _mm512_max_epu32((__m512i)(a), (__m512i)(b))
#define SORT_LEAST_u64(a, b)    (vu64) _mm512_min_epu64((__m512i)(a), (__m512i)(b))
#define SORT_MOST_u64(a, b)     (vu64) _mm512_max_epu64((__m512i)(a), (__m512i)(b))
#define SORT_UPPER_u32(b, a, v) (vu32) _mm512_mask_mov_epi32((__m512i)(a), b, (__m512i)(v))
#define SORT_UPPER_u64(b, a, v) (vu64) _mm512_mask_mov_epi64((__m512i)(a), b, (__m512i)(v))
#define SORT_U64                1
#elif defined(VECTOR_AVX2)
#define SORT_LEAST_u32(a, b)    (vu32) _mm256_min_epu32((__m256i)(a), (__m256i)(b))
#define SORT_MOST_u32(a, b)     (vu32) _mm256_max_epu32((__m256i)(a), (__m256i)(b))
#define SORT_UPPER_u32(b, a, v) (vu32) _mm256_blend_epi32((__m256i)(a), (__m256i)(v), (b)&0xff)
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
#include "ops/sort_network.typed.h"
#if defined(SORT_U64)
#define TYPE          u64
#define SORT_LANES_16 0
#include "ops/sort_network.typed.h"
#endif
#endif

const sort_networks ISA_NAME(sort_networks_table)[1] = {{
#if defined(SORT_U32)
    .u32 = sort_network_u32,
#endif
#if defined(SORT_U64)
    .u64 = sort_network_u64,
#endif
}};
#endif
