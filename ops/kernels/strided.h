/*
 * Vectors of elements that are `step` apart from each other, as the cells are that windows side by
 * side begin at:
 *
 *     strided_read(from, left, step)      from[0], from[step], ...: the first `left` or all, 0
 *                                         behind them
 *     strided_add(to, x, left, step)      adds as many lanes of x to to[0], to[step], ...
 *     strided_add_pairs(to, a, b, left)   adds a to to[0], to[2], ..., b to to[1], to[3], ...
 *
 * No element between or behind them is written, none behind them is read. `step` is a constant
 * where it is 1 or 2 and these are to be fast.
 *
 * Only compilations with ISA defined include this.
 */
#ifndef EDDY_OPS_KERNELS_STRIDED_H
#define EDDY_OPS_KERNELS_STRIDED_H

#include "ops/kernels/lanes.h"

/*
 * Of two vectors of L lanes, b beginning with a's last element, every second element of what they
 * hold together; and v's halves with zeros z between, so that they can be added to such a and b.
 */
#define STRIDED_EVEN_2(a, b) __builtin_shufflevector(a, b, 0, 3)
#define STRIDED_EVEN_4(a, b) __builtin_shufflevector(a, b, 0, 2, 5, 7)
#define STRIDED_EVEN_8(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15)
#define STRIDED_EVEN_16(a, b)                                                                      \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
#define STRIDED_LOW_2(v, z) __builtin_shufflevector(v, z, 0, 2)
#define STRIDED_LOW_4(v, z) __builtin_shufflevector(v, z, 0, 4, 1, 4)
#define STRIDED_LOW_8(v, z) __builtin_shufflevector(v, z, 0, 8, 1, 8, 2, 8, 3, 8)
#define STRIDED_LOW_16(v, z)                                                                       \
    __builtin_shufflevector(v, z, 0, 16, 1, 16, 2, 16, 3, 16, 4, 16, 5, 16, 6, 16, 7, 16)
#define STRIDED_HIGH_2(v, z) __builtin_shufflevector(v, z, 2, 1)
#define STRIDED_HIGH_4(v, z) __builtin_shufflevector(v, z, 4, 2, 4, 3)
#define STRIDED_HIGH_8(v, z) __builtin_shufflevector(v, z, 8, 4, 8, 5, 8, 6, 8, 7)
#define STRIDED_HIGH_16(v, z)                                                                      \
    __builtin_shufflevector(v, z, 16, 8, 16, 9, 16, 10, 16, 11, 16, 12, 16, 13, 16, 14, 16, 15)

/* The first halves of a and b, lanes taking turns; the second halves. */
#define STRIDED_FIRST_2(a, b) __builtin_shufflevector(a, b, 0, 2)
#define STRIDED_FIRST_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define STRIDED_FIRST_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define STRIDED_FIRST_16(a, b)                                                                     \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define STRIDED_SECOND_2(a, b) __builtin_shufflevector(a, b, 1, 3)
#define STRIDED_SECOND_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define STRIDED_SECOND_8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define STRIDED_SECOND_16(a, b)                                                                    \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

#if VECTOR_BYTES == 64
#define STRIDED_f32(name) STRIDED_##name##_16
#define STRIDED_f64(name) STRIDED_##name##_8
#elif VECTOR_BYTES == 32
#define STRIDED_f32(name) STRIDED_##name##_8
#define STRIDED_f64(name) STRIDED_##name##_4
#else
#define STRIDED_f32(name) STRIDED_##name##_4
#define STRIDED_f64(name) STRIDED_##name##_2
#endif

#define strided_read(from, left, step) VECTOR_CHOOSE_FROM(strided_read, from)(from, left, step)
#define strided_add(to, x, left, step) VECTOR_CHOOSE(strided_add, x)(to, x, left, step)

#define strided_add_pairs(to, a, b, left) VECTOR_CHOOSE(strided_add_pairs, a)(to, a, b, left)

#define TYPE f32
#include "ops/kernels/strided.typed.h"
#define TYPE f64
#include "ops/kernels/strided.typed.h"

#endif
