#include "optim/optimizer.h"
#include <math.h>

enum { ACCUMULATOR, LINEAR };
enum { RATE, POWER, L1, TWICE_L2, TWICE_SHRINKAGE };

ISA_DECLARE(void, ftrl_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/ftrl.typed.h"
#define TYPE f64
#include "optim/ftrl.typed.h"
OPTIM_LOOPS(ftrl_update)

#else

static void ftrl_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                         double *numbers)
{
    (void)step;
    const ed_optimizer_ftrl_options *f = optim_options(optimizer);
    numbers[RATE] = rate;
    numbers[POWER] = optim_number(dtype, -f->learning_rate_power);
    numbers[L1] = optim_number(dtype, f->l1_regularization_strength);
    numbers[TWICE_L2] =
        optim_number(dtype, 2 * (f->l2_regularization_strength + f->beta / (2 * rate)));
    numbers[TWICE_SHRINKAGE] = optim_number(dtype, 2 * f->l2_shrinkage_regularization_strength);
}

static ed_tensor *ftrl_initial(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    const ed_optimizer_ftrl_options *f = optim_options(o);
    return optim_full(v, slot == ACCUMULATOR ? f->initial_accumulator_value : 0);
}

OPTIMIZER(ftrl, FTRL, "follow the regularized leader: sparse weights",
          .slots = {"accumulator", "linear"}, .together = 2, .lists = {"_accumulators", "_linears"},
          .legacy = {"accumulator", "linear"},
          .constants = {"beta", "l1_regularization_strength", "l2_regularization_strength",
                        "learning_rate_power"},
          .initial = ftrl_initial, .update = ISA_TABLE(ftrl_update), .numbers = ftrl_numbers)

#endif
