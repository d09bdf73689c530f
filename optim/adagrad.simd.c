#include "optim/optimizer.h"
#include <math.h>

enum { GRADS, DELTAS };
enum { RATE, RHO, ONE_MINUS_RHO, EPSILON };

ISA_DECLARE(void, adagrad_update, ed_dtype dtype, const optim_part *part);
ISA_DECLARE(void, adadelta_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/adagrad.typed.h"
#define TYPE f64
#include "optim/adagrad.typed.h"
OPTIM_LOOPS(adagrad_update)
OPTIM_LOOPS(adadelta_update)

#else

static void adagrad_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                            double *numbers)
{
    (void)step;
    const ed_optimizer_adagrad_options *a = optim_options(optimizer);
    numbers[RATE] = rate;
    numbers[EPSILON] = optim_number(dtype, a->epsilon);
}

static ed_tensor *adagrad_initial(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    (void)slot;
    const ed_optimizer_adagrad_options *a = optim_options(o);
    return optim_full(v, a->initial_accumulator_value);
}

OPTIMIZER(adagrad, ADAGRAD, "Adagrad: gradients divided by the root of the sum of their squares",
          .slots = {"accumulator"}, .together = 1, .lists = {"_accumulators"},
          .legacy = {"accumulator"}, .initial = adagrad_initial,
          .update = ISA_TABLE(adagrad_update), .numbers = adagrad_numbers)

static void adadelta_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                             double *numbers)
{
    (void)step;
    const ed_optimizer_adadelta_options *a = optim_options(optimizer);
    numbers[RATE] = rate;
    numbers[RHO] = optim_number(dtype, a->rho);
    numbers[ONE_MINUS_RHO] = optim_number(dtype, 1 - a->rho);
    numbers[EPSILON] = optim_number(dtype, a->epsilon);
}

OPTIMIZER(adadelta, ADADELTA, "Adadelta: steps as large as those before were",
          .slots = {"accumulated_grad", "accumulated_delta_var"}, .together = 2,
          .lists = {"_accumulated_grads", "_accumulated_delta_vars"},
          .legacy = {"accum_grad", "accum_var"}, .constants = {"rho"},
          .update = ISA_TABLE(adadelta_update), .numbers = adadelta_numbers)

#endif
