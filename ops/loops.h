/*
 * Inner loops of elementwise ops: how a family file writes them. In the compilations for
 * instruction sets these macros define the loops and their table; in the plain one they name the
 * tables.
 *
 * Two kinds. Vector loops, for floats, take an expression over vectors (ops/kernels/vector.h); a
 * partial vector at the end is padded and goes the same way, so that an element's value does not
 * depend on its position:
 *
 *     VECTOR_LOOPS1(sigmoid, vsigmoid(x));               of one operand x
 *     VECTOR_LOOPS2(pow, vpow(a, b));                    of two operands a and b
 *     VECTOR_LOOPS1_WITH(scaled, factor(attrs), c * x);  and c, a number made of attributes once
 *
 * Plain loops take a C expression whose value is the same in vector and scalar code (one operation
 * of IEEE arithmetic, integers), and leave the vectors to the compiler:
 *
 *     LOOP2(add, f32, f32, a + b)                        the function add_f32, from and to float32
 *     LOOPS(add, [ED_FLOAT32] = add_f32, ...);           the table, by the dtype of the last input
 *
 * Types are named as in tensor/typed.h. The loops themselves are in ops/vector_loops.typed.h and
 * ops/loops.typed.h, where a debugger can stop; a loop of another form is written out in
 * its family's template.
 */
#ifndef EDDY_OPS_LOOPS_H
#define EDDY_OPS_LOOPS_H

#include "ops/kernels/isa.h"
#include "tensor/copy.h"
#include "tensor/tensor.h"
#include "tensor/typed.h"

/*
 * n elements of each operand, either n adjoining ones (step 1) or one that stands for all (step 0);
 * at least one operand has step 1. Of two operands, `out` may be that one, if it has its type.
 * stream: `out` begins at a cache line and is part of a result that the caches would not hold, so
 * that a loop may write it past them.
 */
typedef void (*elementwise_loop)(int64_t n, const void *const *in, const int *steps, void *out,
                                 const void *attrs, bool stream);

/* Loops by instruction set and input dtype: an op's `extra`. */
typedef const elementwise_loop *const elementwise_table[ISA_COUNT];

/* A function that loops use, and not always the plain compilation. */
#define LOOP_HELPER static inline __attribute__((unused))

#ifdef ISA

#include "ops/kernels/vector.h"

#define LOOPS(name, ...)                                                                           \
    const elementwise_loop ISA_NAME(loops_##name)[ED_DTYPE_COUNT] = {__VA_ARGS__}

#define LOOP_ARGUMENTS                                                                             \
    int64_t n, const void *const *in, const int *steps, void *out, const void *attrs, bool stream
#define LOOP_USED (void)in, (void)steps, (void)attrs, (void)stream

/* ---- Vector loops ---------------------------------------------------------------------------- */

enum { VECTOR_AHEAD = 4096 }; /* bytes from what a streaming loop reads to what it prefetches */

#define TYPE f32
#include "ops/vector_loops.typed.h"
#define TYPE f64
#include "ops/vector_loops.typed.h"

#define VECTOR_LOOP1_WITH(name, type, number, expression)                                          \
    VECTOR_INLINE vector_##type name##_at_##type(vector_##type x, vector_##type c)                 \
    {                                                                                              \
        (void)c;                                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        vector_loop1_##type(n, in[0], out, name##_at_##type, vset_##type(number), stream);         \
    }
#define VECTOR_LOOP2_WITH(name, type, number, expression)                                          \
    VECTOR_INLINE vector_##type name##_at_##type(vector_##type a, vector_##type b,                 \
                                                 vector_##type c)                                  \
    {                                                                                              \
        (void)c;                                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        vector_loop2_##type(n, in, steps, out, name##_at_##type, vset_##type(number), stream);     \
    }

/* ---- Plain loops ----------------------------------------------------------------------------- */

enum { LOOP_STRIP = HARD(64, 256), LOOP_MOST = 3 };

/* A result past the caches: strips of it are made in the nearest one and moved on from there.
 * sizes: those of the operands' elements; `size`: that of the result's. On a frame of its own:
 * small results need no room for strips. */
static __attribute__((noinline, unused)) void
loop_streamed(elementwise_loop loop, int operands, const size_t *sizes, size_t size, int64_t n,
              const void *const *in, const int *steps, void *out, const void *attrs)
{
    uint64_t strip[LOOP_STRIP] __attribute__((aligned(COPY_LINE)));
    const void *from[LOOP_MOST];
    for (int64_t first = 0; first < n; first += LOOP_STRIP) {
        const int64_t count = n - first < LOOP_STRIP ? n - first : LOOP_STRIP;
        for (int k = 0; k < operands; k++) {
            from[k] = (const char *)in[k] + (steps[k] ? (size_t)first * sizes[k] : 0);
            for (size_t at = 0; steps[k] && at < LOOP_STRIP * sizes[k]; at += COPY_LINE)
                __builtin_prefetch((const char *)from[k] + VECTOR_AHEAD + at);
        }
        loop(count, from, steps, strip, attrs, false);
        copy_stream((char *)out + (size_t)first * size, strip, (size_t)count * size);
    }
}

/* loop_streamed of a loop from TYPE to TYPE. */
#define LOOP_STREAMED_SAME(loop, operands)                                                         \
    loop_streamed(loop, operands, (const size_t[]){sizeof(NUMBER), sizeof(NUMBER)},                \
                  sizeof(NUMBER), n, in, steps, out, attrs)

/* loop_streamed of a loop whose operands have one type. */
#define LOOP_STREAMED(loop, operands, type, result)                                                \
    loop_streamed(loop, operands, (const size_t[]){sizeof(number_##type), sizeof(number_##type)},  \
                  sizeof(number_##result), n, in, steps, out, attrs)

#define TYPE   f32
#define RESULT f32
#include "ops/loops.typed.h"
#define TYPE   f64
#define RESULT f64
#include "ops/loops.typed.h"
#define TYPE   i32
#define RESULT i32
#include "ops/loops.typed.h"
#define TYPE   i64
#define RESULT i64
#include "ops/loops.typed.h"
#define TYPE   u8
#define RESULT u8
#include "ops/loops.typed.h"
#define TYPE   u32
#define RESULT u32
#include "ops/loops.typed.h"
#define TYPE   u64
#define RESULT u64
#include "ops/loops.typed.h"
#define TYPE   f32
#define RESULT u8
#include "ops/loops.typed.h"
#define TYPE   f64
#define RESULT u8
#include "ops/loops.typed.h"
#define TYPE   i32
#define RESULT u8
#include "ops/loops.typed.h"
#define TYPE   i64
#define RESULT u8
#include "ops/loops.typed.h"
#define TYPE   u16
#define RESULT u8
#include "ops/loops.typed.h"

#define LOOP1(name, type, result, expression)                                                      \
    VECTOR_INLINE number_##result name##_at_##type(number_##type x)                                \
    {                                                                                              \
        return (number_##result)(expression);                                                      \
    }                                                                                              \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        if (stream)                                                                                \
            LOOP_STREAMED(name##_##type, 1, type, result);                                         \
        else                                                                                       \
            loop1_##type##_##result(n, in[0], out, name##_at_##type);                              \
    }

/* Never a second time inside its turned form. */
#define LOOP2(name, type, result, expression)                                                      \
    VECTOR_INLINE number_##result name##_at_##type(number_##type a, number_##type b)               \
    {                                                                                              \
        return (number_##result)(expression);                                                      \
    }                                                                                              \
    static __attribute__((noinline)) void name##_##type(LOOP_ARGUMENTS)                            \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        if (stream)                                                                                \
            LOOP_STREAMED(name##_##type, 2, type, result);                                         \
        else                                                                                       \
            loop2_##type##_##result(n, in, steps, out, name##_at_##type);                          \
    }

/* What the loop of another name makes of b and a. */
#define LOOP2_TURNED(name, type, other)                                                            \
    static void name##_##type(LOOP_ARGUMENTS)                                                      \
    {                                                                                              \
        const void *const turned[] = {in[1], in[0]};                                               \
        other##_##type(n, turned, (const int[]){steps[1], steps[0]}, out, attrs, stream);          \
    }

#else

#define LOOPS(name, ...)                                                                           \
    ISA_DECLARE_TABLE(elementwise_loop, loops_##name, []);                                         \
    static elementwise_table loops_##name = ISA_TABLE(loops_##name)

#define VECTOR_LOOP1_WITH(name, type, number, expression)
#define VECTOR_LOOP2_WITH(name, type, number, expression)
#define LOOP1(name, type, result, expression)
#define LOOP2(name, type, result, expression)
#define LOOP2_TURNED(name, type, other)

#endif

/* Entries of a table. */
#define LOOPS_FLOAT(name) [ED_FLOAT32] = name##_f32, [ED_FLOAT64] = name##_f64
#define LOOPS_NUMBER(name)                                                                         \
    LOOPS_FLOAT(name), [ED_INT32] = name##_i32, [ED_INT64] = name##_i64, [ED_UINT8] = name##_u8

#define VECTOR_LOOPS1_WITH(name, number, expression)                                               \
    VECTOR_LOOP1_WITH(name, f32, number, expression)                                               \
    VECTOR_LOOP1_WITH(name, f64, number, expression)                                               \
    LOOPS(name, LOOPS_FLOAT(name))
#define VECTOR_LOOPS2_WITH(name, number, expression)                                               \
    VECTOR_LOOP2_WITH(name, f32, number, expression)                                               \
    VECTOR_LOOP2_WITH(name, f64, number, expression)                                               \
    LOOPS(name, LOOPS_FLOAT(name))
#define VECTOR_LOOPS1(name, expression)      VECTOR_LOOPS1_WITH(name, 0, expression)
#define VECTOR_LOOPS2(name, expression)      VECTOR_LOOPS2_WITH(name, 0, expression)
#define VECTOR_LOOP1(name, type, expression) VECTOR_LOOP1_WITH(name, type, 0, expression)
#define VECTOR_LOOP2(name, type, expression) VECTOR_LOOP2_WITH(name, type, 0, expression)

/* The loops of all arithmetic dtypes: integers wrap around, so theirs is done unsigned. */
#define LOOPS_WRAPPING(LOOP, name, expression)                                                     \
    VECTOR_##LOOP(name, f32, expression) VECTOR_##LOOP(name, f64, expression)                      \
        LOOP(name, u32, u32, expression) LOOP(name, u64, u64, expression)                          \
            LOOP(name, u8, u8, expression) LOOPS(name, LOOPS_FLOAT(name), [ED_INT32] = name##_u32, \
                                                 [ED_INT64] = name##_u64, [ED_UINT8] = name##_u8)
#define LOOPS1_WRAPPING(name, expression) LOOPS_WRAPPING(LOOP1, name, expression)
#define LOOPS2_WRAPPING(name, expression) LOOPS_WRAPPING(LOOP2, name, expression)

/* The same where signs matter; the expression must not overflow. */
#define LOOPS1_SIGNED(name, expression)                                                            \
    LOOP1(name, f32, f32, expression)                                                              \
    LOOP1(name, f64, f64, expression)                                                              \
    LOOP1(name, i32, i32, expression)                                                              \
    LOOP1(name, i64, i64, expression)                                                              \
    LOOP1(name, u8, u8, expression)                                                                \
    LOOPS(name, LOOPS_NUMBER(name))

#endif
