#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM };
enum { RATE, MU, NESTEROV };

ISA_DECLARE(void, sgd_update, ed_dtype dtype, const optim_part *part);

#ifdef ISA

/* w -= g rate; with momentum v = v mu - g rate and w += v, or w += v mu - g rate (nesterov). */
#define SGD(type)                                                                                  \
    static void update_##type(const optim_part *p)                                                 \
    {                                                                                              \
        const type *restrict g = p->g;                                                             \
        type *restrict w = p->w, *restrict vs = p->slots[MOMENTUM];                                \
        const type rate = (type)p->numbers[RATE], mu = (type)p->numbers[MU];                       \
        if (!vs)                                                                                   \
            for (int64_t i = 0; i < p->n; i++) w[i] -= g[i] * rate;                                \
        else if (p->numbers[NESTEROV] != 0)                                                        \
            for (int64_t i = 0; i < p->n; i++) {                                                   \
                const type step = g[i] * rate;                                                     \
                vs[i] = vs[i] * mu - step;                                                         \
                w[i] += vs[i] * mu - step;                                                         \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < p->n; i++) {                                                   \
                vs[i] = vs[i] * mu - g[i] * rate;                                                  \
                w[i] += vs[i];                                                                     \
            }                                                                                      \
    }

SGD(float)
SGD(double)
OPTIM_LOOPS(sgd_update, update)

#else

static void sgd_numbers(const ed_optimizer *optimizer, ed_dtype dtype, int64_t step,
                        double *numbers)
{
    (void)dtype, (void)step;
    const ed_optimizer_sgd_options *s = optim_options(optimizer);
    numbers[RATE] = optim_float(s->learning_rate);
    numbers[MU] = optim_float(s->momentum);
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
