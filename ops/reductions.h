/*
 * What the reduction ops share: shape rule, reference, gradients, definitions. Their attributes
 * begin as ed_reduce_options do.
 */
#ifndef EDDY_OPS_REDUCTIONS_H
#define EDDY_OPS_REDUCTIONS_H

#include "ops/reduce.h"

/* A shape without the axes in mask, or with size 1 for them; its rank. */
int reduce_shape(ed_ints shape, unsigned mask, bool keepdims, int64_t *out);

/* One output of x's dtype. The plan: the axes, as a mask. */
bool reduce_infer(ed_call *call);

/* Runs f over the elements of each output, in order, in float64. */
bool reduce_reference(const ed_call *call,
                      double (*f)(const double *x, int64_t n, const void *attrs));

/* The mask of a call whose axes have been checked; how many elements an output stands for. */
unsigned reduce_mask_of(const ed_gradient_call *g);
double reduce_count_of(const ed_gradient_call *g);

/* A tensor of the output's shape, with the reduced axes of size 1: what broadcasts against x. */
ed_tensor *reduce_kept(const ed_gradient_call *g, ed_tensor *t);

/* The call's options, but with keepdims. */
const ed_reduce_options *reduce_keeping(const ed_gradient_call *g, ed_reduce_options *options);

#define KERNEL(name, kind)                                                                         \
    static bool name##_kernel(ed_call *call)                                                       \
    {                                                                                              \
        return reduce_run(kind, call->inputs[0], *(const unsigned *)call->plan,                    \
                          call->outputs[0]->data, NULL);                                           \
    }

/* References: an expression of a group's n numbers x; a loop that starts with a number. */
#define PLAIN(name, expression)                                                                    \
    static double plain_of_##name(const double *x, int64_t n, const void *attrs)                   \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }                                                                                              \
    static bool plain_##name(const ed_call *call)                                                  \
    {                                                                                              \
        return reduce_reference(call, plain_of_##name);                                            \
    }
#define PLAIN_LOOP(name, start, expression)                                                        \
    static double loop_of_##name(const double *x, int64_t n)                                       \
    {                                                                                              \
        double y = start;                                                                          \
        for (int64_t i = 0; i < n; i++) y = expression;                                            \
        return y;                                                                                  \
    }                                                                                              \
    PLAIN(name, loop_of_##name(x, n))

#define X(set)                                                                                     \
    {                                                                                              \
        {                                                                                          \
            "x", set, 'T'                                                                          \
        }                                                                                          \
    }
#define REDUCING(...) ED_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options, __VA_ARGS__)
#define AXES(...)     REDUCING(.axis = ED_SAMPLE_INTS(__VA_ARGS__))
#define KEEPING(...)  REDUCING(.axis = ED_SAMPLE_INTS(__VA_ARGS__), .keepdims = true)
#define SAMPLES(in, low, high)                                                                     \
    ED_SAMPLES({.inputs = {in(low, high, 3, 4)}},                                                  \
               {.inputs = {in(low, high, 3, 4)}, .attrs = AXES(0)},                                \
               {.inputs = {in(low, high, 3, 4)}, .attrs = AXES(-1)},                               \
               {.inputs = {in(low, high, 2, 3, 4)}, .attrs = KEEPING(1)},                          \
               {.inputs = {in(low, high, 2, 3, 2, 2)}, .attrs = AXES(0, -2)},                      \
               {.inputs = {in(low, high, 3, 1)}, .attrs = AXES()}, {.inputs = {in(low, high)}})

/* A definition; the rest is further fields of ed_op. And the public function. */
#define REDUCTION(symbol, text, set, infer_function, ...)                                          \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = X(set),                                                           \
                     ED_OP_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options),                            \
                     .infer = infer_function,                                                      \
                     .kernel = symbol##_kernel,                                                    \
                     .batch = ed_batch_reduction,                                                  \
                     .reference = plain_##symbol,                                                  \
                     __VA_ARGS__};                                                                 \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_reduce_options *options)                  \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

#endif
