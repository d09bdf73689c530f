#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM };
enum { RATE, MU, NESTEROV };

ISA_DECLARE(void, sgd_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/sgd.typed.h"
#define TYPE f64
#include "optim/sgd.typed.h"
OPTIM_LOOPS(sgd_update)

#else

static void sgd_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                        double *numbers)
{
    (void)step;
    const ed_optimizer_sgd_options *s = optim_options(optimizer);
    numbers[RATE] = rate;
    numbers[MU] = optim_number(dtype, s->momentum);
    numbers[NESTEROV] = s->nesterov;
}

static unsigned sgd_in_use(const void *options)
{
    return ((const ed_optimizer_sgd_options *)options)->momentum > 0 ? 1u << MOMENTUM : 0;
}

OPTIMIZER(sgd, SGD, "gradient descent, with momentum if asked", .slots = {"momentum"},
          .together = 1, .lists = {"momentums"}, .legacy = {"momentum"}, .constants = {"momentum"},
          .update = ISA_TABLE(sgd_update), .in_use = sgd_in_use, .numbers = sgd_numbers)

#endif
