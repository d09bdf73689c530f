#include "nn/layer.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/*
 * Keras' initializers. A kernel's variance is scale / fan: fan_in, fan_out or their mean. A normal
 * distribution that is truncated at two standard deviations has CUT times its standard deviation;
 * the stddev is divided by that.
 */
#define CUT 0.87962566103423978

typedef struct draw {
    ed_ints shape;
    ed_dtype dtype;
    ed_generator *generator;
} draw;

/* A kind of initializer; `draw` gets a shape and dtype that were checked. */
typedef struct initializer_class {
    ed_kind kind;
    ed_tensor *(*draw)(const void *options, draw d);
} initializer_class;

struct ed_initializer {
    made_object made;
};

static void initializer_destroy(void *object)
{
    made_end(object);
    memory_free(object);
}

static const object_class object = {
    .name = "initializer", .destroy = initializer_destroy, .is_made = true};

static void *initializer_make(const ed_kind *kind, const void *options)
{
    return scope_give(made_new(&object, sizeof(ed_initializer), kind, options));
}

static bool check_request(ed_ints shape, ed_dtype dtype)
{
    int64_t size;
    if (dtype != ED_FLOAT32 && dtype != ED_FLOAT64)
        return ed_fail(ED_INVALID_ARGUMENT, "initialize: dtype must be float32 or float64, got %s",
                       ed_dtype_name(dtype));
    if (!shape.values) return ed_fail(ED_INVALID_ARGUMENT, "initialize: shape is not given");
    if (shape.count < 0 || shape.count > ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "initialize: the rank of shape must be 0 to %d, got %lld", ED_MAX_RANK,
                       (long long)shape.count);
    return tensor_count(dtype, (int)shape.count, shape.values, &size);
}

ed_tensor *ed_initialize(ed_initializer *initializer, ed_ints shape, ed_dtype dtype)
{
    if (!initializer) return ed_fail(ED_INVALID_ARGUMENT, "initialize: initializer is NULL");
    if (!check_request(shape, dtype)) return NULL;
    ED_SCOPE;
    const initializer_class *class = (const initializer_class *)initializer->made.kind;
    return ed_keep(class->draw(initializer->made.options, (draw){shape, dtype, NULL}));
}

/* ---- Distributions --------------------------------------------------------------------------- */

static ed_tensor *uniform(const draw *d, double low, double high)
{
    return ed_random_uniform(d->shape, .dtype = d->dtype, .generator = d->generator, .low = low,
                             .high = high);
}

static ed_tensor *normal(const draw *d, double mean, double stddev)
{
    return ed_random_normal(d->shape, .dtype = d->dtype, .generator = d->generator, .mean = mean,
                            .stddev = stddev);
}

static ed_tensor *truncated(const draw *d, double mean, double stddev)
{
    return ed_random_truncated_normal(d->shape, .dtype = d->dtype, .generator = d->generator,
                                      .mean = mean, .stddev = stddev);
}

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

static ed_tensor *scaled(draw d, double scale, fan mode, distribution kind)
{
    const double variance = scale / count_fan(mode, d.shape);
    const double limit = sqrt(3 * scale / count_fan(mode, d.shape));
    return kind == UNIFORM       ? uniform(&d, -limit, limit)
           : kind == UNTRUNCATED ? normal(&d, 0, sqrt(variance))
                                 : truncated(&d, 0, sqrt(variance) / CUT);
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

/* The definition: INITIALIZER(ones, ONES, needed, "one line") { the body of draw(options, d) }. */
#define INITIALIZER(symbol, SYMBOL, needed, text)                                                  \
    typedef ed_initializer_##symbol##_options symbol##_options;                                    \
    static ed_tensor *symbol##_draw(const void *options, draw d);                                  \
    ED_SCHEMA(symbol, ED_INITIALIZER_##SYMBOL##_OPTIONS, symbol##_options);                        \
    static const initializer_class symbol##_class = {                                              \
        .kind = {.family = "initializer",                                                          \
                 .name = #symbol,                                                                  \
                 .doc = text,                                                                      \
                 .fields = symbol##_fields,                                                        \
                 .options_size = sizeof symbol##_defaults,                                         \
                 .defaults = &symbol##_defaults,                                                   \
                 .required = needed,                                                               \
                 .make = initializer_make},                                                        \
        .draw = symbol##_draw};                                                                    \
    SCHEMA_KIND(symbol, &symbol##_class.kind);                                                     \
    ed_initializer *ed_initializer_##symbol##_with(const symbol##_options *options)                \
    {                                                                                              \
        return ed_make(&symbol##_class.kind, options);                                             \
    }                                                                                              \
    static ed_tensor *symbol##_draw(const void *options, draw d)

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

INITIALIZER(random_uniform, RANDOM_UNIFORM, 0, "uniform in [minval, maxval)")
{
    const random_uniform_options *o = options;
    d.generator = o->generator;
    return uniform(&d, o->minval, o->maxval);
}

INITIALIZER(random_normal, RANDOM_NORMAL, 0, "normal distribution")
{
    const random_normal_options *o = options;
    d.generator = o->generator;
    return normal(&d, o->mean, o->stddev);
}

INITIALIZER(truncated_normal, TRUNCATED_NORMAL, 0,
            "normal distribution, truncated at 2 standard deviations")
{
    const truncated_normal_options *o = options;
    d.generator = o->generator;
    return truncated(&d, o->mean, o->stddev);
}

INITIALIZER(variance_scaling, VARIANCE_SCALING, 0, "mean 0 and variance scale / fan")
{
    const variance_scaling_options *o = options;
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
        d.generator = ((const symbol##_options *)options)->generator;                              \
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
