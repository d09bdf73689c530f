/*
 * Elementwise ops: y[i] = f(a[i], b[i], ...) with broadcasting. A family file (*.simd.c) tells of each op, within one screen,
 *
 *     LOOPS...        the inner loop, compiled once for each instruction set and dtype
 *     PLAIN...        the same for one element in float64, for the checks
 *     a gradient      made of public ops
 *     ELEMENTWISE...  the definition, and the public function
 *
 * In the compilations for instruction sets only the loops remain; in the plain one everything else.
 *
 * An inner loop sees n elements of each operand, either n adjoining ones (step 1) or one that stands for all (step 0). The driver,
 * elementwise.c, makes every strided or broadcast layout look like that, and cuts large ones among threads.
 */
#ifndef EDDY_OPS_ELEMENTWISE_H
#define EDDY_OPS_ELEMENTWISE_H

#include "ops/execute.h"
#include "ops/kernels/isa.h"

typedef void (*elementwise_loop)(int64_t n, const void *const *in, const int *steps, void *out,
                                 const void *attrs);

/* Loops by instruction set and input dtype: an op's `extra`. */
typedef const elementwise_loop *const elementwise_table[ISA_COUNT];

/* One output of the broadcast shape, of the inputs' dtype / of bool; operands beyond the last have no say in the dtype. */
bool elementwise_infer(ed_call *call);
bool elementwise_infer_bool(ed_call *call);

/* Runs the table in call->op->extra; the dtype of the last input chooses the loop. */
bool elementwise_kernel(ed_call *call);

/* Runs one element function over all elements in float64. */
bool elementwise_plain(const ed_call *call, double (*f)(const double *x, const void *attrs));

#ifdef ISA

#include "ops/kernels/vector.h"

#define LOOPS(name, ...) const elementwise_loop ISA_NAME(loops_##name)[ED_DTYPE_COUNT] = {__VA_ARGS__}
#define PLAIN(name, expression) typedef int plain_##name##_is_elsewhere
#define ELEMENTWISE(name, text, inputs, ...) typedef int op_##name##_is_elsewhere

#else

#define LOOPS(name, ...)                                                                           \
    ISA_TABLES_(name)                                                                              \
    static elementwise_table loops_##name = ISA_TABLE(loops_##name)
#if defined(__x86_64__)
#define ISA_TABLES_(name)                                                                          \
    extern const elementwise_loop loops_##name##_baseline[], loops_##name##_avx2[],                \
        loops_##name##_avx512[];
#else
#define ISA_TABLES_(name) extern const elementwise_loop loops_##name##_baseline[];
#endif

/* One element in float64: x[0], x[1], ... are the operands'; `attrs` the attributes. */
#define PLAIN(name, expression)                                                                    \
    static double plain_of_##name(const double *x, const void *attrs)                              \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }                                                                                              \
    static bool plain_##name(const ed_call *call)                                                  \
    {                                                                                              \
        return elementwise_plain(call, plain_of_##name);                                           \
    }                                                                                              \
    static bool plain_##name(const ed_call *call) /* ends with the user's semicolon */

/* The definition; the rest is further fields of ed_op. */
#define ELEMENTWISE(symbol, text, inputs, ...)                                                     \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = inputs,                                                           \
                     .infer = elementwise_infer,                                                   \
                     .kernel = elementwise_kernel,                                                 \
                     .reference = plain_##symbol,                                                  \
                     .extra = loops_##symbol,                                                      \
                     __VA_ARGS__}
#endif

/* Operands of one type letter. */
#define ONE(set) {{"x", set, 'T'}}
#define TWO(set) {{"a", set, 'T'}, {"b", set, 'T'}}

/* The public function of an op of one or two operands. */
#ifdef ISA
#define FUNCTION1(symbol) typedef int function_##symbol##_is_elsewhere
#define FUNCTION2(symbol) typedef int function_##symbol##_is_elsewhere
#else
#define FUNCTION1(symbol)                                                                          \
    ed_tensor *(ed_##symbol)(ed_tensor * x)                                                        \
    {                                                                                              \
        return CALL_OP(symbol, NULL, x);                                                           \
    }                                                                                              \
    ed_tensor *(ed_##symbol)(ed_tensor * x)
#define FUNCTION2(symbol)                                                                          \
    ed_tensor *(ed_##symbol)(ed_tensor * a, ed_tensor * b)                                         \
    {                                                                                              \
        return CALL_OP(symbol, NULL, a, b);                                                        \
    }                                                                                              \
    ed_tensor *(ed_##symbol)(ed_tensor * a, ed_tensor * b)
#endif

#endif
