/*
 * What ops on images share.
 */
#ifndef EDDY_OPS_IMAGES_H
#define EDDY_OPS_IMAGES_H

#include "ops/execute.h"
#include "ops/ops.h"

/* Whether x is [height, width, channels] or [batch, height, width, channels]; an error if not. */
bool images_check(const ed_call *call, const ed_tensor *x);

/* The attributes of resize, for those that call its reference. */
#define RESIZE_ATTRS(FIELD, T)                                                                     \
    FIELD(T, INTS, size, ED_NO_LIST, ED_ANY, "height and width of the result")                     \
    ED_RESIZE_OPTIONS(FIELD, T)
ED_OPTIONS(resize_attrs, RESIZE_ATTRS);
#define RESIZED(...) ED_ATTRS(RESIZE_ATTRS, resize_attrs, __VA_ARGS__)

#endif
