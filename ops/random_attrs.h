/*
 * The attributes of the ops that draw, for those that call them with a state of their own.
 */
#ifndef EDDY_OPS_RANDOM_ATTRS_H
#define EDDY_OPS_RANDOM_ATTRS_H

#include "ops/ops.h"

/* The attribute of every op that draws. */
#define DRAW_ATTR(FIELD, T) FIELD(T, DRAW, draw, {0}, ED_ANY, "the random numbers")

#define SHAPE_ATTRS(FIELD, T)                                                                      \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_REQUIRED, "of the result")                                \
    DRAW_ATTR(FIELD, T)
#define UNIFORM_ATTRS(FIELD, T) ED_RANDOM_UNIFORM_VALUES(FIELD, T) SHAPE_ATTRS(FIELD, T)
#define NORMAL_ATTRS(FIELD, T)  ED_RANDOM_NORMAL_VALUES(FIELD, T) SHAPE_ATTRS(FIELD, T)
ED_OPTIONS(uniform_attrs, UNIFORM_ATTRS);
ED_OPTIONS(normal_attrs, NORMAL_ATTRS);

#define PERMUTATION_ATTRS(FIELD, T)                                                                \
    FIELD(T, INT, count, 0, ED_AT_LEAST(0), "number of numbers")                                   \
    DRAW_ATTR(FIELD, T)
ED_OPTIONS(permutation_attrs, PERMUTATION_ATTRS);

extern const ed_op ed_op_random_uniform, ed_op_random_normal, ed_op_random_truncated_normal,
    ed_op_random_permutation;

#endif
