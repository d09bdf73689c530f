/* Sums of lists: add_n, polyval. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <string.h>

/* ---- add_n ----------------------------------------------------------------------------------- */

extern const ed_op ed_op_add;

static bool add_n_infer(ed_call *call)
{
    const ed_tensor *first = call->inputs[0];
    for (int i = 1; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (x->rank != first->rank ||
            memcmp(x->shape, first->shape, (size_t)x->rank * sizeof *x->shape) != 0)
            return ed_call_fail(
                call, ED_INVALID_ARGUMENT, "shapes differ: operand %lld is %s, operand %lld is %s",
                text_nth(0), text_of_tensor(first).s, text_nth(i), text_of_tensor(x).s);
    }
    return ops_infer_like(call);
}

enum { ADD_BLOCK = 1024, ADD_PIECE = HARD(ADD_BLOCK, 16384) }; /* elements */

/* Elements first..last-1: block by block, so that a block's sum stays in the cache. */
static void add_n_range(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const elementwise_table *table = ed_op_add.extra;
    const elementwise_loop add = (*table)[isa_level][call->outputs[0]->dtype];
    const int64_t element = (int64_t)dtype_size(call->outputs[0]->dtype);
    const bool far = call->outputs[0]->size * element >= COPY_FAR_BYTES;
    char sums[2][ADD_BLOCK * sizeof(double)] __attribute__((aligned(64)));
    (void)worker;
    for (int64_t at = first; at < last; at += ADD_BLOCK) {
        const int64_t n = last - at < ADD_BLOCK ? last - at : ADD_BLOCK;
        const char *sum = call->inputs[0]->data + at * element;
        for (int i = 1; i < call->n_inputs; i++) {
            char *to =
                i == call->n_inputs - 1 ? call->outputs[0]->data + at * element : sums[i % 2];
            add(n, (const void *const[]){sum, call->inputs[i]->data + at * element},
                (const int[]){1, 1}, to, NULL, i == call->n_inputs - 1 && far);
            sum = to;
        }
    }
    if (far) copy_stream_end();
}

static bool add_n_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    if (y->size == 0) return true;
    if (call->n_inputs == 1) return tensor_pack(call->inputs[0], y->data), true;
    threads_run(y->size, y->size < OPS_PARALLEL_WORK ? y->size : ADD_PIECE, add_n_range, call);
    return true;
}

static bool add_n_gradient(const ed_gradient_call *g)
{
    for (int i = 0; i < g->n_inputs; i++)
        if (g->needs[i]) g->dx[i] = g->dy[0];
    return true;
}

static bool add_n_reference(const ed_call *call)
{
    for (int64_t i = 0; i < call->outputs[0]->size; i++) {
        double sum = 0;
        for (int k = 0; k < call->n_inputs; k++) sum += ((const double *)call->inputs[k]->data)[i];
        ((double *)call->outputs[0]->data)[i] = sum;
    }
    return true;
}

ED_OP(add_n) = {
    .name = "add_n",
    .doc = "y = the sum of all, which have one shape",
    ONE(ED_SET_NUMBER),
    .flags = ED_OP_VARIADIC | ED_OP_CONTIGUOUS,
    .infer = add_n_infer,
    .batch = ed_batch_axes,
    .kernel = add_n_kernel,
    .gradient = add_n_gradient,
    .reference = add_n_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4),
                                      ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(-2, 2, 5)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5)}}),
};

ed_tensor *ed_add_n(ed_list *list)
{
    if (!list) return ed_fail(ED_INVALID_ARGUMENT, "add_n: the list is NULL");
    return ed_call_op(&ed_op_add_n, list->items, (int)list->size, NULL);
}

/* ---- polyval --------------------------------------------------------------------------------- */

/* By Horner's rule: ((c0 x + c1) x + c2) ... */
static bool polyval_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0], *y = call->inputs[1];
    for (int i = 2; i < call->n_inputs; i++) y = ed_add(ed_mul(y, x), call->inputs[i]);
    if (call->n_inputs == 2) y = ed_add(ed_mul(ed_zeros_like(x), x), y);
    return ed_call_result(call, 0, y);
}

/* Samples' coefficients are numbers or of x's shape. */
static bool polyval_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) {
        const ed_tensor *x = call->inputs[0];
        double at = ((const double *)x->data)[x->size == 1 ? 0 : i],
               sum = call->n_inputs == 2 ? 0 * at : 0;
        for (int k = 1; k < call->n_inputs; k++) {
            const ed_tensor *c = call->inputs[k];
            const double next = ((const double *)c->data)[c->size == 1 ? 0 : i];
            sum = k == 1 ? sum + next : sum * at + next;
        }
        ((double *)y->data)[i] = sum;
    }
    return true;
}

ED_OP(polyval) = {
    .name = "polyval",
    .doc = "y = c0 x^(n-1) + c1 x^(n-2) + ... + c(n-1) for coefficients c, the highest power first",
    .operands = {{"x", ED_SET_NUMBER, 'T'}, {"coeffs", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_VARIADIC,
    .compose = polyval_compose,
    .reference = polyval_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2),
                                      ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *(ed_polyval)(ed_list *coeffs, ed_tensor *x)
{
    ED_SCOPE;
    if (!coeffs) return ed_fail(ED_INVALID_ARGUMENT, "polyval: coeffs is NULL");
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "polyval: x is NULL");
    if (coeffs->size == 0) return ed_keep(ed_zeros_like(x));
    ed_tensor **operands = ed_scope_alloc(((size_t)coeffs->size + 1) * sizeof *operands);
    if (!operands) return NULL;
    operands[0] = x;
    memcpy(operands + 1, coeffs->items, (size_t)coeffs->size * sizeof *operands);
    return ed_keep(ed_call_op(&ed_op_polyval, operands, (int)coeffs->size + 1, NULL));
}
