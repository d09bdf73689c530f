/*
 * Counting.
 */
#ifndef EDDY_OPS_BINS_H
#define EDDY_OPS_BINS_H

#include "ops/ops.h"

/* How often each of 0..n-1 is among the ids, int64 [n]; others are not counted. */
ed_tensor *bins_count(ed_tensor *ids, int64_t n);

#endif
