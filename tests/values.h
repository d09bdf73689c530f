/* Tensors of given values, and tensors that hold given ones. */
#ifndef EDDY_TESTS_VALUES_H
#define EDDY_TESTS_VALUES_H

#include "ops/ops.h"
#include "tests/asserts.h"
#include <math.h>

/* Fails unless x has that shape and those values, up to rounding; NaN is NaN. */
static void holds(ed_tensor *x, ed_ints shape, const double *values)
{
    if (!x) fail_msg("%s", ed_error());
    assert_int_equal(ed_rank(x), shape.count);
    for (int d = 0; d < ed_rank(x); d++) assert_int_equal(ed_dim(x, d), shape.values[d]);
    const double *y = ed_as_doubles(x);
    for (int64_t i = 0; i < ed_size(x); i++)
        if (isnan(values[i]) ? !isnan(y[i]) : fabs(y[i] - values[i]) > 1e-6 * fabs(values[i]))
            fail_msg("element %lld is %.17g, expected %.17g", (long long)i, y[i], values[i]);
}

#define HOLDS(x, shape, ...) holds(x, shape, (const double[]){__VA_ARGS__})
#define OF(type, ...)                                                                              \
    ed_constant(ED_VALUES(type, __VA_ARGS__),                                                      \
                ED_SHAPE((int64_t)(sizeof((type[]){__VA_ARGS__}) / sizeof(type))))
#define FLOATS(...)          OF(float, __VA_ARGS__)
#define REFUSED(call, words) assert_fails(call, ED_INVALID_ARGUMENT, words)

#endif
