/*
 * What an op costs beyond its arithmetic: small tensors, where nearly all the time is the
 * dispatcher's. A run makes CALLS calls in one scope.
 */
#include "bench/bench.h"

typedef struct row {
    const char *name;
    ed_tensor *(*run)(workload *w);
    double want;               /* every element of the last result */
    void (*make)(workload *w); /* NULL: `make` */
} row;

/* Calls whose results nobody uses: the last of them is returned. */
#define REPEAT(call)                                                                               \
    ed_tensor *y = NULL;                                                                           \
    for (int i = 0; i < CALLS; i++) y = call;                                                      \
    return y

static ed_tensor *add(workload *w)
{
    REPEAT(ed_add(w->x[0], w->x[1]));
}

static ed_tensor *add_recorded(workload *w)
{
    ed_watch(ed_tape_begin(), w->x[0]);
    REPEAT(ed_add(w->x[0], w->x[1]));
}

static ed_tensor *assign(workload *w)
{
    ed_assign(w->x[2], w->x[1]);
    for (int i = 0; i < CALLS; i++) ed_assign_add(w->x[2], w->x[1]);
    return ed_value(w->x[2]);
}

static ed_tensor *exponential(workload *w)
{
    REPEAT(ed_exp(w->x[0]));
}

static ed_tensor *sum(workload *w)
{
    REPEAT(ed_reduce_sum(w->x[0]));
}

static ed_tensor *product(workload *w)
{
    REPEAT(ed_matmul(w->x[0], w->x[0]));
}

/* A layer beside the op that it calls. */
static ed_tensor *linear(workload *w)
{
    REPEAT(ed_linear(w->x[0], w->x[0], w->x[1], NULL));
}

static ed_tensor *dense(workload *w)
{
    REPEAT(ed_forward((ed_layer *)w->more, w->x[0]));
}

static ed_tensor *linear_recorded(workload *w)
{
    ed_watch(ed_tape_begin(), w->x[0]);
    return linear(w);
}

static ed_tensor *dense_recorded(workload *w)
{
    ed_watch(ed_tape_begin(), w->x[0]);
    return dense(w);
}

static ed_tensor *reshape(workload *w)
{
    REPEAT(ed_reshape(w->x[0], ED_SHAPE(8, 8)));
}

static ed_tensor *slice(workload *w)
{
    REPEAT(ed_slice(w->x[0], .begin = ED_INTS(3), .end = ED_INTS(9)));
}

static ed_tensor *zeros(workload *w)
{
    (void)w;
    REPEAT(ed_zeros(ED_SHAPE(64)));
}

static ed_tensor *item(workload *w)
{
    double total = 0;
    for (int i = 0; i < CALLS; i++) total += ed_item(ed_index(w->x[0], 0));
    return ed_scalar(total);
}

/* ---- Each call takes the result of the one before ---- */

static ed_tensor *chain_of_adds(workload *w)
{
    ed_tensor *y = w->x[0];
    for (int i = 0; i < CALLS; i++) y = ed_add(y, w->x[1]);
    return y;
}

static ed_tensor *chain_of_products(workload *w)
{
    ed_tensor *y = w->x[0];
    for (int i = 0; i < CALLS; i++) y = ed_mul(y, w->x[1]);
    return y;
}

static ed_tensor *gradient(workload *w, ed_tensor *(*chain)(workload *w))
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, w->x[0]);
    return ed_gradient(tape, chain(w), w->x[0]);
}

static ed_tensor *gradient_of_adds(workload *w)
{
    return gradient(w, chain_of_adds);
}

static ed_tensor *gradient_of_products(workload *w)
{
    return gradient(w, chain_of_products);
}

/* ---- All ---- */

static void make(workload *w)
{
    ed_ints shape = w->n[1] ? ED_SHAPE(w->n[0], w->n[1]) : ED_SHAPE(w->n[0]);
    w->x[0] = ed_ones(shape), w->x[1] = ed_ones(shape), w->x[2] = ed_variable(w->x[0]);
}

/* x [n, n], a bias [n], and a layer of that size that gives the same. */
static void make_layer(workload *w)
{
    w->x[0] = ed_ones(ED_SHAPE(w->n[0], w->n[0])), w->x[1] = ed_zeros(ED_SHAPE(w->n[0]));
    w->more = ed_layer_dense(w->n[0], .kernel_initializer = ed_initializer_ones());
    ed_forward((ed_layer *)w->more, w->x[0]);
}

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    for (int64_t i = 0; i < ed_size(y); i++)
        bench_near("an element", bench_at(y, i), r->want, 1e-6);
}

static void add_row(const row *r, int64_t height, int64_t width)
{
    workload w = {BENCH_CALLS, .calls = CALLS, .make = r->make ?: make, .run = r->run,
                  .check = check};
    w.row = r, w.n[0] = height, w.n[1] = width;
    bench_add(w, r->name, (int)height);
}

void bench_dispatch(void)
{
    static const row by_size[] = {{"add_%d", add, 2},
                                  {"add_%d_recorded", add_recorded, 2},
                                  {"assign_add_%d", assign, 1 + CALLS},
                                  {"chain_add_%d", chain_of_adds, 1 + CALLS},
                                  {"chain_add_%d_grad", gradient_of_adds, 1},
                                  {"chain_mul_%d_grad", gradient_of_products, 1}};
    static const row others[] = {{"sum_%d", sum, 64},        {"exp_%d", exponential, M_E},
                                 {"reshape_%d", reshape, 1}, {"slice_%d", slice, 1},
                                 {"zeros_%d", zeros, 0},     {"item_%d", item, CALLS}};
    static const row products[] = {
        {"matmul_%d", product, 8},
        {"linear_%d", linear, 8, make_layer},
        {"linear_%d_recorded", linear_recorded, 8, make_layer},
        {"layer_dense_%d", dense, 8, make_layer},
        {"layer_dense_%d_recorded", dense_recorded, 8, make_layer},
    };
    for (int size = 1; size <= 64; size *= 64)
        for (size_t i = 0; i < sizeof by_size / sizeof *by_size; i++) add_row(&by_size[i], size, 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) add_row(&others[i], 64, 0);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) add_row(&products[i], 8, 8);
}
