/*
 * resize: each axis by itself is a matrix, of which every row has its numbers in a few places. The
 * op resample applies such a matrix along height and width, or its transpose, which is its
 * gradient; whose gradient is resample again. resize is made of it, of casts, and for nearest of
 * gather.
 */
#include "ops/batch.h"
#include "ops/images.h"
#include "ops/resize_call.h"
#include <math.h>
#include <string.h>

/* ---- Filters --------------------------------------------------------------------------------- */

static double triangle_filter(double x)
{
    return x < 1 ? 1 - x : 0;
}

static double keys_filter(double x)
{
    if (x >= 2) return 0;
    return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
}

static double mitchell_filter(double x)
{
    if (x >= 2) return 0;
    return x < 1 ? (7.0 / 6 * x - 2) * x * x + 8.0 / 9
                 : ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9;
}

static double gaussian_filter(double x)
{
    return x < 1.5 ? exp(-2 * x * x) : 0;
}

/* sin(pi x) / (pi x), exact at whole numbers. */
static double sinc(double x)
{
    if (x == 0) return 1;
    return x == floor(x) ? 0 : sin(M_PI * x) / (M_PI * x);
}

static double lanczos3_filter(double x)
{
    return x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static double lanczos5_filter(double x)
{
    return x < 5 ? sinc(x) * sinc(x / 5) : 0;
}

/* A method by its name; without a function it is area. */
typedef struct filter {
    const char *name;
    double (*weight)(double x);
    double radius;
} filter;

static const filter *filter_of(const char *name)
{
    static const filter filters[] = {{"bilinear", triangle_filter, 1},
                                     {"bicubic", keys_filter, 2},
                                     {"lanczos3", lanczos3_filter, 3},
                                     {"lanczos5", lanczos5_filter, 5},
                                     {"gaussian", gaussian_filter, 1.5},
                                     {"mitchellcubic", mitchell_filter, 2},
                                     {"area", NULL, 0.5}};
    const filter *f = filters;
    while (strcmp(f->name, name) != 0) f++;
    return f;
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* How an axis is resampled. */
typedef struct sampling {
    const filter *filter;
    double step;   /* inputs to an output */
    double widest; /* the filter's radius in inputs */
} sampling;

static sampling sampling_of(const filter *f, bool antialias, int64_t in, int64_t out)
{
    const double step = (double)in / (double)out;
    const double scale = !f->weight || (antialias && step > 1) ? step : 1;
    return (sampling){f, step, f->radius * scale};
}

/* What output o has of input i. */
static double weight_of(const sampling *s, int64_t in, int64_t out, int64_t o, int64_t i)
{
    if (!s->filter->weight) { /* the part of the input that the output covers */
        const double begin = (double)o * (double)in / (double)out,
                     end = (double)(o + 1) * (double)in / (double)out;
        return fmax(0, fmin(end, (double)i + 1) - fmax(begin, (double)i));
    }
    const double center = ((double)o + 0.5) * (double)in / (double)out;
    return s->filter->weight(fabs((double)i + 0.5 - center) * s->filter->radius / s->widest);
}

/* The inputs that output o may use, of `in`. */
static void inputs_of(const sampling *s, int64_t in, int64_t out, int64_t o, int64_t *begin,
                      int64_t *end)
{
    const double center = ((double)o + 0.5) * (double)in / (double)out;
    const double from = floor(center - s->widest - 0.5), to = ceil(center + s->widest + 0.5);
    *begin = from < 0 ? 0 : (int64_t)from;
    *end = to > (double)in ? in : (int64_t)to;
}

static void axis_free(resize_axis *a)
{
    memory_free(a->first);
    memory_free(a->weights);
}

/* Room for weights, at most `most` for each output. */
static bool axis_make(resize_axis *a, int64_t in, int64_t out, int64_t most)
{
    size_t weights;
    *a = (resize_axis){.in = in, .out = out, .most = most};
    if (!memory_mul((size_t)most, (size_t)out, &weights) ||
        !memory_mul(weights, sizeof(double), &weights))
        weights = SIZE_MAX / 2;
    a->first = memory_alloc((size_t)out * 2 * sizeof(int64_t));
    a->weights = a->first ? memory_zalloc(weights) : NULL;
    a->count = a->first + out;
    if (!a->weights) axis_free(a);
    return a->weights;
}

/* The weights of output o, without zeros at the ends; their sum is 1. */
static void axis_fill(resize_axis *a, const sampling *s, int64_t o)
{
    double *to = (double *)a->weights + o * a->most, sum = 0;
    int64_t begin, end;
    inputs_of(s, a->in, a->out, o, &begin, &end);
    while (begin + 1 < end && weight_of(s, a->in, a->out, o, begin) == 0) begin++;
    while (begin + 1 < end && weight_of(s, a->in, a->out, o, end - 1) == 0) end--;
    for (int64_t i = begin; i < end; i++) sum += to[i - begin] = weight_of(s, a->in, a->out, o, i);
    for (int64_t i = begin; i < end; i++) to[i - begin] /= sum;
    a->first[o] = begin;
    a->count[o] = end - begin;
}

/* From `in` to `out` pixels. false without memory. */
static bool axis_forward(resize_axis *a, const filter *f, bool antialias, int64_t in, int64_t out)
{
    const sampling s = sampling_of(f, antialias, in, out);
    const double most = fmin((double)in, 2 * ceil(s.widest) + 3);
    if (!axis_make(a, in, out, (int64_t)most)) return false;
    for (int64_t o = 0; o < out; o++) axis_fill(a, &s, o);
    return true;
}

/* The transpose: a place of `a` for each place of `of`. */
static bool axis_turn(resize_axis *a, const resize_axis *of)
{
    int64_t most = 1, *first = memory_alloc((size_t)of->in * 2 * sizeof *first), *last;
    if (!first) return false;
    last = first + of->in;
    for (int64_t i = 0; i < of->in; i++) first[i] = of->out, last[i] = -1;
    for (int64_t o = 0; o < of->out; o++)
        for (int64_t i = of->first[o]; i < of->first[o] + of->count[o]; i++) {
            if (((const double *)of->weights)[o * of->most + i - of->first[o]] == 0) continue;
            if (first[i] > o) first[i] = o;
            last[i] = o;
        }
    for (int64_t i = 0; i < of->in; i++)
        if (last[i] - first[i] >= most) most = last[i] - first[i] + 1;
    const bool ok = axis_make(a, of->out, of->in, most);
    for (int64_t i = 0; ok && i < of->in; i++) {
        a->first[i] = last[i] < 0 ? 0 : first[i];
        a->count[i] = last[i] < 0 ? 1 : last[i] - first[i] + 1; /* no output: 0 times the first */
    }
    for (int64_t o = 0; ok && o < of->out; o++)
        for (int64_t k = 0; k < of->count[o]; k++) {
            const double w = ((const double *)of->weights)[o * of->most + k];
            const int64_t i = of->first[o] + k;
            if (w != 0) ((double *)a->weights)[i * a->most + o - a->first[i]] = w;
        }
    memory_free(first);
    return ok;
}

/* Weights in the result's dtype, in place; where loops of vectors have to stop. */
static void axis_finish(resize_axis *a, ed_dtype dtype)
{
    const int64_t n = a->most * a->out;
    for (int64_t i = 0; dtype == ED_FLOAT32 && i < n; i++) {
        const float w = (float)((const double *)a->weights)[i];
        memcpy((char *)a->weights + i * (int64_t)sizeof w, &w, sizeof w);
    }
    for (int64_t o = 0; o < a->out; o++)
        a->largest = a->count[o] > a->largest ? a->count[o] : a->largest;
    while (a->inner < a->out - 1 && a->first[a->inner] + a->count[a->inner] < a->in) a->inner++;
}

static bool axis_of(resize_axis *a, const filter *f, bool antialias, bool transposed, int64_t in,
                    int64_t out, ed_dtype dtype)
{
    resize_axis plain;
    bool ok;
    if (transposed) {
        ok = axis_forward(&plain, f, antialias, out, in);
        if (!ok) return false;
        ok = axis_turn(a, &plain);
        axis_free(&plain);
    } else
        ok = axis_forward(a, f, antialias, in, out);
    if (ok) axis_finish(a, dtype);
    return ok;
}

/* ---- resample -------------------------------------------------------------------------------- */

#define RESAMPLE_ATTRS(FIELD, T)                                                                   \
    FIELD(T, CHOICE, method, "bilinear",                                                           \
          ED_ONE_OF("bilinear", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",             \
                    "mitchellcubic"),                                                              \
          "how pixels are made")                                                                   \
    FIELD(T, BOOL, antialias, false, ED_ANY, "larger filters where the image shrinks")             \
    FIELD(T, BOOL, transposed, false, ED_ANY, "from the result of such a call to its operand")     \
    FIELD(T, INTS, size, ED_NO_LIST, ED_REQUIRED, "height and width of the result")
ED_OPTIONS(resample_attrs, RESAMPLE_ATTRS);
#define RESAMPLE(...) ED_ATTRS(RESAMPLE_ATTRS, resample_attrs, __VA_ARGS__)

/* A size of images that an option gives. */
static bool check_size(const ed_call *call, ed_ints size)
{
    if (size.values && size.count == 2 && size.values[0] >= 1 && size.values[1] >= 1) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "size must be [height, width], each >= 1, got %s",
                        text_of_ints(size.values, size.values ? size.count : 0).s);
}

static bool resample_infer(ed_call *call)
{
    const resample_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (x->rank != 4 || x->shape[1] < 1 || x->shape[2] < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must be [batch, height, width, channels] with pixels, got %s",
                            text_of_tensor(x).s);
    if (!check_size(call, o->size)) return false;
    const int64_t shape[] = {x->shape[0], o->size.values[0], o->size.values[1], x->shape[3]};
    return ed_call_output(call, 0, x->dtype == ED_UINT8 ? ED_FLOAT32 : x->dtype, 4, shape);
}

static bool resample_kernel(ed_call *call)
{
    const resample_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const filter *f = filter_of(o->method);
    resize_axis rows, columns;
    if (!y->size) return true;
    if (!axis_of(&rows, f, o->antialias, o->transposed, x->shape[1], y->shape[1], y->dtype))
        return false;
    bool ok = axis_of(&columns, f, o->antialias, o->transposed, x->shape[2], y->shape[2], y->dtype);
    if (ok) {
        ok = resize_run(x, y, &rows, &columns);
        axis_free(&columns);
    }
    axis_free(&rows);
    return ok;
}

extern const ed_op ed_op_resample;

static bool resample_gradient(const ed_gradient_call *g)
{
    const resample_attrs *o = g->attrs;
    if (g->needs[0])
        g->dx[0] =
            CALL_OP(resample,
                    RESAMPLE(.method = o->method, .antialias = o->antialias,
                             .transposed = !o->transposed, .size = {g->shapes[0].values + 1, 2}),
                    g->dy[0]);
    return true;
}

/* ---- The same by matrices -------------------------------------------------------------------- */

/* What output o has of input i, before the sum is made 1; in whole numbers as far as possible. */
static double plain_weight(const filter *f, bool antialias, int64_t in, int64_t out, int64_t o,
                           int64_t i)
{
    const double step = (double)in / (double)out, grown = antialias && step > 1 ? step : 1;
    const double covered = fmin((double)((o + 1) * in), (double)((i + 1) * out)) -
                           fmax((double)(o * in), (double)(i * out));
    const double apart = fabs((double)((2 * i + 1) * out - (2 * o + 1) * in)) / (double)(2 * out);
    const double w = f->weight ? f->weight(apart / grown) : fmax(0, covered);
    return fabs(w) < 1e-14 ? 0 : w;
}

/* The matrix [out, in] of an axis. */
static void plain_matrix(const filter *f, bool antialias, int64_t in, int64_t out, double *m)
{
    for (int64_t o = 0; o < out; o++) {
        double sum = 0;
        for (int64_t i = 0; i < in; i++)
            sum += m[o * in + i] = plain_weight(f, antialias, in, out, o, i);
        for (int64_t i = 0; i < in; i++) m[o * in + i] /= sum;
    }
}

/* The matrix of an axis of the call, [to, from], and from where to where row r is not 0. */
static double plain_at(const double *m, const resample_attrs *o, int64_t from, int64_t to,
                       int64_t r, int64_t i)
{
    return o->transposed ? m[i * to + r] : m[r * from + i];
}

static void plain_range(const double *m, const resample_attrs *o, int64_t from, int64_t to,
                        int64_t r, int64_t range[2])
{
    range[0] = 0;
    range[1] = from;
    while (range[0] + 1 < range[1] && plain_at(m, o, from, to, r, range[0]) == 0) range[0]++;
    while (range[0] + 1 < range[1] && plain_at(m, o, from, to, r, range[1] - 1) == 0) range[1]--;
    if (range[1] - range[0] == 1 && plain_at(m, o, from, to, r, range[0]) == 0)
        range[0] = 0, range[1] = 1;
}

/* Pixel (r, c) of image n: as in the kernel, the sums along the axis that comes first are numbers
 * of their own, which may overflow. */
static double plain_pixel(const ed_call *call, const double *rows, const double *columns, int64_t n,
                          int64_t r, int64_t c, int64_t channel)
{
    const resample_attrs *o = call->attrs;
    const int64_t *in = call->inputs[0]->shape, *out = call->outputs[0]->shape;
    const double *x = (const double *)call->inputs[0]->data + n * in[1] * in[2] * in[3] + channel;
    const bool across_first = out[1] >= in[1];
    int64_t down[2], across[2];
    plain_range(rows, o, in[1], out[1], r, down);
    plain_range(columns, o, in[2], out[2], c, across);
    const int64_t *outer = across_first ? down : across, *inner = across_first ? across : down;
    double y = 0;
    for (int64_t a = outer[0]; a < outer[1]; a++) {
        double sum = 0;
        for (int64_t b = inner[0]; b < inner[1]; b++) {
            const int64_t i = across_first ? a : b, j = across_first ? b : a;
            const double w = across_first ? plain_at(columns, o, in[2], out[2], c, j)
                                          : plain_at(rows, o, in[1], out[1], r, i);
            sum += w * x[(i * in[2] + j) * in[3]];
        }
        y += sum * (across_first ? plain_at(rows, o, in[1], out[1], r, a)
                                 : plain_at(columns, o, in[2], out[2], c, a));
    }
    return y;
}

static bool resample_reference(const ed_call *call)
{
    const resample_attrs *o = call->attrs;
    const int64_t *in = call->inputs[0]->shape, *out = call->outputs[0]->shape;
    double *y = (double *)call->outputs[0]->data;
    double *m[2];
    if (!call->outputs[0]->size) return true;
    for (int a = 0; a < 2; a++) {
        const int64_t from = in[a + 1], to = out[a + 1];
        m[a] = memory_alloc((size_t)(from * to) * sizeof *m[a]);
        if (m[a])
            plain_matrix(filter_of(o->method), o->antialias, o->transposed ? to : from,
                         o->transposed ? from : to, m[a]);
    }
    const bool ok = m[0] && m[1];
    for (int64_t i = 0; ok && i < call->outputs[0]->size; i++) {
        const int64_t p = i / out[3];
        y[i] = plain_pixel(call, m[0], m[1], p / out[2] / out[1], p / out[2] % out[1], p % out[2],
                           i % out[3]);
    }
    memory_free(m[0]);
    memory_free(m[1]);
    return ok;
}

#define RESAMPLED(h, w, c, ...)                                                                    \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(-2, 2, 2, h, w, c)}, .attrs = RESAMPLE(__VA_ARGS__)                \
    }

ED_OP(resample) = {
    .name = "resample",
    .doc = "images [batch, height, width, channels] in another size",
    .operands = {{"x", ED_SET_FLOAT | 1 << ED_UINT8, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(RESAMPLE_ATTRS, resample_attrs),
    .infer = resample_infer,
    .batch = batch_examples,
    .kernel = resample_kernel,
    .gradient = resample_gradient,
    .reference = resample_reference,
    .samples = ED_SAMPLES(
        RESAMPLED(4, 5, 3, .size = ED_SAMPLE_INTS(7, 9)),
        RESAMPLED(7, 5, 3, .size = ED_SAMPLE_INTS(3, 4), .method = "bicubic", .antialias = true),
        RESAMPLED(5, 4, 1, .size = ED_SAMPLE_INTS(9, 2), .method = "lanczos3"),
        RESAMPLED(3, 7, 4, .size = ED_SAMPLE_INTS(2, 5), .method = "area"),
        RESAMPLED(3, 4, 6, .size = ED_SAMPLE_INTS(9, 8), .method = "bicubic"),
        RESAMPLED(7, 4, 2, .size = ED_SAMPLE_INTS(3, 5), .method = "gaussian", .antialias = true),
        RESAMPLED(3, 6, 1, .size = ED_SAMPLE_INTS(5, 4), .method = "mitchellcubic"),
        RESAMPLED(9, 3, 1, .size = ED_SAMPLE_INTS(4, 5), .method = "lanczos5", .antialias = true),
        RESAMPLED(7, 9, 3, .size = ED_SAMPLE_INTS(4, 5), .transposed = true),
        RESAMPLED(3, 5, 2, .size = ED_SAMPLE_INTS(9, 4), .method = "area", .transposed = true)),
};

/* ---- resize ---------------------------------------------------------------------------------- */

/* The size of the result, of images of height[0] by height[1]; the ratio as TensorFlow has it, in
 * float32. */
static void wanted_size(const resize_attrs *o, const int64_t image[2], int64_t size[2])
{
    const int64_t *given = o->size.values;
    const float ratio = fminf((float)given[0] / (float)image[0], (float)given[1] / (float)image[1]);
    for (int a = 0; a < 2; a++) {
        const float scaled = rintf(ratio * (float)image[a]);
        size[a] = !o->preserve_aspect_ratio || scaled >= (float)given[a] ? given[a]
                  : scaled < 1                                           ? 1
                                                                         : (int64_t)scaled;
    }
}

/* The pixel that `nearest` takes for pixel o, by TensorFlow's float32 as long as that can count. */
static int64_t nearest_of(int64_t o, int64_t in, int64_t out)
{
    const float scale = (float)in / (float)out;
    const int64_t at = out < 1 << 22 ? (int64_t)floorf(((float)o + 0.5F) * scale)
                                     : (int64_t)floor(((double)o + 0.5) * (double)in / (double)out);
    return at < in ? at : in - 1;
}

static ed_tensor *nearest_along(ed_tensor *x, int axis, int64_t out)
{
    const int64_t in = ed_dim(x, axis);
    ed_tensor *indices = in == out ? NULL : scope_give(tensor_new(ED_INT64, 1, &out));
    if (!indices) return in == out ? x : NULL;
    for (int64_t o = 0; o < out; o++) ((int64_t *)indices->data)[o] = nearest_of(o, in, out);
    return ed_gather(x, indices, .axis = axis);
}

static bool resize_compose(ed_call *call)
{
    const resize_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    const int rank = ed_rank(x);
    const ed_dtype dtype = ed_dtype_of(x);
    const int64_t *image = ed_shape(x).values + rank - 3;
    int64_t size[2];
    if (!images_check(call, x)) return false;
    if (image[0] < 1 || image[1] < 1)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "images must have pixels, got %s",
                            text_of_tensor(x).s);
    if (!check_size(call, o->size)) return false;
    wanted_size(o, image, size);
    if (!strcmp(o->method, "nearest")) {
        ed_tensor *rows = nearest_along(x, rank - 3, size[0]);
        ed_tensor *y = rows ? nearest_along(rows, rank - 2, size[1]) : NULL;
        return ed_call_result(call, 0, y == x ? ed_identity(x) : y);
    }
    if (dtype == ED_BOOL)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "bool is for method 'nearest', got %s",
                            text_of_tensor(x).s);
    if (dtype != ED_FLOAT64 && dtype != ED_UINT8) x = ed_cast(x, ED_FLOAT32);
    if (rank == 3) x = ed_expand_dims(x, 0);
    ed_tensor *y = CALL_OP(
        resample, RESAMPLE(.method = o->method, .antialias = o->antialias, .size = {size, 2}), x);
    return ed_call_result(call, 0, rank == 3 ? ed_squeeze(y, .axis = ED_AXES(0)) : y);
}

static bool resize_reference(const ed_call *call)
{
    const resize_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t *in = x->shape + x->rank - 3, *out = y->shape + y->rank - 3;
    if (strcmp(o->method, "nearest") != 0) {
        ed_tensor from = *x, to = *y;
        from.rank = to.rank = 4;
        from.shape[0] = to.shape[0] = x->rank == 4 ? x->shape[0] : 1;
        memmove(from.shape + 1, x->shape + x->rank - 3, 3 * sizeof *from.shape);
        memmove(to.shape + 1, y->shape + y->rank - 3, 3 * sizeof *to.shape);
        const ed_call with = {
            .attrs = RESAMPLE(.method = o->method, .antialias = o->antialias),
            .n_inputs = 1,
            .n_outputs = 1,
            .inputs = (ed_tensor *[]){&from},
            .outputs = (ed_tensor *[]){&to},
        };
        return resample_reference(&with);
    }
    for (int64_t i = 0; i < y->size; i++) {
        const int64_t p = i / out[2], n = p / out[1] / out[0];
        const int64_t r =
            (int64_t)(((float)(p / out[1] % out[0]) + 0.5F) * ((float)in[0] / (float)out[0]));
        const int64_t c = (int64_t)(((float)(p % out[1]) + 0.5F) * ((float)in[1] / (float)out[1]));
        ((double *)y->data)[i] =
            ((const double *)x->data)[((n * in[0] + (r < in[0] ? r : in[0] - 1)) * in[1] +
                                       (c < in[1] ? c : in[1] - 1)) *
                                          in[2] +
                                      i % out[2]];
    }
    return true;
}

#define RESIZE_SAMPLE(...)                                                                         \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(-2, 2, 3, 5, 2)}, .attrs = RESIZED(__VA_ARGS__)                    \
    }

ED_OP(resize) = {
    .name = "resize",
    .doc = "images in another size",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(RESIZE_ATTRS, resize_attrs),
    .compose = resize_compose,
    .reference = resize_reference,
    .samples = ED_SAMPLES(
        RESIZE_SAMPLE(.size = ED_SAMPLE_INTS(7, 4)),
        RESIZE_SAMPLE(.size = ED_SAMPLE_INTS(2, 9), .method = "nearest"),
        RESIZE_SAMPLE(.size = ED_SAMPLE_INTS(2, 9), .method = "bicubic", .antialias = true),
        RESIZE_SAMPLE(.size = ED_SAMPLE_INTS(6, 8), .preserve_aspect_ratio = true),
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 1)},
         .attrs = RESIZED(.size = ED_SAMPLE_INTS(8, 6), .method = "nearest")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3)},
         .attrs = RESIZED(.size = ED_SAMPLE_INTS(2, 3), .antialias = true)}),
};

ed_tensor *ed_resize_with(ed_tensor *x, ed_ints size, const ed_resize_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_RESIZE_OPTIONS, options);
    return CALL_OP(resize, ED_OPTIONS_FROM(ED_RESIZE_OPTIONS, options, resize_attrs, .size = size),
                   x);
}
