/* What the library itself does with datasets. */
#ifndef EDDY_DATA_DATASET_H
#define EDDY_DATA_DATASET_H

#include "data/data.h"

/*
 * The same rows and batches at a position of its own: the beginning of the epoch in which the
 * dataset is. So a pass over all batches, such as an evaluation, does not disturb a loop that is
 * taking them. It belongs to the scope.
 */
ed_dataset *dataset_apart(const ed_dataset *set);

#endif
