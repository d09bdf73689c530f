/*
 * Images cut, padded, turned over: compositions. Each reference moves pixels: that at (i, j) comes
 * from a row and a column which are linear in i and j, and is 0 where they are outside.
 */
#include "ops/images.h"
#include <math.h>
#include <string.h>

bool images_check(const ed_call *call, const ed_tensor *x)
{
    if (ed_rank(x) == 3 || ed_rank(x) == 4) return true;
    return ed_call_fail(
        call, ED_INVALID_ARGUMENT,
        "x must be [height, width, channels] or [batch, height, width, channels], got %s",
        text_of_tensor(x).s);
}

/* From where pixel (i, j) comes: row at[0] + down[0] i + across[0] j, column likewise. */
typedef struct pixel_map {
    int64_t at[2], down[2], across[2];
} pixel_map;

static bool plain_pixels(const ed_call *call, pixel_map m)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t *in = x->shape + x->rank - 3, *out = y->shape + y->rank - 3;
    for (int64_t i = 0; i < y->size; i++) {
        const int64_t p = i / out[2], down = p / out[1] % out[0], across = p % out[1];
        const int64_t r = m.at[0] + m.down[0] * down + m.across[0] * across,
                      c = m.at[1] + m.down[1] * down + m.across[1] * across;
        const bool inside = r >= 0 && r < in[0] && c >= 0 && c < in[1];
        const int64_t at = ((p / out[1] / out[0] * in[0] + r) * in[1] + c) * in[2] + i % out[2];
        ((double *)y->data)[i] = inside ? ((const double *)x->data)[at] : 0;
    }
    return true;
}

/* Pixels moved by an offset. */
static bool plain_moved(const ed_call *call, int64_t row, int64_t column)
{
    return plain_pixels(call, (pixel_map){{row, column}, {1, 0}, {0, 1}});
}

/* The sizes of the first image axis and the next. */
static const int64_t *extents(const ed_tensor *x)
{
    return ed_shape(x).values + ed_rank(x) - 3;
}

/* ---- Turned over ----------------------------------------------------------------------------- */

#define IMAGE_SAMPLES                                                                              \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4, 2)}},                                         \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 3, 1)}})

static bool flip_left_right_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    return images_check(call, x) && ed_call_result(call, 0, ed_reverse(x, ED_AXES(-2)));
}

static bool flip_left_right_reference(const ed_call *call)
{
    return plain_pixels(call, (pixel_map){{0, extents(call->inputs[0])[1] - 1}, {1, 0}, {0, -1}});
}

ED_OP(flip_left_right) = {
    .name = "flip_left_right",
    .doc = "images with their columns in reverse order",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = flip_left_right_compose,
    .reference = flip_left_right_reference,
    .samples = IMAGE_SAMPLES,
};

ed_tensor *ed_flip_left_right(ed_tensor *x)
{
    return CALL_OP(flip_left_right, NULL, x);
}

static bool flip_up_down_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    return images_check(call, x) && ed_call_result(call, 0, ed_reverse(x, ED_AXES(-3)));
}

static bool flip_up_down_reference(const ed_call *call)
{
    return plain_pixels(call, (pixel_map){{extents(call->inputs[0])[0] - 1, 0}, {-1, 0}, {0, 1}});
}

ED_OP(flip_up_down) = {
    .name = "flip_up_down",
    .doc = "images with their rows in reverse order",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = flip_up_down_compose,
    .reference = flip_up_down_reference,
    .samples = IMAGE_SAMPLES,
};

ed_tensor *ed_flip_up_down(ed_tensor *x)
{
    return CALL_OP(flip_up_down, NULL, x);
}

static bool image_transpose_compose(ed_call *call)
{
    static const int64_t perm[] = {0, 2, 1, 3}, of_one[] = {1, 0, 2};
    ed_tensor *x = call->inputs[0];
    const int rank = ed_rank(x);
    return images_check(call, x) &&
           ed_call_result(call, 0, ed_transpose(x, .perm = {rank == 4 ? perm : of_one, rank}));
}

static bool image_transpose_reference(const ed_call *call)
{
    return plain_pixels(call, (pixel_map){{0, 0}, {0, 1}, {1, 0}});
}

ED_OP(image_transpose) = {
    .name = "image_transpose",
    .doc = "images with rows as columns",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = image_transpose_compose,
    .reference = image_transpose_reference,
    .samples = IMAGE_SAMPLES,
};

ed_tensor *ed_image_transpose(ed_tensor *x)
{
    return CALL_OP(image_transpose, NULL, x);
}

/* ---- Cut and padded -------------------------------------------------------------------------- */

#define TARGET_ATTRS(FIELD, T)                                                                     \
    FIELD(T, INT, target_height, 1, ED_AT_LEAST(1), "rows of the result")                          \
    FIELD(T, INT, target_width, 1, ED_AT_LEAST(1), "columns of the result")
#define BOX_ATTRS(FIELD, T)                                                                        \
    FIELD(T, INT, offset_height, 0, ED_AT_LEAST(0), "the first row")                               \
    FIELD(T, INT, offset_width, 0, ED_AT_LEAST(0), "the first column")                             \
    TARGET_ATTRS(FIELD, T)
ED_OPTIONS(target_attrs, TARGET_ATTRS);
ED_OPTIONS(box_attrs, BOX_ATTRS);

/* A part of images that lies within, and zeros around images. */
static ed_tensor *cropped(ed_tensor *x, const int64_t offset[2], const int64_t size[2])
{
    const int64_t begin[] = {0, offset[0], offset[1]},
                  end[] = {ED_END, offset[0] + size[0], offset[1] + size[1]};
    const bool one = ed_rank(x) == 3;
    return ed_slice(x, .begin = {begin + one, 3 - one}, .end = {end + one, 3 - one});
}

static ed_tensor *padded(ed_tensor *x, const int64_t offset[2], const int64_t size[2])
{
    if (!x) return NULL;
    const int64_t *in = extents(x);
    const int64_t before[] = {0, offset[0], offset[1]},
                  after[] = {0, size[0] - offset[0] - in[0], size[1] - offset[1] - in[1]};
    const bool one = ed_rank(x) == 3;
    return ed_pad(x, .before = {before + one, 3 - one}, .after = {after + one, 3 - one});
}

/* Whether a part of such sizes lies within a whole. */
static bool lies_within(const int64_t offset[2], const int64_t part[2], const int64_t whole[2])
{
    return part[0] <= whole[0] && offset[0] <= whole[0] - part[0] && part[1] <= whole[1] &&
           offset[1] <= whole[1] - part[1];
}

static bool crop_to_bounding_box_compose(ed_call *call)
{
    const box_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    const int64_t offset[] = {o->offset_height, o->offset_width},
                  size[] = {o->target_height, o->target_width};
    if (!images_check(call, x)) return false;
    if (lies_within(offset, size, extents(x)))
        return ed_call_result(call, 0, cropped(x, offset, size));
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "%s from %s on does not lie within the image, %s of %s",
                        text_of_ints(size, 2).s, text_of_ints(offset, 2).s,
                        text_of_ints(extents(x), 2).s, text_of_tensor(x).s);
}

static bool crop_to_bounding_box_reference(const ed_call *call)
{
    const box_attrs *o = call->attrs;
    return plain_moved(call, o->offset_height, o->offset_width);
}

#define IN_BOX(...) ED_ATTRS(BOX_ATTRS, box_attrs, __VA_ARGS__)

ED_OP(crop_to_bounding_box) = {
    .name = "crop_to_bounding_box",
    .doc = "a part of images",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(BOX_ATTRS, box_attrs),
    .compose = crop_to_bounding_box_compose,
    .reference = crop_to_bounding_box_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4, 5, 2)},
                           .attrs = IN_BOX(.offset_height = 1, .offset_width = 2,
                                           .target_height = 2, .target_width = 3)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4, 1)},
                           .attrs = IN_BOX(.offset_height = 0, .offset_width = 1,
                                           .target_height = 3, .target_width = 2)}),
};

ed_tensor *ed_crop_to_bounding_box(ed_tensor *x, int64_t offset_height, int64_t offset_width,
                                   int64_t target_height, int64_t target_width)
{
    return CALL_OP(crop_to_bounding_box,
                   IN_BOX(.offset_height = offset_height, .offset_width = offset_width,
                          .target_height = target_height, .target_width = target_width),
                   x);
}

static bool pad_to_bounding_box_compose(ed_call *call)
{
    const box_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    const int64_t offset[] = {o->offset_height, o->offset_width},
                  size[] = {o->target_height, o->target_width};
    if (!images_check(call, x)) return false;
    if (lies_within(offset, extents(x), size))
        return ed_call_result(call, 0, padded(x, offset, size));
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "the image, %s of %s, from %s on does not lie within %s",
                        text_of_ints(extents(x), 2).s, text_of_tensor(x).s,
                        text_of_ints(offset, 2).s, text_of_ints(size, 2).s);
}

static bool pad_to_bounding_box_reference(const ed_call *call)
{
    const box_attrs *o = call->attrs;
    return plain_moved(call, -o->offset_height, -o->offset_width);
}

ED_OP(pad_to_bounding_box) = {
    .name = "pad_to_bounding_box",
    .doc = "images with zeros around",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(BOX_ATTRS, box_attrs),
    .compose = pad_to_bounding_box_compose,
    .reference = pad_to_bounding_box_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2)},
                           .attrs = IN_BOX(.offset_height = 1, .offset_width = 2,
                                           .target_height = 4, .target_width = 5)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2, 1)},
                           .attrs = IN_BOX(.target_height = 3, .target_width = 4)}),
};

ed_tensor *ed_pad_to_bounding_box(ed_tensor *x, int64_t offset_height, int64_t offset_width,
                                  int64_t target_height, int64_t target_width)
{
    return CALL_OP(pad_to_bounding_box,
                   IN_BOX(.offset_height = offset_height, .offset_width = offset_width,
                          .target_height = target_height, .target_width = target_width),
                   x);
}

/* The first of `part` in the middle of `whole`; of an odd rest the smaller half is before. */
static int64_t middle_of(int64_t whole, int64_t part)
{
    return (whole - part) / 2;
}

static bool resize_with_crop_or_pad_compose(ed_call *call)
{
    const target_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    if (!images_check(call, x)) return false;
    const int64_t *in = extents(x), size[] = {o->target_height, o->target_width};
    int64_t part[2], cut[2], put[2];
    for (int a = 0; a < 2; a++) {
        part[a] = in[a] < size[a] ? in[a] : size[a];
        cut[a] = middle_of(in[a], part[a]);
        put[a] = middle_of(size[a], part[a]);
    }
    return ed_call_result(call, 0, padded(cropped(x, cut, part), put, size));
}

static bool resize_with_crop_or_pad_reference(const ed_call *call)
{
    const target_attrs *o = call->attrs;
    const int64_t *in = extents(call->inputs[0]);
    int64_t at[] = {in[0] - o->target_height, in[1] - o->target_width};
    for (int a = 0; a < 2; a++) at[a] = at[a] < 0 ? -(-at[a] / 2) : at[a] / 2;
    return plain_moved(call, at[0], at[1]);
}

#define TARGET(...) ED_ATTRS(TARGET_ATTRS, target_attrs, __VA_ARGS__)

ED_OP(resize_with_crop_or_pad) = {
    .name = "resize_with_crop_or_pad",
    .doc = "the middle of images, or images in the middle of zeros",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(TARGET_ATTRS, target_attrs),
    .compose = resize_with_crop_or_pad_compose,
    .reference = resize_with_crop_or_pad_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 2)},
                           .attrs = TARGET(.target_height = 5, .target_width = 3)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 2, 1)},
                           .attrs = TARGET(.target_height = 4, .target_width = 3)}),
};

ed_tensor *ed_resize_with_crop_or_pad(ed_tensor *x, int64_t target_height, int64_t target_width)
{
    return CALL_OP(resize_with_crop_or_pad,
                   TARGET(.target_height = target_height, .target_width = target_width), x);
}

#define FRACTION_ATTRS(FIELD, T)                                                                   \
    FIELD(T, FLOAT, fraction, 1, ED_BETWEEN(0, 1), "of height and width")
ED_OPTIONS(fraction_attrs, FRACTION_ATTRS);

static bool central_crop_compose(ed_call *call)
{
    const double fraction = ((const fraction_attrs *)call->attrs)->fraction;
    ed_tensor *x = call->inputs[0];
    if (!images_check(call, x)) return false;
    if (fraction == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "fraction must be above 0, got 0");
    int64_t offset[2], size[2];
    for (int a = 0; a < 2; a++) {
        const double whole = (double)extents(x)[a];
        offset[a] = (int64_t)((whole - whole * fraction) / 2);
        size[a] = extents(x)[a] - 2 * offset[a];
    }
    return ed_call_result(call, 0, cropped(x, offset, size));
}

static bool central_crop_reference(const ed_call *call)
{
    const int64_t *in = extents(call->inputs[0]), *out = extents(call->outputs[0]);
    return plain_moved(call, (in[0] - out[0]) / 2, (in[1] - out[1]) / 2);
}

#define FRACTION(...) ED_ATTRS(FRACTION_ATTRS, fraction_attrs, __VA_ARGS__)

ED_OP(central_crop) = {
    .name = "central_crop",
    .doc = "the middle of images",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(FRACTION_ATTRS, fraction_attrs),
    .compose = central_crop_compose,
    .reference = central_crop_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 6, 5, 2)}, .attrs = FRACTION(.fraction = 0.5)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 7, 4, 1)}, .attrs = FRACTION(.fraction = 0.3)}),
};

ed_tensor *ed_central_crop(ed_tensor *x, double fraction)
{
    return CALL_OP(central_crop, FRACTION(.fraction = fraction), x);
}

/* ---- resize_with_pad ------------------------------------------------------------------------- */

#define RESIZE_WITH_PAD_ATTRS(FIELD, T) TARGET_ATTRS(FIELD, T) ED_RESIZE_WITH_PAD_OPTIONS(FIELD, T)
ED_OPTIONS(resize_with_pad_attrs, RESIZE_WITH_PAD_ATTRS);

/* How large the image becomes and where it is put; TensorFlow's float32. */
static void resized_place(const resize_with_pad_attrs *o, const int64_t in[2], int64_t size[2],
                          int64_t at[2])
{
    const int64_t target[] = {o->target_height, o->target_width};
    const float ratio = fmaxf((float)in[1] / (float)target[1], (float)in[0] / (float)target[0]);
    for (int a = 0; a < 2; a++) {
        const float exact = (float)in[a] / ratio;
        const float before = floorf(((float)target[a] - exact) / 2);
        size[a] = exact < 1 ? 1 : exact >= (float)target[a] ? target[a] : (int64_t)exact;
        at[a] = before < 0 ? 0 : (int64_t)before;
        if (at[a] > target[a] - size[a]) at[a] = target[a] - size[a];
    }
}

static bool resize_with_pad_compose(ed_call *call)
{
    const resize_with_pad_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    int64_t size[2], at[2];
    if (!images_check(call, x)) return false;
    if (extents(x)[0] < 1 || extents(x)[1] < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "images must have pixels, got %s",
                            text_of_tensor(x).s);
    resized_place(o, extents(x), size, at);
    ed_tensor *y =
        ed_resize(x, ((ed_ints){size, 2}), .method = o->method, .antialias = o->antialias);
    const int64_t target[] = {o->target_height, o->target_width};
    return ed_call_result(call, 0, padded(y, at, target));
}

extern const ed_op ed_op_resize;

static bool resize_with_pad_reference(const ed_call *call)
{
    const resize_with_pad_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int64_t shape[4], size[2], at[2];
    resized_place(o, extents(x), size, at);
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    memcpy(shape + x->rank - 3, size, sizeof size);
    ed_tensor *resized = tensor_new(ED_FLOAT64, x->rank, shape);
    bool ok = resized != NULL;
    if (ok) {
        ed_tensor *from[] = {resized};
        ed_call with = *call;
        with.attrs = RESIZED(.method = o->method, .antialias = o->antialias);
        with.outputs = from;
        ok = ed_op_resize.reference(&with);
        with.inputs = from;
        with.outputs = call->outputs;
        ok = ok && plain_moved(&with, -at[0], -at[1]);
    }
    ed_release(resized);
    return ok;
}

#define PADDED(...) ED_ATTRS(RESIZE_WITH_PAD_ATTRS, resize_with_pad_attrs, __VA_ARGS__)

ED_OP(resize_with_pad) = {
    .name = "resize_with_pad",
    .doc = "images resized in their ratio, with zeros around",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(RESIZE_WITH_PAD_ATTRS, resize_with_pad_attrs),
    .compose = resize_with_pad_compose,
    .reference = resize_with_pad_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5, 2)},
                           .attrs = PADDED(.target_height = 6, .target_width = 7)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 2, 1)},
                           .attrs = PADDED(.target_height = 3, .target_width = 4,
                                           .method = "nearest")}),
};

ed_tensor *ed_resize_with_pad_with(ed_tensor *x, int64_t target_height, int64_t target_width,
                                   const ed_resize_with_pad_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_RESIZE_WITH_PAD_OPTIONS, options);
    return CALL_OP(resize_with_pad,
                   ED_OPTIONS_FROM(ED_RESIZE_WITH_PAD_OPTIONS, options, resize_with_pad_attrs,
                                   .target_height = target_height, .target_width = target_width),
                   x);
}
