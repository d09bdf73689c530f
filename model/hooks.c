#include "model/model_core.h"
#include <stdio.h>

/* Callbacks that count steps and seconds; also for loops of a program's own. */

CALLBACK(stop_at_step, STOP_AT_STEP, 1, "ends a training after so many batches")
{
    const stop_at_step_options *o = options;
    (void)state;
    if (training->event == ED_TRAIN_BEGIN && training->global_step >= o->last_step)
        training->stop = true;
    if (training->event == ED_BATCH_END && training->global_step >= o->last_step)
        training->stop = true;
    return true;
}

typedef struct time_limit_state {
    double end;
} time_limit_state;

CALLBACK(time_limit, TIME_LIMIT, 1, "ends a training, so that it can go on, after so many seconds",
         .state_size = sizeof(time_limit_state))
{
    const time_limit_options *o = options;
    time_limit_state *s = state;
    if (training->event == ED_TRAIN_BEGIN) s->end = progress_clock() + o->seconds;
    if (training->event == ED_BATCH_END && progress_clock() >= s->end && !training->stop)
        training->stop = training->unfinished = true;
    return true;
}

typedef struct step_logger_state {
    double time;
    int64_t step; /* of the last line */
} step_logger_state;

static void print_line(step_logger_state *s, const ed_training *t, double time)
{
    fprintf(stderr, "step %lld", (long long)t->global_step);
    for (int64_t i = 0; i < t->count; i++) fprintf(stderr, "  %s %.4g", t->names[i], t->values[i]);
    if (time > s->time)
        fprintf(stderr, "  %.4g steps/s", (double)(t->global_step - s->step) / (time - s->time));
    fprintf(stderr, "\n");
    *s = (step_logger_state){time, t->global_step};
}

CALLBACK(step_logger, STEP_LOGGER, 0, "writes the values and the speed every so many batches",
         .state_size = sizeof(step_logger_state))
{
    const step_logger_options *o = options;
    step_logger_state *s = state;
    if (training->event == ED_BATCH_BEGIN && s->time == 0)
        *s = (step_logger_state){progress_clock(), training->global_step};
    if (training->event == ED_TRAIN_BEGIN) *s = (step_logger_state){.time = 0};
    if (training->event != ED_BATCH_END) return true;
    const double time = progress_clock();
    if (o->every_n_steps ? training->global_step % o->every_n_steps == 0
                         : time - s->time >= o->every_n_secs)
        print_line(s, training, time);
    return true;
}
