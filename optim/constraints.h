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

/*
 * Constraints on the 2-norm of each vector along `axis`, by default the first one, which are the
 * weights of one unit of a dense layer's kernel [in, units]. For a convolution's kernel
 * [height, width, in, filters] it is ED_AXES(0, 1, 2).
 *
 * max_norm: w min(norm, max_value) / (norm + 1e-7). Srivastava et al., 2014.
 */
#define ED_CONSTRAINT_MAX_NORM_OPTIONS(FIELD, T)                                                   \
    FIELD(T, FLOAT, max_value, 2, ED_AT_LEAST(0), "the largest norm")                              \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "axes of each vector; default: the first")
ED_KIND(constraint, max_norm, ED_CONSTRAINT_MAX_NORM_OPTIONS, max_value);

/* w / (norm + 1e-7). */
#define ED_CONSTRAINT_UNIT_NORM_OPTIONS(FIELD, T)                                                  \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "axes of each vector; default: the first")
ED_KIND(constraint, unit_norm, ED_CONSTRAINT_UNIT_NORM_OPTIONS);

/* w (rate clip(norm, min_value, max_value) + (1 - rate) norm) / (norm + 1e-7). */
#define ED_CONSTRAINT_MIN_MAX_NORM_OPTIONS(FIELD, T)                                               \
    FIELD(T, FLOAT, min_value, 0, ED_AT_LEAST(0), "the smallest norm")                             \
    FIELD(T, FLOAT, max_value, 1, ED_AT_LEAST(0), "the largest norm")                              \
    FIELD(T, FLOAT, rate, 1, ED_BETWEEN(0, 1), "share of the way that each step goes")             \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "axes of each vector; default: the first")
ED_KIND(constraint, min_max_norm, ED_CONSTRAINT_MIN_MAX_NORM_OPTIONS, min_value, max_value);

#pragma GCC visibility pop
#endif
