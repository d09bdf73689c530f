/*
 * Elementwise ops: y[i] = f(a[i], b[i], ...) with broadcasting. A family file (*.simd.c) tells of
 * each op, within one screen,
 *
 *     LOOPS...        the inner loop, for each instruction set and dtype (ops/loops.h)
 *     PLAIN...        the same for one element in float64, for the checks
 *     GRADIENT...     made of public ops
 *     ELEMENTWISE...  the definition
 *     FUNCTION...     the public function
 *
 * In the compilations for instruction sets only the loops remain; in the plain one everything else.
 *
 * The driver, elementwise.c, makes every strided or broadcast layout look to the loops like
 * adjoining elements or a single one, and cuts large ones among threads.
 */
#ifndef EDDY_OPS_ELEMENTWISE_H
#define EDDY_OPS_ELEMENTWISE_H

#include "ops/execute.h"
#include "ops/loops.h"

/* One output of the broadcast shape, of the last input's dtype / of bool. */
bool elementwise_infer(ed_call *call);
bool elementwise_infer_bool(ed_call *call);

/* The same for any dtype. */
bool elementwise_infer_as(ed_call *call, ed_dtype dtype);

/* Runs the table in call->op->extra; the dtype of the last input chooses the loop. */
bool elementwise_kernel(ed_call *call);

/* The same for division: integers by 0 are refused first. */
bool elementwise_whole_division(ed_call *call);

/* Runs one element function over all elements in float64. */
bool elementwise_plain(const ed_call *call, double (*f)(const double *x, const void *attrs));

#ifdef ISA

#define PLAIN(name, expression)                  typedef int plain_##name##_is_elsewhere
#define ELEMENTWISE_AS(name, infer, kernel, ...) typedef int op_##name##_is_elsewhere

#else

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

#define ELEMENTWISE_AS(symbol, infer_function, kernel_function, text, ...)                         \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .infer = infer_function,                                                      \
                     .kernel = kernel_function,                                                    \
                     .batch = ed_batch_broadcast,                                                  \
                     .reference = plain_##symbol,                                                  \
                     .extra = loops_##symbol,                                                      \
                     __VA_ARGS__}
#endif

/* The definition: symbol, text, operands, and further fields of ed_op. ELEMENTWISE_AS: with an
 * infer and kernel of its own. */
#define ELEMENTWISE(symbol, ...)                                                                   \
    ELEMENTWISE_AS(symbol, elementwise_infer, elementwise_kernel, __VA_ARGS__)

/* Operands of one type letter. */
#define ONE(set) .operands = {{"x", set, 'T'}}
#define TWO(set) .operands = {{"a", set, 'T'}, {"b", set, 'T'}}

/* The gradient of a function of one operand is one expression of dy, x and y. */
#define GRADIENT1(name, expression)                                                                \
    static bool name##_gradient(const ed_gradient_call *g)                                         \
    {                                                                                              \
        ed_tensor *const dy = g->dy[0], *const x = g->inputs[0], *const y = g->outputs[0];         \
        (void)x, (void)y;                                                                          \
        g->dx[0] = expression;                                                                     \
        return true;                                                                               \
    }                                                                                              \
    static bool name##_gradient(const ed_gradient_call *g)

/* Samples: of one operand; of two, alike and broadcast, whose second one keeps away from 0. */
#define SAMPLES1(low, high)                                                                        \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(low, high, 3, 5)}}, {.inputs = {ED_SAMPLE_IN(low, high)}}, \
               {.inputs = {ED_SAMPLE_IN(low, high, 2, 1, 9)}})
#define SAMPLES2_IN(low_a, high_a, low_b, high_b)                                                  \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_SAMPLE_IN(low_a, high_a, 3, 4), ED_SAMPLE_IN(low_b, high_b, 3, 4)}},        \
        {.inputs = {ED_SAMPLE_IN(low_a, high_a, 2, 1, 3), ED_SAMPLE_IN(low_b, high_b, 4, 1)}},     \
        {.inputs = {ED_SAMPLE_IN(low_a, high_a), ED_SAMPLE_IN(low_b, high_b, 5)}})
#define SAMPLES2 SAMPLES2_IN(-2, 2, 0.5, 2)

/*
 * The public function of an op of one or two operands; and ops_<symbol>, for gradients only, of an
 * op that users don't call.
 */
#ifdef ISA
#define FUNCTION1(symbol) typedef int function_##symbol##_is_elsewhere
#define FUNCTION2(symbol) typedef int function_##symbol##_is_elsewhere
#define INTERNAL2(symbol) ed_tensor *ops_##symbol(ed_tensor *a, ed_tensor *b)
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
#define INTERNAL2(symbol)                                                                          \
    extern const ed_op ed_op_##symbol;                                                             \
    ed_tensor *ops_##symbol(ed_tensor *a, ed_tensor *b);                                           \
    ed_tensor *ops_##symbol(ed_tensor *a, ed_tensor *b)                                            \
    {                                                                                              \
        return CALL_OP(symbol, NULL, a, b);                                                        \
    }                                                                                              \
    ed_tensor *ops_##symbol(ed_tensor *a, ed_tensor *b)
#endif

/* The i-th gradient of a binary op: t, summed over the axes along which operand i was broadcast, if
 * it is wanted. */
#define GIVE(g, i, t)                                                                              \
    do {                                                                                           \
        if ((g)->needs[i]) (g)->dx[i] = ops_sum_to(t, (g)->shapes[i]);                             \
    } while (0)

#endif
