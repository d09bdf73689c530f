/*
 * Where draws get their state, for the floors that draw by other means than the ops of random.c.
 */
#ifndef EDDY_OPS_GENERATOR_H
#define EDDY_OPS_GENERATOR_H

#include "ops/kernels/philox.h"
#include "ops/ops.h"

/* Fills in the state for a draw of n elements from the generator, which moves on. Thread-safe. */
void random_draw(ed_draw *draw, int64_t n);

/* A seed from the process's source: one draw. */
uint64_t random_seed(void);

/* The Philox state of an attribute. */
philox random_philox(const uint64_t state[3]);

#endif
