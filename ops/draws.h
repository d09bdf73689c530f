/*
 * The states that a thread's random ops draw, noted while something runs that has to run again
 * alike (ed_recompute), and then given out again in the same order.
 */
#ifndef EDDY_OPS_DRAWS_H
#define EDDY_OPS_DRAWS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ops_draws ops_draws;

/* An empty recording; NULL without memory. Freeing NULL is allowed. */
ops_draws *ops_draws_new(void);
void ops_draws_free(ops_draws *draws);

/* From now on the thread's draws are noted in / taken from `draws`; returns what was in force
 * before, for ops_draws_end. */
ops_draws *ops_draws_record(ops_draws *draws);
ops_draws *ops_draws_replay(ops_draws *draws);
void ops_draws_end(ops_draws *before);

/* For whoever draws: true if the state comes from a replay, else it is to be drawn; either way it
 * is noted then. */
bool ops_draws_take(uint64_t state[3]);
bool ops_draws_note(const uint64_t state[3]);

#endif
