#include "nn/layer.h"
#include "ops/ops.h"

/*
 * Training: y = (x - mean) / sqrt(variance + epsilon) gamma + beta with the batch's own mean and
 * variance. Otherwise the same with moving ones, as one product and one sum: y = x s + (beta -
 * moving_mean s), s = gamma / sqrt(moving_variance + epsilon).
 */

typedef struct norm {
    double momentum, epsilon;
    bool no_center, no_scale;
    ed_tensor *gamma, *beta;                  /* the layer's, or constants that the state holds */
    ed_tensor *moving_mean, *moving_variance; /* the layer's */
} norm;

static void drop_constants(norm *n)
{
    if (n->no_scale) ed_release(n->gamma);
    if (n->no_center) ed_release(n->beta);
    n->gamma = n->beta = NULL;
}

static ed_tensor *weight(ed_layer *layer, const char *name, const ed_tensor *x,
                         ed_initializer_kind kind, bool fixed)
{
    return ed_layer_add_weight(layer, name, ED_SHAPE(x->shape[x->rank - 1]), .dtype = x->dtype,
                               .initializer.kind = kind, .not_trainable = fixed);
}

static bool build(ed_layer *layer, ed_tensor *x)
{
    norm *n = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true)) return false;
    ed_ints shape = ED_SHAPE(x->shape[x->rank - 1]);
    drop_constants(n); /* of a build that failed */
    n->gamma = n->no_scale ? ed_retain(ed_ones(shape, .dtype = x->dtype))
                           : weight(layer, "gamma", x, ED_INIT_ONES, false);
    if (!n->gamma) return false;
    n->beta = n->no_center ? ed_retain(ed_zeros(shape, .dtype = x->dtype))
                           : weight(layer, "beta", x, ED_INIT_ZEROS, false);
    if (!n->beta) return false;
    n->moving_mean = weight(layer, "moving_mean", x, ED_INIT_ZEROS, true);
    if (!n->moving_mean) return false;
    n->moving_variance = weight(layer, "moving_variance", x, ED_INIT_ONES, true);
    return n->moving_variance != NULL;
}

#define MOVE(type)                                                                                 \
    static void move_##type(type *restrict moving, const type *restrict batch, int64_t n,          \
                            double momentum)                                                       \
    {                                                                                              \
        const type keep = (type)momentum, take = (type)(1 - momentum);                             \
        for (int64_t i = 0; i < n; i++) moving[i] = moving[i] * keep + batch[i] * take;            \
    }
MOVE(float)
MOVE(double)

static void move(const ed_tensor *moving, void *to, const void *batch, double momentum)
{
    if (moving->dtype == ED_FLOAT32)
        move_float(to, batch, moving->size, momentum);
    else
        move_double(to, batch, moving->size, momentum);
}

/* Both or, without memory, none. A batch of nothing has no statistics. */
static bool move_statistics(const norm *n, const ed_tensor *mean, const ed_tensor *variance)
{
    const void *means = ed_data(mean), *variances = ed_data(variance);
    void *to_mean = variable_write(n->moving_mean, true);
    void *to_variance = variable_write(n->moving_variance, true);
    if (!means || !variances || !to_mean || !to_variance) return false;
    move(n->moving_mean, to_mean, means, n->momentum);
    move(n->moving_variance, to_variance, variances, n->momentum);
    return true;
}

static ed_tensor *by_moving(const norm *n, ed_tensor *x)
{
    ed_tensor *s = ed_mul(ed_rsqrt(ed_add(n->moving_variance, n->epsilon)), n->gamma);
    return ed_add(ed_mul(x, s), ed_sub(n->beta, ed_mul(n->moving_mean, s)));
}

static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    const norm *n = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true) || !layer_same_last(layer, x, n->gamma->shape[0]))
        return NULL;
    if (!options->training) return by_moving(n, x);
    ed_tensor *mean, *variance;
    ed_tensor *y = ed_batch_norm(x, n->gamma, n->beta, n->epsilon, &mean, &variance);
    if (!y || (x->size && !move_statistics(n, mean, variance))) return NULL;
    return y;
}

static void destroy(ed_layer *layer)
{
    drop_constants(ed_layer_state(layer));
}

ed_layer *ed_layer_batch_normalization_with(const ed_layer_batch_normalization_options *options)
{
    static const ed_layer_class class = {.name = "batch_normalization",
                                         .state_size = sizeof(norm),
                                         .build = build,
                                         .forward = forward,
                                         .destroy = destroy};
    const ed_layer_batch_normalization_options defaults = {.momentum = 0.99, .epsilon = 0.001};
    const ed_layer_batch_normalization_options *o = options ? options : &defaults;
    if (!(o->momentum >= 0 && o->momentum <= 1))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "batch_normalization: momentum is %g; it lies in [0, 1]", o->momentum);
    if (!(o->epsilon >= 0 && o->epsilon < 1e30))
        return ed_fail(ED_INVALID_ARGUMENT, "batch_normalization: epsilon is %g; it is 0 or more",
                       o->epsilon);
    ed_layer *layer = ed_layer_new(&class, o->name);
    if (!layer) return NULL;
    *(norm *)ed_layer_state(layer) = (norm){.momentum = o->momentum,
                                            .epsilon = o->epsilon,
                                            .no_center = o->no_center,
                                            .no_scale = o->no_scale};
    return layer;
}
