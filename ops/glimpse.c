/* extract_glimpse: a window at a place of each image; a composition of pad and gather. */
#include "ops/execute.h"
#include "ops/ops.h"
#include <math.h>

#define GLIMPSE_ATTRS(FIELD, T)                                                                    \
    ED_EXTRACT_GLIMPSE_OPTIONS(FIELD, T)                                                           \
    FIELD(T, INTS, size, ED_NO_LIST, ED_REQUIRED, "[height, width] of the windows")
ED_OPTIONS(glimpse_attrs, GLIMPSE_ATTRS);

static bool check_glimpse(const ed_call *call)
{
    const ed_ints size = ((const glimpse_attrs *)call->attrs)->size;
    const ed_ints x = ed_shape(call->inputs[0]), offsets = ed_shape(call->inputs[1]);
    if (!size.values || size.count != 2 || size.values[0] < 1 || size.values[1] < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "size must be two sizes >= 1, got %s",
                            text_of_ints(size.values, size.values ? size.count : 0).s);
    if (x.count == 4 && offsets.count == 2 && offsets.values[0] == x.values[0] &&
        offsets.values[1] == 2)
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "x must be [batch, height, width, channels] and offsets [batch, 2], got "
                        "%s and %s",
                        text_of_ints(x.values, x.count).s,
                        text_of_ints(offsets.values, offsets.count).s);
}

/* Where the windows begin along an image's axis, [batch]: from -size to extent. */
static ed_tensor *begins(const glimpse_attrs *o, ed_tensor *offsets, int axis, int64_t extent)
{
    const double size = (double)o->size.values[axis], whole = (double)extent;
    ed_tensor *at = ed_strided_slice(offsets, ED_ALL, ED_INDEX(axis));
    if (o->normalized && o->centered)
        at = ed_div(ed_sub(ed_mul(ed_add(at, 1), whole), size), 2);
    else if (o->normalized)
        at = ed_mul(at, whole);
    else if (o->centered)
        at = ed_add(at, whole / 2);
    return ed_clip(ed_cast(at, ED_INT64), -size, whole);
}

/* The windows along axis 1 or 2 of x, which has zeros around. */
static ed_tensor *window_along(ed_tensor *x, ed_tensor *first, int axis, int64_t size)
{
    ed_tensor *steps = ed_range((double)size, 2.0 * (double)size, .dtype = ED_INT64);
    ed_tensor *indices = ed_add(ed_expand_dims(first, 1), steps);
    return ed_gather(x, indices, .axis = axis, .batch_dims = 1);
}

static bool extract_glimpse_compose(ed_call *call)
{
    const glimpse_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0], *offsets = call->inputs[1];
    if (!check_glimpse(call)) return false;
    const int64_t *size = o->size.values;
    const ed_ints around = ED_INTS(0, size[0], size[1], 0);
    ed_tensor *y = ed_pad(x, .before = around, .after = around);
    if (!y) return false;
    y = window_along(y, begins(o, offsets, 0, ed_dim(x, 1)), 1, size[0]);
    y = window_along(y, begins(o, offsets, 1, ed_dim(x, 2)), 2, size[1]);
    return ed_call_result(call, 0, y);
}

/* The first row or column of an image's window. */
static double plain_begin(const ed_call *call, int64_t image, int axis)
{
    const glimpse_attrs *o = call->attrs;
    const double whole = (double)call->inputs[0]->shape[1 + axis],
                 at = ((const double *)call->inputs[1]->data)[2 * image + axis];
    if (isnan(at)) return 0;
    if (!o->normalized) return trunc(o->centered ? at + whole / 2 : at);
    return trunc(o->centered ? ((at + 1) * whole - (double)o->size.values[axis]) / 2 : at * whole);
}

static bool extract_glimpse_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) {
        const int64_t c = i % y->shape[3], p = i / y->shape[3],
                      image = p / y->shape[2] / y->shape[1];
        const double row = plain_begin(call, image, 0) + (double)(p / y->shape[2] % y->shape[1]),
                     column = plain_begin(call, image, 1) + (double)(p % y->shape[2]);
        const bool inside =
            row >= 0 && row < (double)x->shape[1] && column >= 0 && column < (double)x->shape[2];
        const int64_t at =
            inside ? (image * x->shape[1] + (int64_t)row) * x->shape[2] + (int64_t)column : 0;
        ((double *)y->data)[i] = inside ? ((const double *)x->data)[at * x->shape[3] + c] : 0;
    }
    return true;
}

#define GLIMPSE(...)                                                                               \
    ED_ATTRS(GLIMPSE_ATTRS, glimpse_attrs, .size = ED_SAMPLE_INTS(2, 3), __VA_ARGS__)

ED_OP(extract_glimpse) = {
    .name = "extract_glimpse",
    .doc = "windows at a place of each image, zeros outside",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"offsets", ED_SET_FLOAT, 'O'}},
    ED_OP_ATTRS(GLIMPSE_ATTRS, glimpse_attrs),
    .compose = extract_glimpse_compose,
    .reference = extract_glimpse_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 2, 5, 4, 2), ED_SAMPLE_IN(-1, 1, 2, 2)},
                           .attrs = GLIMPSE(.centered = true)},
                          {.inputs = {ED_SAMPLE_IN(-1, 1, 3, 3, 4, 1), ED_SAMPLE_IN(-3, 3, 3, 2)},
                           .attrs = GLIMPSE(.normalized = false)},
                          {.inputs = {ED_SAMPLE_IN(-1, 1, 2, 4, 4, 1), ED_SAMPLE_IN(0, 1, 2, 2)},
                           .attrs = GLIMPSE(.centered = false)}),
};

ed_tensor *ed_extract_glimpse_with(ed_tensor *x, ed_tensor *offsets, ed_ints size,
                                   const ed_extract_glimpse_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_EXTRACT_GLIMPSE_OPTIONS, options);
    return CALL_OP(
        extract_glimpse,
        ED_OPTIONS_FROM(ED_EXTRACT_GLIMPSE_OPTIONS, options, glimpse_attrs, .size = size), x,
        offsets);
}
