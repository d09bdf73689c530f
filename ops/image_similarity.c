/*
 * How alike two images are: psnr, ssim and ssim_multiscale, compositions. The filter of the last
 * two is applied along one axis after the other.
 */
#include "ops/images.h"
#include <math.h>
#include <string.h>

#define TWO_IMAGES                                                                                 \
    {"a", ED_SET_IMAGE, 'T'},                                                                      \
    {                                                                                              \
        "b", ED_SET_IMAGE, 'T'                                                                     \
    }

static bool check_two(const ed_call *call)
{
    const ed_ints a = ed_shape(call->inputs[0]), b = ed_shape(call->inputs[1]);
    if (!images_check(call, call->inputs[0])) return false;
    if (a.count == b.count && !memcmp(a.values, b.values, (size_t)a.count * sizeof *a.values))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "a and b must have the same shape, got %s and %s",
                        text_of_ints(a.values, a.count).s, text_of_ints(b.values, b.count).s);
}

/* The range of values, as that of floats. */
static double range_as_floats(const ed_call *call, double max_val)
{
    return max_val / images_largest(ed_dtype_of(call->operands[0]));
}

/* ---- psnr ------------------------------------------------------------------------------------ */

#define PSNR_ATTRS(FIELD, T) FIELD(T, FLOAT, max_val, 1, ED_ABOVE(0), "the range of values")
ED_OPTIONS(psnr_attrs, PSNR_ATTRS);
#define PSNR(...) ED_ATTRS(PSNR_ATTRS, psnr_attrs, __VA_ARGS__)

static bool psnr_compose(ed_call *call)
{
    const double range = range_as_floats(call, ((const psnr_attrs *)call->attrs)->max_val);
    if (!check_two(call)) return false;
    ed_tensor *a = images_as_floats(call->inputs[0]), *b = images_as_floats(call->inputs[1]);
    ed_tensor *mean = ed_reduce_mean(ed_squared_difference(a, b), .axis = ED_AXES(-3, -2, -1));
    /* Equal images: infinity, and no slope rather than NaN. */
    ed_tensor *same = ed_equal(mean, 0.0), *error = ed_log(ed_where(same, 1.0, mean));
    ed_tensor *y = ed_add(ed_mul(error, -10 / log(10)), 20 * log10(range));
    return ed_call_result(call, 0, ed_where(same, (double)INFINITY, y));
}

/* Element i of operand `which` as a float. */
static double plain_float(const ed_call *call, int which, int64_t i)
{
    return images_plain_as(((const double *)call->inputs[which]->data)[i],
                           ed_dtype_of(call->operands[which]), ED_FLOAT64);
}

static bool psnr_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const double range = range_as_floats(call, ((const psnr_attrs *)call->attrs)->max_val);
    for (int64_t n = 0; n < y->size; n++) {
        const int64_t each = x->size / y->size;
        double sum = 0;
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            sum += pow(plain_float(call, 0, i) - plain_float(call, 1, i), 2);
        ((double *)y->data)[n] = 20 * log10(range) - 10 * log10(sum / (double)each);
    }
    return true;
}

ED_OP(psnr) = {
    .name = "psnr",
    .doc = "10 log10(max_val^2 / the mean squared difference) of images",
    .operands = {TWO_IMAGES},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(PSNR_ATTRS, psnr_attrs),
    .compose = psnr_compose,
    .reference = psnr_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 9, 3, 4, 2), ED_SAMPLE_IN(0, 9, 3, 4, 2)}},
                          {.inputs = {ED_SAMPLE_IN(0, 9, 2, 2, 3, 1),
                                      ED_SAMPLE_IN(0, 9, 2, 2, 3, 1)},
                           .attrs = PSNR(.max_val = 255)}),
};

ed_tensor *ed_psnr(ed_tensor *a, ed_tensor *b, double max_val)
{
    return CALL_OP(psnr, PSNR(.max_val = max_val), a, b);
}

/* ---- ssim ------------------------------------------------------------------------------------ */

#define SSIM_ATTRS(FIELD, T)       PSNR_ATTRS(FIELD, T) ED_SSIM_OPTIONS(FIELD, T)
#define MULTISCALE_ATTRS(FIELD, T) PSNR_ATTRS(FIELD, T) ED_SSIM_FILTER(FIELD, T)
ED_OPTIONS(ssim_attrs, SSIM_ATTRS);
ED_OPTIONS(multiscale_attrs, MULTISCALE_ATTRS);
#define SSIM(...)       ED_ATTRS(SSIM_ATTRS, ssim_attrs, __VA_ARGS__)
#define MULTISCALE(...) ED_ATTRS(MULTISCALE_ATTRS, multiscale_attrs, __VA_ARGS__)

/* The filter along one axis: weights, whose sum is 1. */
static void gaussian(int64_t n, double sigma, double *weights)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double at = (double)i - (double)(n - 1) / 2;
        sum += weights[i] = exp(-at * at / (2 * sigma * sigma));
    }
    for (int64_t i = 0; i < n; i++) weights[i] /= sum;
}

/* Few channels that come last fill little of a vector. So rows of up to so many are filtered as one
 * line of numbers each, whose pixels are `channels` apart, by filters up to that size. */
enum { FLAT_CHANNELS = 15, FLAT_FILTER = 16 };

static bool is_flat(int64_t channels, int64_t filter_size)
{
    return channels >= 1 && channels <= FLAT_CHANNELS && filter_size <= FLAT_FILTER;
}

/* The filter as [n, 1, channels, 1], of flat rows [n, 1, 1, 1]. */
static ed_tensor *filter_tensor(const ssim_attrs *o, ed_dtype dtype, int64_t channels)
{
    const int64_t n = o->filter_size;
    ed_tensor *w = scope_give(tensor_new(ED_FLOAT64, 1, &n));
    if (!w) return NULL;
    gaussian(n, o->filter_sigma, (double *)w->data);
    return ed_broadcast_to(ed_reshape(ed_cast(w, dtype), ED_SHAPE(n, 1, 1, 1)),
                           ED_SHAPE(n, 1, is_flat(channels, n) ? 1 : channels, 1));
}

/* Means by the filter. */
static ed_tensor *filtered(ed_tensor *x, ed_tensor *filter)
{
    if (!x || !filter) return NULL;
    const int64_t *shape = ed_shape(x).values, n = ed_dim(filter, 0), c = shape[3];
    ed_tensor *across = ed_transpose(filter, .perm = ED_AXES(1, 0, 2, 3));
    if (!is_flat(c, n)) return ed_depthwise_conv2d(ed_depthwise_conv2d(x, filter), across);
    ed_tensor *y = ed_reshape(x, ED_SHAPE(shape[0], 1, shape[1], shape[2] * c));
    y = ed_depthwise_conv2d(y, filter, .data_format = "NCHW");
    y = ed_depthwise_conv2d(y, across, .dilations = ED_INTS(1, c), .data_format = "NCHW");
    return ed_reshape(y, ED_SHAPE(shape[0], shape[1] - n + 1, shape[2] - n + 1, c));
}

/* Of images [n, h, w, c] of floats: how alike means are times how alike contrast and structure are,
 * which goes to *structure, at each place of the filter. NULL on failure. */
static ed_tensor *similarity(const ssim_attrs *o, double range, ed_tensor *a, ed_tensor *b,
                             ed_tensor **structure)
{
    const double c1 = pow(o->k1 * range, 2), c2 = pow(o->k2 * range, 2);
    ed_tensor *filter = a ? filter_tensor(o, ed_dtype_of(a), ed_dim(a, 3)) : NULL;
    ed_tensor *mean_a = filtered(a, filter), *mean_b = filtered(b, filter);
    ed_tensor *means = ed_mul(ed_mul(mean_a, mean_b), 2.0);
    ed_tensor *squares = ed_add(ed_square(mean_a), ed_square(mean_b));
    ed_tensor *products = ed_mul(filtered(ed_mul(a, b), filter), 2.0);
    ed_tensor *both = filtered(ed_add(ed_square(a), ed_square(b)), filter);
    *structure = ed_div(ed_add(ed_sub(products, means), c2), ed_add(ed_sub(both, squares), c2));
    return ed_mul(ed_div(ed_add(means, c1), ed_add(squares, c1)), *structure);
}

static bool check_filter(const ed_call *call, int64_t size, int64_t height, int64_t width)
{
    return (size <= height && size <= width) ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "filter_size is %lld; images, here %lld by %lld, must not be smaller",
                        (long long)size, (long long)height, (long long)width);
}

/* Images as floats [n, h, w, c]. */
static ed_tensor *batch_of(ed_tensor *x)
{
    x = images_as_floats(x);
    return x && ed_rank(x) == 3 ? ed_expand_dims(x, 0) : x;
}

/* Gives one number, or map, for each image: not for a batch of one that was none. */
static bool give_each(ed_call *call, ed_tensor *y)
{
    const bool one = ed_rank(call->inputs[0]) == 3;
    return ed_call_result(call, 0, one ? ed_squeeze(y, .axis = ED_AXES(0)) : y);
}

static bool ssim_compose(ed_call *call)
{
    const ssim_attrs *o = call->attrs;
    ed_tensor *structure;
    if (!check_two(call)) return false;
    ed_tensor *a = batch_of(call->inputs[0]), *b = batch_of(call->inputs[1]);
    if (!a || !b || !check_filter(call, o->filter_size, ed_dim(a, 1), ed_dim(a, 2))) return false;
    ed_tensor *y = similarity(o, range_as_floats(call, o->max_val), a, b, &structure);
    if (!o->return_index_map) y = ed_reduce_mean(y, .axis = ED_AXES(1, 2));
    return give_each(call, ed_reduce_mean(y, .axis = ED_AXES(-1)));
}

/* Images by plain loops: [n, h, w, c] of float64. */
typedef struct plain_images {
    int64_t n, h, w, c;
    double *data[2];
} plain_images;

/* Similarity and structure at one place of the filter. */
static void plain_similarity(const plain_images *p, const ssim_attrs *o, double range, int64_t at,
                             double result[2])
{
    double w[64], ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
    gaussian(o->filter_size, o->filter_sigma, w);
    for (int64_t i = 0; i < o->filter_size; i++)
        for (int64_t j = 0; j < o->filter_size; j++) {
            const double x = p->data[0][at + (i * p->w + j) * p->c],
                         y = p->data[1][at + (i * p->w + j) * p->c], weight = w[i] * w[j];
            ma += weight * x, mb += weight * y;
            aa += weight * x * x, bb += weight * y * y, ab += weight * x * y;
        }
    const double c1 = pow(o->k1 * range, 2), c2 = pow(o->k2 * range, 2);
    result[1] = (2 * ab - 2 * ma * mb + c2) / (aa + bb - (ma * ma + mb * mb) + c2);
    result[0] = result[1] * (2 * ma * mb + c1) / (ma * ma + mb * mb + c1);
}

/* Means of an image's channel; or the similarity of all places to `map`, added over channels. */
static void plain_means(const plain_images *p, const ssim_attrs *o, double range, int64_t n,
                        int64_t c, double means[2], double *map)
{
    const int64_t height = p->h - o->filter_size + 1, width = p->w - o->filter_size + 1;
    means[0] = means[1] = 0;
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            double here[2];
            plain_similarity(p, o, range, ((n * p->h + i) * p->w + j) * p->c + c, here);
            if (map) map[i * width + j] += here[0] / (double)p->c;
            for (int k = 0; k < 2; k++) means[k] += here[k] / (double)(height * width);
        }
}

static bool plain_batch(const ed_call *call, plain_images *p)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t *image = x->shape + x->rank - 3;
    *p = (plain_images){
        .n = x->rank == 4 ? x->shape[0] : 1, .h = image[0], .w = image[1], .c = image[2]};
    for (int k = 0; k < 2; k++) {
        if (!(p->data[k] = memory_alloc((size_t)x->size * sizeof(double)))) return false;
        for (int64_t i = 0; i < x->size; i++) p->data[k][i] = plain_float(call, k, i);
    }
    return true;
}

static void plain_free(plain_images *p)
{
    memory_free(p->data[0]);
    memory_free(p->data[1]);
}

static bool ssim_reference(const ed_call *call)
{
    const ssim_attrs *o = call->attrs;
    const double range = range_as_floats(call, o->max_val);
    double *y = (double *)call->outputs[0]->data;
    const int64_t size = call->outputs[0]->size;
    plain_images p;
    const bool ok = plain_batch(call, &p);
    for (int64_t i = 0; ok && i < size; i++) y[i] = p.c ? 0 : NAN;
    for (int64_t n = 0; ok && n < p.n; n++)
        for (int64_t c = 0; c < p.c; c++) {
            double means[2];
            plain_means(&p, o, range, n, c, means,
                        o->return_index_map ? y + n * (size / p.n) : NULL);
            if (!o->return_index_map) y[n] += means[0] / (double)p.c;
        }
    plain_free(&p);
    return ok;
}

#define LIKE(low, high, ...)                                                                       \
    ED_SAMPLE_IN(low, high, __VA_ARGS__), ED_SAMPLE_IN(low, high, __VA_ARGS__)

ED_OP(ssim) = {
    .name = "ssim",
    .doc = "structural similarity of images",
    .operands = {TWO_IMAGES},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(SSIM_ATTRS, ssim_attrs),
    .compose = ssim_compose,
    .reference = ssim_reference,
    .samples = ED_SAMPLES({.inputs = {LIKE(0, 1, 4, 5, 2)}, .attrs = SSIM(.filter_size = 3)},
                          {.inputs = {LIKE(0, 1, 2, 4, 3, 1)},
                           .attrs = SSIM(.filter_size = 2, .filter_sigma = 0.8, .k1 = 0.2,
                                         .k2 = 0.3, .max_val = 2)},
                          {.inputs = {LIKE(0, 1, 2, 4, 4, 2)},
                           .attrs = SSIM(.filter_size = 3, .return_index_map = true)}),
};

ed_tensor *ed_ssim_with(ed_tensor *a, ed_tensor *b, double max_val, const ed_ssim_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_SSIM_OPTIONS, options);
    return CALL_OP(ssim, ED_OPTIONS_FROM(ED_SSIM_OPTIONS, options, ssim_attrs, .max_val = max_val),
                   a, b);
}

/* ---- ssim_multiscale ------------------------------------------------------------------------- */

static const double usual_factors[] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};

/* Half as large: means of 2 by 2 pixels, the last row and column counted twice if odd. */
static ed_tensor *halved(ed_tensor *x)
{
    if (!x) return NULL;
    const int64_t after[] = {0, ed_dim(x, 1) % 2, ed_dim(x, 2) % 2};
    return ed_avg_pool2d(ed_pad(x, .after = {after, 3}, .mode = "SYMMETRIC"));
}

/* Number k of the factors, of rank 0. */
static ed_tensor *factor_at(const ed_call *call, ed_dtype dtype, int64_t k)
{
    return call->n_inputs > 2 ? ed_cast(ed_index(call->inputs[2], k), dtype)
                              : ed_cast(ed_scalar(usual_factors[k]), dtype);
}

static bool ssim_multiscale_compose(ed_call *call)
{
    const multiscale_attrs *m = call->attrs;
    const ssim_attrs *o = ED_OPTIONS_FROM(ED_SSIM_FILTER, m, ssim_attrs, .max_val = m->max_val);
    if (!check_two(call)) return false;
    if (call->n_inputs > 2 && (ed_rank(call->inputs[2]) != 1 || ed_dim(call->inputs[2], 0) < 1))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "power_factors must be [scales], at least one, got %s",
                            text_of_tensor(call->inputs[2]).s);
    const int64_t scales = call->n_inputs > 2 ? ed_dim(call->inputs[2], 0) : 5;
    ed_tensor *a = batch_of(call->inputs[0]), *b = batch_of(call->inputs[1]), *y = NULL;
    for (int64_t k = 0; k < scales; k++) {
        ed_tensor *structure;
        if (k) a = halved(a), b = halved(b);
        if (!a || !b || !check_filter(call, o->filter_size, ed_dim(a, 1), ed_dim(a, 2)))
            return false;
        ed_tensor *all = similarity(o, range_as_floats(call, o->max_val), a, b, &structure);
        ed_tensor *mean = ed_reduce_mean(k + 1 < scales ? structure : all, .axis = ED_AXES(1, 2));
        ed_tensor *power = ed_pow(ed_relu(mean), factor_at(call, ed_dtype_of(a), k));
        y = k ? ed_mul(y, power) : power;
    }
    return give_each(call, ed_reduce_mean(y, .axis = ED_AXES(-1)));
}

static void plain_halve(plain_images *p)
{
    const plain_images from = *p;
    p->h = (p->h + 1) / 2;
    p->w = (p->w + 1) / 2;
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < p->n * p->h * p->w * p->c; i++) {
            const int64_t c = i % p->c, w = i / p->c % p->w, h = i / p->c / p->w % p->h,
                          n = i / p->c / p->w / p->h;
            double sum = 0;
            for (int k = 0; k < 4; k++) {
                int64_t r = 2 * h + k / 2, s = 2 * w + k % 2;
                r = r < from.h ? r : from.h - 1;
                s = s < from.w ? s : from.w - 1;
                sum += from.data[which][((n * from.h + r) * from.w + s) * p->c + c];
            }
            p->data[which][i] = sum / 4; /* behind what is still to be read */
        }
}

static bool ssim_multiscale_reference(const ed_call *call)
{
    const multiscale_attrs *m = call->attrs;
    const ssim_attrs *o = ED_OPTIONS_FROM(ED_SSIM_FILTER, m, ssim_attrs, .max_val = m->max_val);
    const double *factors =
        call->n_inputs > 2 ? (const double *)call->inputs[2]->data : usual_factors;
    const int64_t scales = call->n_inputs > 2 ? call->inputs[2]->shape[0] : 5;
    double *y = (double *)call->outputs[0]->data;
    plain_images p;
    bool ok = plain_batch(call, &p);
    double *products = ok ? memory_alloc((size_t)(p.n * p.c) * sizeof *products) : NULL;
    ok = products;
    for (int64_t i = 0; ok && i < p.n * p.c; i++) products[i] = 1;
    for (int64_t k = 0; ok && k < scales; k++) {
        if (k) plain_halve(&p);
        for (int64_t i = 0; i < p.n * p.c; i++) {
            double means[2];
            plain_means(&p, o, range_as_floats(call, o->max_val), i / p.c, i % p.c, means, NULL);
            const double mean = means[k + 1 < scales];
            products[i] *= pow(mean > 0 || isnan(mean) ? mean : 0, factors[k]);
        }
    }
    for (int64_t n = 0; ok && n < p.n; n++) {
        y[n] = p.c ? 0 : NAN;
        for (int64_t c = 0; c < p.c; c++) y[n] += products[n * p.c + c] / (double)p.c;
    }
    memory_free(products);
    plain_free(&p);
    return ok;
}

ED_OP(ssim_multiscale) = {
    .name = "ssim_multiscale",
    .doc = "structural similarity of images over several scales",
    .operands = {TWO_IMAGES, {"power_factors", ED_SET_FLOAT, 'P', .optional = true}},
    .flags = ED_OP_KEEPS_INTEGERS,
    ED_OP_ATTRS(MULTISCALE_ATTRS, multiscale_attrs),
    .compose = ssim_multiscale_compose,
    .reference = ssim_multiscale_reference,
    .samples = ED_SAMPLES({.inputs = {LIKE(0, 1, 5, 7, 2), ED_SAMPLE_IN(0.5, 1.5, 2)},
                           .attrs = MULTISCALE(.filter_size = 2, .k1 = 0.2, .k2 = 1.5)},
                          {.inputs = {LIKE(0, 1, 2, 6, 4, 1), ED_SAMPLE_IN(0.5, 1.5, 2)},
                           .attrs = MULTISCALE(.filter_size = 2, .k1 = 0.2, .k2 = 2,
                                               .max_val = 2)}),
};

ed_tensor *ed_ssim_multiscale_with(ed_tensor *a, ed_tensor *b, ed_tensor *power_factors,
                                   double max_val, const ed_ssim_multiscale_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_SSIM_MULTISCALE_OPTIONS, options);
    return CALL_OP_GIVEN(
        ssim_multiscale,
        ED_OPTIONS_FROM(ED_SSIM_FILTER, options, multiscale_attrs, .max_val = max_val), a, b,
        power_factors);
}
