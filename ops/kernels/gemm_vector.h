/*
 * The vectors of matrix products: one type for both dtypes, the operations that a product takes,
 * and squares of elements turned over in registers. For the *.simd.c files of products, within ISA.
 */
#ifndef EDDY_OPS_KERNELS_GEMM_VECTOR_H
#define EDDY_OPS_KERNELS_GEMM_VECTOR_H

#include "ops/kernels/isa.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include "ops/kernels/neon.h"
#endif

#if defined(__AVX512F__)
enum { BYTES = 64, ROWS = 14 };
#elif defined(__AVX2__)
enum { BYTES = 32, ROWS = 6 };
#elif defined(__aarch64__)
enum { BYTES = 16, ROWS = 8 };
#else
enum { BYTES = 16, ROWS = 4 };
#endif
enum { PANEL = 2 * BYTES }; /* a row of a panel of B */

/*
 * One vector type for both dtypes: a register's bits. What depends on the dtype asks `wide`, which
 * is a constant wherever these are inlined to.
 */
typedef float vec __attribute__((vector_size(BYTES)));
typedef double vec64 __attribute__((vector_size(BYTES)));
typedef float loose __attribute__((vector_size(BYTES), may_alias, aligned(4)));

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t min(int64_t x, int64_t y)
{
    return x < y ? x : y;
}
INLINE int size_of(bool wide)
{
    return wide ? 8 : 4;
}
INLINE int lanes_of(bool wide)
{
    return BYTES / size_of(wide);
}
INLINE int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

INLINE vec load(const char *p)
{
    return *(const loose *)p;
}
INLINE void store(char *p, vec v)
{
    *(loose *)p = v;
}

INLINE vec spread(bool wide, const char *p)
{
    return wide ? (vec)(*(const double *)p - (vec64){0}) : *(const float *)p - (vec){0};
}

INLINE vec multiply_add(bool wide, vec x, vec y, vec sum)
{
#if defined(__AVX512F__)
    return wide ? (vec)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)sum)
                : (vec)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)sum);
#elif defined(__AVX2__)
    return wide ? (vec)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)sum)
                : (vec)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)sum);
#elif defined(__aarch64__)
    return wide ? (vec)vfmaq_f64((float64x2_t)sum, (float64x2_t)x, (float64x2_t)y)
                : (vec)vfmaq_f32((float32x4_t)sum, (float32x4_t)x, (float32x4_t)y);
#else
    return wide ? (vec)((vec64)x * (vec64)y + (vec64)sum) : x * y + sum;
#endif
}

INLINE vec add(bool wide, vec x, vec y)
{
    return wide ? (vec)((vec64)x + (vec64)y) : x + y;
}

INLINE vec negative(bool wide, vec x)
{
    return wide ? (vec)(-(vec64)x) : -x;
}

INLINE vec relu(bool wide, vec x)
{
    typedef int64_t mask64 __attribute__((vector_size(BYTES)));
    typedef int32_t mask32 __attribute__((vector_size(BYTES)));
    return wide ? (vec)(~((vec64)x < 0.0) & (mask64)x) : (vec)(~(x < 0.0f) & (mask32)x);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
INLINE __m256i mask_of(bool wide, int lanes)
{
    return wide ? _mm256_cmpgt_epi64(_mm256_set1_epi64x(lanes), _mm256_setr_epi64x(0, 1, 2, 3))
                : _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes),
                                     _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/* The first `lanes` lanes, 0 in the others; memory behind them is not touched. */
INLINE vec load_part(bool wide, const char *p, int lanes)
{
#if defined(__AVX512F__)
    return wide ? (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << lanes) - 1), p)
                : (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), p);
#elif defined(__AVX2__)
    return wide ? (vec)_mm256_maskload_pd((const double *)p, mask_of(wide, lanes))
                : (vec)_mm256_maskload_ps((const float *)p, mask_of(wide, lanes));
#else
    vec v = {0};
    memcpy(&v, p, (size_t)(lanes * size_of(wide)));
    return v;
#endif
}

INLINE void store_part(bool wide, char *p, vec v, int lanes)
{
#if defined(__AVX512F__)
    if (wide)
        _mm512_mask_storeu_pd(p, (__mmask8)((1u << lanes) - 1), (__m512d)v);
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1u << lanes) - 1), (__m512)v);
#elif defined(__AVX2__)
    if (wide)
        _mm256_maskstore_pd((double *)p, mask_of(wide, lanes), (__m256d)v);
    else
        _mm256_maskstore_ps((float *)p, mask_of(wide, lanes), (__m256)v);
#else
    memcpy(p, &v, (size_t)(lanes * size_of(wide)));
#endif
}

/*
 * Rows turned over, PIECE bytes of each at a time. Parts of 16 bytes come to lie below each other
 * in lanes of 16 bytes, so that what is left to do stays within such lanes, which is cheaper. With
 * AVX-512 whole vectors are loaded, which reads a line of the cache once, and exchange lanes;
 * elsewhere the parts go to their lanes as they are loaded.
 */
enum { PART = 16 };
#if defined(__AVX512F__)
enum { PIECE = 64 };
#define LOW_32  0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH_32 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define LOW_64  0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_64 1, 9, 3, 11, 5, 13, 7, 15
#else
enum { PIECE = PART };
#if defined(__AVX2__)
#define LOW_32  0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_32 2, 10, 3, 11, 6, 14, 7, 15
#define LOW_64  0, 4, 2, 6
#define HIGH_64 1, 5, 3, 7
#else
#define LOW_32  0, 4, 1, 5
#define HIGH_32 2, 6, 3, 7
#define LOW_64  0, 2
#define HIGH_64 1, 3
#endif
#endif

#if defined(__AVX512F__)
/* Half a vector from each place: joined by the load, which the shuffles need not do then. */
INLINE vec load_halves(const char *low, const char *high)
{
    __m512d x = _mm512_castpd256_pd512(_mm256_loadu_pd((const double *)low));
    return (vec)_mm512_insertf64x4(x, _mm256_loadu_pd((const double *)high), 1);
}
#endif

/* parts[i * step] = part i of the rows row[0], row[apart], row[2 apart], ... side by side. */
INLINE void load_parts(const char *const row[], const int apart, int64_t at, vec parts[],
                       const int step)
{
#if defined(__AVX512F__)
    enum { EVEN = 0x88, ODD = 0xdd }; /* parts of both operands */
    UNROLL for (int half = 0; half < 2; half++)
    {
        const int64_t from = at + half * BYTES / 2;
        const vec xy = load_halves(row[0] + from, row[apart] + from);
        const vec zw = load_halves(row[2 * apart] + from, row[3 * apart] + from);
        parts[2 * half * step] = _mm512_shuffle_f32x4(xy, zw, EVEN);
        parts[(2 * half + 1) * step] = _mm512_shuffle_f32x4(xy, zw, ODD);
    }
#elif defined(__AVX2__)
    (void)step;
    __m256 one = _mm256_castps128_ps256(_mm_loadu_ps((const float *)(row[0] + at)));
    parts[0] = _mm256_insertf128_ps(one, _mm_loadu_ps((const float *)(row[apart] + at)), 1);
#else
    (void)apart, (void)step;
    parts[0] = load(row[0] + at);
#endif
}

/* turned[i] = the i-th elements of as many rows as there are lanes, from byte `at` on: of each part
 * the lower and the upper half of what was loaded are interleaved, log2(PART / size) times. */
INLINE void load_turned(const bool wide, const char *const row[], int64_t at, vec turned[])
{
    const int n = PART / size_of(wide), all = PIECE / size_of(wide);
    vec next[PIECE / 4];
    UNROLL for (int i = 0; i < n; i++) load_parts(row + i, n, at, turned + i, n);
    UNROLL for (int step = 1; step < n; step *= 2)
    {
        UNROLL for (int i = 0; i < all / 2; i++)
        {
            const int from = i / (n / 2) * n + i % (n / 2);
            vec x = turned[from], y = turned[from + n / 2];
            if (wide) {
                next[2 * i] = (vec)__builtin_shufflevector((vec64)x, (vec64)y, LOW_64);
                next[2 * i + 1] = (vec)__builtin_shufflevector((vec64)x, (vec64)y, HIGH_64);
            } else {
                next[2 * i] = __builtin_shufflevector(x, y, LOW_32);
                next[2 * i + 1] = __builtin_shufflevector(x, y, HIGH_32);
            }
        }
        UNROLL for (int i = 0; i < all; i++) turned[i] = next[i];
    }
}

/* The same for rows of `count` elements, fewer than a piece has; memory behind is not touched. */
INLINE void load_turned_part(const bool wide, const char *const row[], int count, vec turned[])
{
    char part[BYTES / 4][BYTES] __attribute__((aligned(BYTES)));
    const char *line[BYTES / 4];
    for (int i = 0; i < lanes_of(wide); i++) {
        store(part[i], load_part(wide, row[i], count));
        line[i] = part[i];
    }
    load_turned(wide, line, 0, turned);
}

#endif
