#include "optim/schedule.h"
#include <math.h>

MADE_PLAIN(schedule)

double ed_schedule_at(const ed_schedule *schedule, int64_t step)
{
    if (!schedule) return ed_fail(ED_INVALID_ARGUMENT, "schedule_at: schedule is NULL"), NAN;
    if (step < 0)
        return ed_fail(ED_INVALID_ARGUMENT, "schedule_at: step must be at least 0, got %lld",
                       (long long)step),
               NAN;
    const schedule_class *class = (const schedule_class *)schedule->made.kind;
    return class->function(schedule->made.options, (double)step);
}
