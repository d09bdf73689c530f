/*
 * Triples in memory, as the colors of pixels are, as three vectors:
 *
 *     triples_load(from, c)   lane i of c[k] is from[3 i + k]
 *     triples_join(c, to)     the three vectors that lie in memory so: lane i of to[j] is element
 *                             n j + i of all, n being the lanes
 *
 * Of three vectors a, b, c one after the other, each is picked in two steps: what a and b have of
 * it, then what c has. Only compilations with ISA defined include this.
 */
#ifndef EDDY_OPS_KERNELS_TRIPLES_H
#define EDDY_OPS_KERNELS_TRIPLES_H

#include "ops/kernels/vector_base.h"

/* f(n, k, i) for the lanes i of n. */
#define TRIPLES_2(f, n, k) f(n, k, 0), f(n, k, 1)
#define TRIPLES_4(f, n, k) TRIPLES_2(f, n, k), f(n, k, 2), f(n, k, 3)
#define TRIPLES_8(f, n, k) TRIPLES_4(f, n, k), f(n, k, 4), f(n, k, 5), f(n, k, 6), f(n, k, 7)
#define TRIPLES_16(f, n, k)                                                                        \
    TRIPLES_8(f, n, k), f(n, k, 8), f(n, k, 9), f(n, k, 10), f(n, k, 11), f(n, k, 12),             \
        f(n, k, 13), f(n, k, 14), f(n, k, 15)

/* Lane i of channel k is element 3 i + k: from a and b, then from that and c. */
#define TRIPLES_OF_AB(n, k, i)  (3 * (i) + (k) < 2 * (n) ? 3 * (i) + (k) : 0)
#define TRIPLES_WITH_C(n, k, i) (3 * (i) + (k) < 2 * (n) ? (i) : 3 * (i) + (k) - (n))

/* Lane i of vector j is of triple (n j + i) / 3: from channels 0 and 1, then from that and 2. */
#define TRIPLES_OF_01(n, j, i)                                                                     \
    (((n) * (j) + (i)) % 3 == 1 ? (n) + ((n) * (j) + (i)) / 3 : ((n) * (j) + (i)) / 3)
#define TRIPLES_WITH_2(n, j, i) (((n) * (j) + (i)) % 3 == 2 ? (n) + ((n) * (j) + (i)) / 3 : (i))

#define TRIPLES_PICK(n, first, second, k, a, b, c)                                                 \
    __builtin_shufflevector(__builtin_shufflevector(a, b, TRIPLES_##n(first, n, k)), c,            \
                            TRIPLES_##n(second, n, k))
#define TRIPLES_EACH(n, first, second, from, to)                                                   \
    (to)[0] = TRIPLES_PICK(n, first, second, 0, (from)[0], (from)[1], (from)[2]);                  \
    (to)[1] = TRIPLES_PICK(n, first, second, 1, (from)[0], (from)[1], (from)[2]);                  \
    (to)[2] = TRIPLES_PICK(n, first, second, 2, (from)[0], (from)[1], (from)[2])

#if VECTOR_BYTES == 64
#define TRIPLES_F32(...) TRIPLES_EACH(16, __VA_ARGS__)
#define TRIPLES_F64(...) TRIPLES_EACH(8, __VA_ARGS__)
#elif VECTOR_BYTES == 32
#define TRIPLES_F32(...) TRIPLES_EACH(8, __VA_ARGS__)
#define TRIPLES_F64(...) TRIPLES_EACH(4, __VA_ARGS__)
#else
#define TRIPLES_F32(...) TRIPLES_EACH(4, __VA_ARGS__)
#define TRIPLES_F64(...) TRIPLES_EACH(2, __VA_ARGS__)
#endif

VECTOR_INLINE void triples_load_f32(const float *from, vf32 *c)
{
    const vf32 all[3] = {vload_f32(from), vload_f32(from + VECTOR_F32),
                         vload_f32(from + 2 * VECTOR_F32)};
    TRIPLES_F32(TRIPLES_OF_AB, TRIPLES_WITH_C, all, c);
}
VECTOR_INLINE void triples_load_f64(const double *from, vf64 *c)
{
    const vf64 all[3] = {vload_f64(from), vload_f64(from + VECTOR_F64),
                         vload_f64(from + 2 * VECTOR_F64)};
    TRIPLES_F64(TRIPLES_OF_AB, TRIPLES_WITH_C, all, c);
}
VECTOR_INLINE void triples_join_f32(const vf32 *c, vf32 *to)
{
    TRIPLES_F32(TRIPLES_OF_01, TRIPLES_WITH_2, c, to);
}
VECTOR_INLINE void triples_join_f64(const vf64 *c, vf64 *to)
{
    TRIPLES_F64(TRIPLES_OF_01, TRIPLES_WITH_2, c, to);
}

#endif
