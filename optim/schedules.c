#include "optim/schedule.h"
#include <math.h>

SCHEDULE(exponential_decay, EXPONENTIAL_DECAY, 3, "initial rate times rate ^ (step / steps)")
{
    const exponential_decay_options *o = options;
    const double decays = step / o->decay_steps;
    return o->initial_learning_rate * pow(o->decay_rate, o->staircase ? floor(decays) : decays);
}
