/*
 * Random numbers from the counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", 2011), laid out as TensorFlow lays it out: the same state gives the
 * same stream.
 *
 * A state is a 128-bit counter and a 64-bit key. Drawing does not change it: element i of a fill is
 * a function of (state, i) alone, whatever the number of threads or the instruction set, so a fill
 * can be repeated, cut into pieces or done again in a backward pass. Whoever draws advances the
 * state afterwards: philox_skip_elements.
 *
 * Words to values. The stream of 32-bit words is w0, w1, ..., four to a counter step. One word
 * makes a float32, float16, bfloat16 or int32, two make a float64 or int64. A pair of uniform
 * numbers makes two normal ones (Box and Muller): (sin(2 pi u1), cos(2 pi u1)) sqrt(-2 ln max(u0,
 * 1e-7)).
 *
 * Bounds: all are TensorFlow's bits. Its normals are made with the C library's functions; those in
 * float32, float16 and bfloat16 follow the GNU library's logf, sinf and cosf operation by
 * operation, whatever the library at hand. Normals in float64 come from the C library itself.
 *
 * n is a number of elements, 0 or more; pointers must hold that many.
 */
#ifndef EDDY_OPS_KERNELS_PHILOX_H
#define EDDY_OPS_KERNELS_PHILOX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct philox {
    uint32_t counter[4]; /* lowest word first */
    uint32_t key[2];
} philox;

/* ---- States ---------------------------------------------------------------------------------- */

/* The generator of an op with the seed pair (seed, seed2): key = seed, counter = seed2 * 2^64. */
philox philox_from_seeds(uint64_t seed, uint64_t seed2);

/* The generator of a stateless op: the pair, scrambled. */
philox philox_from_stateless(int64_t seed0, int64_t seed1);

/* To and from the three integers of a generator's variable: low and high half
 * of the counter, key. */
philox philox_from_state(const int64_t state[3]);
void philox_to_state(const philox *p, int64_t state[3]);

/* Adds steps, or 256 * elements (what one draw of that many elements uses up), to the 128-bit
 * counter. */
void philox_skip(philox *p, uint64_t steps);
void philox_skip_elements(philox *p, uint64_t elements);

/* The four words at the state's counter. */
void philox_block(const philox *p, uint32_t words[4]);

/* The two numbers in float64 that these words make: uniform in [0, 1) / normal. */
void philox_two_uniforms(const philox *p, double out[2]);
void philox_two_normals(const philox *p, double out[2]);

/* ---- Fills ----------------------------------------------------------------------------------- */

/* Whole words: integers over their full range (as int32, uint32 / int64, uint64). */
void philox_bits_32(const philox *p, int64_t n, void *out);
void philox_bits_64(const philox *p, int64_t n, void *out);

/* Integers in [lo, hi), by remainder; lo < hi. */
void philox_range_i32(const philox *p, int64_t n, int32_t *out, int32_t lo, int32_t hi);
void philox_range_i64(const philox *p, int64_t n, int64_t *out, int64_t lo, int64_t hi);

/* u * (hi - lo) + lo for u uniform in [0, 1), every step rounded to the type of out. */
void philox_uniform_f32(const philox *p, int64_t n, float *out, double lo, double hi);
void philox_uniform_f64(const philox *p, int64_t n, double *out, double lo, double hi);
void philox_uniform_f16(const philox *p, int64_t n, uint16_t *out, double lo, double hi);
void philox_uniform_bf16(const philox *p, int64_t n, uint16_t *out, double lo, double hi);

/* z * deviation + mean for z normal, every step rounded to the type of out. */
void philox_normal_f32(const philox *p, int64_t n, float *out, double mean, double deviation);
void philox_normal_f64(const philox *p, int64_t n, double *out, double mean, double deviation);
void philox_normal_f16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation);
void philox_normal_bf16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation);

/* The same with |z| < 2: others are drawn again. */
void philox_truncated_f32(const philox *p, int64_t n, float *out, double mean, double deviation);
void philox_truncated_f64(const philox *p, int64_t n, double *out, double mean, double deviation);
void philox_truncated_f16(const philox *p, int64_t n, uint16_t *out, double mean, double deviation);
void philox_truncated_bf16(const philox *p, int64_t n, uint16_t *out, double mean,
                           double deviation);

/* A random order of 0 ... n - 1: Fisher and Yates from the front, one word a swap (two from 2^32
 * on). */
void philox_shuffle(const philox *p, int64_t n, int64_t *out);

/*
 * y = x / (1 - rate) where the uniform number of the element's index is at least rate, else 0; 0 <=
 * rate < 1. mask, unless NULL, gets 1 where the element was kept and 0 elsewhere. y may be x.
 * Linear in x with factors that depend on (state, rate) alone: its gradient is the same call on dy
 * with the same state, so no mask is stored.
 */
void philox_dropout_f32(const philox *p, int64_t n, double rate, const float *x, float *y,
                        uint8_t *mask);
void philox_dropout_f64(const philox *p, int64_t n, double rate, const double *x, double *y,
                        uint8_t *mask);

#endif
