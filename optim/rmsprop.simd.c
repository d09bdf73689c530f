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

static void rmsprop_numbers(const ed_optimizer *optimizer, ed_dtype dtype, int64_t step,
                            double *numbers)
{
    (void)step;
    const ed_optimizer_rmsprop_options *r = optim_options(optimizer);
    numbers[RATE] = optim_float(r->learning_rate);
    numbers[RHO] = optim_number(dtype, r->rho);
    numbers[ONE_MINUS_RHO] = optim_number(dtype, 1 - r->rho);
    numbers[MU] = optim_number(dtype, r->momentum);
    numbers[EPSILON] = optim_number(dtype, r->epsilon);
}

static unsigned rmsprop_in_use(const void *options)
{
    const ed_optimizer_rmsprop_options *o = options;
    return 1u << VELOCITY | (o->momentum > 0 ? 1u << MOMENTUM : 0) |
           (o->centered ? 1u << AVERAGE : 0);
}

OPTIMIZER(rmsprop, RMSPROP, "RMSprop: gradients divided by the root of their running mean square",
          .slots = {"velocity", "momentum", "average_gradient"}, .together = 1,
          .lists = {"_velocities", "_momentums", "_average_gradients"},
          .legacy = {"rms", "momentum", "mg"}, .constants = {"rho", "momentum"},
          .update = ISA_TABLE(rmsprop_update), .in_use = rmsprop_in_use, .numbers = rmsprop_numbers)

#endif
