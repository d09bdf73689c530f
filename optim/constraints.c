#include "optim/constraint.h"
#include "ops/ops.h"

CONSTRAINT(non_neg, NON_NEG, 0, "max(w, 0)")
{
    (void)options;
    return ed_maximum(w, 0.0);
}
