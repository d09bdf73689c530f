/*
 * crop_and_resize: parts of images, resized. The op crop_boxes computes it; its gradients are made
 * of public ops, which find the same four pixels again.
 */
#include "ops/images.h"
#include "ops/index.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

#define CROP_ATTRS(FIELD, T)                                                                       \
    FIELD(T, INTS, crop_size, ED_NO_LIST, ED_REQUIRED, "height and width of the parts")            \
    ED_CROP_AND_RESIZE_OPTIONS(FIELD, T)
ED_OPTIONS(crop_attrs, CROP_ATTRS);
#define CROP(...) ED_ATTRS(CROP_ATTRS, crop_attrs, __VA_ARGS__)

static bool is_nearest(const crop_attrs *o)
{
    return !strcmp(o->method, "nearest");
}

/* ---- crop_boxes ------------------------------------------------------------------------------ */

/* Shapes of images, boxes and their images' numbers. */
static bool check_boxes(const ed_call *call)
{
    const crop_attrs *o = call->attrs;
    const ed_ints image = ed_shape(call->inputs[0]), boxes = ed_shape(call->inputs[1]),
                  of = ed_shape(call->inputs[2]);
    if (image.count != 4 || image.values[1] < 1 || image.values[2] < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "image must be [batch, height, width, channels] with pixels, got %s",
                            text_of_ints(image.values, image.count).s);
    if (boxes.count != 2 || boxes.values[1] != 4)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "boxes must be [n, 4], got %s",
                            text_of_ints(boxes.values, boxes.count).s);
    if (of.count != 1 || of.values[0] != boxes.values[0])
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT, "box_indices must be [n], one for each of boxes %s, got %s",
            text_of_ints(boxes.values, boxes.count).s, text_of_ints(of.values, of.count).s);
    const ed_ints size = o->crop_size;
    return (size.values && size.count == 2 && size.values[0] >= 1 && size.values[1] >= 1) ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "crop_size must be [height, width], each >= 1, got %s",
                        text_of_ints(size.values, size.values ? size.count : 0).s);
}

static bool crop_boxes_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (!check_boxes(call)) return false;
    const int64_t *size = ((const crop_attrs *)call->attrs)->crop_size.values;
    const int64_t shape[] = {call->inputs[1]->shape[0], size[0], size[1], x->shape[3]};
    return ed_call_output(call, 0, x->dtype, 4, shape);
}

typedef struct cropping {
    const int64_t *image, *crop, *of; /* shapes; the images' numbers */
    const void *from, *boxes;
    void *to;
    ed_dtype dtype;
    double otherwise;
    bool nearest;
    struct crop_column *columns; /* room for a box's, for each thread */
} cropping;

/* The pixels at a column's place, as box_pixels has them. */
typedef struct crop_column {
    int64_t at[2];
    double weight;
    bool inside;
} crop_column;

/* Where pixel i of `crop` along an axis of `extent` pixels is, for a box from low to high: exact at
 * the image's borders. */
static double box_place(double low, double high, int64_t i, int64_t crop, int64_t extent)
{
    const double last = (double)(extent - 1), n = (double)(crop - 1);
    if (crop == 1) return (low + high) * 0.5 * last;
    return (low * (n - (double)i) + high * (double)i) / n * last;
}

/* The pixels at that place, the same one twice if it is one, and the second one's weight; zeros and
 * false outside, and for NaN. */
static bool box_pixels(double place, int64_t extent, bool nearest, int64_t at[2], double *weight)
{
    const bool inside = place >= 0 && place <= (double)(extent - 1);
    const double below = !inside ? 0 : floor(nearest ? place + 0.5 : place);
    *weight = !inside || nearest ? 0 : place - below;
    at[0] = (int64_t)below;
    at[1] = *weight > 0 ? at[0] + 1 : at[0];
    return inside;
}

#define TYPE f32
#include "ops/crop_and_resize.typed.h"
#define TYPE f64
#include "ops/crop_and_resize.typed.h"

static void crop_rows(int64_t first, int64_t last, int worker, void *user)
{
    const cropping *p = user;
    const bool wide = p->dtype == ED_FLOAT64;
    crop_column *columns = p->columns + worker * p->crop[1];
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / p->crop[0], row = i % p->crop[0];
        if (i == first || !row) (wide ? crop_columns_f64 : crop_columns_f32)(p, n, columns);
        (wide ? crop_row_f64 : crop_row_f32)(p, n, row, columns);
    }
}

/* Rows of all boxes, numbered. */
static bool crop_all(cropping *p, const ed_tensor *y)
{
    const int64_t rows = y->shape[0] * y->shape[1],
                  grain = 1 + OPS_PARALLEL_WORK / (y->size / rows);
    const int count = threads_count();
    size_t bytes;
    p->columns = memory_mul((size_t)p->crop[1] * (size_t)count, sizeof *p->columns, &bytes)
                     ? memory_alloc(bytes)
                     : NULL;
    if (!p->columns) return false;
    threads_run_among(count, rows, y->size > OPS_PARALLEL_WORK ? grain : rows, crop_rows, p);
    memory_free(p->columns);
    return true;
}

static bool crop_boxes_kernel(ed_call *call)
{
    const crop_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0], *of = call->inputs[2];
    const int64_t *all = index_read(call, of, x->shape[0]);
    if (!all) return false;
    cropping p = {.image = x->shape,
                  .crop = o->crop_size.values,
                  .of = all,
                  .from = x->data,
                  .boxes = call->inputs[1]->data,
                  .to = y->data,
                  .dtype = x->dtype,
                  .otherwise = o->extrapolation_value,
                  .nearest = is_nearest(o)};
    const bool ok = !y->size || crop_all(&p, y);
    index_drop(of, all);
    return ok;
}

/* ---- Its gradients --------------------------------------------------------------------------- */

/* Along an axis: places [n, crop], which of them are inside, 1 or 0, the first of their two pixels
 * and the second one, int64, and the second one's weight. */
typedef struct places {
    ed_tensor *share; /* of a pixel's place that is y2's rather than y1's, [crop] */
    ed_tensor *inside, *at[2], *weight;
    double last; /* pixel */
} places;

static bool find_places(const ed_gradient_call *g, int axis, places *p)
{
    const crop_attrs *o = g->attrs;
    const int64_t crop = o->crop_size.values[axis], extent = g->shapes[0].values[1 + axis];
    ed_tensor *boxes = ed_cast(g->inputs[1], ED_FLOAT64);
    const ed_dtype dtype = g->dtypes[1];
    ed_tensor *low = ed_slice(boxes, .begin = ED_INTS(0, axis), .end = ED_INTS(ED_END, axis + 1));
    ed_tensor *high =
        ed_slice(boxes, .begin = ED_INTS(0, axis + 2), .end = ED_INTS(ED_END, axis + 3));
    ed_tensor *i = ed_range(0, (double)crop, .dtype = ED_FLOAT64), *at;
    p->last = (double)(extent - 1);
    if (crop == 1) {
        p->share = ed_add(i, 0.5);
        at = ed_mul(ed_mul(ed_add(low, high), 0.5), p->last);
    } else {
        const double n = (double)(crop - 1);
        p->share = ed_div(i, n);
        at = ed_add(ed_mul(low, ed_sub(n, i)), ed_mul(high, i));
        at = ed_mul(ed_div(at, n), p->last);
    }
    p->share = ed_cast(p->share, dtype);
    ed_tensor *inside = ed_logical_and(ed_greater_equal(at, 0.0), ed_less_equal(at, p->last));
    at = ed_where(inside, at, 0.0);
    ed_tensor *place = ed_stop_gradient(at);
    ed_tensor *below = ed_floor(is_nearest(o) ? ed_add(place, 0.5) : place);
    ed_tensor *weight = is_nearest(o) ? ed_zeros_like(at) : ed_sub(at, below);
    p->at[0] = ed_cast(below, ED_INT64);
    p->at[1] = ed_add(p->at[0], ed_cast(ed_greater(weight, 0.0), ED_INT64));
    p->weight = ed_cast(weight, dtype);
    p->inside = ed_cast(inside, dtype);
    return p->at[1] && p->inside;
}

/* [n, crop] as [n, crop, 1] and for columns as [n, 1, crop]. */
static ed_tensor *of_rows(ed_tensor *t)
{
    return ed_expand_dims(t, 2);
}

static ed_tensor *of_columns(ed_tensor *t)
{
    return ed_expand_dims(t, 1);
}

/* The numbers, among all pixels of all images, of pixels [n, height, width]. */
static ed_tensor *pixel_numbers(const ed_gradient_call *g, ed_tensor *down, ed_tensor *across)
{
    const int64_t *image = g->shapes[0].values;
    ed_tensor *of = ed_reshape(ed_cast(g->inputs[2], ED_INT64), ED_SHAPE(-1, 1, 1));
    ed_tensor *row = ed_add(ed_mul(of, image[1]), of_rows(down));
    return ed_add(ed_mul(row, image[2]), of_columns(across));
}

/* 1 - weight for the first pixel, weight for the second. */
static ed_tensor *weight_at(const places *p, int which)
{
    return which ? p->weight : ed_sub(1.0, p->weight);
}

static ed_tensor *image_gradient(const ed_gradient_call *g, const places *y, const places *x,
                                 ed_tensor *dy)
{
    const ed_ints image = g->shapes[0];
    ed_tensor *sum = NULL;
    for (int corner = 0; corner < 4; corner++) {
        const int a = corner / 2, b = corner % 2;
        ed_tensor *weight = ed_mul(of_rows(weight_at(y, a)), of_columns(weight_at(x, b)));
        ed_tensor *part =
            index_sum(ed_mul(dy, ed_expand_dims(weight, 3)), pixel_numbers(g, y->at[a], x->at[b]),
                      0, 0, image.values[0] * image.values[1] * image.values[2]);
        sum = corner ? ed_add(sum, part) : part;
    }
    return ed_reshape(sum, image);
}

/* Of the places, [n, crop], those of the two numbers of the boxes between which they are. */
static void box_ends(const places *p, ed_tensor *d, ed_tensor *ends[2])
{
    static const int64_t last[] = {1};
    ed_tensor *scaled = ed_mul(d, p->last);
    ends[0] = ed_reduce_sum(ed_mul(scaled, ed_sub(1.0, p->share)), .axis = {last, 1});
    ends[1] = ed_reduce_sum(ed_mul(scaled, p->share), .axis = {last, 1});
}

static ed_tensor *boxes_gradient(const ed_gradient_call *g, const places *y, const places *x,
                                 ed_tensor *dy)
{
    static const int64_t columns[] = {2, 3}, rows[] = {1, 3};
    const ed_ints image = g->shapes[0];
    ed_tensor *pixels = ed_reshape(g->inputs[0], ED_SHAPE(-1, image.values[3])), *v[2][2];
    if (is_nearest(g->attrs)) return ed_zeros_like(g->inputs[1]);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            v[a][b] = ed_gather(pixels, pixel_numbers(g, y->at[a], x->at[b]));
    ed_tensor *v_ = ed_expand_dims(of_rows(y->weight), 3),
              *u = ed_expand_dims(of_columns(x->weight), 3);
    ed_tensor *down = ed_mul(dy, ed_lerp(ed_sub(v[1][0], v[0][0]), ed_sub(v[1][1], v[0][1]), u));
    ed_tensor *across = ed_mul(dy, ed_lerp(ed_sub(v[0][1], v[0][0]), ed_sub(v[1][1], v[1][0]), v_));
    ed_tensor *ends[4], *of_y[2], *of_x[2];
    box_ends(y, ed_reduce_sum(down, .axis = {columns, 2}), of_y);
    box_ends(x, ed_reduce_sum(across, .axis = {rows, 2}), of_x);
    for (int i = 0; i < 2; i++) ends[2 * i] = of_y[i], ends[2 * i + 1] = of_x[i];
    return ed_stack(ed_list_make(ends, 4), .axis = 1);
}

static bool crop_boxes_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    places y, x;
    if (!find_places(g, 0, &y) || !find_places(g, 1, &x)) return false;
    ed_tensor *inside = ed_mul(of_rows(y.inside), of_columns(x.inside));
    ed_tensor *dy = ed_mul_no_nan(g->dy[0], ed_expand_dims(inside, 3));
    if (g->needs[0]) g->dx[0] = ed_keep(image_gradient(g, &y, &x, dy));
    if (g->needs[1]) g->dx[1] = ed_keep(boxes_gradient(g, &y, &x, dy));
    return true;
}

/* ---- The same by plain loops ----------------------------------------------------------------- */

/* The part that a pixel has in the place, along one axis; -1: the place is outside. */
static double plain_share(double place, int64_t extent, bool nearest, int64_t pixel)
{
    if (!(place >= 0) || place > (double)(extent - 1)) return -1;
    if (nearest) return pixel == (int64_t)floor(place + 0.5);
    const double behind = place - floor(place);
    return pixel == (int64_t)floor(place) ? 1 - behind : pixel == (int64_t)ceil(place) ? behind : 0;
}

static double plain_place(double low, double high, int64_t i, int64_t crop, int64_t extent)
{
    if (crop == 1) return 0.5 * (low + high) * (double)(extent - 1);
    const double sum = low * (double)(crop - 1 - i) + high * (double)i;
    return sum / (double)(crop - 1) * (double)(extent - 1);
}

static double plain_cropped(const ed_call *call, int64_t n, int64_t i, int64_t j, int64_t channel)
{
    const crop_attrs *o = call->attrs;
    const int64_t *image = call->inputs[0]->shape, *crop = o->crop_size.values;
    const double *box = (const double *)call->inputs[1]->data + 4 * n;
    const double *x =
        (const double *)call->inputs[0]->data +
        (int64_t)((const double *)call->inputs[2]->data)[n] * image[1] * image[2] * image[3];
    const double down = plain_place(box[0], box[2], i, crop[0], image[1]),
                 across = plain_place(box[1], box[3], j, crop[1], image[2]);
    double y = 0;
    for (int64_t r = 0; r < image[1]; r++)
        for (int64_t c = 0; c < image[2]; c++) {
            const double v = plain_share(down, image[1], is_nearest(o), r),
                         u = plain_share(across, image[2], is_nearest(o), c);
            if (u < 0 || v < 0) return o->extrapolation_value;
            if (u > 0 && v > 0) y += v * (u * x[(r * image[2] + c) * image[3] + channel]);
        }
    return y;
}

static bool crop_boxes_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) {
        const int64_t p = i / y->shape[3];
        ((double *)y->data)[i] =
            plain_cropped(call, p / y->shape[2] / y->shape[1], p / y->shape[2] % y->shape[1],
                          p % y->shape[2], i % y->shape[3]);
    }
    return true;
}

#define BOXES(low, high, n) ED_SAMPLE_IN(low, high, n, 4), ED_SAMPLE_IN(0, 1, n)
#define CROP_SAMPLES                                                                               \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 5, 2), BOXES(0.05, 0.95, 3)},                 \
                .attrs = CROP(.crop_size = ED_SAMPLE_INTS(3, 2))},                                 \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 1), BOXES(-0.5, 1.5, 3)},                  \
                .attrs = CROP(.crop_size = ED_SAMPLE_INTS(1, 3), .extrapolation_value = 0.5)},     \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 2), BOXES(-0.2, 1.2, 3)},                  \
                .attrs = CROP(.crop_size = ED_SAMPLE_INTS(4, 5), .method = "nearest")})

ED_OP(crop_boxes) = {
    .name = "crop_boxes",
    .doc = "parts of images, resized",
    .operands = {{"image", ED_SET_FLOAT, 'T', .saved = true},
                 {"boxes", ED_SET_FLOAT, 'T', .saved = true},
                 {"box_indices", ED_SET_INDEX, 'I', .saved = true}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(CROP_ATTRS, crop_attrs),
    .infer = crop_boxes_infer,
    .kernel = crop_boxes_kernel,
    .gradient = crop_boxes_gradient,
    .reference = crop_boxes_reference,
    .samples = CROP_SAMPLES,
};

/* ---- crop_and_resize ------------------------------------------------------------------------- */

static bool crop_and_resize_compose(ed_call *call)
{
    ed_tensor *image = call->inputs[0], *boxes = call->inputs[1];
    const bool wide = ed_dtype_of(image) == ED_FLOAT64 || ed_dtype_of(boxes) == ED_FLOAT64;
    const ed_dtype dtype = wide ? ED_FLOAT64 : ED_FLOAT32;
    return check_boxes(call) &&
           ed_call_result(call, 0,
                          CALL_OP(crop_boxes, call->attrs, ed_cast(image, dtype),
                                  ed_cast(boxes, dtype), call->inputs[2]));
}

ED_OP(crop_and_resize) = {
    .name = "crop_and_resize",
    .doc = "parts of images, resized",
    .operands = {{"image", ED_SET_NUMBER | ED_SET_HALF, 'X'},
                 {"boxes", ED_SET_FLOAT, 'T'},
                 {"box_indices", ED_SET_INDEX, 'I'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(CROP_ATTRS, crop_attrs),
    .compose = crop_and_resize_compose,
    .reference = crop_boxes_reference,
    .samples = CROP_SAMPLES,
};

ed_tensor *ed_crop_and_resize_with(ed_tensor *image, ed_tensor *boxes, ed_tensor *box_indices,
                                   ed_ints crop_size, const ed_crop_and_resize_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CROP_AND_RESIZE_OPTIONS, options);
    return CALL_OP(
        crop_and_resize,
        ED_OPTIONS_FROM(ED_CROP_AND_RESIZE_OPTIONS, options, crop_attrs, .crop_size = crop_size),
        image, boxes, box_indices);
}
