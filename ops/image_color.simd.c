/*
 * Colors: RGB, HSV, grey, YUV and YIQ, channels last. A loop goes through the pixels of all of
 * these, three vectors at a time; gradients are made of public ops.
 */
#include "ops/images.h"
#include "ops/kernels/isa.h"

typedef struct color_work color_work;

/* n pixels of x into y. */
typedef void (*color_loop)(const color_work *p, const void *x, void *y, int64_t n);

struct color_work {
    const char *x;
    char *y;
    int64_t from, to; /* bytes of a pixel of x, of y */
    color_loop loop;
    bool stream; /* y goes past the caches */
    float numbers_f32[9];
    double numbers_f64[9];
};

#ifdef ISA

#include "ops/kernels/triples.h"
#include "ops/kernels/vector.h"

#define TYPE f32
#include "ops/image_color.typed.h"
#define TYPE f64
#include "ops/image_color.typed.h"

#define COLOR_LOOPS(type)                                                                          \
    {                                                                                              \
        [COLOR_HSV] = color_hsv_##type, [COLOR_RGB] = color_rgb_##type,                            \
        [COLOR_TIMES] = color_times_##type, [COLOR_HUE] = color_hue_##type,                        \
        [COLOR_SATURATION] = color_saturation_##type, [COLOR_GREY] = color_grey_##type,            \
        [COLOR_SPREAD] = color_spread_##type                                                       \
    }
const color_loop ISA_NAME(color_table)[2][COLOR_MAPS] = {COLOR_LOOPS(f32), COLOR_LOOPS(f64)};

#else

#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>

ISA_DECLARE_TABLE(color_loop, color_table, [2][COLOR_MAPS]);

bool images_check_channels(const ed_call *call, int64_t channels)
{
    const ed_tensor *x = call->inputs[0];
    const int rank = ed_rank(x);
    if (rank >= 1 && ed_dim(x, rank - 1) == channels) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must be [..., %lld], got %s",
                        (long long)channels, text_of_tensor(x).s);
}

bool images_colors_infer(ed_call *call)
{
    return images_check_channels(call, 3) && ops_infer_like(call);
}

static void color_range(int64_t first, int64_t last, int worker, void *user)
{
    const color_work *p = user;
    (void)worker;
    p->loop(p, p->x + first * p->from, p->y + first * p->to, last - first);
}

void images_map_colors(const ed_call *call, color_map map, const double *numbers, int count)
{
    static const color_loop(*const tables[ISA_COUNT])[COLOR_MAPS] = ISA_TABLE(color_table);
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t n = x->size / (map == COLOR_SPREAD ? 1 : 3), size = (int64_t)dtype_size(x->dtype);
    color_work p = {.x = x->data, .y = y->data};
    p.from = map == COLOR_SPREAD ? size : 3 * size;
    p.to = map == COLOR_GREY ? size : 3 * size;
    p.loop = tables[isa_level][x->dtype == ED_FLOAT64][map];
    p.stream = n * p.to >= COPY_FAR_BYTES && (uintptr_t)p.y % COPY_LINE == 0;
    for (int i = 0; i < count; i++) {
        p.numbers_f32[i] = (float)numbers[i];
        p.numbers_f64[i] = numbers[i];
    }
    threads_run(n, 3 * n > OPS_PARALLEL_WORK ? 8192 : n + 1, color_range, &p);
}

/* ---- RGB and HSV ----------------------------------------------------------------------------- */

static bool rgb_to_hsv_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_HSV, NULL, 0);
    return true;
}

static bool hsv_to_rgb_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_RGB, NULL, 0);
    return true;
}

/* Three numbers along the channels. */
static ed_tensor *three(ed_dtype dtype, double a, double b, double c)
{
    return ed_cast(ed_constant(ED_VALUES(double, a, b, c), ED_SHAPE(3)), dtype);
}

/* One channel, [..., 1]; the sum of the channels, likewise. */
static ed_tensor *channel(ed_tensor *x, int64_t i)
{
    const int64_t last = ed_rank(x) - 1;
    int64_t from[ED_MAX_RANK] = {0}, to[ED_MAX_RANK];
    for (int64_t k = 0; k < last; k++) to[k] = ED_END;
    from[last] = i;
    to[last] = i + 1;
    return ed_slice(x, .begin = {from, last + 1}, .end = {to, last + 1});
}

static ed_tensor *over_channels(ed_tensor *x)
{
    return ed_reduce_sum(x, .axis = ED_AXES(-1), .keepdims = true);
}

/* h = from / (6 range) + a constant, s = range / most, v = most: by which of the channels is the
 * largest and which the smallest. */
static bool rgb_to_hsv_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *x = g->inputs[0], *dy = g->dy[0];
    const ed_dtype dtype = g->dtypes[0];
    ed_tensor *is_most = ed_one_hot(ed_argmax(x, .axis = -1), 3, .dtype = dtype);
    ed_tensor *is_least = ed_one_hot(ed_argmin(x, .axis = -1), 3, .dtype = dtype);
    ed_tensor *most = over_channels(ed_mul(x, is_most)),
              *least = over_channels(ed_mul(x, is_least)), *range = ed_sub(most, least);
    ed_tensor *dh = channel(dy, 0), *ds = channel(dy, 1), *dv = channel(dy, 2);
    /* from = the next channel less the one after it */
    ed_tensor *next = ed_sub(ed_roll(is_most, ED_INTS(1), ED_AXES(-1)),
                             ed_roll(is_most, ED_INTS(-1), ED_AXES(-1)));
    ed_tensor *from = over_channels(ed_mul(next, x)), *spread = ed_sub(is_most, is_least);
    ed_tensor *hue = ed_sub(next, ed_mul(ed_div_no_nan(from, range), spread));
    hue = ed_mul(ed_div_no_nan(dh, ed_mul(range, 6.0)), hue);
    ed_tensor *bright = ed_where(ed_greater(most, 0.0), most, 0.0);
    ed_tensor *saturation = ed_sub(ed_mul(ed_div_no_nan(least, bright), is_most), is_least);
    saturation = ed_mul(ed_div_no_nan(ds, bright), saturation);
    g->dx[0] = ed_keep(ed_add(ed_add(hue, saturation), ed_mul(dv, is_most)));
    return true;
}

/* y = ((1 - s) + s d) v, d by channel 0 for some hues, 1 for some, and linear between. */
static bool hsv_to_rgb_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *x = g->inputs[0], *dy = g->dy[0];
    const ed_dtype dtype = g->dtypes[0];
    ed_tensor *s = channel(x, 1), *v = channel(x, 2);
    ed_tensor *from = ed_sub(ed_mul(channel(x, 0), 6.0), three(dtype, 3, 2, 4));
    ed_tensor *sign = three(dtype, 1, -1, -1);
    ed_tensor *free = ed_add(ed_mul(ed_abs(from), sign), three(dtype, -1, 2, 2));
    ed_tensor *d = ed_clip(free, 0, 1);
    ed_tensor *sloped = ed_logical_and(ed_greater(free, 0.0), ed_less(free, 1.0));
    ed_tensor *slope = ed_mul(ed_mul(ed_sign(from), sign), ed_mul(ed_cast(sloped, dtype), 6.0));
    ed_tensor *dh = ed_mul(over_channels(ed_mul(dy, slope)), ed_mul(s, v));
    ed_tensor *ds = ed_mul(over_channels(ed_mul(dy, ed_sub(d, 1.0))), v);
    ed_tensor *dv = over_channels(ed_mul(dy, ed_add(ed_sub(1.0, s), ed_mul(s, d))));
    ed_tensor *all[] = {dh, ds, dv};
    g->dx[0] = ed_keep(ed_concat(ed_list_make(all, 3), .axis = -1));
    return true;
}

void images_plain_hsv(const double *rgb, double *hsv)
{
    const double v = fmax(rgb[0], fmax(rgb[1], rgb[2])), m = fmin(rgb[0], fmin(rgb[1], rgb[2]));
    double h = 0;
    for (int k = 2; k >= 0; k--)
        if (rgb[k] == v) h = (rgb[(k + 1) % 3] - rgb[(k + 2) % 3]) / (6 * (v - m)) + k / 3.0;
    if (!(v - m > 0)) h = 0;
    hsv[0] = h < 0 ? h + 1 : h;
    hsv[1] = v > 0 ? (v - m) / v : 0;
    hsv[2] = v;
    if (isnan(rgb[0]) || isnan(rgb[1]) || isnan(rgb[2])) hsv[0] = hsv[1] = hsv[2] = NAN;
}

void images_plain_rgb(const double *hsv, double *rgb)
{
    const double h = 6 * hsv[0];
    const double d[] = {fabs(h - 3) - 1, 2 - fabs(h - 2), 2 - fabs(h - 4)};
    for (int k = 0; k < 3; k++)
        rgb[k] = (1 - hsv[1] + hsv[1] * (d[k] < 0 ? 0 : d[k] > 1 ? 1 : d[k])) * hsv[2];
}

static bool plain_pixels_of(const ed_call *call, void (*f)(const double *x, double *y))
{
    for (int64_t i = 0; i < call->inputs[0]->size; i += 3)
        f((const double *)call->inputs[0]->data + i, (double *)call->outputs[0]->data + i);
    return true;
}

static bool rgb_to_hsv_reference(const ed_call *call)
{
    return plain_pixels_of(call, images_plain_hsv);
}

static bool hsv_to_rgb_reference(const ed_call *call)
{
    return plain_pixels_of(call, images_plain_rgb);
}

/* Three channels apart from each other. */
#define COLOR_SAMPLES                                                                              \
    ED_SAMPLES({.inputs = {ED_DISTINCT_IN(0.05, 0.95, 4, 3)}},                                     \
               {.inputs = {ED_DISTINCT_IN(0.05, 0.95, 2, 2, 3)}},                                  \
               {.inputs = {ED_DISTINCT_IN(0.1, 0.9, 3)}})

ED_OP(rgb_to_hsv) = {
    .name = "rgb_to_hsv",
    .doc = "hue, saturation and value of colors",
    .operands = {{"x", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = images_colors_infer,
    .batch = ed_batch_axes,
    .kernel = rgb_to_hsv_kernel,
    .gradient = rgb_to_hsv_gradient,
    .reference = rgb_to_hsv_reference,
    .samples = COLOR_SAMPLES,
};

/* Where the hue has no slope: multiples of a sixth. */
static const double sixths[] = {1.0 / 6, 2.0 / 6, 3.0 / 6, 4.0 / 6, 5.0 / 6, NAN};

ED_OP(hsv_to_rgb) = {
    .name = "hsv_to_rgb",
    .doc = "colors by hue, saturation and value",
    .operands = {{"x", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = images_colors_infer,
    .batch = ed_batch_axes,
    .kernel = hsv_to_rgb_kernel,
    .gradient = hsv_to_rgb_gradient,
    .reference = hsv_to_rgb_reference,
    .samples = COLOR_SAMPLES,
    .kinks = sixths,
};

ed_tensor *ed_rgb_to_hsv(ed_tensor *x)
{
    return CALL_OP(rgb_to_hsv, NULL, x);
}

ed_tensor *ed_hsv_to_rgb(ed_tensor *x)
{
    return CALL_OP(hsv_to_rgb, NULL, x);
}

/* ---- Linear in the channels ------------------------------------------------------------------ */

#define MATRIX_ATTRS(FIELD, T)                                                                     \
    FIELD(T, FLOATS, matrix, ED_NO_LIST, ED_REQUIRED, "3 numbers for each channel of x")
ED_OPTIONS(matrix_attrs, MATRIX_ATTRS);
#define MATRIX(...) ED_ATTRS(MATRIX_ATTRS, matrix_attrs, .matrix = {__VA_ARGS__, 9})

static bool color_times_infer(ed_call *call)
{
    if (((const matrix_attrs *)call->attrs)->matrix.count != 9)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "matrix must have 9 numbers");
    return images_colors_infer(call);
}

static bool color_times_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_TIMES, ((const matrix_attrs *)call->attrs)->matrix.values, 9);
    return true;
}

extern const ed_op ed_op_color_times, ed_op_color_grey;

static bool color_times_gradient(const ed_gradient_call *g)
{
    const double *m = ((const matrix_attrs *)g->attrs)->matrix.values;
    const double turned[] = {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]};
    g->dx[0] = CALL_OP(color_times, MATRIX(turned), g->dy[0]);
    return true;
}

static bool plain_times(const ed_call *call, const double *matrix)
{
    const double *x = (const double *)call->inputs[0]->data;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->inputs[0]->size; i += 3)
        for (int k = 0; k < 3; k++)
            y[i + k] = x[i] * matrix[k] + x[i + 1] * matrix[3 + k] + x[i + 2] * matrix[6 + k];
    return true;
}

static bool color_times_reference(const ed_call *call)
{
    return plain_times(call, ((const matrix_attrs *)call->attrs)->matrix.values);
}

#define COLOR_SPACE(symbol, text, ...)                                                             \
    static const double symbol##_matrix[] = {__VA_ARGS__};                                         \
    static bool symbol##_compose(ed_call *call)                                                    \
    {                                                                                              \
        return ed_call_result(call, 0,                                                             \
                              CALL_OP(color_times, MATRIX(symbol##_matrix), call->inputs[0]));     \
    }                                                                                              \
    static bool symbol##_reference(const ed_call *call)                                            \
    {                                                                                              \
        return plain_times(call, symbol##_matrix);                                                 \
    }                                                                                              \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"x", ED_SET_FLOAT, 'T'}},                                       \
                     .compose = symbol##_compose,                                                  \
                     .reference = symbol##_reference,                                              \
                     .samples = COLOR_SAMPLES};                                                    \
    ed_tensor *ed_##symbol(ed_tensor *x)                                                           \
    {                                                                                              \
        return CALL_OP(symbol, NULL, x);                                                           \
    }

COLOR_SPACE(rgb_to_yuv, "luminance and two differences of colors", 0.299, -0.14714119, 0.61497538,
            0.587, -0.28886916, -0.51496512, 0.114, 0.43601035, -0.10001026)
COLOR_SPACE(yuv_to_rgb, "colors by luminance and two differences", 1, 1, 1, 0, -0.394642334,
            2.03206185, 1.13988303, -0.58062185, 0)
COLOR_SPACE(rgb_to_yiq, "luminance and two differences of colors", 0.299, 0.59590059, 0.2115, 0.587,
            -0.27455667, -0.52273617, 0.114, -0.32134392, 0.31119955)
COLOR_SPACE(yiq_to_rgb, "colors by luminance and two differences", 1, 1, 1, 0.95598634, -0.27201283,
            -1.10674021, 0.6208248, -0.64720424, 1.70423049)

/* color_times: y = x matrix, dx = dy matrix^T */
ED_OP(color_times) = {
    .name = "color_times",
    .doc = "colors times a matrix [3, 3]",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(MATRIX_ATTRS, matrix_attrs),
    .infer = color_times_infer,
    .batch = ed_batch_axes,
    .kernel = color_times_kernel,
    .gradient = color_times_gradient,
    .reference = color_times_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 19, 3)},
                           .attrs = MATRIX(rgb_to_yuv_matrix)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3)}, .attrs = MATRIX(yiq_to_rgb_matrix)}),
};

static const double grey_of[] = {0.2989, 0.5870, 0.1140};

/* [..., from] gives [..., to]. */
static bool channels_infer(ed_call *call, int64_t from, int64_t to)
{
    if (!images_check_channels(call, from)) return false;
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = x->shape[i];
    shape[x->rank - 1] = to;
    return ed_call_output(call, 0, x->dtype, x->rank, shape);
}

static bool color_grey_infer(ed_call *call)
{
    return channels_infer(call, 3, 1);
}

static bool color_grey_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_GREY, grey_of, 3);
    return true;
}

static bool color_grey_gradient(const ed_gradient_call *g)
{
    g->dx[0] = ed_mul(g->dy[0], three(g->dtypes[0], grey_of[0], grey_of[1], grey_of[2]));
    return true;
}

static bool rgb_to_grayscale_compose(ed_call *call)
{
    if (!images_check_channels(call, 3)) return false;
    ed_tensor *y = CALL_OP(color_grey, NULL, images_to_adjust(call->inputs[0]));
    return ed_call_result(call, 0, images_as(y, ed_dtype_of(call->inputs[0])));
}

static bool rgb_to_grayscale_reference(const ed_call *call)
{
    const ed_dtype dtype = ed_dtype_of(call->operands[0]);
    for (int64_t i = 0; i < call->outputs[0]->size; i++) {
        double y = 0;
        for (int k = 0; k < 3; k++)
            y += grey_of[k] * images_plain_as(((const double *)call->inputs[0]->data)[3 * i + k],
                                              dtype, ED_FLOAT64);
        ((double *)call->outputs[0]->data)[i] = images_plain_as(y, ED_FLOAT64, dtype);
    }
    return true;
}

/* color_grey: y = weights x, dx = dy weights */
ED_OP(color_grey) = {
    .name = "color_grey",
    .doc = "rgb_to_grayscale of floats",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = color_grey_infer,
    .batch = ed_batch_axes,
    .kernel = color_grey_kernel,
    .gradient = color_grey_gradient,
    .reference = rgb_to_grayscale_reference,
    .samples = COLOR_SAMPLES,
};

ED_OP(rgb_to_grayscale) = {
    .name = "rgb_to_grayscale",
    .doc = "0.2989 r + 0.587 g + 0.114 b",
    .operands = {{"x", ED_SET_ADJUSTABLE, 'T'}},
    .flags = ED_OP_KEEPS_INTEGERS,
    .compose = rgb_to_grayscale_compose,
    .reference = rgb_to_grayscale_reference,
    .samples = COLOR_SAMPLES,
};

ed_tensor *ed_rgb_to_grayscale(ed_tensor *x)
{
    return CALL_OP(rgb_to_grayscale, NULL, x);
}

extern const ed_op ed_op_color_spread;

static bool color_spread_infer(ed_call *call)
{
    return channels_infer(call, 1, 3);
}

static bool color_spread_kernel(ed_call *call)
{
    images_map_colors(call, COLOR_SPREAD, NULL, 0);
    return true;
}

static bool color_spread_gradient(const ed_gradient_call *g)
{
    g->dx[0] = over_channels(g->dy[0]);
    return true;
}

static bool grayscale_to_rgb_compose(ed_call *call)
{
    static const int64_t last[] = {1, 1, 1, 1, 1, 1, 1, 3};
    ed_tensor *x = call->inputs[0];
    const int rank = ed_rank(x);
    if (!images_check_channels(call, 1)) return false;
    return ed_call_result(call, 0,
                          ED_SET_FLOAT & 1u << ed_dtype_of(x)
                              ? CALL_OP(color_spread, NULL, x)
                              : ed_tile(x, ((ed_ints){last + ED_MAX_RANK - rank, rank})));
}

static bool grayscale_to_rgb_reference(const ed_call *call)
{
    for (int64_t i = 0; i < call->outputs[0]->size; i++)
        ((double *)call->outputs[0]->data)[i] = ((const double *)call->inputs[0]->data)[i / 3];
    return true;
}

/* color_spread: y = x for each channel, dx = their sum of dy */
ED_OP(color_spread) = {
    .name = "color_spread",
    .doc = "grayscale_to_rgb of floats",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = color_spread_infer,
    .batch = ed_batch_axes,
    .kernel = color_spread_kernel,
    .gradient = color_spread_gradient,
    .reference = grayscale_to_rgb_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 19, 1)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1)}}),
};

ED_OP(grayscale_to_rgb) = {
    .name = "grayscale_to_rgb",
    .doc = "three channels that are the one",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = grayscale_to_rgb_compose,
    .reference = grayscale_to_rgb_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 1)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1)}}),
};

ed_tensor *ed_grayscale_to_rgb(ed_tensor *x)
{
    return CALL_OP(grayscale_to_rgb, NULL, x);
}

#endif
