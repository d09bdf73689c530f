/*
 * Inner loops of elementwise ops: how a family file writes them. In the compilations for
 * instruction sets these macros define the loops and their table; in the plain one they name the
 * tables.
 *
 * Two kinds. Vector loops, for floats, take an expression over vectors (ops/kernels/vector.h); a
 * partial vector at the end is padded and goes the same way, so that an element's value does not
 * depend on its place:
 *
 *     VECTOR_LOOPS1(sigmoid, vsigmoid(x));               of one operand x
 *     VECTOR_LOOPS2(pow, vpow(a, b));                    of two operands a and b
 *
 * Plain loops take a C expression whose value is the same in vector and scalar code (one operation
 * of IEEE arithmetic, integers), and leave the vectors to the compiler:
 *
 *     LOOP2(add, float, float, a + b)                    the function add_float, from and to float
 *     LOOPS(add, [ED_FLOAT32] = add_float, ...);         the table, by the dtype of the last input
 *
 * In both, PROLOGUE statements may stand before the loop and see `attrs`: for what depends on
 * attributes.
 */
#ifndef EDDY_OPS_LOOPS_H
#define EDDY_OPS_LOOPS_H

#include "ops/kernels/isa.h"
#include "tensor/tensor.h"

/*
 * n elements of each operand, either n adjoining ones (step 1) or one that stands for all (step 0);
 * at least one operand has step 1.
 */
typedef void (*elementwise_loop)(int64_t n, const void *const *in, const int *steps, void *out,
                                 const void *attrs);

/* Loops by instruction set and input dtype: an op's `extra`. */
typedef const elementwise_loop *const elementwise_table[ISA_COUNT];

/* A function that loops use, and not always the plain compilation. */
#define LOOP_HELPER static inline __attribute__((unused))

#ifdef ISA

#include "ops/kernels/vector.h"

#define LOOPS(name, ...)                                                                           \
    const elementwise_loop ISA_NAME(loops_##name)[ED_DTYPE_COUNT] = {__VA_ARGS__}

#define LOOP_ARGUMENTS                                                                             \
    int64_t n, const void *const *in, const int *steps, void *out, const void *attrs
#define LOOP_USED (void)in, (void)steps, (void)attrs

/* ---- Vector loops ---------------------------------------------------------------------------- */

#define VECTOR_LOOP1(name, type, vector, prologue, expression)                                     \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        enum { LANES = sizeof(vector) / sizeof(type) };                                            \
        const type *from = in[0];                                                                  \
        type *to = out;                                                                            \
        prologue;                                                                                  \
        for (int64_t i = 0, left = n; left > 0; i += LANES, left -= LANES) {                       \
            const vector x = left >= LANES ? vload(from + i) : vload_part(from + i, left);         \
            const vector y = expression;                                                           \
            if (left >= LANES)                                                                     \
                vstore(to + i, y);                                                                 \
            else                                                                                   \
                vstore_part(to + i, y, left);                                                      \
        }                                                                                          \
    }

/* An operand of step 0 is read from a vector that holds it in every lane. */
#define VECTOR_LOOP2(name, type, vector, prologue, expression)                                     \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        enum { LANES = sizeof(vector) / sizeof(type) };                                            \
        const vector same[2] = {vset((vector){0}, *(const type *)in[0]),                           \
                                vset((vector){0}, *(const type *)in[1])};                          \
        const type *from_a = steps[0] ? in[0] : (const type *)&same[0];                            \
        const type *from_b = steps[1] ? in[1] : (const type *)&same[1];                            \
        type *to = out;                                                                            \
        prologue;                                                                                  \
        for (int64_t left = n; left > 0; left -= LANES) {                                          \
            const vector a = left >= LANES ? vload(from_a) : vload_part(from_a, left);             \
            const vector b = left >= LANES ? vload(from_b) : vload_part(from_b, left);             \
            const vector y = expression;                                                           \
            if (left >= LANES)                                                                     \
                vstore(to, y);                                                                     \
            else                                                                                   \
                vstore_part(to, y, left);                                                          \
            from_a += steps[0] * LANES;                                                            \
            from_b += steps[1] * LANES;                                                            \
            to += LANES;                                                                           \
        }                                                                                          \
    }

#define VECTOR_LOOPS1_WITH(name, prologue, expression)                                             \
    VECTOR_LOOP1(name, float, vf32, prologue, expression)                                          \
    VECTOR_LOOP1(name, double, vf64, prologue, expression)                                         \
    LOOPS(name, [ED_FLOAT32] = name##_float, [ED_FLOAT64] = name##_double)
#define VECTOR_LOOPS2_WITH(name, prologue, expression)                                             \
    VECTOR_LOOP2(name, float, vf32, prologue, expression)                                          \
    VECTOR_LOOP2(name, double, vf64, prologue, expression)                                         \
    LOOPS(name, [ED_FLOAT32] = name##_float, [ED_FLOAT64] = name##_double)

/* ---- Plain loops ----------------------------------------------------------------------------- */

#define LOOP1_WITH(name, type, result, prologue, expression)                                       \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        const type *restrict from = in[0];                                                         \
        result *restrict to = out;                                                                 \
        prologue;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type x = from[i];                                                                \
            to[i] = (result)(expression);                                                          \
        }                                                                                          \
    }

/* Once for each pattern of steps; never a second time inside its turned form. */
#define LOOP2_WITH(name, type, result, prologue, expression)                                       \
    static __attribute__((noinline)) void name##_##type(LOOP_ARGUMENTS)                            \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        const type *restrict from_a = in[0], *restrict from_b = in[1];                             \
        result *restrict to = out;                                                                 \
        prologue;                                                                                  \
        if (steps[0] && steps[1])                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type a = from_a[i], b = from_b[i];                                           \
                to[i] = (result)(expression);                                                      \
            }                                                                                      \
        else if (steps[0]) {                                                                       \
            const type b = *from_b;                                                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type a = from_a[i];                                                          \
                to[i] = (result)(expression);                                                      \
            }                                                                                      \
        } else {                                                                                   \
            const type a = *from_a;                                                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type b = from_b[i];                                                          \
                to[i] = (result)(expression);                                                      \
            }                                                                                      \
        }                                                                                          \
    }

/* What the loop of another name makes of b and a. */
#define LOOP2_TURNED(name, type, other)                                                            \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        const void *const turned[] = {in[1], in[0]};                                               \
        other##_##type(n, turned, (const int[]){steps[1], steps[0]}, out, attrs);                  \
    }

#else

#define LOOPS(name, ...)                                                                           \
    ISA_DECLARE_TABLE(elementwise_loop, loops_##name, []);                                         \
    static elementwise_table loops_##name = ISA_TABLE(loops_##name)

#define VECTOR_LOOP1(name, type, vector, prologue, expression)
#define VECTOR_LOOP2(name, type, vector, prologue, expression)
#define VECTOR_LOOPS1_WITH(name, prologue, expression) LOOPS(name, 0)
#define VECTOR_LOOPS2_WITH(name, prologue, expression) LOOPS(name, 0)
#define LOOP1_WITH(name, type, result, prologue, expression)
#define LOOP2_WITH(name, type, result, prologue, expression)
#define LOOP2_TURNED(name, type, other)

#endif

#define VECTOR_LOOPS1(name, expression)       VECTOR_LOOPS1_WITH(name, , expression)
#define VECTOR_LOOPS2(name, expression)       VECTOR_LOOPS2_WITH(name, , expression)
#define LOOP1(name, type, result, expression) LOOP1_WITH(name, type, result, , expression)
#define LOOP2(name, type, result, expression) LOOP2_WITH(name, type, result, , expression)

/* The plain loops of all arithmetic dtypes: integers wrap around, so theirs is done unsigned. */
#define LOOPS1_WRAPPING(name, expression)                                                          \
    LOOP1(name, float, float, expression)                                                          \
    LOOP1(name, double, double, expression)                                                        \
    LOOP1(name, uint32_t, uint32_t, expression)                                                    \
    LOOP1(name, uint64_t, uint64_t, expression)                                                    \
    LOOP1(name, uint8_t, uint8_t, expression)                                                      \
    LOOPS(name, [ED_FLOAT32] = name##_float, [ED_FLOAT64] = name##_double,                         \
          [ED_INT32] = name##_uint32_t, [ED_INT64] = name##_uint64_t, [ED_UINT8] = name##_uint8_t)
#define LOOPS2_WRAPPING(name, expression)                                                          \
    LOOP2(name, float, float, expression)                                                          \
    LOOP2(name, double, double, expression)                                                        \
    LOOP2(name, uint32_t, uint32_t, expression)                                                    \
    LOOP2(name, uint64_t, uint64_t, expression)                                                    \
    LOOP2(name, uint8_t, uint8_t, expression)                                                      \
    LOOPS(name, [ED_FLOAT32] = name##_float, [ED_FLOAT64] = name##_double,                         \
          [ED_INT32] = name##_uint32_t, [ED_INT64] = name##_uint64_t, [ED_UINT8] = name##_uint8_t)

/* The same where signs matter; the expression must not overflow. */
#define LOOPS1_SIGNED(name, expression)                                                            \
    LOOP1(name, float, float, expression)                                                          \
    LOOP1(name, double, double, expression)                                                        \
    LOOP1(name, int32_t, int32_t, expression)                                                      \
    LOOP1(name, int64_t, int64_t, expression)                                                      \
    LOOP1(name, uint8_t, uint8_t, expression)                                                      \
    LOOPS(name, [ED_FLOAT32] = name##_float, [ED_FLOAT64] = name##_double,                         \
          [ED_INT32] = name##_int32_t, [ED_INT64] = name##_int64_t, [ED_UINT8] = name##_uint8_t)

#endif
