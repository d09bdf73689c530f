#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM, VELOCITY };
enum { RATE, BETA_1, ONE_MINUS_BETA_1, ONE_MINUS_BETA_2, EPSILON, CORRECTION, SHARE };

ISA_DECLARE(void, schedule_free_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/schedule_free.typed.h"
#define TYPE f64
#include "optim/schedule_free.typed.h"
OPTIM_LOOPS(schedule_free_update)

#else

static void schedule_free_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step,
                                  double rate, double *numbers)
{
    const ed_optimizer_schedule_free_adamw_options *s = optim_options(optimizer);
    const double warm = s->warmup_steps ? fmin((double)step / (double)s->warmup_steps, 1) : 1;
    const double beta_1 = optim_number(dtype, s->beta_1), beta_2 = optim_number(dtype, s->beta_2);
    numbers[RATE] = optim_number(dtype, rate * warm);
    numbers[BETA_1] = beta_1;
    numbers[ONE_MINUS_BETA_1] = optim_number(dtype, 1 - beta_1);
    numbers[ONE_MINUS_BETA_2] = optim_number(dtype, 1 - beta_2);
    numbers[EPSILON] = optim_number(dtype, s->epsilon);
    numbers[CORRECTION] = optim_complement(dtype, s->beta_2, step);
    numbers[SHARE] = 1 / (double)step;
}

/* z begins as the variable. */
static ed_tensor *schedule_free_initial(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    (void)o;
    return slot == MOMENTUM ? tensor_snapshot(tensor_value(v)) : optim_full(v, 0);
}

OPTIMIZER(schedule_free_adamw, SCHEDULE_FREE_ADAMW, "AdamW that averages in place of a schedule",
          .slots = {"momentum", "velocity"}, .together = 2, .lists = {"_momentums", "_velocities"},
          .initial = schedule_free_initial, .update = ISA_TABLE(schedule_free_update),
          .numbers = schedule_free_numbers)

#endif
