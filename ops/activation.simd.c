/*
 * Activations; see ops/elementwise.h for how a family file is read. Those that every network runs
 * backward (relu, sigmoid, gelu and their like) have their gradient as one op of dy and what was
 * saved; the others' is made of public ops.
 */
#include "ops/elementwise.h"
#include "ops/kernels/gelu.h"
#include "ops/ops.h"
#include <math.h>

/* A gradient op a * f(b) where f is constant between its kinks: d/da is itself, d/db is 0. */
#define MASK_GRADIENT(name)                                                                        \
    static bool name##_gradient(const ed_gradient_call *g)                                         \
    {                                                                                              \
        GIVE(g, 0, ops_##name(g->dy[0], g->inputs[1]));                                            \
        GIVE(g, 1, ed_zeros_like(g->dy[0]));                                                       \
        return true;                                                                               \
    }                                                                                              \
    static bool name##_gradient(const ed_gradient_call *g)
#define OF_GRADIENT .flags = ED_OP_INTERNAL, SAVES_AB
#define KINKS(...)                                                                                 \
    .kinks = (const double[])                                                                      \
    {                                                                                              \
        __VA_ARGS__, NAN                                                                           \
    }
#define SAMPLES2_MASK                                                                              \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5), ED_SAMPLE_IN(-2, 2, 3, 5)}},                 \
               {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2)}})

/* ---- The relu family ------------------------------------------------------------------------- */

/* relu: y = max(x, 0), NaN for NaN, dx = dy where y > 0, else 0 */
VECTOR_LOOP1(relu, f32, vmax(x, vset(x, 0)))
VECTOR_LOOP1(relu, f64, vmax(x, vset(x, 0)))
LOOP1(relu, i32, i32, x > 0 ? x : 0)
LOOP1(relu, i64, i64, x > 0 ? x : 0)
LOOP1(relu, u8, u8, x)
LOOPS(relu, LOOPS_NUMBER(relu));
PLAIN(relu, x[0] < 0 ? 0 : x[0]);
VECTOR_LOOPS2(relu_gradient, vselect(b > 0, a, vset(a, 0)));
PLAIN(relu_gradient, x[1] > 0 ? x[0] : 0);
INTERNAL2(relu_gradient);
GRADIENT1(relu, ops_relu_gradient(dy, y));
MASK_GRADIENT(relu_gradient);

ELEMENTWISE(relu, "y = max(x, 0)", ONE(ED_SET_NUMBER), .gradient = relu_gradient, SAVES_Y, KINKS(0),
            .samples = SAMPLES1(-2, 2));
FUNCTION1(relu);
ELEMENTWISE(relu_gradient, "dx = a where b > 0, else 0, for dy = a and y = b of relu",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = relu_gradient_gradient, KINKS(0),
            .samples = SAMPLES2_MASK);

/* relu6: y = min(max(x, 0), 6), NaN for NaN, dx = dy where 0 < y < 6, else 0 */
VECTOR_LOOP1(relu6, f32, vmin(vmax(x, vset(x, 0)), vset(x, 6)))
VECTOR_LOOP1(relu6, f64, vmin(vmax(x, vset(x, 0)), vset(x, 6)))
LOOP1(relu6, i32, i32, x > 6 ? 6 : x > 0 ? x : 0)
LOOP1(relu6, i64, i64, x > 6 ? 6 : x > 0 ? x : 0)
LOOP1(relu6, u8, u8, x > 6 ? 6 : x)
LOOPS(relu6, LOOPS_NUMBER(relu6));
PLAIN(relu6, x[0] < 0 ? 0 : x[0] > 6 ? 6 : x[0]);
VECTOR_LOOPS2(relu6_gradient, vselect((b > 0) & (b < 6), a, vset(a, 0)));
PLAIN(relu6_gradient, x[1] > 0 && x[1] < 6 ? x[0] : 0);
INTERNAL2(relu6_gradient);
GRADIENT1(relu6, ops_relu6_gradient(dy, y));
MASK_GRADIENT(relu6_gradient);

ELEMENTWISE(relu6, "y = min(max(x, 0), 6)", ONE(ED_SET_NUMBER), .gradient = relu6_gradient, SAVES_Y,
            KINKS(0, 6), .samples = SAMPLES1(-2, 8));
FUNCTION1(relu6);
ELEMENTWISE(relu6_gradient, "dx = a where 0 < b < 6, else 0, for dy = a and y = b of relu6",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = relu6_gradient_gradient, KINKS(0, 6),
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5),
                                              ED_SAMPLE_IN(-2, 8, 3, 5)}}));

/* hard_sigmoid: y = min(max(x + 3, 0), 6) / 6, which does not cancel at -3 as x / 6 + 1/2 does,
 * dx = dy / 6 where -3 < x < 3, else 0 */
VECTOR_LOOPS1(hard_sigmoid, vmin(vmax(x + 3, vset(x, 0)), vset(x, 6)) / 6);
PLAIN(hard_sigmoid, x[0]<-3 ? 0 : x[0]> 3 ? 1 : (x[0] + 3) / 6);
GRADIENT1(hard_sigmoid, ed_where(ed_less(ed_abs(x), 3), ed_div(dy, 6), 0));

ELEMENTWISE(hard_sigmoid, "y = min(max(x / 6 + 1/2, 0), 1)", ONE(ED_SET_FLOAT),
            .gradient = hard_sigmoid_gradient, SAVES_X, KINKS(-3, 3), .samples = SAMPLES1(-5, 5));
FUNCTION1(hard_sigmoid);

/* elu: y = x > 0 ? x : e^x - 1, dx = y < 0 ? dy (y + 1) : dy; of that, d/da likewise,
 * d/db = b < 0 ? a : 0 */
VECTOR_LOOPS1(elu, vselect(x > 0, x, vexpm1(x)));
PLAIN(elu, x[0] > 0 ? x[0] : expm1(x[0]));
VECTOR_LOOPS2(elu_gradient, vselect(b < 0, a * (b + 1), a));
PLAIN(elu_gradient, x[1] < 0 ? x[0] * (x[1] + 1) : x[0]);
INTERNAL2(elu_gradient);
GRADIENT1(elu, ops_elu_gradient(dy, y));

static bool elu_gradient_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ops_elu_gradient(g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_where(ed_less(g->inputs[1], 0), ed_mul(g->dy[0], g->inputs[0]), 0));
    return true;
}

ELEMENTWISE(elu, "y = x for x > 0, e^x - 1 else", ONE(ED_SET_FLOAT), .gradient = elu_gradient,
            SAVES_Y, KINKS(0), .samples = SAMPLES1(-2, 2));
FUNCTION1(elu);
ELEMENTWISE(elu_gradient, "dx = a (b + 1) where b < 0, else a, for dy = a and y = b of elu",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = elu_gradient_gradient, KINKS(0),
            .samples = SAMPLES2_MASK);

/* selu: y = s (x > 0 ? x : t (e^x - 1)), dx = y < 0 ? dy (y + s t) : dy s */
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_BELOW 1.7580993408473768599402175208123 /* s t */
VECTOR_LOOPS1(selu, vselect(x > 0, vset(x, SELU_SCALE) * x, vset(x, SELU_BELOW) * vexpm1(x)));
PLAIN(selu, x[0] > 0 ? SELU_SCALE * x[0] : SELU_BELOW * expm1(x[0]));
GRADIENT1(selu, ed_mul(dy, ed_where(ed_less(y, 0), ed_add(y, SELU_BELOW), SELU_SCALE)));

ELEMENTWISE(selu, "y = 1.0507010 x for x > 0, 1.7580993 (e^x - 1) else", ONE(ED_SET_FLOAT),
            .gradient = selu_gradient, SAVES_Y, KINKS(0), .samples = SAMPLES1(-2, 2));
FUNCTION1(selu);

/* leaky_relu: y = x > 0 ? x : alpha x, dx = x > 0 ? dy : alpha dy */
#define LEAKY_ATTRS(FIELD, T) FIELD(T, FLOAT, alpha, 0.2, ED_ANY, "slope for x <= 0")
ED_OPTIONS(leaky_attrs, LEAKY_ATTRS);

#define LEAKY_ALPHA ((const leaky_attrs *)attrs)->alpha
VECTOR_LOOPS1_WITH(leaky_relu, LEAKY_ALPHA, vselect(x > 0, x, c * x));
PLAIN(leaky_relu, x[0] > 0 ? x[0] : LEAKY_ALPHA * x[0]);
VECTOR_LOOPS2_WITH(leaky_relu_gradient, LEAKY_ALPHA, vselect(b > 0, a, c * a));
PLAIN(leaky_relu_gradient, x[1] > 0 ? x[0] : LEAKY_ALPHA * x[0]);

#ifndef ISA
extern const ed_op ed_op_leaky_relu_gradient;

static bool leaky_relu_gradient(const ed_gradient_call *g)
{
    g->dx[0] = CALL_OP(leaky_relu_gradient, g->attrs, g->dy[0], g->inputs[0]);
    return true;
}

static bool leaky_relu_gradient_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, CALL_OP(leaky_relu_gradient, g->attrs, g->dy[0], g->inputs[1]));
    GIVE(g, 1, ed_zeros_like(g->dy[0]));
    return true;
}

ELEMENTWISE(leaky_relu, "y = x for x > 0, alpha x else", ONE(ED_SET_FLOAT),
            .gradient = leaky_relu_gradient, SAVES_X, ED_OP_ATTRS(LEAKY_ATTRS, leaky_attrs),
            KINKS(0), .samples = SAMPLES1(-2, 2));
ELEMENTWISE(leaky_relu_gradient,
            "dx = a where b > 0, else alpha a, for dy = a and x = b of leaky_relu",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = leaky_relu_gradient_gradient,
            ED_OP_ATTRS(LEAKY_ATTRS, leaky_attrs), KINKS(0), .samples = SAMPLES2_MASK);

ed_tensor *ed_leaky_relu(ed_tensor *x, double alpha)
{
    return CALL_OP(leaky_relu, ED_ATTRS(LEAKY_ATTRS, leaky_attrs, .alpha = alpha), x);
}
#endif

/* ---- The smooth ones ------------------------------------------------------------------------- */

/* sigmoid: y = 1 / (1 + e^-x), dx = dy y (1 - y) in one pass; of that, d/da = b (1 - b), d/db = a
 * (1 - 2 b) */
VECTOR_LOOPS1(sigmoid, vsigmoid(x));
PLAIN(sigmoid, x[0] < 0 ? exp(x[0]) / (1 + exp(x[0])) : 1 / (1 + exp(-x[0])));
VECTOR_LOOPS2(sigmoid_gradient, a * b * (1 - b));
PLAIN(sigmoid_gradient, x[0] * x[1] * (1 - x[1]));
INTERNAL2(sigmoid_gradient);
GRADIENT1(sigmoid, ops_sigmoid_gradient(dy, y));

static bool sigmoid_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_sigmoid_gradient(g->dy[0], b));
    GIVE(g, 1, ed_mul(ed_mul(g->dy[0], a), ed_sub(1, ed_mul(b, 2))));
    return true;
}

ELEMENTWISE(sigmoid, "y = 1 / (1 + e^-x)", ONE(ED_SET_FLOAT), .gradient = sigmoid_gradient, SAVES_Y,
            .samples = SAMPLES1(-4, 4));
FUNCTION1(sigmoid);
ELEMENTWISE(sigmoid_gradient, "dx = a b (1 - b) for dy = a and y = b of sigmoid", TWO(ED_SET_FLOAT),
            OF_GRADIENT, .gradient = sigmoid_gradient_gradient, .samples = SAMPLES2_MASK);

/* softplus: y = ln(1 + e^x), dx = dy s, s = sigmoid(x), in one pass; of that, d/da = itself, d/db =
 * a s (1 - s) */
VECTOR_LOOPS1(softplus, vsoftplus(x));
PLAIN(softplus, (x[0] < 0 ? 0 : x[0]) + log1p(exp(-fabs(x[0]))));
VECTOR_LOOPS2(softplus_gradient, a *vsigmoid(b));
PLAIN(softplus_gradient, x[1] < 0 ? x[0] * (exp(x[1]) / (1 + exp(x[1])))
                                  : x[0] / (1 + exp(-x[1])));
INTERNAL2(softplus_gradient);
GRADIENT1(softplus, ops_softplus_gradient(dy, x));

static bool softplus_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_softplus_gradient(g->dy[0], b));
    GIVE(g, 1, ops_sigmoid_gradient(ed_mul(g->dy[0], a), ed_sigmoid(b)));
    return true;
}

ELEMENTWISE(softplus, "y = ln(1 + e^x)", ONE(ED_SET_FLOAT), .gradient = softplus_gradient, SAVES_X,
            .samples = SAMPLES1(-4, 4));
FUNCTION1(softplus);
ELEMENTWISE(softplus_gradient, "dx = a sigmoid(b) for dy = a and x = b of softplus",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = softplus_gradient_gradient,
            .samples = SAMPLES2_MASK);

/* log_sigmoid: y = -ln(1 + e^-x), dx = dy sigmoid(-x) */
VECTOR_LOOPS1(log_sigmoid, -vsoftplus(-x));
PLAIN(log_sigmoid, (x[0] < 0 ? x[0] : 0) - log1p(exp(-fabs(x[0]))));
GRADIENT1(log_sigmoid, ed_mul(dy, ed_sigmoid(ed_neg(x))));

ELEMENTWISE(log_sigmoid, "y = ln(1 / (1 + e^-x))", ONE(ED_SET_FLOAT),
            .gradient = log_sigmoid_gradient, SAVES_X, .samples = SAMPLES1(-4, 4));
FUNCTION1(log_sigmoid);

/* softsign: y = x / (1 + |x|), dx = dy / (1 + |x|)^2 */
VECTOR_LOOPS1(softsign, x / (1 + vabs(x)));
PLAIN(softsign, x[0] / (1 + fabs(x[0])));
GRADIENT1(softsign, ed_div(dy, ed_square(ed_add(ed_abs(x), 1))));

ELEMENTWISE(softsign, "y = x / (1 + |x|)", ONE(ED_SET_FLOAT), .gradient = softsign_gradient,
            SAVES_X, KINKS(0), .samples = SAMPLES1(-2, 2));
FUNCTION1(softsign);

/* silu: y = x s, s = sigmoid(x), dx = dy s (1 + x (1 - s)) in one pass; of that, d/da = itself,
 * d/db = a s (1 - s) (2 + x (1 - 2 s)) */
VECTOR_LOOPS1(silu, vsilu(x));
PLAIN(silu, x[0] < 0 ? x[0] * exp(x[0]) / (1 + exp(x[0])) : x[0] / (1 + exp(-x[0])));
#ifndef ISA
static double plain_silu_slope(double x)
{
    if (fabs(x) > 800) return x > 0;
    const double s = x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}
#endif
VECTOR_LOOPS2(silu_gradient, a *vsilu_slope(b));
PLAIN(silu_gradient, x[0] * plain_silu_slope(x[1]));
INTERNAL2(silu_gradient);
GRADIENT1(silu, ops_silu_gradient(dy, x));

static bool silu_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_silu_gradient(g->dy[0], b));
    if (!g->needs[1]) return true;
    ed_tensor *s = ed_sigmoid(b), *bend = ed_add(ed_mul(b, ed_sub(1, ed_mul(s, 2))), 2);
    GIVE(g, 1, ed_mul(ops_sigmoid_gradient(ed_mul(g->dy[0], a), s), bend));
    return true;
}

ELEMENTWISE(silu, "y = x / (1 + e^-x)", ONE(ED_SET_FLOAT), .gradient = silu_gradient, SAVES_X,
            .samples = SAMPLES1(-4, 4));
FUNCTION1(silu);
ELEMENTWISE(silu_gradient, "dx = a times the slope of silu at b, for dy = a and x = b",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = silu_gradient_gradient,
            .samples = SAMPLES2_MASK);

/*
 * gelu: y = x P(x), P(x) = (1 + erf(x / sqrt 2)) / 2, dx = dy (P(x) + x p(x)) in one pass, p(x) =
 * P'(x) = e^(-x^2/2) / sqrt(2 pi); of that, d/da = itself, d/db = a p(b) (2 - b^2).
 */
#ifndef ISA
static double plain_gelu_slope(double x)
{
    if (fabs(x) > 40) return x > 0;
    return 0.5 * erfc(-ROOT_HALF * x) + x * ONE_BY_ROOT_2_PI * exp(-0.5 * x * x);
}
#endif
VECTOR_LOOPS1(gelu, vgelu(x));
PLAIN(gelu, x[0] < -40 ? -0.0 : 0.5 * x[0] * erfc(-ROOT_HALF * x[0]));
VECTOR_LOOPS2(gelu_gradient, a *vgelu_slope(b));
PLAIN(gelu_gradient, x[0] * plain_gelu_slope(x[1]));
INTERNAL2(gelu_gradient);
GRADIENT1(gelu, ops_gelu_gradient(dy, x));

static bool gelu_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_gelu_gradient(g->dy[0], b));
    if (!g->needs[1]) return true;
    ed_tensor *square = ed_square(b),
              *density = ed_mul(ed_exp(ed_mul(square, -0.5)), ONE_BY_ROOT_2_PI);
    GIVE(g, 1, ed_mul(ed_mul(g->dy[0], a), ed_mul(density, ed_sub(2, square))));
    return true;
}

ELEMENTWISE(gelu, "y = x (1 + erf(x / sqrt 2)) / 2", ONE(ED_SET_FLOAT), .gradient = gelu_gradient,
            SAVES_X, .samples = SAMPLES1(-3, 3));
FUNCTION1(gelu);
ELEMENTWISE(gelu_gradient, "dx = a times the slope of gelu at b, for dy = a and x = b",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = gelu_gradient_gradient,
            .samples = SAMPLES2_MASK);

/*
 * gelu_tanh: y = x (1 + tanh(u / 2)) / 2 = x s, s = sigmoid(u), u = c (x + d x^3), c = 2 sqrt(2 /
 * pi), d = 0.044715; dx = dy s (1 + x r u') in one pass, r = 1 - s = sigmoid(-u), u' = c (1 + 3 d
 * x^2); of that, d/da = itself, d/db = a s r (2 u' + x u'' + x u'^2 (r - s)), u'' = 6 c d x.
 */
#ifndef ISA
static double plain_u(double x)
{
    return ROOT_8_BY_PI * (x + CUBIC * x * x * x);
}

static double plain_gelu_tanh_slope(double x)
{
    if (fabs(x) > 40) return x > 0;
    const double s = 1 / (1 + exp(-plain_u(x))), r = 1 / (1 + exp(plain_u(x)));
    return s * (1 + x * r * ROOT_8_BY_PI * (1 + 3 * CUBIC * x * x));
}
#endif
VECTOR_LOOPS1(gelu_tanh, vgelu_tanh(x));
PLAIN(gelu_tanh, x[0] < -40 ? -0.0 : x[0] / (1 + exp(-plain_u(x[0]))));
VECTOR_LOOPS2(gelu_tanh_gradient, a *vgelu_tanh_slope(b));
PLAIN(gelu_tanh_gradient, x[0] * plain_gelu_tanh_slope(x[1]));
INTERNAL2(gelu_tanh_gradient);
GRADIENT1(gelu_tanh, ops_gelu_tanh_gradient(dy, x));

static bool gelu_tanh_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *b = g->inputs[1];
    GIVE(g, 0, ops_gelu_tanh_gradient(g->dy[0], b));
    if (!g->needs[1]) return true;
    ed_tensor *square = ed_square(b);
    ed_tensor *u = ed_mul(b, ed_add(ed_mul(square, ROOT_8_BY_PI * CUBIC), ROOT_8_BY_PI));
    ed_tensor *du = ed_add(ed_mul(square, 3 * ROOT_8_BY_PI * CUBIC), ROOT_8_BY_PI);
    ed_tensor *s = ed_sigmoid(u), *r = ed_sigmoid(ed_neg(u));
    ed_tensor *even = ed_add(ed_mul(du, 2), ed_mul(square, 6 * ROOT_8_BY_PI * CUBIC));
    ed_tensor *odd = ed_mul(ed_mul(b, ed_square(du)), ed_sub(r, s));
    GIVE(g, 1, ed_mul(ed_mul(g->dy[0], a), ed_mul(ed_mul(s, r), ed_add(even, odd))));
    return true;
}

ELEMENTWISE(gelu_tanh, "y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2", ONE(ED_SET_FLOAT),
            .gradient = gelu_tanh_gradient, SAVES_X, .samples = SAMPLES1(-3, 3));
FUNCTION1(gelu_tanh);
ELEMENTWISE(gelu_tanh_gradient, "dx = a times the slope of gelu_tanh at b, for dy = a and x = b",
            TWO(ED_SET_FLOAT), OF_GRADIENT, .gradient = gelu_tanh_gradient_gradient,
            .samples = SAMPLES2_MASK);
