#include "nn/initializers/initializer.h"

INITIALIZER(zeros, ZEROS, 0, "all 0")
{
    (void)options;
    return ed_zeros(d.shape, .dtype = d.dtype);
}

INITIALIZER(ones, ONES, 0, "all 1")
{
    (void)options;
    return ed_ones(d.shape, .dtype = d.dtype);
}

INITIALIZER(constant, CONSTANT, 1, "all one value")
{
    const constant_options *o = options;
    return ed_full(d.shape, o->value, .dtype = d.dtype);
}
