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

/*
 * A schedule that calls a function of the program, which gets the step and `user`; it is called
 * from the thread of the optimizer's step. `destroy`, if not NULL, is called with `user` when the
 * schedule is no more, not if this call fails. It has no JSON, so an optimizer with it has none
 * either. The function may fail by ed_fail, which the step then does.
 */
ed_schedule *ed_schedule_from(double (*function)(int64_t step, void *user), void *user,
                              void (*destroy)(void *user));

/* learning_rate at every step. */
#define ED_SCHEDULE_CONSTANT_OPTIONS(FIELD, T)                                                     \
    FIELD(T, FLOAT, learning_rate, 0, ED_AT_LEAST(0), "learning rate at every step")
ED_KIND(schedule, constant, ED_SCHEDULE_CONSTANT_OPTIONS, learning_rate);

/* initial_learning_rate decay_rate ^ (step / decay_steps); with staircase, step / decay_steps is
 * rounded down. */
#define ED_SCHEDULE_EXPONENTIAL_DECAY_OPTIONS(FIELD, T)                                            \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")           \
    FIELD(T, FLOAT, decay_steps, 0, ED_ABOVE(0), "steps in which the rate decays once")            \
    FIELD(T, FLOAT, decay_rate, 0, ED_AT_LEAST(0), "factor of each decay")                         \
    FIELD(T, BOOL, staircase, false, ED_ANY, "decay at whole intervals only")
ED_KIND(schedule, exponential_decay, ED_SCHEDULE_EXPONENTIAL_DECAY_OPTIONS, initial_learning_rate,
        decay_steps, decay_rate);

/* initial_learning_rate / (1 + decay_rate step / decay_steps); with staircase, step / decay_steps
 * is rounded down. */
#define ED_SCHEDULE_INVERSE_TIME_DECAY_OPTIONS(FIELD, T)                                           \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")           \
    FIELD(T, FLOAT, decay_steps, 0, ED_ABOVE(0), "steps of an interval")                           \
    FIELD(T, FLOAT, decay_rate, 0, ED_AT_LEAST(0), "what an interval adds to the divisor")         \
    FIELD(T, BOOL, staircase, false, ED_ANY, "decay at whole intervals only")
ED_KIND(schedule, inverse_time_decay, ED_SCHEDULE_INVERSE_TIME_DECAY_OPTIONS, initial_learning_rate,
        decay_steps, decay_rate);

/*
 * (initial_learning_rate - end_learning_rate) (1 - step / decay_steps) ^ power + end_learning_rate,
 * where the step stops at decay_steps; with cycle it goes on, and decay_steps is multiplied by the
 * smallest integer that makes it reach the step.
 */
#define ED_SCHEDULE_POLYNOMIAL_DECAY_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")           \
    FIELD(T, FLOAT, decay_steps, 0, ED_ABOVE(0), "steps to the end")                               \
    FIELD(T, FLOAT, end_learning_rate, 0.0001, ED_AT_LEAST(0), "learning rate at the end")         \
    FIELD(T, FLOAT, power, 1, ED_AT_LEAST(0), "of the polynomial; 1: linear")                      \
    FIELD(T, BOOL, cycle, false, ED_ANY, "begin again after the end")
ED_KIND(schedule, polynomial_decay, ED_SCHEDULE_POLYNOMIAL_DECAY_OPTIONS, initial_learning_rate,
        decay_steps);

/* values[i] for the first i with step <= boundaries[i], the last value beyond all:
 * ed_schedule_piecewise_constant_decay(ED_FLOATS(1000, 2000), ED_FLOATS(0.1, 0.01, 0.001)). */
#define ED_SCHEDULE_PIECEWISE_CONSTANT_DECAY_OPTIONS(FIELD, T)                                     \
    FIELD(T, FLOATS, boundaries, ED_NO_LIST, ED_AT_LEAST(0), "steps, ascending")                   \
    FIELD(T, FLOATS, values, ED_NO_LIST, ED_AT_LEAST(0), "learning rates, one more than boundaries")
ED_KIND(schedule, piecewise_constant_decay, ED_SCHEDULE_PIECEWISE_CONSTANT_DECAY_OPTIONS,
        boundaries, values);

/*
 * lr ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha), where lr is initial_learning_rate
 * and the step stops at decay_steps. With warmup_target, the rate first goes in warmup_steps from
 * initial_learning_rate to warmup_target, on a line, and then decays from there. Loshchilov and
 * Hutter, 2017.
 */
#define ED_SCHEDULE_COSINE_DECAY_OPTIONS(FIELD, T)                                                 \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")           \
    FIELD(T, FLOAT, decay_steps, 0, ED_ABOVE(0), "steps to the end of the decay")                  \
    FIELD(T, FLOAT, alpha, 0, ED_AT_LEAST(0), "share of the rate that is left at the end")         \
    FIELD(T, FLOAT, warmup_target, 0, ED_AT_LEAST(0), "rate after the warmup; 0: no warmup")       \
    FIELD(T, FLOAT, warmup_steps, 0, ED_AT_LEAST(0), "steps of the warmup")
ED_KIND(schedule, cosine_decay, ED_SCHEDULE_COSINE_DECAY_OPTIONS, initial_learning_rate,
        decay_steps);

/*
 * Cosine decays one after the other: each takes t_mul times as many steps as the one before, the
 * first first_decay_steps, and begins at m_mul times its rate. Rate i at the share f of its steps:
 * initial_learning_rate ((1 - alpha) m_mul^i (1 + cos(pi f)) / 2 + alpha). Loshchilov and Hutter,
 * 2017 (SGDR).
 */
#define ED_SCHEDULE_COSINE_DECAY_RESTARTS_OPTIONS(FIELD, T)                                        \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")           \
    FIELD(T, FLOAT, first_decay_steps, 0, ED_ABOVE(0), "steps of the first decay")                 \
    FIELD(T, FLOAT, t_mul, 2, ED_AT_LEAST(1), "factor of the number of steps")                     \
    FIELD(T, FLOAT, m_mul, 1, ED_AT_LEAST(0), "factor of the rate at which a decay begins")        \
    FIELD(T, FLOAT, alpha, 0, ED_AT_LEAST(0), "share of the rate that is left at the end")
ED_KIND(schedule, cosine_decay_restarts, ED_SCHEDULE_COSINE_DECAY_RESTARTS_OPTIONS,
        initial_learning_rate, first_decay_steps);

/*
 * One cycle, as PyTorch's OneCycleLR: from max_lr / div_factor up to max_lr in a share pct_start of
 * the steps, then down to that first rate / final_div_factor at the last step, total_steps - 1, and
 * so on from there. With three_phase it goes down to the first rate in as many steps as up, and
 * only then to the last one. Smith and Topin, 2018.
 */
#define ED_SCHEDULE_ONE_CYCLE_OPTIONS(FIELD, T)                                                    \
    FIELD(T, FLOAT, max_lr, 0, ED_AT_LEAST(0), "the largest learning rate")                        \
    FIELD(T, FLOAT, total_steps, 0, ED_ABOVE(1), "steps of the cycle")                             \
    FIELD(T, FLOAT, pct_start, 0.3, ED_BETWEEN(0, 1), "share of the steps in which it increases")  \
    FIELD(T, CHOICE, anneal_strategy, "cos", ED_ONE_OF("cos", "linear"), "form of each phase")     \
    FIELD(T, FLOAT, div_factor, 25, ED_ABOVE(0), "max_lr / the first rate")                        \
    FIELD(T, FLOAT, final_div_factor, 10000, ED_ABOVE(0), "the first rate / the last rate")        \
    FIELD(T, BOOL, three_phase, false, ED_ANY,                                                     \
          "a phase of its own for what is below the first rate")
ED_KIND(schedule, one_cycle, ED_SCHEDULE_ONE_CYCLE_OPTIONS, max_lr, total_steps);

/* On a line from initial_learning_rate, at step 0, to the other schedule's first rate, at
 * warmup_steps; then that schedule, whose step 0 is warmup_steps. */
#define ED_SCHEDULE_LINEAR_WARMUP_OPTIONS(FIELD, T)                                                \
    FIELD(T, SCHEDULE, schedule, NULL, ED_ANY, "the schedule after the warmup")                    \
    FIELD(T, INT, warmup_steps, 0, ED_AT_LEAST(1), "steps of the warmup")                          \
    FIELD(T, FLOAT, initial_learning_rate, 0, ED_AT_LEAST(0), "learning rate at step 0")
ED_KIND(schedule, linear_warmup, ED_SCHEDULE_LINEAR_WARMUP_OPTIONS, schedule, warmup_steps);

#pragma GCC visibility pop
#endif
