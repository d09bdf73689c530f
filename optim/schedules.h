/*
 * Schedules: a learning rate as a function of the step, as in Keras (optim/schedules.c).
 *
 *     ed_schedule *s = ed_schedule_exponential_decay(0.1, 1000, 0.96, .staircase = true);
 *     ed_optimizer *sgd = ed_optimizer_sgd(.schedule = s);
 */
#ifndef EDDY_OPTIM_SCHEDULES_H
#define EDDY_OPTIM_SCHEDULES_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A function of the step. */
typedef struct ed_schedule ed_schedule;

/* The learning rate at the step, 0 being the first; NaN, with an error, for NULL or a negative
 * step. */
double ed_schedule_at(const ed_schedule *schedule, int64_t step);

/* initial_learning_rate decay_rate ^ (step / decay_steps); with staircase, step / decay_steps is
 * rounded down. */
#define ED_SCHEDULE_EXPONENTIAL_DECAY_OPTIONS(FIELD, T)                                            \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")           \
    FIELD(T, FLOAT, decay_steps, 0, ED_ABOVE(0), "steps in which the rate decays once")            \
    FIELD(T, FLOAT, decay_rate, 0, ED_AT_LEAST(0), "factor of each decay")                         \
    FIELD(T, BOOL, staircase, false, ED_ANY, "decay at whole intervals only")
ED_KIND(schedule, exponential_decay, ED_SCHEDULE_EXPONENTIAL_DECAY_OPTIONS, initial_learning_rate,
        decay_steps, decay_rate);

#pragma GCC visibility pop
#endif
