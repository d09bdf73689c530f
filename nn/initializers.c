#include "nn/layer.h"
#include "ops/ops.h"
#include <math.h>

/*
 * Keras' initializers. A kernel's variance is scale / fan, the fan being the number of inputs (or
 * the mean of inputs and outputs) that one of its elements has to do with. Cutting a normal
 * distribution at two standard deviations leaves CUT of its standard deviation, which is made up
 * for.
 */
#define CUT 0.87962566103423978

typedef enum fan { FAN_IN, FAN_MEAN } fan;

static double count_fan(fan mode, ed_ints shape)
{
    int64_t n = shape.count;
    if (n == 0) return 1;
    double in = (double)shape.values[n > 1 ? n - 2 : 0], out = (double)shape.values[n - 1];
    for (int64_t i = 0; i < n - 2; i++) {
        in *= (double)shape.values[i];
        out *= (double)shape.values[i];
    }
    return fmax(1, mode == FAN_IN ? in : (in + out) / 2);
}

typedef struct draw {
    ed_ints shape;
    ed_dtype dtype;
    ed_generator *generator;
} draw;

static ed_tensor *uniform(const draw *d, double limit)
{
    return ed_random_uniform(d->shape, .dtype = d->dtype, .generator = d->generator, .low = -limit,
                             .high = limit);
}

static ed_tensor *normal(const draw *d, double stddev)
{
    return ed_random_normal(d->shape, .dtype = d->dtype, .generator = d->generator,
                            .stddev = stddev);
}

static ed_tensor *truncated(const draw *d, double stddev)
{
    return ed_random_truncated_normal(d->shape, .dtype = d->dtype, .generator = d->generator,
                                      .stddev = stddev);
}

static ed_tensor *scaled_uniform(const draw *d, double scale, fan mode)
{
    return uniform(d, sqrt(3 * scale / count_fan(mode, d->shape)));
}

static ed_tensor *scaled_normal(const draw *d, double scale, fan mode)
{
    return truncated(d, sqrt(scale / count_fan(mode, d->shape)) / CUT);
}

static bool check(ed_initializer initializer, ed_ints shape, ed_dtype dtype)
{
    int64_t size;
    if (dtype != ED_FLOAT32 && dtype != ED_FLOAT64)
        return ed_fail(ED_INVALID_ARGUMENT, "initialize: the dtype is %s; it is float32 or float64",
                       ed_dtype_name(dtype));
    if (!isfinite(initializer.value))
        return ed_fail(ED_INVALID_ARGUMENT, "initialize: the value is %g", initializer.value);
    if (!shape.values || shape.count < 0 || shape.count > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT, "initialize: a shape of up to %d dimensions is needed",
                       ED_MAX_RANK);
    return tensor_count(dtype, (int)shape.count, shape.values, &size);
}

ed_tensor *ed_initialize(ed_initializer initializer, ed_ints shape, ed_dtype dtype)
{
    if (!check(initializer, shape, dtype)) return NULL;
    const draw d = {shape, dtype, initializer.generator};
    double width = initializer.value != 0 ? fabs(initializer.value) : 0.05;
    switch (initializer.kind) {
    case ED_INIT_ZEROS: return ed_zeros(shape, .dtype = dtype);
    case ED_INIT_ONES: return ed_ones(shape, .dtype = dtype);
    case ED_INIT_CONSTANT: return ed_full(shape, initializer.value, .dtype = dtype);
    case ED_INIT_DEFAULT:
    case ED_INIT_GLOROT_UNIFORM: return scaled_uniform(&d, 1, FAN_MEAN);
    case ED_INIT_GLOROT_NORMAL: return scaled_normal(&d, 1, FAN_MEAN);
    case ED_INIT_HE_UNIFORM: return scaled_uniform(&d, 2, FAN_IN);
    case ED_INIT_HE_NORMAL: return scaled_normal(&d, 2, FAN_IN);
    case ED_INIT_LECUN_UNIFORM: return scaled_uniform(&d, 1, FAN_IN);
    case ED_INIT_LECUN_NORMAL: return scaled_normal(&d, 1, FAN_IN);
    case ED_INIT_RANDOM_UNIFORM: return uniform(&d, width);
    case ED_INIT_RANDOM_NORMAL: return normal(&d, width);
    case ED_INIT_TRUNCATED_NORMAL: return truncated(&d, width);
    }
    return ed_fail(ED_INVALID_ARGUMENT, "initialize: %d is no kind of initializer",
                   (int)initializer.kind);
}

ed_initializer layer_hold_initializer(ed_initializer initializer)
{
    ed_retain(initializer.generator);
    return initializer;
}

void layer_release_initializer(ed_initializer *initializer)
{
    ed_release(initializer->generator);
    initializer->generator = NULL;
}
