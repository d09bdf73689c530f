#include "ops/elementwise.h"
#include <omp.h>
#include <string.h>

enum { MOST = 4, STRIP = 512 }; /* operands; elements gathered at a time from a strided operand */

/* ---- Shapes ---------------------------------------------------------------------------------- */

bool elementwise_infer_as(ed_call *call, ed_dtype dtype)
{
    const ed_tensor *first = call->inputs[0];
    int rank = first->rank;
    int64_t shape[ED_MAX_RANK];
    memcpy(shape, first->shape, (size_t)rank * sizeof *shape);
    for (int i = 1; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (x->rank == rank && !memcmp(x->shape, shape, (size_t)rank * sizeof *shape)) continue;
        int rank_before = rank;
        int64_t before[ED_MAX_RANK];
        memcpy(before, shape, sizeof before);
        if (!ops_broadcast(rank_before, before, x->rank, x->shape, &rank, shape))
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "shapes %s and %s don't broadcast",
                                text_of_ints(before, rank_before).s,
                                text_of_ints(x->shape, x->rank).s);
    }
    return ed_call_output(call, 0, dtype, rank, shape);
}

bool elementwise_infer(ed_call *call)
{
    return elementwise_infer_as(call, call->inputs[call->n_inputs - 1]->dtype);
}

bool elementwise_infer_bool(ed_call *call)
{
    return elementwise_infer_as(call, ED_BOOL);
}

/* ---- The driver ------------------------------------------------------------------------------ */

/* The whole work: a loop over merged dimensions, outermost first; the last is the inner one. */
typedef struct plan {
    elementwise_loop loop;
    const void *attrs;
    int n, rank;
    int64_t shape[ED_MAX_RANK];
    const char *in[MOST];
    int64_t strides[MOST][ED_MAX_RANK]; /* in elements */
    size_t element[MOST], out_element;
    char *out;
} plan;

/* Whether dimension d continues dimension d + 1 for every operand, so that both are one. */
static bool continues(const plan *p, int d, int64_t extent, int64_t strides[MOST][ED_MAX_RANK],
                      int at)
{
    for (int i = 0; i < p->n; i++)
        if (p->strides[i][d] != strides[i][at] * extent) return false;
    return true;
}

static void make_plan(plan *p, const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    int64_t strides[MOST][ED_MAX_RANK];
    *p = (plan){.n = call->n_inputs,
                .attrs = call->attrs,
                .out = y->data,
                .out_element = dtype_size(y->dtype)};
    for (int i = 0; i < p->n; i++) {
        const ed_tensor *x = call->inputs[i];
        int skip = y->rank - x->rank;
        p->in[i] = x->data;
        p->element[i] = dtype_size(x->dtype);
        for (int d = 0; d < y->rank; d++)
            strides[i][d] = d < skip || x->shape[d - skip] == 1 ? 0 : x->strides[d - skip];
    }
    for (int d = 0; d < y->rank; d++) {
        if (y->shape[d] == 1) continue;
        if (p->rank && continues(p, p->rank - 1, y->shape[d], strides, d)) {
            p->shape[p->rank - 1] *= y->shape[d];
        } else {
            p->shape[p->rank++] = y->shape[d];
        }
        for (int i = 0; i < p->n; i++) p->strides[i][p->rank - 1] = strides[i][d];
    }
    if (!p->rank) {
        p->rank = 1;
        p->shape[0] = 1;
    }
}

static void gather(char *to, const char *from, int64_t n, int64_t stride, size_t element)
{
#define GATHER(type)                                                                               \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i] = ((const type *)from)[i * stride];            \
    break
    switch (element) {
    case 1: GATHER(uint8_t);
    case 2: GATHER(uint16_t);
    case 4: GATHER(uint32_t);
    default: GATHER(uint64_t);
    }
#undef GATHER
}

/* n elements of the inner dimension from operands at `in` with the inner strides. */
static void row(const plan *p, const char *const *in, char *out, int64_t n)
{
    int steps[MOST];
    bool strided = false;
    const void *at[MOST];
    for (int i = 0; i < p->n; i++) {
        int64_t stride = p->strides[i][p->rank - 1];
        steps[i] = stride != 0;
        strided |= stride != 0 && stride != 1;
        at[i] = in[i];
    }
    if (!strided) {
        p->loop(n, at, steps, out, p->attrs);
        return;
    }
    char strips[MOST][STRIP * sizeof(double)] __attribute__((aligned(64)));
    for (int64_t begin = 0; begin < n; begin += STRIP) {
        int64_t count = n - begin < STRIP ? n - begin : STRIP;
        for (int i = 0; i < p->n; i++) {
            int64_t stride = p->strides[i][p->rank - 1];
            const char *from = in[i] + begin * stride * (int64_t)p->element[i];
            at[i] = from;
            if (stride == 0 || stride == 1) continue;
            gather(strips[i], from, count, stride, p->element[i]);
            at[i] = strips[i];
        }
        p->loop(count, at, steps, out + begin * (int64_t)p->out_element, p->attrs);
    }
}

/* Elements first..last-1 of the output in row-major order; a piece may begin and end within a row.
 */
static void piece(const plan *p, int64_t first, int64_t last)
{
    int64_t inner = p->shape[p->rank - 1], at[ED_MAX_RANK];
    int64_t rest = first;
    for (int d = p->rank - 1; d >= 0; d--) {
        at[d] = rest % p->shape[d];
        rest /= p->shape[d];
    }
    while (first < last) {
        const char *in[MOST];
        int64_t n = inner - at[p->rank - 1];
        if (n > last - first) n = last - first;
        for (int i = 0; i < p->n; i++) {
            int64_t offset = 0;
            for (int d = 0; d < p->rank; d++) offset += at[d] * p->strides[i][d];
            in[i] = p->in[i] + offset * (int64_t)p->element[i];
        }
        row(p, in, p->out + first * (int64_t)p->out_element, n);
        first += n;
        at[p->rank - 1] = 0;
        for (int d = p->rank - 2; d >= 0; d--) {
            if (++at[d] < p->shape[d]) break;
            at[d] = 0;
        }
    }
}

/* Most calls: every operand contiguous and of the output's size, or a single element. */
static bool is_flat(const ed_call *call)
{
    for (int i = 0; i < call->n_inputs; i++) {
        const ed_tensor *x = call->inputs[i];
        if (x->size != 1 && (x->size != call->outputs[0]->size || !(x->flags & TENSOR_CONTIGUOUS)))
            return false;
    }
    return true;
}

bool elementwise_kernel(ed_call *call)
{
    const elementwise_table *table = call->op->extra;
    const ed_tensor *y = call->outputs[0];
    elementwise_loop loop = (*table)[isa_level][call->inputs[call->n_inputs - 1]->dtype];
    if (y->size == 0) return true;
    if (is_flat(call) && y->size < OPS_PARALLEL_WORK) {
        const void *in[MOST];
        int steps[MOST];
        for (int i = 0; i < call->n_inputs; i++) {
            in[i] = call->inputs[i]->data;
            steps[i] = call->inputs[i]->size != 1 || y->size == 1;
        }
        loop(y->size, in, steps, y->data, call->attrs);
        return true;
    }
    plan p;
    make_plan(&p, call);
    p.loop = loop;
    if (y->size < OPS_PARALLEL_WORK) {
        piece(&p, 0, y->size);
        return true;
    }
    enum { PIECE = 16384 };
    int64_t pieces = (y->size + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < pieces; i++)
        piece(&p, i * PIECE, (i + 1) * PIECE < y->size ? (i + 1) * PIECE : y->size);
    return true;
}

bool elementwise_plain(const ed_call *call, double (*f)(const double *x, const void *attrs))
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++) {
        double x[MOST];
        for (int k = 0; k < call->n_inputs; k++) {
            const ed_tensor *t = call->inputs[k];
            int64_t offset = 0, rest = i;
            for (int d = y->rank - 1; d >= 0; d--) {
                int64_t at = rest % y->shape[d];
                int own = d - (y->rank - t->rank);
                if (own >= 0 && t->shape[own] != 1) offset += at * t->strides[own];
                rest /= y->shape[d];
            }
            x[k] = ((const double *)t->data)[offset];
        }
        ((double *)y->data)[i] = f(x, call->attrs);
    }
    return true;
}
