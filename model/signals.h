/* SIGINT and SIGTERM while a training runs that wants to be saved. */
#ifndef EDDY_MODEL_SIGNALS_H
#define EDDY_MODEL_SIGNALS_H

#include <stdbool.h>

/* Notes the signals from here on. A second one of a kind ends the process, as without. Calls nest,
 * in any threads. */
void signals_catch(void);

/* The handlers from before; what was noted is forgotten. */
void signals_release(void);

/* Whether one has come. */
bool signals_came(void);

#endif
