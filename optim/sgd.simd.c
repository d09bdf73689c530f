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

typedef struct sgd {
    ed_optimizer base;
    double momentum;
    bool nesterov;
} sgd;

static void numbers(const ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double *numbers)
{
    (void)dtype, (void)step;
    const sgd *s = (const sgd *)optimizer;
    numbers[RATE] = optim_float(optimizer->learning_rate);
    numbers[MU] = optim_float(s->momentum);
    numbers[NESTEROV] = s->nesterov;
}

static const optim_class sgd_class = {.name = "sgd",
                                      .slots = {"momentum"},
                                      .together = 1,
                                      .lists = {"momentums"},
                                      .legacy = {"momentum"},
                                      .constants = {{"momentum", offsetof(sgd, momentum)}},
                                      .update = ISA_TABLE(sgd_update),
                                      .numbers = numbers};

ed_optimizer *ed_optimizer_sgd_with(const ed_optimizer_sgd_options *options)
{
    const ed_optimizer_sgd_options defaults = {.learning_rate = 0.01};
    const ed_optimizer_sgd_options *o = options ? options : &defaults;
    if (!optim_within(&sgd_class, "momentum", o->momentum, 0, 1, true)) return NULL;
    sgd *s = optim_new(&sgd_class, sizeof *s, o->momentum > 0 ? 1u << MOMENTUM : 0,
                       o->learning_rate, o->weight_decay, o->clip);
    if (!s) return NULL;
    s->momentum = o->momentum;
    s->nesterov = o->nesterov;
    return scope_give(s);
}

#endif
