/* Elementwise ops, in and out of the cache; their gradients; broadcasting. */
#include "bench/bench.h"

typedef struct row {
    const char *name;
    int bytes;                     /* read and written for each element */
    ed_tensor *(*op)(ed_tensor *); /* of x[0] or, of what takes positive numbers, x[3] */
    double (*op_want)(double a);
    ed_tensor *(*run)(workload *w); /* instead: of several operands */
    double (*run_want)(double a, double b, double c);
    bool positive;
    bool back; /* with a row for its gradient */
} row;

/* ---- Of one operand ---- */

static double relu_want(double a)
{
    return a > 0 ? a : 0;
}

static double sigmoid_want(double a)
{
    return 1 / (1 + exp(-a));
}

static double gelu_want(double a)
{
    return a * 0.5 * erfc(-a * M_SQRT1_2);
}

static double gelu_tanh_want(double a)
{
    return a * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
}

static double silu_want(double a)
{
    return a * sigmoid_want(a);
}

static double softplus_want(double a)
{
    return log1p(exp(a));
}

static ed_tensor *to_double(ed_tensor *x)
{
    return ed_cast(x, ED_FLOAT64);
}

static double same(double a)
{
    return a;
}

static ed_tensor *power(ed_tensor *x)
{
    return ed_pow(x, 2.5);
}

static double power_want(double a)
{
    return pow(a, 2.5);
}

/* ---- Of several: x[0], x[1] and x[2]; x[3] = |x[0]| + 0.1, x[4] says where x[0] > 0 ---- */

static ed_tensor *add(workload *w)
{
    return ed_add(w->x[0], w->x[1]);
}

static double add_want(double a, double b, double c)
{
    return (void)c, a + b;
}

static ed_tensor *multiply(workload *w)
{
    return ed_mul(w->x[0], w->x[1]);
}

static double multiply_want(double a, double b, double c)
{
    return (void)c, a * b;
}

static ed_tensor *divide(workload *w)
{
    return ed_div(w->x[1], w->x[3]);
}

static double divide_want(double a, double b, double c)
{
    return (void)c, b / (fabs(a) + 0.1);
}

static ed_tensor *mul_add(workload *w)
{
    return ed_add(ed_mul(w->x[0], w->x[1]), w->x[2]);
}

/* mul_add by what each library has for one pass. */
static ed_tensor *fma_of(workload *w)
{
    return ed_fma(w->x[0], w->x[1], w->x[2]);
}

static double mul_add_want(double a, double b, double c)
{
    return a * b + c;
}

static ed_tensor *where(workload *w)
{
    return ed_where(w->x[4], w->x[0], w->x[1]);
}

static double where_want(double a, double b, double c)
{
    return (void)c, a > 0 ? a : b;
}

static ed_tensor *greater(workload *w)
{
    return ed_greater(w->x[0], w->x[1]);
}

static double greater_want(double a, double b, double c)
{
    return (void)c, a > b;
}

static const row rows[] = {
    {"add", 12, .run = add, .run_want = add_want},
    {"mul", 12, .run = multiply, .run_want = multiply_want},
    {"div", 12, .run = divide, .run_want = divide_want},
    {"mul_add", 16, .run = mul_add, .run_want = mul_add_want},
    {"fma", 16, .run = fma_of, .run_want = mul_add_want},
    {"where", 13, .run = where, .run_want = where_want},
    {"greater", 9, .run = greater, .run_want = greater_want},
    {"sqrt", 8, ed_sqrt, sqrt, .positive = true},
    {"exp", 8, ed_exp, exp},
    {"log", 8, ed_log, log, .positive = true},
    {"sin", 8, ed_sin, sin},
    {"erf", 8, ed_erf, erf},
    {"pow_2.5", 8, power, power_want, .positive = true},
    {"cast_to_double", 12, to_double, same},
    {"relu", 8, ed_relu, relu_want, .back = true},
    {"tanh", 8, ed_tanh, tanh, .back = true},
    {"sigmoid", 8, ed_sigmoid, sigmoid_want, .back = true},
    {"gelu", 8, ed_gelu, gelu_want, .back = true},
    {"gelu_tanh", 8, ed_gelu_tanh, gelu_tanh_want},
    {"silu", 8, ed_silu, silu_want, .back = true},
    {"softplus", 8, ed_softplus, softplus_want, .back = true},
};

static ed_tensor *one_operand(workload *w)
{
    const row *r = w->row;
    return r->op(w->x[r->positive ? 3 : 0]);
}

static void make(workload *w)
{
    ed_ints shape = ED_SHAPE(w->n[0]);
    for (int i = 0; i < 3; i++) w->x[i] = bench_numbers(shape);
    w->x[3] = ed_add(ed_abs(w->x[0]), 0.1);
    w->x[4] = ed_greater(w->x[0], 0);
    w->list = ed_list_of(w->x[0]);
}

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    BENCH_SPREAD(i, w->n[0])
    {
        double a = bench_at(w->x[r->positive ? 3 : 0], i);
        double want =
            r->op ? r->op_want(a) : r->run_want(a, bench_at(w->x[1], i), bench_at(w->x[2], i));
        bench_near("an element", bench_at(y, i), want, 2e-6);
    }
}

/* ---- Into memory that is there: Eddy's way is a variable that is assigned ---- */

static void make_variable(workload *w)
{
    make(w);
    w->x[5] = ed_variable(w->x[2]);
}

static ed_tensor *assign_add(workload *w)
{
    return ed_assign_add(w->x[5], w->x[1]);
}

static void check_assigned(workload *w, ed_tensor *y)
{
    (void)y;
    BENCH_SPREAD(i, w->n[0])
    bench_near("an element", bench_at(ed_value(w->x[5]), i),
               bench_at(w->x[2], i) + bench_at(w->x[1], i), 2e-6);
}

/* ---- Broadcasting: x[0] and x[1] of shapes that n says ---- */

static void make_outer(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(w->n[0], 1));
    w->x[1] = bench_numbers(ED_SHAPE(1, w->n[0]));
}

static void make_bias(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(w->n[0], w->n[1]));
    w->x[1] = bench_numbers(ED_SHAPE(w->n[1]));
}

static ed_tensor *add_bias(workload *w)
{
    return ed_bias_add(w->x[0], w->x[1]);
}

static void make_square(workload *w)
{
    for (int i = 0; i < 2; i++) w->x[i] = bench_numbers(ED_SHAPE(w->n[0], w->n[0]));
}

static ed_tensor *add_transposed(workload *w)
{
    return ed_add(ed_transpose(w->x[0]), w->x[1]);
}

/* Element (i, j) of an operand of any of the shapes above. */
static double broadcast_at(const ed_tensor *x, int64_t i, int64_t j)
{
    int rank = ed_rank(x);
    int64_t height = rank > 1 ? ed_dim(x, 0) : 1, width = ed_dim(x, -1);
    return bench_at(x, (height > 1 ? i : 0) * width + (width > 1 ? j : 0));
}

static void check_broadcast(workload *w, ed_tensor *y)
{
    bool swapped = w->run == add_transposed;
    int64_t columns = ed_dim(y, 1);
    BENCH_SPREAD(k, ed_size(y))
    {
        int64_t i = k / columns, j = k % columns;
        bench_near("an element", bench_at(y, k),
                   broadcast_at(w->x[0], swapped ? j : i, swapped ? i : j) +
                       broadcast_at(w->x[1], i, j),
                   1e-6);
    }
}

static void add_broadcasts(void)
{
    workload w = {BENCH_BYTES, .run = add, .check = check_broadcast, .make = make_outer};
    for (int n = 1024; n <= 4096; n *= 4) {
        w.n[0] = n, w.amount = 4.0 * n * n;
        bench_add(w, "add_column_row_%d", n);
    }
    w.n[0] = 8192, w.n[1] = 512, w.amount = 8.0 * 8192 * 512;
    w.make = make_bias, w.run = add_bias;
    bench_add(w, "bias_add_8192x512");
    w.n[0] = 4096, w.amount = 12.0 * M16;
    w.make = make_square, w.run = add_transposed;
    bench_add(w, "add_transposed_4096");
}

static void add_row(const row *r, const char *size, double n)
{
    workload w = {BENCH_BYTES, r->bytes * n, .make = make, .check = check, .row = r};
    w.n[0] = (int64_t)n, w.run = r->run ? r->run : one_operand;
    bench_add(w, "%s_%s", r->name, size);
    if (!r->back) return;
    w.amount = 20 * n, w.forward = one_operand;
    bench_add(w, "%s_%s_grad", r->name, size);
}

void bench_elementwise(void)
{
    for (int s = 0; s < 2; s++) {
        const char *size = s ? "16M" : "1M";
        double n = s ? M16 : M1;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) add_row(&rows[i], size, n);
        workload w = {BENCH_UPDATED, 12 * n, .run = assign_add, .make = make_variable};
        w.check = check_assigned, w.n[0] = (int64_t)n;
        bench_add(w, "assign_add_%s", size);
    }
    add_broadcasts();
}
