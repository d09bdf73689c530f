#include "optim/optimizer.h"
#include <math.h>

enum { VELOCITY, MOMENTUM, AVERAGE };
enum { RATE, RHO, ONE_MINUS_RHO, MU, EPSILON };

ISA_DECLARE(void, rmsprop_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

/*
 * s = rho s + (1 - rho) g g; centered: a = rho a + (1 - rho) g, d = s - a a, else d = s; step =
 * rate g / sqrt(d + epsilon); with momentum b = mu b + step, w -= b, else w -= step.
 */
#define RMSPROP(type, root)                                                                        \
    static inline __attribute__((always_inline)) void rmsprop_##type(                              \
        const optim_part *p, const bool momentum, const bool centered)                             \
    {                                                                                              \
        const type *restrict g = p->g;                                                             \
        type *restrict w = p->w, *restrict ss = p->slots[VELOCITY];                                \
        type *restrict bs = p->slots[MOMENTUM], *restrict as = p->slots[AVERAGE];                  \
        const type rate = (type)p->numbers[RATE], epsilon = (type)p->numbers[EPSILON];             \
        const type rho = (type)p->numbers[RHO], c = (type)p->numbers[ONE_MINUS_RHO],               \
                   mu = (type)p->numbers[MU];                                                      \
        for (int64_t i = 0; i < p->n; i++) {                                                       \
            type d = ss[i] = rho * ss[i] + c * (g[i] * g[i]);                                      \
            if (centered) {                                                                        \
                as[i] = rho * as[i] + c * g[i];                                                    \
                d -= as[i] * as[i];                                                                \
            }                                                                                      \
            type step = rate * g[i] / root(d + epsilon);                                           \
            if (momentum) bs[i] = step = mu * bs[i] + step;                                        \
            w[i] -= step;                                                                          \
        }                                                                                          \
    }                                                                                              \
    static void update_##type(const optim_part *p)                                                 \
    {                                                                                              \
        if (p->slots[MOMENTUM] && p->slots[AVERAGE])                                               \
            rmsprop_##type(p, true, true);                                                         \
        else if (p->slots[MOMENTUM])                                                               \
            rmsprop_##type(p, true, false);                                                        \
        else if (p->slots[AVERAGE])                                                                \
            rmsprop_##type(p, false, true);                                                        \
        else                                                                                       \
            rmsprop_##type(p, false, false);                                                       \
    }

RMSPROP(float, sqrtf)
RMSPROP(double, sqrt)
OPTIM_LOOPS(rmsprop_update, update)

#else

typedef struct rmsprop {
    ed_optimizer base;
    double rho, momentum, epsilon;
} rmsprop;

static void numbers(const ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double *numbers)
{
    (void)step;
    const rmsprop *r = (const rmsprop *)optimizer;
    numbers[RATE] = optim_float(optimizer->learning_rate);
    numbers[RHO] = optim_number(dtype, r->rho);
    numbers[ONE_MINUS_RHO] = optim_number(dtype, 1 - r->rho);
    numbers[MU] = optim_number(dtype, r->momentum);
    numbers[EPSILON] = optim_number(dtype, r->epsilon);
}

static const optim_class rmsprop_class = {
    .name = "rmsprop",
    .slots = {"velocity", "momentum", "average_gradient"},
    .together = 1,
    .lists = {"_velocities", "_momentums", "_average_gradients"},
    .legacy = {"rms", "momentum", "mg"},
    .constants = {{"rho", offsetof(rmsprop, rho)}, {"momentum", offsetof(rmsprop, momentum)}},
    .update = ISA_TABLE(rmsprop_update),
    .numbers = numbers};

ed_optimizer *ed_optimizer_rmsprop_with(const ed_optimizer_rmsprop_options *options)
{
    const ed_optimizer_rmsprop_options defaults = {
        .learning_rate = 0.001, .rho = 0.9, .epsilon = 1e-7};
    const ed_optimizer_rmsprop_options *o = options ? options : &defaults;
    if (!optim_within(&rmsprop_class, "rho", o->rho, 0, 1, true) ||
        !optim_within(&rmsprop_class, "momentum", o->momentum, 0, 1, true) ||
        !optim_within(&rmsprop_class, "epsilon", o->epsilon, 0, INFINITY, false))
        return NULL;
    unsigned slots =
        1u << VELOCITY | (o->momentum > 0 ? 1u << MOMENTUM : 0) | (o->centered ? 1u << AVERAGE : 0);
    rmsprop *r =
        optim_new(&rmsprop_class, sizeof *r, slots, o->learning_rate, o->weight_decay, o->clip);
    if (!r) return NULL;
    r->rho = o->rho;
    r->momentum = o->momentum;
    r->epsilon = o->epsilon;
    return scope_give(r);
}

#endif
