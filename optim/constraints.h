/*
 * Constraints on variables, as in Keras: what an optimizer's step has made of a variable is
 * replaced by the nearest value that is allowed (optim/constraints.c).
 *
 *     ed_layer *dense = ed_layer_dense(10, .kernel_constraint = ed_constraint_max_norm(2));
 */
#ifndef EDDY_OPTIM_CONSTRAINTS_H
#define EDDY_OPTIM_CONSTRAINTS_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A function of a variable's value. */
typedef struct ed_constraint ed_constraint;

/* The value w after the constraint, of the same shape; w is float32 or float64. */
ed_tensor *ed_constrain(ed_constraint *constraint, ed_tensor *w);

/* Optimizers apply the constraint to the variable after each of their steps; NULL: none. The
 * variable holds a reference. */
bool ed_variable_set_constraint(ed_tensor *variable, ed_constraint *constraint);

/* The variable's constraint; NULL, without an error, if it has none. */
ed_constraint *ed_variable_constraint(const ed_tensor *variable);

/* max(w, 0) for each element. */
#define ED_CONSTRAINT_NON_NEG_OPTIONS(FIELD, T)
ED_KIND(constraint, non_neg, ED_CONSTRAINT_NON_NEG_OPTIONS);

#pragma GCC visibility pop
#endif
