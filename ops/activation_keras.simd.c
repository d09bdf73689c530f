/* Further activations, as Keras has them; see ops/elementwise.h for how a family file is read.
 * Their gradients are made of public ops. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <math.h>

#define KINKS(...)                                                                                 \
    .kinks = (const double[])                                                                      \
    {                                                                                              \
        __VA_ARGS__, NAN                                                                           \
    }

/* The function of an op with options. */
#ifdef ISA
#define FUNCTION_WITH(symbol) typedef int function_##symbol##_is_elsewhere
#else
#define FUNCTION_WITH(symbol)                                                                      \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_##symbol##_options *options)              \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }                                                                                              \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_##symbol##_options *options)
#endif

/* ---- Bends at 0 ------------------------------------------------------------------------------ */

/* celu: y = x > 0 ? x : alpha (e^(x / alpha) - 1), dx = y < 0 ? dy (y / alpha + 1) : dy */
#define CELU_ALPHA ((const ed_celu_options *)attrs)->alpha
VECTOR_LOOPS1_WITH(celu, CELU_ALPHA, vselect(x > 0, x, c *vexpm1(x / c)));
PLAIN(celu, x[0] > 0 ? x[0] : CELU_ALPHA * expm1(x[0] / CELU_ALPHA));

static bool celu_gradient(const ed_gradient_call *g)
{
    ed_tensor *y = g->outputs[0], *dy = g->dy[0];
    ed_tensor *slope = ed_add(ed_div(y, ((const ed_celu_options *)g->attrs)->alpha), 1);
    g->dx[0] = ed_mul(dy, ed_where(ed_less(y, 0), slope, 1));
    return true;
}

ELEMENTWISE(
    celu, "y = x for x > 0, alpha (e^(x / alpha) - 1) else", ONE(ED_SET_FLOAT),
    .gradient = celu_gradient, SAVES_Y, ED_OP_ATTRS(ED_CELU_OPTIONS, ed_celu_options), KINKS(0),
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4)},
                           .attrs = ED_ATTRS(ED_CELU_OPTIONS, ed_celu_options, .alpha = 0.4)}));
FUNCTION_WITH(celu);

/* prelu: y = x > 0 ? x : alpha x, dx = x > 0 ? dy : alpha dy, dalpha = x > 0 ? 0 : x dy */
VECTOR_LOOPS2(prelu, vselect(a > 0, a, b *a));
PLAIN(prelu, x[0] > 0 ? x[0] : x[1] * x[0]);

static bool prelu_gradient(const ed_gradient_call *g)
{
    ed_tensor *x = g->inputs[0], *alpha = g->inputs[1], *dy = g->dy[0];
    ed_tensor *above = ed_greater(x, 0);
    GIVE(g, 0, ed_where(above, dy, ed_mul(dy, alpha)));
    GIVE(g, 1, ed_where(above, 0, ed_mul(dy, x)));
    return true;
}

ELEMENTWISE(prelu, "y = x for x > 0, alpha x else",
            .operands = {{"x", ED_SET_FLOAT, 'T', .saved = true},
                         {"alpha", ED_SET_FLOAT, 'T', .saved = true}},
            .gradient = prelu_gradient, KINKS(0), .samples = SAMPLES2_IN(-2, 2, 0.1, 1));
#ifndef ISA
ed_tensor *(ed_prelu)(ed_tensor *x, ed_tensor *alpha)
{
    return CALL_OP(prelu, NULL, x, alpha);
}
#endif

/* ---- Smooth ---------------------------------------------------------------------------------- */

#ifdef ISA
/* mish: from MISH_ONE on the factor of x is 1, below -MISH_END it is 0. */
#define MISH_ONE     TYPED(mish_one)
#define MISH_END     TYPED(mish_end)
#define mish_one_f32 20
#define mish_one_f64 40
#define mish_end_f32 120
#define mish_end_f64 760

/* The least normal number. */
#define SMOOTH_LEAST     TYPED(smooth_least)
#define smooth_least_f32 0x1p-126f
#define smooth_least_f64 0x1p-1022

/* (x - tanh x) / x^3 of x^2 - 1.125, for x up to 1.5. */
VECTOR_INLINE vf32 shrink_polynomial_f32(vf32 x)
{
    return POLYNOMIAL(x, 0x1.d78d28p-3f, -0x1.01fb7cp-4f, 0x1.1e92b6p-6f, -0x1.3ef7c2p-8f,
                      0x1.63239ep-10f, -0x1.8c065ep-12f, 0x1.b8f7e2p-14f, -0x1.d9d35ap-16f,
                      0x1.07b7c8p-17f, -0x1.923458p-19f, 0x1.c03860p-21f);
}
VECTOR_INLINE vf64 shrink_polynomial_f64(vf64 x)
{
    return POLYNOMIAL_F64(x, 0x1.d78d27e512c0ap-3, -0x1.01fb7961cc666p-4, 0x1.1e92b319c1f77p-6,
                          -0x1.3ef9e4830205ep-8, 0x1.632612208ee89p-10, -0x1.8b70f004ea23fp-12,
                          0x1.b84ed3ff5035dp-14, -0x1.ea440a8ee24d2p-16, 0x1.10f22f38f76aap-17,
                          -0x1.2fea3537eaf13p-19, 0x1.5265649a594f1p-21, -0x1.78ca7a97e03cep-23,
                          0x1.a39826731a729p-25, -0x1.d333ed728f380p-27, 0x1.037d770ca48bcp-28,
                          -0x1.20ed188f7fd9fp-30, 0x1.4b0dd79442a71p-32, -0x1.70ad3d5ff4d62p-34,
                          0x1.42793f99b59c5p-36, -0x1.66b86c3cd9894p-38, 0x1.b20216bad3a73p-39,
                          -0x1.e3a99d6a90207p-41);
}
#define shrink_polynomial(x) VECTOR_CHOOSE(shrink_polynomial, x)(x)

#define TYPE f32
#include "ops/activation_smooth.typed.h"
#define TYPE f64
#include "ops/activation_smooth.typed.h"
#define vmish(x)          VECTOR_CHOOSE(vmish, x)(x)
#define vtanh_shrink(x)   VECTOR_CHOOSE(vtanh_shrink, x)(x)
#define vsquareplus(x, c) VECTOR_CHOOSE(vsquareplus, x)(x, c)
#endif

/* mish: y = x t, t = tanh(softplus(x)), dx = dy (t + x (1 - t^2) sigmoid(x)) */
VECTOR_LOOPS1(mish, vmish(x));
PLAIN(mish, x[0] * tanh((x[0] < 0 ? 0 : x[0]) + log1p(exp(-fabs(x[0])))));

static bool mish_gradient(const ed_gradient_call *g)
{
    ed_tensor *x = g->inputs[0], *t = ed_tanh(ed_softplus(x));
    ed_tensor *rest = ed_mul(ed_mul(x, ed_sub(1, ed_square(t))), ed_sigmoid(x));
    g->dx[0] = ed_mul(g->dy[0], ed_add(t, rest));
    return true;
}

ELEMENTWISE(mish, "y = x tanh(softplus(x))", ONE(ED_SET_FLOAT), .gradient = mish_gradient, SAVES_X,
            .samples = SAMPLES1(-4, 4));
FUNCTION1(mish);

/* tanh_shrink: y = x - tanh x, dx = dy tanh(x)^2 */
VECTOR_LOOPS1(tanh_shrink, vtanh_shrink(x));
PLAIN(tanh_shrink, x[0] - tanh(x[0]));
GRADIENT1(tanh_shrink, ed_mul(dy, ed_square(ed_tanh(x))));
ELEMENTWISE(tanh_shrink, "y = x - tanh x", ONE(ED_SET_FLOAT), .gradient = tanh_shrink_gradient,
            SAVES_X, .samples = SAMPLES1(-3, 3));
FUNCTION1(tanh_shrink);

/* squareplus: y = (x + h) / 2, h = sqrt(x^2 + b), which for x < 0 is b / (2 (h - x)) without
 * cancellation; dx = dy y / h */
#define SQUAREPLUS_ROOT sqrt(((const ed_squareplus_options *)attrs)->b)
LOOP_HELPER double squareplus_of(double x, double root)
{
    const double h = hypot(x, root);
    return x < 0 ? root * root / 4 / (h / 2 - x / 2) : x / 2 + h / 2;
}
VECTOR_LOOPS1_WITH(squareplus, SQUAREPLUS_ROOT, vsquareplus(x, c));
PLAIN(squareplus, squareplus_of(x[0], SQUAREPLUS_ROOT));

static bool squareplus_gradient(const ed_gradient_call *g)
{
    const double root = sqrt(((const ed_squareplus_options *)g->attrs)->b);
    g->dx[0] = ed_mul(g->dy[0], ed_div_no_nan(g->outputs[0], ed_hypot(g->inputs[0], root)));
    return true;
}

ELEMENTWISE(squareplus, "y = (x + sqrt(x^2 + b)) / 2", ONE(ED_SET_FLOAT),
            .gradient = squareplus_gradient, SAVES_X, SAVES_Y,
            ED_OP_ATTRS(ED_SQUAREPLUS_OPTIONS, ed_squareplus_options),
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-3, 3, 3, 5)}},
                                  {.inputs = {ED_SAMPLE_IN(-3, 3, 4)},
                                   .attrs = ED_ATTRS(ED_SQUAREPLUS_OPTIONS, ed_squareplus_options,
                                                     .b = 0.5)}));
FUNCTION_WITH(squareplus);

/* sparse_plus: y = 0 up to -1, x from 1 on, (x + 1)^2 / 4 between, dx = dy (x + 1) / 2 there */
#define ABOVE(x) vmax(x + 1, vset(x, 0))
VECTOR_LOOPS1(sparse_plus, vselect(x >= 1, x, ABOVE(x) * (vset(x, 0.25) * ABOVE(x))));
PLAIN(sparse_plus, x[0] >= 1 ? x[0] : x[0] <= -1 ? 0 : (x[0] + 1) * (x[0] + 1) / 4);
GRADIENT1(sparse_plus, ed_mul(dy, ed_clip(ed_mul(ed_add(x, 1), 0.5), 0, 1)));
ELEMENTWISE(sparse_plus, "y = 0 for x <= -1, x for x >= 1, (x + 1)^2 / 4 between",
            ONE(ED_SET_FLOAT), .gradient = sparse_plus_gradient, SAVES_X, KINKS(-1, 1),
            .samples = SAMPLES1(-3, 3));
FUNCTION1(sparse_plus);

/* sparse_sigmoid: y = min(max(x + 1, 0), 2) / 2, dx = dy / 2 where -1 < x < 1, else 0 */
VECTOR_LOOPS1(sparse_sigmoid, vset(x, 0.5) * vmin(vmax(x + 1, vset(x, 0)), vset(x, 2)));
PLAIN(sparse_sigmoid, x[0] <= -1 ? 0 : x[0] >= 1 ? 1 : (x[0] + 1) / 2);
GRADIENT1(sparse_sigmoid, ed_where(ed_less(ed_abs(x), 1), ed_mul(dy, 0.5), 0));
ELEMENTWISE(sparse_sigmoid, "y = 0 for x <= -1, 1 for x >= 1, (x + 1) / 2 between",
            ONE(ED_SET_FLOAT), .gradient = sparse_sigmoid_gradient, SAVES_X, KINKS(-1, 1),
            .samples = SAMPLES1(-3, 3));
FUNCTION1(sparse_sigmoid);

/* ---- Straight pieces ------------------------------------------------------------------------- */

/* hard_silu: y = x min(max(x + 3, 0), 6) / 6, dx = dy (x / 3 + 1/2) between -3 and 3, dy above */
VECTOR_LOOPS1(hard_silu, vselect(x < -3, vset(x, 0), x *(vmin(x + 3, vset(x, 6)) / 6)));
PLAIN(hard_silu, x[0] < -3 ? 0 : x[0] > 3 ? x[0] : x[0] * ((x[0] + 3) / 6));

static bool hard_silu_gradient(const ed_gradient_call *g)
{
    ed_tensor *x = g->inputs[0], *dy = g->dy[0];
    ed_tensor *bent = ed_mul(dy, ed_add(ed_div(x, 3), 0.5));
    g->dx[0] = ed_where(ed_less(ed_abs(x), 3), bent, ed_where(ed_greater(x, 0), dy, 0));
    return true;
}

ELEMENTWISE(hard_silu, "y = x hard_sigmoid(x)", ONE(ED_SET_FLOAT), .gradient = hard_silu_gradient,
            SAVES_X, KINKS(-3, 3), .samples = SAMPLES1(-5, 5));
FUNCTION1(hard_silu);

/* hard_tanh: y = min(max(x, -1), 1), dx = dy where -1 <= x <= 1, else 0 */
VECTOR_LOOPS1(hard_tanh, vmin(vmax(x, vset(x, -1)), vset(x, 1)));
PLAIN(hard_tanh, x[0] < -1 ? -1 : x[0] > 1 ? 1 : x[0]);
GRADIENT1(hard_tanh, ed_where(ed_less_equal(ed_abs(x), 1), dy, 0));
ELEMENTWISE(hard_tanh, "y = min(max(x, -1), 1)", ONE(ED_SET_FLOAT), .gradient = hard_tanh_gradient,
            SAVES_X, KINKS(-1, 1), .samples = SAMPLES1(-3, 3));
FUNCTION1(hard_tanh);

/* hard_shrink: y = |x| <= threshold ? 0 : x; soft_shrink: x nearer to 0 by the threshold there;
 * dx = dy where y is not 0 */
#define SHRINK_THRESHOLD ((const ed_shrink_options *)attrs)->threshold
VECTOR_LOOPS1_WITH(hard_shrink, SHRINK_THRESHOLD, vselect(vabs(x) <= c, vset(x, 0), x));
PLAIN(hard_shrink, fabs(x[0]) <= SHRINK_THRESHOLD ? 0 : x[0]);
VECTOR_LOOPS1_WITH(soft_shrink, SHRINK_THRESHOLD,
                   vselect(vabs(x) <= c, vset(x, 0), x - vcopysign(c, x)));
PLAIN(soft_shrink, x[0] > SHRINK_THRESHOLD    ? x[0] - SHRINK_THRESHOLD
                   : x[0] < -SHRINK_THRESHOLD ? x[0] + SHRINK_THRESHOLD
                   : x[0] == x[0]             ? 0
                                              : x[0]);

static bool shrink_gradient(const ed_gradient_call *g)
{
    const double threshold = ((const ed_shrink_options *)g->attrs)->threshold;
    g->dx[0] = ed_where(ed_less_equal(ed_abs(g->inputs[0]), threshold), 0, g->dy[0]);
    return true;
}

#define SHRINK                                                                                     \
    ONE(ED_SET_FLOAT),                                                                             \
        .gradient = shrink_gradient, SAVES_X, ED_OP_ATTRS(ED_SHRINK_OPTIONS, ed_shrink_options),   \
        KINKS(-1, -0.5, 0.5, 1),                                                                   \
        .samples =                                                                                 \
            ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}},                                    \
                       {.inputs = {ED_SAMPLE_IN(-2, 2, 9)},                                        \
                        .attrs = ED_ATTRS(ED_SHRINK_OPTIONS, ed_shrink_options, .threshold = 1)})
ELEMENTWISE(hard_shrink, "y = 0 where |x| <= threshold, x else", SHRINK);
ELEMENTWISE(soft_shrink, "y = x - threshold, x + threshold, 0 between", SHRINK);
#ifndef ISA
ed_tensor *ed_hard_shrink_with(ed_tensor *x, const ed_shrink_options *options)
{
    return CALL_OP(hard_shrink, options, x);
}

ed_tensor *ed_soft_shrink_with(ed_tensor *x, const ed_shrink_options *options)
{
    return CALL_OP(soft_shrink, options, x);
}
#endif

/* threshold: y = x > threshold ? x : value, dx = dy where x > threshold, else 0 */
#define THRESHOLD_ATTRS(FIELD, T)                                                                  \
    FIELD(T, FLOAT, threshold, 0, ED_ANY, "above which x stays")                                   \
    FIELD(T, FLOAT, default_value, 0, ED_ANY, "in place of others")
ED_OPTIONS(threshold_attrs, THRESHOLD_ATTRS);
#define THRESHOLD_OF(attrs) ((const threshold_attrs *)(attrs))

#ifdef ISA
#define TYPE f32
#include "ops/activation_keras.typed.h"
#define TYPE f64
#include "ops/activation_keras.typed.h"
#endif
LOOPS(threshold, LOOPS_FLOAT(threshold));
PLAIN(threshold,
      x[0] <= THRESHOLD_OF(attrs)->threshold ? THRESHOLD_OF(attrs)->default_value : x[0]);
GRADIENT1(threshold, ed_where(ed_less_equal(x, THRESHOLD_OF(g->attrs)->threshold), 0, dy));
ELEMENTWISE(threshold, "y = x for x > threshold, default_value else", ONE(ED_SET_FLOAT),
            .gradient = threshold_gradient, SAVES_X, ED_OP_ATTRS(THRESHOLD_ATTRS, threshold_attrs),
            KINKS(0.5),
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)},
                                   .attrs = ED_ATTRS(THRESHOLD_ATTRS, threshold_attrs,
                                                     .threshold = 0.5, .default_value = -3)},
                                  {.inputs = {ED_SAMPLE_IN(0.1, 2, 4)}}));
#ifndef ISA
ed_tensor *ed_threshold(ed_tensor *x, double threshold, double default_value)
{
    return CALL_OP(threshold,
                   ED_ATTRS(THRESHOLD_ATTRS, threshold_attrs, .threshold = threshold,
                            .default_value = default_value),
                   x);
}
#endif

/* bounded_relu: y = min(x, max_value) where x > threshold, else negative_slope (x - threshold);
 * dx = dy where threshold < x < max_value, negative_slope dy where x <= threshold, else 0 */
LOOPS(bounded_relu, LOOPS_FLOAT(bounded_relu));

LOOP_HELPER double bounded_relu_of(double x, const ed_bounded_relu_options *o)
{
    if (x > o->threshold) return x > o->max_value ? o->max_value : x;
    return x == x && o->negative_slope == 0 ? 0 : o->negative_slope * (x - o->threshold);
}
PLAIN(bounded_relu, bounded_relu_of(x[0], attrs));

static bool bounded_relu_gradient(const ed_gradient_call *g)
{
    const ed_bounded_relu_options *o = g->attrs;
    ed_tensor *x = g->inputs[0], *dy = g->dy[0];
    ed_tensor *above = ed_where(ed_less(x, o->max_value), dy, 0);
    g->dx[0] = ed_where(ed_greater(x, o->threshold), above, ed_mul(dy, o->negative_slope));
    return true;
}

ELEMENTWISE(bounded_relu,
            "y = min(x, max_value) where x > threshold, negative_slope (x - threshold) else",
            ONE(ED_SET_FLOAT), .gradient = bounded_relu_gradient, SAVES_X,
            ED_OP_ATTRS(ED_BOUNDED_RELU_OPTIONS, ed_bounded_relu_options), KINKS(0, 0.5, 1),
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}},
                                  {.inputs = {ED_SAMPLE_IN(-2, 2, 9)},
                                   .attrs = ED_ATTRS(ED_BOUNDED_RELU_OPTIONS,
                                                     ed_bounded_relu_options, .max_value = 1,
                                                     .negative_slope = 0.3, .threshold = 0.5)}));
FUNCTION_WITH(bounded_relu);
