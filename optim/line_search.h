/* How far to go along a direction: a search for a step that meets the strong Wolfe conditions. */
#ifndef EDDY_OPTIM_LINE_SEARCH_H
#define EDDY_OPTIM_LINE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

/* A point of the line: the step, the function there, and its slope along the line. */
typedef struct line_point {
    double t, f, slope;
    double *gradient; /* that the slope is made of; the search moves it along with the point */
} line_point;

typedef struct line_search {
    /* Fills f, slope and gradient of a point; false ends the search. */
    bool (*evaluate)(void *user, line_point *at);
    void *user;
    double longest;            /* the direction's largest component */
    double least;              /* changes of a component that are no longer looked for */
    int64_t evaluations, most; /* so far; allowed */
} line_search;

/*
 * From `from` (t = 0, slope < 0) to *to, whose t is the first step tried and in the end the one to
 * take, 0 if none is good. `spare` are two points with nothing but a gradient; that of the first is
 * a copy of from's. False if evaluate fails.
 */
bool line_search_run(line_search *s, const line_point *from, line_point *to, line_point *spare);

#endif
