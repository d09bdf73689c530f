/* A line in the terminal that tells how an epoch of training goes. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    char title[32];
    int64_t steps, step, samples;
    double began, shown; /* seconds */
    bool terminal;
} progress;

/* Begins an epoch of so many steps. */
progress progress_begin(const char *title, int64_t steps);

/*
 * One step with so many samples is done; loss and accuracy are the means so far. On a terminal the
 * line is drawn again in place, ten times a second at most; elsewhere nothing is printed before the
 * end.
 */
void progress_step(progress *p, int64_t samples, double loss, double accuracy);

/* The epoch's last word, a line that stays. */
void progress_end(progress *p, double loss, double accuracy);

#endif
