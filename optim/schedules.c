#include "optim/schedule.h"
#include <math.h>
#include <string.h>

SCHEDULE(constant, CONSTANT, 1, "the same rate at every step")
{
    (void)step;
    return ((const constant_options *)options)->learning_rate;
}

SCHEDULE(exponential_decay, EXPONENTIAL_DECAY, 3, "initial rate times rate ^ (step / steps)")
{
    const exponential_decay_options *o = options;
    const double decays = step / o->decay_steps;
    return o->initial_learning_rate * pow(o->decay_rate, o->staircase ? floor(decays) : decays);
}

SCHEDULE(inverse_time_decay, INVERSE_TIME_DECAY, 3, "initial rate / (1 + rate step / steps)")
{
    const inverse_time_decay_options *o = options;
    const double decays = step / o->decay_steps;
    return o->initial_learning_rate / (1 + o->decay_rate * (o->staircase ? floor(decays) : decays));
}

SCHEDULE(polynomial_decay, POLYNOMIAL_DECAY, 2, "initial rate to end rate by a power of the step")
{
    const polynomial_decay_options *o = options;
    double steps = o->decay_steps;
    if (o->cycle)
        steps *= fmax(1, ceil(step / steps));
    else
        step = fmin(step, steps);
    return (o->initial_learning_rate - o->end_learning_rate) * pow(1 - step / steps, o->power) +
           o->end_learning_rate;
}

SCHEDULE(piecewise_constant_decay, PIECEWISE_CONSTANT_DECAY, 2, "a rate for each range of steps")
{
    const piecewise_constant_decay_options *o = options;
    if (!o->boundaries.values || o->values.count != o->boundaries.count + 1)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "piecewise_constant_decay: values must have one number more than "
                       "boundaries, got %lld and %lld",
                       (long long)o->values.count, (long long)o->boundaries.count),
               NAN;
    for (int64_t i = 1; i < o->boundaries.count; i++)
        if (o->boundaries.values[i] < o->boundaries.values[i - 1])
            return ed_fail(ED_INVALID_ARGUMENT,
                           "piecewise_constant_decay: boundaries must ascend, %g follows %g",
                           o->boundaries.values[i], o->boundaries.values[i - 1]),
                   NAN;
    int64_t i = 0;
    while (i < o->boundaries.count && step > o->boundaries.values[i]) i++;
    return o->values.values[i];
}

/* From 1 at share 0 to alpha at share 1. */
static double cosine(double share, double factor, double alpha)
{
    return (1 - alpha) * (0.5 * factor * (1 + cos(M_PI * share))) + alpha;
}

SCHEDULE(cosine_decay, COSINE_DECAY, 2, "initial rate to 0 or a share of it by half a cosine")
{
    const cosine_decay_options *o = options;
    const bool warms = o->warmup_target > 0;
    const double warmup = warms ? o->warmup_steps : 0, first = o->initial_learning_rate;
    if (step < warmup) return first + (o->warmup_target - first) * (step / warmup);
    return (warms ? o->warmup_target : first) *
           cosine(fmin(step - warmup, o->decay_steps) / o->decay_steps, 1, o->alpha);
}

SCHEDULE(cosine_decay_restarts, COSINE_DECAY_RESTARTS, 2, "cosine decays one after the other")
{
    const cosine_decay_restarts_options *o = options;
    double share = step / o->first_decay_steps, i;
    if (o->t_mul == 1) {
        i = floor(share);
        share -= i;
    } else {
        i = floor(log(1 - share * (1 - o->t_mul)) / log(o->t_mul));
        share = (share - (1 - pow(o->t_mul, i)) / (1 - o->t_mul)) / pow(o->t_mul, i);
    }
    return o->initial_learning_rate * cosine(share, pow(o->m_mul, i), o->alpha);
}

/* A phase of a cycle, from one rate to another at the step `end`. */
typedef struct phase {
    double end, from, to;
} phase;

static double within_phase(const phase *p, double begin, double step, bool linear)
{
    const double share = p->end > begin ? fmin(1, (step - begin) / (p->end - begin)) : 1;
    return linear ? p->from + (p->to - p->from) * share
                  : p->to + (p->from - p->to) * 0.5 * (1 + cos(M_PI * share));
}

SCHEDULE(one_cycle, ONE_CYCLE, 2, "up to the largest rate and down to a small one")
{
    const one_cycle_options *o = options;
    const double rise = o->pct_start * o->total_steps, top = o->max_lr, first = top / o->div_factor,
                 last = first / o->final_div_factor;
    const phase two[] = {{rise - 1, first, top}, {o->total_steps - 1, top, last}};
    const phase three[] = {
        {rise - 1, first, top}, {2 * rise - 2, top, first}, {o->total_steps - 1, first, last}};
    const phase *p = o->three_phase ? three : two;
    double begin = 0;
    for (int left = o->three_phase ? 2 : 1; left && step > p->end; left--) begin = p++->end;
    return within_phase(p, begin, step, !strcmp(o->anneal_strategy, "linear"));
}

SCHEDULE(linear_warmup, LINEAR_WARMUP, 2, "up to another schedule's first rate, then that one")
{
    const linear_warmup_options *o = options;
    if (!o->schedule) return ed_fail(ED_INVALID_ARGUMENT, "linear_warmup: schedule is NULL"), NAN;
    const double steps = (double)o->warmup_steps;
    if (step >= steps) return ed_schedule_at(o->schedule, (int64_t)fmin(step - steps, 0x1p62));
    const double first = o->initial_learning_rate;
    return first + (ed_schedule_at(o->schedule, 0) - first) * (step / steps);
}
