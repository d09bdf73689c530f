/*
 * An op of one's own: the Huber function, which grows like a square near 0 and like a line far from
 * it, with its gradient, which finite differences check. A line is then fitted to points of which
 * some are far off: by squares they spoil it, by the Huber function they do not.
 */
#include <eddy.h>
#include <math.h>

/* ---- The definition -------------------------------------------------------------------------- */

/* Its options; .delta is where the square becomes a line. */
#define HUBER_OPTIONS(FIELD, T) FIELD(T, FLOAT, delta, 1, ED_ABOVE(0), "where the line begins")
ED_OPTIONS(huber_options, HUBER_OPTIONS);

/* Checks the call, of which the dispatcher has checked dtypes and options, and makes the output. */
static bool infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const ed_ints shape = ed_shape(x);
    return ed_call_output(call, 0, ed_dtype_of(x), (int)shape.count, shape.values);
}

static double huber_of(double x, double delta)
{
    const double size = fabs(x);
    return size <= delta ? 0.5 * x * x : delta * (size - 0.5 * delta);
}

static bool kernel(ed_call *call)
{
    const double delta = ((const huber_options *)call->attrs)->delta;
    const int64_t n = ed_size(call->inputs[0]);
    const void *x = ed_data(call->inputs[0]);
    void *y = ed_call_data(call, 0);
    if (!x || !y) return false;
    if (ed_dtype_of(call->inputs[0]) == ED_FLOAT64)
        for (int64_t i = 0; i < n; i++) ((double *)y)[i] = huber_of(((const double *)x)[i], delta);
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)y)[i] = (float)huber_of(((const float *)x)[i], delta);
    return true;
}

/* dx = dy x near 0, else +-dy delta. It consists of ops, so it has a gradient in turn. */
static bool gradient(const ed_gradient_call *call)
{
    const double delta = ((const huber_options *)call->attrs)->delta;
    call->dx[0] = ed_mul(call->dy[0], ed_clip(call->inputs[0], -delta, delta));
    return call->dx[0] != NULL;
}

static const ed_op huber_op = {
    .name = "my_huber", /* "huber" is the library's */
    .doc = "y = x^2 / 2 if |x| <= delta, else delta (|x| - delta / 2)",
    .operands = {{.name = "x", .dtypes = ED_SET_FLOAT, .type = 'T', .saved = true}},
    .results = ED_RESULTS({.name = "y"}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(HUBER_OPTIONS, huber_options),
    .infer = infer,
    .kernel = kernel,
    .gradient = gradient,
};

/* Called like an op of the library: huber(x), huber(x, .delta = 0.5). */
#define huber(x, ...)                                                                              \
    ED_WITH_OPTIONS(huber_with(x, &ed_options_), HUBER_OPTIONS, huber_options, __VA_ARGS__)
static ed_tensor *huber_with(ed_tensor *x, const huber_options *options)
{
    return ed_call_op(&huber_op, &x, 1, options);
}

/* ---- The check ------------------------------------------------------------------------------- */

static ed_tensor *checked(ed_list *inputs, void *user)
{
    (void)user;
    return huber(ed_list_get(inputs, 0), .delta = 0.5);
}

/* At points that are not at the kinks, -0.5 and 0.5. */
static bool check(void)
{
    ED_SCOPE;
    const char *report = "";
    ed_list *at = ed_list_of(ed_linspace(-2, 2, 10, .dtype = ED_FLOAT64));
    const bool right = ed_check_gradient(checked, at, NULL, &report, .second_order = true);
    printf("gradient %s: %s\n", right ? "right" : "wrong", report);
    return right;
}

/* ---- The fit --------------------------------------------------------------------------------- */

enum { POINTS = 100, STEPS = 500 };

/* The slope of a line through the points (x, y). */
static double slope(ed_tensor *x, ed_tensor *y, bool robust)
{
    ED_SCOPE;
    ed_tensor *w = ed_variable(ed_scalar(0.0)), *b = ed_variable(ed_scalar(0.0));
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.05);
    for (int step = 0; step < STEPS; step++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *error = ed_sub(ed_add(ed_mul(x, w), b), y);
        ed_tensor *loss = ed_reduce_mean(robust ? huber(error, .delta = 0.2) : ed_square(error));
        ed_minimize(adam, tape, loss, NULL); /* what the tape watched */
    }
    return ed_item(w);
}

int main(void)
{
    if (!ed_op_register(&huber_op) || !check()) {
        if (ed_failed()) fprintf(stderr, "custom_op: %s\n", ed_error());
        return 1;
    }
    ed_set_seed(1);
    ed_tensor *x = ed_linspace(-1, 1, POINTS);
    ed_tensor *noise = ed_random_normal(ED_SHAPE(POINTS), .stddev = 0.1);
    ed_tensor *far_off = ed_mul(ed_cast(ed_greater(x, 0.8), ED_FLOAT32), -10);
    ed_tensor *y = ed_add(ed_add(ed_mul(x, 3), noise), far_off);
    printf("the slope is 3; by squares %.2f, by huber %.2f\n", slope(x, y, false),
           slope(x, y, true));
    if (ed_failed()) fprintf(stderr, "custom_op: %s\n", ed_error());
    return ed_failed();
}
