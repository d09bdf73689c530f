#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM, NORM, VELOCITY = NORM };
enum {
    RATE,
    ONE_MINUS_BETA_1,
    BETA_2,
    ONE_MINUS_BETA_2,
    EPSILON,
    CORRECTION,
    OF_MEAN,
    OF_GRADIENT
};

ISA_DECLARE(void, adamax_update, ed_dtype dtype, const optim_part *part);
ISA_DECLARE(void, nadam_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

#define TYPE f32
#include "optim/adamax.typed.h"
#define TYPE f64
#include "optim/adamax.typed.h"
OPTIM_LOOPS(adamax_update)
OPTIM_LOOPS(nadam_update)

#else

static void adamax_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                           double *numbers)
{
    const ed_optimizer_adamax_options *a = optim_options(optimizer);
    numbers[RATE] = rate;
    numbers[ONE_MINUS_BETA_1] = optim_number(dtype, 1 - a->beta_1);
    numbers[BETA_2] = optim_number(dtype, a->beta_2);
    numbers[EPSILON] = optim_number(dtype, a->epsilon);
    numbers[CORRECTION] = optim_complement(dtype, a->beta_1, step);
}

OPTIMIZER(adamax, ADAMAX, "Adam with the largest gradient in place of the mean of squares",
          .slots = {"momentum", "norm"}, .together = 2, .lists = {"_m", "_u"}, .legacy = {"m", "v"},
          .constants = {"beta_1", "beta_2"}, .update = ISA_TABLE(adamax_update),
          .numbers = adamax_numbers)

/* u(t): how much of the mean is used in step t. */
static double nadam_share(double beta_1, int64_t t)
{
    return beta_1 * (1 - 0.5 * pow(0.96, (double)t));
}

/* u(1) ... u(steps), from the product of so many steps before. */
static double nadam_product(double beta_1, double product, int64_t before, int64_t steps)
{
    for (int64_t t = before + 1; t <= steps && product > 0; t++) product *= nadam_share(beta_1, t);
    return product;
}

static double nadam_scalar(const ed_optimizer *o, int64_t steps)
{
    const ed_optimizer_nadam_options *n = optim_options(o);
    return nadam_product(n->beta_1, 1, 0, steps);
}

static void nadam_numbers(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                          double *numbers)
{
    const ed_optimizer_nadam_options *n = optim_options(optimizer);
    ed_optimizer *o = optimizer;
    if (step < o->product_steps || !o->product_steps) {
        o->product_steps = 0;
        o->product = 1;
    }
    o->product = nadam_product(n->beta_1, o->product, o->product_steps, step);
    o->product_steps = step;
    const double now = nadam_share(n->beta_1, step), next = nadam_share(n->beta_1, step + 1);
    numbers[RATE] = rate;
    numbers[ONE_MINUS_BETA_1] = optim_number(dtype, 1 - optim_number(dtype, n->beta_1));
    numbers[ONE_MINUS_BETA_2] = optim_number(dtype, 1 - optim_number(dtype, n->beta_2));
    numbers[EPSILON] = optim_number(dtype, n->epsilon);
    numbers[CORRECTION] = optim_complement(dtype, n->beta_2, step);
    numbers[OF_MEAN] = next / (1 - o->product * next);
    numbers[OF_GRADIENT] = (1 - now) / (1 - o->product);
}

OPTIMIZER(nadam, NADAM, "Adam with Nesterov momentum", .slots = {"momentum", "velocity"},
          .together = 2, .lists = {"_momentums", "_velocities"}, .legacy = {"m", "v"},
          .constants = {"beta_1", "beta_2"}, .scalar = "_u_product", .scalar_at = nadam_scalar,
          .update = ISA_TABLE(nadam_update), .numbers = nadam_numbers)

#endif
