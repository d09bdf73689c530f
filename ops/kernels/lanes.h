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

enum { LANES_ALL = 16, LANES_GROUP = 4 * LANES_ALL, LANES_AHEAD = 2, LANES_ABREAST = 2 };

/* How two numbers become one. Larger and smaller: NaN if either is. */
typedef enum lanes_fold { LANES_SUM, LANES_PROD, LANES_MAX, LANES_MIN } lanes_fold;

/* What is folded: x; (x - m)^2; e^(x - m); the same where x is no larger than m. */
typedef enum lanes_map { LANES_ITSELF, LANES_SQUARED, LANES_EXP, LANES_EXP_DOWN } lanes_map;

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
 *     lanes_two(fold, a, b)          two vectors, lane by lane
 *     lanes_mapped(map, x, m)        what is folded of x
 *     lanes_some(from, left, other)  the first `left` elements (or all), `other` behind them
 *     lanes_put(to, x, left)         stores them
 *     lanes_across(fold, acc)        LANES_ALL / VECTOR vectors of sixteen lanes: one number
 *     lanes_row(fold, map, x, n, m)  the fold of n adjoining numbers
 *     lanes_row_and(fold, map, x, n, m, next)
 *                                    the same; n numbers at `next` are prefetched meanwhile, unless
 *                                    it is NULL
 *     lanes_abreast(fold, map, rows, x, n, m, next, to)
 *                                    those of x[0] and, if `rows` is 2, x[1], less m[0] and m[1],
 *                                    into to[0] and to[1]; next: as there
 *     lanes_rows(fold, map, rows, n, width, m, acc, to)
 *                                    `width` such folds at once, of rows[0][c], rows[1][c], ...
 *                                    with m[c] into to[c]; acc: room for sixteen rows
 *     lanes_exp(x, y, n, scale, m, next)
 *                                    y = e^(scale x - m), scale > 0, m the largest scale x; the
 *                                    sum of them, a block at a time; next: as there
 *
 * m, acc and to of lanes_rows have room for whole vectors, whatever the width.
 *
 * fold, map and the number of rows abreast are constants wherever these are used, and what depends
 * on them folds away.
 */
#define lanes_two(fold, a, b)         VECTOR_CHOOSE(lanes_two, a)(fold, a, b)
#define lanes_mapped(map, x, m)       VECTOR_CHOOSE(lanes_mapped, x)(map, x, m)
#define lanes_some(from, left, other) VECTOR_CHOOSE_FROM(lanes_some, from)(from, left, other)
#define lanes_put(to, x, left)        VECTOR_CHOOSE(lanes_put, x)(to, x, left)
#define lanes_across(fold, acc)       VECTOR_CHOOSE(lanes_across, *(acc))(fold, acc)
#define lanes_load(fold, map, from, left, m)                                                       \
    VECTOR_CHOOSE_FROM(lanes_load, from)(fold, map, from, left, m)
#define lanes_row(fold, map, x, n, m) VECTOR_CHOOSE_FROM(lanes_row, x)(fold, map, x, n, m)
#define lanes_row_and(fold, map, x, n, m, next)                                                    \
    VECTOR_CHOOSE_FROM(lanes_row_and, x)(fold, map, x, n, m, next)
#define lanes_abreast(fold, map, rows, x, n, m, next, to)                                          \
    VECTOR_CHOOSE_FROM(lanes_abreast, *(x))(fold, map, rows, x, n, m, next, to)
#define lanes_rows(fold, map, rows, n, width, m, acc, to)                                          \
    VECTOR_CHOOSE_FROM(lanes_rows, *(rows))(fold, map, rows, n, width, m, acc, to)

#define lanes_exp(x, y, n, scale, m, next) VECTOR_CHOOSE_FROM(lanes_exp, x)(x, y, n, scale, m, next)

#define TYPE f32
#include "ops/kernels/lanes.typed.h"
#define TYPE f64
#include "ops/kernels/lanes.typed.h"

#endif
