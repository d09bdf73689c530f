/*
 * The ways in which C calls an op: by the dispatcher, and by its public function, on a tape each.
 */
#ifndef EDDY_TESTS_WAYS_H
#define EDDY_TESTS_WAYS_H

#include "tests/checks.h"

/* Results that are compared; an op of many outputs may have more. */
enum { WAY_RESULTS = 8 };

/* What a call gave: its results, and of the floats among them the gradients by the operands, for
 * the gradients `seed` of the results. */
typedef struct answer {
    int n;
    ed_tensor *y[WAY_RESULTS], *seed[WAY_RESULTS];
    ed_tensor *dx[WAY_RESULTS][ED_MAX_OPERANDS];
} answer;

/* Calls the op and asks for the gradients of results that `asked` has seeds for. false if the op
 * can't be called so; a call that fails leaves an error. */
typedef bool way(const trial *t, const answer *asked, answer *got);

/* By the dispatcher; without `asked`, with seeds for all float results. */
way way_of_dispatch;

/* By its public function. */
way way_of_function;

/* Whether the trial has a value for the attribute that is not the default. */
bool way_gives(const trial *t, const ed_field *attribute);

#endif
