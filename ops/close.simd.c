/* Whether numbers are close to each other, element by element; see ops/elementwise.h for how a
 * family file is read. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <math.h>

/* Differences are taken in float64, so that float32 and float64 follow the same limits. */
LOOP_HELPER bool is_close_of(double a, double b, const ed_is_close_options *o)
{
    if (a != a || b != b) return o->equal_nan && a != a && b != b;
    return a == b || (isfinite(b) && fabs(a - b) <= o->atol + o->rtol * fabs(b));
}

#define APPROXIMATE_ATTRS(FIELD, T)                                                                \
    FIELD(T, FLOAT, tolerance, 1e-5, ED_AT_LEAST(0), "the difference must be below")
ED_OPTIONS(approximate_attrs, APPROXIMATE_ATTRS);

LOOP_HELPER bool approximate_equal_of(double a, double b, const approximate_attrs *o)
{
    return fabs(a - b) < o->tolerance;
}

#ifdef ISA
#define TYPE f32
#include "ops/close.typed.h"
#define TYPE f64
#include "ops/close.typed.h"
#endif

LOOPS(is_close, LOOPS_FLOAT(is_close));
LOOPS(approximate_equal, LOOPS_FLOAT(approximate_equal));
PLAIN(is_close, is_close_of(x[0], x[1], attrs));
PLAIN(approximate_equal, approximate_equal_of(x[0], x[1], attrs));

#define NO_SLOPE .no_gradient = "its result is bool"
#define NEAR     ED_SAMPLE_IN(1, 1.2, 3, 4), ED_SAMPLE_IN(1, 1.2, 3, 4)
#define FAR      ED_SAMPLE_IN(-2, 2, 2, 1, 3), ED_SAMPLE_IN(-2, 2, 4, 1)

/* is_close: y = |a - b| <= atol + rtol |b|, or a equals b */
ELEMENTWISE_AS(is_close, elementwise_infer_bool, elementwise_kernel,
               "y = |a - b| <= atol + rtol |b|", TWO(ED_SET_FLOAT), NO_SLOPE,
               ED_OP_ATTRS(ED_IS_CLOSE_OPTIONS, ed_is_close_options),
               .samples = ED_SAMPLES({.inputs = {NEAR},
                                      .attrs = ED_ATTRS(ED_IS_CLOSE_OPTIONS, ed_is_close_options,
                                                        .rtol = 0.05, .equal_nan = true)},
                                     {.inputs = {FAR}}));

/* approximate_equal: y = |a - b| < tolerance */
ELEMENTWISE_AS(approximate_equal, elementwise_infer_bool, elementwise_kernel,
               "y = |a - b| < tolerance", TWO(ED_SET_FLOAT), NO_SLOPE,
               ED_OP_ATTRS(APPROXIMATE_ATTRS, approximate_attrs),
               .samples = ED_SAMPLES({.inputs = {NEAR},
                                      .attrs = ED_ATTRS(APPROXIMATE_ATTRS, approximate_attrs,
                                                        .tolerance = 0.05)},
                                     {.inputs = {FAR}}));

#ifndef ISA
ed_tensor *ed_is_close_with(ed_tensor *a, ed_tensor_like *b, const ed_is_close_options *options)
{
    return CALL_OP(is_close, options, a, b);
}

ed_tensor *(ed_approximate_equal)(ed_tensor *a, ed_tensor *b, double tolerance)
{
    return CALL_OP(approximate_equal,
                   ED_ATTRS(APPROXIMATE_ATTRS, approximate_attrs, .tolerance = tolerance), a, b);
}
#endif
