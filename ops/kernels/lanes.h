/*
 * Folding n numbers into one, in an order that depends on n alone.
 *
 * Element i belongs to lane i % 16. Sixty-four elements, four to a lane, are a group; a lane's
 * total is the groups' four, (a + b) + (c + d), added one group after the other; at the end the
 * lanes fold by halves: lane l takes lane l + 8, then l + 4, l + 2, l + 1. So every instruction
 * set, and every way to walk through memory, gives the same bits: a row folded sixteen lanes at a
 * time, or sixteen rows kept for each column. Missing elements count as the identity of the
 * operation, which changes no bit of what it meets (-0 for sums).
 *
 * Only compilations with ISA defined include this.
 */
#ifndef EDDY_OPS_KERNELS_LANES_H
#define EDDY_OPS_KERNELS_LANES_H

#include "ops/kernels/vector.h"
#include <stdbool.h>

enum { LANES_ALL = 16, LANES_GROUP = 4 * LANES_ALL };

/* How two numbers become one. Larger and smaller: NaN if either is. */
typedef enum lanes_fold { LANES_SUM, LANES_PROD, LANES_MAX, LANES_MIN } lanes_fold;

/* What is folded: x; (x - m)^2; e^(x - m). */
typedef enum lanes_map { LANES_ITSELF, LANES_SQUARED, LANES_EXP } lanes_map;

/* v with the lane at `by` first. */
#if VECTOR_BYTES == 64
#define LANES_ROTATE_8_f32(v)                                                                      \
    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define LANES_ROTATE_4_f32(v)                                                                      \
    __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define LANES_ROTATE_2_f32(v)                                                                      \
    __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define LANES_ROTATE_1_f32(v)                                                                      \
    __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#define LANES_ROTATE_8_f64(v) (v)
#define LANES_ROTATE_4_f64(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)
#define LANES_ROTATE_2_f64(v) __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5)
#define LANES_ROTATE_1_f64(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)
#elif VECTOR_BYTES == 32
#define LANES_ROTATE_8_f32(v) (v)
#define LANES_ROTATE_4_f32(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)
#define LANES_ROTATE_2_f32(v) __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5)
#define LANES_ROTATE_1_f32(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)
#define LANES_ROTATE_8_f64(v) (v)
#define LANES_ROTATE_4_f64(v) (v)
#define LANES_ROTATE_2_f64(v) __builtin_shufflevector(v, v, 2, 3, 0, 1)
#define LANES_ROTATE_1_f64(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#else
#define LANES_ROTATE_8_f32(v) (v)
#define LANES_ROTATE_4_f32(v) (v)
#define LANES_ROTATE_2_f32(v) __builtin_shufflevector(v, v, 2, 3, 0, 1)
#define LANES_ROTATE_1_f32(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#define LANES_ROTATE_8_f64(v) (v)
#define LANES_ROTATE_4_f64(v) (v)
#define LANES_ROTATE_2_f64(v) (v)
#define LANES_ROTATE_1_f64(v) __builtin_shufflevector(v, v, 1, 0)
#endif

/* The number of each vector's lanes, 0, 1, 2, ... */
static const int32_t lanes_number_f32[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const int64_t lanes_number_f64[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/*
 * For float32 and float64 alike:
 *
 *     lanes_identity(fold)           the number that changes nothing
 *     lanes_two(fold, a, b)          two vectors, lane by lane
 *     lanes_mapped(map, x, m)        what is folded of x
 *     lanes_some(from, left, other)  the first `left` elements (or all), `other` behind them
 *     lanes_put(to, x, left)         stores them
 *     lanes_across(fold, acc)        LANES_ALL / VECTOR vectors of sixteen lanes: one number
 *     lanes_row(fold, map, x, n, m)  the fold of n adjoining numbers
 *     lanes_rows(fold, map, rows, n, width, m, acc, to)
 *                                    `width` such folds at once, of rows[0][c], rows[1][c], ...
 *                                    with m[c] into to[c]; acc: room for sixteen rows
 *
 * m, acc and to of lanes_rows have room for whole vectors, whatever the width.
 *
 * fold and map are constants wherever these are used, and what depends on them folds away.
 */
#define LANES_FUNCTIONS(bits, number, vector, integers, vectors)                                   \
    VECTOR_INLINE number lanes_identity_##bits(lanes_fold fold)                                    \
    {                                                                                              \
        return fold == LANES_SUM    ? (number)-0.0                                                 \
               : fold == LANES_PROD ? 1                                                            \
               : fold == LANES_MAX  ? (number)-INFINITY                                            \
                                    : (number)INFINITY;                                             \
    }                                                                                              \
    VECTOR_INLINE vector lanes_two_##bits(lanes_fold fold, vector a, vector b)                     \
    {                                                                                              \
        return fold == LANES_SUM    ? a + b                                                        \
               : fold == LANES_PROD ? a * b                                                        \
               : fold == LANES_MAX  ? vmax_##bits(a, b)                                            \
                                    : vmin_##bits(a, b);                                            \
    }                                                                                              \
    VECTOR_INLINE vector lanes_mapped_##bits(lanes_map map, vector x, vector m)                    \
    {                                                                                              \
        return map == LANES_ITSELF    ? x                                                          \
               : map == LANES_SQUARED ? (x - m) * (x - m)                                          \
                                      : vexp_##bits(x - m);                                        \
    }                                                                                              \
    VECTOR_INLINE vector lanes_some_##bits(const number *from, int64_t left, number other)         \
    {                                                                                              \
        if (left >= vectors) return vload_##bits(from);                                            \
        integers at;                                                                               \
        memcpy(&at, lanes_number_##bits, sizeof at);                                               \
        if (left <= 0) return vset_##bits(other);                                                  \
        return vselect_##bits(at < (__typeof__(at[0]))left, vload_part_##bits(from, left),         \
                              vset_##bits(other));                                                 \
    }                                                                                              \
    VECTOR_INLINE void lanes_put_##bits(number *to, vector x, int64_t left)                        \
    {                                                                                              \
        if (left >= vectors)                                                                       \
            vstore_##bits(to, x);                                                                  \
        else                                                                                       \
            vstore_part_##bits(to, x, left);                                                       \
    }                                                                                              \
    VECTOR_INLINE number lanes_across_##bits(lanes_fold fold, vector *acc)                         \
    {                                                                                              \
        for (int half = LANES_ALL / vectors / 2; half; half /= 2)                                  \
            for (int i = 0; i < half; i++) acc[i] = lanes_two_##bits(fold, acc[i], acc[i + half]); \
        vector v = acc[0];                                                                         \
        if (vectors > 8) v = lanes_two_##bits(fold, v, LANES_ROTATE_8_##bits(v));                  \
        if (vectors > 4) v = lanes_two_##bits(fold, v, LANES_ROTATE_4_##bits(v));                  \
        if (vectors > 2) v = lanes_two_##bits(fold, v, LANES_ROTATE_2_##bits(v));                  \
        v = lanes_two_##bits(fold, v, LANES_ROTATE_1_##bits(v));                                   \
        return v[0];                                                                               \
    }                                                                                              \
    /* Elements at from of a row with `left` to go, mapped; the identity behind. */                \
    VECTOR_INLINE vector lanes_load_##bits(lanes_fold fold, lanes_map map, const number *from,     \
                                           int64_t left, vector m)                                 \
    {                                                                                              \
        if (left >= vectors) return lanes_mapped_##bits(map, vload_##bits(from), m);               \
        const vector none = vset_##bits(lanes_identity_##bits(fold));                              \
        if (left <= 0) return none;                                                                \
        integers at;                                                                               \
        memcpy(&at, lanes_number_##bits, sizeof at);                                               \
        const vector x = vload_part_##bits(from, left);                                            \
        return vselect_##bits(at < (__typeof__(at[0]))left, lanes_mapped_##bits(map, x, m), none); \
    }                                                                                              \
    VECTOR_INLINE number lanes_row_##bits(lanes_fold fold, lanes_map map, const number *x,         \
                                          int64_t n, number mean)                                  \
    {                                                                                              \
        enum { N = LANES_ALL / vectors };                                                          \
        const vector m = vset_##bits(mean);                                                        \
        vector acc[N];                                                                             \
        for (int v = 0; v < N; v++) acc[v] = vset_##bits(lanes_identity_##bits(fold));             \
        int64_t i = 0;                                                                             \
        for (; i + LANES_GROUP <= n; i += LANES_GROUP)                                             \
            for (int v = 0; v < N; v++) {                                                          \
                const number *p = x + i + v * vectors;                                             \
                const vector a = lanes_mapped_##bits(map, vload_##bits(p), m);                     \
                const vector b = lanes_mapped_##bits(map, vload_##bits(p + LANES_ALL), m);         \
                const vector c = lanes_mapped_##bits(map, vload_##bits(p + 2 * LANES_ALL), m);     \
                const vector d = lanes_mapped_##bits(map, vload_##bits(p + 3 * LANES_ALL), m);     \
                acc[v] = lanes_two_##bits(fold, acc[v],                                            \
                                          lanes_two_##bits(fold, lanes_two_##bits(fold, a, b),     \
                                                           lanes_two_##bits(fold, c, d)));         \
            }                                                                                      \
        if (i < n)                                                                                 \
            for (int v = 0; v < N; v++) {                                                          \
                const int64_t at = i + v * vectors, left = n - at;                                 \
                vector t = lanes_load_##bits(fold, map, x + at, left, m);                          \
                if (left > LANES_ALL)                                                              \
                    t = lanes_two_##bits(                                                          \
                        fold, t,                                                                   \
                        lanes_load_##bits(fold, map, x + at + LANES_ALL, left - LANES_ALL, m));    \
                if (left > 2 * LANES_ALL) {                                                        \
                    vector u = lanes_load_##bits(fold, map, x + at + 2 * LANES_ALL,                \
                                                 left - 2 * LANES_ALL, m);                         \
                    u = lanes_two_##bits(fold, u,                                                  \
                                         lanes_load_##bits(fold, map, x + at + 3 * LANES_ALL,      \
                                                           left - 3 * LANES_ALL, m));              \
                    t = lanes_two_##bits(fold, t, u);                                              \
                }                                                                                  \
                acc[v] = lanes_two_##bits(fold, acc[v], t);                                        \
            }                                                                                      \
        return lanes_across_##bits(fold, acc);                                                     \
    }                                                                                              \
    /* One lane of a group: `k` rows, 16 apart, into the lane's totals. */                         \
    VECTOR_INLINE void lanes_lane_##bits(lanes_fold fold, lanes_map map,                           \
                                         const number *const *rows, int k, int64_t width,          \
                                         const number *mean, bool first, number *acc)              \
    {                                                                                              \
        for (int64_t c = 0; c < width; c += vectors) {                                             \
            const int64_t left = width - c;                                                        \
            const vector m = map == LANES_ITSELF ? (vector){0} : vload_##bits(mean + c);           \
            vector t = lanes_mapped_##bits(map, lanes_some_##bits(rows[0] + c, left, 0), m);       \
            if (k > 1)                                                                             \
                t = lanes_two_##bits(                                                              \
                    fold, t,                                                                       \
                    lanes_mapped_##bits(map, lanes_some_##bits(rows[LANES_ALL] + c, left, 0), m)); \
            if (k > 2) {                                                                           \
                vector u = lanes_mapped_##bits(                                                    \
                    map, lanes_some_##bits(rows[2 * LANES_ALL] + c, left, 0), m);                  \
                if (k > 3)                                                                         \
                    u = lanes_two_##bits(                                                          \
                        fold, u,                                                                   \
                        lanes_mapped_##bits(                                                       \
                            map, lanes_some_##bits(rows[3 * LANES_ALL] + c, left, 0), m));         \
                t = lanes_two_##bits(fold, t, u);                                                  \
            }                                                                                      \
            vstore_##bits(acc + c, first ? t : lanes_two_##bits(fold, vload_##bits(acc + c), t));  \
        }                                                                                          \
    }                                                                                              \
    VECTOR_INLINE void lanes_rows_##bits(lanes_fold fold, lanes_map map,                           \
                                         const number *const *rows, int64_t n, int64_t width,      \
                                         const number *mean, number *acc, number *to)              \
    {                                                                                              \
        const int64_t step = (width + vectors - 1) / vectors * vectors;                            \
        for (int64_t i = 0; i < n; i += LANES_GROUP)                                               \
            for (int64_t l = 0; l < LANES_ALL && i + l < n; l++) {                                 \
                const number *const *at = rows + i + l;                                            \
                const int64_t k = (n - i - l + LANES_ALL - 1) / LANES_ALL;                         \
                number *lane = acc + l * step;                                                     \
                if (k >= 4)                                                                        \
                    lanes_lane_##bits(fold, map, at, 4, width, mean, i == 0, lane);                \
                else if (k == 3)                                                                   \
                    lanes_lane_##bits(fold, map, at, 3, width, mean, i == 0, lane);                \
                else if (k == 2)                                                                   \
                    lanes_lane_##bits(fold, map, at, 2, width, mean, i == 0, lane);                \
                else                                                                               \
                    lanes_lane_##bits(fold, map, at, 1, width, mean, i == 0, lane);                \
            }                                                                                      \
        for (int64_t half = LANES_ALL / 2; half; half /= 2)                                        \
            for (int64_t l = 0; l < half && l + half < n; l++)                                     \
                for (int64_t c = 0; c < step; c += vectors) {                                      \
                    number *a = acc + l * step + c;                                                \
                    vstore_##bits(a, lanes_two_##bits(fold, vload_##bits(a),                       \
                                                      vload_##bits(a + half * step)));             \
                }                                                                                  \
        memcpy(to, acc, (size_t)step * sizeof *to);                                                \
    }

LANES_FUNCTIONS(f32, float, vf32, vi32, VECTOR_F32)
LANES_FUNCTIONS(f64, double, vf64, vi64, VECTOR_F64)

#endif
