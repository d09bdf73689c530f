/*
 * What linear_relu's gradient and that of a convolution with bias and relu begin with, in one pass:
 * the mask of relu and the sums of rows. And bias_add, which is add with a stricter shape.
 */
#include "ops/linear.h"
#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <string.h>

/* ---- linear_relu_gradient -------------------------------------------------------------------- */

/*
 * g = dy where y > 0, else 0, and the sum of g's rows, in one pass. Rows are added in fixed groups,
 * each on one thread, and the groups' sums in their order.
 */
enum { GROUP_ROWS = 64, GROUPS = 64 };

static bool relu_gradient_infer(ed_call *call)
{
    const ed_tensor *dy = call->inputs[0], *y = call->inputs[1];
    if (dy->rank < 1 || dy->rank != y->rank ||
        memcmp(dy->shape, y->shape, (size_t)y->rank * sizeof *y->shape))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dy is %s, y is %s; they must have the same shape",
                            text_of_ints(dy->shape, dy->rank).s, text_of_ints(y->shape, y->rank).s);
    return ed_call_output(call, 0, y->dtype, y->rank, y->shape) &&
           ed_call_output(call, 1, y->dtype, 1, &y->shape[y->rank - 1]);
}

static const linear_loops *loops_of(const ed_tensor *y)
{
    static const linear_loops *const tables[ISA_COUNT] = ISA_TABLE(linear_table);
    return &tables[isa_level][y->dtype];
}

typedef struct masking {
    const ed_tensor *dy, *y, *g; /* g may be dy */
    char *sums;                  /* [groups, n] */
    int64_t n, rows, each;       /* rows in all; of a group */
} masking;

/* Rows first..last-1, which are one group. */
static void mask_group(const masking *m, int64_t group, int64_t first, int64_t last)
{
    size_t element = dtype_size(m->y->dtype), at = (size_t)(first * m->n) * element;
    void *to = m->sums + (size_t)(group * m->n) * element;
    loops_of(m->y)->mask(last - first, m->n, m->dy->data + at, m->y->data + at, m->g->data + at,
                         to);
}

static void mask_groups(int64_t first, int64_t last, int worker, void *user)
{
    const masking *m = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        mask_group(m, i, i * m->each, (i + 1) * m->each < m->rows ? (i + 1) * m->each : m->rows);
}

/* false without memory. */
static bool mask_all(const ed_tensor *dy, const ed_tensor *y, ed_tensor *g, ed_tensor *total)
{
    int64_t n = total->size, rows = n ? y->size / n : 0;
    int64_t each = rows > GROUP_ROWS * GROUPS ? (rows + GROUPS - 1) / GROUPS : GROUP_ROWS;
    int64_t groups = (rows + each - 1) / each;
    size_t element = dtype_size(y->dtype);
    char *sums = memory_alloc((size_t)(groups * n) * element);
    if (!sums) return false;
    threads_run(groups, y->size > OPS_PARALLEL_WORK ? 1 : groups, mask_groups,
                &(masking){dy, y, g, sums, n, rows, each});
    loops_of(y)->join(groups, n, sums, total->data);
    memory_free(sums);
    return true;
}

static bool relu_gradient_kernel(ed_call *call)
{
    return mask_all(call->inputs[0], call->inputs[1], call->outputs[0], call->outputs[1]);
}

extern const ed_op ed_op_linear_relu_gradient;

ed_tensor *ops_relu_backward(const ed_gradient_call *g, ed_tensor **dbias)
{
    ed_tensor *dy = g->dy[0], *y = g->outputs[0];
    if (!g->spends || !ops_is_spare(dy) || y->flags != TENSOR_CONTIGUOUS)
        return ops_call_into(&ed_op_linear_relu_gradient, (ed_tensor *const[]){dy, y}, 2, NULL,
                             (ed_tensor * *const[]){dbias});
    *dbias = scope_give(tensor_new(y->dtype, 1, &y->shape[y->rank - 1]));
    return *dbias && mask_all(dy, y, dy, *dbias) ? dy : NULL;
}

static bool relu_gradient_reference(const ed_call *call)
{
    const ed_tensor *y = call->inputs[1];
    double *g = (double *)call->outputs[0]->data, *total = (double *)call->outputs[1]->data;
    int64_t n = call->outputs[1]->size;
    for (int64_t j = 0; j < n; j++) total[j] = 0;
    for (int64_t e = 0; e < y->size; e++) {
        g[e] = ((double *)y->data)[e] > 0 ? ((double *)call->inputs[0]->data)[e] : 0;
        total[e % n] += g[e];
    }
    return true;
}

/* Both outputs are linear in dy under the mask: ddy = (dg + dtotal) where y > 0. */
static bool relu_gradient_gradient(const ed_gradient_call *g)
{
    ed_tensor *both = g->dy[0];
    if (!both) both = ed_zeros(g->shapes[0], .dtype = g->dtypes[0]);
    if (g->dy[1]) both = ed_add(both, g->dy[1]);
    if (g->needs[0]) g->dx[0] = CALL_OP(linear_relu_gradient, NULL, both, g->inputs[1]);
    return true;
}

static ed_list *relu_gradient_batch(const ed_batch_call *call)
{
    ed_tensor *dy = call->batches[0] ?: call->inputs[0], *y = call->batches[1] ?: call->inputs[1];
    ed_tensor *dz = ed_where(ed_greater(y, 0), dy, 0);
    int64_t rows[ED_MAX_RANK];
    const int count = call->inputs[0]->rank - 1;
    for (int i = 0; i < count; i++) rows[i] = i + 1;
    return ed_list_of(dz, ed_reduce_sum(dz, .axis = {rows, count}));
}

ED_OP(linear_relu_gradient) = {
    .name = "linear_relu_gradient",
    .doc = "dy where y > 0, else 0, and the sum of its rows",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}, {"y", ED_SET_FLOAT, 'T', .saved = true}},
    .results = ED_RESULTS({.name = "dz"}, {.name = "dbias"}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    .infer = relu_gradient_infer,
    .batch = relu_gradient_batch,
    .kernel = relu_gradient_kernel,
    .gradient = relu_gradient_gradient,
    .reference = relu_gradient_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 37), ED_SAMPLE_IN(-2, 2, 3, 37)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 165), ED_SAMPLE_IN(-2, 2, 2, 165)}}),
    .kinks = (const double[]){0, __builtin_nan("")},
};

/* ---- bias_add -------------------------------------------------------------------------------- */

ed_tensor *ed_bias_add(ed_tensor *x, ed_tensor *bias)
{
    if (!x || !bias) return ed_fail(ED_INVALID_ARGUMENT, "bias_add: %s is NULL", x ? "bias" : "x");
    if (ed_rank(x) < 1 || ed_rank(bias) != 1 || ed_dim(x, -1) != ed_dim(bias, 0))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "bias_add: x must be [..., n] and bias [n]: x is %s, bias is %s",
                       text_of_tensor(x).s, text_of_tensor(bias).s);
    return ed_add(x, bias);
}
