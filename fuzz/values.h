/* All that a restore may change. */
#ifndef EDDY_FUZZ_VALUES_H
#define EDDY_FUZZ_VALUES_H

#include "io/checksum.h"
#include "train/train.h"

/* A digest of all values of a checkpoint's objects as they are, save counter and all. */
io_digest fuzz_values(const ed_checkpoint *checkpoint);

#endif
