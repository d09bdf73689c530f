#include "optim/optimizer.h"
#include <math.h>

enum { VELOCITY, MOMENTUM, AVERAGE };
enum { RATE, RHO, ONE_MINUS_RHO, MU, EPSILON };

ISA_DECLARE(void, rmsprop_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/rmsprop.typed.h"
#define TYPE f64
#include "optim/rmsprop.typed.h"
OPTIM_LOOPS(rmsprop_update)

#else

static void rmsprop_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                            double *numbers)
{
    (void)step;
    const ed_optimizer_rmsprop_options *r = optim_options(optimizer);
    numbers[RATE] = rate;
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
