/* Elementwise arithmetic; see ops/elementwise.h for how a family file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <math.h>

/* A loop over plain C; the compiler turns it into the instruction set's vectors, once for each pattern of steps. */
#define LOOP2_C(name, type, expression)                                                            \
    static void name##_##type(int64_t n, const void *const *in, const int *steps, void *out,       \
                              const void *attrs)                                                   \
    {                                                                                              \
        (void)attrs;                                                                               \
        const type *restrict pa = in[0], *restrict pb = in[1];                                     \
        type *restrict y = out;                                                                    \
        if (steps[0] && steps[1])                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type a = pa[i], b = pb[i];                                                   \
                y[i] = (type)(expression);                                                         \
            }                                                                                      \
        else if (steps[0]) {                                                                       \
            const type b = *pb;                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type a = pa[i];                                                              \
                y[i] = (type)(expression);                                                         \
            }                                                                                      \
        } else {                                                                                   \
            const type a = *pa;                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type b = pb[steps[1] ? i : 0];                                               \
                y[i] = (type)(expression);                                                         \
            }                                                                                      \
        }                                                                                          \
    }

/* Integers wrap around: their arithmetic is done unsigned. */
#define LOOPS2_ARITHMETIC(name, expression)                                                        \
    LOOP2_C(name, float, expression)                                                               \
    LOOP2_C(name, double, expression)                                                              \
    LOOP2_C(name, uint32_t, expression)                                                            \
    LOOP2_C(name, uint64_t, expression)                                                            \
    LOOP2_C(name, uint8_t, expression)                                                             \
    LOOPS(name, [ED_FLOAT32] = name##_float, [ED_FLOAT64] = name##_double,                         \
          [ED_INT32] = name##_uint32_t, [ED_INT64] = name##_uint64_t, [ED_UINT8] = name##_uint8_t)
#ifndef ISA
#undef LOOPS2_ARITHMETIC
#define LOOPS2_ARITHMETIC(name, expression) LOOPS(name, 0)
#endif

#define SAMPLES2                                                                                   \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(0.5, 2, 3, 4)}},                \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 1, 3), ED_SAMPLE_IN(0.5, 2, 4, 1)}},             \
               {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0.5, 2, 5)}})

/* add: y = a + b, da = dy, db = dy */
LOOPS2_ARITHMETIC(add, a + b);
PLAIN(add, x[0] + x[1]);

static bool add_gradient(const ed_gradient_call *g)
{
    for (int i = 0; i < 2; i++)
        if (g->needs[i]) g->dx[i] = ops_sum_to(g->dy[0], g->shapes[i]);
    return true;
}

ELEMENTWISE(add, "y = a + b", TWO(ED_SET_NUMBER), .gradient = add_gradient, .samples = SAMPLES2);
FUNCTION2(add);

/* mul: y = a b, da = dy b, db = dy a */
LOOPS2_ARITHMETIC(mul, a * b);
PLAIN(mul, x[0] * x[1]);

static bool mul_gradient(const ed_gradient_call *g)
{
    for (int i = 0; i < 2; i++)
        if (g->needs[i])
            g->dx[i] = ops_sum_to(ed_mul(g->dy[0], g->inputs[1 - i]), g->shapes[i]);
    return true;
}

ELEMENTWISE(mul, "y = a b", TWO(ED_SET_NUMBER), .gradient = mul_gradient, .saves = ED_SAVES_ALL_INPUTS,
            .samples = SAMPLES2);
FUNCTION2(mul);
