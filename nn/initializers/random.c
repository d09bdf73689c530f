#include "nn/initializers/initializer.h"

INITIALIZER(random_uniform, RANDOM_UNIFORM, 0, "uniform in [minval, maxval)")
{
    const random_uniform_options *o = options;
    d.seed = o->seed;
    d.generator = o->generator;
    return initializer_uniform(d, o->minval, o->maxval);
}

INITIALIZER(random_normal, RANDOM_NORMAL, 0, "normal distribution")
{
    const random_normal_options *o = options;
    d.seed = o->seed;
    d.generator = o->generator;
    return initializer_normal(d, o->mean, o->stddev);
}

INITIALIZER(truncated_normal, TRUNCATED_NORMAL, 0,
            "normal distribution, truncated at 2 standard deviations")
{
    const truncated_normal_options *o = options;
    d.seed = o->seed;
    d.generator = o->generator;
    return initializer_truncated(d, o->mean, o->stddev);
}
