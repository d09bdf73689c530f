/*
 * local_response_normalization: y = x / (bias + alpha s)^beta, where s is the sum of x^2 over
 * neighbours along the last axis; for its gradient neighbour_sum, an op that is its own gradient.
 */
#include "ops/execute.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"

typedef struct neighbours neighbours;

/* Rows of x into y; room: for as many rows laid out. */
typedef void (*neighbours_loop)(const neighbours *p, const void *x, void *y, int64_t rows,
                                void *room);

struct neighbours {
    const char *x;
    char *y, *room;
    int64_t n, radius; /* numbers of a row; neighbours to each side, n at most */
    int64_t together;  /* rows that are laid out at a time */
    size_t element;
    neighbours_loop loop;
    bool stream; /* y goes past the caches */
    ed_lrn_options o;
};

/* From a row that is laid out to the next: zeros around it, and for a vector behind it. */
static inline int64_t neighbours_wide(const neighbours *p, size_t element)
{
    return p->n + 2 * p->radius + (int64_t)(64 / element);
}

#ifdef ISA

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/local_response.typed.h"
#define TYPE f64
#include "ops/local_response.typed.h"

const neighbours_loop ISA_NAME(neighbours_table)[2][2] = {
    {neighbours_sum_f32, neighbours_sum_f64}, {neighbours_response_f32, neighbours_response_f64}};

#else

#include "tensor/copy.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

ISA_DECLARE_TABLE(neighbours_loop, neighbours_table, [2][2]);

#define NEIGHBOUR_SUM_ATTRS(FIELD, T)                                                              \
    FIELD(T, INT, radius, 1, ED_AT_LEAST(0), "elements to each side")
ED_OPTIONS(neighbour_sum_attrs, NEIGHBOUR_SUM_ATTRS);

enum { TOGETHER = HARD(100, 2048) }; /* numbers that are laid out at a time, or one row */

static bool neighbours_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank >= 1) return ops_infer_like(call);
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                        text_of_tensor(x).s);
}

static size_t room_bytes(const neighbours *p)
{
    const size_t bytes = (size_t)(p->together * neighbours_wide(p, p->element)) * p->element;
    return (bytes + COPY_LINE - 1) / COPY_LINE * COPY_LINE;
}

static void neighbours_range(int64_t first, int64_t last, int worker, void *user)
{
    const neighbours *p = user;
    char *room = p->room + (size_t)worker * room_bytes(p);
    for (int64_t row = first; row < last; row += p->together) {
        const int64_t at = row * p->n * (int64_t)p->element;
        p->loop(p, p->x + at, p->y + at, row + p->together < last ? p->together : last - row, room);
    }
}

/* Output 0 from input 0. */
static bool neighbours_run(const ed_call *call, int64_t radius, const ed_lrn_options *o)
{
    static const neighbours_loop(*const tables[ISA_COUNT])[2] = ISA_TABLE(neighbours_table);
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    if (!x->size) return true;
    neighbours p = {.x = x->data, .y = y->data, .n = x->shape[x->rank - 1]};
    p.radius = radius < p.n ? radius : p.n;
    p.together = p.n < TOGETHER ? TOGETHER / p.n : 1;
    p.element = dtype_size(x->dtype);
    p.loop = tables[isa_level][o != NULL][x->dtype == ED_FLOAT64];
    p.stream = x->size * (int64_t)p.element >= COPY_FAR_BYTES &&
               p.n * (int64_t)p.element % COPY_LINE == 0 && (uintptr_t)p.y % COPY_LINE == 0;
    if (o) p.o = *o;
    const int64_t rows = x->size / p.n, grain = 1 + OPS_PARALLEL_WORK / 4 / p.n;
    const int count = threads_count();
    p.room = memory_alloc((size_t)count * room_bytes(&p));
    if (!p.room) return false;
    memset(p.room, 0, (size_t)count * room_bytes(&p));
    threads_run_among(count, rows, x->size > OPS_PARALLEL_WORK ? grain : rows, neighbours_range,
                      &p);
    memory_free(p.room);
    return true;
}

static bool neighbour_sum_kernel(ed_call *call)
{
    return neighbours_run(call, ((const neighbour_sum_attrs *)call->attrs)->radius, NULL);
}

static bool neighbour_sum_reference(const ed_call *call)
{
    const int64_t radius = ((const neighbour_sum_attrs *)call->attrs)->radius;
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    double *to = (double *)call->outputs[0]->data;
    const int64_t n = x->shape[x->rank - 1];
    for (int64_t i = 0; i < x->size; i++) {
        to[i] = 0;
        for (int64_t j = i - i % n; j < i - i % n + n; j++)
            if (j - i <= radius && i - j <= radius) to[i] += from[j];
    }
    return true;
}

extern const ed_op ed_op_neighbour_sum;

static bool neighbour_sum_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = CALL_OP(neighbour_sum, g->attrs, g->dy[0]);
    return true;
}

ED_OP(neighbour_sum) = {
    .name = "neighbour_sum",
    .doc = "y[..., i] = the sum of x[..., j], |i - j| <= radius",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(NEIGHBOUR_SUM_ATTRS, neighbour_sum_attrs),
    .infer = neighbours_infer,
    .batch = ed_batch_first,
    .kernel = neighbour_sum_kernel,
    .gradient = neighbour_sum_gradient,
    .reference = neighbour_sum_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}}, {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 21)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
         .attrs = ED_ATTRS(NEIGHBOUR_SUM_ATTRS, neighbour_sum_attrs, .radius = 7)}),
};

static bool lrn_kernel(ed_call *call)
{
    const ed_lrn_options *o = call->attrs;
    return neighbours_run(call, o->depth_radius, o);
}

static ed_tensor *neighbour_sum(ed_tensor *x, int64_t radius)
{
    return CALL_OP(neighbour_sum,
                   ED_ATTRS(NEIGHBOUR_SUM_ATTRS, neighbour_sum_attrs, .radius = radius), x);
}

/* dx = dy p - 2 alpha beta x sum over neighbours of dy x p / base, p = base^-beta */
static bool lrn_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const ed_lrn_options *o = g->attrs;
    ed_tensor *x = g->inputs[0], *dy = g->dy[0];
    ed_tensor *sum = neighbour_sum(ed_square(x), o->depth_radius);
    ed_tensor *base = ed_add(ed_mul(sum, o->alpha), o->bias);
    ed_tensor *through = ed_mul(dy, ed_pow(base, -o->beta));
    ed_tensor *of_base = neighbour_sum(ed_div(ed_mul(through, x), base), o->depth_radius);
    g->dx[0] = ed_keep(ed_sub(through, ed_mul(ed_mul(x, of_base), 2 * o->alpha * o->beta)));
    return true;
}

static bool lrn_reference(const ed_call *call)
{
    const ed_lrn_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    double *to = (double *)call->outputs[0]->data;
    const int64_t n = x->shape[x->rank - 1];
    for (int64_t i = 0; i < x->size; i++) {
        double sum = 0;
        for (int64_t j = i - i % n; j < i - i % n + n; j++)
            if (j - i <= o->depth_radius && i - j <= o->depth_radius) sum += from[j] * from[j];
        to[i] = from[i] * pow(o->bias + o->alpha * sum, -o->beta);
    }
    return true;
}

ED_OP(local_response_normalization) = {
    .name = "local_response_normalization",
    .doc = "y = x / (bias + alpha sum of x^2 over neighbours along the last axis)^beta",
    .operands = {{"x", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_LRN_OPTIONS, ed_lrn_options),
    .infer = neighbours_infer,
    .batch = ed_batch_first,
    .kernel = lrn_kernel,
    .gradient = lrn_gradient,
    .reference = lrn_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 7)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_LRN_OPTIONS, ed_lrn_options, .depth_radius = 1,
                                             .bias = 2, .alpha = 0.5, .beta = 0.75)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 37)},
                           .attrs = ED_ATTRS(ED_LRN_OPTIONS, ed_lrn_options, .beta = 1)}),
};

ed_tensor *ed_local_response_normalization_with(ed_tensor *x, const ed_lrn_options *options)
{
    return CALL_OP(local_response_normalization, options, x);
}

#endif
