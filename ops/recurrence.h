/* The recurrence that gradients of cumulative ops are made of. */
#ifndef EDDY_OPS_RECURRENCE_H
#define EDDY_OPS_RECURRENCE_H

#include "ops/execute.h"

/* y[i] = a[i] y[i - 1] + b[i] along the axis, from 0 on; `reverse`: from the other end. */
ed_tensor *recurrence(ed_tensor *a, ed_tensor *b, int64_t axis, bool reverse);

/* x[i + 1] (back: x[i - 1]) along the axis, and `other` where there is none. */
ed_tensor *recurrence_neighbour(ed_tensor *x, int64_t axis, bool back, double other);

#endif
