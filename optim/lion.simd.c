#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM };
enum { RATE, BETA_1, ONE_MINUS_BETA_1, BETA_2, ONE_MINUS_BETA_2 };

ISA_DECLARE(void, lion_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/lion.typed.h"
#define TYPE f64
#include "optim/lion.typed.h"
OPTIM_LOOPS(lion_update)

#else

static void lion_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                         double *numbers)
{
    (void)step;
    const ed_optimizer_lion_options *l = optim_options(optimizer);
    const double beta_1 = optim_number(dtype, l->beta_1), beta_2 = optim_number(dtype, l->beta_2);
    numbers[RATE] = rate;
    numbers[BETA_1] = beta_1;
    numbers[ONE_MINUS_BETA_1] = optim_number(dtype, 1 - beta_1);
    numbers[BETA_2] = beta_2;
    numbers[ONE_MINUS_BETA_2] = optim_number(dtype, 1 - beta_2);
}

OPTIMIZER(lion, LION, "Lion: steps of one size, by the sign of a mean of gradients",
          .slots = {"momentum"}, .together = 1, .lists = {"_momentums"},
          .update = ISA_TABLE(lion_update), .numbers = lion_numbers)

#endif
