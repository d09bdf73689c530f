#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM, VELOCITY, VELOCITY_HAT };
enum { ALPHA, ONE_MINUS_BETA_1, ONE_MINUS_BETA_2, EPSILON };

ISA_DECLARE(void, adam_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/adam.typed.h"
#define TYPE f64
#include "optim/adam.typed.h"
OPTIM_LOOPS(adam_update)

#else

/* alpha is computed in the variables' dtype, from numbers rounded to it. */
static void adam_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                         double *numbers)
{
    const ed_optimizer_adam_options *a = optim_options(optimizer); /* adamw's list is the same */
    const double beta_1 = optim_number(dtype, a->beta_1), beta_2 = optim_number(dtype, a->beta_2);
    if (dtype == ED_FLOAT32) {
        float correction_1 = 1 - powf((float)beta_1, (float)step);
        float correction_2 = 1 - powf((float)beta_2, (float)step);
        numbers[ALPHA] = (float)rate * sqrtf(correction_2) / correction_1;
    } else
        numbers[ALPHA] =
            rate * sqrt(1 - pow(beta_2, (double)step)) / (1 - pow(beta_1, (double)step));
    numbers[ONE_MINUS_BETA_1] = optim_number(dtype, 1 - a->beta_1);
    numbers[ONE_MINUS_BETA_2] = optim_number(dtype, 1 - a->beta_2);
    numbers[EPSILON] = optim_number(dtype, a->epsilon);
}

/* Without amsgrad there are no maxima. */
static unsigned adam_in_use(const void *options)
{
    const ed_optimizer_adam_options *o = options;
    return 1u << MOMENTUM | 1u << VELOCITY | (o->amsgrad ? 1u << VELOCITY_HAT : 0);
}

OPTIMIZER(adam, ADAM, "Adam: steps by running means of gradients and of their squares",
          .slots = {"momentum", "velocity", "velocity_hat"}, .together = 2,
          .lists = {"_momentums", "_velocities", "_velocity_hats"}, .legacy = {"m", "v", "vhat"},
          .constants = {"beta_1", "beta_2"}, .update = ISA_TABLE(adam_update),
          .in_use = adam_in_use, .numbers = adam_numbers)

OPTIMIZER(adamw, ADAMW, "Adam with weight decay", .slots = {"momentum", "velocity", "velocity_hat"},
          .together = 2, .lists = {"_momentums", "_velocities", "_velocity_hats"},
          .legacy = {"m", "v", "vhat"}, .constants = {"beta_1", "beta_2"},
          .update = ISA_TABLE(adam_update), .in_use = adam_in_use, .numbers = adam_numbers)

#endif
