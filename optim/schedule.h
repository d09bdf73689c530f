/* The structure of schedules: a kind is one function (schedules.c). */
#ifndef EDDY_OPTIM_SCHEDULE_H
#define EDDY_OPTIM_SCHEDULE_H

#include "optim/optim.h"
#include "tensor/schema_core.h"

/* A kind of schedule; the step is not negative. For options that do not go together the function
 * sets an error and returns NaN: it is called when a schedule is made. */
typedef struct schedule_class {
    ed_kind kind;
    double (*function)(const void *options, double step);
} schedule_class;

/* Creates a schedule: kind.make of all kinds. */
void *schedule_make(const ed_kind *kind, const void *options);

/* The definition of a kind from its list of options; the first `needed` are required arguments. The
 * body that follows is that of the function. */
#define SCHEDULE(symbol, SYMBOL, needed, text)                                                     \
    FUNCTION_KIND(schedule, symbol, ED_SCHEDULE_##SYMBOL##_OPTIONS, needed, text, double,          \
                  double step)

#endif
