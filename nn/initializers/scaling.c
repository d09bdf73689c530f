#include "nn/initializers/initializer.h"
#include <math.h>
#include <string.h>

/*
 * Keras' variance_scaling, and those kinds that are one of fixed scale, fan and distribution. The
 * variance of a kernel's elements is scale / fan: fan_in, fan_out or their mean. A normal
 * distribution that is truncated at two standard deviations has CUT times its standard deviation;
 * the stddev is divided by that.
 */
#define CUT 0.87962566103423978

typedef enum fan { FAN_IN, FAN_OUT, FAN_AVG } fan;
typedef enum distribution { TRUNCATED, UNTRUNCATED, UNIFORM } distribution;

static double count_fan(fan mode, ed_ints shape)
{
    const int64_t n = shape.count;
    if (n == 0) return 1;
    double in = (double)shape.values[n > 1 ? n - 2 : 0], out = (double)shape.values[n - 1];
    for (int64_t i = 0; i < n - 2; i++) {
        in *= (double)shape.values[i];
        out *= (double)shape.values[i];
    }
    return fmax(1, mode == FAN_IN ? in : mode == FAN_OUT ? out : (in + out) / 2);
}

static ed_tensor *scaled(initializer_draw d, double scale, fan mode, distribution kind)
{
    const double variance = scale / count_fan(mode, d.shape);
    const double limit = sqrt(3 * scale / count_fan(mode, d.shape));
    return kind == UNIFORM       ? initializer_uniform(d, -limit, limit)
           : kind == UNTRUNCATED ? initializer_normal(d, 0, sqrt(variance))
                                 : initializer_truncated(d, 0, sqrt(variance) / CUT);
}

INITIALIZER(variance_scaling, VARIANCE_SCALING, 0, "mean 0 and variance scale / fan")
{
    const variance_scaling_options *o = options;
    d.seed = o->seed;
    d.generator = o->generator;
    const fan mode = !strcmp(o->mode, "fan_in")    ? FAN_IN
                     : !strcmp(o->mode, "fan_out") ? FAN_OUT
                                                   : FAN_AVG;
    const distribution kind = !strcmp(o->distribution, "uniform")              ? UNIFORM
                              : !strcmp(o->distribution, "untruncated_normal") ? UNTRUNCATED
                                                                               : TRUNCATED;
    return scaled(d, o->scale, mode, kind);
}

/* Those that are a variance_scaling of fixed scale, fan and distribution. */
#define SCALED(symbol, SYMBOL, scale, mode, kind, text)                                            \
    INITIALIZER(symbol, SYMBOL, 0, text)                                                           \
    {                                                                                              \
        const symbol##_options *o = options;                                                       \
        d.seed = o->seed;                                                                          \
        d.generator = o->generator;                                                                \
        return scaled(d, scale, mode, kind);                                                       \
    }

SCALED(glorot_uniform, GLOROT_UNIFORM, 1, FAN_AVG, UNIFORM,
       "uniform in +-sqrt(6 / (fan_in + fan_out))")
SCALED(glorot_normal, GLOROT_NORMAL, 1, FAN_AVG, TRUNCATED,
       "truncated normal, variance 2 / (fan_in + fan_out)")
SCALED(he_uniform, HE_UNIFORM, 2, FAN_IN, UNIFORM, "uniform in +-sqrt(6 / fan_in)")
SCALED(he_normal, HE_NORMAL, 2, FAN_IN, TRUNCATED, "truncated normal, variance 2 / fan_in")
SCALED(lecun_uniform, LECUN_UNIFORM, 1, FAN_IN, UNIFORM, "uniform in +-sqrt(3 / fan_in)")
SCALED(lecun_normal, LECUN_NORMAL, 1, FAN_IN, TRUNCATED, "truncated normal, variance 1 / fan_in")
